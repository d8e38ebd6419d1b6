//! The command line as people use it: a process, its two outputs and its exit code.

use super::{PATIENCE, PROGRAM, Server};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// What a finished command left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output, if the exit code is the expected one.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        &self.out
    }

    /// Standard output as JSON, after success.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let out = self.expect(0);
        serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// `argosy` in a directory, without anybody's environment or contexts.
pub(crate) fn argosy(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).current_dir(dir).stdin(Stdio::null()).kill_on_drop(true);
    command.env_clear().env("HOME", dir).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Runs a command to its end.
pub(crate) async fn run(mut command: Command) -> Ran {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("the command ends").expect("the program can be run");
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

impl Server {
    /// `argosy ARGS` against this server, to its end.
    pub(crate) async fn cli(&self, args: &[&str]) -> Ran {
        let mut command = argosy(self.dir(), args);
        command.env("ARGOSY_SERVER", self.url());
        run(command).await
    }
}
