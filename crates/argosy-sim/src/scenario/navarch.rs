//! Navarch's scenario files, as they are.
//!
//! What the seed's simulator reads and does not do is done here: zones are zones, the rate has no cap, a count is
//! compared, `network` cuts the network. Where that changes what a file means, a warning says so.

mod chaos;

use super::argosy::names::Names;
use super::argosy::script::{HEALTHS, STATUSES};
use super::argosy::{node_id, pattern};
use super::fleet::{self, Recipe, Template};
use super::tree::{At, Node, Table, Value};
use super::{
    Action, Assertion, DURATION_MAX, Effect, Machines, NODES_MAX, NodeSpec, Place, Reports,
    Scenario, Startup, StartupPattern, Step, TEXT_MAX,
};
use argosy_core::node::GPUS_MAX;
use jiff::SignedDuration;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Keys at the top that only our files have.
const OURS: [&str; 8] =
    ["duration", "trouble", "script", "clusters", "config", "workload", "settle", "processes"];

const ZERO: SignedDuration = SignedDuration::ZERO;
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// What a file of theirs runs for at least: enough to register and be judged once.
const DURATION_LEAST: SignedDuration = SignedDuration::from_secs(30);

/// What their simulator goes by when a stress section gives no length.
const STRESS_DURATION: SignedDuration = SignedDuration::from_mins(10);

/// How long what was ordered last gets. Their files end with their last event.
const SETTLE: SignedDuration = SignedDuration::from_mins(1);

/// How long they wait for a status.
const WAIT: SignedDuration = SignedDuration::from_secs(30);

/// Whether a file is one of theirs.
pub(super) fn is_navarch(root: &Node) -> bool {
    let Value::Table(entries) = &root.value else { return false };
    let has = |key: &str| entries.iter().any(|(name, _, _)| name == key);
    let listed =
        |(key, _, node): &(String, _, Node)| key == "fleet" && matches!(node.value, Value::List(_));
    (has("events") || has("stress") || entries.iter().any(listed))
        && !OURS.iter().any(|key| has(key))
}

/// Reads a whole file.
pub(super) fn scenario(root: &At<'_>) -> Option<Scenario> {
    let table = root.table()?;
    let name = table.need("name", "basic-fleet").and_then(|at| at.line(TEXT_MAX));
    let description = table.get("description").and_then(|at| at.text()).unwrap_or_default();
    let stress_at = table.get("stress");
    let stress = stress_at.as_ref().and_then(|at| at.table());
    let mut scenario = Scenario {
        name: name.unwrap_or_default(),
        summary: description.lines().next().unwrap_or_default().trim().to_owned(),
        description,
        settle: SETTLE,
        // As their simulator has it: quick, and with nobody who takes sick nodes out of service.
        config: json!({"nodes": {
            "heartbeat": "3s",
            "stream_heartbeat": "3s",
            "health_check": "5s",
            "remedy": "observe",
        }}),
        ..Scenario::default()
    };
    scenario.fleet.nodes = table.get("fleet").map(|at| listed_nodes(&at)).unwrap_or_default();
    if let Some(stress) = &stress {
        fleet_gen(stress, &mut scenario);
    }
    if scenario.fleet.nodes.is_empty() {
        root.error("there is no node in it", "write `fleet`, or `stress.fleet_gen`");
    }
    let names = Names::new(&scenario.config, &scenario.machines, DURATION_MAX);
    names.learn(&scenario.fleet.nodes);
    let (script, last) = table
        .get("events")
        .map(|at| events(&at, &names, &scenario, stress.is_some()))
        .unwrap_or_default();
    let starts = script.iter().any(|step| step.action == Action::StartFleet);
    scenario.script = script;
    scenario.fleet.startup.by_itself = stress.is_some();
    if !starts && stress.is_none() {
        root.warn("no event is `start_fleet`, so no node ever starts");
    }
    scenario.duration = (last + SECOND * 5).max(DURATION_LEAST);
    if let Some(stress) = &stress {
        let length = stress.get("duration").and_then(|at| at.span(SECOND, DURATION_MAX));
        scenario.duration = length.unwrap_or(STRESS_DURATION);
        outputs(stress, &mut scenario);
        if let Some(at) = stress.get("chaos") {
            scenario.trouble = chaos::trouble(&at, &names);
        }
    }
    if let Some(stress) = stress {
        stress.end();
    }
    // Who is cut off stays so until somebody mends it, or it ends: faults stop then.
    for step in &mut scenario.script {
        if let Action::Fault(_, Effect::Partition(span)) = &mut step.action {
            *span = (scenario.duration - step.at).max(SECOND);
        }
    }
    let assertions = table.get("assertions").map(|at| at.list()).unwrap_or_default();
    scenario.assertions = assertions
        .iter()
        .filter_map(|at| {
            let table = at.table()?;
            let kind = table.get("type");
            let made = assertion(&table, kind, "expected", &names, stress_at.is_some());
            table.end();
            made
        })
        .collect();
    table.end();
    Some(scenario)
}

