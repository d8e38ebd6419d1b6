//! Faults by their ID in the catalogue.

use super::*;
use crate::breaker::later;
use crate::instance::{Instance, State, Tried};
use crate::inventory::{Frozen, Paused};
use crate::machine::Trouble;
use crate::pool::book::{BACKOFF_FIRST, stale};
use crate::pool::fixture::Town;
use crate::pool::{ProviderChoice, bought, registered};
use crate::xid::{Catalogue, Class};

#[test]
fn d1_a_node_without_power_is_replaced_after_five_minutes() {
    let mut dead = town(3, "a:ready b:lost c:ready");
    dead.does("buy 2 for b");
    // The remedy has taken it out of service, and it is not five minutes by our clock.
    dead.one("b").lost_for = Some(SignedDuration::from_secs(299));
    dead.does("");
    // While we may be the ones who are cut off, nobody is lost.
    dead.one("b").lost_for = None;
    dead.does("");
    let back = town(3, "a:ready b:lost c:ready d<b:ready");
    back.does("leave b for d");
}

#[test]
fn d3_a_lost_zone_is_made_up_for_in_the_others_at_the_slow_rate() {
    let zones = ["us-east1-b", "us-east1-c", "us-east1-d"].map(str::to_owned);
    let mut pool = town(
        6,
        "a:lost/us-east1-b b:lost/us-east1-b c:ready/us-east1-c d:ready/us-east1-c \
         e:ready/us-east1-d f:ready/us-east1-d",
    );
    pool.spec.zones = zones.to_vec();
    pool.spec.max_unavailable = Unavailable::Nodes(2);
    let bought: Vec<String> = pool.plan().buy.into_iter().map(|buy| buy.order.zone).collect();
    assert_eq!(bought, ["us-east1-c", "us-east1-d"]);
    pool.spec.max_unavailable = Unavailable::Nodes(1);
    assert_eq!(pool.plan().buy.len(), 1, "no faster than the pool may be disturbed");
    // One lost node does not make a lost zone.
    let mut one = town(3, "a:lost/us-east1-b b:ready/us-east1-c c:ready/us-east1-d");
    one.spec.zones = zones.to_vec();
    assert_eq!(one.plan().buy[0].order.zone, "us-east1-b");
    // If there is no other zone, the lost one is tried.
    pool.spec.zones.truncate(1);
    for one in &mut pool.ones {
        one.instance.order.zone = "us-east1-b".to_owned();
    }
    assert_eq!(pool.plan().buy[0].order.zone, "us-east1-b");
}

#[test]
fn f13_of_a_pool_that_turns_bad_only_those_are_replaced_who_were_taken_out() {
    // The remedy's budget lets one of ten be cordoned; five more are sick and still in service.
    let text = "a:sick b:sick-active c:sick-active d:sick-active e:sick-active f:sick-active g:ready \
                h:ready i:ready j:ready";
    let mut bad = town(10, text);
    bad.does("buy 1 for a");
    bad.stopped = Some("the breaker is open".to_owned());
    bad.does("");
    // However many are out, no more than the budget are replaced at once.
    let text = "a:sick b:sick c:sick d:sick e:sick f:sick g:ready h:ready i:ready j:ready";
    town(10, text).does("buy 1 for a");
}

#[test]
fn f14_one_transition_is_enough_because_nothing_is_remembered() {
    let dead = town(3, "a:ready b:lost c:ready");
    for _ in 0..3 {
        dead.does("buy 2 for b");
    }
}

/// A pool of two whose `b` is sick with this.
fn sick_with(key: &str, message: &str) -> Town {
    let mut town = town(2, "a:ready b:sick");
    town.one("b").node.as_mut().unwrap().findings = vec![finding(key, "GPU-b", message)];
    town
}

fn tried(cure: Cure, seconds: i64, outcome: &str) -> Tried {
    let because = "xid".to_owned();
    Tried { cure, at: at(seconds), because, outcome: outcome.to_owned() }
}

