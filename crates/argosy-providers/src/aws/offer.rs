//! What a region has: machine types, the zones that have them, and prices.

use super::Aws;
use super::answer::{Offerings, SpotPrices, Types, Zones};
use super::price::list_price;
use super::query::{Fault, Query};
use argosy_core::machine::Offer;
use argosy_core::nearest::nearest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What a region has, as it was told.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    types: BTreeMap<String, Size>,
}

#[derive(Debug, Default)]
struct Size {
    cpus: u32,
    gpus: u32,
    zones: BTreeSet<String>,
}

/// How long a catalogue is believed. Types come a few times a year, and it takes a dozen calls to read it.
const CATALOGUE_FOR: Duration = Duration::from_secs(3600);

/// A catalogue and when it was read, by the monotonic clock.
pub(super) type Kept = Option<(Duration, Arc<Catalogue>)>;

impl Aws {
    pub(super) async fn catalogue(&self) -> Result<Arc<Catalogue>, Fault> {
        // Held while reading: those who come meanwhile want the same.
        let mut kept = self.catalogue.lock().await;
        let now = self.clock.monotonic();
        if let Some((read_at, catalogue)) = &*kept
            && now.saturating_sub(*read_at) < CATALOGUE_FOR
        {
            return Ok(catalogue.clone());
        }
        let catalogue = Arc::new(self.read_catalogue().await?);
        *kept = Some((now, catalogue.clone()));
        Ok(catalogue)
    }

    async fn read_catalogue(&self) -> Result<Catalogue, Fault> {
        let query = Query::read("DescribeInstanceTypes").with("MaxResults", "100");
        let mut types = BTreeMap::new();
        for kind in self.pages::<Types>(query).await? {
            let size = Size { cpus: kind.cpus(), gpus: kind.gpus(), zones: BTreeSet::new() };
            types.insert(kind.instance_type, size);
        }
        let query = Query::read("DescribeInstanceTypeOfferings")
            .with("LocationType", "availability-zone")
            .with("MaxResults", "1000");
        for offering in self.pages::<Offerings>(query).await? {
            if let Some(size) = types.get_mut(&offering.instance_type) {
                size.zones.insert(offering.location);
            }
        }
        Ok(Catalogue { types })
    }

    /// The newest spot price of each type with GPUs: the lowest of the region's zones.
    async fn spot_prices(&self, catalogue: &Catalogue) -> Result<BTreeMap<String, f64>, Fault> {
        let types = catalogue.types.iter().filter(|(_, size)| 0 < size.gpus);
        let query = Query::read("DescribeSpotPriceHistory")
            // From now on: what holds now, and no history.
            .with("StartTime", self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
            .with("MaxResults", "1000")
            .with_all("ProductDescription", ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"])
            .with_all("InstanceType", types.map(|(name, _)| name.as_str()));
        let mut lowest: BTreeMap<String, f64> = BTreeMap::new();
        for row in self.pages::<SpotPrices>(query).await? {
            let Some(price) = row.spot_price else { continue };
            let known = lowest.entry(row.instance_type).or_insert(price);
            *known = known.min(price);
        }
        Ok(lowest)
    }

    pub(super) async fn all_offers(&self) -> Result<Vec<Offer>, Fault> {
        let catalogue = self.catalogue().await?;
        let spot = self.spot_prices(&catalogue).await?;
        let offer = |(name, size): (&String, &Size)| Offer {
            machine_type: name.clone(),
            region: self.region.clone(),
            zones: size.zones.iter().cloned().collect(),
            cpus: size.cpus,
            gpus: size.gpus,
            price_per_hour: self.price(name),
            spot_price_per_hour: spot.get(name).copied(),
            // EC2 says what it has only when it is asked for one.
            available: !size.zones.is_empty(),
        };
        Ok(catalogue.types.iter().map(offer).collect())
    }

    fn price(&self, machine_type: &str) -> Option<f64> {
        let told = self.prices.get(machine_type).copied();
        told.or_else(|| list_price(&self.region, machine_type))
    }

    /// The names of the region's zones.
    pub(super) async fn zones(&self) -> Result<Vec<String>, Fault> {
        let zones = self.pages::<Zones>(Query::read("DescribeAvailabilityZones")).await?;
        Ok(zones.into_iter().map(|zone| zone.zone_name).collect())
    }
}

impl Catalogue {
    pub(super) fn has(&self, machine_type: &str) -> bool {
        self.types.contains_key(machine_type)
    }

    pub(super) fn has_in(&self, machine_type: &str, zone: &str) -> bool {
        self.types.get(machine_type).is_some_and(|size| size.zones.contains(zone))
    }

    /// How many virtual CPUs one has; 0 if it is not known.
    pub(super) fn cpus(&self, machine_type: &str) -> u32 {
        self.types.get(machine_type).map_or(0, |size| size.cpus)
    }

    /// `EC2 has no machine type p5.49xlarge in us-east-1; did you mean p5.48xlarge?`
    pub(super) fn unknown(&self, machine_type: &str, region: &str) -> String {
        let sentence = format!("EC2 has no machine type {machine_type} in {region}");
        suggest(sentence, machine_type, self.types.keys().map(String::as_str))
    }

    /// The zones that have a type.
    pub(super) fn zones_of(&self, machine_type: &str) -> Vec<&str> {
        let size = self.types.get(machine_type);
        size.map(|size| size.zones.iter().map(String::as_str).collect()).unwrap_or_default()
    }
}

/// The sentence, with the name that was probably meant, or all of them if they are few.
pub(super) fn suggest<'a>(
    sentence: String,
    word: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    const NAMED_MAX: usize = 12;
    let all: Vec<&str> = names.clone().take(NAMED_MAX + 1).collect();
    match nearest(word, names) {
        Some(near) => format!("{sentence}; did you mean {near}?"),
        None if all.is_empty() || NAMED_MAX < all.len() => sentence,
        None => format!("{sentence}; it has {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests;
