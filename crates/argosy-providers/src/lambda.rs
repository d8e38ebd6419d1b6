//! Lambda's cloud: GPU machines by the hour.
//!
//! What a newcomer gets wrong: Lambda has no token that makes a repeated launch harmless. What keeps us from
//! buying twice is the unique name, a look before each launch, and that whatever may have happened is
//! `Unsure` (G3).

#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod trouble;
mod wire;

use crate::rest::{Bucket, Call, Effect, Failed, Rest, TOTAL_MAX, at, check_url};
use crate::user_data::UserData;
use crate::words;
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::gate::Doomed;
use argosy_core::id::ResourceId;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Notice, NoticeKind, Offer, Order, Purchase, Tags,
    Trouble,
};
use argosy_core::nearest::nearest;
use argosy_core::resource::Kind;
use async_trait::async_trait;
use http::{HeaderValue, Method};
use jiff::SignedDuration;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::Mutex;
use uuid::Uuid;
use wire::{Data, Instance, Launched, Offered, Restarted, Terminated};

pub use crate::rest::{Credential, SettingsError};

/// What the provider is called in sentences.
const DISPLAY: &str = "Lambda";

/// How machines are bought with one account.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The API key.
    pub api_key: Credential,
    /// The SSH key that machines accept, by its name in the account: Lambda wants one.
    pub ssh_key: String,
    /// File systems to attach, by name.
    pub file_systems: Vec<String>,
    /// The image family of machines whose order names no image; empty: Lambda's own.
    pub image_family: String,
    /// What machines are told when they boot.
    pub user_data: UserData,
    /// Where Lambda is.
    pub endpoint: String,
    /// How fast we may go.
    pub pace: Pace,
}

/// How fast we may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// One call, from the first byte to the last.
    pub call_max: Duration,
    /// Calls a second: Lambda allows one.
    pub calls_per_s: f64,
    /// Between two launches: Lambda wants twelve seconds.
    pub launch_every: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let launch_every = Duration::from_secs(12);
        Self { call_max: TOTAL_MAX, calls_per_s: 1.0, launch_every }
    }
}

impl Settings {
    /// An account with everything else as is usual.
    pub fn new(api_key: Credential, ssh_key: &str) -> Self {
        Self {
            api_key,
            ssh_key: ssh_key.to_owned(),
            file_systems: Vec::new(),
            image_family: String::new(),
            user_data: UserData::default(),
            endpoint: "https://cloud.lambda.ai/api/v1".to_owned(),
            pace: Pace::default(),
        }
    }
}

/// Lambda with one account.
#[derive(Debug)]
pub struct Lambda {
    rest: Rest,
    base: Url,
    bearer: HeaderValue,
    settings: Settings,
    launches: Bucket,
    /// Held from the look before a launch to its answer: two that overlapped would both find nothing.
    /// Inside is what was launched last: listings may not show it yet.
    launching: Mutex<VecDeque<(Uuid, Machine)>>,
}

/// How many launches are remembered: more than can be made while a listing lags.
const LAUNCHED_MAX: usize = 64;

/// How long a launch may stand behind others: as long as behind the throttle.
const QUEUE_MAX: Duration = Duration::from_secs(15);

/// The keys of our tags.
const INSTALLATION: &str = "argosy-installation";
const INSTANCE: &str = "argosy-instance";
const POOL: &str = "argosy-pool";
const TOKEN: &str = "argosy-token";

/// The longest boot instructions that Lambda takes. Bytes.
const USER_DATA_LEN_MAX: usize = 1024 * 1024;

/// The most machine types that an error names.
const NAMED_MAX: usize = 12;

impl Lambda {
    /// A client for one account.
    ///
    /// # Errors
    /// What is wrong with the settings. Nothing is sent.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        let base = check_url("endpoint", &settings.endpoint)?;
        let bearer = settings.api_key.bearer().filter(|_| !settings.api_key.expose().is_empty());
        let bearer =
            bearer.ok_or_else(|| SettingsError::new("api_key", "is empty or not a key"))?;
        if settings.ssh_key.is_empty() {
            let problem = "must name an SSH key of the account: Lambda wants one";
            return Err(SettingsError::new("ssh_key", problem));
        }
        let Pace { call_max, calls_per_s, launch_every } = settings.pace;
        let rest = Rest::new(DISPLAY, &base, call_max, Bucket::new(calls_per_s, 2), clock)?;
        let launches_per_s = 1.0 / launch_every.as_secs_f64().max(0.001);
        let launches = Bucket::new(launches_per_s, 1);
        Ok(Self { rest, base, bearer, settings, launches, launching: Mutex::default() })
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Trouble> {
        let call = Call::new(Method::GET, at(&self.base, path, &[]), Effect::Look);
        self.send(call).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &Value,
        narrow: Option<&Bucket>,
    ) -> Result<T, Trouble> {
        let url = at(&self.base, path, &[]);
        let mut call = Call::new(Method::POST, url, Effect::Change).json(Some(body));
        call.narrow = narrow;
        self.send(call).await
    }

