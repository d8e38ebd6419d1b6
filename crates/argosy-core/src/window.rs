//! When something may happen: time zones, cron expressions, and windows that open and close.
//!
//! What a newcomer gets wrong: an `end` is a time on the wall, a `duration` is time that passes. From
//! 22:00 to 06:00 are nine hours in the night when the clocks go back; eight hours from 22:00 on end at
//! 05:00 then.

mod cron;

use crate::breaker::later;
use crate::field::reader::{Reader, meant};
use crate::field::{Constraint, FieldError, quotable};
use crate::span::Written;
pub use cron::{CRON_LEN_MAX, Cron};
use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::fmt;

/// The most windows of one list: each is asked at every look.
pub const WINDOWS_MAX: usize = 32;

/// The longest that a window may be open from one start: a week, after which each weekday has come
/// again. A longer one is the absence of windows.
pub const OPEN_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The shortest: loops look twice a minute.
pub const OPEN_MIN: SignedDuration = SignedDuration::from_mins(1);

/// How many edges are looked at to find one that matters. Windows that overlap without end have none,
/// and then the answer is a time to look again.
const EDGES_MAX: usize = 64;

/// Sunday is 0, as in cron.
const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const DAY_MINUTES: u32 = 24 * 60;

/// The time zone with this IANA name, from the database that is part of the program: every process
/// agrees, whatever its host has installed.
///
/// # Errors
/// A sentence with the nearest name.
pub fn zone(name: &str) -> Result<TimeZone, String> {
    let db = TimeZoneDatabase::bundled();
    let found = db.get(name).ok().filter(|zone| !zone.is_unknown());
    found.ok_or_else(|| {
        let names: Vec<String> = db.available().map(|name| name.as_str().to_owned()).collect();
        let city = format!("/{}", name.replace(' ', "_").to_lowercase());
        let hint = match names.iter().find(|known| known.to_lowercase().ends_with(&city)) {
            Some(known) => format!("; did you mean {known}?"),
            None => meant(name, names.iter().map(String::as_str)),
        };
        format!(
            "`{}` is not a time zone: write an IANA name, like Europe/Berlin or UTC{hint}",
            quotable(name)
        )
    })
}

/// The name that `zone` reads.
pub fn zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

/// The first moment at which the clock shows so many minutes since midnight of a date, or more: a time
/// that the clock jumps over is the moment of the jump. `None` beyond the calendar.
fn first_instant(date: Date, minutes: u32, tz: &TimeZone) -> Option<Timestamp> {
    let minutes = i64::from(minutes).minutes();
    let wall = date.to_datetime(jiff::civil::Time::midnight()).checked_add(minutes).ok()?;
    let found = tz.to_ambiguous_timestamp(wall);
    let ambiguity = found.offset();
    // In a fold this is the first of the two, in a gap it is after the jump.
    let at = found.compatible().ok()?;
    Some(match ambiguity {
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => at,
        AmbiguousOffset::Gap { .. } => {
            let jump = tz.preceding(later(at, SignedDuration::from_secs(1))).next();
            jump.map_or(at, |jump| jump.timestamp())
        }
    })
}

/// A set of weekdays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days(u8);

impl Days {
    /// All seven.
    pub const EVERY: Days = Days(0x7f);

    fn has(self, date: Date) -> bool {
        let bit = u32::try_from(date.weekday().to_sunday_zero_offset()).unwrap_or_default();
        self.0.checked_shr(bit).is_some_and(|set| set & 1 == 1)
    }

