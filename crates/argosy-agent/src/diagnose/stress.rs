//! The stress test: products back to back, while NVML says how hot, how fast and how hungry the GPU is.

use crate::diagnose::compute::Product;
use crate::diagnose::cuda::{CudaError, Gpu};
use crate::diagnose::reference::{EDGE, Kind};
use crate::diagnose::sensor::Facts;
use crate::diagnose::worker::{Share, Stopwatch};
use crate::diagnose::{GpuDiagnosis, Point, model};
use std::collections::BTreeMap;

/// How long the GPU works between two looks at its results. Shorter leaves gaps in the load; longer
/// makes the last batch end late.
const BATCH_S: f64 = 0.25;

/// Products in one batch, at most.
const BATCH_MAX: f64 = 5000.0;

/// How many points of a curve are kept. When there are more, every second is dropped: an hour still has
/// its shape, and a result its size.
const POINTS_MAX: usize = 240;

/// A clock below this share of the highest is "far below": a healthy GPU at its power limit keeps 0.6 and
/// more of it.
const CLOCK_SHARE_MIN: f64 = 0.5;

/// Reasons that somebody set: slow, and not sick.
const CHOSEN: &[&str] =
    &["SwPowerCap", "ApplicationsClocksSetting", "SyncBoost", "DisplayClockSetting"];

/// Reasons that are a fault of cooling or of the power supply. One sample of `HwSlowdown` alone may be a
/// change of clocks, so it is not here; NVML says the finer words with it.
const FAULTS: &[&str] = &["SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown"];

/// A reason seen in fewer samples than this is a moment, not a state.
const FAULT_SAMPLES_MIN: u32 = 2;

/// What the load was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load {
    pub(super) kind: Option<Kind>,
    pub(super) seconds: f64,
    pub(super) products: u64,
    /// Batches whose last product was wrong.
    pub(super) wrong: u32,
    pub(super) batches: u32,
    /// TFLOP/s of each third of the time.
    pub(super) thirds: [f64; 3],
}

pub(super) fn run(
    gpu: &Gpu,
    seconds: u32,
    inject: bool,
    share: &Share<'_>,
) -> Result<Load, CudaError> {
    let kind = if gpu.has_bf16() { Kind::Bf16 } else { Kind::F32 };
    let product = Product::new(gpu, kind, EDGE)?;
    // Twice: the first has the driver's preparations in it.
    product.make()?;
    let (once, _) = product.make()?;
    let batch = (BATCH_S / once.max(1e-6)).ceil().clamp(1.0, BATCH_MAX) as u32;
    let limit = f64::from(seconds);
    let watch = Stopwatch::start();
    let mut load = Load { kind: Some(kind), ..Load::default() };
    let mut busy = [(0.0, 0.0); 3];
    loop {
        let spent = watch.seconds();
        if limit <= spent {
            break;
        }
        share.at(spent / limit, || {
            format!("{} products, {:.0} of {seconds} s", load.products, spent.floor())
        });
        let spoil = inject && load.batches == 1;
        if spoil {
            product.spoil()?;
        }
        let took = gpu.timed(|| (0..batch).try_for_each(|_| product.multiply()))?;
        let hash = product.hash()?;
        if spoil {
            product.spoil()?;
        }
        load.products += u64::from(batch);
        load.batches += 1;
        load.wrong += u32::from(hash != kind.known());
        let third = ((spent / limit * 3.0) as usize).min(2);
        if let Some((work, time)) = busy.get_mut(third) {
            *work += product.operations() * f64::from(batch);
            *time += took;
        }
    }
    load.seconds = watch.seconds();
    load.thirds = busy.map(|(work, time)| if 0.0 < time { work / time / 1e12 } else { 0.0 });
    Ok(load)
}

/// How a GPU was over time: few points, and what must not be lost between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    points: Vec<Point>,
    /// Every how manyth sample is kept.
    stride: u32,
    samples: u32,
    temperature_max: Option<u32>,
    power_max: Option<f64>,
    reasons: BTreeMap<String, u32>,
}

