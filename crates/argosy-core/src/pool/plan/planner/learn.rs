//! What became of what was bought: whether an update makes things better, and whether replacing still helps.
//!
//! What a newcomer gets wrong: a machine that is sick within its first hour says something of what was ordered,
//! not of chance. One that served for an hour says the opposite, and wipes that out.

use super::super::stand::{outdated_order, serving_since};
use super::{Planner, Standing};
use crate::breaker::{later, passed};
use crate::instance::{Failure, Instance, Purpose, Reason, State};
use crate::machine::{Order, Trouble};
use crate::pool::{
    BuyingPaused, Fate, GoodSpec, IN_VAIN, Member, NOT_MADE, Place, PoolBook, TAKEN_BACK,
    UpdateFailed, VAIN_MAX, Vain, book, cure,
};
use jiff::{SignedDuration, Timestamp};

/// A machine that served for an hour.
struct Proof {
    number: u32,
    kind: String,
    ordered_at: Timestamp,
}

impl Proof {
    fn disproves(&self, vain: &Vain) -> bool {
        self.number == vain.number || self.kind == vain.kind && vain.at <= self.ordered_at
    }
}

/// How long a machine must have served to have done any work.
const TRIAL: SignedDuration = SignedDuration::from_hours(1);

/// So many machines in a row for one seat, or of one kind within an hour, that did no work: a person is asked.
const VAIN_IN_A_ROW: usize = 3;

/// A machine that its provider takes back, or ends, sooner than this after its node registered is no machine.
const SERVED_LEAST: SignedDuration = SignedDuration::from_mins(10);

/// Of so many new nodes in service one may turn sick early by chance: an update of thousands is not stopped by it.
const CHANCE_IN: usize = 50;

impl Planner<'_, '_> {
    /// Remembers what became of what was bought, and stops what makes things worse.
    pub(super) fn learn(&mut self) {
        let made_from = self.picture.spec.made_from();
        let failed = self.picture.book.update_failed.as_ref();
        if self.lifted || failed.is_some_and(|failed| failed.made_from != made_from) {
            let now = self.now;
            let book = self.book_mut();
            *book = book::resumed(book, now);
        }
        let proofs = self.proofs();
        self.forget_what_was_disproved(&proofs);
        for index in 0..self.standings.len() {
            let vain = self.vain(index).filter(|vain| !proofs.iter().any(|it| it.disproves(vain)));
            if let Some(vain) = vain {
                self.remember(index, vain, &made_from);
            }
        }
        self.reopen_places();
        self.judge_kinds(&made_from);
        self.judge_update(&made_from);
        self.remember_good();
    }

    /// Who has served for an hour.
    fn proofs(&self) -> Vec<Proof> {
        // Nothing is held against anybody, nearly always.
        let any = !self.book().vain.is_empty()
            || self.picture.members.iter().any(|member| !is_up(member.instance));
        let serving = self.picture.members.iter().filter(|member| {
            let since = serving_since(member).filter(|_| any);
            since.is_some_and(|since| passed(since, TRIAL, self.now))
        });
        let proof = |one: &Instance| Proof {
            number: one.number,
            kind: kind(&one.order),
            ordered_at: one.ordered_at,
        };
        serving.map(|member| proof(member.instance)).collect()
    }

    /// A machine that served for an hour disproves what was held against its seat, and against older ones of
    /// its kind.
    fn forget_what_was_disproved(&mut self, proofs: &[Proof]) {
        let disproved = |vain: &&Vain| proofs.iter().any(|proof| proof.disproves(vain));
        let last = self.book().vain.iter().filter(disproved).map(|vain| vain.at).max();
        let Some(last) = last else { return };
        let book = self.book_mut();
        // Their records are kept for a while, and must not be counted once more when the one that served ends.
        book.resumed_at = book.resumed_at.max(Some(last));
        book.vain.retain(|vain| !proofs.iter().any(|proof| proof.disproves(vain)));
    }

