use super::{Mutation, Office, system};
use crate::{Error, Stored};
use argosy_core::adapter::{AdapterGraph, Tri};
use argosy_core::breaker::Pause;
use argosy_core::id::ResourceId;
use argosy_core::invariant::Cause;
use argosy_core::label::Labels;
use argosy_core::ledger::{Entry, What};
use argosy_core::name::Name;
use argosy_core::node::{Duty, Hold, Node};
use argosy_core::resource::{Kind, NewResource, Resource, Stamp};
use argosy_store::memory::Memory;
use argosy_store::{Revision, Store, Txn};
use jiff::Timestamp;
use serde_json::{Map, json};
use std::sync::Arc;
use uuid::Uuid;

fn cluster() -> Resource {
    let new = NewResource {
        kind: Kind::Cluster,
        name: Name::parse("a").unwrap(),
        owner: None,
        spec: Map::new(),
        labels: Labels::default(),
    };
    let graph = AdapterGraph::default();
    let stamp = Stamp { at: Timestamp::UNIX_EPOCH, by: "ann".to_owned() };
    Resource::create(
        new,
        ResourceId::new(Uuid::nil()),
        "acme".to_owned(),
        stamp,
        graph.of(Kind::Cluster),
    )
}

fn change(before: &Resource, change: impl Fn(&mut Resource)) -> Result<Txn, String> {
    let mut after = before.clone();
    change(&mut after);
    let before = Stored { value: Arc::new(before.clone()), revision: Revision(1) };
    let mut txn = Txn::at(Timestamp::UNIX_EPOCH);
    let mutation = Mutation::update("test", &before, Arc::new(after));
    match Office::write(&mut txn, mutation, &system("test"), Timestamp::UNIX_EPOCH) {
        Ok(()) => Ok(txn),
        Err(Error::Invariant(broken)) => Err(broken),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn i6_i7_a_write_that_breaks_a_rule_is_refused() {
    let of = Resource { generation: 3, ..cluster() };
    let deleted = Resource { deletion: Some(of.created.clone()), ..of.clone() };
    let check = |before: &Resource, what: &dyn Fn(&mut Resource), expected: &str| {
        let broken = change(before, what).expect_err(expected);
        assert!(broken.contains(expected), "{broken}");
    };
    check(&of, &|of| of.generation = 2, "I6: the generation went backwards");
    check(&of, &|of| _ = of.spec.insert("x".into(), 1.into()), "I6: the wish changed");
    check(&of, &|of| of.name = Name::parse("b").unwrap(), "I7: its name changed");
    check(&of, &|of| of.tenant = "other".to_owned(), "I7: its tenant changed");
    check(&deleted, &|of| of.deletion = None, "I7: its deletion changed");
    let stale = |of: &mut Resource| {
        let reconciled = of.conditions.iter_mut().find(|c| c.kind == "Reconciled").unwrap();
        reconciled.status = Tri::True;
        reconciled.observed_generation = 1;
    };
    check(&of, &stale, "I7: Reconciled is True for another generation");
}

#[tokio::test(start_paused = true)]
async fn i6_i7_nothing_of_a_refused_write_is_stored() {
    let (store, driver) = Store::open(Arc::new(Memory::new())).await.unwrap();
    let mut tasks = crate::task::Tasks::default();
    tasks.start("store", driver.run());
    let of = Resource { generation: 0, ..cluster() };
    let mut txn = Txn::at(Timestamp::UNIX_EPOCH);
    let create = Mutation::create(Arc::new(of));
    let refused = Office::write(&mut txn, create, &system("test"), Timestamp::UNIX_EPOCH);
    assert!(matches!(refused, Err(Error::Invariant(_))));
    // Even if somebody went on and committed what there is.
    store.commit(txn).await.unwrap();
    assert_eq!(store.read(|view| view.count(Kind::Cluster)), 0);
    assert_eq!(store.stream_head("audit").await.unwrap(), None);
}

fn node(duty: &Duty) -> Node {
    let at = Timestamp::UNIX_EPOCH;
    let machine = json!({
        "id": "gpu-1", "tenant": "acme", "machine": {}, "gpus": [],
        "place": {"provider": "gcp", "region": "r", "zone": "z", "instance_type": "a3"},
        "registered_at": at, "joined_at": at, "liveness": "Fresh", "liveness_since": at,
        "health": {"state": "Healthy", "since": at, "reason": "", "message": ""},
        "duty": duty,
    });
    serde_json::from_value(machine).unwrap()
}

#[tokio::test(start_paused = true)]
async fn f6_a_registration_that_clears_a_cordon_is_refused() {
    let (store, driver) = Store::open(Arc::new(Memory::new())).await.unwrap();
    let mut tasks = crate::task::Tasks::default();
    tasks.start("store", driver.run());
    let now = Timestamp::UNIX_EPOCH;
    let (by, reason) = ("ann".to_owned(), "fan".to_owned());
    let cordoned = Duty::Cordoned(Hold { by, automatic: false, reason, at: now });
    let mut txn = Txn::at(now);
    txn.create(Arc::new(node(&cordoned)));
    store.commit(txn).await.unwrap();

    let before = store.read(|view| view.node("gpu-1").cloned()).unwrap();
    let what = What::Registered { message: "rebooted".to_owned() };
    let entry = Entry { at: now, node: before.value.id.clone(), what };
    let register = |after: Node| {
        let mut txn = Txn::at(now);
        let change = Mutation::update("register", &before, Arc::new(after));
        let entries = std::slice::from_ref(&entry);
        let caller = system("test");
        Office::write_node(&mut txn, change, Cause::Registration, entries, &caller, now)
            .map(|()| txn)
    };
    let refused = register(node(&Duty::Active)).unwrap_err();
    assert!(matches!(refused, Error::Invariant(_)), "{refused}");
    let moved = Node { joined_at: now + jiff::SignedDuration::from_secs(1), ..node(&cordoned) };
    store.commit(register(moved).unwrap()).await.unwrap();
    assert_eq!(store.read(|view| view.node("gpu-1").unwrap().value.duty.clone()), cordoned);
    // The document, its audit record and its line in the ledger are one commit.
    assert_eq!(store.stream_head("audit").await.unwrap().unwrap().0, 1);
    assert_eq!(store.stream_head("nodes").await.unwrap().unwrap().0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_needs_a_document_to_be_absent_conflicts_with_it() {
    let (store, driver) = Store::open(Arc::new(Memory::new())).await.unwrap();
    let mut tasks = crate::task::Tasks::default();
    tasks.start("store", driver.run());
    let now = Timestamp::UNIX_EPOCH;
    let text = |text: &str| text.to_owned();
    let (tenant, by, reason) = (text("acme"), text("ann"), text("x"));
    let pause = Pause { tenant, pool: None, pool_id: None, by, reason, at: now };
    let depends = || {
        let mut txn = Txn::at(now);
        txn.absent(&pause);
        txn.append("nodes", "gpu-1", &"acted");
        txn
    };
    store.commit(depends()).await.unwrap();
    let mut txn = Txn::at(now);
    txn.create(Arc::new(pause.clone()));
    store.commit(txn).await.unwrap();
    let refused = store.commit(depends()).await;
    assert!(matches!(refused, Err(argosy_store::Error::Conflict(_))), "{refused:?}");
}
