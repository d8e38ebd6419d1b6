use super::{
    ALARMS_MAX, Comparison, Known, Listing, Orphan, PoolFacts, ProviderBook, Reap, compare,
};
use crate::fixture::{at, permitted};
use crate::id::ResourceId;
use crate::instance::fixture::{
    OURS, abilities, instance_id, intent, machine_of, node_id, order, pool,
};
use crate::instance::{Instance, Reason, State};
use crate::invariant::{self, Change};
use crate::machine::{Abilities, Machine, MachineId, MachineState, Notice, NoticeKind};
use uuid::Uuid;

/// Records, a provider, and what was told of it.
struct World {
    records: Vec<Instance>,
    orphans: Vec<Orphan>,
    book: ProviderBook,
    abilities: Abilities,
    price: Option<f64>,
    deleting: bool,
    /// Whose nodes are heard, by their number.
    heard: Vec<u32>,
}

impl World {
    fn new(records: Vec<Instance>) -> Self {
        World {
            records,
            orphans: Vec::new(),
            book: ProviderBook { name: "aws".to_owned(), ..ProviderBook::default() },
            abilities: abilities(true, 60),
            price: Some(98.32),
            deleting: false,
            heard: Vec::new(),
        }
    }

    /// So many machines that run since 0: `workers-0000000N` is `i-N`, from 1.
    fn running(count: u32) -> Self {
        World::new((1..=count).map(running).collect())
    }

    /// Compares and carries out, as the loop does.
    fn lists(&mut self, machines: &[Machine], now: i64) -> Comparison {
        self.hears(machines, now, false)
    }

    /// The same, for the first time since we began to lead.
    fn first_lists(&mut self, machines: &[Machine], now: i64) -> Comparison {
        self.hears(machines, now, true)
    }

    fn hears(&mut self, machines: &[Machine], now: i64, first: bool) -> Comparison {
        let listing = Listing { provider: "aws", machines, began_at: at(now), first };
        let facts = |id: ResourceId| {
            let (tenant, pool_name) = ("acme".to_owned(), "workers".to_owned());
            (id == pool()).then_some(PoolFacts { tenant, pool_name, deleting: self.deleting })
        };
        let known = Known {
            installation: OURS,
            instances: self.records.iter().collect(),
            orphans: self.orphans.iter().collect(),
            book: &self.book,
            pool: &facts,
            heard: &|record| self.heard.contains(&record.number),
            price: &|_| self.price,
        };
        let found = compare(&listing, &known, &self.abilities, at(now + 1));
        for after in &found.instances {
            let before = self.records.iter_mut().find(|record| record.id == after.id).unwrap();
            let change = Change::Instance { before: Some(before), after };
            assert_eq!(invariant::check(change), Ok(()));
            *before = after.clone();
        }
        for after in &found.adopted {
            assert_eq!(invariant::check(Change::Instance { before: None, after }), Ok(()));
            self.records.push(after.clone());
        }
        let away = |machine: &MachineId, of: &[Orphan]| of.iter().any(|it| it.machine == *machine);
        self.orphans.retain(|it| !away(&it.machine, &found.orphans));
        self.orphans.extend(found.orphans.iter().cloned());
        self.orphans.retain(|it| !away(&it.machine, &found.forgotten));
        self.book = found.book.clone().unwrap_or_else(|| self.book.clone());
        found
    }

    /// The states of the records, as one line.
    fn states(&self) -> String {
        let states: Vec<_> = self.records.iter().map(|record| record.state.as_str()).collect();
        states.join(" ")
    }
}

fn running(number: u32) -> Instance {
    let intent = intent(number);
    let known = intent.answered(Ok(&up(number)), at(0));
    known.registered(&node_id(number), at(0)).unwrap()
}

fn shown(number: u32, state: MachineState) -> Machine {
    machine_of(&intent(number), &format!("i-{number}"), state)
}

fn up(number: u32) -> Machine {
    shown(number, MachineState::Running)
}

fn ups(numbers: impl IntoIterator<Item = u32>) -> Vec<Machine> {
    numbers.into_iter().map(up).collect()
}

