//! The child: opens the driver, tests the GPUs and says what it finds, line by line.
//!
//! It may be killed at any moment, and may die by itself: nothing outside it depends on its end. It ends
//! when its standard input does, so that no test outlives the agent that asked for it.

use crate::diagnose::cuda::{CudaError, Driver, Gpu, Listed};
use crate::diagnose::plan::{Plan, Test};
use crate::diagnose::sensor::{Facts, Sensor};
use crate::diagnose::talk::{Refusal, Said};
use crate::diagnose::{Diagnosis, GpuDiagnosis, Progress, bandwidth, compute, memory, stress};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at a GPU under load: NVML's own figures change a few times a second.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// How little progress is not worth a line, in percent.
const PROGRESS_MIN: f64 = 1.0;

/// Does what the plan says and writes lines to standard output. Ends well whether the test passed or not.
pub fn main(plan: &Plan) -> ExitCode {
    // Never joined: it waits for the agent, or ends the process.
    let watcher = std::thread::Builder::new().name("agent-watch".to_owned()).spawn(|| {
        let mut byte = [0];
        while std::io::stdin().read(&mut byte).is_ok_and(|count| 0 < count) {}
        // Not `exit`: that runs what the driver's library has for the end, which hangs in a driver that hangs.
        if let Err(error) = kill_process(getpid(), Signal::KILL) {
            eprintln!("the child cannot end itself: {error}");
        }
    });
    if let Err(error) = watcher {
        eprintln!("the child cannot watch for its agent's end: {error}");
        return ExitCode::FAILURE;
    }
    let end = match work(plan) {
        Ok(diagnosis) => Said::Done(Box::new(diagnosis)),
        Err(refusal) => Said::Refused(refusal),
    };
    if say(&end) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether somebody heard it.
fn say(said: &Said) -> bool {
    let Ok(mut line) = serde_json::to_vec(said) else { return false };
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).is_ok()
}

fn work(plan: &Plan) -> Result<Diagnosis, Refusal> {
    let watch = Stopwatch::start();
    let sensor = Sensor::open(plan.nvml_library.as_deref());
    let driver = Driver::open().map_err(|error| match error {
        CudaError::Absent => Refusal::Absent { message: error.to_string() },
        CudaError::Driver { .. } | CudaError::Bounds { .. } | CudaError::TooOld { .. } => {
            Refusal::Driver { message: error.to_string() }
        }
    })?;
    let listed = driver.list().map_err(|error| Refusal::Driver { message: error.to_string() })?;
    let (facts, mut problems) = match &sensor {
        Ok(sensor) => sensor.facts().map_err(|message| Refusal::Driver { message })?,
        // Without NVML there are no temperatures and no processes; CUDA's own numbers must do.
        Err(_) => {
            (listed.iter().zip(0..).map(|(gpu, index)| by_cuda(gpu, index)).collect(), Vec::new())
        }
    };
    let targets = choose(plan, facts, listed, &mut problems)?;
    let sensor = sensor.ok();
    let gpus = test(plan, &targets, sensor.as_ref());
    let mut diagnosis = Diagnosis::of(plan.test.as_str(), problems, gpus, watch.seconds());
    diagnosis.cuda_version = Some(driver.version);
    Ok(diagnosis)
}

/// A GPU to test.
struct Target {
    facts: Facts,
    listed: Listed,
}

fn by_cuda(listed: &Listed, index: u32) -> Facts {
    Facts { index, uuid: listed.uuid.clone(), name: listed.name.clone(), ..Facts::default() }
}

/// The GPUs of the plan, each as NVML and as CUDA know it.
fn choose(
    plan: &Plan,
    facts: Vec<Facts>,
    mut listed: Vec<Listed>,
    problems: &mut Vec<String>,
) -> Result<Vec<Target>, Refusal> {
    let count = u32::try_from(facts.len()).unwrap_or(u32::MAX);
    let mut targets = Vec::new();
    let mut seen = false;
    for facts in facts.into_iter().filter(|facts| plan.gpu.is_none_or(|index| index == facts.index))
    {
        seen = true;
        let gpu = facts.index;
        if facts.mig {
            return Err(Refusal::Mig { gpu });
        }
        if let Some((pid, program)) = &facts.user
            && !plan.force
        {
            return Err(Refusal::Busy { gpu, pid: *pid, program: program.clone() });
        }
        match listed.iter().position(|listed| listed.uuid == facts.uuid) {
            Some(at) => targets.push(Target { facts, listed: listed.swap_remove(at) }),
            None => problems
                .push(format!("GPU {gpu} ({}) is known to NVML and not to CUDA", facts.uuid)),
        }
    }
    match plan.gpu {
        Some(index) if !seen => Err(Refusal::NoSuchGpu { index, count }),
        Some(_) | None => Ok(targets),
    }
}

/// What a test of one GPU gave; a failure of the driver in its middle is a finding.
type Outcome<T> = Result<T, String>;

