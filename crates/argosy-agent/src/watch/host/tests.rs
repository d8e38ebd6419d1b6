use super::HostWatch;
use crate::check::Word;
use crate::gpu::{GpuIdentity, Inventory};
use crate::host::{Blocked, Disk, HostError, HostSample, Link, Memory, PciDevice, Port};
use argosy_core::pci::PciAddress;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What one look says: the word, its reason, and the words of the signals.
fn told(watch: &mut HostWatch, sample: &HostSample) -> String {
    let (outcome, signals) = watch.on(sample);
    let word = match outcome.word {
        Word::Healthy => "healthy",
        Word::Degraded => "degraded",
        Word::Unhealthy => "unhealthy",
    };
    let mut told = word.to_owned();
    if !outcome.reason.is_empty() {
        told.push_str(&format!(" {}", outcome.reason));
    }
    for signal in signals {
        let word =
            signal.metrics.get("signal").cloned().unwrap_or_else(|| format!("{:?}", signal.kind));
        told.push_str(&format!(" +{word}"));
    }
    told
}

/// Looks at one thing, second by second.
#[track_caller]
fn check(rows: &[(i64, &str)], mut sample: impl FnMut(i64, &mut HostSample)) {
    let mut watch = HostWatch::default();
    for (second, expected) in rows {
        let mut seen = HostSample::empty(Timestamp::from_second(*second).unwrap());
        sample(*second, &mut seen);
        assert_eq!(told(&mut watch, &seen), *expected, "at second {second}");
    }
}

fn disk(used_percent: f64, read_only: bool) -> Disk {
    Disk {
        mount: "/data".into(),
        device: "/dev/md0".into(),
        filesystem: "xfs".into(),
        total_bytes: Some(1 << 40),
        available_bytes: None,
        used_percent: Some(used_percent),
        files_used_percent: Some(1.0),
        read_only,
    }
}

#[test]
fn a_machine_of_which_nothing_is_known_is_not_sick() {
    check(&[(0, "healthy"), (60, "healthy")], |_, _| {});
}

#[test]
fn a_disk_that_fills_is_told_of_at_each_step() {
    let used = BTreeMap::from([
        (0, 84.9),
        (1, 85.0),
        (2, 84.0),
        (3, 85.0),
        (4, 95.0),
        (5, 93.5),
        (6, 92.9),
        (7, 82.9),
        (8, 99.0),
    ]);
    check(
        &[
            (0, "healthy"),
            (1, "degraded DiskFull +disk-full"),
            (2, "degraded DiskFull"),
            (3, "degraded DiskFull"),
            (4, "unhealthy DiskFull +disk-full"),
            (5, "unhealthy DiskFull"),
            (6, "degraded DiskFull"),
            (7, "healthy"),
            (8, "unhealthy DiskFull +disk-full"),
        ],
        |second, sample| sample.disks.push(disk(used[&second], false)),
    );
}

#[test]
fn a_full_boot_partition_is_no_news_and_a_full_table_of_files_is() {
    check(&[(0, "healthy")], |_, sample| {
        sample.disks.push(Disk { total_bytes: Some(1 << 30), ..disk(99.0, false) });
    });
    check(&[(0, "unhealthy DiskFull +disk-full")], |_, sample| {
        sample.disks.push(Disk { files_used_percent: Some(100.0), ..disk(10.0, false) });
    });
}

#[test]
fn a_file_system_that_could_be_written_to_and_cannot_any_more_is_sick() {
    check(
        &[
            (0, "healthy"),
            (1, "unhealthy FilesystemReadOnly +filesystem-read-only"),
            (2, "unhealthy FilesystemReadOnly"),
            (3, "healthy"),
        ],
        |second, sample| sample.disks.push(disk(10.0, second == 1 || second == 2)),
    );
    // One that was mounted for reading is as somebody wanted it.
    check(&[(0, "healthy"), (1, "healthy")], |_, sample| sample.disks.push(disk(100.0, true)));
}

