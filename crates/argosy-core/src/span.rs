//! Lengths of time as people write them: `500ms`, `10s`, `30m`, `12h`, `7d`, `1h30m`.

use jiff::SignedDuration;
use std::fmt;

/// The units, the longest first, in milliseconds.
const UNITS: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The longest length: a hundred years. More is a typing mistake, and would overflow dates.
pub const SPAN_MAX: SignedDuration = SignedDuration::from_hours(100 * 366 * 24);

/// Reads a length of time; not negative, at most `SPAN_MAX`.
///
/// # Errors
/// A sentence that says what would be right.
pub fn parse(text: &str) -> Result<SignedDuration, String> {
    let complaint = || {
        let text = crate::field::quotable(text);
        format!(
            "`{text}` is not a duration: write a whole number and a unit (ms, s, m, h, d), like \
             500ms, 10s or 30m"
        )
    };
    let (mut rest, mut length, mut given) = (text, SignedDuration::ZERO, false);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(complaint)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let number: i64 = number.parse().map_err(|_| complaint())?;
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(complaint)?;
        length = number
            .checked_mul(*scale)
            .and_then(|millis| length.checked_add(SignedDuration::from_millis(millis)))
            .filter(|length| *length <= SPAN_MAX)
            .ok_or_else(complaint)?;
        (rest, given) = (tail, true);
    }
    if given { Ok(length) } else { Err(complaint()) }
}

/// Writes a length of time as `parse` reads it, cut to whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written(pub SignedDuration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut millis = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
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

#[cfg(test)]
mod tests;
