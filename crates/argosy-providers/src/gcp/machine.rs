//! Machines: made once, found again, listed whole, returned.

use super::api::{Followed, whole};
use super::wire::{
    Aggregated, INSTANCE_FIELDS, Instance, Operation, Operations, Serial, ZoneInstances, last,
};
use super::{DISPLAY, Gcp};
use crate::rest::{Effect, Failed, plain};
use argosy_core::id::ResourceId;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{
    Machine, MachineId, MachineState, Notice, NoticeKind, Order, Purchase, Tags, Trouble,
};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The labels that tell our machines from everybody else's.
const INSTALLATION: &str = "argosy-installation";
const INSTANCE: &str = "argosy-instance";
const POOL: &str = "argosy-pool";
const TOKEN: &str = "argosy-token";

/// How much of a console is asked for: twice what is kept. Bytes.
const CONSOLE_LEN: &str = "-32768";

impl Gcp {
    pub(super) async fn make(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        let order = &purchase.order;
        let zone = if order.zone.is_empty() {
            let zones = self.api.zones_with(&order.region, &order.machine_type).await?;
            // Another call may have chosen otherwise: zones come and go.
            if let Some(found) = self.look_in(purchase, &zones).await? {
                return Ok(found);
            }
            choose(&zones, purchase.token)
                .ok_or_else(|| Trouble::Capacity {
                    code: "NO_ZONE".to_owned(),
                    message: format!("no zone of {} has {}", order.region, order.machine_type),
                })?
                .to_owned()
        } else {
            order.zone.clone()
        };
        let token = purchase.token.to_string();
        let url = self.api.compute(&["zones", &zone, "instances"], &[("requestId", &token)]);
        let body = self.body(purchase, &zone);
        match self.api.call(Method::POST, url, Some(&body), Effect::Change).await {
            Ok(answer) => {
                let begun = self.api.rest.parse(answer, Effect::Change)?;
                self.await_made(purchase, &zone, begun).await
            }
            // Our own, from a call whose answer was lost, if it carries our token.
            Err(Failed::Said(said)) if said.status == StatusCode::CONFLICT => {
                self.already(purchase, &zone).await
            }
            // What is not there is something that the machine was to be made from.
            Err(Failed::Said(said)) if said.status == StatusCode::NOT_FOUND => {
                let message = self.api.explain(Failed::Said(said), Effect::Change).to_string();
                let field = missing_field(&message).to_owned();
                Err(self.nearer(order, Trouble::Invalid { field, message }).await)
            }
            Err(failed) => {
                let trouble = self.api.explain(failed, Effect::Change);
                Err(self.nearer(order, trouble).await)
            }
        }
    }

    /// Waits a little for what was begun: a zone without machines says so within seconds.
    async fn await_made(
        &self,
        purchase: &Purchase,
        zone: &str,
        begun: Operation,
    ) -> Result<Machine, Trouble> {
        let name = plain(&begun.name);
        match self.api.follow(begun, self.settings.pace.create_max).await {
            Followed::Done => match self.show(zone, purchase.instance.as_str()).await {
                Ok(Some(shown)) => Ok(shown),
                // The answer to a token that was used before, for a machine that has gone since.
                Ok(None) => Err(Trouble::Unsure(format!(
                    "{} was made in {zone}, and is no longer there",
                    purchase.instance
                ))),
                // It is there, whatever came between.
                Err(_) => Ok(self.promised(purchase, zone)),
            },
            Followed::Running => Ok(self.promised(purchase, zone)),
            Followed::Failed(trouble) => Err(self.nearer(&purchase.order, trouble).await),
            Followed::Lost(trouble) => Err(Trouble::Unsure(format!(
                "{DISPLAY} began to make it in the operation {name}, which cannot be followed: {trouble}"
            ))),
        }
    }

