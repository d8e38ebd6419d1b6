//! The work on the machines: jobs that need many GPUs at once, write checkpoints, and start again when one fails.
//!
//! Pure: what happens to machines goes in with its time, what became of the work comes out. What a newcomer gets
//! wrong: a job is one thing. When one machine of two thousand fails, all of them stand still, and what all of them
//! did since the last checkpoint is lost.

use crate::outcome::Work;
use crate::scenario;
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// Jobs on machines.
///
/// Times are since the beginning of the run. One that is before the last is taken for the last.
///
/// *Guarantees:* `possible = useful + redone + waited + overhead` at every moment, whatever went in.
#[derive(Clone, Debug)]
pub struct Workload {
    jobs: Vec<Job>,
    nodes: BTreeMap<String, Node>,
    /// Until when everything was played, in seconds.
    now: f64,
    /// Jobs that have ended and were followed by another.
    ended: u64,
    interruptions: u64,
    by_cause: BTreeMap<String, u64>,
    /// What was useful and possible when it was last asked for.
    sampled: (f64, f64),
}

/// A machine.
#[derive(Clone, Debug)]
struct Node {
    gpus: u32,
    /// Whether it may be given work.
    open: bool,
    /// GPUs that nobody has.
    free: u32,
    /// Who has how many of the others.
    held: BTreeMap<usize, u32>,
}

/// One job, and the ones that follow it. Times and work are in seconds of the job, not of its GPUs.
#[derive(Clone, Debug)]
struct Job {
    gpus: u32,
    work: Option<f64>,
    checkpoint_every: f64,
    checkpoint: f64,
    restart: f64,
    phase: Phase,
    /// GPUs that it has.
    has: u32,
    /// Whether it has ever run: the first start is not one more.
    ran: bool,
    /// Work of this job that is safe.
    safe: f64,
    /// Work since the last checkpoint.
    unsafe_work: f64,
    /// Over this job and those before it.
    sums: Sums,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// It has not got its GPUs.
    Waiting,
    /// It starts again, for so long.
    Starting {
        left: f64,
    },
    Working,
    /// It writes a checkpoint, for so long.
    Writing {
        left: f64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    possible: f64,
    /// Without what is not safe yet.
    useful: f64,
    redone: f64,
    waited: f64,
    overhead: f64,
}

impl Workload {
    /// All jobs, waiting for machines.
    #[must_use]
    pub fn new(of: &scenario::Workload) -> Self {
        let jobs = of.jobs.iter().flat_map(|job| {
            (0..job.count).map(|_| Job {
                gpus: job.gpus,
                work: job.work.map(|work| work.as_secs_f64()),
                checkpoint_every: job.checkpoint_every.as_secs_f64(),
                checkpoint: job.checkpoint.as_secs_f64(),
                restart: job.restart.as_secs_f64(),
                phase: Phase::Waiting,
                has: 0,
                ran: false,
                safe: 0.0,
                unsafe_work: 0.0,
                sums: Sums::default(),
            })
        });
        Self {
            jobs: jobs.collect(),
            nodes: BTreeMap::new(),
            now: 0.0,
            ended: 0,
            interruptions: 0,
            by_cause: BTreeMap::new(),
            sampled: (0.0, 0.0),
        }
    }

    /// A machine may be given work: it is new, mended, or in service again. Says nothing new if it could already.
    pub fn node_up(&mut self, at: SignedDuration, node: &str, gpus: u32) {
        self.at(at);
        match self.nodes.get_mut(node) {
            Some(known) if known.gpus == gpus => {
                if known.open {
                    return;
                }
                known.open = true;
            }
            // The machine behind the name is another one; whatever ran on the old one does not any more.
            Some(_) => {
                self.lose(node, "replaced");
                self.nodes.insert(node.to_owned(), Node::new(gpus));
            }
            None => {
                self.nodes.insert(node.to_owned(), Node::new(gpus));
            }
        }
        self.place();
    }

    /// A machine gets no new work; what runs on it goes on.
    pub fn node_closed(&mut self, at: SignedDuration, node: &str) {
        self.at(at);
        if let Some(known) = self.nodes.get_mut(node) {
            known.open = false;
        }
        // Who waits for the rest of its machines does not wait on this one.
        let waiting: Vec<usize> = self.holders(node, |job| job.phase == Phase::Waiting);
        for job in waiting {
            self.release(node, job);
        }
    }

