//! What the adapter `machines` reports of a pool: in words that say what is, what is being done, and what
//! somebody should do.

use super::book::REGISTRATION_UNHEALTHY;
use super::choice::{Closed, Place};
use super::cure::ailment;
use super::plan::{Blocked, Cost, Sick, Summary};
use super::{
    Backoff, COST_GUARD, IN_VAIN, Member, NOT_MADE, PRICE_UNKNOWN, Picture, PoolBook, TAKEN_BACK,
};
use crate::incarnation::Forecast;
use crate::instance::{Purpose, State};
use crate::machine::Trouble;
use crate::node::Node;
use crate::span::Written;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How many machines a sentence names: the rest is a number.
const NAMED_MAX: usize = 3;

/// How many machines a report lists: it is stored with the pool each time it changes.
const MACHINES_MAX: usize = 200;

/// What the adapter `machines` reports.
///
/// Every `data` has `nodesWanted`, `nodesReady` and `cost_per_hour` (`null` if nobody knows a price).
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is not the adapter's turn: nothing is reported.
    Waiting,
    /// Every node is ready. Available, Applied and Health are True.
    Ready {
        /// `AllNodesReady`.
        reason: String,
        /// `5 of 5 nodes ready`.
        message: String,
        /// With `machines`, the ids of the first two hundred instances.
        data: Map<String, Value>,
    },
    /// It is on its way. Available is False, Applied and Health are True.
    Progress {
        /// `ProvisioningInProgress`.
        reason: String,
        /// Whom is waited for.
        message: String,
        /// See `Outcome`.
        data: Map<String, Value>,
    },
    /// Something keeps it from what was asked for. Available is False.
    Failed {
        /// One word: `QuotaExceeded`.
        reason: String,
        /// Which node of how many, and why.
        message: String,
        /// Whether anything that was asked for exists: Applied.
        applied: bool,
        /// Whether nothing is wrong with what exists: Health.
        healthy: bool,
        /// With `guidance`, what to do.
        data: Map<String, Value>,
    },
    /// The pool is being deleted, and machines are left. Available is False, Applied and Health are True.
    Removing {
        /// `CleanupInProgress`.
        reason: String,
        /// Which machines are left.
        message: String,
        /// See `Outcome`.
        data: Map<String, Value>,
    },
    /// The pool is being deleted, and every machine is known to be gone. Finalized is True.
    Removed {
        /// `NodesRemoved`.
        reason: String,
        /// `All nodes removed`.
        message: String,
        /// See `Outcome`.
        data: Map<String, Value>,
    },
}

impl Outcome {
    /// Of a pool that is being deleted and never had a machine.
    pub fn removed() -> Self {
        let data = Map::from_iter([
            ("nodesWanted".to_owned(), json!(0)),
            ("nodesReady".to_owned(), json!(0)),
            ("cost_per_hour".to_owned(), json!(0.0)),
        ]);
        Outcome::Removed {
            reason: "NodesRemoved".to_owned(),
            message: "All nodes removed".to_owned(),
            data,
        }
    }

    /// One word: the reason of its conditions; empty if nothing is reported.
    pub fn reason(&self) -> &str {
        match self {
            Outcome::Waiting => "",
            Outcome::Ready { reason, .. }
            | Outcome::Progress { reason, .. }
            | Outcome::Failed { reason, .. }
            | Outcome::Removing { reason, .. }
            | Outcome::Removed { reason, .. } => reason,
        }
    }

    /// The sentence of its conditions.
    pub fn message(&self) -> &str {
        match self {
            Outcome::Waiting => "",
            Outcome::Ready { message, .. }
            | Outcome::Progress { message, .. }
            | Outcome::Failed { message, .. }
            | Outcome::Removing { message, .. }
            | Outcome::Removed { message, .. } => message,
        }
    }
}

