//! What is refused of the record of a machine.

use crate::fixture::{at, permitted};
use crate::id::ResourceId;
use crate::instance::fixture::{abilities, find, intent, machine_of, node_id};
use crate::instance::{
    CONSOLE_LEN_MAX, Cure, Failure, Instance, Provisioning, Reason, State, TRIED_MAX,
};
use crate::invariant::{Change, check};
use crate::machine::{MachineId, MachineState, Trouble};
use uuid::Uuid;

fn change(before: Option<&Instance>, after: &Instance) -> Result<(), String> {
    check(Change::Instance { before, after })
}

#[track_caller]
fn refused(before: &Instance, edit: impl Fn(&mut Instance), expected: &str) {
    assert_eq!(change(Some(before), before), Ok(()));
    let mut after = before.clone();
    edit(&mut after);
    let sentence = format!("Instance workers-00000001: {expected}");
    assert_eq!(change(Some(before), &after), Err(sentence));
}

fn waiting() -> Instance {
    let intent = intent(1);
    intent.answered(Ok(&machine_of(&intent, "i-1", MachineState::Running)), at(1))
}

fn running() -> Instance {
    waiting().registered(&node_id(1), at(2)).unwrap()
}

fn going() -> Instance {
    running().leaving(permitted(Reason::ScaleDown { asked: false }), at(3)).unwrap()
}

fn over() -> Instance {
    let gone = machine_of(&running(), "i-1", MachineState::Gone);
    going().seen(Some(&gone), find(9), &abilities(true, 0), at(9)).unwrap()
}

fn terminated(machine: Option<&str>) -> State {
    let (machine, node) = (machine.map(MachineId::new), Some(node_id(1)));
    State::Terminated { machine, node, at: at(9), reason: Reason::ScaleDown { asked: false } }
}

#[test]
fn i2_a_record_begins_as_an_intent_or_as_a_machine_that_was_found() {
    assert_eq!(change(None, &intent(1)), Ok(()));
    assert_eq!(change(None, &waiting()), Ok(()));
    let mut bare = intent(1);
    bare.state = State::Provisioning(Provisioning::default());
    let without = "Instance workers-00000001: I2: it begins without the intent of a call";
    assert_eq!(change(None, &bare), Err(without.to_owned()));
    for (record, word) in [(running(), "Running"), (going(), "Terminating"), (over(), "Terminated")]
    {
        let sentence = format!("Instance workers-00000001: I7: it begins as {word}");
        assert_eq!(change(None, &record), Err(sentence));
    }
}

#[test]
fn i2_i7_what_a_record_is_about_never_changes() {
    let record = running();
    refused(&record, |it| it.token = Uuid::nil(), "I2: its token changed");
    refused(&record, |it| it.tenant.clear(), "I7: its tenant changed");
    refused(&record, |it| it.pool = ResourceId::new(Uuid::nil()), "I7: its pool changed");
    refused(&record, |it| it.number = 9, "I7: its number changed");
    refused(&record, |it| it.order.spot = true, "I7: its order changed");
    refused(&record, |it| it.ordered_at = at(9), "I7: its age changed");
    refused(&record, |it| it.why.clear(), "I7: its purpose changed");
}

#[test]
fn i2_what_is_known_is_not_lost() {
    let machine_lost = "I2: its machine was known, and is not any more";
    let other = |machine: &str, node: u32| State::Running {
        machine: MachineId::new(machine),
        node: node_id(node),
        since: at(2),
    };
    refused(&running(), |it| it.state = other("i-2", 1), machine_lost);
    refused(
        &running(),
        |it| it.state = other("i-1", 2),
        "I2: its node was known, and is not any more",
    );
    let forget = |it: &mut Instance| {
        let State::Terminating(leaving) = &mut it.state else { panic!("{it:?}") };
        leaving.machine = None;
    };
    refused(&going(), forget, machine_lost);
    refused(&going(), |it| it.state = terminated(Some("i-2")), machine_lost);
    let early = intent(1).registered(&node_id(1), at(1)).unwrap();
    let unknown = |it: &mut Instance| it.state = waiting().state;
    refused(&early, unknown, "I2: its node was known, and is not any more");
}

