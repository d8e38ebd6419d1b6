//! Nodes over HTTP: for people and programs. Nodes themselves speak RPC.

use super::fields::{Fields, OF_NODE};
use super::header::tagged;
use super::list::{Listed, Page, heavy, watch};
use super::query::Query;
use super::{Answer, Ask, empty, json};
use crate::convert;
use crate::convert::member::{self, Members};
use crate::problem::Fault;
use argosy_api::error;
use argosy_api::node::{Ledger, MetricsHistory};
use argosy_control::node::NodeQuery;
use argosy_control::watch::WatchNodes;
use argosy_control::{Error, Stored};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::Finding;
use argosy_core::ledger::What;
use argosy_core::node::{Node, NodeId};
use argosy_core::search::{Filter, Order, SearchError, Searchable};
use axum::http::StatusCode;

/// How many lines a page of a ledger has that nobody chose.
const LIMIT_DEFAULT: usize = 100;

pub(super) async fn list(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let fields = Fields::parse(query.all("fields"), OF_NODE).map_err(Fault::fields)?;
    let filter = filter(&query)?;
    let order = order(&query)?;
    if query.flag("watch") {
        return follow(ask, &query, fields, None, filter).await;
    }
    let page = Page::of(&query);
    let (nodes, caller) = (ask.server.control.nodes.clone(), ask.caller.clone());
    heavy(ask, move || {
        let query = NodeQuery { filter, order, skip: page.skip(), limit: page.size };
        let found = nodes.list(&caller, &query)?;
        let show = |(node, live): &_| fields.show(convert::node::wire(node, live));
        let items: Vec<_> = found.nodes.iter().map(show).collect();
        Ok(Listed {
            kind: "NodeList".to_owned(),
            page: page.page,
            size: items.len(),
            total: found.total,
            revision: found.revision.0,
            cost: None,
            items,
        })
    })
    .await
}

pub(super) async fn get(ask: &Ask) -> Answer {
    let (node, live) = ask.server.control.nodes.get(&ask.caller, ask.node())?;
    let query = ask.query()?;
    let fields = Fields::parse(query.all("fields"), OF_NODE).map_err(Fault::fields)?;
    if query.flag("watch") {
        return follow(ask, &query, fields, Some(ask.node()), Filter::everything()).await;
    }
    if ask.has_seen(node.revision) {
        return tagged(empty(StatusCode::NOT_MODIFIED), node.revision);
    }
    let shown = fields.show(convert::node::wire(&node, &live));
    tagged(json(StatusCode::OK, &shown)?, node.revision)
}

async fn follow(
    ask: &Ask,
    query: &Query,
    fields: Fields,
    node: Option<&str>,
    filter: Filter<Node>,
) -> Answer {
    let after = ask.resume_after(query)?;
    let nodes = &ask.server.control.nodes;
    let started = nodes.watch(&ask.caller, WatchNodes { node, filter, after })?;
    let board = nodes.board.clone();
    let show = move |node: &Stored<Node>| {
        fields.show(convert::node::wire(node, &board.live(node.value.id.as_str())))
    };
    watch(ask, started, after, Box::new(show)).await
}

