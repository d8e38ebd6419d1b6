//! Everything a machine shows, joined: what `argosy-agent run` watches with.
//!
//! Three ways in: lines come whenever they are written (`Ears`), GPUs and the host are looked at in each
//! round of checks (`Eyes`) and after each heartbeat (`Meter`). What they learn of each other is in one
//! place: which GPU is at which address, and what the driver advises for it.

use crate::check::CheckOutcome;
use crate::clock::Clock;
use crate::driver::{Collector, Found, Round, Watcher, gpu_metrics, node_metrics};
use crate::gpu::fake::SharedFake;
use crate::gpu::{Inventory, Sweep};
use crate::host::{Busy, Host, Roots};
use crate::inject::{self, Asked, Injections};
use crate::log::{Line, Logs, Position, Problem, Source};
use crate::metrics::Figures;
use crate::record::{Aside, replace_file};
use crate::signal::{Signal, SignalKind};
use crate::watch::flood::Flood;
use crate::watch::gpu::{Expected, GpuWatch, Memory};
use crate::watch::host::HostWatch;
use crate::watch::log::LogWatch;
use argosy_api::rpc::node::NodeMetrics;
use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// What is remembered of GPUs, in the data directory.
const GPUS_FILE: &str = "gpus.json";
/// How far logs were read, in the data directory.
const POSITION_FILE: &str = "logs.json";

/// How long after a line its place is written down. What was seen is on disk long before; a crash in
/// between reads some lines twice, and none never.
const POSITION_AFTER: Duration = Duration::from_secs(2);

/// How long lines wait until it is known which GPUs there are. The kernel keeps them; a driver that
/// takes longer is itself what they are about.
const GPUS_KNOWN_MAX: Duration = Duration::from_secs(10);

/// How often it is looked whether logs can still be read.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often the memory of GPUs is written down while nothing happens to them. It holds counters and
/// times, so that a restart does not tell old growth as new.
const REMEMBER_EVERY: Duration = Duration::from_secs(300);

/// How long a disk gets. One that takes longer hangs, and what is written here is only a convenience.
const WRITE_MAX: Duration = Duration::from_secs(2);

/// How many batches of signals wait for the agent. It does nothing slow; whoever floods waits.
const SIGNALS_MAX: usize = 64;

/// What the ways in know of each other.
#[derive(Default)]
struct Known {
    gpus: GpuWatch,
    lines: LogWatch,
    inventory: Inventory,
    sources: Vec<Source>,
    problems: Vec<Problem>,
    /// Told when the GPUs are known, or known not to be.
    learned: Arc<Notify>,
}

type Shared = Arc<Mutex<Known>>;

fn lock(known: &Shared) -> MutexGuard<'_, Known> {
    // Nothing under the lock can leave it half changed.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is to watch.
