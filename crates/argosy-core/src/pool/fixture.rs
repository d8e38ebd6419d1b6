//! Pools as short texts, for the tests of this room: `a:ready b:sick c<b:coming`.

use super::{
    BY, Member, Picture, Plan, PoolBook, PoolSpec, ProviderChoice, ProviderFacts, Recovering, Step,
    plan,
};
use crate::fixture::{at, by, cluster, command_id, hold, node};
use crate::health::{Ends, Finding, HealthState, Severity};
use crate::instance::{
    Cure, Failure, Instance, InstanceId, Provisioning, Purpose, Reason, State, Terminating,
};
use crate::inventory::{Frozen, Paused};
use crate::machine::{Abilities, MachineId, Notice, NoticeKind, Offer, Order, Trouble};
use crate::name::Name;
use crate::node::{Duty, Gpu, Liveness, Node, NodeId};
use crate::protect::Protection;
use crate::resource::{Kind, Resource};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

pub(super) const ABILITIES: Abilities = Abilities {
    tokens: true,
    tags: true,
    reboot: true,
    console: true,
    spot: true,
    list_lag: SignedDuration::from_secs(10),
};

/// A provider that can be changed.
#[derive(Clone)]
pub(super) struct Cloud {
    pub(super) kind: String,
    pub(super) display: String,
    pub(super) region: String,
    pub(super) abilities: Abilities,
    pub(super) offers: Vec<Offer>,
    pub(super) paused: Option<Paused>,
    pub(super) frozen: Option<Frozen>,
    pub(super) compared: bool,
}

pub(super) fn cloud(kind: &str, display: &str, region: &str) -> Cloud {
    Cloud {
        kind: kind.to_owned(),
        display: display.to_owned(),
        region: region.to_owned(),
        abilities: ABILITIES,
        offers: Vec::new(),
        paused: None,
        frozen: None,
        compared: true,
    }
}

/// `n1` in a region, for a price.
pub(super) fn offer(machine_type: &str, region: &str, price: Option<f64>) -> Offer {
    Offer {
        machine_type: machine_type.to_owned(),
        region: region.to_owned(),
        zones: Vec::new(),
        cpus: 4,
        gpus: 0,
        price_per_hour: price,
        spot_price_per_hour: price.map(|price| price / 3.0),
        available: true,
    }
}

pub(super) fn order() -> Order {
    Order {
        provider: "gcp".to_owned(),
        region: "us-east1".to_owned(),
        zone: String::new(),
        machine_type: "n1-standard-4".to_owned(),
        spot: false,
        image: String::new(),
        price_per_hour: None,
    }
}

/// One machine, with what its record and node do not say.
#[derive(Clone)]
pub(super) struct One {
    pub(super) instance: Instance,
    pub(super) node: Option<Node>,
    pub(super) heard: bool,
    pub(super) utilization: Option<f32>,
    pub(super) lost_for: Option<SignedDuration>,
    pub(super) notice: Option<Notice>,
    pub(super) commanded: bool,
    pub(super) reported_at: Option<Timestamp>,
    pub(super) stopped: Option<String>,
    pub(super) protected: Option<Protection>,
}

/// A pool that a picture can be made of.
#[derive(Clone)]
pub(super) struct Town {
    pub(super) resource: Resource,
    pub(super) spec: PoolSpec,
    pub(super) book: PoolBook,
    pub(super) ones: Vec<One>,
    pub(super) clouds: BTreeMap<String, Cloud>,
    pub(super) bad_serials: HashSet<String>,
    pub(super) stopped: Option<String>,
    pub(super) spent: Option<String>,
    /// How far we are ahead of the clock that windows are written by.
    pub(super) ahead: SignedDuration,
    pub(super) recovery: Option<String>,
    pub(super) its_turn: bool,
}

pub(super) fn gcp() -> ProviderChoice {
    ProviderChoice {
        name: "gcp".to_owned(),
        priority: 0,
        weight: 1,
        regions: vec!["us-east1".to_owned()],
        machine_type: None,
    }
}

/// A pool of so many nodes, of these machines. A word is `id:state`, `id<old:state` for a replacement; after
/// it may come `^30` (percent busy), `~type`, `/zone`, `$price` and `+age` in minutes.
pub(super) fn town(nodes: u32, text: &str) -> Town {
    let mut resource = cluster(&[]);
    resource.kind = Kind::NodePool;
    resource.name = Name::parse("workers").unwrap();
    let spec = PoolSpec {
        nodes,
        types: vec!["n1-standard-4".to_owned()],
        providers: vec![gcp()],
        cures: vec![Cure::Diagnose, Cure::Reboot, Cure::Replace],
        ..PoolSpec::default()
    };
    let mut town = Town {
        book: PoolBook::new(resource.id),
        resource,
        spec,
        ones: Vec::new(),
        clouds: BTreeMap::from([("gcp".to_owned(), cloud("gcp", "GCP", "us-east1"))]),
        bad_serials: HashSet::new(),
        stopped: None,
        spent: None,
        ahead: SignedDuration::ZERO,
        recovery: None,
        its_turn: true,
    };
    for word in text.split_whitespace() {
        town.add(word);
    }
    town
}

