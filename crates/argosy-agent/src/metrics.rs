//! The agent's own figures and its GPUs as Prometheus reads them, on request.
//!
//! `Figures` is what the agent fills in as it works; `serve` answers `GET /metrics` with it. A value that the
//! driver does not give has no line: what cannot be known must not look well.

use crate::gpu::{GpuIdentity, Inventory, Reading, Sweep};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How many may read at once. One Prometheus and a person with curl; more wait in the kernel's queue.
const READERS_MAX: usize = 8;

/// The longest request that is read: it has one line that matters.
const REQUEST_LEN_MAX: usize = 8 * 1024;

/// How long one reader may take for the request, and for the answer.
const READER_MAX: Duration = Duration::from_secs(5);

/// How long nothing is accepted after accepting failed: out of file descriptors, most likely.
const REST: Duration = Duration::from_secs(1);

/// What the agent counts about itself, and what it saw last. Shared by `Arc`; whoever does a thing counts it.
#[derive(Debug, Default)]
pub struct Figures {
    /// Heartbeats sent.
    pub heartbeats: AtomicU64,
    /// Health reports sent.
    pub reports: AtomicU64,
    /// Times the way to the server had to be found again.
    pub reconnects: AtomicU64,
    /// Whether the server is attached, now: 0 or 1.
    pub connected: AtomicU64,
    /// Bytes that wait on disk to be sent.
    pub spool_bytes: AtomicU64,
    /// Signals that were seen.
    pub signals: AtomicU64,
    /// Commands that were begun.
    pub commands: AtomicU64,
    /// Sweeps that gave nothing.
    pub sweeps_failed: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    inventory: Inventory,
    sweep: Option<Sweep>,
    sweeps: u64,
    sweep_seconds_sum: f64,
}

impl Figures {
    /// One more, of whatever it is.
    pub fn count(figure: &AtomicU64) {
        figure.fetch_add(1, Ordering::Relaxed);
    }

    /// This many, now.
    pub fn set(figure: &AtomicU64, value: u64) {
        figure.store(value, Ordering::Relaxed);
    }

    /// What is in this machine.
    pub fn inventoried(&self, inventory: &Inventory) {
        self.lock().inventory = inventory.clone();
    }

    /// How it is.
    pub fn swept(&self, sweep: &Sweep) {
        let mut seen = self.lock();
        seen.sweeps = seen.sweeps.saturating_add(1);
        seen.sweep_seconds_sum += sweep.took.as_secs_f64();
        seen.sweep = Some(sweep.clone());
    }

