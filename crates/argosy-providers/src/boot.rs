//! How a machine gets its agent: what it is told, what is installed where, and the script that does it.
//!
//! What a newcomer gets wrong: what a machine is told goes into a file, not into flags. A flag splits labels
//! at commas, a unit reads `%` and `$`, and a process list shows everybody its words.

use crate::shell::{line, quote, unit_word};
use argosy_core::machine::Purchase;
use argosy_core::nearest::nearest;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How the machines of a provider get their agent.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Where the control plane is, as machines see it.
    pub server: String,
    /// The agent's program.
    pub agent: AgentSource,
    /// What the agent shows when it registers.
    pub token: Option<AgentToken>,
    /// Certificates to check the control plane with, in PEM, instead of the machine's own.
    pub ca_pem: Option<String>,
    /// More flags of the agent, as they are.
    pub extra_args: Vec<String>,
    /// Commands that a machine runs, in a shell of their own, before its agent is installed. They may name
    /// `{{.ControlPlane}}`, `{{.Pool}}`, `{{.NodeID}}`, `{{.Provider}}`, `{{.Region}}` and
    /// `{{.InstanceType}}`; each stands for one word, whatever it holds.
    pub setup_commands: Vec<String>,
}

/// Where the agent's program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// A file: of this host where the machine is reached from here, else of the machine's image.
    File(PathBuf),
    /// Machines fetch it themselves, and take nothing else for it.
    Url {
        /// From where.
        url: String,
        /// What it must be.
        sha256: Sha256,
    },
}

/// The checksum of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Sha256(String);

impl Sha256 {
    /// Reads 64 hexadecimal digits.
    ///
    /// # Errors
    /// If they are not.
    pub fn parse(text: &str) -> Result<Self, BootError> {
        let text = text.trim().to_ascii_lowercase();
        let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if fits { Ok(Self(text)) } else { Err(BootError::Checksum(text)) }
    }

    /// Of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        use sha2::Digest;
        Self(sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Of a file. Blocks.
    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        use sha2::Digest;
        let mut sum = sha2::Sha256::new();
        let mut file = std::fs::File::open(path)?;
        let mut chunk = vec![0; 256 * 1024];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                len => sum.update(chunk.get(..len).unwrap_or_default()),
            }
        }
        Ok(Self(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an agent shows when it registers. It shows itself to nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentToken(String);

impl AgentToken {
    /// Takes a credential.
    ///
    /// # Errors
    /// If it cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, BootError> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(BootError::Credential) }
    }

    /// The text, for the machine alone.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AgentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentToken(…)")
    }
}

/// What is wrong with the settings of a boot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// The server has no address.
    #[error("`{0}` is not the address of a server: it must be like https://argosy.example:8443")]
    Server(String),
    /// The agent cannot be fetched from there.
    #[error("`{0}` is not where an agent can be fetched: it must start with https:// or http://")]
    Url(String),
    /// Not a checksum.
    #[error("`{0}` is not a SHA-256 checksum: it must have 64 hexadecimal digits")]
    Checksum(String),
    /// Not a credential.
    #[error("the token of agents is empty or has characters that cannot be sent")]
    Credential,
    /// The certificates are too long for the user data of clouds.
    #[error("the certificates have {len} bytes; user data has room for {max}")]
    Certificates {
        /// How many bytes they have.
        len: usize,
        /// How many they may have.
        max: usize,
    },
    /// A variable that nobody knows, or something else that is not one.
    #[error(
        "setup command {number} has `{{{{{found}}}}}`; there are {known}{hint}",
        known = VARIABLES.map(|name| format!("{{{{.{name}}}}}")).join(", ")
    )]
    Variable {
        /// Which command, from 1.
        number: usize,
        /// What stands between the braces.
        found: String,
        /// The nearest name.
        hint: String,
    },
    /// A variable without an end.
    #[error("setup command {0} has `{{{{` without `}}}}`")]
    Open(usize),
}

/// What setup commands may name.
const VARIABLES: [&str; 6] =
    ["ControlPlane", "Pool", "NodeID", "Provider", "Region", "InstanceType"];

/// The longest chain of certificates. EC2 takes 16 KiB of user data, and the rest of ours has 6.
const CA_LEN_MAX: usize = 8 * 1024;

/// How long one setup command may take. A driver is installed in less; what takes longer hangs.
const SETUP_SECONDS_MAX: u32 = 300;

/// Where things are on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Before every path; nothing on a machine of its own.
    root: String,
}

