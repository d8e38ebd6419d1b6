//! Machines, orphans, providers and pools of machines, to the wire.

use super::member::{self, Members};
use argosy_api::instance as api;
use argosy_api::route::OWN;
use argosy_control::Stored;
use argosy_control::instance::{Explained, ProviderShown, Simulate, Simulated};
use argosy_core::adapter::Tri;
use argosy_core::autoscale::{Advice, HISTORY_LEN_MAX, RawSample, Sample, Summary};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::instance::{BlockedTermination, Cure, Departure, Instance, Reason, State, Tried};
use argosy_core::inventory::{Frozen, Orphan, Paused};
use argosy_core::machine::HourlyCost;
use argosy_core::pool::{Fate, PoolBook, Vain};
use argosy_core::resource::Resource;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The adapter that reports how a pool's machines are doing.
const MACHINES: &str = "machines";

/// An instance as it stands on the wire.
pub(crate) fn wire(stored: &Stored<Instance>) -> api::Instance {
    let instance = &*stored.value;
    let order = &instance.order;
    let (calls, retry_at, overdue) = match &instance.state {
        State::Provisioning(buying) => (buying.calls, buying.retry_at, false),
        State::Terminating(leaving) => (leaving.calls, leaving.retry_at, leaving.alarmed),
        State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Terminated { .. }
        | State::Failed { .. } => (0, None, false),
    };
    api::Instance {
        id: instance.id.to_string(),
        kind: "Instance".to_owned(),
        href: href(instance.id.as_str()),
        tenant: instance.tenant.clone(),
        state: state(&instance.state),
        since: instance.since().to_string(),
        reason: instance.reason().to_owned(),
        status_message: instance.message().into_owned(),
        pool: instance.pool_name.clone(),
        pool_id: instance.pool.to_string(),
        number: instance.number,
        node_id: instance.node().map(ToString::to_string),
        provider: order.provider.clone(),
        region: order.region.clone(),
        zone: order.zone.clone(),
        machine_type: order.machine_type.clone(),
        spot: order.spot,
        image: order.image.clone(),
        machine_id: instance.machine().map(ToString::to_string),
        cost_per_hour: instance.cost_per_hour(),
        ordered_at: instance.ordered_at.to_string(),
        why: instance.why.clone(),
        replaces: instance.replaces.as_ref().map(ToString::to_string),
        replaced_by: replaced_by(&instance.state),
        departure: instance.departure.as_ref().map(departure),
        blocked: instance.blocked.as_ref().map(blocked),
        calls,
        retry_at: retry_at.map(|at| at.to_string()),
        overdue,
        tried: instance.tried.iter().map(tried).collect(),
        console: instance.console().map(str::to_owned),
        revision: stored.revision.0,
    }
}

fn departure(departure: &Departure) -> api::Departure {
    api::Departure {
        reason: departure.reason.as_str().to_owned(),
        message: departure.reason.to_string(),
        since: departure.since.to_string(),
        deadline: departure.deadline.to_string(),
    }
}

fn blocked(blocked: &BlockedTermination) -> api::BlockedTermination {
    api::BlockedTermination {
        guard: blocked.guard.clone(),
        message: blocked.message.clone(),
        since: blocked.since.to_string(),
    }
}

/// The path of an instance.
pub(crate) fn href(id: &str) -> String {
    format!("{OWN}/instances/{id}")
}

pub(crate) const fn state(state: &State) -> api::InstanceState {
    match state {
        State::Provisioning(_) => api::InstanceState::Provisioning,
        State::AwaitingNode { .. } => api::InstanceState::AwaitingNode,
        State::Running { .. } => api::InstanceState::Running,
        State::Terminating(_) => api::InstanceState::Terminating,
        State::Terminated { .. } => api::InstanceState::Terminated,
        State::Failed { .. } => api::InstanceState::Failed,
    }
}

fn replaced_by(state: &State) -> Option<String> {
    let reason = match state {
        State::Terminating(leaving) => &leaving.reason,
        State::Terminated { reason, .. } => reason,
        State::Provisioning(_)
        | State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Failed { .. } => return None,
    };
    match reason {
        Reason::Replaced { by, .. } => by.as_ref().map(ToString::to_string),
        Reason::ScaleDown { .. }
        | Reason::PoolDeleted
        | Reason::Sick { .. }
        | Reason::Stale
        | Reason::BadHardware { .. }
        | Reason::Reclaimed
        | Reason::Vanished
        | Reason::NodeTerminated { .. }
        | Reason::Operator { .. }
        | Reason::Unwanted => None,
    }
}

