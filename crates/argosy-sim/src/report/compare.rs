//! Two configurations, policies or scenarios on the same seeds: what the one would have saved.
//!
//! What a newcomer gets wrong: seeds differ from each other far more than A from B. So each seed is compared
//! with itself, and only the differences are averaged.

mod page;

pub use page::html;

use super::figures::Figures;
use super::text::{Page, Pen, cut, wrapped};
use super::words::{count, dollars, gpu_time, many, number, percent, seconds};
use super::{About, passed};
use crate::outcome::Outcome;
use argosy_term::{Paint, clean};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How two sides compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The seeds that both sides have.
    pub seeds: Vec<u64>,
    /// Seeds that only one side has; they are left out.
    pub seeds_left_out: u64,
    /// Seeds on which exactly the same happened.
    pub seeds_alike: u64,
    /// Seeds on which A failed: a violation, or an assertion that does not hold.
    pub a_failed: Vec<u64>,
    /// Seeds on which B failed.
    pub b_failed: Vec<u64>,
    /// What was compared. What neither side measured is not here.
    pub differences: Vec<Difference>,
}

/// How one measure compares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Which measure: `availability`.
    pub measure: &'static str,
    /// In which unit: `share`, `gpu_seconds`, `seconds`, `dollars`, `count`.
    pub unit: Unit,
    /// Whether more of it is better.
    pub better: Better,
    /// How many seeds have it on both sides.
    pub seeds: u64,
    /// A's, on average.
    pub a: f64,
    /// B's, on average.
    pub b: f64,
    /// B's minus A's, on average.
    pub mean: f64,
    /// The true difference is within so much of the mean, 95 times in 100. `None` for a single seed.
    pub half_width: Option<f64>,
    /// On how many seeds the difference has the sign of the mean.
    pub agree: u64,
    /// What follows.
    pub verdict: Verdict,
    /// The same in words.
    pub words: String,
}

/// The unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 0 to 1.
    Share,
    /// GPUs times seconds.
    GpuSeconds,
    /// Seconds.
    Seconds,
    /// Dollars.
    Dollars,
    /// Things.
    Count,
}

/// Which way a measure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More of it.
    More,
    /// Less of it.
    Less,
}

/// Which side does better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A, beyond chance.
    A,
    /// B, beyond chance.
    B,
    /// It may be chance: the interval holds 0, or there is one seed only.
    Unclear,
    /// No seed shows any difference.
    Same,
}

/// One thing that is compared.
struct Measure {
    key: &'static str,
    unit: Unit,
    better: Better,
    of: fn(&Outcome, &Figures) -> Option<f64>,
    /// What a side does with it, and of what: `loses`, `less`, for "B loses 14.2 GPU-days less".
    verb: &'static str,
    noun: &'static str,
}

const MEASURES: [Measure; 10] = [
    Measure {
        key: "availability",
        unit: Unit::Share,
        better: Better::More,
        of: |_, figures| figures.availability,
        verb: "has",
        noun: "availability",
    },
    Measure {
        key: "goodput",
        unit: Unit::Share,
        better: Better::More,
        of: |_, figures| figures.goodput,
        verb: "has",
        noun: "goodput",
    },
    Measure {
        key: "work_lost",
        unit: Unit::GpuSeconds,
        better: Better::Less,
        of: |_, figures| figures.work_seconds_lost,
        verb: "loses",
        noun: "of work",
    },
    Measure {
        key: "capacity_missing",
        unit: Unit::GpuSeconds,
        better: Better::Less,
        of: |_, figures| figures.availability.map(|_| figures.gpu_seconds_missing),
        verb: "misses",
        noun: "of capacity",
    },
    Measure {
        key: "interruptions",
        unit: Unit::Count,
        better: Better::Less,
        of: |_, figures| Some(figures.interruptions as f64),
        verb: "has",
        noun: "interruptions",
    },
    Measure {
        key: "interruptions_repaired",
        unit: Unit::Count,
        better: Better::More,
        of: |outcome, _| {
            let faults = outcome.faults.iter().filter(|fault| fault.interrupts);
            Some(faults.filter(|fault| fault.repaired_after.is_some()).count() as f64)
        },
        verb: "repairs",
        noun: "interruptions",
    },
    Measure {
        key: "replacements",
        unit: Unit::Count,
        better: Better::Less,
        of: |outcome, _| Some(outcome.actions.get("replace").copied().unwrap_or(0) as f64),
        verb: "makes",
        noun: "replacements",
    },
    Measure {
        key: "detection_p99",
        unit: Unit::Seconds,
        better: Better::Less,
        of: |_, figures| figures.detected.map(|times| times.p99),
        verb: "needs",
        noun: "to know of 99 in 100 faults",
    },
    Measure {
        key: "cost",
        unit: Unit::Dollars,
        better: Better::Less,
        of: |_, figures| (figures.cost != 0.0).then_some(figures.cost),
        verb: "costs",
        noun: "in all",
    },
    Measure {
        key: "cost_wasted",
        unit: Unit::Dollars,
        better: Better::Less,
        of: |_, figures| (figures.cost != 0.0).then_some(figures.cost_wasted),
        verb: "wastes",
        noun: "on idle machines",
    },
];

