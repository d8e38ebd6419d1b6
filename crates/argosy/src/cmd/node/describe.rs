//! One node on a page: what it is, the three facts about it, and who did what with it.

use super::table::{gpus, hottest, model, utilization};
use crate::output::{Grid, Paint, Screen, clean, indent};
use crate::view::Times;
use argosy_api::command::Command;
use argosy_api::node::{DutyState, Finding, FindingEnd, Gpu, HealthCheck, Node};

/// How far the sections stand in.
const INDENT: u16 = 2;

/// The page. `commands` are the latest, newest first.
pub(super) fn page(screen: &Screen, node: &Node, commands: &[Command], times: Times) -> String {
    let mut page = Page { screen: *screen, times, text: String::new() };
    page.head(node);
    page.facts(node);
    page.held(node);
    page.section("FINDINGS", findings(&node.findings, times));
    page.section("CHECKS", checks(&node.checks, times));
    page.section("GPUS", gpu_lines(&node.gpus));
    page.section("COMMANDS", command_lines(commands, times));
    page.text
}

struct Page {
    screen: Screen,
    times: Times,
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A name and what is said about it; nothing if nothing is.
    fn member(&mut self, name: &str, parts: &[&str]) {
        let said: Vec<String> =
            parts.iter().filter(|part| !part.is_empty()).map(|part| clean(part)).collect();
        if !said.is_empty() {
            self.line(&format!("{name:<12}{}", said.join("  ")));
        }
    }

    fn section(&mut self, title: &str, grid: Option<Grid>) {
        let Some(grid) = grid else { return };
        self.line("");
        self.line(title);
        let table = grid.compact().render(&self.screen.indented(INDENT), true);
        self.text.push_str(&indent(&table, usize::from(INDENT)));
    }

    /// Who and where it is.
    fn head(&mut self, node: &Node) {
        let times = self.times;
        let status = node.status.as_str();
        let painted = self.screen.paint(status, Paint::of_state(status));
        self.line(&format!("{:<12}{}  {painted}", "Node", clean(&node.id)));
        self.member("Pool", &[node.pool.as_deref().unwrap_or("none")]);
        self.member(
            "Place",
            &[&node.provider, &node.region, &node.zone, &node.instance_type].map(String::as_str),
        );
        self.member(
            "Host",
            &[&node.hostname, &node.internal_ip, &node.external_ip].map(String::as_str),
        );
        let boot = said("boot", &node.boot_id);
        let machine = said("machine", &node.machine_id);
        self.member("System", &[&node.kernel_version, &boot, &machine].map(String::as_str));
        let way = if node.attached { "holds a stream open" } else { "" };
        self.member("Agent", &[&node.agent, way]);
        let labels: Vec<String> =
            node.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.member("Labels", &[&labels.join(" ")]);
        let joined = format!("in service since {}", times.age(&node.joined_at));
        self.member("Registered", &[&times.ago(&node.registered_at), &joined]);
        self.member("Heard", &heard(node, times).iter().map(String::as_str).collect::<Vec<_>>());
        let metrics = node.metrics.as_ref().map(|metrics| {
            let (cpu, memory) = (metrics.cpu_percent, metrics.memory_percent);
            format!("CPU {cpu:.0}%, memory {memory:.0}%")
        });
        let busy = utilization(&node.gpus).map(|mean| format!("GPUs {mean:.0}%"));
        let heat = hottest(&node.gpus).map(|degrees| format!("hottest {degrees}C"));
        let load: Vec<String> = [metrics, busy, heat].into_iter().flatten().collect();
        self.member("Load", &[&load.join(", ")]);
    }

    /// Liveness, health and duty, each with since when and why.
    fn facts(&mut self, node: &Node) {
        let times = self.times;
        self.line("");
        let mut grid = Grid::new(&["FACT", "IS", "SINCE", "WHY"]).wrapping();
        let plain = |text: &str| (text.to_owned(), Paint::Plain);
        let word = |word: &str| (word.to_owned(), Paint::of_state(word));
        grid.row([
            plain("Liveness"),
            word(node.liveness.as_str()),
            plain(&times.age(&node.liveness_since)),
            plain(""),
        ]);
        let health = &node.health;
        let why = match (health.reason.as_str(), health.message.as_str()) {
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        };
        grid.row([
            plain("Health"),
            word(health.status.as_str()),
            plain(&times.age(&health.since)),
            plain(&why),
        ]);
        let since = node.duty.since.as_deref().map(|at| times.age(at)).unwrap_or_default();
        grid.row([
            plain("Duty"),
            word(node.duty.state.as_str()),
            plain(&since),
            plain(&duty(node, times)),
        ]);
        self.text.push_str(&grid.render(&self.screen, true));
    }

