//! Many agents in one process: the machines of a simulated cloud, each with the agent's own core.
//!
//! What a newcomer gets wrong: nothing of what an agent decides is played here. The same `Agent`, the same
//! watchers and the same verdicts run as on a real machine; made up are the GPUs, the work on them and the
//! disk. One task drives all of them by a heap of the times at which they want to be woken.

mod histogram;
mod machine;
mod wire;

pub use histogram::Histogram;
pub use machine::{Act, Disk, Load, Machine, Spec};
pub use wire::{Wire, WireError};

use crate::agent::{Event, Exit};
use crate::clock::Clock;
use crate::gpu::fake::injection::Injection;
use crate::gpu::fake::{InjectError, SpecError};
use argosy_api::rpc::attach::Said;
use argosy_api::rpc::node::Hello;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// The most agents of one process. Each takes some twenty kilobytes here and as much at the server; more
/// than this is another measurement, with processes of its own.
pub const AGENTS_MAX: usize = 100_000;

/// How many disks of machines that are off are kept for their next boot. One that is forgotten starts as a
/// new machine does, which it says.
const DISKS_MAX: usize = 1_024;

/// How many events are carried out before what was asked for meanwhile is looked at: few enough that a
/// kill takes effect at once, many enough that looking costs nothing.
const BATCH: usize = 256;

/// Which boot of which machine: never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentNumber(u64);

/// The way of all agents to the control plane. None of the calls waits.
pub trait Line: Send + 'static {
    /// Opens a stream for an agent and says hello on it. Answered by what is told, or by `Event::Lost`.
    fn attach(&mut self, agent: AgentNumber, hello: Hello);

    /// Says this on the agent's stream, or by a call of its own if it has none.
    fn say(&mut self, agent: AgentNumber, said: Said);

    /// Asks for commands by a call.
    fn poll(&mut self, agent: AgentNumber);

    /// Gives the agent's stream up, if it has one; nothing more is to be heard of it.
    fn detach(&mut self, agent: AgentNumber);

    /// The next thing that an agent hears. May be dropped at any await, and asked again.
    fn next(&mut self) -> impl Future<Output = (AgentNumber, Event)> + Send;
}

/// Agents that run. Dropping it ends them all without a word, as a power cut does.
#[derive(Debug)]
pub struct Swarm {
    shared: Arc<Shared>,
    /// Dropped with us, it ends.
    _task: JoinSet<()>,
}

/// Why nothing could be injected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwarmError {
    /// There is no such agent.
    #[error("no machine is up that is called {0}")]
    NotUp(String),
    /// The machine has no GPUs.
    #[error("{0} has no GPUs")]
    NoGpus(String),
    /// It does not fit the machine.
    #[error(transparent)]
    Injection(#[from] InjectError),
}

#[derive(Debug, Default)]
struct Shared {
    /// What is to be done. Bounded by the machines that there are: each is booted or killed once.
    asks: Mutex<VecDeque<Ask>>,
    asked: Notify,
    count: AtomicUsize,
}

#[derive(Debug)]
enum Ask {
    Boot(Box<Spec>),
    Kill(String),
    Inject(String, Injection, oneshot::Sender<Result<(), SwarmError>>),
}

impl Shared {
    fn asks(&self) -> MutexGuard<'_, VecDeque<Ask>> {
        // Nothing under the lock can leave it half changed.
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: Ask) {
        self.asks().push_back(ask);
        self.asked.notify_one();
    }
}

impl Swarm {
    /// Starts with no agents. Needs a tokio runtime.
    pub fn start(load: Load, clock: Arc<dyn Clock>, line: impl Line) -> Self {
        let shared = Arc::new(Shared::default());
        let hall = Hall {
            line,
            load,
            clock,
            shared: shared.clone(),
            machines: HashMap::new(),
            numbers: HashMap::new(),
            disks: VecDeque::new(),
            wakes: BinaryHeap::new(),
            booted: 0,
        };
        let mut task = JoinSet::new();
        task.spawn(hall.run());
        Self { shared, _task: task }
    }

    /// Boots a machine; one of the same id that is up is killed first. What it kept on its disk is there
    /// again.
    ///
    /// # Errors
    /// If nobody can make up such GPUs.
    pub fn boot(&self, spec: Spec) -> Result<(), SpecError> {
        spec.check()?;
        self.shared.ask(Ask::Boot(Box::new(spec)));
        Ok(())
    }

    /// Takes a machine's power: it is silent from now on.
    pub fn kill(&self, node_id: &str) {
        self.shared.ask(Ask::Kill(node_id.to_owned()));
    }

    /// Makes something happen to a GPU of a machine.
    ///
    /// # Errors
    /// See `SwarmError`.
    pub async fn inject(&self, node_id: &str, injection: Injection) -> Result<(), SwarmError> {
        let (answer, answered) = oneshot::channel();
        self.shared.ask(Ask::Inject(node_id.to_owned(), injection, answer));
        answered.await.unwrap_or_else(|_| Err(SwarmError::NotUp(node_id.to_owned())))
    }

    /// How many agents run.
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::Relaxed)
    }
}

