//! Cron expressions: five fields, in a time zone, right on the two days a year that are not 24 h long.
//!
//! What a newcomer gets wrong: a local time may not exist, or exist twice. One that the clock jumps over
//! counts as the moment of the jump; one that comes twice counts once, the first time. `*` in the hour
//! field means every hour that passes, so there both count.

use super::{WEEKDAYS, first_instant};
use crate::field::quotable;
use crate::field::reader::meant;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// The longest expression: every value of every field, written out, is shorter.
pub const CRON_LEN_MAX: usize = 512;

/// How many days ahead a time is looked for: the 29th of February is up to eight years away.
const DAYS_AHEAD_MAX: usize = 8 * 366 + 2;

/// How many single minutes are looked at: more than two days' worth is needed by no zone.
const MINUTES_AHEAD_MAX: usize = 4 * DAYS_AHEAD_MAX;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The most days of each month.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// One of the five fields.
struct Part {
    name: &'static str,
    min: u32,
    max: u32,
    /// Words for the values from `min` on.
    words: &'static [&'static str],
}

const PARTS: [Part; 5] = [
    Part { name: "minute", min: 0, max: 59, words: &[] },
    Part { name: "hour", min: 0, max: 23, words: &[] },
    Part { name: "day of the month", min: 1, max: 31, words: &[] },
    Part { name: "month", min: 1, max: 12, words: &MONTHS },
    // 7 is Sunday, too.
    Part { name: "day of the week", min: 0, max: 7, words: &WEEKDAYS },
];

