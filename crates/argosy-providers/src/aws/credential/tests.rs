use super::{Credentials, Keyring, Keys, config, lasts};
use argosy_control::clock::Clock;
use aws_config::imds;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use axum::Router;
use axum::routing::{get, put};
use http::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};
use std::path::PathBuf;
use std::time::SystemTime;

/// A file that is removed with the value.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("argosy-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a writable directory");
        Self(path)
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).expect("a file of ours");
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn profile(id: &str) -> String {
    format!(
        "[default]\naws_access_key_id = WRONG\naws_secret_access_key = wrong\n\
         [fleet]\naws_access_key_id = {id}\naws_secret_access_key = secret\n"
    )
}

#[tokio::test]
async fn a_profile_is_read_again_when_aws_refuses_its_keys() {
    let file = File::new("credentials", &profile("FIRST"));
    let from = Credentials::File { path: file.0.clone(), profile: "fleet".to_owned() };
    let keyring = Keyring::new(from, "us-east-1");
    let key = async || {
        let keys = keyring.keys(&Clock::System).await.expect("keys");
        keys.access_key_id().to_owned()
    };
    assert_eq!(key().await, "FIRST");
    file.write(&profile("SECOND"));
    assert_eq!(key().await, "FIRST", "it is not read for every call");
    keyring.refused().await;
    assert_eq!(key().await, "SECOND");
}

#[tokio::test]
async fn keys_that_are_nowhere_are_missed_by_name() {
    let file = File::new("no-such-profile", &profile("FIRST"));
    for (path, profile) in
        [(file.0.clone(), "nobody"), (PathBuf::from("/nonexistent/credentials"), "fleet")]
    {
        let from = Credentials::File { path, profile: profile.to_owned() };
        let error = Keyring::new(from, "us-east-1").keys(&Clock::System).await;
        let error = error.expect_err("there are none");
        assert!(error.contains("no AWS credentials"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn keys_that_were_given_are_used() {
    let from = Credentials::Keys(Keys::new("GIVEN", "secret", Some("token")));
    let keys = Keyring::new(from, "us-east-1").keys(&Clock::System).await.expect("keys");
    assert_eq!(keys.access_key_id(), "GIVEN");
    assert_eq!(keys.session_token(), Some("token"));
}

#[test]
fn keys_are_renewed_before_they_end() {
    let now: Timestamp = "2026-11-15T09:00:00Z".parse().expect("a time");
    let ends_in = |minutes: i64| {
        let end = now + SignedDuration::from_mins(minutes);
        let end = Some(SystemTime::from(end));
        aws_credential_types::Credentials::new("A", "b", None, end, "test")
    };
    assert!(lasts(&ends_in(6), now, super::RENEW_BEFORE));
    assert!(!lasts(&ends_in(5), now, super::RENEW_BEFORE));
    assert!(!lasts(&ends_in(-1), now, super::RENEW_BEFORE));
    assert!(lasts(
        &aws_credential_types::Credentials::new("A", "b", None, None, "test"),
        now,
        super::RENEW_BEFORE
    ));
}

/// A machine's metadata service, version 2: nothing without a token.
fn metadata() -> Router {
    let with_token = |headers: HeaderMap, text: &'static str| {
        let known = headers.get("x-aws-ec2-metadata-token").is_some_and(|token| token == "T0KEN");
        if known { (StatusCode::OK, text) } else { (StatusCode::UNAUTHORIZED, "") }
    };
    let role = r#"{"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ROLE",
        "SecretAccessKey": "secret", "Token": "session", "Expiration": "2100-01-01T00:00:00Z",
        "LastUpdated": "2026-11-15T00:00:00Z"}"#;
    let token = || async { ([("x-aws-ec2-metadata-token-ttl-seconds", "21600")], "T0KEN") };
    let roles = "/latest/meta-data/iam/security-credentials/";
    Router::new()
        .route("/latest/api/token", put(token))
        .route(roles, get(move |headers| async move { with_token(headers, "fleet") }))
        .route(
            "/latest/meta-data/iam/security-credentials/fleet",
            get(move |headers| async move { with_token(headers, role) }),
        )
}

#[tokio::test]
async fn the_role_of_the_machine_is_asked_for_with_a_token() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move { drop(axum::serve(listener, metadata()).await) });
    let config = config("us-east-1").expect("a client");
    let client = imds::Client::builder().configure(&config);
    let client = client.endpoint(format!("http://127.0.0.1:{port}")).expect("a URL").build();
    let provider = ImdsCredentialsProvider::builder().configure(&config).imds_client(client);
    let keys = provider.build().provide_credentials().await.expect("the role's keys");
    assert_eq!(keys.access_key_id(), "ROLE");
    assert_eq!(keys.session_token(), Some("session"));
    assert!(keys.expiry().is_some(), "they end");
}

/// Gives keys that hold for ten minutes once, and then does not answer.
#[derive(Debug)]
struct Once {
    until: std::time::SystemTime,
    asked: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl ProvideCredentials for Once {
    fn provide_credentials<'a>(
        &'a self,
    ) -> aws_credential_types::provider::future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let first = self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let keys =
            aws_credential_types::Credentials::new("id", "secret", None, Some(self.until), "t");
        let answer = match first {
            true => Ok(keys),
            false => {
                Err(aws_credential_types::provider::error::CredentialsError::not_loaded("gone"))
            }
        };
        aws_credential_types::provider::future::ProvideCredentials::ready(answer)
    }
}

#[tokio::test(start_paused = true)]
async fn r2_i7_keys_that_still_hold_are_used_while_nobody_can_be_asked() {
    let clock = Clock::simulated("2030-01-01T12:00:00Z".parse().unwrap());
    let until = clock.now().checked_add(SignedDuration::from_mins(10)).unwrap();
    let asked = std::sync::Arc::<std::sync::atomic::AtomicU32>::default();
    let once = Once { until: until.into(), asked: asked.clone() };
    let keyring = Keyring::new(Credentials::Found { profile: None }, "us-east-1");
    keyring.kept.lock().await.source = Some(SharedCredentialsProvider::new(once));
    let asked = || asked.load(std::sync::atomic::Ordering::SeqCst);
    // Minutes, whether there are keys, and how often they were asked for by then.
    for (minute, held, times) in
        [(0, true, 1), (4, true, 1), (6, true, 2), (9, true, 3), (11, false, 4)]
    {
        let at = "2030-01-01T12:00:00Z".parse::<Timestamp>().unwrap();
        let at = at.checked_add(SignedDuration::from_mins(minute)).unwrap();
        clock.sleep_until(at).await;
        // Calls that come together ask once.
        for _ in 0..3 {
            assert_eq!(keyring.keys(&clock).await.is_ok(), held, "minute {minute}");
        }
        let more = if held { 0 } else { 2 };
        assert_eq!(asked(), times + more, "minute {minute}");
    }
}