fn tried(tried: &Tried) -> api::Tried {
    api::Tried {
        cure: match tried.cure {
            Cure::Diagnose => api::Cure::Diagnose,
            Cure::Reboot => api::Cure::Reboot,
            Cure::Replace => api::Cure::Replace,
        },
        at: tried.at.to_string(),
        because: tried.because.clone(),
        outcome: tried.outcome.clone(),
    }
}

/// A machine that no record knows, as it stands on the wire.
pub(crate) fn orphan(stored: &Stored<Orphan>) -> api::Orphan {
    let orphan = &*stored.value;
    api::Orphan {
        provider: orphan.provider.clone(),
        machine_id: orphan.machine.to_string(),
        name: orphan.name.clone(),
        region: orphan.region.clone(),
        zone: orphan.zone.clone(),
        machine_type: orphan.machine_type.clone(),
        cost_per_hour: orphan.price_per_hour.filter(|price| price.is_finite() && 0.0 <= *price),
        first_seen: orphan.first_seen.to_string(),
        pool_id: orphan.tags.pool.map(|pool| pool.to_string()),
        instance_id: orphan.tags.instance.as_ref().map(ToString::to_string),
        reap: orphan.reap.as_ref().map(|reap| api::Reap {
            by: reap.by.clone(),
            reason: reap.reason.clone(),
            at: reap.at.to_string(),
        }),
        revision: stored.revision.0,
    }
}

/// All machines that no record knows, and what they cost.
pub(crate) fn orphans(orphans: &[Stored<Orphan>]) -> api::OrphanList {
    let items: Vec<_> = orphans.iter().map(orphan).collect();
    let cost: HourlyCost = items.iter().map(|orphan| orphan.cost_per_hour).collect();
    let (cost_per_hour, unpriced) = (cost.known, cost.unpriced);
    api::OrphanList { kind: "OrphanList".to_owned(), cost_per_hour, unpriced, items }
}

pub(crate) fn providers(providers: Vec<ProviderShown>) -> api::ProviderList {
    let items = providers.into_iter().map(provider).collect();
    api::ProviderList { kind: "ProviderList".to_owned(), items }
}

fn provider(shown: ProviderShown) -> api::Provider {
    let instances = shown.instances.into_iter();
    api::Provider {
        name: shown.name,
        configured: shown.configured,
        paused: shown.paused.as_ref().map(paused),
        frozen: shown.frozen.as_ref().map(frozen),
        instances: instances.map(|(state, count)| (state.to_owned(), count)).collect(),
        orphans: shown.orphans,
        cost_per_hour: shown.cost.known,
        unpriced: shown.cost.unpriced,
        listed_at: shown.listed_at.map(|at| at.to_string()),
    }
}

fn paused(paused: &Paused) -> api::ProviderPaused {
    api::ProviderPaused {
        since: paused.since.to_string(),
        message: paused.trouble.to_string(),
        retry_at: paused.retry_at.to_string(),
        failures: paused.failures,
    }
}

fn frozen(frozen: &Frozen) -> api::ProviderFrozen {
    api::ProviderFrozen {
        since: frozen.since.to_string(),
        expected: frozen.expected,
        found: frozen.found,
        message: frozen.message.clone(),
    }
}

/// Why a pool is as it is.
pub(crate) fn explained(explained: &Explained) -> api::PoolExplanation {
    let resource = &*explained.resource.value;
    let book = explained.book.as_ref().map(|book| &*book.value);
    let members: Vec<_> = explained.members.iter().map(|member| wire(&member.stored)).collect();
    let mut instances: BTreeMap<String, u32> = BTreeMap::new();
    for member in &members {
        *instances.entry(member.state.as_str().to_owned()).or_default() += 1;
    }
    let asked = asked(resource);
    let report = report(resource);
    let paused = book.and_then(|book| book.paused.as_ref()).map(|paused| api::BuyingPaused {
        since: paused.since.to_string(),
        reason: paused.reason.clone(),
        message: paused.message.clone(),
    });
    let decisions = book.map(|book| book.decisions.as_slice()).unwrap_or_default().iter().rev();
    api::PoolExplanation {
        kind: "PoolExplanation".to_owned(),
        name: resource.name.to_string(),
        pool_id: resource.id.to_string(),
        at: explained.at.to_string(),
        summary: summary(explained, asked, report.as_ref(), paused.as_ref()),
        asked,
        target: book.and_then(|book| book.target),
        instances,
        orphans: explained.orphans,
        cost_per_hour: explained.cost.known,
        unpriced: explained.cost.unpriced,
        report,
        paused,
        stale_in_a_row: book.map_or(0, |book| book.stale_in_a_row),
        places: book.map(|book| places(book, explained.at)).unwrap_or_default(),
        update_failed: book.and_then(update_failed),
        in_vain: book.map(|book| book.vain.iter().map(in_vain).collect()).unwrap_or_default(),
        advice: explained.advice.as_ref().map(advice),
        decisions: decisions
            .map(|decision| api::SizeDecision {
                at: decision.at.to_string(),
                from: decision.from,
                to: decision.to,
                reason: decision.reason.clone(),
            })
            .collect(),
        members,
    }
}

