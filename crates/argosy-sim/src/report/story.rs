//! What went wrong before a violation, from the outcome alone.
//!
//! `argosy sim explain` finds out which of it matters; this is what is known without playing anything again.

use super::words::{many, seconds};
use crate::outcome::{Fault, Outcome};

/// The last faults before the first violation, the latest last, and the violation; nothing if there is none.
#[must_use]
pub fn before(outcome: &Outcome, lines_max: usize) -> Vec<String> {
    let Some(violation) = outcome.violations.first() else { return Vec::new() };
    let faults: Vec<&Fault> =
        outcome.faults.iter().filter(|fault| fault.at <= violation.at).collect();
    let left_out = faults.len().saturating_sub(lines_max);
    let mut lines = Vec::new();
    if left_out != 0 {
        lines.push(format!("{} before", many(left_out as u64, "fault")));
    }
    lines.extend(faults.iter().skip(left_out).map(|fault| line(fault)));
    lines.push(format!(
        "{}: {} is violated: {}",
        seconds(violation.at),
        violation.invariant,
        violation.message
    ));
    lines
}

fn line(fault: &Fault) -> String {
    let Fault { at, target, cause, kind, detected_after, cordoned_after, repaired_after, .. } =
        fault;
    let why = match (cause.as_str(), kind.as_str()) {
        ("", kind) => kind.to_owned(),
        (cause, kind) if cause == kind => kind.to_owned(),
        (cause, kind) => format!("{kind} ({cause})"),
    };
    let steps =
        [("known", detected_after), ("cordoned", cordoned_after), ("repaired", repaired_after)];
    let steps = steps
        .iter()
        .filter_map(|(word, after)| after.map(|after| format!("{word} after {}", seconds(after))));
    let steps: Vec<String> = steps.collect();
    let then = if steps.is_empty() { "nobody knew".to_owned() } else { steps.join(", ") };
    format!("{}: {target}: {why}; {then}", seconds(*at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Violation;

    #[test]
    fn a_story_is_the_last_faults_and_what_came_of_them() {
        let fault = |at: f64, kind: &str, cause: &str, known: Option<f64>| Fault {
            at,
            target: "gpu-1".to_owned(),
            kind: kind.to_owned(),
            cause: cause.to_owned(),
            detected_after: known,
            ..Fault::default()
        };
        let mut outcome = Outcome {
            faults: vec![
                fault(10.0, "silent", "silent", None),
                fault(20.0, "xid:79", "Faulty GPU", Some(12.0)),
                fault(30.0, "crash", "", None),
                fault(5_000.0, "crash", "", None),
            ],
            ..Outcome::default()
        };
        assert_eq!(before(&outcome, 2), Vec::<String>::new());
        outcome.violations.push(Violation {
            invariant: "I4".to_owned(),
            at: 60.0,
            message: "21 nodes".to_owned(),
        });
        assert_eq!(
            before(&outcome, 2),
            [
                "1 fault before",
                "20s: gpu-1: xid:79 (Faulty GPU); known after 12s",
                "30s: gpu-1: crash; nobody knew",
                "1m: I4 is violated: 21 nodes",
            ]
        );
        assert_eq!(before(&outcome, 3).len(), 4);
    }
}
