//! A stand-in for Compute Engine, Cloud DNS and Google's sign-in, after their public API descriptions.
//!
//! Faithful where a client can go wrong: inserts begin operations, request ids are remembered, pages are
//! small, lists lag, empty zones carry a warning, errors have the bodies that Google gives them.

mod dns;
mod instance;
mod network;
mod token;

use super::{Credential, Credentials, Endpoints, Pace, Settings};
use crate::standin::{Lies, Reply, Server};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The project that exists.
pub const PROJECT: &str = "fleet-project";

/// How many requests an operation takes.
const OPERATION_REQUESTS: u64 = 3;

/// What is on a page, whatever the client would like.
const PAGE_LEN: usize = 2;

/// The longest request that is read. Bytes.
const REQUEST_LEN_MAX: usize = 4 * 1024 * 1024;

/// The zones that exist.
pub(super) const ZONES: [&str; 6] =
    ["us-central1-a", "us-central1-b", "us-central1-c", "us-east1-b", "us-east1-c", "us-east1-d"];

/// The machine types that exist, with CPUs, GPUs and the zones that have them (all, if none are named).
pub(super) const TYPES: [(&str, u32, u32, &[&str]); 5] = [
    ("a2-highgpu-1g", 12, 1, &[]),
    ("a2-highgpu-8g", 96, 8, &["us-central1-a", "us-central1-c"]),
    ("a3-highgpu-8g", 208, 8, &["us-central1-a"]),
    ("g2-standard-4", 4, 1, &[]),
    ("n1-standard-4", 4, 0, &[]),
];

/// The stand-in. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeGcp {
    server: Server,
    world: Arc<World>,
}

#[derive(Debug)]
struct World {
    url: String,
    inner: Mutex<Inner>,
}

/// Everything there is.
#[derive(Debug, Default)]
struct Inner {
    /// What it was told has passed.
    now: Duration,
    requests: u64,
    lies: Lies,
    next_id: u64,
    tokens: BTreeSet<String>,
    /// How long a token is good, as its answer says. Seconds.
    token_s: u32,
    tokens_given: u64,
    vms: BTreeMap<Place, Vm>,
    operations: BTreeMap<String, Operation>,
    request_ids: BTreeMap<String, String>,
    /// Networks, subnetworks and firewalls by their path below the project.
    things: BTreeMap<String, Value>,
    dns_zones: BTreeMap<String, String>,
    /// By zone, name and type.
    records: BTreeMap<(String, String, String), Value>,
    /// By region and metric, where it is not plenty.
    quotas: BTreeMap<(String, String), f64>,
    seen_metadata: Vec<String>,
}

/// Zone and name.
type Place = (String, String);

#[derive(Debug)]
struct Vm {
    body: Value,
    status: &'static str,
    born: Duration,
}

#[derive(Debug)]
struct Operation {
    /// `zones/z`, `regions/r` or `global`.
    scope: String,
    kind: &'static str,
    target: String,
    /// Done with this request.
    ends_at: u64,
    ended: bool,
    error: Option<Value>,
    then: Then,
}

/// What happens when an operation is done.
#[derive(Clone, Debug)]
enum Then {
    Nothing,
    Run(Place),
    Remove(Place),
    Forget(String),
}

