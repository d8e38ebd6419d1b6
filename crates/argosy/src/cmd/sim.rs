//! `argosy sim`: made-up fleets, in virtual time and on the real wire.

mod compare;

mod explain;

mod given;

mod list;

mod load;

mod play;

mod run;

mod seeds;

mod validate;

use super::Client;
use crate::failure::{Exit, Failure};
use crate::output::Screen;
use clap::{Args, Subcommand};

/// Try a fleet, a configuration or a policy before there is one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy sim list
  argosy sim run llama3-54d --html report.html
  argosy sim run my-fleet.yaml --config /etc/argosy/argosy.yaml --seeds 1..100
  argosy sim compare llama3-54d --policy new-policy.yaml
  argosy sim load --nodes 1000 --duration 5m")]
pub(crate) struct Sim {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    Run(run::Run),
    Compare(compare::Compare),
    Explain(explain::Explain),
    List(list::List),
    Validate(validate::Validate),
    Load(Client<load::Load>),
}

/// `argosy sim`
pub(super) fn run(sim: Sim, screen: Screen) -> Result<Exit, Failure> {
    match sim.verb {
        Verbs::Run(args) => run::run(&args, screen),
        Verbs::Compare(args) => compare::run(&args, screen),
        Verbs::Explain(args) => explain::run(&args, screen),
        Verbs::List(args) => list::run(&args, screen),
        Verbs::Validate(args) => validate::run(&args),
        Verbs::Load(client) => load::run(client, screen),
    }
}
