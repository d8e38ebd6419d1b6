//! The simulated cloud's own console: how people and tests look at it, break it and mend it.
//!
//! Not part of the product's API: it stands for the web pages of a real provider.

use super::{
    Fault, Item, Latencies, Latency, Made, Metric, NewFault, Place, Quota, SimulatedCloud,
};
use crate::simulated::permission::Permissions;
use crate::simulated::world::World;
use argosy_core::catalog::{Catalog, MachineType, ProviderCatalog};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::machine::MachineState;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use http::{StatusCode, header};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The routes, relative to where they are mounted. They answer anybody: who may ask is decided in
/// front of them.
pub fn router(cloud: SimulatedCloud) -> Router {
    Router::new()
        .route("/", get(overview))
        .route("/inventory", get(inventory))
        .route("/machines", get(machines))
        .route("/machines/{name}/inject", post(break_gpu))
        .route("/zones/{domain}", put(create_zone).delete(delete_zone))
        .route("/quotas/{provider}/{region}/{resource}", put(set_quota))
        .route("/permissions/{provider}/denied/{permission}", put(deny).delete(grant))
        .route("/denied-labels/{label}", put(deny_label).delete(grant_label))
        .route("/faults", post(inject))
        .route("/faults/{id}", delete(clear))
        .route("/latency", put(set_latency))
        .fallback(|| async { Problem::not_found("There is no such page of the simulated cloud.") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "This page does not take that method.")
        })
        .with_state(cloud)
}

/// The whole state: what `GET /` answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Overview {
    /// By the name in the catalog.
    pub providers: BTreeMap<String, ProviderState>,
    /// The domains that have a zone.
    pub zones: BTreeSet<String>,
    /// Labels (`team:platform`) whose clusters may not be touched.
    pub denied_labels: BTreeSet<String>,
    /// How long everything takes.
    pub latency: Latencies,
    /// The faults in place.
    pub faults: Vec<Fault>,
    /// What exists.
    pub inventory: InventoryState,
}

/// One provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProviderState {
    /// The name as people write it.
    pub display: String,
    /// By type.
    pub machine_types: BTreeMap<String, MachineType>,
    /// What the service account can be denied.
    pub permissions: Vec<String>,
    /// What it is denied.
    pub denied_permissions: BTreeSet<String>,
    /// By region.
    pub quotas: BTreeMap<String, BTreeMap<String, QuotaState>>,
}

/// One quota, and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaState {
    /// The most that can be used.
    pub limit: u64,
    /// What is used, by us and by others.
    pub used: u64,
}

/// What exists, by the id of the cluster or node pool it was made for.
pub type InventoryState = BTreeMap<ResourceId, Vec<ItemState>>;

/// One item and how it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemState {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// How it is.
    pub state: Stage,
}

/// How an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Being made.
    Provisioning,
    /// There.
    Running,
    /// Being removed.
    Terminating,
}

/// One machine and how it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineView {
    /// The machine.
    #[serde(flatten)]
    pub machine: Made,
    /// How the provider shows it.
    pub state: MachineState,
    /// Whether its agent runs.
    pub up: bool,
}

/// What `PUT latency` takes: what is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyChange {
    /// Checking that a resource can be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Latency>,
    /// Creating a DNS record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Latency>,
    /// Creating a network or a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure: Option<Latency>,
    /// Creating a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Latency>,
    /// Removing anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Latency>,
}

/// The most zones, denied labels or faults: each is looked through at every operation, and kept in
/// one file.
const ENTRIES_MAX: usize = 1_000;

impl SimulatedCloud {
    /// The whole state.
    pub fn overview(&self) -> Overview {
        let (now, catalog) = (self.inner.clock.now(), &self.inner.catalog);
        let mut world = self.world();
        world.inventory.settle_all(now);
        world.settle(now);
        let providers = catalog
            .providers
            .iter()
            .map(|(name, provider)| (name.clone(), provider_state(&world, name, provider)));
        Overview {
            providers: providers.collect(),
            zones: world.zones.clone(),
            denied_labels: world.denied_labels.clone(),
            latency: world.latencies,
            faults: world.faults.clone(),
            inventory: inventory_state(&world, now),
        }
    }

    /// What exists.
    pub fn inventory(&self) -> InventoryState {
        let now = self.inner.clock.now();
        let mut world = self.world();
        world.inventory.settle_all(now);
        inventory_state(&world, now)
    }
}

impl SimulatedCloud {
    /// The machines, and for an hour those that are gone.
    pub fn machines(&self) -> Vec<MachineView> {
        let now = self.inner.clock.now();
        let mut world = self.world();
        world.settle(now);
        let view = |made: &Made| MachineView {
            machine: made.clone(),
            state: made.state(now),
            up: made.is_up(now),
        };
        world.fleet.iter().map(view).collect()
    }
}

