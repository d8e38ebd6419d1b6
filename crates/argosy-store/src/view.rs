//! All current documents in memory, typed, with a few indexes; kept current by the feed.
//!
//! What a newcomer gets wrong: the view is behind its engine for a moment after a commit of another
//! process, never after one of our own: `Store::commit` returns when the view has seen it.

mod hardware;
mod instance;

use crate::engine::{Key, Revision};
use crate::entity::{Decoded, Entity, IdempotencyKey, NameClaim, orphan_key};
use argosy_core::breaker::{Breaker, Pause};
use argosy_core::command::Command;
use argosy_core::id::{CommandId, ResourceId};
use argosy_core::incarnation::Recovery;
use argosy_core::instance::Instance;
use argosy_core::inventory::{Condemned, Installation, Orphan, ProviderBook};
use argosy_core::liveness::{Attendance, Heard, Outlook};
use argosy_core::node::{Node, NodeId};
use argosy_core::policy::Policy;
use argosy_core::pool::PoolBook;
use argosy_core::remedy::LastDisruption;
use argosy_core::resource::{Kind, Resource, Tombstone};
use hardware::Hardware;
use instance::Instances;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// A document and the commit that last wrote it.
#[derive(Debug)]
pub struct Stored<T> {
    /// The document.
    pub value: Arc<T>,
    /// The commit that last wrote it.
    pub revision: Revision,
}

impl<T> Clone for Stored<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), revision: self.revision }
    }
}

/// What one commit changed, for watchers and loops.
#[derive(Clone, Debug)]
pub struct Event {
    /// The commit.
    pub revision: Revision,
    /// The resources it changed.
    pub resources: Vec<ResourceChange>,
    /// The nodes it changed.
    pub nodes: Vec<DocumentChange<Node>>,
    /// The commands it changed.
    pub commands: Vec<DocumentChange<Command>>,
    /// The policies it changed.
    pub policies: Vec<DocumentChange<Policy>>,
    /// The instances it changed.
    pub instances: Vec<DocumentChange<Instance>>,
    /// The pools whose books it changed: buying was paused or goes on, a size was decided on.
    pub pool_books: Vec<ResourceId>,
    /// The providers whose books or orphans it changed.
    pub providers: Vec<String>,
}