    /// What to know besides: an action that is held, flags, flapping, the workload system.
    fn held(&mut self, node: &Node) {
        let times = self.times;
        let before = self.text.len();
        if let Some(held) = &node.held {
            let what = format!("{} is due, held by {}:", held.action, held.guard);
            self.member("Held", &[&what, &held.reason, &format!("({})", times.ago(&held.since))]);
        }
        for flag in &node.flags {
            let since = format!("({})", times.ago(&flag.since));
            self.member("Flag", &[&format!("{}:", flag.kind), &flag.message, &since]);
        }
        if let Some(flaps) = &node.flaps {
            let count = format!("recovered and fell ill again {}", so_often(flaps.count));
            let until =
                flaps.hold_until.as_deref().map(|at| format!("held down, {}", times.due(at)));
            self.member("Flapping", &[&count, until.as_deref().unwrap_or_default()]);
        }
        let external = &node.external;
        if external.told != "Uncordon" || 0 < external.failures {
            let failures = match (external.failures, external.retry_at.as_deref()) {
                (0, _) => String::new(),
                (count, None) => format!("failed {} since", so_often(count)),
                (count, Some(at)) => {
                    format!("failed {} since, again {}", so_often(count), times.due(at))
                }
            };
            self.member(
                "Workloads",
                &[&format!("told to {}", external.told.to_lowercase()), &failures],
            );
        }
        for system in &external.systems {
            let told = system.told.as_deref().map(str::to_lowercase);
            let told =
                told.map_or_else(|| "not told yet".to_owned(), |told| format!("told to {told}"));
            let seen = match system.seen.as_deref() {
                Some("ByOthers") => "gets no work there, not because of argosy:",
                Some("ByUs") => "gets no work there:",
                Some("InUse") => "gets work there",
                Some(_) | None => "",
            };
            let name = format!("{}:", system.system);
            let (note, work, failure) = (&system.seen_note, &system.work, &system.failure);
            let parts: [&str; 6] = [&name, &told, seen, note, work, failure];
            let news = !(work.is_empty() && seen.is_empty() && failure.is_empty());
            if news || 1 < external.systems.len() {
                self.member("", &parts);
            }
        }
        if let Some(left) = &external.work_left {
            self.member("Work left", &[left]);
        }
        if before < self.text.len() {
            self.text.insert(before, '\n');
        }
    }
}

/// `once`, `3 times`.
fn so_often(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn said(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!("{name} {value}") }
}

/// When it last said what.
fn heard(node: &Node, times: Times) -> Vec<String> {
    let told = [
        ("heartbeat", &node.last_heartbeat),
        ("report", &node.last_report),
        ("asked for commands", &node.last_poll),
    ];
    let parts: Vec<String> = told
        .into_iter()
        .filter_map(|(name, at)| Some(format!("{name} {}", times.ago(at.as_deref()?))))
        .collect();
    if parts.is_empty() { vec!["not since the server started".to_owned()] } else { parts }
}

/// Who took it out of service, why, and until when.
fn duty(node: &Node, times: Times) -> String {
    let duty = &node.duty;
    let mut text = match &duty.by {
        Some(by) if duty.automatic => format!("by {by}, automatically"),
        Some(by) => format!("by {by}"),
        None => return String::new(),
    };
    if let Some(reason) = duty.reason.as_deref().filter(|reason| !reason.is_empty()) {
        text.push_str(&format!(": {reason}"));
    }
    match (duty.state, duty.drained, duty.deadline.as_deref()) {
        (DutyState::Draining, true, _) => text.push_str("; the drain is over"),
        (DutyState::Draining, false, Some(at)) => {
            text.push_str(&format!("; deadline {}", times.due(at)));
        }
        (DutyState::Draining, false, None)
        | (DutyState::Active | DutyState::Cordoned | DutyState::Terminated, _, _) => {}
    }
    text
}