/// Where reports go, and how often is measured.
fn outputs(stress: &Table<'_>, scenario: &mut Scenario) {
    scenario.sample_every =
        stress.get("metrics_interval").and_then(|at| at.span(SECOND, DURATION_MAX));
    // Time is ours to make: how fast theirs passes is of no use.
    stress.has("time_scale");
    // To them 0 is any seed.
    let seed = stress.get("seed").and_then(|at| at.whole(0, u64::MAX));
    scenario.seed = seed.filter(|seed| *seed != 0);
    let path = |key| stress.get(key).and_then(|at| at.line(4096));
    scenario.reports = Reports {
        json: path("report_file"),
        html: path("html_report_file"),
        log: path("log_file"),
    };
}

fn line(table: &Table<'_>, key: &'static str) -> String {
    table.get(key).and_then(|at| at.line(TEXT_MAX)).unwrap_or_default()
}

fn listed_nodes(at: &At<'_>) -> Vec<NodeSpec> {
    let mut ids = BTreeSet::new();
    let mut nodes = Vec::new();
    for at in at.list() {
        let Some(table) = at.table() else { continue };
        let id = table.need("id", "node-1").and_then(|at| {
            let id = node_id(&at)?;
            if !ids.insert(id.clone()) {
                at.error(format!("`{id}` is there twice"), "give each node its own id");
            }
            Some(id)
        });
        let (provider, region, zone) =
            (line(&table, "provider"), line(&table, "region"), line(&table, "zone"));
        let node = NodeSpec { provider, region, zone, ..hardware(&table) };
        table.end();
        nodes.extend(id.map(|id| NodeSpec { id, ..node }));
    }
    nodes
}