#[test]
fn memory_that_runs_out_is_told_of_once() {
    let left = [10_u64, 1, 3, 5, 1];
    check(
        &[
            (0, "healthy"),
            (1, "degraded MemoryLow +memory-low"),
            (2, "degraded MemoryLow"),
            (3, "healthy"),
            (4, "degraded MemoryLow +memory-low"),
        ],
        |second, sample| {
            sample.memory = Some(Memory {
                total_bytes: 100,
                available_bytes: left[usize::try_from(second).unwrap()],
                swap_total_bytes: 0,
                swap_free_bytes: 0,
            });
        },
    );
    check(&[(0, "healthy")], |_, sample| {
        let (total_bytes, available_bytes) = (0, 0);
        sample.memory =
            Some(Memory { total_bytes, available_bytes, swap_total_bytes: 0, swap_free_bytes: 0 });
    });
}

fn link(up: bool, errors: u64) -> Link {
    Link {
        name: "eth0".into(),
        up: Some(up),
        speed_mbps: None,
        carrier_changes: None,
        received_bytes: None,
        sent_bytes: None,
        receive_errors: Some(errors),
        send_errors: None,
    }
}

#[test]
fn a_network_link_that_was_up_may_be_down_for_a_minute() {
    check(
        &[
            (0, "healthy"),
            (10, "healthy"),
            (69, "healthy"),
            (70, "degraded NetworkDown +network-down"),
            (80, "degraded NetworkDown"),
            (90, "healthy"),
        ],
        |second, sample| sample.links.push(link(second == 0 || second == 90, 0)),
    );
    check(&[(0, "healthy"), (600, "healthy")], |_, sample| sample.links.push(link(false, 0)));
}

#[test]
fn errors_on_a_network_link_count_by_their_rate() {
    let errors = BTreeMap::from([
        (0, 5000),
        (10, 5100),
        (20, 5201),
        (30, 5201),
        (619, 5201),
        (620, 5201),
        (630, 3),
    ]);
    check(
        &[
            (0, "healthy"),
            (10, "healthy"),
            (20, "degraded NetworkErrors +network-errors"),
            (30, "degraded NetworkErrors"),
            (619, "degraded NetworkErrors"),
            (620, "healthy"),
            (630, "healthy"),
        ],
        |second, sample| sample.links.push(link(true, errors[&second])),
    );
}

fn port(active: bool, rate: f64, counters: &[(&str, u64)]) -> Port {
    Port {
        device: "mlx5_0".into(),
        port: 1,
        active: Some(active),
        rate_gbps: Some(rate),
        counters: counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        ..Port::default()
    }
}

#[test]
fn a_port_that_is_down_for_four_minutes_is_sick() {
    check(
        &[
            (0, "healthy"),
            (60, "healthy"),
            (299, "healthy"),
            (300, "unhealthy InfinibandDown +infiniband-down"),
            (360, "unhealthy InfinibandDown"),
            (420, "degraded InfinibandRecovered"),
            (1019, "degraded InfinibandRecovered"),
            (1020, "healthy"),
        ],
        |second, sample| {
            sample.ports.push(port(!(60..420).contains(&second), 400.0, &[]));
        },
    );
    // One without a cable never was up; one that vanishes is down.
    check(&[(0, "healthy"), (900, "healthy")], |_, sample| {
        sample.ports.push(port(false, 10.0, &[]))
    });
    check(
        &[(0, "healthy"), (60, "healthy"), (300, "unhealthy InfinibandDown +infiniband-down")],
        |second, sample| {
            if second == 0 {
                sample.ports.push(port(true, 400.0, &[]));
            }
        },
    );
}

#[test]
fn a_part_of_a_device_that_vanishes_was_taken_away() {
    check(&[(0, "healthy"), (60, "healthy"), (600, "healthy")], |second, sample| {
        if second == 0 {
            sample.ports.push(Port { is_virtual: true, ..port(true, 400.0, &[]) });
        }
    });
}

