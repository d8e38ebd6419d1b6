//! What came of runs, for people and programs: text for a terminal, JSON, and one page to send around.
//!
//! What a newcomer gets wrong: nothing here knows when or where it runs. The same outcomes make the same
//! report, byte by byte, so a report can be compared like a digest.

pub mod compare;

pub mod figures;

pub mod html;

mod plot;

pub mod story;

pub mod text;

mod words;

use crate::outcome::{Outcome, Violation};
use crate::scenario::{Cause, Rate, Scenario};
use figures::Figures;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a report says beside what came of the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What the scenario is called on the command line: its name, or its file.
    pub reference: String,
    /// What else was on the command line and changes what happens: `--config`, `mine.yaml`.
    pub options: Vec<String>,
    /// One line about the scenario.
    pub summary: String,
    /// Its text.
    pub source: String,
    /// How often each cause was to be expected in one run, by its rate.
    pub expected: BTreeMap<String, f64>,
    /// What led to a violation, by seed.
    pub stories: BTreeMap<u64, Vec<String>>,
}

impl About {
    /// The command that does something with the same scenario and a seed: `argosy sim run NAME --seed 7`.
    #[must_use]
    pub fn command(&self, verb: &str, seed: u64) -> String {
        let mut words = vec!["argosy".to_owned(), "sim".to_owned(), verb.to_owned()];
        words.push(quoted(&self.reference));
        words.extend(["--seed".to_owned(), seed.to_string()]);
        words.extend(self.options.iter().map(|word| quoted(word)));
        words.join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '=' | ':' | '+');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// How often each cause of a scenario was to be expected in one run: its rate, times what was exposed to it.
///
/// Causes of the same name are counted together. Only the time before faults stop counts. Nothing is expected where
/// faults bring others along.
#[must_use]
pub fn expected(scenario: &Scenario, outcomes: &[Outcome]) -> BTreeMap<String, f64> {
    // What brings others along is more than its rate says, by as much as there are machines near it.
    if scenario.trouble.cascade.is_some() {
        return BTreeMap::new();
    }
    let days = scenario.duration.as_secs_f64() / 86_400.0;
    let runs = outcomes.len().max(1) as f64;
    let exposed: f64 = outcomes.iter().map(|outcome| gpu_hours(outcome, days * 24.0)).sum();
    let (gpus, nodes) = outcomes
        .iter()
        .fold((0, 0), |(gpus, nodes), outcome| (gpus + outcome.gpus, nodes + outcome.nodes));
    let gpus_each = if nodes == 0 { 1.0 } else { (gpus as f64 / nodes as f64).max(1.0) };
    let of = |cause: &Cause| match cause.rate {
        Rate::PerMillionGpuHours(rate) => rate * exposed / 1e6 / runs,
        Rate::PerThousandNodeDays(rate) => rate * exposed / gpus_each / 24.0 / 1e3 / runs,
        Rate::PerDay(rate) => rate * days,
    };
    let mut expected = BTreeMap::new();
    for cause in &scenario.trouble.hardware {
        *expected.entry(cause.name.clone()).or_insert(0.0) += of(cause);
    }
    expected
}

/// GPU-hours that there were in the first so many hours.
fn gpu_hours(outcome: &Outcome, hours: f64) -> f64 {
    let step = outcome.series.step_seconds / 3_600.0;
    if step <= 0.0 {
        return 0.0;
    }
    let present = outcome.series.present.iter().enumerate();
    present
        .take_while(|(place, _)| (*place as f64) * step < hours)
        .map(|(_, gpus)| f64::from(*gpus) * step)
        .sum()
}

/// The report as a document. `docs/simulator-reports.md` lists its fields.
///
/// `digest`, `simulated_seconds`, `events`, `violations`, `passed` and `figures` are there for one seed and
/// for many. One seed has everything of its outcome beside them; many have `runs` instead, each without its
/// series and its faults, which are long: one seed alone prints them.
#[must_use]
pub fn json(about: &About, outcomes: &[Outcome]) -> Value {
    let figures = Figures::of(outcomes, &about.expected);
    if let [outcome] = outcomes {
        let mut document = serde_json::to_value(outcome).unwrap_or_default();
        if let Value::Object(members) = &mut document {
            members.insert("kind".to_owned(), json!("SimulationRun"));
            members.insert("passed".to_owned(), json!(passed(outcome)));
            members.insert("replay".to_owned(), json!(about.command("run", outcome.seed)));
            members.insert("figures".to_owned(), json!(figures));
        }
        return document;
    }
    let runs: Vec<Value> = outcomes.iter().map(|outcome| brief(about, outcome)).collect();
    let violations: Vec<Value> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.violations.iter().map(|violation| with_seed(outcome, violation))
        })
        .collect();
    json!({
        "kind": "SimulationRuns",
        "scenario": outcomes.first().map(|outcome| &outcome.scenario),
        "seeds": outcomes.len(),
        "seeds_failed": outcomes.iter().filter(|outcome| !passed(outcome)).count(),
        "passed": outcomes.iter().all(passed),
        "digest": digest(outcomes),
        "simulated_seconds": outcomes.iter().map(|outcome| outcome.simulated_seconds).sum::<f64>(),
        "events": outcomes.iter().map(|outcome| outcome.events).sum::<u64>(),
        "violations": violations,
        "figures": figures,
        "runs": runs,
    })
}

fn with_seed(outcome: &Outcome, violation: &Violation) -> Value {
    json!({
        "seed": outcome.seed,
        "invariant": violation.invariant,
        "at": violation.at,
        "message": violation.message,
    })
}

/// One of many runs, without what is long.
fn brief(about: &About, outcome: &Outcome) -> Value {
    let mut document = serde_json::to_value(outcome).unwrap_or_default();
    if let Value::Object(members) = &mut document {
        members.remove("series");
        members.remove("faults");
        members.insert("passed".to_owned(), json!(passed(outcome)));
        members.insert("replay".to_owned(), json!(about.command("run", outcome.seed)));
        let figures = Figures::of(std::slice::from_ref(outcome), &about.expected);
        members.insert("figures".to_owned(), json!(figures));
    }
    document
}

/// Whether nothing was that must never be, and everything was as expected.
#[must_use]
pub fn passed(outcome: &Outcome) -> bool {
    outcome.violations.is_empty() && outcome.assertions.iter().all(|checked| checked.holds)
}

/// The digest of many runs: of their seeds and digests, in order. Of one, its own.
#[must_use]
pub fn digest(outcomes: &[Outcome]) -> String {
    use sha2::{Digest, Sha256};
    if let [outcome] = outcomes {
        return outcome.digest.clone();
    }
    let mut hash = Sha256::new();
    for outcome in outcomes {
        hash.update(outcome.seed.to_be_bytes());
        hash.update(outcome.digest.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests;