    /// Whether a machine came to nothing although it was bought.
    fn vain(&self, index: usize) -> Option<Vain> {
        let member = self.member(index)?;
        let instance = member.instance;
        let (at, fate, because) = match &instance.state {
            State::Provisioning(_) | State::AwaitingNode { .. } => return None,
            State::Running { since, .. } => {
                if !matches!(self.standing(index), Standing::Sick { .. }) {
                    return None;
                }
                let at = cure::fell_ill_at(member);
                let early = !passed(*since, TRIAL, at);
                early.then(|| (at, Fate::Sick, cure::ailment(member)))?
            }
            State::Terminating(leaving) => {
                let (fate, because) = self.fate(member, &leaving.reason, leaving.since)?;
                (leaving.since, fate, because)
            }
            State::Terminated { at, reason, .. } => {
                let (fate, because) = self.fate(member, reason, *at)?;
                (*at, fate, because)
            }
            State::Failed { at, failure, .. } => {
                let fate = fate_of(failure)?;
                (*at, fate, failure.message.clone())
            }
        };
        let resumed_at = self.book().resumed_at;
        let counts = resumed_at.is_none_or(|resumed_at| resumed_at < instance.ordered_at);
        // What was ordered before, or by another spec, says nothing of now.
        let of_now = || outdated_order(member, self.picture).is_none();
        (counts && of_now()).then(|| Vain {
            at,
            number: instance.number,
            instance: instance.id.clone(),
            kind: kind(&instance.order),
            purpose: instance.purpose,
            fate,
            because,
            cost: cost(instance, at),
        })
    }

    /// What became of a machine that leaves, or has left, if it did no work.
    fn fate(
        &self,
        member: &Member<'_>,
        why: &Reason,
        left_at: Timestamp,
    ) -> Option<(Fate, String)> {
        let fate = match why {
            Reason::Stale => Fate::NeverRegistered,
            Reason::BadHardware { .. } => {
                member.instance.replaces.is_some().then_some(Fate::BadHardware)?
            }
            Reason::Reclaimed | Reason::Vanished => {
                let served = match (member.instance.node(), member.node) {
                    (None, _) => SignedDuration::ZERO,
                    (Some(_), Some(node)) => left_at.duration_since(node.joined_at),
                    // Its node is forgotten: that takes longer than what matters here.
                    (Some(_), None) => return None,
                };
                (served < SERVED_LEAST).then_some(Fate::TakenBack)?
            }
            Reason::ScaleDown { .. }
            | Reason::PoolDeleted
            | Reason::Replaced { .. }
            | Reason::Sick { .. }
            | Reason::NodeTerminated { .. }
            | Reason::Operator { .. }
            | Reason::Unwanted => return None,
        };
        Some((fate, why.to_string()))
    }

    /// Remembers a machine that did no work, once, and holds it against the place where it was bought.
    fn remember(&mut self, index: usize, vain: Vain, made_from: &str) {
        let Some(instance) = self.member(index).map(|member| member.instance) else { return };
        let known = &self.book().vain;
        let is_known = known.iter().any(|known| known.instance == vain.instance);
        let too_old = VAIN_MAX <= known.len() && known.first().is_some_and(|old| vain.at <= old.at);
        if is_known || too_old {
            return;
        }
        let at = vain.at;
        let trouble = |code: &str| {
            let message = format!("{}: {}", vain.instance, vain.because);
            Trouble::Capacity { code: code.to_owned(), message }
        };
        let against = |book: &PoolBook, trouble: &Trouble, made: bool| {
            book::held_against(book, &instance.order, instance.number, (trouble, made), at)
        };
        let book = self.book();
        let after = match vain.fate {
            Fate::NeverRegistered => {
                Some(book::stale(book, instance, console(instance), made_from, at))
            }
            Fate::TakenBack => Some(against(book, &trouble(TAKEN_BACK), true)),
            Fate::NotMade => Some(against(book, &trouble(NOT_MADE), false)),
            Fate::BadHardware | Fate::Sick => None,
        };
        let book = self.book_mut();
        if let Some(after) = after {
            *book = after;
        }
        let excess = (book.vain.len() + 1).saturating_sub(VAIN_MAX);
        book.vain.drain(..excess);
        let place = book.vain.partition_point(|known| known.at <= vain.at);
        book.vain.insert(place, vain);
    }

