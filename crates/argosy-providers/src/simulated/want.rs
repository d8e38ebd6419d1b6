//! What a cluster or a node pool asks of the cloud, read from its spec.

use super::Section;
use super::inventory::{ItemKind, Place, Shape};
use super::words;
use argosy_control::provider::{Ask, Refusal};
use argosy_core::catalog::{Catalog, MachineType, ProviderCatalog};
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
    /// The machines, for a node pool.
    pub(super) machines: Option<Machines>,
}

/// The machines of a node pool.
#[derive(Clone, Debug)]
pub(super) struct Machines {
    pub(super) kind: String,
    pub(super) size: MachineType,
    pub(super) count: u32,
}

/// What a control plane uses.
const CONTROL_PLANE_CPUS: u32 = 4;

/// Where records go if the spec names no domain.
pub(super) const DEFAULT_DOMAIN: &str = "example.com";

impl Want {
    /// Reads what is asked for. Who names no provider, region, machine type or count gets the first
    /// region of Google's cloud (or else of the first provider), its smallest machine, and one of it.
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
        let machines = match ask.resource.kind {
            Kind::Cluster => None,
            Kind::NodePool => Some(machines(&ask.resource.spec, provider, catalog.nodes_max)?),
        };
        Ok(Self {
            place: Place { provider: name.to_owned(), region: region.to_owned() },
            display: provider.display.clone(),
            domain: domain(spec).to_ascii_lowercase(),
            cluster: ask.cluster.name.to_string(),
            machines,
        })
    }

    /// The items of a part.
    pub(super) fn shapes(&self, part: Section) -> Vec<Shape> {
        let shape = |kind, what: &str, cpus, gpus| Shape {
            kind,
            what: what.to_owned(),
            place: self.place.clone(),
            cpus,
            gpus,
        };
        match (part, &self.machines) {
            (Section::Dns, _) => {
                let record = |name: String| shape(ItemKind::DnsRecord, &name, 0, 0);
                self.records().into_iter().map(record).collect()
            }
            (Section::Infrastructure, _) => vec![
                shape(ItemKind::Network, "network", 0, 0),
                shape(ItemKind::ControlPlane, "control-plane", CONTROL_PLANE_CPUS, 0),
            ],
            (Section::Machines, Some(Machines { kind, size, count })) => {
                let machine = shape(ItemKind::Machine, kind, size.cpus, size.gpus);
                vec![machine; usize::try_from(*count).unwrap_or(usize::MAX)]
            }
            (Section::Machines, None) => Vec::new(),
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

fn machines(spec: &Spec, provider: &ProviderCatalog, nodes_max: u32) -> Result<Machines, Refusal> {
    let known = &provider.machine_types;
    let found = match spec.get("machineType").and_then(Value::as_str) {
        Some(kind) => known.get_key_value(kind).ok_or_else(|| {
            let supported: Vec<&str> = known.keys().map(String::as_str).collect();
            let message = format!(
                "Unknown machine type '{kind}' for provider {}. Supported machine types: {}",
                provider.display,
                supported.join(", ")
            );
            words::unsupported("UnknownMachineType", message)
        })?,
        None => known.iter().min_by_key(|(_, size)| (size.gpus, size.cpus)).ok_or_else(|| {
            let message = format!("{} offers no machine types", provider.display);
            words::unsupported("UnknownMachineType", message)
        })?,
    };
    let count = spec.get("nodeCount").or_else(|| spec.get("replicas")).and_then(Value::as_u64);
    // What comes past the door is in range; the bound keeps a caller without one from filling memory.
    let count = u32::try_from(count.unwrap_or(1)).unwrap_or(u32::MAX).min(nodes_max);
    Ok(Machines { kind: found.0.clone(), size: found.1.clone(), count })
}

fn domain(spec: &Spec) -> &str {
    let base = spec.get("dns").and_then(|dns| dns.get("baseDomain"));
    base.or_else(|| spec.get("domain")).and_then(Value::as_str).unwrap_or(DEFAULT_DOMAIN)
}
