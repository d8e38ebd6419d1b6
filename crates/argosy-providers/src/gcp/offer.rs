//! What can be bought, for how much, and for how many there is room.

use super::DISPLAY;
use super::api::{Api, whole};
use super::trouble::unit;
use super::wire::{Accelerator, Aggregated, MachineType, Quota, Region, Regions, ZoneTypes, last};
use argosy_core::machine::{Offer, Order, Trouble};
use argosy_core::nearest::nearest;
use std::collections::BTreeMap;

/// Google's list prices on demand in `PRICED_REGION`, in US dollars an hour, with the GPUs, without disks.
/// As public price tables have them, 2026-11-15. Prices elsewhere, and all of spot, differ and change: of
/// those we say that we do not know.
const PRICES: [(&str, f64); 22] = [
    ("a2-highgpu-1g", 3.673_385),
    ("a2-highgpu-2g", 7.346_77),
    ("a2-highgpu-4g", 14.693_54),
    ("a2-highgpu-8g", 29.387_08),
    ("a2-megagpu-16g", 55.739_504),
    ("a2-ultragpu-1g", 5.068_798),
    ("a2-ultragpu-2g", 10.137_596),
    ("a2-ultragpu-4g", 20.275_192),
    ("a2-ultragpu-8g", 40.550_383),
    ("a3-highgpu-1g", 11.061_25),
    ("a3-highgpu-2g", 22.1225),
    ("a3-highgpu-4g", 44.245),
    ("a3-highgpu-8g", 88.49),
    ("g2-standard-4", 0.706_832),
    ("g2-standard-8", 0.853_624),
    ("g2-standard-12", 1.000_416),
    ("g2-standard-24", 2.000_833),
    ("g2-standard-48", 4.001_665),
    ("g2-standard-96", 8.003_331),
    ("n1-standard-4", 0.189_999),
    ("n1-standard-8", 0.379_998),
    ("n1-highmem-8", 0.473_212),
];

const PRICED_REGION: &str = "us-central1";

/// The most machine types that an error names.
const NAMED_MAX: usize = 12;

impl Api {
    pub(super) async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        let offers = self.types(region, None).await?;
        if offers.is_empty() {
            // Says which region there is instead.
            self.region(region).await?;
        }
        Ok(offers)
    }

    /// Whether the region's quotas allow so many more.
    pub(super) async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        let known = self.types(&order.region, Some(&order.machine_type)).await?;
        let Some(offer) = known.first() else {
            let hint = self.nearest_type(order).await.unwrap_or_default();
            return Err(no_type(order, &hint));
        };
        let region = self.region(&order.region).await?;
        for (metric, each) in needs(offer, order.spot, &region.quotas) {
            let Some(quota) = region.quotas.iter().find(|quota| quota.metric == metric) else {
                continue;
            };
            let available = left(quota);
            let needed = u64::from(each) * u64::from(count);
            if available < needed {
                let (unit, name) = (unit(&metric), &order.region);
                let message = format!(
                    "{DISPLAY} quota exceeded for resource: {metric} in region {name}. \
                     Current: {}/{}. Required: {needed} {unit}, Available: {available} {unit}",
                    quota.usage, quota.limit
                );
                let (resource, each) = (unit.to_owned(), each.into());
                return Err(Trouble::Quota { resource, each, available, message });
            }
        }
        Ok(())
    }

    /// The zones of a region that have a machine type.
    pub(super) async fn zones_with(
        &self,
        region: &str,
        kind: &str,
    ) -> Result<Vec<String>, Trouble> {
        let known = self.types(region, Some(kind)).await?;
        if let Some(offer) = known.into_iter().next() {
            return Ok(offer.zones);
        }
        self.region(region).await?;
        let order = Order {
            provider: String::new(),
            region: region.to_owned(),
            zone: String::new(),
            machine_type: kind.to_owned(),
            spot: false,
            image: String::new(),
            price_per_hour: None,
        };
        let hint = self.nearest_type(&order).await.unwrap_or_default();
        Err(no_type(&order, &hint))
    }

    /// All zones of a region.
    pub(super) async fn zones_of(&self, region: &str) -> Result<Vec<String>, Trouble> {
        let region = self.region(region).await?;
        Ok(region.zones.iter().map(|zone| last(zone).to_owned()).collect())
    }

    /// A region; an unknown one is refused with the nearest name.
    pub(super) async fn region(&self, name: &str) -> Result<Region, Trouble> {
        if let Some(region) = self.look(self.compute(&["regions", name], &[])).await? {
            return Ok(region);
        }
        let fields = [("fields", "nextPageToken,items(name)"), ("maxResults", "500")];
        let pages: Vec<Regions> = self.pages(&["regions"], &fields).await?;
        let known: Vec<&str> =
            pages.iter().flat_map(|page| &page.items).map(|region| region.name.as_str()).collect();
        let hint = hint("regions", name, &known);
        let message = format!("{DISPLAY} has no region '{name}'. {hint}");
        Err(Trouble::Invalid { field: "region".to_owned(), message })
    }

    /// A sentence about what machine type could be meant; `None` if nobody knows.
    pub(super) async fn nearest_type(&self, order: &Order) -> Option<String> {
        let offers = self.types(&order.region, None).await.ok()?;
        let there = |offer: &&Offer| order.zone.is_empty() || offer.zones.contains(&order.zone);
        let known: Vec<&str> =
            offers.iter().filter(there).map(|offer| offer.machine_type.as_str()).collect();
        if known.contains(&order.machine_type.as_str()) {
            return None;
        }
        Some(hint("machine types", &order.machine_type, &known))
    }

    /// The same for a zone.
    pub(super) async fn nearest_zone(&self, order: &Order) -> Option<String> {
        let zones = self.zones_of(&order.region).await.ok()?;
        let known: Vec<&str> = zones.iter().map(String::as_str).collect();
        Some(hint("zones", &order.zone, &known))
    }

    /// The machine types of a region, or one of them, with their zones.
    async fn types(&self, region: &str, only: Option<&str>) -> Result<Vec<Offer>, Trouble> {
        let fields = "nextPageToken,unreachables,warning,items/*/warning,items/*/machineTypes\
                      (name,guestCpus,accelerators,deprecated)";
        let mut query =
            vec![("maxResults", "500"), ("returnPartialSuccess", "false"), ("fields", fields)];
        let filter = only.map(|kind| format!("name=\"{kind}\""));
        // A quote would end the filter: such a name is none, and is not asked for.
        if only.is_some_and(|kind| kind.contains(['"', '\\'])) {
            return Ok(Vec::new());
        }
        if let Some(filter) = &filter {
            query.push(("filter", filter));
        }
        let pages: Vec<Aggregated<ZoneTypes>> =
            self.pages(&["aggregated", "machineTypes"], &query).await?;
        let mut offers: BTreeMap<String, Offer> = BTreeMap::new();
        for page in &pages {
            let warnings = page.items.values().filter_map(|zone| zone.warning.as_ref());
            whole(&page.unreachables, warnings.chain(&page.warning))?;
            for (zone, there) in &page.items {
                let zone = last(zone);
                if zone.rsplit_once('-').is_none_or(|(of, _)| of != region) {
                    continue;
                }
                for kind in there.machine_types.iter().filter(|kind| is_sold(kind)) {
                    let offer =
                        offers.entry(kind.name.clone()).or_insert_with(|| offer(kind, region));
                    offer.zones.push(zone.to_owned());
                }
            }
        }
        Ok(offers
            .into_values()
            .map(|mut offer| {
                offer.zones.sort();
                offer.zones.dedup();
                offer
            })
            .collect())
    }
}

