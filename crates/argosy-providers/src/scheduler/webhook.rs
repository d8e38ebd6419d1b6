//! Tells a workload system by webhook, in Navarch's payload, and asks it how far a drain is.
//!
//! What a newcomer gets wrong: without an address to ask, a drain is never known to be over. It ends at
//! its deadline.

use super::{SettingsError, one_line};
use crate::outbound::{self, Allow, Outbound, Secret};
use argosy_control::clock::Clock;
use argosy_control::scheduler::{DrainStatus, Machine, Scheduler, SchedulerError};
use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a workload system is told by webhook. An address that is not given is not told.
pub struct WebhookSettings {
    /// Is told of a cordon.
    pub cordon_url: Option<String>,
    /// Is told that a cordon or a drain is over.
    pub uncordon_url: Option<String>,
    /// Is told of a drain.
    pub drain_url: Option<String>,
    /// Is asked with `?node_id=…` how far a drain is. Without it every drain goes on until its deadline.
    pub drain_status_url: Option<String>,
    /// How long one attempt may take, its answer included; at most 10 s.
    pub timeout: Duration,
    /// Sent with each request: `Authorization`, for example.
    pub headers: BTreeMap<String, String>,
    /// What signs each event as Standard Webhooks has it.
    pub secret: Option<Secret>,
    /// Addresses that are reached although they are not public.
    pub allow: Vec<Allow>,
}

/// Tells a workload system by webhook.
///
/// Guarantees: redirects are not followed; only public addresses are reached, and those the operator
/// allows; an attempt takes 10 s at most, and 64 KiB of an answer are read at most. Each attempt has a
/// `webhook-id` of its own: what is told is a state, and hearing it twice is hearing it once.
pub struct WebhookScheduler {
    cordon_url: Option<String>,
    uncordon_url: Option<String>,
    drain_url: Option<String>,
    drain_status_url: Option<String>,
    headers: HeaderMap,
    secret: Option<Secret>,
    outbound: Outbound,
    clock: Clock,
}

/// The longest reason, in characters: a sentence for people. More would be a document.
const REASON_MAX: usize = 1024;

/// The most of an answer that is read: two members, one of them a sentence. Whoever sends more is not
/// the system that was meant.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The most of an answer's message that is shown, in characters.
const MESSAGE_MAX: usize = 500;

/// The most headers: what goes with every request should be few.
const HEADERS_MAX: usize = 32;

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            cordon_url: None,
            uncordon_url: None,
            drain_url: None,
            drain_status_url: None,
            timeout: outbound::TOTAL_MAX,
            headers: BTreeMap::new(),
            secret: None,
            allow: Vec::new(),
        }
    }
}

impl WebhookScheduler {
    /// Checks the settings as far as that can be done without asking anybody.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub fn new(settings: WebhookSettings, clock: Clock) -> Result<Self, SettingsError> {
        if settings.timeout.is_zero() || outbound::TOTAL_MAX < settings.timeout {
            let max_s = outbound::TOTAL_MAX.as_secs();
            let message = format!("must be more than nothing and at most {max_s}s");
            return Err(SettingsError::new("timeout", message));
        }
        let outbound = Outbound::new(settings.allow, settings.timeout)
            .map_err(|cause| SettingsError::new("webhook", cause))?;
        for (key, url) in [
            ("cordon_url", &settings.cordon_url),
            ("uncordon_url", &settings.uncordon_url),
            ("drain_url", &settings.drain_url),
            ("drain_status_url", &settings.drain_status_url),
        ] {
            if let Some(url) = url {
                outbound.check(url).map_err(|cause| SettingsError::new(key, cause))?;
            }
        }
        Ok(Self {
            cordon_url: settings.cordon_url,
            uncordon_url: settings.uncordon_url,
            drain_url: settings.drain_url,
            drain_status_url: settings.drain_status_url,
            headers: headers(&settings.headers)?,
            secret: settings.secret,
            outbound,
            clock,
        })
    }

    async fn tell(
        &self,
        url: Option<&str>,
        event: &'static str,
        machine: &Machine,
        reason: &str,
    ) -> Result<(), SchedulerError> {
        let Some(url) = url else { return Ok(()) };
        let now = self.clock.now();
        let reason: String = reason.chars().take(REASON_MAX).collect();
        let event = Event { event, node_id: &machine.id, reason: &reason, timestamp: now };
        let body = serde_json::to_vec(&event).map_err(|cause| {
            SchedulerError::Refused(format!("the event cannot be written: {cause}"))
        })?;
        let request = self
            .outbound
            .post(url)?
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json");
        let request = match &self.secret {
            Some(secret) => secret.seal(request, &id(&body), now.as_second(), body),
            None => request.body(body),
        };
        outbound::send(request).await?;
        Ok(())
    }
}

