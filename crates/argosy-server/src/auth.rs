//! Who is asking: bearer tokens from a file, JSON web tokens from issuers, or nobody in particular.
//!
//! Only the `Authorization` header counts. Headers that claim a tenant, an identity or an address are
//! never read.

mod jwks;
mod jwt;
mod token;

use argosy_control::clock::Clock;
use argosy_core::access::{Caller, Role};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::pool::BY;
use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use token::Tokens;
pub use token::hash_token;
use tracing::debug;

/// How long a token may be.
///
/// A JWT with a hundred groups has 5 KiB; a longer one is not parsed at all.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The subject when nobody has to sign in.
const NOBODY: &str = "system@hyperfleet.local";

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
    /// The node its holder is; a token with the role `node` and without it may speak for any node of
    /// its tenant, as one shared by a fleet does.
    #[serde(default)]
    pub node: Option<String>,
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
    /// `viewer`, `operator`, `admin`, `adapter` or `node`.
    pub role: String,
    /// The tenant.
    pub tenant: String,
    /// The adapter.
    pub adapter: String,
    /// The node.
    pub node: String,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            subject: vec!["email".to_owned(), "sub".to_owned()],
            teams: "teams".to_owned(),
            role: "role".to_owned(),
            tenant: "tenant".to_owned(),
            adapter: "adapter".to_owned(),
            node: "node".to_owned(),
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

/// Turns the headers of a request into who sent it. Clones share tokens and keys.
#[derive(Clone)]
pub struct Authenticator(Arc<Mode>);

enum Mode {
    /// Nobody has to sign in.
    None,
    /// Everybody has to.
    Bearer {
        tokens: RwLock<Tokens>,
        /// Those that this process gave to its own parts: nobody else has them, and they are in no file.
        own: RwLock<Tokens>,
        issuers: Vec<jwt::Verifier>,
        clock: Clock,
    },
}

impl Authenticator {
    /// Lets everybody in, as one administrator of the tenant `default`.
    pub fn none() -> Self {
        Self(Arc::new(Mode::None))
    }

    /// Knows tokens, issuers, or both.
    ///
    /// Keys in files are read now; keys behind an address are asked for now, but not waited for.
    ///
    /// # Errors
    /// Names the entry that cannot be used: `tokens[2].sha256`, `issuers[0].jwks`.
    pub async fn new(
        tokens: Vec<TokenEntry>,
        issuers: Vec<Issuer>,
        clock: Clock,
    ) -> Result<Self, FieldError> {
        let tokens = RwLock::new(Tokens::parse(tokens)?);
        let mut verifiers: Vec<jwt::Verifier> = Vec::new();
        for (index, issuer) in issuers.into_iter().enumerate() {
            if verifiers.iter().any(|other| other.issuer() == issuer.issuer) {
                let field = format!("issuers[{index}].issuer");
                return Err(FieldError::new(
                    field,
                    Constraint::Unique,
                    "the issuer is listed twice",
                ));
            }
            let verifier = jwt::Verifier::new(issuer, clock).await;
            verifiers.push(verifier.map_err(|error| under(&format!("issuers[{index}]"), error))?);
        }
        let own = RwLock::default();
        Ok(Self(Arc::new(Mode::Bearer { tokens, own, issuers: verifiers, clock })))
    }

