//! `argosy up`: a whole fleet on this machine, in one command.

pub(super) mod fault;

mod fleet;

pub(super) mod stage;

use super::server::{log, serve};
use crate::failure::{Exit, Failure};
use crate::output::{Paint, Screen, clean, note, print};
use argosy_api::client::Client;
use argosy_store::embedded::DATABASE_FILE;
use clap::Args;
use stage::Stage;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Run a fleet on this machine: server, dashboard, simulated cloud, agents, and faults to watch.
#[derive(Args, Debug)]
#[command(after_help = "\
The first time it makes three clusters with some hundred simulated nodes, and three real agents with made-up
GPUs; afterwards it continues where it was. A fault comes by itself every 20 to 40 seconds.
Ctrl-C stops everything. Remove the directory to start anew.

Examples:
  argosy up
  argosy up --data-dir /tmp/fleet --port 9000
  argosy up --no-faults                              only what `argosy demo inject` does")]
pub(crate) struct Up {
    /// Where it is kept, with its log.
    #[arg(long, default_value = ".argosy", value_name = "DIR")]
    data_dir: PathBuf,
    /// The port on 127.0.0.1; if it is taken, the next free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// How many simulated nodes the fleet is made with.
    #[arg(long, default_value_t = fleet::NODES_MAX, value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(i64::from(fleet::NODES_MIN)..=i64::from(fleet::NODES_MAX)))]
    nodes: u16,
    /// Let no fault come by itself.
    #[arg(long, visible_alias = "quiet-fleet")]
    no_faults: bool,
    /// What the faults are chosen by: the same number, the same faults.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
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
    let with_agents = fleet::agent().is_some();
    if !with_agents {
        note(
            "argosy-agent is not beside this program: the fleet is all simulated (`make build` makes both)",
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start").why(error))?;
    let result = runtime.block_on(async {
        let (listener, address) = bind(up.port).await?;
        let config = fleet::config(address, &up.data_dir, with_agents);
        let server = format!("http://{address}");
        let client = Client::new(&server, None)
            .map_err(|error| Failure::failed("cannot set up the HTTP client").why(error))?;
        let stage = Arc::new(Stage::open(client.clone(), server, &up.data_dir, up.seed));
        let door = (stage::PREFIX.to_owned(), stage::router(stage.clone()));
        serve::serve(&config, listener, Some(door), async |address| {
            let mut made = fleet::slow_down(&client).await;
            if new && made.is_ok() {
                made = fleet::make(&client, up.nodes, with_agents).await;
            }
            if let Err(error) = made {
                note(&format!("the demonstration is not complete: {}", clean(&error.to_string())));
            }
            print(&welcome(&screen, up, address));
            if !up.no_faults {
                stage.play().await;
            }
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

/// Where it is, and five things to try. It fits a terminal of 80 by 24.
fn welcome(screen: &Screen, up: &Up, address: SocketAddr) -> String {
    let server = format!("http://{address}");
    let mut export = String::new();
    if let Some(dir) = unlisted_dir() {
        export.push_str(&format!("  export PATH={}:$PATH\n", dir.display()));
    }
    if address.port() != 8080 {
        export.push_str(&format!("  export ARGOSY_SERVER={server}\n"));
    }
    if !export.is_empty() {
        export.insert_str(0, "In another terminal, first:\n");
        export.push('\n');
    }
    let faults = match up.no_faults {
        true => "No fault comes by itself (--no-faults).",
        false => "A fault comes by itself every 20 to 40 seconds.",
    };
    format!(
        "
{}  {}
API        {server}/docs
Kept in    {}  (log: server.log in it)

{export}Five things to try:
  argosy top                             the fleet, live
  argosy demo inject xid-79              break a GPU; it says where to watch
  argosy why node/NAME                   why that node is as it is, step by step
  argosy nodepool statuses comet/rented  a pool that wants more than its quota
  argosy cloud quota set lambda us-south-1 GPUS 999     and it heals by itself

{faults} Ctrl-C stops everything.
",
        screen.paint("Dashboard", Paint::Plain),
        screen.paint(&format!("{server}/ui/"), Paint::Good),
        up.data_dir.display(),
    )
}

/// Where this program is, if a shell would not find it: then the commands below need help.
fn unlisted_dir() -> Option<PathBuf> {
    let dir = std::env::current_exe().ok()?.parent()?.to_path_buf();
    let listed = std::env::var_os("PATH")?;
    std::env::split_paths(&listed).all(|known| !known.join("argosy").exists()).then_some(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        up: Up,
    }

    #[test]
    fn the_welcome_fits_a_small_terminal_and_names_the_dashboard_first() {
        for args in [vec!["up"], vec!["up", "--no-faults"]] {
            let up = Alone::parse_from(args).up;
            let text = welcome(&Screen::plain(), &up, "127.0.0.1:18080".parse().unwrap());
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() <= 24, "{} lines", lines.len());
            let own = unlisted_dir().is_some();
            for line in lines.iter().filter(|line| !(own && line.contains("PATH="))) {
                assert!(line.chars().count() <= 80, "{line}");
            }
            let first = lines.iter().find(|line| !line.is_empty());
            assert_eq!(first, Some(&"Dashboard  http://127.0.0.1:18080/ui/"));
            assert!(!text.contains('\u{1b}'));
            let tries = lines.iter().skip_while(|line| !line.starts_with("Five")).skip(1);
            assert_eq!(tries.take_while(|line| line.starts_with("  argosy")).count(), 5);
        }
    }
}
