//! What can happen to a record, one step at a time. None leads back.
//!
//! What a newcomer gets wrong: a step never concludes from one silence. That a machine is not shown means
//! something only when the look began late enough, and was made twice, a minute apart (G3, G4, G7).

use super::{
    BlockedTermination, CONSOLE_LEN_MAX, Cure, Departure, Failure, Instance, InstanceId,
    Provisioning, Purpose, Reason, Sight, State, TRIED_MAX, Terminating, Tried,
};
use crate::backoff;
use crate::gate::{self, Held, Permit};
use crate::id::ResourceId;
use crate::machine::{
    Abilities, Machine, MachineId, MachineState, Notice, NoticeKind, Order, Purchase, Tags, Trouble,
};
use crate::node::NodeId;
use crate::plant::{self, Bug};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use uuid::Uuid;

/// How far apart two looks must be that agree on a machine being absent. One look may have asked a replica
/// that was behind, and the next within a second would ask the same one.
pub const ABSENT_FOR: SignedDuration = SignedDuration::from_secs(60);

/// How long after a call whose answer was lost it may still take effect. Calls are given up after less than
/// a minute; what a provider queues is made within another.
pub const SETTLE: SignedDuration = SignedDuration::from_mins(2);

/// The first wait before a call is repeated, and the longest.
const CALL_AGAIN: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(5), SignedDuration::from_mins(5));

/// The same for a return: it costs by the hour, so it is never given up, and need not be hurried.
const ASK_AGAIN: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(10), SignedDuration::from_mins(10));

/// How long a provider may make us wait. Longer is a mistake of theirs, and a machine may be at stake.
const RETRY_AFTER_MAX: SignedDuration = SignedDuration::from_hours(1);

/// How soon after a return was asked for the first look is worth its call, and how rare looks become.
const LOOK_EVERY: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(1), SignedDuration::from_mins(2));

/// How a look was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingFacts {
    /// When it began, by our clock: what it shows may be as old as this.
    pub began_at: Timestamp,
    /// Whether it was the whole listing, or a search for this one machine.
    pub whole: bool,
    /// Whether the provider's answers cannot be believed now (G11). Then absence says nothing, and presence
    /// what it always says.
    pub frozen: bool,
}

