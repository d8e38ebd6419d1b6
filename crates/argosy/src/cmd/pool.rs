//! `argosy nodepool explain|simulate|resume`: a node pool as a fleet of machines.

use super::instance::{reason, table, together};
use super::resource::Noun;
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, clean, document, indent, note, print, wrap};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::client::{ClientError, Collection};
use argosy_api::instance::{PoolExplanation, PoolResume, PoolSample, SimulateRequest, Simulation};
use argosy_core::machine::HourlyCost;
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The largest file of an autoscaling or a history: two weeks of samples fit with room to spare.
const FILE_LEN_MAX: u64 = 16 * 1024 * 1024;

/// Say why a node pool is as it is: its size, its machines, what failed where, and what is next.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy nodepool explain prod/h100
  argosy nodepool explain h100 -c prod -o json")]
pub(super) struct Explain {
    /// Which.
    #[arg(value_name = "NODEPOOL")]
    name: String,
}

/// Replay what was measured through an autoscaler: what would it have done, and for how much?
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is changed. Without --autoscaling, the pool's own is replayed; FILE is YAML or JSON, as it would stand
in spec.autoscaling.

Examples:
  argosy nodepool simulate prod/h100 --from history
  argosy nodepool simulate prod/h100 --autoscaling queue.yaml --max 32
  argosy nodepool simulate prod/h100 --from samples.json --boot 12m -o json")]
pub(super) struct Simulate {
    /// Which.
    #[arg(value_name = "NODEPOOL")]
    name: String,
    /// What was measured: `history` is what the server did, anything else a file with samples.
    #[arg(long, value_name = "history|FILE", default_value = "history")]
    from: String,
    /// The autoscaling to try.
    #[arg(long, value_name = "FILE")]
    autoscaling: Option<PathBuf>,
    /// The smallest size; the pool's without it.
    #[arg(long, value_name = "COUNT")]
    min: Option<u32>,
    /// The largest size; the pool's without it.
    #[arg(long, value_name = "COUNT")]
    max: Option<u32>,
    /// How many nodes it begins with; as many as were measured first without it.
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u32>,
    /// How long a machine takes until its node is ready.
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    boot: Duration,
}

/// Let buying and updating go on for a node pool that stopped.
#[derive(Args, Debug)]
#[command(after_help = "\
A pool stops buying when three machines in a row never register, or new machines are sick within an hour; and it stops
an update when nodes of the new kind turn sick. `argosy nodepool explain` says which, and why.

Examples:
  argosy nodepool explain prod/h100
  argosy nodepool resume prod/h100 --reason 'the image is mended'
  argosy nodepool resume prod/h100 --rollback --reason 'the new image has no driver'")]
pub(super) struct Resume {
    /// Which.
    #[arg(value_name = "NODEPOOL")]
    name: String,
    /// Go back to the last spec with which all nodes were in service.
    #[arg(long)]
    rollback: bool,
    /// Why; it is kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// The cluster and the name of a pool, as a person writes it.
fn named<'a>(noun: &'a Noun, name: &'a str) -> (Option<&'a str>, &'a str) {
    let name = name.strip_prefix("nodepool/").unwrap_or(name);
    match name.split_once('/') {
        Some((cluster, name)) => (Some(cluster), name),
        None => (noun.cluster.as_deref(), name),
    }
}

async fn missing(session: &Session, error: ClientError, of: (Option<&str>, &str)) -> Failure {
    let collection = of.0.map_or(Collection::AllNodePools, Collection::NodePools);
    session.missing(error, collection, of.1).await
}

/// `argosy nodepool explain`
pub(super) async fn explain(
    session: &Session,
    noun: &Noun,
    args: &Explain,
) -> Result<Exit, Failure> {
    let of = named(noun, &args.name);
    let explained = match session.client.explain_nodepool(of.0, of.1).await {
        Ok(explained) => explained,
        Err(error) => return Err(missing(session, error, of).await),
    };
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&explained), session.format == Format::Yaml));
        }
        Format::Name => print(&format!("nodepool/{}\n", clean(&explained.name))),
        Format::Table | Format::Wide => {
            print(&page(&session.screen, &explained, Times::of(session)));
            if !explained.members.is_empty() {
                let members = table(session, &explained.members);
                print(&format!("\nINSTANCES\n{}", indent(&members, 2)));
            }
        }
    }
    Ok(Exit::Ok)
}

