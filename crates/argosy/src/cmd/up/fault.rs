//! What goes wrong in the demonstration: the faults by name, and which comes next.
//!
//! Nothing here is by chance: the same seed gives the same faults at the same distances, and a demonstration
//! that is started again goes on where it was.

use argosy_agent::gpu::fake::injection::Injection;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Something that can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What people call it.
    pub(crate) name: &'static str,
    /// How it is done.
    deed: Deed,
    /// What happens.
    pub(crate) says: &'static str,
    /// What Argosy does about it.
    pub(crate) then: &'static str,
    /// How many of a hundred faults that come by themselves are this one; the rest come by hand only.
    share: u64,
}

/// How a fault is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// To one GPU, in the words of `argosy-agent inject`.
    Gpu(&'static str),
    /// To the machine: its power goes.
    Silence,
    /// All is well again.
    Heal,
}

/// What is to be done to a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Inject this.
    Inject(Injection),
    /// Take its power.
    Silence,
}

/// The one that everybody asks for.
const FIRST: Fault = Fault {
    name: "xid-79",
    deed: Deed::Gpu("xid:79"),
    says: "a GPU falls off the bus",
    then: "the node is cordoned, another is bought, it is drained and returned",
    share: 22,
};

/// Every fault that has a name.
pub(crate) static FAULTS: &[Fault] = &[
    FIRST,
    Fault {
        name: "xid-48",
        deed: Deed::Gpu("xid:48"),
        says: "memory has an error that cannot be corrected",
        then: "the node is cordoned and replaced",
        share: 12,
    },
    Fault {
        name: "xid-95",
        deed: Deed::Gpu("xid:95"),
        says: "a memory error was not contained",
        then: "the node is cordoned and replaced",
        share: 8,
    },
    Fault {
        name: "xid-74",
        deed: Deed::Gpu("xid:74"),
        says: "a link between GPUs fails",
        then: "the node has a warning and goes on: a link is not the GPU",
        share: 8,
    },
    Fault {
        name: "xid-63",
        deed: Deed::Gpu("xid:63"),
        says: "a bad row of memory is replaced by a spare one",
        then: "the node has a warning until its next reset, and goes on",
        share: 8,
    },
    Fault {
        name: "xid-13",
        deed: Deed::Gpu("xid:13"),
        says: "a program crashes on a GPU",
        then: "nothing: it is the program's fault, and no node is taken for it",
        share: 8,
    },
    Fault {
        name: "hot",
        deed: Deed::Gpu("temperature:97"),
        says: "a GPU is too hot",
        then: "a rule takes the node out of service, and it is replaced",
        share: 8,
    },
    Fault {
        name: "nvlink-down",
        deed: Deed::Gpu("nvlink-down:2"),
        says: "two links of a GPU are down",
        then: "the node has a warning and goes on",
        share: 6,
    },
    Fault {
        name: "ecc",
        deed: Deed::Gpu("ecc-uncorrected:1"),
        says: "a counter of memory errors goes up",
        then: "data was lost: the node is cordoned and replaced",
        share: 6,
    },
    Fault {
        name: "row-remap-failed",
        deed: Deed::Gpu("row-remap-failed"),
        says: "a bad row of memory cannot be replaced",
        then: "the node is cordoned and replaced",
        share: 6,
    },
    Fault {
        name: "silent",
        deed: Deed::Silence,
        says: "a machine loses its power and says nothing",
        then: "it is suspected, then taken for lost, then replaced",
        share: 8,
    },
    Fault {
        name: "lost",
        deed: Deed::Gpu("lost"),
        says: "a GPU does not answer the driver",
        then: "a health check finds it, and the node is replaced",
        share: 0,
    },
    Fault {
        name: "heal",
        deed: Deed::Heal,
        says: "all GPUs of a node are well again",
        then: "findings that a check can clear go away",
        share: 0,
    },
];

/// The fault of this name.
pub(crate) fn named(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name.eq_ignore_ascii_case(name))
}

impl Fault {
    /// What it is for one of so many GPUs.
    pub(crate) fn act(&self, gpu: u32) -> Act {
        match self.deed {
            Deed::Silence => Act::Silence,
            Deed::Heal => Act::Inject(Injection::Heal { gpu: None }),
            // A test reads them all.
            Deed::Gpu(words) => {
                Act::Inject(format!("{words} gpu:{gpu}").parse().unwrap_or(Injection::Lost { gpu }))
            }
        }
    }

    /// The table of all faults, for people.
    pub(crate) fn table() -> String {
        let line = |fault: &Fault| format!("  {:<17} {}: {}\n", fault.name, fault.says, fault.then);
        FAULTS.iter().map(line).collect()
    }
}

/// The faults that come by themselves: where they are, so that a demonstration goes on after a stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// What all choices are made from.
    pub(crate) seed: u64,
    /// How many faults there were.
    #[serde(default)]
    pub(crate) count: u64,
    /// Nodes that something was done to and that may still stand, the oldest first.
    #[serde(default)]
    wounded: VecDeque<String>,
}

/// How many nodes stay wounded: what no replacement mends is mended by hand after a while, as in a data
/// centre, or in an hour the whole fleet would have warnings.
const WOUNDED_MAX: usize = 4;

/// The shortest time between two faults: one can be followed with the eyes.
const PAUSE_MIN_S: u64 = 20;

/// The longest: nobody waits for it.
const PAUSE_MAX_S: u64 = 40;

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, count: 0, wounded: VecDeque::new() }
    }

    /// How long until the next fault.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_secs(PAUSE_MIN_S + self.dice("pause") % (PAUSE_MAX_S - PAUSE_MIN_S + 1))
    }

    /// The next fault.
    pub(crate) fn fault(&self) -> &'static Fault {
        let all: u64 = FAULTS.iter().map(|fault| fault.share).sum();
        let mut left = self.dice("fault") % all.max(1);
        let mut chosen = &const { FIRST };
        for fault in FAULTS {
            chosen = fault;
            match left.checked_sub(fault.share) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        chosen
    }

    /// Which of so many.
    pub(crate) fn choice(&self, what: &str, of: usize) -> Option<usize> {
        let of = u64::try_from(of).ok().filter(|of| 0 < *of)?;
        usize::try_from(self.dice(what) % of).ok()
    }

    /// Something was done to a node. Says which is to be healed for it, if one is.
    pub(crate) fn done(&mut self, node: &str) -> Option<String> {
        self.count += 1;
        self.wounded.push_back(node.to_owned());
        if WOUNDED_MAX < self.wounded.len() { self.wounded.pop_front() } else { None }
    }

    fn dice(&self, what: &str) -> u64 {
        let bytes = self.seed.to_le_bytes().into_iter().chain(self.count.to_le_bytes());
        // FNV-1a: `DefaultHasher` may change between Rust releases, and a seed must not.
        let hash = bytes.chain(what.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // Its low bits are the least mixed.
        hash >> 17
    }
}

#[cfg(test)]
mod tests;
