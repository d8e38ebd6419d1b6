//! The summary for a terminal: about thirty lines of eighty columns, what matters first.

use super::figures::{CauseCount, Figures, Times};
use super::words::{count, dollars, gpu_time, many, number, percent, seconds};
use super::{About, digest, passed};
use crate::outcome::{Outcome, RuleHits};
use argosy_term::{Paint, Screen, clean, wrap};
use std::collections::BTreeMap;

/// The width that everything fits, unless one word is longer.
const COLUMNS: usize = 80;

/// Where what is said begins, after what it is about.
const INDENT: usize = 12;

/// How many violations and failed assertions are told; the rest is counted.
const FAILURES_MAX: usize = 3;

/// How many causes and rules have a line; the rest is counted.
const ROWS_MAX: usize = 5;

/// How many failing seeds are named.
const SEEDS_MAX: usize = 8;

/// How many marks a sparkline has.
const SPARKS: usize = 48;

/// What is written with.
#[derive(Clone, Copy, Debug)]
pub struct Pen {
    /// What it is written for.
    pub screen: Screen,
    /// Whether marks other than ASCII can be shown.
    pub unicode: bool,
}

/// The summary of one seed or many.
#[must_use]
pub fn summary(about: &About, outcomes: &[Outcome], pen: &Pen) -> String {
    let figures = Figures::of(outcomes, &about.expected);
    let mut page = Page { pen, text: String::new() };
    head(&mut page, outcomes);
    verdict(&mut page, about, outcomes);
    page.line("");
    capacity(&mut page, &figures, outcomes);
    faults(&mut page, &figures);
    times(&mut page, &figures);
    actions(&mut page, &figures);
    rules(&mut page, outcomes);
    work(&mut page, &figures, outcomes);
    money(&mut page, &figures, outcomes);
    memory(&mut page, outcomes);
    page.text
}

/// A text that grows line by line.
pub(super) struct Page<'a> {
    pub(super) pen: &'a Pen,
    pub(super) text: String,
}

impl Page<'_> {
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// What something is about, and what is said of it, going on below itself.
    pub(super) fn about(&mut self, subject: &str, said: &str) {
        for (place, line) in wrapped(said, COLUMNS - INDENT).iter().enumerate() {
            let subject = if place == 0 { subject } else { "" };
            self.line(&format!("{subject:<INDENT$}{line}"));
        }
    }

    fn dot(&self) -> &'static str {
        if self.pen.unicode { " · " } else { ", " }
    }
}

/// The text in lines of so many columns, broken between words; a text of one line keeps its spaces.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    if text.chars().count() <= columns { vec![text.to_owned()] } else { wrap(text, columns) }
}

fn head(page: &mut Page<'_>, outcomes: &[Outcome]) {
    let name = outcomes.first().map(|outcome| clean(&outcome.scenario)).unwrap_or_default();
    let seeds = match outcomes {
        [outcome] => format!("seed {}", outcome.seed),
        _ => many(outcomes.len() as u64, "seed"),
    };
    let time: f64 = outcomes.iter().map(|outcome| outcome.simulated_seconds).sum();
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    let most = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).max().unwrap_or(0);
    let fleet = match (most(|outcome| outcome.nodes), most(|outcome| outcome.gpus)) {
        (nodes, 0) => many(nodes, "node"),
        (nodes, gpus) => format!("{}, {}", many(nodes, "node"), many(gpus, "GPU")),
    };
    let facts = [name, seeds, seconds(time), fleet, many(events, "event")];
    for line in wrapped(&facts.join(page.dot()), COLUMNS) {
        page.line(&line);
    }
    let line = format!("digest {}", clean(&digest(outcomes)));
    let line = page.pen.screen.paint(&line, Paint::Dim);
    page.line(&line);
}

