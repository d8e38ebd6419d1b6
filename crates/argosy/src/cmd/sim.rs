//! `argosy sim`: made-up fleets.

mod load;

use super::Client;
use crate::failure::{Exit, Failure};
use crate::output::Screen;
use clap::{Args, Subcommand};

/// Try a fleet before there is one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy sim load --nodes 1000 --duration 5m")]
pub(crate) struct Sim {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    Load(Client<load::Load>),
}

/// `argosy sim`
pub(super) fn run(sim: Sim, screen: Screen) -> Result<Exit, Failure> {
    match sim.verb {
        Verbs::Load(client) => load::run(client, screen),
    }
}
