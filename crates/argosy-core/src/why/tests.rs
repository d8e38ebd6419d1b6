use super::{Noted, STEPS_MAX, Why, why};
use crate::command::{Command, CommandKind, CommandState, Outcome};
use crate::fixture::at;
use crate::health::{
    Absolution, CheckResult, Event, EventType, Evidence, HealthReport, HealthState, Lasts, Metric,
    Severity, System, Verdict, absolve, take_in,
};
use crate::id::CommandId;
use crate::ledger::{Entry, What};
use crate::node::fixture::{acme, registration};
use crate::node::{Duty, Flag, FlagNote, Held, Hold, Liveness, Node, register};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use uuid::Uuid;

/// A node and its ledger while something happens to them; each change is one commit.
struct Tale {
    node: Node,
    ledger: Vec<Noted>,
    revision: u64,
}

impl Tale {
    fn begin() -> Self {
        let new = register(None, &registration("gpu-17"), acme(false), at(0)).unwrap();
        let mut tale = Self { node: new.node, ledger: Vec::new(), revision: 0 };
        tale.node.evidence =
            Evidence { complete_at: Some(at(0)), missing_since: None, given: true };
        tale.commit(new.entries);
        tale
    }

    fn commit(&mut self, entries: Vec<Entry>) {
        self.revision += 1;
        for entry in entries {
            let sequence = self.ledger.len() as u64 + 1;
            self.ledger.push(Noted { sequence, revision: self.revision, entry });
        }
    }

    fn wrote(&mut self, seconds: i64, what: What) {
        self.commit(vec![Entry { at: at(seconds), node: self.node.id.clone(), what }]);
    }

    /// A check says H, D or U.
    fn check(&mut self, seconds: i64, name: &str, state: HealthState) {
        let (message, details) = ("86 C".to_owned(), BTreeMap::new());
        let result = CheckResult { name: name.to_owned(), state, message, details };
        let report = HealthReport { results: vec![result], ..HealthReport::default() };
        let taken = take_in(&self.node, &report, &[], at(seconds));
        self.node = taken.node.unwrap_or(self.node.clone());
        self.commit(taken.entries);
    }

    /// An Xid on GPU 3, and what the policy makes of it.
    fn xid(&mut self, seconds: i64, code: i64, severity: Result<Severity, &str>) {
        let event = Event {
            node_time: None,
            gpu_index: 3,
            gpu_uuid: "GPU-gpu-17-3".to_owned(),
            gpu_serial: String::new(),
            system: System::Driver,
            event_type: EventType::Xid,
            metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(code))]),
            message: String::new(),
            raw: format!("NVRM: Xid (PCI:0000:04:00): {code}, pid=1234"),
            recovery_action: Some(4),
            count: 1,
            boot_id: String::new(),
            condition: String::new(),
        };
        let degraded = severity == Ok(Severity::Degraded);
        let verdict = Verdict {
            severity: severity.map_err(str::to_owned),
            rule: format!("xid-{code}"),
            policy: "default".to_owned(),
            policy_version: 3,
            message: format!("Xid {code} is serious"),
            at_least: Severity::Healthy,
            advised: false,
            lasts: if degraded {
                Lasts::For(SignedDuration::from_hours(1))
            } else {
                Lasts::UntilReboot
            },
            inputs: vec![
                "driver: drain and reset".to_owned(),
                "catalogue 2025-10.1: reset (they disagree; the driver goes first)".to_owned(),
            ],
        };
        let report = HealthReport { events: vec![event], ..HealthReport::default() };
        let taken = take_in(&self.node, &report, &[verdict], at(seconds));
        self.node = taken.node.unwrap();
        self.commit(taken.entries);
    }

    fn hold(&mut self, seconds: i64, by: &str, automatic: bool, reason: &str) -> Hold {
        let hold =
            Hold { by: by.to_owned(), automatic, reason: reason.to_owned(), at: at(seconds) };
        let (from, was) = (self.node.status(), self.node.clone());
        self.node.duty = Duty::Cordoned(hold.clone());
        let (from, to) = (from.into(), self.node.status().into());
        assert_ne!(was, self.node);
        self.wrote(seconds, What::Status { from, to, reason: reason.to_owned() });
        hold
    }

    fn lost(&mut self, seconds: i64) {
        self.node.liveness = Liveness::Unreachable;
        self.node.liveness_since = at(seconds);
        let (from, to) = (Liveness::Suspect, Liveness::Unreachable);
        self.wrote(seconds, What::Liveness { from, to, reason: "silent for 45 s".to_owned() });
    }

    fn held(&mut self, seconds: i64, guard: &str, reason: &str) {
        let (action, reason) = ("cordon".to_owned(), reason.to_owned());
        let (guard, since) = (guard.to_owned(), at(seconds));
        self.node.held = Some(Held { action, guard, reason, since });
    }

    fn command(&self, seconds: i64, automatic: bool, state: CommandState) -> Command {
        Command {
            id: CommandId::new(Uuid::from_u128(7)),
            node: self.node.id.clone(),
            tenant: "acme".to_owned(),
            kind: CommandKind::Cordon,
            parameters: BTreeMap::new(),
            by: "ann".to_owned(),
            automatic,
            reason: "fans".to_owned(),
            issued_at: at(seconds),
            expires_at: at(seconds + 600),
            deadline: None,
            state,
        }
    }

    fn why(&self, commands: &[&Command]) -> Why {
        let newest_first: Vec<_> = self.ledger.iter().rev().cloned().collect();
        why(&self.node, &newest_first, commands, at(600))
    }

    #[track_caller]
    fn says(&self, summary: &str) {
        assert_eq!(self.why(&[]).summary, format!("gpu-17 is {summary}"));
    }
}

