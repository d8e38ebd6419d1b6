//! The simulated cloud under the name of one provider: what the control plane is given.

use super::machine::{Seller, has_spot};
use super::{FaultParams, SimulatedCloud};
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::catalog::ProviderCatalog;
use argosy_core::gate::Doomed;
use argosy_core::machine::{Abilities, Machine, MachineId, Offer, Order, Purchase, Trouble};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

/// One provider of the catalog. Only machines that were bought through it are seen through it.
#[derive(Clone, Debug)]
pub struct Named {
    cloud: SimulatedCloud,
    provider: String,
    /// What a provider that the catalog does not know sells: nothing.
    catalog: ProviderCatalog,
}

impl SimulatedCloud {
    /// This cloud under the name that a provider has in the catalog.
    pub fn named(&self, provider: &str) -> Named {
        let known = self.inner.catalog.providers.get(provider).cloned();
        let catalog = known.unwrap_or_else(|| ProviderCatalog {
            display: provider.to_owned(),
            regions: Vec::new(),
            machine_types: std::collections::BTreeMap::new(),
        });
        Named { cloud: self.clone(), provider: provider.to_owned(), catalog }
    }
}

impl Named {
    fn seller(&self) -> Seller<'_> {
        Seller { name: &self.provider, catalog: &self.catalog }
    }

    /// Does something with the world, and keeps what came of it.
    async fn ask<T>(
        &self,
        act: impl FnOnce(&mut super::World, Seller<'_>, Timestamp) -> Result<T, Trouble> + Send,
    ) -> Result<T, Trouble> {
        let (answer, changed) = {
            let mut world = self.cloud.world();
            let answer = act(&mut world, self.seller(), self.cloud.inner.clock.now());
            (answer, world.fleet.is_changed())
        };
        // Before anything is awaited: we may be dropped there.
        if changed {
            self.cloud.stir();
        }
        self.cloud.keep().await;
        answer
    }
}

#[async_trait]
impl Provider for Named {
    fn abilities(&self) -> Abilities {
        Abilities {
            tokens: true,
            tags: true,
            reboot: true,
            console: true,
            spot: has_spot(&self.provider),
            list_lag: SignedDuration::from_secs(FaultParams::LAG_S.into()),
        }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        self.ask(|world, seller, _| world.offers(seller, region)).await
    }

    async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        self.ask(|world, seller, now| world.room(seller, order, count, now)).await
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        self.ask(|world, seller, now| world.buy(seller, purchase, now)).await
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        self.ask(|world, seller, now| world.find_machine(seller, purchase, now)).await
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        self.ask(|world, seller, now| world.list_machines(seller, now)).await
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        let id = doomed.machine();
        self.ask(|world, seller, now| world.return_machine(seller, id, now)).await
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        self.ask(|world, seller, now| world.reboot_machine(seller, machine, now)).await
    }

    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        self.ask(|world, seller, now| world.console_of(seller, machine, now)).await
    }

    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.cloud.preflight(ask).await
    }

    async fn ensure(&self, part: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.cloud.ensure(part, ask).await
    }

    async fn remove(&self, part: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.cloud.remove(part, ask).await
    }
}
