//! `argosy sim compare`: two scenarios, configurations or policies on the same seeds.

use super::given::{Configured, Given};
use super::play::{Part, Playing, play, show, write};
use super::seeds::Seeds;
use crate::failure::{Exit, Failure};
use crate::output::{Screen, document};
use argosy_sim::report::compare::{Sides, compare, document as as_document, html, text};
use clap::Args;
use std::path::PathBuf;

/// Play two scenarios, configurations or policies on the same seeds, and say what the second would have saved.
#[derive(Args, Debug)]
#[command(after_help = "\
A and B are two scenarios, or one with two of --config or --policy. Of one scenario with one --config or
--policy, A is how it is without and B with it. What is given once beside something that differs is for both.
Each seed is compared with itself. Exit code 1 if a side failed.

Examples:
  argosy sim compare llama3-54d --policy new-policy.yaml --seeds 1..20
  argosy sim compare llama3-54d --config today.yaml --config tomorrow.yaml --html saved.html
  argosy sim compare small-fleet.yaml large-fleet.yaml --config today.yaml -o json")]
pub(super) struct Compare {
    /// One scenario or two: names of `argosy sim list`, or files.
    #[arg(value_name = "NAME|FILE", num_args = 1..=2, required = true)]
    scenarios: Vec<String>,
    /// The server's configuration file: of A, then of B.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// A health policy: of A, then of B.
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// Play every heartbeat, also where nothing can come of it. Slower by far.
    #[arg(long)]
    every_beat: bool,
    /// The seeds that both are played with.
    #[arg(long, value_name = "FIRST..LAST", default_value = "1..10")]
    seeds: Seeds,
    /// Write the comparison as one page to send around.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the comparison as JSON, besides what is printed.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    playing: Playing,
}

/// `argosy sim compare`
pub(super) fn run(args: &Compare, screen: Screen) -> Result<Exit, Failure> {
    let [(a, of_a), (b, of_b)] = sides(args)?;
    // Both before either is played: a mistake in B must not cost the time of A.
    let (a, b) = (Given::read(&a, &of_a)?, Given::read(&b, &of_b)?);
    let side = |label| Part { label, sides: 2, ..Part::default() };
    let played_a = play(&a, args.seeds, &args.playing, screen, &side("A: "))?;
    if played_a.interrupted {
        return Err(Failure::new(Exit::Interrupted, "interrupted before B was played"));
    }
    let played_b = play(&b, args.seeds, &args.playing, screen, &side("B: "))?;
    let comparison = compare(&played_a.outcomes, &played_b.outcomes);
    let sides = Sides { a: a.about, b: b.about };
    show(
        args.playing.output,
        screen,
        || as_document(&sides, &comparison),
        |pen| text(&sides, &comparison, pen),
    );
    if let Some(path) = &args.html {
        write(path, "report", &html(&sides, &comparison))?;
    }
    if let Some(path) = &args.json {
        write(path, "report", &document(&as_document(&sides, &comparison), false))?;
    }
    let failed = !comparison.a_failed.is_empty() || !comparison.b_failed.is_empty();
    Ok(match (failed, played_b.interrupted) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Ok,
    })
}

/// What A and B are.
fn sides(args: &Compare) -> Result<[(String, Configured); 2], Failure> {
    for (flag, files) in [("--config", &args.config), ("--policy", &args.policy)] {
        if 2 < files.len() {
            return Err(Failure::usage(format!("{flag} is given {} times", files.len()))
                .fix("give it once or twice: there are two sides"));
        }
    }
    let differs = args.scenarios.len() == 2 || args.config.len() == 2 || args.policy.len() == 2;
    if !differs && args.config.is_empty() && args.policy.is_empty() {
        return Err(Failure::usage("there is nothing to compare with")
            .fix("name a second scenario, or give --config or --policy"));
    }
    let side = |place: usize| {
        let of = |files: &[PathBuf]| match files {
            [one] => (differs || place == 1).then(|| one.clone()),
            files => files.get(place).cloned(),
        };
        let scenario = args.scenarios.get(place).or(args.scenarios.first());
        let configured = Configured {
            config: of(&args.config),
            policy: of(&args.policy),
            every_beat: args.every_beat,
        };
        (scenario.cloned().unwrap_or_default(), configured)
    };
    Ok([side(0), side(1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        compare: Compare,
    }

    fn told(line: &str) -> String {
        let words = ["compare"].into_iter().chain(line.split_whitespace());
        let args = Line::try_parse_from(words).unwrap().compare;
        match sides(&args) {
            Ok(sides) => {
                let side = |(scenario, of): &(String, Configured)| {
                    let file = |path: &Option<PathBuf>| {
                        path.as_ref().map_or("-".to_owned(), |path| path.display().to_string())
                    };
                    format!("{scenario} {} {}", file(&of.config), file(&of.policy))
                };
                sides.iter().map(side).collect::<Vec<_>>().join(" | ")
            }
            Err(failure) => failure.what,
        }
    }

    #[test]
    fn the_two_sides_follow_from_what_is_given_twice() {
        let rows = [
            ("x y", "x - - | y - -"),
            ("x y --config c", "x c - | y c -"),
            ("x --config c", "x - - | x c -"),
            ("x --policy p", "x - - | x - p"),
            ("x --config c --policy p", "x - - | x c p"),
            ("x --config c --config d", "x c - | x d -"),
            ("x --config c --policy p --policy q", "x c p | x c q"),
            ("x y --config c --config d", "x c - | y d -"),
            ("x", "there is nothing to compare with"),
            ("x --policy a --policy b --policy c", "--policy is given 3 times"),
        ];
        for (line, expected) in rows {
            assert_eq!(told(line), expected, "{line}");
        }
    }
}
