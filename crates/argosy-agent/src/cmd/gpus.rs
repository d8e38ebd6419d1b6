//! GPUs for commands that people type: how they are chosen, and how they are shown.

use crate::clock::{Clock, System};
use crate::gpu::child::{Child, Options};
use crate::gpu::fake::injection::Injection;
use crate::gpu::fake::{Fake, SharedFake};
use crate::gpu::{Gpu, GpuIdentity, Inventory, Reading, Sweep};
use anyhow::Context;
use argosy_term::{Column, Grid, Paint, Said, Screen};
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::mpsc;

/// Which GPUs.
#[derive(Args, Clone, Debug, Default)]
pub struct GpuArgs {
    /// Where GPUs come from: the driver (`auto`), nowhere (`none`), or made up (`fake:8xH100`).
    #[arg(long, value_name = "WHICH", default_value = "auto")]
    pub gpu: Choice,
    /// NVML, if it is not where the system keeps it.
    #[arg(long, value_name = "PATH")]
    pub nvml_library: Option<PathBuf>,
    /// Make this happen to made-up GPUs first, for example `xid:79 gpu:3`; may be repeated.
    #[arg(long, value_name = "FAULT")]
    pub inject: Vec<Injection>,
}

/// Where GPUs come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The driver, asked in a child process.
    #[default]
    Auto,
    /// There are none, and nobody is asked.
    None,
    /// Made up: `8xH100`.
    Fake(String),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("fake:")) {
            ("auto", _) => Ok(Self::Auto),
            ("none", _) => Ok(Self::None),
            (_, Some(spec)) => {
                Fake::parse(spec, "").map_err(|error| error.to_string())?;
                Ok(Self::Fake(spec.to_owned()))
            }
            (other, None) => {
                Err(format!("`{other}` is none of auto, none, fake:COUNTxMODEL (fake:8xH100)"))
            }
        }
    }
}

/// GPUs that can be asked, and what the kernel of a made-up machine writes.
pub(crate) struct Opened {
    /// `None` if there are none by choice.
    pub(crate) gpu: Option<Box<dyn Gpu>>,
    /// For made-up ones.
    pub(crate) lines: Option<mpsc::Receiver<String>>,
}

impl GpuArgs {
    /// Opens them. `deadline` is how long the driver may take for one GPU.
    pub(crate) fn open(&self, deadline: Duration) -> anyhow::Result<Opened> {
        if !self.inject.is_empty() && !matches!(self.gpu, Choice::Fake(_)) {
            anyhow::bail!(
                "--inject is for made-up GPUs: add --gpu fake:8xH100, or see `argosy-agent inject`"
            );
        }
        match &self.gpu {
            Choice::None => Ok(Opened { gpu: None, lines: None }),
            Choice::Auto => {
                let exe = std::env::current_exe().context("this program cannot find itself")?;
                let library = self.nvml_library.clone();
                let options = Options { nvml_library: library, deadline, ..Options::default() };
                Ok(Opened { gpu: Some(Box::new(Child::new(exe, options))), lines: None })
            }
            Choice::Fake(spec) => {
                let fake = Fake::parse(spec, "fake")?;
                let (fake, lines) = SharedFake::new(fake, || System.now());
                for injection in &self.inject {
                    fake.inject(injection)?;
                }
                Ok(Opened { gpu: Some(Box::new(fake)), lines: Some(lines) })
            }
        }
    }
}

/// How wide a bar is.
const BAR: u32 = 8;

const COLUMNS: &[Column] = &[
    Column { header: "GPU", spare: 0 },
    // The line above the table has it.
    Column { header: "NAME", spare: 12 },
    Column { header: "UTIL", spare: 2 },
    Column { header: "MEMORY", spare: 3 },
    Column { header: "TEMP", spare: 0 },
    Column { header: "POWER", spare: 4 },
    Column { header: "CLOCK", spare: 7 },
    Column { header: "THROTTLE", spare: 6 },
    Column { header: "ECC", spare: 1 },
    Column { header: "REMAP", spare: 8 },
    Column { header: "LINKS", spare: 9 },
    Column { header: "PCIE", spare: 11 },
    Column { header: "PROCS", spare: 10 },
];

