//! From where to go on: what was read last, by source.

use super::Mark;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file of positions that is believed. A real one has a few hundred bytes.
const FILE_LEN_MAX: u64 = 64 * 1024;

/// What was read last, by source. Without one, a source begins where `Options::begin` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Of `/dev/kmsg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kmsg: Option<KmsgPosition>,
    /// The journal's own word for a place in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_cursor: Option<String>,
    /// Of files, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<PathBuf, FilePosition>,
}

/// A record of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmsgPosition {
    /// The boot it belongs to: numbers begin again with each.
    pub boot_id: String,
    /// Its number.
    pub sequence: u64,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePosition {
    /// The file's device and inode: its name may be another's by now.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The byte behind the last line that was read.
    pub offset: u64,
}

impl Position {
    /// Reads a position that was saved; `Ok(None)` if none was.
    ///
    /// A file that cannot be understood is an error of kind `InvalidData`: begin anew, and say so.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(FILE_LEN_MAX).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from)
    }

    /// Writes it: the old one or the new one is there, never half of one.
    ///
    /// It is not forced to the disk. Losing it with the power costs nothing: the boot is another then.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("new");
        std::fs::write(&draft, serde_json::to_vec(self)?)?;
        std::fs::rename(&draft, path)
    }

    pub(super) fn advance(&mut self, mark: Mark) {
        match mark {
            Mark::Kmsg(position) => self.kmsg = Some(position),
            Mark::Journald(cursor) => self.journal_cursor = Some(cursor),
            Mark::File(path, position) => {
                self.files.insert(path, position);
            }
        }
    }
}
