//! One InfiniBand port across samples: down, flapping, slow, or counting errors.

use super::{Look, recently};
use crate::check::Word;
use crate::host::Port;
use crate::signal::Signal;
use crate::watch::log::host_signal;
use crate::watch::word::HostWord;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// How long a port may be down. A switch that is updated is back within minutes.
const DOWN_MAX: SignedDuration = SignedDuration::from_secs(240);
/// How long a port must be down for its coming back to be a flap, and not a blink of the driver.
const FLAP_DOWN_MIN: SignedDuration = SignedDuration::from_secs(25);
/// How many flaps are a fault: once is maintenance, twice is bad luck.
const FLAPS_MAX: usize = 3;
/// How long a flap is remembered. A bad cable flaps again the same day.
const FLAP_LASTS: SignedDuration = SignedDuration::from_hours(12);

/// A counter that grows faster than on a good link.
struct Rule {
    counter: &'static str,
    /// More than this …
    grows_by: u64,
    /// … within this.
    within: SignedDuration,
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// As NVIDIA's own monitor has them.
const RULES: [Rule; 10] = [
    // Any of these four means that packets were lost.
    Rule { counter: "link_downed", grows_by: 0, within: SECOND },
    Rule { counter: "excessive_buffer_overrun_errors", grows_by: 0, within: SECOND },
    Rule { counter: "local_link_integrity_errors", grows_by: 0, within: SECOND },
    Rule { counter: "rnr_nak_retry_err", grows_by: 0, within: SECOND },
    // These happen on good links, too, but not so often. 120 an hour is the limit of the standard's
    // bit error rate at these speeds.
    Rule { counter: "symbol_error", grows_by: 120, within: SignedDuration::from_hours(1) },
    Rule { counter: "link_error_recovery", grows_by: 5, within: SignedDuration::from_mins(1) },
    Rule { counter: "port_rcv_errors", grows_by: 10, within: SECOND },
    Rule { counter: "local_ack_timeout_err", grows_by: 1, within: SECOND },
    Rule { counter: "port_xmit_discards", grows_by: 100, within: SECOND },
    Rule { counter: "roce_slow_restart", grows_by: 10, within: SECOND },
];

/// What is remembered of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct PortMemory {
    is_virtual: bool,
    was_active: bool,
    down_since: Option<Timestamp>,
    told_down: bool,
    /// When it last came back after it had been down for too long.
    recovered_at: Option<Timestamp>,
    flaps: VecDeque<Timestamp>,
    rate_best: Option<f64>,
    told_slow: bool,
    /// Where each rule's window began, and with what.
    windows: BTreeMap<&'static str, (Timestamp, u64)>,
    troubles: BTreeMap<&'static str, Timestamp>,
}

impl PortMemory {
    /// `port` is `None` if it is not there any more.
    pub(super) fn look(
        &mut self,
        port: Option<&Port>,
        name: String,
        at: Timestamp,
        look: &mut Look,
    ) {
        let signal = |word: HostWord, message: String| {
            let mut signal = host_signal(word, at).with("device", &name);
            signal.message = message;
            signal
        };
        self.is_virtual |= port.is_some_and(|port| port.is_virtual);
        let active = port.map_or(Some(false), |port| port.active);
        match active {
            Some(true) => self.up(&name, at, look, &signal),
            // A port that was never up has no cable, and is nobody's loss.
            Some(false) if self.was_active => self.down(&name, at, look, &signal),
            Some(false) | None => {}
        }
        self.flapping(&name, at, look);
        let Some(port) = port else { return };
        if active == Some(true) {
            self.rate(port, &name, look, &signal);
        }
        self.counters(port, &name, at, look, &signal);
    }

    /// Whether it is a part of another device.
    pub(super) fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    fn down(
        &mut self,
        name: &str,
        at: Timestamp,
        look: &mut Look,
        signal: &impl Fn(HostWord, String) -> Signal,
    ) {
        let since = *self.down_since.get_or_insert(at);
        if at.duration_since(since) < DOWN_MAX {
            return;
        }
        let message = format!("InfiniBand port {name} is down since {since}");
        if !self.told_down {
            self.told_down = true;
            look.signals.push(signal(HostWord::PortDown, message.clone()));
        }
        look.find(Word::Unhealthy, "InfinibandDown", message);
    }

