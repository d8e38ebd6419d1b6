//! How often something happened before: what `seen("24h")` and its like count.

use super::Judged;
use argosy_core::health::{EventType, SIGHTING_TIMES_MAX, Severity, Sighting};
use argosy_core::span;
use argosy_core::xid::Catalogue;
use cel::ExecutionError;
use cel::common::traits::Indexer;
use cel::common::types::{CelInt, CelString, CelUInt, DYN_TYPE, Type};
use cel::common::value::{CowVal, Val};
use jiff::SignedDuration;

/// What happens within this time of the one before belongs to the same burst: one crash of a program
/// writes many lines. As NVIDIA's own tools count.
pub(crate) const BURST: SignedDuration = SignedDuration::from_mins(3);

/// The longest window. Nothing older is known: a sighting keeps a few dozen times.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(90 * 24);

/// How many sightings of other nodes are looked at: a GPU that was in more machines than that within
/// the window is counted as "at least".
const ELSEWHERE_MAX: usize = 64;

/// How many steps one call may take: to put two thousand times in order, which is all that a node may
/// remember, takes as long as a thousand.
pub(crate) const STEPS: u64 = 1_200;

/// A function that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    scope: Scope,
    bursts: bool,
}

/// Where it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Node,
    Gpu,
    Serial,
}

impl Count {
    /// The function of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (scope, bursts) = match name {
            "seen" => (Scope::Node, false),
            "seen_on_gpu" => (Scope::Gpu, false),
            "seen_on_serial" => (Scope::Serial, false),
            "bursts" => (Scope::Node, true),
            "bursts_on_gpu" => (Scope::Gpu, true),
            "bursts_on_serial" => (Scope::Serial, true),
            _ => return None,
        };
        Some(Self { scope, bursts })
    }

    /// Reads a window.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn window(text: &str) -> Result<SignedDuration, String> {
        let window = span::parse(text)?;
        if window.is_zero() || WINDOW_MAX < window {
            let max = span::Written(WINDOW_MAX);
            return Err(format!("the window `{text}` is not between 1ms and {max}"));
        }
        Ok(window)
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// What this event is: its kind, and its code.
    Same,
    /// This Xid or SXid.
    Code(i64),
    /// Whatever the catalogue takes for a fault that ends a GPU's service.
    Fatal,
}

/// The history of one event, to be indexed with a window: `seen("24h")` is `@seen["24h"]`, once its
/// text was compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History<'a> {
    judged: Judged<'a>,
    count: Count,
    what: What,
}

impl<'a> History<'a> {
    pub(crate) fn new(judged: Judged<'a>, count: Count) -> Self {
        Self { judged, count, what: What::Same }
    }

    fn within(&self, window: SignedDuration) -> i64 {
        let Judged { event, node, elsewhere, now } = self.judged;
        let uuid = event.gpu_uuid_of(node);
        let hardware = match event.gpu_of(node) {
            _ if !event.gpu_serial.is_empty() => &event.gpu_serial,
            Some(gpu) => gpu.hardware(),
            None => uuid,
        };
        let here = |seen: &&Sighting| match self.count.scope {
            Scope::Node => true,
            Scope::Gpu => seen.gpu == uuid,
            Scope::Serial => seen.hardware == hardware,
        };
        let moved = self.count.scope == Scope::Serial && !hardware.is_empty();
        let there = elsewhere.iter().take(if moved { ELSEWHERE_MAX } else { 0 });
        let times = node.sightings.iter().filter(here).chain(there.filter(here));
        let times = times.filter(|seen| self.is_meant(seen.event_type, seen.code));
        // A time in the future is one that our clock showed before it was set back.
        let times = times.flat_map(|seen| &seen.times).copied();
        let times = times.filter(|time| now.duration_since(*time) < window);
        // As it will be remembered: a flood that the node aggregated counts as often as it happened.
        let count = usize::try_from(event.count).unwrap_or(usize::MAX).min(SIGHTING_TIMES_MAX);
        let meant = self.is_meant(event.event_type, event.code());
        let this = std::iter::repeat_n(now, if meant { count } else { 0 });
        if !self.count.bursts {
            return i64::try_from(times.chain(this).count()).unwrap_or(i64::MAX);
        }
        let mut times: Vec<_> = times.chain(this).collect();
        times.sort_unstable();
        let gaps = times.windows(2).filter(|pair| match pair {
            [before, after] => BURST <= after.duration_since(*before),
            _ => false,
        });
        let bursts = gaps.count() + usize::from(!times.is_empty());
        i64::try_from(bursts).unwrap_or(i64::MAX)
    }

