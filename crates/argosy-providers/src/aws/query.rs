//! One signed call of EC2 or Route 53, and its answer.
//!
//! What a newcomer gets wrong: a failure says whether the call can have been heard. Only what was never sent
//! was certainly not done.

use super::Settings;
use super::credential::Keyring;
use super::pace::WAIT_MAX;
use super::xml;
use crate::rest::Bucket;
use argosy_control::clock::Clock;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::time::{Duration, SystemTime};

/// How long the connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a whole call may take, its answer included. RunInstances takes a few seconds.
const TOTAL_MAX: Duration = Duration::from_secs(30);

/// The version of EC2's Query API whose words we speak.
const EC2_VERSION: &str = "2016-11-15";

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only looks.
    Read,
    /// It changes something.
    Change,
    /// It buys a machine: EC2 counts these apart.
    Launch,
}

/// A call of EC2: an action and its parameters.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) action: &'static str,
    pub(super) effect: Effect,
    parameters: Vec<(String, String)>,
}

impl Query {
    pub(super) fn new(action: &'static str, effect: Effect) -> Self {
        Self { action, effect, parameters: Vec::new() }
    }

    pub(super) fn read(action: &'static str) -> Self {
        Self::new(action, Effect::Read)
    }

    pub(super) fn change(action: &'static str) -> Self {
        Self::new(action, Effect::Change)
    }

    pub(super) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// `Name.1`, `Name.2` and so on.
    pub(super) fn with_all<'a>(
        self,
        name: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let numbered = values.into_iter().enumerate();
        numbered.fold(self, |query, (at, value)| query.with(format!("{name}.{}", at + 1), value))
    }

    /// One more filter: what is shown has one of the values.
    pub(super) fn filter(self, name: &str, values: &[&str]) -> Self {
        let number = 1 + self
            .parameters
            .iter()
            .filter(|(key, _)| key.starts_with("Filter.") && key.ends_with(".Name"))
            .count();
        self.with(format!("Filter.{number}.Name"), name)
            .with_all(&format!("Filter.{number}.Value"), values.iter().copied())
    }

    pub(super) fn body(&self) -> String {
        // The URL type knows how to write a form.
        let mut form = Url::parse("http://form.invalid/").expect("a URL that stands here");
        form.query_pairs_mut()
            .append_pair("Action", self.action)
            .append_pair("Version", EC2_VERSION)
            .extend_pairs(&self.parameters);
        form.query().unwrap_or_default().to_owned()
    }
}

/// Why a call has no answer that can be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    /// Which call: `ec2:RunInstances`.
    pub(super) permission: String,
    /// What the call would have done.
    pub(super) effect: Effect,
    pub(super) kind: FaultKind,
}

/// The kinds of fault.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FaultKind {
    /// There are no keys to sign it with.
    NoKeys(String),
    /// It was never sent.
    NotSent(String),
    /// It was sent, and nothing that can be understood came back.
    NoAnswer(String),
    /// It would have been too fast, by our own count.
    TooFast(Duration),
    /// It was answered with an error.
    Refused(Refused),
}

/// An error that AWS answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) retry_after_s: Option<u32>,
}

impl Fault {
    /// The code that AWS answered with.
    pub(super) fn code(&self) -> &str {
        match &self.kind {
            FaultKind::Refused(refused) => &refused.code,
            FaultKind::NoKeys(_)
            | FaultKind::NotSent(_)
            | FaultKind::NoAnswer(_)
            | FaultKind::TooFast(_) => "",
        }
    }
}

/// Speaks with EC2 and Route 53 in one account and region.
pub(super) struct Client {
    http: reqwest::Client,
    keyring: Keyring,
    clock: Clock,
    ec2: Service,
    dns: Service,
    launches: Bucket,
    changes: Bucket,
    reads: Bucket,
    dns_calls: Bucket,
}

/// Where a service is, and what its signatures name.
#[derive(Clone, Debug)]
struct Service {
    name: &'static str,
    url: Url,
    region: String,
}

