use super::*;
use crate::check::Word;
use crate::command::{Drained, Kind};
use crate::signal::SignalKind;
use argosy_api::rpc::node::{
    AckCommandResponse, Command, CommandState, CommandType, DrainOutcome, HeartbeatAck,
    RegisterNodeResponse, ReportHealthResponse, Welcome,
};
use buffa::EnumValue;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// An agent and the time, driven by hand. What it does is written as one word per effect.
struct Desk {
    agent: Agent,
    now: Timestamp,
    wake: Option<Timestamp>,
    /// Nobody answers when it attaches.
    unreachable: bool,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn who() -> Arc<Identity> {
    Arc::new(Identity {
        node_id: "gpu-1".to_owned(),
        boot_id: "boot-1".to_owned(),
        agent_version: "1".to_owned(),
    })
}

fn said(said: &Said) -> String {
    match said {
        Said::Hello(_) => "hello".to_owned(),
        Said::Heartbeat(beat) if beat.metrics.is_set() => "beat+metrics".to_owned(),
        Said::Heartbeat(_) => "beat".to_owned(),
        Said::Heartbeats(_) => "beats".to_owned(),
        Said::Register(request) => format!("register {}", request.gpus.len()),
        Said::Health(report) => {
            let (results, events) = (report.results.len(), report.events.len());
            format!("report {} ({results} results, {events} events)", report.sequence)
        }
        Said::Ack(ack) => {
            let state = ack.state.as_known().map(|state| format!("{state:?}")).unwrap_or_default();
            let state = state.replace("COMMAND_STATE_", "").to_lowercase();
            let outcome = match ack.outcome.as_known() {
                Some(DrainOutcome::DRAIN_OUTCOME_UNSPECIFIED) | None => String::new(),
                Some(outcome) => format!(
                    " {}",
                    format!("{outcome:?}").replace("DRAIN_OUTCOME_", "").to_lowercase()
                ),
            };
            let message =
                if ack.message.is_empty() { String::new() } else { format!(": {}", ack.message) };
            format!("ack {} {state}{outcome}{message}", ack.command_id)
        }
    }
}

fn word(effect: &Effect) -> String {
    match effect {
        Effect::Attach(hello) => format!("attach {}", hello.health_sequence),
        Effect::Detach => "detach".to_owned(),
        Effect::Say(words) => said(words),
        Effect::Poll => "poll".to_owned(),
        Effect::Check(names) => format!("check {names:?}"),
        Effect::Keep(signals) => format!("keep {}", signals.len()),
        Effect::KeepReport(report) => format!("keep report {}", report.sequence),
        Effect::Forget(sequence) => format!("forget {sequence}"),
        Effect::KeepOnly(spooled) => {
            let report = spooled.report.iter().map(|r| format!("report {} and ", r.sequence));
            format!("keep only {}{}", report.collect::<String>(), spooled.signals.len())
        }
        Effect::Note(entry) => {
            let how = match (&entry.end, entry.answered) {
                (None, _) => "begun",
                (Some(_), false) => "ended",
                (Some(_), true) => "heard",
            };
            format!("note {} {how}", entry.order.id)
        }
        Effect::Begin(order) => format!("begin {}", order.id),
        Effect::Cancel(id) => format!("cancel {id}"),
        Effect::Exit(exit) => format!("exit {exit:?}"),
        Effect::Wake(_) => "wake".to_owned(),
        Effect::Notice(notice) => format!("notice: {}", notice.sentence),
    }
}

impl Desk {
    fn new() -> Self {
        Self { agent: Agent::new(who()), now: at(0), wake: None, unreachable: false }
    }

    /// An agent that has begun, is welcome and registered, and has reported once.
    fn settled() -> Self {
        let mut desk = Self::new();
        desk.on(started());
        desk.on(described(2));
        desk.on(welcome(0));
        desk.on(registered());
        desk.on(checked());
        desk.on(Event::Told(taken(1)));
        desk
    }

    fn raw(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.agent.on(event, self.now);
        for effect in &effects {
            if let Effect::Wake(time) = effect {
                self.wake = Some(*time);
            }
        }
        assert_eq!(self.wake, self.agent.wakes_at());
        effects
    }

    /// The effects of an event but for `Wake`, by one word each.
    fn on(&mut self, event: Event) -> Vec<String> {
        let effects = self.raw(event);
        effects.iter().filter(|e| !matches!(e, Effect::Wake(_))).map(word).collect()
    }

    fn told(&mut self, told: impl Into<Told>) -> Vec<String> {
        self.on(Event::Told(told.into()))
    }

    /// Lets time pass by the agent's own wake-ups; what it does, with the second at which it does it.
    fn pass(&mut self, seconds: i64) -> Vec<String> {
        let until = later(self.now, SignedDuration::from_secs(seconds));
        let mut done = Vec::new();
        while let Some(wake) = self.wake.filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            let second = self.now.duration_since(at(0)).as_secs();
            let words = self.on(Event::Woke);
            if self.unreachable && words.iter().any(|word| word.starts_with("attach")) {
                self.on(Event::Lost(Loss::Unreachable("no route".to_owned())));
            }
            done.extend(words.into_iter().map(|word| format!("{second}: {word}")));
            assert!(done.len() < 100_000, "it does not come to rest");
        }
        self.now = until;
        done
    }
}

fn started() -> Event {
    Event::Started { spooled: Spooled::default(), journal: Vec::new() }
}

fn described(gpus: usize) -> Event {
    let gpus = vec![argosy_api::rpc::node::Gpu::default(); gpus];
    let registration = RegisterNodeRequest { gpus, ..RegisterNodeRequest::default() };
    Event::Described { registration: Arc::new(registration), complete: true }
}

fn config(beat_s: u32, round_s: u32) -> NodeConfig {
    NodeConfig {
        revision: 7,
        heartbeat_interval_seconds: beat_s,
        health_check_interval_seconds: round_s,
        ..NodeConfig::default()
    }
}

