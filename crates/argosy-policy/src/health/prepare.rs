//! Does once, when a condition is compiled, what the interpreter would do each time.
//!
//! Lists that are written out (`xid.class in ["app", "info"]`) and patterns become constants. Functions
//! of history become look-ups in a variable that no text can name, because a function of the
//! interpreter's cannot see the event it is asked about.

use super::facts::names;
use super::history::{Count, FATAL, WRONG_WHAT};
use super::pattern::Pattern;
use crate::limits::BadNode;
use argosy_core::health::SIGHTING_TIMES_MAX;
use argosy_core::nearest::nearest;
use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators};
use cel::common::types::{CelList, CelString, CelUInt};
use cel::common::value::Val;

/// What conditions of one policy hold ready, by number.
#[derive(Debug, Default)]
pub(crate) struct Constants(Vec<Box<dyn Val>>);

impl Constants {
    fn add(&mut self, value: Box<dyn Val>) -> Expr {
        self.0.push(value);
        Expr::Ident(format!("@{}", self.0.len() - 1))
    }

    /// The one that an identifier without its `@` stands for.
    pub(crate) fn get(&self, name: &str) -> Option<&dyn Val> {
        self.0.get(name.parse::<usize>().ok()?).map(|constant| &**constant)
    }
}

/// Rewrites a condition that was found good.
///
/// # Errors
/// A window or pattern that is none, and members that a variable never has.
pub(crate) fn prepare(tree: &mut IdedExpr, constants: &mut Constants) -> Result<(), BadNode> {
    Preparer { constants, bound: Vec::new() }.node(tree)
}

/// What a condition compares a count with although nothing is counted so far; `None` if nothing.
pub(crate) fn uncountable(tree: &IdedExpr) -> Option<String> {
    let all = |nodes: &[IdedExpr]| nodes.iter().find_map(uncountable);
    match &tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => None,
        Expr::Select(select) => uncountable(&select.operand),
        Expr::List(list) => all(&list.elements),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => uncountable(&field.value),
            EntryExpr::MapEntry(entry) => {
                uncountable(&entry.key).or_else(|| uncountable(&entry.value))
            }
        }),
        Expr::Comprehension(comprehension) => uncountable(&comprehension.iter_range)
            .or_else(|| uncountable(&comprehension.loop_step))
            .or_else(|| uncountable(&comprehension.result)),
        Expr::Call(call) => beyond(&call.args)
            .or_else(|| call.target.as_deref().and_then(uncountable))
            .or_else(|| all(&call.args)),
    }
}

/// A count beside a number that it never reaches, as in `seen('24h') >= 40`.
fn beyond(args: &[IdedExpr]) -> Option<String> {
    let [one, other] = args else { return None };
    let count = |node: &IdedExpr| {
        let Expr::Call(call) = &node.expr else { return None };
        Count::named(&call.func_name).map(|_| call.func_name.clone())
    };
    let number = |node: &IdedExpr| {
        let Expr::Literal(LiteralValue::Int(number)) = &node.expr else { return None };
        Some(*number.inner())
    };
    let (name, number) = count(one).zip(number(other)).or_else(|| count(other).zip(number(one)))?;
    let most = i64::try_from(SIGHTING_TIMES_MAX).unwrap_or(i64::MAX);
    (most < number).then(|| {
        format!(
            "`{name}` is compared with {number}, and of one kind on one GPU {most} are counted; compare it \
             with {most} or less"
        )
    })
}

struct Preparer<'a> {
    constants: &'a mut Constants,
    /// Names that comprehensions around here give to something of theirs.
    bound: Vec<String>,
}

