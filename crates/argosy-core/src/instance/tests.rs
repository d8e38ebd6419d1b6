mod property;

use super::fixture::{
    OURS, abilities, always, find, instance_id, intent, listing, machine_of, node_id, pool,
};
use super::{
    CONSOLE_LEN_MAX, Cure, Instance, InstanceId, Limits, ListingFacts, Next, Provisioning, Reason,
    State, TRIED_MAX, Terminating, next,
};
use crate::fixture::{at, permitted, seconds};
use crate::machine::{MachineId, MachineState, Notice, NoticeKind, Trouble};
use std::collections::BTreeMap;
use uuid::Uuid;

fn unsure() -> Trouble {
    Trouble::Unsure("no answer within 30 s".to_owned())
}

fn quota() -> Trouble {
    let (resource, message) = ("GPUs".to_owned(), "quota of GPUs is used up".to_owned());
    Trouble::Quota { resource, each: 8, available: 0, message }
}

fn throttled(retry_after_s: Option<u32>) -> Trouble {
    Trouble::Throttled { retry_after_s, message: "too many calls".to_owned() }
}

fn credentials() -> Trouble {
    Trouble::Credentials("the key was revoked".to_owned())
}

fn up(of: &Instance) -> crate::machine::Machine {
    machine_of(of, "i-1", MachineState::Running)
}

fn gone(of: &Instance) -> crate::machine::Machine {
    machine_of(of, "i-1", MachineState::Gone)
}

fn buying(of: &Instance) -> &Provisioning {
    let State::Provisioning(buying) = &of.state else { panic!("{:?}", of.state) };
    buying
}

fn leaving(of: &Instance) -> &Terminating {
    let State::Terminating(leaving) = &of.state else { panic!("{:?}", of.state) };
    leaving
}

/// A machine that is known since 10 and runs since 20.
fn running() -> Instance {
    waiting().registered(&node_id(1), at(20)).unwrap()
}

/// A machine that is known since 10.
fn waiting() -> Instance {
    let intent = intent(1);
    intent.answered(Ok(&up(&intent)), at(10))
}

/// What to do about a record, by a provider whose listings lag by 60 s, as text.
fn then(of: &Instance, tokens: bool, now: i64) -> String {
    let next = next(of, &abilities(tokens, 60), &Limits::default(), &always(), at(now));
    if let Next::Wait(until) = next {
        return format!("wait until {}", seconds(until));
    }
    format!("{next:?}").to_lowercase()
}

#[test]
fn an_id_is_a_dns_label_whatever_the_pool_is_called() {
    for pool in ["workers", "prod.workers", "7up", "Über", "a_b", &"x".repeat(90), ""] {
        let id = InstanceId::mint(pool, Uuid::from_u128(0x1234_5678_9abc));
        assert_eq!(InstanceId::parse(id.as_str()).as_ref(), Ok(&id), "{pool}");
        assert_eq!(InstanceId::minted(id.as_str()).as_ref(), Some(&id), "{pool}");
    }
    for name in ["web-1", "workers", "workers-0123456u", "7up-01234567", "-01234567", "My-01234567"]
    {
        assert_eq!(InstanceId::minted(name), None, "{name}");
    }
}

#[test]
fn a_purchase_carries_everything_that_finds_it_again() {
    let record = intent(3);
    let labels = BTreeMap::from([("team".to_owned(), "alpha".to_owned())]);
    let purchase = record.purchase(OURS, labels.clone());
    assert_eq!((purchase.instance.as_str(), purchase.number), ("workers-00000003", 3));
    assert_eq!((purchase.tags.installation, purchase.tags.pool), (Some(OURS), Some(pool())));
    assert_eq!(purchase.tags.instance, Some(instance_id(3)));
    assert_eq!((purchase.token, purchase.tags.token), (record.token, Some(record.token)));
    assert_eq!((purchase.labels, purchase.pool.as_str()), (labels, "workers"));
}

