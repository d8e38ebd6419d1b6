//! Network links of real devices.

use super::read;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A network link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its name: `eth0`.
    pub name: String,
    /// Whether it carries: `up`; `None` if the device does not say.
    pub up: Option<bool>,
    /// How fast, in Mbit/s.
    pub speed_mbps: Option<u64>,
    /// How often it came and went since the start.
    pub carrier_changes: Option<u64>,
    /// Bytes received.
    pub received_bytes: Option<u64>,
    /// Bytes sent.
    pub sent_bytes: Option<u64>,
    /// Packets that came broken.
    pub receive_errors: Option<u64>,
    /// Packets that could not be sent.
    pub send_errors: Option<u64>,
}

/// The most links that are read. Real devices, so a few dozen with all their virtual functions.
const LINKS_MAX: usize = 128;

pub(super) fn links(sys: &Path) -> Vec<Link> {
    let links = read::entries(&sys.join("class/net")).into_iter();
    // Bridges, tunnels and containers' ends have no device behind them.
    let real = links.filter(|path| path.join("device").exists());
    real.take(LINKS_MAX).map(|path| link(&path)).collect()
}

fn link(path: &Path) -> Link {
    let count = |name: &str| read::number(&path.join("statistics").join(name));
    let state = read::word(&path.join("operstate"));
    Link {
        name: read::name(path),
        up: match state.as_deref() {
            Some("up") => Some(true),
            Some("down" | "lowerlayerdown" | "notpresent" | "dormant") => Some(false),
            Some(_) | None => None,
        },
        // A link that is down says -1.
        speed_mbps: read::number(&path.join("speed")),
        carrier_changes: read::number(&path.join("carrier_changes")),
        received_bytes: count("rx_bytes"),
        sent_bytes: count("tx_bytes"),
        receive_errors: count("rx_errors"),
        send_errors: count("tx_errors"),
    }
}
