//! What must always hold: one function, asked by tests, by the server before each commit, and by the
//! loops before they act. A change that breaks a rule is not made.
//!
//! What a newcomer gets wrong: a violation is a mistake of ours, never of a caller. Requests are
//! refused long before this, with better words.
//!
//! I14 (no decision about liveness or order reads a clock that is not ours) needs no check: nothing in
//! `liveness` takes a time of day at all, and no type it reads carries a node's time.

mod command;

mod instance;

mod node;

mod plan;

mod resource;

use crate::command::Command;
use crate::instance::Instance;
use crate::node::Node;
use crate::node::settings::NodeSettings;
use crate::remedy::{Fleet, Plan};
use crate::resource::Resource;
use jiff::Timestamp;

/// A change that is about to be made.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Of a cluster or node pool.
    Resource {
        /// As it is stored; `None` if it is new.
        before: Option<&'a Resource>,
        /// As it will be.
        after: &'a Resource,
    },
    /// Of a node.
    Node {
        /// As it is stored; `None` if it is new.
        before: Option<&'a Node>,
        /// As it will be.
        after: &'a Node,
        /// Who wants it.
        cause: Cause,
    },
    /// Of a command.
    Command {
        /// As it is stored; `None` if it is new.
        before: Option<&'a Command>,
        /// As it will be.
        after: &'a Command,
    },
    /// Of the record of a machine.
    Instance {
        /// As it is stored; `None` if it is new.
        before: Option<&'a Instance>,
        /// As it will be.
        after: &'a Instance,
    },
    /// Of the fleet, by a plan that is about to be carried out.
    Fleet {
        /// As it is.
        fleet: &'a Fleet<'a>,
        /// What is to be done.
        plan: &'a Plan,
        /// The budgets.
        settings: &'a NodeSettings,
        /// When.
        now: Timestamp,
    },
}

/// Where a change of a node comes from: some may do less than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The machine registered: it says what it is, and changes nothing that we decided.
    Registration,
    /// Our own decision: it never touches what an operator decided.
    Automatic,
    /// Anything else: a person's command, what the node says about its health or its commands.
    Other,
}

/// The first rule that a change breaks.
///
/// I2: a record exists before its machine, and is over only when that is not. I3: an action starts from
/// what is, and its guards are asked. I4: no plan takes more nodes out of service than a budget allows.
/// I5: a command is effective once and ends once. I6: generations, reports and their numbers never go
/// backwards. I7: only legal steps; deletion is not undone; registration clears nothing. I11: lists
/// have their limits.
///
/// # Errors
/// A sentence that names the thing, the rule, and what is wrong.
pub fn check(change: Change<'_>) -> Result<(), String> {
    let broken = match change {
        Change::Resource { before, after } => {
            let step = || before.and_then(|before| resource::step(before, after));
            let broken = resource::state(after).or_else(step);
            broken.map(|broken| format!("{} {}: {broken}", after.kind, after.id))
        }
        Change::Node { before, after, cause } => {
            let broken = node::broken(before, after, cause);
            broken.map(|broken| format!("Node {}: {broken}", after.id))
        }
        Change::Command { before, after } => {
            let broken = command::broken(before, after);
            broken.map(|broken| format!("Command {}: {broken}", after.id))
        }
        Change::Instance { before, after } => {
            let broken = instance::broken(before, after);
            broken.map(|broken| format!("Instance {}: {broken}", after.id))
        }
        Change::Fleet { fleet, plan, settings, now } => plan::broken(fleet, plan, settings, now),
    };
    broken.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
