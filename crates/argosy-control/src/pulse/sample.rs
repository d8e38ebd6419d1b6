//! Measurements of one heartbeat, and which of them can be true.

use argosy_core::node::GPUS_MAX;

/// Measurements of one heartbeat. 0 stands for what was not measured, as on the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// In percent.
    pub cpu_percent: f32,
    /// In percent.
    pub memory_percent: f32,
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
    pub temperature: i16,
    /// In watts.
    pub power: u16,
    /// In percent.
    pub utilization: f32,
    /// In bytes.
    pub memory_used: u64,
    /// Memory errors that were corrected since the driver was loaded.
    pub ecc_corrected: u32,
    /// Memory errors that were not.
    pub ecc_uncorrected: u32,
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
    /// What can be true of it; what cannot counts as not measured. Says how much that was.
    pub(crate) fn plausible(mut self) -> (Self, u64) {
        let mut refused = u64::try_from(self.gpus.len().saturating_sub(GPUS_MAX)).unwrap_or(0);
        self.gpus.truncate(GPUS_MAX);
        let mut check = |possible: bool| {
            refused += u64::from(!possible);
            possible
        };
        for percent in [&mut self.cpu_percent, &mut self.memory_percent] {
            if !check(is_percent(*percent)) {
                *percent = 0.0;
            }
        }
        for gpu in &mut self.gpus {
            if !check(is_percent(gpu.utilization)) {
                gpu.utilization = 0.0;
            }
            if !check((TEMPERATURE_MIN..=TEMPERATURE_MAX).contains(&gpu.temperature)) {
                gpu.temperature = 0;
            }
            if !check(gpu.power <= POWER_MAX) {
                gpu.power = 0;
            }
            if !check(gpu.memory_used <= MEMORY_MAX) {
                gpu.memory_used = 0;
            }
        }
        for jobs in [&mut self.pending_jobs, &mut self.queue_depth] {
            if !check(jobs.is_none_or(|jobs| jobs <= JOBS_MAX)) {
                *jobs = None;
            }
        }
        // -0 is 0, and would print as something else.
        for percent in [&mut self.cpu_percent, &mut self.memory_percent] {
            *percent += 0.0;
        }
        self.gpus.iter_mut().for_each(|gpu| gpu.utilization += 0.0);
        (self, refused)
    }
}

/// Neither NaN nor infinite nor more than everything. A little more than 100 is how some counters round.
fn is_percent(value: f32) -> bool {
    (0.0..=101.0).contains(&value)
}
