use super::{
    Detail, KernelFault, LINE_LEN_MAX, Lines, MESSAGE_LEN_MAX, MigInstance, Sign, parse, sign,
};
use proptest::prelude::*;
use std::fmt::Write;

/// A fault as one line: what it is, where, and whatever else was understood.
fn told(fault: &KernelFault) -> String {
    match fault {
        KernelFault::OffTheBus { gpu: Some(gpu) } => format!("off {gpu}"),
        KernelFault::OffTheBus { gpu: None } => "off ?".to_owned(),
        KernelFault::Sxid(sxid) => {
            let mut told = format!("sxid {} {}", sxid.code, sxid.switch);
            let fatal = sxid.fatal.map_or("", |fatal| if fatal { " fatal" } else { " nonfatal" });
            told.push_str(fatal);
            if let Some(link) = sxid.link {
                write!(told, " link {link}").unwrap();
            }
            write!(told, " `{}`", sxid.text).unwrap();
            told
        }
        KernelFault::Xid(xid) => {
            let mut told = format!("xid {} {}", xid.code, xid.gpu);
            if let Some(MigInstance { gpu, compute }) = xid.instance {
                write!(told, " mig {gpu}/{compute:?}").unwrap();
            }
            if let Some(pid) = xid.pid {
                write!(told, " pid {pid}").unwrap();
            }
            if let Some(process) = &xid.process {
                write!(told, " of {process}").unwrap();
            }
            match &xid.detail {
                Detail::Plain => write!(told, " `{}`", xid.text).unwrap(),
                Detail::Recovery(change) => {
                    let word = |action: Option<crate::recovery::RecoveryAction>| {
                        action.map_or("?", crate::recovery::RecoveryAction::as_str)
                    };
                    write!(told, " {} -> {}", word(change.from), word(change.to)).unwrap();
                }
                Detail::Nvlink(nvlink) => {
                    let fatal = if nvlink.fatal { "fatal" } else { "nonfatal" };
                    write!(told, " {} {fatal}", nvlink.unit).unwrap();
                    if nvlink.cross_contained {
                        told.push_str(" contained");
                    }
                    if nvlink.injected {
                        told.push_str(" injected");
                    }
                    if let Some(link) = nvlink.link {
                        write!(told, " link {link}").unwrap();
                    }
                    let words = nvlink.words.len();
                    write!(told, " {:?}/{:x?} of {words}", nvlink.sub_code(), nvlink.status())
                        .unwrap();
                }
            }
            told
        }
    }
}

fn check(line: &str, expected: &str) {
    let fault = parse(line);
    assert_eq!(fault.as_ref().map(told).unwrap_or_default(), expected, "{line}");
    if let Some(fault) = fault {
        let json = serde_json::to_string(&fault).unwrap();
        assert_eq!(serde_json::from_str::<KernelFault>(&json).unwrap(), fault, "{json}");
    }
}

