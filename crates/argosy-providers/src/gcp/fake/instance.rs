//! Instances, machine types, regions and the operations of zones.

use super::{Asked, Inner, Place, TYPES, Then, Vm, ZONES, add_token, error, link, page};
use crate::standin::Reply;
use http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a project has, where nothing else is said.
const QUOTA: f64 = 1000.0;

impl Inner {
    pub(super) fn insert_instance(&mut self, zone: &str, asked: &Asked) -> Reply {
        if self.lies.deny_create {
            let message = format!(
                "Required 'compute.instances.create' permission for \
                 'projects/{}/zones/{zone}/instances/x'",
                super::PROJECT
            );
            return error(StatusCode::FORBIDDEN, "forbidden", &message);
        }
        if let Err(reply) = checked(zone, asked) {
            return reply;
        }
        let request = asked.query("requestId").to_owned();
        if let Some(known) = self.request_ids.get(&request) {
            return self.show_operation(known);
        }
        if self.lies.lose_create == Some(false) {
            self.lies.lose_create = None;
            return Reply::Never;
        }
        let reply = self.insert(zone, &request, &asked.body);
        if self.lies.lose_create.take().is_some() {
            return Reply::Never;
        }
        if std::mem::take(&mut self.lies.fail_create) {
            let message = "Internal error. Please try again or contact Google Support.";
            return error(StatusCode::INTERNAL_SERVER_ERROR, "backendError", message);
        }
        reply
    }

    fn insert(&mut self, zone: &str, request: &str, body: &Value) -> Reply {
        let name = text(body, "name").to_owned();
        let place: Place = (zone.to_owned(), name.clone());
        if self.vms.contains_key(&place) {
            let message = format!(
                "The resource 'projects/{}/zones/{zone}/instances/{name}' already exists",
                super::PROJECT
            );
            return error(StatusCode::CONFLICT, "alreadyExists", &message);
        }
        let scope = format!("zones/{zone}");
        let target = format!("instances/{name}");
        let failure = self.failure(zone, body);
        let then = match failure {
            Some(_) => Then::Nothing,
            None => {
                self.remember(body);
                let vm = Vm { body: body.clone(), status: "PROVISIONING", born: self.now };
                self.vms.insert(place.clone(), vm);
                Then::Run(place)
            }
        };
        let (operation, reply) = self.begin(&scope, "insert", &target, failure, then);
        self.request_ids.insert(request.to_owned(), operation);
        reply
    }

