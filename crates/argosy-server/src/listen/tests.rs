use super::*;
use crate::body::{BodyError, read_limited};
use argosy_control::clock::Clock;
use axum::Router;
use axum::extract::{Extension, RawQuery};
use axum::http::StatusCode;
use axum::routing::{get, post};
use jiff::Timestamp;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;

const HELLO: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

async fn echo(body: Body) -> (StatusCode, String) {
    match read_limited(body, 1000).await {
        Ok(bytes) => (StatusCode::OK, format!("{} bytes", bytes.len())),
        Err(BodyError::TooLarge { .. }) => (StatusCode::PAYLOAD_TOO_LARGE, String::new()),
        Err(BodyError::TooSlow(_)) => (StatusCode::REQUEST_TIMEOUT, String::new()),
        Err(BodyError::Broken | BodyError::Malformed(_)) => {
            (StatusCode::BAD_REQUEST, String::new())
        }
    }
}

fn app() -> Router {
    Router::new()
        .route("/", get(async || "hello"))
        .route("/echo", post(echo))
        .route("/query", get(async |RawQuery(query): RawQuery| query.unwrap_or_default()))
        .route("/text", post(async |text: String| text))
        .route("/large", get(async || "x".repeat(10_000_000)))
        .route("/peer", get(async |Extension(Peer(peer)): Extension<Peer>| peer.to_string()))
        .route("/panic", get(async || -> &'static str { panic!("as the test wants") }))
}

// A connection over a pipe, in paused time: what a client does, and when it was cut.

/// Serves one connection to a client, and gives what the client gave and how many seconds it all took.
async fn against<T>(client: impl AsyncFnOnce(DuplexStream) -> T) -> (T, i64) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let (ours, theirs) = duplex(64 * 1024);
    let (_stop, shutdown) = watch::channel(false);
    let limits = Limits::default();
    let peer = Peer("127.0.0.1:1".parse().unwrap());
    let (said, ()) = tokio::join!(client(theirs), connection(ours, peer, app(), &limits, shutdown));
    (said, clock.now().as_second())
}

/// Everything until the other end closes.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset instead of an end is an end too.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One answer, by its content-length.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.split_once("content-length: ").map_or("0", |(_, rest)| rest);
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

async fn sent(bytes: &[u8]) -> String {
    against(async |mut client| {
        client.write_all(bytes).await.unwrap();
        rest(&mut client).await
    })
    .await
    .0
}

/// The status line of the answer to a request.
async fn status_of(request: &str) -> String {
    sent(request.as_bytes()).await.lines().next().unwrap_or("nothing").to_owned()
}

#[tokio::test(start_paused = true)]
async fn j1_a_head_that_drips_is_cut_after_ten_seconds() {
    let (_, seconds) = against(async |mut client| {
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        while client.write_all(b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    assert_eq!(seconds, 10);
}

#[tokio::test(start_paused = true)]
async fn j1_a_connection_that_says_nothing_is_cut_after_ten_seconds() {
    for first in ["", "G", "PRI * HTTP/2.0\r\n"] {
        let (said, seconds) = against(async |mut client| {
            client.write_all(first.as_bytes()).await.unwrap();
            rest(&mut client).await
        })
        .await;
        assert_eq!((said.as_str(), seconds), ("", 10), "{first}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_for_a_while_but_a_second_head_may_not_drip() {
    let (_, seconds) = against(async |mut client| {
        for _ in 0..3 {
            client.write_all(HELLO).await.unwrap();
            assert!(answer(&mut client).await.ends_with("hello"));
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        rest(&mut client).await
    })
    .await;
    assert_eq!(seconds, 60 + 60 + 75);

    let (_, seconds) = against(async |mut client| {
        client.write_all(HELLO).await.unwrap();
        answer(&mut client).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        client.write_all(b"GET ").await.unwrap();
        rest(&mut client).await
    })
    .await;
    assert_eq!(seconds, 60 + 10);
}

#[tokio::test(start_paused = true)]
async fn j2_a_body_that_stalls_is_answered_408() {
    let ((), seconds) = against(async |mut client| {
        client
            .write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx")
            .await
            .unwrap();
        assert!(answer(&mut client).await.starts_with("HTTP/1.1 408"));
    })
    .await;
    assert_eq!(seconds, 10);
}

#[tokio::test(start_paused = true)]
async fn j2_a_client_that_does_not_read_is_cut() {
    let (_, seconds) = against(async |mut client| {
        client.write_all(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_secs(31)).await;
        // What is left is less than the answer, and then the end.
        assert!(rest(&mut client).await.len() < 1_000_000);
    })
    .await;
    assert_eq!(seconds, 31);
}

#[tokio::test(start_paused = true)]
async fn j3_lengths_that_lie_are_answered() {
    let post = |length: usize, body: &str| {
        format!("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    assert_eq!(status_of(&post(5, "12345")).await, "HTTP/1.1 200 OK");
    assert_eq!(status_of(&post(1001, "")).await, "HTTP/1.1 413 Payload Too Large");
    // Who closes in the middle of a body is not waited for.
    let (said, seconds) = against(async |mut client| {
        client.write_all(post(9, "1234").as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        rest(&mut client).await
    })
    .await;
    assert!(said.starts_with("HTTP/1.1 400") && seconds == 0, "{seconds} s: {said}");
    // What comes after the length is the next request; it is not one.
    let said = sent(post(5, "12345\0\0").as_bytes()).await;
    assert!(said.contains("200 OK") && said.contains("400 Bad Request"), "{said}");
    // Without a length, the limit is on what arrives.
    let chunks = "1f4\r\n".to_owned() + &"x".repeat(500) + "\r\n";
    let chunked = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    let fits = status_of(&(chunked.clone() + &chunks.repeat(2) + "0\r\n\r\n")).await;
    assert_eq!(fits, "HTTP/1.1 200 OK");
    let over = status_of(&(chunked + &chunks.repeat(3) + "0\r\n\r\n")).await;
    assert_eq!(over, "HTTP/1.1 413 Payload Too Large");
}

#[tokio::test(start_paused = true)]
async fn j20_odd_heads_are_refused() {
    let get = |lines: &str| format!("GET / HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
    assert_eq!(status_of(&get("x: y\r\n")).await, "HTTP/1.1 200 OK");
    let too_large = "HTTP/1.1 431 Request Header Fields Too Large";
    assert_eq!(status_of(&get(&format!("x: {}\r\n", "y".repeat(20_000)))).await, too_large);
    assert_eq!(status_of(&get(&"x: y\r\n".repeat(101))).await, too_large);
    assert_eq!(status_of(&get(&"x: y\r\n".repeat(10_000))).await, too_large);
    for bad in ["content-length: 1\r\ncontent-length: 2\r\n", "content-length: -1\r\n", "x y\r\n"] {
        assert_eq!(status_of(&get(bad)).await, "HTTP/1.1 400 Bad Request", "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn quotes_in_the_first_line_are_taken_as_people_type_them() {
    let ((), _) = against(async |mut stream| {
        for _ in 0..2 {
            let typed = b"GET /query?phase=\"Not%20Ready\" HTTP/1.1\r\nhost: \"a\"\r\n\r\n";
            let (start, end) = typed.split_at(21);
            stream.write_all(start).await.unwrap();
            stream.write_all(end).await.unwrap();
            assert!(answer(&mut stream).await.ends_with("phase='Not%20Ready'"));
            let body = b"POST /text HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\n";
            stream.write_all(body).await.unwrap();
            stream.write_all(b"\"quoted\"").await.unwrap();
            assert!(answer(&mut stream).await.ends_with("\"quoted\""));
        }
    })
    .await;
}

// HTTP/2 by hand: what no honest client library sends.

const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET http:/`, from HPACK's static table.
const GET: &[u8] = &[0x82, 0x86, 0x84];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

fn http2() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(SETTINGS, 0, 0, &[])].concat()
}

#[tokio::test(start_paused = true)]
async fn an_http2_connection_is_idle_although_it_pings() {
    let (_, seconds) = against(async |mut client| {
        client.write_all(&http2()).await.unwrap();
        client.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, GET)).await.unwrap();
        // Answers the server's pings, and sends as many of its own, until the server closes.
        let mut head = [0; 9];
        while client.read_exact(&mut head).await.is_ok() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            client.read_exact(&mut payload).await.unwrap();
            if head[3] == PING && head[4] != ACK {
                client.write_all(&frame(PING, ACK, 0, &payload)).await.unwrap();
                client.write_all(&frame(PING, 0, 0, &payload)).await.unwrap();
            }
        }
    })
    .await;
    // Kept for longer than a head may take, given up although bytes still come.
    assert_eq!(seconds, 75);
}

/// Waits until the server closes, which it does long before the connection is merely idle.
async fn closed(stream: &mut TcpStream) {
    let waited = tokio::time::timeout(Duration::from_secs(30), rest(stream)).await;
    waited.expect("the server closes the connection");
}

#[tokio::test]
async fn j8_rapid_reset_closes_the_connection_and_nothing_else() {
    let server = start(app(), Limits::default()).await;
    let mut stream = server.connect().await;
    let mut attack = http2();
    for stream in (1..20_000).step_by(2) {
        attack.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, GET));
        attack.extend(frame(RESET, 0, stream, &[0, 0, 0, 8]));
    }
    // The server may close before it has taken everything.
    let _ = stream.write_all(&attack).await;
    closed(&mut stream).await;
    server.says_hello().await;
}

#[tokio::test]
async fn j8_a_head_without_end_closes_the_connection_and_nothing_else() {
    let server = start(app(), Limits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(&http2()).await.unwrap();
    let _ = stream.write_all(&frame(HEADERS, END_STREAM, 1, GET)).await;
    // A literal header of 120 bytes, again and again.
    let line = [&[0x00, 1, b'x', 120][..], &[b'y'; 120]].concat();
    let more = frame(CONTINUATION, 0, 1, &line.repeat(100));
    for _ in 0..1000 {
        if stream.write_all(&more).await.is_err() {
            break;
        }
    }
    closed(&mut stream).await;
    server.says_hello().await;
}

// The whole loop, over loopback sockets.

struct Running {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinSet<io::Result<()>>,
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn says_hello(&self) {
        let mut stream = self.connect().await;
        stream.write_all(HELLO).await.unwrap();
        assert!(answer(&mut stream).await.ends_with("hello"));
    }

    async fn ended(mut self) {
        self.serving.join_next().await.unwrap().unwrap().unwrap();
    }
}

async fn start_with(app: Router, limits: Limits, tls: Option<TlsAcceptor>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, shutdown) = watch::channel(false);
    let metrics = Metrics::new("0", Timestamp::UNIX_EPOCH);
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, tls, app, limits, metrics, shutdown));
    Running { address, stop, serving }
}

async fn start(app: Router, limits: Limits) -> Running {
    start_with(app, limits, None).await
}

#[tokio::test]
async fn a_handler_knows_the_peer() {
    let server = start(app(), Limits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /peer HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let peer = stream.local_addr().unwrap().to_string();
    assert!(answer(&mut stream).await.ends_with(&peer));
}

#[tokio::test]
async fn a_panic_ends_one_connection() {
    let server = start(app(), Limits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /panic HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    server.says_hello().await;
}

#[tokio::test]
async fn above_the_cap_connections_wait_their_turn() {
    let order: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
    let seen = Arc::clone(&order);
    let app = Router::new().route(
        "/",
        get(async move |Extension(Peer(peer)): Extension<Peer>| {
            seen.lock().unwrap().push(peer);
            "hello"
        }),
    );
    let server = start(app, Limits { connections_max: 1, ..Limits::default() }).await;
    let mut first = server.connect().await;
    first.write_all(HELLO).await.unwrap();
    answer(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(HELLO).await.unwrap();
    for _ in 0..20 {
        first.write_all(HELLO).await.unwrap();
        answer(&mut first).await;
    }
    let (one, two) = (first.local_addr().unwrap(), second.local_addr().unwrap());
    drop(first);
    answer(&mut second).await;
    assert_eq!(*order.lock().unwrap(), [vec![one; 21], vec![two]].concat());
}

/// An app whose `/held` answers once it is let go.
fn held() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (begun, go): (Arc<Notify>, Arc<Notify>) = Default::default();
    let (begins, let_go) = (Arc::clone(&begun), Arc::clone(&go));
    let app = Router::new().route(
        "/held",
        get(async move || {
            begins.notify_one();
            let_go.notified().await;
            "done"
        }),
    );
    (app, begun, go)
}

#[tokio::test]
async fn a5_shutdown_finishes_what_was_begun_and_takes_nothing_new() {
    let (app, begun, go) = held();
    let server = start(app, Limits::default()).await;
    let mut idle = server.connect().await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /held HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    begun.notified().await;
    server.stop.send_replace(true);
    assert_eq!(rest(&mut idle).await, "");
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    let said = rest(&mut stream).await;
    assert!(said.contains("200 OK") && said.ends_with("done"), "{said}");
    server.ended().await;
}

#[tokio::test]
async fn a5_shutdown_does_not_wait_for_ever() {
    let (app, begun, _go) = held();
    let limits = Limits { drain_max: Duration::from_millis(50), ..Limits::default() };
    let server = start(app, limits).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /held HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    begun.notified().await;
    server.stop.send_replace(true);
    server.ended().await;
    assert_eq!(rest(&mut stream).await, "");
}

#[test]
fn a12_only_errors_of_the_client_are_passed_over_without_a_pause() {
    use io::ErrorKind;
    let emfile = io::Error::from_raw_os_error(24);
    assert!(!is_the_clients(&emfile));
    assert!(!is_the_clients(&ErrorKind::OutOfMemory.into()));
    assert!(is_the_clients(&ErrorKind::ConnectionAborted.into()));
}

/// Runs itself again where a process may have few descriptors: the limit is the process's.
#[test]
fn a12_running_out_of_descriptors_pauses_accepting_and_no_more() {
    const AGAIN: &str = "ARGOSY_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(AGAIN).is_none() {
        let name = "listen::tests::a12_running_out_of_descriptors_pauses_accepting_and_no_more";
        let shell = format!("ulimit -n 48 && exec \"$0\" --exact {name}");
        let mut again = std::process::Command::new("sh");
        again.arg("-c").arg(shell).arg(std::env::current_exe().unwrap()).env(AGAIN, "1");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = start(app(), Limits::default()).await;
        // Blocking, so that the server accepts nothing before there is no descriptor left.
        let mut clients = Vec::new();
        while let Ok(client) = std::net::TcpStream::connect(server.address) {
            clients.push(client);
        }
        assert!(10 < clients.len());
        // Enough turns for the runtime to see the queue and for accepting to fail.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        drop(clients);
        server.says_hello().await;
    });
}

fn key_file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys").join(name)
}

#[tokio::test]
async fn tls_serves_both_protocols_and_cuts_silent_handshakes() {
    let certificate = key_file("test-only-tls-cert.pem");
    let acceptor = tls(&certificate, &key_file("test-only-tls-key.pem")).unwrap();
    let limits = Limits { handshake_max: Duration::from_millis(500), ..Limits::default() };
    let server = start_with(app(), limits, Some(acceptor)).await;

    let mut silent = server.connect().await;
    assert_eq!(rest(&mut silent).await, "");

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    for protocol in ["http/1.1", "h2"] {
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = "localhost".try_into().unwrap();
        let mut stream = connector.connect(name, server.connect().await).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        if protocol == "h2" {
            let get = frame(HEADERS, END_HEADERS | END_STREAM, 1, GET);
            stream.write_all(&[http2(), get].concat()).await.unwrap();
            let mut said = Vec::new();
            while !String::from_utf8_lossy(&said).contains("hello") {
                said.push(stream.read_u8().await.unwrap());
            }
        } else {
            stream.write_all(HELLO).await.unwrap();
            assert!(answer(&mut stream).await.ends_with("hello"));
        }
    }
}

#[test]
fn a_wrong_certificate_file_is_named() {
    let key = key_file("test-only-tls-key.pem");
    for (certificate, key) in
        [(key_file("missing.pem"), key.clone()), (key.clone(), key_file("missing.pem"))]
    {
        let error = tls(&certificate, &key).err().unwrap().to_string();
        assert!(error.contains(".pem"), "{error}");
    }
}
