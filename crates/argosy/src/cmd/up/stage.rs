//! Where faults are done: to machines of the simulated cloud over its console, to agents on this host over
//! their own socket. The demonstration's script and `argosy demo inject` come here alike.

use super::fault::{self, Act, Script};
use super::fleet::LOCAL;
use argosy_agent::gpu::fake::injection::{Injection, InjectionError};
use argosy_agent::inject::{self, SOCKET};
use argosy_api::client::{Client, ClientError};
use argosy_api::fleet::{FleetGpuList, NodeGpus};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{info, warn};

/// Where the demonstration's door is.
pub(crate) const PREFIX: &str = "/demo/v1";

/// The script's file in the data directory.
const SCRIPT_FILE: &str = "demo.json";

/// What somebody wants to go wrong.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// Where; without it, somewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The name of a fault, or the words of `argosy-agent inject`.
    pub(crate) fault: String,
}

/// What was done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deed {
    /// To which node.
    pub(crate) node: String,
    /// In which pool.
    pub(crate) pool: String,
    /// What, in the words of the agent, or `silent`.
    pub(crate) what: String,
    /// What happens there.
    pub(crate) says: String,
    /// What is going to happen.
    pub(crate) then: String,
    /// Where to look.
    pub(crate) page: String,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// Nothing is called that.
    #[error("nothing is called `{0}`; `argosy demo faults` lists what is")]
    NoSuchFault(String),
    /// There is no such node.
    #[error("there is no node `{0}`")]
    NoSuchNode(String),
    /// Nothing can be broken now.
    #[error("no node is in service and well; wait a moment, the fleet mends itself")]
    NobodyWell,
    /// It does not fit.
    #[error("{0}")]
    Refused(String),
    /// The server does not answer itself.
    #[error("the fleet cannot be read: {0}")]
    Server(#[from] ClientError),
}

/// The demonstration while it runs.
pub(super) struct Stage {
    client: Client,
    /// `http://127.0.0.1:8080`.
    server: String,
    data_dir: PathBuf,
    script: Mutex<Script>,
}

