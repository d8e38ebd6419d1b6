//! A cloud that exists only here: regions, machine types, quotas, zones, permissions, latencies,
//! and every way to fail that the journeys name.
//!
//! What a newcomer gets wrong: most failures are not injected. They follow from the state of the
//! world (no zone, no quota, no permission), and end when somebody mends it through the `console`.

pub mod console;
mod fault;
mod fleet;
mod host;
mod inventory;
mod latency;
mod machine;
mod named;
mod permission;
mod quota;
mod tariff;
mod upgrade;
mod want;
mod words;
mod world;

use crate::simulated::world::{Step, World};
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Refusal};
use argosy_core::catalog::Catalog;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fmt, fs, io};
use tokio::sync::{OwnedMutexGuard, watch};
use tracing::error;

pub use fault::{Fault, FaultKind, FaultParams, NewFault};
pub use fleet::{Leaving, Made};
pub use host::{Booted, Boots};
pub use inventory::{Item, ItemKind, Place, Shape};
pub use latency::{Latencies, Latency};
pub use named::Named;
pub use quota::{Metric, Quota};

/// The simulated cloud. Clones are the same cloud.
///
/// Guarantees: however calls overlap, repeat or are dropped, a resource never has more than what was
/// last asked for; what a finished call made or removed is in the file before the call returns, where
/// it survives the end of the process.
#[derive(Clone, Debug)]
pub struct SimulatedCloud {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    catalog: Catalog,
    clock: Clock,
    world: Mutex<World>,
    /// Wakes operations that wait, when somebody changed the world under them.
    mended: watch::Sender<()>,
    /// Wakes whoever runs the machines, when one may have changed.
    stirred: watch::Sender<()>,
    /// Whoever runs the machines.
    hosts: Hosts,
    file: Option<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// The lock is held while writing, so that those who come meanwhile share the next write.
    appender: Arc<tokio::sync::Mutex<Option<Appender>>>,
}

/// Adds to a file that begins with the whole world.
#[derive(Debug)]
struct Appender {
    file: fs::File,
    /// How many bytes may be added before everything is written anew: as many again as there were,
    /// so that no byte is written more than a few times.
    room: usize,
}

/// Whoever runs the machines, once somebody does.
#[derive(Default)]
struct Hosts(OnceLock<Arc<dyn Boots>>);

impl std::ops::Deref for Hosts {
    type Target = OnceLock<Arc<dyn Boots>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").finish_non_exhaustive()
    }
}

/// How much may at least be added to the file before it is written anew.
const ROOM_MIN: usize = 1024 * 1024;

/// Why a simulated cloud could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be read.
    #[error("could not read the simulated cloud from {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error(
        "{path} is not a simulated cloud this version can read; move it away to start with a new one"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The file was written by a newer program.
    #[error("{path} has format {found}, but this version reads up to {known}; use a newer argosy")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
}

impl SimulatedCloud {
    /// Opens the cloud that is kept in a file, or makes a new one if there is none.
    ///
    /// `latencies` replaces what the file says.
    ///
    /// # Errors
    /// If the file is there but cannot be used.
    pub fn open(
        path: &Path,
        catalog: Catalog,
        clock: Clock,
        latencies: Option<Latencies>,
    ) -> Result<Self, OpenError> {
        let mut world = read(path)?;
        world.latencies = latencies.unwrap_or(world.latencies);
        let file = File { path: path.to_owned(), appender: Arc::default() };
        Ok(Self::new(catalog, clock, world, Some(file)))
    }

    /// A new cloud that ends with the process.
    pub fn in_memory(catalog: Catalog, clock: Clock, latencies: Latencies) -> Self {
        Self::new(catalog, clock, World::new(latencies), None)
    }

    /// Sets a quota.
    pub async fn set_quota(&self, place: Place, resource: Metric, quota: Quota) -> io::Result<()> {
        self.mend(|world| world.set_quota(place, resource, quota)).await
    }

    /// Creates the zone of a domain; false if there is one.
    pub async fn create_zone(&self, domain: &str) -> io::Result<bool> {
        self.mend(|world| world.zones.insert(domain.to_ascii_lowercase())).await
    }

