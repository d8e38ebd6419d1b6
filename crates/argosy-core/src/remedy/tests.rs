use super::{Action, ActionKind, Fleet, Plan, Subject, plan};
use crate::breaker::{Breaker, Closed, HalfOpen, Pause, Scope};
use crate::command::REASON_LEN_MAX;
use crate::fixture::{at, command_id, hold, node, seconds};
use crate::health::{Ends, Finding, HealthState, MESSAGE_LEN_MAX, Severity};
use crate::invariant::{self, Change};
use crate::liveness::Excuse;
use crate::node::settings::{Budget, NodeSettings, Remedy};
use crate::node::{Duty, Flag, FlagNote, Held, Liveness, Node};
use crate::pool::BY;
use jiff::{SignedDuration, Timestamp};

mod property;

/// A node, and what its document does not say.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) node: Node,
    pub(super) heard: bool,
    pub(super) unreachable_for: Option<i64>,
    pub(super) unreported_for: Option<i64>,
    pub(super) cordon_pending: Option<Timestamp>,
}

/// Nodes as words, at time 0. `a` is well; `n*9` are nine of them, `n0` to `n8`. After a colon, with
/// commas between: `sick-5` (for 5 s), `lost-400` (unreachable for 400 s), `deaf` (not heard since we
/// listen), `mute-400` (its reports have been missing for 400 s), `untold` (a rule failed), `well-40` (well again for 40 s), `warm` (registered a minute
/// ago), `sent-5` (our cordon is on its way for 5 s), `ours-60` (we cordoned it 60 s ago), `draining`
/// (by us), `ahead60` (we cordoned it, says a clock that was set back, in 60 s), `theirs` (an operator cordoned it), `gone`, `replaced-4` (another took its
/// place 4 s ago), `ended-4` (an operator terminated it 4 s ago), `came-4` (registered 4 s ago), `emptied` (drained
/// by an operator), `drained` (by us), `flaps2`, `held=budget`, `long-900` (for so long), `alarmed`, `pool=x`, `zone=z`.
pub(super) fn machines(fleet: &str) -> Vec<Machine> {
    let mut all = Vec::new();
    for word in fleet.split_whitespace() {
        let (name, traits) = word.split_once(':').unwrap_or((word, ""));
        let names = match name.split_once('*') {
            None => vec![name.to_owned()],
            Some((name, count)) => {
                (0..count.parse().unwrap()).map(|index: usize| format!("{name}{index}")).collect()
            }
        };
        all.extend(names.iter().map(|name| machine(name, traits)));
    }
    all
}

