//! What an expression may cost, known before it is parsed and before it is run.
//!
//! The parser and the interpreter call themselves, and neither counts. So the text is scanned before
//! the parser sees it, the tree is measured before it is kept, and the bill is made out before
//! anything runs.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, operators};

/// The longest expression, in bytes. Rules that people wrote are a few hundred.
pub const LEN_MAX: usize = 4096;
/// How deep brackets, signs and conditionals may nest in a text; each costs the parser a dozen calls.
pub const DEPTH_MAX: usize = 24;
/// How deep the tree may be: a sum is as deep as it is long, and is evaluated one call a level. A level
/// takes up to 40 KiB of stack in a debug build, so the deepest needs half of a worker's 2 MiB.
pub const NODE_DEPTH_MAX: usize = 24;
/// How many comprehensions (`all`, `exists`, `exists_one`, `filter`, `map`) may stand in each other.
pub const COMPREHENSIONS_MAX: usize = 2;
/// The most steps of one evaluation, by a bound that cannot be too low: about a tenth of a second.
pub const COST_MAX: u64 = 1_000_000;

/// How much text one step can compare or copy.
const STEP_BYTES: u64 = 4096;

/// The first thing a limit forbids, with its place in the text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverLimit {
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// Looks at a text without parsing it.
pub(crate) fn scan(text: &str) -> Result<(), OverLimit> {
    if LEN_MAX < text.len() {
        let len = text.len();
        let message = format!("the expression is {len} bytes long; at most {LEN_MAX} are allowed");
        return Err(OverLimit { at: 0, message });
    }
    // How much deeper each open bracket made it; the first entry is the text itself.
    let mut open: Vec<usize> = vec![0];
    let mut depth = 0;
    let mut signs = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        let mut taken = c.len_utf8();
        match c {
            '(' | '[' | '{' => {
                open.push(1 + signs);
                depth += 1 + signs;
                signs = 0;
            }
            ')' | ']' | '}' => {
                if 1 < open.len() {
                    depth -= open.pop().unwrap_or_default();
                }
                signs = 0;
            }
            '!' | '-' => signs += 1,
            // `a ? b : c` nests to the right; `a.?b` and `a[?b]` do not.
            '?' if !text.get(..at).is_some_and(|before| before.ends_with(['.', '['])) => {
                if let Some(innermost) = open.last_mut() {
                    *innermost += 1;
                    depth += 1;
                }
                signs = 0;
            }
            '\'' | '"' => {
                taken = string_len(rest, text.get(..at).is_some_and(ends_with_raw));
                signs = 0;
            }
            '/' if rest.starts_with("//") => taken = rest.find('\n').unwrap_or(rest.len()),
            c if c.is_whitespace() => {}
            _ => signs = 0,
        }
        if DEPTH_MAX < depth + signs {
            let message = format!("nested deeper than {DEPTH_MAX} levels");
            return Err(OverLimit { at, message });
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(())
}

/// Whether the text before a quote makes the string raw: in `r'\'` the backslash is plain.
fn ends_with_raw(before: &str) -> bool {
    before.ends_with(['r', 'R'])
}

/// The length of the string literal at the start of `text`, quotes included; all of it if the
/// literal is not closed.
fn string_len(text: &str, raw: bool) -> usize {
    let quote = text.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let quote = if text.starts_with(&triple) { triple.as_str() } else { quote };
    let mut rest = text.get(quote.len()..).unwrap_or_default();
    while !rest.is_empty() {
        if rest.starts_with(quote) {
            return text.len() - rest.len() + quote.len();
        }
        let mut chars = rest.chars();
        if chars.next() == Some('\\') && !raw {
            chars.next();
        }
        rest = chars.as_str();
    }
    text.len()
}

/// How large the facts are that an expression will be evaluated over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// The members of the largest list or map.
    pub(crate) longest: usize,
    /// All text, and eight bytes for each value.
    pub(crate) total: usize,
}

/// What makes a tree cheap or dear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The nodes inside no, one and two comprehensions.
    nodes: [u64; COMPREHENSIONS_MAX + 1],
    /// What their functions take besides, whatever the facts.
    extra: [u64; COMPREHENSIONS_MAX + 1],
    /// How often `+` is written, and how often in what a comprehension runs over: it makes text and
    /// lists longer than any fact is.
    sums: u64,
    sums_in_range: u64,
    /// The largest list or map that is written out.
    longest: usize,
}

