//! A server with a fleet of nothing: adapters are external, so nothing happens that no test asks for.

use argosy_control::clock::Clock;
use argosy_control::ids::Ids;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use argosy_control::task::Tasks;
use argosy_control::{Control, Outside, Settings};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::adapter::{AdapterGraph, AdapterName, AdapterSpec, Runner};
use argosy_core::health::{
    CheckResult, Event, EventType, HealthReport, HealthState, Metric, System,
};
use argosy_core::node::settings::{NodeSettings, Remedy};
use argosy_core::node::{Gpu, Machine, Place, Registration};
use argosy_core::resource::Kind;
use argosy_server::Server;
use argosy_server::auth::{Authenticator, TokenEntry, hash_token};
use argosy_server::metrics::Metrics;
use argosy_server::profile::Profile;
use argosy_store::Store;
use argosy_store::memory::Memory;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::get;
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use tower::ServiceExt;

/// Where clusters are.
pub(crate) const CLUSTERS: &str = "/api/hyperfleet/v1/clusters";

/// Where nodes are.
pub(crate) const NODES: &str = "/api/argosy/v1/nodes";

/// A server, and what keeps it alive.
pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) control: Control,
    pub(crate) authenticator: Authenticator,
    pub(crate) stop: watch::Sender<bool>,
    /// For what only loops write.
    pub(crate) store: Store,
    _tasks: Tasks,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Delivers nothing: no adapter here wants to be told.
struct Nobody;

#[async_trait::async_trait]
impl Notifier for Nobody {
    async fn send(&self, adapter: &str, _: &str, _: &CloudEvent) -> Result<(), SendError> {
        Err(SendError::Refused(format!("{adapter} is external")))
    }
}

/// The callers of the tests: their names are their tokens.
fn tokens() -> Vec<TokenEntry> {
    let token = |name: &str, role, tenant: &str, team: &str, adapter: Option<&str>| TokenEntry {
        name: name.to_owned(),
        sha256: hash_token(&format!("{name}-token-with-enough-characters")),
        role,
        teams: vec![team.to_owned()],
        tenant: tenant.to_owned(),
        adapter: adapter.map(str::to_owned),
        node: None,
        expires: None,
    };
    vec![
        token("viewer", Role::Viewer, "one", "alpha", None),
        token("operator", Role::Operator, "one", "alpha", None),
        token("rival", Role::Operator, "one", "beta", None),
        token("admin", Role::Admin, "one", "alpha", None),
        token("adapter", Role::Adapter, "one", "alpha", Some("validation")),
        token("stranger", Role::Admin, "two", "alpha", None),
        token("fleet", Role::Node, "one", "alpha", None),
        TokenEntry {
            node: Some("gpu-1".to_owned()),
            ..token("gpu-1", Role::Node, "one", "alpha", None)
        },
    ]
}

fn graph() -> AdapterGraph {
    let external = |name: &str| AdapterSpec {
        name: AdapterName::parse(name).unwrap(),
        depends_on: Vec::new(),
        required: true,
        deadline: SignedDuration::from_hours(1),
        runner: Runner::External,
    };
    let kinds = [
        (Kind::Cluster, vec![external("validation"), external("dns")]),
        (Kind::NodePool, vec![external("validation")]),
    ];
    AdapterGraph::new(BTreeMap::from(kinds)).unwrap()
}