    /// Nothing can be said about the GPUs, now: old values are not shown as if they were new.
    pub fn sweep_failed(&self) {
        Self::count(&self.sweeps_failed);
        self.lock().sweep = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        // Nothing under the lock can leave it half changed.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page, in Prometheus' text format.
    pub fn page(&self) -> String {
        let mut page = Page::default();
        page.head("argosy_agent_info", "gauge", "Which agent this is.");
        page.line("argosy_agent_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let rows: [(&str, &str, &str, &AtomicU64); 8] = [
            ("heartbeats_total", "counter", "Heartbeats sent.", &self.heartbeats),
            ("reports_total", "counter", "Health reports sent.", &self.reports),
            ("reconnects_total", "counter", "Times the server was lost.", &self.reconnects),
            ("connected", "gauge", "Whether the server is attached.", &self.connected),
            ("spool_bytes", "gauge", "What waits on disk to be sent.", &self.spool_bytes),
            ("signals_total", "counter", "Signals seen.", &self.signals),
            ("commands_total", "counter", "Commands begun.", &self.commands),
            ("sweeps_failed_total", "counter", "Sweeps without an answer.", &self.sweeps_failed),
        ];
        for (name, kind, help, figure) in rows {
            let name = format!("argosy_agent_{name}");
            page.head(&name, kind, help);
            page.line(&name, &[], whole(figure.load(Ordering::Relaxed)));
        }
        let seen = self.lock();
        let name = "argosy_agent_sweep_duration_seconds";
        page.head(name, "summary", "How long asking all GPUs takes.");
        page.line(&format!("{name}_sum"), &[], seen.sweep_seconds_sum);
        page.line(&format!("{name}_count"), &[], whole(seen.sweeps));
        page.gpus(&seen);
        page.text
    }
}

/// What is said about each GPU: name, kind, help, and where it is in a reading.
type GpuRow = (&'static str, &'static str, &'static str, fn(&Reading) -> Option<f64>);

const GPU_ROWS: &[GpuRow] = &[
    ("temperature_celsius", "gauge", "Of the chip.", |r| r.temperature_celsius.map(f64::from)),
    ("memory_temperature_celsius", "gauge", "Of the memory.", |r| {
        r.memory_temperature_celsius.map(f64::from)
    }),
    ("power_watts", "gauge", "What it draws.", |r| r.power_watts),
    ("power_limit_watts", "gauge", "What it may draw.", |r| r.power_limit_watts),
    ("utilization_ratio", "gauge", "How much of the last second it worked.", |r| {
        r.utilization_percent.map(|percent| f64::from(percent) / 100.0)
    }),
    (
        "memory_utilization_ratio",
        "gauge",
        "How much of the last second its memory was used.",
        |r| r.memory_utilization_percent.map(|percent| f64::from(percent) / 100.0),
    ),
    ("memory_used_bytes", "gauge", "Memory in use.", |r| r.memory_used_bytes.map(whole)),
    ("memory_free_bytes", "gauge", "Memory that is free.", |r| r.memory_free_bytes.map(whole)),
    ("sm_clock_hertz", "gauge", "Of its multiprocessors.", |r| r.sm_clock_mhz.map(hertz)),
    ("memory_clock_hertz", "gauge", "Of its memory.", |r| r.memory_clock_mhz.map(hertz)),
    ("ecc_corrected_total", "counter", "Errors corrected since the driver was loaded.", |r| {
        r.ecc_corrected.and_then(|counts| counts.volatile).map(whole)
    }),
    (
        "ecc_uncorrected_total",
        "counter",
        "Errors not corrected since the driver was loaded.",
        |r| r.ecc_uncorrected.and_then(|counts| counts.volatile).map(whole),
    ),
    ("row_remaps", "gauge", "Rows of memory replaced by spare ones.", |r| {
        r.row_remaps.map(|rows| f64::from(rows.corrected) + f64::from(rows.uncorrected))
    }),
    ("row_remap_pending", "gauge", "A row waits for the next reset.", |r| {
        r.row_remaps.map(|rows| truth(rows.pending))
    }),
    ("row_remap_failed", "gauge", "A row could not be replaced.", |r| {
        r.row_remaps.map(|rows| truth(rows.failed))
    }),
    ("nvlinks_down", "gauge", "Links that are not up.", |r| r.nvlinks_down.map(f64::from)),
    ("pcie_replays_total", "counter", "Packets sent again on the bus.", |r| {
        r.pcie_replays.map(f64::from)
    }),
    ("pcie_width", "gauge", "Lanes of its link.", |r| r.pcie_width.map(f64::from)),
    ("recovery_action", "gauge", "What the driver asks for, by NVML's number.", |r| {
        r.recovery_action.map(f64::from)
    }),
    ("processes", "gauge", "Programs that use it.", |r| {
        r.processes.as_ref().and_then(|all| u32::try_from(all.len()).ok()).map(f64::from)
    }),
];

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let written = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        debug_assert!(written.is_ok(), "a string takes everything");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let written = writeln!(self.text, "{name}{labels} {value}");
        debug_assert!(written.is_ok(), "a string takes everything");
    }