fn ids(orphans: &[Orphan]) -> Vec<&str> {
    orphans.iter().map(|orphan| orphan.machine.as_str()).collect()
}

#[test]
fn a_listing_that_shows_what_we_know_changes_nothing() {
    let mut world = World::running(5);
    assert_eq!(world.first_lists(&ups(1..=5), 600), Comparison::default());
    assert_eq!(world.lists(&ups((1..=5).rev()), 720), Comparison::default());
}

/// What finds a machine's record, in order, for a purchase whose answer was lost.
#[test]
fn g1_a_machine_is_known_by_its_token_its_tag_or_its_name() {
    let strip = |keep: &str| {
        let mut machine = up(1);
        if keep != "token" {
            machine.tags.token = None;
        }
        if keep != "instance" {
            machine.tags.instance = None;
        }
        if keep != "name" {
            machine.name = "host-1".to_owned();
        }
        machine
    };
    for keep in ["token", "instance", "name"] {
        let mut world = World::new(vec![intent(1), intent(2)]);
        world.lists(&[strip(keep)], 10);
        assert_eq!(world.states(), "AwaitingNode Provisioning", "{keep}");
        assert_eq!(world.records[0].machine(), Some(&MachineId::new("i-1")));
    }
    // What a machine's id says goes before what is written on it.
    let mut world = World::running(2);
    let mut swapped = up(1);
    swapped.tags = up(2).tags;
    assert_eq!(world.lists(&[swapped, up(2)], 600), Comparison::default());
}

#[test]
fn without_tags_the_name_has_to_do() {
    let mut world = World::new(vec![intent(1)]);
    world.abilities.tags = false;
    let bare = |number: u32| Machine { tags: crate::machine::Tags::default(), ..up(number) };
    let other = Machine { name: "database-1".to_owned(), ..bare(3) };
    let found = world.first_lists(&[bare(1), bare(2), other.clone()], 10);
    assert_eq!(world.states(), "AwaitingNode");
    // One that could be ours is told of, and never taken in or touched.
    assert_eq!((ids(&found.orphans), found.adopted.len()), (vec!["i-2"], 0));
    // Where tags are kept, a name without a tag is somebody else's.
    let mut world = World::new(Vec::new());
    assert_eq!(world.lists(&[bare(2), other], 10), Comparison::default());
}

#[test]
fn a_page_that_is_shown_twice_is_no_second_machine() {
    let mut world = World::running(1);
    assert_eq!(world.lists(&[up(1), up(1)], 600), Comparison::default());
}

#[test]
fn i2_a_second_machine_for_a_record_becomes_an_orphan_with_its_cost() {
    let second = Machine { id: MachineId::new("i-9"), created_at: Some(at(-900)), ..up(1) };
    // The known one is kept, even if the other is older or it is gone itself.
    for first in [up(1), shown(1, MachineState::Gone)] {
        let mut world = World::running(1);
        let found = world.lists(&[second.clone(), first], 600);
        assert_eq!(ids(&found.orphans), ["i-9"]);
        assert_eq!(found.orphans[0].price_per_hour, Some(98.32));
        assert_eq!(world.records[0].machine(), Some(&MachineId::new("i-1")));
        let alarm = "aws: i-9 (p5.48xlarge) is a second machine of workers-00000001; \
                     it costs $98.32 per hour";
        assert_eq!(found.alarms, [alarm]);
    }
    // Where none is known, the older one that lives is.
    let mut world = World::new(vec![intent(1)]);
    let younger = Machine { created_at: Some(at(5)), ..up(1) };
    let gone = Machine {
        id: MachineId::new("i-8"),
        state: MachineState::Gone,
        created_at: Some(at(-9999)),
        ..up(1)
    };
    let found = world.lists(&[younger.clone(), gone, second.clone()], 600);
    assert_eq!(world.records[0].machine(), Some(&MachineId::new("i-9")));
    assert_eq!(ids(&found.orphans), ["i-1"]);
    assert_eq!(world.lists(&[younger, second], 660), Comparison::default());
}

