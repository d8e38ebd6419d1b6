use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    load: Load,
}

fn plan(flags: &str) -> Result<Plan, String> {
    let words = std::iter::once("load").chain(flags.split_whitespace());
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    line.load.plan().map_err(|failure| failure.to_string())
}

#[test]
fn what_cannot_be_is_refused_with_its_limit() {
    let rows = [
        ("--nodes 0", "from 1 to 100000 nodes"),
        ("--nodes 1000000000", "from 1 to 100000 nodes"),
        ("--nodes -1", "unexpected argument"),
        ("--duration 0s", "longer than nothing"),
        ("--duration 40d", "at most 31d"),
        ("--faults-per-hour NaN", "from 0 to 3600000"),
        ("--faults-per-hour=-1", "from 0 to 3600000"),
        ("--gpus 0xH100", "from 1 to 64"),
        ("--gpus 8xABACUS", "no GPU is called `ABACUS`"),
        ("--prefix Größe", "a-z, 0-9 and -"),
        ("--prefix=", "1 to 40 characters"),
        ("--encoding json", "streams are binary"),
        ("--report-interval 1s", "from 5s to 1h"),
        ("--interval 500ms", "every 1s to 5m"),
        ("--nodes 10 --rate 20", "10 nodes together send 0.03 to 10 a second"),
        ("--rate 0", "every 1s to 5m"),
        ("--rate inf", "every 1s to 5m"),
        ("--wire navarch --rate=-4", "every 10ms to 5m"),
        ("--interval 5s --rate 3", "cannot be used with"),
    ];
    for (flags, expected) in rows {
        let refused = plan(flags).expect_err(flags);
        assert!(refused.contains(expected), "{flags}: {refused}");
    }
}

#[test]
fn a_rate_is_an_interval_of_each_node() {
    let rows = [
        ("--nodes 200 --rate 100", Some(2_000)),
        ("--nodes 100 --rate 1000 --wire navarch", Some(100)),
        ("--interval 7s", Some(7_000)),
        ("", None),
    ];
    for (flags, expected) in rows {
        let every = plan(flags).unwrap().interval.map(|every| every.as_millis());
        assert_eq!(every, expected, "{flags}");
    }
}

#[test]
fn nodes_start_over_the_ramp_and_faults_come_after_it() {
    let plan = plan("--nodes 300 --ramp 10s --faults-per-hour 3600").unwrap();
    let seconds = time::Duration::from_secs;
    for (passed, started, faults) in [(0, 0, 0), (1, 30, 0), (10, 300, 0), (15, 300, 5)] {
        assert_eq!(
            (plan.due(seconds(passed)), plan.faults_due(seconds(passed))),
            (started, faults)
        );
    }
    let hit: std::collections::BTreeSet<u64> = (1..=100).map(|n| plan.fault(n).0).collect();
    assert!(70 < hit.len() && hit.iter().all(|node| (1..=300).contains(node)), "{hit:?}");
    assert!((1..=100).all(|n| plan.fault(n).1 < 8));
}
