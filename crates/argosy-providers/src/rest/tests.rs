use super::*;
use crate::standin::{Reply, Server};
use axum::Router;
use axum::extract::{Request, State};
use serde_json::json;
use std::sync::Mutex;

/// A server that gives the answers of a list, one a request, and then the last for ever.
struct Script {
    server: Server,
    left: Arc<Mutex<Vec<Reply>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

type Shared = (Arc<Mutex<Vec<Reply>>>, Arc<Mutex<Vec<String>>>);

async fn next(State((left, asked)): State<Shared>, request: Request) -> axum::response::Response {
    asked.lock().unwrap().push(request.uri().to_string());
    let reply = left.lock().unwrap().pop();
    reply.unwrap_or(Reply::Never).send().await
}

impl Script {
    async fn new(mut replies: Vec<Reply>) -> Self {
        replies.reverse();
        let left = Arc::new(Mutex::new(replies));
        let asked = Arc::default();
        let state: Shared = (left.clone(), Arc::clone(&asked));
        let server =
            Server::start(|_| Router::new().fallback(next).with_state(state)).await.unwrap();
        Self { server, left, asked }
    }

    fn rest(&self, total_max: Duration) -> Rest {
        let url = Url::parse(&self.server.url).unwrap();
        Rest::new("Cloud", &url, total_max, Bucket::new(1000.0, 1000), Clock::System).unwrap()
    }

    fn call(&self, effect: Effect) -> Call<'static> {
        let url = Url::parse(&self.server.url).unwrap();
        let method = if effect == Effect::Look { Method::GET } else { Method::POST };
        Call::new(method, at(&url, &["v1", "things"], &[("token", "in-the-query")]), effect)
    }

    async fn answer(&self, effect: Effect) -> Result<Value, Failed> {
        self.rest(Duration::from_secs(5)).call(&self.call(effect)).await
    }
}

fn status(code: u16) -> Reply {
    Reply::Json(StatusCode::from_u16(code).unwrap(), json!({ "why": code }))
}

