//! What must hold of a node and of its change.

use super::Cause;
use crate::node::{CHECKS_MAX, Duty, FINDINGS_MAX, GPUS_MAX, Node, SIGHTINGS_MAX};

pub(super) fn broken(before: Option<&Node>, after: &Node, cause: Cause) -> Option<String> {
    state(after).or_else(|| match before {
        Some(before) => step(before, after, cause),
        None => first(after),
    })
}

fn state(of: &Node) -> Option<String> {
    let lists = [
        ("checks", of.checks.len(), CHECKS_MAX),
        ("findings", of.findings.len(), FINDINGS_MAX),
        ("sightings", of.sightings.len(), SIGHTINGS_MAX),
        ("GPUs", of.gpus.len(), GPUS_MAX),
    ];
    let long = lists.into_iter().find(|(_, len, max)| max < len);
    long.map(|(what, len, max)| format!("I11: it has {len} {what}, and at most {max} are kept"))
}

fn first(of: &Node) -> Option<String> {
    (of.duty != Duty::Active).then(|| "I7: it begins out of service".to_owned())
}

fn step(before: &Node, after: &Node, cause: Cause) -> Option<String> {
    let fixed = [
        ("id", before.id == after.id),
        ("tenant", before.tenant == after.tenant),
        ("pool", before.pool.is_none() || before.pool == after.pool),
        ("first registration", before.registered_at == after.registered_at),
    ];
    if let Some((what, _)) = fixed.iter().find(|(_, kept)| !kept) {
        return Some(format!("I7: its {what} changed"));
    }
    if cause == Cause::Registration && before.duty != after.duty {
        return Some("I7: a registration changed its duty".to_owned());
    }
    // An agent that registers may begin to count anew, from nothing.
    let anew = cause == Cause::Registration && after.report_sequence == 0;
    if after.report_sequence < before.report_sequence && !anew {
        return Some("I6: its report sequence went backwards".to_owned());
    }
    let theirs = before.duty.hold().is_some_and(|hold| !hold.automatic);
    if cause == Cause::Automatic && theirs && before.duty.hold() != after.duty.hold() {
        return Some("I7: an automatic action touched what an operator decided".to_owned());
    }
    duty_step(&before.duty, &after.duty)
}

fn duty_step(before: &Duty, after: &Duty) -> Option<String> {
    match (before, after) {
        (Duty::Terminated(_), Duty::Terminated(_)) => None,
        (Duty::Terminated(_), _) => Some("I7: it came back from being terminated".to_owned()),
        (
            Duty::Draining { command, deadline, done, .. },
            Duty::Draining { command: next, deadline: later, done: ended, .. },
        ) => {
            let same = command == next;
            if same && deadline != later {
                Some("I5: the deadline of its drain moved".to_owned())
            } else if same && *done && !*ended {
                Some("I5: its drain had ended and goes on".to_owned())
            } else if !same && *ended {
                Some("I5: its drain ended before it began".to_owned())
            } else {
                None
            }
        }
        (Duty::Active | Duty::Cordoned(_), Duty::Draining { done: true, .. }) => {
            Some("I5: its drain ended before it began".to_owned())
        }
        (Duty::Active | Duty::Cordoned(_) | Duty::Draining { .. }, _) => None,
    }
}
