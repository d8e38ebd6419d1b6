use super::*;
use argosy_control::notify::EventData;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Redirect;
use axum::routing::post;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::StatusCode;
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn event() -> CloudEvent {
    let href = "/api/hyperfleet/v1/clusters/1".to_owned();
    CloudEvent {
        specversion: "1.0".to_owned(),
        id: "evt-1".to_owned(),
        source: "argosy".to_owned(),
        kind: "com.redhat.hyperfleet.cluster.reconcile".to_owned(),
        subject: href.clone(),
        time: "2025-10-28T12:00:00Z".parse().unwrap(),
        datacontenttype: "application/json".to_owned(),
        data: EventData {
            id: "1".to_owned(),
            kind: "Cluster".to_owned(),
            href,
            generation: 1,
            owner_references: None,
        },
    }
}

fn notifier(allow: &[&str]) -> WebhookNotifier {
    let secrets = HashMap::from([("dns".to_owned(), Secret::new(SECRET.to_vec()).unwrap())]);
    let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
    let clock = Clock::simulated("2025-10-28T12:00:00Z".parse().unwrap());
    WebhookNotifier::new(secrets, allow, clock).unwrap()
}

/// A receiver on this machine, and everything it was sent.
struct Receiver {
    base: String,
    received: mpsc::Receiver<(HeaderMap, Bytes)>,
    _tasks: JoinSet<()>,
}