    /// A place where machines came to nothing is as good as any again when one that was ordered there since
    /// does its work.
    fn reopen_places(&mut self) {
        let doubted = self.book().places.iter().filter(|(_, backoff)| backoff.made);
        let doubted: Vec<(String, Timestamp, bool)> = doubted
            .map(|(key, backoff)| {
                let taken = matches!(&backoff.trouble, Trouble::Capacity { code, .. } if code == TAKEN_BACK);
                (key.clone(), backoff.until, taken)
            })
            .collect();
        for (key, until, taken) in doubted {
            let mut from: Option<Timestamp> = None;
            for member in &self.picture.members {
                let since = serving_since(member).filter(|_| until <= member.instance.ordered_at);
                let Some(since) = since.filter(|_| Place::of(&member.instance.order).key() == key)
                else {
                    continue;
                };
                let proven = if taken { later(since, SERVED_LEAST) } else { since };
                from = Some(from.map_or(proven, |from| from.min(proven)));
            }
            match from {
                Some(from) if from <= self.now => _ = self.book_mut().places.remove(&key),
                Some(from) => self.wake(from),
                None => {}
            }
        }
    }

    /// Stops buying when most machines of a kind that came up lately were sick before they did any work.
    fn judge_kinds(&mut self, made_from: &str) {
        if self.book().vain.len() < VAIN_IN_A_ROW || self.book().paused.is_some() {
            return;
        }
        let sick = |vain: &&Vain| vain.fate == Fate::Sick;
        let lately = |vain: &&Vain| sick(vain) && !passed(vain.at, TRIAL, self.now);
        let Some(last) = self.book().vain.iter().rfind(lately) else { return };
        let of_kind: Vec<&Vain> =
            self.book().vain.iter().filter(lately).filter(|vain| vain.kind == last.kind).collect();
        let others = self.picture.members.iter().filter(|member| {
            let young = match &member.instance.state {
                State::Running { since, .. } => !passed(*since, TRIAL, self.now),
                State::Provisioning(_)
                | State::AwaitingNode { .. }
                | State::Terminating(_)
                | State::Terminated { .. }
                | State::Failed { .. } => false,
            };
            let known = of_kind.iter().any(|vain| vain.instance == member.instance.id);
            young && !known && kind(&member.instance.order) == last.kind
        });
        let others = others.count();
        if of_kind.len() < VAIN_IN_A_ROW || of_kind.len() < others {
            return;
        }
        let message = format!(
            "{} new machines of one kind ({}) were sick within an hour of their registration, so no more are \
             bought{}. The last was {}: {}",
            of_kind.len(),
            last.kind,
            spent(of_kind.iter().map(|vain| vain.cost)),
            last.instance,
            last.because
        );
        let paused = BuyingPaused {
            since: self.now,
            made_from: made_from.to_owned(),
            reason: IN_VAIN.to_owned(),
            message,
        };
        self.book_mut().paused = Some(paused);
    }

    /// Stops an update when nodes of the new kind turn sick.
    fn judge_update(&mut self, made_from: &str) {
        if self.book().update_failed.is_some() {
            return;
        }
        let by_spec = self.seats.iter().any(|seat| {
            let member = self.member(seat.member).filter(|member| member.notice.is_none());
            seat.outdated.is_some() && member.is_some_and(|member| self.bad_gpu(member).is_none())
        });
        if !by_spec {
            return;
        }
        let new = |vain: &&Vain| vain.fate == Fate::Sick && vain.purpose == Purpose::Update;
        let sick = self.book().vain.iter().filter(new).count();
        let well = self.seats.iter().filter(|seat| {
            let instance = self.member(seat.member).map(|member| member.instance);
            seat.outdated.is_none()
                && self.is_ready(seat.member)
                && instance.is_some_and(|one| one.purpose == Purpose::Update)
        });
        if sick < 1.max(well.count() / CHANCE_IN) {
            return;
        }
        let Some(last) = self.book().vain.iter().rfind(new) else { return };
        let failed = UpdateFailed {
            since: self.now,
            made_from: made_from.to_owned(),
            instance: last.instance.clone(),
            because: last.because.clone(),
        };
        self.book_mut().update_failed = Some(failed);
    }

