//! `argosy-agent`, the program on each GPU machine.

use argosy_agent::cmd::{Cli, Command, probe};
use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;

/// How long threads that are in the middle of something get when the process ends.
const SHUTDOWN_MAX: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = match Cli::parse() {
        // The child that asks the driver: it waits for nothing else, and is to be small.
        Cli { command: Command::Probe(args) } => return probe::run(args),
        cli => cli,
    };
    // One thread: an agent waits nearly all the time, and each thread costs memory.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(cli.run());
            // A disk or a driver that hangs keeps a thread, and must not keep us.
            runtime.shutdown_timeout(SHUTDOWN_MAX);
            ended
        }
        Err(error) => Err(error.into()),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