/// `event verdict finding`.
fn kinds(why: &Why) -> String {
    why.steps.iter().map(|step| step.kind.as_str()).collect::<Vec<_>>().join(" ")
}

fn command_entry(state: &str, outcome: Option<Outcome>, message: &str) -> What {
    What::Command {
        id: CommandId::new(Uuid::from_u128(7)),
        kind: CommandKind::Cordon,
        state: state.to_owned(),
        outcome,
        by: "argosy".to_owned(),
        message: message.to_owned(),
    }
}

#[test]
fn the_whole_chain_from_the_kernel_line_to_the_result() {
    let mut tale = Tale::begin();
    tale.check(60, "boot", HealthState::Healthy);
    tale.xid(100, 13, Ok(Severity::Healthy));
    tale.xid(120, 79, Ok(Severity::Unhealthy));
    tale.wrote(
        121,
        What::Decision {
            action: "cordon".to_owned(),
            held_by: None,
            reason: "xid-79: Xid 79 is serious".to_owned(),
            budget: "pool h100 1/5, zone us-east1-b 1/10, fleet 1/50".to_owned(),
        },
    );
    tale.wrote(121, command_entry("pending", None, "xid-79"));
    tale.wrote(125, command_entry("acknowledged", None, ""));
    let reason = "rule xid-79 of policy default version 3 found: Xid 79 is serious (GPU-gpu-17-3)";
    tale.hold(125, "argosy", true, reason);
    tale.wrote(
        126,
        What::External {
            system: "slurm".to_owned(),
            what: "cordon".to_owned(),
            ok: true,
            message: String::new(),
        },
    );
    tale.wrote(130, command_entry("completed", Some(Outcome::Completed), "done"));
    let why = tale.why(&[]);
    assert_eq!(why.summary, format!("gpu-17 is CORDONED because {reason}"));
    let steps: Vec<_> =
        why.steps.iter().map(|s| format!("{} {} {}", s.revision, s.kind, s.message)).collect();
    assert_eq!(
        steps,
        [
            "4 event Xid 79 on GPU 3 (GPU-gpu-17-3)",
            "4 verdict rule xid-79 of policy default version 3 says unhealthy",
            "4 finding finding xid/79/GPU-gpu-17-3: unhealthy; it ends when the node boots again, a \
             diagnostic that tests the part passes, or an operator uncordons the node",
            "4 health health HEALTHY -> UNHEALTHY by xid-79",
            "4 status ACTIVE -> UNHEALTHY: Xid 79 is serious",
            "5 decision decided to cordon it: xid-79: Xid 79 is serious",
            "6 command CORDON issued by argosy: xid-79",
            "7 command the node has CORDON",
            &format!("8 status UNHEALTHY -> CORDONED: {reason}"),
            "9 external slurm was told: cordon",
            "10 result CORDON ended: Completed: done",
        ]
    );
    assert_eq!(why.steps[0].at, at(120));
    let evidence = |step: usize| why.steps[step].evidence.join(" | ");
    assert_eq!(
        evidence(0),
        "NVRM: Xid (PCI:0000:04:00): 79, pid=1234 | xid_code=79 | recovery_action=4"
    );
    assert!(evidence(1).contains("they disagree"), "{}", evidence(1));
    assert_eq!(evidence(3), "xid/79/GPU-gpu-17-3");
    assert_eq!(evidence(5), "pool h100 1/5, zone us-east1-b 1/10, fleet 1/50");
    assert_eq!(
        why.next,
        [
            "repair or reboot the node, or run `argosy node diagnose gpu-17`: xid/79/GPU-gpu-17-3 ends \
             at its next boot or when a diagnostic that tests the part passes",
            "if you know better, `argosy node uncordon gpu-17` puts it back and ends what events found",
        ]
    );
}

