//! What the tests ask NVML: which GPU is which, who uses it, and how it is under load. Only in the child.

use crate::diagnose::Point;
use crate::gpu::nvml::{Driver, Unread};
use std::path::Path;

/// NVML, loaded and started.
pub(super) struct Sensor(Driver);

/// What NVML says about a GPU before it is tested.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// Its number on this machine.
    pub(super) index: u32,
    /// Its name for life.
    pub(super) uuid: String,
    /// The product.
    pub(super) name: String,
    /// Whether it is cut into instances.
    pub(super) mig: bool,
    /// A program that uses it, if any does.
    pub(super) user: Option<(u32, String)>,
    /// What the slot and the GPU can do together.
    pub(super) pcie_generation_max: Option<u32>,
    /// What the slot and the GPU can do together.
    pub(super) pcie_width_max: Option<u32>,
    /// Degrees at which it slows down.
    pub(super) slowdown_celsius: Option<u32>,
    /// The fastest its multiprocessors may be clocked.
    pub(super) sm_clock_max_mhz: Option<u32>,
}

impl Sensor {
    /// Loads NVML; the path is for odd installs.
    pub(super) fn open(library: Option<&Path>) -> Result<Self, String> {
        Driver::load(library).map(Self).map_err(|error| error.to_string())
    }

    /// Every GPU that answers, by index; and a sentence for each that does not.
    pub(super) fn facts(&self) -> Result<(Vec<Facts>, Vec<String>), String> {
        let count = self.0.count().map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        let mut mute = Vec::new();
        for index in 0..count {
            match self.facts_of(index) {
                Ok(facts) => found.push(facts),
                Err(Unread::Gpu(word)) => mute.push(format!("GPU {index} cannot be read: {word}")),
                Err(Unread::Driver(error)) => return Err(error.to_string()),
            }
        }
        Ok((found, mute))
    }

    fn facts_of(&self, index: u32) -> Result<Facts, Unread> {
        let identity = self.0.identity(index)?;
        let reading = self.0.reading(index)?;
        let own = std::process::id();
        let others = reading.processes.unwrap_or_default().into_iter();
        Ok(Facts {
            index,
            uuid: identity.uuid,
            name: identity.name,
            mig: identity.mig.is_some_and(|mig| mig.enabled),
            user: others
                .filter(|process| process.pid != own)
                .map(|process| (process.pid, process.name))
                .next(),
            pcie_generation_max: identity.pcie_generation_max,
            pcie_width_max: identity.pcie_width_max,
            slowdown_celsius: identity.slowdown_celsius,
            sm_clock_max_mhz: self.0.sm_clock_max_mhz(index),
        })
    }

    /// The generation and width of the link, now.
    pub(super) fn link(&self, index: u32) -> (Option<u32>, Option<u32>) {
        self.0
            .reading(index)
            .map_or((None, None), |reading| (reading.pcie_generation, reading.pcie_width))
    }

    /// How a GPU is, now; only the time, if it cannot be read.
    pub(super) fn point(&self, index: u32, seconds: f64) -> Point {
        let reading = self.0.reading(index).unwrap_or_default();
        Point {
            seconds: super::rounded(seconds),
            temperature_celsius: reading.temperature_celsius,
            power_watts: reading.power_watts,
            sm_clock_mhz: reading.sm_clock_mhz,
            throttle_reasons: reading.throttle_reasons,
        }
    }
}