#[test]
fn f15_the_ladder_is_climbed_once_and_then_a_person_is_asked() {
    // Xid 48: an uncorrectable memory error; a reset helps.
    let mut ill = sick_with("xid/48/GPU-b", "double bit error");
    ill.does("drain b for its health");
    set_drained(&mut ill);
    ill.does("reboot b");
    ill.one("b").instance.tried = vec![tried(Cure::Reboot, -60, "")];
    ill.does("");
    assert!(ill.plan().outcome.message().contains("it boots again"));
    assert_eq!(ill.plan().next, Some(at(14 * 60)), "it has a quarter of an hour");
    ill.one("b").instance.tried = vec![tried(Cure::Reboot, -901, "")];
    ill.does("buy 2 for b");
    ill.one("b").instance.tried = vec![tried(Cure::Reboot, -200, "it is sick still")];
    ill.does("buy 2 for b");
    // Two reboots a day: a third sickness is not rebooted.
    ill.one("b").instance.tried =
        vec![tried(Cure::Reboot, -80_000, "well"), tried(Cure::Reboot, -40_000, "well")];
    ill.does("buy 2 for b");
    // After a day, and an hour of health, it is counted anew.
    ill.one("b").instance.tried = vec![tried(Cure::Reboot, -100_000, "well")];
    ill.does("reboot b");
    // Three replacements in a row that came to nothing: a person, whatever time goes by (M11).
    for id in ["x", "y", "z"] {
        let old = ill.one("b").instance.id.clone();
        ill.ones.push(one(id, 2, Some(old), "stale", 600));
    }
    ill.one("b").instance.tried = vec![tried(Cure::Reboot, -200, "it is sick still")];
    ill.does("");
    let plan = ill.plan();
    assert_eq!(plan.outcome.reason(), "NeedsHuman");
    ill.does("");
    assert_eq!(told(&ill.plan_at(at(86_400))), "");
}

fn set_drained(town: &mut Town) {
    let findings = town.one("b").node.as_ref().unwrap().findings.clone();
    set(town.one("b"), "sick-drained");
    town.one("b").node.as_mut().unwrap().findings = findings;
}

#[test]
fn f15_what_a_test_can_settle_is_tested_first() {
    let mut ill = sick_with("nvlink/0/GPU-b", "a link is slow");
    ill.does("diagnose b");
    ill.one("b").instance.tried = vec![tried(Cure::Diagnose, -60, "")];
    ill.does("");
    ill.one("b").instance.tried = vec![tried(Cure::Diagnose, -60, "failed")];
    ill.does("buy 2 for b");
    ill.one("b").instance.tried.clear();
    ill.spec.cures = vec![Cure::Replace];
    ill.does("buy 2 for b");
    ill.spec.cures = vec![Cure::Diagnose];
    ill.one("b").instance.tried = vec![tried(Cure::Diagnose, -60, "failed")];
    ill.does("");
    assert_eq!(ill.plan().outcome.reason(), "NeedsHuman");
}

#[test]
fn f15_the_driver_and_the_provider_say_whether_a_reboot_helps() {
    let asks = "the driver asks for recovery of GPU 3: drain-and-reset";
    let mut ill = sick_with("driver_error/0/GPU-b", asks);
    ill.does("drain b for its health");
    ill.clouds.get_mut("gcp").unwrap().abilities.reboot = false;
    ill.does("buy 2 for b");
    // Nothing but the vendor helps: the GPU is remembered when its machine goes.
    let mut rows = Catalogue::builtin().xids();
    let code = rows.find(|row| row.class == Class::Support).unwrap().code;
    let mut broken = sick_with(&format!("xid/{code}/GPU-b"), "for the vendor");
    broken.does("buy 2 for b");
    set_drained(&mut broken);
    let old = broken.one("b").instance.id.clone();
    broken.ones.push(one("c", 2, Some(old), "ready", 600));
    broken.does("condemn s-b; leave b for c");
}