#[test]
fn a_node_that_is_well_says_so_and_why_nothing_was_done() {
    let mut tale = Tale::begin();
    tale.says(
        "ACTIVE: nothing speaks against it; it registered 2025-10-28T12:00:00Z (10 min ago) and has not \
         reported its health yet",
    );
    assert_eq!(kinds(&tale.why(&[])), "registration status");
    tale.check(60, "boot", HealthState::Healthy);
    tale.says("ACTIVE: nothing speaks against it");
    assert_eq!(tale.why(&[]).next, [""; 0]);
    for turn in 0..9 {
        tale.xid(100 + turn, 13, Ok(Severity::Healthy));
    }
    let why = tale.why(&[]);
    assert_eq!(
        kinds(&why),
        "registration status event verdict event verdict event verdict event verdict event verdict"
    );
    assert_eq!(why.steps[3].message, "rule xid-13 of policy default version 3 says healthy");
    // Having been ill is part of the story of being well.
    tale.check(200, "boot", HealthState::Unhealthy);
    tale.check(300, "boot", HealthState::Healthy);
    let why = tale.why(&[]);
    assert!(kinds(&why).ends_with("check finding finding health status"), "{}", kinds(&why));
}

#[test]
fn every_status_has_its_sentence() {
    let mut warm = Tale::begin();
    warm.check(60, "gpu", HealthState::Degraded);
    warm.says("ACTIVE, with a warning: check gpu says: 86 C");
    assert_eq!(kinds(&warm.why(&[])), "check finding health");
    assert_eq!(warm.why(&[]).next, ["make the check gpu pass: check/gpu ends when it does"]);

    let mut wearing = Tale::begin();
    wearing.xid(60, 63, Ok(Severity::Degraded));
    assert_eq!(
        wearing.why(&[]).next,
        ["wait: xid/63/GPU-gpu-17-3 ends at 2025-10-28T13:01:00Z if nothing like it happens"]
    );

    let mut doubtful = Tale::begin();
    doubtful.check(30, "boot", HealthState::Healthy);
    doubtful.xid(60, 79, Err("no such key"));
    doubtful.says(
        "ACTIVE, but nobody can say whether it is well: rule xid-79 of policy default version 3 failed: \
         no such key; nothing is done by itself on that ground",
    );
    let why = doubtful.why(&[]);
    assert_eq!(kinds(&why), "event verdict finding health");
    assert!(why.steps[1].message.ends_with("nothing may be concluded from it"), "{why:?}");
    assert!(why.next[0].contains("correct rule xid-79 of policy default"), "{:?}", why.next);

    let mut quiet = Tale::begin();
    quiet.check(60, "boot", HealthState::Healthy);
    quiet.node.liveness = Liveness::Suspect;
    quiet.node.liveness_since = at(590);
    quiet.says(
        "ACTIVE: nothing speaks against it; it should have been heard by now, and was not since \
         2025-10-28T12:09:50Z (10 s ago)",
    );

    let mut lost = Tale::begin();
    lost.lost(300);
    lost.says("UNHEALTHY because it is unreachable since 2025-10-28T12:05:00Z (5 min ago)");
    assert_eq!(kinds(&lost.why(&[])), "liveness");
    assert!(lost.why(&[]).next[0].contains("argosy node forget gpu-17"));

    let mut both = Tale::begin();
    both.check(60, "gpu", HealthState::Unhealthy);
    both.lost(300);
    both.says(
        "UNHEALTHY because check gpu says: 86 C, and it is unreachable since 2025-10-28T12:05:00Z (5 min \
         ago)",
    );

    let mut by_hand = Tale::begin();
    let hold = by_hand.hold(100, "ann", false, "new fans");
    by_hand.says("CORDONED because ann said so: new fans");
    assert_eq!(kinds(&by_hand.why(&[])), "status");
    assert_eq!(
        by_hand.why(&[]).next,
        ["`argosy node uncordon gpu-17` puts it back into service now"]
    );
    let (command, deadline) = (CommandId::new(Uuid::nil()), at(3600));
    by_hand.node.duty = Duty::Draining { hold: hold.clone(), command, deadline, done: false };
    by_hand.says(
        "DRAINING because ann said so: new fans; what runs there has until 2025-10-28T13:00:00Z to end",
    );
    assert!(by_hand.why(&[]).next[0].contains("cancels the drain"));
    by_hand.node.duty = Duty::Draining { hold: hold.clone(), command, deadline, done: true };
    by_hand.says("DRAINING because ann said so: new fans; the drain has ended");
    by_hand.node.duty = Duty::Terminated(hold);
    by_hand.says("TERMINATED because ann said so: new fans");
    assert!(by_hand.why(&[]).next[0].contains("argosy node forget gpu-17"));
}

