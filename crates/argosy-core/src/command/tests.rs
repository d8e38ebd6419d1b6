use super::*;
use crate::external::{Party, Told, Wish, Work};
use crate::fixture::at;
use crate::health::{Finding, HealthState, Severity};
use crate::node::fixture;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The key of a workload system.
const SLURM: &str = "slurm /usr/bin/scontrol";

fn id(number: u128) -> CommandId {
    CommandId::new(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000 + number))
}

fn node() -> Node {
    fixture::node("n1")
}

fn sick() -> Node {
    let mut node = node();
    node.health.state = HealthState::Unhealthy;
    node
}

/// `DRAIN force=true`, by ann; `auto CORDON`, by ourselves; `DRAIN for=60`.
fn order(text: &str) -> Order {
    let (automatic, text) = match text.strip_prefix("auto ") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut parameters: BTreeMap<String, String> = BTreeMap::new();
    for word in rest.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        parameters.insert(name.to_owned(), value.to_owned());
    }
    let drain_for =
        parameters.remove("for").map(|text| SignedDuration::from_secs(text.parse().unwrap()));
    Order {
        kind: CommandKind::ALL.into_iter().find(|known| known.as_str() == kind).unwrap(),
        parameters,
        reason: "because".to_owned(),
        by: if automatic { "remedy" } else { "ann" }.to_owned(),
        automatic,
        drain_for,
    }
}

/// A node and its commands, as a store would keep them.
#[derive(Clone, Debug)]
struct Desk {
    node: Node,
    commands: Vec<Command>,
    entries: Vec<Entry>,
    settings: PoolSettings,
    now: i64,
}

impl Desk {
    fn new(node: Node) -> Desk {
        let settings = PoolSettings::default();
        Desk { node, commands: Vec::new(), entries: Vec::new(), settings, now: 0 }
    }

    /// After these steps: orders, `deliver`, `ack OUTCOME`, `+SECONDS`, `well`, `told`.
    fn after(node: Node, steps: &[&str]) -> Desk {
        let mut desk = Desk::new(node);
        for step in steps {
            desk.step(step).unwrap_or_else(|error| panic!("{step}: {error}"));
        }
        desk
    }

    fn step(&mut self, step: &str) -> Result<(), Refused> {
        match step.split_once(' ').unwrap_or((step, "")) {
            ("deliver", _) => {
                let due = self.due();
                self.moved(delivered(&self.node, &due, at(self.now)));
            }
            ("ack", outcome) => {
                let due = self.due();
                self.ack(&due, outcome);
            }
            ("enforce", _) => {
                let due = self.due();
                self.moved(enforced(&self.node, &due, at(self.now)));
            }
            ("drained", _) => {
                let due = self.due();
                self.workload(&due, true);
                self.moved(concluded(&self.node, &due, &self.systems(), at(self.now)));
            }
            ("fetch", _) => {
                if let Some((node, entries)) = fetched(&self.node, at(self.now)) {
                    self.node = node;
                    self.entries.extend(entries);
                }
            }
            ("well", _) => self.node.health.state = HealthState::Healthy,
            ("lost", _) => self.node.liveness = Liveness::Unreachable,
            ("told", _) => {
                let due = self.due();
                self.workload(&due, false);
            }
            (time, _) if time.starts_with('+') => {
                self.now += time[1..].parse::<i64>().unwrap();
                self.elapse();
            }
            _ => return self.issue(order(step)),
        }
        Ok(())
    }

    /// The workload system was told of the drain, and says whether it is over.
    fn workload(&mut self, drain: &Command, over: bool) {
        let told = Wish { command: Some(drain.id), ..Wish::of(Told::Drain) };
        let (of, at, message) = (drain.id, at(self.now), "job 7".to_owned());
        let work = Work { of, at, over, forced: false, last: false, message };
        let party = Party { told: Some(told), work: Some(work), ..Party::default() };
        self.node.external.parties.insert(SLURM.to_owned(), party);
    }

    /// The workload systems that are configured: one, once it was told.
    fn systems(&self) -> Vec<String> {
        let known = self.node.external.parties.contains_key(SLURM);
        known.then(|| SLURM.to_owned()).into_iter().collect()
    }

