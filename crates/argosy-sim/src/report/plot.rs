//! Plots as SVG, drawn here: no script, no font and no colour of their own, so a page works anywhere.
//!
//! Colours are classes that the page's style sheet gives a meaning, in light and in dark. Whatever text comes
//! from outside is escaped here, once.

use super::words::{count, seconds};

/// How many points a line has at most: more than there are pixels only makes the page heavy.
const POINTS_MAX: usize = 360;

/// How many strips have a tooltip.
const STRIPS_MAX: usize = 96;

/// Room for the numbers on the left and the times below.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BELOW: f64 = 30.0;

/// Text as HTML and SVG show it.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // Not allowed in a page, or turns the reading order of what follows.
            c if c.is_control() => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{061c}' => {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A line with its area filled.
    Area,
    /// A line.
    Line,
    /// A dashed line: what should be.
    Dashed,
}

/// What is left of several values that share a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The least: a short dip must be seen.
    Least,
    /// The most: a short peak must be seen.
    Most,
    /// The mean.
    Mean,
}

/// One line over time.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Its colour: `s1` to `s4`.
    pub(super) class: &'static str,
    pub(super) look: Look,
    pub(super) keep: Keep,
    pub(super) values: Vec<f64>,
}

/// Lines over time.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) step_seconds: f64,
    pub(super) lines: Vec<Line>,
    pub(super) unit: fn(f64) -> String,
    /// The axis may begin above 0 where everything is far from it.
    pub(super) may_float: bool,
    /// Up to this step everything is only coming up, which is not what the axis is made for.
    pub(super) settled: usize,
}

impl Chart {
    /// Whether there is anything to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.step_seconds <= 0.0 || self.lines.iter().all(|line| line.values.is_empty())
    }

    /// The picture, and below it the same numbers as a table.
    pub(super) fn figure(&self, caption: &str) -> String {
        let ticks = self.ticks();
        let low = ticks.first().copied().unwrap_or(0.0);
        let floats = match low {
            0.0 => String::new(),
            low if self.settled == 0 => format!(" The axis begins at {}.", (self.unit)(low)),
            low => format!(" The axis begins at {}; the start is below it.", (self.unit)(low)),
        };
        format!(
            "<figure>{}{}<figcaption>{}{floats}</figcaption>{}</figure>",
            self.legend(),
            self.svg(&ticks),
            escape(caption),
            self.table()
        )
    }

    fn steps(&self) -> usize {
        self.lines.iter().map(|line| line.values.len()).max().unwrap_or(0)
    }

    /// The numbers on the left: the first and the last are the ends of the axis.
    fn ticks(&self) -> Vec<f64> {
        let values = || {
            self.lines
                .iter()
                .flat_map(|line| line.values.iter().skip(self.settled))
                .copied()
                .filter(|value| value.is_finite())
        };
        let most = values().fold(0.0_f64, f64::max);
        let least = values().fold(most, f64::min);
        let floats = self.may_float && 0.6 * most < least && least < most;
        ticks(if floats { least - (most - least) * 0.15 } else { 0.0 }, most)
    }

    fn svg(&self, ticks: &[f64]) -> String {
        let (width, height) = (self.width, self.height);
        let low = ticks.first().copied().unwrap_or(0.0);
        let high = ticks.last().copied().unwrap_or(1.0);
        let span = (high - low).max(f64::MIN_POSITIVE);
        let end = (self.steps().max(2) - 1) as f64 * self.step_seconds;
        let x = |time: f64| LEFT + (width - LEFT - RIGHT) * time / end;
        let y = |value: f64| {
            TOP + (height - TOP - BELOW) * (1.0 - (value.clamp(low, high) - low) / span)
        };
        let mut svg = format!(
            "<svg class=\"{}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            if 800.0 < width { "wide" } else { "half" },
            escape(self.title)
        );
        for tick in ticks {
            let at = y(*tick);
            svg.push_str(&format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"num\" x=\"{}\" y=\"{:.1}\">{}</text>",
                width - RIGHT,
                LEFT - 8.0,
                at + 4.0,
                escape(&(self.unit)(*tick))
            ));
        }
        for (time, label) in time_ticks(end) {
            svg.push_str(&format!(
                "<text class=\"time\" x=\"{:.1}\" y=\"{}\">{label}</text>",
                x(time),
                height - 8.0
            ));
        }
        for line in &self.lines {
            svg.push_str(&path(line, self.step_seconds, &x, &y, height - BELOW));
        }
        svg.push_str(&self.strips(&x, height));
        svg.push_str("</svg>");
        svg
    }

    /// Invisible strips, each with the values of its moment.
    fn strips(&self, x: &impl Fn(f64) -> f64, height: f64) -> String {
        let steps = self.steps();
        let strips = steps.min(STRIPS_MAX);
        (0..strips)
            .map(|place| {
                let (from, to) = (place * steps / strips, (place + 1) * steps / strips);
                let values = self.lines.iter().filter_map(|line| {
                    let value = kept(line.values.get(from..to)?, line.keep)?;
                    Some(format!("{} {}", line.name, (self.unit)(value)))
                });
                let at = from as f64 * self.step_seconds;
                let text =
                    format!("{}: {}", moment(at), values.collect::<Vec<_>>().join(", "));
                let (left, right) = (x(at), x((to as f64) * self.step_seconds).min(self.width - RIGHT));
                format!(
                    "<rect class=\"hit\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
                     <title>{}</title></rect>",
                    (right - left).max(0.5),
                    height - TOP - BELOW,
                    escape(&text)
                )
            })
            .collect()
    }

    fn legend(&self) -> String {
        if self.lines.len() < 2 {
            return String::new();
        }
        let keys = self.lines.iter().map(|line| {
            let dashed = if line.look == Look::Dashed { " dashed" } else { "" };
            format!("<span><i class=\"key {}{dashed}\"></i>{}</span>", line.class, line.name)
        });
        format!("<div class=\"legend\">{}</div>", keys.collect::<String>())
    }

    /// The same as text: twenty-four rows.
    fn table(&self) -> String {
        let steps = self.steps();
        let rows = steps.min(24);
        let mut text =
            String::from("<details><summary>As a table</summary><table><thead><tr><th>Time</th>");
        for line in &self.lines {
            text.push_str(&format!("<th>{}</th>", escape(line.name)));
        }
        text.push_str("</tr></thead><tbody>");
        for place in 0..rows {
            let (from, to) = (place * steps / rows, (place + 1) * steps / rows);
            text.push_str(&format!("<tr><td>{}</td>", moment(from as f64 * self.step_seconds)));
            for line in &self.lines {
                let value = line.values.get(from..to).and_then(|values| kept(values, line.keep));
                let value = value.map(|value| escape(&(self.unit)(value))).unwrap_or_default();
                text.push_str(&format!("<td>{value}</td>"));
            }
            text.push_str("</tr>");
        }
        text.push_str("</tbody></table></details>");
        text
    }
}

