use super::show::{backtest, changes, list, policy, results, verdict};
use super::*;
use crate::cmd::node::fixture::{HOSTILE, harmless};
use crate::output::Screen;
use crate::session::tests::session;
use argosy_api::policy::BacktestReport;
use serde_json::json;

fn policy_of(value: Value) -> Policy {
    let mut policy = json!({
        "name": "default", "kind": "Policy", "href": "/p", "version": 0, "rules": [],
        "created_at": "1970-01-01T00:00:00Z", "created_by": "argosy",
        "updated_at": "1970-01-01T00:00:00Z", "updated_by": "argosy", "revision": 0,
    });
    for (key, value) in value.as_object().unwrap() {
        policy[key] = value.clone();
    }
    serde_json::from_value(policy).unwrap()
}

fn rule(name: &str, result: &str, condition: &str) -> Value {
    json!({ "name": name, "result": result, "condition": condition })
}

/// A session whose times are shown as they are.
fn wide() -> Session {
    Session { format: Format::Wide, ..session() }
}

#[test]
fn policies_are_listed() {
    let mine = policy_of(json!({
        "name": "h100", "version": 3, "pools": ["h100", "h200"], "description": "Stricter.",
        "updated_at": "2026-01-01T11:40:00Z", "updated_by": "ann",
        "rules": [rule("a", "degraded", "true")],
    }));
    assert_eq!(
        list(&wide(), &[policy_of(json!({})), mine]),
        "\
NAME     VERSION  POOLS      RULES  CHANGED               BY      DESCRIPTION
default  0        -          0      -                     argosy  -
h100     3        h100,h200  1      2026-01-01T11:40:00Z  ann     Stricter.
"
    );
}

#[test]
fn a_policy_is_shown_in_the_order_its_rules_are_asked() {
    let mut first = rule("off-the-bus", "unhealthy", "xid.code == 79");
    first["priority"] = json!(10);
    first["description"] = json!("Gone.");
    let mut second = rule("hot", "degraded", "event.count > 1");
    second["lasts"] = json!("30m");
    let rules = [second, rule("default", "healthy", "true"), first];
    let shown = policy_of(json!({ "version": 2, "pools": ["h100"], "rules": rules }));
    assert_eq!(
        policy(&session(), &shown),
        "\
default version 2, for h100

RULE         RESULT     LASTS   PRIORITY  DESCRIPTION
off-the-bus  unhealthy  reboot  10        Gone.
hot          degraded   30m     0         event.count > 1
default      healthy    -       0         true
"
    );
    assert!(policy(&wide(), &shown).contains("10        xid.code == 79\n"));
}

#[test]
fn a_verdict_is_told_with_what_spoke_for_and_against_it() {
    let told = |value: Value| verdict(&Screen::plain(), &serde_json::from_value(value).unwrap());
    assert_eq!(
        told(json!({
            "policy": "default", "policy_version": 3, "rule": "xid-fatal", "severity": "unhealthy",
            "message": "The catalogue asks for a reset.", "inputs": ["catalogue: Xid 79"],
        })),
        "\
unhealthy  by xid-fatal of default version 3
  The catalogue asks for a reset.
  Lasts until the node boots again, or a diagnostic passes.
  - catalogue: Xid 79
"
    );
    assert_eq!(
        told(json!({
            "policy": "default", "policy_version": 3, "rule": "hot", "severity": "degraded",
            "message": "", "lasts_seconds": 3600,
        })),
        "degraded  by hot of default version 3\n  Lasts 1h without a repeat.\n"
    );
    assert_eq!(
        told(json!({
            "policy": "tried", "policy_version": 0, "rule": "hot", "error": "No such key: x",
            "message": "the rule `hot` failed: No such key: x", "lasts_seconds": 3600,
        })),
        "\
error  by hot of tried version 0
  No such key: x
  Nothing is concluded from it: the node is Unknown, and nothing is done to it.
"
    );
    assert_eq!(
        told(json!({ "policy": "p", "policy_version": 1, "rule": "", "severity": "healthy" })),
        "healthy  no rule of p version 1 matches\n"
    );
}

