//! Which addresses a webhook may reach: the open Internet, and what the operator allows.
//!
//! A name is looked up once, every address it gave is judged, and the connection goes to one of those:
//! there is no second lookup that could answer differently.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// What may be reached although it is not on the open Internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Addresses: `127.0.0.0/8`, `::1`.
    Net {
        /// Any address of the network.
        address: IpAddr,
        /// How many of its leading bits count.
        prefix: u8,
    },
    /// A name, wherever it leads: `hooks.internal`. Lower case, without the final dot.
    Host(String),
}

/// An `allow` entry that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address, a network like 10.0.0.0/8, nor a host name")]
pub struct AllowError(String);

/// An address that must not be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} leads to {address}, which is not a public address; allow it in the webhook settings \
     if it is meant"
)]
pub(super) struct Forbidden {
    host: String,
    address: IpAddr,
}

#[derive(Clone, Debug)]
pub(super) struct Guard {
    allow: Arc<[Allow]>,
}

impl Guard {
    pub(super) fn new(allow: Vec<Allow>) -> Self {
        Self { allow: allow.into() }
    }

    /// Judges an address that stands in a URL; names are judged when they are looked up.
    pub(super) fn check_literal(&self, host: &str) -> Result<(), Forbidden> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match bare.parse() {
            Ok(address) => self.check(host, address),
            Err(_) => Ok(()),
        }
    }

    /// Judges one address that `host` leads to.
    pub(super) fn check(&self, host: &str, address: IpAddr) -> Result<(), Forbidden> {
        let allowed = public(address) || self.allow.iter().any(|allow| allow.covers(host, address));
        if allowed { Ok(()) } else { Err(Forbidden { host: host.to_owned(), address }) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            // One forbidden address forbids the name: a name that leads both inside and outside is
            // either a mistake or an attempt.
            for address in &found {
                guard.check(host, address.ip())?;
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

impl Allow {
    fn covers(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Allow::Host(name) => host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(name),
            Allow::Net { address: net, prefix } => match (*net, address) {
                (IpAddr::V4(net), IpAddr::V4(address)) => within(
                    u128::from(net.to_bits()) << 96,
                    u128::from(address.to_bits()) << 96,
                    *prefix,
                ),
                (IpAddr::V6(net), IpAddr::V6(address)) => {
                    within(net.to_bits(), address.to_bits(), *prefix)
                }
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
            },
        }
    }
}

impl FromStr for Allow {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let (head, prefix) = match text.split_once('/') {
            Some((head, prefix)) => (head, Some(prefix)),
            None => (text, None),
        };
        let error = || AllowError(text.chars().take(80).collect());
        if let Ok(address) = head.parse::<IpAddr>() {
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let prefix = match prefix {
                None => longest,
                Some(digits) => digits.parse().map_err(|_| error())?,
            };
            let net = (prefix <= longest).then_some(Allow::Net { address, prefix });
            return net.ok_or_else(error);
        }
        let name = head.strip_suffix('.').unwrap_or(head).to_ascii_lowercase();
        let host = prefix.is_none()
            && (1..=253).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
        host.then_some(Allow::Host(name)).ok_or_else(error)
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allow::Net { address, prefix } => write!(f, "{address}/{prefix}"),
            Allow::Host(name) => f.write_str(name),
        }
    }
}

/// Whether an address is on the open Internet.
pub(super) fn public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let bits = u128::from(address.to_bits()) << 96;
            !RESERVED_V4
                .iter()
                .any(|(net, prefix)| within(u128::from(net.to_bits()) << 96, bits, *prefix))
        }
        // Only 2000::/3 is given out at all. What embeds an IPv4 address (`::ffff:0:0/96`,
        // `64:ff9b::/96`) lies outside of it, and the exceptions within are listed.
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0).to_bits(), bits, 3)
                && !RESERVED_V6.iter().any(|(net, prefix)| within(net.to_bits(), bits, *prefix))
        }
    }
}

/// What IANA keeps for special purposes in IPv4.
const RESERVED_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Exceptions inside 2000::/3: protocol assignments with Teredo, documentation, 6to4.
const RESERVED_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether two addresses agree in their first `prefix` bits.
fn within(net: u128, address: u128, prefix: u8) -> bool {
    (net ^ address).checked_shr(128 - u32::from(prefix)).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
