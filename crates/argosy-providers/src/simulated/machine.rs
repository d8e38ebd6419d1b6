//! Buying, showing and returning machines: what the simulated cloud answers, and how it lies.

use super::console::short;
use super::fault::{FaultKind, FaultParams};
use super::fleet::{Leaving, Made, plain};
use super::inventory::{Place, Usage};
use super::permission::Permissions;
use super::quota::{self, Exceeded};
use super::tariff::Tariff;
use super::world::{World, later};
use argosy_core::catalog::{MachineType, ProviderCatalog};
use argosy_core::instance::InstanceId;
use argosy_core::machine::{
    Machine, MachineId, MachineState, Notice, NoticeKind, Offer, Order, Purchase, Tags, Trouble,
};
use argosy_core::nearest::nearest;
use jiff::{SignedDuration, Timestamp};
use std::fmt::Write as _;

/// A provider of the catalog, by its name.
#[derive(Clone, Copy)]
pub(super) struct Seller<'a> {
    pub(super) name: &'a str,
    pub(super) catalog: &'a ProviderCatalog,
}

impl World {
    /// What can be bought in a region.
    pub(super) fn offers(
        &mut self,
        seller: Seller<'_>,
        region: &str,
    ) -> Result<Vec<Offer>, Trouble> {
        self.admitted(seller)?;
        let place = seller.place(region)?;
        let zones = zones(&place);
        let types = seller.catalog.machine_types.iter();
        let offers = types.map(|(machine_type, size)| {
            let MachineType { cpus, gpus } = *size;
            let tariff = Tariff::of(machine_type, cpus, gpus);
            let left = |zone: &str| !self.is_out(seller.name, zone, machine_type);
            Offer {
                machine_type: machine_type.clone(),
                region: region.to_owned(),
                zones: zones.clone(),
                cpus,
                gpus,
                price_per_hour: Some(tariff.price_per_hour),
                spot_price_per_hour: seller.has_spot().then(|| tariff.spot_price_per_hour()),
                available: if zones.is_empty() { left("") } else { zones.iter().any(|z| left(z)) },
            }
        });
        Ok(offers.collect())
    }

    /// Whether a region's quotas have room for so many more.
    pub(super) fn room(
        &mut self,
        seller: Seller<'_>,
        order: &Order,
        count: u32,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        self.admitted(seller)?;
        let place = seller.place(&order.region)?;
        let size = seller.size(&order.machine_type)?;
        self.settle(now);
        self.has_room(seller, &place, size, count, now)
    }

    /// Makes a machine, or finds the one that its token made.
    pub(super) fn buy(
        &mut self,
        seller: Seller<'_>,
        purchase: &Purchase,
        now: Timestamp,
    ) -> Result<Machine, Trouble> {
        self.admitted(seller)?;
        self.settle(now);
        if let Some(made) = self.fleet.by_token(purchase.token) {
            return Ok(made.shown(now));
        }
        let Order { region, zone, machine_type, spot, .. } = &purchase.order;
        let place = seller.place(region)?;
        let size = seller.size(machine_type)?;
        let zone = seller.zone(&place, zone)?;
        if *spot && !seller.has_spot() {
            let message = format!("{} has no spot machines", seller.catalog.display);
            return Err(Trouble::Invalid { field: "spot".to_owned(), message });
        }
        self.may_buy(seller)?;
        let names = [plain(&purchase.pool), purchase.instance.as_str()];
        let node = |params: &FaultParams| params.node.unwrap_or(1) == purchase.number;
        if let Some(params) = self.strike(FaultKind::ProvisioningFailed, &names, node) {
            let code = params.code.unwrap_or_else(|| FaultParams::CODE.to_owned());
            let message = format!("{} error: {code}", seller.catalog.display);
            return Err(Trouble::Capacity { code, message });
        }
        let zone = self.stocked(seller, &place, zone, machine_type)?;
        let lost = self.strike(FaultKind::CreateTimesOut, &names, |_| true);
        let failed = self.strike(FaultKind::CreateErrors, &names, |_| true);
        let untagged = self.strike(FaultKind::TagsLost, &names, |_| true).is_some();
        let undone = |params: &Option<FaultParams>| {
            params.as_ref().is_some_and(|params| params.done == Some(false))
        };
        let answer = match (&lost, &failed, untagged) {
            (Some(_), _, _) => Some(timed_out()),
            (None, Some(_), _) | (None, None, true) => Some(broken()),
            (None, None, false) => None,
        };
        if undone(&lost) || undone(&failed) {
            return Err(answer.unwrap_or_else(timed_out));
        }
        self.has_room(seller, &place, size, 1, now)?;
        let mut made = self.make(purchase, place, zone, size, now);
        if untagged {
            made.tags = Tags::default();
        }
        let shown = made.shown(now);
        self.fleet.add(made);
        self.strike_machines(now);
        answer.map_or(Ok(shown), Err)
    }

