//! The forms of kernel lines that are not about a fault of a GPU: how each begins, and what it tells.

use crate::watch::word::HostWord;
use argosy_core::kernel::{self, Sign};
use argosy_core::pci::PciAddress;

/// What a line was recognised as.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// The word; `None` for the one thing that is not about the host: the PCIe bus failed a device.
    pub(super) word: Option<HostWord>,
    /// The device it is about, if it has an address.
    pub(super) device: Option<PciAddress>,
    /// What else the line says, by metric.
    pub(super) facts: Vec<(&'static str, &'a str)>,
}

impl<'a> Found<'a> {
    fn word(word: HostWord) -> Self {
        Self { word: Some(word), ..Self::default() }
    }

    fn fact(mut self, name: &'static str, value: Option<&'a str>) -> Self {
        self.facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
        self
    }
}

/// What a line tells of the machine; `None` for most.
pub(super) fn find(line: &str) -> Option<Found<'_>> {
    let message = kernel::message(line);
    let message = message.lines().next().unwrap_or_default();
    pcie(message)
        .or_else(|| memory(message))
        .or_else(|| hardware(message))
        .or_else(|| processor(message))
        .or_else(|| disk(message))
        .or_else(|| network(message))
        .or_else(|| sign(line))
}

/// `nvidia 0000:3b:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, …`.
///
/// The root port's line before it (`error received: 0000:3b:00.0`) says no more and is not counted.
fn pcie(message: &str) -> Option<Found<'_>> {
    let (device, rest) = device(message)?;
    let rest = rest.strip_prefix("AER: ").unwrap_or(rest);
    if rest == "device recovery failed" {
        let found = Found { device: Some(device), ..Found::default() };
        return Some(found.fact("aer", Some("recovery-failed")));
    }
    let rest = rest.strip_prefix("PCIe Bus Error: severity=")?;
    let (severity, rest) = rest.split_once(',').unwrap_or((rest, ""));
    let (word, aer) = if severity.starts_with("Correct") {
        (Some(HostWord::PcieCorrected), "corrected")
    } else if severity.contains("(Non-Fatal)") {
        (None, "non-fatal")
    } else {
        (None, "fatal")
    };
    let layer = rest.trim_start().strip_prefix("type=").and_then(|rest| rest.split(',').next());
    let found = Found { word, device: Some(device), facts: vec![("aer", aer)] };
    Some(found.fact("layer", layer))
}

/// `driver 0000:3b:00.0: …`: the device, and what is said about it.
fn device(message: &str) -> Option<(PciAddress, &str)> {
    let (driver, rest) = message.split_once(' ')?;
    let (address, rest) = rest.split_once(": ")?;
    // A network device's own name may follow its address.
    let address = address.split(' ').next()?;
    let is_driver =
        driver.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    Some((PciAddress::parse(address).filter(|_| is_driver)?, rest))
}

fn memory(message: &str) -> Option<Found<'_>> {
    let (scope, rest) = match message.strip_prefix("Out of memory: Kill") {
        Some(rest) => ("system", rest),
        None => ("cgroup", message.strip_prefix("Memory cgroup out of memory: Kill")?),
    };
    // `ed process 1234 (python3) total-vm:…`
    let (_, rest) = rest.split_once("process ")?;
    let (pid, rest) = rest.split_once(' ')?;
    let process =
        rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(name, _)| name);
    let found = Found::word(HostWord::OomKill).fact("scope", Some(scope));
    Some(found.fact("pid", number(pid)).fact("process", process))
}

