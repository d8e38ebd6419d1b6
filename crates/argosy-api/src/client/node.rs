//! What the client asks of the node plane.

use super::{Client, ClientError, Watch, WriteOptions, segment};
use crate::command::{Command, CommandBatch, CommandBatchCreate, CommandCreate, CommandList};
use crate::node::{FindingList, Ledger, MetricsHistory, Node, NodeList, Why};
use crate::policy::{BacktestReport, BacktestRequest, ExplainRequest, Explanation};
use crate::policy::{Policy, PolicyList, PolicyPut};
use crate::route::OWN;
use crate::safety::{Brakes, Pause, Released, SafetyReason};
use reqwest::Method;
use serde::de::DeserializeOwned;

impl Client {
    /// One page of nodes; `query` is what the reference lists: `page`, `size`, `search`, `status`, …
    pub async fn nodes(&self, query: &[(&str, &str)]) -> Result<NodeList, ClientError> {
        self.own("/nodes", query).await
    }

    /// One node.
    pub async fn node(&self, id: &str) -> Result<Node, ClientError> {
        self.own(&of_node(id, ""), &[]).await
    }

    /// Forgets a node that is terminated or unreachable, or any with `force`.
    pub async fn delete_node(
        &self,
        id: &str,
        force: bool,
        reason: Option<&str>,
    ) -> Result<(), ClientError> {
        let mut request = self.request(Method::DELETE, &format!("{OWN}{}", of_node(id, "")));
        if force {
            request = request.query(&[("force", "true")]);
        }
        if let Some(reason) = reason {
            request = request.query(&[("reason", reason)]);
        }
        self.answer(request).await.map(drop)
    }

    /// Labels a node `argosy.dev/protected`, or takes the label off.
    pub async fn protect_node(
        &self,
        id: &str,
        protected: bool,
        reason: &str,
    ) -> Result<Node, ClientError> {
        let path = format!("{OWN}{}", of_node(id, "/protection"));
        let request = match protected {
            true => {
                let body = SafetyReason { reason: reason.to_owned() };
                self.request(Method::PUT, &path).json(&body)
            }
            false => self.request(Method::DELETE, &path).query(&[("reason", reason)]),
        };
        self.json(request).await
    }

