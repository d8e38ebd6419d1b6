use super::{Attempts, Plan, Rules, plan};
use crate::adapter::{AdapterName, AdapterSpec};
use crate::backoff;
use crate::fixture::{adapters, at, at_generation, by, cluster, draft, hear, name, seconds, told};
use crate::resource::{Dispatch, Resource};
use crate::status::{Phase, phase};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// `dns:2@1+5`: two runs failed, the last began at 5; `dns:run@1+5`: it is under way.
fn attempts(text: &str) -> BTreeMap<AdapterName, Attempts> {
    text.split_whitespace()
        .map(|word| {
            let (adapter, rest) = word.split_once(':').unwrap();
            let (failures, rest) = rest.split_once('@').unwrap();
            let (generation, time) = rest.split_once('+').unwrap();
            let past = Attempts {
                generation: generation.parse().unwrap(),
                running: failures == "run",
                started: at(time.parse().unwrap()),
                failures: failures.parse().unwrap_or(0),
            };
            (name(adapter), past)
        })
        .collect()
}

fn line(plan: &Plan) -> String {
    let mut words: Vec<String> =
        plan.run.iter().map(|turn| format!("{}: {}", turn.adapter, turn.reason)).collect();
    words.extend(plan.stalled.iter().map(|name| format!("{name} stalled")));
    words.extend(plan.finalize.then(|| "finalize".to_owned()));
    words.extend(plan.wake_at.map(|at| format!("wake {}", seconds(at))));
    words.join(", ")
}

#[track_caller]
fn check(graph: &str, reports: &str, past: &str, now: i64, expected: &str) {
    let specs = adapters(graph);
    let of = told(cluster(&specs), &specs, reports);
    let plan = plan(&of, &specs, false, &attempts(past), at(now), &Rules::default());
    assert_eq!(line(&plan), expected, "{graph} | {reports} | {past} | {now}");
}

const CHAIN: &str = "a b<a c<b";

#[test]
fn a_turn_comes_as_soon_as_what_is_before_it_is_done() {
    check(CHAIN, "", "", 0, "a: its turn, wake 60");
    check(CHAIN, "a:T@1+5", "", 5, "b: its turn, wake 65");
    check(CHAIN, "a:T@1+5 b:T@1+6", "", 6, "c: its turn, wake 66");
    check("a b<a c<a d<b,c", "a:T@1+5", "", 5, "b: its turn, c: its turn, wake 65");
    check("a b<a c<a d<b,c", "a:T@1+5 b:T@1+6", "c:run@1+5", 6, "wake 65");
}

#[test]
fn children_hold_back_nothing_but_a_deletion() {
    let specs = adapters("a");
    let plan = plan(&cluster(&specs), &specs, true, &BTreeMap::new(), at(0), &Rules::default());
    assert_eq!(line(&plan), "a: its turn, wake 60");
}

#[test]
fn a_run_that_is_under_way_is_not_started_again() {
    check(CHAIN, "", "a:run@1+0", 30, "wake 60");
}

#[test]
fn an_attempt_at_another_generation_does_not_count() {
    let specs = adapters(CHAIN);
    let of = at_generation(told(cluster(&specs), &specs, "a:T@1+5"), 2, 10);
    let plan = plan(&of, &specs, false, &attempts("a:run@1+9"), at(10), &Rules::default());
    assert_eq!(line(&plan), "a: its turn, wake 70");
}

#[test]
fn whoever_reported_too_early_is_called_when_its_turn_comes() {
    check(CHAIN, "b:FF@1+3/PreconditionsNotMet a:T@1+5", "", 5, "b: its turn, wake 65");
}

#[test]
fn what_is_done_is_looked_at_again_at_the_resync_of_what_is_ready() {
    let done = "a:T@1+1 b:T@1+2 c:T@1+3";
    check(CHAIN, done, "", 3, "wake 1801");
    check(CHAIN, done, "", 1800, "wake 1801");
    check(CHAIN, done, "", 1801, "a: resync of what is done, wake 1802");
    // Not sooner because somebody else fails.
    check("a b", "a:T@1+1 b:F@1+1", "b:run@1+1", 30, "wake 61");
    // What works, but is not well, is looked at as often as a failure.
    check("a", "a:TTF@1+1/HealthCheckFailed", "a:9@1+1", 11, "a: retry after a failure");
    check("a!", "a:TTF@1+1/HealthCheckFailed", "a:0@1+1", 11, "wake 1801");
    // A resync that failed is tried again soon.
    check("a", "a:T@1+1", "a:9@1+1801", 1811, "a: retry after a failure");
}

