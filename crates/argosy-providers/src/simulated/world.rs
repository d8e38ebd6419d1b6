//! The state of the simulated cloud, and the one step that brings a part closer to what is wanted.
//!
//! Nothing here waits: a step says until when to wait, and may be asked again at any time, by anybody.
//! That is what makes every operation idempotent and safe to drop.

use super::fault::{Fault, FaultKind, FaultParams, NewFault};
use super::fleet::{Fleet, Made};
use super::inventory::{Inventory, Item, ItemKind, Place, Shape, Usage};
use super::latency::Latencies;
use super::machine::zones;
use super::permission::Permissions;
use super::quota::{self, Metric, Quota, SetQuota};
use super::want::{DEFAULT_DOMAIN, Want};
use super::words;
use argosy_control::provider::{Ask, Done, Part, Refusal};
use argosy_core::catalog::Catalog;
use argosy_core::id::ResourceId;
use argosy_core::resource::Kind;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Everything about the simulated cloud that outlives the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct World {
    /// The form of the file.
    pub(super) version: u32,
    /// The domains that have a zone.
    pub(super) zones: BTreeSet<String>,
    /// The quotas that somebody set.
    pub(super) quotas: Vec<SetQuota>,
    /// What the service account may not do, by provider.
    pub(super) denied_permissions: BTreeMap<String, BTreeSet<String>>,
    /// Labels (`team:platform`) whose clusters may not be touched.
    pub(super) denied_labels: BTreeSet<String>,
    pub(super) latencies: Latencies,
    pub(super) faults: Vec<Fault>,
    /// The next id of a fault or an item.
    next_id: u64,
    pub(super) inventory: Inventory,
    #[serde(rename = "machines")]
    pub(super) fleet: Fleet,
    /// Whether the rest was changed and is not in the file yet.
    #[serde(skip)]
    edited: bool,
}

/// What the file says after the whole world at its beginning: so that many thousands of items are not
/// written again for each new one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line<'a> {
    /// Everything that one resource has.
    Items { owner: ResourceId, next_id: u64, items: Cow<'a, [Item]> },
    /// One machine.
    Machine { machine: Box<Made>, next_id: u64 },
}

/// How far an operation is.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing to do before this time.
    Wait(Timestamp),
    /// Finished, one way or the other.
    End(Result<Done, Refusal>),
}

impl World {
    /// The form this program reads and writes.
    pub(super) const VERSION: u32 = 2;

    /// A cloud in which everything works, and the default domain has a zone.
    pub(super) fn new(latencies: Latencies) -> Self {
        Self {
            version: Self::VERSION,
            zones: BTreeSet::from([DEFAULT_DOMAIN.to_owned()]),
            quotas: Vec::new(),
            denied_permissions: BTreeMap::new(),
            denied_labels: BTreeSet::new(),
            latencies,
            faults: Vec::new(),
            next_id: 1,
            inventory: Inventory::default(),
            fleet: Fleet::default(),
            edited: false,
        }
    }

    /// Counts a change from outside.
    pub(super) fn edited(&mut self) {
        self.edited = true;
    }

    /// Whether anything is not in the file yet.
    pub(super) fn is_unsaved(&self) -> bool {
        self.edited || self.inventory.is_changed() || self.fleet.is_changed()
    }

    /// What was to be written was not.
    pub(super) fn unsaved(&mut self) {
        self.edited = true;
    }

    /// Everything, as the file begins.
    pub(super) fn save_whole(&mut self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        self.inventory.take_changed();
        self.fleet.written();
        self.edited = false;
        Ok(text)
    }

