//! A YAML text as a tree that knows where everything stands, and a reader that collects every complaint about it.
//!
//! What a newcomer gets wrong: nothing here stops at the first mistake. A value that cannot be read is complained
//! about and read as nothing; whether the whole is a scenario is asked once, at the end.

use super::read::{ScenarioError, TEXT_LEN_MAX, Warning};
use argosy_core::nearest::nearest;
use jiff::SignedDuration;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::cell::RefCell;
use std::fmt;

/// How many complaints are kept. Whoever has more of them repairs these first.
pub(super) const COMPLAINTS_MAX: usize = 100;

/// How many characters of somebody's text a complaint repeats.
const QUOTE_LEN_MAX: usize = 60;

/// A value, with the place of its first character.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) spot: Spot,
}

/// A place in the text, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Whole(i128),
    Real(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; no key twice.
    Table(Vec<(String, Spot, Node)>),
}

/// Reads a text as a tree.
///
/// # Errors
/// It is no YAML, or more than any scenario has.
pub(super) fn parse(text: &str, file: &str) -> Result<Node, ScenarioError> {
    let refused = |spot: Spot, message: String, fix: &str| ScenarioError {
        file: file.to_owned(),
        line: spot.line,
        column: spot.column,
        key: String::new(),
        message,
        fix: fix.to_owned(),
    };
    if TEXT_LEN_MAX < text.len() {
        let message = format!("it is {} bytes long; at most {TEXT_LEN_MAX}", text.len());
        return Err(refused(
            Spot::default(),
            message,
            "a large fleet is written as `fleet.generate`, not node by node",
        ));
    }
    // The parser's own limits (depth, aliases, how much they stand for) hold as they are.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Option<Spanned<Raw>>>(text, options) {
        Ok(Some(tree)) => Ok(located(tree)),
        Ok(None) => {
            Err(refused(Spot::default(), "it is empty".to_owned(), "see `argosy sim list`"))
        }
        Err(error) => {
            let spot = error.location().map_or_else(Spot::default, |place| Spot {
                line: u32::try_from(place.line()).unwrap_or(u32::MAX),
                column: u32::try_from(place.column()).unwrap_or(u32::MAX),
            });
            let why = error.without_snippet().to_string();
            let why: String = why.lines().next().unwrap_or_default().chars().take(200).collect();
            Err(refused(spot, format!("it cannot be understood: {}", why.escape_debug()), ""))
        }
    }
}

