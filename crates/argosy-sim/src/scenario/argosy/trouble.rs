//! What goes wrong by chance.

use super::names::Names;
use super::span;
use crate::scenario::tree::{At, Table};
use crate::scenario::{
    Cascade, Cause, Cloud, Control, DURATION_MAX, Effect, Link, Outage, Rate, Recovery, Scope,
    Store, TEXT_MAX, Trouble, effect, profile,
};
use jiff::SignedDuration;
use std::collections::BTreeSet;

/// The most of anything a day: one each tenth of a second, which no fleet lives through.
const PER_DAY_MAX: f64 = 864_000.0;

/// The highest rates. Each GPU once in a second is no fleet any more.
const PER_MILLION_GPU_HOURS_MAX: f64 = 3.6e9;
const PER_THOUSAND_NODE_DAYS_MAX: f64 = 8.64e7;

/// How much worse, or better, than published.
const SCALE_MAX: f64 = 10_000.0;

/// The words for how far a cascade reaches.
pub(in crate::scenario) const SCOPES: [&str; 5] = ["rack", "zone", "region", "provider", "random"];

const ZERO: SignedDuration = SignedDuration::ZERO;

/// Reads all of it.
pub(super) fn trouble(at: &At<'_>, names: &Names) -> Trouble {
    let Some(table) = at.table() else { return Trouble::default() };
    let scale = table.get("scale").and_then(|at| at.number(0.0, SCALE_MAX)).unwrap_or(1.0);
    let mut hardware = table.get("profile").map(|at| published(&at, scale)).unwrap_or_default();
    hardware.extend(table.get("hardware").map(|at| causes(&at)).unwrap_or_default());
    let trouble = Trouble {
        hardware,
        cascade: table.get("cascade").and_then(|at| cascade(&at)),
        recovery: table.get("recovery").and_then(|at| recovery(&at)),
        outages: table.get("outages").map(|at| outages(&at, names)).unwrap_or_default(),
        link: table.get("link").map(|at| link(&at)).unwrap_or_default(),
        cloud: table.get("cloud").map(|at| cloud(&at)).unwrap_or_default(),
        store: table.get("store").map(|at| store(&at)).unwrap_or_default(),
        control: table.get("control").map(|at| control(&at)).unwrap_or_default(),
    };
    table.end();
    trouble
}

fn published(at: &At<'_>, scale: f64) -> Vec<Cause> {
    let Some(name) = at.text() else { return Vec::new() };
    let Some(found) = profile::find(&name) else {
        let known: Vec<&str> = profile::list().iter().map(|profile| profile.name).collect();
        at.unknown("profile", &name, &known);
        return Vec::new();
    };
    found.causes(scale)
}

fn causes(at: &At<'_>) -> Vec<Cause> {
    let mut seen = BTreeSet::new();
    at.list().iter().filter_map(|at| cause(at, &mut seen)).collect()
}

