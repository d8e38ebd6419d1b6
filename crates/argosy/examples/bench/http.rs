//! A client that costs little: it shares the cores with the server that is measured.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Where paths of the API begin.
const BASE: &str = "/api/hyperfleet/v1";

/// One connection that is kept.
pub(crate) struct Connection(BufReader<TcpStream>);

/// The head of an answer, as far as it matters here.
struct Head {
    status: u16,
    length: Option<usize>,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Asks, and answers with the body; any status but `expected` is a failure.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        expected: u16,
    ) -> Result<Vec<u8>> {
        self.send(method, &format!("{BASE}{path}"), body).await?;
        let (status, answer) = self.answer().await?;
        if status != expected {
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(answer)
    }

    /// `/readyz`, `/metrics`: status and body.
    pub(crate) async fn operation(&mut self, path: &str) -> Result<(u16, Vec<u8>)> {
        self.send("GET", path, "").await?;
        self.answer().await
    }

    /// Asks the console of the simulated cloud.
    pub(crate) async fn cloud(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        self.send(method, &format!("/simulated-cloud/v1{path}"), body).await?;
        match self.answer().await? {
            (200..=299, _) => Ok(()),
            (status, body) => {
                bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&body))
            }
        }
    }

    /// A list of ours.
    pub(crate) async fn argosy(&mut self, path: &str) -> Result<Value> {
        self.send("GET", &format!("/api/argosy/v1{path}"), "").await?;
        match self.answer().await? {
            (200, body) => Ok(serde_json::from_slice(&body)?),
            (status, body) => bail!("GET {path}: {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// A call in JSON.
    pub(crate) async fn rpc(&mut self, path: &str, body: &str) -> Result<()> {
        self.send("POST", path, body).await?;
        match self.answer().await? {
            (200, _) => Ok(()),
            (status, body) => bail!("POST {path}: {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// Turns the connection into a watch of clusters.
    pub(crate) async fn watch(mut self, query: &str) -> Result<Watch> {
        self.send("GET", &format!("{BASE}/clusters?watch=true{query}"), "").await?;
        match self.head().await? {
            Head { status: 200, .. } => Ok(Watch(self.0)),
            Head { status, .. } => bail!("watch: {status}"),
        }
    }

    async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        Ok(self.0.get_mut().write_all(text.as_bytes()).await?)
    }

    async fn answer(&mut self) -> Result<(u16, Vec<u8>)> {
        let head = self.head().await?;
        let mut body = vec![0; head.length.context("an answer without a length")?];
        self.0.read_exact(&mut body).await?;
        Ok((head.status, body))
    }

    async fn head(&mut self) -> Result<Head> {
        let first = line(&mut self.0).await?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut head = Head { status: status.context("not an HTTP answer")?, length: None };
        loop {
            let line = line(&mut self.0).await?;
            if line.is_empty() {
                return Ok(head);
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                head.length = value.trim().parse().ok();
            }
        }
    }
}

/// A watch: one event a chunk.
pub(crate) struct Watch(BufReader<TcpStream>);

impl Watch {
    /// The next event as it was sent, comments included.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>> {
        let length = line(&mut self.0).await?;
        let length = usize::from_str_radix(&length, 16).context("not a chunk")?;
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).await?;
        Ok(chunk)
    }
}

async fn line(from: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line).await? == 0 {
        return Err(anyhow!("the server closed the connection"));
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}
