//! What the codes of NVIDIA's driver mean: Xids (of a GPU) and SXids (of an NVSwitch).
//!
//! The catalogue is data with a version, `data/xid.csv`, because NVIDIA changes its mind more often
//! than we release; an operator can bring a newer file. What a newcomer gets wrong: most codes are not
//! about hardware. A program that reads past its array writes Xid 13 and 31 all day on a GPU in perfect
//! health, so a class says first whether the hardware is meant at all: `Class::condemns`.

mod document;
mod parse;

use crate::health::Severity;
use crate::kernel::{Detail, KernelFault, NvlinkFault, OFF_THE_BUS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use document::document;
pub use parse::{CatalogueError, FIELD_LEN_MAX, TEXT_LEN_MAX};

/// What is known about the driver's codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    version: String,
    xids: BTreeMap<u32, Row>,
    sxids: BTreeMap<u32, Row>,
    /// Several units can share a key, so the rows of one key differ in their names.
    nvlinks: BTreeMap<NvlinkKey, Vec<Row>>,
}

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    Catalogue::parse(include_str!("../data/xid.csv"))
        .expect("data/xid.csv is part of the build, and a test reads it")
});

impl Catalogue {
    /// The catalogue this program was built with, read once.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Reads a catalogue in the form of `data/xid.csv`. It replaces the built-in one whole: a code it
    /// does not have is not known.
    ///
    /// # Errors
    /// The first line that is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        parse::catalogue(text)
    }

    /// Which catalogue it is, for whoever wants to know why a node was judged as it was: `2025-10.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What an Xid means; `None` is a code nobody told us about, to be treated as `Class::Unknown`.
    pub fn xid(&self, code: u32) -> Option<&Row> {
        self.xids.get(&code)
    }

    /// What an SXid means; `None` as for `xid`.
    pub fn sxid(&self, code: u32) -> Option<&Row> {
        self.sxids.get(&code)
    }

    /// What an NVLink 5 event (Xid 144 to 150) means; `None` if the table does not have its unit,
    /// sub-code and status, in which case the row of its Xid holds.
    pub fn nvlink(&self, code: u32, fault: &NvlinkFault) -> Option<&Row> {
        let key = NvlinkKey { code, sub_code: fault.sub_code()?, status: fault.status()? };
        self.nvlinks.get(&key)?.iter().find(|row| row.is_of(&fault.unit))
    }

    /// What a line of the kernel log means: the most exact row there is.
    pub fn row(&self, fault: &KernelFault) -> Option<&Row> {
        match fault {
            KernelFault::Xid(xid) => match &xid.detail {
                Detail::Nvlink(nvlink) => {
                    self.nvlink(xid.code, nvlink).or_else(|| self.xid(xid.code))
                }
                Detail::Plain | Detail::Recovery(_) => self.xid(xid.code),
            },
            KernelFault::OffTheBus { .. } => self.xid(OFF_THE_BUS),
            KernelFault::Sxid(sxid) => self.sxid(sxid.code),
        }
    }

    /// The rows of Xids, by code.
    pub fn xids(&self) -> impl Iterator<Item = &Row> {
        self.xids.values()
    }

    /// The rows of SXids, by code.
    pub fn sxids(&self) -> impl Iterator<Item = &Row> {
        self.sxids.values()
    }

    /// The rows of NVLink 5 events, by key.
    pub fn nvlinks(&self) -> impl Iterator<Item = (NvlinkKey, &Row)> {
        self.nvlinks.iter().flat_map(|(key, rows)| rows.iter().map(|row| (*key, row)))
    }
}

/// What is known about one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The Xid or SXid.
    pub code: u32,
    /// The driver's name for it, without the prefix that all of them share. For an NVLink 5 event its
    /// unit, with `/` between the names that drivers gave it over time.
    pub name: String,
    /// What kind of fault it is.
    pub class: Class,
    /// What is recommended.
    pub action: Action,
    /// Who says so: `nvidia`, `nvsentinel`, `gpud`, or `judgement` where we had to decide.
    pub source: String,
    /// A sentence for people; may be empty.
    pub meaning: String,
}