#[test]
fn an_answer_leads_to_a_machine_a_retry_or_a_failure() {
    let record = intent(1);
    assert_eq!(waiting().machine(), Some(&MachineId::new("i-1")));
    assert_eq!(waiting().state.as_str(), "AwaitingNode");
    for trouble in [throttled(None), Trouble::Unreachable("no route".to_owned())] {
        let after = record.answered(Err(&trouble), at(1));
        assert_eq!((buying(&after).called_at, buying(&after).unsure), (None, false));
        assert_eq!(buying(&after).trouble, Some(trouble));
        let retry_at = seconds(buying(&after).retry_at.unwrap());
        assert!((4..=6).contains(&retry_at), "{retry_at}");
        assert_eq!(then(&after, true, 1), format!("wait until {retry_at}"));
        assert_eq!(then(&after, false, 7), "call");
        // It exists nowhere, so it is over at once.
        let over = after.leaving(permitted(Reason::PoolDeleted), at(2)).unwrap();
        assert_eq!((over.state.as_str(), over.machine()), ("Terminated", None));
    }
    let denied = Trouble::Denied { permission: "x".to_owned(), message: "no".to_owned() };
    let capacity = Trouble::Capacity { code: "ICE".to_owned(), message: "none left".to_owned() };
    let invalid = Trouble::Invalid { field: "image".to_owned(), message: "no such".to_owned() };
    let unable = Trouble::Unable("no spot".to_owned());
    let missing = Trouble::NotFound("no such subnet".to_owned());
    for trouble in [quota(), capacity, credentials(), denied, invalid, unable, missing] {
        let State::Failed { at: when, failure, .. } = record.answered(Err(&trouble), at(3)).state
        else {
            panic!("{trouble:?}")
        };
        assert_eq!((when, failure.reason.as_str()), (at(3), trouble.reason()));
        assert_eq!(failure.message, trouble.to_string());
    }
}

#[test]
fn g5_a_throttled_call_waits_as_long_as_the_provider_wants_and_not_for_ever() {
    let wait = |after: Option<u32>| {
        let record = intent(1).answered(Err(&throttled(after)), at(0));
        seconds(buying(&record).retry_at.unwrap())
    };
    assert_eq!((wait(Some(90)), wait(Some(u32::MAX))), (90, 3600));
    assert!((4..=5).contains(&wait(Some(1))), "never less than our own backoff");
}

#[test]
fn g1_a_create_that_times_out_is_found_by_looking_and_not_made_again() {
    let record = intent(1).answered(Err(&unsure()), at(30));
    assert_eq!((then(&record, true, 30), then(&record, false, 30)), ("look".into(), "look".into()));
    let found = record.seen(Some(&up(&record)), find(31), &abilities(false, 60), at(31)).unwrap();
    assert_eq!(found.machine(), Some(&MachineId::new("i-1")));
    assert_eq!(then(&found, true, 31), "wait until 631");
}

#[test]
fn g1_with_tokens_it_is_asked_for_again_once_a_look_did_not_show_it() {
    let record = intent(1).answered(Err(&unsure()), at(30));
    let absent = record.seen(None, find(31), &abilities(true, 60), at(31)).unwrap();
    assert_eq!(then(&absent, true, 31), "call");
    let again = absent.called(at(31));
    assert_eq!((again.token, buying(&again).calls), (record.token, 2));
    assert_eq!(then(&again, true, 31), "look");
    // A second silence waits longer before the third call.
    let absent = again.seen(None, find(31), &abilities(true, 60), at(31)).unwrap();
    let wait = then(&absent, true, 31);
    let until: i64 = wait.strip_prefix("wait until ").unwrap().parse().unwrap();
    assert!((39..=41).contains(&until), "{wait}");
}