fn machine(name: &str, traits: &str) -> Machine {
    let mut node = node(name);
    node.pool = Some("h100".to_owned());
    let (unreachable_for, unreported_for, cordon_pending) = (None, None, None);
    let mut machine =
        Machine { node, heard: true, unreachable_for, unreported_for, cordon_pending };
    for word in traits.split(',').filter(|word| !word.is_empty()) {
        let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
        let (what, number) = word.split_at(digits);
        let ago: i64 = number.parse().unwrap_or(0);
        let node = &mut machine.node;
        match what {
            _ if word.starts_with("pool=") => node.pool = Some(word[5..].to_owned()),
            _ if word.starts_with("zone=") => node.place.zone = word[5..].into(),
            _ if word.starts_with("held=") => {
                let (action, guard) = ("cordon".to_owned(), word[5..].to_owned());
                node.held = Some(Held { action, guard, reason: String::new(), since: at(-9) });
            }
            "long-" => {
                let held = node.held.as_mut().unwrap();
                held.since = at(-ago);
            }
            "sick-" => {
                node.health.state = HealthState::Unhealthy;
                node.health.since = at(-ago);
                node.health.reason = "fatal-xid".to_owned();
                node.health.message = "Xid 79 on GPU 3".to_owned();
            }
            "lost-" => {
                node.liveness = Liveness::Unreachable;
                node.liveness_since = at(-ago);
                machine.unreachable_for = Some(ago);
            }
            "deaf" => machine.heard = false,
            "mute-" => {
                node.health.state = HealthState::Unknown;
                node.health.reason = "ReportsMissing".to_owned();
                node.evidence.missing_since = Some(at(-ago));
                machine.unreported_for = Some(ago);
            }
            "alarmed" => {
                let note = FlagNote { since: at(-1), message: String::new() };
                node.flags.insert(Flag::HeldTooLong, note);
            }
            "drained" => {
                let (hold, deadline) = (hold("argosy", true, -60), at(900));
                node.duty = Duty::Draining { hold, command: command_id(1), deadline, done: true };
            }
            "untold" => {
                node.health.state = HealthState::Unknown;
                node.health.reason = "PolicyError".to_owned();
            }
            "unshown" => {
                node.health.state = HealthState::Unknown;
                node.health.reason = "NoReport".to_owned();
            }
            "well-" => node.flaps.recovered_at = Some(at(-ago)),
            "warm" => node.joined_at = at(-60),
            "sent-" => machine.cordon_pending = Some(at(-ago)),
            "ours-" => node.duty = Duty::Cordoned(hold("argosy", true, -ago)),
            "ahead" => node.duty = Duty::Cordoned(hold("argosy", true, ago)),
            "theirs" => node.duty = Duty::Cordoned(hold("ada", false, -9)),
            "draining" => {
                let (hold, deadline) = (hold("argosy", true, -60), at(900));
                node.duty = Duty::Draining { hold, command: command_id(1), deadline, done: false };
            }
            "gone" => node.duty = Duty::Terminated(hold("ada", false, -9)),
            "ended-" => node.duty = Duty::Terminated(hold("ada", false, -ago)),
            "came-" => node.registered_at = at(-ago),
            "emptied" => {
                let (hold, deadline) = (hold("ada", false, -60), at(900));
                node.duty = Duty::Draining { hold, command: command_id(1), deadline, done: true };
            }
            "replaced-" => node.duty = Duty::Terminated(hold(BY, false, -ago)),
            "flaps" => node.flaps.count = ago.try_into().unwrap(),
            other => panic!("{other} is nothing a node can be"),
        }
    }
    machine
}

/// What is looked at besides the nodes.
#[derive(Clone, Default)]
struct Around {
    settings: NodeSettings,
    breakers: Vec<Breaker>,
    pauses: Vec<Pause>,
    excuse: Option<Excuse>,
}

pub(super) fn fleet<'a>(
    machines: &'a [Machine],
    breakers: &'a [Breaker],
    pauses: &'a [Pause],
    excuse: Option<Excuse>,
) -> Fleet<'a> {
    let subject = |machine: &'a Machine| Subject {
        node: &machine.node,
        heard: machine.heard,
        unreachable_for: machine.unreachable_for.map(SignedDuration::from_secs),
        unreported_for: machine.unreported_for.map(SignedDuration::from_secs),
        cordon_pending: machine.cordon_pending,
        leaving: None,
    };
    Fleet {
        nodes: machines.iter().map(subject).collect(),
        breakers: breakers.iter().collect(),
        pauses: pauses.iter().collect(),
        recoveries: Vec::new(),
        excuse,
    }
}

impl Around {
    fn plan(&self, machines: &[Machine]) -> Plan {
        let fleet = fleet(machines, &self.breakers, &self.pauses, self.excuse);
        let plan = plan(&fleet, &self.settings, at(0));
        let change =
            Change::Fleet { fleet: &fleet, plan: &plan, settings: &self.settings, now: at(0) };
        assert_eq!(invariant::check(change), Ok(()), "{plan}");
        plan
    }

    #[track_caller]
    fn check(&self, fleet: &str, expected: &str) -> Plan {
        let plan = self.plan(&machines(fleet));
        assert_eq!(plan.to_string(), expected, "{fleet}");
        plan
    }

