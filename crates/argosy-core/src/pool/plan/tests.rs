use crate::autoscale::Autoscaling;
use crate::fixture::at;
use crate::health::HealthState;
use crate::instance::{Cure, Departure, Reason};
use crate::machine::{Notice, NoticeKind};
use crate::node::Liveness;
use crate::pool::fixture::{
    Town, cloud, deleted, departs, exhausted, finding, offer, one, quota, set, told, town,
};
use crate::pool::{BuyingPaused, Capacity, Outcome, Remedy, Step, Unavailable, failed};
use crate::window::Windows;
use jiff::SignedDuration;
use serde_json::json;

mod fault;
mod property;
mod recovery;
mod speed;

#[track_caller]
fn pool(nodes: u32, text: &str, expected: &str) {
    assert_eq!(told(&town(nodes, text).plan()), expected, "{nodes} of {text}");
}

fn reactive() -> Autoscaling {
    Autoscaling::parse(&json!({"type": "reactive"}), "autoscaling").unwrap()
}

#[test]
fn what_is_missing_is_bought_under_free_numbers() {
    pool(3, "", "buy 1; buy 2; buy 3");
    pool(3, "a:ready b:coming", "buy 3");
    pool(3, "a:ready b:coming c:asked", "");
    pool(3, "a:ready b:ready c:ready", "");
    pool(3, "a:gone b:ready c:ready", "buy 1");
    pool(3, "a:leaving b:ready c:ready", "buy 1");
    pool(3, "a:ready b:stale c:ready", "buy 2");
    pool(2, "a:new b:suspect", "");
    pool(2, "a:held b:ready", "");
}

#[test]
fn a_smaller_pool_lets_those_go_who_are_missed_least() {
    pool(2, "a:ready b:ready c:asked", "leave c ScaleDown");
    pool(2, "a:ready b:coming c:ready", "leave b ScaleDown");
    pool(2, "a:ready b:sick c:coming", "drain b for its health");
    pool(2, "a:lost b:ready c:ready", "leave a ScaleDown");
    pool(2, "a:ready^90 b:ready^10 c:ready^80", "cordon b");
    pool(2, "a:ready b:ready~old c:ready", "cordon b");
    // Idle, then not as the spec says, then the oldest; of those that are not up yet the youngest.
    pool(2, "a:ready^90 b:ready^10 c:ready^80~old", "cordon b");
    pool(2, "a:ready+10 b:ready+30 c:ready+20", "cordon b");
    pool(2, "a:ready+10 b:ready+30 c:ready+20~old", "cordon c");
    pool(2, "a:asked+10 b:asked+5 c:ready", "leave b ScaleDown");
    pool(2, "a:ready b:suspect c:ready", "cordon b");
    // What a person cordoned goes before what is in service, or will be, and stays theirs.
    pool(2, "a:ready b:held c:ready^0", "drain b as argosy for ada");
    pool(2, "a:ready b:held c:coming", "drain b as argosy for ada");
    pool(2, "a:sick b:held c:ready", "drain a for its health");
    pool(2, "a:held-drained b:ready c:ready", "leave a ScaleDown");
    pool(3, "a:held-drained b:ready c:ready", "");
    // A sick one before those who are on their way out: they are put back.
    pool(2, "a:draining b:ready c:sick", "drain c for its health; uncordon a");
    // What began goes on, although others would be chosen now.
    pool(2, "a:parting b:ready^0 c:coming", "drain a");
    pool(2, "a:draining b:ready c:ready", "");
    pool(2, "a:drained b:ready c:ready", "leave a ScaleDown");
    pool(2, "a:overdue b:ready c:ready", "leave a ScaleDown");
    pool(1, "a:drained b:parting c:ready", "leave a ScaleDown; drain b");
}

#[test]
fn a_node_that_is_wanted_after_all_is_put_back_before_another_is_bought() {
    pool(3, "a:parting b:ready c:ready", "uncordon a");
    pool(4, "a:draining b:ready c:ready", "buy 4; uncordon a");
    pool(3, "a:draining b:ready c:ready d:ready", "");
}

#[test]
fn a_command_on_its_way_is_not_given_again() {
    let busy = |text: &str| {
        let mut town = town(2, text);
        town.one("a").commanded = true;
        told(&town.plan())
    };
    assert_eq!(busy("a:parting b:ready c:ready"), "");
    assert_eq!(busy("a:parting b:ready"), "");
    assert_eq!(busy("a:sick b:ready"), "buy 1 for a");
}

