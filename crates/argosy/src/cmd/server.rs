//! `argosy server`: what it understands, and the one place where its parts are put together.

mod clouds;
mod declared;
mod hosts;
pub(super) mod log;

pub(super) mod serve;

use crate::config::{LogFormat, LogLevel, Override, Profile, load};
use crate::failure::{Exit, Failure};
use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::net::TcpListener;
use tracing::info;

/// Run the control plane.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each flag has an environment variable; a flag wins over it, and it wins over the file.
SIGTERM and SIGINT end the server after the requests it is working on. SIGHUP reads the tokens again.

Examples:
  argosy server
  argosy server --listen 127.0.0.1:8080 --data-dir /var/lib/argosy --simulated-cloud
  argosy server --config /etc/argosy/argosy.yaml --log-format json
  argosy server --store postgres://argosy@db/argosy")]
pub(crate) struct Args {
    /// The configuration file; see `argosy config docs`.
    #[arg(long, env = "ARGOSY_CONFIG", hide_env_values = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1:8080].
    #[arg(long, env = "ARGOSY_LISTEN", hide_env_values = true, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Where the embedded store keeps its files [default: argosy-data].
    #[arg(long, env = "ARGOSY_DATA_DIR", hide_env_values = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// embedded, memory:, or postgres://USER@HOST/DATABASE [default: embedded].
    #[arg(long, env = "ARGOSY_STORE", hide_env_values = true, value_name = "URL")]
    store: Option<String>,
    /// Let built-in adapters work on a cloud that is only simulated; =instant without latencies.
    #[arg(long, env = "ARGOSY_SIMULATED_CLOUD", hide_env_values = true, value_name = "HOW", value_enum,
        num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    simulated_cloud: Option<Simulated>,
    /// The dialect of clients that do not ask for one [default: full].
    #[arg(
        long,
        env = "ARGOSY_PROFILE",
        hide_env_values = true,
        value_name = "PROFILE",
        value_enum
    )]
    profile: Option<Profile>,
    /// Let everybody in, on any address. For networks you trust completely.
    #[arg(long, env = "ARGOSY_AUTH_NONE_ANYWHERE", hide_env_values = true)]
    auth_none_anywhere: bool,
    /// How log lines look [default: text].
    #[arg(
        long,
        env = "ARGOSY_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORMAT",
        value_enum
    )]
    log_format: Option<LogFormat>,
    /// The least important log lines that are written [default: info].
    #[arg(
        long,
        env = "ARGOSY_LOG_LEVEL",
        hide_env_values = true,
        value_name = "LEVEL",
        value_enum
    )]
    log_level: Option<LogLevel>,
}

/// Whether there is a simulated cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Simulated {
    /// With latencies like a real cloud's, but shorter.
    #[value(alias = "true")]
    On,
    /// Everything happens at once.
    Instant,
    /// There is none.
    #[value(alias = "false")]
    Off,
}

/// Each flag, its environment variable and its key, for the documentation.
pub(crate) const FLAGS: &[(&str, &str, &str)] = &[
    ("--listen", "ARGOSY_LISTEN", "listen"),
    ("--data-dir", "ARGOSY_DATA_DIR", "data_dir"),
    ("--store", "ARGOSY_STORE", "store"),
    ("--simulated-cloud", "ARGOSY_SIMULATED_CLOUD", "simulated_cloud"),
    ("--profile", "ARGOSY_PROFILE", "profile"),
    ("--auth-none-anywhere", "ARGOSY_AUTH_NONE_ANYWHERE", "auth.none_anywhere"),
    ("--log-format", "ARGOSY_LOG_FORMAT", "log.format"),
    ("--log-level", "ARGOSY_LOG_LEVEL", "log.level"),
];

impl Args {
    /// What flags and environment set, and which of the two it was.
    pub(super) fn overrides(&self, matches: Option<&ArgMatches>) -> Vec<Override> {
        let simulated = self.simulated_cloud;
        let values: [(&'static str, &'static str, Option<Value>); 9] = [
            ("listen", "listen", self.listen.as_ref().map(|v| json!(v))),
            ("data_dir", "data_dir", self.data_dir.as_ref().map(|v| json!(v))),
            ("store", "store", self.store.as_ref().map(|v| json!(v))),
            (
                "simulated_cloud",
                "simulated_cloud.enabled",
                simulated.map(|how| json!(how != Simulated::Off)),
            ),
            (
                "simulated_cloud",
                "simulated_cloud.instant",
                simulated.map(|how| json!(how == Simulated::Instant)),
            ),
            ("profile", "profile", self.profile.map(|v| json!(v))),
            (
                "auth_none_anywhere",
                "auth.none_anywhere",
                self.auth_none_anywhere.then_some(Value::Bool(true)),
            ),
            ("log_format", "log.format", self.log_format.map(|v| json!(v))),
            ("log_level", "log.level", self.log_level.map(|v| json!(v))),
        ];
        let set = values.into_iter().filter_map(|(id, key, value)| Some((id, key, value?)));
        set.map(|(id, key, value)| {
            let from = matches.and_then(|matches| matches.value_source(id));
            let origin = match from {
                Some(ValueSource::EnvVariable) => format!("env ARGOSY_{}", id.to_uppercase()),
                Some(_) | None => format!("flag --{}", id.replace('_', "-")),
            };
            Override { key, value, origin }
        })
        .collect()
    }
}

/// `argosy server`
pub(super) fn run(args: &Args, matches: Option<&ArgMatches>) -> Result<Exit, Failure> {
    let config = load(args.config.as_deref(), args.overrides(matches))?.config;
    log::to_stderr(&config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start").why(error))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&config.listen).await.map_err(|error| {
            Failure::failed(format!("cannot listen on {}", config.listen))
                .why(error)
                .fix("choose another address with --listen")
        })?;
        serve::serve(&config, listener, None, async |address| {
            info!(%address, version = env!("CARGO_PKG_VERSION"), "listening");
            std::future::pending().await
        })
        .await
    })
}

#[cfg(test)]
mod tests;
