use super::LogWatch;
use crate::check::Word;
use crate::gpu::{GpuIdentity, Inventory};
use crate::log::{Line, Problem, ProblemKind, Source};
use crate::signal::Signal;
use crate::watch::word::HostWord;
use jiff::Timestamp;
use proptest::prelude::*;

fn watch() -> LogWatch {
    let gpu = |index: u32, bus: &str| GpuIdentity {
        index,
        uuid: format!("GPU-{index}"),
        serial: Some(format!("S{index}")),
        pci_bus_id: format!("00000000:{bus}:00.0"),
        ..GpuIdentity::default()
    };
    let mut watch = LogWatch::default();
    watch.learn(&Inventory { gpus: vec![gpu(0, "18"), gpu(3, "41")], ..Inventory::default() });
    watch
}

fn line(at_s: i64, text: &str) -> Line {
    let at = Timestamp::from_second(at_s).unwrap();
    Line { source: Source::Kmsg, at, text: text.to_owned(), lost_before: 0, boot_id: String::new() }
}

/// A signal as one line: kind, GPU, metrics.
fn told(signal: &Signal) -> String {
    let kind = serde_json::to_value(signal.kind).unwrap();
    let mut told = kind.as_str().unwrap().to_owned();
    if let Some(gpu) = &signal.gpu {
        told.push_str(&format!(" on {}", gpu.index));
    }
    for (name, value) in &signal.metrics {
        told.push_str(&format!(" {name}={value}"));
    }
    if let Some(action) = signal.recovery_action {
        told.push_str(&format!(" action {action}"));
    }
    told
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let signals = watch().read(&line(7, text));
    let found: Vec<String> = signals.iter().map(told).collect();
    assert_eq!(found.join(" | "), expected, "{text}");
    for signal in signals {
        assert_eq!(signal.raw, text);
        assert_eq!((signal.count, signal.first, signal.last), (1, signal.first, signal.first));
        assert!(!signal.message.is_empty());
    }
}

#[test]
fn faults_of_gpus_and_switches_carry_code_place_and_program() {
    check(
        "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
        "xid on 3 pci=0000:41:00.0 pid=1234 process=python3 xid_code=79",
    );
    check(
        "[  12.345678] NVRM: Xid (PCI:0000:18:00 GPU-I:05 GPU-CI:01): 94, Contained: SM (0x1). RST: No",
        "xid on 0 mig_compute_instance=1 mig_gpu_instance=5 pci=0000:18:00.0 xid_code=94",
    );
    check(
        "NVRM: Xid (PCI:0000:99:00): 13, pid=5, name=a.out, Graphics Exception",
        "xid pci=0000:99:00.0 pid=5 process=a.out xid_code=13",
    );
    check(
        "NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "xid on 0 pci=0000:18:00.0 xid_code=154 action 1",
    );
    check(
        "NVRM: Xid (PCI:0000:18:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)",
        "xid on 0 fatal=true link=8 nvlink_unit=NETIR_LINK_EVT pci=0000:18:00.0 xid_code=149",
    );
    check(
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
        "sxid fatal=false link=32 switch=0000:05:00.0 sxid_code=12028",
    );
    check(
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        "xid on 0 pci=0000:18:00.0 xid_code=79",
    );
}

