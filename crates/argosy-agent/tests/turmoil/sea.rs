//! A control plane and some machines on a simulated network.

use argosy_agent::agent::{Event, Loss};
use argosy_agent::clock::Simulated;
use argosy_agent::gpu::fake::injection::Injection;
use argosy_agent::link::{Called, Connection, Dial, Link, Token};
use argosy_agent::swarm::{AgentNumber, Line, Load, Spec, Swarm};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::Hello;
use argosy_control::clock::Clock;
use argosy_control::ids::Ids;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use argosy_control::task::Tasks;
use argosy_control::{Control, Outside, Settings};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::adapter::{AdapterGraph, AdapterName, AdapterSpec, Runner};
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
use axum::body::Body;
use axum::http::Request;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tower::ServiceExt;
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

const EPOCH: &str = "2026-11-15T00:00:00Z";
const TOKEN: &str = "fleet-token-with-enough-characters";
const PORT: u16 = 8080;
/// How often the test looks at what it waits for: not at every tick, because looking costs more than one.
const LOOK_EVERY: u32 = 5;

/// The simulated world.
pub(crate) struct Sea {
    pub(crate) sim: Sim<'static>,
    shared: Arc<Shared>,
}

/// What outlives a host that is restarted, and what the test looks at.
struct Shared {
    /// The disk of the control plane.
    engine: Arc<Memory>,
    /// The control planes that run, by host.
    planes: Mutex<BTreeMap<String, (axum::Router, Control)>>,
    faults: Mutex<BTreeMap<String, mpsc::Sender<Injection>>>,
    trace: Mutex<Vec<Traced>>,
    starts: Mutex<BTreeMap<String, u32>>,
}

/// One thing that happened on a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traced {
    pub(crate) at: Duration,
    pub(crate) node: String,
    pub(crate) word: String,
}

/// How the network is.
pub(crate) struct Weather {
    pub(crate) seed: u64,
    pub(crate) latency_ms: (u64, u64),
}

impl Default for Weather {
    fn default() -> Self {
        Self { seed: 1, latency_ms: (1, 5) }
    }
}

impl Sea {
    /// Control planes on hosts of these names, which share one disk, and `nodes` machines that know them all.
    pub(crate) fn new(weather: &Weather, servers: &[&str], nodes: usize) -> Self {
        let shared = Arc::new(Shared {
            engine: Arc::new(Memory::new()),
            planes: Mutex::default(),
            faults: Mutex::default(),
            trace: Mutex::default(),
            starts: Mutex::default(),
        });
        let epoch = std::time::UNIX_EPOCH + Duration::from_secs(1_794_700_800);
        let mut sim = Builder::new()
            .rng_seed(weather.seed)
            .epoch(epoch)
            .simulation_duration(Duration::from_secs(86_400))
            .tick_duration(Duration::from_millis(20))
            .min_message_latency(Duration::from_millis(weather.latency_ms.0))
            .max_message_latency(Duration::from_millis(weather.latency_ms.1))
            .build();
        for server in servers {
            let (shared, name) = (shared.clone(), (*server).to_owned());
            sim.host(*server, move || plane(shared.clone(), name.clone()));
        }
        let addresses: Vec<String> =
            servers.iter().map(|server| format!("http://{server}:{PORT}")).collect();
        for number in 0..nodes {
            let (shared, name) = (shared.clone(), node_name(number));
            let addresses = addresses.clone();
            sim.host(node_name(number), move || {
                machine(shared.clone(), name.clone(), addresses.clone())
            });
        }
        Self { sim, shared }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.sim.elapsed() + time;
        while self.sim.elapsed() < until {
            self.sim.step().unwrap();
        }
    }

    /// Lets time pass until something holds, which it must within a limit; how long it took.
    #[track_caller]
    pub(crate) fn until(
        &mut self,
        what: &str,
        limit: Duration,
        mut holds: impl FnMut(&Self) -> bool,
    ) -> Duration {
        let began = self.sim.elapsed();
        loop {
            if holds(self) {
                return self.sim.elapsed() - began;
            }
            let passed = self.sim.elapsed() - began;
            assert!(passed <= limit, "{what}: not within {limit:?}\n{}", self.story());
            for _ in 0..LOOK_EVERY {
                self.sim.step().unwrap();
            }
        }
    }

