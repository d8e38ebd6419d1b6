//! The machines of the simulated cloud: those that are there, and for an hour those that were.

use super::inventory::{Place, Usage};
use argosy_core::machine::{Machine, MachineId, MachineState, Notice, Tags};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// One machine, as the cloud keeps it.
///
/// How it is follows from the time: nothing has to happen for it to boot, or to be gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Unique for ever.
    pub id: String,
    /// What it was named.
    pub name: String,
    /// Through which provider it was bought, and where it is.
    #[serde(flatten)]
    pub place: Place,
    /// In which zone; empty if the provider has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// What it is.
    pub machine_type: String,
    /// How many CPUs it uses.
    pub cpus: u32,
    /// How many GPUs it has.
    pub gpus: u32,
    /// Whether it may be taken back at any time.
    #[serde(default)]
    pub spot: bool,
    /// In US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
    /// What is written on it.
    #[serde(default)]
    pub tags: Tags,
    /// With which token it was asked for, whatever is written on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Uuid>,
    /// The node pool, by the name that nodes carry.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// The tenant whose it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The labels of its node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it is, or was, there.
    pub ready_at: Timestamp,
    /// When it is, or was, up after its last boot.
    pub up_at: Timestamp,
    /// How often it was booted again.
    #[serde(default)]
    pub reboots: u32,
    /// Whether it has lost its power: it is silent, and still shown and paid for.
    #[serde(default)]
    pub dead: bool,
    /// Whether its boots fail: it is silent from the start.
    #[serde(default)]
    pub mute: bool,
    /// What the provider intends to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
    /// Since when it leaves, and when it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
}

/// The end of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// From when on it stops.
    pub from: Timestamp,
    /// When it is gone.
    pub gone_at: Timestamp,
}

/// All machines. Each change is counted and indexed here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<Made>")]
pub(super) struct Fleet {
    machines: BTreeMap<String, Made>,
    tokens: HashMap<Uuid, String>,
    names: HashMap<String, String>,
    /// What those that are not gone use: each creation asks for it.
    used: BTreeMap<Place, Usage>,
    /// When machines that leave are gone.
    ends: BTreeSet<(Timestamp, String)>,
    /// When machines that are gone are no longer shown.
    last_shown: BTreeSet<(Timestamp, String)>,
    /// Which are not in the file yet.
    changed: BTreeSet<String>,
}

/// How long a machine that is gone is still shown, as such: as long as EC2 does.
const SHOWN_FOR: SignedDuration = SignedDuration::from_hours(1);

impl Made {
    /// What it is doing.
    pub(super) fn state(&self, now: Timestamp) -> MachineState {
        match self.leaving {
            Some(Leaving { gone_at, .. }) if gone_at <= now => MachineState::Gone,
            Some(Leaving { from, .. }) if from <= now => MachineState::Stopping,
            Some(_) | None if self.ready_at <= now => MachineState::Running,
            Some(_) | None => MachineState::Starting,
        }
    }

    /// Whether its agent runs.
    pub(super) fn is_up(&self, now: Timestamp) -> bool {
        let booted = self.up_at <= now && !self.dead && !self.mute;
        booted && self.state(now) == MachineState::Running
    }

    /// When the next of its own changes comes.
    pub(super) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let leaving = self.leaving.map(|leaving| leaving.from);
        [Some(self.up_at), leaving].into_iter().flatten().filter(|at| now < *at).min()
    }

    /// As it is shown to whoever asks.
    pub(super) fn shown(&self, now: Timestamp) -> Machine {
        Machine {
            id: MachineId::new(self.id.as_str()),
            name: self.name.clone(),
            state: self.state(now),
            tags: self.tags.clone(),
            region: self.place.region.clone(),
            zone: self.zone.clone(),
            machine_type: self.machine_type.clone(),
            spot: self.spot,
            created_at: Some(self.created_at),
            internal_ip: self.address(),
            external_ip: String::new(),
            notice: self.notice.clone(),
        }
    }

    /// The names by which a fault can find it: its pool's own, and its own.
    pub(super) fn known_as(&self) -> [&str; 2] {
        [plain(&self.pool), &self.name]
    }

    fn address(&self) -> String {
        let digits = self.id.rsplit('-').next().unwrap_or_default();
        let number = u64::from_str_radix(digits, 16).unwrap_or_default();
        let [_, _, _, _, _, a, b, c] = number.to_be_bytes();
        format!("10.{a}.{b}.{c}")
    }

    fn usage(&self) -> Usage {
        Usage { cpus: self.cpus.into(), gpus: self.gpus.into(), clusters: 0 }
    }
}

/// A pool's name without that of its cluster.
pub(super) fn plain(pool: &str) -> &str {
    pool.rsplit('.').next().unwrap_or(pool)
}

