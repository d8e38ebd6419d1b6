//! Clusters, node pools and statuses as tables.

use crate::output::{Format, Grid, Paint, age, clean, document, print};
use crate::session::Session;
use argosy_api::client::Collection;
use argosy_api::resource::{Condition, Kind, Resource, Tri};
use argosy_api::status::{AdapterPhase, HistoryEntry, StatusLine, StatusList};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The names of clusters by uid, for the tables of node pools.
pub(crate) type ClusterNames = BTreeMap<String, String>;

/// Prints resources in the session's format. `list` says whether JSON is a list or one object.
pub(crate) async fn resources(session: &Session, kind: Kind, items: &[Resource], list: bool) {
    match session.format {
        Format::Json | Format::Yaml => {
            let value = match items {
                [one] if !list => to_value(one),
                _ => {
                    json!({ "kind": format!("{kind:?}List"), "total": items.len(), "items": to_value(&items) })
                }
            };
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => print(&items.iter().map(name_line).collect::<String>()),
        Format::Table | Format::Wide => {
            let clusters = cluster_names(session, kind, items).await;
            print(&table(session, kind, items, &clusters));
        }
    }
}

/// The table of resources.
pub(crate) fn table(
    session: &Session,
    kind: Kind,
    items: &[Resource],
    clusters: &ClusterNames,
) -> String {
    let wide = session.format == Format::Wide;
    let now = session.clock.now();
    let mut grid = Grid::new(match (kind, wide) {
        (Kind::Cluster, false) => &["NAME", "PHASE", "PROVIDER", "REGION", "AGE", "MESSAGE"],
        (Kind::Cluster, true) => {
            &["NAME", "PHASE", "PROVIDER", "REGION", "AGE", "GEN", "UID", "LABELS", "BY", "MESSAGE"]
        }
        (Kind::NodePool, false) => {
            &["NAME", "CLUSTER", "PHASE", "MACHINE", "NODES", "AGE", "MESSAGE"]
        }
        (Kind::NodePool, true) => &[
            "NAME", "CLUSTER", "PHASE", "MACHINE", "NODES", "AGE", "GEN", "UID", "LABELS", "BY",
            "MESSAGE",
        ],
    });
    for item in items {
        grid.row(row(item, wide, now, clusters));
    }
    // Whoever asks for more columns wants to copy from them: nothing is cut.
    let screen = if wide { session.screen.unbounded() } else { session.screen };
    grid.render(&screen, session.headers)
}

fn row(
    item: &Resource,
    wide: bool,
    now: Timestamp,
    clusters: &ClusterNames,
) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let phase = (item.status.phase.clone(), Paint::of_state(&item.status.phase));
    let mut cells = vec![plain(item.name.clone())];
    match item.kind {
        Kind::Cluster => cells.extend([
            phase,
            plain(
                spec(item, &["provider"])
                    .or_else(|| spec(item, &["platform", "type"]))
                    .unwrap_or_default(),
            ),
            plain(spec(item, &["region"]).unwrap_or_default()),
        ]),
        Kind::NodePool => {
            let id = item.cluster_id.as_deref().unwrap_or_default();
            cells.extend([
                plain(clusters.get(id).map_or(id, String::as_str).to_owned()),
                phase,
                plain(
                    spec(item, &["machineType"])
                        .or_else(|| spec(item, &["platform", "type"]))
                        .unwrap_or_default(),
                ),
                plain(
                    spec(item, &["nodeCount"])
                        .or_else(|| spec(item, &["replicas"]))
                        .unwrap_or_default(),
                ),
            ]);
        }
    }
    cells.push(plain(age_of(&item.created_time, now)));
    if wide {
        let labels: Vec<String> =
            item.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        cells.extend([
            plain(item.generation.to_string()),
            plain(item.uid.clone()),
            plain(labels.join(",")),
            plain(item.created_by.clone()),
        ]);
    }
    cells.push(plain(why(item)));
    cells
}

