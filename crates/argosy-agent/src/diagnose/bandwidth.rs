//! The bandwidth test: copies over the bus and inside the GPU, timed by the GPU's own clock.

use crate::diagnose::cuda::{CudaError, Gpu};
use crate::diagnose::sensor::Facts;
use crate::diagnose::worker::Share;
use crate::diagnose::{GpuDiagnosis, best_and_median, model};

/// One copy over the bus: long enough that starting it does not count, at any speed.
const HOST_LEN: u64 = 256 << 20;

/// One copy inside the GPU: far more than any cache holds. On a smaller GPU, a third of what is free.
const DEVICE_LEN_MAX: u64 = 4 << 30;

/// Copies that are not counted: clocks rise, pages are mapped.
const WARM_UP: u32 = 3;

/// Seconds of every copy, by way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) host_len: u64,
    pub(super) host_to_device: Vec<f64>,
    pub(super) device_to_host: Vec<f64>,
    pub(super) device_len: u64,
    /// As the driver copies.
    pub(super) driver_copy: Vec<f64>,
    /// As our kernel does, in the best of its sizes.
    pub(super) kernel_copy: Vec<f64>,
    /// The link while it was in use.
    pub(super) link: (Option<u32>, Option<u32>),
}

/// `link` is asked right after the copies over the bus: an idle link is a slow one.
pub(super) fn run(
    gpu: &Gpu,
    runs: u32,
    share: &Share<'_>,
    link: impl FnOnce() -> (Option<u32>, Option<u32>),
) -> Result<Found, CudaError> {
    let several = |copy: &dyn Fn() -> Result<(), CudaError>| {
        (0..WARM_UP).try_for_each(|_| copy())?;
        (0..runs).map(|_| gpu.timed(copy)).collect::<Result<Vec<f64>, CudaError>>()
    };
    let mut found = Found::default();
    {
        let host = gpu.allocate_pinned(HOST_LEN)?;
        let device = gpu.allocate(HOST_LEN)?;
        found.host_len = host.len();
        share.at(0.0, || "host to device".to_owned());
        found.host_to_device = several(&|| gpu.copy_in(&host, &device))?;
        share.at(0.25, || "device to host".to_owned());
        found.device_to_host = several(&|| gpu.copy_out(&device, &host))?;
        found.link = link();
    }
    let len = (gpu.memory_free()? / 3).min(DEVICE_LEN_MAX) / 4096 * 4096;
    let (from, to) = (gpu.allocate(len)?, gpu.allocate(len)?);
    found.device_len = len;
    gpu.set(&from, 0xa5)?;
    share.at(0.5, || "device to device, by the driver".to_owned());
    found.driver_copy = several(&|| gpu.copy(&from, &to))?;
    // As many blocks as fit at once, or one for each 16 kB: which is best differs by model.
    let whole = u32::try_from(len.div_ceil(16 << 10)).unwrap_or(u32::MAX);
    let sizes = [gpu.multiprocessors * 8, gpu.multiprocessors * 32, whole];
    let ways = sizes.iter().flat_map(|blocks| [(*blocks, false), (*blocks, true)]);
    for ((blocks, stream), done) in ways.zip([0.65, 0.7, 0.75, 0.8, 0.85, 0.9]) {
        share.at(done, || format!("device to device, by {blocks} blocks"));
        let times = several(&|| gpu.copy_wide(&from, &to, blocks, stream))?;
        if best(&times) < best(&found.kernel_copy) {
            found.kernel_copy = times;
        }
    }
    Ok(found)
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The verdict.
pub(super) fn judge(found: &Found, facts: &Facts, mut gpu: GpuDiagnosis) -> GpuDiagnosis {
    let mut put = |name: &str, bytes: u64, times: &[f64]| {
        let (best, median) = best_and_median(times)?;
        let rate = |seconds: f64| bytes as f64 / 1e9 / seconds;
        gpu.figure(&format!("{name}_gb_per_s"), rate(best));
        gpu.figure(&format!("{name}_median_gb_per_s"), rate(median));
        Some(())
    };
    put("host_to_device", found.host_len, &found.host_to_device);
    put("device_to_host", found.host_len, &found.device_to_host);
    // Each byte is read and written.
    put("driver_copy", found.device_len * 2, &found.driver_copy);
    put("kernel_copy", found.device_len * 2, &found.kernel_copy);
    let better = if best(&found.kernel_copy) < best(&found.driver_copy) {
        &found.kernel_copy
    } else {
        &found.driver_copy
    };
    put("device_to_device", found.device_len * 2, better);
    if let Some(generation) = found.link.0 {
        gpu.figure("pcie_generation", f64::from(generation));
    }
    if let Some(width) = found.link.1 {
        gpu.figure("pcie_width", f64::from(width));
    }
    if let Some(model) = model::find(&gpu.name) {
        let bus = model.host_gb_per_s(facts.pcie_generation_max, facts.pcie_width_max);
        for (name, expected) in [
            ("host_to_device_gb_per_s", bus),
            ("device_to_host_gb_per_s", bus),
            ("device_to_device_gb_per_s", model.device_to_device_gb_per_s()),
        ] {
            gpu.expected.insert(name.to_owned(), expected);
        }
    }
    let mut complaints = Vec::new();
    if let (Some(width), Some(max)) = (found.link.1, facts.pcie_width_max)
        && width < max
    {
        complaints.push(format!("the bus has {width} of {max} lanes"));
    }
    let figure = |name: &str| gpu.figures.get(name).copied().unwrap_or_default();
    let well = format!(
        "device to device {:.0} GB/s, host to device {:.1} GB/s, device to host {:.1} GB/s",
        figure("device_to_device_gb_per_s"),
        figure("host_to_device_gb_per_s"),
        figure("device_to_host_gb_per_s"),
    );
    gpu.judged(complaints, &well)
}

#[cfg(test)]
mod tests;
