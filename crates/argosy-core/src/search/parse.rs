//! From tokens to a tree, by recursive descent.

use super::field::{FieldOf, Searchable};
use super::lex::{Keyword, Spanned, Token, tokens};
use super::like::Like;
use super::resource::tri_word;
use super::value::{Scalar, Type};
use super::{Check, Comparison, DEPTH_MAX, SearchError, TERMS_MAX, Test, Tree};
use crate::adapter::Tri;
use crate::field::quotable;
use jiff::Timestamp;
use std::marker::PhantomData;

/// Reads a search text of any length.
pub(super) fn parse<T: Searchable>(text: &str) -> Result<Tree<T::Field>, SearchError> {
    let tokens = tokens(text)?;
    let mut parser: Parser<T> = Parser { tokens, next: 0, depth: 0, terms: 0, of: PhantomData };
    if parser.peek() == &Token::End {
        return Ok(Tree::Everything);
    }
    let tree = parser.any()?;
    if parser.peek() == &Token::End {
        Ok(tree)
    } else {
        Err(parser.expected("`and`, `or` or the end"))
    }
}

struct Parser<T> {
    /// The last one is `End`.
    tokens: Vec<Spanned>,
    next: usize,
    depth: usize,
    terms: usize,
    of: PhantomData<T>,
}

impl<T: Searchable> Parser<T> {
    fn any(&mut self) -> Result<Tree<T::Field>, SearchError> {
        let mut terms = vec![self.all()?];
        while self.take_keyword(Keyword::Or) {
            terms.push(self.all()?);
        }
        Ok(Tree::any(terms))
    }

    fn all(&mut self) -> Result<Tree<T::Field>, SearchError> {
        let mut terms = vec![self.term()?];
        while self.take_keyword(Keyword::And) {
            terms.push(self.term()?);
        }
        Ok(Tree::all(terms))
    }

    fn term(&mut self) -> Result<Tree<T::Field>, SearchError> {
        let at = self.at();
        if self.take_keyword(Keyword::Not) {
            return self.deeper(at, |parser| parser.term().map(|term| Tree::Not(Box::new(term))));
        }
        if self.take_symbol("(") {
            return self.deeper(at, |parser| {
                let tree = parser.any()?;
                parser.expect_symbol(")", "`and`, `or` or `)`")?;
                Ok(tree)
            });
        }
        self.test().map(Tree::Test)
    }

    /// Goes one level down, or refuses to before it does.
    fn deeper(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<Tree<T::Field>, SearchError>,
    ) -> Result<Tree<T::Field>, SearchError> {
        if self.depth == DEPTH_MAX {
            let message = format!("nested deeper than {} levels", DEPTH_MAX);
            return Err(SearchError { at, message });
        }
        self.depth += 1;
        let tree = read(self)?;
        self.depth -= 1;
        Ok(tree)
    }

    fn test(&mut self) -> Result<Test<T::Field>, SearchError> {
        let at = self.at();
        let Token::Word(name) = self.peek() else {
            return Err(self.expected("a field, `not` or `(`"));
        };
        let field = T::Field::parse(name).map_err(|message| SearchError { at, message })?;
        self.advance();
        if let Some(comparison) = self.comparison() {
            self.advance();
            let value = self.value(&field)?;
            return Ok(Test { field, negated: false, check: Check::Compare(comparison, value) });
        }
        if self.take_keyword(Keyword::Is) {
            let negated = self.take_keyword(Keyword::Not);
            self.expect_keyword(Keyword::Null, "`null`")?;
            self.count_term(at)?;
            return Ok(Test { field, negated, check: Check::Null });
        }
        let negated = self.take_keyword(Keyword::Not);
        let check = if self.take_keyword(Keyword::In) {
            self.list(&field)?
        } else if self.take_keyword(Keyword::Between) {
            let low = self.value(&field)?;
            self.expect_keyword(Keyword::And, "`and` and the upper end")?;
            Check::Between(low, self.value(&field)?)
        } else if self.take_keyword(Keyword::Like) {
            self.like(&field, false)?
        } else if self.take_keyword(Keyword::Ilike) {
            self.like(&field, true)?
        } else if negated {
            return Err(self.expected("`in`, `like`, `ilike` or `between`"));
        } else {
            let what = "a comparison like `=`, or `in`, `like`, `ilike`, `between`, `is`";
            return Err(self.expected(what));
        };
        Ok(Test { field, negated, check })
    }