impl Event {
    pub(crate) fn new(revision: Revision) -> Event {
        Event {
            revision,
            resources: Vec::new(),
            nodes: Vec::new(),
            commands: Vec::new(),
            policies: Vec::new(),
            instances: Vec::new(),
            pool_books: Vec::new(),
            providers: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, change: Changed) {
        match change {
            Changed::Resource(change) => self.resources.push(change),
            Changed::Node(change) => self.nodes.push(change),
            Changed::Command(change) => self.commands.push(change),
            Changed::Policy(change) => self.policies.push(change),
            Changed::Instance(change) => self.instances.push(change),
            Changed::PoolBook(pool) => self.pool_books.push(pool),
            Changed::Provider(name) => self.providers.push(name),
        }
    }

    pub(crate) fn bury(&mut self, mut tombstones: HashMap<ResourceId, Arc<Tombstone>>) {
        for gone in self.resources.iter_mut().filter(|change| change.after.is_none()) {
            gone.tombstone = tombstones.remove(&gone.id);
        }
    }
}

/// One document's part in an event.
#[derive(Clone, Debug)]
pub struct DocumentChange<T> {
    /// The id in its key.
    pub id: String,
    /// As it was; `None` if it is new, or if the event was read back from the engine.
    pub before: Option<Stored<T>>,
    /// As it is; `None` if it was removed.
    pub after: Option<Stored<T>>,
}

/// A change that watchers and loops are told of.
#[derive(Debug)]
pub(crate) enum Changed {
    Resource(ResourceChange),
    Node(DocumentChange<Node>),
    Command(DocumentChange<Command>),
    Policy(DocumentChange<Policy>),
    Instance(DocumentChange<Instance>),
    PoolBook(ResourceId),
    Provider(String),
}

/// One resource's part in an event.
#[derive(Clone, Debug)]
pub struct ResourceChange {
    /// Which.
    pub id: ResourceId,
    /// As it was; `None` if it is new, or if the event was read back from the engine.
    pub before: Option<Stored<Resource>>,
    /// As it is; `None` if it was removed.
    pub after: Option<Stored<Resource>>,
    /// What remains of it, if it was removed and the same commit says so.
    pub tombstone: Option<Arc<Tombstone>>,
}

/// History that the store had and has no more.
#[derive(Clone, Debug)]
pub struct Lost {
    /// The last commit that this process had seen.
    pub seen: Revision,
    /// The last one that the store had when that was found out.
    pub head: Revision,
    /// Which control plane it was, should that be lost as well.
    pub installation: Option<Arc<Installation>>,
}

impl Lost {
    /// In which incarnation it was lost.
    fn incarnation(&self) -> u32 {
        self.installation.as_ref().map_or(0, |known| known.incarnation.number)
    }
}

/// The current documents.
#[derive(Debug, Default)]
pub struct View {
    revision: Revision,
    /// When each kind of document was last written, since the first load.
    changed: BTreeMap<String, Revision>,
    loaded_at: Revision,
    by_id: HashMap<ResourceId, Stored<Resource>>,
    // In order, for lists.
    resources: BTreeMap<Kind, BTreeMap<ResourceId, Stored<Resource>>>,
    children: HashMap<ResourceId, BTreeSet<ResourceId>>,
    labels: HashMap<String, HashMap<String, BTreeSet<ResourceId>>>,
    names: HashMap<String, ResourceId>,
    tombstones: BTreeMap<ResourceId, Stored<Tombstone>>,
    tombstones_by_name: HashMap<String, ResourceId>,
    idempotency_keys: BTreeMap<String, Stored<IdempotencyKey>>,
    // In order, for lists.
    nodes: BTreeMap<NodeId, Stored<Node>>,
    hardware: Hardware,
    commands: BTreeMap<CommandId, Stored<Command>>,
    node_commands: HashMap<NodeId, BTreeSet<CommandId>>,
    open_commands: BTreeSet<CommandId>,
    policies: BTreeMap<String, Stored<Policy>>,
    breakers: BTreeMap<String, Stored<Breaker>>,
    pauses: BTreeMap<String, Stored<Pause>>,
    outlook: Option<Stored<Outlook>>,
    attendance: Option<Stored<Attendance>>,
    heard: BTreeMap<String, Stored<Heard>>,
    instances: Instances,
    pool_books: BTreeMap<ResourceId, Stored<PoolBook>>,
    provider_books: BTreeMap<String, Stored<ProviderBook>>,
    // In order, for lists.
    orphans: BTreeMap<String, Stored<Orphan>>,
    condemned: BTreeMap<String, Stored<Condemned>>,
    installation: Option<Stored<Installation>>,
    last_disruption: Option<Stored<LastDisruption>>,
    recoveries: BTreeMap<ResourceId, Stored<Recovery>>,
    lost: Option<Lost>,
}

impl View {
    /// One node.
    pub fn node(&self, id: &str) -> Option<&Stored<Node>> {
        self.nodes.get(id)
    }

    /// All nodes, by id.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Stored<Node>> {
        self.nodes.values()
    }

    /// The nodes after an id, by id.
    pub fn nodes_after(&self, id: Option<&str>) -> impl Iterator<Item = &Stored<Node>> {
        let start = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.nodes.range::<str, _>((start, Bound::Unbounded)).map(|(_, node)| node)
    }

    /// The nodes that have, or had, a GPU: by serial number, or UUID where there is none.
    pub fn nodes_with_hardware(&self, hardware: &str) -> impl Iterator<Item = &Stored<Node>> {
        let nodes = self.hardware.maybe_in(hardware).iter().filter_map(|id| self.nodes.get(id));
        nodes.filter(move |node| hardware::names(&node.value).any(|name| name == hardware))
    }

