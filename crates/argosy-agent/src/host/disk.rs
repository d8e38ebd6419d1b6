//! File systems on real disks.

use super::read;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Where it is mounted; the shortest place if there are several.
    pub mount: String,
    /// What is mounted: `/dev/nvme0n1p1`.
    pub device: String,
    /// Its kind: `ext4`.
    pub filesystem: String,
    /// All of it; `None` if it could not be asked.
    pub total_bytes: Option<u64>,
    /// What programs may still use.
    pub available_bytes: Option<u64>,
    /// How much of what programs may use is used, as `df` counts.
    pub used_percent: Option<f64>,
    /// How many of its files are used: a full table is a full disk.
    pub files_used_percent: Option<f64>,
    /// It can only be read, in every place where it is mounted.
    pub read_only: bool,
}

/// Kinds that live on a disk of this machine. Asking a network file system may take for ever, and the
/// others have no disk.
const REAL: [&str; 11] = [
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "reiserfs", "xfs", "zfs",
];

/// The most file systems that are asked. A machine with containers mounts the same few many times.
const DISKS_MAX: usize = 64;

pub(super) fn disks(proc: &Path) -> Vec<Disk> {
    let mounts = read::text(&proc.join("self/mounts")).unwrap_or_default();
    let mut disks: BTreeMap<String, Disk> = BTreeMap::new();
    for mut disk in mounts.lines().filter_map(parse) {
        // An overlay has no device: only the one that a container sees as its root counts.
        if disk.filesystem == "overlay" && disk.mount != "/" {
            continue;
        }
        let has_room = disks.len() < DISKS_MAX;
        match disks.get_mut(&disk.device) {
            Some(known) => {
                // One place to write to is enough: the others were mounted for reading on purpose.
                disk.read_only &= known.read_only;
                known.read_only = disk.read_only;
                if disk.mount.len() < known.mount.len() {
                    *known = disk;
                }
            }
            None if has_room => {
                disks.insert(disk.device.clone(), disk);
            }
            None => {}
        }
    }
    let mut disks: Vec<Disk> = disks.into_values().collect();
    disks.iter_mut().for_each(ask);
    disks.sort_by(|a, b| a.mount.cmp(&b.mount));
    disks
}

/// `/dev/sda1 / ext4 rw,relatime 0 0`.
fn parse(line: &str) -> Option<Disk> {
    let mut words = line.split(' ');
    let (device, mount) = (unescaped(words.next()?), unescaped(words.next()?));
    let filesystem = words.next().filter(|kind| REAL.contains(kind))?.to_owned();
    let read_only = words.next()?.split(',').any(|option| option == "ro");
    Some(Disk {
        mount,
        device,
        filesystem,
        total_bytes: None,
        available_bytes: None,
        used_percent: None,
        files_used_percent: None,
        read_only,
    })
}

/// Spaces and the like are written as `\040`.
fn unescaped(word: &str) -> String {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let digits = rest.strip_prefix(b"\\").and_then(|rest| rest.split_at_checked(3));
        let value = digits.and_then(|(digits, behind)| {
            let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
            let digits = str::from_utf8(digits).ok().filter(|_| is_octal)?;
            Some((u8::from_str_radix(digits, 8).ok()?, behind))
        });
        let (byte, behind) = value.unwrap_or((*byte, behind));
        plain.push(byte);
        rest = behind;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn ask(disk: &mut Disk) {
    let Ok(found) = rustix::fs::statvfs(disk.mount.as_str()) else { return };
    let bytes = |blocks: u64| blocks.checked_mul(found.f_frsize);
    disk.total_bytes = bytes(found.f_blocks);
    disk.available_bytes = bytes(found.f_bavail);
    // What is kept for root is neither used nor to be had.
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    disk.used_percent = percent(used, used.saturating_add(found.f_bavail));
    disk.files_used_percent = percent(found.f_files.saturating_sub(found.f_ffree), found.f_files);
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (0 < whole).then(|| part as f64 * 100.0 / whole as f64)
}

#[cfg(test)]
mod tests;