    /// The machine of a purchase, past whatever makes listings lie.
    pub(super) fn find_machine(
        &mut self,
        seller: Seller<'_>,
        purchase: &Purchase,
        now: Timestamp,
    ) -> Result<Option<Machine>, Trouble> {
        self.admitted(seller)?;
        self.settle(now);
        let found = self.fleet.by_token(purchase.token);
        let found = found.or_else(|| self.fleet.by_name(purchase.instance.as_str()));
        let here = found.filter(|made| made.place.provider == seller.name);
        Ok(here.map(|made| made.shown(now)))
    }

    /// Every machine that could be ours, as far as the faults in place show it.
    pub(super) fn list_machines(
        &mut self,
        seller: Seller<'_>,
        now: Timestamp,
    ) -> Result<Vec<Machine>, Trouble> {
        self.admitted(seller)?;
        self.settle(now);
        let name = [seller.name];
        if self.strike(FaultKind::ListsBreak, &name, |_| true).is_some() {
            return Err(broken());
        }
        if self.strike(FaultKind::ListsEmpty, &name, |_| true).is_some() {
            return Ok(Vec::new());
        }
        let every = match self.strike(FaultKind::ListsHalf, &name, |_| true) {
            Some(_) => 2,
            None => 1,
        };
        let lag = self
            .strike(FaultKind::ListsLag, &name, |_| true)
            .map_or(0, |params| params.after_s.unwrap_or(FaultParams::LAG_S));
        let then = later(now, -SignedDuration::from_secs(lag.into()));
        let ours = self.fleet.iter().filter(|made| {
            let named = InstanceId::parse(&made.name).is_ok();
            let ours = named || made.tags != Tags::default();
            made.place.provider == seller.name && ours && (lag == 0 || made.created_at <= then)
        });
        Ok(ours.step_by(every).map(|made| made.shown(then)).collect())
    }

    /// Returns a machine.
    pub(super) fn return_machine(
        &mut self,
        seller: Seller<'_>,
        id: &MachineId,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        self.admitted(seller)?;
        self.settle(now);
        let made = self.living(seller, id, now)?.clone();
        if self.strike(FaultKind::DeleteLies, &made.known_as(), |_| true).is_some() {
            return Ok(());
        }
        let gone_at = later(now, self.latencies.removal.of(&made.id, 0));
        self.fleet.change(id.as_str(), |made| {
            let ends = made.leaving.filter(|leaving| leaving.from <= now);
            made.leaving = Some(ends.unwrap_or(Leaving { from: now, gone_at }));
        });
        match self.strike(FaultKind::DeleteErrors, &made.known_as(), |_| true) {
            Some(_) => Err(broken()),
            None => Ok(()),
        }
    }

    /// Boots a machine again. One that lost its power is back afterwards.
    pub(super) fn reboot_machine(
        &mut self,
        seller: Seller<'_>,
        id: &MachineId,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        self.admitted(seller)?;
        self.settle(now);
        let made = self.living(seller, id, now)?.clone();
        let fails = self.strike(FaultKind::BootFails, &made.known_as(), |_| true).is_some();
        let reboots = made.reboots.saturating_add(1);
        let up_at = later(now, self.latencies.machine.of(&made.id, reboots.into()));
        self.fleet.change(id.as_str(), |made| {
            made.reboots = reboots;
            made.up_at = up_at.max(made.ready_at);
            made.dead = false;
            made.mute = fails;
        });
        self.strike_machines(now);
        Ok(())
    }

