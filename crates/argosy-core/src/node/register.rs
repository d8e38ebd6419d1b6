//! What a registration makes of a node: a new one, what is new about a known one, or a refusal.
//!
//! What a newcomer gets wrong: an id is not proof. Two machines may come with the same one (a cloned
//! image), and a new machine may come with a dead one's. Who was first keeps it.

use super::{
    Duty, Flag, FlagNote, GPUS_MAX, Gpu, Liveness, Machine, Node, NodeId, NodeStatus, Place,
    Registration,
};
use crate::field::{Constraint, FieldError, quotable};
use crate::health::{Begun, Evidence, Health, MESSAGE_LEN_MAX, cut, hardware_of, registered};
use crate::label::{Labels, is_value};
use crate::ledger::{Entry, What};
use crate::plant::{self, Bug};
use crate::protect::PROTECTED;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The longest text a machine may say about itself, in bytes: host names and kernel versions fit, and
/// a fleet of nodes stays small.
const TEXT_LEN_MAX: usize = 256;
/// The highest place of a GPU.
const GPU_INDEX_MAX: i32 = 1023;

/// Who lets a machine in, and what is known of the one that has its id.
#[derive(Clone, Copy, Debug)]
pub struct Registrar<'a> {
    /// Whose node it will be: the tenant of the credential.
    pub tenant: &'a str,
    /// The team of the credential, if it has one: nodes may not choose their own.
    pub team: Option<&'a str>,
    /// Whether the machine that has the id was heard so lately that it must be taken for alive.
    pub heard_recently: bool,
}

/// A node after its registration.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// The node.
    pub node: Node,
    /// For the ledger.
    pub entries: Vec<Entry>,
    /// Whether there is anything to store.
    pub changed: bool,
}

/// Why a machine is not let in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RegisterError {
    /// Correct what is said.
    #[error("{}", .0.first().map_or("the registration is not valid", |error| &error.message))]
    Invalid(Vec<FieldError>),
    /// The node is not in a state for it; the sentence says the way out.
    #[error("{0}")]
    Precondition(String),
    /// Choose another id: this one is not to be had.
    #[error("node id {0} cannot be used here; choose another one")]
    Taken(NodeId),
    /// Find out which of two machines is the real one.
    #[error("{}", .0.message)]
    Conflict(Box<Conflict>),
}

/// Two machines came with one id.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// Which two, and the way out.
    pub message: String,
    /// The node with its flag, to be stored; `None` if it was flagged already.
    pub flagged: Option<Node>,
    /// For the ledger.
    pub entries: Vec<Entry>,
}

/// Decides on a registration. `existing` is the node that has the id.
///
/// # Errors
/// Why it is refused. Only of a conflict is anything to be stored.
pub fn register(
    existing: Option<&Node>,
    registration: &Registration,
    registrar: Registrar<'_>,
    now: Timestamp,
) -> Result<Registered, RegisterError> {
    let (id, labels, pool) = check(registration).map_err(RegisterError::Invalid)?;
    let Some(known) = existing else {
        return Ok(first(id, labels, pool, registration, registrar, now));
    };
    if known.tenant != registrar.tenant {
        return Err(RegisterError::Taken(id));
    }
    if matches!(known.duty, Duty::Terminated(_)) {
        return Err(RegisterError::Precondition(format!(
            "node {id} was terminated and cannot come back under its id; forget it first \
             (`argosy node forget {id}`), or register under another id"
        )));
    }
    if let Some(message) = stranger(known, registration, registrar.heard_recently) {
        return Err(RegisterError::Conflict(Box::new(conflict(known, message, now))));
    }
    if let (Some(is), Some(wanted)) = (&known.pool, &pool)
        && is != wanted
    {
        return Err(RegisterError::Precondition(format!(
            "node {id} belongs to pool {is} and cannot choose pool {wanted}; to move it, drain it, forget \
             it (`argosy node forget {id}`) and register again"
        )));
    }
    Ok(again(known, labels, pool, registration, registrar, now))
}

