//! JSON web tokens: RS256 or ES256, from issuers we know, for us, and in time by our clock.

use super::jwks::Jwks;
use super::{Audience, Issuer, default_tenant, is_subject, is_tenant};
use argosy_control::clock::Clock;
use argosy_core::access::{Caller, Role};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::pool;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, Validation, dangerous, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

/// How far an issuer's clock may be from ours.
const LEEWAY_S: f64 = 30.0;

/// Why a token was refused. The reason is for our log alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Expired,
    /// It is good, and names its holder as the control plane names itself.
    Reserved,
    Invalid(&'static str),
}

/// An issuer and its keys.
pub(super) struct Verifier {
    issuer: Issuer,
    keys: Jwks,
}

impl Verifier {
    pub(super) async fn new(issuer: Issuer, clock: Clock) -> Result<Self, FieldError> {
        if issuer.issuer.is_empty() {
            let message = "the issuer's name is expected, exactly as in the claim `iss`";
            return Err(FieldError::new("issuer", Constraint::Required, message));
        }
        if issuer.audience == Audience::OneOf(Vec::new()) {
            let message = "list whom the tokens must be made for, or say `any`: then a token for any \
                           other service of this issuer opens this one too";
            return Err(FieldError::new("audience", Constraint::Required, message));
        }
        if issuer.claims.subject.is_empty() {
            let message = "at least one claim that names the caller is expected";
            return Err(FieldError::new("claims.subject", Constraint::Required, message));
        }
        let keys = Jwks::open(&issuer, clock).await?;
        Ok(Self { issuer, keys })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer.issuer
    }
}

/// Who a token stands for; the id of the request is left empty.
///
/// The issuer is chosen by what the token claims before anything is verified; that only decides which
/// keys are tried.
pub(super) async fn verify(
    verifiers: &[Verifier],
    token: &str,
    now: Timestamp,
) -> Result<Caller, Refused> {
    let header = decode_header(token).map_err(|_| Refused::Invalid("not a JWT"))?;
    if !matches!(header.alg, Algorithm::RS256 | Algorithm::ES256) {
        return Err(Refused::Invalid("algorithm"));
    }
    // Extensions that must be understood; we understand none.
    if header.crit.is_some() {
        return Err(Refused::Invalid("crit"));
    }
    let Claimed { iss } =
        dangerous::insecure_decode_claims(token).map_err(|_| Refused::Invalid("claims"))?;
    let verifier = verifiers.iter().find(|verifier| verifier.issuer() == iss);
    let verifier = verifier.ok_or(Refused::Invalid("issuer"))?;
    let key = verifier.keys.find(header.kid.as_deref(), header.alg).await;
    let key = key.ok_or(Refused::Invalid("key"))?;

    // Only the signature is left to the library: it reads the machine's clock, and lets a missing
    // audience pass.
    let mut signature = Validation::new(header.alg);
    signature.validate_exp = false;
    signature.validate_aud = false;
    signature.required_spec_claims.clear();
    let decoded = decode::<Map<String, Value>>(token, &key, &signature);
    let claims = decoded.map_err(|_| Refused::Invalid("signature"))?.claims;

    check_audience(&verifier.issuer.audience, claims.get("aud"))?;
    check_times(&claims, now)?;
    caller(&claims, &verifier.issuer)
}

#[derive(Deserialize)]
struct Claimed {
    iss: String,
}

fn check_audience(audience: &Audience, claim: Option<&Value>) -> Result<(), Refused> {
    let Audience::OneOf(ours) = audience else { return Ok(()) };
    let is_ours = |one: &Value| one.as_str().is_some_and(|one| ours.iter().any(|our| our == one));
    match claim {
        Some(Value::Array(all)) if all.iter().any(is_ours) => Ok(()),
        Some(one) if is_ours(one) => Ok(()),
        Some(_) | None => Err(Refused::Invalid("audience")),
    }
}

fn check_times(claims: &Map<String, Value>, now: Timestamp) -> Result<(), Refused> {
    let now_s = now.as_duration().as_secs_f64();
    let time = |claim| match claims.get(claim) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(Refused::Invalid("a time is no number")),
    };
    let expires_s = time("exp")?.ok_or(Refused::Invalid("no exp"))?;
    if expires_s + LEEWAY_S <= now_s {
        return Err(Refused::Expired);
    }
    match time("nbf")? {
        Some(begins_s) if now_s + LEEWAY_S < begins_s => Err(Refused::Invalid("not yet valid")),
        Some(_) | None => Ok(()),
    }
}

fn caller(claims: &Map<String, Value>, issuer: &Issuer) -> Result<Caller, Refused> {
    let names = &issuer.claims;
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str).map(str::trim);
    let subject =
        names.subject.iter().filter_map(|claim| text(claim)).find(|name| !name.is_empty());
    let subject = subject.filter(|name| is_subject(name)).ok_or(Refused::Invalid("subject"))?;
    if pool::is_reserved(subject) {
        return Err(Refused::Reserved);
    }
    let tenant = match claims.get(&names.tenant) {
        None => default_tenant(),
        // A tenant that cannot be read must not become another one.
        Some(tenant) => {
            let tenant = tenant.as_str().filter(|tenant| is_tenant(tenant));
            tenant.ok_or(Refused::Invalid("tenant"))?.to_owned()
        }
    };
    let teams = match claims.get(&names.teams) {
        Some(Value::Array(teams)) => teams.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(team)) => vec![team.as_str()],
        Some(_) | None => Vec::new(),
    };
    let role = match text(&names.role) {
        Some("viewer") => Role::Viewer,
        Some("operator") => Role::Operator,
        Some("admin") => Role::Admin,
        Some("adapter") => Role::Adapter,
        Some("node") => Role::Node,
        Some(_) | None => issuer.default_role,
    };
    let adapter = text(&names.adapter).filter(|adapter| is_subject(adapter)).map(str::to_owned);
    if role == Role::Adapter && adapter.is_none() {
        return Err(Refused::Invalid("an adapter without a name"));
    }
    let node = text(&names.node).filter(|node| is_subject(node)).map(str::to_owned);
    if role == Role::Node && node.is_none() {
        return Err(Refused::Invalid("a node without a name"));
    }
    Ok(Caller {
        subject: subject.to_owned(),
        via: "jwt",
        tenant,
        teams: teams.into_iter().filter(|team| is_subject(team)).map(str::to_owned).collect(),
        role,
        adapter,
        node,
        request_id: String::new(),
    })
}
