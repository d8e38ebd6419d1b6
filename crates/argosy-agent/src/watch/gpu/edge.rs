//! One GPU's memory: counters that grew, states that began.
//!
//! A counter that is smaller than before was reset, by a new driver or a reset of the GPU; what it shows now
//! came after that.

use crate::gpu::{Counts, GpuIdentity, Reading};
use crate::signal::{Condition, GpuRef, Signal, SignalKind};
use argosy_core::health::RECOVERY;
use argosy_core::recovery::RecoveryAction;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Degrees that are worth a word, and worth another: what the default policy calls hot and too hot. A GPU that
/// slows down earlier is spoken of before it does.
const WARM_CELSIUS: u32 = 85;
const HOT_CELSIUS: u32 = 95;
const BEFORE_SLOWDOWN_CELSIUS: u32 = 2;

/// How far it must cool before the same heat is news again: fans swing by a few degrees.
const COOLER_CELSIUS: u32 = 5;

/// How often hardware must hold the clocks back within `SLOWDOWN_WINDOW`, or `SLOWDOWN_LOOKS` looks where those are
/// further apart, before it is told: now and then is how a GPU under load protects itself. Fewer, and every peak of
/// power is a signal; more, and a broken fan is not.
const SLOWDOWNS_MIN: usize = 6;
const SLOWDOWN_WINDOW: SignedDuration = SignedDuration::from_mins(10);
const SLOWDOWN_LOOKS: i32 = 10;

/// The longest time between two looks; what lies further apart was not looked at in between.
const LOOKS_APART_MAX: SignedDuration = SignedDuration::from_hours(1);

/// How long errors that were corrected are gathered before they are told again, and how many cut that short:
/// the default policy warns above a hundred. One signal for each is how a slow leak drowns everything else.
const GATHER: SignedDuration = SignedDuration::from_mins(10);
const GATHER_SHORT: SignedDuration = SignedDuration::from_mins(1);
const GATHERED_MANY: u64 = 100;

/// Replays on the bus within a minute that are still usual; DCGM's figure.
const PCIE_REPLAYS_A_MINUTE_MAX: u32 = 8;

/// CRC errors of links within a second that are still usual; DCGM's figure. Any other error of a link counts.
const NVLINK_CRC_A_SECOND_MAX: u64 = 100;

/// Looks in a row at a bus that is narrower or slower than it can be: links train anew after a reset.
const PCIE_SLOW_LOOKS_MIN: u32 = 3;

/// A bus is expected to be at full speed only when the GPU works.
const BUSY_PERCENT: u32 = 50;

/// Retired pages from which on the table, which has 64 places, is all but full.
const RETIRED_PAGES_MANY: u32 = 60;

/// What is remembered of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct GpuMemory {
    /// The number it had when it was last read.
    pub(super) index: u32,
    serial: String,
    /// Why it cannot be read any more; `None` if it can.
    pub(super) gone: Option<String>,
    /// What the driver advised at the last look.
    pub(super) recovery_action: Option<u32>,
    looked: Option<Timestamp>,
    /// The error counts below are since the driver was loaded, and not over the GPU's life.
    counts_since_load: bool,
    corrected: Option<u64>,
    corrected_gathered: Gathered,
    uncorrected: Option<u64>,
    remap_pending: bool,
    remap_failed: bool,
    remaps: Option<u32>,
    retire_pending: bool,
    retired: Option<u32>,
    heat: u8,
    memory_heat: u8,
    thermal_slowdowns: Slowdowns,
    power_slowdowns: Slowdowns,
    links_down: Option<u32>,
    link_errors: BTreeMap<String, u64>,
    link_errors_gathered: Gathered,
    replays: Option<Replays>,
    pcie_slow_looks: u32,
    pcie_slow: bool,
    /// How conditions stood at the last look; those that could not be looked at are not there.
    #[serde(skip)]
    conditions: BTreeMap<&'static str, bool>,
}

impl GpuMemory {
    /// How the conditions of this GPU stood at the last look.
    pub(super) fn conditions(&self, uuid: &str) -> impl Iterator<Item = Condition> {
        self.conditions.iter().map(move |(name, holds)| Condition {
            gpu: uuid.to_owned(),
            name: (*name).to_owned(),
            holds: *holds,
        })
    }

