//! The line to one host: the system's `ssh`, run without a local shell, without questions and inside limits.
//!
//! What a newcomer gets wrong: that a call failed does not say that nothing happened. Only what ssh says before
//! a session has begun does; anything later is `Broken`.

use crate::shell;
use argosy_core::machine::Trouble;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Where a host is and how it is entered.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) user: String,
}

/// How every host is called.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) ssh: PathBuf,
    pub(super) config: Option<PathBuf>,
    pub(super) key_file: PathBuf,
    pub(super) known_hosts: PathBuf,
    /// Where connections are kept for the next call; `None`: each call makes its own.
    pub(super) sockets: Option<PathBuf>,
    /// Whether what changes a host is done as root through sudo.
    pub(super) sudo: bool,
}

/// What a host said.
#[derive(Debug)]
pub(super) struct Said {
    /// How the command ended.
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Why a host said nothing, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It is not the host that we know. Nothing was said to it.
    Stranger(String),
    /// It does not let us in.
    Shut(String),
    /// It could not be reached.
    Away(String),
    /// It was reached, and the connection ended before the command did. Nobody knows what was done.
    Broken(String),
    /// We cannot call anybody.
    Mute(String),
}

/// What is sent to the command.
#[derive(Debug)]
pub(super) enum Input<'a> {
    Text(&'a str),
    File(&'a Path),
}

/// How a command is run on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum As {
    /// As whoever enters.
    Guest,
    /// As root, if we have to become it.
    Root,
}

/// How long a connection may take to be made.
const CONNECT_SECONDS_MAX: u32 = 10;
/// After how many seconds of silence a host is asked whether it is there; after three such it is not.
const ALIVE_SECONDS: u32 = 5;
/// How long a connection is kept for the next call: a create makes three, one after the other.
const KEPT_SECONDS: u32 = 30;
/// The most that is read of what a host says: a console, or a thousand claims that were released.
const OUTPUT_LEN_MAX: u64 = 1024 * 1024;
/// How long what was said may take to arrive after the command has ended. A kept connection may hold on to
/// the pipe for longer than that.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Caller {
    /// Runs a script, which is sent and then run: half a script is not run at all, and nobody on the host can
    /// read in its process list what is in it.
    pub(super) async fn script(
        &self,
        door: &Door,
        who: As,
        script: &str,
        time_max: Duration,
    ) -> Result<Said, Silence> {
        // The whole is one compound command: a shell begins with it when it has read its end.
        let whole = format!("{{\n{script}\nexit 0\n}}\n");
        self.run(door, who, &["/bin/sh", "-s"], Input::Text(&whole), time_max).await
    }

    /// Runs a command whose input is a file of ours.
    pub(super) async fn feed(
        &self,
        door: &Door,
        who: As,
        script: &str,
        file: &Path,
        time_max: Duration,
    ) -> Result<Said, Silence> {
        self.run(door, who, &["/bin/sh", "-c", script], Input::File(file), time_max).await
    }

    async fn run(
        &self,
        door: &Door,
        who: As,
        words: &[&str],
        input: Input<'_>,
        time_max: Duration,
    ) -> Result<Said, Silence> {
        let sudo: &[&str] = if self.sudo && who == As::Root { &["sudo", "-n", "--"] } else { &[] };
        let remote = shell::line(sudo.iter().chain(words).copied());
        let mut command = self.command(door);
        command.arg(remote).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match input {
            Input::Text(_) => Stdio::piped(),
            Input::File(path) => match std::fs::File::open(path) {
                Ok(file) => Stdio::from(file),
                Err(cause) => {
                    return Err(Silence::Mute(format!("cannot read {}: {cause}", path.display())));
                }
            },
        });
        let mut child = command.spawn().map_err(|cause| {
            Silence::Mute(format!("{} cannot be run: {cause}", self.ssh.display()))
        })?;
        let text = match input {
            Input::Text(text) => text,
            Input::File(_) => "",
        };
        let whole = converse(&mut child, text);
        let said = match tokio::time::timeout(time_max, whole).await {
            Ok(Ok(said)) => said,
            Ok(Err(cause)) => return Err(Silence::Broken(cause.to_string())),
            Err(_) => {
                let seconds = time_max.as_secs();
                return Err(Silence::Broken(format!("it was not done in {seconds} s")));
            }
        };
        match said.code {
            SSH_FAILED => Err(judge(&said.stderr)),
            _ => Ok(said),
        }
    }

    fn command(&self, door: &Door) -> Command {
        let mut command = Command::new(&self.ssh);
        // Variables of ours change what ssh does, and its words.
        command.env_clear().env("LC_ALL", "C");
        for name in ["PATH", "HOME", "SSH_AUTH_SOCK"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.arg("-F");
        match &self.config {
            Some(path) => command.arg(path),
            None => command.arg("none"),
        };
        command.arg("-i").arg(&self.key_file).arg("-T");
        let known_hosts = format!("UserKnownHostsFile={}", option(&self.known_hosts));
        let mut options = vec![
            known_hosts,
            "GlobalKnownHostsFile=none".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "UpdateHostKeys=no".to_owned(),
            "BatchMode=yes".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "ForwardAgent=no".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "EscapeChar=none".to_owned(),
            "LogLevel=ERROR".to_owned(),
            format!("ConnectTimeout={CONNECT_SECONDS_MAX}"),
            format!("ServerAliveInterval={ALIVE_SECONDS}"),
            "ServerAliveCountMax=3".to_owned(),
        ];
        match &self.sockets {
            Some(dir) => options.extend([
                "ControlMaster=auto".to_owned(),
                format!("ControlPath={}", option(&dir.join("%C")).replace("%%C", "%C")),
                format!("ControlPersist={KEPT_SECONDS}"),
            ]),
            None => options.push("ControlMaster=no".to_owned()),
        }
        for option in options {
            command.arg("-o").arg(option);
        }
        command.arg("-p").arg(door.port.to_string()).arg("-l").arg(&door.user);
        command.arg("--").arg(&door.address);
        command
    }
}

