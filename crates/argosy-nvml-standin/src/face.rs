//! The C functions, by NVML's names: those that the agent's path calls, and no more.
//!
//! A device handle is the GPU's index plus one, dressed as a pointer; it is never followed.

use crate::script::{Behaviour, Gpu, Script};
use nvml_wrapper_sys::bindings as sys;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::raw::{c_char, c_int, c_uint, c_ulonglong};
use std::sync::{Mutex, PoisonError};
use sys::{
    nvmlDevice_t, nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED as DRIVER_NOT_LOADED,
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE as INSUFFICIENT_SIZE,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED,
    nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
};

/// Handles of MIG instances begin here.
const MIG_HANDLES: usize = 1_000;

/// How often each field of each GPU was asked for, in this process.
static ASKED: Mutex<BTreeMap<(u32, u32), u64>> = Mutex::new(BTreeMap::new());

type Answer = Result<(), nvmlReturn_t>;

fn code(answer: Answer) -> nvmlReturn_t {
    answer.err().unwrap_or(SUCCESS)
}

/// The script, if nothing goes wrong in this call.
fn script(call: &str, gpu: Option<u32>) -> Result<Script, nvmlReturn_t> {
    let script = Script::read().ok_or(DRIVER_NOT_LOADED)?;
    match script.faults.iter().find(|fault| fault.fits(call, gpu)).map(|fault| fault.behaviour) {
        None => Ok(script),
        Some(Behaviour::Hang) => loop {
            std::thread::park();
        },
        Some(Behaviour::Abort) => std::process::abort(),
        Some(Behaviour::Return(code)) => Err(code),
        Some(Behaviour::Babble(bytes)) => {
            let line = vec![b'x'; bytes as usize];
            let _lost = std::io::stderr().write_all(&line);
            Ok(script)
        }
    }
}

fn index_of(device: nvmlDevice_t) -> Result<u32, nvmlReturn_t> {
    (device as usize)
        .checked_sub(1)
        .and_then(|index| u32::try_from(index).ok())
        .ok_or(INVALID_ARGUMENT)
}

/// The GPU behind a handle, if nothing goes wrong in this call.
fn gpu(call: &str, device: nvmlDevice_t) -> Result<Gpu, nvmlReturn_t> {
    let index = index_of(device)?;
    let script = script(call, Some(index))?;
    script.gpus.into_iter().nth(index as usize).ok_or(INVALID_ARGUMENT)
}

/// Writes through a pointer that the caller gave.
///
/// # Safety
/// `out` is null or may be written.
unsafe fn put<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller says that it may be written.
    unsafe { out.write(value) };
    Ok(())
}

/// Writes a text with its end mark.
///
/// # Safety
/// `out` is null or has room for `room` bytes.
unsafe fn put_text(out: *mut c_char, room: c_uint, text: &str) -> Answer {
    if out.is_null() || (room as usize) <= text.len() {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for the text and its end mark.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

macro_rules! system_texts {
    ($($name:ident => $member:ident,)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(out: *mut c_char, room: c_uint) -> nvmlReturn_t {
            code(script(stringify!($name), None).and_then(|script| {
                // SAFETY: the caller's promise.
                unsafe { put_text(out, room, &script.$member) }
            }))
        }
    )* };
}

system_texts! {
    nvmlSystemGetDriverVersion => driver_version,
    nvmlSystemGetNVMLVersion => nvml_version,
}

macro_rules! texts {
    ($($name:ident => |$gpu:ident| $text:expr,)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: nvmlDevice_t, out: *mut c_char, room: c_uint) -> nvmlReturn_t {
            code(gpu(stringify!($name), device).and_then(|$gpu| {
                let text: Option<String> = $text;
                // SAFETY: the caller's promise.
                unsafe { put_text(out, room, &text.ok_or(NOT_SUPPORTED)?) }
            }))
        }
    )* };
}

texts! {
    nvmlDeviceGetUUID => |gpu| Some(gpu.uuid),
    nvmlDeviceGetName => |gpu| Some(gpu.name),
    nvmlDeviceGetSerial => |gpu| gpu.serial,
    nvmlDeviceGetBoardPartNumber => |gpu| gpu.board_part_number,
    nvmlDeviceGetVbiosVersion => |gpu| gpu.vbios_version,
}

macro_rules! values {
    ($($name:ident : $type:ty => |$gpu:ident| $value:expr,)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: nvmlDevice_t, out: *mut $type) -> nvmlReturn_t {
            code(gpu(stringify!($name), device).and_then(|$gpu| {
                let value: Option<$type> = $value;
                // SAFETY: the caller's promise.
                unsafe { put(out, value.ok_or(NOT_SUPPORTED)?) }
            }))
        }
    )* };
}