impl Instance {
    /// The intent to buy a machine: to be committed before the first call.
    #[expect(
        clippy::too_many_arguments,
        reason = "a record has so many members, each of another type"
    )]
    pub fn new(
        id: InstanceId,
        tenant: String,
        pool: ResourceId,
        pool_name: &str,
        number: u32,
        token: Uuid,
        order: Order,
        why: String,
        replaces: Option<InstanceId>,
        now: Timestamp,
    ) -> Self {
        let intent = Provisioning { calls: 1, called_at: Some(now), ..Provisioning::default() };
        Self {
            id,
            tenant,
            pool,
            pool_name: pool_name.to_owned(),
            number,
            token,
            order,
            ordered_at: now,
            why,
            replaces,
            purpose: Purpose::Seat,
            adopted: false,
            departure: None,
            blocked: None,
            tried: Vec::new(),
            notice: None,
            sight: Sight::default(),
            state: State::Provisioning(intent),
        }
    }

    /// What the provider is asked for, and is asked about.
    pub fn purchase(&self, installation: Uuid, labels: BTreeMap<String, String>) -> Purchase {
        Purchase {
            instance: self.id.clone(),
            token: self.token,
            tags: Tags {
                installation: Some(installation),
                instance: Some(self.id.clone()),
                pool: Some(self.pool),
                token: Some(self.token),
            },
            order: self.order.clone(),
            number: self.number,
            pool: self.pool_name.clone(),
            tenant: self.tenant.clone(),
            labels,
        }
    }

    /// The intent of one more call with the same token: to be committed before it. Unchanged if there is
    /// nothing to buy any more.
    pub fn called(&self, now: Timestamp) -> Self {
        let State::Provisioning(buying) = &self.state else { return self.clone() };
        let mut again = self.clone();
        if plant::has(Bug::DoublePurchase) && 0 < buying.calls {
            again.token = Uuid::from_u128(self.token.as_u128().wrapping_add(1));
        }
        again.with(State::Provisioning(Provisioning {
            calls: buying.calls.saturating_add(1),
            called_at: Some(now),
            absent_since: None,
            retry_at: None,
            trouble: buying.trouble.clone(),
            // The last call was not proven to have made nothing.
            unsure: buying.unsure || buying.called_at.is_some(),
            node: buying.node.clone(),
        }))
    }

    /// What the provider answered to a call. Unchanged if it says nothing new: answers may come late, twice
    /// and out of order.
    pub fn answered(&self, answer: Result<&Machine, &Trouble>, now: Timestamp) -> Self {
        match (&self.state, answer) {
            (State::Provisioning(buying), Ok(machine)) if self.is_of_another(machine) => {
                self.refused(buying, &wrong(machine), now)
            }
            (State::Provisioning(buying), Ok(machine)) => self.found(buying, machine, now),
            (State::Provisioning(buying), Err(trouble)) => self.refused(buying, trouble, now),
            (State::Terminating(leaving), Ok(machine))
                if leaving.machine.is_none() && !self.is_of_another(machine) =>
            {
                self.found_leaving(leaving, machine, now)
            }
            (
                State::AwaitingNode { .. }
                | State::Running { .. }
                | State::Terminating(_)
                | State::Terminated { .. }
                | State::Failed { .. },
                _,
            ) => self.clone(),
        }
    }

    /// Whether a machine carries the token of another purchase. A provider that shows one to whoever asks for
    /// this one is wrong: two records would have one machine, and the end of one would be the end of both.
    pub fn is_of_another(&self, machine: &Machine) -> bool {
        machine.tags.token.is_some_and(|token| token != self.token)
    }

    /// What a look for it or a whole listing tells; `None`: nothing new. `shown` is the machine with its
    /// id, token, instance tag or name.
    pub fn seen(
        &self,
        shown: Option<&Machine>,
        look: ListingFacts,
        abilities: &Abilities,
        now: Timestamp,
    ) -> Option<Self> {
        match (&self.state, shown) {
            // What an older look shows may be what an older call made, which is proven gone by now.
            (State::Provisioning(buying), _)
                if buying.called_at.is_some_and(|called_at| look.began_at < called_at) =>
            {
                None
            }
            (State::Provisioning(_), Some(machine)) if self.is_of_another(machine) => {
                (!look.whole).then(|| self.unseen(&wrong(machine), now))
            }
            (State::Provisioning(buying), Some(machine)) => Some(self.found(buying, machine, now)),
            (State::Provisioning(buying), None) => self.unfound(buying, look, abilities, now),
            (State::AwaitingNode { machine, .. } | State::Running { machine, .. }, Some(shown)) => {
                (shown.id == *machine).then(|| self.shown(shown, now)).flatten()
            }
            (State::AwaitingNode { since, .. } | State::Running { since, .. }, None) => {
                self.unshown(*since, look, abilities, now)
            }
            (State::Terminating(leaving), Some(machine)) if !self.is_of_another(machine) => {
                self.shown_leaving(leaving, machine, look, now)
            }
            // What carries another's token is not what is to go: a host may serve the next one already.
            (State::Terminating(leaving), _) => self.unshown_leaving(leaving, look, abilities, now),
            (State::Terminated { .. } | State::Failed { .. }, _) => None,
        }
    }

    /// A look failed: nothing is known, and it is made again later.
    pub fn unseen(&self, trouble: &Trouble, now: Timestamp) -> Self {
        match &self.state {
            State::Provisioning(buying) => {
                let since = buying.called_at.unwrap_or(self.ordered_at);
                let wait = patience(trouble, pace(since, now));
                let retry_at = Some(after(now, wait));
                self.with(State::Provisioning(Provisioning { retry_at, ..buying.clone() }))
            }
            State::Terminating(leaving) => {
                let wait = patience(trouble, pace(leaving.since, now));
                let retry_at = Some(after(now, wait));
                self.with(State::Terminating(Terminating { retry_at, ..leaving.clone() }))
            }
            State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminated { .. }
            | State::Failed { .. } => self.clone(),
        }
    }

    /// Its node has registered; `None` if that is known, or over. To be said again whenever both exist: a
    /// node may be faster than the answer of the provider that made it.
    pub fn registered(&self, node: &NodeId, now: Timestamp) -> Option<Self> {
        let node = node.clone();
        let state = match &self.state {
            State::AwaitingNode { machine, .. } => {
                State::Running { machine: machine.clone(), node, since: now }
            }
            State::Provisioning(buying) if buying.node.is_none() => {
                // It is there, so it is looked for now.
                let known = Provisioning {
                    node: Some(node),
                    called_at: buying.called_at.or(Some(now)),
                    absent_since: None,
                    retry_at: None,
                    ..buying.clone()
                };
                State::Provisioning(known)
            }
            State::Terminating(leaving) if leaving.node.is_none() => {
                State::Terminating(Terminating { node: Some(node), ..leaving.clone() })
            }
            State::Provisioning(_)
            | State::Running { .. }
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. } => return None,
        };
        Some(self.with(state))
    }

    /// Whether its node is known, now that it runs; `None` if that is no news. To be said again whenever either
    /// changes: a machine whose node was forgotten is somebody's to look after, and pays for nothing.
    pub fn accompanied(&self, known: bool, now: Timestamp) -> Option<Self> {
        let State::Running { .. } = &self.state else { return None };
        let nodeless_since = match (known, self.sight.nodeless_since) {
            (true, Some(_)) => None,
            (false, None) => Some(now),
            (true, None) | (false, Some(_)) => return None,
        };
        let sight = Sight { nodeless_since, ..self.sight.clone() };
        Some(Self { sight, ..self.clone() })
    }

    /// The intent to drain it, and then to return it: to be committed before its node is told. A stronger reason
    /// replaces a weaker one and keeps the deadline. `None` if that is no news, or no node of it runs.
    pub fn departing(&self, permit: Permit, deadline: Timestamp, now: Timestamp) -> Option<Self> {
        let State::Running { .. } = &self.state else { return None };
        let reason = permit.into_reason();
        let departure = match &self.departure {
            None => Departure { reason, since: now, deadline },
            Some(known) if reason.outweighs(&known.reason) => Departure { reason, ..known.clone() },
            Some(_) => return None,
        };
        Some(Self { departure: Some(departure), blocked: None, ..self.clone() })
    }

    /// Nobody led for so long while it was on its way out: what was left of its drain is left still. `None` if it was
    /// not to go.
    pub fn postponed(&self, by: SignedDuration) -> Option<Self> {
        let known = self.departure.as_ref()?;
        let deadline = known.deadline.checked_add(by).unwrap_or(Timestamp::MAX);
        Some(Self { departure: Some(Departure { deadline, ..known.clone() }), ..self.clone() })
    }

    /// It is wanted after all; `None` if it was not to go.
    pub fn staying(&self) -> Option<Self> {
        self.departure.as_ref()?;
        Some(Self { departure: None, ..self.clone() })
    }

    /// What it costs an hour became known.
    #[must_use]
    pub fn priced(&self, price_per_hour: f64) -> Self {
        let order = Order { price_per_hour: Some(price_per_hour), ..self.order.clone() };
        Self { order, ..self.clone() }
    }

    /// It is to go and stays for now, because of this guard; or no guard keeps it, or nobody wants it gone, any
    /// more. `None` if that is no news, or it leaves already.
    pub fn blocked(&self, held: Option<&Held>, now: Timestamp) -> Option<Self> {
        if matches!(self.state, State::Terminating(_)) || self.state.is_over() {
            return None;
        }
        let blocked = held.map(|held| {
            let (guard, message) = (held.as_str().to_owned(), held.to_string());
            let since = self.blocked.as_ref().map_or(now, |known| known.since);
            BlockedTermination { guard, message, since }
        });
        (blocked != self.blocked).then(|| Self { blocked, ..self.clone() })
    }

    /// The intent to return it: to be committed before the gate is asked. `None` if it is over or leaves
    /// already, unless for a weaker reason.
    pub fn leaving(&self, permit: Permit, now: Timestamp) -> Option<Self> {
        self.left(permit.into_reason(), now)
    }

    fn left(&self, reason: Reason, now: Timestamp) -> Option<Self> {
        let fresh = |machine, node| leave(reason.clone(), machine, node, now);
        let state = match &self.state {
            State::Provisioning(buying) if buying.called_at.is_none() => {
                return Some(self.over(&fresh(None, buying.node.as_ref()), now));
            }
            State::Provisioning(buying) => State::Terminating(fresh(None, buying.node.as_ref())),
            State::AwaitingNode { machine, .. } => State::Terminating(fresh(Some(machine), None)),
            State::Running { machine, node, .. } => {
                State::Terminating(fresh(Some(machine), Some(node)))
            }
            State::Terminating(leaving) if reason.outweighs(&leaving.reason) => {
                State::Terminating(Terminating { reason, retry_at: None, ..leaving.clone() })
            }
            State::Terminating(_) | State::Terminated { .. } | State::Failed { .. } => return None,
        };
        let (sight, departure, blocked) = (Sight::default(), None, None);
        Some(Self { sight, departure, blocked, ..self.with(state) })
    }

    /// What the provider answered to a return. A yes is not the end of it, and neither is a 404 (G6, G7).
    pub fn asked(&self, answer: Result<(), &Trouble>, now: Timestamp) -> Self {
        let State::Terminating(leaving) = &self.state else { return self.clone() };
        let calls = leaving.calls.saturating_add(1);
        let wait = match answer {
            Ok(()) | Err(Trouble::NotFound(_)) => LOOK_EVERY.0,
            Err(trouble) => patience(trouble, self.delay(calls, ASK_AGAIN)),
        };
        self.with(State::Terminating(Terminating {
            calls,
            retry_at: Some(after(now, wait)),
            trouble: answer.err().cloned(),
            ..leaving.clone()
        }))
    }

    /// People were told that its return takes too long; `None` if they were, or it is over.
    pub fn alarmed(&self) -> Option<Self> {
        match &self.state {
            State::Terminating(leaving) if !leaving.alarmed => Some(
                self.with(State::Terminating(Terminating { alarmed: true, ..leaving.clone() })),
            ),
            State::Provisioning(_)
            | State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. } => None,
        }
    }

    /// Keeps the end of what it wrote on its console, cleaned; `None` if it is not leaving, or that is kept
    /// already.
    pub fn kept_console(&self, text: &str) -> Option<Self> {
        let State::Terminating(leaving) = &self.state else { return None };
        let clean: String =
            text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
        let cut = clean.len().saturating_sub(CONSOLE_LEN_MAX);
        let start = (cut..=clean.len()).find(|&at| clean.is_char_boundary(at));
        let console = start.and_then(|at| clean.get(at..)).unwrap_or_default();
        if console.is_empty() || console == leaving.console {
            return None;
        }
        let kept = Terminating { console: console.to_owned(), ..leaving.clone() };
        Some(self.with(State::Terminating(kept)))
    }

    /// Remembers what is tried to make its node well. The oldest of `TRIED_MAX` is forgotten.
    pub fn tried(&self, cure: Cure, because: &str, now: Timestamp) -> Self {
        let mut after = self.clone();
        let because = because.to_owned();
        after.tried.push(Tried { cure, at: now, because, outcome: String::new() });
        let excess = after.tried.len().saturating_sub(TRIED_MAX);
        after.tried.drain(..excess);
        after
    }

    /// Remembers what came of the last cure; `None` if there was none, or that is known.
    pub fn outcome_of_last(&self, text: &str) -> Option<Self> {
        let mut after = self.clone();
        let last = after.tried.last_mut().filter(|last| last.outcome.is_empty())?;
        text.clone_into(&mut last.outcome);
        (!text.is_empty()).then_some(after)
    }

    /// When a purchase may be repeated whose answer is not known.
    pub(super) fn call_again_at(&self, calls: u32, called_at: Timestamp) -> Timestamp {
        after(called_at, self.delay(calls, CALL_AGAIN))
    }

    fn with(&self, state: State) -> Self {
        Self { state, ..self.clone() }
    }

    fn delay(&self, calls: u32, (first, max): (SignedDuration, SignedDuration)) -> SignedDuration {
        backoff::delay(self.id.as_str(), calls, first, max)
    }

    /// The machine of a purchase is there.
    fn found(&self, buying: &Provisioning, shown: &Machine, now: Timestamp) -> Self {
        let machine = shown.id.clone();
        if shown.state == MachineState::Gone {
            let Some(node) = &buying.node else {
                let message =
                    format!("{machine} was ended by its provider before its node registered");
                return self.failed(Failure::ENDED, message, String::new(), now);
            };
            // Its node has to be marked, and is not forgotten before.
            let gone = leave(Reason::Vanished, Some(&machine), Some(node), now);
            return self.with(State::Terminating(gone));
        }
        self.with(match buying.node.clone() {
            Some(node) => State::Running { machine, node, since: now },
            None => State::AwaitingNode { machine, since: now },
        })
    }

    /// The provider did not do what a call asked for, or nobody knows.
    fn refused(&self, buying: &Provisioning, trouble: &Trouble, now: Timestamp) -> Self {
        let mut next = Provisioning { trouble: Some(trouble.clone()), ..buying.clone() };
        match trouble {
            Trouble::Unsure(_) => {
                next.called_at = buying.called_at.or(Some(now));
                next.unsure = true;
            }
            Trouble::Throttled { .. } | Trouble::Unreachable(_) => {
                let wait = patience(trouble, self.delay(buying.calls, CALL_AGAIN));
                next.retry_at = Some(after(now, wait));
                if !buying.unsure && buying.node.is_none() {
                    if gives_up(trouble, buying.calls) {
                        return self.given_up(buying.calls, trouble, now);
                    }
                    next.called_at = None;
                }
            }
            // It may be there all the same, from a call before: it is looked for, and fails then.
            _ if buying.unsure || buying.node.is_some() => {}
            Trouble::Quota { .. }
            | Trouble::Capacity { .. }
            | Trouble::Credentials(_)
            | Trouble::Denied { .. }
            | Trouble::Invalid { .. }
            | Trouble::NotFound(_)
            | Trouble::Unable(_) => {
                return self.failed(trouble.reason(), trouble.to_string(), String::new(), now);
            }
        }
        self.with(State::Provisioning(next))
    }

    /// A look did not show the machine of a purchase.
    fn unfound(
        &self,
        buying: &Provisioning,
        look: ListingFacts,
        abilities: &Abilities,
        now: Timestamp,
    ) -> Option<Self> {
        let called_at = buying.called_at?;
        if look.frozen {
            // Nothing is concluded, and a search is not made again at once.
            let retry_at = Some(after(now, ABSENT_FOR));
            let later = Provisioning { retry_at, ..buying.clone() };
            return (!look.whole).then(|| self.with(State::Provisioning(later)));
        }
        let next = match buying.absent_since {
            None => Provisioning { absent_since: Some(look.began_at), ..buying.clone() },
            // Its node has registered from it: the provider is wrong, and buying it again would pay twice.
            // Listings that miss it do not put off the search for it.
            Some(_) if buying.node.is_some() && look.whole => return None,
            Some(_) if buying.node.is_some() => {
                Provisioning { absent_since: Some(look.began_at), ..buying.clone() }
            }
            Some(since) if !proven(since, settled_at(called_at, abilities), look) => return None,
            Some(_) => match &buying.trouble {
                Some(trouble) if is_final(trouble) => {
                    let message = trouble.to_string();
                    return Some(self.failed(trouble.reason(), message, String::new(), now));
                }
                Some(trouble) if gives_up(trouble, buying.calls) => {
                    return Some(self.given_up(buying.calls, trouble, now));
                }
                Some(_) | None => Provisioning {
                    called_at: None,
                    absent_since: None,
                    unsure: false,
                    ..buying.clone()
                },
            },
        };
        Some(self.with(State::Provisioning(next)))
    }

    /// A machine that should be up is shown.
    fn shown(&self, shown: &Machine, now: Timestamp) -> Option<Self> {
        let stopped = match shown.state {
            MachineState::Gone => {
                let reason = if shown.spot { Reason::Reclaimed } else { Reason::Vanished };
                return self.left(reason, now);
            }
            MachineState::Stopped => true,
            MachineState::Starting | MachineState::Running | MachineState::Stopping => false,
        };
        let stopped_since = stopped.then(|| self.sight.stopped_since.unwrap_or(now));
        let sight = Sight { missing_since: None, stopped_since, ..self.sight.clone() };
        let notice = match &shown.notice {
            Some(Notice { kind: NoticeKind::Unknown, .. }) => self.notice.clone(),
            told => told.clone(),
        };
        let news = sight != self.sight || notice != self.notice;
        news.then(|| Self { sight, notice, ..self.clone() })
    }

    /// A machine that should be up is not shown.
    fn unshown(
        &self,
        since: Timestamp,
        look: ListingFacts,
        abilities: &Abilities,
        now: Timestamp,
    ) -> Option<Self> {
        if !look.whole || look.frozen || look.began_at < after(since, abilities.list_lag) {
            return None;
        }
        match self.sight.missing_since {
            None => {
                let sight = Sight { missing_since: Some(look.began_at), ..self.sight.clone() };
                Some(Self { sight, ..self.clone() })
            }
            Some(missing) if proven(missing, since, look) => self.left(Reason::Vanished, now),
            Some(_) => None,
        }
    }

    /// A return began before it was known whether there is a machine, and there is one.
    fn found_leaving(&self, leaving: &Terminating, shown: &Machine, now: Timestamp) -> Self {
        let known = Terminating {
            machine: Some(shown.id.clone()),
            // It may have been made a moment ago, after its return began: absence counts from here.
            since: now,
            absent_since: None,
            retry_at: None,
            ..leaving.clone()
        };
        match shown.state {
            MachineState::Gone => self.over(&known, now),
            MachineState::Starting
            | MachineState::Running
            | MachineState::Stopping
            | MachineState::Stopped => self.with(State::Terminating(known)),
        }
    }

    /// A machine that is to go is shown.
    fn shown_leaving(
        &self,
        leaving: &Terminating,
        shown: &Machine,
        look: ListingFacts,
        now: Timestamp,
    ) -> Option<Self> {
        match &leaving.machine {
            None => return Some(self.found_leaving(leaving, shown, now)),
            Some(machine) if *machine != shown.id => return None,
            Some(_) => {}
        }
        let mut next = Terminating { absent_since: None, ..leaving.clone() };
        // Only a look that began after the provider was asked says how it took that.
        let answers = 0 < leaving.calls
            && asked_to_look(leaving)
            && leaving.retry_at.is_none_or(|at| at <= look.began_at);
        match shown.state {
            MachineState::Gone => return Some(self.over(leaving, now)),
            MachineState::Stopping if answers => {
                next.retry_at = Some(after(now, pace(leaving.since, now)));
            }
            MachineState::Starting | MachineState::Running | MachineState::Stopped if answers => {
                let word = format!("{:?}", shown.state).to_lowercase();
                let message = format!("it was told to end {}, which is {word}", shown.id);
                next.trouble = Some(Trouble::Unsure(message));
                next.retry_at = Some(after(now, self.delay(leaving.calls, ASK_AGAIN)));
            }
            MachineState::Starting
            | MachineState::Running
            | MachineState::Stopping
            | MachineState::Stopped => {}
        }
        (next != *leaving).then(|| self.with(State::Terminating(next)))
    }

    /// A machine that is to go is not shown.
    fn unshown_leaving(
        &self,
        leaving: &Terminating,
        look: ListingFacts,
        abilities: &Abilities,
        now: Timestamp,
    ) -> Option<Self> {
        if look.began_at < leaving.since {
            return None;
        }
        if look.frozen {
            let retry_at = Some(after(now, ABSENT_FOR));
            let later = Terminating { retry_at, ..leaving.clone() };
            return (!look.whole).then(|| self.with(State::Terminating(later)));
        }
        match leaving.absent_since {
            None => {
                let absent = Terminating { absent_since: Some(look.began_at), ..leaving.clone() };
                Some(self.with(State::Terminating(absent)))
            }
            Some(since) if proven(since, gone_at(leaving, abilities), look) => {
                Some(self.over(leaving, now))
            }
            Some(_) => None,
        }
    }

    /// It is gone for certain.
    fn over(&self, leaving: &Terminating, now: Timestamp) -> Self {
        match (&leaving.reason, &leaving.node) {
            // One that registered at the last moment has a node to be marked, and that is in `Terminated`.
            (Reason::Stale, None) => {
                let machine =
                    leaving.machine.as_ref().map_or_else(String::new, |id| format!(" from {id}"));
                let message =
                    format!("its node did not register{machine} in time; the machine is returned");
                self.failed(Failure::REGISTRATION_TIMEOUT, message, leaving.console.clone(), now)
            }
            (reason, node) => self.with(State::Terminated {
                machine: leaving.machine.clone(),
                node: node.clone(),
                at: now,
                reason: reason.clone(),
            }),
        }
    }

    /// A purchase that is proven to have made nothing, and would make nothing if it were tried once more.
    fn given_up(&self, calls: u32, trouble: &Trouble, now: Timestamp) -> Self {
        let message = format!("asked for {calls} times, and not made: {trouble}");
        self.failed(Failure::GIVEN_UP, message, String::new(), now)
    }

    fn failed(&self, reason: &str, message: String, console: String, now: Timestamp) -> Self {
        let failure = Failure { reason: reason.to_owned(), message };
        self.with(State::Failed { at: now, failure, console })
    }
}