    pub(super) fn gpu_ref(&self, uuid: &str) -> GpuRef {
        GpuRef { index: self.index, uuid: uuid.to_owned(), serial: self.serial.clone() }
    }

    /// The machine was started anew: what was told of this GPU's state may be told again.
    pub(super) fn rebooted(&mut self) {
        let before = std::mem::take(self);
        let Self { index, serial, gone, corrected, uncorrected, remaps, retired, .. } = before;
        // A driver that was loaded anew counts from nothing: as many as before are as many new ones.
        let since_load =
            |count: Option<u64>| if before.counts_since_load { count.map(|_| 0) } else { count };
        *self = Self {
            index,
            serial,
            gone,
            corrected: since_load(corrected),
            uncorrected: since_load(uncorrected),
            remaps,
            retired,
            ..Self::default()
        };
    }

    /// Takes in a reading.
    pub(super) fn on(
        &mut self,
        reading: &Reading,
        identity: Option<&GpuIdentity>,
        now: Timestamp,
    ) -> Vec<Signal> {
        self.index = reading.index;
        if let Some(serial) = identity.and_then(|gpu| gpu.serial.clone()) {
            self.serial = serial;
        }
        self.gone = None;
        let gpu = self.gpu_ref(&reading.uuid);
        self.conditions.clear();
        let mut signals = Vec::new();
        signals.extend(self.recovery(reading, now));
        signals.extend(self.ecc(reading, now));
        signals.extend(self.rows_and_pages(reading, now));
        signals.extend(self.heat(reading, identity, now));
        signals.extend(self.slowdowns(reading, now));
        signals.extend(self.links(reading, identity, now));
        signals.extend(self.bus(reading, identity, now));
        self.looked = Some(now);
        let on_gpu = |signal: Signal| Signal {
            recovery_action: reading.recovery_action,
            ..signal.on(gpu.clone())
        };
        signals.into_iter().map(on_gpu).collect()
    }

    fn recovery(&mut self, reading: &Reading, now: Timestamp) -> Option<Signal> {
        let before = std::mem::replace(&mut self.recovery_action, reading.recovery_action);
        let asks = reading.recovery_action.map(|number| number != 0);
        self.conditions.extend(asks.map(|asks| (RECOVERY, asks)));
        let number = reading.recovery_action.filter(|number| *number != 0)?;
        if before == Some(number) {
            return None;
        }
        let word = RecoveryAction::from_number(number).map_or("unknown", RecoveryAction::as_str);
        let message = format!("the driver asks for recovery of GPU {}: {word}", reading.index);
        let signal = Signal::once(SignalKind::DriverError, now, message);
        let signal = signal.with("reason", "RecoveryAction").with("recovery_action", word);
        Some(signal.begins(RECOVERY))
    }

    fn ecc(&mut self, reading: &Reading, now: Timestamp) -> Vec<Signal> {
        let mut signals = Vec::new();
        let counts = [reading.ecc_corrected, reading.ecc_uncorrected];
        let mut known = counts.into_iter().flatten();
        self.counts_since_load = known.any(|counts| counts.volatile.is_some());
        if let Some(total) = reading.ecc_uncorrected.and_then(total) {
            // Those of before we looked count, too: nobody else has told them.
            let grown = grown(Some(self.uncorrected.unwrap_or(0)), total);
            let known_since_load = reading.ecc_uncorrected.is_some_and(|c| c.volatile.is_some());
            let is_first = self.uncorrected.replace(total).is_none();
            if grown != 0 && (known_since_load || !is_first) {
                let message = format!("{grown} uncorrected memory errors on GPU {}", reading.index);
                let signal = Signal::once(SignalKind::EccDbe, now, message);
                signals.push(signal.with("ecc_dbe_count", grown).with("ecc_dbe_total", total));
            }
        }
        if let Some(total) = reading.ecc_corrected.and_then(total) {
            let grown = grown(self.corrected.replace(total), total);
            if let Some(gathered) = self.corrected_gathered.add(grown, now) {
                let message =
                    format!("{gathered} corrected memory errors on GPU {}", reading.index);
                let signal = Signal::once(SignalKind::EccSbe, now, message);
                signals.push(signal.with("ecc_sbe_count", gathered).with("ecc_sbe_total", total));
            }
        }
        signals
    }

