use super::*;
use argosy_core::label::Labels;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Redirect};
use axum::routing::any;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const NOW: &str = "2025-10-28T12:00:00Z";

fn machine(id: &str) -> Machine {
    let hostname = "gpu-7".to_owned();
    Machine { id: id.to_owned(), hostname, labels: Labels::default(), known_as: None }
}

fn later() -> Timestamp {
    "2025-10-28T13:00:00Z".parse().unwrap()
}

fn drain(reason: &str) -> Drain {
    Drain { reason: reason.to_owned(), deadline: later(), over: false, force: false }
}

/// All addresses under one, which is allowed.
fn settings(base: &str) -> WebhookSettings {
    let url = |path: &str| Some(format!("{base}{path}"));
    WebhookSettings {
        cordon_url: url("/cordon"),
        uncordon_url: url("/uncordon"),
        drain_url: url("/drain"),
        drain_status_url: url("/status"),
        allow: vec!["127.0.0.1".parse().unwrap()],
        ..WebhookSettings::default()
    }
}

fn scheduler(settings: WebhookSettings) -> WebhookScheduler {
    WebhookScheduler::new(settings, Clock::simulated(NOW.parse().unwrap())).unwrap()
}

/// One request as it came in.
struct Seen {
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body without its time, which is one.
    fn body_but_time(&self) -> Value {
        let mut body: Value = serde_json::from_slice(&self.body).unwrap();
        let time = body.as_object_mut().unwrap().remove("timestamp").unwrap();
        time.as_str().unwrap().parse::<Timestamp>().unwrap();
        body
    }
}