pub struct Options {
    /// Where it is remembered.
    pub data_dir: PathBuf,
    /// Which start of the machine this is.
    pub boot_id: String,
    /// What should be there.
    pub expected: Expected,
    /// Where the kernel shows things.
    pub roots: Roots,
    /// The machine around the GPUs; `None` for a made-up one.
    pub host: Option<Host>,
    /// Its logs; `None` for a made-up machine.
    pub logs: Option<crate::log::Options>,
    /// What the kernel of a made-up machine writes, and where faults are made.
    pub fake: Option<(SharedFake, mpsc::Receiver<String>)>,
    /// Where faults are asked for, if that is allowed.
    pub injections: Option<Injections>,
    /// What is counted.
    pub figures: Arc<Figures>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// The ways in, each for somebody else.
pub struct Sight {
    /// For rounds of checks.
    pub eyes: Eyes,
    /// For heartbeats.
    pub meter: Meter,
    /// To be polled for as long as the agent runs.
    pub ears: Ears,
    /// What the ears hear.
    pub signals: mpsc::Receiver<Vec<Signal>>,
    /// Ends the listening, with what was gathered.
    pub stop: Stop,
}

/// Ends the listening.
#[derive(Clone, Default)]
pub struct Stop {
    asked: Arc<Notify>,
    done: Arc<Notify>,
}

impl Stop {
    /// Says what was gathered, and hears nothing any more. Waits for a moment only.
    pub async fn finish(&self) {
        self.asked.notify_one();
        _ = tokio::time::timeout(WRITE_MAX, self.done.notified()).await;
    }
}

/// What is remembered of GPUs, and of which start of the machine.
#[derive(Default, Serialize, Deserialize)]
struct Remembered {
    boot_id: String,
    gpus: Memory,
}

/// Opens all of it. Needs a tokio runtime.
pub fn open(options: Options) -> Sight {
    let Options { data_dir, boot_id, expected, host, logs, fake, figures, clock, .. } = options;
    let gpus_file = data_dir.join(GPUS_FILE);
    let remembered: Remembered = read(&gpus_file);
    let mut gpus = GpuWatch::new(expected, remembered.gpus);
    if remembered.boot_id != boot_id {
        gpus.rebooted();
    }
    let position_file = data_dir.join(POSITION_FILE);
    let logs = logs
        .map(|logs| Logs::open(crate::log::Options { position: place(&position_file), ..logs }));
    let known: Shared = Arc::new(Mutex::new(Known { gpus, ..Known::default() }));
    if let Some(logs) = &logs {
        lock(&known).hears(logs);
    }
    let stop = Stop::default();
    let (sender, signals) = mpsc::channel(SIGNALS_MAX);
    let (fake, lines) = fake.unzip();
    Sight {
        eyes: Eyes {
            known: known.clone(),
            host,
            host_watch: HostWatch::default(),
            file: gpus_file,
            boot_id,
            aside: Aside::default(),
            written: None,
            figures: figures.clone(),
        },
        meter: Meter { busy: Busy::new(options.roots) },
        ears: Ears {
            known,
            logs,
            position_file,
            aside: Aside::default(),
            lines,
            fake,
            injections: options.injections,
            flood: Flood::default(),
            sender,
            stop: stop.clone(),
            figures,
            clock,
        },
        signals,
        stop,
    }
}

fn read<T: Default + serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn place(path: &Path) -> Position {
    match Position::load(path) {
        Ok(position) => position.unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "cannot read how far logs were read; reading them again");
            Position::default()
        }
    }
}

impl Known {
    fn hears(&mut self, logs: &Logs) {
        self.sources = logs.sources();
        self.problems = logs.problems();
    }

    fn learn(&mut self, inventory: &Inventory) {
        if self.inventory != *inventory {
            self.inventory = inventory.clone();
            self.lines.learn(inventory);
        }
        self.learned.notify_one();
    }

    /// What a line says, with what the driver advised for its GPU. That it advised nothing at the last
    /// look was before this line, and speaks for nothing.
    fn read(&mut self, line: &Line) -> Vec<Signal> {
        let mut signals = self.lines.read(line);
        for signal in &mut signals {
            if let (SignalKind::Xid, Some(gpu)) = (signal.kind, &signal.gpu) {
                let advised = self.gpus.recovery_action(&gpu.uuid).filter(|action| *action != 0);
                signal.recovery_action = signal.recovery_action.or(advised);
            }
        }
        signals
    }
}

/// Looks at everything in each round of checks.
pub struct Eyes {
    known: Shared,
    host: Option<Host>,
    host_watch: HostWatch,
    file: PathBuf,
    boot_id: String,
    aside: Aside,
    /// When the memory was last written down.
    written: Option<Timestamp>,
    figures: Arc<Figures>,
}

#[async_trait]
impl Watcher for Eyes {
    async fn check(&mut self, _names: &[String], seen: Round<'_>) -> Found {
        let none = Inventory::default();
        let inventory = seen.inventory.unwrap_or(&none);
        self.figures.inventoried(inventory);
        let (mut looked, remembered) = {
            let mut known = lock(&self.known);
            known.learn(inventory);
            let looked = known.gpus.on(seen.sweep.as_ref(), inventory, seen.steady);
            // The kernel of a made-up machine is always heard.
            let made_up = [Source::Kmsg];
            let sources = if self.host.is_some() { &*known.sources } else { &made_up };
            let xid = known.lines.outcome(sources, &known.problems);
            let (boot_id, gpus) = (self.boot_id.clone(), known.gpus.memory().clone());
            let mut found = Found {
                outcomes: looked.checks,
                signals: looked.signals,
                conditions: looked.conditions,
                inventory_changed: looked.inventory_changed,
            };
            found.outcomes.push(xid);
            (found, Remembered { boot_id, gpus })
        };
        self.remember(remembered, !looked.signals.is_empty(), seen.steady).await;
        let (outcome, signals) = self.host(inventory, seen.steady).await;
        looked.outcomes.extend(outcome);
        looked.signals.extend(signals);
        // What is watched goes by a clock that is never set; what is told, by the one that people read.
        let apart = seen.now.duration_since(seen.steady);
        for signal in &mut looked.signals {
            for time in [&mut signal.first, &mut signal.last] {
                *time = time.saturating_add(apart).unwrap_or(*time);
            }
        }
        looked
    }
}