/// A call that is ready to be signed.
struct Call<'a> {
    service: &'a Service,
    permission: String,
    effect: Effect,
    method: Method,
    url: Url,
    content_type: &'static str,
    body: String,
}

impl Client {
    pub(super) fn new(settings: &Settings, clock: Clock) -> Result<Self, String> {
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("argosy/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_MAX)
            .timeout(TOTAL_MAX);
        if settings.endpoint.is_some() {
            // Whoever names an address means that address.
            http = http.no_proxy();
        }
        let http = http.build().map_err(|cause| explain(&cause))?;
        let (ec2, dns) = services(&settings.region, settings.endpoint.as_ref())?;
        let rates = &settings.rates;
        Ok(Self {
            http,
            keyring: Keyring::new(settings.credentials.clone(), &settings.region),
            clock,
            ec2,
            dns,
            launches: rates.launches.bucket(),
            changes: rates.changes.bucket(),
            reads: rates.reads.bucket(),
            dns_calls: rates.dns.bucket(),
        })
    }

    /// One call of EC2.
    pub(super) async fn ec2<T: DeserializeOwned>(&self, query: &Query) -> Result<T, Fault> {
        let call = Call {
            service: &self.ec2,
            permission: format!("ec2:{}", query.action),
            effect: query.effect,
            method: Method::POST,
            url: self.ec2.url.clone(),
            content_type: "application/x-www-form-urlencoded; charset=utf-8",
            body: query.body(),
        };
        let bucket = match query.effect {
            Effect::Read => &self.reads,
            Effect::Change => &self.changes,
            Effect::Launch => &self.launches,
        };
        self.call(call, bucket).await
    }

    /// One call of Route 53. `path` begins after the version, and has its query.
    pub(super) async fn dns<T: DeserializeOwned>(
        &self,
        action: &'static str,
        path: &str,
        body: Option<String>,
    ) -> Result<T, Fault> {
        let permission = format!("route53:{action}");
        let (method, effect) = match body {
            Some(_) => (Method::POST, Effect::Change),
            None => (Method::GET, Effect::Read),
        };
        let url = self.dns.url.join(&format!("/2013-04-01/{path}")).map_err(|cause| Fault {
            permission: permission.clone(),
            effect,
            kind: FaultKind::NotSent(format!("{path} cannot be asked for: {cause}")),
        })?;
        let call = Call {
            service: &self.dns,
            permission,
            effect,
            method,
            url,
            content_type: "text/xml",
            body: body.unwrap_or_default(),
        };
        self.call(call, &self.dns_calls).await
    }

    async fn call<T: DeserializeOwned>(&self, call: Call<'_>, bucket: &Bucket) -> Result<T, Fault> {
        let (permission, effect) = (call.permission.clone(), call.effect);
        let fault = |kind| Fault { permission: permission.clone(), effect, kind };
        match bucket.take(self.clock.monotonic(), WAIT_MAX) {
            Ok(wait) if wait.is_zero() => {}
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(wait) => return Err(fault(FaultKind::TooFast(wait.max(WAIT_MAX)))),
        }
        let keys = self.keyring.keys(&self.clock).await;
        let keys = keys.map_err(|why| fault(FaultKind::NoKeys(why)))?;
        let headers = signed(&call, keys, SystemTime::from(self.clock.wall()))
            .map_err(|why| fault(FaultKind::NotSent(why)))?;
        let (status, headers, body) = self.send(call, headers).await.map_err(fault)?;
        if status.is_success() {
            let read = xml::read(&body);
            return read.map_err(|cause| fault(FaultKind::NoAnswer(cause.to_string())));
        }
        let refused = refused(status, &headers, &body);
        if super::trouble::is_throttle(&refused) {
            let retry_after = Duration::from_secs(refused.retry_after_s.unwrap_or(0).into());
            bucket.hold(self.clock.monotonic(), retry_after);
        }
        if super::trouble::is_credentials(&refused.code) {
            self.keyring.refused().await;
        }
        Err(fault(FaultKind::Refused(refused)))
    }

    async fn send(
        &self,
        call: Call<'_>,
        headers: HeaderMap,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), FaultKind> {
        let request = self.http.request(call.method, call.url).headers(headers).body(call.body);
        let mut answer = request.send().await.map_err(|cause| {
            let why = explain(&cause);
            // Before there is a connection, nobody has heard anything.
            if cause.is_connect() || cause.is_builder() {
                FaultKind::NotSent(why)
            } else {
                FaultKind::NoAnswer(why)
            }
        })?;
        let mut body = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= xml::BODY_MAX => {
                    body.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    return Err(FaultKind::NoAnswer(xml::XmlError::TooLong.to_string()));
                }
                Ok(None) => return Ok((answer.status(), answer.headers().clone(), body)),
                Err(cause) => return Err(FaultKind::NoAnswer(explain(&cause))),
            }
        }
    }
}