fn update_failed(book: &PoolBook) -> Option<api::UpdateFailed> {
    let failed = book.update_failed.as_ref()?;
    Some(api::UpdateFailed {
        since: failed.since.to_string(),
        instance_id: failed.instance.to_string(),
        message: failed.because.clone(),
        rollback_generation: book.good.as_ref().map(|good| good.generation),
    })
}

fn in_vain(vain: &Vain) -> api::InVain {
    let fate = match vain.fate {
        Fate::NotMade => "NotMade",
        Fate::NeverRegistered => "NeverRegistered",
        Fate::BadHardware => "BadHardware",
        Fate::Sick => "Sick",
        Fate::TakenBack => "TakenBack",
    };
    api::InVain {
        at: vain.at.to_string(),
        instance_id: vain.instance.to_string(),
        number: vain.number,
        fate: fate.to_owned(),
        message: vain.because.clone(),
        cost: vain.cost.map(|cost| (cost * 100.0).round() / 100.0),
    }
}

fn advice(advice: &Advice) -> api::SizeAdvice {
    api::SizeAdvice {
        from: advice.from,
        target: advice.target,
        wanted: advice.wanted,
        policy: advice.policy.to_string(),
        sentence: advice.to_string(),
        parts: advice
            .parts
            .iter()
            .map(|part| api::PartAdvice {
                at: part.at.clone(),
                policy: part.policy.to_string(),
                target: part.target,
                reason: part.reason.clone(),
            })
            .collect(),
        next: advice.next.map(|at| at.to_string()),
    }
}

/// What was measured of a pool lately.
pub(crate) fn history(pool: ResourceId, samples: &[Sample]) -> api::PoolHistory {
    let items = samples.iter().map(|sample| api::PoolSample {
        at: sample.at.to_string(),
        nodes: sample.nodes,
        utilization: sample.utilization,
        pending_jobs: sample.pending_jobs.map(counted),
        queue_depth: sample.queue_depth.map(counted),
    });
    let (kind, pool_id) = ("PoolHistory".to_owned(), pool.to_string());
    api::PoolHistory { kind, pool_id, items: items.collect() }
}

#[expect(clippy::cast_precision_loss, reason = "queues are far shorter than 2^52")]
fn counted(jobs: u64) -> f64 {
    jobs as f64
}

/// What is to be simulated.
///
/// # Errors
/// What is wrong with the request.
pub(crate) fn simulate(body: Map<String, Value>) -> Result<Simulate, Vec<FieldError>> {
    const NODES_MAX: i64 = 1_000_000;
    let mut members = Members::new("", body);
    let autoscaling = members.object("autoscaling").map(Value::Object);
    let given = members.take("history", |value, _| Ok(value));
    let mut count = |name| {
        let count = members.whole(name, 0, NODES_MAX);
        count.and_then(|count| u32::try_from(count).ok())
    };
    let (min, max, nodes) = (count("min"), count("max"), count("nodes"));
    let boot_s = members.whole("boot_s", 0, 24 * 60 * 60).unwrap_or(BOOT_S);
    let history = match given {
        None => None,
        Some(Value::Array(samples)) if samples.len() <= HISTORY_LEN_MAX => {
            let mut read = Vec::with_capacity(samples.len());
            for (index, value) in samples.into_iter().enumerate() {
                match sample(value, &format!("history[{index}]")) {
                    Ok(sample) => read.push(sample),
                    Err(errors) => members.complain(errors),
                }
            }
            Some(read)
        }
        Some(Value::Array(samples)) => {
            let message = format!(
                "history has {} samples; at most {HISTORY_LEN_MAX} are allowed",
                samples.len()
            );
            members.complain([FieldError::new("history", Constraint::MaxLength, message)]);
            None
        }
        Some(other) => {
            members.complain([member::wrong_type("history", "an array", &other)]);
            None
        }
    };
    let boot = SignedDuration::from_secs(boot_s);
    members.finish(Simulate { autoscaling, history, min, max, nodes, boot })
}

/// How long a machine takes that nobody said anything about, in seconds.
const BOOT_S: i64 = 300;

