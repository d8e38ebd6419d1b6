//! Nodes on streams: the agent's own core, and a line that measures what goes over it.

use super::Plan;
use super::tally::{Tally, Turn};
use argosy_agent::agent::{Event, Loss};
use argosy_agent::clock::System;
use argosy_agent::gpu::fake::SpecError;
use argosy_agent::gpu::fake::injection::Injection;
use argosy_agent::swarm::{AgentNumber, Line, Load, Spec, Swarm, Wire};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::{Hello, NodeConfig};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The nodes.
pub(super) struct Streams {
    swarm: Swarm,
    tally: Tally,
}

impl Streams {
    pub(super) fn new(
        plan: &Plan,
        server: &str,
        token: Option<String>,
        tally: &Tally,
    ) -> Result<Self, String> {
        let wire = Wire::new(server, token).map_err(|error| error.to_string())?;
        let seconds = |every: Duration| {
            u32::try_from(every.as_secs_f64().round() as u64).unwrap_or(u32::MAX).max(1)
        };
        let line = Measured {
            line: wire,
            tally: tally.clone(),
            beat_s: plan.interval.map(seconds),
            round_s: plan.report_interval.map(seconds),
            talks: HashMap::new(),
        };
        let swarm = Swarm::start(Load::default(), Arc::new(System), line);
        Ok(Self { swarm, tally: tally.clone() })
    }

    pub(super) fn boot(&self, spec: Spec) -> Result<(), SpecError> {
        self.swarm.boot(spec)
    }

    pub(super) async fn inject(&self, node: &str, injection: Injection) {
        match self.swarm.inject(node, injection).await {
            Ok(()) => self.tally.counts().faults += 1,
            // One that was told to end has no GPUs to lose.
            Err(error) => self.tally.error("injection", &error.to_string()),
        }
    }
}

/// A line that counts and times what goes over another.
pub(super) struct Measured<L> {
    pub(super) line: L,
    pub(super) tally: Tally,
    /// How often to beat and to report, instead of what is told.
    pub(super) beat_s: Option<u32>,
    pub(super) round_s: Option<u32>,
    pub(super) talks: HashMap<AgentNumber, Talk>,
}

/// What one agent waits for.
#[derive(Default)]
pub(super) struct Talk {
    hello_at: Option<Duration>,
    registration_at: Option<Duration>,
    report: Option<(u64, Duration)>,
    registered: bool,
    attached: bool,
    was_attached: bool,
}

impl<L: Line> Measured<L> {
    fn talk(&mut self, agent: AgentNumber) -> &mut Talk {
        self.talks.entry(agent).or_default()
    }

    /// The stream is gone, and with it the answers.
    fn lose(&mut self, agent: AgentNumber) {
        let talk = self.talk(agent);
        (talk.hello_at, talk.registration_at, talk.report) = (None, None, None);
        if std::mem::take(&mut talk.attached) {
            let mut counts = self.tally.counts();
            counts.connected = counts.connected.saturating_sub(1);
        }
    }

    fn hear(&mut self, agent: AgentNumber, told: &mut Told) {
        self.tally.counts().received += 1;
        let tally = self.tally.clone();
        let (beat_s, round_s) = (self.beat_s, self.round_s);
        let talk = self.talk(agent);
        let first = talk.hello_at.take();
        if let Some(since) = first {
            tally.time(Turn::Hello, since);
            talk.attached = true;
            let again = std::mem::replace(&mut talk.was_attached, true);
            let mut counts = tally.counts();
            counts.connected += 1;
            counts.reconnects += u64::from(again);
        }
        let set = |config: &mut NodeConfig| {
            config.heartbeat_interval_seconds = beat_s.unwrap_or(config.heartbeat_interval_seconds);
            config.health_check_interval_seconds =
                round_s.unwrap_or(config.health_check_interval_seconds);
        };
        match told {
            Told::Welcome(welcome) => {
                if let Some(config) = welcome.config.as_option_mut() {
                    set(config);
                }
            }
            Told::Config(config) => set(config),
            Told::HeartbeatAck(ack) => {
                ack.next_interval_seconds = beat_s.unwrap_or(ack.next_interval_seconds);
            }
            Told::Registered(registered) => {
                if let Some(config) = registered.config.as_option_mut() {
                    set(config);
                }
                if let Some(since) = talk.registration_at.take() {
                    tally.time(Turn::Registration, since);
                }
                if !std::mem::replace(&mut talk.registered, true) {
                    tally.counts().registered += 1;
                }
            }
            Told::ReportAck(answer) => {
                let asked = talk.report.take_if(|(sequence, _)| *sequence == answer.sequence);
                if let Some((_, since)) = asked {
                    tally.time(Turn::Report, since);
                }
            }
            Told::Command(_) => tally.counts().commands += 1,
            Told::CommandAck(_) => {}
            // Whoever says hello for the first time is not known, and registers next.
            Told::Error(error) if first.is_some() && error.code == "not_found" => {}
            Told::Error(error) => tally.error(&error.code, &error.message),
        }
    }
}

impl<L: Line> Line for Measured<L> {
    fn attach(&mut self, agent: AgentNumber, hello: Hello) {
        self.lose(agent);
        let now = self.tally.now();
        self.talk(agent).hello_at = Some(now);
        self.tally.counts().sent += 1;
        self.line.attach(agent, hello);
    }

    fn say(&mut self, agent: AgentNumber, said: Said) {
        let now = self.tally.now();
        let talk = self.talk(agent);
        match &said {
            Said::Register(_) => talk.registration_at = Some(now),
            Said::Health(report) => talk.report = Some((report.sequence, now)),
            Said::Heartbeat(_) => self.tally.counts().heartbeats += 1,
            Said::Hello(_) | Said::Heartbeats(_) | Said::Ack(_) => {}
        }
        self.tally.counts().sent += 1;
        self.line.say(agent, said);
    }

    fn poll(&mut self, agent: AgentNumber) {
        self.line.poll(agent);
    }

    fn detach(&mut self, agent: AgentNumber) {
        self.lose(agent);
        self.line.detach(agent);
    }

    async fn next(&mut self) -> (AgentNumber, Event) {
        let (agent, mut event) = self.line.next().await;
        match &mut event {
            Event::Told(told) => self.hear(agent, told),
            Event::Lost(loss) => {
                self.lose(agent);
                let (kind, why) = match loss {
                    Loss::Unreachable(why) => ("unreachable", why),
                    Loss::Streamless(why) => ("streamless", why),
                    Loss::Refused(why) => ("refused", why),
                    Loss::Ended(why) => ("ended", why),
                };
                self.tally.error(kind, why);
            }
            // A line tells nothing else.
            Event::Started { .. }
            | Event::Woke
            | Event::Described { .. }
            | Event::Sampled(_)
            | Event::Alarmed
            | Event::Checked { .. }
            | Event::Seen(_)
            | Event::CommandsWait
            | Event::Noted { .. }
            | Event::Progress { .. }
            | Event::Ended { .. }
            | Event::Stop => {}
        }
        (agent, event)
    }
}
