//! Clusters and node pools over HTTP.

use super::fields::{Fields, OF_RESOURCE};
use super::header::{DRY_RUN, REPLAYED, tagged};
use super::list::{Listed, Page, watch};
use super::query::Query;
use super::{Answer, Ask, empty, json};
use crate::convert;
use crate::problem::Fault;
use argosy_api::error;
use argosy_api::route::Scope;
use argosy_control::Stored;
use argosy_control::resource::{Creation, Idempotency, List, Write};
use argosy_control::watch::WatchList;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::resource::{Kind, Resource, Strategy};
use argosy_core::search::{Filter, Order, SearchError};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

pub(super) async fn list(ask: &Ask, scope: Scope) -> Answer {
    ask.check_cluster(scope)?;
    let (kind, query) = (kind(scope), ask.query()?);
    let fields = Fields::parse(query.all("fields"), OF_RESOURCE).map_err(Fault::fields)?;
    let filter = filter(ask, kind, &query)?;
    let order = order(&query)?;
    let cluster = ask.cluster();
    if query.flag("watch") {
        let list = WatchList { kind, cluster, reference: None, filter, after: None };
        return follow(ask, &query, fields, list).await;
    }
    let Page { page, size } = Page::of(&query);
    let found = ask
        .server
        .control
        .resources
        .list(&ask.caller, &List { kind, cluster, filter, order, page, size })?;
    let show = |resource| fields.show(convert::resource::wire(resource, ask.profile));
    let items: Vec<_> = found.items.iter().map(show).collect();
    let shown = Listed {
        kind: format!("{kind}List"),
        page,
        size: items.len(),
        total: found.total,
        revision: found.revision.0,
        cost: None,
        items,
    };
    json(StatusCode::OK, &shown)
}

pub(super) async fn get(ask: &Ask, scope: Scope) -> Answer {
    let target = ask.target(scope);
    let resource = ask.server.control.resources.get(&ask.caller, target)?;
    let query = ask.query()?;
    let fields = Fields::parse(query.all("fields"), OF_RESOURCE).map_err(Fault::fields)?;
    if query.flag("watch") {
        let (kind, cluster, reference) = (target.kind, target.cluster, Some(target.reference));
        let filter = Filter::everything();
        let list = WatchList { kind, cluster, reference, filter, after: None };
        return follow(ask, &query, fields, list).await;
    }
    if ask.has_seen(resource.revision) {
        return tagged(empty(StatusCode::NOT_MODIFIED), resource.revision);
    }
    let shown = fields.show(convert::resource::wire(&resource, ask.profile));
    tagged(json(StatusCode::OK, &shown)?, resource.revision)
}

async fn follow(ask: &Ask, query: &Query, fields: Fields, mut list: WatchList<'_>) -> Answer {
    let after = ask.resume_after(query)?;
    list.after = after;
    let started = ask.server.control.resources.watch(&ask.caller, list)?;
    let profile = ask.profile;
    let show =
        move |resource: &Stored<Resource>| fields.show(convert::resource::wire(resource, profile));
    watch(ask, started, after, Box::new(show)).await
}

pub(super) async fn create(ask: &Ask, scope: Scope) -> Answer {
    let kind = kind(scope);
    if scope == Scope::NodePools {
        return Err(argosy_control::Error::NeedsCluster(kind).into());
    }
    ask.check_cluster(scope)?;
    let query = ask.query()?;
    let new =
        convert::resource::creation(kind, ask.object()?, &ask.server.control.settings.catalog)
            .map_err(Fault::fields)?;
    let creation = Creation {
        kind,
        cluster: ask.cluster(),
        name: new.name,
        spec: new.spec,
        labels: new.labels,
    };
    let write = Write {
        dry_run: query.flag("dry_run"),
        idempotency: idempotency(ask)?,
        ..Write::default()
    };
    let dry_run = write.dry_run;
    let created = ask.server.control.resources.create(&ask.caller, creation, write).await?;
    let mut response = single(ask, StatusCode::CREATED, &created.resource, dry_run)?;
    if created.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if !dry_run {
        let href = convert::resource::href(&created.resource.value);
        response
            .headers_mut()
            .extend(HeaderValue::from_str(&href).ok().map(|href| (LOCATION, href)));
    }
    Ok(response)
}

pub(super) async fn patch(ask: &Ask, scope: Scope) -> Answer {
    let target = ask.target(scope);
    ask.server.control.resources.get(&ask.caller, target)?;
    let query = ask.query()?;
    let strategy = match query.text("strategy") {
        Some("merge") => Strategy::Merge,
        Some("replace") => Strategy::Replace,
        _ => ask.profile.strategy(),
    };
    let patch = convert::resource::patch(ask.object()?, strategy)?;
    let write = write(ask, &query)?;
    let dry_run = write.dry_run;
    let patched = ask.server.control.resources.patch(&ask.caller, target, &patch, write).await?;
    single(ask, StatusCode::OK, &patched, dry_run)
}

