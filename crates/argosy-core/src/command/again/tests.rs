use super::*;
use crate::command::{Ack, Order, acknowledged, elapsed, issue};
use crate::fixture::at;
use uuid::Uuid;

fn id(number: u128) -> CommandId {
    CommandId::new(Uuid::from_u128(number))
}

/// The node after an order ended so; `None` means that it was never fetched.
fn after(node: &Node, kind: CommandKind, outcome: Option<Outcome>, now: i64) -> Node {
    let order = Order {
        kind,
        parameters: BTreeMap::new(),
        reason: "fan".to_owned(),
        by: "ann".to_owned(),
        automatic: false,
        drain_for: None,
    };
    let settings = PoolSettings::default();
    let issued = issue(node, &[], order, id(1), &settings, at(now)).unwrap();
    let moved = match outcome {
        Some(outcome) => {
            let message = "cannot reach slurmctld".to_owned();
            let ack = Ack { outcome: Some(outcome), progress: None, message, result: None };
            acknowledged(&issued.node, &issued.command, ack, &[], at(now))
        }
        None => elapsed(&issued.node, &issued.command, &[], &settings, &[], at(now + 600)),
    };
    moved.unwrap().node
}

fn told(node: &Node, now: i64) -> Option<CommandKind> {
    let settings = PoolSettings::default();
    again(node, &[], id(2), &settings, at(now)).map(|issued| issued.command.kind)
}

#[test]
fn r2_n5_a_command_that_expired_is_made_up_for() {
    let node = crate::node::fixture::node("n1");
    let cordoned = after(&node, CommandKind::Cordon, None, 0);
    assert_eq!(told(&cordoned, 600), None, "not at once");
    assert_eq!(told(&cordoned, 631), Some(CommandKind::Cordon));
    let back = after(&cordoned, CommandKind::Uncordon, None, 1000);
    assert_eq!(told(&back, 1700), Some(CommandKind::Uncordon));
    let drained = after(&node, CommandKind::Drain, None, 0);
    assert_eq!(told(&drained, 700), Some(CommandKind::Cordon), "it is out of service still");
    let gone = after(&node, CommandKind::Terminate, None, 0);
    assert_eq!(told(&gone, 700), Some(CommandKind::Terminate));
    // One that is not heard is told when it is.
    let lost = Node { liveness: Liveness::Unreachable, ..cordoned };
    assert_eq!(told(&lost, 700), None);
    // What it did is done.
    assert_eq!(told(&after(&node, CommandKind::Cordon, Some(Outcome::Completed), 0), 9999), None);
    let done = after(&back, CommandKind::Cordon, Some(Outcome::Completed), 2000);
    assert_eq!(told(&done, 9999), None);
}

#[test]
fn r2_n6_a_cordon_whose_hook_fails_is_flagged_and_tried_again() {
    let node = crate::node::fixture::node("n1");
    let first = after(&node, CommandKind::Cordon, Some(Outcome::Failed), 0);
    let flag = &first.flags[&Flag::CommandFailed];
    assert_eq!(flag.message, "CORDON failed: cannot reach slurmctld");
    assert_eq!(told(&first, 31), Some(CommandKind::Cordon));
    let settings = PoolSettings::default();
    let issued = again(&first, &[], id(2), &settings, at(31)).unwrap();
    assert_eq!(again(&first, &[&issued.command], id(3), &settings, at(31)), None, "once");
    let ack = |outcome| Ack {
        outcome: Some(outcome),
        progress: None,
        message: "so".to_owned(),
        result: None,
    };
    let moved = acknowledged(&first, &issued.command, ack(Outcome::Completed), &[], at(32));
    let well = moved.unwrap().node;
    assert!(well.flags.is_empty());
    assert_eq!((told(&well, 9999), &well.duty), (None, &first.duty));
    // The waits grow.
    let moved = acknowledged(&first, &issued.command, ack(Outcome::Failed), &[], at(32)).unwrap();
    assert_eq!((told(&moved.node, 75), told(&moved.node, 93)), (None, Some(CommandKind::Cordon)));
}
