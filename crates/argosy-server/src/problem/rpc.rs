//! The same errors as codes of RPC.

use argosy_control::{Error, StoreError};
use argosy_core::field::FieldError;
use connectrpc::{ConnectError, ErrorCode};

/// What a node that nobody knows should do.
const REGISTER_FIRST: &str = "register it first, with RegisterNode";

/// An error of a service.
pub(crate) fn status(error: Error) -> ConnectError {
    let sentence = error.to_string();
    let code = match error {
        Error::Invalid(errors) => return invalid(&errors),
        Error::Store(error) => return store(error),
        Error::NeedsCluster(_) => ErrorCode::InvalidArgument,
        Error::NotFound { .. }
        | Error::ClusterNotFound { .. }
        | Error::Deleted { .. }
        | Error::NodeNotFound(_)
        | Error::CommandNotFound(_)
        | Error::PolicyNotFound(_)
        | Error::InstanceNotFound(_)
        | Error::OrphanNotFound { .. }
        | Error::ProviderNotFound(_) => ErrorCode::NotFound,
        Error::Forbidden(_) => ErrorCode::PermissionDenied,
        Error::NameTaken { .. } | Error::IdentityConflict(_) | Error::KeyReused => {
            ErrorCode::AlreadyExists
        }
        Error::Deleting { .. }
        | Error::NotDeleting { .. }
        | Error::Precondition(_)
        | Error::OverBudget(_) => ErrorCode::FailedPrecondition,
        Error::Changed { .. } => ErrorCode::Aborted,
        Error::Gone { .. } => ErrorCode::OutOfRange,
        Error::TooMany(_) => ErrorCode::ResourceExhausted,
        Error::Invariant(_) => {
            tracing::error!(cause = %sentence, "a request would have broken an invariant");
            return internal();
        }
    };
    ConnectError::new(code, sentence)
}

/// An error of a service that a node called: one that nobody knows is told what to do.
pub(crate) fn node_status(error: Error) -> ConnectError {
    if let Error::NodeNotFound(_) = error {
        return ConnectError::not_found(format!("{error}; {REGISTER_FIRST}"));
    }
    status(error)
}

/// Fields that are wrong. The sentence names the field, whoever wrote it.
pub(crate) fn invalid(errors: &[FieldError]) -> ConnectError {
    let Some((first, rest)) = errors.split_first() else {
        return ConnectError::invalid_argument("the request is not valid");
    };
    let mut sentence = if first.message.contains(&first.field) {
        first.message.clone()
    } else {
        format!("{}: {}", first.field, first.message)
    };
    if !rest.is_empty() {
        sentence.push_str(&format!(" (and {} more)", rest.len()));
    }
    ConnectError::invalid_argument(sentence)
}

/// What callers are told when the fault is ours: no more than that.
pub(crate) fn internal() -> ConnectError {
    ConnectError::internal("the server failed to carry out the request")
}

fn store(error: StoreError) -> ConnectError {
    let sentence = error.to_string();
    match error {
        StoreError::Full(_) => ConnectError::resource_exhausted(sentence),
        StoreError::Unavailable(_) => ConnectError::unavailable(sentence),
        // Somebody else was first, again and again, or is now in charge: later is different.
        StoreError::Conflict(_) | StoreError::Fenced => {
            ConnectError::unavailable("it is being changed too often; try again")
        }
        StoreError::Refused(_) => {
            tracing::error!(cause = %sentence, "the store refused");
            internal()
        }
    }
}
