//! `argosy-agent scan`: a verdict on this machine, without any server.

mod page;
pub mod report;

use super::Format;
use super::document;
use super::gpus::{GpuArgs, Opened};
use crate::check::Word;
use crate::clock::{Clock, System};
use crate::gpu::{Gpu, GpuError};
use crate::host::{Host, HostError, HostSample, Roots, gpus_on_bus};
use crate::log::{self, Line, Logs, Source};
use anyhow::Context;
use argosy_term::{Screen, print};
use clap::Args as ClapArgs;
use jiff::Timestamp;
use report::{GpusLooked, Looked, Report};
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// Say how this machine is, without any server.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "\
Exit code 0 if the machine is healthy, 3 if it is degraded, 4 if it is unhealthy; 1 if it could not be looked at.

Examples:
  argosy-agent scan
  argosy-agent scan -o json
  argosy-agent scan --expect-gpus 8
  argosy-agent scan --gpu fake:8xH100 --inject 'xid:79 gpu:3'")]
pub struct Args {
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show them")]
    pub gpus: GpuArgs,
    /// How many GPUs should be there; fewer is unhealthy.
    #[arg(long, value_name = "COUNT")]
    pub expect_gpus: Option<u32>,
}

/// How long the driver may take for one GPU. With it a driver that hangs is told of within the five seconds
/// that a scan may take; a GPU without persistence mode needs two to wake up.
const GPU_MAX: Duration = Duration::from_millis(3_500);

/// How far two looks are apart: counters that grow are seen, and the use of processors can be told.
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);

/// How long old lines are read. A kernel's buffer is read in milliseconds; a journal of months is not.
const LOGS_MAX: Duration = Duration::from_secs(2);

/// How long nothing must come before a log counts as read to its end.
const LOGS_QUIET: Duration = Duration::from_millis(200);

/// The most lines that are read. The kernel's buffer holds some ten thousand; the journal of a long boot
/// may hold millions, and a scan must not.
const LINES_MAX: usize = 50_000;

/// Where to look.
pub(crate) struct Setup {
    pub(crate) opened: Opened,
    pub(crate) roots: Roots,
    pub(crate) logs: log::Options,
    pub(crate) expected_gpus: Option<u32>,
}

/// `argosy-agent scan`
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let setup = Setup {
        opened: args.gpus.open(GPU_MAX)?,
        roots: Roots::default(),
        logs: log::Options::default(),
        expected_gpus: args.expect_gpus,
    };
    let report = look(setup, &System).await?;
    let text = match args.output {
        Format::Json => document(&report),
        Format::Text => page::page(&report, &Screen::detect(None)),
    };
    print(&text);
    Ok(ExitCode::from(match report.verdict {
        Word::Healthy => 0,
        Word::Degraded => 3,
        Word::Unhealthy => 4,
    }))
}

/// Looks at everything at once, and judges it.
pub(crate) async fn look(setup: Setup, clock: &dyn Clock) -> anyhow::Result<Report> {
    let began = now();
    let at = clock.now();
    let Setup { opened: Opened { gpu, lines }, roots, logs, expected_gpus } = setup;
    let is_fake = lines.is_some();
    // A made-up machine has its own bus, too.
    let on_the_bus = if is_fake { 0 } else { gpus_on_bus(&roots) };
    let mut host = Host::start(roots).context("no thread can be started")?;
    let (gpus, host, read) = tokio::join!(
        async {
            match gpu {
                Some(gpu) => Some(look_at_gpus(gpu, clock).await),
                None => None,
            }
        },
        look_at_host(&mut host, clock),
        read_logs(logs, lines, at),
    );
    let took = now().duration_since(began);
    Ok(Report::of(Looked {
        at,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        gpus,
        host,
        lines: read.lines,
        lines_cut: read.cut,
        sources: read.sources,
        problems: read.problems,
        expected_gpus,
        on_the_bus,
    }))
}

#[expect(clippy::disallowed_methods, reason = "how long it took, by no clock of ours")]
fn now() -> Instant {
    Instant::now()
}

async fn look_at_gpus(mut gpu: Box<dyn Gpu>, clock: &dyn Clock) -> GpusLooked {
    let inventory = gpu.inventory().await;
    let mut sweeps = Vec::new();
    // What hung once hangs again, and costs as long as all the rest together.
    if !matches!(inventory, Err(GpuError::Hung { .. } | GpuError::Absent { .. })) {
        let first = now();
        sweeps.push((clock.now(), gpu.sweep().await));
        if matches!(sweeps.last(), Some((_, Ok(_)))) {
            sleep_until(first + BETWEEN_LOOKS).await;
            sweeps.push((clock.now(), gpu.sweep().await));
        }
    }
    GpusLooked { inventory, sweeps }
}

async fn look_at_host(host: &mut Host, clock: &dyn Clock) -> Result<HostSample, HostError> {
    let first = now();
    host.sample(clock.now()).await?;
    sleep_until(first + BETWEEN_LOOKS).await;
    host.sample(clock.now()).await
}

#[derive(Default)]
struct Read {
    lines: Vec<Line>,
    cut: bool,
    sources: Vec<Source>,
    problems: Vec<log::Problem>,
}

async fn read_logs(
    options: log::Options,
    fake: Option<mpsc::Receiver<String>>,
    at: Timestamp,
) -> Read {
    // Lines about other GPUs than the made-up ones would be about nothing.
    if let Some(mut fake) = fake {
        let mut lines = Vec::new();
        while let Ok(text) = fake.try_recv() {
            lines.push(Line {
                source: Source::Kmsg,
                at,
                text,
                lost_before: 0,
                boot_id: String::new(),
            });
        }
        return Read { lines, sources: vec![Source::Kmsg], ..Read::default() };
    }
    let mut logs = Logs::open(options);
    let mut read = Read::default();
    let end = now() + LOGS_MAX;
    while read.lines.len() < LINES_MAX {
        match timeout_at(end, timeout(LOGS_QUIET, logs.next())).await {
            Ok(Ok(line)) => read.lines.push(line),
            Ok(Err(_)) => break,
            Err(_) => {
                read.cut = true;
                break;
            }
        }
    }
    read.cut |= read.lines.len() == LINES_MAX;
    read.sources = logs.sources();
    read.problems = logs.problems();
    read
}

#[cfg(test)]
mod tests;
