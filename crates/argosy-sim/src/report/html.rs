//! The report as one page: no script, nothing from anywhere else, made to be sent around.
//!
//! What a newcomer gets wrong: names, messages and the scenario are somebody else's text. Whatever is not
//! written in this file passes `escape` before it is on the page.

use super::figures::{CHANCE, Figures, Times, settled, times};
use super::plot::{Chart, Keep, Line, Look, Row, bars, escape, histogram, parts};
use super::text::rule_sums;
use super::words::{count, dollars, gpu_time, many, number, percent, seconds};
use super::{About, digest, passed, story};
use crate::outcome::{Outcome, Work};

/// How many seeds have a row. More are in the JSON document.
const SEEDS_MAX: usize = 200;

/// How many causes have a bar, and how many rules a row.
const ROWS_MAX: usize = 40;

/// How many violations are told.
const VIOLATIONS_MAX: usize = 20;

/// How many faults before a violation are told.
const STORY_LINES_MAX: usize = 20;

/// The width of a plot that has a row for itself, and of one that shares it.
const WIDE: f64 = 1_060.0;
const HALF: f64 = 560.0;

/// The page about one seed or many.
///
/// Of many, lines over time are those of the first seed that failed, or else of the first; all other numbers
/// are of all.
#[must_use]
pub fn page(about: &About, outcomes: &[Outcome]) -> String {
    let figures = Figures::of(outcomes, &about.expected);
    let shown = outcomes.iter().find(|outcome| !passed(outcome)).or_else(|| outcomes.first());
    let name = shown.map_or(about.reference.as_str(), |outcome| outcome.scenario.as_str());
    let mut body = head(name, about, outcomes);
    body.push_str(&tiles(&figures, outcomes));
    body.push_str(&violations(about, outcomes));
    if let Some(shown) = shown {
        body.push_str(&capacity(shown, outcomes));
    }
    body.push_str(&causes(&figures, about));
    body.push_str(&delays(outcomes));
    body.push_str(&work(shown, outcomes));
    body.push_str("<div class=\"pair\">");
    if let Some(shown) = shown {
        body.push_str(&budget(shown, &figures));
    }
    body.push_str(&rules(outcomes));
    body.push_str("</div>");
    if let Some(shown) = shown {
        body.push_str(&cost(shown, &figures));
    }
    body.push_str(&assertions(outcomes));
    body.push_str(&seeds(about, outcomes));
    body.push_str(&source(about));
    body.push_str(&foot(about, outcomes));
    shell(name, &body)
}

/// A whole page around a body. The policy in its head is for the browser: even a mistake in escaping could
/// run nothing and load nothing.
pub(super) fn shell(title: &str, body: &str) -> String {
    const STYLE: &str = include_str!("html/style.css");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{} · Argosy simulation</title><style>{STYLE}</style></head>\
         <body><main>{body}</main></body></html>\n",
        escape(title)
    )
}

/// A card with a heading; nothing if there is nothing in it.
pub(super) fn section(heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section><h2>{heading}</h2>{content}</section>")
}

/// A table of text that is already escaped; columns whose heading begins with `<` are text, the rest numbers.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |tag: &str, heading: &str, text: &str| match heading.strip_prefix('<') {
        Some(_) => format!("<{tag} class=\"text\">{text}</{tag}>"),
        None => format!("<{tag}>{text}</{tag}>"),
    };
    let head: String = headings.iter().map(|h| cell("th", h, h.trim_start_matches('<'))).collect();
    let rows = rows.iter().map(|row| {
        let cells = headings.iter().zip(row).map(|(heading, text)| cell("td", heading, text));
        format!("<tr>{}</tr>", cells.collect::<String>())
    });
    format!(
        "<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>{}</tbody></table></div>",
        rows.collect::<String>()
    )
}

