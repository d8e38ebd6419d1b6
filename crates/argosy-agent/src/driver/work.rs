//! Commands at work: one at a time, each in a task of its own that can be taken back.

use super::sense::GpuDesk;
use crate::agent::Event;
use crate::clock::Clock;
use crate::command::drain::{self, Busy, HookState};
use crate::command::duty::{self, Duty, DutyState};
use crate::command::hook::Hook;
use crate::command::{
    Action, Drained, End, Failure, Handler, Kind, Order, Outcome, Progress, parse,
};
use crate::gpu::Process;
use crate::record::Aside;
use futures_util::FutureExt;
use jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// How often a drain looks whether anything still runs.
const DRAIN_LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long to wait before a hook that failed is tried again: evictions are often refused for a while.
const HOOK_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How long processes get to end by themselves once they were asked to, at a forced deadline.
const FORCE_GRACE: Duration = Duration::from_secs(10);
/// How long a drain takes that has no deadline: only a control plane that is not ours sends one.
const DRAIN_DEFAULT: Duration = Duration::from_secs(300);

/// Who does commands: ours, and those of an embedder before ours.
#[derive(Default)]
pub struct Handlers {
    /// By kind of command.
    pub by_kind: BTreeMap<Kind, Arc<dyn Handler>>,
    /// By name of diagnostic.
    pub diagnostics: BTreeMap<String, Arc<dyn Handler>>,
    /// Makes the one for diagnostics, which asks the agent's own GPUs.
    pub make_diagnostics: Option<MakeHandler>,
    /// A program that is told when the duty changes.
    pub hook: Option<Hook>,
}

/// Makes a handler that asks the agent's own GPUs.
pub type MakeHandler = Box<dyn FnOnce(GpuDesk) -> Arc<dyn Handler> + Send + Sync>;

pub(super) struct Worker {
    shared: Arc<Shared>,
    events: mpsc::Sender<Event>,
    at_work: Option<(String, oneshot::Sender<()>)>,
    tasks: JoinSet<()>,
}

struct Shared {
    handlers: Handlers,
    desk: GpuDesk,
    data_dir: PathBuf,
    aside: Aside,
    clock: Arc<dyn Clock>,
}

impl Worker {
    pub(super) fn new(
        handlers: Handlers,
        desk: GpuDesk,
        data_dir: PathBuf,
        clock: Arc<dyn Clock>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let shared = Arc::new(Shared { handlers, desk, data_dir, aside: Aside::default(), clock });
        Self { shared, events, at_work: None, tasks: JoinSet::new() }
    }

    pub(super) fn begin(&mut self, order: Order) {
        // What ended has said so; nothing else is to be known of it.
        while self.tasks.try_join_next().is_some() {}
        let (cancel, cancelled) = oneshot::channel();
        self.at_work = Some((order.id.clone(), cancel));
        let (shared, events) = (self.shared.clone(), self.events.clone());
        self.tasks.spawn(async move {
            let (progress, mut steps) = Progress::channel();
            let id = order.id.clone();
            let working = AssertUnwindSafe(shared.work(&order, &progress)).catch_unwind();
            let telling = async {
                while let Some(step) = steps.recv().await {
                    let (percent, message) = (step.percent, step.message);
                    let command = id.clone();
                    _ = events.send(Event::Progress { command, percent, message }).await;
                }
                std::future::pending::<()>().await;
            };
            let end = tokio::select! {
                biased;
                Ok(()) = cancelled => {
                    shared.taken_back(&order).await;
                    End::cancelled(shared.clock.now(), &order, "taken back")
                }
                said = working => {
                    let crashed = |_| Err(Failure("its handler crashed".to_owned()));
                    End::of(shared.clock.now(), said.unwrap_or_else(crashed))
                }
                () = telling => return,
            };
            _ = events.send(Event::Ended { command: order.id.clone(), end }).await;
        });
    }

    pub(super) fn cancel(&mut self, id: &str) {
        if let Some((_, cancel)) = self.at_work.take_if(|(at_work, _)| at_work == id) {
            _ = cancel.send(());
        }
    }
}

impl Shared {
    async fn work(&self, order: &Order, progress: &Progress) -> Result<Outcome, Failure> {
        let action = parse(order)?;
        if let Action::Diagnose(plan) = &action
            && let Some(handler) = self.handlers.diagnostics.get(plan.test.as_str())
        {
            return handler.handle(order, progress).await;
        }
        if let Some(handler) = self.handlers.by_kind.get(&order.kind) {
            return handler.handle(order, progress).await;
        }
        match action {
            Action::Cordon => {
                self.set_duty(DutyState::Cordoned, order).await?;
                self.run_hook("cordon", order).await?;
                Ok(Outcome::new("takes no new work"))
            }
            Action::Uncordon => {
                self.set_duty(DutyState::Active, order).await?;
                self.run_hook("uncordon", order).await?;
                Ok(Outcome::new("takes work again"))
            }
            Action::Drain { force } => {
                self.set_duty(DutyState::Draining, order).await?;
                let outcome = self.drain(order, force, progress).await;
                self.set_duty(DutyState::Cordoned, order).await?;
                outcome
            }
            Action::Terminate { exit } => {
                self.set_duty(DutyState::Cordoned, order).await?;
                self.run_hook("terminate", order).await?;
                Ok(Outcome { exit, ..Outcome::new("stopping") })
            }
            Action::Diagnose(plan) => {
                let test = plan.test.as_str();
                Err(Failure(format!("this agent was built without the diagnostic `{test}`")))
            }
        }
    }

