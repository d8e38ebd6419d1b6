//! Playing: many seeds on threads, with a bar that moves, until the end or Ctrl-C.

use super::given::Given;
use super::seeds::Seeds;
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Screen, clean, document, note, print, span};
use argosy_control::clock::Clock;
use argosy_sim::explain::{RUNS_MAX, Story, explain};
use argosy_sim::outcome::Outcome;
use argosy_sim::report;
use argosy_sim::report::text::Pen;
use argosy_sim::run::{Many, RunError, Watcher, run_many, run_telling};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::SignedDuration;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time;
use tokio::sync::oneshot;

/// The most threads. More than any machine has cores; each seed takes one.
const JOBS_MAX: i64 = 1_024;

/// How often the bar moves.
const TICK: time::Duration = time::Duration::from_millis(200);

/// How often a line is printed where there is no terminal.
const LINE_EVERY: time::Duration = time::Duration::from_secs(10);

/// How many steps a bar has.
const STEPS: u64 = 1_000;

/// What commands that play many seeds have in common.
#[derive(Args, Clone, Debug)]
pub(super) struct Playing {
    /// How many seeds are played at once [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=JOBS_MAX))]
    jobs: Option<u16>,
    /// Begin no seed after so long: as many are played as fit.
    #[arg(long, value_name = "DURATION")]
    time_limit: Option<Duration>,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    pub(super) output: Format,
}

impl Playing {
    fn many(&self, seeds: Seeds, sides: u32) -> Many {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let jobs = self.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into())).unwrap_or(cores);
        let limit = self.time_limit.map(|limit| limit.std() / sides);
        Many { seeds: seeds.list(), jobs, limit }
    }
}

/// What came of it, and whether somebody ended it early.
pub(super) struct Played {
    pub(super) outcomes: Vec<Outcome>,
    /// What happened, when, if that is told.
    pub(super) story: Vec<(time::Duration, String)>,
    pub(super) interrupted: bool,
}

/// What part of a command a playing is.
pub(super) struct Part<'a> {
    /// Stands before what moves.
    pub(super) label: &'a str,
    /// So many share the time limit.
    pub(super) sides: u32,
    /// Whether it is told what happens; of one seed.
    pub(super) telling: bool,
}

impl Default for Part<'_> {
    fn default() -> Self {
        Self { label: "", sides: 1, telling: false }
    }
}

/// Plays the seeds.
pub(super) fn play(
    given: &Given,
    seeds: Seeds,
    playing: &Playing,
    screen: Screen,
    part: &Part<'_>,
) -> Result<Played, Failure> {
    let many = playing.many(seeds, part.sides);
    let asked = many.seeds.len();
    let whole = given.scenario.duration.as_secs_f64() * asked as f64;
    let progress = Progress::new(screen, part.label, asked, whole, many.limit);
    let (scenario, product) = (&given.scenario, &given.product);
    let work = |watcher: &Watcher| match many.seeds.as_slice() {
        [seed] if part.telling => run_telling(scenario, product, *seed, watcher)
            .map(|(outcome, story)| (vec![outcome], story)),
        _ => run_many(scenario, product, &many, watcher).map(|outcomes| (outcomes, Vec::new())),
    };
    let ((outcomes, story), interrupted) = watched(work, progress, &given.about.reference)?;
    if outcomes.is_empty() {
        return Err(match interrupted {
            true => Failure::new(Exit::Interrupted, "interrupted"),
            false => {
                Failure::failed("no seed was played within --time-limit").fix("give it more time")
            }
        });
    }
    if outcomes.len() < asked {
        note(&format!("{} of {asked} seeds were played", outcomes.len()));
    }
    Ok(Played { outcomes, story, interrupted })
}

/// Makes a failing seed small; `None` if it does not fail.
pub(super) fn shrink(given: &Given, seed: u64, screen: Screen) -> Result<Option<Story>, Failure> {
    let whole = given.scenario.duration.as_secs_f64() * RUNS_MAX as f64;
    let progress = Progress { noun: "runs", ..Progress::new(screen, "", RUNS_MAX, whole, None) };
    let work = |watcher: &Watcher| explain(&given.scenario, &given.product, seed, watcher);
    watched(work, progress, &given.about.reference).map(|(story, _)| story)
}

/// Works on a thread, while this one shows how far it is and hears Ctrl-C. Whether it was heard comes with
/// the result.
fn watched<T: Send>(
    work: impl FnOnce(&Watcher) -> Result<T, RunError> + Send,
    mut progress: Progress,
    reference: &str,
) -> Result<(T, bool), Failure> {
    let watcher = Watcher::default();
    let (done, end) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start").why(error))?;
    let (result, interrupted) = std::thread::scope(|scope| {
        let watcher = &watcher;
        scope.spawn(move || {
            // Whoever waited is gone: nobody wants the answer.
            let _ = done.send(work(watcher));
        });
        runtime.block_on(watch(end, watcher, &mut progress))
    });
    match result {
        Some(result) => result.map_err(|e| refused(e, reference)).map(|done| (done, interrupted)),
        None => Err(Failure::failed("the simulation died").fix("please report this as a bug")),
    }
}