    /// What a machine wrote while it booted.
    pub(super) fn console_of(
        &mut self,
        seller: Seller<'_>,
        id: &MachineId,
        now: Timestamp,
    ) -> Result<String, Trouble> {
        self.admitted(seller)?;
        self.settle(now);
        self.living(seller, id, now).map(|made| boot_log(made, now))
    }

    /// What time, and faults that strike machines as they are, have done by now.
    pub(super) fn settle(&mut self, now: Timestamp) {
        self.fleet.settle(now);
        self.strike_machines(now);
    }

    /// Takes power from machines, and takes spot machines back, as long as there is a fault that says so.
    fn strike_machines(&mut self, now: Timestamp) {
        let strikes = |kind| self.faults.iter().any(|fault| fault.fault.kind == kind);
        if !strikes(FaultKind::Kill) && !strikes(FaultKind::Reclaim) {
            return;
        }
        let up = self.fleet.iter().filter(|made| made.state(now) == MachineState::Running);
        let up: Vec<Made> = up.cloned().collect();
        for made in up {
            let names = made.known_as();
            if !made.dead && self.strike(FaultKind::Kill, &names, |_| true).is_some() {
                self.fleet.change(&made.id, |made| made.dead = true);
            }
            if !made.spot || made.notice.is_some() {
                continue;
            }
            let Some(params) = self.strike(FaultKind::Reclaim, &names, |_| true) else { continue };
            let after = params.after_s.unwrap_or(FaultParams::NOTICE_S);
            let from = later(now, SignedDuration::from_secs(after.into()));
            let gone_at = later(from, self.latencies.removal.of(&made.id, 0));
            self.fleet.change(&made.id, |made| {
                let message = "The provider takes this spot machine back.".to_owned();
                made.notice = Some(Notice { kind: NoticeKind::Reclaim, at: Some(from), message });
                made.leaving.get_or_insert(Leaving { from, gone_at });
            });
        }
    }

    /// Whether the provider listens to us at all.
    fn admitted(&mut self, seller: Seller<'_>) -> Result<(), Trouble> {
        let name = [seller.name];
        let display = &seller.catalog.display;
        if self.strike(FaultKind::CredentialsRevoked, &name, |_| true).is_some() {
            let message = format!("{display} does not accept the credentials: they were revoked");
            return Err(Trouble::Credentials(message));
        }
        if let Some(params) = self.strike(FaultKind::Throttled, &name, |_| true) {
            let retry_after_s = Some(params.after_s.unwrap_or(FaultParams::RETRY_S));
            let message = format!("{display} was asked too often: rate limit exceeded");
            return Err(Trouble::Throttled { retry_after_s, message });
        }
        Ok(())
    }

    fn may_buy(&self, seller: Seller<'_>) -> Result<(), Trouble> {
        let permission = Permissions::of(seller.name).machines;
        let denied = self.denied_permissions.get(seller.name);
        if !denied.is_some_and(|denied| denied.contains(permission)) {
            return Ok(());
        }
        let display = &seller.catalog.display;
        let message = format!("Service account lacks {permission} permission in {display} project");
        Err(Trouble::Denied { permission: permission.to_owned(), message })
    }

    fn has_room(
        &mut self,
        seller: Seller<'_>,
        place: &Place,
        size: &MachineType,
        count: u32,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        let each = Usage { cpus: size.cpus.into(), gpus: size.gpus.into(), clusters: 0 };
        let needed = Usage {
            cpus: each.cpus.saturating_mul(count.into()),
            gpus: each.gpus.saturating_mul(count.into()),
            clusters: 0,
        };
        let exceeded = |world: &Self| {
            quota::exceeded(|metric| world.quota(place, metric), &world.used(place), &needed)
        };
        if exceeded(self).is_none() {
            return Ok(());
        }
        // Before saying no: what clusters gave back counts no more.
        self.inventory.settle_all(now);
        let Some(Exceeded { metric, limit, used, .. }) = exceeded(self) else { return Ok(()) };
        Err(Trouble::Quota {
            resource: metric.unit().to_owned(),
            each: metric.used(&each),
            available: limit.saturating_sub(used),
            message: format!(
                "{} quota exceeded for resource: {metric} in region {}. Current: {used}/{limit}",
                seller.catalog.display, place.region
            ),
        })
    }

