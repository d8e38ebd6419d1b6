use super::*;
use crate::gpu::{Counts, GpuIdentity, Mig, Nvlink, Reading, RetiredPages, RowRemaps};
use std::time::Duration;

/// What a look saw.
type Look = Result<Sweep, GpuError>;

fn uuid(index: u32) -> String {
    format!("GPU-{index}")
}

fn inventory(count: u32) -> Inventory {
    let gpu = |index| GpuIdentity {
        index,
        uuid: uuid(index),
        serial: Some(format!("S{index}")),
        pcie_generation_max: Some(5),
        pcie_width_max: Some(16),
        slowdown_celsius: Some(89),
        mig: Some(Mig::default()),
        nvlinks: (0..18).map(|link| Nvlink { link, active: true, ..Nvlink::default() }).collect(),
        ..GpuIdentity::default()
    };
    Inventory { gpus: (0..count).map(gpu).collect(), ..Inventory::default() }
}

fn reading(index: u32) -> Reading {
    Reading {
        index,
        uuid: uuid(index),
        utilization_percent: Some(0),
        temperature_celsius: Some(40),
        memory_temperature_celsius: Some(45),
        ecc_corrected: Some(Counts { volatile: Some(0), aggregate: Some(0) }),
        ecc_uncorrected: Some(Counts { volatile: Some(0), aggregate: Some(0) }),
        row_remaps: Some(RowRemaps::default()),
        nvlinks_down: Some(0),
        pcie_replays: Some(0),
        pcie_generation: Some(1),
        pcie_width: Some(16),
        recovery_action: Some(0),
        mig: Some(Mig::default()),
        ..Reading::default()
    }
}

fn sweep(count: u32) -> Sweep {
    let took = Duration::from_millis(5);
    let gpus = (0..count).map(reading).collect();
    Sweep { took, count, gpus, unreadable: BTreeMap::new() }
}

/// Eight GPUs, of which these cannot be read.
fn unreadable(rows: &[(u32, &str)]) -> Look {
    let mut sweep = sweep(8);
    sweep.unreadable = rows.iter().map(|(index, said)| (*index, (*said).to_owned())).collect();
    sweep.gpus.retain(|gpu| !sweep.unreadable.contains_key(&gpu.index));
    Ok(sweep)
}

fn hung() -> Look {
    Err(GpuError::Hung { call: "sweep".into(), after: Duration::from_secs(10), gpu: Some(3) })
}

fn crashed() -> Look {
    Err(GpuError::Crashed { call: "start".into(), how: "signal 11".into(), gpu: None })
}

fn driver(code: &str) -> Look {
    Err(GpuError::Driver { code: code.into(), message: "it said so".into() })
}

