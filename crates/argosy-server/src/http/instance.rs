//! Machines over HTTP: what is bought, what is found that nobody knows, and where from.

use super::fields::{Fields, OF_INSTANCE};
use super::header::tagged;
use super::list::{Cost, Listed, Page, heavy, watch};
use super::node::search;
use super::query::Query;
use super::{Answer, Ask, empty, json};
use crate::convert;
use crate::convert::member::{self, Members};
use crate::problem::{Fault, internal};
use argosy_api::safety::Released;
use argosy_control::Stored;
use argosy_control::instance::InstanceQuery;
use argosy_control::resource::{Target, Write};
use argosy_control::safety::Beyond;
use argosy_control::watch::WatchInstances;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::instance::Instance;
use argosy_core::resource::{Kind, Patch, Strategy};
use argosy_core::search::{Filter, Order, SearchError};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};

pub(super) async fn list(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let fields = Fields::parse(query.all("fields"), OF_INSTANCE).map_err(Fault::fields)?;
    let filter = filter(&query)?;
    let order = order(&query)?;
    if query.flag("watch") {
        return follow(ask, &query, fields, None, filter).await;
    }
    let page = Page::of(&query);
    let (instances, caller) = (ask.server.control.instances.clone(), ask.caller.clone());
    heavy(ask, move || {
        let query = InstanceQuery { filter, order, skip: page.skip(), limit: page.size };
        let found = instances.list(&caller, &query)?;
        let show = |shown: &argosy_control::instance::Shown| {
            fields.show(convert::instance::wire(&shown.stored))
        };
        let items: Vec<_> = found.instances.iter().map(show).collect();
        Ok(Listed {
            kind: "InstanceList".to_owned(),
            page: page.page,
            size: items.len(),
            total: found.total,
            revision: found.revision.0,
            cost: Some(Cost { cost_per_hour: found.cost.known, unpriced: found.cost.unpriced }),
            items,
        })
    })
    .await
}

pub(super) async fn get(ask: &Ask) -> Answer {
    let id = ask.name("instance_id").unwrap_or_default();
    let instance = ask.server.control.instances.get(&ask.caller, id)?.stored;
    let query = ask.query()?;
    let fields = Fields::parse(query.all("fields"), OF_INSTANCE).map_err(Fault::fields)?;
    if query.flag("watch") {
        return follow(ask, &query, fields, Some(id), Filter::everything()).await;
    }
    if ask.has_seen(instance.revision) {
        return tagged(empty(StatusCode::NOT_MODIFIED), instance.revision);
    }
    let shown = fields.show(convert::instance::wire(&instance));
    tagged(json(StatusCode::OK, &shown)?, instance.revision)
}

async fn follow(
    ask: &Ask,
    query: &Query,
    fields: Fields,
    instance: Option<&str>,
    filter: Filter<Instance>,
) -> Answer {
    let after = ask.resume_after(query)?;
    let asked = WatchInstances { instance, filter, after };
    let started = ask.server.control.instances.watch(&ask.caller, asked)?;
    let show = move |instance: &Stored<Instance>| fields.show(convert::instance::wire(instance));
    watch(ask, started, after, Box::new(show)).await
}

pub(super) async fn terminate(ask: &Ask) -> Answer {
    let id = ask.name("instance_id").unwrap_or_default();
    let instances = &ask.server.control.instances;
    instances.get(&ask.caller, id)?;
    ask.query()?;
    let mut members = Members::new("", ask.object()?);
    let reason = reason(&mut members);
    let force = members.flag("force");
    let beyond = if members.flag("over_budget") { Beyond::Override } else { Beyond::Refuse };
    let (reason, force) = members.finish((reason, force)).map_err(Fault::fields)?;
    let instance = instances.terminate(&ask.caller, id, &reason, force, beyond).await?.stored;
    let shown = json(StatusCode::ACCEPTED, &convert::instance::wire(&instance))?;
    tagged(shown, instance.revision)
}

pub(super) async fn adopt(ask: &Ask) -> Answer {
    ask.query()?;
    let mut members = Members::new("", ask.object()?);
    let (provider, machine) = (word(&mut members, "provider"), word(&mut members, "machine_id"));
    let nodepool = word(&mut members, "nodepool");
    let cluster = members.text_if_any("cluster");
    let reason = reason(&mut members);
    members.finish(()).map_err(Fault::fields)?;
    let pool = pool(ask, cluster.as_deref(), &nodepool)?;
    let instances = &ask.server.control.instances;
    let adopted = instances.adopt(&ask.caller, &provider, &machine, pool, &reason).await?.stored;
    let mut response = json(StatusCode::CREATED, &convert::instance::wire(&adopted))?;
    let href = convert::instance::href(adopted.value.id.as_str());
    response.headers_mut().extend(HeaderValue::from_str(&href).ok().map(|href| (LOCATION, href)));
    tagged(response, adopted.revision)
}

pub(super) fn orphans(ask: &Ask) -> Answer {
    ask.query()?;
    let orphans = ask.server.control.instances.orphans(&ask.caller)?;
    json(StatusCode::OK, &convert::instance::orphans(&orphans))
}

