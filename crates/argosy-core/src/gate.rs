//! The one way to a termination: what must hold before a machine begins to leave, and before it is ended.
//!
//! Two questions. `permit` is asked first, before the node is cordoned: a pause, an open breaker or a listing
//! that cannot be believed keeps the machine and its node as they are. `release` is asked at the moment of the
//! call: is it the machine that was meant?
//!
//! What a newcomer gets wrong: this is not advice. `Instance::departing` and `Instance::leaving` take a
//! `Permit`, `Provider::terminate` takes a `Doomed`, and nothing but the functions here can make one, so there
//! is no second way to end a machine (F16).

use crate::instance::{Instance, InstanceId, Reason, State};
use crate::inventory::Orphan;
use crate::machine::{Machine, MachineId};
use uuid::Uuid;

/// A machine that may be returned now. Only the gate makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Doomed {
    machine: MachineId,
    instance: Option<InstanceId>,
}

impl Doomed {
    /// Which machine.
    pub fn machine(&self) -> &MachineId {
        &self.machine
    }

    /// Whose record it is; `None` for a machine nobody knew.
    pub fn instance(&self) -> Option<&InstanceId> {
        self.instance.as_ref()
    }
}

/// That a machine may leave, and why. Only `permit` makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    reason: Reason,
}

impl Permit {
    /// Why the machine leaves.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// Why the machine leaves.
    pub fn into_reason(self) -> Reason {
        self.reason
    }
}

/// What speaks against a machine's leaving now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brakes<'a> {
    /// Why its provider's listings cannot be believed now (G11).
    pub frozen: Option<&'a str>,
    /// Why no automatic action is taken for it now: a pause, an open breaker.
    pub stopped: Option<&'a str>,
}

/// Permits a machine to leave. To be asked before anything is done to its node.
///
/// # Errors
/// Why it stays for now.
pub fn permit(reason: Reason, brakes: &Brakes<'_>) -> Result<Permit, Held> {
    if !asked_for(&reason) {
        if let Some(why) = brakes.frozen {
            return Err(Held::Frozen(why.to_owned()));
        }
        if let Some(why) = brakes.stopped {
            return Err(Held::Stopped(why.to_owned()));
        }
    }
    Ok(Permit { reason })
}

/// What speaks against ending a machine now.
#[derive(Clone, Copy, Debug)]
pub struct Guards<'a> {
    /// Which control plane we are: machines that carry another's tag are strangers.
    pub installation: Uuid,
    /// The machine as its provider last showed it; `None` if it was not shown since we began to lead.
    pub shown: Option<&'a Machine>,
    /// Whether the provider's listing was compared with our records since we began to lead: before that our
    /// records may be older than the world (B2).
    pub compared: bool,
}

/// Why a machine may not be returned, or not yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Held {
    /// Nobody decided that it should go.
    #[error("nobody decided that {0} should go")]
    NotLeaving(InstanceId),
    /// It is not known whether there is one.
    #[error("it is not known whether {0} exists")]
    NoMachine(InstanceId),
    /// It belongs to somebody else.
    #[error("{0} carries the tag of another control plane")]
    Stranger(MachineId),
    /// It is the machine of another record.
    #[error("{0} carries the token of another instance")]
    Anothers(MachineId),
    /// Our records may be older than the world.
    #[error("the provider's machines have not been compared with our records yet")]
    NotCompared,
    /// The provider's listings cannot be believed.
    #[error("{0}")]
    Frozen(String),
    /// Nothing is done by ourselves there now.
    #[error("{0}")]
    Stopped(String),
    /// Nobody asked for it to be reaped, or its quarantine is not over.
    #[error("nobody asked for {0} to be reaped")]
    NotReaped(MachineId),
}

/// Lets a machine go whose record says that it is to go.
///
/// # Errors
/// Why not, or not yet.
pub fn release(instance: &Instance, guards: &Guards<'_>) -> Result<Doomed, Held> {
    let State::Terminating(leaving) = &instance.state else {
        return Err(Held::NotLeaving(instance.id.clone()));
    };
    let machine = leaving.machine.as_ref().ok_or_else(|| Held::NoMachine(instance.id.clone()))?;
    stranger(machine, guards)?;
    if guards.shown.is_some_and(|shown| instance.is_of_another(shown)) {
        return Err(Held::Anothers(machine.clone()));
    }
    if !guards.compared {
        return Err(Held::NotCompared);
    }
    Ok(Doomed { machine: machine.clone(), instance: Some(instance.id.clone()) })
}

/// Lets a machine go that nobody has a record of, if somebody asked for it.
///
/// # Errors
/// Why not, or not yet.
pub fn reap(orphan: &Orphan, guards: &Guards<'_>) -> Result<Doomed, Held> {
    stranger(&orphan.machine, guards)?;
    let ours = orphan.tags.installation == Some(guards.installation);
    if !ours {
        return Err(Held::Stranger(orphan.machine.clone()));
    }
    if orphan.reap.is_none() {
        return Err(Held::NotReaped(orphan.machine.clone()));
    }
    // A record may have taken it in since.
    if !guards.compared {
        return Err(Held::NotCompared);
    }
    Ok(Doomed { machine: orphan.machine.clone(), instance: None })
}

/// What is shown under this id carries somebody else's tag.
fn stranger(machine: &MachineId, guards: &Guards<'_>) -> Result<(), Held> {
    let tag = guards.shown.and_then(|shown| shown.tags.installation);
    match tag {
        Some(tag) if tag != guards.installation => Err(Held::Stranger(machine.clone())),
        Some(_) | None => Ok(()),
    }
}

/// Whether it is not our own decision: a person asked for it, or its provider takes it back whatever we do.
/// Then what holds back our own doing does not hold.
pub(crate) fn asked_for(reason: &Reason) -> bool {
    strength(reason) != 0
}

/// A later, stronger reason replaces a weaker one.
pub(crate) fn strength(reason: &Reason) -> u8 {
    match reason {
        Reason::PoolDeleted => 4,
        Reason::Operator { .. } | Reason::NodeTerminated { .. } => 3,
        Reason::Reclaimed => 2,
        Reason::ScaleDown { asked: true } => 1,
        Reason::ScaleDown { asked: false }
        | Reason::Replaced { .. }
        | Reason::Sick { .. }
        | Reason::Stale
        | Reason::BadHardware { .. }
        | Reason::Vanished
        | Reason::Unwanted => 0,
    }
}

#[cfg(test)]
mod tests;