    /// Their names, `mon` first.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let from_monday =
            (0..7_usize).map(|day| (day + 1) % 7).zip(WEEKDAYS.iter().cycle().skip(1));
        from_monday
            .filter(move |(day, _)| (self.0 >> day) & 1 == 1)
            .filter_map(|(_, name)| name.get(..3))
    }

    fn read(value: &Value, field: &str) -> Result<Days, Vec<FieldError>> {
        let Some(text) = value.as_str() else {
            return Err(vec![FieldError::wrong_type(field, "the name of a day", value)]);
        };
        let word = text.to_lowercase();
        let found = WEEKDAYS.iter().position(|name| cron::is_name(&word, name));
        found.map(|day| Days(1 << day)).ok_or_else(|| {
            let short = WEEKDAYS.iter().filter_map(|name| name.get(..3));
            let meant = match meant(&word, WEEKDAYS.iter().copied()) {
                none if none.is_empty() => meant(&word, short),
                meant => meant,
            };
            let text = quotable(text);
            let message =
                format!("{field} must be a day from mon to sun, or monday, …, not `{text}`{meant}");
            vec![FieldError::new(field, Constraint::Enum, message).with_value(text)]
        })
    }
}

/// A time on the wall, in minutes since midnight; 24:00 is the end of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(u32);

impl WallTime {
    /// From hours and minutes; `None` after 24:00.
    pub fn new(hours: u32, minutes: u32) -> Option<WallTime> {
        let total = hours.checked_mul(60)?.checked_add(minutes)?;
        (minutes < 60 && total <= DAY_MINUTES).then_some(WallTime(total))
    }

    /// `22`, `"22"`, `"22:30"`, `"06:00"`.
    fn read(value: &Value) -> Option<WallTime> {
        if let Some(hours) = value.as_u64() {
            return WallTime::new(u32::try_from(hours).ok()?, 0);
        }
        let text = value.as_str()?;
        let (hours, minutes) = text.split_once(':').unwrap_or((text, "00"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = (1..=2).contains(&hours.len()) && minutes.len() == 2;
        let time = || WallTime::new(hours.parse().ok()?, minutes.parse().ok()?);
        (fits && digits(hours) && digits(minutes)).then(time).flatten()
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// When a window opens, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opens {
    /// At each time of an expression, for so long.
    Cron {
        /// When it opens.
        cron: Cron,
        /// For how much time, at most `OPEN_MAX`.
        duration: SignedDuration,
    },
    /// On these days at a time on the wall.
    Daily {
        /// The days on which it opens; it may close on the next.
        days: Days,
        /// When it opens.
        start: WallTime,
        /// When it closes.
        until: Until,
    },
}

/// When a daily window closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// At this time on the wall, on the next day if it is not after the start.
    End(WallTime),
    /// After so much time, at most `OPEN_MAX`.
    Duration(SignedDuration),
}

/// A time that comes again and again, in a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// When.
    pub opens: Opens,
    /// By whose clock.
    pub zone: TimeZone,
}

impl Window {
    /// Reads `{cron, duration, timezone}`, or `{days, start, end or duration, timezone}`.
    ///
    /// # Errors
    /// One complaint a field.
    pub fn parse(value: &Value, field: &str) -> Result<Window, Vec<FieldError>> {
        let mut reader = Reader::open(value, field)?;
        let window = Window::read(&mut reader);
        reader.close()?;
        window.ok_or_else(Vec::new)
    }

    /// Reads the members that say when. What they are in may have others. `None` after a complaint.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Window> {
        let zone = match reader.text("timezone").map(zone) {
            None => Some(TimeZone::UTC),
            Some(Ok(zone)) => Some(zone),
            Some(Err(message)) => {
                reader.complain("timezone", Constraint::Enum, format_args!("is wrong: {message}"));
                None
            }
        };
        let opens = if reader.has("cron") { read_cron(reader) } else { read_daily(reader) };
        Some(Window { opens: opens?, zone: zone? })
    }

    /// Whether it is open.
    pub fn contains(&self, now: Timestamp) -> bool {
        match &self.opens {
            Opens::Cron { cron, duration } => {
                let since = now.checked_sub(*duration).unwrap_or(Timestamp::MIN);
                cron.next(since, &self.zone).is_some_and(|start| start <= now)
            }
            Opens::Daily { until, .. } => {
                let mut spans = self.spans(now, -until.days_back(), 1);
                spans.any(|(open, close)| open <= now && now < close)
            }
        }
    }

