//! What is asked of the node plane.

use crate::figures::Figures;
use crate::http::Connection;
use crate::now;
use crate::server::{Adapters, Home, Server, resident_bytes};
use crate::wire::{Stream, Unary, connect_h2, connect_request, envelope, grpc_call};
use crate::work::{each, per_second};
use anyhow::{Context, Result, bail, ensure};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::navarch::{
    GPUInfo, GPUMetrics, HealthCheckResult, HealthStatus, HeartbeatRequest, ListNodesRequest,
    ListNodesResponse, NodeMetadata, NodeMetrics, RegisterNodeRequest, ReportHealthRequest,
};
use argosy_api::rpc::node::{
    self, AttachRequest, CommandAck, CommandState, HealthEvent, HealthEventType, HealthReport,
    HealthSystem, Heartbeat,
};
use argosy_core::node::Node;
use argosy_store::embedded::Embedded;
use argosy_store::engine::{Engine as _, Key};
use argosy_store::entity::Entity as _;
use buffa::Message as _;
use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How large the fleets are, and how much is asked of each.
pub(crate) struct FleetSizes {
    /// How many nodes are registered, one measurement each.
    pub(crate) fleets: &'static [usize],
    /// Heartbeats over each wire, at each size.
    beats: usize,
    reports: usize,
    /// How many nodes hold a stream open.
    streams: usize,
    /// How many are listed.
    listed: usize,
}

impl FleetSizes {
    pub(crate) const FULL: Self = Self {
        fleets: &[1_000, 10_000, 100_000],
        beats: 200_000,
        reports: 50_000,
        streams: 10_000,
        listed: 20_000,
    };
    pub(crate) const QUICK: Self =
        Self { fleets: &[1_000], beats: 20_000, reports: 5_000, streams: 500, listed: 1_000 };
}

/// As many as Navarch's figures were taken with.
const CONNECTIONS: usize = 64;
const GPUS: i32 = 8;

/// The brakes are off: what is measured is how fast we could act, not how carefully we do.
const NO_BRAKES: &str = "
nodes:
  budget: { percent: 100, at_least: 1000000, every: 0s }
  breaker: { percent: 100, at_least: 1000000 }
  fleet:
    budget: { percent: 100, at_least: 1000000 }
    zone_budget: { percent: 100, at_least: 1000000 }
    breaker: { percent: 100, at_least: 1000000 }
    zone_breaker: { percent: 100, at_least: 1000000 }
limits: { connections: 19000 }
";

/// Registrations, heartbeats and reports, of ever larger fleets.
pub(crate) async fn beats(
    program: &Path,
    home: &Home,
    sizes: &FleetSizes,
    figures: &mut Figures,
) -> Result<()> {
    let server = Server::start_with(program, home, Adapters::External, NO_BRAKES).await?;
    let empty = server.resident_bytes()?;
    let mut registered = 0;
    for fleet in sizes.fleets {
        let (began, cpu, new) = (now(), server.cpu()?, fleet - registered);
        let requests: Vec<_> = (registered..*fleet).map(register).collect();
        let times = calls(&server, &requests, requests.len()).await?;
        figures.set(format!("register.{fleet}.rate"), per_second(new, began));
        figures.set(format!("register.{fleet}.cpu"), each(server.cpu()? - cpu, new));
        figures.times(&format!("register.{fleet}"), times);
        registered = *fleet;
        heartbeats(&server, *fleet, sizes, figures).await?;
        let bytes = (server.resident_bytes()? - empty) / registered as f64;
        figures.set(format!("memory.{fleet}.node"), bytes);
        if *fleet == 10_000 || sizes.fleets.len() == 1 {
            reports(&server, *fleet, sizes, figures).await?;
        }
    }
    drop(server);
    if let Some(data) = home.data() {
        let held = documents(&data, figures).await?;
        let all = figures.get(&format!("memory.{registered}.node"));
        figures.set("document.beyond", all - held);
    }
    Ok(())
}

