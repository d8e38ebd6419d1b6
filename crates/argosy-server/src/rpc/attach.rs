//! One stream of one node, or of somebody who passes on the heartbeats of many.
//!
//! It is pulled: what is to be told is made when the connection can take it, and what a node says is read
//! when everything before it was answered, so nothing queues here. The stream is part of its request and
//! ends with it; no task outlives it.
//!
//! What a newcomer gets wrong: the first `hello` says who speaks, for good. Whoever wants to be somebody
//! else opens another stream.

use super::convert::node as convert;
use super::node::{health_sequence, registered_as};
use super::one;
use crate::Server;
use crate::metrics::Held;
use crate::problem::rpc::{internal, node_status};
use argosy_api::rpc::attach::{SaidView, Told};
use argosy_api::rpc::node as wire;
use argosy_control::Error;
use argosy_control::command::Wire;
use argosy_control::node::NodeConfig;
use argosy_control::pulse::{self, Via};
use argosy_core::access::{Caller, Decision, Role, Verb, may};
use argosy_core::id::CommandId;
use argosy_core::node::NodeId;
use axum::http::HeaderMap;
use connectrpc::{ConnectError, InboundStream, StreamMessage};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How long a stream may go on before its credential is looked at again.
///
/// A token that was taken back works for at most this long; looking costs less than a heartbeat.
const CREDENTIAL_EVERY: Duration = Duration::from_secs(60);

/// How often a heartbeat makes us look for commands that a wake-up should have told of.
///
/// As often as daemons poll. Wake-ups are not lost in one process; this is for when there are several.
const FETCH_EVERY: Duration = Duration::from_secs(10);

/// How many heartbeats one batch may carry: those of a relay for a hall.
///
/// Each is one look-up; a larger batch would keep a thread for too long.
const BATCH_MAX: usize = 4096;

/// How many complaints about one batch are told; more would only repeat them.
const BATCH_COMPLAINTS_MAX: usize = 64;

/// How many commands are remembered as told on a stream: twice as many as may wait.
const TOLD_MAX: usize = 64;

/// One stream of one node within the process: what a simulation has instead of a connection. What is said is
/// packed and unpacked as on the wire. An error ends it.
pub fn attach(
    server: Arc<Server>,
    caller: Caller,
    said: impl Stream<Item = wire::AttachRequest> + Send + 'static,
) -> impl Stream<Item = Result<wire::AttachResponse, String>> + Send + 'static {
    let requests = said.map(|said| Ok(StreamMessage::from_message(&said))).boxed();
    let told = stream(server, caller, HeaderMap::new(), requests);
    told.map(|told| told.map_err(|error| error.to_string()))
}

/// What a stream answers to what is said on it.
pub(super) fn stream(
    server: Arc<Server>,
    caller: Caller,
    credentials: HeaderMap,
    requests: InboundStream<wire::AttachRequest>,
) -> impl Stream<Item = Result<wire::AttachResponse, ConnectError>> + Send + 'static {
    let now = server.control.clock.monotonic();
    let attached = Attached {
        _held: server.metrics.attached(),
        outside: outside(&server, None),
        server,
        caller,
        credentials,
        checked_at: now,
        requests,
        speaker: Speaker::Nobody,
        place: None,
        outbox: VecDeque::new(),
        told: VecDeque::new(),
        fetched_at: now,
        config_revision: 0,
        interval_s: 0,
        ended: false,
    };
    stream::unfold(attached, |mut attached| async {
        // Where a stream is polled, nobody else catches a panic: it would take the connection along.
        let next = AssertUnwindSafe(attached.next()).catch_unwind().await;
        let next = next.unwrap_or_else(|_panic| {
            tracing::error!("a stream of a node panicked");
            attached.ended = true;
            Some(Err(internal()))
        })?;
        Some((next, attached))
    })
}

struct Attached {
    server: Arc<Server>,
    caller: Caller,
    /// The header with the credential, to be looked at again.
    credentials: HeaderMap,
    checked_at: Duration,
    requests: InboundStream<wire::AttachRequest>,
    /// What may happen besides somebody saying something.
    outside: BoxFuture<'static, Outside>,
    speaker: Speaker,
    /// The node's place on the board, where its stream counts while this is kept.
    place: Option<pulse::Attached>,
    /// What is to be told next: the answers to one message, or the commands of one fetch.
    outbox: VecDeque<Told>,
    /// The commands that were told on this stream. It loses nothing, so once is enough.
    told: VecDeque<CommandId>,
    fetched_at: Duration,
    /// The configuration the node goes by.
    config_revision: u64,
    /// The interval of heartbeats the node goes by.
    interval_s: u32,
    ended: bool,
    _held: Held,
}