#[test]
fn a_backtest_names_who_would_be_hit() {
    let hit = |node: &str| {
        json!({
            "node_id": node, "at": "2026-01-01T11:40:00Z", "rule": "r", "severity": "unhealthy",
            "event": "Xid 79 on GPU 3",
        })
    };
    let report: BacktestReport = serde_json::from_value(json!({
        "kind": "BacktestReport", "events": 3, "from": "2026-01-01T11:00:00Z",
        "to": "2026-01-01T12:00:00Z", "only_new": [hit("gpu-1")], "only_current": [], "both": 1,
        "errors": [{ "message": "hot: No such key: x", "count": 2 }],
    }))
    .unwrap();
    assert_eq!(
        backtest(&wide(), &report),
        "\
3 events from 2026-01-01T11:00:00Z to 2026-01-01T12:00:00Z; 1 node hit alike by both

Hit by the file, and not or not as hard by the policy in force: 1 node
  NODE   RESULT     RULE  WHEN                  EVENT
  gpu-1  unhealthy  r     2026-01-01T11:40:00Z  Xid 79 on GPU 3

Hit by the policy in force, and not or not as hard by the file: 0 nodes

Rules of the file that failed, which makes a node Unknown:
  2× hot: No such key: x
"
    );
    let nothing = BacktestReport { events: 0, from: None, to: None, ..report };
    assert_eq!(backtest(&wide(), &nothing), "No event was recorded in that time.\n");
}

#[test]
fn what_apply_changes_is_shown_rule_by_rule() {
    let put = |value: Value| -> PolicyPut { serde_json::from_value(value).unwrap() };
    let (a, b, c) = (
        rule("a", "degraded", "true"),
        rule("b", "healthy", "true"),
        rule("c", "unhealthy", "false"),
    );
    let current = policy_of(json!({ "version": 2, "rules": [a, b, c] }));
    let shown = |wanted: Value| {
        let changes = changes(&session(), "default", Some(&current), &put(wanted));
        format!("{}{}", changes.count, changes.text)
    };
    assert_eq!(shown(json!({ "rules": [a, b, c] })), "0  policy default is so already\n");
    let mut changed = rule("a", "unhealthy", "1 == 1");
    changed["priority"] = json!(3);
    assert_eq!(
        shown(json!({
            "description": "d", "pools": ["x"], "rules": [c, changed, rule("d", "degraded", "true")]
        })),
        "\
6~ policy default
    ~ pools:  → x
    ~ description
    ~ a: result degraded → unhealthy, condition, priority
    + d → degraded
    - b → healthy
    ~ the order of rules
"
    );
    let builtin = policy_of(json!({ "rules": [a] }));
    let changes = changes(&session(), "default", Some(&builtin), &put(json!({ "rules": [b] })));
    assert!(changes.text.starts_with("+ policy default\n"), "{}", changes.text);
}

#[test]
fn nobody_s_text_moves_the_cursor() {
    let hostile = policy_of(json!({
        "name": HOSTILE, "description": HOSTILE, "pools": [HOSTILE], "updated_by": HOSTILE,
        "rules": [{ "name": HOSTILE, "result": "degraded", "condition": HOSTILE, "description": HOSTILE, "lasts": HOSTILE }],
    }));
    let said: argosy_api::node::Verdict = serde_json::from_value(json!({
        "policy": HOSTILE, "policy_version": 1, "rule": HOSTILE, "error": HOSTILE, "inputs": [HOSTILE],
    }))
    .unwrap();
    let session = wide();
    harmless(&list(&session, std::slice::from_ref(&hostile)));
    harmless(&policy(&session, &hostile));
    harmless(&verdict(&session.screen, &said));
    harmless(&results(&session, &[(HOSTILE, Err(HOSTILE.to_owned()))]));
    harmless(&changes(&session, HOSTILE, None, &hostile.spec).text);
    harmless(&name_line(&hostile));
}
