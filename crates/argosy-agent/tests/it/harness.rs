//! A control plane at a port, and what tests ask it.

use argosy_control::clock::Clock;
use argosy_control::command::NewCommand;
use argosy_control::ids::Ids;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use argosy_control::safety::Beyond;
use argosy_control::task::Tasks;
use argosy_control::{Control, Outside, Settings};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::adapter::{AdapterGraph, AdapterName, AdapterSpec, Runner};
use argosy_core::command::{Command, CommandKind, CommandState, Outcome};
use argosy_core::id::CommandId;
use argosy_core::node::Node;
use argosy_core::node::settings::{NodeSettings, Remedy};
use argosy_core::resource::Kind;
use argosy_server::Server;
use argosy_server::auth::{Authenticator, TokenEntry, hash_token};
use argosy_server::listen::{self, Limits};
use argosy_server::metrics::Metrics;
use argosy_server::profile::Profile;
use argosy_store::Store;
use argosy_store::memory::Memory;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The credential of the node `gpu-1`.
pub(crate) const TOKEN: &str = "gpu-1-token-with-enough-characters";

/// The credential that all nodes of a fleet share.
pub(crate) const FLEET_TOKEN: &str = "fleet-token-with-enough-characters";

/// A control plane. Dropping it cuts every connection.
pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) url: String,
    listening: Option<Tasks>,
    serve: Box<dyn Fn(TcpListener) -> Tasks>,
    _tasks: Tasks,
    _stop: watch::Sender<bool>,
}

/// Delivers nothing: no adapter here wants to be told.
struct Nobody;

#[async_trait::async_trait]
impl Notifier for Nobody {
    async fn send(&self, adapter: &str, _: &str, _: &CloudEvent) -> Result<(), SendError> {
        Err(SendError::Refused(format!("{adapter} is external")))
    }
}

fn graph() -> AdapterGraph {
    let external = |name: &str| AdapterSpec {
        name: AdapterName::parse(name).unwrap(),
        depends_on: Vec::new(),
        required: true,
        deadline: SignedDuration::from_hours(1),
        runner: Runner::External,
    };
    let kinds = [
        (Kind::Cluster, vec![external("validation")]),
        (Kind::NodePool, vec![external("validation")]),
    ];
    AdapterGraph::new(BTreeMap::from(kinds)).unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        let (store, driver) = Store::open(Arc::new(Memory::new())).await.unwrap();
        let mut tasks = Tasks::default();
        tasks.start("store", driver.run());
        let day = SignedDuration::from_hours(24);
        let mut nodes = NodeSettings::default();
        nodes.defaults.remedy = Remedy::Observe;
        let settings = Settings {
            adapters: graph(),
            rules: Default::default(),
            window: Default::default(),
            catalog: Default::default(),
            authorization: Authorization::Team,
            conditions: BTreeMap::new(),
            machines: Default::default(),
            nodes,
            protect_new: false,
            tombstones_kept: day,
            idempotency_kept: day,
            audit_kept: day,
            history_kept: day,
        };
        let outside = Outside {
            clouds: BTreeMap::new(),
            notifier: Arc::new(Nobody),
            schedulers: Vec::new(),
            extensions: Default::default(),
        };
        let clock = Clock::System;
        let control =
            Control::start(store, settings, outside, clock, Ids::Random, "test", &mut tasks);
        let (stop, shutdown) = watch::channel(false);
        let token = TokenEntry {
            name: "gpu-1".to_owned(),
            sha256: hash_token(TOKEN),
            role: Role::Node,
            teams: Vec::new(),
            tenant: "one".to_owned(),
            adapter: None,
            node: Some("gpu-1".to_owned()),
            expires: None,
        };
        let fleet = TokenEntry {
            name: "fleet".to_owned(),
            sha256: hash_token(FLEET_TOKEN),
            node: None,
            ..token.clone()
        };
        let tokens = vec![token, fleet];
        let authenticator = Authenticator::new(tokens, Vec::new(), clock).await.unwrap();
        let server = Server {
            control: control.clone(),
            profile: Profile::Full,
            authenticator,
            metrics: Metrics::new("test", Timestamp::UNIX_EPOCH),
            dashboard: &[],
            demo: false,
            mounts: Vec::new(),
            shutdown: shutdown.clone(),
            version: "1.2.3".to_owned(),
            build_time: "today".to_owned(),
        };
        let app = server.router();
        let serve = move |listener| {
            let mut tasks = Tasks::default();
            let metrics = Metrics::new("test", Timestamp::UNIX_EPOCH);
            let (app, limits) = (app.clone(), Limits::default());
            let serving = listen::serve(listener, None, app, limits, metrics, shutdown.clone());
            tasks.start("listen", serving);
            tasks
        };
        let mut world = Self {
            control,
            url: String::new(),
            listening: None,
            serve: Box::new(serve),
            _tasks: tasks,
            _stop: stop,
        };
        world.listen().await;
        world
    }

    /// Listens, at the port of before if there was one.
    pub(crate) async fn listen(&mut self) {
        let port = self.url.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        self.url = format!("http://{}", listener.local_addr().unwrap());
        self.listening = Some((self.serve)(listener));
    }

    /// Cuts every connection and listens no more.
    pub(crate) fn vanish(&mut self) {
        self.listening = None;
    }

    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        self.node_of("gpu-1")
    }

    pub(crate) fn node_of(&self, id: &str) -> Option<Arc<Node>> {
        self.control.nodes.get(&admin(), id).ok().map(|(node, _)| node.value)
    }

    pub(crate) async fn node_until(&self, what: &str, is: impl Fn(&Node) -> bool) -> Arc<Node> {
        await_until(what, || self.node().filter(|node| is(node))).await
    }

    pub(crate) async fn issue(&self, kind: CommandKind, parameters: &[(&str, &str)]) -> CommandId {
        self.issue_to("gpu-1", kind, parameters).await
    }

    pub(crate) async fn issue_to(
        &self,
        node: &str,
        kind: CommandKind,
        parameters: &[(&str, &str)],
    ) -> CommandId {
        let parameters =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let new = NewCommand {
            kind,
            parameters: parameters.collect(),
            reason: "a test".to_owned(),
            drain_for: None,
            idempotency_key: None,
            if_revision: None,
            dry_run: false,
            beyond: Beyond::Refuse,
        };
        self.control.commands.issue(&admin(), node, new).await.unwrap().value.id
    }

    pub(crate) fn command(&self, id: CommandId) -> Arc<Command> {
        self.control.commands.get(&admin(), id).unwrap().value
    }

    /// How a command ended, with what was said about it.
    pub(crate) async fn ended(&self, id: CommandId) -> (Outcome, String, serde_json::Value) {
        await_until("the command to end", || match &self.command(id).state {
            CommandState::Done { outcome, message, result, .. } => {
                Some((*outcome, message.clone(), result.clone().unwrap_or_default()))
            }
            CommandState::Pending | CommandState::Acknowledged { .. } => None,
        })
        .await
    }
}

