//! From what a node says to what we make of it: results and verdicts become findings, findings health.

use super::{
    Absolution, Check, CheckResult, Condition, Ends, Event, Evidence, Finding, GPUS_MISSING,
    Health, HealthReport, HealthState, Lasts, LineSeen, MESSAGE_LEN_MAX, NO_FINDINGS, POLICY_ERROR,
    RECOVERY, SIGHTING_TIMES_MAX, Severity, Sighting, TakenIn, Verdict, cut,
};
use crate::field::quotable;
use crate::kernel::RECOVERY_CHANGED;
use crate::ledger::{Entry, VerdictNote, What};
use crate::node::{CHECKS_MAX, Duty, FINDINGS_MAX, Node, SIGHTINGS_MAX};
use crate::recovery::{RecoveryAction, RecoveryChange};
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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
    // How conditions stand was looked at in the round of checks; what is told beside it may be newer.
    for condition in report.conditions.iter().filter(|condition| !condition.holds) {
        intake.over(condition);
    }
    for (event, verdict) in report.events.iter().zip(verdicts) {
        intake.event(event, verdict);
    }
    if report.is_complete() {
        intake.complete();
    }
    intake.bound();
    intake.judge();
    let mut taken = intake.done();
    if let (Some(after), Some(sequence)) = (&mut taken.node, report.sequence) {
        after.report_sequence = sequence;
    }
    taken
}

/// Leaves out what is too much of a summarised report: `most` events are kept, the worst first, and beyond
/// that everything unhealthy, everything that could not be judged, and one of each kind and code.
///
/// The answer is how many events were left out; they are of kinds and codes that are told.
pub fn thinned(report: &mut HealthReport, verdicts: &mut Vec<Verdict>, most: usize) -> usize {
    let sent = report.events.len();
    if sent <= most || verdicts.len() != sent {
        return 0;
    }
    let badness = |verdict: &Verdict| match &verdict.severity {
        Err(_) => Severity::Unhealthy,
        Ok(severity) => *severity,
    };
    let mut order: Vec<(usize, Severity)> = verdicts.iter().map(badness).enumerate().collect();
    order.sort_by_key(|(place, severity)| (Reverse(*severity), *place));
    let mut kinds = BTreeSet::new();
    let mut kept = BTreeSet::new();
    let mut others = Vec::new();
    for (place, severity) in order {
        let Some(event) = report.events.get(place) else { continue };
        let is_first = kinds.insert((event.event_type, event.subject()));
        if is_first || severity == Severity::Unhealthy {
            kept.insert(place);
        } else {
            others.push(place);
        }
    }
    let room = most.saturating_sub(kept.len());
    kept.extend(others.into_iter().take(room));
    let mut place = 0..;
    report.events.retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
    let mut place = 0..;
    verdicts.retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
    sent - report.events.len()
}

/// Ends findings whose time has come; `None` if there are none.
pub fn expire(node: &Node, now: Timestamp) -> Option<TakenIn> {
    let over = |ends: Ends| matches!(ends, Ends::At(end) if end <= now);
    let under_is_over =
        |finding: &Finding| finding.under.as_ref().is_some_and(|under| over(under.ends));
    if !node.findings.iter().any(|finding| over(finding.ends)) {
        return None;
    }
    let mut intake = Intake::of(node, now);
    for finding in intake.node.findings.iter_mut().filter(|finding| under_is_over(finding)) {
        finding.under = None;
    }
    intake.clear(|finding| over(finding.ends), "nothing like it happened since");
    intake.judge();
    Some(intake.done())
}

/// The node when complete reports should have come and did not; `None` if that is known, or if there never
/// was one.
pub fn aged(node: &Node, now: Timestamp) -> Option<TakenIn> {
    let evidence = &node.evidence;
    if !evidence.given || evidence.is_missing() || matches!(node.duty, Duty::Terminated(_)) {
        return None;
    }
    let mut intake = Intake::of(node, now);
    intake.node.evidence.missing_since = Some(now);
    intake.judge();
    Some(intake.done())
}

