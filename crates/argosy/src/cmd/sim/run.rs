//! `argosy sim run`: a scenario, by seed, and what came of it.

use super::given::{Configured, Given};
use super::play::{Playing, exit, play, show, write};
use super::seeds::Seeds;
use crate::failure::{Exit, Failure};
use crate::output::{Screen, document};
use argosy_sim::report::{self, html, text};
use clap::Args;
use std::path::{Path, PathBuf};

/// Play a scenario in virtual time: the real control plane and agents, a made-up world.
#[derive(Args, Debug)]
#[command(after_help = "\
The same seed gives the same digest on any machine. Exit code 1 if an invariant was violated or an assertion
of the scenario does not hold; the report says how to play it again. Ctrl-C ends early and reports what is done.

Examples:
  argosy sim run llama3-54d
  argosy sim run llama3-54d --html report.html --config /etc/argosy/argosy.yaml
  argosy sim run my-fleet.yaml --policy new-policy.yaml --seed 7
  argosy sim run 1000-node-chaos --seeds 1..1000 --time-limit 2m
  argosy sim run llama3-54d -o json | jq .figures.availability")]
pub(super) struct Run {
    /// A name of `argosy sim list`, or a file.
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// The seed [default: what the scenario says, or 1].
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Many seeds, with the first and the last.
    #[arg(long, value_name = "FIRST..LAST")]
    seeds: Option<Seeds>,
    #[command(flatten)]
    configured: Configured,
    /// Write the report as one page to send around.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report as JSON, besides what is printed.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    playing: Playing,
}

/// `argosy sim run`
pub(super) fn run(args: &Run, screen: Screen) -> Result<Exit, Failure> {
    let mut given = Given::read(&args.scenario, &args.configured)?;
    let seed = || args.seed.or(given.scenario.seed).unwrap_or(1);
    let seeds = args.seeds.unwrap_or_else(|| Seeds::one(seed()));
    let played = play(&given, seeds, &args.playing, screen, ("", 1))?;
    let outcomes = &played.outcomes;
    given.about.expected = report::expected(&given.scenario, outcomes);
    let about = &given.about;
    show(
        args.playing.output,
        screen,
        || report::json(about, outcomes),
        |pen| text::summary(about, outcomes, pen),
    );
    // What the command line names wins over what the scenario asks for.
    let asked = &given.scenario.reports;
    if let Some(path) = args.html.as_deref().or(asked.html.as_deref().map(Path::new)) {
        write(path, &html::page(about, outcomes))?;
    }
    if let Some(path) = args.json.as_deref().or(asked.json.as_deref().map(Path::new)) {
        write(path, &document(&report::json(about, outcomes), false))?;
    }
    Ok(exit(outcomes, played.interrupted))
}
