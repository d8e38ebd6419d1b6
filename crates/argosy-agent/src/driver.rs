//! Carries out what the agent decided: the only part that waits.
//!
//! One loop hears everything and never waits for anything but the next thing to hear. Whatever may take
//! long (the driver of the GPUs, the disk, the network, a command) is somewhere else and sends an event
//! when it is done, so heartbeats go on whatever any of them does.

mod disk;
mod own;
mod sense;
mod work;

pub use own::{STARTS_MAX, unstable};
pub use sense::{Collector, Found, GpuDesk, GpusOnly, NoGpus, Round, Watcher, Without};
pub(crate) use sense::{gpu_metrics, node_metrics, wire_gpus};
pub use work::{Handlers, MakeHandler};

use crate::agent::{Agent, Effect, Event, Exit, Identity, Loss, Notice};
use crate::check::CheckOutcome;
use crate::clock::Clock;
use crate::command::Kind;
use crate::gpu::Gpu;
use crate::link::{Called, Link};
use crate::metrics::Figures;
use crate::signal::Signal;
use crate::spool::Keep;
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::RegisterNodeRequest;
use disk::DiskThread;
use own::Own;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use work::Worker;

/// How many events wait for the loop. It does nothing slow, so a full queue is a flood; whoever floods
/// waits.
const EVENTS_MAX: usize = 256;
/// How much may wait to be said on a stream. A control plane that lets so much pile up does not read.
const SAYING_MAX: usize = 64;
/// How many calls may wait for each other where there is no stream.
const CALLS_MAX: usize = 64;
/// How long the disk gets to write what waits when the process ends.
const FINISH_MAX: Duration = Duration::from_secs(2);
/// The longest sleep. Timers are short enough for it not to matter, and clocks may be set.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Everything a running agent is made of.
pub struct Parts {
    /// Who it is.
    pub who: Identity,
    /// What it says of itself when it registers, without GPUs.
    pub machine: RegisterNodeRequest,
    /// Where its files are.
    pub data_dir: PathBuf,
    /// Its line.
    pub link: Link,
    /// Its GPUs.
    pub gpu: Box<dyn Gpu>,
    /// Who makes checks and signals of what is seen.
    pub watcher: Box<dyn Watcher>,
    /// What is seen between rounds: lines of the kernel.
    pub signals: mpsc::Receiver<Vec<Signal>>,
    /// Who measures how busy the machine is.
    pub collector: Box<dyn Collector>,
    /// Who does commands.
    pub handlers: Handlers,
    /// Where it is counted what is done.
    pub figures: Arc<Figures>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another agent is at work there. Two would mix up what they have said and done.
    #[error(
        "another agent uses the data directory {path}; stop it, or give this one a directory of its own \
         with --data-dir"
    )]
    Busy {
        /// Which.
        path: PathBuf,
    },
    /// The data directory is not there and cannot be made.
    #[error("cannot use the data directory {path}: {error}")]
    DataDir {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A part of it ended that should not.
    #[error("a part of the agent ended: {0}")]
    Died(String),
}

/// Runs an agent until `stop` comes, or it is terminated.
///
/// # Errors
/// See `RunError`.
pub async fn run(parts: Parts, stop: impl Future<Output = ()>) -> Result<Exit, RunError> {
    let mut driver = Driver::start(parts)?;
    let exit = driver.listen(stop).await;
    let Driver { disk, tasks, stream, calls, worker, events, answers, .. } = driver;
    // Whoever still has something to say finds nobody who listens.
    drop((tasks, stream, calls, worker, events, answers));
    let thread = disk.finish();
    let finished = tokio::task::spawn_blocking(move || thread.join());
    _ = tokio::time::timeout(FINISH_MAX, finished).await;
    exit
}