/// How large a node's document is on disk, and in the memory of whoever holds many.
async fn documents(data: &Path, figures: &mut Figures) -> Result<f64> {
    let engine = Embedded::open(data)?;
    let after = Key::new(Node::KIND, "");
    let stored = engine.scan(Some(&after), 1).await?.pop().context("no node is stored")?;
    figures.set("document.stored", stored.body.len() as f64);
    let file = data.join("document.json");
    std::fs::write(&file, &*stored.body)?;
    // In a process of its own: this one has memory to spare that was used before.
    let output = Command::new(std::env::current_exe()?).arg("--hold").arg(file).output()?;
    let held: f64 = String::from_utf8(output.stdout)?.trim().parse().context("--hold failed")?;
    figures.set("document.held", held);
    Ok(held)
}

/// Holds many copies of a node's document, and says how many bytes each takes.
pub(crate) fn hold(document: &Path) -> Result<f64> {
    const HELD: usize = 20_000;
    #[derive(serde::Deserialize)]
    struct Written {
        value: Arc<Node>,
    }
    let text = std::fs::read_to_string(document)?;
    let before = resident_bytes(std::process::id())?;
    let nodes: Result<Vec<Written>, _> = (0..HELD).map(|_| serde_json::from_str(&text)).collect();
    let after = resident_bytes(std::process::id())?;
    let ids = nodes?.iter().map(|node| node.value.id.as_str().len()).sum::<usize>();
    ensure!(0 < ids, "the documents have no ids");
    Ok((after - before) / HELD as f64)
}

/// ListNodes, streams held open, a mass failure and a mass reconnect, on a fleet of their own.
pub(crate) async fn storms(
    program: &Path,
    home: &Home,
    sizes: &FleetSizes,
    figures: &mut Figures,
) -> Result<()> {
    let server = Server::start_with(program, home, Adapters::External, NO_BRAKES).await?;
    let requests: Vec<_> = (0..sizes.streams).map(register).collect();
    calls(&server, &requests, requests.len()).await?;

    let before = server.resident_bytes()?;
    let (streams, drivers) = attach_all(server.port, sizes.streams).await?;
    let held = server.resident_bytes()?;
    figures.set("streams.memory", held / 1e6);
    figures.set("streams.each", (held - before) / sizes.streams as f64 / 1e3);

    let sick = sizes.streams / 10;
    figures.times("cordon", mass_failure(streams, sick).await?);
    let cordoned = count(&server, "status%3D'CORDONED'").await?;
    ensure!(cordoned == sick as f64, "{cordoned} of {sick} sick nodes are cordoned");
    drop(drivers);
    drop(server);

    // Everybody comes back at once after a crash.
    let server = Server::start_with(program, home, Adapters::External, NO_BRAKES).await?;
    figures.set("reconnect.serving", server.ready_after.as_secs_f64() * 1e3);
    let began = now();
    let back = Cell::new(false);
    let storm = async {
        let held = attach_all(server.port, sizes.streams).await;
        back.set(true);
        held
    };
    let (held, asked) = tokio::join!(storm, people(server.port, &back));
    let held = held?;
    figures.set("reconnect.all", began.elapsed().as_secs_f64() * 1e3);
    figures.times("reconnect.human", asked?);
    drop(held);
    figures.set("reconnect.lost", count(&server, "liveness%3D'Unreachable'").await?);
    drop(server);
    Ok(())
}

/// ListNodes of many nodes.
pub(crate) async fn lists(
    program: &Path,
    home: &Home,
    sizes: &FleetSizes,
    figures: &mut Figures,
) -> Result<()> {
    let server = Server::start_with(program, home, Adapters::External, NO_BRAKES).await?;
    let requests: Vec<_> = (0..sizes.listed).map(register).collect();
    calls(&server, &requests, requests.len()).await?;
    let mut connection = Unary::open(server.port).await?;
    let request = connect_request("ListNodes", &ListNodesRequest::default().encode_to_vec());
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = now();
        let answer = connection.call(&request).await?;
        times.push(began.elapsed());
        let listed = ListNodesResponse::decode_from_slice(&answer)?.nodes.len();
        ensure!(listed == sizes.listed, "{listed} nodes were listed");
    }
    figures.times("list-nodes", times);
    Ok(())
}

