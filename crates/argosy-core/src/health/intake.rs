//! From what a node says to what we make of it: results and verdicts become findings, findings health.

use super::{
    Absolution, Check, CheckResult, Ends, Event, Finding, Health, HealthReport, HealthState,
    MESSAGE_LEN_MAX, NO_FINDINGS, NO_REPORT, POLICY_ERROR, SIGHTING_TIMES_MAX, Severity, Sighting,
    TakenIn, Verdict, cut,
};
use crate::ledger::{Entry, VerdictNote, What};
use crate::node::{CHECKS_MAX, Duty, FINDINGS_MAX, Node, SIGHTINGS_MAX};
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How long a rule that failed keeps a node `Unknown` without failing again.
const POLICY_ERROR_LASTS: SignedDuration = SignedDuration::from_hours(1);

/// The longest word a check may give for what it found; a longer one is text, and stays a detail.
const REASON_LEN_MAX: usize = 40;

/// Takes in a report. `verdicts` has one for each event, in order.
///
/// A report whose sequence number is not newer is old, and a terminated node has nothing to report:
/// nothing changes.
pub fn take_in(
    node: &Node,
    report: &HealthReport,
    verdicts: &[Verdict],
    now: Timestamp,
) -> TakenIn {
    debug_assert_eq!(report.events.len(), verdicts.len(), "one verdict an event");
    let old = report.sequence.is_some_and(|sequence| sequence <= node.report_sequence);
    if old || matches!(node.duty, Duty::Terminated(_)) {
        return TakenIn { node: None, entries: Vec::new() };
    }
    let mut intake = Intake::of(node, now);
    for (name, result) in worst_by_name(&report.results) {
        intake.result(name, result);
    }
    for (event, verdict) in report.events.iter().zip(verdicts) {
        intake.event(event, verdict);
    }
    intake.bound();
    intake.judge(true);
    let mut taken = intake.done();
    if let (Some(after), Some(sequence)) = (&mut taken.node, report.sequence) {
        after.report_sequence = sequence;
    }
    taken
}

/// Ends findings whose time has come; `None` if there are none.
pub fn expire(node: &Node, now: Timestamp) -> Option<TakenIn> {
    let over = |finding: &Finding| matches!(finding.ends, Ends::At(end) if end <= now);
    if !node.findings.iter().any(over) {
        return None;
    }
    let mut intake = Intake::of(node, now);
    intake.clear(over, "nothing like it happened since");
    intake.judge(false);
    Some(intake.done())
}

/// Ends findings of events: the node booted again, a diagnostic passed, or an operator said so.
///
/// What a check says stays until the check says otherwise, whoever asks.
pub fn absolve(node: &Node, why: &Absolution, now: Timestamp) -> TakenIn {
    let reason = match why {
        Absolution::Reboot => "the node booted again".to_owned(),
        Absolution::Diagnostic(command) => format!("diagnostic {command} passed"),
        Absolution::Operator(who) => format!("{who} put the node back into service"),
    };
    let mut intake = Intake::of(node, now);
    intake.clear(
        |finding| match (finding.ends, why) {
            (Ends::WhenCheckPasses, _) => false,
            (_, Absolution::Operator(_)) => true,
            (ends, Absolution::Reboot | Absolution::Diagnostic(_)) => ends == Ends::AtReboot,
        },
        &reason,
    );
    intake.judge(false);
    intake.done()
}

