//! How large a pool should be, and why: `recommend` turns a policy and what was measured into a size.
//!
//! What a newcomer gets wrong: everything is asked relative to the size the pool is *held to*, in which
//! machines that boot are counted. A pool judged by the nodes that have registered orders the same
//! machine again at every look until the first has booted.

mod admit;
mod combine;
mod metrics;
mod predict;
mod queue;
mod reactive;
mod schedule;
mod simulate;
mod source;

use crate::breaker::{later, passed};
use crate::field::reader::Reader;
use crate::field::{Constraint, FieldError};
use crate::span::Written;
use crate::window::sentence;
pub use admit::{CredentialScope, MetricsAccess};
pub use combine::{Composite, Mode};
use jiff::{SignedDuration, Timestamp};
use metrics::{Facts, seconds};
pub use metrics::{
    HISTORY_LEN_MAX, History, JOBS_MAX, Metric, Metrics, RawMetrics, RawSample, Refused, Sample,
};
pub use predict::{Predictive, Season};
pub use queue::{Jobs, Queue};
pub use reactive::Reactive;
pub use schedule::{ENTRIES_MAX, Entry, Scheduled, Size};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
pub use simulate::{SIM_STEPS_MAX, SimPool, SimStep, Summary, simulate};
pub use source::{MetricsFrom, QUERY_LEN_MAX, Source, URL_LEN_MAX};
use std::fmt;

/// How deep policies may be nested: a composite of schedules with fallbacks is three.
pub const DEPTH_MAX: usize = 4;

/// How many policies one pool may have in all: each is asked at every look, and all their reasons are
/// shown.
pub const POLICIES_MAX: usize = 16;

/// The most nodes that a policy may name.
const NODES_MAX: u32 = 1_000_000;

/// The longest cooldown. Whoever wants longer wants no autoscaling.
const COOLDOWN_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Long enough for a loop to look twice, short enough not to lose a burst.
const UP_COOLDOWN: SignedDuration = SignedDuration::from_secs(60);

/// Machines take minutes to come back: what is given away should not be missed at once.
const DOWN_COOLDOWN: SignedDuration = SignedDuration::from_mins(5);

/// What stands in a pool's `spec.autoscaling`: a policy, and how fast it may move the pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// Who decides.
    #[serde(flatten)]
    pub policy: Policy,
    /// How long after any change of size the pool may not grow.
    #[serde(serialize_with = "write_span")]
    pub scale_up_cooldown: SignedDuration,
    /// How long after any change of size it may not shrink.
    #[serde(serialize_with = "write_span")]
    pub scale_down_cooldown: SignedDuration,
    /// The most nodes added or removed at once; without it, the bounds are the only limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_step: Option<u32>,
    /// Where the input comes from.
    pub metrics: MetricsFrom,
}

/// Who decides how large a pool should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Policy {
    /// By utilization.
    Reactive(Reactive),
    /// By jobs.
    Queue(Queue),
    /// By the time.
    Scheduled(Scheduled),
    /// By what is expected.
    Predictive(Predictive),
    /// By several.
    Composite(Composite),
}

