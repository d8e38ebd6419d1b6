//! `argosy-agent run`: Runs the agent until it is told to stop.

use super::gpus::Choice;
use crate::Builder;
use crate::agent::Exit;
use crate::child_process;
use crate::clock::{Clock, System};
use crate::command::{Failure, Handler, Order, Outcome, Progress};
use crate::config::{Config, ConfigError, labels};
use crate::diagnose::{self, Plan};
use crate::driver::{GpuDesk, MakeHandler, NoGpus};
use crate::gpu::Gpu;
use crate::gpu::child::{Child, Options};
use crate::gpu::fake::{Fake, SharedFake};
use crate::host::{Host, Roots, gpus_on_bus};
use crate::identity::{Identity, cloud};
use crate::inject::{self, Injections};
use crate::log;
use crate::metrics::{self, Figures};
use crate::sight;
use crate::watch::gpu::Expected;
use anyhow::{Context, bail};
use argosy_api::rpc::node::RegisterNodeRequest;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Runs the agent until it is told to stop.
///
/// Everything can also be said in a file (`--config`) and in the environment, as `ARGOSY_AGENT_SERVER`
/// for `--server`; a flag wins. The credential comes from `token_file`, a systemd credential `token` or
/// `ARGOSY_TOKEN`, never from a flag.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The control plane, like `https://argosy.example:8443`. May be given more than once.
    #[arg(long, value_name = "URL")]
    pub server: Vec<String>,
    /// The id of this node; the host name if it is left out.
    #[arg(long, value_name = "ID")]
    pub node_id: Option<String>,
    /// `auto`, `none`, or `fake:8xH100` for tests.
    #[arg(long, value_name = "WHICH")]
    pub gpu: Option<String>,
    /// Where spool, journal and duty file are.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "ARGOSY_AGENT_CONFIG")]
    pub config: Option<PathBuf>,
    /// NVML's library, if it is not where the loader looks.
    #[arg(long, value_name = "PATH")]
    pub nvml_library: Option<PathBuf>,
    /// The file with the credential.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates to check servers with, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The cloud this machine is in.
    #[arg(long)]
    pub provider: Option<String>,
    /// Its region.
    #[arg(long)]
    pub region: Option<String>,
    /// Its zone.
    #[arg(long)]
    pub zone: Option<String>,
    /// What the machine is called there.
    #[arg(long)]
    pub instance_type: Option<String>,
    /// The pool the node belongs to.
    #[arg(long)]
    pub pool: Option<String>,
    /// Labels: rack=r7,team=alpha.
    #[arg(long, value_name = "LABELS")]
    pub label: Vec<String>,
    /// A program that is told when the duty changes.
    #[arg(long, value_name = "PROGRAM")]
    pub hook: Option<PathBuf>,
    /// How many GPUs must be there; as many as were ever seen if it is left out.
    #[arg(long, value_name = "N")]
    pub expected_gpus: Option<u32>,
    /// Where the kernel's lines are read: kmsg, journald, a file of syslog. May be given more than once.
    #[arg(long, value_name = "LOG")]
    pub log: Vec<String>,
    /// Lets `argosy-agent inject` make this agent report faults that are none.
    #[arg(long)]
    pub allow_inject: bool,
    /// Where to serve Prometheus metrics: 127.0.0.1:9400.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
    /// Writes the log as JSON.
    #[arg(long)]
    pub log_json: bool,
}

impl Args {
    /// What holds: the file, the environment, the flags.
    ///
    /// # Errors
    /// What is wrong with any of them.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let mut config = Config::read(self.config.as_deref())?.with_own_environment()?;
        if !self.server.is_empty() {
            config.servers = self.server;
        }
        for text in &self.label {
            let bad = |why| ConfigError::Variable { name: "--label".to_owned(), why };
            config.labels.extend(labels(text).map_err(bad)?);
        }
        config.node_id = self.node_id.or(config.node_id);
        config.gpu = self.gpu.or(config.gpu);
        config.data_dir = self.data_dir.or(config.data_dir);
        config.nvml_library = self.nvml_library.or(config.nvml_library);
        config.token_file = self.token_file.or(config.token_file);
        config.ca_file = self.ca_file.or(config.ca_file);
        config.provider = self.provider.or(config.provider);
        config.region = self.region.or(config.region);
        config.zone = self.zone.or(config.zone);
        config.instance_type = self.instance_type.or(config.instance_type);
        config.pool = self.pool.or(config.pool);
        config.hook = self.hook.or(config.hook);
        config.metrics = self.metrics.or(config.metrics);
        config.expected_gpus = self.expected_gpus.or(config.expected_gpus);
        if !self.log.is_empty() {
            config.logs = self.log;
        }
        config.allow_inject |= self.allow_inject;
        config.log_json |= self.log_json;
        if config.servers.is_empty() {
            return Err(ConfigError::NoServer);
        }
        Ok(config)
    }
}