#[test]
fn a_machine_that_a_record_had_before_is_not_told_of_by_a_listing_that_may_lag() {
    let mut world = World::running(1);
    let before = Machine { id: MachineId::new("i-0"), ..up(1) };
    assert_eq!(world.lists(&[up(1), before.clone()], 119), Comparison::default());
    assert_eq!(ids(&world.lists(&[up(1), before], 120).orphans), ["i-0"]);
}

#[test]
fn g14_strangers_appear_nowhere() {
    let stranger = |number: u32| {
        let mut machine = up(number);
        machine.tags.installation = Some(Uuid::from_u128(0xB));
        machine.notice = Some(reclaim());
        machine
    };
    let mut world = World::new(vec![intent(1)]);
    // Not taken for ours by its name or its tags, not taken in, not told of.
    let found = world.first_lists(&[stranger(1), stranger(2)], 600);
    assert_eq!((found.orphans, found.adopted, found.notices), (vec![], vec![], vec![]));
    assert_eq!(world.states(), "Provisioning");
    // One that took our machine over by its tag is not missed, either: it is there.
    let mut world = World::running(1);
    for now in [600, 720, 840] {
        assert_eq!(world.lists(&[stranger(1)], now), Comparison::default());
    }
}

#[test]
fn b2_the_first_listing_takes_in_what_has_no_record() {
    let mut world = World::running(1);
    let found = world.first_lists(&ups(1..=3), 600);
    let adopted = &found.adopted[0];
    assert_eq!((found.adopted.len(), found.orphans.len()), (2, 0));
    assert_eq!((adopted.id.clone(), adopted.token), (instance_id(2), intent(2).token));
    assert_eq!((adopted.tenant.as_str(), adopted.pool, adopted.number), ("acme", pool(), 2));
    assert_eq!(adopted.why, "adopted: i-2 carries our tags and had no record");
    assert_eq!(adopted.order, crate::machine::Order { zone: "us-east-1a".to_owned(), ..order() });
    let waits = State::AwaitingNode { machine: MachineId::new("i-2"), since: at(601) };
    assert_eq!(adopted.state, waits);
    assert_eq!(found.adopted[1].number, 3);
    assert_eq!(world.lists(&ups(1..=3), 720), Comparison::default());
}

/// What is not taken in, and told of instead.
#[test]
fn g13_a_machine_nobody_knows_is_an_orphan_with_its_cost() {
    let pool_of_others = ResourceId::new(Uuid::from_u128(0x9002));
    let cut = |cut: fn(&mut Machine)| {
        let mut machine = up(7);
        cut(&mut machine);
        machine
    };
    let mut foreign_pool = up(7);
    foreign_pool.tags.pool = Some(pool_of_others);
    let rows = [
        ("a later listing", false, false, up(7)),
        ("its pool is being deleted", true, true, up(7)),
        ("its pool is gone", true, false, foreign_pool),
        ("it has no pool", true, false, cut(|it| it.tags.pool = None)),
        ("it has no token", true, false, cut(|it| it.tags.token = None)),
        ("it has no instance", true, false, cut(|it| it.tags.instance = None)),
        ("it is off", true, false, cut(|it| it.state = MachineState::Stopped)),
    ];
    for (what, first, deleting, machine) in rows {
        let mut world = World { deleting, ..World::running(3) };
        let mut shown = ups(1..=3);
        shown.push(machine);
        let found = world.hears(&shown, 600, first);
        assert_eq!((ids(&found.orphans), found.adopted.len()), (vec!["i-7"], 0), "{what}");
        let orphan = &found.orphans[0];
        assert_eq!((orphan.first_seen, orphan.price_per_hour), (at(601), Some(98.32)), "{what}");
        let alarm = "aws: i-7 (p5.48xlarge) carries our tags and has no record; \
                     it costs $98.32 per hour";
        assert_eq!(found.alarms, [alarm], "{what}");
        // Told once; and G19: a price list that is away for a while does not make it free.
        world.price = Some(f64::NAN);
        assert_eq!(world.lists(&shown, 720), Comparison::default(), "{what}");
    }
}