    fn remedy(mut self, remedy: Remedy) -> Self {
        self.settings.defaults.remedy = remedy;
        self
    }

    fn paused(mut self, pool: Option<&str>) -> Self {
        let text = |text: &str| text.to_owned();
        let (by, reason) = (text("ada"), text("power work"));
        let pool = pool.map(text);
        let (tenant, pool_id) = (text("acme"), None);
        self.pauses.push(Pause { tenant, pool, pool_id, by, reason, at: at(-60) });
        self
    }

    fn breaker(mut self, breaker: Breaker) -> Self {
        self.breakers.push(breaker);
        self
    }

    fn excused(mut self, excuse: Excuse) -> Self {
        self.excuse = Some(excuse);
        self
    }

    /// Anything goes: what a bench sets.
    fn unlimited() -> Self {
        let budget = Budget { percent: 100.0, at_least: 1_000_000, every: SignedDuration::ZERO };
        let mut settings = NodeSettings::default();
        settings.defaults.budget = budget;
        settings.fleet.budget = budget;
        settings.fleet.zone_budget = budget;
        settings.defaults.breaker.percent = 100.0;
        settings.fleet.breaker.percent = 100.0;
        settings.fleet.zone_breaker.percent = 100.0;
        Around { settings, ..Around::default() }
    }
}

fn pool_scope() -> Scope {
    Scope::Pool { tenant: "acme".to_owned(), pool: "h100".to_owned() }
}

/// Opened so many seconds ago, when the last node turned bad.
fn open(scope: Scope, ago: i64) -> Breaker {
    let (opened_at, last_bad_at) = (at(-ago), at(-ago));
    let reason = "3 of 4 nodes turned bad".to_owned();
    Breaker { scope, opened_at, reason, last_bad_at, half_open: None, closed: None }
}

fn half_open(scope: Scope, ago: i64, taken: u32, allowed: u32) -> Breaker {
    let step = HalfOpen { since: at(-ago), allowed, taken };
    Breaker { half_open: Some(step), ..open(scope, 2000) }
}

fn closed(scope: Scope, ago: i64) -> Breaker {
    let (by, reason) = ("ada".to_owned(), "it was the switch".to_owned());
    Breaker { closed: Some(Closed { by, reason, at: at(-ago) }), ..open(scope, 2000) }
}

#[test]
fn a_sick_node_is_taken_out_of_service_once() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a n*9", "");
    check("a:sick-1 n*9", "cordon a");
    check("a:sick-1,sent-5 n*9", "");
    check("a:sick-1,ours-5 n*9", "");
    check("a:theirs,sick-1 b:gone,sick-1 n*9", "");
    // Who has been bad for longest is first.
    check("a:sick-9 b:sick-10 n*98", "cordon b; hold a rate");
    let observe = Around::default().remedy(Remedy::Observe);
    observe.check("a:sick-1 n*9", "");
}

#[test]
fn the_reason_and_the_budgets_are_told() {
    let plan = Around::default().check("a:sick-1,zone=z n*19 m*20:pool=x", "cordon a");
    let action = Action {
        node: machines("a")[0].node.id.clone(),
        kind: ActionKind::Cordon,
        reason: "fatal-xid: Xid 79 on GPU 3".to_owned(),
        budget: "pool h100 1/2, zone z 1/1, fleet 1/4".to_owned(),
    };
    assert_eq!(plan.actions, [action]);
    let plan = Around::default().check("a:lost-301 n*9", "cordon a");
    assert_eq!(plan.actions[0].reason, "unreachable for 301 s");
}