    /// A machine's work is asked to leave: jobs on it write a checkpoint, and start again elsewhere.
    pub fn node_drained(&mut self, at: SignedDuration, node: &str, cause: &str) {
        self.node_closed(at, node);
        for index in self.holders(node, |_| true) {
            if let Some(job) = self.jobs.get_mut(index) {
                job.saved_before_it_stops();
            }
            self.interrupt(index, cause);
            self.release(node, index);
        }
        self.place();
    }

    /// A machine is lost, with what ran on it. It gets no work until it is up again.
    pub fn node_down(&mut self, at: SignedDuration, node: &str, cause: &str) {
        self.at(at);
        self.lose(node, cause);
        self.place();
    }

    /// What ran on a machine is interrupted; the machine itself is as good as before.
    pub fn interrupted(&mut self, at: SignedDuration, node: &str, cause: &str) {
        self.at(at);
        for job in self.holders(node, |job| job.phase != Phase::Waiting) {
            self.interrupt(job, cause);
        }
        self.place();
    }

    /// Time passes.
    pub fn at(&mut self, at: SignedDuration) {
        let mut left = at.as_secs_f64() - self.now;
        // Jobs end in between, and those that wait get their GPUs then.
        while 0.0 < left {
            let step = self.jobs.iter().filter_map(Job::ends_in).fold(left, f64::min);
            let mut some_ended = false;
            for job in &mut self.jobs {
                job.pass(step);
                if job.is_done() {
                    job.next();
                    self.ended += 1;
                    some_ended = true;
                }
            }
            self.now += step;
            left -= step;
            if some_ended {
                self.place();
            }
        }
        self.now = self.now.max(at.as_secs_f64());
    }

    /// Whether a job works on a machine, or starts there.
    #[must_use]
    pub fn is_busy(&self, node: &str) -> bool {
        !self.holders(node, |job| job.phase != Phase::Waiting).is_empty()
    }

    /// The part of the time since it was last asked for in which work went on that was not lost, 0 to 1; 1 where
    /// there was nothing to do.
    ///
    /// Work that a failure takes back is taken off the time in which it failed.
    pub fn sample(&mut self, at: SignedDuration) -> f64 {
        self.at(at);
        let (useful, possible) = self.useful_of_possible();
        let (useful_before, possible_before) =
            std::mem::replace(&mut self.sampled, (useful, possible));
        if possible <= possible_before {
            return 1.0;
        }
        ((useful - useful_before) / (possible - possible_before)).clamp(0.0, 1.0)
    }

    /// The part of all the time until now in which work went on that was not lost, 0 to 1; 1 where there was nothing
    /// to do.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        let (useful, possible) = self.useful_of_possible();
        if possible <= 0.0 { 1.0 } else { useful / possible }
    }

    /// What became of the work, until now. What is not safe yet counts as useful.
    #[must_use]
    pub fn work(&self) -> Work {
        let mut work = Work {
            jobs: self.ended + self.jobs.iter().filter(|job| job.ran).count() as u64,
            interruptions: self.interruptions,
            by_cause: self.by_cause.clone(),
            ..Work::default()
        };
        for job in &self.jobs {
            let gpus = f64::from(job.gpus);
            work.possible += gpus * job.sums.possible;
            work.useful += gpus * (job.sums.useful + job.unsafe_work);
            work.redone += gpus * job.sums.redone;
            work.waited += gpus * job.sums.waited;
            work.overhead += gpus * job.sums.overhead;
        }
        work
    }

    fn useful_of_possible(&self) -> (f64, f64) {
        self.jobs.iter().fold((0.0, 0.0), |(useful, possible), job| {
            let gpus = f64::from(job.gpus);
            let done = job.sums.useful + job.unsafe_work;
            (useful + gpus * done, possible + gpus * job.sums.possible)
        })
    }

    /// The jobs that hold GPUs of a machine.
    fn holders(&self, node: &str, which: impl Fn(&Job) -> bool) -> Vec<usize> {
        let Some(node) = self.nodes.get(node) else { return Vec::new() };
        let held = node.held.keys().copied();
        held.filter(|job| self.jobs.get(*job).is_some_and(&which)).collect()
    }