/// What is left of the values of one point.
fn kept(values: &[f64], keep: Keep) -> Option<f64> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    match keep {
        Keep::Least => finite().min_by(f64::total_cmp),
        Keep::Most => finite().max_by(f64::total_cmp),
        Keep::Mean => {
            let number = finite().count();
            (number != 0).then(|| finite().sum::<f64>() / number as f64)
        }
    }
}

fn path(
    line: &Line,
    step: f64,
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
    floor: f64,
) -> String {
    let steps = line.values.len();
    let points = steps.min(POINTS_MAX);
    let points: Vec<(f64, f64)> = (0..points)
        .filter_map(|place| {
            let (from, to) = (place * steps / points, (place + 1) * steps / points);
            let value = kept(line.values.get(from..to)?, line.keep)?;
            // The last point stands at the end.
            let at = if place + 1 == points { steps - 1 } else { from };
            Some((x(at as f64 * step), y(value)))
        })
        .collect();
    let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else {
        return String::new();
    };
    let drawn: String = points.iter().map(|(x, y)| format!("L{x:.1} {y:.1}")).collect();
    let drawn = drawn.strip_prefix('L').unwrap_or_default();
    let area = match line.look {
        Look::Area => format!(
            "<path class=\"area {}\" d=\"M{first:.1} {floor:.1}L{drawn}L{last:.1} {floor:.1}Z\"/>",
            line.class
        ),
        Look::Line | Look::Dashed => String::new(),
    };
    let dashed = if line.look == Look::Dashed { " dashed" } else { "" };
    format!("{area}<path class=\"line {}{dashed}\" d=\"M{drawn}\"/>", line.class)
}

/// About five round numbers from below `low` to above `high`.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low.min(0.0), low.max(1.0)];
    }
    let raw = span / 4.0;
    let scale = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * scale);
    let step = step.into_iter().find(|step| raw <= *step * 1.000_001).unwrap_or(10.0 * scale);
    let first = (low / step + 1e-9).floor();
    let number = ((high / step - 1e-9).ceil() - first).clamp(1.0, 12.0) as u32;
    (0..=number).map(|place| (first + f64::from(place)) * step).collect()
}