#[test]
fn a_sick_node_goes_after_its_replacement_is_ready_and_its_work_has_ended() {
    pool(3, "a:ready b:sick c:ready", "buy 2 for b");
    pool(3, "a:ready b:sick c:ready d<b:asked", "");
    pool(3, "a:ready b:sick c:ready d<b:coming", "");
    pool(3, "a:ready b:sick c:ready d<b:new", "");
    pool(3, "a:ready b:sick c:ready d<b:ready", "drain b for its health");
    pool(3, "a:ready b:sick-draining c:ready d<b:ready", "");
    pool(3, "a:ready b:sick-drained c:ready d<b:ready", "leave b for d");
    pool(3, "a:ready b:leaving c:ready d<b:ready", "");
    // One that came to nothing is bought again.
    pool(3, "a:ready b:sick c:ready d<b:gone", "buy 2 for b");
    // Sick, but not taken out of service: the remedy's to decide.
    pool(3, "a:ready b:sick-active c:ready", "");
    pool(3, "a:ready b:held-sick c:ready", "");
}

#[test]
fn a_machine_whose_node_was_forgotten_is_lost_when_its_time_is_over() {
    pool(3, "a:ready b:nodeless c:ready", "");
    assert_eq!(town(3, "a:ready b:nodeless c:ready").plan().next, Some(at(1)));
    pool(3, "a:ready b:forgotten c:ready", "buy 2 for b");
    pool(3, "a:ready b:forgotten c:ready d<b:coming", "");
    pool(3, "a:ready b:forgotten c:ready d<b:ready", "leave b for d");
    // Within the budgets, and not while nothing is done by ourselves.
    pool(3, "a:forgotten b:forgotten c:ready", "buy 1 for a");
    pool(2, "a:forgotten b:ready c:ready", "leave a ScaleDown");
    let paused = |town: &mut Town| town.stopped = Some("it is paused".to_owned());
    town(3, "a:ready b:forgotten c:ready").with(paused).does("");
    // A replacement whose node is gone for a moment is still one.
    pool(3, "a:ready b:sick c:ready d<b:nodeless", "");
    town(3, "a:ready b:forgotten c:ready").says(&format!(
        "NodesUnhealthy: 2 of 3 nodes ready; node 2 of 3 (b) is sick: its node is not known any more \
         since {:.0}, and has not registered again; a replacement is ordered",
        at(-1200)
    ));
    let kept = |town: &mut Town| town.spec.cures.retain(|cure| *cure != Cure::Replace);
    let said = town(2, "a:ready b:forgotten").with(kept).plan().outcome;
    assert_eq!(said.reason(), "NeedsHuman", "{}", said.message());
}

#[test]
fn a_node_that_is_never_judged_needs_a_person() {
    pool(2, "a:ready b:new", "");
    assert_eq!(town(2, "a:ready b:new").plan().next, Some(at(600)));
    pool(2, "a:ready b:unjudged", "");
    town(2, "a:ready b:unjudged").says(&format!(
        "NeedsHuman: 1 of 2 nodes ready; node 2 of 2 (b) is sick: it has not been judged since {:.0}; \
         its agent sends no checks, so nobody can say how it is",
        at(-1200)
    ));
}

#[test]
fn a_node_that_recovers_keeps_its_place() {
    // Well again, and held for a while: nothing new is bought, and nothing undone.
    pool(3, "a:ready b:recovering c:ready", "");
    pool(3, "a:ready b:recovering c:ready d<b:coming", "");
    // In service again: what was bought for it is too many.
    pool(3, "a:ready b:ready c:ready d<b:asked", "leave d Unwanted");
    pool(3, "a:ready b:ready c:ready d<b:ready", "cordon a");
}

#[test]
fn a_replacement_that_is_sick_itself_is_replaced_in_turn() {
    pool(2, "a:ready b:sick c<b:sick", "drain b for its health");
    pool(2, "a:ready b:sick c<b:sick-drained", "leave c Sick");
    pool(2, "a:ready b:sick c<b:leaving", "buy 2 for b");
    // Not out of service yet: it must not hold up another's replacement for ever.
    let mut stuck = town(2, "a:ready b:lost c<a:sick-active");
    stuck.spec.image = "new".to_owned();
    stuck.does("leave b Sick");
}