#[test]
fn an_orphan_keeps_its_age_and_is_forgotten_after_two_listings_without_it() {
    let mut world = World::running(3);
    world.lists(&ups([1, 2, 3, 7]), 600);
    let asked = Reap { by: "ada".to_owned(), reason: "costs".to_owned(), at: at(650) };
    world.orphans[0].reap = Some(asked.clone());
    let moved = Machine { zone: "us-east-1b".to_owned(), ..up(7) };
    let mut all = ups(1..=3);
    all.push(moved);
    let found = world.lists(&all, 720);
    assert_eq!(
        (found.orphans[0].first_seen, found.orphans[0].reap.as_ref()),
        (at(601), Some(&asked))
    );
    // Somebody wants it gone: it is not taken in after a change of the lead.
    assert_eq!(world.first_lists(&all, 780), Comparison::default());
    let found = world.lists(&ups(1..=3), 800);
    assert_eq!((found.orphans[0].missing_since, found.forgotten.len()), (Some(at(800)), 0));
    assert_eq!(world.lists(&ups(1..=3), 859), Comparison::default());
    let back = world.lists(&all, 860);
    assert_eq!(back.orphans[0].missing_since, None);
    world.lists(&ups(1..=3), 900);
    let found = world.lists(&ups(1..=3), 960);
    assert_eq!((ids(&found.forgotten), world.orphans.len()), (vec!["i-7"], 0));
    // Shown as gone, it is forgotten at once; so is one that has a record now.
    world.lists(&ups([1, 2, 3, 7]), 1000);
    all[3] = shown(7, MachineState::Gone);
    assert_eq!(ids(&world.lists(&all, 1060).forgotten), ["i-7"]);
    world.lists(&ups([1, 2, 3, 7]), 1120);
    assert_eq!(ids(&world.first_lists(&ups([1, 2, 3, 7]), 1180).forgotten), ["i-7"]);
    assert_eq!(world.records.len(), 4);
}

#[test]
fn a_machine_of_a_record_that_is_over_is_told_of_unless_the_listing_may_lag() {
    let mut world = World::running(3);
    let going =
        world.records[0].leaving(permitted(Reason::ScaleDown { asked: false }), at(100)).unwrap();
    let look = crate::instance::fixture::find(200);
    let gone = shown(1, MachineState::Gone);
    world.records[0] = going.seen(Some(&gone), look, &world.abilities, at(200)).unwrap();
    assert_eq!(world.lists(&ups(1..=3), 319), Comparison::default());
    let found = world.lists(&ups(1..=3), 320);
    assert_eq!(ids(&found.orphans), ["i-1"]);
    assert!(found.alarms[0].contains("is there although workers-00000001 is over"));
    assert_eq!(world.states(), "Terminated Running Running");
}

/// How many of how many are missing, and whether that is believed.
#[test]
fn g11_too_much_missing_at_once_freezes() {
    let rows = [
        // One is no mass, even where there is no other.
        (1, 1, false),
        (2, 1, false),
        (2, 2, true),
        (5, 1, false),
        (5, 2, true),
        (10, 2, false),
        (10, 3, true),
        (20, 4, false),
        (20, 5, true),
        (20, 10, true),
        (20, 20, true),
    ];
    for (of, missing, frozen) in rows {
        let mut world = World::running(of);
        let found = world.lists(&ups(missing + 1..=of), 600);
        assert_eq!(world.book.frozen.is_some(), frozen, "{missing} of {of}");
        assert_eq!(found.alarms.len(), usize::from(frozen), "{missing} of {of}");
        // Believed or not: nothing follows from one listing.
        let running = world.records.iter().filter(|it| it.state.as_str() == "Running").count();
        assert_eq!(running, of as usize);
        world.lists(&ups(missing + 1..=of), 720);
        let leaving = world.records.iter().filter(|it| it.state.as_str() == "Terminating").count();
        let expected = if frozen { 0 } else { missing as usize };
        assert_eq!(leaving, expected, "{missing} of {of}");
    }
}

