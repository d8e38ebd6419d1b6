use super::Workload;
use crate::dice::Dice;
use crate::outcome::Work;
use crate::scenario;
use jiff::SignedDuration;
use proptest::prelude::*;

fn job(gpus: u32, work: Option<i64>, every: i64, checkpoint: i64, restart: i64) -> scenario::Job {
    scenario::Job {
        name: "job".to_owned(),
        count: 1,
        gpus,
        work: work.map(SignedDuration::from_secs),
        checkpoint_every: SignedDuration::from_secs(every),
        checkpoint: SignedDuration::from_secs(checkpoint),
        restart: SignedDuration::from_secs(restart),
    }
}

fn workload(jobs: Vec<scenario::Job>) -> Workload {
    Workload::new(&scenario::Workload { jobs })
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// Plays lines like `0 up a 8`, `100 down a hbm`, `100 drained a sick`, `100 closed a`, `100 interrupted a bug`, and the
/// time at the end; gives the sums in seconds of one GPU, so that numbers stay small.
fn play(jobs: Vec<scenario::Job>, story: &str, end: i64) -> (Workload, String) {
    let mut played = workload(jobs);
    for line in story.split(',').map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (at, node) = (seconds(words[0].parse().unwrap()), words[2]);
        match words[1] {
            "up" => played.node_up(at, node, words[3].parse().unwrap()),
            "down" => played.node_down(at, node, words[3]),
            "drained" => played.node_drained(at, node, words[3]),
            "closed" => played.node_closed(at, node),
            "interrupted" => played.interrupted(at, node, words[3]),
            other => panic!("{other}"),
        }
    }
    played.at(seconds(end));
    let Work { useful, redone, waited, overhead, interruptions, .. } = played.work();
    let line = format!(
        "useful {useful} redone {redone} waited {waited} overhead {overhead} times {interruptions}"
    );
    (played, line)
}

fn check(jobs: Vec<scenario::Job>, story: &str, end: i64, expected: &str) {
    assert_eq!(play(jobs, story, end).1, expected, "{story}");
}

#[test]
fn an_ideal_run_loses_only_what_checkpoints_take() {
    // Of each 110 seconds ten are spent writing.
    check(
        vec![job(1, None, 100, 10, 60)],
        "0 up a 1",
        1_100,
        "useful 1000 redone 0 waited 0 overhead 100 times 0",
    );
    let (played, _) = play(vec![job(16, None, 100, 10, 60)], "0 up a 8, 0 up b 8", 1_100);
    assert!((played.goodput() - 1.0 / 1.1).abs() < 1e-12, "{}", played.goodput());
}

#[test]
fn an_interruption_loses_the_work_since_the_last_checkpoint_and_a_restart() {
    let one = || vec![job(1, None, 100, 0, 30)];
    for (story, end, expected) in [
        (
            "0 up a 1, 150 interrupted a bug",
            300,
            "useful 220 redone 50 waited 0 overhead 30 times 1",
        ),
        (
            "0 up a 1, 200 interrupted a bug",
            300,
            "useful 270 redone 0 waited 0 overhead 30 times 1",
        ),
        // Another one while it starts: it starts anew.
        (
            "0 up a 1, 150 interrupted a bug, 160 interrupted a bug",
            300,
            "useful 210 redone 50 waited 0 overhead 40 times 2",
        ),
        // The machine is gone, and there is no other.
        ("0 up a 1, 150 down a hbm", 300, "useful 100 redone 50 waited 150 overhead 0 times 1"),
        (
            "0 up a 1, 150 down a hbm, 250 up a 1",
            300,
            "useful 120 redone 50 waited 100 overhead 30 times 1",
        ),
        // A spare one is used at once.
        (
            "0 up a 1, 0 up b 1, 150 down a hbm",
            300,
            "useful 220 redone 50 waited 0 overhead 30 times 1",
        ),
        // Who is not used does not interrupt.
        (
            "0 up a 1, 0 up b 1, 150 down b hbm",
            300,
            "useful 300 redone 0 waited 0 overhead 0 times 0",
        ),
    ] {
        check(one(), story, end, expected);
    }
}

