//! What is measured while a world runs: everything that a report shows.

use super::script::secs;
use super::{Happening, World, plain};
use crate::oracle::{MONEY, Turn};
use crate::outcome::{Checked, Fault, Money, Outcome, RuleHits, Series};
use crate::scenario::{Effect, Scenario};
use crate::workload::Workload;
use argosy_core::adapter::Tri;
use argosy_core::health::HealthState;
use argosy_core::instance::State;
use argosy_core::ledger::{self, What};
use argosy_core::node::{Duty, Liveness, Node};
use argosy_core::remedy::allowed;
use argosy_core::status::Condition;
use argosy_store::engine::{Append, Commit, Revision};
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many measurements a run takes.
const STEPS: u32 = 240;

/// With fewer machines than this, what the program itself takes would count for too much.
const MEASURED_LEAST: u64 = 10_000;

/// What is measured.
pub(crate) struct Gauge {
    pub(crate) faults: Vec<Fault>,
    pub(crate) assertions: Vec<Checked>,
    pub(crate) nodes_max: u64,
    actions: BTreeMap<String, u64>,
    rules: BTreeMap<String, RuleHits>,
    series: Series,
    step: Duration,
    money_wasted: f64,
    /// Nodes that are wanted, by cluster and pool, and the GPUs of each.
    wanted: BTreeMap<(String, String), (u64, u32)>,
    fleet_gpus: u32,
    work: Option<Workload>,
}

impl Gauge {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let even = plain(scenario.duration) / STEPS;
        let step = scenario.sample_every.map_or(even, plain).max(Duration::from_secs(1));
        Self {
            faults: Vec::new(),
            assertions: Vec::new(),
            nodes_max: 0,
            actions: BTreeMap::new(),
            rules: BTreeMap::new(),
            series: Series { step_seconds: step.as_secs_f64(), ..Series::default() },
            step,
            money_wasted: 0.0,
            wanted: BTreeMap::new(),
            fleet_gpus: scenario.fleet.nodes.iter().map(|node| node.gpus).sum(),
            work: scenario.workload.as_ref().map(Workload::new),
        }
    }

    /// What the scenario asks for.
    pub(crate) fn wants(&mut self, scenario: &Scenario) {
        for cluster in &scenario.clusters {
            for (pool, spec) in &cluster.pools {
                let count = spec.get("nodeCount").and_then(Value::as_u64);
                let count = count.or_else(|| spec.get("minNodes").and_then(Value::as_u64));
                let key = (cluster.name.clone(), pool.clone());
                self.wanted.insert(key, (count.unwrap_or(0), 0));
            }
        }
    }

    pub(crate) fn resize(&mut self, cluster: &str, pool: &str, count: u64) {
        if let Some(wanted) = self.wanted.get_mut(&(cluster.to_owned(), pool.to_owned())) {
            wanted.0 = count;
        }
    }

    pub(crate) fn delete(&mut self, cluster: &str, pool: Option<&str>) {
        self.wanted.retain(|(of, name), _| of != cluster || pool.is_some_and(|it| it != name));
    }

    pub(crate) fn acted(&mut self, what: &str) {
        *self.actions.entry(what.to_owned()).or_default() += 1;
    }

    /// The part of the GPUs that were asked for that were in service, over all the time.
    pub(crate) fn availability(&self) -> f64 {
        let wanted: f64 = self.series.wanted.iter().map(|it| f64::from(*it)).sum();
        let both = self.series.in_service.iter().zip(&self.series.wanted);
        let had: f64 = both.map(|(had, wanted)| f64::from(*had.min(wanted))).sum();
        if wanted == 0.0 { 1.0 } else { had / wanted }
    }

    /// How long it took to know of a fault, at most, but for one in a hundred.
    pub(crate) fn detected_p99(&self) -> Option<f64> {
        let mut times: Vec<f64> =
            self.faults.iter().filter_map(|fault| fault.detected_after).collect();
        times.sort_by(f64::total_cmp);
        let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
        times.get(place).copied()
    }

    /// The part of the work's time that was not lost.
    pub(crate) fn goodput(&self) -> Option<f64> {
        self.work.as_ref().map(Workload::goodput)
    }

    /// A line was written about a node.
    fn wrote(&mut self, append: &Append) {
        // Most lines are of no interest here, and reading JSON is not free.
        let telling = ["\"type\":\"event\"", "\"type\":\"health\""];
        if append.stream != "nodes" || !telling.iter().any(|it| append.body.contains(it)) {
            return;
        }
        let Ok(entry) = serde_json::from_str::<ledger::Entry>(&append.body) else { return };
        if let What::Event { verdict, .. } = &entry.what
            && !verdict.rule.is_empty()
        {
            self.rules.entry(verdict.rule.clone()).or_default().hits += 1;
        }
        if let What::Health { to: HealthState::Unhealthy | HealthState::Degraded, reason, .. } =
            entry.what
        {
            self.rules.entry(reason).or_default().nodes += 1;
        }
    }
}

