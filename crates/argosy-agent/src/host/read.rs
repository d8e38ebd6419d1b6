//! Reading small files of the kernel: never more than a limit, whatever they hold.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most that is read of one file.
///
/// A real `/proc/stat` of a machine with 512 processors has about 60 KiB; a list of mounts on a machine
/// with hundreds of containers is the largest. What is behind the limit is not seen.
pub(crate) const FILE_LEN_MAX: u64 = 1024 * 1024;

/// The most entries of a directory that are looked at. `/proc` is the largest: one for each process.
pub(crate) const ENTRIES_MAX: usize = 32 * 1024;

/// The file's text; `None` if it cannot be read. What is not UTF-8 is replaced.
pub(crate) fn text(path: &Path) -> Option<String> {
    limited(path, FILE_LEN_MAX)
}

/// The one word or number in a file of `/sys`.
pub(crate) fn word(path: &Path) -> Option<String> {
    const WORD_LEN_MAX: u64 = 256;
    let text = limited(path, WORD_LEN_MAX)?;
    let word = text.trim().trim_matches('\0');
    (!word.is_empty()).then(|| word.to_owned())
}

/// The one line in a file of `/proc`.
pub(crate) fn line(path: &Path) -> Option<String> {
    const LINE_LEN_MAX: u64 = 4096;
    limited(path, LINE_LEN_MAX)
}

/// The number in a file of `/sys`, decimal or with `0x`.
pub(crate) fn number(path: &Path) -> Option<u64> {
    let word = word(path)?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// What is in a directory, sorted; empty if it cannot be read.
pub(crate) fn entries(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.take(ENTRIES_MAX).filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The last part of a path as text.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn limited(path: &Path, len_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(len_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