/// What the two sides are called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sides {
    /// A: what is there today.
    pub a: About,
    /// B: what might be instead.
    pub b: About,
}

/// Compares what came of the same seeds.
#[must_use]
pub fn compare(a: &[Outcome], b: &[Outcome]) -> Comparison {
    let by_seed: BTreeMap<u64, &Outcome> =
        b.iter().map(|outcome| (outcome.seed, outcome)).collect();
    let mut pairs: Vec<(&Outcome, &Outcome)> =
        a.iter().filter_map(|one| Some((one, *by_seed.get(&one.seed)?))).collect();
    pairs.sort_by_key(|(a, _)| a.seed);
    let alone = |outcome: &Outcome| Figures::of(std::slice::from_ref(outcome), &BTreeMap::new());
    let figures: Vec<(Figures, Figures)> =
        pairs.iter().map(|(a, b)| (alone(a), alone(b))).collect();
    let differences = MEASURES.iter().filter_map(|measure| {
        let values: Vec<(f64, f64)> = pairs
            .iter()
            .zip(&figures)
            .filter_map(|((a, b), (of_a, of_b))| {
                Some(((measure.of)(a, of_a)?, (measure.of)(b, of_b)?))
            })
            .collect();
        difference(measure, &values)
    });
    let failed = |side: fn(&(&Outcome, &Outcome)) -> bool| {
        pairs.iter().filter(|pair| side(pair)).map(|(a, _)| a.seed).collect()
    };
    Comparison {
        seeds: pairs.iter().map(|(a, _)| a.seed).collect(),
        seeds_left_out: (a.len() + b.len()).saturating_sub(2 * pairs.len()) as u64,
        seeds_alike: pairs.iter().filter(|(a, b)| a.digest == b.digest).count() as u64,
        a_failed: failed(|(a, _)| !passed(a)),
        b_failed: failed(|(_, b)| !passed(b)),
        differences: differences.collect(),
    }
}

/// The paired difference of one measure; `None` without a seed that has it on both sides.
fn difference(measure: &Measure, values: &[(f64, f64)]) -> Option<Difference> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean_of = |side: fn(&(f64, f64)) -> f64| values.iter().map(side).sum::<f64>() / n;
    let apart: Vec<f64> = values.iter().map(|(a, b)| b - a).collect();
    let mean = apart.iter().sum::<f64>() / n;
    let half_width = (values.len() != 1).then(|| {
        let spread = apart.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
        student(values.len() - 1) * (spread / n).sqrt()
    });
    let agree = apart.iter().filter(|d| 0.0 < **d * mean).count() as u64;
    let verdict = match half_width {
        _ if apart.iter().all(|d| *d == 0.0) => Verdict::Same,
        Some(half) if half < mean.abs() => {
            if (0.0 < mean) == (measure.better == Better::More) {
                Verdict::B
            } else {
                Verdict::A
            }
        }
        Some(_) | None => Verdict::Unclear,
    };
    let mut difference = Difference {
        measure: measure.key,
        unit: measure.unit,
        better: measure.better,
        seeds: values.len() as u64,
        a: mean_of(|(a, _)| *a),
        b: mean_of(|(_, b)| *b),
        mean,
        half_width,
        agree,
        verdict,
        words: String::new(),
    };
    difference.words = words(measure, &difference);
    Some(difference)
}

/// How many standard errors hold 95 of 100 means, by degrees of freedom: Student's t, two-sided.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom.checked_sub(1).and_then(|place| TABLE.get(place)) {
        Some(t) => *t,
        // Within 0.001 of the true value from here on.
        None => 1.960 + 2.4 / freedom as f64,
    }
}

/// `B loses 14.2 GPU-days less of work, ±2.1, on 18 of 20 seeds`.
fn words(measure: &Measure, difference: &Difference) -> String {
    let Difference { mean, half_width, agree, seeds, verdict, .. } = difference;
    let seeds_of = match (seeds, agree) {
        (1, _) => "on one seed".to_owned(),
        (n, agree) if n == agree => format!("on all {} seeds", count(*n)),
        (n, agree) => format!("on {} of {} seeds", count(*agree), count(*n)),
    };
    if *verdict == Verdict::Same {
        return format!("no difference: {}", measure.key.replace('_', " "));
    }
    let more = if 0.0 < *mean { "more" } else { "less" };
    let more = if measure.unit == Unit::Count && more == "less" { "fewer" } else { more };
    let size = unit_text(measure.unit, mean.abs());
    let sentence = format!("B {} {size} {more} {}", measure.verb, measure.noun);
    let error = half_width.map(|half| format!(", ±{}", error_text(measure.unit, *mean, half)));
    let sentence = format!("{sentence}{}, {seeds_of}", error.unwrap_or_default());
    match (verdict, half_width) {
        (Verdict::Unclear, Some(_)) => format!("{sentence}: this may be chance"),
        (Verdict::Unclear, None) => format!("{sentence}: one seed says little"),
        (Verdict::A | Verdict::B | Verdict::Same, _) => sentence,
    }
}

