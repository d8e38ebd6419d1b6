use super::*;
use crate::cmd::node::fixture::{HOSTILE, harmless, screen, times};
use serde_json::{Value, json};

fn brakes(with: Value) -> Brakes {
    let mut value = json!({ "kind": "Brakes", "pauses": [], "breakers": [], "budgets": [] });
    value.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn breaker(scope: &str, half_open: Value) -> Value {
    json!({
        "scope": scope, "opened_at": "2026-01-01T11:40:00Z", "reason": "6 of 20 turned bad in 5m",
        "last_bad_at": "2026-01-01T11:45:00Z", "half_open": half_open, "revision": 3,
    })
}

fn pause(pool: Value) -> Value {
    json!({
        "pool": pool, "by": "alice", "reason": "network work", "at": "2026-01-01T11:50:00Z",
        "revision": 4,
    })
}

#[test]
fn a_page_shows_every_brake() {
    let half = json!({ "since": "2026-01-01T11:59:00Z", "allowed": 2, "taken": 1 });
    let all = brakes(json!({
        "pauses": [pause(json!("h100"))],
        "breakers": [breaker("pool/default/h100", half), breaker("fleet", Value::Null)],
        "budgets": [
            { "scope": "fleet", "used": 1, "allowed": 10, "total": 100 },
            { "scope": "pool/default/h100", "used": 1, "allowed": 1, "total": 10 },
        ],
        "amnesty": "3 of 100 nodes have not come back yet",
    }));
    assert_eq!(
        page(&screen(None), &all, times()),
        "\
Automatic action is held by the breaker of the fleet
Amnesty     3 of 100 nodes have not come back yet

PAUSES
  OF         SINCE  BY     REASON
  pool h100  10m    alice  network work

BREAKERS
  SCOPE              IS                       SINCE  LAST BAD  REASON
  pool/default/h100  half open, 1 of 2 tried  20m    15m       6 of 20 turned bad in 5m
  fleet              open                     20m    15m       6 of 20 turned bad in 5m

BUDGETS
  SCOPE              OUT OF SERVICE  ALLOWED  COUNTED NODES
  fleet              1               10       100
  pool/default/h100  1               1        10
"
    );
}

#[test]
fn the_first_line_says_whether_the_server_acts() {
    let rows = [
        (json!({}), "on"),
        (json!({ "pauses": [pause(Value::Null)] }), "paused"),
        (json!({ "pauses": [pause(json!("h100"))] }), "on, but not everywhere"),
        (json!({ "isolated": "90 of 100 are silent" }), "held: cut off from the fleet"),
        (json!({ "breakers": [breaker("zone/a", Value::Null)] }), "on, but not everywhere"),
        (
            json!({ "breakers": [breaker("fleet", Value::Null)] }),
            "held by the breaker of the fleet",
        ),
    ];
    for (with, expected) in rows {
        let text = page(&screen(None), &brakes(with), times());
        assert_eq!(text.lines().next(), Some(format!("Automatic action is {expected}").as_str()));
    }
}

#[test]
fn a_reason_must_say_something() {
    assert_eq!(reason("  the switch "), Ok("the switch"));
    assert_eq!(reason("  ").unwrap_err().exit, Exit::Usage);
}

#[test]
fn j14_brakes_of_hostile_texts_are_harmless() {
    let hostile = brakes(json!({
        "pauses": [{ "pool": HOSTILE, "by": HOSTILE, "reason": HOSTILE, "at": HOSTILE, "revision": 1 }],
        "breakers": [{
            "scope": HOSTILE, "opened_at": HOSTILE, "reason": HOSTILE, "last_bad_at": HOSTILE,
            "revision": 1,
        }],
        "budgets": [{ "scope": HOSTILE, "used": 1, "allowed": 1, "total": 1 }],
        "isolated": HOSTILE, "amnesty": HOSTILE,
    }));
    harmless(&page(&screen(None), &hostile, times()));
}
