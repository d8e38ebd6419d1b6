//! Clients of the node plane that cost little: requests are bytes made beforehand.

use anyhow::{Context, Result, bail, ensure};
use argosy_api::rpc::attach::Told;
use argosy_api::rpc::node::{AttachRequest, AttachResponse, Hello};
use buffa::Message as _;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use std::cell::RefCell;
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// One HTTP/1.1 connection that is kept, as Navarch's daemon keeps one.
pub(crate) struct Unary {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A whole unary Connect request, ready to be written, with the headers Navarch's daemon sends.
pub(crate) fn connect_request(method: &str, message: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST /navarch.ControlPlaneService/{method} HTTP/1.1\r\nHost: bench\r\nUser-Agent: \
         connect-go/1.19.1 (go1.24)\r\nAccept-Encoding: identity\r\nConnect-Protocol-Version: 1\r\n\
         Content-Type: application/proto\r\nContent-Length: {}\r\n\r\n",
        message.len()
    )
    .into_bytes();
    request.extend_from_slice(message);
    request
}

impl Unary {
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4096) })
    }

    /// Sends a request and answers with the body; any status but 200 is a failure.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            match find(&self.buffer, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.more().await?,
            }
        };
        let (ok, length) = {
            let text = std::str::from_utf8(self.buffer.get(..head).unwrap_or_default())?;
            (text.starts_with("HTTP/1.1 200"), content_length(text))
        };
        let body = match length {
            Some(length) => {
                while self.buffer.len() < head + length {
                    self.more().await?;
                }
                self.buffer.split_off(head)
            }
            None => {
                while !self.buffer.ends_with(b"0\r\n\r\n") {
                    self.more().await?;
                }
                unchunked(self.buffer.get(head..).unwrap_or_default())?
            }
        };
        if !ok {
            bail!("{}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    async fn more(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn content_length(head: &str) -> Option<usize> {
    let value = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    })?;
    value.trim().parse().ok()
}

fn unchunked(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find(rest, b"\r\n").context("a chunk without a length")?;
        let (length, tail) = rest.split_at(end);
        let length = usize::from_str_radix(std::str::from_utf8(length)?.trim(), 16)?;
        let tail = tail.get(2..).unwrap_or_default();
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(tail.get(..length).context("a chunk that is cut")?);
        rest = tail.get(length + 2..).unwrap_or_default();
    }
}

/// A message in gRPC's envelope.
pub(crate) fn envelope(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

/// One HTTP/2 connection in cleartext. What drives it runs in `tasks`.
pub(crate) async fn connect_h2(
    port: u16,
    tasks: &RefCell<JoinSet<()>>,
) -> Result<SendRequest<Bytes>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (client, connection) = h2::client::handshake(stream).await?;
    // A connection that ends is noticed by whoever waits for its streams.
    tasks.borrow_mut().spawn(async move { _ = connection.await });
    Ok(client)
}

fn grpc_request(path: &str) -> http::Request<()> {
    http::Request::post(format!("http://bench{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("the path is one of ours")
}

/// One unary gRPC call of Navarch's service; `framed` is a message in its envelope.
pub(crate) async fn grpc_call(
    client: &SendRequest<Bytes>,
    method: &str,
    framed: Bytes,
) -> Result<()> {
    let mut ready = client.clone().ready().await?;
    let path = format!("/navarch.ControlPlaneService/{method}");
    let (response, mut send) = ready.send_request(grpc_request(&path), false)?;
    send.send_data(framed, true)?;
    let mut body = response.await?.into_body();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
    }
    let trailers = body.trailers().await?.context("an answer without trailers")?;
    match trailers.get("grpc-status").map(http::HeaderValue::as_bytes) {
        Some(b"0") => Ok(()),
        status => bail!("grpc-status {status:?}: {:?}", trailers.get("grpc-message")),
    }
}

/// A node's stream, after it was welcomed.
pub(crate) struct Stream {
    send: SendStream<Bytes>,
    receive: RecvStream,
    buffer: BytesMut,
}

impl Stream {
    pub(crate) async fn attach(client: &SendRequest<Bytes>, node: &str) -> Result<Self> {
        let mut ready = client.clone().ready().await?;
        let path = "/argosy.v1.NodeService/Attach";
        let (response, mut send) = ready.send_request(grpc_request(path), false)?;
        let hello = Hello { node_id: node.to_owned(), ..Default::default() };
        let hello = AttachRequest { message: Some(hello.into()) };
        send.send_data(envelope(&hello.encode_to_vec()), false)?;
        let receive = response.await?.into_body();
        let mut stream = Self { send, receive, buffer: BytesMut::new() };
        let told = stream.told().await?;
        ensure!(matches!(told, Told::Welcome(_)), "no welcome: {told:?}");
        Ok(stream)
    }

    /// Sends a message in its envelope, when there is room for it.
    pub(crate) async fn say(&mut self, framed: Bytes) -> Result<()> {
        self.send.reserve_capacity(framed.len());
        while self.send.capacity() < framed.len() {
            let granted = poll_fn(|context| self.send.poll_capacity(context)).await;
            granted.context("the stream is closed")??;
        }
        Ok(self.send.send_data(framed, false)?)
    }

    /// Waits for the next thing the node is told.
    pub(crate) async fn told(&mut self) -> Result<Told> {
        loop {
            if let Some(message) = self.taken()? {
                return message.message.context("a message without content");
            }
            let data = self.receive.data().await.context("the stream has ended")??;
            self.receive.flow_control().release_capacity(data.len())?;
            self.buffer.extend_from_slice(&data);
        }
    }

    fn taken(&mut self) -> Result<Option<AttachResponse>> {
        let mut head = self.buffer.get(1..5).unwrap_or_default();
        if head.is_empty() {
            return Ok(None);
        }
        let length = usize::try_from(head.get_u32())?;
        if self.buffer.len() < 5 + length {
            return Ok(None);
        }
        self.buffer.advance(5);
        let message = self.buffer.split_to(length);
        Ok(Some(AttachResponse::decode_from_slice(&message)?))
    }
}