struct Driver {
    agent: Agent,
    clock: Arc<dyn Clock>,
    figures: Arc<Figures>,
    link: Link,
    disk: DiskThread,
    worker: Worker,
    rounds: mpsc::Sender<Vec<String>>,
    beaten: Arc<Notify>,
    signals: Option<mpsc::Receiver<Vec<Signal>>>,
    events: mpsc::Receiver<Event>,
    /// What came of calls.
    answers: mpsc::Receiver<Event>,
    stream: Option<Stream>,
    calls: mpsc::Sender<Call>,
    /// What happened while effects were carried out, and is to be heard after them: an agent that is told
    /// of it in between would have its later words carried out before its earlier ones.
    unheard: VecDeque<Event>,
    exit: Option<Exit>,
    /// The tasks that are to live as long as we do.
    tasks: JoinSet<&'static str>,
}

/// A stream that was opened and not given up.
struct Stream {
    saying: mpsc::Sender<Said>,
    /// What is told on it, and at last why it ended.
    told: mpsc::Receiver<Result<Told, Loss>>,
    task: AbortHandle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum Call {
    Say(Said),
    Poll,
}

impl Driver {
    fn start(parts: Parts) -> Result<Self, RunError> {
        let Parts { who, machine, data_dir, link, gpu, watcher, collector, handlers, .. } = parts;
        let (signals, clock, figures) = (parts.signals, parts.clock, parts.figures);
        let now = clock.now();
        let broken = |error| RunError::DataDir { path: data_dir.clone(), error };
        if let Err(error) = std::fs::create_dir_all(&data_dir)
            && !data_dir.is_dir()
        {
            return Err(broken(error));
        }
        let lock = match disk::lock(&data_dir) {
            Ok(lock) => lock,
            Err(_) => return Err(RunError::Busy { path: data_dir }),
        };
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (disk, found) =
            DiskThread::start(&data_dir, lock, figures.clone(), sender.clone()).map_err(broken)?;
        let own = Own::start(&data_dir, now, found.cut_bytes, disk.behind.clone());
        let mut tasks = JoinSet::new();
        let desk = GpuDesk::start(gpu, clock.clone(), figures.clone(), &mut tasks);
        let (seen, looks) = (sense::Seen::default(), desk.clone());
        let rounds = sense::Rounds {
            machine,
            watcher,
            own,
            desk: looks,
            seen: seen.clone(),
            clock: clock.clone(),
        };
        let rounds = sense::start_rounds(rounds, sender.clone(), &mut tasks);
        let beaten = Arc::new(Notify::new());
        let (looks, beats) = (desk.clone(), beaten.clone());
        sense::start_samples(collector, looks, seen, beats, sender.clone(), &mut tasks);
        let (answering, answers) = mpsc::channel(CALLS_MAX);
        let calls = start_calls(link.clone(), answering, &mut tasks);
        let mut handlers = handlers;
        if let Some(make) = handlers.make_diagnostics.take() {
            handlers.by_kind.entry(Kind::RunDiagnostic).or_insert_with(|| make(desk.clone()));
        }
        let worker = Worker::new(handlers, desk, data_dir, clock.clone(), sender);
        let mut agent = Agent::new(Arc::new(who));
        let effects = disk::begin(&mut agent, found, now);
        let mut driver = Self {
            agent,
            clock,
            figures,
            link,
            disk,
            worker,
            rounds,
            beaten,
            signals: Some(signals),
            events,
            answers,
            stream: None,
            calls,
            unheard: VecDeque::new(),
            exit: None,
            tasks,
        };
        driver.carry_out(effects);
        driver.hear_rest();
        Ok(driver)
    }

