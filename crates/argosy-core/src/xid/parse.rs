//! Reads a catalogue: comma-separated values that a person can edit and a diff can show.
//!
//! The first line names the version, the second the columns; then one code a line, in any order.
//! Lines that start with `#` and empty lines are skipped. Everything is checked, because a catalogue
//! that was read in part would judge machines by what is left of it.

use super::{Action, Catalogue, Class, NvlinkKey, Row};
use crate::field::quotable;
use crate::nearest::nearest;
use std::collections::BTreeMap;

/// The longest catalogue, in bytes: ten times the built-in one. More is some other file.
pub const TEXT_LEN_MAX: usize = 1 << 20;
/// The longest field, in bytes: meanings are repeated in every finding.
pub const FIELD_LEN_MAX: usize = 300;

const COLUMNS: [&str; 7] = ["kind", "code", "name", "class", "action", "source", "meaning"];

/// What is wrong with a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct CatalogueError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

pub(super) fn catalogue(text: &str) -> Result<Catalogue, CatalogueError> {
    let at = |line| move |message| CatalogueError { line, message };
    if TEXT_LEN_MAX < text.len() {
        let len = text.len();
        return Err(at(1)(format!(
            "the catalogue is {len} bytes long; at most {TEXT_LEN_MAX} are allowed"
        )));
    }
    // Spreadsheets begin a file with it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let end = text.lines().count().max(1);
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));

    let (line, first) = lines.next().unwrap_or((end, ""));
    let mut catalogue = Catalogue {
        version: version(first).map_err(at(line))?,
        xids: BTreeMap::new(),
        sxids: BTreeMap::new(),
        nvlinks: BTreeMap::new(),
    };
    let (line, second) = lines.next().unwrap_or((end, ""));
    if fields(second).map_err(at(line))? != COLUMNS {
        let columns = COLUMNS.join(",");
        return Err(at(line)(format!("the second line must name the columns: {columns}")));
    }
    for (line, text) in lines {
        add(&mut catalogue, text).map_err(at(line))?;
    }
    if catalogue.xids.is_empty() {
        return Err(at(end)("there is no line for any Xid: is the file cut off?".to_owned()));
    }
    Ok(catalogue)
}

fn version(line: &str) -> Result<String, String> {
    let fields = fields(line)?;
    let is_mark = |char: char| char.is_ascii_alphanumeric() || ".-_".contains(char);
    match fields.split_first() {
        Some((word, rest)) if word == "version" => match rest.split_first() {
            // A spreadsheet fills the line up with empty fields.
            Some((version, rest))
                if !version.is_empty()
                    && version.chars().all(is_mark)
                    && rest.iter().all(String::is_empty) =>
            {
                Ok(version.clone())
            }
            Some(_) | None => Err("the version may hold letters, digits, `.`, `-` and `_`, as in \
                                   `version,2025-10.1`"
                .to_owned()),
        },
        Some(_) | None => {
            Err("the first line must name the version, as in `version,2025-10.1`".to_owned())
        }
    }
}

fn add(catalogue: &mut Catalogue, line: &str) -> Result<(), String> {
    let [kind, code, name, class, action, source, meaning] =
        <[String; COLUMNS.len()]>::try_from(fields(line)?).map_err(|few| {
            format!("there are {} fields; {} are needed", few.len(), COLUMNS.len())
        })?;
    let is_name = |char: char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_';
    if !name.split('/').all(|name| !name.is_empty() && name.chars().all(is_name)) {
        return Err(format!(
            "the name `{}` may hold upper-case letters, digits and `_`, and `/` between names",
            quotable(&name)
        ));
    }
    if source.is_empty() {
        return Err("the source must say where the line comes from".to_owned());
    }
    let class = Class::parse(&class)
        .ok_or_else(|| unknown("class", &class, Class::ALL.iter().map(|class| class.as_str())))?;
    let action = Action::parse(&action).ok_or_else(|| {
        unknown("action", &action, Action::ALL.iter().map(|action| action.as_str()))
    })?;
    match kind.as_str() {
        "xid" | "sxid" => {
            let number = whole(&code)?;
            let row = Row { code: number, name, class, action, source, meaning };
            let rows = if kind == "xid" { &mut catalogue.xids } else { &mut catalogue.sxids };
            if rows.insert(number, row).is_some() {
                return Err(format!("{kind} {number} is there twice"));
            }
        }
        "nvlink" => {
            let key = nvlink_key(&code)?;
            let row = Row { code: key.code, name, class, action, source, meaning };
            let rows = catalogue.nvlinks.entry(key).or_default();
            if let Some(unit) = row.units().find(|unit| rows.iter().any(|row| row.is_of(unit))) {
                return Err(format!("nvlink {code} of {unit} is there twice"));
            }
            rows.push(row);
        }
        _ => return Err(unknown("kind", &kind, ["xid", "sxid", "nvlink"])),
    }
    Ok(())
}

/// A code: 1 and up.
fn whole(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("the code `{}` must be a whole number", quotable(text))),
        Ok(code) => Ok(code),
    }
}

/// `149.37/0x00000000`: the Xid, the sub-code, the status.
fn nvlink_key(text: &str) -> Result<NvlinkKey, String> {
    let read = || {
        let (code, rest) = text.split_once('.')?;
        let (sub_code, status) = rest.split_once('/')?;
        let sub_code = sub_code.parse().ok().filter(|sub_code| *sub_code <= 0x3f)?;
        let status = u32::from_str_radix(status.strip_prefix("0x")?, 16).ok()?;
        Some(NvlinkKey { code: whole(code).ok()?, sub_code, status })
    };
    read().ok_or_else(|| {
        format!(
            "the code `{}` must be an Xid, a sub-code up to 63 and a status, as in \
             `149.37/0x00000000`",
            quotable(text)
        )
    })
}

fn unknown<'a>(column: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let meant = nearest(word, known.iter().copied())
        .map(|meant| format!(" Did you mean `{meant}`?"))
        .unwrap_or_default();
    let (word, known) = (quotable(word), known.join(", "));
    format!("there is no {column} `{word}`.{meant} Known are: {known}")
}

/// The fields of a line, by RFC 4180; a field does not go over the end of its line.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line.trim_end();
    loop {
        let (field, after) = field(rest)?;
        if FIELD_LEN_MAX < field.len() {
            let len = field.len();
            return Err(format!(
                "a field is {len} bytes long; at most {FIELD_LEN_MAX} are allowed"
            ));
        }
        if field.chars().any(char::is_control) {
            return Err("a field must not hold control characters".to_owned());
        }
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err("after a closing quote there must be a comma".to_owned()),
        }
        if fields.len() == COLUMNS.len() {
            return Err(format!(
                "there are more than {} fields; one that holds a comma must stand between double \
                 quotes",
                COLUMNS.len()
            ));
        }
    }
}

/// The field a text begins with, and what is behind it.
fn field(text: &str) -> Result<(String, &str), String> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        let (field, after) = text.split_at(end);
        return Ok((field.trim().to_owned(), after));
    };
    let mut field = String::new();
    loop {
        let (inside, after) = rest.split_once('"').ok_or("a quote is not closed")?;
        field.push_str(inside);
        // Two quotes are one that belongs to the field.
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, after)),
        }
    }
}
