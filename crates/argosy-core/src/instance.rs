//! The record of a machine that we buy, from the intent to the proof that it is gone.
//!
//! Intent first: a record exists, with the token of the call, before the provider is asked; what the
//! provider answered is written down after. What lies between is found out by looking, never by guessing.
//!
//! What a newcomer gets wrong: an instance is not a node. It is what we pay for; the node is the agent that
//! registers from it, under the instance's id.

mod kept;
mod next;
mod step;
mod told;

pub use kept::{FAILED_KEPT_MAX, surplus};
pub use next::{Limits, Next, next};
pub use step::{ABSENT_FOR, ListingFacts, SETTLE};

use crate::field::{Constraint, FieldError};
use crate::id::ResourceId;
use crate::machine::{MachineId, Notice, Order, Trouble};
use crate::node::NodeId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// What the end of an id is written with: no letters that look alike.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// How long the end of an id is: five bits a letter, enough by far beside the check for a record of the same
/// name.
const SUFFIX_LEN: usize = 8;

/// What an instance is called: also the machine's name at the provider, and the id of its node.
///
/// A DNS label, so that every provider takes it: `workers-0f3k9a2m`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// The longest id: that of a DNS label.
    pub const LEN_MAX: usize = 63;

    /// A new id for a machine of a pool. `unique` is never used twice.
    pub fn mint(pool: &str, unique: Uuid) -> Self {
        // A v7 UUID is random at its end.
        let mut rest = unique.as_u128();
        let mut letter = || {
            let letter = LETTERS.get((rest & 31) as usize).copied().unwrap_or(b'0');
            rest >>= 5;
            char::from(letter)
        };
        let suffix: String = (0..SUFFIX_LEN).map(|_| letter()).collect();
        // Providers want a letter first.
        let start =
            if pool.starts_with(|first: char| first.is_ascii_lowercase()) { "" } else { "p" };
        let room = Self::LEN_MAX - suffix.len() - 1 - start.len();
        // A pool of another cluster is called `cluster.pool`, and a dot ends a DNS label.
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let pool: String =
            pool.chars().map(|letter| plain(letter.to_ascii_lowercase())).take(room).collect();
        Self(format!("{start}{}-{suffix}", pool.trim_end_matches('-')).into())
    }

    /// Reads an id.
    ///
    /// # Errors
    /// Says that the text cannot be one.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let edges = !text.starts_with('-') && !text.ends_with('-');
        if !text.is_empty() && text.len() <= Self::LEN_MAX && text.bytes().all(inner) && edges {
            return Ok(Self(text.into()));
        }
        let message =
            "an instance's id has lower-case letters, digits and hyphens, and at most 63 of them";
        Err(FieldError::new("instance_id", Constraint::Pattern, message))
    }

    /// Reads a text that looks as if `mint` had made it: all there is to go by where a provider keeps no
    /// tags.
    pub fn minted(text: &str) -> Option<Self> {
        let (pool, suffix) = text.rsplit_once('-')?;
        let letters = suffix.len() == SUFFIX_LEN && suffix.bytes().all(|b| LETTERS.contains(&b));
        let start = pool.starts_with(|first: char| first.is_ascii_lowercase());
        (letters && start).then(|| Self::parse(text).ok()).flatten()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lets maps with `InstanceId` keys be asked by text.
impl std::borrow::Borrow<str> for InstanceId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The record of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// What it is called.
    pub id: InstanceId,
    /// Whose.
    pub tenant: String,
    /// The node pool it was bought for.
    pub pool: ResourceId,
    /// That pool, by the name that nodes carry.
    pub pool_name: String,
    /// Which of the pool's nodes it is, from 1; a replacement takes the number of what it replaces.
    pub number: u32,
    /// Makes a repeated call harmless where the provider can.
    pub token: Uuid,
    /// What was ordered.
    pub order: Order,
    /// When it was decided on.
    pub ordered_at: Timestamp,
    /// Why it was bought.
    pub why: String,
    /// Whose place it is to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<InstanceId>,
    /// What it was bought for.
    #[serde(default, skip_serializing_if = "Purpose::is_seat")]
    pub purpose: Purpose,
    /// Whether the machine was there before the record: then nobody knows what exactly was ordered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub adopted: bool,
    /// That it is to go once its node is drained: decided and permitted, and not carried out yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure: Option<Departure>,
    /// That it is to go and stays for now, and what keeps it: it still costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedTermination>,
    /// What was tried to make it well; the oldest first, at most `TRIED_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// How its provider's listings last showed it, where that gives cause to worry.
    #[serde(default, skip_serializing_if = "Sight::is_well")]
    pub sight: Sight,
    /// What its provider intends to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
    /// What it is doing.
    pub state: State,
}