    async fn listen(&mut self, stop: impl Future<Output = ()>) -> Result<Exit, RunError> {
        let mut stop = std::pin::pin!(stop);
        let watchdog = sd_notify::watchdog_enabled().map(|time| time / 2);
        _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        loop {
            if let Some(exit) = self.exit {
                _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
                return Ok(exit);
            }
            // It comes round at least this often, which is what the watchdog is about.
            _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
            let wait = self.wait().min(watchdog.unwrap_or(SLEEP_MAX));
            let event = tokio::select! {
                biased;
                () = &mut stop => Event::Stop,
                event = self.events.recv() => event.unwrap_or(Event::Stop),
                told = told(&mut self.stream) => told,
                // Late answers to calls would be taken for words on the stream.
                answer = self.answers.recv() => match answer.filter(|_| self.stream.is_none()) {
                    Some(event) => event,
                    None => continue,
                },
                signals = seen(&mut self.signals) => Event::Seen(signals),
                dead = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    let who = dead.map(|dead| dead.unwrap_or("a task that panicked"));
                    return Err(RunError::Died(who.unwrap_or_default().to_owned()));
                }
                () = tokio::time::sleep(wait) => Event::Woke,
            };
            self.hear(event);
        }
    }

    fn wait(&self) -> Duration {
        let Some(wake) = self.agent.wakes_at() else { return SLEEP_MAX };
        let wait = Duration::try_from(wake.duration_since(self.clock.now()));
        wait.unwrap_or(Duration::ZERO).min(SLEEP_MAX)
    }

    fn hear(&mut self, event: Event) {
        self.unheard.push_back(event);
        self.hear_rest();
    }

    fn hear_rest(&mut self) {
        while let Some(event) = self.unheard.pop_front() {
            if let Event::Lost(_) = event {
                self.stream = None;
                Figures::set(&self.figures.connected, 0);
                Figures::count(&self.figures.reconnects);
            }
            if let Event::Told(_) = event {
                Figures::set(&self.figures.connected, 1);
            }
            let effects = self.agent.on(event, self.clock.now());
            self.carry_out(effects);
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Attach(hello) => self.attach(*hello),
                Effect::Detach => self.stream = None,
                Effect::Say(said) => self.say(said),
                Effect::Poll => self.call(Call::Poll),
                // A round that still runs is the next one, too.
                Effect::Check(names) => {
                    _ = self.rounds.try_send(names);
                    // As often as that a disk that was full is tried again.
                    if self.disk.is_behind() {
                        self.disk.keep(self.everything());
                    }
                }
                Effect::Keep(signals) => self.keep(Keep::Signals(signals)),
                Effect::KeepReport(report) => self.keep(Keep::Report(report)),
                Effect::Forget(sequence) => self.keep(Keep::Taken(sequence)),
                Effect::KeepOnly(spooled) => self.keep(Keep::All(spooled)),
                Effect::Note(entry) => {
                    self.unheard.extend(self.disk.note(entry).err());
                }
                Effect::Begin(order) => {
                    Figures::count(&self.figures.commands);
                    self.worker.begin(*order);
                }
                Effect::Cancel(id) => self.worker.cancel(&id),
                Effect::Exit(exit) => self.exit = Some(exit),
                // The agent is asked when it is time to sleep.
                Effect::Wake(_) => {}
                Effect::Notice(Notice { wrong: true, sentence, about }) => {
                    tracing::warn!(about, "{sentence}");
                }
                Effect::Notice(Notice { sentence, about, .. }) => {
                    tracing::info!(about, "{sentence}");
                }
            }
        }
    }

    fn keep(&mut self, keep: Keep) {
        // A spool that missed something is written anew from what the agent knows, which has this, too.
        let keep = if self.disk.is_spool_behind() { self.everything() } else { keep };
        self.disk.keep(keep);
    }

    fn everything(&self) -> Keep {
        Keep::All(Box::new(self.agent.unsent()))
    }

    fn attach(&mut self, hello: argosy_api::rpc::node::Hello) {
        let (saying, to_say) = mpsc::channel(SAYING_MAX);
        let (telling, told) = mpsc::channel(SAYING_MAX);
        let link = self.link.clone();
        let mut set = JoinSet::new();
        let task = set.spawn(async move {
            let loss = link.attach(hello, to_say, &telling).await;
            _ = telling.send(Err(loss)).await;
        });
        // It ends by itself, which it says, or is given up.
        set.detach_all();
        self.stream = Some(Stream { saying, told, task });
    }

    fn say(&mut self, said: Said) {
        let beat = matches!(said, Said::Heartbeat(_));
        if beat {
            Figures::count(&self.figures.heartbeats);
        }
        if let Said::Health(_) = said {
            Figures::count(&self.figures.reports);
        }
        match &self.stream {
            Some(stream) => {
                // The rest of what was to be said now is not said by calls: all of it is lost, once.
                let lost = self.unheard.iter().any(|event| matches!(event, Event::Lost(_)));
                if !lost && stream.saying.try_send(said).is_err() {
                    let why = "the control plane does not read what is said on the stream";
                    self.unheard.push_back(Event::Lost(Loss::Ended(why.to_owned())));
                }
            }
            None => self.call(Call::Say(said)),
        }
        if beat {
            self.beaten.notify_one();
        }
    }

    fn call(&mut self, call: Call) {
        // What does not fit is said again when nobody answers.
        _ = self.calls.try_send(call);
    }
}

