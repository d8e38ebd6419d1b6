//! Where the input of an autoscaler comes from: what to fetch, checked; whoever fetches it is elsewhere.

use super::write_span;
use crate::field::reader::Reader;
use crate::field::{Constraint, FieldError, quotable};
use jiff::SignedDuration;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Where the input of an autoscaler comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsFrom {
    /// Of utilization.
    pub utilization: Source,
    /// Of waiting jobs.
    pub pending_jobs: Source,
    /// Of the whole queue.
    pub queue_depth: Source,
    /// How old a measurement may be before it is not used any more.
    #[serde(rename = "maxAge", serialize_with = "write_span")]
    pub age_max: SignedDuration,
}

/// Who is asked for one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The agents say it.
    Heartbeats,
    /// An instant query.
    Prometheus {
        /// The server's address, without `/api/v1/query`.
        url: String,
        /// PromQL with one value as its result.
        query: String,
        /// The name of the credentials, never the credentials.
        credentials: Option<String>,
    },
    /// A GET that answers with JSON.
    Http {
        /// What to get.
        url: String,
        /// Where in the answer the number is (RFC 6901); empty if the answer is the number.
        pointer: String,
        /// The name of the credentials, never the credentials.
        credentials: Option<String>,
    },
}

/// The longest address.
pub const URL_LEN_MAX: usize = 2048;
/// The longest query: it is sent at every look.
pub const QUERY_LEN_MAX: usize = 4096;
/// The longest pointer, and the longest name of credentials.
const WORD_LEN_MAX: usize = 256;

/// Ten heartbeats at their usual pace.
const AGE_DEFAULT: SignedDuration = SignedDuration::from_mins(5);
/// Below this, one lost heartbeat would blind us; above the second, the load was another one.
const AGE_RANGE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(10), SignedDuration::from_hours(1));

impl Default for MetricsFrom {
    fn default() -> Self {
        MetricsFrom {
            utilization: Source::Heartbeats,
            pending_jobs: Source::Heartbeats,
            queue_depth: Source::Heartbeats,
            age_max: AGE_DEFAULT,
        }
    }
}

impl MetricsFrom {
    /// Reads `"heartbeats"`, or an object with a source for each metric that is not from heartbeats.
    pub(super) fn parse(value: &Value, field: &str) -> Result<MetricsFrom, Vec<FieldError>> {
        if value.is_string() {
            let source = Source::parse(value, field)?;
            return Ok(MetricsFrom { utilization: source, ..MetricsFrom::default() });
        }
        let mut reader = Reader::open(value, field)?;
        let source = |reader: &mut Reader<'_>, name| {
            let field = reader.path(name);
            let read = reader.get(name).map(|value| Source::parse(value, &field))?;
            reader.take(read)
        };
        let from = MetricsFrom {
            utilization: source(&mut reader, "utilization").unwrap_or(Source::Heartbeats),
            pending_jobs: source(&mut reader, "pendingJobs").unwrap_or(Source::Heartbeats),
            queue_depth: source(&mut reader, "queueDepth").unwrap_or(Source::Heartbeats),
            age_max: reader.span("maxAge", AGE_RANGE).unwrap_or(AGE_DEFAULT),
        };
        reader.close()?;
        Ok(from)
    }
}

impl Source {
    fn parse(value: &Value, field: &str) -> Result<Source, Vec<FieldError>> {
        if let Value::String(word) = value {
            if word == "heartbeats" {
                return Ok(Source::Heartbeats);
            }
            let word = quotable(word);
            let message = format!(
                "{field} must be `heartbeats`, or {{prometheus: {{url, query}}}}, or {{http: {{url, \
                 pointer}}}}, not `{word}`"
            );
            return Err(vec![FieldError::new(field, Constraint::Enum, message).with_value(word)]);
        }
        let mut reader = Reader::open(value, field)?;
        let (prometheus, http) = (reader.get("prometheus"), reader.get("http"));
        let path = |name| format!("{field}.{name}");
        let read = match (prometheus, http) {
            (Some(value), None) => Some(read_prometheus(value, &path("prometheus"))),
            (None, Some(value)) => Some(read_http(value, &path("http"))),
            (Some(_), Some(_)) => {
                reader.complain("http", Constraint::Unique, "is one source too many; give one");
                None
            }
            (None, None) => {
                let message = "is missing: say prometheus or http, or write just \"heartbeats\"";
                reader.complain("prometheus", Constraint::Required, message);
                None
            }
        };
        let source = read.and_then(|read| reader.take(read));
        reader.close()?;
        source.ok_or_else(Vec::new)
    }
}

fn read_prometheus(value: &Value, field: &str) -> Result<Source, Vec<FieldError>> {
    let mut reader = Reader::open(value, field)?;
    let url = read_url(&mut reader);
    let query = read_text(&mut reader, "query", QUERY_LEN_MAX).unwrap_or_default();
    if query.trim().is_empty() {
        let message = "is missing: give PromQL that has one number as its result";
        reader.complain("query", Constraint::Required, message);
    }
    let credentials = read_text(&mut reader, "credentials", WORD_LEN_MAX);
    reader.close()?;
    Ok(Source::Prometheus { url, query, credentials })
}

fn read_http(value: &Value, field: &str) -> Result<Source, Vec<FieldError>> {
    let mut reader = Reader::open(value, field)?;
    let url = read_url(&mut reader);
    let pointer = read_text(&mut reader, "pointer", WORD_LEN_MAX).unwrap_or_default();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        let message = "must begin with /, like /queue/depth (RFC 6901)";
        reader.complain("pointer", Constraint::Pattern, message);
    }
    let credentials = read_text(&mut reader, "credentials", WORD_LEN_MAX);
    reader.close()?;
    Ok(Source::Http { url, pointer, credentials })
}

fn read_url(reader: &mut Reader<'_>) -> String {
    let Some(url) = read_text(reader, "url", URL_LEN_MAX) else {
        if !reader.has("url") {
            reader.complain("url", Constraint::Required, "is missing: give http:// or https:// …");
        }
        return String::new();
    };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if host.contains('@') {
        let message = "must not carry a password: name it with `credentials`";
        reader.complain_of_secret("url", Constraint::Pattern, message);
    } else if host.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        let message = "must be an address like https://prometheus.example:9090";
        reader.complain_of_secret("url", Constraint::Pattern, message);
    }
    url
}

fn read_text(reader: &mut Reader<'_>, name: &'static str, len_max: usize) -> Option<String> {
    let text = reader.text(name)?;
    if len_max < text.len() {
        let message = format_args!("has {} bytes; at most {len_max} are allowed", text.len());
        reader.complain(name, Constraint::MaxLength, message);
        return None;
    }
    Some(text.to_owned())
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let with = |mut json: Value, credentials: &Option<String>| {
            if let (Value::Object(json), Some(name)) = (&mut json, credentials) {
                json.insert("credentials".to_owned(), json!(name));
            }
            json
        };
        match self {
            Source::Heartbeats => json!("heartbeats"),
            Source::Prometheus { url, query, credentials } => {
                json!({ "prometheus": with(json!({ "url": url, "query": query }), credentials) })
            }
            Source::Http { url, pointer, credentials } => {
                json!({ "http": with(json!({ "url": url, "pointer": pointer }), credentials) })
            }
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
