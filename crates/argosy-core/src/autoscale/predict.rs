//! Predictive: the size for the work that is expected by the time a node ordered now has booted.
//!
//! The expected work is a daily season (what the same time of the previous days had) and a straight line
//! through what is left of the last hour, both by medians, so that one wild sample moves neither. It is
//! work that is extrapolated, not utilization: a pool that was doubled is half as utilized and as busy.
//!
//! What a newcomer gets wrong: work that is expected to vanish is still here now. Never fewer nodes than
//! the present needs.

use super::metrics::{Facts, Sample};
use super::{Counted, Limits, Mind, Opinion, Policy, Shown, nodes_for, write_number, write_span};
use crate::field::reader::Reader;
use crate::span::Written;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// How far ahead it may look. Beyond, a straight line is a guess; less than a minute is the present.
const HORIZON_RANGE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_mins(1), SignedDuration::from_hours(6));

/// From which past the line may be drawn.
const LOOKBACK_RANGE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_mins(10), SignedDuration::from_hours(24));

/// With fewer samples than this, a line goes through noise.
const SAMPLES_MIN: usize = 6;

/// More points make the line no better, and the slopes between them are quadratic in number.
const POINTS_MAX: usize = 48;

/// How many previous days make a season, at least and at most.
const DAYS_MIN: usize = 2;
const DAYS_MAX: i64 = 14;

/// What still is the same time of day, before and after: three samples where there is one every five
/// minutes, and one where there is one every quarter of an hour.
const SAME_TIME: SignedDuration = SignedDuration::from_secs(450);

/// A change that is not larger than this many times the usual deviation from the line is noise.
const NOISE: f64 = 2.0;

/// The room that must be left before a node is taken away: without it, a load at the edge of a size
/// would order and return the same node all day.
const ROOM: f64 = 1.1;

/// How to look ahead.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Predictive {
    /// How far: the time a node needs to boot.
    #[serde(serialize_with = "write_span")]
    pub horizon: SignedDuration,
    /// How full the nodes shall be then, in percent.
    #[serde(serialize_with = "write_number")]
    pub target_utilization: f64,
    /// Whether days resemble each other.
    pub season: Season,
    /// From how much past the line is drawn.
    #[serde(serialize_with = "write_span")]
    pub lookback: SignedDuration,
    /// Who decides while there is too little history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<Policy>>,
}

/// What repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Season {
    /// Days, as soon as there are two of them.
    Daily,
    /// Nothing.
    Off,
}

impl Default for Predictive {
    fn default() -> Self {
        Predictive {
            horizon: SignedDuration::from_mins(10),
            target_utilization: 70.0,
            season: Season::Daily,
            lookback: SignedDuration::from_hours(1),
            fallback: None,
        }
    }
}

/// What is expected, in nodes' worth of work.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Forecast {
    /// At the end of the horizon.
    work: f64,
    /// How the line climbs, per hour; 0 if that is not more than noise.
    slope: f64,
    /// Whether the season is part of it.
    seasonal: bool,
}

impl Predictive {
    pub(super) fn read(reader: &mut Reader<'_>, limits: &mut Limits) -> Option<Predictive> {
        let default = Predictive::default();
        let seasons = [("daily", Season::Daily), ("off", Season::Off)];
        Some(Predictive {
            horizon: reader.span("horizon", HORIZON_RANGE).unwrap_or(default.horizon),
            target_utilization: reader
                .number("targetUtilization", (1.0, 100.0))
                .unwrap_or(default.target_utilization),
            season: reader.choice("season", &seasons).unwrap_or(default.season),
            lookback: reader.span("lookback", LOOKBACK_RANGE).unwrap_or(default.lookback),
            fallback: limits.read_fallback(reader)?,
        })
    }

    pub(super) fn ask(&self, mind: &mut Mind<'_>) -> Opinion {
        match self.forecast(&mind.facts) {
            Ok(forecast) => self.size_for(forecast, &mind.facts),
            Err(missing) => match &self.fallback {
                Some(fallback) => mind.ask_part("fallback", fallback).because(&missing),
                None => Opinion::none(missing),
            },
        }
    }

    fn size_for(&self, forecast: Forecast, facts: &Facts<'_>) -> Opinion {
        let measured = facts.utilization.as_ref().ok();
        let present = match measured.filter(|_| 0 < facts.ready) {
            Some(percent) => percent / 100.0 * f64::from(facts.ready),
            None => facts.history.last().and_then(Sample::demand).unwrap_or(0.0),
        };
        let share = self.target_utilization / 100.0;
        let work = present.max(forecast.work);
        let fits = |work: f64| nodes_for(work / share).max(1);
        let (enough, roomy) = (fits(work), fits(work * ROOM));
        let target = if facts.wanted < enough { enough } else { roomy.min(facts.wanted) };
        let course = match forecast.slope {
            0.0 => "no clear trend".to_owned(),
            up if 0.0 < up => format!("rising by {} an hour", Shown(up)),
            down => format!("falling by {} an hour", Shown(-down)),
        };
        let season = if forecast.seasonal { ", daily season" } else { "" };
        Opinion::new(
            target.max(1),
            format!(
                "work for {} now, for {} expected in {} ({course}{season}): {} at {} %",
                Counted(Shown(present), "node"),
                Shown(forecast.work),
                Written(self.horizon),
                Counted(enough, "node"),
                Shown(self.target_utilization),
            ),
        )
    }

