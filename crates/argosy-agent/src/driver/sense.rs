//! What is seen: GPUs by one task, checks by another, how busy it is by a third.

use super::{own::Own, wanted};
use crate::agent::Event;
use crate::check::{CheckOutcome, Word};
use crate::clock::Clock;
use crate::gpu::{Gpu, GpuError, GpuIdentity, Inventory, Sweep};
use crate::metrics::Figures;
use crate::signal::{Condition, Signal};
use argosy_api::rpc::node::{self, GpuMetrics, NodeMetrics, RegisterNodeRequest};
use argosy_api::rpc::unmeasured;
use async_trait::async_trait;
use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

/// How long a round may take. GPUs have their own deadlines; this is for a check that has none.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// How long the first registration waits for the GPUs. A driver that takes longer is told of later.
const FIRST_INVENTORY_MAX: Duration = Duration::from_secs(3);
/// How many may wait for the GPUs: a round, a sample and a drain, and some room.
const ASKS_MAX: usize = 8;

/// How old a sweep may be to be taken for a sample. Asking the driver costs a process where it is asked in
/// one of its own, and heartbeats come every ten seconds.
const SAMPLE_AGE_MAX: SignedDuration = SignedDuration::from_secs(25);
/// How long samples do without a driver that was not there: one is installed once in the life of a machine.
const ABSENT_AGE_MAX: SignedDuration = SignedDuration::from_mins(5);

/// Somebody who makes outcomes and signals of what is seen. One is called at a time.
#[async_trait]
pub trait Watcher: Send {
    /// The outcomes of the checks of these names (all if there are none), and what happened since the
    /// last round.
    async fn check(&mut self, names: &[String], seen: Round<'_>) -> Found;
}

/// What a round has to go by.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// What should be there.
    pub inventory: Option<&'a Inventory>,
    /// How it is.
    pub sweep: &'a Result<Sweep, GpuError>,
    /// The time.
    pub now: Timestamp,
    /// The time on the clock that is never set: for how long something lasts.
    pub steady: Timestamp,
}

/// What a round found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The word of each check.
    pub outcomes: Vec<CheckOutcome>,
    /// What happened since the last round.
    pub signals: Vec<Signal>,
    /// How conditions of GPUs stand that could be looked at.
    pub conditions: Vec<Condition>,
    /// The machine is not what the inventory says: it is taken anew, and told. No fault.
    pub inventory_changed: bool,
}

/// Nobody watches: what an embedded agent has if it is given no watcher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Without;

#[async_trait]
impl Watcher for Without {
    async fn check(&mut self, _: &[String], _: Round<'_>) -> Found {
        Found::default()
    }
}

/// Somebody who measures how busy the machine is.
#[async_trait]
pub trait Collector: Send {
    /// The measurements; `None` if there are none. `sweep` is how the GPUs are now, if they can be read.
    async fn collect(&mut self, sweep: Option<&Sweep>) -> Option<NodeMetrics>;
}

/// Measures the GPUs and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct GpusOnly;

#[async_trait]
impl Collector for GpusOnly {
    async fn collect(&mut self, sweep: Option<&Sweep>) -> Option<NodeMetrics> {
        let gpus = &sweep?.gpus;
        (!gpus.is_empty()).then(|| node_metrics(None, None, gpus.iter().map(gpu_metrics).collect()))
    }
}

/// How busy a machine is, in the words of the wire; both shares in percent.
pub(crate) fn node_metrics(
    cpu: Option<f32>,
    memory: Option<f32>,
    gpus: Vec<GpuMetrics>,
) -> NodeMetrics {
    let mut set = 0;
    let cpu_usage_percent = unmeasured::write(&mut set, unmeasured::CPU, cpu);
    let memory_usage_percent = unmeasured::write(&mut set, unmeasured::MEMORY, memory);
    NodeMetrics { cpu_usage_percent, memory_usage_percent, gpus, unmeasured: set }
}

