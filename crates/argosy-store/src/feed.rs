//! How a durable engine writes down the documents of one change: as one JSON text, so that a
//! change is one row and a page of the feed one range.

use crate::engine::{Changed, Key};
use std::sync::Arc;

/// The documents as text.
pub fn encode(documents: &[Changed]) -> String {
    let rows: Vec<(&str, &str, Option<&str>)> = documents
        .iter()
        .map(|changed| (&*changed.key.kind, &*changed.key.id, changed.body.as_deref()))
        .collect();
    serde_json::to_string(&rows).expect("strings in tuples always serialize")
}

/// The documents again; `None` if this was not written by `encode`.
pub fn decode(text: &str) -> Option<Vec<Changed>> {
    let rows: Vec<(String, String, Option<Arc<str>>)> = serde_json::from_str(text).ok()?;
    let documents = rows.into_iter();
    Some(documents.map(|(kind, id, body)| Changed { key: Key { kind, id }, body }).collect())
}