    /// Who sent a request with these headers.
    ///
    /// Costs a hash for a token and one signature check for a JWT; waits for the issuer only if its key is
    /// not known yet, and then at most a few seconds.
    ///
    /// # Errors
    /// Says whether credentials are missing, wrong or too old.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        request_id: String,
    ) -> Result<Caller, AuthError> {
        let Mode::Bearer { tokens, own, issuers, clock } = &*self.0 else {
            return Ok(nobody(request_id));
        };
        let token = bearer(headers)?;
        let now = clock.wall();
        let known = tokens.read().unwrap_or_else(PoisonError::into_inner).find(token);
        let known =
            known.or_else(|| own.read().unwrap_or_else(PoisonError::into_inner).find(token));
        if let Some(entry) = known {
            if entry.expires.is_some_and(|expires| expires <= now) {
                return Err(AuthError::Expired);
            }
            return Ok(token::caller(&entry, request_id));
        }
        let verified = jwt::verify(issuers, token, now).await;
        verified.map(|identity| Caller { request_id, ..identity }).map_err(
            |refused| match refused {
                jwt::Refused::Expired => AuthError::Expired,
                jwt::Refused::Reserved => AuthError::Invalid(reserved()),
                jwt::Refused::Invalid(reason) => {
                    debug!(reason, "refused a token");
                    not_valid()
                }
            },
        )
    }

    /// Takes another list of tokens, all at once; what is not in it is no longer valid.
    ///
    /// # Errors
    /// Names the entry that cannot be used; the old list stays.
    pub fn replace_tokens(&self, new: Vec<TokenEntry>) -> Result<(), FieldError> {
        let Mode::Bearer { tokens, .. } = &*self.0 else {
            let message = "authentication is `none`, so tokens have no effect";
            return Err(FieldError::new("tokens", Constraint::Format, message));
        };
        let new = Tokens::parse(new)?;
        *tokens.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Lets a part of this process in, for as long as the process runs: what it is given is in no file, and
    /// another list of tokens does not end it. False where nobody has to sign in.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn admit(&self, entry: TokenEntry) -> Result<bool, FieldError> {
        let Mode::Bearer { own, .. } = &*self.0 else { return Ok(false) };
        own.write().unwrap_or_else(PoisonError::into_inner).add(entry)?;
        Ok(true)
    }

    /// Whether callers have to say who they are.
    pub fn asks(&self) -> bool {
        !matches!(&*self.0, Mode::None)
    }

    /// Whether one may listen on this address: without authentication only on this machine's own, unless
    /// forced.
    ///
    /// # Errors
    /// Says what to do instead.
    pub fn allowed_on(&self, address: SocketAddr, forced: bool) -> Result<(), String> {
        let open = matches!(*self.0, Mode::None);
        if open && !forced && !address.ip().to_canonical().is_loopback() {
            return Err(format!(
                "authentication is `none`, so everybody who reaches {address} would be an \
                 administrator: listen on 127.0.0.1, configure tokens or JWT, or force it"
            ));
        }
        Ok(())
    }
}

fn nobody(request_id: String) -> Caller {
    Caller {
        subject: NOBODY.to_owned(),
        via: "none",
        tenant: default_tenant(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id,
    }
}

/// The one token in the headers.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    // Two of them: whoever is in front of us may have checked the other one.
    if values.next().is_some() {
        return Err(not_valid());
    }
    let (scheme, token) =
        value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(not_bearer)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(not_bearer());
    }
    let token = token.trim_ascii();
    if token.is_empty() || TOKEN_BYTES_MAX < token.len() {
        return Err(not_valid());
    }
    Ok(token)
}

fn not_valid() -> AuthError {
    AuthError::Invalid("the credentials are not valid".to_owned())
}

/// For whoever has a good token with a name that is ours. Nothing is given away: they have it already.
fn reserved() -> String {
    format!(
        "the token names its holder `{BY}` or `{BY} for …`, which is what the control plane calls itself: \
         have the issuer give it another subject, or have `claims.subject` of the issuer read another claim"
    )
}

fn not_bearer() -> AuthError {
    AuthError::Invalid("the Authorization header is not `Bearer TOKEN`".to_owned())
}

/// The same complaint about a field further down.
fn under(parent: &str, error: FieldError) -> FieldError {
    FieldError { field: format!("{parent}.{}", error.field), ..error }
}

/// Whether a text can be a subject: it is written into logs and audit records.
fn is_subject(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= 256 && !text.chars().any(char::is_control)
}

/// Whether a text can be a tenant.
fn is_tenant(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=63).contains(&text.len()) && text.chars().all(allowed)
}

#[cfg(test)]
mod tests;
