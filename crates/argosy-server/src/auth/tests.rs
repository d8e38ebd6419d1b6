use super::*;
use crate::listen::{Limits, serve};
use crate::metrics::Metrics;
use axum::routing::get;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use futures_util::future::join_all;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What time it is when a test begins: 2026-01-01.
const NOW: i64 = 1_767_225_600;
const ISSUER: &str = "https://sign-in.example";
const RSA_A: &[u8] = include_bytes!("../../tests/keys/test-only-rsa-a.pem");
const RSA_A_PUBLIC: &[u8] = include_bytes!("../../tests/keys/test-only-rsa-a.pub.pem");
const RSA_B: &[u8] = include_bytes!("../../tests/keys/test-only-rsa-b.pem");
const EC_A: &[u8] = include_bytes!("../../tests/keys/test-only-ec-a.pem");

fn clock() -> Clock {
    Clock::simulated(Timestamp::from_second(NOW).unwrap())
}

/// Moves the time. Not by pausing it throughout: the sockets of these tests are real.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

fn headers(authorization: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::AUTHORIZATION, authorization.parse().unwrap())])
}

async fn sign_in(authenticator: &Authenticator, token: &str) -> Result<Caller, AuthError> {
    authenticator.authenticate(&headers(&format!("Bearer {token}")), "r1".to_owned()).await
}

/// The caller as one line, or why there is none.
async fn who(authenticator: &Authenticator, token: &str) -> String {
    match sign_in(authenticator, token).await {
        Ok(it) => format!(
            "{} {:?} of {} in {:?}, adapter {:?}, via {}, {}",
            it.subject, it.role, it.tenant, it.teams, it.adapter, it.via, it.request_id
        ),
        Err(AuthError::Missing) => "missing".to_owned(),
        Err(AuthError::Invalid(sentence)) => sentence,
        Err(AuthError::Expired) => "expired".to_owned(),
    }
}

const NOT_VALID: &str = "the credentials are not valid";

// Tokens from a file.

fn entry(name: &str, token: &str) -> TokenEntry {
    serde_json::from_value(json!({"name": name, "sha256": hash_token(token), "role": "operator"}))
        .unwrap()
}

async fn with_tokens(tokens: Vec<TokenEntry>) -> Authenticator {
    Authenticator::new(tokens, Vec::new(), clock()).await.unwrap()
}

#[tokio::test]
async fn a_token_stands_for_what_the_file_says() {
    let full = TokenEntry {
        role: Role::Adapter,
        teams: vec!["alpha".to_owned()],
        tenant: "acme".to_owned(),
        adapter: Some("dns".to_owned()),
        ..entry("dns-bot", "secret-2")
    };
    let authenticator = with_tokens(vec![entry("ann", "secret-1"), full]).await;
    assert_eq!(
        who(&authenticator, "secret-1").await,
        "ann Operator of default in [], adapter None, via token, r1"
    );
    assert_eq!(
        who(&authenticator, "secret-2").await,
        "dns-bot Adapter of acme in [\"alpha\"], adapter Some(\"dns\"), via token, r1"
    );
    assert_eq!(who(&authenticator, "secret-3").await, NOT_VALID);
    assert_eq!(who(&authenticator, &hash_token("secret-1")).await, NOT_VALID);
}

#[tokio::test]
async fn the_header_must_be_one_bearer_token() {
    let authenticator = with_tokens(vec![entry("ann", "secret-1")]).await;
    let ask = async |headers: HeaderMap| authenticator.authenticate(&headers, String::new()).await;
    assert_eq!(ask(HeaderMap::new()).await, Err(AuthError::Missing));
    assert!(ask(headers("bearer secret-1")).await.is_ok());
    for wrong in
        ["", "secret-1", "Bearer", "Bearer ", "Basic secret-1", "Bearer secret-1, secret-1"]
    {
        assert!(matches!(ask(headers(wrong)).await, Err(AuthError::Invalid(_))), "{wrong}");
    }
    let mut twice = headers("Bearer secret-1");
    twice.append(header::AUTHORIZATION, "Bearer secret-1".parse().unwrap());
    assert_eq!(ask(twice).await, Err(not_valid()));
}

