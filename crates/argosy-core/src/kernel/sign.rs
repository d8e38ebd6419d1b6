//! Lines of the kernel log, and of the fabric manager, that are not a fault of a GPU and often explain
//! one.
//!
//! They are evidence beside a finding and never condemn anything by themselves: each is known to be
//! harmless somewhere.

use super::message;
use serde::{Deserialize, Serialize};

macro_rules! signs {
    ($($variant:ident = $word:literal, $meaning:literal, $($parts:expr),+;)+) => {
        /// Something the log says that is worth knowing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Sign { $(#[doc = $meaning] #[serde(rename = $word)] $variant),+ }

        impl Sign {
            /// All of them, in the order in which a line is compared with them.
            pub const ALL: &[Sign] = &[$(Sign::$variant),+];

            /// The word, as it is stored.
            pub const fn as_str(self) -> &'static str {
                match self { $(Sign::$variant => $word),+ }
            }

            /// A sentence for people.
            pub const fn meaning(self) -> &'static str {
                match self { $(Sign::$variant => $meaning),+ }
            }

            /// The forms it comes in: what a line must hold, in this order.
            const fn forms(self) -> &'static [&'static [&'static str]] {
                match self { $(Sign::$variant => &[$(&$parts),+]),+ }
            }
        }
    };
}

signs! {
    NvlinkDetection = "nvlink-detection",
        "The driver could not find out which NVLinks have a partner.",
        ["NVRM: knvlinkUpdatePostRxDetectLinkMask", "Failed to update Rx Detect Link mask"],
        ["NVRM: knvlinkDiscoverPostRxDetLinks", "postRxDetLinkMask failed"];
    FabricNonFatal = "fabric-non-fatal",
        "The fabric manager heard of an error of a switch that is not fatal.",
        ["detected NVSwitch non-fatal error"];
    FabricFatal = "fabric-fatal", "The fabric manager heard of a fatal error of a switch.",
        ["detected NVSwitch fatal error"];
    FabricTeam = "fabric-team", "The fabric manager misses a GPU in a multicast team.",
        ["failed to find the GPU handle", "in the multicast team"];
    FabricSwitches = "fabric-switches",
        "The fabric manager does not find as many switches as it should.",
        ["number of NVSwitches don't match"];
    PeermemContext = "peermem-context",
        "The module that lets NICs reach GPU memory met a program that is gone.",
        ["nvidia-peermem", "invalid context"];
    NcclSegfault = "nccl-segfault", "A program crashed in the communication library.",
        ["segfault", "libnccl"];
    NicPower = "nic-power",
        "A NIC says that its slot gives too little power; some boards say so without any effect.",
        ["Detected insufficient power on the PCIe slot"];
    NicHot = "nic-hot", "The module in a port of a NIC is too hot.",
        ["Port module event", "High Temperature"];
    NicRegister = "nic-register",
        "A NIC refused access to a register, as it does when a monitor reads restricted counters.",
        ["mlx5_cmd_out_err", "ACCESS_REG", "failed"];
    NicTimeout = "nic-timeout", "A NIC did not send in time.",
        ["NETDEV WATCHDOG"], ["mlx5", "TX timeout detected"];
    RaidDiskFailed = "raid-disk-failed", "A disk of an array failed.",
        ["md/raid", "Disk failure on"];
    ReadOnly = "read-only", "A file system can only be read any more.",
        ["Remounting filesystem read-only"];
    NoPath = "no-path", "A disk cannot be reached over any path.",
        ["no available path - failing I/O"];
    NvmeTimeout = "nvme-timeout", "A disk did not answer in time and is reset.",
        ["nvme", "timeout, reset controller"];
    NvmeLost = "nvme-lost", "A disk was given up after its reset failed.",
        ["Disabling device after reset failure"];
    BeyondEnd = "beyond-end", "Something was read or written behind the end of a disk.",
        ["beyond end of device"];
    BufferError = "buffer-error", "A disk failed to read or write.",
        ["Buffer I/O error"];
    SuperblockError = "superblock-error", "The head of a file system could not be written.",
        ["I/O error while writing superblock"];
    Panic = "panic", "The kernel stopped.",
        ["Kernel panic"];
    SoftLockup = "soft-lockup", "A CPU was kept busy in the kernel for too long.",
        ["soft lockup"];
    HungTask = "hung-task", "A process has been waiting in the kernel for too long.",
        ["blocked for more than", "seconds"];
    OutOfMemory = "out-of-memory", "A process was ended because memory ran out.",
        ["Out of memory: Kill"], ["Memory cgroup out of memory: Kill"];
    HostMemory = "host-memory", "The host's memory controller found errors.",
        ["EDAC MC", " CE "], ["EDAC MC", " UE "];
    FileLimit = "file-limit", "No more files can be opened.",
        ["VFS: file-max limit"];
}

/// What a line is a sign of; `None` for most lines.
pub fn sign(line: &str) -> Option<Sign> {
    let message = message(line);
    // The fabric manager's way of saying that all is well.
    if message.contains("NV_WARN_NOTHING_TO_DO") {
        return None;
    }
    let is = |sign: &Sign| sign.forms().iter().any(|parts| holds(message, parts));
    Sign::ALL.iter().copied().find(is)
}

fn holds(mut text: &str, parts: &[&str]) -> bool {
    parts.iter().all(|part| match text.split_once(part) {
        Some((_, rest)) => {
            text = rest;
            true
        }
        None => false,
    })
}
