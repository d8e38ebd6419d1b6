//! `argosy-agent watch`: the GPUs of this machine, live.

use super::gpus::{GpuArgs, Opened, cut, grid, totals};
use crate::clock::{Clock, System};
use crate::gpu::{Gpu, GpuError, Inventory, Sweep};
use argosy_term::{Screen, clean, print};
use clap::Args as ClapArgs;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Show the GPUs of this machine, live.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "\
In place on a terminal until Ctrl-C; one picture after another in a pipe.

Examples:
  argosy-agent watch
  argosy-agent watch --every 5s
  argosy-agent watch --once")]
pub struct Args {
    /// How often they are looked at: 500ms, 2s, 1m.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub every: Duration,
    /// Look once.
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show them")]
    pub gpus: GpuArgs,
}

/// Below this, looking is itself a load on the driver; above it, `watch` is not what is wanted.
const EVERY: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// How long the driver may take for one GPU, as for the agent.
const GPU_MAX: Duration = Duration::from_secs(10);

fn every(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_ms: u64 = match text.strip_prefix(digits) {
        Some("ms") => 1,
        Some("s" | "") => 1_000,
        Some("m") => 60_000,
        Some(_) | None => {
            return Err("a time is a number with ms, s or m: 500ms, 2s, 1m".to_owned());
        }
    };
    let number: u64 =
        digits.parse().map_err(|_| "a time is a whole number with ms, s or m".to_owned())?;
    let every = Duration::from_millis(number.saturating_mul(unit_ms));
    EVERY.contains(&every).then_some(every).ok_or_else(|| "from 100ms to 60m".to_owned())
}

/// A terminal that is drawn on. However the command ends, the cursor comes back.
struct Drawing;

impl Drawing {
    fn begin() -> Self {
        print("\u{1b}[?25l\u{1b}[2J");
        Self
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        print("\u{1b}[?25h");
    }
}

/// `argosy-agent watch`
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Opened { gpu, .. } = args.gpus.open(GPU_MAX)?;
    let Some(mut gpu) = gpu else { anyhow::bail!("there is nothing to watch with --gpu none") };
    let screen = Screen::detect(None);
    let is_live = screen.live && !args.once;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let drawing = is_live.then(Drawing::begin);
    let mut seen = Seen::default();
    let mut worked = false;
    loop {
        let looked = tokio::select! {
            looked = seen.look(gpu.as_mut()) => looked,
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
        };
        worked = looked.is_ok();
        // The window may have another size by now.
        let screen = if is_live { Screen::detect(None) } else { screen };
        let picture = picture(&seen.inventory, looked.as_ref(), &screen, is_live);
        let shown = if is_live {
            let last = format!("every {:?}; Ctrl-C ends", args.every);
            print(&screen.in_place(&picture, &cut(&screen, &last)))
        } else {
            print(&format!("{}\n{picture}\n", System.now().strftime("%Y-%m-%dT%H:%M:%SZ")))
        };
        if args.once || !shown {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(args.every) => {}
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
        }
    }
    drop(drawing);
    Ok(if worked || !args.once { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is there, as far as it was asked for already.
#[derive(Default)]
struct Seen {
    inventory: Inventory,
}

impl Seen {
    async fn look(&mut self, gpu: &mut dyn Gpu) -> Result<Sweep, GpuError> {
        if self.inventory.gpus.is_empty() {
            self.inventory = gpu.inventory().await?;
        }
        let sweep = gpu.sweep().await?;
        // Another set of GPUs than before, or another driver.
        let known = |uuid: &str| self.inventory.gpus.iter().any(|gpu| gpu.uuid == uuid);
        if !sweep.gpus.iter().all(|reading| known(&reading.uuid)) {
            self.inventory = gpu.inventory().await?;
        }
        Ok(sweep)
    }
}

/// A line of totals, and the table; or what is wrong.
fn picture(
    inventory: &Inventory,
    looked: Result<&Sweep, &GpuError>,
    screen: &Screen,
    bars: bool,
) -> String {
    match looked {
        Ok(sweep) if sweep.count == 0 => "the driver works, and counts no GPUs\n".to_owned(),
        Ok(sweep) => {
            let totals = cut(screen, &totals(inventory, sweep));
            format!("{totals}\n{}", grid(inventory, sweep, bars).render(screen, true))
        }
        Err(error) => format!("{}\nAsk `argosy-agent doctor` why.\n", clean(&error.to_string())),
    }
}

#[cfg(test)]
mod tests;
