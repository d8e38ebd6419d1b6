//! What runs on the machines: whoever boots them is told when one is up, and when it is not.

use super::SimulatedCloud;
use super::fleet::Made;
use super::tariff::Tariff;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// A machine that has booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booted {
    /// Its name, which is the id of its node.
    pub name: String,
    /// How often it was booted again.
    pub reboots: u32,
    /// The node pool, by the name that nodes carry.
    pub pool: String,
    /// The tenant whose it is.
    pub tenant: String,
    /// The provider.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone; empty if the provider has none.
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// How many GPUs it has.
    pub gpus: u32,
    /// Which: `H100`; empty without any.
    pub gpu_model: String,
    /// The labels of its node.
    pub labels: BTreeMap<String, String>,
}

/// Whoever runs an agent for each machine. Neither call waits.
pub trait Boots: Send + Sync + 'static {
    /// A machine is up.
    fn boot(&self, machine: &Booted);

    /// The machine of this name is no longer up: it was returned, taken back, or lost its power.
    fn stop(&self, name: &str);

    /// Makes something happen to a GPU of the machine of this name: `xid:79 gpu:3`. Says why it cannot.
    fn inject(&self, name: &str, what: &str) -> BoxFuture<'static, Result<(), String>>;
}

/// A machine that was booted.
#[derive(Debug)]
pub(super) struct Up {
    name: String,
    reboots: u32,
}

impl SimulatedCloud {
    /// Tells `hosts` of every machine that is up, and of each that no longer is, for ever.
    ///
    /// It starts with none: after a restart of the process every machine that is up boots again.
    ///
    /// # Errors
    /// None: it does not end.
    pub fn host(
        self,
        hosts: Arc<dyn Boots>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        // Whoever came first stays: there is one for each process.
        _ = self.inner.hosts.set(hosts.clone());
        self.watch(hosts)
    }

    async fn watch(self, hosts: Arc<dyn Boots>) -> Result<(), Infallible> {
        let mut stirred = self.inner.stirred.subscribe();
        let mut up: BTreeMap<String, Up> = BTreeMap::new();
        loop {
            stirred.borrow_and_update();
            let next = self.look(&*hosts, &mut up);
            tokio::select! {
                () = self.inner.clock.sleep_until(next) => {}
                _ = stirred.changed() => {}
            }
        }
    }

    /// Makes something happen to a GPU of a machine that is up: `xid:79 gpu:3`.
    ///
    /// # Errors
    /// A sentence that says why it cannot.
    pub async fn break_gpu(&self, name: &str, what: &str) -> Result<(), String> {
        match self.inner.hosts.get() {
            Some(hosts) => hosts.inject(name, what).await,
            None => Err("nothing runs on the machines of this cloud".to_owned()),
        }
    }

    /// Compares what is up with what was, and says when to look again.
    pub(super) fn look(&self, hosts: &dyn Boots, up: &mut BTreeMap<String, Up>) -> Timestamp {
        let now = self.inner.clock.now();
        let mut world = self.world();
        world.settle(now);
        let fleet = &world.fleet;
        up.retain(|id, was| {
            let same = |made: &Made| made.is_up(now) && made.reboots == was.reboots;
            let stays = fleet.get(id).is_some_and(same);
            if !stays {
                hosts.stop(&was.name);
            }
            stays
        });
        for made in fleet.iter().filter(|made| made.is_up(now)) {
            if !up.contains_key(&made.id) {
                hosts.boot(&booted(made));
                up.insert(made.id.clone(), Up { name: made.name.clone(), reboots: made.reboots });
            }
        }
        let next = fleet.iter().filter_map(|made| made.next_change(now)).min();
        // A day, if nothing is to come: whatever changes the world says so.
        next.unwrap_or_else(|| super::world::later(now, jiff::SignedDuration::from_hours(24)))
    }
}

fn booted(made: &Made) -> Booted {
    let tariff = Tariff::of(&made.machine_type, made.cpus, made.gpus);
    Booted {
        name: made.name.clone(),
        reboots: made.reboots,
        pool: made.pool.clone(),
        tenant: made.tenant.clone(),
        provider: made.place.provider.clone(),
        region: made.place.region.clone(),
        zone: made.zone.clone(),
        machine_type: made.machine_type.clone(),
        gpus: made.gpus,
        gpu_model: tariff.gpu_model.to_owned(),
        labels: made.labels.clone(),
    }
}
