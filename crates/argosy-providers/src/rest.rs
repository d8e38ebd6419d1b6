//! One small caller of JSON over HTTPS, for every cloud that speaks it.
//!
//! Guarantees: nothing takes longer than was said at the beginning; a body is read only so far; redirects
//! are not followed; what changes something is sent once and never again by itself; no secret stands in an
//! error. What a newcomer gets wrong: a change whose answer was lost is not a change that failed.

mod bucket;

use argosy_control::clock::Clock;
use argosy_core::machine::Trouble;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use reqwest::{Client, Response, Url, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use bucket::Bucket;

/// A text that signs us in. It shows itself to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(Arc<str>);

impl Credential {
    /// Takes the text, without the line end that files have.
    pub fn new(text: &str) -> Self {
        Self(text.trim_end_matches(['\r', '\n']).into())
    }

    /// The text, for the header it belongs in.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `Bearer` and the text, marked so that no log of a header shows it.
    pub(crate) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// What a provider's settings lack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value that cannot be used.
    #[error("{field} {problem}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// What is wrong with it; never the value of a secret.
        problem: String,
    },
    /// The machine's TLS roots cannot be used.
    #[error("could not prepare for TLS: {0}")]
    Tls(String),
}

impl SettingsError {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }
}

/// Whether a call changes something at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only looks: sent again if the answer was lost.
    Look,
    /// It changes something: if the answer was lost, nobody knows.
    Change,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) headers: HeaderMap,
    /// With its content type.
    pub(crate) body: Option<(&'static str, Vec<u8>)>,
    pub(crate) effect: Effect,
    /// A narrower limit on calls of this kind, besides the account's.
    pub(crate) narrow: Option<&'a Bucket>,
}

impl Call<'_> {
    pub(crate) fn new(method: Method, url: Url, effect: Effect) -> Self {
        let (authorization, headers, body, narrow) = (None, HeaderMap::new(), None, None);
        Self { method, url, authorization, headers, body, effect, narrow }
    }

    pub(crate) fn json(mut self, body: Option<&Value>) -> Self {
        self.body = body.map(|body| ("application/json", body.to_string().into_bytes()));
        self
    }
}

/// An answer that says no.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) retry_after_s: Option<u32>,
    /// `Null` if it is not JSON.
    pub(crate) body: Value,
}

/// Why a call brought nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failed {
    /// The provider said no; its own table says what that means.
    Said(Said),
    /// There was no answer.
    Lost(Trouble),
    /// There was an answer that cannot be read; another would be no better.
    Garbled(Trouble),
}

/// Calls one provider with one account.
pub(crate) struct Rest {
    client: Client,
    /// Who is called, as people write it.
    who: &'static str,
    clock: Clock,
    total_max: Duration,
    bucket: Bucket,
}

/// A provider that does not take the connection in this time is out of reach.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long one call may take, from the queue of the throttle to the last byte.
pub(crate) const TOTAL_MAX: Duration = Duration::from_secs(30);

/// The longest answer: a page of 500 machines, several times over. Bytes.
pub(crate) const BODY_LEN_MAX: usize = 8 * 1024 * 1024;

/// The longest refusal that is read. Bytes.
const REFUSAL_LEN_MAX: usize = 64 * 1024;

/// How long a call may stand in the queue of the throttle; who would wait longer is sent away at once.
const QUEUE_MAX: Duration = Duration::from_secs(15);

/// The longest wait that a provider can impose on us.
const RETRY_AFTER_S_MAX: u32 = 600;

/// The pauses between attempts at a look whose answer was lost. A change has one attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// How much of what a provider said is repeated. Characters.
const MESSAGE_LEN_MAX: usize = 400;