    /// What is to be added to the file; `None` if that does not say it all.
    pub(super) fn save_changed(&mut self) -> serde_json::Result<Option<Vec<u8>>> {
        if self.edited {
            return Ok(None);
        }
        let mut text = Vec::new();
        for owner in self.inventory.take_changed() {
            let items = Cow::Borrowed(self.inventory.all_of(owner));
            let line = Line::Items { owner, next_id: self.next_id, items };
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        for machine in self.fleet.take_changed() {
            let machine = Box::new(machine.clone());
            let line = Line::Machine { machine, next_id: self.next_id };
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        Ok(Some(text))
    }

    /// Takes in one line that was added to the file.
    pub(super) fn restore(&mut self, line: &[u8]) -> serde_json::Result<()> {
        let next_id = match serde_json::from_slice(line)? {
            Line::Items { owner, next_id, items } => {
                self.inventory.restore(owner, items.into_owned());
                next_id
            }
            Line::Machine { machine, next_id } => {
                self.fleet.restore(*machine);
                next_id
            }
        };
        self.next_id = self.next_id.max(next_id);
        Ok(())
    }

    /// What clusters and machines use in a place.
    pub(super) fn used(&self, place: &Place) -> Usage {
        self.inventory.used(place).plus(self.fleet.used(place))
    }

    pub(super) fn quota(&self, place: &Place, metric: Metric) -> Quota {
        let set = self.quotas.iter().find(|set| set.place == *place && set.resource == metric);
        set.map_or(metric.default_quota(), |set| set.quota)
    }

    pub(super) fn set_quota(&mut self, place: Place, resource: Metric, quota: Quota) {
        self.quotas.retain(|set| set.place != place || set.resource != resource);
        self.quotas.push(SetQuota { place, resource, quota });
    }

    pub(super) fn set_latencies(&mut self, latencies: Latencies, now: Timestamp) {
        self.latencies = latencies;
        self.inventory.hasten(
            |item| later(now, latencies.creation(item.shape.kind).of(&item.id, 0)),
            |item| later(now, latencies.removal.of(&item.id, 0)),
        );
        self.fleet.hasten(
            |made| later(now, latencies.machine.of(&made.id, made.reboots.into())),
            |made| later(now, latencies.removal.of(&made.id, 0)),
            now,
        );
    }

    pub(super) fn inject(&mut self, fault: NewFault) -> Fault {
        let fault = Fault { id: self.take_id(), fault };
        self.faults.push(fault.clone());
        fault
    }

    /// Removes a zone and the records in it; false if there is none.
    pub(super) fn delete_zone(&mut self, domain: &str) -> bool {
        self.inventory
            .forget_all(|item| item.shape.kind == ItemKind::DnsRecord && item.zone == domain);
        self.zones.remove(domain)
    }

    /// Whether a resource could be made.
    pub(super) fn preflight(
        &mut self,
        ask: &Ask,
        catalog: &Catalog,
        now: Timestamp,
    ) -> Result<Done, Refusal> {
        let want = Want::read(ask, catalog)?;
        let permissions = Permissions::of(&want.place.provider);
        match ask.resource.kind {
            Kind::Cluster => {
                if let Some(label) = self.denied_label(ask) {
                    return Err(words::label_denied(&label));
                }
                self.allowed(&[permissions.buckets], &want)?;
                self.within_quota(Part::Infrastructure, ask, &want, now)?;
            }
            Kind::NodePool => {
                let denied = self.allowed(&[permissions.pools], &want).is_err();
                if denied || self.denied_label(ask).is_some() {
                    return Err(words::pools_denied());
                }
            }
        }
        Ok(self.checked(ask, &want))
    }

    /// One step towards a part as it is asked for.
    pub(super) fn ensure(
        &mut self,
        part: Part,
        ask: &Ask,
        catalog: &Catalog,
        now: Timestamp,
    ) -> Step {
        match self.try_ensure(part, ask, catalog, now) {
            Ok(step) => step,
            Err(refusal) => Step::End(Err(refusal)),
        }
    }

    /// One step towards a part's absence.
    pub(super) fn remove(&mut self, part: Part, owner: ResourceId, now: Timestamp) -> Step {
        self.trim(part, owner, &[], now);
        match self.inventory.gone_at(owner, part) {
            Some(gone_at) => Step::Wait(gone_at),
            None => Step::End(Ok(words::removed(part))),
        }
    }

    fn try_ensure(
        &mut self,
        part: Part,
        ask: &Ask,
        catalog: &Catalog,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let want = Want::read(ask, catalog)?;
        let owner = ask.resource.id;
        if part == Part::Dns && !self.zones.contains(&want.domain) {
            return Err(words::zone_not_found(&want.domain));
        }
        let wanted = want.shapes(part);
        let missing = self.inventory.missing(owner, part, &wanted);
        if !missing.is_empty() {
            // Before anything leaves: what cannot be replaced is kept.
            self.may_create(part, ask, &want, now).map_err(|refusal| {
                let applied = self.inventory.of(owner, part).next().is_some();
                Refusal { applied, ..refusal }
            })?;
        }
        self.trim(part, owner, &wanted, now);
        // What is to be replaced goes first: until it has gone it uses up quota.
        if let Some(gone_at) = self.inventory.gone_at(owner, part) {
            return Ok(Step::Wait(gone_at));
        }
        for (nth, shape) in missing.into_iter().enumerate() {
            self.create_item(ask, &want, shape, nth, now);
        }
        self.await_ready(part, ask, &want, now)
    }

    fn trim(&mut self, part: Part, owner: ResourceId, wanted: &[Shape], now: Timestamp) {
        let removal = self.latencies.removal;
        let gone_at = |item: &Item| later(now, removal.of(&item.id, 0));
        self.inventory.trim(owner, part, wanted, gone_at);
        self.inventory.settle(owner, now);
    }

    fn may_create(
        &mut self,
        part: Part,
        ask: &Ask,
        want: &Want,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Permissions { records, networks, clusters, .. } =
            *Permissions::of(&want.place.provider);
        match part {
            Part::Dns => self.allowed(&[records], want)?,
            Part::Infrastructure => self.allowed(&[networks, clusters], want)?,
        }
        self.within_quota(part, ask, want, now)
    }

    fn create_item(&mut self, ask: &Ask, want: &Want, shape: Shape, nth: usize, now: Timestamp) {
        let number = self.take_id();
        let name = ask.resource.name.as_str();
        let zones = zones(&shape.place);
        let zone = zones.get(nth).cloned().unwrap_or_default();
        let (id, zone) = match shape.kind {
            ItemKind::DnsRecord => (shape.what.clone(), want.domain.clone()),
            ItemKind::Network | ItemKind::ControlPlane => {
                (format!("{name}-{}-{number}", shape.what), zone)
            }
        };
        let latency = self.latencies.creation(shape.kind);
        let ready = later(now, latency.of(&id, 0));
        let stuck = shape.kind == ItemKind::ControlPlane
            && self.fault(FaultKind::Timeout, &[name], |_| true).is_some();
        self.inventory.add(
            ask.resource.id,
            Item {
                id,
                zone,
                shape,
                created_at: now,
                ready_at: (!stuck).then_some(ready),
                gone_at: None,
            },
        );
    }

    fn await_ready(
        &mut self,
        part: Part,
        ask: &Ask,
        want: &Want,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let owner = ask.resource.id;
        let stuck = self.inventory.of(owner, part).find(|item| item.ready_at.is_none());
        if let Some(since) = stuck.map(|item| item.created_at) {
            return self.await_timeout(ask, want, since, now).map(Step::Wait);
        }
        let ready_at = self.inventory.of(owner, part).filter_map(|item| item.ready_at).max();
        Ok(match ready_at {
            Some(ready_at) if now < ready_at => Step::Wait(ready_at),
            Some(_) | None => Step::End(Ok(self.made(part, ask, want))),
        })
    }

    /// A control plane that is stuck goes on when the fault is gone, and is given up after a while.
    fn await_timeout(
        &mut self,
        ask: &Ask,
        want: &Want,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Timestamp, Refusal> {
        let (owner, name) = (ask.resource.id, ask.resource.name.as_str());
        let Some(fault) = self.fault(FaultKind::Timeout, &[name], |_| true) else {
            let ready_at = later(now, self.latencies.infrastructure.of(name, 0));
            self.inventory.unstick(owner, Part::Infrastructure, ready_at);
            return Ok(ready_at);
        };
        let after_s = fault.fault.params.after_s.unwrap_or(FaultParams::AFTER_S);
        let until = later(since, SignedDuration::from_secs(i64::from(after_s)));
        if now < until {
            return Ok(until);
        }
        self.strike(FaultKind::Timeout, &[name], |_| true);
        // Given up means rolled back: the next attempt starts from nothing.
        self.inventory.forget(owner, |item| item.shape.kind.part() == Part::Infrastructure);
        Err(words::timed_out(&want.display, after_s))
    }

    fn made(&mut self, part: Part, ask: &Ask, want: &Want) -> Done {
        let items = self.inventory.of(ask.resource.id, part);
        let ids: Vec<String> = items.map(|item| item.id.clone()).collect();
        let Place { region, .. } = &want.place;
        match part {
            Part::Dns => {
                let name = ask.resource.name.as_str();
                let failing = self.strike(FaultKind::HealthCheckFailed, &[name], |_| true);
                let data = json!({ "recordsCreated": want.records() });
                let message = "All DNS records created and verified";
                Done {
                    unhealthy: failing.map(|_| words::health_check_failed()),
                    ..words::done("AllRecordsCreated", message, data)
                }
            }
            Part::Infrastructure => {
                let message = format!("Network and control plane created in {region}");
                let data = json!({ "region": region, "resources": ids });
                words::done("InfrastructureReady", message, data)
            }
        }
    }

    fn checked(&self, ask: &Ask, want: &Want) -> Done {
        // Whether the zone is there is the DNS adapter's to judge; here it is only told.
        let zone = ("route53ZoneFound", self.zones.contains(&want.domain));
        let checks: &[(&str, bool)] = match ask.resource.kind {
            Kind::Cluster => &[zone, ("s3BucketAccessible", true), ("quotaSufficient", true)],
            Kind::NodePool => &[("clusterAccessible", true), ("machineTypeAvailable", true)],
        };
        let message = if ask.resource.generation <= 1 {
            let passed: Vec<&str> =
                checks.iter().filter(|(_, passed)| *passed).map(|(name, _)| *name).collect();
            let passed = passed.join(", ");
            format!("Validation completed successfully. All checks passed: {passed}")
        } else {
            "Validation completed successfully for updated spec".to_owned()
        };
        let results: BTreeMap<_, _> = checks.iter().copied().collect();
        words::done("AllChecksPassed", message, json!({ "validationResults": results }))
    }

    fn denied_label(&self, ask: &Ask) -> Option<String> {
        let labels = ask.cluster.labels.iter().chain(ask.resource.labels.iter());
        let mut labels = labels.map(|(key, value)| format!("{key}:{value}"));
        labels.find(|label| self.denied_labels.contains(label))
    }

    fn allowed(&self, permissions: &[&str], want: &Want) -> Result<(), Refusal> {
        let denied = self.denied_permissions.get(&want.place.provider);
        let found = permissions.iter().find(|&&p| denied.is_some_and(|denied| denied.contains(p)));
        match found {
            Some(permission) => Err(words::permission_denied(permission, &want.display)),
            None => Ok(()),
        }
    }

    /// Whether what is missing of a part fits in, once what it replaces has gone.
    fn within_quota(
        &mut self,
        part: Part,
        ask: &Ask,
        want: &Want,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let (owner, place, wanted) = (ask.resource.id, &want.place, want.shapes(part));
        let missing = self.inventory.missing(owner, part, &wanted);
        let needed = Usage::sum(&missing);
        let kept = Usage::sum(&wanted).minus(needed);
        let exceeded = |world: &Self| {
            let replaced = world.inventory.used_by(owner, part, place).minus(kept);
            let used = world.used(place).minus(replaced);
            quota::exceeded(|metric| world.quota(place, metric), &used, &needed)
        };
        if exceeded(self).is_none() {
            return Ok(());
        }
        // Before saying no: what others gave back counts no more.
        self.inventory.settle_all(now);
        self.fleet.settle(now);
        match exceeded(self) {
            Some(exceeded) => Err(words::quota_exceeded(&exceeded, want)),
            None => Ok(()),
        }
    }

    /// The first fault of a kind that is about one of these names.
    pub(super) fn fault(
        &self,
        kind: FaultKind,
        names: &[&str],
        which: impl Fn(&FaultParams) -> bool,
    ) -> Option<&Fault> {
        let strikes = |f: &&Fault| {
            names.iter().any(|name| f.fault.strikes(kind, name)) && which(&f.fault.params)
        };
        self.faults.iter().find(strikes)
    }

    /// Uses up one strike of the fault that fits, if one does.
    pub(super) fn strike(
        &mut self,
        kind: FaultKind,
        names: &[&str],
        which: impl Fn(&FaultParams) -> bool,
    ) -> Option<FaultParams> {
        let id = self.fault(kind, names, which)?.id;
        let fault = self.faults.iter_mut().find(|fault| fault.id == id)?;
        let params = fault.fault.params.clone();
        // One that stays is not changed by striking: nothing is to be saved.
        if let Some(count) = fault.fault.count.as_mut() {
            *count = count.saturating_sub(1);
            self.edited = true;
        }
        self.faults.retain(|fault| fault.fault.count != Some(0));
        Some(params)
    }

    /// An id for a machine: never given twice, and not to be guessed from another.
    pub(super) fn take_machine_id(&mut self) -> String {
        // Multiplying by an odd number maps no two numbers to one.
        format!("i-{:016x}", self.take_id().wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}

pub(super) fn later(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}
