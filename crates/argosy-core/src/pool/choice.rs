//! Where to buy.

use crate::machine::Order;

/// Where a machine can be bought, as the book knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The provider, by the name in the configuration.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone; empty: any.
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// Whether the provider may take it back.
    pub spot: bool,
}

impl Place {
    /// Where an order goes.
    pub fn of(order: &Order) -> Self {
        Self {
            provider: order.provider.clone(),
            region: order.region.clone(),
            zone: order.zone.clone(),
            machine_type: order.machine_type.clone(),
            spot: order.spot,
        }
    }

    /// `provider/region/zone/type/spot`.
    pub fn key(&self) -> String {
        let Place { provider, region, zone, machine_type, spot } = self;
        let spot = if *spot { "spot" } else { "on-demand" };
        format!("{provider}/{region}/{zone}/{machine_type}/{spot}")
    }
}