/// Of a pool that is being deleted.
pub(super) fn removing(picture: &Picture<'_>, left: &[usize], cost: &Cost<'_>) -> Outcome {
    if left.is_empty() {
        return Outcome::removed();
    }
    let names: Vec<&str> = left.iter().filter_map(|index| name(picture, *index)).collect();
    let troubled =
        left.iter().filter_map(|index| picture.members.get(*index)).find_map(
            |member| match &member.instance.state {
                State::Terminating(leaving) => leaving.trouble.as_ref(),
                State::Provisioning(_)
                | State::AwaitingNode { .. }
                | State::Running { .. }
                | State::Terminated { .. }
                | State::Failed { .. } => None,
            },
        );
    let mut said =
        troubled.map(|trouble| format!("; the provider says: {trouble}")).unwrap_or_default();
    let deadlines = left.iter().filter_map(|index| {
        let departure = picture.members.get(*index)?.instance.departure.as_ref()?;
        Some(departure.deadline)
    });
    let deadlines: Vec<Timestamp> = deadlines.collect();
    if let Some(last) = deadlines.iter().max() {
        let _ = write!(said, "; {} draining, until {last:.0} at the latest", deadlines.len());
    }
    if let Some(recovery) = picture.recovery {
        let _ = write!(said, "; {}", recovery.why);
    }
    let mut data = Map::new();
    data.insert("nodesWanted".to_owned(), json!(0));
    data.insert("nodesReady".to_owned(), json!(0));
    data.insert("cost_per_hour".to_owned(), per_hour(cost));
    let first: Vec<&str> = names.iter().copied().take(MACHINES_MAX).collect();
    data.insert("machines".to_owned(), json!(first));
    Outcome::Removing {
        reason: "CleanupInProgress".to_owned(),
        message: format!("Removing nodes; {} left: {}{said}", names.len(), listed(&names)),
        data,
    }
}

/// Of a pool in recovery: how it is, and what it would do.
pub(super) fn recovering(
    picture: &Picture<'_>,
    forecast: &Forecast,
    summary: &Summary<'_>,
    cost: &Cost<'_>,
) -> Outcome {
    let teller = Teller { picture, book: picture.book, summary, cost, now: Timestamp::MIN };
    let mut message = teller.counted();
    if let Some(recovery) = picture.recovery {
        let _ = write!(message, "; {}", recovery.why);
    }
    if !forecast.is_nothing() {
        let _ = write!(message, "; {forecast}");
    }
    if let Some(waits_for) = &forecast.waits_for {
        let _ = write!(message, "; waiting for {waits_for}");
    }
    let data = teller.data();
    let wanted = usize::try_from(summary.target).unwrap_or(usize::MAX);
    if wanted <= summary.ready.len() {
        return Outcome::Ready { reason: "AllNodesReady".to_owned(), message, data };
    }
    Outcome::Progress { reason: RECOVERY.to_owned(), message, data }
}

/// The reason of a pool that has not all its nodes and does nothing about it, because it is in recovery.
const RECOVERY: &str = "Recovery";

/// Of a pool that is wanted; `book` as it will be kept.
pub(super) fn of(
    picture: &Picture<'_>,
    book: &PoolBook,
    summary: &Summary<'_>,
    cost: &Cost<'_>,
    now: Timestamp,
) -> Outcome {
    let teller = Teller { picture, book, summary, cost, now };
    if book.update_failed.is_some() && 0 < summary.outdated {
        return teller.update_failed();
    }
    let wanted = usize::try_from(summary.target).unwrap_or(usize::MAX);
    let enough = wanted <= summary.ready.len();
    let in_vain = book.paused.as_ref().is_some_and(|paused| paused.reason == IN_VAIN);
    if in_vain && !(enough && summary.sick.is_empty()) {
        return teller.replaced_in_vain();
    }
    match &summary.blocked {
        Some((Purpose::Seat, blocked)) => return teller.refused(blocked),
        Some((Purpose::Sick, blocked)) if !enough => return teller.replacement_blocked(blocked),
        Some((Purpose::Update, blocked)) => return teller.update_blocked(blocked),
        Some((Purpose::Sick, _)) | None => {}
    }
    if 0 < summary.outdated && summary.missing == 0 && summary.sick.is_empty() {
        return teller.updating();
    }
    if enough {
        return teller.ready();
    }
    if !summary.sick.is_empty() {
        return teller.degraded();
    }
    teller.progress()
}

struct Teller<'t, 'p, 'a> {
    picture: &'t Picture<'a>,
    book: &'t PoolBook,
    summary: &'t Summary<'p>,
    cost: &'t Cost<'p>,
    now: Timestamp,
}