fn sample(value: Value, place: &str) -> Result<RawSample, Vec<FieldError>> {
    let Value::Object(object) = value else {
        return Err(vec![member::wrong_type(place, "an object", &value)]);
    };
    let mut members = Members::new(format!("{place}."), object);
    let at = members.take("at", |value, field| {
        let text = member::text(value.as_ref(), field)?;
        text.parse::<Timestamp>().map_err(|_| {
            let message = format!("{field} must be a time like 2026-01-31T12:00:00Z");
            FieldError::new(field, Constraint::Format, message)
        })
    });
    let nodes = members.whole("nodes", 0, i64::from(u32::MAX)).unwrap_or(0);
    let mut number = |name| {
        members.take(name, |value, field| match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(other) => Err(member::wrong_type(field, "a number", &other)),
        })
    };
    let utilization = number("utilization");
    let (pending_jobs, queue_depth) = (number("pending_jobs"), number("queue_depth"));
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    members.finish(RawSample { at, nodes, utilization, pending_jobs, queue_depth })
}

/// How many steps of a simulation are shown: more than anybody reads.
const STEPS_MAX: usize = 1000;

/// What an autoscaler would have done.
pub(crate) fn simulated(pool: ResourceId, simulated: &Simulated) -> api::Simulation {
    let Simulated { samples, refused, steps, summary, fixed } = simulated;
    let last = steps.len().saturating_sub(1);
    let told = steps
        .iter()
        .enumerate()
        .filter(|(at, step)| *at == 0 || *at == last || step.target != step.wanted);
    let told = told.take(STEPS_MAX).map(|(_, step)| api::SimulationStep {
        at: step.at.to_string(),
        wanted: step.wanted,
        target: step.target,
        ready: step.ready,
        need: step.need,
        reason: step.reason.clone(),
    });
    api::Simulation {
        kind: "Simulation".to_owned(),
        pool_id: pool.to_string(),
        samples: *samples,
        refused: refused.iter().map(|refused| refused.message.clone()).collect(),
        summary: sum(summary),
        fixed: sum(fixed),
        comparison: summary.against(fixed),
        steps: told.collect(),
    }
}

fn sum(summary: &Summary) -> api::SimulationSummary {
    api::SimulationSummary {
        node_hours: summary.node_hours,
        changes: summary.changes,
        minutes_below_need: summary.minutes_below_need,
        nodes_max: summary.nodes_max,
    }
}

/// What matters most, in one sentence.
fn summary(
    explained: &Explained,
    asked: u32,
    report: Option<&api::PoolReport>,
    paused: Option<&api::BuyingPaused>,
) -> String {
    let resource = &*explained.resource.value;
    let living = |member: &&argosy_control::instance::Shown| !member.stored.value.state.is_over();
    let running = |member: &&argosy_control::instance::Shown| {
        matches!(member.stored.value.state, State::Running { .. })
    };
    let (living, running) = (
        explained.members.iter().filter(living).count(),
        explained.members.iter().filter(running).count(),
    );
    let target = explained.book.as_ref().and_then(|book| book.value.target).unwrap_or(asked);
    if resource.deletion.is_some() {
        return format!("It is being deleted; {living} of its machines are not known to be gone.");
    }
    let numbers = format!("It is to have {target} nodes; {running} are registered");
    let coming = living.saturating_sub(running);
    let coming = if coming == 0 { String::new() } else { format!(" and {coming} come or go") };
    let why = match (paused, report) {
        (Some(paused), _) => format!(". Nothing is bought: {}", paused.message),
        (None, Some(report)) if report.available != "True" && !report.message.is_empty() => {
            format!(". {}", report.message)
        }
        (None, _) => ".".to_owned(),
    };
    format!("{numbers}{coming}{why}")
}

/// How many nodes the spec asks for.
fn asked(resource: &Resource) -> u32 {
    let count = resource.spec.get("nodeCount").and_then(Value::as_u64);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

fn report(resource: &Resource) -> Option<api::PoolReport> {
    let (_, report) = resource.reports.iter().find(|(name, _)| name.as_str() == MACHINES)?;
    let said = &report.conditions.available;
    let guidance = report.data.get("guidance").and_then(Value::as_str);
    Some(api::PoolReport {
        available: match said.status {
            Tri::True => "True",
            Tri::False => "False",
            Tri::Unknown => "Unknown",
        }
        .to_owned(),
        reason: said.reason.clone(),
        message: said.message.clone(),
        guidance: guidance.map(str::to_owned),
    })
}

/// Where buying failed, that which is tried again last at the end; what may be tried again now is over.
fn places(book: &PoolBook, now: Timestamp) -> Vec<api::PlaceBackoff> {
    let mut waiting: Vec<_> = book.places.iter().filter(|(_, place)| now < place.until).collect();
    waiting.sort_by_key(|(_, place)| place.until);
    let shown = waiting.into_iter().map(|(name, place)| api::PlaceBackoff {
        place: name.clone(),
        failures: place.failures,
        until: place.until.to_string(),
        message: place.trouble.to_string(),
    });
    shown.collect()
}