    /// There is a machine of this name: ours, or in the way.
    async fn already(&self, purchase: &Purchase, zone: &str) -> Result<Machine, Trouble> {
        let name = purchase.instance.as_str();
        match self.show(zone, name).await {
            Ok(Some(shown)) if shown.tags.token == Some(purchase.token) => Ok(shown),
            Ok(Some(_)) => Err(Trouble::Invalid {
                field: "name".to_owned(),
                message: format!("there is a machine {name} in {zone} already, and it is not ours"),
            }),
            Ok(None) => Err(Trouble::Unsure(format!("{name} was in {zone}, and is not shown"))),
            Err(trouble) => Err(Trouble::Unsure(format!(
                "there is a machine {name} in {zone}; whether it is ours could not be seen: {trouble}"
            ))),
        }
    }

    /// A refusal with what could be meant instead, or with the numbers.
    async fn nearer(&self, order: &Order, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Invalid { field, message } => {
                let hint = match field.as_str() {
                    "machineType" => self.api.nearest_type(order).await,
                    "zones" => self.api.nearest_zone(order).await,
                    _ => None,
                };
                let message = match hint {
                    Some(hint) => format!("{message} {hint}"),
                    None => message,
                };
                Trouble::Invalid { field, message }
            }
            Trouble::Quota { .. } => match self.api.room(order, 1).await {
                Err(numbers @ Trouble::Quota { .. }) => numbers,
                Ok(()) | Err(_) => trouble,
            },
            Trouble::Unsure(_)
            | Trouble::Throttled { .. }
            | Trouble::Capacity { .. }
            | Trouble::Credentials(_)
            | Trouble::Denied { .. }
            | Trouble::NotFound(_)
            | Trouble::Unreachable(_)
            | Trouble::Unable(_) => trouble,
        }
    }

    /// What an insert asks for.
    fn body(&self, purchase: &Purchase, zone: &str) -> Value {
        let settings = &self.settings;
        let Order { region, machine_type, spot, image, .. } = &purchase.order;
        let image = if image.is_empty() { &settings.image } else { image };
        let source_image = if image.contains('/') {
            image.clone()
        } else {
            format!("projects/{}/global/images/{image}", settings.project)
        };
        let labels = labels(&purchase.tags);
        let mut interface = Map::new();
        if !settings.network.is_empty() {
            let network = format!("global/networks/{}", settings.network);
            interface.insert("network".to_owned(), json!(network));
        }
        if !settings.subnetwork.is_empty() {
            let subnetwork = format!("regions/{region}/subnetworks/{}", settings.subnetwork);
            interface.insert("subnetwork".to_owned(), json!(subnetwork));
        }
        if settings.external_ip {
            let access = json!([{ "type": "ONE_TO_ONE_NAT", "name": "External NAT" }]);
            interface.insert("accessConfigs".to_owned(), access);
        }
        let mut body = json!({
            "name": purchase.instance.as_str(),
            "machineType": format!("zones/{zone}/machineTypes/{machine_type}"),
            "labels": labels,
            "disks": [{
                "boot": true,
                "autoDelete": true,
                "initializeParams": {
                    "sourceImage": source_image,
                    "diskSizeGb": settings.disk_gb.to_string(),
                    "diskType": format!("zones/{zone}/diskTypes/{}", settings.disk_type),
                    "labels": labels,
                },
            }],
            "networkInterfaces": [interface],
            "scheduling": scheduling(machine_type, *spot),
            "metadata": { "items": metadata(&settings.user_data.of(purchase)) },
        });
        if let Some(members) = body.as_object_mut() {
            if !settings.service_account.is_empty() {
                let account = json!([{
                    "email": settings.service_account,
                    "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
                }]);
                members.insert("serviceAccounts".to_owned(), account);
            }
            if !settings.network_tags.is_empty() {
                let tags = json!({ "items": settings.network_tags });
                members.insert("tags".to_owned(), tags);
            }
        }
        body
    }

    /// A machine that is on its way, as it was ordered.
    fn promised(&self, purchase: &Purchase, zone: &str) -> Machine {
        let Order { region, machine_type, spot, .. } = &purchase.order;
        let name = purchase.instance.to_string();
        Machine {
            id: self.machine_id(zone, &name),
            name,
            state: MachineState::Starting,
            tags: purchase.tags.clone(),
            region: region.clone(),
            zone: zone.to_owned(),
            machine_type: machine_type.clone(),
            spot: *spot,
            created_at: None,
            internal_ip: String::new(),
            external_ip: String::new(),
            notice: None,
        }
    }

    pub(super) async fn look(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        let Order { region, zone, .. } = &purchase.order;
        let zones = match zone.as_str() {
            "" => self.api.zones_of(region).await?,
            zone => vec![zone.to_owned()],
        };
        if let Some(found) = self.look_in(purchase, &zones).await? {
            return Ok(Some(found));
        }
        for zone in &zones {
            if self.was_deleted(zone, purchase.instance.as_str()).await? {
                let gone = self.promised(purchase, zone);
                return Ok(Some(Machine { state: MachineState::Gone, ..gone }));
            }
        }
        Ok(None)
    }

    /// The machine of a purchase, asked zone by zone: unlike lists, these answers do not lag.
    async fn look_in(
        &self,
        purchase: &Purchase,
        zones: &[String],
    ) -> Result<Option<Machine>, Trouble> {
        for zone in zones {
            let shown = self.show(zone, purchase.instance.as_str()).await?;
            let ours =
                |machine: &Machine| machine.tags.token.is_none_or(|token| token == purchase.token);
            if let Some(found) = shown.filter(ours) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn show(&self, zone: &str, name: &str) -> Result<Option<Machine>, Trouble> {
        let fields = [("fields", INSTANCE_FIELDS)];
        let url = self.api.compute(&["zones", zone, "instances", name], &fields);
        let shown: Option<Instance> = self.api.look(url).await?;
        Ok(shown.map(|shown| self.machine(shown)))
    }

    /// Whether a deletion of this machine is done: then not being shown is proof.
    async fn was_deleted(&self, zone: &str, name: &str) -> Result<bool, Trouble> {
        let project = &self.settings.project;
        let target = format!(
            "https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}/instances/{name}"
        );
        let filter = format!("(operationType=\"delete\") AND (targetLink=\"{target}\")");
        let path = ["zones", zone, "operations"];
        let query = [("filter", filter.as_str()), ("maxResults", "100")];
        let pages: Vec<Operations> = match self.api.pages(&path, &query).await {
            Ok(pages) => pages,
            // It is a help and no more: who may not read operations waits for the listings.
            Err(Trouble::Denied { .. } | Trouble::NotFound(_) | Trouble::Invalid { .. }) => {
                return Ok(false);
            }
            Err(trouble) => return Err(trouble),
        };
        let mut operations = pages.iter().flat_map(|page| &page.items);
        Ok(operations
            .any(|it| it.operation_type == "delete" && it.status == "DONE" && it.error.is_none()))
    }

    pub(super) async fn list_all(&self) -> Result<Vec<Machine>, Trouble> {
        let filter = format!("labels.{INSTALLATION}:*");
        let fields = format!(
            "nextPageToken,unreachables,warning,items/*/warning,items/*/instances({INSTANCE_FIELDS})"
        );
        let query = [
            ("filter", filter.as_str()),
            ("maxResults", "500"),
            ("returnPartialSuccess", "false"),
            ("fields", fields.as_str()),
        ];
        let pages: Vec<Aggregated<ZoneInstances>> =
            self.api.pages(&["aggregated", "instances"], &query).await?;
        let mut machines = Vec::new();
        for page in pages {
            let warnings = page.items.values().filter_map(|zone| zone.warning.as_ref());
            whole(&page.unreachables, warnings.chain(&page.warning))?;
            let shown = page.items.into_values().flat_map(|zone| zone.instances);
            machines.extend(shown.map(|shown| self.machine(shown)));
        }
        Ok(machines)
    }

    pub(super) async fn delete(&self, machine: &MachineId) -> Result<(), Trouble> {
        let (zone, name) = self.place(machine)?;
        // Never the same twice: the answer to an id that was used before would be that of the first
        // call, and a deletion that was only claimed could not be repeated (G6).
        let at = self.clock.now().as_microsecond();
        let request = Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{machine} {at}").as_bytes());
        let request = request.to_string();
        let path = ["zones", zone, "instances", name];
        let url = self.api.compute(&path, &[("requestId", request.as_str())]);
        let begun: Operation = self.api.change(Method::DELETE, url, None).await?;
        self.heard(begun).await
    }

    pub(super) async fn reset(&self, machine: &MachineId) -> Result<(), Trouble> {
        let (zone, name) = self.place(machine)?;
        let url = self.api.compute(&["zones", zone, "instances", name, "reset"], &[]);
        let begun: Operation = self.api.change(Method::POST, url, None).await?;
        self.heard(begun).await
    }

    /// Listens a little whether what was begun is refused.
    async fn heard(&self, begun: Operation) -> Result<(), Trouble> {
        let named = !begun.name.is_empty();
        match self.api.follow(begun, self.settings.pace.delete_max).await {
            Followed::Done | Followed::Running => Ok(()),
            // It was begun; how it goes on is seen by looking at the machine.
            Followed::Lost(_) if named => Ok(()),
            Followed::Failed(trouble) | Followed::Lost(trouble) => Err(trouble),
        }
    }

    pub(super) async fn serial_port(&self, machine: &MachineId) -> Result<String, Trouble> {
        let (zone, name) = self.place(machine)?;
        let path = ["zones", zone, "instances", name, "serialPort"];
        let url = self.api.compute(&path, &[("port", "1"), ("start", CONSOLE_LEN)]);
        let serial: Serial = self.api.get(url).await?;
        Ok(serial.contents)
    }

    fn machine_id(&self, zone: &str, name: &str) -> MachineId {
        let project = &self.settings.project;
        MachineId::new(format!("projects/{project}/zones/{zone}/instances/{name}"))
    }

    /// Where a machine is; one of another project is none of ours.
    fn place<'a>(&self, machine: &'a MachineId) -> Result<(&'a str, &'a str), Trouble> {
        let parts: Vec<&str> = machine.as_str().split('/').collect();
        match parts.as_slice() {
            ["projects", project, "zones", zone, "instances", name]
                if *project == self.settings.project && !zone.is_empty() && !name.is_empty() =>
            {
                Ok((zone, name))
            }
            _ => Err(Trouble::NotFound(format!(
                "{machine} is not a machine of the project {}",
                self.settings.project
            ))),
        }
    }

    fn machine(&self, shown: Instance) -> Machine {
        let zone = last(&shown.zone).to_owned();
        let region = zone.rsplit_once('-').map_or("", |(region, _)| region).to_owned();
        let spot = shown.scheduling.preemptible || shown.scheduling.provisioning_model == "SPOT";
        let state = state(&shown.status);
        let interface = shown.network_interfaces.first();
        let external = interface.and_then(|interface| interface.access_configs.first());
        Machine {
            id: self.machine_id(&zone, &shown.name),
            state,
            tags: tags(&shown.labels),
            region,
            zone,
            machine_type: last(&shown.machine_type).to_owned(),
            spot,
            created_at: shown.creation_timestamp.parse().ok(),
            internal_ip: interface.map(|it| it.network_ip.clone()).unwrap_or_default(),
            external_ip: external.map(|it| it.nat_ip.clone()).unwrap_or_default(),
            notice: notice(&shown, state, spot),
            name: shown.name,
        }
    }
}