fn findings(findings: &[Finding], times: Times) -> Option<Grid> {
    let headers = &["FINDING", "SEVERITY", "GPU", "SEEN", "TIMES", "RULE", "ENDS", "MESSAGE"];
    let mut grid = Grid::new(headers).wrapping();
    let plain = |text: String| (text, Paint::Plain);
    for finding in findings {
        let severity = finding.severity.map_or("rule failed", |severity| severity.as_str());
        let rule = match (&finding.policy, finding.policy_version) {
            (Some(policy), Some(version)) => format!("{} ({policy} v{version})", finding.rule),
            (Some(policy), None) => format!("{} ({policy})", finding.rule),
            (None, _) => finding.rule.clone(),
        };
        let ends = match (finding.ends, finding.ends_at.as_deref()) {
            (FindingEnd::WhenCheckPasses, _) => "check passes".to_owned(),
            (FindingEnd::AtReboot, _) => "reboot".to_owned(),
            (FindingEnd::AtTime, Some(at)) => times.due(at),
            (FindingEnd::AtTime, None) => String::new(),
        };
        let mut message = finding.message.clone();
        if !finding.evidence.is_empty() && finding.evidence != finding.message {
            message.push_str(&format!(" [{}]", finding.evidence));
        }
        grid.row([
            plain(finding.key.clone()),
            (severity.to_owned(), Paint::of_state(severity)),
            plain(finding.gpu.clone()),
            plain(times.age(&finding.last_seen)),
            plain(finding.count.to_string()),
            plain(rule),
            plain(ends),
            plain(message),
        ]);
    }
    (!findings.is_empty()).then_some(grid)
}

fn checks(checks: &[HealthCheck], times: Times) -> Option<Grid> {
    let mut grid = Grid::new(&["CHECK", "IS", "SINCE", "MESSAGE"]).wrapping();
    for check in checks {
        let word = check.status.as_str();
        grid.row([
            (check.name.clone(), Paint::Plain),
            (word.to_owned(), Paint::of_state(word)),
            (times.age(&check.since), Paint::Plain),
            (check.message.clone(), Paint::Plain),
        ]);
    }
    (!checks.is_empty()).then_some(grid)
}

fn gpu_lines(of: &[Gpu]) -> Option<Grid> {
    let headers = &[
        "GPU", "MODEL", "UTIL", "MEMORY", "TEMP", "POWER", "DRIVER", "CUDA", "BUS", "SERIAL",
        "UUID",
    ];
    let mut grid = Grid::new(headers);
    for gpu in of {
        let cells = [
            gpu.index.to_string(),
            if gpu.name.is_empty() { String::new() } else { model(&gpu.name) },
            gpu.utilization.map(|percent| format!("{percent:.0}%")).unwrap_or_default(),
            memory(gpu),
            gpu.temperature.map(|degrees| format!("{degrees}C")).unwrap_or_default(),
            gpu.power.map(|watts| format!("{watts}W")).unwrap_or_default(),
            gpu.driver_version.clone(),
            gpu.cuda_version.clone(),
            gpu.pci_bus_id.clone(),
            gpu.serial.clone(),
            gpu.uuid.clone(),
        ];
        grid.row(cells.map(|cell| (cell, Paint::Plain)));
    }
    (!gpus(of).is_empty()).then_some(grid)
}

/// `61.2/80 GiB`, or what of it is known.
fn memory(gpu: &Gpu) -> String {
    let total = u64::try_from(gpu.memory_total).unwrap_or(0);
    match (gpu.memory_used, total) {
        (None, 0) => String::new(),
        (None, total) => format!("{} GiB", gib(total)),
        (Some(used), 0) => format!("{}/? GiB", gib(used)),
        (Some(used), total) => format!("{}/{} GiB", gib(used), gib(total)),
    }
}

/// Bytes in GiB, with at most one digit after the point.
pub(in crate::cmd) fn gib(bytes: u64) -> String {
    // Tenths, rounded; a whole number is written without them.
    let tenths = u128::from(bytes).saturating_mul(10).saturating_add(1 << 29) >> 30;
    match tenths % 10 {
        0 => format!("{}", tenths / 10),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

fn command_lines(commands: &[Command], times: Times) -> Option<Grid> {
    let mut grid = Grid::new(&["COMMAND", "IS", "AGE", "BY", "REASON", "SAID", "ID"]).wrapping();
    for command in commands {
        let word = command.outcome.map_or(command.state.as_str(), |outcome| outcome.as_str());
        let cells = [
            (command.type_.to_string(), Paint::Plain),
            (word.to_owned(), Paint::of_state(word)),
            (times.age(&command.issued_at), Paint::Plain),
            (command.by.clone(), Paint::Plain),
            (command.reason.clone(), Paint::Plain),
            (command.message.clone(), Paint::Plain),
            (command.id.clone(), Paint::Plain),
        ];
        grid.row(cells);
    }
    (!commands.is_empty()).then_some(grid)
}

#[cfg(test)]
mod tests;