    fn gpus(&mut self, seen: &Seen) {
        let Some(sweep) = &seen.sweep else { return };
        self.head("argosy_gpu_count", "gauge", "GPUs that the driver counts.");
        self.line("argosy_gpu_count", &[], f64::from(sweep.count));
        let known: BTreeMap<&str, &GpuIdentity> =
            seen.inventory.gpus.iter().map(|gpu| (gpu.uuid.as_str(), gpu)).collect();
        self.head("argosy_gpu_readable", "gauge", "Whether the GPU answers.");
        for (index, readable) in sweep
            .gpus
            .iter()
            .map(|gpu| (gpu.index, true))
            .chain(sweep.unreadable.keys().map(|index| (*index, false)))
        {
            let listed = seen.inventory.gpus.iter().find(|gpu| gpu.index == index);
            let uuid = sweep.gpus.iter().find(|gpu| gpu.index == index).map(|gpu| &gpu.uuid);
            let uuid = uuid.or(listed.map(|gpu| &gpu.uuid)).map_or("", String::as_str);
            let name = listed.map_or("", |gpu| gpu.name.as_str());
            self.gpu_line("argosy_gpu_readable", index, uuid, name, &[], truth(readable));
        }
        for (name, kind, help, value) in GPU_ROWS {
            let name = format!("argosy_gpu_{name}");
            self.head(&name, kind, help);
            for reading in &sweep.gpus {
                let product = known.get(reading.uuid.as_str()).map_or("", |gpu| gpu.name.as_str());
                if let Some(value) = value(reading) {
                    self.gpu_line(&name, reading.index, &reading.uuid, product, &[], value);
                }
            }
        }
        let (errors, throttled) = ("argosy_gpu_nvlink_errors_total", "argosy_gpu_throttled");
        self.head(errors, "counter", "Errors on all links since the driver was loaded, by kind.");
        for reading in &sweep.gpus {
            let product = known.get(reading.uuid.as_str()).map_or("", |gpu| gpu.name.as_str());
            for (kind, count) in &reading.nvlink_errors {
                let kind = [("kind", kind.as_str())];
                self.gpu_line(errors, reading.index, &reading.uuid, product, &kind, whole(*count));
            }
        }
        self.head(throttled, "gauge", "Why its clocks are held back, by reason.");
        for reading in &sweep.gpus {
            let product = known.get(reading.uuid.as_str()).map_or("", |gpu| gpu.name.as_str());
            for reason in &reading.throttle_reasons {
                let reason = [("reason", reason.as_str())];
                self.gpu_line(throttled, reading.index, &reading.uuid, product, &reason, 1.0);
            }
        }
    }

    fn gpu_line(
        &mut self,
        name: &str,
        index: u32,
        uuid: &str,
        product: &str,
        more: &[(&str, &str)],
        value: f64,
    ) {
        let index = index.to_string();
        let mut labels = vec![("index", index.as_str()), ("uuid", uuid), ("name", product)];
        labels.extend_from_slice(more);
        self.line(name, &labels, value);
    }
}

/// Prometheus knows one kind of number; above 2^53 it loses the last digits, as Prometheus does.
fn whole(value: u64) -> f64 {
    value as f64
}

fn hertz(mhz: u32) -> f64 {
    f64::from(mhz) * 1e6
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// A label's value: the three marks that the format knows, and nothing else that is not text.
fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => text.push(letter),
        }
    }
    text
}

/// Answers `GET /metrics` and `GET /healthz` for as long as it is polled.
///
/// A reader that is slow, or that sends nonsense, costs itself and nobody else.
pub async fn serve(listener: TcpListener, figures: &Figures) {
    let mut readers = FuturesUnordered::new();
    let mut rest = None;
    loop {
        let is_open = readers.len() < READERS_MAX && rest.is_none();
        tokio::select! {
            accepted = listener.accept(), if is_open => match accepted {
                Ok((stream, _)) => readers.push(timeout(READER_MAX, answer(stream, figures))),
                Err(_) => rest = Some(Box::pin(tokio::time::sleep(REST))),
            },
            Some(_) = readers.next(), if !readers.is_empty() => {}
            () = async { if let Some(rest) = &mut rest { rest.await } }, if rest.is_some() => {
                rest = None;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, figures: &Figures) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut chunk = [0; 1_024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_LEN_MAX {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            break;
        }
        request.extend_from_slice(chunk.get(..count).unwrap_or_default());
    }
    let (status, kind, body) = respond(&request, figures);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn respond(request: &[u8], figures: &Figures) -> (&'static str, &'static str, String) {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with("HTTP/1."));
    let whole = request.windows(4).any(|end| end == b"\r\n\r\n");
    let path = target.map(|target| target.split('?').next().unwrap_or_default());
    match (method, path) {
        _ if !is_http || !whole => ("400 Bad Request", PLAIN, "this is no request\n".to_owned()),
        (Some("GET"), Some("/metrics")) => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", figures.page())
        }
        (Some("GET"), Some("/healthz")) => ("200 OK", PLAIN, "ok\n".to_owned()),
        (Some("GET"), _) => {
            ("404 Not Found", PLAIN, "there are /metrics and /healthz\n".to_owned())
        }
        (_, _) => ("405 Method Not Allowed", PLAIN, "only GET\n".to_owned()),
    }
}

#[cfg(test)]
mod tests;
