use super::quota::{Allowance, Quota, Spend};
use super::{GpuSample, Moment, Pulse, PulseBoard, Sample, history::POINTS_MAX};
use argosy_core::node::NodeId;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

fn moment(ms: u64) -> Moment {
    let wall = Timestamp::UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap();
    Moment { wall, monotonic: Duration::from_millis(ms) }
}

#[test]
fn j18_what_cannot_be_true_was_not_measured() {
    let gpu = |utilization: f32, temperature: i16| GpuSample {
        index: 0,
        temperature: Some(temperature),
        power: Some(300),
        utilization: Some(utilization),
        memory_used: Some(1),
        ..GpuSample::default()
    };
    let unknown = GpuSample { temperature: None, utilization: None, ..gpu(0.0, 0) };
    let (kept, refused) = Sample {
        cpu_percent: Some(f32::NAN),
        memory_percent: Some(100.4),
        gpus: vec![gpu(99.5, 40), gpu(f32::INFINITY, 999), gpu(-1.0, -300), gpu(1e30, 0)],
        pending_jobs: Some(u32::MAX),
        queue_depth: Some(7),
    }
    .plausible();
    assert_eq!(refused, 7);
    assert_eq!((kept.cpu_percent, kept.memory_percent), (None, Some(100.4)));
    assert_eq!(
        kept.gpus,
        [gpu(99.5, 40), unknown, unknown, GpuSample { utilization: None, ..gpu(0.0, 0) }]
    );
    assert_eq!((kept.pending_jobs, kept.queue_depth), (None, Some(7)));
    let absurd = GpuSample { power: Some(u16::MAX), memory_used: Some(1 << 63), ..gpu(1.0, 1) };
    let (kept, refused) =
        Sample { gpus: vec![absurd; 70], cpu_percent: Some(-0.0), ..Sample::default() }.plausible();
    assert_eq!((kept.gpus.len(), refused), (64, 64 * 2 + 6));
    assert_eq!((kept.gpus[0].power, kept.gpus[0].memory_used), (None, None));
    assert!(kept.cpu_percent.unwrap().is_sign_positive());
}

#[test]
fn o7_a_bucket_fills_up_by_itself() {
    let allowance = Allowance { per_second: 20, burst: 500 };
    let mut quota = Quota::default();
    let mut spend = |events, ms| quota.spend(events, allowance, Duration::from_millis(ms));
    assert_eq!(spend(0, 0), Spend::All { calm: true });
    assert_eq!(spend(400, 0), Spend::All { calm: true });
    assert_eq!(spend(100, 0), Spend::All { calm: false });
    assert_eq!(spend(1, 0), Spend::None);
    assert_eq!(spend(1, 49), Spend::None);
    assert_eq!(spend(1, 50), Spend::All { calm: false });
    assert_eq!(spend(100, 1050), Spend::Some);
    assert_eq!(spend(1, 1050), Spend::None);
    assert_eq!(spend(20, 2050), Spend::All { calm: false });
    assert_eq!(spend(500, 1_000_000), Spend::All { calm: true });
    assert_eq!(spend(501, 2_000_000), Spend::Some, "more than the bucket holds");
}

#[test]
fn e1_a_clock_is_off_after_three_beats_in_a_row_and_right_after_three() {
    let pulse = Pulse::default();
    let hour = SignedDuration::from_hours(1);
    let mut changes = String::new();
    for letter in "xx.xxxxx.x..xx....xxx".chars() {
        let change = pulse.clock_was(hour, letter == 'x');
        changes.push(match change {
            None => '-',
            Some(true) => 'R',
            Some(false) => 'L',
        });
        change.into_iter().for_each(|skewed| pulse.set_skewed(skewed));
    }
    assert_eq!(changes, "-----R----------L---R");
    assert_eq!(pulse.clock_off(), hour);
    // Whoever could not be told is told again; until then its clock counts as right.
    pulse.set_skewed(false);
    assert_eq!(pulse.clock_off(), SignedDuration::ZERO);
    assert_eq!(pulse.clock_was(hour, true), Some(true));
}

#[test]
fn o1_measurements_are_kept_once_a_second_and_history_is_an_hour() {
    let pulse = Pulse::default();
    let kept: Vec<u64> =
        (0..40).map(|n| n * 100).filter(|ms| pulse.may_measure(moment(*ms))).collect();
    assert_eq!(kept, [0, 1000, 2000, 3000]);
    for second in 0..2 * 3600 {
        pulse.measured(moment(second * 1000), Sample::default());
    }
    let history = pulse.history();
    assert_eq!(history.len(), POINTS_MAX);
    let span = history.last().unwrap().at_s - history.first().unwrap().at_s;
    assert!(3300 < span, "{span} s");
}

#[test]
fn beats_are_counted_by_the_second() {
    let board = PulseBoard::default();
    let counts: Vec<u64> =
        [0, 1, 999, 1000, 1001, 5000].map(|ms| board.count_beat(moment(ms))).to_vec();
    assert_eq!(counts, [1, 2, 3, 1, 2, 1]);
}

#[test]
fn a_node_is_on_the_board_from_its_admission_until_it_is_removed() {
    let board = PulseBoard::default();
    let node = NodeId::parse("a").unwrap();
    assert!(board.find("a").is_none());
    let pulse = board.admit(&node);
    assert_eq!(pulse.quiet_for(Duration::from_secs(9)), None);
    pulse.touch(moment(2000));
    assert_eq!(board.admit(&node).quiet_for(Duration::from_secs(9)), Some(Duration::from_secs(7)));
    assert_eq!(board.live("a").heard_at, Some(moment(2000).wall));
    board.remove("a");
    assert!(board.find("a").is_none());
}
