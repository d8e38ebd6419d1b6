//! The scenarios that come with the program, by name.
//!
//! Their names and summaries stand here a second time so that listing them reads nothing; a test compares.

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, by which it is run.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Its text, for `scenario::read`.
    pub text: &'static str,
}

/// All of them, in the order in which a newcomer would try them.
#[must_use]
pub fn list() -> &'static [Shipped] {
    &SHIPPED
}

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|shipped| shipped.name == name)
}

macro_rules! shipped {
    ($($name:literal: $summary:literal),+ $(,)?) => {
        [$(Shipped {
            name: $name,
            summary: $summary,
            text: include_str!(concat!("../../scenarios/", $name, ".yaml")),
        }),+]
    };
}

const SHIPPED: [Shipped; 20] = shipped! {
    "first-day":
        "Four machines for a day: what breaks is replaced, what only crashed is left alone.",
    "basic-fleet":
        "Three machines of three clouds register, are judged healthy and stay so.",
    "cordon-drain":
        "A node is cordoned, drained and put back by hand; its neighbour never notices.",
    "old-backup":
        "A backup of four machines is restored below forty, and commits are lost: nothing ends unasked.",
    "gpu-failure":
        "A GPU falls off its bus: its node is out of service within a minute, and back after a repair.",
    "xid-classification":
        "Eight Xids on eight machines: hardware condemns, programs do not.",
    "badimage":
        "Every machine of a pool is sick within minutes: buying stops after a few and asks for a person.",
    "everything":
        "Two hundred machines for a day with every fault there is: the one to try seeds on.",
    "llama3-54d":
        "Llama 3's 54 days: one job on 16,384 GPUs, and what interrupted it, at the published rates.",
    "llama3-cautious":
        "The same 54 days with an operator who does not trust it: two at a time, and only after half an hour.",
    "rsc1-11-months":
        "Eleven months of 2,000 machines with A100, at the failure rate of a research cluster.",
    "spot-market":
        "Eighty spot machines for three days in a market that takes twenty of them back each day.",
    "zone-outage":
        "A zone with a third of the machines is cut off for two hours: nobody panics, and everybody comes back.",
    "control-plane-storm":
        "Three processes that crash, freeze and lose their store, over machines that are perfectly well.",
    "skew":
        "Three processes whose clocks are set by up to 20 minutes, while a pool grows and shrinks.",
    "long-outage":
        "The control plane is down for longer than a machine may take to register, while machines boot.",
    "1000-node-chaos":
        "A thousand machines, ten faults a minute for forty minutes, most of which mend.",
    "5000-node-extreme":
        "Five thousand machines, faults that spread, and four outages in three quarters of an hour.",
    "cascading-failures":
        "Two thousand machines where half of all faults bring another one in the same rack.",
    "million":
        "A million machines for an hour, in 17 GB and about 20 minutes.",
};

#[cfg(test)]
mod tests;