#[test]
fn g2_a_500_and_then_a_no_is_still_looked_for() {
    let (tokens, lag) = (true, 60);
    let record = intent(1).answered(Err(&Trouble::Unsure("500".to_owned())), at(1));
    let again = record.seen(None, find(1), &abilities(tokens, lag), at(1)).unwrap().called(at(10));
    // The first call may have made the machine that used up the quota.
    let refused = again.answered(Err(&quota()), at(11));
    assert_eq!(
        (refused.state.as_str(), then(&refused, tokens, 11)),
        ("Provisioning", "look".into())
    );
    let found =
        refused.seen(Some(&up(&record)), find(12), &abilities(tokens, lag), at(12)).unwrap();
    assert_eq!(found.state.as_str(), "AwaitingNode");
    // Or it did not, and that takes two looks.
    let absent = refused.seen(None, find(12), &abilities(tokens, lag), at(12)).unwrap();
    assert_eq!(then(&absent, tokens, 12), "wait until 130");
    assert_eq!(absent.seen(None, find(129), &abilities(tokens, lag), at(129)), None);
    let failed = absent.seen(None, find(130), &abilities(tokens, lag), at(131)).unwrap();
    let State::Failed { failure, .. } = failed.state else { panic!("{:?}", failed.state) };
    assert_eq!(failure.reason, "QuotaExceeded");
}

#[test]
fn g3_without_tokens_only_two_looks_after_the_settle_window_allow_another_call() {
    let abilities = abilities(false, 60);
    let record = intent(1).answered(Err(&unsure()), at(30));
    let absent = record.seen(None, find(31), &abilities, at(31)).unwrap();
    assert_eq!(then(&absent, false, 31), "wait until 120");
    assert_eq!(absent.seen(None, find(119), &abilities, at(119)), None);
    let proven = absent.seen(None, find(120), &abilities, at(121)).unwrap();
    assert_eq!(then(&proven, false, 121), "call");
    let again = proven.called(at(121));
    // The doubt about the first call is over: a no to this one is a no.
    assert!(!buying(&again).unsure);
    assert_eq!(again.answered(Err(&quota()), at(122)).state.as_str(), "Failed");
    // The window may be over long ago: two looks are needed all the same, a minute apart.
    let absent = record.seen(None, find(500), &abilities, at(500)).unwrap();
    assert_eq!(then(&absent, false, 500), "wait until 560");
    assert_eq!(absent.seen(None, find(559), &abilities, at(559)), None);
}

#[test]
fn g4_a_listing_that_lags_causes_no_second_create() {
    let abilities = abilities(false, 300);
    let record = intent(1);
    let wait = |record: &Instance, now: i64| {
        next(record, &abilities, &Limits::default(), &always(), at(now))
    };
    let absent = record.seen(None, listing(5), &abilities, at(6)).unwrap();
    assert_eq!(wait(&absent, 6), Next::Wait(at(360)));
    for began in [60, 120, 300, 359] {
        assert_eq!(absent.seen(None, listing(began), &abilities, at(began)), None, "{began}");
    }
    let found = absent.seen(Some(&up(&record)), listing(299), &abilities, at(301)).unwrap();
    assert_eq!(found.state.as_str(), "AwaitingNode");
    // A look that began before the call says nothing about it.
    let again = record.called(at(400));
    assert_eq!(again.seen(None, listing(399), &abilities, at(401)), None);
    assert_eq!(again.seen(Some(&up(&record)), listing(399), &abilities, at(401)), None);
}

#[test]
fn a3_a_crash_between_call_and_answer_leaves_a_record_that_is_looked_for() {
    let record = intent(1);
    assert_eq!(then(&record, true, 0), "look");
    assert_eq!(then(&record, false, 0), "look");
    // Fifty times in a row, always with one token and never without a look in between.
    let (mut record, mut now) = (record, 0);
    for calls in 1..=50 {
        assert_eq!((buying(&record).calls, then(&record, true, now).as_str()), (calls, "look"));
        record = record.seen(None, find(now), &abilities(true, 60), at(now)).unwrap();
        now += 600;
        assert_eq!(then(&record, true, now), "call");
        record = record.called(at(now));
    }
    assert_eq!(record.token, intent(1).token);
    let found = record.seen(Some(&up(&record)), find(now), &abilities(true, 60), at(now)).unwrap();
    assert_eq!(found.state.as_str(), "AwaitingNode");
}