/// One of several zones, always the same for a token.
fn choose(zones: &[String], token: Uuid) -> Option<&str> {
    let count = u128::try_from(zones.len()).unwrap_or(1).max(1);
    // The end of a token is random.
    let nth = usize::try_from((token.as_u128() & 0xffff_ffff) % count).unwrap_or(0);
    zones.get(nth).map(String::as_str)
}

/// `TERMINATED` is what Google calls a machine that is off.
fn state(status: &str) -> MachineState {
    match status {
        "PENDING" | "PROVISIONING" | "STAGING" | "REPAIRING" => MachineState::Starting,
        "PENDING_STOP" | "STOPPING" | "SUSPENDING" | "DEPROVISIONING" => MachineState::Stopping,
        "TERMINATED" | "STOPPED" | "SUSPENDED" => MachineState::Stopped,
        // What we do not know exists and costs.
        _ => MachineState::Running,
    }
}

fn notice(shown: &Instance, state: MachineState, spot: bool) -> Option<Notice> {
    if let Some(maintenance) = &shown.resource_status.upcoming_maintenance {
        return Some(Notice {
            kind: NoticeKind::Maintenance,
            at: maintenance.window_start_time.parse().ok(),
            message: plain(&format!("{DISPLAY} announces maintenance: {}", maintenance.kind)),
        });
    }
    let leaves = matches!(state, MachineState::Stopping | MachineState::Stopped);
    (spot && leaves).then(|| Notice {
        kind: NoticeKind::Reclaim,
        at: None,
        message: format!("{DISPLAY} stops a spot machine"),
    })
}

