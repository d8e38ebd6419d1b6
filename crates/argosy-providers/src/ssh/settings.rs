//! Which hosts there are, how they are entered, and what cannot be right about them.

use crate::boot::{AgentSource, Boot, BootError};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Which hosts there are and how they are entered.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// What all of them say of where they are.
    pub region: String,
    /// The private key, without a passphrase or with an agent that knows it.
    pub key_file: PathBuf,
    /// The keys of the hosts. A host that shows another is not entered.
    pub known_hosts: PathBuf,
    /// Whether what changes a host is done through `sudo -n /bin/sh`; else whoever enters must be root.
    pub sudo: bool,
    /// The program: `ssh`.
    pub ssh: PathBuf,
    /// Its configuration file, for jump hosts and the like. What is said here wins.
    pub ssh_config: Option<PathBuf>,
    /// Where it is remembered what hosts said: a directory of our own.
    pub state: PathBuf,
    /// How a host gets its agent.
    pub boot: Boot,
    /// Before every path on a host, for hosts that are not whole machines; nothing otherwise.
    pub root: String,
}

/// A machine that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// What people call it.
    pub name: String,
    /// Where it is entered: a name or an IP address.
    pub address: String,
    /// At which port.
    pub port: u16,
    /// As whom.
    pub user: String,
    /// What it is.
    pub machine_type: String,
    /// Virtual CPUs, as offered.
    pub cpus: u32,
    /// GPUs, as offered.
    pub gpus: u32,
    /// Where it is; empty in a place without zones.
    pub zone: String,
    /// What it is said to cost, in US dollars.
    pub price_per_hour: Option<f64>,
    /// Labels of its node, beside those of the pool.
    pub labels: BTreeMap<String, String>,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Of the agent.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A file that is not there.
    #[error("cannot use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A path that ssh cannot be told.
    #[error("{0}: a path with quotes or line ends cannot be given to ssh")]
    Path(PathBuf),
    /// Too many hosts, or none.
    #[error("{0} hosts are named; there must be between 1 and {max}", max = HOSTS_MAX)]
    Count(usize),
    /// A host that cannot be one.
    #[error("host {name}: {why}")]
    Host {
        /// Which.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// How many hosts there may be: each is asked every two minutes, and forty at a time take a second or two.
const HOSTS_MAX: usize = 2000;
impl Settings {
    /// Checks all that can be checked without asking a host.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        self.boot.check()?;
        check_hosts(&self.hosts)?;
        let file = |path: &Path| {
            let told = path.display().to_string();
            if told.contains(['"', '\n', '\r']) {
                return Err(SettingsError::Path(path.to_owned()));
            }
            let found = std::fs::File::open(path).map(|_| ());
            found.map_err(|source| SettingsError::File { path: path.to_owned(), source })
        };
        file(&self.key_file)?;
        file(&self.known_hosts)?;
        self.ssh_config.as_deref().map_or(Ok(()), file)?;
        match &self.boot.agent {
            AgentSource::File(path) => file(path),
            AgentSource::Url { .. } => Ok(()),
        }
    }
}

fn check_hosts(hosts: &[Host]) -> Result<(), SettingsError> {
    if hosts.is_empty() || HOSTS_MAX < hosts.len() {
        return Err(SettingsError::Count(hosts.len()));
    }
    let mut names = HashSet::new();
    for host in hosts {
        let bad =
            |why: &str| Err(SettingsError::Host { name: host.name.clone(), why: why.to_owned() });
        if host.name.is_empty() || host.name.chars().any(char::is_control) {
            return bad("its name is empty or cannot be written");
        }
        if !names.insert(host.name.as_str()) {
            return bad("it is named twice");
        }
        // What begins with a hyphen would be an option of ssh.
        let word = |text: &str, more: &str| {
            let fits = |char: char| char.is_ascii_alphanumeric() || more.contains(char);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
        };
        if !word(&host.address, ".-_:%") {
            return bad("its address must be a name or an IP address");
        }
        if !word(&host.user, ".-_") {
            return bad("its user must be a name");
        }
        if host.port == 0 {
            return bad("its port must not be 0");
        }
        if host.machine_type.is_empty() {
            return bad("it has no machine type");
        }
        if host.price_per_hour.is_some_and(|price| !price.is_finite() || price < 0.0) {
            return bad("its price must be a number of dollars");
        }
    }
    Ok(())
}
