//! The library: what an embedded agent says and does.

use crate::custom_diagnostic::Files;
use crate::harness::{Between, Dir, Mode, TOKEN, World, await_until};
use argosy_agent::Builder;
use argosy_agent::agent::Exit;
use argosy_agent::check::CheckOutcome;
use argosy_agent::command::duty::{self, DutyState};
use argosy_agent::command::{Failure, Handler, Order, Outcome as CommandOutcome, Progress};
use argosy_agent::driver::{Found, GpuDesk, Round, Watcher};
use argosy_agent::gpu::{Gpu, GpuError, GpuIdentity, Inventory, Process, Reading, Sweep};
use argosy_agent::link::Token;
use argosy_agent::signal::{Signal, SignalKind};
use argosy_core::command::{CommandKind, Outcome};
use argosy_core::node::NodeStatus;
use async_trait::async_trait;
use jiff::Timestamp;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Two GPUs of a test, and what runs on the first.
#[derive(Clone, Default)]
struct Pair {
    processes: Arc<Mutex<Vec<Process>>>,
    hung: Arc<Mutex<bool>>,
}

#[async_trait]
impl Gpu for Pair {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        let gpu = |index| GpuIdentity {
            index,
            uuid: format!("GPU-{index}"),
            name: "NVIDIA H100".to_owned(),
            ..GpuIdentity::default()
        };
        Ok(Inventory { gpus: vec![gpu(0), gpu(1)], ..Inventory::default() })
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        if *self.hung.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        let gpu = |index| Reading {
            index,
            uuid: format!("GPU-{index}"),
            processes: Some(Vec::new()),
            ..Reading::default()
        };
        let mut first = gpu(0);
        first.processes = Some(self.processes.lock().unwrap().clone());
        Ok(Sweep { count: 2, gpus: vec![first, gpu(1)], ..Sweep::default() })
    }
}

/// Says that all is well with as many GPUs as it sees.
struct Counts;

#[async_trait]
impl Watcher for Counts {
    async fn check(&mut self, _: &[String], seen: Round<'_>) -> Found {
        let count = seen.sweep.as_ref().map(|sweep| sweep.count).unwrap_or_default();
        let outcomes = vec![CheckOutcome::healthy("nvml", format!("{count} GPUs"))];
        Found { outcomes, ..Found::default() }
    }
}

/// Counts the GPUs that the agent has.
struct AsksGpus(GpuDesk);

#[async_trait]
impl Handler for AsksGpus {
    async fn handle(&self, _: &Order, _: &Progress) -> Result<CommandOutcome, Failure> {
        let sweep = self.0.sweep().await.map_err(|error| Failure(error.to_string()))?;
        Ok(CommandOutcome::new(format!("{} GPUs", sweep.count)))
    }
}

/// An agent that runs beside the test.
struct Running {
    pair: Pair,
    signals: mpsc::Sender<Vec<Signal>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinSet<Exit>,
}

impl Running {
    fn start(world: &World, dir: &Dir) -> Self {
        Self::start_at(&[&world.url], dir)
    }

    fn start_at(servers: &[&str], dir: &Dir) -> Self {
        let pair = Pair::default();
        let (signals, seen) = mpsc::channel(8);
        let files = Files { paths: vec!["/dev/null".into(), "/none/such".into()] };
        let agent = Builder::new("gpu-1");
        let agent = servers.iter().fold(agent, |agent, server| agent.server(*server));
        let agent = agent
            .token(Token::Value(TOKEN.to_owned()))
            .data_dir(dir.path())
            .label("rack", "r7")
            .gpu(Box::new(pair.clone()))
            .watcher(Box::new(Counts))
            .signals(seen)
            .diagnostics(Box::new(|desk| Arc::new(AsksGpus(desk))))
            .diagnostic("quick", Arc::new(files));
        let (stop, stopped) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(async move { agent.run(async { _ = stopped.await }).await.unwrap() });
        Self { pair, signals, stop: Some(stop), task }
    }

    async fn stop(mut self) -> Exit {
        _ = self.stop.take().map(|stop| stop.send(()));
        self.task.join_next().await.unwrap().unwrap()
    }
}

fn xid(code: u32) -> Signal {
    let line = format!("NVRM: Xid (PCI:0000:18:00): {code}, pid=1, name=train");
    let mut signal = Signal::once(SignalKind::Xid, Timestamp::UNIX_EPOCH, "a fault");
    signal.raw = line;
    signal.with("xid_code", code)
}

