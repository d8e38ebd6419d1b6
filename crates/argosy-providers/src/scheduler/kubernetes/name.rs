//! What a machine of ours is called in Kubernetes.

use super::{NodeName, PAGE_MAX, explain};
use crate::scheduler::one_line;
use argosy_control::clock::Clock;
use argosy_control::scheduler::{Machine, SchedulerError};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use std::collections::HashMap;
use tokio::sync::Mutex;

/// Finds names.
pub(super) struct Names {
    by: NodeName,
    clock: Clock,
    /// Only used for the provider's ids, which the API cannot search for.
    listed: Mutex<Listed>,
}

/// The nodes as they were when they were last listed.
#[derive(Default)]
struct Listed {
    at: Option<Timestamp>,
    names: HashMap<String, Found>,
}

/// What an id of the provider leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    One(String),
    Many,
}

/// The longest name of a node, as the API has it.
const NAME_MAX: usize = 253;

/// For how long the nodes are not listed again for an id that is not among them: a thousand strangers must
/// not be a thousand lists of all nodes.
const LIST_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// How many pages of nodes are listed at most: Kubernetes itself ends at 5,000 nodes, this at 50,000.
const PAGES_MAX: usize = 200;

impl Names {
    pub(super) fn new(by: NodeName, clock: Clock) -> Self {
        Self { by, clock, listed: Mutex::new(Listed::default()) }
    }

    /// The name of the machine's node; whether there is one is not asked.
    pub(super) async fn of(
        &self,
        machine: &Machine,
        client: &Client,
    ) -> Result<String, SchedulerError> {
        let key = self.key(machine)?;
        match self.by {
            NodeName::ProviderId => self.by_provider_id(&key, client).await,
            NodeName::Id | NodeName::Hostname | NodeName::Label(_) => Ok(key),
        }
    }

    /// What a node of Kubernetes is found by: its name, or its provider's ids.
    pub(super) fn keys_of(&self, node: &Node) -> Vec<String> {
        match self.by {
            NodeName::ProviderId => keys(node).map(ToOwned::to_owned).collect(),
            NodeName::Id | NodeName::Hostname | NodeName::Label(_) => {
                node.metadata.name.clone().into_iter().collect()
            }
        }
    }

    /// What the machine's node is found by.
    pub(super) fn key(&self, machine: &Machine) -> Result<String, SchedulerError> {
        let id = || one_line(&machine.id, NAME_MAX);
        if let Some(name) = &machine.known_as {
            return Ok(name.clone());
        }
        let name = match &self.by {
            NodeName::Id => machine.id.clone(),
            // As the kubelet does.
            NodeName::Hostname => machine.hostname.to_lowercase(),
            NodeName::Label(label) => {
                machine.labels.get(label).map(ToOwned::to_owned).unwrap_or_default()
            }
            NodeName::ProviderId => return Ok(machine.id.clone()),
        };
        if name.is_empty() {
            return Err(SchedulerError::UnknownNode(match &self.by {
                NodeName::Label(label) => {
                    format!("node `{}` has no label `{label}` with its name in Kubernetes", id())
                }
                NodeName::Hostname => format!("node `{}` has not said its hostname", id()),
                NodeName::Id | NodeName::ProviderId => "a node without an id".to_owned(),
            }));
        }
        if !is_name(&name) {
            let name = one_line(&name, NAME_MAX);
            let message = format!("`{name}` cannot be the name of a node in Kubernetes");
            return Err(SchedulerError::Refused(message));
        }
        Ok(name)
    }

    /// Whether a node is the machine that was looked for: one of its name may have taken its place since
    /// the nodes were listed.
    pub(super) fn is_right(&self, machine: &Machine, node: &Node) -> bool {
        let id = machine.known_as.as_ref().unwrap_or(&machine.id);
        self.by != NodeName::ProviderId || keys(node).any(|key| key == id)
    }

    /// What was listed is not believed any more.
    pub(super) async fn forget(&self) {
        *self.listed.lock().await = Listed::default();
    }

    async fn by_provider_id(&self, id: &str, client: &Client) -> Result<String, SchedulerError> {
        // Whoever lists does so for all who wait here.
        let mut listed = self.listed.lock().await;
        let just_now = |at: Timestamp| self.clock.now().duration_since(at) < LIST_AGAIN;
        if !listed.names.contains_key(id) && !listed.at.is_some_and(just_now) {
            let names = list(client).await?;
            *listed = Listed { at: Some(self.clock.now()), names };
        }
        let shown = one_line(id, NAME_MAX);
        match listed.names.get(id) {
            Some(Found::One(name)) => Ok(name.clone()),
            Some(Found::Many) => Err(SchedulerError::Refused(format!(
                "several nodes of Kubernetes have the provider's id `{shown}`"
            ))),
            None => Err(SchedulerError::UnknownNode(format!(
                "Kubernetes has no node with the provider's id `{shown}`"
            ))),
        }
    }
}

async fn list(client: &Client) -> Result<HashMap<String, Found>, SchedulerError> {
    let nodes = all(client, |node| {
        let name = node.metadata.name.clone()?;
        Some((name, keys(node).map(ToOwned::to_owned).collect::<Vec<_>>()))
    });
    let mut names = HashMap::new();
    for (name, keys) in nodes.await?.into_iter().flatten() {
        add(&mut names, &name, keys);
    }
    Ok(names)
}

/// What is to be known of each node of the cluster.
pub(super) async fn all<T>(
    client: &Client,
    known: impl Fn(&Node) -> T,
) -> Result<Vec<T>, SchedulerError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut found = Vec::new();
    let mut params = ListParams::default().limit(PAGE_MAX);
    for _ in 0..PAGES_MAX {
        let page = nodes.list(&params).await.map_err(|error| explain(&error))?;
        found.extend(page.items.iter().map(&known));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
    let most = PAGES_MAX * PAGE_MAX as usize;
    Err(SchedulerError::Refused(format!("Kubernetes has more than {most} nodes")))
}

fn add(names: &mut HashMap<String, Found>, name: &str, keys: Vec<String>) {
    for key in keys {
        let found = Found::One(name.to_owned());
        let entry = names.entry(key).or_insert_with(|| found.clone());
        if *entry != found {
            *entry = Found::Many;
        }
    }
}

/// A node is found by the provider's whole id, `aws:///us-east-1a/i-0abc`, and by its last part, `i-0abc`.
fn keys(node: &Node) -> impl Iterator<Item = &str> {
    let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
    let last = id.rsplit('/').next().filter(|last| *last != id);
    [Some(id), last].into_iter().flatten().filter(|key| !key.is_empty())
}

/// Whether a text can be a node's name: a DNS name in lower case. Anything else would be another path.
fn is_name(text: &str) -> bool {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty()
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= NAME_MAX && text.split('.').all(part)
}

#[cfg(test)]
mod tests;
