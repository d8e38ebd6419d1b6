//! Patterns with `%` and `_`.

use super::value::write_quoted;
use std::fmt;

/// A pattern, ready to be matched.
///
/// Matching takes at most pattern length times text length steps, whatever the two are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Like {
    pieces: Vec<Piece>,
    fold: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// Any text, none included. Never two in a row.
    Many,
    /// Any one character.
    One,
    /// This character, folded if the pattern is.
    Just(char),
}

impl Like {
    /// The longest pattern a search may hold, in characters. It is tried against strings in specs,
    /// which may be as long as a whole document; names and labels are at most 63 long.
    pub(super) const LEN_MAX: usize = 256;

    /// Reads a pattern; `fold` ignores case.
    pub(super) fn new(pattern: &str, fold: bool) -> Self {
        let mut pieces = Vec::with_capacity(pattern.len());
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let piece = match c {
                '%' => Piece::Many,
                '_' => Piece::One,
                // A backslash at the very end is plain.
                '\\' => Piece::Just(chars.next().unwrap_or(c)),
                plain => Piece::Just(plain),
            };
            if piece != Piece::Many || pieces.last() != Some(&Piece::Many) {
                pieces.push(folded(piece, fold));
            }
        }
        Self { pieces, fold }
    }

    /// Matches what holds this text somewhere.
    pub(super) fn containing(text: &str) -> Self {
        let middle = text.chars().map(Piece::Just);
        let pieces = [Piece::Many].into_iter().chain(middle).chain([Piece::Many]).collect();
        Self { pieces, fold: false }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let mut pieces = self.pieces.as_slice();
        let mut rest = text.chars();
        // Where to go on if the latest `%` has to take one character more. Earlier ones need not be
        // tried again: what they leave is never more than what the latest can skip.
        let mut retry: Option<(&[Piece], std::str::Chars<'_>)> = None;
        loop {
            match pieces.split_first() {
                Some((Piece::Many, after)) => {
                    pieces = after;
                    retry = Some((after, rest.clone()));
                    continue;
                }
                Some((piece, after)) => {
                    if let Some(c) = rest.next()
                        && self.fits(*piece, c)
                    {
                        pieces = after;
                        continue;
                    }
                }
                None if rest.as_str().is_empty() => return true,
                None => {}
            }
            let Some((after, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            pieces = after;
            rest = from.clone();
        }
    }

    fn fits(&self, piece: Piece, c: char) -> bool {
        match piece {
            Piece::Many | Piece::One => true,
            Piece::Just(wanted) if self.fold => wanted == fold(c),
            Piece::Just(wanted) => wanted == c,
        }
    }
}

fn folded(piece: Piece, wanted: bool) -> Piece {
    match piece {
        Piece::Just(c) if wanted => Piece::Just(fold(c)),
        plain @ (Piece::Many | Piece::One | Piece::Just(_)) => plain,
    }
}

/// Lower case, for the characters whose lower case is one character.
fn fold(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

impl fmt::Display for Like {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pattern = String::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            match piece {
                Piece::Many => pattern.push('%'),
                Piece::One => pattern.push('_'),
                Piece::Just(c) => {
                    if matches!(c, '%' | '_' | '\\') {
                        pattern.push('\\');
                    }
                    pattern.push(*c);
                }
            }
        }
        f.write_str(if self.fold { "ilike " } else { "like " })?;
        write_quoted(f, &pattern)
    }
}