pub(super) async fn delete(ask: &Ask, scope: Scope) -> Answer {
    let target = ask.target(scope);
    ask.server.control.resources.get(&ask.caller, target)?;
    let query = ask.query()?;
    let write = write(ask, &query)?;
    let dry_run = write.dry_run;
    let deleted = ask.server.control.resources.delete(&ask.caller, target, write).await?;
    single(ask, StatusCode::ACCEPTED, &deleted, dry_run)
}

pub(super) async fn force_delete(ask: &Ask, scope: Scope) -> Answer {
    let target = ask.target(scope);
    ask.server.control.resources.get(&ask.caller, target)?;
    ask.query()?;
    let reason = convert::resource::force_delete(&ask.object()?).map_err(Fault::field)?;
    ask.server.control.resources.force_delete(&ask.caller, target, &reason).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// How a change or a deletion is to be carried out.
fn write(ask: &Ask, query: &Query) -> Result<Write, Fault> {
    Ok(Write {
        dry_run: query.flag("dry_run"),
        if_match: ask.if_match()?,
        idempotency: None,
        force: query.flag("force"),
        now: query.flag("now"),
        reason: query.text("reason").map(str::to_owned),
    })
}

const fn kind(scope: Scope) -> Kind {
    match scope {
        Scope::Clusters => Kind::Cluster,
        Scope::ClusterNodePools | Scope::NodePools => Kind::NodePool,
    }
}

/// One resource as an answer.
fn single(ask: &Ask, status: StatusCode, resource: &Stored<Resource>, dry_run: bool) -> Answer {
    let response = json(status, &convert::resource::wire(resource, ask.profile))?;
    let mut response = tagged(response, resource.revision)?;
    if dry_run {
        response.headers_mut().insert(DRY_RUN, HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn filter(ask: &Ask, kind: Kind, query: &Query) -> Result<Filter, Fault> {
    let mut filter = Filter::everything();
    if let Some(text) = query.text("search").filter(|text| !text.trim().is_empty()) {
        let search = Filter::parse(text)
            .map_err(|error| Fault::new(&error::BAD_SEARCH, error.to_string()))?;
        filter = filter.and(search);
    }
    for name in ["phase", "status.phase"] {
        if let Some(word) = query.text(name) {
            let word = unquoted(word).unwrap_or(word);
            let phases = ask.profile.phases(word, kind).map_err(|sentence| {
                Fault::field(FieldError::new(name, Constraint::Enum, sentence).with_value(word))
            })?;
            filter = filter.and(Filter::phase_in(&phases));
        }
    }
    if let Some(provider) = query.text("provider") {
        let providers = &ask.server.control.settings.catalog.providers;
        if !providers.contains_key(provider) {
            let known: Vec<&str> = providers.keys().map(String::as_str).collect();
            let sentence = format!(
                "Invalid provider value '{provider}'. Supported values: {}",
                known.join(", ")
            );
            return Err(Fault::field(FieldError::new("provider", Constraint::Enum, sentence)));
        }
        filter = filter.and(Filter::provider(provider));
    }
    if let Some(region) = query.text("region") {
        filter = filter.and(Filter::region(region));
    }
    if let Some(name) = query.text("name") {
        let exact = unquoted(name);
        filter = filter.and(Filter::name(exact.unwrap_or(name), exact.is_some()));
    }
    for labels in query.all("labels") {
        let labels = Filter::labels(labels).map_err(|error| {
            Fault::field(FieldError::new("labels", Constraint::Format, error.message))
        })?;
        filter = filter.and(labels);
    }
    if query.text("kind").is_some_and(|wanted| wanted != kind.as_str()) {
        let sentence = format!("Invalid kind value. Supported values: {kind}");
        return Err(Fault::field(FieldError::new("kind", Constraint::Enum, sentence)));
    }
    Ok(filter)
}

/// Takes one pair of double or single quotes off.
fn unquoted(text: &str) -> Option<&str> {
    ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
}

/// `order=name desc`, or the old `orderBy=name&order=desc`.
fn order(query: &Query) -> Result<Order, Fault> {
    let refuse = |error: SearchError| {
        Fault::field(FieldError::new("order", Constraint::Enum, error.message))
    };
    let keys: Vec<&str> = query.all("order").collect();
    let field = query.text("orderBy");
    let text = match (field, keys.as_slice()) {
        (None, []) => return Ok(Order::default()),
        (_, [direction @ ("asc" | "desc")]) => {
            format!("{} {direction}", field.unwrap_or("created_time"))
        }
        (Some(field), []) => field.to_owned(),
        (None, keys) => keys.join(","),
        (Some(field), keys) => format!("{field},{}", keys.join(",")),
    };
    Order::parse(&text).map_err(refuse)
}

/// What makes a repeated create find the first one's result.
fn idempotency(ask: &Ask) -> Result<Option<Idempotency>, Fault> {
    let Some(key) = ask.idempotency_key()? else { return Ok(None) };
    let mut digest = Sha256::new();
    // The length keeps path and body apart.
    let path = ask.parts.uri.path();
    digest.update(format!("POST {} {path}\n", path.len()));
    digest.update(&ask.body);
    let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(Idempotency { key, digest }))
}

#[cfg(test)]
mod tests;