fn test(plan: &Plan, targets: &[Target], sensor: Option<&Sensor>) -> Vec<GpuDiagnosis> {
    let inject_bit_flip = plan.inject_bit_flip;
    let tested = targets.iter().map(|target| &target.facts);
    match plan.test {
        Test::Memory { seconds, fraction_percent } => {
            let order = memory::Order { seconds, fraction_percent, inject_bit_flip };
            let found = together(targets, |gpu, _, share| memory::run(gpu, order, share));
            judged(tested, found, |found, _, gpu| memory::judge(&found, gpu))
        }
        Test::Bandwidth { runs } => {
            // One after the other: GPUs share the way to the host.
            let found = in_turn(targets, |gpu, facts, share| {
                let link = || sensor.map_or((None, None), |sensor| sensor.link(facts.index));
                bandwidth::run(gpu, runs, share, link)
            });
            judged(tested, found, |found, facts, gpu| bandwidth::judge(&found, facts, gpu))
        }
        Test::Compute { runs } => {
            let found =
                together(targets, |gpu, _, share| compute::run(gpu, runs, inject_bit_flip, share));
            let all: Vec<_> = found.iter().flatten().cloned().collect();
            let majorities = compute::majorities(&all);
            judged(tested, found, |found, _, gpu| compute::judge(&found, &majorities, gpu))
        }
        Test::Stress { seconds } => {
            let done = AtomicBool::new(false);
            let (found, curves) = std::thread::scope(|scope| {
                let sampler = scope.spawn(|| sample(targets, sensor, &done));
                let found = together(targets, |gpu, _, share| {
                    stress::run(gpu, seconds, inject_bit_flip, share)
                });
                done.store(true, Ordering::Release);
                (found, sampler.join().unwrap_or_default())
            });
            let mut curves = curves.into_iter();
            judged(tested, found, |load, facts, gpu| {
                stress::judge(&load, curves.next().unwrap_or_default(), facts, gpu)
            })
        }
        // The agent judges `quick` itself and takes `all` apart: neither gets here.
        Test::Quick | Test::All => Vec::new(),
    }
}

/// Looks at every GPU until the load is over.
fn sample(targets: &[Target], sensor: Option<&Sensor>, done: &AtomicBool) -> Vec<stress::Curve> {
    let watch = Stopwatch::start();
    let mut curves: Vec<_> = targets.iter().map(|_| stress::Curve::default()).collect();
    let Some(sensor) = sensor else { return curves };
    while !done.load(Ordering::Acquire) {
        std::thread::sleep(SAMPLE_EVERY);
        for (target, curve) in targets.iter().zip(&mut curves) {
            curve.push(sensor.point(target.facts.index, watch.seconds()));
        }
    }
    curves
}

/// Tests all GPUs at once, each on a thread of its own.
fn together<T: Send>(
    targets: &[Target],
    run: impl Fn(&Gpu, &Facts, &Share<'_>) -> Result<T, CudaError> + Sync,
) -> Vec<Outcome<T>> {
    let board = Board::new(targets.len());
    let (board, run) = (&board, &run);
    std::thread::scope(|scope| {
        let threads: Vec<_> = targets
            .iter()
            .enumerate()
            .map(|(at, target)| scope.spawn(move || one(target, at, board, run)))
            .collect();
        let ended = |outcome: std::thread::Result<Outcome<T>>| {
            outcome.unwrap_or_else(|_| {
                Err("the test itself broke off; see its error output".to_owned())
            })
        };
        threads.into_iter().map(|thread| ended(thread.join())).collect()
    })
}

/// Tests one GPU after the other.
fn in_turn<T>(
    targets: &[Target],
    run: impl Fn(&Gpu, &Facts, &Share<'_>) -> Result<T, CudaError>,
) -> Vec<Outcome<T>> {
    let board = Board::new(targets.len());
    targets.iter().enumerate().map(|(at, target)| one(target, at, &board, &run)).collect()
}

fn one<T>(
    target: &Target,
    at: usize,
    board: &Board,
    run: &impl Fn(&Gpu, &Facts, &Share<'_>) -> Result<T, CudaError>,
) -> Outcome<T> {
    let share = Share { board, at, gpu: target.facts.index };
    share.at(0.0, || "opening".to_owned());
    let outcome = Gpu::open(&target.listed).and_then(|gpu| run(&gpu, &target.facts, &share));
    share.at(1.0, || "done".to_owned());
    outcome.map_err(|error| error.to_string())
}

fn judged<'a, T>(
    tested: impl IntoIterator<Item = &'a Facts>,
    outcomes: Vec<Outcome<T>>,
    mut judge: impl FnMut(T, &Facts, GpuDiagnosis) -> GpuDiagnosis,
) -> Vec<GpuDiagnosis> {
    tested
        .into_iter()
        .zip(outcomes)
        .map(|(facts, outcome)| {
            let gpu = GpuDiagnosis {
                index: facts.index,
                uuid: facts.uuid.clone(),
                name: facts.name.clone(),
                ..GpuDiagnosis::default()
            };
            match outcome {
                Ok(found) => judge(found, facts, gpu),
                Err(message) => GpuDiagnosis { message, ..gpu },
            }
        })
        .collect()
}

/// How far all GPUs are.
struct Board(Mutex<Standing>);

struct Standing {
    /// From 0 to 1, by place.
    parts: Vec<f64>,
    /// What was said last.
    percent: Option<f64>,
}

impl Board {
    fn new(count: usize) -> Self {
        Self(Mutex::new(Standing { parts: vec![0.0; count], percent: None }))
    }
}

/// One GPU's part of the progress.
pub(super) struct Share<'board> {
    board: &'board Board,
    at: usize,
    gpu: u32,
}

impl Share<'_> {
    /// This GPU is so far, from 0 to 1. Says it if it is worth a line.
    pub(super) fn at(&self, part: f64, message: impl FnOnce() -> String) {
        let mut standing = self.board.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = standing.parts.get_mut(self.at) {
            *own = own.max(part.clamp(0.0, 1.0));
        }
        let percent =
            standing.parts.iter().sum::<f64>() / standing.parts.len().max(1) as f64 * 100.0;
        if standing.percent.is_none_or(|said| said + PROGRESS_MIN <= percent) {
            standing.percent = Some(percent);
            let message = format!("GPU {}: {}", self.gpu, message());
            say(&Said::Progress(Progress { percent: super::rounded(percent), message }));
        }
    }
}

/// Time that has passed. The child is not simulated: its clock is the machine's.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "only ever in the child, which no simulation runs"
    )]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