/// The headers of a call, its signature among them.
fn signed(
    call: &Call<'_>,
    keys: aws_credential_types::Credentials,
    now: SystemTime,
) -> Result<HeaderMap, String> {
    let identity = keys.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(&call.service.region)
        .name(call.service.name)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|cause| explain(&cause))?;
    let content_type = [(header::CONTENT_TYPE.as_str(), call.content_type)];
    let request = SignableRequest::new(
        call.method.as_str(),
        call.url.as_str(),
        content_type.into_iter(),
        SignableBody::Bytes(call.body.as_bytes()),
    )
    .map_err(|cause| explain(&cause))?;
    let (instructions, _) =
        sign(request, &parameters.into()).map_err(|cause| explain(&cause))?.into_parts();
    let mut request = http::Request::new(());
    request
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(call.content_type));
    instructions.apply_to_request_http1x(&mut request);
    Ok(std::mem::take(request.headers_mut()))
}

/// Where the services of a region are.
fn services(region: &str, endpoint: Option<&Url>) -> Result<(Service, Service), String> {
    let (suffix, dns_host, dns_region) = if region.starts_with("cn-") {
        ("amazonaws.com.cn", "route53.amazonaws.com.cn", "cn-northwest-1")
    } else if region.starts_with("us-gov-") {
        ("amazonaws.com", "route53.us-gov.amazonaws.com", "us-gov-west-1")
    } else {
        ("amazonaws.com", "route53.amazonaws.com", "us-east-1")
    };
    let url = |host: &str| match endpoint {
        Some(endpoint) => Ok(endpoint.clone()),
        None => Url::parse(&format!("https://{host}/"))
            .map_err(|cause| format!("{region} is no region: {cause}")),
    };
    let ec2 = url(&format!("ec2.{region}.{suffix}"))?;
    let ec2 = Service { name: "ec2", url: ec2, region: region.to_owned() };
    let dns = Service { name: "route53", url: url(dns_host)?, region: dns_region.to_owned() };
    Ok((ec2, dns))
}

/// An error as EC2 writes it (`Response`) and as Route 53 does (`ErrorResponse`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Errors {
    #[serde(rename = "Errors")]
    errors: ErrorSet,
    #[serde(rename = "Error")]
    error: Option<ErrorItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorSet {
    #[serde(rename = "Error")]
    error: Vec<ErrorItem>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorItem {
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "Message")]
    message: String,
}

/// How much of an error's message is passed on; AWS's are a sentence or two. Characters.
const MESSAGE_MAX: usize = 600;

fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Refused {
    let errors: Errors = xml::read(body).unwrap_or_default();
    let error = errors.error.or_else(|| errors.errors.error.into_iter().next()).unwrap_or_default();
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let printable = |letter: &char| !letter.is_control();
    let message: String = error.message.chars().filter(printable).take(MESSAGE_MAX).collect();
    Refused {
        status,
        code: error.code.chars().filter(printable).take(80).collect(),
        message: if message.is_empty() { format!("AWS answered {status}") } else { message },
        retry_after_s: retry_after.and_then(|value| value.trim().parse().ok()),
    }
}

/// An error with its causes, as one sentence.
pub(super) fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
