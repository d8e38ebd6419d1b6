//! The directory of one machine: what was bought, whether it runs, and what it wrote.
//!
//! ```text
//! <dir>/<instance>/machine.json   what was bought; written before anything is started, and never changed
//!                  process.json   which process, at which boot; written after it was started
//!                  leaving        it is to go: nothing is started here again
//!                  gone.json      when it was gone for certain
//!                  lock           held by the process itself, as its standard input
//!                  agent.json, token, ca.pem, data/, console.log, console.log.1
//! ```
//!
//! What a newcomer gets wrong: the lock is not ours. We take it, and the process inherits it, so that it is
//! held for exactly as long as the process lives, whenever we are killed: there is no moment between a start
//! and its record at which a second one could be started.

use super::life::{self, Process};
use argosy_core::instance::InstanceId;
use argosy_core::machine::{Order, Purchase, Tags};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// The directory of one machine. Its methods block.
#[derive(Clone, Debug)]
pub(super) struct Room {
    path: PathBuf,
}

/// What was bought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Bought {
    pub(super) version: u32,
    pub(super) instance: InstanceId,
    pub(super) token: Uuid,
    pub(super) tags: Tags,
    pub(super) order: Order,
    pub(super) number: u32,
    pub(super) pool: String,
    pub(super) tenant: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) at: Timestamp,
}

/// The form of `machine.json`.
const VERSION: u32 = 1;

impl Bought {
    pub(super) fn new(purchase: &Purchase, now: Timestamp) -> Self {
        let Purchase { instance, token, tags, order, number, pool, tenant, labels } =
            purchase.clone();
        let at = now;
        Self { version: VERSION, instance, token, tags, order, number, pool, tenant, labels, at }
    }

    /// What it was made of.
    pub(super) fn purchase(&self) -> Purchase {
        let Self { instance, token, tags, order, number, pool, tenant, labels, .. } = self.clone();
        Purchase { instance, token, tags, order, number, pool, tenant, labels }
    }
}

/// Which process it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Runs {
    /// How often it was booted, from 1. Written before a start, without the process.
    boot: u32,
    process: Option<Process>,
}

/// When it was gone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Gone {
    at: Timestamp,
}

/// How a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Its process lives.
    Up,
    /// Its process lives, and was told to end.
    Leaving,
    /// Its process has ended.
    Down,
    /// It never had a process: it was only meant to.
    Never,
    /// It is over.
    Gone(Timestamp),
}

/// Everything a process is started with.
#[derive(Debug)]
pub(super) struct Start {
    /// What is held while it lives.
    pub(super) lock: File,
    pub(super) console: File,
    pub(super) also_console: File,
    pub(super) boot: u32,
}

/// How much a machine may write before its console begins anew; as much again is kept of what was before.
/// Looked at with each listing, every two minutes: an agent writes a few lines a minute.
const CONSOLE_LEN_MAX: u64 = 1024 * 1024;

/// How much of a console is shown: more than is kept of it in a record.
const CONSOLE_SHOWN_MAX: u64 = 64 * 1024;

impl Room {
    pub(super) fn new(dir: &Path, instance: &str) -> Self {
        Self { path: dir.join(instance) }
    }

