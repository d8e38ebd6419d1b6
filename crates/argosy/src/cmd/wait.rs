//! `argosy wait`, and `--wait` of other commands: until a resource is as it should be.

mod lanes;

use super::resource::Noun;
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::output::{clean, note};
use crate::session::Session;
use crate::view;
use argosy_api::client::{ClientError, Collection};
use argosy_api::resource::{Resource, Tri, WatchKind};
use argosy_api::status::{AdapterPhase, StatusList};
use clap::Args;
use lanes::Lanes;
use std::str::FromStr;

/// Wait until a resource is ready, gone, or has a condition.
#[derive(Args, Debug)]
#[command(after_help = "\
Shows what each adapter does while it waits. Ctrl-C detaches; the work goes on.

Examples:
  argosy wait cluster/alpha --for Ready --timeout 10m
  argosy wait nodepool/alpha/workers --for Ready
  argosy wait cluster/alpha --for deleted
  argosy wait cluster/alpha --for condition=DnsSuccessful
  argosy wait cluster/alpha --for condition=Healthy=False")]
pub(crate) struct Wait {
    /// cluster/NAME, nodepool/CLUSTER/NAME, or nodepool/NAME with -c CLUSTER.
    #[arg(value_name = "KIND/NAME")]
    resource: String,
    /// The cluster of a node pool.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Ready, deleted, or condition=TYPE[=STATUS].
    #[arg(long = "for", default_value = "Ready", value_name = "GOAL")]
    goal: Goal,
    /// How long to wait. Exit code 8 when it is over.
    #[arg(long, default_value = "30m", value_name = "DURATION")]
    timeout: Duration,
    /// End with exit code 1 as soon as an adapter fails, although it will be tried again.
    #[arg(long)]
    fail_fast: bool,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Goal {
    Ready,
    Deleted,
    Condition { kind: String, status: Tri },
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('=').collect();
        match parts.as_slice() {
            [word] | ["phase", word] if word.eq_ignore_ascii_case("ready") => Ok(Goal::Ready),
            [word] if word.eq_ignore_ascii_case("deleted") => Ok(Goal::Deleted),
            ["condition", kind] if !kind.is_empty() => {
                Ok(Goal::Condition { kind: (*kind).to_owned(), status: Tri::True })
            }
            ["condition", kind, status] if !kind.is_empty() => {
                let status = match status.to_ascii_lowercase().as_str() {
                    "true" => Tri::True,
                    "false" => Tri::False,
                    "unknown" => Tri::Unknown,
                    _ => return Err(format!("`{status}` is not True, False or Unknown")),
                };
                Ok(Goal::Condition { kind: (*kind).to_owned(), status })
            }
            _ => Err("write Ready, deleted, or condition=TYPE[=STATUS]".to_owned()),
        }
    }
}

impl Goal {
    fn reached(&self, item: &Resource) -> bool {
        match self {
            Goal::Ready => item.status.phase == "Ready",
            Goal::Deleted => false,
            Goal::Condition { kind, status } => {
                item.status.conditions.iter().any(|c| c.kind == *kind && c.status == *status)
            }
        }
    }

    /// As it is written after `--for`.
    fn text(&self) -> String {
        match self {
            Goal::Ready => "Ready".to_owned(),
            Goal::Deleted => "deleted".to_owned(),
            Goal::Condition { kind, status } => format!("condition={kind}={status:?}"),
        }
    }
}

/// `argosy wait`
pub(super) async fn wait(session: &Session, args: Wait) -> Result<Exit, Failure> {
    let (noun, name) = match args.resource.split_once('/') {
        Some(("cluster" | "clusters", name)) => (Noun::CLUSTERS, name),
        Some(("nodepool" | "nodepools" | "np", name)) => (Noun::of_pools(args.cluster), name),
        Some(_) | None => {
            return Err(Failure::usage(format!("`{}` is not KIND/NAME", args.resource))
                .fix("write cluster/NAME or nodepool/CLUSTER/NAME"));
        }
    };
    until(session, &noun, name, &args.goal, args.timeout, args.fail_fast).await
}

/// Waits for the goal and shows the way there.
///
/// Flow: the resource is read, then watched; each change is compared with the goal. The exit code
/// says what happened: 0 reached, 1 cannot be reached any more, 8 too late, 130 detached.
pub(super) async fn until(
    session: &Session,
    noun: &Noun,
    name: &str,
    goal: &Goal,
    timeout: Duration,
    fail_fast: bool,
) -> Result<Exit, Failure> {
    let reference = noun.reference(name);
    let mut lanes = Lanes::new(session.screen, session.clock);
    let outcome = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {
            lanes.close();
            return Err(detached(noun, &reference, goal));
        }
        outcome = tokio::time::timeout(
            timeout.std(),
            watch(session, noun, name, goal, fail_fast, &mut lanes),
        ) => outcome,
    };
    lanes.close();
    let last = lanes.last();
    match outcome {
        Ok(Ok(())) => {
            let took = lanes.elapsed();
            let word = match goal {
                Goal::Ready => "is Ready".to_owned(),
                Goal::Deleted => "is gone".to_owned(),
                Goal::Condition { .. } => format!("has {}", goal.text()),
            };
            note(&format!("{} {} {word} after {took}", noun.word(), clean(&reference)));
            Ok(Exit::Ok)
        }
        Ok(Err(failure)) => Err(explain(failure, noun, &reference, last)),
        Err(_late) => {
            let what = format!(
                "{} {} is not {} after {timeout}",
                noun.word(),
                clean(&reference),
                goal.text()
            );
            Err(explain(Failure::new(Exit::Timeout, what), noun, &reference, last))
        }
    }
}

