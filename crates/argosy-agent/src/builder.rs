//! An agent inside another program: what it is made of, piece by piece.
//!
//! ```no_run
//! # use argosy_agent::Builder;
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Builder::new("gpu-1").server("http://localhost:8080").data_dir("/var/lib/agent");
//! agent.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

use crate::agent::{Exit, Identity};
use crate::clock::{Clock, System};
use crate::command::hook::Hook;
use crate::command::{Handler, Kind};
use crate::driver::{
    self, Collector, GpusOnly, Handlers, MakeHandler, NoGpus, Parts, RunError, Watcher, Without,
};
use crate::gpu::Gpu;
use crate::link::{Link, LinkError, Token};
use crate::metrics::Figures;
use crate::signal::Signal;
use argosy_api::rpc::node::RegisterNodeRequest;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An agent that is being put together. What is not given is as `argosy-agent run` has it, but for GPUs:
/// without an implementation there are none.
#[must_use = "an agent that is not run does nothing"]
pub struct Builder {
    node_id: String,
    boot_id: String,
    servers: Vec<String>,
    token: Token,
    ca_file: Option<PathBuf>,
    data_dir: PathBuf,
    machine: RegisterNodeRequest,
    gpu: Box<dyn Gpu>,
    watcher: Box<dyn Watcher>,
    signals: Option<mpsc::Receiver<Vec<Signal>>>,
    collector: Box<dyn Collector>,
    handlers: Handlers,
    figures: Arc<Figures>,
    clock: Arc<dyn Clock>,
}

/// Why an agent that was put together cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its line cannot be set up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It ran and could not go on.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Builder {
    /// An agent for the node of this id.
    pub fn new(node_id: impl Into<String>) -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        Self {
            node_id: node_id.into(),
            boot_id: boot_id.unwrap_or_default().trim().to_owned(),
            servers: Vec::new(),
            token: Token::None,
            ca_file: None,
            data_dir: PathBuf::from("/var/lib/argosy-agent"),
            machine: RegisterNodeRequest::default(),
            gpu: Box::new(NoGpus),
            watcher: Box::new(Without),
            signals: None,
            collector: Box::new(GpusOnly),
            handlers: Handlers::default(),
            figures: Arc::default(),
            clock: Arc::new(System),
        }
    }

    /// One more address of the control plane. The last good one is tried first.
    pub fn server(mut self, url: impl Into<String>) -> Self {
        self.servers.push(url.into());
        self
    }

    /// The credential.
    pub fn token(mut self, token: Token) -> Self {
        self.token = token;
        self
    }

    /// Certificates to check servers with, instead of the system's.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Where spool, journal and duty file are.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = path.into();
        self
    }

    /// What the machine is: provider, region, host name and the like. GPUs and ids are filled in.
    pub fn machine(mut self, machine: RegisterNodeRequest) -> Self {
        self.machine = RegisterNodeRequest { labels: self.machine.labels, ..machine };
        self
    }

    /// One more label of the node.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.machine.labels.insert(name.into(), value.into());
        self
    }

    /// Which start of the machine this is, if the kernel does not say.
    pub fn boot_id(mut self, boot_id: impl Into<String>) -> Self {
        self.boot_id = boot_id.into();
        self
    }

    /// Somebody who knows the GPUs.
    pub fn gpu(mut self, gpu: Box<dyn Gpu>) -> Self {
        self.gpu = gpu;
        self
    }

    /// Somebody who makes checks and signals of what is seen.
    pub fn watcher(mut self, watcher: Box<dyn Watcher>) -> Self {
        self.watcher = watcher;
        self
    }

    /// Signals as they are seen, between rounds of checks.
    pub fn signals(mut self, signals: mpsc::Receiver<Vec<Signal>>) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Somebody who measures how busy the machine is.
    pub fn collector(mut self, collector: Box<dyn Collector>) -> Self {
        self.collector = collector;
        self
    }

    /// Somebody who does all commands of a kind, instead of us.
    pub fn handler(mut self, kind: Kind, handler: Arc<dyn Handler>) -> Self {
        self.handlers.by_kind.insert(kind, handler);
        self
    }

    /// Somebody who runs one diagnostic, by its name on the wire: `quick`, `memory`, `all`, …
    pub fn diagnostic(mut self, test: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        self.handlers.diagnostics.insert(test.into(), handler);
        self
    }

    /// Somebody who runs all diagnostics that have nobody of their own, and asks the agent's GPUs for it.
    pub fn diagnostics(mut self, make: MakeHandler) -> Self {
        self.handlers.make_diagnostics = Some(make);
        self
    }

    /// A program that is told when the duty changes.
    pub fn hook(mut self, hook: Hook) -> Self {
        self.handlers.hook = Some(hook);
        self
    }

    /// Where it is counted what is done.
    pub fn figures(mut self, figures: Arc<Figures>) -> Self {
        self.figures = figures;
        self
    }

    /// What time it is.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Runs it until `stop` comes, or the control plane terminates the node.
    ///
    /// # Errors
    /// See `BuildError`. A control plane that cannot be reached is none.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Exit, BuildError> {
        let Self { node_id, boot_id, data_dir, .. } = self;
        let link = Link::new(&self.servers, &node_id, self.token, self.ca_file, &data_dir)?;
        let agent_version = env!("CARGO_PKG_VERSION").to_owned();
        let machine = RegisterNodeRequest {
            node_id: node_id.clone(),
            boot_id: boot_id.clone(),
            agent_version: agent_version.clone(),
            ..self.machine
        };
        // Without a source the channel is closed, and nobody listens to it.
        let signals = self.signals.unwrap_or_else(|| mpsc::channel(1).1);
        let parts = Parts {
            who: Identity { node_id, boot_id, agent_version },
            machine,
            data_dir,
            link,
            gpu: self.gpu,
            watcher: self.watcher,
            signals,
            collector: self.collector,
            handlers: self.handlers,
            figures: self.figures,
            clock: self.clock,
        };
        Ok(driver::run(parts, stop).await?)
    }
}
