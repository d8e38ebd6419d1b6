//! Health policies as people keep them in files: our format, and Navarch's as it is.
//!
//! Everything that is wrong is said at once, with its line and column in the file: also what is wrong
//! inside the text of a condition.

mod case;

mod tree;

use crate::failure::Failure;
use crate::output::clean;
use argosy_core::health::Severity;
use argosy_core::name::Name;
use argosy_core::nearest::nearest;
use argosy_core::policy::{DEFAULT_POLICY, PolicySpec, Rule};
use argosy_policy::{HealthPolicy, RuleError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use tree::{Node, Place, Tree};

pub(crate) use case::{Case, cases, event, xid};

/// The longest file that is read. A policy has at most 64 rules of at most 4 KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A policy as a file says it.
#[derive(Debug)]
pub(crate) struct PolicyFile {
    /// What it is called, if the file says so.
    pub(crate) name: Option<String>,
    /// The policy.
    pub(crate) spec: PolicySpec,
    /// What is expected of it.
    pub(crate) cases: Vec<Case>,
    /// What was not understood and does not matter, in a file of Navarch's: `FILE:12:3: …`.
    pub(crate) warnings: Vec<String>,
    source: Source,
    /// Where the texts of `rules[3].condition` and its like stand, and what they say.
    places: BTreeMap<String, (Place, String)>,
}

/// A text, and what to call it.
#[derive(Debug)]
struct Source {
    name: String,
    text: String,
}

/// What our files may hold.
const KEYS: [&str; 6] = ["kind", "name", "description", "pools", "rules", "tests"];
/// What `policy get -o yaml` prints beyond that; the server sets it.
const SERVER_KEYS: [&str; 7] =
    ["href", "version", "created_at", "created_by", "updated_at", "updated_by", "revision"];
/// What files of Navarch's hold.
const NAVARCH_KEYS: [&str; 5] = ["version", "metadata", "rules", "pools", "tests"];
const RULE_KEYS: [&str; 6] = ["name", "description", "priority", "condition", "result", "lasts"];
const METADATA_KEYS: [&str; 2] = ["name", "description"];

impl PolicyFile {
    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    /// Everything that is wrong with it as a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            Some(_) | None => path.display().to_string(),
        };
        Self::parse(&name, content(path)?)
    }

    /// Reads a text; complaints call it `name`.
    ///
    /// # Errors
    /// Everything that is wrong with it as a file.
    pub(crate) fn parse(name: &str, text: String) -> Result<Self, Failure> {
        let source = Source { name: clean(name), text };
        let root = source.tree()?;
        let mut reader = Reader::new(&source);
        let read = reader.policy(&root);
        let Reader { complaints, warnings, places, .. } = reader;
        let read = read.filter(|_| complaints.is_empty());
        let Some((policy_name, spec, cases)) = read else {
            let failure = Failure::usage(format!("{} is not a policy", source.name));
            return Err(complaints.into_iter().fold(failure, Failure::why));
        };
        Ok(Self { name: policy_name, spec, cases, warnings, source, places })
    }

    /// Compiles the policy under a name.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place in the file.
    pub(crate) fn compile(&self, name: &str) -> Result<HealthPolicy, Failure> {
        let mut complaints = match Name::parse(name) {
            Ok(name) => self.spec.check(&name),
            Err(error) => vec![error],
        }
        .into_iter()
        .map(|error| format!("{}: {}: {}", self.source.name, error.field, clean(&error.message)))
        .collect::<Vec<_>>();
        match HealthPolicy::compile(name, 0, &self.spec) {
            Ok(policy) if complaints.is_empty() => return Ok(policy),
            Ok(_) => {}
            Err(errors) => complaints.extend(errors.iter().map(|error| self.line(error))),
        }
        let failure = Failure::usage(format!("{} is not a policy", self.source.name));
        Err(complaints.into_iter().fold(failure, Failure::why))
    }

    /// What it is called: by the command line, or else by the file, or else the default.
    pub(crate) fn named<'a>(&'a self, asked: Option<&'a str>) -> &'a str {
        asked.or(self.name.as_deref()).unwrap_or(DEFAULT_POLICY)
    }

    /// A complaint about a rule, with its place in the file.
    pub(crate) fn line(&self, error: &RuleError) -> String {
        let RuleError { field, line, column, message } = error;
        let place = self.places.get(field).map(|(place, text)| match (line, column) {
            (Some(line), Some(column)) => self.source.inside(*place, text, *line, *column),
            _ => *place,
        });
        let message = clean(message);
        match place {
            Some(Place { line, column }) => {
                format!("{}:{line}:{column}: {field}: {message}", self.source.name)
            }
            None => format!("{}: {field}: {message}", self.source.name),
        }
    }
}

