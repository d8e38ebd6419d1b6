//! The comparison as one page.

use super::{Better, Comparison, Difference, Sides, Verdict, error_text, side, signed, value_text};
use crate::report::html::{section, shell, table};
use crate::report::plot::{Interval, escape, intervals};
use crate::report::words::{count, many};

/// The page: no script, nothing from anywhere else.
#[must_use]
pub fn html(sides: &Sides, comparison: &Comparison) -> String {
    let seeds = comparison.seeds.len() as u64;
    let mut body = format!(
        "<header>{}<h1>What B would have saved</h1>\
         <p class=\"lead\"><b>A</b> {}<br><b>B</b> {}</p>\
         <p class=\"facts\">the same {} each · exactly the same happened on {} of them</p></header>",
        pill(comparison),
        escape(&side(&sides.a)),
        escape(&side(&sides.b)),
        many(seeds, "seed"),
        count(comparison.seeds_alike)
    );
    body.push_str(&failed(sides, comparison));
    body.push_str(&told(comparison));
    body.push_str(&plot(comparison));
    body.push_str(&numbers(comparison));
    body.push_str(&format!(
        "<footer>Seeds {}. The same seeds give the same numbers on any machine.</footer>",
        range(&comparison.seeds)
    ));
    shell("A and B compared", &body)
}

fn pill(comparison: &Comparison) -> String {
    let of =
        |verdict| comparison.differences.iter().filter(|d| d.verdict == verdict).count() as u64;
    let (a, b) = (of(Verdict::A), of(Verdict::B));
    let class = if comparison.b_failed.is_empty() && a <= b { "good" } else { "bad" };
    format!(
        "<span class=\"pill {class}\">B is better in {}, A in {}</span>",
        many(b, "measure"),
        count(a)
    )
}

fn failed(sides: &Sides, comparison: &Comparison) -> String {
    let all =
        [("A", &sides.a, &comparison.a_failed), ("B", &sides.b, &comparison.b_failed)].into_iter();
    let told = all.filter_map(|(name, about, failed)| {
        let first = failed.first()?;
        Some(format!(
            "<div class=\"violation\"><b class=\"bad\">{name} failed</b> on {} of {}<pre>{}</pre></div>",
            count(failed.len() as u64),
            many(comparison.seeds.len() as u64, "seed"),
            escape(&about.command("run", *first))
        ))
    });
    section("Failures", &told.collect::<String>())
}

fn told(comparison: &Comparison) -> String {
    let lines = comparison.differences.iter().filter(|d| d.verdict != Verdict::Same).map(|d| {
        let class = match d.verdict {
            Verdict::A => "bad",
            Verdict::B => "good",
            Verdict::Unclear | Verdict::Same => "dim",
        };
        format!("<li class=\"{class}\">{}</li>", escape(&d.words))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return section("In words", "<p>No seed shows any difference.</p>");
    }
    section("In words", &format!("<ul class=\"plain\">{lines}</ul>"))
}

fn plot(comparison: &Comparison) -> String {
    let names: Vec<String> =
        comparison.differences.iter().map(|d| d.measure.replace('_', " ")).collect();
    let rows: Vec<Interval<'_>> = comparison
        .differences
        .iter()
        .zip(&names)
        .filter(|(difference, _)| difference.verdict != Verdict::Same)
        .map(|(difference, name)| interval(difference, name))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let plot = intervals("Differences with their 95% intervals; to the right B is better", &rows);
    let content = format!(
        "<p>How far B is from A, each on a scale of its own. The line is where the true difference lies 95 times in 100; one that crosses the middle may be chance.</p>\
         <figure>{plot}</figure>"
    );
    section("Differences", &content)
}

fn interval<'a>(difference: &'a Difference, name: &'a str) -> Interval<'a> {
    let sign = match difference.better {
        Better::More => 1.0,
        Better::Less => -1.0,
    };
    Interval {
        name,
        class: match difference.verdict {
            Verdict::A => "bad",
            Verdict::B => "good",
            Verdict::Unclear | Verdict::Same => "s0",
        },
        middle: sign * difference.mean,
        half: difference.half_width.unwrap_or(0.0),
        value: signed(difference),
        said: &difference.words,
    }
}

fn numbers(comparison: &Comparison) -> String {
    let rows: Vec<Vec<String>> = comparison
        .differences
        .iter()
        .map(|d| {
            let verdict = match d.verdict {
                Verdict::A => "<b class=\"bad\">A is better</b>",
                Verdict::B => "<b class=\"good\">B is better</b>",
                Verdict::Unclear => "<span class=\"dim\">may be chance</span>",
                Verdict::Same => "<span class=\"dim\">the same</span>",
            };
            let half = d
                .half_width
                .filter(|_| d.verdict != Verdict::Same)
                .map(|half| format!("± {}", error_text(d.unit, d.mean, half)));
            vec![
                d.measure.replace('_', " "),
                value_text(d.unit, d.a),
                value_text(d.unit, d.b),
                signed(d),
                half.unwrap_or_default(),
                format!("{} of {}", count(d.agree), count(d.seeds)),
                verdict.to_owned(),
            ]
        })
        .collect();
    let headings = ["<", "A", "B", "B − A", "95% interval", "Seeds that agree", "<Verdict"];
    section("Numbers", &table(&headings, &rows))
}

/// Seeds as people write them: `1..20`, or the first and how many.
fn range(seeds: &[u64]) -> String {
    match seeds {
        [] => "none".to_owned(),
        [one] => one.to_string(),
        [first, .., last] if last - first + 1 == seeds.len() as u64 => format!("{first}..{last}"),
        [first, .., last] => format!("{first} to {last}, {} of them", seeds.len()),
    }
}