#[test]
fn the_bus_the_memory_and_the_processors_have_words() {
    check(
        "nvidia 0000:41:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        "host on 3 aer=corrected layer=Physical Layer pci=0000:41:00.0 signal=pcie-corrected",
    );
    check(
        "nvidia 0000:41:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)",
        "pcie on 3 aer=fatal layer=Transaction Layer pci=0000:41:00.0",
    );
    check(
        "pcieport 0000:00:01.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Data Link Layer, id=00e0",
        "pcie aer=non-fatal layer=Data Link Layer pci=0000:00:01.0",
    );
    check(
        "pcieport 0000:00:01.0: AER: device recovery failed",
        "pcie aer=recovery-failed pci=0000:00:01.0",
    );
    check("pcieport 0000:00:01.0: AER: Corrected error received: 0000:41:00.0", "");
    check(
        "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: cc00008000010090",
        "host cpu=12 signal=machine-check",
    );
    check("mce: [Hardware Error]: Machine check events logged", "host signal=machine-check");
    check("mce: [Hardware Error]: TSC 0 ADDR 3f5e MISC 9", "");
    check(
        "{3}[Hardware Error]: event severity: corrected",
        "host severity=corrected signal=machine-check",
    );
    check("{3}[Hardware Error]:  Error 0, type: corrected", "");
    check(
        "EDAC MC1: 2 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 slot:0)",
        "host device=MC1 errors=2 severity=corrected signal=memory-error",
    );
    check(
        "EDAC skx MC0: 1 UE memory read error on DIMM",
        "host device=MC0 errors=1 severity=uncorrected signal=memory-error",
    );
    check("EDAC MC0: Giving out device to module skx_edac", "");
    check(
        "Memory failure: 0x3f5e: recovery action for dirty LRU page: Recovered",
        "host severity=uncorrected signal=memory-error",
    );
    check(
        "Out of memory: Killed process 4242 (python3) total-vm:1kB, anon-rss:1kB",
        "host pid=4242 process=python3 scope=system signal=oom-kill",
    );
    check(
        "Memory cgroup out of memory: Killed process 7 (train) total-vm:1kB",
        "host pid=7 process=train scope=cgroup signal=oom-kill",
    );
    check(
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:1234]",
        "host cpu=3 signal=soft-lockup",
    );
    check("NMI watchdog: Watchdog detected hard LOCKUP on cpu 5", "host cpu=5 signal=hard-lockup");
    check("rcu: INFO: rcu_sched self-detected stall on CPU", "host signal=cpu-stall");
    check(
        "INFO: task nvidia-smi:1234 blocked for more than 120 seconds.",
        "host pid=1234 process=nvidia-smi seconds=120 signal=blocked-task",
    );
    check("Kernel panic - not syncing: Fatal exception", "host signal=kernel-panic");
    check("BUG: unable to handle page fault for address: ffff", "host signal=kernel-bug");
    check("VFS: file-max limit 100 reached", "host signal=file-limit");
}

#[test]
fn disks_networks_and_the_fabric_have_words() {
    check(
        "md/raid1:md0: Disk failure on nvme1n1, disabling device.",
        "host device=nvme1n1 signal=disk-failed",
    );
    check(
        "nvme nvme0: I/O 12 QID 3 timeout, reset controller",
        "host device=nvme0 signal=disk-error",
    );
    check(
        "nvme nvme0: Disabling device after reset failure: -19",
        "host device=nvme0 signal=disk-failed",
    );
    check("nvme nvme0: 32/0/0 default/read/poll queues", "");
    check(
        "EXT4-fs (sda1): Remounting filesystem read-only",
        "host device=sda1 signal=filesystem-read-only",
    );
    check(
        "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2",
        "host device=sda1 signal=disk-error",
    );
    check("EXT4-fs (sda1): mounted filesystem with ordered data mode", "");
    check(
        "EXT4-fs (dm-0): I/O error while writing superblock",
        "host device=dm-0 signal=disk-error",
    );
    check(
        "XFS (nvme0n1): Corruption of in-memory data detected.  Shutting down filesystem",
        "host device=nvme0n1 signal=filesystem-down",
    );
    check(
        "BTRFS info (device sdb: state EA): forced readonly",
        "host device=sdb signal=filesystem-read-only",
    );
    check(
        "blk_update_request: I/O error, dev sda, sector 12 op 0x0",
        "host device=sda signal=disk-error",
    );
    check(
        "Buffer I/O error on dev dm-2, logical block 0, async page read",
        "host device=dm-2 signal=disk-error",
    );
    check(
        "device-mapper: multipath: 253:2: no available path - failing I/O",
        "host signal=disk-error",
    );
    check("sda1: attempt to access beyond end of device", "host signal=disk-error");
    check(
        "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out",
        "host device=eth0 signal=network-timeout",
    );
    check(
        "mlx5_core 0000:3b:00.0 ens1np0: TX timeout detected",
        "host pci=0000:3b:00.0 signal=network-timeout",
    );
    check(
        "mlx5_core 0000:5e:00.0: mlx5_pcie_event:301:(pid 9): Detected insufficient power on the PCIe slot (27W).",
        "host pci=0000:5e:00.0 signal=nic-power",
    );
    check(
        "mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, High Temperature",
        "host pci=0000:5e:00.0 signal=nic-hot",
    );
    check(
        "mlx5_core 0000:5e:00.0: poll_health:789:(pid 0): device's health compromised - reached miss count",
        "host pci=0000:5e:00.0 signal=nic-failed",
    );
    check(
        "mlx5_core 0000:5e:00.0: mlx5_cmd_out_err:838:(pid 9): ACCESS_REG(0x805) op_mod(0x1) failed",
        "",
    );
    check(
        "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",
        "host signal=nvlink-detection",
    );
    check(
        "[Jan 01 2026 00:00:00] [ERROR] [tid 12] detected NVSwitch fatal error 20034 on fid 0",
        "host signal=fabric-fatal",
    );
    check(
        "[ERROR] detected NVSwitch non-fatal error 12028 on fid 0",
        "host signal=fabric-non-fatal",
    );
    check("python[5]: segfault at 0 ip 0 in libnccl.so.2", "host signal=nccl-segfault");
}

