use super::{
    AdapterName, Old, Report, ReportDraft, Reported, TimeWindow, Tri, Verdict, accept,
    condition_kind,
};
use crate::field::Constraint;
use crate::fixture::{
    adapters, at, at_generation, by, cluster, condition, draft, hear, name, object, seconds, told,
};
use crate::invariant;
use crate::resource::{Patch, Resource, Strategy as Merging};
use crate::status::phase;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Map, json};

/// What becomes of a report about a cluster at generation 2, after the reports before it.
#[track_caller]
fn check(before: &str, report: &str, expected: &str) {
    let specs = adapters("validation dns");
    let of = told(at_generation(cluster(&specs), 2, 0), &specs, before);
    let verdict = accept(&of, &draft(report), at(100), TimeWindow::default()).unwrap();
    let word = match verdict {
        Verdict::News(_) => "news",
        Verdict::Old(Old::FutureGeneration) => "future generation",
        Verdict::Old(Old::OlderGeneration) => "older generation",
        Verdict::Old(Old::OlderTime) => "older time",
    };
    assert_eq!(word, expected, "{before} | {report}");
}

#[test]
fn the_first_word_is_news_and_so_is_every_later_one() {
    check("", "dns:T@2+10", "news");
    check("dns:T@2+10", "dns:T@2+11", "news");
    check("dns:T@1+10", "dns:T@2+5", "news");
    check("dns:T@2+10", "dns:U@2+11", "news");
    check("validation:T@2+10", "dns:T@2+5", "news");
    check("", "nobody-knows-me:T@2+10", "news");
}

#[test]
fn h1_a_late_word_about_an_older_generation_is_kept_only_if_it_is_the_newest() {
    check("", "dns:T@1+10", "news");
    check("dns:F@2+10", "dns:T@1+20", "older generation");
    check("", "dns:T@3+10", "future generation");
}

#[test]
fn h2_duplicates_and_older_words_change_nothing() {
    check("dns:T@2+10", "dns:T@2+10", "older time");
    check("dns:T@2+10", "dns:F@2+9", "older time");
    check("dns:T@2+10/Done dns:U@2+20", "dns:T@2+10/Done", "older time");
}

#[test]
fn h2_of_two_words_at_one_instant_the_worse_wins_in_either_order() {
    check("dns:T@2+10", "dns:F@2+10", "news");
    check("dns:F@2+10", "dns:T@2+10", "older time");
    check("dns:U@2+10", "dns:T@2+10", "news");
    check("dns:T@2+10", "dns:U@2+10", "older time");
    check("dns:F@2+10/A", "dns:F@2+10/B", "news");
    check("dns:F@2+10/B", "dns:F@2+10/A", "older time");
    check("dns:TT@2+10", "dns:TF@2+10", "older time");
    check("dns:TF@2+10", "dns:TT@2+10", "news");
}

#[test]
fn a_late_definite_word_fills_in_behind_an_unknown_one() {
    check("dns:U@2+10", "dns:T@2+5", "news");
    check("dns:U@2+10", "dns:T@1+5", "news");
    check("dns:T@2+8 dns:U@2+10", "dns:T@2+5", "older time");
    let specs = adapters("dns");
    let of = told(at_generation(cluster(&specs), 2, 0), &specs, "dns:U@2+10 dns:T@2+5/Done");
    let report = &of.reports[&name("dns")];
    assert_eq!(report.conditions.available.status, Tri::Unknown);
    assert_eq!(report.last_report_time, at(10));
    let definite = report.definite.as_ref().unwrap();
    assert_eq!((definite.at, definite.available.reason.as_str()), (at(5), "Done"));
}

#[test]
fn an_unknown_word_refreshes_and_erases_nothing() {
    let specs = adapters("dns");
    let of = told(cluster(&specs), &specs, "dns:T@1+10/Done dns:U@1+20/Looking");
    let report = &of.reports[&name("dns")];
    assert_eq!(report.last_report_time, at(20));
    assert_eq!(report.definite.as_ref().unwrap().available.reason, "Done");
    assert_eq!(condition(&of, "Reconciled").status, Tri::True);
}

fn transitions(report: &Report) -> String {
    let said = &report.conditions;
    let when = |said: &Reported| seconds(said.last_transition_time);
    format!(
        "available {} applied {} health {} | created {} generation {} report {}",
        when(&said.available),
        when(&said.applied),
        when(&said.health),
        seconds(report.created_time),
        seconds(report.generation_since),
        seconds(report.last_report_time)
    )
}