impl Layout {
    pub(crate) fn below(root: &str) -> Self {
        Self { root: root.trim_end_matches('/').to_owned() }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    pub(crate) fn agent(&self) -> String {
        self.at("/usr/local/bin/argosy-agent")
    }

    pub(crate) fn etc(&self) -> String {
        self.at("/etc/argosy")
    }

    pub(crate) fn config(&self) -> String {
        self.at("/etc/argosy/agent.yaml")
    }

    pub(crate) fn token(&self) -> String {
        self.at("/etc/argosy/agent.token")
    }

    pub(crate) fn ca(&self) -> String {
        self.at("/etc/argosy/ca.pem")
    }

    pub(crate) fn unit(&self) -> String {
        self.at("/etc/systemd/system/argosy-agent.service")
    }

    pub(crate) fn data(&self) -> String {
        self.at("/var/lib/argosy-agent")
    }

    /// What we keep on a host that we only borrow.
    pub(crate) fn claims(&self) -> String {
        self.at("/var/lib/argosy")
    }
}

/// The unit of the agent, as people install it.
const UNIT: &str = include_str!("../../../packaging/systemd/argosy-agent.service");

impl Boot {
    /// Checks all that can be checked before there is a machine.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), BootError> {
        let is_http = |url: &str| {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic()))
        };
        if !is_http(&self.server) {
            return Err(BootError::Server(self.server.clone()));
        }
        match &self.agent {
            AgentSource::Url { url, .. } if !is_http(url) => {
                return Err(BootError::Url(url.clone()));
            }
            AgentSource::Url { .. } | AgentSource::File(_) => {}
        }
        let len = self.ca_pem.as_ref().map_or(0, String::len);
        if CA_LEN_MAX < len {
            return Err(BootError::Certificates { len, max: CA_LEN_MAX });
        }
        for (number, command) in (1..).zip(&self.setup_commands) {
            fill(command, number, |_| Some(String::new()))?;
        }
        Ok(())
    }

    /// The script that a cloud hands to a new machine. It may be run at each boot.
    ///
    /// Guarantees: an agent that is not what was asked for is not installed; every value is a word, whatever
    /// it holds; what fails is named on the console.
    pub fn user_data(&self, purchase: &Purchase) -> String {
        self.script(purchase, &Layout::default())
    }

    pub(crate) fn script(&self, purchase: &Purchase, layout: &Layout) -> String {
        let agent = match &self.agent {
            AgentSource::File(path) => path.display().to_string(),
            AgentSource::Url { .. } => layout.agent(),
        };
        let fetch = match &self.agent {
            AgentSource::File(_) => String::new(),
            AgentSource::Url { url, sha256 } => fetch(&agent, url, sha256),
        };
        format!(
            "#!/bin/sh\n\
             # Made for {name} by Argosy: installs its agent.\n\
             set -eu\n\
             umask 077\n\
             step=start\n\
             trap 'code=$?; [ $code = 0 ] || echo \"argosy: setup failed ($code): $step\" >&2' EXIT\n\
             {setup}{fetch}{install}\
             step='start the agent'\n\
             systemctl daemon-reload\n\
             systemctl enable argosy-agent.service\n\
             systemctl restart argosy-agent.service\n\
             echo 'argosy: the agent is started' >&2\n",
            name = purchase.instance,
            setup = self.setup(purchase),
            install = self.install(purchase, layout, &agent),
        )
    }

    /// Lines that run the setup commands.
    pub(crate) fn setup(&self, purchase: &Purchase) -> String {
        let value = |name: &str| match name {
            "ControlPlane" => Some(self.server.clone()),
            "Pool" => Some(purchase.pool.clone()),
            "NodeID" => Some(purchase.instance.to_string()),
            "Provider" => Some(purchase.order.provider.clone()),
            "Region" => Some(purchase.order.region.clone()),
            "InstanceType" => Some(purchase.order.machine_type.clone()),
            _ => None,
        };
        let mut lines = String::new();
        for (number, command) in (1..).zip(&self.setup_commands) {
            // `check` has refused what cannot be filled.
            let Ok(command) = fill(command, number, |name| value(name).map(|text| quote(&text)))
            else {
                continue;
            };
            lines.push_str(&format!(
                "step='setup command {number}'\ntimeout {SETUP_SECONDS_MAX} /bin/sh -c {}\n",
                quote(&command)
            ));
        }
        lines
    }

    /// Lines that write the agent's files. They are written aside and renamed: a reader finds all or nothing.
    pub(crate) fn install(&self, purchase: &Purchase, layout: &Layout, agent: &str) -> String {
        let write = |path: String, mode: &str, text: &str| {
            let (path, new) = (quote(&path), quote(&format!("{path}.new")));
            let text = quote(text);
            format!("printf '%s\\n' {text} >{new}\nchmod {mode} {new}\nmv -f {new} {path}\n")
        };
        let unit = layout.unit();
        let units = unit.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
        let mut lines = format!(
            "step='write the files of the agent'\nmkdir -p {}\n",
            line([layout.etc().as_str(), units])
        );
        lines.push_str(&match &self.token {
            Some(token) => write(layout.token(), "0600", token.expose()),
            None => format!("rm -f {}\n", quote(&layout.token())),
        });
        if let Some(pem) = &self.ca_pem {
            lines.push_str(&write(layout.ca(), "0644", pem.trim_end()));
        }
        let config = Value::Object(self.config(purchase, layout));
        lines.push_str(&write(layout.config(), "0644", &format!("{config:#}")));
        lines.push_str(&write(unit, "0644", self.unit(purchase, layout, agent).trim_end()));
        lines
    }

    /// What the agent is told. JSON is YAML.
    pub(crate) fn config(&self, purchase: &Purchase, layout: &Layout) -> Map<String, Value> {
        let mut config = self.identity(purchase);
        if self.ca_pem.is_some() {
            config.insert("ca_file".to_owned(), layout.ca().into());
        }
        if !layout.root.is_empty() {
            config.insert("data_dir".to_owned(), layout.data().into());
        }
        config
    }

    /// What an agent is told wherever it is.
    pub(crate) fn identity(&self, purchase: &Purchase) -> Map<String, Value> {
        let order = &purchase.order;
        let mut config = Map::new();
        config.insert("servers".to_owned(), json!([self.server]));
        let texts = [
            ("node_id", purchase.instance.as_str()),
            ("provider", &order.provider),
            ("region", &order.region),
            ("zone", &order.zone),
            ("instance_type", &order.machine_type),
            ("pool", &purchase.pool),
        ];
        // What is empty is not said: the cloud may know it.
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            config.insert(key.to_owned(), text.into());
        }
        config.insert("labels".to_owned(), json!(purchase.labels));
        config
    }

    /// The words after the agent's program. All else is in the file.
    pub fn agent_args(&self, purchase: &Purchase, config: &Path) -> Vec<String> {
        let config = config.display().to_string();
        // The id is in the file, too; here it is for people who look at processes.
        let words = ["run", "--config", &config, "--node-id", purchase.instance.as_str()];
        words.map(str::to_owned).into_iter().chain(self.extra_args.iter().cloned()).collect()
    }

    /// The unit, for this agent.
    fn unit(&self, purchase: &Purchase, layout: &Layout, agent: &str) -> String {
        let words = self.agent_args(purchase, Path::new(&layout.config()));
        let words = std::iter::once(agent).chain(words.iter().map(String::as_str));
        let start = words.map(unit_word).collect::<Vec<_>>().join(" ");
        let lines = UNIT.lines().filter_map(|line| match line.split_once('=') {
            Some(("ExecStart", _)) => Some(format!("ExecStart={start}")),
            Some(("LoadCredential", _)) => {
                let token = layout.token();
                self.token.is_some().then(|| format!("LoadCredential=token:{token}"))
            }
            Some(_) | None => Some(line.to_owned()),
        });
        lines.map(|line| line + "\n").collect()
    }
}