    fn issue(&mut self, order: Order) -> Result<(), Refused> {
        let id = id(u128::try_from(self.commands.len()).unwrap() + 1);
        let waiting = self.waiting();
        let issued = issue(&self.node, &waiting, order, id, &self.settings, at(self.now))?;
        self.node = issued.node;
        for cancelled in issued.cancelled {
            self.replace(cancelled);
        }
        self.commands.push(issued.command);
        self.entries.extend(issued.entries);
        Ok(())
    }

    fn waiting(&self) -> Vec<&Command> {
        self.commands.iter().filter(|command| !command.state.is_done()).collect()
    }

    fn due(&self) -> Command {
        let waiting = self.waiting();
        let oldest = waiting.iter().min_by_key(|command| command.age());
        (*oldest.expect("something is due")).clone()
    }

    fn ack(&mut self, command: &Command, outcome: &str) {
        let (outcome, result) = match outcome {
            "" => (None, None),
            "Completed" => (Some(Outcome::Completed), None),
            "Drained" => (Some(Outcome::Drained), None),
            "Forced" => (Some(Outcome::Forced), None),
            "TimedOut" => (Some(Outcome::TimedOut), None),
            "Failed" => (Some(Outcome::Failed), None),
            "Expired" => (Some(Outcome::Expired), None),
            "Cancelled" => (Some(Outcome::Cancelled), None),
            other => panic!("{other} is no outcome"),
        };
        let ack = Ack { outcome, progress: None, message: "says so".to_owned(), result };
        self.moved(acknowledged(&self.node, command, ack, &self.systems(), at(self.now)));
    }

    fn elapse(&mut self) {
        let open: Vec<Command> = self.waiting().into_iter().cloned().collect();
        for command in open {
            let waiting = self.waiting();
            let (settings, systems) = (&self.settings, self.systems());
            let moved = elapsed(&self.node, &command, &waiting, settings, &systems, at(self.now));
            self.moved(moved);
        }
    }

    fn moved(&mut self, moved: Option<Moved>) {
        let Some(moved) = moved else { return };
        self.node = moved.node;
        self.entries.extend(moved.entries);
        self.replace(moved.command);
    }

    fn replace(&mut self, command: Command) {
        let place = self.commands.iter_mut().find(|known| known.id == command.id).unwrap();
        assert!(!place.state.is_done(), "I5: {} had ended", place.id);
        *place = command;
    }

    /// `CORDONED/ann: CORDON pending, DRAIN Cancelled`.
    fn line(&self) -> String {
        let hold = self.node.duty.hold().map(|hold| format!("/{}", hold.by)).unwrap_or_default();
        let done = matches!(self.node.duty, Duty::Draining { done: true, .. });
        let done = if done { " (done)" } else { "" };
        let flags: String =
            self.node.flags.keys().map(|flag| format!(" {}", flag.as_str())).collect();
        let commands: Vec<String> = self
            .commands
            .iter()
            .map(|command| {
                let ours = if command.automatic { "auto " } else { "" };
                let state = match &command.state {
                    CommandState::Done { outcome, .. } => format!("{outcome:?}"),
                    CommandState::Pending | CommandState::Acknowledged { .. } => {
                        command.state.word().to_owned()
                    }
                };
                format!("{ours}{} {state}", command.kind.as_str())
            })
            .collect();
        let status = self.node.status().as_str();
        format!("{status}{hold}{done}{flags}: {}", commands.join(", "))
    }
}

/// Every duty a node can have, with the steps that lead there.
const DUTIES: &[(&str, &[&str])] = &[
    ("active", &[]),
    ("cordon on its way", &["auto CORDON"]),
    ("cordoned by us", &["auto CORDON", "ack Completed"]),
    ("cordoned by ann", &["CORDON", "ack Completed"]),
    ("cordoned by ann, not fetched", &["CORDON"]),
    ("drained by us", &["auto DRAIN", "deliver"]),
    ("draining", &["DRAIN", "deliver"]),
    ("draining, done", &["DRAIN", "ack Drained"]),
    ("terminated", &["TERMINATE"]),
];

