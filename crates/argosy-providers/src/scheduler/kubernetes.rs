//! Kubernetes, by its API: nodes are tainted and marked unschedulable, pods are evicted.
//!
//! What a newcomer gets wrong: an eviction may be refused now and taken later, because a
//! PodDisruptionBudget says so. So a drain is not one request but a question that is asked again, each time
//! somebody looks how far it is; its deadline stands on the node itself, where any process finds it.

mod mark;
mod name;
mod pod;

use super::{SettingsError, one_line};
use argosy_control::clock::Clock;
use argosy_control::scheduler::{
    Abilities, Drain, DrainStatus, Listed, Machine, Scheduler, SchedulerError,
};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use http::Response;
use http_body_util::Limited;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::{ClientBuilder, DynBody};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{Status, params};
use kube::{Api, Client, Config};
use mark::Wish;
use name::Names;
use pod::{Fate, Left};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Semaphore;
use tower::util::MapResponseLayer;

/// How Kubernetes is reached, and how gentle a drain is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesSettings {
    /// Where the API is, and who we are there.
    pub access: Access,
    /// What a machine is called in Kubernetes.
    pub node: NodeName,
    /// How long a pod may take to end, instead of what it asks for itself.
    pub grace: Option<Duration>,
    /// Whether pods that are left at the deadline of a drain are deleted, past their disruption budgets.
    /// Otherwise they stay.
    pub force: bool,
}

/// Where the API is, and who we are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// We run in a pod of the cluster, under its service account.
    #[default]
    InCluster,
    /// A file as `kubectl` has it.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// One of its contexts, if it is not the current one.
        context: Option<String>,
    },
}

/// What a machine is called in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeName {
    /// As it is called by us.
    #[default]
    Id,
    /// By its hostname, as the kubelet does unless it is told otherwise.
    Hostname,
    /// What a label of ours says.
    Label(String),
    /// As the node whose `spec.providerID` is our id, or ends with it after a slash: the cloud's name.
    ProviderId,
}

/// Cordons and drains nodes of a Kubernetes cluster.
///
/// Guarantees: only what we set on a node is taken back; pods of DaemonSets, mirror pods and finished ones
/// are left alone; nothing is evicted after the deadline of a drain, or after it was called off.
pub struct KubernetesScheduler {
    client: Client,
    address: String,
    names: Names,
    grace_s: Option<u32>,
    force: bool,
    clock: Clock,
    places: Semaphore,
}

/// An API server that does not take the connection in this time is not there.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long one call may take, with everything it asks. A node with a hundred pods takes a second.
const CALL_MAX: Duration = Duration::from_secs(30);

/// How many calls are under way at once. A thousand nodes are cordoned in seconds; more at once would only
/// meet the API server's own limits.
const CALLS_MAX: usize = 16;

/// How many pods of a node are evicted at once: as many as the API server takes from one client without
/// making others wait.
const EVICTIONS_MAX: usize = 8;

/// The most of one answer that is read. A page of the longest list has a tenth of it.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How many objects are asked for in one answer.
const PAGE_MAX: u32 = 250;

/// How many pages of pods a node may have. A kubelet runs 110 pods, at the most a thousand; finished ones
/// are not asked for.
const POD_PAGES_MAX: usize = 20;

/// How often a node is read and written again when somebody else wrote in between.
const ATTEMPTS_MAX: usize = 5;

/// The longest text of the API server that is passed on, in characters.
const MESSAGE_MAX: usize = 300;

