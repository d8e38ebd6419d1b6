//! Measurements of one heartbeat, and which of them can be true.

use argosy_core::node::GPUS_MAX;

/// Measurements of one heartbeat. `None` is what was not measured, which is not 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// In percent.
    pub cpu_percent: Option<f32>,
    /// In percent.
    pub memory_percent: Option<f32>,
    /// By GPU.
    pub gpus: Vec<GpuSample>,
    /// Jobs that wait for this node's pool, if it knows.
    pub pending_jobs: Option<u32>,
    /// How long the queue is, if it knows.
    pub queue_depth: Option<u32>,
}

/// Measurements of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuSample {
    /// Its place.
    pub index: u16,
    /// In degrees Celsius.
    pub temperature: Option<i16>,
    /// In watts.
    pub power: Option<u16>,
    /// In percent.
    pub utilization: Option<f32>,
    /// In bytes.
    pub memory_used: Option<u64>,
    /// Memory errors that were corrected since the driver was loaded.
    pub ecc_corrected: Option<u32>,
    /// Memory errors that were not.
    pub ecc_uncorrected: Option<u32>,
}

/// How much the GPUs of a node work together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GpuWork {
    /// Of those that were measured, in percent of one GPU.
    pub sum: f32,
    /// How many were measured.
    pub measured: u16,
    /// How many were not: a GPU in MIG mode never is.
    pub unmeasured: u16,
}

impl GpuWork {
    /// The mean of those that were measured, in percent; `None` if none was.
    pub(crate) fn mean(self) -> Option<f32> {
        (0 < self.measured).then(|| self.sum / f32::from(self.measured))
    }
}

/// The hottest GPU there can be: the silicon shuts itself down long before.
const TEMPERATURE_MAX: i16 = 200;
/// The coldest.
const TEMPERATURE_MIN: i16 = -60;
/// More than any GPU draws, in watts.
const POWER_MAX: u16 = 10_000;
/// More memory than any GPU has, in bytes.
const MEMORY_MAX: u64 = 1 << 46;
/// More jobs than anybody waits for. An autoscaler that believed more would buy a continent.
const JOBS_MAX: u32 = 10_000_000;

impl Sample {
    /// How much its GPUs work.
    pub(crate) fn gpu_work(&self) -> GpuWork {
        self.gpus.iter().fold(GpuWork::default(), |mut work, gpu| {
            match gpu.utilization {
                Some(percent) => {
                    work.sum += percent;
                    work.measured = work.measured.saturating_add(1);
                }
                None => work.unmeasured = work.unmeasured.saturating_add(1),
            }
            work
        })
    }

    /// What can be true of it; what cannot counts as not measured. Says how much that was.
    pub(crate) fn plausible(mut self) -> (Self, u64) {
        let mut refused = u64::try_from(self.gpus.len().saturating_sub(GPUS_MAX)).unwrap_or(0);
        self.gpus.truncate(GPUS_MAX);
        for percent in [&mut self.cpu_percent, &mut self.memory_percent] {
            refused += keep_if(percent, is_percent);
        }
        for gpu in &mut self.gpus {
            let celsius = TEMPERATURE_MIN..=TEMPERATURE_MAX;
            refused += keep_if(&mut gpu.utilization, is_percent)
                + keep_if(&mut gpu.temperature, |degrees| celsius.contains(&degrees))
                + keep_if(&mut gpu.power, |watts| watts <= POWER_MAX)
                + keep_if(&mut gpu.memory_used, |bytes| bytes <= MEMORY_MAX);
            // -0 is 0, and would print as something else.
            gpu.utilization = gpu.utilization.map(|percent| percent + 0.0);
        }
        for jobs in [&mut self.pending_jobs, &mut self.queue_depth] {
            refused += keep_if(jobs, |jobs| jobs <= JOBS_MAX);
        }
        for percent in [&mut self.cpu_percent, &mut self.memory_percent] {
            *percent = percent.map(|percent| percent + 0.0);
        }
        (self, refused)
    }
}

/// Forgets a value that cannot be true: nobody knows the real one. Says how many that were.
fn keep_if<T: Copy>(value: &mut Option<T>, possible: impl FnOnce(T) -> bool) -> u64 {
    let refused = value.is_some_and(|value| !possible(value));
    if refused {
        *value = None;
    }
    u64::from(refused)
}

/// Neither NaN nor infinite nor more than everything. A little more than 100 is how some counters round.
fn is_percent(value: f32) -> bool {
    (0.0..=101.0).contains(&value)
}
