//! What people are told about an instance: since when, why, and what it costs.

use super::{Cure, Departure, Instance, Reason, State};
use crate::machine::Trouble;
use jiff::Timestamp;
use std::borrow::Cow;

impl Cure {
    /// The word, as the API says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cure::Diagnose => "diagnose",
            Cure::Reboot => "reboot",
            Cure::Replace => "replace",
        }
    }
}

impl Reason {
    /// The word, as the API says it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Reason::ScaleDown { .. } => "ScaleDown",
            Reason::PoolDeleted => "PoolDeleted",
            Reason::Replaced { .. } => "Replaced",
            Reason::Sick { .. } => "Unhealthy",
            Reason::Stale => "RegistrationTimeout",
            Reason::BadHardware { .. } => "BadHardware",
            Reason::Reclaimed => "Reclaimed",
            Reason::Vanished => "Vanished",
            Reason::NodeTerminated { .. } => "NodeTerminated",
            Reason::Operator { .. } => "Operator",
            Reason::Unwanted => "Unwanted",
        }
    }
}

impl Instance {
    /// Since when it has been in its state.
    pub const fn since(&self) -> Timestamp {
        match &self.state {
            State::Provisioning(_) => self.ordered_at,
            State::AwaitingNode { since, .. } | State::Running { since, .. } => *since,
            State::Terminating(leaving) => leaving.since,
            State::Terminated { at, .. } | State::Failed { at, .. } => *at,
        }
    }

    /// One word for why it is as it is; empty if all goes as it should.
    pub fn reason(&self) -> &str {
        match &self.state {
            State::Provisioning(buying) => buying.trouble.as_ref().map_or("", Trouble::reason),
            State::AwaitingNode { .. } | State::Running { .. } => {
                self.departure.as_ref().map_or("", |leaves| leaves.reason.as_str())
            }
            State::Terminating(leaving) => leaving.reason.as_str(),
            State::Terminated { reason, .. } => reason.as_str(),
            State::Failed { failure, .. } => &failure.reason,
        }
    }

    /// A sentence about its state.
    pub fn message(&self) -> Cow<'_, str> {
        match &self.state {
            State::Provisioning(buying) => match &buying.trouble {
                Some(trouble) => trouble.to_string().into(),
                None => "its provider was asked to make it".into(),
            },
            State::AwaitingNode { .. } => "its node has not registered yet".into(),
            State::Running { .. } => match &self.departure {
                Some(Departure { reason, deadline, .. }) => format!(
                    "draining until {deadline:.0} at the latest, then it is terminated: {reason}"
                )
                .into(),
                None => "its node has registered".into(),
            },
            State::Terminating(leaving) => match &leaving.trouble {
                Some(trouble) => format!("{}; its provider says: {trouble}", leaving.reason).into(),
                None => leaving.reason.to_string().into(),
            },
            State::Terminated { reason, .. } => reason.to_string().into(),
            State::Failed { failure, .. } => failure.message.as_str().into(),
        }
    }

    /// The end of what it wrote on its console, if that was kept.
    pub fn console(&self) -> Option<&str> {
        let text = match &self.state {
            State::Terminating(leaving) => &leaving.console,
            State::Failed { console, .. } => console,
            State::Provisioning(_)
            | State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminated { .. } => return None,
        };
        Some(text.as_str()).filter(|text| !text.is_empty())
    }

    /// What it costs an hour now, in US dollars: from the order on, because it may exist, until it is gone
    /// for certain. `None` if it is over, or nobody knows.
    pub fn cost_per_hour(&self) -> Option<f64> {
        let price = self.order.price_per_hour.filter(|price| price.is_finite() && 0.0 <= *price);
        price.filter(|_| !self.state.is_over())
    }
}