impl Teller<'_, '_, '_> {
    fn data(&self) -> Map<String, Value> {
        let ready = &self.summary.ready;
        let names = ready.iter().filter_map(|index| name(self.picture, *index));
        let names: Vec<&str> = names.take(MACHINES_MAX).collect();
        Map::from_iter([
            ("nodesWanted".to_owned(), json!(self.summary.target)),
            ("nodesReady".to_owned(), json!(ready.len())),
            ("cost_per_hour".to_owned(), per_hour(self.cost)),
            ("machines".to_owned(), json!(names)),
        ])
    }

    fn counted(&self) -> String {
        let (ready, target) = (self.summary.ready.len(), self.summary.target);
        format!("{ready} of {target} nodes ready")
    }

    fn ready(&self) -> Outcome {
        let target = self.summary.target;
        let mut message = format!("{target} of {target} nodes ready");
        let more = self.summary.parting.len();
        if 0 < more {
            let names: Vec<&str> = self
                .summary
                .parting
                .iter()
                .filter_map(|index| name(self.picture, *index))
                .collect();
            let are = if more == 1 { "is" } else { "are" };
            let _ = write!(message, "; {more} more {are} on the way out: {}", listed(&names));
        }
        if let Some(display) = self.summary.unlisted {
            let _ = write!(
                message,
                "; others leave after the first listing of the machines at {display}"
            );
        }
        self.say_kept(&mut message);
        if let Some(paused) = &self.book.paused {
            let _ = write!(message, "; {}", paused.message);
        }
        Outcome::Ready { reason: "AllNodesReady".to_owned(), message, data: self.data() }
    }

    /// Who is to go, and what keeps them: they cost until they are gone.
    fn say_kept(&self, message: &mut String) {
        let kept = &self.summary.kept;
        let Some((_, _, held)) = kept.first() else { return };
        let names: Vec<&str> =
            kept.iter().filter_map(|(index, _, _)| name(self.picture, *index)).collect();
        let prices = kept.iter().map(|(index, _, _)| {
            self.picture.members.get(*index).and_then(|member| member.instance.cost_per_hour())
        });
        let sum: Option<f64> = prices.sum();
        let cost = sum.map_or_else(String::new, |sum| format!(" at ${sum:.2} per hour"));
        let stay = if kept.len() == 1 { "is to go and stays" } else { "are to go and stay" };
        let _ = write!(message, "; {} {stay}{cost}: {held}", listed(&names));
    }

    /// An update made things worse, and was stopped.
    fn update_failed(&self) -> Outcome {
        let Summary { target, outdated, .. } = self.summary;
        let mut message = format!("{}; the update was stopped", self.counted());
        if let Some(failed) = &self.book.update_failed {
            let _ = write!(
                message,
                ": {} is of the new kind and was sick within an hour of its registration: {}",
                failed.instance, failed.because
            );
        }
        let _ = write!(message, "; {outdated} of {target} are as they were before");
        self.say_kept(&mut message);
        let guidance = "Change the spec, go back with argosy nodepool resume POOL --rollback, or go on with \
                        argosy nodepool resume POOL.";
        self.failed("UpdateFailed", message, guidance, (true, false))
    }

    /// What is bought does no work, so nothing more is bought.
    fn replaced_in_vain(&self) -> Outcome {
        let why = self.book.paused.as_ref().map(|paused| paused.message.as_str());
        let message = format!("{}. {}", self.counted(), why.unwrap_or_default());
        let guidance = "Find out why new machines are sick: the image, the driver, the hardware. Buying goes on \
                        when the spec asks for other machines, or with argosy nodepool resume POOL.";
        self.failed("NeedsHuman", message, guidance, (true, false))
    }

    fn progress(&self) -> Outcome {
        let Summary { target, ready, unsure, held, .. } = self.summary;
        let kind = self.picture.spec.types.first();
        let kind = kind.map(|kind| format!(" of type {kind}")).unwrap_or_default();
        let fresh = ready.is_empty() && unsure.is_empty() && held.is_empty();
        let mut message =
            if fresh { format!("Provisioning {target} nodes{kind}") } else { self.counted() };
        let waiting = self.waiting_for();
        if !waiting.is_empty() {
            let _ = write!(message, "; {}", waiting.join("; "));
        }
        let reason = "ProvisioningInProgress".to_owned();
        Outcome::Progress { reason, message, data: self.data() }
    }

    /// Whom is waited for, and since when.
    fn waiting_for(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let ordered_at = |index: &usize| {
            self.picture.members.get(*index).map(|member| member.instance.ordered_at)
        };
        // A time and not an age, so that waiting is not news.
        let oldest = self.summary.coming.iter().filter_map(ordered_at).min();
        let late = |at: &Timestamp| 60 <= self.now.duration_since(*at).as_secs();
        if let Some(since) = oldest.filter(late) {
            let names: Vec<&str> =
                self.summary.coming.iter().filter_map(|index| name(self.picture, *index)).collect();
            parts.push(format!("waiting for {} to register since {since:.0}", listed(&names)));
        }
        let trouble = self.summary.coming.iter().find_map(|index| {
            let member = self.picture.members.get(*index)?;
            match &member.instance.state {
                State::Provisioning(buying) => Some((member, buying.trouble.as_ref()?)),
                State::AwaitingNode { .. }
                | State::Running { .. }
                | State::Terminating(_)
                | State::Terminated { .. }
                | State::Failed { .. } => None,
            }
        });
        if let Some((member, trouble)) = trouble {
            let display = self.display(&member.instance.order.provider);
            parts.push(format!("{display} says: {trouble}"));
        }
        for index in self.summary.unsure.iter().take(NAMED_MAX) {
            let Some(member) = self.picture.members.get(*index) else { continue };
            parts.push(format!(
                "{} {}",
                member.instance.id,
                member.node.map_or("has no node", unready)
            ));
        }
        for index in self.summary.held.iter().take(NAMED_MAX) {
            let hold = self.picture.members.get(*index).and_then(|member| member.node?.duty.hold());
            if let Some((name, hold)) = name(self.picture, *index).zip(hold) {
                parts.push(format!("{name} is held by {}: {}", hold.by, hold.reason));
            }
        }
        parts
    }

    fn degraded(&self) -> Outcome {
        let human = self.summary.sick.iter().any(|sick| sick.human);
        let mut message = self.counted();
        for sick in self.summary.sick.iter().take(NAMED_MAX) {
            let _ = write!(message, "; {}", self.ill(sick));
        }
        let more = self.summary.sick.len().saturating_sub(NAMED_MAX);
        if 0 < more {
            let _ = write!(message, "; {more} more are sick");
        }
        let waiting = self.waiting_for();
        if !waiting.is_empty() {
            let _ = write!(message, "; {}", waiting.join("; "));
        }
        let mut data = self.data();
        let guidance = match (human, self.summary.stopped) {
            (true, _) => {
                "Look at the node yourself: argosy node get <id> says what was found and tried. Repair \
                 it and uncordon it, or terminate it to have another in its place."
            }
            (false, Some(_)) => "Let automatic action go on, or repair the node and uncordon it.",
            (false, None) => "Nothing has to be done: it is taken care of.",
        };
        data.insert("guidance".to_owned(), json!(guidance));
        let reason = if human { "NeedsHuman" } else { "NodesUnhealthy" };
        Outcome::Failed { reason: reason.to_owned(), message, applied: true, healthy: false, data }
    }

    /// `node 3 of 5 (workers-x) is sick: …; a replacement is ordered`.
    fn ill(&self, sick: &Sick) -> String {
        let Some(member) = self.picture.members.get(sick.member) else { return String::new() };
        let (number, target, id) =
            (member.instance.number, self.summary.target, &member.instance.id);
        format!("node {number} of {target} ({id}) is sick: {}; {}", ailment(member), sick.doing)
    }

    fn updating(&self) -> Outcome {
        let Summary {
            target, outdated, outdated_in, window, window_short, soaking, stopped, ..
        } = self.summary;
        let what = outdated_in.as_ref().map(|what| format!(": {what}")).unwrap_or_default();
        let mut message =
            format!("{}; {outdated} of {target} to be replaced{what}", self.counted());
        if let Some(stopped) = stopped {
            let _ = write!(message, "; they stay for now: {stopped}");
        } else if let Some(takes) = window_short {
            let _ = write!(
                message,
                "; what is left of the maintenance window is shorter than one replacement may take: {} \
                 (boot, minReady and drain)",
                Written(*takes)
            );
        } else if let Some(opens) = window {
            let _ = write!(message, "; the next maintenance window opens at {opens}");
        }
        if let Some(first) = soaking.first().and_then(|index| name(self.picture, *index)) {
            let least = Written(self.picture.spec.min_ready);
            let _ = write!(
                message,
                "; {first} is new, and has to be in service for {least} (minReady)"
            );
        }
        self.say_kept(&mut message);
        let waiting = self.waiting_for();
        if !waiting.is_empty() {
            let _ = write!(message, "; {}", waiting.join("; "));
        }
        Outcome::Progress { reason: "UpdateInProgress".to_owned(), message, data: self.data() }
    }

    fn failed(
        &self,
        reason: &str,
        message: String,
        guidance: &str,
        (applied, healthy): (bool, bool),
    ) -> Outcome {
        let mut data = self.data();
        data.insert("guidance".to_owned(), json!(guidance));
        if let Some((_, Blocked::NoPlace { until: Some(until), .. })) = &self.summary.blocked {
            data.insert("retryAt".to_owned(), json!(until.to_string()));
        }
        Outcome::Failed { reason: reason.to_owned(), message, applied, healthy, data }
    }

    /// A seat stays empty.
    fn refused(&self, blocked: &Blocked<'_>) -> Outcome {
        if let Blocked::NoPlace { closed, .. } = blocked
            && let Some(display) = only_not_compared(closed)
        {
            let message = format!(
                "{}; waiting for the first listing of the machines at {display}",
                self.counted()
            );
            let reason = "ProvisioningInProgress".to_owned();
            return Outcome::Progress { reason, message, data: self.data() };
        }
        let Refusal { reason, message, guidance, healthy } = self.refusal(blocked);
        let healthy = healthy && self.summary.sick.is_empty();
        self.failed(reason, message, &guidance, (false, healthy))
    }

    /// A sick node is kept because there is no other to be had.
    fn replacement_blocked(&self, blocked: &Blocked<'_>) -> Outcome {
        let Refusal { message, guidance, .. } = self.refusal(blocked);
        let first = self.summary.sick.first().map(|sick| self.ill(sick)).unwrap_or_default();
        let message =
            format!("{}; {first}. Its replacement cannot be bought: {message}", self.counted());
        self.failed("ReplacementBlocked", message, &guidance, (true, false))
    }

    /// Nodes that are not what the spec asks for are kept because there are no others to be had.
    fn update_blocked(&self, blocked: &Blocked<'_>) -> Outcome {
        let Refusal { reason, message, guidance, .. } = self.refusal(blocked);
        let Summary { target, outdated, .. } = self.summary;
        let message = format!(
            "{}; {outdated} of {target} are to be replaced and are kept, because others cannot be \
             bought: {message}",
            self.counted()
        );
        let healthy = self.summary.sick.is_empty();
        self.failed(reason, message, &guidance, (false, healthy))
    }

    fn display(&self, provider: &str) -> String {
        let facts = self.picture.providers.get(provider);
        facts.map_or(provider, |facts| facts.display).to_owned()
    }

    fn refusal(&self, blocked: &Blocked<'_>) -> Refusal {
        match blocked {
            Blocked::Paused(paused) => Refusal {
                reason: REGISTRATION_UNHEALTHY,
                message: format!("{}. {}", self.counted(), paused.message),
                guidance:
                    "Find out why machines do not come up: the image, the network, the agent's \
                           settings. Buying goes on when the pool's spec changes."
                        .to_owned(),
                healthy: false,
            },
            Blocked::Cost { sum, next, max } => Refusal {
                reason: COST_GUARD,
                message: format!(
                    "{}. The pool costs ${sum:.2} per hour; another node for ${next:.2} would exceed \
                     spec.maxHourlyCost, which is ${max:.2}",
                    self.counted()
                ),
                guidance: "Raise spec.maxHourlyCost, or ask for fewer or cheaper nodes.".to_owned(),
                healthy: true,
            },
            Blocked::PriceUnknown { machine_type, provider } => Refusal {
                reason: PRICE_UNKNOWN,
                message: format!(
                    "{}. spec.maxHourlyCost is set, and the price of {machine_type} at {} is not known",
                    self.counted(),
                    self.display(provider)
                ),
                guidance: format!(
                    "Set the price in the configuration (providers.{provider}.prices, or price_per_hour \
                     where the provider lists its machine types), or remove spec.maxHourlyCost."
                ),
                healthy: true,
            },
            Blocked::BadHardware { machines, until } => Refusal {
                reason: "BadHardware",
                message: format!(
                    "{}. {machines} machines within an hour came with GPUs that are known to be bad, so \
                     none is bought until {until}",
                    self.counted()
                ),
                guidance: "Tell the provider which GPUs are bad, or buy in another zone or region."
                    .to_owned(),
                healthy: false,
            },
            Blocked::NoPlace { closed, until } => self.no_place(closed, *until),
        }
    }

    fn no_place(&self, closed: &[Closed<'_>], until: Option<Timestamp>) -> Refusal {
        // What failed says more than what was not tried.
        match closed.first() {
            Some(Closed::Failed(display, place, backoff)) => {
                let others = closed.len() - 1;
                self.refused_at(display, place, backoff, others, until)
            }
            Some(Closed::Paused(display, paused)) => Refusal {
                reason: paused.trouble.reason(),
                message: format!(
                    "{}. Nothing is bought at {display}, which says: {}",
                    self.counted(),
                    paused.trouble
                ),
                guidance: paused.trouble.guidance(),
                healthy: true,
            },
            Some(Closed::Frozen(_, frozen)) => Refusal {
                reason: "ProviderFrozen",
                message: format!("{}. {}", self.counted(), frozen.message),
                guidance:
                    "Compare the provider's console with argosy instance list; then say that its \
                           listing is right, or wait until it shows the machines again."
                        .to_owned(),
                healthy: true,
            },
            Some(Closed::NoProvider(why)) => Refusal {
                reason: "ProviderNotConfigured",
                message: format!("{}. Nothing can be bought: {why}", self.counted()),
                guidance: "Configure the provider, or name another in spec.providers.".to_owned(),
                healthy: true,
            },
            Some(Closed::Lacks(why)) => Refusal {
                reason: "InvalidSpec",
                message: format!("{}. Nothing can be bought: {why}", self.counted()),
                guidance: "Change spec.machineType, spec.machineTypes or spec.capacity.".to_owned(),
                healthy: true,
            },
            Some(Closed::NotCompared(display)) => Refusal {
                reason: "ProvisioningInProgress",
                message: format!(
                    "{}. The machines at {display} have not been listed yet",
                    self.counted()
                ),
                guidance: "Nothing has to be done.".to_owned(),
                healthy: true,
            },
            None => Refusal {
                reason: "ProvisioningFailed",
                message: format!("{}. There is nowhere to buy", self.counted()),
                guidance: "Name a provider, a region and a machine type.".to_owned(),
                healthy: true,
            },
        }
    }

    fn refused_at(
        &self,
        display: &str,
        place: &Place,
        backoff: &Backoff,
        others: usize,
        until: Option<Timestamp>,
    ) -> Refusal {
        let target = self.summary.target;
        let mut guidance = backoff.trouble.guidance();
        let (reason, message) = match &backoff.trouble {
            Trouble::Quota { resource, each, available, message } => {
                let reason = "QuotaExceeded";
                let what = quota_of(resource, place);
                guidance = format!("Reduce the node count or request a quota increase for {what}.");
                let head = format!(
                    "Insufficient quota to provision {target} nodes of type {}",
                    place.machine_type
                );
                if *each == 0 {
                    (reason, format!("{head}. {display} says: {message}"))
                } else {
                    // What the nodes that exist use was there for them.
                    let used = each.saturating_mul(self.alike(place));
                    let required = each.saturating_mul(u64::from(target));
                    let available = available.saturating_add(used);
                    (
                        reason,
                        format!(
                            "{head}. Required: {required} {resource}, Available: {available} {resource}"
                        ),
                    )
                }
            }
            Trouble::Capacity { code, message } if own_reason(code).is_some() => {
                let (reason, way) = own_reason(code).unwrap_or_default();
                way.clone_into(&mut guidance);
                (reason, format!("{}. {message}", self.counted()))
            }
            Trouble::Capacity { code, .. } => {
                guidance =
                    "It is tried again by itself. If the provider stays out of machines, choose \
                            another machine type, zone or region, or fewer nodes."
                        .to_owned();
                let number = backoff.number;
                (
                    "ProvisioningFailed",
                    format!(
                        "Failed to provision node {number} of {target}. {display} error: {code}"
                    ),
                )
            }
            trouble @ (Trouble::Credentials(_)
            | Trouble::Denied { .. }
            | Trouble::Invalid { .. }
            | Trouble::Unable(_)
            | Trouble::Unsure(_)
            | Trouble::Throttled { .. }
            | Trouble::NotFound(_)
            | Trouble::Unreachable(_)) => (
                trouble.reason(),
                format!(
                    "Failed to provision node {} of {target}. {display} says: {trouble}",
                    backoff.number
                ),
            ),
        };
        if 0 < others {
            let _ = write!(guidance, " {others} other places were tried, or cannot be.");
        }
        if let Some(until) = until.filter(|until| self.now < *until) {
            let _ = write!(guidance, " The next try is at {until}.");
        }
        Refusal { reason, message, guidance, healthy: true }
    }

    /// How many of the pool's machines come out of the same allowance.
    fn alike(&self, place: &Place) -> u64 {
        let alike = self.picture.members.iter().filter(|member: &&Member<'_>| {
            let order = &member.instance.order;
            let same = order.provider == place.provider
                && order.region == place.region
                && order.machine_type == place.machine_type;
            let exists = match &member.instance.state {
                State::AwaitingNode { .. } | State::Running { .. } => true,
                State::Provisioning(_)
                | State::Terminating(_)
                | State::Terminated { .. }
                | State::Failed { .. } => false,
            };
            same && exists
        });
        u64::try_from(alike.count()).unwrap_or(u64::MAX)
    }
}

