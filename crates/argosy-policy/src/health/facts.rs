//! What a health rule is told: the event, where it happened, and what is known about its code.

use super::history::{Count, History, HistoryOf};
use super::prepare::Constants;
use super::reach::Traits;
use super::record::{Members, Record};
use super::{Judged, Opinion};
use crate::limits::Size;
use argosy_core::health::{Event, EventType, Metric, Severity};
use argosy_core::kernel::{self, KernelFault, RECOVERY_CHANGED};
use argosy_core::node::{Gpu, Node};
use argosy_core::policy::{sxid_of, xid_of};
use argosy_core::recovery::{RecoveryAction, RecoveryChange};
use argosy_core::xid::{Catalogue, Class, Row};
use cel::common::types::{CelBool, CelDouble, CelInt, CelMap, CelMapKey, CelString};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// What rules may name.
pub(crate) const VARIABLES: [&str; 6] = ["event", "node", "gpu", "xid", "sxid", "recovery"];

/// Everything there is to know about one event.
pub(crate) struct Facts<'a> {
    judged: Judged<'a>,
    event: EventFacts<'a>,
    node: NodeFacts<'a>,
    gpu: Option<&'a Gpu>,
    pub(crate) xid: Option<Code>,
    pub(crate) sxid: Option<Code>,
    wanted: Option<Wanted>,
}

struct EventFacts<'a> {
    event: &'a Event,
    now: Timestamp,
    wanted: Option<Wanted>,
    /// Made when first asked for.
    metrics: OnceLock<CelMap<'a>>,
}

struct NodeFacts<'a> {
    node: &'a Node,
    /// Made when first asked for; most rules never do.
    labels: OnceLock<CelMap<'a>>,
}

/// A code, and what the catalogue says about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    pub(crate) number: u32,
    pub(crate) row: Option<&'static Row>,
}

impl Code {
    fn class(&self) -> Class {
        self.row.map_or(Class::Unknown, |row| row.class)
    }
}

/// What the driver itself wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Known(RecoveryAction),
    /// Something that only a newer driver has a word for.
    Unknown,
}

impl Wanted {
    const fn word(self) -> &'static str {
        match self {
            Wanted::Known(action) => action.as_str(),
            Wanted::Unknown => "unknown",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Wanted::Known(action) => action.meaning(),
            Wanted::Unknown => "The driver wants something that we have no word for.",
        }
    }

    const fn severity(self) -> Severity {
        match self {
            Wanted::Known(action) => action.severity(),
            Wanted::Unknown => Severity::Degraded,
        }
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn new(judged: Judged<'a>) -> Self {
        let Judged { event, node, now, .. } = judged;
        let catalogue = Catalogue::builtin();
        let line = fault(event);
        let xid = xid_of(event).map(|number| {
            let exact = line.as_ref().filter(|line| line.xid() == Some(number));
            let row = exact.and_then(|line| catalogue.row(line));
            Code { number, row: row.or_else(|| catalogue.xid(number)) }
        });
        let sxid = sxid_of(event).map(|number| Code { number, row: catalogue.sxid(number) });
        // Xid 154 is the driver's word itself, and newer than what was asked before it came. One that cannot
        // be read still says that something is wanted.
        let changed = xid.is_some_and(|xid| xid.number == RECOVERY_CHANGED).then(|| {
            let texts = [&event.raw, &event.message].into_iter();
            let change = texts.into_iter().find_map(|text| RecoveryChange::parse(text));
            change.map(|change| change.to)
        });
        let asked = event.recovery_action.map(RecoveryAction::from_number);
        let wanted = match changed {
            Some(Some(to)) => Some(to),
            Some(None) => asked.or(Some(None)),
            None => asked,
        };
        let wanted = wanted.map(|action| action.map_or(Wanted::Unknown, Wanted::Known));
        Self {
            judged,
            event: EventFacts { event, now, wanted, metrics: OnceLock::new() },
            node: NodeFacts { node, labels: OnceLock::new() },
            gpu: node.gpu(&event.gpu_uuid, event.gpu_index),
            xid,
            sxid,
            wanted,
        }
    }

    /// What decides which rules can be about it.
    pub(crate) fn traits(&self) -> Traits {
        let event = self.judged.event;
        let absent = |is_there: bool, traits| if is_there { traits } else { Traits::NONE };
        Traits::of_kind(event.event_type)
            .or(Traits::of_system(event.system))
            .or(absent(self.xid.is_some(), Traits::XID))
            .or(absent(self.sxid.is_some(), Traits::SXID))
            .or(absent(self.wanted.is_some(), Traits::RECOVERY))
    }

    /// How large it all is.
    pub(crate) fn size(&self) -> Size {
        let Judged { event, node, .. } = self.judged;
        let metrics = event.metrics.iter().map(|(name, value)| {
            let text = if let Metric::Text(text) = value { text.len() } else { 0 };
            name.len() + text + 16
        });
        let (mut labels, mut total) = (0, FIXED_BYTES + metrics.sum::<usize>());
        for (key, value) in node.labels.iter() {
            labels += 1;
            total += key.len() + value.len() + 16;
        }
        let place = &node.place;
        total += event.gpu_uuid.len() + event.gpu_serial.len();
        total += event.message.len() + event.raw.len() + node.machine.agent.len();
        total += place.provider.len() + place.region.len();
        total += place.zone.len() + place.instance_type.len();
        total += self.gpu.map_or(0, |gpu| {
            gpu.uuid.len() + gpu.serial.len() + gpu.name.len() + gpu.driver_version.len()
        });
        Size { longest: event.metrics.len().max(labels).max(MEMBERS_MAX), total }
    }

    /// How bad the driver and the catalogue say it is: the worse of the two.
    pub(crate) fn at_least(&self) -> Severity {
        let worst = self.opinions().map(|opinion| opinion.severity).max();
        worst.unwrap_or(Severity::Healthy)
    }

    /// Whether it is as bad as this only because the driver asks for recovery.
    pub(crate) fn advised(&self, decided: Severity) -> bool {
        let driver = self.wanted.map(Wanted::severity).unwrap_or(Severity::Healthy);
        let code =
            |code: Option<Code>| code.map_or(Severity::Healthy, |code| code.class().severity());
        let catalogue = code(self.xid).max(code(self.sxid));
        let says_nothing_else = matches!(
            self.judged.event.event_type,
            EventType::Xid | EventType::Sxid | EventType::DriverError
        );
        Severity::Healthy < driver && decided <= driver && catalogue < decided && says_nothing_else
    }

    /// What others say about the event, the most competent first.
    pub(crate) fn opinions(&self) -> impl Iterator<Item = Opinion> {
        let driver = self.wanted.map(|wanted| Opinion {
            who: "the driver",
            severity: wanted.severity(),
            says: format!("driver: {}: {}", wanted.word(), wanted.meaning()),
        });
        let row = |noun: &'static str, code: Option<Code>| {
            code.map(|code| Opinion {
                who: "the catalogue",
                severity: code.class().severity(),
                says: said(noun, &code),
            })
        };
        driver.into_iter().chain(row("Xid", self.xid)).chain(row("SXid", self.sxid))
    }
}