/// Waits for the end and shows how far it is. Ctrl-C ends it early; what is done by then counts.
async fn watch<T>(
    mut end: oneshot::Receiver<T>,
    watcher: &Watcher,
    progress: &mut Progress,
) -> (Option<T>, bool) {
    let clock = Clock::System;
    let began = clock.monotonic();
    let mut tick = tokio::time::interval(TICK);
    let mut interrupted = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut end => {
                progress.close(clock.monotonic().saturating_sub(began));
                return (ended.ok(), interrupted);
            }
            heard = tokio::signal::ctrl_c(), if !interrupted => {
                // Who cannot be heard cannot ask us to stop.
                interrupted = heard.is_ok();
                watcher.stop();
            }
            _ = tick.tick() => progress.show(watcher, clock.monotonic().saturating_sub(began)),
        }
    }
}

fn refused(error: RunError, reference: &str) -> Failure {
    let name = clean(reference);
    match error {
        RunError::Declared(why) => {
            Failure::usage(format!("{name} cannot be played")).why(clean(&why))
        }
        RunError::Stopped => Failure::new(Exit::Interrupted, "interrupted"),
        RunError::Machine(why) => {
            Failure::failed(format!("{name} cannot be played on this machine")).why(clean(&why))
        }
    }
}

/// A bar on a terminal, a line now and then elsewhere.
struct Progress {
    bar: ProgressBar,
    label: String,
    seeds: usize,
    /// What they are called.
    noun: &'static str,
    /// Simulated seconds in all.
    whole: f64,
    limit: Option<time::Duration>,
    next_line: time::Duration,
}

impl Progress {
    fn new(
        screen: Screen,
        label: &str,
        seeds: usize,
        whole: f64,
        limit: Option<time::Duration>,
    ) -> Self {
        let target = match screen.live && screen.asks {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        let style = ProgressStyle::with_template("{elapsed:>5} {bar:24} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (label, noun) = (label.to_owned(), "seeds");
        Self { bar, label, seeds, noun, whole, limit, next_line: LINE_EVERY }
    }

    fn show(&mut self, watcher: &Watcher, passed: time::Duration) {
        let (simulated, done) = (watcher.simulated_seconds(), watcher.seeds_done());
        let (share, line) = self.line(simulated, done, watcher.seeds_failing(), passed);
        if !self.bar.is_hidden() {
            self.bar.set_position((share * STEPS as f64) as u64);
            self.bar.set_message(line);
        } else if self.next_line <= passed {
            self.next_line += LINE_EVERY;
            note(&format!("{:>6}  {line}", length(passed.as_secs_f64())));
        }
    }

    /// How far it is, from 0 to 1, and the same in words.
    fn line(
        &self,
        simulated: f64,
        done: u64,
        failing: u64,
        passed: time::Duration,
    ) -> (f64, String) {
        let passed = passed.as_secs_f64().max(1e-3);
        // The world is given time to settle after the end, so more may pass than was asked for.
        let share = (simulated / self.whole.max(1.0)).max(done as f64 / self.seeds.max(1) as f64);
        let share = share.clamp(0.0, 1.0);
        let by_limit = self.limit.map_or(0.0, |limit| passed / limit.as_secs_f64().max(1e-3));
        let nearer = share.max(by_limit.min(1.0));
        let left = match nearer {
            // Nothing to go by yet.
            ..0.01 => String::new(),
            nearer => format!(", {} left", length(passed / nearer - passed)),
        };
        let pace = pace(simulated / passed);
        let what = match self.seeds {
            1 => format!("{} of {}", length(simulated), length(self.whole)),
            seeds => {
                let failed =
                    if failing == 0 { String::new() } else { format!(", {failing} FAILED") };
                format!("{done} of {seeds} {}{failed}, {} simulated", self.noun, length(simulated))
            }
        };
        (nearer, format!("{}{what}, {pace}{left}", self.label))
    }

    /// Says how long it took, where somebody had to wait for it.
    fn close(&self, passed: time::Duration) {
        self.bar.finish_and_clear();
        if LINE_EVERY <= passed {
            note(&format!("{}played in {}", self.label, length(passed.as_secs_f64())));
        }
    }
}

/// How much is simulated in a second: days, or what is left of them where very many machines are played.
fn pace(seconds: f64) -> String {
    match seconds {
        864_000.0.. => format!("{:.0} days/s", seconds / 86_400.0),
        8_640.0.. | 0.0 => format!("{:.1} days/s", seconds / 86_400.0),
        60.0.. => format!("{:.0} min/s", seconds / 60.0),
        _ => format!("{seconds:.1} s/s"),
    }
}

fn length(seconds: f64) -> String {
    span(SignedDuration::from_secs(seconds.max(0.0) as i64))
}

/// Prints a document, or the text that is made with a pen.
pub(super) fn show(
    format: Format,
    screen: Screen,
    value: impl FnOnce() -> Value,
    text: impl FnOnce(&Pen) -> String,
) {
    match format {
        Format::Json | Format::Yaml => print(&document(&value(), format == Format::Yaml)),
        Format::Table | Format::Wide | Format::Name => {
            let pen = Pen { screen, unicode: screen.live && speaks_utf8() };
            print(&text(&pen));
        }
    }
}

/// Whether the terminal's language says that it can show more than ASCII. The first that is set counts.
fn speaks_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// Writes a report, a log, to a file.
pub(super) fn write(path: &Path, what: &str, text: &str) -> Result<(), Failure> {
    let name = clean(&path.display().to_string());
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("cannot write {name}")).why(error))?;
    note(&format!("the {what} is in {name}"));
    Ok(())
}

/// The exit code of runs.
pub(super) fn exit(outcomes: &[Outcome], interrupted: bool) -> Exit {
    match (outcomes.iter().all(report::passed), interrupted) {
        (false, _) => Exit::Failed,
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::Ok,
    }
}

#[cfg(test)]
mod tests;