#[test]
fn what_is_at_work_is_looked_at_again_at_the_resync_of_what_is_not_ready() {
    check("a", "a:FT@1+5/JobRunning", "a:0@1+4", 14, "wake 15");
    check("a", "a:FT@1+5/JobRunning", "a:0@1+4", 15, "a: resync of what is not done, wake 65");
    check("a", "a:UT@1+5", "a:0@1+4", 15, "a: resync of what is not done, wake 65");
    // It ended without a word.
    check("a", "", "a:0@1+5", 15, "a: resync of what is not done, wake 60");
}

#[test]
fn what_was_at_work_in_a_process_that_is_gone_is_begun_anew_at_once() {
    check("a", "a:FT@1+5/JobRunning", "", 6, "a: its turn, wake 65");
    check("a", "a:UT@1+5", "", 6, "a: its turn, wake 65");
    // Work outside goes on, and a restart does not shorten the wait after a failure.
    check("a!", "a:UT@1+5", "", 6, "wake 15");
    check("a", "a:F@1+5/QuotaExceeded", "", 5, "wake 5");
}

#[test]
fn a_failure_is_retried_with_backoff_and_never_later_than_a_resync_by_default() {
    let specs = adapters("a");
    let of = told(cluster(&specs), &specs, "a:F@1+5/QuotaExceeded");
    let rules = Rules::default();
    for failures in [0, 1, 2, 5, 100] {
        let past = attempts(&format!("a:{failures}@1+5"));
        let wake = plan(&of, &specs, false, &past, at(5), &rules).wake_at.unwrap();
        let who = format!("{}/a", of.id);
        let wait = backoff::delay(&who, failures.max(1), rules.backoff_first, rules.backoff_max);
        assert_eq!(wake, at(5) + wait, "after {failures}");
        // The seed: once the cause is gone, the cluster recovers within the 10 seconds.
        assert!(wake <= at(15));
        let then = plan(&of, &specs, false, &past, wake, &rules);
        assert_eq!(then.run[0].reason, "retry after a failure");
    }
    // After a restart nobody remembers the attempts, but the report does.
    let forgotten = plan(&of, &specs, false, &BTreeMap::new(), at(5), &rules);
    assert!(forgotten.run.is_empty() && forgotten.wake_at < Some(at(7)));
}

#[test]
fn h4_silence_past_the_deadline_is_a_stall() {
    check("a~", "", "", 59, "wake 60");
    check("a~", "", "", 60, "a stalled");
    check("a", "", "a:run@1+0", 60, "a stalled");
    // The time counts from its turn, and from its last word.
    check("a b~<a", "a:T@1+100", "", 159, "wake 160");
    check("a b~<a", "a:T@1+100", "", 160, "b stalled, wake 1900");
    check("a~", "a:FT@1+50/JobRunning", "", 109, "wake 110");
    check("a~", "a:FT@1+50/JobRunning", "", 110, "a stalled");
    check("a~", "a:T@1+50", "", 500, "");
    // Nobody stalls before its turn.
    check("a~ b~<a", "", "", 60, "a stalled");
}

#[test]
fn h4_a_stall_is_told_once() {
    let specs = adapters("a~");
    let mut of = cluster(&specs);
    of.stalled.insert(name("a"), at(60));
    assert_eq!(
        plan(&of, &specs, false, &BTreeMap::new(), at(99), &Rules::default()),
        Plan::default()
    );
}

#[test]
fn a_webhook_is_told_once_a_generation_and_again_at_each_resync() {
    check("a!", "", "", 0, "a: its turn, wake 60");
    check("a!", "", "a:0@1+0", 9, "wake 10");
    check("a!", "", "a:0@1+0", 10, "a: resync of what is not done, wake 60");
    // Its failure is its own to retry; an event that did not arrive is ours.
    check("a!", "a:F@1+2/QuotaExceeded", "a:0@1+0", 11, "wake 12");
    check("a!", "", "a:9@1+0", 10, "a: retry after a failure, wake 60");
    check("a!", "a:T@1+2", "a:0@1+0", 12, "wake 1802");
}