#[test]
fn g8_a_provider_whose_credentials_are_revoked_is_left_alone() {
    let mut pool = town(2, "a:ready");
    let trouble = Trouble::Credentials("the key was revoked".to_owned());
    let paused = Paused { since: at(-60), trouble, retry_at: at(30), failures: 1 };
    pool.clouds.get_mut("gcp").unwrap().paused = Some(paused);
    pool.does("");
    pool.says(
        "CredentialsInvalid: 1 of 2 nodes ready. Nothing is bought at GCP, which says: the key was revoked",
    );
    assert_eq!(pool.plan().next, Some(at(30)));
    // What must go is tried all the same.
    pool.spec.nodes = 1;
    pool.ones.push(one("b", 2, None, "coming", 60));
    pool.does("leave b ScaleDown");
    // Another provider is used.
    pool.spec.nodes = 3;
    pool.clouds.insert("aws".to_owned(), cloud("aws", "AWS", "us-east-1"));
    let choice = ProviderChoice {
        name: "aws".to_owned(),
        regions: Vec::new(),
        ..crate::pool::fixture::gcp()
    };
    pool.spec.providers.push(choice);
    assert_eq!(pool.plan().buy[0].order.provider, "aws");
}

#[test]
fn g10_what_is_exhausted_is_left_alone_for_a_while_and_tried_with_one_machine() {
    let mut pool = town(5, "a:ready b:ready");
    let buys = pool.plan().buy;
    assert_eq!(buys.len(), 3);
    for buy in &buys {
        pool.book = failed(&pool.book, &buy.order, buy.number, &exhausted(), at(0));
    }
    pool.does("");
    let plan = pool.plan();
    let until = plan.next.unwrap();
    assert!(at(0) < until && until <= later(at(0), BACKOFF_FIRST), "{until}");
    pool.says(
        "ProvisioningFailed: Failed to provision node 3 of 5. GCP error: ZONE_RESOURCE_POOL_EXHAUSTED",
    );
    // Not hot: one probe, and no second while its answer is not known.
    let probe = pool.plan_at(until);
    assert_eq!(told(&probe), "buy 3");
    pool.ones.push(one("c", 3, None, "asked", 0));
    assert_eq!(told(&pool.plan_at(until)), "");
    // It fails again: twice as long. It works: all the rest at once.
    let again = failed(&pool.book, &buys[0].order, 3, &exhausted(), until);
    let wait = again.places.values().next().unwrap().until.duration_since(until);
    assert!(BACKOFF_FIRST < wait && wait <= BACKOFF_FIRST * 2, "{wait}");
    pool.book = bought(&pool.book, &buys[0].order).unwrap();
    assert_eq!(told(&pool.plan_at(until)), "buy 4; buy 5");
}

#[test]
fn g10_the_fallback_goes_over_types_zones_regions_and_providers() {
    let mut pool = town(1, "");
    pool.spec.types = vec!["t1".to_owned(), "t2".to_owned()];
    pool.spec.zones = vec!["us-east1-b".to_owned(), "us-east1-c".to_owned()];
    pool.spec.providers[0].regions = vec!["us-east1".to_owned(), "us-west1".to_owned()];
    pool.clouds.insert("lambda".to_owned(), cloud("lambda", "Lambda", "us-south-1"));
    let lambda = ProviderChoice {
        name: "lambda".to_owned(),
        priority: 1,
        regions: Vec::new(),
        ..crate::pool::fixture::gcp()
    };
    pool.spec.providers.push(lambda);
    let mut tried = Vec::new();
    while let Some(buy) = pool.plan().buy.first() {
        let order = &buy.order;
        tried.push(format!("{} {} {}", order.region, order.zone, order.machine_type));
        pool.book = failed(&pool.book, order, 1, &quota(), at(0));
    }
    let expected = [
        "us-east1 us-east1-b t1",
        "us-east1 us-east1-b t2",
        "us-east1 us-east1-c t1",
        "us-east1 us-east1-c t2",
        "us-west1  t1",
        "us-west1  t2",
        "us-south-1  t1",
        "us-south-1  t2",
    ];
    assert_eq!(tried, expected);
    let Outcome::Failed { reason, data, applied, healthy, .. } = pool.plan().outcome else {
        panic!()
    };
    assert_eq!((reason.as_str(), applied, healthy), ("QuotaExceeded", false, true));
    let guidance = data["guidance"].as_str().unwrap();
    assert!(
        guidance.starts_with("Reduce the node count or request a quota increase"),
        "{guidance}"
    );
    assert!(
        guidance.contains("7 other places") && guidance.contains("next try is at"),
        "{guidance}"
    );
}

