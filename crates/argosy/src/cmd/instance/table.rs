//! Instances as a table, and one on a page.

use crate::output::{Format, Grid, Paint, Screen, clean, document, indent, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::instance::{Instance, InstanceState, Orphan};
use argosy_core::machine::HourlyCost;
use serde_json::json;

/// How many lines of a console a page shows: the end, where a boot fails.
const CONSOLE_LINES: usize = 20;

/// Prints instances in the session's format. `list` says whether JSON is a list or one object.
pub(super) fn show(session: &Session, instances: &[Instance], list: bool) {
    match session.format {
        Format::Json | Format::Yaml => {
            let value = match instances {
                [one] if !list => to_value(one),
                _ => json!({
                    "kind": "InstanceList",
                    "total": instances.len(),
                    "items": to_value(&instances),
                }),
            };
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => {
            let line = |instance: &Instance| format!("instance/{}\n", clean(&instance.id));
            print(&instances.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide => print(&table(session, instances)),
    }
}

const NARROW: [&str; 9] =
    ["INSTANCE", "POOL", "#", "STATE", "SINCE", "TYPE", "PLACE", "$/H", "REASON"];
const MORE: [&str; 5] = ["NODE", "MACHINE", "SPOT", "AGE", "REPLACES"];

/// The table of instances.
pub(in crate::cmd) fn table(session: &Session, instances: &[Instance]) -> String {
    let wide = session.format == Format::Wide;
    // Whoever asks for more columns wants to copy from them: nothing is cut.
    let screen = if wide { session.screen.unbounded() } else { session.screen };
    grid(instances, wide, Times::relative(session)).render(&screen, session.headers)
}

pub(super) fn grid(instances: &[Instance], wide: bool, times: Times) -> Grid {
    let [.., reason] = NARROW;
    let mut headers: Vec<&'static str> = NARROW.to_vec();
    if wide {
        headers.pop();
        headers.extend(MORE);
        headers.push(reason);
    }
    let mut grid = Grid::new(&headers).sparse();
    for instance in instances {
        grid.row(row(instance, wide, times));
    }
    grid
}

fn row(instance: &Instance, wide: bool, times: Times) -> Vec<(String, Paint)> {
    let plain = |text: &str| (text.to_owned(), Paint::Plain);
    let mut cells = vec![
        plain(&instance.id),
        plain(&instance.pool),
        plain(&instance.number.to_string()),
        (instance.state.to_string(), paint(instance.state)),
        plain(&times.age(&instance.since)),
        plain(&instance.machine_type),
        plain(&place(instance)),
        plain(&instance.cost_per_hour.map(|cost| format!("{cost:.2}")).unwrap_or_default()),
    ];
    if wide {
        cells.extend([
            plain(instance.node_id.as_deref().unwrap_or_default()),
            plain(instance.machine_id.as_deref().unwrap_or_default()),
            plain(if instance.spot { "spot" } else { "" }),
            plain(&times.age(&instance.ordered_at)),
            plain(instance.replaces.as_deref().unwrap_or_default()),
        ]);
    }
    cells.push(plain(&reason(instance)));
    cells
}

const fn paint(state: InstanceState) -> Paint {
    match state {
        InstanceState::Running => Paint::Good,
        InstanceState::Provisioning | InstanceState::AwaitingNode | InstanceState::Terminating => {
            Paint::Busy
        }
        InstanceState::Terminated => Paint::Dim,
        InstanceState::Failed => Paint::Bad,
    }
}

/// `aws us-east-1/a`.
fn place(instance: &Instance) -> String {
    let zone = if instance.zone.is_empty() { String::new() } else { format!("/{}", instance.zone) };
    format!("{} {}{zone}", instance.provider, instance.region)
}

/// Why it is as it is; empty if all goes as it should.
fn reason(instance: &Instance) -> String {
    if let Some(blocked) = &instance.blocked {
        return format!("{}: it is to go and stays: {}", blocked.guard, blocked.message);
    }
    let overdue = if instance.overdue { "OVERDUE, it still costs: " } else { "" };
    if instance.reason.is_empty() {
        return overdue.to_owned();
    }
    format!("{overdue}{}: {}", instance.reason, instance.status_message)
}

/// `12 instances, 9 running, $88.40 an hour`.
pub(super) fn sum(instances: &[Instance]) -> String {
    let running = instances.iter().filter(|it| it.state == InstanceState::Running).count();
    let over = [InstanceState::Terminated, InstanceState::Failed];
    let live = instances.iter().filter(|it| !over.contains(&it.state));
    let cost: HourlyCost = live.map(|it| it.cost_per_hour).collect();
    let cost = together(cost.known, cost.unpriced);
    let count = match instances.len() {
        1 => "1 instance".to_owned(),
        count => format!("{count} instances"),
    };
    format!("{count}, {running} running, {cost}")
}

/// `$88.40 an hour`.
fn dollars(cost: Option<f64>) -> String {
    cost.map_or_else(|| "at an unknown price".to_owned(), |cost| format!("${cost:.2} an hour"))
}

/// What several cost: `$88.40 an hour`, `at least $88.40 an hour, 3 without a known price`, or `an unknown amount`.
pub(in crate::cmd) fn together(known: f64, unpriced: u32) -> String {
    match unpriced {
        0 => dollars(Some(known)),
        _ if known == 0.0 => format!("cost unknown, {unpriced} without a known price"),
        _ => format!("at least {}, {unpriced} without a known price", dollars(Some(known))),
    }
}

/// The table of machines that no record knows.
pub(super) fn orphans(session: &Session, orphans: &[Orphan]) -> String {
    let times = Times::relative(session);
    let mut grid =
        Grid::new(&["PROVIDER", "MACHINE", "NAME", "TYPE", "PLACE", "$/H", "SEEN", "IS"]).sparse();
    for orphan in orphans {
        let zone = if orphan.zone.is_empty() { String::new() } else { format!("/{}", orphan.zone) };
        let cells = [
            orphan.provider.clone(),
            orphan.machine_id.clone(),
            orphan.name.clone(),
            orphan.machine_type.clone(),
            format!("{}{zone}", orphan.region),
            orphan.cost_per_hour.map(|cost| format!("{cost:.2}")).unwrap_or_default(),
            times.age(&orphan.first_seen),
            orphan.reap.as_ref().map(|reap| format!("to go, by {}", reap.by)).unwrap_or_default(),
        ];
        grid.row(cells.map(|cell| (cell, Paint::Plain)));
    }
    let wide = session.format == Format::Wide;
    let screen = if wide { session.screen.unbounded() } else { session.screen };
    grid.render(&screen, session.headers)
}

/// What returning an instance touches, in a line.
pub(super) fn touched(instance: &Instance) -> String {
    let node = match &instance.node_id {
        Some(node) => format!("node {node}, which is not drained first"),
        None => "no node has registered from it".to_owned(),
    };
    let machine = instance.machine_id.as_deref().unwrap_or("not known to exist yet");
    clean(&format!(
        "{}: {} {} in {} ({machine}), {}; {node}; number {} of pool {}",
        instance.id,
        instance.state,
        instance.machine_type,
        place(instance),
        dollars(instance.cost_per_hour),
        instance.number,
        instance.pool
    ))
}

/// What returning an orphan touches, in a line.
pub(super) fn touched_orphan(orphan: &Orphan) -> String {
    clean(&format!(
        "{}/{}: {} named {} in {}, {}; no record knows it",
        orphan.provider,
        orphan.machine_id,
        orphan.machine_type,
        orphan.name,
        orphan.region,
        dollars(orphan.cost_per_hour)
    ))
}

/// One instance on a page.
pub(super) fn page(screen: &Screen, instance: &Instance, times: Times) -> String {
    let mut text = String::new();
    let state = screen.paint(instance.state.as_str(), paint(instance.state));
    let since = times.ago(&instance.since);
    text.push_str(&format!("{:<12}{}\n", "Instance", clean(&instance.id)));
    text.push_str(&format!("{:<12}{state}  ({})\n", "State", clean(&since)));
    let mut member = |name: &str, parts: &[&str]| {
        let said: Vec<String> =
            parts.iter().filter(|part| !part.is_empty()).map(|part| clean(part)).collect();
        if !said.is_empty() {
            text.push_str(&format!("{name:<12}{}\n", said.join("  ")));
        }
    };
    member("Because", &[&instance.reason, &instance.status_message]);
    if instance.overdue {
        member("Overdue", &["returning it takes too long, and it still costs"]);
    }
    let calls = match instance.calls {
        0 => String::new(),
        1 => "asked once".to_owned(),
        calls => format!("asked {calls} times"),
    };
    let again = instance.retry_at.as_deref().map(|at| format!("again {}", times.due(at)));
    member("Provider", &[&calls, &again.unwrap_or_default()]);
    member("Pool", &[&instance.pool, &format!("number {}", instance.number)]);
    member("Node", &[instance.node_id.as_deref().unwrap_or("none has registered")]);
    let spot = if instance.spot { "spot" } else { "" };
    member("Machine", &[&instance.machine_type, spot, &place(instance), &instance.image]);
    member("Known as", &[instance.machine_id.as_deref().unwrap_or_default()]);
    if instance.cost_per_hour.is_some() {
        member("Cost", &[&dollars(instance.cost_per_hour)]);
    }
    member("Ordered", &[&times.ago(&instance.ordered_at), &instance.why]);
    member("Replaces", &[instance.replaces.as_deref().unwrap_or_default()]);
    member("Replaced by", &[instance.replaced_by.as_deref().unwrap_or_default()]);
    if !instance.tried.is_empty() {
        let mut grid = Grid::new(&["CURE", "WHEN", "BECAUSE", "OUTCOME"]).wrapping();
        for tried in &instance.tried {
            let cells = [
                tried.cure.to_string(),
                times.age(&tried.at),
                tried.because.clone(),
                tried.outcome.clone(),
            ];
            grid.row(cells.map(|cell| (cell, Paint::Plain)));
        }
        let lines = grid.compact().render(&screen.indented(2), true);
        text.push_str(&format!("\nTRIED\n{}", indent(&lines, 2)));
    }
    if let Some(console) = &instance.console {
        let lines: Vec<String> = console.lines().map(clean).collect();
        let end = lines.get(lines.len().saturating_sub(CONSOLE_LINES)..).unwrap_or_default();
        text.push_str(&format!("\nCONSOLE\n{}", indent(&end.join("\n"), 2)));
    }
    text
}
