use super::*;
use crate::cmd::gpus::Choice;
use crate::gpu::fake::Fake;
use crate::gpu::fake::injection::Injection;
use crate::log::{Problem, ProblemKind};
use std::str::FromStr;

const NOON: &str = "2026-03-01T12:00:00Z";

fn at() -> Timestamp {
    NOON.parse().unwrap()
}

/// A made-up machine to which this happened, looked at once.
fn looked(spec: &str, faults: &[&str]) -> Looked {
    let mut fake = Fake::parse(spec, "scan").unwrap();
    let inventory = fake.inventory();
    let before = fake.sweep(at());
    let mut lines = Vec::new();
    for fault in faults {
        lines.extend(fake.inject(&Injection::from_str(fault).unwrap()).unwrap());
    }
    let line = |text| Line {
        source: Source::Kmsg,
        at: at(),
        text,
        lost_before: 0,
        boot_id: String::new(),
    };
    Looked {
        at: at(),
        took_ms: 7,
        gpus: Some(GpusLooked {
            inventory,
            sweeps: vec![(at(), before), (at(), fake.sweep(at()))],
        }),
        host: Ok(HostSample::empty(at())),
        lines: lines.into_iter().map(line).collect(),
        lines_cut: false,
        sources: vec![Source::Kmsg],
        problems: Vec::new(),
        expected_gpus: None,
        on_the_bus: 0,
    }
}

#[test]
fn every_fault_has_its_verdict_and_its_reason() {
    let rows: &[(&[&str], Word, &[&str])] = &[
        (&[], Word::Healthy, &[]),
        (&["xid:79 gpu:3"], Word::Unhealthy, &["GpuLost", "Xid79"]),
        (&["xid:13 gpu:3"], Word::Healthy, &[]),
        (&["xid:31 gpu:3"], Word::Healthy, &[]),
        (&["xid:48 gpu:3"], Word::Unhealthy, &["EccUncorrected", "RecoveryAction", "Xid48"]),
        (&["xid:4242 gpu:3"], Word::Degraded, &["Xid4242"]),
        (&["lost gpu:0"], Word::Unhealthy, &["GpuLost"]),
        (&["missing gpu:0"], Word::Unhealthy, &["GpuMissing"]),
        (&["hang gpu:0"], Word::Unhealthy, &["ProbeHung"]),
        (&["ecc-corrected:200 gpu:0"], Word::Degraded, &["EccCorrected"]),
        (&["ecc-corrected:3 gpu:0"], Word::Healthy, &[]),
        (&["ecc-uncorrected:1 gpu:0"], Word::Unhealthy, &["EccUncorrected"]),
        (&["row-remap-pending gpu:0"], Word::Degraded, &["RowRemapPending"]),
        (&["row-remap-failed gpu:0"], Word::Unhealthy, &["RowRemapFailed"]),
        (&["temperature:86 gpu:0"], Word::Degraded, &["Hot"]),
        (&["temperature:96 gpu:0"], Word::Unhealthy, &["Hot"]),
        (&["nvlink-down:2 gpu:0"], Word::Degraded, &["Nvlink"]),
        (&["recovery:gpu-reset gpu:0"], Word::Unhealthy, &["RecoveryAction"]),
        (&["recovery:recover-imex gpu:0"], Word::Degraded, &["RecoveryAction"]),
        (
            &["line:mce: [Hardware Error]: Machine check events logged"],
            Word::Degraded,
            &["machine-check"],
        ),
        (&["line:\u{1b}[2Jgarbage \u{202e}"], Word::Healthy, &[]),
    ];
    for (faults, verdict, codes) in rows {
        let report = Report::of(looked("4xH100", faults));
        let mut found: Vec<&str> =
            report.reasons.iter().map(|reason| reason.code.as_str()).collect();
        found.sort_unstable();
        assert_eq!(
            (report.verdict, found.as_slice()),
            (*verdict, *codes),
            "{faults:?}: {:?}",
            report.reasons
        );
    }
}