#[test]
fn a_transition_is_when_the_status_changed_not_the_reason() {
    let specs = adapters("dns");
    let of = at_generation(cluster(&specs), 2, 0);
    let rows = [
        ("dns:F@1+10/A", "available 10 applied 10 health 10 | created 10 generation 10 report 10"),
        ("dns:F@1+20/B", "available 10 applied 10 health 10 | created 10 generation 10 report 20"),
        ("dns:TTF@1+30", "available 30 applied 10 health 30 | created 10 generation 10 report 30"),
        ("dns:TTF@2+40", "available 30 applied 10 health 30 | created 10 generation 40 report 40"),
    ];
    rows.into_iter().fold(of, |of, (report, expected)| {
        let of = told(of, &specs, report);
        assert_eq!(transitions(&of.reports[&name("dns")]), expected, "{report}");
        of
    });
}

#[test]
fn an_adapters_own_conditions_keep_their_transitions_too() {
    let specs = adapters("dns");
    let with = |time, status| {
        let mut draft = draft(&format!("dns:T@1+{time}"));
        let mut own = draft.conditions[0].clone();
        own.kind = "DNSRecordsCreated".to_owned();
        own.status = status;
        draft.conditions.push(own);
        draft
    };
    let of = hear(&cluster(&specs), &specs, &with(10, Tri::True), at(10));
    let of = hear(&of, &specs, &with(20, Tri::True), at(20));
    let own =
        |of: &Resource| of.reports[&name("dns")].conditions.others["DNSRecordsCreated"].clone();
    assert_eq!(own(&of).last_transition_time, at(10));
    let of = hear(&of, &specs, &with(30, Tri::False), at(30));
    assert_eq!((own(&of).status, own(&of).last_transition_time), (Tri::False, at(30)));
}

#[test]
fn a_report_without_its_conditions_is_told_which() {
    let of = cluster(&[]);
    let mut empty = draft("dns:T@1+10");
    empty.conditions.retain(|said| said.kind == "Applied");
    let complaints = accept(&of, &empty, at(10), TimeWindow::default()).unwrap_err();
    let sentences: Vec<&str> = complaints.iter().map(|said| said.message.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "condition Available is missing; every report carries Available, Applied and Health",
            "condition Health is missing; every report carries Available, Applied and Health",
        ]
    );
    // An old report is old, whatever else is wrong with it.
    let of = told(of, &[], "dns:T@1+20");
    let verdict = accept(&of, &empty, at(20), TimeWindow::default());
    assert_eq!(verdict, Ok(Verdict::Old(Old::OlderTime)));
}

#[test]
fn a_time_outside_the_window_is_a_broken_clock() {
    let of = cluster(&[]);
    let judge = |time: i64| {
        let draft = draft(&format!("dns:T@1+{}", 10_000 + time));
        let complaints = accept(&of, &draft, at(10_000), TimeWindow::default()).err()?;
        complaints.first().map(|said| (said.field.clone(), said.constraint))
    };
    assert_eq!(judge(-1800), None);
    assert_eq!(judge(300), None);
    assert_eq!(judge(-1801), Some(("observed_time".to_owned(), Some(Constraint::Min))));
    assert_eq!(judge(301), Some(("observed_time".to_owned(), Some(Constraint::Max))));
}

#[test]
fn a_report_without_a_time_was_made_now() {
    let silent = ReportDraft { observed_time: None, ..draft("dns:T@1") };
    let Ok(Verdict::News(report)) = accept(&cluster(&[]), &silent, at(42), TimeWindow::default())
    else {
        panic!("it is news");
    };
    assert_eq!(report.last_report_time, at(42));
}

#[test]
fn reports_without_a_time_count_in_the_order_they_come_in_even_if_our_clock_is_set_back() {
    let mut of = cluster(&[]);
    for (said, now) in [("dns:F@1", 42), ("dns:T@1", 42), ("dns:F@1", 42), ("dns:T@1", 7)] {
        let silent = ReportDraft { observed_time: None, ..draft(said) };
        let Ok(Verdict::News(report)) = accept(&of, &silent, at(now), TimeWindow::default()) else {
            panic!("{said} at {now} is news");
        };
        let available = if said.contains('T') { Tri::True } else { Tri::False };
        assert_eq!(report.conditions.available.status, available);
        of.reports.insert(silent.adapter, report.into());
    }
}