/// The kinds of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// By utilization.
    Reactive,
    /// By jobs.
    Queue,
    /// By the time.
    Scheduled,
    /// By what is expected.
    Predictive,
    /// By several.
    Composite,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 5] =
        [Kind::Reactive, Kind::Queue, Kind::Scheduled, Kind::Predictive, Kind::Composite];

    /// As it stands in `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Reactive => "reactive",
            Kind::Queue => "queue",
            Kind::Scheduled => "scheduled",
            Kind::Predictive => "predictive",
            Kind::Composite => "composite",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Autoscaling {
    /// A policy with the usual cooldowns, fed by heartbeats.
    pub fn new(policy: Policy) -> Autoscaling {
        Autoscaling {
            policy,
            scale_up_cooldown: UP_COOLDOWN,
            scale_down_cooldown: DOWN_COOLDOWN,
            max_step: None,
            metrics: MetricsFrom::default(),
        }
    }

    /// Reads `spec.autoscaling`. `field` is where it stands.
    ///
    /// # Errors
    /// One complaint a field; a member that is not known is one.
    pub fn parse(value: &Value, field: &str) -> Result<Autoscaling, Vec<FieldError>> {
        let mut reader = Reader::open(value, field)?;
        let policy = Policy::read(&mut reader, &mut Limits::inside());
        let range = (SignedDuration::ZERO, COOLDOWN_MAX);
        let both = reader.span("cooldown", range);
        let mut cooldown = |name, usual| reader.span(name, range).or(both).unwrap_or(usual);
        let scale_up_cooldown = cooldown("scaleUpCooldown", UP_COOLDOWN);
        let scale_down_cooldown = cooldown("scaleDownCooldown", DOWN_COOLDOWN);
        let max_step = reader.count("maxStep", (1, NODES_MAX));
        let path = reader.path("metrics");
        let metrics = reader.get("metrics").map(|value| MetricsFrom::parse(value, &path));
        let metrics = metrics.and_then(|metrics| reader.take(metrics)).unwrap_or_default();
        reader.close()?;
        let policy = policy.ok_or_else(Vec::new)?;
        Ok(Autoscaling { policy, scale_up_cooldown, scale_down_cooldown, max_step, metrics })
    }
}

impl Policy {
    /// Reads a policy without what surrounds it.
    ///
    /// # Errors
    /// One complaint a field; a member that is not known is one.
    pub fn parse(value: &Value, field: &str) -> Result<Policy, Vec<FieldError>> {
        Limits::new().parse(value, field)
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Policy::Reactive(_) => Kind::Reactive,
            Policy::Queue(_) => Kind::Queue,
            Policy::Scheduled(_) => Kind::Scheduled,
            Policy::Predictive(_) => Kind::Predictive,
            Policy::Composite(_) => Kind::Composite,
        }
    }

    /// `None` after a complaint.
    fn read(reader: &mut Reader<'_>, limits: &mut Limits) -> Option<Policy> {
        if !reader.has("type") {
            let kinds = Kind::ALL.map(Kind::as_str).join(", ");
            reader.complain(
                "type",
                Constraint::Required,
                format_args!("is missing: one of {kinds}"),
            );
        }
        let Some(kind) = reader.choice("type", &Kind::ALL.map(|kind| (kind.as_str(), kind))) else {
            reader.forgive_unknown();
            return None;
        };
        Some(match kind {
            Kind::Reactive => Policy::Reactive(Reactive::read(reader)),
            Kind::Queue => Policy::Queue(Queue::read(reader)),
            Kind::Scheduled => Policy::Scheduled(Scheduled::read(reader, limits)?),
            Kind::Predictive => Policy::Predictive(Predictive::read(reader, limits)?),
            Kind::Composite => Policy::Composite(Composite::read(reader, limits)?),
        })
    }

    fn ask(&self, mind: &mut Mind<'_>) -> Opinion {
        match self {
            Policy::Reactive(reactive) => reactive.ask(&mind.facts),
            Policy::Queue(queue) => queue.ask(&mind.facts),
            Policy::Scheduled(scheduled) => scheduled.ask(mind),
            Policy::Predictive(predictive) => predictive.ask(mind),
            Policy::Composite(composite) => composite.ask(mind),
        }
    }

    /// Which counts of jobs it goes by.
    fn jobs(&self) -> Vec<Jobs> {
        match self {
            Policy::Queue(queue) => vec![queue.metric],
            Policy::Reactive(_) => Vec::new(),
            Policy::Scheduled(Scheduled { fallback, .. })
            | Policy::Predictive(Predictive { fallback, .. }) => {
                fallback.as_ref().map(|inner| inner.jobs()).unwrap_or_default()
            }
            Policy::Composite(composite) => {
                composite.policies.iter().flat_map(Policy::jobs).collect()
            }
        }
    }

    /// The first queue policy in it.
    fn queue(&self) -> Option<&Queue> {
        match self {
            Policy::Queue(queue) => Some(queue),
            Policy::Reactive(_) => None,
            Policy::Scheduled(scheduled) => scheduled.fallback.as_ref()?.queue(),
            Policy::Predictive(predictive) => predictive.fallback.as_ref()?.queue(),
            Policy::Composite(composite) => composite.policies.iter().find_map(Policy::queue),
        }
    }
}

