//! A policy run over recorded history, beside the one that is in force.

use super::{PolicyBook, of_tenant};
use crate::Error;
use crate::node::LEDGER;
use crate::office::{Office, PAGE, read_entry};
use argosy_core::access::Caller;
use argosy_core::health::{Event, EventType, Severity, Sighting, Verdict, sight};
use argosy_core::ledger::{Entry, What};
use argosy_core::node::{Node, NodeId};
use argosy_core::policy::{PolicySpec, sxid_of, xid_of};
use argosy_policy::{HealthPolicy, Judged};
use argosy_store::engine::EntryQuery;
use argosy_store::view::View;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What a policy would have done with recorded history.
#[derive(Clone, Debug, PartialEq)]
pub struct Backtest {
    /// How many events were judged.
    pub events: usize,
    /// From when.
    pub from: Option<Timestamp>,
    /// To when.
    pub to: Option<Timestamp>,
    /// Nodes it would have hit that the current policy did not, or not as hard, with the first event
    /// that shows it.
    pub only_new: Vec<Hit>,
    /// Nodes the current policy hit that it would not have, or not as hard.
    pub only_current: Vec<Hit>,
    /// How many both would have hit alike.
    pub both: usize,
    /// Rules that failed, and how often.
    pub errors: Vec<(String, usize)>,
}

/// A node that a policy hits, and the event that shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The node.
    pub node: NodeId,
    /// When.
    pub at: Timestamp,
    /// What the policy says.
    pub rule: String,
    /// How bad.
    pub severity: Severity,
    /// The event, in a sentence.
    pub event: String,
}

/// How many different failures of rules are told apart; the rest is counted under one heading.
const ERRORS_MAX: usize = 100;

/// Judges every recorded event of the tenant's nodes by both policies.
///
/// Memory grows with the nodes that something happened on, not with what happened: of each, what rules
/// count by is kept, which has a limit, and the worst that either policy said.
pub(super) async fn run(
    office: &Office,
    book: &PolicyBook,
    caller: &Caller,
    (policy, spec): (&HealthPolicy, &PolicySpec),
    since: Option<Timestamp>,
) -> Result<Backtest, Error> {
    let _turn = book.backtests.try_acquire().map_err(|_| {
        Error::TooMany("another policy is run over history; wait until it is done".to_owned())
    })?;
    let mut replay = Replay::new(policy, since);
    let mut cursor = None;
    loop {
        let stream = LEDGER.to_owned();
        let query = EntryQuery { stream, subject: None, cursor, newest_first: false, limit: PAGE };
        let page = office.store.entries(&query).await?;
        let Some(last) = page.last() else { break };
        cursor = Some(last.sequence);
        let mut events = Vec::new();
        for entry in page.iter().filter(|entry| may_be_event(&entry.body)) {
            let Entry { at, node, what } = read_entry(entry)?;
            if let What::Event { event, .. } = what {
                events.push((at, node, event));
            }
        }
        office.store.read(|view| {
            for (_, node, _) in &events {
                replay.meet(view, book, caller, spec, node);
            }
        });
        for (at, node, event) in &events {
            replay.event(*at, node, event);
        }
        tokio::task::yield_now().await;
    }
    Ok(replay.done())
}

/// Whether it is worth reading an entry: most are not about events.
fn may_be_event(body: &str) -> bool {
    body.contains("\"type\":\"event\"")
}

struct Replay<'a> {
    policy: &'a HealthPolicy,
    since: Option<Timestamp>,
    /// `None`: the policy would not be asked about it.
    nodes: HashMap<NodeId, Option<Past>>,
    /// Who saw a GPU, by what follows its hardware.
    homes: HashMap<String, BTreeSet<NodeId>>,
    events: usize,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    errors: BTreeMap<String, usize>,
}

/// What there was of a node, up to the event that is judged.
struct Past {
    node: Node,
    current: Arc<HealthPolicy>,
    worst_new: Option<Hit>,
    worst_current: Option<Hit>,
}

impl<'a> Replay<'a> {
    fn new(policy: &'a HealthPolicy, since: Option<Timestamp>) -> Self {
        Self {
            policy,
            since,
            nodes: HashMap::new(),
            homes: HashMap::new(),
            events: 0,
            from: None,
            to: None,
            errors: BTreeMap::new(),
        }
    }

    /// Gets to know a node: as it is now, but without a past.
    fn meet(
        &mut self,
        view: &View,
        book: &PolicyBook,
        caller: &Caller,
        spec: &PolicySpec,
        id: &NodeId,
    ) {
        if self.nodes.contains_key(id) {
            return;
        }
        // Of one that was forgotten nobody knows any more whose it was.
        let node = view.node(id.as_str()).filter(|node| node.value.tenant == caller.tenant);
        let past = node.filter(|node| is_for(view, spec, &node.value)).map(|node| Past {
            current: book.of(view, &node.value),
            node: Node { sightings: Vec::new(), ..Node::clone(&node.value) },
            worst_new: None,
            worst_current: None,
        });
        self.nodes.insert(id.clone(), past);
    }

