//! How we sign in: a token that Google gives for a signed wish, or that the metadata server has.

use super::{Credential, Credentials, Settings, SettingsError, metadata_url};
use crate::rest::{Bucket, Call, Effect, Failed, Rest, Said, at, check_url, plain};
use argosy_control::clock::Clock;
use argosy_core::machine::Trouble;
use http::{HeaderValue, Method, StatusCode};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;

/// Gets tokens and keeps the last one for as long as it is good.
pub(super) struct Auth {
    source: Source,
    rest: Rest,
    clock: Clock,
    /// Locked while a token is fetched, so that a thousand calls fetch one.
    kept: Mutex<Option<Kept>>,
}

enum Source {
    Key { email: String, key_id: String, key: EncodingKey, token_url: Url },
    Metadata(Url),
}

struct Kept {
    bearer: HeaderValue,
    /// By the monotonic clock.
    good_until: Duration,
}

/// A service account's key, as Google gives it out.
#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    #[serde(default)]
    private_key_id: String,
    private_key: String,
    token_uri: String,
}

/// What is signed.
#[derive(Serialize)]
struct Wish<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
    expires_in: u32,
}

const SCOPES: &str = "https://www.googleapis.com/auth/compute \
                      https://www.googleapis.com/auth/ndev.clouddns.readwrite";

/// For how long a wish is good: the longest that Google takes. Seconds.
const WISH_S: i64 = 3600;

/// How long before its end a token is replaced: clocks differ, and calls take time.
const EARLY: Duration = Duration::from_secs(300);

impl Auth {
    pub(super) fn new(settings: &Settings, clock: Clock) -> Result<Self, SettingsError> {
        let (source, url) = match &settings.credentials {
            Credentials::Key(key) => {
                let source = read_key(key)?;
                let Source::Key { token_url, .. } = &source else {
                    return Err(SettingsError::new("credentials", "are no key"));
                };
                let url = token_url.clone();
                (source, url)
            }
            Credentials::Metadata => {
                let base = metadata_url(&settings.endpoints.metadata)?;
                let path = "computeMetadata/v1/instance/service-accounts/default/token";
                let path: Vec<&str> = path.split('/').collect();
                let url = at(&base, &path, &[]);
                (Source::Metadata(url.clone()), url)
            }
        };
        // One token an hour: no throttle of ours is needed, but a storm of failures has to end.
        let bucket = Bucket::new(2.0, 10);
        let rest = Rest::new("Google's sign-in", &url, settings.pace.call_max, bucket, clock)?;
        Ok(Self { source, rest, clock, kept: Mutex::new(None) })
    }

    /// A header that signs us in.
    pub(super) async fn bearer(&self) -> Result<HeaderValue, Trouble> {
        let mut kept = self.kept.lock().await;
        let now = self.clock.monotonic();
        if let Some(fresh) = kept.as_ref().filter(|kept| now + EARLY < kept.good_until) {
            return Ok(fresh.bearer.clone());
        }
        match self.fetch().await {
            Ok(token) => {
                let bearer = Credential::new(&token.access_token).bearer().ok_or_else(|| {
                    Trouble::Credentials("Google's sign-in gave a token that is none".to_owned())
                })?;
                let good_until = now + Duration::from_secs(token.expires_in.into());
                *kept = Some(Kept { bearer: bearer.clone(), good_until });
                Ok(bearer)
            }
            // Replaced early, so that this can fail for a while.
            Err(Trouble::Unreachable(_) | Trouble::Throttled { .. })
                if kept.as_ref().is_some_and(|kept| now < kept.good_until) =>
            {
                let old = kept.as_ref().map(|kept| kept.bearer.clone());
                old.ok_or_else(|| Trouble::Unreachable("no token".to_owned()))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// A token that was refused is not used again.
    pub(super) async fn refused(&self, bearer: &HeaderValue) {
        let mut kept = self.kept.lock().await;
        // Somebody else may have replaced it meanwhile.
        if kept.as_ref().is_some_and(|kept| kept.bearer == *bearer) {
            *kept = None;
        }
    }

    async fn fetch(&self) -> Result<Token, Trouble> {
        // Asking for a token changes nothing.
        let call = match &self.source {
            Source::Key { email, key_id, key, token_url } => {
                let wish = self.sign(email, key_id, key, token_url)?;
                // Base64 for URLs and dots: nothing in it has to be escaped.
                let form = format!(
                    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={wish}"
                );
                let mut call = Call::new(Method::POST, token_url.clone(), Effect::Look);
                call.body = Some(("application/x-www-form-urlencoded", form.into_bytes()));
                call
            }
            Source::Metadata(url) => {
                let mut call = Call::new(Method::GET, url.clone(), Effect::Look);
                call.headers.insert("metadata-flavor", HeaderValue::from_static("Google"));
                call
            }
        };
        let answer = self.rest.call(&call).await.map_err(|failed| self.explain(failed))?;
        self.rest.parse(answer, Effect::Look)
    }

    fn sign(
        &self,
        email: &str,
        key_id: &str,
        key: &EncodingKey,
        token_url: &Url,
    ) -> Result<String, Trouble> {
        let iat = self.clock.wall().as_second();
        let wish =
            Wish { iss: email, scope: SCOPES, aud: token_url.as_str(), iat, exp: iat + WISH_S };
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(key_id.to_owned()).filter(|id| !id.is_empty());
        encode(&header, &wish, key)
            .map_err(|_| Trouble::Credentials("the service account's key cannot sign".to_owned()))
    }

    fn explain(&self, failed: Failed) -> Trouble {
        let said = match failed {
            Failed::Lost(trouble) | Failed::Garbled(trouble) => return trouble,
            Failed::Said(said) => said,
        };
        let text = |member: &str| said.body.get(member).and_then(|text| text.as_str());
        let code = text("error").unwrap_or_default();
        let message = text("error_description").unwrap_or_default();
        let who = match &self.source {
            Source::Key { email, .. } => email.as_str(),
            Source::Metadata(_) => "the machine's service account",
        };
        let refused = |status: StatusCode| {
            matches!(
                status,
                StatusCode::BAD_REQUEST
                    | StatusCode::UNAUTHORIZED
                    | StatusCode::FORBIDDEN
                    | StatusCode::NOT_FOUND
            )
        };
        let Said { status, .. } = said;
        if refused(status) {
            let why = if code.is_empty() { status.to_string() } else { code.to_owned() };
            let message = plain(&format!("Google refuses to sign {who} in: {why}. {message}"));
            return Trouble::Credentials(message);
        }
        self.rest.common(&said, Effect::Look, message)
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match &self.source {
            Source::Key { email, .. } => email.as_str(),
            Source::Metadata(_) => "the metadata server",
        };
        f.debug_struct("Auth").field("who", &who).finish_non_exhaustive()
    }
}

fn read_key(key: &Credential) -> Result<Source, SettingsError> {
    // Nothing of what cannot be read is repeated: it may be the key.
    let wrong = |problem: &str| SettingsError::new("credentials", problem);
    let file: KeyFile = serde_json::from_str(key.expose())
        .map_err(|_| wrong("are not the JSON key of a service account"))?;
    let key = EncodingKey::from_rsa_pem(file.private_key.as_bytes())
        .map_err(|_| wrong("hold a private key that cannot be read"))?;
    let token_url = check_url("credentials: token_uri", &file.token_uri)?;
    Ok(Source::Key { email: file.client_email, key_id: file.private_key_id, key, token_url })
}