#[test]
fn every_order_in_every_duty() {
    let mut table = String::new();
    for (duty, steps) in DUTIES {
        for kind in CommandKind::ALL {
            for automatic in [false, true] {
                let mut desk = Desk::after(sick(), steps);
                let text = format!("{}{}", if automatic { "auto " } else { "" }, kind.as_str());
                let line = match desk.step(&text) {
                    Ok(()) => desk.line(),
                    Err(refused) => format!("no: {refused}"),
                };
                writeln!(table, "{duty} + {text} = {line}").unwrap();
            }
        }
    }
    assert_eq!(table, include_str!("table.txt"), "this is it now:\n{table}");
}

#[track_caller]
fn check(node: Node, steps: &[&str], expected: &str) {
    assert_eq!(Desk::after(node, steps).line(), expected, "{steps:?}");
}

#[test]
fn what_a_node_says_ends_a_command_once() {
    // What is claimed for a drain, and for anything else.
    for (claimed, drain, other) in [
        ("Completed", "DRAINING/ann (done): DRAIN Drained", "CORDONED/ann: CORDON Completed"),
        ("Drained", "DRAINING/ann (done): DRAIN Drained", "CORDONED/ann: CORDON Completed"),
        ("Forced", "DRAINING/ann (done): DRAIN Forced", "CORDONED/ann: CORDON Completed"),
        (
            "TimedOut",
            "DRAINING/ann (done): DRAIN TimedOut",
            "CORDONED/ann CommandFailed: CORDON Failed",
        ),
        ("Failed", "CORDONED/ann: DRAIN Failed", "CORDONED/ann CommandFailed: CORDON Failed"),
        ("Expired", "CORDONED/ann: DRAIN Expired", "CORDONED/ann: CORDON Expired"),
        ("Cancelled", "CORDONED/ann: DRAIN Failed", "CORDONED/ann CommandFailed: CORDON Failed"),
    ] {
        let ack = format!("ack {claimed}");
        check(node(), &["DRAIN", "deliver", &ack], drain);
        check(node(), &["CORDON", &ack], other);
    }
}

#[test]
fn f3_what_is_said_again_is_no_news() {
    let desk = Desk::after(node(), &["DRAIN", "ack Drained"]);
    let again = |outcome| {
        let ack = Ack { outcome, progress: Some(3), message: String::new(), result: None };
        acknowledged(&desk.node, &desk.commands[0], ack, &[], at(9))
    };
    for outcome in [None, Some(Outcome::Drained), Some(Outcome::Failed), Some(Outcome::Cancelled)] {
        assert_eq!(again(outcome), None, "{outcome:?}");
    }
    assert_eq!(delivered(&desk.node, &desk.commands[0], at(9)), None);
    assert_eq!(concluded(&desk.node, &desk.commands[0], &[], at(9)), None);
    let late = at(1_000_000);
    assert_eq!(elapsed(&desk.node, &desk.commands[0], &[], &desk.settings, &[], late), None);
}

#[test]
fn progress_only_grows_and_is_news_only_then() {
    let mut desk = Desk::after(node(), &["RUN_DIAGNOSTIC"]);
    let mut told = Vec::new();
    for percent in [None, None, Some(10), Some(10), Some(5), Some(200), Some(100)] {
        let ack = Ack { outcome: None, progress: percent, message: String::new(), result: None };
        let moved = acknowledged(&desk.node, &desk.commands[0], ack, &[], at(1));
        told.push(moved.is_some());
        desk.moved(moved);
    }
    assert_eq!(told, [true, false, true, false, false, true, false]);
    let state = CommandState::Acknowledged { at: at(1), progress: Some(100) };
    assert_eq!(desk.commands[0].state, state);
    assert_eq!(desk.entries.len(), 2, "progress is not for the ledger");
}