impl Eyes {
    async fn host(
        &mut self,
        inventory: &Inventory,
        now: Timestamp,
    ) -> (Option<CheckOutcome>, Vec<Signal>) {
        let Some(host) = &mut self.host else { return (None, Vec::new()) };
        self.host_watch.learn(inventory);
        match host.sample(now).await {
            Ok(sample) => {
                let (outcome, signals) = self.host_watch.on(&sample);
                (Some(outcome), signals)
            }
            Err(error) => (Some(self.host_watch.failed(&error)), Vec::new()),
        }
    }

    async fn remember(&mut self, remembered: Remembered, news: bool, now: Timestamp) {
        let due = self
            .written
            .is_none_or(|written| REMEMBER_EVERY <= now.duration_since(written).unsigned_abs());
        if !news && !due {
            return;
        }
        let file = self.file.clone();
        // The check `agent` says that the disk is full; what is lost here is the memory of a restart, until the next
        // round.
        let written = write(&self.aside, "what is known of GPUs", move || {
            replace_file(&file, &serde_json::to_vec(&remembered)?)
        });
        self.written = if written.await { Some(now) } else { None };
    }
}

/// Writes on another thread, and says whether it was done: a disk that hangs must not keep this one, and takes one
/// thread however often it is tried.
async fn write(
    aside: &Aside,
    what: &str,
    write: impl FnOnce() -> std::io::Result<()> + Send + 'static,
) -> bool {
    if !aside.is_free() {
        tracing::debug!(what, "the last write has not come back; not written down");
        return false;
    }
    match tokio::time::timeout(WRITE_MAX, aside.run(write)).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => tracing::debug!(%error, what, "cannot write it down"),
        Err(_) => tracing::debug!(what, "cannot write it down in time"),
    }
    false
}

/// Measures how busy the machine is, after each heartbeat.
pub struct Meter {
    busy: Busy,
}

#[async_trait]
impl Collector for Meter {
    async fn collect(&mut self, sweep: Option<&Sweep>) -> Option<NodeMetrics> {
        let (cpu, memory) = self.busy.read();
        let gpus: Vec<_> =
            sweep.into_iter().flat_map(|sweep| &sweep.gpus).map(gpu_metrics).collect();
        let measured = cpu.is_some() || memory.is_some() || !gpus.is_empty();
        measured.then(|| node_metrics(cpu, memory, gpus))
    }
}

/// Hears what is written, at once.
pub struct Ears {
    known: Shared,
    logs: Option<Logs>,
    position_file: PathBuf,
    aside: Aside,
    lines: Option<mpsc::Receiver<String>>,
    fake: Option<SharedFake>,
    injections: Option<Injections>,
    flood: Flood,
    sender: mpsc::Sender<Vec<Signal>>,
    stop: Stop,
    figures: Arc<Figures>,
    clock: Arc<dyn Clock>,
}