impl Rest {
    /// A caller of an address that passes `check_url`.
    ///
    /// # Errors
    /// If the machine's TLS roots cannot be used.
    pub(crate) fn new(
        who: &'static str,
        base: &Url,
        total_max: Duration,
        bucket: Bucket,
        clock: Clock,
    ) -> Result<Self, SettingsError> {
        let builder = Client::builder()
            .user_agent(concat!("argosy/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_MAX.min(total_max))
            .timeout(total_max);
        // A proxy would read what is not encrypted; that stays on this machine or in its cloud.
        let builder = if base.scheme() == "http" { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|cause| SettingsError::Tls(explain(&cause)))?;
        Ok(Self { client, who, clock, total_max, bucket })
    }

    /// What the provider answers, if it says yes. A look is repeated a little if the answer is lost.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Value, Failed> {
        let late = || Failed::Lost(self.lost(call.effect, "it did not answer in time"));
        let mut left = self.total_max;
        let mut pauses = PAUSES.iter();
        loop {
            // The time begins behind our own queues, which have theirs: what waited there was never sent, and is not
            // in doubt.
            self.queue(&self.bucket).await?;
            if let Some(narrow) = call.narrow {
                self.queue(narrow).await?;
            }
            let began = self.clock.monotonic();
            let attempt = tokio::time::timeout(left, self.attempt(call)).await;
            let failed = match attempt.unwrap_or_else(|_| Err(late())) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            left = left.saturating_sub(self.clock.monotonic().saturating_sub(began));
            let again = call.effect == Effect::Look && passes(&failed);
            match pauses.next().filter(|pause| again && **pause < left) {
                Some(pause) => {
                    tokio::time::sleep(*pause).await;
                    left = left.saturating_sub(*pause);
                }
                None => return Err(failed),
            }
        }
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<Value, Failed> {
        let mut request = self
            .client
            .request(call.method.clone(), call.url.clone())
            .headers(call.headers.clone());
        if let Some(authorization) = &call.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some((content_type, body)) = &call.body {
            request = request.header(CONTENT_TYPE, *content_type).body(body.clone());
        }
        let answer = request.send().await.map_err(|cause| {
            let why = explain(&cause);
            Failed::Lost(if cause.is_builder() {
                Trouble::Unable(format!("the request to {} cannot be made: {why}", self.who))
            } else if cause.is_connect() {
                Trouble::Unreachable(format!("{} could not be reached: {why}", self.who))
            } else {
                self.lost(call.effect, &why)
            })
        })?;
        self.read(call, answer).await
    }

    async fn read(&self, call: &Call<'_>, answer: Response) -> Result<Value, Failed> {
        let status = answer.status();
        let retry_after_s = retry_after_s(answer.headers());
        if status.is_success() {
            let garbled = |why: &str| Failed::Garbled(self.lost(call.effect, why));
            let body = match body(answer, BODY_LEN_MAX).await {
                Ok(body) => body,
                Err(Unread::TooLong) => return Err(garbled("its answer is too long")),
                Err(Unread::BrokeOff(why)) => {
                    return Err(Failed::Lost(self.lost(call.effect, &why)));
                }
            };
            if body.is_empty() {
                return Ok(Value::Null);
            }
            // Nested deeper than serde_json goes is refused, too.
            return serde_json::from_slice(&body).map_err(|_| garbled("its answer is not JSON"));
        }
        // The status decides; a refusal whose body is lost is a refusal all the same.
        let body = body(answer, REFUSAL_LEN_MAX).await.unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let said = Said { status, retry_after_s, body };
        if let Some(seconds) = said.retry_after_s {
            self.hold(Duration::from_secs(seconds.into()));
        }
        Err(Failed::Said(said))
    }

    /// Nothing is sent for a while: the provider asked for it.
    fn hold(&self, wait: Duration) {
        self.bucket.hold(self.clock.monotonic(), wait);
    }

    /// Waits for its turn, or is sent away if that would take too long.
    async fn queue(&self, bucket: &Bucket) -> Result<(), Failed> {
        match bucket.take(self.clock.monotonic(), QUEUE_MAX.min(self.total_max)) {
            Ok(Duration::ZERO) => Ok(()),
            Ok(wait) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Err(wait) => {
                let seconds = wait.as_secs_f64().ceil();
                Err(Failed::Lost(Trouble::Throttled {
                    retry_after_s: Some(seconds as u32),
                    message: format!("not sent: {} allows no more calls for {seconds} s", self.who),
                }))
            }
        }
    }

    /// What a lost answer means.
    pub(crate) fn lost(&self, effect: Effect, why: &str) -> Trouble {
        let who = self.who;
        match effect {
            Effect::Look => Trouble::Unreachable(format!("no answer from {who}: {why}")),
            Effect::Change => {
                Trouble::Unsure(format!("{who} may have done it or not, the answer is lost: {why}"))
            }
        }
    }

    /// What an answer is that says no in a way that every provider means alike.
    pub(crate) fn common(&self, said: &Said, effect: Effect, message: &str) -> Trouble {
        let who = self.who;
        let status = said.status;
        let message = match plain(message) {
            empty if empty.is_empty() => format!("{who} answered {status}"),
            message => message,
        };
        match status {
            StatusCode::UNAUTHORIZED => Trouble::Credentials(message),
            StatusCode::FORBIDDEN => Trouble::Denied { permission: String::new(), message },
            StatusCode::NOT_FOUND => Trouble::NotFound(message),
            StatusCode::TOO_MANY_REQUESTS => {
                Trouble::Throttled { retry_after_s: said.retry_after_s, message }
            }
            // It was refused before it was begun, if it says when to come back.
            StatusCode::SERVICE_UNAVAILABLE if said.retry_after_s.is_some() => {
                Trouble::Throttled { retry_after_s: said.retry_after_s, message }
            }
            _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
                self.lost(effect, &message)
            }
            _ if status.is_redirection() => Trouble::Unreachable(format!(
                "{who} answered {status}; redirects are not followed, check the address"
            )),
            _ => Trouble::Invalid { field: String::new(), message },
        }
    }

    /// Reads an answer as what it should be.
    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        answer: Value,
        effect: Effect,
    ) -> Result<T, Trouble> {
        serde_json::from_value(answer).map_err(|cause| {
            let why = format!("its answer is not as it should be: {}", plain(&cause.to_string()));
            self.lost(effect, &why)
        })
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("who", &self.who).finish_non_exhaustive()
    }
}

