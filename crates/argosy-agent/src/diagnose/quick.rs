//! The quick test: what NVML says of each GPU, judged without load and without CUDA.

use crate::diagnose::{Diagnosis, GpuDiagnosis};
use crate::gpu::{GpuIdentity, Inventory, Reading, Sweep};

/// A GPU counts as working from here: below it, its link and clocks may rest.
const ACTIVE_PERCENT: u32 = 5;

/// Corrected errors since the driver was loaded that are worth a note. They are corrected, so no more.
const CORRECTED_NOTED: u64 = 1;

/// Reasons for slow clocks that are faults.
const FAULTS: &[&str] =
    &["HwThermalSlowdown", "SwThermalSlowdown", "HwPowerBrakeSlowdown", "HwPowerBrake"];

/// NVML's words for what the driver wants done, by its number.
const RECOVERY: &[&str] =
    &["nothing", "a reset of the GPU", "a reboot", "a drain of its peers", "a drain and a reset"];

/// Judges what is there and how it is: all GPUs, or `only` one.
pub fn judge(inventory: &Inventory, sweep: &Sweep, only: Option<u32>) -> Diagnosis {
    let wanted = |index: u32| only.is_none_or(|only| only == index);
    let mut problems = Vec::new();
    let count = inventory.gpus.len() + inventory.unreadable.len();
    if only.is_none() && sweep.count as usize != count {
        problems
            .push(format!("there were {count} GPUs, and now the driver counts {}", sweep.count));
    }
    let unreadable = inventory.unreadable.iter().chain(&sweep.unreadable);
    let mut mute: Vec<_> = unreadable
        .filter(|(index, _)| wanted(**index))
        .map(|(index, said)| format!("GPU {index} cannot be read: {said}"))
        .collect();
    mute.sort();
    mute.dedup();
    problems.extend(mute);
    let mut gpus = Vec::new();
    for identity in inventory.gpus.iter().filter(|gpu| wanted(gpu.index)) {
        match sweep.gpus.iter().find(|reading| reading.uuid == identity.uuid) {
            Some(reading) => gpus.push(judge_one(identity, reading, count == 1)),
            None if sweep.unreadable.contains_key(&identity.index) => {}
            None => problems.push(format!("GPU {} ({}) is gone", identity.index, identity.uuid)),
        }
    }
    if let Some(index) = only
        && gpus.is_empty()
        && problems.is_empty()
    {
        problems.push(format!("there is no GPU {index}; there are {count}, counted from 0"));
    }
    if count == 0 && only.is_none() {
        problems.push("there is no GPU".to_owned());
    }
    Diagnosis::of("quick", problems, gpus, sweep.took.as_secs_f64())
}

/// `alone`: there is no other GPU that its links could lead to.
fn judge_one(identity: &GpuIdentity, reading: &Reading, alone: bool) -> GpuDiagnosis {
    let mut gpu = GpuDiagnosis {
        index: identity.index,
        uuid: identity.uuid.clone(),
        name: identity.name.clone(),
        ..GpuDiagnosis::default()
    };
    let mut complaints = Vec::new();
    let mut notes = Vec::new();
    link(identity, reading, &mut gpu, &mut complaints, &mut notes);
    if let Some(down @ 1..) = reading.nvlinks_down {
        // Part of a machine that was given away alone: its links lead to GPUs that are somebody else's.
        let cut_off = alone && identity.nvlinks.iter().all(|link| !link.active);
        let said = format!("{down} NVLinks are down");
        if cut_off { notes.push(said) } else { complaints.push(said) }
    }
    memory(identity, reading, &mut gpu, &mut complaints, &mut notes);
    clocks(identity, reading, &mut gpu, &mut complaints);
    if let Some(action @ 1..) = reading.recovery_action {
        let wish = RECOVERY.get(action as usize).copied().unwrap_or("something we do not know");
        complaints.push(format!("the driver wants {wish} (recovery action {action})"));
    }
    let mut well = "link, memory, clocks and links between GPUs are well".to_owned();
    for note in notes {
        well = format!("{well}; {note}");
    }
    gpu.passed = complaints.is_empty();
    gpu.message = if gpu.passed { well } else { complaints.join("; ") };
    gpu
}

fn link(
    identity: &GpuIdentity,
    reading: &Reading,
    gpu: &mut GpuDiagnosis,
    complaints: &mut Vec<String>,
    notes: &mut Vec<String>,
) {
    if let Some(width) = reading.pcie_width {
        gpu.figure("pcie_width", f64::from(width));
    }
    if let Some(generation) = reading.pcie_generation {
        gpu.figure("pcie_generation", f64::from(generation));
    }
    if let (Some(width), Some(max)) = (reading.pcie_width, identity.pcie_width_max)
        && width < max
    {
        let said = format!("the bus has {width} of {max} lanes");
        if active(reading) {
            complaints.push(said);
        } else {
            notes.push(format!("{said} while idle: look again under load"));
        }
    }
}

fn active(reading: &Reading) -> bool {
    reading.utilization_percent.is_some_and(|percent| ACTIVE_PERCENT <= percent)
}

fn memory(
    identity: &GpuIdentity,
    reading: &Reading,
    gpu: &mut GpuDiagnosis,
    complaints: &mut Vec<String>,
    notes: &mut Vec<String>,
) {
    if identity.ecc_enabled == Some(false) {
        notes.push("ECC is off".to_owned());
    }
    let volatile = |counts: Option<crate::gpu::Counts>| counts.and_then(|counts| counts.volatile);
    if let Some(count) = volatile(reading.ecc_uncorrected) {
        gpu.figure("ecc_uncorrected", count as f64);
        if 0 < count {
            complaints.push(format!("{count} uncorrected ECC errors since the driver was loaded"));
        }
    }
    if let Some(count) = volatile(reading.ecc_corrected) {
        gpu.figure("ecc_corrected", count as f64);
        if CORRECTED_NOTED <= count {
            notes.push(format!("{count} corrected ECC errors since the driver was loaded"));
        }
    }
    if let Some(remaps) = reading.row_remaps {
        gpu.figure("row_remaps", f64::from(remaps.corrected) + f64::from(remaps.uncorrected));
        if remaps.failed {
            complaints.push("a row of memory could not be remapped: no spare is left".to_owned());
        }
        if remaps.pending {
            complaints.push("a row remap waits for a reset of the GPU".to_owned());
        }
    }
    if reading.retired_pages.is_some_and(|pages| pages.pending) {
        complaints.push("a page retirement waits for a reset of the GPU".to_owned());
    }
}

fn clocks(
    identity: &GpuIdentity,
    reading: &Reading,
    gpu: &mut GpuDiagnosis,
    complaints: &mut Vec<String>,
) {
    if let Some(clock) = reading.sm_clock_mhz {
        gpu.figure("sm_clock_mhz", f64::from(clock));
    }
    if let Some(clock) = reading.memory_clock_mhz {
        gpu.figure("memory_clock_mhz", f64::from(clock));
    }
    if let Some(celsius) = reading.temperature_celsius {
        gpu.figure("temperature_celsius", f64::from(celsius));
        if let Some(slowdown) = identity.slowdown_celsius
            && slowdown.saturating_sub(2) <= celsius
        {
            complaints.push(format!("it is {celsius} °C hot; it slows down at {slowdown} °C"));
        }
    }
    for reason in reading.throttle_reasons.iter().filter(|reason| FAULTS.contains(&reason.as_str()))
    {
        complaints.push(format!("its clocks are held back: {reason}"));
    }
}

#[cfg(test)]
mod tests;
