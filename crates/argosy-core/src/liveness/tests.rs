use super::{Excuse, Listening, Pulse, limits, sweep};
use crate::node::settings::PoolSettings;
use crate::node::{Liveness, NodeId};
use jiff::SignedDuration;
use proptest::prelude::*;

const AMNESTY: i64 = 300;

/// Far from any start.
const LONG_AGO: i64 = -1_000_000;

/// A node as a word: `a:70` was heard at 70 and is Fresh so far, `b?:70` is Suspect, `c!:70` is
/// Unreachable; `d:-` was not heard since we began to listen. The limits are 25 s and 45 s.
fn parse(fleet: &str, since: i64, now: i64) -> Vec<(NodeId, Liveness, Option<i64>)> {
    fleet
        .split_whitespace()
        .map(|word| {
            let (head, heard) = word.split_once(':').unwrap();
            let liveness = match head.chars().last() {
                Some('?') => Liveness::Suspect,
                Some('!') => Liveness::Unreachable,
                _ => Liveness::Fresh,
            };
            let heard: Option<i64> = heard.parse().ok();
            let quiet = heard.filter(|heard| since <= *heard).map(|heard| now - heard);
            (NodeId::parse(head.trim_end_matches(['?', '!'])).unwrap(), liveness, quiet)
        })
        .collect()
}

fn pulses(fleet: &[(NodeId, Liveness, Option<i64>)]) -> Vec<Pulse<'_>> {
    fleet
        .iter()
        .map(|(node, liveness, quiet)| Pulse {
            node,
            liveness: *liveness,
            quiet_for: quiet.map(SignedDuration::from_secs),
            suspect_after: SignedDuration::from_secs(25),
            unreachable_after: SignedDuration::from_secs(45),
        })
        .collect()
}

fn listening(fleet: &[(NodeId, Liveness, Option<i64>)], listening_for: i64) -> Listening {
    let deaf_for = fleet.iter().filter_map(|(_, _, quiet)| *quiet).min();
    Listening {
        listening_for: SignedDuration::from_secs(listening_for),
        amnesty: SignedDuration::from_secs(AMNESTY),
        well: 0,
        deaf_for: SignedDuration::from_secs(deaf_for.unwrap_or(listening_for)),
    }
}

#[track_caller]
fn check(fleet: &str, since: i64, now: i64, expected: &str) {
    let nodes = parse(fleet, since, now);
    let found = sweep(&pulses(&nodes), listening(&nodes, now - since));
    let mut line: Vec<String> =
        found.marks.iter().map(|(node, to)| format!("{node} {}", to.as_str())).collect();
    line.extend(found.excuse.map(|excuse| match excuse {
        Excuse::Isolation { silent, total } => format!("isolation {silent}/{total}"),
        Excuse::Amnesty { missing, total } => format!("amnesty {missing}/{total}"),
    }));
    assert_eq!(line.join(", "), expected);
}

#[test]
fn silence_counts_only_past_the_limit() {
    check("a:76 b:90 c:90", LONG_AGO, 100, "");
    check("a:75 b:90 c:90", LONG_AGO, 100, "a Suspect");
    check("a?:56 b:90 c:90", LONG_AGO, 100, "");
    check("a?:55 b:90 c:90", LONG_AGO, 100, "a Unreachable");
    check("a:55 b:90 c:90", LONG_AGO, 100, "a Unreachable");
    check("a!:55 b:90 c:90", LONG_AGO, 100, "");
}

#[test]
fn who_is_heard_again_is_fresh_whatever_else_there_is() {
    check("a!:99 b?:99 c:90", LONG_AGO, 100, "a Fresh, b Fresh");
    // In an isolation and in the amnesty, too.
    check("a!:99 b:10 c:10 d:90", LONG_AGO, 100, "a Fresh, b Unreachable, c Unreachable");
    check("a!:99 b:-", 95, 100, "a Fresh, amnesty 1/2");
}

