//! The arguments of `argosy policy`.

use crate::config::Duration;
use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;

/// Write, try and explain the rules that say which nodes are sick.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy policy check policy.yaml             is it a policy? works without a server
  argosy policy test policy.yaml              and does it say what it should?
  argosy policy explain --xid 79              what does the policy in force say of that?
  argosy policy backtest -f policy.yaml       whom would it have hit that the present one did not?
  argosy policy apply -f policy.yaml
  argosy policy get default -o yaml > policy.yaml")]
pub(crate) struct Verb {
    #[command(subcommand)]
    pub(super) verb: Verbs,
}

#[derive(Subcommand, Debug)]
pub(super) enum Verbs {
    Check(Check),
    Test(Test),
    Explain(Explain),
    Backtest(Backtest),
    Apply(Apply),
    /// List policies.
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  argosy policy list
  argosy policy list -o json"
    )]
    List,
    Get(Get),
    Delete(Delete),
}

/// Check a policy file, without a server.
#[derive(Args, Debug)]
#[command(after_help = "\
A file in our format, or one of Navarch's as it is:

  name: h100                            # without a name or pools it is the policy `default`
  pools: [h100]
  rules:
    - name: off-the-bus
      condition: has(xid.code) && xid.code == 79
      result: unhealthy                 # or degraded, or healthy
      priority: 10                      # higher is asked first; then the order of the file
      lasts: reboot                     # or a time without a repeat, like 30m

Exit code 64 if something is wrong; each error names its line and column.

Examples:
  argosy policy check policy.yaml
  argosy policy check - < policy.yaml")]
pub(super) struct Check {
    /// The file, or - for standard input.
    pub(super) file: PathBuf,
}

/// Ask a policy file about events, and compare with what was expected; without a server.
#[derive(Args, Debug)]
#[command(after_help = "\
Cases stand under `tests` in the policy's own file, or in a second one:

  tests:
    - name: a GPU off the bus
      xid: 79                           # or event: {event_type: thermal, metrics: {temperature: 96}}
      expect: unhealthy                 # or healthy, degraded, error
    - name: the same program crashed twice
      xid: 31
      before: [{ago: 2h, xid: 31}]
      node: {pool: h100}
      expect: {result: degraded, rule: xid-program-again}

Exit code 1 if a policy says something else.

Examples:
  argosy policy test policy.yaml
  argosy policy test policy.yaml --cases cases.yaml
  argosy policy test policy.yaml -o json")]
pub(super) struct Test {
    /// The policy's file, or - for standard input.
    pub(super) file: PathBuf,
    /// A file with more cases.
    #[arg(long, value_name = "FILE")]
    pub(super) cases: Option<PathBuf>,
}

/// Say what a policy makes of an event, and why.
#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("what").required(true),
    after_help = "\
Without --node the event happens on a node nothing is known of; with it, the policy of its pool is asked
and its past counts. With -f the file is asked instead of the policy in force.

Examples:
  argosy policy explain --xid 79
  argosy policy explain --xid 31 --node gpu-17
  argosy policy explain --event '{\"event_type\": \"thermal\", \"metrics\": {\"temperature\": 96}}'
  argosy policy explain --xid 48 -f policy.yaml"
)]
pub(super) struct Explain {
    /// An Xid on the first GPU.
    #[arg(long, group = "what", value_name = "CODE")]
    pub(super) xid: Option<u32>,
    /// An event, in JSON or YAML.
    #[arg(long, group = "what", value_name = "EVENT")]
    pub(super) event: Option<String>,
    /// The node it happens on.
    #[arg(long, value_name = "NODE")]
    pub(super) node: Option<String>,
    /// Ask this file.
    #[arg(short, long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
}

/// Run a policy file over recorded history, beside the policy in force.
#[derive(Args, Debug)]
#[command(after_help = "\
Judges every recorded event again by both, with what rules count by as it was at the time. Prints the
nodes that one of them hits and the other does not, or not as hard.

Examples:
  argosy policy backtest -f policy.yaml
  argosy policy backtest -f policy.yaml --since 7d -o json")]
pub(super) struct Backtest {
    /// The file, or - for standard input.
    #[arg(short, long, value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Only what happened within this time, like 24h.
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<Duration>,
}

/// Put a policy file in force.
#[derive(Args, Debug)]
#[command(after_help = "\
Shows which rules change, and asks. It is in force for the next event. One that does not compile is
refused, and the old one stays. Exit code 2 of --dry-run means that there are changes.

Examples:
  argosy policy apply -f policy.yaml
  argosy policy apply -f policy.yaml --dry-run
  argosy policy apply -f navarch-policy.yaml --name h100 --pool h100 --yes")]
pub(super) struct Apply {
    /// The file, or - for standard input.
    #[arg(short, long, value_name = "FILE")]
    pub(super) file: PathBuf,
    /// What to call it, instead of what the file says.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The pools it is for, instead of what the file says; may be repeated.
    #[arg(long, value_name = "POOL")]
    pub(super) pool: Vec<String>,
    /// Show what would change, let the server check it, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
}

/// Show a policy, rule by rule in the order they are asked.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy policy get default
  argosy policy get default -o yaml > policy.yaml")]
pub(super) struct Get {
    /// Its name.
    #[arg(default_value = "default", value_name = "NAME")]
    pub(super) name: String,
}

/// Remove a policy; of the default, what somebody made of it.
#[derive(Args, Debug)]
#[command(
    visible_alias = "rm",
    after_help = "\
Its nodes are judged by the default from then on.

Examples:
  argosy policy delete h100
  argosy policy delete default --yes          back to the built-in one"
)]
pub(super) struct Delete {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
}
