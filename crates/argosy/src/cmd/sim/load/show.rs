//! How a run looks while it lasts, and what is printed of it.

use super::Plan;
use super::tally::{Counts, Tally, Turn};
use crate::output::{Format, Grid, Paint, Screen, clean, document, note, print as out, span};
use crate::session::Session;
use argosy_agent::swarm::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar on a terminal, a line now and then elsewhere.
pub(super) struct Progress {
    bar: ProgressBar,
    nodes: u64,
    next_line: Duration,
}

impl Progress {
    pub(super) fn new(screen: Screen, plan: &Plan) -> Self {
        let target = match screen.live && screen.asks {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let length = (plan.ramp + plan.duration).as_secs().max(1);
        let bar = ProgressBar::with_draw_target(Some(length), target);
        let style = ProgressStyle::with_template("{elapsed:>5} {bar:24} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, nodes: plan.nodes, next_line: LINE_EVERY }
    }

    pub(super) fn show(&mut self, tally: &Tally, passed: Duration) {
        if self.bar.is_hidden() {
            if self.next_line <= passed {
                self.next_line += LINE_EVERY;
                let length = SignedDuration::try_from(passed).unwrap_or_default();
                note(&format!("{:>6}  {}", span(length), self.line(&tally.read())));
            }
            return;
        }
        self.bar.set_position(passed.as_secs());
        self.bar.set_message(self.line(&tally.read()));
    }

    fn line(&self, counts: &Counts) -> String {
        let (beats, _) = counts.rates();
        let slow = counts.times.get(&Turn::Heartbeat).or_else(|| counts.times.get(&Turn::Report));
        let slow = slow.and_then(|times| times.at(0.99));
        let slow = slow.map(|time| format!(" · p99 {}", millis(time))).unwrap_or_default();
        format!(
            "{}/{} nodes · {beats:.1} heartbeats/s{slow} · {} errors",
            counts.connected,
            self.nodes,
            counts.errors(),
        )
    }

    pub(super) fn close(&self) {
        self.bar.finish_and_clear();
    }
}

/// What came of a run.
pub(super) struct Outcome {
    pub(super) wire: &'static str,
    pub(super) server: String,
    pub(super) nodes: u64,
    pub(super) started: u64,
    pub(super) passed: Duration,
    pub(super) interrupted: bool,
    pub(super) counts: Counts,
    pub(super) forgotten: u64,
    /// Why nodes were left known to the server, if they should not have been.
    pub(super) left: Option<String>,
}

impl Outcome {
    pub(super) fn json(&self) -> Value {
        let counts = &self.counts;
        let (beats, messages) = counts.rates();
        let mut latency = Map::new();
        for (turn, times) in &counts.times {
            let mut figures = percentiles(times);
            figures.insert("measured".to_owned(), json!(turn.measured()));
            latency.insert(turn.name().to_owned(), Value::Object(figures));
        }
        let kinds: Map<String, Value> = counts
            .kinds
            .iter()
            .map(|(kind, (count, example))| {
                (clean(kind), json!({ "count": count, "example": clean(example) }))
            })
            .collect();
        json!({
            "wire": self.wire,
            "server": clean(&self.server),
            "nodes": self.nodes,
            "started": self.started,
            "registered": counts.registered,
            "connected": counts.connected,
            "seconds": round(self.passed.as_secs_f64()),
            "interrupted": self.interrupted,
            "heartbeats": counts.heartbeats,
            "heartbeats_per_second": round(beats),
            "messages_sent": counts.sent,
            "messages_received": counts.received,
            "messages_per_second": round(messages),
            "commands": counts.commands,
            "faults": counts.faults,
            "reconnects": counts.reconnects,
            "errors": counts.errors(),
            "errors_by_kind": kinds,
            "latency_ms": latency,
            "forgotten": self.forgotten,
            "left_because": self.left,
        })
    }

    fn table(&self, session: &Session) -> String {
        let counts = &self.counts;
        let (beats, messages) = counts.rates();
        let mut figures = Grid::new(&["WHAT", "HOW MANY", "A SECOND"]);
        let mut row = |what: &str, many: u64, rate: Option<f64>| {
            let rate = rate.map(|rate| format!("{rate:.1}")).unwrap_or_default();
            let cells = [what.to_owned(), many.to_string(), rate];
            figures.row(cells.map(|cell| (cell, Paint::Plain)));
        };
        row("nodes started", self.started, None);
        row("nodes registered", counts.registered, None);
        row("nodes connected at the end", counts.connected, None);
        row("heartbeats", counts.heartbeats, Some(beats));
        row("messages, both ways", counts.sent + counts.received, Some(messages));
        row("commands received", counts.commands, None);
        row("faults", counts.faults, None);
        row("reconnects", counts.reconnects, None);
        row("errors", counts.errors(), None);
        let mut text = figures.render(&session.screen, session.headers);

        let mut times = Grid::new(&["LATENCY", "COUNT", "P50", "P99", "P999", "MAX", "MEASURED"]);
        for turn in Turn::ALL {
            let Some(found) = counts.times.get(&turn) else {
                if turn == Turn::Heartbeat && self.wire == "argosy" {
                    let unsaid = [turn.name(), "", "", "", "", "", "streams answer no heartbeats"];
                    times.row(unsaid.map(|cell| (cell.to_owned(), Paint::Plain)));
                }
                continue;
            };
            let at = |share: f64| found.at(share).map(millis).unwrap_or_default();
            let cells = [
                turn.name().to_owned(),
                found.count().to_string(),
                at(0.5),
                at(0.99),
                at(0.999),
                found.max().map(millis).unwrap_or_default(),
                turn.measured().to_owned(),
            ];
            times.row(cells.map(|cell| (cell, Paint::Plain)));
        }
        text.push('\n');
        text.push_str(&times.render(&session.screen, session.headers));
        if !counts.kinds.is_empty() {
            let mut errors = Grid::new(&["ERROR", "COUNT", "FIRST"]);
            for (kind, (count, example)) in &counts.kinds {
                let cells = [kind.clone(), count.to_string(), example.clone()];
                errors.row(cells.map(|cell| (cell, Paint::Plain)));
            }
            text.push('\n');
            text.push_str(&errors.render(&session.screen, session.headers));
        }
        text
    }
}

/// Prints the report.
pub(super) fn print(session: &Session, outcome: &Outcome) {
    match session.format {
        Format::Json => out(&document(&outcome.json(), false)),
        Format::Yaml => out(&document(&outcome.json(), true)),
        Format::Table | Format::Wide => {
            let length = SignedDuration::try_from(outcome.passed).unwrap_or_default();
            let early = if outcome.interrupted { ", ended early" } else { "" };
            out(&format!(
                "{} nodes on the wire {} against {}, {}{early}\n\n{}",
                outcome.nodes,
                outcome.wire,
                clean(&outcome.server),
                span(length),
                outcome.table(session),
            ));
            if 0 < outcome.forgotten {
                note(&format!("the server has forgotten {} nodes", outcome.forgotten));
            }
        }
        Format::Name => out(&format!("load/{}\n", outcome.wire)),
    }
}

fn percentiles(times: &Histogram) -> Map<String, Value> {
    let ms = |time: Option<Duration>| json!(time.map(|time| round(time.as_secs_f64() * 1e3)));
    Map::from_iter([
        ("count".to_owned(), json!(times.count())),
        ("p50".to_owned(), ms(times.at(0.5))),
        ("p99".to_owned(), ms(times.at(0.99))),
        ("p999".to_owned(), ms(times.at(0.999))),
        ("max".to_owned(), ms(times.max())),
    ])
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn millis(time: Duration) -> String {
    match time.as_secs_f64() * 1e3 {
        ms if ms < 10.0 => format!("{ms:.2}ms"),
        ms if ms < 1000.0 => format!("{ms:.0}ms"),
        ms => format!("{:.1}s", ms / 1e3),
    }
}