fn of(town: &Town, id: &str) -> Instance {
    town.ones.iter().find(|one| one.instance.id.as_str() == id).unwrap().instance.clone()
}

#[test]
fn g12_three_machines_in_a_row_that_never_register_pause_the_pool() {
    let mut pool = town(1, "a:stale b:stale");
    assert!(pool.plan().book.unwrap().paused.is_none());
    pool.ones.push(one("c", 1, None, "stale", 10));
    if let State::Failed { console, .. } = &mut pool.one("c").instance.state {
        "booting\ncloud-init: no such image\n\n".clone_into(console);
    }
    pool.book = pool.plan().book.unwrap();
    // The place is in backoff for a while too; the pause holds whatever that says.
    let plan = pool.plan_at(at(86_400));
    assert_eq!(told(&plan), "");
    assert_eq!(plan.outcome.reason(), "RegistrationUnhealthy");
    let expected = "0 of 1 nodes ready. 3 machines in a row never registered, so no more are bought. The \
                    last was c never registered. Its console ends with: cloud-init: no such image";
    assert_eq!(plan.outcome.message(), expected);
    // Another label or size says nothing of the machines (M12); another image does.
    pool.resource.generation = 2;
    assert_eq!(told(&pool.plan_at(at(86_400))), "");
    pool.spec.image = "another".to_owned();
    let plan = pool.plan_at(at(86_400));
    assert_eq!(told(&plan), "buy 1");
    let book = plan.book.unwrap();
    assert_eq!((book.paused, book.stale_in_a_row), (None, 0));
}

#[test]
fn g12_one_that_registers_ends_the_row() {
    let pool = town(1, "a:stale b:stale");
    let book = stale(&pool.book, &of(&pool, "a"), "", "", at(0));
    let registers = of(&pool, "b");
    let book = registered(&book, &registers, at(0)).unwrap();
    assert_eq!(registered(&book, &registers, at(0)), None);
    let later = Instance { ordered_at: at(60), ..of(&pool, "b") };
    let book = stale(&book, &later, "", "", at(700));
    assert_eq!((book.stale_in_a_row, book.paused), (1, None::<BuyingPaused>));
}

#[test]
fn g12_some_duds_of_a_large_order_do_not_pause_the_pool() {
    let pool = town(4, "a:stale b:stale c:stale d:stale");
    let mut book = registered(&pool.book, &of(&pool, "d"), at(0)).unwrap();
    for id in ["a", "b", "c"] {
        book = stale(&book, &of(&pool, id), "", "", at(600));
    }
    assert_eq!((book.stale_in_a_row, book.paused), (0, None::<BuyingPaused>));
}

#[test]
fn g15_a_machine_that_is_taken_back_is_drained_and_replaced_at_once() {
    let mut spot = town(2, "a:ready b:reclaimed");
    spot.does("buy 2 for b; drain b");
    // Even while nothing is done by ourselves: it is not our doing.
    spot.stopped = Some("paused by ada".to_owned());
    spot.does("buy 2 for b; drain b");
    let old = spot.one("b").instance.id.clone();
    spot.ones.push(one("c", 2, Some(old), "coming", 10));
    spot.does("drain b");
    let notice = spot.one("b").notice.clone();
    set(spot.one("b"), "draining");
    spot.one("b").notice = notice.clone();
    spot.does("");
    assert_eq!(spot.plan().next, Some(at(120)));
    assert_eq!(told(&spot.plan_at(at(121))), "leave b Reclaimed");
    set(spot.one("b"), "drained");
    spot.one("b").notice = notice;
    spot.does("leave b Reclaimed");
}

#[test]
fn g17_of_five_of_which_three_were_made_two_are_bought() {
    for text in ["a:ready b:coming c:asked", "a:ready b:coming c:asked x:gone y:gone"] {
        let plan = town(5, text).plan();
        assert_eq!(plan.buy.len(), 2, "{text}");
        assert_eq!(plan.buy.iter().map(|buy| buy.number).collect::<Vec<_>>(), [4, 5]);
    }
}

