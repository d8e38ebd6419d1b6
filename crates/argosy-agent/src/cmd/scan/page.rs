//! What a scan found, for people: the verdict and its reasons first, then GPUs, the machine, and what could
//! not be seen.

use super::report::{GpuFound, Reason, Report, SignalFound};
use crate::check::Word;
use crate::cmd::gpus::{cut, grid, model, totals, whole_gib};
use crate::gpu::{Inventory, Sweep};
use crate::host::HostSample;
use argosy_term::{Paint, Screen, clean};
use jiff::{SignedDuration, Timestamp};

/// How many reasons, and how many other signals, a page has; JSON has all.
const SHOWN_MAX: usize = 12;

pub(super) fn page(report: &Report, screen: &Screen) -> String {
    let mut out = headline(report, screen);
    let shown = || report.reasons.iter().take(SHOWN_MAX);
    let widest = shown().map(|reason| clean(&reason.code).chars().count()).max().unwrap_or(0);
    for reason in shown() {
        out.push_str(&reason_lines(reason, widest, report.at, screen));
    }
    out.push_str(&more(report.reasons.len()));
    out.push('\n');
    out.push_str(&gpus(report, screen));
    let host = report.host.as_ref().map(host_line).filter(|line| !line.is_empty());
    if let Some(host) = host {
        out.push('\n');
        out.push_str(&screen.paragraph("host    ", &host));
    }
    out.push_str(&others(report, screen));
    if !report.unseen.is_empty() {
        out.push_str("\nNot seen:\n");
        for unseen in &report.unseen {
            out.push_str(&screen.paragraph("  ", &format!("{}: {}", unseen.what, unseen.why)));
        }
    }
    out.push_str(&format!("\nLooked for {} ms.\n", report.took_ms));
    out
}

const fn look(word: Word) -> (&'static str, Paint) {
    match word {
        Word::Healthy => ("HEALTHY", Paint::Good),
        Word::Degraded => ("DEGRADED", Paint::Busy),
        Word::Unhealthy => ("UNHEALTHY", Paint::Bad),
    }
}

fn headline(report: &Report, screen: &Screen) -> String {
    let (word, paint) = look(report.verdict);
    let about = match (report.gpus.len(), report.reasons.len()) {
        (0, 0) if report.driver.error.is_none() => {
            "nothing is wrong with what was looked at, which was not the GPUs".to_owned()
        }
        (0, 0) => "a machine without GPUs, and nothing is wrong with it".to_owned(),
        (1, 0) => "1 GPU, and nothing is wrong".to_owned(),
        (count, 0) => format!("{count} GPUs, and nothing is wrong"),
        (_, 1) => "for this reason:".to_owned(),
        (_, count) => format!("for {count} reasons:"),
    };
    format!("{}: {about}\n", screen.paint(word, paint))
}

fn reason_lines(reason: &Reason, widest: usize, at: Timestamp, screen: &Screen) -> String {
    let (_, paint) = look(reason.word);
    let place = match (reason.gpu.map(|gpu| format!("GPU {gpu}")), &reason.pci) {
        (Some(gpu), _) if reason.message.contains(&gpu) => String::new(),
        (Some(gpu), _) => format!("{gpu}: "),
        (None, Some(pci)) => format!("at {pci}: "),
        (None, None) => String::new(),
    };
    let often = match (reason.count, reason.last) {
        (_, None) => String::new(),
        (1, Some(last)) => format!(" ({} ago)", age(last, at)),
        (count, Some(last)) => format!(" ({count} times, last {} ago)", age(last, at)),
    };
    let code = clean(&reason.code);
    let text = format!("{place}{}{often}", reason.message);
    let mut out = screen.paragraph(&format!("  {code:widest$}  "), &text);
    // Painted after the lines were broken, or the marks would count as letters.
    out = out.replacen(&code, &screen.paint(&code, paint), 1);
    if !reason.advice.is_empty() {
        out.push_str(&screen.paragraph(&format!("  {:widest$}  → ", ""), &reason.advice));
    }
    out
}

fn more(count: usize) -> String {
    match count.checked_sub(SHOWN_MAX) {
        None | Some(0) => String::new(),
        Some(more) => format!("  … and {more} more; `-o json` has all of them\n"),
    }
}

