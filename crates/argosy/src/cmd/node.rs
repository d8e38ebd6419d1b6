//! `argosy node`: the machines of the fleet.

mod act;

mod args;

mod describe;

mod protect;

#[cfg(test)]
pub(super) mod fixture;

mod table;

mod timeline;

pub(super) use args::{Filter, Verb};
pub(super) use describe::gib;
pub(super) use table::{gpus, hottest, model, utilization};

use super::follow::{self, Subject};
use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, note, print};
use crate::session::Session;
use crate::view::Times;
use act::Order;
use argosy_api::client::{ClientError, Watch};
use argosy_api::command::Command;
use argosy_api::node::Node;
use args::{Get, List, Verbs};
use std::collections::BTreeMap;

/// How many of a node's latest commands its page shows.
const COMMANDS_SHOWN: &str = "5";

/// `argosy node`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::List(args) => list(session, &args).await,
        Verbs::Get(args) => get(session, &args).await,
        Verbs::Watch(args) => match &args.node {
            Some(node) => watch(session, Some(plain_id(node)), Vec::new()).await,
            None => watch(session, None, args.filter.query()?).await,
        },
        Verbs::Cordon(args) => {
            act::run(session, &args.act, &Order::cordon(), args.waiting.time()).await
        }
        Verbs::Uncordon(args) => {
            act::run(session, &args.act, &Order::uncordon(), args.waiting.time()).await
        }
        Verbs::Drain(args) => {
            let order = Order::drain(args.drain_for, args.force)?;
            let order = order.over_budget(args.budget.over_budget);
            act::run(session, &args.act, &order, args.waiting.time()).await
        }
        Verbs::Diagnose(args) => {
            let numbers = [("seconds", args.seconds), ("gpu", args.gpu), ("runs", args.runs)];
            let order = Order::diagnose(args.test, numbers).over_budget(args.budget.over_budget);
            let time = (!args.no_wait).then_some(args.timeout);
            act::run(session, &args.act, &order, time).await
        }
        Verbs::Terminate(args) => {
            let order = Order::terminate(args.force).over_budget(args.budget.over_budget);
            act::run(session, &args.act, &order, args.waiting.time()).await
        }
        Verbs::Delete(args) => act::delete(session, &args).await,
        Verbs::Protect(args) => protect::run(session, &args.nodes, true, &args.reason).await,
        Verbs::Unprotect(args) => protect::run(session, &args.nodes, false, &args.reason).await,
        Verbs::Events(args) => timeline::events(session, &args).await,
        Verbs::History(args) => timeline::history(session, &args).await,
    }
}

/// A node's id, also as `-o name` prints it.
pub(super) fn plain_id(text: &str) -> &str {
    text.strip_prefix("node/").unwrap_or(text)
}

async fn list(session: &Session, args: &List) -> Result<Exit, Failure> {
    let mut query = args.filter.query()?;
    if !args.order.is_empty() {
        let order: Vec<String> = args
            .order
            .iter()
            .map(|field| match field.strip_prefix('-') {
                Some(field) => format!("{field} desc"),
                None => format!("{field} asc"),
            })
            .collect();
        query.push(("order", order.join(",")));
    }
    if args.watch {
        return watch(session, None, query).await;
    }
    let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let (nodes, _) = session.all_nodes(&query).await?;
    if nodes.is_empty() && matches!(session.format, Format::Table | Format::Wide) {
        note("no nodes");
        return Ok(Exit::Ok);
    }
    table::show(session, &nodes, true);
    Ok(Exit::Ok)
}

async fn get(session: &Session, args: &Get) -> Result<Exit, Failure> {
    if args.watch {
        let [node] = args.nodes.as_slice() else {
            return Err(Failure::usage("--watch follows one node")
                .fix("`argosy node list --watch` follows all"));
        };
        return watch(session, Some(plain_id(node)), Vec::new()).await;
    }
    let mut nodes = Vec::new();
    for id in args.nodes.iter().map(|id| plain_id(id)) {
        match session.client.node(id).await {
            Ok(node) => nodes.push(node),
            Err(error) => return Err(session.missing_node(error, id).await),
        }
    }
    match session.format {
        Format::Json | Format::Yaml | Format::Name => table::show(session, &nodes, 1 < nodes.len()),
        Format::Table | Format::Wide => {
            for (place, node) in nodes.iter().enumerate() {
                if 0 < place {
                    print("\n");
                }
                print(&page(session, node).await?);
            }
        }
    }
    Ok(Exit::Ok)
}

