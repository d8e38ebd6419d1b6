//! What exists in the simulated cloud, and how much of the quotas it uses.

use argosy_control::provider::Part;
use argosy_core::id::ResourceId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// A provider and one of its regions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The provider, by the name in the catalog.
    pub provider: String,
    /// The region.
    pub region: String,
}

/// What sort of thing an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A DNS record of a cluster.
    DnsRecord,
    /// The network of a cluster.
    Network,
    /// The control plane of a cluster.
    ControlPlane,
}

/// What an item is like. Two items of one shape can stand for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// What sort of thing it is.
    pub kind: ItemKind,
    /// A record's name; else the name of the kind.
    pub what: String,
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// How many CPUs it uses.
    pub cpus: u32,
    /// How many GPUs it uses.
    pub gpus: u32,
}

/// One thing that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Unique for ever.
    pub id: String,
    /// What it is like.
    #[serde(flatten)]
    pub shape: Shape,
    /// In which zone of its region; for a DNS record, the domain of its zone.
    pub zone: String,
    /// When its creation was asked for.
    pub created_at: Timestamp,
    /// When it is, or was, ready; absent for one that is stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// When it will be gone, once its removal was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
}

/// What counts against quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpus: u64,
    pub(super) gpus: u64,
    pub(super) clusters: u64,
}

/// Everything that exists, by the resource it was made for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<ResourceId, Vec<Item>>")]
pub(super) struct Inventory {
    items: BTreeMap<ResourceId, Vec<Item>>,
    /// The sum over `items`: each creation asks for it, and there may be many thousands of items.
    used: BTreeMap<Place, Usage>,
    /// Whose items were changed and are not in the file yet.
    changed: BTreeSet<ResourceId>,
}

impl ItemKind {
    pub(super) fn part(self) -> Part {
        match self {
            ItemKind::DnsRecord => Part::Dns,
            ItemKind::Network | ItemKind::ControlPlane => Part::Infrastructure,
        }
    }
}

impl Item {
    fn leaving(&self) -> bool {
        self.gone_at.is_some()
    }
}

impl Usage {
    pub(super) fn sum(shapes: &[Shape]) -> Self {
        shapes.iter().map(Self::of).fold(Self::default(), Self::plus)
    }

    pub(super) fn of(shape: &Shape) -> Self {
        let clusters = match shape.kind {
            ItemKind::ControlPlane => 1,
            ItemKind::DnsRecord | ItemKind::Network => 0,
        };
        Self { cpus: u64::from(shape.cpus), gpus: u64::from(shape.gpus), clusters }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            cpus: self.cpus + other.cpus,
            gpus: self.gpus + other.gpus,
            clusters: self.clusters + other.clusters,
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            cpus: self.cpus.saturating_sub(other.cpus),
            gpus: self.gpus.saturating_sub(other.gpus),
            clusters: self.clusters.saturating_sub(other.clusters),
        }
    }
}

impl Inventory {
    /// Whether anything is not in the file yet.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whose items are not in the file yet; from now on they count as written.
    pub(super) fn take_changed(&mut self) -> BTreeSet<ResourceId> {
        std::mem::take(&mut self.changed)
    }

    /// Everything a resource has, leaving or not.
    pub(super) fn all_of(&self, owner: ResourceId) -> &[Item] {
        self.items.get(&owner).map_or(&[], Vec::as_slice)
    }

    /// Puts what the file says a resource has in the place of what it had.
    pub(super) fn restore(&mut self, owner: ResourceId, items: Vec<Item>) {
        self.forget(owner, |_| true);
        for item in items {
            self.add(owner, item);
        }
        self.changed.clear();
    }

    pub(super) fn add(&mut self, owner: ResourceId, item: Item) {
        self.changed.insert(owner);
        self.count(&item.shape, Usage::plus);
        self.items.entry(owner).or_default().push(item);
    }

    pub(super) fn used(&self, place: &Place) -> Usage {
        self.used.get(place).copied().unwrap_or_default()
    }

    /// What a resource has of a part, less what is leaving, oldest first.
    pub(super) fn of(&self, owner: ResourceId, part: Part) -> impl Iterator<Item = &Item> {
        let items = self.items.get(&owner).map_or(&[][..], Vec::as_slice);
        items.iter().filter(move |item| item.shape.kind.part() == part && !item.leaving())
    }

    /// When the last of what is leaving will be gone, if anything is.
    pub(super) fn gone_at(&self, owner: ResourceId, part: Part) -> Option<Timestamp> {
        let items = self.items.get(&owner)?;
        let part = items.iter().filter(|item| item.shape.kind.part() == part);
        part.filter_map(|item| item.gone_at).max()
    }

