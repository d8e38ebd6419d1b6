//! Health policies: rules in CEL over one event, first match by priority.
//!
//! What a newcomer gets wrong: a rule that fails is not a rule that does not match. The search ends
//! there, and nothing good may be concluded: the event is at least as bad as the driver and the catalogue say.

mod reach;

mod record;

mod history;

mod pattern;

mod prepare;

mod facts;

mod sample;

use crate::expression::{Expression, Flaw};
use crate::language::{ENV, Language};
use argosy_core::health::{Event, Lasts, Severity, Sighting, Verdict};
use argosy_core::node::Node;
use argosy_core::policy::{
    DEGRADED_LASTS, DESCRIPTION_LEN_MAX, PolicySpec, RULE_NAME_LEN_MAX, RULES_MAX, Rule,
};
use cel::Context;
use facts::{Facts, VARIABLES, Variables};
use jiff::{SignedDuration, Timestamp};
use prepare::Constants;
use reach::Traits;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// A compiled policy. It cannot fail on its own syntax.
pub struct HealthPolicy {
    name: String,
    version: u32,
    /// In the order in which they are asked.
    rules: Vec<Compiled>,
    constants: Constants,
    warnings: Vec<RuleError>,
    refusals: Vec<RuleError>,
}

/// Not the rules as trees: they are some hundred lines each.
impl fmt::Debug for HealthPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
        let HealthPolicy { name, version, .. } = self;
        write!(f, "HealthPolicy({name} {version}: {})", names.join(", "))
    }
}

/// What a policy is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// What happened.
    pub event: &'a Event,
    /// Where, as the node was before it.
    pub node: &'a Node,
    /// What was seen of the same GPU on other nodes; the first 64 are looked at.
    pub elsewhere: &'a [Sighting],
    /// By our clock.
    pub now: Timestamp,
}

/// What is wrong with one rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{}: {message}", place(*.line, *.column))]
pub struct RuleError {
    /// `rules[3].condition`.
    pub field: String,
    /// Counted from 1, in the text of that field, where one place is to blame.
    pub line: Option<usize>,
    /// Counted from 1, in characters.
    pub column: Option<usize>,
    /// What is wrong and what would be right.
    pub message: String,
}

fn place(line: Option<usize>, column: Option<usize>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(" at {line}:{column}"),
        _ => String::new(),
    }
}

/// The most steps of one judgement, all rules together, by a bound that cannot be too low. An event may
/// take 50 ms; a step takes at most 32 ns of the interpreter's time in the dearest rules there are.
pub const JUDGEMENT_COST_MAX: u64 = 1_000_000;

/// What health rules are written in.
const LANGUAGE: Language = Language {
    variables: &VARIABLES,
    functions: &[
        ("seen", history::STEPS),
        ("seen_on_gpu", history::STEPS),
        ("seen_on_serial", history::STEPS),
        ("bursts", history::STEPS),
        ("bursts_on_gpu", history::STEPS),
        ("bursts_on_serial", history::STEPS),
        ("matches", pattern::STEPS),
    ],
};

/// One rule, compiled.
struct Compiled {
    name: String,
    /// What it says to people; empty if its author said nothing.
    description: String,
    priority: i32,
    result: Severity,
    lasts: Lasts,
    /// Whether it asks what the driver wants.
    on_advice: bool,
    /// What it compares a count with that is never reached.
    uncountable: Option<String>,
    condition: Expression,
    reach: Traits,
}

/// What somebody else says about an event.
struct Opinion {
    who: &'static str,
    severity: Severity,
    says: String,
}

static DEFAULT: LazyLock<PolicySpec> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/default-policy.json"))
        .expect("data/default-policy.json is part of the build, and a test reads it")
});

