//! How things are printed: formats, documents, ages; and, of both programs, tables and clean text.

use argosy_term::{escape, is_harmless};
use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use argosy_term::{Grid, Paint, Screen, clean, indent, note, wrap};

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Aligned columns, ages instead of times.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// What the API answered.
    Json,
    /// The same as YAML.
    Yaml,
    /// One `kind/name` a line.
    Name,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether there is to be colour, if somebody said.
    pub(crate) fn wanted(self) -> Option<bool> {
        match self {
            Colour::Auto => None,
            Colour::Always => Some(true),
            Colour::Never => Some(false),
        }
    }
}

/// How long ago, in at most two units: `45s`, `12m`, `3h20m`, `5d`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    span(now.duration_since(then).max(SignedDuration::ZERO))
}

/// A length of time, in at most two units.
pub(crate) fn span(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..600 => match seconds % 60 {
            0 => format!("{minutes}m"),
            rest => format!("{minutes}m{rest}s"),
        },
        600..3600 => format!("{minutes}m"),
        3600..36_000 => match minutes % 60 {
            0 => format!("{hours}h"),
            rest => format!("{hours}h{rest}m"),
        },
        36_000..172_800 => format!("{hours}h"),
        172_800.. => format!("{days}d"),
    }
}

/// A value as pretty JSON, or as YAML, with a line end.
pub(crate) fn document(value: &Value, yaml: bool) -> String {
    let pretty = || serde_json::to_string_pretty(value).unwrap_or_default();
    if !yaml {
        return escape(&pretty(), false);
    }
    match serde_saphyr::to_string(value) {
        Ok(text) if text.chars().all(is_harmless) => text,
        // JSON is YAML too, and there every mark can be escaped.
        Ok(_) | Err(_) => escape(&pretty(), true),
    }
}

/// A value as one line of JSON.
pub(crate) fn line(value: &Value) -> String {
    escape(&value.to_string(), false)
}

/// Writes to standard output. A reader that went away (`| head`) ends the command, which is not an error.
pub(crate) fn print(text: &str) {
    if !argosy_term::print(text) {
        std::process::exit(0);
    }
}

#[cfg(test)]
mod tests;
