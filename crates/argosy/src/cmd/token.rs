//! `argosy token`: new tokens for the server's tokens file.

use crate::failure::{Exit, Failure};
use crate::output::{document, note, print};
use argosy_core::access::Role;
use argosy_core::pool;
use argosy_server::auth::hash_token;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::io::Read;

/// Make tokens that `argosy server` accepts.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy token new --name alice --role operator --team ml >> tokens.yaml")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    New(New),
}

/// Make a token: it is shown once; the tokens file keeps only its hash.
#[derive(Args, Debug)]
#[command(after_help = "\
The token goes to standard error, the entry for the tokens file to standard output.

Examples:
  argosy token new --name alice --role operator --team ml >> tokens.yaml
  argosy token new --name dns-adapter --role adapter --adapter dns >> tokens.yaml
  argosy token new --name gpu-17 --role node --node gpu-17 >> tokens.yaml")]
struct New {
    /// Whom it stands for; written down in the audit log.
    #[arg(long, value_parser = name)]
    name: String,
    /// What its holder may do.
    #[arg(long, value_enum)]
    role: RoleArg,
    /// A team its holder belongs to; may be repeated.
    #[arg(long = "team", value_name = "TEAM")]
    teams: Vec<String>,
    /// Whose resources its holder sees.
    #[arg(long, default_value = "default")]
    tenant: String,
    /// The adapter its holder is; required for the role adapter.
    #[arg(long, required_if_eq("role", "adapter"))]
    adapter: Option<String>,
    /// The node its holder is; without it, a token of the role node speaks for any node of its tenant.
    #[arg(long)]
    node: Option<String>,
    /// When it ends, as 2027-01-31T00:00:00Z; without it, never.
    #[arg(long, value_name = "TIME")]
    expires: Option<jiff::Timestamp>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArg {
    /// Reads.
    Viewer,
    /// Reads, creates, changes and deletes.
    Operator,
    /// Everything.
    Admin,
    /// Reads, and reports statuses under its own name.
    Adapter,
    /// Speaks for a node: registers, reports, fetches its commands.
    Node,
}

/// `argosy token`
pub(super) fn run(verb: &Verb) -> Result<Exit, Failure> {
    let Verbs::New(new) = &verb.verb;
    let token = draw()?;
    let role = match new.role {
        RoleArg::Viewer => Role::Viewer,
        RoleArg::Operator => Role::Operator,
        RoleArg::Admin => Role::Admin,
        RoleArg::Adapter => Role::Adapter,
        RoleArg::Node => Role::Node,
    };
    let mut entry = json!({
        "name": new.name,
        "sha256": hash_token(&token),
        "role": role,
        "teams": new.teams,
        "tenant": new.tenant,
    });
    if let Some(members) = entry.as_object_mut() {
        members.extend(new.adapter.as_ref().map(|name| ("adapter".to_owned(), json!(name))));
        members.extend(new.node.as_ref().map(|name| ("node".to_owned(), json!(name))));
        members.extend(new.expires.map(|time| ("expires".to_owned(), json!(time))));
    }
    note(&format!("token (shown once): {token}"));
    note("add what follows to the server's tokens file:");
    print(&document(&json!([entry]), true));
    Ok(Exit::Ok)
}

/// Refuses at once what the server would refuse to start with.
fn name(text: &str) -> Result<String, String> {
    if pool::is_reserved(text) {
        let by = pool::BY;
        return Err(format!(
            "that is what the control plane calls itself: choose another, for example {by}-bot"
        ));
    }
    Ok(text.to_owned())
}

/// 256 bits from the operating system, in hex, with a prefix that secret scanners can look for.
pub(super) fn draw() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Failure::failed("the system gives no random numbers").why(error))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("argosy_{hex}"))
}

#[cfg(test)]
mod tests;
