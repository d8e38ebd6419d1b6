use super::*;
use crate::engine::Revision;
use serde_json::{Value, json};

const A: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const B: &str = "01890a5d-ac96-774b-bcce-b302099a8058";

fn instance(id: &str, pool: &str, state: Value) -> Stored<Instance> {
    let at = "2026-03-01T12:00:00Z";
    let value = serde_json::from_value(json!({
        "id": id, "tenant": "acme", "pool": pool, "pool_name": "p", "number": 1, "token": A,
        "order": { "provider": "gcp", "region": "r", "machine_type": "t" },
        "ordered_at": at, "why": "", "state": state,
    }));
    Stored { value: Arc::new(value.unwrap()), revision: Revision(1) }
}

fn waiting(machine: &str) -> Value {
    json!({ "state": "awaiting_node", "machine": machine, "since": "2026-03-01T12:00:00Z" })
}

fn ids<'a>(found: impl Iterator<Item = &'a Stored<Instance>>) -> String {
    found.map(|found| found.value.id.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_instance_is_found_by_what_it_is_now_and_not_by_what_it_was() {
    let (a, b) = (ResourceId::parse(A).unwrap(), ResourceId::parse(B).unwrap());
    let mut all = Instances::default();
    all.set(instance("p-1", A, json!({ "state": "provisioning", "calls": 1 })));
    assert_eq!(ids(all.by_machine("m-1")), "");
    all.set(instance("p-1", A, waiting("m-1")));
    all.set(instance("p-2", A, waiting("m-2")));
    // Another provider may use the same words.
    all.set(instance("q-1", B, waiting("m-1")));
    assert_eq!(ids(all.by_machine("m-1")), "p-1 q-1");
    assert_eq!((ids(all.of_pool(a)), ids(all.of_pool(b))), ("p-1 p-2".into(), "q-1".into()));
    assert_eq!(ids(all.after(Some("p-1"))), "p-2 q-1");
    all.set(instance("p-1", A, waiting("m-3")));
    assert_eq!(
        (ids(all.by_machine("m-1")), ids(all.by_machine("m-3"))),
        ("q-1".into(), "p-1".into())
    );
    for id in ["p-1", "p-2", "q-1"] {
        assert!(all.unset(id).is_some_and(|gone| gone.value.id.as_str() == id));
    }
    assert!(all.unset("p-1").is_none());
    assert!(all.by_id.is_empty() && all.by_machine.is_empty() && all.by_pool.is_empty());
}