    /// Deletes the zone of a domain and the records in it; false if there is none.
    pub async fn delete_zone(&self, domain: &str) -> io::Result<bool> {
        self.mend(|world| world.delete_zone(&domain.to_ascii_lowercase())).await
    }

    /// Takes a permission from the service account; false if it does not have it.
    pub async fn deny(&self, provider: &str, permission: &str) -> io::Result<bool> {
        self.mend(|world| {
            let denied = world.denied_permissions.entry(provider.to_owned()).or_default();
            denied.insert(permission.to_owned())
        })
        .await
    }

    /// Gives a permission back to the service account; false if it has it.
    pub async fn grant(&self, provider: &str, permission: &str) -> io::Result<bool> {
        self.mend(|world| {
            let denied = world.denied_permissions.get_mut(provider);
            denied.is_some_and(|denied| denied.remove(permission))
        })
        .await
    }

    /// Denies access to clusters with a label, `key:value`; false if it is denied already.
    pub async fn deny_label(&self, label: &str) -> io::Result<bool> {
        self.mend(|world| world.denied_labels.insert(label.to_owned())).await
    }

    /// Allows access to clusters with a label again; false if it is allowed.
    pub async fn grant_label(&self, label: &str) -> io::Result<bool> {
        self.mend(|world| world.denied_labels.remove(label)).await
    }

    /// Puts a fault in place.
    pub async fn inject(&self, fault: NewFault) -> io::Result<Fault> {
        self.mend(|world| world.inject(fault)).await
    }

    /// Clears a fault; false if there is none of that id.
    pub async fn clear(&self, id: u64) -> io::Result<bool> {
        self.mend(|world| {
            let before = world.faults.len();
            world.faults.retain(|fault| fault.id != id);
            world.faults.len() < before
        })
        .await
    }

    /// Sets how long everything takes from now on. What is under way takes no longer than what begins
    /// now.
    pub async fn set_latencies(&self, latencies: Latencies) -> io::Result<()> {
        let now = self.inner.clock.now();
        self.mend(|world| world.set_latencies(latencies, now)).await
    }

    fn new(catalog: Catalog, clock: Clock, world: World, file: Option<File>) -> Self {
        let inner = Inner {
            catalog,
            clock,
            world: Mutex::new(world),
            mended: watch::Sender::new(()),
            stirred: watch::Sender::new(()),
            hosts: Hosts::default(),
            file,
        };
        Self { inner: Arc::new(inner) }
    }

