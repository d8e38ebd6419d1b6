use super::check;
use crate::adapter::Report;
use crate::fixture::{adapters, at, by, cluster, name, object, told};
use crate::name::Name;
use crate::resource::Resource;
use crate::status::Condition;
use serde_json::json;
use std::sync::Arc;

#[track_caller]
fn refused(change: impl Fn(&mut Resource), expected: &str) {
    let specs = adapters("validation dns<validation");
    let before = told(cluster(&specs), &specs, "validation:T@1+1 dns:T@1+2");
    assert_eq!(check(None, &before), Ok(()));
    assert_eq!(check(Some(&before), &before), Ok(()));
    let mut after = before.clone();
    change(&mut after);
    let sentence = format!("Cluster {}: {expected}", after.id);
    assert_eq!(check(Some(&before), &after), Err(sentence));
}

fn dns(of: &mut Resource) -> &mut Report {
    Arc::make_mut(of.reports.get_mut(&name("dns")).unwrap())
}

#[test]
fn nothing_goes_backwards() {
    refused(|of| of.generation = 0, "I6: generations start at 1");
    refused(|of| dns(of).last_report_time = at(1), "I6: the report of dns went backwards");
    refused(
        |of| {
            of.reports.remove(&name("dns"));
        },
        "I6: the report of dns went backwards",
    );
    refused(
        |of| dns(of).observed_generation = 2,
        "I6: dns reported a generation that does not exist yet",
    );
    refused(|of| of.spec = object(json!({})), "I6: the wish changed without a new generation");
    refused(
        |of| of.deletion = Some(by("ada", 9)),
        // The adapters are available, which is not the same as cleaned up.
        "I7: Reconciled is True, but dns is not done with this generation",
    );
}

#[test]
fn a_generation_is_not_taken_back() {
    let specs = adapters("validation");
    let first = cluster(&specs);
    let second = Resource { generation: 2, ..first.clone() };
    assert!(
        check(Some(&second), &first).unwrap_err().ends_with("I6: the generation went backwards")
    );
}

#[test]
fn what_a_resource_is_does_not_change() {
    refused(|of| of.name = Name::parse("other").unwrap(), "I7: its name changed");
    refused(|of| of.tenant = "umbrella".to_owned(), "I7: its tenant changed");
    refused(|of| of.owner = Some(of.id), "I7: its owner changed");
    refused(|of| of.created = by("eve", 0), "I7: its creation changed");
}

#[test]
fn a_deletion_is_not_undone() {
    let deleting = cluster(&[]).deleted(by("ada", 5), &[], false).unwrap();
    let undone = Resource { deletion: None, ..deleting.clone() };
    assert!(check(Some(&deleting), &undone).unwrap_err().ends_with("I7: its deletion changed"));
}

#[test]
fn reconciled_rests_on_this_generation_alone() {
    refused(|of| of.generation = 2, "I7: Reconciled is True for another generation");
    refused(
        |of| {
            of.generation = 2;
            let reconciled: &mut Condition = &mut of.conditions[0];
            reconciled.observed_generation = 2;
        },
        "I7: Reconciled is True, but dns is not done with this generation",
    );
    refused(
        |of| of.conditions.push(of.conditions[0].clone()),
        "I7: condition Reconciled is there twice",
    );
}