/// A value in its unit. Shares are compared in points of a hundred.
fn unit_text(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{} points", number(value * 100.0)),
        Unit::GpuSeconds => gpu_time(value),
        Unit::Seconds => seconds(value),
        Unit::Dollars => dollars(value),
        Unit::Count => number(value),
    }
}

/// An error beside its value: in the same unit, which need not be said again.
fn error_text(unit: Unit, mean: f64, half: f64) -> String {
    match unit {
        Unit::Share => number(half * 100.0),
        Unit::GpuSeconds if mean.abs() / 3_600.0 < 48.0 => number(half / 3_600.0),
        Unit::GpuSeconds => number(half / 86_400.0),
        Unit::Seconds => seconds(half),
        Unit::Dollars => dollars(half),
        Unit::Count => number(half),
    }
}

/// A side's own value, as a table shows it.
fn value_text(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => percent(value),
        Unit::GpuSeconds if value == 0.0 => "0".to_owned(),
        Unit::GpuSeconds => gpu_time(value).replace(" GPU-", " "),
        Unit::Seconds | Unit::Dollars | Unit::Count => unit_text(unit, value),
    }
}

/// A difference with its sign.
fn signed(difference: &Difference) -> String {
    let sign = match difference.mean {
        mean if 0.0 < mean => "+",
        mean if mean < 0.0 => "-",
        _ => return "0".to_owned(),
    };
    let size = unit_text(difference.unit, difference.mean.abs()).replace(" GPU-", " ");
    format!("{sign}{}", size.replace(" points", " pt"))
}

/// What a side is called: its scenario, and what was given with it.
fn side(about: &About) -> String {
    let mut words = vec![about.reference.clone()];
    words.extend(about.options.iter().cloned());
    words.join(" ")
}

/// The comparison for a terminal.
#[must_use]
pub fn text(sides: &Sides, comparison: &Comparison, pen: &Pen) -> String {
    let mut page = Page { pen, text: String::new() };
    for (name, about) in [("A", &sides.a), ("B", &sides.b)] {
        let said = clean(&side(about));
        page.line(&format!("{name}  {said}"));
    }
    let seeds = comparison.seeds.len() as u64;
    let alike = match comparison.seeds_alike {
        0 => String::new(),
        n if n == seeds => "; nothing happened differently on any of them".to_owned(),
        n => format!("; exactly the same happened on {}", count(n)),
    };
    let left_out = match comparison.seeds_left_out {
        0 => String::new(),
        n => format!("; {} that one side did not finish left out", many(n, "run")),
    };
    page.line(&format!("   the same {} each{alike}{left_out}", many(seeds, "seed")));
    for (name, about, failed) in
        [("A", &sides.a, &comparison.a_failed), ("B", &sides.b, &comparison.b_failed)]
    {
        if let Some(first) = failed.first() {
            let mark = pen.screen.paint("FAILED", Paint::Bad);
            page.line(&format!("{mark}  {name} on {} of {} seeds", failed.len(), count(seeds)));
            let replay = clean(&about.command("run", *first));
            page.line(&format!("  replay: {replay}"));
        }
    }
    page.line("");
    page.line(&format!("{:<24}{:>15}{:>15}{:>15}  {:<10}", "", "A", "B", "B - A", "agree"));
    for difference in &comparison.differences {
        let name = cut(&difference.measure.replace('_', " "), 23);
        let tone = match difference.verdict {
            Verdict::A => Paint::Bad,
            Verdict::B => Paint::Good,
            Verdict::Unclear | Verdict::Same => Paint::Dim,
        };
        // Padded before it is painted: a terminal does not count colours as columns.
        let apart = pen.screen.paint(&format!("{:>15}", signed(difference)), tone);
        page.line(&format!(
            "{name:<24}{:>15}{:>15}{apart}  {}/{}",
            value_text(difference.unit, difference.a),
            value_text(difference.unit, difference.b),
            difference.agree,
            difference.seeds
        ));
    }
    let told = comparison.differences.iter().filter(|d| d.verdict != Verdict::Same);
    let told: Vec<&str> = told.map(|difference| difference.words.as_str()).collect();
    if !told.is_empty() {
        page.line("");
    }
    for sentence in told {
        for (place, line) in wrapped(sentence, 76).iter().enumerate() {
            page.line(&format!("{}{line}", if place == 0 { "" } else { "  " }));
        }
    }
    page.text
}

/// The comparison as a document. `docs/simulator-reports.md` lists its fields.
#[must_use]
pub fn document(sides: &Sides, comparison: &Comparison) -> Value {
    let mut document = serde_json::to_value(comparison).unwrap_or_default();
    if let Value::Object(members) = &mut document {
        members.insert("kind".to_owned(), json!("SimulationComparison"));
        members.insert("a".to_owned(), json!(side(&sides.a)));
        members.insert("b".to_owned(), json!(side(&sides.b)));
    }
    document
}

#[cfg(test)]
mod tests;