/// How busy a GPU is, in the words of the wire.
pub(crate) fn gpu_metrics(gpu: &crate::gpu::Reading) -> GpuMetrics {
    let errors = |counts: Option<crate::gpu::Counts>| counts.and_then(|counts| counts.volatile);
    let celsius = gpu.temperature_celsius.and_then(|celsius| i32::try_from(celsius).ok());
    let watts = gpu.power_watts.filter(|watts| watts.is_finite());
    let watts = watts.map(|watts| watts.clamp(0.0, f64::from(u32::MAX)).round() as u32);
    let percent = gpu.utilization_percent.map(|percent| percent.min(100) as f32);
    // What the driver does not say is said to be unknown: an idle GPU is one that says so.
    let mut set = 0;
    let mut metrics = GpuMetrics {
        index: gpu.index,
        temperature_celsius: unmeasured::write(&mut set, unmeasured::GPU_TEMPERATURE, celsius),
        power_watts: unmeasured::write(&mut set, unmeasured::GPU_POWER, watts),
        utilization_percent: unmeasured::write(&mut set, unmeasured::GPU_UTILIZATION, percent),
        memory_used_bytes: unmeasured::write(
            &mut set,
            unmeasured::GPU_MEMORY,
            gpu.memory_used_bytes,
        ),
        ecc_corrected_total: unmeasured::write(
            &mut set,
            unmeasured::GPU_ECC_CORRECTED,
            errors(gpu.ecc_corrected),
        ),
        ecc_uncorrected_total: unmeasured::write(
            &mut set,
            unmeasured::GPU_ECC_UNCORRECTED,
            errors(gpu.ecc_uncorrected),
        ),
        unmeasured: 0,
    };
    metrics.unmeasured = set;
    metrics
}

/// A machine without GPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGpus;

#[async_trait]
impl Gpu for NoGpus {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        Ok(Inventory::default())
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        Ok(Sweep::default())
    }
}

enum Ask {
    Inventory(oneshot::Sender<Result<Inventory, GpuError>>),
    Sweep(oneshot::Sender<Result<Sweep, GpuError>>),
    /// As `Sweep`, but the last one will do if it is not too old.
    Sample(oneshot::Sender<Result<Sweep, GpuError>>),
}

/// A way to the task that has the GPUs. Cheap to clone.
#[derive(Clone)]
pub struct GpuDesk {
    asks: mpsc::Sender<Ask>,
}

impl GpuDesk {
    pub(super) fn start(
        mut gpu: Box<dyn Gpu>,
        clock: Arc<dyn Clock>,
        figures: Arc<Figures>,
        tasks: &mut JoinSet<&'static str>,
    ) -> Self {
        let (asks, mut asked) = mpsc::channel(ASKS_MAX);
        tasks.spawn(async move {
            let mut last: Option<Look> = None;
            while let Some(ask) = asked.recv().await {
                match ask {
                    Ask::Inventory(answer) => {
                        let inventory = guarded("inventory", gpu.inventory()).await;
                        _ = answer.send(inventory);
                    }
                    Ask::Sweep(answer) => {
                        let (_, sweep) = last.insert(look(&mut *gpu, &*clock, &figures).await);
                        _ = answer.send(sweep.clone());
                    }
                    Ask::Sample(answer) => {
                        let now = clock.steady();
                        let (_, sweep) = match last.take().filter(|last| will_do(last, now)) {
                            Some(known) => last.insert(known),
                            None => last.insert(look(&mut *gpu, &*clock, &figures).await),
                        };
                        _ = answer.send(sweep.clone());
                    }
                }
            }
            "GPUs"
        });
        Self { asks }
    }

    /// How the GPUs are.
    ///
    /// # Errors
    /// Why it cannot be said.
    pub async fn sweep(&self) -> Result<Sweep, GpuError> {
        self.ask("sweep", Ask::Sweep).await
    }

    /// How the GPUs are, or were a moment ago: for whoever draws a curve.
    pub(super) async fn sample(&self) -> Result<Sweep, GpuError> {
        self.ask("sweep", Ask::Sample).await
    }

    /// What GPUs there are.
    ///
    /// # Errors
    /// Why it cannot be said.
    pub async fn inventory(&self) -> Result<Inventory, GpuError> {
        self.ask("inventory", Ask::Inventory).await
    }

    async fn ask<T>(
        &self,
        call: &str,
        ask: impl FnOnce(oneshot::Sender<Result<T, GpuError>>) -> Ask,
    ) -> Result<T, GpuError> {
        let (answer, answered) = oneshot::channel();
        _ = self.asks.send(ask(answer)).await;
        answered.await.unwrap_or_else(|_| Err(crashed(call)))
    }
}

#[async_trait]
impl Gpu for GpuDesk {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        GpuDesk::inventory(self).await
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        GpuDesk::sweep(self).await
    }
}

/// What was seen, and when.
type Look = (Timestamp, Result<Sweep, GpuError>);