fn provider_state(world: &World, name: &str, provider: &ProviderCatalog) -> ProviderState {
    let quotas = |region: &String| {
        let place = Place { provider: name.to_owned(), region: region.clone() };
        let used = world.used(&place);
        let state = |metric: Metric| {
            let Quota { limit, used_by_others } = world.quota(&place, metric);
            let used = metric.used(&used).saturating_add(used_by_others);
            (metric.to_string(), QuotaState { limit, used })
        };
        (region.clone(), Metric::ALL.into_iter().map(state).collect())
    };
    ProviderState {
        display: provider.display.clone(),
        machine_types: provider.machine_types.clone(),
        permissions: Permissions::of(name).all().map(str::to_owned).to_vec(),
        denied_permissions: world.denied_permissions.get(name).cloned().unwrap_or_default(),
        quotas: provider.regions.iter().map(quotas).collect(),
    }
}

fn inventory_state(world: &World, now: Timestamp) -> InventoryState {
    let state = |item: &Item| {
        let state = if item.gone_at.is_some() {
            Stage::Terminating
        } else if item.ready_at.is_some_and(|ready_at| ready_at <= now) {
            Stage::Running
        } else {
            Stage::Provisioning
        };
        ItemState { item: item.clone(), state }
    };
    let items = world.inventory.iter();
    items.map(|(owner, items)| (*owner, items.iter().map(state).collect())).collect()
}

type Answer<T> = Result<T, Problem>;
type Cloud = State<SimulatedCloud>;

async fn overview(State(cloud): Cloud) -> Json<Overview> {
    Json(cloud.overview())
}

async fn inventory(State(cloud): Cloud) -> Json<InventoryState> {
    Json(cloud.inventory())
}

async fn machines(State(cloud): Cloud) -> Json<Vec<MachineView>> {
    Json(cloud.machines())
}

/// What is to happen to a GPU: the body of `POST machines/{name}/inject`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakage {
    /// In the words of `argosy-agent inject`: `xid:79 gpu:3`.
    pub what: String,
}

async fn break_gpu(
    State(cloud): Cloud,
    Path(name): Path<String>,
    Body(Breakage { what }): Body<Breakage>,
) -> Answer<StatusCode> {
    match cloud.break_gpu(&name, &what).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(why) => Err(Problem::field(FieldError::new("what", Constraint::Format, why))),
    }
}

async fn create_zone(State(cloud): Cloud, Path(domain): Path<String>) -> Answer<StatusCode> {
    check_domain(&domain)?;
    check_room("zones", cloud.world().zones.len())?;
    Ok(made(cloud.create_zone(&domain).await?))
}

async fn delete_zone(State(cloud): Cloud, Path(domain): Path<String>) -> Answer<StatusCode> {
    gone(cloud.delete_zone(&domain).await?, format!("There is no zone {}.", short(&domain)))
}

async fn set_quota(
    State(cloud): Cloud,
    Path((provider, region, resource)): Path<(String, String, String)>,
    Body(quota): Body<Quota>,
) -> Answer<Json<Quota>> {
    let regions = &find_provider(&cloud.inner.catalog, &provider)?.regions;
    if !regions.contains(&region) {
        return Err(unknown("region", &region, regions.iter().map(String::as_str)));
    }
    let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.as_str() == resource) else {
        return Err(unknown("resource", &resource, Metric::ALL.map(Metric::as_str)));
    };
    cloud.set_quota(Place { provider, region }, metric, quota).await?;
    Ok(Json(quota))
}

async fn deny(
    State(cloud): Cloud,
    Path((provider, permission)): Path<(String, String)>,
) -> Answer<StatusCode> {
    check_permission(&cloud, &provider, &permission)?;
    Ok(made(cloud.deny(&provider, &permission).await?))
}

async fn grant(
    State(cloud): Cloud,
    Path((provider, permission)): Path<(String, String)>,
) -> Answer<StatusCode> {
    check_permission(&cloud, &provider, &permission)?;
    gone(cloud.grant(&provider, &permission).await?, format!("{permission} is not denied."))
}

async fn deny_label(State(cloud): Cloud, Path(label): Path<String>) -> Answer<StatusCode> {
    check_label(&label)?;
    check_room("denied labels", cloud.world().denied_labels.len())?;
    Ok(made(cloud.deny_label(&label).await?))
}

async fn grant_label(State(cloud): Cloud, Path(label): Path<String>) -> Answer<StatusCode> {
    gone(cloud.grant_label(&label).await?, format!("Label {} is not denied.", short(&label)))
}

async fn inject(
    State(cloud): Cloud,
    Body(fault): Body<NewFault>,
) -> Answer<(StatusCode, Json<Fault>)> {
    if let Some((field, message)) = fault.complaint() {
        return Err(Problem::field(FieldError::new(field, Constraint::Format, message)));
    }
    check_room("faults", cloud.world().faults.len())?;
    Ok((StatusCode::CREATED, Json(cloud.inject(fault).await?)))
}

async fn clear(State(cloud): Cloud, Path(id): Path<String>) -> Answer<StatusCode> {
    let cleared = match id.parse() {
        Ok(id) => cloud.clear(id).await?,
        Err(_) => false,
    };
    gone(cleared, format!("There is no fault {}.", short(&id)))
}

