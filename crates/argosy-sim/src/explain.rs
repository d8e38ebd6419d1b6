//! Makes a failing seed small, and tells it as a short story.
//!
//! What is left out stays out only if the seed fails in the same way without it: first kinds of trouble, then
//! single faults by their number, half of them at a time. What remains is what matters.

use crate::outcome::{Outcome, Violation};
use crate::run::{Product, RunError, Watcher, ran};
use crate::scenario::{Cloud, Control, Link, Scenario, Store, Trouble};
use crate::world::{Cut, Line};
use std::fmt;
use std::time::Duration;

/// How many runs are spent on making a seed small. Each is a run of the scenario at most.
pub const RUNS_MAX: usize = 60;

/// How many lines a story has.
const LINES_MAX: usize = 60;

/// A failing seed, made small.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// What is broken.
    pub violation: Violation,
    /// The kinds of trouble that do not matter.
    pub without: Vec<String>,
    /// How many faults matter, and how many there were.
    pub faults: (u64, u64),
    /// What happened: seconds since the beginning, and a sentence.
    pub lines: Vec<(f64, String)>,
    /// The command that runs it again.
    pub command: String,
}

/// The command that runs a seed again.
#[must_use]
pub fn replay(outcome: &Outcome) -> String {
    format!("argosy sim run {} --seed {}", outcome.scenario, outcome.seed)
}

/// Makes a failing seed small; `None` if it does not fail.
///
/// # Errors
/// See `RunError`.
pub fn explain(
    scenario: &Scenario,
    product: &Product,
    seed: u64,
    watcher: &Watcher,
) -> Result<Option<Story>, RunError> {
    let mut shrink = Shrink {
        product,
        seed,
        watcher,
        scenario: scenario.clone(),
        cut: Cut::default(),
        invariant: String::new(),
        runs: 0,
    };
    let first = ran(scenario, product, seed, watcher, Cut::default(), false)?;
    let Some(violation) = first.outcome.violations.first().cloned() else { return Ok(None) };
    shrink.invariant.clone_from(&violation.invariant);
    shrink.shorten(&violation)?;
    let mut without = Vec::new();
    for (name, leave_out) in kinds() {
        let mut smaller = shrink.scenario.clone();
        leave_out(&mut smaller.trouble);
        if smaller.trouble != shrink.scenario.trouble && shrink.fails(&smaller, None)?.is_some() {
            shrink.scenario = smaller;
            without.push(name.to_owned());
        }
    }
    for index in (0..scenario.trouble.hardware.len()).rev() {
        let mut smaller = shrink.scenario.clone();
        let cause = smaller.trouble.hardware.remove(index);
        if shrink.fails(&smaller, None)?.is_some() {
            shrink.scenario = smaller;
            without.push(cause.name);
        }
    }
    let trials = shrink.drop_faults()?;
    let told = ran(&shrink.scenario, product, seed, watcher, shrink.cut.clone(), true)?;
    let violation = told.outcome.violations.first().cloned().unwrap_or(violation);
    let left = trials.saturating_sub(shrink.cut.skip.len() as u64);
    let lines = short(&told.story, &violation);
    let command = replay(&told.outcome);
    Ok(Some(Story { violation, without, faults: (left, first.trials), lines, command }))
}

struct Shrink<'a> {
    product: &'a Product,
    seed: u64,
    watcher: &'a Watcher,
    scenario: Scenario,
    cut: Cut,
    invariant: String,
    runs: usize,
}