fn absent() -> Look {
    Err(GpuError::Absent { message: "libnvidia-ml.so.1: cannot open".into() })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn signal_words(signals: &[Signal]) -> String {
    let words = signals.iter().map(|signal| {
        let gpu = signal.gpu.as_ref().map_or("-".to_owned(), |gpu| gpu.index.to_string());
        let metrics: Vec<String> =
            signal.metrics.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{:?}@{gpu} {}", signal.kind, metrics.join(" "))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn check_words(seen: &Seen) -> String {
    let words = seen.checks.iter().map(|check| {
        let reason = if check.reason.is_empty() { "-" } else { &check.reason };
        format!("{} {:?} {reason}", check.check, check.word)
    });
    words.collect::<Vec<_>>().join(", ")
}

fn on(watch: &mut GpuWatch, look: &Look, inventory: &Inventory, second: i64) -> Seen {
    watch.on(look.as_ref(), inventory, at(second))
}

/// Looks at these seconds, and the word of `boot` and `nvml` at each.
#[track_caller]
fn check(expected: Expected, looks: &[(i64, Look, &str)]) {
    let mut watch = GpuWatch::new(expected, Memory::default());
    for (second, look, words) in looks {
        let seen = on(&mut watch, look, &inventory(8), *second);
        assert_eq!(check_words(&seen), *words, "at {second}: {look:?}");
    }
}

const WELL: &str = "boot Healthy -, nvml Healthy -";
const ON_THE_BUS: Expected = Expected { gpus: None, on_the_bus: 8, booted: None };

#[test]
fn every_trouble_has_its_reason() {
    let rows: [(Look, &str); 9] = [
        (Ok(sweep(8)), WELL),
        (hung(), "boot Healthy -, nvml Unhealthy ProbeHung"),
        (crashed(), "boot Healthy -, nvml Unhealthy ProbeCrashed"),
        (unreadable(&[(3, "GPU_IS_LOST")]), "boot Healthy -, nvml Unhealthy GpuLost"),
        (unreadable(&[(3, "UNKNOWN")]), "boot Healthy -, nvml Unhealthy GpuUnreadable"),
        (unreadable(&[(3, "RESET_REQUIRED")]), "boot Healthy -, nvml Unhealthy GpuUnreadable"),
        (unreadable(&[(3, "NO_PERMISSION")]), "boot Healthy -, nvml Degraded GpuUnreadable"),
        // N4: that our own probe dies is no proof against the GPU.
        (
            unreadable(&[(3, "ProbeCrashed: signal 11")]),
            "boot Healthy -, nvml Degraded ProbeCrashed",
        ),
        (
            unreadable(&[(2, "ProbeCrashed: signal 11"), (3, "GPU_IS_LOST")]),
            "boot Healthy -, nvml Unhealthy GpuLost",
        ),
    ];
    for (look, words) in rows {
        check(ON_THE_BUS, &[(0, Ok(sweep(8)), WELL), (30, look, words), (60, Ok(sweep(8)), WELL)]);
    }
}

#[test]
fn n2_a_gpu_that_vanishes_without_an_xid_is_found_by_counting() {
    let missing = "boot Healthy -, nvml Unhealthy GpuMissing";
    check(ON_THE_BUS, &[(0, Ok(sweep(8)), WELL), (30, Ok(sweep(7)), missing)]);

    // It is named, once, and its neighbours' new numbers confuse nobody.
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    on(&mut watch, &Ok(sweep(8)), &inventory(8), 0);
    let mut without_3 = sweep(8);
    without_3.gpus.remove(3);
    without_3.count = 7;
    for (index, gpu) in (0..).zip(&mut without_3.gpus) {
        gpu.index = index;
    }
    let seen = on(&mut watch, &Ok(without_3.clone()), &inventory(8), 30);
    assert_eq!(
        signal_words(&seen.signals),
        "DriverError@3 gpus_expected=8 gpus_seen=7 reason=GpuMissing"
    );
    let gpu = seen.signals[0].gpu.as_ref().unwrap();
    assert_eq!((gpu.uuid.as_str(), gpu.serial.as_str()), ("GPU-3", "S3"));
    assert!(!seen.inventory_changed, "a fault is no change of the inventory");
    let seen = on(&mut watch, &Ok(without_3), &inventory(8), 60);
    assert_eq!(signal_words(&seen.signals), "");

    // A restart of the agent does not forget how many there were.
    let kept: Memory =
        serde_json::from_str(&serde_json::to_string(watch.memory()).unwrap()).unwrap();
    let mut watch = GpuWatch::new(ON_THE_BUS, kept);
    let seen = on(&mut watch, &Ok(sweep(7)), &inventory(7), 90);
    assert_eq!(check_words(&seen), missing);
}

#[test]
fn n2_fewer_than_configured_is_found_at_the_start() {
    let eight = Expected { gpus: Some(8), ..ON_THE_BUS };
    let missing = "boot Unhealthy GpuMissing, nvml Unhealthy GpuMissing";
    check(eight, &[(0, Ok(sweep(7)), missing), (30, Ok(sweep(8)), WELL)]);
    let mut watch = GpuWatch::new(eight, Memory::default());
    let seen = on(&mut watch, &Ok(sweep(7)), &inventory(7), 0);
    assert_eq!(
        signal_words(&seen.signals),
        "DriverError@- gpus_expected=8 gpus_seen=7 reason=GpuMissing"
    );
    assert_eq!(seen.checks[1].details["gpus_seen"], "7");
}

#[test]
fn n3_a_driver_upgrade_is_a_warm_up_and_not_a_failure() {
    let restarting = "boot Healthy -, nvml Degraded DriverRestarting";
    let broken = "boot Healthy -, nvml Unhealthy DriverError";
    check(
        ON_THE_BUS,
        &[
            (0, Ok(sweep(8)), WELL),
            (30, driver("DRIVER_NOT_LOADED"), restarting),
            (60, absent(), restarting),
            (90, driver("LIB_RM_VERSION_MISMATCH"), restarting),
            // It is back, and still finds its GPUs.
            (120, Ok(sweep(5)), restarting),
            (150, Ok(sweep(8)), WELL),
            // The next one has its own five minutes; then it is a fault.
            (1_000, driver("DRIVER_NOT_LOADED"), restarting),
            (1_299, driver("DRIVER_NOT_LOADED"), restarting),
            (1_300, driver("DRIVER_NOT_LOADED"), broken),
            (1_330, absent(), "boot Healthy -, nvml Unhealthy DriverAbsent"),
            (1_360, Ok(sweep(7)), "boot Healthy -, nvml Unhealthy GpuMissing"),
            (1_390, Ok(sweep(8)), WELL),
        ],
    );

    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    on(&mut watch, &Ok(sweep(8)), &inventory(8), 0);
    assert_eq!(on(&mut watch, &absent(), &inventory(8), 30).signals, []);
    assert_eq!(on(&mut watch, &Ok(sweep(6)), &inventory(8), 60).signals, []);
    let seen = on(&mut watch, &Ok(sweep(8)), &inventory(8), 90);
    assert_eq!(seen.signals, []);
    assert!(!seen.inventory_changed, "that was said when the driver came back");
}

#[test]
fn n3_the_driver_that_comes_back_may_be_another_one() {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    on(&mut watch, &Ok(sweep(8)), &inventory(8), 0);
    on(&mut watch, &driver("DRIVER_NOT_LOADED"), &inventory(8), 30);
    assert!(on(&mut watch, &Ok(sweep(8)), &inventory(8), 60).inventory_changed);
    assert!(!on(&mut watch, &Ok(sweep(8)), &inventory(8), 90).inventory_changed);
}

#[test]
fn a_driver_that_never_worked_is_broken_unless_the_machine_has_just_started() {
    let broken = "boot Unhealthy DriverError, nvml Unhealthy DriverError";
    check(ON_THE_BUS, &[(0, driver("DRIVER_NOT_LOADED"), broken)]);
    let booted = Expected { booted: Some(at(0)), ..ON_THE_BUS };
    let starting = "boot Degraded DriverRestarting, nvml Degraded DriverRestarting";
    check(
        booted,
        &[(20, driver("DRIVER_NOT_LOADED"), starting), (400, driver("DRIVER_NOT_LOADED"), broken)],
    );
}

#[test]
fn a_machine_without_gpus_is_well_and_one_without_a_driver_is_not() {
    check(Expected::default(), &[(0, absent(), WELL)]);
    let absent_word = "boot Unhealthy DriverAbsent, nvml Unhealthy DriverAbsent";
    check(ON_THE_BUS, &[(0, absent(), absent_word)]);
    check(Expected { gpus: Some(8), ..Expected::default() }, &[(0, absent(), absent_word)]);
    check(Expected { gpus: Some(0), ..Expected::default() }, &[(0, absent(), WELL)]);
}

#[test]
fn n8_mig_and_hot_added_gpus_are_a_new_inventory_and_no_fault() {
    let mig = Mig { enabled: true, pending: true, instances: 0 };
    let mut cut = sweep(8);
    cut.gpus[2].mig = Some(mig);
    let mut sliced = sweep(8);
    sliced.gpus[2].mig = Some(Mig { instances: 3, ..mig });
    let mut known = inventory(8);
    known.gpus[2].mig = Some(mig);
    let rows: [(Sweep, Inventory, bool); 6] = [
        (sweep(8), inventory(8), false),
        (cut.clone(), inventory(8), true),
        (cut, known.clone(), false),
        (sliced, known.clone(), true),
        (sweep(8), known, true),
        (sweep(9), inventory(8), true),
    ];
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    on(&mut watch, &Ok(sweep(8)), &inventory(8), 0);
    for (second, (look, inventory, changed)) in (1..).zip(rows) {
        let seen = on(&mut watch, &Ok(look), &inventory, second * 30);
        assert_eq!(check_words(&seen), WELL);
        assert_eq!(signal_words(&seen.signals), "");
        assert_eq!(seen.inventory_changed, changed, "row {second}");
    }
    assert_eq!(watch.expected(), Some(9), "from now on the ninth is missed");
}

#[test]
fn trouble_is_told_once_and_again_when_it_comes_back() {
    let rows: [(Look, &str); 7] = [
        (Ok(sweep(8)), ""),
        (unreadable(&[(3, "GPU_IS_LOST")]), "DriverError@3 reason=GpuLost"),
        (unreadable(&[(3, "GPU_IS_LOST")]), ""),
        (Ok(sweep(8)), ""),
        (unreadable(&[(3, "GPU_IS_LOST")]), "DriverError@3 reason=GpuLost"),
        (hung(), "DriverError@- reason=ProbeHung"),
        (hung(), ""),
    ];
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    for (second, (look, words)) in (0..).zip(rows) {
        let seen = on(&mut watch, &look, &inventory(8), second * 30);
        assert_eq!(signal_words(&seen.signals), words, "look {second}");
    }
}

/// One GPU that is read every 30 seconds: how it is, and what is told.
#[track_caller]
fn edges<T: Copy + std::fmt::Debug>(set: impl Fn(&mut Reading, T), looks: &[(T, &str)]) {
    edges_every(30, set, looks);
}

#[track_caller]
fn edges_every<T: Copy + std::fmt::Debug>(
    period: i64,
    set: impl Fn(&mut Reading, T),
    looks: &[(T, &str)],
) {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    for (second, (value, words)) in (0..).zip(looks) {
        let mut look = sweep(1);
        set(&mut look.gpus[0], *value);
        let seen = on(&mut watch, &Ok(look), &inventory(1), second * period);
        assert_eq!(signal_words(&seen.signals), *words, "look {second}: {value:?}");
        // What is remembered survives a restart of the agent at any time.
        let kept = serde_json::to_string(watch.memory()).unwrap();
        watch = GpuWatch::new(ON_THE_BUS, serde_json::from_str(&kept).unwrap());
    }
}

fn counts(volatile: u64) -> Option<Counts> {
    Some(Counts { volatile: Some(volatile), aggregate: Some(1_000 + volatile) })
}

#[test]
fn uncorrected_errors_are_told_at_once_even_those_of_before() {
    edges(
        |gpu, count| gpu.ecc_uncorrected = counts(count),
        &[
            (2, "EccDbe@0 ecc_dbe_count=2 ecc_dbe_total=2"),
            (2, ""),
            (3, "EccDbe@0 ecc_dbe_count=1 ecc_dbe_total=3"),
            // The driver was loaded anew: nothing is less than nothing.
            (0, ""),
            (1, "EccDbe@0 ecc_dbe_count=1 ecc_dbe_total=1"),
        ],
    );
}

#[test]
fn a_life_long_count_alone_begins_where_it_is_found() {
    let only_life = |count| Some(Counts { volatile: None, aggregate: Some(count) });
    edges(
        |gpu, count| gpu.ecc_uncorrected = only_life(count),
        &[(5, ""), (6, "EccDbe@0 ecc_dbe_count=1 ecc_dbe_total=6")],
    );
}

#[test]
fn corrected_errors_are_gathered() {
    let mut looks = vec![
        (50, ""),
        (51, "EccSbe@0 ecc_sbe_count=1 ecc_sbe_total=51"),
        (52, ""),
        (53, ""),
        // More than a hundred are told after a minute.
        (200, "EccSbe@0 ecc_sbe_count=149 ecc_sbe_total=200"),
        (0, ""),
        (7, ""),
    ];
    looks.extend([(7, ""); 17]);
    looks.push((7, "EccSbe@0 ecc_sbe_count=7 ecc_sbe_total=7"));
    edges(|gpu, count| gpu.ecc_corrected = counts(count), &looks);
}

#[test]
fn rows_that_are_replaced_or_cannot_be_are_told() {
    let rows = |(uncorrected, pending, failed)| {
        Some(RowRemaps { corrected: 0, uncorrected, pending, failed })
    };
    edges(
        |gpu, state| gpu.row_remaps = rows(state),
        &[
            ((1, false, false), ""),
            ((1, true, false), "Memory@0 row_remap_pending=1"),
            ((1, true, false), ""),
            ((2, false, false), "Memory@0 row_remaps_total=2"),
            ((2, true, true), "Memory@0 row_remap_failure=1, Memory@0 row_remap_pending=1"),
        ],
    );
    // What is so at the first look is told: nobody else has.
    edges(
        |gpu, state| gpu.row_remaps = rows(state),
        &[((0, false, true), "Memory@0 row_remap_failure=1")],
    );
}

#[test]
fn retired_pages_are_told_when_they_grow_or_are_many() {
    let pages = |(uncorrected, pending)| Some(RetiredPages { corrected: 0, uncorrected, pending });
    edges(
        |gpu, state| gpu.retired_pages = pages(state),
        &[
            ((3, false), ""),
            ((3, true), "Memory@0 retired_pages_pending=1"),
            ((4, false), "Memory@0 retired_pages_total=4"),
        ],
    );
    edges(
        |gpu, state| gpu.retired_pages = pages(state),
        &[((60, false), "Memory@0 retired_pages_total=60"), ((60, false), "")],
    );
}

#[test]
fn heat_is_told_when_it_begins_and_again_when_it_is_worse() {
    // It slows down at 89: warm from 85, hot from 89.
    edges(
        |gpu, celsius| gpu.temperature_celsius = Some(celsius),
        &[
            (84, ""),
            (85, "Thermal@0 temperature=85"),
            (81, ""),
            (86, ""),
            (89, "Thermal@0 temperature=89"),
            (85, ""),
            (90, ""),
            // Hot is over, and warm begins.
            (84, "Thermal@0 temperature=84"),
            (89, "Thermal@0 temperature=89"),
            (79, ""),
            (85, "Thermal@0 temperature=85"),
        ],
    );
    edges(
        |gpu, celsius| gpu.memory_temperature_celsius = Some(celsius),
        &[(94, ""), (95, "Thermal@0 memory_temperature=95"), (92, ""), (96, "")],
    );
}

#[test]
fn hardware_that_slows_down_six_times_in_ten_minutes_is_told() {
    let slow = |gpu: &mut Reading, reason: &str| gpu.throttle_reasons = vec![reason.to_owned()];
    let mut looks = vec![("HwThermalSlowdown", ""); 5];
    looks.push(("HwThermalSlowdown", "Thermal@0 temperature=40 throttle=HwThermalSlowdown"));
    looks.extend(vec![("HwThermalSlowdown", ""); 10]);
    edges(slow, &looks);
    let mut looks = vec![("HwPowerBrakeSlowdown", ""); 5];
    looks.push(("HwPowerBrakeSlowdown", "Power@0 temperature=40 throttle=HwPowerBrakeSlowdown"));
    edges(slow, &looks);
    edges(slow, &[("SwPowerCap", ""); 20]);
}

#[test]
fn r2_i15_hardware_that_slows_down_is_told_however_rarely_it_is_looked_at() {
    let slow = |gpu: &mut Reading, reason: &str| gpu.throttle_reasons = vec![reason.to_owned()];
    for period in [30, 60, 120, 125, 600, 3600] {
        let mut looks = vec![("HwThermalSlowdown", ""); 5];
        looks.push(("HwThermalSlowdown", "Thermal@0 temperature=40 throttle=HwThermalSlowdown"));
        looks.extend(vec![("HwThermalSlowdown", ""); 10]);
        edges_every(period, slow, &looks);
    }
    // Now and then is how a GPU protects itself: every third look is three in ten.
    for period in [125, 3600] {
        let now_and_then = [("HwThermalSlowdown", ""), ("", ""), ("", "")].repeat(8);
        edges_every(period, slow, &now_and_then);
    }
}

#[test]
fn r2_i23_as_many_errors_after_a_reboot_as_before_are_new_ones() {
    for (volatile, told) in [(true, "EccDbe@0 ecc_dbe_count=1 ecc_dbe_total=1"), (false, "")] {
        let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
        let look = |count: u64| {
            let mut look = sweep(1);
            let since_load = Counts { volatile: Some(count), aggregate: None };
            let life = Counts { volatile: None, aggregate: Some(count) };
            look.gpus[0].ecc_uncorrected = Some(if volatile { since_load } else { life });
            look.gpus[0].ecc_corrected = None;
            Ok(look)
        };
        on(&mut watch, &look(0), &inventory(1), 0);
        let before = on(&mut watch, &look(1), &inventory(1), 30);
        assert!(signal_words(&before.signals).starts_with("EccDbe"));
        let kept = serde_json::to_string(watch.memory()).unwrap();
        let mut watch = GpuWatch::new(ON_THE_BUS, serde_json::from_str(&kept).unwrap());
        watch.rebooted();
        let after = on(&mut watch, &look(1), &inventory(1), 600);
        assert_eq!(signal_words(&after.signals), told, "volatile: {volatile}");
    }
}

#[test]
fn links_that_go_down_are_told_and_links_to_nowhere_are_not() {
    let down = |gpu: &mut Reading, count| gpu.nvlinks_down = Some(count);
    edges(down, &[(0, ""), (2, "Nvlink@0 nvlinks_down=2"), (2, ""), (0, "")]);
    edges(down, &[(1, "Nvlink@0 nvlinks_down=1"), (3, "Nvlink@0 nvlinks_down=3")]);
    edges(down, &[(18, ""), (18, "")]);
}

#[test]
fn errors_of_links_are_told_above_what_is_usual() {
    let errors = |gpu: &mut Reading, (kind, count): (&str, u64)| {
        gpu.nvlink_errors = [(kind.to_owned(), count)].into();
    };
    edges(
        errors,
        &[
            (("replay", 9), ""),
            (("replay", 10), "Nvlink@0 nvlink_errors=1 nvlink_replay_total=10"),
            (("replay", 12), ""),
        ],
    );
    edges(
        errors,
        &[
            (("crc_flit", 0), ""),
            (("crc_flit", 3_000), ""),
            (("crc_flit", 6_001), "Nvlink@0 nvlink_crc_flit_total=6001 nvlink_errors=3001"),
        ],
    );
}

#[test]
fn replays_on_the_bus_are_told_above_eight_a_minute() {
    let replays = |gpu: &mut Reading, count| gpu.pcie_replays = Some(count);
    edges(replays, &[(100, ""), (104, ""), (108, ""), (112, ""), (116, "")]);
    edges(
        replays,
        &[(0, ""), (9, "Pcie@0 pcie_replays=9 pcie_replays_total=9"), (30, ""), (90, "")],
    );
    edges(replays, &[(50, ""), (3, ""), (20, "Pcie@0 pcie_replays=20 pcie_replays_total=20")]);
    edges_every(
        600,
        replays,
        &[(0, ""), (70, ""), (160, "Pcie@0 pcie_replays=90 pcie_replays_total=160")],
    );
}

#[test]
fn a_bus_below_its_best_is_told_if_it_stays_so_under_load() {
    let bus = |gpu: &mut Reading, (width, generation, busy)| {
        gpu.pcie_width = Some(width);
        gpu.pcie_generation = Some(generation);
        gpu.utilization_percent = Some(busy);
    };
    let narrow = (8, 5, 0);
    edges(
        bus,
        &[
            (narrow, ""),
            (narrow, ""),
            (narrow, "Pcie@0 pcie_generation=5 pcie_width=8"),
            (narrow, ""),
            ((16, 5, 0), ""),
        ],
    );
    // An idle bus rests; a busy one does not.
    edges(bus, &[((16, 1, 0), ""); 5]);
    let slow = (16, 3, 99);
    edges(bus, &[(slow, ""), (slow, ""), (slow, "Pcie@0 pcie_generation=3 pcie_width=16")]);
}

#[test]
fn what_the_driver_asks_for_is_told_when_it_changes() {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    let rows = [
        (Some(0), ""),
        (Some(1), "DriverError@0 reason=RecoveryAction recovery_action=gpu-reset"),
        (Some(1), ""),
        (Some(4), "DriverError@0 reason=RecoveryAction recovery_action=drain-and-reset"),
        (Some(99), "DriverError@0 reason=RecoveryAction recovery_action=unknown"),
        (Some(0), ""),
        (None, ""),
    ];
    for (second, (action, words)) in (0..).zip(rows) {
        let mut look = sweep(1);
        look.gpus[0].recovery_action = action;
        let seen = on(&mut watch, &Ok(look), &inventory(1), second * 30);
        assert_eq!(signal_words(&seen.signals), words, "look {second}");
        assert!(seen.signals.iter().all(|signal| signal.recovery_action == action));
        assert_eq!(watch.recovery_action("GPU-0"), action);
    }
}

#[test]
fn a_reboot_makes_states_news_again_and_keeps_the_count() {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    let mut pending = sweep(8);
    pending.gpus[0].row_remaps = Some(RowRemaps { pending: true, ..RowRemaps::default() });
    let told = "Memory@0 row_remap_pending=1";
    assert_eq!(signal_words(&on(&mut watch, &Ok(pending.clone()), &inventory(8), 0).signals), told);
    assert_eq!(signal_words(&on(&mut watch, &Ok(pending.clone()), &inventory(8), 30).signals), "");
    watch.rebooted();
    assert_eq!(signal_words(&on(&mut watch, &Ok(pending), &inventory(8), 60).signals), told);
    watch.rebooted();
    let seen = on(&mut watch, &Ok(sweep(7)), &inventory(7), 90);
    assert_eq!(check_words(&seen), "boot Unhealthy GpuMissing, nvml Unhealthy GpuMissing");
}

#[test]
fn names_that_change_with_every_look_do_not_fill_the_memory() {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    for round in 0..40_u32 {
        let mut look = sweep(8);
        for gpu in &mut look.gpus {
            gpu.uuid = format!("GPU-{round}-{}", gpu.index);
        }
        on(&mut watch, &Ok(look), &inventory(8), i64::from(round) * 30);
        assert!(watch.memory().gpus.len() <= GPUS_MAX);
    }
}

#[test]
fn a_clock_that_is_set_back_silences_nothing() {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    let mut told = 0;
    for (second, count) in [(100_000, 0), (100_030, 1), (0, 2)] {
        let mut look = sweep(1);
        look.gpus[0].ecc_corrected = counts(count);
        told += on(&mut watch, &Ok(look), &inventory(1), second).signals.len();
    }
    assert_eq!(told, 2);
    on(&mut watch, &driver("DRIVER_NOT_LOADED"), &inventory(1), 100_000);
    let seen = on(&mut watch, &driver("DRIVER_NOT_LOADED"), &inventory(1), 0);
    assert_eq!(seen.checks[1].reason, "DriverError");
}

proptest::proptest! {
    /// Whatever a driver says, in whatever order: the watch goes on, says one word for each check, and
    /// forgets what it must.
    #[test]
    fn no_sweep_can_hurt_the_watch(
        looks in proptest::collection::vec(
            (0..=9_u32, proptest::num::u64::ANY, proptest::num::u32::ANY, -5_000..5_000_i64),
            1..40,
        ),
    ) {
        let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
        for (count, large, small, second) in looks {
            let mut look = sweep(count);
            for gpu in &mut look.gpus {
                gpu.ecc_corrected = counts(large / 2);
                gpu.ecc_uncorrected = counts(large / 3);
                gpu.nvlink_errors = [("replay".to_owned(), large), ("crc_data".to_owned(), large)].into();
                gpu.pcie_replays = Some(small);
                gpu.temperature_celsius = Some(small);
                gpu.nvlinks_down = Some(small);
                gpu.pcie_width = Some(small);
                gpu.recovery_action = Some(small % 12);
                gpu.index = small % 16;
            }
            let look = if small % 7 == 0 { hung() } else { Ok(look) };
            let seen = on(&mut watch, &look, &inventory(8), second);
            let names: Vec<&str> = seen.checks.iter().map(|check| check.check.as_str()).collect();
            proptest::prop_assert_eq!(names, ["boot", "nvml"]);
            proptest::prop_assert!(seen.signals.len() <= 9 * 12);
            proptest::prop_assert!(watch.memory().gpus.len() <= GPUS_MAX);
        }
    }
}

/// What holds and what is over of GPU 0, as words; what nothing is said of is not there.
fn standing(seen: &Seen) -> (String, String) {
    let words = |holds: bool| {
        let of = seen.conditions.iter().filter(|it| it.gpu == "GPU-0" && it.holds == holds);
        of.map(|it| it.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    (words(true), words(false))
}

#[test]
fn r2_n17_r2_n31_conditions_are_said_for_as_long_as_they_hold_and_when_they_are_over() {
    let mut watch = GpuWatch::new(ON_THE_BUS, Memory::default());
    let mut holds = |second: i64, change: fn(&mut Reading)| {
        let mut look = sweep(8);
        change(&mut look.gpus[0]);
        let seen = on(&mut watch, &Ok(look), &inventory(8), second);
        let begun = seen.signals.iter().map(|signal| signal.condition.clone()).collect::<Vec<_>>();
        (standing(&seen).0, begun.join(" "))
    };
    let row = |holding: &str, begun: &str| (holding.to_owned(), begun.to_owned());
    assert_eq!(holds(0, |_| {}), row("", ""));
    assert_eq!(
        holds(60, |gpu| gpu.temperature_celsius = Some(96)),
        row("temperature-hot", "temperature-hot")
    );
    assert_eq!(holds(120, |gpu| gpu.temperature_celsius = Some(96)), row("temperature-hot", ""));
    // Cooler and not cool: one condition is over, and the other begins.
    assert_eq!(
        holds(180, |gpu| gpu.temperature_celsius = Some(84)),
        row("temperature", "temperature")
    );
    assert_eq!(holds(240, |_| {}), row("", ""));
    let advice = |gpu: &mut Reading| gpu.recovery_action = Some(1);
    assert_eq!(holds(300, advice), row("recovery", "recovery"));
    assert_eq!(holds(360, advice), row("recovery", ""));
    assert_eq!(holds(420, |_| {}), row("", ""));
    let links = |gpu: &mut Reading| gpu.nvlinks_down = Some(2);
    assert_eq!(holds(480, links), row("nvlinks_down", "nvlinks_down"));
    assert_eq!(holds(540, links), row("nvlinks_down", ""));
    // A driver that is not asked, or does not answer, has taken nothing back.
    let mut look = sweep(8);
    look.gpus[0].recovery_action = None;
    let seen = on(&mut watch, &Ok(look), &inventory(8), 600);
    assert!(!standing(&seen).1.contains("recovery"), "{seen:?}");
    assert!(on(&mut watch, &hung(), &inventory(8), 660).conditions.is_empty());
}
