//! What SQLite's errors mean to the caller of the store.

use crate::engine::Error;
use rusqlite::ffi;
use std::path::Path;

/// Why work on the database did not succeed.
#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    /// Something was read that was never written like this; the text says what.
    Damaged(String),
    Store(Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// Whether nothing more may be written by this process.
    ///
    /// After a failed fsync the system forgets which pages were not written, and the next fsync
    /// succeeds without them: only reading the file again, from the start, shows what is there.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.codes(), Some((_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)))
    }

    pub(super) fn into_error(self, database: &Path) -> Error {
        use ffi::ErrorCode;
        let file = database.display();
        if self.is_final() {
            return Error::Unavailable(format!(
                "{file} could not be flushed to the disk; the process must be restarted"
            ));
        }
        let code = self.codes();
        let text = match self {
            Self::Store(error) => return error,
            Self::Damaged(text) => return damaged(database, &text),
            Self::Sqlite(error) => error.to_string(),
        };
        match code {
            Some((ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _)) | None => {
                damaged(database, &text)
            }
            Some((ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE)) => {
                Error::Full(format!("{file}: {text}"))
            }
            Some(_) => Error::Unavailable(format!("{file}: {text}")),
        }
    }

    /// `None` for what is not SQLite's own refusal: a value that is not of its column's type.
    fn codes(&self) -> Option<(ffi::ErrorCode, std::ffi::c_int)> {
        match self {
            Self::Sqlite(error) => {
                error.sqlite_error().map(|error| (error.code, error.extended_code))
            }
            Self::Damaged(_) | Self::Store(_) => None,
        }
    }
}

fn damaged(database: &Path, found: &str) -> Error {
    let dir = database.parent().unwrap_or(database).display();
    let file = database.display();
    Error::Refused(format!(
        "{file} is damaged: {found}. Nothing was changed. Keep a copy of {dir} for inspection, \
         then put a backup in its place: argosy restore --force --from BACKUP --data-dir {dir}"
    ))
}