#[test]
fn an_action_that_is_held_says_by_what() {
    let mut tale = Tale::begin();
    tale.check(60, "gpu", HealthState::Unhealthy);
    for (guard, says, advice) in [
        ("breaker", "the breaker is open", "close the breaker"),
        ("budget", "the budget is used up", "room in the budget"),
        ("pause", "automatic action is paused", "take the pause back"),
        ("rate", "it is too soon after the last one", ""),
        ("isolation", "so much of the fleet is silent that the silence may be ours", ""),
        ("amnesty", "nodes are still coming back after our own start", ""),
    ] {
        tale.held(61, guard, "9 of 40 turned bad within 5 min");
        tale.says(&format!(
            "UNHEALTHY because check gpu says: 86 C; it would be cordoned, but {says} since \
             2025-10-28T12:01:01Z (8 min ago): 9 of 40 turned bad within 5 min"
        ));
        let next = tale.why(&[]).next.join("\n");
        assert!(next.contains(advice) && next.contains("argosy node cordon gpu-17"), "{next}");
    }
    tale.wrote(
        61,
        What::Decision {
            action: "cordon".to_owned(),
            held_by: Some("breaker".to_owned()),
            reason: "9 of 40".to_owned(),
            budget: String::new(),
        },
    );
    let why = tale.why(&[]);
    assert_eq!(kinds(&why), "check finding health status decision");
    assert_eq!(why.steps[4].message, "would cordon it, but was held by breaker: 9 of 40");
    tale.node.held = None;
    let command = tale.command(62, true, CommandState::Pending);
    assert!(
        tale.why(&[&command])
            .summary
            .ends_with("; a CORDON is on its way to it since 2025-10-28T12:01:02Z (8 min ago)")
    );
}