#[test]
fn an_xid_is_read_in_every_form_the_driver_writes() {
    check(
        "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
        "xid 79 0000:41:00.0 pid 1234 of python3 `GPU has fallen off the bus.`",
    );
    check(
        "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "xid 79 0000:05:00.0 `GPU has fallen off the bus.`",
    );
    check(
        "NVRM: Xid (PCI:0000:05:00): 31, pid=\"<unknown>\", name='a b', Ch 00000010, intr 10000000",
        "xid 31 0000:05:00.0 of a b `Ch 00000010, intr 10000000`",
    );
    check("NVRM: Xid (0000:03:00): 14, Channel 00000001", "xid 14 0000:03:00.0 `Channel 00000001`");
    check(
        "NVRM: Xid (PCI:0000:0f:00): 64, pid=57530, Row Remapper Error: (0x00000005d28c03a0) - All \
         reserved rows for bank are remapped",
        "xid 64 0000:0f:00.0 pid 57530 `Row Remapper Error: (0x00000005d28c03a0) - All reserved rows \
         for bank are remapped`",
    );
    check("NVRM: Xid (PCI:0000:41:00.0): 48, DBE", "xid 48 0000:41:00.0 `DBE`");
    check("NVRM: Xid (0019:01:00.1): 48, DBE", "xid 48 0019:01:00.1 `DBE`");
    check("NVRM: Xid (PCI:0000:41:00): 43", "xid 43 0000:41:00.0 ``");
    check("NVRM: Xid (PCI:0000:41:00): 43,", "xid 43 0000:41:00.0 ``");
    check(
        "NVRM: Xid (PCI:0000:01:00): 62, 223b6a66 00002100 00000000 20662342",
        "xid 62 0000:01:00.0 `223b6a66 00002100 00000000 20662342`",
    );
    // A shared GPU.
    check(
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No",
        "xid 94 0000:01:00.0 mig 5/None pid 7194 `Contained: CE User Channel (0x9). RST: No`",
    );
    check(
        "NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 13, pid=9, name=a, Graphics Exception",
        "xid 13 0000:3b:00.0 mig 1/Some(2) pid 9 of a `Graphics Exception`",
    );
    check("NVRM: Xid (PCI:0000:3b:00 GPU-X:01): 13, new", "xid 13 0000:3b:00.0 `new`");
    check("NVRM: Xid (PCI:0000:41:00): 999999, new", "xid 999999 0000:41:00.0 `new`");
}

#[test]
fn the_header_of_whoever_kept_the_log_is_no_part_of_it() {
    for head in [
        "",
        "   ",
        "[449410.332316] ",
        "[    5.332316][ T1234] ",
        "[Thu Sep 19 02:29:46 2024] ",
        "[...] ",
        "<3>",
        "<12>[38889.018130] ",
        "kernel: ",
        "Mar 29 15:38:59 kernel: ",
        "Mar  9 15:38:59 gpu-17 kernel: [ 1843.308145] ",
        "2026-03-29T15:38:59.123456+00:00 gpu-17 kernel: ",
        "3,1234,5678901,-;",
        "4,1234,5678901,-,caller=T1;",
        "6,1,2,-;<3>[6085126.134786] ",
    ] {
        check(&format!("{head}NVRM: Xid (PCI:0000:41:00): 48, DBE"), "xid 48 0000:41:00.0 `DBE`");
        check(
            &format!(
                "{head}nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 28 LTSSM"
            ),
            "sxid 20034 0000:c2:00.0 fatal link 28 `Link 28 LTSSM`",
        );
    }
    // The dictionary that /dev/kmsg puts behind a record.
    check(
        "4,1,2,-;NVRM: Xid (PCI:0000:41:00): 48, DBE\n SUBSYSTEM=pci\n DEVICE=+pci:0000:41:00.0",
        "xid 48 0000:41:00.0 `DBE`",
    );
}

/// A program chooses its name and its cgroup, and it must not be able to take its node out of service.
#[test]
fn what_a_program_can_write_into_the_log_is_not_believed() {
    let fault = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.";
    for line in [
        format!("oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/pods/{fault},task=python"),
        format!("Memory cgroup out of memory: Killed process 1 ({fault})"),
        format!("python3[{fault}]: segfault at 0 ip 0"),
        format!("audit: name=\" kernel: {fault}\""),
        format!("systemd[1]: x kernel: {fault}"),
        format!("x;{fault}"),
        format!("a,b,c,d;{fault}"),
        format!("x NVRM: {fault}"),
        format!("Mar 29 15:38:59 gpu-17 python[1]: {fault}"),
        // The reports of programs that crashed: a name of 15 characters, then the name of a library.
        "NVRM: Xid (0:0[1234]: segfault at 0 ip 0 sp 0 error 4 in a): 79, [7f7c7ac00000+1]"
            .to_owned(),
        "NVRM: Xid (0:0)[1234]: segfault at 0 ip 0 sp 0 error 4 in : 79, [7f7c7ac00000+1]"
            .to_owned(),
        "NVRM: Xid (0:0 [1234]: segfault at 0 ip 0 sp 0 error 4 in a): 79, [7f7c7ac00000+1]"
            .to_owned(),
        "NVRM: Xid (0000:41:00 [1]: segfault in a): 79, [7f7c7ac00000+1]".to_owned(),
        "SXid (0:0:0): 7 invoked oom-killer: gfp_mask=0x0, order=0".to_owned(),
        "[]NVRM: Xid (0:[1234]: segfault at 0 ip 0 sp 0 error 4 in 0): 79, [7f7c7ac00000+1]"
            .to_owned(),
        "SXid (0:0[1234]: segfault at 0 ip 0 sp 0 error 4 in a): 20034, Fatal[7f7c7ac00000]"
            .to_owned(),
        "NVRM: GPU 0:0: [1234]: segfault at 0 ip 0 error 4 in GPU has fallen off the bus[7f]"
            .to_owned(),
        "NVRM: GPU [1234]: segfault at 0 ip 0 error 4 in fallen off the bus[7f]".to_owned(),
        "NVRM: (PCI ID: [1234]: segfault in a) installed in this system has fallen off the bus"
            .to_owned(),
    ] {
        check(&line, "");
    }
}

