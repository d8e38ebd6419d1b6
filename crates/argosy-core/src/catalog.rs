//! What can be asked for: providers, their regions and machine types, and the limits of a pool.

use crate::field::{Constraint, FieldError, QUOTE_LEN_MAX, quotable};
use crate::nearest::nearest;
use crate::pool::PoolSpec;
use crate::resource::{Kind, Spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

impl ProviderCatalog {
    /// The machine type with the fewest GPUs, and of those with the fewest CPUs.
    pub fn smallest(&self) -> Option<&str> {
        let types = self.machine_types.iter();
        let smallest = types.min_by_key(|(_, of)| (of.gpus, of.cpus));
        smallest.map(|(name, _)| name.as_str())
    }
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
    /// GCP, AWS and Lambda with their common regions, and the machine types of the documents.
    fn default() -> Self {
        let providers = [
            provider(
                "gcp",
                "GCP",
                &[
                    "us-east1",
                    "us-west1",
                    "us-central1",
                    "europe-west1",
                    "europe-west4",
                    "asia-east1",
                ],
                &[
                    ("n1-standard-4", 4, 0),
                    ("n1-standard-8", 8, 0),
                    ("n1-highmem-8", 8, 0),
                    ("a2-highgpu-1g", 12, 1),
                    ("a2-highgpu-8g", 96, 8),
                    ("a3-highgpu-8g", 208, 8),
                ],
            ),
            provider(
                "aws",
                "AWS",
                &[
                    "us-east-1",
                    "us-east-2",
                    "us-west-2",
                    "eu-west-1",
                    "eu-central-1",
                    "ap-northeast-1",
                ],
                &[
                    ("m5.xlarge", 4, 0),
                    ("m5.2xlarge", 8, 0),
                    ("g5.xlarge", 4, 1),
                    ("p4d.24xlarge", 96, 8),
                    ("p5.48xlarge", 192, 8),
                ],
            ),
            provider(
                "lambda",
                "Lambda",
                &["us-west-1", "us-east-1", "us-south-1", "europe-central-1", "asia-northeast-1"],
                &[
                    ("gpu_1x_a10", 30, 1),
                    ("gpu_1x_h100_pcie", 26, 1),
                    ("gpu_8x_a100", 124, 8),
                    ("gpu_8x_h100_sxm5", 208, 8),
                ],
            ),
        ];
        Self { providers: BTreeMap::from(providers), nodes_max: 100 }
    }
}

fn provider(
    name: &str,
    display: &str,
    regions: &[&str],
    machine_types: &[(&str, u32, u32)],
) -> (String, ProviderCatalog) {
    let catalog = ProviderCatalog {
        display: display.to_owned(),
        regions: regions.iter().map(|&region| region.to_owned()).collect(),
        machine_types: machine_types
            .iter()
            .map(|&(name, cpus, gpus)| (name.to_owned(), MachineType { cpus, gpus }))
            .collect(),
    };
    (name.to_owned(), catalog)
}

impl Catalog {
    /// Checks a spec, merged if it comes from a PATCH. `provider` is the cluster's, for a node pool.
    ///
    /// A spec is otherwise free: what names no provider of ours by `spec.provider` (a `platform`
    /// section, a region alone) is its adapters' business.
    ///
    /// # Errors
    /// One complaint a field, the seeds' sentences word for word.
    pub fn check(
        &self,
        kind: Kind,
        spec: &Spec,
        provider: Option<&str>,
    ) -> Result<(), Vec<FieldError>> {
        let checks = match kind {
            Kind::Cluster => {
                [self.check_place(spec), check_cluster_node_count(spec.get("nodeCount"))]
            }
            Kind::NodePool => return PoolSpec::check(spec, provider, self),
        };
        let errors: Vec<FieldError> = checks.into_iter().filter_map(Result::err).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The provider a spec names: `provider`, or `platform.type`.
    pub fn provider_of(spec: &Spec) -> Option<&str> {
        match spec.get("provider") {
            Some(provider) => provider.as_str(),
            None => spec.get("platform")?.get("type")?.as_str(),
        }
    }

    /// The region a spec names: `region`, or `platform.<type>.region`.
    pub fn region_of(spec: &Spec) -> Option<&str> {
        if let Some(region) = spec.get("region") {
            return region.as_str();
        }
        let platform = spec.get("platform")?;
        platform.get(platform.get("type")?.as_str()?)?.get("region")?.as_str()
    }

    /// Whether a provider is one of ours.
    pub(crate) fn check_provider(&self, field: &str, name: &str) -> Result<(), FieldError> {
        if self.providers.contains_key(name) {
            return Ok(());
        }
        let supported: Vec<&str> = self.providers.keys().map(String::as_str).collect();
        let hint = nearest(name, supported.iter().copied())
            .map(|meant| format!(" Did you mean {meant}?"))
            .unwrap_or_default();
        let complaint = format!("Unsupported provider '{}'.{hint}", quotable(name));
        Err(unsupported(field, name, complaint, ("providers", &supported)))
    }

    /// Provider and region together: a region can only be judged under a known provider.
    fn check_place(&self, spec: &Spec) -> Result<(), FieldError> {
        let name = text("spec.provider", spec.get("provider"))?;
        let region = text("spec.region", spec.get("region"))?;
        let Some(name) = name else { return Ok(()) };
        let Some(provider) = self.providers.get(name) else {
            let supported: Vec<&str> = self.providers.keys().map(String::as_str).collect();
            return Err(unsupported(
                "spec.provider",
                name,
                format!("Unsupported provider '{}'.", quotable(name)),
                ("providers", &supported),
            ));
        };
        let supported: Vec<&str> = provider.regions.iter().map(String::as_str).collect();
        match region {
            Some(region) if !supported.contains(&region) => Err(unsupported(
                "spec.region",
                region,
                format!("Invalid region '{}' for provider {}.", quotable(region), provider.display),
                ("regions", &supported),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// How many nodes a pool asks for.
    pub(crate) fn node_count(&self, value: Option<&Value>) -> Result<Option<u32>, FieldError> {
        let Some(value) = value else { return Ok(None) };
        let count = whole_number("spec.nodeCount", value)?;
        let max = self.nodes_max;
        let (constraint, message) = if count < 1 {
            let message = format!("Invalid node count: {count}. Must be between 1 and {max}");
            (Constraint::Min, message)
        } else if i128::from(max) < count {
            let message = format!("Node count {count} exceeds maximum limit of {max} per nodepool");
            (Constraint::Max, message)
        } else {
            return Ok(u32::try_from(count).ok());
        };
        Err(FieldError::new("spec.nodeCount", constraint, message).with_value(value.clone()))
    }

    /// Whether a provider may have a machine type.
    pub(crate) fn check_machine_type(
        &self,
        field: &str,
        wanted: &str,
        provider: &str,
    ) -> Result<(), FieldError> {
        let Some(provider) = self.providers.get(provider) else { return Ok(()) };
        // A provider without a list of types is one whose types nobody wrote down: any may be right.
        if provider.machine_types.is_empty() || provider.machine_types.contains_key(wanted) {
            return Ok(());
        }
        let supported: Vec<&str> = provider.machine_types.keys().map(String::as_str).collect();
        let hint = nearest(wanted, supported.iter().copied())
            .map(|meant| format!(" Did you mean {meant}?"))
            .unwrap_or_default();
        let display = &provider.display;
        Err(unsupported(
            field,
            wanted,
            format!("Unknown machine type '{}' for provider {display}.{hint}", quotable(wanted)),
            ("machine types", &supported),
        ))
    }
}

/// A cluster's node count is data for its adapters, whatever its size.
fn check_cluster_node_count(value: Option<&Value>) -> Result<(), FieldError> {
    let Some(value) = value else { return Ok(()) };
    let count = whole_number("spec.nodeCount", value)?;
    if count < 0 {
        let message = format!("Invalid node count: {count}. Must not be negative");
        let complaint = FieldError::new("spec.nodeCount", Constraint::Min, message);
        return Err(complaint.with_value(value.clone()));
    }
    Ok(())
}

/// `3.0` and `1e3` are refused although JSON calls them numbers: whoever reads the count later would
/// have to know about them too.
pub(crate) fn whole_number(field: &str, value: &Value) -> Result<i128, FieldError> {
    let Value::Number(number) = value else {
        return Err(FieldError::wrong_type(field, "a whole number", value));
    };
    number.as_i128().ok_or_else(|| {
        let message =
            format!("{field} must be a whole number without fraction or exponent, like 3");
        FieldError::new(field, Constraint::Format, message).with_value(value.clone())
    })
}

pub(crate) fn text<'a>(
    field: &str,
    value: Option<&'a Value>,
) -> Result<Option<&'a str>, FieldError> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(FieldError::wrong_type(field, "a string", other)),
    }
}

/// `<complaint> Supported <noun>: a, b, c`.
fn unsupported(
    field: &str,
    sent: &str,
    complaint: String,
    (noun, supported): (&str, &[&str]),
) -> FieldError {
    let message = format!("{complaint} Supported {noun}: {}", supported.join(", "));
    let complaint = FieldError::new(field, Constraint::Enum, message);
    if sent.len() <= QUOTE_LEN_MAX { complaint.with_value(sent) } else { complaint }
}

#[cfg(test)]
mod tests;