#[test]
fn a_program_cannot_say_what_the_kernel_says() {
    for text in [
        "my-job: Out of memory: Killed process 1 (init)",
        "app[12]: NVRM: Xid (PCI:0000:41:00): 79, gone",
        "x: Kernel panic - not syncing",
        "a b: EXT4-fs (sda1): Remounting filesystem read-only",
        "python: mlx5_core 0000:5e:00.0: TX timeout detected",
        "a[1]: attempt to access beyond end of device",
        "",
        "usb 1-1: new high-speed USB device",
    ] {
        check(text, "");
    }
}

#[test]
fn one_fall_off_the_bus_is_one_fault() {
    let mut watch = watch();
    let xid = "NVRM: Xid (PCI:0000:41:00): 79, pid=1, name=a, GPU has fallen off the bus.";
    let words = "NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.";
    let mut count = |at_s: i64, text: &str| watch.read(&line(at_s, text)).len();
    assert_eq!(count(100, xid), 1);
    assert_eq!(count(100, words), 0, "the driver says it twice");
    assert_eq!(count(100, "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."), 1, "another one");
    assert_eq!(count(161, words), 1, "and again, much later");
    assert_eq!(watch.faults(), 3);
}

#[test]
fn a_message_over_several_lines_is_read_per_source() {
    let mut watch = watch();
    let from = |source: &Source, text: &str| Line { source: source.clone(), ..line(1, text) };
    let file = Source::Syslog("messages".into());
    assert!(watch.read(&from(&Source::Kmsg, "NVRM: The NVIDIA GPU 0000:18:00.0")).is_empty());
    assert!(watch.read(&from(&file, "NVRM: The NVIDIA GPU 0000:41:00.0")).is_empty());
    let end = "NVRM: fallen off the bus and is not responding to commands.";
    let signals = watch.read(&from(&Source::Kmsg, end));
    assert_eq!(
        signals.iter().map(told).collect::<Vec<_>>(),
        ["xid on 0 pci=0000:18:00.0 xid_code=79"]
    );
}

#[test]
fn lost_lines_are_a_signal_of_their_own() {
    let lost = Line { lost_before: 12, ..line(5, "Kernel panic - not syncing: x") };
    let told: Vec<String> = watch().read(&lost).iter().map(told).collect();
    assert_eq!(told, ["host lost=12 signal=kernel-overrun", "host signal=kernel-panic"]);
}

#[test]
fn the_check_says_whether_faults_could_be_seen() {
    let forbidden = Problem {
        source: Source::Kmsg,
        kind: ProblemKind::Forbidden,
        message: "Permission denied; run as root".into(),
    };
    let blind =
        watch().outcome(&[Source::Program("fm.log".into())], std::slice::from_ref(&forbidden));
    assert_eq!((blind.word, blind.reason.as_str()), (Word::Degraded, "LogUnreadable"));
    assert!(
        blind.message.ends_with("/dev/kmsg: Permission denied; run as root"),
        "{}",
        blind.message
    );
    let seeing = watch().outcome(&[Source::Journald], &[forbidden]);
    assert_eq!((seeing.word, seeing.reason.as_str()), (Word::Healthy, ""));
    assert_eq!(seeing.message, "0 faults of GPUs and switches in the journal");
}

#[test]
fn words_are_unique_and_mean_something() {
    let mut words: Vec<&str> = HostWord::ALL.iter().map(|word| word.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), HostWord::ALL.len());
    assert!(HostWord::ALL.iter().all(|word| word.meaning().ends_with('.')));
}

proptest! {
    #[test]
    fn no_line_is_too_strange(texts in prop::collection::vec(".{0,200}", 1..8)) {
        let mut watch = watch();
        for text in texts {
            watch.read(&line(1, &text));
        }
    }

    #[test]
    fn a_line_that_is_cut_or_continued_does_no_harm(
        at in 0_usize..200,
        more in "[ -~]{0,40}",
        which in 0_usize..8,
    ) {
        let lines = [
            "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
            "EDAC MC1: 2 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0",
            "Out of memory: Killed process 4242 (python3) total-vm:1kB",
            "nvidia 0000:41:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer",
            "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: cc00008000010090",
            "INFO: task nvidia-smi:1234 blocked for more than 120 seconds.",
            "BTRFS info (device sdb: state EA): forced readonly",
            "{3}[Hardware Error]: event severity: corrected",
        ];
        let whole = lines[which];
        let mut text = whole[..at.min(whole.len())].to_owned();
        text.push_str(&more);
        for signal in watch().read(&line(1, &text)) {
            prop_assert!(signal.count == 1 && signal.metrics.values().all(|value| value.len() <= 1024));
        }
    }
}
