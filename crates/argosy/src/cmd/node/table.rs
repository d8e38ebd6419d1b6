//! Nodes as a table: one line each, with what speaks against it last.

use crate::output::{Format, Grid, Paint, clean, document, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::node::{Gpu, HealthStatus, Liveness, Node, NodeStatus};
use serde_json::json;

/// Prints nodes in the session's format. `list` says whether JSON is a list or one object.
pub(super) fn show(session: &Session, nodes: &[Node], list: bool) {
    match session.format {
        Format::Json | Format::Yaml => {
            let value = match nodes {
                [one] if !list => to_value(one),
                _ => json!({ "kind": "NodeList", "total": nodes.len(), "items": to_value(&nodes) }),
            };
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => {
            let line = |node: &Node| format!("node/{}\n", clean(&node.id));
            print(&nodes.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide => print(&table(session, nodes)),
    }
}

const NARROW: [&str; 11] = [
    "NODE",
    "POOL",
    "STATUS",
    "HEALTH",
    "LIVENESS",
    "GPUS",
    "UTIL",
    "TEMP",
    "HEARTBEAT",
    "AGE",
    "REASON",
];
const MORE: [&str; 6] = ["PROVIDER", "REGION", "ZONE", "TYPE", "AGENT", "DRIVER"];

/// The table of nodes.
pub(super) fn table(session: &Session, nodes: &[Node]) -> String {
    let wide = session.format == Format::Wide;
    // Whoever asks for more columns wants to copy from them: nothing is cut.
    let screen = if wide { session.screen.unbounded() } else { session.screen };
    // Ages, in both: who wants the times asks for one node, or for JSON.
    grid(nodes, wide, Times::relative(session)).render(&screen, session.headers)
}

fn grid(nodes: &[Node], wide: bool, times: Times) -> Grid {
    let [.., reason] = NARROW;
    let mut headers: Vec<&'static str> = NARROW.to_vec();
    if wide {
        headers.pop();
        headers.extend(MORE);
        headers.push(reason);
    }
    let mut grid = Grid::new(&headers).sparse();
    for node in nodes {
        grid.row(row(node, wide, times));
    }
    grid
}

fn row(node: &Node, wide: bool, times: Times) -> Vec<(String, Paint)> {
    let plain = |text: &str| (text.to_owned(), Paint::Plain);
    let word = |word: &str| (word.to_owned(), Paint::of_state(word));
    let liveness = match node.liveness {
        // That a node is heard is nothing to say about it.
        Liveness::Fresh => plain(""),
        other @ (Liveness::Suspect | Liveness::Unreachable) => word(other.as_str()),
    };
    let heard = node.last_heartbeat.as_deref().map(|at| times.age(at)).unwrap_or_default();
    let mut cells = vec![
        plain(&node.id),
        plain(node.pool.as_deref().unwrap_or_default()),
        word(node.status.as_str()),
        word(node.health.status.as_str()),
        liveness,
        plain(&gpus(&node.gpus)),
        plain(&utilization(&node.gpus).map(|mean| format!("{mean:.0}%")).unwrap_or_default()),
        plain(&hottest(&node.gpus).map(|degrees| format!("{degrees}C")).unwrap_or_default()),
        plain(&heard),
        plain(&times.age(&node.registered_at)),
    ];
    if wide {
        let drivers = node.gpus.iter().map(|gpu| gpu.driver_version.as_str());
        let more = [&node.provider, &node.region, &node.zone, &node.instance_type, &node.agent];
        cells.extend(more.map(|text| plain(text)));
        cells.push(plain(&distinct(drivers)));
    }
    cells.push(plain(&reason(node)));
    cells
}

/// What speaks against a node, in a sentence; empty if nothing does.
pub(super) fn reason(node: &Node) -> String {
    let health = &node.health;
    let ill = match (health.status, health.message.as_str()) {
        (HealthStatus::Healthy, _) => String::new(),
        (HealthStatus::Unknown | HealthStatus::Degraded | HealthStatus::Unhealthy, "") => {
            health.reason.clone()
        }
        (HealthStatus::Unknown | HealthStatus::Degraded | HealthStatus::Unhealthy, message) => {
            // `xid/79/GPU-1b2c` says at a glance what a rule says in a sentence.
            let found = node.findings.iter().find(|finding| finding.rule == health.reason);
            found.map_or_else(|| message.to_owned(), |found| format!("{}: {message}", found.key))
        }
    };
    let duty = &node.duty;
    let held = match (&duty.by, duty.reason.as_deref().unwrap_or_default()) {
        (Some(by), "") => format!("by {by}"),
        (Some(by), reason) => format!("{by}: {reason}"),
        (None, _) => String::new(),
    };
    let flags: Vec<&str> = node.flags.iter().map(|flag| flag.kind.as_str()).collect();
    let mut parts: Vec<String> = Vec::new();
    match node.status {
        // Whoever took it out of service said why; that it is also ill is in the column HEALTH. What the
        // server did by itself, it did because of the illness.
        NodeStatus::Cordoned | NodeStatus::Draining | NodeStatus::Terminated => {
            let by_illness = held.is_empty() || (duty.automatic && !ill.is_empty());
            parts.push(if by_illness { ill } else { held });
        }
        NodeStatus::Unknown | NodeStatus::Active | NodeStatus::Unhealthy => {
            // Before the first report there is nothing to say.
            if health.reason != "NoReport" {
                parts.push(ill);
            }
        }
    }
    if let Some(held) = &node.held {
        parts.push(format!("{} held by {}: {}", held.action, held.guard, held.reason));
    }
    parts.push(flags.join(", "));
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// `8x H100`; mixed models with commas between.
pub(in crate::cmd) fn gpus(gpus: &[Gpu]) -> String {
    let mut models: Vec<(String, usize)> = Vec::new();
    for gpu in gpus {
        let model = model(&gpu.name);
        match models.iter_mut().find(|(known, _)| *known == model) {
            Some((_, count)) => *count += 1,
            None => models.push((model, 1)),
        }
    }
    let parts: Vec<String> =
        models.iter().map(|(model, count)| format!("{count}x {model}")).collect();
    parts.join(", ")
}

/// `H100` of `NVIDIA H100 80GB HBM3`.
pub(in crate::cmd) fn model(name: &str) -> String {
    let short = name.trim().trim_start_matches("NVIDIA ").trim_start_matches("Tesla ");
    let short = short.trim_start_matches("GeForce ");
    let mut words = short.split([' ', '-']).filter(|word| !word.is_empty());
    match (words.next(), words.next()) {
        (None, _) => "GPU".to_owned(),
        // These are half a name.
        (Some(family @ ("RTX" | "GTX" | "Quadro")), Some(number)) => format!("{family} {number}"),
        (Some(model), _) => model.to_owned(),
    }
}

/// The mean of what the GPUs last measured, in percent.
pub(in crate::cmd) fn utilization(gpus: &[Gpu]) -> Option<f32> {
    let measured: Vec<f32> = gpus.iter().filter_map(|gpu| gpu.utilization).collect();
    let count = u16::try_from(measured.len()).ok().filter(|count| 0 < *count)?;
    Some(measured.iter().sum::<f32>() / f32::from(count))
}

/// The highest temperature of the GPUs.
pub(in crate::cmd) fn hottest(gpus: &[Gpu]) -> Option<i16> {
    gpus.iter().filter_map(|gpu| gpu.temperature).max()
}

/// Each text once, with commas between.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen.join(",")
}

#[cfg(test)]
mod tests;
