//! Copies the store while it runs, and puts a copy back.

use super::fault::Fault;
use super::{
    DATABASE_FILE, Embedded, beside, create_dir, is_locked, lock, rows, schema, sync_dir, unusable,
};
use crate::engine::Error;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
/// The copy is verified in full before anything is replaced. `Refused` if the backup is damaged or
/// newer than this build, or if there is a store in `dir` already and `force` is not set.
pub fn restore(from: &Path, dir: &Path, force: bool) -> Result<(), Error> {
    create_dir(dir)?;
    let _lock = lock(dir)?;
    let database = dir.join(DATABASE_FILE);
    if database.exists() && !force {
        return Err(Error::Refused(format!(
            "{} already holds a store; choose another --data-dir, or replace it with --force",
            dir.display()
        )));
    }
    let part = beside(&database, ".restore");
    remove(&part)?;
    std::fs::copy(from, &part).map_err(|error| unusable(from, &error))?;
    if let Err(mut error) = verify(&part) {
        remove(&part)?;
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
    put_in_place(&part, &database)
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

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(path, &error)),
        _ => Ok(()),
    }
}
