//! Conditions that operators derive from a resource and its reports, by rules in CEL.

use crate::expression::{Expression, Flaw};
use crate::facts::facts;
use crate::language::Language;
use crate::limits::Size;
use argosy_core::adapter::Tri;
use argosy_core::resource::Resource;
use cel::{Context, Value};
use serde::Deserialize;
use std::fmt;

/// A rule as it stands in a configuration: a type, and CEL over `resource` and `statuses`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionRuleText {
    /// The type of the condition it makes: a word like `Backed`, unique and not one of ours.
    #[serde(rename = "type")]
    pub kind: String,
    /// A boolean: whether the condition is there at all.
    pub when: String,
    /// A boolean, or the word `True` or `False` in any case.
    pub status: String,
    /// Text: one word.
    pub reason: String,
    /// Text: a sentence for people.
    pub message: String,
}

/// A compiled rule.
#[derive(Debug)]
pub struct ConditionRule {
    kind: String,
    when: Expression,
    status: Expression,
    reason: Expression,
    message: Expression,
}

/// A condition a rule made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedCondition {
    /// Its type.
    pub kind: String,
    /// Unknown if the rule failed.
    pub status: Tri,
    /// `PolicyError` if the rule failed.
    pub reason: String,
    /// What went wrong, if the rule failed.
    pub message: String,
}

/// What is wrong with the text of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("condition rule `{rule}`, {part}{}: {message}", place(*.line, *.column))]
pub struct PolicyError {
    /// The rule's type.
    pub rule: String,
    /// Which of its texts.
    pub part: Part,
    /// Counted from 1, where one place is to blame.
    pub line: Option<usize>,
    /// Counted from 1, in characters.
    pub column: Option<usize>,
    /// What is wrong and what would be right.
    pub message: String,
}

/// One text of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The condition's type.
    Kind,
    /// Whether the condition is there at all.
    When,
    /// Whether it holds.
    Status,
    /// Its reason.
    Reason,
    /// Its message.
    Message,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Kind => "type",
            Part::When => "when",
            Part::Status => "status",
            Part::Reason => "reason",
            Part::Message => "message",
        })
    }
}

fn place(line: Option<usize>, column: Option<usize>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(" at {line}:{column}"),
        _ => String::new(),
    }
}

/// What condition rules are written in.
const LANGUAGE: Language =
    Language { variables: &["resource", "statuses"], functions: &[("dig", 1)] };

/// The rules of one kind of resource.
#[derive(Debug, Default)]
pub struct ConditionRules {
    /// By type.
    rules: Vec<ConditionRule>,
}

/// Types that are ours; so is everything that ends in `Successful`, which adapters' conditions do.
const RESERVED: [&str; 5] =
    ["Reconciled", "LastKnownReconciled", "Healthy", "Stalled", "EventRejected"];
const KIND_LEN_MAX: usize = 100;
/// A reason is a word that programs compare; one that does not fit is not one.
const REASON_BYTES_MAX: usize = 256;
/// A message is for people, who can do with its beginning.
const MESSAGE_BYTES_MAX: usize = 2048;

impl ConditionRules {
    /// Compiles the rules of one kind of resource.
    ///
    /// # Errors
    /// Everything that is wrong: one error for each text of each rule, and for a type given twice.
    pub fn compile(texts: &[ConditionRuleText]) -> Result<Self, Vec<PolicyError>> {
        let mut rules: Vec<ConditionRule> = Vec::with_capacity(texts.len());
        let mut errors = Vec::new();
        for text in texts {
            match ConditionRule::compile(text) {
                Ok(rule) if rules.iter().any(|other| other.kind == rule.kind) => {
                    errors.push(bad_kind(&rule.kind, "another rule makes this condition"));
                }
                Ok(rule) => rules.push(rule),
                Err(of_rule) => errors.extend(of_rule),
            }
        }
        rules.sort_by(|a, b| a.kind.cmp(&b.kind));
        if errors.is_empty() { Ok(Self { rules }) } else { Err(errors) }
    }

    /// The conditions of a resource, by type. A rule that fails makes its condition Unknown with the
    /// reason `PolicyError`; the others are not touched by it.
    pub fn evaluate(&self, of: &Resource) -> Vec<MappedCondition> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let (facts, size) = facts(of);
        self.rules.iter().filter_map(|rule| rule.evaluate(&facts, size)).collect()
    }
}

