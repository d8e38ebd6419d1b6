//! Lengths of time as people write them: `500ms`, `10s`, `30m`, `12h`, `7d`.

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A length of time; not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Duration(SignedDuration);

/// The units, the longest first, in milliseconds.
const UNITS: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The longest length: a hundred years. More is a typing mistake, and would overflow dates.
const MILLIS_MAX: i64 = 100 * 366 * 86_400_000;

impl Duration {
    pub(crate) const fn from_secs(secs: i64) -> Self {
        Self(SignedDuration::from_secs(secs))
    }

    pub(crate) const fn from_days(days: i64) -> Self {
        Self::from_secs(days * 86_400)
    }

    /// Cut to whole milliseconds, which is what can be written down.
    pub(crate) fn from_std(length: std::time::Duration) -> Self {
        Self(SignedDuration::from_millis(i64::try_from(length.as_millis()).unwrap_or(MILLIS_MAX)))
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
        let complaint = || {
            format!(
                "`{text}` is not a duration: write a whole number and a unit (ms, s, m, h, d), \
                 like 500ms, 10s or 30m"
            )
        };
        let (mut rest, mut millis, mut given) = (text, 0_i64, false);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(complaint)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let number: i64 = number.parse().map_err(|_| complaint())?;
            let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(complaint)?;
            millis = number
                .checked_mul(*scale)
                .and_then(|more| millis.checked_add(more))
                .filter(|millis| *millis <= MILLIS_MAX)
                .ok_or_else(complaint)?;
            (rest, given) = (tail, true);
        }
        if given { Ok(Self(SignedDuration::from_millis(millis))) } else { Err(complaint()) }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut millis = i64::try_from(self.0.as_millis()).unwrap_or(MILLIS_MAX);
        if millis == 0 {
            return f.write_str("0s");
        }
        for (unit, scale) in UNITS {
            if millis / scale != 0 {
                write!(f, "{}{unit}", millis / scale)?;
                millis %= scale;
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_as_people_write_them() {
        for (text, shown) in [
            ("10s", "10s"),
            ("30m", "30m"),
            ("1h30m", "1h30m"),
            ("90s", "1m30s"),
            ("7d", "7d"),
            ("250ms", "250ms"),
            ("0s", "0s"),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "10", "s", "-1s", "1.5h", "10 s", "10S", "1w", "99999999999999999999s", "40000d"]
        {
            let complaint = text.parse::<Duration>().unwrap_err();
            assert!(complaint.contains("30m"), "{text}: {complaint}");
        }
    }
}