#[test]
fn a_network_link_that_comes_and_goes_is_told_of() {
    let changes =
        BTreeMap::from([(0, 11), (60, 13), (120, 14), (180, 14), (719, 14), (720, 14), (780, 2)]);
    check(
        &[
            (0, "healthy"),
            (60, "healthy"),
            (120, "degraded NetworkFlap +network-flap"),
            (180, "degraded NetworkFlap"),
            (719, "degraded NetworkFlap"),
            (720, "healthy"),
            (780, "healthy"),
        ],
        |second, sample| {
            sample.links.push(Link { carrier_changes: Some(changes[&second]), ..link(true, 0) });
        },
    );
}

#[test]
fn three_flaps_are_a_fault_and_blinks_are_none() {
    // Down at the start of every other minute, from the second on.
    let flaps = |down_s: i64| move |second: i64| second % 120 < down_s && 120 <= second;
    let rows: Vec<i64> = (0..=420).step_by(5).collect();
    let run = |is_down: &dyn Fn(i64) -> bool| {
        let mut watch = HostWatch::default();
        let tell = |second: &i64| {
            let mut sample = HostSample::empty(Timestamp::from_second(*second).unwrap());
            sample.ports.push(port(!is_down(*second), 400.0, &[]));
            told(&mut watch, &sample)
        };
        rows.iter().map(tell).collect::<Vec<String>>()
    };
    let blinks = run(&flaps(20));
    assert!(blinks.iter().all(|told| told == "healthy"), "{blinks:?}");
    let flapping = run(&flaps(30));
    let first = flapping.iter().position(|told| told != "healthy").unwrap();
    assert_eq!(
        (rows[first], flapping[first].as_str()),
        (390, "degraded InfinibandFlap +infiniband-flap")
    );
    assert!(flapping[first + 1..].iter().all(|told| told == "degraded InfinibandFlap"));
}

#[test]
fn a_port_that_runs_slower_than_before_is_told_of() {
    let rate = BTreeMap::from([(0, 400.0), (1, 200.0), (2, 200.0), (3, 400.0)]);
    check(
        &[
            (0, "healthy"),
            (1, "degraded InfinibandSlow +infiniband-slow"),
            (2, "degraded InfinibandSlow"),
            (3, "healthy"),
        ],
        |second, sample| sample.ports.push(port(true, rate[&second], &[])),
    );
}

#[test]
fn counters_of_a_port_are_compared_with_what_a_good_link_does() {
    let check = |counter: &str, values: &[(i64, u64)], expected: &[&str]| {
        let rows: Vec<(i64, &str)> =
            values.iter().zip(expected).map(|((second, _), told)| (*second, *told)).collect();
        let values: BTreeMap<i64, u64> = values.iter().copied().collect();
        check(&rows, |second, sample| {
            sample.ports.push(port(true, 400.0, &[(counter, values[&second])]));
        });
    };
    let (well, bad) = ("healthy", "degraded InfinibandErrors");
    let began = "degraded InfinibandErrors +infiniband-errors";
    // What was counted before we came is not ours.
    check(
        "link_downed",
        &[(0, 7), (60, 7), (120, 8), (180, 9), (779, 9), (780, 9)],
        &[well, well, began, bad, bad, well],
    );
    // Reset, and it grows again.
    check("rnr_nak_retry_err", &[(0, 7), (60, 0), (120, 1)], &[well, well, began]);
    check("port_rcv_errors", &[(0, 0), (60, 600), (120, 1201)], &[well, well, began]);
    check("port_xmit_discards", &[(0, 0), (1, 100), (2, 201)], &[well, well, began]);
    check("symbol_error", &[(0, 0), (60, 60), (120, 120), (180, 121)], &[well, well, well, began]);
    check("symbol_error", &[(0, 0), (3600, 120), (7200, 240)], &[well, well, well]);
    check("link_error_recovery", &[(0, 0), (60, 5), (90, 11)], &[well, well, began]);
    check("a_counter_nobody_knows", &[(0, 0), (1, 1_000_000)], &[well, well]);
}

