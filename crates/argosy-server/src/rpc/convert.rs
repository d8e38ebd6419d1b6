//! Messages into what the services take, and back. What is wrong is named by its path in the message.
//!
//! What a newcomer gets wrong: a node's clock is shown to people and compared with ours, and nothing is
//! decided by it. So a time that cannot be is brought to the nearest that can, and only one that is no
//! time at all is refused.

pub(super) mod navarch;

pub(super) mod node;

use argosy_api::rpc;
use argosy_control::pulse::GpuSample;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::{MESSAGE_LEN_MAX, METRICS_MAX, Metric};
use buffa::{EnumValue, Enumeration, MessageFieldView};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Where the times end that a node's clock can show, in seconds: the beginning of the year 2200.
///
/// A clock that shows another one is broken, and arithmetic with it would overflow somewhere.
const NODE_TIME_MAX_S: i64 = 7_258_118_400;

/// The last second a `google.protobuf.Timestamp` may name, and the first.
const TIMESTAMP_MAX_S: i64 = 253_402_300_799;
const TIMESTAMP_MIN_S: i64 = -62_135_596_800;

/// The longest name, address, version or identity a node may send, in bytes. Host names have 253.
const WORD_LEN_MAX: usize = 256;

/// The time a node's clock showed; `None` if it was not said.
fn node_time(
    time: &MessageFieldView<rpc::TimestampView<'_>>,
    field: impl FnOnce() -> String,
) -> Result<Option<Timestamp>, FieldError> {
    let Some(time) = time.as_option() else { return Ok(None) };
    let is_time = (TIMESTAMP_MIN_S..=TIMESTAMP_MAX_S).contains(&time.seconds)
        && (0..1_000_000_000).contains(&time.nanos);
    if !is_time {
        let field = field();
        let message = format!("{field} is not a time between the years 1 and 9999");
        return Err(FieldError::new(field, Constraint::Format, message));
    }
    let near = time.seconds.clamp(0, NODE_TIME_MAX_S);
    Ok(Timestamp::new(near, if near == time.seconds { time.nanos } else { 0 }).ok())
}

/// One of our times.
fn time(time: Timestamp) -> rpc::Timestamp {
    rpc::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
        ..Default::default()
    }
}

/// A whole number of seconds that a timer accepts.
fn seconds(interval: SignedDuration) -> u32 {
    u32::try_from(interval.as_secs().max(1)).unwrap_or(u32::MAX)
}

/// A percentage, if it was measured. More than all and less than nothing are rounding errors of whoever
/// measured.
fn percent(value: Option<f64>, field: impl FnOnce() -> String) -> Result<Option<f32>, FieldError> {
    let Some(value) = value else { return Ok(None) };
    if value.is_finite() {
        #[expect(clippy::cast_possible_truncation, reason = "a percentage needs no more digits")]
        return Ok(Some(value.clamp(0.0, 100.0) as f32));
    }
    let field = field();
    let message = format!("{field} is not a finite number");
    Err(FieldError::new(field, Constraint::Format, message))
}

/// What was measured of one GPU, before it was looked at; `None` is what was not.
struct RawGpuSample {
    index: i64,
    temperature: Option<i64>,
    power: Option<i64>,
    utilization: Option<f64>,
    memory_used: Option<u64>,
    ecc_corrected: Option<u64>,
    ecc_uncorrected: Option<u64>,
}

/// `index` is what the wire calls its place.
fn gpu_sample(
    raw: &RawGpuSample,
    index: &str,
    field: impl Fn() -> String,
) -> Result<GpuSample, FieldError> {
    Ok(GpuSample {
        index: gpu_index(raw.index, || format!("{}.{index}", field()))?,
        temperature: raw.temperature.map(|degrees| {
            i16::try_from(degrees).unwrap_or(if degrees < 0 { i16::MIN } else { i16::MAX })
        }),
        power: raw.power.map(|watts| u16::try_from(watts.max(0)).unwrap_or(u16::MAX)),
        utilization: percent(raw.utilization, || format!("{}.utilization_percent", field()))?,
        memory_used: raw.memory_used,
        ecc_corrected: raw.ecc_corrected.map(at_most_u32),
        ecc_uncorrected: raw.ecc_uncorrected.map(at_most_u32),
    })
}

fn at_most_u32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn gpu_index(index: i64, field: impl FnOnce() -> String) -> Result<u16, FieldError> {
    u16::try_from(index).map_err(|_| {
        let field = field();
        let message = format!("{field} is {index}, which is no place of a GPU");
        FieldError::new(field, Constraint::Max, message)
    })
}

/// There are not more of something than there may be.
fn few(len: usize, max: usize, field: impl FnOnce() -> String) -> Result<(), FieldError> {
    if len <= max {
        return Ok(());
    }
    let field = field();
    let message = format!("{field} has {len} entries; at most {max} are allowed");
    Err(FieldError::new(field, Constraint::Max, message))
}

/// A name, address, version or identity.
fn word(text: &str, field: impl FnOnce() -> String) -> Result<&str, FieldError> {
    let complain = |constraint, what: &str| {
        let field = field();
        let message = format!("{field} {what}");
        Err(FieldError::new(field, constraint, message))
    };
    if WORD_LEN_MAX < text.len() {
        let what = format!("is {} bytes long; at most {WORD_LEN_MAX} are allowed", text.len());
        return complain(Constraint::MaxLength, &what);
    }
    // It is written into logs, tables and terminals.
    if text.chars().any(char::is_control) {
        return complain(Constraint::Pattern, "may not hold control characters");
    }
    Ok(text)
}

/// Words and what they mean: details of a result, parameters of a command.
fn words<'a>(
    entries: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    max: usize,
    field: impl Fn() -> String,
) -> Result<BTreeMap<String, String>, FieldError> {
    few(entries.len(), max, &field)?;
    entries
        .map(|(key, value)| {
            word(key, || format!("{}.{}", field(), cut(key)))?;
            Ok((key.to_owned(), cut(value).to_owned()))
        })
        .collect()
}

/// The measurements of an event.
fn metrics<'a>(
    entries: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    field: impl Fn() -> String,
) -> Result<BTreeMap<String, Metric>, FieldError> {
    few(entries.len(), METRICS_MAX, &field)?;
    entries
        .map(|(key, value)| {
            word(key, || format!("{}.{}", field(), cut(key)))?;
            Ok((key.to_owned(), metric(value)))
        })
        .collect()
}

/// A measurement as what it is: wires carry text.
fn metric(text: &str) -> Metric {
    if let Ok(whole) = text.parse() {
        return Metric::Int(whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Metric::Float(number),
        _ => match text {
            "true" => Metric::Bool(true),
            "false" => Metric::Bool(false),
            other => Metric::Text(cut(other).to_owned()),
        },
    }
}

/// As much of a text as is kept.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MESSAGE_LEN_MAX)).unwrap_or(text)
}

/// The value of a wire's number in a list that is in the order of the numbers; `None` for one that the
/// wire does not have.
fn nth<T: Copy, E: Enumeration>(values: &[T], number: EnumValue<E>) -> Option<T> {
    let number = number.as_known()?.to_i32();
    usize::try_from(number).ok().and_then(|number| values.get(number)).copied()
}

/// The number on the wire of a value in such a list.
fn number<T: PartialEq>(values: &[T], value: &T) -> i32 {
    let at = values.iter().position(|other| other == value);
    at.and_then(|at| i32::try_from(at).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