/// A parsed expression, `minute hour day month weekday`: `30 2 * * sat`, `*/15 8-17 1,15 jan-mar *`.
///
/// As in every cron, a day matches if either its number or its weekday does, unless one of these two
/// fields begins with `*`: then both must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    either_day: bool,
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// A sentence that names the field and what is allowed in it.
    pub fn parse(text: &str) -> Result<Cron, String> {
        if CRON_LEN_MAX < text.len() {
            return Err(format!("{} bytes are too long; at most {CRON_LEN_MAX}", text.len()));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = words.as_slice() else {
            return Err(format!(
                "write five fields (minute, hour, day of the month, month, day of the week), like \
                 `30 2 * * sat`; `{}` has {}",
                quotable(text),
                words.len()
            ));
        };
        let [minute, hour, day, month, weekday] = &PARTS;
        let either_day = !days.starts_with('*') && !weekdays.starts_with('*');
        let sunday_twice = weekday.read(weekdays)?;
        let cron = Cron {
            text: words.join(" "),
            minutes: minute.read(minutes)?,
            hours: hour.read(hours)?,
            days: day.read(days)?,
            months: month.read(months)?,
            weekdays: (sunday_twice | (sunday_twice >> 7)) & 0x7f,
            either_day,
        };
        let ever = either_day
            || (1..).zip(MONTH_DAYS).any(|(month, last)| {
                has(cron.months, month) && (1..=last).any(|day| has(cron.days, day))
            });
        if ever { Ok(cron) } else { Err(format!("`{}` never comes: no such day", cron.text)) }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first time after `after`; `None` if there is none before the end of the calendar.
    pub fn next(&self, after: Timestamp, tz: &TimeZone) -> Option<Timestamp> {
        const EVERY_HOUR: u64 = (1 << 24) - 1;
        if self.hours == EVERY_HOUR {
            return self.next_of_every_hour(after, tz);
        }
        // Where the clock goes back over midnight, yesterday comes again, but its times have all come.
        let mut date = tz.to_datetime(after).date();
        for _ in 0..DAYS_AHEAD_MAX {
            if self.comes_on(date) {
                let found = self.next_on(date, after, tz);
                if found.is_some() {
                    return found;
                }
            }
            let month = has(self.months, number(date.month()));
            date = if month { date } else { date.last_of_month() }.tomorrow().ok()?;
        }
        None
    }

    fn comes_on(&self, date: Date) -> bool {
        let day = has(self.days, number(date.day()));
        let weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        let days = if self.either_day { day || weekday } else { day && weekday };
        days && has(self.months, number(date.month()))
    }

    /// The first time on this date that is after `after`. First instants keep the order of the clock.
    fn next_on(&self, date: Date, after: Timestamp, tz: &TimeZone) -> Option<Timestamp> {
        let at = |hour: u32, minute: u32| first_instant(date, hour * 60 + minute, tz);
        let last_minute = bits(self.minutes).last()?;
        bits(self.hours)
            .filter(|hour| at(*hour, last_minute).is_some_and(|last| after < last))
            .flat_map(|hour| bits(self.minutes).map(move |minute| (hour, minute)))
            .filter_map(|(hour, minute)| at(hour, minute))
            .find(|at| after < *at)
    }

    /// Every hour that passes counts, so this goes by the clock on the wall minute by minute.
    fn next_of_every_hour(&self, after: Timestamp, tz: &TimeZone) -> Option<Timestamp> {
        let minute = SignedDuration::from_mins(1);
        let mut at = Timestamp::from_second(after.as_second().div_euclid(60) * 60).ok()?;
        at = at.checked_add(minute).ok()?;
        for _ in 0..MINUTES_AHEAD_MAX {
            let local = tz.to_datetime(at);
            if self.comes_on(local.date()) {
                if has(self.minutes, number(local.minute())) {
                    return Some(at);
                }
                at = at.checked_add(minute).ok()?;
            } else {
                let midnight = first_instant(local.date().tomorrow().ok()?, 0, tz)?;
                at = midnight.max(at.checked_add(minute).ok()?);
            }
        }
        None
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Part {
    /// The values of a field as a set of bits.
    fn read(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |set, item| Ok(set | self.read_item(item)?))
    }

    /// `*`, `5`, `mon-fri`, `*/15`, `10-40/10`, `5/10`.
    fn read_item(&self, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.read_step(step)?)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((first, last)) => {
                let (first, last) = (self.read_value(first)?, self.read_value(last)?);
                // `sat-sun` ends with the week's seventh day, not with its zeroth.
                let sunday = last == 0 && self.max == 7 && first != 0;
                (first, if sunday { 7 } else { last })
            }
            None => {
                let first = self.read_value(range)?;
                (first, if step.is_some() { self.max } else { first })
            }
        };
        if last < first {
            let (name, item) = (self.name, quotable(item));
            return Err(format!(
                "the {name} `{item}` runs backwards; write two ranges and a comma"
            ));
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
        Ok((first..=last).step_by(step).fold(0, |set, value| set | (1 << value)))
    }

    fn read_step(&self, text: &str) -> Result<u32, String> {
        let step = text.parse().ok().filter(|step| (1..=self.max).contains(step));
        step.ok_or_else(|| {
            let (name, text) = (self.name, quotable(text));
            format!("the {name} has the step `{text}`; a step is a number from 1 to {}", self.max)
        })
    }

    fn read_value(&self, text: &str) -> Result<u32, String> {
        if let Some(value) = text.parse().ok().filter(|n| (self.min..=self.max).contains(n)) {
            return Ok(value);
        }
        let word = text.to_lowercase();
        let named = (self.min..).zip(self.words).find(|(_, name)| is_name(&word, name));
        if let Some((value, _)) = named {
            return Ok(value);
        }
        let words = match (self.words.first(), self.words.last()) {
            (Some(first), Some(last)) => format!(" or {first} to {last}"),
            (_, _) => String::new(),
        };
        Err(format!(
            "the {} is `{}`, but must be {} to {}{words}{}",
            self.name,
            quotable(text),
            self.min,
            self.max,
            meant(&word, self.words.iter().copied())
        ))
    }
}

/// Whether a word in small letters is this name or its first three letters.
pub(super) fn is_name(word: &str, name: &str) -> bool {
    word == name || (word.len() == 3 && name.starts_with(word))
}

/// A part of a date, which is never negative.
fn number(part: i8) -> u32 {
    u32::try_from(part).unwrap_or_default()
}

fn has(set: u64, value: u32) -> bool {
    set.checked_shr(value).is_some_and(|set| set & 1 == 1)
}

/// The values of a set, the smallest first.
fn bits(set: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |value| has(set, *value))
}