    /// When it next opens or closes: the first time after `now` at which `contains` answers otherwise.
    ///
    /// `None` if it never does. For windows that overlap each other for very long it is a time at which
    /// to ask again.
    pub fn next_edge(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.opens {
            Opens::Cron { cron, duration } => {
                let since = now.checked_sub(*duration).unwrap_or(Timestamp::MIN);
                let start = cron.next(since, &self.zone)?;
                if now < start {
                    return Some(start);
                }
                // Open: it closes when no later start keeps it so.
                let (mut last, mut close) = (start, later(start, *duration));
                for _ in 0..EDGES_MAX {
                    match cron.next(last, &self.zone) {
                        Some(again) if again <= close => {
                            (last, close) = (again, later(again, *duration));
                        }
                        Some(_) | None => break,
                    }
                }
                Some(close)
            }
            Opens::Daily { until, .. } => {
                let open = self.contains(now);
                let mut edges: Vec<Timestamp> = self
                    .spans(now, -until.days_back(), 8)
                    .flat_map(|(open, close)| [open, close])
                    .filter(|edge| now < *edge)
                    .collect();
                edges.sort_unstable();
                edges.dedup();
                edges.into_iter().find(|edge| self.contains(*edge) != open)
            }
        }
    }

    /// From when to when a daily window is open, for the days around now.
    fn spans(
        &self,
        now: Timestamp,
        from: i32,
        to: i32,
    ) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let today = self.zone.to_datetime(now).date();
        (from..=to).filter_map(move |offset| {
            let Opens::Daily { days, start, until } = &self.opens else { return None };
            let date = today.checked_add(offset.days()).ok().filter(|date| days.has(*date))?;
            let open = first_instant(date, start.0, &self.zone)?;
            let close = match until {
                Until::Duration(duration) => later(open, *duration),
                Until::End(end) if start < end => first_instant(date, end.0, &self.zone)?,
                Until::End(end) => first_instant(date.tomorrow().ok()?, end.0, &self.zone)?,
            };
            Some((open, close))
        })
    }

    /// As `parse` reads it.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut json = Map::new();
        let mut put = |name: &str, value: Value| {
            json.insert(name.to_owned(), value);
        };
        match &self.opens {
            Opens::Cron { cron, duration } => {
                put("cron", json!(cron.as_str()));
                put("duration", json!(Written(*duration).to_string()));
            }
            Opens::Daily { days, start, until } => {
                if *days != Days::EVERY {
                    put("days", days.names().collect());
                }
                put("start", json!(start.to_string()));
                match until {
                    Until::End(end) => put("end", json!(end.to_string())),
                    Until::Duration(duration) => {
                        put("duration", json!(Written(*duration).to_string()));
                    }
                }
            }
        }
        put("timezone", json!(zone_name(&self.zone)));
        json
    }
}

impl Until {
    /// How many days back a window may have opened that is still open.
    fn days_back(self) -> i32 {
        match self {
            Until::End(_) => 1,
            Until::Duration(duration) => {
                i32::try_from(duration.as_hours() / 24).unwrap_or_default().clamp(0, 7) + 2
            }
        }
    }
}

fn read_cron(reader: &mut Reader<'_>) -> Option<Opens> {
    let text = reader.text("cron");
    let cron = text.map(Cron::parse).and_then(|cron| {
        cron.map_err(|message| {
            reader.complain("cron", Constraint::Pattern, format_args!("is wrong: {message}"));
        })
        .ok()
    });
    let duration = reader.span("duration", (OPEN_MIN, OPEN_MAX));
    for name in ["days", "start", "end"] {
        if reader.get(name).is_some() {
            let message = "does not go together with cron, which says when; give `duration` for \
                           how long";
            reader.complain(name, Constraint::Unique, message);
        }
    }
    if !reader.has("duration") {
        let message = "is missing: say how long it stays open from each start, like 4h";
        reader.complain("duration", Constraint::Required, message);
    }
    Some(Opens::Cron { cron: cron?, duration: duration? })
}