#[test]
fn what_is_no_fault_is_none() {
    for line in [
        "",
        "NVRM: ",
        "NVRM: Xid",
        "NVRM: Xid : 32, pid=2280636",
        "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
        "NVRM: Xid (PCI:0000:66:00): 0, nothing",
        "NVRM: Xid (PCI:0000:66:00): 79x, what",
        "NVRM: Xid (PCI:0000:66:00): 99999999999, too large",
        "NVRM: Xid (PCI:0000:66:00) 79, no colon",
        "NVRM: Xid (PCI:0000:66:00",
        "NVRM: Xid (PCI:somewhere): 79, GPU has fallen off the bus.",
        "NVRM: Xid (): 79, GPU has fallen off the bus.",
        "NVRM: GPU has fallen off the bus.",
        "nvidia-nvswitch0: SXid (here): 20034, Fatal, Link 1 x",
        "NVRM: GPU at PCI:0000:41:00: GPU-93ff2d0c-1a7b",
        "NVRM: GPU0 _kgspRpcGspEventPmuHalted: Received signal from GSP that PMU has halted.",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  610.43.02",
        "NVRM: The NVIDIA GPU 0000:02:00.0",
        "NVRM: (PCI ID: 10de:2bb5) installed in this system has",
        "Linux version 5.15.0-117-generic",
        "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): xyz, Fatal error",
        "nvidia-nvswitch0: open (major=511)",
        "nvidia-nvswitchx: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 1 x",
        // Both repeat a line before them.
        "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 10002, Severity 5 Engine instance 00",
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030}",
    ] {
        check(line, "");
    }
}

#[test]
fn nvlink_5_events_are_taken_apart() {
    let xid = |rest: &str| format!("NVRM: Xid (PCI:0018:01:00): {rest}");
    check(
        &xid("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x025001c6 0x00000000 0x0 0x0 0x0 0x0)"),
        "xid 149 0018:01:00.0 NETIR_LINK_EVT fatal link 8 Some(37)/Some(0) of 6",
    );
    check(
        &xid("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000)"),
        "xid 149 0018:01:00.0 NETIR fatal Some(0)/Some(0) of 3",
    );
    check(
        &xid(
            "145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1 0x0 0x00100000 0x4)",
        ),
        "xid 145 0018:01:00.0 RLW_RXPIPE nonfatal link 13 Some(0)/Some(8) of 6",
    );
    check(
        &xid("145, pid=7, name=a, RLW_SRC_TRACK Nonfatal XC1 i2 Link 11 (0x00000007 0x80000000)"),
        "xid 145 0018:01:00.0 pid 7 of a RLW_SRC_TRACK nonfatal contained injected link 11 \
         Some(0)/Some(80000000) of 2",
    );
    check(
        &xid("149, NETIR_LINK_DOWN Fatal XC0 i0 Link 17 (0xdeadbeef)"),
        "xid 149 0018:01:00.0 NETIR_LINK_DOWN fatal link 17 Some(42)/None of 1",
    );
    check(
        &xid("149, NETIR_LINK_EVT Fatal XC0 i0 (0x1 what 0x2)"),
        "xid 149 0018:01:00.0 NETIR_LINK_EVT fatal Some(0)/None of 1",
    );
    // Not in that form: the Xid is heard all the same.
    for rest in [
        "149, NETIR_LINK_EVT",
        "149, NETIR_LINK_EVT Fatal (0x1 0x2)",
        "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08",
        "149, netir Fatal XC0 i0 Link 08 (0x1 0x2)",
        "149, NETIR_LINK_EVT Odd XC0 i0 Link 08 (0x1 0x2)",
    ] {
        let text = rest.trim_start_matches("149, ");
        check(&xid(rest), &format!("xid 149 0018:01:00.0 `{text}`"));
    }
    let many = "0x1 ".repeat(1000);
    check(
        &xid(&format!("149, NETIR Fatal XC0 i0 Link 1 ({many})")),
        "xid 149 0018:01:00.0 NETIR fatal link 1 Some(0)/Some(1) of 16",
    );
}

