//! Whether a request to take nodes out of service fits the disruption budgets.
//!
//! What a newcomer gets wrong: a cordon is counted and never refused, so what is counted is not what is refused.
//! A command is refused for what it disrupts: a drain, a termination, a test that occupies the GPUs.

use super::tally::{Tallies, is_out};
use super::{Fleet, Subject};
use crate::breaker::Scope;
use crate::command::{Command, CommandKind};
use crate::node::settings::NodeSettings;
use crate::node::{Duty, Node, NodeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// When nodes were last taken out of service on request. Each request that does writes it, so that two at the same
/// moment meet in the store, and the second is judged on what the first left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastDisruption {
    /// When.
    pub at: Timestamp,
    /// Who asked.
    pub by: String,
    /// Of which tenant.
    pub tenant: String,
}

/// What a command does to the service of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Nothing, or nothing that was not done before.
    None,
    /// It gets no new work. Counted, warned about, never refused.
    Cordons,
    /// What runs there ends, or shares its GPUs with a test. Refused beyond a budget.
    Disrupts,
}

/// What a command does to the service of a node in this state.
pub fn effect(kind: CommandKind, parameters: &BTreeMap<String, String>, node: &Node) -> Effect {
    match (kind, &node.duty) {
        (_, Duty::Terminated(_)) | (CommandKind::Uncordon, _) => Effect::None,
        // What runs there has ended, or has its deadline.
        (_, Duty::Draining { .. }) => Effect::None,
        (CommandKind::Cordon, Duty::Cordoned(_)) => Effect::None,
        (CommandKind::Cordon, Duty::Active) => Effect::Cordons,
        (CommandKind::Drain | CommandKind::Terminate, _) => Effect::Disrupts,
        (CommandKind::RunDiagnostic, _) if occupies(parameters) => Effect::Disrupts,
        (CommandKind::RunDiagnostic, _) => Effect::None,
    }
}

/// Whether a diagnostic needs the GPUs for itself: every test does but the quick one. All of them run if nobody
/// says which.
fn occupies(parameters: &BTreeMap<String, String>) -> bool {
    let test = parameters.get("test").or_else(|| parameters.get("type"));
    test.is_none_or(|test| test != "quick")
}

impl Command {
    /// Whether it is a test that occupies the GPUs of its node, and has not ended.
    pub fn occupies(&self) -> bool {
        self.kind == CommandKind::RunDiagnostic
            && !self.state.is_done()
            && occupies(&self.parameters)
    }
}

/// What a request does to one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impact {
    /// Of what.
    pub scope: Scope,
    /// The same for people: `pool h100`.
    pub name: String,
    /// How many nodes may be out of service: at least one.
    pub allowed: usize,
    /// How many nodes there are that are not warming up, with those that were ended and are not replaced.
    pub total: usize,
    /// How many are out of service without the request.
    pub used: usize,
    /// How many the request takes out of service, or names although they are out.
    pub asked: usize,
    /// Who is out of service without the request, the longest first.
    pub out: Vec<Out>,
}

impl Impact {
    /// Whether more nodes would be out of service than may be.
    pub fn is_exceeded(&self) -> bool {
        self.allowed < self.used.saturating_add(self.asked)
    }

    /// What would make room for the request, in a sentence.
    pub fn frees(&self) -> String {
        let room = self.allowed.saturating_sub(self.used);
        let first = self.out.first().map(|out| match out.how {
            "terminated" => format!(
                "{0} was terminated by {1}: wait until another node takes its place, or, if none is to come, forget it \
                 with `argosy node delete {0}`",
                out.node, out.by
            ),
            "tested" => format!("Wait until the diagnostic of {} has ended", out.node),
            how => format!("{0} is {how} by {1}: `argosy node uncordon {0}`", out.node, out.by),
        });
        match (room, first) {
            (0, Some(first)) => first,
            (0, None) => "Wait until nodes are back in service".to_owned(),
            (room, _) => format!("Name at most {room} at a time"),
        }
    }

    /// The same with only those in `out` that `shown` lets through; the numbers stay.
    #[must_use]
    pub fn shown(mut self, shown: impl FnMut(&Out) -> bool) -> Self {
        self.out.retain(shown);
        self
    }
}

/// How many nodes a sentence names; more does not fit a line.
const NAMED_MAX: usize = 3;