fn name(number: usize) -> String {
    format!("gpu-{number:06}")
}

fn register(number: usize) -> Vec<u8> {
    let gpu = |index| GPUInfo {
        index,
        uuid: format!("GPU-{number:08x}-0000-0000-0000-{index:012x}"),
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        pci_bus_id: format!("0000:{:02x}:00.0", 0x10 + index),
        memory_total: 85_520_809_984,
        ..Default::default()
    };
    let metadata = NodeMetadata {
        hostname: name(number),
        labels: [("pool".to_owned(), format!("pool-{:02}", number % 50))].into_iter().collect(),
        ..Default::default()
    };
    let message = RegisterNodeRequest {
        node_id: name(number),
        provider: "gcp".to_owned(),
        region: "us-central1".to_owned(),
        zone: format!("us-central1-{}", if number.is_multiple_of(2) { "a" } else { "b" }),
        instance_type: "a3-highgpu-8g".to_owned(),
        gpus: (0..GPUS).map(gpu).collect(),
        metadata: Some(metadata).into(),
    };
    connect_request("RegisterNode", &message.encode_to_vec())
}

fn beat(number: usize) -> Vec<u8> {
    let gpu = |gpu_index| GPUMetrics {
        gpu_index,
        temperature: 61 + gpu_index,
        power_usage: 640,
        utilization_percent: 97.5,
        memory_used: 71_000_000_000,
    };
    let metrics = NodeMetrics {
        cpu_usage_percent: 31.5,
        memory_usage_percent: 44.25,
        gpu_metrics: (0..GPUS).map(gpu).collect(),
    };
    let metrics = Some(metrics).into();
    HeartbeatRequest { node_id: name(number), metrics, ..Default::default() }.encode_to_vec()
}

/// Sends requests over 64 kept connections, round and round until there were `count`.
async fn calls(server: &Server, requests: &[Vec<u8>], count: usize) -> Result<Vec<Duration>> {
    let next = Cell::new(0);
    let times = RefCell::new(Vec::with_capacity(count));
    let client = async || -> Result<()> {
        let mut connection = Unary::open(server.port).await?;
        loop {
            let turn = next.replace(next.get() + 1);
            let Some(request) = requests.get(turn % requests.len()).filter(|_| turn < count) else {
                return Ok(());
            };
            let began = now();
            connection.call(request).await?;
            times.borrow_mut().push(began.elapsed());
        }
    };
    try_join_all((0..CONNECTIONS).map(|_| client())).await?;
    Ok(times.into_inner())
}

async fn heartbeats(
    server: &Server,
    fleet: usize,
    sizes: &FleetSizes,
    figures: &mut Figures,
) -> Result<()> {
    let bodies: Vec<_> = (0..fleet).map(beat).collect();
    let note = |figures: &mut Figures, wire: &str, began: Instant, cpu: Duration| -> Result<()> {
        figures.set(format!("beat.{wire}.{fleet}.rate"), per_second(sizes.beats, began));
        figures.set(format!("beat.{wire}.{fleet}.cpu"), each(server.cpu()? - cpu, sizes.beats));
        Ok(())
    };
    let requests: Vec<_> =
        bodies.iter().map(|body| connect_request("SendHeartbeat", body)).collect();
    let (began, cpu) = (now(), server.cpu()?);
    let times = calls(server, &requests, sizes.beats).await?;
    note(figures, "connect", began, cpu)?;
    figures.times(&format!("beat.connect.{fleet}"), times);
    drop(requests);

    let framed: Vec<_> = bodies.iter().map(|body| envelope(body)).collect();
    let (began, cpu) = (now(), server.cpu()?);
    let times = grpc_beats(server, &framed, sizes.beats).await?;
    note(figures, "grpc", began, cpu)?;
    figures.times(&format!("beat.grpc.{fleet}"), times);

    let (began, cpu) = (now(), server.cpu()?);
    let times = stream_beats(server, sizes.beats).await?;
    note(figures, "attach", began, cpu)?;
    figures.times(&format!("beat.attach.{fleet}"), times);
    Ok(())
}