/// A receiver on this machine that answers everything alike, and everything it was sent.
struct Receiver {
    base: String,
    seen: mpsc::Receiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Receiver {
    async fn start(status: u16, body: &'static str) -> Self {
        let status = StatusCode::from_u16(status).unwrap();
        Self::answering(move || (status, body).into_response()).await
    }

    async fn answering(
        answer: impl Fn() -> axum::response::Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let (sender, seen) = mpsc::channel(16);
        let take = async move |State(sender): State<mpsc::Sender<Seen>>,
                               method: Method,
                               uri: Uri,
                               headers: HeaderMap,
                               body: Bytes| {
            sender.send(Seen { method, uri: uri.to_string(), headers, body }).await.unwrap();
            answer()
        };
        let routes = Router::new().route("/{*path}", any(take)).with_state(sender);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { base, seen, _tasks: tasks }
    }

    fn next(&mut self) -> Seen {
        self.seen.try_recv().expect("a request came in")
    }

    fn quiet(&mut self) {
        assert!(self.seen.try_recv().is_err(), "nothing came in");
    }
}

#[tokio::test]
async fn what_is_sent_is_what_navarchs_receivers_expect() {
    let mut receiver = Receiver::start(204, "").await;
    let scheduler = scheduler(settings(&receiver.base));
    assert_eq!(scheduler.name(), "webhook");

    scheduler.cordon(&machine("n1"), "xid 79 on GPU 3").await.unwrap();
    let cordon = receiver.next();
    assert_eq!((cordon.method.as_str(), cordon.uri.as_str()), ("POST", "/cordon"));
    assert_eq!(cordon.header("content-type"), Some("application/json"));
    let body = std::str::from_utf8(&cordon.body).unwrap();
    let (told, time) = body.rsplit_once("2025-10-28T12:00:").unwrap();
    assert_eq!(
        told,
        r#"{"event":"cordon","node_id":"n1","reason":"xid 79 on GPU 3","timestamp":""#
    );
    assert!(time.ends_with("Z\"}"), "{time}");
    assert_eq!(cordon.header("webhook-signature"), None, "no secret, no signature");

    scheduler.drain(&machine("n1"), &drain("")).await.unwrap();
    let told = receiver.next();
    assert_eq!((told.method.as_str(), told.uri.as_str()), ("POST", "/drain"));
    assert_eq!(
        told.body_but_time(),
        json!({
            "event": "drain", "node_id": "n1",
            "deadline": "2025-10-28T13:00:00Z", "seconds_left": 3600,
        }),
        "a reason that is empty is left out"
    );
    let forced = Drain { force: true, ..drain("fan") };
    scheduler.drain(&machine("n1"), &forced).await.unwrap();
    assert_eq!(receiver.next().body_but_time()["force"], true, "r2_n2");

    scheduler.uncordon(&machine("n \"1\"\n")).await.unwrap();
    let uncordon = receiver.next();
    assert_eq!((uncordon.method.as_str(), uncordon.uri.as_str()), ("POST", "/uncordon"));
    assert_eq!(uncordon.body_but_time(), json!({ "event": "uncordon", "node_id": "n \"1\"\n" }));
}

#[tokio::test]
async fn a_reason_is_cut_to_what_people_read() {
    let mut receiver = Receiver::start(200, "").await;
    let scheduler = scheduler(settings(&receiver.base));
    scheduler.cordon(&machine("n1"), &"ü".repeat(1_000_000)).await.unwrap();
    let body: Value = serde_json::from_slice(&receiver.next().body).unwrap();
    assert_eq!(body["reason"].as_str().unwrap(), "ü".repeat(REASON_MAX));
}

#[tokio::test]
async fn configured_headers_go_with_every_request_and_are_checked() {
    let mut receiver = Receiver::start(200, r#"{"drained":true}"#).await;
    let with = |headers: &[(&str, &str)]| WebhookSettings {
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..settings(&receiver.base)
    };
    let told = scheduler(with(&[("Authorization", "Bearer hush"), ("X-Fleet", "${HOME}")]));
    told.cordon(&machine("n1"), "").await.unwrap();
    told.drain_status(&machine("n1"), &drain("")).await.unwrap();
    for (header, bad, complaint) in [
        ("content type", "x", "headers: `content type` is not the name of a header"),
        ("Webhook-Signature", "x", "headers: `Webhook-Signature` is set by what is sent"),
        ("Host", "x", "headers: `Host` is set by what is sent"),
        (
            "X-Token",
            "hu\nsh",
            "headers: the value of `X-Token` has characters that no header can have",
        ),
    ] {
        let refused = WebhookScheduler::new(with(&[(header, bad)]), Clock::System).err().unwrap();
        assert_eq!(refused.to_string(), complaint);
    }
    let twice = WebhookScheduler::new(with(&[("X-A", "1"), ("x-a", "2")]), Clock::System);
    assert_eq!(twice.err().unwrap().to_string(), "headers: `x-a` is there twice");
    for _ in 0..2 {
        let seen = receiver.next();
        assert_eq!(seen.header("authorization"), Some("Bearer hush"));
        assert_eq!(seen.header("x-fleet"), Some("${HOME}"), "sent as it is written");
    }
}

#[tokio::test]
async fn l5_an_event_is_signed_and_a_replay_can_be_told() {
    let mut receiver = Receiver::start(200, "").await;
    let secret = Some(Secret::new(SECRET.to_vec()).unwrap());
    let scheduler = scheduler(WebhookSettings { secret, ..settings(&receiver.base) });
    let mut ids = Vec::new();
    for _ in 0..2 {
        scheduler.cordon(&machine("n1"), "xid 79").await.unwrap();
        let seen = receiver.next();
        let id = seen.header("webhook-id").unwrap();
        let time: i64 = seen.header("webhook-timestamp").unwrap().parse().unwrap();
        assert!((scheduler.clock.now().as_second() - time).abs() < 60, "{time}");
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
        mac.update(&[format!("{id}.{time}.").as_bytes(), &seen.body].concat());
        let signature = seen.header("webhook-signature").unwrap().strip_prefix("v1,").unwrap();
        mac.verify_slice(&BASE64_STANDARD.decode(signature).unwrap()).unwrap();
        ids.push(id.to_owned());
    }
    assert_ne!(ids[0], ids[1], "a second cordon must not look like a replay of the first");
}

#[tokio::test]
async fn an_address_that_is_not_given_is_not_told_and_a_drain_is_never_known_to_be_over() {
    let scheduler = scheduler(WebhookSettings::default());
    let machine = machine("n1");
    scheduler.cordon(&machine, "x").await.unwrap();
    scheduler.uncordon(&machine).await.unwrap();
    scheduler.drain(&machine, &drain("x")).await.unwrap();
    let message = "nobody can be asked: no drain_status_url is configured".to_owned();
    assert_eq!(
        scheduler.drain_status(&machine, &drain("")).await,
        Ok(DrainStatus::Draining { left: None, message })
    );
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused_by_name() {
    let check = |settings: WebhookSettings, expected: &str| {
        let refused = WebhookScheduler::new(settings, Clock::System).err().unwrap().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    };
    let url = |text: &str| Some(text.to_owned());
    let none = WebhookSettings::default;
    check(
        WebhookSettings { cordon_url: url("not a url"), ..none() },
        "cordon_url: the webhook's URL is none",
    );
    check(
        WebhookSettings { drain_url: url("file:///etc/passwd"), ..none() },
        "drain_url: a webhook's URL must start with http or https, not file",
    );
    check(
        WebhookSettings { uncordon_url: url("http://10.0.0.1/"), ..none() },
        "uncordon_url: 10.0.0.1 leads to 10.0.0.1, which is not a public address",
    );
    check(
        WebhookSettings { drain_status_url: url("http://[::1]/"), ..none() },
        "drain_status_url: [::1] leads to ::1, which is not a public address",
    );
    for timeout in [Duration::ZERO, Duration::from_millis(10_001)] {
        check(
            WebhookSettings { timeout, ..none() },
            "timeout: must be more than nothing and at most 10s",
        );
    }
}

#[tokio::test]
async fn the_status_says_whether_to_try_again() {
    for (statuses, expected) in [
        (&[200_u16, 202, 204][..], "told"),
        (&[408, 425, 429, 500, 502, 503], "later"),
        // An address that is wrong looks like a node that is not known; so it is not called one.
        (&[400, 401, 403, 404, 410, 422], "refused"),
    ] {
        for status in statuses {
            let receiver = Receiver::start(*status, "").await;
            let scheduler = scheduler(settings(&receiver.base));
            let answer = match scheduler.cordon(&machine("n1"), "").await {
                Ok(()) => "told",
                Err(SchedulerError::Later(_)) => "later",
                Err(SchedulerError::Refused(_)) => "refused",
                Err(SchedulerError::UnknownNode(_)) => "unknown",
            };
            assert_eq!(answer, expected, "{status}");
        }
    }
}

#[tokio::test]
async fn a_drain_is_over_only_when_the_receiver_says_so() {
    let draining =
        |message: &str| Ok(DrainStatus::Draining { left: None, message: message.to_owned() });
    for (status, body, expected) in [
        (200, r#"{"drained":true}"#, Ok(DrainStatus::Drained)),
        (200, r#"{"drained":true,"message":"gone","more":[1]}"#, Ok(DrainStatus::Drained)),
        (200, r#"{"drained":false}"#, draining("")),
        (200, r#"{"drained":false,"message":null}"#, draining("")),
        (200, "{\"drained\":false,\"message\":\"2 jobs\\n left\"}", draining("2 jobs left")),
        (200, r#"{"drained":true,"forced":true}"#, Ok(DrainStatus::Forced)),
        (
            200,
            r#"{"drained":false,"forced":true,"message":"1 job"}"#,
            Ok(DrainStatus::Ending { left: None, message: "1 job".to_owned() }),
        ),
        (202, r#"{"drained":true}"#, Err("refused: the receiver answered 202 Accepted; a drain")),
        (204, "", Err("refused: the receiver answered 204 No Content; a drain")),
        (200, "", Err("refused: the receiver's answer is no drain status: EOF")),
        (200, "{}", Err("refused: the receiver's answer is no drain status: missing field `drai")),
        (200, r#"{"drained":"yes"}"#, Err("refused: the receiver's answer is no drain status: in")),
        (404, r#"{"drained":true}"#, Err("refused: the receiver answered 404")),
        (500, r#"{"drained":true}"#, Err("later: the receiver answered 500")),
    ] {
        let receiver = Receiver::start(status, body).await;
        let answer =
            scheduler(settings(&receiver.base)).drain_status(&machine("n1"), &drain("")).await;
        match (answer, expected) {
            (Ok(answer), Ok(expected)) => assert_eq!(answer, expected, "{status} {body}"),
            (Err(error), Err(expected)) => {
                let error = match error {
                    SchedulerError::Later(message) => format!("later: {message}"),
                    SchedulerError::Refused(message) => format!("refused: {message}"),
                    SchedulerError::UnknownNode(message) => format!("unknown: {message}"),
                };
                assert!(error.starts_with(expected), "{status} {body}: {error}");
            }
            (answer, expected) => panic!("{status} {body}: {answer:?}, not {expected:?}"),
        }
    }
}

#[tokio::test]
async fn a_drain_status_is_asked_by_node_id_whatever_the_id_is() {
    let mut receiver = Receiver::start(200, r#"{"drained":true}"#).await;
    for (path, id, expected) in [
        ("/status", "n1", "/status?node_id=n1"),
        ("/status?a=b", "n1", "/status?a=b&node_id=n1"),
        ("/status", "a&drained=1 #?/ü", "/status?node_id=a%26drained%3D1+%23%3F%2F%C3%BC"),
    ] {
        let drain_status_url = Some(format!("{}{path}", receiver.base));
        let settings = WebhookSettings { drain_status_url, ..settings(&receiver.base) };
        scheduler(settings).drain_status(&machine(id), &drain("")).await.unwrap();
        let seen = receiver.next();
        assert_eq!((seen.method.as_str(), seen.uri.as_str()), ("GET", expected));
    }
}

#[tokio::test]
async fn l2_only_public_addresses_are_reached_unless_they_are_allowed() {
    let mut receiver = Receiver::start(200, r#"{"drained":true}"#).await;
    let port = receiver.base.rsplit_once(':').unwrap().1.to_owned();
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "0.0.0.0", "169.254.169.254"]
    {
        let settings =
            WebhookSettings { allow: Vec::new(), ..settings(&format!("http://{host}:{port}")) };
        let refused = WebhookScheduler::new(settings, Clock::System).err().unwrap();
        assert!(refused.to_string().contains("is not a public address"), "{host}: {refused}");
    }
    // What a name leads to is known only when it is looked up, each time anew.
    let base = format!("http://localhost:{port}");
    let inside = scheduler(WebhookSettings { allow: Vec::new(), ..settings(&base) });
    for answer in [
        inside.cordon(&machine("n1"), "").await,
        inside.drain_status(&machine("n1"), &drain("")).await.map(drop),
    ] {
        let Err(SchedulerError::Refused(message)) = answer else { panic!("{answer:?}") };
        assert!(message.contains("is not a public address"), "{message}");
    }
    receiver.quiet();

    let allow = vec!["localhost".parse().unwrap()];
    let allowed = scheduler(WebhookSettings { allow, ..settings(&base) });
    allowed.cordon(&machine("n1"), "").await.unwrap();
    receiver.next();
}

#[tokio::test]
async fn l3_a_redirect_is_not_followed() {
    let mut receiver =
        Receiver::answering(|| Redirect::temporary("/elsewhere").into_response()).await;
    let scheduler = scheduler(settings(&receiver.base));
    for answer in [
        scheduler.drain(&machine("n1"), &drain("")).await,
        scheduler.drain_status(&machine("n1"), &drain("")).await.map(drop),
    ] {
        let Err(SchedulerError::Refused(message)) = answer else { panic!("{answer:?}") };
        assert!(message.contains("redirects are not followed"), "{message}");
        assert_ne!(receiver.next().uri, "/elsewhere");
    }
    receiver.quiet();
}

/// Asks for a drain status where the connection answers as it likes once a request comes in. Also how
/// long that took.
async fn ask<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    timeout: Duration,
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (Result<DrainStatus, SchedulerError>, Duration, JoinSet<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let scheduler = scheduler(WebhookSettings { timeout, ..settings(&base) });
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 16]).await.unwrap();
        serve(stream).await
    });
    let before = scheduler.clock.now();
    let answer = scheduler.drain_status(&machine("n1"), &drain("")).await;
    let passed = scheduler.clock.now().duration_since(before);
    (answer, Duration::try_from(passed).unwrap(), tasks)
}

#[tokio::test]
async fn l1_an_answer_that_never_comes_is_cut() {
    for seconds in [10, 3] {
        let (answer, passed, _server) =
            ask(Duration::from_secs(seconds), async |stream: TcpStream| {
                tokio::time::pause();
                std::future::pending::<()>().await;
                drop(stream);
            })
            .await;
        let Err(SchedulerError::Later(message)) = answer else { panic!("{answer:?}") };
        assert!(message.contains("timed out"), "{message}");
        assert_eq!(passed.as_secs(), seconds);
        tokio::time::resume();
    }
}

#[tokio::test]
async fn l1_an_answer_that_drips_is_cut_in_its_body_too() {
    let (answer, passed, _server) = ask(Duration::from_secs(10), async |mut stream: TcpStream| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n";
        stream.write_all(head).await.unwrap();
        tokio::time::pause();
        for byte in br#"{"drained":true}"#.chunks(1) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stream.write_all(byte).await.is_err() {
                return;
            }
        }
    })
    .await;
    let Err(SchedulerError::Later(message)) = answer else { panic!("{answer:?}") };
    assert!(message.contains("timed out"), "{message}");
    assert_eq!(passed.as_secs(), 10);
}

#[tokio::test]
async fn l1_an_answer_without_end_is_read_to_its_limit() {
    let (answer, _, mut server) = ask(Duration::from_secs(10), async |mut stream: TcpStream| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n{\"drained\":true";
        stream.write_all(head).await.unwrap();
        let mut written = 0_u64;
        while written < 1_000_000_000 && stream.write_all(&[b' '; 65_536]).await.is_ok() {
            written += 65_536;
        }
        written
    })
    .await;
    let message = "the receiver's answer is longer than 65536 bytes".to_owned();
    assert_eq!(answer, Err(SchedulerError::Refused(message)));
    let written = server.join_next().await.unwrap().unwrap();
    assert!(written < 100_000_000, "{written} bytes were taken, more than sockets hold");
}
