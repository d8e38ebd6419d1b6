//! Streams: who may open one, what is said on it, and how it ends.

use super::{NAVARCH, OURS, Serving, field, framed, frames, serve};
use crate::world::World;
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::{
    AttachRequest, AttachResponse, CommandAck, CommandState, HealthReport, Heartbeat,
    HeartbeatBatch, Hello, NodeServiceClient, NodeStatus, RegisterNodeRequest,
};
use argosy_control::clock::Clock;
use argosy_server::profile::Profile;
use axum::body::{Body, Bytes};
use connectrpc::client::{ClientConfig, Http2Connection};
use connectrpc::{ConnectError, ErrorCode, Protocol};
use futures_util::stream;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;

/// Somebody at the other end of a stream.
struct Agent {
    said: mpsc::Sender<AttachRequest>,
    told: mpsc::Receiver<Result<AttachResponse, ConnectError>>,
    _task: tokio::task::JoinSet<()>,
}

impl Agent {
    async fn attach(serving: &Serving, who: &str, protocol: Protocol) -> Self {
        let uri: axum::http::Uri = format!("http://{}", serving.address).parse().unwrap();
        let transport = Http2Connection::connect_plaintext(uri.clone()).await.unwrap().shared(8);
        let token = format!("Bearer {who}-token-with-enough-characters");
        let config = ClientConfig::new(uri)
            .with_protocol(protocol)
            .with_default_header("authorization", token);
        let client = NodeServiceClient::new(transport, config);
        let (said, mut saying) = mpsc::channel(8);
        let (telling, told) = mpsc::channel(8);
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let (mut send, mut receive) = client.attach().await.unwrap().into_split();
            let sending = async {
                while let Some(said) = saying.recv().await {
                    if send.send(said).await.is_err() {
                        break;
                    }
                }
                send.close_send();
                std::future::pending::<()>().await;
            };
            let receiving = async {
                loop {
                    match receive.message::<AttachResponse>().await {
                        Ok(Some(told)) => _ = telling.send(Ok(told.to_owned_message())).await,
                        Ok(None) => return,
                        Err(error) => {
                            _ = telling.send(Err(error)).await;
                            return;
                        }
                    }
                }
            };
            tokio::select! {
                () = sending => {}
                () = receiving => {}
            }
        });
        Self { said, told, _task: task }
    }

    /// Attaches and says hello.
    async fn hello(serving: &Serving, who: &str, node: &str) -> Self {
        let agent = Self::attach(serving, who, Protocol::Grpc).await;
        agent.say(Hello { node_id: node.to_owned(), ..Hello::default() }).await;
        agent
    }

    async fn say(&self, said: impl Into<Said>) {
        self.said.send(AttachRequest { message: Some(said.into()) }).await.unwrap();
    }

    async fn told(&mut self) -> Told {
        self.told.recv().await.unwrap().unwrap().message.unwrap()
    }

    /// How the stream ended: `None` if by itself.
    async fn end(&mut self) -> Option<ErrorCode> {
        match self.told.recv().await {
            None => None,
            Some(Err(error)) => Some(error.code),
            Some(Ok(told)) => panic!("it did not end: {told:?}"),
        }
    }

    /// What was not taken, and why.
    async fn complaint(&mut self) -> (String, String) {
        let told = self.told().await;
        let Told::Error(error) = told else { panic!("{told:?}") };
        (error.code, error.message)
    }
}

async fn issue(serving: &Serving, node: &str, kind: &str) -> String {
    let test = if kind == "RUN_DIAGNOSTIC" { r#","test":"quick""# } else { "" };
    let body = format!(
        r#"{{"nodeId":"{node}","commandType":"NODE_COMMAND_TYPE_{kind}",
            "parameters":{{"reason":"a test"{test}}}}}"#
    );
    let issued = serving.json("operator", &format!("{NAVARCH}/IssueCommand"), &body).await;
    assert_eq!(issued.status, 200, "{issued:?}");
    issued.json()["commandId"].as_str().unwrap().to_owned()
}

fn ack(command: &str, state: CommandState) -> CommandAck {
    CommandAck { command_id: command.to_owned(), state: state.into(), ..CommandAck::default() }
}