impl Reason {
    /// Whether it takes the place of another one: a person's wish that of our own.
    pub(crate) fn outweighs(&self, other: &Self) -> bool {
        gate::strength(other) < gate::strength(self)
    }
}

/// A provider showed the machine of another purchase.
fn wrong(machine: &Machine) -> Trouble {
    Trouble::Unsure(format!("{} was shown, which carries another's token", machine.id))
}

/// A return that begins now.
fn leave(
    reason: Reason,
    machine: Option<&MachineId>,
    node: Option<&NodeId>,
    now: Timestamp,
) -> Terminating {
    Terminating {
        machine: machine.cloned(),
        node: node.cloned(),
        since: now,
        reason,
        calls: 0,
        retry_at: None,
        trouble: None,
        absent_since: None,
        alarmed: false,
        console: String::new(),
    }
}

/// The time so much later.
pub(super) fn after(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// From when on absence proves that a call whose answer was lost made nothing (G3, G4).
pub(super) fn settled_at(called_at: Timestamp, abilities: &Abilities) -> Timestamp {
    // What was made a minute after the call is shown after the lag at the latest.
    after(called_at, SETTLE.max(abilities.list_lag.saturating_add(ABSENT_FOR)))
}

/// From when on absence proves that a machine is gone which is to go.
pub(super) fn gone_at(leaving: &Terminating, abilities: &Abilities) -> Timestamp {
    match leaving.machine {
        Some(_) => after(leaving.since, abilities.list_lag),
        None => settled_at(leaving.since, abilities),
    }
}

/// Whether the provider took our wish to end a machine, so that a look has to say what came of it.
pub(super) fn asked_to_look(leaving: &Terminating) -> bool {
    matches!(leaving.trouble, None | Some(Trouble::NotFound(_)))
}

/// Whether a second look that did not show a machine proves that there is none.
fn proven(absent_since: Timestamp, from: Timestamp, look: ListingFacts) -> bool {
    after(absent_since, ABSENT_FOR) <= look.began_at && from <= look.began_at
}

/// Whether asking again would get the same answer, so that another order is better.
pub(super) fn is_final(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Unsure(_) | Trouble::Throttled { .. } | Trouble::Unreachable(_) => false,
        Trouble::Quota { .. }
        | Trouble::Capacity { .. }
        | Trouble::Credentials(_)
        | Trouble::Denied { .. }
        | Trouble::Invalid { .. }
        | Trouble::NotFound(_)
        | Trouble::Unable(_) => true,
    }
}

