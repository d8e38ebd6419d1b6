//! What each workload system is to hold about a node, what it was last seen to hold, and what follows.
//!
//! Level-triggered: what is wanted is compared with what each system was told and was seen to hold, each time
//! anew. What a newcomer gets wrong: a call that failed may have been heard all the same, so what is being told
//! is written down before it is, and until an answer came the system counts as told neither.

mod party;

pub use party::{AGENT, External, LeftOver, Out, Party, Seen, Told, Wish, Work};

use crate::backoff::delay;
use crate::command::cut;
use crate::ledger::{Entry, What};
use crate::node::{Duty, Flag, FlagNote, Hold, Node};
use jiff::{SignedDuration, Timestamp};

/// When to tell it again after a failure: soon, because a node that should take no work takes it.
const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(2);

/// And at the latest. A system that is away for an hour must not be called by ten thousand nodes each
/// second when it comes back.
const RETRY_MAX: SignedDuration = SignedDuration::from_mins(5);

/// How often a system that cannot be asked what it holds is told again that a node gets no work. It may have
/// forgotten; more often would be noise to a receiver that has not.
const REPEAT_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// The label of a node that names the workload systems that have it, such as `slurm` or `slurm.webhook`; `none`
/// for no system. Without it every configured system must know the node.
pub const SYSTEMS_LABEL: &str = "argosy.dev/workload-system";

/// What to do about a node at one system now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Tell it this.
    Tell(Wish),
    /// Ask it how far this drain is.
    Ask(Wish),
    /// Take back what it was told about a name that the machine does not have any more.
    Release(String),
    /// Nothing before then.
    Wait(Timestamp),
    /// Nothing.
    Nothing,
}

/// What a system can be called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// See `Next::Tell`.
    Tell(Wish),
    /// See `Next::Ask`.
    Ask(Wish),
    /// See `Next::Release`.
    Release(String),
}

impl Call {
    /// The word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Call::Tell(wish) => wish.state.as_str(),
            Call::Ask(_) => "drain-status",
            Call::Release(_) => "release",
        }
    }

    /// One word for its failure.
    const fn failure(&self) -> &'static str {
        match self {
            Call::Tell(Wish { state: Told::Uncordon, .. }) | Call::Release(_) => {
                "ExternalUncordonFailed"
            }
            Call::Tell(Wish { state: Told::Cordon, .. }) => "ExternalCordonFailed",
            Call::Tell(Wish { state: Told::Drain, .. }) => "ExternalDrainFailed",
            Call::Ask(_) => "ExternalDrainStatusFailed",
        }
    }
}

/// What is known of a system beside what is stored.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// Its name and address: what its state is stored under.
    pub key: &'a str,
    /// What it is called: `slurm`.
    pub name: &'a str,
    /// Whether it can be asked what it holds. One that cannot is told again from time to time.
    pub can_list: bool,
    /// Whether it can be told of a cordon; otherwise only of drains.
    pub takes_cordon: bool,
    /// Whether it can be told of a drain; otherwise it hears of a cordon.
    pub takes_drain: bool,
}

impl System<'_> {
    /// Whether it runs work on the node, as far as the node's labels say.
    pub fn has(&self, node: &Node) -> bool {
        has(node, self.name)
    }
}

/// Whether a system of this name or key runs work on the node, as far as the node's labels say.
fn has(node: &Node, system: &str) -> bool {
    let name = system.split(' ').next().unwrap_or_default();
    let named = node.labels.get(SYSTEMS_LABEL);
    named.is_none_or(|named| named.split('.').any(|one| one == name))
}

/// Which of the configured systems run work on a node, by their keys.
pub(crate) fn systems_of<'a>(node: &Node, systems: &'a [String]) -> Vec<&'a str> {
    systems.iter().map(String::as_str).filter(|key| has(node, key)).collect()
}

