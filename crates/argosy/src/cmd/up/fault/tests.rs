use super::*;
use std::collections::BTreeSet;

#[test]
fn every_fault_can_be_done_and_has_a_name_of_its_own() {
    let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
    assert_eq!(names.len(), FAULTS.len());
    for fault in FAULTS {
        assert_eq!(named(&fault.name.to_uppercase()), Some(fault));
        if let Deed::Gpu(words) = fault.deed {
            let parsed: Injection = format!("{words} gpu:5").parse().expect(fault.name);
            assert_eq!(fault.act(5), Act::Inject(parsed), "{}", fault.name);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_faults_and_another_seed_others() {
    let play = |seed| -> Vec<(&str, u64, Option<usize>)> {
        let mut script = Script::new(seed);
        let mut next = || {
            let next = (script.fault().name, script.pause().as_secs(), script.choice("node", 240));
            script.done("n");
            next
        };
        (0..50).map(|_| next()).collect()
    };
    assert_eq!(play(1), play(1));
    assert_ne!(play(1), play(2));
    for (_, pause, node) in play(3) {
        assert!((PAUSE_MIN_S..=PAUSE_MAX_S).contains(&pause));
        assert!(node.is_some_and(|node| node < 240));
    }
}

#[test]
fn many_kinds_come_and_those_by_hand_do_not() {
    let mut script = Script::new(7);
    let mut seen = BTreeSet::new();
    for _ in 0..400 {
        seen.insert(script.fault().name);
        script.done("n");
    }
    let by_themselves: BTreeSet<_> =
        FAULTS.iter().filter(|fault| 0 < fault.share).map(|fault| fault.name).collect();
    assert_eq!(seen, by_themselves);
    assert_eq!(FAULTS.iter().map(|fault| fault.share).sum::<u64>(), 100);
}

#[test]
fn it_goes_on_where_it_was_and_mends_what_is_old() {
    let mut script = Script::new(1);
    let healed: Vec<Option<String>> =
        ["a", "b", "c", "d", "e", "f"].map(|node| script.done(node)).to_vec();
    let expected: Vec<Option<String>> =
        [None, None, None, None, Some("a"), Some("b")].map(|node| node.map(str::to_owned)).to_vec();
    assert_eq!(healed, expected);
    let kept = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<Script>(&kept).unwrap(), script);
    assert!(Script::new(1).choice("node", 0).is_none());
}