/// Machine checks, the platform's own reports, and the memory controllers.
fn hardware(message: &str) -> Option<Found<'_>> {
    const MARK: &str = "[Hardware Error]: ";
    if let Some(rest) = message.strip_prefix("EDAC ") {
        // `EDAC MC0: 1 CE memory read error on …`, or with the driver's name before the controller's.
        let (controller, rest) = rest.split_once(": ")?;
        let controller = controller.split(' ').find(|word| word.starts_with("MC"))?;
        let mut words = rest.split(' ');
        let count = number(words.next()?)?;
        let severity = match words.next()? {
            "CE" => "corrected",
            "UE" => "uncorrected",
            _ => return None,
        };
        let found = Found::word(HostWord::MemoryError).fact("severity", Some(severity));
        return Some(found.fact("errors", Some(count)).fact("device", Some(controller)));
    }
    if message.starts_with("Memory failure: 0x")
        || message.starts_with("mce: Uncorrected hardware memory error")
    {
        let found = Found::word(HostWord::MemoryError);
        return Some(found.fact("severity", Some("uncorrected")));
    }
    if let Some(rest) = message.strip_prefix("mce: ").and_then(|rest| rest.strip_prefix(MARK)) {
        let is_event = rest.starts_with("Machine check events logged")
            || rest.starts_with("CPU ") && rest.contains(": Machine Check");
        let cpu = rest.strip_prefix("CPU ").and_then(|rest| rest.split(':').next());
        return is_event
            .then(|| Found::word(HostWord::MachineCheck).fact("cpu", cpu.and_then(number)));
    }
    // `{1}[Hardware Error]: event severity: corrected`: the platform's report, once each.
    let (source, rest) = message.strip_prefix('{')?.split_once('}')?;
    let severity = rest.strip_prefix(MARK)?.trim_start().strip_prefix("event severity: ")?;
    number(source)?;
    Some(Found::word(HostWord::MachineCheck).fact("severity", Some(severity.trim())))
}

fn processor(message: &str) -> Option<Found<'_>> {
    let plain = message.strip_prefix("NMI ").unwrap_or(message);
    let plain = plain.strip_prefix("watchdog: ").unwrap_or(plain);
    if message.starts_with("Kernel panic - ") {
        return Some(Found::word(HostWord::KernelPanic));
    }
    if let Some(rest) = plain.strip_prefix("BUG: soft lockup - CPU#") {
        let cpu = rest.split(' ').next().and_then(number);
        return Some(Found::word(HostWord::SoftLockup).fact("cpu", cpu));
    }
    if let Some(rest) = plain.strip_prefix("Watchdog detected hard LOCKUP on cpu ") {
        let cpu = rest.split(' ').next().and_then(number);
        return Some(Found::word(HostWord::HardLockup).fact("cpu", cpu));
    }
    if let Some(rest) = message.strip_prefix("rcu: INFO: ").or(message.strip_prefix("INFO: rcu_")) {
        let stalls = rest.contains("detected stalls") || rest.contains("self-detected stall");
        return stalls.then(|| Found::word(HostWord::CpuStall));
    }
    if let Some(rest) = message.strip_prefix("INFO: task ") {
        let (task, rest) = rest.split_once(" blocked for more than ")?;
        let (process, pid) = task.rsplit_once(':')?;
        let seconds = rest.split(' ').next().and_then(number);
        let found = Found::word(HostWord::BlockedTask).fact("process", Some(process));
        return Some(found.fact("pid", number(pid)).fact("seconds", seconds));
    }
    let is_bug = message.starts_with("kernel BUG at ")
        || message.starts_with("BUG: unable to handle ")
        || message.starts_with("BUG: kernel NULL pointer dereference")
        || message.starts_with("Oops: ");
    if is_bug {
        return Some(Found::word(HostWord::KernelBug));
    }
    message.starts_with("VFS: file-max limit").then(|| Found::word(HostWord::FileLimit))
}

fn disk(message: &str) -> Option<Found<'_>> {
    if let Some(rest) = message.strip_prefix("md/raid") {
        let (_, rest) = rest.split_once(" Disk failure on ")?;
        return Some(
            Found::word(HostWord::DiskFailed).fact("device", rest.split([',', ' ']).next()),
        );
    }
    if let Some(rest) = message.strip_prefix("nvme ") {
        let (device, rest) = rest.split_once(": ")?;
        let word = if rest.starts_with("Disabling device after reset failure")
            || rest.starts_with("Removing after probe failure")
        {
            HostWord::DiskFailed
        } else if rest.contains("timeout, reset controller") || rest.contains("controller is down")
        {
            HostWord::DiskError
        } else {
            return None;
        };
        return Some(Found::word(word).fact("device", Some(device)));
    }
    filesystem(message).or_else(|| block(message))
}

