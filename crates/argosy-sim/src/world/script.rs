//! What a scenario declares, does and expects.

use super::fault::unit_matches;
use super::process::operator;
use super::{Happening, World, plain};
use crate::outcome::Checked;
use crate::run::RunError;
use crate::scenario::{Action, Assertion, Effect};
use argosy_control::command::NewCommand;
use argosy_control::resource::{Creation, Target, Write};
use argosy_control::safety::Beyond;
use argosy_control::{Control, Error};
use argosy_core::command::CommandKind;
use argosy_core::id::ResourceId;
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::resource::{Kind, Patch, Resource, Strategy};
use argosy_core::status::{Phase, phase};
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// How often a request is repeated that could not be carried out just now.
const TRIES_MAX: u32 = 40;

/// How long to wait between two.
const TRY_EVERY: Duration = Duration::from_secs(3);

/// How often is looked whether a node has the status that somebody waits for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Requests to the control plane that are under way.
#[derive(Default)]
pub(crate) struct Errands {
    tasks: JoinSet<()>,
    ended: Arc<Mutex<Vec<Ended>>>,
    /// Steps that wait for something, and until when.
    waits: BTreeMap<usize, Duration>,
}

/// A request that was answered.
pub(crate) struct Ended {
    what: String,
    /// Why not.
    error: Option<String>,
}

impl Errands {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<Ended> {
        while self.tasks.try_join_next().is_some() {}
        std::mem::take(&mut super::tape::lock(&self.ended))
    }
}

/// What is asked of the control plane.
enum Ask {
    Command { target: String, new: NewCommand },
    Patch { cluster: String, pool: String, spec: Value },
    Delete { cluster: String, pool: Option<String> },
    Pause(bool),
    Resume(ResourceId),
    Confirm(String),
}

impl Ask {
    async fn ask(&self, control: &Control, key: &str) -> Result<(), Error> {
        let caller = operator();
        let write = Write::default;
        match self {
            Ask::Command { target, new } => {
                let new = NewCommand { idempotency_key: Some(key.to_owned()), ..new.clone() };
                control.commands.issue(&caller, target, new).await.map(|_| ())
            }
            Ask::Patch { cluster, pool, spec } => {
                let spec = spec.as_object().cloned();
                let patch = Patch { spec, labels: None, strategy: Strategy::Merge };
                let target =
                    Target { kind: Kind::NodePool, cluster: Some(cluster), reference: pool };
                control.resources.patch(&caller, target, &patch, write()).await.map(|_| ())
            }
            Ask::Delete { cluster, pool } => {
                let target = match pool {
                    Some(pool) => {
                        Target { kind: Kind::NodePool, cluster: Some(cluster), reference: pool }
                    }
                    None => Target { kind: Kind::Cluster, cluster: None, reference: cluster },
                };
                control.resources.delete(&caller, target, write()).await.map(|_| ())
            }
            Ask::Pause(true) => {
                let reason = "the scenario says so";
                control.safety.pause(&caller, None, reason).await.map(|_| ())
            }
            Ask::Pause(false) => control.safety.resume(&caller, None).await.map(|_| ()),
            Ask::Resume(pool) => {
                let reason = "what was wrong with its machines is mended";
                let pool_id = pool.to_string();
                control.instances.confirm_recovery(&caller, &pool_id, reason).await?;
                control.instances.resume(&caller, *pool, reason).await.map(|_| ())
            }
            Ask::Confirm(pool) => {
                let reason = "the scenario says so";
                control.instances.confirm_recovery(&caller, pool, reason).await.map(|_| ())
            }
        }
    }
}

