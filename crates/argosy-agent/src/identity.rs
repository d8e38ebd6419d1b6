//! Who this machine is: its ids, its names, and what its cloud says about it.

pub mod cloud;

use crate::host::{Roots, read};
use argosy_core::node::NodeId;
use serde::Serialize;
use std::net::{IpAddr, UdpSocket};

/// Who this machine is. What it does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// What the node is called unless somebody says otherwise: the host's name, if it can be one.
    pub node_id: Option<String>,
    /// Changes with each start of the machine.
    pub boot_id: String,
    /// Never changes while the machine is the same one.
    pub machine_id: String,
    /// The host's name.
    pub hostname: String,
    /// The kernel's version.
    pub kernel_version: String,
    /// The address by which the machine reaches others.
    pub internal_ip: Option<IpAddr>,
    /// Of this program.
    pub agent_version: String,
}

impl Identity {
    /// Reads what this machine says about itself. Quick: no name is resolved, no packet is sent.
    pub fn read(roots: &Roots) -> Self {
        let system = rustix::system::uname();
        let kernel = |name: &str, otherwise: &std::ffi::CStr| {
            read::word(&roots.proc.join("sys/kernel").join(name))
                .unwrap_or_else(|| otherwise.to_string_lossy().into_owned())
        };
        let hostname = kernel("hostname", system.nodename());
        Self {
            node_id: NodeId::parse(&hostname).ok().map(|_| hostname.clone()),
            boot_id: kernel("random/boot_id", c""),
            machine_id: machine_id(roots),
            hostname,
            kernel_version: kernel("osrelease", system.release()),
            internal_ip: internal_ip(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What the firmware calls the machine; or else what the operating system does, which is lost with the
/// disk and copied with an image.
fn machine_id(roots: &Roots) -> String {
    let firmware = read::word(&roots.sys.join("class/dmi/id/product_uuid")).filter(|id| is_own(id));
    let id = firmware.or_else(|| read::word(&roots.etc.join("machine-id")).filter(|id| is_own(id)));
    id.map(|id| id.to_ascii_lowercase()).unwrap_or_default()
}

/// Whether an id was given to this machine: some boards have the same one by the thousand.
fn is_own(id: &str) -> bool {
    const OF_A_VENDOR: [&str; 2] =
        ["03000200-0400-0500-0006-000700080009", "12345678-1234-5678-90ab-cddeefaabbcc"];
    const LEN: std::ops::RangeInclusive<usize> = 32..=64;
    let mut digits = id.bytes().filter(|byte| *byte != b'-');
    let first = digits.next();
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    LEN.contains(&id.len())
        && is_hex
        && !OF_A_VENDOR.contains(&id.to_ascii_lowercase().as_str())
        && digits.any(|byte| Some(byte) != first)
}

/// The address from which packets to the outside would be sent; none is.
fn internal_ip() -> Option<IpAddr> {
    // Addresses that are reserved for examples: there is a way to them, and nobody there.
    let ways = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    ways.iter().find_map(|(own, other)| {
        let socket = UdpSocket::bind(own).ok()?;
        socket.connect(other).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
    })
}

#[cfg(test)]
mod tests;
