//! A stand-in for Lambda's cloud, after its public API description.
//!
//! Faithful where a client can go wrong: names are not unique and a repeated launch buys again, listings
//! lag, a launch is refused with a 400 when there are no machines, and every answer is wrapped.

use super::{Credential, Pace, Settings};
use crate::standin::{Lies, Reply, Server};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The key that is good.
pub const API_KEY: &str = "secret_fleet_0123456789abcdef";

/// The SSH key of the account.
pub const SSH_KEY: &str = "fleet";

/// The longest request that is read. Bytes.
const REQUEST_LEN_MAX: usize = 4 * 1024 * 1024;

/// Instance types: price in cents, CPUs, GPUs, and the regions that have some.
const TYPES: [(&str, u32, u32, u32, &[&str]); 4] = [
    ("gpu_1x_a10", 75, 30, 1, &["us-west-1", "us-east-1"]),
    ("gpu_1x_h100_pcie", 249, 26, 1, &["us-west-1"]),
    ("gpu_8x_a100", 1032, 124, 8, &[]),
    ("gpu_8x_h100_sxm5", 2392, 208, 8, &["us-east-1"]),
];

const REGIONS: [&str; 3] = ["us-west-1", "us-east-1", "europe-central-1"];

/// The stand-in. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeLambda {
    server: Server,
    world: Arc<World>,
}

#[derive(Debug, Default)]
struct World(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// What it was told has passed.
    now: Duration,
    lies: Lies,
    next_id: u32,
    vms: BTreeMap<String, Vm>,
    launches: u32,
    seen_user_data: Vec<String>,
}

#[derive(Debug)]
struct Vm {
    body: Value,
    status: &'static str,
    born: Duration,
    /// When it is no longer shown.
    ends: Option<Duration>,
}

impl FakeLambda {
    /// Starts one, with an account and nothing in it.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn start() -> io::Result<Self> {
        let world = Arc::new(World::default());
        let state = world.clone();
        let server = Server::start(|_| Router::new().fallback(answer).with_state(state)).await?;
        Ok(Self { server, world })
    }

    /// Settings that lead here.
    pub fn settings(&self) -> Settings {
        let pace = Pace {
            call_max: Duration::from_secs(2),
            calls_per_s: 1000.0,
            launch_every: Duration::from_millis(1),
        };
        let endpoint = format!("{}/api/v1", self.server.url);
        Settings { endpoint, pace, ..Settings::new(Credential::new(API_KEY), SSH_KEY) }
    }

    /// Changes how it lies.
    pub fn lie(&self, change: impl FnOnce(&mut Lies)) {
        change(&mut self.world.lock().lies);
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        let mut inner = self.world.lock();
        inner.now += time;
        inner.settle();
    }

    /// The ids of the machines that exist; those that are about to end do.
    pub fn machines(&self) -> Vec<String> {
        self.world.lock().vms.keys().cloned().collect()
    }

    /// A machine that somebody makes by hand.
    pub fn make_by_hand(&self, name: &str) {
        let body = json!({
            "name": name, "region_name": "us-west-1", "instance_type_name": "gpu_1x_a10",
        });
        self.world.lock().add(body);
    }

    /// Sets the status of a machine.
    pub fn set_status(&self, id: &str, status: &'static str) {
        if let Some(vm) = self.world.lock().vms.get_mut(id) {
            vm.status = status;
        }
    }

    /// Forgets the tags of all machines, as if Lambda kept none.
    pub fn forget_tags(&self) {
        for vm in self.world.lock().vms.values_mut() {
            if let Some(members) = vm.body.as_object_mut() {
                members.remove("tags");
            }
        }
    }

    /// How many launches were asked for.
    pub fn launches(&self) -> u32 {
        self.world.lock().launches
    }

    /// What machines were told to do at boot.
    pub fn user_data(&self) -> Vec<String> {
        self.world.lock().seen_user_data.clone()
    }
}

impl World {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(State(world): State<Arc<World>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_LEN_MAX).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let key = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    let known = key == Some(&format!("Bearer {API_KEY}"));
    let path: Vec<&str> = parts.uri.path().split('/').skip(1).collect();
    let reply = world.lock().serve(&parts.method, &path, known, &body);
    reply.send().await
}