#[tokio::test(start_paused = true)]
async fn k5_a_token_ends_when_it_expires_and_when_it_is_taken_off_the_list() {
    let expires = Some(Timestamp::from_second(NOW + 60).unwrap());
    let short = TokenEntry { expires, ..entry("ann", "secret-1") };
    let authenticator = with_tokens(vec![short, entry("bob", "secret-2")]).await;
    let clone = authenticator.clone();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(sign_in(&authenticator, "secret-1").await.is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(who(&authenticator, "secret-1").await, "expired");

    authenticator.replace_tokens(vec![entry("eve", "secret-3")]).unwrap();
    assert_eq!(who(&clone, "secret-2").await, NOT_VALID);
    assert!(sign_in(&clone, "secret-3").await.is_ok());
    // A list with a mistake changes nothing.
    let wrong = TokenEntry { sha256: "secret-4".to_owned(), ..entry("eve", "") };
    assert!(authenticator.replace_tokens(vec![entry("eve", "secret-5"), wrong]).is_err());
    assert!(sign_in(&clone, "secret-3").await.is_ok());
}

#[tokio::test]
async fn a_mistake_in_the_tokens_is_named_without_repeating_the_token() {
    let wrong = |entry: TokenEntry| async {
        let tokens = vec![self::entry("ann", "secret-1"), entry];
        let error = Authenticator::new(tokens, Vec::new(), clock()).await.err().unwrap();
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        error.field
    };
    let good = || entry("bob", "secret-2");
    assert_eq!(wrong(entry("bob", "secret-1")).await, "tokens[1].sha256");
    assert_eq!(
        wrong(TokenEntry { sha256: "secret".to_owned(), ..good() }).await,
        "tokens[1].sha256"
    );
    assert_eq!(wrong(TokenEntry { name: String::new(), ..good() }).await, "tokens[1].name");
    assert_eq!(wrong(TokenEntry { tenant: "a b".to_owned(), ..good() }).await, "tokens[1].tenant");
    assert_eq!(wrong(TokenEntry { role: Role::Adapter, ..good() }).await, "tokens[1].adapter");
}

/// What the control plane does it does as `argosy`: nobody else may be called that, or look like it.
#[tokio::test]
async fn nobody_is_called_what_the_control_plane_calls_itself() {
    let (authenticator, _file) = with_file("reserved", &keys()).await;
    for (name, ours) in [
        ("argosy", true),
        ("Argosy", true),
        (" argosy ", true),
        ("argosy for ada", true),
        ("ARGOSY FOR ada", true),
        ("argosy\u{a0}for ada", false),
        ("argosy-bot", false),
        ("argosy@example.com", false),
        ("argosy forever", false),
        ("ada", false),
    ] {
        let error = Authenticator::new(vec![entry(name, "secret-1")], Vec::new(), clock()).await;
        let error = error.err().map(|error| (error.field, error.message));
        assert_eq!(error.is_some(), ours, "{name}: {error:?}");
        if let Some((field, message)) = error {
            assert_eq!(field, "tokens[0].name");
            assert!(message.contains("another name, for example `argosy-bot`"), "{message}");
        }
        let listed = authenticator.replace_tokens(vec![entry(name, "secret-1")]);
        assert_eq!(listed.is_err(), ours, "{name}");
        let said = who(&authenticator, &token_with(json!({"email": name}))).await;
        assert_eq!(
            said.contains("have the issuer give it another subject"),
            ours,
            "{name}: {said}"
        );
        assert_eq!(said.contains("via jwt"), !ours, "{name}: {said}");
    }
}

#[tokio::test]
async fn a_hash_is_what_sha256sum_prints() {
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(hash_token("abc"), abc);
    let upper = TokenEntry { sha256: abc.to_uppercase(), ..entry("ann", "") };
    assert!(sign_in(&with_tokens(vec![upper]).await, "abc").await.is_ok());
}

// Nobody signs in.

#[tokio::test]
async fn without_authentication_everybody_is_one_administrator_on_this_machine_only() {
    let open = Authenticator::none();
    assert_eq!(
        who(&open, "anything").await,
        "system@hyperfleet.local Admin of default in [], adapter None, via none, r1"
    );
    assert!(open.replace_tokens(Vec::new()).is_err());
    let allowed = |it: &Authenticator, address: &str, forced| {
        it.allowed_on(address.parse().unwrap(), forced).is_ok()
    };
    for here in ["127.0.0.1:80", "127.8.8.8:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        assert!(allowed(&open, here, false), "{here}");
    }
    for anywhere in ["0.0.0.0:80", "[::]:80", "10.0.0.1:80"] {
        assert!(!allowed(&open, anywhere, false), "{anywhere}");
        assert!(allowed(&open, anywhere, true), "{anywhere}");
    }
    assert!(allowed(&with_tokens(Vec::new()).await, "0.0.0.0:80", false));
}

#[tokio::test]
async fn k7_forged_headers_change_nothing() {
    let mut forged = headers("Bearer secret-1");
    for name in ["x-tenant", "x-hyperfleet-identity", "x-forwarded-user", "x-forwarded-for"] {
        forged.insert(name, "root".parse().unwrap());
    }
    for authenticator in [Authenticator::none(), with_tokens(vec![entry("ann", "secret-1")]).await]
    {
        let honest = sign_in(&authenticator, "secret-1").await.unwrap();
        assert_eq!(authenticator.authenticate(&forged, "r1".to_owned()).await.unwrap(), honest);
        forged.remove(header::AUTHORIZATION);
        let without = authenticator.authenticate(&forged, "r1".to_owned()).await;
        assert!(without.is_err() || without.unwrap().via == "none");
        forged.insert(header::AUTHORIZATION, "Bearer secret-1".parse().unwrap());
    }
}

// JSON web tokens.

fn rsa(pem: &[u8]) -> EncodingKey {
    EncodingKey::from_rsa_pem(pem).unwrap()
}

fn ec() -> EncodingKey {
    EncodingKey::from_ec_pem(EC_A).unwrap()
}

/// The public half of a key, as an issuer publishes it.
fn published(kid: &str, key: &EncodingKey, algorithm: Algorithm) -> Value {
    let mut jwk = Jwk::from_encoding_key(key, algorithm).unwrap();
    jwk.common.key_id = Some(kid.to_owned());
    serde_json::to_value(jwk).unwrap()
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "argosy", "sub": "u1", "email": "ann@example.com", "exp": NOW + 600})
}

