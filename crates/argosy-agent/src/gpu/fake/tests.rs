use super::*;
use crate::watch::gpu::{Expected, GpuWatch, Memory};
use argosy_core::kernel;
use injection::{InjectionError, KINDS};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn eight() -> Fake {
    Fake::parse("8xH100", "node-1").unwrap()
}

#[test]
fn a_machine_is_named_by_count_and_model() {
    let well = [("8xH100", 8), ("1xh200", 1), ("L40S", 1), ("64XB200", 64), ("4xa100", 4)];
    for (spec, count) in well {
        let inventory = Fake::parse(spec, "node-1").unwrap().inventory().unwrap();
        assert_eq!(inventory.gpus.len(), count, "{spec}");
    }
    for spec in ["", "8x", "0xH100", "65xH100", "-1xH100", "8xFX5200", "x", "H100x8", "8 x H100"] {
        assert!(Fake::parse(spec, "node-1").is_err(), "{spec}");
    }
    let error = Fake::parse("8xFX5200", "node-1").unwrap_err().to_string();
    assert!(error.contains("FX5200") && error.contains("H200"), "{error}");
}

#[test]
fn names_are_the_same_in_every_run_and_differ_between_gpus_and_nodes() {
    let of = |node: &str| {
        let gpus = Fake::parse("8xH100", node).unwrap().inventory().unwrap().gpus;
        gpus.into_iter().map(|gpu| (gpu.uuid, gpu.serial, gpu.pci_bus_id)).collect::<Vec<_>>()
    };
    assert_eq!(of("node-1"), of("node-1"));
    let mut all: Vec<String> =
        [of("node-1"), of("node-2")].concat().into_iter().map(|(uuid, _, _)| uuid).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 16);
    assert_eq!(all[0].len(), "GPU-00000000-0000-0000-0000-000000000000".len());
}

#[test]
fn values_live_and_follow_from_the_time_alone() {
    let fake = eight();
    assert_eq!(fake.sweep(at(7)), fake.sweep(at(7)));
    assert_ne!(fake.sweep(at(7)), fake.sweep(at(67)));
    let mut busy = fake.clone();
    busy.inject(&"process:4711 gpu:0 name:python3".parse().unwrap()).unwrap();
    for second in 0..300 {
        let gpu = busy.sweep(at(second)).unwrap().gpus.remove(0);
        assert!((85..=100).contains(&gpu.utilization_percent.unwrap()), "{gpu:?}");
        assert!((55..80).contains(&gpu.temperature_celsius.unwrap()), "{gpu:?}");
        assert!(gpu.power_watts.unwrap() <= gpu.power_limit_watts.unwrap(), "{gpu:?}");
        assert_eq!(gpu.processes.unwrap()[0].name, "python3");
    }
}

/// Injects, and says what the watch makes of it, with what the kernel wrote.
fn after(text: &str) -> String {
    let mut fake = eight();
    let inventory = fake.inventory().unwrap();
    let mut watch = GpuWatch::new(Expected::default(), Memory::default());
    watch.on(fake.sweep(at(0)).as_ref(), &inventory, at(0));
    let lines = fake.inject(&text.parse().unwrap()).unwrap();
    // Looked at often enough for what must last before it is told.
    let mut told = Vec::new();
    let mut nvml = String::new();
    let mut changed = false;
    for second in 1..=6 {
        let seen = watch.on(fake.sweep(at(second)).as_ref(), &inventory, at(second));
        told.extend(seen.signals.iter().map(|signal| {
            let gpu = signal.gpu.as_ref().map_or("-".to_owned(), |gpu| gpu.index.to_string());
            format!("{:?}@{gpu}", signal.kind)
        }));
        nvml = seen.checks[1].reason.clone();
        changed |= seen.inventory_changed;
    }
    let xids = lines.iter().filter_map(|line| kernel::parse(line)?.xid());
    let mut words: Vec<String> = xids.map(|code| format!("xid {code}")).collect();
    words.extend(told);
    words.extend(Some(nvml).filter(|reason| !reason.is_empty()));
    words.extend(changed.then(|| "new inventory".to_owned()));
    words.join(", ")
}

#[test]
fn whatever_can_be_injected_is_found() {
    let rows = [
        ("xid:79 gpu:3", "xid 79, DriverError@3, GpuLost"),
        ("xid:48 gpu:3", "xid 48, DriverError@3, EccDbe@3"),
        ("xid:63 gpu:3", "xid 63, Memory@3"),
        ("xid:64 gpu:3", "xid 64, DriverError@3, Memory@3"),
        ("xid:31 gpu:3", "xid 31"),
        ("lost gpu:3", "DriverError@3, GpuLost"),
        ("missing gpu:3", "DriverError@3, GpuMissing"),
        ("ecc-corrected:200 gpu:3", "EccSbe@3"),
        ("ecc-uncorrected:1 gpu:3", "EccDbe@3"),
        ("row-remap-pending gpu:3", "Memory@3"),
        ("row-remap-failed gpu:3", "Memory@3"),
        ("temperature:96 gpu:3", "Thermal@3"),
        ("throttle:HwThermalSlowdown gpu:3", "Thermal@3"),
        ("throttle:HwPowerBrakeSlowdown gpu:3", "Power@3"),
        ("nvlink-down:2 gpu:3", "Nvlink@3"),
        ("nvlink-errors:5 gpu:3", "Nvlink@3"),
        ("pcie-replays:50 gpu:3", "Pcie@3"),
        ("pcie-width:8 gpu:3", "Pcie@3"),
        ("recovery:gpu-reset gpu:3", "DriverError@3"),
        ("hang gpu:3", "DriverError@-, ProbeHung"),
        ("hang", "DriverError@-, ProbeHung"),
        ("driver-error:DRIVER_NOT_LOADED", "DriverRestarting"),
        ("mig:2 gpu:3", "new inventory"),
        ("process:4711 gpu:3 name:python3", ""),
        ("line:NVRM: Xid (PCI:0000:18:00): 13, Graphics Exception", "xid 13"),
        ("heal", ""),
    ];
    for (text, words) in rows {
        assert_eq!(after(text), words, "{text}");
    }
    for kind in KINDS {
        assert!(rows.iter().any(|(text, _)| text.starts_with(kind)), "no row for {kind}");
    }
}