    fn remember(&mut self, body: &Value) {
        let items = body.pointer("/metadata/items").and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            self.seen_metadata.push(format!("{}={}", text(item, "key"), text(item, "value")));
        }
    }

    /// What the operation will say instead of success.
    fn failure(&self, zone: &str, body: &Value) -> Option<Value> {
        if self.lies.capacity {
            let message = format!(
                "The zone 'projects/{}/zones/{zone}' does not have enough resources available to \
                 fulfill the request.  '(resource type:compute)'.",
                super::PROJECT
            );
            let code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS";
            return Some(json!({ "code": code, "message": message }));
        }
        let region = zone.rsplit_once('-').map_or("", |(region, _)| region);
        let kind = kind_of(body);
        let short = self.usage(region).into_iter().find(|(metric, used)| {
            let limit = self.limit(region, metric);
            limit < used + need(&kind, metric)
        });
        short.map(|(metric, _)| {
            let limit = self.limit(region, &metric);
            let message =
                format!("Quota '{metric}' exceeded.  Limit: {limit:.1} in region {region}.");
            json!({ "code": "QUOTA_EXCEEDED", "message": message })
        })
    }

    fn limit(&self, region: &str, metric: &str) -> f64 {
        if self.lies.quota && metric != "INSTANCES" {
            return 0.0;
        }
        let set = self.quotas.get(&(region.to_owned(), metric.to_owned()));
        set.copied().unwrap_or(QUOTA)
    }

    fn usage(&self, region: &str) -> BTreeMap<String, f64> {
        let metrics = ["A2_CPUS", "CPUS", "INSTANCES", "NVIDIA_A100_GPUS", "NVIDIA_L4_GPUS"];
        let there = |(zone, _): &&Place| zone.rsplit_once('-').is_some_and(|(it, _)| it == region);
        let kinds: Vec<String> = self
            .vms
            .iter()
            .filter(|(place, _)| there(place))
            .map(|(_, vm)| kind_of(&vm.body))
            .collect();
        let used = |metric: &str| kinds.iter().map(|kind| need(kind, metric)).sum();
        metrics.iter().map(|metric| ((*metric).to_owned(), used(metric))).collect()
    }

    pub(super) fn show_region(&self, region: &str) -> Reply {
        let there = |zone: &&&str| zone.rsplit_once('-').is_some_and(|(it, _)| it == region);
        let zones: Vec<String> =
            ZONES.iter().filter(there).map(|zone| link(&format!("zones/{zone}"))).collect();
        if zones.is_empty() {
            let message = format!(
                "The resource 'projects/{}/regions/{region}' was not found",
                super::PROJECT
            );
            return error(StatusCode::NOT_FOUND, "notFound", &message);
        }
        let quota = |(metric, usage): (String, f64)| json!({ "metric": metric, "limit": self.limit(region, &metric), "usage": usage });
        let quotas: Vec<Value> = self.usage(region).into_iter().map(quota).collect();
        let body = json!({ "name": region, "status": "UP", "zones": zones, "quotas": quotas });
        Reply::Json(StatusCode::OK, body)
    }

    pub(super) fn show_instance(&self, zone: &str, name: &str) -> Reply {
        match self.vms.get(&(zone.to_owned(), name.to_owned())) {
            Some(vm) => Reply::Json(StatusCode::OK, vm.shown(zone)),
            None => no_instance(zone, name),
        }
    }

    pub(super) fn delete_instance(&mut self, zone: &str, name: &str, asked: &Asked) -> Reply {
        let request = asked.query("requestId").to_owned();
        if let Some(known) = self.request_ids.get(&request) {
            return self.show_operation(known);
        }
        let place: Place = (zone.to_owned(), name.to_owned());
        let Some(vm) = self.vms.get_mut(&place) else { return no_instance(zone, name) };
        let lies = self.lies.delete_lies;
        let then = if lies { Then::Nothing } else { Then::Remove(place) };
        if !lies {
            vm.status = "STOPPING";
        }
        let (scope, target) = (format!("zones/{zone}"), format!("instances/{name}"));
        let (operation, reply) = self.begin(&scope, "delete", &target, None, then);
        self.request_ids.insert(request, operation);
        if std::mem::take(&mut self.lies.fail_delete) {
            let message = "Internal error. Please try again or contact Google Support.";
            return error(StatusCode::INTERNAL_SERVER_ERROR, "backendError", message);
        }
        reply
    }

    pub(super) fn reset_instance(&mut self, zone: &str, name: &str) -> Reply {
        if !self.vms.contains_key(&(zone.to_owned(), name.to_owned())) {
            return no_instance(zone, name);
        }
        let (scope, target) = (format!("zones/{zone}"), format!("instances/{name}"));
        self.begin(&scope, "reset", &target, None, Then::Nothing).1
    }

    pub(super) fn show_serial_port(&self, zone: &str, name: &str) -> Reply {
        match self.vms.get(&(zone.to_owned(), name.to_owned())) {
            Some(_) => {
                let contents = format!("[    0.000000] Linux version 6.8.0\n{name} login: ");
                let body = json!({
                    "kind": "compute#serialPortOutput", "contents": contents,
                    "start": "0", "next": "48",
                });
                Reply::Json(StatusCode::OK, body)
            }
            None => no_instance(zone, name),
        }
    }

    pub(super) fn list_operations(&self, zone: &str, asked: &Asked) -> Reply {
        let scope = format!("zones/{zone}");
        let filter = asked.query("filter");
        let matches = |shown: &Value| {
            let quoted = |member: &str| format!("{member}=\"{}\"", text(shown, member));
            filter.contains(&quoted("operationType")) && filter.contains(&quoted("targetLink"))
        };
        let shown: Vec<Value> = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.scope == scope)
            .map(|(name, operation)| operation.shown(name))
            .filter(matches)
            .collect();
        let (items, next) = page(&shown, asked);
        let mut body = json!({ "kind": "compute#operationList", "items": items });
        add_token(&mut body, next);
        Reply::Json(StatusCode::OK, body)
    }

    pub(super) fn list_instances(&mut self, asked: &Asked) -> Reply {
        let Some(label) =
            asked.query("filter").strip_prefix("labels.").and_then(|it| it.strip_suffix(":*"))
        else {
            let message = "Invalid value for field 'filter': Invalid list filter expression.";
            return error(StatusCode::BAD_REQUEST, "invalid", message);
        };
        if self.lies.broken_list && !asked.query("pageToken").is_empty() {
            let message = "Internal error";
            return error(StatusCode::INTERNAL_SERVER_ERROR, "backendError", message);
        }
        let tagged = |vm: &Vm| vm.body.pointer(&format!("/labels/{label}")).is_some();
        let seen = |vm: &Vm| vm.born + self.lies.lag <= self.now;
        let fields = !asked.query("fields").is_empty();
        let shown: Vec<(String, Value)> = self
            .vms
            .iter()
            .filter(|(_, vm)| tagged(vm) && seen(vm) && !self.lies.empty_list)
            .enumerate()
            .filter(|(nth, _)| !self.lies.half_list || nth % 2 == 0)
            .map(|(_, ((zone, _), vm))| (zone.clone(), vm.shown(zone)))
            .map(|(zone, shown)| (zone, if fields { without_secrets(shown) } else { shown }))
            .collect();
        let (shown, mut next) = page(&shown, asked);
        if self.lies.broken_list {
            next = Some("page-broken".to_owned());
        }
        let mut body = scoped(&shown, "instances");
        if self.lies.unreachable_zone
            && let Some(zone) = body.pointer_mut("/items/zones~1us-east1-d")
        {
            let message = "Some requests failed. us-east1-d is unreachable.";
            *zone = json!({ "warning": { "code": "UNREACHABLE", "message": message } });
        }
        add_token(&mut body, next);
        Reply::Json(StatusCode::OK, body)
    }

    pub(super) fn list_types(&self, asked: &Asked) -> Reply {
        let only =
            asked.query("filter").strip_prefix("name=\"").and_then(|it| it.strip_suffix('"'));
        let mut shown = Vec::new();
        for zone in ZONES {
            for (name, cpus, gpus, zones) in TYPES {
                let here = zones.is_empty() || zones.contains(&zone);
                if here && only.is_none_or(|only| only == name) {
                    let accelerators = match gpus {
                        0 => json!([]),
                        _ => json!([{
                            "guestAcceleratorType": "nvidia", "guestAcceleratorCount": gpus,
                        }]),
                    };
                    let kind = json!({
                        "name": name, "guestCpus": cpus, "zone": zone,
                        "accelerators": accelerators,
                    });
                    shown.push((zone.to_owned(), kind));
                }
            }
        }
        let (shown, next) = page(&shown, asked);
        let mut body = scoped(&shown, "machineTypes");
        add_token(&mut body, next);
        Reply::Json(StatusCode::OK, body)
    }
}

