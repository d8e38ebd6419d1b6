use super::*;
use crate::gpu::{Counts, Nvlink, RetiredPages, RowRemaps};

fn identity(index: u32) -> GpuIdentity {
    GpuIdentity {
        index,
        uuid: format!("GPU-{index}"),
        name: "NVIDIA H200".to_owned(),
        pcie_width_max: Some(16),
        slowdown_celsius: Some(90),
        ecc_enabled: Some(true),
        nvlinks: (0..18)
            .map(|link| Nvlink { link, active: link < 15, ..Nvlink::default() })
            .collect(),
        ..GpuIdentity::default()
    }
}

fn reading(index: u32) -> Reading {
    Reading {
        index,
        uuid: format!("GPU-{index}"),
        utilization_percent: Some(0),
        temperature_celsius: Some(40),
        sm_clock_mhz: Some(345),
        pcie_width: Some(16),
        pcie_generation: Some(1),
        throttle_reasons: vec!["GpuIdle".to_owned()],
        ecc_corrected: Some(Counts { volatile: Some(0), aggregate: Some(3) }),
        ecc_uncorrected: Some(Counts { volatile: Some(0), aggregate: Some(1) }),
        row_remaps: Some(RowRemaps::default()),
        nvlinks_down: Some(0),
        recovery_action: Some(0),
        ..Reading::default()
    }
}

/// The verdict on one GPU whose reading was changed.
fn one(change: impl FnOnce(&mut Reading)) -> Diagnosis {
    let mut reading = reading(0);
    change(&mut reading);
    let inventory = Inventory { gpus: vec![identity(0)], ..Inventory::default() };
    let sweep = Sweep { count: 1, gpus: vec![reading], ..Sweep::default() };
    judge(&inventory, &sweep, None)
}

#[test]
fn a_gpu_that_rests_is_well() {
    let found = one(|_| {});
    assert!(found.passed, "{found:?}");
    assert_eq!(found.gpus[0].figures["pcie_width"], 16.0);
}

#[test]
fn each_fault_the_driver_tells_fails_the_gpu() {
    let check = |change: fn(&mut Reading), said: &str| {
        let found = one(change);
        assert!(!found.passed, "{said}");
        assert!(found.gpus[0].message.contains(said), "{}", found.gpus[0].message);
    };
    let counts = |reading: &mut Reading| {
        reading.ecc_uncorrected = Some(Counts { volatile: Some(2), aggregate: None });
    };
    check(counts, "2 uncorrected ECC errors");
    check(
        |reading| reading.row_remaps.as_mut().unwrap().pending = true,
        "a row remap waits for a reset",
    );
    check(|reading| reading.row_remaps.as_mut().unwrap().failed = true, "no spare is left");
    let pages = |reading: &mut Reading| {
        reading.retired_pages = Some(RetiredPages { pending: true, ..RetiredPages::default() });
    };
    check(pages, "a page retirement waits");
    check(|reading| reading.nvlinks_down = Some(3), "3 NVLinks are down");
    check(|reading| reading.recovery_action = Some(1), "the driver wants a reset of the GPU");
    check(
        |reading| reading.recovery_action = Some(99),
        "something we do not know (recovery action 99)",
    );
    check(|reading| reading.temperature_celsius = Some(88), "88 °C hot; it slows down at 90 °C");
    let hot = |reading: &mut Reading| reading.throttle_reasons.push("HwThermalSlowdown".to_owned());
    check(hot, "held back: HwThermalSlowdown");
    let narrow = |reading: &mut Reading| {
        reading.pcie_width = Some(8);
        reading.utilization_percent = Some(90);
    };
    check(narrow, "the bus has 8 of 16 lanes");
}

#[test]
fn what_is_no_fault_is_noted() {
    let check = |change: fn(&mut Reading), said: &str| {
        let found = one(change);
        assert!(found.passed, "{said}: {found:?}");
        assert!(found.gpus[0].message.contains(said), "{}", found.gpus[0].message);
    };
    check(
        |reading| reading.pcie_width = Some(8),
        "8 of 16 lanes while idle: look again under load",
    );
    let corrected = |reading: &mut Reading| {
        reading.ecc_corrected = Some(Counts { volatile: Some(5), aggregate: Some(5) });
    };
    check(corrected, "5 corrected ECC errors");
    // A driver that says little is not a fault.
    check(
        |reading| *reading = Reading { uuid: "GPU-0".to_owned(), ..Reading::default() },
        "are well",
    );
}

#[test]
fn a_gpu_that_was_given_away_alone_has_no_links_to_miss() {
    let check = |gpus: u32, up: bool, passed: bool| {
        let links = [Nvlink { active: up, ..Nvlink::default() }, Nvlink::default()];
        let identities = (0..gpus)
            .map(|index| GpuIdentity { nvlinks: links.to_vec(), ..identity(index) })
            .collect();
        let inventory = Inventory { gpus: identities, ..Inventory::default() };
        let readings =
            (0..gpus).map(|index| Reading { nvlinks_down: Some(1), ..reading(index) }).collect();
        let sweep = Sweep { count: gpus, gpus: readings, ..Sweep::default() };
        assert_eq!(judge(&inventory, &sweep, None).passed, passed, "{gpus} GPUs, one up: {up}");
    };
    check(1, false, true);
    check(1, true, false);
    check(2, false, false);
}

#[test]
fn gpus_that_are_missing_or_mute_are_problems_of_the_machine() {
    let inventory = Inventory { gpus: vec![identity(0), identity(1)], ..Inventory::default() };
    let check = |sweep: Sweep, only: Option<u32>, expected: &[&str]| {
        let found = judge(&inventory, &sweep, only);
        assert_eq!(found.problems, expected);
        assert_eq!(found.passed, expected.is_empty());
    };
    let sweep = |count: u32, gpus: &[u32], mute: &[u32]| Sweep {
        count,
        gpus: gpus.iter().map(|index| reading(*index)).collect(),
        unreadable: mute.iter().map(|index| (*index, "GPU_IS_LOST".to_owned())).collect(),
        ..Sweep::default()
    };
    check(sweep(2, &[0, 1], &[]), None, &[]);
    check(
        sweep(1, &[0], &[]),
        None,
        &["there were 2 GPUs, and now the driver counts 1", "GPU 1 (GPU-1) is gone"],
    );
    check(sweep(2, &[0], &[1]), None, &["GPU 1 cannot be read: GPU_IS_LOST"]);
    check(sweep(2, &[0], &[1]), Some(0), &[]);
    check(sweep(2, &[0], &[1]), Some(1), &["GPU 1 cannot be read: GPU_IS_LOST"]);
    check(sweep(2, &[0, 1], &[]), Some(5), &["there is no GPU 5; there are 2, counted from 0"]);
    let nothing = judge(&Inventory::default(), &Sweep::default(), None);
    assert_eq!(
        (nothing.passed, nothing.problems.as_slice()),
        (false, ["there is no GPU".to_owned()].as_slice())
    );
}