impl Row {
    /// The names in `name`.
    fn units(&self) -> impl Iterator<Item = &str> {
        self.name.split('/')
    }

    fn is_of(&self, unit: &str) -> bool {
        self.units().any(|own| own == unit)
    }
}

/// Which NVLink 5 event it is, together with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NvlinkKey {
    /// The Xid, 144 to 150.
    pub code: u32,
    /// Bits 20 to 25 of the first word: why a link went down.
    pub sub_code: u8,
    /// The second word: what the unit complains about.
    pub status: u32,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal, $meaning:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $(#[doc = $meaning] #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// All of them, in the order in which people are told about them.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The word, as it stands in the catalogue and as rules compare with it.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// A sentence for people.
            pub const fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning),+ }
            }

            /// The one with this word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words! {
    /// What kind of fault a code stands for.
    Class {
        Info = "info", "For the record: nothing has to be done.";
        App = "app", "A program failed: restart the job, the node is fine.";
        Follow = "follow", "In the wake of something else: judge by the code beside it, or by the driver's recovery action.";
        Config = "config", "Software or its settings do not match: a repair of hardware would change nothing.";
        Unknown = "unknown", "Nobody says what it means, so nobody may act on it unless a policy asks for that.";
        Link = "link", "An NVLink has trouble: look at the link, its connectors and its far side.";
        Facility = "facility", "Power, cooling or mechanics around the GPU.";
        Reduced = "reduced", "The GPU goes on with less than it was made with: plan a repair.";
        GpuReset = "gpu-reset", "The GPU needs a reset before it can be trusted again.";
        Vm = "vm", "The virtual machine must be started again.";
        Node = "node", "The node must boot again.";
        Support = "support", "Nothing automatic helps: keep the node out of service and call the vendor.";
    }
}

impl Class {
    /// Whether it says that the hardware is at fault, and not a program or its settings.
    ///
    /// Whoever replaces, resets or drains machines asks here first.
    pub const fn condemns(self) -> bool {
        match self {
            Class::Info | Class::App | Class::Follow | Class::Config | Class::Unknown => false,
            Class::Link
            | Class::Facility
            | Class::Reduced
            | Class::GpuReset
            | Class::Vm
            | Class::Node
            | Class::Support => true,
        }
    }

    /// How bad one such event is, for want of a better judge: the driver and history rules know more.
    pub const fn severity(self) -> Severity {
        match self {
            Class::Info | Class::App | Class::Follow => Severity::Healthy,
            Class::Config | Class::Unknown | Class::Link | Class::Facility | Class::Reduced => {
                Severity::Degraded
            }
            Class::GpuReset | Class::Vm | Class::Node | Class::Support => Severity::Unhealthy,
        }
    }
}

words! {
    /// What is recommended for a code.
    ///
    /// For people and for policies; nothing in here carries it out.
    Action {
        None = "none", "Nothing.";
        RestartApp = "restart-app", "Restart the program that failed.";
        FollowOther = "follow-other", "Look at the code beside it; alone, restart the fabric manager or report it.";
        CheckConfig = "check-config", "Bring software and settings into agreement: driver, firmware, fabric manager.";
        CheckLink = "check-link", "Look at signal quality, connectors and cable of the link, on both ends.";
        CheckFacility = "check-facility", "Look at power supply and mechanics.";
        CheckThermals = "check-thermals", "Look at cooling.";
        ResetGpu = "reset-gpu", "Drain the GPU and reset it.";
        ResetFabric = "reset-fabric", "Drain the node and reset all its GPUs and switches together.";
        RestartVm = "restart-vm", "Start the virtual machine again.";
        RebootNode = "reboot-node", "Drain the node and boot it again.";
        FieldDiagnostic = "field-diagnostic", "Run the vendor's field diagnostic.";
        ContactSupport = "contact-support", "Report it to the vendor.";
    }
}

#[cfg(test)]
mod tests;