#[test]
fn a_webhook_that_refused_is_left_alone_until_the_next_generation() {
    let specs = adapters("a!");
    let mut of = cluster(&specs);
    let rejected = Some("410 Gone".to_owned());
    of.dispatches.insert(name("a"), Dispatch { generation: 1, delivered: 1, rejected });
    let ask =
        |of: &Resource| line(&plan(of, &specs, false, &BTreeMap::new(), at(30), &Rules::default()));
    assert_eq!(ask(&of), "wake 60");
    assert_eq!(ask(&at_generation(of, 2, 30)), "a: its turn, wake 90");
}

#[test]
fn what_nobody_waits_for_is_run_all_the_same() {
    check("a logs?", "a:T@1+1", "", 1, "logs: its turn, wake 60");
}

/// Deleted at 10, with these reports afterwards.
#[track_caller]
fn deleting(graph: &str, reports: &str, children: bool, now: i64, expected: &str) {
    let specs = adapters(graph);
    let of = told(cluster(&specs), &specs, "a:T@1+1 b:T@1+2");
    let of = of.deleted(by("eve", 10), &specs, children).unwrap();
    let of = told(of, &specs, reports);
    let plan = plan(&of, &specs, children, &BTreeMap::new(), at(now), &Rules::default());
    assert_eq!(line(&plan), expected, "{reports} | {children} | {now}");
}

#[test]
fn h8_nothing_is_cleaned_up_or_removed_while_a_child_is_left() {
    deleting(CHAIN, "", true, 10, "");
    deleting(CHAIN, "", true, 9999, "");
    deleting(CHAIN, "c:FTTT@2+11 b:FTTT@2+12 a:FTTT@2+13", true, 20, "");
}

#[test]
fn h7_cleanup_goes_the_other_way_and_ends_with_the_record() {
    // `c` never ran, but it may have begun: only its own word says that nothing is left.
    deleting(CHAIN, "", false, 10, "c: its turn, wake 70");
    deleting(CHAIN, "c:FTTT@2+11", false, 11, "b: its turn, wake 71");
    deleting(CHAIN, "c:FTTT@2+11 b:FTTT@2+12", false, 12, "a: its turn, wake 72");
    deleting(CHAIN, "c:FTTT@2+11 b:FTTT@2+12 a:FTTT@2+13", false, 13, "finalize");
    deleting("a b<a c<a", "", false, 10, "c: its turn, b: its turn, wake 70");
    // A word about the generation before is not about the deletion.
    deleting("a", "a:FTTT@1+11", false, 11, "a: its turn, wake 70");
    deleting("a", "a:UTTT@2+11", false, 11, "finalize");
}

#[test]
fn removal_waits_for_nobody_who_is_not_required() {
    deleting("a logs?<a", "", false, 10, "logs: its turn, a: its turn, wake 70");
    deleting("a logs?<a", "a:FTTT@2+11", false, 11, "finalize");
    deleting("", "", false, 10, "finalize");
    deleting("", "", true, 10, "");
}

#[test]
fn a_clock_that_is_ahead_neither_delays_nor_repeats_a_turn() {
    let specs = adapters("a~ b<a");
    let of = hear(&cluster(&specs), &specs, &draft("a:T@1+200"), at(5));
    let ask =
        |past: &str| line(&plan(&of, &specs, false, &attempts(past), at(5), &Rules::default()));
    assert_eq!(ask(""), "b: its turn, wake 260");
    assert_eq!(ask("b:0@1+5"), "wake 15");
}

/// Runs whatever is due, each at once and with success, until nothing is; says who ran, in order.
fn drive(mut of: Resource, specs: &[AdapterSpec], word: &str) -> (Resource, Vec<String>, Plan) {
    let mut ran = Vec::new();
    loop {
        let now = seconds(of.updated.at) + 1;
        let next = plan(&of, specs, false, &BTreeMap::new(), at(now), &Rules::default());
        let Some(turn) = next.run.first() else { return (of, ran, next) };
        ran.push(turn.adapter.to_string());
        let report = format!("{}:{word}@{}+{now}", turn.adapter, of.generation);
        of = told(of, specs, &report);
    }
}