fn verdict(page: &mut Page<'_>, about: &About, outcomes: &[Outcome]) {
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !passed(outcome)).collect();
    let assertions: usize = outcomes.iter().map(|outcome| outcome.assertions.len()).sum();
    let Some(first) = failed.first() else {
        let held = match assertions {
            0 => String::new(),
            1 => ", the assertion holds".to_owned(),
            2 => ", both assertions hold".to_owned(),
            n => format!(", all {} assertions hold", count(n as u64)),
        };
        let ok = page.pen.screen.paint("PASSED", Paint::Good);
        page.line(&format!("{ok}  no violation{held}"));
        return;
    };
    let mark = page.pen.screen.paint("FAILED", Paint::Bad);
    let violations: usize = outcomes.iter().map(|outcome| outcome.violations.len()).sum();
    let broken = outcomes
        .iter()
        .flat_map(|outcome| &outcome.assertions)
        .filter(|checked| !checked.holds)
        .count();
    let mut said = Vec::new();
    if violations != 0 {
        said.push(many(violations as u64, "violation"));
    }
    if broken != 0 {
        said.push(format!(
            "{} of {} failed",
            count(broken as u64),
            many(assertions as u64, "assertion")
        ));
    }
    let on = match outcomes {
        [_] => String::new(),
        _ => format!(
            "; {} of {} failed: {}",
            failed.len(),
            many(outcomes.len() as u64, "seed"),
            named(&failed)
        ),
    };
    page.line(&format!("{mark}  {}{on}", said.join(", ")));
    // The first failing seed is told; the others can be replayed.
    let told =
        first
            .violations
            .iter()
            .map(|v| format!("{} at {}: {}", v.invariant, seconds(v.at), v.message))
            .chain(
                first.assertions.iter().filter(|checked| !checked.holds).map(|checked| {
                    format!("expected {}, found {}", checked.expected, checked.found)
                }),
            );
    let told: Vec<String> = told.collect();
    for line in told.iter().take(FAILURES_MAX) {
        for (place, line) in wrapped(&clean(line), COLUMNS - 4).iter().enumerate() {
            page.line(&format!("  {}{line}", if place == 0 { "" } else { "  " }));
        }
    }
    if FAILURES_MAX < told.len() {
        page.line(&format!("  and {} more (-o json)", told.len() - FAILURES_MAX));
    }
    let replay = clean(&about.command("run", first.seed));
    page.line(&format!("  replay: {replay}"));
    if !first.violations.is_empty() {
        let explain = clean(&about.command("explain", first.seed));
        page.line(&format!("  story:  {explain}"));
    }
}

fn named(failed: &[&Outcome]) -> String {
    let mut seeds: Vec<String> =
        failed.iter().take(SEEDS_MAX).map(|outcome| outcome.seed.to_string()).collect();
    if SEEDS_MAX < failed.len() {
        seeds.push("…".to_owned());
    }
    seeds.join(" ")
}

fn capacity(page: &mut Page<'_>, figures: &Figures, outcomes: &[Outcome]) {
    let Some(availability) = figures.availability else { return };
    let wanted = if figures.gpus_wanted == 0.0 {
        format!("{} GPUs", number(figures.gpus_present))
    } else {
        format!("{} GPUs wanted", number(figures.gpus_wanted))
    };
    let said = format!(
        "{} available: {wanted}, {} in service on average",
        percent(availability),
        number(figures.gpus_in_service),
    );
    page.about("Capacity", &said);
    if let (true, [outcome]) = (page.pen.unicode, outcomes) {
        let least = figures.gpus_in_service_min.map_or(0, |(least, _)| least);
        let line = sparkline(&outcome.series.in_service, least, &outcome.series.wanted);
        if !line.is_empty() {
            page.about("", &line);
        }
    }
    if let Some((gpus, at)) = figures.gpus_in_service_min {
        let said = format!(
            "least {} at {}; {} missing in all",
            count(gpus.into()),
            seconds(at),
            gpu_time(figures.gpu_seconds_missing)
        );
        page.about("", &said);
    }
}

/// GPUs in service over time, the least of each stretch; between the least that counts and what was wanted.
fn sparkline(values: &[u32], least: u32, wanted: &[u32]) -> String {
    const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = values.len().min(SPARKS);
    let most = values.iter().chain(wanted).max().copied().unwrap_or(least);
    let range = f64::from(most.saturating_sub(least));
    (0..width)
        .filter_map(|place| {
            let (from, to) = (place * values.len() / width, (place + 1) * values.len() / width);
            let value = values.get(from..to)?.iter().min()?;
            let level =
                if range == 0.0 { 1.0 } else { f64::from(value.saturating_sub(least)) / range };
            MARKS.get((level * 7.0).round() as usize)
        })
        .collect()
}

fn faults(page: &mut Page<'_>, figures: &Figures) {
    if figures.faults == 0 && figures.causes.is_empty() {
        page.about("Faults", "none");
        return;
    }
    let known = figures.detected.map_or(0, |times| times.count);
    page.about(
        "Faults",
        &format!(
            "{}, {} of them interrupted work; {} became known",
            count(figures.faults),
            count(figures.faults_interrupting),
            count(known)
        ),
    );
    for row in figures.causes.iter().take(ROWS_MAX) {
        let line = cause(&clean(&row.cause), row);
        page.line(&line);
    }
    let rest = figures.causes.iter().skip(ROWS_MAX);
    let (more, sum) = rest.fold((0, 0), |(more, sum), row| (more + 1, sum + row.count));
    if more != 0 {
        page.line(&format!("{:>10}  in {}", count(sum), many(more, "more cause")));
    }
}

fn cause(name: &str, row: &CauseCount) -> String {
    let name = cut(name, 36);
    let expected = row.expected.map(|expected| format!("expected {}", number(expected)));
    let odd = match row.within_chance {
        Some(false) => ", beyond chance",
        Some(true) | None => "",
    };
    format!("{:>10}  {name:<36}  {}{odd}", count(row.count), expected.unwrap_or_default())
}

/// The text, cut to so many columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