/// What a machine was bought for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A node that the pool lacks.
    #[default]
    Seat,
    /// To replace a node that is sick or lost.
    Sick,
    /// To replace a node that is not what the spec asks for.
    Update,
}

impl Purpose {
    fn is_seat(&self) -> bool {
        *self == Self::Seat
    }
}

/// That a machine is to go: its node is cordoned and drained first, whatever becomes of the commands that tell
/// it so, and the machine is terminated when the drain has ended or the deadline has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Why.
    pub reason: Reason,
    /// Since when.
    pub since: Timestamp,
    /// When it goes although work may be left. One drain has one deadline: no command moves it, only a time in which
    /// nobody led.
    pub deadline: Timestamp,
}

/// That a machine is to go and is not permitted to: it keeps its node, its seat and its cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedTermination {
    /// One word for what keeps it: `Protected`, `Paused`, `ProviderSuspended`.
    pub guard: String,
    /// A sentence about it.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

/// What is odd about a machine that should be up, by its provider's listings and our own books.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Since when whole listings do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Timestamp>,
    /// Since when it is shown as stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_since: Option<Timestamp>,
    /// Since when its node, which had registered, is not known any more: somebody made us forget it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodeless_since: Option<Timestamp>,
}

impl Sight {
    /// Whether there is nothing odd.
    pub fn is_well(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// How many attempts at a cure are remembered.
pub const TRIED_MAX: usize = 16;

/// How much of a console log is kept: the end of it, where a boot fails. Bytes.
pub const CONSOLE_LEN_MAX: usize = 16 * 1024;

/// What an instance is doing, and exactly what is known of it then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It was decided on; whether it exists is not known yet.
    Provisioning(Provisioning),
    /// It exists, and its node has not registered.
    AwaitingNode {
        /// What the provider calls it.
        machine: MachineId,
        /// Since when we know of it.
        since: Timestamp,
    },
    /// Its node has registered.
    Running {
        /// What the provider calls it.
        machine: MachineId,
        /// The node.
        node: NodeId,
        /// Since when.
        since: Timestamp,
    },
    /// It is to go, and is not known to be gone.
    Terminating(Terminating),
    /// It is gone for certain.
    Terminated {
        /// What the provider called it; `None` if it never existed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<MachineId>,
        /// Its node, if it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// When we knew.
        at: Timestamp,
        /// Why it had to go.
        reason: Reason,
    },
    /// It came to nothing, and is gone for certain if it ever was.
    Failed {
        /// When we knew.
        at: Timestamp,
        /// Why.
        failure: Failure,
        /// What it wrote on its console, if it came so far.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        console: String,
    },
}

/// A purchase under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provisioning {
    /// How often the provider was asked.
    pub calls: u32,
    /// When it was last asked, while the answer is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_at: Option<Timestamp>,
    /// Since when listings that should show it do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
    /// Not before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// What the provider last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Whether a call before the last one may have made it all the same, so that a "no" to the last one
    /// does not settle it.
    #[serde(default)]
    pub unsure: bool,
    /// Its node, if that was faster than the provider's answer. Then the machine exists, whatever a look
    /// says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}

/// A return under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terminating {
    /// What the provider calls it; `None` while it is not known whether it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Its node, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Since when; if the machine was found later, since then.
    pub since: Timestamp,
    /// Why.
    pub reason: Reason,
    /// How often the provider was asked.
    #[serde(default)]
    pub calls: u32,
    /// Not before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// What the provider last said, if it did not do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Since when listings do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
    /// Whether people were told that it takes too long and costs.
    #[serde(default)]
    pub alarmed: bool,
    /// What it wrote on its console, if that may explain why it had to go.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub console: String,
}

