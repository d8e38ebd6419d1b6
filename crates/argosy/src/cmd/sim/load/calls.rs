//! Nodes by calls: what Navarch's node daemon sends, when it sends it.
//!
//! Each node has a connection of its own and three loops that know nothing of each other: heartbeats,
//! health reports and asking for commands. As with the daemon, none has a first turn at once, a heartbeat
//! is tried three times and then dropped, and a node that was forgotten by the server does not register
//! again. Unlike the daemon it goes on trying to register, and every call has a deadline.

use super::tally::{Tally, Turn};
use super::{Encoding, Plan};
use argosy_agent::gpu::fake::{Fake, SpecError};
use argosy_agent::link;
use argosy_agent::swarm::Spec;
use argosy_api::rpc::navarch::{
    ControlPlaneServiceClient, GPUInfo, GPUMetrics, GetNodeCommandsRequest, HealthCheckResult,
    HealthEvent, HealthEventType, HealthStatus, HealthWatchSystem, HeartbeatRequest, NodeConfig,
    NodeMetadata, NodeMetrics, RegisterNodeRequest, ReportHealthRequest,
};
use argosy_control::clock::Clock;
use connectrpc::client::{ClientConfig, HttpClient};
use connectrpc::{CodecFormat, ConnectError, ErrorCode};
use http::Uri;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

/// How long a call may take. The daemon waits for ever; we want to know.
const CALL_MAX: Duration = Duration::from_secs(10);
/// How long making a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The waits between tries to register: the first, and the longest.
const REGISTER_WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(16));
/// The waits between the three tries of a heartbeat.
const BEAT_WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];
/// How often the daemon asks for commands, whatever it is told.
const POLL_EVERY: Duration = Duration::from_secs(10);
/// The intervals of a server that says none.
const BEAT_EVERY: Duration = Duration::from_secs(30);
/// See `BEAT_EVERY`.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How many faults of a node wait for its next report; what comes after them is dropped.
const FAULTS_MAX: usize = 16;

/// The nodes. Dropping them ends them all without a word, as the daemon ends.
pub(super) struct Calls {
    tasks: JoinSet<()>,
    config: ClientConfig,
    tls: Option<Arc<rustls::ClientConfig>>,
    tally: Tally,
    interval: Option<Duration>,
    report_interval: Option<Duration>,
    faults: HashMap<String, mpsc::Sender<(u32, u32)>>,
}

impl Calls {
    pub(super) fn new(
        plan: &Plan,
        server: &str,
        token: Option<String>,
        tally: &Tally,
    ) -> Result<Self, String> {
        let uri = server.parse::<Uri>().ok().filter(|uri| uri.authority().is_some());
        let uri = uri.ok_or_else(|| format!("`{server}` is no address of a server"))?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(link::tls(None)?),
            Some(_) | None => None,
        };
        let mut config = ClientConfig::new(uri).with_default_timeout(CALL_MAX);
        if plan.encoding == Encoding::Json {
            config = config.with_codec_format(CodecFormat::Json);
        }
        if let Some(token) = token {
            config = config.with_default_header("authorization", format!("Bearer {token}"));
        }
        Ok(Self {
            tasks: JoinSet::new(),
            config,
            tls,
            tally: tally.clone(),
            interval: plan.interval,
            report_interval: plan.report_interval,
            faults: HashMap::new(),
        })
    }

    pub(super) fn boot(&mut self, spec: Spec) -> Result<(), SpecError> {
        let gpus = Fake::parse(&format!("{}x{}", spec.gpus, spec.model), &spec.node_id)?;
        let builder = HttpClient::builder().establishment_timeout(CONNECT_MAX);
        let transport = match &self.tls {
            Some(tls) => builder.with_tls(tls.clone()),
            None => builder.plaintext(),
        };
        let (sender, faults) = mpsc::channel(FAULTS_MAX);
        self.faults.insert(spec.node_id.clone(), sender);
        let node = Node {
            client: ControlPlaneServiceClient::new(transport, self.config.clone()),
            tally: self.tally.clone(),
            gpus,
            spec,
            faults: Mutex::new(faults),
            interval: self.interval,
            report_interval: self.report_interval,
            lost: AtomicBool::new(true),
            found_once: AtomicBool::new(false),
        };
        self.tasks.spawn(node.live());
        Ok(())
    }

    pub(super) fn inject(&self, node: &str, gpu: u32, xid: u32) {
        let taken = self.faults.get(node).is_some_and(|faults| faults.try_send((gpu, xid)).is_ok());
        match taken {
            true => self.tally.counts().faults += 1,
            false => self.tally.error("injection", "a node reports more slowly than it fails"),
        }
    }
}