/// Whether a purchase without a clear answer was tried often enough: another place may do better.
///
/// With the pauses in between five calls are more than a minute, and who is throttled waits for its turn behind
/// others of ours.
pub(super) fn gives_up(trouble: &Trouble, calls: u32) -> bool {
    match trouble {
        Trouble::Throttled { .. } => 12 <= calls,
        Trouble::Unsure(_)
        | Trouble::Quota { .. }
        | Trouble::Capacity { .. }
        | Trouble::Credentials(_)
        | Trouble::Denied { .. }
        | Trouble::Invalid { .. }
        | Trouble::NotFound(_)
        | Trouble::Unreachable(_)
        | Trouble::Unable(_) => 5 <= calls,
    }
}

/// How long to wait: as the provider wants it, but no less than we would by ourselves.
fn patience(trouble: &Trouble, ours: SignedDuration) -> SignedDuration {
    let Trouble::Throttled { retry_after_s: Some(seconds), .. } = trouble else { return ours };
    ours.max(SignedDuration::from_secs(i64::from(*seconds)).min(RETRY_AFTER_MAX))
}

/// How long until the next look at something that goes on since then: half of its age.
pub(super) fn pace(since: Timestamp, now: Timestamp) -> SignedDuration {
    (now.duration_since(since) / 2).clamp(LOOK_EVERY.0, LOOK_EVERY.1)
}