/// Whether a node's pool is this one: one of another cluster has that before its name.
fn is_of(of_node: &str, pool: &str) -> bool {
    of_node.rsplit('.').next() == Some(pool)
}

/// Whether a node does what it is there for.
pub(crate) fn in_service(node: &Node) -> bool {
    node.duty == Duty::Active && node.liveness == Liveness::Fresh && !node.is_bad()
}

impl World {
    /// Something was committed.
    pub(crate) fn committed(&mut self, revision: Revision, commit: &Commit) {
        let number = revision.0.to_be_bytes();
        let at = commit.at.as_microsecond().to_be_bytes();
        let puts = commit.puts.iter().flat_map(|put| {
            let body = put.body.as_deref().unwrap_or_default();
            [put.key.kind.as_bytes(), put.key.id.as_bytes(), body.as_bytes()]
        });
        let appends = commit
            .appends
            .iter()
            .flat_map(|it| [it.stream.as_bytes(), it.subject.as_bytes(), it.body.as_bytes()]);
        self.tape.note([number.as_slice(), at.as_slice()].into_iter().chain(puts).chain(appends));
        for append in &commit.appends {
            self.gauge.wrote(append);
        }
        let now = self.clock.now();
        let units = &self.units;
        let by_name = &self.by_name;
        let is_heard = |name: &str| {
            let unit = by_name.get(name).and_then(|index| units.get(*index));
            unit.is_some_and(|unit| unit.heard_at.elapsed() < super::LOST_AFTER)
        };
        let judged = self.oracle.commit(revision, commit, now, &is_heard);
        let turns = match judged {
            Ok(turns) => turns,
            Err((invariant, message)) => return self.violate(invariant, message),
        };
        for turn in turns {
            self.turned(turn);
        }
    }

    fn turned(&mut self, turn: Turn) {
        let (now, at) = (self.now(), self.seconds());
        match turn {
            Turn::Node { before, after } => {
                let words = |node: &Node| (node.status(), node.liveness, node.health.state);
                let was = before.as_deref().map(words);
                if was != Some(words(&after)) {
                    self.tape.tell(now, || {
                        let (status, liveness, health) = words(&after);
                        let (liveness, health) = (liveness.as_str(), health.as_str());
                        format!("node {} is {} ({liveness}, {health})", after.id, status.as_str())
                    });
                }
                self.follow_faults(&after, at);
                self.follow_work(before.as_deref(), &after);
            }
            Turn::Command { before: None, after } => {
                let what = after.kind.as_str().to_ascii_lowercase();
                self.tape.tell(now, || {
                    format!("{} orders {} to {what}: {}", after.by, after.node, after.reason)
                });
                self.gauge.acted(&what);
            }
            Turn::Command { before: Some(_), after } => {
                if after.state.is_done() {
                    self.tape.tell(now, || {
                        format!(
                            "{} of {} is {}",
                            after.kind.as_str(),
                            after.node,
                            after.state.word()
                        )
                    });
                }
            }
            Turn::Instance { before, after } => {
                let word = |state: &State| state.as_str();
                let was = before.as_deref().map(|it| word(&it.state));
                let is = word(&after.state);
                if was != Some(is) {
                    self.tape.tell(now, || format!("instance {} is {is}", after.id));
                }
                if before.is_none() {
                    self.gauge.acted("buy");
                    if let Some(old) = &after.replaces {
                        self.gauge.acted("replace");
                        let reason = self.oracle.nodes.get(old.as_str());
                        let reason = reason.map(|node| node.health.reason.clone());
                        if let Some(rule) = reason.filter(|reason| !reason.is_empty()) {
                            self.gauge.rules.entry(rule).or_default().replaced += 1;
                        }
                    }
                }
                if is == "Running" && was != Some("Running") {
                    let old = after.replaces.as_ref().map(|old| old.to_string());
                    if let Some(index) = old.and_then(|old| self.by_name.get(&old).copied()) {
                        self.repaired(index, at);
                    }
                }
                if is == "Terminated" && was != Some("Terminated") {
                    self.gauge.acted("return");
                }
            }
        }
    }