impl Town {
    pub(super) fn with(mut self, change: impl FnOnce(&mut Town)) -> Town {
        change(&mut self);
        self
    }

    pub(super) fn one(&mut self, id: &str) -> &mut One {
        self.ones.iter_mut().find(|one| one.instance.id.as_str() == id).unwrap()
    }

    fn add(&mut self, word: &str) {
        let (head, rest) = word.split_once(':').unwrap();
        let (id, replaces) = match head.split_once('<') {
            Some((id, old)) => (id, Some(InstanceId::parse(old).unwrap())),
            None => (head, None),
        };
        let end = rest.find(['^', '~', '/', '$', '+']).unwrap_or(rest.len());
        let (state, mut marks) = rest.split_at(end);
        let old = replaces.as_ref().and_then(|old| {
            self.ones.iter().find(|one| one.instance.id == *old).map(|one| one.instance.number)
        });
        let next =
            u32::try_from(self.ones.iter().filter(|o| o.instance.replaces.is_none()).count());
        let number = old.unwrap_or(next.unwrap() + 1);
        let age = 100_000 - i64::try_from(self.ones.len()).unwrap();
        let mut one = one(id, number, replaces, state, age);
        while let Some(mark) = marks.chars().next() {
            let body = marks.get(1..).unwrap();
            let end = body.find(['^', '~', '/', '$', '+']).unwrap_or(body.len());
            let (value, tail) = body.split_at(end);
            match mark {
                '^' => one.utilization = Some(value.parse::<f32>().unwrap() / 100.0),
                '~' => one.instance.order.machine_type = value.to_owned(),
                '/' => one.instance.order.zone = value.to_owned(),
                '$' => one.instance.order.price_per_hour = Some(value.parse().unwrap()),
                '+' => one.instance.ordered_at = at(-60 * value.parse::<i64>().unwrap()),
                other => panic!("{other} is no mark"),
            }
            marks = tail;
        }
        self.ones.push(one);
    }

    pub(super) fn plan_at(&self, now: Timestamp) -> Plan {
        let mut made = None;
        self.picture(|picture| made = Some(plan(picture, now)));
        made.unwrap()
    }