#[test]
fn i7_only_legal_steps() {
    let failed = || State::Failed {
        at: at(9),
        failure: Failure { reason: "X".to_owned(), message: "x".to_owned() },
        console: String::new(),
    };
    let rows = [
        (waiting(), intent(1).state, "I7: it goes from AwaitingNode to Provisioning"),
        (waiting(), terminated(Some("i-1")), "I7: it goes from AwaitingNode to Terminated"),
        (waiting(), failed(), "I7: it goes from AwaitingNode to Failed"),
        (running(), waiting().state, "I7: it goes from Running to AwaitingNode"),
        (running(), terminated(Some("i-1")), "I7: it goes from Running to Terminated"),
        (running(), failed(), "I7: it goes from Running to Failed"),
        (going(), running().state, "I7: it goes from Terminating to Running"),
        (going(), failed(), "I7: it goes from Terminating to Failed"),
        (over(), running().state, "I7: it was over, and goes on"),
        (over(), failed(), "I7: it was over, and goes on"),
        (intent(1), terminated(None), "I2: it may have been bought, and nobody looked"),
    ];
    for (before, state, expected) in rows {
        refused(&before, |it| it.state = state.clone(), expected);
    }
}

#[test]
fn i2_a_doubt_ends_by_looking_and_by_nothing_else() {
    let unsure = intent(1).answered(Err(&Trouble::Unsure("no answer".to_owned())), at(1));
    let bare = |it: &mut Instance| {
        it.state = State::Provisioning(Provisioning { calls: 1, ..Provisioning::default() })
    };
    refused(&unsure, bare, "I2: it may have been bought, and nobody looked");
    let in_doubt = |it: &mut Instance| {
        let State::Provisioning(buying) = &mut it.state else { panic!("{it:?}") };
        buying.called_at = None;
    };
    refused(&unsure, in_doubt, "I2: a call is in doubt, and nobody looks for what it made");
    refused(
        &unsure.called(at(2)),
        |it| it.state = unsure.state.clone(),
        "I6: its calls were counted backwards",
    );
    // One look is not enough for one that leaves, either.
    let going = unsure.leaving(permitted(Reason::ScaleDown { asked: false }), at(3)).unwrap();
    let over = State::Terminated {
        machine: None,
        node: None,
        at: at(50),
        reason: Reason::ScaleDown { asked: false },
    };
    let twice = "I2: it may have been bought, and nobody looked twice";
    refused(&going, |it| it.state = over.clone(), twice);
    let absent = going.seen(None, find(4), &abilities(true, 0), at(4)).unwrap();
    refused(&absent, |it| it.state = over.clone(), twice);
}

#[test]
fn i7_a_return_is_not_softened() {
    let edit = |edit: fn(&mut crate::instance::Terminating)| {
        move |it: &mut Instance| {
            let State::Terminating(leaving) = &mut it.state else { panic!("{it:?}") };
            edit(leaving);
        }
    };
    let why = "I7: why it has to go changed";
    let record = going().asked(Ok(()), at(4)).alarmed().unwrap();
    refused(&record, edit(|it| it.reason = Reason::Unwanted), why);
    refused(&record, edit(|it| it.calls = 0), "I6: its calls were counted backwards");
    refused(
        &record,
        edit(|it| it.alarmed = false),
        "I7: people were told of it, and that is forgotten",
    );
    refused(&record, edit(|it| it.since = at(8)), "I7: the time of its return moved");
    let asked = record.leaving(permitted(Reason::PoolDeleted), at(5)).unwrap();
    assert_eq!(change(Some(&record), &asked), Ok(()));
    refused(&asked, |it| it.state = record.state.clone(), why);
    refused(&asked, |it| it.state = terminated(Some("i-1")), why);
}

#[test]
fn i11_cures_and_consoles_have_their_limits() {
    let cured = running().tried(Cure::Reboot, "XID 79", at(5));
    let many = |it: &mut Instance| it.tried = vec![cured.tried[0].clone(); TRIED_MAX + 1];
    refused(&running(), many, "I11: it has 17 cures, and at most 16 are kept");
    let long = |it: &mut Instance| {
        let State::Terminating(leaving) = &mut it.state else { panic!("{it:?}") };
        leaving.console = "x".repeat(CONSOLE_LEN_MAX + 1);
    };
    refused(&going(), long, "I11: its console has 16385 bytes, at most 16384 are kept");
}