/// What is left of `DEPTH_MAX` and `POLICIES_MAX` while policies are read.
struct Limits {
    depth: usize,
    policies: usize,
}

impl Limits {
    /// For one policy and what is in it.
    fn new() -> Self {
        Limits { depth: DEPTH_MAX, policies: POLICIES_MAX }
    }

    /// For what is in the outermost policy.
    fn inside() -> Self {
        Limits { depth: DEPTH_MAX - 1, policies: POLICIES_MAX - 1 }
    }

    fn parse(&mut self, value: &Value, field: &str) -> Result<Policy, Vec<FieldError>> {
        let too_much = |what: String| {
            let message = format!("{field} is one policy too many: {what}");
            Err(vec![FieldError::new(field, Constraint::Max, message)])
        };
        let Some(depth) = self.depth.checked_sub(1) else {
            return too_much(format!("they may be nested {DEPTH_MAX} deep"));
        };
        let Some(policies) = self.policies.checked_sub(1) else {
            return too_much(format!("a pool may have {POLICIES_MAX} in all"));
        };
        (self.depth, self.policies) = (depth, policies);
        let read = Reader::open(value, field).and_then(|mut reader| {
            let policy = Policy::read(&mut reader, self);
            reader.close()?;
            policy.ok_or_else(Vec::new)
        });
        self.depth += 1;
        read
    }

    /// The member `fallback`, if there is one. `None` after a complaint.
    fn read_fallback(&mut self, reader: &mut Reader<'_>) -> Option<Option<Box<Policy>>> {
        let field = reader.path("fallback");
        let Some(value) = reader.get("fallback") else { return Some(None) };
        let policy = self.parse(value, &field);
        reader.take(policy).map(|policy| Some(Box::new(policy)))
    }

    /// The member `policies`. `None` after a complaint.
    fn read_parts(&mut self, reader: &mut Reader<'_>) -> Option<Vec<Policy>> {
        reader.list("policies", POLICIES_MAX, |value, field| self.parse(value, field))
    }
}

/// The pool as it is.
#[derive(Clone, Copy, Debug)]
pub struct PoolView<'a> {
    /// Its name.
    pub name: &'a str,
    /// The size it is held to now: nodes that are there and machines that boot.
    pub wanted: u32,
    /// How many of its nodes are ready; the metrics are of these.
    pub ready: u32,
    /// Its smallest size.
    pub min: u32,
    /// Its largest size. If it is below `min`, it is the one that holds: nothing is bought by mistake.
    pub max: u32,
    /// What was measured.
    pub metrics: &'a Metrics,
    /// When its size was last changed, by whomever.
    pub last_scaled: Option<Scaled>,
}

/// A change of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaled {
    /// When.
    pub at: Timestamp,
    /// Whether it grew.
    pub up: bool,
}

/// What to do about the size of a pool, with everything that `explain` shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// The size it is held to now.
    pub from: u32,
    /// The size it should be held to.
    pub target: u32,
    /// What the policy wants, before the limits.
    pub wanted: u32,
    /// Which kind of policy that is.
    pub policy: Kind,
    /// Why, in one sentence without an end.
    pub reason: String,
    /// What the policies inside of it said, outer ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartAdvice>,
    /// What keeps the target from what is wanted, or keeps the policy from wanting anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldBy>,
    /// When time alone may change the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// What one policy inside of another said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartAdvice {
    /// Where it stands: `policies[1].fallback`.
    pub at: String,
    /// Which kind it is.
    pub policy: Kind,
    /// What it wants; `None` if it has no opinion.
    pub target: Option<u32>,
    /// Why.
    pub reason: String,
}