fn read_daily(reader: &mut Reader<'_>) -> Option<Opens> {
    reader.get("cron");
    let timeless = !["days", "start", "end", "duration"].iter().any(|name| reader.has(name));
    let days = match reader.has("days") {
        true => reader.list("days", 7, Days::read),
        false => {
            reader.get("days");
            Some(vec![Days::EVERY])
        }
    };
    let start = read_time(reader, "start", WallTime(0));
    let end = read_time(reader, "end", WallTime(DAY_MINUTES));
    let duration = reader.span("duration", (OPEN_MIN, OPEN_MAX));
    if timeless {
        let message = "is missing: say when, with `cron` and `duration`, or with `days`, `start` and \
                       `end`";
        reader.complain("cron", Constraint::Required, message);
        return None;
    }
    if reader.has("end") && reader.has("duration") {
        reader.complain("duration", Constraint::Unique, "says the same as end; give one of them");
        return None;
    }
    let timed = reader.has("end") || reader.has("duration");
    if reader.has("start") != timed {
        let missing = if timed { "start" } else { "end" };
        let message = "is missing: start and end go together; leave both out for whole days";
        reader.complain(missing, Constraint::Required, message);
        return None;
    }
    let (start, end) = (start?, end?);
    if start == end || start.0 == DAY_MINUTES {
        let message = "is not after start; for whole days write 00:00 to 24:00, or leave both out";
        reader.complain("end", Constraint::Min, message);
        return None;
    }
    let until = match (reader.has("duration"), duration) {
        (true, duration) => Until::Duration(duration?),
        (false, _) => Until::End(end),
    };
    let days = days?.into_iter().fold(0, |set, day| set | day.0);
    Some(Opens::Daily { days: Days(days), start, until })
}

/// A time on the wall, or `absent` if there is none. `None` after a complaint.
fn read_time(reader: &mut Reader<'_>, name: &'static str, absent: WallTime) -> Option<WallTime> {
    let Some(value) = reader.get(name) else { return Some(absent) };
    let time = WallTime::read(value);
    if time.is_none() {
        let message = "must be an hour from 0 to 24, or a time like \"22:30\"";
        reader.complain(name, Constraint::Pattern, message);
    }
    time
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Window::parse(&value, "window").map_err(|errors| sentence(&errors))
    }
}

/// All complaints as one error of serde, for documents that we wrote ourselves.
pub(crate) fn sentence<E: serde::de::Error>(errors: &[FieldError]) -> E {
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    E::custom(messages.join("; "))
}

/// Several windows; open when one of them is. None at all means always.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Windows(pub Vec<Window>);

impl Windows {
    /// Reads a list of windows; an empty list is no limit.
    ///
    /// # Errors
    /// One complaint a field.
    pub fn parse(value: &Value, field: &str) -> Result<Windows, Vec<FieldError>> {
        let Value::Array(items) = value else {
            return Err(vec![FieldError::wrong_type(field, "a list of windows", value)]);
        };
        if WINDOWS_MAX < items.len() {
            let message = format!("{field} has {} windows; at most {WINDOWS_MAX}", items.len());
            return Err(vec![FieldError::new(field, Constraint::Max, message)]);
        }
        let mut windows = Vec::with_capacity(items.len());
        let mut complaints = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match Window::parse(item, &format!("{field}[{index}]")) {
                Ok(window) => windows.push(window),
                Err(wrong) => complaints.extend(wrong),
            }
        }
        if complaints.is_empty() { Ok(Windows(windows)) } else { Err(complaints) }
    }

    /// Whether one is open.
    pub fn contains(&self, now: Timestamp) -> bool {
        self.0.is_empty() || self.0.iter().any(|window| window.contains(now))
    }

    /// The first time after `now` at which `contains` answers otherwise; `None` if it never does.
    pub fn next_edge(&self, now: Timestamp) -> Option<Timestamp> {
        let open = self.contains(now);
        let mut at = now;
        for _ in 0..EDGES_MAX {
            at = self.0.iter().filter_map(|window| window.next_edge(at)).min()?;
            if self.contains(at) != open {
                break;
            }
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests;
