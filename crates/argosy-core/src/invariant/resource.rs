//! What must hold of a resource and of its change.

use crate::adapter::{Tri, condition_kind};
use crate::resource::Resource;
use crate::status::done;

pub(super) fn state(of: &Resource) -> Option<String> {
    if of.generation == 0 {
        return Some("I6: generations start at 1".to_owned());
    }
    for (adapter, report) in &of.reports {
        if of.generation < report.observed_generation {
            return Some(format!("I6: {adapter} reported a generation that does not exist yet"));
        }
    }
    for (index, condition) in of.conditions.iter().enumerate() {
        if of.conditions.iter().skip(index + 1).any(|other| other.kind == condition.kind) {
            return Some(format!("I7: condition {} is there twice", condition.kind));
        }
    }
    let reconciled = of.conditions.iter().find(|condition| condition.kind == "Reconciled")?;
    if reconciled.status != Tri::True {
        return None;
    }
    if reconciled.observed_generation != of.generation {
        return Some("I7: Reconciled is True for another generation".to_owned());
    }
    // An adapter has its own condition when the resource waits for it.
    let counts = |kind: &str| of.conditions.iter().any(|condition| condition.kind == kind);
    let behind = of
        .reports
        .keys()
        .find(|adapter| counts(&condition_kind(adapter)) && done(of, adapter).is_none())?;
    Some(format!("I7: Reconciled is True, but {behind} is not done with this generation"))
}

pub(super) fn step(before: &Resource, after: &Resource) -> Option<String> {
    let fixed = [
        ("id", before.id == after.id),
        ("kind", before.kind == after.kind),
        ("name", before.name == after.name),
        ("tenant", before.tenant == after.tenant),
        ("owner", before.owner == after.owner),
        ("creation", before.created == after.created),
        ("deletion", before.deletion.is_none() || before.deletion == after.deletion),
    ];
    if let Some((what, _)) = fixed.iter().find(|(_, kept)| !kept) {
        return Some(format!("I7: its {what} changed"));
    }
    if after.generation < before.generation {
        return Some("I6: the generation went backwards".to_owned());
    }
    let same_wish = before.spec == after.spec
        && before.labels == after.labels
        && before.deletion == after.deletion;
    if !same_wish && before.generation == after.generation {
        return Some("I6: the wish changed without a new generation".to_owned());
    }
    let age = |of: &Resource, adapter| {
        let report = of.reports.get(adapter)?;
        Some((report.observed_generation, report.last_report_time))
    };
    let back = before.reports.keys().find(|name| age(after, *name) < age(before, *name))?;
    Some(format!("I6: the report of {back} went backwards"))
}