#[test]
fn g11_a_frozen_provider_says_why_and_thaws_when_the_machines_are_shown_again() {
    let mut world = World::running(20);
    world.orphans = World::running(3).lists(&ups([1, 2, 3, 77]), 600).orphans;
    let found = world.lists(&[], 600);
    let frozen = found.book.unwrap().frozen.unwrap();
    assert_eq!((frozen.since, frozen.expected, frozen.found), (at(601), 20, 0));
    assert!(frozen.message.starts_with("aws shows 0 of the 20 machines of ours that it should"));
    assert!(frozen.message.contains("Check that its account"), "{}", frozen.message);
    assert_eq!(found.alarms, [frozen.message]);
    // Told once; nothing is concluded for as long as it lasts, not even of orphans.
    for now in [720, 840, 4000] {
        assert_eq!(world.lists(&[], now), Comparison::default());
    }
    let half = world.lists(&ups(1..=10), 4120).book.unwrap().frozen.unwrap();
    assert_eq!((half.since, half.found), (at(601), 10));
    // All but one are back: that one is missed from now on, not from then.
    let found = world.lists(&ups(1..=19), 4240);
    assert_eq!((found.book.unwrap().frozen, found.instances.len()), (None, 1));
    assert_eq!(found.instances[0].sight.missing_since, Some(at(4240)));
    let found = world.lists(&ups(1..=19), 4360);
    assert_eq!(found.instances[0].state.as_str(), "Terminating");
}

#[test]
fn g11_a_person_may_say_that_the_machines_are_really_gone() {
    let mut world = World::running(5);
    assert_eq!(world.book.thawed(at(0)), None);
    world.lists(&[], 600);
    world.book = world.book.thawed(at(700)).unwrap();
    assert_eq!(world.book.frozen, None);
    world.lists(&[], 720);
    world.lists(&[], 840);
    assert_eq!(world.states(), ["Terminating"; 5].join(" "));
    // That word does not hold for ever.
    assert_eq!(world.book.vouched, None);
    world.lists(&[], 2000);
    world.records.extend((6..=9).map(running));
    world.lists(&[], 2120);
    assert!(world.book.frozen.is_some());
}

#[test]
fn r2_m24_a_person_s_word_holds_until_two_listings_proved_it() {
    // However seldom, or often, the provider is asked; one that was under way does not count.
    for (listings, gone) in [
        (vec![720, 8 * 3600], true),
        (vec![690, 720, 4000], true),
        (vec![720, 730, 740, 750, 760, 770, 785], true),
        (vec![720, 770], false),
    ] {
        let mut world = World::running(5);
        world.lists(&[], 600);
        world.book = world.book.thawed(at(700)).unwrap();
        for began_at in listings.clone() {
            world.lists(&[], began_at);
            assert_eq!(world.book.frozen, None, "{listings:?}");
        }
        let state = if gone { "Terminating" } else { "Running" };
        assert_eq!(world.states(), [state; 5].join(" "), "{listings:?}");
        assert_eq!(world.book.vouched.is_none(), gone, "{listings:?}");
    }
}

