//! One health report: bounded, judged, taken in, written down.

use super::{HealthAnswer, Nodes};
use crate::loops::notes::Note;
use crate::office::{Mutation, Office};
use crate::pulse::{Allowance, Moment, Pulse, Spend};
use crate::{Error, Revision};
use argosy_core::access::Caller;
use argosy_core::health::{Event, HealthReport, Sighting, Verdict, sight, take_in, thinned};
use argosy_core::invariant::Cause;
use argosy_core::node::{Flag, Node, NodeId};
use argosy_policy::{HealthPolicy, Judged};
use argosy_store::Txn;
use argosy_store::view::View;
use jiff::Timestamp;
use std::sync::Arc;

/// How many events are judged before others get a turn on the thread.
const JUDGED_AT_ONCE: usize = 16;

/// How many events of a report that says too much are written down, besides what is unhealthy and one of each
/// kind: each is a line of the node's ledger.
const KEPT_MAX: usize = 64;

/// How often a report is judged anew because its node changed meanwhile. After that the verdicts of a
/// moment ago are good enough: a node that changes all the time must still be heard.
const JUDGED_MAX: usize = 8;

/// What a report is judged by.
struct Ground {
    node: Arc<Node>,
    revision: Revision,
    policy: Arc<HealthPolicy>,
    /// What was seen of each event's GPU on other nodes.
    elsewhere: Vec<Vec<Sighting>>,
}

/// What a node's quota says about its flag.
enum Noise {
    Raise(String),
    Lower,
    Keep,
}

impl Nodes {
    /// Takes in a health report. A report that says nothing new writes nothing.
    ///
    /// # Errors
    /// As for a heartbeat; `TooMany` beyond the node's quota of events.
    pub async fn report(
        &self,
        caller: &Caller,
        node: &str,
        report: HealthReport,
    ) -> Result<HealthAnswer, Error> {
        let (pulse, _) = self.attend(caller, node)?;
        let at = self.office.moment();
        // Even one that is refused is a sign of life.
        pulse.touch(at);
        let report = report.bounded().map_err(Error::Invalid)?;
        // Stored is the number of the last one that changed something. One that came after it and
        // changed nothing makes those before it old as well.
        if report.sequence.is_some_and(|sequence| sequence <= pulse.report_sequence()) {
            return self.old(node);
        }
        let report = self.with_told(node, report);
        let complete = report.is_complete();
        let (report, noise) = self.within_quota(node, &pulse, report, at)?;
        let mut said = Said { caller, node, report, noise, verdicts: Vec::new(), judged_at: None };
        let mut turn = 0;
        let answer = loop {
            turn += 1;
            if let Some(ground) = self.ground(node, &said.report)? {
                said.verdicts = judge(&ground, &said.report, self.office.clock.now()).await;
                if let Noise::Raise(_) = said.noise {
                    let dropped = thinned(&mut said.report, &mut said.verdicts, KEPT_MAX);
                    let dropped = u64::try_from(dropped).unwrap_or(0);
                    self.office.stats.health_events_dropped.add(dropped);
                }
                said.judged_at = (turn < JUDGED_MAX).then_some(ground.revision);
            }
            let decide = |view: &View, now: Timestamp| said.decide(view, now);
            if let (_, Some(answer)) = self.office.decide(decide).await? {
                break answer;
            }
        };
        pulse.reported(at);
        if complete && answer.news {
            pulse.proved(at.monotonic);
        }
        if let Some(sequence) = said.report.sequence {
            pulse.set_report_sequence(sequence);
        }
        let stats = &self.office.stats;
        if answer.news {
            stats.health_reports.add_one();
            stats.health_events.add(u64::try_from(said.report.events.len()).unwrap_or(0));
        } else {
            stats.health_reports_old.add_one();
        }
        Ok(answer)
    }

    /// The report with the checks that the node is told to run, if its agent goes by them.
    fn with_told(&self, node: &str, mut report: HealthReport) -> HealthReport {
        if let Some(told) = &mut report.told {
            let pool =
                self.office.store.read(|view| view.node(node).and_then(|n| n.value.pool.clone()));
            told.clone_from(&self.office.settings.nodes.of(pool.as_deref()).checks);
        }
        report
    }

    /// The answer to a report that came late.
    fn old(&self, node: &str) -> Result<HealthAnswer, Error> {
        self.office.stats.health_reports_old.add_one();
        self.office.store.read(|view| {
            let found = view.node(node).ok_or_else(|| Error::NodeNotFound(node.to_owned()))?;
            let (status, health) = (found.value.status(), found.value.health.state);
            Ok(HealthAnswer { status, health, news: false })
        })
    }

