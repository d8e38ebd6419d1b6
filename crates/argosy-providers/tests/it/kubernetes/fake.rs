//! As much of the API server as our scheduler asks for, for machines where the real one was not built.
//!
//! What it knows of Kubernetes was seen at the real one: the same tests run against both.

use super::cluster::{ADMIN, ARGOSY, Access, Cluster};
use argosy_core::merge::merge;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A server of its own; it ends with the value.
pub(crate) struct Fake {
    _tasks: JoinSet<()>,
}

pub(crate) async fn cluster() -> (Cluster, Fake) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let routes =
        Router::new().route("/{*path}", any(answer)).with_state(Arc::<Mutex<World>>::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, routes).await.expect("it serves") });
    (Cluster::at(Access { url, authority: None }).await, Fake { _tasks: tasks })
}

/// All objects, by the path they are at.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Value>,
    version: u64,
}

/// An error as the API server words it.
struct Failure(StatusCode, Value);

type Answer = Result<(StatusCode, Value), Failure>;

impl Failure {
    fn new(code: u16, reason: &str, message: String, details: Value) -> Self {
        let status = StatusCode::from_u16(code).expect("a status");
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code,
        });
        Self(status, body)
    }

    fn not_found(kind: &str, name: &str) -> Self {
        let details = json!({ "name": name, "kind": kind });
        Self::new(404, "NotFound", format!("{kind} \"{name}\" not found"), details)
    }

    fn conflict(kind: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {kind} \"{name}\": {why}");
        Self::new(409, "Conflict", message, json!({ "name": name, "kind": kind }))
    }

    fn budget(message: String) -> Self {
        let causes = json!([{ "reason": "DisruptionBudget", "message": message }]);
        let cannot = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::new(429, "TooManyRequests", cannot.to_owned(), json!({ "causes": causes }))
    }
}