impl KubernetesScheduler {
    /// Reads the credentials. The API server is not asked yet; a program that the file names for
    /// credentials is run.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub async fn new(settings: KubernetesSettings, clock: Clock) -> Result<Self, SettingsError> {
        let mut config = match settings.access {
            Access::InCluster => {
                Config::incluster().map_err(|cause| SettingsError::new("in_cluster", cause))?
            }
            Access::Kubeconfig { path, context } => {
                let wrong = |cause| SettingsError::new("kubeconfig", cause);
                let file = Kubeconfig::read_from(&path).map_err(wrong)?;
                let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
                Config::from_custom_kubeconfig(file, &options).await.map_err(wrong)?
            }
        };
        config.connect_timeout = Some(CONNECT_MAX);
        config.read_timeout = Some(CALL_MAX);
        config.reset_reader_on_write = true;
        // A disruption budget says 429, too, and whoever asked is to hear it.
        config.default_retry = false;
        let address = config.cluster_url.to_string();
        let limit = |answer: Response<Box<DynBody>>| {
            answer.map(|body| Limited::new(body, ANSWER_BYTES_MAX))
        };
        let client = ClientBuilder::try_from(config)
            .map_err(|cause| SettingsError::new("kubernetes", cause))?
            .with_layer(&MapResponseLayer::new(limit))
            .build();
        let grace_s = settings.grace.map(|grace| grace.as_secs().try_into().unwrap_or(u32::MAX));
        Ok(Self {
            names: Names::new(settings.node, clock),
            client,
            address,
            grace_s,
            force: settings.force,
            clock,
            places: Semaphore::new(CALLS_MAX),
        })
    }

    /// One call: in its turn, and not for ever.
    async fn call<T>(
        &self,
        work: impl Future<Output = Result<T, SchedulerError>>,
    ) -> Result<T, SchedulerError> {
        let closed = |cause: tokio::sync::AcquireError| SchedulerError::Later(cause.to_string());
        let _place = self.places.acquire().await.map_err(closed)?;
        tokio::time::timeout(CALL_MAX, work).await.unwrap_or_else(|_| {
            let seconds = CALL_MAX.as_secs();
            Err(SchedulerError::Later(format!("Kubernetes was not done in {seconds} s")))
        })
    }

    /// The machine's node, and its name.
    async fn find(&self, machine: &Machine) -> Result<(String, Node), SchedulerError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = self.names.of(machine, &self.client).await?;
        let node = nodes.get(&name).await.map_err(|error| match said(&error) {
            Some(status) if is_missing_node(status) => {
                SchedulerError::UnknownNode(format!("Kubernetes has no node `{name}`"))
            }
            Some(_) | None => explain(&error),
        });
        let right = node.as_ref().is_ok_and(|node| self.names.is_right(machine, node));
        if !right {
            self.names.forget().await;
        }
        match node {
            Ok(_) if !right => Err(SchedulerError::Later(format!(
                "node `{name}` of Kubernetes is another machine by now"
            ))),
            node => Ok((name, node?)),
        }
    }

    /// Brings a node to where it should be; its name.
    async fn bring(&self, machine: &Machine, wish: &Wish<'_>) -> Result<String, SchedulerError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        for _ in 0..ATTEMPTS_MAX {
            let (name, node) = self.find(machine).await?;
            let Some(patch) = mark::patch(&node, wish) else { return Ok(name) };
            match nodes.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => return Ok(name),
                // Somebody else wrote in between: the taints would lose theirs.
                Err(error) if said(&error).is_some_and(Status::is_conflict) => {}
                Err(error) => return Err(explain(&error)),
            }
        }
        Err(SchedulerError::Later("the node is being changed by others all the time".to_owned()))
    }

    /// The pods that have to leave a node, in the order of their names.
    async fn left(&self, node: &str) -> Result<Vec<Left>, SchedulerError> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let running = format!("spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed");
        let mut params = ListParams::default().fields(&running).limit(PAGE_MAX);
        let mut found = Vec::new();
        for _ in 0..POD_PAGES_MAX {
            let page = pods.list_metadata(&params).await.map_err(|error| explain(&error))?;
            found.extend(page.items.iter().filter_map(|pod| Left::of(&pod.metadata)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => {
                    found.sort();
                    return Ok(found);
                }
            }
        }
        let most = POD_PAGES_MAX * PAGE_MAX as usize;
        Err(SchedulerError::Refused(format!("node `{node}` has more than {most} pods")))
    }

    /// Asks every pod to leave that was not asked yet.
    async fn evict(&self, left: Vec<Left>, gently: bool) -> Vec<(Left, Fate)> {
        let asked = stream::iter(left).map(|pod| async move {
            let fate = match pod.leaving {
                true => Fate::Leaving,
                false => self.evict_one(&pod, gently).await,
            };
            (pod, fate)
        });
        let mut fates: Vec<(Left, Fate)> = asked.buffer_unordered(EVICTIONS_MAX).collect().await;
        fates.sort_by(|(one, _), (other, _)| one.cmp(other));
        fates
    }

    async fn evict_one(&self, pod: &Left, gently: bool) -> Fate {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        // One of the same name may stand elsewhere by now.
        let uid = Some(pod.uid.clone());
        let answer = if gently {
            // Not `Api::evict`: in kube 5 it writes `delete_options`, which no API server reads.
            let eviction = Eviction {
                metadata: ObjectMeta { name: Some(pod.name.clone()), ..ObjectMeta::default() },
                delete_options: Some(DeleteOptions {
                    grace_period_seconds: self.grace_s.map(i64::from),
                    preconditions: Some(Preconditions { uid, ..Preconditions::default() }),
                    ..DeleteOptions::default()
                }),
            };
            let params = PostParams::default();
            let asked = pods.create_subresource("eviction", &pod.name, &params, &eviction).await;
            asked.map(|_: Status| ())
        } else {
            let params = DeleteParams {
                grace_period_seconds: self.grace_s,
                preconditions: Some(params::Preconditions { uid, resource_version: None }),
                ..DeleteParams::default()
            };
            pods.delete(&pod.name, &params).await.map(drop)
        };
        match answer {
            Ok(()) => Fate::Leaving,
            Err(error) => match said(&error).map(|status| (status.code, status)) {
                Some((404, _)) => Fate::Gone,
                // Another of the same name, or the same in another version: the next look will tell.
                Some((409, _)) => Fate::Held("it changed in the meantime".to_owned()),
                Some((429, status)) => Fate::Held(held_by(status)),
                Some(_) | None => Fate::Failed(explain(&error)),
            },
        }
    }

    /// Goes on with a drain as far as its deadline allows, and says what is left.
    async fn push_on(
        &self,
        node: &str,
        deadline: Option<Timestamp>,
        force: bool,
    ) -> Result<DrainStatus, SchedulerError> {
        let left = self.left(node).await?;
        let asked = left.iter().all(|pod| pod.leaving);
        let over = deadline.is_none_or(|deadline| deadline <= self.clock.now());
        let fates = if !over {
            self.evict(left, true).await
        } else if force && deadline.is_some() {
            let fates = self.evict(left, false).await;
            // Those who are leaving anyway are not ended by us.
            return Ok(match pod::sum_up(fates, true)? {
                DrainStatus::Draining { left, message } if !asked => {
                    DrainStatus::Ending { left, message }
                }
                status => status,
            });
        } else {
            left.into_iter().map(|pod| (pod, Fate::Stays)).collect()
        };
        pod::sum_up(fates, over && deadline.is_some())
    }
}

