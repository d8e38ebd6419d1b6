use super::{Brakes, Guards, Held, permit, reap, release, strength};
use crate::fixture::{at, permitted};
use crate::instance::fixture::{OURS, instance_id, intent, machine_of};
use crate::instance::{Instance, Reason, State};
use crate::inventory::{Orphan, Reap};
use crate::machine::{Machine, MachineId, MachineState};
use crate::protect::Protection;
use uuid::Uuid;

/// Every reason there is, and whether somebody else than we decided it: a person, or the provider. A new one does not compile before it has a
/// row: `known` matches without a wildcard.
fn reasons() -> Vec<(Reason, bool)> {
    let by = || "ada".to_owned();
    let rows = vec![
        (Reason::ScaleDown { asked: false }, false),
        (Reason::PoolDeleted, true),
        (Reason::Replaced { by: Some(instance_id(2)), because: "XID 79".to_owned() }, false),
        (Reason::Stale, false),
        (Reason::BadHardware { serial: "1650".to_owned() }, false),
        (Reason::Reclaimed, true),
        (Reason::Vanished, false),
        (Reason::NodeTerminated { by: by() }, true),
        (Reason::Operator { by: by(), reason: "power work".to_owned() }, true),
        (Reason::Unwanted, false),
        (Reason::Sick { because: "XID 79".to_owned() }, false),
        (Reason::ScaleDown { asked: true }, true),
    ];
    let known = |reason: &Reason| match reason {
        Reason::ScaleDown { asked: false } => 0,
        Reason::PoolDeleted => 1,
        Reason::Replaced { .. } => 2,
        Reason::Stale => 3,
        Reason::BadHardware { .. } => 4,
        Reason::Reclaimed => 5,
        Reason::Vanished => 6,
        Reason::NodeTerminated { .. } => 7,
        Reason::Operator { .. } => 8,
        Reason::Unwanted => 9,
        Reason::Sick { .. } => 10,
        Reason::ScaleDown { asked: true } => 11,
    };
    assert!(rows.iter().enumerate().all(|(index, (reason, _))| known(reason) == index));
    rows
}

fn owned(reason: &Reason) -> (Instance, Machine) {
    let intent = intent(1);
    let machine = machine_of(&intent, "i-1", MachineState::Running);
    let record =
        intent.answered(Ok(&machine), at(10)).leaving(permitted(reason.clone()), at(20)).unwrap();
    (record, machine)
}

fn guards<'a>() -> Guards<'a> {
    Guards { installation: OURS, shown: None, compared: true, recovery: None }
}

fn answer(record: &Instance, guards: &Guards<'_>) -> Result<MachineId, Held> {
    release(record, guards).map(|doomed| {
        assert_eq!(doomed.instance(), Some(&record.id));
        doomed.machine().clone()
    })
}

#[test]
fn f16_every_reason_meets_every_guard() {
    for (reason, _) in reasons() {
        let (record, machine) = owned(&reason);
        let mut stranger = machine.clone();
        stranger.tags.installation = Some(Uuid::from_u128(0xB));
        let mut bare = machine.clone();
        bare.tags.installation = None;
        let yes = || Ok(MachineId::new("i-1"));
        let theirs = || Err(Held::Stranger(machine.id.clone()));
        let mut others = machine.clone();
        others.tags.token = Some(intent(2).token);
        let anothers = || Err(Held::Anothers(machine.id.clone()));
        let rows = [
            ("nothing speaks against it", guards(), yes()),
            ("it is shown as ours", Guards { shown: Some(&machine), ..guards() }, yes()),
            ("it is shown without a tag", Guards { shown: Some(&bare), ..guards() }, yes()),
            ("it is a stranger's", Guards { shown: Some(&stranger), ..guards() }, theirs()),
            ("it is another's", Guards { shown: Some(&others), ..guards() }, anothers()),
            (
                "it was not compared (B2)",
                Guards { compared: false, ..guards() },
                Err(Held::NotCompared),
            ),
            (
                "a stranger's, and nothing else holds",
                Guards { shown: Some(&stranger), compared: false, ..guards() },
                theirs(),
            ),
        ];
        for (what, guards, expected) in rows {
            assert_eq!(answer(&record, &guards), expected, "{reason:?}: {what}");
        }
    }
}

