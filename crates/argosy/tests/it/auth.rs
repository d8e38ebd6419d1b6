//! Who may come in, and what they may do there.

use crate::harness::{Server, Setup, TestDir, argosy, await_until, run, subset, text};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Method;
use serde_json::{Value, json};

const RSA_A: &[u8] = include_bytes!("../../../argosy-server/tests/keys/test-only-rsa-a.pem");
const RSA_B: &[u8] = include_bytes!("../../../argosy-server/tests/keys/test-only-rsa-b.pem");
const EC_A: &[u8] = include_bytes!("../../../argosy-server/tests/keys/test-only-ec-a.pem");

fn cluster(name: &str, team: &str) -> Value {
    json!({
        "name": name,
        "spec": { "provider": "gcp", "region": "us-east1" },
        "labels": { "team": team },
    })
}

fn report(adapter: &str) -> Value {
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "reason": "Done", "message": "" });
    json!({
        "adapter": adapter,
        "observed_generation": 1,
        "conditions": [condition("Available"), condition("Applied"), condition("Health")],
    })
}

async fn with_everybody() -> Server {
    Setup::embedded()
        .tokens(json!([
            { "token": "admin-secret", "name": "root", "role": "admin" },
            { "token": "ann-secret", "name": "ann", "role": "operator", "teams": ["ml"] },
            { "token": "vic-secret", "name": "vic", "role": "viewer", "teams": ["ml"] },
            { "token": "dns-secret", "name": "dns-bot", "role": "adapter", "adapter": "dns" },
            { "token": "old-secret", "name": "old", "role": "admin", "expires": "2020-01-01T00:00:00Z" },
            { "token": "acme-secret", "name": "eve", "role": "admin", "tenant": "acme" },
        ]))
        .token("admin-secret")
        .start()
        .await
}

#[tokio::test]
async fn without_good_credentials_nobody_comes_in() {
    let server = with_everybody().await;
    let nobody = server.without_token();
    let rows = [
        (nobody.request(Method::GET, "clusters"), "HYPERFLEET-AUT-001"),
        (nobody.request(Method::GET, "clusters").bearer_auth("wrong"), "HYPERFLEET-AUT-002"),
        (nobody.request(Method::GET, "clusters").basic_auth("a", Some("b")), "HYPERFLEET-AUT-002"),
        (nobody.request(Method::GET, "clusters").bearer_auth("old-secret"), "HYPERFLEET-AUT-003"),
        (nobody.request(Method::POST, "clusters").json(&cluster("a", "ml")), "HYPERFLEET-AUT-001"),
        (nobody.request(Method::GET, "/simulated-cloud/v1/"), "HYPERFLEET-AUT-001"),
        (nobody.request(Method::GET, "/api/argosy/v1/audit"), "HYPERFLEET-AUT-001"),
    ];
    for (request, code) in rows {
        let reply = nobody.send(request).await;
        let body = reply.refused(401, &json!({ "error": "Unauthenticated", "code": code }));
        assert!(body["message"].is_string() && body["hint"].is_string(), "{body:#}");
        assert!(reply.header("www-authenticate").starts_with("Bearer"));
    }
    // What says only that the server is there is for everybody.
    for path in ["/healthz", "/readyz", "/docs"] {
        nobody.get(path).await.expect_status(200);
    }
    assert_eq!(server.count("clusters").await.0, 0);
}

#[tokio::test]
async fn a_role_allows_what_it_says() {
    let server = with_everybody().await;
    let [ann, vic, dns] = ["ann-secret", "vic-secret", "dns-secret"].map(|t| server.with_token(t));
    let created = ann.create("clusters", &cluster("alpha", "ml")).await;
    assert_eq!(created["created_by"], "ann");
    let path = format!("clusters/{}", text(&created, "/id"));
    server.ready(&path).await;
    let before = server.get(&path).await.expect(200);

    let denied = json!({ "error": "PermissionDenied", "code": "HYPERFLEET-AUZ-001" });
    for caller in [&vic, &dns] {
        caller.get(&path).await.expect(200);
        assert_eq!(caller.count("clusters").await.0, 1);
        caller.post("clusters", &cluster("beta", "ml")).await.refused(403, &denied);
        caller.patch(&path, &json!({ "labels": { "a": "b" } })).await.refused(403, &denied);
        caller.delete(&path).await.refused(403, &denied);
        caller.get("/api/argosy/v1/audit").await.refused(403, &denied);
        caller.get("/simulated-cloud/v1/").await.refused(403, &denied);
    }
    let force = format!("{path}/force-delete");
    ann.post(&force, &json!({ "reason": "x" })).await.refused(403, &denied);
    ann.get("/simulated-cloud/v1/").await.refused(403, &denied);

    // K13: an adapter speaks for itself alone, and people do not speak for adapters.
    let statuses = format!("{path}/statuses");
    dns.put(&statuses, &report("validation")).await.refused(403, &denied);
    ann.put(&statuses, &report("dns")).await.refused(403, &denied);
    vic.put(&statuses, &report("dns")).await.refused(403, &denied);
    let after = server.get(&path).await.expect(200);
    assert_eq!(after, before);
    dns.put(&statuses, &report("dns")).await.expect(201);
}

