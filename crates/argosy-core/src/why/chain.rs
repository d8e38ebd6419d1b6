//! Which lines of the ledger led to the present, and how each is told.

use super::sentence::{says, severity_word, time};
use super::{Noted, STEPS_MAX, Step};
use crate::command::{Command, CommandState, Outcome};
use crate::health::{Ends, Event, EventType, Finding, HealthState, Metric, decisive};
use crate::ledger::{Entry, VerdictNote, What};
use crate::node::{Duty, Flag, Liveness, Node};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// How many events that came to nothing are told of a node that is well: enough to see why nothing was
/// done about them.
const HARMLESS_MAX: usize = 5;

/// How many steps of a long story are kept from its beginning, where the cause is.
const BEGINNING: usize = STEPS_MAX / 4;

/// The steps, oldest first.
pub(super) fn steps(node: &Node, ledger: &[Noted], commands: &[&Command]) -> Vec<Step> {
    let scope = Scope::of(node, ledger);
    let mut chosen: Vec<&Noted> = ledger.iter().filter(|noted| scope.has(&noted.entry)).collect();
    if scope.since.is_none() {
        chosen.extend(how_it_became_well(ledger));
    }
    chosen.sort_by_key(|noted| noted.sequence);
    let mut teller = Teller::of(node, &chosen);
    for noted in &chosen {
        teller.tell(noted);
    }
    teller.fill_in(&scope, &chosen, commands);
    let mut steps = teller.steps;
    // Stable: what happened at the same time stays in the order of the ledger.
    steps.sort_by_key(|step| step.at);
    leave_out_the_middle(&mut steps);
    steps
}

/// Of a node that is well: the commit that made it so, and what happened since and came to nothing.
fn how_it_became_well(ledger: &[Noted]) -> impl Iterator<Item = &Noted> {
    let turned = ledger.iter().find(|noted| matches!(noted.entry.what, What::Status { .. }));
    let turned = turned.map_or(0, |noted| noted.revision);
    let harmless = ledger.iter().filter(move |noted| {
        noted.revision != turned && matches!(noted.entry.what, What::Event { finding: None, .. })
    });
    let commit = ledger.iter().filter(move |noted| noted.revision == turned);
    commit.chain(harmless.take(HARMLESS_MAX))
}

/// What belongs to the story.
struct Scope<'a> {
    /// The findings that matter.
    findings: BTreeSet<&'a str>,
    /// From when on decisions, commands and changes matter; `None` if nothing is the matter.
    since: Option<Timestamp>,
    refused: bool,
}

impl<'a> Scope<'a> {
    fn of(node: &'a Node, ledger: &'a [Noted]) -> Self {
        let mut findings: BTreeSet<&str> =
            node.findings.iter().map(|finding| finding.key.as_str()).collect();
        let mut since = Vec::new();
        if decisive(&node.findings).is_some() {
            since.push(node.health.since);
        }
        if node.liveness != Liveness::Fresh {
            since.push(node.liveness_since);
        }
        since.extend(node.held.as_ref().map(|held| held.since));
        if let Some(hold) = node.duty.hold() {
            since.push(hold.at);
            // What we did by ourselves had a cause, which may be over by now.
            let turned_bad = |noted: &&Noted| {
                noted.entry.at <= hold.at
                    && matches!(
                        noted.entry.what,
                        What::Health { to: HealthState::Unhealthy, .. }
                            | What::Liveness { to: Liveness::Unreachable, .. }
                    )
            };
            if let Some(cause) = ledger.iter().find(turned_bad).filter(|_| hold.automatic) {
                since.push(cause.entry.at);
                if let What::Health { findings: causes, .. } = &cause.entry.what {
                    findings.extend(causes.iter().map(String::as_str));
                }
            }
        }
        let refused = node.flags.contains_key(&Flag::IdentityConflict);
        Self { findings, since: since.into_iter().min(), refused }
    }

