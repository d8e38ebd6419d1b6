//! A program with an agent inside that runs a diagnostic of its own.
//!
//! `cargo run -p argosy-agent --example custom_diagnostic -- http://localhost:8080 gpu-1`, and then
//! `argosy node diagnose gpu-1 --test quick` runs `Files` instead of ours.

use argosy_agent::Builder;
use argosy_agent::command::{Failure, Handler, Order, Outcome, Progress};
use async_trait::async_trait;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Looks whether files that our jobs need can be read: a file system that is not mounted is the
/// commonest reason why a healthy machine fails them.
pub struct Files {
    /// Which.
    pub paths: Vec<PathBuf>,
}

#[async_trait]
impl Handler for Files {
    async fn handle(&self, _order: &Order, progress: &Progress) -> Result<Outcome, Failure> {
        if self.paths.is_empty() {
            return Err(Failure("no files were named, so nothing can be said".to_owned()));
        }
        let mut missing = Vec::new();
        for (at, path) in self.paths.iter().enumerate() {
            let percent = u8::try_from(100 * at / self.paths.len()).unwrap_or(100);
            progress.tell(percent, format!("reading {}", path.display()));
            if tokio::fs::metadata(path).await.is_err() {
                missing.push(path.display().to_string());
            }
        }
        let passed = missing.is_empty();
        let message = if passed { "every file is there" } else { "files are missing" };
        let result = Some(json!({ "passed": passed, "missing": missing }));
        Ok(Outcome { result, ..Outcome::new(message) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().ok_or("usage: custom_diagnostic SERVER NODE")?;
    let node = arguments.next().ok_or("usage: custom_diagnostic SERVER NODE")?;
    let files = Files { paths: vec![PathBuf::from("/etc/hostname")] };
    let data_dir = std::env::temp_dir().join(format!("custom-diagnostic-{node}"));
    let agent = Builder::new(node)
        .server(server)
        .data_dir(data_dir)
        .label("example", "true")
        .diagnostic("quick", Arc::new(files));
    let stop = async { _ = tokio::signal::ctrl_c().await };
    agent.run(stop).await?;
    Ok(())
}