#[test]
fn d2_r2_n15_a_fleet_of_which_nobody_is_heard_is_our_own_isolation() {
    check("a:0 b:0", LONG_AGO, 100, "a Suspect, b Suspect, isolation 2/2");
    check("a:75 b:75 c:70", LONG_AGO, 100, "a Suspect, b Suspect, c Suspect, isolation 3/3");
    check("a?:0 b?:0 c?:0", LONG_AGO, 100, "isolation 3/3");
    // One node cannot tell us from it.
    check("a:0", LONG_AGO, 100, "a Unreachable");
    // It is believed for so long, and then they are gone.
    check("a?:0 b?:0 c?:0", LONG_AGO, 1199, "isolation 3/3");
    check("a?:0 b?:0 c?:0", LONG_AGO, 1200, "a Unreachable, b Unreachable, c Unreachable");
}

#[test]
fn r2_n15_one_node_that_is_heard_shows_that_we_listen() {
    check("a:0 b:0 c:90 d:90", LONG_AGO, 100, "a Unreachable, b Unreachable");
    check("a:0 b:0 c:90", LONG_AGO, 100, "a Unreachable, b Unreachable");
    check("a:75 b:75 c:90", LONG_AGO, 100, "a Suspect, b Suspect");
    check(
        "a:0 b:0 c:0 d:0 e:0 f:0 g:0 h:0 i:99",
        LONG_AGO,
        70,
        "a Unreachable, b Unreachable, c Unreachable, d Unreachable, e Unreachable, f Unreachable, g Unreachable, h Unreachable",
    );
}

#[test]
fn nodes_lost_long_ago_do_not_make_the_next_silence_ours() {
    let off = "b!:-9000 c!:-9000 d!:-9000";
    check(&format!("a:0 e:90 f:90 {off}"), LONG_AGO, 100, "a Unreachable");
    check(&format!("a:0 {off}"), LONG_AGO, 100, "a Unreachable");
    // After a restart they are known to be lost, and nobody waits for them.
    check("a:990 e:990 b!:- c!:- d!:-", 0, 1000, "");
}

#[test]
fn d8_a_restart_is_not_a_failure_of_the_fleet() {
    check("a:- b:- c:-", 95, 100, "amnesty 3/3");
    check("a:- b:- c:-", 0, 299, "amnesty 3/3");
    check("a!:- b?:- c:-", 0, 100, "amnesty 2/3");
    // Not even one that was heard and fell silent again.
    check("a:10 b:95 c:95", 0, 100, "a Suspect, amnesty 0/3");
    check("a!:10 b:95 c:95", 0, 100, "amnesty 0/3");
}

#[test]
fn the_amnesty_lasts_longer_while_many_are_missing_and_not_for_ever() {
    let back = |missing: usize| {
        let here = (missing..100).map(|index| format!("n{index}:999"));
        let gone = (0..missing).map(|index| format!("m{index}:-"));
        here.chain(gone).collect::<Vec<_>>().join(" ")
    };
    check(&back(6), 0, 1000, "amnesty 6/100");
    check(
        &back(5),
        0,
        1000,
        "m0 Unreachable, m1 Unreachable, m2 Unreachable, m3 Unreachable, m4 Unreachable",
    );
    check("a:1198 b:1198 c:-", 0, 1199, "amnesty 1/3");
    check("a:1198 b:1198 c:-", 0, 1200, "c Unreachable");
    check("a:1198 b:- c:-", 0, 1200, "b Unreachable, c Unreachable");
}

#[test]
fn nobody_has_less_than_two_and_three_of_its_intervals() {
    let check = |every: i64, expected: (i64, i64)| {
        let every = SignedDuration::from_secs(every);
        let (suspect, unreachable) = limits(&PoolSettings::default(), every);
        assert_eq!((suspect.as_secs(), unreachable.as_secs()), expected);
    };
    // On a stream, by calls, and in a fleet that was told to be slower.
    check(10, (25, 45));
    check(30, (65, 90));
    check(100, (205, 300));
}