/// How many are missing of how many, whose nodes are heard, and what becomes of each.
#[test]
fn g11_a_machine_whose_node_is_heard_is_not_gone_whatever_a_listing_says() {
    let rows: [(u32, u32, &[u32], &str); 4] = [
        (1, 1, &[], "Terminated"),
        (1, 1, &[1], "Running"),
        (10, 2, &[2], "Terminated Running"),
        (10, 2, &[1, 2], "Running Running"),
    ];
    for (of, missing, heard, expected) in rows {
        let what = format!("{missing} of {of}, {heard:?} heard");
        let mut world = World { heard: heard.to_vec(), ..World::running(of) };
        let rest = ups(missing + 1..=of);
        let found = world.lists(&rest, 600);
        assert_eq!(found.alarms.len(), heard.len(), "{what}: told");
        for now in [720, 840, 4000] {
            assert_eq!(world.lists(&rest, now).alarms, Vec::<String>::new(), "{what}: told once");
        }
        let states = world.states();
        assert!(states.starts_with(expected), "{what}: {states}");
        assert!(world.book.frozen.is_none(), "{what}");
    }
    let mut world = World { heard: vec![1], ..World::running(1) };
    let alarm = world.lists(&[], 600).alarms.remove(0);
    let start =
        "aws does not show i-1 of workers-00000001, and its node is heard: it is left alone";
    assert!(alarm.starts_with(start), "{alarm}");
    // Shown again, there is nothing odd about it any more; and it is told of anew if that was not the end.
    assert!(world.lists(&ups([1]), 720).instances[0].sight.is_well());
    assert_eq!(world.lists(&[], 840).alarms, [alarm]);
    // Neither shown nor heard: it is gone.
    world.heard.clear();
    world.lists(&[], 960);
    assert_eq!(world.states(), "Terminating");
}

#[test]
fn g11_a_person_who_vouches_for_a_listing_does_not_outvote_a_node_that_is_heard() {
    let mut world = World { heard: vec![2], ..World::running(3) };
    world.lists(&[], 600);
    world.book = world.book.thawed(at(700)).unwrap();
    world.lists(&[], 720);
    world.lists(&[], 840);
    assert_eq!(world.states(), "Terminating Running Terminating");
}

#[test]
fn g4_what_was_bought_a_moment_ago_is_not_missed() {
    let mut world = World::running(2);
    let bought: Vec<_> =
        (3..=12).map(|number| intent(number).answered(Ok(&up(number)), at(590))).collect();
    world.records.extend(bought);
    assert_eq!(world.lists(&ups(1..=2), 600), Comparison::default());
    // Nor is what was told to go.
    let going = |record: &Instance| {
        record
            .leaving(permitted(Reason::ScaleDown { asked: false }), at(600))
            .unwrap()
            .asked(Ok(()), at(601))
    };
    world.records = world.records.iter().map(going).collect();
    world.lists(&[], 720);
    assert_eq!(world.book.frozen, None);
    world.lists(&[], 780);
    assert_eq!(world.states(), ["Terminated"; 12].join(" "));
}

fn reclaim() -> Notice {
    let message = "taken back in two minutes".to_owned();
    Notice { kind: NoticeKind::Reclaim, at: Some(at(720)), message }
}

#[test]
fn g15_notices_of_a_reclaim_are_handed_on() {
    let mut world = World::running(4);
    let told = Machine { notice: Some(reclaim()), ..up(2) };
    let stops = Machine { spot: true, state: MachineState::Stopping, ..up(3) };
    let found = world.lists(&[up(1), told, stops, up(4)], 600);
    assert_eq!(found.notices[0], (instance_id(2), reclaim()));
    let (id, notice) = &found.notices[1];
    assert_eq!((id, notice.kind), (&instance_id(3), NoticeKind::Reclaim));
    assert_eq!(
        (notice.message.as_str(), found.notices.len()),
        ("aws stops the spot machine i-3", 2)
    );
}

#[test]
fn a_machine_that_is_off_is_told_of_once_and_kept() {
    let mut world = World::running(2);
    let listed = [up(1), shown(2, MachineState::Stopped)];
    let found = world.lists(&listed, 600);
    assert!(found.alarms[0].starts_with("aws shows i-2 of workers-00000002 as stopped"));
    assert_eq!(world.lists(&listed, 720), Comparison::default());
    assert_eq!(world.states(), "Running Running");
    assert_eq!(world.lists(&ups(1..=2), 840).instances[0].sight, Default::default());
}

#[test]
fn i11_alarms_have_a_limit_and_say_how_many_more_there_are() {
    let mut world = World::running(1);
    let found = world.lists(&ups(1..=101), 600);
    assert_eq!((found.orphans.len(), found.alarms.len()), (100, ALARMS_MAX));
    assert_eq!(found.alarms[ALARMS_MAX - 1], "aws: 69 more of the same are not told one by one");
}
