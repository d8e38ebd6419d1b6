//! What can be asked for: providers, their regions and machine types, and the limits of a pool.

use crate::field::FieldError;
use crate::resource::{Kind, Spec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the deployment can provide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// By the name that stands in `spec.provider`: `gcp`, `aws`.
    pub providers: BTreeMap<String, ProviderCatalog>,
    /// The most nodes of one pool.
    pub nodes_max: u32,
}

/// What one provider offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderCatalog {
    /// The name as people write it: `GCP`.
    pub display: String,
    /// Its regions, in the order in which errors list them.
    pub regions: Vec<String>,
    /// Its machine types.
    pub machine_types: BTreeMap<String, MachineType>,
}

/// One machine type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineType {
    /// Virtual CPUs.
    pub cpus: u32,
    /// GPUs.
    #[serde(default)]
    pub gpus: u32,
}

impl Default for Catalog {
    /// GCP and AWS with their common regions, and the machine types of the documents.
    fn default() -> Self {
        todo!()
    }
}

impl Catalog {
    /// Checks a spec, merged if it comes from a PATCH. `provider` is the cluster's, for a node pool.
    ///
    /// # Errors
    /// One complaint a field, the seeds' sentences word for word.
    pub fn check(
        &self,
        kind: Kind,
        spec: &Spec,
        provider: Option<&str>,
    ) -> Result<(), Vec<FieldError>> {
        let _ = (kind, spec, provider);
        todo!()
    }

    /// The provider a spec names: `provider`, or `platform.type`.
    pub fn provider_of(spec: &Spec) -> Option<&str> {
        let _ = spec;
        todo!()
    }

    /// The region a spec names: `region`, or `platform.<type>.region`.
    pub fn region_of(spec: &Spec) -> Option<&str> {
        let _ = spec;
        todo!()
    }
}
