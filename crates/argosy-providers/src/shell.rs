//! Words for shells and for units of systemd: the only two places where a text could become a command.

use std::fmt::Write;

/// A text as one word of a POSIX shell, whatever it holds.
///
/// A NUL cannot be said in a word and is left out.
pub(crate) fn quote(text: &str) -> String {
    let text = text.replace('\0', "");
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Words as one command line of a POSIX shell.
pub(crate) fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// A text as one word of a systemd command line (`ExecStart=`), where `%` and `$` mean something, too.
pub(crate) fn unit_word(text: &str) -> String {
    let mut word = String::from("\"");
    for char in text.chars() {
        match char {
            '\0' => {}
            '"' => word.push_str("\\\""),
            '\\' => word.push_str("\\\\"),
            '%' => word.push_str("%%"),
            '$' => word.push_str("$$"),
            char if char.is_ascii_control() => _ = write!(word, "\\x{:02x}", char as u32),
            char => word.push(char),
        }
    }
    word.push('"');
    word
}

#[cfg(test)]
mod tests;