fn welcome(health_sequence: u64) -> Event {
    let config = Some(config(10, 60)).into();
    Event::Told(Told::from(Welcome { config, health_sequence, ..Welcome::default() }))
}

fn registered() -> Event {
    let config = Some(config(10, 60)).into();
    Event::Told(Told::from(RegisterNodeResponse { config, ..RegisterNodeResponse::default() }))
}

fn checked() -> Event {
    let outcomes = vec![CheckOutcome::healthy("nvml", "well")];
    Event::Checked { outcomes, signals: Vec::new() }
}

fn xid(code: u32, second: i64) -> Signal {
    Signal::once(SignalKind::Xid, at(second), "a fault").with("xid_code", code)
}

fn taken(sequence: u64) -> Told {
    Told::from(ReportHealthResponse { sequence, ..ReportHealthResponse::default() })
}

fn complaint(code: &str) -> Error {
    Error { code: code.to_owned(), message: "no".to_owned(), ..Error::default() }
}

fn command(id: &str, kind: CommandType) -> Command {
    Command { id: id.to_owned(), r#type: kind.into(), ..Command::default() }
}

fn drain(id: &str, deadline: i64) -> Command {
    Command {
        deadline: Some(wire::time(at(deadline))).into(),
        ..command(id, CommandType::COMMAND_TYPE_DRAIN)
    }
}

fn heard(id: &str, state: CommandState) -> AckCommandResponse {
    AckCommandResponse { command_id: id.to_owned(), state: state.into() }
}

fn noted(id: &str) -> Event {
    Event::Noted { command: id.to_owned(), error: None }
}

fn ended(id: &str, end: End) -> Event {
    Event::Ended { command: id.to_owned(), end }
}

/// The entry that an agent leaves that began a command.
fn begun(command: Command, boot_id: &str) -> Entry {
    Entry {
        order: wire::order(command, at(0)),
        boot_id: boot_id.to_owned(),
        begun_at: at(-60),
        end: None,
        answered: false,
    }
}

#[test]
fn an_agent_attaches_registers_beats_and_reports() {
    let mut desk = Desk::new();
    assert_eq!(desk.on(started()), ["attach 0", "check []"]);
    assert_eq!(desk.on(described(2)), [""; 0]);
    assert_eq!(desk.on(welcome(0)), ["register 2", "beat"]);
    assert_eq!(desk.on(registered()), [""; 0]);
    assert_eq!(desk.on(checked()), ["report 1 (1 results, 0 events)"]);
    assert_eq!(desk.told(taken(1)), [""; 0]);
    let beats = desk.pass(60);
    let expected =
        ["10: beat", "20: beat", "30: beat", "40: beat", "50: beat", "60: check []", "60: beat"];
    assert_eq!(beats, expected);
    desk.on(Event::Sampled(Box::default()));
    assert_eq!(desk.pass(20), ["70: beat+metrics", "80: beat"]);
}

#[test]
fn a_gpu_that_is_lost_between_rounds_brings_the_next_one_forward() {
    let mut desk = Desk::settled();
    desk.pass(15);
    assert_eq!(desk.on(Event::Alarmed), ["check []"]);
    // One that runs is enough.
    assert_eq!(desk.on(Event::Alarmed), [""; 0]);
    desk.on(checked());
    assert!(desk.pass(60).contains(&"75: check []".to_owned()));
}

#[test]
fn a_node_that_nobody_knows_registers() {
    let mut desk = Desk::new();
    desk.on(started());
    let unknown = complaint("not_found");
    // What it is made of is not known yet; it beats until then, so that the line is seen to work.
    assert_eq!(desk.told(unknown.clone()), ["beat"]);
    assert_eq!(desk.on(described(8)), ["register 8"]);
    assert_eq!(desk.told(unknown.clone()), [""; 0]);
    assert_eq!(desk.on(registered()), [""; 0]);
    // Somebody made the control plane forget it.
    assert_eq!(desk.told(unknown), [""; 0]);
    assert!(desk.pass(5).contains(&"3: register 8".to_owned()));
}

#[test]
fn an_inventory_that_changes_is_told_and_one_that_cannot_be_read_is_not() {
    let mut desk = Desk::settled();
    desk.pass(5);
    assert_eq!(desk.on(described(2)), [""; 0]);
    assert_eq!(desk.on(described(3)), ["register 3"]);
    desk.on(registered());
    desk.pass(5);
    let registration = Arc::new(RegisterNodeRequest::default());
    let broken = Event::Described { registration, complete: false };
    assert_eq!(desk.on(broken), [""; 0]);
    assert_eq!(desk.pass(4), [""; 0]);
}

#[test]
fn intervals_are_taken_inside_our_own_limits() {
    // What is told for heartbeats and rounds, and what is done.
    let rows = [
        (10, 60, 10, 60),
        (0, 0, BEAT_S, ROUND_S),
        (u32::MAX, u32::MAX, BEAT_S_MAX, ROUND_S_MAX),
        (1, 1, 1, ROUND_S_MIN),
    ];
    for (beat, round, beats, rounds) in rows {
        let mut desk = Desk::settled();
        desk.told(config(beat, round));
        let config = &desk.agent.config;
        assert_eq!((config.beat_s, config.round_s), (beats, rounds), "{beat} {round}");
    }
}

#[test]
fn a_control_plane_may_ask_for_fewer_heartbeats() {
    let mut desk = Desk::settled();
    desk.told(HeartbeatAck { next_interval_seconds: 30, ..HeartbeatAck::default() });
    assert_eq!(desk.pass(59), ["10: beat", "40: beat"]);
    desk.told(HeartbeatAck { next_interval_seconds: 0, ..HeartbeatAck::default() });
    assert_eq!(desk.agent.config.beat_s, 30);
}

#[test]
fn a_line_that_is_lost_is_tried_again_with_growing_waits() {
    let mut desk = Desk::settled();
    let lost = |why: &str| Event::Lost(Loss::Ended(why.to_owned()));
    let gone = ["detach", "notice: lost the control plane; trying again"];
    assert_eq!(desk.on(lost("the server is stopping")), gone);
    let mut waits = Vec::new();
    for _ in 0..10 {
        let wait = desk.agent.due.line.unwrap().duration_since(desk.now);
        waits.push(wait.as_secs_f64());
        desk.now = later(desk.now, wait);
        assert!(desk.on(Event::Woke).contains(&"attach 1".to_owned()));
        desk.on(Event::Lost(Loss::Unreachable("connection refused".to_owned())));
    }
    assert!((0.0..5.0).contains(&waits[0]), "{waits:?}");
    let growing = [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0];
    for (wait, full) in waits[1..].iter().zip(growing) {
        assert!((full * 0.8..=full).contains(wait), "{waits:?}");
    }
    // Back again: what was not heard is said, and the first failure of the next row is fast again.
    desk.now = desk.agent.due.line.unwrap();
    desk.on(Event::Woke);
    assert!(desk.on(welcome(1)).contains(&"beat".to_owned()));
    assert!(desk.agent.is_heard());
}

#[test]
fn where_no_stream_can_be_had_it_goes_on_by_calls_and_tries_again_later() {
    let streamless = || Event::Lost(Loss::Streamless("unimplemented".to_owned()));
    let mut desk = Desk::new();
    desk.on(started());
    desk.on(described(1));
    let calls = ["detach", "notice: no stream can be had; going on by single calls", "register 1"];
    assert_eq!(desk.on(streamless()), [&calls[..], &["beat", "poll"]].concat());
    desk.on(registered());
    desk.on(Event::CommandsWait);
    let done = desk.pass(61);
    assert!(done.contains(&"10: beat".to_owned()), "{done:?}");
    assert!(done.iter().filter(|word| word.ends_with("poll")).count() >= 2, "{done:?}");
    // A call that fails changes nothing; it is said again.
    assert_eq!(desk.on(Event::Lost(Loss::Ended("reset".to_owned()))), [""; 0]);
    let done = desk.pass(300);
    assert!(done.contains(&"300: attach 0".to_owned()), "{done:?}");
    // Nobody at all: that is not for want of streams.
    let mut desk = Desk::new();
    desk.on(started());
    desk.on(streamless());
    desk.on(Event::Lost(Loss::Unreachable("refused".to_owned())));
    assert!(!desk.agent.is_heard());
}

#[test]
fn a_stream_that_stays_silent_counts_as_none() {
    let mut desk = Desk::new();
    desk.on(started());
    desk.on(described(1));
    let done = desk.pass(16);
    assert!(done.contains(&"15: detach".to_owned()), "{done:?}");
    assert!(done.contains(&"15: register 1".to_owned()), "{done:?}");
    // One that ends twice in a row without a word, too.
    let mut desk = Desk::new();
    desk.on(started());
    let ended = || Event::Lost(Loss::Ended("http2 error".to_owned()));
    desk.on(ended());
    desk.pass(2);
    let done = desk.on(ended());
    assert!(done.iter().any(|word| word.contains("single calls")), "{done:?}");
}

#[test]
fn a_stream_on_which_nothing_is_answered_any_more_is_given_up() {
    let mut desk = Desk::settled();
    desk.on(Event::Seen(vec![xid(79, 0)]));
    let done = desk.pass(60);
    assert!(done.contains(&"30: report 2 (0 results, 1 events)".to_owned()), "{done:?}");
    assert!(done.contains(&"60: detach".to_owned()), "{done:?}");
    let done = desk.pass(5);
    assert!(done.iter().any(|word| word.ends_with("attach 2")), "{done:?}");
    // Any word shows that somebody listens.
    let mut desk = Desk::settled();
    desk.on(Event::Seen(vec![xid(79, 0)]));
    for _ in 0..20 {
        let done = desk.pass(20);
        assert!(!done.iter().any(|word| word.contains("detach")), "{done:?}");
        desk.told(HeartbeatAck::default());
    }
}

#[test]
fn reports_fly_one_at_a_time_and_signals_are_said_at_once() {
    let mut desk = Desk::settled();
    let seen = |code| Event::Seen(vec![xid(code, 0)]);
    let first = ["keep 1", "keep report 2", "report 2 (0 results, 1 events)"];
    assert_eq!(desk.on(seen(79)), first);
    assert_eq!(desk.on(seen(48)), ["keep 1"]);
    assert_eq!(desk.on(seen(31)), ["keep 1"]);
    let next = ["forget 2", "keep report 3", "report 3 (0 results, 2 events)"];
    assert_eq!(desk.told(taken(2)), next);
    assert_eq!(desk.told(taken(3)), ["keep only 0"]);
    // One that nobody answers is said again, with its number.
    desk.on(seen(13));
    let done = desk.pass(31);
    assert!(done.contains(&"30: report 4 (0 results, 1 events)".to_owned()), "{done:?}");
}

#[test]
fn f3_a_report_whose_answer_was_lost_is_not_a_second_one() {
    let mut desk = Desk::settled();
    desk.on(Event::Seen(vec![xid(79, 0)]));
    desk.on(Event::Lost(Loss::Ended("reset".to_owned())));
    desk.pass(6);
    // They have it: the welcome says so.
    let done = desk.on(welcome(2));
    assert!(done.contains(&"keep only 0".to_owned()), "{done:?}");
    assert!(!done.iter().any(|word| word.starts_with("report")), "{done:?}");
    desk.on(Event::Seen(vec![xid(79, 0)]));
    desk.on(Event::Lost(Loss::Ended("reset".to_owned())));
    desk.pass(6);
    // They do not: it is said again as it was.
    let done = desk.on(welcome(2));
    assert!(done.contains(&"report 3 (0 results, 1 events)".to_owned()), "{done:?}");
}

#[test]
fn a_report_that_cannot_be_read_is_given_up_and_others_wait() {
    let mut desk = Desk::settled();
    desk.on(Event::Seen(vec![xid(79, 0)]));
    let bad = |code: &str, sequence| Error { health_sequence: sequence, ..complaint(code) };
    assert_eq!(desk.told(bad("resource_exhausted", 2)).len(), 1);
    assert_eq!(desk.pass(6)[0], "5: report 2 (0 results, 1 events)");
    let given_up = ["keep only 0", "notice: the control plane cannot read a report; dropped it"];
    assert_eq!(desk.told(bad("invalid_argument", 2)), given_up);
    desk.on(Event::Seen(vec![xid(79, 0)]));
    assert_eq!(desk.agent.outbox.sequence(), 3);
}

#[test]
fn what_was_spooled_is_said_after_a_restart_with_its_number() {
    let mut desk = Desk::new();
    let report = Report {
        sequence: 41,
        checked_at: at(-5),
        outcomes: Vec::new(),
        signals: vec![xid(79, -5)],
    };
    let spooled = Spooled { report: Some(report), signals: vec![xid(48, -4)] };
    let begun = desk.on(Event::Started { spooled, journal: Vec::new() });
    assert_eq!(begun[0], "attach 41");
    desk.on(described(1));
    let done = desk.on(welcome(40));
    assert!(done.contains(&"report 41 (0 results, 1 events)".to_owned()), "{done:?}");
    let done = desk.told(taken(41));
    assert!(done.contains(&"report 42 (0 results, 1 events)".to_owned()), "{done:?}");
}

#[test]
fn n6_a_day_without_a_control_plane_is_bounded_and_does_nothing_by_itself() {
    let mut desk = Desk::settled();
    desk.on(Event::Lost(Loss::Ended("gone".to_owned())));
    desk.unreachable = true;
    let mut attaches = 0;
    for minute in 0..24 * 60 {
        for done in desk.pass(60) {
            let (_, word) = done.split_once(": ").unwrap();
            match word {
                "attach 1" => attaches += 1,
                "check []" => {}
                word => panic!("it did something by itself: {word}"),
            }
        }
        // A check that turns, and two faults a minute: an old one, and one of many kinds.
        let word = if minute % 2 == 0 { Word::Healthy } else { Word::Unhealthy };
        let outcomes = vec![CheckOutcome::fault("nvml", word, "GpuLost", "as it is")];
        let signals = vec![xid(79, minute * 60), xid(u32::try_from(minute % 50).unwrap(), minute)];
        desk.on(Event::Checked { outcomes, signals });
    }
    assert!((24 * 50..24 * 90).contains(&attaches), "{attaches} tries");
    assert_eq!(desk.agent.outbox.waiting.len(), outbox::WAITING_MAX);
    let counted: u32 = desk.agent.outbox.waiting.iter().map(|signal| signal.count).sum();
    assert_eq!(counted, 24 * 60 * 2, "merged into counts, none lost");
    // The day after: the last word of each check, and all that happened, in a few reports.
    desk.unreachable = false;
    desk.now = desk.agent.due.line.unwrap();
    desk.on(Event::Woke);
    let done = desk.on(welcome(1));
    assert!(done.contains(&"report 2 (1 results, 500 events)".to_owned()), "{done:?}");
    let done = desk.told(taken(2));
    assert!(done.contains(&"report 3 (0 results, 500 events)".to_owned()), "{done:?}");
    assert_eq!(desk.told(taken(3)), ["keep only 0"]);
}

/// Whatever happens, what is kept by the effects is what the agent would say: the next one says no more.
#[test]
fn what_is_on_disk_after_a_flood_is_what_is_in_memory() {
    let memory = crate::record::tests::Memory::default();
    let open = || crate::spool::Spool::open(memory.boxed(), crate::spool::SPOOL_LEN_MAX).unwrap();
    let (mut spool, _, _) = open();
    let mut keep = |effects: Vec<Effect>| {
        for effect in effects {
            let keep = match effect {
                Effect::Keep(signals) => crate::spool::Keep::Signals(signals),
                Effect::KeepReport(report) => crate::spool::Keep::Report(report),
                Effect::Forget(sequence) => crate::spool::Keep::Taken(sequence),
                Effect::KeepOnly(spooled) => crate::spool::Keep::All(spooled),
                Effect::Attach(_)
                | Effect::Detach
                | Effect::Say(_)
                | Effect::Poll
                | Effect::Check(_)
                | Effect::Note(_)
                | Effect::Begin(_)
                | Effect::Cancel(_)
                | Effect::Exit(_)
                | Effect::Wake(_)
                | Effect::Notice(_) => continue,
            };
            spool.keep(&keep).unwrap();
        }
    };
    let mut desk = Desk::settled();
    desk.on(Event::Lost(Loss::Ended("gone".to_owned())));
    desk.unreachable = true;
    // Half of them say the same, the others are of many kinds: some are merged, some are dropped.
    for number in 0..5050_u32 {
        let signal = Signal { raw: "x".repeat(500), ..xid(number % 2 * number, number.into()) };
        keep(desk.raw(Event::Seen(vec![signal])));
    }
    assert!(memory.len() < 3_000_000, "{} bytes", memory.len());
    desk.unreachable = false;
    desk.now = desk.agent.due.line.unwrap();
    desk.on(Event::Woke);
    keep(desk.raw(welcome(1)));
    assert_eq!(open().1, desk.agent.unsent());
    assert_eq!(desk.agent.unsent().report.unwrap().signals.len(), 500);
    keep(desk.raw(Event::Told(taken(2))));
    assert_eq!(open().1, desk.agent.unsent());
    keep(desk.raw(Event::Told(taken(3))));
    assert_eq!((memory.len(), desk.agent.unsent()), (0, Spooled::default()));
}

#[test]
fn a_command_is_noted_begun_and_ended_and_its_end_repeated_until_heard() {
    let mut desk = Desk::settled();
    let cordon = command("c1", CommandType::COMMAND_TYPE_CORDON);
    assert_eq!(desk.told(cordon), ["ack c1 acknowledged", "note c1 begun"]);
    assert_eq!(desk.on(noted("c1")), ["ack c1 running", "begin c1"]);
    let done = desk.on(ended("c1", End::completed(at(1), "done")));
    assert_eq!(done, ["note c1 ended", "ack c1 completed: done"]);
    let repeated = desk.pass(9);
    assert!(repeated.iter().any(|word| word.contains("ack c1 completed")), "{repeated:?}");
    let heard = heard("c1", CommandState::COMMAND_STATE_COMPLETED);
    assert_eq!(desk.told(heard), ["note c1 heard"]);
    assert!(!desk.pass(120).iter().any(|word| word.contains("ack")));
}

#[test]
fn many_ends_that_were_not_heard_are_said_a_few_at_a_time_and_each_in_its_turn() {
    let mut desk = Desk::new();
    let entry = |number: u32| Entry {
        end: Some(End::completed(at(-50), "done")),
        ..begun(command(&format!("c{number}"), CommandType::COMMAND_TYPE_CORDON), "boot-1")
    };
    let journal = (0..256).map(entry).collect();
    desk.on(Event::Started { spooled: Spooled::default(), journal });
    let acks = |words: &[String]| words.iter().filter(|word| word.contains("ack ")).count();
    let first = desk.on(welcome(0));
    assert_eq!(acks(&first), 16, "{first:?}");
    // Registered meanwhile, it does not begin anew.
    assert_eq!(acks(&desk.on(registered())), 0);
    let said = desk.pass(15);
    let mut each: Vec<&str> =
        first.iter().chain(&said).filter_map(|w| w.split("ack ").nth(1)).collect();
    each.sort_unstable();
    each.dedup();
    assert_eq!((each.len(), acks(&said)), (256, 240));
    // Nobody answers: they are repeated by as few, and the next are others.
    let again = desk.pass(11);
    assert!((16..=48).contains(&acks(&again)), "{again:?}");
    assert!(
        again.iter().any(|w| w.contains("ack c0 "))
            && again.iter().all(|w| !w.contains("ack c255 "))
    );
    // One more that ends is said alone.
    desk.told(command("new", CommandType::COMMAND_TYPE_CORDON));
    desk.on(noted("new"));
    let done = desk.on(ended("new", End::completed(at(40), "done")));
    assert_eq!(done, ["note new ended", "ack new completed: done"]);
}

#[test]
fn f1_f3_a_command_that_is_told_again_is_answered_and_not_done_again() {
    let mut desk = Desk::settled();
    let quick = || command("c1", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC);
    desk.told(quick());
    assert_eq!(desk.told(quick()), ["ack c1 running"]);
    desk.on(noted("c1"));
    assert_eq!(desk.told(quick()), ["ack c1 running"]);
    desk.on(ended("c1", End::completed(at(1), "done")));
    desk.told(heard("c1", CommandState::COMMAND_STATE_COMPLETED));
    assert_eq!(desk.told(quick()), ["ack c1 completed: done"]);
    // The end is said on the next line, too, if it was not heard on this one.
    desk.on(Event::Lost(Loss::Ended("reset".to_owned())));
    desk.pass(6);
    let done = desk.on(welcome(1));
    assert!(done.contains(&"ack c1 completed: done".to_owned()), "{done:?}");
}

#[test]
fn f10_a_command_of_an_agent_before_us_is_answered_from_the_journal() {
    let mut desk = Desk::new();
    let entry = Entry {
        end: Some(End::completed(at(-50), "done")),
        answered: true,
        ..begun(command("c1", CommandType::COMMAND_TYPE_TERMINATE), "boot-1")
    };
    desk.on(Event::Started { spooled: Spooled::default(), journal: vec![entry] });
    desk.on(welcome(0));
    let terminate = command("c1", CommandType::COMMAND_TYPE_TERMINATE);
    assert_eq!(desk.told(terminate), ["ack c1 completed: done"]);
}

#[test]
fn f8_a_command_that_comes_too_late_is_not_begun() {
    let mut desk = Desk::settled();
    desk.now = at(3600);
    desk.on(Event::Woke);
    let late = Command {
        expires_at: Some(wire::time(at(0))).into(),
        ..command("c1", CommandType::COMMAND_TYPE_TERMINATE)
    };
    let done = desk.told(late);
    assert_eq!(done[0], "note c1 ended");
    assert!(done[1].starts_with("ack c1 failed: not begun: it expired at"), "{done:?}");
    assert_eq!(done.len(), 2);
    // One that expires while it waits for another is not begun either.
    desk.told(drain("d1", 9000));
    desk.on(noted("d1"));
    let soon = Command {
        expires_at: Some(wire::time(at(3700))).into(),
        ..command("q1", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC)
    };
    assert_eq!(desk.told(soon), ["ack q1 acknowledged"]);
    desk.now = at(4000);
    let drained = End { drained: Some(Drained::Drained), ..End::completed(at(4000), "") };
    let done = desk.on(ended("d1", drained));
    assert!(done.iter().any(|w| w.starts_with("ack q1 failed: not begun")), "{done:?}");
}

#[test]
fn commands_of_an_unknown_type_are_refused_with_a_sentence() {
    let mut desk = Desk::settled();
    for (id, number) in [("c1", 42), ("c2", 0), ("c3", -1)] {
        let odd =
            Command { id: id.to_owned(), r#type: EnumValue::from(number), ..Command::default() };
        let done = desk.told(odd);
        let sentence = format!(
            "ack {id} failed: this agent does not know commands of type {number}; update it"
        );
        assert!(done.contains(&sentence), "{done:?}");
    }
    for id in [String::new(), "x".repeat(1000)] {
        let done = desk.told(Command { id, ..drain("", 0) });
        assert_eq!(done, ["notice: ignored a command without a usable id"]);
    }
    assert!(desk.pass(11).contains(&"10: beat".to_owned()));
}

#[test]
fn commands_run_one_after_the_other_and_not_too_many_wait() {
    let mut desk = Desk::settled();
    for number in 0..34 {
        desk.told(command(&format!("c{number}"), CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC));
    }
    let refused = desk.told(command("more", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC));
    let why = "ack more failed: 32 commands wait already, and at most as many may".to_owned();
    assert!(refused.contains(&why), "{refused:?}");
    desk.on(noted("c0"));
    let next = desk.on(ended("c0", End::completed(at(1), "")));
    assert!(next.contains(&"note c1 begun".to_owned()), "{next:?}");
}

#[test]
fn a_drain_is_taken_back_by_a_later_command_or_by_the_control_planes_word() {
    let mut desk = Desk::settled();
    desk.told(drain("d1", 1000));
    desk.on(noted("d1"));
    let uncordon = command("u1", CommandType::COMMAND_TYPE_UNCORDON);
    assert_eq!(desk.told(uncordon), ["cancel d1", "ack u1 acknowledged"]);
    let order = wire::order(drain("d1", 1000), at(0));
    let done = desk.on(ended("d1", End::cancelled(at(1), &order, "taken back")));
    let expected = ["note d1 ended", "note u1 begun", "ack d1 failed cancelled: taken back"];
    assert_eq!(done, expected);

    let mut desk = Desk::settled();
    desk.told(drain("d1", 1000));
    desk.on(noted("d1"));
    let done = desk.told(heard("d1", CommandState::COMMAND_STATE_CANCELLED));
    assert_eq!(done, ["cancel d1"]);
}

#[test]
fn f2_a_drain_goes_on_after_a_restart_with_its_first_deadline() {
    for boot_id in ["boot-1", "boot-0"] {
        let mut desk = Desk::new();
        let entry = begun(drain("d1", 500), boot_id);
        let spooled = Spooled::default();
        let effects = desk.raw(Event::Started { spooled, journal: vec![entry] });
        let begins = effects.iter().find_map(|effect| {
            let Effect::Begin(order) = effect else { return None };
            Some(order.deadline)
        });
        assert_eq!(begins, Some(Some(at(500))), "{effects:?}");
        desk.on(welcome(0));
        assert_eq!(desk.told(drain("d1", 500)), ["ack d1 running"]);
    }
}

#[test]
fn n9_what_an_agent_before_us_began_is_looked_at_again() {
    // What was begun, in which start of the machine, and what becomes of it.
    let rows = [
        (CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC, "boot-1", "note c note ended", "agent"),
        (CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC, "boot-0", "note c note ended", "machine"),
        (CommandType::COMMAND_TYPE_TERMINATE, "boot-1", "begin c", ""),
        (CommandType::COMMAND_TYPE_TERMINATE, "boot-0", "note c ended", "started again"),
        (CommandType::COMMAND_TYPE_CORDON, "boot-1", "begin c", ""),
        (CommandType::COMMAND_TYPE_UNCORDON, "boot-0", "begin c", ""),
    ];
    for (kind, boot_id, first, about) in rows {
        let mut desk = Desk::new();
        let journal = vec![begun(command("c", kind), boot_id)];
        let done = desk.on(Event::Started { spooled: Spooled::default(), journal });
        let first = first.replace("note c note", "note c");
        assert!(done.contains(&first), "{kind:?} {boot_id}: {done:?}");
        let said = desk.on(welcome(0));
        assert!(said.iter().any(|word| word.contains(about)), "{kind:?} {boot_id}: {said:?}");
    }
}

#[test]
fn a_terminated_node_leaves_when_its_end_was_heard_or_soon_after() {
    let leave = |desk: &mut Desk| {
        desk.told(command("t1", CommandType::COMMAND_TYPE_TERMINATE));
        desk.on(noted("t1"));
        desk.on(ended("t1", End { exit: true, ..End::completed(at(0), "stopping") }))
    };
    let mut desk = Desk::settled();
    assert_eq!(leave(&mut desk), ["note t1 ended", "ack t1 completed: stopping"]);
    let done = desk.told(heard("t1", CommandState::COMMAND_STATE_COMPLETED));
    assert_eq!(done, ["note t1 heard", "exit Terminated"]);
    let mut desk = Desk::settled();
    leave(&mut desk);
    let done = desk.pass(11);
    assert!(done.contains(&"10: exit Terminated".to_owned()), "{done:?}");
    // Nothing else is begun meanwhile.
    let late = desk.told(command("c1", CommandType::COMMAND_TYPE_CORDON));
    assert!(late.contains(&"ack c1 failed: the node is being terminated".to_owned()), "{late:?}");
}

#[test]
fn n9_a_terminated_node_that_was_started_again_before_it_was_heard_leaves_when_it_is() {
    // During which start of the machine, whether it was heard, whether it was to leave; does it leave?
    let rows = [
        ("boot-1", false, true, true),
        ("boot-1", false, false, false),
        ("boot-1", true, true, false),
        ("boot-0", false, true, false),
    ];
    for (boot_id, answered, exit, leaves) in rows {
        let mut desk = Desk::new();
        let entry = Entry {
            end: Some(End { exit, ..End::completed(at(-50), "stopping") }),
            answered,
            ..begun(command("t1", CommandType::COMMAND_TYPE_TERMINATE), boot_id)
        };
        desk.on(Event::Started { spooled: Spooled::default(), journal: vec![entry] });
        assert!(!desk.pass(14).iter().any(|word| word.contains("exit")));
        let said = desk.on(welcome(0));
        assert_eq!(said.contains(&"ack t1 completed: stopping".to_owned()), !answered, "{said:?}");
        let done = desk.told(heard("t1", CommandState::COMMAND_STATE_COMPLETED));
        let left = done.contains(&"exit Terminated".to_owned());
        assert_eq!(left, leaves, "{boot_id} {answered} {exit}: {done:?}");
    }
}

#[test]
fn a_handler_that_does_not_stop_is_given_up() {
    let mut desk = Desk::settled();
    desk.told(drain("d1", 100));
    desk.on(noted("d1"));
    let done = desk.pass(161);
    assert!(done.contains(&"160: cancel d1".to_owned()), "{done:?}");
    let done = desk.pass(60);
    let sentence = "220: ack d1 failed timed_out: it did not stop when it was to".to_owned();
    assert!(done.contains(&sentence), "{done:?}");
}

#[test]
fn a6_without_a_journal_only_what_may_be_done_twice_is_done() {
    let full =
        |id: &str| Event::Noted { command: id.to_owned(), error: Some("no space left".to_owned()) };
    let mut desk = Desk::settled();
    desk.told(command("c1", CommandType::COMMAND_TYPE_CORDON));
    assert_eq!(desk.on(full("c1")), ["ack c1 running", "begin c1"]);
    desk.on(ended("c1", End::completed(at(1), "")));
    desk.told(command("t1", CommandType::COMMAND_TYPE_TERMINATE));
    let done = desk.on(full("t1"));
    let why = "ack t1 failed: not begun, because the journal cannot be written: no space left";
    assert!(done.contains(&why.to_owned()), "{done:?}");
}

#[test]
fn a_disk_that_hangs_is_a_journal_that_cannot_be_written() {
    let mut desk = Desk::settled();
    desk.told(command("t1", CommandType::COMMAND_TYPE_TERMINATE));
    desk.told(command("c1", CommandType::COMMAND_TYPE_CORDON));
    let done = desk.pass(10);
    let why = "10: ack t1 failed: not begun, because the journal cannot be written: the disk did not \
               answer for 10 s";
    assert!(done.contains(&why.to_owned()), "{done:?}");
    // What waited behind it has its turn, and what may be done twice is done.
    let done = desk.pass(10);
    assert!(done.contains(&"20: begin c1".to_owned()), "{done:?}");
    // What the disk says at last is of no use to anybody.
    assert_eq!(desk.on(noted("t1")), [""; 0]);
}

#[test]
fn a_command_that_is_taken_back_before_it_was_begun_is_not_begun() {
    let mut desk = Desk::settled();
    desk.told(drain("d1", 1000));
    desk.told(command("q1", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC));
    let over = |id| heard(id, CommandState::COMMAND_STATE_CANCELLED);
    // One waits behind the other; then the other, whose note is being written.
    let waits = desk.told(over("q1"));
    let ended = ["note q1 ended", "ack q1 failed: taken back before it was begun"];
    assert_eq!(waits, ended);
    let noting = desk.told(over("d1"));
    let ended = ["note d1 ended", "ack d1 failed cancelled: taken back before it was begun"];
    assert_eq!(noting, ended);
    assert_eq!(desk.on(noted("d1")), [""; 0]);
    // By a later command, too.
    desk.told(drain("d2", 1000));
    let done = desk.told(command("u1", CommandType::COMMAND_TYPE_UNCORDON));
    assert!(done.contains(&"note d2 ended".to_owned()), "{done:?}");
    assert!(done.contains(&"note u1 begun".to_owned()), "{done:?}");
    assert_eq!(desk.on(noted("d2")), [""; 0]);
}

#[test]
fn a_control_plane_that_answers_nonsense_does_not_stop_heartbeats() {
    let mut desk = Desk::settled();
    let nonsense: Vec<Told> = vec![
        Told::from(complaint("")),
        Told::from(complaint("internal")),
        Told::from(complaint("permission_denied")),
        Told::from(Error { command_id: "nobody".to_owned(), ..complaint("not_found") }),
        Told::from(Error { health_sequence: u64::MAX, ..complaint("invalid_argument") }),
        Told::from(config(u32::MAX, 0)),
        Told::from(HeartbeatAck { next_interval_seconds: u32::MAX, ..HeartbeatAck::default() }),
        Told::from(Welcome { health_sequence: u64::MAX, ..Welcome::default() }),
        Told::from(RegisterNodeResponse { health_sequence: u64::MAX, ..Default::default() }),
        taken(u64::MAX),
        Told::from(AckCommandResponse { state: EnumValue::from(99), ..Default::default() }),
        Told::from(Command::default()),
        Told::from(config(10, 60)),
    ];
    for told in nonsense.into_iter().cycle().take(200) {
        desk.told(told);
    }
    let done = desk.pass(30);
    let beats = done.iter().filter(|word| word.ends_with("beat")).count();
    assert_eq!(beats, 3, "{done:?}");
    desk.on(Event::Seen(vec![xid(79, 0)]));
    assert!(desk.agent.outbox.sequence() < u64::MAX);
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_heartbeats() {
    let mut desk = Desk::settled();
    assert_eq!(desk.pass(20).len(), 2);
    desk.now = later(desk.now, SignedDuration::from_hours(-24));
    // Whoever sleeps until the old time wakes by the old clock: soon.
    desk.on(Event::Woke);
    let before = desk.now;
    let beats = desk.pass(20);
    assert_eq!(beats.iter().filter(|word| word.ends_with("beat")).count(), 2, "{beats:?}");
    assert!(desk.now.duration_since(before) == SignedDuration::from_secs(20));
    // And one that is set forward is followed at once.
    desk.now = later(desk.now, SignedDuration::from_hours(48));
    assert!(desk.on(Event::Woke).contains(&"beat".to_owned()));
}

#[test]
fn stopping_leaves_what_runs_to_the_next_agent() {
    let mut desk = Desk::settled();
    desk.told(drain("d1", 1000));
    desk.on(noted("d1"));
    assert_eq!(desk.on(Event::Stop), ["detach", "exit Stopped"]);
}

#[test]
fn an_agent_is_small_enough_to_simulate_a_million_of() {
    assert!(size_of::<Agent>() <= 1024, "{} bytes", size_of::<Agent>());
    assert!(size_of::<Effect>() <= 64, "{} bytes", size_of::<Effect>());
    let order = wire::order(command("c", CommandType::COMMAND_TYPE_CORDON), at(0));
    assert_eq!(order.kind, Kind::Cordon);
}

/// One of everything that can happen, by number: `about` picks what it is about.
fn anything(kind: u8, about: u8, now: Timestamp) -> Event {
    let id = format!("c{}", about % 4);
    let sequence = u64::from(about % 8);
    let second = now.duration_since(at(0)).as_secs();
    match kind % 20 {
        0 => Event::Woke,
        1 => described(usize::from(about % 3)),
        2 => Event::Sampled(Box::default()),
        3 => checked(),
        4 => Event::Seen(vec![xid(about.into(), second)]),
        5 => welcome(sequence),
        6 => registered(),
        7 => Event::Told(taken(sequence)),
        8 => {
            let types = [1, 2, 3, 4, 5, 99];
            let number = types[usize::from(about) % types.len()];
            let r#type = EnumValue::from(number);
            // Whatever is told of one id is the same command, or it would not be one.
            let command = Command { id: format!("{id}-{number}"), r#type, ..Command::default() };
            let deadline = Some(wire::time(later(now, SignedDuration::from_secs(about.into()))));
            Event::Told(Told::from(Command { deadline: deadline.into(), ..command }))
        }
        9 => {
            let state = CommandState::COMMAND_STATE_CANCELLED;
            Event::Told(Told::from(heard(&format!("{id}-{}", about % 6), state)))
        }
        10 => Event::Told(Told::from(complaint("not_found"))),
        11 => Event::Told(Told::from(Error { health_sequence: sequence, ..complaint("internal") })),
        12 => Event::Told(Told::from(config(about.into(), about.into()))),
        13 => Event::Lost(Loss::Unreachable(String::new())),
        14 => Event::Lost(Loss::Streamless(String::new())),
        15 => Event::Lost(Loss::Ended(String::new())),
        16 => noted(&format!("{id}-{}", about % 6)),
        18 => Event::Alarmed,
        17 => ended(&format!("{id}-{}", about % 6), End::completed(now, "done")),
        _ => Event::CommandsWait,
    }
}

proptest! {
    #[test]
    fn whatever_happens_no_command_is_begun_twice_and_heartbeats_come_back(
        happenings in prop::collection::vec((any::<u8>(), any::<u8>(), -500_i64..5000), 0..300),
    ) {
        let mut desk = Desk::new();
        let mut begun = BTreeSet::new();
        desk.on(started());
        for (kind, about, jump_s) in happenings {
            // Clocks go forward mostly, and sometimes back.
            let jump_s = if jump_s % 7 == 0 { jump_s } else { jump_s.abs() % 30 };
            desk.now = later(desk.now, SignedDuration::from_secs(jump_s));
            let now = desk.now;
            for effect in desk.raw(anything(kind, about, now)) {
                match effect {
                    Effect::Begin(order) => prop_assert!(begun.insert(order.id.clone())),
                    Effect::Attach(_) | Effect::Detach | Effect::Say(_) | Effect::Poll
                    | Effect::Check(_) | Effect::Keep(_) | Effect::KeepReport(_)
                    | Effect::Forget(_) | Effect::KeepOnly(_) | Effect::Note(_) | Effect::Cancel(_) | Effect::Exit(_)
                    | Effect::Wake(_) | Effect::Notice(_) => {}
                }
            }
            prop_assert!(desk.wake.is_some());
            prop_assert!(desk.agent.outbox.waiting.len() <= outbox::WAITING_MAX);
        }
        // Somebody answers again: it is heard of within the longest wait there is.
        let mut beats = 0;
        for _ in 0..400 {
            desk.now = desk.now.max(desk.wake.unwrap());
            let words = desk.on(Event::Woke);
            beats += words.iter().filter(|word| word.starts_with("beat")).count();
            if words.iter().any(|word| word.starts_with("attach")) {
                desk.on(welcome(u64::MAX / 4));
            }
        }
        prop_assert!(0 < beats);
    }
}

#[test]
fn r2_n12_what_is_told_as_a_span_counts_from_now_whatever_the_clocks_show() {
    // The control plane's clock is two hours behind ours, and it does not know.
    let told = Command {
        expires_at: Some(wire::time(at(-7200 + 600))).into(),
        expires_in_seconds: Some(600),
        deadline_in_seconds: Some(60),
        quiet_seconds: 10,
        ..drain("d1", -7200 + 60)
    };
    let order = wire::order(told, at(5));
    assert_eq!((order.expires_at, order.deadline), (Some(at(605)), Some(at(65))));
    assert_eq!(order.quiet_seconds, 10);
    // One of an earlier build says times alone.
    let order = wire::order(drain("d1", 60), at(5));
    assert_eq!(order.deadline, Some(at(60)));
}

#[test]
fn r2_n7_what_a_node_is_to_be_does_not_wait_behind_a_diagnostic() {
    let mut desk = Desk::settled();
    desk.told(command("t1", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC));
    desk.on(noted("t1"));
    let done = desk.told(command("c1", CommandType::COMMAND_TYPE_CORDON));
    assert!(done.contains(&"cancel t1".to_owned()), "{done:?}");
}
