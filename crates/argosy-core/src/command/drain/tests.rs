use super::*;
use crate::command::{CommandState, Order, acknowledged, due, elapsed, issue};
use crate::external::{Party, Told, Wish};
use crate::fixture::at;
use crate::id::CommandId;
use crate::node::Duty;
use crate::node::settings::PoolSettings;
use std::collections::BTreeMap;
use uuid::Uuid;

const SLURM: &str = "slurm /usr/bin/scontrol";
const HOOK: &str = "webhook https://hook.example";

struct Story {
    node: Node,
    command: Command,
    systems: Vec<String>,
    now: i64,
}

impl Story {
    /// A drain of 60 s that both systems heard of, and that the node has fetched.
    fn new(systems: &[&str], force: bool) -> Self {
        let node = crate::node::fixture::node("n1");
        let order = Order {
            kind: CommandKind::Drain,
            parameters: BTreeMap::from([("force".to_owned(), force.to_string())]),
            reason: String::new(),
            by: "ann".to_owned(),
            automatic: false,
            drain_for: Some(SignedDuration::from_secs(60)),
        };
        let id = CommandId::new(Uuid::from_u128(7));
        let issued = issue(&node, &[], order, id, &PoolSettings::default(), at(0)).unwrap();
        let mut node = issued.node;
        let told = Wish { command: Some(id), ..Wish::of(Told::Drain) };
        for system in systems {
            let party = Party { told: Some(told.clone()), ..Party::default() };
            node.external.parties.insert((*system).to_owned(), party);
        }
        let systems = systems.iter().map(|system| (*system).to_owned()).collect();
        let mut story = Self { node, command: issued.command, systems, now: 0 };
        story.ack(None, "");
        story
    }

    /// `slurm: 3 jobs`, `hook!: 1 pod` while it is ended by force, `slurm ok`, `hook forced`, `agent: busy`,
    /// `agent Drained`, `lost`, `+60`.
    fn step(&mut self, text: &str) {
        let key = |word: &str| if word.starts_with("slurm") { SLURM } else { HOOK };
        if let Some(seconds) = text.strip_prefix('+') {
            self.now += seconds.parse::<i64>().unwrap();
            let settings = PoolSettings::default();
            let now = at(self.now);
            let moved = elapsed(&self.node, &self.command, &[], &settings, &self.systems, now);
            return self.moved(moved);
        }
        if text == "lost" {
            self.node.liveness = Liveness::Unreachable;
            return;
        }
        match text.split_once(": ") {
            Some(("agent", message)) => return self.ack(None, message),
            Some((who, message)) => {
                self.work(key(who), false, who.ends_with('!'), message);
            }
            None => match text.split_once(' ').unwrap() {
                ("agent", outcome) => {
                    let outcomes =
                        [Outcome::Drained, Outcome::Forced, Outcome::TimedOut, Outcome::Failed];
                    let named = |known: &Outcome| format!("{known:?}") == outcome;
                    return self.ack(outcomes.into_iter().find(named), "so it says");
                }
                (who, word) => self.work(key(who), true, word == "forced", ""),
            },
        }
        let moved = concluded(&self.node, &self.command, &self.systems, at(self.now));
        self.moved(moved);
    }

    fn work(&mut self, key: &str, over: bool, forced: bool, message: &str) {
        let (of, at, message) = (self.command.id, at(self.now), message.to_owned());
        let party = self.node.external.parties.get_mut(key).unwrap();
        let forced = forced || party.work.as_ref().is_some_and(|work| work.forced);
        party.work = Some(Work { of, at, over, forced, last: false, message });
    }

    fn ack(&mut self, outcome: Option<Outcome>, message: &str) {
        let ack = Ack { outcome, progress: None, message: message.to_owned(), result: None };
        let moved = acknowledged(&self.node, &self.command, ack, &self.systems, at(self.now));
        self.moved(moved);
    }

    fn moved(&mut self, moved: Option<Moved>) {
        let Some(moved) = moved else { return };
        (self.node, self.command) = (moved.node, moved.command);
    }

    /// `open`, or `Drained: message`; ` (left)` if the machine may have work.
    fn line(&self) -> String {
        let CommandState::Done { outcome, message, .. } = &self.command.state else {
            return "open".to_owned();
        };
        let out = matches!(self.node.duty, Duty::Draining { done: true, .. });
        let left = if out && !self.node.is_emptied() { " (left)" } else { "" };
        format!("{outcome:?}: {message}{left}")
    }
}