values! {
    nvmlDeviceGetBoardId: c_uint => |gpu| gpu.board_id,
    nvmlDeviceGetPersistenceMode: sys::nvmlEnableState_t => |gpu| gpu.persistence.map(c_uint::from),
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint => |gpu| gpu.pcie_generation.map(|(_, most)| most),
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint => |gpu| gpu.pcie_generation.map(|(now, _)| now),
    nvmlDeviceGetMaxPcieLinkWidth: c_uint => |gpu| gpu.pcie_width.map(|(_, most)| most),
    nvmlDeviceGetCurrPcieLinkWidth: c_uint => |gpu| gpu.pcie_width.map(|(now, _)| now),
    nvmlDeviceGetPowerUsage: c_uint => |gpu| gpu.power_milliwatts,
    nvmlDeviceGetEnforcedPowerLimit: c_uint => |gpu| gpu.power_limit_milliwatts.map(|(now, _)| now),
    nvmlDeviceGetPerformanceState: sys::nvmlPstates_t => |gpu| gpu.performance_state,
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong => |gpu| gpu.throttle_reasons,
    nvmlDeviceGetMaxMigDeviceCount: c_uint => |gpu| gpu.mig.map(|_| 7),
    nvmlDeviceGetUtilizationRates: sys::nvmlUtilization_t => |gpu| gpu.utilization_percent
        .map(|(gpu, memory)| sys::nvmlUtilization_t { gpu, memory }),
    nvmlDeviceGetPciInfo_v3: sys::nvmlPciInfo_t => |gpu| Some(pci_info(&gpu.pci_bus_id)),
    nvmlDeviceGetMemoryInfo_v2: sys::nvmlMemory_v2_t => |gpu| Some(sys::nvmlMemory_v2_t {
        version: 0,
        total: gpu.memory_total_bytes,
        reserved: 0,
        free: gpu.memory_total_bytes.saturating_sub(gpu.memory_used_bytes),
        used: gpu.memory_used_bytes,
    }),
}

