//! Who is asking: bearer tokens from a file, JSON web tokens from issuers, or nobody in particular.
//!
//! Only the `Authorization` header counts. Headers that claim a tenant, an identity or an address are
//! never read.

use argosy_control::clock::Clock;
use argosy_core::access::{Caller, Role};
use argosy_core::field::FieldError;
use axum::http::HeaderMap;
use jiff::Timestamp;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// One line of the tokens file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Whom the token stands for; the subject in stamps and audit records.
    pub name: String,
    /// SHA-256 of the token, in hex: see `hash_token`.
    pub sha256: String,
    /// What its holder may do.
    pub role: Role,
    /// The teams its holder belongs to.
    #[serde(default)]
    pub teams: Vec<String>,
    /// Whose resources its holder sees.
    #[serde(default = "default_tenant")]
    pub tenant: String,
    /// The adapter its holder is; required for the role `adapter`.
    #[serde(default)]
    pub adapter: Option<String>,
    /// When it ends; without it, never.
    #[serde(default)]
    pub expires: Option<Timestamp>,
}

/// Who signs tokens, and how its claims are read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// Exactly as in the claim `iss`.
    pub issuer: String,
    /// For whom its tokens must be made.
    pub audience: Audience,
    /// Where its keys are.
    pub jwks: JwksSource,
    /// Which claims mean what.
    #[serde(default)]
    pub claims: Claims,
    /// The role of a token without a role we know.
    #[serde(default = "default_role")]
    pub default_role: Role,
}

/// For whom a token must be made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// For anybody: a token for any service of the issuer opens this one.
    Any,
    /// For one of these.
    #[serde(untagged)]
    OneOf(Vec<String>),
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JwksSource {
    /// A file.
    File(PathBuf),
    /// An address: https, or http on this machine.
    Url(String),
}

/// Which claims mean what.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Claims {
    /// Tried in order.
    pub subject: Vec<String>,
    /// One team, or a list of them.
    pub teams: String,
    /// `viewer`, `operator`, `admin` or `adapter`.
    pub role: String,
    /// The tenant.
    pub tenant: String,
    /// The adapter.
    pub adapter: String,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            subject: vec!["email".to_owned(), "sub".to_owned()],
            teams: "teams".to_owned(),
            role: "role".to_owned(),
            tenant: "tenant".to_owned(),
            adapter: "adapter".to_owned(),
        }
    }
}

fn default_tenant() -> String {
    "default".to_owned()
}

fn default_role() -> Role {
    Role::Viewer
}

/// Why nobody was recognised: 401 in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Send credentials.
    #[error("authentication is required: send `Authorization: Bearer TOKEN`")]
    Missing,
    /// Send other credentials. The text is safe to show, and says nothing about what would be right.
    #[error("{0}")]
    Invalid(String),
    /// Get a new token.
    #[error("the token has expired")]
    Expired,
}

/// Turns the headers of a request into who sent it.
#[derive(Clone)]
pub struct Authenticator {
    inner: Arc<()>,
}

impl Authenticator {
    /// Lets everybody in, as one administrator.
    pub fn none() -> Self {
        todo!()
    }

    /// Knows tokens, issuers, or both.
    ///
    /// # Errors
    /// Names the entry that cannot be used.
    pub async fn new(
        tokens: Vec<TokenEntry>,
        issuers: Vec<Issuer>,
        clock: Clock,
    ) -> Result<Self, FieldError> {
        let _ = (tokens, issuers, clock);
        todo!()
    }

    /// Who sent a request with these headers.
    ///
    /// # Errors
    /// Says whether credentials are missing, wrong or too old.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        request_id: String,
    ) -> Result<Caller, AuthError> {
        let _ = (headers, request_id, &self.inner);
        todo!()
    }

    /// Takes another list of tokens, all at once; what is not in it is no longer valid.
    ///
    /// # Errors
    /// Names the entry that cannot be used; the old list stays.
    pub fn replace_tokens(&self, tokens: Vec<TokenEntry>) -> Result<(), FieldError> {
        let _ = tokens;
        todo!()
    }

    /// Whether one may listen on this address: without authentication only on this machine's own, unless forced.
    ///
    /// # Errors
    /// Says what to do instead.
    pub fn allowed_on(&self, address: SocketAddr, forced: bool) -> Result<(), String> {
        let _ = (address, forced);
        todo!()
    }
}

/// What stands in the tokens file for a token.
pub fn hash_token(token: &str) -> String {
    let _ = token;
    todo!()
}