#[tokio::test]
async fn tenants_do_not_exist_for_each_other() {
    let server = with_everybody().await;
    let eve = server.with_token("acme-secret");
    let mine = server.create("clusters", &cluster("alpha", "ml")).await;
    let path = format!("clusters/{}", text(&mine, "/id"));
    let missing = json!({ "error": "Cluster not found" });
    for reply in [
        eve.get(&path).await,
        eve.get("clusters/alpha").await,
        eve.get(&format!("{path}/statuses")).await,
        eve.patch(&path, &json!({ "labels": {} })).await,
        eve.delete(&path).await,
        eve.get(&format!("{path}/nodepools")).await,
        eve.put(&format!("{path}/statuses"), &report("dns")).await,
    ] {
        reply.refused(404, &missing);
    }
    assert_eq!(eve.count("clusters").await.0, 0);
    // K7: saying that one is somebody else does not help.
    let request = eve.request(Method::GET, &path).header("x-tenant", "default");
    let request =
        request.header("x-forwarded-user", "root").header("x-hyperfleet-identity", "root");
    eve.send(request).await.refused(404, &missing);
    // The name is free in the other tenant.
    let hers = eve.create("clusters", &cluster("alpha", "ml")).await;
    assert_ne!(hers["id"], mine["id"]);
    subset(&eve.get("clusters/alpha").await.expect(200), &json!({ "id": hers["id"] }));
    subset(&server.get("clusters/alpha").await.expect(200), &json!({ "id": mine["id"] }));
    let audit = eve.get("/api/argosy/v1/audit").await.expect(200);
    assert!(!audit.to_string().contains(text(&mine, "/id")), "{audit}");
}

#[tokio::test]
async fn a_file_of_tokens_is_read_again_on_a_signal() {
    let server = with_everybody().await;
    let ann = server.with_token("ann-secret");
    ann.get("clusters").await.expect(200);
    let file = server.dir().join("tokens.yaml");
    let text = std::fs::read_to_string(&file).expect("a file");
    // A file that cannot be used changes nothing.
    std::fs::write(&file, "nonsense: [").expect("a writable file");
    server.signal("HUP");
    await_until("the bad file is noticed", async || {
        server.log().contains("kept the old tokens").then_some(())
    })
    .await;
    ann.get("clusters").await.expect(200);
    // K5: whoever is taken off the list is out.
    let mut entries: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    entries.retain(|entry| entry["name"] != "ann");
    std::fs::write(&file, json!(entries).to_string()).expect("a writable file");
    server.signal("HUP");
    await_until("ann is out", async || (ann.get("clusters").await.status == 401).then_some(()))
        .await;
    server.get("clusters").await.expect(200);
}