#[test]
fn a_node_that_is_faster_than_the_answer_is_not_lost() {
    let abilities = abilities(false, 60);
    let record = intent(1).registered(&node_id(1), at(5)).unwrap();
    assert_eq!((record.state.as_str(), record.node()), ("Provisioning", Some(&node_id(1))));
    assert_eq!(record.registered(&node_id(1), at(6)), None);
    // By the answer, or by a look: either leads straight to Running.
    let ways = [
        record.answered(Ok(&up(&record)), at(9)),
        record.seen(Some(&up(&record)), find(9), &abilities, at(9)).unwrap(),
    ];
    for running in ways {
        assert_eq!((running.state.as_str(), running.node()), ("Running", Some(&node_id(1))));
    }
    // It exists, whatever looks say: it is never bought again, and looked for at once, soon and then less often.
    let mut absent = record.answered(Err(&quota()), at(9));
    for (now, wait) in [(10, 5), (16, 8), (24, 12), (36, 18), (54, 27), (200, 60), (2000, 60)] {
        assert_eq!(then(&absent, true, now), "look");
        absent = absent.seen(None, find(now), &abilities, at(now)).unwrap();
        assert_eq!(then(&absent, true, now), format!("wait until {}", now + wait));
        // A listing that does not show it puts nothing off, and one that does ends it.
        assert_eq!(absent.seen(None, listing(now + 1), &abilities, at(now + 2)), None);
        let found = absent.seen(Some(&up(&record)), listing(now + 1), &abilities, at(now + 2));
        assert_eq!(found.unwrap().state.as_str(), "Running");
    }
    // A machine that came and went takes its node along.
    let over = record.seen(Some(&gone(&record)), find(9), &abilities, at(9)).unwrap();
    assert_eq!((over.state.as_str(), over.node()), ("Terminating", Some(&node_id(1))));
}

#[test]
fn a_machine_that_carries_the_token_of_another_is_never_taken_for_its_own() {
    let abilities = abilities(true, 60);
    let (record, others) = (intent(1), up(&intent(2)));
    // In the answer to a purchase: whether it was made is not known, and it is looked for.
    let told = record.answered(Ok(&others), at(5));
    assert_eq!((told.state.as_str(), then(&told, true, 5).as_str()), ("Provisioning", "look"));
    assert!(buying(&told).unsure);
    // By a look: nothing is known, and it is made again. By a listing: nothing is known.
    let looked = told.seen(Some(&others), find(6), &abilities, at(6)).unwrap();
    assert_eq!((looked.machine(), then(&looked, true, 6).as_str()), (None, "wait until 9"));
    assert_eq!(told.seen(Some(&others), listing(6), &abilities, at(6)), None);
    // When it is to go: that is not the one, whatever id it has, and its own is proven gone as ever.
    let going = told.leaving(permitted(Reason::PoolDeleted), at(10)).unwrap();
    assert_eq!(going.answered(Ok(&others), at(11)), going);
    let asked = running()
        .leaving(permitted(Reason::ScaleDown { asked: false }), at(100))
        .unwrap()
        .asked(Ok(()), at(101));
    for going in [going, asked] {
        let absent = going.seen(Some(&others), find(110), &abilities, at(111)).unwrap();
        assert_eq!(leaving(&absent).absent_since, Some(at(110)));
        let over = absent.seen(Some(&others), find(170), &abilities, at(171)).unwrap();
        assert_eq!(over.state.as_str(), "Terminated");
    }
}

#[test]
fn g12_a_machine_whose_node_never_registers_is_stale_and_keeps_its_console() {
    let record = waiting();
    assert_eq!(
        (then(&record, true, 609).as_str(), then(&record, true, 610).as_str()),
        ("wait until 610", "stale")
    );
    let going = record.leaving(permitted(Reason::Stale), at(610)).unwrap();
    let kept = going.kept_console("\u{1b}[31mkernel panic\r\n").unwrap();
    assert_eq!(leaving(&kept).console, "[31mkernel panic\n");
    assert_eq!(kept.kept_console("[31mkernel panic\n"), None);
    let over = kept.seen(Some(&gone(&kept)), listing(700), &abilities(true, 0), at(701)).unwrap();
    let State::Failed { failure, console, .. } = &over.state else { panic!("{:?}", over.state) };
    assert_eq!(
        (failure.reason.as_str(), console.as_str()),
        ("RegistrationTimeout", "[31mkernel panic\n")
    );
    assert!(failure.message.contains("i-1"), "{}", failure.message);
    // Its node came at the last moment: it is to be marked, so it is not forgotten.
    let late = kept.registered(&node_id(1), at(650)).unwrap();
    let over = late.seen(Some(&gone(&kept)), listing(700), &abilities(true, 0), at(701)).unwrap();
    assert_eq!((over.state.as_str(), over.node()), ("Terminated", Some(&node_id(1))));
}

