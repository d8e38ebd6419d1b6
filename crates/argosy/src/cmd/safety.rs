//! `argosy pause`, `argosy resume` and `argosy safety`: the brakes on what the server does by itself.

use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, clean, document, indent, note, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::safety::{Brakes, Breaker, BudgetUse, Pause as Paused};
use clap::{Args, Subcommand};

/// Stop everything the server does to nodes by itself, everywhere or in one pool.
///
/// Nodes are still watched and judged, and people's commands are carried out. It holds until somebody
/// resumes, also over a restart of the server.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy pause --reason 'network maintenance until 18:00'
  argosy pause --pool prod/h100 --reason 'new driver'")]
pub(crate) struct Pause {
    /// Only in this pool: by the name that its nodes carry, by CLUSTER/NAME, or by its own name.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Why; shown to everybody who wonders, and kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Let the server act by itself again; what is true then is judged anew.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy resume
  argosy resume --pool h100")]
pub(crate) struct Resume {
    /// Only in this pool.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
}

/// Show whether the server acts by itself, and what keeps it from it.
#[derive(Args, Debug)]
#[command(
    subcommand_required = false,
    after_help = "\
Examples:
  argosy safety
  argosy safety -o json
  argosy safety close pool/default/h100 --reason 'the switch is back'"
)]
pub(crate) struct Safety {
    #[command(subcommand)]
    verb: Option<Verbs>,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    Close(Close),
}

/// Close a breaker by hand; what is true then is judged anew.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy safety close fleet --reason 'it was the switch'
  argosy safety close pool/default/h100 --reason 'it was the switch'")]
struct Close {
    /// Where, as `argosy safety` prints it: fleet, zone/… or pool/TENANT/POOL.
    #[arg(value_name = "SCOPE")]
    scope: String,
    /// Why; kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// `argosy pause`
pub(super) async fn pause(session: &Session, args: Pause) -> Result<Exit, Failure> {
    let reason = reason(&args.reason)?;
    let pause = session.client.pause(args.pool.as_deref(), reason).await;
    let pause = pause.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&pause), session.format == Format::Yaml));
        }
        Format::Name => print(&format!("pause/{}\n", clean(&of_pool(pause.pool.as_deref())))),
        Format::Table | Format::Wide => {
            let again = match &pause.pool {
                Some(pool) => format!("argosy resume --pool {}", clean(pool)),
                None => "argosy resume".to_owned(),
            };
            let whose = clean(&of_pool(pause.pool.as_deref()));
            note(&format!("automatic action is paused for {whose}; `{again}` lets it go on"));
        }
    }
    Ok(Exit::Ok)
}

/// `argosy resume`
pub(super) async fn resume(session: &Session, args: Resume) -> Result<Exit, Failure> {
    let released = session.client.resume(args.pool.as_deref()).await;
    let released = released.map_err(|error| session.failure(error))?;
    let whose = clean(&of_pool(args.pool.as_deref()));
    match released {
        true => note(&format!("automatic action goes on for {whose}")),
        false => {
            note(&format!("automatic action was not paused for {whose}"));
            let brakes = session.client.safety().await.map_err(|error| session.failure(error))?;
            for pause in &brakes.pauses {
                let other = clean(&of_pool(pause.pool.as_deref()));
                note(&format!("it is for {other}, by {}", clean(&pause.by)));
            }
        }
    }
    Ok(Exit::Ok)
}

/// `argosy safety`
pub(super) async fn safety(session: &Session, args: Safety) -> Result<Exit, Failure> {
    match args.verb {
        Some(Verbs::Close(args)) => close(session, &args).await,
        None => {
            let brakes = session.client.safety().await.map_err(|error| session.failure(error))?;
            match session.format {
                Format::Json | Format::Yaml => {
                    print(&document(&to_value(&brakes), session.format == Format::Yaml));
                }
                Format::Name => {
                    let line = |breaker: &Breaker| format!("breaker/{}\n", clean(&breaker.scope));
                    print(&brakes.breakers.iter().map(line).collect::<String>());
                }
                Format::Table | Format::Wide => {
                    print(&page(&session.screen, &brakes, Times::of(session)));
                }
            }
            Ok(Exit::Ok)
        }
    }
}