/// Why a resource is not ready, or not healthy, in a sentence; empty if all is well.
pub(crate) fn why(item: &Resource) -> String {
    let find =
        |wanted: &dyn Fn(&Condition) -> bool| item.status.conditions.iter().find(|c| wanted(c));
    let bad = |c: &Condition| c.status == Tri::False;
    // The adapter that failed says more than the sum of all adapters.
    let told = find(&|c| matches!(&*c.kind, "Stalled" | "EventRejected") && c.status == Tri::True)
        .or_else(|| find(&|c| bad(c) && c.kind.ends_with("Successful")))
        .or_else(|| find(&|c| bad(c) && c.kind == "Reconciled"))
        .or_else(|| find(&|c| bad(c) && c.kind == "Healthy"));
    told.map_or_else(String::new, |c| {
        if c.message.is_empty() { c.reason.clone() } else { c.message.clone() }
    })
}

/// The names of the clusters that these node pools belong to.
pub(crate) async fn cluster_names(
    session: &Session,
    kind: Kind,
    items: &[Resource],
) -> ClusterNames {
    if kind == Kind::Cluster || items.is_empty() {
        return ClusterNames::new();
    }
    // Names are a service to the reader; without them the table shows ids.
    let clusters = session.list_all(Collection::Clusters, &[]).await.unwrap_or_default().0;
    clusters.into_iter().map(|cluster| (cluster.uid, cluster.name)).collect()
}

/// Prints what the adapters say.
pub(crate) fn statuses(session: &Session, list: &StatusList) {
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(list), session.format == Format::Yaml));
        }
        Format::Name => {
            let lines = list.statuses.iter().flatten();
            print(
                &lines.map(|line| format!("adapter/{}\n", line.adapter_name)).collect::<String>(),
            );
        }
        Format::Table | Format::Wide => {
            let now = session.clock.now();
            let headers = &["ADAPTER", "PHASE", "SINCE", "HEALTH", "REASON", "MESSAGE"];
            // The end of a sentence is where it says what to do.
            let mut grid = Grid::new(headers).wrapping();
            for line in list.statuses.iter().flatten() {
                let phase = format!("{:?}", line.phase);
                let health = condition(list, &line.adapter_name, "Health");
                let reason = condition(list, &line.adapter_name, "Available");
                let health = health.map_or("", |c| tri(c.0));
                grid.row([
                    (line.adapter_name.clone(), Paint::Plain),
                    (phase.clone(), Paint::of_state(&phase)),
                    (age_of(&line.last_transition_time, now), Paint::Plain),
                    (health.to_owned(), Paint::of_state(health)),
                    (reason.map_or_else(String::new, |c| c.1.to_owned()), Paint::Plain),
                    (line.message.clone(), Paint::Plain),
                ]);
            }
            print(&grid.render(&session.screen, session.headers));
        }
    }
}

/// The adapter that holds things up: one that failed, else one that works, else one that waits.
pub(crate) fn blocking(list: &StatusList) -> Option<&StatusLine> {
    let lines = || list.statuses.iter().flatten();
    lines()
        .find(|line| line.phase == AdapterPhase::Failed)
        .or_else(|| lines().find(|line| line.phase == AdapterPhase::Running))
        .or_else(|| lines().find(|line| line.phase == AdapterPhase::Pending))
}

/// A condition of an adapter's latest report: its status and its reason.
pub(crate) fn condition<'a>(
    list: &'a StatusList,
    adapter: &str,
    kind: &str,
) -> Option<(Tri, &'a str)> {
    let report = list.items.iter().flatten().find(|item| item.adapter == adapter)?;
    let condition = report.conditions.iter().find(|condition| condition.kind == kind)?;
    Some((condition.status, &condition.reason))
}