fn detached(noun: &Noun, reference: &str, goal: &Goal) -> Failure {
    Failure::new(Exit::Interrupted, "detached; the work goes on without this terminal").fix(
        format!(
            "argosy wait {}/{} --for {} waits again",
            noun.command(),
            clean(reference),
            goal.text()
        ),
    )
}

async fn watch(
    session: &Session,
    noun: &Noun,
    name: &str,
    goal: &Goal,
    fail_fast: bool,
    lanes: &mut Lanes,
) -> Result<(), Failure> {
    let (of, id) = noun.item(name);
    let mut item = match session.client.get(of, id).await {
        Ok(item) => item,
        Err(error) if error.status() == Some(404) && *goal == Goal::Deleted => return Ok(()),
        Err(error) => return Err(session.missing(error, of, id).await),
    };
    loop {
        if judge(session, of, id, goal, fail_fast, &item, lanes).await? {
            return Ok(());
        }
        // By its uid: a successor of the same name is not what is waited for.
        let uid = item.uid.clone();
        let mut watch = session.client.watch(of, Some(id), &[], Some(item.revision));
        let error = loop {
            let event = match watch.next().await {
                Ok(event) => event,
                Err(error) => break error,
            };
            match (
                event.kind,
                event.object.and_then(|o| serde_json::from_value::<Resource>(o).ok()),
            ) {
                (WatchKind::Deleted, _) => return gone(goal),
                (WatchKind::Added | WatchKind::Modified, Some(next)) => {
                    if next.uid != uid {
                        return gone(goal);
                    }
                    if judge(session, of, id, goal, fail_fast, &next, lanes).await? {
                        return Ok(());
                    }
                }
                (WatchKind::Added | WatchKind::Modified, None)
                | (WatchKind::Bookmark | WatchKind::Error, _) => {}
            }
        };
        match (error.status(), session.client.get(of, id).await) {
            (Some(404), _) => return gone(goal),
            (Some(410), Ok(next)) if next.uid == uid => item = next,
            (Some(410), Ok(_)) => return gone(goal),
            (Some(410), Err(later)) if later.status() == Some(404) => return gone(goal),
            (_, _) => return Err(session.failure(error)),
        }
    }
}

fn gone(goal: &Goal) -> Result<(), Failure> {
    match goal {
        Goal::Deleted => Ok(()),
        Goal::Ready | Goal::Condition { .. } => {
            Err(Failure::failed(format!("it was deleted and will never be {}", goal.text())))
        }
    }
}

/// Shows where the adapters are, and says whether the goal is reached.
async fn judge(
    session: &Session,
    of: Collection<'_>,
    id: &str,
    goal: &Goal,
    fail_fast: bool,
    item: &Resource,
    lanes: &mut Lanes,
) -> Result<bool, Failure> {
    match session.client.statuses(of, id).await {
        Ok(list) => lanes.show(&list),
        // It may be gone, or the server away; the watch will tell.
        Err(
            ClientError::Problem(_)
            | ClientError::Unreachable { .. }
            | ClientError::Unexpected { .. },
        ) => {}
    }
    if goal.reached(item) {
        return Ok(true);
    }
    if *goal == Goal::Ready && item.deleted_time.is_some() {
        return Err(Failure::failed("it is being deleted and will not become Ready"));
    }
    let failed = lanes.last().and_then(|list| failing(list));
    match (fail_fast, failed) {
        (true, Some(adapter)) => Err(Failure::failed(format!("adapter {} failed", clean(adapter)))),
        (true, None) | (false, _) => Ok(false),
    }
}

/// The first adapter that failed.
fn failing(list: &StatusList) -> Option<&str> {
    let mut lines = list.statuses.iter().flatten();
    lines.find(|line| line.phase == AdapterPhase::Failed).map(|line| line.adapter_name.as_str())
}

/// Adds what the adapters last said: which one holds things up, why, and what to do.
fn explain(
    mut failure: Failure,
    noun: &Noun,
    reference: &str,
    last: Option<&StatusList>,
) -> Failure {
    let blocking = last.and_then(|list| Some((view::blocking(list)?, list)));
    if let Some((line, list)) = blocking {
        let reason = view::condition(list, &line.adapter_name, "Available").map_or("", |c| c.1);
        let reason = if reason.is_empty() { String::new() } else { format!("{reason}: ") };
        failure = failure.why(clean(&format!(
            "adapter {} is {:?}: {reason}{}",
            line.adapter_name, line.phase, line.message
        )));
        if let Some(step) = next_step(reason.trim_end_matches(": ")) {
            failure = failure.fix(step);
        }
    }
    failure.fix(format!(
        "argosy {} statuses {} shows every adapter",
        noun.command(),
        clean(reference)
    ))
}

/// What to do about a reason we know. It will be tried again by itself.
fn next_step(reason: &str) -> Option<&'static str> {
    match reason {
        "QuotaExceeded" => {
            Some("raise the quota or ask for less; it is then tried again by itself")
        }
        "DNSZoneNotFound" => Some("create the DNS zone; it is then tried again by itself"),
        "PermissionDenied" => Some("grant the permission; it is then tried again by itself"),
        "Stalled" | "Timeout" => Some("look at the adapter's own log; it is tried again by itself"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
