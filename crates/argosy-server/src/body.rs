//! Request bodies: read within limits, then parsed as strict JSON.
//!
//! Nothing is decompressed: a body with a content encoding is the router's to refuse.

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;

/// How large a request body may be.
///
/// A cluster with every label it may have is under 100 KiB: a smaller limit would refuse a large
/// spec, a larger one lets a thousand clients at once take a gigabyte of memory.
pub const BODY_MAX: usize = 1024 * 1024;

/// How large a status report may be.
///
/// Reports are kept per adapter and resource and arrive many times a minute; what does not fit here
/// is a log, not a status.
pub const STATUS_BODY_MAX: usize = 256 * 1024;

/// How deep arrays and objects may be nested.
///
/// People nest five deep. The parser and whatever walks the document afterwards use stack per level.
pub const DEPTH_MAX: usize = 64;

/// How many members of objects and elements of arrays a document may have in all.
///
/// In memory a member costs up to a hundred times its two bytes on the wire.
pub const MEMBERS_MAX: usize = 10_000;

/// How long a client may send nothing in the middle of a body.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// How long a whole body may take: 1 MiB in this time is 35 KB/s, slower than any link we serve.
const TOTAL_MAX: Duration = Duration::from_secs(30);

/// How much more of a body that is too large is read and thrown away, and for how long.
///
/// A client that is still sending when the connection is closed sees a broken pipe, and never the
/// answer that would tell it why. Most send a file that is a little too large; somebody who sends
/// without end is cut off.
const DISCARD_MAX: usize = 16 * 1024 * 1024;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Why a body was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Send less: 413.
    #[error("the request body is larger than {max} bytes")]
    TooLarge {
        /// How large it may be.
        max: usize,
    },
    /// Send faster: 408.
    #[error("the request body did not arrive within {0:?}")]
    TooSlow(Duration),
    /// Send again: the connection broke, or the body was shorter than its length said. 400.
    #[error("the request body ended before it was complete")]
    Broken,
    /// Correct the JSON: 400.
    #[error("the request body is not acceptable JSON: {0}")]
    Malformed(String),
}

/// Reads a body, but never more than `max` bytes of it.
///
/// What is too large is sent to its end before the answer, unless that takes too long.
///
/// # Errors
/// `TooLarge`; `TooSlow` after 10 s without a byte, or 30 s in all; `Broken`.
pub async fn read_limited(mut body: Body, max: usize) -> Result<Bytes, BodyError> {
    let read = read(&mut body, max).await;
    if let Err(BodyError::TooLarge { .. }) = &read {
        let _ = timeout(DISCARD_TIME, discard(&mut body)).await;
    }
    read
}

async fn discard(body: &mut Body) {
    let mut len = 0;
    while len < DISCARD_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        len += frame.data_ref().map_or(0, Bytes::len);
    }
}

async fn read(body: &mut Body, max: usize) -> Result<Bytes, BodyError> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| max < announced) {
        return Err(BodyError::TooLarge { max });
    }
    let read = async {
        let mut bytes = BytesMut::new();
        loop {
            let frame = timeout(IDLE_MAX, body.frame()).await;
            match frame.map_err(|_| BodyError::TooSlow(IDLE_MAX))? {
                None => return Ok(bytes.freeze()),
                Some(Err(_)) => return Err(BodyError::Broken),
                Some(Ok(frame)) => {
                    // Trailers carry nothing we use.
                    let Ok(data) = frame.into_data() else { continue };
                    if max - bytes.len() < data.len() {
                        return Err(BodyError::TooLarge { max });
                    }
                    bytes.extend_from_slice(&data);
                }
            }
        }
    };
    timeout(TOTAL_MAX, read).await.map_err(|_| BodyError::TooSlow(TOTAL_MAX))?
}

/// Parses a body as one JSON document, without duplicate keys and within `DEPTH_MAX` and `MEMBERS_MAX`.
///
/// # Errors
/// `Malformed`, with the path, the line and column, and the limit.
pub fn read_json(bytes: &[u8]) -> Result<Value, BodyError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        BodyError::Malformed(format!("it is not UTF-8 at byte {}", error.valid_up_to()))
    })?;
    if text.trim_ascii().is_empty() {
        return Err(BodyError::Malformed("it is empty".to_owned()));
    }
    let mut state = State { members: 0, trail: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = Document { depth: 0, state: &mut state }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| BodyError::Malformed(format!("{error}{}", state.place())))
}

/// What is known across the whole document.
struct State {
    members: usize,
    /// Where parsing stopped, innermost first; each level adds itself while the error passes it.
    trail: Vec<String>,
}

impl State {
    fn member<E: Error>(&mut self) -> Result<(), E> {
        self.members += 1;
        if MEMBERS_MAX < self.members {
            return Err(E::custom(format_args!("more than {MEMBERS_MAX} members and elements")));
        }
        Ok(())
    }

    fn place(&self) -> String {
        // The path of a document nested as deep as it may be must not fill the answer.
        let mut path = String::new();
        for step in self.trail.iter().rev().take(8) {
            let dot = if path.is_empty() || step.starts_with('[') { "" } else { "." };
            path.extend([dot, step]);
        }
        if path.is_empty() { path } else { format!(", in `{path}`") }
    }
}

/// The document, or a part of it `depth` levels down.
struct Document<'a> {
    depth: usize,
    state: &'a mut State,
}

impl Document<'_> {
    fn deeper<E: Error>(&self) -> Result<usize, E> {
        if self.depth == DEPTH_MAX {
            return Err(E::custom(format_args!("nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(self.depth + 1)
    }
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let depth = self.deeper()?;
        let mut elements = Vec::new();
        loop {
            match seq.next_element_seed(Document { depth, state: &mut *self.state }) {
                Ok(None) => return Ok(Value::Array(elements)),
                Ok(Some(element)) => elements.push(element),
                Err(error) => {
                    self.state.trail.push(format!("[{}]", elements.len()));
                    return Err(error);
                }
            }
            self.state.member()?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let depth = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.state.member()?;
            if members.contains_key(&key) {
                self.state.trail.push(short(&key));
                return Err(A::Error::custom("a key is given twice"));
            }
            match map.next_value_seed(Document { depth, state: &mut *self.state }) {
                Ok(value) => members.insert(key, value),
                Err(error) => {
                    self.state.trail.push(short(&key));
                    return Err(error);
                }
            };
        }
        Ok(Value::Object(members))
    }
}

/// A key as it may stand in an error: without control characters, and not a megabyte of it.
fn short(key: &str) -> String {
    let mut text: String = key.chars().filter(|c| !c.is_control()).take(64).collect();
    if text.len() < key.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