fn first(
    id: NodeId,
    labels: Labels,
    pool: Option<String>,
    registration: &Registration,
    registrar: Registrar<'_>,
    now: Timestamp,
) -> Registered {
    let mut node = Node {
        id,
        tenant: registrar.tenant.to_owned(),
        pool,
        place: registration.place.clone(),
        machine: registration.machine.clone(),
        gpus: registration.gpus.clone(),
        labels: given(labels, registrar.team, None),
        registered_at: now,
        joined_at: now,
        liveness: Liveness::Fresh,
        liveness_since: now,
        health: Health::unreported(now),
        evidence: Evidence::default(),
        expected_gpus: Vec::new(),
        duty: Duty::Active,
        checks: BTreeMap::new(),
        findings: Vec::new(),
        sightings: Vec::new(),
        report_sequence: 0,
        flaps: super::Flaps::default(),
        flags: BTreeMap::new(),
        held: None,
        external: super::External::default(),
    };
    node.expected_gpus = hardware_of(&node);
    let message = "first registration".to_owned();
    let (from, to) = (NodeStatus::Unknown.into(), node.status().into());
    let whats = [
        What::Registered { message },
        What::Status { from, to, reason: "it registered".to_owned() },
    ];
    let entries = whats.map(|what| Entry { at: now, node: node.id.clone(), what }).to_vec();
    Registered { node, entries, changed: true }
}

/// What is new about a known machine. What we decided about it is not ours to change here.
fn again(
    known: &Node,
    labels: Labels,
    pool: Option<String>,
    registration: &Registration,
    registrar: Registrar<'_>,
    now: Timestamp,
) -> Registered {
    let mut machine = registration.machine.clone();
    // Who once said which machine it is stays that machine: else a stranger could first come without
    // a name, and then with its own.
    for (new, old) in [
        (&mut machine.machine_id, &known.machine.machine_id),
        (&mut machine.boot_id, &known.machine.boot_id),
    ] {
        if new.is_empty() {
            new.clone_from(old);
        }
    }
    let rebooted = !known.machine.boot_id.is_empty() && known.machine.boot_id != machine.boot_id;
    let mut node = Node {
        pool: pool.or_else(|| known.pool.clone()),
        place: registration.place.clone(),
        machine,
        gpus: registration.gpus.clone(),
        labels: given(labels, registrar.team, Some(&known.labels)),
        ..known.clone()
    };
    if plant::has(Bug::RegistrationClearsCordon) {
        node.duty = Duty::Active;
    }
    expect_gpus(known, &mut node);
    // Who does not say which boot it is may have booted again with each registration.
    let anew = rebooted || node.machine.boot_id.is_empty() || known.gpus != node.gpus;
    let stale = anew && known.evidence != Evidence::default();
    if node == *known && !stale {
        return Registered { node, entries: Vec::new(), changed: false };
    }
    let what = What::Registered { message: news(known, &node, rebooted) };
    let mut entries = vec![Entry { at: now, node: node.id.clone(), what }];
    if rebooted {
        node.joined_at = now;
    }
    let begun = registered(&node, Begun { rebooted, anew }, now);
    entries.extend(begun.entries);
    node = begun.node.unwrap_or(node);
    Registered { node, entries, changed: true }
}

/// Brings what GPUs the node must have up to date: as many as it ever had. Another one in the place of an
/// old one is a repair, one fewer is a fault.
fn expect_gpus(known: &Node, node: &mut Node) {
    if node.expected_gpus.is_empty() {
        node.expected_gpus = hardware_of(known);
    }
    let has = hardware_of(node);
    if node.expected_gpus.len() <= has.len() {
        node.expected_gpus = has;
    }
}

/// The labels, and those that the server gives: the team, and what a person said of a node that is known.
fn given(labels: Labels, team: Option<&str>, known: Option<&Labels>) -> Labels {
    let of_known = |key: &str| known.and_then(|known| known.get(key));
    let team = team.or_else(|| of_known("team")).filter(|team| is_value(team));
    let labels = match team {
        Some(team) => labels.with("team", team),
        None => labels,
    };
    match of_known(PROTECTED) {
        Some(value) => labels.with(PROTECTED, value),
        None => labels,
    }
}

/// Why this is another machine than the one that has the id; `None` if it is the same as far as
/// anybody can tell, or may take its place.
fn stranger(known: &Node, new: &Registration, heard_recently: bool) -> Option<String> {
    let (old_id, new_id) = (&known.machine.machine_id, &new.machine.machine_id);
    let named = !old_id.is_empty() && !new_id.is_empty();
    if named && old_id == new_id {
        return None;
    }
    let (old_gpus, new_gpus) = (hardware(&known.gpus), hardware(&new.gpus));
    let shared = old_gpus.intersection(&new_gpus).next().is_some();
    let disjoint = !shared && !old_gpus.is_empty() && !new_gpus.is_empty();
    let (is_other, why) = if named {
        // A board that was moved to a new chassis brings its GPUs along, and its old one is silent.
        (heard_recently || !shared, format!("machine {}", quotable(new_id)))
    } else {
        // Without names, GPUs that have nothing in common tell two machines apart while both are there.
        (heard_recently && disjoint, "a machine with other GPUs".to_owned())
    };
    if !is_other {
        return None;
    }
    let id = &known.id;
    let is = if old_id.is_empty() { "another machine".to_owned() } else { quotable(old_id) };
    let life = if heard_recently { "which is alive" } else { "which is silent" };
    Some(format!(
        "node {id} is {is}, {life}, and {why} came with the same id; give one of them another id, or, \
         if the old machine is gone for good, forget it (`argosy node forget {id}`)"
    ))
}

