//! The console of the simulated cloud: how a test breaks the world and mends it.

use super::Api;
use serde_json::{Value, json};

impl Api {
    async fn console(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let method = method.parse().expect("a method");
        let mut request = self.request(method, &format!("/simulated-cloud/v1/{path}"));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let reply = self.send(request).await;
        assert!(reply.status < 300, "{path}: {} {}", reply.status, reply.text);
        if reply.text.is_empty() { Value::Null } else { reply.json() }
    }

    /// Everything the cloud has.
    pub(crate) async fn cloud_inventory(&self) -> Value {
        self.console("GET", "inventory", None).await
    }

    /// Every machine the cloud has, without those that are gone.
    pub(crate) async fn cloud_machines(&self) -> Vec<Value> {
        let all = self.console("GET", "machines", None).await;
        let all = all.as_array().expect("a list");
        all.iter().filter(|machine| machine["state"] != "Gone").cloned().collect()
    }

    /// Those of one pool, by the name that nodes carry.
    pub(crate) async fn cloud_machines_of(&self, pool: &str) -> Vec<Value> {
        let all = self.cloud_machines().await.into_iter();
        all.filter(|machine| machine["pool"] == pool).collect()
    }

    pub(crate) async fn create_zone(&self, domain: &str) {
        self.console("PUT", &format!("zones/{domain}"), None).await;
    }

    pub(crate) async fn delete_zone(&self, domain: &str) {
        self.console("DELETE", &format!("zones/{domain}"), None).await;
    }

    pub(crate) async fn set_quota(&self, place: &str, limit: u64, used_by_others: u64) {
        let body = json!({ "limit": limit, "used_by_others": used_by_others });
        self.console("PUT", &format!("quotas/{place}"), Some(body)).await;
    }

    pub(crate) async fn deny(&self, provider: &str, permission: &str) {
        self.console("PUT", &format!("permissions/{provider}/denied/{permission}"), None).await;
    }

    pub(crate) async fn grant(&self, provider: &str, permission: &str) {
        self.console("DELETE", &format!("permissions/{provider}/denied/{permission}"), None).await;
    }

    pub(crate) async fn deny_label(&self, label: &str) {
        self.console("PUT", &format!("denied-labels/{label}"), None).await;
    }

    pub(crate) async fn grant_label(&self, label: &str) {
        self.console("DELETE", &format!("denied-labels/{label}"), None).await;
    }

    /// Injects a fault; the id by which it is cleared.
    pub(crate) async fn inject(&self, fault: Value) -> u64 {
        let fault = self.console("POST", "faults", Some(fault)).await;
        fault["id"].as_u64().expect("an id")
    }

    pub(crate) async fn clear(&self, fault: u64) {
        self.console("DELETE", &format!("faults/{fault}"), None).await;
    }

    /// How long each operation takes, in milliseconds: a held operation is a phase that a test can see.
    pub(crate) async fn set_latency(&self, operation: &str, ms: u32) {
        let body = json!({ operation: { "min_ms": ms, "max_ms": ms } });
        self.console("PUT", "latency", Some(body)).await;
    }
}