/// Remembers that an event was seen, for rules that count.
pub fn sight(node: &mut Node, event: &Event, now: Timestamp) {
    let (event_type, code) = (event.event_type, event.code());
    let gpu = event.gpu_uuid_of(node).to_owned();
    let hardware = match event.gpu_of(node) {
        _ if !event.gpu_serial.is_empty() => event.gpu_serial.clone(),
        Some(found) => found.hardware().to_owned(),
        None => gpu.clone(),
    };
    let same =
        |seen: &Sighting| seen.event_type == event_type && seen.code == code && seen.gpu == gpu;
    // The one seen last stands last, so that the first is the one not seen for longest.
    let mut seen = match node.sightings.iter().position(same) {
        Some(place) => node.sightings.remove(place),
        None => Sighting { event_type, code, gpu, hardware: String::new(), times: Vec::new() },
    };
    seen.hardware = hardware;
    let count = usize::try_from(event.count).unwrap_or(usize::MAX).min(SIGHTING_TIMES_MAX);
    seen.times.extend(std::iter::repeat_n(now, count));
    let surplus = seen.times.len().saturating_sub(SIGHTING_TIMES_MAX);
    seen.times.drain(..surplus);
    if SIGHTINGS_MAX <= node.sightings.len() {
        node.sightings.remove(0);
    }
    node.sightings.push(seen);
}

/// One word a check. A node that says two words about one check at once means the worse one, in
/// whatever order it says them.
fn worst_by_name(results: &[CheckResult]) -> BTreeMap<&str, &CheckResult> {
    let mut worst: BTreeMap<&str, &CheckResult> = BTreeMap::new();
    let badness = |result: &CheckResult| {
        (result.state, Reverse(result.message.clone()), Reverse(result.details.clone()))
    };
    for result in results {
        let known = worst.entry(&result.name).or_insert(result);
        if badness(known) < badness(result) {
            *known = result;
        }
    }
    worst
}

/// A node while something is taken in.
struct Intake<'a> {
    before: &'a Node,
    node: Node,
    entries: Vec<Entry>,
    now: Timestamp,
}

impl<'a> Intake<'a> {
    fn of(before: &'a Node, now: Timestamp) -> Self {
        Self { before, node: before.clone(), entries: Vec::new(), now }
    }

    fn note(&mut self, what: What) {
        self.entries.push(Entry { at: self.now, node: self.node.id.clone(), what });
    }

    fn result(&mut self, name: &str, result: &CheckResult) {
        let known = self.node.checks.get(name);
        let from = known.map_or(HealthState::Unknown, |check| check.state);
        let new_word = known.is_none() || from != result.state;
        let bad = finding_of(name, result, self.now);
        // While all is well nobody reads the sentence, and many checks put a measurement into it.
        let new_sentence = bad.is_some()
            && known.is_some_and(|check| {
                check.message != result.message || check.details != result.details
            });
        if !new_word && !new_sentence {
            return;
        }
        let since = known.filter(|_| !new_word).map_or(self.now, |check| check.since);
        let check = Check {
            state: result.state,
            message: result.message.clone(),
            since,
            details: if bad.is_some() { result.details.clone() } else { BTreeMap::new() },
        };
        self.node.checks.insert(name.to_owned(), check);
        if new_word {
            let (name, message) = (name.to_owned(), result.message.clone());
            self.note(What::Check { name, from, to: result.state, message });
        }
        match bad {
            Some(finding) => self.find(finding),
            // "I cannot tell" does not end what the check was sure of.
            None if result.state == HealthState::Healthy => {
                let key = check_key(name);
                self.clear(|finding| finding.key == key, "the check passes");
            }
            None => {}
        }
    }

    fn event(&mut self, event: &Event, verdict: &Verdict) {
        let key = event.key_of(&self.node);
        let error_key = format!("policy-error/{key}");
        sight(&mut self.node, event, self.now);
        let finding = match &verdict.severity {
            Ok(Severity::Healthy) => None,
            Ok(severity) => Some(self.judged(key, event, verdict, *severity)),
            Err(cause) => Some(self.unjudged(error_key.clone(), event, verdict, cause)),
        };
        self.note(What::Event {
            event: Box::new(event.clone()),
            verdict: VerdictNote::from(verdict),
            finding: finding.as_ref().map(|finding| finding.key.clone()),
        });
        if verdict.severity.is_ok() {
            self.clear(|finding| finding.key == error_key, "the policy could judge it again");
        }
        if let Some(finding) = finding {
            self.find(finding);
        }
    }

