//! What a host says of itself: who has claimed it, who had, and whether its agent runs.

use argosy_core::instance::InstanceId;
use argosy_core::machine::{Machine, MachineId, MachineState, Purchase, Tags};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Whose a host is. It lies on the host itself: there is one truth for all control planes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    /// The form of the claim.
    pub(super) version: u32,
    /// Which record it is for.
    pub(super) instance: InstanceId,
    /// With which token it was asked for.
    pub(super) token: Uuid,
    /// What is written on it.
    pub(super) tags: Tags,
    /// The node pool, by the name that nodes carry.
    pub(super) pool: String,
    /// As what it was bought.
    pub(super) machine_type: String,
    /// Where to ask.
    pub(super) server: String,
    /// Since when.
    pub(super) since: Timestamp,
}

/// The form of claims that we write.
const VERSION: u32 = 1;

impl Claim {
    pub(super) fn new(purchase: &Purchase, server: &str, now: Timestamp) -> Self {
        Self {
            version: VERSION,
            instance: purchase.instance.clone(),
            token: purchase.token,
            tags: purchase.tags.clone(),
            pool: purchase.pool.clone(),
            machine_type: purchase.order.machine_type.clone(),
            server: server.to_owned(),
            since: now,
        }
    }

    /// What tells one attempt at this claim from every other: an attempt that did not come back can be called
    /// off, and a late one then does nothing.
    pub(super) fn attempt(&self) -> String {
        format!("{}-{}", self.token, self.since.as_microsecond())
    }
}

/// What was found where a claim would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tenancy {
    /// Nobody's.
    Free,
    /// Somebody's, perhaps ours.
    Claimed(Claim),
    /// There is a claim that we cannot read: it is not ours to take.
    Unreadable,
    /// There is an agent that nobody claims: somebody installed it by hand.
    Foreign,
}

/// What a host says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    pub(super) tenancy: Tenancy,
    /// Whose it was, and when it was given back.
    pub(super) released: Vec<Released>,
    pub(super) activity: Activity,
}

/// A claim that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Released {
    pub(super) claim: Claim,
    /// How long ago, by the host's clock.
    pub(super) ago: SignedDuration,
}

/// What the agent of a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Installing,
    Runs,
    Stopping,
    Rests,
}

/// How long a claim that is over is shown as gone. The host remembers it for longer.
const GONE_SHOWN: SignedDuration = SignedDuration::from_hours(1);

impl Survey {
    /// Reads what the script printed; `None` if it is not whole.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "argosy-survey 1" || !text.ends_with("\nend\n") {
            return None;
        }
        let mut survey =
            Self { tenancy: Tenancy::Free, released: Vec::new(), activity: Activity::Rests };
        let (mut unit, mut installing) = (false, false);
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "claim" => {
                    let claim = serde_json::from_str(rest);
                    survey.tenancy = claim.map_or(Tenancy::Unreadable, Tenancy::Claimed);
                }
                "released" => survey.released.extend(released(rest)),
                "unit" => unit = true,
                "installing" => installing = true,
                "active" => {
                    survey.activity = match rest {
                        "active" | "activating" | "reloading" => Activity::Runs,
                        "deactivating" => Activity::Stopping,
                        _ => Activity::Rests,
                    }
                }
                _ => {}
            }
        }
        if installing && survey.activity == Activity::Rests {
            survey.activity = Activity::Installing;
        }
        if unit && survey.tenancy == Tenancy::Free {
            survey.tenancy = Tenancy::Foreign;
        }
        Some(survey)
    }

    /// The claim of a token, if it is this host's.
    pub(super) fn claim_of(&self, token: Uuid) -> Option<&Claim> {
        match &self.tenancy {
            Tenancy::Claimed(claim) if claim.token == token => Some(claim),
            Tenancy::Claimed(_) | Tenancy::Free | Tenancy::Unreadable | Tenancy::Foreign => None,
        }
    }

    /// Whether a token was the host's and is no longer.
    pub(super) fn has_released(&self, token: Uuid) -> bool {
        self.released.iter().any(|released| released.claim.token == token)
    }

    /// What claims to show, and how each is.
    pub(super) fn machines(&self) -> Vec<(&Claim, MachineState)> {
        let state = match self.activity {
            Activity::Installing => MachineState::Starting,
            Activity::Runs => MachineState::Running,
            Activity::Stopping => MachineState::Stopping,
            Activity::Rests => MachineState::Stopped,
        };
        let now = match &self.tenancy {
            Tenancy::Claimed(claim) => Some((claim, state)),
            Tenancy::Free | Tenancy::Unreadable | Tenancy::Foreign => None,
        };
        let recent = self.released.iter().filter(|released| released.ago <= GONE_SHOWN);
        now.into_iter()
            .chain(recent.map(|released| (&released.claim, MachineState::Gone)))
            .collect()
    }
}

fn released(text: &str) -> Option<Released> {
    let (seconds, claim) = text.split_once(' ')?;
    let ago = SignedDuration::from_secs(seconds.parse().ok()?);
    Some(Released { claim: serde_json::from_str(claim).ok()?, ago })
}

/// What a machine on a host is called: both, because a host has another machine tomorrow.
pub(super) fn machine_id(host: &str, instance: &InstanceId) -> MachineId {
    MachineId::new(format!("{host}/{instance}"))
}

/// The host and the instance of a machine.
pub(super) fn parts(id: &MachineId) -> Option<(&str, InstanceId)> {
    let (host, instance) = id.as_str().rsplit_once('/')?;
    Some((host, InstanceId::parse(instance).ok()?))
}

/// A claim as a machine. Where it is, the host knows.
pub(super) fn machine(host: &str, claim: &Claim, state: MachineState) -> Machine {
    Machine {
        id: machine_id(host, &claim.instance),
        name: claim.instance.to_string(),
        state,
        tags: claim.tags.clone(),
        region: String::new(),
        zone: String::new(),
        machine_type: claim.machine_type.clone(),
        spot: false,
        created_at: Some(claim.since),
        internal_ip: String::new(),
        external_ip: String::new(),
        notice: None,
    }
}

#[cfg(test)]
mod tests;