/// Lines that bring the agent from an address to its place, if it is not there, and only as it must be.
pub(crate) fn fetch(agent: &str, url: &str, sha256: &Sha256) -> String {
    let folder = agent.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    let new = format!("{agent}.new");
    // A network may come up late, and a server be busy: five tries, twenty seconds at most between them.
    format!(
        "step='fetch the agent'\n\
         is_agent() {{ printf '%s  %s\\n' {sum} \"$1\" | sha256sum -c - >/dev/null 2>&1; }}\n\
         mkdir -p {folder}\n\
         if ! is_agent {agent}; then\n\
         for wait in 2 5 10 20 0; do\n\
         if curl --fail --location --silent --show-error --connect-timeout 10 --max-time 600 \
         --output {new} {url}; then break; fi\n\
         [ $wait != 0 ] || exit 1\n\
         sleep $wait\n\
         done\n\
         step='check the agent: it is not the one with SHA-256 {digits}'\n\
         if ! is_agent {new}; then rm -f {new}; exit 1; fi\n\
         chmod 0755 {new}\n\
         mv -f {new} {agent}\n\
         fi\n",
        sum = quote(sha256.as_str()),
        digits = sha256.as_str(),
        folder = quote(folder),
        agent = quote(agent),
        new = quote(&new),
        url = quote(url),
    )
}

/// A command with its variables replaced.
fn fill(
    command: &str,
    number: usize,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, BootError> {
    let mut filled = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once("{{") {
        let (found, after) = after.split_once("}}").ok_or(BootError::Open(number))?;
        let name = found.trim().strip_prefix('.').unwrap_or_default();
        let known = VARIABLES.contains(&name).then(|| value(name)).flatten();
        let text = known.ok_or_else(|| {
            let near = nearest(found.trim().trim_start_matches('.'), VARIABLES);
            let hint = near.map(|near| format!("; did you mean {{{{.{near}}}}}?"));
            let hint = hint.unwrap_or_default();
            BootError::Variable { number, found: found.to_owned(), hint }
        })?;
        filled.push_str(before);
        filled.push_str(&text);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests;