    fn up(
        &mut self,
        name: &str,
        at: Timestamp,
        look: &mut Look,
        signal: &impl Fn(HostWord, String) -> Signal,
    ) {
        self.was_active = true;
        if let Some(since) = self.down_since.take() {
            if FLAP_DOWN_MIN <= at.duration_since(since) {
                self.flaps.push_back(at);
                // More than enough to be a fault, and no more than that is remembered.
                if FLAPS_MAX < self.flaps.len() {
                    self.flaps.pop_front();
                } else if self.flaps.len() == FLAPS_MAX {
                    let message = format!("InfiniBand port {name} went down {FLAPS_MAX} times");
                    look.signals.push(signal(HostWord::PortFlap, message));
                }
            }
            if self.told_down {
                self.told_down = false;
                self.recovered_at = Some(at);
            }
        }
        if recently(self.recovered_at, at) {
            let message = format!("InfiniBand port {name} was down for minutes and is back");
            look.find(Word::Degraded, "InfinibandRecovered", message);
        }
    }

    fn flapping(&mut self, name: &str, at: Timestamp, look: &mut Look) {
        self.flaps.retain(|flap| at.duration_since(*flap) < FLAP_LASTS);
        if FLAPS_MAX <= self.flaps.len() {
            let message =
                format!("InfiniBand port {name} goes down and comes back; look at its cable");
            look.find(Word::Degraded, "InfinibandFlap", message);
        }
    }

    fn rate(
        &mut self,
        port: &Port,
        name: &str,
        look: &mut Look,
        signal: &impl Fn(HostWord, String) -> Signal,
    ) {
        let Some(rate) = port.rate_gbps else { return };
        let best = self.rate_best.map_or(rate, |best| best.max(rate));
        self.rate_best = Some(best);
        let slow = rate < best;
        let message = format!("InfiniBand port {name} runs at {rate} of {best} Gbit/s");
        if slow && !self.told_slow {
            let told = signal(HostWord::PortSlow, message.clone());
            look.signals.push(told.with("rate_gbps", rate).with("rate_gbps_best", best));
        }
        self.told_slow = slow;
        if slow {
            look.find(Word::Degraded, "InfinibandSlow", message);
        }
    }

    fn counters(
        &mut self,
        port: &Port,
        name: &str,
        at: Timestamp,
        look: &mut Look,
        signal: &impl Fn(HostWord, String) -> Signal,
    ) {
        for rule in &RULES {
            let Some(value) = port.counters.get(rule.counter).copied() else { continue };
            let (began, before) = *self.windows.entry(rule.counter).or_insert((at, value));
            let passed = at.duration_since(began);
            let grown = value.saturating_sub(before);
            // A look that comes later than the window is long allows for as many windows.
            let windows = (passed.as_secs_f64() / rule.within.as_secs_f64()).max(1.0);
            let too_fast = rule.grows_by as f64 * windows < grown as f64;
            if too_fast {
                let message = format!("{} of InfiniBand port {name} grew by {grown}", rule.counter);
                if !recently(self.troubles.get(rule.counter).copied(), at) {
                    let told = signal(HostWord::PortErrors, message);
                    look.signals.push(told.with("counter", rule.counter).with("errors", grown));
                }
                self.troubles.insert(rule.counter, at);
            }
            if too_fast || value < before || rule.within <= passed {
                self.windows.insert(rule.counter, (at, value));
            }
        }
        self.troubles.retain(|_, troubled| recently(Some(*troubled), at));
        if !self.troubles.is_empty() {
            let counters: Vec<&str> = self.troubles.keys().copied().collect();
            let message = format!("InfiniBand port {name} counts errors: {}", counters.join(", "));
            look.find(Word::Degraded, "InfinibandErrors", message);
        }
    }
}