/// The table of GPUs: those that answer, and those that do not.
pub(crate) fn grid(inventory: &Inventory, sweep: &Sweep, bars: bool) -> Grid {
    let mut grid = Grid::of(COLUMNS.iter().copied()).sparse();
    let mut rows: Vec<(u32, Vec<Said>)> = Vec::new();
    for reading in &sweep.gpus {
        let identity = inventory.gpus.iter().find(|gpu| gpu.uuid == reading.uuid);
        rows.push((reading.index, row(reading, identity, bars)));
    }
    for (index, said) in &sweep.unreadable {
        let name = inventory.gpus.iter().find(|gpu| gpu.index == *index);
        let name = name.map(|gpu| model(&gpu.name)).unwrap_or_default();
        let mut cells = vec![plain(index.to_string()), plain(name), (said.clone(), Paint::Bad)];
        // What is not known about it is not zero, either.
        cells.resize(COLUMNS.len(), (String::new(), Paint::Plain));
        rows.push((*index, cells));
    }
    rows.sort_by_key(|(index, _)| *index);
    for (_, cells) in rows {
        grid.row(cells);
    }
    grid
}

fn plain(text: String) -> Said {
    (text, Paint::Plain)
}

fn row(reading: &Reading, identity: Option<&GpuIdentity>, bars: bool) -> Vec<Said> {
    let total = identity.and_then(|gpu| gpu.memory_total_bytes);
    let memory = match (reading.memory_used_bytes, total) {
        (Some(used), Some(total)) => format!("{}/{}G", whole_gib(used), whole_gib(total)),
        (Some(used), None) => format!("{}G", whole_gib(used)),
        (None, _) => String::new(),
    };
    let power = reading.power_watts.map(|watts| match reading.power_limit_watts {
        Some(limit) => format!("{watts:.0}/{limit:.0}W"),
        None => format!("{watts:.0}W"),
    });
    vec![
        plain(reading.index.to_string()),
        plain(identity.map(|gpu| model(&gpu.name)).unwrap_or_default()),
        plain(reading.utilization_percent.map(|percent| busy(percent, bars)).unwrap_or_default()),
        plain(memory),
        heat(reading, identity),
        plain(power.unwrap_or_default()),
        plain(reading.sm_clock_mhz.map(|mhz| format!("{mhz}MHz")).unwrap_or_default()),
        throttle(reading),
        ecc(reading),
        remaps(reading),
        links(reading, identity),
        pcie(reading, identity),
        plain(processes(reading)),
    ]
}

/// The product without its maker: there is only one.
pub(crate) fn model(name: &str) -> String {
    name.strip_prefix("NVIDIA ").unwrap_or(name).to_owned()
}

pub(crate) fn whole_gib(bytes: u64) -> u64 {
    bytes.saturating_add(1 << 29) >> 30
}

/// `45%`, with a bar in front where somebody watches it move.
fn busy(percent: u32, bars: bool) -> String {
    let percent = percent.min(100);
    if !bars {
        return format!("{percent}%");
    }
    let full = (percent * BAR + 50) / 100;
    let bar: String = (0..BAR).map(|place| if place < full { '▇' } else { '·' }).collect();
    format!("{bar} {percent:3}%")
}

/// Where it begins to slow down by its own word, and a little before.
fn heat(reading: &Reading, identity: Option<&GpuIdentity>) -> Said {
    let Some(degrees) = reading.temperature_celsius else { return plain(String::new()) };
    let slowdown = identity.and_then(|gpu| gpu.slowdown_celsius).unwrap_or(88);
    let paint = match degrees {
        degrees if slowdown <= degrees => Paint::Bad,
        degrees if slowdown <= degrees.saturating_add(8) => Paint::Busy,
        _ => Paint::Plain,
    };
    (format!("{degrees}C"), paint)
}

fn throttle(reading: &Reading) -> Said {
    let held: Vec<&str> = reading
        .throttle_reasons
        .iter()
        .map(String::as_str)
        .filter(|reason| *reason != "GpuIdle")
        .collect();
    let paint =
        if held.iter().any(|reason| reason.starts_with("Hw")) { Paint::Bad } else { Paint::Busy };
    match (held.is_empty(), reading.throttle_reasons.is_empty()) {
        (true, true) => plain(String::new()),
        (true, false) => ("idle".to_owned(), Paint::Dim),
        (false, _) => (held.join(","), paint),
    }
}