/// What holds a pool back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "camelCase")]
pub enum HeldBy {
    /// The last change was too recent.
    Cooldown {
        /// When it is over.
        until: Timestamp,
    },
    /// So many nodes at once at most.
    #[serde(rename_all = "camelCase")]
    MaxStep {
        /// How many.
        max_step: u32,
    },
    /// The pool's own bounds.
    Bounds {
        /// At least.
        min: u32,
        /// At most.
        max: u32,
    },
    /// Nothing is known that the policy could go by; the size stays.
    NoMetrics,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.from)?;
        if self.target != self.from {
            write!(f, " -> {}", self.target)?;
        }
        write!(f, ": {} ({})", self.reason, self.policy)?;
        let wanted = self.wanted;
        match self.held {
            None => Ok(()),
            Some(HeldBy::NoMetrics) => f.write_str("; without an opinion the size stays"),
            Some(HeldBy::Cooldown { until }) => {
                write!(f, "; {wanted} is wanted, but not before {} (cooldown)", seconds(until))
            }
            Some(HeldBy::MaxStep { max_step }) => {
                let most = Counted(max_step, "node");
                write!(f, "; {wanted} is wanted, but at most {most} at once (maxStep)")
            }
            Some(HeldBy::Bounds { min, max }) => {
                write!(f, "; {wanted} is wanted, but the pool has {min} to {max}")
            }
        }
    }
}

/// How large the pool should be.
///
/// Guarantees, whatever the input: the target is inside the pool's bounds, and these win over everything
/// else; unless a bound forces it, there is no move inside a cooldown and none by more than `max_step`;
/// missing, old and impossible measurements move nothing; the same input has the same answer.
pub fn recommend(autoscaling: &Autoscaling, pool: &PoolView<'_>, now: Timestamp) -> Advice {
    let facts = Facts::gather(pool, &autoscaling.metrics, now);
    let mut mind = Mind { facts, path: String::new(), parts: Vec::new() };
    let mut opinion = autoscaling.policy.ask(&mut mind);
    let from = pool.wanted;
    // Bounds hold whatever else is not known.
    let mut sized = opinion.target.or_else(|| opinion.bounds.map(|bounds| bounds.hold(from)));
    if sized.is_none() && opinion.rests {
        sized = Some(pool.min.min(pool.max));
        opinion.reason += ", so the smallest size does (minNodes)";
    }
    let wanted = sized.unwrap_or(from);
    let (target, held) = limit(autoscaling, pool, wanted, now);
    let held = held.or(sized.is_none().then_some(HeldBy::NoMetrics));
    let cooled = match held {
        Some(HeldBy::Cooldown { until }) => Some(until),
        Some(HeldBy::MaxStep { .. } | HeldBy::Bounds { .. } | HeldBy::NoMetrics) | None => None,
    };
    Advice {
        from,
        target,
        wanted,
        policy: autoscaling.policy.kind(),
        reason: opinion.reason,
        parts: mind.parts,
        held,
        next: [cooled, opinion.next].into_iter().flatten().min(),
    }
}

/// What of a wish may be done now, and what holds the rest.
fn limit(
    autoscaling: &Autoscaling,
    pool: &PoolView<'_>,
    wanted: u32,
    now: Timestamp,
) -> (u32, Option<HeldBy>) {
    let from = pool.wanted;
    let (min, max) = (pool.min.min(pool.max), pool.max);
    let bounds = |target: u32, held: Option<HeldBy>| match within(target, min, max) {
        inside if inside == target => (target, held),
        inside => (inside, Some(HeldBy::Bounds { min, max })),
    };
    // A wish beyond the bounds is held by these, not by a cooldown that ends.
    let (target, held) = bounds(wanted, None);
    if target == from {
        return (target, held);
    }
    let cooldown = match from < target {
        true => autoscaling.scale_up_cooldown,
        false => autoscaling.scale_down_cooldown,
    };
    if let Some(last) = pool.last_scaled.filter(|last| !passed(last.at, cooldown, now)) {
        let until = later(last.at, cooldown);
        return bounds(from, Some(HeldBy::Cooldown { until }));
    }
    let Some(max_step) = autoscaling.max_step else { return (target, held) };
    let near = within(target, from.saturating_sub(max_step), from.saturating_add(max_step));
    let held = if near == target { held } else { Some(HeldBy::MaxStep { max_step }) };
    bounds(near, held)
}

