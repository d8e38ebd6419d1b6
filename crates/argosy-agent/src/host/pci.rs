//! NVIDIA's devices on the PCI bus, whether or not a driver knows them.

use super::read;
use argosy_core::pci::PciAddress;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciDevice {
    /// Where it is.
    pub address: PciAddress,
    /// What it is: `0x030200` for a GPU without a screen, `0x068000` for a switch.
    pub class: u32,
    /// Which product, by NVIDIA's number.
    pub device: Option<u32>,
    /// The driver that has it: `nvidia`; `None` if none has.
    pub driver: Option<String>,
    /// Whether it is awake; `None` if it does not say.
    pub awake: Option<bool>,
    /// The width of its link, now.
    pub width: Option<u32>,
    /// The width that it and the port above it can do.
    pub width_max: Option<u32>,
    /// Errors that its bus has counted; `None` if nobody counts.
    pub aer: Option<Aer>,
}

impl PciDevice {
    /// Whether it is a GPU: a display controller, with a screen or without.
    pub fn is_gpu(&self) -> bool {
        self.class >> 16 == 0x03
    }
}

/// Errors of the bus since the start, by how bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aer {
    /// Corrected by the bus.
    pub corrected: u64,
    /// Not corrected, and the link goes on.
    pub non_fatal: u64,
    /// Not corrected, and the link is lost.
    pub fatal: u64,
}

/// NVIDIA, to the bus.
const VENDOR: u64 = 0x10de;

/// The most devices that are told of: sixteen GPUs with their companions, and the switches.
const DEVICES_MAX: usize = 128;

/// The widest link that PCIe has. A device that is gone says 63.
const WIDTH_MAX: u64 = 32;

pub(super) fn nvidia(sys: &Path) -> Vec<PciDevice> {
    let devices = read::entries(&sys.join("bus/pci/devices")).into_iter();
    devices
        .filter(|path| read::number(&path.join("vendor")) == Some(VENDOR))
        .filter_map(|path| device(&path))
        .take(DEVICES_MAX)
        .collect()
}

fn device(path: &Path) -> Option<PciDevice> {
    let small = |name: &str| read::number(&path.join(name)).and_then(|n| u32::try_from(n).ok());
    let own = width(&path.join("max_link_width"));
    // In a slot that is narrower than the device, the slot is not a fault.
    let above = path.canonicalize().ok().and_then(|real| real.parent().map(Path::to_owned));
    let above = above.and_then(|above| width(&above.join("max_link_width")));
    Some(PciDevice {
        address: PciAddress::parse(&read::name(path))?,
        class: small("class")?,
        device: small("device"),
        driver: path.join("driver").canonicalize().ok().map(|driver| read::name(&driver)),
        awake: match read::word(&path.join("power/runtime_status")).as_deref() {
            Some("active") => Some(true),
            Some("suspended") => Some(false),
            Some(_) | None => None,
        },
        width: width(&path.join("current_link_width")),
        width_max: match (own, above) {
            (Some(own), Some(above)) => Some(own.min(above)),
            (own, above) => own.or(above),
        },
        aer: aer(path),
    })
}

fn width(path: &Path) -> Option<u32> {
    let width = read::number(path).filter(|width| (1..=WIDTH_MAX).contains(width))?;
    u32::try_from(width).ok()
}

fn aer(path: &Path) -> Option<Aer> {
    let total = |file: &str, name: &str| -> Option<u64> {
        let text = read::text(&path.join(file))?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    Some(Aer {
        corrected: total("aer_dev_correctable", "TOTAL_ERR_COR")?,
        non_fatal: total("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL")?,
        fatal: total("aer_dev_fatal", "TOTAL_ERR_FATAL")?,
    })
}