impl FakeGcp {
    /// Starts one, with a project and nothing in it.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn start() -> io::Result<Self> {
        let mut made = None;
        let server = Server::start(|url| {
            let inner = Inner { token_s: 3599, ..Inner::default() };
            let world = Arc::new(World { url: url.to_owned(), inner: Mutex::new(inner) });
            made = Some(world.clone());
            Router::new().fallback(answer).with_state(world)
        })
        .await?;
        let world = made.ok_or_else(|| io::Error::other("the server made no world"))?;
        Ok(Self { server, world })
    }

    /// Settings that lead here.
    pub fn settings(&self) -> Settings {
        let url = &self.server.url;
        let endpoints = Endpoints {
            compute: format!("{url}/compute/v1"),
            dns: format!("{url}/dns/v1"),
            metadata: url.clone(),
        };
        let pace = Pace {
            call_max: Duration::from_secs(2),
            calls_per_s: 1000.0,
            poll: Duration::from_millis(1),
            create_max: Duration::from_secs(3),
            delete_max: Duration::ZERO,
            part_max: Duration::from_secs(3),
        };
        let key = Credentials::Key(Credential::new(&self.key()));
        Settings { endpoints, pace, ..Settings::new(PROJECT, key) }
    }

    /// The key of the service account that may do everything.
    pub fn key(&self) -> String {
        token::key(&self.server.url)
    }

    /// Changes how it lies.
    pub fn lie(&self, change: impl FnOnce(&mut Lies)) {
        change(&mut self.world.lock().lies);
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        let mut inner = self.world.lock();
        inner.now += time;
        if Duration::from_secs(1) <= time {
            inner.requests += OPERATION_REQUESTS;
            inner.settle();
        }
    }

    /// The machines that exist, by their paths.
    pub fn machines(&self) -> Vec<String> {
        let inner = self.world.lock();
        let path =
            |(zone, name): &Place| format!("projects/{PROJECT}/zones/{zone}/instances/{name}");
        inner.vms.keys().map(path).collect()
    }

    /// A machine that somebody makes by hand.
    pub fn make_by_hand(&self, zone: &str, name: &str) {
        let body = json!({ "name": name, "machineType": "n1-standard-4" });
        let mut inner = self.world.lock();
        let born = inner.now;
        inner.vms.insert((zone.to_owned(), name.to_owned()), Vm { body, status: "RUNNING", born });
    }

    /// Announces maintenance of a machine.
    pub fn announce(&self, path: &str, at: &str) {
        let mut inner = self.world.lock();
        let found = inner.vms.iter_mut().find(|((_, name), _)| path.ends_with(name.as_str()));
        if let Some((_, vm)) = found
            && let Some(members) = vm.body.as_object_mut()
        {
            let notice = json!({ "upcomingMaintenance": {
                "type": "SCHEDULED", "windowStartTime": at, "maintenanceStatus": "PENDING",
            }});
            members.insert("resourceStatus".to_owned(), notice);
        }
    }

    /// Stops a machine as if it had been preempted.
    pub fn preempt(&self, path: &str) {
        let mut inner = self.world.lock();
        let found = inner.vms.iter_mut().find(|((_, name), _)| path.ends_with(name.as_str()));
        if let Some((_, vm)) = found {
            vm.status = "STOPPING";
        }
    }

    /// Sets a quota of a region.
    pub fn set_quota(&self, region: &str, metric: &str, limit: f64) {
        let key = (region.to_owned(), metric.to_owned());
        self.world.lock().quotas.insert(key, limit);
    }

    /// Makes a managed zone.
    pub fn make_dns_zone(&self, name: &str, domain: &str) {
        self.world.lock().dns_zones.insert(name.to_owned(), format!("{domain}."));
    }

    /// The records of all zones: `name type data`.
    pub fn records(&self) -> Vec<String> {
        let inner = self.world.lock();
        let line = |((_, name, kind), record): (&(String, String, String), &Value)| {
            format!("{name} {kind} {}", record.get("rrdatas").unwrap_or(&Value::Null))
        };
        inner.records.iter().map(line).collect()
    }

    /// Puts a record in a zone as somebody else would.
    pub fn put_record(&self, zone: &str, name: &str, kind: &str, data: &str) {
        let record = json!({ "name": name, "type": kind, "ttl": 300, "rrdatas": [data] });
        let key = (zone.to_owned(), name.to_owned(), kind.to_owned());
        self.world.lock().records.insert(key, record);
    }

    /// Networks, subnetworks and firewalls, by their paths.
    pub fn things(&self) -> Vec<String> {
        self.world.lock().things.keys().cloned().collect()
    }

    /// How many tokens it has given out.
    pub fn tokens_given(&self) -> u64 {
        self.world.lock().tokens_given
    }

    /// How long the next tokens are good.
    pub fn set_token_s(&self, seconds: u32) {
        self.world.lock().token_s = seconds;
    }

    /// Withdraws all tokens, but not the right to new ones.
    pub fn withdraw_tokens(&self) {
        self.world.lock().tokens.clear();
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.world.lock().requests
    }

    /// What machines were told to do at boot.
    pub fn boot_scripts(&self) -> Vec<String> {
        self.world.lock().seen_metadata.clone()
    }
}

