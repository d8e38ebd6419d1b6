//! Which events a condition can hold for, known without asking it.
//!
//! Most rules begin with `event.event_type == "…"`, and most events are of a kind that most rules are
//! not about. Outside its reach a condition is exactly false: not an error, and not unknown. So not
//! asking it changes nothing but the time it takes.

use argosy_core::health::{EventType, System};
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

/// Traits of an event, or of those that a condition can hold for, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits(u64);

/// Where the bits of systems begin; those of kinds are below, ours above.
const SYSTEMS: u32 = 16;
const OWN: u32 = 32;
const _: () = assert!(EventType::ALL.len() <= SYSTEMS as usize, "each kind has a bit");
const _: () = assert!(System::ALL.len() <= (OWN - SYSTEMS) as usize, "each system has a bit");

impl Traits {
    pub(crate) const NONE: Traits = Traits(0);
    const ALL: Traits = Traits(u64::MAX);
    /// There is a row for its Xid: `xid` is not empty.
    pub(crate) const XID: Traits = Traits(1 << OWN);
    /// The same of its SXid.
    pub(crate) const SXID: Traits = Traits(2 << OWN);
    /// The driver said what it wants: `recovery` is not empty.
    pub(crate) const RECOVERY: Traits = Traits(4 << OWN);

    pub(crate) const fn of_kind(kind: EventType) -> Self {
        Self(1 << kind as u32)
    }

    pub(crate) const fn of_system(system: System) -> Self {
        Self(1 << (SYSTEMS + system as u32))
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether an event with these traits is within a reach.
    pub(crate) const fn meet(self, reach: Self) -> bool {
        self.0 & reach.0 != 0
    }

    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The reach of a condition: an event that has none of these traits makes it false.
    pub(crate) fn of_condition(tree: &IdedExpr) -> Self {
        if let Expr::Call(call) = &tree.expr {
            return of_call(call);
        }
        if let Expr::Literal(LiteralValue::Boolean(holds)) = &tree.expr
            && !*holds.inner()
        {
            return Self::NONE;
        }
        // `has(xid.class)`
        if let Expr::Select(select) = &tree.expr
            && let Expr::Ident(name) = &select.operand.expr
            && select.test
        {
            return match name.as_str() {
                "xid" => Self::XID,
                "sxid" => Self::SXID,
                "recovery" => Self::RECOVERY,
                _ => Self::ALL,
            };
        }
        Self::ALL
    }
}

fn of_call(call: &CallExpr) -> Traits {
    let [left, right] = call.args.as_slice() else { return Traits::ALL };
    let both = || (Traits::of_condition(left), Traits::of_condition(right));
    match call.func_name.as_str() {
        // Either side is enough: `false && error` and `error && false` are false.
        operators::LOGICAL_AND => match both() {
            (left, right) if left.0.count_ones() <= right.0.count_ones() => left,
            (_, right) => right,
        },
        operators::LOGICAL_OR => {
            let (left, right) = both();
            left.or(right)
        }
        operators::EQUALS => match (word_of(left), word_of(right)) {
            (Some(of), None) => of.is(right),
            (None, Some(of)) => of.is(left),
            (None, None) | (Some(_), Some(_)) => Traits::ALL,
        },
        operators::IN => {
            let Some(of) = word_of(left) else { return Traits::ALL };
            let Expr::List(list) = &right.expr else { return Traits::ALL };
            list.elements.iter().fold(Traits::NONE, |all, word| all.or(of.is(word)))
        }
        _ => Traits::ALL,
    }
}

/// A member of `event` whose words we know.
#[derive(Clone, Copy)]
enum Word {
    Kind,
    System,
}

/// `event.event_type` or `event.system`.
fn word_of(node: &IdedExpr) -> Option<Word> {
    let Expr::Select(select) = &node.expr else { return None };
    let Expr::Ident(variable) = &select.operand.expr else { return None };
    match (variable.as_str(), select.field.as_str(), select.test) {
        ("event", "event_type", false) => Some(Word::Kind),
        ("event", "system", false) => Some(Word::System),
        _ => None,
    }
}

impl Word {
    /// What is left of all events when the word must equal this.
    fn is(self, node: &IdedExpr) -> Traits {
        let Expr::Literal(literal) = &node.expr else { return Traits::ALL };
        let LiteralValue::String(word) = literal else { return Traits::NONE };
        let traits = match self {
            Word::Kind => {
                let kind = EventType::ALL.iter().find(|kind| kind.as_str() == word.inner());
                kind.map(|kind| Traits::of_kind(*kind))
            }
            Word::System => {
                let system = System::ALL.iter().find(|system| system.as_str() == word.inner());
                system.map(|system| Traits::of_system(*system))
            }
        };
        traits.unwrap_or(Traits::NONE)
    }
}
