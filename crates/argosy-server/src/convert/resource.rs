//! Clusters and node pools, from the wire and to it.

use super::member;
use crate::problem::Fault;
use crate::profile::Profile;
use argosy_api::error;
use argosy_api::resource as api;
use argosy_api::route::BASE;
use argosy_control::Stored;
use argosy_core::adapter::Tri;
use argosy_core::catalog::Catalog;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::nearest::nearest;
use argosy_core::resource::{Kind, Patch, Resource, Spec, Strategy};
use argosy_core::status::{self, Condition};
use serde_json::{Map, Value};

/// A resource as it stands on the wire.
pub(crate) fn wire(stored: &Stored<Resource>, profile: Profile) -> api::Resource {
    let resource = &*stored.value;
    let changed = status::last_transition(resource);
    let owner = resource.owner.map(|owner| api::OwnerReference {
        id: owner.to_string(),
        kind: api::Kind::Cluster,
        href: cluster_href(owner),
    });
    api::Resource {
        id: id(resource, profile),
        uid: resource.id.to_string(),
        kind: match resource.kind {
            Kind::Cluster => api::Kind::Cluster,
            Kind::NodePool => api::Kind::NodePool,
        },
        name: resource.name.to_string(),
        href: href(resource),
        spec: resource.spec.clone(),
        labels: resource
            .labels
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        tenancy: [("tenant".to_owned(), resource.tenant.clone())].into(),
        generation: resource.generation,
        revision: stored.revision.0,
        status: api::ResourceStatus {
            phase: profile.phase(status::phase(resource)).to_owned(),
            last_transition_time: changed.to_string(),
            conditions: resource.conditions.iter().map(condition).collect(),
        },
        cluster_id: resource.owner.map(|owner| owner.to_string()),
        owner_references: owner,
        created_at: resource.created.at.to_string(),
        updated_at: resource.updated.at.max(changed).to_string(),
        created_time: resource.created.at.to_string(),
        updated_time: resource.updated.at.to_string(),
        created_by: resource.created.by.clone(),
        updated_by: resource.updated.by.clone(),
        deleted_time: resource.deletion.as_ref().map(|deletion| deletion.at.to_string()),
        deleted_by: resource.deletion.as_ref().map(|deletion| deletion.by.clone()),
    }
}

/// What stands in `id`.
pub(crate) fn id(resource: &Resource, profile: Profile) -> String {
    match (resource.kind, profile) {
        (Kind::NodePool, Profile::Full | Profile::Mvp) => resource.name.to_string(),
        (Kind::Cluster, _) | (Kind::NodePool, Profile::Upstream) => resource.id.to_string(),
    }
}

/// The path of a resource, by its uid: it leads to the same resource for ever.
pub(crate) fn href(resource: &Resource) -> String {
    match resource.owner {
        None => cluster_href(resource.id),
        Some(owner) => {
            format!("{}/{}/{}", cluster_href(owner), resource.kind.plural(), resource.id)
        }
    }
}

fn cluster_href(id: ResourceId) -> String {
    format!("{BASE}/{}/{id}", Kind::Cluster.plural())
}

fn condition(condition: &Condition) -> api::Condition {
    api::Condition {
        kind: condition.kind.clone(),
        status: tri(condition.status),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        observed_generation: condition.observed_generation,
        created_time: condition.created_time.to_string(),
        last_updated_time: condition.last_updated_time.to_string(),
        last_transition_time: condition.last_transition_time.to_string(),
    }
}

pub(crate) const fn tri(status: Tri) -> api::Tri {
    match status {
        Tri::True => api::Tri::True,
        Tri::False => api::Tri::False,
        Tri::Unknown => api::Tri::Unknown,
    }
}

/// What a create asks for, each part parsed.
#[derive(Debug)]
pub(crate) struct New {
    pub(crate) name: Name,
    pub(crate) spec: Spec,
    pub(crate) labels: Labels,
}

/// Reads the body of a create. Members that are the server's (`id`, `href`, `status`) are ignored.
///
/// # Errors
/// Every field that is wrong, those the catalog knows about included.
pub(crate) fn creation(
    kind: Kind,
    mut body: Map<String, Value>,
    catalog: &Catalog,
) -> Result<New, Vec<FieldError>> {
    let mut errors = Vec::new();
    match body.get("kind") {
        None => {}
        Some(Value::String(sent)) if sent == kind.as_str() => {}
        Some(Value::String(sent)) => errors.push(
            FieldError::new(
                "kind",
                Constraint::Enum,
                format!("Invalid kind '{sent}'. Supported values: {kind}"),
            )
            .with_value(sent.as_str()),
        ),
        Some(other) => errors.push(member::wrong_type("kind", "a string", other)),
    }
    let name = member::text(body.get("name"), "name").and_then(Name::parse);
    let spec = member::object(body.remove("spec"), "spec")
        .and_then(|spec| spec.ok_or_else(|| member::missing("spec")));
    let labels = member::object(body.remove("labels"), "labels")
        .map_err(|error| vec![error])
        .and_then(|labels| labels.map_or(Ok(Labels::default()), |labels| Labels::parse(&labels)));
    match (name, spec, labels) {
        (Ok(name), Ok(spec), Ok(labels)) if errors.is_empty() => Ok(New { name, spec, labels }),
        (name, spec, labels) => {
            errors.extend(name.err());
            match spec {
                // The service checks again, with the cluster's provider; here it is so that all
                // complaints come at once.
                Ok(spec) => {
                    errors.extend(catalog.check(kind, &spec, None).err().unwrap_or_default())
                }
                Err(error) => errors.push(error),
            }
            errors.extend(labels.err().unwrap_or_default());
            Err(errors)
        }
    }
}

/// Reads the body of a PATCH.
///
/// # Errors
/// A member nobody may patch (with the nearest one may), a wrong type, or nothing at all.
pub(crate) fn patch(mut body: Map<String, Value>, strategy: Strategy) -> Result<Patch, Fault> {
    const KNOWN: [&str; 2] = ["spec", "labels"];
    if let Some(unknown) = body.keys().find(|member| !KNOWN.contains(&member.as_str())) {
        let near = nearest(unknown, KNOWN)
            .map_or_else(String::new, |near| format!(" Did you mean '{near}'?"));
        let short: String = unknown.chars().take(100).collect();
        let detail =
            format!("Field '{short}' cannot be patched. Supported fields: spec, labels.{near}");
        return Err(Fault::new(&error::MALFORMED, detail));
    }
    let spec = member::object(body.remove("spec"), "spec");
    let labels = member::object(body.remove("labels"), "labels");
    match (spec, labels) {
        (Ok(None), Ok(None)) => {
            let detail = "An empty PATCH changes nothing. Send spec, labels or both";
            Err(Fault::new(&error::BAD_REQUEST, detail))
        }
        (Ok(spec), Ok(labels)) => Ok(Patch { spec, labels, strategy }),
        (spec, labels) => Err(Fault::fields(spec.err().into_iter().chain(labels.err()).collect())),
    }
}

/// Reads the body of a force-delete: the reason.
pub(crate) fn force_delete(body: &Map<String, Value>) -> Result<String, FieldError> {
    member::text(body.get("reason"), "reason").and_then(member::reason).map(str::to_owned)
}

#[cfg(test)]
mod tests;
