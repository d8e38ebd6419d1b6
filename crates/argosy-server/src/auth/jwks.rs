//! The public keys of an issuer: fetched, kept, and kept on when the issuer is away.
//!
//! A fetch runs on its own, not inside the request that asked for it: otherwise a client that hangs up
//! would stop it, and one that does so again and again would keep us from ever learning a new key.

use super::{Issuer, JwksSource};
use argosy_control::clock::Clock;
use argosy_core::field::{Constraint, FieldError};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

/// How old keys may become before they are fetched again: a key that an issuer withdrew is refused
/// after this time.
const REFRESH_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// How long after a fetch the next may begin, whatever tokens claim: unknown keys are cheap to invent.
const FETCH_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// How long a fetch may take. Shorter than `FETCH_PAUSE`, so there is one at a time.
const FETCH_MAX: Duration = Duration::from_secs(5);

/// How large a key set may be: a hundred keys, with certificates.
const JWKS_BYTES_MAX: usize = 256 * 1024;

/// The keys of one issuer.
pub(super) struct Jwks {
    shared: Arc<Shared>,
    fetches: Mutex<JoinSet<()>>,
}

struct Shared {
    issuer: String,
    source: Source,
    clock: Clock,
    state: watch::Sender<State>,
}

enum Source {
    File(std::path::PathBuf),
    Url(Client, Url),
}

#[derive(Default)]
struct State {
    keys: Vec<Key>,
    /// When `keys` were fetched.
    good_at: Option<Timestamp>,
    /// When the last fetch began.
    asked_at: Option<Timestamp>,
    /// How many fetches have begun, and which was the last to end.
    asked: u64,
    answered: u64,
}

struct Key {
    kid: Option<String>,
    algorithm: Algorithm,
    key: Arc<DecodingKey>,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("it could not be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("it could not be fetched: {0}")]
    Http(reqwest::Error),
    #[error("it answered {0}")]
    Status(StatusCode),
    #[error("it is larger than {JWKS_BYTES_MAX} bytes")]
    TooLarge,
    #[error("it is not a JSON web key set: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it has no key for RS256 or ES256")]
    NoKeys,
}

impl From<reqwest::Error> for FetchError {
    fn from(cause: reqwest::Error) -> Self {
        // An address can carry a password.
        Self::Http(cause.without_url())
    }
}

impl Jwks {
    /// Reads a file now; begins to ask an address.
    pub(super) async fn open(issuer: &Issuer, clock: Clock) -> Result<Self, FieldError> {
        let wrong = |message: String| FieldError::new("jwks", Constraint::Format, message);
        let source = match &issuer.jwks {
            JwksSource::File(path) => Source::File(path.clone()),
            JwksSource::Url(url) => address(url).map_err(wrong)?,
        };
        let issuer = issuer.issuer.clone();
        let state = watch::Sender::new(State::default());
        let shared = Arc::new(Shared { issuer, source, clock, state });
        let jwks = Self { shared, fetches: Mutex::default() };
        if let Source::File(path) = &jwks.shared.source {
            let keys = jwks.shared.fetch().await;
            let keys = keys.map_err(|error| wrong(format!("{}: {error}", path.display())))?;
            jwks.shared.state.send_modify(|state| {
                state.keys = keys;
                state.good_at = Some(clock.now());
            });
        } else {
            jwks.refresh();
        }
        Ok(jwks)
    }

    /// The key a token says it was signed with; a token that names none gets the only one there is.
    ///
    /// Waits for the issuer only if the key is not known.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<Arc<DecodingKey>> {
        let mut state = self.shared.state.subscribe();
        let (known, good_at) = {
            let state = state.borrow();
            (state.pick(kid, algorithm), state.good_at)
        };
        let now = self.shared.clock.now();
        if known.is_none() || good_at.is_none_or(|at| REFRESH_EVERY < apart(now, at)) {
            self.refresh();
        }
        if known.is_some() {
            return known;
        }
        let answered = state.wait_for(|state| state.answered == state.asked);
        let state = tokio::time::timeout(FETCH_MAX, answered).await.ok()?.ok()?;
        state.pick(kid, algorithm)
    }

