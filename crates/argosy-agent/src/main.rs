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
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Probe(args) => cmd::probe::run(args),
    }
}