#[track_caller]
fn check(systems: &[&str], force: bool, steps: &[&str], expected: &str) {
    let mut story = Story::new(systems, force);
    for step in steps {
        story.step(step);
    }
    assert_eq!(story.line(), expected, "{systems:?} {steps:?}");
}

#[test]
fn r2_n1_a_drain_ends_when_every_workload_system_says_so() {
    let one = "webhook says that no work is left";
    let both = "slurm, webhook say that no work is left";
    let rows: &[(&[&str], &[&str], &str)] = &[
        // The agent's word is no proof.
        (&[HOOK], &["agent Drained"], "open"),
        (&[HOOK], &["hook: 3 jobs left", "agent Drained", "+59"], "open"),
        (&[HOOK], &["hook: 3 jobs left", "agent Drained", "+9", "hook ok"], one),
        (&[HOOK], &["hook ok"], one),
        (&[SLURM, HOOK], &["hook ok"], "open"),
        (&[SLURM, HOOK], &["hook ok", "slurm ok"], both),
        // But it can object, while it is heard.
        (&[HOOK], &["agent: on the GPUs: python (12)", "hook ok"], "open"),
        (&[HOOK], &["agent: on the GPUs: python (12)", "hook ok", "agent Drained"], one),
        (&[HOOK], &["agent: on the GPUs: python (12)", "lost", "hook ok"], one),
        (&[HOOK], &["agent Failed", "hook ok"], one),
        // What is left at the deadline is named, whoever knows it.
        (
            &[HOOK],
            &["hook: 3 jobs left", "+60", "hook: 3 jobs left"],
            "TimedOut: at the deadline, work was left: webhook: 3 jobs left (left)",
        ),
        (&[HOOK], &["hook: 3 jobs left", "+60"], "open"),
        (
            &[HOOK],
            &["hook: 3 jobs left", "+60", "+60"],
            "TimedOut: at the deadline, work was left: webhook: 3 jobs left (left)",
        ),
        (
            &[SLURM, HOOK],
            &["hook ok", "+120"],
            "TimedOut: at the deadline, work was left: slurm: it has not said what is left (left)",
        ),
        (
            &[HOOK],
            &["agent: on the GPUs: python (12)", "hook ok", "+60"],
            "TimedOut: at the deadline, work was left: agent: on the GPUs: python (12) (left)",
        ),
        (
            &[HOOK],
            &["hook: 1 job", "+60", "hook ok"],
            "TimedOut: webhook says that no work is left, but only after the deadline",
        ),
    ];
    for (systems, steps, expected) in rows {
        let drained = [one, both].contains(expected);
        let expected =
            if drained { format!("Drained: {expected}") } else { (*expected).to_owned() };
        check(systems, false, steps, &expected);
    }
}

#[test]
fn r2_n2_forced_is_what_was_ended_by_force_and_left_nothing() {
    let forced = "Forced: webhook says that no work is left; some was ended by force";
    check(&[HOOK], true, &["hook: 1 pod", "+60", "hook: 1 pod"], "open");
    check(&[HOOK], true, &["hook: 1 pod", "+60", "hook!: 1 pod", "+30", "hook ok"], forced);
    check(
        &[HOOK],
        true,
        &["hook: 1 pod", "+60", "hook!: 1 pod", "+300"],
        "TimedOut: at the deadline, work was left: webhook: 1 pod (left)",
    );
    // Nothing had to be ended: it was only late.
    check(
        &[HOOK],
        true,
        &["hook: 1 pod", "+60", "hook ok"],
        "TimedOut: webhook says that no work is left, but only after the deadline",
    );
    // Without a workload system it is the agent's to say.
    check(&[], true, &["+60"], "open");
    check(&[], true, &["+60", "agent Forced"], "Forced: so it says");
    let message = "TimedOut: the deadline passed before everything had ended (left)";
    check(&[], true, &["+60", "+60"], message);
    check(&[], true, &["lost", "+60"], message);
    check(&[], false, &["+60"], message);
    check(
        &[],
        false,
        &["agent: on the GPUs: python (12)", "+60"],
        "TimedOut: at the deadline, work was left: on the GPUs: python (12) (left)",
    );
    check(&[], false, &["+9", "agent Drained"], "Drained: so it says");
}

#[test]
fn a_node_that_said_its_last_word_on_a_drain_can_be_told_the_next() {
    let mut story = Story::new(&[HOOK], false);
    assert!(due(&story.node, &[&story.command]).is_some());
    story.step("agent Drained");
    assert_eq!(story.line(), "open");
    assert_eq!(due(&story.node, &[&story.command]), None);
}