    /// One command.
    pub fn command(&self, id: CommandId) -> Option<&Stored<Command>> {
        self.commands.get(&id)
    }

    /// All commands, by id, which is by age.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = &Stored<Command>> {
        self.commands.values()
    }

    /// The commands after an id, by id.
    pub fn commands_after(&self, id: Option<CommandId>) -> impl Iterator<Item = &Stored<Command>> {
        let start = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.commands.range((start, Bound::Unbounded)).map(|(_, command)| command)
    }

    /// The commands of a node, by age.
    pub fn commands_of(&self, node: &str) -> impl DoubleEndedIterator<Item = &Stored<Command>> {
        let ids = self.node_commands.get(node).into_iter().flatten();
        ids.filter_map(|id| self.commands.get(id))
    }

    /// The commands that have not ended, by age.
    pub fn open_commands(&self) -> impl Iterator<Item = &Stored<Command>> {
        self.open_commands.iter().filter_map(|id| self.commands.get(id))
    }

    /// One policy.
    pub fn policy(&self, tenant: &str, name: &str) -> Option<&Stored<Policy>> {
        self.policies.get(&format!("{tenant}/{name}"))
    }

    /// All policies, by tenant and name.
    pub fn policies(&self) -> impl ExactSizeIterator<Item = &Stored<Policy>> {
        self.policies.values()
    }

    /// The breakers that are not closed.
    pub fn breakers(&self) -> impl ExactSizeIterator<Item = &Stored<Breaker>> {
        self.breakers.values()
    }

    /// The pauses.
    pub fn pauses(&self) -> impl ExactSizeIterator<Item = &Stored<Pause>> {
        self.pauses.values()
    }

    /// Why nothing is done about silence, if anything keeps us.
    pub fn outlook(&self) -> Option<&Stored<Outlook>> {
        self.outlook.as_ref()
    }

    /// Up to when somebody led, if something counts on it.
    pub fn attendance(&self) -> Option<&Stored<Attendance>> {
        self.attendance.as_ref()
    }

    /// Whom processes heard that do not listen for the whole fleet.
    pub fn heard(&self) -> impl ExactSizeIterator<Item = &Stored<Heard>> {
        self.heard.values()
    }

    /// One instance.
    pub fn instance(&self, id: &str) -> Option<&Stored<Instance>> {
        self.instances.get(id)
    }

    /// All instances, by id.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = &Stored<Instance>> {
        self.instances.all()
    }

    /// The instances after an id, by id.
    pub fn instances_after(&self, id: Option<&str>) -> impl Iterator<Item = &Stored<Instance>> {
        self.instances.after(id)
    }

    /// The instances of a node pool, by id; those that are over as well.
    pub fn instances_of(&self, pool: ResourceId) -> impl Iterator<Item = &Stored<Instance>> {
        self.instances.of_pool(pool)
    }

    /// The instances whose machine a provider calls so: one, unless two providers use the same words.
    pub fn instances_by_machine(&self, machine: &str) -> impl Iterator<Item = &Stored<Instance>> {
        self.instances.by_machine(machine)
    }

    /// What is remembered of a node pool.
    pub fn pool_book(&self, pool: ResourceId) -> Option<&Stored<PoolBook>> {
        self.pool_books.get(&pool)
    }

    /// What is remembered of every node pool.
    pub fn pool_books(&self) -> impl ExactSizeIterator<Item = &Stored<PoolBook>> {
        self.pool_books.values()
    }

    /// What is remembered of a provider.
    pub fn provider_book(&self, name: &str) -> Option<&Stored<ProviderBook>> {
        self.provider_books.get(name)
    }

    /// What is remembered of every provider, by name.
    pub fn provider_books(&self) -> impl ExactSizeIterator<Item = &Stored<ProviderBook>> {
        self.provider_books.values()
    }

    /// A GPU that is known to be bad: by serial number, or UUID where there is none.
    pub fn condemned(&self, serial: &str) -> Option<&Stored<Condemned>> {
        self.condemned.get(serial)
    }

    /// When nodes were last taken out of service on request.
    pub fn last_disruption(&self) -> Option<&Stored<LastDisruption>> {
        self.last_disruption.as_ref()
    }

    /// All GPUs that are known to be bad, by serial number.
    pub fn all_condemned(&self) -> impl ExactSizeIterator<Item = &Stored<Condemned>> {
        self.condemned.values()
    }

    /// One machine that nobody knows.
    pub fn orphan(&self, provider: &str, machine: &str) -> Option<&Stored<Orphan>> {
        self.orphans.get(&orphan_key(provider, machine))
    }

    /// The machines that nobody knows, by provider and machine.
    pub fn orphans(&self) -> impl ExactSizeIterator<Item = &Stored<Orphan>> {
        self.orphans.values()
    }

    /// Which control plane this is; `None` until the first one to lead has said so.
    pub fn installation(&self) -> Option<&Stored<Installation>> {
        self.installation.as_ref()
    }

    /// A node pool that is in recovery; `None` if it is not.
    pub fn recovery(&self, pool: ResourceId) -> Option<&Stored<Recovery>> {
        self.recoveries.get(&pool)
    }

    /// The node pools in recovery, by id.
    pub fn recoveries(&self) -> impl ExactSizeIterator<Item = &Stored<Recovery>> {
        self.recoveries.values()
    }

    /// That the store does not have commits which this process has seen, until a new incarnation accounts for it.
    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// The last commit this view has seen.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The newest commit that may have written or removed a document of a kind: who looked at all of them
    /// then has seen them.
    pub fn changed_at<T: Entity>(&self) -> Revision {
        self.changed.get(T::KIND).copied().unwrap_or(self.loaded_at)
    }

    /// One resource.
    pub fn resource(&self, id: ResourceId) -> Option<&Stored<Resource>> {
        self.by_id.get(&id)
    }

    /// All resources of a kind, by id, which is by age.
    pub fn resources(&self, kind: Kind) -> impl Iterator<Item = &Stored<Resource>> {
        self.resources.get(&kind).into_iter().flat_map(BTreeMap::values)
    }

    /// How many resources of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.resources.get(&kind).map_or(0, BTreeMap::len)
    }

    /// What a resource owns.
    pub fn children(&self, owner: ResourceId) -> impl Iterator<Item = &Stored<Resource>> {
        self.children.get(&owner).into_iter().flatten().filter_map(|id| self.resource(*id))
    }

    /// Whether a resource owns anything, in whatever state.
    pub fn has_children(&self, owner: ResourceId) -> bool {
        self.children.contains_key(&owner)
    }

    /// How many resources of any kind carry a label.
    pub fn count_labelled(&self, key: &str, value: &str) -> usize {
        let ids = self.labels.get(key).and_then(|values| values.get(value));
        ids.map_or(0, BTreeSet::len)
    }

    /// The resources of any kind that carry a label.
    pub fn labelled<'v>(
        &'v self,
        key: &str,
        value: &str,
    ) -> impl Iterator<Item = &'v Stored<Resource>> + use<'v> {
        let ids = self.labels.get(key).and_then(|values| values.get(value));
        ids.into_iter().flatten().filter_map(|id| self.resource(*id))
    }

    /// Who has a name; the claim's `holder` does not matter.
    pub fn holder(&self, claim: &NameClaim) -> Option<ResourceId> {
        self.names.get(&claim.key_id()).copied()
    }

    /// What remains of a removed resource.
    pub fn tombstone(&self, id: ResourceId) -> Option<&Stored<Tombstone>> {
        self.tombstones.get(&id)
    }

    /// What remains of the last resource that had a name; the claim's `holder` does not matter.
    pub fn tombstone_named(&self, claim: &NameClaim) -> Option<&Stored<Tombstone>> {
        self.tombstone(*self.tombstones_by_name.get(&claim.key_id())?)
    }

    /// Tombstones of resources that were removed before a time.
    pub fn tombstones_before(&self, time: Timestamp) -> Vec<Stored<Tombstone>> {
        self.tombstones.values().filter(|t| t.value.removed_at < time).cloned().collect()
    }

    /// A remembered request.
    pub fn idempotency_key(&self, id: &str) -> Option<&Stored<IdempotencyKey>> {
        self.idempotency_keys.get(id)
    }

    /// Requests that may be forgotten at a time.
    pub fn idempotency_keys_expired(&self, now: Timestamp) -> Vec<Stored<IdempotencyKey>> {
        self.idempotency_keys.values().filter(|k| k.value.expires <= now).cloned().collect()
    }

    /// Takes in one document of the first load.
    pub(crate) fn load(&mut self, key: &Key, revision: Revision, document: Decoded) {
        self.set(key, revision, document);
    }

    /// Says up to where the first load goes.
    pub(crate) fn loaded(&mut self, revision: Revision) {
        self.revision = revision;
        self.loaded_at = revision;
    }

    /// Says which view it takes the place of: if that has seen more, history was lost.
    pub(crate) fn replaces(&mut self, old: &View) {
        let number = |view: &View| {
            view.installation.as_ref().map_or(0, |found| found.value.incarnation.number)
        };
        // One that is newer began because of it, or after it.
        if number(old) < number(self) {
            return;
        }
        self.lost = (self.revision < old.revision).then(|| Lost {
            seen: old.revision,
            head: self.revision,
            installation: old.installation.as_ref().map(|found| found.value.clone()),
        });
        self.lost = self.lost.take().or_else(|| old.lost.clone());
    }

    /// Takes in one commit, the next one.
    pub(crate) fn apply<'a>(
        &mut self,
        revision: Revision,
        documents: impl Iterator<Item = (&'a Key, Decoded)>,
    ) -> Event {
        let mut tombstones = HashMap::new();
        let mut event = Event::new(revision);
        for (key, document) in documents {
            if let Decoded::Tombstone(tombstone) = &document {
                tombstones.insert(tombstone.id, tombstone.clone());
            }
            match self.changed.get_mut(&key.kind) {
                Some(changed) => *changed = revision,
                None => {
                    self.changed.insert(key.kind.clone(), revision);
                }
            }
            if let Some(change) = self.set(key, revision, document) {
                event.add(change);
            }
        }
        self.revision = revision;
        event.bury(tombstones);
        event
    }

    fn set(&mut self, key: &Key, revision: Revision, document: Decoded) -> Option<Changed> {
        let id = || key.id.clone();
        match document {
            Decoded::Resource(value) => {
                let id = value.id;
                // The first load may have been ahead of the feed.
                if self.resource(id).is_some_and(|known| revision < known.revision) {
                    return None;
                }
                let before = self.unset_resource(id);
                let after = Stored { value, revision };
                self.set_resource(after.clone());
                let change = ResourceChange { id, before, after: Some(after), tombstone: None };
                Some(Changed::Resource(change))
            }
            Decoded::Node(value) => {
                if self.node(value.id.as_str()).is_some_and(|known| revision < known.revision) {
                    return None;
                }
                let after = Stored { value, revision };
                let before = self.set_node(after.clone());
                Some(Changed::Node(DocumentChange { id: id(), before, after: Some(after) }))
            }
            Decoded::Command(value) => {
                if self.command(value.id).is_some_and(|known| revision < known.revision) {
                    return None;
                }
                let before = self.unset_command(value.id);
                let after = Stored { value, revision };
                self.set_command(after.clone());
                Some(Changed::Command(DocumentChange { id: id(), before, after: Some(after) }))
            }
            Decoded::Policy(value) => {
                let after = Stored { value, revision };
                let before = self.policies.insert(id(), after.clone());
                Some(Changed::Policy(DocumentChange { id: id(), before, after: Some(after) }))
            }
            Decoded::Instance(value) => {
                if self.instance(value.id.as_str()).is_some_and(|known| revision < known.revision) {
                    return None;
                }
                let after = Stored { value, revision };
                let before = self.instances.set(after.clone());
                Some(Changed::Instance(DocumentChange { id: id(), before, after: Some(after) }))
            }
            Decoded::PoolBook(value) => {
                let pool = value.pool;
                self.pool_books.insert(pool, Stored { value, revision });
                Some(Changed::PoolBook(pool))
            }
            Decoded::ProviderBook(value) => {
                self.provider_books.insert(id(), Stored { value, revision });
                Some(Changed::Provider(id()))
            }
            Decoded::Condemned(value) => {
                self.condemned.insert(id(), Stored { value, revision });
                None
            }
            Decoded::Orphan(value) => {
                let provider = value.provider.clone();
                self.orphans.insert(id(), Stored { value, revision });
                Some(Changed::Provider(provider))
            }
            Decoded::Installation(value) => {
                let number = value.incarnation.number;
                self.lost.take_if(|lost| lost.incarnation() < number);
                self.installation = Some(Stored { value, revision });
                None
            }
            Decoded::LastDisruption(value) => {
                self.last_disruption = Some(Stored { value, revision });
                None
            }
            Decoded::Recovery(value) => {
                self.recoveries.insert(value.pool, Stored { value, revision });
                None
            }
            Decoded::Breaker(value) => {
                self.breakers.insert(id(), Stored { value, revision });
                None
            }
            Decoded::Pause(value) => {
                self.pauses.insert(id(), Stored { value, revision });
                None
            }
            Decoded::Outlook(value) => {
                self.outlook = Some(Stored { value, revision });
                None
            }
            Decoded::Attendance(value) => {
                self.attendance = Some(Stored { value, revision });
                None
            }
            Decoded::Heard(value) => {
                self.heard.insert(id(), Stored { value, revision });
                None
            }
            Decoded::Tombstone(value) => {
                self.tombstones_by_name.insert(claim_of(&value).key_id(), value.id);
                self.tombstones.insert(value.id, Stored { value, revision });
                None
            }
            Decoded::NameClaim(value) => {
                self.names.insert(key.id.clone(), value.holder);
                None
            }
            Decoded::IdempotencyKey(value) => {
                self.idempotency_keys.insert(key.id.clone(), Stored { value, revision });
                None
            }
            Decoded::Gone => self.unset(key),
        }
    }

    fn unset(&mut self, key: &Key) -> Option<Changed> {
        let id = || key.id.clone();
        match key.kind.as_str() {
            Node::KIND => {
                let before = Some(self.unset_node(&key.id)?);
                return Some(Changed::Node(DocumentChange { id: id(), before, after: None }));
            }
            Command::KIND => {
                let before = Some(self.unset_command(CommandId::parse(&key.id)?)?);
                return Some(Changed::Command(DocumentChange { id: id(), before, after: None }));
            }
            Policy::KIND => {
                let before = Some(self.policies.remove(&key.id)?);
                return Some(Changed::Policy(DocumentChange { id: id(), before, after: None }));
            }
            Instance::KIND => {
                let before = Some(self.instances.unset(&key.id)?);
                return Some(Changed::Instance(DocumentChange { id: id(), before, after: None }));
            }
            PoolBook::KIND => {
                let pool = ResourceId::parse(&key.id)?;
                self.pool_books.remove(&pool)?;
                return Some(Changed::PoolBook(pool));
            }
            ProviderBook::KIND => {
                self.provider_books.remove(&key.id)?;
                return Some(Changed::Provider(id()));
            }
            Condemned::KIND => {
                self.condemned.remove(&key.id);
            }
            Orphan::KIND => {
                let gone = self.orphans.remove(&key.id)?;
                return Some(Changed::Provider(gone.value.provider.clone()));
            }
            Installation::KIND => self.installation = None,
            LastDisruption::KIND => self.last_disruption = None,
            Recovery::KIND => {
                self.recoveries.remove(&ResourceId::parse(&key.id)?);
            }
            Breaker::KIND => {
                self.breakers.remove(&key.id);
            }
            Pause::KIND => {
                self.pauses.remove(&key.id);
            }
            Outlook::KIND => self.outlook = None,
            Attendance::KIND => self.attendance = None,
            Heard::KIND => {
                self.heard.remove(&key.id);
            }
            Resource::KIND => {
                let id = ResourceId::parse(&key.id)?;
                let before = self.unset_resource(id)?;
                let before = Some(before);
                let change = ResourceChange { id, before, after: None, tombstone: None };
                return Some(Changed::Resource(change));
            }
            Tombstone::KIND => {
                let gone = self.tombstones.remove(&ResourceId::parse(&key.id)?)?.value;
                let name = claim_of(&gone).key_id();
                if self.tombstones_by_name.get(&name) == Some(&gone.id) {
                    self.tombstones_by_name.remove(&name);
                }
            }
            NameClaim::KIND => {
                self.names.remove(&key.id);
            }
            IdempotencyKey::KIND => {
                self.idempotency_keys.remove(&key.id);
            }
            _ => {}
        }
        None
    }

    /// Keeps a node, and answers with what it was before.
    fn set_node(&mut self, node: Stored<Node>) -> Option<Stored<Node>> {
        let before = self.nodes.insert(node.value.id.clone(), node.clone());
        // What changes most often, duty and health, moves no GPU.
        let same = before
            .as_ref()
            .is_some_and(|before| hardware::names(&before.value).eq(hardware::names(&node.value)));
        if !same {
            before.iter().for_each(|before| self.hardware.remove(&before.value));
            self.hardware.insert(&node.value);
        }
        before
    }

    fn unset_node(&mut self, id: &str) -> Option<Stored<Node>> {
        let gone = self.nodes.remove(id)?;
        self.hardware.remove(&gone.value);
        Some(gone)
    }

    fn set_command(&mut self, command: Stored<Command>) {
        let id = command.value.id;
        self.node_commands.entry(command.value.node.clone()).or_default().insert(id);
        if !command.value.state.is_done() {
            self.open_commands.insert(id);
        }
        self.commands.insert(id, command);
    }

    fn unset_command(&mut self, id: CommandId) -> Option<Stored<Command>> {
        let gone = self.commands.remove(&id)?;
        self.open_commands.remove(&id);
        if let Some(commands) = self.node_commands.get_mut(&gone.value.node) {
            commands.remove(&id);
            if commands.is_empty() {
                self.node_commands.remove(&gone.value.node);
            }
        }
        Some(gone)
    }

    fn set_resource(&mut self, resource: Stored<Resource>) {
        let Resource { id, kind, owner, .. } = *resource.value;
        self.by_id.insert(id, resource.clone());
        if let Some(owner) = owner {
            self.children.entry(owner).or_default().insert(id);
        }
        for (key, value) in resource.value.labels.iter() {
            let values = self.labels.entry(key.to_owned()).or_default();
            values.entry(value.to_owned()).or_default().insert(id);
        }
        self.resources.entry(kind).or_default().insert(id, resource);
    }

    fn unset_resource(&mut self, id: ResourceId) -> Option<Stored<Resource>> {
        let gone = self.by_id.remove(&id)?;
        if let Some(resources) = self.resources.get_mut(&gone.value.kind) {
            resources.remove(&id);
        }
        if let Some(owner) = gone.value.owner
            && let Some(children) = self.children.get_mut(&owner)
        {
            children.remove(&id);
            if children.is_empty() {
                self.children.remove(&owner);
            }
        }
        for (key, value) in gone.value.labels.iter() {
            let Some(values) = self.labels.get_mut(key) else { continue };
            if let Some(ids) = values.get_mut(value) {
                ids.remove(&id);
                if ids.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.labels.remove(key);
            }
        }
        Some(gone)
    }
}

fn claim_of(tombstone: &Tombstone) -> NameClaim {
    NameClaim {
        tenant: tombstone.tenant.clone(),
        kind: tombstone.kind,
        owner: tombstone.owner,
        name: tombstone.name.clone(),
        holder: tombstone.id,
    }
}
