//! What a pool in recovery would do: its plan as it is made for every pool, told instead of carried out.

use super::Planner;
use crate::breaker::later;
use crate::incarnation::{Forecast, Would};
use crate::instance::{Instance, Reason, State};
use crate::pool::Member;
use jiff::Timestamp;

impl Planner<'_, '_> {
    /// In recovery, turns what is to be done into what would be done. Whatever the plan holds, none of it is left.
    pub(super) fn foretell(&mut self) {
        let Some(recovery) = self.picture.recovery else { return };
        let mut forecast =
            Forecast { waits_for: self.waits_for(recovery.excuse), ..Forecast::default() };
        let mut told = Vec::new();
        for (index, reason, _) in &self.summary.kept {
            told.push(*index);
            if let Some(member) = self.member(*index) {
                let (instance, reason) = (member.instance.id.clone(), reason.to_string());
                forecast.add(Would::Terminate {
                    instance,
                    drain: self.may_run_work(*index),
                    reason,
                });
            }
        }
        for (index, member) in self.picture.members.iter().enumerate() {
            if !told.contains(&index)
                && let Some(reason) = self.decided_before(member)
            {
                let instance = member.instance.id.clone();
                forecast.add(Would::Terminate { instance, drain: false, reason });
            }
        }
        let called =
            self.picture.members.iter().map(|member| member.instance).filter(|one| is_called(one));
        let ordered = called.map(|one| (&one.order, &one.why));
        for (order, why) in ordered.chain(self.plan.buy.iter().map(|buy| (&buy.order, &buy.why))) {
            forecast.add(Would::Buy {
                machine_type: order.machine_type.clone(),
                provider: order.provider.clone(),
                reason: why.clone(),
            });
        }
        self.plan.buy.clear();
        self.plan.steps.clear();
        self.plan.book = None;
        self.plan.forecast = Some(forecast);
    }

    /// What has to be seen before it is known what would be done.
    fn waits_for(&mut self, excuse: Option<&str>) -> Option<String> {
        let unlisted = self.picture.providers.values().find(|facts| !facts.compared);
        if let Some(facts) = unlisted {
            return Some(format!("the first listing of the machines at {}", facts.display));
        }
        if let Some(excuse) = excuse {
            return Some(format!("nodes to connect again: {excuse}"));
        }
        let waiting: Vec<Timestamp> =
            self.picture.members.iter().filter_map(|member| self.registers_until(member)).collect();
        let last = waiting.iter().max()?;
        if let Some(first) = waiting.iter().min().filter(|first| self.now < **first) {
            self.wake(*first);
        }
        let (count, last) = (waiting.len(), *last);
        let machines = if count == 1 { "machine" } else { "machines" };
        Some(format!("{count} {machines} to register, until {last:.0} at the latest"))
    }

    /// Until when a machine may register, or its provider may say what became of its purchase.
    fn registers_until(&self, member: &Member<'_>) -> Option<Timestamp> {
        let (one, limit) = (member.instance, self.picture.register_within);
        let until = match &one.state {
            State::AwaitingNode { since, .. } => {
                later(*since, limit.saturating_mul(if one.adopted { 2 } else { 1 }))
            }
            State::Provisioning(_) if !is_called(one) => later(one.ordered_at, limit),
            State::Provisioning(_)
            | State::Running { .. }
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. } => return None,
        };
        (self.now < until).then_some(until)
    }

    /// Why a machine would be terminated that the plan leaves to the record's own steps.
    fn decided_before(&self, member: &Member<'_>) -> Option<String> {
        match &member.instance.state {
            // What its provider has ended already is not ours to end.
            State::Terminating(leaving) => {
                let gone = leaving.absent_since.is_some()
                    || matches!(leaving.reason, Reason::Vanished | Reason::Reclaimed);
                (!gone).then(|| leaving.reason.to_string())
            }
            State::AwaitingNode { .. } => {
                self.registers_until(member).is_none().then(|| Reason::Stale.to_string())
            }
            State::Provisioning(_)
            | State::Running { .. }
            | State::Terminated { .. }
            | State::Failed { .. } => None,
        }
    }
}

/// Whether the provider would be asked for it now: nothing is known to have been made, or it is asked again.
fn is_called(one: &Instance) -> bool {
    match &one.state {
        State::Provisioning(buying) => {
            buying.node.is_none() && (buying.called_at.is_none() || buying.absent_since.is_some())
        }
        State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Terminating(_)
        | State::Terminated { .. }
        | State::Failed { .. } => false,
    }
}
