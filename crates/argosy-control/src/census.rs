//! How many there are of everything, for `/metrics`.

use crate::control::Control;
use argosy_core::breaker::Scope;
use argosy_core::health::{HealthState, Severity};
use argosy_core::node::{Liveness, Node, NodeStatus};
use argosy_core::resource::Kind;
use argosy_core::status::{Phase, phase};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many pools and providers are told apart; what is beyond counts as `other`.
///
/// Both are words that nodes send: without a limit, a fleet could make as many time series as it has
/// nodes.
pub const WORDS_MAX: usize = 100;

/// How many nodes are looked at before the view is let go: commits wait for readers.
const PIECE: usize = 4096;

/// How many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Resources, by kind and phase; every pair is there.
    pub resources: BTreeMap<(Kind, Phase), usize>,
    /// Nodes.
    pub nodes: BTreeMap<NodeGroup, usize>,
    /// GPUs, by provider.
    pub gpus: BTreeMap<Arc<str>, usize>,
    /// What is wrong with nodes; `None` for rules that failed.
    pub findings: BTreeMap<Option<Severity>, usize>,
    /// Automatic actions that are due and not taken, by the guard that holds them.
    pub held: BTreeMap<String, usize>,
    /// Commands that have not ended, by the word for their state.
    pub open_commands: BTreeMap<&'static str, usize>,
    /// Breakers that are not closed, by what they are for and whether they are half open.
    pub breakers: BTreeMap<(&'static str, bool), usize>,
    /// Pauses, by what they are for.
    pub pauses: BTreeMap<&'static str, usize>,
    /// Node pools in recovery.
    pub recovering: usize,
}

/// What nodes are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeGroup {
    /// Their pool; `none` for those that have none.
    pub pool: Arc<str>,
    /// Their word.
    pub status: NodeStatus,
    /// Whether they are well.
    pub health: HealthState,
    /// Whether they are heard.
    pub liveness: Liveness,
}

impl Control {
    /// Counts everything.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        let store = &self.office.store;
        store.read(|view| {
            for kind in Kind::ALL {
                census.resources.extend(Phase::ALL.map(|phase| ((kind, phase), 0)));
                for resource in view.resources(kind) {
                    *census.resources.entry((kind, phase(&resource.value))).or_default() += 1;
                }
            }
            for command in view.open_commands() {
                *census.open_commands.entry(command.value.state.word()).or_default() += 1;
            }
            for breaker in view.breakers().filter(|breaker| !breaker.value.is_closed()) {
                let scope = match breaker.value.scope {
                    Scope::Fleet => "fleet",
                    Scope::Zone { .. } => "zone",
                    Scope::Pool { .. } => "pool",
                };
                let half_open = breaker.value.half_open.is_some();
                *census.breakers.entry((scope, half_open)).or_default() += 1;
            }
            census.recovering = view.recoveries().len();
            for pause in view.pauses() {
                let scope = if pause.value.pool.is_some() { "pool" } else { "fleet" };
                *census.pauses.entry(scope).or_default() += 1;
            }
        });
        let (mut known, mut last) = (Known::default(), None);
        loop {
            let piece: Vec<_> = store.read(|view| {
                view.nodes_after(last.as_deref()).take(PIECE).cloned().collect::<Vec<_>>()
            });
            for node in &piece {
                census.count(&node.value, &mut known);
            }
            match piece.last() {
                Some(node) if piece.len() == PIECE => last = Some(node.value.id.to_string()),
                Some(_) | None => return census,
            }
        }
    }
}

impl Census {
    fn count(&mut self, node: &Node, words: &mut Known) {
        let group = NodeGroup {
            pool: words.pools.of(node.pool.as_deref().unwrap_or("none")),
            status: node.status(),
            health: node.health.state,
            liveness: node.liveness,
        };
        *self.nodes.entry(group).or_default() += 1;
        let provider = Some(&*node.place.provider).filter(|provider| !provider.is_empty());
        let provider = words.providers.of(provider.unwrap_or("unknown"));
        *self.gpus.entry(provider).or_default() += node.gpus.len();
        for finding in &node.findings {
            *self.findings.entry(finding.severity).or_default() += 1;
        }
        if let Some(held) = &node.held {
            *self.held.entry(held.guard.clone()).or_default() += 1;
        }
    }
}

/// The words that are told apart.
#[derive(Default)]
struct Known {
    pools: Words,
    providers: Words,
}

/// Words that came from outside, no more of them than `WORDS_MAX`.
#[derive(Default)]
struct Words(BTreeSet<Arc<str>>);

impl Words {
    fn of(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let word = Arc::from(if self.0.len() < WORDS_MAX { word } else { "other" });
        self.0.insert(Arc::clone(&word));
        word
    }
}

#[cfg(test)]
mod tests;