/// The claims with some changed; null takes one away.
fn claims_with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn signed(kid: Option<&str>, algorithm: Algorithm, key: &EncodingKey, claims: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).unwrap()
}

/// A good token but for some claims.
fn token_with(changes: Value) -> String {
    signed(Some("a"), Algorithm::RS256, &rsa(RSA_A), &claims_with(changes))
}

fn issuer(name: &str, jwks: JwksSource) -> Issuer {
    Issuer {
        issuer: name.to_owned(),
        audience: Audience::OneOf(vec!["argosy".to_owned(), "argosy-cli".to_owned()]),
        jwks,
        claims: Claims::default(),
        default_role: Role::Viewer,
    }
}

/// A key set in a file that is gone with the guard.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(name: &str, keys: &[Value]) -> Self {
        let path = std::env::temp_dir().join(format!("argosy-{}-{name}.json", std::process::id()));
        std::fs::write(&path, json!({"keys": keys}).to_string()).unwrap();
        Self(path)
    }

    fn source(&self) -> JwksSource {
        JwksSource::File(self.0.clone())
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn keys() -> Vec<Value> {
    vec![published("a", &rsa(RSA_A), Algorithm::RS256), published("e", &ec(), Algorithm::ES256)]
}

async fn with_file(name: &str, keys: &[Value]) -> (Authenticator, KeyFile) {
    let file = KeyFile::new(name, keys);
    let issuers = vec![issuer(ISSUER, file.source())];
    (Authenticator::new(vec![entry("bot", "secret-1")], issuers, clock()).await.unwrap(), file)
}

#[tokio::test]
async fn a_jwt_stands_for_what_its_claims_say() {
    let (authenticator, _file) = with_file("claims", &keys()).await;
    let check = async |changes, expected: &str| {
        assert_eq!(who(&authenticator, &token_with(changes)).await, expected);
    };
    check(json!({}), "ann@example.com Viewer of default in [], adapter None, via jwt, r1").await;
    check(json!({"email": null}), "u1 Viewer of default in [], adapter None, via jwt, r1").await;
    check(json!({"email": " "}), "u1 Viewer of default in [], adapter None, via jwt, r1").await;
    check(json!({"email": null, "sub": null}), NOT_VALID).await;
    check(json!({"email": "a\nb"}), NOT_VALID).await;
    check(
        json!({"role": "operator", "teams": ["alpha", 7, "beta"], "tenant": "acme"}),
        "ann@example.com Operator of acme in [\"alpha\", \"beta\"], adapter None, via jwt, r1",
    )
    .await;
    check(
        json!({"role": "root", "teams": "alpha"}),
        "ann@example.com Viewer of default in [\"alpha\"], adapter None, via jwt, r1",
    )
    .await;
    check(
        json!({"role": "adapter", "adapter": "dns"}),
        "ann@example.com Adapter of default in [], adapter Some(\"dns\"), via jwt, r1",
    )
    .await;
    check(json!({"role": "adapter"}), NOT_VALID).await;
    // A tenant that cannot be read is not the default one.
    for tenant in [json!(""), json!(7), json!(["a"]), json!("a b")] {
        check(json!({"tenant": tenant}), NOT_VALID).await;
    }
    // Tokens and JWT go together.
    assert!(sign_in(&authenticator, "secret-1").await.is_ok());
}

#[tokio::test]
async fn k8_only_what_the_issuer_signed_is_taken() {
    let (authenticator, _file) = with_file("k8", &keys()).await;
    let good = token_with(json!({}));
    let by = |kid, algorithm, key: &EncodingKey| signed(kid, algorithm, key, &claims());
    for (name, token) in [
        ("RS256", good.clone()),
        ("ES256", by(Some("e"), Algorithm::ES256, &ec())),
        // The only key of its algorithm needs no name.
        ("no kid", by(None, Algorithm::RS256, &rsa(RSA_A))),
    ] {
        assert!(sign_in(&authenticator, &token).await.is_ok(), "{name}");
    }

    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = |alg: &str, signature: &str| {
        format!("{}.{}.{signature}", part(json!({"alg": alg, "kid": "a"})), part(claims()))
    };
    let [header, body, signature] = *good.split('.').collect::<Vec<_>>() else { panic!() };
    let forged = part(claims_with(json!({"role": "admin"})));
    let critical = part(json!({"alg": "RS256", "kid": "a", "crit": ["exp"], "exp": 0}));
    let public = EncodingKey::from_secret(RSA_A_PUBLIC);
    let modulus = published("a", &rsa(RSA_A), Algorithm::RS256)["n"].as_str().unwrap().to_owned();
    let modulus = EncodingKey::from_secret(&BASE64_URL_SAFE_NO_PAD.decode(modulus).unwrap());
    for (name, token) in [
        ("none", unsigned("none", "")),
        ("None", unsigned("None", "")),
        ("none with a signature", unsigned("none", signature)),
        ("RS256 without a signature", unsigned("RS256", "")),
        ("HS256 with the public key", by(Some("a"), Algorithm::HS256, &public)),
        ("HS256 with the modulus", by(Some("a"), Algorithm::HS256, &modulus)),
        ("RS512", by(Some("a"), Algorithm::RS512, &rsa(RSA_A))),
        ("PS256", by(Some("a"), Algorithm::PS256, &rsa(RSA_A))),
        ("another's key", by(Some("a"), Algorithm::RS256, &rsa(RSA_B))),
        ("another's key, no kid", by(None, Algorithm::RS256, &rsa(RSA_B))),
        ("the name of a key of another algorithm", by(Some("e"), Algorithm::RS256, &rsa(RSA_A))),
        ("an unknown kid", by(Some("z"), Algorithm::RS256, &rsa(RSA_A))),
        ("other claims", format!("{header}.{forged}.{signature}")),
        ("another header", format!("{critical}.{body}.{signature}")),
        ("four parts", format!("{good}.x")),
        ("two parts", format!("{header}.{body}")),
        ("dots", "..".to_owned()),
        ("garbage", "a.b.c".to_owned()),
        ("huge", token_with(json!({"x": "y".repeat(TOKEN_BYTES_MAX)}))),
    ] {
        assert_eq!(who(&authenticator, &token).await, NOT_VALID, "{name}");
    }
}

#[tokio::test]
async fn k8_the_claims_must_be_for_us_and_in_time() {
    let (authenticator, _file) = with_file("times", &keys()).await;
    let check = async |changes: Value, expected: &str| {
        let said = who(&authenticator, &token_with(changes.clone())).await;
        let said = if said.starts_with("ann@") { "ok" } else { &said };
        assert_eq!(said, expected, "{changes}");
    };
    check(json!({"aud": ["other", "argosy-cli"]}), "ok").await;
    for audience in [json!(null), json!("other"), json!([]), json!(["Argosy"]), json!({})] {
        check(json!({"aud": audience}), NOT_VALID).await;
    }
    for issuer in [json!(null), json!("https://other.example"), json!([ISSUER]), json!("")] {
        check(json!({"iss": issuer}), NOT_VALID).await;
    }
    check(json!({"exp": NOW - 29}), "ok").await;
    check(json!({"exp": NOW - 31}), "expired").await;
    check(json!({"exp": NOW as f64 + 0.5}), "ok").await;
    for expiry in [json!(null), json!((NOW + 600).to_string()), json!([]), json!({})] {
        check(json!({"exp": expiry}), NOT_VALID).await;
    }
    check(json!({"nbf": NOW + 29}), "ok").await;
    check(json!({"nbf": NOW + 31}), NOT_VALID).await;
    check(json!({"nbf": "soon"}), NOT_VALID).await;
}

#[tokio::test]
async fn keys_for_anything_else_are_passed_over() {
    let other = [
        json!({"kty": "oct", "kid": "a", "k": "c2VjcmV0"}),
        json!({"kty": "new", "kid": "n"}),
        json!("nonsense"),
        json!({"kty": "RSA", "kid": "enc", "use": "enc", "n": "AQAB", "e": "AQAB"}),
        json!({"kty": "RSA", "kid": "ps", "alg": "PS256", "n": "AQAB", "e": "AQAB"}),
    ];
    let (authenticator, _file) = with_file("other", &[&other[..], &keys()[..]].concat()).await;
    assert!(sign_in(&authenticator, &token_with(json!({}))).await.is_ok());
    let hmac = EncodingKey::from_secret(b"secret");
    let token = signed(Some("a"), Algorithm::HS256, &hmac, &claims());
    assert_eq!(who(&authenticator, &token).await, NOT_VALID);

    let file = KeyFile::new("none", &other);
    let issuers = vec![issuer(ISSUER, file.source())];
    let error = Authenticator::new(Vec::new(), issuers, clock()).await.err().unwrap();
    assert_eq!(error.field, "issuers[0].jwks");
}

#[tokio::test]
async fn each_issuer_signs_for_itself() {
    let one = KeyFile::new("one", &[published("k", &rsa(RSA_A), Algorithm::RS256)]);
    let two = KeyFile::new("two", &[published("k", &rsa(RSA_B), Algorithm::RS256)]);
    let other = "https://other.example";
    let issuers = vec![
        issuer(ISSUER, one.source()),
        Issuer {
            default_role: Role::Operator,
            audience: Audience::Any,
            ..issuer(other, two.source())
        },
    ];
    let authenticator = Authenticator::new(Vec::new(), issuers, clock()).await.unwrap();
    let token = |pem, issuer| {
        let claims = claims_with(json!({"iss": issuer, "aud": null}));
        signed(Some("k"), Algorithm::RS256, &rsa(pem), &claims)
    };
    let caller = sign_in(&authenticator, &token(RSA_B, other)).await.unwrap();
    assert_eq!(caller.role, Role::Operator);
    assert_eq!(who(&authenticator, &token(RSA_A, other)).await, NOT_VALID);
    assert_eq!(who(&authenticator, &token(RSA_B, ISSUER)).await, NOT_VALID);
    // The first one asks for an audience.
    assert_eq!(who(&authenticator, &token(RSA_A, ISSUER)).await, NOT_VALID);
}

#[tokio::test]
async fn a_mistake_in_an_issuer_is_named() {
    let file = KeyFile::new("mistakes", &keys());
    let good = || issuer(ISSUER, file.source());
    let wrong = async |issuers: Vec<Issuer>| {
        Authenticator::new(Vec::new(), issuers, clock()).await.err().unwrap().field
    };
    let nobody = Audience::OneOf(Vec::new());
    assert_eq!(wrong(vec![good(), good()]).await, "issuers[1].issuer");
    assert_eq!(wrong(vec![issuer("", file.source())]).await, "issuers[0].issuer");
    assert_eq!(wrong(vec![Issuer { audience: nobody, ..good() }]).await, "issuers[0].audience");
    for url in ["http://sign-in.example/keys", "ftp://localhost/keys", "file:///keys", "keys", ""] {
        let issuers = vec![issuer(ISSUER, JwksSource::Url(url.to_owned()))];
        assert_eq!(wrong(issuers).await, "issuers[0].jwks", "{url}");
    }
    let missing = JwksSource::File("/nonexistent/keys.json".into());
    assert_eq!(wrong(vec![issuer(ISSUER, missing)]).await, "issuers[0].jwks");
}

#[test]
fn an_issuer_is_configured_in_few_lines() {
    let parse = serde_json::from_value::<Issuer>;
    let file = json!({"issuer": "i", "audience": ["a"], "jwks": {"file": "/keys.json"}});
    let file = parse(file).unwrap();
    assert_eq!(file.audience, Audience::OneOf(vec!["a".to_owned()]));
    assert_eq!(file.jwks, JwksSource::File("/keys.json".into()));
    assert_eq!((file.claims, file.default_role), (Claims::default(), Role::Viewer));
    let any = json!({"issuer": "i", "audience": "any", "jwks": {"url": "https://i/keys"}});
    assert_eq!(parse(any).unwrap().audience, Audience::Any);
    // Anybody's tokens only if somebody says so.
    assert!(parse(json!({"issuer": "i", "jwks": {"file": "/keys.json"}})).is_err());
}

// Keys behind an address: a real server on loopback.

struct KeyServer {
    keys: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinSet<std::io::Result<()>>,
}

impl KeyServer {
    async fn start(keys: &[Value]) -> Self {
        let published = Arc::new(Mutex::new(json!({"keys": keys})));
        let (served, asked) = (Arc::clone(&published), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        let handler = async move || {
            count.fetch_add(1, Ordering::Relaxed);
            served.lock().unwrap().to_string()
        };
        let app = axum::Router::new().route("/keys", get(handler));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, shutdown) = watch::channel(false);
        let metrics = Metrics::new("0", Timestamp::UNIX_EPOCH);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, None, app, Limits::default(), metrics, shutdown));
        Self { keys: published, asked, address, stop, serving }
    }

    async fn authenticator(&self) -> Authenticator {
        let url = JwksSource::Url(format!("http://{}/keys", self.address));
        Authenticator::new(Vec::new(), vec![issuer(ISSUER, url)], clock()).await.unwrap()
    }

    fn publish(&self, keys: &[Value]) {
        *self.keys.lock().unwrap() = json!({"keys": keys});
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    async fn stop(&mut self) {
        self.stop.send_replace(true);
        self.serving.join_next().await.unwrap().unwrap().unwrap();
    }
}