#[test]
fn f13_what_was_replaced_a_moment_ago_turned_bad_all_the_same() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check(
        "a:sick-30,replaced-20 b:sick-25,replaced-15 c:sick-1 n*9",
        "hold c breaker; open pool/acme/h100",
    );
    // One each so often, although none is out of service now.
    check("a:sick-30,replaced-4 c:sick-1 n*9", "hold c rate");
    check("a:sick-30,replaced-10 c:sick-1 n*9", "cordon c");
    // What was well when it went, what a person sent away, and what is long gone, say nothing.
    check("a:replaced-4 b:replaced-4 c:sick-1 n*9", "cordon c");
    check("a:lost-1,replaced-4 b:lost-1,replaced-4 c:sick-1 n*9", "cordon c");
    check("a:sick-30,gone b:sick-30,gone c:sick-1 n*9", "cordon c");
    check("a:sick-400,replaced-350 b:sick-400,replaced-350 c:sick-1 n*9", "cordon c");
}

#[test]
fn d1_a_lost_node_is_acted_on_when_it_has_been_for_long() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    let plan = check("a:lost-299 n*9", "");
    assert_eq!(plan.next.map(seconds), Some(1));
    check("a:lost-300 n*9", "cordon a");
    // It cannot fetch the cordon, so it holds at once.
    check("a:lost-300,sent-0 n*9", "enforce-cordon a");
}

#[test]
fn d2_d8_silence_with_an_excuse_is_acted_on_by_nobody() {
    let isolated = Around::default().excused(Excuse::Isolation { silent: 9, total: 10 });
    isolated.check("a:lost-400 b:sick-1 n*18", "cordon b; hold a isolation");
    isolated.check("a:lost-400,held=isolation n*9", "");
    isolated.check("a:lost-400,sent-9 n*9", "withdraw a; hold a isolation");
    let amnesty = Around::default().excused(Excuse::Amnesty { missing: 9, total: 10 });
    amnesty.check("a:lost-400 n*9", "hold a amnesty");
    // What was written about its health before we were away may be long past.
    amnesty.check("a:sick-4000,deaf n*9", "hold a amnesty");
    amnesty.check("a:sick-4000 n*9", "cordon a");
    Around::default().check("a:sick-4000,deaf n*9", "");
    // Recovery needs no excuse.
    isolated.check("a:ours-90,well-40 n*9", "uncordon a");
}

#[test]
fn a_node_whose_health_cannot_be_told_is_left_alone() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:untold n*9", "hold a policy");
    check("a:untold,held=policy n*9", "");
    check("a:untold,ours-90 n*9", "");
    check("a:untold,sent-90 n*9", "withdraw a; hold a policy");
}

#[test]
fn r2_n18_silence_is_judged_by_itself() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:untold,lost-400 n*9", "cordon a");
    check("a:untold,lost-40 n*9", "");
}

#[test]
fn r2_n19_reports_that_stopped_are_acted_on_like_silence() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:mute-200 n*9", "");
    check("a:mute-300 n*9", "cordon a");
    check("a:mute-300,ours-90 n*9", "");
    let isolated = Around::default().excused(Excuse::Isolation { silent: 9, total: 10 });
    isolated.check("a:mute-300 n*9", "hold a isolation");
}

#[test]
fn r2_n13_only_what_was_shown_to_be_well_goes_back() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:ours-90,unshown n*9", "");
    check("a:ours-90,well-40 n*9", "uncordon a");
}

#[test]
fn r2_n16_what_cannot_serve_uses_no_budget_and_needs_none() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:lost-900,ours-600 b:sick-1 n*8", "cordon b");
    check("a:sick-900,ours-600 b:lost-400 n*8", "cordon b");
    check("a:sick-900,drained b:sick-1 n*8", "cordon b");
    check("a:sick-900,draining b:sick-1 n*8", "hold b budget");
    check("a:ours-600 b:sick-1 n*8", "uncordon a; hold b budget");
}

