//! How the machine around the GPUs is: processors, memory, disks, network and InfiniBand, from `/proc` and `/sys`.
//!
//! What is not there, or cannot be understood, is `None` and never 0.

mod disk;
mod infiniband;
mod link;
mod pci;
mod processor;
pub(crate) mod read;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio::sync::oneshot;

pub use disk::Disk;
pub use infiniband::Port;
pub use link::Link;
pub use pci::{Aer, PciDevice};
pub use processor::{Blocked, Cpu, Load, Memory};

/// Where the kernel's files are. Tests have their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Usually `/proc`.
    pub proc: PathBuf,
    /// Usually `/sys`.
    pub sys: PathBuf,
    /// Usually `/dev`.
    pub dev: PathBuf,
    /// Usually `/etc`.
    pub etc: PathBuf,
    /// Usually `/run`.
    pub run: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
            dev: "/dev".into(),
            etc: "/etc".into(),
            run: "/run".into(),
        }
    }
}

impl Roots {
    /// All of them under one directory, by their usual names.
    pub fn under(directory: &std::path::Path) -> Self {
        Self {
            proc: directory.join("proc"),
            sys: directory.join("sys"),
            dev: directory.join("dev"),
            etc: directory.join("etc"),
            run: directory.join("run"),
        }
    }
}

/// How the machine is, at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// When.
    pub at: Timestamp,
    /// Processors.
    pub cpu: Option<Cpu>,
    /// Memory.
    pub memory: Option<Memory>,
    /// How many processes want to run.
    pub load: Option<Load>,
    /// How long the machine has been up, in seconds.
    pub uptime_s: Option<u64>,
    /// When it was started.
    pub booted_at: Option<Timestamp>,
    /// File systems on real disks, by mount point.
    pub disks: Vec<Disk>,
    /// Network links of real devices, by name.
    pub links: Vec<Link>,
    /// InfiniBand and RoCE ports, by device and number.
    pub ports: Vec<Port>,
    /// NVIDIA's devices on the PCI bus, by address: GPUs, switches and what belongs to them.
    pub nvidia: Vec<PciDevice>,
    /// Whether somebody keeps the clock right; `None` if nobody can be asked.
    pub clock_synchronised: Option<bool>,
    /// Programs that wait in the kernel and cannot be ended.
    pub blocked: Vec<Blocked>,
}

impl HostSample {
    /// A sample in which nothing is known.
    pub fn empty(at: Timestamp) -> Self {
        Self {
            at,
            cpu: None,
            memory: None,
            load: None,
            uptime_s: None,
            booted_at: None,
            disks: Vec::new(),
            links: Vec::new(),
            ports: Vec::new(),
            nvidia: Vec::new(),
            clock_synchronised: None,
            blocked: Vec::new(),
        }
    }

    /// How many GPUs are on the bus, whether or not the driver sees them.
    pub fn gpus_on_bus(&self) -> usize {
        self.nvidia.iter().filter(|device| device.is_gpu()).count()
    }
}

/// How many GPUs of NVIDIA the bus shows, with or without a driver: what tells a machine that has none from
/// one whose driver is gone.
pub fn gpus_on_bus(roots: &Roots) -> u32 {
    let gpus = pci::nvidia(&roots.sys).into_iter().filter(PciDevice::is_gpu).count();
    u32::try_from(gpus).unwrap_or(u32::MAX)
}

/// How busy processors and memory are, without anything that could hang.
pub struct Busy {
    proc: PathBuf,
    cpu: processor::CpuTimes,
}

impl Busy {
    /// Of the machine with these roots.
    pub fn new(roots: Roots) -> Self {
        Self { proc: roots.proc, cpu: Default::default() }
    }

    /// Processors since the last time, and memory now, in percent. The first time knows no processors.
    pub fn read(&mut self) -> (Option<f32>, Option<f32>) {
        let cpu = self.cpu.read(&self.proc).and_then(|cpu| cpu.used_percent);
        let memory = processor::memory(&self.proc).filter(|memory| 0 < memory.total_bytes);
        let memory = memory.map(|memory| {
            let used = memory.total_bytes.saturating_sub(memory.available_bytes);
            used as f64 / memory.total_bytes as f64 * 100.0
        });
        (cpu.map(|percent| percent as f32), memory.map(|percent| percent as f32))
    }
}

