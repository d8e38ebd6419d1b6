//! Policies, verdicts and backtests as people read them.

use super::count;
use crate::output::{Format, Grid, Paint, Screen, clean, indent, span};
use crate::session::Session;
use crate::view::Times;
use argosy_api::node::{Severity, Verdict};
use argosy_api::policy::{BacktestHit, BacktestReport, Policy, PolicyPut, Rule};
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// Every policy, a line each.
pub(super) fn list(session: &Session, policies: &[Policy]) -> String {
    let times = Times::of(session);
    let mut grid =
        Grid::new(&["NAME", "VERSION", "POOLS", "RULES", "CHANGED", "BY", "DESCRIPTION"]);
    for policy in policies {
        // The built-in one was never changed.
        let changed = match policy.version {
            0 => String::new(),
            _ => times.age(&policy.updated_at),
        };
        let cells = [
            policy.name.clone(),
            policy.version.to_string(),
            policy.spec.pools.join(","),
            policy.spec.rules.len().to_string(),
            changed,
            policy.updated_by.clone(),
            policy.spec.description.clone(),
        ];
        grid.row(cells.map(|cell| (cell, Paint::Plain)));
    }
    grid.render(&session.screen, session.headers)
}

/// One policy, rule by rule.
pub(super) fn policy(session: &Session, policy: &Policy) -> String {
    let Policy { name, version, spec, .. } = policy;
    let mut text = format!("{} version {version}", clean(name));
    if !spec.pools.is_empty() {
        text.push_str(&format!(", for {}", clean(&spec.pools.join(", "))));
    }
    text.push('\n');
    if !spec.description.is_empty() {
        text.push_str(&format!("{}\n", clean(&spec.description)));
    }
    let mut rules: Vec<&Rule> = spec.rules.iter().collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    let prioritised = rules.iter().any(|rule| rule.priority != 0);
    let wide = session.format == Format::Wide;
    let mut headers = vec!["RULE", "RESULT", "LASTS"];
    headers.extend(prioritised.then_some("PRIORITY"));
    headers.push(if wide { "CONDITION" } else { "DESCRIPTION" });
    let mut grid = Grid::new(&headers).wrapping();
    for rule in rules {
        let lasts = match (&rule.lasts, rule.result) {
            (Some(lasts), _) => lasts.clone(),
            (None, Severity::Unhealthy) => "reboot".to_owned(),
            (None, Severity::Degraded) => "1h".to_owned(),
            (None, Severity::Healthy) => String::new(),
        };
        let mut cells = vec![
            (rule.name.clone(), Paint::Plain),
            (rule.result.to_string(), paint(rule.result)),
            (lasts, Paint::Plain),
        ];
        cells.extend(prioritised.then(|| (rule.priority.to_string(), Paint::Plain)));
        let said = match (wide, rule.description.is_empty()) {
            (false, false) => &rule.description,
            (true, _) | (false, true) => &rule.condition,
        };
        cells.push((said.clone(), Paint::Plain));
        grid.row(cells);
    }
    let screen = if wide { session.screen.unbounded() } else { session.screen };
    format!("{text}\n{}", grid.render(&screen, session.headers))
}

fn paint(severity: Severity) -> Paint {
    match severity {
        Severity::Healthy => Paint::Good,
        Severity::Degraded => Paint::Busy,
        Severity::Unhealthy => Paint::Bad,
    }
}

/// The one word of a verdict.
pub(super) fn word(verdict: &Verdict) -> &'static str {
    verdict.severity.map_or("error", Severity::as_str)
}

/// What a policy says, and why.
pub(super) fn verdict(screen: &Screen, verdict: &Verdict) -> String {
    let Verdict { policy, policy_version, rule, severity, error, message, inputs, .. } = verdict;
    let paint = severity.map_or(Paint::Bad, paint);
    let by = match rule.as_str() {
        "" => format!("no rule of {} version {policy_version} matches", clean(policy)),
        rule => format!("by {} of {} version {policy_version}", clean(rule), clean(policy)),
    };
    let mut text = format!("{}  {by}\n", screen.paint(word(verdict), paint));
    let mut line = |line: &str| text.push_str(&format!("  {}\n", clean(line)));
    match error {
        Some(error) => {
            line(error);
            line("Nothing is concluded from it: the node is Unknown, and nothing is done to it.");
        }
        None if !message.is_empty() => line(message),
        None => {}
    }
    match (severity, verdict.lasts_seconds) {
        (None | Some(Severity::Healthy), _) => {}
        (Some(_), None) => line("Lasts until the node boots again, or a diagnostic passes."),
        (Some(_), Some(seconds)) => {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            let length = span(SignedDuration::from_secs(seconds));
            line(&format!("Lasts {length} without a repeat."));
        }
    }
    for input in inputs {
        line(&format!("- {input}"));
    }
    text
}