#[test]
fn time_ends_what_nobody_else_does() {
    let rows: &[(&[&str], &str)] = &[
        // Undelivered. The duty that was decided stays.
        (&["CORDON", "+599"], "CORDONED/ann: CORDON pending"),
        (&["CORDON", "+600"], "CORDONED/ann CommandChannelDown: CORDON Expired"),
        (&["CORDON", "lost", "+600"], "CORDONED/ann: CORDON Expired"),
        (&["TERMINATE", "+600"], "TERMINATED/ann CommandChannelDown: TERMINATE Expired"),
        // A drain that nobody works on is a cordon.
        (&["DRAIN", "+600"], "CORDONED/ann CommandChannelDown: DRAIN Expired"),
        (&["DRAIN for=60", "+60"], "CORDONED/ann CommandChannelDown: DRAIN Expired"),
        // F4: past the deadline, never drained.
        (&["DRAIN", "deliver", "+3599"], "DRAINING/ann: DRAIN acknowledged"),
        (&["DRAIN", "deliver", "+3600"], "DRAINING/ann (done): DRAIN TimedOut"),
        // Forced is what somebody ended, and said so.
        (&["DRAIN force=true", "deliver", "+3600"], "DRAINING/ann: DRAIN acknowledged"),
        (&["DRAIN force=true", "deliver", "+3660"], "DRAINING/ann (done): DRAIN TimedOut"),
        (
            &["DRAIN force=true", "deliver", "+3600", "ack Forced"],
            "DRAINING/ann (done): DRAIN Forced",
        ),
        (&["DRAIN timeout=60", "deliver", "+60"], "DRAINING/ann (done): DRAIN TimedOut"),
        // The workload system drains it, with or without the node.
        (&["DRAIN", "told", "+3599"], "DRAINING/ann: DRAIN pending"),
        (&["DRAIN force=true", "told", "+3600"], "DRAINING/ann: DRAIN pending"),
        (&["DRAIN force=true", "told", "+3900"], "DRAINING/ann (done): DRAIN TimedOut"),
        (&["DRAIN", "told", "+3660"], "DRAINING/ann (done): DRAIN TimedOut"),
        (&["DRAIN", "told", "drained"], "DRAINING/ann (done): DRAIN Drained"),
        // Fetched, and never mentioned again.
        (&["CORDON", "deliver", "+599"], "CORDONED/ann: CORDON acknowledged"),
        (&["CORDON", "deliver", "+600"], "CORDONED/ann CommandFailed: CORDON Failed"),
        (&["TERMINATE", "deliver", "+600"], "TERMINATED/ann: TERMINATE Completed"),
        (
            &["RUN_DIAGNOSTIC seconds=900", "deliver", "+1499"],
            "ACTIVE: RUN_DIAGNOSTIC acknowledged",
        ),
        (&["RUN_DIAGNOSTIC seconds=900", "deliver", "+1500"], "ACTIVE: RUN_DIAGNOSTIC Failed"),
        // Behind another command, nothing is wrong with the channel.
        (
            &["DRAIN", "deliver", "RUN_DIAGNOSTIC", "+600"],
            "DRAINING/ann: DRAIN acknowledged, RUN_DIAGNOSTIC Expired",
        ),
        // The channel works again.
        (&["CORDON", "+600", "fetch"], "CORDONED/ann: CORDON Expired"),
    ];
    for (steps, expected) in rows {
        check(node(), steps, expected);
    }
}

#[test]
fn our_own_cordon_takes_effect_when_it_is_fetched_and_only_while_it_is_true() {
    let rows: &[(&[&str], &str)] = &[
        (&["auto CORDON"], "UNHEALTHY: auto CORDON pending"),
        (&["auto CORDON", "deliver"], "CORDONED/remedy: auto CORDON acknowledged"),
        (&["auto CORDON", "enforce"], "CORDONED/remedy: auto CORDON pending"),
        (&["auto CORDON", "enforce", "deliver"], "CORDONED/remedy: auto CORDON acknowledged"),
        (&["auto CORDON", "well", "+1"], "ACTIVE: auto CORDON Cancelled"),
        (&["auto CORDON", "+600"], "UNHEALTHY CommandChannelDown: auto CORDON Expired"),
        (
            &["auto CORDON", "deliver", "well", "auto UNCORDON"],
            "ACTIVE: auto CORDON Cancelled, auto UNCORDON pending",
        ),
        // F5: a node that recovers while we drain it is let go.
        (
            &["auto DRAIN", "deliver", "well", "auto UNCORDON"],
            "ACTIVE: auto DRAIN Cancelled, auto UNCORDON pending",
        ),
    ];
    for (steps, expected) in rows {
        check(sick(), steps, expected);
    }
}