#[test]
fn an_injection_is_the_same_as_text_and_as_json() {
    for text in [
        "xid:79 gpu:3",
        "recovery:drain-and-reset gpu:0",
        "recovery:99 gpu:0",
        "process:1 gpu:0",
        "hang",
        "hang gpu:7",
        "heal gpu:1",
        "line:a  b: c",
        "throttle:SwPowerCap gpu:2",
    ] {
        let injection: Injection = text.parse().unwrap();
        assert_eq!(injection.to_string(), text);
        let json = serde_json::to_string(&injection).unwrap();
        assert_eq!(serde_json::from_str::<Injection>(&json).unwrap(), injection, "{json}");
    }
}

#[test]
fn nonsense_is_refused_with_a_way_out() {
    let long = format!("driver-error:{}", "x".repeat(65));
    let rows = [
        ("", "nothing is called ``"),
        ("explode gpu:3", "nothing is called `explode`"),
        ("xid gpu:3", "`xid` needs `code`, for example `xid:79 gpu:3`"),
        ("xid:79", "`xid` needs `gpu`"),
        ("xid:many gpu:3", "`many` is no code"),
        ("xid:-1 gpu:3", "`-1` is no code"),
        ("xid:99999999999 gpu:3", "`99999999999` is no code"),
        ("xid:79 gpu:three", "`three` is no number of a GPU"),
        ("xid:79 gpu:3 size:4", "`xid` has no `size`"),
        ("lost:9 gpu:3", "`lost` has no `9`"),
        ("recovery:pray gpu:3", "`pray` is no recovery action"),
        (&long, "code has 65 bytes; at most 64 are allowed"),
    ];
    for (text, words) in rows {
        let error: InjectionError = text.parse::<Injection>().unwrap_err();
        assert!(error.to_string().starts_with(words), "{text}: {error}");
    }
    let error = eight().inject(&"xid:79 gpu:8".parse().unwrap()).unwrap_err();
    assert_eq!(error, InjectError::NoSuchGpu { index: 8, count: 8 });
}

#[test]
fn what_is_healed_is_well_and_keeps_its_counts() {
    let mut fake = eight();
    for text in [
        "xid:79 gpu:3",
        "missing gpu:4",
        "hang",
        "driver-error:UNKNOWN",
        "ecc-corrected:7 gpu:5",
        "temperature:99 gpu:5",
    ] {
        fake.inject(&text.parse().unwrap()).unwrap();
    }
    assert!(fake.sweep(at(0)).is_err());
    fake.inject(&"heal".parse().unwrap()).unwrap();
    let sweep = fake.sweep(at(0)).unwrap();
    assert_eq!((sweep.count, sweep.gpus.len()), (8, 8));
    assert_eq!(sweep.gpus[5].ecc_corrected.unwrap().volatile, Some(7));
    assert!(sweep.gpus[5].temperature_celsius.unwrap() < 50);
}

#[tokio::test]
async fn the_agent_and_whoever_injects_share_one_machine() {
    let (fake, mut lines) = SharedFake::new(eight(), || at(0));
    let mut seen = fake.clone();
    assert_eq!(seen.sweep().await.unwrap().gpus.len(), 8);
    fake.inject(&"xid:79 gpu:3".parse().unwrap()).unwrap();
    assert!(lines.recv().await.unwrap().contains("79, pid='<unknown>'"));
    assert_eq!(seen.sweep().await.unwrap().unreadable[&3], "GPU_IS_LOST");
    assert_eq!(seen.inventory().await.unwrap().gpus.len(), 7);
    let flood: Injection = "line:x".parse().unwrap();
    for _ in 0..LINES_MAX {
        fake.inject(&flood).unwrap();
    }
    assert_eq!(fake.inject(&flood), Err(InjectError::TooFast));
    drop(lines);
    fake.inject(&flood).unwrap();
}

proptest::proptest! {
    #[test]
    fn any_text_is_an_injection_or_an_error(text in "([a-z-]{0,12}:?[0-9a-zA-Z]{0,12} ?){0,4}|.{0,40}") {
        if let Ok(injection) = text.parse::<Injection>() {
            let again: Injection = injection.to_string().parse().unwrap();
            proptest::prop_assert_eq!(again, injection);
        }
    }
}