/// The permit is asked before a node is cordoned, so that what a brake holds keeps its seat.
#[test]
fn r2_m3_every_reason_meets_every_brake_before_anything_is_done() {
    for (reason, theirs) in reasons() {
        let (frozen, stopped) = ("aws shows 0 of 9", "paused by ada");
        let (doubt, pause) = (Held::Frozen(frozen.to_owned()), Held::Stopped(stopped.to_owned()));
        let held = |held: Held| if theirs { Ok(reason.clone()) } else { Err(held) };
        let none = Brakes::default();
        let rows = [
            ("nothing speaks against it", none, Ok(reason.clone())),
            ("in doubt (G11)", Brakes { frozen: Some(frozen), ..none }, held(doubt.clone())),
            ("paused", Brakes { stopped: Some(stopped), ..none }, held(pause)),
            ("both", Brakes { frozen: Some(frozen), stopped: Some(stopped), ..none }, held(doubt)),
        ];
        for (what, brakes, expected) in rows {
            let answer = permit(reason.clone(), &brakes).map(super::Permit::into_reason);
            assert_eq!(answer, expected, "{reason:?}: {what}");
        }
    }
}

/// What people asked for may be in the history that was lost: nothing passes a recovery, and neither does what was
/// decided before it.
#[test]
fn r1_v1_nothing_passes_a_recovery() {
    let why = "in recovery since yesterday";
    let held = Held::Recovery(why.to_owned());
    for (reason, _) in reasons() {
        let brakes = Brakes { recovery: Some(why), ..Brakes::default() };
        assert_eq!(permit(reason.clone(), &brakes).map(drop), Err(held.clone()), "{reason:?}");
        let (record, _) = owned(&reason);
        let guards = Guards { recovery: Some(why), ..guards() };
        assert_eq!(answer(&record, &guards), Err(held.clone()), "{reason:?}");
    }
}

#[test]
fn r2_m19_every_reason_meets_the_label_and_force_lets_a_person_shrink() {
    for (reason, _) in reasons() {
        for by in [Protection::Node, Protection::Pool, Protection::Cluster] {
            let brakes = Brakes { protected: Some(by), ..Brakes::default() };
            let answer = permit(reason.clone(), &brakes).map(super::Permit::into_reason);
            let kept =
                if by.keeps(&reason) { Err(Held::Protected(by)) } else { Ok(reason.clone()) };
            assert_eq!(answer, kept, "{reason:?}: {by}");
            let forced = Brakes { shrink_forced: true, ..brakes };
            let answer = permit(reason.clone(), &forced).map(super::Permit::into_reason);
            let asked = reason == Reason::ScaleDown { asked: true };
            assert_eq!(answer, if asked { Ok(reason.clone()) } else { kept }, "{reason:?}: {by}");
        }
    }
}

