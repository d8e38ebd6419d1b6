//! Whose account it is: keys that were given, or those that AWS's own tools would find.
//!
//! What a newcomer gets wrong: keys end. They are asked for again before they do, and at once when AWS no
//! longer takes them: somebody may have put new ones where the old ones were.

use super::query::explain;
use argosy_control::clock::Clock;
use aws_config::BehaviorVersion;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use jiff::{SignedDuration, Timestamp};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Mutex;

/// Where the keys of the account come from.
#[derive(Clone)]
pub enum Credentials {
    /// Keys that somebody gave us.
    Keys(Keys),
    /// As AWS's own tools find them: the environment, a profile of the shared files, a web identity token,
    /// the container's or the machine's role (IMDSv2), in this order.
    Found {
        /// The profile; `None`: `AWS_PROFILE`, or `default`.
        profile: Option<String>,
    },
    /// One profile of one shared credentials file, and nothing else.
    File {
        /// The file.
        path: PathBuf,
        /// The profile: `default`.
        profile: String,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Keys(_) => f.write_str("Keys(…)"),
            Credentials::Found { profile } => write!(f, "Found({profile:?})"),
            Credentials::File { path, profile } => write!(f, "File({path:?}, {profile:?})"),
        }
    }
}

/// Keys of an account. They show themselves to nobody.
#[derive(Clone)]
pub struct Keys(aws_credential_types::Credentials);

impl Keys {
    /// An access key, its secret, and the token of a session if it is one.
    pub fn new(id: &str, secret: &str, session_token: Option<&str>) -> Self {
        let session = session_token.map(ToOwned::to_owned);
        Self(aws_credential_types::Credentials::new(id, secret, session, None, "configuration"))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(…)")
    }
}

/// Keys that end are asked for again so long before: a call that was signed must not outlive them.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_mins(5);

/// How long keys that still hold are used before they are asked for again, when they could not be had: each try may
/// take `FIND_MAX`, and calls wait for it.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How long the finding of keys may take: the metadata service is tried last, and is not there outside AWS.
const FIND_MAX: Duration = Duration::from_secs(20);

/// Keeps the keys of the account.
pub(super) struct Keyring {
    from: Credentials,
    region: String,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Made anew when AWS refuses what it gave: it reads files once.
    source: Option<SharedCredentialsProvider>,
    keys: Option<aws_credential_types::Credentials>,
    /// When to ask again, on the monotonic clock, after whoever gives the keys did not answer.
    again_at: Option<Duration>,
}

impl Keyring {
    pub(super) fn new(from: Credentials, region: &str) -> Self {
        Self { from, region: region.to_owned(), kept: Mutex::default() }
    }

    /// Keys that are good for now.
    ///
    /// # Errors
    /// A sentence: where they were looked for, and why there are none.
    pub(super) async fn keys(
        &self,
        clock: &Clock,
    ) -> Result<aws_credential_types::Credentials, String> {
        if let Credentials::Keys(Keys(keys)) = &self.from {
            return Ok(keys.clone());
        }
        let mut kept = self.kept.lock().await;
        let wall = clock.wall();
        let held = kept.keys.clone().filter(|keys| lasts(keys, wall, SignedDuration::ZERO));
        let is_early = kept.again_at.is_some_and(|at| clock.monotonic() < at);
        if let Some(keys) = &held
            && (is_early || lasts(keys, wall, RENEW_BEFORE))
        {
            return Ok(keys.clone());
        }
        let found = self.find(&mut kept).await;
        match (found, held) {
            (Ok(keys), _) => {
                kept.again_at = None;
                Ok(kept.keys.insert(keys).clone())
            }
            // They hold: that nobody can be asked just now is no reason to stop.
            (Err(why), Some(keys)) => {
                tracing::warn!(
                    why,
                    "cannot renew AWS credentials; going on with those that still hold"
                );
                kept.again_at = Some(clock.monotonic().saturating_add(AGAIN_AFTER));
                Ok(keys)
            }
            (Err(why), None) => Err(why),
        }
    }

    async fn find(&self, kept: &mut Kept) -> Result<aws_credential_types::Credentials, String> {
        let source = match &kept.source {
            Some(source) => source.clone(),
            None => kept.source.insert(self.source().await?).clone(),
        };
        let asked = tokio::time::timeout(FIND_MAX, source.provide_credentials()).await;
        match asked {
            Ok(Ok(keys)) => Ok(keys),
            Ok(Err(cause)) => Err(format!("no AWS credentials: {}", explain(&cause))),
            Err(_) => {
                let seconds = FIND_MAX.as_secs();
                Err(format!("no AWS credentials were found in {seconds} s"))
            }
        }
    }

