//! The machines of the simulated cloud: on each runs the agent's own core, in this process.
//!
//! They talk to this server over its own wire, as machines elsewhere do. Where one has to sign in, the
//! machines of each tenant have a token that is made here, in memory, and written nowhere.

use crate::cmd::token;
use argosy_agent::clock::System;
use argosy_agent::gpu::fake::injection::Injection;
use argosy_agent::swarm::{Load, Spec, Swarm, Wire};
use argosy_control::task::Tasks;
use argosy_core::access::Role;
use argosy_providers::simulated::{Booted, Boots, SimulatedCloud};
use argosy_server::auth::{Authenticator, TokenEntry, hash_token};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::error;

/// Runs the machines of a cloud, which find this server at an address.
pub(super) fn start(
    cloud: SimulatedCloud,
    server: SocketAddr,
    authenticator: Authenticator,
    tasks: &mut Tasks,
) {
    let server = format!("http://{}", reachable(server));
    let hosts = Hosts { server, authenticator, swarms: Mutex::default() };
    tasks.start("simulated machines", cloud.host(Arc::new(hosts)));
}

/// Who listens everywhere is reached on this machine's own address.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

struct Hosts {
    server: String,
    authenticator: Authenticator,
    /// By tenant: each has its own credential.
    swarms: Mutex<BTreeMap<String, Arc<Swarm>>>,
}

impl Hosts {
    fn swarms(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Swarm>>> {
        // Nothing under the lock can leave it half changed.
        self.swarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn swarm(&self, tenant: &str) -> Result<Arc<Swarm>, String> {
        let mut swarms = self.swarms();
        if let Some(swarm) = swarms.get(tenant) {
            return Ok(swarm.clone());
        }
        let wire = Wire::new(&self.server, self.token(tenant)?);
        let wire = wire.map_err(|error| error.to_string())?;
        let swarm = Arc::new(Swarm::start(Load::default(), Arc::new(System), wire));
        swarms.insert(tenant.to_owned(), swarm.clone());
        Ok(swarm)
    }

    /// What the machines of a tenant sign in with; nothing where nobody has to.
    fn token(&self, tenant: &str) -> Result<Option<String>, String> {
        let token = token::draw().map_err(|failure| failure.to_string())?;
        let entry = TokenEntry {
            name: "simulated-machines".to_owned(),
            sha256: hash_token(&token),
            role: Role::Node,
            teams: Vec::new(),
            tenant: tenant.to_owned(),
            adapter: None,
            node: None,
            expires: None,
        };
        let needed = self.authenticator.admit(entry).map_err(|error| error.message)?;
        Ok(needed.then_some(token))
    }
}

/// The label of a node that says where in the building it is.
const RACK: &str = "rack";

/// How many racks a zone has.
const RACKS: u64 = 6;

/// In which rack of its zone a machine stands: the same one for its whole life.
fn rack(zone: &str, name: &str) -> String {
    // FNV-1a: `DefaultHasher` may change between Rust releases, and machines do not move.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let number = (hash >> 17) % RACKS + 1;
    if zone.is_empty() { format!("r{number:02}") } else { format!("{zone}-r{number:02}") }
}

impl Boots for Hosts {
    fn boot(&self, machine: &Booted) {
        let mut machine = machine.clone();
        let rack = rack(&machine.zone, &machine.name);
        machine.labels.entry(RACK.to_owned()).or_insert(rack);
        let spec = Spec {
            node_id: machine.name,
            boot: machine.reboots,
            pool: machine.pool,
            provider: machine.provider,
            region: machine.region,
            zone: machine.zone,
            machine_type: machine.machine_type,
            gpus: machine.gpus,
            model: machine.gpu_model,
            labels: machine.labels,
        };
        let name = spec.node_id.clone();
        let booted = self
            .swarm(&machine.tenant)
            .and_then(|swarm| swarm.boot(spec).map_err(|error| error.to_string()));
        if let Err(cause) = booted {
            error!(name, cause, "a simulated machine cannot boot");
        }
    }

    fn stop(&self, name: &str) {
        // Names are unique over all tenants; which one's it was is not worth remembering.
        self.swarms().values().for_each(|swarm| swarm.kill(name));
    }

    fn inject(&self, name: &str, what: &str) -> BoxFuture<'static, Result<(), String>> {
        let swarms: Vec<Arc<Swarm>> = self.swarms().values().cloned().collect();
        let (name, injection) = (name.to_owned(), what.parse::<Injection>());
        Box::pin(async move {
            let injection = injection.map_err(|error| error.to_string())?;
            let mut answer = Err(format!("no machine is up that is called {name}"));
            for swarm in swarms {
                match swarm.inject(&name, injection.clone()).await {
                    Err(argosy_agent::swarm::SwarmError::NotUp(_)) => {}
                    other => answer = other.map_err(|error| error.to_string()),
                }
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_stays_in_its_rack() {
        assert_eq!(rack("us-east1-b", "w-1"), rack("us-east1-b", "w-1"));
        let racks: std::collections::BTreeSet<String> =
            (0..200).map(|number| rack("z", &format!("w-{number}"))).collect();
        let all: Vec<String> = (1..=RACKS).map(|number| format!("z-r{number:02}")).collect();
        assert_eq!(racks.into_iter().collect::<Vec<_>>(), all);
        assert!(rack("", "w-1").starts_with('r'));
    }

    #[test]
    fn who_listens_everywhere_is_reached_here() {
        let rows = [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ];
        for (bound, expected) in rows {
            assert_eq!(reachable(bound.parse().unwrap()).to_string(), expected);
        }
    }
}