fn cause(at: &At<'_>, seen: &mut BTreeSet<String>) -> Option<Cause> {
    let table = at.table()?;
    let name = table.need("name", "GPU HBM3").and_then(|at| at.line(TEXT_MAX));
    if let Some(name) = &name
        && !seen.insert(name.clone())
    {
        at.error(format!("`{name}` is there twice"), "give each cause its own name");
    }
    let rates: Vec<Option<Rate>> = [
        table
            .get("per_million_gpu_hours")
            .map(|at| at.number(0.0, PER_MILLION_GPU_HOURS_MAX).map(Rate::PerMillionGpuHours)),
        table
            .get("per_thousand_node_days")
            .map(|at| at.number(0.0, PER_THOUSAND_NODE_DAYS_MAX).map(Rate::PerThousandNodeDays)),
        table.get("per_day").map(|at| at.number(0.0, PER_DAY_MAX).map(Rate::PerDay)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let rate = match <[Option<Rate>; 1]>::try_from(rates) {
        Ok([rate]) => rate,
        Err(_) => {
            at.error(
                "it must say how often, once",
                "write one of: per_million_gpu_hours, per_thousand_node_days, per_day",
            );
            None
        }
    };
    let effects_at = table.need("effects", "[xid:79]");
    let effects: Vec<(f64, Effect)> = effects_at
        .as_ref()
        .map(|at| at.list().iter().filter_map(weighted).collect())
        .unwrap_or_default();
    if let Some(at) = &effects_at
        && !at.list().is_empty()
        && !effects.is_empty()
        && effects.iter().all(|(weight, _)| *weight <= 0.0)
    {
        at.error("every effect weighs nothing", "give one of them a `weight`");
    }
    if let Some(at) = effects_at.filter(|at| at.list().is_empty()) {
        at.error("nothing happens", "write `[unseen]` if only the work is interrupted");
    }
    let interrupts = table.get("interrupts").and_then(|at| at.flag()).unwrap_or(true);
    table.end();
    Some(Cause { name: name?, rate: rate?, effects, interrupts })
}

/// `xid:79`, or `{effect: xid:79, weight: 3}`.
fn weighted(at: &At<'_>) -> Option<(f64, Effect)> {
    if !matches!(at.node.value, crate::scenario::tree::Value::Table(_)) {
        return Some((1.0, effect::read(at)?));
    }
    let table = at.table()?;
    let weight = table.get("weight").and_then(|at| at.number(0.0, 1e6)).unwrap_or(1.0);
    let effect = table.need("effect", "xid:79").and_then(|at| effect::read(&at));
    table.end();
    Some((weight, effect?))
}

fn part(table: &Table<'_>, key: &'static str, usual: f64) -> f64 {
    table.get(key).and_then(|at| at.part()).unwrap_or(usual)
}

fn per_day(table: &Table<'_>, key: &'static str) -> f64 {
    table.get(key).and_then(|at| at.number(0.0, PER_DAY_MAX)).unwrap_or_default()
}

/// `[1ms, 30ms]`, or `20ms` for always that long.
fn range(at: &At<'_>) -> (SignedDuration, SignedDuration) {
    let most = SignedDuration::from_hours(24);
    if !matches!(at.node.value, crate::scenario::tree::Value::List(_)) {
        let span = at.span(ZERO, most).unwrap_or_default();
        return (span, span);
    }
    let items = at.list();
    let [from_at, to_at] = items.as_slice() else {
        at.error(format!("{} lengths where two are expected", items.len()), "write `[1ms, 30ms]`");
        return (ZERO, ZERO);
    };
    let (from, to) = (from_at.span(ZERO, most), to_at.span(ZERO, most));
    let (from, to) = (from.unwrap_or_default(), to.unwrap_or(most));
    if to < from {
        at.error("the first is longer than the second", "swap them");
    }
    (from, to)
}

fn ranged(
    table: &Table<'_>,
    key: &'static str,
    usual: (i64, i64),
) -> (SignedDuration, SignedDuration) {
    let (from, to) = usual;
    let usual = (SignedDuration::from_millis(from), SignedDuration::from_millis(to));
    table.get(key).map_or(usual, |at| range(&at))
}

fn cascade(at: &At<'_>) -> Option<Cascade> {
    let table = at.table()?;
    let probability = table.need("probability", "0.1").and_then(|at| at.part());
    let cascade = Cascade {
        probability: probability.unwrap_or_default(),
        depth_max: super::count(&table, "depth_max", 1, 100, 3),
        delay: ranged(&table, "delay", (1_000, 30_000)),
        scope: table.get("scope").and_then(|at| scope(&at)).unwrap_or(Scope::Rack),
        affected_max: part(&table, "affected_max", 0.1),
    };
    table.end();
    Some(cascade)
}

pub(in crate::scenario) fn scope(at: &At<'_>) -> Option<Scope> {
    Some(match at.word(&SCOPES)? {
        "rack" => Scope::Rack,
        "zone" => Scope::Zone,
        "region" => Scope::Region,
        "provider" => Scope::Provider,
        _ => Scope::Random,
    })
}

fn recovery(at: &At<'_>) -> Option<Recovery> {
    let table = at.table()?;
    let probability = table.need("probability", "0.5").and_then(|at| at.part());
    let after = span(&table, "after", ZERO, DURATION_MAX, SignedDuration::from_mins(10));
    let recovery = Recovery {
        probability: probability.unwrap_or_default(),
        after: (after, span(&table, "deviation", ZERO, DURATION_MAX, after / 4)),
        replace_fatal_after: table
            .get("replace_fatal_after")
            .and_then(|at| at.span(ZERO, DURATION_MAX)),
    };
    table.end();
    Some(recovery)
}

fn outages(at: &At<'_>, names: &Names) -> Vec<Outage> {
    let outage = |at: &At<'_>| {
        let table = at.table()?;
        let name = table.get("name").and_then(|at| at.line(TEXT_MAX)).unwrap_or_default();
        let when = table.need("at", "6h").and_then(|at| at.span(ZERO, names.until));
        let lasts = table
            .need("lasts", "30m")
            .and_then(|at| at.span(SignedDuration::from_secs(1), DURATION_MAX));
        let place = table
            .need("on", "{zone: a}")
            .and_then(|at| effect::place(&at).map(|place| names.place(&at, place)));
        let usual = Effect::Partition(lasts.unwrap_or_default());
        let effect = table.get("effect").map_or(Some(usual), |at| effect::read(&at));
        table.end();
        Some(Outage { name, at: when?, lasts: lasts?, place: place?, effect: effect? })
    };
    at.list().iter().filter_map(outage).collect()
}

fn link(at: &At<'_>) -> Link {
    let Some(table) = at.table() else { return Link::default() };
    let link = Link {
        latency: ranged(&table, "latency", (1, 20)),
        loss: part(&table, "loss", 0.0),
        twice: part(&table, "twice", 0.0),
        partitions_per_day: per_day(&table, "partitions_per_day"),
        partition: span(&table, "partition", ZERO, DURATION_MAX, SignedDuration::from_mins(5)),
    };
    table.end();
    link
}

fn cloud(at: &At<'_>) -> Cloud {
    let Some(table) = at.table() else { return Cloud::default() };
    let cloud = Cloud {
        latency: ranged(&table, "latency", (100, 2_000)),
        list_lag: span(&table, "list_lag", ZERO, SignedDuration::from_hours(24), ZERO),
        lost_answers: part(&table, "lost_answers", 0.0),
        throttled: part(&table, "throttled", 0.0),
        errors: part(&table, "errors", 0.0),
        stockouts_per_day: per_day(&table, "stockouts_per_day"),
        stockout: span(&table, "stockout", ZERO, DURATION_MAX, SignedDuration::from_mins(30)),
        duds: part(&table, "duds", 0.0),
        lemons: part(&table, "lemons", 0.0),
        reclaimed_per_day: per_day(&table, "reclaimed_per_day"),
    };
    table.end();
    cloud
}

fn store(at: &At<'_>) -> Store {
    let Some(table) = at.table() else { return Store::default() };
    let store = Store {
        latency: ranged(&table, "latency", (0, 5)),
        lost_answers: part(&table, "lost_answers", 0.0),
        torn: part(&table, "torn", 0.0),
        failovers_per_day: per_day(&table, "failovers_per_day"),
        failover: span(&table, "failover", ZERO, DURATION_MAX, SignedDuration::from_secs(20)),
    };
    table.end();
    store
}

fn control(at: &At<'_>) -> Control {
    let Some(table) = at.table() else { return Control::default() };
    let control = Control {
        crashes_per_day: per_day(&table, "crashes_per_day"),
        restart: span(&table, "restart", ZERO, DURATION_MAX, SignedDuration::from_secs(30)),
        pauses_per_day: per_day(&table, "pauses_per_day"),
        pause: span(&table, "pause", ZERO, DURATION_MAX, SignedDuration::from_secs(20)),
        clock_jumps_per_day: per_day(&table, "clock_jumps_per_day"),
        clock_jump_max: span(
            &table,
            "clock_jump_max",
            ZERO,
            SignedDuration::from_hours(24 * 366),
            SignedDuration::from_mins(1),
        )
        .as_secs(),
        clock_wrong_for: span(
            &table,
            "clock_wrong_for",
            ZERO,
            DURATION_MAX,
            SignedDuration::from_mins(15),
        ),
    };
    table.end();
    control
}