#[test]
fn the_drivers_recovery_action_is_read_from_xid_154() {
    let xid = |rest: &str| format!("NVRM: Xid (PCI:0000:01:00): {rest}");
    for (rest, expected) in [
        ("from 0x0 (None) to 0x1 (GPU Reset Required)", "none -> gpu-reset"),
        ("from 0x0 (None) to 0x2 (Node Reboot Required)", "none -> node-reboot"),
        ("from 0x0 (None) to 0x2 (OS Reboot)", "none -> node-reboot"),
        ("from 0x0 (None) to 0x1 (PF FLR)", "none -> gpu-reset"),
        ("from 0x1 (GPU Reset Required) to 0x0 (None)", "gpu-reset -> none"),
        ("from 0x0 (None) to 0xa (News)", "none -> ?"),
    ] {
        check(
            &xid(&format!("154, GPU recovery action changed {rest}")),
            &format!("xid 154 0000:01:00.0 {expected}"),
        );
    }
    check(&xid("154, something else"), "xid 154 0000:01:00.0 `something else`");
    let other = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)";
    check(&xid(&format!("13, {other}")), &format!("xid 13 0000:01:00.0 `{other}`"));
}

#[test]
fn a_gpu_off_the_bus_is_heard_without_the_word_xid() {
    check("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", "off 0000:18:00.0");
    check("NVRM: GPU at 00000000:18:00.0 has fallen off the bus.", "off 0000:18:00.0");
    check(
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5) \
         installed in this system has\n               NVRM: fallen off the bus and is not responding \
         to commands.",
        "off 0000:b3:00.0",
    );
    check(
        "3,1,2,-;NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this \
         system has\\x0aNVRM: fallen off the bus and is not responding to commands.",
        "off 0000:b3:00.0",
    );
    check(
        "NVRM: The NVIDIA GPU 0000:05:00.0 installed in this system has fallen off the bus and is not \
         responding to commands.",
        "off 0000:05:00.0",
    );
    check("NVRM: fallen off the bus and is not responding to commands.", "off ?");
}

#[test]
fn a_message_in_pieces_names_its_gpu() {
    let read = |log: &[&str]| {
        let mut lines = Lines::default();
        log.iter().filter_map(|line| lines.read(line)).map(|fault| told(&fault)).collect::<Vec<_>>()
    };
    let first = "NVRM: The NVIDIA GPU 0000:b3:00.0";
    let second = "NVRM: (PCI ID: 10de:26b5) installed in this system has";
    let third = "NVRM: fallen off the bus and is not responding to commands.";
    assert_eq!(read(&[first, second, third]), ["off 0000:b3:00.0"]);
    assert_eq!(read(&[first, "NVRM: installed in this system has", third]), ["off 0000:b3:00.0"]);
    assert_eq!(
        read(&[first, "nvme nvme0: I/O 1 QID 2 timeout", second, third]),
        ["off 0000:b3:00.0"]
    );
    // Two lines, as other drivers break it.
    let rest =
        "NVRM: (PCI ID: 10de:1e07) installed in this system has fallen off the bus and is not";
    assert_eq!(read(&[first, rest]), ["off 0000:b3:00.0"]);
    // What begins the same may end otherwise, and then the next one is another GPU.
    let other = "NVRM: installed in this system is not supported by the NVIDIA driver release.";
    assert_eq!(read(&[first, other, "NVRM: loading", third]), ["off ?"]);
    assert_eq!(read(&[first, second, third, third]), ["off 0000:b3:00.0", "off ?"]);
}