#[test]
fn the_end_of_a_console_is_kept_and_cut_between_letters() {
    let going = running().leaving(permitted(Reason::ScaleDown { asked: false }), at(30)).unwrap();
    // Two bytes a letter, and one byte that moves the cut into one of them.
    let long = format!("{}x", "é".repeat(CONSOLE_LEN_MAX));
    let kept = going.kept_console(&long).unwrap();
    let console = &leaving(&kept).console;
    assert_eq!(console.len(), CONSOLE_LEN_MAX - 1);
    assert!(console.starts_with('é') && console.ends_with("éx"));
    assert_eq!((going.kept_console(""), running().kept_console("boot")), (None, None));
}

#[test]
fn a_purchase_that_is_to_leave_while_its_answer_is_unsure_is_not_forgotten() {
    let abilities = abilities(true, 60);
    let record = intent(1).answered(Err(&unsure()), at(30));
    let going = record.leaving(permitted(Reason::PoolDeleted), at(40)).unwrap();
    assert_eq!((going.machine(), then(&going, true, 40).as_str()), (None, "look"));
    // Found by a look, or by the answer that came late after all: then it is returned.
    let ways = [
        going.seen(Some(&up(&going)), find(41), &abilities, at(41)).unwrap(),
        going.answered(Ok(&up(&going)), at(41)),
    ];
    for found in ways {
        assert_eq!(found.machine(), Some(&MachineId::new("i-1")));
        assert_eq!(then(&found, true, 41), "terminate");
    }
    // A no proves nothing here: an earlier call may have made it.
    assert_eq!(going.answered(Err(&quota()), at(41)), going);
    let absent = going.seen(None, find(41), &abilities, at(41)).unwrap();
    assert_eq!(then(&absent, true, 41), "wait until 160");
    assert_eq!(absent.seen(None, find(159), &abilities, at(159)), None);
    let over = absent.seen(None, find(160), &abilities, at(161)).unwrap();
    assert_eq!((over.state.as_str(), over.machine()), ("Terminated", None));
}

#[test]
fn g4_a_machine_that_was_made_after_its_return_began_is_not_gone_by_looks_from_before() {
    let abilities = abilities(false, 60);
    // Its return began at 0, it was made at 45 and found at 69.
    let going = intent(1).leaving(permitted(Reason::ScaleDown { asked: false }), at(0)).unwrap();
    let found = going.seen(Some(&up(&going)), listing(69), &abilities, at(69)).unwrap();
    // A look that was made before, and is heard only now.
    assert_eq!(found.seen(None, find(0), &abilities, at(70)), None);
    // Two that are behind: it is there, and they may miss it for as long as the lag.
    let absent = found.seen(None, find(70), &abilities, at(70)).unwrap();
    assert_eq!(then(&absent, false, 70), "wait until 130");
    let gone = absent.seen(None, find(130), &abilities, at(130)).unwrap();
    assert_eq!((gone.state.as_str(), gone.machine()), ("Terminated", Some(&MachineId::new("i-1"))));
    assert_eq!(absent.seen(None, find(128), &abilities, at(130)), None);
}