/// Runs the agent.
///
/// # Errors
/// What is wrong with the configuration or the data directory.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.resolve()?;
    begin_log(config.log_json);
    let roots = Roots::default();
    let mut identity = Identity::read(&roots);
    identity.boot_id = config.boot_id.clone().unwrap_or(identity.boot_id);
    let node_id = config.node_id.clone().or_else(|| identity.node_id.clone());
    let node_id = node_id.ok_or(ConfigError::NoNode)?;
    let clock: Arc<dyn Clock> = Arc::new(System);
    let figures = Arc::new(Figures::default());
    let data_dir = config.data_dir();
    // Whether it can be used is the driver's to say; without it the socket has no place.
    _ = std::fs::create_dir_all(&data_dir);
    let Gpus { gpu, fake } = gpus(&config, &node_id, &clock)?;
    let sight = sight::open(sight::Options {
        boot_id: identity.boot_id.clone(),
        expected: Expected {
            gpus: config.expected_gpus,
            on_the_bus: if fake.is_some() { 0 } else { gpus_on_bus(&roots) },
            booted: booted(&roots, clock.now()),
        },
        // A made-up machine has no disks that could be full, and its kernel is made up, too.
        host: match &fake {
            Some(_) => None,
            None => Some(Host::start(roots.clone()).context("cannot look at this machine")?),
        },
        logs: match &fake {
            Some(_) => None,
            None => Some(log::Options { sources: sources(&config)?, ..log::Options::default() }),
        },
        fake,
        injections: injections(&config)?,
        figures: figures.clone(),
        clock: clock.clone(),
        data_dir: data_dir.clone(),
        roots: roots.clone(),
    });
    let ears = sight.stop.clone();
    let mut agent = Builder::new(&node_id)
        .boot_id(&identity.boot_id)
        .machine(machine(&config, &identity, &roots).await)
        .token(config.token(|name| std::env::var(name).ok()))
        .data_dir(data_dir)
        .gpu(gpu)
        .watcher(Box::new(sight.eyes))
        .collector(Box::new(sight.meter))
        .signals(sight.signals)
        .figures(figures.clone())
        .diagnostics(diagnostics(&config)?);
    for server in &config.servers {
        agent = agent.server(server);
    }
    for (name, value) in &config.labels {
        agent = agent.label(name, value);
    }
    if let Some(path) = &config.ca_file {
        agent = agent.ca_file(path);
    }
    if let Some(hook) = config.hook() {
        agent = agent.hook(hook);
    }
    let page = page(&config, &figures).await?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // What was gathered is told before the agent stops listening.
        ears.finish().await;
    };
    tracing::info!(node_id, version = env!("CARGO_PKG_VERSION"), "the agent begins");
    let exit = tokio::select! {
        exit = agent.run(stop) => exit?,
        // It ends when the agent no longer listens, which is after the agent.
        () = sight.ears.listen() => bail!("nobody listens to what is heard any more"),
        () = page => bail!("the page of figures ended"),
    };
    tracing::info!(?exit, "the agent ends");
    if exit == Exit::Terminated && config.power_off {
        power_off().await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// GPUs to ask; and, if they are made up, where faults are made and what their kernel writes.
struct Gpus {
    gpu: Box<dyn Gpu>,
    fake: Option<(SharedFake, mpsc::Receiver<String>)>,
}

/// The GPUs of this machine, as the configuration says. Never fake ones unless it says so.
fn gpus(config: &Config, node_id: &str, clock: &Arc<dyn Clock>) -> anyhow::Result<Gpus> {
    let choice: Choice = config.gpu.as_deref().unwrap_or("auto").parse().map_err(|why| {
        let name = "--gpu".to_owned();
        ConfigError::Variable { name, why }
    })?;
    Ok(match choice {
        Choice::None => Gpus { gpu: Box::new(NoGpus), fake: None },
        Choice::Auto => {
            let options =
                Options { nvml_library: config.nvml_library.clone(), ..Options::default() };
            Gpus { gpu: Box::new(Child::new(own_program()?, options)), fake: None }
        }
        Choice::Fake(spec) => {
            let clock = clock.clone();
            let (fake, lines) = SharedFake::new(Fake::parse(&spec, node_id)?, move || clock.now());
            Gpus { gpu: Box::new(fake.clone()), fake: Some((fake, lines)) }
        }
    })
}

fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("this program cannot find itself")
}

fn sources(config: &Config) -> anyhow::Result<Option<Vec<log::Source>>> {
    let sources: Result<Vec<_>, _> = config.logs.iter().map(|source| source.parse()).collect();
    Ok(Some(sources?).filter(|sources| !sources.is_empty()))
}

