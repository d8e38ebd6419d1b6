//! One CEL expression that was found safe, and its evaluation.

use crate::language::{ENV, Language, SORTED};
use crate::limits::{self, BadNode, COST_MAX, Name, OverLimit, Shape, Size};
use cel::common::ast::{CallExpr, EntryExpr, Expr};
use cel::common::types::CelBool;
use cel::common::value::Val;
use cel::{Context, ExecutionError, IdedExpr, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// What is wrong with the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Line and column, counted from 1, in characters, where one place is to blame.
    pub(crate) place: Option<(usize, usize)>,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

/// An expression that compiled, names nothing unknown and is inside every limit.
#[derive(Debug)]
pub(crate) struct Expression {
    tree: IdedExpr,
    shape: Shape,
}

/// The stack on which texts are parsed. The parser needs some kilobytes for each operation that hangs
/// on another, and a text of `LEN_MAX` can hold two thousand.
const PARSER_STACK_BYTES: usize = 64 << 20;

impl Expression {
    /// Compiles a text. `prepare` may look at the tree when it was found good, and rewrite it.
    pub(crate) fn compile(
        language: &Language,
        text: &str,
        prepare: impl FnOnce(&mut IdedExpr) -> Result<(), BadNode> + Send,
    ) -> Result<Self, Flaw> {
        let flaw = |at: Option<usize>, message: String| Flaw {
            place: at.map(|at| line_and_column(text, at)),
            message,
        };
        limits::scan(text).map_err(|OverLimit { at, message }| flaw(Some(at), message))?;
        // Its own thread: a stack of known size, and a panic that ends there. What is too deep is
        // also dropped there.
        let compiled = thread::scope(|scope| {
            thread::Builder::new()
                .stack_size(PARSER_STACK_BYTES)
                .spawn_scoped(scope, || compile(language, text, prepare))
                .map(|thread| thread.join())
        });
        match compiled {
            Ok(Ok(Ok(expression))) => Ok(expression),
            Ok(Ok(Err((at, message)))) => Err(flaw(at, message)),
            Ok(Err(_)) => Err(flaw(None, "the parser cannot read this".to_owned())),
            Err(error) => Err(flaw(None, format!("no thread to parse on: {error}"))),
        }
    }

    /// A number of steps that evaluating over facts of this size cannot exceed.
    pub(crate) fn cost(&self, size: Size) -> u64 {
        self.shape.cost(size)
    }

    /// # Errors
    /// What went wrong, as a sentence: a key that is not there, types that do not fit, a bill that is
    /// too high.
    pub(crate) fn evaluate(&self, facts: &Context<'_, '_>, size: Size) -> Result<Value, String> {
        let cost = self.cost(size);
        if COST_MAX < cost {
            return Err(format!("would take up to {cost} steps; at most {COST_MAX} are allowed"));
        }
        self.resolve(facts, |value| value.try_into())
    }

    /// Whether a condition holds. Its cost is the caller's business.
    ///
    /// # Errors
    /// As for `evaluate`, and if it is not a boolean.
    pub(crate) fn holds(&self, facts: &Context<'_, '_>) -> Result<bool, String> {
        let answer = |value: &dyn Val| match value.downcast_ref::<CelBool>() {
            Some(holds) => Ok(Ok(*holds.inner())),
            None => Ok(Err(value.get_type().name().to_owned())),
        };
        self.resolve(facts, answer)?
            .map_err(|kind| format!("must be true or false, and is of type {kind}"))
    }

    fn resolve<T>(
        &self,
        facts: &Context<'_, '_>,
        answer: impl FnOnce(&dyn Val) -> Result<T, ExecutionError>,
    ) -> Result<T, String> {
        let resolve = || Value::resolve_val(&self.tree, facts).and_then(|value| answer(&*value));
        match catch_unwind(AssertUnwindSafe(resolve)) {
            Ok(result) => result.map_err(|error| sentence(&error)),
            Err(_) => Err("the evaluation failed".to_owned()),
        }
    }
}

/// What went wrong, without the values it went wrong with: they may be whole documents, and they print
/// in another order each time, so that the same failure would look like news.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum is not ours and grows; what is not named here holds values"
)]
fn sentence(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(_)
        | ExecutionError::NoSuchOverload(_)
        | ExecutionError::UndeclaredReference(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::FunctionError { .. } => error.to_string(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "the result does not fit".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "the index is outside the list".to_owned(),
        _ => "the types of these values do not go together".to_owned(),
    }
}

fn compile(
    language: &Language,
    text: &str,
    prepare: impl FnOnce(&mut IdedExpr) -> Result<(), BadNode>,
) -> Result<Expression, (Option<usize>, String)> {
    let program = ENV.compile(text).map_err(|errors| match errors.errors.first() {
        Some(error) => (byte_at(text, error.pos), error.msg.clone()),
        None => (None, "this is not an expression".to_owned()),
    })?;
    let mut tree = program.expression().clone();
    sort_ranges(&mut tree);
    let steps = |name: Name<'_>| language.steps(name);
    let shape = limits::measure(&tree, &steps)
        .and_then(|shape| prepare(&mut tree).map(|()| shape))
        .map_err(|BadNode { id, message }| {
            let at = program.source_info().offset_for(id);
            (at.and_then(|(at, _)| usize::try_from(at).ok()), message)
        })?;
    Ok(Expression { tree, shape })
}

/// Makes every comprehension over a map run in the order of its keys: the interpreter's own order is
/// another one each time, and a decision is a function of its arguments.
fn sort_ranges(node: &mut IdedExpr) {
    match &mut node.expr {
        // A struct is refused later.
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => {}
        Expr::Select(select) => sort_ranges(&mut select.operand),
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| sort_ranges(target));
            call.args.iter_mut().for_each(sort_ranges);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(sort_ranges),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    sort_ranges(&mut entry.key);
                    sort_ranges(&mut entry.value);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            sort_ranges(&mut comprehension.loop_cond);
            sort_ranges(&mut comprehension.loop_step);
            sort_ranges(&mut comprehension.iter_range);
            let range = std::mem::take(&mut comprehension.iter_range);
            let id = range.id;
            let func_name = SORTED.to_owned();
            let call = CallExpr { func_name, target: None, args: vec![range] };
            comprehension.iter_range = IdedExpr { id, expr: Expr::Call(call) };
        }
    }
}

/// From the parser's line and column to a place in the text.
fn byte_at(text: &str, (line, column): (isize, isize)) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let column = usize::try_from(column).ok()?.checked_sub(1)?;
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let chars = text.get(before..)?.chars().take(column);
    Some(before + chars.map(char::len_utf8).sum::<usize>())
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before: String = text.char_indices().take_while(|(i, _)| *i < at).map(|(_, c)| c).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}