#[test]
fn a_return_is_looked_after_and_over_when_the_provider_says_gone() {
    let going = running().leaving(permitted(Reason::ScaleDown { asked: false }), at(100)).unwrap();
    assert_eq!(then(&going, true, 100), "terminate");
    let asked = going.asked(Ok(()), at(101));
    assert_eq!(then(&asked, true, 101), "wait until 102");
    assert_eq!(then(&asked, true, 106), "look");
    let stopping = machine_of(&asked, "i-1", MachineState::Stopping);
    let later = asked.seen(Some(&stopping), find(106), &abilities(true, 60), at(106)).unwrap();
    assert_eq!(then(&later, true, 106), "wait until 109");
    let over = later.seen(Some(&gone(&asked)), find(111), &abilities(true, 60), at(111)).unwrap();
    assert_eq!(over.state.as_str(), "Terminated");
    assert_eq!((over.machine(), over.node()), (Some(&MachineId::new("i-1")), Some(&node_id(1))));
    assert_eq!(then(&over, true, 111), format!("wait until {}", 111 + 86_400));
    assert_eq!(then(&over, true, 111 + 86_400), "forget");
}

#[test]
fn g6_a_machine_that_lives_on_after_its_delete_is_asked_again_and_raises_one_alarm() {
    let abilities = abilities(true, 60);
    let mut record =
        running().leaving(permitted(Reason::ScaleDown { asked: false }), at(0)).unwrap();
    let (mut now, mut terminates, mut alarms, mut looks) = (0, 0, 0, 0);
    while now < 7200 {
        match next(&record, &abilities, &Limits::default(), &always(), at(now)) {
            Next::Terminate => {
                terminates += 1;
                record = record.asked(Ok(()), at(now));
            }
            Next::Look => {
                looks += 1;
                record = record.seen(Some(&up(&record)), find(now), &abilities, at(now)).unwrap();
                let trouble = leaving(&record).trouble.as_ref().unwrap().to_string();
                assert_eq!(trouble, "it was told to end i-1, which is running");
            }
            Next::Alarm => {
                alarms += 1;
                assert_eq!(now, 900);
                record = record.alarmed().unwrap();
            }
            Next::Wait(until) => now = seconds(until).max(now + 1),
            next @ (Next::Call | Next::Nothing | Next::Stale | Next::Forget) => panic!("{next:?}"),
        }
    }
    assert_eq!((alarms, record.alarmed()), (1, None));
    assert!((10..30).contains(&terminates) && looks == terminates, "{terminates} {looks}");
}

#[test]
fn g7_a_404_is_no_proof_and_neither_is_one_listing() {
    let abilities = abilities(true, 60);
    let going = running().leaving(permitted(Reason::ScaleDown { asked: false }), at(100)).unwrap();
    let asked = going.asked(Err(&Trouble::NotFound("no such machine".to_owned())), at(101));
    assert_eq!((asked.state.as_str(), then(&asked, true, 106).as_str()), ("Terminating", "look"));
    // It is there all the same: asked again.
    let there = asked.seen(Some(&up(&asked)), find(106), &abilities, at(106)).unwrap();
    let retry_at = seconds(leaving(&there).retry_at.unwrap());
    assert_eq!(then(&there, true, retry_at + 1), "terminate");
    // It is not: once, too soon, and too soon after it began to go (the listing lags) prove nothing.
    let absent = asked.seen(None, listing(110), &abilities, at(111)).unwrap();
    assert_eq!(then(&absent, true, 111), "wait until 170");
    assert_eq!(absent.seen(None, listing(169), &abilities, at(169)), None);
    let again = absent.seen(Some(&up(&asked)), listing(150), &abilities, at(171)).unwrap();
    assert_eq!(leaving(&again).absent_since, None);
    let over = absent.seen(None, listing(170), &abilities, at(171)).unwrap();
    assert_eq!(over.state.as_str(), "Terminated");
    // A listing that began before it had to go says nothing about that.
    assert_eq!(going.seen(None, listing(99), &abilities, at(101)), None);
}

#[test]
fn g8_a_return_without_credentials_is_tried_for_ever_with_patience() {
    let mut record = running()
        .leaving(permitted(Reason::ScaleDown { asked: false }), at(0))
        .unwrap()
        .alarmed()
        .unwrap();
    let (mut now, mut waits) = (0, Vec::new());
    for _ in 0..40 {
        assert_eq!(then(&record, true, now), "terminate");
        record = record.asked(Err(&credentials()), at(now));
        let retry_at = seconds(leaving(&record).retry_at.unwrap());
        waits.push(retry_at - now);
        now = retry_at + 1;
    }
    assert!(waits.iter().all(|wait| (8..=600).contains(wait)), "{waits:?}");
    assert!(480 <= waits[39] && leaving(&record).calls == 40, "{waits:?}");
    let throttled = record.asked(Err(&throttled(Some(1800))), at(now));
    assert_eq!(seconds(leaving(&throttled).retry_at.unwrap()), now + 1800);
}