    /// A figure of a control plane's.
    pub(crate) fn metric(&self, server: &str, name: &str) -> u64 {
        let planes = self.shared.planes.lock().unwrap();
        let Some((app, _)) = planes.get(server) else { return 0 };
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let text = runtime.block_on(async {
            let answer = app.clone().oneshot(request).await.unwrap();
            let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        });
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }

    /// How many streams a control plane holds open.
    pub(crate) fn attached(&self, server: &str) -> usize {
        usize::try_from(self.metric(server, "argosy_attached")).unwrap()
    }

    pub(crate) fn node(&self, server: &str, number: usize) -> Option<Arc<Node>> {
        let planes = self.shared.planes.lock().unwrap();
        let (_, control) = planes.get(server)?;
        control.nodes.get(&admin(), &node_name(number)).ok().map(|(node, _)| node.value)
    }

    /// Makes a GPU of a machine fail.
    pub(crate) fn fail(&self, number: usize, injection: &str) {
        let faults = self.shared.faults.lock().unwrap();
        faults[&node_name(number)].try_send(injection.parse().unwrap()).unwrap();
    }

    pub(crate) fn trace(&self) -> Vec<Traced> {
        self.shared.trace.lock().unwrap().clone()
    }

    /// What happened since a time, of one kind.
    pub(crate) fn since(&self, at: Duration, word: &str) -> Vec<Traced> {
        let trace = self.shared.trace.lock().unwrap();
        let wanted = |traced: &&Traced| at <= traced.at && traced.word.starts_with(word);
        trace.iter().filter(wanted).cloned().collect()
    }

    /// The latest of what happened, for whoever reads a failure.
    fn story(&self) -> String {
        let trace = self.shared.trace.lock().unwrap();
        let mut story = String::new();
        for Traced { at, node, word } in trace.iter().rev().take(40).rev() {
            writeln!(story, "{:>9.2} s  {node}  {word}", at.as_secs_f64()).unwrap();
        }
        story
    }
}