fn page(screen: &Screen, explained: &PoolExplanation, times: Times) -> String {
    let columns = screen.width.map_or(usize::MAX, usize::from);
    let mut text = String::new();
    for line in wrap(&clean(&explained.summary), columns) {
        text.push_str(&format!("{line}\n"));
    }
    let mut member = |name: &str, said: String| {
        if !said.is_empty() {
            text.push_str(&format!("{name:<12}{}\n", clean(&said)));
        }
    };
    let target = match explained.target {
        Some(target) => {
            format!("{target} nodes by its autoscaler; the spec says {}", explained.asked)
        }
        None => format!("{} nodes, as the spec says", explained.asked),
    };
    member("Size", target);
    let cost = together(explained.cost_per_hour, explained.unpriced);
    member(
        "Cost",
        match explained.orphans {
            0 => cost,
            orphans => format!("{cost}, with {orphans} orphaned (argosy instance list --orphans)"),
        },
    );
    if let Some(report) = &explained.report {
        let said = format!("Available={} {}: {}", report.available, report.reason, report.message);
        member("Adapter", said);
        member("What to do", report.guidance.clone().unwrap_or_default());
    }
    let kept = || explained.members.iter().filter(|member| member.blocked.is_some());
    if let Some(blocked) = kept().find_map(|member| member.blocked.as_ref()) {
        let count = kept().count();
        let cost: HourlyCost = kept().map(|member| member.cost_per_hour).collect();
        let stay =
            if count == 1 { "instance is to go and stays" } else { "instances are to go and stay" };
        let cost = together(cost.known, cost.unpriced);
        member("Held", format!("{count} {stay}, {cost}: {}", blocked.message));
    }
    if let Some(paused) = &explained.paused {
        let since = times.ago(&paused.since);
        member("Buying", format!("stopped {since}: {}: {}", paused.reason, paused.message));
    } else if 0 < explained.stale_in_a_row {
        let count = explained.stale_in_a_row;
        member("Buying", format!("goes on, although {count} in a row did not register"));
    }
    if let Some(failed) = &explained.update_failed {
        let since = times.ago(&failed.since);
        let back = match failed.rollback_generation {
            Some(generation) => format!("; --rollback goes back to generation {generation}"),
            None => String::new(),
        };
        let (instance, message) = (&failed.instance_id, &failed.message);
        member("Update", format!("stopped {since}: {instance} was sick: {message}{back}"));
    }
    if !explained.in_vain.is_empty() {
        let known: Option<f64> = explained.in_vain.iter().map(|vain| vain.cost).sum();
        let cost = known.map(|sum| format!("; they cost ${sum:.2}")).unwrap_or_default();
        let count = explained.in_vain.len();
        let of = explained.in_vain.iter().rev().take(3);
        let of = of.map(|vain| format!("{} ({})", vain.instance_id, vain.fate));
        let of = of.collect::<Vec<_>>().join(", ");
        member("In vain", format!("{count} instances lately did no work{cost}: {of}"));
    }
    if let Some(advice) = &explained.advice {
        member("Autoscaler", advice.sentence.clone());
        for part in &advice.parts {
            let wants = part.target.map_or_else(|| "no opinion".to_owned(), |n| n.to_string());
            member("", format!("{} ({}): {wants}: {}", part.at, part.policy, part.reason));
        }
        let next = advice.next.as_deref().map(|at| times.due(at)).unwrap_or_default();
        member("Next look", next);
    }
    let mut section = |title: &str, grid: Grid, empty: bool| {
        if !empty {
            let lines = grid.wrapping().compact().render(&screen.indented(2), true);
            text.push_str(&format!("\n{title}\n{}", indent(&lines, 2)));
        }
    };
    let mut places = Grid::new(&["PLACE", "FAILED", "AGAIN", "BECAUSE"]);
    for place in &explained.places {
        let failed = format!("{} in a row", place.failures);
        let cells = [place.place.clone(), failed, times.due(&place.until), place.message.clone()];
        places.row(cells.map(|cell| (cell, Paint::Plain)));
    }
    section("WHERE BUYING FAILED", places, explained.places.is_empty());
    let mut decisions = Grid::new(&["WHEN", "SIZE", "BECAUSE"]);
    for decision in &explained.decisions {
        let size = format!("{} -> {}", decision.from, decision.to);
        let cells = [times.age(&decision.at), size, decision.reason.clone()];
        decisions.row(cells.map(|cell| (cell, Paint::Plain)));
    }
    section("DECISIONS", decisions, explained.decisions.is_empty());
    text
}