#[test]
fn a_program_is_stuck_when_it_waits_for_five_minutes_without_working() {
    let waiting = |second: i64, worked_ticks: u64| Blocked {
        pid: 7,
        name: "nvidia-smi".into(),
        started_ticks: if second < 900 { 1 } else { 2 },
        worked_ticks,
    };
    check(
        &[
            (0, "healthy"),
            (299, "healthy"),
            (300, "degraded ProcessBlocked +blocked-task"),
            (360, "degraded ProcessBlocked"),
            (900, "healthy"),
        ],
        |second, sample| sample.blocked.push(waiting(second, 5)),
    );
    check(&[(0, "healthy"), (400, "healthy"), (699, "healthy")], |second, sample| {
        sample.blocked.push(waiting(0, if second == 0 { 5 } else { 6 }));
    });
}

fn gpu(width: u32, awake: bool) -> PciDevice {
    PciDevice {
        address: PciAddress::parse("0000:18:00.0").unwrap(),
        class: 0x03_0200,
        device: None,
        driver: None,
        awake: Some(awake),
        width: Some(width),
        width_max: Some(16),
        aer: None,
    }
}

#[test]
fn a_link_that_is_narrow_twice_in_a_row_is_told_of() {
    let width = [16, 8, 16, 8, 8, 8, 16];
    check(
        &[
            (0, "healthy"),
            (1, "healthy"),
            (2, "healthy"),
            (3, "healthy"),
            (4, "degraded LinkNarrow +Pcie"),
            (5, "degraded LinkNarrow"),
            (6, "healthy"),
        ],
        |second, sample| sample.nvidia.push(gpu(width[usize::try_from(second).unwrap()], true)),
    );
    check(&[(0, "healthy"), (1, "healthy")], |_, sample| sample.nvidia.push(gpu(8, false)));
    let mut watch = HostWatch::default();
    let listed = GpuIdentity {
        index: 2,
        uuid: "GPU-2".into(),
        pci_bus_id: "00000000:18:00.0".into(),
        ..GpuIdentity::default()
    };
    watch.learn(&Inventory { gpus: vec![listed], ..Inventory::default() });
    let mut sample = HostSample::empty(Timestamp::UNIX_EPOCH);
    sample.nvidia.push(gpu(8, true));
    watch.on(&sample);
    assert_eq!(
        told(&mut watch, &sample),
        "degraded LinkNarrow",
        "the sweep of it gives the signal"
    );
}

#[test]
fn a_clock_that_nobody_keeps_right_is_told_of_after_a_while() {
    check(
        &[
            (599, "healthy"),
            (600, "degraded ClockUnsynchronised +clock-unsynchronised"),
            (601, "degraded ClockUnsynchronised"),
        ],
        |second, sample| {
            sample.uptime_s = u64::try_from(second).ok();
            sample.clock_synchronised = Some(false);
        },
    );
    check(&[(900, "healthy")], |_, sample| {
        (sample.uptime_s, sample.clock_synchronised) = (Some(900), None);
    });
}

#[test]
fn the_worst_finding_gives_the_word_and_the_others_are_told() {
    let mut watch = HostWatch::default();
    let mut sample = HostSample::empty(Timestamp::UNIX_EPOCH);
    sample.disks = vec![Disk { mount: "/".into(), ..disk(86.0, false) }, disk(96.0, false)];
    let (outcome, _) = watch.on(&sample);
    assert_eq!((outcome.word, outcome.reason.as_str()), (Word::Unhealthy, "DiskFull"));
    assert_eq!(outcome.message, "/data is 96 % full; / is 86 % full");
    assert_eq!(outcome.details["findings"], "2");
    let hung = watch.failed(&HostError::Hung { since: Timestamp::UNIX_EPOCH });
    assert_eq!((hung.word, hung.reason.as_str()), (Word::Degraded, "HostHung"));
}