impl Preparer<'_> {
    fn node(&mut self, node: &mut IdedExpr) -> Result<(), BadNode> {
        let id = node.id;
        match &mut node.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => Ok(()),
            Expr::Select(select) => {
                self.member(select).map_err(|message| BadNode { id, message })?;
                self.node(&mut select.operand)?;
                // `a.b` may be a variable of that name, so the interpreter looks for one each time;
                // `a['b']` cannot be.
                if !select.test {
                    let field = CelString::from(std::mem::take(&mut select.field));
                    let at = IdedExpr { id, expr: Expr::Literal(LiteralValue::String(field)) };
                    node.expr = index(*std::mem::take(&mut select.operand), at);
                }
                Ok(())
            }
            Expr::List(list) => self.all(&mut list.elements),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
                EntryExpr::StructField(field) => self.node(&mut field.value),
                EntryExpr::MapEntry(entry) => {
                    self.node(&mut entry.key)?;
                    self.node(&mut entry.value)
                }
            }),
            Expr::Comprehension(comprehension) => {
                self.node(&mut comprehension.iter_range)?;
                self.node(&mut comprehension.accu_init)?;
                let before = self.bound.len();
                self.bound.push(comprehension.iter_var.clone());
                self.bound.extend(comprehension.iter_var2.clone());
                self.node(&mut comprehension.loop_cond)?;
                self.node(&mut comprehension.loop_step)?;
                self.bound.truncate(before);
                self.node(&mut comprehension.result)
            }
            Expr::Call(call) => {
                if let Some(target) = &mut call.target {
                    self.node(target)?;
                }
                self.all(&mut call.args)?;
                let bad = |message: String| BadNode { id, message };
                if let Some(expr) = replaced(id, call, self.constants).map_err(bad)? {
                    node.expr = expr;
                }
                Ok(())
            }
        }
    }

    fn all(&mut self, nodes: &mut [IdedExpr]) -> Result<(), BadNode> {
        nodes.iter_mut().try_for_each(|node| self.node(node))
    }

    /// A member that one of our variables never has is a typing mistake, and not a key that is missing
    /// today. `has(…)` may ask for anything.
    fn member(&self, select: &SelectExpr) -> Result<(), String> {
        let Expr::Ident(variable) = &select.operand.expr else { return Ok(()) };
        let known: Vec<&str> = names(variable).iter().map(CelString::inner).collect();
        let field = select.field.as_str();
        if select.test
            || self.bound.contains(variable)
            || known.is_empty()
            || known.contains(&field)
        {
            return Ok(());
        }
        Err(match nearest(field, known.iter().copied()) {
            Some(meant) => format!("`{variable}` has no `{field}`; did you mean `{meant}`?"),
            None => format!("`{variable}` has no `{field}`; it has {}", known.join(", ")),
        })
    }
}

/// What stands for a call; `None` if it stays.
fn replaced(
    id: u64,
    call: &mut CallExpr,
    constants: &mut Constants,
) -> Result<Option<Expr>, String> {
    if call.func_name == operators::IN {
        if let Some(list) = call.args.get_mut(1)
            && let Some(constant) = constant_list(&list.expr)
        {
            list.expr = constants.add(Box::new(constant));
        }
        return Ok(None);
    }
    let node = |expr| IdedExpr { id, expr };
    if call.func_name == "matches" {
        let args = call.target.take().map(|target| *target).into_iter().chain(call.args.drain(..));
        let Ok([text, pattern]) = <[IdedExpr; 2]>::try_from(args.collect::<Vec<_>>()) else {
            return Err("matches takes a text and a pattern".to_owned());
        };
        let Expr::Literal(LiteralValue::String(pattern)) = &pattern.expr else {
            return Err("the pattern of matches must be written out, in quotes".to_owned());
        };
        let pattern = constants.add(Box::new(Pattern::compile(pattern.inner())?));
        return Ok(Some(index(node(pattern), text)));
    }
    if Count::named(&call.func_name).is_none() {
        return Ok(None);
    }
    let name = &call.func_name;
    if call.target.is_some() {
        return Err(format!("{name} belongs to no value; write {name}('24h')"));
    }
    let mut args = std::mem::take(&mut call.args).into_iter();
    let (window, what) = match (args.next(), args.next(), args.next()) {
        (Some(window), what, None) => (window, what),
        _ => {
            return Err(format!(
                "{name} takes a window, and a code if you like: {name}('24h', 31)"
            ));
        }
    };
    let window = node(window_of(window.expr)?);
    Ok(Some(match what {
        None => index(node(Expr::Ident(format!("@{name}"))), window),
        Some(what) => {
            if !may_be_what(&what.expr) {
                return Err(WRONG_WHAT.to_owned());
            }
            let of = index(node(Expr::Ident(format!("@{name}/of"))), what);
            index(node(of), window)
        }
    }))
}

/// A window that is written out is read now.
fn window_of(expr: Expr) -> Result<Expr, String> {
    let Expr::Literal(literal) = &expr else { return Ok(expr) };
    let LiteralValue::String(text) = literal else {
        return Err("a window is text, like '24h'".to_owned());
    };
    let millis = Count::window(text.inner())?.as_millis();
    let millis = CelUInt::from(u64::try_from(millis).unwrap_or(u64::MAX));
    Ok(Expr::Literal(LiteralValue::UInt(millis)))
}

fn may_be_what(expr: &Expr) -> bool {
    let Expr::Literal(literal) = expr else { return true };
    if let LiteralValue::String(word) = literal {
        return word.inner() == FATAL;
    }
    matches!(literal, LiteralValue::Int(_))
}

/// The list, if it holds literals only.
fn constant_list(expr: &Expr) -> Option<CelList<'static>> {
    let Expr::List(list) = expr else { return None };
    let element = |node: &IdedExpr| {
        let Expr::Literal(literal) = &node.expr else { return None };
        Some(literal.to_val().into_owned())
    };
    let elements: Vec<Box<dyn Val>> = list.elements.iter().map(element).collect::<Option<_>>()?;
    list.optional_indices.is_empty().then(|| CelList::from(elements))
}

fn index(of: IdedExpr, at: IdedExpr) -> Expr {
    let func_name = operators::INDEX.to_owned();
    Expr::Call(CallExpr { func_name, target: None, args: vec![of, at] })
}
