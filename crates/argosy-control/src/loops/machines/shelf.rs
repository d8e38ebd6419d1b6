//! What is known of a provider beside its book: in memory, made anew whenever a process begins to lead.

use crate::provider::Provider;
use argosy_core::machine::{Abilities, Machine, MachineId, Offer, Trouble};
use jiff::SignedDuration;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many calls of a kind to one provider may be under way at once. Most wait; each holds a connection, and a cloud
/// that sees more throttles.
const CALLS_MAX: usize = 64;

/// What is known of a provider.
pub(super) struct Shelf {
    pub(super) kind: String,
    pub(super) abilities: Abilities,
    pub(super) offers: Vec<Offer>,
    offers_of: BTreeMap<String, Vec<Offer>>,
    /// Whether its machines were compared with our records since we began to lead.
    pub(super) compared: bool,
    /// Its machines as it last showed them.
    pub(super) shown: Arc<HashMap<MachineId, Machine>>,
    pub(super) slots: Slots,
    lists_failed: u32,
}

/// How many calls may be under way: returns and looks never wait behind purchases.
#[derive(Clone)]
pub(super) struct Slots {
    pub(super) purchases: Arc<Semaphore>,
    pub(super) others: Arc<Semaphore>,
}

impl Default for Slots {
    fn default() -> Self {
        let slots = || Arc::new(Semaphore::new(CALLS_MAX));
        Self { purchases: slots(), others: slots() }
    }
}

/// What the gate must know of a provider; the rest is read when it opens.
#[derive(Clone)]
pub(super) struct Guarding {
    pub(super) compared: bool,
    pub(super) shown: Arc<HashMap<MachineId, Machine>>,
}

impl Shelf {
    pub(super) fn new(cloud: &dyn Provider) -> Self {
        Self {
            kind: cloud.kind().to_owned(),
            abilities: cloud.abilities(),
            offers: Vec::new(),
            offers_of: BTreeMap::new(),
            compared: false,
            shown: Arc::default(),
            slots: Slots::default(),
            lists_failed: 0,
        }
    }

    pub(super) fn guards(&self) -> Guarding {
        Guarding { compared: self.compared, shown: self.shown.clone() }
    }

    /// Takes in a listing.
    pub(super) fn listed(&mut self, machines: Vec<Machine>) {
        let by_id = machines.into_iter().map(|machine| (machine.id.clone(), machine));
        self.shown = Arc::new(by_id.collect());
        self.compared = true;
        self.lists_failed = 0;
    }

    /// How long to wait after a listing that failed.
    pub(super) fn list_failed(
        &mut self,
        first: SignedDuration,
        max: SignedDuration,
    ) -> SignedDuration {
        self.lists_failed = self.lists_failed.saturating_add(1);
        argosy_core::backoff::delay(&self.kind, self.lists_failed, first, max)
    }

    /// Takes in what is offered; a region that could not be asked keeps what it had. Whether that is news.
    pub(super) fn offered(&mut self, offers: Vec<(String, Result<Vec<Offer>, Trouble>)>) -> bool {
        for (region, offers) in offers {
            match offers {
                Ok(offers) => _ = self.offers_of.insert(region, offers),
                Err(trouble) => {
                    tracing::warn!(region, %trouble, "could not ask what a provider offers");
                }
            }
        }
        let offers: Vec<Offer> = self.offers_of.values().flatten().cloned().collect();
        let news = self.offers != offers;
        self.offers = offers;
        news
    }

    /// Whether it was asked what it offers in a region.
    pub(super) fn knows(&self, region: &str) -> bool {
        self.offers_of.contains_key(region)
    }

    /// What a machine costs an hour, in US dollars.
    pub(super) fn price(&self, machine: &Machine) -> Option<f64> {
        self.price_of(&machine.machine_type, &machine.region, machine.spot)
    }

    /// What such a machine costs an hour now, in US dollars.
    pub(super) fn price_of(&self, machine_type: &str, region: &str, spot: bool) -> Option<f64> {
        let of_it = |offer: &&Offer| {
            offer.machine_type == machine_type && (offer.region == region || region.is_empty())
        };
        let offer = self.offers.iter().find(of_it)?;
        let price = if spot { offer.spot_price_per_hour } else { offer.price_per_hour };
        price.filter(|price| price.is_finite() && 0.0 <= *price)
    }
}