#[tokio::test]
async fn a_node_is_welcome_beats_and_is_told_its_commands_at_once() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    for protocol in [Protocol::Connect, Protocol::Grpc] {
        let mut agent = Agent::attach(&serving, "gpu-1", protocol).await;
        agent.say(Hello { node_id: "gpu-1".to_owned(), ..Hello::default() }).await;
        let Told::Welcome(welcome) = agent.told().await else { panic!("not welcome") };
        let before = serving.world.control.nodes.board.live("gpu-1").heard_at;
        let interval = welcome.config.heartbeat_interval_seconds;
        assert_eq!((interval, welcome.config.health_check_interval_seconds), (10, 60));
        assert!(serving.world.control.nodes.board.live("gpu-1").attached);

        agent.say(Heartbeat::default()).await;
        let id = issue(&serving, "gpu-1", "RUN_DIAGNOSTIC").await;
        let Told::Command(command) = agent.told().await else { panic!("no command") };
        assert_eq!((&command.id, command.reason.as_str()), (&id, "a test"));
        assert_eq!(command.parameters["test"], "quick");

        let half =
            CommandAck { progress_percent: 50, ..ack(&id, CommandState::COMMAND_STATE_RUNNING) };
        let done = CommandAck {
            result_json: r#"{"passed":true}"#.to_owned(),
            ..ack(&id, CommandState::COMMAND_STATE_COMPLETED)
        };
        let late = ack(&id, CommandState::COMMAND_STATE_FAILED);
        for (said, known) in [
            (half, CommandState::COMMAND_STATE_RUNNING),
            (done, CommandState::COMMAND_STATE_COMPLETED),
            // The first end stays.
            (late, CommandState::COMMAND_STATE_COMPLETED),
        ] {
            agent.say(said).await;
            let Told::CommandAck(acked) = agent.told().await else { panic!("no answer") };
            assert_eq!((&acked.command_id, acked.state.as_known()), (&id, Some(known)));
        }
        assert!(before < serving.world.control.nodes.board.live("gpu-1").heard_at);
    }
}

#[tokio::test]
async fn a_stream_that_ends_no_longer_counts() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    let mut agent = Agent::hello(&serving, "gpu-1", "gpu-1").await;
    assert!(matches!(agent.told().await, Told::Welcome(_)));
    let board = &serving.world.control.nodes.board;
    assert!(board.live("gpu-1").attached);
    drop(agent);
    while board.live("gpu-1").attached {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_node_that_nobody_knows_registers_on_its_stream() {
    let serving = serve().await;
    let mut agent = Agent::hello(&serving, "gpu-1", "gpu-1").await;
    let hint = "node not found: gpu-1; register it first, with RegisterNode".to_owned();
    assert_eq!(agent.complaint().await, ("not_found".to_owned(), hint.clone()));
    agent.say(Heartbeat::default()).await;
    assert_eq!(agent.complaint().await, ("not_found".to_owned(), hint));
    agent.say(RegisterNodeRequest { provider: "gcp".to_owned(), ..Default::default() }).await;
    let Told::Registered(registered) = agent.told().await else { panic!("not registered") };
    assert_eq!(registered.status.as_known(), Some(NodeStatus::NODE_STATUS_ACTIVE));
    assert_eq!(registered.config.heartbeat_interval_seconds, 10);
    agent.say(Heartbeat::default()).await;
    let id = issue(&serving, "gpu-1", "RUN_DIAGNOSTIC").await;
    assert!(matches!(agent.told().await, Told::Command(command) if command.id == id));
}

#[tokio::test]
async fn a_command_is_told_again_on_the_next_stream_until_it_has_ended() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    let first = issue(&serving, "gpu-1", "RUN_DIAGNOSTIC").await;
    let second = issue(&serving, "gpu-1", "CORDON").await;
    for _ in 0..2 {
        let mut agent = Agent::hello(&serving, "gpu-1", "gpu-1").await;
        assert!(matches!(agent.told().await, Told::Welcome(_)));
        assert!(matches!(agent.told().await, Told::Command(command) if command.id == first));
    }
    let mut agent = Agent::hello(&serving, "gpu-1", "gpu-1").await;
    assert!(matches!(agent.told().await, Told::Welcome(_)));
    assert!(matches!(agent.told().await, Told::Command(command) if command.id == first));
    agent.say(ack(&first, CommandState::COMMAND_STATE_COMPLETED)).await;
    assert!(matches!(agent.told().await, Told::CommandAck(_)));
    // One at a time: the next one when this one has ended.
    assert!(matches!(agent.told().await, Told::Command(command) if command.id == second));
}