#[test]
fn findings_of_events_end_when_an_operator_or_a_diagnostic_says_so() {
    let mut broken = sick();
    broken.findings.push(Finding {
        key: "xid/79/GPU-1".to_owned(),
        severity: Some(Severity::Unhealthy),
        rule: "fatal-xid".to_owned(),
        policy: "default".to_owned(),
        policy_version: 1,
        message: "Xid 79".to_owned(),
        evidence: String::new(),
        gpu: String::new(),
        first: at(0),
        last: at(0),
        count: 1,
        ends: Ends::AtReboot,
    });
    let passed = |desk: &mut Desk, passed: Option<bool>| {
        let due = desk.due();
        let result = passed.map(|passed| json!({ "passed": passed }));
        let (outcome, message) = (Some(Outcome::Completed), String::new());
        let ack = Ack { outcome, progress: None, message, result };
        desk.moved(acknowledged(&desk.node, &due, ack, &[], at(desk.now)));
    };
    for (steps, said, left) in [
        (&["CORDON", "ack Completed", "UNCORDON"][..], None, 0),
        // We put a node back because it is well, which its findings say.
        (&["auto CORDON", "ack Completed", "auto UNCORDON"], None, 1),
        (&["RUN_DIAGNOSTIC", "deliver"], Some(Some(true)), 0),
        (&["RUN_DIAGNOSTIC", "deliver"], Some(Some(false)), 1),
        // Navarch's daemon says that everything succeeds.
        (&["RUN_DIAGNOSTIC", "deliver"], Some(None), 1),
        (&["CORDON", "deliver"], Some(Some(true)), 1),
    ] {
        let mut desk = Desk::after(broken.clone(), steps);
        if let Some(said) = said {
            passed(&mut desk, said);
        }
        assert_eq!(desk.node.findings.len(), left, "{steps:?} {said:?}");
        let cleared = desk.entries.iter().any(|e| matches!(e.what, What::Cleared { .. }));
        assert_eq!(cleared, left == 0, "{steps:?} {said:?}");
    }
}

