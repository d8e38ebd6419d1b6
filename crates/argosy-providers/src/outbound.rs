//! The one way out to addresses that people configured.
//!
//! What a newcomer gets wrong: the answer's status decides, and its body is read only where it is asked
//! for, and only so far. So nobody can keep us busy with a long one, or have us repeat what an address
//! inside said.

mod guard;
mod secret;

use argosy_control::notify::SendError;
use guard::{Forbidden, Guard};
use http::StatusCode;
use reqwest::{Client, RequestBuilder, Response, Url, redirect};
use std::error::Error;
use std::time::Duration;

pub use guard::{Allow, AllowError};
pub use secret::{Secret, SecretError};

/// Sends requests.
///
/// Guarantees: redirects are not followed; only public addresses are reached, and those the operator
/// allows; nothing takes longer than was said at the beginning, the answer's body included.
#[derive(Debug)]
pub(crate) struct Outbound {
    client: Client,
    guard: Guard,
}

/// A receiver that does not take the connection in this time is not there.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long one attempt may take. Receivers are asked to answer first and work afterwards; a longer
/// wait only lets a broken one hold what others need.
pub(crate) const TOTAL_MAX: Duration = Duration::from_secs(10);

impl Outbound {
    /// `allow` opens addresses that are not public; no attempt takes longer than `total_max`.
    ///
    /// # Errors
    /// If the machine's TLS roots cannot be used.
    pub(crate) fn new(allow: Vec<Allow>, total_max: Duration) -> Result<Self, reqwest::Error> {
        let guard = Guard::new(allow);
        let client = Client::builder()
            .user_agent(concat!("argosy/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(guard.clone())
            // A proxy would look names up itself, past the guard.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_MAX)
            .timeout(total_max)
            .build()?;
        Ok(Self { client, guard })
    }

    /// A POST to an address that passes `check`.
    pub(crate) fn post(&self, url: &str) -> Result<RequestBuilder, SendError> {
        Ok(self.client.post(self.check(url)?))
    }

    /// A GET of an address that passes `check`.
    pub(crate) fn get(&self, url: &str) -> Result<RequestBuilder, SendError> {
        Ok(self.client.get(self.check(url)?))
    }

    /// The address, if it may be reached as far as can be seen without looking names up.
    pub(crate) fn check(&self, url: &str) -> Result<Url, SendError> {
        let url = Url::parse(url)
            .map_err(|cause| SendError::Refused(format!("the webhook's URL is none: {cause}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            let message = format!("a webhook's URL must start with http or https, not {scheme}");
            return Err(SendError::Refused(message));
        }
        let host = url.host_str().unwrap_or_default();
        self.guard.check_literal(host).map_err(|cause| SendError::Refused(cause.to_string()))?;
        Ok(url)
    }
}

/// Sends a request; anything but a status of success is an error.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, SendError> {
    let answer = request.send().await.map_err(explain)?;
    judge(answer.status())?;
    Ok(answer)
}

/// The body of an answer, if it has at most `bytes_max` bytes.
pub(crate) async fn read(mut answer: Response, bytes_max: usize) -> Result<Vec<u8>, SendError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(explain)? {
        if bytes_max < body.len() + chunk.len() {
            let message = format!("the receiver's answer is longer than {bytes_max} bytes");
            return Err(SendError::Refused(message));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn judge(status: StatusCode) -> Result<(), SendError> {
    let answered = format!("the receiver answered {status}");
    if status.is_success() {
        Ok(())
    } else if status.is_redirection() {
        Err(SendError::Refused(format!(
            "{answered}; redirects are not followed, give the final URL"
        )))
    } else if status.is_client_error() && !PASSING.contains(&status) {
        Err(SendError::Refused(answered))
    } else {
        Err(SendError::Later(answered))
    }
}

/// Client errors that pass by themselves.
const PASSING: [StatusCode; 3] =
    [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];

fn explain(failure: reqwest::Error) -> SendError {
    let hopeless = failure.is_builder();
    // The URL may hold a token.
    let failure = failure.without_url();
    let mut message = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        if let Some(forbidden) = cause.downcast_ref::<Forbidden>() {
            return SendError::Refused(forbidden.to_string());
        }
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    if hopeless { SendError::Refused(message) } else { SendError::Later(message) }
}