/// Ends findings of events: the node booted again, a diagnostic passed, or an operator said so.
///
/// What a check says stays until the check says otherwise, whoever asks.
pub fn absolve(node: &Node, why: &Absolution, now: Timestamp) -> TakenIn {
    let reason = match why {
        Absolution::Reboot => "the node booted again".to_owned(),
        Absolution::Diagnostic(tested) => {
            format!("diagnostic {} {} passed", tested.test, tested.command)
        }
        Absolution::Operator(who) => format!("{who} put the node back into service"),
    };
    let mut intake = Intake::of(node, now);
    if let Absolution::Operator(_) = why {
        // Whoever puts it back with fewer GPUs says that it is to have no more.
        intake.node.expected_gpus = hardware_of(&intake.node);
        intake.node.findings.iter_mut().for_each(|finding| finding.under = None);
    }
    intake.clear(|finding| is_absolved(finding, why), &reason);
    intake.judge();
    intake.done()
}

fn is_absolved(finding: &Finding, why: &Absolution) -> bool {
    match (finding.ends, why) {
        (Ends::WhenCheckPasses, _) => false,
        (_, Absolution::Operator(_)) => true,
        (Ends::AtReboot | Ends::WhenOver, Absolution::Reboot) => true,
        (Ends::AtReboot, Absolution::Diagnostic(tested)) => tested.clears(finding),
        (Ends::At(_) | Ends::WhenReplaced | Ends::WhenGpusReturn, _)
        | (Ends::WhenOver, Absolution::Diagnostic(_)) => false,
    }
}

/// What a registration changes about what a node's health rests on: what was said before it is of another
/// boot, or of another machine than it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// Whether the node booted again since it last registered.
    pub rebooted: bool,
    /// Whether its health must be shown anew.
    pub anew: bool,
}

/// The node after a registration.
pub(crate) fn registered(node: &Node, begun: Begun, now: Timestamp) -> TakenIn {
    let mut intake = Intake::of(node, now);
    if begun.rebooted {
        intake.clear(|finding| is_absolved(finding, &Absolution::Reboot), "the node booted again");
    }
    if begun.anew {
        let given = intake.node.evidence.given;
        intake.node.evidence = Evidence { given, ..Evidence::default() };
        intake.node.checks.clear();
    }
    // An agent that waits for its driver registers without GPUs first: whether there are none is said by its
    // first report.
    if !intake.node.gpus.is_empty() {
        intake.gpus();
    }
    intake.judge();
    intake.done()
}

/// Which GPUs a node must have and has not, as a sentence; `None` if none.
fn gpus_missing(node: &Node) -> Option<String> {
    let (has, must) = (hardware_of(node), &node.expected_gpus);
    if must.len() <= has.len() {
        return None;
    }
    let missing = must.iter().filter(|gpu| !has.contains(gpu)).take(GPUS_NAMED_MAX);
    let missing: Vec<String> = missing.map(|gpu| quotable(gpu)).collect();
    let (is, of, missing) = (has.len(), must.len(), missing.join(", "));
    Some(format!("{is} of {of} GPUs registered; missing: {missing}"))
}

/// How many missing GPUs a sentence names.
const GPUS_NAMED_MAX: usize = 8;