    fn lose(&mut self, node: &str, cause: &str) {
        for job in self.holders(node, |_| true) {
            self.interrupt(job, cause);
            self.release(node, job);
        }
        if let Some(known) = self.nodes.get_mut(node) {
            known.open = false;
        }
    }

    /// Only a job that had all of its GPUs can be interrupted. It begins again on machines in service only.
    fn interrupt(&mut self, index: usize, cause: &str) {
        let Some(job) = self.jobs.get_mut(index).filter(|job| job.phase != Phase::Waiting) else {
            return;
        };
        job.stop();
        for node in self.nodes.values_mut().filter(|node| !node.open) {
            let given_back = node.held.remove(&index).unwrap_or_default();
            node.free += given_back;
            job.has -= given_back;
        }
        self.interruptions += 1;
        *self.by_cause.entry(cause.to_owned()).or_default() += 1;
    }

    /// A job gives the GPUs of a machine back.
    fn release(&mut self, node: &str, job: usize) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        let Some(gpus) = node.held.remove(&job) else { return };
        node.free += gpus;
        if let Some(job) = self.jobs.get_mut(job) {
            job.has -= gpus;
        }
    }

    /// Jobs that wait get their GPUs: those that come first in the file first, all of theirs or none.
    ///
    /// Who was interrupted keeps the rest of its GPUs meanwhile, or a large job would never run again beside small
    /// ones. Only a job that comes earlier may take them: so the first that waits is never stuck behind another.
    fn place(&mut self) {
        // What nobody has, and what those have that wait and were not asked yet: both on machines in service.
        let mut free: u64 =
            self.nodes.values().filter(|node| node.open).map(|node| u64::from(node.free)).sum();
        let mut waiting: Vec<bool> =
            self.jobs.iter().map(|job| job.phase == Phase::Waiting).collect();
        let of_waiting = self.jobs.iter().filter(|job| job.phase == Phase::Waiting);
        let mut later: u64 = of_waiting.map(|job| u64::from(job.has)).sum();
        for index in 0..self.jobs.len() {
            let Some(job) = self.jobs.get(index).filter(|job| job.phase == Phase::Waiting) else {
                continue;
            };
            later -= u64::from(job.has);
            // Who was asked before is earlier in the file, and keeps what it has.
            if let Some(waits) = waiting.get_mut(index) {
                *waits = false;
            }
            let missing = job.gpus - job.has;
            if free + later < u64::from(missing) {
                continue;
            }
            let (from_free, from_later) = self.take(index, missing, &waiting);
            free -= u64::from(from_free);
            later -= u64::from(from_later);
            if let Some(job) = self.jobs.get_mut(index) {
                job.has = job.gpus;
                job.start();
            }
        }
    }

    /// A job gets so many GPUs: those that nobody has, and those of jobs that still wait. Says how many of which.
    fn take(&mut self, index: usize, mut missing: u32, waiting: &[bool]) -> (u32, u32) {
        let (mut from_free, mut from_later) = (0, 0);
        for node in self.nodes.values_mut().filter(|node| node.open) {
            if missing == 0 {
                break;
            }
            let mut taken = missing.min(node.free);
            node.free -= taken;
            from_free += taken;
            let may_take = |other: usize| waiting.get(other) == Some(&true);
            for (other, held) in node.held.iter_mut().filter(|(other, _)| may_take(**other)) {
                let more = (missing - taken).min(*held);
                *held -= more;
                taken += more;
                from_later += more;
                if let Some(other) = self.jobs.get_mut(*other) {
                    other.has -= more;
                }
            }
            node.held.retain(|_, held| *held != 0);
            if 0 < taken {
                *node.held.entry(index).or_default() += taken;
                missing -= taken;
            }
        }
        (from_free, from_later)
    }
}

impl Node {
    fn new(gpus: u32) -> Self {
        Self { gpus, open: true, free: gpus, held: BTreeMap::new() }
    }
}

impl Job {
    fn start(&mut self) {
        self.phase = if self.ran { Phase::Starting { left: self.restart } } else { Phase::Working };
        self.ran = true;
    }

    /// What was not safe is lost.
    fn stop(&mut self) {
        self.sums.redone += self.unsafe_work;
        self.unsafe_work = 0.0;
        self.phase = Phase::Waiting;
    }

