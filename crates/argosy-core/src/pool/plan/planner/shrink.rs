//! Who leaves a pool that has more machines than it should.

use super::{Planner, Seat, Standing};
use crate::instance::{InstanceId, Reason};
use crate::node::{Duty, Node};
use crate::pool::Member;
use crate::pool::cure::ailment;
use crate::protect::Protection;
use std::collections::BTreeSet;

/// Protected, adopted, class, not draining yet, how busy, as the spec says, age, and a name that decides among equals.
type Rank<'p> = ((bool, bool), u8, bool, u8, bool, i64, &'p InstanceId);

impl<'p> Planner<'p, '_> {
    /// More seats than wanted: those whose loss disturbs least go first.
    pub(super) fn shrink(&mut self) {
        let seats = u32::try_from(self.seats.len()).unwrap_or(u32::MAX);
        let surplus = usize::try_from(seats.saturating_sub(self.target)).unwrap_or(0);
        if surplus == 0 {
            return;
        }
        let spec = self.picture.spec;
        let by_itself = spec.autoscaling.is_some() && self.picture.book.target.is_some();
        let window = !by_itself || spec.maintenance.contains(self.wall());
        // Replacements whose predecessors stay after all are surplus of our own making.
        let mut made = self.undone_replacements();
        // An autoscaler's change of size disturbs no more at a time than any other of ours; nor does its end.
        let left = self.picture.book.target.filter(|_| spec.autoscaling.is_none());
        let in_steps = by_itself || left.is_some_and(|left| spec.nodes < left);
        let mut steps = spec.max_unavailable.of(self.target.max(1));
        let mut order: Vec<usize> =
            (0..self.seats.len()).filter(|seat| self.rank(*seat).is_some()).collect();
        order.sort_by_cached_key(|seat| self.rank(*seat));
        // Nobody else goes in the place of those of whom nothing is known yet.
        let sure = order.len().saturating_sub(usize::try_from(self.target).unwrap_or(usize::MAX));
        let surplus = surplus.min(sure);
        let mut waits = false;
        for seat in order.into_iter().take(surplus) {
            let Some(Seat { member: index, replacement, .. }) = self.seats.get(seat) else {
                continue;
            };
            let (index, replacement) = (*index, *replacement);
            let ours = 0 < made;
            made = made.saturating_sub(1);
            let reason = match (ours, self.standing(index), self.member(index)) {
                (true, Standing::Sick { .. }, Some(member)) => {
                    Reason::Sick { because: ailment(member) }
                }
                (true, _, _) => Reason::Unwanted,
                (false, _, _) => Reason::ScaleDown { asked: !by_itself },
            };
            let in_service =
                [Some(index), replacement].into_iter().flatten().filter(|one| self.is_ready(*one));
            let in_service = u32::try_from(in_service.count()).unwrap_or(u32::MAX);
            if 0 < in_service && !window {
                waits = true;
                continue;
            }
            // One that is gone already may be all that has to go (B2).
            if 0 < in_service
                && let Some(display) = self.unlisted(index)
            {
                self.summary.unlisted = Some(display);
                continue;
            }
            if 0 < in_service && self.ready < spec.min_available.saturating_add(in_service) {
                continue;
            }
            if let Err(held) = self.permit(index, &reason) {
                self.keep(index, reason, held);
                continue;
            }
            let under_way = self.standing(index) == Standing::Parting;
            if in_steps && (under_way || 0 < in_service) {
                if steps == 0 {
                    continue;
                }
                steps -= 1;
            }
            self.ready = self.ready.saturating_sub(in_service);
            if let Some(seat) = self.seats.get_mut(seat) {
                seat.leaving = true;
            }
            if let Some(replacement) = replacement {
                self.go(replacement, Reason::Unwanted);
            }
            self.go(index, reason);
        }
        if waits {
            self.wait_for_window();
        }
    }

    /// How many seats there are only because a replacement and the node it was for are both in the pool.
    fn undone_replacements(&self) -> usize {
        let seated: BTreeSet<&InstanceId> = self
            .seats
            .iter()
            .filter_map(|seat| self.member(seat.member))
            .map(|member| &member.instance.id)
            .collect();
        let undone = |seat: &&Seat| {
            let replaces = self.member(seat.member).and_then(|it| it.instance.replaces.as_ref());
            replaces.is_some_and(|old| seated.contains(old))
        };
        self.seats.iter().filter(undone).count()
    }

    /// The provider of a machine, if its machines were not compared with our records yet.
    fn unlisted(&self, index: usize) -> Option<&'p str> {
        let provider = &self.member(index)?.instance.order.provider;
        let facts = self.picture.providers.get(provider)?;
        (!facts.compared).then_some(facts.display)
    }

    /// Lets a machine go that is wanted no more: at once if nothing can run on it.
    fn go(&mut self, index: usize, reason: Reason) {
        let Some(member) = self.member(index) else { return };
        let lost = self.standing(index) == Standing::Sick { lost: true };
        if lost || self.standing(index) == Standing::Coming || member.node.is_none() {
            self.leave(index, reason);
        } else {
            self.part(index, "the pool needs fewer nodes", reason);
        }
    }

    /// Who goes first when the pool shrinks; `None`: not at all.
    ///
    /// The sick, who need no replacement then; the cordoned, whether the pool or a person did it; those who are
    /// not up yet, the youngest first; those who are not in service, or that their provider does not show; and
    /// then the others. Of equals those go first whose drain has begun, then the idle, then what is not as the
    /// spec says (another image, another type), then the oldest.
    fn rank(&self, seat: usize) -> Option<Rank<'p>> {
        let Seat { member: index, replacement, outdated, .. } = self.seats.get(seat)?;
        let serving = replacement.is_some_and(|one| self.is_ready(one));
        let member = self.member(*index)?;
        let class = match self.standing(*index) {
            Standing::Condemned(_)
            | Standing::Reclaimed
            | Standing::Terminated(_)
            | Standing::Leaving => return None,
            _ if serving => 4,
            Standing::Sick { .. } => 0,
            Standing::Parting if replacement.is_none() => 1,
            Standing::Held => 1,
            Standing::Coming if member.instance.adopted => return None,
            Standing::Coming => 2,
            Standing::Parting | Standing::Unsure | Standing::Recovering => 3,
            Standing::Ready if member.instance.sight.missing_since.is_some() => 3,
            Standing::Ready => 4,
        };
        let ordered = member.instance.ordered_at.as_second();
        let age = if class == 2 { -ordered } else { ordered };
        let draining = |node: &Node| matches!(node.duty, Duty::Draining { .. });
        let begun = member.node.is_some_and(draining);
        // Who is protected is asked last, and then stays: the gate says so.
        let protected = member.protected == Some(Protection::Node);
        let last = (protected, member.instance.adopted);
        Some((last, class, !begun, busy(member), outdated.is_none(), age, &member.instance.id))
    }
}

/// How busy a node is, in tenths; one of which nobody knows is in the middle.
pub(super) fn busy(member: &Member<'_>) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10")]
    member
        .utilization
        .filter(|share| share.is_finite())
        .map_or(5, |share| (share.clamp(0.0, 1.0) * 10.0).round() as u8)
}