fn injections(config: &Config) -> anyhow::Result<Option<Injections>> {
    if !config.allow_inject {
        return Ok(None);
    }
    let path = config.data_dir().join(inject::SOCKET);
    let listening = Injections::listen(&path);
    Ok(Some(listening.with_context(|| format!("cannot listen at {}", path.display()))?))
}

/// When the machine was started, by what the kernel counts.
fn booted(roots: &Roots, now: Timestamp) -> Option<Timestamp> {
    let text = std::fs::read_to_string(roots.proc.join("uptime")).ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    now.checked_sub(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

/// What runs diagnostics: this program, in a child.
fn diagnostics(config: &Config) -> anyhow::Result<MakeHandler> {
    let (exe, nvml_library) = (own_program()?, config.nvml_library.clone());
    Ok(Box::new(|desk| Arc::new(Diagnostics { exe, nvml_library, desk })))
}

struct Diagnostics {
    exe: PathBuf,
    nvml_library: Option<PathBuf>,
    desk: GpuDesk,
}

#[async_trait]
impl Handler for Diagnostics {
    async fn handle(&self, order: &Order, progress: &Progress) -> Result<Outcome, Failure> {
        let plan = Plan::parse(&order.parameters).map_err(|bad| Failure(bad.to_string()))?;
        let plan = Plan { nvml_library: self.nvml_library.clone(), ..plan };
        let tell = |step: diagnose::Progress| {
            progress.tell(step.percent.clamp(0.0, 100.0) as u8, step.message);
        };
        let mut gpus = self.desk.clone();
        let done = diagnose::run(&self.exe, &mut gpus, &plan, plan.test.time_max(), tell).await;
        let diagnosis = done.map_err(|error| Failure(error.to_string()))?;
        let result = serde_json::to_value(&diagnosis).ok();
        Ok(Outcome { result, ..Outcome::new(diagnosis.message) })
    }
}

/// Serves the figures, for as long as it is polled, if somebody wants them.
async fn page(
    config: &Config,
    figures: &Arc<Figures>,
) -> anyhow::Result<impl Future<Output = ()> + use<>> {
    let listener = match &config.metrics {
        Some(address) => {
            let listening = TcpListener::bind(address).await;
            let listener =
                listening.with_context(|| format!("cannot serve figures at {address}"))?;
            tracing::info!(address = %listener.local_addr()?, "serving figures");
            Some(listener)
        }
        None => None,
    };
    let figures = figures.clone();
    Ok(async move {
        match listener {
            Some(listener) => metrics::serve(listener, &figures).await,
            None => std::future::pending().await,
        }
    })
}

/// What the machine is, as far as the configuration, the kernel and the cloud say.
async fn machine(config: &Config, identity: &Identity, roots: &Roots) -> RegisterNodeRequest {
    // Whoever says where the machine is need not wait for a cloud to say it, and one that is in no cloud
    // not for clouds that do not answer.
    let known =
        [&config.region, &config.zone, &config.instance_type].into_iter().all(Option::is_some);
    let asked = match config.provider.as_deref() {
        None => true,
        Some("aws" | "gcp" | "azure") => !known,
        Some(_) => false,
    };
    let cloud = if asked { cloud::ask(roots, &cloud::Options::default()).await } else { None };
    let cloud = cloud.as_ref();
    let text = |said: &Option<String>, found: Option<&String>| {
        said.as_ref().or(found).cloned().unwrap_or_default()
    };
    let ip = |ip: Option<IpAddr>| ip.map(|ip| ip.to_string()).unwrap_or_default();
    RegisterNodeRequest {
        provider: text(&config.provider, cloud.map(|cloud| &cloud.provider)),
        region: text(&config.region, cloud.and_then(|cloud| cloud.region.as_ref())),
        zone: text(&config.zone, cloud.and_then(|cloud| cloud.zone.as_ref())),
        instance_type: text(
            &config.instance_type,
            cloud.and_then(|cloud| cloud.instance_type.as_ref()),
        ),
        pool: config.pool.clone().unwrap_or_default(),
        hostname: identity.hostname.clone(),
        kernel_version: identity.kernel_version.clone(),
        machine_id: identity.machine_id.clone(),
        internal_ip: ip(cloud.and_then(|cloud| cloud.internal_ip).or(identity.internal_ip)),
        external_ip: ip(cloud.and_then(|cloud| cloud.external_ip)),
        ..RegisterNodeRequest::default()
    }
}

/// Switches the machine off through its service manager, so that everything else is stopped in order.
async fn power_off() -> anyhow::Result<()> {
    let mut command = child_process::command("systemctl");
    let status = command.arg("poweroff").status().await.context("cannot run systemctl poweroff")?;
    if !status.success() {
        bail!("systemctl poweroff ended with {status}");
    }
    Ok(())
}

fn begin_log(json: bool) {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(tracing::Level::INFO)
        .with_target(false);
    // Somebody else may have set one up, in a program that embeds us.
    _ = if json { builder.json().try_init() } else { builder.try_init() };
}