    /// It is told that it must go, and writes a checkpoint first. The time that takes is taken from what it did: it
    /// was to be gone by now.
    fn saved_before_it_stops(&mut self) {
        if self.phase != Phase::Working {
            return;
        }
        let writing = self.checkpoint.min(self.unsafe_work);
        self.sums.overhead += writing;
        let saved = self.unsafe_work - writing;
        self.sums.useful += saved;
        self.safe += saved;
        self.unsafe_work = 0.0;
    }

    fn is_done(&self) -> bool {
        self.work.is_some_and(|work| work <= self.safe + self.unsafe_work)
    }

    /// It has ended, and another one takes its GPUs.
    fn next(&mut self) {
        self.sums.useful += self.unsafe_work;
        self.unsafe_work = 0.0;
        self.safe = 0.0;
        if self.phase != Phase::Waiting {
            self.phase = Phase::Working;
        }
    }

    /// How long until it ends, if nothing comes in between.
    fn ends_in(&self) -> Option<f64> {
        let left = self.work? - self.safe - self.unsafe_work;
        // Checkpoints on the way: one each time that a whole interval is behind it and work is left.
        let writes = |work: f64| {
            let whole = ((self.unsafe_work + work) / self.checkpoint_every).ceil() - 1.0;
            whole.max(0.0) * self.checkpoint
        };
        match self.phase {
            Phase::Waiting => None,
            Phase::Starting { left: starting } => Some(starting + left + writes(left)),
            Phase::Working => Some(left + writes(left)),
            Phase::Writing { left: writing } => {
                let after = Job {
                    phase: Phase::Working,
                    unsafe_work: 0.0,
                    safe: self.safe + self.unsafe_work,
                    ..self.clone()
                };
                Some(writing + after.ends_in()?)
            }
        }
    }

    /// Time passes, at most until it ends.
    fn pass(&mut self, time: f64) {
        self.sums.possible += time;
        let mut left = time;
        while 0.0 < left {
            left -= match self.phase {
                Phase::Waiting => {
                    self.sums.waited += left;
                    left
                }
                Phase::Starting { left: starting } => {
                    let step = left.min(starting);
                    self.sums.overhead += step;
                    self.phase = match starting - step {
                        rest if 0.0 < rest => Phase::Starting { left: rest },
                        _ => Phase::Working,
                    };
                    step
                }
                Phase::Working => self.worked(left),
                Phase::Writing { left: writing } => {
                    let step = left.min(writing);
                    self.sums.overhead += step;
                    match writing - step {
                        rest if 0.0 < rest => self.phase = Phase::Writing { left: rest },
                        _ => self.written(),
                    }
                    step
                }
            };
        }
    }

    /// Works for at most so long; says for how long, checkpoints included.
    fn worked(&mut self, time: f64) -> f64 {
        // Whole rounds at once: a scenario of ten years has many.
        let round = self.checkpoint_every + self.checkpoint;
        let rounds = self
            .work
            .map_or(f64::INFINITY, |work| (work - self.safe) / self.checkpoint_every - 1.0);
        let rounds = (time / round).min(rounds).floor();
        if self.unsafe_work == 0.0 && 1.0 <= rounds {
            let work = rounds * self.checkpoint_every;
            self.safe += work;
            self.sums.useful += work;
            self.sums.overhead += rounds * self.checkpoint;
            return (rounds * round).min(time);
        }
        let until_written = self.checkpoint_every - self.unsafe_work;
        let until_done =
            self.work.map_or(f64::INFINITY, |work| work - self.safe - self.unsafe_work);
        if until_done <= until_written && until_done <= time {
            // Exactly, or rounding would leave a job that never ends.
            self.unsafe_work = self.work.unwrap_or_default() - self.safe;
            return time;
        }
        if until_written <= time {
            self.unsafe_work = self.checkpoint_every;
            self.phase = Phase::Writing { left: self.checkpoint };
            if self.checkpoint <= 0.0 {
                self.written();
            }
            return until_written;
        }
        self.unsafe_work += time;
        time
    }

    fn written(&mut self) {
        self.sums.useful += self.unsafe_work;
        self.safe += self.unsafe_work;
        self.unsafe_work = 0.0;
        self.phase = Phase::Working;
    }
}

#[cfg(test)]
mod tests;