/// Who speaks on a stream.
enum Speaker {
    /// Nobody has said.
    Nobody,
    /// A node, known or not.
    Node(Arc<str>),
    /// Somebody who passes on heartbeats.
    Relay,
}

/// What happens besides somebody saying something.
enum Outside {
    /// The process is to end.
    Stop,
    /// There may be commands.
    Commands,
}

/// Waits for either. It is kept from message to message, so that no wake-up falls between two.
fn outside(server: &Server, node: Option<Arc<str>>) -> BoxFuture<'static, Outside> {
    let (mut shutdown, commands) = (server.shutdown.clone(), server.control.commands.clone());
    async move {
        let commands = async {
            match &node {
                Some(node) => commands.wait(node).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = shutdown.wait_for(|stop| *stop) => Outside::Stop,
            () = commands => Outside::Commands,
        }
    }
    .boxed()
}

impl Attached {
    async fn next(&mut self) -> Option<Result<wire::AttachResponse, ConnectError>> {
        loop {
            if let Some(told) = self.outbox.pop_front() {
                return Some(Ok(wire::AttachResponse { message: Some(told) }));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.step().await {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    /// Waits for one thing to happen, and does what follows from it. An error ends the stream.
    async fn step(&mut self) -> Result<(), ConnectError> {
        let said = tokio::select! {
            biased;
            happened = &mut self.outside => return self.happened(happened).await,
            said = self.requests.next() => said,
        };
        let Some(said) = said else {
            self.ended = true;
            return Ok(());
        };
        let said = said?;
        self.check_credential().await?;
        self.hear(&said).await
    }

    async fn happened(&mut self, happened: Outside) -> Result<(), ConnectError> {
        match happened {
            Outside::Stop => Err(ConnectError::unavailable("the server is stopping; attach again")),
            Outside::Commands => {
                self.listen();
                self.check_credential().await?;
                self.fetch().await;
                Ok(())
            }
        }
    }

    /// Waits for what happens outside, anew.
    fn listen(&mut self) {
        let node = match &self.speaker {
            Speaker::Node(node) => Some(node.clone()),
            Speaker::Nobody | Speaker::Relay => None,
        };
        self.outside = outside(&self.server, node);
    }

    /// Ends the stream if its credential is no longer good.
    async fn check_credential(&mut self) -> Result<(), ConnectError> {
        let now = self.server.control.clock.monotonic();
        if now.saturating_sub(self.checked_at) < CREDENTIAL_EVERY {
            return Ok(());
        }
        self.checked_at = now;
        let checked =
            self.server.authenticator.authenticate(&self.credentials, String::new()).await;
        let caller = checked.map_err(|error| ConnectError::unauthenticated(error.to_string()))?;
        if may(&caller, Verb::Attend) != Decision::Allow || caller.tenant != self.caller.tenant {
            let sentence = "the credential of the stream means something else by now; attach again";
            return Err(ConnectError::permission_denied(sentence));
        }
        self.caller = caller;
        Ok(())
    }

    async fn hear(
        &mut self,
        said: &StreamMessage<wire::AttachRequest>,
    ) -> Result<(), ConnectError> {
        // Nothing that this server knows: from a newer agent, which can do without an answer.
        let Some(said) = &said.view().message else { return Ok(()) };
        match (&self.speaker, said) {
            (Speaker::Nobody, SaidView::Hello(hello)) => self.hello(hello).await,
            (Speaker::Nobody, _) => {
                let sentence = "the first message on a stream is `hello`";
                Err(ConnectError::failed_precondition(sentence))
            }
            (Speaker::Node(_) | Speaker::Relay, SaidView::Hello(_)) => {
                let sentence = "`hello` was said before; open another stream to be somebody else";
                Err(ConnectError::failed_precondition(sentence))
            }
            (Speaker::Node(_) | Speaker::Relay, SaidView::Heartbeats(batch)) => {
                self.batch(batch);
                Ok(())
            }
            (Speaker::Node(node), said) => {
                let node = node.clone();
                self.hear_node(&node, said).await;
                Ok(())
            }
            (Speaker::Relay, _) => {
                let sentence = "a stream without a node_id carries batches of heartbeats only";
                self.complain(&ConnectError::failed_precondition(sentence), |_| {});
                Ok(())
            }
        }
    }

    /// What one node says about itself. What is wrong with it is told, and the stream goes on.
    async fn hear_node(&mut self, node: &Arc<str>, said: &SaidView<'_>) {
        match said {
            SaidView::Hello(_) | SaidView::Heartbeats(_) => {}
            SaidView::Heartbeat(heartbeat) => {
                if let Err(error) = self.beat(node, heartbeat).await {
                    self.complain(&error, |_| {});
                }
            }
            SaidView::Health(report) => {
                if let Err(error) = self.report(node, report).await {
                    self.complain(&error, |about| about.health_sequence = report.sequence);
                }
            }
            SaidView::Ack(ack) => {
                if let Err(error) = self.acknowledge(node, ack).await {
                    self.complain(&error, |about| about.command_id = ack.command_id.to_owned());
                }
            }
            SaidView::Register(registration) => {
                if let Err(error) = self.register(node, registration).await {
                    self.complain(&error, |_| {});
                }
            }
        }
    }

    /// Who speaks. A node that nobody knows may stay and register; one that may not be it may not.
    async fn hello(&mut self, hello: &wire::HelloView<'_>) -> Result<(), ConnectError> {
        if hello.node_id.is_empty() {
            if self.caller.node.is_some() {
                let sentence = "node_id is required: the credential is one node's";
                return Err(ConnectError::invalid_argument(sentence));
            }
            self.speaker = Speaker::Relay;
            self.outbox.push_back(Told::from(wire::Welcome::default()));
            return Ok(());
        }
        let nodes = &self.server.control.nodes;
        let config = nodes.config(&self.caller, hello.node_id, Via::Stream);
        self.speaker = Speaker::Node(Arc::from(hello.node_id));
        match config {
            Ok(config) => {
                self.settle(hello.node_id);
                self.config_revision = hello.config_revision;
                self.welcome(hello.node_id, &config);
                self.fetch().await;
            }
            Err(error @ Error::NodeNotFound(_)) => self.complain(&node_status(error), |_| {}),
            Err(error) => return Err(node_status(error)),
        }
        Ok(())
    }

    fn welcome(&mut self, node: &str, config: &NodeConfig) {
        // A node's credential reads nothing, but may know what is known of the node it speaks for.
        let oneself = Caller { role: Role::Admin, ..self.caller.clone() };
        let known = self.server.control.nodes.get(&oneself, node).ok();
        let known = known.as_ref().map(|(node, _)| &node.value);
        let new = self.config_revision != config.revision;
        self.config_revision = config.revision;
        self.goes_by(config);
        self.outbox.push_back(Told::from(wire::Welcome {
            config: new.then(|| convert::config(config)).into(),
            status: known.map(|node| convert::status(node.status())).unwrap_or_default(),
            health: known.map(|node| convert::health(node.health.state)).unwrap_or_default(),
            health_sequence: known.map_or(0, |node| health_sequence(&self.server, node)),
        }));
    }

    /// The node is known: its stream counts, and hears of commands.
    fn settle(&mut self, node: &str) {
        let board = &self.server.control.nodes.board;
        self.place = NodeId::parse(node).ok().map(|node| board.admit(&node).attach());
        self.listen();
    }

    /// Remembers what the node was told to go by.
    fn goes_by(&mut self, config: &NodeConfig) {
        self.config_revision = config.revision;
        self.interval_s = convert::config(config).heartbeat_interval_seconds;
    }

    async fn beat(
        &mut self,
        node: &Arc<str>,
        heartbeat: &wire::HeartbeatView<'_>,
    ) -> Result<(), ConnectError> {
        check_own(node, heartbeat.node_id)?;
        let beat = convert::heartbeat(heartbeat).map_err(one)?;
        let nodes = &self.server.control.nodes;
        let answer = nodes.heartbeat(&self.caller, node, Via::Stream, beat).map_err(node_status)?;
        if answer.config_revision != self.config_revision {
            let config = nodes.config(&self.caller, node, Via::Stream).map_err(node_status)?;
            self.goes_by(&config);
            self.outbox.push_back(Told::from(convert::config(&config)));
        }
        if answer.next_s != self.interval_s {
            self.interval_s = answer.next_s;
            self.outbox.push_back(Told::from(wire::HeartbeatAck {
                config_revision: self.config_revision,
                next_interval_seconds: answer.next_s,
            }));
        }
        let now = self.server.control.clock.monotonic();
        if answer.commands_wait && FETCH_EVERY <= now.saturating_sub(self.fetched_at) {
            self.fetch().await;
        }
        Ok(())
    }

    /// The heartbeats of many. Each is for itself: one that is wrong does not spoil the others.
    fn batch(&mut self, batch: &wire::HeartbeatBatchView<'_>) {
        if BATCH_MAX < batch.heartbeats.len() {
            let len = batch.heartbeats.len();
            let sentence = format!("heartbeats has {len} entries; at most {BATCH_MAX} are allowed");
            return self.complain(&ConnectError::invalid_argument(sentence), |_| {});
        }
        let mut complaints = 0;
        for heartbeat in &batch.heartbeats {
            let beat = convert::heartbeat(heartbeat).map_err(one).and_then(|beat| {
                let nodes = &self.server.control.nodes;
                // A relay keeps the stream; the nodes behind it call.
                let answer = nodes.heartbeat(&self.caller, heartbeat.node_id, Via::Call, beat);
                answer.map_err(node_status)
            });
            if let Err(error) = beat {
                complaints += 1;
                if complaints <= BATCH_COMPLAINTS_MAX {
                    let node = heartbeat.node_id;
                    self.complain(&error, |about| about.node_id = node.to_owned());
                }
            }
        }
    }

    async fn report(
        &mut self,
        node: &Arc<str>,
        report: &wire::HealthReportView<'_>,
    ) -> Result<(), ConnectError> {
        let caller = self.server.signed(&self.caller);
        let sequence = report.sequence;
        let report = convert::report(report).map_err(one)?;
        let nodes = &self.server.control.nodes;
        let answer = nodes.report(&caller, node, report).await.map_err(node_status)?;
        self.outbox.push_back(Told::from(wire::ReportHealthResponse {
            status: convert::status(answer.status),
            health: convert::health(answer.health),
            config_revision: self.config_revision,
            stale: !answer.news,
            sequence,
        }));
        Ok(())
    }

    async fn acknowledge(
        &mut self,
        node: &Arc<str>,
        ack: &wire::CommandAckView<'_>,
    ) -> Result<(), ConnectError> {
        let (id, ack) = convert::ack(ack).map_err(one)?;
        let caller = self.server.signed(&self.caller);
        let commands = &self.server.control.commands;
        let command = commands.acknowledge(&caller, node, id, ack).await.map_err(node_status)?;
        self.outbox.push_back(Told::from(convert::state(&command.value)));
        if command.value.state.is_done() {
            // The next one could not begin before this one ended.
            self.fetch().await;
        }
        Ok(())
    }

    async fn register(
        &mut self,
        node: &Arc<str>,
        registration: &wire::RegisterNodeRequestView<'_>,
    ) -> Result<(), ConnectError> {
        check_own(node, registration.node_id)?;
        let mut registration = convert::registration(registration).map_err(one)?;
        registration.node_id = node.to_string();
        let caller = self.server.signed(&self.caller);
        let nodes = &self.server.control.nodes;
        let registered = nodes.register(&caller, registration).await;
        let (registered, _) = registered.map_err(node_status)?;
        let config = nodes.config(&self.caller, node, Via::Stream).map_err(node_status)?;
        self.settle(node);
        self.goes_by(&config);
        let told = registered_as(&self.server, &registered.value, &config);
        self.outbox.push_back(Told::from(told));
        self.fetch().await;
        Ok(())
    }

    /// Tells the commands that are due and were not told here before.
    async fn fetch(&mut self) {
        let Speaker::Node(node) = &self.speaker else { return };
        self.fetched_at = self.server.control.clock.monotonic();
        let caller = self.server.signed(&self.caller);
        let fetched = self.server.control.commands.fetch(&caller, node, Wire::Argosy).await;
        match fetched {
            Ok(commands) => {
                let told = convert::Telling::to(&self.server.control, node);
                for command in commands {
                    if !self.told.contains(&command.id) {
                        self.told.truncate(TOLD_MAX - 1);
                        self.told.push_front(command.id);
                        self.outbox.push_back(Told::from(convert::command(&command, told)));
                    }
                }
            }
            // It registers next, and is told then.
            Err(Error::NodeNotFound(_)) => {}
            Err(error) => self.complain(&node_status(error), |_| {}),
        }
    }

    /// Tells what was not taken. `about` says what it is about.
    fn complain(&mut self, error: &ConnectError, about: impl FnOnce(&mut wire::Error)) {
        let mut complaint = wire::Error {
            code: error.code.as_str().to_owned(),
            message: error.message.clone().unwrap_or_default(),
            ..wire::Error::default()
        };
        about(&mut complaint);
        self.outbox.push_back(Told::from(complaint));
    }
}

/// What a node says on its stream is about itself.
fn check_own(node: &str, named: &str) -> Result<(), ConnectError> {
    if named.is_empty() || named == node {
        return Ok(());
    }
    let sentence = format!("the stream is of node {node}, and can say nothing of another");
    Err(ConnectError::permission_denied(sentence))
}
