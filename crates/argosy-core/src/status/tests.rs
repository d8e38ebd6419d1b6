use super::{Phase, last_transition, phase};
use crate::adapter::Tri;
use crate::fixture::{
    adapters, at, at_generation, by, cluster, condition, lines, name, seconds, told,
};
use crate::resource::{Dispatch, Resource};

/// The conditions of a cluster with adapters `validation` and `dns` after these reports.
#[track_caller]
fn check(reports: &str, expected: &[&str]) {
    let specs = adapters("validation dns<validation logs?");
    assert_eq!(lines(&told(cluster(&specs), &specs, reports)), expected, "{reports}");
}

#[test]
fn all_required_adapters_make_a_cluster_reconciled() {
    check(
        "",
        &[
            "Reconciled=False/ReconciledMissingAdapters@1",
            "LastKnownReconciled=False/AdaptersMissingReports@1",
        ],
    );
    check(
        "validation:T@1+1/Valid",
        &[
            "Reconciled=False/ReconciledMissingAdapters@1",
            "LastKnownReconciled=False/AdaptersMissingReports@1",
            "ValidationSuccessful=True/Valid@1",
            "Healthy=True/NoneUnhealthy@1",
        ],
    );
    check(
        "dns:T@1+2/Done validation:T@1+1/Valid",
        &[
            "Reconciled=True/ReconciledAll@1",
            "LastKnownReconciled=True/AllAdaptersReconciled@1",
            "ValidationSuccessful=True/Valid@1",
            "DnsSuccessful=True/Done@1",
            "Healthy=True/NoneUnhealthy@1",
        ],
    );
    check(
        "validation:T@1+1/Valid dns:F@1+2/DNSZoneNotFound",
        &[
            "Reconciled=False/ReconciledMissingAdapters@1",
            "LastKnownReconciled=False/AdapterReportedNotAvailable@1",
            "ValidationSuccessful=True/Valid@1",
            "DnsSuccessful=False/DNSZoneNotFound@1",
            "Healthy=True/NoneUnhealthy@1",
        ],
    );
}

#[test]
fn an_adapter_that_is_not_required_has_no_say() {
    check(
        "logs:FFF@1+1 stranger:FFF@1+1",
        &[
            "Reconciled=False/ReconciledMissingAdapters@1",
            "LastKnownReconciled=False/AdaptersMissingReports@1",
        ],
    );
}

#[test]
fn a_first_unknown_is_heard_but_says_nothing() {
    check(
        "validation:U@1+1",
        &[
            "Reconciled=False/ReconciledMissingAdapters@1",
            "LastKnownReconciled=False/AdaptersMissingReports@1",
            "Healthy=True/NoneUnhealthy@1",
        ],
    );
}

#[test]
fn ready_with_a_sick_adapter_is_ready_and_not_healthy() {
    let specs = adapters("validation dns<validation");
    let of = told(cluster(&specs), &specs, "validation:T@1+1 dns:TTF@1+2");
    assert_eq!(phase(&of), Phase::Ready);
    let healthy = condition(&of, "Healthy");
    assert_eq!((healthy.status, healthy.last_transition_time), (Tri::False, at(2)));
    let of = told(of, &specs, "dns:T@1+9");
    let healthy = condition(&of, "Healthy");
    assert_eq!((healthy.status, healthy.last_transition_time), (Tri::True, at(9)));
    // What was wrong with the generation before is not held against this one.
    let of = told(of, &specs, "dns:TTF@1+10");
    let of = at_generation(of, 2, 20).refreshed(&specs, false, at(20)).unwrap();
    let healthy = condition(&of, "Healthy");
    assert_eq!((healthy.status, healthy.last_transition_time), (Tri::True, at(20)));
}

#[test]
fn what_is_missing_is_named() {
    let specs = adapters("validation dns infrastructure");
    let of = told(cluster(&specs), &specs, "validation:T@1+1 dns:F@1+1");
    assert_eq!(
        condition(&of, "Reconciled").message,
        "Waiting for dns, infrastructure at generation 1; reported so far: dns, validation"
    );
    assert_eq!(
        condition(&cluster(&specs), "Reconciled").message,
        "Waiting for dns, infrastructure, validation at generation 1; reported so far: none"
    );
}