#[test]
fn a_look_that_fails_is_made_again_later_and_says_nothing() {
    let record = intent(1).answered(Err(&unsure()), at(30));
    let later = record.unseen(&credentials(), at(40));
    assert_eq!(then(&later, true, 40), "wait until 60");
    assert_eq!(then(&later, true, 60), "look");
    let going = running()
        .leaving(permitted(Reason::ScaleDown { asked: false }), at(0))
        .unwrap()
        .asked(Ok(()), at(1));
    let later = going.unseen(&throttled(Some(70)), at(10));
    assert_eq!(
        (then(&later, true, 10).as_str(), then(&later, true, 80).as_str()),
        ("wait until 80", "look")
    );
    assert_eq!(running().unseen(&credentials(), at(40)), running());
}

#[test]
fn g11_while_listings_are_in_doubt_absence_says_nothing() {
    let abilities = abilities(true, 0);
    let frozen = |facts: ListingFacts| ListingFacts { frozen: true, ..facts };
    assert_eq!(running().seen(None, frozen(listing(1000)), &abilities, at(1000)), None);
    let going = running()
        .leaving(permitted(Reason::ScaleDown { asked: false }), at(0))
        .unwrap()
        .asked(Ok(()), at(1));
    assert_eq!(going.seen(None, frozen(listing(1000)), &abilities, at(1000)), None);
    let later = going.seen(None, frozen(find(100)), &abilities, at(100)).unwrap();
    assert_eq!(
        (leaving(&later).absent_since, then(&later, true, 100).as_str()),
        (None, "wait until 160")
    );
    let record = intent(1);
    let later = record.seen(None, frozen(find(100)), &abilities, at(100)).unwrap();
    assert_eq!(
        (buying(&later).absent_since, then(&later, false, 100).as_str()),
        (None, "wait until 160")
    );
    // What is shown is believed.
    assert!(record.seen(Some(&up(&record)), frozen(find(100)), &abilities, at(100)).is_some());
}

#[test]
fn a_machine_has_vanished_when_two_listings_a_minute_apart_miss_it() {
    let abilities = abilities(true, 60);
    let record = running();
    // It runs since 20, and a listing may lag.
    assert_eq!(record.seen(None, listing(79), &abilities, at(79)), None);
    // A search is not a listing.
    assert_eq!(record.seen(None, find(200), &abilities, at(200)), None);
    let missing = record.seen(None, listing(200), &abilities, at(201)).unwrap();
    assert_eq!((missing.state.as_str(), missing.sight.missing_since), ("Running", Some(at(200))));
    assert_eq!(missing.seen(None, listing(259), &abilities, at(259)), None);
    let back = missing.seen(Some(&up(&record)), listing(259), &abilities, at(259)).unwrap();
    assert_eq!(back, record);
    let going = missing.seen(None, listing(260), &abilities, at(261)).unwrap();
    assert_eq!((&leaving(&going).reason, going.node()), (&Reason::Vanished, Some(&node_id(1))));
    assert!(going.sight.is_well());
}

#[test]
fn a_machine_that_is_shown_otherwise_than_it_should_is_said_so() {
    let abilities = abilities(true, 0);
    let record = running();
    let stopped = machine_of(&record, "i-1", MachineState::Stopped);
    let off = record.seen(Some(&stopped), listing(30), &abilities, at(31)).unwrap();
    assert_eq!((off.state.as_str(), off.sight.stopped_since), ("Running", Some(at(31))));
    assert_eq!(off.seen(Some(&stopped), listing(90), &abilities, at(91)), None);
    assert_eq!(off.seen(Some(&up(&off)), listing(150), &abilities, at(151)), Some(record.clone()));
    let mut spot = gone(&record);
    for (is_spot, reason) in [(false, Reason::Vanished), (true, Reason::Reclaimed)] {
        spot.spot = is_spot;
        let going = record.seen(Some(&spot), listing(30), &abilities, at(31)).unwrap();
        assert_eq!(leaving(&going).reason, reason);
    }
    // Another machine is not this one.
    let other = machine_of(&record, "i-2", MachineState::Gone);
    assert_eq!(record.seen(Some(&other), listing(30), &abilities, at(31)), None);
}