    /// What happened on a node, newest first; `query` may hold `before` and `limit`.
    pub async fn node_events(
        &self,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<Ledger, ClientError> {
        self.own(&of_node(id, "/events"), query).await
    }

    /// Everything that was written down about a node, newest first; `query` as for events.
    pub async fn node_history(
        &self,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<Ledger, ClientError> {
        self.own(&of_node(id, "/history"), query).await
    }

    /// Why a node is as it is.
    pub async fn why(&self, id: &str) -> Result<Why, ClientError> {
        self.own(&of_node(id, "/why"), &[]).await
    }

    /// What a node measured lately.
    pub async fn node_metrics(&self, id: &str) -> Result<MetricsHistory, ClientError> {
        self.own(&of_node(id, "/metrics"), &[]).await
    }

    /// The commands of a node, newest first; `query` may hold `page`, `size` and `state`.
    pub async fn node_commands(
        &self,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<CommandList, ClientError> {
        self.own(&of_node(id, "/commands"), query).await
    }

    /// Tells a node to do something. `if_match` is about the node's revision.
    pub async fn create_command(
        &self,
        node: &str,
        body: &CommandCreate,
        options: &WriteOptions,
    ) -> Result<Command, ClientError> {
        let path = format!("{OWN}{}", of_node(node, "/commands"));
        self.json(self.write(Method::POST, &path, body, options)).await
    }

    /// Tells several nodes the same.
    pub async fn create_commands(
        &self,
        body: &CommandBatchCreate,
        options: &WriteOptions,
    ) -> Result<CommandBatch, ClientError> {
        let path = format!("{OWN}/commands");
        self.json(self.write(Method::POST, &path, body, options)).await
    }

    /// One page of commands, newest first; `query` may hold `node`, `state`, `page` and `size`.
    pub async fn commands(&self, query: &[(&str, &str)]) -> Result<CommandList, ClientError> {
        self.own("/commands", query).await
    }

    /// One command.
    pub async fn command(&self, id: &str) -> Result<Command, ClientError> {
        self.own(&format!("/commands/{}", segment(id)), &[]).await
    }

    /// What is wrong with nodes now; `query` may hold `search`, `severity`, `node`, `pool`, …
    pub async fn findings(&self, query: &[(&str, &str)]) -> Result<FindingList, ClientError> {
        self.own("/findings", query).await
    }

    /// Every policy.
    pub async fn policies(&self) -> Result<PolicyList, ClientError> {
        self.own("/policies", &[]).await
    }

    /// One policy.
    pub async fn policy(&self, name: &str) -> Result<Policy, ClientError> {
        self.own(&format!("/policies/{}", segment(name)), &[]).await
    }

    /// Makes or replaces a policy.
    pub async fn put_policy(
        &self,
        name: &str,
        body: &PolicyPut,
        options: &WriteOptions,
    ) -> Result<Policy, ClientError> {
        let path = format!("{OWN}/policies/{}", segment(name));
        self.json(self.write(Method::PUT, &path, body, options)).await
    }

    /// Removes a policy; of the default, what was made of it.
    pub async fn delete_policy(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("{OWN}/policies/{}", segment(name));
        self.answer(self.request(Method::DELETE, &path)).await.map(drop)
    }

    /// What a policy says of an event.
    pub async fn explain(&self, body: &ExplainRequest) -> Result<Explanation, ClientError> {
        let path = format!("{OWN}/policies/explain");
        self.json(self.request(Method::POST, &path).json(body)).await
    }

    /// What a policy would have done with recorded history.
    pub async fn backtest(&self, body: &BacktestRequest) -> Result<BacktestReport, ClientError> {
        let path = format!("{OWN}/policies/backtest");
        self.json(self.request(Method::POST, &path).json(body)).await
    }

    /// Whether the server acts by itself, and if not, why not.
    pub async fn safety(&self) -> Result<Brakes, ClientError> {
        self.own("/safety", &[]).await
    }

    /// Stops all automatic action, everywhere or in one pool.
    pub async fn pause(&self, pool: Option<&str>, reason: &str) -> Result<Pause, ClientError> {
        let body = SafetyReason { reason: reason.to_owned() };
        self.json(self.request(Method::PUT, &pause_path(pool)).json(&body)).await
    }

    /// Lets automatic action go on; false if it was not stopped.
    pub async fn resume(&self, pool: Option<&str>) -> Result<bool, ClientError> {
        let request = self.request(Method::DELETE, &pause_path(pool));
        self.json(request).await.map(|Released { released }| released)
    }

    /// Closes a breaker by hand; false if it was closed. `scope` reads as in `Breaker`.
    pub async fn close_breaker(&self, scope: &str, reason: &str) -> Result<bool, ClientError> {
        let path = format!("{OWN}/safety/breakers/{}", segment(scope));
        let request = self.request(Method::DELETE, &path).query(&[("reason", reason)]);
        self.json(request).await.map(|Released { released }| released)
    }

    /// Follows nodes, or with `id` one of them, as `watch` follows resources.
    pub fn watch_nodes(
        &self,
        id: Option<&str>,
        query: &[(&str, &str)],
        after: Option<u64>,
    ) -> Watch {
        let path = id.map_or_else(|| "/nodes".to_owned(), |id| of_node(id, ""));
        self.follow(format!("{OWN}{path}"), query, after)
    }

    /// Follows commands, or with `id` one of them, as `watch` follows resources.
    pub fn watch_commands(
        &self,
        id: Option<&str>,
        query: &[(&str, &str)],
        after: Option<u64>,
    ) -> Watch {
        let one = id.map_or_else(String::new, |id| format!("/{}", segment(id)));
        self.follow(format!("{OWN}/commands{one}"), query, after)
    }

    pub(super) async fn own<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, ClientError> {
        self.json(self.request(Method::GET, &format!("{OWN}{path}")).query(query)).await
    }
}

fn of_node(id: &str, rest: &str) -> String {
    format!("/nodes/{}{rest}", segment(id))
}

fn pause_path(pool: Option<&str>) -> String {
    let pool = pool.map_or_else(String::new, |pool| format!("/{}", segment(pool)));
    format!("{OWN}/safety/pause{pool}")
}