/// What the parser gives: the same, with its own places.
enum Raw {
    Null,
    Bool(bool),
    Whole(i128),
    Real(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Table(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn located(raw: Spanned<Raw>) -> Node {
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(flag) => Value::Bool(flag),
        Raw::Whole(number) => Value::Whole(number),
        Raw::Real(number) => Value::Real(number),
        Raw::Text(text) => Value::Text(text),
        Raw::List(items) => Value::List(items.into_iter().map(located).collect()),
        Raw::Table(entries) => {
            let entry = |(key, value): (Spanned<String>, Spanned<Raw>)| {
                (key.value, spot(key.referenced), located(value))
            };
            Value::Table(entries.into_iter().map(entry).collect())
        }
    };
    Node { value, spot: spot(raw.referenced) }
}

fn spot(place: serde_saphyr::Location) -> Spot {
    Spot {
        line: u32::try_from(place.line()).unwrap_or(u32::MAX),
        column: u32::try_from(place.column()).unwrap_or(u32::MAX),
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Raw, E> {
        Ok(Raw::Whole(number))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Raw, E> {
        Ok(i128::try_from(number).map_or(Raw::Real(number as f64), Raw::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw, E> {
        Ok(Raw::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Table(entries))
    }
}

/// Where complaints go.
pub(super) struct Desk<'a> {
    file: &'a str,
    /// Whether the file is Navarch's: Go's durations, numbers for texts, and unknown keys that are only told.
    navarch: bool,
    errors: RefCell<Vec<ScenarioError>>,
    warnings: RefCell<Vec<Warning>>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(file: &'a str, navarch: bool) -> Self {
        Self { file, navarch, errors: RefCell::default(), warnings: RefCell::default() }
    }

    /// `made`, if nobody complained; the rest in the order of the file.
    pub(super) fn close<T>(self, made: Option<T>) -> Result<(T, Vec<Warning>), Vec<ScenarioError>> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| (error.line, error.column));
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(|warning| (warning.line, warning.column));
        match made {
            Some(made) if errors.is_empty() => Ok((made, warnings)),
            Some(_) | None => Err(errors),
        }
    }

    fn error(&self, spot: Spot, key: &str, message: String, fix: String) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < COMPLAINTS_MAX {
            let (file, key) = (self.file.to_owned(), key.to_owned());
            let Spot { line, column } = spot;
            errors.push(ScenarioError { file, line, column, key, message, fix });
        }
    }

    fn warn(&self, spot: Spot, key: &str, message: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < COMPLAINTS_MAX {
            let (file, key) = (self.file.to_owned(), key.to_owned());
            let Spot { line, column } = spot;
            warnings.push(Warning { file, line, column, key, message });
        }
    }
}

/// One value of the tree, and where complaints about it go.
#[derive(Clone)]
pub(super) struct At<'a> {
    desk: &'a Desk<'a>,
    pub(super) node: &'a Node,
    /// `trouble.hardware[2].name`; empty for the whole.
    pub(super) key: String,
}

impl<'a> At<'a> {
    /// The whole.
    pub(super) fn root(desk: &'a Desk<'a>, node: &'a Node) -> Self {
        Self { desk, node, key: String::new() }
    }

    pub(super) fn error(&self, message: impl Into<String>, fix: impl Into<String>) {
        self.desk.error(self.node.spot, &self.key, message.into(), fix.into());
    }

    /// A complaint about something inside, by its path: `nodeCount`, `zones[1]`.
    pub(super) fn error_inside(&self, path: &str, message: impl Into<String>) {
        let spot = inside(self.node, path);
        let key = if path.is_empty() { self.key.clone() } else { format!("{}.{path}", self.key) };
        self.desk.error(spot, &key, message.into(), String::new());
    }

    pub(super) fn warn(&self, message: impl Into<String>) {
        self.desk.warn(self.node.spot, &self.key, message.into());
    }

    fn unfit(&self, wanted: &str, fix: &str) {
        self.error(format!("{} where {wanted} is expected", self.node.value.noun()), fix);
    }

    /// A table; a complaint if it is none.
    pub(super) fn table(&self) -> Option<Table<'a>> {
        match &self.node.value {
            Value::Table(entries) => {
                Some(Table { at: self.clone(), entries, known: RefCell::default() })
            }
            Value::Null
            | Value::Bool(_)
            | Value::Whole(_)
            | Value::Real(_)
            | Value::Text(_)
            | Value::List(_) => {
                self.unfit("a table", "write `key: value` lines");
                None
            }
        }
    }

    pub(super) fn list(&self) -> Vec<At<'a>> {
        let Value::List(items) = &self.node.value else {
            self.unfit("a list", "write lines that begin with `- `");
            return Vec::new();
        };
        let item =
            |(place, node)| At { desk: self.desk, node, key: format!("{}[{place}]", self.key) };
        items.iter().enumerate().map(item).collect()
    }

