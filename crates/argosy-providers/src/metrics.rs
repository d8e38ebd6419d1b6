//! Measures pools by what a Prometheus server or any address that answers with JSON says.
//!
//! What a newcomer gets wrong: an answer is only a number. Whether it can be true is judged where it is used
//! (`argosy_core::autoscale::Metrics::plausible`), and a number that is not to be had moves nothing.

use crate::outbound::{self, Allow, Outbound, TOTAL_MAX};
use argosy_control::clock::Clock;
use argosy_control::extension::{Measuring, MetricsSource};
use argosy_core::autoscale::{MetricsAccess, RawMetrics, Source};
use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The longest answer that is read: one number, and what a server puts around it.
const ANSWER_LEN_MAX: usize = 64 * 1024;

/// A bearer token. Prints as nothing.
pub struct Token(String);

impl Token {
    /// Keeps a token.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Asks servers for numbers.
#[derive(Debug)]
pub struct WebMetrics {
    outbound: Outbound,
    /// By the name that stands in specs.
    tokens: BTreeMap<String, Token>,
    /// Where each may be sent, and for whom.
    access: MetricsAccess,
    clock: Clock,
}

impl WebMetrics {
    /// `allow` opens addresses that are not public; `access` says where each token may be sent, and for whom.
    ///
    /// # Errors
    /// If the machine's TLS roots cannot be used.
    pub fn new(
        allow: Vec<Allow>,
        tokens: BTreeMap<String, Token>,
        access: MetricsAccess,
        clock: Clock,
    ) -> Result<Self, reqwest::Error> {
        Ok(Self { outbound: Outbound::new(allow, TOTAL_MAX)?, tokens, access, clock })
    }

    /// The number of one source; `None` if it has none now. Heartbeats are somebody else's.
    async fn number(
        &self,
        source: &Source,
        tenant: &str,
        beat: Option<f64>,
    ) -> Result<Option<f64>, String> {
        match source {
            Source::Heartbeats => Ok(beat),
            Source::Prometheus { url, query, credentials } => {
                let url = format!("{}/api/v1/query", url.trim_end_matches('/'));
                let request = self.outbound.get(&url).map_err(|error| error.to_string())?;
                let request = request.query(&[("query", query)]);
                let answer = self.ask(request, credentials.as_deref(), tenant).await?;
                vector(&answer)
            }
            Source::Http { url, pointer, credentials } => {
                let request = self.outbound.get(url).map_err(|error| error.to_string())?;
                let answer = self.ask(request, credentials.as_deref(), tenant).await?;
                let found = answer.pointer(pointer).filter(|found| !found.is_null());
                found.map(number).transpose()
            }
        }
    }

    async fn ask(
        &self,
        request: RequestBuilder,
        name: Option<&str>,
        tenant: &str,
    ) -> Result<Value, String> {
        let request = match name {
            None => request,
            Some(name) => {
                // The address as it is really asked: who checked the spec saw what was written there.
                let asked = request.try_clone().and_then(|request| request.build().ok());
                let url = asked.as_ref().map(|asked| asked.url().as_str()).unwrap_or_default();
                if let Some(refusal) = self.access.refusal(name, url, tenant) {
                    return Err(refusal);
                }
                let token = self.tokens.get(name);
                let missing = || format!("metrics_credentials.{name} has no token");
                request.bearer_auth(&token.ok_or_else(missing)?.0)
            }
        };
        let answer = outbound::send(request).await.map_err(|error| error.to_string())?;
        let body =
            outbound::read(answer, ANSWER_LEN_MAX).await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&body).map_err(|error| format!("the answer is not JSON: {error}"))
    }
}

#[async_trait]
impl MetricsSource for WebMetrics {
    async fn measure(&self, of: &Measuring, beats: &RawMetrics) -> Result<RawMetrics, String> {
        let from = &of.from;
        Ok(RawMetrics {
            at: Some(self.clock.now()),
            utilization: self.number(&from.utilization, &of.tenant, beats.utilization).await?,
            busy_nodes: beats.busy_nodes,
            pending_jobs: self.number(&from.pending_jobs, &of.tenant, beats.pending_jobs).await?,
            queue_depth: self.number(&from.queue_depth, &of.tenant, beats.queue_depth).await?,
            history: Vec::new(),
        })
    }
}

/// The one value of an instant query: a scalar, or a vector with one sample. An empty vector has none.
fn vector(answer: &Value) -> Result<Option<f64>, String> {
    if answer.get("status").and_then(Value::as_str) != Some("success") {
        let error = answer.get("error").and_then(Value::as_str).unwrap_or("no success");
        return Err(format!("the query failed: {}", error.chars().take(200).collect::<String>()));
    }
    let result = answer.pointer("/data/result").and_then(Value::as_array);
    let result = result.ok_or_else(|| "the answer has no result".to_owned())?;
    let kind = answer.pointer("/data/resultType").and_then(Value::as_str).unwrap_or_default();
    let sample = match (kind, result.as_slice()) {
        ("scalar", [_, value]) => value,
        ("vector", []) => return Ok(None),
        ("vector", [one]) => {
            one.pointer("/value/1").ok_or_else(|| "the sample has no value".to_owned())?
        }
        ("vector", many) => {
            let count = many.len();
            return Err(format!(
                "the query has {count} results; aggregate them to one, as by sum()"
            ));
        }
        (other, _) => return Err(format!("the query gives a {other}; ask for one number")),
    };
    number(sample).map(Some)
}

/// A number, or the text of one as Prometheus writes it; `NaN` and `+Inf` are numbers here.
fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => number.as_f64().ok_or_else(|| format!("{number} is no number")),
        Value::String(text) => {
            text.trim().parse().map_err(|_| format!("`{:.40}` is no number", text.trim()))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err("there is something else than a number".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