fn head(name: &str, about: &About, outcomes: &[Outcome]) -> String {
    let failed = outcomes.iter().filter(|outcome| !passed(outcome)).count();
    let all = outcomes.len() as u64;
    let pill = match (failed, all) {
        (0, 1) => "<span class=\"pill good\">Passed</span>".to_owned(),
        (0, all) => format!("<span class=\"pill good\">Passed on all {} seeds</span>", count(all)),
        (_, 1) => "<span class=\"pill bad\">Failed</span>".to_owned(),
        (failed, all) => {
            format!("<span class=\"pill bad\">Failed on {failed} of {} seeds</span>", count(all))
        }
    };
    let time: f64 = outcomes.iter().map(|outcome| outcome.simulated_seconds).sum();
    let most = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).max().unwrap_or(0);
    let seed = match outcomes {
        [outcome] => format!("seed {}", outcome.seed),
        _ => many(all, "seed"),
    };
    let with = match about.options.as_slice() {
        [] => String::new(),
        options => format!(" · with {}", escape(&options.join(" "))),
    };
    format!(
        "<header>{pill}<h1>{}</h1><p class=\"lead\">{}</p><p class=\"facts\">{} simulated · {} · {} · {seed} · {}{with}</p></header>",
        escape(name),
        escape(&about.summary),
        seconds(time),
        many(most(|outcome| outcome.nodes), "node"),
        many(most(|outcome| outcome.gpus), "GPU"),
        many(outcomes.iter().map(|outcome| outcome.events).sum(), "event"),
    )
}

fn tiles(figures: &Figures, outcomes: &[Outcome]) -> String {
    let mut tiles: Vec<(String, &str, String)> = Vec::new();
    if let Some(availability) = figures.availability {
        let missing = format!("{} missing", gpu_time(figures.gpu_seconds_missing));
        tiles.push((percent(availability), "GPUs available", missing));
    }
    if let (Some(goodput), Some(lost)) = (figures.goodput, figures.work_seconds_lost) {
        tiles.push((percent(goodput), "goodput", format!("{} lost", gpu_time(lost))));
    }
    let interrupting = format!("{} in work", many(figures.interruptions, "interruption"));
    tiles.push((count(figures.faults), "faults", interrupting));
    if let Some(Times { p50, p99, .. }) = figures.detected {
        tiles.push((
            seconds(p99),
            "until a fault is known",
            format!("99 of 100; half in {}", seconds(p50)),
        ));
    }
    if let Some(Times { p50, p99, .. }) = figures.repaired {
        tiles.push((
            seconds(p50),
            "until it is repaired",
            format!("half of them; 99 of 100 in {}", seconds(p99)),
        ));
    }
    if figures.cost != 0.0 {
        let each = figures.cost_wasted / figures.cost;
        let said = format!("{} ({}) on idle machines", dollars(figures.cost_wasted), percent(each));
        let noun = if outcomes.len() == 1 { "cost" } else { "cost of all runs" };
        let cost =
            if figures.cost < 1e6 { dollars(figures.cost) } else { short_dollars(figures.cost) };
        tiles.push((cost, noun, said));
    }
    let tiles = tiles.iter().map(|(value, name, more)| {
        format!("<div class=\"tile\"><b>{value}</b><span>{name}</span><small>{more}</small></div>")
    });
    format!("<div class=\"tiles\">{}</div>", tiles.collect::<String>())
}

fn violations(about: &About, outcomes: &[Outcome]) -> String {
    let all = || {
        outcomes.iter().flat_map(|outcome| {
            outcome.violations.iter().map(move |violation| (outcome, violation))
        })
    };
    let told = all().take(VIOLATIONS_MAX).map(|(outcome, violation)| {
        let seed = outcome.seed;
        let story = match about.stories.get(&seed) {
            Some(story) => story.clone(),
            None => story::before(outcome, STORY_LINES_MAX),
        };
        let story: String = story.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
        let story =
            format!("<details><summary>How it came to that</summary><ol>{story}</ol></details>");
        format!(
            "<div class=\"violation\"><b class=\"bad\">{}</b> after {} on seed {seed}: {}{story}\
             <pre>{}\n{}</pre></div>",
            escape(&violation.invariant),
            seconds(violation.at),
            escape(&violation.message),
            escape(&about.command("run", seed)),
            escape(&about.command("explain", seed)),
        )
    });
    let mut content: String = told.collect();
    let rest = all().count().saturating_sub(VIOLATIONS_MAX);
    if rest != 0 {
        content.push_str(&format!("<p>And {} more, in the JSON document.</p>", count(rest as u64)));
    }
    if content.is_empty() {
        return String::new();
    }
    let content = format!(
        "<p>These must never be. Each ends its run; the commands play it again and tell its story.</p>{content}"
    );
    section("Violations", &content)
}

