//! The fleet as a whole over HTTP: who asks, every GPU, and every event.

use super::list::{Listed, heavy};
use super::node::filter;
use super::{Answer, Ask, Gate, json};
use crate::convert;
use crate::metrics::Held;
use crate::stream::{self, Beat};
use argosy_api::fleet::{FleetEvent, Me, NodeGpus, Permissions, ServerFacts};
use argosy_api::node::Ledger;
use argosy_api::route::EVERY_DEFAULT_MS;
use argosy_control::Revision;
use argosy_control::clock::Clock;
use argosy_control::node::{LineFilter, Nodes};
use argosy_core::access::{Caller, Decision, Verb, may};
use argosy_core::node::{Node, NodeId};
use argosy_core::search::Filter;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How many lines a page of events has that nobody chose.
const LIMIT_DEFAULT: usize = 100;

/// How many nodes one event of a snapshot has: some hundred kilobytes, which a browser draws before the
/// next one comes.
const SNAPSHOT_NODES: usize = 500;

pub(super) fn me(ask: &Ask) -> Answer {
    ask.query()?;
    let (caller, server) = (&ask.caller, &ask.server);
    let allowed = |verb| may(caller, verb) == Decision::Allow;
    let me = Me {
        kind: "Me".to_owned(),
        subject: caller.subject.clone(),
        via: caller.via.to_owned(),
        tenant: caller.tenant.clone(),
        teams: caller.teams.clone(),
        role: format!("{:?}", caller.role),
        may: Permissions {
            write: allowed(Verb::Write),
            force: allowed(Verb::Force),
            administer: allowed(Verb::Administer),
        },
        server: ServerFacts {
            version: server.version.clone(),
            build_time: server.build_time.clone(),
            authentication: server.authenticator.asks(),
            demo: server.demo,
        },
    };
    json(StatusCode::OK, &me)
}

pub(super) async fn gpus(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let filter = filter(&query)?;
    let (nodes, caller) = (ask.server.control.nodes.clone(), ask.caller.clone());
    if query.flag("watch") {
        if ask.parts.method == Method::HEAD {
            return Ok(stream::head());
        }
        let mut ticks =
            interval(Duration::from_millis(query.number("every_ms").unwrap_or(EVERY_DEFAULT_MS)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let clock = ask.server.control.clock;
        let told = Told { nodes, caller, filter, clock, looks: 0, seen: HashMap::new() };
        return Ok(stream::beats(Gpus {
            told: Some(told),
            gate: ask.gate.clone(),
            ticks,
            shutdown: ask.server.shutdown.clone(),
            ready: VecDeque::new(),
            _held: ask.server.metrics.watcher(),
        }));
    }
    heavy(ask, move || {
        let mut items = Vec::new();
        let revision = nodes.each(&caller, &mut |node, live| {
            if filter.matches(&node.value) {
                items.push(convert::fleet::node(node, live));
            }
        })?;
        let (kind, size) = ("FleetGpuList".to_owned(), items.len());
        Ok(Listed { kind, page: 1, size, total: size, revision: revision.0, cost: None, items })
    })
    .await
}

/// A stream of every GPU.
struct Gpus {
    /// `None` only while somebody looks at the fleet with it.
    told: Option<Told>,
    gate: Arc<Gate>,
    ticks: Interval,
    shutdown: watch::Receiver<bool>,
    ready: VecDeque<FleetEvent>,
    _held: Held,
}

/// What a watcher of every GPU was told.
struct Told {
    nodes: Nodes,
    caller: Caller,
    filter: Filter<Node>,
    clock: Clock,
    looks: u64,
    seen: HashMap<NodeId, Seen>,
}

struct Seen {
    revision: Revision,
    measured_at: Option<Timestamp>,
    /// In which look it was last there.
    look: u64,
}

impl Beat for Gpus {
    async fn next(&mut self) -> Option<String> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(event(&ready));
        }
        // What was taken and not given back was lost with a look that failed: the watcher begins anew.
        let mut told = self.told.take()?;
        tokio::select! {
            biased;
            () = stream::stopped(&mut self.shutdown) => return Some(event(&FleetEvent::Bye {})),
            _ = self.ticks.tick() => {}
        }
        // While too much is asked, a tick says nothing rather than keep nodes waiting.
        let Ok(at_work) = self.gate.enter().await else {
            let at = told.clock.now().as_millisecond();
            self.told = Some(told);
            let (nodes, samples, gone) = (Vec::new(), Vec::new(), Vec::new());
            return Some(event(&FleetEvent::Samples { at, revision: 0, nodes, samples, gone }));
        };
        let looked = tokio::task::spawn_blocking(move || {
            let _at_work = at_work;
            let events = told.look();
            (told, events)
        });
        let (told, events) = looked.await.ok()?;
        self.told = Some(told);
        self.ready = events?;
        self.ready.pop_front().map(|ready| event(&ready))
    }
}