impl World {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request, taken apart.
struct Asked {
    method: Method,
    /// Below `/compute/v1/projects/<project>` or `/dns/v1/projects/<project>`.
    path: Vec<String>,
    query: BTreeMap<String, String>,
    body: Value,
}

impl Asked {
    fn query(&self, key: &str) -> &str {
        self.query.get(key).map_or("", String::as_str)
    }
}

async fn answer(State(world): State<Arc<World>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_LEN_MAX).await.unwrap_or_default();
    let header = |name: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (authorization, flavor) = (header("authorization"), header("metadata-flavor"));
    let url = reqwest::Url::parse(&format!("http://fake{}", parts.uri));
    let (path, query) = match &url {
        Ok(url) => {
            let path = url.path().split('/').skip(1).map(decoded).collect();
            let query = url.query_pairs().map(|(key, value)| (key.into(), value.into()));
            (path, query.collect())
        }
        Err(_) => (Vec::new(), BTreeMap::new()),
    };
    let path: Vec<String> = path;
    let short: Vec<&str> = path.iter().map(String::as_str).collect();
    let reply = {
        let mut inner = world.lock();
        inner.requests += 1;
        inner.settle();
        match short.as_slice() {
            ["token"] => inner.give_token(&world.url, &body),
            ["computeMetadata", "v1", "instance", "service-accounts", "default", "token"] => {
                inner.give_metadata_token(&flavor)
            }
            ["compute" | "dns", "v1", "projects", project, rest @ ..] => {
                let asked = Asked {
                    method: parts.method,
                    path: rest.iter().map(ToString::to_string).collect(),
                    query,
                    body: serde_json::from_slice(&body).unwrap_or(Value::Null),
                };
                let is_dns = short.first() == Some(&"dns");
                inner.serve(is_dns, project, &authorization, &asked)
            }
            _ => error(StatusCode::NOT_FOUND, "notFound", "Not Found"),
        }
    };
    reply.send().await
}

impl Inner {
    fn serve(&mut self, is_dns: bool, project: &str, authorization: &str, asked: &Asked) -> Reply {
        if let Some(body) = &self.lies.body {
            return Reply::Raw(body.clone());
        }
        if 0 < self.lies.throttle {
            self.lies.throttle -= 1;
            return too_many();
        }
        let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
        if self.lies.revoked || !self.tokens.contains(token) {
            return unauthenticated();
        }
        if project != PROJECT {
            let message = format!("The resource 'projects/{project}' was not found");
            return error(StatusCode::NOT_FOUND, "notFound", &message);
        }
        if is_dns { self.serve_dns(asked) } else { self.serve_compute(asked) }
    }

    fn serve_compute(&mut self, asked: &Asked) -> Reply {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        let get = asked.method == Method::GET;
        match path.as_slice() {
            ["aggregated", "instances"] if get => self.list_instances(asked),
            ["aggregated", "machineTypes"] if get => self.list_types(asked),
            ["regions"] if get => list_regions(asked),
            ["regions", region] if get => self.show_region(region),
            ["zones", zone, ..] if !ZONES.contains(zone) => error(
                StatusCode::BAD_REQUEST,
                "invalid",
                &format!("Invalid value for field 'zone': '{zone}'. Unknown zone."),
            ),
            ["zones", zone, "instances"] if asked.method == Method::POST => {
                self.insert_instance(zone, asked)
            }
            ["zones", zone, "instances", name] if get => self.show_instance(zone, name),
            ["zones", zone, "instances", name] if asked.method == Method::DELETE => {
                self.delete_instance(zone, name, asked)
            }
            ["zones", zone, "instances", name, "reset"] if asked.method == Method::POST => {
                self.reset_instance(zone, name)
            }
            ["zones", zone, "instances", name, "serialPort"] if get => {
                self.show_serial_port(zone, name)
            }
            ["zones", zone, "operations"] if get => self.list_operations(zone, asked),
            ["zones" | "regions", _, "operations", name] | ["global", "operations", name]
                if get =>
            {
                self.show_operation(name)
            }
            ["global", "networks" | "firewalls", ..] | ["regions", _, "subnetworks", ..] => {
                self.serve_network(asked)
            }
            _ => error(StatusCode::NOT_FOUND, "notFound", "Not Found"),
        }
    }

    /// Ends what is due.
    fn settle(&mut self) {
        if self.lies.stuck {
            return;
        }
        let mut due = Vec::new();
        for operation in self.operations.values_mut() {
            if !operation.ended && operation.ends_at <= self.requests {
                operation.ended = true;
                due.push(operation.then.clone());
            }
        }
        for then in due {
            match then {
                Then::Nothing => {}
                Then::Run(place) => {
                    if let Some(vm) = self.vms.get_mut(&place).filter(|vm| vm.status != "STOPPING")
                    {
                        vm.status = "RUNNING";
                    }
                }
                Then::Remove(place) => {
                    self.vms.remove(&place);
                }
                Then::Forget(path) => {
                    self.things.remove(&path);
                }
            }
        }
    }