impl Vm {
    fn shown(&self, zone: &str) -> Value {
        let mut shown = self.body.clone();
        let kind = kind_of(&self.body);
        if let Some(members) = shown.as_object_mut() {
            let own = json!({
                "id": "4611686018427387904",
                "zone": link(&format!("zones/{zone}")),
                "status": self.status,
                "machineType": link(&format!("zones/{zone}/machineTypes/{kind}")),
                "creationTimestamp": "2026-11-15T10:04:05.123-08:00",
                "networkInterfaces": [{
                    "networkIP": "10.128.0.7",
                    "accessConfigs": [{ "natIP": "203.0.113.7" }],
                }],
            });
            members.extend(own.as_object().cloned().unwrap_or_default());
        }
        shown
    }
}

fn without_secrets(mut shown: Value) -> Value {
    if let Some(members) = shown.as_object_mut() {
        members.remove("metadata");
        members.remove("disks");
    }
    shown
}

/// Items by zone; a zone with none says so.
fn scoped(shown: &[(String, Value)], what: &str) -> Value {
    let zone_items = |zone: &str| {
        let here: Vec<&Value> =
            shown.iter().filter(|(it, _)| it == zone).map(|(_, item)| item).collect();
        if here.is_empty() {
            let message = format!("There are no results for scope 'zones/{zone}' on this page.");
            json!({ "warning": { "code": "NO_RESULTS_ON_PAGE", "message": message } })
        } else {
            json!({ what: here })
        }
    };
    let items: BTreeMap<String, Value> =
        ZONES.iter().map(|zone| (format!("zones/{zone}"), zone_items(zone))).collect();
    json!({ "kind": "aggregatedList", "items": items })
}