    /// What of a report the node's quota allows (O7), and whether the node says too much.
    fn within_quota(
        &self,
        node: &str,
        pulse: &Pulse,
        report: HealthReport,
        at: Moment,
    ) -> Result<(HealthReport, Noise), Error> {
        let fleet = &self.office.settings.nodes.fleet;
        let allowance =
            Allowance { per_second: fleet.events_per_second, burst: fleet.events_burst };
        let sent = report.events.len();
        let says = || {
            format!(
                "it sends more than {} events a second; of each kind on each GPU one is judged, and the worst \
                 are kept",
                allowance.per_second
            )
        };
        let drop_all_but = |kept: usize| {
            let dropped = u64::try_from(sent.saturating_sub(kept)).unwrap_or(0);
            self.office.stats.health_events_dropped.add(dropped);
        };
        match pulse.spend(sent, allowance, at) {
            Spend::All { calm: true } => Ok((report, Noise::Lower)),
            Spend::All { calm: false } => Ok((report, Noise::Keep)),
            Spend::Some => {
                let summary = report.summarised();
                drop_all_but(summary.events.len());
                Ok((summary, Noise::Raise(says())))
            }
            Spend::None => {
                drop_all_but(0);
                if let Ok(node) = NodeId::parse(node) {
                    let raise = Some(says());
                    self.office.note_later(Note::Flag { node, flag: Flag::Noisy, raise });
                }
                Err(Error::TooMany(format!(
                    "node {node} sends more events than the {} a second it may; gather them (first, \
                     last, count) and send them later",
                    allowance.per_second
                )))
            }
        }
    }

    /// What the events of a report are judged by; `None` if there are none.
    fn ground(&self, node: &str, report: &HealthReport) -> Result<Option<Ground>, Error> {
        if report.events.is_empty() {
            return Ok(None);
        }
        self.office.store.read(|view| {
            let found = view.node(node).ok_or_else(|| Error::NodeNotFound(node.to_owned()))?;
            let policy = self.policies.of(view, &found.value);
            let events = report.events.iter();
            let elsewhere = events.map(|event| elsewhere(view, &found.value, event)).collect();
            let (node, revision) = (found.value.clone(), found.revision);
            Ok(Some(Ground { node, revision, policy, elsewhere }))
        })
    }
}

/// A report that was judged.
struct Said<'a> {
    caller: &'a Caller,
    node: &'a str,
    report: HealthReport,
    noise: Noise,
    verdicts: Vec<Verdict>,
    /// How the node must be for the verdicts to hold.
    judged_at: Option<Revision>,
}

impl Said<'_> {
    /// What to write, and the answer; none if the node is not as it was when the events were judged.
    fn decide(
        &self,
        view: &View,
        now: Timestamp,
    ) -> Result<(Option<Txn>, Option<HealthAnswer>), Error> {
        let before = view.node(self.node).filter(|n| n.value.tenant == self.caller.tenant);
        let before = before.ok_or_else(|| Error::NodeNotFound(self.node.to_owned()))?;
        if self.judged_at.is_some_and(|judged_at| judged_at != before.revision) {
            return Ok((None, None));
        }
        let last = before.value.report_sequence;
        let old = self.report.sequence.is_some_and(|sequence| sequence <= last);
        let taken = take_in(&before.value, &self.report, &self.verdicts, now);
        let (mut after, mut entries) = (taken.node, taken.entries);
        let raise = match &self.noise {
            Noise::Raise(message) => Some(Some(message.as_str())),
            Noise::Lower => Some(None),
            Noise::Keep => None,
        };
        let known = after.as_ref().unwrap_or(&before.value);
        if let Some((flagged, entry)) =
            raise.and_then(|raise| known.flagged(Flag::Noisy, raise, now))
        {
            after = Some(flagged);
            entries.push(entry);
        }
        let is = after.as_ref().unwrap_or(&before.value);
        let answer = HealthAnswer { status: is.status(), health: is.health.state, news: !old };
        let Some(after) = after else { return Ok((None, Some(answer))) };
        let mut txn = Txn::at(now);
        let change = Mutation::update("report-health", before, Arc::new(after));
        Office::write_node(&mut txn, change, Cause::Other, &entries, self.caller, now)?;
        Ok((Some(txn), Some(answer)))
    }
}

/// What was seen of an event's GPU on other nodes of the tenant.
pub(crate) fn elsewhere(view: &View, node: &Node, event: &Event) -> Vec<Sighting> {
    let registered = event.gpu_of(node).map_or("", |gpu| gpu.hardware());
    let hardware = if event.gpu_serial.is_empty() { registered } else { &event.gpu_serial };
    if hardware.is_empty() {
        return Vec::new();
    }
    let others = view.nodes_with_hardware(hardware).map(|other| &other.value);
    let others = others.filter(|other| other.id != node.id && other.tenant == node.tenant);
    let sightings = others.flat_map(|other| &other.sightings);
    sightings.filter(|seen| seen.hardware == hardware).cloned().collect()
}

/// Judges the events one after the other: each is seen by the rules that count for the next.
async fn judge(ground: &Ground, report: &HealthReport, now: Timestamp) -> Vec<Verdict> {
    let mut node = Node::clone(&ground.node);
    let mut verdicts = Vec::with_capacity(report.events.len());
    for (place, (event, elsewhere)) in report.events.iter().zip(&ground.elsewhere).enumerate() {
        if place % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        verdicts.push(ground.policy.judge(&Judged { event, node: &node, elsewhere, now }));
        sight(&mut node, event, now);
    }
    verdicts
}
