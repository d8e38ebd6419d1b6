//! `make bench`: what the packaged program does in how long, on both stores, with the targets beside it.
//!
//! Starts the release build as a process of its own and asks it over HTTP, from one thread. What a
//! newcomer gets wrong: client, server and PostgreSQL share the machine's cores, so these figures
//! are what all three do together.

mod agent;
mod figures;
mod fleet;
mod http;
mod machines;
mod policy;
mod server;
mod wire;
mod work;

use agent::AgentSizes;
use anyhow::{Context, Result, ensure};
use argosy_scaleout::testing::TestPostgres;
use clap::{Parser, ValueEnum};
use figures::Figures;
use fleet::FleetSizes;
use machines::MachineSizes;
use server::Home;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use work::Sizes;

#[derive(Parser)]
#[command(about = "Measures the packaged programs, on both stores")]
struct Args {
    /// Smaller numbers, in less than a minute
    #[arg(long)]
    quick: bool,
    /// How to print what was measured
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Only this store
    #[arg(long, value_enum)]
    store: Option<Kind>,
    /// How many clusters to load, instead of what the mode says
    #[arg(long)]
    clusters: Option<usize>,
    /// Only this part
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// The program to measure, instead of the one built beside this one
    #[arg(long)]
    program: Option<PathBuf>,
    /// Only hold many copies of this document, and say how large each is
    #[arg(long, hide = true)]
    hold: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Embedded,
    Postgres,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Clusters and node pools, over REST
    Clusters,
    /// Registrations, heartbeats, reports and lists
    Nodes,
    /// Streams, a mass failure and a mass reconnect
    Storms,
    /// The agent on its machine
    Agent,
    /// Pools of machines on the simulated cloud
    Machines,
}

/// The time, of which a measurement is made.
#[expect(clippy::disallowed_methods, reason = "a stopwatch that is injected measures nothing")]
fn now() -> Instant {
    Instant::now()
}

// One thread: the client takes at most one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(document) = &args.hold {
        println!("{}", fleet::hold(document)?);
        return Ok(());
    }
    let program = match args.program {
        Some(program) => program,
        None => beside()?,
    };
    ensure_packaged(&program)?;
    let mut sizes = if args.quick { Sizes::QUICK } else { Sizes::FULL };
    let fleets = if args.quick { FleetSizes::QUICK } else { FleetSizes::FULL };
    sizes.clusters = args.clusters.unwrap_or(sizes.clusters);
    let kinds = args.store.map_or(vec![Kind::Embedded, Kind::Postgres], |kind| vec![kind]);

    let began = now();
    let mut columns = Vec::new();
    for kind in kinds {
        let name = match kind {
            Kind::Embedded => "embedded",
            Kind::Postgres => "PostgreSQL",
        };
        // With fsync: what it acknowledges it keeps, as the embedded store does.
        let postgres = (kind == Kind::Postgres).then(TestPostgres::start);
        let home = async |what: &str| {
            let store = match &postgres {
                Some(postgres) => Some(postgres.database().await),
                None => None,
            };
            let dir = format!("argosy-bench-{}-{what}", std::process::id());
            Home::new(std::env::temp_dir().join(dir), store)
        };
        let mut figures = Figures::default();
        let wanted = |part| args.only.is_none_or(|only| only == part);
        if wanted(Part::Clusters) {
            work::creates(&program, &home("creates").await?, &sizes, &mut figures).await?;
            work::clusters(&program, &home("clusters").await?, &sizes, &mut figures).await?;
        }
        if wanted(Part::Agent) {
            let sizes = if args.quick { AgentSizes::QUICK } else { AgentSizes::FULL };
            agent::agent(&program, &home("agent").await?, &sizes, &mut figures).await?;
        }
        if wanted(Part::Machines) {
            let sizes = if args.quick { MachineSizes::QUICK } else { MachineSizes::FULL };
            machines::pool(&program, &home("machines").await?, &sizes, &mut figures).await?;
            machines::autoscaler(&sizes, &mut figures)?;
            machines::sweep(&sizes, &mut figures)?;
        }
        if wanted(Part::Storms) {
            fleet::storms(&program, &home("storms").await?, &fleets, &mut figures).await?;
        }
        if wanted(Part::Nodes) {
            fleet::beats(&program, &home("beats").await?, &fleets, &mut figures).await?;
            fleet::lists(&program, &home("lists").await?, &fleets, &mut figures).await?;
            policy::bench_policy(&mut figures)?;
        }
        columns.push((name, figures));
    }
    match args.output {
        Output::Table => figures::print_table(&columns, &sizes, began.elapsed()),
        Output::Json => figures::print_json(&columns, &sizes, began.elapsed()),
    }
    Ok(())
}

/// Refuses a program that was built to be tried or tested: its figures would be nobody's. One that does not say how it
/// was built is of a time when all were built alike.
fn ensure_packaged(program: &Path) -> Result<()> {
    let output = Command::new(program).arg("version").output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let profile = text.lines().find_map(|line| line.strip_prefix("profile: "));
    let name = profile.map(|line| line.split(' ').next().unwrap_or_default());
    ensure!(
        name.is_none_or(|name| name == "release"),
        "{} is built with profile {}; the packaged program is measured: `make build`",
        program.display(),
        name.unwrap_or_default()
    );
    Ok(())
}

/// `target/release/argosy`, next to `target/release/examples/bench`.
fn beside() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let dir = own.ancestors().nth(2).context("an example is two directories down")?;
    Ok(dir.join("argosy"))
}
