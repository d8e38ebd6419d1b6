//! What happens at given times, and what must be so.

use super::names::Names;
use super::{object, span};
use crate::scenario::tree::{At, Table, Value};
use crate::scenario::{Action, Assertion, DURATION_MAX, Effect, Step, TEXT_MAX, effect};
use jiff::SignedDuration;

/// What a node can be told, as people write it.
pub(in crate::scenario) const COMMANDS: [&str; 5] =
    ["cordon", "uncordon", "drain", "diagnose", "terminate"];

/// The words for a node that people see.
pub(in crate::scenario) const STATUSES: [&str; 6] =
    ["active", "cordoned", "draining", "unhealthy", "terminated", "unknown"];

/// The words for a node's health.
pub(in crate::scenario) const HEALTHS: [&str; 4] = ["healthy", "degraded", "unhealthy", "unknown"];

/// The keys of which a step has one.
const ACTIONS: [&str; 16] = [
    "start_fleet",
    "stop_fleet",
    "fault",
    "recover",
    "command",
    "resize",
    "delete",
    "pause",
    "down",
    "backup",
    "restore",
    "lose_commits",
    "confirm",
    "wait",
    "assert",
    "log",
];

/// The keys of which an assertion has one.
const ASSERTIONS: [&str; 9] = [
    "node_status",
    "node_health",
    "node_count",
    "pool_ready",
    "pool_reason",
    "bought",
    "availability",
    "detected_within",
    "goodput",
];

/// Reads the script, and puts it in order of time; what is at the same time stays in order of the file.
pub(super) fn steps(at: &At<'_>, names: &Names) -> Vec<Step> {
    let mut steps: Vec<Step> = at.list().iter().filter_map(|at| step(at, names)).collect();
    steps.sort_by_key(|step| step.at);
    steps
}

fn step(at: &At<'_>, names: &Names) -> Option<Step> {
    let table = at.table()?;
    let when = table
        .need("at", "10m")
        .and_then(|at| at.span(SignedDuration::ZERO, names.until))
        .unwrap_or_default();
    let action = one_of(&table, &ACTIONS).and_then(|(key, at)| action(&table, key, &at, names));
    table.end();
    Some(Step { at: when, action: action? })
}

/// The one key of these that is there; a complaint if it is not one.
fn one_of<'a>(table: &Table<'a>, keys: &[&'static str]) -> Option<(&'static str, At<'a>)> {
    let found: Vec<_> = keys.iter().filter_map(|key| Some((*key, table.get(key)?))).collect();
    match <[_; 1]>::try_from(found) {
        Ok([found]) => Some(found),
        Err(found) => {
            let what = if found.is_empty() { "says nothing" } else { "says more than one thing" };
            table
                .at
                .error(format!("it {what}"), format!("write exactly one of: {}", keys.join(", ")));
            None
        }
    }
}

fn action(table: &Table<'_>, key: &str, at: &At<'_>, names: &Names) -> Option<Action> {
    let place = || {
        let at = table.need("on", "{zone: a}")?;
        effect::place(&at).map(|place| names.place(&at, place))
    };
    match key {
        "start_fleet" => yes(at).then_some(Action::StartFleet),
        "stop_fleet" => yes(at).then_some(Action::StopFleet),
        "fault" => {
            let (effect, place) = (effect::read(at), place());
            Some(Action::Fault(place?, effect?))
        }
        "recover" => {
            let what = match at.line(TEXT_MAX)?.as_str() {
                "all" => None,
                _ => match effect::read(at)? {
                    Effect::Inject(text) => Some(text),
                    Effect::Silent
                    | Effect::Reboot
                    | Effect::AgentCrash
                    | Effect::Partition(_)
                    | Effect::Clock(_)
                    | Effect::Unseen => {
                        at.error("only injections are taken back one by one", "write `all`");
                        return None;
                    }
                },
            };
            Some(Action::Recover(place()?, what))
        }
        "command" => {
            let kind = at.word(&COMMANDS);
            let target = table.need("on", "node-1").and_then(|at| {
                let target = at.line(TEXT_MAX)?;
                names.node(&at, &target);
                Some(target)
            });
            let parameters =
                table.get("parameters").map(|at| super::texts(&at)).unwrap_or_default();
            Some(Action::Command { target: target?, kind: kind?.to_owned(), parameters })
        }
        "resize" => {
            let of = at.table()?;
            let (cluster, pool) = cluster_and_pool(&of, names)?;
            let spec = of.need("spec", "{nodeCount: 4}").map(|at| object(&at));
            of.end();
            Some(Action::Resize { cluster, pool: pool?, spec: spec?.into() })
        }
        "delete" => {
            let of = at.table()?;
            let found = cluster_and_pool(&of, names);
            of.end();
            let (cluster, pool) = found?;
            Some(Action::Delete { cluster, pool })
        }
        "pause" => at.flag().map(Action::Pause),
        "down" => at.span(SignedDuration::ZERO, DURATION_MAX).map(Action::Down),
        "backup" => yes(at).then_some(Action::BackUp),
        "restore" => yes(at).then_some(Action::Restore),
        "lose_commits" => yes(at).then_some(Action::LoseCommits),
        "confirm" => {
            let of = at.table()?;
            let found = cluster_and_pool(&of, names);
            of.end();
            let (cluster, pool) = found?;
            Some(Action::Confirm { cluster, pool: pool? })
        }
        "wait" => {
            let of = at.table()?;
            let target = node(&of, names);
            let status = of.need("status", "active").and_then(|at| at.word(&STATUSES));
            let usual = SignedDuration::from_secs(30);
            let within = span(&of, "within", SignedDuration::ZERO, DURATION_MAX, usual);
            of.end();
            Some(Action::WaitForStatus { target: target?, status: status?.to_owned(), within })
        }
        "assert" => assertion(at, names).map(Action::Assert),
        _ => at.text().map(Action::Log),
    }
}

