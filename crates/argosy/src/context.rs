//! Which server the commands talk to: contexts in a file, with flags and environment on top.

use crate::failure::Failure;
use crate::output::Format;
use argosy_core::nearest::nearest;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The server of `argosy up`, and of `argosy server` without flags.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// Flags of every command that talks to a server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The context to use, instead of the current one.
    #[arg(
        long,
        global = true,
        env = "ARGOSY_CONTEXT",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) context: Option<String>,
    /// The server to talk to, instead of the context's. The context's token is then not sent.
    #[arg(long, global = true, env = "ARGOSY_SERVER", hide_env_values = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// A file that holds the token to send. ARGOSY_TOKEN may hold the token itself.
    #[arg(
        long,
        global = true,
        env = "ARGOSY_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) token_file: Option<PathBuf>,
}

/// The file of contexts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contexts {
    /// The one used when nobody says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// One server and how to speak to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// Its address.
    pub(crate) server: String,
    /// The token to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Token>,
    /// How results are printed when `-o` is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Format>,
}

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Token {
    /// Here. The file of contexts is readable by its owner only.
    Value(String),
    /// In an environment variable.
    Env(String),
    /// In a file.
    File(PathBuf),
}

/// The server a command talks to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    /// The name people know it by: a context's, or the address.
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) token: Option<String>,
    pub(crate) output: Option<Format>,
}

/// Where the file of contexts is: `ARGOSY_CLIENT_CONFIG`, or `~/.config/argosy/config.yaml`.
pub(crate) fn path() -> Result<PathBuf, Failure> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = var("ARGOSY_CLIENT_CONFIG") {
        return Ok(PathBuf::from(path));
    }
    let base = match (var("XDG_CONFIG_HOME"), var("HOME")) {
        (Some(base), _) => PathBuf::from(base),
        (None, Some(home)) => PathBuf::from(home).join(".config"),
        (None, None) => {
            return Err(Failure::usage("there is no home directory to keep contexts in")
                .fix("set ARGOSY_CLIENT_CONFIG to the path of a file"));
        }
    };
    Ok(base.join("argosy").join("config.yaml"))
}

impl Contexts {
    /// Reads the file; one that does not exist has no contexts.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => {
                return Err(Failure::usage(format!("cannot read {}", path.display())).why(error));
            }
        };
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
            Failure::usage(format!("{} cannot be understood", path.display()))
                .why(crate::output::clean(&error.to_string()))
                .fix("correct it, or remove it and set the contexts again")
        })
    }

    /// Writes the file, whole or not at all, readable by its owner only.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed(format!("cannot write {}", path.display())).why(error)
        };
        let text = serde_saphyr::to_string(self)
            .map_err(|error| Failure::failed("the contexts cannot be written").why(error))?;
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(failed)?;
        }
        let fresh = path.with_extension("yaml.new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&fresh, path).map_err(failed)
    }

    /// One context by name.
    pub(crate) fn get(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let failure = Failure::new(
                crate::failure::Exit::NotFound,
                format!("there is no context `{name}`"),
            );
            match nearest(name, self.contexts.keys().map(String::as_str)) {
                Some(near) => failure.fix(format!("did you mean `{near}`?")),
                None => failure.fix("`argosy context list` shows those there are"),
            }
        })
    }

    /// The server to talk to: what was given, else the context, else this machine.
    ///
    /// `token` is the one in the environment, if there is one.
    pub(crate) fn target(
        &self,
        connection: &Connection,
        token: Option<String>,
    ) -> Result<Target, Failure> {
        let given = match &connection.token_file {
            Some(file) => Some(read_token(file)?),
            None => token.filter(|token| !token.is_empty()),
        };
        if let Some(server) = &connection.server {
            // A context's token is for the context's server, and for nobody else.
            return Ok(Target {
                name: server.clone(),
                server: address(server)?,
                token: given,
                output: None,
            });
        }
        let Some(name) = connection.context.as_ref().or(self.current.as_ref()) else {
            return Ok(Target {
                name: DEFAULT_SERVER.to_owned(),
                server: DEFAULT_SERVER.to_owned(),
                token: given,
                output: None,
            });
        };
        let context = self.get(name)?;
        let token = match given {
            Some(token) => Some(token),
            None => context.token.as_ref().map(Token::read).transpose()?,
        };
        Ok(Target {
            name: name.clone(),
            server: address(&context.server)?,
            token,
            output: context.output,
        })
    }
}

/// The address without a slash at its end.
pub(crate) fn address(server: &str) -> Result<String, Failure> {
    let rest = server.strip_prefix("http://").or_else(|| server.strip_prefix("https://"));
    match rest {
        Some(host) if !host.is_empty() && !host.starts_with('/') => {
            Ok(server.trim_end_matches('/').to_owned())
        }
        Some(_) | None => Err(Failure::usage(format!("`{server}` is not the address of a server"))
            .fix("write http://HOST:PORT or https://HOST")),
    }
}

impl Token {
    fn read(&self) -> Result<String, Failure> {
        match self {
            Token::Value(token) => Ok(token.clone()),
            Token::Env(name) => std::env::var(name).map_err(|_| {
                Failure::new(
                    crate::failure::Exit::Auth,
                    format!("the context's token is in the environment variable {name}, which is not set"),
                )
            }),
            Token::File(path) => read_token(path),
        }
    }
}

fn read_token(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            crate::failure::Exit::Auth,
            format!("cannot read the token in {}", path.display()),
        )
        .why(error)
    })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests;
