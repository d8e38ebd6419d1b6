//! `argosy provider`: who makes machines.

use super::instance::{reason, together};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, clean, document, note, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::instance::Provider;
use clap::{Args, Subcommand};

/// See where machines come from, and what is stopped there.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy provider list
  argosy provider list -o json
  argosy provider thaw aws --reason 'the account was emptied on purpose'")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    #[command(visible_alias = "ls")]
    List(List),
    Thaw(Thaw),
}

/// List providers: how many machines, what they cost, and what is stopped.
#[derive(Args, Debug)]
#[command(after_help = "\
What may be stopped:
  paused  nothing is bought there: the provider refuses our credentials; it is tried again
  frozen  its listings miss too many machines to be believed: nothing is concluded from them

$/H is what instances and orphans cost an hour; `+ 3 unknown` counts those without a known price.

Examples:
  argosy provider list
  argosy provider list -o wide")]
struct List {}

/// Have a provider's listings believed that miss too many machines.
///
/// The machines that are missing are then taken for gone and replaced. Do this only if they really are gone;
/// listings that show them again are believed by themselves. It holds until two whole listings were believed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy provider thaw aws --reason 'somebody deleted them in the console'")]
struct Thaw {
    /// Which, by its name in the server's configuration.
    #[arg(value_name = "PROVIDER")]
    provider: String,
    /// Why; it is kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

/// `argosy provider`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::List(List {}) => list(session).await,
        Verbs::Thaw(args) => thaw(session, &args).await,
    }
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let list = session.client.providers().await.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&list), session.format == Format::Yaml));
        }
        Format::Name => {
            let line = |provider: &Provider| format!("provider/{}\n", clean(&provider.name));
            print(&list.items.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide if list.items.is_empty() => {
            note("no providers; name them under `providers:` in the server's configuration");
        }
        Format::Table | Format::Wide => {
            let screen = match session.format {
                Format::Wide => session.screen.unbounded(),
                Format::Table | Format::Json | Format::Yaml | Format::Name => session.screen,
            };
            let grid = grid(&list.items, Times::relative(session));
            print(&grid.render(&screen, session.headers));
        }
    }
    Ok(Exit::Ok)
}

fn grid(providers: &[Provider], times: Times) -> Grid {
    let mut grid =
        Grid::new(&["PROVIDER", "IS", "RUNNING", "OTHER", "ORPHANS", "$/H", "LISTED", "REASON"])
            .sparse();
    for provider in providers {
        let (is, paint, reason) = state(provider);
        let running = provider.instances.get("Running").copied().unwrap_or(0);
        let open = ["Provisioning", "AwaitingNode", "Terminating"];
        let other: Vec<String> = open
            .iter()
            .filter_map(|state| Some((state, provider.instances.get(*state)?)))
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        let orphans = match provider.orphans {
            0 => (String::new(), Paint::Plain),
            count => (count.to_string(), Paint::Busy),
        };
        grid.row([
            (provider.name.clone(), Paint::Plain),
            (is.to_owned(), paint),
            (running.to_string(), Paint::Plain),
            (other.join(", "), Paint::Plain),
            orphans,
            (cost(provider), Paint::Plain),
            (
                provider.listed_at.as_deref().map(|at| times.age(at)).unwrap_or_default(),
                Paint::Plain,
            ),
            (reason, Paint::Plain),
        ]);
    }
    grid
}

/// `88.40`; `88.40 + 3 unknown`, where machines have no known price.
fn cost(provider: &Provider) -> String {
    match provider.unpriced {
        0 => format!("{:.2}", provider.cost_per_hour),
        unpriced if provider.cost_per_hour == 0.0 => format!("{unpriced} unknown"),
        unpriced => format!("{:.2} + {unpriced} unknown", provider.cost_per_hour),
    }
}

fn state(provider: &Provider) -> (&'static str, Paint, String) {
    match (&provider.frozen, &provider.paused, provider.configured) {
        (Some(frozen), _, _) => ("frozen", Paint::Bad, frozen.message.clone()),
        (None, Some(paused), _) => ("paused", Paint::Bad, paused.message.clone()),
        (None, None, false) => {
            let reason = "it is not in the configuration any more, and machines of it may exist";
            ("missing", Paint::Bad, reason.to_owned())
        }
        (None, None, true) => ("ok", Paint::Good, String::new()),
    }
}

async fn thaw(session: &Session, args: &Thaw) -> Result<Exit, Failure> {
    let reason = reason(&args.reason)?;
    let name = args.provider.strip_prefix("provider/").unwrap_or(&args.provider);
    let list = session.client.providers().await.map_err(|error| session.failure(error))?;
    let known = list.items.iter().find(|provider| provider.name == name);
    if let Some(frozen) = known.and_then(|provider| provider.frozen.as_ref()) {
        let missing = frozen.expected.saturating_sub(frozen.found);
        let cost = known.map(|provider| together(provider.cost_per_hour, provider.unpriced));
        let cost = cost.unwrap_or_default();
        note(&clean(&format!(
            "{name}: {} of {} machines are shown; the other {missing} are then taken for gone and \
             replaced (all of them: {cost})",
            frozen.found, frozen.expected
        )));
        let question = format!("Believe what {name} shows, in {}?", session.target.name);
        session.confirm(&question, args.yes)?;
    }
    let thawed = session.client.thaw_provider(name, reason).await;
    let thawed = thawed.map_err(|error| {
        let missing = error.status() == Some(404);
        let failure = session.failure(error);
        if missing { failure.fix("`argosy provider list` shows which there are") } else { failure }
    })?;
    match thawed {
        true => note(&format!("the listings of {} are believed again", clean(name))),
        false => note(&format!("the listings of {} were not in doubt", clean(name))),
    }
    Ok(Exit::Ok)
}