async fn page(session: &Session, node: &Node) -> Result<String, Failure> {
    let commands = latest_commands(session, &node.id).await;
    let commands = commands.map_err(|error| session.failure(error))?;
    Ok(describe::page(&session.screen, node, &commands, Times::of(session)))
}

async fn latest_commands(session: &Session, id: &str) -> Result<Vec<Command>, ClientError> {
    session.client.node_commands(id, &[("size", COMMANDS_SHOWN)]).await.map(|list| list.items)
}

async fn watch(
    session: &Session,
    id: Option<&str>,
    query: Vec<(&'static str, String)>,
) -> Result<Exit, Failure> {
    follow::follow(session, Nodes { id, query, commands: Vec::new() }).await
}

/// Nodes to follow.
struct Nodes<'a> {
    /// The one; otherwise all that the query finds.
    id: Option<&'a str>,
    query: Vec<(&'static str, String)>,
    /// The latest of the one's commands.
    commands: Vec<Command>,
}

impl Nodes<'_> {
    fn query(&self) -> Vec<(&str, &str)> {
        self.query.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

impl Subject for Nodes<'_> {
    type Item = Node;

    const KEY: &'static str = "id";

    fn is_one(&self) -> bool {
        self.id.is_some()
    }

    async fn read(&self, session: &Session) -> Result<(Vec<Node>, u64), Failure> {
        let Some(id) = self.id else { return session.all_nodes(&self.query()).await };
        match session.client.node(id).await {
            Ok(node) => {
                let revision = node.revision;
                Ok((vec![node], revision))
            }
            Err(error) => Err(session.missing_node(error, id).await),
        }
    }

    fn watch(&self, session: &Session, after: u64) -> Watch {
        // Order is for lists; a watch tells things as they happen.
        let mut query = self.query();
        query.retain(|(name, _)| *name != "order");
        session.client.watch_nodes(self.id, &query, Some(after))
    }

    fn key(node: &Node) -> &str {
        &node.id
    }

    fn revision(node: &Node) -> u64 {
        node.revision
    }

    async fn prepare(&mut self, session: &Session, _nodes: &BTreeMap<String, Node>) {
        if let Some(id) = self.id {
            // A service to the reader: without them the page says the rest.
            self.commands = latest_commands(session, id).await.unwrap_or_default();
        }
    }

    async fn measure(&self, session: &Session, nodes: &mut BTreeMap<String, Node>) {
        // What a terminal can show, and no more: the rest of a large fleet is not worth the traffic.
        let rows = session.screen.height.unwrap_or(u16::MAX).clamp(1, 1000).to_string();
        let found = match self.id {
            Some(id) => session.client.node(id).await.map(|node| vec![node]),
            None => {
                let mut query = self.query();
                query.push(("size", rows.as_str()));
                session.client.nodes(&query).await.map(|list| list.items)
            }
        };
        for fresh in found.into_iter().flatten() {
            if let Some(known) = nodes.get_mut(&fresh.id) {
                known.last_heartbeat = fresh.last_heartbeat;
                known.last_report = fresh.last_report;
                known.last_poll = fresh.last_poll;
                known.attached = fresh.attached;
                known.metrics = fresh.metrics;
                if known.revision == fresh.revision {
                    known.gpus = fresh.gpus;
                }
            }
        }
    }

    fn table(&self, session: &Session, nodes: &[Node]) -> String {
        match (self.id, nodes) {
            (Some(_), [node]) => {
                describe::page(&session.screen, node, &self.commands, Times::of(session))
            }
            (Some(id), []) => format!("node {} is gone\n", clean(id)),
            (Some(_) | None, _) => table::table(session, nodes),
        }
    }
}
