//! Events in files and on the command line, and what a policy is expected to say of them.

use super::{Node, Place, Reader, Source, Tree, content};
use crate::failure::Failure;
use crate::output::clean;
use argosy_core::health::{Event, EventType, Metric, Severity, System, sight};
use argosy_core::label::Labels;
use argosy_core::nearest::nearest;
use argosy_core::node::{Gpu, Node as Machine};
use argosy_core::recovery::RecoveryAction;
use argosy_core::span;
use argosy_policy::{HealthPolicy, Judged};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The words for how bad something is.
pub(super) const SEVERITIES: [&str; 3] = ["healthy", "degraded", "unhealthy"];

pub(super) fn severity(word: &str) -> Option<Severity> {
    match word {
        "healthy" => Some(Severity::Healthy),
        "degraded" => Some(Severity::Degraded),
        "unhealthy" => Some(Severity::Unhealthy),
        _ => None,
    }
}

/// One test of a policy: what happened, where, after what, and what it should say.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What is tested.
    pub(crate) name: String,
    event: Event,
    node: Machine,
    /// What happened before, and how long before, the oldest first.
    before: Vec<(SignedDuration, Event)>,
    expected: Expected,
}

/// What a policy should say.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    /// `None`: the rule should fail.
    severity: Option<Severity>,
    rule: Option<String>,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.severity {
            Some(Severity::Healthy) => "healthy",
            Some(Severity::Degraded) => "degraded",
            Some(Severity::Unhealthy) => "unhealthy",
            None => "error",
        })?;
        match &self.rule {
            Some(rule) => write!(f, " by {rule}"),
            None => Ok(()),
        }
    }
}

impl Case {
    /// Where it happens.
    #[cfg(test)]
    pub(super) fn node(&self) -> &Machine {
        &self.node
    }

    /// Asks a policy.
    ///
    /// # Errors
    /// What was expected, and what it says instead.
    pub(crate) fn run(&self, policy: &HealthPolicy) -> Result<(), String> {
        // Any time will do: only what lies between events counts.
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365);
        let mut node = self.node.clone();
        for (ago, event) in &self.before {
            sight(&mut node, event, now - *ago);
        }
        let asked = Judged { event: &self.event, node: &node, elsewhere: &[], now };
        let verdict = policy.judge(&asked);
        let said = Expected {
            severity: verdict.severity.as_ref().ok().copied(),
            rule: self.expected.rule.as_ref().map(|_| verdict.rule.clone()),
        };
        if said == self.expected {
            return Ok(());
        }
        let said = Expected { rule: Some(verdict.rule.clone()).filter(|r| !r.is_empty()), ..said };
        let error = verdict.severity.err().map(|error| format!(" ({error})")).unwrap_or_default();
        Err(clean(&format!("expected {}, and is {said}{error}", self.expected)))
    }
}

/// The cases of a file that holds nothing else.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn cases(path: &Path) -> Result<Vec<Case>, Failure> {
    let source = Source { name: clean(&path.display().to_string()), text: content(path)? };
    let root = source.tree()?;
    let mut reader = Reader::new(&source);
    let mut cases = None;
    for (key, at, value) in reader.map("the file", &root) {
        match key.as_str() {
            "tests" => cases = Some(reader.cases(value)),
            _ => reader.unknown(key, *at, &["tests"]),
        }
    }
    if cases.is_none() {
        reader.complain(root.at, "tests are missing");
    }
    if reader.complaints.is_empty() {
        return Ok(cases.unwrap_or_default());
    }
    let failure = Failure::usage(format!("{} holds no cases", source.name));
    Err(reader.complaints.into_iter().fold(failure, Failure::why))
}

/// An event in JSON or YAML, from the command line.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn event(text: &str) -> Result<Event, Failure> {
    let source = Source { name: "--event".to_owned(), text: text.to_owned() };
    let node = source.tree()?;
    let mut reader = Reader::new(&source);
    let event = reader.event("event", &node);
    match event.filter(|_| reader.complaints.is_empty()) {
        Some(event) => Ok(event),
        None => {
            let failure = Failure::usage("--event is not an event");
            Err(reader.complaints.into_iter().fold(failure, Failure::why))
        }
    }
}