/// What a policy thinks.
#[derive(Clone, Debug, PartialEq)]
struct Opinion {
    /// The size it wants; `None` if it cannot know.
    target: Option<u32>,
    /// The bounds that a schedule sets now, for whoever wants a size.
    bounds: Option<Bounds>,
    /// Whether it wants none because no entry of a schedule holds, and not because it cannot know.
    rests: bool,
    /// Why.
    reason: String,
    /// When time alone may change it.
    next: Option<Timestamp>,
}

impl Opinion {
    fn new(target: u32, reason: impl Into<String>) -> Self {
        Opinion { target: Some(target), ..Opinion::none(reason) }
    }

    fn none(why: impl Into<String>) -> Self {
        Opinion { target: None, bounds: None, rests: false, reason: why.into(), next: None }
    }

    /// The same for a reason that comes first.
    fn because(self, outer: &str) -> Self {
        Opinion { reason: format!("{outer}; {}", self.reason), ..self }
    }

    /// The same, but it may change then.
    fn until(self, next: Option<Timestamp>) -> Self {
        Opinion { next: [self.next, next].into_iter().flatten().min(), ..self }
    }
}

/// The sizes that are allowed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    min: u32,
    max: u32,
}

impl Bounds {
    /// The nearest size inside.
    fn hold(self, size: u32) -> u32 {
        within(size, self.min, self.max)
    }

    /// Both at once; where they exclude one another the upper bound holds.
    fn and(self, other: Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.min(other.max) }
    }
}

/// What policies think with: the facts, and the record of who said what.
struct Mind<'a> {
    facts: Facts<'a>,
    path: String,
    parts: Vec<PartAdvice>,
}

impl Mind<'_> {
    /// Asks a policy inside of the one that asks.
    fn ask_part(&mut self, name: &str, policy: &Policy) -> Opinion {
        let outer = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        let (at, place) = (self.path.clone(), self.parts.len());
        let opinion = policy.ask(self);
        self.path.truncate(outer);
        let (target, reason) = (opinion.target, opinion.reason.clone());
        self.parts.insert(place, PartAdvice { at, policy: policy.kind(), target, reason });
        opinion
    }
}

/// Like `clamp`, but without a panic where the bounds are crossed: then the upper one holds.
fn within(value: u32, min: u32, max: u32) -> u32 {
    value.max(min).min(max)
}

/// How many whole nodes so much work needs. What is above by a rounding error is not one more.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn nodes_for(work: f64) -> u32 {
    (work - 1e-9).ceil() as u32
}

/// A number for people: at most one digit after the point, and none that says nothing.
#[derive(Clone, Copy, Debug)]
struct Shown(f64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding zero takes the sign from a negative one.
        let rounded = (self.0 * 10.0).round() / 10.0 + 0.0;
        write!(f, "{rounded}")
    }
}

/// `1 node`, `2 nodes`, `3 policies`.
struct Counted<T>(T, &'static str);

impl<T: fmt::Display> fmt::Display for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(count, noun) = self;
        let count = count.to_string();
        match noun.strip_suffix('y') {
            _ if count == "1" => write!(f, "1 {noun}"),
            Some(stem) => write!(f, "{count} {stem}ies"),
            None => write!(f, "{count} {noun}s"),
        }
    }
}

fn write_span<S: Serializer>(span: &SignedDuration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Written(*span))
}

/// `80`, not `80.0`: as people write it.
#[expect(clippy::cast_possible_truncation, reason = "compared with what it came from")]
fn write_number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = *number as i32;
    match f64::from(whole) == *number {
        true => serializer.serialize_i32(whole),
        false => serializer.serialize_f64(*number),
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Policy::parse(&value, "policy").map_err(|errors| sentence(&errors))
    }
}

impl<'de> Deserialize<'de> for Autoscaling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Autoscaling::parse(&value, "autoscaling").map_err(|errors| sentence(&errors))
    }
}

#[cfg(test)]
mod tests;