    fn has(&self, entry: &Entry) -> bool {
        let lately = self.since.is_some_and(|since| since <= entry.at);
        let matters = |finding: &str| self.findings.contains(finding);
        match &entry.what {
            What::Event { finding, .. } => finding.as_deref().is_some_and(matters),
            What::Check { name, to, .. } => {
                *to != HealthState::Healthy && matters(&format!("check/{name}"))
            }
            What::Cleared { finding, .. } => lately && matters(finding),
            What::RegistrationRefused { .. } => lately || self.refused,
            What::Registered { .. }
            | What::Health { .. }
            | What::Liveness { .. }
            | What::Status { .. }
            | What::Decision { .. }
            | What::Command { .. }
            | What::External { .. }
            | What::Flag { .. } => lately,
        }
    }
}

/// Tells the chosen lines one after the other.
struct Teller<'a> {
    node: &'a Node,
    /// The last verdict told about a finding.
    verdicts: BTreeMap<&'a str, &'a VerdictNote>,
    /// The last line of each finding's events, and how many there are between the first and it.
    latest: BTreeMap<&'a str, (u64, usize)>,
    steps: Vec<Step>,
}

impl<'a> Teller<'a> {
    fn of(node: &'a Node, chosen: &[&'a Noted]) -> Self {
        let mut latest: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
        for noted in chosen {
            if let What::Event { finding: Some(finding), .. } = &noted.entry.what {
                let (last, count) = latest.entry(finding).or_insert((noted.sequence, 0));
                *last = noted.sequence;
                *count += 1;
            }
        }
        Self { node, verdicts: BTreeMap::new(), latest, steps: Vec::new() }
    }

    fn say(&mut self, noted: &Noted, kind: &str, message: String, evidence: Vec<String>) {
        self.steps.push(Step {
            at: noted.entry.at,
            revision: noted.revision,
            kind: kind.to_owned(),
            message,
            evidence,
        });
    }

    fn tell(&mut self, noted: &'a Noted) {
        let none = Vec::new;
        match &noted.entry.what {
            What::Event { event, verdict, finding } => {
                self.tell_event(noted, event, verdict, finding.as_deref());
            }
            What::Check { name, to, message, .. } => {
                let colon = if message.is_empty() { "" } else { ": " };
                let message = format!("check {name} says {}{colon}{message}", to.as_str());
                self.say(noted, "check", message, none());
                self.tell_finding(noted, &format!("check/{name}"));
            }
            What::Cleared { finding, reason } => {
                self.say(noted, "finding", format!("finding {finding} ended: {reason}"), none());
            }
            What::Health { from, to, reason, findings } => {
                let message = format!("health {} -> {} by {reason}", from.as_str(), to.as_str());
                self.say(noted, "health", message, findings.clone());
            }
            What::Liveness { from, to, reason } => {
                let message = format!("{} -> {}: {reason}", from.as_str(), to.as_str());
                self.say(noted, "liveness", message, none());
            }
            What::Status { from, to, reason } => {
                self.say(noted, "status", format!("{} -> {}: {reason}", from.0, to.0), none());
            }
            What::Decision { action, held_by, reason, budget } => {
                let message = match held_by {
                    None => format!("decided to {action} it: {reason}"),
                    Some(guard) => format!("would {action} it, but was held by {guard}: {reason}"),
                };
                let budget = (!budget.is_empty()).then(|| budget.clone());
                self.say(noted, "decision", message, budget.into_iter().collect());
            }
            What::Command { id, kind, state, outcome, by, message } => {
                let told = told_command(kind.as_str(), state, *outcome, by, message);
                let step = if outcome.is_some() { "result" } else { "command" };
                self.say(noted, step, told, vec![format!("command {id}")]);
            }
            What::External { system, what, ok, message } => {
                let colon = if message.is_empty() { "" } else { ": " };
                let told = match (what.as_str(), ok) {
                    // What it was found to hold, or said itself.
                    ("seen", _) => format!("{system}: {message}"),
                    ("drained", true) => format!("{system} says: {message}"),
                    (_, true) => format!("{system} was told: {what}{colon}{message}"),
                    (_, false) => format!("{system} could not be told: {what}{colon}{message}"),
                };
                self.say(noted, "external", told, none());
            }
            What::Flag { flag, raised, message } => {
                let told = if *raised { "raised" } else { "lowered" };
                self.say(noted, "flag", format!("flag {flag} {told}: {message}"), none());
            }
            What::Registered { message } => {
                self.say(noted, "registration", format!("registered: {message}"), none());
            }
            What::RegistrationRefused { message } => {
                self.say(noted, "registration", format!("refused: {message}"), none());
            }
        }
    }

    /// The first of several events of one finding is told in full, the last one in short, and what is
    /// between them as a number.
    fn tell_event(
        &mut self,
        noted: &'a Noted,
        event: &Event,
        verdict: &'a VerdictNote,
        finding: Option<&'a str>,
    ) {
        let (last, count) = finding.and_then(|key| self.latest.get(key)).copied().unwrap_or((0, 1));
        let told = finding.and_then(|key| self.verdicts.get(key)).copied();
        let same = told.is_some_and(|told| told == verdict);
        if same && noted.sequence != last {
            return;
        }
        let mut message = describe(event);
        if same {
            message += &format!(", again; {count} times in all");
        }
        self.say(noted, "event", message, evidence(event));
        if same {
            return;
        }
        self.say(noted, "verdict", judgement(verdict), verdict.inputs.clone());
        if let Some(key) = finding {
            self.verdicts.insert(key, verdict);
            self.tell_finding(noted, key);
        }
    }

    fn tell_finding(&mut self, noted: &Noted, key: &str) {
        let open = self.node.findings.iter().find(|finding| finding.key == key);
        let message = match open {
            Some(finding) => format!("finding {key}: {}", stands(finding)),
            None => format!("finding {key}, which has ended since"),
        };
        self.say(noted, "finding", message, Vec::new());
    }

    /// What the node and its commands say and the ledger does not reach back to.
    fn fill_in(&mut self, scope: &Scope<'_>, chosen: &[&Noted], commands: &[&Command]) {
        let is_told = |key: &str| {
            let check = key.strip_prefix("check/");
            chosen.iter().map(|noted| &noted.entry.what).any(|what| {
                matches!(what, What::Event { finding: Some(finding), .. } if finding == key)
                    || matches!(what, What::Check { name, .. } if check == Some(name))
            })
        };
        for finding in self.node.findings.iter().filter(|finding| !is_told(&finding.key)) {
            let evidence = Some(finding.evidence.clone()).filter(|text| !text.is_empty());
            self.steps.push(Step {
                at: finding.first,
                revision: 0,
                kind: "finding".to_owned(),
                message: format!("finding {}: {}; {}", finding.key, says(finding), stands(finding)),
                evidence: evidence.into_iter().collect(),
            });
        }
        let draining = match &self.node.duty {
            Duty::Draining { command, .. } => Some(*command),
            Duty::Active | Duty::Cordoned(_) | Duty::Terminated(_) => None,
        };
        for command in commands {
            let told = chosen.iter().any(
                |noted| matches!(&noted.entry.what, What::Command { id, .. } if *id == command.id),
            );
            let lately = scope.since.is_some_and(|since| since <= command.issued_at);
            let open = !command.state.is_done() || draining == Some(command.id);
            if told || !lately && !open {
                continue;
            }
            let Command { id, kind, by, reason, .. } = command;
            let id = vec![format!("command {id}")];
            let issued = told_command(kind.as_str(), "pending", None, by, reason);
            let step = |at, kind: &str, message, evidence| Step {
                at,
                revision: 0,
                kind: kind.to_owned(),
                message,
                evidence,
            };
            self.steps.push(step(command.issued_at, "command", issued, id.clone()));
            if let CommandState::Done { at, outcome, message, .. } = &command.state {
                let word = command.state.word();
                let ended = told_command(kind.as_str(), word, Some(*outcome), by, message);
                self.steps.push(step(*at, "result", ended, id));
            }
        }
    }
}