fn filesystem(message: &str) -> Option<Found<'_>> {
    let (name, rest) = message.split_once([' ', ':'])?;
    let is_known = name.starts_with("EXT") && name.ends_with("-fs")
        || ["XFS", "BTRFS", "F2FS-fs", "JBD2", "bcachefs"].contains(&name);
    if !is_known {
        return None;
    }
    let inside = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let device = inside.map(|(inside, _)| {
        let inside = inside.strip_prefix("device ").unwrap_or(inside);
        inside.split([' ', ':']).next().unwrap_or(inside)
    });
    let read_only =
        rest.contains("Remounting filesystem read-only") || rest.contains("forced readonly");
    let down = rest.contains("Shutting down filesystem") || rest.contains("has been shut down");
    let error = rest.starts_with("error ")
        || rest.contains("I/O error")
        || rest.contains("metadata corruption")
        || rest.contains("orruption detected");
    let word = if read_only {
        HostWord::ReadOnly
    } else if down {
        HostWord::FilesystemDown
    } else if error {
        HostWord::DiskError
    } else {
        return None;
    };
    Some(Found::word(word).fact("device", device))
}

/// Lines of the block layer: `I/O error, dev sda, sector 12 …`, with or without a function before it.
fn block(message: &str) -> Option<Found<'_>> {
    let plain = ["blk_update_request: ", "print_req_error: ", "end_request: "]
        .iter()
        .find_map(|before| message.strip_prefix(before))
        .unwrap_or(message);
    let kinds = [
        "I/O error, dev ",
        "critical medium error, dev ",
        "critical target error, dev ",
        "Buffer I/O error on dev ",
        "Buffer I/O error on device ",
    ];
    if let Some(rest) = kinds.iter().find_map(|kind| plain.strip_prefix(kind)) {
        return Some(
            Found::word(HostWord::DiskError).fact("device", rest.split([',', ' ']).next()),
        );
    }
    let is_path = message.starts_with("device-mapper: multipath: ")
        && message.contains("no available path - failing I/O");
    let beyond = message.contains("attempt to access beyond end of device")
        && message.split(':').next().is_some_and(|name| !name.contains('['));
    (is_path || beyond).then(|| Found::word(HostWord::DiskError))
}

fn network(message: &str) -> Option<Found<'_>> {
    if let Some(rest) = message.strip_prefix("NETDEV WATCHDOG: ") {
        return Some(
            Found::word(HostWord::NetworkTimeout).fact("device", rest.split([' ', ':']).next()),
        );
    }
    if !message.starts_with("mlx5_core ") && !message.starts_with("mlx4_") {
        return None;
    }
    let (device, rest) = device(message)?;
    let word = if rest.contains("insufficient power on the PCIe slot") {
        HostWord::NicPower
    } else if rest.contains("Port module event") && rest.contains("High Temperature") {
        HostWord::NicHot
    } else if rest.contains("TX timeout detected") {
        HostWord::NetworkTimeout
    } else if rest.contains("device's health compromised") || rest.contains("Fatal error") {
        HostWord::NicFailed
    } else {
        return None;
    };
    Some(Found { device: Some(device), ..Found::word(word) })
}

/// What the core knows to be a sign of something and that has no strict form.
fn sign(line: &str) -> Option<Found<'_>> {
    let word = match kernel::sign(line)? {
        Sign::NvlinkDetection => HostWord::NvlinkDetection,
        Sign::FabricNonFatal => HostWord::FabricNonFatal,
        Sign::FabricFatal => HostWord::FabricFatal,
        Sign::FabricTeam => HostWord::FabricTeam,
        Sign::FabricSwitches => HostWord::FabricSwitches,
        Sign::PeermemContext => HostWord::PeermemContext,
        Sign::NcclSegfault => HostWord::NcclSegfault,
        // The monitor's own doing: it reads counters of a function that may not be read.
        Sign::NicRegister
        // What else it finds in the middle of a line is known here by how the line begins.
        | Sign::NicPower | Sign::NicHot | Sign::NicTimeout | Sign::RaidDiskFailed
        | Sign::ReadOnly | Sign::NoPath | Sign::NvmeTimeout | Sign::NvmeLost | Sign::BeyondEnd
        | Sign::BufferError | Sign::SuperblockError | Sign::Panic | Sign::SoftLockup
        | Sign::HungTask | Sign::OutOfMemory | Sign::HostMemory | Sign::FileLimit => return None,
    };
    Some(Found::word(word))
}

/// The text, if it is a number.
fn number(text: &str) -> Option<&str> {
    (!text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(text)
}
