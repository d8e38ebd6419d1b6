//! The services of the node plane, over real connections and by hand-made requests: no code of the
//! library under test stands on the client's side, but for the streams.

mod attach;
mod calls;
mod noise;

use crate::world::World;
use argosy_control::task::Tasks;
use argosy_server::listen::{self, Limits};
use argosy_server::metrics::Metrics;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, Version};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(super) const NAVARCH: &str = "/navarch.ControlPlaneService";
pub(super) const OURS: &str = "/argosy.v1.NodeService";

/// A server at a port; dropping it cuts every connection.
pub(super) struct Serving {
    pub(super) address: SocketAddr,
    pub(super) world: World,
    _tasks: Tasks,
    _stop: watch::Sender<bool>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) trailers: HeaderMap,
}

impl Called {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

pub(super) async fn serve() -> Serving {
    let world = World::new().await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = Metrics::new("test", Timestamp::UNIX_EPOCH);
    let (stop, shutdown) = watch::channel(false);
    let mut tasks = Tasks::default();
    let app = world.router.clone();
    let limits = Limits::default();
    tasks.start("listen", listen::serve(listener, None, app, limits, metrics, shutdown));
    Serving { address, world, _tasks: tasks, _stop: stop }
}

impl Serving {
    /// Calls on a connection of its own, as somebody.
    pub(super) async fn call(
        &self,
        version: Version,
        who: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Called {
        let mut request = Request::builder().method(Method::POST).uri(self.uri(version, path));
        if version == Version::HTTP_11 {
            request = request.header("host", self.address.to_string());
        }
        if !who.is_empty() {
            let token = format!("Bearer {who}-token-with-enough-characters");
            request = request.header("authorization", token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(version, request.body(Body::from(body.into())).unwrap()).await
    }

    fn uri(&self, version: Version, path: &str) -> String {
        // HTTP/2 says the host in the address.
        if version == Version::HTTP_2 {
            format!("http://{}{path}", self.address)
        } else {
            path.to_owned()
        }
    }

    pub(super) async fn send(&self, version: Version, request: Request<Body>) -> Called {
        let io = TokioIo::new(TcpStream::connect(self.address).await.unwrap());
        let mut connection = tokio::task::JoinSet::new();
        let response = if version == Version::HTTP_2 {
            let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
            let (mut sender, driver) = shaken.unwrap();
            connection.spawn(async { _ = driver.await });
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, driver) = hyper::client::conn::http1::handshake(io).await.unwrap();
            connection.spawn(async { _ = driver.await });
            sender.send_request(request).await.unwrap()
        };
        let (parts, body) = response.into_parts();
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let body = collected.to_bytes();
        Called { status: parts.status.as_u16(), headers: parts.headers, body, trailers }
    }

    /// Calls by Connect with JSON, as somebody.
    pub(super) async fn json(&self, who: &str, path: &str, body: &str) -> Called {
        let json = &[("content-type", "application/json")];
        self.call(Version::HTTP_11, who, path, json, body.to_owned()).await
    }

    /// Registers a node as an administrator.
    pub(super) async fn register(&self, node: &str) {
        let body = format!(
            r#"{{"nodeId":"{node}","provider":"gcp","region":"us-east1","zone":"us-east1-b",
                "instanceType":"a3-highgpu-8g","metadata":{{"hostname":"host-{node}"}},
                "gpus":[{{"uuid":"GPU-{node}-0","name":"NVIDIA H100"}},{{"index":1}}]}}"#
        );
        let called = self.json("admin", &format!("{NAVARCH}/RegisterNode"), &body).await;
        assert_eq!(called.status, 200, "{called:?}");
    }
}

/// A message in the envelope of gRPC.
pub(super) fn framed(flags: u8, message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).unwrap();
    [&[flags], &len.to_be_bytes()[..], message].concat()
}

/// The frames of a body: flags and contents.
pub(super) fn frames(mut body: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = body.split_first_chunk::<5>() {
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        frames.push((head[0], rest[..len].to_vec()));
        body = &rest[len..];
    }
    assert!(body.is_empty(), "{} bytes are left over", body.len());
    frames
}

/// A field of a protobuf message that has a length.
pub(super) fn field(number: u8, contents: impl AsRef<[u8]>) -> Vec<u8> {
    let contents = contents.as_ref();
    let mut bytes = vec![number << 3 | 2];
    let mut len = contents.len();
    while 0x7f < len {
        bytes.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
        len >>= 7;
    }
    bytes.push(u8::try_from(len).unwrap());
    bytes.extend_from_slice(contents);
    bytes
}
