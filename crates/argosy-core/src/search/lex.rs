//! From text to tokens.

use super::SearchError;
use crate::field::quotable;
use std::fmt;

/// A token and where it begins, in characters from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spanned {
    pub(super) at: usize,
    pub(super) token: Token,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A field, or a word that should have been quoted.
    Word(String),
    Text(String),
    Number(f64),
    /// An unquoted date or time.
    Date(String),
    Keyword(Keyword),
    Symbol(&'static str),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Like,
    Ilike,
    Is,
    Null,
    Between,
    In,
    True,
    False,
}

const KEYWORDS: [(&str, Keyword); 11] = [
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("like", Keyword::Like),
    ("ilike", Keyword::Ilike),
    ("is", Keyword::Is),
    ("null", Keyword::Null),
    ("between", Keyword::Between),
    ("in", Keyword::In),
    ("true", Keyword::True),
    ("false", Keyword::False),
];

/// Longer ones first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 13] = ["==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ","];

/// All tokens of a text, the last one `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<Spanned>, SearchError> {
    let mut lexer = Lexer { rest: text, at: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let at = lexer.at;
        let token = lexer.token()?;
        let done = token == Token::End;
        tokens.push(Spanned { at, token });
        if done {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn skip_space(&mut self) {
        while self.rest.starts_with([' ', '\t', '\r', '\n']) {
            self.advance();
        }
    }

    fn advance(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.at += 1;
        Some(c)
    }

    fn token(&mut self) -> Result<Token, SearchError> {
        let Some(c) = self.rest.chars().next() else { return Ok(Token::End) };
        if let Some(symbol) = SYMBOLS.iter().copied().find(|s| self.rest.starts_with(s)) {
            for _ in symbol.chars() {
                self.advance();
            }
            return Ok(Token::Symbol(symbol));
        }
        match c {
            '\'' | '"' | '`' => self.string(c),
            '0'..='9' | '-' | '+' => self.number(),
            'A'..='Z' | 'a'..='z' | '_' => {
                let word = self.word(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
                let keyword = KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
                Ok(keyword.map_or(Token::Word(word), |(_, keyword)| Token::Keyword(*keyword)))
            }
            '~' | '*' | '/' | '%' => {
                Err(self.error(format!("`{c}` is not supported; `like` compares with a pattern")))
            }
            other => Err(self.error(format!("`{}` cannot stand here", other.escape_debug()))),
        }
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let mut word = String::new();
        while let Some(c) = self.rest.chars().next().filter(|c| belongs(*c)) {
            word.push(c);
            self.advance();
        }
        word
    }

    fn string(&mut self, quote: char) -> Result<Token, SearchError> {
        let at = self.at;
        self.advance();
        let mut text = String::new();
        loop {
            let error_at = self.at;
            match self.advance() {
                None => {
                    let message = format!("the text that begins here has no closing {quote}");
                    return Err(SearchError { at, message });
                }
                Some(c) if c == quote => {
                    if !self.rest.starts_with(quote) {
                        return Ok(Token::Text(text));
                    }
                    self.advance();
                    text.push(quote);
                }
                Some('\\') => match self.rest.chars().next() {
                    Some(c @ ('\\' | '\'' | '"' | '`')) => {
                        self.advance();
                        text.push(c);
                    }
                    Some(_) | None => {
                        let message = "a backslash may stand before a quote or another backslash";
                        return Err(SearchError { at: error_at, message: message.to_owned() });
                    }
                },
                // Nothing we store holds one, and in a log it would be a line of its own.
                Some(c) if c.is_control() => {
                    let message =
                        format!("the control character {} cannot be searched", c.escape_debug());
                    return Err(SearchError { at: error_at, message });
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn number(&mut self) -> Result<Token, SearchError> {
        let at = self.at;
        let word = self.word(|c| c.is_ascii_alphanumeric() || "+-.:".contains(c));
        let date_like = word.len() >= 10
            && word.bytes().zip(*b"0000-00-00").all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                other => byte == other,
            });
        if date_like {
            return Ok(Token::Date(word));
        }
        let not_a_number = || SearchError {
            at,
            message: format!("`{}` is not a number; text stands in quotes", quotable(&word)),
        };
        read_number(&word).map(Token::Number).ok_or_else(not_a_number)
    }

    fn error(&self, message: String) -> SearchError {
        SearchError { at: self.at, message }
    }
}

/// A decimal number with an optional suffix: `k`, `m`, `g`, `t`, `p` by thousands, with `i` by 1024.
fn read_number(word: &str) -> Option<f64> {
    let lower = word.to_ascii_lowercase();
    let (word, step) = match lower.strip_suffix('i') {
        Some(word) => (word, 1024.0_f64),
        None => (lower.as_str(), 1000.0),
    };
    let power = word.chars().next_back().and_then(|last| "kmgtp".find(last));
    let digits = match power {
        Some(_) => word.get(..word.len() - 1)?,
        None if step == 1024.0 => return None,
        None => word,
    };
    // `f64` also reads words like `inf`.
    if !digits.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b)) {
        return None;
    }
    let factor = power.map_or(1.0, |power| step.powi(i32::try_from(power).unwrap_or(0) + 1));
    digits.parse::<f64>().ok().map(|number| number * factor).filter(|number| number.is_finite())
}

/// As it stands in an error: what was found instead.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(text) | Token::Date(text) => write!(f, "`{}`", quotable(text)),
            Token::Text(text) => write!(f, "the text '{}'", quotable(text)),
            Token::Number(number) => write!(f, "the number {number}"),
            Token::Keyword(keyword) => match KEYWORDS.iter().find(|(_, known)| known == keyword) {
                Some((name, _)) => write!(f, "`{name}`"),
                None => Err(fmt::Error),
            },
            Token::Symbol(symbol) => write!(f, "`{symbol}`"),
            Token::End => f.write_str("the end"),
        }
    }
}