async fn answer(
    State(world): State<Arc<Mutex<World>>>,
    method: Method,
    Path(path): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut world = world.lock().expect("no test has panicked in here");
    let parts: Vec<&str> = path.split('/').collect();
    let answer = match text("authorization").strip_prefix("Bearer ") {
        Some(ADMIN | ARGOSY) => {
            let only_metadata = text("accept").contains("as=PartialObjectMetadata");
            world.serve(&method, &parts, &query, &body, only_metadata)
        }
        Some(token) if token.starts_with("nobody") => {
            let message = "nodes is forbidden: User \"nobody\" cannot do that".to_owned();
            Err(Failure::new(403, "Forbidden", message, json!({})))
        }
        Some(_) | None => {
            Err(Failure::new(401, "Unauthorized", "Unauthorized".to_owned(), json!({})))
        }
    };
    let (status, body) = answer.unwrap_or_else(|Failure(status, body)| (status, body));
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

impl World {
    fn serve(
        &mut self,
        method: &Method,
        parts: &[&str],
        query: &HashMap<String, String>,
        body: &Value,
        only_metadata: bool,
    ) -> Answer {
        let path = parts.join("/");
        match (method.as_str(), parts) {
            ("POST", ["api", "v1", "namespaces"]) => self.create("namespaces", &path, body),
            ("POST", ["api", "v1", "nodes"]) => self.create("nodes", &path, body),
            ("GET", ["api", "v1", "nodes"]) => {
                Ok((StatusCode::OK, self.list("api/v1/nodes/", query, false)))
            }
            (_, ["api", "v1", "nodes", name]) => self.object(method, "nodes", name, &path, body),
            ("POST", ["api", "v1", "namespaces", _, "pods"]) => self.create("pods", &path, body),
            ("GET", ["api", "v1", "pods"]) => {
                Ok((StatusCode::OK, self.list("api/v1/namespaces/", query, only_metadata)))
            }
            ("PATCH", ["api", "v1", "namespaces", _, "pods", name, "status"]) => {
                self.patch("pods", name, path.trim_end_matches("/status"), body)
            }
            ("POST", ["api", "v1", "namespaces", namespace, "pods", name, "eviction"]) => {
                self.evict(namespace, name, path.trim_end_matches("/eviction"), body)
            }
            ("DELETE", ["api", "v1", "namespaces", _, "pods", name]) => {
                self.end(name, &path, body).map(|pod| (StatusCode::OK, pod))
            }
            (_, ["api", "v1", "namespaces", _, "pods", name]) => {
                self.object(method, "pods", name, &path, body)
            }
            ("POST", ["apis", "policy", "v1", "namespaces", _, "poddisruptionbudgets"]) => {
                self.create("poddisruptionbudgets", &path, body)
            }
            (
                "PATCH",
                ["apis", "policy", "v1", "namespaces", _, "poddisruptionbudgets", name, "status"],
            ) => self.patch("poddisruptionbudgets", name, path.trim_end_matches("/status"), body),
            _ => panic!("{method} /{path} is not part of this fake"),
        }
    }

    fn create(&mut self, kind: &str, path: &str, body: &Value) -> Answer {
        let mut object = body.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let at = format!("{path}/{name}");
        if self.objects.contains_key(&at) {
            let message = format!("{kind} \"{name}\" already exists");
            return Err(Failure::new(409, "AlreadyExists", message, json!({})));
        }
        self.version += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        if let ["api", "v1", "namespaces", namespace, ..] = path.split('/').collect::<Vec<_>>()[..]
        {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Ok((StatusCode::CREATED, self.put(&at, object)))
    }

    fn put(&mut self, at: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(at.to_owned(), object.clone());
        object
    }

    fn object(
        &mut self,
        method: &Method,
        kind: &str,
        name: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let found =
            self.objects.get(path).cloned().ok_or_else(|| Failure::not_found(kind, name))?;
        match method.as_str() {
            "GET" => Ok((StatusCode::OK, found)),
            "DELETE" => {
                self.objects.remove(path);
                Ok((StatusCode::OK, found))
            }
            "PATCH" => self.patch(kind, name, path, body),
            other => panic!("{other} /{path} is not part of this fake"),
        }
    }

    fn patch(&mut self, kind: &str, name: &str, path: &str, patch: &Value) -> Answer {
        let found = self.objects.get(path).ok_or_else(|| Failure::not_found(kind, name))?;
        let expected = &patch["metadata"]["resourceVersion"];
        if !expected.is_null() && *expected != found["metadata"]["resourceVersion"] {
            let why = "the object has been modified; please apply your changes to the latest";
            return Err(Failure::conflict(kind, name, why));
        }
        let mut next = found.clone();
        let (Some(target), Some(patch)) = (next.as_object_mut(), patch.as_object()) else {
            panic!("a patch is an object");
        };
        merge(target, patch);
        let same = next == *found;
        Ok((StatusCode::OK, if same { next } else { self.put(path, next) }))
    }

    fn list(&self, prefix: &str, query: &HashMap<String, String>, only_metadata: bool) -> Value {
        let selector = query.get("fieldSelector").map(String::as_str).unwrap_or_default();
        let after = query.get("continue").map(String::as_str).unwrap_or_default();
        let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
        let pods = prefix.ends_with("namespaces/");
        let mut found = self
            .objects
            .range(prefix.to_owned()..)
            .take_while(|(path, _)| path.starts_with(prefix))
            .filter(|(path, _)| !pods || path.contains("/pods/"))
            .filter(|(_, object)| selects(selector, object))
            .filter(|(path, _)| after < path.as_str());
        let page: Vec<(&String, &Value)> = found.by_ref().take(limit).collect();
        let more = found.next().is_some();
        let last = page.last().filter(|_| more).map(|(path, _)| path.as_str());
        let strip = |object: &Value| match only_metadata {
            true => json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": object["metadata"],
            }),
            false => object.clone(),
        };
        let items: Vec<Value> = page.iter().map(|(_, object)| strip(object)).collect();
        let version = self.version.to_string();
        json!({
            "kind": "List", "apiVersion": "v1", "items": items,
            "metadata": { "resourceVersion": version, "continue": last.unwrap_or_default() },
        })
    }

    /// What the API server does about an eviction: pods that do not run yet, or are ending, need no budget.
    fn evict(&mut self, namespace: &str, name: &str, path: &str, eviction: &Value) -> Answer {
        let pod = self.objects.get(path).ok_or_else(|| Failure::not_found("pods", name))?.clone();
        let ending = !pod["metadata"]["deletionTimestamp"].is_null();
        if pod["status"]["phase"] == "Running" && !ending {
            self.spend_budget(namespace, &pod)?;
        }
        self.end(name, path, &eviction["deleteOptions"])?;
        let done =
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201 });
        Ok((StatusCode::CREATED, done))
    }

    fn spend_budget(&mut self, namespace: &str, pod: &Value) -> Result<(), Failure> {
        let prefix = format!("apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/");
        let empty = Map::new();
        let labels = pod["metadata"]["labels"].as_object().unwrap_or(&empty).clone();
        let covers = |budget: &Value| {
            let wanted = budget["spec"]["selector"]["matchLabels"].as_object();
            wanted.is_some_and(|wanted| {
                wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
            })
        };
        let of_pod =
            |(path, budget): &(&String, &Value)| path.starts_with(&prefix) && covers(budget);
        let budgets: Vec<String> =
            self.objects.iter().filter(of_pod).map(|(path, _)| path.clone()).collect();
        let [path] = budgets.as_slice() else {
            if budgets.is_empty() {
                return Ok(());
            }
            let message = "This pod has more than one PodDisruptionBudget, which the eviction \
                           subresource does not support.";
            return Err(Failure::new(500, "InternalError", message.to_owned(), json!({})));
        };
        let mut budget = self.objects[path].clone();
        let name = budget["metadata"]["name"].as_str().unwrap_or_default();
        let status = &budget["status"];
        let Some(allowed) = status["disruptionsAllowed"].as_u64().filter(|allowed| 0 < *allowed)
        else {
            let (needs, has) = (&status["desiredHealthy"], &status["currentHealthy"]);
            return Err(Failure::budget(format!(
                "The disruption budget {name} needs {needs} healthy pods and has {has} currently"
            )));
        };
        budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
        self.put(path, budget);
        Ok(())
    }

    /// A pod on a node goes when its kubelet says so, which asks for no grace.
    fn end(&mut self, name: &str, path: &str, options: &Value) -> Result<Value, Failure> {
        let pod = self.objects.get(path).ok_or_else(|| Failure::not_found("pods", name))?;
        let mut pod = pod.clone();
        let wanted = &options["preconditions"]["uid"];
        if !wanted.is_null() && *wanted != pod["metadata"]["uid"] {
            let why = "the UID in the precondition does not match the UID in record";
            return Err(Failure::conflict("pods", name, why));
        }
        let grace = options["gracePeriodSeconds"].as_u64().unwrap_or(30);
        if grace == 0 {
            self.objects.remove(path);
            return Ok(pod);
        }
        if pod["metadata"]["deletionTimestamp"].is_null() {
            pod["metadata"]["deletionTimestamp"] = json!("2030-01-01T12:00:30Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            pod = self.put(path, pod);
        }
        Ok(pod)
    }
}

/// Whether an object has what a field selector asks for.
fn selects(selector: &str, object: &Value) -> bool {
    selector.split(',').filter(|term| !term.is_empty()).all(|term| {
        let (field, wanted, equal) = match term.split_once("!=") {
            Some((field, wanted)) => (field, wanted, false),
            None => {
                let (field, wanted) = term.split_once('=').expect("a selector");
                (field, wanted, true)
            }
        };
        let value = object.pointer(&format!("/{}", field.replace('.', "/")));
        let value = value.and_then(Value::as_str).unwrap_or_default();
        (value == wanted) == equal
    })
}
