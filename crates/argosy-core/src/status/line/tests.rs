use super::{AdapterPhase, adapter_line};
use crate::adapter::{AdapterGraph, AdapterSpec, ReportDraft};
use crate::fixture::{adapters, at, at_generation, by, cluster, draft, hear, name, seconds, told};
use crate::resource::{Kind, Resource};

/// The line of `dns` at generation 1 after one report.
#[track_caller]
fn check(report: &str, expected: AdapterPhase) {
    let specs = adapters("dns");
    let of = told(cluster(&specs), &specs, report);
    assert_eq!(adapter_line(&of, &name("dns"), &specs, false).phase, expected, "{report}");
}

#[test]
fn a_report_is_one_of_four_words() {
    let rows = [
        ("dns:T", AdapterPhase::Complete),
        ("dns:TFF", AdapterPhase::Complete),
        ("dns:FTF", AdapterPhase::Failed),
        ("dns:UTF", AdapterPhase::Failed),
        ("dns:UT", AdapterPhase::Running),
        ("dns:UF", AdapterPhase::Pending),
        ("dns:UU", AdapterPhase::Pending),
        ("dns:FF/PreconditionsNotMet", AdapterPhase::Pending),
        ("dns:FU/NotStarted", AdapterPhase::Pending),
        ("dns:FF/Timeout", AdapterPhase::Failed),
        ("dns:FF/ProvisioningFailed", AdapterPhase::Failed),
        ("dns:FT/JobRunning", AdapterPhase::Running),
        ("dns:FT/ZoneCreationInProgress", AdapterPhase::Running),
        ("dns:FT/PreconditionsNotMet", AdapterPhase::Failed),
        ("dns:FF/JobRunning", AdapterPhase::Failed),
        ("dns:FT/QuotaExceeded", AdapterPhase::Failed),
        ("dns:FT", AdapterPhase::Failed),
    ];
    for (report, expected) in rows {
        check(report, expected);
    }
    // What was once done stays done while it is looked at again; what failed is at work again.
    check("dns:T@1+1 dns:UT@1+2", AdapterPhase::Complete);
    check("dns:FT@1+1/QuotaExceeded dns:UT@1+2", AdapterPhase::Running);
}

#[test]
fn the_word_is_about_this_generation() {
    let specs = adapters("dns");
    let of = told(at_generation(cluster(&specs), 2, 50), &specs, "dns:T@1+10");
    let line = adapter_line(&of, &name("dns"), &specs, false);
    assert_eq!((line.phase, line.message.as_str()), (AdapterPhase::Pending, "Not started"));
    assert_eq!((line.since, line.created_at), (at(50), at(50)));
}

fn saying(report: &str, messages: [&str; 4]) -> ReportDraft {
    let mut draft = draft(report);
    for (said, message) in draft.conditions.iter_mut().zip(messages) {
        said.message = message.to_owned();
    }
    draft
}

#[test]
fn the_sentence_is_the_first_that_was_said() {
    let specs = adapters("dns");
    let rows = [
        (["available", "applied", "health", ""], "available"),
        (["", "applied", "health", ""], "applied"),
        (["", "", "health", ""], "health"),
        (["", "", "", ""], ""),
    ];
    for (messages, expected) in rows {
        let of = hear(&cluster(&specs), &specs, &saying("dns:F", messages), at(0));
        assert_eq!(adapter_line(&of, &name("dns"), &specs, false).message, expected);
    }
    let of = hear(&cluster(&specs), &specs, &saying("dns:T@1+1", ["done", "", "", ""]), at(1));
    let of = hear(&of, &specs, &saying("dns:U@1+2", ["looking", "", "", ""]), at(2));
    assert_eq!(adapter_line(&of, &name("dns"), &specs, false).message, "done");
    let of = of.deleted(by("eve", 9), &specs, false).unwrap();
    let cleaned = saying("dns:FTTT@2+10", ["gone", "", "", "records removed"]);
    let of = hear(&of, &specs, &cleaned, at(10));
    assert_eq!(adapter_line(&of, &name("dns"), &specs, false).message, "records removed");
}

#[test]
fn a_line_began_when_its_word_did() {
    let specs = adapters("dns");
    let rows = [
        ("dns:FF@1+10/NotStarted", AdapterPhase::Pending, 10, 10),
        ("dns:FT@1+20/JobRunning", AdapterPhase::Running, 20, 10),
        ("dns:FT@1+25/JobRunning", AdapterPhase::Running, 20, 10),
        ("dns:FTF@1+30", AdapterPhase::Failed, 30, 10),
        ("dns:T@1+40", AdapterPhase::Complete, 40, 10),
        ("dns:T@1+50", AdapterPhase::Complete, 40, 10),
        // True before and after, but of another generation.
        ("dns:T@2+60", AdapterPhase::Complete, 60, 60),
    ];
    rows.into_iter().fold(cluster(&specs), |of, (report, expected, since, created)| {
        let generation = draft(report).observed_generation;
        let of = told(Resource { generation, ..of }, &specs, report);
        let line = adapter_line(&of, &name("dns"), &specs, false);
        let seen = (line.phase, seconds(line.since), seconds(line.created_at));
        assert_eq!(seen, (expected, since, created), "{report}");
        of
    });
}

fn messages(of: &Resource, specs: &[AdapterSpec], children: bool) -> Vec<String> {
    specs.iter().map(|spec| adapter_line(of, &spec.name, specs, children).message).collect()
}

#[test]
fn who_has_not_started_says_whom_it_waits_for() {
    let specs = AdapterGraph::default().of(Kind::Cluster).to_vec();
    let of = cluster(&specs);
    let waiting = "Waiting for validation and DNS to complete";
    let all = ["Not started", "Waiting for validation to complete", waiting];
    assert_eq!(messages(&of, &specs, false), all);
    let of = told(of, &specs, "validation:T@1+1");
    assert_eq!(messages(&of, &specs, false), ["", "Not started", waiting]);
    let of = told(of, &specs, "dns:T@1+2");
    assert_eq!(messages(&of, &specs, false), ["", "", "Not started"]);
    let specs = adapters("a b c<a,b d<c");
    let of = cluster(&specs);
    assert_eq!(messages(&of, &specs, false)[3], "Waiting for a, b and c to complete");
    let stranger = adapter_line(&of, &name("stranger"), &specs, false);
    assert_eq!(stranger.message, "Not started");
}

#[test]
fn cleanup_waits_the_other_way_round_and_first_of_all_for_the_pools() {
    let specs = AdapterGraph::default().of(Kind::Cluster).to_vec();
    let of = cluster(&specs).deleted(by("eve", 10), &specs, true).unwrap();
    assert_eq!(messages(&of, &specs, true), ["Waiting for node pools to be deleted"; 3]);
    let waiting = "Waiting for infrastructure and DNS to be cleaned up";
    let all = [waiting, "Waiting for infrastructure to be cleaned up", "Not started"];
    assert_eq!(messages(&of, &specs, false), all);
    let of = told(of, &specs, "infrastructure:FTTT@2+20");
    assert_eq!(messages(&of, &specs, false), [waiting, "Not started", ""]);
    let line = |of: &Resource| adapter_line(of, &name("dns"), &specs, false).phase;
    assert_eq!(line(&told(of.clone(), &specs, "dns:TT@2+21")), AdapterPhase::Running);
    assert_eq!(line(&told(of.clone(), &specs, "dns:TTF@2+21")), AdapterPhase::Failed);
    assert_eq!(line(&told(of, &specs, "dns:FTFT@2+21")), AdapterPhase::Complete);
}
