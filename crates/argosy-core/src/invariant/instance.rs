//! What must hold of the record of a machine and of its change.

use crate::gate;
use crate::instance::{
    ABSENT_FOR, CONSOLE_LEN_MAX, Instance, Provisioning, Reason, State, TRIED_MAX, Terminating,
};
use crate::machine::{MachineId, Order};
use jiff::Timestamp;

pub(super) fn broken(before: Option<&Instance>, after: &Instance) -> Option<String> {
    state(after).or_else(|| match before {
        Some(before) => step(before, after),
        None => first(after),
    })
}

fn state(of: &Instance) -> Option<String> {
    if TRIED_MAX < of.tried.len() {
        let len = of.tried.len();
        return Some(format!("I11: it has {len} cures, and at most {TRIED_MAX} are kept"));
    }
    let console = match &of.state {
        State::Terminating(leaving) => leaving.console.len(),
        State::Failed { console, .. } => console.len(),
        State::Provisioning(_)
        | State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Terminated { .. } => 0,
    };
    if CONSOLE_LEN_MAX < console {
        return Some(format!(
            "I11: its console has {console} bytes, at most {CONSOLE_LEN_MAX} are kept"
        ));
    }
    match &of.state {
        State::Provisioning(buying) if buying.unsure && buying.called_at.is_none() => {
            Some("I2: a call is in doubt, and nobody looks for what it made".to_owned())
        }
        State::Provisioning(_)
        | State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Terminating(_)
        | State::Terminated { .. }
        | State::Failed { .. } => None,
    }
}

/// A record begins as an intent, or as a machine that was found.
fn first(of: &Instance) -> Option<String> {
    match &of.state {
        State::Provisioning(Provisioning { calls: 1, called_at: Some(_), .. })
        | State::AwaitingNode { .. } => None,
        State::Provisioning(_) => Some("I2: it begins without the intent of a call".to_owned()),
        State::Running { .. }
        | State::Terminating(_)
        | State::Terminated { .. }
        | State::Failed { .. } => Some(format!("I7: it begins as {}", of.state.as_str())),
    }
}

fn step(before: &Instance, after: &Instance) -> Option<String> {
    if before.state.is_over() {
        // A person found the machine: the record was wrong, and its node still has its name.
        let found = after.adopted && matches!(after.state, State::AwaitingNode { .. });
        let same = (&before.id, &before.tenant) == (&after.id, &after.tenant);
        let legal = before.state == after.state || found && same;
        return (!legal).then(|| "I7: it was over, and goes on".to_owned());
    }
    let fixed = [
        ("id", before.id == after.id),
        ("tenant", before.tenant == after.tenant),
        ("pool", before.pool == after.pool && before.pool_name == after.pool_name),
        ("number", before.number == after.number),
        ("token", before.token == after.token),
        ("order", is_same_order(&before.order, &after.order)),
        ("age", before.ordered_at == after.ordered_at),
        ("purpose", before.why == after.why && before.replaces == after.replaces),
    ];
    if let Some((what, _)) = fixed.iter().find(|(_, kept)| !kept) {
        let rule = if *what == "token" { "I2" } else { "I7" };
        return Some(format!("{rule}: its {what} changed"));
    }
    illegal(&before.state, &after.state)
        .or_else(|| lost("machine", before.machine(), after.machine(), &after.state))
        .or_else(|| lost("node", before.node(), after.node(), &after.state))
}

/// Whether it is the same order; its price may become known later.
fn is_same_order(before: &Order, after: &Order) -> bool {
    let price_per_hour = before.price_per_hour.or(after.price_per_hour);
    Order { price_per_hour, ..before.clone() } == *after
}

/// What was known, and is not any more. What failed never had a node, and its machine is proven gone.
fn lost<T: PartialEq>(
    what: &str,
    before: Option<&T>,
    after: Option<&T>,
    state: &State,
) -> Option<String> {
    let failed = matches!(state, State::Failed { .. }) && what == "machine";
    let kept = before.is_none() || before == after || failed;
    (!kept).then(|| format!("I2: its {what} was known, and is not any more"))
}

/// A step that no event leads to.
fn illegal(before: &State, after: &State) -> Option<String> {
    let no = || Some(format!("I7: it goes from {} to {}", before.as_str(), after.as_str()));
    match (before, after) {
        (State::Provisioning(was), State::Provisioning(is)) => bought(was, is),
        (State::Provisioning(was), State::Terminated { .. }) if was.called_at.is_some() => {
            Some("I2: it may have been bought, and nobody looked".to_owned())
        }
        (State::Provisioning(_), _) => None,
        (State::AwaitingNode { since, .. }, State::AwaitingNode { since: now, .. })
        | (State::Running { since, .. }, State::Running { since: now, .. }) => {
            moved("age", *since, *now)
        }
        (State::AwaitingNode { .. }, State::Running { .. })
        | (State::AwaitingNode { .. } | State::Running { .. }, State::Terminating(_)) => None,
        (State::Terminating(was), State::Terminating(is)) => returned(was, is),
        (State::Terminating(was), State::Terminated { machine, at, reason, .. }) => {
            ended(was, machine.as_ref(), *at, reason)
        }
        (State::Terminating(was), State::Failed { .. }) if was.reason == Reason::Stale => None,
        (
            State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. },
            _,
        ) => no(),
    }
}

fn bought(was: &Provisioning, is: &Provisioning) -> Option<String> {
    if is.calls < was.calls {
        return Some("I6: its calls were counted backwards".to_owned());
    }
    // Only two looks at nothing, or the provider's no to the only call, end a doubt.
    let settled = was.called_at.is_some() && is.called_at.is_none();
    if settled && was.unsure && was.absent_since.is_none() {
        return Some("I2: it may have been bought, and nobody looked".to_owned());
    }
    None
}

fn returned(was: &Terminating, is: &Terminating) -> Option<String> {
    if is.calls < was.calls {
        return Some("I6: its calls were counted backwards".to_owned());
    }
    if was.alarmed && !is.alarmed {
        return Some("I7: people were told of it, and that is forgotten".to_owned());
    }
    let weaker = gate::strength(&is.reason) <= gate::strength(&was.reason);
    if was.reason != is.reason && weaker {
        return Some("I7: why it has to go changed".to_owned());
    }
    // A machine that was found only now is gone for certain that much later.
    let found = was.machine.is_none() && is.machine.is_some() && was.since <= is.since;
    if found { None } else { moved("return", was.since, is.since) }
}

fn ended(
    was: &Terminating,
    machine: Option<&MachineId>,
    at: Timestamp,
    reason: &Reason,
) -> Option<String> {
    if was.reason != *reason {
        return Some("I7: why it has to go changed".to_owned());
    }
    // Where a machine is known, the provider may have said in so many words that it is gone.
    let looked = was.absent_since.is_some_and(|since| ABSENT_FOR <= at.duration_since(since));
    let proven = machine.is_some() || looked;
    (!proven).then(|| "I2: it may have been bought, and nobody looked twice".to_owned())
}

fn moved(what: &str, was: Timestamp, is: Timestamp) -> Option<String> {
    (was != is).then(|| format!("I7: the time of its {what} moved"))
}
