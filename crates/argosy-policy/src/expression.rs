//! One CEL expression that was found safe, and its evaluation.

use crate::limits::{self, BadNode, COST_MAX, Name, OverLimit, Shape, Size};
use argosy_core::nearest::nearest;
use cel::common::ast::{CallExpr, EntryExpr, Expr};
use cel::{Context, Env, ExecutionError, IdedExpr, Value};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;

/// What is wrong with the text of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("condition rule `{rule}`, {part}{}: {message}", place(*.line, *.column))]
pub struct PolicyError {
    /// The rule's type.
    pub rule: String,
    /// Which of its texts.
    pub part: Part,
    /// Counted from 1, where one place is to blame.
    pub line: Option<usize>,
    /// Counted from 1, in characters.
    pub column: Option<usize>,
    /// What is wrong and what would be right.
    pub message: String,
}

/// One text of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The condition's type.
    Kind,
    /// Whether the condition is there at all.
    When,
    /// Whether it holds.
    Status,
    /// Its reason.
    Reason,
    /// Its message.
    Message,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Kind => "type",
            Part::When => "when",
            Part::Status => "status",
            Part::Reason => "reason",
            Part::Message => "message",
        })
    }
}

fn place(line: Option<usize>, column: Option<usize>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(" at {line}:{column}"),
        _ => String::new(),
    }
}

/// The language. Made once: that takes longer than a rule does.
pub(crate) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

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
    pub(crate) fn compile(rule: &str, part: Part, text: &str) -> Result<Self, PolicyError> {
        let complain = |at: Option<usize>, message: String| {
            let (line, column) = at.map(|at| line_and_column(text, at)).unzip();
            PolicyError { rule: rule.to_owned(), part, line, column, message }
        };
        limits::scan(text).map_err(|OverLimit { at, message }| complain(Some(at), message))?;
        // Its own thread: a stack of known size, and a panic that ends there. What is too deep is
        // also dropped there.
        let compiled = thread::scope(|scope| {
            thread::Builder::new()
                .stack_size(PARSER_STACK_BYTES)
                .spawn_scoped(scope, || compile(text))
                .map(|thread| thread.join())
        });
        match compiled {
            Ok(Ok(Ok(expression))) => Ok(expression),
            Ok(Ok(Err((at, message)))) => Err(complain(at, message)),
            Ok(Err(_)) => Err(complain(None, "the parser cannot read this".to_owned())),
            Err(error) => Err(complain(None, format!("no thread to parse on: {error}"))),
        }
    }

    /// # Errors
    /// What went wrong, as a sentence: a key that is not there, types that do not fit, a bill that is
    /// too high.
    pub(crate) fn evaluate(&self, facts: &Context<'_, '_>, size: Size) -> Result<Value, String> {
        let cost = self.shape.cost(size);
        if COST_MAX < cost {
            return Err(format!("would take up to {cost} steps; at most {COST_MAX} are allowed"));
        }
        match catch_unwind(AssertUnwindSafe(|| facts.resolve(&self.tree))) {
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

fn compile(text: &str) -> Result<Expression, (Option<usize>, String)> {
    let program = ENV.compile(text).map_err(|errors| match errors.errors.first() {
        Some(error) => (byte_at(text, error.pos), error.msg.clone()),
        None => (None, "this is not an expression".to_owned()),
    })?;
    let mut tree = program.expression().clone();
    sort_ranges(&mut tree);
    let shape = limits::measure(&tree, &known).map_err(|BadNode { id, message }| {
        let at = program.source_info().offset_for(id).and_then(|(at, _)| usize::try_from(at).ok());
        (at, message)
    })?;
    Ok(Expression { tree, shape })
}

/// The function that gives a map's keys in order, and leaves anything else as it is. No text can name
/// it.
pub(crate) const SORTED: &str = "@sorted";

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

/// What an expression may call. No `matches`: a regular expression can cost more than any bill says.
const FUNCTIONS: [&str; 27] = [
    "bool",
    "bytes",
    "contains",
    "dig",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getFullYear",
    "getHours",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "int",
    "orValue",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
    "value",
    "or",
];
const VARIABLES: [&str; 2] = ["resource", "statuses"];
/// Names of types are values: `type(x) == string`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

fn known(name: Name<'_>) -> Result<(), String> {
    let (noun, name, known) = match name {
        Name::Variable(name) if TYPES.contains(&name) => return Ok(()),
        // Operators: `_+_`, `!_`, `@in`.
        Name::Function(name) if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            return Ok(());
        }
        Name::Variable(name) => ("variable", name, VARIABLES.as_slice()),
        Name::Function(name) => ("function", name, FUNCTIONS.as_slice()),
    };
    if known.contains(&name) {
        return Ok(());
    }
    Err(match nearest(name, known.iter().copied()) {
        Some(meant) => format!("unknown {noun} `{name}`; did you mean `{meant}`?"),
        None => format!("unknown {noun} `{name}`; known are {}", known.join(", ")),
    })
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