#[test]
fn a_code_is_explained_and_its_repeats_are_counted() {
    let faults = vec!["xid:79 gpu:3"; 40];
    let report = Report::of(looked("8xH100", &faults));
    assert_eq!(report.reasons.len(), 2, "{:?}", report.reasons);
    let xid = report.signals.iter().find(|found| found.explained.is_some()).unwrap();
    assert_eq!(xid.signal.count, 40);
    assert_eq!(xid.signal.gpu.as_ref().map(|gpu| gpu.index), Some(3));
    let explained = xid.explained.as_ref().unwrap();
    assert_eq!((explained.code, explained.class, explained.action), (79, "node", "reboot-node"));
    assert!(!explained.name.is_empty());
}

#[test]
fn what_could_not_be_seen_is_said_with_why() {
    let mut blind = looked("1xH100", &[]);
    let absent = GpuError::Absent { message: "no library".to_owned() };
    blind.gpus = Some(GpusLooked { inventory: Err(absent), sweeps: Vec::new() });
    blind.sources.clear();
    let message =
        "Operation not permitted; run as root, or give the capability CAP_SYSLOG".to_owned();
    blind.problems = vec![Problem { source: Source::Kmsg, kind: ProblemKind::Forbidden, message }];
    let report = Report::of(blind);
    assert_eq!(report.verdict, Word::Degraded, "a machine whose faults are not seen is not well");
    let unseen: Vec<&str> = report.unseen.iter().map(|unseen| unseen.what.as_str()).collect();
    assert_eq!(
        unseen,
        ["GPUs", "/dev/kmsg", "processors", "memory", "disks", "InfiniBand", "clock"]
    );
    assert!(report.unseen[1].why.contains("CAP_SYSLOG"));

    let mut driverless = looked("1xH100", &[]);
    let absent = GpuError::Absent { message: "no library".to_owned() };
    driverless.gpus = Some(GpusLooked { inventory: Err(absent), sweeps: Vec::new() });
    driverless.on_the_bus = 8;
    let report = Report::of(driverless);
    assert_eq!(report.verdict, Word::Unhealthy);
    assert_eq!(report.reasons[0].code, "DriverAbsent");
}

#[test]
fn fewer_gpus_than_expected_is_unhealthy() {
    let mut few = looked("4xH100", &[]);
    few.expected_gpus = Some(8);
    let report = Report::of(few);
    assert_eq!(report.verdict, Word::Unhealthy);
    assert_eq!(report.reasons[0].code, "GpuMissing");
}

fn golden(name: &str, text: &str) {
    let path = format!("{}/src/cmd/scan/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "run with UPDATE_GOLDEN=1 if this is what is wanted: {name}");
}

#[test]
fn the_page_says_the_verdict_first_and_fits_the_terminal() {
    let mut sick = looked("2xH100", &["xid:48 gpu:1", "temperature:86 gpu:0", "xid:13 gpu:0"]);
    sick.problems = vec![Problem {
        source: Source::Journald,
        kind: ProblemKind::Forbidden,
        message: "Permission denied; run as root, or join the group systemd-journal".to_owned(),
    }];
    let report = Report::of(sick);
    golden("wide", &page::page(&report, &Screen::plain()));
    let narrow = page::page(&report, &Screen::sized(Some(60), Some(40)));
    golden("narrow", &narrow);
    for width in [40, 60, 80, 100, 132] {
        let page = page::page(&report, &Screen::sized(Some(width), Some(40)));
        for line in page.lines() {
            // A single word, such as a name in the catalogue, is left whole.
            let fits =
                line.chars().count() <= usize::from(width) || line.trim().split(' ').count() <= 2;
            assert!(fits, "{width}: {line}");
        }
        assert!(!page.contains('\u{1b}'));
    }
    let colour = Screen { colour: true, ..Screen::sized(Some(80), Some(40)) };
    assert!(page::page(&report, &colour).starts_with("\u{1b}[31mUNHEALTHY"));
}

#[test]
fn a_terminal_obeys_nothing_that_a_machine_is_called() {
    let mut hostile = looked(
        "1xH100",
        &["line:NVRM: Xid (PCI:0000:18:00): 79, \u{1b}]0;owned\u{7} \u{202e}fallen"],
    );
    if let Some(GpusLooked { inventory: Ok(inventory), .. }) = &mut hostile.gpus {
        inventory.gpus[0].name = "NVIDIA \u{1b}[2J\u{9b}31mH100\u{202e}\n\r".to_owned();
        inventory.driver_version = Some("580\u{1b}[1m".to_owned());
    }
    let report = Report::of(hostile);
    let is_harmless = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
    let page = page::page(&report, &Screen::plain());
    assert!(page.chars().all(is_harmless), "{page:?}");
    let json = document(&report);
    assert!(json.chars().all(is_harmless), "{json:?}");
    let back: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(back["gpus"][0]["identity"]["name"], "NVIDIA \u{1b}[2J\u{9b}31mH100\u{202e}\n\r");
}

#[test]
fn json_keeps_its_shape() {
    let report = Report::of(looked("1xH100", &["xid:79 gpu:0"]));
    let value: serde_json::Value = serde_json::from_str(&document(&report)).unwrap();
    let members: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "agent_version",
        "at",
        "checks",
        "driver",
        "gpus",
        "host",
        "reasons",
        "schema",
        "signals",
        "took_ms",
        "unseen",
        "verdict",
    ];
    expected.sort_unstable();
    let mut found = members.clone();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(value["verdict"], "unhealthy");
    assert_eq!(value["signals"][0]["kind"], "driver_error");
    assert_eq!(value["at"], NOON);
}

