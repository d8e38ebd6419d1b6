//! What a pool in recovery says that it would do, and that it does nothing of it.

use super::*;
use crate::incarnation::{Forecast, Would};
use crate::instance::State;

const WHY: &str = "in recovery";

/// `2 machines would be terminated (1 drained first), 0 bought: a ScaleDown; …`, and `waits …`.
#[track_caller]
fn foretells(town: &Town, expected: &str) {
    let plan = town.plan();
    assert_eq!((told(&plan), plan.book, plan.steps.len()), (String::new(), None, 0));
    let forecast = plan.forecast.unwrap();
    let steps = forecast.steps.iter().map(|step| match step {
        Would::Terminate { instance, drain, reason } => {
            format!("{instance}{} {reason}", if *drain { " drained" } else { "" })
        }
        Would::Buy { machine_type, reason, .. } => format!("{machine_type} {reason}"),
    });
    let waits = forecast.waits_for.iter().map(|what| format!("waits for {what}"));
    let all: Vec<String> = waits.chain(steps).collect();
    assert_eq!(all.join("; "), expected, "{forecast}");
}

fn recovering(nodes: u32, text: &str) -> Town {
    town(nodes, text).with(|town| town.recovery = Some(WHY.to_owned()))
}

#[test]
fn r1_v1_a_pool_in_recovery_tells_what_it_would_do_and_does_nothing() {
    foretells(&recovering(2, "a:ready b:ready"), "");
    let fewer = "the pool needs fewer nodes";
    foretells(&recovering(1, "a:ready b:ready"), &format!("a drained {fewer}"));
    foretells(&recovering(1, "a:ready b:asked"), &format!("b {fewer}; n1-standard-4 because"));
    foretells(&recovering(2, "a:ready"), "n1-standard-4 node 2 of 2");
    let gone = recovering(2, "a:ready b:lost").with(deleted);
    foretells(&gone, "a drained the pool was deleted; b the pool was deleted");
    // Decided before the history was lost.
    let coming = recovering(1, "a:ready b:leaving");
    foretells(&coming, &format!("b {fewer}"));
    let sick = recovering(2, "a:ready b:lost");
    let since = sick.ones[1].node.as_ref().unwrap().liveness_since;
    foretells(&sick, &format!("n1-standard-4 b is to be replaced: unreachable since {since}"));
}

#[test]
fn r1_v1_whoever_may_be_busy_is_waited_for_and_nobody_else_goes_in_its_place() {
    let adopt = |town: &mut Town, since: i64| {
        for id in ["c", "d"] {
            let one = town.one(id);
            one.instance.adopted = true;
            let State::AwaitingNode { since: from, .. } = &mut one.instance.state else { panic!() };
            *from = at(since);
        }
    };
    let text = "a:ready b:ready c:coming d:coming";
    let fresh = recovering(2, text).with(|town| adopt(town, -60));
    let until = at(-60).checked_add(SignedDuration::from_mins(40)).unwrap();
    foretells(&fresh, &format!("waits for 2 machines to register, until {until:.0} at the latest"));
    let late = recovering(2, text).with(|town| adopt(town, -2_400));
    let stale = "its node did not register in time";
    foretells(&late, &format!("c {stale}; d {stale}"));
    // Without a recovery, too: the two that are known stay.
    town(2, text).with(|town| adopt(town, -60)).does("");
    town(1, text).with(|town| adopt(town, -60)).does("cordon a");
}

#[test]
fn r1_v1_a_recovery_is_said_with_its_way_out() {
    let pool = recovering(1, "a:ready b:ready");
    pool.says(
        "AllNodesReady: 2 of 1 nodes ready; in recovery; 1 machine would be terminated (1 drained first), 0 bought",
    );
    recovering(2, "a:ready").says(
        "Recovery: 1 of 2 nodes ready; in recovery; 0 machines would be terminated, 1 bought",
    );
    let nothing = Forecast::default();
    assert_eq!(recovering(1, "a:ready").plan().forecast, Some(nothing));
    assert_eq!(town(1, "a:ready b:ready").plan().forecast, None);
}