fn of_seed(shown: &Outcome, outcomes: &[Outcome]) -> String {
    match outcomes {
        [_] => String::new(),
        _ => format!(" Seed {} is shown.", shown.seed),
    }
}

fn whole(values: &[u32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

fn capacity(shown: &Outcome, outcomes: &[Outcome]) -> String {
    let series = &shown.series;
    let chart = Chart {
        title: "GPUs wanted, present and in service over time",
        width: WIDE,
        height: 280.0,
        step_seconds: series.step_seconds,
        lines: vec![
            Line {
                name: "in service",
                class: "s1",
                look: Look::Area,
                keep: Keep::Least,
                values: whole(&series.in_service),
            },
            Line {
                name: "present",
                class: "s3",
                look: Look::Line,
                keep: Keep::Mean,
                values: whole(&series.present),
            },
            Line {
                name: "wanted",
                class: "s0",
                look: Look::Dashed,
                keep: Keep::Most,
                values: whole(&series.wanted),
            },
        ],
        unit: number,
        may_float: true,
        settled: settled(series).unwrap_or(0),
    };
    if chart.is_empty() {
        return String::new();
    }
    let caption = format!(
        "GPUs; where moments share a point, the least in service is drawn.{}",
        of_seed(shown, outcomes)
    );
    section("Capacity", &chart.figure(&caption))
}

fn causes(figures: &Figures, about: &About) -> String {
    let rows: Vec<Row<'_>> = figures
        .causes
        .iter()
        .take(ROWS_MAX)
        .map(|row| Row {
            name: &row.cause,
            count: row.count,
            expected: row.expected.map(|expected| (expected, CHANCE * expected.sqrt() + 0.5)),
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut said = format!("{}, by cause.", many(figures.faults, "fault"));
    if !about.expected.is_empty() {
        let expected = figures.causes.iter().filter(|row| row.expected.is_some());
        let (of, within) = expected.fold((0_u64, 0_u64), |(of, within), row| {
            (of + 1, within + u64::from(row.within_chance == Some(true)))
        });
        said.push_str(&format!(
            " The mark is what the rate of the cause leads to expect, the band what chance makes of it 95 times in 100: {within} of {of} are within it."
        ));
    }
    let table_rows: Vec<Vec<String>> = figures
        .causes
        .iter()
        .take(ROWS_MAX)
        .map(|row| {
            vec![
                escape(&row.cause),
                count(row.count),
                row.expected.map(number).unwrap_or_default(),
                match row.within_chance {
                    Some(true) => "yes".to_owned(),
                    Some(false) => "<b class=\"bad\">no</b>".to_owned(),
                    None => String::new(),
                },
            ]
        })
        .collect();
    let content = format!(
        "<p>{said}</p><figure>{}<details><summary>As a table</summary>{}</details></figure>",
        bars("Faults by cause, and how many were expected", &rows),
        table(&["<Cause", "Count", "Expected", "Within chance"], &table_rows)
    );
    section("What went wrong", &content)
}

fn delays(outcomes: &[Outcome]) -> String {
    let [detected, cordoned, repaired] = times(outcomes);
    let all = [
        ("Until we knew", "s1", &detected),
        ("Until it took no new work", "s4", &cordoned),
        ("Until its work was done again", "s3", &repaired),
    ];
    if all.iter().all(|(_, _, times)| times.is_empty()) {
        return String::new();
    }
    let (mut plots, mut rows) = (String::new(), Vec::new());
    for (name, class, sorted) in all {
        let Some(times) = Times::of(sorted) else { continue };
        let marks = [("half", times.p50), ("99%", times.p99)];
        plots.push_str(&format!(
            "<div><h3>{name}</h3>{}</div>",
            histogram(name, class, sorted, &marks)
        ));
        let lengths = [times.p50, times.p90, times.p99, times.max].map(seconds);
        rows.push([vec![name.to_owned()], lengths.to_vec(), vec![count(times.count)]].concat());
    }
    let content = format!(
        "<p>From a fault to each step, on a scale that grows by factors. Faults that nobody could see or that need no repair are not counted.</p>\
         <div class=\"triple\">{plots}</div>{}",
        table(&["<", "p50", "p90", "p99", "max", "faults"], &rows)
    );
    section("Detection and replacement", &content)
}

fn work(shown: Option<&Outcome>, outcomes: &[Outcome]) -> String {
    let works = || outcomes.iter().filter_map(|outcome| outcome.work.as_ref());
    let sum = |of: fn(&Work) -> f64| works().map(of).sum::<f64>();
    let possible = sum(|work| work.possible);
    if possible <= 0.0 {
        return String::new();
    }
    let part = |name, class, of: fn(&Work) -> f64| {
        let share = sum(of) / possible;
        (name, class, share, format!("{} · {}", percent(share), gpu_time(sum(of))))
    };
    let shares = [
        part("useful", "s3", |work| work.useful),
        part("done again since the last checkpoint", "s2", |work| work.redone),
        part("waiting for machines", "s4", |work| work.waited),
        part("restarts and checkpoints", "s0", |work| work.overhead),
    ];
    let mut content = format!(
        "<p>{} ran on {}, with {}.</p>{}",
        many(works().map(|work| work.jobs).sum(), "job"),
        gpu_time(possible),
        many(works().map(|work| work.interruptions).sum(), "interruption"),
        parts("What the time of the work went into", &shares)
    );
    if let Some(shown) = shown {
        let chart = Chart {
            title: "Goodput over time",
            width: WIDE,
            height: 220.0,
            step_seconds: shown.series.step_seconds,
            lines: vec![Line {
                name: "goodput",
                class: "s3",
                look: Look::Area,
                keep: Keep::Mean,
                values: shown.series.goodput.iter().copied().map(f64::from).collect(),
            }],
            unit: |share| format!("{}%", number(share * 100.0)),
            may_float: true,
            settled: 0,
        };
        if !chart.is_empty() {
            let caption = format!(
                "The part of the work's time that counted in the end.{}",
                of_seed(shown, outcomes)
            );
            content.push_str(&chart.figure(&caption));
        }
    }
    section("Goodput", &content)
}

fn budget(shown: &Outcome, figures: &Figures) -> String {
    let series = &shown.series;
    let chart = Chart {
        title: "Nodes out of service by our own doing, against the budget",
        width: HALF,
        height: 230.0,
        step_seconds: series.step_seconds,
        lines: vec![
            Line {
                name: "out of service by our own doing",
                class: "s1",
                look: Look::Area,
                keep: Keep::Most,
                values: whole(&series.disrupted),
            },
            Line {
                name: "budget",
                class: "s2",
                look: Look::Dashed,
                keep: Keep::Least,
                values: whole(&series.budget),
            },
        ],
        unit: number,
        may_float: false,
        settled: 0,
    };
    let mut content = match figures.disrupted_max {
        Some((most, budget)) => format!(
            "<p>At most {} at once, where {} were allowed.</p>",
            many(most.into(), "node"),
            count(budget.into())
        ),
        None => String::new(),
    };
    if !chart.is_empty() {
        content.push_str(&chart.figure("Nodes; where moments share a point, the most are drawn."));
    }
    let rows: Vec<Vec<String>> =
        figures.actions.iter().map(|(name, times)| vec![escape(name), count(*times)]).collect();
    if !rows.is_empty() {
        content.push_str(&table(&["<Action", "Times"], &rows));
    }
    section("Actions against budget", &content)
}

fn rules(outcomes: &[Outcome]) -> String {
    let rules = rule_sums(outcomes);
    let rows: Vec<Vec<String>> = rules
        .iter()
        .take(ROWS_MAX)
        .map(|(name, hits)| {
            vec![escape(name), count(hits.hits), count(hits.nodes), count(hits.replaced)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let table = table(&["<Rule", "Hits", "Nodes marked", "Replaced"], &rows);
    let content = format!(
        "<p>How often each rule of the health policy decided about a report, how many nodes it marked, and how many were replaced for it.</p>{table}"
    );
    section("What each rule did", &content)
}

fn cost(shown: &Outcome, figures: &Figures) -> String {
    if figures.cost == 0.0 {
        return String::new();
    }
    let series = &shown.series;
    let per_hour: Vec<f64> = series.cost_per_hour.iter().copied().map(f64::from).collect();
    let mut so_far = 0.0;
    let total: Vec<f64> = per_hour
        .iter()
        .map(|rate| {
            so_far += rate * series.step_seconds / 3_600.0;
            so_far
        })
        .collect();
    let chart = |title, name, class, values| Chart {
        title,
        width: HALF,
        height: 220.0,
        step_seconds: series.step_seconds,
        lines: vec![Line { name, class, look: Look::Area, keep: Keep::Mean, values }],
        unit: short_dollars,
        may_float: false,
        settled: 0,
    };
    let rate = chart("Dollars per hour over time", "per hour", "s2", per_hour);
    let total = chart("Dollars so far over time", "so far", "s4", total);
    if rate.is_empty() {
        return String::new();
    }
    let money = &shown.money;
    let said = format!(
        "{} bought, {} returned. {} of {} went to machines that did nothing useful: booting, sick, cordoned, or forgotten.",
        many(money.bought, "machine"),
        count(money.returned),
        dollars(figures.cost_wasted),
        dollars(figures.cost)
    );
    let content = format!(
        "<p>{said}</p><div class=\"triple\">{}{}</div>",
        rate.figure("Dollars per hour."),
        total.figure("Dollars so far.")
    );
    section("Cost", &content)
}

/// Dollars on an axis: `$1.2M`.
fn short_dollars(amount: f64) -> String {
    match amount.abs() {
        1e9.. => format!("${}B", number(amount / 1e9)),
        1e6.. => format!("${}M", number(amount / 1e6)),
        1e4.. => format!("${}k", number(amount / 1e3)),
        _ => format!("${}", number(amount)),
    }
}

fn assertions(outcomes: &[Outcome]) -> String {
    // Of many seeds, only what failed: the rest is the same list again and again.
    let checked = outcomes
        .iter()
        .flat_map(|outcome| outcome.assertions.iter().map(move |checked| (outcome.seed, checked)));
    let shown = checked.filter(|(_, checked)| outcomes.len() == 1 || !checked.holds);
    let rows: Vec<Vec<String>> = shown
        .take(ROWS_MAX)
        .map(|(seed, checked)| {
            let mark = if checked.holds {
                "<b class=\"good\">holds</b>"
            } else {
                "<b class=\"bad\">failed</b>"
            };
            let seed = seed.to_string();
            vec![escape(&checked.expected), escape(&checked.found), mark.to_owned(), seed]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    section("Assertions", &table(&["<Expected", "<Found", "<", "Seed"], &rows))
}

fn seeds(about: &About, outcomes: &[Outcome]) -> String {
    if outcomes.len() < 2 {
        return String::new();
    }
    let mut order: Vec<&Outcome> = outcomes.iter().collect();
    order.sort_by_key(|outcome| (passed(outcome), outcome.seed));
    let rows: Vec<Vec<String>> = order
        .iter()
        .take(SEEDS_MAX)
        .map(|outcome| {
            let figures = Figures::of(std::slice::from_ref(*outcome), &about.expected);
            let mark = if passed(outcome) {
                "<span class=\"good\">passed</span>"
            } else {
                "<b class=\"bad\">failed</b>"
            };
            vec![
                outcome.seed.to_string(),
                mark.to_owned(),
                figures.availability.map(percent).unwrap_or_default(),
                figures.goodput.map(percent).unwrap_or_default(),
                count(figures.faults),
                figures.detected.map(|times| seconds(times.p99)).unwrap_or_default(),
                dollars(figures.cost),
                format!(
                    "<code>{}</code>",
                    escape(outcome.digest.get(..12).unwrap_or(&outcome.digest))
                ),
            ]
        })
        .collect();
    let mut content = table(
        &["Seed", "<", "Available", "Goodput", "Faults", "Known, p99", "Cost", "<Digest"],
        &rows,
    );
    let rest = outcomes.len().saturating_sub(SEEDS_MAX);
    if rest != 0 {
        content.push_str(&format!("<p>And {} more, in the JSON document.</p>", count(rest as u64)));
    }
    section("Seeds", &content)
}

fn source(about: &About) -> String {
    if about.source.is_empty() {
        return String::new();
    }
    let content = format!(
        "<details><summary>The scenario that was played</summary><pre>{}</pre></details>",
        escape(about.source.trim_end())
    );
    section("Scenario", &content)
}

fn foot(about: &About, outcomes: &[Outcome]) -> String {
    let seed = outcomes.first().map_or(1, |outcome| outcome.seed);
    format!(
        "<footer>Digest <code>{}</code>. The same seed gives the same digest on any machine: \
         <code>{}</code></footer>",
        escape(&digest(outcomes)),
        escape(&about.command("run", seed))
    )
}

#[cfg(test)]
mod tests;