/// Corrected and uncorrected errors since the driver was loaded.
fn ecc(reading: &Reading) -> Said {
    let volatile = |counts: Option<crate::gpu::Counts>| counts.and_then(|counts| counts.volatile);
    let (corrected, uncorrected) =
        (volatile(reading.ecc_corrected), volatile(reading.ecc_uncorrected));
    if corrected.is_none() && uncorrected.is_none() {
        return plain(String::new());
    }
    let word = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    let paint = if uncorrected.unwrap_or(0) == 0 { Paint::Plain } else { Paint::Bad };
    (format!("{}/{}", word(corrected), word(uncorrected)), paint)
}

fn remaps(reading: &Reading) -> Said {
    let Some(rows) = reading.row_remaps else { return plain(String::new()) };
    match (rows.failed, rows.pending) {
        (true, _) => ("failed".to_owned(), Paint::Bad),
        (false, true) => ("pending".to_owned(), Paint::Busy),
        (false, false) => plain(rows.corrected.saturating_add(rows.uncorrected).to_string()),
    }
}

/// Links that are up, of those that are there.
fn links(reading: &Reading, identity: Option<&GpuIdentity>) -> Said {
    let all = identity.map(|gpu| gpu.nvlinks.len()).and_then(|all| u32::try_from(all).ok());
    match (reading.nvlinks_down, all) {
        (Some(down), Some(all)) if 0 < all => {
            let paint = if down == 0 { Paint::Plain } else { Paint::Busy };
            (format!("{}/{all}", all.saturating_sub(down)), paint)
        }
        (Some(_) | None, _) => plain(String::new()),
    }
}

fn pcie(reading: &Reading, identity: Option<&GpuIdentity>) -> Said {
    let most = identity.and_then(|gpu| gpu.pcie_width_max);
    let narrow = reading.pcie_width.zip(most).is_some_and(|(width, most)| width < most);
    let paint = if narrow { Paint::Bad } else { Paint::Plain };
    match (reading.pcie_generation, reading.pcie_width) {
        (Some(generation), Some(width)) => (format!("gen{generation} x{width}"), paint),
        (None, Some(width)) => (format!("x{width}"), paint),
        (_, None) => plain(String::new()),
    }
}

/// How many programs, and the first by name.
fn processes(reading: &Reading) -> String {
    match reading.processes.as_deref() {
        None => String::new(),
        Some([]) => "0".to_owned(),
        Some([one]) if !one.name.is_empty() => one.name.clone(),
        Some([first, rest @ ..]) if !first.name.is_empty() => {
            format!("{} +{}", first.name, rest.len())
        }
        Some(all) => all.len().to_string(),
    }
}

/// The whole in a line: GPUs, how busy, how much memory and power.
pub(crate) fn totals(inventory: &Inventory, sweep: &Sweep) -> String {
    let mut models: Vec<String> = inventory.gpus.iter().map(|gpu| model(&gpu.name)).collect();
    models.sort();
    models.dedup();
    let mut parts = vec![match (sweep.count, models.is_empty()) {
        (1, true) => "1 GPU".to_owned(),
        (count, true) => format!("{count} GPUs"),
        (count, false) => format!("{count} × {}", models.join(", ")),
    }];
    let busy: Vec<u32> = sweep.gpus.iter().filter_map(|gpu| gpu.utilization_percent).collect();
    if let Some(count) = u32::try_from(busy.len()).ok().filter(|count| 0 < *count) {
        parts.push(format!("{}% busy", busy.iter().sum::<u32>() / count));
    }
    let used: u64 = sweep.gpus.iter().filter_map(|gpu| gpu.memory_used_bytes).sum();
    let total: u64 = inventory.gpus.iter().filter_map(|gpu| gpu.memory_total_bytes).sum();
    if 0 < total {
        parts.push(format!("{}/{} GiB", whole_gib(used), whole_gib(total)));
    }
    let watts: f64 = sweep.gpus.iter().filter_map(|gpu| gpu.power_watts).sum();
    if 0.0 < watts {
        parts.push(if watts < 1000.0 {
            format!("{watts:.0} W")
        } else {
            format!("{:.1} kW", watts / 1000.0)
        });
    }
    if let Some(driver) = &inventory.driver_version {
        parts.push(format!("driver {driver}"));
    }
    parts.join(", ")
}

/// One line of text, cut to the terminal.
pub(crate) fn cut(screen: &Screen, text: &str) -> String {
    let text = argosy_term::clean(text);
    match screen.width.map(usize::from) {
        Some(width) if width < text.chars().count() => {
            let cut: String = text.chars().take(width.saturating_sub(1)).collect();
            format!("{cut}…")
        }
        Some(_) | None => text,
    }
}