#[test]
fn an_sxid_is_read_with_the_drivers_word_and_its_link() {
    check(
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV \
         error (First)",
        "sxid 12028 0000:05:00.0 nonfatal link 32 `Link 32 egress non-posted PRIV error (First)`",
    );
    check(
        "SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "sxid 20034 0000:00:00.0 fatal link 30 `Link 30 LTSSM Fault Up`",
    );
    check(
        "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 11001, Fatal, ingress invalid command",
        "sxid 11001 0000:00:00.0 fatal `ingress invalid command`",
    );
    check(
        "nvidia-nvswitch12: SXid (PCI:0000:05:00.0): 10004, thermal event",
        "sxid 10004 0000:05:00.0 `thermal event`",
    );
}

#[test]
fn a_long_line_is_cut_where_a_character_begins() {
    for filler in ["x", "ä", "→"] {
        let long = filler.repeat(LINE_LEN_MAX);
        let line = format!("NVRM: Xid (PCI:0000:41:00): 13, pid=1, name={long}, {long}");
        let Some(KernelFault::Xid(xid)) = parse(&line) else { panic!("{filler}") };
        assert!(xid.process.unwrap().len() <= super::PROCESS_LEN_MAX);
        let line = format!("NVRM: Xid (PCI:0000:41:00): 13, {long}");
        let Some(KernelFault::Xid(xid)) = parse(&line) else { panic!("{filler}") };
        assert!(xid.text.len() <= MESSAGE_LEN_MAX && MESSAGE_LEN_MAX - 4 < xid.text.len());
    }
}

#[test]
fn signs_are_known_by_the_words_of_their_source() {
    for (line, expected) in [
        (
            "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",
            Some(Sign::NvlinkDetection),
        ),
        (
            "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",
            Some(Sign::NvlinkDetection),
        ),
        ("[ERROR] detected NVSwitch fatal error 20034 on fid 0", Some(Sign::FabricFatal)),
        ("detected NVSwitch non-fatal error 12028 on fid 0", Some(Sign::FabricNonFatal)),
        (
            "failed to find the GPU handle 5410063385821516767 in the multicast team request setup",
            Some(Sign::FabricTeam),
        ),
        ("fabric: number of NVSwitches don't match", Some(Sign::FabricSwitches)),
        ("detected NVSwitch fatal error: NV_WARN_NOTHING_TO_DO", None),
        (
            "[Thu Sep 19 02:29:46 2024] nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected \
             invalid context, skipping further processing",
            Some(Sign::PeermemContext),
        ),
        (
            "pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 \
             error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]",
            Some(Sign::NcclSegfault),
        ),
        (
            "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on \
             the PCIe slot (27W).",
            Some(Sign::NicPower),
        ),
        (
            "mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature",
            Some(Sign::NicHot),
        ),
        (
            "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 268269): ACCESS_REG(0x805) op_mod(0x1) \
             failed, status bad resource state(0x9)",
            Some(Sign::NicRegister),
        ),
        ("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out", Some(Sign::NicTimeout)),
        ("mlx5_core 0000:5c:00.0 eth0: TX timeout detected", Some(Sign::NicTimeout)),
        ("md/raid1:md0: Disk failure on sdb1, disabling device.", Some(Sign::RaidDiskFailed)),
        ("EXT4-fs (dm-0): Remounting filesystem read-only", Some(Sign::ReadOnly)),
        ("block nvme0n1: no available path - failing I/O", Some(Sign::NoPath)),
        ("nvme nvme0: I/O 260 QID 2 timeout, reset controller", Some(Sign::NvmeTimeout)),
        ("nvme nvme0: Disabling device after reset failure: -19", Some(Sign::NvmeLost)),
        ("attempt to access beyond end of device", Some(Sign::BeyondEnd)),
        ("Buffer I/O error on dev dm-0, logical block 1, async page read", Some(Sign::BufferError)),
        ("EXT4-fs (dm-0): I/O error while writing superblock", Some(Sign::SuperblockError)),
        ("Kernel panic - not syncing: Fatal exception", Some(Sign::Panic)),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [napi/eth0:1]", Some(Sign::SoftLockup)),
        ("INFO: task nvidia-smi:123 blocked for more than 120 seconds.", Some(Sign::HungTask)),
        ("Out of memory: Killed process 123 (python3)", Some(Sign::OutOfMemory)),
        ("Memory cgroup out of memory: Killed process 123 (python3)", Some(Sign::OutOfMemory)),
        ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#0", Some(Sign::HostMemory)),
        ("EDAC MC: Ver: 3.0.0", None),
        ("VFS: file-max limit 1000 reached", Some(Sign::FileLimit)),
        ("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", None),
        ("", None),
    ] {
        assert_eq!(sign(line), expected, "{line}");
    }
    for sign in Sign::ALL {
        let json = serde_json::to_string(sign).unwrap();
        assert_eq!(json, format!("\"{}\"", sign.as_str()));
        assert!(sign.meaning().ends_with('.'), "{sign:?}");
    }
}