/// `Xid 79 on GPU 3 (GPU-1b2c…)`.
fn describe(event: &Event) -> String {
    let what = match (event.event_type, event.code()) {
        (EventType::Xid, code) => format!("Xid {code}"),
        (EventType::Sxid, code) => format!("SXid {code}"),
        (EventType::Host, _) if !event.host_signal().is_empty() => event.host_signal().to_owned(),
        (other, _) => format!("{} event", other.as_str()),
    };
    let place = match (event.gpu_index, event.gpu_uuid.as_str()) {
        (index, "") if index < 0 => String::new(),
        (index, "") => format!(" on GPU {index}"),
        (index, uuid) if index < 0 => format!(" on GPU {uuid}"),
        (index, uuid) => format!(" on GPU {index} ({uuid})"),
    };
    let times = if event.count < 2 { String::new() } else { format!(", {} times", event.count) };
    let colon = if event.message.is_empty() { "" } else { ": " };
    format!("{what}{place}{times}{colon}{}", event.message)
}

/// The kernel line, the measurements, and what the driver recommends.
fn evidence(event: &Event) -> Vec<String> {
    let mut evidence = Vec::new();
    if !event.raw.is_empty() {
        evidence.push(event.raw.clone());
    }
    evidence.extend(event.metrics.iter().map(|(name, metric)| match metric {
        Metric::Bool(value) => format!("{name}={value}"),
        Metric::Int(value) => format!("{name}={value}"),
        Metric::Float(value) => format!("{name}={value}"),
        Metric::Text(value) => format!("{name}={value}"),
    }));
    evidence.extend(event.recovery_action.map(|action| format!("recovery_action={action}")));
    evidence
}

