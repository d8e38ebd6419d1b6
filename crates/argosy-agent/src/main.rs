//! `argosy-agent`, the program on each GPU machine.

use argosy_agent::cmd;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "argosy-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Asks the driver; started by the agent, not by people.
    #[command(hide = true)]
    Probe(cmd::probe::Args),
    /// Tests the GPUs of this machine.
    Diagnose(cmd::diagnose::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Probe(args) => cmd::probe::run(args),
        Command::Diagnose(args) => wait(cmd::diagnose::run(args)),
    }
}

/// Waits for a command that waits itself.
fn wait(command: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let ended = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(command));
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
