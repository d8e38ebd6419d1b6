//! Copies the store while it runs, and puts a copy back.

use super::fault::Fault;
use super::{
    DATABASE_FILE, Embedded, beside, create_dir, is_locked, lock, rows, schema, sync_dir, unusable,
};
use crate::engine::{Engine, Error};
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Writes a copy of the store in `dir`, as it is at one moment, to the file `to`, which must not
/// exist. The process that has the store open goes on reading and writing. When this returns the
/// copy is on the disk and was verified. Blocks.
///
/// # Errors
/// `Refused` if the store is damaged, or newer than this build.
pub fn backup(dir: &Path, to: &Path) -> Result<(), Error> {
    if to.exists() {
        return Err(Error::Refused(format!(
            "{} exists; choose another name for the backup",
            to.display()
        )));
    }
    // A store that nobody has open may be damaged, and nobody knows: the checks of opening it come
    // first. One that is open has passed them.
    let _checked = match Embedded::open(dir) {
        Ok(closed) => Some(closed),
        Err(Error::Refused(_)) if is_locked(dir) => None,
        Err(error) => return Err(error),
    };
    let from = &dir.join(DATABASE_FILE);
    let part = beside(to, ".part");
    remove(&part)?;
    let copy = || -> Result<(), Fault> {
        let db = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.execute("VACUUM INTO ?1", [part.to_string_lossy()])?;
        Ok(())
    };
    copy().map_err(|fault| fault.into_error(from))?;
    verify(&part)?;
    put_in_place(&part, to)
}

/// Puts a backup into the data directory `dir`, which no running process may use.
///
/// The copy is verified in full before anything is replaced. `renew` is given the copy, opened, before it is put
/// in place: what it commits there is part of the restore, or nothing is replaced. It must keep nothing of it.
///
/// # Errors
/// `Refused` if the backup is damaged or newer than this build, or if there is a store in `dir` already and
/// `force` is not set; and what `renew` says.
pub fn restore(
    from: &Path,
    dir: &Path,
    force: bool,
    renew: impl FnOnce(Arc<dyn Engine>) -> Result<(), Error>,
) -> Result<(), Error> {
    create_dir(dir)?;
    let _lock = lock(dir)?;
    let database = dir.join(DATABASE_FILE);
    if database.exists() && !force {
        return Err(Error::Refused(format!(
            "{} already holds a store; choose another --data-dir, or replace it with --force",
            dir.display()
        )));
    }
    // A directory of its own, for opening it makes files beside it.
    let staging = dir.join(STAGING);
    remove_dir(&staging)?;
    create_dir(&staging)?;
    let part = staging.join(DATABASE_FILE);
    if let Err(mut error) = stage(from, &staging, renew) {
        remove_dir(&staging)?;
        if let Error::Refused(found) = &mut error {
            let from = from.display();
            *found = format!("{from} cannot be restored, nothing was replaced: {found}");
        }
        return Err(error);
    }
    // The log of the store that is replaced must not be replayed onto the one that replaces it.
    // Its index goes first: alone it would say that a log is missing.
    remove(&beside(&database, "-shm"))?;
    remove(&beside(&database, "-wal"))?;
    put_in_place(&part, &database)?;
    remove_dir(&staging)
}

/// Where a copy lies, in the data directory, until it is put in place.
const STAGING: &str = "restoring";

/// Copies a backup, verifies it, and has it renewed.
fn stage(
    from: &Path,
    staging: &Path,
    renew: impl FnOnce(Arc<dyn Engine>) -> Result<(), Error>,
) -> Result<(), Error> {
    let part = staging.join(DATABASE_FILE);
    std::fs::copy(from, &part).map_err(|error| unusable(from, &error))?;
    verify(&part)?;
    renew(Arc::new(Embedded::open(staging)?))?;
    // Only the file itself is put in place: what is in its log must be in it.
    let merge = || -> Result<(), Fault> {
        let db = Connection::open_with_flags(&part, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    };
    merge().map_err(|fault| fault.into_error(&part))?;
    let log = beside(&part, "-wal");
    if log.metadata().is_ok_and(|found| 0 < found.len()) {
        return Err(Error::Refused(format!("{} is still in use", log.display())));
    }
    verify(&part)
}

/// Reads all of a copy that nobody else has open.
fn verify(copy: &Path) -> Result<(), Error> {
    let verify = || -> Result<(), Fault> {
        let db = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if schema::check_version(&db, copy)? == 0 {
            return Err(Fault::Damaged("it is empty".to_string()));
        }
        schema::check_pages(&db, "integrity_check")?;
        schema::check_feed(&db)?;
        rows::verify_all(&db)
    };
    verify().map_err(|fault| fault.into_error(copy))
}

fn put_in_place(part: &Path, to: &Path) -> Result<(), Error> {
    let synced = File::open(part).and_then(|file| {
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.sync_all()
    });
    synced.and_then(|()| std::fs::rename(part, to)).map_err(|error| unusable(to, &error))?;
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_dir(dir)
}

fn remove_dir(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(path, &error)),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(path, &error)),
        _ => Ok(()),
    }
}
