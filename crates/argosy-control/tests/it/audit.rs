//! Every mutation has one record, and nobody can change one unseen.

use crate::world::{
    Does, World, adapter_caller, admin, cluster, cluster_named, in_virtual_time, of_tenant, pool,
    pool_named, report, settings, user,
};
use argosy_control::audit::Verification;
use argosy_control::resource::Write;
use argosy_store::Revision;
use argosy_store::engine::chain;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

async fn verify(world: &World) -> Verification {
    world.control.audit.verify(&admin()).await.unwrap()
}

#[test]
fn i9_each_mutation_has_exactly_one_record_in_its_commit() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(16));
    runner
        .run(&prop::collection::vec((0..7_u8, 0..3_u8), 5..40), |steps| {
            in_virtual_time(async {
                let world = World::with(settings()).await;
                world.cloud().when("c1 dns", Some(Does::Fail("Busy")));
                for (what, which) in steps {
                    // Many of these are refused; that is part of the history.
                    let name = format!("c{which}");
                    let resources = &world.control.resources;
                    match what {
                        0 | 1 => drop(world.create(&user(), cluster_named(&name)).await),
                        2 => drop(world.create(&user(), pool_named(&name, "p")).await),
                        3 => {
                            let spec = json!({"size": which});
                            drop(world.patch(&user(), cluster(&name), spec).await);
                        }
                        4 => {
                            let write = Write::default();
                            drop(resources.delete(&user(), cluster(&name), write).await);
                        }
                        5 => drop(resources.force_delete(&admin(), cluster(&name), "why").await),
                        _ => {
                            let draft = report("extra", 1, "T", None);
                            let caller = adapter_caller("extra");
                            let target = pool(&name, "p");
                            drop(world.control.adapters.report(&caller, target, draft).await);
                        }
                    }
                    world.pass(SignedDuration::from_millis(900)).await;
                }
                let mut mutations: BTreeMap<(u64, String), usize> = BTreeMap::new();
                let mut seen = Revision::ZERO;
                loop {
                    let events = world.store.events(seen).await.unwrap().unwrap();
                    let Some(last) = events.last() else { break };
                    seen = last.revision;
                    for event in &events {
                        for change in &event.resources {
                            let key = (event.revision.0, change.id.to_string());
                            *mutations.entry(key).or_default() += 1;
                        }
                        for change in &event.instances {
                            let key = (event.revision.0, format!("instance {}", change.id));
                            *mutations.entry(key).or_default() += 1;
                        }
                    }
                }
                let mut records: BTreeMap<(u64, String), usize> = BTreeMap::new();
                for entry in world.control.audit.list(&admin(), None, 10_000).await.unwrap() {
                    let id = entry.record.id.to_string();
                    let key = match entry.record.kind.as_str() {
                        // Of nodes and what happens to them other tests tell.
                        "Node" | "Command" => continue,
                        "Instance" => (entry.revision, format!("instance {id}")),
                        _ => (entry.revision, id),
                    };
                    *records.entry(key).or_default() += 1;
                }
                prop_assert_eq!(records, mutations);
                let found = verify(&world).await;
                prop_assert_eq!(found.broken, None);
                Ok(())
            })
        })
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_record_says_who_did_what_to_which() {
    let world = World::new().await;
    world.cluster("a").await;
    let log = world.control.audit.list(&admin(), None, 100).await.unwrap();
    let first = &log.last().unwrap().record;
    assert_eq!((first.actor.as_str(), first.via.as_str()), ("ann", "token"));
    assert_eq!((first.action.as_str(), first.name.as_str()), ("create", "a"));
    assert_eq!((first.tenant.as_str(), first.request_id.as_str()), ("acme", "r1"));
    assert!(first.before.is_none() && first.after.is_some());
    assert_eq!(world.control.audit.list(&of_tenant("other"), None, 100).await.unwrap().len(), 0);
    // Page by page it is the same.
    world.until_phase(cluster("a"), argosy_core::status::Phase::Ready).await;
    let all = world.control.audit.list(&admin(), None, 100).await.unwrap();
    let mut paged = Vec::new();
    while let Some(next) =
        world.control.audit.list(&admin(), paged.last().copied(), 1).await.unwrap().first()
    {
        paged.push(next.sequence);
    }
    assert_eq!(paged, all.iter().map(|entry| entry.sequence).collect::<Vec<_>>());
    assert!(all.iter().any(|entry| entry.record.actor == "adapter:dns"));
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_was_tampered_with_says_where() {
    let world = World::with(crate::world::with_adapters(&[])).await;
    for index in 0..10 {
        world.cluster(&format!("c{index}")).await;
    }
    assert_eq!(
        verify(&world).await,
        Verification { entries: 10, first: Some(1), last: Some(10), broken: None }
    );
    let broken = async || verify(&world).await.broken.map(|found| (found.sequence, found.problem));
    let says = |sequence, problem: &str| Some((sequence, problem.to_owned()));

    world.rig.tamper(|entries| {
        for entry in entries.iter_mut().filter(|entry| entry.sequence == 4) {
            entry.body = entry.body.replace("ann", "eve").into();
        }
    });
    assert_eq!(broken().await, says(4, "it was changed after it was written"));
    world.rig.tamper(|entries| entries.retain(|entry| entry.sequence != 5));
    assert_eq!(broken().await, says(6, "the entries after 4 are missing"));
    world.rig.tamper(|entries| entries.retain(|entry| entry.sequence < 9));
    assert_eq!(broken().await, says(10, "the last entries are missing"));
    world.rig.tamper(Vec::clear);
    assert_eq!(broken().await, says(10, "the last entries are missing"));
    // Rewritten as a whole, so that every entry fits the one before it.
    world.rig.tamper(|entries| {
        let mut previous = None;
        for entry in entries {
            entry.body = entry.body.replace("ann", "eve").into();
            entry.previous = previous.take().unwrap_or(entry.previous.clone());
            let (sequence, at) = (entry.sequence, entry.at);
            entry.hash = chain(&entry.previous, sequence, &entry.subject, at, &entry.body);
            previous = Some(entry.hash.clone());
        }
    });
    assert_eq!(broken().await, says(10, "the last entries are missing"));
}
