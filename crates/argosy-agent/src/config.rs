//! The agent's configuration: file, environment and flags, checked as a whole.
//!
//! Later wins: the default, the file, the environment, a flag. A key that nobody knows is refused, with
//! its name: a misspelt one that is silently the default is found out at the worst time.

use crate::command::hook::Hook;
use crate::link::Token;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the file is, if nobody says.
pub const FILE: &str = "/etc/argosy/agent.yaml";
/// Where the data is, if nobody says.
pub const DATA_DIR: &str = "/var/lib/argosy-agent";
/// How long a hook may take, if nobody says.
const HOOK_SECONDS: u64 = 60;

/// The configuration, as it is written. Every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The addresses of the control plane.
    pub servers: Vec<String>,
    /// The node; the host name if it is left out.
    pub node_id: Option<String>,
    /// What changes with each start of the machine, where the machine is a process and not the host it
    /// runs on; the kernel's if it is left out.
    pub boot_id: Option<String>,
    /// The file with the credential.
    pub token_file: Option<PathBuf>,
    /// Certificates to check servers with, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Where spool, journal and duty file are.
    pub data_dir: Option<PathBuf>,
    /// `auto`, `none`, or `fake:8xH100` for tests.
    pub gpu: Option<String>,
    /// NVML's library, if it is not where the loader looks.
    pub nvml_library: Option<PathBuf>,
    /// The cloud.
    pub provider: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// What the machine is called there.
    pub instance_type: Option<String>,
    /// The pool the node belongs to.
    pub pool: Option<String>,
    /// What people filter by.
    pub labels: BTreeMap<String, String>,
    /// A program that is told when the duty changes, with `cordon`, `uncordon`, `drain` or `terminate`.
    pub hook: Option<PathBuf>,
    /// How many seconds it may take, where a command has no deadline.
    pub hook_seconds: Option<u64>,
    /// Whether TERMINATE switches the machine off, too.
    pub power_off: bool,
    /// How many GPUs must be there; as many as were ever seen if it is left out.
    pub expected_gpus: Option<u32>,
    /// Where the kernel's lines are read: `kmsg`, `journald`, a file of syslog, or `program:` and a file
    /// of one program; the first that can be read if it is left out.
    pub logs: Vec<String>,
    /// Whether faults may be injected into this agent through its data directory.
    pub allow_inject: bool,
    /// Where to serve Prometheus metrics, like `127.0.0.1:9400`; nowhere if it is left out.
    pub metrics: Option<String>,
    /// Whether the log is JSON.
    pub log_json: bool,
}

/// What is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, String),
    /// A file cannot be understood.
    #[error("{0}: {1}")]
    Malformed(PathBuf, String),
    /// A variable of the environment cannot be understood.
    #[error("{name}: {why}")]
    Variable {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// Nothing says where the control plane is.
    #[error(
        "no server is named: give --server URL, set ARGOSY_AGENT_SERVER, or write `servers` in \
         {FILE}"
    )]
    NoServer,
    /// Nothing says which node this is.
    #[error("no node is named, and the machine has no host name: give --node-id ID")]
    NoNode,
}

/// The prefix of our variables.
const PREFIX: &str = "ARGOSY_AGENT_";