/// What a system is to hold about a node. `force` is whether the node's drain may end what is left at its
/// deadline.
pub fn wanted(node: &Node, system: &System<'_>, force: bool) -> Wish {
    let known = node.external.party(system.key).and_then(|party| party.told.as_ref());
    let cordon = |hold: &Hold| Wish { reason: reason(hold), ..Wish::of(Told::Cordon) };
    match &node.duty {
        Duty::Active => Wish::of(Told::Uncordon),
        Duty::Cordoned(hold) => cordon(hold),
        Duty::Draining { hold, .. } if !system.takes_drain => cordon(hold),
        Duty::Draining { hold, command, deadline, done } => {
            let same = known.filter(|known| *done && known.command == Some(*command));
            same.cloned().unwrap_or_else(|| Wish {
                state: Told::Drain,
                reason: reason(hold),
                deadline: Some(*deadline),
                force,
                command: Some(*command),
            })
        }
        // It takes no work any more; whether what ran was asked to leave does not matter now.
        Duty::Terminated(hold) => {
            let drained = known.filter(|known| known.state == Told::Drain);
            drained.cloned().unwrap_or_else(|| cordon(hold))
        }
    }
}

/// Why a node gets no work, for people at the other side.
fn reason(hold: &Hold) -> String {
    if hold.reason.is_empty() { format!("by {}", hold.by) } else { hold.reason.clone() }
}

/// What to do about a node at one system now. `name` is what the system calls the machine, if that is known.
pub fn next(
    node: &Node,
    system: &System<'_>,
    wanted: &Wish,
    name: Option<&str>,
    now: Timestamp,
) -> Next {
    let blank = Party::default();
    let party = node.external.party(system.key).unwrap_or(&blank);
    if !system.has(node) {
        return Next::Nothing;
    }
    let told = party.told.as_ref();
    let renamed =
        told.is_some() && name.is_some_and(|name| !party.name.is_empty() && party.name != name);
    let mute = wanted.state == Told::Cordon && !system.takes_cordon;
    let behind = told != Some(wanted) || party.telling.is_some() || party.differs() || renamed;
    let repeat_at = (!system.can_list && wanted.state != Told::Uncordon)
        .then(|| party.told_at.unwrap_or(now).saturating_add(REPEAT_AFTER).unwrap_or(now));
    let draining = matches!(node.duty, Duty::Draining { done: false, .. });
    let due = if behind && !mute {
        Next::Tell(wanted.clone())
    } else if draining && told.is_some_and(|told| told.state == Told::Drain) {
        Next::Ask(wanted.clone())
    } else if let Some(former) = party.former.first() {
        Next::Release(former.clone())
    } else {
        match repeat_at.filter(|_| !mute) {
            Some(at) if at <= now => Next::Tell(wanted.clone()),
            Some(at) => return Next::Wait(at),
            None => return Next::Nothing,
        }
    };
    // What failed is told later; what is wanted since then is told at once.
    let same = party.telling.as_ref().or(told) == Some(wanted);
    match party.retry_at {
        Some(at) if same && now < at => Next::Wait(at),
        Some(_) | None => due,
    }
}

/// The node before a system is told something; `None` if that is written down already.
pub fn telling(node: &Node, system: &str, wish: &Wish) -> Option<Node> {
    let known = node.external.party(system).and_then(|party| party.telling.as_ref());
    if known == Some(wish) {
        return None;
    }
    let mut after = node.clone();
    after.external.parties.entry(system.to_owned()).or_default().telling = Some(wish.clone());
    Some(after)
}

