use super::super::{Filter, Order};
use super::*;
use serde_json::json;

fn instances() -> Vec<Instance> {
    let make = |id: &str, pool: &str, number: u32, state: serde_json::Value| {
        serde_json::from_value(json!({
            "id": id, "tenant": "acme", "pool": "01890a5d-ac96-774b-bcce-b302099a8057",
            "pool_name": pool, "number": number, "token": "01890a5d-ac96-774b-bcce-b302099a8058",
            "order": { "provider": "gcp", "region": "us-east1", "zone": "b", "spot": true,
                       "machine_type": "a3-highgpu-8g", "image": "cos", "price_per_hour": 88.5 },
            "ordered_at": "2026-03-01T12:00:00Z", "why": "the pool wants 2 nodes and has 1",
            "tried": [{ "cure": "reboot", "at": "2026-03-01T13:00:00Z", "because": "Xid 79" }],
            "state": state,
        }))
        .unwrap()
    };
    let since = "2026-03-02T00:00:00Z";
    vec![
        make(
            "b-2",
            "b",
            2,
            json!({ "state": "provisioning", "calls": 1,
            "trouble": { "Capacity": { "code": "X", "message": "none left" } } }),
        ),
        make(
            "a-1",
            "a",
            1,
            json!({ "state": "running", "machine": "m-1", "node": "a-1", "since": since }),
        ),
        make(
            "b-1",
            "b",
            1,
            json!({ "state": "failed", "at": since,
            "failure": { "reason": "QuotaExceeded", "message": "no more" } }),
        ),
    ]
}

#[track_caller]
fn check(search: &str, expected: &str) {
    let all = instances();
    let filter: Filter<Instance> =
        Filter::parse(search).unwrap_or_else(|error| panic!("{search}: {error}"));
    let mut found: Vec<_> = all.iter().filter(|instance| filter.matches(instance)).collect();
    let order: Order<Instance> = Order::default();
    found.sort_by(|a, b| order.compare(a, b));
    let ids: Vec<&str> = found.iter().map(|instance| instance.id.as_str()).collect();
    assert_eq!(ids.join(" "), expected, "{search}");
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter), "{search} printed and read again");
}

#[test]
fn every_field_can_be_asked_and_the_order_is_that_of_the_pools() {
    for (search, expected) in [
        ("", "a-1 b-1 b-2"),
        ("state = 'running'", "a-1"),
        ("open = true", "a-1 b-2"),
        ("cost_per_hour > 80", "a-1 b-2"),
        ("node_id is null", "b-1 b-2"),
        ("machine_id = 'm-1' and node = 'a-1'", "a-1"),
        ("reason = 'QuotaExceeded' and status_message like '%more'", "b-1"),
        ("reason = 'InsufficientCapacity' and status_message = 'none left'", "b-2"),
        ("pool = 'b' and number >= 2", "b-2"),
        ("since > '2026-03-01T18:00:00Z'", "a-1 b-1"),
        ("ordered_at < '2026-03-02'", "a-1 b-1 b-2"),
        ("pool_id = '01890a5d-ac96-774b-bcce-b302099a8057'", "a-1 b-1 b-2"),
        ("provider = 'gcp' and region = 'us-east1' and zone = 'b'", "a-1 b-1 b-2"),
        ("machine_type like 'a3-%' and spot = true and image = 'cos'", "a-1 b-1 b-2"),
        ("why like '%2 nodes%' and tried = 'reboot' and replaces is null", "a-1 b-1 b-2"),
    ] {
        check(search, expected);
    }
}

#[test]
fn what_nobody_knows_is_named() {
    let refuse = |search: &str, start: &str| {
        let error = Filter::<Instance>::parse(search).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    };
    refuse("stat = 'x'", "unknown field `stat`; did you mean `state`?");
    refuse("state = 'gone'", "Invalid state value 'gone'. Supported values: Provisioning, ");
}