async fn look(gpu: &mut dyn Gpu, clock: &dyn Clock, figures: &Figures) -> Look {
    let sweep = guarded("sweep", gpu.sweep()).await;
    // Here the driver was asked; the answer may serve many.
    match &sweep {
        Ok(sweep) => figures.swept(sweep),
        Err(_) => figures.sweep_failed(),
    }
    (clock.steady(), sweep)
}

/// Whether a look is young enough for a sample.
fn will_do((at, sweep): &Look, now: Timestamp) -> bool {
    let age_max = match sweep {
        Err(GpuError::Absent { .. }) => ABSENT_AGE_MAX,
        Ok(_) | Err(_) => SAMPLE_AGE_MAX,
    };
    let age = now.duration_since(*at);
    !age.is_negative() && age < age_max
}

/// A panic of whoever asks the GPUs is an error like others (N4).
async fn guarded<T>(
    call: &str,
    asked: impl Future<Output = Result<T, GpuError>>,
) -> Result<T, GpuError> {
    AssertUnwindSafe(asked).catch_unwind().await.unwrap_or_else(|_panic| Err(crashed(call)))
}

fn crashed(call: &str) -> GpuError {
    GpuError::Crashed { call: call.to_owned(), how: "a panic".to_owned(), gpu: None }
}

/// What a round saw of the GPUs, for samples to compare with; `None` before the first.
pub(super) type Seen = Arc<Mutex<Option<Standing>>>;

/// How the GPUs stand: what makes a round urgent if it gets worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The driver answers.
    Answers {
        /// How many GPUs it counts.
        count: u32,
        /// Those that cannot be read.
        unreadable: BTreeSet<u32>,
    },
    /// It does not.
    Fails,
}

impl Standing {
    pub(super) fn of(sweep: &Result<Sweep, GpuError>) -> Self {
        match sweep {
            Ok(sweep) => Self::Answers {
                count: sweep.count,
                unreadable: sweep.unreadable.keys().copied().collect(),
            },
            Err(_) => Self::Fails,
        }
    }

    pub(super) fn is_worse_than(&self, before: &Self) -> bool {
        match (self, before) {
            (_, Self::Fails) => false,
            (Self::Fails, Self::Answers { .. }) => true,
            (
                Self::Answers { count, unreadable },
                Self::Answers { count: count_before, unreadable: unreadable_before },
            ) => count < count_before || !unreadable.is_subset(unreadable_before),
        }
    }
}

/// What rounds are made of.
pub(super) struct Rounds {
    pub(super) machine: RegisterNodeRequest,
    pub(super) watcher: Box<dyn Watcher>,
    pub(super) own: Own,
    pub(super) desk: GpuDesk,
    pub(super) seen: Seen,
    pub(super) clock: Arc<dyn Clock>,
}

/// Starts the task that describes the machine and then makes a round whenever it is asked to.
pub(super) fn start_rounds(
    mut rounds: Rounds,
    events: mpsc::Sender<Event>,
    tasks: &mut JoinSet<&'static str>,
) -> mpsc::Sender<Vec<String>> {
    let (sender, mut asked) = mpsc::channel::<Vec<String>>(1);
    tasks.spawn(async move {
        let mut inventory = rounds.first_inventory(&events).await;
        while let Some(names) = asked.recv().await {
            let checked = rounds.round(&names, &mut inventory, &events).await;
            if events.send(checked).await.is_err() {
                break;
            }
        }
        "rounds"
    });
    sender
}

impl Rounds {
    async fn first_inventory(&mut self, events: &mpsc::Sender<Event>) -> Option<Inventory> {
        let desk = self.desk.clone();
        let mut asked = std::pin::pin!(desk.inventory());
        let read = match tokio::time::timeout(FIRST_INVENTORY_MAX, &mut asked).await {
            Ok(read) => read,
            Err(_) => {
                // The control plane hears of us before it hears of GPUs.
                self.describe(None, events).await;
                asked.await
            }
        };
        let inventory = match read {
            Ok(inventory) => Some(inventory),
            // No driver is no GPUs, and that is known.
            Err(GpuError::Absent { .. }) => Some(Inventory::default()),
            Err(error) => {
                tracing::warn!(%error, "cannot read the inventory of GPUs");
                None
            }
        };
        self.describe(inventory.as_ref(), events).await;
        inventory
    }

    async fn describe(&mut self, inventory: Option<&Inventory>, events: &mpsc::Sender<Event>) {
        let gpus = inventory.map(wire_gpus).unwrap_or_default();
        let registration = RegisterNodeRequest { gpus, ..self.machine.clone() };
        let complete = inventory.is_some();
        let event = Event::Described { registration: Arc::new(registration), complete };
        _ = events.send(event).await;
    }