impl Ears {
    /// Listens until nobody wants to hear it any more.
    pub async fn listen(mut self) {
        let learned = lock(&self.known).learned.clone();
        // Before the GPUs are known a line could not say which of them it is about.
        let mut gpus_known = false;
        let known_by = in_a_moment(GPUS_KNOWN_MAX);
        // The place of a line that was heard a moment ago, and when to write it down.
        let mut place: Option<(Position, Instant)> = None;
        let mut look_at = in_a_moment(LOOK_EVERY);
        loop {
            let due = self.flood.next_due();
            let wait = due.map(|due| Duration::try_from(due.duration_since(self.clock.steady())));
            let wait = wait.map(|wait| wait.unwrap_or_default().min(LOOK_EVERY));
            let signals = tokio::select! {
                line = line_of(&mut self.logs), if gpus_known => {
                    if let (None, Some(logs)) = (&place, &self.logs) {
                        place = Some((logs.position().clone(), in_a_moment(POSITION_AFTER)));
                    }
                    lock(&self.known).read(&line)
                }
                text = text_of(&mut self.lines), if gpus_known => {
                    let (source, at) = (Source::Kmsg, self.clock.now());
                    lock(&self.known).read(&Line { source, at, text, lost_before: 0, boot_id: String::new() })
                }
                asked = asked_of(&mut self.injections) => self.injected(asked).await,
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => Vec::new(),
                () = until(place.as_ref().map(|(_, at)| *at)) => {
                    place = self.write_down(place.map(|(position, _)| position)).await;
                    continue;
                }
                () = tokio::time::sleep_until(look_at) => {
                    look_at = in_a_moment(LOOK_EVERY);
                    if let Some(logs) = &self.logs {
                        lock(&self.known).hears(logs);
                    }
                    continue;
                }
                () = learned.notified(), if !gpus_known => {
                    gpus_known = true;
                    continue;
                }
                () = tokio::time::sleep_until(known_by), if !gpus_known => {
                    gpus_known = true;
                    continue;
                }
                () = self.stop.asked.notified() => return self.finish().await,
                () = self.sender.closed() => return,
            };
            let now = self.clock.steady();
            let mut out: Vec<_> =
                signals.into_iter().filter_map(|signal| self.flood.on(signal, now)).collect();
            out.extend(self.flood.due(now));
            if !self.tell(out).await {
                return;
            }
        }
    }

    /// Tells of signals; false if nobody listens.
    async fn tell(&self, signals: Vec<Signal>) -> bool {
        if signals.is_empty() {
            return true;
        }
        signals.iter().for_each(|_| Figures::count(&self.figures.signals));
        self.sender.send(signals).await.is_ok()
    }

    /// Tells of what was gathered, and then of nothing.
    async fn finish(mut self) {
        let gathered = self.flood.finish();
        self.tell(gathered).await;
        self.write_down(None).await;
        self.stop.done.notify_one();
        std::future::pending().await
    }

    /// Makes it happen, and answers whoever asked for it.
    async fn injected(&self, asked: Asked) -> Vec<Signal> {
        let injection = &asked.injection;
        tracing::warn!(%injection, "a fault is to be injected");
        let injected = match &self.fake {
            Some(fake) => fake.inject(injection).map(|()| None).map_err(|error| error.to_string()),
            None => {
                let known = lock(&self.known);
                inject::signal(injection, &known.inventory, self.clock.now())
                    .map_err(|error| error.to_string())
            }
        };
        let (answer, signal) = match injected {
            Ok(signal) => (Ok(()), signal),
            Err(error) => (Err(error), None),
        };
        asked.answer(answer).await;
        signal.into_iter().collect()
    }

    /// Writes down a place that was reached some time ago, or else the present one. Answers with the
    /// next one to write, if there is another by now.
    async fn write_down(&self, position: Option<Position>) -> Option<(Position, Instant)> {
        let reached = self.logs.as_ref()?.position().clone();
        let position = position.unwrap_or_else(|| reached.clone());
        let next = (position != reached).then(|| (reached, in_a_moment(POSITION_AFTER)));
        let file = self.position_file.clone();
        write(&self.aside, "how far logs were read", move || position.save(&file)).await;
        next
    }
}

#[expect(clippy::disallowed_methods, reason = "a timer of the runtime, not a time that is told")]
fn in_a_moment(after: Duration) -> Instant {
    Instant::now() + after
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn line_of(logs: &mut Option<Logs>) -> Line {
    match logs {
        Some(logs) => logs.next().await,
        None => std::future::pending().await,
    }
}

async fn text_of(lines: &mut Option<mpsc::Receiver<String>>) -> String {
    if let Some(receiver) = lines
        && let Some(line) = receiver.recv().await
    {
        return line;
    }
    *lines = None;
    std::future::pending().await
}

async fn asked_of(injections: &mut Option<Injections>) -> Asked {
    match injections {
        Some(injections) => injections.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