#[test]
fn g18_a_node_whose_replacement_cannot_be_bought_is_kept() {
    let mut stuck = town(2, "a:ready b:sick");
    let order = stuck.plan().buy[0].order.clone();
    stuck.book = failed(&stuck.book, &order, 2, &quota(), at(0));
    stuck.does("");
    let Outcome::Failed { reason, message, applied, healthy, data } = stuck.plan().outcome else {
        panic!()
    };
    assert_eq!((reason.as_str(), applied, healthy), ("ReplacementBlocked", true, false));
    assert!(message.starts_with("1 of 2 nodes ready; node 2 of 2 (b) is sick: "), "{message}");
    assert!(message.contains("it is kept until a replacement can be bought"), "{message}");
    assert!(message.contains("Insufficient quota"), "{message}");
    assert!(data.contains_key("guidance"));
    // Even when its drain has ended.
    set(stuck.one("b"), "sick-drained");
    stuck.does("");
    // One that is lost for good makes room; one that may come back does not.
    set(stuck.one("b"), "lost");
    stuck.does("");
    stuck.one("b").lost_for = Some(SignedDuration::from_mins(31));
    stuck.does("leave b for nobody");
    // And not where that would change nothing.
    stuck.book.places.clear();
    let message = "3 of 9".to_owned();
    let frozen = Frozen { since: at(0), expected: 9, found: 3, message };
    stuck.clouds.get_mut("gcp").unwrap().frozen = Some(frozen);
    stuck.does("");
    assert!(stuck.plan().outcome.message().contains("3 of 9"));
}

#[test]
fn g18_a_spec_that_the_provider_refuses_keeps_the_old_nodes() {
    let mut roll = town(2, "a:ready b:ready").with(|town| town.spec.image = "gone".to_owned());
    let order = roll.plan().buy[0].order.clone();
    let message = "there is no image gone; did you mean gnome?".to_owned();
    let trouble = Trouble::Invalid { field: "image".to_owned(), message };
    roll.book = failed(&roll.book, &order, 1, &trouble, at(0));
    roll.does("");
    let plan = roll.plan();
    assert_eq!(plan.outcome.reason(), "InvalidSpec");
    assert!(plan.outcome.message().contains("did you mean gnome?"), "{:?}", plan.outcome);
}

#[test]
fn g19_a_price_that_nobody_knows_counts_as_it_last_was_and_is_shown_as_unknown() {
    let mut pool = town(3, "a:ready$2 b:ready$2");
    pool.clouds.get_mut("gcp").unwrap().offers =
        vec![offer("n1-standard-4", "us-east1", Some(2.0))];
    pool.spec.max_hourly_cost = Some(6.0);
    pool.does("buy 3");
    pool.spec.max_hourly_cost = Some(5.0);
    pool.does("");
    pool.says(
        "CostGuard: 2 of 3 nodes ready. The pool costs $4.00 per hour; another node for $2.00 would exceed \
         spec.maxHourlyCost, which is $5.00",
    );
    // The feed is gone, or lies: the guard goes by what it last was.
    for feed in [vec![], vec![f64::NAN], vec![f64::INFINITY], vec![-1.0]] {
        let offers = feed.into_iter().map(|price| offer("n1-standard-4", "us-east1", Some(price)));
        pool.clouds.get_mut("gcp").unwrap().offers = offers.collect();
        pool.does("");
        assert_eq!(pool.plan().outcome.reason(), "CostGuard");
    }
    let cost = |town: &Town| match town.plan().outcome {
        Outcome::Failed { data, .. }
        | Outcome::Progress { data, .. }
        | Outcome::Ready { data, .. } => data["cost_per_hour"].clone(),
        Outcome::Waiting | Outcome::Removing { .. } | Outcome::Removed { .. } => panic!(),
    };
    assert_eq!(cost(&pool), json!(4.0));
    pool.one("a").instance.order.price_per_hour = None;
    assert_eq!(cost(&pool), json!(null));
    // Where nobody ever knew a price, nobody knows whether the limit holds.
    pool.one("b").instance.order.price_per_hour = None;
    pool.does("");
    pool.says(
        "PriceUnknown: 2 of 3 nodes ready. spec.maxHourlyCost is set, and the price of n1-standard-4 at GCP is \
         not known",
    );
    assert_eq!(cost(&pool), json!(null));
    pool.spec.max_hourly_cost = None;
    pool.does("buy 3");
}