#[tokio::test]
async fn an_agent_registers_beats_and_reports() {
    let (world, dir) = (World::new().await, Dir::new());
    let agent = Running::start(&world, &dir);
    let node = world.node_until("checks", |node| node.checks.contains_key("nvml")).await;
    assert_eq!((node.gpus.len(), node.labels.get("rack").is_some()), (2, true));
    assert!(node.checks.contains_key("agent"), "{:?}", node.checks);
    assert!(world.control.nodes.board.live("gpu-1").attached);
    // A line of the kernel, at once.
    agent.signals.send(vec![xid(79)]).await.unwrap();
    world.node_until("the finding", |node| !node.findings.is_empty()).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn what_happened_while_nobody_listened_is_told_afterwards() {
    let (mut world, dir) = (World::new().await, Dir::new());
    let agent = Running::start(&world, &dir);
    world.node_until("checks", |node| node.checks.contains_key("nvml")).await;
    world.vanish();
    agent.signals.send(vec![xid(79)]).await.unwrap();
    let spool = dir.path().join("spool");
    let kept = || std::fs::metadata(&spool).is_ok_and(|file| 0 < file.len()).then_some(());
    await_until("the spool", kept).await;
    // The agent of before is gone; the next one finds it on disk.
    agent.stop().await;
    world.listen().await;
    let agent = Running::start(&world, &dir);
    world.node_until("the finding", |node| !node.findings.is_empty()).await;
    let emptied = || std::fs::metadata(&spool).is_ok_and(|file| file.len() == 0).then_some(());
    await_until("an empty spool", emptied).await;
    agent.stop().await;
}

#[tokio::test]
async fn a_node_is_cordoned_drained_and_taken_back() {
    let (world, dir) = (World::new().await, Dir::new());
    let agent = Running::start(&world, &dir);
    world.node_until("registration", |_| true).await;
    let state = || duty::read(dir.path()).map(|duty| duty.state);

    let id = world.issue(CommandKind::Cordon, &[]).await;
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
    assert_eq!(state(), Some(DutyState::Cordoned));

    let train = Process { pid: 4_000_000, name: "train".to_owned(), memory_bytes: None };
    agent.pair.processes.lock().unwrap().push(train);
    let id = world.issue(CommandKind::Drain, &[("timeout", "600")]).await;
    await_until("draining", || (state() == Some(DutyState::Draining)).then_some(())).await;
    agent.pair.processes.lock().unwrap().clear();
    assert_eq!(world.ended(id).await.0, Outcome::Drained);
    assert_eq!(state(), Some(DutyState::Cordoned));

    let train = Process { pid: 4_000_000, name: "train".to_owned(), memory_bytes: None };
    agent.pair.processes.lock().unwrap().push(train);
    let drain = world.issue(CommandKind::Drain, &[("timeout", "600")]).await;
    await_until("draining", || (state() == Some(DutyState::Draining)).then_some(())).await;
    let id = world.issue(CommandKind::Uncordon, &[]).await;
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
    assert_eq!(world.ended(drain).await.0, Outcome::Cancelled);
    assert_eq!(state(), Some(DutyState::Active));
    agent.stop().await;
}

#[tokio::test]
async fn a_diagnostic_of_an_embedder_is_run_and_others_ask_the_agents_gpus() {
    let (world, dir) = (World::new().await, Dir::new());
    let agent = Running::start(&world, &dir);
    world.node_until("registration", |_| true).await;
    let id = world.issue(CommandKind::RunDiagnostic, &[("test", "quick")]).await;
    let (outcome, message, result) = world.ended(id).await;
    assert_eq!((outcome, message.as_str()), (Outcome::Completed, "files are missing"));
    assert_eq!(result, serde_json::json!({"passed": false, "missing": ["/none/such"]}));
    let id = world.issue(CommandKind::RunDiagnostic, &[("test", "memory")]).await;
    let (outcome, message, _) = world.ended(id).await;
    assert_eq!((outcome, message.as_str()), (Outcome::Completed, "2 GPUs"));
    agent.stop().await;
}

#[tokio::test]
async fn n1_a_probe_that_hangs_does_not_stop_heartbeats() {
    let (world, dir) = (World::new().await, Dir::new());
    let agent = Running::start(&world, &dir);
    *agent.pair.hung.lock().unwrap() = true;
    world.node_until("registration", |_| true).await;
    // Commands, which come on the same loop, are still done.
    let id = world.issue(CommandKind::Cordon, &[]).await;
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
    assert!(world.control.nodes.board.live("gpu-1").attached);
    agent.stop().await;
}

#[tokio::test]
async fn a_terminated_agent_says_so_and_ends() {
    let (world, dir) = (World::new().await, Dir::new());
    let mut agent = Running::start(&world, &dir);
    world.node_until("registration", |_| true).await;
    let id = world.issue(CommandKind::Terminate, &[]).await;
    assert_eq!(agent.task.join_next().await.unwrap().unwrap(), Exit::Terminated);
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
    assert_eq!(world.node().unwrap().status(), NodeStatus::Terminated);
}

#[tokio::test]
async fn where_the_path_does_no_streams_everything_goes_by_calls() {
    let (world, dir) = (World::new().await, Dir::new());
    let between = Between::new(&world, Mode::Old).await;
    let agent = Running::start_at(&[&between.url], &dir);
    let node = world.node_until("checks", |node| node.checks.contains_key("nvml")).await;
    assert_eq!(node.gpus.len(), 2);
    assert!(!world.control.nodes.board.live("gpu-1").attached);
    agent.signals.send(vec![xid(79)]).await.unwrap();
    world.node_until("the finding", |node| !node.findings.is_empty()).await;
    let id = world.issue(CommandKind::Cordon, &[]).await;
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
    agent.stop().await;
}

#[tokio::test]
async fn a_server_that_answers_rubbish_is_tried_again_until_it_does_not() {
    let (world, dir) = (World::new().await, Dir::new());
    let between = Between::new(&world, Mode::Rubbish).await;
    let agent = Running::start_at(&[&between.url], &dir);
    agent.signals.send(vec![xid(79)]).await.unwrap();
    let kept =
        || std::fs::metadata(dir.path().join("spool")).is_ok_and(|f| 0 < f.len()).then_some(());
    await_until("the spool", kept).await;
    assert!(world.node().is_none());
    *between.mode.lock().unwrap() = Mode::Open;
    world.node_until("the finding", |node| !node.findings.is_empty()).await;
    agent.stop().await;
}

#[tokio::test]
async fn of_several_addresses_the_good_one_is_found_and_kept() {
    let (world, dir) = (World::new().await, Dir::new());
    let dead = "http://127.0.0.1:1";
    let agent = Running::start_at(&[dead, &world.url], &dir);
    world.node_until("registration", |_| true).await;
    let good = || std::fs::read_to_string(dir.path().join("server")).ok();
    let good = await_until("the good address", good).await;
    assert_eq!(good.trim_end_matches('/'), world.url);
    agent.stop().await;
}
