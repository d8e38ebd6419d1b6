//! GPUs as the bus shows them, with or without a driver: what tells a machine that has none from one whose
//! driver is gone.

use std::path::Path;

/// NVIDIA's number on the PCI bus.
const NVIDIA: &str = "0x10de";

/// Display controllers: of all kinds, a GPU for computing is `0x0302`.
const DISPLAY: &str = "0x03";

/// How many devices are looked at; more is not a bus, and a directory that never ends must not hold us.
const DEVICES_MAX: usize = 4_096;

/// How many GPUs of NVIDIA the bus shows. `sys` is `/sys`, but for tests. What cannot be read is not there.
pub fn nvidia_gpus(sys: &Path) -> u32 {
    let Ok(devices) = std::fs::read_dir(sys.join("bus/pci/devices")) else { return 0 };
    let is_gpu = |device: &Path| {
        let word = |name| std::fs::read_to_string(device.join(name)).unwrap_or_default();
        word("vendor").trim() == NVIDIA && word("class").starts_with(DISPLAY)
    };
    let gpus = devices.take(DEVICES_MAX).flatten().filter(|device| is_gpu(&device.path()));
    u32::try_from(gpus.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