    /// What a resource uses for a part in a place, with what is leaving.
    pub(super) fn used_by(&self, owner: ResourceId, part: Part, place: &Place) -> Usage {
        let items = self.items.get(&owner).into_iter().flatten();
        let shapes = items.map(|item| &item.shape);
        let here = shapes.filter(|shape| shape.kind.part() == part && shape.place == *place);
        here.map(Usage::of).fold(Usage::default(), Usage::plus)
    }

    /// What is missing to make a part as it is wanted.
    pub(super) fn missing(&self, owner: ResourceId, part: Part, wanted: &[Shape]) -> Vec<Shape> {
        let mut missing = wanted.to_vec();
        for item in self.of(owner, part) {
            take(&mut missing, &item.shape);
        }
        missing
    }

    /// What is not wanted begins to leave, the youngest first, and is gone when `gone_at` says.
    pub(super) fn trim(
        &mut self,
        owner: ResourceId,
        part: Part,
        wanted: &[Shape],
        gone_at: impl Fn(&Item) -> Timestamp,
    ) {
        let mut wanted = wanted.to_vec();
        for item in living(&mut self.items, owner, part) {
            if !take(&mut wanted, &item.shape) {
                item.gone_at = Some(gone_at(item));
                self.changed.insert(owner);
            }
        }
    }

    /// What is stuck will be ready after all.
    pub(super) fn unstick(&mut self, owner: ResourceId, part: Part, ready_at: Timestamp) {
        for item in living(&mut self.items, owner, part) {
            item.ready_at.get_or_insert(ready_at);
            self.changed.insert(owner);
        }
    }

    /// What is being made or removed is done by the time given, or before.
    pub(super) fn hasten(
        &mut self,
        ready_by: impl Fn(&Item) -> Timestamp,
        gone_by: impl Fn(&Item) -> Timestamp,
    ) {
        for item in self.items.values_mut().flatten() {
            item.ready_at = item.ready_at.map(|ready_at| ready_at.min(ready_by(item)));
            item.gone_at = item.gone_at.map(|gone_at| gone_at.min(gone_by(item)));
        }
    }

    /// Forgets what is gone by now.
    pub(super) fn settle(&mut self, owner: ResourceId, now: Timestamp) {
        self.forget(owner, |item| item.gone_at.is_some_and(|gone_at| gone_at <= now));
    }

    /// Forgets what is gone by now, for every resource.
    pub(super) fn settle_all(&mut self, now: Timestamp) {
        let owners: Vec<ResourceId> = self.items.keys().copied().collect();
        for owner in owners {
            self.settle(owner, now);
        }
    }

    /// Forgets items at once.
    pub(super) fn forget(&mut self, owner: ResourceId, which: impl Fn(&Item) -> bool) {
        let Some(items) = self.items.get_mut(&owner) else { return };
        let gone: Vec<Item> = items.extract_if(.., |item| which(item)).collect();
        if items.is_empty() {
            self.items.remove(&owner);
        }
        for item in gone {
            self.changed.insert(owner);
            self.count(&item.shape, Usage::minus);
        }
    }

    /// Forgets items of every resource at once.
    pub(super) fn forget_all(&mut self, which: impl Fn(&Item) -> bool) {
        let owners: Vec<ResourceId> = self.items.keys().copied().collect();
        for owner in owners {
            self.forget(owner, &which);
        }
    }

    /// Everything, by owner.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceId, &Vec<Item>)> {
        self.items.iter()
    }

    fn count(&mut self, shape: &Shape, how: impl Fn(Usage, Usage) -> Usage) {
        let used = self.used.entry(shape.place.clone()).or_default();
        *used = how(*used, Usage::of(shape));
    }
}

/// Takes one of a shape; false if there is none.
fn take(shapes: &mut Vec<Shape>, shape: &Shape) -> bool {
    let found = shapes.iter().position(|other| other == shape);
    found.map(|found| shapes.remove(found)).is_some()
}

/// What a resource has of a part, less what is leaving, to be changed. Shapes must stay: they are
/// counted.
fn living(
    items: &mut BTreeMap<ResourceId, Vec<Item>>,
    owner: ResourceId,
    part: Part,
) -> impl Iterator<Item = &mut Item> {
    let items = items.get_mut(&owner).map_or(&mut [][..], Vec::as_mut_slice);
    items.iter_mut().filter(move |item| item.shape.kind.part() == part && !item.leaving())
}

impl From<BTreeMap<ResourceId, Vec<Item>>> for Inventory {
    fn from(items: BTreeMap<ResourceId, Vec<Item>>) -> Self {
        let mut inventory = Self::default();
        for (owner, items) in items {
            for item in items {
                inventory.add(owner, item);
            }
        }
        inventory.changed.clear();
        inventory
    }
}

impl Serialize for Inventory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}
