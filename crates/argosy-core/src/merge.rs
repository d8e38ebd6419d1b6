//! JSON Merge Patch, RFC 7396.

use serde_json::{Map, Value};

/// Applies `patch` to `target`: `null` removes, objects merge, anything else replaces.
pub fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    let _ = (target, patch);
    todo!()
}