/// Prints earlier reports, newest first.
pub(crate) fn history(session: &Session, entries: &[HistoryEntry]) {
    match session.format {
        Format::Json | Format::Yaml => {
            let value = json!({ "kind": "AdapterStatusHistory", "items": to_value(&entries) });
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name | Format::Table | Format::Wide => {
            let now = session.clock.now();
            let headers = &["AGE", "GEN", "ADAPTER", "AVAILABLE", "HEALTH", "REASON", "MESSAGE"];
            let mut grid = Grid::new(headers).wrapping();
            for entry in entries {
                let find = |kind: &str| entry.report.conditions.iter().find(|c| c.kind == kind);
                let state = |kind: &str| {
                    let word = find(kind).map_or("", |c| tri(c.status));
                    (word.to_owned(), Paint::of_state(word))
                };
                let told = find("Available");
                let message = match &entry.discarded {
                    Some(old) => format!("not news: {old}"),
                    None => told.map_or_else(String::new, |c| c.message.clone()),
                };
                grid.row([
                    (age_of(&entry.at, now), Paint::Plain),
                    (entry.report.observed_generation.to_string(), Paint::Plain),
                    (entry.report.adapter.clone(), Paint::Plain),
                    state("Available"),
                    state("Health"),
                    (told.map_or_else(String::new, |c| c.reason.clone()), Paint::Plain),
                    (message, Paint::Plain),
                ]);
            }
            print(&grid.render(&session.screen, session.headers));
        }
    }
}

const fn tri(status: Tri) -> &'static str {
    match status {
        Tri::True => "True",
        Tri::False => "False",
        Tri::Unknown => "Unknown",
    }
}

/// How long ago a time on the wire is; the text itself if it is no time.
pub(crate) fn age_of(text: &str, now: Timestamp) -> String {
    text.parse::<Timestamp>().map_or_else(|_| clean(text), |then| age(then, now))
}

/// How times are shown: how long ago, or as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    now: Timestamp,
    absolute: bool,
}

impl Times {
    /// As the session's format wants it: `-o wide` shows times as they are.
    pub(crate) fn of(session: &Session) -> Self {
        Self { now: session.clock.now(), absolute: session.format == Format::Wide }
    }

    /// How long ago, whatever the format.
    pub(crate) fn relative(session: &Session) -> Self {
        Self { now: session.clock.now(), absolute: false }
    }

    /// How long ago, for tests.
    #[cfg(test)]
    pub(crate) fn at(now: Timestamp) -> Self {
        Self { now, absolute: false }
    }

    /// `4m`, or the time itself.
    pub(crate) fn age(self, text: &str) -> String {
        if self.absolute { clean(text) } else { age_of(text, self.now) }
    }

    /// `4m ago`, or the time itself.
    pub(crate) fn ago(self, text: &str) -> String {
        if self.absolute { clean(text) } else { format!("{} ago", age_of(text, self.now)) }
    }

    /// `in 4m`, `4m ago`, or the time itself.
    pub(crate) fn due(self, text: &str) -> String {
        match text.parse::<Timestamp>() {
            Ok(then) if !self.absolute && self.now < then => {
                format!("in {}", age(self.now, then))
            }
            Ok(_) | Err(_) => self.ago(text),
        }
    }

    /// How long it was between two times; empty if one of them is no time.
    pub(crate) fn between(from: &str, to: &str) -> String {
        match (from.parse::<Timestamp>(), to.parse::<Timestamp>()) {
            (Ok(from), Ok(to)) => age(from, to),
            _ => String::new(),
        }
    }
}

/// `cluster/NAME`, as commands take it.
pub(crate) fn name_line(item: &Resource) -> String {
    match item.kind {
        Kind::Cluster => format!("cluster/{}\n", item.name),
        // A node pool's name is unique in its cluster only.
        Kind::NodePool => {
            format!("nodepool/{}/{}\n", item.cluster_id.as_deref().unwrap_or_default(), item.name)
        }
    }
}

/// A member of the spec as text.
fn spec(item: &Resource, path: &[&str]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    match rest.iter().try_fold(item.spec.get(*first)?, |value, name| value.get(name))? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

/// A wire type as JSON.
pub(crate) fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
