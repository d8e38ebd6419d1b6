//! The limits of a health report: what is too much is refused, what is too long is cut.

use super::{
    CONDITIONS_MAX, EVENTS_MAX, Event, EventType, HealthReport, MESSAGE_LEN_MAX, METRICS_MAX,
    Metric, cut,
};
use crate::field::{Constraint, FieldError};
use crate::node::CHECKS_MAX;
use std::collections::BTreeMap;

/// The longest name of a check, a detail or a metric, and the longest identity of a GPU, in bytes. They
/// become keys, so a longer one is refused or left out, never cut: cut, two could become one.
const NAME_LEN_MAX: usize = 128;
/// How many bytes of details one result keeps, names and values together. Every check of a node is in
/// its document, which each change of the node writes as a whole.
const DETAILS_LEN_MAX: usize = 4096;
/// More than this at once is not a count but a mistake.
const COUNT_MAX: u32 = 1_000_000;

impl HealthReport {
    /// The report inside every limit: long texts are cut, and measurements that are no numbers are not
    /// there.
    ///
    /// # Errors
    /// What is too much to cut, by field: `results[3].check_name`.
    pub fn bounded(mut self) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        for (field, sent, most) in [
            ("results", self.results.len(), CHECKS_MAX),
            ("events", self.events.len(), EVENTS_MAX),
            ("conditions", self.conditions.len(), CONDITIONS_MAX),
        ] {
            if most < sent {
                let message = format!("{sent} {field} were sent; at most {most} are allowed");
                errors.push(FieldError::new(field, Constraint::Max, message));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (index, result) in self.results.iter_mut().enumerate() {
            let field = format!("results[{index}].check_name");
            errors.extend(name_complaint(&field, &result.name, true));
            cut(&mut result.message, MESSAGE_LEN_MAX);
            shorten(&mut result.details);
        }
        for (index, event) in self.events.iter_mut().enumerate() {
            for (member, text) in [
                ("gpu_uuid", &event.gpu_uuid),
                ("gpu_serial", &event.gpu_serial),
                ("boot_id", &event.boot_id),
                ("condition", &event.condition),
            ] {
                let field = format!("events[{index}].{member}");
                errors.extend(name_complaint(&field, text, false));
            }
            bound(event);
        }
        for (index, condition) in self.conditions.iter().enumerate() {
            for (member, text) in [("gpu", &condition.gpu), ("name", &condition.name)] {
                let field = format!("conditions[{index}].{member}");
                errors.extend(name_complaint(&field, text, false));
            }
        }
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }
}

impl HealthReport {
    /// The report of a node that says more than it may: of each kind of event on each GPU the first,
    /// with how many there were. None is left out here: `thinned` does that, once they are judged.
    #[must_use]
    pub fn summarised(mut self) -> Self {
        let mut kinds: Vec<Event> = Vec::new();
        let mut known: BTreeMap<Kind, usize> = BTreeMap::new();
        for event in self.events {
            let kind = kind_of(&event);
            match known.get(&kind).and_then(|place| kinds.get_mut(*place)) {
                Some(first) => first.count = first.count.saturating_add(event.count),
                None => {
                    known.insert(kind, kinds.len());
                    kinds.push(event);
                }
            }
        }
        self.events = kinds;
        self
    }
}

/// What makes two events of a flood one: the kind, what happened within it, the boot, and the GPU.
type Kind = (EventType, String, String, String, i32);

fn kind_of(event: &Event) -> Kind {
    let Event { event_type, boot_id, gpu_uuid, gpu_index, .. } = event;
    (*event_type, event.subject(), boot_id.clone(), gpu_uuid.clone(), *gpu_index)
}

fn name_complaint(field: &str, text: &str, required: bool) -> Option<FieldError> {
    if required && text.is_empty() {
        return Some(FieldError::new(
            field,
            Constraint::Required,
            format!("{field} must not be empty"),
        ));
    }
    if NAME_LEN_MAX < text.len() {
        let len = text.len();
        let message = format!("{field} is {len} bytes long; at most {NAME_LEN_MAX} are allowed");
        return Some(FieldError::new(field, Constraint::MaxLength, message));
    }
    if text.chars().any(char::is_control) {
        let message = format!("{field} must not hold control characters");
        return Some(FieldError::new(field, Constraint::Pattern, message));
    }
    None
}

fn bound(event: &mut Event) {
    cut(&mut event.message, MESSAGE_LEN_MAX);
    cut(&mut event.raw, MESSAGE_LEN_MAX);
    event.count = event.count.clamp(1, COUNT_MAX);
    event.gpu_index = event.gpu_index.max(-1);
    let mut left = METRICS_MAX;
    event.metrics.retain(|name, metric| {
        let kept = 0 < left && name.len() <= NAME_LEN_MAX && bound_metric(metric);
        left -= usize::from(kept);
        kept
    });
}

fn bound_metric(metric: &mut Metric) -> bool {
    match metric {
        Metric::Bool(_) | Metric::Int(_) => true,
        // JSON has no word for the others: a document that held one could not be read again.
        Metric::Float(number) => number.is_finite(),
        Metric::Text(text) => {
            cut(text, MESSAGE_LEN_MAX);
            true
        }
    }
}

fn shorten(details: &mut BTreeMap<String, String>) {
    let (mut left, mut room) = (METRICS_MAX, DETAILS_LEN_MAX);
    details.retain(|name, value| {
        cut(value, MESSAGE_LEN_MAX);
        let len = name.len() + value.len();
        let kept = 0 < left && name.len() <= NAME_LEN_MAX && len <= room;
        if kept {
            left -= 1;
            room -= len;
        }
        kept
    });
}
