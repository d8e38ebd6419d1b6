//! Delivers events to adapters outside, over HTTP, signed.
//!
//! What a newcomer gets wrong: the answer's status decides, and its body is never read. So nobody can
//! keep us busy with a long one, or have us repeat what an address inside said.

mod guard;

use argosy_control::clock::Clock;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use guard::{Forbidden, Guard};
use hmac::{Hmac, KeyInit, Mac};
use http::{StatusCode, header};
use reqwest::{Client, Url, redirect};
use sha2::Sha256;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

pub use guard::{Allow, AllowError};

/// Delivers events as CloudEvents 1.0 in structured JSON, with the headers of Standard Webhooks:
/// `webhook-id`, `webhook-timestamp` and `webhook-signature`.
///
/// Guarantees: a redelivery carries the same `webhook-id`; redirects are not followed; only public
/// addresses are reached, and those the operator allows; an attempt takes 10 s at most.
#[derive(Debug)]
pub struct WebhookNotifier {
    client: Client,
    guard: Guard,
    clock: Clock,
    secrets: HashMap<String, Secret>,
}

/// What signs the events of one adapter. It shows itself to nobody.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// A secret that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret must have at least {min} bytes, this one has {0}", min = Secret::LEN_MIN)]
pub struct SecretError(usize);

/// A receiver that does not take the connection in this time is not there.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long one attempt may take. Receivers are asked to answer first and work afterwards; a longer
/// wait only lets a broken one hold what others need.
const TOTAL_MAX: Duration = Duration::from_secs(10);

impl Secret {
    /// The fewest bytes: as many as Standard Webhooks asks for, too many to guess.
    pub const LEN_MIN: usize = 24;

    /// Takes the bytes of a secret.
    ///
    /// # Errors
    /// If they are too few.
    pub fn new(bytes: Vec<u8>) -> Result<Self, SecretError> {
        if bytes.len() < Self::LEN_MIN { Err(SecretError(bytes.len())) } else { Ok(Self(bytes)) }
    }

    /// `v1,` and the signature over the id, the time and the body.
    fn sign(&self, id: &str, unix_s: i64, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{unix_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl WebhookNotifier {
    /// A notifier with the secret of each adapter, by its name. `allow` opens addresses that are not
    /// public.
    ///
    /// # Errors
    /// If the machine's TLS roots cannot be used.
    pub fn new(
        secrets: HashMap<String, Secret>,
        allow: Vec<Allow>,
        clock: Clock,
    ) -> Result<Self, reqwest::Error> {
        let guard = Guard::new(allow);
        let client = Client::builder()
            .user_agent(concat!("argosy/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(guard.clone())
            // A proxy would look names up itself, past the guard.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_MAX)
            .timeout(TOTAL_MAX)
            .build()?;
        Ok(Self { client, guard, clock, secrets })
    }

    /// The address, if it may be reached as far as can be seen without looking names up.
    fn check(&self, url: &str) -> Result<Url, SendError> {
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

#[async_trait]
impl Notifier for WebhookNotifier {
    async fn send(&self, adapter: &str, url: &str, event: &CloudEvent) -> Result<(), SendError> {
        let url = self.check(url)?;
        let secret = self.secrets.get(adapter).ok_or_else(|| {
            SendError::Refused(format!("no webhook secret is configured for adapter `{adapter}`"))
        })?;
        let body = serde_json::to_vec(event)
            .map_err(|cause| SendError::Refused(format!("the event cannot be written: {cause}")))?;
        let unix_s = self.clock.now().as_second();
        let request = self
            .client
            .post(url)
            .header(header::CONTENT_TYPE, "application/cloudevents+json")
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", unix_s)
            .header("webhook-signature", secret.sign(&event.id, unix_s, &body))
            .body(body);
        match request.send().await {
            Ok(answer) => judge(answer.status()),
            Err(failure) => Err(explain(failure)),
        }
    }
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

#[cfg(test)]
mod tests;