#[tokio::test]
async fn k1_a_stream_speaks_for_the_node_of_its_credential_only() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    serving.register("gpu-2").await;
    let before = serving.world.control.nodes.board.live("gpu-2");
    let mut agent = Agent::hello(&serving, "gpu-1", "gpu-2").await;
    assert_eq!(agent.end().await, Some(ErrorCode::PermissionDenied));
    let mut agent = Agent::hello(&serving, "gpu-1", "").await;
    assert_eq!(agent.end().await, Some(ErrorCode::InvalidArgument));
    let mut agent = Agent::hello(&serving, "viewer", "gpu-1").await;
    assert_eq!(agent.end().await, Some(ErrorCode::PermissionDenied));
    let mut agent = Agent::hello(&serving, "nobody", "gpu-1").await;
    assert_eq!(agent.end().await, Some(ErrorCode::Unauthenticated));

    // Even a credential for many speaks for one on the stream of one.
    let mut agent = Agent::hello(&serving, "fleet", "gpu-1").await;
    assert!(matches!(agent.told().await, Told::Welcome(_)));
    let other = "gpu-2".to_owned();
    agent.say(Heartbeat { node_id: other.clone(), ..Default::default() }).await;
    assert_eq!(agent.complaint().await.0, "permission_denied");
    agent.say(RegisterNodeRequest { node_id: other.clone(), ..Default::default() }).await;
    assert_eq!(agent.complaint().await.0, "permission_denied");
    agent.say(Hello { node_id: other, ..Default::default() }).await;
    assert_eq!(agent.end().await, Some(ErrorCode::FailedPrecondition));
    assert_eq!(serving.world.control.nodes.board.live("gpu-2"), before);
}

#[tokio::test]
async fn nothing_is_taken_before_hello() {
    let serving = serve().await;
    let mut agent = Agent::attach(&serving, "fleet", Protocol::Connect).await;
    agent.say(Heartbeat { node_id: "gpu-1".to_owned(), ..Default::default() }).await;
    assert_eq!(agent.end().await, Some(ErrorCode::FailedPrecondition));
}

#[tokio::test]
async fn a_relay_passes_on_the_heartbeats_of_many() {
    let serving = serve().await;
    serving.register("n1").await;
    serving.register("n2").await;
    let board = serving.world.control.nodes.board.clone();
    let before = [board.live("n1").heard_at, board.live("n2").heard_at];
    let mut agent = Agent::hello(&serving, "fleet", "").await;
    assert!(matches!(agent.told().await, Told::Welcome(_)));
    let beat = |node: &str| Heartbeat { node_id: node.to_owned(), ..Default::default() };
    agent.say(HeartbeatBatch { heartbeats: vec![beat("n1"), beat("n9"), beat("n2")] }).await;
    let Told::Error(error) = agent.told().await else { panic!("no complaint") };
    assert_eq!((error.code.as_str(), error.node_id.as_str()), ("not_found", "n9"));
    for (node, before) in ["n1", "n2"].iter().zip(before) {
        let live = board.live(node);
        assert!(before < live.heard_at && !live.attached, "{node}: {live:?}");
    }
    agent.say(beat("n1")).await;
    assert_eq!(agent.complaint().await.0, "failed_precondition");
    let crowd = (0..5000).map(|_| beat("n1")).collect();
    agent.say(HeartbeatBatch { heartbeats: crowd }).await;
    let sentence = "heartbeats has 5000 entries; at most 4096 are allowed".to_owned();
    assert_eq!(agent.complaint().await, ("invalid_argument".to_owned(), sentence));
}