impl Inner {
    fn serve(&mut self, method: &Method, path: &[&str], known: bool, body: &Value) -> Reply {
        if let Some(body) = &self.lies.body {
            return Reply::Raw(body.clone());
        }
        if 0 < self.lies.throttle {
            self.lies.throttle -= 1;
            let (status, body) = error_body(
                StatusCode::TOO_MANY_REQUESTS,
                "global/rate-limited",
                "Too many requests.",
                "Wait before you try again.",
            );
            return Reply::Throttled(status, body);
        }
        if !known || self.lies.revoked {
            return error(
                StatusCode::UNAUTHORIZED,
                "global/invalid-api-key",
                "API key was invalid, expired, or deleted.",
                "Check your API key or create a new one, then try again.",
            );
        }
        match (method.as_str(), path) {
            ("GET", ["api", "v1", "instances"]) => self.list(),
            ("GET", ["api", "v1", "instances", id]) => match self.vms.get(*id) {
                Some(vm) => data(vm.shown(id)),
                None => missing("Instance"),
            },
            ("GET", ["api", "v1", "instance-types"]) => data(types()),
            ("POST", ["api", "v1", "instance-operations", "launch"]) => self.launch(body),
            ("POST", ["api", "v1", "instance-operations", "terminate"]) => self.terminate(body),
            ("POST", ["api", "v1", "instance-operations", "restart"]) => self.restart(body),
            _ => missing("Page"),
        }
    }

    fn settle(&mut self) {
        let now = self.now;
        self.vms.retain(|_, vm| vm.ends.is_none_or(|ends| now < ends));
        for vm in self.vms.values_mut() {
            if vm.status == "booting" && vm.born + Duration::from_secs(1) <= now {
                vm.status = "active";
            }
        }
    }

    fn add(&mut self, body: Value) -> String {
        self.next_id += 1;
        let id = format!("{:032x}", 0x0920_5820_0000_u64 + u64::from(self.next_id) * 16);
        let vm = Vm { body, status: "booting", born: self.now, ends: None };
        self.vms.insert(id.clone(), vm);
        id
    }

    fn list(&self) -> Reply {
        if self.lies.broken_list {
            return internal();
        }
        let shown: Vec<Value> = self
            .vms
            .iter()
            .filter(|(_, vm)| vm.born + self.lies.lag <= self.now && !self.lies.empty_list)
            .enumerate()
            .filter(|(nth, _)| !self.lies.half_list || nth % 2 == 0)
            .map(|(_, (id, vm))| vm.shown(id))
            .collect();
        data(json!(shown))
    }

    fn launch(&mut self, body: &Value) -> Reply {
        self.launches += 1;
        if self.lies.deny_create {
            return error(
                StatusCode::FORBIDDEN,
                "global/payment-method-required",
                "A valid payment method is required.",
                "Add a payment method.",
            );
        }
        if let Some(reply) = refusal(body) {
            return reply;
        }
        if self.lies.quota {
            return error(
                StatusCode::BAD_REQUEST,
                "global/quota-exceeded",
                "Quota exceeded.",
                "Contact Support to increase your quota.",
            );
        }
        if self.lies.capacity {
            return error(
                StatusCode::BAD_REQUEST,
                "instance-operations/launch/insufficient-capacity",
                "Not enough capacity to fulfill launch request.",
                "Choose an instance type with more availability, or try again later.",
            );
        }
        if self.lies.lose_create == Some(false) {
            self.lies.lose_create = None;
            return Reply::Never;
        }
        if let Some(text) = body.get("user_data").and_then(Value::as_str) {
            self.seen_user_data.push(text.to_owned());
        }
        let id = self.add(body.clone());
        if self.lies.lose_create.take().is_some() {
            return Reply::Never;
        }
        if std::mem::take(&mut self.lies.fail_create) {
            return internal();
        }
        data(json!({ "instance_ids": [id] }))
    }

    fn terminate(&mut self, body: &Value) -> Reply {
        let ids = match self.named(body) {
            Ok(ids) => ids,
            Err(reply) => return reply,
        };
        let mut ended = Vec::new();
        for id in ids {
            let Some(vm) = self.vms.get_mut(&id) else { continue };
            if !self.lies.delete_lies {
                vm.status = "terminating";
                vm.ends = Some(self.now + Duration::from_secs(5));
            }
            ended.push(vm.shown(&id));
        }
        if std::mem::take(&mut self.lies.fail_delete) {
            return internal();
        }
        data(json!({ "terminated_instances": ended }))
    }

    fn restart(&mut self, body: &Value) -> Reply {
        match self.named(body) {
            Ok(ids) => {
                let found = ids.iter().filter_map(|id| Some(self.vms.get(id)?.shown(id)));
                let found: Vec<Value> = found.collect();
                data(json!({ "restarted_instances": found }))
            }
            Err(reply) => reply,
        }
    }

    /// The machines that a call names; all must exist.
    fn named(&self, body: &Value) -> Result<Vec<String>, Reply> {
        let ids = body.get("instance_ids").and_then(Value::as_array);
        let ids: Vec<String> =
            ids.into_iter().flatten().filter_map(|id| Some(id.as_str()?.to_owned())).collect();
        let exist = !ids.is_empty() && ids.iter().all(|id| self.vms.contains_key(id));
        if exist { Ok(ids) } else { Err(missing("Instance")) }
    }
}

