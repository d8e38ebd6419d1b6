//! How often what breaks, as published: causes with rates that scale with the fleet, and what an agent can see of them.
//!
//! What a newcomer gets wrong: a paper counts causes, not symptoms. How often is theirs; which Xid or silence a cause
//! shows as is our reading of NVIDIA's catalogue, and stands here to be changed.

use super::{Cause, Effect, Rate};

/// A published profile.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name in scenario files.
    pub name: &'static str,
    /// What was watched, in one line.
    pub about: &'static str,
    /// Who published it, and which figures are not confirmed.
    pub source: &'static str,
    causes: fn() -> Vec<Cause>,
}

impl Profile {
    /// Its causes, each `scale` times as often.
    #[must_use]
    pub fn causes(&self, scale: f64) -> Vec<Cause> {
        let mut causes = (self.causes)();
        for cause in &mut causes {
            cause.rate = cause.rate.scaled(scale);
        }
        causes
    }
}

impl Rate {
    /// The same, so many times as often.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        match self {
            Rate::PerMillionGpuHours(rate) => Rate::PerMillionGpuHours(rate * scale),
            Rate::PerThousandNodeDays(rate) => Rate::PerThousandNodeDays(rate * scale),
            Rate::PerDay(rate) => Rate::PerDay(rate * scale),
        }
    }

    /// How many a day in a fleet of so many nodes and GPUs.
    #[must_use]
    pub fn per_day(self, nodes: u64, gpus: u64) -> f64 {
        match self {
            Rate::PerMillionGpuHours(rate) => rate * gpus as f64 * 24.0 / 1e6,
            Rate::PerThousandNodeDays(rate) => rate * nodes as f64 / 1e3,
            Rate::PerDay(rate) => rate,
        }
    }
}

/// All profiles.
#[must_use]
pub fn list() -> &'static [Profile] {
    &PROFILES
}

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

const PROFILES: [Profile; 5] = [
    Profile {
        name: "llama3",
        about: "16,384 H100 for 54 days: 419 unexpected interruptions of one job, by cause",
        source: "The Llama 3 Herd of Models, table 5 (2024). Totals and the counts 148, 72, 35, 19, 17 are confirmed; \
                 the other counts are from memory and add up to 419",
        causes: llama3,
    },
    Profile {
        name: "llama3-hardware",
        about: "the same without causes that are software",
        source: "as llama3, without software bug, NCCL watchdog and dependency",
        causes: llama3_hardware,
    },
    Profile {
        name: "kokolis-rsc1",
        about: "16,000 A100 for 11 months: 6.5 failures in 1,000 node-days",
        source: "Kokolis et al., Revisiting Reliability in Large-Scale Machine Learning Research Clusters, HPCA 2025; \
                 the rate is from memory. The split by cause is that of llama3-hardware",
        causes: || kokolis(6.5),
    },
    Profile {
        name: "kokolis-rsc2",
        about: "8,000 A100 for 11 months: 2.34 failures in 1,000 node-days",
        source: "as kokolis-rsc1",
        causes: || kokolis(2.34),
    },
    Profile {
        name: "lablup-b200",
        about: "504 B200 for 55 days: 10 failures",
        source: "Lablup, 2026. Ten failures are few: the true rate is between half and twice that. The split by cause \
                 is that of llama3-hardware",
        causes: lablup,
    },
];

/// GPU-hours of Llama 3's 54 days, in millions.
const LLAMA3_GPU_HOURS_M: f64 = 16_384.0 * 54.0 * 24.0 / 1e6;