    fn is_out(&self, provider: &str, zone: &str, machine_type: &str) -> bool {
        let which = |params: &FaultParams| params.is_about(zone, machine_type);
        self.fault(FaultKind::StockOut, &[provider], which).is_some()
    }

    /// The zone that was asked for, or the first that has any.
    fn stocked(
        &mut self,
        seller: Seller<'_>,
        place: &Place,
        zone: Option<String>,
        machine_type: &str,
    ) -> Result<String, Trouble> {
        let all = zones(place);
        // Spread, as providers do: by how many there are.
        let first = usize::try_from(self.fleet.used(place).cpus).unwrap_or_default();
        let candidates: Vec<String> = match zone {
            Some(zone) => vec![zone],
            None if all.is_empty() => vec![String::new()],
            None => all.iter().cycle().skip(first % all.len()).take(all.len()).cloned().collect(),
        };
        let left = candidates.iter().find(|zone| !self.is_out(seller.name, zone, machine_type));
        if let Some(zone) = left {
            return Ok(zone.clone());
        }
        let zone = candidates.first().cloned().unwrap_or_default();
        let which = |params: &FaultParams| params.is_about(&zone, machine_type);
        let params = self.strike(FaultKind::StockOut, &[seller.name], which).unwrap_or_default();
        let code = params.code.unwrap_or_else(|| FaultParams::CODE.to_owned());
        let somewhere = if zone.is_empty() { &place.region } else { &zone };
        let message = format!("{code}: there are no {machine_type} left in {somewhere}");
        Err(Trouble::Capacity { code, message })
    }

    fn make(
        &mut self,
        purchase: &Purchase,
        place: Place,
        zone: String,
        size: &MachineType,
        now: Timestamp,
    ) -> Made {
        let Purchase { instance, token, tags, order, pool, tenant, labels, .. } = purchase;
        let names = [plain(pool), instance.as_str()];
        let mute = self.strike(FaultKind::BootFails, &names, |_| true).is_some();
        let name = instance.as_str().to_owned();
        let ready_at = later(now, self.latencies.machine.of(&name, 0));
        let tariff = Tariff::of(&order.machine_type, size.cpus, size.gpus);
        let price = if order.spot { tariff.spot_price_per_hour() } else { tariff.price_per_hour };
        Made {
            id: self.take_machine_id(),
            name,
            place,
            zone,
            machine_type: order.machine_type.clone(),
            cpus: size.cpus,
            gpus: size.gpus,
            spot: order.spot,
            price_per_hour: Some(price),
            tags: tags.clone(),
            token: Some(*token),
            pool: pool.clone(),
            tenant: tenant.clone(),
            labels: labels.clone(),
            created_at: now,
            ready_at,
            up_at: ready_at,
            reboots: 0,
            dead: false,
            mute,
            notice: None,
            leaving: None,
        }
    }

    fn living(&self, seller: Seller<'_>, id: &MachineId, now: Timestamp) -> Result<&Made, Trouble> {
        let found = self.fleet.get(id.as_str());
        let found = found.filter(|made| made.place.provider == seller.name);
        let found = found.filter(|made| made.state(now) != MachineState::Gone);
        found.ok_or_else(|| Trouble::NotFound(format!("there is no machine {id}")))
    }
}