    fn rows_and_pages(&mut self, reading: &Reading, now: Timestamp) -> Vec<Signal> {
        let mut signals = Vec::new();
        let index = reading.index;
        let mut say = |message: String, metric: &str, value: u32| {
            let signal = Signal::once(SignalKind::Memory, now, message).with(metric, value);
            let lasts = ["row_remap_failure", "row_remap_pending", "retired_pages_pending"];
            signals.push(if lasts.contains(&metric) { signal.begins(metric) } else { signal });
        };
        if let Some(rows) = reading.row_remaps {
            self.conditions.insert("row_remap_failure", rows.failed);
            self.conditions.insert("row_remap_pending", rows.pending);
            if began(&mut self.remap_failed, rows.failed) {
                say(format!("a bad row of GPU {index} cannot be replaced"), "row_remap_failure", 1);
            }
            if began(&mut self.remap_pending, rows.pending) {
                let message =
                    format!("a bad row of GPU {index} will be replaced at its next reset");
                say(message, "row_remap_pending", 1);
            }
            let count = rows.corrected.saturating_add(rows.uncorrected);
            if self.remaps.replace(count).is_some_and(|before| before < count) {
                say(format!("rows of GPU {index} were replaced"), "row_remaps_total", count);
            }
        }
        if let Some(pages) = reading.retired_pages {
            self.conditions.insert("retired_pages_pending", pages.pending);
            if began(&mut self.retire_pending, pages.pending) {
                let message = format!("a page of GPU {index} will be retired at its next reset");
                say(message, "retired_pages_pending", 1);
            }
            let count = pages.corrected.saturating_add(pages.uncorrected);
            let before = self.retired.replace(count);
            if before.map_or(RETIRED_PAGES_MANY <= count, |before| before < count) {
                say(format!("pages of GPU {index} were retired"), "retired_pages_total", count);
            }
        }
        signals
    }

    fn heat(
        &mut self,
        reading: &Reading,
        identity: Option<&GpuIdentity>,
        now: Timestamp,
    ) -> Vec<Signal> {
        let mut signals = Vec::new();
        let slowdown = identity.and_then(|gpu| gpu.slowdown_celsius).unwrap_or(u32::MAX);
        let warm = WARM_CELSIUS.min(slowdown.saturating_sub(BEFORE_SLOWDOWN_CELSIUS));
        if let Some(celsius) = reading.temperature_celsius {
            let is_other = heated(&mut self.heat, celsius, warm, HOT_CELSIUS.min(slowdown));
            // Warm and hot are two conditions: when one is over, the other begins.
            let names = ["temperature", "temperature-hot"];
            for (level, name) in (1..).zip(names) {
                self.conditions.insert(name, self.heat == level);
                if is_other && self.heat == level {
                    let message = format!("GPU {} is at {celsius} degrees", reading.index);
                    let signal = Signal::once(SignalKind::Thermal, now, message);
                    signals.push(signal.with("temperature", celsius).begins(name));
                }
            }
        }
        // Memory runs hotter than the chip by design: only what is too hot for both is told.
        if let Some(celsius) = reading.memory_temperature_celsius {
            let is_other = heated(&mut self.memory_heat, celsius, HOT_CELSIUS, u32::MAX);
            self.conditions.insert("memory_temperature", self.memory_heat != 0);
            if is_other && self.memory_heat != 0 {
                let message =
                    format!("the memory of GPU {} is at {celsius} degrees", reading.index);
                let signal = Signal::once(SignalKind::Thermal, now, message);
                signals
                    .push(signal.with("memory_temperature", celsius).begins("memory_temperature"));
            }
        }
        signals
    }