#[test]
fn no_more_are_replaced_at_once_than_max_unavailable() {
    let mut five = town(5, "a:sick b:sick c:sick d:ready e:ready");
    five.does("buy 1 for a");
    five.spec.max_unavailable = Unavailable::Nodes(2);
    five.does("buy 1 for a; buy 2 for b");
    five.spec.max_unavailable = Unavailable::Percent(100.0);
    five.does("buy 1 for a; buy 2 for b; buy 3 for c");
    let one_under_way = town(5, "a:sick b:sick c:ready d:ready e:ready f<a:coming");
    one_under_way.does("");
    // Who has been sick for longest is first.
    let mut late = town(5, "a:sick b:sick c:ready d:ready e:ready");
    late.one("a").node.as_mut().unwrap().health.since = at(-10);
    late.one("a").node.as_mut().unwrap().liveness_since = at(-10);
    late.one("a").node.as_mut().unwrap().duty =
        crate::node::Duty::Cordoned(crate::fixture::hold("argosy", true, -10));
    late.does("buy 2 for b");
}

#[test]
fn a_changed_spec_is_rolled_out_one_after_the_other() {
    let roll = |text: &str, expected: &str| {
        town(3, text).with(|town| town.spec.types = vec!["n2".to_owned()]).does(expected);
    };
    roll("a:ready b:ready c:ready", "buy 1 for a");
    roll("a:ready^80 b:ready^10 c:ready^80", "buy 2 for b");
    roll("a:ready b:ready c:ready d<a:coming~n2", "");
    roll("a:ready b:ready c:ready d<a:ready~n2", "cordon a");
    roll("a:parting b:ready c:ready d<a:ready~n2", "drain a");
    roll("a:drained b:ready c:ready d<a:ready~n2", "leave a for d");
    roll("a:leaving b:ready c:ready d<a:ready~n2", "buy 2 for b");
    roll("b:ready~n2 c:ready~n2 d:ready~n2", "");
    // The spec changed again, before the new one was up.
    roll("a:ready b:ready c:ready d<a:coming~n3", "leave d Unwanted");
    // One that is missing comes first.
    roll("a:ready b:ready", "buy 3");
}

#[test]
fn a_spec_that_is_changed_back_keeps_what_there_is() {
    pool(3, "a:ready b:ready c:ready d<a:coming~n2", "leave d Unwanted");
    pool(3, "a:drained b:ready c:ready d<a:ready", "leave a Unwanted");
}

#[test]
fn image_zones_capacity_provider_and_region_make_a_node_outdated_too() {
    let roll = |change: fn(&mut crate::pool::PoolSpec)| {
        let town = town(1, "a:ready/us-east1-b").with(|town| change(&mut town.spec));
        told(&town.plan())
    };
    assert_eq!(roll(|_| {}), "");
    assert_eq!(roll(|spec| spec.image = "new".to_owned()), "buy 1 for a");
    assert_eq!(roll(|spec| spec.zones = vec!["us-east1-c".to_owned()]), "buy 1 for a");
    assert_eq!(roll(|spec| spec.zones = vec!["us-east1-b".to_owned()]), "");
    assert_eq!(roll(|spec| spec.capacity = Capacity::Spot), "buy 1 for a");
    assert_eq!(roll(|spec| spec.capacity = Capacity::SpotPreferred), "");
    assert_eq!(roll(|spec| spec.providers[0].regions = vec!["us-west1".to_owned()]), "buy 1 for a");
    assert_eq!(roll(|spec| spec.types.push("n2".to_owned())), "");
    assert_eq!(roll(|spec| spec.types.clear()), "");
}

#[test]
fn nodes_that_are_well_are_disturbed_in_windows_only() {
    // 12:00 UTC on a Tuesday.
    let night = json!([{"cron": "0 2 * * *", "duration": "2h"}]);
    let night = Windows::parse(&night, "windows").unwrap();
    let mut roll = town(2, "a:ready b:ready").with(|town| town.spec.image = "new".to_owned());
    roll.does("buy 1 for a");
    roll.spec.maintenance = night.clone();
    roll.does("");
    assert_eq!(roll.plan().next, Some(at(14 * 3600)));
    assert!(roll.plan().outcome.message().contains("window opens at 2025-10-29T02:00:00Z"));
    // By the clock that it is written by, whatever ours shows.
    roll.ahead = SignedDuration::from_hours(-14);
    roll.does("buy 1 for a");
    roll.ahead = SignedDuration::from_hours(1);
    roll.does("");
    assert_eq!(roll.plan().next, Some(at(15 * 3600)));
    // What began is brought to its end.
    let mut begun = town(2, "a:drained b:ready c<a:ready");
    begun.spec.image = "new".to_owned();
    begun.one("c").instance.order.image = "new".to_owned();
    begun.spec.maintenance = night.clone();
    begun.does("leave a for c");
    // An autoscaler shrinks in windows; a person, whenever they like.
    let mut shrink = town(3, "a:ready b:ready c:ready d:coming");
    shrink.spec.maintenance = night;
    shrink.spec.nodes = 2;
    shrink.does("leave d ScaleDown; cordon a");
    shrink.spec.autoscaling = Some(reactive());
    shrink.book.target = Some(2);
    shrink.does("leave d ScaleDown");
    // Sickness does not wait.
    town(2, "a:sick b:ready")
        .with(|town| town.spec.maintenance = shrink.spec.maintenance.clone())
        .does("buy 1 for a");
}