/// Somebody between an agent and its control plane.
pub(crate) struct Between {
    pub(crate) url: String,
    pub(crate) mode: Arc<Mutex<Mode>>,
    _tasks: Tasks,
}

/// What somebody in between does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Lets HTTP/1.1 pass, and ends what begins as HTTP/2 does.
    Old,
    /// Answers rubbish.
    Rubbish,
    /// Lets everything pass.
    Open,
}

impl Between {
    pub(crate) async fn new(world: &World, mode: Mode) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let target = world.url.trim_start_matches("http://").to_owned();
        let mode = Arc::new(Mutex::new(mode));
        let current = mode.clone();
        let mut tasks = Tasks::default();
        tasks.start("between", async move {
            let mut connections = JoinSet::new();
            loop {
                let (near, _) = listener.accept().await?;
                let mode = *current.lock().unwrap();
                connections.spawn(pass(near, target.clone(), mode));
            }
            #[expect(unreachable_code, reason = "says the type")]
            std::io::Result::Ok(())
        });
        Self { url, mode, _tasks: tasks }
    }
}

async fn pass(mut near: TcpStream, target: String, mode: Mode) {
    let mut first = [0; 4];
    if near.peek(&mut first).await.is_err() {
        return;
    }
    if mode == Mode::Rubbish {
        _ = near.write_all(&[0x16; 4096]).await;
        return;
    }
    if mode == Mode::Old && first == *b"PRI " {
        return;
    }
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
}

/// The administrator, past the door.
pub(crate) fn admin() -> Caller {
    Caller {
        subject: "admin".to_owned(),
        via: "token",
        tenant: "one".to_owned(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id: "test".to_owned(),
    }
}

/// Asks until there is an answer. Of another process there is no other way to know.
pub(crate) async fn await_until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(answer) = ask() {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}

/// A directory of one test, gone when it is dropped.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-agent-it-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A program of the test's.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