#[tokio::test(start_paused = true)]
async fn a_whole_scan_of_a_made_up_machine() {
    let gpus = crate::cmd::gpus::GpuArgs {
        gpu: Choice::Fake("8xH100".to_owned()),
        nvml_library: None,
        inject: vec![Injection::from_str("xid:79 gpu:3").unwrap()],
    };
    let nowhere = std::env::temp_dir().join("argosy-scan-nowhere");
    let setup = Setup {
        opened: gpus.open(GPU_MAX).unwrap(),
        roots: Roots::under(&nowhere),
        logs: log::Options::default(),
        expected_gpus: None,
    };
    let report = look(setup, &System).await.unwrap();
    assert_eq!(report.verdict, Word::Unhealthy);
    assert_eq!(report.gpus.len(), 8);
    assert_eq!(report.gpus[3].unreadable.as_deref(), Some("GPU_IS_LOST"));
    let xid = report.reasons.iter().find(|reason| reason.code == "Xid79").unwrap();
    assert!(xid.pci.is_some(), "a GPU that was lost before we looked has its address only");
}

#[test]
fn faults_are_made_up_only_for_gpus_that_are() {
    let gpus = crate::cmd::gpus::GpuArgs {
        inject: vec![Injection::Heal { gpu: None }],
        ..Default::default()
    };
    assert!(gpus.open(GPU_MAX).err().unwrap().to_string().contains("--gpu fake:8xH100"));
    for (text, is_well) in [
        ("auto", true),
        ("none", true),
        ("fake:8xH100", true),
        ("fake:8xCPU", false),
        ("8xH100", false),
    ] {
        assert_eq!(Choice::from_str(text).is_ok(), is_well, "{text}");
    }
}

#[test]
fn r2_i22_each_trouble_of_memory_has_its_own_code() {
    let rows = [
        ("row_remap_failure", Word::Unhealthy, "RowRemapFailed"),
        ("row_remap_pending", Word::Degraded, "RowRemapPending"),
        ("row_remaps_total", Word::Degraded, "RowsRemapped"),
        ("retired_pages_pending", Word::Degraded, "PageRetirementPending"),
        ("retired_pages_total", Word::Degraded, "PagesRetired"),
    ];
    for (metric, word, code) in rows {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let signal = crate::signal::Signal::once(crate::signal::SignalKind::Memory, at, "it");
        let found = super::report::memory_reason(&signal.with(metric, 1));
        assert_eq!(found, (word, code.to_owned()), "{metric}");
    }
}
