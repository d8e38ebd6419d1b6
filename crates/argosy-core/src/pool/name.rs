//! The name of a node pool as its nodes carry it.

use crate::instance::InstanceId;
use crate::name::Name;
use sha2::{Digest, Sha256};

/// The cluster whose pools go by their own name: what Navarch, which has no clusters, calls a pool.
const PLAIN_CLUSTER: &str = "default";

/// How many hexadecimal digits tell long names apart that begin alike.
const DIGITS: usize = 8;

/// What the nodes of a pool say they belong to: `workers` for a pool of the cluster `default`, and
/// `<cluster>.<pool>` for any other; cut, with a hash of the whole, where that is longer than a label may be.
pub fn pool_name(cluster: &Name, pool: &Name) -> String {
    if cluster.as_str() == PLAIN_CLUSTER {
        return pool.as_str().to_owned();
    }
    let whole = format!("{cluster}.{pool}");
    if whole.len() <= InstanceId::LEN_MAX {
        return whole;
    }
    let hash: String = Sha256::digest(&whole).iter().map(|byte| format!("{byte:02x}")).collect();
    let (kept, digits) = (InstanceId::LEN_MAX - DIGITS - 1, hash.get(..DIGITS).unwrap_or_default());
    let kept: String = whole.chars().take(kept).collect();
    format!("{}-{digits}", kept.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests;