/// Round moments of a run, at most eight, with their names.
fn time_ticks(end: f64) -> Vec<(f64, String)> {
    const STEPS: [f64; 19] = [
        1.0,
        5.0,
        15.0,
        60.0,
        300.0,
        900.0,
        1_800.0,
        3_600.0,
        7_200.0,
        10_800.0,
        21_600.0,
        43_200.0,
        86_400.0,
        172_800.0,
        604_800.0,
        1_209_600.0,
        2_592_000.0,
        7_776_000.0,
        31_536_000.0,
    ];
    if !end.is_finite() || end <= 0.0 {
        return Vec::new();
    }
    let step = STEPS.into_iter().find(|step| end / step <= 8.0).unwrap_or(end / 8.0);
    let number = (end / step).floor() as u32;
    (0..=number).map(|place| f64::from(place) * step).map(|time| (time, seconds(time))).collect()
}

/// A moment of a run: `12d4h`.
pub(super) fn moment(at: f64) -> String {
    if at == 0.0 { "the beginning".to_owned() } else { format!("after {}", seconds(at)) }
}

/// How lengths of time are spread, on a scale where each mark is as much longer than the one before.
pub(super) fn histogram(title: &str, class: &str, sorted: &[f64], marks: &[(&str, f64)]) -> String {
    const WIDTH: f64 = 340.0;
    const HEIGHT: f64 = 164.0;
    const BINS: u32 = 24;
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else { return String::new() };
    // A tenth of a second is as good as at once.
    let low = least.max(0.1).log10();
    let high = most.max(0.1).log10();
    let (low, high) = if high - low < 0.3 { (low - 0.15, high + 0.15) } else { (low, high) };
    let bin = |place: u32| 10_f64.powf(low + (high - low) * f64::from(place) / f64::from(BINS));
    let counts: Vec<(f64, f64, u64)> = (0..BINS)
        .map(|place| {
            let (from, to) = (bin(place), bin(place + 1));
            let below = |limit: f64| sorted.partition_point(|time| time.max(0.1) < limit);
            let from_place = if place == 0 { 0 } else { below(from) };
            let to_place = if place + 1 == BINS { sorted.len() } else { below(to) };
            (from, to, to_place.saturating_sub(from_place) as u64)
        })
        .collect();
    let highest = counts.iter().map(|(_, _, number)| *number).max().unwrap_or(1).max(1) as f64;
    let x = |time: f64| 10.0 + (WIDTH - 20.0) * (time.max(0.1).log10() - low) / (high - low);
    let floor = HEIGHT - 24.0;
    let mut svg = format!(
        "<svg class=\"small\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (from, to, number) in counts.iter().filter(|(_, _, number)| *number != 0) {
        let height = ((floor - 40.0) * *number as f64 / highest).max(1.5);
        svg.push_str(&format!(
            "<rect class=\"bar {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"1.5\">\
             <title>{} to {}: {}</title></rect>",
            x(*from) + 0.5,
            floor - height,
            (x(*to) - x(*from) - 1.0).max(1.0),
            seconds(*from),
            seconds(*to),
            count(*number)
        ));
    }
    svg.push_str(&format!(
        "<line class=\"axis\" x1=\"10\" x2=\"{}\" y1=\"{floor}\" y2=\"{floor}\"/>",
        WIDTH - 10.0
    ));
    for time in log_ticks(10_f64.powf(low), 10_f64.powf(high)) {
        svg.push_str(&format!(
            "<text class=\"time\" x=\"{:.1}\" y=\"{}\">{}</text>",
            x(time),
            HEIGHT - 8.0,
            seconds(time)
        ));
    }
    for (place, (name, time)) in marks.iter().enumerate() {
        let at = x(*time);
        // Below each other, for they may be close; away from the edge.
        let row = 12.0 + 14.0 * place as f64;
        let (anchor, shift) = if WIDTH * 0.6 < at { ("end", -4.0) } else { ("start", 4.0) };
        svg.push_str(&format!(
            "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{floor}\"/>\
             <text class=\"tag\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{row}\">{name} {}</text>",
            row - 8.0,
            at + shift,
            seconds(*time)
        ));
    }
    svg.push_str("</svg>");
    svg
}

