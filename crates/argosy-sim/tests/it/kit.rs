//! Scenarios for tests, made by hand.

use argosy_sim::outcome::Outcome;
use argosy_sim::run::{Product, Watcher, run};
use argosy_sim::scenario::{
    Cascade, Cause, Cloud as CloudTrouble, Cluster, Control as ControlTrouble, Effect, Fleet, Link,
    NodeSpec, Rate, Scenario, Scope, Store as StoreTrouble, Trouble,
};
use jiff::SignedDuration;
use serde_json::json;
use std::collections::BTreeMap;

pub(crate) fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

pub(crate) fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

/// Nothing is there, nothing goes wrong, for so long.
pub(crate) fn empty(duration: SignedDuration) -> Scenario {
    Scenario {
        name: "test".to_owned(),
        duration,
        settle: SignedDuration::ZERO,
        ..Scenario::default()
    }
}

/// A cluster with one pool of so many machines of eight GPUs.
pub(crate) fn pool_of(count: u32, duration: SignedDuration) -> Scenario {
    let spec = json!({"nodeCount": count, "machineType": "a3-highgpu-8g"});
    let cluster = Cluster {
        name: "train".to_owned(),
        spec: json!({"provider": "gcp", "region": "us-east1"}),
        pools: vec![("workers".to_owned(), spec)],
    };
    Scenario { clusters: vec![cluster], ..empty(duration) }
}

pub(crate) fn played(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, &Product::plain(), seed, &Watcher::default()).expect("it runs")
}

/// Machines that are simply there: `n-1`, `n-2`, … in three zones.
pub(crate) fn fleet_of(count: usize, duration: SignedDuration) -> Scenario {
    let node = |number: usize| NodeSpec {
        id: format!("n-{number}"),
        provider: "gcp".to_owned(),
        region: "us-east1".to_owned(),
        zone: format!("us-east1-{}", ["a", "b", "c"].get(number % 3).unwrap_or(&"a")),
        instance_type: "a3-highgpu-8g".to_owned(),
        pool: "workers".to_owned(),
        gpus: 8,
        gpu_model: "H100".to_owned(),
        labels: BTreeMap::new(),
    };
    let nodes = (1..=count).map(node).collect();
    Scenario { fleet: Fleet { nodes, ..Fleet::default() }, ..empty(duration) }
}

/// Everything that can go wrong does, about as often as a bad week has it in a day.
pub(crate) fn all_trouble() -> Trouble {
    let cause = |name: &str, per_day: f64, effects: Vec<(f64, Effect)>| Cause {
        name: name.to_owned(),
        rate: Rate::PerDay(per_day),
        effects,
        interrupts: true,
    };
    let inject = |text: &str| Effect::Inject(text.to_owned());
    let ms = SignedDuration::from_millis;
    Trouble {
        hardware: vec![
            cause("GPU", 6.0, vec![(3.0, inject("xid:79")), (1.0, inject("xid:48"))]),
            cause("memory", 4.0, vec![(1.0, inject("row-remap-failed"))]),
            cause("heat", 2.0, vec![(1.0, inject("temperature:97"))]),
            cause("machine", 4.0, vec![(2.0, Effect::Silent), (1.0, Effect::Reboot)]),
            cause("agent", 3.0, vec![(1.0, Effect::AgentCrash)]),
            cause("clock", 1.0, vec![(1.0, Effect::Clock(90))]),
        ],
        cascade: Some(Cascade {
            probability: 0.1,
            depth_max: 2,
            delay: (SignedDuration::from_secs(5), minutes(2)),
            scope: Scope::Zone,
            affected_max: 0.1,
        }),
        recovery: None,
        outages: Vec::new(),
        link: Link {
            latency: (ms(1), ms(80)),
            loss: 0.001,
            twice: 0.01,
            partitions_per_day: 4.0,
            partition: minutes(4),
        },
        cloud: CloudTrouble {
            latency: (ms(100), ms(3_000)),
            list_lag: SignedDuration::from_secs(30),
            lost_answers: 0.05,
            throttled: 0.05,
            errors: 0.03,
            stockouts_per_day: 2.0,
            stockout: minutes(40),
            duds: 0.02,
            lemons: 0.02,
            reclaimed_per_day: 2.0,
        },
        store: StoreTrouble {
            latency: (ms(1), ms(20)),
            lost_answers: 0.002,
            torn: 0.0005,
            failovers_per_day: 2.0,
            failover: SignedDuration::from_secs(8),
        },
        control: ControlTrouble {
            crashes_per_day: 3.0,
            restart: SignedDuration::from_secs(20),
            pauses_per_day: 2.0,
            pause: SignedDuration::from_secs(15),
            clock_jumps_per_day: 1.0,
            clock_jump_max: 120,
            clock_wrong_for: minutes(15),
        },
    }
}

/// A pool in a world where everything goes wrong.
pub(crate) fn chaos(count: u32, duration: SignedDuration) -> Scenario {
    Scenario {
        processes: 2,
        trouble: all_trouble(),
        settle: hours(6),
        name: "chaos".to_owned(),
        ..pool_of(count, duration)
    }
}

/// A scenario that is shipped.
pub(crate) fn shipped(name: &str) -> Scenario {
    let found = argosy_sim::scenario::shipped::find(name).expect("it is shipped");
    argosy_sim::scenario::read(found.text, name).expect("it can be read").0
}
