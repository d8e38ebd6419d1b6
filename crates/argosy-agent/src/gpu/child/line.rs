//! What the agent and its child say to each other: a line of JSON each.

use crate::gpu::{GpuError, GpuIdentity, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The longest line that either side reads.
///
/// A GPU with 64 links and 128 programs takes about 20 KiB; what is longer was not written by our child.
pub(crate) const LINE_LEN_MAX: usize = 64 * 1024;

/// What the agent asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// What is there.
    Inventory {
        /// GPUs that are not to be touched.
        #[serde(default)]
        skip: BTreeSet<u32>,
    },
    /// How it is.
    Sweep {
        /// GPUs that are not to be touched.
        #[serde(default)]
        skip: BTreeSet<u32>,
    },
}

impl Ask {
    /// GPUs that are not to be touched.
    pub(crate) fn skip(&self) -> &BTreeSet<u32> {
        match self {
            Ask::Inventory { skip } | Ask::Sweep { skip } => skip,
        }
    }
}

/// What the child answers: `Begin`, one line for each GPU in the order of their numbers, `End`; or at any
/// place `Failed`, and no more.
///
/// The order is what tells which GPU a child was at that says no more: the first that it has not named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(crate) enum Say {
    /// The driver works.
    Begin {
        /// How many GPUs it counts.
        count: u32,
        /// Its version.
        driver_version: Option<String>,
        /// The newest CUDA it serves.
        cuda_version: Option<String>,
        /// NVML's version.
        nvml_version: Option<String>,
    },
    /// What a GPU is.
    Identity {
        /// The GPU.
        gpu: Box<GpuIdentity>,
    },
    /// How a GPU is.
    Reading {
        /// The GPU.
        gpu: Box<Reading>,
    },
    /// A GPU could not be read.
    Unreadable {
        /// Its number.
        index: u32,
        /// NVML's word.
        error: String,
    },
    /// That was all.
    End,
    /// Nothing can be said.
    Failed {
        /// Why.
        error: GpuError,
    },
}

impl Say {
    /// The GPU that it is about.
    pub(crate) fn index(&self) -> Option<u32> {
        match self {
            Say::Identity { gpu } => Some(gpu.index),
            Say::Reading { gpu } => Some(gpu.index),
            Say::Unreadable { index, .. } => Some(*index),
            Say::Begin { .. } | Say::End | Say::Failed { .. } => None,
        }
    }
}
