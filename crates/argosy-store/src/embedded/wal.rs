//! Finds damage in SQLite's write-ahead log, which SQLite itself takes for its end.
//!
//! SQLite reads the log up to the first frame that does not match its checksum, and forgets the
//! rest: right for a write that was torn, but a bit that flipped in a frame long acknowledged would
//! silently take all later commits with it. The index beside the log (`-shm`) still says how far
//! it was good: it is written after the log was flushed, so it never says too much.

use super::fault::Fault;
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Call this before SQLite opens the files: it makes the index anew.
pub(super) fn check(database: &Path) -> Result<(), Fault> {
    let read = |suffix| std::fs::read(super::beside(database, suffix)).unwrap_or_default();
    let (log, index) = (read("-wal"), read("-shm"));
    let Some(known) = Known::read(&index) else { return Ok(()) };
    match frames(&log) {
        // The log was begun anew, and the index with it, but only the log reached the disk.
        Some((salt, _)) if salt != known.salt => Ok(()),
        Some((_, frames)) if known.frames <= frames => Ok(()),
        Some((_, frames)) => Err(Fault::Damaged(format!(
            "of the {} pages in its log (argosy.db-wal) only the first {frames} are good",
            known.frames
        ))),
        None => Err(Fault::Damaged("its log (argosy.db-wal) cannot be read".to_string())),
    }
}

/// What the index says of the log.
struct Known {
    salt: [u8; 8],
    frames: u32,
}

impl Known {
    /// `None` if the log held nothing, or if the index was not completely written.
    fn read(index: &[u8]) -> Option<Self> {
        let (header, rest) = index.split_first_chunk::<48>()?;
        let copy = rest.first_chunk::<48>()?;
        let native = |at: usize| Some(u32::from_ne_bytes(*header.get(at..)?.first_chunk()?));
        let sum = (native(40)?, native(44)?);
        let frames = native(16)?;
        let whole =
            header == copy && checksum((0, 0), header.get(..40)?, u32::from_ne_bytes) == sum;
        let salt = *header.get(32..)?.first_chunk()?;
        (whole && 0 < frames).then_some(Self { salt, frames })
    }
}

/// The log's salt, and how many frames from its beginning are good; `None` if it has no beginning.
fn frames(log: &[u8]) -> Option<([u8; 8], u32)> {
    let big = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let header = log.first_chunk::<HEADER>()?;
    let order = match big(header, 0)? {
        0x377f_0682 => u32::from_le_bytes,
        0x377f_0683 => u32::from_be_bytes,
        _ => return None,
    };
    let page = usize::try_from(big(header, 8)?).ok()?;
    let salt: [u8; 8] = *header.get(16..)?.first_chunk()?;
    let mut sum = checksum((0, 0), header.get(..24)?, order);
    if sum != (big(header, 24)?, big(header, 28)?) {
        return None;
    }
    let mut good = 0;
    for frame in log.get(HEADER..)?.chunks_exact(FRAME_HEADER + page) {
        let (head, content) = frame.split_at_checked(FRAME_HEADER)?;
        sum = checksum(checksum(sum, head.get(..8)?, order), content, order);
        let sound = head.get(8..16)? == salt && sum == (big(head, 16)?, big(head, 20)?);
        if !sound {
            break;
        }
        good += 1;
    }
    Some((salt, good))
}

/// SQLite's own: two sums that feed each other, over pairs of words.
fn checksum(from: (u32, u32), bytes: &[u8], word: fn([u8; 4]) -> u32) -> (u32, u32) {
    let (pairs, _) = bytes.as_chunks::<8>();
    pairs.iter().fold(from, |(first, second), &[a, b, c, d, e, f, g, h]| {
        let first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
        (first, second.wrapping_add(word([e, f, g, h])).wrapping_add(first))
    })
}