impl Shrink<'_> {
    /// Whether it fails in the same way like this; how many faults there were then.
    fn fails(
        &mut self,
        scenario: &Scenario,
        cut: Option<&Cut>,
    ) -> Result<Option<(u64, Violation)>, RunError> {
        if RUNS_MAX <= self.runs {
            return Ok(None);
        }
        self.runs += 1;
        let cut = cut.unwrap_or(&self.cut).clone();
        let ran = ran(scenario, self.product, self.seed, self.watcher, cut, false)?;
        self.watcher.done(&ran.outcome);
        let same = ran.outcome.violations.into_iter().find(|it| it.invariant == self.invariant);
        Ok(same.map(|violation| (ran.trials, violation)))
    }

    /// Nothing after the violation matters. One of a world that did not settle comes at its end.
    fn shorten(&mut self, violation: &Violation) -> Result<(), RunError> {
        let until = Duration::from_secs_f64(violation.at + 1.0);
        let cut = Cut { until: Some(until), ..self.cut.clone() };
        let scenario = self.scenario.clone();
        if self.fails(&scenario, Some(&cut))?.is_some() {
            self.cut = cut;
        }
        Ok(())
    }

    /// Leaves out as many single faults as can be left out; says how many there are.
    fn drop_faults(&mut self) -> Result<u64, RunError> {
        let scenario = self.scenario.clone();
        let Some((trials, _)) = self.fails(&scenario, None)? else { return Ok(0) };
        let mut left: Vec<u64> = (1..=trials).collect();
        let mut size = left.len().div_ceil(2);
        while 0 < size && !left.is_empty() && self.runs < RUNS_MAX {
            let mut from = 0;
            while from < left.len() && self.runs < RUNS_MAX {
                let chunk: Vec<u64> = left.iter().skip(from).take(size).copied().collect();
                let mut cut = self.cut.clone();
                cut.skip.extend(&chunk);
                if self.fails(&scenario, Some(&cut))?.is_some() {
                    self.cut = cut;
                    left.retain(|number| !chunk.contains(number));
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
        Ok(trials)
    }
}

/// Leaves a kind of trouble out.
type LeaveOut = fn(&mut Trouble);

/// Kinds of trouble, and how each is left out.
fn kinds() -> [(&'static str, LeaveOut); 13] {
    [
        ("cascades", |trouble| trouble.cascade = None),
        ("outages", |trouble| trouble.outages.clear()),
        ("lost messages", |trouble| {
            trouble.link = Link { loss: 0.0, twice: 0.0, ..trouble.link.clone() };
        }),
        ("partitions", |trouble| trouble.link.partitions_per_day = 0.0),
        ("the cloud's errors", |trouble| {
            trouble.cloud = Cloud { throttled: 0.0, errors: 0.0, ..trouble.cloud.clone() };
        }),
        ("lost answers of the cloud", |trouble| trouble.cloud.lost_answers = 0.0),
        ("stock-outs", |trouble| trouble.cloud.stockouts_per_day = 0.0),
        ("bad machines", |trouble| {
            trouble.cloud =
                Cloud { duds: 0.0, lemons: 0.0, reclaimed_per_day: 0.0, ..trouble.cloud.clone() };
        }),
        ("late lists", |trouble| trouble.cloud.list_lag = jiff::SignedDuration::ZERO),
        ("the disk", |trouble| {
            trouble.store = Store { latency: trouble.store.latency, ..Store::default() };
        }),
        ("crashes of processes", |trouble| trouble.control.crashes_per_day = 0.0),
        ("standstills of processes", |trouble| {
            trouble.control = Control { pauses_per_day: 0.0, ..trouble.control.clone() };
        }),
        ("wrong clocks", |trouble| trouble.control.clock_jumps_per_day = 0.0),
    ]
}

/// The lines that have to do with what is broken: the faults, and whatever the sentence names.
fn short(story: &[Line], violation: &Violation) -> Vec<(f64, String)> {
    let named =
        violation.message.split(|letter: char| !(letter.is_alphanumeric() || letter == '-'));
    let named: Vec<&str> = named
        .filter(|word| word.contains('-') && word.bytes().any(|byte| byte.is_ascii_digit()))
        .collect();
    let matters = |line: &&Line| {
        let text = line.text.as_str();
        text.starts_with("fault ")
            || text.starts_with("process ")
            || text.contains("is broken: ")
            || named.iter().any(|word| text.contains(word))
    };
    let lines: Vec<&Line> = story.iter().filter(matters).collect();
    let skip = lines.len().saturating_sub(LINES_MAX);
    let lines = lines.into_iter().skip(skip);
    lines.map(|line| (line.at.as_secs_f64(), line.text.clone())).collect()
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, at, message } = &self.violation;
        writeln!(f, "{invariant} is broken after {}: {message}", clock(*at))?;
        let (left, all) = self.faults;
        match all {
            0 => write!(f, "no fault was drawn: it is what the script does")?,
            all => write!(f, "{left} of {all} faults matter")?,
        }
        if self.without.is_empty() {
            writeln!(f, ".")?;
        } else {
            writeln!(f, "; it happens as well without {}.", self.without.join(", "))?;
        }
        writeln!(f)?;
        for (at, text) in &self.lines {
            writeln!(f, "{:>14}  {text}", clock(*at))?;
        }
        writeln!(f)?;
        writeln!(f, "Run it again: {}", self.command)
    }
}

/// `1d 02:03:04.5`.
fn clock(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a scenario has fewer tenths of a second than that"
    )]
    let tenths = (seconds.max(0.0) * 10.0).round() as u64;
    let (whole, tenth) = (tenths / 10, tenths % 10);
    let (days, rest) = (whole / 86_400, whole % 86_400);
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    let days = if days == 0 { String::new() } else { format!("{days}d ") };
    format!("{days}{hours:02}:{minutes:02}:{seconds:02}.{tenth}")
}