    /// Every entry of a table whose keys are anybody's.
    pub(super) fn entries(&self) -> Vec<(String, At<'a>)> {
        let Value::Table(entries) = &self.node.value else {
            self.unfit("a table", "write `key: value` lines");
            return Vec::new();
        };
        let entry = |(key, _, node): &'a (String, Spot, Node)| {
            (key.clone(), At { desk: self.desk, node, key: dotted(&self.key, key) })
        };
        entries.iter().map(entry).collect()
    }

    pub(super) fn text(&self) -> Option<String> {
        match &self.node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Whole(number) if self.desk.navarch => Some(number.to_string()),
            Value::Real(number) if self.desk.navarch => Some(number.to_string()),
            Value::Bool(flag) if self.desk.navarch => Some(flag.to_string()),
            Value::Null
            | Value::Bool(_)
            | Value::Whole(_)
            | Value::Real(_)
            | Value::List(_)
            | Value::Table(_) => {
                self.unfit("a text", "put it in quotes if it is one");
                None
            }
        }
    }

    /// A text in one line, not empty and not longer than this.
    pub(super) fn line(&self, len_max: usize) -> Option<String> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.error("it is empty", "write at least one letter, or leave the key out");
        } else if len_max < text.len() {
            self.error(format!("it is {} bytes long; at most {len_max}", text.len()), "");
        } else if let Some(found) = text.chars().find(|char| char.is_control()) {
            self.error(format!("it has the control character {}", found.escape_default()), "");
        } else {
            return Some(text);
        }
        None
    }

    /// One of these words.
    pub(super) fn word(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text()?;
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(&text)).copied();
        if found.is_none() {
            self.unknown("word", &text, words);
        }
        found
    }

    /// Complains that something is called like nothing there is.
    pub(super) fn unknown(&self, noun: &str, text: &str, known: &[&str]) {
        self.error(format!("there is no {noun} `{}`", quoted(text)), meant(text, known));
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match &self.node.value {
            Value::Bool(flag) => return Some(*flag),
            // To Go's reader these are flags where one is wanted.
            Value::Text(text) if self.desk.navarch => match text.to_lowercase().as_str() {
                "yes" | "on" | "y" => return Some(true),
                "no" | "off" | "n" => return Some(false),
                _ => {}
            },
            Value::Null
            | Value::Whole(_)
            | Value::Real(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Table(_) => {}
        }
        self.unfit("`true` or `false`", "");
        None
    }

    /// A number between these.
    pub(super) fn number(&self, least: f64, most: f64) -> Option<f64> {
        let number = match self.node.value {
            Value::Whole(number) => number as f64,
            Value::Real(number) => number,
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Table(_) => {
                self.unfit("a number", "");
                return None;
            }
        };
        if (least..=most).contains(&number) {
            return Some(number);
        }
        self.error(format!("{number} is outside of what is possible"), between(&least, &most));
        None
    }

    /// A probability, or a part of something.
    pub(super) fn part(&self) -> Option<f64> {
        self.number(0.0, 1.0)
    }

    /// A whole number between these.
    pub(super) fn whole(&self, least: u64, most: u64) -> Option<u64> {
        let number = match self.node.value {
            Value::Whole(number) => number,
            // Go writes 8.0 nowhere; people do, and mean 8.
            Value::Real(number) if number.fract() == 0.0 && number.abs() < 1e18 => number as i128,
            Value::Null
            | Value::Bool(_)
            | Value::Real(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Table(_) => {
                self.unfit("a whole number", "");
                return None;
            }
        };
        match u64::try_from(number) {
            Ok(number) if (least..=most).contains(&number) => Some(number),
            Ok(_) | Err(_) => {
                let number = quoted(&number.to_string());
                self.error(
                    format!("{number} is outside of what is possible"),
                    between(&least, &most),
                );
                None
            }
        }
    }

    /// A whole number between these, as this crate counts most things.
    pub(super) fn count(&self, least: u32, most: u32) -> Option<u32> {
        self.whole(least.into(), most.into()).and_then(|number| u32::try_from(number).ok())
    }

    /// A length of time between these: `90s`, `1h30m`, `54d`; in Navarch's files as Go writes it.
    pub(super) fn span(
        &self,
        least: SignedDuration,
        most: SignedDuration,
    ) -> Option<SignedDuration> {
        let example = "write a number and a unit, like 500ms, 90s, 10m, 24h or 54d";
        let text = match &self.node.value {
            Value::Text(text) => text.clone(),
            // The one number that needs no unit.
            Value::Whole(0) => "0s".to_owned(),
            Value::Null
            | Value::Bool(_)
            | Value::Whole(_)
            | Value::Real(_)
            | Value::List(_)
            | Value::Table(_) => {
                self.unfit("a length of time", example);
                return None;
            }
        };
        let span = if self.desk.navarch {
            go_duration(&text)
        } else {
            argosy_core::span::parse(text.trim()).ok()
        };
        let Some(span) = span else {
            self.error(format!("`{}` is no length of time", quoted(&text)), example);
            return None;
        };
        if (least..=most).contains(&span) {
            return Some(span);
        }
        let written = argosy_core::span::Written;
        let message = format!("{} is outside of what is possible", quoted(&text));
        self.error(message, between(&written(least), &written(most)));
        None
    }

    /// As JSON; for what is free here and checked elsewhere.
    pub(super) fn json(&self) -> serde_json::Value {
        json(self.node)
    }
}

/// A table whose keys are ours.
pub(super) struct Table<'a> {
    pub(super) at: At<'a>,
    entries: &'a [(String, Spot, Node)],
    /// Every key that was asked for.
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    /// What stands under a key; nothing if it is `null` or not there.
    pub(super) fn get(&self, key: &'static str) -> Option<At<'a>> {
        self.known.borrow_mut().push(key);
        let (_, _, node) = self.entries.iter().find(|(name, _, _)| name == key)?;
        if node.value == Value::Null {
            return None;
        }
        Some(At { desk: self.at.desk, node, key: dotted(&self.at.key, key) })
    }

    /// The same, and a complaint if it is not there.
    pub(super) fn need(&self, key: &'static str, example: &str) -> Option<At<'a>> {
        let found = self.get(key);
        if found.is_none() {
            self.at.error(format!("`{key}` is missing"), format!("for example `{key}: {example}`"));
        }
        found
    }

    /// Whether a key is there.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Complains about every key that nobody asked for.
    pub(super) fn end(self) {
        let known = self.known.borrow();
        for (key, spot, _) in
            self.entries.iter().filter(|(key, _, _)| !known.contains(&key.as_str()))
        {
            let path = dotted(&self.at.key, &quoted(key));
            let desk = self.at.desk;
            if desk.navarch {
                desk.warn(*spot, &path, "nobody reads this key".to_owned());
            } else {
                desk.error(*spot, &path, "unknown key".to_owned(), meant(key, &known));
            }
        }
    }
}

impl Value {
    fn noun(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "`true` or `false`",
            Value::Whole(_) | Value::Real(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Somebody's text, short and in one line.
pub(super) fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTE_LEN_MAX).collect();
    let cut = if start.len() < text.len() { "…" } else { "" };
    format!("{}{cut}", start.escape_debug())
}

fn meant(word: &str, known: &[&str]) -> String {
    // Words are asked for more than once where the first answer decides about the second.
    let mut words: Vec<&str> = Vec::new();
    for word in known {
        if !words.contains(word) {
            words.push(word);
        }
    }
    let short: String = word.chars().take(QUOTE_LEN_MAX).collect();
    match nearest(&short, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            words.truncate(40);
            format!("there are: {}", words.join(", "))
        }
    }
}

fn between(least: &impl fmt::Display, most: &impl fmt::Display) -> String {
    format!("write something from {least} to {most}")
}

fn dotted(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The place of something inside, or of the nearest thing around it.
fn inside(node: &Node, path: &str) -> Spot {
    let mut found = node;
    for word in path.split(['.', '[', ']']).filter(|word| !word.is_empty()) {
        let next = match &found.value {
            Value::Table(entries) => {
                entries.iter().find(|(key, _, _)| key == word).map(|(_, _, node)| node)
            }
            Value::List(items) => word.parse().ok().and_then(|place: usize| items.get(place)),
            Value::Null | Value::Bool(_) | Value::Whole(_) | Value::Real(_) | Value::Text(_) => {
                None
            }
        };
        let Some(next) = next else { break };
        found = next;
    }
    found.spot
}

fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Whole(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => u64::try_from(*number).map_or_else(|_| (*number as f64).into(), Into::into),
        },
        Value::Real(number) => (*number).into(),
        Value::Text(text) => text.clone().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Table(entries) => {
            entries.iter().map(|(key, _, node)| (key.clone(), json(node))).collect()
        }
    }
}

/// Reads `1h30m`, `500ms`, `1.5s`: Go's form. None that is negative.
fn go_duration(text: &str) -> Option<SignedDuration> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let text = text.trim();
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let (mut seconds, mut given) = (0.0_f64, false);
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|char: char| char.is_ascii_digit() || char == '.');
        let (unit, after) = after.split_at(unit_end.unwrap_or(after.len()));
        let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit)?;
        seconds += number.parse::<f64>().ok()? * factor;
        (rest, given) = (after, true);
    }
    let whole = SignedDuration::try_from_secs_f64(seconds).ok()?;
    given.then_some(whole)
}
