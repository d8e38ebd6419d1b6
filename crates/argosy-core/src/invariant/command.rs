//! What must hold of a command and of its change.

use crate::command::{Command, CommandKind, CommandState, Outcome};

pub(super) fn broken(before: Option<&Command>, after: &Command) -> Option<String> {
    state(after).or_else(|| match before {
        Some(before) => step(before, after),
        None if after.state == CommandState::Pending => None,
        None => Some(format!("I5: it begins as {}", after.state.word())),
    })
}

fn state(of: &Command) -> Option<String> {
    let CommandState::Done { at, outcome, .. } = &of.state else { return None };
    let of_a_drain = matches!(outcome, Outcome::Drained | Outcome::Forced | Outcome::TimedOut);
    if of_a_drain && of.kind != CommandKind::Drain {
        return Some(format!("I5: a {} cannot end as {outcome:?}", of.kind.as_str()));
    }
    let late = of.deadline.is_some_and(|deadline| deadline < *at);
    if *outcome == Outcome::Drained && late {
        return Some("I5: it ended as Drained after its deadline".to_owned());
    }
    None
}

fn step(before: &Command, after: &Command) -> Option<String> {
    let fixed = [
        ("id", before.id == after.id),
        ("node", before.node == after.node),
        ("tenant", before.tenant == after.tenant),
        ("kind", before.kind == after.kind),
        ("parameters", before.parameters == after.parameters),
        ("author", before.by == after.by && before.automatic == after.automatic),
        ("reason", before.reason == after.reason),
        ("age", before.issued_at == after.issued_at && before.expires_at == after.expires_at),
        ("deadline", before.deadline == after.deadline),
    ];
    if let Some((what, _)) = fixed.iter().find(|(_, kept)| !kept) {
        return Some(format!("I5: its {what} changed"));
    }
    match (&before.state, &after.state) {
        (CommandState::Done { .. }, after) if before.state != *after => {
            Some("I5: it had ended, and ended again".to_owned())
        }
        (CommandState::Acknowledged { .. }, CommandState::Pending) => {
            Some("I5: the node had fetched it, and it is pending again".to_owned())
        }
        (
            CommandState::Acknowledged { at, progress },
            CommandState::Acknowledged { at: later, progress: further },
        ) => {
            if at != later {
                Some("I5: the node had fetched it, and fetched it again".to_owned())
            } else if further < progress {
                Some("I6: its progress went backwards".to_owned())
            } else {
                None
            }
        }
        (
            CommandState::Pending | CommandState::Acknowledged { .. } | CommandState::Done { .. },
            CommandState::Pending | CommandState::Acknowledged { .. } | CommandState::Done { .. },
        ) => None,
    }
}