fn conflict(known: &Node, message: String, now: Timestamp) -> Conflict {
    // Once is enough: a stranger that keeps knocking must not fill the ledger.
    if known.flags.contains_key(&Flag::IdentityConflict) {
        return Conflict { message, flagged: None, entries: Vec::new() };
    }
    let mut flagged = known.clone();
    let note = FlagNote { since: now, message: message.clone() };
    flagged.flags.insert(Flag::IdentityConflict, note);
    let flag = Flag::IdentityConflict.as_str().to_owned();
    let whats = [
        What::RegistrationRefused { message: message.clone() },
        What::Flag { flag, raised: true, message: message.clone() },
    ];
    let entries = whats.map(|what| Entry { at: now, node: known.id.clone(), what }).to_vec();
    Conflict { message, flagged: Some(flagged), entries }
}

fn hardware(gpus: &[Gpu]) -> BTreeSet<&str> {
    gpus.iter().map(Gpu::hardware).filter(|hardware| !hardware.is_empty()).collect()
}

/// What is new, for people: `rebooted; driver 550.1 -> 560.2; 8 -> 7 GPUs`.
fn news(before: &Node, after: &Node, rebooted: bool) -> String {
    let mut news: Vec<String> = rebooted.then(|| "rebooted".to_owned()).into_iter().collect();
    if before.pool != after.pool {
        news.push(format!("joined pool {}", after.pool.as_deref().unwrap_or_default()));
    }
    let driver = |node: &Node| {
        let versions: BTreeSet<&str> = node.gpus.iter().map(|gpu| &*gpu.driver_version).collect();
        versions.into_iter().collect::<Vec<_>>().join("/")
    };
    let (old, new) = (before, after);
    let texts = [
        ("driver", driver(old), driver(new)),
        ("agent", old.machine.agent.clone(), new.machine.agent.clone()),
        ("kernel", old.machine.kernel_version.clone(), new.machine.kernel_version.clone()),
        ("machine", old.machine.machine_id.clone(), new.machine.machine_id.clone()),
        ("host name", old.machine.hostname.clone(), new.machine.hostname.clone()),
        ("address", old.machine.internal_ip.clone(), new.machine.internal_ip.clone()),
        ("outside address", old.machine.external_ip.clone(), new.machine.external_ip.clone()),
        ("provider", old.place.provider.to_string(), new.place.provider.to_string()),
        ("region", old.place.region.to_string(), new.place.region.to_string()),
        ("zone", old.place.zone.to_string(), new.place.zone.to_string()),
        ("type", old.place.instance_type.to_string(), new.place.instance_type.to_string()),
    ];
    for (what, from, to) in texts {
        if from != to {
            let say = |text: &str| if text.is_empty() { "none".to_owned() } else { quotable(text) };
            news.push(format!("{what} {} -> {}", say(&from), say(&to)));
        }
    }
    if old.gpus.len() != new.gpus.len() {
        news.push(format!("{} -> {} GPUs", old.gpus.len(), new.gpus.len()));
    } else if hardware(&old.gpus) != hardware(&new.gpus) {
        news.push("other GPUs".to_owned());
    }
    if old.labels != new.labels {
        news.push("other labels".to_owned());
    }
    if news.is_empty() {
        news.push("other details of its GPUs".to_owned());
    }
    let mut news = news.join("; ");
    cut(&mut news, MESSAGE_LEN_MAX);
    news
}

/// Everything that is wrong with what a machine says, at once.
fn check(said: &Registration) -> Result<(NodeId, Labels, Option<String>), Vec<FieldError>> {
    let mut errors = Vec::new();
    let id = NodeId::parse(&said.node_id).map_err(|error| errors.push(error));
    let Registration { place, machine, .. } = said;
    let Place { provider, region, zone, instance_type } = place;
    let Machine { hostname, internal_ip, external_ip, kernel_version, boot_id, machine_id, agent } =
        machine;
    let texts: [(&str, &str); 11] = [
        ("provider", provider),
        ("region", region),
        ("zone", zone),
        ("instance_type", instance_type),
        ("hostname", hostname),
        ("internal_ip", internal_ip),
        ("external_ip", external_ip),
        ("kernel_version", kernel_version),
        ("boot_id", boot_id),
        ("machine_id", machine_id),
        ("agent", agent),
    ];
    errors.extend(texts.iter().filter_map(|(field, text)| text_complaint(field, text)));
    errors.extend(gpu_complaints(&said.gpus));
    let labels = check_labels(&said.labels).map_err(|found| errors.extend(found));
    let pool = check_pool(said).map_err(|error| errors.push(error));
    match (id, labels, pool) {
        (Ok(id), Ok(labels), Ok(pool)) if errors.is_empty() => Ok((id, labels, pool)),
        _ => Err(errors),
    }
}