    /// Remembers the last spec with which every node was in service: what `--rollback` goes back to.
    fn remember_good(&mut self) {
        let resource = self.picture.resource;
        let known = self.book().good.as_ref().map(|good| good.generation);
        let whole = self.target <= self.ready
            && self.seats.iter().all(|seat| seat.outdated.is_none() && seat.replacement.is_none());
        if !whole || self.target == 0 || known == Some(resource.generation) {
            return;
        }
        let since = self.seats.iter().filter_map(|seat| serving_since(self.member(seat.member)?));
        let Some(since) = since.max() else { return };
        let from = later(since, self.picture.spec.min_ready);
        if self.now < from {
            return self.wake(from);
        }
        let good = GoodSpec { generation: resource.generation, spec: resource.spec.clone() };
        self.book_mut().good = Some(good);
    }

    /// Why a seat is not filled anew once more; `None` while it may be.
    pub(super) fn in_vain(&self, number: u32) -> Option<String> {
        // Not the first one: the sick node that was to be replaced may be one that was sick early.
        let replaced = |vain: &&Vain| vain.number == number && vain.purpose != Purpose::Seat;
        let of_seat = self.book().vain.iter().filter(replaced);
        // What a provider does not have, or takes back, another place may have.
        let of_seat = of_seat.filter(|vain| match vain.fate {
            Fate::NeverRegistered | Fate::BadHardware | Fate::Sick => true,
            Fate::NotMade | Fate::TakenBack => false,
        });
        let of_seat: Vec<&Vain> = of_seat.collect();
        let last = of_seat.last()?;
        (VAIN_IN_A_ROW <= of_seat.len()).then(|| {
            format!(
                "{} machines in a row for this node did no work{}; the last was {}: {}",
                of_seat.len(),
                spent(of_seat.iter().map(|vain| vain.cost)),
                last.instance,
                last.because
            )
        })
    }
}

/// What machines are of, as far as it can make them sick.
fn kind(order: &Order) -> String {
    let Order { provider, region, machine_type, spot, image, .. } = order;
    let spot = if *spot { ", spot" } else { "" };
    let image = if image.is_empty() { "default image" } else { image };
    format!("{machine_type} at {provider} {region}{spot}, {image}")
}

/// Whether nothing can be held against a machine: it serves, or is on its way.
const fn is_up(instance: &Instance) -> bool {
    matches!(
        instance.state,
        State::Provisioning(_) | State::AwaitingNode { .. } | State::Running { .. }
    )
}

fn fate_of(failure: &Failure) -> Option<Fate> {
    match failure.reason.as_str() {
        Failure::REGISTRATION_TIMEOUT => Some(Fate::NeverRegistered),
        Failure::GIVEN_UP => Some(Fate::NotMade),
        Failure::ENDED => Some(Fate::TakenBack),
        _ => None,
    }
}

fn console(instance: &Instance) -> &str {
    match &instance.state {
        State::Terminating(leaving) => &leaving.console,
        State::Failed { console, .. } => console,
        State::Provisioning(_)
        | State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Terminated { .. } => "",
    }
}

/// What a machine cost from its order until then, in US dollars.
fn cost(instance: &Instance, until: Timestamp) -> Option<f64> {
    let price = instance.order.price_per_hour.filter(|price| price.is_finite() && 0.0 <= *price)?;
    let seconds = until.duration_since(instance.ordered_at).max(SignedDuration::ZERO).as_secs_f64();
    Some(price * seconds / 3600.0)
}

/// `; they cost $12.50`, as far as the prices are known.
fn spent(costs: impl Iterator<Item = Option<f64>>) -> String {
    let known: Option<f64> = costs.sum();
    known.map(|sum| format!("; they cost ${sum:.2}")).unwrap_or_default()
}