impl World {
    /// Declares clusters and pools, as an operator does.
    pub(crate) async fn declare(&mut self) -> Result<(), RunError> {
        let Some(up) = self.processes.first().and_then(|process| process.up.as_ref()) else {
            return Err(RunError::Machine("no process is up".to_owned()));
        };
        let control = up.control.clone();
        let caller = operator();
        let refused = |name: &str, error: &dyn std::fmt::Display| {
            RunError::Declared(format!("{name}: {error}"))
        };
        for (place, policy) in self.site.product.policies.iter().enumerate() {
            if !policy.pools.is_empty() {
                let name = format!("policy-{}", place + 1);
                let put = control.policies.put(&caller, &name, policy.clone(), None, false).await;
                put.map_err(|error| refused(&name, &error))?;
            }
        }
        for cluster in self.scenario.clusters.clone() {
            let (name, spec) = (cluster.name.as_str(), &cluster.spec);
            let wanted = creation(Kind::Cluster, None, name, spec)?;
            let made = control.resources.create(&caller, wanted, Write::default()).await;
            made.map_err(|error| refused(name, &error))?;
            for (pool, spec) in &cluster.pools {
                let wanted = creation(Kind::NodePool, Some(name), pool, spec)?;
                let made = control.resources.create(&caller, wanted, Write::default()).await;
                made.map_err(|error| refused(&format!("{name}/{pool}"), &error))?;
            }
        }
        Ok(())
    }

    /// A step of the script.
    pub(crate) fn act(&mut self, index: usize) {
        let Some(step) = self.scenario.script.get(index).cloned() else { return };
        let now = self.now();
        match step.action {
            Action::StartFleet => self.start_fleet(),
            Action::StopFleet => {
                for index in 0..self.units.len() {
                    self.power_off(index);
                }
            }
            Action::Fault(place, effect) => {
                let hit = self.units_at(&place);
                for unit in hit {
                    self.strike(unit, "script", &effect, !matches!(effect, Effect::Unseen));
                }
            }
            Action::Recover(place, what) => {
                let hit = self.units_at(&place);
                for unit in hit {
                    self.recover(unit, what.as_deref());
                }
            }
            Action::Command { target, kind, parameters } => {
                let Some(kind) = command_kind(&kind) else {
                    return self.script_failed(&format!("command {kind}"), "nobody knows it");
                };
                let new = NewCommand {
                    kind,
                    parameters,
                    reason: "the scenario says so".to_owned(),
                    drain_for: None,
                    idempotency_key: None,
                    if_revision: None,
                    dry_run: false,
                    // Scenarios are Navarch's, too, and know no budgets.
                    beyond: Beyond::Count,
                };
                let what = format!("{} {target}", kind.as_str());
                self.send(what, Ask::Command { target, new });
            }
            Action::Resize { cluster, pool, spec } => {
                if let Some(count) = spec.get("nodeCount").and_then(Value::as_u64) {
                    self.gauge.resize(&cluster, &pool, count);
                }
                self.send(format!("resize {cluster}/{pool}"), Ask::Patch { cluster, pool, spec });
            }
            Action::Delete { cluster, pool } => {
                self.gauge.delete(&cluster, pool.as_deref());
                self.send(format!("delete {cluster}"), Ask::Delete { cluster, pool });
            }
            Action::Pause(pause) => self.send("pause".to_owned(), Ask::Pause(pause)),
            Action::Down(time) => {
                self.tape.tell(now, || "the control plane ends".to_owned());
                self.go_down(plain(time));
            }
            Action::BackUp => self.back_up(),
            Action::Restore => self.go_back(true),
            Action::LoseCommits => self.go_back(false),
            Action::Confirm { cluster, pool } => {
                let name = match (Name::parse(&cluster), Name::parse(&pool)) {
                    (Ok(cluster), Ok(pool)) => argosy_core::pool::pool_name(&cluster, &pool),
                    (Err(_), _) | (_, Err(_)) => pool,
                };
                self.send(format!("confirm {name}"), Ask::Confirm(name));
            }
            Action::WaitForStatus { within, .. } => {
                self.errands.waits.insert(index, now + plain(within));
                self.wait_for(index);
            }
            Action::Assert(assertion) => {
                let checked = self.check(&assertion);
                self.gauge.assertions.push(checked);
            }
            Action::Log(line) => self.tape.tell(now, || line),
        }
    }

    /// Looks whether a node has the status that a step waits for.
    pub(crate) fn wait_for(&mut self, index: usize) {
        let step = self.scenario.script.get(index).map(|step| step.action.clone());
        let Some(Action::WaitForStatus { target, status, within }) = step else { return };
        let Some(until) = self.errands.waits.get(&index).copied() else { return };
        let found = self.status_of(&target);
        let holds = found.eq_ignore_ascii_case(&status);
        if !holds && self.now() < until {
            let at = self.now() + LOOK_EVERY;
            return self.heap.push(at, Happening::Wait(index));
        }
        self.errands.waits.remove(&index);
        let expected = format!("{target} is {status} within {within:#}");
        self.gauge.assertions.push(Checked { expected, found, holds });
    }