/// `pool h100: 1 node may be out of service, 1 is (gpu-3 drained by ada), and 2 more are asked for`.
impl fmt::Display for Impact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Impact { name, allowed, used, asked, out, .. } = self;
        let nodes = if *allowed == 1 { "node" } else { "nodes" };
        let are = if *used == 1 { "is" } else { "are" };
        write!(f, "{name}: {allowed} {nodes} may be out of service, {used} {are}")?;
        let named = out.iter().take(NAMED_MAX);
        let mut named: Vec<String> =
            named.map(|out| format!("{} {} by {}", out.node, out.how, out.by)).collect();
        let more = used.saturating_sub(named.len());
        if 0 < more && !named.is_empty() {
            named.push(format!("{more} more"));
        }
        if !named.is_empty() {
            write!(f, " ({})", named.join(", "))?;
        }
        let more = if *used == 0 { "" } else { " more" };
        write!(f, ", and {asked}{more} {} asked for", if *asked == 1 { "is" } else { "are" })
    }
}

/// A node that is out of service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Out {
    /// Since when.
    pub since: Timestamp,
    /// Which.
    pub node: NodeId,
    /// Who took it out.
    pub by: String,
    /// How: `cordoned`, `draining`, `drained`, `terminated`, `tested`.
    pub how: &'static str,
}

impl Out {
    fn of(subject: &Subject<'_>) -> Option<Self> {
        let node = subject.node.id.clone();
        if let Some(leaving) = subject.leaving {
            let (since, by, how) = (leaving.since, leaving.by.to_owned(), leaving.how);
            return Some(Self { since, node, by, how });
        }
        let how = match &subject.node.duty {
            Duty::Active => {
                let by = crate::pool::BY.to_owned();
                return subject.cordon_pending.map(|since| Self {
                    since,
                    node,
                    by,
                    how: "cordoned",
                });
            }
            Duty::Cordoned(_) => "cordoned",
            Duty::Draining { done: false, .. } => "draining",
            Duty::Draining { done: true, .. } => "drained",
            Duty::Terminated(_) => "terminated",
        };
        let hold = subject.node.duty.hold()?;
        Some(Self { since: hold.at, node, by: hold.by.clone(), how })
    }
}

/// What taking these nodes out of service together does to each budget that they are in. Takes time in proportion
/// to the fleet.
///
/// A request that disrupts some of its nodes is within the budgets if no impact on one of theirs is exceeded. One
/// node is always allowed: where nobody else is out of service, whatever the budget says.
pub fn impacts(
    fleet: &Fleet<'_>,
    asked: &HashSet<&NodeId>,
    settings: &NodeSettings,
    now: Timestamp,
) -> Vec<Impact> {
    let tallies = &Tallies::count(fleet, settings, now);
    let is_asked = |subject: &Subject<'_>| asked.contains(&subject.node.id);
    let (mut counted, mut already) = (BTreeMap::new(), BTreeMap::new());
    for (index, subject) in fleet.nodes.iter().enumerate().filter(|(_, it)| is_asked(it)) {
        for place in tallies.places_of(index) {
            *counted.entry(place).or_insert(0_usize) += 1;
            *already.entry(place).or_insert(0_usize) += usize::from(is_out(subject));
        }
    }
    let out = |place: usize| {
        let others = fleet.nodes.iter().enumerate().filter(|(_, it)| !is_asked(it) && is_out(it));
        let here = others.filter(|(index, _)| {
            let mut places = tallies.places_of(*index);
            places.any(|it| it == place) || tallies.is_vacant(*index, place)
        });
        let mut out: Vec<Out> = here.filter_map(|(_, subject)| Out::of(subject)).collect();
        out.sort_unstable();
        out
    };
    let found = tallies.each().filter_map(|(place, tally)| {
        let impact = Impact {
            scope: tally.area.scope(),
            name: tally.area.to_string(),
            allowed: tally.allowed_on_request(),
            total: tally.there.saturating_add(tally.vacant),
            used: tally.out.saturating_sub(already.get(&place).copied().unwrap_or(0)),
            asked: counted.get(&place).copied()?,
            out: Vec::new(),
        };
        Some(if impact.is_exceeded() { Impact { out: out(place), ..impact } } else { impact })
    });
    let mut impacts: Vec<Impact> = found.collect();
    impacts.sort_by(|a, b| a.scope.cmp(&b.scope));
    impacts
}

#[cfg(test)]
mod tests;
