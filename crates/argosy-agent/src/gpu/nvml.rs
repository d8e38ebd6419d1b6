//! The driver itself, through NVML. Only ever called in a child process.
//!
//! What a newcomer gets wrong: most calls fail on most GPUs, and that is fine. A value that this GPU, this
//! driver or this user does not give is `None`; only a GPU that is gone, or a driver that is, ends a reading.

use crate::gpu::{
    Counts, GpuError, GpuIdentity, Mig, Nvlink, Process, Reading, RetiredPages, RowRemaps,
};
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor, TemperatureThreshold};
use nvml_wrapper::enum_wrappers::nv_link::ErrorCounter;
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id as id;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use std::collections::BTreeMap;
use std::path::Path;

/// How many programs of one GPU are named. A drain waits until there are none, so those past the limit
/// change nothing; a GPU with thousands of them must not make a line that the parent refuses.
const PROCESSES_MAX: usize = 128;

/// The most links that any GPU has; a driver that says more is not believed.
const NVLINKS_MAX: u32 = 64;

/// What is asked by number, all at once: the driver answers a batch for the price of one.
const FIELDS: [u32; 21] = [
    id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL,
    id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL,
    id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL,
    id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL,
    id::NVML_FI_DEV_RETIRED_SBE,
    id::NVML_FI_DEV_RETIRED_DBE,
    id::NVML_FI_DEV_RETIRED_PENDING,
    id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
    id::NVML_FI_DEV_MEMORY_TEMP,
    id::NVML_FI_DEV_NVLINK_LINK_COUNT,
    id::NVML_FI_DEV_PCIE_REPLAY_COUNTER,
    id::NVML_FI_DEV_REMAPPED_COR,
    id::NVML_FI_DEV_REMAPPED_UNC,
    id::NVML_FI_DEV_REMAPPED_PENDING,
    id::NVML_FI_DEV_REMAPPED_FAILURE,
    id::NVML_FI_DEV_POWER_INSTANT,
    id::NVML_FI_DEV_POWER_MAX_LIMIT,
    id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
];

/// Errors of links, by our word, NVML's total for all links, and NVML's counter of one link.
const NVLINK_ERRORS: [(&str, u32, ErrorCounter); 4] = [
    ("crc_flit", id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, ErrorCounter::DlCrcFlit),
    ("crc_data", id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, ErrorCounter::DlCrcData),
    ("replay", id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, ErrorCounter::DlReplay),
    ("recovery", id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, ErrorCounter::DlRecovery),
];

/// Why clocks are held back, by the words that readings use.
const THROTTLE_REASONS: [(ThrottleReasons, &str); 9] = [
    (ThrottleReasons::GPU_IDLE, "GpuIdle"),
    (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "ApplicationsClocksSetting"),
    (ThrottleReasons::SW_POWER_CAP, "SwPowerCap"),
    (ThrottleReasons::HW_SLOWDOWN, "HwSlowdown"),
    (ThrottleReasons::SYNC_BOOST, "SyncBoost"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "SwThermalSlowdown"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "HwThermalSlowdown"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "HwPowerBrakeSlowdown"),
    (ThrottleReasons::DISPLAY_CLOCK_SETTING, "DisplayClockSetting"),
];

/// NVML, loaded and started.
///
/// It counts the GPUs when it is started: a GPU that was added or that is gone is seen by the next one.
#[derive(Debug)]
pub struct Driver {
    nvml: Nvml,
}

/// What the driver says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// `580.159.04`.
    pub driver: Option<String>,
    /// `13.0`.
    pub cuda: Option<String>,
    /// NVML's own.
    pub nvml: Option<String>,
}

impl Driver {
    /// Loads NVML from `library`, or from where the system keeps it, and starts it.
    pub fn load(library: Option<&Path>) -> Result<Self, GpuError> {
        let mut builder = Nvml::builder();
        if let Some(library) = library {
            builder.lib_path(library.as_os_str());
        }
        match builder.init() {
            Ok(nvml) => Ok(Self { nvml }),
            Err(NvmlError::LibloadingError(error)) => {
                Err(GpuError::Absent { message: chain(&error) })
            }
            Err(error) => Err(driver_error(&error)),
        }
    }

    /// How many GPUs the driver counts.
    pub fn count(&self) -> Result<u32, GpuError> {
        self.nvml.device_count().map_err(|error| driver_error(&error))
    }

    /// What the driver says about itself.
    pub fn versions(&self) -> Versions {
        Versions {
            driver: self.nvml.sys_driver_version().ok(),
            cuda: self.nvml.sys_cuda_driver_version().ok().map(|version| {
                let (major, minor) =
                    (cuda_driver_version_major(version), cuda_driver_version_minor(version));
                format!("{major}.{minor}")
            }),
            nvml: self.nvml.sys_nvml_version().ok(),
        }
    }