/// Everything that happened on every line and when, as one number.
pub(crate) fn digest(trace: &[Traced]) -> u64 {
    let mut text = String::new();
    for Traced { at, node, word } in trace {
        writeln!(text, "{} {node} {word}", at.as_millis()).unwrap();
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(crate) fn node_name(number: usize) -> String {
    format!("gpu-{number}")
}

impl Shared {
    fn note(&self, node: &str, word: impl Into<String>) {
        let at = turmoil::sim_elapsed().unwrap_or_default();
        let traced = Traced { at, node: node.to_owned(), word: word.into() };
        self.trace.lock().unwrap().push(traced);
    }

    /// Which start of a host this is.
    fn starts(&self, host: &str) -> u32 {
        let mut starts = self.starts.lock().unwrap();
        let starts = starts.entry(host.to_owned()).or_default();
        *starts += 1;
        *starts
    }
}

fn now() -> Timestamp {
    let epoch: Timestamp = EPOCH.parse().unwrap();
    epoch + SignedDuration::try_from(turmoil::sim_elapsed().unwrap_or_default()).unwrap()
}

/// The socket of a simulated host.
struct Door(TcpListener);

impl listen::Listener for Door {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.0.accept().await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Delivers nothing: no adapter here wants to be told.
struct Nobody;

#[async_trait::async_trait]
impl Notifier for Nobody {
    async fn send(&self, adapter: &str, _: &str, _: &CloudEvent) -> Result<(), SendError> {
        Err(SendError::Refused(format!("{adapter} is external")))
    }
}

fn settings() -> Settings {
    let external = || {
        vec![AdapterSpec {
            name: AdapterName::parse("validation").unwrap(),
            depends_on: Vec::new(),
            required: true,
            deadline: SignedDuration::from_hours(1),
            runner: Runner::External,
        }]
    };
    let kinds = [(Kind::Cluster, external()), (Kind::NodePool, external())];
    let day = SignedDuration::from_hours(24);
    let mut nodes = NodeSettings::default();
    nodes.defaults.remedy = Remedy::Observe;
    Settings {
        adapters: AdapterGraph::new(BTreeMap::from(kinds)).unwrap(),
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
    }
}

/// A control plane, from its start to its end.
async fn plane(shared: Arc<Shared>, name: String) -> turmoil::Result {
    let starts = shared.starts(&name);
    let (store, driver) = Store::open(shared.engine.clone()).await?;
    let mut tasks = Tasks::default();
    tasks.start("store", driver.run());
    let outside = Outside {
        clouds: BTreeMap::new(),
        notifier: Arc::new(Nobody),
        schedulers: Vec::new(),
        extensions: Default::default(),
    };
    let clock = Clock::simulated(now());
    let ids = Ids::seeded(u64::from(starts) << 32);
    let control = Control::start(store, settings(), outside, clock, ids, &name, &mut tasks);
    let fleet = TokenEntry {
        name: "fleet".to_owned(),
        sha256: hash_token(TOKEN),
        role: Role::Node,
        teams: Vec::new(),
        tenant: "one".to_owned(),
        adapter: None,
        node: None,
        expires: None,
    };
    let authenticator = Authenticator::new(vec![fleet], Vec::new(), clock).await.unwrap();
    let (_stop, shutdown) = watch::channel(false);
    let metrics = Metrics::new("test", Timestamp::UNIX_EPOCH);
    let server = Server {
        dashboard: &[],
        demo: false,
        control: control.clone(),
        profile: Profile::Full,
        authenticator,
        metrics: metrics.clone(),
        mounts: Vec::new(),
        shutdown: shutdown.clone(),
        version: "1.2.3".to_owned(),
        build_time: "today".to_owned(),
    };
    let app = server.router();
    shared.planes.lock().unwrap().insert(name, (app.clone(), control));
    let door = Door(TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?);
    listen::serve(door, None, app, Limits::default(), metrics, shutdown).await?;
    Ok(())
}

/// A machine with an agent, from its start to its end.
async fn machine(shared: Arc<Shared>, name: String, servers: Vec<String>) -> turmoil::Result {
    let boot = shared.starts(&name);
    let dial: Dial = Arc::new(|uri| {
        Box::pin(async move {
            let host = uri.host().unwrap_or_default().to_owned();
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(PORT))).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    });
    let dir = std::env::temp_dir().join("argosy-turmoil-without-files");
    let link = Link::new(&servers, &name, Token::Value(TOKEN.to_owned()), None, &dir)?.over(dial);
    let (telling, heard) = mpsc::channel(256);
    let line = Over {
        name: name.clone(),
        shared: shared.clone(),
        link,
        streams: HashMap::new(),
        tasks: JoinSet::new(),
        heard,
        telling,
        begun: 0,
    };
    let swarm = Swarm::start(Load::default(), Arc::new(Simulated::new(now())), line);
    let spec = Spec {
        node_id: name.clone(),
        boot,
        pool: "workers".to_owned(),
        gpus: 8,
        model: "H100".to_owned(),
        ..Spec::default()
    };
    swarm.boot(spec)?;
    let (sender, mut faults) = mpsc::channel(8);
    shared.faults.lock().unwrap().insert(name.clone(), sender);
    while let Some(injection) = faults.recv().await {
        swarm.inject(&name, injection).await?;
    }
    Ok(())
}

/// The line of a swarm by the agent's own `Link`.
struct Over {
    name: String,
    shared: Arc<Shared>,
    link: Link,
    streams: HashMap<AgentNumber, Stream>,
    tasks: JoinSet<()>,
    heard: mpsc::Receiver<(AgentNumber, u64, Event)>,
    telling: mpsc::Sender<(AgentNumber, u64, Event)>,
    begun: u64,
}

struct Stream {
    number: u64,
    saying: mpsc::Sender<Said>,
    task: AbortHandle,
}

impl Over {
    /// Says something by a call; what comes of it counts if there is still no stream then.
    fn call(&mut self, agent: AgentNumber, said: Option<Said>) {
        let (link, telling) = (self.link.clone(), self.telling.clone());
        self.tasks.spawn(async move {
            let called = match said {
                Some(said) => link.call(said).await,
                None => link.poll().await,
            };
            let events = match called {
                Called::Told(told, waiting) => {
                    let wait = waiting.then_some(Event::CommandsWait);
                    told.into_iter().map(Event::Told).chain(wait).collect()
                }
                Called::Lost(loss) => vec![Event::Lost(loss)],
            };
            for event in events {
                _ = telling.send((agent, 0, event)).await;
            }
        });
    }
}

impl Line for Over {
    fn attach(&mut self, agent: AgentNumber, hello: Hello) {
        self.detach(agent);
        self.shared.note(&self.name, "attach");
        self.begun += 1;
        let number = self.begun;
        let (saying, to_say) = mpsc::channel(64);
        let (tell, mut told) = mpsc::channel(64);
        let (link, telling) = (self.link.clone(), self.telling.clone());
        let task = self.tasks.spawn(async move {
            let attached = async move { link.attach(hello, to_say, &tell).await };
            let forwarded = async {
                while let Some(Ok(told)) = told.recv().await {
                    _ = telling.send((agent, number, Event::Told(told))).await;
                }
            };
            let (loss, ()) = tokio::join!(attached, forwarded);
            _ = telling.send((agent, number, Event::Lost(loss))).await;
        });
        self.streams.insert(agent, Stream { number, saying, task });
    }

    fn say(&mut self, agent: AgentNumber, said: Said) {
        let Some(stream) = self.streams.get(&agent) else {
            self.shared.note(&self.name, "call");
            return self.call(agent, Some(said));
        };
        if stream.saying.try_send(said).is_err() {
            let loss = Loss::Ended("the control plane does not read".to_owned());
            _ = self.telling.try_send((agent, stream.number, Event::Lost(loss)));
        }
    }

    fn poll(&mut self, agent: AgentNumber) {
        self.call(agent, None);
    }

    fn detach(&mut self, agent: AgentNumber) {
        if let Some(stream) = self.streams.remove(&agent) {
            stream.task.abort();
        }
    }

    async fn next(&mut self) -> (AgentNumber, Event) {
        loop {
            let heard = self.heard.recv().await;
            let (agent, number, event) = heard.expect("we hold a sender ourselves");
            let current = self.streams.get(&agent).map_or(0, |stream| stream.number);
            if current != number {
                continue;
            }
            match &event {
                Event::Told(Told::Error(error)) => {
                    self.shared.note(&self.name, format!("error {}", error.code));
                }
                Event::Told(told) => {
                    let word = match told {
                        Told::Welcome(_) => "welcome",
                        Told::Registered(_) => "registered",
                        Told::ReportAck(_) => "report taken",
                        Told::HeartbeatAck(_)
                        | Told::Command(_)
                        | Told::CommandAck(_)
                        | Told::Error(_)
                        | Told::Config(_) => "told",
                    };
                    self.shared.note(&self.name, word);
                }
                Event::Lost(loss) => {
                    self.streams.remove(&agent);
                    let why = match loss {
                        Loss::Unreachable(_) => "unreachable",
                        Loss::Streamless(_) => "streamless",
                        Loss::Refused(_) => "refused",
                        Loss::Ended(_) => "ended",
                    };
                    self.shared.note(&self.name, format!("lost {why}"));
                }
                // A line tells nothing else.
                Event::Started { .. }
                | Event::Woke
                | Event::Described { .. }
                | Event::Sampled(_)
                | Event::Alarmed
                | Event::Checked { .. }
                | Event::Seen(_)
                | Event::CommandsWait
                | Event::Noted { .. }
                | Event::Progress { .. }
                | Event::Ended { .. }
                | Event::Stop => {}
            }
            return (agent, event);
        }
    }
}

/// The administrator, past the door.
fn admin() -> Caller {
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