/// `argosy nodepool simulate`
pub(super) async fn simulate(
    session: &Session,
    noun: &Noun,
    args: &Simulate,
) -> Result<Exit, Failure> {
    let of = named(noun, &args.name);
    let autoscaling = args.autoscaling.as_deref().map(|path| {
        let value: Value = read(path)?;
        // A whole spec, or a whole node pool, is understood as well.
        let inner = ["/spec/autoscaling", "/autoscaling"].iter().find_map(|at| value.pointer(at));
        Ok::<_, Failure>(inner.cloned().unwrap_or(value))
    });
    let history: Option<Vec<PoolSample>> = match args.from.as_str() {
        "history" => None,
        file => {
            let value: Value = read(Path::new(file))?;
            let items = value.get("items").cloned().unwrap_or(value);
            let samples = serde_json::from_value(items).map_err(|error| {
                Failure::usage(format!("{} holds no samples", clean(file))).why(error).fix(
                    "write what GET /nodepools/{id}/history answers: at, nodes, utilization, …",
                )
            })?;
            Some(samples)
        }
    };
    let boot_s = u32::try_from(args.boot.signed().as_secs())
        .map_err(|_| Failure::usage("--boot is too long").fix("at most 24h"))?;
    let body = SimulateRequest {
        autoscaling: autoscaling.transpose()?,
        history,
        min: args.min,
        max: args.max,
        nodes: args.nodes,
        boot_s: Some(boot_s),
    };
    let simulated = match session.client.simulate_nodepool(of.0, of.1, &body).await {
        Ok(simulated) => simulated,
        Err(error) => return Err(missing(session, error, of).await),
    };
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&simulated), session.format == Format::Yaml));
        }
        Format::Table | Format::Wide | Format::Name => {
            print(&steps(session, &simulated));
            for refused in &simulated.refused {
                note(&clean(refused));
            }
            note(&clean(&format!("{} samples: {}", simulated.samples, simulated.comparison)));
        }
    }
    Ok(Exit::Ok)
}

fn steps(session: &Session, simulated: &Simulation) -> String {
    let mut grid = Grid::new(&["AT", "SIZE", "READY", "NEEDED", "BECAUSE"]);
    for step in &simulated.steps {
        let size = match step.target == step.wanted {
            true => step.target.to_string(),
            false => format!("{} -> {}", step.wanted, step.target),
        };
        let short = step.need.is_some_and(|need| step.ready < need);
        let plain = |text: String| (text, Paint::Plain);
        grid.row([
            plain(step.at.clone()),
            plain(size),
            (step.ready.to_string(), if short { Paint::Bad } else { Paint::Plain }),
            plain(step.need.map(|need| need.to_string()).unwrap_or_default()),
            plain(step.reason.clone()),
        ]);
    }
    grid.wrapping().render(&session.screen, session.headers)
}

/// `argosy nodepool resume`
pub(super) async fn resume(session: &Session, noun: &Noun, args: &Resume) -> Result<Exit, Failure> {
    let body = PoolResume { reason: reason(&args.reason)?.to_owned(), rollback: args.rollback };
    let of = named(noun, &args.name);
    let resumed = match session.client.resume_nodepool(of.0, of.1, &body).await {
        Ok(resumed) => resumed,
        Err(error) => return Err(missing(session, error, of).await),
    };
    let name = clean(&noun.reference(&args.name));
    match resumed {
        true if args.rollback => note(&format!("{name} goes back to the last spec that worked")),
        true => note(&format!("{name} goes on")),
        false => note(&format!("{name} had not stopped")),
    }
    Ok(Exit::Ok)
}

/// A file of YAML or JSON.
fn read(path: &Path) -> Result<Value, Failure> {
    let shown = path.display();
    let cannot = |why: String| Failure::usage(format!("cannot read {shown}")).why(why);
    let len = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
    if FILE_LEN_MAX < len {
        return Err(cannot(format!("it has {len} bytes; at most {FILE_LEN_MAX} are read")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|error| {
        Failure::usage(format!("{shown} is neither YAML nor JSON")).why(clean(&error.to_string()))
    })
}

#[cfg(test)]
mod tests;
