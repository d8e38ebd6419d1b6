//! What the client asks about machines.

use super::{Client, ClientError, Watch, segment};
use crate::instance::{
    Instance, InstanceAdopt, InstanceList, InstanceTerminate, Orphan, OrphanList, PoolExplanation,
    PoolHistory, PoolResume, ProviderList, SimulateRequest, Simulation,
};
use crate::recovery::RecoveryList;
use crate::route::OWN;
use crate::safety::{Released, SafetyReason};
use reqwest::Method;

impl Client {
    /// One page of instances; `query` is what the reference lists: `page`, `size`, `search`, `pool`, …
    pub async fn instances(&self, query: &[(&str, &str)]) -> Result<InstanceList, ClientError> {
        self.own("/instances", query).await
    }

    /// One instance, by its id or by what its provider calls the machine.
    pub async fn instance(&self, id: &str) -> Result<Instance, ClientError> {
        self.own(&of_instance(id, ""), &[]).await
    }

    /// Has a machine returned.
    pub async fn terminate_instance(
        &self,
        id: &str,
        body: &InstanceTerminate,
    ) -> Result<Instance, ClientError> {
        let path = format!("{OWN}{}", of_instance(id, "/terminate"));
        self.json(self.request(Method::POST, &path).json(body)).await
    }

    /// Makes a machine that no record knows one of a node pool's.
    pub async fn adopt_instance(&self, body: &InstanceAdopt) -> Result<Instance, ClientError> {
        let path = format!("{OWN}/instances/adopt");
        self.json(self.request(Method::POST, &path).json(body)).await
    }

    /// Follows instances, or with `id` one of them, as `watch` follows resources.
    pub fn watch_instances(
        &self,
        id: Option<&str>,
        query: &[(&str, &str)],
        after: Option<u64>,
    ) -> Watch {
        let path = id.map_or_else(|| "/instances".to_owned(), |id| of_instance(id, ""));
        self.follow(format!("{OWN}{path}"), query, after)
    }

    /// The machines that no record knows.
    pub async fn orphans(&self) -> Result<OrphanList, ClientError> {
        self.own("/orphans", &[]).await
    }

    /// Has a machine returned that no record knows.
    pub async fn reap_orphan(
        &self,
        provider: &str,
        machine: &str,
        reason: &str,
    ) -> Result<Orphan, ClientError> {
        let path = format!("{OWN}/orphans/{}/{}/reap", segment(provider), segment(machine));
        self.json(self.request(Method::POST, &path).json(&why(reason))).await
    }

    /// Every provider.
    pub async fn providers(&self) -> Result<ProviderList, ClientError> {
        self.own("/providers", &[]).await
    }

    /// Has a provider's listings believed again; false if they were.
    pub async fn thaw_provider(&self, name: &str, reason: &str) -> Result<bool, ClientError> {
        let path = format!("{OWN}/providers/{}/thaw", segment(name));
        let request = self.request(Method::POST, &path).json(&why(reason));
        self.json(request).await.map(|Released { released }| released)
    }

    /// The node pools in recovery.
    pub async fn recovery(&self) -> Result<RecoveryList, ClientError> {
        self.own("/recovery", &[]).await
    }

    /// Lets a node pool in recovery do what it would do; false if it was not in recovery.
    pub async fn confirm_recovery(&self, pool: &str, reason: &str) -> Result<bool, ClientError> {
        let path = format!("{OWN}/recovery/{}/confirm", segment(pool));
        let request = self.request(Method::POST, &path).json(&why(reason));
        self.json(request).await.map(|Released { released }| released)
    }

    /// Why a node pool is as it is.
    pub async fn explain_nodepool(
        &self,
        cluster: Option<&str>,
        pool: &str,
    ) -> Result<PoolExplanation, ClientError> {
        self.own(&of_pool(pool, "/explain"), &in_cluster(cluster)).await
    }

    /// What was measured of a node pool lately.
    pub async fn nodepool_history(
        &self,
        cluster: Option<&str>,
        pool: &str,
    ) -> Result<PoolHistory, ClientError> {
        self.own(&of_pool(pool, "/history"), &in_cluster(cluster)).await
    }

    /// What an autoscaler would have done.
    pub async fn simulate_nodepool(
        &self,
        cluster: Option<&str>,
        pool: &str,
        body: &SimulateRequest,
    ) -> Result<Simulation, ClientError> {
        let path = format!("{OWN}{}", of_pool(pool, "/simulate"));
        let request = self.request(Method::POST, &path).query(&in_cluster(cluster)).json(body);
        self.json(request).await
    }

    /// Lets buying and updating go on for a node pool; false if they had not stopped.
    pub async fn resume_nodepool(
        &self,
        cluster: Option<&str>,
        pool: &str,
        body: &PoolResume,
    ) -> Result<bool, ClientError> {
        let path = format!("{OWN}{}", of_pool(pool, "/resume"));
        let request = self.request(Method::POST, &path).query(&in_cluster(cluster));
        self.json(request.json(body)).await.map(|Released { released }| released)
    }
}

fn why(reason: &str) -> SafetyReason {
    SafetyReason { reason: reason.to_owned() }
}

fn of_instance(id: &str, rest: &str) -> String {
    format!("/instances/{}{rest}", segment(id))
}

fn of_pool(pool: &str, rest: &str) -> String {
    format!("/nodepools/{}{rest}", segment(pool))
}

fn in_cluster(cluster: Option<&str>) -> Vec<(&'static str, &str)> {
    cluster.into_iter().map(|cluster| ("cluster", cluster)).collect()
}
