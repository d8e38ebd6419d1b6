//! Request bodies: read within limits, then parsed as strict JSON.

use bytes::Bytes;
use serde_json::Value;

/// How large a request body may be.
///
/// A cluster with every label it may have is under 100 KiB; more than this only costs memory.
pub const BODY_MAX: usize = 1024 * 1024;

/// How large a status report may be: there is one per adapter and resource, many times a minute.
pub const STATUS_BODY_MAX: usize = 256 * 1024;

/// Why a body was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Send less: 413.
    #[error("the request body is larger than {max} bytes")]
    TooLarge {
        /// How much there may be.
        max: usize,
    },
    /// Send faster: 408.
    #[error("the request body did not arrive in time: {0}")]
    TooSlow(&'static str),
    /// Send again: the connection broke, or the body was shorter than its length said. 400.
    #[error("the request body ended before it was complete")]
    Broken,
    /// Correct the JSON: 400.
    #[error("the request body is not valid JSON: {0}")]
    Malformed(String),
}

/// Reads a body, but never more than `max` bytes of it.
///
/// # Errors
/// `TooLarge`, `TooSlow`, `Broken`.
pub async fn read_limited(body: axum::body::Body, max: usize) -> Result<Bytes, BodyError> {
    let _ = (body, max);
    todo!()
}

/// Parses a body as one JSON document.
///
/// # Errors
/// `Malformed`, saying where.
pub fn read_json(bytes: &[u8]) -> Result<Value, BodyError> {
    let _ = bytes;
    todo!()
}
