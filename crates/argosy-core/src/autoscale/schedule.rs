//! Scheduled: other bounds, or an exact size, at certain times.
//!
//! The first entry whose window is open holds. Outside of all of them the fallback decides inside the pool's own
//! bounds; without a fallback, and where nobody else is asked, the pool's smallest size holds.
//!
//! What a newcomer gets wrong: the bounds of an entry are no wish for any size. They are the pool's bounds while it
//! holds, and clamp what the fallback and the other parts of a composite want.

use super::{Bounds, Counted, Limits, Mind, Opinion, Policy};
use crate::field::reader::Reader;
use crate::field::{Constraint, FieldError};
use crate::window::{Window, zone_name};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// The most entries: each is asked at every look.
pub const ENTRIES_MAX: usize = 64;

/// Times and sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scheduled {
    /// In order: the first that is open holds.
    pub entries: Vec<Entry>,
    /// Who decides inside the bounds of an entry, and outside of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<Policy>>,
}

/// What holds in a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When.
    #[serde(flatten)]
    pub window: Window,
    /// What.
    #[serde(flatten)]
    pub size: Size,
}

/// What an entry asks for; the pool's own bounds hold besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// So many.
    Exact {
        /// How many.
        nodes: u32,
    },
    /// Between these.
    #[serde(rename_all = "camelCase")]
    Between {
        /// At least.
        #[serde(skip_serializing_if = "Option::is_none")]
        min_nodes: Option<u32>,
        /// At most.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_nodes: Option<u32>,
    },
}

impl Scheduled {
    pub(super) fn read(reader: &mut Reader<'_>, limits: &mut Limits) -> Option<Scheduled> {
        let entries = reader.list("entries", ENTRIES_MAX, Entry::parse);
        if !reader.has("entries") {
            let message = "is missing: give at least one, like {days: [mon], start: 8, end: 18, \
                           minNodes: 4}";
            reader.complain("entries", Constraint::Required, message);
        }
        let fallback = limits.read_fallback(reader);
        Some(Scheduled { entries: entries?, fallback: fallback? })
    }

    pub(super) fn ask(&self, mind: &mut Mind<'_>) -> Opinion {
        let now = mind.facts.now;
        let next = self.next_edge(now);
        let open = self.entries.iter().enumerate().find(|(_, entry)| entry.window.contains(now));
        let Some((index, Entry { window, size })) = open else {
            let outside = "no entry of the schedule holds now";
            let opinion = match &self.fallback {
                Some(fallback) => mind.ask_part("fallback", fallback).because(outside),
                None => Opinion { rests: true, ..Opinion::none(outside) },
            };
            return opinion.until(next);
        };
        let until = match window.next_edge(now) {
            Some(edge) => {
                format!(" until {}", edge.to_zoned(window.zone.clone()).strftime("%a %H:%M"))
            }
            None => String::new(),
        };
        let zone = zone_name(&window.zone);
        let (min, max) = match *size {
            Size::Exact { nodes } => {
                let reason = format!(
                    "entry {index} of the schedule holds {}{until} ({zone})",
                    Counted(nodes, "node")
                );
                return Opinion::new(nodes, reason).until(next);
            }
            Size::Between { min_nodes, max_nodes } => {
                (min_nodes.unwrap_or(0), max_nodes.unwrap_or(u32::MAX))
            }
        };
        let bounds = match *size {
            Size::Between { min_nodes: Some(min), max_nodes: Some(max) } => {
                format!("{min} to {max}")
            }
            Size::Between { min_nodes: Some(min), .. } => format!("at least {min}"),
            Size::Between { .. } | Size::Exact { .. } => format!("at most {max}"),
        };
        let outer = format!("entry {index} of the schedule holds {bounds} nodes{until} ({zone})");
        let entry = Bounds { min, max };
        let opinion = match &self.fallback {
            Some(fallback) => mind.ask_part("fallback", fallback).because(&outer),
            None => Opinion::none(outer),
        };
        let bounds = opinion.bounds.map_or(entry, |inner| inner.and(entry));
        let target = opinion.target.map(|target| bounds.hold(target));
        let opinion = Opinion { target, bounds: Some(bounds), ..opinion };
        opinion.until(next)
    }

    /// When another entry may hold.
    fn next_edge(&self, now: Timestamp) -> Option<Timestamp> {
        self.entries.iter().filter_map(|entry| entry.window.next_edge(now)).min()
    }
}

impl Entry {
    fn parse(value: &Value, field: &str) -> Result<Entry, Vec<FieldError>> {
        let mut reader = Reader::open(value, field)?;
        let window = Window::read(&mut reader);
        let most = (0, super::NODES_MAX);
        let nodes = reader.count("nodes", most);
        let (min, max) = (reader.count("minNodes", most), reader.count("maxNodes", most));
        let bounded = reader.has("minNodes") || reader.has("maxNodes");
        if reader.has("nodes") && bounded {
            let message =
                "is exact, so minNodes and maxNodes have no meaning; give one or the others";
            reader.complain("nodes", Constraint::Unique, message);
        } else if !reader.has("nodes") && !bounded {
            let message = "is missing: say what holds then, with nodes, or minNodes and maxNodes";
            reader.complain("nodes", Constraint::Required, message);
        }
        if let (Some(min), Some(max)) = (min, max)
            && max < min
        {
            let message = format!("must not be above maxNodes, which is {max}");
            reader.complain("minNodes", Constraint::Max, message);
        }
        reader.close()?;
        let size = match nodes {
            Some(nodes) => Size::Exact { nodes },
            None => Size::Between { min_nodes: min, max_nodes: max },
        };
        window.map(|window| Entry { window, size }).ok_or_else(Vec::new)
    }
}

#[cfg(test)]
mod tests;