/// What all the words of our own may take, in the largest judgement there is: those of the catalogue
/// among them.
const FIXED_BYTES: usize = 2048;
/// The members of the largest map that is always the same.
const MEMBERS_MAX: usize = 12;

/// What the kernel line says, where that is more than its code.
fn fault(event: &Event) -> Option<KernelFault> {
    let number = xid_of(event)?;
    if !NVLINK5.contains(&number) {
        return None;
    }
    [&event.raw, &event.message].into_iter().find_map(|line| kernel::parse(line))
}

/// The codes whose lines say what they mean.
const NVLINK5: std::ops::RangeInclusive<u32> = 144..=150;

fn said(noun: &str, code: &Code) -> String {
    let (number, version) = (code.number, Catalogue::builtin().version());
    match code.row {
        Some(row) => {
            let (name, class, action) = (&row.name, row.class.as_str(), row.action.as_str());
            let meaning = &row.meaning;
            format!(
                "catalogue {version}: {noun} {number} {name}: class {class}, action {action}: {meaning}"
            )
        }
        None => format!("catalogue {version}: {noun} {number} is not in it"),
    }
}

/// Facts as the interpreter asks for them.
pub(crate) struct Variables<'a> {
    judged: Judged<'a>,
    records: [Record<'a>; VARIABLES.len()],
    constants: &'a Constants,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(facts: &'a Facts<'_>, constants: &'a Constants) -> Self {
        let records: [&dyn Members; VARIABLES.len()] =
            [&facts.event, &facts.node, &facts.gpu, &facts.xid, &facts.sxid, &facts.wanted];
        Self { judged: facts.judged, records: records.map(Record), constants }
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        if let Some(hidden) = variable.strip_prefix('@') {
            if let Some(constant) = self.constants.get(hidden) {
                return Some(CowVal::Borrowed(constant));
            }
            return Some(match hidden.strip_suffix("/of") {
                Some(name) => {
                    CowVal::owned(HistoryOf(History::new(self.judged, Count::named(name)?)))
                }
                None => CowVal::owned(History::new(self.judged, Count::named(hidden)?)),
            });
        }
        let place = VARIABLES.iter().position(|name| *name == variable)?;
        self.records.get(place).map(|record| CowVal::Borrowed(record as &(dyn Val + 'b)))
    }
}

/// Every name that a variable may have, in order; empty for what is no variable.
pub(crate) fn names(variable: &str) -> &'static [CelString<'static>] {
    macro_rules! list {
        ($($name:literal),+ $(,)?) => {{
            static NAMES: LazyLock<Vec<CelString<'static>>> =
                LazyLock::new(|| [$($name),+].map(CelString::from).into());
            &NAMES
        }};
    }
    match variable {
        "event" => list!(
            "count",
            "event_type",
            "gpu_index",
            "gpu_serial",
            "gpu_uuid",
            "message",
            "metrics",
            "raw",
            "recovery_action",
            "system",
            "timestamp",
        ),
        "node" => {
            list!("agent", "id", "instance_type", "labels", "pool", "provider", "region", "zone")
        }
        "gpu" => list!("driver_version", "index", "name", "serial", "uuid"),
        "xid" | "sxid" => list!("action", "class", "code", "condemns", "meaning", "name"),
        "recovery" => list!("action", "meaning"),
        _ => &[],
    }
}

/// As Navarch gives it to its rules, and what we know besides.
impl Members for EventFacts<'_> {
    fn names(&self) -> &'static [CelString<'static>] {
        names("event")
    }

    fn member<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let event = self.event;
        Some(match name {
            "event_type" => text(event.event_type.as_str()),
            "metrics" => CowVal::Borrowed(self.metrics.get_or_init(|| of_metrics(event))),
            "system" => text(event.system.as_str()),
            "message" => text(&event.message),
            "raw" => text(&event.raw),
            "count" => int(event.count),
            "gpu_index" => int(event.gpu_index),
            "gpu_uuid" => text(&event.gpu_uuid),
            "gpu_serial" => text(&event.gpu_serial),
            "recovery_action" => text(self.wanted?.word()),
            "timestamp" => {
                let time = event.node_time.unwrap_or(self.now).to_string();
                CowVal::owned(CelString::from(time))
            }
            _ => return None,
        })
    }
}

