//! Lengths of time as people write them: `500ms`, `10s`, `30m`, `12h`, `7d`.

use argosy_core::span::{SPAN_MAX, Written, parse};
use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A length of time; not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Duration(SignedDuration);

impl Duration {
    pub(crate) const fn from_secs(secs: i64) -> Self {
        Self(SignedDuration::from_secs(secs))
    }

    pub(crate) const fn from_days(days: i64) -> Self {
        Self::from_secs(days * 86_400)
    }

    /// Cut to whole milliseconds, which is what can be written down.
    pub(crate) fn from_std(length: std::time::Duration) -> Self {
        let millis = i64::try_from(length.as_millis()).map(SignedDuration::from_millis);
        Self(millis.unwrap_or(SPAN_MAX))
    }

    pub(crate) const fn from_signed(length: SignedDuration) -> Self {
        Self(length)
    }

    pub(crate) const fn signed(self) -> SignedDuration {
        self.0
    }

    pub(crate) fn std(self) -> std::time::Duration {
        self.0.unsigned_abs()
    }
}

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map(Self)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Written(self.0).fmt(f)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