    async fn send<T: DeserializeOwned>(&self, mut call: Call<'_>) -> Result<T, Trouble> {
        call.authorization = Some(self.bearer.clone());
        let answer = self.rest.call(&call).await.map_err(|failed| match failed {
            Failed::Lost(trouble) | Failed::Garbled(trouble) => trouble,
            Failed::Said(said) => trouble::said(&self.rest, &said, call.effect),
        })?;
        let Data { data } = self.rest.parse(answer, call.effect)?;
        self.rest.parse(data, call.effect)
    }

    async fn instances(&self) -> Result<Vec<Instance>, Trouble> {
        self.get(&["instances"]).await
    }

    async fn types(&self) -> Result<Vec<Offered>, Trouble> {
        let types: BTreeMap<String, Offered> = self.get(&["instance-types"]).await?;
        Ok(types.into_values().collect())
    }

    fn body(&self, purchase: &Purchase) -> Result<Value, Trouble> {
        let Order { region, machine_type, image, .. } = &purchase.order;
        let user_data = self.settings.user_data.of(purchase);
        if USER_DATA_LEN_MAX < user_data.len() {
            let message = "what machines are told at boot is longer than Lambda takes".to_owned();
            return Err(Trouble::Invalid { field: "userData".to_owned(), message });
        }
        let mut body = json!({
            "region_name": region,
            "instance_type_name": machine_type,
            "ssh_key_names": [self.settings.ssh_key],
            "file_system_names": self.settings.file_systems,
            "name": purchase.instance.as_str(),
            "hostname": purchase.instance.as_str(),
            "tags": written(&purchase.tags),
        });
        let image = if image.is_empty() {
            (!self.settings.image_family.is_empty())
                .then(|| json!({ "family": self.settings.image_family }))
        } else {
            Some(json!({ "id": image }))
        };
        if let Some(members) = body.as_object_mut() {
            members.extend(image.map(|image| ("image".to_owned(), image)));
            if !user_data.is_empty() {
                members.insert("user_data".to_owned(), json!(user_data));
            }
        }
        Ok(body)
    }

    /// A refusal with what could be meant instead. Lambda's own words do not say which member is wrong,
    /// so the catalog decides.
    async fn nearer(&self, order: &Order, trouble: Trouble) -> Trouble {
        let message = match &trouble {
            Trouble::Invalid { message, .. } | Trouble::NotFound(message) => message.clone(),
            Trouble::Unsure(_)
            | Trouble::Throttled { .. }
            | Trouble::Quota { .. }
            | Trouble::Capacity { .. }
            | Trouble::Credentials(_)
            | Trouble::Denied { .. }
            | Trouble::Unreachable(_)
            | Trouble::Unable(_) => return trouble,
        };
        let refused =
            |field: &str, message: String| Trouble::Invalid { field: field.to_owned(), message };
        let Ok(types) = self.types().await else { return refused("", message) };
        let known: Vec<&str> = types.iter().map(|it| it.instance_type.name.as_str()).collect();
        let kind = order.machine_type.as_str();
        if known.contains(&kind) {
            return refused("", message);
        }
        let meant = nearest(kind, known.iter().copied());
        let meant = meant.map(|meant| format!(" Did you mean {meant}?")).unwrap_or_default();
        let mut listed = known;
        listed.truncate(NAMED_MAX);
        let listed = listed.join(", ");
        refused(
            "machineType",
            format!("{DISPLAY} has no instance type '{kind}'.{meant} Known: {listed}. {message}"),
        )
    }

    fn nothing_to_make(part: Part) -> Done {
        let what = match part {
            Part::Dns => "DNS records",
            Part::Infrastructure => "networks",
        };
        let message =
            format!("{DISPLAY} has no {what} to make: machines come with public addresses");
        words::done("NothingToMake", message, json!({}))
    }
}