impl Told {
    /// What is new since the last look, all of it at the first. `None` if the caller may not look any more.
    fn look(&mut self) -> Option<VecDeque<FleetEvent>> {
        let first = self.seen.is_empty();
        self.looks += 1;
        let look = self.looks;
        let (mut nodes, mut samples) = (Vec::new(), Vec::new());
        let (filter, seen) = (&self.filter, &mut self.seen);
        let revision = self.nodes.each(&self.caller, &mut |node, live| {
            if !filter.matches(&node.value) {
                return;
            }
            let (revision, measured_at) = (node.revision, live.measured_at);
            let now = Seen { revision, measured_at, look };
            match seen.insert(node.value.id.clone(), now) {
                Some(before) if before.revision == revision => {
                    if before.measured_at != measured_at {
                        samples.extend(convert::fleet::samples(node, live));
                    }
                }
                Some(_) | None => nodes.push(convert::fleet::node(node, live)),
            }
        });
        let revision = revision.ok()?.0;
        let mut gone = Vec::new();
        self.seen.retain(|id, seen| {
            let there = seen.look == look;
            if !there {
                gone.push(id.to_string());
            }
            there
        });
        let at = self.clock.now().as_millisecond();
        if !first {
            return Some([FleetEvent::Samples { at, revision, nodes, samples, gone }].into());
        }
        let mut rest: VecDeque<NodeGpus> = nodes.into();
        let mut events = VecDeque::new();
        loop {
            let nodes: Vec<NodeGpus> = rest.drain(..rest.len().min(SNAPSHOT_NODES)).collect();
            let more = !rest.is_empty();
            events.push_back(FleetEvent::Snapshot { at, revision, nodes, more });
            if !more {
                return Some(events);
            }
        }
    }
}

fn event(data: &FleetEvent) -> String {
    let name = match data {
        FleetEvent::Snapshot { .. } => "SNAPSHOT",
        FleetEvent::Samples { .. } => "SAMPLES",
        FleetEvent::Bye {} => "BYE",
    };
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

pub(super) async fn events(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let text = |name: &str| query.text(name).map(str::to_owned);
    let lines = LineFilter { node: text("node"), pool: text("pool"), kind: text("type") };
    let nodes = &ask.server.control.nodes;
    if query.flag("watch") {
        let after = match ask.resume_after(&query)? {
            Some(revision) => Some(revision.0),
            None => query.number("after"),
        };
        let lines = nodes.follow_lines(&ask.caller, lines, after).await?;
        if ask.parts.method == Method::HEAD {
            return Ok(stream::head());
        }
        let shutdown = ask.server.shutdown.clone();
        return Ok(stream::beats(stream::Ledgers::new(
            lines,
            shutdown,
            ask.server.metrics.watcher(),
        )));
    }
    let limit = query.number("limit").unwrap_or(LIMIT_DEFAULT);
    let _at_work = ask.gate.enter().await?;
    let page = nodes.lines_of_all(&ask.caller, &lines, query.number("before"), limit).await?;
    let items = page.lines.into_iter().map(convert::ledger::entry).collect();
    json(StatusCode::OK, &Ledger { kind: "EventList".to_owned(), items, next: page.next })
}