impl HealthPolicy {
    /// Compiles a policy.
    ///
    /// Each rule is tried on a sample of every kind of event: one that can give no answer for any of
    /// them is refused.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(name: &str, version: u32, spec: &PolicySpec) -> Result<Self, Vec<RuleError>> {
        let whole = |message: String| {
            vec![RuleError { field: "rules".to_owned(), line: None, column: None, message }]
        };
        match spec.rules.len() {
            0 => return Err(whole("a policy needs at least one rule".to_owned())),
            len if RULES_MAX < len => {
                return Err(whole(format!("{len} rules; at most {RULES_MAX} are allowed")));
            }
            _ => {}
        }
        let mut constants = Constants::default();
        let (mut rules, mut errors) = (Vec::with_capacity(spec.rules.len()), Vec::new());
        let mut names = BTreeSet::new();
        for (place, rule) in spec.rules.iter().enumerate() {
            if !names.insert(rule.name.as_str()) {
                let name = &rule.name;
                errors.push(error(place, "name", format!("another rule is called `{name}`")));
            }
            match Compiled::new(place, rule, &mut constants) {
                Ok(rule) => rules.push((place, rule)),
                Err(of_rule) => errors.extend(of_rule),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let warnings = sample::try_out(&rules, &constants)?;
        let refusals = rules.iter().filter_map(|(place, rule)| {
            rule.uncountable.clone().map(|message| error(*place, "condition", message))
        });
        let refusals = refusals.collect();
        // Stable: equals stay in the order of the file.
        rules.sort_by_key(|(_, rule)| std::cmp::Reverse(rule.priority));
        let rules = rules.into_iter().map(|(_, rule)| rule).collect();
        Ok(Self { name: name.to_owned(), version, rules, constants, warnings, refusals })
    }

    /// What is not wrong with the policy, but probably not meant: rules that nothing can reach, and
    /// rules that fail on an event of a kind they are about.
    pub fn warnings(&self) -> &[RuleError] {
        &self.warnings
    }

    /// For what a policy that is written now is refused. One that was stored before goes on as it did.
    pub fn refusals(&self) -> &[RuleError] {
        &self.refusals
    }

    /// What the policy says. A rule that fails ends the search: the verdict is its error, whatever
    /// rules after it would have said.
    pub fn judge(&self, judged: &Judged<'_>) -> Verdict {
        let facts = Facts::new(*judged);
        let variables = Variables::new(&facts, &self.constants);
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(&variables);
        let (traits, size) = (facts.traits(), facts.size());
        let mut spent = 0_u64;
        for rule in self.rules.iter().filter(|rule| traits.meet(rule.reach)) {
            spent = spent.saturating_add(rule.condition.cost(size));
            let holds = if JUDGEMENT_COST_MAX < spent {
                Err(too_dear(spent))
            } else {
                rule.condition.holds(&context)
            };
            match holds {
                Ok(false) => {}
                Ok(true) => return self.verdict(Some(rule), Ok(rule.result), &facts),
                Err(error) => return self.verdict(Some(rule), Err(error), &facts),
            }
        }
        self.verdict(None, Ok(Severity::Healthy), &facts)
    }

    /// The policy that is there when nobody wrote one: it follows the Xid catalogue.
    pub fn default_spec() -> PolicySpec {
        DEFAULT.clone()
    }

    fn verdict(
        &self,
        rule: Option<&Compiled>,
        severity: Result<Severity, String>,
        facts: &Facts<'_>,
    ) -> Verdict {
        let lasts = match (&severity, rule) {
            (Ok(_), Some(rule)) => rule.lasts,
            (Ok(_), None) => Lasts::For(SignedDuration::ZERO),
            // As bad as the driver and the catalogue say, it lasts as such findings do.
            (Err(_), _) if facts.at_least() == Severity::Unhealthy => Lasts::UntilReboot,
            (Err(_), _) => Lasts::For(DEGRADED_LASTS),
        };
        let message = match (&severity, rule) {
            (Err(error), Some(rule)) => format!("the rule `{}` failed: {error}", rule.name),
            (_, rule) => said(facts, rule.map_or("", |rule| &rule.description)),
        };
        let decided = severity.as_ref().copied().unwrap_or_else(|_| facts.at_least());
        Verdict {
            inputs: inputs(facts, rule.and(severity.as_ref().ok())),
            at_least: facts.at_least(),
            advised: rule.is_none_or(|rule| severity.is_err() || rule.on_advice)
                && facts.advised(decided),
            severity,
            rule: rule.map(|rule| rule.name.clone()).unwrap_or_default(),
            policy: self.name.clone(),
            policy_version: self.version,
            message,
            lasts,
        }
    }
}

impl Compiled {
    fn new(place: usize, rule: &Rule, constants: &mut Constants) -> Result<Self, Vec<RuleError>> {
        let mut errors = Vec::new();
        if let Err(message) = check_name(&rule.name) {
            errors.push(error(place, "name", message));
        }
        let len = rule.description.len();
        if DESCRIPTION_LEN_MAX < len {
            let message = format!("is {len} bytes long; at most {DESCRIPTION_LEN_MAX} are allowed");
            errors.push(error(place, "description", message));
        }
        let lasts = rule.lasting().map_err(|message| errors.push(error(place, "lasts", message)));
        let (mut reach, mut uncountable) = (None, None);
        let condition = Expression::compile(&LANGUAGE, &rule.condition, |tree| {
            reach = Some(Traits::of_condition(tree));
            uncountable = prepare::uncountable(tree);
            prepare::prepare(tree, constants)
        });
        let condition = condition.map_err(|Flaw { place: at, message }| {
            let (line, column) = at.unzip();
            errors.push(RuleError { line, column, ..error(place, "condition", message) });
        });
        match (lasts, condition, reach) {
            (Ok(lasts), Ok(condition), Some(reach)) if errors.is_empty() => Ok(Self {
                name: rule.name.clone(),
                description: rule.description.clone(),
                priority: rule.priority,
                result: rule.result,
                lasts,
                on_advice: rule.condition.contains("recovery"),
                uncountable,
                condition,
                reach,
            }),
            _ => Err(errors),
        }
    }
}

/// A name is one word that people and programs compare: the reason of a node's health.
fn check_name(name: &str) -> Result<(), String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    if name.is_empty() {
        return Err("a rule needs a name".to_owned());
    }
    if name.len() <= RULE_NAME_LEN_MAX && name.chars().all(is_part) {
        return Ok(());
    }
    Err(format!(
        "a name is one word of at most {RULE_NAME_LEN_MAX} letters, digits, dots, slashes, hyphens \
         and underscores"
    ))
}

