//! The binary: `argosy server`, `argosy up`, and every client command.

mod cmd;

mod config;

mod context;

mod dashboard;

mod failure;

mod output;

mod policy_file;

mod session;

mod view;

use clap::FromArgMatches;
use cmd::Cli;
use failure::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = match cmd::tree().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are answers; anything else is a wrong command line.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            // A reader that went away needs no text.
            let _ = error.print();
            return ExitCode::from(exit.code());
        }
    };
    let result = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cmd::run(cli, &matches),
        Err(error) => error.exit(),
    };
    let exit = result.unwrap_or_else(|failure| {
        output::note(&failure.to_string());
        failure.exit
    });
    ExitCode::from(exit.code())
}