#[test]
fn the_cause_of_a_hold_is_told_when_it_is_over() {
    let mut tale = Tale::begin();
    tale.xid(120, 79, Ok(Severity::Unhealthy));
    tale.hold(125, "argosy", true, "Xid 79");
    tale.node.flaps.count = 2;
    let absolved = absolve(&tale.node, &Absolution::Reboot, at(300));
    tale.node = absolved.node.unwrap();
    tale.commit(absolved.entries);
    tale.node.flaps.hold_until = Some(at(900));
    tale.says(
        "CORDONED because Xid 79; it is well again since 2025-10-28T12:05:00Z (5 min ago) and goes back \
         into service at 2025-10-28T12:15:00Z, later each time because it fell ill again 2 times before",
    );
    let why = tale.why(&[]);
    assert_eq!(kinds(&why), "event verdict finding health status status finding health");
    assert!(why.steps[2].message.ends_with("which has ended since"), "{:?}", why.steps[2]);
    assert_eq!(why.next, ["`argosy node uncordon gpu-17` puts it back into service now"]);
}

#[test]
fn a_flood_is_told_by_its_first_and_its_last() {
    let mut tale = Tale::begin();
    for turn in 0..500 {
        tale.xid(100 + turn, 79, Ok(Severity::Unhealthy));
    }
    let why = tale.why(&[]);
    assert_eq!(kinds(&why), "event verdict finding health status event");
    let last = why.steps.last().unwrap();
    assert_eq!(last.message, "Xid 79 on GPU 3 (GPU-gpu-17-3), again; 500 times in all");
    assert_eq!(last.at, at(599));
    // Different ones are told one by one, up to a limit.
    for code in 100..200 {
        tale.xid(600 + code, code, Ok(Severity::Degraded));
    }
    let why = tale.why(&[]);
    assert_eq!(why.steps.len(), STEPS_MAX);
    let omitted = why.steps.iter().find(|step| step.kind == "omitted").unwrap();
    assert!(omitted.message.contains("more steps"), "{omitted:?}");
    assert_eq!(why.steps[0].message, "Xid 79 on GPU 3 (GPU-gpu-17-3)");
}

#[test]
fn what_the_ledger_no_longer_has_is_told_from_what_is() {
    let mut tale = Tale::begin();
    tale.xid(120, 79, Ok(Severity::Unhealthy));
    tale.check(130, "gpu", HealthState::Unhealthy);
    tale.hold(140, "ann", false, "fans");
    tale.ledger.clear();
    let (outcome, message, result) = (Outcome::Completed, String::new(), None);
    let done = CommandState::Done { at: at(150), outcome, message, result };
    let command = tale.command(140, false, done.clone());
    let why = tale.why(&[&command]);
    assert_eq!(kinds(&why), "finding finding command result");
    assert_eq!(
        why.steps[0].evidence,
        ["NVRM: Xid (PCI:0000:04:00): 79, pid=1234"],
        "the kernel line is kept with the finding"
    );
    assert!(why.steps.iter().all(|step| step.revision == 0));
    // What was over before the story began is no part of it.
    let old = tale.command(20, false, done);
    assert_eq!(kinds(&tale.why(&[&old])), "finding finding");
}

#[test]
fn flags_are_part_of_what_to_do() {
    let mut tale = Tale::begin();
    tale.wrote(50, What::RegistrationRefused { message: "machine m2 came".to_owned() });
    let note = |message: &str| FlagNote { since: at(50), message: message.to_owned() };
    tale.node.flags.insert(Flag::IdentityConflict, note("m1 and m2"));
    tale.node.flags.insert(Flag::ClockSkewed, note("it is 1 h ahead"));
    let why = tale.why(&[]);
    assert!(kinds(&why).contains("registration"), "{}", kinds(&why));
    assert_eq!(
        why.next,
        ["set its clock: it is 1 h ahead", "find out which machine is the real one: m1 and m2"]
    );
}