/// Why nothing is bought, and what to do.
struct Refusal {
    reason: &'static str,
    message: String,
    guidance: String,
    healthy: bool,
}

fn quota_of(resource: &str, place: &Place) -> String {
    match place.region.is_empty() {
        true => resource.to_owned(),
        false => format!("{resource} in {}", place.region),
    }
}

/// The provider, if nothing but its first listing is waited for.
fn only_not_compared<'a>(closed: &[Closed<'a>]) -> Option<&'a str> {
    match closed {
        [Closed::NotCompared(display)] => Some(*display),
        _ => None,
    }
}

/// Why a registered node is not in service, where nobody acts on it.
fn unready(node: &Node) -> &'static str {
    use crate::health::HealthState;
    use crate::node::Liveness;
    if node.duty.hold().is_some() {
        return "is well again, and held for a while longer";
    }
    match (node.liveness, node.health.state) {
        (Liveness::Unreachable, _) => "is unreachable",
        (Liveness::Suspect, _) => "has not been heard for a while",
        (Liveness::Fresh, HealthState::Unknown) => {
            "has registered, and its first checks are awaited"
        }
        (Liveness::Fresh, HealthState::Unhealthy) => "is sick, and about to be cordoned",
        (Liveness::Fresh, HealthState::Healthy | HealthState::Degraded) => "is coming back",
    }
}