#[test]
fn the_ledger_has_a_line_for_every_step() {
    let desk = Desk::after(node(), &["DRAIN", "deliver", "UNCORDON", "ack Completed"]);
    let lines: Vec<String> = desk
        .entries
        .iter()
        .map(|entry| {
            if let What::Command { kind, state, message, .. } = &entry.what {
                format!("{} {state}: {message}", kind.as_str())
            } else if let What::Status { from, to, reason } = &entry.what {
                format!("{} -> {}: {reason}", from.0, to.0)
            } else {
                format!("{entry:?}")
            }
        })
        .collect();
    let expected = [
        "DRAIN pending: because",
        "ACTIVE -> DRAINING: DRAIN by ann: because",
        "DRAIN acknowledged: because",
        "DRAIN cancelled: overruled by UNCORDON by ann: because",
        "UNCORDON pending: because",
        "DRAINING -> ACTIVE: UNCORDON by ann: because",
        "UNCORDON acknowledged: because",
        "UNCORDON completed: says so",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn k15_only_typed_parameters_pass() {
    let rows = [
        ("CORDON a=1", "CORDON has no parameters; `a` is not known"),
        ("CORDON uncordon=true", "to take a cordon back, issue UNCORDON"),
        ("UNCORDON force=true", "UNCORDON has no parameters; `force` is not known"),
        (
            "DRAIN timeout=0",
            "parameter timeout must be a whole number of seconds from 1 to 604800, not `0`",
        ),
        (
            "DRAIN timeout=604801",
            "parameter timeout must be a whole number of seconds from 1 to 604800, not `604801`",
        ),
        (
            "DRAIN timeout=1s",
            "parameter timeout must be a whole number of seconds from 1 to 604800, not `1s`",
        ),
        (
            "DRAIN timeout=+5",
            "parameter timeout must be a whole number of seconds from 1 to 604800, not `+5`",
        ),
        (
            "DRAIN timeout=99999999999999999999",
            "parameter timeout must be a whole number of seconds from 1 to 604800, not `99999999999999999999`",
        ),
        ("DRAIN force=yes", "parameter force must be `true` or `false`, not `yes`"),
        ("DRAIN tiemout=5", "DRAIN has no parameter `tiemout`; is `timeout` meant?"),
        ("DRAIN for=0", "a drain may take from 1 to 604800 seconds, not 0"),
        ("DRAIN for=60 timeout=61", "`timeout` says 61 s, the deadline 60 s; give one of them"),
        (
            "RUN_DIAGNOSTIC test=;rm",
            "parameter test must be one of quick, memory, bandwidth, compute, stress, all, not `;rm`",
        ),
        (
            "RUN_DIAGNOSTIC test=$(reboot)",
            "parameter test must be one of quick, memory, bandwidth, compute, stress, all, not `$(reboot)`",
        ),
        (
            "RUN_DIAGNOSTIC seconds=3601",
            "parameter seconds must be a whole number of seconds from 1 to 3600, not `3601`",
        ),
        ("RUN_DIAGNOSTIC gpu=64", "parameter gpu must be a whole number from 0 to 63, not `64`"),
        ("RUN_DIAGNOSTIC runs=0", "parameter runs must be a whole number from 1 to 10000, not `0`"),
        (
            "RUN_DIAGNOSTIC fraction=1e-1",
            "parameter fraction must be a number from 0.01 to 1, not `1e-1`",
        ),
        (
            "RUN_DIAGNOSTIC fraction=inf",
            "parameter fraction must be a number from 0.01 to 1, not `inf`",
        ),
        (
            "RUN_DIAGNOSTIC test=quick type=quick",
            "`test` and `type` are two names of one parameter; give one of them",
        ),
        (
            "RUN_DIAGNOSTIC command=ls",
            "RUN_DIAGNOSTIC has no parameter `command`; it has test, type, seconds, gpu, runs, fraction, force",
        ),
        ("TERMINATE exit=maybe", "parameter exit must be `true` or `false`, not `maybe`"),
        ("TERMINATE for=60", "TERMINATE has no deadline; only DRAIN has"),
    ];
    for (text, expected) in rows {
        let refused = Desk::new(node()).step(text).unwrap_err();
        assert!(matches!(refused, Refused::Invalid(_)), "{text}");
        assert_eq!(refused.to_string(), expected, "{text}");
    }
    for text in [
        "DRAIN timeout=1 force=false",
        "RUN_DIAGNOSTIC test=memory gpu=0 fraction=0.5 force=true",
        "RUN_DIAGNOSTIC test=compute runs=1000 gpu=63",
        "DRAIN for=60 timeout=60",
        "RUN_DIAGNOSTIC",
        "RUN_DIAGNOSTIC test=stress seconds=3600",
        "RUN_DIAGNOSTIC type=all",
        "TERMINATE exit=false force=true",
    ] {
        assert_eq!(Desk::new(node()).step(text), Ok(()), "{text}");
    }
}

#[test]
fn a_reason_is_one_line_of_bounded_length() {
    let with = |reason: String, automatic| {
        let order = Order { reason, automatic, ..order("RUN_DIAGNOSTIC") };
        let issued = issue(&node(), &[], order, id(1), &PoolSettings::default(), at(0));
        issued.map(|issued| issued.command.reason)
    };
    let long = "x".repeat(REASON_LEN_MAX + 1);
    assert_eq!(with("fan is loud".to_owned(), false).as_deref(), Ok("fan is loud"));
    assert!(matches!(with(long.clone(), false), Err(Refused::Invalid(_))));
    assert!(matches!(with("a\nb".to_owned(), false), Err(Refused::Invalid(_))));
    assert_eq!(with("a\u{1b}[31m\nb".to_owned(), true).as_deref(), Ok("a [31m b"));
    assert_eq!(with(long, true).map(|reason| reason.len()), Ok(REASON_LEN_MAX));
    // Where Navarch's clients put it.
    let parameters = BTreeMap::from([("reason".to_owned(), "loud".to_owned())]);
    let order = Order { reason: String::new(), parameters, ..order("CORDON") };
    let issued = issue(&node(), &[], order, id(1), &PoolSettings::default(), at(0)).unwrap();
    assert_eq!((issued.command.reason.as_str(), issued.command.parameters.len()), ("loud", 0));
}

#[test]
fn too_many_parameters_are_not_even_looked_at() {
    let parameters = (0..1_000_000).map(|number| (format!("p{number}"), String::new())).collect();
    let refused = Desk::new(node()).issue(Order { parameters, ..order("CORDON") }).unwrap_err();
    assert_eq!(refused.to_string(), "1000000 parameters were sent; at most 16 are allowed");
}

#[test]
fn a_drain_keeps_what_it_was_promised() {
    let mut desk = Desk::new(node());
    desk.settings.drain_force = true;
    desk.step("DRAIN").unwrap();
    let promised = BTreeMap::from([("force", "true"), ("timeout", "3600")]);
    let promised = promised.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    assert_eq!(desk.commands[0].parameters, promised);
    assert_eq!(desk.commands[0].deadline, Some(at(3600)));
    desk.settings =
        PoolSettings { drain_for: SignedDuration::from_secs(1), ..PoolSettings::default() };
    desk.step("deliver").unwrap();
    desk.step("+3599").unwrap();
    assert_eq!(desk.line(), "DRAINING/ann: DRAIN acknowledged");
    desk.step("+1").unwrap();
    desk.step("ack Forced").unwrap();
    assert_eq!(desk.line(), "DRAINING/ann (done): DRAIN Forced");
}

#[test]
fn r2_n8_no_more_diagnostics_wait_than_a_node_can_ever_take() {
    let mut desk = Desk::new(node());
    for seconds in 1..=PENDING_MAX {
        desk.step(&format!("RUN_DIAGNOSTIC seconds={seconds}")).unwrap();
    }
    let refused = desk.step("RUN_DIAGNOSTIC").unwrap_err();
    assert!(matches!(refused, Refused::TooMany(_)));
    // N8: what takes it out of service has its place, and goes first (N7).
    desk.step("auto CORDON").unwrap();
    assert_eq!(due(&desk.node, &desk.waiting()).map(|due| due.kind), Some(CommandKind::Cordon));
    desk.step("DRAIN").unwrap();
    desk.step("TERMINATE").unwrap();
    assert_eq!(desk.waiting().len(), 1, "what ends all others always has a place");
}

#[test]
fn a_result_too_long_to_keep_ends_the_command_all_the_same() {
    let desk = Desk::after(node(), &["RUN_DIAGNOSTIC", "deliver"]);
    for (len, kept) in [(RESULT_LEN_MAX - 2, true), (RESULT_LEN_MAX - 1, false)] {
        let result = Some(Value::String("x".repeat(len)));
        let message = "é".repeat(REASON_LEN_MAX);
        let ack = Ack { outcome: Some(Outcome::Completed), progress: None, message, result };
        let moved = acknowledged(&desk.node, &desk.commands[0], ack, &[], at(1)).unwrap();
        let CommandState::Done { message, result, .. } = moved.command.state else { panic!() };
        assert_eq!(result.unwrap().is_string(), kept);
        assert_eq!(message.len(), REASON_LEN_MAX);
    }
}

#[test]
fn the_same_order_has_the_same_digest_and_no_other_has() {
    let of = |node: &str, text: &str| order(text).digest(&NodeId::parse(node).unwrap());
    let one = of("n1", "DRAIN timeout=60");
    assert_eq!((one.len(), &one), (64, &of("n1", "DRAIN timeout=60")));
    for (node, text) in [
        ("n2", "DRAIN timeout=60"),
        ("n1", "DRAIN timeout=61"),
        ("n1", "DRAIN for=60"),
        ("n1", "CORDON"),
        ("n1", "auto DRAIN timeout=60"),
    ] {
        assert_ne!(of(node, text), one, "{node} {text}");
    }
}

/// Whether a node may go from one duty to another; nothing comes back from the dead.
fn legal(from: &Duty, to: &Duty) -> bool {
    !matches!(from, Duty::Terminated(_)) || from == to
}

/// What must hold after any step.
fn holds(before: &Desk, after: &Desk) -> Result<(), TestCaseError> {
    prop_assert!(legal(&before.node.duty, &after.node.duty), "I7: {:?}", after.node.duty);
    for ended in before.commands.iter().filter(|command| command.state.is_done()) {
        let now = after.commands.iter().find(|command| command.id == ended.id);
        prop_assert_eq!(now, Some(ended), "I5: an outcome is final");
    }
    let open_drains: Vec<CommandId> = after
        .waiting()
        .iter()
        .filter(|command| command.kind == CommandKind::Drain)
        .map(|command| command.id)
        .collect();
    prop_assert!(open_drains.len() <= 1);
    let mut draining = Vec::new();
    if let Duty::Draining { command, done: false, .. } = after.node.duty {
        draining.push(command);
    }
    prop_assert_eq!(draining, open_drains, "who drains has an open drain, and the reverse");
    prop_assert!(after.waiting().len() <= PENDING_MAX + 2);
    // The ledger alone tells the same story.
    let mut told: BTreeMap<CommandId, Vec<&str>> = BTreeMap::new();
    let mut word = Some("UNHEALTHY");
    for entry in &after.entries {
        if let What::Command { id, state, .. } = &entry.what {
            told.entry(*id).or_default().push(state);
        } else if let What::Status { from, to, .. } = &entry.what {
            // Health changes without a line here: the steps of this test set it.
            if !matches!(from.0.as_str(), "ACTIVE" | "UNHEALTHY") {
                prop_assert_eq!(word, Some(from.0.as_str()));
            }
            word = Some(&to.0);
        }
    }
    for command in &after.commands {
        let story = &told[&command.id];
        prop_assert_eq!(story.last().copied(), Some(command.state.word()));
        let ends = story.iter().filter(|word| !matches!(**word, "pending" | "acknowledged"));
        prop_assert_eq!(ends.count(), usize::from(command.state.is_done()), "I5 in the ledger");
    }
    Ok(())
}

#[test]
fn command_fsm() {
    let outcomes =
        ["", "Completed", "Drained", "Forced", "TimedOut", "Failed", "Expired", "Cancelled"];
    let step = (0..12_u8, 0..5_usize, any::<bool>(), any::<prop::sample::Index>(), 0..8_usize);
    let mut runner = TestRunner::new(Config::with_cases(2_000));
    runner
        .run(&prop::collection::vec(step, 1..60), |steps| {
            let mut desk = Desk::new(sick());
            for (what, kind, automatic, which, outcome) in steps {
                let before = desk.clone();
                let some = match desk.commands.len() {
                    0 => None,
                    len => Some(desk.commands[which.index(len)].clone()),
                };
                let now = at(desk.now);
                match (what, some) {
                    (0..=3, _) => {
                        let ours = if automatic { "auto " } else { "" };
                        let text = format!("{ours}{}", CommandKind::ALL[kind].as_str());
                        // Refused ones are part of the history.
                        let _ = desk.step(&text);
                    }
                    (4 | 5, Some(some)) => desk.moved(delivered(&desk.node, &some, now)),
                    (6 | 7, Some(some)) => desk.ack(&some, outcomes[outcome]),
                    (8, Some(some)) => {
                        desk.workload(&some, automatic);
                        desk.moved(concluded(&desk.node, &some, &desk.systems(), now));
                    }
                    (9, Some(some)) => desk.moved(enforced(&desk.node, &some, now)),
                    (10, _) => {
                        desk.node.health.state =
                            if automatic { HealthState::Healthy } else { HealthState::Unhealthy };
                        if outcome < 4 {
                            desk.node.external.parties.clear();
                        }
                    }
                    _ => {
                        let times = [0, 1, 60, 599, 600, 3599, 3600, 100_000];
                        desk.now += times[outcome];
                        desk.elapse();
                    }
                }
                holds(&before, &desk)?;
            }
            // In the end, everything has ended.
            let before = desk.clone();
            desk.now += 1_000_000;
            desk.elapse();
            holds(&before, &desk)?;
            prop_assert_eq!(desk.waiting(), Vec::<&Command>::new());
            Ok(())
        })
        .unwrap();
}