#[test]
fn r2_n16_what_a_budget_holds_for_too_long_is_an_alarm() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    let held = |time: &str| format!("a:sick-9000,ours-8000 b:sick-900,held=budget,long-{time} n*8");
    check(&held("599"), "");
    let plan = check(&held("600"), "alarm b");
    let sentence = plan.alarms[0].1.as_ref().unwrap();
    assert!(sentence.contains("out of service by our own doing (a), and 1 may be"), "{sentence}");
    check(&held("900,alarmed"), "");
    check("b:sick-900,held=budget,long-900,alarmed n*9", "cordon b; calm b");
    check("b:held=budget,long-900,alarmed n*9", "free b; calm b");
}

#[test]
fn the_cordon_holds_when_the_node_does_not_fetch_it() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    let plan = check("a:sick-20,sent-14 n*9", "");
    assert_eq!(plan.next.map(seconds), Some(1));
    check("a:sick-20,sent-15 n*9", "enforce-cordon a");
    // Who recovered meanwhile is not cordoned for it.
    check("a:well-1,sent-15 n*9", "");
}

#[test]
fn a_drain_follows_where_it_is_wanted() {
    let drain = Around::default().remedy(Remedy::Drain);
    drain.check("a:sick-60,ours-30 n*9", "drain a");
    drain.check("a:sick-60,draining n*9", "");
    drain.check("a:sick-60,theirs n*9", "");
    // It takes nothing from the budget that its cordon has not taken.
    drain.check("a:sick-60,ours-1 b:sick-60,ours-1 n*18", "drain a; drain b");
    drain.clone().paused(None).check("a:sick-60,ours-30 n*9", "hold a drain pause");
    let opened = drain.breaker(open(pool_scope(), 60));
    opened.check("a:sick-600,ours-30 n*9", "hold a drain breaker");
}

#[test]
fn f5_a_node_that_is_well_again_goes_back() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    let plan = check("a:ours-90,well-29 n*9", "hold a uncordon hold-down");
    assert_eq!(plan.next.map(seconds), Some(1));
    check("a:ours-90,well-30 n*9", "uncordon a");
    check("a:draining,well-30 n*9", "uncordon a");
    check("a:theirs,well-30 n*9", "");
    check("a:ours-90,well-30,deaf n*9", "");
    check("a:ours-90,well-30,lost-10 n*9", "");
}

#[test]
fn d4_who_relapses_waits_twice_as_long() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:ours-90,well-59,flaps1 n*9", "hold a uncordon hold-down");
    check("a:ours-90,well-60,flaps1 n*9", "uncordon a");
    check("a:ours-90,well-239,flaps3 n*9", "hold a uncordon hold-down");
    check("a:ours-90,well-240,flaps3 n*9", "uncordon a");
    // Not for ever.
    check("a:ours-90,well-14400,flaps31 n*9", "uncordon a");
    check("a:ours-90,well-14400,flaps4000000000 n*9", "uncordon a");
}

#[test]
fn no_more_than_the_budget_of_a_pool() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:sick-9,ours-20 b:sick-1 n*17", "hold b budget");
    check("a:sick-9,ours-20 b:sick-1 n*18", "cordon b");
    check("a:sick-9,sent-14 b:sick-1 n*17", "hold b budget");
    check("a:sick-9,ours-20 b:sick-1,held=budget n*17", "");
    check("a:sick-9,ours-20 b:sick-1,held=rate n*17", "hold b budget");
    check("a:sick-9,ours-20 b:held=budget n*17", "free b");
    // What an operator took out of service is no doing of ours.
    check("a:theirs b:sick-1 n*8", "cordon b");
    // And a pool does not use up another's.
    check("a:sick-9,ours-20 b:sick-1,pool=x n*9 m*10:pool=x", "cordon b");
    let plan = check("a:sick-9,ours-20 b:sick-1 n*17", "hold b budget");
    let reason = "pool h100: 1 nodes are out of service by our own doing (a), and 1 may be \
                  (10 % of 19, at least 1)";
    assert_eq!(plan.holds[0].1.as_ref().unwrap().reason, reason);
}