impl Vm {
    fn shown(&self, id: &str) -> Value {
        let text = |member: &str| self.body.get(member).cloned().unwrap_or(Value::Null);
        let mut shown = json!({
            "id": id,
            "name": text("name"),
            "status": self.status,
            "ssh_key_names": text("ssh_key_names"),
            "file_system_names": [],
            "region": { "name": text("region_name"), "description": "California, USA" },
            "instance_type": { "name": text("instance_type_name"), "description": "1x" },
            "jupyter_token": "secret-notebook-token",
            "actions": {},
        });
        if let Some(members) = shown.as_object_mut() {
            if self.status != "booting" {
                members.insert("ip".to_owned(), json!("203.0.113.9"));
                members.insert("private_ip".to_owned(), json!("10.19.7.9"));
            }
            if let Some(tags) = self.body.get("tags") {
                members.insert("tags".to_owned(), tags.clone());
            }
        }
        shown
    }
}

/// Why Lambda would not launch this.
fn refusal(body: &Value) -> Option<Reply> {
    let text = |member: &str| body.get(member).and_then(Value::as_str).unwrap_or_default();
    if !REGIONS.contains(&text("region_name")) || 64 < text("name").len() {
        return Some(error(
            StatusCode::BAD_REQUEST,
            "global/invalid-parameters",
            "Invalid request data.",
            "",
        ));
    }
    let kind = text("instance_type_name");
    if !TYPES.iter().any(|(name, ..)| *name == kind) {
        return Some(missing("Instance type"));
    }
    let keys = body.get("ssh_key_names").and_then(Value::as_array);
    if keys.is_none_or(|keys| keys.as_slice() != [json!(SSH_KEY)]) {
        return Some(missing("SSH key"));
    }
    let tag_key = |key: &str| {
        key.starts_with(|first: char| first.is_ascii_lowercase())
            && key
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-:".contains(&b))
    };
    let tags = body.get("tags").and_then(Value::as_array);
    let wrong = tags.into_iter().flatten().any(|tag| {
        let key = tag.get("key").and_then(Value::as_str);
        key.is_none_or(|key| !tag_key(key)) || tag.get("value").and_then(Value::as_str).is_none()
    });
    let allowed = [
        "region_name",
        "instance_type_name",
        "ssh_key_names",
        "file_system_names",
        "file_system_mounts",
        "hostname",
        "name",
        "image",
        "user_data",
        "tags",
        "firewall_rulesets",
    ];
    let unknown = body
        .as_object()
        .is_some_and(|members| members.keys().any(|member| !allowed.contains(&member.as_str())));
    (wrong || unknown).then(|| {
        let message = "Invalid request data.";
        error(StatusCode::BAD_REQUEST, "global/invalid-parameters", message, "")
    })
}

fn types() -> Value {
    let entry = |(name, cents, cpus, gpus, regions): (&str, u32, u32, u32, &[&str])| {
        let regions: Vec<Value> =
            regions.iter().map(|region| json!({ "name": region, "description": region })).collect();
        let offered = json!({
            "instance_type": {
                "name": name,
                "description": name,
                "gpu_description": name,
                "price_cents_per_hour": cents,
                "specs": { "vcpus": cpus, "memory_gib": 200, "storage_gib": 1400, "gpus": gpus },
            },
            "regions_with_capacity_available": regions,
        });
        (name.to_owned(), offered)
    };
    Value::Object(TYPES.into_iter().map(entry).collect())
}

fn data(data: Value) -> Reply {
    Reply::Json(StatusCode::OK, json!({ "data": data }))
}

fn missing(what: &str) -> Reply {
    error(
        StatusCode::NOT_FOUND,
        "global/object-does-not-exist",
        &format!("Specified {what} does not exist."),
        "",
    )
}

fn internal() -> Reply {
    error(StatusCode::INTERNAL_SERVER_ERROR, "global/unknown", "Unknown error.", "")
}

fn error(status: StatusCode, code: &str, message: &str, suggestion: &str) -> Reply {
    let (status, body) = error_body(status, code, message, suggestion);
    Reply::Json(status, body)
}

fn error_body(
    status: StatusCode,
    code: &str,
    message: &str,
    suggestion: &str,
) -> (StatusCode, Value) {
    let mut error = json!({ "code": code, "message": message });
    if let Some(members) = error.as_object_mut().filter(|_| !suggestion.is_empty()) {
        members.insert("suggestion".to_owned(), json!(suggestion));
    }
    (status, json!({ "error": error }))
}