    fn event(&mut self, now: Timestamp, id: &NodeId, event: &Event) {
        let elsewhere = self.elsewhere(id, event);
        let Some(Some(past)) = self.nodes.get_mut(id) else { return };
        if self.since.is_none_or(|since| since <= now) {
            self.events += 1;
            self.from.get_or_insert(now);
            self.to = Some(now);
            let judged = Judged { event, node: &past.node, elsewhere: &elsewhere, now };
            let new = self.policy.judge(&judged);
            if let Err(error) = &new.severity {
                let line = format!("{}: {error}", new.rule);
                let full = ERRORS_MAX <= self.errors.len() && !self.errors.contains_key(&line);
                let line = if full { "others".to_owned() } else { line };
                *self.errors.entry(line).or_default() += 1;
            }
            note(&mut past.worst_new, id, now, event, &new);
            note(&mut past.worst_current, id, now, event, &past.current.judge(&judged));
        }
        sight(&mut past.node, event, now);
        if let Some(seen) = past.node.sightings.last().filter(|seen| !seen.hardware.is_empty()) {
            self.homes.entry(seen.hardware.clone()).or_default().insert(id.clone());
        }
    }

    /// What was seen so far of an event's GPU on other nodes.
    fn elsewhere(&self, id: &NodeId, event: &Event) -> Vec<Sighting> {
        let Some(Some(past)) = self.nodes.get(id) else { return Vec::new() };
        let registered = event.gpu_of(&past.node).map_or("", |gpu| gpu.hardware());
        let hardware = if event.gpu_serial.is_empty() { registered } else { &event.gpu_serial };
        let homes = self.homes.get(hardware).into_iter().flatten().filter(|home| *home != id);
        let pasts = homes.filter_map(|home| self.nodes.get(home)?.as_ref());
        let sightings = pasts.flat_map(|past| &past.node.sightings);
        sightings.filter(|seen| seen.hardware == hardware).cloned().collect()
    }

    fn done(self) -> Backtest {
        let Replay { nodes, events, from, to, errors, .. } = self;
        let (mut only_new, mut only_current, mut both) = (Vec::new(), Vec::new(), 0);
        for past in nodes.into_values().flatten() {
            let badness = |hit: &Option<Hit>| hit.as_ref().map(|hit| hit.severity);
            let (new, current) = (badness(&past.worst_new), badness(&past.worst_current));
            if current < new {
                only_new.extend(past.worst_new);
            } else if new < current {
                only_current.extend(past.worst_current);
            } else {
                both += usize::from(new.is_some());
            }
        }
        only_new.sort_by(|a, b| a.node.cmp(&b.node));
        only_current.sort_by(|a, b| a.node.cmp(&b.node));
        let mut errors: Vec<(String, usize)> = errors.into_iter().collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Backtest { events, from, to, only_new, only_current, both, errors }
    }
}

/// Whether a policy that says this would be the one asked about a node.
fn is_for(view: &View, spec: &PolicySpec, node: &Node) -> bool {
    let Some(pool) = &node.pool else { return spec.pools.is_empty() };
    if spec.pools.is_empty() {
        let mut others = of_tenant(view, &node.tenant).into_iter();
        return !others.any(|other| other.value.spec.pools.contains(pool));
    }
    spec.pools.contains(pool)
}

/// Keeps the first of the worst.
fn note(worst: &mut Option<Hit>, node: &NodeId, at: Timestamp, event: &Event, verdict: &Verdict) {
    let Ok(severity) = verdict.severity else { return };
    let known = worst.as_ref().map_or(Severity::Healthy, |hit| hit.severity);
    if known < severity {
        let (node, rule) = (node.clone(), verdict.rule.clone());
        *worst = Some(Hit { node, at, rule, severity, event: sentence(event) });
    }
}

/// The event, in a sentence.
fn sentence(event: &Event) -> String {
    let what = match (xid_of(event), sxid_of(event), event.event_type) {
        (Some(code), _, _) => format!("Xid {code}"),
        (_, Some(code), _) => format!("SXid {code}"),
        (_, _, EventType::Unknown) => "an event".to_owned(),
        (_, _, kind) => kind.as_str().to_owned(),
    };
    let place = match event.gpu_index {
        ..0 => String::new(),
        index => format!(" on GPU {index}"),
    };
    let said = if event.message.is_empty() { &event.raw } else { &event.message };
    let separator = if said.is_empty() { "" } else { ": " };
    format!("{what}{place}{separator}{said}")
}