#[test]
fn a_node_that_was_replaced_raises_no_budget() {
    // The breaker counts it for a while; it is there no more, and a budget is a part of who is.
    let fleet = "a:sick-9,ours-20 b:sick-1 r:sick-60,replaced-30 n*17";
    let plan = Around::default().check(fleet, "hold b budget");
    let reason = &plan.holds[0].1.as_ref().unwrap().reason;
    assert!(reason.ends_with("(10 % of 19, at least 1)"), "{reason}");
}

#[test]
fn small_pools_can_be_repaired() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    check("a:sick-1", "cordon a");
    check("a:sick-1 b", "cordon a");
    check("a:sick-1 b:sick-2", "cordon b; hold a budget");
    check("a:sick-30 b:ours-30,sick-40", "hold a budget");
    check("a:sick-1 b c d", "cordon a");
    check("a:sick-1 b:sick-1 c d", "cordon a; hold b budget");
    // Three of four at once is a failure of something else.
    check(
        "a:sick-1 b:sick-1 c:sick-1 d",
        "hold a breaker; hold b breaker; hold c breaker; open pool/acme/h100",
    );
}

#[test]
fn no_faster_than_one_each_so_often() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    let plan = check("a:sick-9,ours-9 b:sick-1 n*98", "hold b rate");
    assert_eq!(plan.next.map(seconds), Some(1));
    let reason = "pool h100: a node was taken out of service 9 s ago, and it is one each 10 s";
    assert_eq!(plan.holds[0].1.as_ref().unwrap().reason, reason);
    check("a:sick-9,ours-10 b:sick-1 n*98", "cordon b");
    check("a:sick-9,sent-9 b:sick-1 n*98", "hold b rate");
    // The clock was set back an hour: what seems to be in the future was long ago.
    check("a:sick-9,ahead3600 b:sick-1 n*98", "cordon b");
}

#[test]
fn no_more_than_the_budgets_of_a_zone_and_of_the_fleet() {
    let mut around = Around::default();
    around.settings.defaults.budget.percent = 100.0;
    around.settings.defaults.budget.every = SignedDuration::ZERO;
    around.settings.defaults.breaker.percent = 100.0;
    around.settings.fleet.breaker.percent = 100.0;
    around.settings.fleet.zone_breaker.percent = 100.0;
    // 20 % of ten in the zone, 10 % of 40 in the fleet.
    let plan = around.check(
        "a:sick-4,zone=z b:sick-3,zone=z c:sick-2,zone=z n*7:zone=z m*30:zone=y",
        "cordon a; cordon b; hold c budget",
    );
    assert!(plan.holds[0].1.as_ref().unwrap().reason.starts_with("zone z: 2 nodes are out"));
    let plan = around.check(
        "a:sick-4 b:sick-4 c:sick-4 d:sick-4 e:sick-4 n*35",
        "cordon a; cordon b; cordon c; cordon d; hold e budget",
    );
    assert!(plan.holds[0].1.as_ref().unwrap().reason.starts_with("fleet: 4 nodes are out"));
}

#[test]
fn nodes_that_warm_up_are_in_no_percentage() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    // Eleven new ones do not raise the budget of nine: it stays at one.
    check("a:sick-9,ours-20 b:sick-1 n*7 w*11:warm", "hold b budget");
    // Nor do they open a breaker.
    check(
        "w*5:warm,sick-1 n*5",
        "cordon w0; hold w1 budget; hold w2 budget; hold w3 budget; hold w4 budget",
    );
    // They are acted on, and what is out of service is out of service.
    check("w:warm,sick-1 n*9", "cordon w");
    check("w:warm,sick-60,ours-20 a:sick-1 n*9", "hold a budget");
    // Nobody has been there for long: one at a time.
    check("a:warm,sick-1 b:warm", "cordon a");
}