/// The node after a system heard what it was told, of a machine that it calls `name`. If something else is
/// wanted by now, that is told next.
pub fn heard(
    node: &Node,
    system: &System<'_>,
    wish: &Wish,
    name: &str,
    now: Timestamp,
) -> (Node, Vec<Entry>) {
    let mut after = node.clone();
    let party = after.external.parties.entry(system.key.to_owned()).or_default();
    let before = party.clone();
    let kept_out = before.told.as_ref().is_some_and(|told| told.state != Told::Uncordon);
    if kept_out && !before.name.is_empty() && before.name != name {
        party.former.push(before.name.clone());
    }
    party.former.retain(|former| former != name);
    name.clone_into(&mut party.name);
    party.told = Some(wish.clone());
    party.told_at = Some(now);
    party.telling = None;
    // What it held before it was told is no evidence of what it holds now.
    party.seen = None;
    if party.work.as_ref().is_some_and(|work| Some(work.of) != wish.command) {
        party.work = None;
    }
    well(party);
    let again = before.told.as_ref() == Some(wish) && before.telling.as_ref() == Some(wish);
    let message = match before.seen.filter(|seen| again && seen.differs(wish.state)) {
        Some(seen) => format!("told again, because {}", seen.words(wish.state)),
        None => String::new(),
    };
    let mut entries = Vec::new();
    // That a node that was never kept out may be used is no news; nor is what was known.
    let first = before.told.is_none() && wish.state == Told::Uncordon;
    if !(first || again && message.is_empty() && before.failures == 0) {
        entries.push(said(node, system.name, wish.state.as_str(), Ok(message), now));
    }
    entries.extend(flags(&mut after, now));
    (after, entries)
}

/// The node after a system took back what it was told about a name that the machine had before, or does not
/// know that name.
pub fn released(
    node: &Node,
    system: &System<'_>,
    name: &str,
    now: Timestamp,
) -> (Node, Vec<Entry>) {
    let mut after = node.clone();
    let party = after.external.parties.entry(system.key.to_owned()).or_default();
    party.former.retain(|former| former != name);
    well(party);
    let mut entries =
        vec![said(node, system.name, "uncordon", Ok(format!("its former name {name}")), now)];
    entries.extend(flags(&mut after, now));
    (after, entries)
}

/// The node after a system said how far its drain is; `None` if that is no news. Said after the deadline is
/// news: until then nobody knew what was left at the deadline.
pub fn answered(
    node: &Node,
    system: &System<'_>,
    work: Work,
    deadline: Timestamp,
    now: Timestamp,
) -> Option<(Node, Vec<Entry>)> {
    let mut after = node.clone();
    let mut entries = Vec::new();
    let party = after.external.parties.entry(system.key.to_owned()).or_default();
    let known = party.work.as_ref().filter(|known| known.of == work.of);
    let forced = work.forced || known.is_some_and(|known| known.forced);
    let news = known.is_none_or(|known| {
        let late = known.at < deadline && deadline <= work.at;
        late || known.forced != forced || !known.says_the_same(&work)
    });
    if news {
        if work.over {
            let message = Ok("no work is left".to_owned());
            entries.push(said(node, system.name, "drained", message, now));
        }
        party.work = Some(Work { forced, message: cut(&work.message), ..work });
    }
    well(party);
    entries.extend(flags(&mut after, now));
    (after != *node).then_some((after, entries))
}

/// The node after a listing showed what a system holds about it; `None` if that is no news. `at` is when the
/// listing began: what was told since then is newer.
pub fn seen(
    node: &Node,
    system: &System<'_>,
    out: Out,
    note: &str,
    at: Timestamp,
    now: Timestamp,
) -> Option<(Node, Vec<Entry>)> {
    let party = node.external.party(system.key)?;
    let older = party.told_at.is_some_and(|told_at| at < told_at) || party.telling.is_some();
    let note = cut(&note.replace(char::is_control, " "));
    let same = party.seen.as_ref().is_some_and(|seen| seen.out == out && seen.note == note);
    if older || same || party.told.is_none() {
        return None;
    }
    let mut after = node.clone();
    let mut entries = Vec::new();
    let seen = Seen { at, out, note };
    let state = party.told.as_ref().map_or(Told::Uncordon, |told| told.state);
    if seen.differs(state) || seen.blocks(state) {
        entries.push(said(node, system.name, "seen", Err(seen.words(state)), now));
    }
    if let Some(party) = after.external.parties.get_mut(system.key) {
        party.seen = Some(seen);
    }
    entries.extend(flags(&mut after, now));
    Some((after, entries))
}