#[test]
fn names_are_lower_case_letters_digits_and_hyphens() {
    for good in ["a", "dns", "cl-job", "7", &"a".repeat(63)] {
        assert_eq!(AdapterName::parse(good).unwrap().as_str(), good);
    }
    let rows = [
        ("", Constraint::Required),
        ("DNS", Constraint::Pattern),
        ("a b", Constraint::Pattern),
        ("größe", Constraint::Pattern),
        (&"a".repeat(64), Constraint::MaxLength),
    ];
    for (bad, constraint) in rows {
        assert_eq!(AdapterName::parse(bad).unwrap_err().constraint, Some(constraint), "{bad}");
    }
}

#[test]
fn the_condition_of_an_adapter_is_its_name_in_pascal_case() {
    for (adapter, expected) in
        [("dns", "DnsSuccessful"), ("cl-job", "ClJobSuccessful"), ("-a--b", "ABSuccessful")]
    {
        assert_eq!(condition_kind(&name(adapter)), expected);
    }
}

/// Everything about a resource that does not depend on the order in which its reports came.
///
/// Left out: transition and creation times, because a report that comes too late to be news takes
/// its transitions with it; and `LastKnownReconciled`, which by its nature remembers what was known.
fn picture(of: &Resource) -> String {
    let reports: Vec<String> = of
        .reports
        .iter()
        .map(|(name, report)| {
            let mut report = Report::clone(report);
            let said = &mut report.conditions;
            for said in [&mut said.available, &mut said.applied, &mut said.health]
                .into_iter()
                .chain(said.finalized.as_mut())
                .chain(report.definite.as_mut().map(|word| &mut word.available))
            {
                said.last_transition_time = at(0);
            }
            (report.created_time, report.generation_since) = (at(0), at(0));
            format!("{name} {report:?}")
        })
        .collect();
    let conditions: Vec<String> = of
        .conditions
        .iter()
        .filter(|said| said.kind != "LastKnownReconciled")
        .map(|said| {
            let status = said.status;
            format!(
                "{} {status:?} {} {} {} {}",
                said.kind,
                said.reason,
                said.message,
                said.observed_generation,
                said.last_updated_time
            )
        })
        .collect();
    format!("{:?}\n{}\n{}", phase(of), reports.join("\n"), conditions.join("\n"))
}

fn status() -> impl Strategy<Value = Tri> {
    prop_oneof![Just(Tri::True), Just(Tri::False), Just(Tri::Unknown)]
}

/// Reports so alike that they collide: three adapters, three generations, four instants.
fn some_draft() -> impl Strategy<Value = ReportDraft> {
    let head = (prop_oneof!["a", "b", "c"], 1_u32..=3, 0_i64..4, prop_oneof!["", "X", "Y"]);
    let rest = (proptest::array::uniform3(status()), proptest::option::of(status()), 0..2);
    (head, rest).prop_map(|((adapter, generation, time, reason), (said, finalized, data))| {
        let mut draft = draft(&format!("{adapter}:T@{generation}+{time}/{reason}"));
        draft.conditions.iter_mut().zip(said).for_each(|(condition, said)| condition.status = said);
        if let Some(status) = finalized {
            let mut finalized = draft.conditions[0].clone();
            (finalized.kind, finalized.status) = ("Finalized".to_owned(), status);
            draft.conditions.push(finalized);
        }
        draft.data = object(json!({ "try": data }));
        draft
    })
}

