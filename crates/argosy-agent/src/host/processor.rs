//! Processors, memory, load, and programs that wait in the kernel.

use super::read;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// How many are in use.
    pub count: u32,
    /// How much of their time since the last sample they worked; `None` in the first.
    pub used_percent: Option<f64>,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total_bytes: u64,
    /// What programs could still get without swapping.
    pub available_bytes: u64,
    /// Room to swap to.
    pub swap_total_bytes: u64,
    /// Of which free.
    pub swap_free_bytes: u64,
}

/// How many processes want to run, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Over one minute.
    pub one: f64,
    /// Over five.
    pub five: f64,
    /// Over fifteen.
    pub fifteen: f64,
}

/// A program that waits in the kernel and cannot be ended (state D).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// When it was started, in the kernel's ticks: a number may be another program's by now.
    pub started_ticks: u64,
    /// How long it worked, in ticks. One that works is not stuck, however often it waits.
    pub worked_ticks: u64,
}

/// Remembers the processors' times from one sample to the next.
#[derive(Default)]
pub(super) struct CpuTimes {
    last: Option<(u64, u64)>,
}

impl CpuTimes {
    pub(super) fn read(&mut self, proc: &Path) -> Option<Cpu> {
        let text = read::text(&proc.join("stat"))?;
        let (busy, all) = times(text.lines().find_map(|line| line.strip_prefix("cpu "))?)?;
        let is_processor = |line: &&str| {
            let number = line.strip_prefix("cpu").and_then(|rest| rest.split(' ').next());
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let count = u32::try_from(text.lines().filter(is_processor).count()).unwrap_or(u32::MAX);
        let before = self.last.replace((busy, all));
        let used_percent = before.and_then(|(busy_before, all_before)| {
            let passed = all.checked_sub(all_before).filter(|passed| 0 < *passed)?;
            let worked = busy.saturating_sub(busy_before).min(passed);
            Some(worked as f64 * 100.0 / passed as f64)
        });
        Some(Cpu { count, used_percent })
    }
}

/// Ticks of work and of everything: user, nice, system, idle, waiting for disks, interrupts, stolen.
fn times(line: &str) -> Option<(u64, u64)> {
    // Guests are in `user` already.
    let ticks: Vec<u64> =
        line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let all = ticks.iter().try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?;
    let idle = ticks.get(3)?.checked_add(ticks.get(4).copied().unwrap_or_default())?;
    Some((all.checked_sub(idle)?, all))
}

pub(super) fn memory(proc: &Path) -> Option<Memory> {
    let text = read::text(&proc.join("meminfo"))?;
    let bytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    Some(Memory {
        total_bytes: bytes("MemTotal")?,
        available_bytes: bytes("MemAvailable").or_else(|| bytes("MemFree"))?,
        swap_total_bytes: bytes("SwapTotal").unwrap_or_default(),
        swap_free_bytes: bytes("SwapFree").unwrap_or_default(),
    })
}

pub(super) fn load(proc: &Path) -> Option<Load> {
    let text = read::word(&proc.join("loadavg"))?;
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse::<f64>().ok().filter(|load| load.is_finite() && 0.0 <= *load));
    let mut next = || numbers.next().flatten();
    Some(Load { one: next()?, five: next()?, fifteen: next()? })
}

pub(super) fn uptime_s(proc: &Path) -> Option<u64> {
    let text = read::word(&proc.join("uptime"))?;
    text.split(['.', ' ']).next()?.parse().ok()
}

/// How often all processes are looked at. With ten thousand of them it takes a tenth of a second, and
/// one counts as stuck only after minutes.
const SCAN_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// The most that are told of. When a disk hangs, everything that touches it waits.
const BLOCKED_MAX: usize = 32;

/// Looks for programs that wait, now and then.
#[derive(Default)]
pub(super) struct BlockedScan {
    scanned_at: Option<Timestamp>,
    found: Vec<Blocked>,
}

impl BlockedScan {
    pub(super) fn read(&mut self, proc: &Path, at: Timestamp) -> Vec<Blocked> {
        let is_fresh = |scanned: Timestamp| at.duration_since(scanned).abs() < SCAN_EVERY;
        if !self.scanned_at.is_some_and(is_fresh) {
            self.scanned_at = Some(at);
            let processes = read::entries(proc).into_iter();
            let processes =
                processes.filter_map(|path| read::name(&path).parse().ok().zip(Some(path)));
            let found =
                processes.filter_map(|(pid, path)| blocked(pid, &read::line(&path.join("stat"))?));
            self.found = found.take(BLOCKED_MAX).collect();
        }
        self.found.clone()
    }
}

/// `1234 (name with) spaces) D 1 …`: the name ends at the last parenthesis.
fn blocked(pid: u32, stat: &str) -> Option<Blocked> {
    const KTHREADD: &str = "2";
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    // Counted from the state, which is field 3.
    let fields: Vec<&str> = rest.split_whitespace().take(20).collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let ticks = |number: usize| field(number)?.parse::<u64>().ok();
    // The kernel's own threads wait as they like.
    if field(3)? != "D" || field(4)? == KTHREADD {
        return None;
    }
    Some(Blocked {
        pid,
        name: name.to_owned(),
        started_ticks: ticks(22)?,
        worked_ticks: ticks(14)?.saturating_add(ticks(15)?),
    })
}