fn text_complaint(field: &str, text: &str) -> Option<FieldError> {
    if TEXT_LEN_MAX < text.len() {
        let len = text.len();
        let message = format!("{field} is {len} bytes long; at most {TEXT_LEN_MAX} are allowed");
        return Some(FieldError::new(field, Constraint::MaxLength, message));
    }
    if text.chars().any(char::is_control) {
        let message = format!("{field} must not hold control characters");
        return Some(FieldError::new(field, Constraint::Pattern, message));
    }
    None
}

fn gpu_complaints(gpus: &[Gpu]) -> Vec<FieldError> {
    if GPUS_MAX < gpus.len() {
        let message = format!("{} GPUs were sent; at most {GPUS_MAX} are allowed", gpus.len());
        return vec![FieldError::new("gpus", Constraint::Max, message)];
    }
    let mut errors = Vec::new();
    for (place, gpu) in gpus.iter().enumerate() {
        let texts: [(&str, &str); 6] = [
            ("uuid", &gpu.uuid),
            ("name", &gpu.name),
            ("pci_bus_id", &gpu.pci_bus_id),
            ("driver_version", &gpu.driver_version),
            ("cuda_version", &gpu.cuda_version),
            ("serial", &gpu.serial),
        ];
        for (member, text) in texts {
            errors.extend(text_complaint(&format!("gpus[{place}].{member}"), text));
        }
        if !(0..=GPU_INDEX_MAX).contains(&gpu.index) {
            let field = format!("gpus[{place}].index");
            let message =
                format!("{field} is {}; it must be between 0 and {GPU_INDEX_MAX}", gpu.index);
            errors.push(FieldError::new(field, Constraint::Max, message));
        }
        if gpu.memory_total < 0 {
            let field = format!("gpus[{place}].memory_total");
            let message = format!("{field} is {}; it must not be negative", gpu.memory_total);
            errors.push(FieldError::new(field, Constraint::Min, message));
        }
    }
    errors
}

/// Whether a label is the server's to give: a node that sends it is refused.
pub fn is_owned(key: &str) -> bool {
    matches!(key, "tenant" | "role" | "team") || key.starts_with("argosy.")
}

fn check_labels(said: &BTreeMap<String, String>) -> Result<Labels, Vec<FieldError>> {
    if Labels::COUNT_MAX < said.len() {
        let (sent, most) = (said.len(), Labels::COUNT_MAX);
        let message = format!("{sent} labels were sent; at most {most} are allowed");
        return Err(vec![FieldError::new("labels", Constraint::Max, message)]);
    }
    let object: Map<String, Value> =
        said.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    let mut errors: Vec<FieldError> = said
        .keys()
        .filter(|key| is_owned(key))
        .map(|key| {
            let field = format!("labels.{}", quotable(key));
            let message =
                format!("{field} is given by the server: a node must not choose it; leave it out");
            FieldError::new(field, Constraint::Enum, message)
        })
        .collect();
    match Labels::parse(&object) {
        Ok(labels) if errors.is_empty() => return Ok(labels),
        Ok(_) => {}
        Err(found) => errors.extend(found),
    }
    Err(errors)
}

fn check_pool(said: &Registration) -> Result<Option<String>, FieldError> {
    let field = said.pool.as_deref().filter(|pool| !pool.is_empty());
    let label = said.labels.get("pool").map(String::as_str).filter(|pool| !pool.is_empty());
    if let (Some(field), Some(label)) = (field, label)
        && field != label
    {
        let (field, label) = (quotable(field), quotable(label));
        let message = format!("pool is {field}, but labels.pool is {label}; say one of them");
        return Err(FieldError::new("pool", Constraint::Unique, message));
    }
    let Some(pool) = field.or(label) else { return Ok(None) };
    if !is_value(pool) {
        let message = "pool may hold letters, digits, `-`, `_` and `.`, must start and end with a \
                       letter or digit, and may be 63 characters long";
        return Err(FieldError::new("pool", Constraint::Pattern, message));
    }
    Ok(Some(pool.to_owned()))
}

#[cfg(test)]
mod tests;
