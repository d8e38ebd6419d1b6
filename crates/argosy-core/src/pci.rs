//! The place of a device on the PCI bus, which is how the kernel names a GPU.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Domain, bus, device and function: `0000:41:00.0`.
///
/// The kernel, the driver and NVML each write it differently (without the function, with eight digits of
/// domain, behind `PCI:`); two that are equal here are the same device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl PciAddress {
    /// The most devices on a bus, and functions of a device, that PCI can address.
    const DEVICE_MAX: u8 = 0x1f;
    const FUNCTION_MAX: u8 = 0x7;

    /// Reads `PCI:0000:41:00`, `0000:41:00.0` or `00000000:41:00.0`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("PCI:").unwrap_or(text);
        let (text, function) = text.split_once('.').unwrap_or((text, "0"));
        let (text, device) = text.rsplit_once(':')?;
        let (domain, bus) = text.rsplit_once(':')?;
        Some(Self {
            domain: hex(domain, 8)?,
            bus: byte(bus, u8::MAX)?,
            device: byte(device, Self::DEVICE_MAX)?,
            function: byte(function, Self::FUNCTION_MAX)?,
        })
    }
}

fn hex(text: &str, digits_max: usize) -> Option<u32> {
    // `from_str_radix` would take a sign, too.
    let is_hex = text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten()
}

fn byte(text: &str, max: u8) -> Option<u8> {
    u8::try_from(hex(text, 2)?).ok().filter(|byte| *byte <= max)
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for PciAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a PCI address like 0000:41:00.0"))
    }
}

#[cfg(test)]
mod tests;
