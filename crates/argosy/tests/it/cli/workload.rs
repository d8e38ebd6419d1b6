//! Draining by the word of a workload system: a webhook in Navarch's form.

use super::node::register;
use crate::harness::{Setup, text};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A workload system: it is told, and says that a drain is over.
struct Workloads {
    address: String,
    /// What it was told: event and node.
    told: Arc<Mutex<Vec<String>>>,
    // Ends with the value.
    _tasks: JoinSet<()>,
}

impl Workloads {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let notes = told.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A caller that went away is not our trouble.
                let _ = answer(stream, &notes).await;
            }
        });
        Self { address, told, _tasks: tasks }
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(stream: TcpStream, told: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    stream.read_line(&mut first).await?;
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let text = line.trim_end().to_ascii_lowercase();
        match text.split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let mut notes = Vec::new();
    if first.starts_with("POST") {
        let event: Value = serde_json::from_slice(&body).unwrap_or_default();
        notes.push(format!("{} {}", text(&event, "/event"), text(&event, "/node_id")));
    }
    told.lock().unwrap_or_else(PoisonError::into_inner).extend(notes);
    let answer = r#"{"drained": true}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[tokio::test]
async fn a_drain_is_over_when_the_workload_system_says_so() {
    let workloads = Workloads::start().await;
    let at = format!("http://{}", workloads.address);
    let server = Setup::embedded()
        .config(&format!(
            "webhooks: {{ allow: [127.0.0.1] }}\n\
             workload_system: {{ webhook: {{ cordon_url: '{at}/cordon', uncordon_url: '{at}/uncordon', \
             drain_url: '{at}/drain', drain_status_url: '{at}/status' }} }}"
        ))
        .start()
        .await;
    register(&server, &["gpu-1"]).await;
    let drained = server.cli(&["node", "drain", "gpu-1", "--wait", "-o", "json"]).await;
    assert_eq!(text(&drained.json(), "/outcome"), "Drained");
    assert!(workloads.told().contains(&"drain gpu-1".to_owned()), "{:?}", workloads.told());
    let page = server.cli(&["node", "get", "gpu-1"]).await;
    assert!(page.expect(0).contains("the drain is over"), "{}", page.out);
    let history = server.cli(&["node", "history", "gpu-1"]).await;
    assert!(history.expect(0).contains("external"), "{}", history.out);
}
