//! One process of the control plane: the real services and loops, on the shared disk and the made-up clouds.

use super::cloud::{Cloud, Window};
use super::engine::Disk;
use super::tape::{Tape, lock, timer};
use crate::run::Product;
use argosy_control::clock::Clock;
use argosy_control::extension::Extensions;
use argosy_control::ids::Ids;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use argosy_control::provider::Provider;
use argosy_control::task::Tasks;
use argosy_control::{Control, Outside};
use argosy_core::access::{Caller, Role};
use argosy_server::Server;
use argosy_server::auth::Authenticator;
use argosy_server::metrics::Metrics;
use argosy_server::profile::Profile;
use argosy_store::Store;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Holds up what a process says and hears while it stands still.
#[derive(Default)]
pub(crate) struct Gate {
    until: Mutex<Option<Instant>>,
}

impl Gate {
    /// Waits until the process goes on.
    pub(crate) async fn pass(&self) {
        loop {
            let until = *lock(&self.until);
            match until.filter(|until| timer() < *until) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return,
            }
        }
    }

    /// The process stands still until then.
    pub(crate) fn close(&self, until: Instant) {
        *lock(&self.until) = Some(until);
    }

    /// Until when it stands still; `None` if it does not.
    pub(crate) fn closed_until(&self) -> Option<Instant> {
        (*lock(&self.until)).filter(|until| timer() < *until)
    }
}

/// A process, up or down.
pub(crate) struct Process {
    /// Its number, from 0.
    pub(crate) number: usize,
    /// Its wall clock, which may be wrong.
    pub(crate) clock: Clock,
    /// By how much.
    pub(crate) clock_off: SignedDuration,
    pub(crate) gate: Arc<Gate>,
    pub(crate) up: Option<Up>,
    starts: u32,
}

/// One that is up. Dropping it ends it, as a crash does.
pub(crate) struct Up {
    pub(crate) control: Control,
    pub(crate) server: Arc<Server>,
    _tasks: JoinSet<()>,
    _shutdown: watch::Sender<bool>,
}

/// What all processes share.
pub(crate) struct Site {
    pub(crate) product: Product,
    pub(crate) disk: Arc<Disk>,
    pub(crate) clouds: BTreeMap<String, Arc<Cloud>>,
    pub(crate) ids: Ids,
    /// What time it really is.
    pub(crate) clock: Clock,
    pub(crate) tape: Tape,
    /// Tasks that ended although none should.
    pub(crate) deaths: Mutex<Vec<(usize, String)>>,
}

/// Who asks for things in a world: where nobody has to sign in, everybody is this one.
pub(crate) fn operator() -> Caller {
    Caller {
        subject: "simulation".to_owned(),
        via: "none",
        tenant: "default".to_owned(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id: "simulation".to_owned(),
    }
}

/// The credential of a machine's agent.
pub(crate) fn agent(node: &str) -> Caller {
    Caller {
        subject: format!("node-{node}"),
        role: Role::Node,
        node: Some(node.to_owned()),
        ..operator()
    }
}

struct Post;

#[async_trait]
impl Notifier for Post {
    async fn send(&self, _: &str, _: &str, _: &CloudEvent) -> Result<(), SendError> {
        Ok(())
    }
}

impl Process {
    pub(crate) fn new(number: usize, epoch: Timestamp) -> Self {
        Self {
            number,
            clock: Clock::simulated(epoch),
            clock_off: SignedDuration::ZERO,
            gate: Arc::default(),
            up: None,
            starts: 0,
        }
    }

    /// Somebody sets its machine's clock.
    pub(crate) fn set_clock(&mut self, by: SignedDuration) {
        self.clock.set_by(by);
        self.clock_off += by;
    }

    /// A time server sets it right; true if it was not.
    pub(crate) fn set_right(&mut self) -> bool {
        let off = self.clock_off;
        self.set_clock(-off);
        !off.is_zero()
    }

    /// Starts it.
    ///
    /// # Errors
    /// What the store said: it is to be tried again.
    pub(crate) async fn start(&mut self, site: &Arc<Site>) -> Result<(), String> {
        self.starts += 1;
        if 1 < self.starts {
            // A new process goes by what the machine's clock shows.
            let shows = site.clock.now().saturating_add(self.clock_off).unwrap_or(Timestamp::MAX);
            self.clock = Clock::simulated(shows);
        }
        let holder = format!("process-{}-{}", self.number + 1, self.starts);
        let line = site.disk.line(self.number, self.gate.clone());
        if site.disk.take_restored() {
            let renewed = argosy_control::recovery::restored(line.clone(), self.clock, &site.ids);
            renewed.await.map_err(|error| error.to_string())?;
        }
        let (store, driver) = Store::open(line).await.map_err(|error| error.to_string())?;
        let mut tasks = Tasks::default();
        tasks.start("store", driver.run());
        let window = |(name, cloud): (&String, &Arc<Cloud>)| {
            let window = Window { cloud: cloud.clone(), gate: self.gate.clone() };
            (name.clone(), Arc::new(window) as Arc<dyn Provider>)
        };
        let outside = Outside {
            clouds: site.clouds.iter().map(window).collect(),
            notifier: Arc::new(Post),
            schedulers: Vec::new(),
            extensions: Extensions::default(),
        };
        let control = Control::start(
            store,
            site.product.settings.clone(),
            outside,
            self.clock,
            site.ids.clone(),
            &holder,
            &mut tasks,
        );
        for policy in site.product.policies.iter().filter(|policy| policy.pools.is_empty()) {
            control.policies.seed(policy.clone()).map_err(|error| error.to_string())?;
        }
        let (stop, shutdown) = watch::channel(false);
        let server = Arc::new(Server {
            dashboard: &[],
            demo: false,
            control: control.clone(),
            profile: Profile::default(),
            authenticator: Authenticator::none(),
            metrics: Metrics::new("simulated", self.clock.now()),
            mounts: Vec::new(),
            shutdown,
            version: "simulated".to_owned(),
            build_time: String::new(),
        });
        let (site, number) = (site.clone(), self.number);
        let mut watched = JoinSet::new();
        watched.spawn(async move {
            let death = tasks.first_death().await;
            lock(&site.deaths).push((number, death.to_string()));
            site.tape.ring();
        });
        self.up = Some(Up { control, server, _tasks: watched, _shutdown: stop });
        Ok(())
    }
}