    fn since(&self) -> SignedDuration {
        self.clock.now().duration_since(self.epoch)
    }

    /// What a change of a node is to the work on it.
    fn follow_work(&mut self, before: Option<&Node>, node: &Node) {
        let at = self.since();
        let unit = self.by_name.get(node.id.as_str()).and_then(|index| self.units.get(*index));
        let powered = unit.is_some_and(super::Unit::has_power);
        let cause = unit.and_then(|unit| unit.faults.last()).copied();
        let cause = cause.and_then(|number| self.gauge.faults.get(number));
        let cause = cause.map_or_else(|| "drain".to_owned(), |fault| fault.cause.clone());
        let Some(work) = &mut self.gauge.work else { return };
        let (name, was) = (node.id.as_str(), before.map(|before| &before.duty));
        let lost = node.liveness == Liveness::Unreachable;
        match &node.duty {
            Duty::Active if lost => work.node_down(at, name, &cause),
            Duty::Active if in_service(node) && powered => {
                work.node_up(at, name, u32::try_from(node.gpus.len()).unwrap_or(u32::MAX));
            }
            Duty::Active => {}
            Duty::Cordoned(_) if !matches!(was, Some(Duty::Cordoned(_))) => {
                work.node_closed(at, name);
            }
            Duty::Draining { .. } if !matches!(was, Some(Duty::Draining { .. })) => {
                work.node_drained(at, name, &cause);
            }
            Duty::Terminated(_) if !matches!(was, Some(Duty::Terminated(_))) => {
                work.node_down(at, name, &cause);
            }
            Duty::Cordoned(_) | Duty::Draining { .. } | Duty::Terminated(_) => {}
        }
    }

    /// A fault interrupts what runs on a machine.
    pub(crate) fn interrupt_work(&mut self, index: usize, cause: &str, effect: &Effect) {
        let at = self.since();
        let (Some(work), Some(unit)) = (&mut self.gauge.work, self.units.get(index)) else {
            return;
        };
        if matches!(effect, Effect::Silent | Effect::Reboot) {
            work.node_down(at, unit.name(), cause);
        } else {
            work.interrupted(at, unit.name(), cause);
        }
    }

    /// A machine is up again whose node nobody has missed.
    pub(crate) fn resume_work(&mut self, index: usize) {
        let at = self.since();
        let (Some(work), Some(unit)) = (&mut self.gauge.work, self.units.get(index)) else {
            return;
        };
        if self.oracle.nodes.get(unit.name()).is_some_and(|node| in_service(node)) {
            work.node_up(at, unit.name(), unit.spec.gpus);
        }
    }

