//! What a cluster or a node pool asks for, and whether it could be made.

use super::{DISPLAY, Gcp};
use crate::words;
use argosy_control::provider::{Ask, Done, Refusal};
use argosy_core::catalog::Catalog;
use argosy_core::machine::{Order, Trouble};
use argosy_core::resource::{Kind, Spec};
use serde_json::Value;

impl Gcp {
    pub(super) async fn checked(&self, ask: &Ask) -> Result<Done, Refusal> {
        let generation = ask.resource.generation;
        let refused = |trouble: Trouble| words::refused(&trouble, DISPLAY);
        let region = region(&ask.cluster.spec)?;
        let checks = match ask.resource.kind {
            Kind::Cluster => {
                self.api.region(region).await.map_err(refused)?;
                // Whether the zone is there is the DNS adapter's to judge; here it is only told.
                let zone = self.zone_of(domain(&ask.cluster.spec)).await.map_err(refused)?;
                [("dnsZoneFound", zone.is_some()), ("regionAvailable", true)]
            }
            Kind::NodePool => {
                let spec = &ask.resource.spec;
                let text = |member: &str| spec.get(member).and_then(Value::as_str);
                let count = spec.get("nodeCount").or_else(|| spec.get("replicas"));
                let count = count.and_then(Value::as_u64).unwrap_or(1);
                if let Some(machine_type) = text("machineType") {
                    let order = Order {
                        provider: String::new(),
                        region: region.to_owned(),
                        zone: String::new(),
                        machine_type: machine_type.to_owned(),
                        spot: spec.get("spot").and_then(Value::as_bool).unwrap_or(false),
                        image: String::new(),
                        price_per_hour: None,
                    };
                    // How many fit is the pool's to find out: it may have most of them already.
                    let count = u32::from(0 < count);
                    self.api.room(&order, count).await.map_err(refused)?;
                }
                [("machineTypeAvailable", true), ("quotaSufficient", true)]
            }
        };
        Ok(words::checked(generation, &checks))
    }
}

/// The region of a cluster; there is none that everybody means.
pub(super) fn region(spec: &Spec) -> Result<&str, Refusal> {
    Catalog::region_of(spec).filter(|region| !region.is_empty()).ok_or_else(|| {
        let message = "The cluster's spec names no region".to_owned();
        words::refusal("InvalidRegion", message, "Set spec.region.")
    })
}

/// The domain of a cluster's records; empty if the spec names none.
pub(super) fn domain(spec: &Spec) -> &str {
    let base = spec.get("dns").and_then(|dns| dns.get("baseDomain"));
    base.or_else(|| spec.get("domain")).and_then(Value::as_str).unwrap_or_default()
}