fn name<'a>(picture: &Picture<'a>, index: usize) -> Option<&'a str> {
    picture.members.get(index).map(|member| member.instance.id.as_str())
}

/// `a, b, c and 4 more`.
fn listed(names: &[&str]) -> String {
    let (named, more) = names.split_at(names.len().min(NAMED_MAX));
    let named = named.join(", ");
    if more.is_empty() { named } else { format!("{named} and {} more", more.len()) }
}

/// `null` if somebody's price is not known: a sum that leaves it out would be a lie.
/// The reason and the way out of what we hold against a place ourselves; `None` of what its provider says.
fn own_reason(code: &str) -> Option<(&'static str, &'static str)> {
    match code {
        COST_GUARD => Some((
            COST_GUARD,
            "Raise machines.max_hourly_cost in the configuration, or ask for fewer or cheaper nodes.",
        )),
        PRICE_UNKNOWN => Some((
            PRICE_UNKNOWN,
            "Set the price in the configuration, or remove machines.max_hourly_cost.",
        )),
        TAKEN_BACK => Some((
            "TakenBack",
            "It is tried again. Choose capacity on-demand, or another zone, region or machine type.",
        )),
        NOT_MADE => Some((
            "ProvisioningGivenUp",
            "It is tried again. Ask the provider why its API does not answer, or name another in spec.providers.",
        )),
        _ => None,
    }
}

fn per_hour(cost: &Cost<'_>) -> Value {
    // Sums of prices have a tail of digits that nobody wants to read.
    if cost.unknown { Value::Null } else { json!((cost.sum * 10_000.0).round() / 10_000.0) }
}

#[cfg(test)]
mod tests;
