//! What a request does to the budgets, as tables, and what holds whatever is asked.

use super::{Effect, Impact, effect, impacts};
use crate::command::CommandKind;
use crate::fixture::{at, hold};
use crate::node::settings::{Budget, NodeSettings};
use crate::node::{Duty, NodeId};
use crate::remedy::Leaving;
use crate::remedy::tests::{Machine, fleet, machines};
use jiff::SignedDuration;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

fn settings(percent: f64, at_least: u32) -> NodeSettings {
    let mut settings = NodeSettings::default();
    let budget = Budget { percent, at_least, every: SignedDuration::from_secs(10) };
    (settings.defaults.budget, settings.fleet.budget, settings.fleet.zone_budget) =
        (budget, budget, budget);
    settings
}

fn judged(all: &[Machine], asked: &[NodeId], settings: &NodeSettings) -> Vec<Impact> {
    let asked: HashSet<&NodeId> = asked.iter().collect();
    impacts(&fleet(all, &[], &[], None), &asked, settings, at(0))
}

/// `pool h100 1+2/1: n4`: one is out, two more are asked for, one may be; who is out, if it is exceeded.
fn told(found: &[Impact]) -> String {
    let told = found.iter().map(|impact| {
        let Impact { name, used, asked, allowed, out, .. } = impact;
        let out: Vec<String> =
            out.iter().map(|out| format!("{} {} by {}", out.node, out.how, out.by)).collect();
        let who = if out.is_empty() { String::new() } else { format!(": {}", out.join(", ")) };
        let mark = if impact.is_exceeded() { "!" } else { "" };
        format!("{name} {used}+{asked}/{allowed}{mark}{who}")
    });
    told.collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(nodes: &str, asked: &str, percent: f64, at_least: u32, expected: &str) {
    let all = machines(nodes);
    let asked: Vec<NodeId> =
        asked.split_whitespace().map(|id| NodeId::parse(id).unwrap()).collect();
    assert_eq!(told(&judged(&all, &asked, &settings(percent, at_least))), expected, "{nodes}");
}

#[test]
fn r2_a11_a_request_is_counted_with_what_is_out_already() {
    // The fleet, the nodes that are asked for, percent and least of every budget, and what follows.
    check("n*12", "n0", 10.0, 1, "fleet 0+1/1; pool h100 0+1/1");
    check("n*12", "n0 n1", 10.0, 1, "fleet 0+2/1!; pool h100 0+2/1!");
    check("n*20", "n0 n1", 10.0, 1, "fleet 0+2/2; pool h100 0+2/2");
    // One is always allowed, where nobody else is out.
    check("n*12", "n0", 0.0, 0, "fleet 0+1/1; pool h100 0+1/1");
    check(
        "n*12 s:ours-9",
        "n0",
        0.0,
        0,
        "fleet 1+1/1!: s cordoned by argosy; pool h100 1+1/1!: s cordoned by argosy",
    );
    // Whoever took it out: we, a person, one whose cordon is on its way.
    check(
        "n*9 t:theirs",
        "n0",
        10.0,
        1,
        "fleet 1+1/1!: t cordoned by ada; pool h100 1+1/1!: t cordoned by ada",
    );
    check(
        "n*9 t:sent-5",
        "n0",
        10.0,
        1,
        "fleet 1+1/1!: t cordoned by argosy; pool h100 1+1/1!: t cordoned by argosy",
    );
    check(
        "n*9 t:emptied",
        "n0",
        10.0,
        1,
        "fleet 1+1/1!: t drained by ada; pool h100 1+1/1!: t drained by ada",
    );
    // One that is out itself is counted once.
    check("n*9 t:theirs", "t", 10.0, 1, "fleet 0+1/1; pool h100 0+1/1");
    // Each pool and zone for itself.
    check(
        "a*4:pool=a,zone=z b*4:pool=b,zone=z",
        "a0 b0",
        25.0,
        0,
        "fleet 0+2/2; zone z 0+2/2; pool a 0+1/1; pool b 0+1/1",
    );
    // Those that warm up are in no percentage.
    check("n*40:warm", "n0 n1", 10.0, 1, "fleet 0+2/1!; pool h100 0+2/1!");
}

#[test]
fn r2_a11_a_node_that_a_person_ended_is_out_until_it_is_replaced() {
    let out = "fleet 1+1/1!: x terminated by ada; pool h100 1+1/1!: x terminated by ada";
    check("n*11 x:ended-60", "n0", 10.0, 1, out);
    // Another came since, and serves.
    check("n*11 x:ended-60 y:came-30", "n0", 10.0, 1, "fleet 0+1/1; pool h100 0+1/1");
    check("n*11 x:ended-60 y:came-90", "n0", 10.0, 1, out);
    check("n*11 x:ended-60 y:came-30,sick-5", "n0", 10.0, 1, out);
    // One newcomer takes one place.
    check(
        "n*20 w:ended-70 x:ended-60 y:came-30",
        "n0",
        5.0,
        1,
        "fleet 1+1/1!: x terminated by ada; pool h100 1+1/1!: x terminated by ada",
    );
    // The pool ended it itself, or nobody filled its place in a day: the fleet is smaller.
    check("n*11 x:replaced-60", "n0", 10.0, 1, "fleet 0+1/1; pool h100 0+1/1");
    check("n*11 x:ended-90000", "n0", 10.0, 1, "fleet 0+1/1; pool h100 0+1/1");
    // It counts among the nodes there are, too.
    check("n*19 x:ended-60", "n0", 10.0, 1, "fleet 1+1/2; pool h100 1+1/2");
}

#[test]
fn r2_a11_what_no_document_of_a_node_says_counts_too() {
    let mut all = machines("n*12");
    let (ids, budgets) = (vec![all[0].node.id.clone()], settings(10.0, 1));
    let asked: HashSet<&NodeId> = ids.iter().collect();
    let leaving = Leaving { by: "ada", since: at(-5), how: "tested" };
    let verdict = |all: &[Machine]| {
        let mut fleet = fleet(all, &[], &[], None);
        fleet.nodes[3].leaving = Some(leaving);
        told(&impacts(&fleet, &asked, &budgets, at(0)))
    };
    let out = "fleet 1+1/1!: n3 tested by ada; pool h100 1+1/1!: n3 tested by ada";
    assert_eq!(verdict(&all), out);
    // Its instance was terminated by a person: the pool ended the node.
    all[3].node.duty = Duty::Terminated(hold("argosy", false, -3));
    assert_eq!(verdict(&all), out);
}

#[test]
fn a_command_disrupts_what_it_ends_or_shares() {
    use CommandKind::{Cordon, Drain, RunDiagnostic, Terminate, Uncordon};
    let rows = [
        (Cordon, "n", Effect::Cordons),
        (Cordon, "n:theirs", Effect::None),
        (Cordon, "n:draining", Effect::None),
        (Drain, "n", Effect::Disrupts),
        (Drain, "n:theirs", Effect::Disrupts),
        (Drain, "n:ours-5", Effect::Disrupts),
        (Drain, "n:draining", Effect::None),
        (Terminate, "n", Effect::Disrupts),
        (Terminate, "n:emptied", Effect::None),
        (Terminate, "n:gone", Effect::None),
        (Uncordon, "n:theirs", Effect::None),
        (RunDiagnostic, "n", Effect::Disrupts),
        (RunDiagnostic, "n:emptied", Effect::None),
    ];
    for (kind, node, expected) in rows {
        let node = &machines(node)[0].node;
        assert_eq!(effect(kind, &BTreeMap::new(), node), expected, "{kind:?} {:?}", node.duty);
    }
    for (test, expected) in [("quick", Effect::None), ("stress", Effect::Disrupts)] {
        let parameters = BTreeMap::from([("test".to_owned(), test.to_owned())]);
        assert_eq!(effect(RunDiagnostic, &parameters, &machines("n")[0].node), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// However nodes are asked for, one at a time or in batches: no more are out than a budget allows, and one is
    /// always allowed where nobody else is out.
    #[test]
    fn r2_a11_requests_within_the_budgets_never_exceed_them(
        percent in 0_u32..60,
        at_least in 0_u32..3,
        size in 1_usize..24,
        requests in proptest::collection::vec((0_usize..24, 1_usize..4, any::<bool>()), 1..40),
    ) {
        let budgets = settings(f64::from(percent), at_least);
        let mut all: Vec<Machine> = Vec::new();
        for index in 0..size {
            let (pool, zone) = (index % 3, index % 2);
            all.extend(machines(&format!("n{index}:pool=p{pool},zone=z{zone}")));
        }
        for (first, count, ends) in requests {
            let chosen: Vec<usize> = (0..count)
                .map(|next| (first + next) % size)
                .filter(|index| all[*index].node.duty == Duty::Active)
                .collect();
            let asked: Vec<NodeId> = chosen.iter().map(|index| all[*index].node.id.clone()).collect();
            let found = judged(&all, &asked, &budgets);
            let over = found.iter().any(Impact::is_exceeded);
            let alone = found.iter().all(|impact| impact.used == 0 && impact.asked == 1);
            prop_assert!(!alone || !over, "one is always allowed: {}", told(&found));
            if over {
                continue;
            }
            for index in chosen {
                let hold = hold("ada", false, -1);
                all[index].node.duty =
                    if ends { Duty::Terminated(hold) } else { Duty::Cordoned(hold) };
            }
        }
        let out = |pool: &str| {
            let here = all.iter().filter(|it| it.node.pool.as_deref() == Some(pool));
            let (out, all): (Vec<_>, Vec<_>) = here.partition(|it| it.node.duty != Duty::Active);
            (out.len(), out.len() + all.len())
        };
        for pool in ["p0", "p1", "p2"] {
            let (out, total) = out(pool);
            let most = crate::remedy::allowed(&budgets.defaults.budget, total).max(1);
            prop_assert!(out <= most, "{pool}: {out} of {total}, and {most} may be");
        }
    }
}