fn content(path: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::usage(format!("cannot read {}", path.display())).why(error)
    };
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    } else {
        let open = std::fs::File::open(path).map_err(unreadable)?;
        open.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    }
    if u64::try_from(text.len()).is_ok_and(|length| length <= FILE_BYTES_MAX) {
        return Ok(text);
    }
    Err(Failure::usage(format!("{} is longer than {FILE_BYTES_MAX} bytes", path.display())))
}

impl Source {
    fn tree(&self) -> Result<Node, Failure> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            with_snippet: false,
            merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        };
        serde_saphyr::from_str_with_options(&self.text, options).map_err(|error| {
            let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column()));
            let place = place.unwrap_or_default();
            Failure::usage(format!("{}{place}: this is neither YAML nor JSON", self.name))
                .why(clean(&error.without_snippet().to_string()))
        })
    }

    /// The place in the file of a line and column in a text that begins at `start`. Where the text does
    /// not stand in the file as it is (folded, or with escapes), its beginning.
    fn inside(&self, start: Place, text: &str, line: usize, column: usize) -> Place {
        let skipped = text.chars().take_while(|c| *c == '\n').count();
        let Some(below) = line.checked_sub(1 + skipped) else { return start };
        let found = text.lines().nth(line - 1).and_then(|line| {
            let shown = self.text.lines().nth((start.line - 1).checked_add(below)?)?;
            let at = shown.find(line)?;
            Some(shown.get(..at)?.chars().count())
        });
        match found {
            Some(before) => Place { line: start.line + below, column: before + column },
            None => start,
        }
    }
}

