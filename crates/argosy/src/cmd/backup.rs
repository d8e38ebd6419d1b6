//! `argosy backup` and `argosy restore`: the embedded store as one file.

use crate::failure::{Exit, Failure};
use crate::output::{Screen, note};
use crate::session::confirm;
use argosy_control::clock::Clock;
use argosy_control::ids::Ids;
use argosy_control::{StoreError, recovery};
use argosy_store::embedded::{DATABASE_FILE, backup as copy, restore as put_back};
use argosy_store::engine::Engine;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Write the embedded store to one file.
#[derive(Args, Debug)]
#[command(after_help = "\
The server may be running: the backup is one moment of its store, and was verified when the command
returns. A PostgreSQL store is backed up with PostgreSQL's own tools.

Examples:
  argosy backup --data-dir /var/lib/argosy --to argosy-2026-11-15.db")]
pub(crate) struct Backup {
    /// The server's data directory.
    #[arg(
        long,
        env = "ARGOSY_DATA_DIR",
        hide_env_values = true,
        default_value = "argosy-data",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// The file to write; it must not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Put a backup into a data directory.
#[derive(Args, Debug)]
#[command(after_help = "\
The server must not be running. The backup is checked before anything is replaced.

The store then begins a new incarnation: every node pool is in recovery, and no machine that was bought since the
backup is terminated or drained before `argosy recovery confirm`. `argosy recovery show` lists what waits.

Examples:
  argosy restore --from argosy-2026-11-15.db --data-dir /var/lib/argosy
  argosy restore --from argosy-2026-11-15.db --data-dir /var/lib/argosy --force --yes")]
pub(crate) struct Restore {
    /// The backup.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The data directory.
    #[arg(
        long,
        env = "ARGOSY_DATA_DIR",
        hide_env_values = true,
        default_value = "argosy-data",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// Replace the store that is there.
    #[arg(long)]
    force: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

/// `argosy backup`
pub(super) fn backup(args: &Backup) -> Result<Exit, Failure> {
    if !holds_store(&args.data_dir) {
        return Err(Failure::new(
            Exit::NotFound,
            format!("there is no store in {}", args.data_dir.display()),
        )
        .fix("name the server's data directory with --data-dir"));
    }
    copy(&args.data_dir, &args.to).map_err(|error| {
        Failure::failed(format!("cannot write the backup to {}", args.to.display())).why(error)
    })?;
    note(&format!("{} holds the store of {}", args.to.display(), args.data_dir.display()));
    Ok(Exit::Ok)
}

/// `argosy restore`
pub(super) fn restore(args: &Restore, screen: Screen) -> Result<Exit, Failure> {
    if holds_store(&args.data_dir) && args.force {
        let question = format!("Replace the store in {}?", args.data_dir.display());
        confirm(&screen, &question, args.yes)?;
    }
    put_back(&args.from, &args.data_dir, args.force, renew).map_err(|error| {
        Failure::failed(format!("{} cannot be restored", args.from.display())).why(error)
    })?;
    note(&format!("{} holds what was in {}", args.data_dir.display(), args.from.display()));
    note(
        "its node pools are in recovery: after the start, `argosy recovery show` lists what they would do",
    );
    Ok(Exit::Ok)
}

/// Begins a new incarnation in what is restored.
fn renew(engine: Arc<dyn Engine>) -> Result<(), StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    runtime.block_on(recovery::restored(engine, Clock::System, &Ids::Random))
}

/// Whether there is an embedded store in the directory.
fn holds_store(dir: &Path) -> bool {
    dir.join(DATABASE_FILE).exists()
}