#[test]
fn the_sentences_have_the_numbers() {
    let isolation = Excuse::Isolation { silent: 9, total: 10 };
    assert!(isolation.to_string().starts_with("no node is heard"), "{isolation}");
    let amnesty = Excuse::Amnesty { missing: 3, total: 10 };
    assert!(amnesty.to_string().contains("3 of 10 nodes were not heard yet"), "{amnesty}");
}

fn any_node() -> impl Strategy<Value = (Liveness, Option<i64>)> {
    let liveness =
        prop_oneof![Just(Liveness::Fresh), Just(Liveness::Suspect), Just(Liveness::Unreachable),];
    (liveness, proptest::option::weighted(0.8, 0_i64..5000))
}

fn any_fleet() -> impl Strategy<Value = Vec<(NodeId, Liveness, Option<i64>)>> {
    proptest::collection::vec(any_node(), 1..40).prop_map(|nodes| {
        let named = nodes.into_iter().enumerate();
        named
            .map(|(index, (liveness, quiet))| {
                (NodeId::parse(&format!("n{index}")).unwrap(), liveness, quiet)
            })
            .collect()
    })
}

/// What a node is after a sweep.
fn after(fleet: &[(NodeId, Liveness, Option<i64>)], listening_for: i64, index: usize) -> Liveness {
    let found = sweep(&pulses(fleet), listening(fleet, listening_for));
    let (node, before, _) = &fleet[index];
    found.marks.iter().find(|(marked, _)| marked == node).map_or(*before, |(_, to)| *to)
}

proptest! {
    #[test]
    fn recovery_is_never_held(fleet in any_fleet(), listening_for in 0_i64..5000) {
        for (index, (_, _, quiet)) in fleet.iter().enumerate() {
            if quiet.is_some_and(|quiet| quiet < 25) {
                prop_assert_eq!(after(&fleet, listening_for, index), Liveness::Fresh);
            }
        }
    }

    #[test]
    fn nobody_is_marked_unreachable_while_there_is_an_excuse(
        fleet in any_fleet(),
        listening_for in 0_i64..5000,
    ) {
        let found = sweep(&pulses(&fleet), listening(&fleet, listening_for));
        let lost = found.marks.iter().any(|(_, to)| *to == Liveness::Unreachable);
        prop_assert!(!(lost && found.excuse.is_some()), "{:?}", found);
        if listening_for < AMNESTY {
            prop_assert!(found.excuse.is_some());
        }
    }

    #[test]
    fn those_who_are_well_need_only_be_counted(fleet in any_fleet(), listening_for in 0_i64..5000) {
        let pulses = pulses(&fleet);
        let others: Vec<_> = pulses.iter().filter(|pulse| !pulse.is_well()).copied().collect();
        let listening = listening(&fleet, listening_for);
        let counted = Listening { well: pulses.len() - others.len(), ..listening };
        prop_assert_eq!(sweep(&others, counted), sweep(&pulses, listening));
    }

    #[test]
    fn nobody_is_fresh_who_was_not_heard(fleet in any_fleet(), listening_for in 0_i64..5000) {
        for (node, to) in sweep(&pulses(&fleet), listening(&fleet, listening_for)).marks {
            let (_, before, quiet) = fleet.iter().find(|(known, _, _)| *known == node).unwrap();
            prop_assert_ne!(to, *before, "a mark is a change");
            prop_assert!(to != Liveness::Fresh || quiet.is_some_and(|quiet| quiet < 25));
        }
    }

    #[test]
    fn longer_silence_is_never_better(
        fleet in any_fleet(),
        which in any::<prop::sample::Index>(),
        longer in 1_i64..5000,
        listening_for in 0_i64..5000,
    ) {
        let index = which.index(fleet.len());
        let mut later = fleet.clone();
        prop_assume!(later[index].2.is_some());
        later[index].2 = later[index].2.map(|quiet| quiet + longer);
        let (now, then) = (after(&fleet, listening_for, index), after(&later, listening_for, index));
        prop_assert!(now <= then, "{now:?} after {:?}, {then:?} later", fleet[index].2);
    }
}