impl ConditionRule {
    /// Compiles one rule.
    ///
    /// # Errors
    /// One error for each of its texts that is wrong.
    pub fn compile(text: &ConditionRuleText) -> Result<Self, Vec<PolicyError>> {
        let ConditionRuleText { kind, when, status, reason, message } = text;
        let checked = check_kind(kind);
        let compile = |part, text: &str| {
            Expression::compile(&LANGUAGE, text, |_| Ok(())).map_err(|Flaw { place, message }| {
                let (line, column) = place.unzip();
                PolicyError { rule: kind.clone(), part, line, column, message }
            })
        };
        let when = compile(Part::When, when);
        let status = compile(Part::Status, status);
        let reason = compile(Part::Reason, reason);
        let message = compile(Part::Message, message);
        match (checked, when, status, reason, message) {
            (Ok(()), Ok(when), Ok(status), Ok(reason), Ok(message)) => {
                Ok(Self { kind: kind.clone(), when, status, reason, message })
            }
            (checked, when, status, reason, message) => {
                let errors = [when.err(), status.err(), reason.err(), message.err()];
                Err(checked.err().into_iter().chain(errors.into_iter().flatten()).collect())
            }
        }
    }

    fn evaluate(&self, facts: &Context<'_, '_>, size: Size) -> Option<MappedCondition> {
        self.try_evaluate(facts, size).unwrap_or_else(|(part, message)| {
            Some(MappedCondition {
                kind: self.kind.clone(),
                status: Tri::Unknown,
                reason: "PolicyError".to_owned(),
                message: cut(format!("{part}: {message}")),
            })
        })
    }

    fn try_evaluate(
        &self,
        facts: &Context<'_, '_>,
        size: Size,
    ) -> Result<Option<MappedCondition>, (Part, String)> {
        let answer = |part, expression: &Expression| {
            expression.evaluate(facts, size).map_err(|message| (part, message))
        };
        let when = answer(Part::When, &self.when)?;
        let Value::Bool(when) = when else { return Err(wrong(Part::When, "a boolean", &when)) };
        if !when {
            return Ok(None);
        }
        let status = answer(Part::Status, &self.status)?;
        let status =
            to_tri(&status).ok_or_else(|| wrong(Part::Status, "True or False", &status))?;
        let reason = text(Part::Reason, answer(Part::Reason, &self.reason)?)?;
        if REASON_BYTES_MAX < reason.len() {
            let len = reason.len();
            let message = format!("is {len} bytes long; at most {REASON_BYTES_MAX} are allowed");
            return Err((Part::Reason, message));
        }
        let message = cut(text(Part::Message, answer(Part::Message, &self.message)?)?);
        Ok(Some(MappedCondition { kind: self.kind.clone(), status, reason, message }))
    }
}

fn check_kind(kind: &str) -> Result<(), PolicyError> {
    let well_formed = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.bytes().all(|b| b.is_ascii_alphanumeric())
        && kind.len() <= KIND_LEN_MAX;
    if !well_formed {
        let message = "a type starts with a capital, holds letters and digits, and has at most 100";
        return Err(bad_kind(kind, message));
    }
    if RESERVED.contains(&kind) || kind.ends_with("Successful") {
        return Err(bad_kind(kind, "this type is taken by a condition that is always made"));
    }
    Ok(())
}

fn bad_kind(kind: &str, message: &str) -> PolicyError {
    PolicyError {
        rule: kind.chars().take(KIND_LEN_MAX).collect(),
        part: Part::Kind,
        line: None,
        column: None,
        message: message.to_owned(),
    }
}

fn to_tri(value: &Value) -> Option<Tri> {
    let holds = if let Value::Bool(holds) = value {
        *holds
    } else if let Value::String(word) = value {
        word.to_ascii_lowercase().parse().ok()?
    } else {
        return None;
    };
    Some(if holds { Tri::True } else { Tri::False })
}

fn text(part: Part, value: Value) -> Result<String, (Part, String)> {
    if let Value::String(text) = value {
        Ok(text.as_ref().clone())
    } else {
        Err(wrong(part, "text", &value))
    }
}

fn wrong(part: Part, wanted: &str, value: &Value) -> (Part, String) {
    (part, format!("must be {wanted}, and is of type {}", value.type_of()))
}

fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    message
}

#[cfg(test)]
mod tests;
