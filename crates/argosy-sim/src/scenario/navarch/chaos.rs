//! Their chaos: failures by chance, cascades, recovery and outages.

use crate::scenario::argosy::names::Names;
use crate::scenario::argosy::trouble::scope;
use crate::scenario::tree::{At, Table};
use crate::scenario::{
    Cascade, Cause, DURATION_MAX, Effect, Outage, Place, Rate, Recovery, Scope, TEXT_MAX, Trouble,
};
use jiff::SignedDuration;

/// Their kinds of failure.
pub(super) const FAILURES: [&str; 9] = [
    "xid_error",
    "temperature",
    "nvml_failure",
    "backend_error",
    "device_error",
    "memory_error",
    "nvlink_error",
    "boot_failure",
    "network",
];

/// What they draw from when a file gives no distribution: the codes that their documents name, each as likely.
const XIDS: [u32; 14] = [13, 31, 32, 43, 45, 48, 63, 64, 68, 74, 79, 92, 94, 95];

/// The highest rate: each node once in a second.
const RATE_MAX: f64 = 60_000.0;

/// How long a machine is cut off where nobody says so.
const CUT_OFF: SignedDuration = SignedDuration::from_mins(5);

const ZERO: SignedDuration = SignedDuration::ZERO;

/// What a kind of failure does to a machine.
pub(super) fn effect(kind: &str, xid: u32, lasts: SignedDuration) -> Effect {
    match kind {
        "temperature" => Effect::Inject("temperature:95".to_owned()),
        "nvml_failure" | "backend_error" => {
            Effect::Inject("driver-error:DRIVER_NOT_LOADED".to_owned())
        }
        "device_error" => Effect::Inject("lost".to_owned()),
        "memory_error" => Effect::Inject("ecc-uncorrected:1".to_owned()),
        "nvlink_error" => Effect::Inject("nvlink-down:1".to_owned()),
        "boot_failure" => Effect::Silent,
        "network" => Effect::Partition(lasts),
        _ => Effect::Inject(format!("xid:{xid}")),
    }
}

/// Whether an injection is what a kind of failure does.
pub(super) fn is_of(text: &str, kind: &str) -> bool {
    let word = |text: &str| text.split([':', ' ']).next().unwrap_or_default().to_owned();
    match effect(kind, 0, ZERO) {
        Effect::Inject(of) => word(&of) == word(text),
        Effect::Silent
        | Effect::Reboot
        | Effect::AgentCrash
        | Effect::Partition(_)
        | Effect::Clock(_)
        | Effect::Unseen => false,
    }
}

/// Says where theirs does nothing and ours does something.
pub(super) fn warn_of(kind: &str, at: &At<'_>) {
    match kind {
        "network" => at.warn("in Navarch's simulator this does nothing; here the node is cut off"),
        "boot_failure" => at.warn(
            "in Navarch's simulator this does nothing to a node that has started; here it falls silent",
        ),
        _ => {}
    }
}

/// Reads all of it.
pub(super) fn trouble(at: &At<'_>, names: &Names) -> Trouble {
    let Some(table) = at.table() else { return Trouble::default() };
    let enabled = flag(&table, "enabled");
    let xids = table.get("xid_distribution").map(|at| xids(&at)).unwrap_or_default();
    let recovery = table.get("recovery").and_then(|at| recovery(&at));
    let cut_off = recovery
        .as_ref()
        .map_or(CUT_OFF, |recovery| recovery.after.0)
        .max(SignedDuration::from_secs(1));
    let kinds = table.get("failure_types").map(|at| kinds(&at)).unwrap_or_default();
    let rate =
        table.get("failure_rate").and_then(|at| at.number(0.0, RATE_MAX)).unwrap_or_default();
    let trouble = Trouble {
        hardware: causes(rate, &kinds, &xids, cut_off),
        cascade: table.get("cascading").and_then(|at| cascade(&at)),
        recovery,
        outages: table
            .get("scheduled_outages")
            .map(|at| at.list().iter().filter_map(|at| outage(at, &xids, names)).collect())
            .unwrap_or_default(),
        ..Trouble::default()
    };
    table.end();
    if enabled { trouble } else { Trouble::default() }
}

fn flag(table: &Table<'_>, key: &'static str) -> bool {
    table.get(key).and_then(|at| at.flag()).unwrap_or_default()
}

fn xids(at: &At<'_>) -> Vec<(u32, f64)> {
    let mut xids = Vec::new();
    for (key, at) in at.entries() {
        match key.parse() {
            Ok(code) if (1..=999).contains(&code) => {
                xids.extend(at.number(0.0, 1e9).map(|weight| (code, weight)));
            }
            Ok(_) | Err(_) => at.error("the key is no Xid", "write a number from 1 to 999"),
        }
    }
    xids
}

fn kinds(at: &At<'_>) -> Vec<(&'static str, f64)> {
    let kind = |at: &At<'_>| {
        let table = at.table()?;
        let kind_at = table.need("type", "xid_error");
        let kind = kind_at.as_ref().and_then(|at| at.word(&FAILURES));
        let weight = table.get("weight").and_then(|at| at.number(0.0, 1e9)).unwrap_or_default();
        table.end();
        warn_of(kind?, &kind_at?);
        Some((kind?, weight))
    };
    at.list().iter().filter_map(kind).collect()
}