fn yes(at: &At<'_>) -> bool {
    let yes = at.flag() == Some(true);
    if at.node.value == Value::Bool(false) {
        at.error("`false` would do nothing", "leave the step out");
    }
    yes
}

fn cluster_and_pool(of: &Table<'_>, names: &Names) -> Option<(String, Option<String>)> {
    let cluster = of.need("cluster", "train")?.line(TEXT_MAX)?;
    let pool = of.get("pool").map(|at| at.line(TEXT_MAX));
    let pool = match pool {
        Some(pool) => Some(pool?),
        None => None,
    };
    names.declared(&of.at, &cluster, pool.as_deref());
    Some((cluster, pool))
}

fn node(of: &Table<'_>, names: &Names) -> Option<String> {
    let at = of.need("node", "node-1")?;
    let id = at.line(TEXT_MAX)?;
    names.node(&at, &id);
    Some(id)
}

/// Reads one thing that must be so.
pub(super) fn assertion(at: &At<'_>, names: &Names) -> Option<Assertion> {
    let table = at.table()?;
    let found = one_of(&table, &ASSERTIONS);
    table.end();
    let (key, at) = found?;
    match key {
        "node_status" | "node_health" => {
            let of = at.table()?;
            let node = node(&of, names);
            let status = key == "node_status";
            let words: &[&'static str] = if status { &STATUSES } else { &HEALTHS };
            let word = of.need("is", words.first().copied().unwrap_or_default());
            let word = word.and_then(|at| at.word(words)).map(str::to_owned);
            of.end();
            Some(if status {
                Assertion::NodeStatus(node?, word?)
            } else {
                Assertion::NodeHealth(node?, word?)
            })
        }
        "node_count" => node_count(&at),
        "pool_ready" => at.line(TEXT_MAX).map(|text| Assertion::PoolReady(names.pool(&at, &text))),
        "pool_reason" => {
            let of = at.table()?;
            let pool =
                of.need("pool", "train/h100")?.line(TEXT_MAX).map(|text| names.pool(&at, &text));
            let reason = of.need("is", "NeedsHuman").and_then(|at| at.line(TEXT_MAX));
            of.end();
            Some(Assertion::PoolReason(pool?, reason?))
        }
        "bought" => {
            let of = at.table()?;
            let most = of.need("at_most", "10").and_then(|at| at.whole(0, u64::MAX));
            of.end();
            most.map(Assertion::Bought)
        }
        "availability" => at.part().map(Assertion::Availability),
        "detected_within" => {
            at.span(SignedDuration::ZERO, DURATION_MAX).map(Assertion::DetectedWithin)
        }
        _ => at.part().map(Assertion::Goodput),
    }
}

fn node_count(at: &At<'_>) -> Option<Assertion> {
    let of = at.table()?;
    let status = of.get("status").map(|at| at.word(&STATUSES));
    let whole = |key| of.get(key).map(|at| at.whole(0, u64::MAX));
    let (exactly, from, to) = (whole("exactly"), whole("from"), whole("to"));
    of.end();
    let status = match status {
        Some(word) => Some(word?.to_owned()),
        None => None,
    };
    let (from, to) = match (exactly, from, to) {
        (Some(number), None, None) => (number?, number?),
        (None, None, None) => {
            at.error("it says no number", "write `exactly`, or `from`, `to` or both");
            return None;
        }
        (None, from, to) => (from.unwrap_or(Some(0))?, to.unwrap_or(Some(u64::MAX))?),
        (Some(_), _, _) => {
            at.error("`exactly` stands alone", "take it out, or `from` and `to`");
            return None;
        }
    };
    if to < from {
        at.error(format!("nothing is at least {from} and at most {to}"), "swap them");
        return None;
    }
    Some(Assertion::NodeCount { status, from, to })
}