fn gpus(report: &Report, screen: &Screen) -> String {
    if report.gpus.is_empty() {
        let why = report.driver.error.as_deref().unwrap_or("none were asked for");
        return screen.paragraph("gpus    ", &format!("none: {why}"));
    }
    let (inventory, sweep) = whole(&report.gpus, report);
    let mut out = format!("{}\n", cut(screen, &totals(&inventory, &sweep)));
    out.push_str(&grid(&inventory, &sweep, false).render(screen, true));
    out
}

/// As the table wants it.
fn whole(gpus: &[GpuFound], report: &Report) -> (Inventory, Sweep) {
    let inventory = Inventory {
        driver_version: report.driver.version.clone(),
        gpus: gpus.iter().filter_map(|gpu| gpu.identity.clone()).collect(),
        ..Inventory::default()
    };
    let unreadable = gpus.iter().filter(|gpu| gpu.reading.is_none()).map(|gpu| {
        let said = gpu.unreadable.clone().unwrap_or_else(|| "not read".to_owned());
        (gpu.index, said)
    });
    let sweep = Sweep {
        count: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
        gpus: gpus.iter().filter_map(|gpu| gpu.reading.clone()).collect(),
        unreadable: unreadable.collect(),
        ..Sweep::default()
    };
    (inventory, sweep)
}

fn host_line(host: &HostSample) -> String {
    let mut parts = Vec::new();
    if let Some(cpu) = &host.cpu {
        let used = cpu.used_percent.map(|used| format!(", {used:.0}% busy")).unwrap_or_default();
        parts.push(format!("{} processors{used}", cpu.count));
    }
    if let Some(memory) = &host.memory {
        let used = memory.total_bytes.saturating_sub(memory.available_bytes);
        parts.push(format!("memory {}/{} GiB", whole_gib(used), whole_gib(memory.total_bytes)));
    }
    let fullest = host.disks.iter().filter_map(|disk| Some((disk.used_percent?, &disk.mount)));
    if let Some((used, mount)) = fullest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        parts.push(format!("fullest disk {mount} {used:.0}%"));
    }
    if !host.ports.is_empty() {
        let active = host.ports.iter().filter(|port| port.active == Some(true)).count();
        parts.push(format!("InfiniBand {active}/{} ports active", host.ports.len()));
    }
    match host.clock_synchronised {
        Some(true) => parts.push("clock synchronised".to_owned()),
        Some(false) => parts.push("clock not synchronised".to_owned()),
        None => {}
    }
    if let Some(uptime) = host.uptime_s.and_then(|s| i64::try_from(s).ok()) {
        parts.push(format!("up {}", span(SignedDuration::from_secs(uptime))));
    }
    parts.join("; ")
}

/// What was seen and speaks against nothing: for people who look for the cause of something else.
fn others(report: &Report, screen: &Screen) -> String {
    let said = |found: &&SignalFound| {
        !report.reasons.iter().any(|reason| reason.message == found.signal.message)
    };
    let others: Vec<&SignalFound> = report.signals.iter().filter(said).collect();
    if others.is_empty() {
        return String::new();
    }
    let title = "Also seen since this boot, and harmless by itself:";
    let mut out = format!("\n{}", screen.paragraph("", title));
    for SignalFound { signal, explained } in others.iter().take(SHOWN_MAX) {
        let place = signal.gpu.as_ref().map(|gpu| format!("GPU {}: ", gpu.index));
        let name = explained.as_ref().map(|row| format!(" ({}, {})", model(&row.name), row.class));
        let often =
            if signal.count == 1 { String::new() } else { format!(", {} times", signal.count) };
        let text = format!(
            "{}{}{}{often}, {} ago",
            place.unwrap_or_default(),
            signal.message,
            name.unwrap_or_default(),
            age(signal.last, report.at)
        );
        out.push_str(&screen.paragraph("  ", &text));
    }
    out.push_str(&more(others.len()));
    out
}

fn age(then: Timestamp, now: Timestamp) -> String {
    span(now.duration_since(then).max(SignedDuration::ZERO))
}

/// A length of time, in at most two units.
fn span(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m"),
        3600..172_800 => format!("{hours}h{}m", minutes % 60),
        172_800.. => format!("{days}d"),
    }
}
