//! Google's cloud: machines of Compute Engine, records of Cloud DNS, networks of a cluster.
//!
//! What a newcomer gets wrong: an insert that is answered with 200 has made nothing yet. It has begun an
//! operation, and only the operation says that a zone is out of machines or a quota used up.

mod api;
mod auth;
mod cluster;
mod dns;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod machine;
mod network;
mod offer;
mod trouble;
mod wire;

use crate::rest::{Bucket, Rest, TOTAL_MAX, check_url};
use crate::user_data::UserData;
use api::Api;
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::gate::Doomed;
use argosy_core::machine::{Abilities, Machine, MachineId, Offer, Order, Purchase, Trouble};
use async_trait::async_trait;
use auth::Auth;
use jiff::SignedDuration;
use reqwest::Url;
use std::time::Duration;

pub use crate::rest::{Credential, SettingsError};

/// What the provider is called in sentences.
const DISPLAY: &str = "GCP";

/// How machines are bought in one project.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The project's id.
    pub project: String,
    /// Who we are.
    pub credentials: Credentials,
    /// The image of machines whose order names none:
    /// `projects/<project>/global/images/family/<family>`, or the name of an image of the project.
    pub image: String,
    /// The size of the boot disk.
    pub disk_gb: u32,
    /// The type of the boot disk: `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`.
    pub disk_type: String,
    /// The network, by name; empty if the subnetwork says it.
    pub network: String,
    /// The subnetwork in the machine's region, by name; empty: the network's own.
    pub subnetwork: String,
    /// Whether machines get an address on the open Internet.
    pub external_ip: bool,
    /// The service account that machines run as, by its address; empty: none.
    pub service_account: String,
    /// Network tags, for the firewall.
    pub network_tags: Vec<String>,
    /// What a cluster's DNS records lead to if its spec does not say: addresses, or a host name.
    pub dns_targets: Vec<String>,
    /// The addresses of a cluster's subnetwork.
    pub subnetwork_range: String,
    /// What machines are told when they boot.
    pub user_data: UserData,
    /// Where Google is.
    pub endpoints: Endpoints,
    /// How long we wait for what.
    pub pace: Pace,
}

/// Who we are.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A service account's key: the JSON document as Google gives it out.
    Key(Credential),
    /// Whatever the metadata server of the machine we run on says.
    Metadata,
}

/// Where Google is. Only tests and private endpoints differ from the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Compute Engine, with its version.
    pub compute: String,
    /// Cloud DNS, with its version.
    pub dns: String,
    /// The metadata server.
    pub metadata: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            compute: "https://compute.googleapis.com/compute/v1".to_owned(),
            dns: "https://dns.googleapis.com/dns/v1".to_owned(),
            metadata: "http://metadata.google.internal".to_owned(),
        }
    }
}

/// How long we wait for what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// One call, from the first byte to the last.
    pub call_max: Duration,
    /// Calls a second: of the 25 that Google allows for one kind of call by default.
    pub calls_per_s: f64,
    /// Between the first two looks at an operation; then twice as long, up to five times.
    pub poll: Duration,
    /// For the operation that makes a machine: most refusals come within seconds, and a machine whose
    /// operation goes on is on its way.
    pub create_max: Duration,
    /// For the operation that ends a machine, only to hear of a refusal.
    pub delete_max: Duration,
    /// For the operations that make or remove a network.
    pub part_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            call_max: TOTAL_MAX,
            calls_per_s: 20.0,
            poll: Duration::from_secs(1),
            create_max: Duration::from_secs(25),
            delete_max: Duration::from_secs(3),
            part_max: Duration::from_secs(90),
        }
    }
}