/// An Xid on the first GPU.
pub(crate) fn xid(code: u32) -> Event {
    let metrics = BTreeMap::from([("xid_code".to_owned(), Metric::Int(code.into()))]);
    Event { event_type: EventType::Xid, system: System::Driver, metrics, ..nothing() }
}

fn nothing() -> Event {
    Event {
        node_time: None,
        gpu_index: 0,
        gpu_uuid: String::new(),
        gpu_serial: String::new(),
        system: System::Unknown,
        event_type: EventType::Unknown,
        metrics: BTreeMap::new(),
        message: String::new(),
        raw: String::new(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    }
}

const CASE_KEYS: [&str; 6] = ["name", "event", "xid", "node", "before", "expect"];
const EVENT_KEYS: [&str; 12] = [
    "event_type",
    "system",
    "gpu_index",
    "gpu_uuid",
    "gpu_serial",
    "metrics",
    "message",
    "raw",
    "recovery_action",
    "count",
    "timestamp",
    "node_time",
];

impl Reader<'_> {
    pub(super) fn cases(&mut self, value: &Node) -> Vec<Case> {
        let nodes = self.list("tests", value);
        let cases = nodes.iter().enumerate().map(|(place, node)| self.case(place, node));
        cases.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn case(&mut self, place: usize, node: &Node) -> Option<Case> {
        let field = |member: &str| format!("tests[{place}].{member}");
        let (mut name, mut event, mut expected) = (None, None, None);
        let (mut machine, mut before) = (Map::new(), Vec::new());
        let members = self.map(&format!("tests[{place}]"), node);
        for (key, at, value) in members {
            let field = field(key);
            match key.as_str() {
                "name" => name = self.text(&field, value),
                "event" => event = self.event(&field, value),
                "xid" => event = self.xid(&field, value),
                "node" => machine = self.machine(&field, value),
                "before" => before = self.before(&field, value),
                "expect" => expected = self.expected(&field, value),
                _ => self.unknown(key, *at, &CASE_KEYS),
            }
        }
        let given = |key: &str| members.iter().any(|(given, ..)| given == key);
        if !given("expect") {
            self.complain(node.at, format!("{} is missing", field("expect")));
        }
        if !given("event") && !given("xid") {
            self.complain(node.at, format!("{} is missing", field("event")));
        }
        let event = event?;
        let events = before.iter().map(|(_, event)| event).chain([&event]);
        let node = machine_of(machine, events)
            .map_err(|error| self.complain(node.at, format!("{}: {error}", field("node"))))
            .ok()?;
        let name = name.unwrap_or_else(|| format!("test {}", place + 1));
        Some(Case { name, event, node, before, expected: expected? })
    }

    fn expected(&mut self, field: &str, value: &Node) -> Option<Expected> {
        let word = |reader: &mut Self, value: &Node| {
            let word = reader.text(field, value)?;
            if word == "error" {
                return Some(None);
            }
            let severity = severity(&word);
            if severity.is_none() {
                let message = "must be healthy, degraded, unhealthy or error";
                reader.complain(value.at, format!("{field} {message}"));
            }
            severity.map(Some)
        };
        let Tree::Map(members) = &value.tree else {
            return Some(Expected { severity: word(self, value)?, rule: None });
        };
        let (mut severity, mut rule) = (None, None);
        for (key, at, value) in members {
            match key.as_str() {
                "result" => severity = word(self, value),
                "rule" => rule = self.text(&format!("{field}.rule"), value),
                _ => self.unknown(key, *at, &["result", "rule"]),
            }
        }
        if !members.iter().any(|(key, ..)| key == "result") {
            self.complain(value.at, format!("{field}.result is missing"));
        }
        Some(Expected { severity: severity?, rule })
    }

    /// `{ago: 2h, xid: 31}`, a list of them, in any order.
    fn before(&mut self, field: &str, value: &Node) -> Vec<(SignedDuration, Event)> {
        let mut found = Vec::new();
        for (place, node) in self.list(field, value).iter().enumerate() {
            let field = format!("{field}[{place}]");
            let (mut ago, mut event) = (None, None);
            for (key, at, value) in self.map(&field, node) {
                match key.as_str() {
                    "ago" => {
                        let text = self.text(&format!("{field}.ago"), value).unwrap_or_default();
                        match span::parse(&text) {
                            Ok(length) => ago = Some(length),
                            Err(error) => self.complain(value.at, format!("{field}.ago: {error}")),
                        }
                    }
                    "event" => event = self.event(&format!("{field}.event"), value),
                    "xid" => event = self.xid(&format!("{field}.xid"), value),
                    _ => self.unknown(key, *at, &["ago", "event", "xid"]),
                }
            }
            match (ago, event) {
                (Some(ago), Some(event)) => found.push((ago, event)),
                _ => self.complain(node.at, format!("{field} needs ago, and event or xid")),
            }
        }
        found.sort_by_key(|(ago, _)| std::cmp::Reverse(*ago));
        found
    }

    fn xid(&mut self, field: &str, value: &Node) -> Option<Event> {
        let code = self.number(field, value)?;
        let code = u32::try_from(code).ok();
        if code.is_none() {
            self.complain(value.at, format!("{field} must not be negative"));
        }
        code.map(xid)
    }

    pub(super) fn event(&mut self, field: &str, value: &Node) -> Option<Event> {
        let mut event = nothing();
        let Tree::Map(members) = &value.tree else {
            self.complain(value.at, format!("{field} must be a map, not {}", value.tree.noun()));
            return None;
        };
        for (key, at, value) in members {
            let field = format!("{field}.{key}");
            match key.as_str() {
                "event_type" => {
                    let words = EventType::ALL.iter().map(|kind| (kind.as_str(), *kind));
                    event.event_type = self.word(&field, value, words)?;
                }
                "system" => {
                    let words = System::ALL.iter().map(|system| (system.as_str(), *system));
                    event.system = self.word(&field, value, words)?;
                }
                "gpu_index" => event.gpu_index = self.number(&field, value)?,
                "gpu_uuid" => event.gpu_uuid = self.text(&field, value)?,
                "gpu_serial" => event.gpu_serial = self.text(&field, value)?,
                "message" => event.message = self.text(&field, value)?,
                "raw" => event.raw = self.text(&field, value)?,
                "metrics" => event.metrics = self.metrics(&field, value),
                "recovery_action" => event.recovery_action = Some(self.action(&field, value)?),
                "count" => {
                    let count = self.number(&field, value)?;
                    event.count = u32::try_from(count).unwrap_or_default().max(1);
                }
                "timestamp" | "node_time" => {
                    let text = self.text(&field, value)?;
                    match text.parse() {
                        Ok(time) => event.node_time = Some(time),
                        Err(_) => self.complain(
                            value.at,
                            format!("{field} must be a time like 2026-03-01T12:00:00Z"),
                        ),
                    }
                }
                _ => self.unknown_in_event(key, *at),
            }
        }
        let given = |key: &str| members.iter().any(|(given, ..)| given == key);
        if !given("event_type") {
            // Navarch's daemon sends little else.
            if event.metrics.contains_key("xid_code") {
                event.event_type = EventType::Xid;
            } else {
                self.complain(value.at, format!("{field}.event_type is missing"));
                return None;
            }
        }
        Some(event)
    }

    /// An event is what a rule will see, so a key that no rule can see is a mistake in any file.
    fn unknown_in_event(&mut self, key: &str, at: Place) {
        let navarch = std::mem::take(&mut self.navarch);
        self.unknown(key, at, &EVENT_KEYS);
        self.navarch = navarch;
    }

    fn metrics(&mut self, field: &str, value: &Node) -> BTreeMap<String, Metric> {
        let mut metrics = BTreeMap::new();
        for (name, _, value) in self.map(field, value) {
            let metric = match &value.tree {
                Tree::Scalar(Value::Bool(value)) => Some(Metric::Bool(*value)),
                Tree::Scalar(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                    (Some(whole), _) => Some(Metric::Int(whole)),
                    (None, Some(float)) if float.is_finite() => Some(Metric::Float(float)),
                    (None, _) => None,
                },
                Tree::Scalar(Value::String(text)) => Some(Metric::Text(text.clone())),
                Tree::Scalar(Value::Null | Value::Array(_) | Value::Object(_))
                | Tree::Map(_)
                | Tree::List(_) => None,
            };
            match metric {
                Some(metric) => _ = metrics.insert(name.clone(), metric),
                None => {
                    let name = clean(name);
                    let message = format!("{field}.{name} must be a number, a boolean or text");
                    self.complain(value.at, message);
                }
            }
        }
        metrics
    }

    fn action(&mut self, field: &str, value: &Node) -> Option<u32> {
        if let Tree::Scalar(Value::Number(_)) = &value.tree {
            return self.number(field, value).and_then(|number| u32::try_from(number).ok());
        }
        let words = RecoveryAction::ALL.iter().map(|action| (action.as_str(), action.number()));
        self.word(field, value, words)
    }

    fn word<T: Copy>(
        &mut self,
        field: &str,
        value: &Node,
        words: impl Iterator<Item = (&'static str, T)> + Clone,
    ) -> Option<T> {
        let text = self.text(field, value)?;
        if let Some((_, found)) = words.clone().find(|(word, _)| *word == text) {
            return Some(found);
        }
        let (known, shown): (Vec<&str>, String) =
            (words.map(|(word, _)| word).collect(), clean(&text));
        let hint = match nearest(&text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        self.complain(value.at, format!("{field}: unknown word `{shown}`; {hint}"));
        None
    }

    /// What is different about the node of a test.
    fn machine(&mut self, field: &str, value: &Node) -> Map<String, Value> {
        let mut machine = Map::new();
        for (key, at, value) in self.map(field, value) {
            let field = format!("{field}.{key}");
            match key.as_str() {
                "labels" => {
                    let mut labels = Map::new();
                    for (name, _, value) in self.map(&field, value) {
                        let text = self.text(&format!("{field}.{name}"), value);
                        labels.insert(name.clone(), text.into());
                    }
                    machine.insert(key.clone(), Value::Object(labels));
                }
                "id" | "pool" | "provider" | "region" | "zone" | "instance_type" | "agent" => {
                    machine.insert(key.clone(), self.text(&field, value).into());
                }
                _ => {
                    let known = [
                        "id",
                        "pool",
                        "provider",
                        "region",
                        "zone",
                        "instance_type",
                        "agent",
                        "labels",
                    ];
                    self.unknown(key, *at, &known);
                }
            }
        }
        machine
    }
}

/// A node with what a test says about it, and the GPUs that its events name.
fn machine_of<'a>(
    said: Map<String, Value>,
    events: impl Iterator<Item = &'a Event>,
) -> Result<Machine, String> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let at = Timestamp::UNIX_EPOCH;
    let id = if text("id").is_empty() { "test" } else { text("id") };
    let mut node: Machine = serde_json::from_value(json!({
        "id": id, "tenant": "",
        "place": {
            "provider": text("provider"), "region": text("region"),
            "zone": text("zone"), "instance_type": text("instance_type"),
        },
        "machine": { "agent": text("agent") },
        "gpus": [],
        "registered_at": at, "joined_at": at, "liveness": "Fresh", "liveness_since": at,
        "health": { "state": "Healthy", "since": at, "reason": "", "message": "" },
        "duty": "Active",
    }))
    .map_err(|error| error.to_string())?;
    node.pool = said.get("pool").and_then(Value::as_str).map(str::to_owned);
    if let Some(Value::Object(labels)) = said.get("labels") {
        let parsed = Labels::parse(labels);
        node.labels = parsed.map_err(|errors| {
            errors.first().map(|error| error.message.clone()).unwrap_or_default()
        })?;
    }
    for event in events.filter(|event| 0 <= event.gpu_index) {
        if node.gpus.iter().all(|gpu| gpu.index != event.gpu_index) {
            let uuid = match event.gpu_uuid.as_str() {
                "" => format!("GPU-{}", event.gpu_index),
                uuid => uuid.to_owned(),
            };
            let (index, serial) = (event.gpu_index, event.gpu_serial.clone());
            node.gpus.push(Gpu { index, uuid, serial, ..Gpu::default() });
        }
    }
    Ok(node)
}
