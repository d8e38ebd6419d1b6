//! Seeds as people write them: `7`, `1..1000`.

use std::fmt;
use std::str::FromStr;

/// The most seeds of one command. What came of each is kept until the end: some ten kilobytes, or a megabyte
/// where the scenario is long.
pub(super) const SEEDS_MAX: u64 = 100_000;

/// Seeds from the first to the last, with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seeds {
    first: u64,
    last: u64,
}

impl Seeds {
    pub(super) const fn one(seed: u64) -> Self {
        Self { first: seed, last: seed }
    }

    pub(super) fn is_one(self) -> bool {
        self.first == self.last
    }

    pub(super) fn list(self) -> Vec<u64> {
        (self.first..=self.last).collect()
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let form = "write FIRST..LAST with whole numbers, like 1..1000";
            part.parse::<u64>().map_err(|_| match part.bytes().all(|byte| byte.is_ascii_digit()) {
                true if !part.is_empty() => format!("seeds go up to {}", u64::MAX),
                true | false => form.to_owned(),
            })
        };
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => {
                (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?)
            }
            None => (number(text)?, number(text)?),
        };
        if last < first {
            return Err(format!("the first comes after the last; write {last}..{first}"));
        }
        match (last - first).checked_add(1) {
            Some(1..=SEEDS_MAX) => Ok(Self { first, last }),
            Some(_) | None => {
                Err(format!("these are more than {SEEDS_MAX}, which are the most at once"))
            }
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_or_refused_with_what_would_be_right() {
        let rows: [(&str, Result<&str, &str>); 11] = [
            ("7", Ok("7..7")),
            ("1..1000", Ok("1..1000")),
            ("1..=3", Ok("1..3")),
            ("0..0", Ok("0..0")),
            ("18446744073709551615", Ok("18446744073709551615..18446744073709551615")),
            ("5..1", Err("the first comes after the last; write 1..5")),
            ("1..", Err("write FIRST..LAST")),
            ("-1..3", Err("write FIRST..LAST")),
            ("a", Err("write FIRST..LAST")),
            ("0..18446744073709551615", Err("more than 100000")),
            ("1..99999999999999999999999", Err("seeds go up to")),
        ];
        for (text, expected) in rows {
            match (text.parse::<Seeds>(), expected) {
                (Ok(seeds), Ok(is)) => assert_eq!(seeds.to_string(), is),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (is, _) => panic!("{text}: {is:?}"),
            }
        }
        assert_eq!("3..5".parse::<Seeds>().unwrap().list(), [3, 4, 5]);
    }
}
