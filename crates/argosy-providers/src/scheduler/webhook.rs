//! Tells a workload system by webhook, in Navarch's payload, and asks it how far a drain is.
//!
//! What a newcomer gets wrong: without an address to ask, a drain is never known to be over. It ends at
//! its deadline.

use super::{SettingsError, one_line};
use crate::outbound::{self, Allow, Outbound, Secret};
use argosy_control::clock::Clock;
use argosy_control::scheduler::{
    Abilities, Drain, DrainStatus, Listed, Machine, Scheduler, SchedulerError,
};
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
    address: String,
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
        let address = address(&settings);
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
            address,
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
        drain: Option<&Drain>,
    ) -> Result<(), SchedulerError> {
        let Some(url) = url else { return Ok(()) };
        let now = self.clock.now();
        let reason: String = reason.chars().take(REASON_MAX).collect();
        let left = |drain: &Drain| drain.deadline.duration_since(now).as_secs().max(0);
        let event = Event {
            event,
            node_id: machine.known_as.as_deref().unwrap_or(&machine.id),
            reason: &reason,
            timestamp: now,
            deadline: drain.map(|drain| drain.deadline),
            seconds_left: drain.map(left),
            force: drain.is_some_and(|drain| drain.force),
        };
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
    /// Of a drain: until when what runs has time to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    /// The same as a span, for a receiver whose clock is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<i64>,
    /// Of a drain: what is left then is to be ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    force: bool,
}

/// What is answered about a drain.
#[derive(Deserialize)]
struct Answer {
    drained: bool,
    /// Whether some work was, or is being, ended by force.
    #[serde(default)]
    forced: bool,
    message: Option<String>,
}

#[async_trait]
impl Scheduler for WebhookScheduler {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    /// An address that is not given is not told, and so nobody there knows.
    fn abilities(&self) -> Abilities {
        let (cordon, drain) = (self.cordon_url.is_some(), self.drain_url.is_some());
        Abilities { list: false, cordon, drain }
    }

    fn name_of(&self, machine: &Machine) -> Result<String, SchedulerError> {
        Ok(machine.known_as.clone().unwrap_or_else(|| machine.id.clone()))
    }

    async fn cordon(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError> {
        self.tell(self.cordon_url.as_deref(), "cordon", machine, reason, None).await
    }

    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError> {
        self.tell(self.uncordon_url.as_deref(), "uncordon", machine, "", None).await
    }

    async fn drain(&self, machine: &Machine, drain: &Drain) -> Result<(), SchedulerError> {
        self.tell(self.drain_url.as_deref(), "drain", machine, &drain.reason, Some(drain)).await
    }

    async fn drain_status(
        &self,
        machine: &Machine,
        _: &Drain,
    ) -> Result<DrainStatus, SchedulerError> {
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
        let message = one_line(&answer.message.unwrap_or_default(), MESSAGE_MAX);
        Ok(match (answer.drained, answer.forced) {
            (true, false) => DrainStatus::Drained,
            (true, true) => DrainStatus::Forced,
            (false, false) => DrainStatus::Draining { left: None, message },
            (false, true) => DrainStatus::Ending { left: None, message },
        })
    }

    async fn list(&self) -> Result<Vec<Listed>, SchedulerError> {
        Err(SchedulerError::Refused("a webhook cannot be asked what it holds".to_owned()))
    }
}

/// Where the receiver is, for people, and a hash of its addresses: these may hold secrets, and another one is
/// another receiver.
fn address(settings: &WebhookSettings) -> String {
    let urls = [
        &settings.cordon_url,
        &settings.uncordon_url,
        &settings.drain_url,
        &settings.drain_status_url,
    ];
    let host = urls.into_iter().flatten().next().and_then(|url| {
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
        Some(format!("{scheme}://{host}"))
    });
    let hash = Sha256::digest(format!("{urls:?}"));
    let hex: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}#{hex}", host.unwrap_or_default())
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