impl Fleet {
    /// Whether anything is not in the file yet.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// What is not in the file yet; from now on it counts as written.
    pub(super) fn take_changed(&mut self) -> impl Iterator<Item = &Made> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|id| self.machines.get(&id))
    }

    /// Everything counts as written.
    pub(super) fn written(&mut self) {
        self.changed.clear();
    }

    /// Takes in what the file says of a machine.
    pub(super) fn restore(&mut self, machine: Made) {
        let id = machine.id.clone();
        self.remove(&id);
        self.add(machine);
        self.changed.remove(&id);
    }

    pub(super) fn add(&mut self, machine: Made) {
        let id = machine.id.clone();
        self.tokens.extend(machine.token.map(|token| (token, id.clone())));
        self.names.insert(machine.name.clone(), id.clone());
        self.ends.extend(machine.leaving.map(|leaving| (leaving.gone_at, id.clone())));
        self.count(&machine, Usage::plus);
        self.machines.insert(id.clone(), machine);
        self.changed.insert(id);
    }

    /// Changes a machine; false if there is none. What it uses must stay: it is counted.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut Made)) -> bool {
        let Some(machine) = self.machines.get_mut(id) else { return false };
        let before = machine.leaving;
        change(machine);
        let after = machine.leaving;
        if before != after {
            if let Some(leaving) = before {
                self.ends.remove(&(leaving.gone_at, id.to_owned()));
            }
            self.ends.extend(after.map(|leaving| (leaving.gone_at, id.to_owned())));
        }
        self.changed.insert(id.to_owned());
        true
    }

    pub(super) fn get(&self, id: &str) -> Option<&Made> {
        self.machines.get(id)
    }

    /// The machine that was asked for with a token.
    pub(super) fn by_token(&self, token: Uuid) -> Option<&Made> {
        self.tokens.get(&token).and_then(|id| self.machines.get(id))
    }

    /// The machine that was last named so.
    pub(super) fn by_name(&self, name: &str) -> Option<&Made> {
        self.names.get(name).and_then(|id| self.machines.get(id))
    }

    /// Every machine that is shown.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Made> {
        self.machines.values()
    }

    pub(super) fn used(&self, place: &Place) -> Usage {
        self.used.get(place).copied().unwrap_or_default()
    }

    /// What is gone by now uses nothing more, and what is long gone is forgotten.
    pub(super) fn settle(&mut self, now: Timestamp) {
        while let Some((at, id)) = take_due(&mut self.ends, now) {
            if let Some(machine) = self.machines.get(&id).cloned() {
                self.count(&machine, Usage::minus);
            }
            self.last_shown.insert((at.saturating_add(SHOWN_FOR).unwrap_or(Timestamp::MAX), id));
        }
        while let Some((_, id)) = take_due(&mut self.last_shown, now) {
            self.forget(&id);
        }
    }

    /// What is under way is done by the times given, or before.
    pub(super) fn hasten(
        &mut self,
        up_by: impl Fn(&Made) -> Timestamp,
        gone_by: impl Fn(&Made) -> Timestamp,
        now: Timestamp,
    ) {
        let ids: Vec<String> = self.machines.keys().cloned().collect();
        for id in ids {
            let Some(machine) = self.machines.get(&id) else { continue };
            let (up_by, gone_by) = (up_by(machine), gone_by(machine));
            let coming = now < machine.up_at;
            let going = machine.leaving.is_some_and(|leaving| now < leaving.gone_at);
            if !coming && !going {
                continue;
            }
            self.change(&id, |machine| {
                machine.ready_at = machine.ready_at.min(up_by);
                machine.up_at = machine.up_at.min(up_by);
                if let Some(leaving) =
                    machine.leaving.as_mut().filter(|leaving| leaving.from <= now)
                {
                    leaving.gone_at = leaving.gone_at.min(gone_by);
                }
            });
        }
    }

    /// Takes a machine out, whether or not it is still counted.
    fn remove(&mut self, id: &str) {
        let Some(machine) = self.machines.get(id).cloned() else { return };
        // Gone machines were counted out when they went.
        let waits = |leaving: super::Leaving| self.ends.remove(&(leaving.gone_at, id.to_owned()));
        if machine.leaving.is_none_or(waits) {
            self.count(&machine, Usage::minus);
        }
        self.forget(id);
    }

    fn forget(&mut self, id: &str) {
        let Some(machine) = self.machines.remove(id) else { return };
        if let Some(token) = machine.token {
            self.tokens.remove(&token);
        }
        // A later machine may have taken the name.
        if self.names.get(&machine.name).is_some_and(|named| named == id) {
            self.names.remove(&machine.name);
        }
        self.changed.remove(id);
    }

    fn count(&mut self, machine: &Made, how: impl Fn(Usage, Usage) -> Usage) {
        let used = self.used.entry(machine.place.clone()).or_default();
        *used = how(*used, machine.usage());
    }
}

/// The first entry whose time has come.
fn take_due(
    times: &mut BTreeSet<(Timestamp, String)>,
    now: Timestamp,
) -> Option<(Timestamp, String)> {
    if now < times.first()?.0 {
        return None;
    }
    times.pop_first()
}

impl From<Vec<Made>> for Fleet {
    fn from(machines: Vec<Made>) -> Self {
        let mut fleet = Self::default();
        for machine in machines {
            fleet.restore(machine);
        }
        fleet
    }
}

impl Serialize for Fleet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.machines.values())
    }
}