fn long_token(kid: &str, pem: &[u8]) -> String {
    let claims = claims_with(json!({"exp": NOW + 100_000}));
    signed(Some(kid), Algorithm::RS256, &rsa(pem), &claims)
}

#[tokio::test]
async fn a_new_key_is_learnt_when_a_token_names_it() {
    let old = published("old", &rsa(RSA_A), Algorithm::RS256);
    let server = KeyServer::start(std::slice::from_ref(&old)).await;
    let authenticator = server.authenticator().await;
    let (old_token, new_token) = (long_token("old", RSA_A), long_token("new", RSA_B));
    assert!(sign_in(&authenticator, &old_token).await.is_ok());
    assert_eq!(server.asked(), 1);

    server.publish(&[old, published("new", &rsa(RSA_B), Algorithm::RS256)]);
    // Not within the pause, however often one asks.
    for said in join_all((0..20).map(|_| who(&authenticator, &new_token))).await {
        assert_eq!(said, NOT_VALID);
    }
    assert_eq!(server.asked(), 1);
    pass(31).await;
    for caller in join_all((0..20).map(|_| sign_in(&authenticator, &new_token))).await {
        assert!(caller.is_ok());
    }
    assert!(sign_in(&authenticator, &old_token).await.is_ok());
    assert_eq!(server.asked(), 2);

    // A key that is withdrawn is forgotten within the hour and a bit.
    server.publish(&[published("new", &rsa(RSA_B), Algorithm::RS256)]);
    pass(3601).await;
    sign_in(&authenticator, &old_token).await.unwrap();
    while sign_in(&authenticator, &old_token).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn k16_the_last_good_keys_are_kept_when_the_issuer_is_away() {
    let mut server = KeyServer::start(&[published("k", &rsa(RSA_A), Algorithm::RS256)]).await;
    let authenticator = server.authenticator().await;
    let token = long_token("k", RSA_A);
    assert!(sign_in(&authenticator, &token).await.is_ok());

    // An answer that is no key set, or one without a key for us, is no reason to forget the old one.
    for nonsense in [json!([]), json!({"keys": []}), json!({"keys": [{"kty": "oct", "k": "eA"}]})] {
        *server.keys.lock().unwrap() = nonsense;
        pass(31).await;
        let before = server.asked();
        assert_eq!(who(&authenticator, &long_token("x", RSA_A)).await, NOT_VALID);
        assert_eq!(server.asked(), before + 1);
        assert!(sign_in(&authenticator, &token).await.is_ok());
    }
    server.stop().await;
    pass(7200).await;
    assert_eq!(who(&authenticator, &long_token("x", RSA_A)).await, NOT_VALID);
    assert!(sign_in(&authenticator, &token).await.is_ok());
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_kept() {
    let mut key = published("k", &rsa(RSA_A), Algorithm::RS256);
    key["x5c"] = json!(["x".repeat(300 * 1024)]);
    let server = KeyServer::start(&[key]).await;
    let authenticator = server.authenticator().await;
    assert_eq!(who(&authenticator, &long_token("k", RSA_A)).await, NOT_VALID);
    assert_eq!(server.asked(), 1);
}

// What is written down.

/// Everything that is logged, with all fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut Fields(&self.0));
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut Fields(&self.0));
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Fields(&self.0));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

