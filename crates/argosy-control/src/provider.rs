//! The port to a provider: machines, and what a cluster needs around them.
//!
//! Whoever fills it must pass `argosy-providers`' conformance suite. Every method may take long and may be
//! dropped at any await; what it had begun may then happen or not, as after a timeout.

use argosy_core::gate::Doomed;
use argosy_core::machine::{Abilities, Machine, MachineId, Offer, Order, Purchase, Trouble};
use argosy_core::resource::Resource;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a built-in adapter keeps at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The DNS records of a cluster.
    Dns,
    /// The network and control plane of a cluster.
    Infrastructure,
}

/// For whom something is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The cluster or the node pool.
    pub resource: Arc<Resource>,
    /// The cluster itself, or the cluster of the node pool.
    pub cluster: Arc<Resource>,
}

/// Work that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// One word: `AllRecordsCreated`.
    pub reason: String,
    /// A sentence: `All DNS records created and verified`.
    pub message: String,
    /// What came of it, for `data`.
    pub data: Map<String, Value>,
    /// Set when the work is done but a check of it fails: available, and not healthy.
    pub unhealthy: Option<Cause>,
}

/// A reason and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// Work that could not be done. It will be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why: `QuotaExceeded`, with the numbers.
    pub cause: Cause,
    /// Whether anything was created all the same.
    pub applied: bool,
    /// False if the failure was not foreseen: the adapter itself is then not healthy.
    pub healthy: bool,
    /// More about it, for `data`: `guidance` says what a person can do.
    pub data: Map<String, Value>,
}

/// A provider of machines.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// What kind it is: `aws`, `gcp`. Empty if its name in the configuration says so.
    fn kind(&self) -> &str {
        ""
    }

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// What can be bought in a region, and for how much. May be old: it is asked every few minutes.
    ///
    /// # Errors
    /// Why nobody knows.
    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble>;

    /// Whether there is room for so many more, as far as can be said without buying one.
    ///
    /// # Errors
    /// `Quota` with the numbers, if there is not.
    async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        let _ = (order, count);
        Ok(())
    }

    /// Makes a machine, and does not wait for it to boot. Asked again with the same token it answers with the
    /// machine that is there, if `Abilities::tokens` says so.
    ///
    /// # Errors
    /// `Unsure` if it may have been made all the same; any other promises that it was not.
    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble>;

    /// Looks for the machine of one purchase by its token, tag or name, past whatever makes listings lag,
    /// if it can.
    ///
    /// # Errors
    /// Why it could not look.
    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble>;

    /// Every machine that carries our tags or a name that could be ours, on all pages; those of other
    /// installations, too. Whole or not at all.
    ///
    /// # Errors
    /// Why it could not list.
    async fn list(&self) -> Result<Vec<Machine>, Trouble>;

    /// Returns a machine. Only the gate can say which.
    ///
    /// # Errors
    /// `NotFound` if there is none, which proves nothing; anything else means that it has to be asked again.
    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble>;

    /// Boots a machine again.
    ///
    /// # Errors
    /// `Unable` if it cannot; then something else must help.
    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        Err(Trouble::Unable(format!("{machine} cannot be rebooted by its provider")))
    }

    /// The end of what a machine wrote on its console.
    ///
    /// # Errors
    /// `Unable` if it is not to be had.
    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        Err(Trouble::Unable(format!("the console of {machine} is not to be had")))
    }

    /// Checks, without changing anything, that what is asked for can be made.
    ///
    /// # Errors
    /// What stands in the way.
    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal>;

    /// Makes a part of a cluster as it is asked for, and checks it. Idempotent: it finds what is there and
    /// makes the rest.
    ///
    /// # Errors
    /// Why it could not; it will be asked again.
    async fn ensure(&self, part: Part, ask: &Ask) -> Result<Done, Refusal>;

    /// Removes a part of a cluster. Done means confirmed gone; what never existed is gone.
    ///
    /// # Errors
    /// Why it could not; it will be asked again.
    async fn remove(&self, part: Part, ask: &Ask) -> Result<Done, Refusal>;
}