fn judgement(verdict: &VerdictNote) -> String {
    let VerdictNote { policy, policy_version, rule, severity, error, .. } = verdict;
    let of = format!("policy {policy} version {policy_version}");
    match (severity, error) {
        (_, Some(error)) => {
            format!("rule {rule} of {of} failed: {error}; nothing may be concluded from it")
        }
        (Some(severity), None) if rule.is_empty() => {
            format!("no rule of {of} matches: {}", severity_word(*severity))
        }
        (Some(severity), None) => format!("rule {rule} of {of} says {}", severity_word(*severity)),
        (None, None) => format!("{of} says nothing"),
    }
}

/// How a finding that is open stands, and what ends it.
fn stands(finding: &Finding) -> String {
    let bad = finding.severity.map_or("nobody can say how bad", severity_word);
    let times =
        if finding.count < 2 { String::new() } else { format!(", seen {} times", finding.count) };
    let ends = match finding.ends {
        Ends::WhenCheckPasses => "it ends when the check passes".to_owned(),
        Ends::At(end) => format!("it ends at {} if nothing like it happens", time(end)),
        Ends::AtReboot => {
            "it ends when the node boots again, a diagnostic passes, or somebody uncordons \
                           the node"
                .to_owned()
        }
    };
    format!("{bad}{times}; {ends}")
}

fn told_command(
    kind: &str,
    state: &str,
    outcome: Option<Outcome>,
    by: &str,
    message: &str,
) -> String {
    let colon = if message.is_empty() { "" } else { ": " };
    match (outcome, state) {
        (Some(outcome), _) => format!("{kind} ended: {outcome:?}{colon}{message}"),
        (None, "pending") => format!("{kind} issued by {by}{colon}{message}"),
        (None, "acknowledged") => format!("the node has {kind}{colon}{message}"),
        (None, state) => format!("{kind} is {state}{colon}{message}"),
    }
}

fn leave_out_the_middle(steps: &mut Vec<Step>) {
    let Some(surplus) = steps.len().checked_sub(STEPS_MAX).filter(|surplus| 0 < *surplus) else {
        return;
    };
    let mut rest = steps.split_off(BEGINNING);
    // One more goes, for the step that says so.
    let end = rest.split_off(surplus + 1);
    let Some(first) = rest.first() else { return };
    steps.push(Step {
        at: first.at,
        revision: first.revision,
        kind: "omitted".to_owned(),
        message: format!("{} more steps; the node's history has them all", rest.len()),
        evidence: Vec::new(),
    });
    steps.extend(end);
}