/// Nothing is done about sick nodes but to say so.
fn hands_off() -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.defaults.remedy = Remedy::Observe;
    settings
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_profile(Profile::Full).await
    }

    pub(crate) async fn with_profile(profile: Profile) -> Self {
        Self::with_clock(profile, Clock::System).await
    }

    pub(crate) async fn with_clock(profile: Profile, clock: Clock) -> Self {
        let (store, driver) = Store::open(Arc::new(Memory::new())).await.unwrap();
        let mut tasks = Tasks::default();
        tasks.start("store", driver.run());
        let day = SignedDuration::from_hours(24);
        let settings = Settings {
            adapters: graph(),
            rules: Default::default(),
            window: Default::default(),
            catalog: Default::default(),
            authorization: Authorization::Team,
            conditions: BTreeMap::new(),
            nodes: hands_off(),
            machines: Default::default(),
            protect_new: false,
            tombstones_kept: day,
            idempotency_kept: day,
            audit_kept: day,
            history_kept: day,
        };
        let (clouds, schedulers) = (BTreeMap::new(), Vec::new());
        let (notifier, extensions) = (Arc::new(Nobody), Default::default());
        let outside = Outside { clouds, notifier, schedulers, extensions };
        let control = Control::start(
            store.clone(),
            settings,
            outside,
            clock,
            Ids::Random,
            "test",
            &mut tasks,
        );
        let (stop, shutdown) = watch::channel(false);
        let boom = Router::new().route("/boom", get(async || -> &'static str { panic!("hush") }));
        let authenticator = Authenticator::new(tokens(), Vec::new(), clock).await.unwrap();
        let server = Server {
            control: control.clone(),
            profile,
            authenticator: authenticator.clone(),
            metrics: Metrics::new("test", Timestamp::UNIX_EPOCH),
            dashboard: &[],
            demo: false,
            mounts: vec![("/mounted".to_owned(), boom)],
            shutdown,
            version: "1.2.3".to_owned(),
            build_time: "today".to_owned(),
        };
        let router = server.router();
        Self { router, control, authenticator, stop, store, _tasks: tasks }
    }

    /// Sends a request as somebody, or as nobody if the name is empty.
    pub(crate) async fn send(
        &self,
        who: &str,
        line: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let response = self.open(who, line, headers, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { status: parts.status, headers: parts.headers, text, body }
    }

    /// The same, without reading the body.
    pub(crate) async fn open(
        &self,
        who: &str,
        line: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> axum::http::Response<Body> {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        if !who.is_empty() {
            let token = format!("Bearer {who}-token-with-enough-characters");
            request = request.header("authorization", token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap()
    }

    /// Sends JSON as the administrator.
    pub(crate) async fn json(&self, line: &str, body: Value) -> Answer {
        self.send("admin", line, &[("content-type", "application/json")], body.to_string()).await
    }

    /// Reads as the administrator.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("admin", &format!("GET {path}"), &[], "").await
    }

    /// Creates a cluster of the team alpha; gives its id.
    pub(crate) async fn cluster(&self, name: &str) -> String {
        let body = serde_json::json!({
            "name": name,
            "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 3 },
            "labels": { "team": "alpha" },
        });
        let answer = self.json(&format!("POST {CLUSTERS}"), body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.body["id"].as_str().unwrap().to_owned()
    }

    /// Creates a node pool; gives its uid.
    pub(crate) async fn pool(&self, cluster: &str, name: &str) -> String {
        let body = serde_json::json!({
            "name": name,
            "spec": { "nodeCount": 5, "machineType": "n1-standard-4" },
        });
        let answer = self.json(&format!("POST {CLUSTERS}/{cluster}/nodepools"), body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.body["uid"].as_str().unwrap().to_owned()
    }

    /// Registers a node of the pool h100 with two GPUs.
    pub(crate) async fn node(&self, id: &str) {
        self.node_with(id, |_| ()).await;
    }

    /// The same, changed before it is sent.
    pub(crate) async fn node_with(&self, id: &str, change: impl FnOnce(&mut Registration)) {
        let gpu = |index: i32| Gpu {
            index,
            uuid: format!("GPU-{id}-{index}"),
            name: "NVIDIA H100".into(),
            ..Gpu::default()
        };
        let mut registration = Registration {
            node_id: id.to_owned(),
            place: Place {
                provider: "gcp".into(),
                region: "us-east1".into(),
                zone: "us-east1-b".into(),
                instance_type: "a3-highgpu-8g".into(),
            },
            machine: Machine { hostname: format!("host-{id}"), ..Machine::default() },
            gpus: vec![gpu(0), gpu(1)],
            labels: BTreeMap::from([("rack".to_owned(), "r7".to_owned())]),
            pool: Some("h100".to_owned()),
        };
        change(&mut registration);
        self.control.nodes.register(&admin(), registration).await.unwrap();
    }

    /// A health report of a node: the word of one check, and the Xids it saw on its first GPU.
    pub(crate) async fn report(&self, id: &str, check: HealthState, xids: &[i64]) {
        let result = CheckResult {
            name: "nvml".to_owned(),
            state: check,
            message: "said so".to_owned(),
            details: BTreeMap::new(),
        };
        let event = |code: &i64| Event {
            node_time: None,
            gpu_index: 0,
            gpu_uuid: format!("GPU-{id}-0"),
            gpu_serial: String::new(),
            system: System::Driver,
            event_type: EventType::Xid,
            metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(*code))]),
            message: String::new(),
            raw: format!("NVRM: Xid (PCI:0000:19:00): {code}, pid=1"),
            recovery_action: None,
            count: 1,
            boot_id: String::new(),
            condition: String::new(),
        };
        let events = xids.iter().map(event).collect();
        let report = HealthReport { results: vec![result], events, ..HealthReport::default() };
        self.control.nodes.report(&admin(), id, report).await.unwrap();
    }
}

/// The administrator, past the door.
pub(crate) fn admin() -> Caller {
    Caller {
        subject: "admin".to_owned(),
        via: "token",
        tenant: "one".to_owned(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id: "test".to_owned(),
    }
}