    /// AWS does not take the keys: the next call looks for them again.
    pub(super) async fn refused(&self) {
        *self.kept.lock().await = Kept::default();
    }

    async fn source(&self) -> Result<SharedCredentialsProvider, String> {
        let config = config(&self.region)?;
        Ok(match &self.from {
            Credentials::Keys(Keys(keys)) => SharedCredentialsProvider::new(keys.clone()),
            Credentials::Found { profile } => {
                let mut builder = DefaultCredentialsChain::builder()
                    .region(aws_config::Region::new(self.region.clone()))
                    .configure(config);
                if let Some(profile) = profile {
                    builder = builder.profile_name(profile);
                }
                SharedCredentialsProvider::new(builder.build().await)
            }
            Credentials::File { path, profile } => {
                let files = EnvConfigFiles::builder()
                    .with_file(EnvConfigFileKind::Credentials, path)
                    .build();
                let provider = ProfileFileCredentialsProvider::builder()
                    .configure(&config)
                    .profile_files(files)
                    .profile_name(profile);
                SharedCredentialsProvider::new(provider.build())
            }
        })
    }
}

/// How `aws-config` asks, whatever it asks.
fn config(region: &str) -> Result<ProviderConfig, String> {
    Ok(ProviderConfig::without_region()
        .with_region(Some(aws_config::Region::new(region.to_owned())))
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_http_client(connector()?))
}

/// Whether keys hold for longer than this.
fn lasts(
    keys: &aws_credential_types::Credentials,
    now: Timestamp,
    for_at_least: SignedDuration,
) -> bool {
    let end = keys.expiry().and_then(|end| Timestamp::try_from(end).ok());
    end.is_none_or(|end| for_at_least < end.duration_since(now))
}

/// Our HTTP client, for what `aws-config` asks of the metadata service and of STS.
fn connector() -> Result<aws_smithy_runtime_api::client::http::SharedHttpClient, String> {
    let client = |proxied: bool| {
        let mut builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        if !proxied {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|cause| format!("no HTTP client for credentials: {cause}"))
    };
    let (near, far) = (client(false)?, client(true)?);
    Ok(http_client_fn(move |settings: &HttpConnectorSettings, _| {
        SharedHttpConnector::new(Connector {
            near: near.clone(),
            far: far.clone(),
            total_max: settings.read_timeout().unwrap_or(FIND_MAX),
        })
    }))
}

#[derive(Debug)]
struct Connector {
    /// For the link-local services of a machine or container, which speak plain HTTP and are beyond no proxy.
    near: reqwest::Client,
    far: reqwest::Client,
    total_max: Duration,
}

/// How much an answer of the metadata service or of STS may hold. They are a few kilobytes.
const ANSWER_MAX: usize = 256 * 1024;

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client =
            if request.uri().starts_with("http://") { self.near.clone() } else { self.far.clone() };
        let total_max = self.total_max;
        HttpConnectorFuture::new(async move {
            let other = |cause: Box<dyn Error + Send + Sync>| ConnectorError::other(cause, None);
            let request = request.try_into_http1x().map_err(|cause| other(cause.into()))?;
            let (parts, body) = request.into_parts();
            let body = body.bytes().map(<[u8]>::to_vec).unwrap_or_default();
            let call = client
                .request(parts.method, parts.uri.to_string())
                .headers(parts.headers)
                .timeout(total_max)
                .body(body);
            let mut answer = call.send().await.map_err(failure)?;
            let mut built = http::Response::builder().status(answer.status());
            if let Some(headers) = built.headers_mut() {
                headers.clone_from(answer.headers());
            }
            let mut body = Vec::new();
            while let Some(chunk) = answer.chunk().await.map_err(failure)? {
                if ANSWER_MAX < body.len() + chunk.len() {
                    return Err(other("the answer is too long".into()));
                }
                body.extend_from_slice(&chunk);
            }
            let built = built.body(SdkBody::from(body)).map_err(|cause| other(cause.into()))?;
            HttpResponse::try_from(built).map_err(|cause| other(cause.into()))
        })
    }
}

fn failure(cause: reqwest::Error) -> ConnectorError {
    match (cause.is_timeout(), cause.is_connect()) {
        (true, _) => ConnectorError::timeout(cause.into()),
        (false, true) => ConnectorError::io(cause.into()),
        (false, false) => ConnectorError::other(cause.into(), None),
    }
}

#[cfg(test)]
mod tests;