    /// What one GPU is.
    pub fn identity(&self, index: u32) -> Result<GpuIdentity, Unread> {
        identity(&self.nvml, index).map_err(|error| unread(&error))
    }

    /// The fastest its multiprocessors may be clocked, in MHz.
    pub fn sm_clock_max_mhz(&self, index: u32) -> Option<u32> {
        self.nvml.device_by_index(index).and_then(|device| device.max_clock_info(Clock::SM)).ok()
    }

    /// How one GPU is.
    pub fn reading(&self, index: u32) -> Result<Reading, Unread> {
        reading(&self.nvml, index).map_err(|error| unread(&error))
    }

    /// Whether this GPU would be shut down, and lose its counts, if nobody held it open.
    pub fn needs_holding(&self, index: u32) -> bool {
        let device = self.nvml.device_by_index(index);
        device.and_then(|device| device.is_in_persistent_mode()).is_ok_and(|persistent| !persistent)
    }
}

/// Why one GPU could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is about this GPU; NVML's word for it, for example `GPU_IS_LOST`.
    Gpu(String),
    /// It is about the driver: no GPU can be read.
    Driver(GpuError),
}

fn unread(error: &NvmlError) -> Unread {
    let gone = matches!(
        error,
        NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch
    );
    if gone { Unread::Driver(driver_error(error)) } else { Unread::Gpu(word(error)) }
}

fn identity(nvml: &Nvml, index: u32) -> Result<GpuIdentity, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let fields = fields(&device)?;
    let threshold = |which| given(device.temperature_threshold(which));
    let limits = given(device.power_management_limit_constraints())?;
    Ok(GpuIdentity {
        index,
        uuid: device.uuid()?,
        name: given(device.name())?.unwrap_or_default(),
        serial: given(device.serial())?,
        board_id: given(device.board_id())?,
        board_part_number: given(device.board_part_number())?.filter(|text| !text.is_empty()),
        pci_bus_id: device.pci_info()?.bus_id,
        vbios_version: given(device.vbios_version())?,
        memory_total_bytes: given(device.memory_info())?.map(|memory| memory.total),
        compute_capability: given(device.cuda_compute_capability())?
            .map(|version| format!("{}.{}", version.major, version.minor)),
        mig: mig(&device)?,
        ecc_enabled: given(device.is_ecc_enabled())?.map(|mode| mode.currently_enabled),
        persistence: given(device.is_in_persistent_mode())?,
        pcie_generation_max: given(device.max_pcie_link_gen())?,
        pcie_width_max: given(device.max_pcie_link_width())?,
        power_limit_max_watts: limits
            .map(|limits| u64::from(limits.max_limit))
            .or_else(|| fields.get(&id::NVML_FI_DEV_POWER_MAX_LIMIT).copied())
            .map(watts),
        slowdown_celsius: threshold(TemperatureThreshold::Slowdown)?,
        shutdown_celsius: threshold(TemperatureThreshold::Shutdown)?,
        nvlinks: nvlinks(&device, &fields)?,
    })
}

fn reading(nvml: &Nvml, index: u32) -> Result<Reading, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let fields = fields(&device)?;
    let field = |field: u32| fields.get(&field).copied();
    // The one value that every GPU has: a driver that answers and cannot say it has lost the GPU.
    let memory = unless_unsupported(device.memory_info())?;
    let utilization = given(device.utilization_rates())?;
    let links = link_states(&device, &fields)?;
    Ok(Reading {
        index,
        uuid: device.uuid()?,
        utilization_percent: utilization.as_ref().map(|rates| rates.gpu),
        memory_utilization_percent: utilization.as_ref().map(|rates| rates.memory),
        memory_used_bytes: memory.as_ref().map(|memory| memory.used),
        memory_free_bytes: memory.as_ref().map(|memory| memory.free),
        temperature_celsius: given(device.temperature(TemperatureSensor::Gpu))?,
        memory_temperature_celsius: field(id::NVML_FI_DEV_MEMORY_TEMP)
            .and_then(|celsius| u32::try_from(celsius).ok())
            // What has no sensor in its memory says 0 and not "unsupported".
            .filter(|celsius| *celsius != 0),
        power_watts: given(device.power_usage())?
            .map(u64::from)
            .or_else(|| field(id::NVML_FI_DEV_POWER_INSTANT))
            .map(watts),
        power_limit_watts: given(device.enforced_power_limit())?.map(u64::from).map(watts),
        sm_clock_mhz: given(device.clock_info(Clock::SM))?,
        memory_clock_mhz: given(device.clock_info(Clock::Memory))?,
        performance_state: given(device.performance_state())?
            .map(|state| state.as_c())
            // NVML's word for "unknown" is 32.
            .filter(|state| *state < 16),
        throttle_reasons: given(device.current_throttle_reasons())?
            .map(throttle_reasons)
            .unwrap_or_default(),
        ecc_corrected: counts(
            field(id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL),
            field(id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL),
        ),
        ecc_uncorrected: counts(
            field(id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL),
            field(id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL),
        ),
        row_remaps: row_remaps(&fields),
        retired_pages: retired_pages(&fields),
        nvlinks_down: (!links.is_empty()).then(|| {
            u32::try_from(links.iter().filter(|active| !**active).count()).unwrap_or(u32::MAX)
        }),
        nvlink_errors: nvlink_errors(&device, &fields, links.len())?,
        pcie_replays: field(id::NVML_FI_DEV_PCIE_REPLAY_COUNTER).map(saturated),
        pcie_generation: given(device.current_pcie_link_gen())?,
        pcie_width: given(device.current_pcie_link_width())?,
        recovery_action: field(id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION).map(saturated),
        processes: processes(&device)?,
        mig: mig(&device)?,
    })
}