pub(super) async fn delete(ask: &Ask) -> Answer {
    let nodes = &ask.server.control.nodes;
    nodes.get(&ask.caller, ask.node())?;
    let query = ask.query()?;
    let id = NodeId::parse(ask.node()).map_err(|_| Error::NodeNotFound(ask.node().to_owned()))?;
    let reason = query.text("reason").map(str::to_owned);
    nodes.forget(&ask.caller, &id, query.flag("force"), reason).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

pub(super) async fn protect(ask: &Ask) -> Answer {
    ask.server.control.nodes.get(&ask.caller, ask.node())?;
    ask.query()?;
    let mut members = Members::new("", ask.object()?);
    let reason = members.take("reason", |value, field| {
        member::text(value.as_ref(), field).and_then(member::reason).map(str::to_owned)
    });
    let reason = members.finish(reason).map_err(Fault::fields)?;
    protected(ask, true, &reason).await
}

pub(super) async fn unprotect(ask: &Ask) -> Answer {
    ask.server.control.nodes.get(&ask.caller, ask.node())?;
    let query = ask.query()?;
    protected(ask, false, query.text("reason").unwrap_or_default()).await
}

async fn protected(ask: &Ask, protected: bool, reason: &str) -> Answer {
    let nodes = &ask.server.control.nodes;
    let (node, live) = nodes.protect(&ask.caller, ask.node(), protected, reason).await?;
    tagged(json(StatusCode::OK, &convert::node::wire(&node, &live))?, node.revision)
}

pub(super) async fn events(ask: &Ask) -> Answer {
    ledger(ask, "NodeEventList", |what| matches!(what, What::Event { .. })).await
}

pub(super) async fn history(ask: &Ask) -> Answer {
    ledger(ask, "NodeHistory", |_| true).await
}

async fn ledger(ask: &Ask, kind: &str, keep: fn(&What) -> bool) -> Answer {
    let nodes = &ask.server.control.nodes;
    nodes.get(&ask.caller, ask.node())?;
    let query = ask.query()?;
    let limit = query.number("limit").unwrap_or(LIMIT_DEFAULT);
    let _at_work = ask.gate.enter().await?;
    let lines = nodes.ledger(&ask.caller, ask.node(), query.number("before"), limit, keep).await?;
    let next = lines.last().filter(|_| lines.len() == limit).map(|line| line.sequence);
    let items = lines.into_iter().map(convert::ledger::entry).collect();
    json(StatusCode::OK, &Ledger { kind: kind.to_owned(), items, next })
}

pub(super) async fn why(ask: &Ask) -> Answer {
    let nodes = &ask.server.control.nodes;
    let (node, _) = nodes.get(&ask.caller, ask.node())?;
    ask.query()?;
    let _at_work = ask.gate.enter().await?;
    let why = nodes.why(&ask.caller, ask.node()).await?;
    json(StatusCode::OK, &convert::node::why(&node.value, why))
}

pub(super) fn metrics(ask: &Ask) -> Answer {
    let control = &ask.server.control;
    let (node, _) = control.nodes.get(&ask.caller, ask.node())?;
    ask.query()?;
    let (now, monotonic) = (control.clock.now(), control.clock.monotonic());
    let pulse = control.nodes.board.find(node.value.id.as_str());
    let (points, tracks) = pulse.map(|pulse| pulse.gpu_history()).unwrap_or_default();
    let points = points.into_iter();
    let items = points.map(|point| convert::node::point(point, now, monotonic)).collect();
    let gpus = tracks.iter().map(|track| convert::node::track(&node.value, track)).collect();
    let (kind, node_id) = ("MetricsHistory".to_owned(), node.value.id.to_string());
    json(StatusCode::OK, &MetricsHistory { kind, node_id, items, gpus })
}

pub(super) async fn findings(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let mut filter: Filter<Finding> = search(&query)?;
    for name in ["severity", "node", "pool"] {
        if let Some(value) = query.text(name) {
            filter = filter.and(Filter::equals(name, value));
        }
    }
    let page = Page::of(&query);
    let (nodes, caller) = (ask.server.control.nodes.clone(), ask.caller.clone());
    heavy(ask, move || {
        let mut found: Vec<(Stored<Node>, usize)> = Vec::new();
        let revision = nodes.each(&caller, &mut |node, _| {
            for (place, finding) in node.value.findings.iter().enumerate() {
                if filter.matches((&node.value, finding)) {
                    found.push((node.clone(), place));
                }
            }
        })?;
        let mut found: Vec<(&Node, &Finding)> = found
            .iter()
            .filter_map(|(node, place)| Some((&*node.value, node.value.findings.get(*place)?)))
            .collect();
        let order = Order::<Finding>::default();
        found.sort_unstable_by(|a, b| order.compare(*a, *b));
        let total = found.len();
        let shown = found.into_iter().skip(page.skip()).take(page.size);
        let items: Vec<_> =
            shown.map(|(node, finding)| convert::node::finding(node, finding)).collect();
        Ok(Listed {
            kind: "FindingList".to_owned(),
            page: page.page,
            size: items.len(),
            total,
            revision: revision.0,
            cost: None,
            items,
        })
    })
    .await
}

/// The search of a list; without one, everything.
pub(super) fn search<T: Searchable>(query: &Query) -> Result<Filter<T>, Fault> {
    match query.text("search").filter(|text| !text.trim().is_empty()) {
        None => Ok(Filter::everything()),
        Some(text) => {
            Filter::parse(text).map_err(|error| Fault::new(&error::BAD_SEARCH, error.to_string()))
        }
    }
}

/// Which nodes are asked for.
pub(super) fn filter(query: &Query) -> Result<Filter<Node>, Fault> {
    let mut filter = search(query)?;
    for name in ["status", "health", "liveness", "pool", "provider", "region", "zone"] {
        if let Some(value) = query.text(name) {
            filter = filter.and(Filter::equals(name, value));
        }
    }
    for labels in query.all("labels") {
        let labels = Filter::labels(labels).map_err(|error| {
            Fault::field(FieldError::new("labels", Constraint::Format, error.message))
        })?;
        filter = filter.and(labels);
    }
    Ok(filter)
}

fn order(query: &Query) -> Result<Order<Node>, Fault> {
    let keys: Vec<&str> = query.all("order").collect();
    let refuse = |error: SearchError| {
        Fault::field(FieldError::new("order", Constraint::Enum, error.message))
    };
    Order::parse(&keys.join(",")).map_err(refuse)
}