#[test]
fn only_machines_in_service_are_used() {
    let one = || vec![job(1, None, 100, 0, 30)];
    for (story, expected) in [
        // What runs goes on; what must start elsewhere does not start here.
        ("0 up a 1, 50 closed a", "useful 300 redone 0 waited 0 overhead 0 times 0"),
        (
            "0 up a 1, 50 closed a, 150 interrupted a bug",
            "useful 100 redone 50 waited 150 overhead 0 times 1",
        ),
        (
            "0 up a 1, 0 up b 1, 10 closed b, 150 down a hbm",
            "useful 100 redone 50 waited 150 overhead 0 times 1",
        ),
        ("0 up b 1, 0 closed b, 100 up a 1", "useful 300 redone 0 waited 0 overhead 0 times 0"),
    ] {
        check(one(), story, 300, expected);
    }
}

#[test]
fn a_drain_saves_what_it_can() {
    let one = || vec![job(1, None, 100, 10, 30)];
    // 140 seconds: a hundred safe, ten to write, thirty not safe. Ten of them are spent on writing the other twenty.
    check(
        one(),
        "0 up a 1, 0 up b 1, 140 drained a sick",
        200,
        "useful 150 redone 0 waited 0 overhead 50 times 1",
    );
    check(
        one(),
        "0 up a 1, 0 up b 1, 140 down a sick",
        200,
        "useful 130 redone 30 waited 0 overhead 40 times 1",
    );
}

#[test]
fn a_gang_stands_still_as_one() {
    let two = || vec![job(16, None, 100, 0, 0)];
    // Nobody starts before all are there; sums are for sixteen GPUs.
    check(two(), "0 up a 8, 50 up b 8", 100, "useful 800 redone 0 waited 800 overhead 0 times 0");
    check(
        two(),
        "0 up a 8, 0 up b 8, 50 down a hbm",
        100,
        "useful 0 redone 800 waited 800 overhead 0 times 1",
    );
    // The rest of an interrupted gang waits for it: a small job that comes later in the file gets none of it.
    let jobs = vec![job(16, None, 100, 0, 0), job(8, None, 100, 0, 0)];
    let story = "0 up d 8, 0 up a 8, 0 up b 8, 10 down a hbm, 20 down d hbm";
    let (played, _) = play(jobs.clone(), story, 100);
    assert!(!played.is_busy("b"));
    let (played, _) = play(jobs, &format!("{story}, 30 up c 8"), 100);
    assert!(played.is_busy("b") && played.is_busy("c"));
    // And the first in the file is never stuck behind those after it.
    let jobs = vec![job(16, None, 100, 0, 0), job(16, None, 100, 0, 0)];
    let story = "0 up a 8, 0 up b 8, 0 up c 8, 0 up d 8, 10 down b hbm, 10 down d hbm";
    let (played, _) = play(jobs, story, 100);
    assert!(played.is_busy("a") && played.is_busy("c"));
    assert_eq!(played.work().interruptions, 2);
}

#[test]
fn jobs_share_machines_and_follow_one_another() {
    // Four jobs of two GPUs on one machine of eight; each works for 100 seconds and is followed by another.
    let jobs = vec![scenario::Job { count: 4, ..job(2, Some(100), 1_000, 10, 10) }];
    let (played, line) = play(jobs, "0 up a 8", 950);
    assert_eq!(line, "useful 7600 redone 0 waited 0 overhead 0 times 0");
    assert_eq!(played.work().jobs, 4 * 9 + 4);
    // Checkpoints on the way count, and none is written at the end.
    let (played, line) = play(vec![job(1, Some(100), 50, 10, 10)], "0 up a 1", 220);
    assert_eq!(line, "useful 200 redone 0 waited 0 overhead 20 times 0");
    assert_eq!(played.work().jobs, 3);
}