async fn told(stream: &mut Option<Stream>) -> Event {
    if let Some(stream) = stream
        && let Some(told) = stream.told.recv().await
    {
        return told.map_or_else(Event::Lost, Event::Told);
    }
    std::future::pending().await
}

async fn seen(signals: &mut Option<mpsc::Receiver<Vec<Signal>>>) -> Vec<Signal> {
    if let Some(receiver) = signals {
        if let Some(seen) = receiver.recv().await {
            return seen;
        }
        *signals = None;
    }
    std::future::pending().await
}

/// Makes calls one after the other, so that they arrive in their order; heartbeats on their own, so that
/// they wait for nothing.
fn start_calls(
    link: Link,
    events: mpsc::Sender<Event>,
    tasks: &mut JoinSet<&'static str>,
) -> mpsc::Sender<Call> {
    let (beats, mut beating) = mpsc::channel::<Said>(1);
    let (sender, mut calls) = mpsc::channel(CALLS_MAX);
    let (beat_link, beat_events) = (link.clone(), events.clone());
    tasks.spawn(async move {
        while let Some(said) = beating.recv().await {
            deliver(beat_link.call(said).await, &beat_events).await;
        }
        "heartbeats"
    });
    tasks.spawn(async move {
        while let Some(call) = calls.recv().await {
            let called = match call {
                Call::Say(said @ Said::Heartbeat(_)) => {
                    _ = beats.try_send(said);
                    continue;
                }
                Call::Say(said) => link.call(said).await,
                Call::Poll => link.poll().await,
            };
            deliver(called, &events).await;
        }
        "calls"
    });
    sender
}

async fn deliver(called: Called, events: &mpsc::Sender<Event>) {
    match called {
        Called::Told(told, commands_wait) => {
            for told in told {
                _ = events.send(Event::Told(told)).await;
            }
            if commands_wait {
                _ = events.send(Event::CommandsWait).await;
            }
        }
        Called::Lost(loss) => _ = events.send(Event::Lost(loss)).await,
    }
}

/// Whether a check is wanted, by the names the control plane told: all are if none is named.
///
/// The machine and the agent itself are always looked after: a control plane that names the checks of
/// GPUs has not decided that a full disk is nobody's business.
fn is_wanted(names: &[String], check: &str) -> bool {
    matches!(check, "agent" | "host") || names.is_empty() || names.iter().any(|name| name == check)
}

/// The outcomes of checks that were asked for.
pub(crate) fn wanted(outcomes: Vec<CheckOutcome>, names: &[String]) -> Vec<CheckOutcome> {
    outcomes.into_iter().filter(|outcome| is_wanted(names, &outcome.check)).collect()
}

#[cfg(test)]
mod tests;