/// Over 8 connections with 8 calls in flight on each.
async fn grpc_beats(server: &Server, framed: &[Bytes], count: usize) -> Result<Vec<Duration>> {
    let drivers = RefCell::new(JoinSet::new());
    let next = Cell::new(0);
    let times = RefCell::new(Vec::with_capacity(count));
    let mut callers = Vec::new();
    for _ in 0..CONNECTIONS / 8 {
        let client = connect_h2(server.port, &drivers).await?;
        callers.extend(std::iter::repeat_n(client, 8));
    }
    let call = async |client| -> Result<()> {
        while next.get() < count {
            let turn = next.replace(next.get() + 1);
            let message = framed.get(turn % framed.len()).cloned().unwrap_or_default();
            let began = now();
            grpc_call(&client, "SendHeartbeat", message).await?;
            times.borrow_mut().push(began.elapsed());
        }
        Ok(())
    };
    try_join_all(callers.into_iter().map(call)).await?;
    Ok(times.into_inner())
}

/// A heartbeat on a stream: no id, the same measurements.
fn stream_beat() -> Bytes {
    let gpu = |index: u16| node::GpuMetrics {
        index: index.into(),
        temperature_celsius: 61,
        power_watts: 640,
        utilization_percent: 97.5,
        memory_used_bytes: 71_000_000_000,
        ..node::GpuMetrics::default()
    };
    let metrics = node::NodeMetrics {
        cpu_usage_percent: 31.5,
        memory_usage_percent: 44.25,
        gpus: (0..8).map(gpu).collect(),
        unmeasured: 0,
    };
    let beat = Heartbeat { metrics: Some(metrics).into(), ..Default::default() };
    said(beat)
}

fn said(what: impl Into<Said>) -> Bytes {
    let message = AttachRequest { message: Some(what.into()) };
    envelope(&message.encode_to_vec())
}

/// How many heartbeats follow each other before the node asks whether they have arrived.
const BURST: usize = 50;

/// Over 64 streams on as many connections. The times are those until a health report after each burst
/// was answered: everything before it has been taken in by then.
async fn stream_beats(server: &Server, count: usize) -> Result<Vec<Duration>> {
    let (streams, _drivers) = attach_all(server.port, CONNECTIONS).await?;
    let sent = Cell::new(0);
    let times = RefCell::new(Vec::new());
    let beat = stream_beat();
    let talk = async |mut stream: Stream| -> Result<()> {
        while sent.get() < count {
            sent.set(sent.get() + BURST);
            let began = now();
            for _ in 0..BURST {
                stream.say(beat.clone()).await?;
            }
            // Always the first: all but one are answered as stale, and cost what a report without news does.
            stream.say(said(HealthReport { sequence: 1, ..Default::default() })).await?;
            loop {
                let told = stream.told().await?;
                if let Told::Error(error) = &told {
                    bail!("{}: {}", error.code, error.message);
                }
                if let Told::ReportAck(_) = told {
                    break;
                }
            }
            times.borrow_mut().push(began.elapsed());
        }
        Ok(())
    };
    try_join_all(streams.into_iter().map(talk)).await?;
    Ok(times.into_inner())
}