fn error(place: usize, member: &str, message: String) -> RuleError {
    RuleError { field: format!("rules[{place}].{member}"), line: None, column: None, message }
}

fn too_dear(steps: u64) -> String {
    format!("would take up to {steps} steps; a judgement may take {JUDGEMENT_COST_MAX}")
}

/// What the rule's author said about it, or else the catalogue, with the code it is about: whoever reads a
/// cordon's reason wants to know which one.
fn said(facts: &Facts<'_>, description: &str) -> String {
    let xid = facts.xid.as_ref().map(|code| ("Xid", code));
    let Some((noun, code)) = xid.or_else(|| facts.sxid.as_ref().map(|code| ("SXid", code))) else {
        return description.to_owned();
    };
    let said = match code.row {
        _ if !description.is_empty() => description,
        Some(row) => row.meaning.as_str(),
        None => "the catalogue does not know it",
    };
    format!("{noun} {}: {said}", code.number)
}

/// What spoke for and against: every opinion, and where they disagree with each other and with what was
/// decided.
fn inputs(facts: &Facts<'_>, decided: Option<&Severity>) -> Vec<String> {
    let opinions: Vec<Opinion> = facts.opinions().collect();
    let mut inputs: Vec<String> = Vec::new();
    if let [first, second, ..] = opinions.as_slice()
        && first.severity != second.severity
    {
        let says = |opinion: &Opinion| format!("{} says {}", opinion.who, word(opinion.severity));
        inputs.push(format!("they disagree: {}, {}", says(first), says(second)));
    }
    if let (Some(decided), Some(best)) = (decided, opinions.first())
        && *decided != best.severity
    {
        let (rule, theirs) = (word(*decided), word(best.severity));
        inputs.push(format!("the rule says {rule} where {} says {theirs}", best.who));
    }
    opinions.into_iter().map(|opinion| opinion.says).chain(inputs).collect()
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Healthy => "healthy",
        Severity::Degraded => "degraded",
        Severity::Unhealthy => "unhealthy",
    }
}

#[cfg(test)]
mod tests;