#[test]
fn f13_a_breaker_opens_when_many_turn_bad_at_once() {
    let check = |fleet: &str, expected: &str| Around::default().check(fleet, expected);
    let held = |count: usize| {
        (0..count).map(|index| format!("hold s{index} breaker; ")).collect::<String>()
    };
    check("s*2:sick-9 n*6", "cordon s0; hold s1 budget");
    check("s*3:sick-9 n*12", "cordon s0; hold s1 budget; hold s2 budget");
    check("s*3:sick-9 n*11", &format!("{}open pool/acme/h100", held(3)));
    check("s*3:sick-300 n*11", "cordon s0; hold s1 budget; hold s2 budget");
    let plan = check("s*12:sick-9 n*8", &format!("{}open pool/acme/h100; open fleet", held(12)));
    let reason = "pool h100: 12 of 20 nodes turned bad within 300 s, more than 20 %";
    assert_eq!(plan.breakers[0].reason, reason);
    let held_for = &plan.holds[0].1.as_ref().unwrap().reason;
    assert_eq!(*held_for, format!("the breaker is open: {reason}"));
    // In a larger fleet, 5 % are enough, and at least five.
    check("s*4:sick-9 n*60 m*10:pool=x", "cordon s0; hold s1 rate; hold s2 rate; hold s3 rate");
    check("s*5:sick-9 n*85", &format!("{}open fleet", held(5)));
    // Nodes in an operator's hands do not open it.
    check("s*12:sick-9,theirs n*8", "");
}

#[test]
fn an_open_breaker_stops_what_is_on_its_way_and_no_recovery() {
    let opened = Around::default().breaker(open(pool_scope(), 60));
    opened.check("a:sick-400 n*9", "hold a breaker");
    opened.check("a:sick-400,sent-5 n*9", "withdraw a; hold a breaker");
    opened.check("a:ours-90,well-30 n*9", "uncordon a");
    opened.check("a:sick-400,pool=x m*9:pool=x n*9", "cordon a");
    let fleet = Around::default().breaker(open(Scope::Fleet, 60));
    fleet.check("a:sick-400,pool=x m*9:pool=x n*9", "hold a breaker");
    let zone = Scope::Zone { zone: "//z".to_owned() };
    let zoned = Around::default().breaker(open(zone, 60));
    zoned.check("a:sick-400,zone=z n*9", "hold a breaker");
    zoned.check("a:sick-400,zone=y n*9:zone=z", "cordon a");
    // Of a pool that is gone, nothing is left to brake.
    opened.check("m*9:pool=x", "close pool/acme/h100");
}

#[test]
fn a_breaker_lets_go_step_by_step() {
    let pool = pool_scope;
    let check = |breaker: Breaker, fleet: &str, expected: &str| {
        Around::default().breaker(breaker).check(fleet, expected)
    };
    let plan = check(open(pool(), 899), "a:sick-900 n*99", "hold a breaker");
    assert_eq!(plan.next.map(seconds), Some(1));
    // After the calm: one, then two, then four, each for as long as it looks back.
    let two = "a:sick-1000 b:sick-999 n*98";
    check(open(pool(), 900), two, "cordon a; hold b breaker; half-open pool/acme/h100 1/1");
    check(half_open(pool(), 299, 1, 1), two, "hold a breaker; hold b breaker");
    check(half_open(pool(), 300, 1, 1), two, "cordon a; hold b rate; half-open pool/acme/h100 1/2");
    check(half_open(pool(), 300, 2, 2), two, "cordon a; hold b rate; half-open pool/acme/h100 1/4");
    check(
        half_open(pool(), 10, 1, 2),
        two,
        "cordon a; hold b breaker; half-open pool/acme/h100 2/2",
    );
    // With actions to spare, it is not what holds us: closed, and only the present counts.
    check(half_open(pool(), 300, 1, 2), "n*99 a", "close pool/acme/h100");
    check(half_open(pool(), 300, 3, 4), two, "cordon a; hold b rate; close pool/acme/h100");
    // One node that turns bad now and then is what nodes do.
    check(open(pool(), 900), "a:sick-1 n*99", "cordon a; half-open pool/acme/h100 1/1");
    // Many are not.
    let many = "s*25:sick-5 n*75";
    let plan = Around::default().breaker(half_open(pool(), 10, 1, 1)).plan(&machines(many));
    assert!(plan.actions.is_empty());
    assert!(plan.to_string().contains("open pool/acme/h100; open fleet"), "{plan}");
    // Those from before the step do not count again.
    check(
        half_open(pool(), 4, 1, 1),
        "s*3:sick-5 n*9",
        "hold s0 breaker; hold s1 breaker; hold s2 breaker",
    );
}

