//! A Kubernetes API as the tests use it: people, kubelets and controllers, played by requests.

use crate::harness::TestDir;
use argosy_control::clock::Clock;
use argosy_providers::scheduler::kubernetes::{
    Access as Way, KubernetesScheduler, KubernetesSettings,
};
use jiff::{SignedDuration, Timestamp};
use reqwest::{Certificate, Client, Method, Response};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whoever may do everything.
pub(crate) const ADMIN: &str = "admin-token";
/// Us, with the rights of the documentation.
pub(crate) const ARGOSY: &str = "argosy-token";
/// Somebody without rights.
pub(crate) const NOBODY: &str = "nobody-token";

/// Where an API is.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) url: String,
    pub(crate) authority: Option<PathBuf>,
}

/// A cluster, and a corner of it that only one test uses.
pub(crate) struct Cluster {
    access: Access,
    http: Client,
    dir: TestDir,
    /// A namespace; also the beginning of the names of nodes, which have none.
    pub(crate) corner: String,
    /// What time it is at the beginning.
    pub(crate) epoch: Timestamp,
}

impl Cluster {
    pub(crate) async fn at(access: Access) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut http = Client::builder().no_proxy();
        if let Some(authority) = &access.authority {
            let pem = std::fs::read(authority).expect("the certificate was written");
            let trusted = Certificate::from_pem_bundle(&pem).expect("certificates");
            http = http.tls_certs_only(trusted);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            access,
            http: http.build().expect("a client"),
            dir: TestDir::new(),
            corner: format!("corner-{number}"),
            epoch: "2030-01-01T12:00:00Z".parse().expect("a time"),
        }
    }

    /// The scheduler under test, now.
    pub(crate) async fn scheduler(&self, settings: KubernetesSettings) -> KubernetesScheduler {
        self.scheduler_as(ARGOSY, settings, SignedDuration::ZERO).await
    }

    /// The scheduler under test, as one of the callers, some time after the beginning.
    pub(crate) async fn scheduler_as(
        &self,
        token: &str,
        settings: KubernetesSettings,
        later: SignedDuration,
    ) -> KubernetesScheduler {
        let authority = self.access.authority.as_ref().map(|path| path.display().to_string());
        let named = |what: &str, value: Value| json!([{ "name": "it", (what): value }]);
        let server = json!({ "server": self.access.url, "certificate-authority": authority });
        let file = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": named("cluster", server),
            "users": named("user", json!({ "token": token })),
            "contexts": named("context", json!({ "cluster": "it", "user": "it" })),
            "current-context": "nowhere",
        });
        let path = self.dir.join(&format!("{token}.yaml"));
        std::fs::write(&path, file.to_string()).expect("a writable directory");
        let access = Way::Kubeconfig { path, context: Some("it".to_owned()) };
        let clock = Clock::simulated(self.epoch + later);
        let settings = KubernetesSettings { access, ..settings };
        KubernetesScheduler::new(settings, clock).await.expect("settings that can be used")
    }

    /// The deadline of drains: an hour after the beginning.
    pub(crate) fn deadline(&self) -> Timestamp {
        self.epoch + SignedDuration::from_hours(1)
    }

    /// Makes the namespace of this test.
    pub(crate) async fn settle(self) -> Self {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.corner } });
        self.done(Method::POST, "/api/v1/namespaces", &namespace).await;
        self
    }

    /// The name of a node of this test.
    pub(crate) fn node_name(&self, name: &str) -> String {
        format!("{}-{name}", self.corner)
    }

    /// Makes a node, and gives its name.
    pub(crate) async fn create_node(&self, name: &str, spec: Value) -> String {
        let name = self.node_name(name);
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "spec": spec });
        self.done(Method::POST, "/api/v1/nodes", &node).await;
        name
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        self.done(Method::DELETE, &format!("/api/v1/nodes/{name}"), &json!({})).await;
    }

    pub(crate) async fn node(&self, name: &str) -> Value {
        self.done(Method::GET, &format!("/api/v1/nodes/{name}"), &Value::Null).await
    }

    /// Writes to a node as `kubectl` does. Whether it was taken: somebody else may have written before.
    pub(crate) async fn patch_node(&self, name: &str, patch: Value) -> bool {
        let path = format!("/api/v1/nodes/{name}");
        self.ask(Method::PATCH, &path, ADMIN, &patch).await.status().is_success()
    }

    /// Makes a pod that runs on a node. `more` is merged into its metadata.
    pub(crate) async fn create_pod(&self, node: &str, name: &str, more: Value) {
        let mut metadata = json!({ "name": name, "labels": { "app": name } });
        metadata
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().expect("one"));
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
        });
        self.done(Method::POST, &self.pods(), &pod).await;
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        self.set_phase(name, json!({ "phase": "Running", "conditions": ready })).await;
    }

    /// What the kubelet says about a pod.
    pub(crate) async fn set_phase(&self, name: &str, status: Value) {
        let path = format!("{}/{name}/status", self.pods());
        self.done(Method::PATCH, &path, &json!({ "status": status })).await;
    }

    /// A pod, if it is there.
    pub(crate) async fn pod(&self, name: &str) -> Option<Value> {
        let path = format!("{}/{name}", self.pods());
        let answer = self.ask(Method::GET, &path, ADMIN, &Value::Null).await;
        if answer.status() == 404 { None } else { Some(answer.json().await.expect("a pod")) }
    }

    /// Whether a pod was asked to end.
    pub(crate) async fn is_ending(&self, name: &str) -> bool {
        let pod = self.pod(name).await.expect("a pod");
        pod["metadata"]["deletionTimestamp"].is_string()
    }

    /// The kubelet has stopped a pod.
    pub(crate) async fn end_pod(&self, name: &str) {
        let now = json!({ "gracePeriodSeconds": 0 });
        self.done(Method::DELETE, &format!("{}/{name}", self.pods()), &now).await;
    }

    /// A budget for the pods of one app, as its controller has worked it out.
    pub(crate) async fn create_budget(&self, name: &str, app: &str, allowed: u32) {
        let budget = json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": { "name": name },
            "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": app } } },
        });
        self.done(Method::POST, &self.budgets(), &budget).await;
        self.allow(name, allowed).await;
    }

    /// The controller finds that so many pods may go.
    pub(crate) async fn allow(&self, name: &str, allowed: u32) {
        let path = format!("{}/{name}/status", self.budgets());
        let status = json!({
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "observedGeneration": 1,
        });
        self.done(Method::PATCH, &path, &json!({ "status": status })).await;
    }

    /// Gives us the rights of the documentation, as a user.
    pub(crate) async fn grant(&self, documents: &str) {
        let role = documents.split("\n---\n").find(|text| text.contains("\nkind: ClusterRole\n"));
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let url = format!("{}{path}", self.access.url);
        let request = self.http.post(url).bearer_auth(ADMIN);
        let request = request.header("content-type", "application/yaml");
        let answer =
            request.body(role.expect("a role").to_owned()).send().await.expect("an answer");
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap_or_default());
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": "argosy" },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "argosy" },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": "argosy" }],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        self.done(Method::POST, path, &binding).await;
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let request = self.http.get(format!("{}/readyz", self.access.url)).bearer_auth(ADMIN);
        request.send().await.is_ok_and(|answer| answer.status() == 200)
    }

    pub(crate) async fn version(&self) -> String {
        let version = self.done(Method::GET, "/version", &Value::Null).await;
        version["gitVersion"].to_string()
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.corner)
    }

    fn budgets(&self) -> String {
        format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", self.corner)
    }

    /// What came of something that must go well.
    async fn done(&self, method: Method, path: &str, body: &Value) -> Value {
        let answer = self.ask(method.clone(), path, ADMIN, body).await;
        let status = answer.status();
        let text = answer.text().await.expect("an answer");
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn ask(&self, method: Method, path: &str, token: &str, body: &Value) -> Response {
        let merge = method == Method::PATCH;
        let content = if merge { "application/merge-patch+json" } else { "application/json" };
        let url = format!("{}{path}", self.access.url);
        let mut request = self.http.request(method, url).bearer_auth(token);
        if !body.is_null() {
            request = request.header("content-type", content).body(body.to_string());
        }
        request.send().await.expect("an answer")
    }
}