impl Settings {
    /// A project with everything else as is usual.
    pub fn new(project: &str, credentials: Credentials) -> Self {
        Self {
            project: project.to_owned(),
            credentials,
            image: "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64".to_owned(),
            disk_gb: 200,
            disk_type: "pd-balanced".to_owned(),
            network: "default".to_owned(),
            subnetwork: String::new(),
            external_ip: false,
            service_account: String::new(),
            network_tags: Vec::new(),
            dns_targets: Vec::new(),
            subnetwork_range: "10.64.0.0/16".to_owned(),
            user_data: UserData::default(),
            endpoints: Endpoints::default(),
            pace: Pace::default(),
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        // Also `example.com:project`, as old projects of domains are called.
        let named = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let project = self.project.bytes().all(|byte| named(byte) || b"-:.".contains(&byte));
        if !project || !(1..=128).contains(&self.project.len()) {
            let problem = "must be the id of a project: lower-case letters, digits and hyphens";
            return Err(SettingsError::new("project", problem));
        }
        if !(10..=65_536).contains(&self.disk_gb) {
            return Err(SettingsError::new("disk_gb", "must be from 10 to 65536"));
        }
        if self.image.is_empty() {
            return Err(SettingsError::new("image", "must not be empty"));
        }
        if self.network.is_empty() && self.subnetwork.is_empty() {
            let problem = "must not be empty, unless there is a subnetwork";
            return Err(SettingsError::new("network", problem));
        }
        Ok(())
    }
}

/// Compute Engine and Cloud DNS in one project.
///
/// Guarantees: a purchase makes at most one machine, however often and in however many ways it is repeated
/// within an hour; a listing is whole, or there is none.
#[derive(Debug)]
pub struct Gcp {
    api: Api,
    settings: Settings,
    clock: Clock,
}

/// Calls at once.
const CALLS_BURST: u32 = 40;

impl Gcp {
    /// A client for one project.
    ///
    /// # Errors
    /// What is wrong with the settings. Nothing is sent.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        settings.check()?;
        let compute = check_url("endpoints.compute", &settings.endpoints.compute)?;
        let dns = check_url("endpoints.dns", &settings.endpoints.dns)?;
        let auth = Auth::new(&settings, clock)?;
        let bucket = Bucket::new(settings.pace.calls_per_s, CALLS_BURST);
        let rest = Rest::new(DISPLAY, &compute, settings.pace.call_max, bucket, clock)?;
        let project = settings.project.clone();
        let api = Api { rest, auth, compute, dns, project, pace: settings.pace, clock };
        Ok(Self { api, settings, clock })
    }
}

#[async_trait]
impl Provider for Gcp {
    fn kind(&self) -> &str {
        "gcp"
    }

    fn abilities(&self) -> Abilities {
        // Lists over all zones are put together from the zones' own, which follow within seconds.
        let list_lag = SignedDuration::from_secs(30);
        Abilities { tokens: true, tags: true, reboot: true, console: true, spot: true, list_lag }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        self.api.offers(region).await
    }

    async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        self.api.room(order, count).await
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        self.make(purchase).await
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        self.look(purchase).await
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        self.list_all().await
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        self.delete(doomed.machine()).await
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        self.reset(machine).await
    }

    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        self.serial_port(machine).await
    }

    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.checked(ask).await
    }

    async fn ensure(&self, part: Part, ask: &Ask) -> Result<Done, Refusal> {
        match part {
            Part::Dns => self.ensure_records(ask).await,
            Part::Infrastructure => self.ensure_network(ask).await,
        }
    }

    async fn remove(&self, part: Part, ask: &Ask) -> Result<Done, Refusal> {
        match part {
            Part::Dns => self.remove_records(ask).await,
            Part::Infrastructure => self.remove_network(ask).await,
        }
    }
}

/// The metadata server is on the machine itself, or nowhere.
fn metadata_url(text: &str) -> Result<Url, SettingsError> {
    match Url::parse(text) {
        Ok(url) if url.host_str() == Some("metadata.google.internal") => Ok(url),
        Ok(_) | Err(_) => check_url("endpoints.metadata", text),
    }
}

#[cfg(test)]
mod tests;