    pub(super) fn picture(&self, look: impl FnOnce(&Picture<'_>)) {
        let providers: BTreeMap<String, ProviderFacts<'_>> = self
            .clouds
            .iter()
            .map(|(name, cloud)| {
                let facts = ProviderFacts {
                    kind: &cloud.kind,
                    display: &cloud.display,
                    abilities: cloud.abilities,
                    offers: &cloud.offers,
                    paused: cloud.paused.as_ref(),
                    frozen: cloud.frozen.as_ref(),
                    compared: cloud.compared,
                    default_region: &cloud.region,
                    default_type: "",
                };
                (name.clone(), facts)
            })
            .collect();
        let members = self.ones.iter().map(|one| Member {
            instance: &one.instance,
            node: one.node.as_ref(),
            heard: one.heard,
            utilization: one.utilization,
            lost_for: one.lost_for,
            notice: one.notice.as_ref(),
            commanded: one.commanded,
            reported_at: one.reported_at,
            stopped: one.stopped.as_deref(),
            protected: one.protected,
        });
        let picture = Picture {
            resource: &self.resource,
            spec: &self.spec,
            pool_name: "workers",
            members: members.collect(),
            book: &self.book,
            providers: &providers,
            bad_hardware: &self.bad_serials,
            stopped: self.stopped.as_deref(),
            spent: self.spent.as_deref(),
            recovery: self.recovery.as_deref().map(|why| Recovering { why, excuse: None }),
            its_turn: self.its_turn,
            act_after: SignedDuration::from_secs(300),
            register_within: SignedDuration::from_mins(20),
            drain_for: self.spec.drain_for.unwrap_or(SignedDuration::from_mins(60)),
            ahead: self.ahead,
        };
        look(&picture);
    }

    pub(super) fn plan(&self) -> Plan {
        self.plan_at(at(0))
    }

    #[track_caller]
    pub(super) fn does(&self, expected: &str) {
        assert_eq!(told(&self.plan()), expected, "{:?}", self.plan().outcome);
    }

    /// `AllNodesReady: 5 of 5 nodes ready`.
    #[track_caller]
    pub(super) fn says(&self, expected: &str) {
        let outcome = self.plan().outcome;
        assert_eq!(format!("{}: {}", outcome.reason(), outcome.message()), expected);
    }
}

/// `buy 2 for b; leave c ScaleDown; drain d`.
pub(super) fn told(plan: &Plan) -> String {
    let buys = plan.buy.iter().map(|buy| match &buy.replaces {
        Some(old) => format!("buy {} for {old}", buy.number),
        None => format!("buy {}", buy.number),
    });
    // What is written down of those who leave is `departs`' to tell.
    let silent = |step: &&Step| matches!(step, Step::Depart { .. } | Step::Block { .. });
    let steps = plan.steps.iter().filter(|step| !silent(step));
    buys.chain(steps.map(told_step)).collect::<Vec<_>>().join("; ")
}

/// `a until 3600 for ScaleDown`: what is written down of those who are to go.
pub(super) fn departs(plan: &Plan) -> String {
    let steps = plan.steps.iter().filter_map(|step| {
        let Step::Depart { instance, reason, deadline } = step else { return None };
        let seconds = deadline.duration_since(at(0)).as_secs();
        Some(format!("{instance} in {seconds} s for {}", reason.as_str()))
    });
    steps.collect::<Vec<_>>().join("; ")
}

fn told_step(step: &Step) -> String {
    match step {
        Step::Depart { instance, .. } => format!("depart {instance}"),
        Step::Block { instance, .. } => format!("block {instance}"),
        Step::Stay { instance } => format!("stay {instance}"),
        Step::Leave { instance, reason } => {
            let why = match reason {
                Reason::Replaced { by: Some(by), .. } => format!("for {by}"),
                Reason::Replaced { by: None, .. } => "for nobody".to_owned(),
                Reason::ScaleDown { .. }
                | Reason::PoolDeleted
                | Reason::Sick { .. }
                | Reason::Stale
                | Reason::BadHardware { .. }
                | Reason::Reclaimed
                | Reason::Vanished
                | Reason::NodeTerminated { .. }
                | Reason::Operator { .. }
                | Reason::Unwanted => {
                    format!("{reason:?}").split([' ', '{']).next().unwrap().to_owned()
                }
            };
            format!("leave {instance} {why}")
        }
        Step::Cordon { node, .. } => format!("cordon {node}"),
        Step::Drain { node, automatic: true, .. } => format!("drain {node} for its health"),
        Step::Drain { node, automatic: false, by, .. } if by == BY => format!("drain {node}"),
        Step::Drain { node, automatic: false, by, .. } => format!("drain {node} as {by}"),
        Step::Uncordon { node, .. } => format!("uncordon {node}"),
        Step::Diagnose { node, .. } => format!("diagnose {node}"),
        Step::Reboot { node, .. } => format!("reboot {node}"),
        Step::Condemn { serials, .. } => format!("condemn {}", serials.join(" ")),
    }
}

pub(super) fn finding(key: &str, gpu: &str, message: &str) -> Finding {
    Finding {
        key: key.to_owned(),
        severity: Some(Severity::Unhealthy),
        rule: key.split('/').next().unwrap().to_owned(),
        policy: String::new(),
        policy_version: 0,
        message: message.to_owned(),
        evidence: String::new(),
        gpu: gpu.to_owned(),
        first: at(-600),
        last: at(-600),
        count: 1,
        ends: Ends::AtReboot,
        under: None,
        condition: String::new(),
    }
}

/// A machine in a state, bought so many seconds ago.
pub(super) fn one(
    id: &str,
    number: u32,
    replaces: Option<InstanceId>,
    state: &str,
    age: i64,
) -> One {
    let machine = MachineId::new(format!("m-{id}"));
    let node_id = NodeId::parse(id).unwrap();
    let running =
        State::Running { machine: machine.clone(), node: node_id.clone(), since: at(-age) };
    let awaiting = State::AwaitingNode { machine: machine.clone(), since: at(-age) };
    let leaving = |reason: Reason| {
        State::Terminating(Terminating {
            machine: Some(machine.clone()),
            node: None,
            since: at(-60),
            reason,
            calls: 1,
            retry_at: None,
            trouble: None,
            absent_since: None,
            alarmed: false,
            console: String::new(),
        })
    };
    let over =
        |reason: Reason| State::Terminated { machine: None, node: None, at: at(-60), reason };
    let failure = Failure { reason: "RegistrationTimeout".to_owned(), message: String::new() };
    let state_of = match state {
        "asked" => State::Provisioning(Provisioning::default()),
        "coming" => awaiting,
        "leaving" => leaving(Reason::ScaleDown { asked: true }),
        "gone" => {
            let node = Some(node_id.clone());
            State::Terminated { machine: None, node, at: at(-60), reason: Reason::Vanished }
        }
        "gone-bad" => over(Reason::BadHardware { serial: "s".to_owned() }),
        "stale" => State::Failed { at: at(-60), failure, console: String::new() },
        _ => running,
    };
    let has_node = matches!(state_of, State::Running { .. });
    let mut instance = Instance::new(
        InstanceId::parse(id).unwrap(),
        "acme".to_owned(),
        cluster(&[]).id,
        "workers",
        number,
        Uuid::from_u128(u128::from(number)),
        order(),
        "because".to_owned(),
        replaces,
        at(-age),
    );
    if instance.replaces.is_some() {
        instance.purpose = Purpose::Sick;
    }
    instance.state = state_of;
    let mut one = One {
        instance,
        node: has_node.then(|| node(id)),
        heard: true,
        utilization: None,
        lost_for: None,
        notice: None,
        commanded: false,
        reported_at: Some(at(0)),
        stopped: None,
        protected: None,
    };
    if has_node {
        set(&mut one, state);
    }
    one
}

/// Puts the node of a machine into a state.
pub(super) fn set(one: &mut One, state: &str) {
    let node = one.node.as_mut().unwrap();
    let id = node.id.as_str().to_owned();
    node.gpus =
        vec![Gpu { uuid: format!("GPU-{id}"), serial: format!("s-{id}"), ..Gpu::default() }];
    let ours = hold(super::BY, false, -60);
    let draining =
        |hold, done| Duty::Draining { hold, command: command_id(1), deadline: at(600), done };
    let (mut sick, mut lost) = (false, false);
    node.duty = match state.strip_prefix("sick-").or_else(|| state.strip_prefix("lost-")) {
        Some("draining") => draining(hold("argosy", true, -300), false),
        Some("drained") => draining(hold("argosy", true, -300), true),
        Some("active") => Duty::Active,
        Some(other) => panic!("{other} is no way to be sick"),
        None => match state {
            "ready" | "new" | "unjudged" | "suspect" | "warned" | "fresh" | "nodeless"
            | "forgotten" => Duty::Active,
            "sick" | "lost" | "recovering" => Duty::Cordoned(hold("argosy", true, -300)),
            "held" => Duty::Cordoned(hold("ada", false, -60)),
            "held-drained" => draining(hold("argosy for ada", false, -60), true),
            "held-sick" => Duty::Cordoned(hold("ada", false, -60)),
            "parting" => Duty::Cordoned(ours),
            "draining" => draining(ours, false),
            "drained" => draining(ours, true),
            "overdue" => {
                Duty::Draining { hold: ours, command: command_id(1), deadline: at(-1), done: false }
            }
            "reclaimed" => Duty::Active,
            "terminated" => Duty::Terminated(hold("ada", false, -60)),
            other => panic!("{other} is no state"),
        },
    };
    sick |= state.starts_with("sick") || state == "held-sick";
    lost |= state.starts_with("lost");
    node.health.state = match state {
        "new" | "unjudged" => HealthState::Unknown,
        "warned" => HealthState::Degraded,
        _ if sick => HealthState::Unhealthy,
        _ => HealthState::Healthy,
    };
    node.health.since = at(if state == "unjudged" { -1200 } else { -600 });
    node.findings.clear();
    if sick {
        node.findings.push(finding("check/gpu", "", "GPU 3 is gone"));
        node.findings[0].ends = Ends::WhenCheckPasses;
    }
    node.liveness = match state {
        "suspect" => Liveness::Suspect,
        _ if lost => Liveness::Unreachable,
        _ => Liveness::Fresh,
    };
    node.liveness_since = at(-600);
    one.lost_for = lost.then_some(SignedDuration::from_secs(600));
    one.notice = (state == "reclaimed").then(|| Notice {
        kind: NoticeKind::Reclaim,
        at: Some(at(120)),
        message: "taken back".to_owned(),
    });
    if let Some(ago) = [("nodeless", 1199), ("forgotten", 1200)]
        .into_iter()
        .find_map(|(name, ago)| (name == state).then_some(ago))
    {
        one.node = None;
        one.instance.sight.nodeless_since = Some(at(-ago));
        one.lost_for = Some(SignedDuration::from_secs(ago));
        return;
    }
    if state == "fresh" {
        let node = node.id.clone();
        let machine = MachineId::new(format!("m-{id}"));
        one.instance.state = State::Running { machine, node, since: at(-60) };
    }
}

pub(super) fn exhausted() -> Trouble {
    Trouble::Capacity {
        code: "ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(),
        message: "none left".to_owned(),
    }
}

pub(super) fn quota() -> Trouble {
    Trouble::Quota {
        resource: "CPUs".to_owned(),
        each: 4,
        available: 10,
        message: "quota exceeded".to_owned(),
    }
}

pub(super) fn deleted(town: &mut Town) {
    town.resource.deletion = Some(by("ada", 0));
}