/// What Google checks before it begins.
fn checked(zone: &str, asked: &Asked) -> Result<(), Reply> {
    let invalid = |message: String| Err(error(StatusCode::BAD_REQUEST, "invalid", &message));
    let body = &asked.body;
    let name = text(body, "name");
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let named = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 63
        && name.bytes().all(letters)
        && !name.ends_with('-');
    if !named {
        return invalid(format!("Invalid value for field 'resource.name': '{name}'."));
    }
    let id = asked.query("requestId");
    if uuid::Uuid::try_parse(id).is_err() {
        return invalid(format!("Invalid value for field 'requestId': '{id}'."));
    }
    let labels = body.get("labels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        let value = value.as_str().unwrap_or("\u{1}");
        let fits = |byte: u8| letters(byte) || byte == b'_';
        if 63 < value.len() || !value.bytes().all(fits) || !key.bytes().all(fits) {
            return invalid(format!("Invalid value for field 'resource.labels': '{key}'."));
        }
    }
    let kind = kind_of(body);
    let path = format!("zones/{zone}/machineTypes/{kind}");
    let sold = TYPES
        .iter()
        .any(|(it, _, _, zones)| *it == kind && (zones.is_empty() || zones.contains(&zone)));
    if !sold || text(body, "machineType") != path {
        let link = link(&path);
        return invalid(format!(
            "Invalid value for field 'resource.machineType': '{link}'. The referenced resource \
             does not exist."
        ));
    }
    let image = body.pointer("/disks/0/initializeParams/sourceImage").and_then(Value::as_str);
    let image = image.unwrap_or_default();
    if !image.contains("/global/images/") || image.contains("nowhere") {
        let message = format!("The resource '{image}' was not found");
        return Err(error(StatusCode::NOT_FOUND, "notFound", &message));
    }
    let interfaces = body.get("networkInterfaces").and_then(Value::as_array);
    if interfaces.is_none_or(Vec::is_empty) {
        return invalid("Invalid value for field 'resource.networkInterfaces': ''.".to_owned());
    }
    let secret = body.pointer("/metadata/items/0/value").and_then(Value::as_str);
    if let Some(value) = secret.filter(|value| value.contains("too long for you")) {
        return invalid(format!(
            "Invalid value for field 'resource.metadata.items[0].value': '{value}'. Too long."
        ));
    }
    Ok(())
}

fn kind_of(body: &Value) -> String {
    text(body, "machineType").rsplit('/').next().unwrap_or_default().to_owned()
}

/// How much of a metric a machine type uses.
fn need(kind: &str, metric: &str) -> f64 {
    let found = TYPES.iter().find(|(name, ..)| *name == kind);
    let (cpus, gpus) = found.map_or((0, 0), |(_, cpus, gpus, _)| (*cpus, *gpus));
    let counts = match (metric, kind.split('-').next().unwrap_or_default()) {
        ("INSTANCES", _) => 1,
        ("A2_CPUS", "a2") | ("CPUS", "n1") => cpus,
        ("NVIDIA_A100_GPUS", "a2") | ("NVIDIA_L4_GPUS", "g2") => gpus,
        _ => 0,
    };
    f64::from(counts)
}

fn no_instance(zone: &str, name: &str) -> Reply {
    let message = format!(
        "The resource 'projects/{}/zones/{zone}/instances/{name}' was not found",
        super::PROJECT
    );
    error(StatusCode::NOT_FOUND, "notFound", &message)
}

fn text<'a>(body: &'a Value, member: &str) -> &'a str {
    body.get(member).and_then(Value::as_str).unwrap_or_default()
}