/// One cause for each kind, so that reports tell them apart.
fn causes(
    rate: f64,
    kinds: &[(&'static str, f64)],
    xids: &[(u32, f64)],
    cut_off: SignedDuration,
) -> Vec<Cause> {
    let usual_kinds = [("xid_error", 1.0)];
    let kinds = if kinds.is_empty() { &usual_kinds[..] } else { kinds };
    let usual_xids: Vec<(u32, f64)> = XIDS.iter().map(|code| (*code, 1.0)).collect();
    let xids = if xids.is_empty() { &usual_xids } else { xids };
    let sum: f64 = kinds.iter().map(|(_, weight)| weight).sum();
    let cause = |(kind, weight): &(&'static str, f64)| Cause {
        name: (*kind).to_owned(),
        // Theirs is in a minute, of a thousand nodes.
        rate: Rate::PerThousandNodeDays(rate * 1440.0 * weight / sum),
        effects: match *kind {
            "xid_error" => {
                xids.iter().map(|(code, weight)| (*weight, effect(kind, *code, cut_off))).collect()
            }
            _ => vec![(1.0, effect(kind, 0, cut_off))],
        },
        interrupts: true,
    };
    if rate <= 0.0 || sum <= 0.0 { Vec::new() } else { kinds.iter().map(cause).collect() }
}

fn cascade(at: &At<'_>) -> Option<Cascade> {
    let table = at.table()?;
    let span = |key, usual| {
        let read = table.get(key).and_then(|at| at.span(ZERO, DURATION_MAX));
        read.unwrap_or(SignedDuration::from_secs(usual))
    };
    let (enabled, delay) = (flag(&table, "enabled"), (span("min_delay", 1), span("max_delay", 10)));
    let affected_max = table.get("max_affected_percent").and_then(|at| {
        let part = at.number(0.0, 100.0)?;
        if 1.0 < part {
            at.warn(format!(
                "to Navarch this is a part, of which 1 is all; it is played as {part} %"
            ));
            return Some(part / 100.0);
        }
        Some(part)
    });
    let cascade = Cascade {
        probability: table.get("probability").and_then(|at| at.part()).unwrap_or_default(),
        depth_max: table
            .get("max_depth")
            .and_then(|at| at.count(0, 100))
            .filter(|depth| 0 < *depth)
            .unwrap_or(3),
        delay: (delay.0, delay.0.max(delay.1)),
        scope: table.get("scope").and_then(|at| scope(&at)).unwrap_or(Scope::Random),
        affected_max: affected_max.unwrap_or(0.1),
    };
    table.end();
    enabled.then_some(cascade)
}

fn recovery(at: &At<'_>) -> Option<Recovery> {
    let table = at.table()?;
    let span = |key| table.get(key).and_then(|at| at.span(ZERO, DURATION_MAX));
    let mean = span("mean_time").unwrap_or(SignedDuration::from_mins(5));
    let cold_start = span("replace_cold_start").unwrap_or(SignedDuration::from_secs(45));
    let (enabled, replaces) = (flag(&table, "enabled"), flag(&table, "replace_fatal"));
    let recovery = Recovery {
        probability: table.get("probability").and_then(|at| at.part()).unwrap_or_default(),
        after: (mean, span("std_dev").unwrap_or(mean / 4)),
        replace_fatal_after: replaces.then_some(cold_start),
    };
    table.end();
    enabled.then_some(recovery)
}

fn outage(at: &At<'_>, xids: &[(u32, f64)], names: &Names) -> Option<Outage> {
    let table = at.table()?;
    let name = table.get("name").and_then(|at| at.line(TEXT_MAX)).unwrap_or_default();
    let when = table.get("start_time").and_then(|at| at.span(ZERO, DURATION_MAX));
    let lasts = table
        .need("duration", "5m")
        .and_then(|at| at.span(SignedDuration::from_secs(1), DURATION_MAX));
    let scope = table
        .need("scope", "zone")
        .and_then(|at| at.word(&["zone", "region", "provider", "percentage"]));
    let place = table.need("target", "us-central1-a").and_then(|at| {
        let target = at.line(TEXT_MAX)?;
        let place = match scope? {
            "zone" => Place::Zone(target),
            "region" => Place::Region(target),
            "provider" => Place::Provider(target),
            _ => match target.trim_end_matches('%').trim().parse::<f64>() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Place::Part(percent / 100.0),
                Ok(_) | Err(_) => {
                    at.error("it is no percentage", "write a number from 0 to 100");
                    return None;
                }
            },
        };
        Some(names.place(&at, place))
    });
    let kind_at = table.get("failure_type");
    let kind = match &kind_at {
        Some(at) => at.word(&FAILURES),
        None => Some("network"),
    };
    table.end();
    if let (Some(kind), Some(at)) = (kind, &kind_at) {
        warn_of(kind, at);
    }
    let heaviest = xids.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
    let xid = heaviest.map_or(79, |(code, _)| *code);
    let lasts = lasts?;
    let effect = effect(kind?, xid, lasts);
    Some(Outage { name, at: when.unwrap_or_default(), lasts, place: place?, effect })
}