impl Config {
    /// Understands a file.
    ///
    /// # Errors
    /// With the line, and the key that nobody knows.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let malformed = |error: String| ConfigError::Malformed(path.to_owned(), error);
        serde_saphyr::from_str(text).map_err(|error| malformed(error.to_string()))
    }

    /// Reads a file; the one of `FILE` if none is named, and nothing if that is not there.
    ///
    /// # Errors
    /// As `parse`, or that it cannot be read.
    pub fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let named = path.is_some();
        let path = path.unwrap_or(Path::new(FILE));
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => {
                Ok(Self::default())
            }
            Err(error) => Err(ConfigError::Unreadable(path.to_owned(), error.to_string())),
        }
    }

    /// The same, with what the environment says in its place.
    ///
    /// # Errors
    /// For a variable with our prefix that nobody knows, or whose value is not one.
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        for (name, value) in variables {
            let Some(key) = name.strip_prefix(PREFIX) else { continue };
            let bad = |why: &str| ConfigError::Variable { name: name.clone(), why: why.to_owned() };
            let boolean = || match value.as_str() {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err(bad("must be `true` or `false`")),
            };
            let text = Some(value.clone());
            let path = || Some(PathBuf::from(&value));
            match key {
                "SERVER" | "SERVERS" => self.servers = list(&value),
                "NODE_ID" => self.node_id = text,
                "BOOT_ID" => self.boot_id = text,
                "TOKEN_FILE" => self.token_file = path(),
                "CA_FILE" => self.ca_file = path(),
                "DATA_DIR" => self.data_dir = path(),
                "GPU" => self.gpu = text,
                "NVML_LIBRARY" => self.nvml_library = path(),
                "PROVIDER" => self.provider = text,
                "REGION" => self.region = text,
                "ZONE" => self.zone = text,
                "INSTANCE_TYPE" => self.instance_type = text,
                "POOL" => self.pool = text,
                "LABELS" => self.labels.extend(labels(&value).map_err(|why| bad(&why))?),
                "HOOK" => self.hook = path(),
                "HOOK_SECONDS" => {
                    let seconds = value.parse().map_err(|_| bad("must be a number of seconds"))?;
                    self.hook_seconds = Some(seconds);
                }
                "POWER_OFF" => self.power_off = boolean()?,
                "EXPECTED_GPUS" => {
                    let count = value.parse().map_err(|_| bad("must be a number of GPUs"))?;
                    self.expected_gpus = Some(count);
                }
                "LOGS" => self.logs = list(&value),
                "ALLOW_INJECT" => self.allow_inject = boolean()?,
                "METRICS" => self.metrics = text,
                "LOG_JSON" => self.log_json = boolean()?,
                // Read by the command line, before there is a configuration.
                "CONFIG" => {}
                _ => return Err(bad("is not a variable of the agent")),
            }
        }
        Ok(self)
    }

    /// The same, with what our own environment says. Only variables with our prefix are looked at: what others put
    /// there may be no text at all.
    ///
    /// # Errors
    /// As `with_environment`.
    pub fn with_own_environment(self) -> Result<Self, ConfigError> {
        self.with_variables(std::env::vars_os())
    }

    fn with_variables(
        self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let ours = variables.into_iter().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
            Some(match value.into_string() {
                Ok(value) => Ok((name, value)),
                Err(_) => Err(ConfigError::Variable { name, why: "is not UTF-8".to_owned() }),
            })
        });
        let ours = ours.collect::<Result<Vec<_>, _>>()?;
        self.with_environment(ours)
    }

    /// Where the data is.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| PathBuf::from(DATA_DIR))
    }

    /// The hook, if there is one.
    pub fn hook(&self) -> Option<Hook> {
        let time_max = Duration::from_secs(self.hook_seconds.unwrap_or(HOOK_SECONDS).max(1));
        self.hook.clone().map(|program| Hook { program, time_max })
    }

    /// The credential: of the file, else of a systemd credential `token`, else `ARGOSY_TOKEN`.
    pub fn token(&self, variable: impl Fn(&str) -> Option<String>) -> Token {
        if let Some(path) = &self.token_file {
            return Token::File(path.clone());
        }
        let credentials = variable("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        if let Some(path) = credentials.map(|dir| dir.join("token")).filter(|path| path.exists()) {
            return Token::File(path);
        }
        match variable("ARGOSY_TOKEN").filter(|token| !token.is_empty()) {
            Some(token) => Token::Value(token),
            None => Token::None,
        }
    }
}

fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Labels as `rack=r7,team=alpha`.
///
/// # Errors
/// A sentence about the one that is none.
pub fn labels(text: &str) -> Result<Vec<(String, String)>, String> {
    let one = |part: String| match part.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{part}` is not a label: it must be like rack=r7")),
    };
    list(text).into_iter().map(one).collect()
}

#[cfg(test)]
mod tests;
