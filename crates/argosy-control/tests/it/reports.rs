//! Reports of adapters that are not ours: late, doubled, shuffled, or never.

use crate::world::{
    World, adapter, adapter_caller, admin, cluster, in_virtual_time, report, settings, user,
    with_adapters,
};
use argosy_control::adapter::Reporting;
use argosy_core::access::Caller;
use argosy_core::adapter::{Old, ReportDraft, Runner, Tri};
use argosy_core::resource::Resource;
use argosy_core::status::Phase;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

async fn tell(world: &World, draft: ReportDraft) -> Reporting {
    let caller = adapter_caller(draft.adapter.as_str());
    world.control.adapters.report(&caller, cluster("a"), draft).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn h1_a_late_report_for_an_old_generation_flips_nothing() {
    let world = World::with(with_adapters(&[("scan", Runner::External)])).await;
    world.cluster("a").await;
    tell(&world, report("scan", 1, "T", None)).await;
    assert_eq!(world.phase(cluster("a")), Some(Phase::Ready));
    world.patch(&user(), cluster("a"), json!({"size": 2})).await.unwrap();
    assert_eq!(world.phase(cluster("a")), Some(Phase::NotReady));

    // News about the old generation, but no word on the new one.
    tell(&world, report("scan", 1, "T", None)).await;
    assert_eq!(world.phase(cluster("a")), Some(Phase::NotReady));
    tell(&world, report("scan", 2, "T", None)).await;
    assert_eq!(world.phase(cluster("a")), Some(Phase::Ready));
    let before = world.get(cluster("a"));
    let late = tell(&world, report("scan", 1, "F", None)).await;
    assert!(matches!(late, Reporting::Discarded(Old::OlderGeneration)));
    let early = tell(&world, report("scan", 3, "F", None)).await;
    assert!(matches!(early, Reporting::Discarded(Old::FutureGeneration)));
    assert_eq!(world.get(cluster("a")), before);

    // All of them are history, the news once.
    let caller = user();
    let past = |before| world.control.adapters.history(&caller, cluster("a"), before, 4);
    let history = past(None).await.unwrap();
    let seen: Vec<_> =
        history.iter().map(|entry| (entry.report.observed_generation, entry.discarded)).collect();
    assert_eq!(
        seen,
        [(3, Some(Old::FutureGeneration)), (1, Some(Old::OlderGeneration)), (2, None), (1, None)]
    );
    let page = past(Some(history[1].sequence));
    assert_eq!(page.await.unwrap(), history[2..]);
}

#[test]
fn h2_reports_end_the_same_in_any_order_and_however_often() {
    let outcome = |order: Vec<usize>| -> Arc<Resource> {
        in_virtual_time(async {
            let world = World::with(with_adapters(&[("scan", Runner::External)])).await;
            world.cluster("a").await;
            let start = world.now();
            for index in order {
                let time = start + SignedDuration::from_secs(i64::try_from(index).unwrap());
                let said = ["F", "U", "T", "F", "T"][index];
                tell(&world, report("scan", 1, said, Some(time))).await;
            }
            world.get(cluster("a")).unwrap()
        })
    };
    let expected = outcome(vec![0, 1, 2, 3, 4]);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    let orders = Just((0..5).chain(0..5).collect::<Vec<usize>>()).prop_shuffle();
    runner
        .run(&orders, |order| {
            let found = outcome(order);
            let said = |of: &Resource| {
                let report = &of.reports[&adapter("scan")];
                let available = &report.conditions.available;
                (available.status, report.last_report_time, report.observed_generation)
            };
            prop_assert_eq!(said(&found), said(&expected));
            let kinds = |of: &Resource| -> Vec<_> {
                of.conditions.iter().map(|c| (c.kind.clone(), c.status)).collect()
            };
            prop_assert_eq!(kinds(&found), kinds(&expected));
            Ok(())
        })
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn h2_concurrent_reports_are_all_taken() {
    let names = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];
    let world = World::with(with_adapters(&[])).await;
    world.cluster("a").await;
    let reports = names.iter().map(|name| tell(&world, report(name, 1, "T", None)));
    futures_util::future::join_all(reports).await;
    assert_eq!(world.get(cluster("a")).unwrap().reports.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn h4_an_adapter_that_never_reports_is_stalled_until_it_does() {
    let world = World::with(with_adapters(&[("scan", Runner::External)])).await;
    let since = world.now();
    world.cluster("a").await;
    world.until("it is stalled", |w| w.condition(cluster("a"), "Stalled").is_some()).await;
    let waited = world.now().duration_since(since).as_secs();
    assert!((300..=301).contains(&waited), "{waited}");
    let stalled = world.condition(cluster("a"), "Stalled").unwrap();
    assert_eq!(stalled.status, Tri::True);
    for part in ["scan", "/statuses", "its next report clears this"] {
        assert!(stalled.message.contains(part), "{}", stalled.message);
    }
    tell(&world, report("scan", 1, "F", None)).await;
    assert_eq!(world.condition(cluster("a"), "Stalled"), None);
    world.until("again", |w| w.condition(cluster("a"), "Stalled").is_some()).await;
    tell(&world, report("scan", 1, "T", None)).await;
    assert_eq!(world.condition(cluster("a"), "Stalled"), None);
    assert_eq!(world.phase(cluster("a")), Some(Phase::Ready));
}

#[tokio::test(start_paused = true)]
async fn k13_an_adapter_speaks_for_itself_only() {
    let world = World::with(settings()).await;
    world.cluster("a").await;
    let speak = async |caller: &Caller, name: &str| {
        world.control.adapters.report(caller, cluster("a"), report(name, 1, "T", None)).await
    };
    let dns = adapter_caller("dns");
    assert!(speak(&dns, "dns").await.is_ok());
    let wrong = speak(&dns, "validation").await.unwrap_err();
    assert!(wrong.to_string().contains("may report for the adapter 'dns'"), "{wrong}");
    let unnamed = Caller { adapter: None, ..dns };
    assert!(speak(&unnamed, "dns").await.is_err());
    assert!(speak(&user(), "dns").await.is_err(), "an operator is no adapter");
    assert!(speak(&admin(), "dns").await.is_ok());
    let stranger = Caller { tenant: "other".to_owned(), ..adapter_caller("dns") };
    let hidden = speak(&stranger, "dns").await.unwrap_err();
    assert!(matches!(hidden, argosy_control::Error::NotFound { .. }), "{hidden}");
}

#[tokio::test(start_paused = true)]
async fn a_report_of_an_adapter_nobody_configured_is_stored_and_shown() {
    let world = World::with(with_adapters(&[])).await;
    world.cluster("a").await;
    tell(&world, report("surprise", 1, "T", None)).await;
    let statuses = world.control.resources.statuses(&user(), cluster("a")).unwrap();
    let names: Vec<_> = statuses.lines.iter().map(|line| line.adapter.as_str()).collect();
    assert_eq!(names, ["surprise"]);
}