/// What the driver gives of `FIELDS`.
fn fields(device: &Device<'_>) -> Result<BTreeMap<u32, u64>, NvmlError> {
    let answers = given(device.field_values_for(&FIELDS.map(FieldId)))?.unwrap_or_default();
    let mut fields = BTreeMap::new();
    for (field, answer) in FIELDS.into_iter().zip(answers) {
        let value = given(answer.and_then(|sample| sample.value))?.and_then(|value| match value {
            SampleValue::U32(value) => Some(u64::from(value)),
            SampleValue::U64(value) => Some(value),
            SampleValue::I64(value) => u64::try_from(value).ok(),
            SampleValue::F64(_) => None,
        });
        fields.extend(value.map(|value| (field, value)));
    }
    Ok(fields)
}

fn counts(volatile: Option<u64>, aggregate: Option<u64>) -> Option<Counts> {
    (volatile.is_some() || aggregate.is_some()).then_some(Counts { volatile, aggregate })
}

fn row_remaps(fields: &BTreeMap<u32, u64>) -> Option<RowRemaps> {
    let field = |field: u32| fields.get(&field).copied();
    Some(RowRemaps {
        corrected: saturated(field(id::NVML_FI_DEV_REMAPPED_COR)?),
        uncorrected: saturated(field(id::NVML_FI_DEV_REMAPPED_UNC)?),
        pending: field(id::NVML_FI_DEV_REMAPPED_PENDING)? != 0,
        failed: field(id::NVML_FI_DEV_REMAPPED_FAILURE)? != 0,
    })
}

fn retired_pages(fields: &BTreeMap<u32, u64>) -> Option<RetiredPages> {
    let field = |field: u32| fields.get(&field).copied();
    Some(RetiredPages {
        corrected: saturated(field(id::NVML_FI_DEV_RETIRED_SBE)?),
        uncorrected: saturated(field(id::NVML_FI_DEV_RETIRED_DBE)?),
        pending: field(id::NVML_FI_DEV_RETIRED_PENDING)? != 0,
    })
}

fn mig(device: &Device<'_>) -> Result<Option<Mig>, NvmlError> {
    let Some(mode) = given(device.mig_mode())? else { return Ok(None) };
    let mut instances = 0;
    if mode.current == 1 {
        // Places, not instances: one that is free answers "not found".
        for place in 0..given(device.mig_device_count())?.unwrap_or_default() {
            instances += u32::from(given(device.mig_device_by_index(place))?.is_some());
        }
    }
    Ok(Some(Mig { enabled: mode.current == 1, pending: mode.pending == 1, instances }))
}

/// Whether each link is up, by its number.
fn link_states(device: &Device<'_>, fields: &BTreeMap<u32, u64>) -> Result<Vec<bool>, NvmlError> {
    let said = fields.get(&id::NVML_FI_DEV_NVLINK_LINK_COUNT).copied().map(saturated);
    let mut states = Vec::new();
    for link in 0..said.unwrap_or(NVLINKS_MAX).min(NVLINKS_MAX) {
        match given(device.link_wrapper_for(link).is_active())? {
            Some(active) => states.push(active),
            None => break,
        }
    }
    Ok(states)
}

/// The links, without what is at their other ends: that is seen when all GPUs are known, and to look at the
/// others here would make one bad GPU spoil them all.
fn nvlinks(device: &Device<'_>, fields: &BTreeMap<u32, u64>) -> Result<Vec<Nvlink>, NvmlError> {
    (0..)
        .zip(link_states(device, fields)?)
        .map(|(link, active)| {
            let remote = given(device.link_wrapper_for(link).remote_pci_info())?;
            let remote_pci_bus_id = remote.map(|remote| remote.bus_id);
            Ok(Nvlink { link, active, remote: None, remote_pci_bus_id })
        })
        .collect()
}