#[test]
fn a_stronger_reason_takes_the_place_of_a_weaker_one() {
    let going = running().leaving(permitted(Reason::ScaleDown { asked: false }), at(30)).unwrap();
    let held = going.asked(Err(&credentials()), at(31));
    assert_eq!(held.leaving(permitted(Reason::Unwanted), at(32)), None);
    let wanted = Reason::Operator { by: "ada".to_owned(), reason: "costs".to_owned() };
    let now = held.leaving(permitted(wanted.clone()), at(32)).unwrap();
    assert_eq!((&leaving(&now).reason, leaving(&now).since), (&wanted, at(30)));
    assert_eq!(then(&now, true, 32), "terminate");
    assert_eq!(now.leaving(permitted(Reason::ScaleDown { asked: true }), at(33)), None);
    let now = now.leaving(permitted(Reason::PoolDeleted), at(33)).unwrap();
    assert_eq!((&leaving(&now).reason, leaving(&now).since), (&Reason::PoolDeleted, at(30)));
    assert_eq!(now.leaving(permitted(wanted), at(34)), None);
}

#[test]
fn cures_are_remembered_and_the_oldest_is_forgotten() {
    let mut record = running();
    assert_eq!(record.outcome_of_last("passed"), None);
    for number in 0..=TRIED_MAX {
        record = record.tried(Cure::Reboot, &format!("XID {number}"), at(30));
    }
    assert_eq!((record.tried.len(), record.tried[0].because.as_str()), (TRIED_MAX, "XID 1"));
    let known = record.outcome_of_last("it came back").unwrap();
    assert_eq!(known.tried[TRIED_MAX - 1].outcome, "it came back");
    assert_eq!(known.outcome_of_last("again"), None);
}

#[test]
fn every_reason_is_a_sentence() {
    let rows = [
        (Reason::ScaleDown { asked: false }, "the pool needs fewer nodes"),
        (
            Reason::Replaced { by: Some(instance_id(2)), because: "XID 79".to_owned() },
            "workers-00000002 takes its place: XID 79",
        ),
        (
            Reason::Replaced { by: None, because: "XID 79".to_owned() },
            "it makes room for another: XID 79",
        ),
        (
            Reason::BadHardware { serial: "1650".to_owned() },
            "it has GPU 1650, which is known to be bad",
        ),
        (
            Reason::Operator { by: "ada".to_owned(), reason: "costs".to_owned() },
            "ada asked for it: costs",
        ),
        (Reason::Operator { by: "ada".to_owned(), reason: String::new() }, "ada asked for it"),
        (Reason::NodeTerminated { by: "ada".to_owned() }, "ada terminated its node"),
    ];
    for (reason, sentence) in rows {
        assert_eq!(reason.to_string(), sentence);
    }
}

#[test]
fn r2_m23_a_notice_stays_when_it_could_not_be_asked_for() {
    let notice = |kind| Some(Notice { kind, at: None, message: String::new() });
    let shown = |record: &Instance, notice: Option<Notice>, now| {
        let machine = crate::machine::Machine { notice, ..up(record) };
        record.seen(Some(&machine), listing(now), &abilities(true, 60), at(now))
    };
    let told = shown(&running(), notice(NoticeKind::Reclaim), 100).unwrap();
    assert_eq!(told.notice, notice(NoticeKind::Reclaim));
    for record in [&told, &running()] {
        let after = shown(record, Some(Notice::unknown()), 200);
        assert!(after.is_none_or(|after| after.notice == record.notice), "{record:?}");
    }
    assert_eq!(shown(&told, None, 300).unwrap().notice, None);
}