#[test]
fn who_is_in_service_leaves_after_the_machines_were_compared() {
    let mut early = town(4, "a:ready b:ready^0 c:ready^0 d:coming");
    early.spec.nodes = 2;
    early.clouds.get_mut("gcp").unwrap().compared = false;
    early.does("leave d ScaleDown");
    assert_eq!(
        early.plan().outcome.message(),
        "2 of 2 nodes ready; 1 more is on the way out: d; others leave after the first listing of the \
         machines at GCP"
    );
    // What began goes on.
    town(1, "a:ready b:parting")
        .with(|town| town.clouds.get_mut("gcp").unwrap().compared = false)
        .does("drain b");
    // One that is not shown may be all that has to go.
    early.clouds.get_mut("gcp").unwrap().compared = true;
    early.does("leave d ScaleDown; cordon b");
    early.one("a").instance.sight.missing_since = Some(at(0));
    early.does("leave d ScaleDown; cordon a");
}

#[test]
fn a_pool_is_never_disturbed_below_min_available() {
    let mut small = town(2, "a:ready b:ready c:suspect");
    small.spec.nodes = 1;
    small.spec.min_available = 2;
    small.does("cordon c");
    let mut roll = town(2, "a:ready b:suspect c<a:ready");
    roll.spec.image = "new".to_owned();
    roll.one("c").instance.order.image = "new".to_owned();
    roll.one("b").instance.order.image = "new".to_owned();
    roll.does("cordon a");
    roll.spec.min_available = 2;
    roll.does("");
}

#[test]
fn a_stop_holds_what_we_do_by_ourselves_and_not_what_people_ask_for() {
    let stopped = |nodes: u32, text: &str, expected: &str| {
        town(nodes, text)
            .with(|town| town.stopped = Some("paused by ada".to_owned()))
            .does(expected);
    };
    stopped(3, "a:ready b:sick c:ready", "");
    stopped(3, "a:ready b:sick-drained c:ready d<b:ready", "");
    stopped(3, "a:ready~old b:ready c:ready", "");
    stopped(4, "a:ready b:ready c:ready", "buy 4");
    stopped(2, "a:ready b:ready c:ready", "cordon a");
    stopped(3, "a:ready b:parting c:ready", "uncordon b");
    stopped(2, "a:ready b:terminated", "buy 2; leave b NodeTerminated");
    // A half-open breaker that let pass what it may (M22): nothing more is begun; what was begun goes on.
    let spent = |nodes: u32, text: &str, expected: &str| {
        town(nodes, text)
            .with(|town| town.spent = Some("1 of 1 actions were taken".to_owned()))
            .does(expected);
    };
    spent(3, "a:ready b:sick c:ready", "");
    spent(3, "a:ready~old b:ready c:ready", "");
    spent(3, "a:ready b:sick-drained c:ready d<b:ready", "");
    spent(4, "a:ready b:ready c:ready", "buy 4");
    spent(2, "a:ready b:ready c:ready", "cordon a");
    let mut handed = town(3, "a:ready b:sick-drained c:ready d<b:ready");
    handed.spent = Some("1 of 1 actions were taken".to_owned());
    let reason = Reason::Replaced { by: None, because: "it is sick".to_owned() };
    handed.one("b").instance.departure =
        Some(Departure { reason, since: at(-60), deadline: at(60) });
    handed.does("leave b for d");
    // The breaker of one zone holds only the machines in it.
    let mut zone = town(3, "a:ready b:sick c:sick");
    zone.one("b").stopped = Some("the breaker is open".to_owned());
    zone.does("buy 3 for c");
    let mut by_itself = town(3, "a:ready b:ready c:ready");
    by_itself.spec.autoscaling = Some(reactive());
    (by_itself.spec.min, by_itself.book.target) = (1, Some(1));
    // No more at a time than maxUnavailable, which is one of three.
    by_itself.does("cordon a");
    by_itself.stopped = Some("paused by ada".to_owned());
    by_itself.does("");
}