/// Health reports that say that all is well.
async fn reports(
    server: &Server,
    fleet: usize,
    sizes: &FleetSizes,
    figures: &mut Figures,
) -> Result<()> {
    let result = |check: &str| HealthCheckResult {
        check_name: check.to_owned(),
        status: HealthStatus::HEALTH_STATUS_HEALTHY.into(),
        message: "8 GPUs answer".to_owned(),
        ..Default::default()
    };
    let report = |number| {
        let results = ["boot", "gpu", "health_events"].map(result).to_vec();
        let report = ReportHealthRequest { node_id: name(number), results, ..Default::default() };
        connect_request("ReportHealth", &report.encode_to_vec())
    };
    let requests: Vec<_> = (0..fleet).map(report).collect();
    // The first report of a node is news, and written down.
    let began = now();
    calls(server, &requests, fleet).await?;
    figures.set("report.first.rate", per_second(fleet, began));
    let (began, cpu) = (now(), server.cpu()?);
    let times = calls(server, &requests, sizes.reports).await?;
    figures.set("report.rate", per_second(sizes.reports, began));
    figures.set("report.cpu", each(server.cpu()? - cpu, sizes.reports));
    figures.times("report", times);
    Ok(())
}

/// Streams, and what drives their connections.
type Held = (Vec<Stream>, JoinSet<()>);

/// Opens a stream for each node, each on a connection of its own, 256 at a time.
async fn attach_all(port: u16, count: usize) -> Result<Held> {
    let drivers = RefCell::new(JoinSet::new());
    let attach = async |number: usize| -> Result<Stream> {
        let client = connect_h2(port, &drivers).await?;
        Stream::attach(&client, &name(number)).await
    };
    let streams = stream::iter(0..count).map(attach).buffer_unordered(256).try_collect().await?;
    Ok((streams, drivers.into_inner()))
}

/// Reports a GPU that fell off the bus on many nodes at once, and waits until each was told to take no
/// more work.
async fn mass_failure(streams: Vec<Stream>, sick: usize) -> Result<Vec<Duration>> {
    let fell_off = HealthEvent {
        gpu_index: Some(3),
        system: HealthSystem::HEALTH_SYSTEM_DRIVER.into(),
        r#type: HealthEventType::HEALTH_EVENT_TYPE_XID.into(),
        metrics: [("xid_code".to_owned(), "79".to_owned())].into_iter().collect(),
        raw: "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.".to_owned(),
        ..Default::default()
    };
    let report = HealthReport { sequence: 1, events: vec![fell_off], ..Default::default() };
    let report = said(report);
    let began = now();
    let fail = async |mut stream: Stream| -> Result<Duration> {
        stream.say(report.clone()).await?;
        loop {
            if let Told::Command(command) = stream.told().await? {
                let took = began.elapsed();
                let ack = CommandAck {
                    command_id: command.id.clone(),
                    state: CommandState::COMMAND_STATE_COMPLETED.into(),
                    ..Default::default()
                };
                stream.say(said(ack)).await?;
                return Ok(took);
            }
        }
    };
    let (sick, _well): (Vec<_>, Vec<_>) =
        streams.into_iter().enumerate().partition(|(number, _)| *number < sick);
    try_join_all(sick.into_iter().map(|(_, stream)| fail(stream))).await
}

/// What people ask while a storm lasts.
async fn people(port: u16, done: &Cell<bool>) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(port).await?;
    let mut times = Vec::new();
    while !done.get() {
        let began = now();
        connection.ask("GET", "/clusters?size=20", "", 200).await?;
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(times)
}

/// How many nodes a search finds.
async fn count(server: &Server, search: &str) -> Result<f64> {
    let mut connection = Connection::open(server.port).await?;
    let path = format!("/api/argosy/v1/nodes?size=1&search={search}");
    let (code, body) = connection.operation(&path).await?;
    ensure!(code == 200, "{code}: {}", String::from_utf8_lossy(&body));
    let list: serde_json::Value = serde_json::from_slice(&body)?;
    list.get("total").and_then(serde_json::Value::as_f64).context("no total")
}
