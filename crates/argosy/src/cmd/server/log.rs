//! Where log lines go, and how they look.

use crate::config::{Log, LogFormat, LogLevel};
use crate::failure::Failure;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use tracing::Level;

/// Log lines go to standard error, as the configuration says.
pub(crate) fn to_stderr(log: &Log) {
    let builder = tracing_subscriber::fmt()
        .with_max_level(level(log.level))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    match log.format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// Log lines go to the end of a file.
pub(crate) fn to_file(path: &Path) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|error| {
        Failure::failed(format!("cannot write to {}", path.display())).why(error)
    })?;
    tracing_subscriber::fmt()
        .with_max_level(Level::INFO)
        .with_writer(Mutex::new(file))
        .with_ansi(false)
        .init();
    Ok(())
}

const fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    }
}
