//! What a cluster or a node pool asks of the cloud, read from its spec.

use super::inventory::{ItemKind, Place, Shape};
use super::words;
use argosy_control::provider::{Ask, Part, Refusal};
use argosy_core::catalog::{Catalog, ProviderCatalog};
use argosy_core::pool::meanings;
use argosy_core::resource::{Kind, Spec};
use serde_json::Value;

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Want {
    /// Where.
    pub(super) place: Place,
    /// The provider's name as people write it.
    pub(super) display: String,
    /// The domain of the cluster's records.
    pub(super) domain: String,
    /// The cluster's name.
    pub(super) cluster: String,
}

/// What a control plane uses.
const CONTROL_PLANE_CPUS: u32 = 4;

/// Where records go if the spec names no domain.
pub(super) const DEFAULT_DOMAIN: &str = "example.com";

impl Want {
    /// Reads what is asked for. Who names no provider or region gets the first region of Google's cloud,
    /// or else of the first provider.
    pub(super) fn read(ask: &Ask, catalog: &Catalog) -> Result<Self, Refusal> {
        let spec = &ask.cluster.spec;
        let (name, provider) = provider(spec, catalog)?;
        let region = match Catalog::region_of(spec) {
            Some(region) if provider.regions.iter().any(|known| known == region) => region,
            Some(region) => {
                let message = format!(
                    "Invalid region '{region}' for provider {}. Supported regions: {}",
                    provider.display,
                    provider.regions.join(", ")
                );
                return Err(words::unsupported("InvalidRegion", message));
            }
            None => provider.regions.first().map_or("", String::as_str),
        };
        if ask.resource.kind == Kind::NodePool {
            check_machine_type(&ask.resource.spec, provider)?;
        }
        Ok(Self {
            place: Place { provider: name.to_owned(), region: region.to_owned() },
            display: provider.display.clone(),
            domain: domain(spec).to_ascii_lowercase(),
            cluster: ask.cluster.name.to_string(),
        })
    }

    /// The items of a part.
    pub(super) fn shapes(&self, part: Part) -> Vec<Shape> {
        let shape = |kind, what: &str, cpus, gpus| Shape {
            kind,
            what: what.to_owned(),
            place: self.place.clone(),
            cpus,
            gpus,
        };
        match part {
            Part::Dns => {
                let record = |name: String| shape(ItemKind::DnsRecord, &name, 0, 0);
                self.records().into_iter().map(record).collect()
            }
            Part::Infrastructure => vec![
                shape(ItemKind::Network, "network", 0, 0),
                shape(ItemKind::ControlPlane, "control-plane", CONTROL_PLANE_CPUS, 0),
            ],
        }
    }

    /// The names of the cluster's records.
    pub(super) fn records(&self) -> [String; 2] {
        let Self { cluster, domain, .. } = self;
        [format!("api.{cluster}.{domain}"), format!("*.apps.{cluster}.{domain}")]
    }
}

fn provider<'a>(
    spec: &'a Spec,
    catalog: &'a Catalog,
) -> Result<(&'a str, &'a ProviderCatalog), Refusal> {
    let name = Catalog::provider_of(spec);
    let found = match name {
        Some(name) => catalog.providers.get_key_value(name),
        None => {
            catalog.providers.get_key_value("gcp").or_else(|| catalog.providers.first_key_value())
        }
    };
    found.map(|(name, provider)| (name.as_str(), provider)).ok_or_else(|| {
        let supported: Vec<&str> = catalog.providers.keys().map(String::as_str).collect();
        let message = format!(
            "Unsupported provider '{}'. Supported providers: {}",
            name.unwrap_or_default(),
            supported.join(", ")
        );
        words::unsupported("UnsupportedProvider", message)
    })
}

/// Whether the provider has the machines of a node pool, if it names any.
fn check_machine_type(spec: &Spec, provider: &ProviderCatalog) -> Result<(), Refusal> {
    let known = &provider.machine_types;
    let wanted = spec.get("machineType").and_then(Value::as_str);
    let sold = |wanted: &str| {
        known.contains_key(wanted) || meanings(wanted).any(|name| known.contains_key(name))
    };
    let Some(wanted) = wanted.filter(|wanted| !sold(wanted)) else { return Ok(()) };
    let supported: Vec<&str> = known.keys().map(String::as_str).collect();
    let message = format!(
        "Unknown machine type '{wanted}' for provider {}. Supported machine types: {}",
        provider.display,
        supported.join(", ")
    );
    Err(words::unsupported("UnknownMachineType", message))
}

fn domain(spec: &Spec) -> &str {
    let base = spec.get("dns").and_then(|dns| dns.get("baseDomain"));
    base.or_else(|| spec.get("domain")).and_then(Value::as_str).unwrap_or(DEFAULT_DOMAIN)
}
