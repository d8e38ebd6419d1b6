//! The words for what can happen to the machine around the GPUs: metric `signal` of a host signal.
//!
//! A policy compares with these words, so a word that was given out once keeps its meaning.

macro_rules! words {
    ($($variant:ident = $word:literal, $meaning:literal;)+) => {
        /// What happened to the machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum HostWord { $(#[doc = $meaning] $variant),+ }

        impl HostWord {
            /// All of them.
            pub const ALL: &[HostWord] = &[$(HostWord::$variant),+];

            /// The word, as it is sent.
            pub const fn as_str(self) -> &'static str {
                match self { $(HostWord::$variant => $word),+ }
            }

            /// A sentence for people.
            pub const fn meaning(self) -> &'static str {
                match self { $(HostWord::$variant => $meaning),+ }
            }
        }
    };
}

words! {
    // What the kernel writes about itself.
    KernelPanic = "kernel-panic", "The kernel stopped.";
    KernelBug = "kernel-bug", "The kernel made an error of its own and goes on, perhaps badly.";
    KernelOverrun = "kernel-overrun", "Lines of the kernel were lost before they could be read.";
    SoftLockup = "soft-lockup", "A processor was kept busy in the kernel for too long.";
    HardLockup = "hard-lockup", "A processor no longer answers interrupts.";
    CpuStall = "cpu-stall", "A processor did not pass a point that all must pass in time.";
    BlockedTask = "blocked-task", "A process has been waiting in the kernel for too long.";
    FileLimit = "file-limit", "No more files can be opened.";
    // Memory and processors.
    OomKill = "oom-kill", "A process was ended because memory ran out.";
    MachineCheck = "machine-check", "A processor or the platform reported an error of the hardware.";
    MemoryError = "memory-error", "The host's memory returned errors.";
    MemoryLow = "memory-low", "Hardly any memory of the host is left.";
    // Disks.
    DiskError = "disk-error", "A disk failed to read or write, or did not answer in time.";
    DiskFailed = "disk-failed", "A disk was given up.";
    DiskFull = "disk-full", "A file system is nearly full.";
    ReadOnly = "filesystem-read-only", "A file system can only be read any more.";
    FilesystemDown = "filesystem-down", "A file system was shut down after an error.";
    // Network.
    NetworkTimeout = "network-timeout", "A network device did not send in time.";
    NetworkErrors = "network-errors", "A network link counts errors.";
    NetworkFlap = "network-flap", "A network link goes down and comes back again and again.";
    NetworkDown = "network-down", "A network link that was up is down.";
    NicPower = "nic-power", "A NIC says that its slot gives too little power; some boards say so without any effect.";
    NicHot = "nic-hot", "The module in a port of a NIC is too hot.";
    NicFailed = "nic-failed", "A NIC no longer answers its driver.";
    PortDown = "infiniband-down", "An InfiniBand port that was up has been down for minutes.";
    PortFlap = "infiniband-flap", "An InfiniBand port goes down and comes back again and again.";
    PortErrors = "infiniband-errors", "An InfiniBand port counts errors faster than a good link does.";
    PortSlow = "infiniband-slow", "An InfiniBand port runs slower than it did before.";
    // The bus and the fabric.
    PcieCorrected = "pcie-corrected", "The PCIe bus corrected errors of a device.";
    NvlinkDetection = "nvlink-detection", "The driver could not find out which NVLinks have a partner.";
    FabricFatal = "fabric-fatal", "The fabric manager heard of a fatal error of a switch.";
    FabricNonFatal = "fabric-non-fatal", "The fabric manager heard of an error of a switch that is not fatal.";
    FabricTeam = "fabric-team", "The fabric manager misses a GPU in a multicast team.";
    FabricSwitches = "fabric-switches", "The fabric manager does not find as many switches as it should.";
    // Programs.
    PeermemContext = "peermem-context", "The module that lets NICs reach GPU memory met a program that is gone.";
    NcclSegfault = "nccl-segfault", "A program crashed in the communication library.";
    // The clock.
    ClockUnsynchronised = "clock-unsynchronised", "The machine's clock is not kept right by anybody.";
}