fn scheduling(machine_type: &str, spot: bool) -> Value {
    // A machine with GPUs cannot move to another host.
    let fixed = ["a2-", "a3-", "a4-", "a4x-", "g2-", "g4-"];
    let fixed = fixed.iter().any(|family| machine_type.starts_with(family));
    if spot {
        json!({
            "provisioningModel": "SPOT",
            "instanceTerminationAction": "DELETE",
            "onHostMaintenance": "TERMINATE",
            "automaticRestart": false,
        })
    } else if fixed {
        json!({ "onHostMaintenance": "TERMINATE", "automaticRestart": true })
    } else {
        json!({ "automaticRestart": true })
    }
}

fn metadata(user_data: &str) -> Vec<Value> {
    if user_data.is_empty() {
        return Vec::new();
    }
    let cloud_init = user_data.starts_with("#cloud-config");
    let key = if cloud_init { "user-data" } else { "startup-script" };
    vec![json!({ "key": key, "value": user_data })]
}

fn labels(tags: &Tags) -> BTreeMap<&'static str, String> {
    let labels = [
        (INSTALLATION, tags.installation.map(|id| id.to_string())),
        (INSTANCE, tags.instance.as_ref().map(ToString::to_string)),
        (POOL, tags.pool.map(|id| id.to_string())),
        (TOKEN, tags.token.map(|id| id.to_string())),
    ];
    labels.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn tags(labels: &BTreeMap<String, String>) -> Tags {
    let uuid = |key: &str| labels.get(key).and_then(|text| Uuid::try_parse(text).ok());
    Tags {
        installation: uuid(INSTALLATION),
        instance: labels.get(INSTANCE).and_then(|text| InstanceId::parse(text).ok()),
        pool: uuid(POOL).map(ResourceId::new),
        token: uuid(TOKEN),
    }
}

/// `The resource 'projects/p/zones/z/machineTypes/t' was not found`.
fn missing_field(message: &str) -> &'static str {
    const PARTS: [(&str, &str); 5] = [
        ("/machineTypes/", "machineType"),
        ("/images/", "image"),
        ("/subnetworks/", "subnetwork"),
        ("/networks/", "network"),
        ("/zones/", "zones"),
    ];
    let found = PARTS.iter().find(|(part, _)| message.contains(part));
    found.map_or("zones", |(_, field)| field)
}