#[tokio::test]
async fn reports_are_answered_by_their_number_and_replays_are_stale() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    let mut agent = Agent::hello(&serving, "gpu-1", "gpu-1").await;
    assert!(matches!(agent.told().await, Told::Welcome(_)));
    for (sequence, stale) in [(1, false), (2, false), (2, true), (1, true), (3, false)] {
        agent.say(HealthReport { sequence, ..Default::default() }).await;
        let Told::ReportAck(answer) = agent.told().await else { panic!("no answer") };
        assert_eq!((answer.sequence, answer.stale), (sequence, stale));
    }
    agent.say(HealthReport { sequence: 0, ..Default::default() }).await;
    assert_eq!(agent.complaint().await.0, "invalid_argument");
    // Whoever comes back is told where it was.
    let mut agent = Agent::hello(&serving, "gpu-1", "gpu-1").await;
    let Told::Welcome(welcome) = agent.told().await else { panic!("not welcome") };
    let status = welcome.status.as_known();
    assert_eq!((welcome.health_sequence, status), (3, Some(NodeStatus::NODE_STATUS_ACTIVE)));
}

#[tokio::test]
async fn a_server_that_stops_says_so_on_every_stream() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    let mut node = Agent::hello(&serving, "gpu-1", "gpu-1").await;
    assert!(matches!(node.told().await, Told::Welcome(_)));
    let mut relay = Agent::hello(&serving, "fleet", "").await;
    assert!(matches!(relay.told().await, Told::Welcome(_)));
    serving.world.stop.send(true).unwrap();
    assert_eq!(node.end().await, Some(ErrorCode::Unavailable));
    assert_eq!(relay.end().await, Some(ErrorCode::Unavailable));
}

/// A stream without a connection, so that time can be moved.
struct Wired {
    said: mpsc::Sender<Result<Bytes, std::io::Error>>,
    body: Body,
}

impl Wired {
    async fn attach(world: &World, who: &str, node: &str) -> Self {
        let (said, saying) = mpsc::channel(8);
        let saying = stream::unfold(saying, |mut saying| async {
            let next = saying.recv().await?;
            Some((next, saying))
        });
        let headers = [("content-type", "application/grpc")];
        let line = format!("POST {OURS}/Attach");
        let hello = framed(0, &field(1, field(1, node)));
        said.send(Ok(Bytes::from(hello))).await.unwrap();
        let response = world.open(who, &line, &headers, Body::from_stream(saying)).await;
        Self { said, body: response.into_body() }
    }

    async fn beat(&self) {
        self.said.send(Ok(Bytes::from(framed(0, &[0x12, 0])))).await.unwrap();
    }

    /// The first byte of the next message: which case it is.
    async fn told(&mut self) -> u8 {
        let frame = self.body.frame().await.unwrap().unwrap().into_data().unwrap();
        frames(&frame)[0].1[0] >> 3
    }

    async fn end(&mut self) -> String {
        let trailers = self.body.frame().await.unwrap().unwrap().into_trailers().unwrap();
        trailers["grpc-status"].to_str().unwrap().to_owned()
    }
}

/// A server whose clock moves with the test's, and a node in it.
async fn paused() -> World {
    let world = World::with_clock(Profile::Full, Clock::simulated(Timestamp::UNIX_EPOCH)).await;
    let headers = [("content-type", "application/json")];
    let line = format!("POST {NAVARCH}/RegisterNode");
    let body = json!({"nodeId": "gpu-1"}).to_string();
    assert_eq!(world.send("admin", &line, &headers, body).await.status, 200);
    world
}

#[tokio::test(start_paused = true)]
async fn a_stream_outlives_every_limit_on_calls() {
    let world = paused().await;
    let mut wired = Wired::attach(&world, "gpu-1", "gpu-1").await;
    assert_eq!(wired.told().await, 1);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    wired.beat().await;
    // An empty report, number 1: it is answered.
    wired.said.send(Ok(Bytes::from(framed(0, &field(4, [0x08, 1]))))).await.unwrap();
    assert_eq!(wired.told().await, 4);
    world.stop.send(true).unwrap();
    assert_eq!(wired.end().await, "14");
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_was_taken_back_ends_its_stream_within_a_minute() {
    let world = paused().await;
    let mut wired = Wired::attach(&world, "gpu-1", "gpu-1").await;
    assert_eq!(wired.told().await, 1);
    world.authenticator.replace_tokens(Vec::new()).unwrap();
    wired.beat().await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    wired.beat().await;
    assert_eq!(wired.end().await, "16");
}
