//! `argosy-agent inject`: Simulates a finding in a running agent.

use crate::config::DATA_DIR;
use crate::gpu::fake::injection::Injection;
use crate::inject::{SOCKET, send};
use argosy_term::print;
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// Simulate a finding in a running agent.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "\
The agent must have been started with `run --allow-inject`. It reports the finding to its server, which may cordon
the node or replace it, as it would for a real one. Made-up GPUs break; on real ones no reading is changed, and the
event carries injected=true.

Examples:
  argosy-agent inject --yes-inject-a-fault xid:79 --gpu 3
  argosy-agent inject --yes-inject-a-fault temperature:96 --gpu 0
  argosy-agent inject --yes-inject-a-fault heal")]
pub struct Args {
    /// What: xid:CODE, lost, missing, ecc-corrected:N, ecc-uncorrected:N, row-remap-pending, row-remap-failed,
    /// temperature:C, throttle:REASON, nvlink-down:N, nvlink-errors:N, pcie-replays:N, pcie-width:N,
    /// recovery:ACTION, hang, driver-error:CODE, process:PID, mig:N, line:TEXT, heal.
    #[arg(value_name = "FAULT", required = true)]
    pub fault: Vec<String>,
    /// On which GPU, by its number.
    #[arg(long, value_name = "INDEX")]
    pub gpu: Option<u32>,
    /// That you know what you do: a server may act on it.
    #[arg(long)]
    pub yes_inject_a_fault: bool,
    /// The data directory of the agent.
    #[arg(long, value_name = "DIR", env = "ARGOSY_AGENT_DATA_DIR", default_value = DATA_DIR)]
    pub data_dir: PathBuf,
}

/// `argosy-agent inject`
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let injection = injection(&args)?;
    if !args.yes_inject_a_fault {
        eprintln!(
            "error: `{injection}` was not injected: a server may cordon or replace this node because of it. Add --yes-inject-a-fault if that is what you want."
        );
        return Ok(ExitCode::from(2));
    }
    send(&args.data_dir.join(SOCKET), &injection)?;
    print(&format!("injected {injection}\n"));
    Ok(ExitCode::SUCCESS)
}

fn injection(args: &Args) -> anyhow::Result<Injection> {
    let mut words = args.fault.join(" ");
    let is_line = words.trim_start().starts_with("line:");
    match args.gpu {
        Some(_) if is_line => {
            anyhow::bail!("a line says itself which GPU it is about: leave --gpu out")
        }
        Some(gpu) => words.push_str(&format!(" gpu:{gpu}")),
        None => {}
    }
    Ok(Injection::from_str(&words)?)
}

#[cfg(test)]
mod tests;