async fn receiver() -> Receiver {
    let (sender, received) = mpsc::channel(16);
    let take = |status: StatusCode| {
        post(
            async move |State(sender): State<mpsc::Sender<(HeaderMap, Bytes)>>,
                        headers: HeaderMap,
                        body: Bytes| {
                sender.send((headers, body)).await.unwrap();
                status
            },
        )
    };
    let mut routes = Router::new().route("/to-inside", post(async || Redirect::temporary("/200")));
    for status in [200, 204, 400, 401, 403, 404, 408, 410, 422, 425, 429, 500, 502, 503] {
        routes = routes.route(&format!("/{status}"), take(StatusCode::from_u16(status).unwrap()));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    let app = routes.with_state(sender);
    tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
    Receiver { base, received, _tasks: tasks }
}

#[tokio::test]
async fn an_event_arrives_signed_and_a_redelivery_has_the_same_id() {
    let mut receiver = receiver().await;
    let notifier = notifier(&["127.0.0.1"]);
    for _ in 0..2 {
        notifier.send("dns", &format!("{}/200", receiver.base), &event()).await.unwrap();
        let (headers, body) = receiver.received.recv().await.unwrap();
        let header = |name| headers.get(name).unwrap().to_str().unwrap();
        assert_eq!(header("content-type"), "application/cloudevents+json");
        assert_eq!(header("webhook-id"), "evt-1");
        assert_eq!(serde_json::from_slice::<CloudEvent>(&body).unwrap(), event());

        let time: i64 = header("webhook-timestamp").parse().unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
        mac.update(&[format!("evt-1.{time}.").as_bytes(), &body].concat());
        let signature = header("webhook-signature").strip_prefix("v1,").unwrap();
        mac.verify_slice(&BASE64_STANDARD.decode(signature).unwrap()).unwrap();
    }
}

#[tokio::test]
async fn the_status_says_whether_to_try_again() {
    let mut receiver = receiver().await;
    let notifier = notifier(&["127.0.0.1"]);
    for (statuses, expected) in [
        (&[200, 204][..], "delivered"),
        (&[408, 425, 429, 500, 502, 503], "later"),
        (&[400, 401, 403, 404, 410, 422], "refused"),
    ] {
        for status in statuses {
            let url = format!("{}/{status}", receiver.base);
            let answer = match notifier.send("dns", &url, &event()).await {
                Ok(()) => "delivered",
                Err(SendError::Later(_)) => "later",
                Err(SendError::Refused(_)) => "refused",
            };
            assert_eq!(answer, expected, "{status}");
            receiver.received.recv().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut receiver = receiver().await;
    let notifier = notifier(&["127.0.0.1"]);
    let answer = notifier.send("dns", &format!("{}/to-inside", receiver.base), &event()).await;
    assert_eq!(
        answer,
        Err(SendError::Refused(
            "the receiver answered 307 Temporary Redirect; redirects are not followed, \
             give the final URL"
                .to_owned()
        ))
    );
    receiver.received.try_recv().expect_err("nothing came through the redirect");
}

#[tokio::test]
async fn what_may_not_be_reached_is_refused() {
    let mut receiver = receiver().await;
    let port = receiver.base.rsplit_once(':').unwrap().1.to_owned();
    let refused = async |url: String, expected: &str| match notifier(&[])
        .send("dns", &url, &event())
        .await
    {
        Err(SendError::Refused(message)) => assert!(message.contains(expected), "{url}: {message}"),
        other => panic!("{url}: {other:?}"),
    };
    let inside = "is not a public address; allow it in the webhook settings";
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "0.0.0.0"] {
        refused(format!("http://{host}:{port}/200"), inside).await;
    }
    refused("http://169.254.169.254/latest/meta-data".to_owned(), inside).await;
    refused("ftp://example.com/".to_owned(), "must start with http or https, not ftp").await;
    refused("not a url".to_owned(), "the webhook's URL is none").await;
    receiver.received.try_recv().expect_err("nothing arrived");
}

#[tokio::test]
async fn a_name_is_reached_if_it_or_all_its_addresses_are_allowed() {
    let mut receiver = receiver().await;
    let url = format!("{}/200", receiver.base.replace("127.0.0.1", "localhost"));
    for allow in [&["localhost"][..], &["127.0.0.0/8", "::1"]] {
        notifier(allow).send("dns", &url, &event()).await.unwrap();
        receiver.received.recv().await.unwrap();
    }
}

#[tokio::test]
async fn nobody_listening_is_a_reason_to_try_later_and_an_unknown_adapter_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?token=hush", listener.local_addr().unwrap());
    drop(listener);
    let notifier = notifier(&["127.0.0.1"]);
    let Err(SendError::Later(message)) = notifier.send("dns", &url, &event()).await else {
        panic!("a closed port may open again");
    };
    assert!(message.contains("refused") && !message.contains("hush"), "{message}");
    assert_eq!(
        notifier.send("nobody", &url, &event()).await,
        Err(SendError::Refused("no webhook secret is configured for adapter `nobody`".to_owned()))
    );
}

/// Sends to a server that answers as it likes once a request comes in.
async fn send_to<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (Result<(), SendError>, Duration, JoinSet<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let notifier = Arc::new(notifier(&["127.0.0.1"]));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = [0; 16];
        stream.read_exact(&mut seen).await.unwrap();
        serve(stream).await
    });
    let before = notifier.clock.now();
    let answer = notifier.send("dns", &url, &event()).await;
    let passed = notifier.clock.now().duration_since(before);
    (answer, Duration::try_from(passed).unwrap(), tasks)
}

#[tokio::test]
async fn an_answer_that_never_comes_is_cut_after_ten_seconds() {
    let (answer, passed, _server) = send_to(async |stream| {
        tokio::time::pause();
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    assert!(matches!(&answer, Err(SendError::Later(message)) if message.contains("timed out")));
    assert_eq!(passed.as_secs(), 10, "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_drips_is_cut_after_ten_seconds() {
    let (answer, passed, _server) = send_to(async |mut stream: TcpStream| {
        tokio::time::pause();
        for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".chunks(1) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stream.write_all(byte).await.is_err() {
                return;
            }
        }
    })
    .await;
    assert!(matches!(&answer, Err(SendError::Later(message)) if message.contains("timed out")));
    assert_eq!(passed.as_secs(), 10, "{answer:?}");
}

#[tokio::test]
async fn a_long_answer_is_not_read() {
    let (answer, _, mut server) = send_to(async |mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n").await.unwrap();
        let mut written = 0_u64;
        while written < 1_000_000_000 && stream.write_all(&[b'x'; 65_536]).await.is_ok() {
            written += 65_536;
        }
        written
    })
    .await;
    answer.expect("the status said it arrived");
    let written = server.join_next().await.unwrap().unwrap();
    assert!(written < 100_000_000, "{written} bytes were taken, more than sockets hold");
}