#[async_trait]
impl Scheduler for KubernetesScheduler {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn abilities(&self) -> Abilities {
        Abilities { list: true, cordon: true, drain: true }
    }

    fn name_of(&self, machine: &Machine) -> Result<String, SchedulerError> {
        self.names.key(machine)
    }

    async fn cordon(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError> {
        let wish = Wish::Out { reason, deadline: None };
        self.call(self.bring(machine, &wish)).await.map(drop)
    }

    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError> {
        self.call(self.bring(machine, &Wish::In)).await.map(drop)
    }

    async fn drain(&self, machine: &Machine, drain: &Drain) -> Result<(), SchedulerError> {
        let Drain { reason, deadline, .. } = drain;
        let wish = Wish::Out { reason, deadline: Some(*deadline) };
        self.call(async {
            let name = self.bring(machine, &wish).await?;
            // What is ended by force is ended by who asks: then it is known that it was.
            self.push_on(&name, Some(*deadline), false).await.map(drop)
        })
        .await
    }

    async fn drain_status(
        &self,
        machine: &Machine,
        drain: &Drain,
    ) -> Result<DrainStatus, SchedulerError> {
        self.call(async {
            let (name, node) = self.find(machine).await?;
            let force = self.force || drain.force;
            let status = self.push_on(&name, mark::deadline(&node), force).await?;
            if mark::is_out(&node) {
                return Ok(status);
            }
            let left = match status {
                DrainStatus::Drained | DrainStatus::Forced => Some(0),
                DrainStatus::Draining { left, .. } | DrainStatus::Ending { left, .. } => left,
            };
            let message = format!("node {name} is no longer cordoned in Kubernetes");
            Ok(DrainStatus::Draining { left, message })
        })
        .await
    }

    async fn list(&self) -> Result<Vec<Listed>, SchedulerError> {
        let nodes = name::all(&self.client, |node| {
            let (out, note) = mark::shown(node);
            let named = self.names.keys_of(node).into_iter();
            named.map(|name| Listed { name, out, note: note.clone() }).collect::<Vec<_>>()
        });
        Ok(nodes.await?.into_iter().flatten().collect())
    }
}

/// What the API server said, if it was the one who spoke.
fn said(error: &kube::Error) -> Option<&Status> {
    if let kube::Error::Api(status) = error { Some(status) } else { None }
}

/// Whether it was the API server that said so, and about a node: a wrong address answers 404, too.
fn is_missing_node(status: &Status) -> bool {
    let of_nodes = status.details.as_ref().is_some_and(|details| details.kind == "nodes");
    status.code == 404 && status.reason == "NotFound" && of_nodes
}

/// Who holds a pod back.
fn held_by(status: &Status) -> String {
    let details = status.details.iter();
    let causes: Vec<&str> = details
        .flat_map(|details| &details.causes)
        .map(|cause| cause.message.as_str())
        .filter(|message| !message.is_empty())
        .collect();
    let text = if causes.is_empty() { status.message.clone() } else { causes.join("; ") };
    one_line(&text, MESSAGE_MAX)
}

fn explain(error: &kube::Error) -> SchedulerError {
    let Some(status) = said(error) else {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        return SchedulerError::Later(one_line(&format!("Kubernetes: {message}"), MESSAGE_MAX));
    };
    let code = status.code;
    let message = one_line(&format!("Kubernetes answered {code}: {}", status.message), MESSAGE_MAX);
    match code {
        // The page of a list is too old, or the request came too soon or too late.
        408 | 409 | 410 | 425 | 429 => SchedulerError::Later(message),
        400..500 => SchedulerError::Refused(message),
        _ => SchedulerError::Later(message),
    }
}

#[cfg(test)]
mod tests;