/// `LastKnownReconciled` of a cluster at generation 3 with adapters a and b, step by step.
#[track_caller]
fn last_known(steps: &[(&str, &str)]) {
    let specs = adapters("a b");
    let start = at_generation(cluster(&specs), 3, 0);
    steps.iter().fold(start, |of, (report, expected)| {
        let of = told(of, &specs, report);
        let said = condition(&of, "LastKnownReconciled");
        let (updated, changed) = (said.last_updated_time, said.last_transition_time);
        let line = format!(
            "{:?}@{} {} updated {} changed {}",
            said.status,
            said.observed_generation,
            said.reason,
            seconds(updated),
            seconds(changed)
        );
        assert_eq!(line, *expected, "after {report}");
        of
    });
}

#[test]
fn last_known_is_false_until_all_were_there_together() {
    last_known(&[
        ("a:T@2+10", "False@2 AdaptersMissingReports updated 0 changed 0"),
        ("b:T@1+11", "False@2 AdaptersNotAtSameGeneration updated 0 changed 0"),
        ("b:T@2+12", "True@2 AllAdaptersReconciled updated 10 changed 10"),
    ]);
    last_known(&[("a:F@2+10", "False@2 AdaptersMissingReports updated 10 changed 0")]);
}

#[test]
fn last_known_is_sticky_while_a_newer_generation_is_worked_on() {
    last_known(&[
        ("a:T@1+10 b:T@1+11", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        ("a:T@2+20", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        ("a:F@2+21", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        ("a:U@2+22", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        ("b:T@2+23", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        ("a:T@2+24", "True@2 AllAdaptersReconciled updated 23 changed 10"),
        ("b:F@2+30", "False@2 AdapterReportedNotAvailable updated 24 changed 24"),
    ]);
}

#[test]
fn last_known_ends_when_what_was_known_fails() {
    last_known(&[
        ("a:T@1+10 b:T@1+11", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        ("a:T@2+20", "True@1 AllAdaptersReconciled updated 10 changed 10"),
        // b is still at generation 1, and generation 1 is not in place any more.
        ("b:F@1+21", "False@2 AdapterReportedNotAvailable updated 10 changed 10"),
    ]);
}

#[test]
fn an_unknown_word_about_a_new_generation_takes_no_condition_away() {
    let specs = adapters("a b");
    let of = told(cluster(&specs), &specs, "a:T@1+10/Done b:T@1+11/Done");
    let of = told(at_generation(of, 2, 20), &specs, "a:U@2+21");
    assert_eq!(
        lines(&of),
        [
            "Reconciled=False/ReconciledMissingAdapters@2",
            "LastKnownReconciled=True/AllAdaptersReconciled@1",
            "ASuccessful=True/Done@1",
            "BSuccessful=True/Done@1",
            "Healthy=True/NoneUnhealthy@2",
        ]
    );
}

/// `status updated changed created` of `Reconciled`.
fn reconciled(of: &Resource) -> String {
    let said = condition(of, "Reconciled");
    format!(
        "{:?} updated {} changed {} created {}",
        said.status,
        seconds(said.last_updated_time),
        seconds(said.last_transition_time),
        seconds(said.created_time)
    )
}

#[test]
fn reconciled_is_as_old_as_its_oldest_report() {
    let specs = adapters("a b");
    let of = cluster(&specs);
    assert_eq!(reconciled(&of), "False updated 0 changed 0 created 0");
    let of = told(of, &specs, "a:T@1+10");
    assert_eq!(reconciled(&of), "False updated 10 changed 0 created 0");
    let of = told(of, &specs, "b:T@1+20");
    assert_eq!(reconciled(&of), "True updated 10 changed 10 created 0");
    let of = told(of, &specs, "a:T@1+30");
    assert_eq!(reconciled(&of), "True updated 20 changed 10 created 0");
    // A new wish takes it back at the moment of the wish.
    let of = at_generation(of, 2, 100).refreshed(&specs, false, at(100)).unwrap();
    assert_eq!(reconciled(&of), "False updated 100 changed 100 created 0");
    // An Unknown word keeps it fresh.
    let of = told(of, &specs, "a:U@2+110");
    assert_eq!(reconciled(&of), "False updated 110 changed 100 created 0");
}

#[test]
fn h1_a_word_about_an_old_generation_never_makes_a_cluster_ready() {
    let specs = adapters("a b");
    let of = told(at_generation(cluster(&specs), 2, 0), &specs, "a:T@1+1 b:T@1+2 a:T@2+3");
    assert_eq!(phase(&of), Phase::NotReady);
    assert_eq!(phase(&told(of, &specs, "b:T@2+4")), Phase::Ready);
}

#[test]
fn a_cluster_without_required_adapters_is_reconciled_at_once() {
    let specs = adapters("logs?");
    let of = cluster(&specs);
    assert_eq!(phase(&of), Phase::Ready);
    assert_eq!(lines(&of)[0], "Reconciled=True/NoAdaptersRequired@1");
    // A stray report does not change that.
    assert_eq!(phase(&told(of, &specs, "logs:F@1+1 stranger:F@1+1")), Phase::Ready);
}

fn deleting(reports: &str, children: bool) -> Resource {
    let specs = adapters("a b<a");
    let of = told(cluster(&specs), &specs, "a:T@1+1 b:T@1+2");
    let of = of.deleted(by("eve", 10), &specs, true).unwrap();
    let of = told(of, &specs, reports);
    of.refreshed(&specs, children, at(50)).unwrap_or(of)
}

#[test]
fn h8_a_cluster_being_deleted_waits_for_its_children() {
    assert_eq!(lines(&deleting("", true))[0], "Reconciled=False/ReconciledMissingAdapters@2");
    // Available is not the question any more.
    let of = deleting("a:T@2+11 b:T@2+12", false);
    assert_eq!(lines(&of)[0], "Reconciled=False/ReconciledMissingAdapters@2");
    let cleaned = "b:FTTT@2+20 a:FTTT@2+21";
    assert_eq!(
        lines(&deleting(cleaned, true))[0],
        "Reconciled=False/ReconciledWaitingForChildren@2"
    );
    assert_eq!(lines(&deleting(cleaned, false))[0], "Reconciled=True/ReconciledAll@2");
    assert_eq!(phase(&deleting(cleaned, false)), Phase::Terminating);
}

#[test]
fn finalized_counts_even_when_available_is_unknown() {
    let of = deleting("b:UTTT@2+20 a:UTTT@2+21", false);
    assert_eq!(lines(&of)[0], "Reconciled=True/ReconciledAll@2");
}

#[test]
fn h4_a_stalled_adapter_says_so_and_what_to_do() {
    let specs = adapters("a b");
    let mut of = cluster(&specs);
    of.stalled.insert(name("b"), at(60));
    let of = of.refreshed(&specs, false, at(60)).unwrap();
    let said = condition(&of, "Stalled");
    assert_eq!((said.status, said.reason.as_str()), (Tri::True, "AdapterStalled"));
    assert_eq!(
        said.message,
        "No report in time from b (since 2025-10-28T12:01:00Z): see /statuses for the last word of \
         each adapter, check that the adapter runs, and fix the cause; its next report clears this"
    );
    assert_eq!(said.last_transition_time, at(60));
    let recovered = told(of.clone(), &specs, "b:F@1+70");
    assert!(recovered.conditions.iter().all(|said| said.kind != "Stalled"));
    // Whom nobody configured any more, nobody waits for.
    let fewer = of.refreshed(&adapters("a"), false, at(61)).unwrap();
    assert!(fewer.conditions.iter().all(|said| said.kind != "Stalled"));
    // Somebody else's word is not the one that was missed.
    assert_eq!(condition(&told(of, &specs, "a:T@1+70"), "Stalled").status, Tri::True);
}

#[test]
fn a_refused_event_is_shown_until_the_next_generation() {
    let specs = adapters("a! b");
    let mut of = cluster(&specs);
    let rejected = Some("410 Gone".to_owned());
    of.dispatches.insert(name("a"), Dispatch { generation: 1, delivered: 1, rejected });
    let of = of.refreshed(&specs, false, at(5)).unwrap();
    assert_eq!(
        condition(&of, "EventRejected").message,
        "The event for generation 1 was refused by a (410 Gone): fix the adapter, then change the \
         resource to send a new one"
    );
    let of = at_generation(of, 2, 10).refreshed(&specs, false, at(10)).unwrap();
    assert!(of.conditions.iter().all(|said| said.kind != "EventRejected"));
}

#[test]
fn the_phase_is_derived_and_its_change_is_timed() {
    let specs = adapters("a b logs?");
    let rows = [
        ("logs:T@1+5", Phase::Pending, 0, 5),
        ("a:F@1+10", Phase::NotReady, 10, 10),
        ("a:F@1+15", Phase::NotReady, 10, 10),
        ("a:T@1+20", Phase::NotReady, 10, 20),
        ("b:T@1+30", Phase::Ready, 30, 30),
        ("b:T@1+40", Phase::Ready, 30, 30),
        ("b:TTF@1+50", Phase::Ready, 30, 50),
        ("b:F@1+60", Phase::NotReady, 60, 60),
    ];
    rows.into_iter().fold(cluster(&specs), |of, (report, expected, since, changed)| {
        let of = told(of, &specs, report);
        let seen = (phase(&of), seconds(of.phase_since), seconds(last_transition(&of)));
        assert_eq!(seen, (expected, since, changed), "{report}");
        of
    });
}