/// One node.
struct Node {
    client: ControlPlaneServiceClient<HttpClient>,
    tally: Tally,
    spec: Spec,
    gpus: Fake,
    faults: Mutex<mpsc::Receiver<(u32, u32)>>,
    interval: Option<Duration>,
    report_interval: Option<Duration>,
    /// The last call did not get through.
    lost: AtomicBool,
    found_once: AtomicBool,
}

impl Node {
    async fn live(self) {
        let config = self.register().await;
        let seconds = |told: i32, default: Duration| match u64::try_from(told) {
            Ok(0) | Err(_) => default,
            Ok(seconds) => Duration::from_secs(seconds),
        };
        let told = seconds(config.heartbeat_interval_seconds, BEAT_EVERY);
        let beat = self.interval.unwrap_or(told);
        let told = seconds(config.health_check_interval_seconds, REPORT_EVERY);
        let report = self.report_interval.unwrap_or(told);
        tokio::join!(
            self.repeat(beat, Turn::Heartbeat),
            self.repeat(report, Turn::Report),
            self.repeat(POLL_EVERY, Turn::Poll),
        );
    }

    /// Does something again and again, for the first time after one interval.
    async fn repeat(&self, interval: Duration, turn: Turn) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            match turn {
                Turn::Heartbeat => self.beat().await,
                Turn::Report => self.report().await,
                Turn::Poll => self.poll().await,
                // Said once.
                Turn::Hello | Turn::Registration => return,
            }
        }
    }

    async fn register(&self) -> NodeConfig {
        let mut wait = REGISTER_WAITS.0;
        loop {
            let request = self.registration();
            let answer = self.timed(Turn::Registration, self.client.register_node(request)).await;
            if let Some(answer) = answer {
                self.tally.counts().registered += 1;
                return answer.into_owned().config.into_option().unwrap_or_default();
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(REGISTER_WAITS.1);
        }
    }

    async fn beat(&self) {
        for wait in BEAT_WAITS.iter().map(Some).chain([None]) {
            let request = HeartbeatRequest {
                node_id: self.spec.node_id.clone(),
                metrics: Some(self.metrics()).into(),
                ..HeartbeatRequest::default()
            };
            self.tally.counts().heartbeats += 1;
            let answer = self.timed(Turn::Heartbeat, self.client.send_heartbeat(request)).await;
            let (None, Some(wait)) = (answer, wait) else { return };
            tokio::time::sleep(*wait).await;
        }
    }

    async fn report(&self) {
        let mut events = Vec::new();
        let mut faults = self.faults.lock().await;
        while let Ok((gpu, xid)) = faults.try_recv() {
            events.push(self.event(gpu, xid));
        }
        let collected = format!("collected {} health events", events.len());
        let count = self.spec.gpus;
        let result = |check: &str, message: String| HealthCheckResult {
            check_name: check.to_owned(),
            status: HealthStatus::HEALTH_STATUS_HEALTHY.into(),
            message,
            ..HealthCheckResult::default()
        };
        let request = ReportHealthRequest {
            node_id: self.spec.node_id.clone(),
            results: vec![
                result("boot", format!("detected {count} GPUs")),
                result("gpu", format!("all {count} GPUs answer")),
                result("health_events", collected),
            ],
            events,
        };
        self.timed(Turn::Report, self.client.report_health(request)).await;
    }

    async fn poll(&self) {
        let request = GetNodeCommandsRequest { node_id: self.spec.node_id.clone() };
        let answer = self.timed(Turn::Poll, self.client.get_node_commands(request)).await;
        if let Some(answer) = answer {
            // There is nothing to say about them: the daemon only writes them to its own log.
            self.tally.counts().commands += answer.into_owned().commands.len() as u64;
        }
    }

    /// Makes a call, and counts what comes of it.
    async fn timed<T>(
        &self,
        turn: Turn,
        call: impl Future<Output = Result<T, ConnectError>>,
    ) -> Option<T> {
        let since = self.tally.now();
        self.tally.counts().sent += 1;
        let answer = call.await;
        match &answer {
            Ok(_) => {
                self.tally.time(turn, since);
                self.tally.counts().received += 1;
            }
            Err(error) => {
                let code = error.code.as_str();
                let sentence = error.message.as_deref().unwrap_or_default();
                self.tally.error(code, &format!("{}: {sentence}", turn.name()));
            }
        }
        self.found(answer.as_ref().err());
        answer.ok()
    }

    /// Whether the server is there, by what came of a call: an error it answers with is an answer.
    fn found(&self, error: Option<&ConnectError>) {
        let on_the_way = [ErrorCode::Unavailable, ErrorCode::DeadlineExceeded, ErrorCode::Canceled];
        let lost = error.is_some_and(|error| on_the_way.contains(&error.code));
        let was_lost = self.lost.swap(lost, Ordering::Relaxed);
        let mut counts = self.tally.counts();
        match (was_lost, lost) {
            (true, false) => {
                counts.connected += 1;
                let again = self.found_once.swap(true, Ordering::Relaxed);
                counts.reconnects += u64::from(again);
            }
            (false, true) => counts.connected = counts.connected.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
    }

    fn registration(&self) -> RegisterNodeRequest {
        let Spec { node_id, provider, region, zone, machine_type, labels, pool, .. } =
            self.spec.clone();
        let inventory = self.gpus.inventory().unwrap_or_default();
        let gpus = inventory.gpus.into_iter().map(|gpu| GPUInfo {
            index: i32::try_from(gpu.index).unwrap_or_default(),
            uuid: gpu.uuid,
            name: gpu.name,
            pci_bus_id: gpu.pci_bus_id,
            memory_total: i64::try_from(gpu.memory_total_bytes.unwrap_or_default()).unwrap_or(0),
            ..GPUInfo::default()
        });
        let pool = (!pool.is_empty()).then(|| ("pool".to_owned(), pool));
        let metadata = NodeMetadata {
            hostname: node_id.clone(),
            labels: labels.into_iter().chain(pool).collect(),
            ..NodeMetadata::default()
        };
        RegisterNodeRequest {
            node_id,
            provider,
            region,
            zone,
            instance_type: machine_type,
            gpus: gpus.collect(),
            metadata: Some(metadata).into(),
        }
    }

    fn metrics(&self) -> NodeMetrics {
        let sweep = self.gpus.sweep(Clock::System.now()).unwrap_or_default();
        let gpus = sweep.gpus.into_iter().map(|gpu| GPUMetrics {
            gpu_index: i32::try_from(gpu.index).unwrap_or_default(),
            temperature: i32::try_from(gpu.temperature_celsius.unwrap_or_default()).unwrap_or(0),
            power_usage: gpu.power_watts.unwrap_or_default() as i32,
            utilization_percent: f64::from(gpu.utilization_percent.unwrap_or_default()),
            memory_used: i64::try_from(gpu.memory_used_bytes.unwrap_or_default()).unwrap_or(0),
        });
        NodeMetrics {
            cpu_usage_percent: 27.5,
            memory_usage_percent: 44.0,
            gpu_metrics: gpus.collect(),
        }
    }

    fn event(&self, gpu: u32, xid: u32) -> HealthEvent {
        let inventory = self.gpus.inventory().unwrap_or_default();
        let known = inventory.gpus.into_iter().find(|known| known.index == gpu);
        HealthEvent {
            gpu_index: i32::try_from(gpu).unwrap_or_default(),
            gpu_uuid: known.map(|known| known.uuid).unwrap_or_default(),
            system: HealthWatchSystem::HEALTH_WATCH_SYSTEM_DRIVER.into(),
            event_type: HealthEventType::HEALTH_EVENT_TYPE_XID.into(),
            metrics: [("xid_code".to_owned(), xid.to_string())].into_iter().collect(),
            message: format!("XID {xid}"),
            ..HealthEvent::default()
        }
    }
}