/// What nodes and templates have in common.
fn hardware(table: &Table<'_>) -> NodeSpec {
    let gpus_max = u32::try_from(GPUS_MAX).unwrap_or(u32::MAX);
    let label = |(key, at): (String, At<'_>)| Some((key, at.text()?));
    NodeSpec {
        instance_type: line(table, "instance_type"),
        gpus: table.get("gpu_count").and_then(|at| at.count(0, gpus_max)).unwrap_or(8),
        gpu_model: table.get("gpu_type").map_or("H100", |at| model(&at)).to_owned(),
        labels: table
            .get("labels")
            .map(|at| at.entries().into_iter().filter_map(label).collect())
            .unwrap_or_default(),
        ..NodeSpec::default()
    }
}

/// `NVIDIA H100 80GB HBM3` is an H100.
fn model(at: &At<'_>) -> &'static str {
    let text = at.text().unwrap_or_default().to_uppercase();
    let found = fleet::MODELS.iter().find(|model| text.contains(*model)).copied();
    found.unwrap_or_else(|| {
        at.warn(format!(
            "no such GPU can be made up; it is played as an H100, not as one of {}",
            fleet::MODELS.join(", ")
        ));
        "H100"
    })
}

fn fleet_gen(stress: &Table<'_>, scenario: &mut Scenario) {
    let Some(at) = stress.get("fleet_gen") else { return };
    let Some(table) = at.table() else { return };
    let nodes = table.need("total_nodes", "1000").and_then(|at| at.count(1, NODES_MAX));
    let mut templates = Vec::new();
    for at in table.need("templates", "[…]").map(|at| at.list()).unwrap_or_default() {
        let Some(of) = at.table() else { continue };
        let name = of.need("name", "h100-8gpu").and_then(|at| node_id(&at));
        let weight = of.need("weight", "60").and_then(|at| at.number(1e-6, 1e9));
        let node = hardware(&of);
        if let Some(price) = of.get("price_per_hour").and_then(|at| at.number(0.0, 1e6)) {
            scenario.machines.prices.insert(node.instance_type.clone(), price);
        }
        of.end();
        if let (Some(name), Some(weight)) = (name, weight) {
            templates.push(Template { name, weight, node });
        }
    }
    let weights = |key, usual: &[(&str, f64)]| match table.get(key) {
        Some(at) => shares(&at),
        None => usual.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect(),
    };
    let providers = weights("providers", &[("gcp", 50.0), ("aws", 35.0), ("lambda", 15.0)]);
    let even = ["us-central1", "us-east1", "us-west1", "europe-west1", "asia-east1"];
    let regions = weights("regions", &even.map(|region| (region, 1.0)));
    let mut zones: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (region, _) in &regions {
        zones.insert(
            region.clone(),
            ["a", "b", "c"].map(|zone| format!("{region}-{zone}")).to_vec(),
        );
    }
    for (region, at) in table.get("zones").map(|at| at.entries()).unwrap_or_default() {
        let named = at.list().iter().filter_map(|at| at.line(TEXT_MAX)).collect();
        if zones.insert(region, named).is_none() {
            at.warn("no node is in this region");
        }
    }
    scenario.fleet.startup = startup(table.get("startup"), &mut scenario.machines);
    table.end();
    if let Some(count) = nodes {
        // Racks of sixteen: they have the scope, and no racks.
        let recipe =
            Recipe { count, templates, providers, regions, zones, racks_of: 16, long_ids: true };
        scenario.fleet.nodes.extend(fleet::generate(&recipe));
    }
}

fn shares(at: &At<'_>) -> Vec<(String, f64)> {
    let share = |(name, at): (String, At<'_>)| Some((name, at.number(0.0, 1e9)?));
    let shares: Vec<_> = at.entries().into_iter().filter_map(share).collect();
    if shares.iter().all(|(_, weight)| *weight <= 0.0) {
        at.error("all of it weighs nothing", "give one of them a number above 0");
    }
    shares
}

fn startup(at: Option<At<'_>>, machines: &mut Machines) -> Startup {
    let usual = Startup {
        pattern: StartupPattern::Linear,
        over: SignedDuration::from_secs(30),
        jitter: 0.1,
        ..Startup::default()
    };
    let Some(table) = at.and_then(|at| at.table()) else { return usual };
    let span = |key| table.get(key).and_then(|at| at.span(ZERO, DURATION_MAX));
    let startup = Startup {
        pattern: table.get("pattern").and_then(|at| pattern(&at)).unwrap_or(usual.pattern),
        over: span("duration").unwrap_or(usual.over),
        batch: table.get("batch_size").and_then(|at| at.count(1, NODES_MAX)).unwrap_or(usual.batch),
        jitter: table
            .get("jitter_percent")
            .and_then(|at| at.number(0.0, 100.0))
            .map_or(usual.jitter, |percent| percent / 100.0),
        by_itself: true,
    };
    let (least, most) = (span("cold_start_min"), span("cold_start_max"));
    let middle = least.zip(most).map(|(least, most)| (least + most) / 2);
    if let Some(mean) = span("cold_start_mean").or(middle) {
        machines.boot = (mean, span("cold_start_stddev").unwrap_or(mean / 4));
    }
    table.end();
    startup
}

/// The script, and when its last event is over.
fn events(
    at: &At<'_>,
    names: &Names,
    scenario: &Scenario,
    stress: bool,
) -> (Vec<Step>, SignedDuration) {
    let mut script: Vec<Step> = Vec::new();
    let mut last = ZERO;
    for at in at.list() {
        let Some(table) = at.table() else { continue };
        let when = table.get("at").and_then(|at| at.span(ZERO, DURATION_MAX)).unwrap_or_default();
        let params_at = table.get("params");
        let params = params_at.as_ref().and_then(|at| at.table());
        let target_at = table.get("target");
        let params_of = params.as_ref();
        let event =
            Event { at: &at, target: target_at, params: params_of, names, scenario, stress };
        let word = table.need("action", "log").and_then(|at| at.word(&ACTIONS));
        let steps = word.map(|word| event.actions(word, &script)).unwrap_or_default();
        let waits = steps.iter().map(|action| {
            if let Action::WaitForStatus { within, .. } = action { *within } else { ZERO }
        });
        last = last.max(when + waits.max().unwrap_or_default());
        script.extend(steps.into_iter().map(|action| Step { at: when, action }));
        if let Some(params) = params {
            // Their parameters are one struct for all actions: what this one has no use for is no mistake.
            for key in PARAMS {
                params.has(key);
            }
            params.end();
        }
        table.end();
    }
    script.sort_by_key(|step| step.at);
    (script, last)
}

const ACTIONS: [&str; 9] = [
    "start_fleet",
    "stop_fleet",
    "inject_failure",
    "recover_failure",
    "issue_command",
    "wait_for_status",
    "wait",
    "log",
    "assert",
];

const PARAMS: [&str; 9] = [
    "failure_type",
    "xid_code",
    "gpu_index",
    "message",
    "command_type",
    "command_args",
    "expected_status",
    "timeout",
    "log_message",
];

struct Event<'a> {
    at: &'a At<'a>,
    target: Option<At<'a>>,
    params: Option<&'a Table<'a>>,
    names: &'a Names,
    scenario: &'a Scenario,
    stress: bool,
}

impl Event<'_> {
    fn param(&self, key: &'static str) -> Option<At<'_>> {
        self.params.and_then(|params| params.get(key))
    }

    fn actions(&self, word: &str, before: &[Step]) -> Vec<Action> {
        match word {
            "start_fleet" => vec![Action::StartFleet],
            "stop_fleet" => vec![Action::StopFleet],
            "inject_failure" => self.inject().into_iter().collect(),
            "recover_failure" => self.recover(before),
            "issue_command" => self.command().into_iter().collect(),
            "wait_for_status" => self.wait_for_status().into_iter().collect(),
            "assert" => self.assert().into_iter().collect(),
            "log" => {
                let text = self.param("log_message").and_then(|at| at.text());
                text.map(Action::Log).into_iter().collect()
            }
            // `wait` is a time at which nothing happens.
            _ => Vec::new(),
        }
    }

    fn node(&self) -> Option<String> {
        let Some(at) = &self.target else {
            self.at.error("`target` is missing", "write the id of a node");
            return None;
        };
        let id = at.line(TEXT_MAX)?;
        self.names.node(at, &id);
        Some(id)
    }

    fn inject(&self) -> Option<Action> {
        let node = self.node();
        let kind_at = self.param("failure_type");
        let Some(kind_at) = kind_at else {
            self.at
                .error("`params.failure_type` is missing", "for example `failure_type: xid_error`");
            return None;
        };
        let kind = kind_at.word(&chaos::FAILURES)?;
        let node = node?;
        let spec = self.scenario.fleet.nodes.iter().find(|spec| spec.id == node);
        let gpu = match self.param("gpu_index") {
            Some(at) => {
                let most = spec.map_or(0, |spec| spec.gpus.saturating_sub(1));
                at.count(0, most)?
            }
            None => 0,
        };
        let code = self.param("xid_code").map(|at| at.count(1, 999));
        let code = match (kind, code) {
            (_, Some(code)) => code?,
            ("xid_error", None) => {
                self.at.warn("no `xid_code` is given; it is played as 79");
                79
            }
            (_, None) => 79,
        };
        chaos::warn_of(kind, &kind_at);
        let effect = match chaos::effect(kind, code, DURATION_MAX) {
            // Some kinds are about no GPU, and take none.
            Effect::Inject(text) => {
                let about_one =
                    Effect::injection(&text, gpu).is_ok_and(|made| made.gpu().is_some());
                Effect::Inject(if about_one { format!("{text} gpu:{gpu}") } else { text })
            }
            other @ (Effect::Silent
            | Effect::Reboot
            | Effect::AgentCrash
            | Effect::Partition(_)
            | Effect::Clock(_)
            | Effect::Unseen) => other,
        };
        Some(Action::Fault(Place::Node(node), effect))
    }

    /// What was injected before and is of this kind, or everything.
    fn recover(&self, before: &[Step]) -> Vec<Action> {
        let Some(node) = self.node() else { return Vec::new() };
        let place = Place::Node(node);
        let kind = match self.param("failure_type") {
            Some(at) => match at.word(&chaos::FAILURES) {
                Some(kind) => kind,
                None => return Vec::new(),
            },
            None => return vec![Action::Recover(place, None)],
        };
        let mut texts = BTreeSet::new();
        for step in before {
            if let Action::Fault(at, Effect::Inject(text)) = &step.action
                && *at == place
                && chaos::is_of(text, kind)
            {
                texts.insert(text.clone());
            }
        }
        if texts.is_empty() {
            return vec![Action::Recover(place, None)];
        }
        texts.into_iter().map(|text| Action::Recover(place.clone(), Some(text))).collect()
    }

    fn command(&self) -> Option<Action> {
        let target = self.node();
        let Some(at) = self.param("command_type") else {
            self.at.error("`params.command_type` is missing", "for example `command_type: cordon`");
            return None;
        };
        let kind = match at.word(&["cordon", "uncordon", "drain", "terminate", "run_diagnostic"])? {
            "run_diagnostic" => "diagnose",
            "terminate" => {
                at.warn(
                    "Navarch's simulator ends here with success; ours ends the node and goes on",
                );
                "terminate"
            }
            other => other,
        };
        let argument = |(key, at): (String, At<'_>)| Some((key, at.text()?));
        let parameters = self.param("command_args").map(|at| at.entries()).unwrap_or_default();
        Some(Action::Command {
            target: target?,
            kind: kind.to_owned(),
            parameters: parameters.into_iter().filter_map(argument).collect(),
        })
    }

    fn wait_for_status(&self) -> Option<Action> {
        let target = self.node();
        let Some(at) = self.param("expected_status") else {
            self.at.error(
                "`params.expected_status` is missing",
                "for example `expected_status: active`",
            );
            return None;
        };
        let within = self.param("timeout").and_then(|at| at.span(ZERO, DURATION_MAX));
        let status = plain_word(&at, &STATUSES)?;
        Some(Action::WaitForStatus { target: target?, status, within: within.unwrap_or(WAIT) })
    }

    fn assert(&self) -> Option<Action> {
        let params = self.params?;
        // Theirs reads the type of an assertion from the type of a failure.
        let kind = params.get("failure_type");
        let expected = params.get("expected_status");
        let under = (self.names, self.stress);
        assertion_of(self.at, self.target.as_ref(), kind, expected, under).map(Action::Assert)
    }
}

fn assertion(
    table: &Table<'_>,
    kind: Option<At<'_>>,
    expected: &'static str,
    names: &Names,
    stress: bool,
) -> Option<Assertion> {
    let (target, expected) = (table.get("target"), table.get(expected));
    assertion_of(&table.at, target.as_ref(), kind, expected, (names, stress))
}

fn assertion_of(
    at: &At<'_>,
    target: Option<&At<'_>>,
    kind: Option<At<'_>>,
    expected: Option<At<'_>>,
    (names, stress): (&Names, bool),
) -> Option<Assertion> {
    let kinds = ["node_status", "health_status", "node_count"];
    let kind = match kind {
        Some(at) => at.word(&kinds)?,
        None => "node_status",
    };
    let Some(expected) = expected else {
        at.error("it does not say what is expected", "for example `expected: active`");
        return None;
    };
    if kind == "node_count" {
        return node_count(target, &expected, stress);
    }
    let Some(target_at) = target else {
        at.error("`target` is missing", "write the id of a node");
        return None;
    };
    let target = target_at.line(TEXT_MAX)?;
    names.node(target_at, &target);
    Some(match kind {
        "health_status" => Assertion::NodeHealth(target, plain_word(&expected, &HEALTHS)?),
        _ => Assertion::NodeStatus(target, plain_word(&expected, &STATUSES)?),
    })
}

/// `active`, `ACTIVE` and `NODE_STATUS_ACTIVE` are one word.
fn plain_word(at: &At<'_>, words: &[&'static str]) -> Option<String> {
    let text = at.text()?.to_lowercase();
    let text = text.strip_prefix("node_status_").unwrap_or(&text);
    let text = text.strip_prefix("health_status_").unwrap_or(text);
    if words.contains(&text) {
        return Some(text.to_owned());
    }
    at.unknown("word", text, words);
    None
}

fn node_count(target: Option<&At<'_>>, expected: &At<'_>, stress: bool) -> Option<Assertion> {
    let text = expected.text()?;
    let Ok(number) = text.trim().parse::<u64>() else {
        expected.error("it is no number", "write how many nodes, like `expected: \"3\"`");
        return None;
    };
    let word = target.and_then(|at| at.text()).unwrap_or_default().to_lowercase();
    let status = match word.as_str() {
        "" | "all" | "*" => None,
        "healthy" => Some("active".to_owned()),
        _ => Some(plain_word(target?, &STATUSES)?),
    };
    // A stress file's comment says "at least": what is left of a fleet that was broken on purpose.
    let to = if stress { u64::MAX } else { number };
    let least = if stress { "at least" } else { "exactly" };
    let which = status.as_deref().map_or("not terminated", |status| status);
    expected.warn(format!(
        "Navarch writes this count down and compares it with nothing; here it must be {least} {number} nodes that are {which}"
    ));
    Some(Assertion::NodeCount { status, from: number, to })
}

#[cfg(test)]
mod tests;