async fn close(session: &Session, args: &Close) -> Result<Exit, Failure> {
    let scope = args.scope.strip_prefix("breaker/").unwrap_or(&args.scope);
    let closed = session.client.close_breaker(scope, reason(&args.reason)?).await;
    match closed.map_err(|error| session.failure(error))? {
        true => note(&format!("the breaker of {} is closed", clean(scope))),
        false => note(&format!("the breaker of {} was not open", clean(scope))),
    }
    Ok(Exit::Ok)
}

fn reason(text: &str) -> Result<&str, Failure> {
    match text.trim() {
        "" => Err(Failure::usage("--reason says nothing")
            .fix("say why: whoever finds the fleet like this wants to know")),
        text => Ok(text),
    }
}

fn of_pool(pool: Option<&str>) -> String {
    pool.map_or_else(|| "everything".to_owned(), |pool| format!("pool {pool}"))
}

/// What keeps the server from acting, and how much of the budgets is used.
fn page(screen: &Screen, brakes: &Brakes, times: Times) -> String {
    let everywhere = brakes.pauses.iter().any(|pause| pause.pool.is_none());
    let breaker = brakes.breakers.iter().any(|breaker| breaker.scope == "fleet");
    let (word, paint) = match (everywhere, breaker, &brakes.isolated) {
        (true, _, _) => ("paused", Paint::Busy),
        (false, _, Some(_)) => ("held: cut off from the fleet", Paint::Bad),
        (false, true, None) => ("held by the breaker of the fleet", Paint::Bad),
        (false, false, None) if !brakes.pauses.is_empty() || !brakes.breakers.is_empty() => {
            ("on, but not everywhere", Paint::Busy)
        }
        (false, false, None) => ("on", Paint::Good),
    };
    let mut text = format!("Automatic action is {}\n", screen.paint(word, paint));
    for (name, sentence) in [("Isolated", &brakes.isolated), ("Amnesty", &brakes.amnesty)] {
        if let Some(sentence) = sentence {
            text.push_str(&format!("{name:<12}{}\n", clean(sentence)));
        }
    }
    let mut section = |title: &str, grid: Grid, empty: bool| {
        if !empty {
            let table = grid.wrapping().compact().render(&screen.indented(2), true);
            text.push_str(&format!("\n{title}\n{}", indent(&table, 2)));
        }
    };
    section("PAUSES", pauses(&brakes.pauses, times), brakes.pauses.is_empty());
    section("BREAKERS", breakers(&brakes.breakers, times), brakes.breakers.is_empty());
    section("BUDGETS", budgets(&brakes.budgets), brakes.budgets.is_empty());
    text
}

fn pauses(pauses: &[Paused], times: Times) -> Grid {
    let mut grid = Grid::new(&["OF", "SINCE", "BY", "REASON"]);
    for pause in pauses {
        let cells = [
            of_pool(pause.pool.as_deref()),
            times.age(&pause.at),
            pause.by.clone(),
            pause.reason.clone(),
        ];
        grid.row(cells.map(|cell| (cell, Paint::Plain)));
    }
    grid
}

fn breakers(breakers: &[Breaker], times: Times) -> Grid {
    let mut grid = Grid::new(&["SCOPE", "IS", "SINCE", "LAST BAD", "REASON"]);
    for breaker in breakers {
        let (is, paint) = match &breaker.half_open {
            None => ("open".to_owned(), Paint::Bad),
            Some(step) => {
                (format!("half open, {} of {} tried", step.taken, step.allowed), Paint::Busy)
            }
        };
        grid.row([
            (breaker.scope.clone(), Paint::Plain),
            (is, paint),
            (times.age(&breaker.opened_at), Paint::Plain),
            (times.age(&breaker.last_bad_at), Paint::Plain),
            (breaker.reason.clone(), Paint::Plain),
        ]);
    }
    grid
}

fn budgets(budgets: &[BudgetUse]) -> Grid {
    // Nodes that are warming up are not counted.
    let mut grid = Grid::new(&["SCOPE", "OUT OF SERVICE", "ALLOWED", "COUNTED NODES"]);
    for budget in budgets {
        let paint = if budget.used < budget.allowed { Paint::Plain } else { Paint::Busy };
        grid.row([
            (budget.scope.clone(), Paint::Plain),
            (budget.used.to_string(), if budget.used == 0 { Paint::Plain } else { paint }),
            (budget.allowed.to_string(), Paint::Plain),
            (budget.total.to_string(), Paint::Plain),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests;