/// A cause, how often it was counted, and what may be seen of it, with weights that add up to 1.
type Row = (&'static str, u32, &'static [(f64, &'static str)]);

/// The table.
const LLAMA3: [Row; 18] = [
    (
        "Faulty GPU",
        148,
        &[
            (0.40, "xid:79"),
            (0.30, "xid:74"),
            (0.10, "lost"),
            (0.10, "nvlink-down:2"),
            (0.10, "missing"),
        ],
    ),
    (
        "GPU HBM3",
        72,
        &[
            (0.20, "xid:48"),
            (0.15, "xid:63"),
            (0.15, "xid:64"),
            (0.20, "xid:94"),
            (0.15, "xid:95"),
            (0.15, "ecc-uncorrected:1"),
        ],
    ),
    ("Software bug", 54, &[(0.80, "unseen"), (0.10, "xid:31"), (0.10, "xid:13")]),
    ("Network switch or cable", 35, &[(0.50, "partition:10m"), (0.50, "unseen")]),
    ("Unplanned host maintenance", 32, &[(0.60, "reboot"), (0.40, "silent")]),
    ("GPU SRAM", 19, &[(0.40, "xid:48"), (0.30, "xid:95"), (0.30, "ecc-uncorrected:1")]),
    ("GPU system processor", 17, &[(0.70, "xid:119"), (0.30, "xid:120")]),
    ("NIC", 7, &[(0.50, "partition:30m"), (0.50, "unseen")]),
    ("NCCL watchdog timeout", 7, &[(1.0, "unseen")]),
    ("Silent data corruption", 6, &[(1.0, "unseen")]),
    (
        "Thermal interface or sensor",
        6,
        &[(0.60, "temperature:95"), (0.40, "throttle:HwThermalSlowdown")],
    ),
    ("SSD", 3, &[(0.50, "silent"), (0.50, "agent-crash")]),
    ("Power supply", 3, &[(0.60, "silent"), (0.40, "throttle:HwPowerBrakeSlowdown")]),
    ("Server chassis", 2, &[(0.50, "silent"), (0.50, "reboot")]),
    ("IO expansion board", 2, &[(0.50, "xid:79"), (0.50, "pcie-width:4")]),
    ("Dependency", 2, &[(1.0, "unseen")]),
    ("CPU", 2, &[(0.50, "silent"), (0.50, "reboot")]),
    ("System memory", 2, &[(0.40, "silent"), (0.60, "reboot")]),
];

/// Causes of the table that no machine is to blame for.
const SOFTWARE: [&str; 3] = ["Software bug", "NCCL watchdog timeout", "Dependency"];

/// What the table counts: Llama 3's causes with their numbers of interruptions in 16,384 GPUs and 54 days.
pub fn llama3_counts() -> impl Iterator<Item = (&'static str, u32)> {
    LLAMA3.iter().map(|(name, count, _)| (*name, *count))
}

fn llama3() -> Vec<Cause> {
    let cause = |(name, count, effects): &Row| Cause {
        name: (*name).to_owned(),
        rate: Rate::PerMillionGpuHours(f64::from(*count) / LLAMA3_GPU_HOURS_M),
        effects: effects.iter().map(|(weight, text)| (*weight, effect(text))).collect(),
        interrupts: true,
    };
    LLAMA3.iter().map(cause).collect()
}

fn llama3_hardware() -> Vec<Cause> {
    let mut causes = llama3();
    causes.retain(|cause| !SOFTWARE.contains(&cause.name.as_str()));
    causes
}

/// A total, split as hardware is in Llama 3's table.
fn kokolis(per_thousand_node_days: f64) -> Vec<Cause> {
    split(|share| Rate::PerThousandNodeDays(per_thousand_node_days * share))
}

fn lablup() -> Vec<Cause> {
    let gpu_hours_m = 504.0 * 55.0 * 24.0 / 1e6;
    split(|share| Rate::PerMillionGpuHours(10.0 * share / gpu_hours_m))
}

fn split(rate: impl Fn(f64) -> Rate) -> Vec<Cause> {
    let mut causes = llama3_hardware();
    let of = |cause: &Cause| cause.rate.per_day(1, 1);
    let sum: f64 = causes.iter().map(of).sum();
    for cause in &mut causes {
        cause.rate = rate(of(cause) / sum);
    }
    causes
}

/// What a text of the tables above means: as in scenario files.
fn effect(text: &str) -> Effect {
    super::effect::parse(text).unwrap_or(Effect::Unseen)
}

#[cfg(test)]
mod tests;