    fn judged(&self, key: String, event: &Event, verdict: &Verdict, severity: Severity) -> Finding {
        let mut message = verdict.message.clone();
        cut(&mut message, MESSAGE_LEN_MAX);
        let ends = verdict.lasts.map_or(Ends::AtReboot, |lasts| Ends::At(after(self.now, lasts)));
        self.finding(key, event, verdict, Some(severity), message, ends)
    }

    /// Nothing may be concluded from an event whose rule failed, not even that nothing is wrong.
    fn unjudged(&self, key: String, event: &Event, verdict: &Verdict, cause: &str) -> Finding {
        let Verdict { rule, policy, policy_version, .. } = verdict;
        let mut message =
            format!("rule {rule} of policy {policy} version {policy_version} failed: {cause}");
        cut(&mut message, MESSAGE_LEN_MAX);
        let ends = Ends::At(after(self.now, POLICY_ERROR_LASTS));
        self.finding(key, event, verdict, None, message, ends)
    }

    fn finding(
        &self,
        key: String,
        event: &Event,
        verdict: &Verdict,
        severity: Option<Severity>,
        message: String,
        ends: Ends,
    ) -> Finding {
        let evidence = if event.raw.is_empty() { &event.message } else { &event.raw };
        Finding {
            key,
            severity,
            rule: verdict.rule.clone(),
            policy: verdict.policy.clone(),
            policy_version: verdict.policy_version,
            message,
            evidence: evidence.clone(),
            gpu: event.gpu_uuid_of(&self.node).to_owned(),
            first: self.now,
            last: self.now,
            count: event.count,
            ends,
        }
    }

    /// A finding, new or seen again.
    fn find(&mut self, found: Finding) {
        let Some(known) = self.node.findings.iter_mut().find(|known| known.key == found.key) else {
            self.node.findings.push(found);
            return;
        };
        known.last = found.last;
        known.count = known.count.saturating_add(found.count);
        let of_check = found.ends == Ends::WhenCheckPasses;
        // A check takes its own word back. An event does not: what was bad once stays as bad, and for
        // as long, until it is ended.
        if of_check || known.severity <= found.severity {
            let ends = if known.severity == found.severity {
                later(known.ends, found.ends)
            } else {
                found.ends
            };
            *known = Finding { first: known.first, count: known.count, ends, ..found };
        }
    }

    fn clear(&mut self, ended: impl Fn(&Finding) -> bool, reason: &str) {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.node.findings).into_iter().partition(ended);
        self.node.findings = kept;
        for finding in gone {
            self.note(What::Cleared { finding: finding.key, reason: reason.to_owned() });
        }
    }

    /// Keeps the lists inside their limits.
    fn bound(&mut self) {
        while CHECKS_MAX < self.node.checks.len() {
            let mildest =
                self.node.checks.iter().min_by_key(|(_, check)| (check.state, check.since));
            let Some(name) = mildest.map(|(name, _)| name.clone()) else { return };
            self.node.checks.remove(&name);
            let key = check_key(&name);
            self.clear(|finding| finding.key == key, "the node has too many checks");
        }
        while FINDINGS_MAX < self.node.findings.len() {
            let mildest = self.node.findings.iter().min_by_key(|f| (weight(f), f.last, &f.key));
            let Some(key) = mildest.map(|finding| finding.key.clone()) else { return };
            self.clear(|finding| finding.key == key, "the node has too many findings");
        }
    }

    /// Health from findings. A node that never reported is not well for having no findings.
    fn judge(&mut self, reported: bool) {
        let Self { node, now, before, .. } = self;
        let worst = decisive(&node.findings);
        if worst.is_none() && !reported && node.health.reason == NO_REPORT {
            return;
        }
        let (state, reason, message) = match worst {
            None => (HealthState::Healthy, NO_FINDINGS, "nothing is wrong with it"),
            Some(finding) => {
                let state = state_of(finding);
                let rule = if finding.severity.is_some() { &finding.rule } else { POLICY_ERROR };
                (state, rule, finding.message.as_str())
            }
        };
        let since = if state == node.health.state { node.health.since } else { *now };
        let (reason, message) = (reason.to_owned(), message.to_owned());
        let health = Health { state, since, reason, message };
        let decisive = node.findings.iter().filter(|finding| state_of(finding) == state);
        let findings = decisive.map(|finding| finding.key.clone()).collect();
        node.health = health;
        node.turned(before, *now);
        let (from, to) = (before.health.state, state);
        let (was, is) = (before.status(), node.status());
        let (reason, sentence) = (node.health.reason.clone(), node.health.message.clone());
        if from != to {
            self.note(What::Health { from, to, reason, findings });
        }
        if was != is {
            self.note(What::Status { from: was.into(), to: is.into(), reason: sentence });
        }
    }

    fn done(self) -> TakenIn {
        let changed = self.node != *self.before;
        TakenIn { node: changed.then_some(self.node), entries: self.entries }
    }
}