impl Members for NodeFacts<'_> {
    fn names(&self) -> &'static [CelString<'static>] {
        names("node")
    }

    fn member<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let node = self.node;
        Some(match name {
            "id" => text(node.id.as_str()),
            "pool" => text(node.pool.as_deref().unwrap_or_default()),
            "provider" => text(&node.place.provider),
            "region" => text(&node.place.region),
            "zone" => text(&node.place.zone),
            "instance_type" => text(&node.place.instance_type),
            "labels" => CowVal::Borrowed(self.labels.get_or_init(|| {
                let label = |(name, value)| (key(name), text(value).into_owned());
                CelMap::from(node.labels.iter().map(label).collect::<HashMap<_, _>>())
            })),
            "agent" => text(&node.machine.agent),
            _ => return None,
        })
    }
}

impl Members for Option<&Gpu> {
    fn names(&self) -> &'static [CelString<'static>] {
        names("gpu")
    }

    fn member<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let gpu = (*self)?;
        Some(match name {
            "uuid" => text(&gpu.uuid),
            "serial" => text(&gpu.serial),
            "name" => text(&gpu.name),
            "index" => int(gpu.index),
            "driver_version" => text(&gpu.driver_version),
            _ => return None,
        })
    }
}

impl Members for Option<Code> {
    fn names(&self) -> &'static [CelString<'static>] {
        names("xid")
    }

    fn member<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let code = self.as_ref()?;
        Some(match name {
            "code" => int(code.number),
            "class" => text(code.class().as_str()),
            "condemns" => CowVal::owned(CelBool::from(code.class().condemns())),
            "name" => text(code.row.map_or("", |row| &row.name)),
            "action" => text(code.row.map_or("none", |row| row.action.as_str())),
            "meaning" => text(code.row.map_or("", |row| &row.meaning)),
            _ => return None,
        })
    }
}

impl Members for Option<Wanted> {
    fn names(&self) -> &'static [CelString<'static>] {
        names("recovery")
    }

    fn member<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let wanted = (*self)?;
        Some(match name {
            "action" => text(wanted.word()),
            "meaning" => text(wanted.meaning()),
            _ => return None,
        })
    }
}

fn of_metrics(event: &Event) -> CelMap<'_> {
    let mut metrics = HashMap::with_capacity(event.metrics.len());
    for (name, value) in &event.metrics {
        let value = match value {
            Metric::Bool(value) => CowVal::owned(CelBool::from(*value)),
            Metric::Int(value) => int(*value),
            Metric::Float(value) => CowVal::owned(CelDouble::from(*value)),
            Metric::Text(value) => text(value),
        };
        metrics.insert(key(name), value.into_owned());
    }
    CelMap::from(metrics)
}

fn key(name: &str) -> CelMapKey<'_> {
    CelMapKey::String(CelString::from(name))
}

fn text<'b>(text: &'b str) -> CowVal<'b, 'b> {
    CowVal::owned(CelString::from(text))
}

fn int<'b>(number: impl Into<i64>) -> CowVal<'b, 'b> {
    CowVal::owned(CelInt::from(number.into()))
}
