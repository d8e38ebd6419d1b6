use super::*;
use proptest::prelude::*;

/// `test=memory seconds=5` as a command has it.
fn parameters(row: &str) -> BTreeMap<String, String> {
    row.split_whitespace()
        .map(|word| word.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn parameters_become_a_plan() {
    let check = |row: &str, test: Test| {
        assert_eq!(Plan::parse(&parameters(row)), Ok(Plan::new(test)), "{row}");
    };
    check("", Test::All);
    check("test=all", Test::All);
    check("type=quick", Test::Quick);
    check("test=memory", Test::Memory { seconds: 60, fraction_percent: 95 });
    check("test=memory seconds=1 fraction=0.5", Test::Memory { seconds: 1, fraction_percent: 50 });
    check("test=memory fraction=1", Test::Memory { seconds: 60, fraction_percent: 100 });
    check("test=bandwidth", Test::Bandwidth { runs: 10 });
    check("test=compute runs=1000", Test::Compute { runs: 1000 });
    check("test=stress seconds=3600", Test::Stress { seconds: 3600 });
    let plan = Plan::parse(&parameters("test=compute gpu=7 force=true")).unwrap();
    assert_eq!((plan.gpu, plan.force, plan.inject_bit_flip), (Some(7), true, false));
}

#[test]
fn k15_silly_and_hostile_parameters_are_refused_by_name_and_range() {
    let check = |name: &str, value: &str, said: &str| {
        let mut given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        if name != "test" && name != "type" {
            given.entry("test".to_owned()).or_insert_with(|| "memory".to_owned());
        }
        let error = Plan::parse(&given).unwrap_err().to_string();
        assert!(error.contains(said), "{name}={value}: {error}");
        assert!(!error.contains(['\n', '\x1b']) && error.len() < 400, "{error}");
    };
    let seconds = "parameter seconds must be a whole number from 1 to 3600, not ";
    for value in
        ["", "0", "-1", "3601", "1e3", "5s", " 5", "+5", "٣", "4294967297", "NaN", "1;reboot"]
    {
        check("seconds", value, seconds);
    }
    for value in ["", "0", "0.001", "1.01", "95", ".", ".5x", "-0.5", "0.5.5", "1e0", "inf"] {
        check("fraction", value, "parameter fraction must be a number from 0.01 to 1");
    }
    for value in ["64", "-1", "all", "0,1", "0x0"] {
        check("gpu", value, "parameter gpu must be a whole number from 0 to 63");
    }
    check("force", "yes", "parameter force must be `true` or `false`, not `yes`");
    let tests =
        "parameter test must be one of quick, memory, bandwidth, compute, stress, all, not ";
    for value in
        ["", "; rm -rf /", "$(reboot)", "QUICK", "../../bin/sh", "memory\n", "quick\x1b[2J"]
    {
        check("test", value, tests);
        check("type", value, tests);
    }
    check("secnds", "5", "is `seconds` meant?");
    check("command", "sh", "it has test, type, gpu, seconds, runs, fraction, force");
    check("inject_bit_flip", "true", "a diagnostic has no parameter `inject_bit_flip`");
    check("runs", "5", "the test memory has no parameter runs");
    check(&"x".repeat(1 << 20), "5", "a diagnostic has no parameter `xxxx");
    let both = Plan::parse(&parameters("test=quick type=quick"));
    assert_eq!(both, Err(BadParameter::Twice));
}

#[test]
fn a_test_has_time_for_what_it_was_asked_to_do() {
    let check = |test: Test, at_least_s: u64, at_most_s: u64| {
        let time = test.time_max().as_secs();
        assert!((at_least_s..=at_most_s).contains(&time), "{test:?}: {time}");
    };
    check(Test::Stress { seconds: 3600 }, 3660, 3800);
    check(Test::Memory { seconds: 60, fraction_percent: 95 }, 120, 240);
    check(Test::Compute { runs: 1000 }, 200, 400);
    check(Test::All, 200, 900);
}

#[test]
fn r2_i5_the_copies_have_time_for_as_many_runs_as_may_be_asked_for() {
    // Eight H100s need a quarter of a second a run.
    for runs in [1, 10, 450, 10_000] {
        let plan = Plan::parse(&parameters(&format!("test=bandwidth runs={runs}"))).unwrap();
        let needed = Duration::from_millis(250) * runs;
        assert!(needed + Duration::from_secs(60) <= plan.test.time_max(), "{runs}");
    }
}

proptest! {
    #[test]
    fn whatever_is_sent_is_a_plan_within_limits_or_an_error(
        given in prop::collection::btree_map(
            prop_oneof![
                prop::sample::select(NAMES).prop_map(str::to_owned),
                any::<String>(),
            ],
            prop_oneof![
                prop::sample::select(TESTS).prop_map(str::to_owned),
                any::<u32>().prop_map(|number| number.to_string()),
                (0_u32..=110).prop_map(|percent| format!("0.{percent}")),
                any::<String>(),
            ],
            0..5,
        )
    ) {
        match Plan::parse(&given) {
            Ok(plan) => {
                prop_assert_eq!(Plan::parse(&plan.parameters()), Ok(plan.clone()));
                prop_assert!(plan.gpu.is_none_or(|gpu| gpu < 64));
                prop_assert!(plan.test.time_max() <= Duration::from_secs(2 * 3600));
            }
            Err(error) => prop_assert!(error.to_string().len() < 1000),
        }
    }
}