    /// A drain that was taken back leaves the machine out of service: whoever took it back says next
    /// what it is to be.
    async fn taken_back(&self, order: &Order) {
        if order.kind == Kind::Drain {
            _ = self.set_duty(DutyState::Cordoned, order).await;
        }
    }

    async fn set_duty(&self, state: DutyState, order: &Order) -> Result<(), Failure> {
        let (reason, command) = (order.reason.clone(), order.id.clone());
        let duty = Duty { state, reason, command, since: self.clock.now() };
        let data_dir = self.data_dir.clone();
        self.aside.run(move || duty::write(&data_dir, &duty)).await.map_err(|error| {
            Failure(format!(
                "cannot write {}: {error}",
                self.data_dir.join(duty::DUTY_FILE).display()
            ))
        })
    }

    async fn run_hook(&self, word: &str, order: &Order) -> Result<(), Failure> {
        match &self.handlers.hook {
            Some(hook) => hook.run(word, order, hook.time_max).await,
            None => Ok(()),
        }
    }

    async fn drain(
        &self,
        order: &Order,
        force: bool,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let default = || self.clock.now().saturating_add(DRAIN_DEFAULT);
        let deadline = match order.deadline {
            Some(deadline) => deadline,
            None => default().unwrap_or(jiff::Timestamp::MAX),
        };
        let left = || {
            Duration::try_from(deadline.duration_since(self.clock.now())).unwrap_or(Duration::ZERO)
        };
        let (told, mut hook) = mpsc::channel(1);
        let mut hooks = JoinSet::new();
        let mut hook_state = HookState::Done;
        if let Some(program) = self.handlers.hook.clone() {
            hook_state = HookState::Running;
            let (order, clock) = (order.clone(), self.clock.clone());
            hooks.spawn(async move {
                let left = || Duration::try_from(deadline.duration_since(clock.now()));
                while let Ok(left) = left() {
                    let state = match program.run("drain", &order, left).await {
                        Ok(()) => HookState::Done,
                        Err(failure) => HookState::Failed(failure.0),
                    };
                    let done = state == HookState::Done;
                    if told.send(state).await.is_err() || done {
                        return;
                    }
                    tokio::time::sleep(HOOK_AGAIN_AFTER).await;
                }
            });
        }
        let mut last = String::new();
        let quiet = SignedDuration::from_secs(order.quiet_seconds.into());
        let mut free_since = None;
        loop {
            let busy = drain::busy(&self.desk.sweep().await, &self.ours());
            while let Ok(state) = hook.try_recv() {
                hook_state = state;
            }
            let past = left().is_zero();
            let now = self.clock.now();
            free_since = (busy == Busy::Free).then(|| free_since.unwrap_or(now));
            let calm = free_since.is_some_and(|since| quiet <= now.duration_since(since));
            if let Some(outcome) = drain::verdict(&busy, &hook_state, calm, past) {
                return Ok(match busy {
                    Busy::With(processes) if force => self.force(&processes, outcome).await,
                    Busy::With(_) | Busy::Free | Busy::Unknown(_) => outcome,
                });
            }
            drain::tell(progress, &busy, &hook_state, &mut last);
            let wait = DRAIN_LOOK_EVERY.min(left().max(Duration::from_millis(10)));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                Some(state) = hook.recv() => hook_state = state,
            }
        }
    }

    /// Ends what still runs: first asks, then makes. Says `Forced` only if nothing is left.
    async fn force(&self, processes: &[Process], timed_out: Outcome) -> Outcome {
        signal(processes, rustix::process::Signal::TERM);
        tokio::time::sleep(FORCE_GRACE).await;
        if let Busy::With(left) = drain::busy(&self.desk.sweep().await, &self.ours()) {
            signal(&left, rustix::process::Signal::KILL);
            tokio::time::sleep(DRAIN_LOOK_EVERY).await;
        }
        match drain::busy(&self.desk.sweep().await, &self.ours()) {
            Busy::Free => Outcome {
                drained: Some(Drained::Forced),
                ..Outcome::new(format!("{} processes were ended at the deadline", processes.len()))
            },
            Busy::With(_) | Busy::Unknown(_) => timed_out,
        }
    }

    /// Processes that are part of the agent: itself, and its children.
    fn ours(&self) -> BTreeSet<u32> {
        let own = std::process::id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        children.chain([own]).collect()
    }
}

/// Sends a signal to processes that are what the driver says they are. In a container their numbers may
/// mean others.
fn signal(processes: &[Process], signal: rustix::process::Signal) {
    for process in processes {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", process.pid));
        let known = comm.is_ok_and(|comm| {
            let comm = comm.trim();
            !comm.is_empty() && process.name.contains(comm)
        });
        let pid = i32::try_from(process.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let (true, Some(pid)) = (known, pid.filter(|pid| 1 < pid.as_raw_nonzero().get())) {
            _ = rustix::process::kill_process(pid, signal);
        }
    }
}