    fn is_meant(&self, event_type: EventType, code: i64) -> bool {
        let event = self.judged.event;
        match self.what {
            What::Same => event_type == event.event_type && code == event.code(),
            What::Code(wanted) => code == wanted,
            What::Fatal => {
                let code = u32::try_from(code).unwrap_or_default();
                let row = match event_type {
                    EventType::Xid => Catalogue::builtin().xid(code),
                    EventType::Sxid => Catalogue::builtin().sxid(code),
                    EventType::Unknown
                    | EventType::Thermal
                    | EventType::Power
                    | EventType::Memory
                    | EventType::Nvlink
                    | EventType::Pcie
                    | EventType::DriverError
                    | EventType::EccSbe
                    | EventType::EccDbe
                    | EventType::Host => None,
                };
                row.is_some_and(|row| row.class.severity() == Severity::Unhealthy)
            }
        }
    }
}

impl Val for History<'_> {
    fn get_type(&self) -> &Type {
        &DYN_TYPE
    }

    fn cel_type() -> &'static Type {
        &DYN_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl Indexer for History<'_> {
    fn get<'b, 'v>(&'b self, window: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let window = if let Some(seconds) = window.downcast_ref::<CelUInt>() {
            // Written out in the rule, and read when it was compiled.
            SignedDuration::from_millis(i64::try_from(*seconds.inner()).unwrap_or(i64::MAX))
        } else if let Some(text) = window.downcast_ref::<CelString<'_>>() {
            Count::window(text.inner())
                .map_err(|error| ExecutionError::function_error("seen", error))?
        } else {
            return Err(ExecutionError::function_error(
                "seen",
                "the window must be text, like '24h'",
            ));
        };
        Ok(CowVal::owned(CelInt::from(self.within(window))))
    }

    fn steal<'v>(self: Box<Self>, window: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        (*self).get(window).map(CowVal::into_owned)
    }
}

/// The same, of something else than the event: `seen("24h", 31)` is `@seen/of[31]["24h"]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryOf<'a>(pub(crate) History<'a>);

impl Val for HistoryOf<'_> {
    fn get_type(&self) -> &Type {
        &DYN_TYPE
    }

    fn cel_type() -> &'static Type {
        &DYN_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl Indexer for HistoryOf<'_> {
    fn get<'b, 'v>(&'b self, what: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let fatal = |word: &CelString<'_>| word.inner() == FATAL;
        let what = if let Some(code) = what.downcast_ref::<CelInt>() {
            What::Code(*code.inner())
        } else if what.downcast_ref::<CelString<'_>>().is_some_and(fatal) {
            What::Fatal
        } else {
            return Err(ExecutionError::function_error("seen", WRONG_WHAT));
        };
        Ok(CowVal::owned(History { what, ..self.0 }))
    }

    fn steal<'v>(self: Box<Self>, what: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        (*self).get(what).map(CowVal::into_owned)
    }
}

/// The word for every code that ends a GPU's service.
pub(crate) const FATAL: &str = "fatal";

/// What is wrong with the second argument.
pub(crate) const WRONG_WHAT: &str = "the second argument must be a code, like 31, or 'fatal'";
