//! Delivers events to adapters outside, over HTTP, signed.

use crate::outbound::{self, Outbound};
use argosy_control::clock::Clock;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use async_trait::async_trait;
use http::header;
use std::collections::HashMap;

pub use crate::outbound::{Allow, AllowError, Secret, SecretError};

/// Delivers events as CloudEvents 1.0 in structured JSON, with the headers of Standard Webhooks:
/// `webhook-id`, `webhook-timestamp` and `webhook-signature`.
///
/// Guarantees: a redelivery carries the same `webhook-id`; redirects are not followed; only public
/// addresses are reached, and those the operator allows; an attempt takes 10 s at most.
#[derive(Debug)]
pub struct WebhookNotifier {
    outbound: Outbound,
    clock: Clock,
    secrets: HashMap<String, Secret>,
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
        Ok(Self { outbound: Outbound::new(allow, outbound::TOTAL_MAX)?, clock, secrets })
    }
}

#[async_trait]
impl Notifier for WebhookNotifier {
    async fn send(&self, adapter: &str, url: &str, event: &CloudEvent) -> Result<(), SendError> {
        let request = self.outbound.post(url)?;
        let secret = self.secrets.get(adapter).ok_or_else(|| {
            SendError::Refused(format!("no webhook secret is configured for adapter `{adapter}`"))
        })?;
        let body = serde_json::to_vec(event)
            .map_err(|cause| SendError::Refused(format!("the event cannot be written: {cause}")))?;
        let request = request.header(header::CONTENT_TYPE, "application/cloudevents+json");
        let request = secret.seal(request, &event.id, self.clock.wall().as_second(), body);
        outbound::send(request).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