/// Checks an address that credentials are sent to: encrypted, or on this very machine.
///
/// # Errors
/// If it is none.
pub(crate) fn check_url(field: &'static str, text: &str) -> Result<Url, SettingsError> {
    let url = Url::parse(text).map_err(|cause| {
        SettingsError::new(field, format!("`{}` is not a URL: {cause}", plain(text)))
    })?;
    let host = url.host_str().unwrap_or_default();
    let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let encrypted = url.scheme() == "https" || (url.scheme() == "http" && local);
    if !encrypted || url.cannot_be_a_base() || host.is_empty() {
        let problem = format!("`{}` must be an https URL", plain(text));
        return Err(SettingsError::new(field, problem));
    }
    Ok(url)
}

/// Adds segments to the path of an address, and a query. Nothing in a segment can leave it.
pub(crate) fn at(base: &Url, path: &[&str], query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

/// What somebody else wrote, short and in one line.
pub(crate) fn plain(text: &str) -> String {
    let clean = |char: char| if char.is_control() { ' ' } else { char };
    let mut cut: String = text.trim().chars().take(MESSAGE_LEN_MAX).map(clean).collect();
    if text.trim().chars().nth(MESSAGE_LEN_MAX).is_some() {
        cut.push('…');
    }
    cut
}

/// A lost look may be found by looking again; a refusal stays one.
fn passes(failed: &Failed) -> bool {
    match failed {
        Failed::Said(said) => said.status.is_server_error() && said.retry_after_s.is_none(),
        Failed::Lost(trouble) => matches!(trouble, Trouble::Unreachable(_)),
        Failed::Garbled(_) => false,
    }
}

fn retry_after_s(headers: &HeaderMap) -> Option<u32> {
    let seconds: u32 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.min(RETRY_AFTER_S_MAX))
}

/// Why a body could not be read.
enum Unread {
    TooLong,
    BrokeOff(String),
}

async fn body(mut answer: Response, len_max: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(chunk) =
        answer.chunk().await.map_err(|cause| Unread::BrokeOff(explain(&cause)))?
    {
        if len_max < body.len() + chunk.len() {
            return Err(Unread::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The whole chain, without the URL: a query may hold what is not to be told.
fn explain(failure: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut source = failure.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    if failure.is_timeout() {
        causes.insert(0, "it did not answer in time".to_owned());
    }
    if causes.is_empty() {
        causes.push("the request failed".to_owned());
    }
    plain(&causes.join(": "))
}

#[cfg(test)]
mod tests;