/// Where they all are.
struct Hall<L> {
    line: L,
    load: Load,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    machines: HashMap<AgentNumber, Machine>,
    numbers: HashMap<String, AgentNumber>,
    /// The disks of machines that are off, the longest off first.
    disks: VecDeque<(String, Disk)>,
    wakes: BinaryHeap<Reverse<(Timestamp, AgentNumber)>>,
    booted: u64,
}

/// The longest sleep: clocks may be set.
const SLEEP_MAX: Duration = Duration::from_secs(60);

impl<L: Line> Hall<L> {
    async fn run(mut self) {
        loop {
            self.take_asks();
            self.wake_due();
            let wait = self.wakes.peek().map_or(SLEEP_MAX, |Reverse((at, _))| {
                let wait = at.duration_since(self.clock.now());
                Duration::try_from(wait).unwrap_or(Duration::ZERO).min(SLEEP_MAX)
            });
            tokio::select! {
                // What was asked and what is due has its turn above, each time round.
                biased;
                (agent, event) = self.line.next() => self.step(agent, event),
                () = self.shared.asked.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn take_asks(&mut self) {
        let asks: Vec<Ask> = {
            let mut asks = self.shared.asks();
            let some = asks.len().min(BATCH);
            asks.drain(..some).collect()
        };
        if asks.len() == BATCH {
            // There may be more, after what is due.
            self.shared.asked.notify_one();
        }
        for ask in asks {
            match ask {
                Ask::Boot(spec) => self.boot(*spec),
                Ask::Kill(node_id) => self.kill(&node_id),
                Ask::Inject(node_id, injection, answer) => {
                    // Whoever asked may have gone.
                    _ = answer.send(self.inject(node_id, &injection));
                }
            }
        }
    }

    fn boot(&mut self, spec: Spec) {
        self.kill(&spec.node_id);
        if AGENTS_MAX <= self.machines.len() {
            tracing::warn!(node = spec.node_id, max = AGENTS_MAX, "too many agents; left one out");
            return;
        }
        let known = self.disks.iter().position(|(node_id, _)| *node_id == spec.node_id);
        let disk = known.and_then(|known| self.disks.remove(known)).map(|(_, disk)| disk);
        self.booted += 1;
        let number = AgentNumber(self.booted);
        let (node_id, now) = (spec.node_id.clone(), self.clock.now());
        let Ok((machine, acts)) = Machine::boot(spec, disk.unwrap_or_default(), self.load, now)
        else {
            return;
        };
        self.machines.insert(number, machine);
        self.numbers.insert(node_id, number);
        self.counted();
        self.carry_out(number, acts);
    }

    /// The machine is off. Its disk stays for its next boot.
    fn kill(&mut self, node_id: &str) {
        let Some(number) = self.numbers.remove(node_id) else { return };
        self.line.detach(number);
        if let Some(machine) = self.machines.remove(&number) {
            if DISKS_MAX <= self.disks.len() {
                self.disks.pop_front();
            }
            self.disks.push_back((node_id.to_owned(), machine.into_disk()));
        }
        self.counted();
    }

    fn inject(&mut self, node_id: String, injection: &Injection) -> Result<(), SwarmError> {
        let now = self.clock.now();
        let number = self.numbers.get(&node_id).copied();
        let machine = number.and_then(|number| self.machines.get_mut(&number));
        let (Some(number), Some(machine)) = (number, machine) else {
            return Err(SwarmError::NotUp(node_id));
        };
        let acts = match machine.inject(injection, now) {
            Some(acts) => acts?,
            None => return Err(SwarmError::NoGpus(node_id)),
        };
        self.carry_out(number, acts);
        Ok(())
    }

    fn counted(&self) {
        self.shared.count.store(self.machines.len(), Ordering::Relaxed);
    }

    fn wake_due(&mut self) {
        for _ in 0..BATCH {
            let now = self.clock.now();
            let Some(Reverse((at, number))) = self.wakes.peek().copied() else { return };
            if now < at {
                return;
            }
            self.wakes.pop();
            // One that wants to be woken at another time by now has another entry.
            if self.machines.get_mut(&number).is_some_and(|machine| machine.is_due(at)) {
                self.step(number, Event::Woke);
            }
        }
    }

    fn step(&mut self, number: AgentNumber, event: Event) {
        let now = self.clock.now();
        let Some(machine) = self.machines.get_mut(&number) else { return };
        let acts = machine.on(event, now);
        self.carry_out(number, acts);
    }

    fn carry_out(&mut self, number: AgentNumber, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Attach(hello) => self.line.attach(number, *hello),
                Act::Say(said) => self.line.say(number, said),
                Act::Poll => self.line.poll(number),
                Act::Detach => self.line.detach(number),
                Act::Exit(Exit::Terminated | Exit::Stopped) => {
                    let node_id = self.machines.get(&number).map(|machine| machine.node_id());
                    if let Some(node_id) = node_id {
                        self.kill(&node_id);
                    }
                    return;
                }
            }
        }
        let wake = self.machines.get_mut(&number).and_then(Machine::new_wake);
        self.wakes.extend(wake.map(|at| Reverse((at, number))));
    }
}

#[cfg(test)]
mod tests;