#[async_trait]
impl Provider for Lambda {
    fn kind(&self) -> &str {
        "lambda"
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            tokens: false,
            tags: true,
            reboot: true,
            console: false,
            spot: false,
            // Lambda does not say. As long as we are prepared for anywhere (G4).
            list_lag: SignedDuration::from_secs(60),
        }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        let types = self.types().await?;
        Ok(types.into_iter().map(|it| it.offer(region)).collect())
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        if purchase.order.spot {
            return Err(Trouble::Unable(format!("{DISPLAY} has no spot machines")));
        }
        let body = self.body(purchase)?;
        let queue = tokio::time::timeout(QUEUE_MAX, self.launching.lock()).await;
        let Ok(mut launched_last) = queue else {
            let seconds = self.settings.pace.launch_every.as_secs_f64().ceil();
            return Err(Trouble::Throttled {
                retry_after_s: Some(seconds as u32),
                message: format!("not sent: {DISPLAY} allows one launch every {seconds} s"),
            });
        };
        // Whoever cannot look does not launch: what it does not see it would buy again.
        if let Some(there) = self.find(purchase).await? {
            return Ok(there);
        }
        if let Some((_, machine)) = launched_last.iter().find(|(it, _)| *it == purchase.token) {
            return Ok(machine.clone());
        }
        let path = ["instance-operations", "launch"];
        let launched: Result<Launched, Trouble> =
            self.post(&path, &body, Some(&self.launches)).await;
        let launched = match launched {
            Ok(launched) => launched,
            Err(trouble) => return Err(self.nearer(&purchase.order, trouble).await),
        };
        match launched.instance_ids.as_slice() {
            [id] => {
                let machine = promised(purchase, id);
                launched_last.push_back((purchase.token, machine.clone()));
                if LAUNCHED_MAX < launched_last.len() {
                    launched_last.pop_front();
                }
                Ok(machine)
            }
            ids => Err(Trouble::Unsure(format!(
                "{DISPLAY} answered a launch of one machine with {} ids",
                ids.len()
            ))),
        }
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        let shown = self.instances().await?;
        let machines = shown.into_iter().map(machine);
        let mut ours: Vec<Machine> = machines
            .filter(|machine| match machine.tags.token {
                Some(token) => token == purchase.token,
                None => machine.name == purchase.instance.as_str(),
            })
            .collect();
        // If ever there were two, the one that lives is meant.
        ours.sort_by_key(|machine| machine.state);
        Ok(ours.into_iter().next())
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        let shown = self.instances().await?;
        Ok(shown.into_iter().map(machine).filter(could_be_ours).collect())
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        let id = doomed.machine().as_str();
        let path = ["instance-operations", "terminate"];
        let answer: Terminated = self.post(&path, &json!({ "instance_ids": [id] }), None).await?;
        if answer.terminated_instances.iter().any(|it| it.id == id) {
            return Ok(());
        }
        Err(Trouble::Unsure(format!("{DISPLAY} does not say that it terminates {id}")))
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        let id = machine.as_str();
        let path = ["instance-operations", "restart"];
        let answer: Restarted = self.post(&path, &json!({ "instance_ids": [id] }), None).await?;
        if answer.restarted_instances.iter().any(|it| it.id == id) {
            return Ok(());
        }
        Err(Trouble::Unsure(format!("{DISPLAY} does not say that it restarts {id}")))
    }

    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal> {
        let refused = |trouble: Trouble| words::refused(&trouble, DISPLAY);
        let types = self.types().await.map_err(refused)?;
        let checks = match ask.resource.kind {
            Kind::Cluster => [("accountAccessible", true), ("instanceTypesListed", true)],
            Kind::NodePool => {
                let kind = ask.resource.spec.get("machineType").and_then(Value::as_str);
                let known = |kind: &str| types.iter().any(|it| it.instance_type.name == kind);
                if let Some(kind) = kind.filter(|kind| !known(kind)) {
                    let names = types.iter().map(|it| it.instance_type.name.as_str());
                    let mut names: Vec<&str> = names.collect();
                    let meant = nearest(kind, names.iter().copied());
                    let meant = meant.map(|it| format!(" Did you mean {it}?")).unwrap_or_default();
                    names.truncate(NAMED_MAX);
                    let message = format!(
                        "Unknown machine type '{kind}' for provider {DISPLAY}.{meant} \
                         Supported machine types: {}",
                        names.join(", ")
                    );
                    return Err(words::refusal("UnknownMachineType", message, "Change the spec."));
                }
                [("accountAccessible", true), ("machineTypeAvailable", true)]
            }
        };
        Ok(words::checked(ask.resource.generation, &checks))
    }

    async fn ensure(&self, part: Part, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(Self::nothing_to_make(part))
    }

    async fn remove(&self, part: Part, _ask: &Ask) -> Result<Done, Refusal> {
        let (reason, message) = match part {
            Part::Dns => ("RecordsRemoved", "DNS records removed"),
            Part::Infrastructure => {
                ("InfrastructureRemoved", "Infrastructure resources successfully cleaned up")
            }
        };
        let message = format!("{message}: {DISPLAY} had made none");
        Ok(words::done(reason, message, json!({})))
    }
}

