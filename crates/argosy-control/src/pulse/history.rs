//! What a node measured lately, small enough to keep for every node.
//!
//! What a newcomer gets wrong: the points are not evenly far apart. A node that came a minute ago has one
//! every few seconds, so that there is something to look at; when there is no more room, every second one
//! goes, until an hour fits.

use super::{GpuSample, Sample};
use argosy_core::node::GPUS_MAX;
use std::collections::VecDeque;
use std::time::Duration;

/// How many points a node keeps: an hour at one each `EVERY_MAX_S`.
pub(super) const POINTS_MAX: usize = 120;

/// How far apart they are at first, in seconds.
const EVERY_FIRST_S: u32 = 2;

/// How far apart they become; a bit less than the interval of nodes that call, which is never exact.
const EVERY_MAX_S: u32 = 28;

/// How many changes of error counts are kept. A GPU whose counts change at every look has more than a graph
/// can show; its oldest changes are forgotten, which the graph shows as a gap.
const CHANGES_MAX: usize = 256;

/// In what steps memory is remembered: a graph shows no finer ones, and two bytes reach to four terabytes.
const MEMORY_STEP: u64 = 64 * 1024 * 1024;

/// One moment of a node's recent past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryPoint {
    /// Seconds on the monotonic clock.
    pub at_s: u32,
    /// The mean of its GPUs, in percent; `None` if no GPU said, as in all that follows.
    pub gpu_percent: Option<u8>,
    /// In percent.
    pub cpu_percent: Option<u8>,
    /// In percent.
    pub memory_percent: Option<u8>,
    /// The hottest of its GPUs, in degrees Celsius.
    pub temperature: Option<u8>,
}

/// The recent past of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuTrack {
    /// Its place in the node.
    pub index: usize,
    /// As many as the node has points, for the same moments; `None` where it was not measured.
    pub moments: Vec<Option<GpuMoment>>,
}

/// What a GPU measured at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuMoment {
    /// In degrees Celsius; what is colder than nothing is 0. `None` if it was not measured, as in all that follows.
    pub temperature: Option<u8>,
    /// In percent.
    pub utilization: Option<u8>,
    /// In watts.
    pub power: Option<u16>,
    /// In bytes, to the next 64 MiB.
    pub memory_used: Option<u64>,
    /// Memory errors that were corrected and that were not, since the driver was loaded; `None` also if that
    /// was forgotten.
    pub ecc: Option<(u32, u32)>,
}

/// What is kept of a node.
#[derive(Default)]
pub(super) struct History {
    points: VecDeque<HistoryPoint>,
    /// How far apart they are to be; 0 before the first.
    every_s: u32,
    /// How many GPUs a row of `gpus` has.
    width: usize,
    /// A row for each of the newest points. There are fewer rows after a GPU was added.
    gpus: VecDeque<GpuPoint>,
    changes: VecDeque<Change>,
    /// Whether changes were forgotten: then nothing is known before the first that is left.
    forgot: bool,
}

/// What is kept of a GPU at one moment. The largest number stands for what was not measured: no GPU has it, and
/// an `Option` of each would take twice the room for every node.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GpuPoint {
    temperature: u8,
    utilization: u8,
    power: u16,
    /// In steps.
    memory: u16,
}

impl GpuPoint {
    const NONE: Self =
        Self { temperature: u8::MAX, utilization: u8::MAX, power: u16::MAX, memory: u16::MAX };

    fn of(gpu: &GpuSample) -> Self {
        let steps = |bytes: u64| {
            u16::try_from(bytes.div_ceil(MEMORY_STEP)).unwrap_or(u16::MAX).min(u16::MAX - 1)
        };
        Self {
            temperature: gpu
                .temperature
                .map_or(u8::MAX, |degrees| celsius(degrees).min(u8::MAX - 1)),
            utilization: gpu.utilization.map_or(u8::MAX, percent),
            power: gpu.power.map_or(u16::MAX, |watts| watts.min(u16::MAX - 1)),
            memory: gpu.memory_used.map_or(u16::MAX, steps),
        }
    }

    fn moment(self, ecc: Option<(u32, u32)>) -> GpuMoment {
        let byte = |value: u8| (value != u8::MAX).then_some(value);
        let word = |value: u16| (value != u16::MAX).then_some(value);
        GpuMoment {
            temperature: byte(self.temperature),
            utilization: byte(self.utilization),
            power: word(self.power),
            memory_used: word(self.memory).map(|steps| u64::from(steps) * MEMORY_STEP),
            ecc,
        }
    }
}

/// The error counts of a GPU became these, or are not known any more.
#[derive(Clone, Copy)]
struct Change {
    at_s: u32,
    index: u16,
    counts: Option<(u32, u32)>,
}