    fn comparison(&self) -> Option<Comparison> {
        let Token::Symbol(symbol) = self.peek() else { return None };
        match *symbol {
            "=" | "==" => Some(Comparison::Equal),
            "!=" | "<>" => Some(Comparison::NotEqual),
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessOrEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterOrEqual),
            _ => None,
        }
    }

    fn list(&mut self, field: &T::Field) -> Result<Check, SearchError> {
        let close = if self.take_symbol("(") {
            ")"
        } else if self.take_symbol("[") {
            "]"
        } else {
            return Err(self.expected("a list like ('a', 'b')"));
        };
        let mut values = vec![self.value(field)?];
        while self.take_symbol(",") && self.peek() != &Token::Symbol(close) {
            values.push(self.value(field)?);
        }
        self.expect_symbol(close, &format!("`,` or `{close}`"))?;
        Ok(Check::In(values))
    }

    fn like(&mut self, field: &T::Field, fold: bool) -> Result<Check, SearchError> {
        let at = self.at();
        if let kind @ (Type::Number | Type::Time) = field.type_of() {
            let kind = if kind == Type::Number { "a number" } else { "a time" };
            let message = format!("{field} is {kind}, and a pattern needs text; compare it by `<`");
            return Err(SearchError { at, message });
        }
        let Token::Text(pattern) = self.peek() else {
            return Err(self.expected("a pattern in quotes, like 'gpu-%'"));
        };
        let len = pattern.chars().count();
        if Like::LEN_MAX < len {
            let max = Like::LEN_MAX;
            let message =
                format!("the pattern is {len} characters long; at most {max} are allowed");
            return Err(SearchError { at, message });
        }
        let like = Like::new(pattern, fold);
        self.advance();
        self.count_term(at)?;
        Ok(Check::Like(like))
    }

    /// Reads a value of the type the field has.
    fn value(&mut self, field: &T::Field) -> Result<Scalar, SearchError> {
        let at = self.at();
        let scalar = match (field.type_of(), self.peek()) {
            (Type::Any, Token::Text(text) | Token::Date(text)) => Scalar::Text(text.clone()),
            (Type::Any | Type::Number, Token::Number(number)) => Scalar::Number(*number),
            (Type::Any, Token::Keyword(Keyword::True)) => Scalar::Bool(true),
            (Type::Any, Token::Keyword(Keyword::False)) => Scalar::Bool(false),
            (Type::Time, Token::Text(text) | Token::Date(text)) => match read_time(text) {
                Some(time) => Scalar::Time(time),
                None => return Err(self.expected(WANT_TIME)),
            },
            (Type::Word(words), Token::Text(text)) => match words.read(text) {
                Ok(word) => Scalar::Text(word.to_owned()),
                Err(message) => return Err(SearchError { at, message }),
            },
            (Type::Tri, Token::Keyword(Keyword::True)) => tri(Tri::True),
            (Type::Tri, Token::Keyword(Keyword::False)) => tri(Tri::False),
            (Type::Tri, Token::Text(text)) => match read_tri(text) {
                Some(status) => tri(status),
                None => return Err(self.expected(WANT_TRI)),
            },
            (Type::Any, Token::Word(word)) => {
                let word = quotable(word);
                return Err(self.expected(&format!("a value (text stands in quotes: '{word}')")));
            }
            (Type::Any, _) => return Err(self.expected("a value, like 'text' or 3")),
            (Type::Number, _) => {
                return Err(self.expected(&format!("a number, because {field} is one")));
            }
            (Type::Time, _) => return Err(self.expected(WANT_TIME)),
            (Type::Word(words), _) => {
                let example = words.all.get(1).copied().unwrap_or_default();
                let what = format!("a {} in quotes, like '{example}'", words.noun);
                return Err(self.expected(&what));
            }
            (Type::Tri, _) => return Err(self.expected(WANT_TRI)),
        };
        self.advance();
        self.count_term(at)?;
        Ok(scalar)
    }

    fn count_term(&mut self, at: usize) -> Result<(), SearchError> {
        self.terms += 1;
        if TERMS_MAX < self.terms {
            let message = format!("more than {} tests and values", TERMS_MAX);
            return Err(SearchError { at, message });
        }
        Ok(())
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |spanned| &spanned.token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(1, |spanned| spanned.at)
    }

    /// Stays at the end once it is reached.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len().saturating_sub(1));
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let there = self.peek() == &Token::Keyword(keyword);
        if there {
            self.advance();
        }
        there
    }

    fn take_symbol(&mut self, symbol: &'static str) -> bool {
        let there = self.peek() == &Token::Symbol(symbol);
        if there {
            self.advance();
        }
        there
    }

    fn expect_keyword(&mut self, keyword: Keyword, what: &str) -> Result<(), SearchError> {
        if self.take_keyword(keyword) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn expect_symbol(&mut self, symbol: &'static str, what: &str) -> Result<(), SearchError> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn expected(&self, what: &str) -> SearchError {
        SearchError { at: self.at(), message: format!("expected {what}, found {}", self.peek()) }
    }
}

const WANT_TIME: &str = "a time like '2026-01-31T12:00:00Z' or '2026-01-31'";
const WANT_TRI: &str = "'True', 'False' or 'Unknown'";

/// RFC 3339, or a date: its first instant in UTC.
fn read_time(text: &str) -> Option<Timestamp> {
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

fn read_tri(text: &str) -> Option<Tri> {
    [Tri::True, Tri::False, Tri::Unknown]
        .into_iter()
        .find(|tri| tri_word(*tri).eq_ignore_ascii_case(text))
}

fn tri(status: Tri) -> Scalar {
    Scalar::Text(tri_word(status).to_owned())
}