pub(super) async fn reap(ask: &Ask) -> Answer {
    let why = why(ask)?;
    let provider = ask.name("provider").unwrap_or_default();
    let machine = ask.name("machine_id").unwrap_or_default();
    let instances = &ask.server.control.instances;
    let orphan = instances.reap(&ask.caller, provider, machine, &why).await?;
    json(StatusCode::ACCEPTED, &convert::instance::orphan(&orphan))
}

pub(super) fn providers(ask: &Ask) -> Answer {
    ask.query()?;
    let providers = ask.server.control.instances.providers(&ask.caller)?;
    json(StatusCode::OK, &convert::instance::providers(providers))
}

pub(super) async fn thaw(ask: &Ask) -> Answer {
    let why = why(ask)?;
    let provider = ask.name("provider").unwrap_or_default();
    let released = ask.server.control.instances.thaw(&ask.caller, provider, &why).await?;
    json(StatusCode::OK, &Released { released })
}

pub(super) fn explain(ask: &Ask) -> Answer {
    let pool = named_pool(ask)?;
    let explained = ask.server.control.instances.explain(&ask.caller, pool)?;
    json(StatusCode::OK, &convert::instance::explained(&explained))
}

pub(super) async fn history(ask: &Ask) -> Answer {
    let pool = named_pool(ask)?;
    let samples = ask.server.control.instances.history(&ask.caller, pool).await?;
    json(StatusCode::OK, &convert::instance::history(pool, &samples))
}

pub(super) async fn simulate(ask: &Ask) -> Answer {
    let pool = named_pool(ask)?;
    let asked = convert::instance::simulate(ask.object()?).map_err(Fault::fields)?;
    let at_work = ask.gate.enter().await?;
    let (instances, caller) = (ask.server.control.instances.clone(), ask.caller.clone());
    let recorded = match asked.history {
        Some(_) => Vec::new(),
        None => instances.history(&caller, pool).await?,
    };
    let run = move || {
        // With the work, not with the request: who gives up does not make room for more of it.
        let _at_work = at_work;
        instances.simulate(&caller, pool, asked, recorded)
    };
    let simulated = tokio::task::spawn_blocking(run).await.map_err(|error| {
        tracing::error!(%error, "a simulation could not be made");
        internal()
    })??;
    json(StatusCode::OK, &convert::instance::simulated(pool, &simulated))
}

pub(super) async fn resume(ask: &Ask) -> Answer {
    let cluster = ask.query()?.text("cluster").map(str::to_owned);
    let reference = ask.name("nodepool_id").unwrap_or_default();
    let target = Target { kind: Kind::NodePool, cluster: cluster.as_deref(), reference };
    let pool = named_pool(ask)?;
    let mut members = Members::new("", ask.object()?);
    let why = reason(&mut members);
    let rollback = members.flag("rollback");
    members.finish(()).map_err(Fault::fields)?;
    let control = &ask.server.control;
    if rollback {
        let spec = Some(control.instances.good_spec(&ask.caller, pool)?);
        let patch = Patch { spec, labels: None, strategy: Strategy::Replace };
        control.resources.patch(&ask.caller, target, &patch, Write::default()).await?;
    }
    let resumed = control.instances.resume(&ask.caller, pool, &why).await?;
    let released = resumed || rollback;
    json(StatusCode::OK, &Released { released })
}

/// The node pool in the path, of the cluster in the query.
pub(super) fn named_pool(ask: &Ask) -> Result<ResourceId, Fault> {
    let query = ask.query()?;
    pool(ask, query.text("cluster"), ask.name("nodepool_id").unwrap_or_default())
}

fn pool(ask: &Ask, cluster: Option<&str>, reference: &str) -> Result<ResourceId, Fault> {
    let target = Target { kind: Kind::NodePool, cluster, reference };
    Ok(ask.server.control.resources.get(&ask.caller, target)?.value.id)
}

/// A body that only says why.
pub(super) fn why(ask: &Ask) -> Result<String, Fault> {
    ask.query()?;
    let mut members = Members::new("", ask.object()?);
    let reason = reason(&mut members);
    members.finish(reason).map_err(Fault::fields)
}

fn reason(members: &mut Members) -> String {
    members.take("reason", |value, field| {
        member::text(value.as_ref(), field).and_then(member::reason).map(str::to_owned)
    })
}

/// A text that must be there, and not empty.
fn word(members: &mut Members, name: &'static str) -> String {
    members.take(name, |value, field| match member::text(value.as_ref(), field)? {
        "" => {
            let message = format!("{field} must not be empty");
            Err(FieldError::new(field, Constraint::MinLength, message))
        }
        text => Ok(text.to_owned()),
    })
}

fn filter(query: &Query) -> Result<Filter<Instance>, Fault> {
    let mut filter = search(query)?;
    for name in ["state", "pool", "provider", "region", "zone", "node_id"] {
        if let Some(value) = query.text(name) {
            filter = filter.and(Filter::equals(name, value));
        }
    }
    Ok(filter)
}

fn order(query: &Query) -> Result<Order<Instance>, Fault> {
    let keys: Vec<&str> = query.all("order").collect();
    let refuse = |error: SearchError| {
        Fault::field(FieldError::new("order", Constraint::Enum, error.message))
    };
    Order::parse(&keys.join(",")).map_err(refuse)
}