/// Why a machine has to go. Who may ask for which is `gate`'s to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The pool wants fewer nodes.
    ScaleDown {
        /// Whether a person asked for that size; otherwise an autoscaler did.
        #[serde(default, skip_serializing_if = "is_false")]
        asked: bool,
    },
    /// The pool was deleted.
    PoolDeleted,
    /// Another one takes its place.
    Replaced {
        /// Which; `None` if there could not be one first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<InstanceId>,
        /// What is wrong with it.
        because: String,
    },
    /// It is sick, and the pool has enough nodes without it: a replacement, or the one that it was for, is there.
    Sick {
        /// What is wrong with it.
        because: String,
    },
    /// It never registered.
    Stale,
    /// It has a GPU that is known to be bad.
    BadHardware {
        /// Its serial number.
        serial: String,
    },
    /// The provider takes it back.
    Reclaimed,
    /// The provider no longer has it.
    Vanished,
    /// Its node was terminated.
    NodeTerminated {
        /// Who did it.
        by: String,
    },
    /// Somebody asked for it.
    Operator {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// It was bought although nobody wants it any more.
    Unwanted,
}

/// As a part of a sentence for people: "it has to go because …".
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::ScaleDown { .. } => f.write_str("the pool needs fewer nodes"),
            Reason::PoolDeleted => f.write_str("the pool was deleted"),
            Reason::Replaced { by: Some(by), because } => {
                write!(f, "{by} takes its place: {because}")
            }
            Reason::Replaced { by: None, because } => {
                write!(f, "it makes room for another: {because}")
            }
            Reason::Sick { because } => {
                write!(f, "it is sick, and the pool has enough nodes without it: {because}")
            }
            Reason::Stale => f.write_str("its node did not register in time"),
            Reason::BadHardware { serial } => {
                write!(f, "it has GPU {serial}, which is known to be bad")
            }
            Reason::Reclaimed => f.write_str("the provider takes it back"),
            Reason::Vanished => f.write_str("the provider no longer has it"),
            Reason::NodeTerminated { by } => write!(f, "{by} terminated its node"),
            Reason::Operator { by, reason } if reason.is_empty() => write!(f, "{by} asked for it"),
            Reason::Operator { by, reason } => write!(f, "{by} asked for it: {reason}"),
            Reason::Unwanted => f.write_str("nobody wants it any more"),
        }
    }
}

/// Why a purchase came to nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// One word: `QuotaExceeded`, `RegistrationTimeout`, `ProvisioningGivenUp`.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Failure {
    /// The reason of a machine whose node never registered.
    pub const REGISTRATION_TIMEOUT: &str = "RegistrationTimeout";
    /// The reason of a purchase that was tried again and again, and made nothing.
    pub const GIVEN_UP: &str = "ProvisioningGivenUp";
    /// The reason of a machine that its provider ended before its node registered.
    pub const ENDED: &str = "EndedByProvider";
}

/// One attempt to make a node well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// What.
    pub cure: Cure,
    /// When.
    pub at: Timestamp,
    /// For what: the finding or the silence.
    pub because: String,
    /// What came of it; empty while it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
}

/// What can be tried with a sick node, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cure {
    /// Test its GPUs: what passes is well.
    Diagnose,
    /// Boot it again.
    Reboot,
    /// Put another in its place.
    Replace,
}

impl State {
    /// The word, as the API says it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            State::Provisioning(_) => "Provisioning",
            State::AwaitingNode { .. } => "AwaitingNode",
            State::Running { .. } => "Running",
            State::Terminating(_) => "Terminating",
            State::Terminated { .. } => "Terminated",
            State::Failed { .. } => "Failed",
        }
    }

    /// Whether it is over: nothing exists, and nothing more happens.
    pub const fn is_over(&self) -> bool {
        matches!(self, State::Terminated { .. } | State::Failed { .. })
    }
}

impl Instance {
    /// What the provider calls the machine, if it is known.
    pub fn machine(&self) -> Option<&MachineId> {
        match &self.state {
            State::AwaitingNode { machine, .. } | State::Running { machine, .. } => Some(machine),
            State::Terminating(leaving) => leaving.machine.as_ref(),
            State::Terminated { machine, .. } => machine.as_ref(),
            State::Provisioning(_) | State::Failed { .. } => None,
        }
    }

    /// Its node, if one registered.
    pub fn node(&self) -> Option<&NodeId> {
        match &self.state {
            State::Running { node, .. } => Some(node),
            State::Terminating(leaving) => leaving.node.as_ref(),
            State::Terminated { node, .. } => node.as_ref(),
            State::Provisioning(buying) => buying.node.as_ref(),
            State::AwaitingNode { .. } | State::Failed { .. } => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests;