    /// Begins a fetch, unless one began a moment ago.
    fn refresh(&self) {
        let now = self.shared.clock.now();
        let mut number = 0;
        let begin = self.shared.state.send_if_modified(|state| {
            if state.asked_at.is_some_and(|at| apart(now, at) < FETCH_PAUSE) {
                return false;
            }
            state.asked += 1;
            state.asked_at = Some(now);
            number = state.asked;
            true
        });
        if begin {
            let mut fetches = self.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            while fetches.try_join_next().is_some() {}
            let shared = Arc::clone(&self.shared);
            fetches.spawn(async move { shared.update(number).await });
        }
    }
}

/// How far two times are from each other; a clock that was set back must not stop us for long.
fn apart(one: Timestamp, other: Timestamp) -> SignedDuration {
    one.duration_since(other).abs()
}

impl State {
    fn pick(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
        let mut fitting = self.keys.iter().filter(|key| {
            key.algorithm == algorithm && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
        });
        let key = fitting.next()?;
        // Without a name, which of several keys is meant would be a guess.
        (kid.is_some() || fitting.next().is_none()).then(|| Arc::clone(&key.key))
    }
}

impl Shared {
    async fn update(&self, number: u64) {
        let fetched = self.fetch().await;
        match &fetched {
            Ok(keys) => info!(issuer = self.issuer, keys = keys.len(), "fetched the issuer's keys"),
            Err(cause) => {
                warn!(issuer = self.issuer, %cause, "could not fetch the issuer's keys; keeping the old ones");
            }
        }
        self.state.send_modify(|state| {
            state.answered = number;
            if let Ok(keys) = fetched {
                state.keys = keys;
                state.good_at = Some(self.clock.now());
            }
        });
    }

    async fn fetch(&self) -> Result<Vec<Key>, FetchError> {
        let bytes = match &self.source {
            Source::File(path) => read(path).await?,
            Source::Url(client, url) => get(client, url).await?,
        };
        parse(&bytes)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, FetchError> {
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await?;
    file.take(JWKS_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).await?;
    if JWKS_BYTES_MAX < bytes.len() { Err(FetchError::TooLarge) } else { Ok(bytes) }
}

async fn get(client: &Client, url: &Url) -> Result<Vec<u8>, FetchError> {
    let mut response = client.get(url.clone()).send().await?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if JWKS_BYTES_MAX < bytes.len() + chunk.len() {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// An address keys may come from, and what fetches them. Keys that come in the clear are anybody's.
fn address(text: &str) -> Result<Source, String> {
    let url: Url = text.parse().map_err(|cause| format!("it is not an address: {cause}"))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let here = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if url.scheme() != "https" && !(here && url.scheme() == "http") {
        return Err("keys are fetched by https, or by http from this machine".to_owned());
    }
    // A redirect could lead to another scheme or host.
    let client = Client::builder().timeout(FETCH_MAX).redirect(reqwest::redirect::Policy::none());
    let client = if here { client.no_proxy() } else { client };
    let client = client.build().map_err(|cause| format!("no client for it: {cause}"))?;
    Ok(Source::Url(client, url))
}

/// The keys of a set that we can use; others (for encryption, of other algorithms) are passed over.
fn parse(bytes: &[u8]) -> Result<Vec<Key>, FetchError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(bytes)?;
    let keys: Vec<Key> = set.keys.into_iter().filter_map(usable).collect();
    if keys.is_empty() { Err(FetchError::NoKeys) } else { Ok(keys) }
}

fn usable(key: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(key).ok()?;
    let (algorithm, named) = if let AlgorithmParameters::RSA(_) = &jwk.algorithm {
        (Algorithm::RS256, KeyAlgorithm::RS256)
    } else if let AlgorithmParameters::EllipticCurve(key) = &jwk.algorithm
        && key.curve == EllipticCurve::P256
    {
        (Algorithm::ES256, KeyAlgorithm::ES256)
    } else {
        return None;
    };
    let signs = jwk.common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
    if !signs || jwk.common.key_algorithm.is_some_and(|it| it != named) {
        return None;
    }
    let key = Arc::new(DecodingKey::from_jwk(&jwk).ok()?);
    Some(Key { kid: jwk.common.key_id, algorithm, key })
}
