//! `argosy up`: a whole fleet on this machine, in one command.

use super::server::{log, serve};
use crate::config::{Config, SimulatedCloud};
use crate::failure::{Exit, Failure};
use crate::output::{Paint, Screen, clean, note, print};
use argosy_api::client::{Client, ClientError, Collection, WriteOptions};
use argosy_api::resource::ResourceCreate;
use argosy_store::embedded::DATABASE_FILE;
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;

/// Run a fleet on this machine: server, simulated cloud, and something to look at.
#[derive(Args, Debug)]
#[command(after_help = "\
The first time it creates a few clusters and node pools; afterwards it continues where it was.
Ctrl-C stops everything. Remove the directory to start anew.

Examples:
  argosy up
  argosy up --data-dir /tmp/fleet --port 9000")]
pub(crate) struct Up {
    /// Where it is kept, with its log.
    #[arg(long, default_value = ".argosy", value_name = "DIR")]
    data_dir: PathBuf,
    /// The port on 127.0.0.1; if it is taken, the next free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

/// How many ports are tried. More in use means that something else is wrong.
const PORTS_MAX: u16 = 20;

/// `argosy up`
pub(super) fn run(up: &Up, screen: Screen) -> Result<Exit, Failure> {
    std::fs::create_dir_all(&up.data_dir).map_err(|error| {
        Failure::failed(format!("cannot make {}", up.data_dir.display())).why(error)
    })?;
    log::to_file(&up.data_dir.join("server.log"))?;
    let new = !up.data_dir.join(DATABASE_FILE).exists();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start").why(error))?;
    let result = runtime.block_on(async {
        let (listener, address) = bind(up.port).await?;
        let config = Config {
            listen: address.to_string(),
            data_dir: up.data_dir.clone(),
            simulated_cloud: SimulatedCloud { enabled: true, instant: false },
            ..Config::default()
        };
        serve::serve(&config, listener, async |address| {
            let server = format!("http://{address}");
            if new && let Err(error) = demonstrate(&server).await {
                note(&format!("the demonstration is not complete: {}", clean(&error.to_string())));
            }
            print(&welcome(&screen, up, address, nodes(&server).await));
            std::future::pending().await
        })
        .await
    });
    if result.is_ok() {
        note("\nstopped; `argosy up` continues where it was");
    }
    result
}

/// Listens on the port, or on the next that is free.
async fn bind(port: u16) -> Result<(TcpListener, SocketAddr), Failure> {
    let mut refused = None;
    for candidate in port..=port.saturating_add(PORTS_MAX) {
        match TcpListener::bind(("127.0.0.1", candidate)).await {
            Ok(listener) => {
                if candidate != port {
                    note(&format!("port {port} is in use; using {candidate}"));
                }
                let address = listener.local_addr();
                let address = address.map_err(|e| Failure::failed("no address").why(e))?;
                return Ok((listener, address));
            }
            Err(error) => refused = Some(error),
        }
    }
    let failure = Failure::failed(format!("no port from {port} on is free"));
    Err(refused.into_iter().fold(failure, Failure::why).fix("choose another with --port"))
}

/// Something to look at: clusters on two clouds, and a pool that asks for more than there is.
async fn demonstrate(server: &str) -> Result<(), ClientError> {
    let client = Client::new(server, None)?;
    let quota = json!({ "limit": 8 });
    client.send(Method::PUT, "/simulated-cloud/v1/quotas/aws/us-east-1/GPUS", Some(&quota)).await?;
    let clusters = [
        ("atlas", json!({ "provider": "gcp", "region": "us-east1" }), "ml"),
        ("borealis", json!({ "provider": "aws", "region": "us-east-1" }), "research"),
        ("comet", json!({ "provider": "gcp", "region": "europe-west4" }), "ml"),
    ];
    for (name, spec, team) in clusters {
        create(&client, Collection::Clusters, name, spec, team).await?;
    }
    let pools = [
        ("atlas", "workers", json!({ "machineType": "n1-standard-4", "nodeCount": 3 }), "ml"),
        ("atlas", "trainers", json!({ "machineType": "a2-highgpu-8g", "nodeCount": 2 }), "ml"),
        // Sixteen GPUs, where the quota has eight.
        ("borealis", "gpus", json!({ "machineType": "p4d.24xlarge", "nodeCount": 2 }), "research"),
    ];
    for (cluster, name, spec, team) in pools {
        create(&client, Collection::NodePools(cluster), name, spec, team).await?;
    }
    Ok(())
}

async fn create(
    client: &Client,
    of: Collection<'_>,
    name: &str,
    spec: Value,
    team: &str,
) -> Result<(), ClientError> {
    let body = ResourceCreate {
        kind: None,
        name: name.to_owned(),
        spec: spec.as_object().cloned().unwrap_or_default(),
        labels: [("team".to_owned(), team.to_owned())].into(),
    };
    match client.create(of, &body, &WriteOptions::default()).await {
        // Left by a start that was interrupted.
        Err(error) if error.status() == Some(409) => Ok(()),
        result => result.map(drop),
    }
}

/// How many nodes have registered; none if nobody can say.
async fn nodes(server: &str) -> usize {
    let Ok(client) = Client::new(server, None) else { return 0 };
    client.nodes(&[("size", "1")]).await.map_or(0, |list| list.total)
}

/// Where it is, and a few things to try.
fn welcome(screen: &Screen, up: &Up, address: SocketAddr, nodes: usize) -> String {
    let server = format!("http://{address}");
    let mut export = String::new();
    if let Some(dir) = unlisted_dir() {
        export.push_str(&format!("\n  export PATH={}:$PATH", dir.display()));
    }
    if address.port() != 8080 {
        export.push_str(&format!("\n  export ARGOSY_SERVER={server}"));
    }
    if !export.is_empty() {
        export.push('\n');
    }
    let machines = match nodes {
        0 => String::new(),
        count => format!("  {:<49} what the {count} nodes are doing\n", "argosy top"),
    };
    format!(
        "{} on {server}, kept in {}, log in {}
API reference: {server}/docs

Try, in another terminal:
{export}
  argosy cluster list --watch                       clusters becoming Ready
  argosy nodepool statuses borealis/gpus            a pool that asks for more GPUs than there are
  argosy cloud quota set aws us-east-1 GPUS 64      give it more, and it becomes Ready by itself
  argosy cluster create demo --provider gcp --region us-west1 --wait
  argosy audit list                                 everything that was done, and by whom
{machines}
Ctrl-C stops everything.
",
        screen.paint("Argosy is running", Paint::Good),
        up.data_dir.display(),
        up.data_dir.join("server.log").display(),
    )
}

/// Where this program is, if a shell would not find it: then the commands below need help.
fn unlisted_dir() -> Option<PathBuf> {
    let dir = std::env::current_exe().ok()?.parent()?.to_path_buf();
    let listed = std::env::var_os("PATH")?;
    std::env::split_paths(&listed).all(|known| !known.join("argosy").exists()).then_some(dir)
}
