//! InfiniBand and RoCE ports.

use super::read;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// The device: `mlx5_0`.
    pub device: String,
    /// Its number on the device.
    pub port: u32,
    /// It is a part of another device, handed to a virtual machine or a container.
    #[serde(default)]
    pub is_virtual: bool,
    /// Whether work can flow (`ACTIVE`); `None` if it does not say.
    pub active: Option<bool>,
    /// The cable's own state: `LinkUp`, `Polling`, `Disabled`.
    pub physical_state: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// In Gbit/s.
    pub rate_gbps: Option<f64>,
    /// What it counts, by the kernel's names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

/// The most ports that are read.
const PORTS_MAX: usize = 64;

/// The counters that are read, in `counters` and in `hw_counters`. A file more is a question more to the
/// device's firmware, each time.
const COUNTERS: [&str; 7] = [
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_errors",
    "port_xmit_discards",
    "symbol_error",
];
const HW_COUNTERS: [&str; 3] = ["local_ack_timeout_err", "rnr_nak_retry_err", "roce_slow_restart"];

pub(super) fn ports(sys: &Path) -> Vec<Port> {
    let devices = read::entries(&sys.join("class/infiniband")).into_iter();
    let ports = devices.flat_map(|device| {
        let numbers = read::entries(&device.join("ports")).into_iter();
        let ports: Vec<Port> =
            numbers.take(PORTS_MAX).filter_map(|path| port(&device, &path)).collect();
        ports
    });
    ports.take(PORTS_MAX).collect()
}

fn port(device: &Path, path: &Path) -> Option<Port> {
    let mut counters = BTreeMap::new();
    let is_virtual = device.join("device/physfn").exists();
    // A virtual function may not be asked: the question itself becomes an error in the kernel's log.
    if !is_virtual {
        let mut count = |directory: &str, names: &[&str]| {
            for name in names {
                let number = read::number(&path.join(directory).join(name));
                counters.extend(number.map(|number| ((*name).to_owned(), number)));
            }
        };
        count("counters", &COUNTERS);
        count("hw_counters", &HW_COUNTERS);
    }
    // `4: ACTIVE`, `5: LinkUp`.
    let state = |name: &str| {
        let word = read::word(&path.join(name))?;
        word.split_once(": ").map(|(_, state)| state.to_owned())
    };
    Some(Port {
        device: read::name(device),
        port: read::name(path).parse().ok()?,
        is_virtual,
        active: state("state").map(|state| state == "ACTIVE"),
        physical_state: state("phys_state"),
        link_layer: read::word(&path.join("link_layer")),
        rate_gbps: read::word(&path.join("rate")).and_then(|rate| gbps(&rate)),
        counters,
    })
}

/// `400 Gb/sec (4X NDR)`.
fn gbps(rate: &str) -> Option<f64> {
    let rate: f64 = rate.split_whitespace().next()?.parse().ok()?;
    (rate.is_finite() && 0.0 < rate).then_some(rate)
}
