//! Records in an append-only file: `len u32 | crc32 u32 | kind u8 | JSON`, little-endian.
//!
//! What a newcomer gets wrong: after a power cut the end of the file is anybody's guess. Reading stops at
//! the first record that is not whole, and everything after it is cut off before the next one is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The longest record. A result of a diagnostic has at most 64 KiB; what says it is longer is damage.
pub const RECORD_LEN_MAX: usize = 1024 * 1024;

const HEAD_LEN: usize = 8;

/// Where the bytes are: a file, or in tests something that fails.
pub trait Medium: Send {
    /// Everything, from the start.
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Writes at the end. After an error some of it may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts to a length.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Replaces everything at once, or nothing.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when what was written survives a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// A record, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What kind; the meaning is the owner's.
    pub kind: u8,
    /// The JSON text.
    pub json: Vec<u8>,
}

/// A file of records.
pub struct Records {
    medium: Box<dyn Medium>,
    /// Up to here everything is whole.
    len: u64,
    /// Something may be behind `len` that could not be cut off.
    dirty: bool,
}

/// What was found when a file was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The whole records, in order.
    pub records: Vec<Record>,
    /// How many bytes behind them were cut off; 0 if the file was whole.
    pub cut_bytes: u64,
}

impl Records {
    /// Reads what is there and cuts off what is not whole.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(mut medium: Box<dyn Medium>) -> io::Result<(Self, Opened)> {
        let bytes = medium.read()?;
        let (records, len) = decode(&bytes);
        let cut_bytes = (bytes.len() - len) as u64;
        let dirty = 0 < cut_bytes && medium.cut(len as u64).is_err();
        Ok((Self { medium, len: len as u64, dirty }, Opened { records, cut_bytes }))
    }

    /// How long the file is, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes records at the end: all of them, or none.
    ///
    /// # Errors
    /// If there is no room, for example; the next one may succeed again.
    pub fn append(&mut self, records: &[Record], sync: bool) -> io::Result<()> {
        if self.dirty {
            self.medium.cut(self.len)?;
            self.dirty = false;
        }
        let bytes = encode(records)?;
        let written = self.medium.append(&bytes).and_then(|()| match sync {
            true => self.medium.sync(),
            false => Ok(()),
        });
        match written {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.dirty = self.medium.cut(self.len).is_err();
                Err(error)
            }
        }
    }

    /// Writes the file anew with these records only.
    ///
    /// # Errors
    /// As `append`; the old records are still there then.
    pub fn replace(&mut self, records: &[Record]) -> io::Result<()> {
        let bytes = encode(records)?;
        self.medium.replace(&bytes)?;
        self.len = bytes.len() as u64;
        self.dirty = false;
        Ok(())
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<Record>> {
        let bytes = self.medium.read()?;
        let whole = usize::try_from(self.len).unwrap_or(usize::MAX).min(bytes.len());
        Ok(decode(bytes.get(..whole).unwrap_or_default()).0)
    }
}

fn encode(records: &[Record]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for Record { kind, json } in records {
        if RECORD_LEN_MAX < json.len() {
            let what = format!("a record of {} bytes; at most {RECORD_LEN_MAX}", json.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let len = u32::try_from(json.len()).unwrap_or(u32::MAX);
        bytes.extend(len.to_le_bytes());
        bytes.extend(checksum(len, *kind, json).to_le_bytes());
        bytes.push(*kind);
        bytes.extend(json);
    }
    Ok(bytes)
}

/// The whole records from the start, and how many bytes they take.
fn decode(bytes: &[u8]) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let mut at = 0;
    while let Some(record) = decode_one(bytes.get(at..).unwrap_or_default()) {
        at += HEAD_LEN + 1 + record.json.len();
        records.push(record);
    }
    (records, at)
}

fn decode_one(bytes: &[u8]) -> Option<Record> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first()?;
    let len = u32::from_le_bytes(*len);
    let json = rest.get(..usize::try_from(len).ok().filter(|len| *len <= RECORD_LEN_MAX)?)?;
    let whole = checksum(len, *kind, json) == u32::from_le_bytes(*crc);
    whole.then(|| Record { kind: *kind, json: json.to_vec() })
}

/// Over the length, too: zeros, which file systems leave behind, are no empty record then.
fn checksum(len: u32, kind: u8, json: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&len.to_le_bytes());
    hasher.update(&[kind]);
    hasher.update(json);
    hasher.finalize()
}

/// A file on disk.
pub struct Disk {
    path: PathBuf,
    file: File,
}

impl Disk {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// What the operating system said.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { path: path.to_owned(), file })
    }
}

impl Medium for Disk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        replace_file(&self.path, bytes)?;
        self.file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// A file that cannot be written now: on a file system that is read-only, for example, which is when there is
/// most to say. Every write fails until it can be opened.
pub struct Unwritable {
    path: PathBuf,
    /// What could be read of it; `None` if nothing could, and then it is not written over either.
    bytes: Option<Vec<u8>>,
    error: String,
    /// The file, since it can be written.
    disk: Option<Disk>,
}

impl Unwritable {
    /// A file that could not be opened for this reason.
    pub fn new(path: &Path, error: &io::Error) -> Self {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => Some(bytes),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Some(Vec::new()),
            Err(_) => None,
        };
        Self { path: path.to_owned(), bytes, error: error.to_string(), disk: None }
    }

    fn disk(&mut self) -> io::Result<&mut Disk> {
        if self.bytes.is_none() {
            // Nobody knows what is in it.
            return Err(io::Error::other(self.error.clone()));
        }
        let disk = match self.disk.take() {
            Some(disk) => disk,
            None => Disk::open(&self.path)?,
        };
        Ok(self.disk.insert(disk))
    }
}

impl Medium for Unwritable {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        match &mut self.disk {
            Some(disk) => disk.read(),
            None => Ok(self.bytes.clone().unwrap_or_default()),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk()?.append(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.disk()?.cut(len)
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk()?.replace(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk()?.sync()
    }
}

/// Writes a file so that whoever reads it finds the old text or the new one, even after a power cut.
///
/// # Errors
/// What the operating system said; the old file is still there then.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&beside, path)) {
        // Half a file would only take up room that is missing.
        _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    // Without this the new name may be gone after a power cut, though its bytes are not.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// How long a small file may take to be read or written before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does things with files beside the loop that must not wait for them, one at a time: a disk that hangs takes
/// one thread, and whoever comes next hears of it.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    free: Arc<Semaphore>,
}

impl Default for Aside {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(1)) }
    }
}

impl Aside {
    /// Whether the last that was begun has ended.
    pub(crate) fn is_free(&self) -> bool {
        0 < self.free.available_permits()
    }

    /// Does it, or gives it up. What was given up may still be done later, if the disk wakes.
    ///
    /// # Errors
    /// `TimedOut` if the disk does not answer.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let working = async {
            let permit = self.free.clone().acquire_owned().await.map_err(io::Error::other)?;
            let working = tokio::task::spawn_blocking(move || {
                let done = work();
                drop(permit);
                done
            });
            working.await.map_err(io::Error::other)?
        };
        tokio::time::timeout(PATIENCE, working).await.unwrap_or_else(|_| {
            let what = format!("the disk did not answer for {} s", PATIENCE.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
