//! What can go wrong with a request, as what the caller can do about it.

use argosy_core::field::FieldError;
use argosy_core::remedy::Impact;
use argosy_core::resource::{Kind, Tombstone};
use argosy_store::Revision;

/// Why a request was not carried out. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Correct the request.
    #[error("{}", sentence(.0))]
    Invalid(Vec<FieldError>),
    /// A node pool is created under its cluster.
    #[error("a {0} must be created under its cluster")]
    NeedsCluster(Kind),
    /// There is no such resource, or it is another tenant's.
    #[error("{kind} not found")]
    NotFound {
        /// What was asked for.
        kind: Kind,
        /// The id or name in the request.
        reference: String,
        /// The cluster in the request, for a node pool.
        cluster: Option<String>,
    },
    /// The cluster in a node pool's path does not exist.
    #[error("Cluster not found")]
    ClusterNotFound {
        /// The id or name in the request.
        reference: String,
    },
    /// It did exist.
    #[error("{} {reference} has been successfully deleted", tombstone.kind)]
    Deleted {
        /// The id or name in the request.
        reference: String,
        /// What is left of it.
        tombstone: Box<Tombstone>,
    },
    /// Ask somebody who may.
    #[error("{0}")]
    Forbidden(String),
    /// Choose another name, or wait for the old one to go.
    #[error("{}", name_taken(*kind, name, *deleting))]
    NameTaken {
        /// What was to be created.
        kind: Kind,
        /// The name.
        name: String,
        /// Whether the holder of the name is being deleted.
        deleting: bool,
    },
    /// It is being deleted and takes no changes; for a node pool, perhaps its cluster is.
    #[error("{kind} {reference} is being deleted and cannot be changed")]
    Deleting {
        /// What is being deleted.
        kind: Kind,
        /// Which.
        reference: String,
    },
    /// Force-delete is for what is being deleted already.
    #[error("{kind} {reference} is not being deleted; delete it first")]
    NotDeleting {
        /// What.
        kind: Kind,
        /// Which.
        reference: String,
    },
    /// Read again and decide again.
    #[error("it was changed by somebody else: it is at revision {current}, not {expected}")]
    Changed {
        /// What the caller had.
        expected: Revision,
        /// What it is.
        current: Revision,
    },
    /// Use a new key for a new request.
    #[error("the idempotency key was used before, with another request")]
    KeyReused,
    /// List again: the revision is no longer retained.
    #[error("revision {asked} is not kept; the oldest is {oldest}: list again")]
    Gone {
        /// What the caller wanted to resume after.
        asked: Revision,
        /// The oldest one can resume after.
        oldest: Revision,
    },
    /// Register first: nobody knows this node, or it is another tenant's.
    #[error("node not found: {0}")]
    NodeNotFound(String),
    /// There is no such command.
    #[error("command not found: {0}")]
    CommandNotFound(String),
    /// There is no such policy.
    #[error("policy not found: {0}")]
    PolicyNotFound(String),
    /// There is no such instance.
    #[error("instance not found: {0}")]
    InstanceNotFound(String),
    /// No machine is known there that nobody has a record of.
    #[error("no machine without a record is known as {machine} at the provider '{provider}'")]
    OrphanNotFound {
        /// The provider in the request.
        provider: String,
        /// The machine in the request.
        machine: String,
    },
    /// No provider of this name is configured.
    #[error("provider not found: {0}")]
    ProviderNotFound(String),
    /// Find out which of the two machines is the real one.
    #[error("{0}")]
    IdentityConflict(String),
    /// It is not in a state for that; the sentence says which state, and the way out.
    #[error("{0}")]
    Precondition(String),
    /// Name fewer nodes, or wait for those that are out of service; who may can ask for more than the budgets
    /// allow. The budgets that the request exceeds.
    #[error("{}", over_budget(.0))]
    OverBudget(Vec<Impact>),
    /// Wait until less is under way.
    #[error("{0}")]
    TooMany(String),
    /// Try again later, or make room.
    #[error(transparent)]
    Store(#[from] argosy_store::Error),
    /// A rule of ours was about to be broken; nothing was done.
    #[error("refused, because it would break a rule that always holds: {0}")]
    Invariant(String),
}

fn sentence(errors: &[FieldError]) -> String {
    match errors {
        [] => "the request is not valid".to_owned(),
        [one] => one.message.clone(),
        [first, rest @ ..] => format!("{} (and {} more)", first.message, rest.len()),
    }
}

fn over_budget(impacts: &[Impact]) -> String {
    let impacts: Vec<String> = impacts.iter().map(ToString::to_string).collect();
    format!("blocked by the disruption budget: {}", impacts.join("; "))
}

fn name_taken(kind: Kind, name: &str, deleting: bool) -> String {
    if deleting {
        format!("a {kind} named '{name}' is still being deleted; wait until it is gone")
    } else {
        format!("a {kind} named '{name}' exists already")
    }
}
