use super::*;
use crate::check::Word;
use jiff::SignedDuration;

#[test]
fn n5_an_agent_that_is_started_too_often_says_so() {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let starts = |ago: &[i64]| -> Vec<Timestamp> {
        let ago = ago.iter().map(|ago| SignedDuration::from_secs(*ago));
        ago.map(|ago| now.saturating_sub(ago).unwrap()).collect()
    };
    let rows: [(&[i64], bool); 4] = [
        (&[0], false),
        (&[0, 1, 2, 3, 4], false),
        (&[0, 1, 2, 3, 4, 5], true),
        (&[0, 601, 602, 603, 604, 605, 606], false),
    ];
    for (ago, expected) in rows {
        let outcome = unstable(&starts(ago), now);
        let is = outcome.is_some_and(|outcome| {
            outcome.word == Word::Degraded && outcome.reason == "AgentUnstable"
        });
        assert_eq!(is, expected, "{ago:?}");
    }
}

#[test]
fn n5_starts_are_counted_across_processes() {
    let dir = crate::testing::Dir::new();
    let at = |second: i64| Timestamp::from_second(1_000_000 + second).unwrap();
    let start = |second| Own::start(dir.path(), at(second), 0, Arc::default());
    for second in 0..5 {
        let outcome = start(second).outcome(&[], at(second)).unwrap();
        assert_eq!(outcome.word, Word::Healthy, "{outcome:?}");
    }
    let unstable = start(6).outcome(&[], at(6)).unwrap();
    assert_eq!(
        (unstable.reason.as_str(), unstable.details["starts"].as_str()),
        ("AgentUnstable", "6")
    );
    let later = start(700).outcome(&[], at(700)).unwrap();
    assert_eq!(later.word, Word::Healthy);
    std::fs::write(dir.path().join("starts"), "rubbish").unwrap();
    assert_eq!(start(701).outcome(&[], at(701)).unwrap().word, Word::Healthy);
}

#[test]
fn only_checks_that_were_asked_for_are_told() {
    let outcomes = || vec![CheckOutcome::healthy("nvml", ""), CheckOutcome::healthy("host", "")];
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(wanted(outcomes(), &names(&[])).len(), 2);
    assert_eq!(wanted(outcomes(), &names(&["host", "unheard-of"])).len(), 1);
}