/// Reads a tree, and keeps what it complains about.
struct Reader<'a> {
    source: &'a Source,
    complaints: Vec<String>,
    warnings: Vec<String>,
    places: BTreeMap<String, (Place, String)>,
    /// Whether an unknown key is only a warning.
    navarch: bool,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source) -> Self {
        let (complaints, warnings) = (Vec::new(), Vec::new());
        Self { source, complaints, warnings, places: BTreeMap::new(), navarch: false }
    }

    fn complain(&mut self, at: Place, message: impl std::fmt::Display) {
        let Place { line, column } = at;
        self.complaints.push(format!("{}:{line}:{column}: {message}", self.source.name));
    }

    fn policy(&mut self, root: &Node) -> Option<(Option<String>, PolicySpec, Vec<Case>)> {
        let Tree::Map(members) = &root.tree else {
            self.complain(root.at, "a policy is a map with rules");
            return None;
        };
        let has = |wanted: &str| members.iter().any(|(key, ..)| key == wanted);
        self.navarch = has("metadata") || has("version") && !has("kind");
        let (mut name, mut spec, mut cases) = (None, PolicySpec::default(), Vec::new());
        let mut rules = None;
        for (key, at, value) in members {
            match key.as_str() {
                "kind" => {
                    if self.text("kind", value).is_some_and(|kind| kind != "Policy") {
                        self.complain(value.at, "kind must be Policy");
                    }
                }
                "name" if !self.navarch => name = self.text("name", value),
                "description" if !self.navarch => {
                    spec.description = self.text("description", value).unwrap_or_default();
                }
                "metadata" if self.navarch => {
                    for (key, at, value) in self.map("metadata", value) {
                        match key.as_str() {
                            "name" => name = self.text("metadata.name", value),
                            "description" => {
                                let text = self.text("metadata.description", value);
                                spec.description = text.unwrap_or_default();
                            }
                            _ => self.unknown(key, *at, &METADATA_KEYS),
                        }
                    }
                }
                "pools" => {
                    for pool in self.list("pools", value) {
                        spec.pools.extend(self.text("pools", pool));
                    }
                }
                "rules" => rules = Some(value),
                "tests" => cases = self.cases(value),
                key if SERVER_KEYS.contains(&key) => {}
                _ => self.unknown(key, *at, if self.navarch { &NAVARCH_KEYS } else { &KEYS }),
            }
        }
        match rules {
            Some(rules) => spec.rules = self.rules(rules),
            None => self.complain(root.at, "rules are missing"),
        }
        // Navarch has one policy, whatever its file calls it; only for pools does it need a name.
        let name = name.filter(|_| !self.navarch || !spec.pools.is_empty());
        Some((name, spec, cases))
    }

    fn rules(&mut self, value: &Node) -> Vec<Rule> {
        let nodes = self.list("rules", value);
        let rules = nodes.iter().enumerate().map(|(place, node)| self.rule(place, node));
        rules.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn rule(&mut self, place: usize, node: &Node) -> Option<Rule> {
        let field = |member: &str| format!("rules[{place}].{member}");
        let Tree::Map(members) = &node.tree else {
            let noun = node.tree.noun();
            self.complain(node.at, format!("rules[{place}] must be a map, not {noun}"));
            return None;
        };
        let (mut name, mut condition, mut result) = (None, None, None);
        let (mut description, mut priority, mut lasts) = (None, None, None);
        for (key, at, value) in members {
            let field = field(key);
            match key.as_str() {
                "name" => name = self.text(&field, value),
                "description" => description = self.text(&field, value),
                "condition" => condition = self.text(&field, value),
                "lasts" => lasts = self.text(&field, value),
                "priority" => priority = self.number(&field, value),
                "result" => result = self.severity(&field, value),
                _ => self.unknown(key, *at, &RULE_KEYS),
            }
        }
        let given = |key: &str| members.iter().any(|(given, ..)| given == key);
        for required in ["name", "condition", "result"] {
            if !given(required) {
                self.complain(node.at, format!("{} is missing", field(required)));
            }
        }
        Some(Rule {
            name: name?,
            description: description.unwrap_or_default(),
            priority: priority.unwrap_or_default(),
            condition: condition?,
            result: result?,
            lasts,
        })
    }

    fn severity(&mut self, field: &str, value: &Node) -> Option<Severity> {
        let word = self.text(field, value)?;
        let severity = case::severity(&word);
        if severity.is_none() {
            let word = clean(&word);
            let message = match nearest(&word, case::SEVERITIES) {
                Some(near) => format!("{field}: unknown result `{word}`; did you mean `{near}`?"),
                None => format!(
                    "{field}: unknown result `{word}`; it is healthy, degraded or unhealthy"
                ),
            };
            self.complain(value.at, message);
        }
        severity
    }

    fn number(&mut self, field: &str, value: &Node) -> Option<i32> {
        let number = match &value.tree {
            Tree::Scalar(Value::Number(number)) => number.as_i64(),
            Tree::Scalar(_) | Tree::Map(_) | Tree::List(_) => None,
        };
        let number = number.and_then(|number| i32::try_from(number).ok());
        if number.is_none() {
            self.complain(value.at, format!("{field} must be a whole number"));
        }
        number
    }

    /// Text; what looks like a boolean or a number is text, too, where text is wanted.
    fn text(&mut self, field: &str, value: &Node) -> Option<String> {
        let text = match &value.tree {
            Tree::Scalar(Value::String(text)) => text.clone(),
            Tree::Scalar(plain @ (Value::Bool(_) | Value::Number(_))) => plain.to_string(),
            Tree::Scalar(Value::Null | Value::Array(_) | Value::Object(_))
            | Tree::Map(_)
            | Tree::List(_) => {
                let noun = value.tree.noun();
                self.complain(value.at, format!("{field} must be text, not {noun}"));
                return None;
            }
        };
        self.places.insert(field.to_owned(), (value.at, text.clone()));
        Some(text)
    }

    fn list<'n>(&mut self, field: &str, value: &'n Node) -> &'n [Node] {
        match &value.tree {
            Tree::List(items) => items,
            other @ (Tree::Map(_) | Tree::Scalar(_)) => {
                self.complain(value.at, format!("{field} must be a list, not {}", other.noun()));
                &[]
            }
        }
    }

    fn map<'n>(&mut self, field: &str, value: &'n Node) -> &'n [(String, Place, Node)] {
        match &value.tree {
            Tree::Map(members) => members,
            other @ (Tree::List(_) | Tree::Scalar(_)) => {
                self.complain(value.at, format!("{field} must be a map, not {}", other.noun()));
                &[]
            }
        }
    }

    fn unknown(&mut self, key: &str, at: Place, known: &[&str]) {
        let shown = clean(key);
        let hint = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here are {}", known.join(", ")),
        };
        if self.navarch {
            let Place { line, column } = at;
            let name = &self.source.name;
            let message = format!("{name}:{line}:{column}: the key `{shown}` is ignored; {hint}");
            self.warnings.push(message);
        } else {
            self.complain(at, format!("unknown key `{shown}`; {hint}"));
        }
    }
}

#[cfg(test)]
mod tests;