    /// All rooms of a directory. Whole or not at all.
    pub(super) fn all(dir: &Path) -> io::Result<Vec<(Self, Bought)>> {
        let mut rooms = Vec::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name();
            // What is not named like an instance is somebody else's, or was never finished.
            let Some(name) = name.to_str().filter(|name| InstanceId::parse(name).is_ok()) else {
                continue;
            };
            let room = Self::new(dir, name);
            if let Some(bought) = room.bought()? {
                rooms.push((room, bought));
            }
        }
        Ok(rooms)
    }

    /// What was bought; `None` if there is no such room.
    pub(super) fn bought(&self) -> io::Result<Option<Bought>> {
        let bought: Option<Bought> = read(&self.path.join("machine.json"))?;
        match bought {
            Some(bought) if VERSION < bought.version => Err(io::Error::other(format!(
                "{} was written by a newer argosy",
                self.path.display()
            ))),
            bought => Ok(bought),
        }
    }

    /// Makes the room with what was bought in it: both or none.
    pub(super) fn make(&self, bought: &Bought) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        // A dot cannot begin an instance's id. Two that make the same room at once each have their own.
        let new = dir.join(format!(".{}.{}.new", bought.instance, std::process::id()));
        match fs::remove_dir_all(&new) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir(&new)?;
        write(&new.join("machine.json"), bought)?;
        fs::rename(&new, &self.path)?;
        sync(dir)
    }

    /// The path of a file of the room.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that its owner alone may read.
    pub(super) fn put(&self, name: &str, text: &str) -> io::Result<()> {
        replace(&self.file(name), text.as_bytes())
    }

    /// How the machine is.
    pub(super) fn sight(&self) -> io::Result<Sight> {
        if let Some(Gone { at }) = read(&self.file("gone.json"))? {
            return Ok(Sight::Gone(at));
        }
        let up = self.process()?.is_some() || self.is_locked()?;
        let runs: Option<Runs> = read(&self.file("process.json"))?;
        let ran = runs.is_some_and(|runs| runs.process.is_some());
        Ok(match (up, self.is_leaving()) {
            (true, false) => Sight::Up,
            (true, true) => Sight::Leaving,
            (false, _) if ran => Sight::Down,
            (false, _) => Sight::Never,
        })
    }

    /// Its process, if that lives.
    pub(super) fn process(&self) -> io::Result<Option<Process>> {
        let runs: Option<Runs> = read(&self.file("process.json"))?;
        let known = runs.and_then(|runs| runs.process).filter(Process::lives);
        if known.is_some() || !self.is_locked()? {
            return Ok(known);
        }
        // It was started, and whoever did so was killed before writing it down.
        Ok(life::with_word(&self.file("agent.json").display().to_string()))
    }

    /// Takes what a process is started with; `None` if one lives, or none may be started any more.
    pub(super) fn begin(&self) -> io::Result<Option<Start>> {
        let Some(lock) = self.lock()? else { return Ok(None) };
        // After the lock: whoever says that it leaves looks whether somebody has it afterwards.
        if self.is_leaving() {
            return Ok(None);
        }
        let runs: Option<Runs> = read(&self.file("process.json"))?;
        let boot = runs.map_or(1, |runs| runs.boot.saturating_add(1));
        write(&self.file("process.json"), &Runs { boot, process: None })?;
        // For appending: it is emptied while it is written to.
        let console = private().append(true).create(true).open(self.file("console.log"))?;
        let also_console = console.try_clone()?;
        Ok(Some(Start { lock, console, also_console, boot }))
    }

    /// Writes down which process was started.
    pub(super) fn began(&self, boot: u32, process: Process) -> io::Result<()> {
        write(&self.file("process.json"), &Runs { boot, process: Some(process) })
    }

    /// Says that nothing is started here any more.
    pub(super) fn leave(&self) -> io::Result<()> {
        private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.file("leaving"))?
            .sync_all()?;
        sync(&self.path)
    }

    /// Says that it is gone, if it is.
    pub(super) fn gone(&self, now: Timestamp) -> io::Result<bool> {
        if !self.is_leaving() {
            return Ok(false);
        }
        // Held while it is written: nobody is between the lock and a start.
        let Some(_lock) = self.lock()? else { return Ok(false) };
        if self.process()?.is_some() {
            return Ok(false);
        }
        if read::<Gone>(&self.file("gone.json"))?.is_none() {
            write(&self.file("gone.json"), &Gone { at: now })?;
        }
        // The credential is of no use to anybody now, and the data is the biggest part.
        _ = fs::remove_file(self.file("token"));
        _ = fs::remove_dir_all(self.file("data"));
        Ok(true)
    }

    /// Forgets the machine.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }

    /// The end of what it wrote.
    pub(super) fn console(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        for name in ["console.log.1", "console.log"] {
            match File::open(self.file(name)) {
                Ok(file) => bytes.extend(tail(file, CONSOLE_SHOWN_MAX)?),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause),
            }
        }
        let shown = usize::try_from(CONSOLE_SHOWN_MAX).unwrap_or(usize::MAX);
        let end = bytes.split_off(bytes.len().saturating_sub(shown));
        Ok(String::from_utf8_lossy(&end).into_owned())
    }

    /// Begins the console anew if it is long.
    pub(super) fn trim(&self) -> io::Result<()> {
        let path = self.file("console.log");
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(cause),
        };
        if file.metadata()?.len() <= CONSOLE_LEN_MAX {
            return Ok(());
        }
        // What is written between the two is lost, which is better than a full disk.
        self.put("console.log.1", &String::from_utf8_lossy(&tail(&file, CONSOLE_LEN_MAX)?))?;
        file.set_len(0)
    }

    fn is_leaving(&self) -> bool {
        self.file("leaving").exists()
    }

    /// Whether a process holds the lock, or somebody is about to start one.
    fn is_locked(&self) -> io::Result<bool> {
        match File::open(self.file("lock")) {
            Ok(lock) => match lock.try_lock_shared() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(cause)) => Err(cause),
            },
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(cause),
        }
    }

    /// Takes the lock, unless a process lives that has it.
    fn lock(&self) -> io::Result<Option<File>> {
        let path = self.file("lock");
        let lock = private().read(true).write(true).create(true).truncate(false).open(path)?;
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(lock)),
                Err(TryLockError::Error(cause)) => return Err(cause),
                Err(TryLockError::WouldBlock) if self.process()?.is_some() => return Ok(None),
                // Somebody only looks whether it is taken.
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_WAIT),
            }
        }
        Ok(None)
    }
}

/// How often a lock is asked for that no living process seems to have. A look takes microseconds.
const LOCK_TRIES: u32 = 20;
/// How long is waited between.
const LOCK_WAIT: Duration = Duration::from_millis(5);

fn tail(mut file: impl Read + Seek, len_max: u64) -> io::Result<Vec<u8>> {
    let len = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(len.saturating_sub(len_max)))?;
    let mut bytes = Vec::new();
    file.take(len_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// What a file holds; `None` if there is none.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(cause) => {
            let none = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
            return if none.contains(&cause.kind()) { Ok(None) } else { Err(cause) };
        }
    };
    let value = serde_json::from_slice(&text);
    value.map(Some).map_err(|cause| io::Error::other(format!("{}: {cause}", path.display())))
}

fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    replace(path, &serde_json::to_vec_pretty(value)?)
}

/// Whole or not at all, and on the disk.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = private().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync(path.parent().unwrap_or(Path::new(".")))
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests;