impl Shape {
    /// A number of steps that evaluating over facts of this size cannot exceed.
    ///
    /// A node inside `n` comprehensions runs at most `longest` to the power of `n` times, and one run
    /// touches at most all the facts there are.
    pub(crate) fn cost(&self, size: Size) -> u64 {
        let longest =
            (size.longest.max(self.longest) as u64).saturating_mul(1 + self.sums_in_range);
        // What the expression itself spells out counts as one of the facts.
        let total = size.total.saturating_add(LEN_MAX) as u64;
        let once = total.saturating_mul(1 + self.sums) / STEP_BYTES;
        let mut runs = 1_u64;
        let mut cost = 0_u64;
        for (nodes, extra) in self.nodes.into_iter().zip(self.extra) {
            let each = nodes.saturating_mul(once).saturating_add(extra);
            cost = cost.saturating_add(each.saturating_mul(runs));
            runs = runs.saturating_mul(longest);
        }
        cost
    }
}

/// What is wrong with one node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadNode {
    pub(crate) id: u64,
    pub(crate) message: String,
}

/// Measures a tree, and asks how many steps each name stands for that the tree does not bind itself.
pub(crate) fn measure(
    tree: &IdedExpr,
    steps: &dyn Fn(Name<'_>) -> Result<u64, String>,
) -> Result<Shape, BadNode> {
    let mut walk = Walk { steps, bound: Vec::new(), shape: Shape::default() };
    walk.node(tree, Place::default())?;
    Ok(walk.shape)
}

/// A name that somebody else has to know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name<'a> {
    Variable(&'a str),
    Function(&'a str),
}

#[derive(Clone, Copy, Default)]
struct Place {
    depth: usize,
    comprehensions: usize,
    in_range: bool,
}

struct Walk<'a> {
    steps: &'a dyn Fn(Name<'_>) -> Result<u64, String>,
    bound: Vec<&'a str>,
    shape: Shape,
}

impl<'a> Walk<'a> {
    fn node(&mut self, node: &'a IdedExpr, place: Place) -> Result<(), BadNode> {
        let bad = |message| BadNode { id: node.id, message };
        if NODE_DEPTH_MAX < place.depth {
            return Err(bad(format!("more than {NODE_DEPTH_MAX} operations hang on each other")));
        }
        let steps: u64 = match &node.expr {
            Expr::Call(call) => (self.steps)(Name::Function(&call.func_name)).map_err(bad)?,
            // The parser's own names, like `@result`, are among what is bound.
            Expr::Ident(name) if !name.starts_with('@') && !self.bound.contains(&name.as_str()) => {
                (self.steps)(Name::Variable(name)).map_err(bad)?
            }
            Expr::Ident(_)
            | Expr::Unspecified
            | Expr::Literal(_)
            | Expr::Select(_)
            | Expr::List(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Comprehension(_) => 1,
        };
        let nodes = self.shape.nodes.get_mut(place.comprehensions);
        let extra = self.shape.extra.get_mut(place.comprehensions);
        let (Some(nodes), Some(extra)) = (nodes, extra) else {
            return Err(bad(format!("comprehensions nest deeper than {COMPREHENSIONS_MAX}")));
        };
        *nodes += 1;
        *extra += steps.saturating_sub(1);
        let inner = Place { depth: place.depth + 1, ..place };
        match &node.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
            Expr::Select(select) => self.node(&select.operand, inner)?,
            Expr::Call(call) => {
                let by_macro = matches!(
                    call.args.first().map(|first| &first.expr),
                    Some(Expr::Ident(name)) if name.starts_with('@')
                );
                if call.func_name == operators::ADD && !by_macro {
                    self.shape.sums += 1;
                    self.shape.sums_in_range += u64::from(place.in_range);
                }
                for child in call.target.iter().map(|target| &**target).chain(&call.args) {
                    self.node(child, inner)?;
                }
            }
            Expr::List(list) => {
                self.shape.longest = self.shape.longest.max(list.elements.len());
                for element in &list.elements {
                    self.node(element, inner)?;
                }
            }
            Expr::Map(map) => {
                self.shape.longest = self.shape.longest.max(map.entries.len());
                for entry in &map.entries {
                    self.entry(&entry.expr, inner)?;
                }
            }
            Expr::Struct(_) => return Err(bad("messages cannot be made here".to_owned())),
            Expr::Comprehension(comprehension) => {
                self.node(&comprehension.iter_range, Place { in_range: true, ..inner })?;
                self.node(&comprehension.accu_init, inner)?;
                let before = self.bound.len();
                self.bound.push(&comprehension.iter_var);
                self.bound.extend(comprehension.iter_var2.as_deref());
                let each = Place { comprehensions: place.comprehensions + 1, ..inner };
                self.node(&comprehension.loop_cond, each)?;
                self.node(&comprehension.loop_step, each)?;
                self.bound.truncate(before);
                self.node(&comprehension.result, inner)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: &'a EntryExpr, place: Place) -> Result<(), BadNode> {
        match entry {
            EntryExpr::StructField(field) => self.node(&field.value, place),
            EntryExpr::MapEntry(entry) => {
                self.node(&entry.key, place)?;
                self.node(&entry.value, place)
            }
        }
    }
}

#[cfg(test)]
mod tests;