/// What is sent, as Navarch's receivers expect it.
#[derive(Serialize)]
struct Event<'a> {
    event: &'static str,
    node_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    timestamp: Timestamp,
}

/// What is answered about a drain.
#[derive(Deserialize)]
struct Answer {
    drained: bool,
    message: Option<String>,
}

#[async_trait]
impl Scheduler for WebhookScheduler {
    fn name(&self) -> &'static str {
        "webhook"
    }

    async fn cordon(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError> {
        self.tell(self.cordon_url.as_deref(), "cordon", machine, reason).await
    }

    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError> {
        self.tell(self.uncordon_url.as_deref(), "uncordon", machine, "").await
    }

    /// The payload has no room for the deadline: the receiver is asked until then, and not told.
    async fn drain(
        &self,
        machine: &Machine,
        reason: &str,
        _deadline: Timestamp,
    ) -> Result<(), SchedulerError> {
        self.tell(self.drain_url.as_deref(), "drain", machine, reason).await
    }

    async fn drain_status(&self, machine: &Machine) -> Result<DrainStatus, SchedulerError> {
        let Some(url) = self.drain_status_url.as_deref() else {
            let message = "nobody can be asked: no drain_status_url is configured".to_owned();
            return Ok(DrainStatus::Draining { left: None, message });
        };
        let request = self.outbound.get(url)?.headers(self.headers.clone());
        let answer = outbound::send(request.query(&[("node_id", &machine.id)])).await?;
        let status = answer.status();
        if status != StatusCode::OK {
            let message = format!("the receiver answered {status}; a drain status comes with 200");
            return Err(SchedulerError::Refused(message));
        }
        let body = outbound::read(answer, ANSWER_BYTES_MAX).await?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|cause| {
            SchedulerError::Refused(format!("the receiver's answer is no drain status: {cause}"))
        })?;
        if answer.drained {
            return Ok(DrainStatus::Drained);
        }
        let message = one_line(&answer.message.unwrap_or_default(), MESSAGE_MAX);
        Ok(DrainStatus::Draining { left: None, message })
    }
}

/// The event's id: the same bytes are the same event, and the time is among them.
fn id(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("evt_{hex}")
}

/// Reads the headers of the settings. Their values may be secrets: they are marked, and no complaint
/// repeats one.
fn headers(settings: &BTreeMap<String, String>) -> Result<HeaderMap, SettingsError> {
    let wrong = |message: String| Err(SettingsError::new("headers", message));
    if HEADERS_MAX < settings.len() {
        return wrong(format!("there are {}, at most {HEADERS_MAX} are sent", settings.len()));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in settings {
        let shown = one_line(name, 80);
        let Ok(name) = HeaderName::try_from(name) else {
            return wrong(format!("`{shown}` is not the name of a header"));
        };
        if OURS.contains(&name.as_str()) {
            return wrong(format!("`{shown}` is set by what is sent"));
        }
        let Ok(mut value) = HeaderValue::try_from(value) else {
            return wrong(format!("the value of `{shown}` has characters that no header can have"));
        };
        value.set_sensitive(true);
        if headers.insert(name, value).is_some() {
            return wrong(format!("`{shown}` is there twice"));
        }
    }
    Ok(headers)
}

/// Headers that follow from the request itself, or guard it.
const OURS: [&str; 9] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

#[cfg(test)]
mod tests;
