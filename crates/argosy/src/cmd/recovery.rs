//! `argosy recovery`: what waits for a confirmation after the store was restored or lost history.

use super::instance::reason;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, clean, document, indent, note, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::recovery::{Recovery, RecoveryList};
use clap::{Args, Subcommand};

/// See what waits after a restore, and let it go on.
///
/// After `argosy restore`, and after a failover to a database that misses commits, the store is older than the world:
/// what it takes for too many machines may be at work. So every node pool is in recovery. Its machines are listed and
/// its nodes register, and nothing is terminated, drained or bought. A pool that would do nothing leaves recovery by
/// itself; the others wait for a confirmation.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy recovery show
  argosy recovery confirm train.h100 --reason 'scaled to 4 again on purpose'")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    Show(Show),
    Confirm(Confirm),
}

/// List the pools in recovery, and what each would do and why.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy recovery show
  argosy recovery show train.h100
  argosy recovery show -o json")]
struct Show {
    /// Only this pool, as CLUSTER.POOL or by its id.
    #[arg(value_name = "POOL")]
    pool: Option<String>,
}

/// Let a pool do what `argosy recovery show` lists: terminate, drain and buy machines.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy recovery confirm train.h100 --reason 'scaled to 4 again on purpose'
  argosy recovery confirm train.h100 --reason 'checked with the team' --yes")]
struct Confirm {
    /// Which, as CLUSTER.POOL or by its id.
    #[arg(value_name = "POOL")]
    pool: String,
    /// Why; it is kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

/// `argosy recovery`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::Show(args) => show(session, &args).await,
        Verbs::Confirm(args) => confirm(session, &args).await,
    }
}

async fn show(session: &Session, args: &Show) -> Result<Exit, Failure> {
    let mut list = session.client.recovery().await.map_err(|error| session.failure(error))?;
    if let Some(pool) = &args.pool {
        list.items.retain(|item| is(item, pool));
    }
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&list), session.format == Format::Yaml));
        }
        Format::Name => {
            let line = |item: &Recovery| format!("recovery/{}\n", clean(&item.pool));
            print(&list.items.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide if list.items.is_empty() => {
            note("no node pool is in recovery")
        }
        Format::Table | Format::Wide => {
            print(&page(&session.screen, &list, Times::relative(session)));
        }
    }
    Ok(Exit::Ok)
}

fn is(item: &Recovery, pool: &str) -> bool {
    let pool = pool.strip_prefix("recovery/").unwrap_or(pool);
    item.pool == pool || item.pool_id == pool
}

fn page(screen: &Screen, list: &RecoveryList, times: Times) -> String {
    let mut text = String::new();
    if let Some(cause) = &list.incarnation.cause {
        text.push_str(&format!("In recovery: {}.\n\n", clean(cause)));
    }
    let mut pools =
        Grid::new(&["POOL", "SINCE", "TERMINATE", "DRAINED FIRST", "BUY", "WAITING FOR"]).sparse();
    for item in &list.items {
        let paint = if item.terminate == 0 { Paint::Plain } else { Paint::Bad };
        pools.row([
            (item.pool.clone(), Paint::Plain),
            (times.age(&item.since), Paint::Plain),
            (item.terminate.to_string(), paint),
            (item.drain.to_string(), Paint::Plain),
            (item.buy.to_string(), Paint::Plain),
            (item.waits_for.clone().unwrap_or_else(|| "confirmation".to_owned()), Paint::Busy),
        ]);
    }
    text.push_str(&pools.wrapping().render(screen, true));
    for item in list.items.iter().filter(|item| !item.steps.is_empty()) {
        let mut steps = Grid::new(&["WOULD", "WHAT", "WHY"]);
        for step in &item.steps {
            let cells = [step.action.clone(), step.target.clone(), step.reason.clone()];
            steps.row(cells.map(|cell| (cell, Paint::Plain)));
        }
        let table = steps.wrapping().compact().render(&screen.indented(2), true);
        text.push_str(&format!("\n{}\n{}", clean(&item.pool), indent(&table, 2)));
        let told = u32::try_from(item.steps.len()).unwrap_or(u32::MAX);
        let more = item.terminate.saturating_add(item.buy).saturating_sub(told);
        if 0 < more {
            text.push_str(&format!("  and {more} more\n"));
        }
    }
    text
}

async fn confirm(session: &Session, args: &Confirm) -> Result<Exit, Failure> {
    let reason = reason(&args.reason)?;
    let pool = args.pool.strip_prefix("recovery/").unwrap_or(&args.pool);
    let list = session.client.recovery().await.map_err(|error| session.failure(error))?;
    if let Some(item) = list.items.iter().find(|item| is(item, pool)) {
        note(&clean(&format!(
            "{pool}: {} machines are terminated, {} of them drained first; {} are bought",
            item.terminate, item.drain, item.buy
        )));
        if let Some(waits_for) = &item.waits_for {
            note(&clean(&format!("that may not be all: it waits for {waits_for}")));
        }
        let question = format!("Let {} go on, in {}?", clean(pool), session.target.name);
        session.confirm(&question, args.yes)?;
    }
    let confirmed = session.client.confirm_recovery(pool, reason).await;
    let confirmed = confirmed.map_err(|error| {
        let missing = error.status() == Some(404);
        let failure = session.failure(error);
        if missing {
            failure.fix("`argosy recovery show` lists the pools in recovery")
        } else {
            failure
        }
    })?;
    match confirmed {
        true => note(&format!("{} has left recovery", clean(pool))),
        false => note(&format!("{} was not in recovery", clean(pool))),
    }
    Ok(Exit::Ok)
}