/// How the cases of a test came out.
pub(super) fn results(session: &Session, results: &[(&str, Result<(), String>)]) -> String {
    let mut grid = Grid::new(&["RESULT", "CASE", "WHY"]).wrapping();
    for (name, result) in results {
        let (word, paint, why) = match result {
            Ok(()) => ("ok", Paint::Good, String::new()),
            Err(why) => ("failed", Paint::Bad, why.clone()),
        };
        grid.row([
            (word.to_owned(), paint),
            ((*name).to_owned(), Paint::Plain),
            (why, Paint::Plain),
        ]);
    }
    grid.render(&session.screen, session.headers)
}

/// Whom a policy would have hit.
pub(super) fn backtest(session: &Session, report: &BacktestReport) -> String {
    let times = Times::of(session);
    let (Some(from), Some(to)) = (&report.from, &report.to) else {
        return "No event was recorded in that time.\n".to_owned();
    };
    let mut text = format!(
        "{} from {} to {}; {} hit alike by both\n",
        count(report.events, "event"),
        times.ago(from),
        times.ago(to),
        count(report.both, "node"),
    );
    let mut section = |title: &str, hits: &[BacktestHit]| {
        text.push_str(&format!("\n{title}: {}\n", count(hits.len(), "node")));
        if hits.is_empty() {
            return;
        }
        let mut grid = Grid::new(&["NODE", "RESULT", "RULE", "WHEN", "EVENT"]);
        for hit in hits {
            grid.row([
                (hit.node_id.clone(), Paint::Plain),
                (hit.severity.to_string(), paint(hit.severity)),
                (hit.rule.clone(), Paint::Plain),
                (times.age(&hit.at), Paint::Plain),
                (hit.event.clone(), Paint::Plain),
            ]);
        }
        text.push_str(&indent(&grid.render(&session.screen.indented(2), session.headers), 2));
    };
    section("Hit by the file, and not or not as hard by the policy in force", &report.only_new);
    section("Hit by the policy in force, and not or not as hard by the file", &report.only_current);
    if !report.errors.is_empty() {
        text.push_str("\nRules of the file that failed, which makes a node Unknown:\n");
        for error in &report.errors {
            text.push_str(&format!("  {}× {}\n", error.count, clean(&error.message)));
        }
    }
    text
}

/// What `apply` would change.
pub(super) struct Changes {
    pub(super) text: String,
    pub(super) count: usize,
}

pub(super) fn changes(
    session: &Session,
    name: &str,
    current: Option<&Policy>,
    wanted: &PolicyPut,
) -> Changes {
    let screen = &session.screen;
    let before = current.map(|policy| policy.spec.clone()).unwrap_or_default();
    let mut lines = Vec::new();
    let mut note = |text: String, paint| lines.push(format!("    {}", screen.paint(&text, paint)));
    if before.pools != wanted.pools {
        let shown = |pools: &[String]| clean(&pools.join(", "));
        note(format!("~ pools: {} → {}", shown(&before.pools), shown(&wanted.pools)), Paint::Busy);
    }
    if before.description != wanted.description {
        note("~ description".to_owned(), Paint::Busy);
    }
    let by_name = |rules: &[Rule]| -> BTreeMap<String, Rule> {
        rules.iter().map(|rule| (rule.name.clone(), rule.clone())).collect()
    };
    let (old, new) = (by_name(&before.rules), by_name(&wanted.rules));
    for rule in &wanted.rules {
        let name = clean(&rule.name);
        match old.get(&rule.name) {
            None => note(format!("+ {name} → {}", rule.result), Paint::Good),
            Some(known) if known != rule => {
                note(format!("~ {name}: {}", difference(known, rule)), Paint::Busy);
            }
            Some(_) => {}
        }
    }
    for rule in before.rules.iter().filter(|rule| !new.contains_key(&rule.name)) {
        note(format!("- {} → {}", clean(&rule.name), rule.result), Paint::Bad);
    }
    let kept = |rules: &[Rule], other: &BTreeMap<String, Rule>| -> Vec<String> {
        let kept = rules.iter().filter(|rule| other.contains_key(&rule.name));
        kept.map(|rule| rule.name.clone()).collect()
    };
    if kept(&before.rules, &new) != kept(&wanted.rules, &old) {
        note("~ the order of rules".to_owned(), Paint::Busy);
    }
    let count = lines.len();
    let title = format!("policy {}", clean(name));
    // The built-in one is not ours to change: it is put aside.
    let title = match (current.filter(|policy| policy.version != 0), count) {
        (_, 0) => screen.paint(&format!("  {title} is so already"), Paint::Dim),
        (None, _) => screen.paint(&format!("+ {title}"), Paint::Good),
        (Some(_), _) => screen.paint(&format!("~ {title}"), Paint::Busy),
    };
    lines.insert(0, title);
    Changes { text: lines.join("\n") + "\n", count }
}

/// Which members of a rule differ.
fn difference(before: &Rule, after: &Rule) -> String {
    let mut members = Vec::new();
    if before.result != after.result {
        members.push(format!("result {} → {}", before.result, after.result));
    }
    for (name, differs) in [
        ("condition", before.condition != after.condition),
        ("priority", before.priority != after.priority),
        ("lasts", before.lasts != after.lasts),
        ("description", before.description != after.description),
    ] {
        members.extend(differs.then(|| name.to_owned()));
    }
    members.join(", ")
}
