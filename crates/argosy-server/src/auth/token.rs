//! Tokens from a file: random text, kept as its hash.
//!
//! Plain SHA-256 is right here. Slow hashes protect passwords, which can be guessed; a token is drawn
//! at random, so the only way from its hash back to it is through all of them.

use super::{TokenEntry, is_subject, is_tenant, under};
use argosy_core::access::{Caller, Role};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::pool::{self, BY};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// What stands in the tokens file for a token: its SHA-256, in hex.
pub fn hash_token(token: &str) -> String {
    digest(token).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    })
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The tokens, by their hash.
///
/// Nobody can feel their way to a token by timing the lookup: what is compared is the hash, and a
/// guess that comes closer has an altogether different one.
#[derive(Default)]
pub(super) struct Tokens(HashMap<[u8; 32], Arc<TokenEntry>>);

impl Tokens {
    pub(super) fn parse(entries: Vec<TokenEntry>) -> Result<Self, FieldError> {
        let mut tokens = HashMap::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let hash = check(&entry).map_err(|error| under(&format!("tokens[{index}]"), error))?;
            if tokens.insert(hash, Arc::new(entry)).is_some() {
                let field = format!("tokens[{index}].sha256");
                return Err(FieldError::new(
                    field,
                    Constraint::Unique,
                    "the token is listed twice",
                ));
            }
        }
        Ok(Self(tokens))
    }

    /// One more, which nobody else has.
    pub(super) fn add(&mut self, entry: TokenEntry) -> Result<(), FieldError> {
        let hash = check(&entry)?;
        self.0.insert(hash, Arc::new(entry));
        Ok(())
    }

    pub(super) fn find(&self, token: &str) -> Option<Arc<TokenEntry>> {
        self.0.get(&digest(token)).cloned()
    }
}

pub(super) fn caller(entry: &TokenEntry, request_id: String) -> Caller {
    Caller {
        subject: entry.name.clone(),
        via: "token",
        tenant: entry.tenant.clone(),
        teams: entry.teams.clone(),
        role: entry.role,
        adapter: entry.adapter.clone(),
        node: entry.node.clone(),
        request_id,
    }
}

fn check(entry: &TokenEntry) -> Result<[u8; 32], FieldError> {
    let wrong = |field: &str, message: &str| FieldError::new(field, Constraint::Format, message);
    if !is_subject(&entry.name) {
        return Err(wrong(
            "name",
            "a name has 1 to 256 characters, none of them a control character",
        ));
    }
    if pool::is_reserved(&entry.name) {
        return Err(wrong("name", &reserved()));
    }
    if !is_tenant(&entry.tenant) {
        return Err(wrong("tenant", "a tenant has 1 to 63 letters, digits, `.`, `_` or `-`"));
    }
    if entry.role == Role::Adapter && entry.adapter.is_none() {
        let message = "a token with the role `adapter` names the adapter it may report for";
        return Err(FieldError::new("adapter", Constraint::Required, message));
    }
    // The value is not repeated: somebody may have put the token itself there.
    unhex(&entry.sha256)
        .ok_or_else(|| wrong("sha256", "the SHA-256 of the token is expected, as 64 hex digits"))
}

/// Why nobody can be called what the control plane calls itself, and what to do.
fn reserved() -> String {
    format!(
        "`{BY}`, and what begins with `{BY} for `, is what the control plane calls itself: what its holder \
         does would be taken for our own, and undone. Give the token another name, for example \
         `{BY}-bot`"
    )
}

fn unhex(hex: &str) -> Option<[u8; 32]> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| u8::try_from(digit(high)? << 4 | digit(low)?).ok());
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