fn is_sold(kind: &MachineType) -> bool {
    kind.deprecated.as_ref().is_none_or(|deprecated| deprecated.state == "DEPRECATED")
}

fn offer(kind: &MachineType, region: &str) -> Offer {
    let gpus = |it: &Accelerator| it.guest_accelerator_count;
    let price = PRICES.iter().find(|(name, _)| *name == kind.name && region == PRICED_REGION);
    Offer {
        machine_type: kind.name.clone(),
        region: region.to_owned(),
        zones: Vec::new(),
        cpus: kind.guest_cpus,
        gpus: kind.accelerators.iter().map(gpus).fold(0, u32::saturating_add),
        price_per_hour: price.map(|(_, price)| *price),
        spot_price_per_hour: None,
        // Google does not say before it is asked to sell.
        available: true,
    }
}

/// Which quotas a machine uses, and how much of each.
fn needs(offer: &Offer, spot: bool, quotas: &[Quota]) -> Vec<(String, u32)> {
    let kind = offer.machine_type.as_str();
    let family = kind.split('-').next().unwrap_or_default();
    // Those of a project that was never given any for spot count with all others.
    let granted = |metric: &str| quotas.iter().any(|it| it.metric == metric && 0.0 < it.limit);
    let cpus = match family {
        _ if spot && granted("PREEMPTIBLE_CPUS") => "PREEMPTIBLE_CPUS".to_owned(),
        "n1" | "e2" | "f1" | "g1" => "CPUS".to_owned(),
        family => format!("{}_CPUS", family.to_ascii_uppercase()),
    };
    let model = GPU_MODELS.iter().find(|(prefix, _)| kind.starts_with(prefix));
    let gpus = model.map(|(_, model)| {
        let lent = if spot { "PREEMPTIBLE_" } else { "" };
        (format!("{lent}NVIDIA_{model}_GPUS"), offer.gpus)
    });
    let machines = [(cpus, offer.cpus), ("INSTANCES".to_owned(), 1)];
    gpus.into_iter().chain(machines).collect()
}

/// What quotas call the GPUs of a machine type.
const GPU_MODELS: [(&str, &str); 8] = [
    ("a2-highgpu", "A100"),
    ("a2-megagpu", "A100"),
    ("a2-ultragpu", "A100_80GB"),
    ("a3-highgpu", "H100"),
    ("a3-megagpu", "H100_MEGA"),
    ("a3-ultragpu", "H200"),
    ("a4-highgpu", "B200"),
    ("g2-standard", "L4"),
];

fn left(quota: &Quota) -> u64 {
    let left = (quota.limit - quota.usage).max(0.0);
    // A float past the range, or none at all, ends at its border.
    left as u64
}

fn no_type(order: &Order, hint: &str) -> Trouble {
    let Order { machine_type, region, .. } = order;
    let message = format!("{DISPLAY} has no machine type '{machine_type}' in {region}. {hint}");
    Trouble::Invalid { field: "machineType".to_owned(), message }
}

/// `Did you mean a? Known machine types: a, b.`
fn hint(what: &str, word: &str, known: &[&str]) -> String {
    let mut listed: Vec<&str> = known.to_vec();
    listed.sort_unstable();
    let more = if NAMED_MAX < listed.len() { ", …" } else { "" };
    listed.truncate(NAMED_MAX);
    let listed = listed.join(", ");
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("Did you mean {meant}? Known {what}: {listed}{more}."),
        None => format!("Known {what}: {listed}{more}."),
    }
}

#[cfg(test)]
mod tests;