fn pci_info(bus_id: &str) -> sys::nvmlPciInfo_t {
    let mut info = sys::nvmlPciInfo_t {
        busIdLegacy: [0; 16],
        domain: 0,
        bus: 0,
        device: 0,
        pciDeviceId: 0x2330_10de,
        pciSubSystemId: 0,
        busId: [0; 32],
    };
    // The last place stays the end mark.
    for (place, byte) in info.busId.iter_mut().take(31).zip(bus_id.bytes()) {
        *place = byte as c_char;
    }
    info
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    code(script("nvmlInit_v2", None).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) -> nvmlReturn_t {
    code(script("nvmlSystemGetCudaDriverVersion_v2", None).and_then(|script| {
        // SAFETY: the caller's promise.
        unsafe { put(out, script.cuda_version) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> nvmlReturn_t {
    code(script("nvmlDeviceGetCount_v2", None).and_then(|script| {
        // SAFETY: the caller's promise.
        unsafe { put(out, script.gpus.len() as c_uint) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let handle = (index as usize + 1) as nvmlDevice_t;
    code(gpu("nvmlDeviceGetHandleByIndex_v2", handle).and_then(|_| {
        // SAFETY: the caller's promise.
        unsafe { put(out, handle) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetCudaComputeCapability", device).and_then(|gpu| {
        let (own_major, own_minor) = gpu.compute_capability.ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        unsafe { put(major, own_major).and_then(|()| put(minor, own_minor)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    now: *mut c_uint,
    next: *mut c_uint,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetMigMode", device).and_then(|gpu| {
        let (own_now, own_next) = gpu.mig.ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        unsafe { put(now, own_now).and_then(|()| put(next, own_next)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    index: c_uint,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetMigDeviceHandleByIndex", device).and_then(|gpu| {
        if gpu.mig_instances <= index {
            return Err(NOT_FOUND);
        }
        // SAFETY: the caller's promise.
        unsafe { put(out, (MIG_HANDLES + index as usize) as nvmlDevice_t) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEccMode(
    device: nvmlDevice_t,
    now: *mut sys::nvmlEnableState_t,
    next: *mut sys::nvmlEnableState_t,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetEccMode", device).and_then(|gpu| {
        let enabled = gpu.ecc_enabled.map(c_uint::from).ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        unsafe { put(now, enabled).and_then(|()| put(next, enabled)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    device: nvmlDevice_t,
    least: *mut c_uint,
    most: *mut c_uint,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetPowerManagementLimitConstraints", device).and_then(|gpu| {
        let (_, own_most) = gpu.power_limit_milliwatts.ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        unsafe { put(least, own_most / 4).and_then(|()| put(most, own_most)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    _sensor: sys::nvmlTemperatureSensors_t,
    out: *mut c_uint,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetTemperature", device).and_then(|gpu| {
        // SAFETY: the caller's promise.
        unsafe { put(out, gpu.temperature_celsius.ok_or(NOT_SUPPORTED)?) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperatureThreshold(
    device: nvmlDevice_t,
    which: sys::nvmlTemperatureThresholds_t,
    out: *mut c_uint,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetTemperatureThreshold", device).and_then(|gpu| {
        let value = match which {
            0 => gpu.shutdown_celsius,
            1 => gpu.slowdown_celsius,
            _ => None,
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, value.ok_or(NOT_SUPPORTED)?) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetClockInfo(
    device: nvmlDevice_t,
    which: sys::nvmlClockType_t,
    out: *mut c_uint,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetClockInfo", device).and_then(|gpu| {
        let (sm, memory) = gpu.clocks_mhz.ok_or(NOT_SUPPORTED)?;
        let value = match which {
            1 => sm,
            2 => memory,
            _ => return Err(NOT_SUPPORTED),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, value) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetNvLinkState(
    device: nvmlDevice_t,
    link: c_uint,
    out: *mut sys::nvmlEnableState_t,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetNvLinkState", device).and_then(|gpu| {
        let active = gpu.nvlinks.get(link as usize).ok_or(INVALID_ARGUMENT)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, c_uint::from(*active)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
    device: nvmlDevice_t,
    link: c_uint,
    out: *mut sys::nvmlPciInfo_t,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetNvLinkRemotePciInfo_v2", device).and_then(|gpu| {
        gpu.nvlinks.get(link as usize).ok_or(INVALID_ARGUMENT)?;
        let bus_id = gpu.nvlink_remote_bus_id.ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, pci_info(&bus_id)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetNvLinkErrorCounter(
    device: nvmlDevice_t,
    link: c_uint,
    counter: sys::nvmlNvLinkErrorCounter_t,
    out: *mut c_ulonglong,
) -> nvmlReturn_t {
    code(gpu("nvmlDeviceGetNvLinkErrorCounter", device).and_then(|gpu| {
        gpu.nvlinks.get(link as usize).ok_or(INVALID_ARGUMENT)?;
        let errors = gpu.nvlink_errors.get(&counter).ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, *errors) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut sys::nvmlFieldValue_t,
) -> nvmlReturn_t {
    let fill = || {
        let index = index_of(device)?;
        let gpu = gpu("nvmlDeviceGetFieldValues", device)?;
        if values.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        let count = usize::try_from(count).map_err(|_| INVALID_ARGUMENT)?;
        // SAFETY: the caller gave room for `count` of them.
        for value in unsafe { std::slice::from_raw_parts_mut(values, count) } {
            let field = value.fieldId;
            match gpu.fields.get(&field) {
                Some(base) => {
                    value.nvmlReturn = SUCCESS;
                    value.valueType = sys::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
                    value.value.ullVal = base + grown(&gpu, index, field);
                }
                None => value.nvmlReturn = NOT_SUPPORTED,
            }
        }
        Ok(())
    };
    code(fill())
}

/// By how much a field has grown: nothing the first time that it is asked for.
fn grown(gpu: &Gpu, index: u32, field: u32) -> u64 {
    let Some(step) = gpu.grow.get(&field) else { return 0 };
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let times = asked.entry((index, field)).or_default();
    *times += 1;
    step * (*times - 1)
}

macro_rules! processes {
    ($($name:ident => $with:expr,)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvmlDevice_t,
            count: *mut c_uint,
            out: *mut sys::nvmlProcessInfo_t,
        ) -> nvmlReturn_t {
            code(gpu(stringify!($name), device).and_then(|gpu| {
                let own: &[crate::Process] = if $with { &gpu.processes } else { &[] };
                // SAFETY: the caller's promise.
                unsafe { put_processes(own, count, out) }
            }))
        }
    )* };
}

processes! {
    nvmlDeviceGetComputeRunningProcesses_v3 => true,
    nvmlDeviceGetGraphicsRunningProcesses_v3 => false,
}

/// Writes as many as there is room for, or says how much room is needed.
///
/// # Safety
/// `count` may be read and written; `out` is null or has room for `count` of them.
unsafe fn put_processes(
    own: &[crate::Process],
    count: *mut c_uint,
    out: *mut sys::nvmlProcessInfo_t,
) -> Answer {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller says that it may be read.
    let room = unsafe { *count } as usize;
    // SAFETY: as above.
    unsafe { *count = own.len() as c_uint };
    if room < own.len() || (out.is_null() && !own.is_empty()) {
        return Err(INSUFFICIENT_SIZE);
    }
    for (place, process) in own.iter().enumerate() {
        let info = sys::nvmlProcessInfo_t {
            pid: process.pid,
            usedGpuMemory: process.memory_bytes,
            gpuInstanceId: u32::MAX,
            computeInstanceId: u32::MAX,
        };
        // SAFETY: there is room for all of them.
        unsafe { out.add(place).write(info) };
    }
    Ok(())
}