impl History {
    /// Takes a sample in, if it is time for a point.
    pub(super) fn push(&mut self, sample: &Sample, monotonic: Duration) {
        let point = HistoryPoint::of(sample, monotonic);
        self.note_errors(sample, point.at_s);
        let due = |last: &HistoryPoint| last.at_s.saturating_add(self.every_s) <= point.at_s;
        if !self.points.back().is_none_or(due) {
            return;
        }
        if self.points.len() == POINTS_MAX {
            self.make_room();
        }
        let width = placed(sample).map(|gpu| usize::from(gpu.index) + 1).max().unwrap_or(0);
        if self.width < width {
            (self.width, self.gpus) = (width, VecDeque::new());
        }
        let mut row = vec![GpuPoint::NONE; self.width];
        for gpu in placed(sample) {
            let Some(place) = row.get_mut(usize::from(gpu.index)) else { continue };
            *place = GpuPoint::of(gpu);
        }
        self.points.push_back(point);
        self.gpus.extend(row);
        self.every_s = self.every_s.max(EVERY_FIRST_S);
    }

    /// The oldest point goes, or, while they are close together, every second one.
    fn make_room(&mut self) {
        let (points, rows) = (self.points.len(), self.rows());
        if EVERY_MAX_S <= self.every_s {
            self.points.pop_front();
            if rows == points {
                self.gpus.drain(..self.width);
            }
            return;
        }
        self.every_s = (self.every_s * 2).min(EVERY_MAX_S);
        let (mut place, width) = (0, self.width.max(1));
        self.points.retain(|_| {
            place += 1;
            (points - place) % 2 == 0
        });
        let mut place = 0;
        self.gpus.retain(|_| {
            let row = place / width + 1;
            place += 1;
            (rows - row) % 2 == 0
        });
    }

    fn rows(&self) -> usize {
        self.gpus.len().checked_div(self.width).unwrap_or(0)
    }

    fn note_errors(&mut self, sample: &Sample, at_s: u32) {
        for gpu in placed(sample) {
            let counts = gpu.ecc_corrected.zip(gpu.ecc_uncorrected);
            let known = self.changes.iter().rev().find(|change| change.index == gpu.index);
            let same = known.map_or(counts == Some((0, 0)), |known| known.counts == counts);
            if same {
                continue;
            }
            if self.changes.len() == CHANGES_MAX {
                self.changes.pop_front();
                self.forgot = true;
            }
            self.changes.push_back(Change { at_s, index: gpu.index, counts });
        }
    }

    /// Its points, oldest first.
    pub(super) fn points(&self) -> Vec<HistoryPoint> {
        self.points.iter().copied().collect()
    }

    /// The same by GPU.
    pub(super) fn tracks(&self) -> Vec<GpuTrack> {
        let missing = self.points.len() - self.rows().min(self.points.len());
        let track = |index: usize| {
            let column = self.gpus.iter().skip(index).step_by(self.width.max(1));
            let padded = std::iter::repeat_n(None, missing).chain(column.map(Some));
            let moments = self.points.iter().zip(padded).map(|(point, gpu)| {
                let gpu = gpu.filter(|gpu| **gpu != GpuPoint::NONE)?;
                Some(gpu.moment(self.errors(index, point.at_s)))
            });
            GpuTrack { index, moments: moments.collect() }
        };
        (0..self.width).map(track).collect()
    }

    /// The error counts of a GPU at a moment.
    fn errors(&self, index: usize, at_s: u32) -> Option<(u32, u32)> {
        let theirs = |change: &&Change| usize::from(change.index) == index && change.at_s <= at_s;
        let known = self.changes.iter().rev().find(theirs).map(|change| change.counts);
        known.unwrap_or((!self.forgot).then_some((0, 0)))
    }
}

impl HistoryPoint {
    fn of(sample: &Sample, monotonic: Duration) -> Self {
        let hottest = sample.gpus.iter().filter_map(|gpu| gpu.temperature).max();
        Self {
            at_s: u32::try_from(monotonic.as_secs()).unwrap_or(u32::MAX),
            gpu_percent: sample.gpu_work().mean().map(percent),
            cpu_percent: sample.cpu_percent.map(percent),
            memory_percent: sample.memory_percent.map(percent),
            temperature: hottest.map(celsius),
        }
    }
}

/// The GPUs at places that a node can have: a row has room for all places up to the last.
fn placed(sample: &Sample) -> impl Iterator<Item = &GpuSample> {
    sample.gpus.iter().filter(|gpu| usize::from(gpu.index) < GPUS_MAX)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn percent(value: f32) -> u8 {
    value.clamp(0.0, 100.0) as u8
}

fn celsius(degrees: i16) -> u8 {
    u8::try_from(degrees.clamp(0, 255)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