    fn script_failed(&mut self, what: &str, why: &str) {
        let expected = format!("the step `{what}` can be taken");
        self.gauge.assertions.push(Checked { expected, found: why.to_owned(), holds: false });
    }

    /// Once nothing goes wrong any more, the operator resumes what has stopped and asked for a person.
    pub(crate) fn resume_stopped_pools(&mut self) {
        let waiting = self.pools().filter(|(_, phase, _)| *phase != Phase::Ready);
        let waiting: Vec<_> = waiting.map(|(name, _, pool)| (name, pool.id)).collect();
        for (name, pool) in waiting {
            self.send(format!("resume {name}"), Ask::Resume(pool));
        }
    }

    fn send(&mut self, what: String, ask: Ask) {
        let now = self.now();
        self.tape.tell(now, || format!("somebody asks for {what}"));
        self.tape.stir();
        let controls: Vec<Control> = self
            .processes
            .iter()
            .filter_map(|process| Some(process.up.as_ref()?.control.clone()))
            .collect();
        // Whoever asks turns to another process if one does not answer.
        let (ended, tape) = (self.errands.ended.clone(), self.tape.clone());
        self.errands.tasks.spawn(async move {
            let mut error = Some("no process is up".to_owned());
            let key = format!("{what} at {now:?}");
            for control in controls.iter().cycle().take(TRIES_MAX as usize) {
                let asked = ask.ask(control, &key);
                match tokio::time::timeout(TRY_EVERY * 4, asked).await {
                    Ok(Ok(())) => {
                        error = None;
                        break;
                    }
                    Ok(Err(again @ Error::Store(_))) => error = Some(again.to_string()),
                    Ok(Err(no)) => {
                        error = Some(no.to_string());
                        break;
                    }
                    Err(_) => error = Some("no answer".to_owned()),
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
            super::tape::lock(&ended).push(Ended { what, error });
            tape.ring();
        });
    }

    pub(crate) fn errands_ended(&mut self, ended: Vec<Ended>) {
        for Ended { what, error } in ended {
            if let Some(error) = error {
                self.script_failed(&what, &error);
            }
        }
    }

    fn status_of(&self, target: &str) -> String {
        let node = self.oracle.nodes.get(target);
        node.map_or("unknown", |node| node.status().as_str()).to_owned()
    }

    /// What is expected, and what is.
    pub(crate) fn check(&self, assertion: &Assertion) -> Checked {
        match assertion {
            Assertion::NodeStatus(target, status) => {
                let found = self.status_of(target);
                let holds = found.eq_ignore_ascii_case(status);
                Checked { expected: format!("{target} is {status}"), found, holds }
            }
            Assertion::NodeHealth(target, health) => {
                let node = self.oracle.nodes.get(target);
                let found = node.map_or("unknown", |node| node.health.state.as_str()).to_owned();
                let holds = found.eq_ignore_ascii_case(health);
                Checked { expected: format!("the health of {target} is {health}"), found, holds }
            }
            Assertion::NodeCount { status, from, to } => {
                let nodes = self.oracle.nodes.values().map(|node| node.status().as_str());
                let count = nodes.filter(|word| match status {
                    Some(status) => word.eq_ignore_ascii_case(status),
                    None => *word != "TERMINATED",
                });
                let count = count.count() as u64;
                let holds = *from <= count && count <= *to;
                let word = status.as_deref().unwrap_or("not terminated");
                let many = match (*from, *to) {
                    (from, u64::MAX) => format!("at least {from}"),
                    (from, to) if from == to => from.to_string(),
                    (from, to) => format!("{from} to {to}"),
                };
                let expected = format!("{many} nodes are {word}");
                Checked { expected, found: count.to_string(), holds }
            }
            Assertion::PoolReady(pool) => {
                let found = self.pools().find(|(name, ..)| name == pool);
                let found = found.map_or("unknown", |(_, phase, _)| phase.as_str()).to_owned();
                let holds = found == Phase::Ready.as_str();
                Checked { expected: format!("the pool {pool} is Ready"), found, holds }
            }
            Assertion::PoolReason(pool, reason) => {
                let found = self.pools().find(|(name, ..)| name == pool);
                let conditions = found.iter().flat_map(|(_, _, pool)| &pool.conditions);
                let reasons: Vec<&str> = conditions.map(|it| it.reason.as_str()).collect();
                let holds = reasons.contains(&reason.as_str());
                let expected = format!("the pool {pool} says {reason}");
                Checked { expected, found: reasons.join(", "), holds }
            }
            Assertion::Bought(most) => {
                let now = self.clock.now();
                let bought = self.site.clouds.values().map(|cloud| cloud.bill(now).1).sum::<u64>();
                let expected = format!("at most {most} machines are bought");
                Checked { expected, found: bought.to_string(), holds: bought <= *most }
            }
            Assertion::Availability(least) => {
                let found = self.gauge.availability();
                let expected = format!("{:.3} % of the GPUs are in service", least * 100.0);
                let holds = *least <= found;
                Checked { expected, found: format!("{:.3} %", found * 100.0), holds }
            }
            Assertion::DetectedWithin(within) => {
                let found = self.gauge.detected_p99();
                let expected = format!("99 of 100 faults are known within {within:#}");
                let holds = found.is_some_and(|found| found <= within.as_secs_f64());
                let found = found.map_or("never".to_owned(), |found| format!("{found:.1} s"));
                Checked { expected, found, holds }
            }
            Assertion::Goodput(least) => {
                let found = self.gauge.goodput().unwrap_or(0.0);
                let expected = format!("{:.2} % of the work's time is not lost", least * 100.0);
                let holds = *least <= found;
                Checked { expected, found: format!("{:.2} %", found * 100.0), holds }
            }
        }
    }

    /// Every pool, by cluster and name, and how it is.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (String, Phase, &Resource)> {
        let resources = self.oracle.resources.values();
        let pools = resources.filter(|resource| resource.kind == Kind::NodePool);
        pools.map(|pool| {
            let owner = pool.owner.and_then(|owner| self.oracle.resources.get(&owner.to_string()));
            let owner = owner.map_or("", |owner| owner.name.as_str());
            (format!("{owner}.{}", pool.name), phase(pool), &**pool)
        })
    }

    /// The machines at a place.
    pub(crate) fn units_at(&mut self, place: &crate::scenario::Place) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.units.len())
            .filter(|index| {
                self.units.get(*index).is_some_and(|unit| unit_matches(&unit.spec, place))
            })
            .collect();
        if let crate::scenario::Place::Part(part) = place {
            let on = |index: &usize| self.units.get(*index).is_some_and(super::Unit::is_on);
            found.retain(on);
            let wanted = (part.clamp(0.0, 1.0) * found.len() as f64).round() as usize;
            while wanted < found.len() {
                let one = self.dice.fault.below(found.len() as u64);
                found.swap_remove(usize::try_from(one).unwrap_or(0));
            }
            found.sort_unstable();
        }
        found
    }

    /// Whether nothing that was begun is still under way.
    pub(crate) fn heap_is_idle(&self) -> bool {
        self.errands.is_empty() && self.errands.waits.is_empty()
    }
}

fn creation<'a>(
    kind: Kind,
    cluster: Option<&'a str>,
    name: &str,
    spec: &Value,
) -> Result<Creation<'a>, RunError> {
    let refused = |why: String| RunError::Declared(format!("{name}: {why}"));
    let parsed = Name::parse(name).map_err(|error| refused(error.message))?;
    let spec = spec.as_object().cloned();
    let spec = spec.ok_or_else(|| refused("its spec is no object".to_owned()))?;
    Ok(Creation { kind, cluster, name: parsed, spec, labels: Labels::default() })
}

fn command_kind(word: &str) -> Option<CommandKind> {
    let wanted = word.replace('-', "_");
    let known =
        CommandKind::ALL.into_iter().find(|kind| wanted.eq_ignore_ascii_case(kind.as_str()));
    known.or_else(|| {
        let diagnose = ["diagnose", "diagnostic", "run_diagnostics"];
        diagnose.contains(&wanted.as_str()).then_some(CommandKind::RunDiagnostic)
    })
}

/// Seconds of a duration, for arithmetic.
pub(crate) fn secs(duration: SignedDuration) -> f64 {
    duration.as_secs_f64()
}