    async fn take_inventory(
        &mut self,
        inventory: &mut Option<Inventory>,
        events: &mpsc::Sender<Event>,
    ) {
        if let Ok(new) = self.desk.inventory().await {
            self.describe(Some(&new), events).await;
            *inventory = Some(new);
        }
    }

    async fn round(
        &mut self,
        names: &[String],
        inventory: &mut Option<Inventory>,
        events: &mpsc::Sender<Event>,
    ) -> Event {
        let sweep = self.desk.sweep().await;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Standing::of(&sweep));
        let taken_anew = sweep.as_ref().is_ok_and(|sweep| is_other(inventory.as_ref(), sweep));
        if taken_anew {
            self.take_inventory(inventory, events).await;
        }
        let now = self.clock.now();
        let steady = self.clock.steady();
        let seen = Round { inventory: inventory.as_ref(), sweep: &sweep, now, steady };
        let checking = AssertUnwindSafe(self.watcher.check(names, seen)).catch_unwind();
        let failed = |reason: &str, message: &str| {
            let outcome = CheckOutcome::fault("agent", Word::Degraded, reason, message);
            Found { outcomes: vec![outcome], ..Found::default() }
        };
        let found = match tokio::time::timeout(ROUND_MAX, checking).await {
            Ok(Ok(found)) => found,
            Ok(Err(_panic)) => failed("CheckCrashed", "a check of the agent crashed"),
            Err(_) => failed("CheckHung", "a check of the agent did not end"),
        };
        let Found { mut outcomes, mut signals, conditions, inventory_changed } = found;
        if inventory_changed && !taken_anew {
            self.take_inventory(inventory, events).await;
        }
        if !outcomes.iter().any(|outcome| outcome.check == "agent") {
            outcomes.extend(self.own.outcome(names, now));
        }
        signals.extend(self.own.signal(now));
        Event::Checked { outcomes: wanted(outcomes, names), signals, conditions }
    }
}

/// Whether a sweep shows other GPUs than the inventory: one was added, or is there that was not.
/// One that is gone is not another machine but a fault, and stays in the inventory.
fn is_other(inventory: Option<&Inventory>, sweep: &Sweep) -> bool {
    let Some(inventory) = inventory else { return true };
    let known = |uuid: &String| inventory.gpus.iter().any(|gpu| gpu.uuid == *uuid);
    sweep.gpus.iter().any(|gpu| !known(&gpu.uuid))
}

/// The GPUs of an inventory, in the words of the wire.
pub(crate) fn wire_gpus(inventory: &Inventory) -> Vec<node::Gpu> {
    let driver = inventory.driver_version.clone().unwrap_or_default();
    let cuda = inventory.cuda_version.clone().unwrap_or_default();
    let gpu = |gpu: &GpuIdentity| node::Gpu {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        name: gpu.name.clone(),
        serial: gpu.serial.clone().unwrap_or_default(),
        board_id: gpu.board_id.map(|id| format!("{id:#x}")).unwrap_or_default(),
        pci_bus_id: gpu.pci_bus_id.clone(),
        vbios_version: gpu.vbios_version.clone().unwrap_or_default(),
        memory_total_bytes: gpu.memory_total_bytes.unwrap_or_default(),
        driver_version: driver.clone(),
        cuda_version: cuda.clone(),
    };
    inventory.gpus.iter().map(gpu).collect()
}

/// Starts the task that measures after each heartbeat, for the next one. If it sees that a GPU was lost since
/// the last round, which may be a minute ago or an hour, it asks for another.
pub(super) fn start_samples(
    mut collector: Box<dyn Collector>,
    desk: GpuDesk,
    seen: Seen,
    beaten: Arc<Notify>,
    events: mpsc::Sender<Event>,
    tasks: &mut JoinSet<&'static str>,
) {
    tasks.spawn(async move {
        loop {
            beaten.notified().await;
            let sweep = desk.sample().await;
            let is = Standing::of(&sweep);
            let was = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if was.is_some_and(|was| is.is_worse_than(&was))
                && events.send(Event::Alarmed).await.is_err()
            {
                return "samples";
            }
            let sweep = sweep.ok();
            let collecting = AssertUnwindSafe(collector.collect(sweep.as_ref())).catch_unwind();
            let collected = tokio::time::timeout(ROUND_MAX, collecting).await;
            if let Ok(Ok(Some(metrics))) = collected
                && events.send(Event::Sampled(Box::new(metrics))).await.is_err()
            {
                return "samples";
            }
        }
    });
}