async fn set_latency(
    State(cloud): Cloud,
    Body(change): Body<LatencyChange>,
) -> Answer<Json<Latencies>> {
    let now = cloud.world().latencies;
    let parts = [
        ("validation", change.validation, now.validation),
        ("dns", change.dns, now.dns),
        ("infrastructure", change.infrastructure, now.infrastructure),
        ("machine", change.machine, now.machine),
        ("removal", change.removal, now.removal),
    ];
    for (field, latency, _) in parts {
        let Some(Latency { min_ms, max_ms }) = latency else { continue };
        if max_ms < min_ms || Latency::MAX_MS < max_ms {
            let max = Latency::MAX_MS;
            let message =
                format!("{field} must have min_ms <= max_ms <= {max}, not {min_ms} and {max_ms}");
            return Err(Problem::field(FieldError::new(field, Constraint::Max, message)));
        }
    }
    let [validation, dns, infrastructure, machine, removal] =
        parts.map(|(_, change, now)| change.unwrap_or(now));
    let latencies = Latencies { validation, dns, infrastructure, machine, removal };
    cloud.set_latencies(latencies).await?;
    Ok(Json(latencies))
}

fn made(new: bool) -> StatusCode {
    if new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }
}

fn gone(was_there: bool, otherwise: String) -> Answer<StatusCode> {
    if was_there { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found(otherwise)) }
}

fn find_provider<'a>(catalog: &'a Catalog, name: &str) -> Answer<&'a ProviderCatalog> {
    let known = &catalog.providers;
    let found = known.get(name);
    found.ok_or_else(|| unknown("provider", name, known.keys().map(String::as_str)))
}

fn check_permission(cloud: &SimulatedCloud, provider: &str, permission: &str) -> Answer<()> {
    find_provider(&cloud.inner.catalog, provider)?;
    let known = Permissions::of(provider).all();
    if known.contains(&permission) {
        return Ok(());
    }
    Err(unknown("permission", permission, known))
}

fn check_domain(domain: &str) -> Answer<()> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if domain.len() <= 253 && domain.split('.').all(label) {
        return Ok(());
    }
    let message = "domain must be dot-separated labels of letters, digits and hyphens, like \
                   example.com, of at most 253 characters";
    Err(Problem::field(FieldError::new("domain", Constraint::Pattern, message)))
}

fn check_label(label: &str) -> Answer<()> {
    let whole = label
        .split_once(':')
        .is_some_and(|(key, value)| !key.is_empty() && !value.is_empty() && label.len() <= 381);
    if whole {
        return Ok(());
    }
    let message = "label must have the form key:value, like team:platform";
    Err(Problem::field(FieldError::new("label", Constraint::Pattern, message)))
}

fn check_room(what: &str, count: usize) -> Answer<()> {
    if count < ENTRIES_MAX {
        return Ok(());
    }
    let message = format!("There are already {ENTRIES_MAX} {what}; remove one first.");
    Err(Problem::new(StatusCode::CONFLICT, message))
}

fn unknown<'a>(field: &str, value: &str, supported: impl IntoIterator<Item = &'a str>) -> Problem {
    let supported: Vec<&str> = supported.into_iter().collect();
    let message =
        format!("Unknown {field} '{}'. Supported: {}", short(value), supported.join(", "));
    Problem::field(FieldError::new(field, Constraint::Enum, message))
}

/// Somebody's text, cut and escaped so that it can stand in a sentence.
pub(super) fn short(text: &str) -> String {
    text.chars().take(63).flat_map(char::escape_debug).collect()
}

/// A JSON body, or a problem that names the field.
struct Body<T>(T);

impl<S: Send + Sync, T> FromRequest<S> for Body<T>
where
    Json<T>: FromRequest<S, Rejection = JsonRejection>,
{
    type Rejection = Problem;

    async fn from_request(request: axum::extract::Request, state: &S) -> Answer<Self> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            // 422 is axum's word for JSON of the wrong shape; here every bad body is a 400.
            Err(rejection) if rejection.status() == StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Problem::new(StatusCode::BAD_REQUEST, rejection.body_text()))
            }
            Err(rejection) => Err(Problem::new(rejection.status(), rejection.body_text())),
        }
    }
}

/// An RFC 9457 answer.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    detail: String,
    errors: Vec<FieldError>,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), errors: Vec::new() }
    }

    fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    fn field(error: FieldError) -> Self {
        Self { status: StatusCode::BAD_REQUEST, detail: error.message.clone(), errors: vec![error] }
    }
}

impl From<io::Error> for Problem {
    fn from(cause: io::Error) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("The change is made but could not be saved: {cause}"),
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, detail, errors } = self;
        let mut body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or_default(),
            "status": status.as_u16(),
            "detail": detail,
        });
        if let Some(members) = body.as_object_mut().filter(|_| !errors.is_empty()) {
            members.insert("errors".to_owned(), json!(errors));
        }
        (status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string())
            .into_response()
    }
}

#[cfg(test)]
mod tests;