/// Whatever is asked for while a machine leaves, or is to leave, the strongest reason stands.
#[test]
fn r2_m4_a_stronger_reason_replaces_a_weaker_one_and_no_other() {
    let intent = intent(1);
    let machine = machine_of(&intent, "i-1", MachineState::Running);
    let running = intent.answered(Ok(&machine), at(10));
    let running = running.registered(&crate::instance::fixture::node_id(1), at(20)).unwrap();
    for (first, _) in reasons() {
        let departing = running.departing(permitted(first.clone()), at(99), at(30)).unwrap();
        let (leaving, _) = owned(&first);
        for (next, _) in reasons() {
            let stronger = strength(&first) < strength(&next);
            let stands = if stronger { &next } else { &first };
            let departing = departing.departing(permitted(next.clone()), at(500), at(40));
            assert_eq!(departing.is_some(), stronger, "{next:?} after {first:?}");
            if let Some(departure) = departing.and_then(|it| it.departure) {
                assert_eq!((&departure.reason, departure.deadline), (stands, at(99)));
            }
            let leaving = leaving.leaving(permitted(next.clone()), at(40));
            assert_eq!(leaving.is_some(), stronger, "{next:?} after {first:?}");
            if let Some(State::Terminating(leaving)) = leaving.map(|it| it.state) {
                assert_eq!(&leaving.reason, stands);
            }
        }
    }
    let strongest = reasons().into_iter().max_by_key(|(reason, _)| strength(reason));
    assert_eq!(strongest.map(|(reason, _)| reason), Some(Reason::PoolDeleted));
}

#[test]
fn only_a_record_that_leaves_lets_its_machine_go() {
    let intent = intent(1);
    let machine = machine_of(&intent, "i-1", MachineState::Running);
    let gone = machine_of(&intent, "i-1", MachineState::Gone);
    let waiting = intent.answered(Ok(&machine), at(10));
    let running = waiting.registered(&crate::instance::fixture::node_id(1), at(20)).unwrap();
    let (leaving, _) = owned(&Reason::PoolDeleted);
    let look = crate::instance::fixture::listing(60);
    let abilities = crate::instance::fixture::abilities(true, 0);
    let over = leaving.seen(Some(&gone), look, &abilities, at(60)).unwrap();
    assert!(matches!(over.state, State::Terminated { .. }));
    for record in [&intent, &waiting, &running, &over] {
        let held = Err(Held::NotLeaving(record.id.clone()));
        assert_eq!(answer(record, &guards()), held, "{}", record.state.as_str());
    }
    let unknown = intent.leaving(permitted(Reason::PoolDeleted), at(5)).unwrap();
    assert_eq!(answer(&unknown, &guards()), Err(Held::NoMachine(unknown.id.clone())));
}

#[test]
fn g14_an_orphan_goes_only_on_request_and_only_if_it_is_ours() {
    let machine = machine_of(&intent(1), "i-9", MachineState::Running);
    let orphan = Orphan {
        provider: "aws".to_owned(),
        machine: machine.id.clone(),
        name: machine.name.clone(),
        tags: machine.tags.clone(),
        region: String::new(),
        zone: String::new(),
        machine_type: String::new(),
        price_per_hour: None,
        first_seen: at(0),
        missing_since: None,
        reap: None,
    };
    assert_eq!(reap(&orphan, &guards()), Err(Held::NotReaped(machine.id.clone())));
    let asked = Reap { by: "ada".to_owned(), reason: "costs".to_owned(), at: at(1) };
    let asked = Orphan { reap: Some(asked), ..orphan };
    let doomed = reap(&asked, &guards()).unwrap();
    assert_eq!((doomed.machine(), doomed.instance()), (&machine.id, None));
    let early = Guards { compared: false, ..guards() };
    assert_eq!(reap(&asked, &early), Err(Held::NotCompared));
    let recovering = Guards { recovery: Some("in recovery"), ..guards() };
    assert_eq!(reap(&asked, &recovering), Err(Held::Recovery("in recovery".to_owned())));
    for tag in [None, Some(Uuid::from_u128(0xB))] {
        let mut theirs = asked.clone();
        theirs.tags.installation = tag;
        assert_eq!(reap(&theirs, &guards()), Err(Held::Stranger(machine.id.clone())));
    }
    // It changed hands since it was written down.
    let mut stranger = machine.clone();
    stranger.tags.installation = Some(Uuid::from_u128(0xB));
    let shown = Guards { shown: Some(&stranger), ..guards() };
    assert_eq!(reap(&asked, &shown), Err(Held::Stranger(machine.id.clone())));
}
