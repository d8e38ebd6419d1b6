//! As much of Rust's grammar as the checks need: where code ends and comments or literals begin,
//! words, and functions.

use std::ops::Range;

/// The text with the insides of comments, strings and characters blanked out; every line stays where
/// it is.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&char) = chars.get(at) {
        let end = literal_end(&chars, at);
        if end == at {
            code.push(char);
            at += 1;
            continue;
        }
        for char in chars.get(at..end).unwrap_or_default() {
            code.push(if *char == '\n' { '\n' } else { ' ' });
        }
        at = end;
    }
    code
}

/// Where the comment or literal that starts at `at` ends; `at` if none does.
fn literal_end(chars: &[char], at: usize) -> usize {
    let is = |offset: usize, char: char| chars.get(at + offset) == Some(&char);
    if is(0, '/') && is(1, '/') {
        return find(chars, at, &['\n']);
    }
    if is(0, '/') && is(1, '*') {
        return block_comment_end(chars, at);
    }
    if is(0, '"') {
        return quoted_end(chars, at + 1, '"');
    }
    if is(0, 'r') {
        let hashes = chars.iter().skip(at + 1).take_while(|char| **char == '#').count();
        if is(1 + hashes, '"') {
            let close: Vec<char> =
                std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let inside = at + 2 + hashes;
            return (find(chars, inside, &close) + close.len()).min(chars.len());
        }
    }
    // A quote that is neither `'\…'` nor `'x'` begins a lifetime.
    if is(0, '\'') && (is(1, '\\') || is(2, '\'')) {
        return quoted_end(chars, at + 1, '\'');
    }
    at
}

fn quoted_end(chars: &[char], mut at: usize, quote: char) -> usize {
    while let Some(char) = chars.get(at) {
        match char {
            '\\' => at += 2,
            char if *char == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn block_comment_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        match chars.get(at..at + 2) {
            Some(['/', '*']) => (depth, at) = (depth + 1, at + 2),
            Some(['*', '/']) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// Where `wanted` is next; the end if it is not.
fn find(chars: &[char], from: usize, wanted: &[char]) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    rest.windows(wanted.len()).position(|window| window == wanted).map_or(chars.len(), |n| from + n)
}

/// Where `word` stands in `code`, not as a part of a longer name, in bytes.
pub(crate) fn places<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let opens = word.starts_with(is_name_char);
    let closes = word.ends_with(is_name_char);
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = code.get(..*at).and_then(|text| text.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|text| text.chars().next());
        let longer_before = opens && before.is_some_and(is_name_char);
        let longer_after = closes && after.is_some_and(is_name_char);
        !longer_before && !longer_after
    })
}

fn is_name_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// The number, counted from 1, of the line with this byte.
pub(crate) fn line(text: &str, at: usize) -> usize {
    1 + text.get(..at).unwrap_or(text).matches('\n').count()
}

/// One function with a body.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    /// Attributes and visibility.
    pub(crate) before: &'a str,
    /// From `fn` to the closing brace, in bytes.
    pub(crate) range: Range<usize>,
}

/// The functions of a text that went through `code_only`, outer before inner.
pub(crate) fn functions(code: &str) -> Vec<Function<'_>> {
    places(code, "fn").filter_map(|at| function(code, at)).collect()
}

fn function(code: &str, at: usize) -> Option<Function<'_>> {
    let rest = code.get(at + 2..)?.trim_start();
    let name = rest.get(..rest.find(|char| !is_name_char(char))?)?;
    if name.is_empty() {
        return None; // a function pointer's type
    }
    let before = code.get(..at)?;
    let start = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let mut depth = 0_i32;
    let mut in_body = false;
    for (offset, char) in code.get(at..)?.char_indices() {
        match char {
            ';' if depth == 0 => return None, // declared, not defined
            '{' if depth == 0 => (in_body, depth) = (true, 1),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if in_body && depth == 0 {
            return Some(Function {
                name,
                before: code.get(start..at)?,
                range: at..at + offset + 1,
            });
        }
    }
    None
}

#[test]
fn comments_and_literals_are_blanked_and_lines_stay() {
    let check = |text: &str, code: &str| assert_eq!(code_only(text), code, "of {text}");
    check("a // async\nb", "a         \nb");
    check("a /* x /* y */ z\n */ b", "a               \n    b");
    check(r#"f("async \" // no", 'x', '\'', '"')"#, r"f(                ,    ,     ,    )");
    check("r#\"raw \" quote\"# + b\"x\"", "                 + b   ");
    check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
    check("\"open", "     ");
}

#[test]
fn a_word_is_not_a_part_of_a_name() {
    let check = |code: &str, word: &str, count: usize| {
        assert_eq!(places(code, word).count(), count, "{word} in {code}");
    };
    check("rand::random(); operand; rand_core", "rand", 1);
    check("std::fs::read; std::fsx", "std::fs", 1);
    check("#[ignore] #[ignore = x]", "#[ignore", 2);
}

#[test]
fn functions_are_found_with_their_attributes() {
    let code = "#[test(start_paused = true)]\npub async fn a(x: [u8; 4]) -> u8 {\n g(|| {});\n}\nfn b();\ntype F = fn(u8);";
    let found: Vec<_> = functions(code)
        .iter()
        .map(|function| {
            let text = code.get(function.range.clone()).unwrap_or_default();
            (function.name, function.before.contains("start_paused"), text.lines().count())
        })
        .collect();
    assert_eq!(found, [("a", true, 3)]);
}