    /// What is expected, or how much history is missing.
    fn forecast(&self, facts: &Facts<'_>) -> Result<Forecast, String> {
        let Facts { history, now, .. } = *facts;
        let since = now.checked_sub(self.lookback).unwrap_or(Timestamp::MIN);
        let recent = between(history, since, now);
        let works: Vec<(Timestamp, f64)> =
            recent.iter().filter_map(|sample| Some((sample.at, sample.demand()?))).collect();
        let ends = works.first().zip(works.last());
        let reach = ends.map_or(SignedDuration::ZERO, |(a, b)| b.0.duration_since(a.0));
        if works.len() < SAMPLES_MIN || reach < self.lookback / 2 {
            return Err(format!(
                "too little history: {} over {} of the last {}, at least {SAMPLES_MIN} over {} are \
                 needed",
                Counted(works.len(), "sample"),
                Written(SignedDuration::from_secs(reach.as_secs())),
                Written(self.lookback),
                Written(self.lookback / 2),
            ));
        }
        let works = thinned(&works);
        let then = now.checked_add(self.horizon).unwrap_or(now);
        let seasonal = match self.season {
            Season::Daily => season(history, then).and_then(|at_then| {
                let left = |&(at, work): &(Timestamp, f64)| Some((at, work - season(history, at)?));
                let left: Vec<_> = works.iter().filter_map(left).collect();
                (SAMPLES_MIN <= left.len()).then_some((at_then, left))
            }),
            Season::Off => None,
        };
        let (base, points, seasonal) = match seasonal {
            Some((at_then, left)) => (at_then, left, true),
            None => (0.0, works, false),
        };
        let points: Vec<(f64, f64)> =
            points.into_iter().map(|(at, work)| (hours(at.duration_since(now)), work)).collect();
        let (level, slope) = line(&points);
        let work = (base + level + slope * hours(self.horizon)).max(0.0);
        Ok(Forecast { work, slope, seasonal })
    }
}

/// The samples of a time, both ends included.
fn between(history: &[Sample], from: Timestamp, to: Timestamp) -> &[Sample] {
    let start = history.partition_point(|sample| sample.at < from);
    let end = history.partition_point(|sample| sample.at <= to);
    history.get(start..end).unwrap_or_default()
}

/// At most `POINTS_MAX` points: means of neighbours.
fn thinned(works: &[(Timestamp, f64)]) -> Vec<(Timestamp, f64)> {
    let each = works.len().div_ceil(POINTS_MAX).max(1);
    let mean = |chunk: &[(Timestamp, f64)]| {
        let middle = chunk.get(chunk.len() / 2)?.0;
        Some((middle, average(chunk.iter().map(|(_, work)| *work))?))
    };
    works.chunks(each).filter_map(mean).collect()
}

/// What the same time of the previous days usually had, if two of them are known.
fn season(history: &[Sample], at: Timestamp) -> Option<f64> {
    let oldest = history.first()?.at;
    let mut days: Vec<f64> = Vec::new();
    for day in 1..=DAYS_MAX {
        let then = at.checked_sub(SignedDuration::from_hours(24 * day)).ok()?;
        let (from, to) = (then.checked_sub(SAME_TIME).ok()?, then.checked_add(SAME_TIME).ok()?);
        if to < oldest {
            break;
        }
        days.extend(average(between(history, from, to).iter().filter_map(Sample::demand)));
    }
    if days.len() < DAYS_MIN { None } else { median(&mut days) }
}

/// Level at hour 0 and slope per hour of the line through the points: Theil and Sen's, the median of the
/// slopes between all pairs. The slope is 0 if it does not stand out of the noise.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, (x, y)) in points.iter().enumerate() {
        for (later_x, later_y) in points.iter().skip(i + 1) {
            if x < later_x {
                slopes.push((later_y - y) / (later_x - x));
            }
        }
    }
    let slope = median(&mut slopes).unwrap_or(0.0);
    let level_of = |slope: f64| {
        let mut levels: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
        median(&mut levels).unwrap_or(0.0)
    };
    let level = level_of(slope);
    let mut off: Vec<f64> = points.iter().map(|(x, y)| (y - slope * x - level).abs()).collect();
    let noise = median(&mut off).unwrap_or(0.0);
    let width = points.first().zip(points.last()).map_or(0.0, |(a, b)| b.0 - a.0);
    if (slope * width).abs() <= NOISE * noise || (slope * width).abs() < 1e-6 {
        return (level_of(0.0), 0.0);
    }
    (level, slope)
}

fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, high, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let low = below.iter().copied().max_by(f64::total_cmp).filter(|_| even);
    Some(low.map_or(*high, |low| f64::midpoint(low, *high)))
}

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (0 < count).then(|| sum / f64::from(count))
}

fn hours(length: SignedDuration) -> f64 {
    length.as_secs_f64() / 3600.0
}

#[cfg(test)]
mod tests;