/// A machine that is on its way, as it was ordered.
fn promised(purchase: &Purchase, id: &str) -> Machine {
    let Order { region, machine_type, .. } = &purchase.order;
    Machine {
        id: MachineId::new(id),
        name: purchase.instance.to_string(),
        state: MachineState::Starting,
        tags: purchase.tags.clone(),
        region: region.clone(),
        zone: String::new(),
        machine_type: machine_type.clone(),
        spot: false,
        created_at: None,
        internal_ip: String::new(),
        external_ip: String::new(),
        notice: None,
    }
}

fn machine(shown: Instance) -> Machine {
    let (state, notice) = state(&shown.status);
    Machine {
        id: MachineId::new(shown.id),
        name: shown.name.unwrap_or_default(),
        state,
        tags: read(&shown.tags.unwrap_or_default()),
        region: shown.region.map(|region| region.name).unwrap_or_default(),
        zone: String::new(),
        machine_type: shown.instance_type.map(|kind| kind.name).unwrap_or_default(),
        spot: false,
        created_at: None,
        internal_ip: shown.private_ip.unwrap_or_default(),
        external_ip: shown.ip.unwrap_or_default(),
        notice,
    }
}

fn state(status: &str) -> (MachineState, Option<Notice>) {
    let reclaim = || Notice {
        kind: NoticeKind::Reclaim,
        at: None,
        message: format!("{DISPLAY} has taken the machine back"),
    };
    match status {
        "booting" => (MachineState::Starting, None),
        "terminating" => (MachineState::Stopping, None),
        "terminated" => (MachineState::Gone, None),
        "preempted" => (MachineState::Stopped, Some(reclaim())),
        // `unhealthy`, too: it is there and costs. What ails it is its agent's to say.
        _ => (MachineState::Running, None),
    }
}

/// By its tag; where there is none, by a name that we could have given.
fn could_be_ours(machine: &Machine) -> bool {
    let tags = &machine.tags;
    if tags.installation.is_some() || tags.instance.is_some() {
        return true;
    }
    // `workers-0f3k9a2m`: see `InstanceId::mint`. Somebody else's `prod-database` passes, too: it is
    // reported, and without our tag the gate lets nobody end it. One of ours must never be missed.
    let letter =
        |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_lowercase() && !b"ilou".contains(&byte));
    let minted = machine
        .name
        .rsplit_once('-')
        .is_some_and(|(pool, end)| !pool.is_empty() && end.len() == 8 && end.bytes().all(letter));
    minted && InstanceId::parse(&machine.name).is_ok()
}

fn written(tags: &Tags) -> Vec<Value> {
    let tags = [
        (INSTALLATION, tags.installation.map(|id| id.to_string())),
        (INSTANCE, tags.instance.as_ref().map(ToString::to_string)),
        (POOL, tags.pool.map(|id| id.to_string())),
        (TOKEN, tags.token.map(|id| id.to_string())),
    ];
    let tags = tags.into_iter().filter_map(|(key, value)| Some((key, value?)));
    tags.map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

fn read(tags: &[wire::Tag]) -> Tags {
    let text = |key: &str| tags.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str());
    let uuid = |key: &str| text(key).and_then(|text| Uuid::try_parse(text).ok());
    Tags {
        installation: uuid(INSTALLATION),
        instance: text(INSTANCE).and_then(|text| InstanceId::parse(text).ok()),
        pool: uuid(POOL).map(ResourceId::new),
        token: uuid(TOKEN),
    }
}

#[cfg(test)]
mod tests;