/// The node after a system could not be reached, or refused. Its duty stays what it is: a decision is
/// not taken back because somebody could not be told of it (L6). `None` if something else is wanted by now: that
/// is told at once, whatever became of the call.
pub fn failed(
    node: &Node,
    system: &System<'_>,
    call: &Call,
    wanted: &Wish,
    message: &str,
    now: Timestamp,
) -> Option<(Node, Vec<Entry>)> {
    if let Call::Tell(wish) | Call::Ask(wish) = call
        && wish != wanted
    {
        return None;
    }
    let mut after = node.clone();
    let party = after.external.parties.entry(system.key.to_owned()).or_default();
    party.failures = party.failures.saturating_add(1);
    let wait = delay(node.id.as_str(), party.failures, RETRY_FIRST, RETRY_MAX);
    party.retry_at = Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
    let message = cut(&message.replace(char::is_control, " "));
    let note = format!("{}: {}: {message}", call.failure(), system.name);
    let news = party.failure != note;
    party.failure.clone_from(&note);
    let mut entries = Vec::new();
    // Said once, and again when it is another failure: a system that is away for a day is one story.
    if news {
        entries.push(said(node, system.name, call.as_str(), Err(note), now));
    }
    entries.extend(flags(&mut after, now));
    Some((after, entries))
}

/// The node without what is known of systems that are not configured any more: if one comes back, it is told
/// everything anew.
pub fn without_others(node: &Node, systems: &[String]) -> Option<Node> {
    let stays = |key: &String| key == AGENT || systems.contains(key);
    if node.external.parties.keys().all(stays) {
        return None;
    }
    let mut after = node.clone();
    after.external.parties.retain(|key, _| stays(key));
    Some(after)
}

/// What fails no more.
fn well(party: &mut Party) {
    party.failures = 0;
    party.retry_at = None;
    party.failure.clear();
}

/// Raises and lowers the flags that follow from what is known of the systems.
fn flags(node: &mut Node, now: Timestamp) -> Vec<Entry> {
    let parties = &node.external.parties;
    let failing = parties.values().find(|party| 0 < party.failures);
    let failing = failing.map(|party| party.failure.clone());
    let differing = parties.iter().find_map(|(key, party)| {
        let (seen, told) = (party.seen.as_ref()?, party.told.as_ref()?);
        let name = key.split(' ').next().unwrap_or_default();
        let shown = seen.differs(told.state) || seen.blocks(told.state);
        shown.then(|| format!("{name}: {}", seen.words(told.state)))
    });
    let mut entries = Vec::new();
    for (flag, note) in [(Flag::ExternalFailed, failing), (Flag::ExternalDiffers, differing)] {
        let known = node.flags.get(&flag).cloned();
        match (known, note) {
            (Some(known), None) => {
                node.flags.remove(&flag);
                entries.push(flag_entry(node, flag, false, known.message, now));
            }
            (None, Some(message)) => {
                node.flags.insert(flag, FlagNote { since: now, message: message.clone() });
                entries.push(flag_entry(node, flag, true, message, now));
            }
            (Some(known), Some(message)) => {
                node.flags.insert(flag, FlagNote { since: known.since, message });
            }
            (None, None) => {}
        }
    }
    entries
}

fn said(
    node: &Node,
    system: &str,
    what: &str,
    outcome: Result<String, String>,
    at: Timestamp,
) -> Entry {
    let ok = outcome.is_ok();
    let message = outcome.unwrap_or_else(|failure| failure);
    let (system, what) = (system.to_owned(), what.to_owned());
    let what = What::External { system, what, ok, message };
    Entry { at, node: node.id.clone(), what }
}

fn flag_entry(node: &Node, flag: Flag, raised: bool, message: String, at: Timestamp) -> Entry {
    let flag = flag.as_str().to_owned();
    Entry { at, node: node.id.clone(), what: What::Flag { flag, raised, message } }
}

#[cfg(test)]
mod tests;
