//! What PostgreSQL's errors mean to the caller of the store.

use super::STATEMENT_MAX;
use argosy_store::engine::Error;
use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// Why a statement did not succeed.
pub(super) enum Fault {
    Postgres(tokio_postgres::Error),
    /// Something was read that was never written like this; the text says what.
    Damaged(String),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// What the caller can do. If it was a commit, `Unavailable` says that its outcome is not known.
pub(super) fn meaning(fault: impl Into<Fault>) -> Error {
    let error = match fault.into() {
        Fault::Postgres(error) => error,
        Fault::Damaged(found) => return damaged(&found),
    };
    let text = text(&error);
    match error.code() {
        Some(&SqlState::DISK_FULL) => Error::Full(text),
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Error::Unavailable(format!(
            "the database is read-only, a standby perhaps: reads go on, writes must wait ({text})"
        )),
        Some(&SqlState::QUERY_CANCELED) => silent(),
        Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => damaged(&text),
        _ => Error::Unavailable(text),
    }
}

/// The meaning of a connection that could not be made: what another try will not cure is `Refused`.
pub(super) fn not_connected(error: &tokio_postgres::Error) -> Error {
    let text = text(error);
    let class = error.code().map(|code| code.code().get(..2).unwrap_or_default());
    match class {
        // Wrong password or user, no such database, no right to it.
        Some("28" | "3D" | "42") => Error::Refused(format!(
            "the database does not let us in: {text}; check the URL given by --store"
        )),
        _ if text.contains("certificate") => Error::Refused(format!(
            "the database's certificate is not trusted: {text}; name its authority in SSL_CERT_FILE, \
             or add sslmode=disable to the URL if the network is trusted"
        )),
        _ => Error::Unavailable(text),
    }
}

fn damaged(found: &str) -> Error {
    Error::Refused(format!(
        "the database is damaged: {found}. Nothing was changed; restore it from a backup"
    ))
}

pub(super) fn silent() -> Error {
    Error::Unavailable(format!("the database did not answer within {STATEMENT_MAX:?}"))
}

/// With its causes: the first sentence alone is "db error".
fn text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_string();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        if !text.contains(&own) {
            text = format!("{text}: {own}");
        }
        cause = error.source();
    }
    text
}