#[test]
fn causes_are_counted_and_a_sample_shows_the_time_since_the_last() {
    let mut played = workload(vec![job(1, None, 100, 0, 10)]);
    played.node_up(seconds(0), "a", 1);
    assert!((played.sample(seconds(100)) - 1.0).abs() < 1e-12);
    played.interrupted(seconds(100), "a", "bug");
    played.interrupted(seconds(150), "a", "bug");
    played.node_down(seconds(180), "a", "hbm");
    // In these hundred seconds nothing that counts was done.
    assert_eq!(played.sample(seconds(200)), 0.0);
    assert_eq!(format!("{:?}", played.work().by_cause), r#"{"bug": 2, "hbm": 1}"#);
    // Without time, and without work, nothing is lost.
    assert_eq!(played.sample(seconds(200)), 1.0);
    assert_eq!(workload(Vec::new()).goodput(), 1.0);
}

/// Goodput over a hundred days of a job that fails once in `mtbf` seconds on average.
fn goodput(every: f64, checkpoint: i64, mtbf: f64, seed: u64) -> f64 {
    let every = SignedDuration::from_secs_f64(every);
    let job = scenario::Job { checkpoint_every: every, ..job(1, None, 1, checkpoint, 60) };
    let mut played = workload(vec![job]);
    let mut dice = Dice::part(seed, "failures");
    let end = 100.0 * 86_400.0;
    played.node_up(SignedDuration::ZERO, "a", 1);
    let mut at = dice.wait(mtbf);
    while at < end {
        played.interrupted(SignedDuration::from_secs_f64(at), "a", "chance");
        at += dice.wait(mtbf);
    }
    played.at(SignedDuration::from_secs_f64(end));
    played.goodput()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Young's interval, √(2 · time to write · time between failures), is better than half of it and twice of it, and
    /// those are better than a quarter and four times.
    #[test]
    fn the_best_interval_is_young_and_dalys(
        seed in any::<u64>(),
        checkpoint in 20_i64..60,
        mtbf in 3_600.0_f64..20_000.0,
    ) {
        let best = (2.0 * checkpoint as f64 * mtbf).sqrt();
        let mean = |factor: f64| (0..8).map(|more| goodput(best * factor, checkpoint, mtbf, seed ^ more)).sum::<f64>() / 8.0;
        let [quarter, half, one, twice, four] = [0.25, 0.5, 1.0, 2.0, 4.0].map(mean);
        prop_assert!(quarter < half && half < one, "{quarter} {half} {one}");
        prop_assert!(four < twice && twice < one, "{one} {twice} {four}");
    }

    /// Whatever happens, all time is accounted for, and only once.
    #[test]
    fn no_time_is_lost_or_counted_twice(
        jobs in prop::collection::vec((1_u32..20, prop::option::of(1_i64..500), 1_i64..200, 0_i64..30, 0_i64..60), 1..4),
        steps in prop::collection::vec((0_i64..200, 0_usize..5, 0_u8..6, 0_u32..10), 0..60),
    ) {
        let jobs = jobs.into_iter().map(|(gpus, work, every, checkpoint, restart)| job(gpus, work, every, checkpoint, restart));
        let jobs: Vec<_> = jobs.collect();
        let all: f64 = jobs.iter().map(|job| f64::from(job.gpus)).sum();
        let mut played = workload(jobs);
        let mut now = 0;
        for (more, node, what, gpus) in steps {
            now += more;
            let (at, node) = (seconds(now), ["a", "b", "c", "d", "e"][node]);
            match what {
                0 | 1 => played.node_up(at, node, gpus),
                2 => played.node_down(at, node, "down"),
                3 => played.node_drained(at, node, "drained"),
                4 => played.node_closed(at, node),
                _ => played.interrupted(at, node, "interrupted"),
            }
            let Work { possible, useful, redone, waited, overhead, .. } = played.work();
            prop_assert!((possible - all * now as f64).abs() < 1e-6 * (1.0 + possible));
            prop_assert!((possible - useful - redone - waited - overhead).abs() < 1e-6 * (1.0 + possible));
            for held in played.nodes.values() {
                let taken: u32 = held.held.values().sum();
                prop_assert_eq!(held.free + taken, held.gpus);
            }
            for (index, job) in played.jobs.iter().enumerate() {
                let has: u32 = played.nodes.values().filter_map(|node| node.held.get(&index)).sum();
                prop_assert_eq!(has, job.has);
                prop_assert!(job.phase == super::Phase::Waiting || has == job.gpus);
                let closed = played.nodes.values().any(|node| !node.open && node.held.contains_key(&index));
                prop_assert!(job.phase != super::Phase::Waiting || !closed);
            }
        }
    }
}