/// What identifies the GPUs that a node has.
pub(crate) fn hardware_of(node: &Node) -> Vec<String> {
    let hardware = node.gpus.iter().map(|gpu| gpu.hardware().to_owned());
    let mut all: Vec<String> = hardware.filter(|hardware| !hardware.is_empty()).collect();
    all.sort_unstable();
    all.dedup();
    all
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
        None => {
            let (hardware, times, line) = (String::new(), Vec::new(), None);
            Sighting { event_type, code, gpu, hardware, times, line }
        }
    };
    seen.line = event.node_time.filter(|_| !event.raw.is_empty()).map(|node_time| LineSeen {
        boot_id: event.boot_id.clone(),
        node_time,
        raw: event.raw.clone(),
    });
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
        if self.was_told(event, &key) {
            return;
        }
        let error_key = format!("policy-error/{key}");
        sight(&mut self.node, event, self.now);
        let finding = match &verdict.severity {
            Ok(Severity::Healthy) => None,
            Ok(severity) => Some(self.judged(key, event, verdict, *severity)),
            // A rule that fails does not make milder what the driver and the catalogue call unhealthy.
            Err(cause) if verdict.at_least == Severity::Unhealthy => {
                let message = format!("{}; {}", failure(verdict, cause), verdict.inputs.join("; "));
                let verdict = Verdict { message, ..verdict.clone() };
                Some(self.judged(key, event, &verdict, Severity::Unhealthy))
            }
            Err(cause) => Some(self.unjudged(error_key.clone(), event, verdict, cause)),
        };
        // What ended with the boot it happened in is history.
        let finding = finding.filter(|finding| !self.is_history(event, finding));
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
        if wants_nothing(event) {
            let gpu = event.gpu_uuid_of(&self.node).to_owned();
            self.over(&Condition { gpu, name: RECOVERY.to_owned(), holds: false });
        }
    }

    /// Whether this is a kernel line that was told before and whose finding was ended since: by the node's
    /// clock it was written when that one was, by ours it comes much later.
    fn was_told(&self, event: &Event, key: &str) -> bool {
        let (code, gpu) = (event.code(), event.gpu_uuid_of(&self.node));
        let same = |seen: &&Sighting| {
            seen.event_type == event.event_type && seen.code == code && seen.gpu == gpu
        };
        let Some(seen) = self.node.sightings.iter().find(same) else { return false };
        let (Some(line), Some(node_time)) = (&seen.line, event.node_time) else { return false };
        let ago = seen.times.last().map(|last| self.now.duration_since(*last));
        line.raw == event.raw
            && line.boot_id == event.boot_id
            && line.node_time.duration_since(node_time).abs() <= TOLD_AGAIN_WITHIN
            && ago.is_some_and(|ago| TOLD_AGAIN_AFTER <= ago)
            && !self.node.findings.iter().any(|finding| finding.key == key)
    }

    /// Whether a finding would have ended with the boot in which its event happened.
    fn is_history(&self, event: &Event, finding: &Finding) -> bool {
        let boot_id = &self.node.machine.boot_id;
        let earlier = !event.boot_id.is_empty() && !boot_id.is_empty() && event.boot_id != *boot_id;
        earlier && matches!(finding.ends, Ends::AtReboot | Ends::WhenOver)
    }

    /// A condition is over.
    fn over(&mut self, condition: &Condition) {
        let reason = if condition.name == RECOVERY {
            "the driver no longer asks for it"
        } else {
            "the agent reports that it is over"
        };
        let gpu = &condition.gpu;
        self.clear(
            |finding| {
                finding.ends == Ends::WhenOver
                    && finding.condition == condition.name
                    && finding.gpu == *gpu
            },
            reason,
        );
    }

    /// A complete report has come.
    fn complete(&mut self) {
        let evidence = &mut self.node.evidence;
        evidence.complete_at.get_or_insert(self.now);
        evidence.missing_since = None;
        evidence.given = true;
        self.gpus();
    }

    /// Raises or ends what we find ourselves: that GPUs are missing, and that those that only a replacement
    /// cures were replaced.
    fn gpus(&mut self) {
        const KEY: &str = "gpus/missing/node";
        let Some(message) = gpus_missing(&self.node) else {
            let gone: BTreeSet<String> = {
                let has = |uuid: &str| self.node.gpus.iter().any(|gpu| gpu.uuid == uuid);
                let ill = self.node.findings.iter().map(|finding| finding.gpu.clone());
                ill.filter(|gpu| !gpu.is_empty() && !has(gpu)).collect()
            };
            let replaced = |finding: &Finding| {
                finding.ends == Ends::WhenReplaced && gone.contains(&finding.gpu)
            };
            self.clear(replaced, "the GPU was replaced");
            return self.clear(|finding| finding.key == KEY, "the node has all its GPUs");
        };
        if self.node.findings.iter().any(|known| known.key == KEY && known.message == message) {
            return;
        }
        self.find(Finding {
            key: KEY.to_owned(),
            severity: Some(Severity::Unhealthy),
            rule: GPUS_MISSING.to_owned(),
            policy: String::new(),
            policy_version: 0,
            message,
            evidence: String::new(),
            gpu: String::new(),
            first: self.now,
            last: self.now,
            count: 1,
            ends: Ends::WhenGpusReturn,
            under: None,
            condition: String::new(),
        });
    }

    fn judged(&self, key: String, event: &Event, verdict: &Verdict, severity: Severity) -> Finding {
        let mut message = verdict.message.clone();
        cut(&mut message, MESSAGE_LEN_MAX);
        let ends = match verdict.lasts {
            Lasts::UntilReplaced => Ends::WhenReplaced,
            // It lasts for as long as its condition does, and no timer knows how long that is.
            _ if !condition_of(event, verdict).is_empty() => Ends::WhenOver,
            Lasts::For(lasts) => Ends::At(after(self.now, lasts)),
            Lasts::UntilReboot => Ends::AtReboot,
        };
        self.finding(key, event, verdict, Some(severity), message, ends)
    }

    /// Nothing may be concluded from an event whose rule failed, not even that nothing is wrong.
    fn unjudged(&self, key: String, event: &Event, verdict: &Verdict, cause: &str) -> Finding {
        let mut message = failure(verdict, cause);
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
            under: None,
            condition: if ends == Ends::WhenOver {
                condition_of(event, verdict).to_owned()
            } else {
                String::new()
            },
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
        // as long, until it is ended. The milder of two keeps its own end, below the worse.
        if of_check || known.severity == found.severity {
            let ends = if known.severity == found.severity {
                later(known.ends, found.ends)
            } else {
                found.ends
            };
            let under = known.under.take().filter(|_| !of_check);
            *known = Finding { first: known.first, count: known.count, ends, under, ..found };
        } else if known.severity < found.severity {
            let below = Finding { under: None, ..known.clone() };
            *known = Finding {
                first: known.first,
                count: known.count,
                under: Some(Box::new(below)),
                ..found
            };
        } else {
            let ends = match known.under.take() {
                Some(under) if under.severity == found.severity => later(under.ends, found.ends),
                // Of three, the two worst are kept.
                Some(under) if found.severity < under.severity => {
                    known.under = Some(under);
                    return;
                }
                _ => found.ends,
            };
            known.under = Some(Box::new(Finding { first: known.first, ends, ..found }));
        }
    }

    fn clear(&mut self, ended: impl Fn(&Finding) -> bool, reason: &str) {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.node.findings).into_iter().partition(&ended);
        self.node.findings = kept;
        for mut finding in gone {
            match finding.under.take() {
                // What came before it lasts longer: it is milder again, and not over.
                Some(under) if !ended(&under) => {
                    let (last, count) = (finding.last, finding.count);
                    self.node.findings.push(Finding { last, count, ..*under });
                }
                _ => self.note(What::Cleared { finding: finding.key, reason: reason.to_owned() }),
            }
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

    /// Health from findings and evidence. What is unhealthy is so without evidence; nothing is well, or merely
    /// degraded, without it.
    fn judge(&mut self) {
        let Self { node, now, before, .. } = self;
        let worst = decisive(&node.findings);
        let is_mild = worst
            .is_none_or(|finding| finding.severity.is_some_and(|bad| bad < Severity::Unhealthy));
        let (state, reason, message) = match (worst, node.evidence.lacks()) {
            (_, Some((reason, message))) if is_mild => (HealthState::Unknown, reason, message),
            (None, _) => (HealthState::Healthy, NO_FINDINGS, "nothing is wrong with it"),
            (Some(finding), _) => {
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

/// By how much the time of a kernel line may differ when it is read again: it is made from the machine's
/// clock and the time since its start.
const TOLD_AGAIN_WITHIN: SignedDuration = SignedDuration::from_secs(1);
/// How long ago a line must have come to be one that is told again: a burst of equal lines is not.
const TOLD_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// Why nothing can be concluded from an event.
fn failure(verdict: &Verdict, cause: &str) -> String {
    let Verdict { rule, policy, policy_version, .. } = verdict;
    format!("rule {rule} of policy {policy} version {policy_version} failed: {cause}")
}

/// The condition for as long as which a finding lasts; empty if it happened once.
fn condition_of<'a>(event: &'a Event, verdict: &Verdict) -> &'a str {
    if verdict.advised { RECOVERY } else { &event.condition }
}

/// Whether an event says that the driver asks for nothing any more (Xid 154).
fn wants_nothing(event: &Event) -> bool {
    if event.event_type != super::EventType::Xid || event.code() != i64::from(RECOVERY_CHANGED) {
        return false;
    }
    let said =
        [&event.raw, &event.message].into_iter().find_map(|text| RecoveryChange::parse(text));
    match said {
        Some(change) => change.to == Some(RecoveryAction::None),
        None => event.recovery_action == Some(RecoveryAction::None.number()),
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
        under: None,
        condition: String::new(),
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

/// The end that is harder to come by: who waits for it has waited for the other.
fn later(one: Ends, other: Ends) -> Ends {
    let hard = |ends: &Ends| match ends {
        Ends::At(_) => 0,
        Ends::WhenOver => 1,
        Ends::AtReboot => 2,
        Ends::WhenCheckPasses => 3,
        Ends::WhenGpusReturn => 4,
        Ends::WhenReplaced => 5,
    };
    match (one, other) {
        (Ends::At(one), Ends::At(other)) => Ends::At(one.max(other)),
        (one, other) if hard(&one) < hard(&other) => other,
        (one, _) => one,
    }
}

fn after(now: Timestamp, lasts: SignedDuration) -> Timestamp {
    now.saturating_add(lasts).unwrap_or(Timestamp::MAX)
}