impl Stage {
    /// Goes on where the last one was, unless another seed is asked for.
    pub(super) fn open(client: Client, server: String, data_dir: &Path, seed: u64) -> Self {
        let kept = std::fs::read_to_string(data_dir.join(SCRIPT_FILE)).ok();
        let kept = kept.and_then(|text| serde_json::from_str::<Script>(&text).ok());
        let script = kept.filter(|kept| kept.seed == seed).unwrap_or_else(|| Script::new(seed));
        Self { client, server, data_dir: data_dir.to_owned(), script: Mutex::new(script) }
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        // Nothing under the lock can leave it half changed.
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets faults come, for ever.
    pub(super) async fn play(&self) {
        loop {
            let pause = self.script().pause();
            tokio::time::sleep(pause).await;
            let fault = self.script().fault();
            let wish = Wish { node: None, fault: fault.name.to_owned() };
            match self.cause(&wish).await {
                Ok(deed) => {
                    info!(node = deed.node, what = deed.what, "a fault of the demonstration")
                }
                // The next one is another.
                Err(error) => {
                    self.script().count += 1;
                    warn!(%error, fault = fault.name, "a fault of the demonstration did not come");
                }
            }
        }
    }

    /// Makes something go wrong now.
    pub(super) async fn cause(&self, wish: &Wish) -> Result<Deed, StageError> {
        let node = match &wish.node {
            Some(node) => self.node(node).await?,
            None => self.somebody().await?,
        };
        let gpus = node.gpus.max(1);
        let gpu = self.script().choice("gpu", gpus).and_then(|gpu| u32::try_from(gpu).ok());
        let known = fault::named(wish.fault.trim());
        let act = match known {
            Some(fault) => fault.act(gpu.unwrap_or(0)),
            None => Act::Inject(words(&wish.fault, gpu.unwrap_or(0))?),
        };
        self.act(&node, &act).await?;
        let healed = self.script().done(&node.id);
        self.keep();
        if let Some(healed) = healed {
            // Most were replaced meanwhile.
            if let Ok(node) = self.node(&healed).await {
                let _ = self.act(&node, &Act::Inject(Injection::Heal { gpu: None })).await;
            }
        }
        Ok(Deed {
            page: format!("{}/ui/nodes/{}", self.server, node.id),
            pool: node.pool.unwrap_or_default(),
            node: node.id,
            what: match act {
                Act::Inject(injection) => injection.to_string(),
                Act::Silence => "silent".to_owned(),
            },
            says: known.map_or("what you asked for", |fault| fault.says).to_owned(),
            then: known.map_or("the policy says how bad it is", |fault| fault.then).to_owned(),
        })
    }

    async fn act(&self, node: &NodeGpus, act: &Act) -> Result<(), StageError> {
        match (node.provider == LOCAL, act) {
            (true, Act::Silence) => Err(StageError::Refused(format!(
                "{} is a process of this host: `kill -9` it, and it is silent",
                node.id
            ))),
            (true, Act::Inject(injection)) => {
                let room = self.data_dir.join("machines").join(LOCAL).join(&node.id);
                let (socket, injection) = (room.join("data").join(SOCKET), injection.clone());
                let sent = tokio::task::spawn_blocking(move || inject::send(&socket, &injection));
                let sent = sent.await.map_err(|error| StageError::Refused(error.to_string()))?;
                sent.map_err(|error| StageError::Refused(error.to_string()))
            }
            (false, Act::Silence) => {
                let fault = json!({ "kind": "Kill", "match": node.id, "count": 1 });
                self.console("/faults", &fault).await
            }
            (false, Act::Inject(injection)) => {
                let what = json!({ "what": injection.to_string() });
                self.console(&format!("/machines/{}/inject", node.id), &what).await
            }
        }
    }

    async fn console(&self, path: &str, body: &Value) -> Result<(), StageError> {
        let path = format!("/simulated-cloud/v1{path}");
        match self.client.send(Method::POST, &path, Some(body)).await {
            Ok(_) => Ok(()),
            Err(ClientError::Unexpected { text, .. }) => {
                let said: Value = serde_json::from_str(&text).unwrap_or_default();
                let detail = said.get("detail").and_then(Value::as_str).unwrap_or(&text);
                Err(StageError::Refused(detail.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn node(&self, id: &str) -> Result<NodeGpus, StageError> {
        let all = self.nodes("").await?.into_iter();
        let found = all.into_iter().find(|node| node.id == id);
        found.ok_or_else(|| StageError::NoSuchNode(id.to_owned()))
    }

    /// A node that is well and has GPUs.
    async fn somebody(&self) -> Result<NodeGpus, StageError> {
        let well = self.nodes("?status=ACTIVE&health=HEALTHY&liveness=Fresh").await?;
        let mut well: Vec<NodeGpus> = well.into_iter().filter(|node| 0 < node.gpus).collect();
        let chosen = self.script().choice("node", well.len()).ok_or(StageError::NobodyWell)?;
        Ok(well.swap_remove(chosen))
    }

    async fn nodes(&self, query: &str) -> Result<Vec<NodeGpus>, StageError> {
        let path = format!("/api/argosy/v1/fleet/gpus{query}");
        let all = self.client.send(Method::GET, &path, None).await?;
        let all: FleetGpuList = serde_json::from_value(all)
            .map_err(|error| StageError::Refused(format!("the fleet cannot be read: {error}")))?;
        Ok(all.items)
    }

    /// Writes down where the script is. If that fails, the next start plays a few faults again.
    fn keep(&self) {
        let text = serde_json::to_string(&*self.script()).unwrap_or_default();
        let (file, new) = (self.data_dir.join(SCRIPT_FILE), self.data_dir.join("demo.json.new"));
        let kept = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file));
        if let Err(error) = kept {
            warn!(%error, "the demonstration's place cannot be kept");
        }
    }
}

/// An injection in its own words; a GPU is chosen if they need one and name none.
fn words(text: &str, gpu: u32) -> Result<Injection, StageError> {
    let text = text.trim();
    let refused = |error: InjectionError| match error {
        InjectionError::UnknownKind { word } => StageError::NoSuchFault(word),
        other @ (InjectionError::Missing { .. }
        | InjectionError::BadValue { .. }
        | InjectionError::Unused { .. }
        | InjectionError::TooLong { .. }) => StageError::Refused(other.to_string()),
    };
    match text.parse() {
        Ok(injection) => Ok(injection),
        Err(error) if text.contains("gpu:") => Err(refused(error)),
        Err(_) => format!("{text} gpu:{gpu}").parse().map_err(refused),
    }
}

/// The door for `argosy demo`. Who may ask is decided in front of it.
pub(super) fn router(stage: Arc<Stage>) -> Router {
    Router::new().route("/faults", get(faults)).route("/inject", post(cause)).with_state(stage)
}

async fn faults() -> Json<Value> {
    let item = |fault: &fault::Fault| json!({ "name": fault.name, "says": fault.says, "then": fault.then });
    Json(json!({ "items": fault::FAULTS.iter().map(item).collect::<Vec<_>>() }))
}

async fn cause(State(stage): State<Arc<Stage>>, Json(wish): Json<Wish>) -> Response {
    match stage.cause(&wish).await {
        Ok(deed) => Json(deed).into_response(),
        Err(error) => {
            let status = match error {
                StageError::NoSuchNode(_) => StatusCode::NOT_FOUND,
                StageError::NoSuchFault(_) | StageError::Refused(_) => StatusCode::BAD_REQUEST,
                StageError::NobodyWell => StatusCode::CONFLICT,
                StageError::Server(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, Json(json!({ "detail": error.to_string() }))).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_leave_the_gpu_open() {
        let rows = [
            ("xid:79", Some("xid:79 gpu:4")),
            ("xid:79 gpu:1", Some("xid:79 gpu:1")),
            (" heal ", Some("heal")),
            ("temperature:97", Some("temperature:97 gpu:4")),
            ("xid", None),
            ("nonsense", None),
        ];
        for (text, expected) in rows {
            let parsed = words(text, 4).ok().map(|injection| injection.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
        assert!(
            matches!(words("nonsense", 0), Err(StageError::NoSuchFault(word)) if word == "nonsense")
        );
    }
}