fn times(page: &mut Page<'_>, figures: &Figures) {
    let rows: [(&str, Option<Times>); 3] = [
        ("known", figures.detected),
        ("cordoned", figures.cordoned),
        ("repaired", figures.repaired),
    ];
    if rows.iter().all(|(_, times)| times.is_none()) {
        return;
    }
    page.line(&format!("{:<INDENT$}{:>9}{:>9}{:>9}{:>9}", "After", "p50", "p99", "max", "faults"));
    for (name, times) in rows {
        let Some(times) = times else { continue };
        page.line(&format!(
            "  {name:<10}{:>9}{:>9}{:>9}{:>9}",
            seconds(times.p50),
            seconds(times.p99),
            seconds(times.max),
            count(times.count)
        ));
    }
}

fn actions(page: &mut Page<'_>, figures: &Figures) {
    let actions = figures.actions.iter().filter(|(_, times)| **times != 0);
    let actions: Vec<String> =
        actions.map(|(name, times)| format!("{} {}", count(*times), clean(name))).collect();
    if actions.is_empty() {
        page.about("Actions", "none");
    } else {
        page.about("Actions", &actions.join(", "));
    }
    if let Some((most @ 1.., budget)) = figures.disrupted_max {
        let over = match figures.over_budget_seconds {
            0.0 => String::new(),
            time => format!("; OVER BUDGET for {}", seconds(time)),
        };
        let said = format!(
            "at most {} out of service by our own doing, {} allowed{over}",
            many(most.into(), "node"),
            count(budget.into())
        );
        page.about("", &said);
    }
}

/// What each rule did in all runs, the busiest first.
pub(super) fn rule_sums(outcomes: &[Outcome]) -> Vec<(String, RuleHits)> {
    let mut sums: BTreeMap<&str, RuleHits> = BTreeMap::new();
    for (name, hits) in outcomes.iter().flat_map(|outcome| &outcome.rules) {
        let sum = sums.entry(name).or_default();
        sum.hits += hits.hits;
        sum.nodes += hits.nodes;
        sum.replaced += hits.replaced;
    }
    let mut rules: Vec<(String, RuleHits)> =
        sums.into_iter().map(|(name, hits)| (name.to_owned(), hits)).collect();
    rules.sort_by(|(a, x), (b, y)| y.hits.cmp(&x.hits).then_with(|| a.cmp(b)));
    rules
}

fn rules(page: &mut Page<'_>, outcomes: &[Outcome]) {
    let rules = rule_sums(outcomes);
    if rules.is_empty() {
        return;
    }
    page.line(&format!("{:<38}{:>10}{:>10}{:>10}", "Rules", "hits", "nodes", "replaced"));
    for (name, hits) in rules.iter().take(ROWS_MAX) {
        let line = format!(
            "  {:<36}{:>10}{:>10}{:>10}",
            cut(&clean(name), 36),
            count(hits.hits),
            count(hits.nodes),
            count(hits.replaced)
        );
        page.line(&line);
    }
    if ROWS_MAX < rules.len() {
        page.line(&format!("  and {} more (-o json)", rules.len() - ROWS_MAX));
    }
}

fn work(page: &mut Page<'_>, figures: &Figures, outcomes: &[Outcome]) {
    let works = || outcomes.iter().filter_map(|outcome| outcome.work.as_ref());
    let (Some(goodput), Some(lost)) = (figures.goodput, figures.work_seconds_lost) else { return };
    let possible: f64 = works().map(|work| work.possible).sum();
    page.about(
        "Goodput",
        &format!(
            "{} of {}, {}",
            percent(goodput),
            gpu_time(possible),
            many(figures.interruptions, "interruption")
        ),
    );
    let part = |of: fn(&crate::outcome::Work) -> f64| works().map(of).sum::<f64>() / possible;
    page.about(
        "",
        &format!(
            "lost {}: {} redone, {} waiting, {} overhead",
            gpu_time(lost),
            percent(part(|work| work.redone)),
            percent(part(|work| work.waited)),
            percent(part(|work| work.overhead)),
        ),
    );
}

fn money(page: &mut Page<'_>, figures: &Figures, outcomes: &[Outcome]) {
    if figures.cost == 0.0 {
        return;
    }
    page.about(
        "Cost",
        &format!(
            "{}, {} of it wasted: {}",
            dollars(figures.cost),
            percent(figures.cost_wasted / figures.cost),
            dollars(figures.cost_wasted),
        ),
    );
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let bought = many(sum(|outcome| outcome.money.bought), "machine");
    let returned = count(sum(|outcome| outcome.money.returned));
    page.about("", &format!("{bought} bought, {returned} returned"));
}

/// What a machine of a large fleet takes; of many runs, the most.
fn memory(page: &mut Page<'_>, outcomes: &[Outcome]) {
    if let Some(bytes) = outcomes.iter().filter_map(|outcome| outcome.bytes_per_node).max() {
        page.about("Memory", &format!("{} bytes a node at the end", count(bytes)));
    }
}

#[cfg(test)]
mod tests;
