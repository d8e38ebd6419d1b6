//! Node pools that the configuration declares: made at start, if they are not there.

use crate::config::Config;
use crate::config::machines::{DECLARED_TENANT, DeclaredPool, declared};
use crate::failure::Failure;
use argosy_control::resource::{Creation, Target, Write};
use argosy_control::{Control, Error};
use argosy_core::access::{Caller, Role};
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::resource::Kind;
use serde_json::{Map, Value, json};
use tracing::info;

/// The cluster of declared pools.
const CLUSTER: &str = "default";

/// Makes what is declared and not there. What is there is left as people have it.
pub(super) async fn make(control: &Control, config: &Config) -> Result<(), Failure> {
    let pools = declared(config);
    if pools.is_empty() {
        return Ok(());
    }
    let caller = caller();
    let target = Target { kind: Kind::Cluster, cluster: None, reference: CLUSTER };
    if control.resources.get(&caller, target).is_err() {
        let creation = Creation {
            kind: Kind::Cluster,
            cluster: None,
            name: name(CLUSTER)?,
            spec: spec(config),
            labels: Labels::default(),
        };
        create(control, &caller, creation).await?;
    }
    for DeclaredPool { name: pool, spec, labels } in pools {
        let cluster = Some(CLUSTER);
        let target = Target { kind: Kind::NodePool, cluster, reference: &pool };
        if control.resources.get(&caller, target).is_ok() {
            continue;
        }
        let labels: Map<String, Value> =
            labels.into_iter().map(|(key, value)| (key, Value::String(value))).collect();
        let labels = Labels::parse(&labels).map_err(|_| wrong(&pool, "its labels are wrong"))?;
        let creation = Creation { kind: Kind::NodePool, cluster, name: name(&pool)?, spec, labels };
        create(control, &caller, creation).await?;
        info!(pool, "made a node pool that the configuration declares");
    }
    Ok(())
}

/// The cluster is at the first provider there is: its pools say themselves where they buy.
fn spec(config: &Config) -> Map<String, Value> {
    let first = config.providers.keys().next();
    let provider = first.map(|name| ("provider".to_owned(), json!(name)));
    provider.into_iter().collect()
}

async fn create(control: &Control, caller: &Caller, creation: Creation<'_>) -> Result<(), Failure> {
    let what = creation.name.to_string();
    match control.resources.create(caller, creation, Write::default()).await {
        // Another process was first.
        Ok(_) | Err(Error::NameTaken { .. }) => Ok(()),
        Err(error) => Err(wrong(&what, error)),
    }
}

fn name(text: &str) -> Result<Name, Failure> {
    Name::parse(text).map_err(|error| wrong(text, error.message))
}

fn wrong(pool: &str, error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("pools.{pool} cannot be made")).why(error)
}

fn caller() -> Caller {
    Caller {
        subject: "configuration".to_owned(),
        via: "system",
        tenant: DECLARED_TENANT.to_owned(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id: String::new(),
    }
}