#[test]
fn a_deleted_pool_returns_everything_and_says_when_it_is_gone() {
    let mut gone = town(2, "a:ready b:asked c:leaving d:gone").with(deleted);
    // What runs on a has an hour; nothing runs on b, and c leaves for the stronger reason (M4).
    gone.does("drain a; leave b PoolDeleted; leave c PoolDeleted");
    assert_eq!(departs(&gone.plan()), "a in 3600 s for PoolDeleted");
    gone.says("CleanupInProgress: Removing nodes; 3 left: a, b, c");
    set(gone.one("a"), "drained");
    gone.does("leave a PoolDeleted; leave b PoolDeleted; leave c PoolDeleted");
    set(gone.one("a"), "ready");
    gone.resource.without_drain = true;
    gone.does("leave a PoolDeleted; leave b PoolDeleted; leave c PoolDeleted");
    gone.ones.retain(|one| one.instance.id.as_str() == "d");
    gone.does("");
    gone.says("NodesRemoved: All nodes removed");
    assert_eq!(gone.plan().outcome, Outcome::removed());
}

#[test]
fn a_node_that_a_person_terminated_is_returned_and_another_bought() {
    pool(2, "a:ready b:terminated", "buy 2; leave b NodeTerminated");
    let plan = town(1, "a:terminated").plan();
    let Step::Leave { reason, .. } = &plan.steps[0] else { panic!("{plan:?}") };
    assert_eq!(*reason, Reason::NodeTerminated { by: "ada".to_owned() });
}

#[test]
fn a_gpu_that_is_known_to_be_bad_is_refused_at_boot_a_few_times() {
    let bad = |text: &str| {
        let mut town = town(2, text);
        town.bad_serials.insert("s-b".to_owned());
        town
    };
    bad("a:ready b:fresh").does("buy 2; leave b BadHardware");
    bad("a:ready b:fresh c:gone-bad d:gone-bad").does("buy 2; leave b BadHardware");
    let third = bad("a:ready b:fresh c:gone-bad d:gone-bad e:gone-bad");
    third.does("leave b BadHardware");
    third.says(
        "BadHardware: 1 of 2 nodes ready. 3 machines within an hour came with GPUs that are known to be \
         bad, so none is bought until 2025-10-28T12:59:00Z",
    );
    assert_eq!(third.plan().next, Some(at(3540)));
    // One that is in service is replaced as a sick one is.
    bad("a:ready b:ready").does("buy 2 for b");
}

#[test]
fn before_its_turn_nothing_is_begun_and_what_is_sick_is_healed() {
    let early = |text: &str| {
        let town = town(3, text).with(|town| town.its_turn = false);
        assert_eq!(town.plan().outcome, Outcome::Waiting);
        told(&town.plan())
    };
    assert_eq!(early("a:ready b:ready"), "");
    assert_eq!(early("a:ready~old b:ready c:ready"), "");
    assert_eq!(early("a:ready b:sick c:ready"), "buy 2 for b");
}

#[test]
fn a_pool_that_only_observes_replaces_nothing() {
    for remedy in [Remedy::Observe, Remedy::Cordon, Remedy::Drain] {
        let town = town(2, "a:sick b:ready").with(|town| town.spec.remedy = remedy);
        town.does("");
        assert_eq!(town.plan().outcome.reason(), "NeedsHuman");
    }
}

#[test]
fn a_machine_that_its_provider_will_work_on_is_replaced_whatever_the_window() {
    let mut soon = town(2, "a:ready b:ready");
    let night = json!([{"cron": "0 2 * * *", "duration": "2h"}]);
    soon.spec.maintenance = Windows::parse(&night, "windows").unwrap();
    let message = "host maintenance".to_owned();
    soon.one("b").notice = Some(Notice { kind: NoticeKind::Maintenance, at: None, message });
    soon.does("buy 2 for b");
}

#[test]
fn a_node_is_in_service_with_a_warning_and_not_before_its_first_report() {
    town(2, "a:warned b:ready").says("AllNodesReady: 2 of 2 nodes ready");
    let mut first = town(1, "a:ready");
    first.one("a").node.as_mut().unwrap().health.state = HealthState::Unknown;
    first.says(
        "ProvisioningInProgress: 0 of 1 nodes ready; a has registered, and its first checks are awaited",
    );
    let mut lost = town(1, "a:ready");
    lost.one("a").node.as_mut().unwrap().liveness = Liveness::Unreachable;
    lost.says("ProvisioningInProgress: 0 of 1 nodes ready; a is unreachable");
}