    /// What became of the faults of a node.
    fn follow_faults(&mut self, node: &Node, at: f64) {
        let Some(index) = self.by_name.get(node.id.as_str()).copied() else { return };
        let Some(unit) = self.units.get(index) else { return };
        let well = in_service(node) && matches!(node.health.state, HealthState::Healthy);
        let noticed = node.liveness != Liveness::Fresh
            || matches!(node.health.state, HealthState::Unhealthy | HealthState::Degraded)
            || !node.findings.is_empty();
        let mut repaired = false;
        for number in &unit.faults {
            let Some(fault) = self.gauge.faults.get_mut(*number) else { continue };
            let after = at - fault.at;
            if noticed && fault.detected_after.is_none() {
                fault.detected_after = Some(after);
            }
            if node.duty != Duty::Active && fault.cordoned_after.is_none() {
                fault.cordoned_after = Some(after);
            }
            repaired |= well && fault.detected_after.is_some();
        }
        if repaired {
            self.repaired(index, at);
        }
    }

    fn repaired(&mut self, index: usize, at: f64) {
        let Some(unit) = self.units.get_mut(index) else { return };
        for number in std::mem::take(&mut unit.faults) {
            let Some(fault) = self.gauge.faults.get_mut(number) else { continue };
            if fault.detected_after.is_some() {
                fault.repaired_after = Some(at - fault.at);
            } else {
                unit.faults.push(number);
            }
        }
    }

    /// One measurement, and the next.
    pub(crate) fn measure(&mut self) {
        let at = self.now() + self.gauge.step;
        self.heap.push(at, Happening::Measure);
        if plain(self.scenario.duration) < self.now() {
            return;
        }
        let alive = |unit: &&super::Unit| {
            !unit.dead && (unit.bought.is_none() || self.by_machine_alive(unit))
        };
        let alive = self.units.iter().filter(alive);
        let (machines, present) =
            alive.fold((0, 0), |(machines, gpus), unit| (machines + 1, gpus + unit.spec.gpus));
        self.gauge.nodes_max = self.gauge.nodes_max.max(machines);
        for unit in &self.units {
            if let Some(wanted) = self
                .gauge
                .wanted
                .iter_mut()
                .find(|((_, pool), wanted)| wanted.1 == 0 && is_of(&unit.spec.pool, pool))
            {
                wanted.1.1 = unit.spec.gpus;
            }
        }
        let (mut serving, mut disrupted, mut total) = (0_usize, 0_u32, 0_usize);
        for node in self.oracle.nodes.values() {
            if matches!(node.duty, Duty::Terminated(_)) {
                continue;
            }
            total += 1;
            disrupted += u32::from(node.in_disruption());
            if in_service(node) {
                serving += node.gpus.len();
            }
        }
        let budget = allowed(&self.site.product.settings.nodes.fleet.budget, total);
        let (mut cost, mut idle) = (0.0, 0.0);
        let mut paid: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for cloud in self.site.clouds.values() {
            cloud.each_living(|made| {
                cost += made.price;
                if let Some(pool) = made.purchase.tags.pool {
                    let record = made.purchase.instance.to_string();
                    paid.entry(pool.to_string()).or_default().push(record);
                }
                let node = self.oracle.nodes.get(made.purchase.instance.as_str());
                if !node.is_some_and(|node| in_service(node)) {
                    idle += made.price;
                }
            });
        }
        let gauge = &mut self.gauge;
        gauge.money_wasted += idle * gauge.step.as_secs_f64() / 3_600.0;
        let pools = gauge.wanted.values().map(|(count, gpus)| count * u64::from(*gpus));
        let wanted = u32::try_from(pools.sum::<u64>()).unwrap_or(u32::MAX);
        let series = &mut gauge.series;
        series.wanted.push(wanted.saturating_add(gauge.fleet_gpus));
        series.present.push(present);
        series.in_service.push(u32::try_from(serving).unwrap_or(u32::MAX));
        series.disrupted.push(disrupted);
        series.budget.push(u32::try_from(budget).unwrap_or(u32::MAX));
        #[expect(clippy::cast_possible_truncation, reason = "dollars for a plot")]
        series.cost_per_hour.push(cost as f32);
        let at = self.since();
        let gauge = &mut self.gauge;
        if let Some(work) = &mut gauge.work {
            #[expect(clippy::cast_possible_truncation, reason = "a share for a plot")]
            gauge.series.goodput.push(work.sample(at) as f32);
        }
        let overpaid = self.oracle.overpaid(&paid, self.clock.now());
        if let Some(message) = overpaid {
            self.violate(MONEY, message);
        }
        let strangers = self.strangers();
        if let Some(message) = strangers {
            self.violate("I2", message);
        }
    }