#[test]
fn f12_a_breaker_closed_by_hand_forgives_what_was() {
    let check = |ago: i64, fleet: &str, expected: &str| {
        Around::default().breaker(closed(pool_scope(), ago)).check(fleet, expected)
    };
    check(10, "s*3:sick-60 n*9", "cordon s0; hold s1 budget; hold s2 budget");
    check(
        10,
        "s*3:sick-9 n*9",
        "hold s0 breaker; hold s1 breaker; hold s2 breaker; open pool/acme/h100",
    );
    check(300, "n*9", "close pool/acme/h100");
    // After three days, whoever recovered meanwhile is no business of ours.
    let days = Around::default().breaker(closed(pool_scope(), 1));
    days.check("a:well-100000 b:sick-100000 n*18", "cordon b");
}

#[test]
fn a_pause_stops_everything() {
    let all = Around::default().paused(None);
    all.check("a:sick-9 n*9", "hold a pause");
    all.check("a:lost-900 n*9", "hold a pause");
    all.check("a:sick-9,sent-90 n*9", "withdraw a; hold a pause");
    let plan = all.check("a:ours-90,well-60 n*9", "hold a uncordon pause");
    assert_eq!(plan.holds[0].1.as_ref().unwrap().reason, "paused by ada: power work");
    let pool = Around::default().paused(Some("h100"));
    pool.check("a:sick-9 b:sick-9,pool=x m*9:pool=x n*9", "cordon b; hold a pause");
}

#[test]
fn settings_can_let_everything_through() {
    let all = Around::unlimited();
    let plan = all.plan(&machines("s*1000:sick-1 n*9000"));
    assert_eq!((plan.actions.len(), plan.holds.len(), plan.breakers.len()), (1000, 0, 0));
    let plan = all.plan(&machines("s*1000:sick-1,warm"));
    assert_eq!((plan.actions.len(), plan.holds.len(), plan.breakers.len()), (1000, 0, 0));
}

#[test]
fn the_reason_is_the_finding_that_decided() {
    let mut sick = machines("a:sick-1 n*9");
    sick[0].node.findings = vec![Finding {
        key: "xid/79/GPU-1".to_owned(),
        severity: Some(Severity::Unhealthy),
        rule: "fatal-xid".to_owned(),
        policy: "default".to_owned(),
        policy_version: 3,
        message: "GPU has fallen off the bus".to_owned(),
        evidence: String::new(),
        gpu: "GPU-1".to_owned(),
        first: at(-1),
        last: at(-1),
        count: 1,
        ends: Ends::AtReboot,
        under: None,
        condition: String::new(),
    }];
    let plan = Around::default().plan(&sick);
    let reason =
        "rule fatal-xid of policy default version 3 found: GPU has fallen off the bus (GPU-1)";
    assert_eq!(plan.actions[0].reason, reason);
    sick[0].node.findings[0].message = "x".repeat(MESSAGE_LEN_MAX);
    assert_eq!(Around::default().plan(&sick).actions[0].reason.len(), REASON_LEN_MAX);
}
