//! `argosy sim run`: a scenario, by seed, and what came of it.

use super::given::{Configured, Given};
use super::play::{Part, Playing, exit, play, show, write};
use super::seeds::Seeds;
use crate::failure::{Exit, Failure};
use crate::output::{Screen, clean, document, note};
use argosy_sim::report::{self, html, text};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
  argosy sim run first-day --log story.txt
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
    /// Write what happened, line by line, with the seconds since the beginning; of one seed.
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    log: Option<PathBuf>,
    #[command(flatten)]
    playing: Playing,
}

/// `argosy sim run`
pub(super) fn run(args: &Run, screen: Screen) -> Result<Exit, Failure> {
    let mut given = Given::read(&args.scenario, &args.configured)?;
    let seed = || args.seed.or(given.scenario.seed).unwrap_or(1);
    let seeds = args.seeds.unwrap_or_else(|| Seeds::one(seed()));
    // What the command line names wins over what the scenario asks for.
    let asked = given.scenario.reports.clone();
    let log = args.log.as_deref().or(asked.log.as_deref().map(Path::new));
    let telling = log.is_some() && seeds.is_one();
    let played = play(&given, seeds, &args.playing, screen, &Part { telling, ..Part::default() })?;
    let outcomes = &played.outcomes;
    given.about.expected = report::expected(&given.scenario, outcomes);
    let about = &given.about;
    show(
        args.playing.output,
        screen,
        || report::json(about, outcomes),
        |pen| text::summary(about, outcomes, pen),
    );
    if let Some(path) = args.html.as_deref().or(asked.html.as_deref().map(Path::new)) {
        write(path, "report", &html::page(about, outcomes))?;
    }
    if let Some(path) = args.json.as_deref().or(asked.json.as_deref().map(Path::new)) {
        write(path, "report", &document(&report::json(about, outcomes), false))?;
    }
    match log {
        Some(path) if telling => write(path, "log", &story(&played.story))?,
        Some(_) => note("no log is written: it is for one seed"),
        None => {}
    }
    Ok(exit(outcomes, played.interrupted))
}

fn story(lines: &[(Duration, String)]) -> String {
    let line =
        |(at, text): &(Duration, String)| format!("{:>10.1}  {}\n", at.as_secs_f64(), clean(text));
    lines.iter().map(line).collect()
}