/// Pieces of real lines, so that the parsers are reached far inside.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "NVRM: ",
            "Xid (",
            "PCI:",
            "0000:41:00",
            ".0",
            "): ",
            "79",
            "154",
            "149",
            ", ",
            "pid=",
            "name=",
            "'<unknown>'",
            "GPU ",
            "The NVIDIA GPU ",
            "fallen off the bus",
            "SXid (",
            "nvidia-nvswitch0: ",
            "Fatal",
            "Nonfatal",
            " XC0 i0 ",
            "Link ",
            "08",
            "-1",
            "(0x",
            "0x0 ",
            "NETIR",
            ")",
            "[",
            "]",
            "<3>",
            ";",
            "1,2,3,-;",
            "kernel: ",
            "Mar ",
            " GPU-I:",
            "GPU recovery action changed from ",
            "0x0 (None)",
            " to ",
            "\n",
            "Data {",
            "Severity ",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,3}",
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let line = String::from_utf8_lossy(&bytes);
        parse(&line);
        sign(&line);
    }

    #[test]
    fn no_mixture_of_real_lines_is_too_odd(pieces in prop::collection::vec(piece(), 0..24)) {
        let line = pieces.concat();
        let fault = parse(&line);
        sign(&line);
        let mut lines = Lines::default();
        for piece in &pieces {
            lines.read(piece);
        }
        if let Some(KernelFault::Xid(xid)) = fault {
            prop_assert!(xid.code != 0 && xid.text.len() <= MESSAGE_LEN_MAX);
        }
    }

    #[test]
    fn what_the_driver_writes_comes_back(
        code in 1_u32..300, domain: u16, bus: u8, device in 0_u8..32, pid: u32,
        name in "[a-zA-Z0-9:_.-]{1,15}", text in "[a-zA-Z][a-zA-Z0-9 .,:]{0,60}[a-z]",
    ) {
        let place = format!("{domain:04x}:{bus:02x}:{device:02x}");
        let line = format!("NVRM: Xid (PCI:{place}): {code}, pid={pid}, name={name}, {text}");
        let Some(KernelFault::Xid(xid)) = parse(&line) else { panic!("{line}") };
        prop_assert_eq!(xid.code, code);
        prop_assert_eq!(xid.gpu.to_string(), format!("{place}.0"));
        prop_assert_eq!(xid.pid, Some(pid));
        prop_assert_eq!(xid.process, Some(name));
        prop_assert_eq!(xid.text, text);
    }
}