fn word(failed: &Failed) -> &'static str {
    match failed {
        Failed::Said(_) => "said",
        Failed::Lost(Trouble::Unsure(_)) | Failed::Garbled(Trouble::Unsure(_)) => "unsure",
        Failed::Lost(Trouble::Unreachable(_)) | Failed::Garbled(Trouble::Unreachable(_)) => {
            "unreachable"
        }
        Failed::Lost(Trouble::Throttled { .. }) => "throttled",
        Failed::Lost(other) | Failed::Garbled(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_look_is_repeated_and_a_change_is_not() {
    for (effect, replies, expected, requests) in [
        (Effect::Look, vec![status(500), status(503), status(200)], "yes", 3),
        (Effect::Look, vec![status(500), status(500), status(500), status(200)], "said", 3),
        (Effect::Look, vec![status(404), status(200)], "said", 1),
        (Effect::Change, vec![status(500), status(200)], "said", 1),
        (Effect::Change, vec![status(503), status(200)], "said", 1),
        (Effect::Look, vec![Reply::Raw(b"{".to_vec()), status(200)], "unreachable", 1),
        (Effect::Change, vec![Reply::Raw(b"{".to_vec()), status(200)], "unsure", 1),
    ] {
        let script = Script::new(replies).await;
        let answer = script.answer(effect).await;
        let told = answer.as_ref().map_or_else(word, |_| "yes");
        assert_eq!(told, expected, "{effect:?}: {answer:?}");
        assert_eq!(script.asked.lock().unwrap().len(), requests, "{effect:?}: {answer:?}");
    }
}

#[tokio::test]
async fn hostile_bodies_are_limited_and_never_believed() {
    let deep = "[".repeat(100_000);
    let long = format!("\"{}\"", "x".repeat(10 * 1024 * 1024));
    let garbage = vec![0xff, 0xfe, 0x00, b'<'];
    for body in [deep.into_bytes(), long.into_bytes(), garbage, b"{\"data\":".to_vec()] {
        for (effect, expected) in [(Effect::Look, "unreachable"), (Effect::Change, "unsure")] {
            let replies = (0..3).map(|_| Reply::Raw(body.clone())).collect();
            let script = Script::new(replies).await;
            let failed = script.answer(effect).await.expect_err("it is no answer");
            assert_eq!(word(&failed), expected);
            assert!(format!("{failed:?}").len() < 2000, "the answer is repeated: {failed:?}");
        }
    }
}

#[tokio::test]
async fn g1_a_change_that_is_not_answered_in_time_is_unsure() {
    let script = Script::new(vec![Reply::Never]).await;
    let rest = script.rest(Duration::from_millis(200));
    let failed = rest.call(&script.call(Effect::Change)).await.expect_err("nobody answers");
    assert_eq!(word(&failed), "unsure", "{failed:?}");
    assert_eq!(script.asked.lock().unwrap().len(), 1);
    let failed = rest.call(&script.call(Effect::Look)).await.expect_err("nobody answers");
    assert_eq!(word(&failed), "unreachable", "{failed:?}");
}

#[tokio::test]
async fn a_connection_that_was_never_made_changed_nothing() {
    let script = Script::new(Vec::new()).await;
    let (rest, call) = (script.rest(Duration::from_secs(5)), script.call(Effect::Change));
    drop(script);
    let failed = rest.call(&call).await.expect_err("nobody is there");
    assert_eq!(word(&failed), "unreachable", "{failed:?}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let script = Script::new(vec![status(302), status(200)]).await;
    let failed = script.answer(Effect::Look).await.expect_err("a redirect is no answer");
    let Failed::Said(said) = failed else { panic!("{failed:?}") };
    let trouble = script.rest(TOTAL_MAX).common(&said, Effect::Look, "");
    assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble:?}");
    assert_eq!(script.left.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn g5_who_was_told_to_wait_does_not_ask_before() {
    let busy = || Reply::Throttled(StatusCode::TOO_MANY_REQUESTS, json!({}));
    let script = Script::new(vec![busy(), status(200)]).await;
    let rest = script.rest(Duration::from_millis(300));
    let failed = rest.call(&script.call(Effect::Look)).await.expect_err("too many");
    let Failed::Said(said) = &failed else { panic!("{failed:?}") };
    assert_eq!(said.retry_after_s, Some(1));
    // A second is longer than this caller may wait: it is sent away, and nothing is sent.
    let failed = rest.call(&script.call(Effect::Look)).await.expect_err("still too many");
    assert_eq!(word(&failed), "throttled", "{failed:?}");
    assert_eq!(script.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_every_provider_means_alike() {
    let script = Script::new(Vec::new()).await;
    let rest = script.rest(TOTAL_MAX);
    let check = |status: u16, retry_after_s: Option<u32>, effect: Effect, expected: &str| {
        let status = StatusCode::from_u16(status).unwrap();
        let said = Said { status, retry_after_s, body: Value::Null };
        let trouble = format!("{:?}", rest.common(&said, effect, ""));
        assert!(trouble.starts_with(expected), "{status}: {trouble}");
    };
    use Effect::{Change, Look};
    check(401, None, Look, "Credentials");
    check(403, None, Look, "Denied");
    check(404, None, Look, "NotFound");
    check(408, None, Change, "Unsure");
    check(429, Some(7), Change, "Throttled { retry_after_s: Some(7)");
    check(500, None, Change, "Unsure");
    check(500, None, Look, "Unreachable");
    check(502, None, Change, "Unsure");
    check(503, None, Change, "Unsure");
    check(503, Some(3), Change, "Throttled");
    check(301, None, Change, "Unreachable");
    check(400, None, Change, "Invalid");
    check(418, None, Change, "Invalid");
}

#[test]
fn addresses_that_credentials_may_go_to() {
    for (text, fine) in [
        ("https://compute.googleapis.com/compute/v1", true),
        ("http://127.0.0.1:8080", true),
        ("http://localhost", true),
        ("http://[::1]:1", true),
        ("http://compute.googleapis.com", false),
        ("http://127.0.0.1.example.com", false),
        ("ftp://127.0.0.1", false),
        ("file:///etc/passwd", false),
        ("nonsense", false),
        ("data:text/plain,x", false),
        ("", false),
    ] {
        assert_eq!(check_url("endpoint", text).is_ok(), fine, "{text}");
    }
}

#[test]
fn nothing_in_a_name_leaves_its_segment() {
    let base = Url::parse("https://cloud.example/v1/").unwrap();
    for (name, expected) in [
        ("a", "https://cloud.example/v1/zones/a/x"),
        ("../../b", "https://cloud.example/v1/zones/..%2F..%2Fb/x"),
        ("a?b#c", "https://cloud.example/v1/zones/a%3Fb%23c/x"),
        ("a b", "https://cloud.example/v1/zones/a%20b/x"),
    ] {
        assert_eq!(at(&base, &["zones", name, "x"], &[]).as_str(), expected);
    }
}

#[test]
fn what_others_wrote_is_cut_and_cleaned() {
    assert_eq!(plain("  a\r\nb\u{1b}[31m "), "a  b [31m");
    assert_eq!(plain(&"ä".repeat(1000)).chars().count(), MESSAGE_LEN_MAX + 1);
}

#[tokio::test]
async fn i12_no_secret_is_shown() {
    let key = Credential::new("very-secret-key\n");
    assert_eq!(key.expose(), "very-secret-key");
    assert_eq!(format!("{key:?}"), "Credential(…)");
    let script = Script::new(vec![Reply::Raw(b"{".to_vec())]).await;
    let mut call = script.call(Effect::Change);
    call.authorization = key.bearer();
    assert!(!format!("{call:?}").contains("very-secret"), "{call:?}");
    let failed = script.rest(TOTAL_MAX).call(&call).await.expect_err("no answer");
    let told = format!("{failed:?}");
    assert!(!told.contains("very-secret") && !told.contains("in-the-query"), "{told}");
}

#[tokio::test]
async fn r2_i18_a_call_has_all_its_time_behind_the_queue() {
    let script = Script::new(vec![status(200)]).await;
    let url = Url::parse(&script.server.url).unwrap();
    let total_max = Duration::from_millis(400);
    let rest = Rest::new("Cloud", &url, total_max, Bucket::new(2.6, 1), Clock::System).unwrap();
    rest.call(&script.call(Effect::Change)).await.unwrap();
    // The next waits almost as long for its turn as it may take, and then nobody answers.
    let began = Clock::System.monotonic();
    let failed = rest.call(&script.call(Effect::Change)).await.unwrap_err();
    assert_eq!(word(&failed), "unsure");
    let took = Clock::System.monotonic() - began;
    assert!(Duration::from_millis(650) <= took, "{took:?}");
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}