impl Default for Curve {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            stride: 1,
            samples: 0,
            temperature_max: None,
            power_max: None,
            reasons: BTreeMap::new(),
        }
    }
}

impl Curve {
    /// Adds a sample.
    pub(super) fn push(&mut self, point: Point) {
        self.temperature_max = self.temperature_max.max(point.temperature_celsius);
        self.power_max = match (self.power_max, point.power_watts) {
            (Some(max), Some(now)) => Some(max.max(now)),
            (max, now) => max.or(now),
        };
        for reason in &point.throttle_reasons {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
        if self.samples.is_multiple_of(self.stride) {
            self.points.push(point);
        }
        self.samples += 1;
        if POINTS_MAX < self.points.len() {
            let mut even = false;
            self.points.retain(|_| {
                even = !even;
                even
            });
            self.stride *= 2;
        }
    }

    fn clocks(&self) -> Vec<u32> {
        self.points.iter().filter_map(|point| point.sm_clock_mhz).collect()
    }
}

/// The verdict.
pub(super) fn judge(
    load: &Load,
    curve: Curve,
    facts: &Facts,
    mut gpu: GpuDiagnosis,
) -> GpuDiagnosis {
    let word = load.kind.map_or("", Kind::as_str);
    let mut complaints = Vec::new();
    gpu.figure("stress_seconds", load.seconds);
    gpu.figure("stress_products", load.products as f64);
    gpu.figure("stress_wrong_batches", f64::from(load.wrong));
    let [first, middle, last] = load.thirds;
    gpu.figure(&format!("stress_{word}_tflops"), if 0.0 < last { last } else { middle.max(first) });
    if 0.0 < first && 0.0 < last {
        gpu.figure("stress_slowdown_percent", ((1.0 - last / first) * 100.0).max(0.0));
    }
    if 0 < load.wrong {
        complaints.push(format!(
            "{} of {} batches of products ended with a wrong hash: silent corruption",
            load.wrong, load.batches
        ));
    }
    if let Some(hottest) = curve.temperature_max {
        gpu.figure("temperature_max_celsius", f64::from(hottest));
        if let Some(slowdown) = facts.slowdown_celsius
            && slowdown.saturating_sub(2) <= hottest
        {
            complaints.push(format!("it got {hottest} °C hot; it slows down at {slowdown} °C"));
        }
    }
    if let Some(watts) = curve.power_max {
        gpu.figure("power_max_watts", watts);
    }
    if let Some(model) = model::find(&gpu.name) {
        gpu.figure("power_data_sheet_watts", model.watts);
    }
    for (reason, count) in &curve.reasons {
        gpu.figure(&format!("throttle_{reason}_samples"), f64::from(*count));
        if FAULTS.contains(&reason.as_str()) && FAULT_SAMPLES_MIN <= *count {
            complaints.push(format!("{reason} in {count} of {} samples", curve.samples));
        }
    }
    let clocks = curve.clocks();
    // The second half: clocks settle while it warms up.
    let settled = clocks.get(clocks.len() / 2..).unwrap_or_default();
    if let Some(median) = median(settled) {
        gpu.figure("sm_clock_median_mhz", f64::from(median));
        if let Some(max) = facts.sm_clock_max_mhz {
            gpu.figure("sm_clock_max_mhz", f64::from(max));
            let chosen = curve.reasons.keys().any(|reason| CHOSEN.contains(&reason.as_str()));
            if f64::from(median) < f64::from(max) * CLOCK_SHARE_MIN && !chosen {
                complaints.push(format!(
                    "its clock is {median} MHz under load, far below {max} MHz, and nobody asked for that"
                ));
            }
        }
    }
    let well = format!(
        "{:.0} s of load, {} products, {:.1} TFLOP/s{}{}",
        load.seconds,
        load.products,
        last,
        curve.temperature_max.map_or_else(String::new, |max| format!(", at most {max} °C")),
        curve.power_max.map_or_else(String::new, |max| format!(" and {max:.0} W")),
    );
    gpu.curve = curve.points;
    gpu.judged(complaints, &well)
}

fn median(values: &[u32]) -> Option<u32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests;
