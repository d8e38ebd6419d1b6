//! `argosy why`: the story of how something came to be as it is.

use super::node::plain_id;
use super::resource::Noun;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Paint, Screen, clean, document, print, wrap};
use crate::session::Session;
use crate::view::{self, Times, to_value};
use argosy_api::node::{Why as Story, WhyStep};
use argosy_api::resource::{Condition, Resource, Tri};
use argosy_api::status::StatusList;
use clap::Args;
use serde_json::json;

/// Say why a node, a cluster or a node pool is as it is.
///
/// Of a node: the chain from the event (with the kernel's line) over rule, budget and decision to the
/// command and its result, each with its time and revision. Of a cluster or node pool: which adapter holds
/// it up.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy why gpu-17
  argosy why node/gpu-17 -o wide
  argosy why node/gpu-17 -o json
  argosy why cluster/alpha
  argosy why nodepool/alpha/workers")]
pub(crate) struct Why {
    /// NODE, node/NODE, cluster/NAME or nodepool/CLUSTER/NAME.
    #[arg(value_name = "THING")]
    thing: String,
}

/// `argosy why`
pub(super) async fn run(session: &Session, args: Why) -> Result<Exit, Failure> {
    match args.thing.split_once('/') {
        Some(("cluster" | "clusters", name)) => resource(session, &Noun::CLUSTERS, name).await,
        Some(("nodepool" | "nodepools" | "np", name)) => {
            resource(session, &Noun::of_pools(None), name).await
        }
        Some(("node" | "nodes", id)) => node(session, id).await,
        Some(_) => Err(Failure::usage(format!("`{}` is not KIND/NAME", clean(&args.thing)))
            .fix("write node/ID, cluster/NAME or nodepool/CLUSTER/NAME")),
        None => node(session, plain_id(&args.thing)).await,
    }
}

async fn node(session: &Session, id: &str) -> Result<Exit, Failure> {
    let story = match session.client.why(id).await {
        Ok(story) => story,
        Err(error) => return Err(session.missing_node(error, id).await),
    };
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&story), session.format == Format::Yaml));
        }
        Format::Name => print(&format!("node/{}\n", clean(&story.node_id))),
        Format::Table | Format::Wide => {
            print(&tell(&session.screen, &story, Times::of(session)));
        }
    }
    Ok(Exit::Ok)
}

/// How far a step stands in: what follows from what is further to the right.
fn depth(step: &WhyStep) -> usize {
    match step.kind.as_str() {
        "verdict" | "finding" => 1,
        "health" | "status" => 2,
        "decision" => 3,
        "command" => 4,
        "result" | "external" => 5,
        _ => 0,
    }
}

/// `r1042`; nothing if the ledger does not reach back to it.
fn revision(step: &WhyStep) -> String {
    if step.revision == 0 { String::new() } else { format!("r{}", step.revision) }
}

fn tell(screen: &Screen, story: &Story, times: Times) -> String {
    let columns = screen.width.map_or(usize::MAX, usize::from);
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    let status = story.status.as_str();
    let summary = clean(&story.summary);
    for part in wrap(&summary, columns) {
        line(&part.replacen(status, &screen.paint(status, Paint::of_state(status)), 1));
    }
    if !story.steps.is_empty() {
        line("");
    }
    let ages: Vec<String> = story.steps.iter().map(|step| times.age(&step.at)).collect();
    let age_width = ages.iter().map(|age| age.chars().count()).max().unwrap_or(0);
    let revisions = story.steps.iter().map(|step| revision(step).len()).max();
    let revision_width = revisions.unwrap_or(0);
    // A step that rests on something stands in from it, but never further than one more than the last.
    let mut last = 0;
    for (step, age) in story.steps.iter().zip(&ages) {
        let stands_in = if step.kind == "omitted" { last } else { depth(step).min(last + 1) };
        last = stands_in;
        let front = format!(
            "{age:>age_width$}  {:<revision_width$}  {:indent$}",
            revision(step),
            "",
            indent = 2 * stands_in
        );
        let behind = front.chars().count();
        let room = columns.saturating_sub(behind);
        let said = format!("{}: {}", clean(&step.kind), clean(&step.message));
        for (place, part) in wrap(&said, room).into_iter().enumerate() {
            if place == 0 {
                line(&format!("{front}{part}"));
            } else {
                line(&format!("{:behind$}  {part}", ""));
            }
        }
        for evidence in &step.evidence {
            for part in wrap(&clean(evidence), room.saturating_sub(4)) {
                line(&format!("{:behind$}  | {part}", ""));
            }
        }
    }
    if !story.next.is_empty() {
        line("");
        line("What you can do:");
        for next in &story.next {
            for (place, part) in wrap(&clean(next), columns.saturating_sub(4)).iter().enumerate() {
                line(&format!("  {} {part}", if place == 0 { "-" } else { " " }));
            }
        }
    }
    text
}

async fn resource(session: &Session, noun: &Noun, name: &str) -> Result<Exit, Failure> {
    let (of, id) = noun.item(name);
    let item = match session.client.get(of, id).await {
        Ok(item) => item,
        Err(error) => return Err(session.missing(error, of, id).await),
    };
    let statuses = session.client.statuses(of, id).await;
    let statuses = statuses.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => {
            let value = json!({
                "kind": "Why",
                "name": item.name,
                "phase": item.status.phase,
                "conditions": to_value(&item.status.conditions),
                "blocking": view::blocking(&statuses).map(to_value),
            });
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => print(&view::name_line(&item)),
        Format::Table | Format::Wide => {
            let times = Times::of(session);
            print(&of_resource(&session.screen, noun, name, &item, &statuses, times));
        }
    }
    Ok(Exit::Ok)
}

fn of_resource(
    screen: &Screen,
    noun: &Noun,
    name: &str,
    item: &Resource,
    list: &StatusList,
    times: Times,
) -> String {
    let phase = &item.status.phase;
    let painted = screen.paint(&clean(phase), Paint::of_state(phase));
    let reference = clean(&noun.reference(name));
    let mut text = format!("{} {reference} is {painted}", noun.word());
    let why = clean(&view::why(item));
    if !why.is_empty() {
        text.push_str(&format!(": {why}"));
    }
    text.push('\n');
    if let Some(line) = view::blocking(list) {
        let since = times.ago(&line.last_transition_time);
        text.push_str(&format!(
            "\n  adapter {} is {:?}, {since}: {}\n",
            clean(&line.adapter_name),
            line.phase,
            clean(&line.message)
        ));
    }
    let told = |c: &&Condition| c.status != Tri::True || c.kind == "Stalled";
    for condition in item.status.conditions.iter().filter(told) {
        text.push_str(&format!(
            "  {}={:?}, {}: {}: {}\n",
            clean(&condition.kind),
            condition.status,
            times.ago(&condition.last_transition_time),
            clean(&condition.reason),
            clean(&condition.message)
        ));
    }
    text.push_str(&format!(
        "\nWhat you can do:\n  - argosy {} statuses {reference} shows every adapter\n",
        noun.command()
    ));
    text
}

#[cfg(test)]
mod tests;
