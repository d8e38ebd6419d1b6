//! `argosy sim explain`: how a seed came to fail.

use super::given::{Configured, Given};
use super::play::{Playing, play, show};
use super::seeds::Seeds;
use crate::failure::{Exit, Failure};
use crate::output::{Screen, note};
use argosy_sim::report::story;
use clap::Args;
use serde_json::json;

/// How many faults before the violation are told: two screens.
const FAULTS_MAX: usize = 60;

/// Play a seed that fails again, and tell how it came to that.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit code 1 if the seed fails, as for `argosy sim run`.

Examples:
  argosy sim explain 1000-node-chaos --seed 17
  argosy sim explain my-fleet.yaml --seed 3 --config /etc/argosy/argosy.yaml -o json")]
pub(super) struct Explain {
    /// A name of `argosy sim list`, or a file.
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// The seed [default: what the scenario says, or 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    configured: Configured,
    #[command(flatten)]
    playing: Playing,
}

/// `argosy sim explain`
pub(super) fn run(args: &Explain, screen: Screen) -> Result<Exit, Failure> {
    let given = Given::read(&args.scenario, &args.configured)?;
    let seed = args.seed.or(given.scenario.seed).unwrap_or(1);
    let played = play(&given, Seeds::one(seed), &args.playing, screen, ("", 1))?;
    let Some(outcome) = played.outcomes.first() else {
        return Err(Failure::new(Exit::Interrupted, "interrupted"));
    };
    let lines = story::before(outcome, FAULTS_MAX);
    show(
        args.playing.output,
        screen,
        || {
            json!({
                "kind": "SimulationStory",
                "scenario": outcome.scenario,
                "seed": outcome.seed,
                "digest": outcome.digest,
                "violations": outcome.violations,
                "story": lines,
                "replay": given.about.command("run", outcome.seed),
            })
        },
        |pen| lines.iter().map(|line| format!("{}\n", (pen.clean)(line))).collect(),
    );
    if outcome.violations.is_empty() {
        note(&format!("nothing was violated on seed {seed}: there is nothing to explain"));
        return Ok(Exit::Ok);
    }
    Ok(Exit::Failed)
}
