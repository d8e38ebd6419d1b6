//! `argosy-agent run`: Runs the agent until it is told to stop.

use crate::Builder;
use crate::agent::Exit;
use crate::config::{Config, ConfigError, labels};
use crate::driver::NoGpus;
use crate::gpu::Gpu;
use anyhow::{Context, bail};
use argosy_api::rpc::node::RegisterNodeRequest;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Runs the agent until it is told to stop.
///
/// Everything can also be said in a file (`--config`) and in the environment, as `ARGOSY_AGENT_SERVER`
/// for `--server`; a flag wins. The credential comes from `token_file`, a systemd credential `token` or
/// `ARGOSY_TOKEN`, never from a flag.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The control plane: https://argosy.example:8443. May be given more than once.
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
        let mut config = Config::read(self.config.as_deref())?.with_environment(std::env::vars())?;
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
    log(config.log_json);
    let machine = machine(&config);
    let host = Some(machine.hostname.clone()).filter(|name| !name.is_empty());
    let node_id = config.node_id.clone().or(host).ok_or(ConfigError::NoNode)?;
    let mut agent = Builder::new(&node_id)
        .machine(machine)
        .token(config.token(|name| std::env::var(name).ok()))
        .data_dir(config.data_dir())
        .gpu(gpu(&config)?);
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
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tracing::info!(node_id, version = env!("CARGO_PKG_VERSION"), "the agent begins");
    let exit = agent.run(stop).await?;
    tracing::info!(?exit, "the agent ends");
    if exit == Exit::Terminated && config.power_off {
        power_off().await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The GPUs of this machine, as the configuration says. Never fake ones unless it says so.
fn gpu(config: &Config) -> anyhow::Result<Box<dyn Gpu>> {
    match config.gpu.as_deref().unwrap_or("auto") {
        "none" => Ok(Box::new(NoGpus)),
        // The place of `gpu::child::Child` and `gpu::fake`. Until then: no GPUs because nobody asked
        // would look like a machine without any.
        "auto" => bail!("this build cannot ask for GPUs; say --gpu none"),
        other => bail!("--gpu {other} is not known: it is `auto`, `none` or like `fake:8xH100`"),
    }
}

/// What the machine is, as far as the configuration and the kernel say.
fn machine(config: &Config) -> RegisterNodeRequest {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let uname = rustix::system::uname();
    let text = |option: &Option<String>| option.clone().unwrap_or_default();
    let dmi = read("/sys/class/dmi/id/product_uuid");
    RegisterNodeRequest {
        provider: text(&config.provider),
        region: text(&config.region),
        zone: text(&config.zone),
        instance_type: text(&config.instance_type),
        pool: text(&config.pool),
        hostname: uname.nodename().to_string_lossy().into_owned(),
        kernel_version: uname.release().to_string_lossy().into_owned(),
        machine_id: if dmi.is_empty() { read("/etc/machine-id") } else { dmi },
        ..RegisterNodeRequest::default()
    }
}

/// Switches the machine off through its service manager, so that everything else is stopped in order.
async fn power_off() -> anyhow::Result<()> {
    let mut command = tokio::process::Command::new("systemctl");
    let status = command.arg("poweroff").status().await.context("cannot run systemctl poweroff")?;
    if !status.success() {
        bail!("systemctl poweroff ended with {status}");
    }
    Ok(())
}

fn log(json: bool) {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .with_target(false);
    // Somebody else may have set one up, in a program that embeds us.
    _ = if json { builder.json().try_init() } else { builder.try_init() };
}
