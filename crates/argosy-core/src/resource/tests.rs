use super::{Dispatch, Patch, Resource, Strategy};
use crate::fixture::{adapters, at, by, cluster, name, object, told};
use crate::status::{Phase, phase};
use serde_json::{Value, json};

fn patch(spec: Option<Value>, labels: Option<Value>, strategy: Strategy) -> Patch {
    Patch { spec: spec.map(object), labels: labels.map(object), strategy }
}

/// Spec and labels after a patch, or `None` if it changed nothing.
fn patched(patch: &Patch) -> Option<(Value, Value)> {
    let after = cluster(&[]).patched(patch, by("eve", 10), &[]).unwrap()?;
    Some((Value::Object(after.spec), json!(after.labels)))
}

#[test]
fn a_patch_merges_or_replaces() {
    let spec = json!({"provider": "gcp", "region": "us-east1", "nodeCount": 5});
    let more = json!({"nodeCount": 5});
    let team = json!({"team": "alpha"});
    let merged = patched(&patch(Some(more.clone()), None, Strategy::Merge));
    assert_eq!(merged, Some((spec, team.clone())));
    let replaced = patched(&patch(Some(more.clone()), None, Strategy::Replace));
    assert_eq!(replaced, Some((more, team)));

    let spec = json!({"provider": "gcp", "region": "us-east1", "nodeCount": 3});
    let labels = Some(json!({"env": "dev"}));
    let merged = patched(&patch(None, labels.clone(), Strategy::Merge));
    assert_eq!(merged, Some((spec.clone(), json!({"team": "alpha", "env": "dev"}))));
    let replaced = patched(&patch(None, labels, Strategy::Replace));
    assert_eq!(replaced, Some((spec.clone(), json!({"env": "dev"}))));
    for strategy in [Strategy::Merge, Strategy::Replace] {
        let removed = patched(&patch(None, Some(json!({"team": null})), strategy));
        assert_eq!(removed, Some((spec.clone(), json!({}))));
    }
}

#[test]
fn a_patch_that_changes_nothing_is_no_change() {
    let same = Some(json!({"region": "us-east1"}));
    assert_eq!(patched(&patch(same, Some(json!({"team": "alpha"})), Strategy::Merge)), None);
    assert_eq!(patched(&patch(Some(json!({})), Some(json!({"x": null})), Strategy::Merge)), None);
    let whole = Some(json!({"nodeCount": 3, "provider": "gcp", "region": "us-east1"}));
    assert_eq!(patched(&patch(whole, Some(json!({"team": "alpha"})), Strategy::Replace)), None);
}

#[test]
fn a_label_that_would_be_invalid_is_named() {
    let bad = patch(None, Some(json!({"team": "no spaces"})), Strategy::Merge);
    let complaints = cluster(&[]).patched(&bad, by("eve", 10), &[]).unwrap_err();
    assert_eq!(complaints[0].field, "labels.team");
}

/// A cluster that is ready, with a stalled adapter and a delivered event.
fn busy() -> Resource {
    let specs = adapters("a b<a");
    let mut of = told(cluster(&specs), &specs, "a:T@1+1 b:T@1+2");
    of.stalled.insert(name("c"), at(3));
    of.dispatches.insert(name("a"), Dispatch { generation: 1, delivered: 2, rejected: None });
    of
}

#[test]
fn a_new_generation_begins_with_the_patch() {
    let specs = adapters("a b<a");
    let before = busy();
    let change = patch(None, Some(json!({"env": "dev"})), Strategy::Merge);
    let after = before.patched(&change, by("eve", 10), &specs).unwrap().unwrap();
    assert_eq!((after.generation, &after.updated), (2, &by("eve", 10)));
    assert_eq!((phase(&before), phase(&after)), (Phase::Ready, Phase::NotReady));
    assert_eq!(after.phase_since, at(10));
    assert!(after.stalled.is_empty() && after.dispatches.is_empty());
    assert_eq!((after.created, after.reports), (before.created, before.reports));
}

#[test]
fn a_deletion_is_asked_for_once() {
    let specs = adapters("a b<a");
    let after = busy().deleted(by("eve", 10), &specs, true).unwrap();
    assert_eq!((after.generation, phase(&after)), (2, Phase::Terminating));
    assert_eq!((after.phase_since, &after.deletion), (at(10), &Some(by("eve", 10))));
    // The time of the last change moves, its author does not.
    assert_eq!(after.updated, by("ada", 10));
    assert!(after.stalled.is_empty() && after.dispatches.is_empty());
    assert_eq!(after.deleted(by("eve", 20), &specs, true), None);
}

#[test]
fn h7_deleting_what_is_still_being_created_ends_pending() {
    let specs = adapters("a");
    let after = cluster(&specs).deleted(by("eve", 1), &specs, false).unwrap();
    assert_eq!(phase(&after), Phase::Terminating);
    // Its creation may still report; that finalizes nothing.
    let after = told(after, &specs, "a:TTTT@1+2");
    assert_eq!(after.conditions[0].reason, "ReconciledMissingAdapters");
}

#[test]
fn only_a_required_adapters_word_starts_a_cluster() {
    let specs = adapters("a logs?");
    let of = told(cluster(&specs), &specs, "logs:T@1+1 stranger:T@1+2");
    assert_eq!(of.started, None);
    let of = told(of, &specs, "a:U@1+3 a:U@1+4");
    assert_eq!((of.started, phase(&of)), (Some(at(3)), Phase::NotReady));
}

#[test]
fn only_a_word_about_this_generation_ends_a_stall() {
    let specs = adapters("a");
    let mut of = Resource { generation: 2, ..cluster(&specs) };
    of.stalled.insert(name("a"), at(60));
    let of = told(of, &specs, "a:T@1+70");
    assert!(of.stalled.contains_key(&name("a")));
    assert!(told(of, &specs, "a:F@2+80").stalled.is_empty());
}

#[test]
fn a_refresh_says_nothing_when_nothing_differs() {
    let specs = adapters("a b");
    let of = told(cluster(&specs), &specs, "a:T@1+1");
    assert_eq!(of.refreshed(&specs, false, at(9)), None);
    // `b` is configured away: what is left is done.
    let fewer = of.refreshed(&adapters("a"), false, at(9)).unwrap();
    assert_eq!((phase(&fewer), fewer.phase_since), (Phase::Ready, at(9)));
}

#[test]
fn a_tombstone_remembers_who_and_what() {
    let of = cluster(&[]);
    let grave = of.deleted(by("eve", 5), &[], false).unwrap().tombstone(at(9), None);
    assert_eq!((&grave.id, &grave.name, &grave.tenant), (&of.id, &of.name, &of.tenant));
    assert_eq!((grave.deletion, grave.removed_at), (by("eve", 5), at(9)));
    assert_eq!((grave.team.as_deref(), grave.forced), (Some("alpha"), None));
    let grave = of.tombstone(at(9), Some("lost account".to_owned()));
    assert_eq!((grave.deletion, grave.forced.as_deref()), (by("system", 9), Some("lost account")));
}
