use super::*;
use argosy_sim::outcome::Violation;

#[test]
fn a_line_says_how_far_it_is_how_fast_and_how_long_it_will_take() {
    const DAY: f64 = 86_400.0;
    let minute = Some(time::Duration::from_secs(60));
    // Seeds, days in all, limit; then days simulated, seeds done and failing, and seconds passed.
    let rows = [
        ((1, 54.0, None), (0.0, 0, 0, 0), "0s of 54d, 0.0 days/s"),
        ((1, 54.0, None), (13.5, 0, 0, 5), "13d of 54d, 2.7 days/s, 15s left"),
        ((1, 54.0, None), (60.0, 0, 0, 5), "60d of 54d, 12 days/s, 0s left"),
        // Of very many machines a day takes longer.
        ((1, 0.5, None), (0.25, 0, 0, 60), "6h of 12h, 6 min/s, 1m left"),
        ((1, 0.5, None), (0.25, 0, 0, 43_200), "6h of 12h, 0.5 s/s, 12h left"),
        (
            (100, 100.0, None),
            (50.0, 49, 0, 10),
            "49 of 100 seeds, 50d simulated, 5.0 days/s, 10s left",
        ),
        (
            (100, 100.0, None),
            (50.0, 49, 2, 10),
            "49 of 100 seeds, 2 FAILED, 50d simulated, 5.0 days/s, 10s left",
        ),
        // The limit comes before the end.
        (
            (100, 100.0, minute),
            (10.0, 9, 0, 30),
            "9 of 100 seeds, 10d simulated, 0.3 days/s, 30s left",
        ),
    ];
    for ((seeds, days, limit), (simulated, done, failing, passed), expected) in rows {
        let progress = Progress::new(Screen::plain(), "", seeds, days * DAY, limit);
        let passed = time::Duration::from_secs(passed);
        let (share, line) = progress.line(simulated * DAY, done, failing, passed);
        assert_eq!(line, expected);
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}

#[test]
fn the_exit_code_says_whether_all_was_well() {
    let good = Outcome::default();
    let mut bad = Outcome::default();
    bad.violations.push(Violation::default());
    assert_eq!(exit(std::slice::from_ref(&good), false), Exit::Ok);
    assert_eq!(exit(std::slice::from_ref(&good), true), Exit::Interrupted);
    assert_eq!(exit(&[good, bad], true), Exit::Failed);
}

#[test]
fn why_nothing_was_played_has_its_own_exit_code() {
    let rows = [
        (RunError::Declared("pool `a`: no such type".to_owned()), Exit::Usage),
        (RunError::Machine("no memory".to_owned()), Exit::Failed),
        (RunError::Stopped, Exit::Interrupted),
    ];
    for (error, exit) in rows {
        assert_eq!(refused(error, "x").exit, exit);
    }
}
