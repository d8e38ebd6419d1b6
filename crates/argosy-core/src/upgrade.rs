//! An old document to today's document, one step a version, when the process starts.

use serde_json::Value;

/// The version of the documents this build writes. Raise it when a stored type changes its meaning,
/// and add the step below.
pub const VERSION: u32 = 1;

/// Brings a document of `kind` from version `from` to `VERSION`.
///
/// # Errors
/// A sentence, if the document is from a newer build.
pub fn upgrade(kind: &str, from: u32, document: Value) -> Result<Value, String> {
    match from {
        VERSION => Ok(document),
        newer => Err(format!(
            "a {kind} document has version {newer}, but this build knows versions up to {VERSION}; \
             start a newer argosy"
        )),
    }
}

#[cfg(test)]
mod tests;