/// Some reports, and the same with each one twice, in another order.
fn shuffled() -> impl Strategy<Value = (Vec<ReportDraft>, Vec<ReportDraft>)> {
    proptest::collection::vec(some_draft(), 1..12).prop_flat_map(|drafts| {
        let twice = [drafts.clone(), drafts.clone()].concat();
        (Just(drafts), Just(twice).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn h2_any_order_and_duplication_of_reports_gives_the_same_picture(
        (drafts, others) in shuffled(),
        deleting: bool,
    ) {
        let specs = adapters("a b<a c?<b");
        let mut start = at_generation(cluster(&specs), 2, 0);
        start.deletion = deleting.then(|| by("ada", 0));
        let end = |drafts: &[ReportDraft]| {
            drafts.iter().fold(start.clone(), |of, draft| hear(&of, &specs, draft, at(5)))
        };
        prop_assert_eq!(picture(&end(&drafts)), picture(&end(&others)));
    }

    #[test]
    fn h2_a_word_that_is_repeated_at_once_changes_nothing_at_all(
        drafts in proptest::collection::vec(some_draft(), 1..8),
    ) {
        let specs = adapters("a b<a c?<b");
        let mut of = at_generation(cluster(&specs), 2, 0);
        for draft in &drafts {
            of = hear(&of, &specs, draft, at(5));
            prop_assert_eq!(&hear(&of, &specs, draft, at(6)), &of);
        }
    }

    #[test]
    fn h2_what_each_adapter_says_once_is_last_known_in_any_order(
        (drafts, others) in shuffled(),
    ) {
        let specs = adapters("a b<a c");
        let start = at_generation(cluster(&specs), 2, 0);
        let once = |name: &str, drafts: &[ReportDraft]| {
            drafts.iter().find(|draft| draft.adapter.as_str() == name).cloned()
        };
        let chosen: Vec<ReportDraft> =
            ["a", "b", "c"].iter().filter_map(|name| once(name, &drafts)).collect();
        let others: Vec<&ReportDraft> =
            others.iter().filter(|draft| chosen.contains(draft)).collect();
        let known = |of: &Resource| {
            let said = condition(of, "LastKnownReconciled");
            (said.status, said.reason.clone(), said.observed_generation)
        };
        let one = chosen.iter().fold(start.clone(), |of, draft| hear(&of, &specs, draft, at(5)));
        let other = others.into_iter().fold(start, |of, draft| hear(&of, &specs, draft, at(5)));
        prop_assert_eq!(known(&one), known(&other));
    }

    #[test]
    fn i6_whatever_happens_nothing_goes_backwards(
        steps in proptest::collection::vec((some_draft(), 0..8, -200_i64..200), 1..24),
    ) {
        let specs = adapters("a b<a c?<b");
        let mut of = cluster(&specs);
        for (step, (draft, choice, skew)) in (1_i64..).zip(steps) {
            let now = at(step * 60);
            let after = match choice {
                0 => {
                    let spec = Some(object(json!({ "step": step })));
                    let patch = Patch { spec, labels: None, strategy: Merging::Merge };
                    of.patched(&patch, by("ada", step * 60), &specs).unwrap().unwrap()
                }
                1 => of.deleted(by("ada", step * 60), &specs, false).unwrap_or_else(|| of.clone()),
                _ => {
                    let observed_time = Some(now + SignedDuration::from_secs(skew));
                    hear(&of, &specs, &ReportDraft { observed_time, ..draft }, now)
                }
            };
            let change = invariant::Change::Resource { before: Some(&of), after: &after };
            prop_assert_eq!(invariant::check(change), Ok(()));
            for said in &after.conditions {
                let Some(before) = of.conditions.iter().find(|before| before.kind == said.kind)
                else { continue };
                let age = |said: &crate::status::Condition| -> (u32, Timestamp) {
                    (said.observed_generation, said.last_transition_time)
                };
                let ((generation, time), (was, then)) = (age(said), age(before));
                prop_assert!(was <= generation && then <= time, "{before:?}\n{said:?}");
            }
            of = after;
        }
    }

    #[test]
    fn no_draft_is_too_strange_to_be_judged(
        adapter in "[a-z0-9-]{1,5}",
        observed_generation: u32,
        time in proptest::option::of(-377_000_000_000_i64..253_000_000_000),
        kinds in proptest::collection::vec((".{0,9}|Available|Applied|Health|Finalized", status()), 0..6),
    ) {
        let conditions = kinds
            .into_iter()
            .map(|(kind, status)| super::DraftCondition {
                reason: kind.clone(),
                message: kind.clone(),
                kind,
                status,
            })
            .collect();
        let draft = ReportDraft {
            adapter: name(&adapter),
            observed_generation,
            observed_time: time.map(|time| Timestamp::from_second(time).unwrap()),
            conditions,
            data: Map::new(),
            metadata: Map::new(),
        };
        let window = TimeWindow { past: SignedDuration::MAX, future: SignedDuration::MAX };
        for window in [window, TimeWindow::default()] {
            let _ = accept(&cluster(&[]), &draft, at(0), window);
        }
    }
}