/// Five adapters, each depending on some of those before it; all required.
fn some_graph() -> impl Strategy<Value = Vec<AdapterSpec>> {
    proptest::collection::vec(0_u32..16, 5).prop_map(|masks| {
        let names = ["a", "b", "c", "d", "e"];
        let words = names.iter().zip(masks).enumerate().map(|(place, (name, mask))| {
            let earlier = names.iter().take(place).enumerate();
            let after: Vec<&str> =
                earlier.filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, name)| *name).collect();
            format!("{name}<{}", after.join(","))
        });
        adapters(&words.collect::<Vec<_>>().join(" "))
    })
}

fn some_report() -> impl Strategy<Value = String> {
    let said = prop_oneof!["T", "F", "FF", "UT", "UF", "TTF", "FTF", "FTTT", "UTTT", "FTTF"];
    let reason = prop_oneof!["", "JobRunning", "PreconditionsNotMet"];
    (prop_oneof!["a", "b", "c"], said, 1_u32..=2, 0_i64..250, reason).prop_map(
        |(who, said, generation, time, reason)| {
            format!("{who}:{said}@{generation}+{time}/{reason}")
        },
    )
}

fn some_attempt() -> impl Strategy<Value = String> {
    let failures = prop_oneof!["run", "0", "1", "2", "7"];
    (prop_oneof!["a", "b", "c"], failures, 1_u32..=2, 0_i64..250).prop_map(
        |(who, failures, generation, time)| format!("{who}:{failures}@{generation}+{time}"),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_graph_comes_to_rest_after_one_run_each_and_goes_the_way_it_came(
        specs in some_graph(),
    ) {
        let (of, mut built, rest) = drive(cluster(&specs), &specs, "T");
        prop_assert_eq!(phase(&of), Phase::Ready);
        prop_assert_eq!(line(&rest), "wake 1801");
        let of = of.deleted(by("eve", 100), &specs, false).unwrap();
        let (_, mut cleaned, end) = drive(of, &specs, "FTTT");
        prop_assert_eq!(line(&end), "finalize");
        for spec in &specs {
            let place = |ran: &[String], name: &AdapterName| {
                ran.iter().position(|who| *who == name.as_str())
            };
            for before in &spec.depends_on {
                prop_assert!(place(&built, before) < place(&built, &spec.name));
                prop_assert!(place(&cleaned, &spec.name) < place(&cleaned, before));
            }
        }
        built.sort();
        cleaned.sort();
        let each_once = ["a", "b", "c", "d", "e"];
        prop_assert_eq!(built, each_once);
        prop_assert_eq!(cleaned, each_once);
    }

    #[test]
    fn at_wake_up_there_is_something_new_and_not_before(
        graph in proptest::sample::select(vec!["a b<a c<b", "a! b~<a c?", "a~ b c!<a,b", "a? b<a c?<b"]),
        reports in proptest::collection::vec(some_report(), 0..6),
        past in proptest::collection::vec(some_attempt(), 0..4),
        (deletion, children, rejected, stalled) in any::<(bool, bool, bool, bool)>(),
        now in 0_i64..300,
        between in 0.0..1.0,
    ) {
        let specs = adapters(graph);
        let mut of = at_generation(cluster(&specs), 2, 20);
        of.deletion = deletion.then(|| by("eve", 20));
        for report in &reports {
            of = hear(&of, &specs, &draft(report), at(125));
        }
        if rejected {
            let rejected = Some("410 Gone".to_owned());
            of.dispatches.insert(name("a"), Dispatch { generation: 2, delivered: 1, rejected });
        }
        if stalled {
            of.stalled.insert(name("b"), at(100));
        }
        let past = attempts(&past.join(" "));
        let rules = Rules::default();
        let ask = |now| plan(&of, &specs, children, &past, now, &rules);
        let today = ask(at(now));
        let Some(wake_at) = today.wake_at else {
            let never = ask(at(1_000_000));
            prop_assert_eq!((never.run, never.stalled), (today.run, today.stalled));
            return Ok(());
        };
        prop_assert!(at(now) < wake_at);
        let meanwhile = at(now) + wake_at.duration_since(at(now)).mul_f64(between * 0.999);
        prop_assert_eq!(&ask(meanwhile), &today);
        let then = ask(wake_at);
        let more = |plan: &Plan| plan.run.len() + plan.stalled.len();
        prop_assert!(more(&today) < more(&then), "{today:?}\n{then:?}");
    }
}
