//! The command line of `argosy-agent`: one file for each command.

pub mod diagnose;
pub mod doctor;
pub mod gpus;
pub mod inject;
pub mod probe;
pub mod run;
pub mod scan;
pub mod watch;

use clap::ValueEnum;
use serde::Serialize;
use std::process::ExitCode;

/// The agent of a GPU machine: says how it is, and does what the control plane asks.
#[derive(Debug, clap::Parser)]
#[command(name = "argosy-agent", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Runs the agent until it is told to stop.
    Run(Box<run::Args>),
    /// Says how this machine is, without any server.
    Scan(scan::Args),
    /// Shows the GPUs of this machine, live.
    Watch(watch::Args),
    /// Tests the GPUs of this machine.
    Diagnose(diagnose::Args),
    /// Says what can be seen here, what cannot, and why.
    Doctor(doctor::Args),
    /// Makes a running agent believe that something happened.
    Inject(inject::Args),
    /// Asks the driver; started by the agent, not by people.
    #[command(hide = true)]
    Probe(probe::Args),
}

impl Cli {
    /// Does what was asked for.
    ///
    /// # Errors
    /// A sentence for people.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => run::run(*args).await,
            Command::Scan(args) => scan::run(args).await,
            Command::Watch(args) => watch::run(args).await,
            Command::Diagnose(args) => diagnose::run(args).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Inject(args) => inject::run(args),
            Command::Probe(args) => Ok(probe::run(args)),
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// A value as pretty JSON, on whose text no terminal acts.
fn document(value: &impl Serialize) -> String {
    argosy_term::escape(&serde_json::to_string_pretty(value).unwrap_or_default(), false)
}