    fn by_machine_alive(&self, unit: &super::Unit) -> bool {
        !unit.dead
    }

    /// A machine of ours that neither a record nor a report of orphans knows, long after it was made.
    pub(crate) fn strangers(&self) -> Option<String> {
        let now = self.clock.now();
        let settings = &self.site.product.settings.machines;
        let lag = self.scenario.trouble.cloud.list_lag;
        let patience = secs(settings.sweep_every) * 6.0 + secs(lag) * 3.0 + 3_600.0;
        let mut found = None;
        for cloud in self.site.clouds.values() {
            cloud.each_living(|made| {
                let age = secs(now.duration_since(made.at));
                let instance = made.purchase.instance.as_str();
                if found.is_none()
                    && patience < age
                    && !self.oracle.is_known(&cloud.name, instance, made.machine.id.as_str())
                {
                    let machine = &made.machine.id;
                    found = Some(format!(
                        "{machine} at {} was bought for {instance} {age:.0} s ago, runs, and is in \
                         no record and no report of orphans",
                        cloud.name
                    ));
                }
            });
        }
        found
    }

    /// What is not as it was asked to be; `None` if everything is.
    pub(crate) fn unsettled(&self) -> Option<String> {
        let pool = self.pools().find(|(_, phase, _)| phase.as_str() != "Ready");
        if let Some((name, phase, pool)) = pool {
            let phase = phase.as_str();
            let says = |it: &&Condition| it.status == Tri::False && !it.message.is_empty();
            let why = pool.conditions.iter().rfind(says).map_or("", |it| it.message.as_str());
            return Some(format!(
                "the pool {name} is {phase} although nothing goes wrong any more: {why}"
            ));
        }
        let command = self.oracle.open_command(self.clock.now());
        if let Some(command) = command {
            return Some(format!(
                "the {} of {} has been open since {}",
                command.kind.as_str(),
                command.node,
                command.issued_at
            ));
        }
        None
    }

    pub(crate) fn outcome(&mut self, seed: u64) -> Outcome {
        let assertions = self.scenario.assertions.clone();
        for assertion in &assertions {
            let checked = self.check(assertion);
            self.gauge.assertions.push(checked);
        }
        let now = self.clock.now();
        let mut money = Money { wasted: self.gauge.money_wasted, ..Money::default() };
        for cloud in self.site.clouds.values() {
            let (total, bought, returned) = cloud.bill(now);
            money.total += total;
            money.bought += bought;
            money.returned += returned;
        }
        let at = self.since();
        if let Some(work) = &mut self.gauge.work {
            work.at(at);
        }
        let (simulated_seconds, events) = (self.seconds(), self.tape.events());
        let gpus = self.gauge.series.present.iter().copied().max().unwrap_or(0);
        // The whole process counts, so that it says something of large fleets alone.
        let nodes = self.gauge.nodes_max;
        let bytes_per_node = (MEASURED_LEAST <= nodes)
            .then(crate::run::resident_bytes)
            .flatten()
            .map(|bytes| bytes / nodes.max(1));
        let gauge = &mut self.gauge;
        Outcome {
            scenario: self.scenario.name.clone(),
            seed,
            digest: self.tape.digest(),
            simulated_seconds,
            events,
            violations: self.violation.clone().into_iter().collect(),
            assertions: std::mem::take(&mut gauge.assertions),
            nodes: gauge.nodes_max,
            gpus: u64::from(gpus),
            series: std::mem::take(&mut gauge.series),
            faults: std::mem::take(&mut gauge.faults),
            actions: std::mem::take(&mut gauge.actions),
            rules: std::mem::take(&mut gauge.rules),
            work: gauge.work.take().map(|work| work.work()),
            money,
            bytes_per_node,
        }
    }
}