    fn slowdowns(&mut self, reading: &Reading, now: Timestamp) -> Vec<Signal> {
        let mut signals = Vec::new();
        let since_last = self.looked.map_or(SignedDuration::ZERO, |looked| apart(now, looked));
        let window = SLOWDOWN_WINDOW.max(since_last.min(LOOKS_APART_MAX) * SLOWDOWN_LOOKS);
        let rows = [
            (&mut self.thermal_slowdowns, "HwThermalSlowdown", SignalKind::Thermal),
            (&mut self.power_slowdowns, "HwPowerBrakeSlowdown", SignalKind::Power),
        ];
        for (slowdowns, word, kind) in rows {
            let is_on = reading.throttle_reasons.iter().any(|reason| reason == word);
            let is_news = slowdowns.look(is_on, now, window);
            self.conditions.insert(word, slowdowns.said);
            if is_news {
                let message = format!("hardware keeps slowing GPU {} down: {word}", reading.index);
                let signal = Signal::once(kind, now, message).with("throttle", word).begins(word);
                let celsius = reading.temperature_celsius;
                signals.push(celsius.into_iter().fold(signal, |s, c| s.with("temperature", c)));
            }
        }
        signals
    }

    fn links(
        &mut self,
        reading: &Reading,
        identity: Option<&GpuIdentity>,
        now: Timestamp,
    ) -> Vec<Signal> {
        let mut signals = Vec::new();
        if let Some(down) = reading.nvlinks_down {
            let before = self.links_down.replace(down);
            // All of them down from the first look on is a GPU that is connected to nothing.
            let all = identity.map(|gpu| gpu.nvlinks.len());
            let is_connected = all != usize::try_from(down).ok();
            self.conditions.insert("nvlinks_down", down != 0);
            if before.map_or(down != 0 && is_connected, |before| before < down) {
                let message = format!("{down} links of GPU {} are down", reading.index);
                let signal = Signal::once(SignalKind::Nvlink, now, message);
                signals.push(signal.with("nvlinks_down", down).begins("nvlinks_down"));
            }
        }
        let seconds = self.looked.map_or(1, |looked| apart(now, looked).as_secs().max(1));
        let usual = NVLINK_CRC_A_SECOND_MAX.saturating_mul(seconds.unsigned_abs());
        let mut new = 0_u64;
        for (kind, count) in &reading.nvlink_errors {
            let before = self.link_errors.insert(kind.clone(), *count);
            let grown = grown(before, *count);
            if !kind.starts_with("crc") || usual < grown {
                new = new.saturating_add(grown);
            }
        }
        if let Some(gathered) = self.link_errors_gathered.add(new, now) {
            let message = format!("{gathered} errors on links of GPU {}", reading.index);
            let signal = Signal::once(SignalKind::Nvlink, now, message);
            let signal = signal.with("nvlink_errors", gathered);
            let totals = reading.nvlink_errors.iter();
            signals.push(totals.fold(signal, |signal, (kind, total)| {
                signal.with(&format!("nvlink_{kind}_total"), total)
            }));
        }
        signals
    }

    fn bus(
        &mut self,
        reading: &Reading,
        identity: Option<&GpuIdentity>,
        now: Timestamp,
    ) -> Vec<Signal> {
        let mut signals = Vec::new();
        if let Some(total) = reading.pcie_replays
            && let Some(grown) = Replays::look(&mut self.replays, total, now)
        {
            let message = format!("{grown} packets sent again on the bus of GPU {}", reading.index);
            let signal = Signal::once(SignalKind::Pcie, now, message);
            signals.push(signal.with("pcie_replays", grown).with("pcie_replays_total", total));
        }
        let below = |now: Option<u32>, most: Option<u32>| now.zip(most).is_some_and(|(n, m)| n < m);
        let is_busy = reading.utilization_percent.is_some_and(|percent| BUSY_PERCENT <= percent);
        let is_slow = identity.is_some_and(|gpu| {
            below(reading.pcie_width, gpu.pcie_width_max)
                || is_busy && below(reading.pcie_generation, gpu.pcie_generation_max)
        });
        let is_full = identity.is_some_and(|gpu| {
            !below(reading.pcie_width, gpu.pcie_width_max)
                && !below(reading.pcie_generation, gpu.pcie_generation_max)
        });
        self.pcie_slow_looks = if is_slow { self.pcie_slow_looks.saturating_add(1) } else { 0 };
        // One that rests may be slower than it can be, which says nothing either way.
        self.pcie_slow &= !is_full;
        self.pcie_slow |= self.pcie_slow_looks == PCIE_SLOW_LOOKS_MIN;
        self.conditions.insert("pcie_width", self.pcie_slow);
        if self.pcie_slow_looks == PCIE_SLOW_LOOKS_MIN {
            let (width, generation) =
                (reading.pcie_width.unwrap_or(0), reading.pcie_generation.unwrap_or(0));
            let message =
                format!("the bus of GPU {} is at x{width}, generation {generation}", reading.index);
            let signal = Signal::once(SignalKind::Pcie, now, message);
            let signal = signal.with("pcie_width", width).with("pcie_generation", generation);
            signals.push(signal.begins("pcie_width"));
        }
        signals
    }
}