/// Takes samples, and remembers what it needs from one to the next. It blocks: see `Host`.
pub struct Sampler {
    roots: Roots,
    cpu: processor::CpuTimes,
    blocked: processor::BlockedScan,
}

impl Sampler {
    /// A sampler of the machine with these roots.
    pub fn new(roots: Roots) -> Self {
        Self { roots, cpu: Default::default(), blocked: Default::default() }
    }

    /// How the machine is. Used processor time is known from the second sample on.
    pub fn sample(&mut self, at: Timestamp) -> HostSample {
        let Roots { proc, sys, run, .. } = &self.roots;
        let uptime_s = processor::uptime_s(proc);
        let since_boot = uptime_s.and_then(|uptime| i64::try_from(uptime).ok());
        HostSample {
            at,
            cpu: self.cpu.read(proc),
            memory: processor::memory(proc),
            load: processor::load(proc),
            uptime_s,
            booted_at: since_boot.and_then(|s| at.checked_sub(SignedDuration::from_secs(s)).ok()),
            disks: disk::disks(proc),
            links: link::links(sys),
            ports: infiniband::ports(sys),
            nvidia: pci::nvidia(sys),
            clock_synchronised: clock_synchronised(run),
            blocked: self.blocked.read(proc, at),
        }
    }
}

/// What systemd's time service says; others say nothing in a file.
fn clock_synchronised(run: &std::path::Path) -> Option<bool> {
    let directory = run.join("systemd/timesync");
    if directory.join("synchronized").exists() {
        return Some(true);
    }
    directory.is_dir().then_some(false)
}

/// How long a sample may take. Reading the kernel's files takes milliseconds.
const SAMPLE_MAX: Duration = Duration::from_secs(5);

/// The thread's stack: it goes a few calls deep.
const STACK_LEN: usize = 256 * 1024;

/// A sampler in a thread of its own: a disk or a device that hangs costs the sample, not the agent.
pub struct Host {
    ask: SyncSender<(Timestamp, oneshot::Sender<HostSample>)>,
    /// The sample that has not come back, and since when it was asked for.
    asked: Option<(Timestamp, oneshot::Receiver<HostSample>)>,
}

/// Why there is no sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A file of the kernel, or a disk, does not answer.
    #[error("the machine did not answer since {since}: a disk or a device hangs")]
    Hung {
        /// Since when.
        since: Timestamp,
    },
    /// The thread is gone.
    #[error("the thread that looks at the machine is gone")]
    Gone,
}

impl Host {
    /// Starts the thread. It ends when this is dropped, unless it hangs; then it ends with the program.
    pub fn start(roots: Roots) -> io::Result<Self> {
        let (ask, questions) = sync_channel::<(Timestamp, oneshot::Sender<HostSample>)>(1);
        let mut sampler = Sampler::new(roots);
        std::thread::Builder::new().name("host".into()).stack_size(STACK_LEN).spawn(move || {
            while let Ok((at, answer)) = questions.recv() {
                // Whoever asked may have given up.
                let _ = answer.send(sampler.sample(at));
            }
        })?;
        Ok(Self { ask, asked: None })
    }

    /// How the machine is: in at most ten seconds, whatever hangs. It may be cancelled; the sample that
    /// nobody waited for is thrown away.
    pub async fn sample(&mut self, now: Timestamp) -> Result<HostSample, HostError> {
        if let Some((since, answer)) = &mut self.asked {
            let since = *since;
            // One that was asked for long ago gets no more time; one that a caller gave up on does.
            let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            match tokio::time::timeout(SAMPLE_MAX.saturating_sub(waited), answer).await {
                // It came after all, and is old by now.
                Ok(Ok(_)) => self.asked = None,
                Ok(Err(_)) => return Err(HostError::Gone),
                Err(_) => return Err(HostError::Hung { since }),
            }
        }
        let (answer, answered) = oneshot::channel();
        self.ask.try_send((now, answer)).map_err(|_| HostError::Gone)?;
        let (_, answered) = self.asked.insert((now, answered));
        match tokio::time::timeout(SAMPLE_MAX, answered).await {
            Ok(Ok(sample)) => {
                self.asked = None;
                Ok(sample)
            }
            Ok(Err(_)) => Err(HostError::Gone),
            Err(_) => Err(HostError::Hung { since: now }),
        }
    }
}

#[cfg(test)]
mod tests;
