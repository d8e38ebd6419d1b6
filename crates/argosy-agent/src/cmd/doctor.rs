//! `argosy-agent doctor`: what the agent can and cannot see here, and why, with a way out for each.

mod look;

use super::Format;
use super::document;
use super::gpus::GpuArgs;
use crate::config::{Config, ConfigError};
use crate::gpu::child::Options;
use crate::host::Roots;
use argosy_term::{Paint, Screen, print};
use clap::Args as ClapArgs;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Say what the agent can and cannot see on this machine, and why.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "\
Exit code 0 if nothing fails; warnings are things that an agent can do without. Run it as the user that the agent
runs as: `sudo -u USER argosy-agent doctor`, or with systemd-run and the properties of the unit.

Examples:
  argosy-agent doctor
  argosy-agent doctor --server https://argosy.example.com -o json")]
pub struct Args {
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show them")]
    pub gpus: GpuArgs,
    /// The agent's configuration file.
    #[arg(long, value_name = "FILE", env = "ARGOSY_AGENT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The server that the agent is to talk to, instead of those of its configuration.
    #[arg(long, value_name = "URL")]
    pub server: Vec<String>,
    /// The agent's data directory, instead of that of its configuration.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The file that holds the agent's token, instead of that of its configuration.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// How it is.
    pub state: State,
    /// What was seen, in a sentence.
    pub seen: String,
    /// What to do about it; empty if nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub way_out: String,
}

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Ok,
    /// It is not here, and need not be.
    None,
    /// It does not work, and the agent does without.
    Warn,
    /// It does not work, and faults go unseen, or the agent cannot work.
    Fail,
}

impl Finding {
    fn new(what: &str, state: State, seen: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { what: what.to_owned(), state, seen: seen.into(), way_out: way_out.into() }
    }
}

/// Where to look, all of it replaceable for tests.
pub(crate) struct Setup {
    pub(crate) roots: Roots,
    pub(crate) logs: crate::log::Options,
    pub(crate) cloud: crate::identity::cloud::Options,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) token_in_environment: bool,
    pub(crate) library_path: Vec<PathBuf>,
    pub(crate) units: Vec<PathBuf>,
}

impl Setup {
    fn here() -> Self {
        let has = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let libraries = has("LD_LIBRARY_PATH");
        Self {
            roots: Roots::default(),
            logs: crate::log::Options::default(),
            cloud: crate::identity::cloud::Options::default(),
            credentials: has("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            token_in_environment: has("ARGOSY_TOKEN").is_some(),
            library_path: libraries.iter().flat_map(std::env::split_paths).collect(),
            units: ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"]
                .map(PathBuf::from)
                .to_vec(),
        }
    }
}

/// How long the driver may take for one GPU, as for the agent itself.
const GPU_MAX: Duration = Duration::from_secs(10);

/// `argosy-agent doctor`
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    debug_assert_eq!(GPU_MAX, Options::default().deadline, "a doctor waits as long as the agent");
    let config = Config::read(args.config.as_deref());
    let config = config.and_then(|config| config.with_own_environment());
    let findings = examine(&args, config, &Setup::here()).await?;
    let worst = findings.iter().map(|finding| finding.state).max();
    print(&match args.output {
        Format::Json => document(&serde_json::json!({ "schema": 1, "findings": findings })),
        Format::Text => page(&findings, &Screen::detect(None)),
    });
    Ok(if worst == Some(State::Fail) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

pub(crate) async fn examine(
    args: &Args,
    config: Result<Config, ConfigError>,
    setup: &Setup,
) -> anyhow::Result<Vec<Finding>> {
    let (found, config) = look::config(config, args.config.as_deref());
    let mut findings = vec![found];
    let mut gpus = args.gpus.clone();
    gpus.nvml_library = gpus.nvml_library.or(config.nvml_library.clone());
    findings.extend(look::gpus(gpus.open(GPU_MAX)?.gpu, &setup.roots).await);
    findings.push(look::cuda(setup, findings.iter().any(|finding| finding.what == "gpus")));
    findings.extend(look::logs(setup).await);
    findings.extend(look::host(&setup.roots));
    findings.push(look::data_dir(&args.data_dir.clone().unwrap_or_else(|| config.data_dir())));
    let servers = if args.server.is_empty() { &config.servers } else { &args.server };
    findings.extend(look::servers(servers).await);
    let token_file = args.token_file.as_deref().or(config.token_file.as_deref());
    findings.push(look::token(token_file, setup));
    findings.push(look::cloud(setup).await);
    findings.push(look::unit(setup));
    Ok(findings)
}

fn page(findings: &[Finding], screen: &Screen) -> String {
    let widest = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for Finding { what, state, seen, way_out } in findings {
        let (word, paint) = match state {
            State::Ok => ("ok  ", Paint::Good),
            State::None => ("-   ", Paint::Dim),
            State::Warn => ("warn", Paint::Busy),
            State::Fail => ("FAIL", Paint::Bad),
        };
        let mut lines = screen.paragraph(&format!("{word}  {what:widest$}  "), seen);
        lines = lines.replacen(word, &screen.paint(word, paint), 1);
        out.push_str(&lines);
        if !way_out.is_empty() {
            out.push_str(&screen.paragraph(&format!("      {:widest$}  → ", ""), way_out));
        }
    }
    let count = |wanted: State| findings.iter().filter(|finding| finding.state == wanted).count();
    let (fails, warns) = (count(State::Fail), count(State::Warn));
    out.push_str(&match (fails, warns) {
        (0, 0) => "\nEverything that an agent needs is here.\n".to_owned(),
        (0, warns) => format!("\nThe agent can work here; {warns} to look at.\n"),
        (fails, warns) => format!("\n{fails} failed, and {warns} to look at.\n"),
    });
    out
}

#[cfg(test)]
mod tests;