/// Lengths that people know, at most five of them between two others.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const KNOWN: [f64; 15] = [
        0.1,
        1.0,
        5.0,
        15.0,
        60.0,
        300.0,
        900.0,
        3_600.0,
        10_800.0,
        43_200.0,
        86_400.0,
        259_200.0,
        864_000.0,
        2_592_000.0,
        31_536_000.0,
    ];
    let between: Vec<f64> =
        KNOWN.into_iter().filter(|time| low <= *time && *time <= high).collect();
    let every = between.len().div_ceil(5).max(1);
    between.into_iter().step_by(every).collect()
}

/// Counts beside what was expected of them, one row each.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) count: u64,
    /// What was expected, and how far chance goes to either side.
    pub(super) expected: Option<(f64, f64)>,
}

/// Bars, each with a mark where it was expected to end and a band for chance.
pub(super) fn bars(title: &str, rows: &[Row<'_>]) -> String {
    const WIDTH: f64 = 1_060.0;
    const NAMES: f64 = 260.0;
    const NUMBERS: f64 = 70.0;
    const EACH: f64 = 26.0;
    let most = rows
        .iter()
        .map(|row| row.expected.map_or(0.0, |(e, chance)| e + chance).max(row.count as f64))
        .fold(1.0, f64::max);
    let x = |value: f64| NAMES + (WIDTH - NAMES - NUMBERS) * value / most;
    let height = rows.len() as f64 * EACH + 8.0;
    let mut svg = format!(
        "<svg class=\"wide\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (place, row) in rows.iter().enumerate() {
        let top = place as f64 * EACH + 4.0;
        let name = super::text::cut(row.name, 34);
        let told = match row.expected {
            Some((expected, chance)) => format!(
                "{}: {}, expected {} ± {}",
                row.name,
                count(row.count),
                super::words::number(expected),
                super::words::number(chance)
            ),
            None => format!("{}: {}", row.name, count(row.count)),
        };
        svg.push_str(&format!(
            "<g><title>{}</title><rect class=\"hit\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{EACH}\"/>\
             <text class=\"name\" x=\"{}\" y=\"{:.1}\">{}</text>\
             <rect class=\"bar s1\" x=\"{NAMES}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" rx=\"2\"/>",
            escape(&told),
            NAMES - 10.0,
            top + 17.0,
            escape(&name),
            top + 6.0,
            (x(row.count as f64) - NAMES).max(0.0),
        ));
        if let Some((expected, chance)) = row.expected {
            let (from, to) = (x((expected - chance).max(0.0)), x(expected + chance));
            svg.push_str(&format!(
                "<rect class=\"band\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"6\" rx=\"3\"/>\
                 <line class=\"goal\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                top + 10.0,
                to - from,
                x(expected),
                x(expected),
                top + 4.0,
                top + 22.0
            ));
        }
        let end = row.expected.map_or(0.0, |(e, chance)| e + chance).max(row.count as f64);
        svg.push_str(&format!(
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            x(end) + 8.0,
            top + 17.0,
            count(row.count)
        ));
    }
    svg.push_str("</svg>");
    svg
}

/// Parts of a whole, side by side: name, colour, share, and what is said of it.
pub(super) fn parts(title: &str, parts: &[(&str, &str, f64, String)]) -> String {
    const WIDTH: f64 = 1_060.0;
    let mut svg = format!(
        "<svg class=\"wide\" viewBox=\"0 0 {WIDTH} 34\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    let mut from = 0.0;
    for (name, class, share, said) in parts.iter().filter(|(_, _, share, _)| 0.0 < *share) {
        let width = (WIDTH * share).min(WIDTH - from);
        svg.push_str(&format!(
            "<rect class=\"bar {class}\" x=\"{from:.1}\" y=\"4\" width=\"{:.1}\" height=\"26\" rx=\"2\">\
             <title>{}: {}</title></rect>",
            (width - 1.0).max(0.5),
            escape(name),
            escape(said)
        ));
        from += width;
    }
    svg.push_str("</svg>");
    let keys = parts.iter().map(|(name, class, _, said)| {
        format!(
            "<span><i class=\"key {class}\"></i>{} <b>{}</b></span>",
            escape(name),
            escape(said)
        )
    });
    format!("{svg}<div class=\"legend\">{}</div>", keys.collect::<String>())
}

/// A difference with its interval.
pub(super) struct Interval<'a> {
    pub(super) name: &'a str,
    pub(super) class: &'static str,
    /// The middle and how far it goes to either side; more is better.
    pub(super) middle: f64,
    pub(super) half: f64,
    /// What stands beside it, and what is said of it.
    pub(super) value: String,
    pub(super) said: &'a str,
}

/// Intervals around zero, each on its own scale: right of it is better.
pub(super) fn intervals(title: &str, rows: &[Interval<'_>]) -> String {
    const WIDTH: f64 = 1_060.0;
    const NAMES: f64 = 200.0;
    const VALUES: f64 = 170.0;
    const EACH: f64 = 30.0;
    const MIDDLE: f64 = NAMES + (WIDTH - NAMES - VALUES) / 2.0;
    const REACH: f64 = (WIDTH - NAMES - VALUES) / 2.0 - 12.0;
    let height = rows.len() as f64 * EACH + 30.0;
    let mut svg = format!(
        "<svg class=\"wide\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\
         <line class=\"axis\" x1=\"{MIDDLE}\" x2=\"{MIDDLE}\" y1=\"18\" y2=\"{height}\"/>\
         <text class=\"tag\" text-anchor=\"end\" x=\"{}\" y=\"12\">A is better</text>\
         <text class=\"tag\" text-anchor=\"start\" x=\"{}\" y=\"12\">B is better</text>",
        escape(title),
        MIDDLE - 10.0,
        MIDDLE + 10.0,
    );
    for (place, row) in rows.iter().enumerate() {
        let at = place as f64 * EACH + 38.0;
        let scale = (row.middle.abs() + row.half).max(f64::MIN_POSITIVE);
        let x = |value: f64| MIDDLE + REACH * (value / scale).clamp(-1.0, 1.0);
        svg.push_str(&format!(
            "<g><title>{}</title><rect class=\"hit\" x=\"0\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{EACH}\"/>\
             <text class=\"name\" x=\"{}\" y=\"{:.1}\">{}</text>\
             <line class=\"whisker {class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{at:.1}\" r=\"5\"/>\
             <text class=\"num\" x=\"{WIDTH}\" y=\"{:.1}\">{}</text></g>",
            escape(row.said),
            at - EACH / 2.0,
            NAMES - 10.0,
            at + 4.0,
            escape(row.name),
            x(row.middle - row.half),
            x(row.middle + row.half),
            x(row.middle),
            at + 4.0,
            escape(&row.value),
            class = row.class,
        ));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_cannot_leave_its_place() {
        let rows = [
            ("plain", "plain"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("\" onload='x' &", "&quot; onload=&#39;x&#39; &amp;"),
            ("a\u{0}b\u{202e}c", "a\u{fffd}b\u{fffd}c"),
        ];
        for (text, expected) in rows {
            assert_eq!(escape(text), expected);
        }
    }

    #[test]
    fn axes_have_round_numbers_that_hold_everything() {
        let rows: [(f64, f64, &[f64]); 6] = [
            (0.0, 1.0, &[0.0, 0.25, 0.5, 0.75, 1.0]),
            (0.0, 16_384.0, &[0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0]),
            (15_900.0, 16_384.0, &[15_800.0, 16_000.0, 16_200.0, 16_400.0]),
            (0.0, 0.0, &[0.0, 1.0]),
            (0.0, f64::INFINITY, &[0.0, 1.0]),
            (0.0, 7.0, &[0.0, 2.0, 4.0, 6.0, 8.0]),
        ];
        for (low, high, expected) in rows {
            let is = ticks(low, high);
            assert_eq!(is.len(), expected.len(), "{low} to {high}: {is:?}");
            assert!(is.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{is:?}");
        }
    }

    #[test]
    fn times_are_named_in_steps_that_people_know() {
        let names = |end: f64| {
            time_ticks(end).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(86_400.0), "0s 3h 6h 9h 12h 15h 18h 21h 1d");
        assert_eq!(names(54.0 * 86_400.0), "0s 7d 14d 21d 28d 35d 42d 49d");
        assert_eq!(names(0.0), "");
    }

    #[test]
    fn a_short_dip_is_still_seen_when_points_are_left_out() {
        let mut values = vec![100.0; 10_000];
        values[5_003] = 10.0;
        let chart = Chart {
            title: "t",
            width: 500.0,
            height: 200.0,
            step_seconds: 60.0,
            lines: vec![Line {
                name: "in service",
                class: "s1",
                look: Look::Area,
                keep: Keep::Least,
                values,
            }],
            unit: |value| format!("{value:.0}"),
            may_float: false,
            settled: 0,
        };
        let figure = chart.figure("c");
        assert!(figure.contains("in service 10<"), "no strip tells of the dip");
        // Ten of a hundred: near the bottom of the plot.
        assert!(figure.contains(" 154.2"), "{figure}");
    }
}