    /// A change from outside: saved, and told to whoever waits.
    async fn mend<T>(&self, change: impl FnOnce(&mut World) -> T) -> io::Result<T> {
        let answer = {
            let mut world = self.world();
            world.edited();
            change(&mut world)
        };
        self.inner.mended.send_replace(());
        self.stir();
        self.save().await?;
        Ok(answer)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // Every change of the world is whole when it panics, or is made again by the next step.
        self.inner.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes steps until one ends the operation. Dropped in between, it leaves what was made so far,
    /// as a caller that hangs up leaves it at a real provider.
    async fn operate(
        &self,
        step: impl Fn(&mut World, Timestamp) -> Step + Send,
    ) -> Result<Done, Refusal> {
        let mut mended = self.inner.mended.subscribe();
        loop {
            let now = self.inner.clock.now();
            let next = step(&mut self.world(), now);
            match next {
                Step::Wait(until) => {
                    tokio::select! {
                        () = self.inner.clock.sleep_until(until) => {}
                        _ = mended.changed() => {}
                    }
                }
                Step::End(result) => {
                    self.keep().await;
                    return result;
                }
            }
        }
    }

    /// Says that a machine may have changed.
    fn stir(&self) {
        self.inner.stirred.send_replace(());
    }

    /// Writes what the file does not hold yet, if it can.
    async fn keep(&self) {
        // The operation itself succeeded; only a restart would show the difference.
        if let Err(cause) = self.save().await {
            error!(%cause, "could not save the simulated cloud");
        }
    }

    /// Writes what the file does not hold yet.
    async fn save(&self) -> io::Result<()> {
        let Some(file) = &self.inner.file else { return Ok(()) };
        let appender = file.appender.clone().lock_owned().await;
        if !self.world().is_unsaved() {
            return Ok(());
        }
        let (cloud, path) = (self.clone(), file.path.clone());
        // The write holds the lock, not we: we may be dropped, and it goes on.
        tokio::task::spawn_blocking(move || cloud.write(&path, appender)).await?
    }

    fn write(&self, path: &Path, place: OwnedMutexGuard<Option<Appender>>) -> io::Result<()> {
        let written = self.write_unsaved(path, place);
        if written.is_err() {
            // What was taken for it is not in the file: the next who comes writes everything.
            self.world().unsaved();
        }
        written
    }

    fn write_unsaved(
        &self,
        path: &Path,
        mut place: OwnedMutexGuard<Option<Appender>>,
    ) -> io::Result<()> {
        // Taken, so that after a failure everything is written anew.
        if let Some(mut appender) = place.take() {
            let added = self.world().save_changed()?;
            if let Some(text) = added.filter(|text| text.len() <= appender.room) {
                // Without waiting for the disk: it outlives this process, if not a power cut.
                io::Write::write_all(&mut appender.file, &text)?;
                appender.room -= text.len();
                *place = Some(appender);
                return Ok(());
            }
        }
        let text = self.world().save_whole()?;
        let file = write(path, &text)?;
        *place = Some(Appender { file, room: text.len().max(ROOM_MIN) });
        Ok(())
    }
}

impl SimulatedCloud {
    /// Checks, without changing anything, that what is asked for can be made.
    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal> {
        let Inner { catalog, clock, mended, .. } = &*self.inner;
        let who = ask.resource.id.to_string();
        let began = clock.now();
        let mut mended = mended.subscribe();
        loop {
            let latency = self.world().latencies.validation;
            let wait = latency.of(&who, u64::from(ask.resource.generation));
            let until = began.saturating_add(wait).unwrap_or(Timestamp::MAX);
            if until <= clock.now() {
                return self.world().preflight(ask, catalog, clock.now());
            }
            tokio::select! {
                () = clock.sleep_until(until) => {}
                _ = mended.changed() => {}
            }
        }
    }

    /// Makes a part of a cluster as it is asked for.
    async fn ensure(&self, part: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.operate(|world, now| world.ensure(part, ask, &self.inner.catalog, now)).await
    }

    /// Removes a part of a cluster.
    async fn remove(&self, part: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.operate(|world, now| world.remove(part, ask.resource.id, now)).await
    }
}

fn read(path: &Path) -> Result<World, OpenError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return Ok(World::new(Latencies::default()));
        }
        Err(source) => return Err(OpenError::Read { path: path.to_owned(), source }),
    };
    /// Read first: a newer form may differ in anything else.
    #[derive(serde::Deserialize)]
    struct Form {
        version: u32,
    }
    let corrupt = |source| OpenError::Corrupt { path: path.to_owned(), source };
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.next().unwrap_or_default();
    let Form { version: found } = serde_json::from_slice(whole).map_err(corrupt)?;
    if World::VERSION < found {
        return Err(OpenError::Newer { path: path.to_owned(), found, known: World::VERSION });
    }
    let mut world: World = match found {
        1 => serde_json::from_value(upgrade::whole(whole).map_err(corrupt)?),
        _ => serde_json::from_slice(whole),
    }
    .map_err(corrupt)?;
    // The last line has no end if the process ended while it was being written.
    for line in lines.filter(|line| line.ends_with(b"\n")) {
        match found {
            1 => world.restore(&upgrade::line(line).map_err(corrupt)?),
            _ => world.restore(line),
        }
        .map_err(corrupt)?;
    }
    if found != World::VERSION {
        // In its new form it is written whole, before anything is added.
        world.edited();
    }
    Ok(world)
}

/// Whole or not at all: a reader finds the old file or the new one.
fn write(path: &Path, text: &[u8]) -> io::Result<fs::File> {
    let temporary = path.with_extension("tmp");
    let mut file = fs::File::create(&temporary)?;
    io::Write::write_all(&mut file, text)?;
    file.sync_data()?;
    fs::rename(&temporary, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
