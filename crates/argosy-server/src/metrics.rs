//! What is measured, and the three paths operators ask: `/healthz`, `/readyz`, `/metrics`.
//!
//! Every label value is from a closed set: nothing a client sends can make a new time series.

use argosy_control::Control;
use argosy_control::census::Census;
use argosy_control::stats::{MachineAlarm, Stats};
use argosy_core::health::Severity;
use argosy_core::node::NodeStatus;
use axum::Router;
use axum::extract;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// The content type of what `Metrics::render` gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How many route patterns are told apart; more than we have.
///
/// The caller promises patterns; should it ever give paths, this keeps memory and scrapes bounded.
const ROUTES_MAX: usize = 200;

/// Where the buckets of request durations end, in seconds: those that clients of this name know.
const DURATIONS_S: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The same for calls of nodes, which touch memory only.
const CALL_DURATIONS_S: [f64; 10] =
    [0.000_05, 0.000_1, 0.000_25, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0];

/// The numbers of this process. Clones count together.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Request, Histogram, fn() -> Histogram>,
    routes: RwLock<HashSet<Arc<str>>>,
    calls: Family<Call, Counter>,
    call_durations: Family<Procedure, Histogram, fn() -> Histogram>,
    attached: Gauge,
    watchers: Gauge,
    connections: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    path: Arc<str>,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    procedure: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Procedure {
    procedure: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resources {
    kind: &'static str,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Nodes {
    pool: Arc<str>,
    status: &'static str,
    health: &'static str,
    liveness: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Provider {
    provider: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Found {
    severity: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Guard {
    guard: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Alarm {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Brake {
    scope: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Place {
    scope: &'static str,
}

/// One more of something, until it is dropped.
pub struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Numbers of a process of this version that started then.
    pub fn new(version: &str, started: Timestamp) -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        registry.register("hyperfleet_api_requests", "Requests answered", requests.clone());
        let durations: Family<Request, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(DURATIONS_S));
        registry.register(
            "hyperfleet_api_request_duration_seconds",
            "Time from the head of a request to the head of its answer",
            durations.clone(),
        );
        let build =
            Info::new(vec![("component", "argosy".to_owned()), ("version", version.to_owned())]);
        registry.register("hyperfleet_api_build", "What is running", build);
        let calls = Family::default();
        registry.register(
            "argosy_rpc_calls",
            "Calls answered, by the status of REST",
            calls.clone(),
        );
        let call_durations: Family<Procedure, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(CALL_DURATIONS_S));
        registry.register(
            "argosy_rpc_call_duration_seconds",
            "Time from the head of a call to the head of its answer",
            call_durations.clone(),
        );
        let attached = Gauge::default();
        registry.register("argosy_attached", "Streams of nodes that are open", attached.clone());
        let watchers = Gauge::default();
        registry.register("argosy_watchers", "Watches that are open", watchers.clone());
        let connections = Gauge::default();
        registry.register("argosy_connections", "Connections that are open", connections.clone());
        let start: Gauge = Gauge::default();
        start.set(started.as_second());
        registry.register("process_start_time_seconds", "When the process started", start);
        let routes = RwLock::default();
        Self(Arc::new(Inner {
            registry,
            requests,
            durations,
            routes,
            calls,
            call_durations,
            attached,
            watchers,
            connections,
        }))
    }

    /// Counts one request. `route` is the pattern (`/clusters/{id}`), never the path.
    pub fn observe(&self, method: &Method, route: &str, status: u16, seconds: f64) {
        let labels = Request { method: known(method), path: self.route(route), code: status };
        self.0.requests.get_or_create(&labels).inc();
        self.0.durations.get_or_create(&labels).observe(seconds);
    }

    /// Counts one call. `procedure` is from the service's description, never from the path.
    pub(crate) fn call(&self, procedure: &'static str, code: u16, took: Duration) {
        self.0.calls.get_or_create(&Call { procedure, code }).inc();
        let durations = self.0.call_durations.get_or_create(&Procedure { procedure });
        durations.observe(took.as_secs_f64());
    }

    /// Counts one stream of a node for as long as the answer is kept.
    pub(crate) fn attached(&self) -> Held {
        Held::new(&self.0.attached)
    }

    /// Counts one watch for as long as the answer is kept.
    pub fn watcher(&self) -> Held {
        Held::new(&self.0.watchers)
    }

    /// Counts one connection for as long as the answer is kept.
    pub fn connection(&self) -> Held {
        Held::new(&self.0.connections)
    }

    /// Everything, as OpenMetrics text.
    pub fn render(&self, control: &Control) -> String {
        self.text(&control.census(), &control.stats)
    }

    fn text(&self, census: &Census, stats: &Stats) -> String {
        let mut text = String::new();
        let written = text::encode_registry(&mut text, &self.0.registry)
            .and_then(|()| text::encode_registry(&mut text, &now(census, stats)))
            .and_then(|()| text::encode_eof(&mut text));
        written.expect("writing to a string cannot fail");
        text
    }

    fn route(&self, pattern: &str) -> Arc<str> {
        let known = self.0.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = known.get(pattern) {
            return Arc::clone(route);
        }
        drop(known);
        let mut known = self.0.routes.write().unwrap_or_else(PoisonError::into_inner);
        if ROUTES_MAX <= known.len() {
            return Arc::from("other");
        }
        let route = Arc::from(pattern);
        known.insert(Arc::clone(&route));
        route
    }
}

/// Clients may invent methods.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// What is read when somebody looks.
fn now(census: &Census, stats: &Stats) -> Registry {
    let mut registry = Registry::default();
    let resources: Family<Resources, Gauge> = Family::default();
    for ((kind, phase), count) in &census.resources {
        let labels = Resources { kind: kind.as_str(), phase: phase.as_str() };
        set(&resources, &labels, *count);
    }
    registry.register("argosy_resources", "Resources, by kind and phase", resources);
    fleet(&mut registry, census);
    for (name, help, number) in [
        ("argosy_commits", "Commits that were accepted", &stats.commits),
        ("argosy_commit_conflicts", "Commits that had to be decided again", &stats.conflicts),
        ("argosy_reports_stored", "Reports of adapters that were news", &stats.reports_stored),
        ("argosy_reports_discarded", "Reports of adapters that were not", &stats.reports_discarded),
        ("argosy_adapter_runs", "Runs of built-in adapters", &stats.adapter_runs),
        (
            "argosy_adapter_failures",
            "Runs of built-in adapters that failed",
            &stats.adapter_failures,
        ),
        ("argosy_events_sent", "Events that were delivered", &stats.events_sent),
        ("argosy_events_failed", "Deliveries of events that failed", &stats.events_failed),
        ("argosy_events_rejected", "Events that were given up", &stats.events_rejected),
        (
            "argosy_invariants_kept",
            "Changes of ours that were stopped because they would have broken a rule",
            &stats.invariants_kept,
        ),
        ("argosy_remedies", "Actions about nodes that nobody asked for", &stats.remedies),
        ("argosy_node_registrations", "Nodes that were let in", &stats.registrations),
        (
            "argosy_node_registrations_refused",
            "Nodes that were not let in",
            &stats.registrations_refused,
        ),
        ("argosy_node_heartbeats", "Heartbeats of nodes", &stats.heartbeats),
        (
            "argosy_node_samples_shed",
            "Measurements that were not kept: too soon, or too much at once",
            &stats.samples_shed,
        ),
        (
            "argosy_node_readings_refused",
            "Readings that cannot be true and were not kept",
            &stats.readings_refused,
        ),
        ("argosy_health_reports", "Health reports that were taken in", &stats.health_reports),
        ("argosy_health_reports_old", "Health reports that came late", &stats.health_reports_old),
        ("argosy_health_events", "Health events that were judged", &stats.health_events),
        (
            "argosy_health_events_dropped",
            "Health events of nodes that sent too many",
            &stats.health_events_dropped,
        ),
        (
            "argosy_node_impersonations",
            "Credentials of one node that were used for another",
            &stats.impersonations,
        ),
        (
            "argosy_commands_over_budget",
            "Requests that took more nodes out of service than a disruption budget allows, as they asked",
            &stats.over_budget,
        ),
        (
            "argosy_navarch_commands_over_budget",
            "The same over Navarch's wire, which cannot ask for it",
            &stats.over_budget_unasked,
        ),
        ("argosy_notes_lost", "Things to write down that found the queue full", &stats.notes_lost),
        ("argosy_machines_ordered", "Machines that were ordered", &stats.machines_ordered),
        (
            "argosy_machine_failures",
            "Purchases that came to nothing, or may have",
            &stats.machine_failures,
        ),
        ("argosy_machines_stale", "Machines that never registered", &stats.machines_stale),
    ] {
        let counter: Counter = Counter::default();
        counter.inc_by(number.get());
        registry.register(name, help, counter);
    }
    let alarms: Family<Alarm, Counter> = Family::default();
    for alarm in MachineAlarm::ALL {
        let labels = Alarm { kind: alarm.as_str() };
        alarms.get_or_create(&labels).inc_by(stats.machine_alarms.of(alarm));
    }
    registry.register("argosy_machine_alarms", "What people are told about machines", alarms);
    let clock: Gauge<f64, AtomicU64> = Gauge::default();
    clock.set(stats.clock_off.get().as_secs_f64());
    registry.register_with_unit(
        "argosy_clock_off",
        "How far the clock of this process is ahead of that of the store",
        Unit::Seconds,
        clock,
    );
    if let Some(bytes) = resident_bytes() {
        let memory: Gauge = Gauge::default();
        memory.set(bytes);
        registry.register("process_resident_memory_bytes", "Memory in use", memory);
    }
    registry
}

/// What there is of nodes, and of what is done about them.
fn fleet(registry: &mut Registry, census: &Census) {
    let nodes: Family<Nodes, Gauge> = Family::default();
    // As Navarch's dashboards know them: every word is there.
    let by_status: Family<Status, Gauge> = Family::default();
    let word = |status: NodeStatus| Status { status: status.as_str().to_ascii_lowercase() };
    for status in NodeStatus::ALL {
        set(&by_status, &word(status), 0);
    }
    for (group, count) in &census.nodes {
        let labels = Nodes {
            pool: group.pool.clone(),
            status: group.status.as_str(),
            health: group.health.as_str(),
            liveness: group.liveness.as_str(),
        };
        set(&nodes, &labels, *count);
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        by_status.get_or_create(&word(group.status)).inc_by(count);
    }
    registry.register("argosy_nodes", "Nodes, by pool, status, health and liveness", nodes);
    registry.register("navarch_nodes_total", "Nodes, by status", by_status);
    let gpus: Family<Provider, Gauge> = Family::default();
    for (provider, count) in &census.gpus {
        set(&gpus, &Provider { provider: provider.clone() }, *count);
    }
    registry.register("navarch_gpus_total", "GPUs, by provider", gpus);

    let findings: Family<Found, Gauge> = Family::default();
    for severity in [None, Some(Severity::Degraded), Some(Severity::Unhealthy)] {
        let labels = Found {
            severity: match severity {
                None => "unknown",
                Some(Severity::Healthy) => "healthy",
                Some(Severity::Degraded) => "degraded",
                Some(Severity::Unhealthy) => "unhealthy",
            },
        };
        set(&findings, &labels, census.findings.get(&severity).copied().unwrap_or(0));
    }
    registry.register("argosy_findings", "What is wrong with nodes now", findings);
    let held: Family<Guard, Gauge> = Family::default();
    for (guard, count) in &census.held {
        set(&held, &Guard { guard: guard.clone() }, *count);
    }
    registry.register("argosy_actions_held", "Automatic actions due and not taken", held);
    let commands: Family<State, Gauge> = Family::default();
    for state in ["pending", "acknowledged"] {
        set(&commands, &State { state }, census.open_commands.get(state).copied().unwrap_or(0));
    }
    registry.register("argosy_commands", "Commands that have not ended, by state", commands);
    let (breakers, pauses): (Family<Brake, Gauge>, Family<Place, Gauge>) = Default::default();
    for scope in ["fleet", "zone", "pool"] {
        for (state, half_open) in [("open", false), ("half_open", true)] {
            let count = census.breakers.get(&(scope, half_open)).copied().unwrap_or(0);
            set(&breakers, &Brake { scope, state }, count);
        }
    }
    for scope in ["fleet", "pool"] {
        set(&pauses, &Place { scope }, census.pauses.get(scope).copied().unwrap_or(0));
    }
    registry.register("argosy_breakers", "Breakers that are not closed", breakers);
    registry.register("argosy_pauses", "Stops of automatic action by people", pauses);
    let recovering = Gauge::<i64>::default();
    recovering.set(i64::try_from(census.recovering).unwrap_or(i64::MAX));
    let help =
        "Node pools that wait for a confirmation after the store was restored or lost history";
    registry.register("argosy_recovery_pools", help, recovering);
}

fn set<L>(family: &Family<L, Gauge>, labels: &L, count: usize)
where
    L: Clone + std::hash::Hash + Eq,
{
    family.get_or_create(labels).set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// How much memory the process has, where the kernel says so.
///
/// From `status`, not `statm`, whose unit is a page of unknown size.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// `/healthz`, `/readyz` and `/metrics`: for probes and scrapers, without authentication.
pub fn operations_router(
    control: Control,
    metrics: Metrics,
    shutdown: watch::Receiver<bool>,
) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .with_state(Operations { control, metrics, shutdown })
}

#[derive(Clone)]
struct Operations {
    control: Control,
    metrics: Metrics,
    shutdown: watch::Receiver<bool>,
}

/// Whether the process should be left running: a supervisor starts it again if not, which helps
/// against a loop that hangs and not against a store that is away.
///
/// Nor does it help against a clock that is off, so that is said and is no failure: the process answers requests, and
/// another one leads.
async fn healthz(extract::State(it): extract::State<Operations>) -> Response {
    if let (Ok(()), Some(off)) = (it.control.alive(), it.control.clock_off()) {
        let off_s = off.as_secs_f64();
        let direction = if off.is_negative() { "behind" } else { "ahead of" };
        let reason = format!(
            "the clock of this process is {:.1} s {direction} that of the store, and at most 1 s is allowed: \
             it leads nothing until the clock is right; check the machine's time server",
            off_s.abs()
        );
        let body = json!({"status": "ok", "leads": false, "clock_off_s": off_s, "reason": reason});
        return Json(body).into_response();
    }
    probe("late", it.control.alive())
}

/// Whether requests should be sent here.
async fn readyz(extract::State(it): extract::State<Operations>) -> Response {
    let shutting_down = *it.shutdown.borrow();
    if shutting_down {
        return probe("shutting_down", Err("the server is stopping".to_owned()));
    }
    probe("not_ready", it.control.alive().and_then(|()| it.control.ready()))
}

fn probe(otherwise: &str, answer: Result<(), String>) -> Response {
    match answer {
        Ok(()) => Json(json!({"status": "ok"})).into_response(),
        Err(reason) => {
            let body = Json(json!({"status": otherwise, "reason": reason}));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

async fn scrape(extract::State(it): extract::State<Operations>) -> Response {
    // Every node is counted: not where it would keep one waiting.
    match tokio::task::spawn_blocking(move || it.metrics.render(&it.control)).await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests;
