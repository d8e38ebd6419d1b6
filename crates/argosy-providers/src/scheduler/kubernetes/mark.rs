//! What we write on a node, and how we know it again: the decision, without the API.

use crate::scheduler::one_line;
use argosy_control::scheduler::Out;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::{Value, json};

/// Where a node should be.
pub(super) enum Wish<'a> {
    /// It gets no new pods.
    Out {
        /// For people.
        reason: &'a str,
        /// Until when its pods are asked to leave; `None` if they may stay.
        deadline: Option<Timestamp>,
    },
    /// As it would be without us.
    In,
}

/// Keeps new pods away, and says that it was us: `kubectl uncordon` alone does not undo it.
const TAINT: &str = "argosy.dev/cordoned";
/// Why, for people. With it the node is ours to take back.
const REASON: &str = "argosy.dev/cordoned";
/// Until when pods are asked to leave; without it they are not.
const DEADLINE: &str = "argosy.dev/drain-deadline";
/// That `spec.unschedulable` is our doing, and not a person's who came before us.
const UNSCHEDULABLE: &str = "argosy.dev/made-unschedulable";

/// The longest reason, in characters.
const REASON_MAX: usize = 500;

/// What has to be written to bring a node there; `None` if it is there. It holds only for the version of
/// the node that was read, because taints can only be written all together.
pub(super) fn patch(node: &Node, wish: &Wish<'_>) -> Option<Value> {
    let blocked = unschedulable(node);
    let made_by_us = annotation(node, UNSCHEDULABLE).is_some();
    let (reason, deadline, made, block) = match wish {
        Wish::Out { reason, deadline } => (
            Some(one_line(reason, REASON_MAX)),
            deadline.map(|deadline| deadline.to_string()),
            // Whoever came before us is not followed by us.
            (made_by_us || !blocked).then(|| "true".to_owned()),
            true,
        ),
        Wish::In => (None, None, None, blocked && !made_by_us),
    };
    let taints = taints(node, matches!(wish, Wish::Out { .. }));
    let noted = [(REASON, &reason), (DEADLINE, &deadline), (UNSCHEDULABLE, &made)];
    let there = noted.iter().all(|(key, value)| annotation(node, key) == value.as_deref());
    if there && taints.is_none() && blocked == block {
        return None;
    }
    let annotations: Value =
        noted.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let mut spec = json!({ "unschedulable": block.then_some(true) });
    if let (Some(taints), Some(spec)) = (taints, spec.as_object_mut()) {
        spec.insert("taints".to_owned(), json!(taints));
    }
    let version = &node.metadata.resource_version;
    Some(json!({
        "metadata": { "resourceVersion": version, "annotations": annotations },
        "spec": spec,
    }))
}

/// Until when pods of a node are asked to leave, if they are. A text that is no time asks nobody.
pub(super) fn deadline(node: &Node) -> Option<Timestamp> {
    annotation(node, DEADLINE)?.parse().ok()
}

/// Whether a node gets pods, and what people read about it there.
pub(super) fn shown(node: &Node) -> (Out, String) {
    let reason = annotation(node, REASON);
    let ours = reason.is_some() || given(node).iter().any(is_ours);
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut unready = conditions
        .filter(|condition| condition.type_ == "Ready" && condition.status != "True")
        .map(|condition| condition.reason.clone().unwrap_or_default());
    let line = |text: &str| one_line(text, REASON_MAX);
    match (is_out(node), ours) {
        (true, true) => (Out::ByUs, line(reason.unwrap_or_default())),
        (true, false) => (Out::ByOthers, "unschedulable".to_owned()),
        (false, _) => match unready.next() {
            Some(why) => (Out::ByOthers, line(&format!("not ready: {why}"))),
            None => (Out::InUse, String::new()),
        },
    }
}

/// Whether a node gets no new pods.
pub(super) fn is_out(node: &Node) -> bool {
    unschedulable(node) || given(node).iter().any(is_ours)
}

fn unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

fn annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn given(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// All taints with ours or without it; `None` if that is how it is.
fn taints(node: &Node, with_ours: bool) -> Option<Vec<Taint>> {
    let given = given(node);
    if given.iter().any(is_ours) == with_ours {
        return None;
    }
    let mut taints: Vec<Taint> = given.iter().filter(|taint| !is_ours(taint)).cloned().collect();
    if with_ours {
        let (key, effect) = (TAINT.to_owned(), "NoSchedule".to_owned());
        taints.push(Taint { key, effect, ..Taint::default() });
    }
    Some(taints)
}

fn is_ours(taint: &Taint) -> bool {
    taint.key == TAINT
}

#[cfg(test)]
mod tests;
