//! `argosy sim validate`: scenario files, checked without playing them.

use super::given::{Configured, content, parsed, product};
use crate::failure::{Exit, Failure};
use crate::output::{clean, note, span};
use argosy_sim::scenario::Scenario;
use clap::Args;
use std::path::{Path, PathBuf};

/// Check scenario files without playing them.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit code 1 if something is wrong; every error has the file, the line, the column, the key and a way out.

Examples:
  argosy sim validate my-fleet.yaml
  argosy sim validate scenarios/a.yaml scenarios/b.yaml --config /etc/argosy/argosy.yaml")]
pub(super) struct Validate {
    /// The files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The server's configuration file that the scenarios are to be laid over.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// `argosy sim validate`
pub(super) fn run(args: &Validate) -> Result<Exit, Failure> {
    let configured = Configured { config: args.config.clone(), ..Configured::default() };
    let mut wrong = 0;
    for file in &args.files {
        match check(file, &configured) {
            Ok(scenario) => note(&praise(file, &scenario)),
            Err(failure) => {
                wrong += 1;
                note(&failure.to_string());
            }
        }
    }
    match wrong {
        0 => Ok(Exit::Ok),
        1 if args.files.len() == 1 => Ok(Exit::Failed),
        wrong => Err(Failure::failed(format!(
            "{wrong} of {} files are not scenarios that can be played",
            args.files.len()
        ))),
    }
}

fn check(file: &Path, configured: &Configured) -> Result<Scenario, Failure> {
    let name = file.display().to_string();
    let scenario = parsed(&content(file)?, &name)?;
    product(&name, &scenario, configured)?;
    Ok(scenario)
}

fn praise(file: &Path, scenario: &Scenario) -> String {
    let name = clean(&file.display().to_string());
    let nodes = match scenario.fleet.nodes.len() {
        0 => String::new(),
        nodes => format!(", {nodes} nodes"),
    };
    format!("{name} is fine: {}{nodes}, {}", clean(&scenario.name), span(scenario.duration))
}
