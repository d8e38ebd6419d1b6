//! `argosy sim explain`: how a seed came to fail.

use super::given::{Configured, Given};
use super::play::{show, shrink};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Screen, clean, note};
use argosy_sim::explain::Story;
use clap::Args;
use serde_json::json;

/// Make a failing seed small: play it again without what does not matter, and tell the rest as a short story.
#[derive(Args, Debug)]
#[command(after_help = "\
The seed is played up to sixty times, each time without some of what went wrong; what is left out stays out if
the same invariant is violated without it. Exit code 1 if the seed fails, as for `argosy sim run`.

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
    /// How the story is printed.
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Format,
}

/// `argosy sim explain`
pub(super) fn run(args: &Explain, screen: Screen) -> Result<Exit, Failure> {
    let given = Given::read(&args.scenario, &args.configured)?;
    let seed = args.seed.or(given.scenario.seed).unwrap_or(1);
    let Some(mut story) = shrink(&given, seed, screen)? else {
        if matches!(args.output, Format::Json | Format::Yaml) {
            let none = json!({ "kind": "SimulationStory", "seed": seed, "violation": null });
            show(args.output, screen, || none, |_| String::new());
        }
        note(&format!("nothing was violated on seed {seed}: there is nothing to explain"));
        return Ok(Exit::Ok);
    };
    // With the file and the flags that were given here.
    story.command = given.about.command("run", seed);
    show(
        args.output,
        screen,
        || {
            let Story { violation, without, faults: (matter, all), lines, command } = &story;
            let lines = lines.iter().map(|(at, text)| json!({ "at": at, "text": text }));
            json!({
                "kind": "SimulationStory",
                "scenario": given.scenario.name,
                "seed": seed,
                "violation": violation,
                "faults": all,
                "faults_that_matter": matter,
                "without": without,
                "story": lines.collect::<Vec<_>>(),
                "replay": command,
            })
        },
        // The lines end with a line end each: they are cleaned one by one.
        |_| story.to_string().lines().map(|line| format!("{}\n", clean(line))).collect(),
    );
    Ok(Exit::Failed)
}
