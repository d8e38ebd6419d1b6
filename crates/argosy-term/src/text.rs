//! Text on which no terminal acts, in lines that fit.

#[cfg(test)]
mod tests;

/// The text without anything that moves a cursor, changes a colour or turns the reading order.
pub fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
            c if c.is_control() => None,
            // Marks that turn or hide text: bidirectional controls, zero-width characters, BOM, tags.
            '\u{061c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => None,
            c => Some(c),
        })
        .collect()
}

/// Whether no terminal acts on a character.
pub fn is_harmless(c: char) -> bool {
    c == '\n' || clean(c.encode_utf8(&mut [0; 4])).starts_with(c)
}

/// JSON that is the same JSON (or, if `yaml`, the same YAML), but on whose text no terminal acts; with a line end.
pub fn escape(text: &str, yaml: bool) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if is_harmless(c) {
            out.push(c);
        } else if yaml {
            // YAML knows no pairs of surrogates.
            out.push_str(&format!("\\U{:08x}", u32::from(c)));
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.push('\n');
    out
}

/// The text in lines of at most so many columns, broken between words; a word that is longer than a line
/// is left whole, so that it can be copied.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text with so many spaces in front of each line.
pub fn indent(text: &str, columns: usize) -> String {
    text.lines().map(|line| format!("{:columns$}{line}\n", "")).collect()
}