    /// Begins an operation, and answers with it.
    fn begin(
        &mut self,
        scope: &str,
        kind: &'static str,
        target: &str,
        error: Option<Value>,
        then: Then,
    ) -> (String, Reply) {
        self.next_id += 1;
        let name = format!("operation-{:06}", self.next_id);
        let ends_at = self.requests + OPERATION_REQUESTS;
        let operation = Operation {
            scope: scope.to_owned(),
            kind,
            target: target.to_owned(),
            ends_at,
            ended: false,
            error,
            then,
        };
        self.operations.insert(name.clone(), operation);
        let reply = self.show_operation(&name);
        (name, reply)
    }

    fn show_operation(&self, name: &str) -> Reply {
        match self.operations.get(name) {
            Some(operation) => Reply::Json(StatusCode::OK, operation.shown(name)),
            None => {
                let message = format!("The resource 'operations/{name}' was not found");
                error(StatusCode::NOT_FOUND, "notFound", &message)
            }
        }
    }
}

impl Operation {
    fn shown(&self, name: &str) -> Value {
        let mut shown = json!({
            "kind": "compute#operation",
            "name": name,
            "operationType": self.kind,
            "targetLink": link(&format!("{}/{}", self.scope, self.target)),
            "status": if self.ended { "DONE" } else { "RUNNING" },
            "progress": if self.ended { 100 } else { 0 },
        });
        let Some(members) = shown.as_object_mut() else { return shown };
        if let Some((kind, place)) = self.scope.split_once('/') {
            let key = if kind == "zones" { "zone" } else { "region" };
            members.insert(key.to_owned(), json!(link(&format!("{kind}/{place}"))));
        }
        if let Some(error) = self.error.clone().filter(|_| self.ended) {
            members.insert("error".to_owned(), json!({ "errors": [error] }));
            members.insert("httpErrorStatusCode".to_owned(), json!(503));
        }
        shown
    }
}

fn link(path: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/{path}")
}

/// An error as Google writes it.
fn error(status: StatusCode, reason: &str, message: &str) -> Reply {
    Reply::Json(status, error_body(status, reason, message))
}

fn error_body(status: StatusCode, reason: &str, message: &str) -> Value {
    json!({ "error": {
        "code": status.as_u16(),
        "message": message,
        "errors": [{ "message": message, "domain": "global", "reason": reason }],
    }})
}

fn too_many() -> Reply {
    let message = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute'";
    let status = StatusCode::FORBIDDEN;
    Reply::Throttled(status, error_body(status, "rateLimitExceeded", message))
}

fn unauthenticated() -> Reply {
    let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, \
                   login cookie or other valid authentication credential.";
    error(StatusCode::UNAUTHORIZED, "authError", message)
}

fn list_regions(asked: &Asked) -> Reply {
    let mut regions: Vec<&str> =
        ZONES.iter().filter_map(|zone| zone.rsplit_once('-')).map(|(region, _)| region).collect();
    regions.dedup();
    let items: Vec<Value> = regions.iter().map(|name| json!({ "name": name })).collect();
    let (items, next) = page(&items, asked);
    let mut body = json!({ "kind": "compute#regionList", "items": items });
    add_token(&mut body, next);
    Reply::Json(StatusCode::OK, body)
}

/// The items of one page, and the token of the next.
fn page<T: Clone>(items: &[T], asked: &Asked) -> (Vec<T>, Option<String>) {
    let from: usize = asked.query("pageToken").trim_start_matches("page-").parse().unwrap_or(0);
    let shown: Vec<T> = items.iter().skip(from).take(PAGE_LEN).cloned().collect();
    let next = from + PAGE_LEN;
    (shown, (next < items.len()).then(|| format!("page-{next}")))
}

fn add_token(body: &mut Value, next: Option<String>) {
    if let (Some(next), Some(members)) = (next, body.as_object_mut()) {
        members.insert("nextPageToken".to_owned(), json!(next));
    }
}

/// A segment of a path as it was before it was written into a URL.
fn decoded(segment: &str) -> String {
    let query = format!("http://fake/?x={}", segment.replace('+', "%2B"));
    let url = reqwest::Url::parse(&query).ok();
    let value = url.and_then(|url| url.query_pairs().next().map(|(_, value)| value.into_owned()));
    value.unwrap_or_default()
}