/// Errors that were corrected, between two signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Gathered {
    count: u64,
    said: Option<Timestamp>,
}

impl Gathered {
    /// Adds to it; how many are to be told, if it is time.
    fn add(&mut self, grown: u64, now: Timestamp) -> Option<u64> {
        self.count = self.count.saturating_add(grown);
        let wait = if GATHERED_MANY < self.count { GATHER_SHORT } else { GATHER };
        let is_time = self.said.is_none_or(|said| wait <= apart(now, said));
        if self.count == 0 || !is_time {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// When hardware held the clocks back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Slowdowns {
    /// The last `SLOWDOWNS_MIN`, oldest first.
    at: Vec<Timestamp>,
    said: bool,
}

impl Slowdowns {
    /// Whether it is to be told: often enough, and not told since it last was quiet.
    fn look(&mut self, is_on: bool, now: Timestamp, window: SignedDuration) -> bool {
        self.at.retain(|at| apart(now, *at) < window);
        if is_on {
            self.at.push(now);
            let over = self.at.len().saturating_sub(SLOWDOWNS_MIN);
            self.at.drain(..over);
        }
        self.said &= !self.at.is_empty();
        let is_often = SLOWDOWNS_MIN <= self.at.len();
        is_often && !std::mem::replace(&mut self.said, true)
    }
}

/// Packets that were sent again, within a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Replays {
    since: Timestamp,
    from: u32,
    last: u32,
    said: bool,
}

impl Replays {
    fn look(memory: &mut Option<Self>, total: u32, now: Timestamp) -> Option<u32> {
        let fresh = |from| Self { since: now, from, last: total, said: false };
        let window = match memory {
            // The first look, and a counter that was reset: from here on.
            None => memory.insert(fresh(total)),
            Some(window) if total < window.last => memory.insert(fresh(0)),
            Some(window) => window,
        };
        window.last = total;
        let grown = total.saturating_sub(window.from);
        let minutes = apart(now, window.since).as_mins().max(1);
        let usual = i64::from(PCIE_REPLAYS_A_MINUTE_MAX).saturating_mul(minutes);
        let is_many = usual < i64::from(grown);
        let told = (is_many && !window.said).then_some(grown);
        window.said |= is_many;
        // Told once in a while, however long it goes on.
        let length = if window.said { GATHER } else { SignedDuration::from_mins(1) };
        if length <= apart(now, window.since) {
            *window = fresh(total);
        }
        told
    }
}

/// How far two times are from each other. A clock that is set back must not stop everything until it has
/// caught up with itself.
pub(super) fn apart(now: Timestamp, then: Timestamp) -> SignedDuration {
    now.duration_since(then).abs()
}

/// Since the driver was loaded, or else over the GPU's life.
fn total(counts: Counts) -> Option<u64> {
    counts.volatile.or(counts.aggregate)
}

/// By how much a counter grew; the first look is where counting begins.
fn grown(before: Option<u64>, now: u64) -> u64 {
    match before {
        None => 0,
        Some(before) if before <= now => now - before,
        Some(_) => now,
    }
}

/// Whether a state began.
fn began(state: &mut bool, is_on: bool) -> bool {
    let was_on = std::mem::replace(state, is_on);
    is_on && !was_on
}

/// Whether it is warmer or cooler than it was, by degrees: fine (0), warm (1), hot (2).
fn heated(heat: &mut u8, celsius: u32, warm: u32, hot: u32) -> bool {
    let at = |celsius: u32| u8::from(warm <= celsius) + u8::from(warm.max(hot) <= celsius);
    let before = *heat;
    *heat = at(celsius).max(before.min(at(celsius.saturating_add(COOLER_CELSIUS - 1))));
    before != *heat
}