/// The totals that the driver keeps; from those that keep none, the sum over the links.
fn nvlink_errors(
    device: &Device<'_>,
    fields: &BTreeMap<u32, u64>,
    links: usize,
) -> Result<BTreeMap<String, u64>, NvmlError> {
    let mut errors = BTreeMap::new();
    let links = u32::try_from(links).unwrap_or(NVLINKS_MAX);
    for (kind, total, counter) in NVLINK_ERRORS {
        if let Some(total) = fields.get(&total) {
            errors.insert(kind.to_owned(), *total);
            continue;
        }
        for link in 0..links {
            let Some(of_link) = given(device.link_wrapper_for(link).error_counter(counter))? else {
                break;
            };
            let sum: &mut u64 = errors.entry(kind.to_owned()).or_default();
            *sum = sum.saturating_add(of_link);
        }
    }
    Ok(errors)
}

fn throttle_reasons(reasons: ThrottleReasons) -> Vec<String> {
    THROTTLE_REASONS
        .iter()
        .filter(|(reason, _)| reasons.contains(*reason))
        .map(|(_, word)| (*word).to_owned())
        .collect()
}

fn processes(device: &Device<'_>) -> Result<Option<Vec<Process>>, NvmlError> {
    let compute = given(device.running_compute_processes())?;
    let graphics = given(device.running_graphics_processes())?;
    if compute.is_none() && graphics.is_none() {
        return Ok(None);
    }
    // A program that computes and draws is in both lists.
    let mut by_pid: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for process in compute.into_iter().chain(graphics).flatten() {
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let known = by_pid.entry(process.pid).or_default();
        *known = (*known).max(memory);
    }
    let named = by_pid.into_iter().take(PROCESSES_MAX).map(|(pid, memory_bytes)| Process {
        pid,
        name: process_name(pid),
        memory_bytes,
    });
    Ok(Some(named.collect()))
}

fn process_name(pid: u32) -> String {
    // The kernel keeps it to 16 bytes; a program may have put anything into it.
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

fn watts(milliwatts: u64) -> f64 {
    f64::from(saturated(milliwatts)) / 1_000.0
}

fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// What was answered, if the GPU is still there: no other error is worth the rest of the reading.
fn given<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(
            error @ (NvmlError::GpuLost
            | NvmlError::ResetRequired
            | NvmlError::Uninitialized
            | NvmlError::DriverNotLoaded
            | NvmlError::LibRmVersionMismatch),
        ) => Err(error),
        Err(_) => Ok(None),
    }
}

/// What was answered, if it is not that this GPU has no such thing, or that we may not know.
fn unless_unsupported<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(
            NvmlError::NotSupported
            | NvmlError::NoPermission
            | NvmlError::FunctionNotFound
            | NvmlError::FailedToLoadSymbol(_),
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

fn driver_error(error: &NvmlError) -> GpuError {
    GpuError::Driver { code: word(error), message: chain(error) }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// NVML's own word for an error, as its header writes it; for what is not NVML's, a sentence.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the rest are the wrapper's own, without a word"
)]
fn word(error: &NvmlError) -> String {
    let word = match error {
        NvmlError::Uninitialized => "UNINITIALIZED",
        NvmlError::InvalidArg => "INVALID_ARGUMENT",
        NvmlError::NotSupported => "NOT_SUPPORTED",
        NvmlError::NoPermission => "NO_PERMISSION",
        NvmlError::NotFound => "NOT_FOUND",
        NvmlError::InsufficientSize(_) => "INSUFFICIENT_SIZE",
        NvmlError::InsufficientPower => "INSUFFICIENT_POWER",
        NvmlError::DriverNotLoaded => "DRIVER_NOT_LOADED",
        NvmlError::Timeout => "TIMEOUT",
        NvmlError::IrqIssue => "IRQ_ISSUE",
        NvmlError::LibraryNotFound => "LIBRARY_NOT_FOUND",
        NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => "FUNCTION_NOT_FOUND",
        NvmlError::CorruptedInfoROM => "CORRUPTED_INFOROM",
        NvmlError::GpuLost => "GPU_IS_LOST",
        NvmlError::ResetRequired => "RESET_REQUIRED",
        NvmlError::OperatingSystem => "OPERATING_SYSTEM",
        NvmlError::LibRmVersionMismatch => "LIB_RM_VERSION_MISMATCH",
        NvmlError::InUse => "IN_USE",
        NvmlError::InsufficientMemory => "MEMORY",
        NvmlError::NoData => "NO_DATA",
        NvmlError::VgpuEccNotSupported => "VGPU_ECC_NOT_SUPPORTED",
        NvmlError::Unknown => "UNKNOWN",
        NvmlError::UnexpectedVariant(28) => "GPU_NOT_FOUND",
        NvmlError::UnexpectedVariant(code) => return format!("NVML error {code}"),
        other => return chain(other),
    };
    word.to_owned()
}