/// What ssh itself ends with if it could not do its part.
const SSH_FAILED: i32 = 255;

/// A path as the value of one of ssh's options, where `%` means something.
fn option(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

async fn converse(child: &mut Child, text: &str) -> io::Result<Said> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A host that does not listen to the end says why in its own words.
            if stdin.write_all(text.as_bytes()).await.is_ok() {
                _ = stdin.shutdown().await;
            }
        }
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (read_out, read_err) = (read(stdout, &mut out), read(stderr, &mut err));
    let status = {
        let talk = async { tokio::join!(write, read_out, read_err) };
        tokio::pin!(talk);
        let ended = async {
            tokio::select! {
                status = child.wait() => (status, false),
                _ = &mut talk => (child.wait().await, true),
            }
        };
        let (status, heard) = ended.await;
        if !heard {
            _ = tokio::time::timeout(LAST_WORDS, talk).await;
        }
        status?
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // Killed by a signal: as if the connection had ended.
    let code = status.code().unwrap_or(SSH_FAILED);
    Ok(Said { code, stdout: text(&out), stderr: text(&err) })
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) {
    if let Some(pipe) = pipe {
        // What is longer is cut off; whoever reads it misses its end.
        _ = pipe.take(OUTPUT_LEN_MAX).read_to_end(bytes).await;
    }
}

/// What ssh means by what it wrote.
fn judge(stderr: &str) -> Silence {
    let last = last_line(stderr);
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if says(&[
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "Host key verification failed",
        "host key is known for",
        "REVOKED HOST KEY",
    ]) {
        return Silence::Stranger(last);
    }
    if says(&[
        "Permission denied (",
        "Too many authentication failures",
        "No more authentication methods",
    ]) {
        return Silence::Shut(last);
    }
    // Said before there is a session; `client_loop`, `mux_client` and a broken pipe are not.
    if says(&[
        "ssh: connect to host",
        "ssh: Could not resolve hostname",
        "kex_exchange_identification",
        "banner exchange",
        "Connection timed out during",
        "Unable to negotiate",
    ]) {
        return Silence::Away(last);
    }
    if says(&["Bad configuration option", "Can't open user config file", "command-line line"]) {
        return Silence::Mute(last);
    }
    Silence::Broken(if last.is_empty() { "the connection ended".to_owned() } else { last })
}

/// The last line that says something, cut.
pub(super) fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let shown = line.chars().filter(|char| !char.is_control());
    shown.take(LINE_LEN_MAX).collect()
}

/// How much of a host's words goes into a message for people. Characters.
const LINE_LEN_MAX: usize = 300;

impl Silence {
    /// As trouble for one host, of a call that changed nothing.
    pub(super) fn of_reading(&self, host: &str, known_hosts: &Path) -> Trouble {
        match self {
            Silence::Broken(why) => Trouble::Unreachable(format!("{host}: {why}")),
            Silence::Stranger(_) | Silence::Shut(_) | Silence::Away(_) | Silence::Mute(_) => {
                self.of_change(host, known_hosts)
            }
        }
    }

    /// As trouble for one host, of a call that may have changed something.
    pub(super) fn of_change(&self, host: &str, known_hosts: &Path) -> Trouble {
        match self {
            Silence::Stranger(why) => Trouble::Invalid {
                field: "hosts".to_owned(),
                message: format!(
                    "{host} does not show the host key that is in {file}: {why}. If the host was \
                     installed anew, check its key on its own console and replace its line in {file}; \
                     otherwise somebody is in between",
                    file = known_hosts.display()
                ),
            },
            Silence::Shut(why) => Trouble::Credentials(format!("{host} does not let us in: {why}")),
            Silence::Away(why) => Trouble::Unreachable(format!("{host}: {why}")),
            Silence::Broken(why) => Trouble::Unsure(format!("{host}: {why}")),
            Silence::Mute(why) => Trouble::Credentials(why.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