fn check_key(name: &str) -> String {
    format!("check/{name}")
}

/// What a result says is wrong, if anything.
fn finding_of(name: &str, result: &CheckResult, now: Timestamp) -> Option<Finding> {
    let severity = match result.state {
        HealthState::Unknown | HealthState::Healthy => return None,
        HealthState::Degraded => Severity::Degraded,
        HealthState::Unhealthy => Severity::Unhealthy,
    };
    let message = if result.message.is_empty() {
        format!("check {name} says {}", result.state.as_str())
    } else {
        result.message.clone()
    };
    let details = result.details.iter().map(|(key, value)| format!("{key}={value}"));
    let mut evidence = details.collect::<Vec<_>>().join(", ");
    cut(&mut evidence, MESSAGE_LEN_MAX);
    Some(Finding {
        key: check_key(name),
        severity: Some(severity),
        rule: reason_of(result).unwrap_or(name).to_owned(),
        policy: String::new(),
        policy_version: 0,
        message,
        evidence,
        gpu: String::new(),
        first: now,
        last: now,
        count: 1,
        ends: Ends::WhenCheckPasses,
    })
}

/// The word a check gives for what it found, if it gives one: `ProbeHung` says more than `nvml`.
fn reason_of(result: &CheckResult) -> Option<&str> {
    let reason = result.details.get("reason")?;
    let word = reason.starts_with(|first: char| first.is_ascii_uppercase())
        && reason.len() <= REASON_LEN_MAX
        && reason.chars().all(|letter| letter.is_ascii_alphanumeric());
    word.then_some(reason)
}

/// The finding that decides: the worst, and of equals the oldest.
pub(crate) fn decisive(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().max_by_key(|finding| (weight(finding), Reverse((finding.first, &finding.key))))
}

/// How much a finding counts. One that nobody could judge may hide the worst, so it counts for more
/// than a warning; what is known for sure to be bad counts for more than it.
fn weight(finding: &Finding) -> u8 {
    match finding.severity {
        Some(Severity::Unhealthy) => 3,
        None => 2,
        Some(Severity::Degraded) => 1,
        Some(Severity::Healthy) => 0,
    }
}

fn state_of(finding: &Finding) -> HealthState {
    match finding.severity {
        Some(Severity::Unhealthy) => HealthState::Unhealthy,
        None => HealthState::Unknown,
        Some(Severity::Degraded) => HealthState::Degraded,
        Some(Severity::Healthy) => HealthState::Healthy,
    }
}

fn later(one: Ends, other: Ends) -> Ends {
    match (one, other) {
        (Ends::At(one), Ends::At(other)) => Ends::At(one.max(other)),
        (Ends::AtReboot, _) | (_, Ends::AtReboot) => Ends::AtReboot,
        (Ends::WhenCheckPasses, _) | (_, Ends::WhenCheckPasses) => Ends::WhenCheckPasses,
    }
}

fn after(now: Timestamp, lasts: SignedDuration) -> Timestamp {
    now.saturating_add(lasts).unwrap_or(Timestamp::MAX)
}