struct Fields<'a>(&'a Mutex<String>);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

#[tokio::test]
async fn k12_no_token_is_written_down() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let (authenticator, _file) = with_file("k12", &keys()).await;
    // Other tests log, too, to nobody. If one of them was the first at a line just now, it was decided
    // that nobody listens there.
    let _ = sign_in(&authenticator, "secret-0").await;
    tracing::callsite::rebuild_interest_cache();
    let mut written = String::new();
    let unknown = signed(Some("z"), Algorithm::RS256, &rsa(RSA_A), &claims());
    let expired = token_with(json!({"exp": 0}));
    for token in ["secret-1", "secret-2", &token_with(json!({})), &unknown, &expired, "a.secret.c"]
    {
        write!(written, "{:?}", sign_in(&authenticator, token).await).unwrap();
    }
    write!(written, "{:?}", entry("ann", "secret-1")).unwrap();
    let logged = log.0.lock().unwrap();
    assert!(logged.contains("refused a token"), "{logged}");
    written.push_str(&logged);
    // The end of a JWT is its signature, without which it is worth nothing.
    for part in ["secret", &unknown[unknown.len() - 40..], &expired[expired.len() - 40..]] {
        assert!(!written.contains(part), "{written}");
    }
}

#[tokio::test]
async fn a_part_of_the_process_stays_signed_in_when_the_tokens_are_replaced() {
    let own = entry("machines", "made-in-memory");
    let authenticator = with_tokens(vec![entry("ada", "from-the-file")]).await;
    assert_eq!(authenticator.admit(own.clone()), Ok(true));
    authenticator.replace_tokens(Vec::new()).unwrap();
    assert_eq!(who(&authenticator, "from-the-file").await, NOT_VALID);
    assert!(who(&authenticator, "made-in-memory").await.starts_with("machines Operator"));
    assert_eq!(Authenticator::none().admit(own), Ok(false), "nobody has to sign in there");
}