#[tokio::test]
async fn a_token_of_the_command_line_is_accepted_and_never_written_down() {
    let dir = TestDir::new();
    let args = ["token", "new", "--name", "ann", "--role", "operator", "--team", "ml"];
    let made = run(argosy(dir.path(), &args)).await;
    let entry = made.expect(0).to_owned();
    let token =
        made.err.split("(shown once): ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let token = token.expect("the token");
    assert!(!entry.contains(token), "only its hash is kept");
    let server = Setup::embedded()
        .file("tokens.yaml", &entry)
        .config("auth: { tokens_file: tokens.yaml }")
        .token(token)
        .start()
        .await;
    let created = server.create("clusters", &cluster("alpha", "ml")).await;
    assert_eq!(created["created_by"], "ann");
    // K12.
    let reply = server.with_token("wrong-secret-token").get("clusters").await;
    reply.refused(401, &json!({}));
    let id = reply.header("x-request-id");
    await_until("the log names it", async || server.log().contains(id).then_some(())).await;
    let log = server.log();
    assert!(!log.contains(token) && !log.contains("wrong-secret-token"), "{log}");
}

fn published(kid: &str, key: &EncodingKey, algorithm: Algorithm) -> Value {
    let mut jwk = Jwk::from_encoding_key(key, algorithm).expect("a key");
    jwk.common.key_id = Some(kid.to_owned());
    serde_json::to_value(jwk).expect("JSON")
}

fn signed(kid: &str, algorithm: Algorithm, key: &EncodingKey, claims: &Value) -> String {
    let header = Header { kid: Some(kid.to_owned()), ..Header::new(algorithm) };
    encode(&header, claims, key).expect("a token")
}

#[tokio::test]
async fn json_web_tokens_of_a_known_issuer_are_accepted() {
    let rsa = EncodingKey::from_rsa_pem(RSA_A).expect("a key");
    let other = EncodingKey::from_rsa_pem(RSA_B).expect("a key");
    let ec = EncodingKey::from_ec_pem(EC_A).expect("a key");
    let keys = json!({ "keys": [
        published("r", &rsa, Algorithm::RS256), published("e", &ec, Algorithm::ES256),
    ] });
    let server = Setup::embedded()
        .file("keys.json", &keys.to_string())
        .config(
            "auth: { jwt: [{ issuer: 'https://sign-in.example', audience: [argosy], \
             jwks_file: keys.json }] }",
        )
        .start()
        .await;
    let claims = |changes: Value| {
        let mut claims = json!({
            "iss": "https://sign-in.example", "aud": "argosy", "sub": "u1",
            "email": "ann@example.com", "exp": 4_102_444_800_u64, "role": "operator",
            "teams": ["alpha"],
        });
        for (name, value) in changes.as_object().expect("changes") {
            claims[name] = value.clone();
        }
        claims
    };
    let by = |algorithm, key: &EncodingKey, kid: &str, changes: Value| {
        server.with_token(&signed(kid, algorithm, key, &claims(changes)))
    };
    let ann = by(Algorithm::RS256, &rsa, "r", json!({}));
    let created = ann.create("clusters", &cluster("alpha", "alpha")).await;
    assert_eq!(created["created_by"], "ann@example.com");
    let path = format!("clusters/{}", text(&created, "/id"));
    by(Algorithm::ES256, &ec, "e", json!({})).get(&path).await.expect(200);

    let bob =
        by(Algorithm::RS256, &rsa, "r", json!({ "email": "bob@example.com", "teams": "beta" }));
    bob.get(&path).await.refused(403, &json!({ "error": "PermissionDenied" }));
    let viewer = by(Algorithm::RS256, &rsa, "r", json!({ "role": "viewer" }));
    viewer.delete(&path).await.refused(403, &json!({}));
    let stranger = by(Algorithm::RS256, &rsa, "r", json!({ "tenant": "acme" }));
    stranger.get(&path).await.refused(404, &json!({}));

    // K8.
    for (name, caller, code) in [
        ("another's key", by(Algorithm::RS256, &other, "r", json!({})), "HYPERFLEET-AUT-002"),
        (
            "audience",
            by(Algorithm::RS256, &rsa, "r", json!({ "aud": "other" })),
            "HYPERFLEET-AUT-002",
        ),
        ("issuer", by(Algorithm::RS256, &rsa, "r", json!({ "iss": "x" })), "HYPERFLEET-AUT-002"),
        ("algorithm", by(Algorithm::RS512, &rsa, "r", json!({})), "HYPERFLEET-AUT-002"),
        ("expired", by(Algorithm::RS256, &rsa, "r", json!({ "exp": 1 })), "HYPERFLEET-AUT-003"),
        ("none", server.with_token("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0."), "HYPERFLEET-AUT-002"),
    ] {
        let reply = caller.get(&path).await;
        assert_eq!(reply.status, 401, "{name}");
        reply.refused(401, &json!({ "code": code }));
    }
}

#[tokio::test]
async fn everybody_is_let_in_on_this_machine_only() {
    let dir = TestDir::new();
    let refused =
        run(argosy(dir.path(), &["server", "--listen", "0.0.0.0:0", "--store", "memory:"])).await;
    refused.expect(64);
    assert!(
        refused.err.contains("listen:") && refused.err.contains("--auth-none-anywhere"),
        "{}",
        refused.err
    );
}