impl Seller<'_> {
    /// What is lent out by the hour only.
    fn has_spot(&self) -> bool {
        has_spot(self.name)
    }

    fn place(&self, region: &str) -> Result<Place, Trouble> {
        let known = self.catalog.regions.iter().map(String::as_str);
        if known.clone().any(|known| known == region) {
            return Ok(Place { provider: self.name.to_owned(), region: region.to_owned() });
        }
        Err(self.unknown("region", "region", region, known.collect()))
    }

    fn size(&self, machine_type: &str) -> Result<&MachineType, Trouble> {
        let known = &self.catalog.machine_types;
        known.get(machine_type).ok_or_else(|| {
            let known = known.keys().map(String::as_str).collect();
            self.unknown("machineType", "machine type", machine_type, known)
        })
    }

    /// The zone that is asked for, if one is.
    fn zone(&self, place: &Place, zone: &str) -> Result<Option<String>, Trouble> {
        let known = zones(place);
        match zone {
            "" => Ok(None),
            zone if known.iter().any(|known| known == zone) => Ok(Some(zone.to_owned())),
            zone => {
                let known = known.iter().map(String::as_str).collect();
                Err(self.unknown("zones", "zone", zone, known))
            }
        }
    }

    fn unknown(&self, field: &str, noun: &str, wanted: &str, known: Vec<&str>) -> Trouble {
        let hint = nearest(wanted, known.iter().copied())
            .map(|meant| format!(" Did you mean {meant}?"))
            .unwrap_or_default();
        let message = format!(
            "Unknown {noun} '{}' for provider {}.{hint} Supported {noun}s: {}",
            short(wanted),
            self.catalog.display,
            known.join(", ")
        );
        Trouble::Invalid { field: field.to_owned(), message }
    }
}

/// Whether a provider has machines that it may take back. Lambda has none.
pub(super) fn has_spot(provider: &str) -> bool {
    provider != "lambda"
}

/// The zones of a region as its provider writes them: `us-east1-b`, `us-east-1b`. Lambda has none.
pub(super) fn zones(place: &Place) -> Vec<String> {
    let hyphen = match place.provider.as_str() {
        "lambda" => return Vec::new(),
        "aws" => "",
        _ => "-",
    };
    ["b", "c", "d"].map(|letter| format!("{}{hyphen}{letter}", place.region)).to_vec()
}

fn timed_out() -> Trouble {
    Trouble::Unsure("the call timed out before it was answered".to_owned())
}

fn broken() -> Trouble {
    Trouble::Unsure("500 Internal Server Error: the backend encountered an error".to_owned())
}

/// What a machine of this kind writes while it boots, as far as it has come.
fn boot_log(made: &Made, now: Timestamp) -> String {
    let Made { name, machine_type, cpus, gpus, .. } = made;
    let mut log = String::new();
    let mut line = |at: f64, text: &str| {
        // A text that grows in memory can be written to.
        let _ = writeln!(log, "[{at:12.6}] {text}");
    };
    line(0.0, "Linux version 6.8.0-1024 (buildd@lcy02) #26-Ubuntu SMP PREEMPT_DYNAMIC");
    line(0.0, "Command line: BOOT_IMAGE=/vmlinuz root=LABEL=cloudimg-rootfs ro console=ttyS0");
    line(0.412_201, &format!("smpboot: Allowing {cpus} CPUs, 0 hotplug CPUs"));
    line(1.030_877, &format!("DMI: Simulated {machine_type}, BIOS 1.0"));
    if now < made.up_at {
        return log;
    }
    line(3.914_060, &format!("systemd[1]: Hostname set to <{name}>."));
    if 0 < *gpus {
        line(6.220_914, "nvidia-nvlink: Nvlink Core is being initialized, major device number 511");
        line(6.871_103, &format!("NVRM: loading NVIDIA UNIX x86_64 Kernel Module, {gpus} GPUs"));
    }
    line(9.102_455, "cloud-init[812]: Cloud-init v. 24.4 running 'modules:final'");
    match made.mute {
        true => {
            line(10.441_020, "argosy-agent[1033]: error: no address of the control plane answers");
            line(10.441_927, "systemd[1]: argosy-agent.service: Main process exited, status=1");
            line(10.442_110, "systemd[1]: Failed to start argosy-agent.service - Argosy agent.");
        }
        false => line(10.440_318, "systemd[1]: Started argosy-agent.service - Argosy agent."),
    }
    line(10.902_644, &format!("{name} login:"));
    log
}

#[cfg(test)]
mod tests;
