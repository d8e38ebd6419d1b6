//! Amazon's cloud: machines from EC2, records in Route 53, spoken to by hand.
//!
//! A thin client: EC2's Query API, signed and sent by `query`, read by `answer`. AWS's own crate for EC2
//! takes longer to compile than everything else we have together.
//!
//! What a newcomer gets wrong: EC2's listings lag, its tokens do not. `RunInstances` that is repeated with its
//! token answers with the machine it made the first time, at once; `DescribeInstances` may miss it for a while.

mod answer;
mod credential;
mod dns;
mod network;
mod offer;
mod pace;
mod price;
mod query;
#[cfg(any(test, feature = "testing"))]
pub mod standin;
mod trouble;
mod words;
mod xml;

use answer::{Console, Instances, Nothing, Page, Reservation, SpotRequests, Statuses, Subnets};
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::gate::Doomed;
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Notice, Offer, Order, Purchase, Tags, Trouble,
};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::SignedDuration;
use offer::suggest;
use query::{Client, Effect, Fault, FaultKind, Query};
use reqwest::Url;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use tokio::sync::Mutex;
use tracing::warn;

pub use crate::user_data::UserData;
pub use credential::{Credentials, Keys};
pub use pace::{Rate, Rates};

/// An account in a region, and how machines are made there. Another region is another provider.
#[derive(Clone)]
pub struct Settings {
    /// The region: `us-east-1`.
    pub region: String,
    /// Whose account.
    pub credentials: Credentials,
    /// Where EC2 and Route 53 answer, if it is not AWS itself.
    pub endpoint: Option<Url>,
    /// Where machines are put: the one in the zone that is ordered, the first if any zone will do. Empty: the
    /// default network.
    pub subnets: Vec<String>,
    /// What guards them; empty: the network's default.
    pub security_groups: Vec<String>,
    /// The image (AMI) if an order names none; empty: every order has to.
    pub image: String,
    /// The key pair for SSH.
    pub key_name: Option<String>,
    /// The role of the machines: a name, or an ARN.
    pub instance_profile: Option<String>,
    /// How a machine gets its agent.
    pub user_data: UserData,
    /// What machines cost by the hour, by type, where it is not the list price.
    pub prices: BTreeMap<String, f64>,
    /// How fast the account may be asked.
    pub rates: Rates,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("region", &self.region)
            .field("credentials", &self.credentials)
            .field("endpoint", &self.endpoint)
            .field("subnets", &self.subnets)
            .field("security_groups", &self.security_groups)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not the name of a region.
    #[error("`{0}` is no AWS region; they look like us-east-1")]
    Region(String),
    /// A price that cannot be one.
    #[error("the price of {0} must be a number of dollars, not less than 0")]
    Price(String),
    /// A rate at which nothing would ever be asked.
    #[error("rates must allow at least one call, and more than 0 a second")]
    Rate,
    /// The HTTP client cannot be made.
    #[error("{0}")]
    Client(String),
}

/// One account of AWS in one region.
pub struct Aws {
    client: Client,
    clock: Clock,
    region: String,
    subnets: Vec<String>,
    security_groups: Vec<String>,
    image: String,
    key_name: Option<String>,
    instance_profile: Option<String>,
    user_data: UserData,
    prices: BTreeMap<String, f64>,
    catalogue: Mutex<offer::Kept>,
    /// The zone of each subnet that was looked up; they never move.
    subnet_zones: Mutex<HashMap<String, String>>,
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aws").field("region", &self.region).finish_non_exhaustive()
    }
}

/// For how long EC2's listings may miss a machine. Mostly it is a second; AWS promises nothing and advises
/// to retry for minutes.
const LIST_LAG: SignedDuration = SignedDuration::from_secs(60);

/// How many pages one listing may have: at a thousand machines each, more than an account can hold. Whoever
/// sends more is not EC2.
const PAGES_MAX: usize = 1_000;

/// How much a machine can be given to boot with, before it is encoded: EC2's own limit. Bytes.
const USER_DATA_MAX: usize = 16 * 1024;

/// How much of a console is decoded: EC2 keeps 64 KiB. Bytes of base 64.
const CONSOLE_MAX: usize = 128 * 1024;

impl Aws {
    /// Opens an account. Nothing is asked of AWS yet.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        check(&settings)?;
        let client = Client::new(&settings, clock).map_err(SettingsError::Client)?;
        let Settings { region, subnets, security_groups, image, .. } = settings;
        let Settings { key_name, instance_profile, user_data, prices, .. } = settings;
        Ok(Self {
            client,
            clock,
            region,
            subnets,
            security_groups,
            image,
            key_name,
            instance_profile,
            user_data,
            prices,
            catalogue: Mutex::default(),
            subnet_zones: Mutex::default(),
        })
    }

    /// All pages of a listing, or none.
    async fn pages<P: Page + serde::de::DeserializeOwned>(
        &self,
        query: Query,
    ) -> Result<Vec<P::Item>, Fault> {
        let mut items = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let query = query.clone().with_some("NextToken", next.as_deref());
            let (page, following) = self.client.ec2::<P>(&query).await?.split();
            items.extend(page);
            match following {
                None => return Ok(items),
                Some(following) if next.as_ref() == Some(&following) => break,
                Some(following) => next = Some(following),
            }
        }
        let why = "the listing does not end".to_owned();
        Err(Fault {
            permission: format!("ec2:{}", query.action),
            effect: Effect::Read,
            kind: FaultKind::NoAnswer(why),
        })
    }

    async fn instances(&self, query: Query) -> Result<Vec<Machine>, Fault> {
        let reservations = self.pages::<Instances>(query).await?;
        let instances = reservations.into_iter().flat_map(|reservation| reservation.instances.item);
        Ok(instances.filter_map(|instance| instance.machine(&self.region)).collect())
    }

    /// Adds to machines what AWS intends to do with them. They are listed even if that cannot be had, and then it is
    /// not known: that somebody will move one is worth less than to know that it is there.
    async fn notice(&self, machines: &mut [Machine]) {
        if machines.is_empty() {
            return;
        }
        let events = self.events().await;
        let spot = machines.iter().any(|machine| machine.spot);
        let taken = if spot { self.taken().await } else { Some(HashMap::new()) };
        for machine in machines {
            let find = |notices: &Option<HashMap<String, Notice>>| match notices {
                Some(notices) => notices.get(machine.id.as_str()).cloned(),
                None => Some(Notice::unknown()),
            };
            // What is sooner comes first: that a spot machine is taken back.
            let taken = if machine.spot { find(&taken) } else { None };
            machine.notice = taken.or_else(|| find(&events));
        }
    }

    /// What is scheduled for machines, by id; `None` if it cannot be had.
    async fn events(&self) -> Option<HashMap<String, Notice>> {
        // Only those with an event that is to come.
        let query = Query::read("DescribeInstanceStatus").with("MaxResults", "1000").filter(
            "event.code",
            &[
                "instance-reboot",
                "system-reboot",
                "system-maintenance",
                "instance-retirement",
                "instance-stop",
            ],
        );
        let statuses = self.asked::<Statuses>(query, "scheduled events of machines").await?;
        let notices = statuses.into_iter().filter_map(|status| {
            let notice = status.notice()?;
            Some((status.instance_id, notice))
        });
        Some(notices.collect())
    }

    /// Which spot machines are taken back, by id; `None` if it cannot be had.
    async fn taken(&self) -> Option<HashMap<String, Notice>> {
        let query = Query::read("DescribeSpotInstanceRequests")
            .with("MaxResults", "1000")
            .filter("status-code", &["marked-for-termination", "marked-for-stop"]);
        let requests = self.asked::<SpotRequests>(query, "spot interruptions").await?;
        let notices = requests.into_iter().filter_map(|request| {
            let notice = request.notice()?;
            Some((request.instance_id, notice))
        });
        Some(notices.collect())
    }

    /// All pages of what a listing can do without.
    async fn asked<P: Page + serde::de::DeserializeOwned>(
        &self,
        query: Query,
        what: &'static str,
    ) -> Option<Vec<P::Item>> {
        match self.pages::<P>(query).await {
            Ok(items) => Some(items),
            Err(fault) => {
                let cause = Trouble::from(fault);
                warn!(%cause, what, "could not be asked for; what is known of it stays");
                None
            }
        }
    }

    /// The call that buys a machine.
    async fn launch(&self, purchase: &Purchase) -> Result<Query, Trouble> {
        let Order { region, zone, machine_type, spot, image, .. } = &purchase.order;
        if !region.is_empty() && *region != self.region {
            let message = format!("this account is asked in {}, not in {region}", self.region);
            return Err(Trouble::Invalid { field: "region".to_owned(), message });
        }
        let image = if image.is_empty() { &self.image } else { image };
        if image.is_empty() {
            let message = "no image: name an AMI in the node pool or in the provider's settings";
            let (field, message) = ("image".to_owned(), message.to_owned());
            return Err(Trouble::Invalid { field, message });
        }
        let user_data = self.user_data.of(purchase);
        if USER_DATA_MAX < user_data.len() {
            let len = user_data.len();
            let message = format!("user data has {len} bytes; EC2 takes {USER_DATA_MAX}");
            return Err(Trouble::Invalid { field: "userData".to_owned(), message });
        }
        let profile = match self.instance_profile.as_deref() {
            Some(arn) if arn.starts_with("arn:") => ("IamInstanceProfile.Arn", Some(arn)),
            name => ("IamInstanceProfile.Name", name),
        };
        let mut query = Query::new("RunInstances", Effect::Launch)
            .with("MinCount", "1")
            .with("MaxCount", "1")
            .with("ClientToken", purchase.token.to_string())
            .with("InstanceType", machine_type)
            .with("ImageId", image)
            .with("UserData", BASE64_STANDARD.encode(user_data))
            // A machine that switches itself off must not go on costing its disks.
            .with("InstanceInitiatedShutdownBehavior", "terminate")
            // Version 1 of the metadata service gives the role's keys to whoever can make it fetch a URL.
            .with("MetadataOptions.HttpTokens", "required")
            .with_some("KeyName", self.key_name.as_deref())
            .with_some(profile.0, profile.1)
            .with_all("SecurityGroupId", self.security_groups.iter().map(String::as_str));
        if *spot {
            query = query
                .with("InstanceMarketOptions.MarketType", "spot")
                .with("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
        }
        query = match self.subnet(zone).await? {
            Some(subnet) => query.with("SubnetId", subnet),
            None if zone.is_empty() => query,
            None => query.with("Placement.AvailabilityZone", zone),
        };
        let written = written(purchase);
        for (number, kind) in ["instance", "volume"].iter().enumerate() {
            let specification = format!("TagSpecification.{}", number + 1);
            query = query.with(format!("{specification}.ResourceType"), *kind);
            for (at, (key, value)) in written.iter().enumerate() {
                let tag = format!("{specification}.Tag.{}", at + 1);
                query = query.with(format!("{tag}.Key"), *key).with(format!("{tag}.Value"), value);
            }
        }
        Ok(query)
    }

    /// The subnet for a zone; `None` if none are set.
    async fn subnet(&self, zone: &str) -> Result<Option<String>, Trouble> {
        let Some(first) = self.subnets.first() else { return Ok(None) };
        if zone.is_empty() {
            return Ok(Some(first.clone()));
        }
        let mut known = self.subnet_zones.lock().await;
        if known.is_empty() {
            let wanted = self.subnets.iter().map(String::as_str);
            let query = Query::read("DescribeSubnets").with_all("SubnetId", wanted);
            for subnet in self.pages::<Subnets>(query).await? {
                known.insert(subnet.subnet_id, subnet.availability_zone);
            }
        }
        let there = self
            .subnets
            .iter()
            .find(|subnet| known.get(subnet.as_str()).is_some_and(|its| its == zone));
        if let Some(subnet) = there {
            return Ok(Some(subnet.clone()));
        }
        let zones = self.subnets.iter().filter_map(|subnet| known.get(subnet)).map(String::as_str);
        let sentence = format!("none of the provider's subnets is in zone {zone}");
        let message = suggest(sentence, zone, zones);
        Err(Trouble::Invalid { field: "zones".to_owned(), message })
    }

    /// The same trouble, with what only we know: which name was wrong, the nearest ones, and what one needs.
    async fn told(&self, trouble: Trouble, order: &Order) -> Trouble {
        match trouble {
            Trouble::Invalid { field, message }
                if matches!(field.as_str(), "" | "machineType" | "zones") =>
            {
                self.unknown_name(field, message, order).await
            }
            Trouble::Quota { resource, each: _, available, message } => {
                let cpus = self.catalogue().await.map_or(0, |all| all.cpus(&order.machine_type));
                let each = if resource == "vCPUs" { cpus.into() } else { 1 };
                Trouble::Quota { resource, each, available, message }
            }
            Trouble::Unsure(_)
            | Trouble::Throttled { .. }
            | Trouble::Capacity { .. }
            | Trouble::Credentials(_)
            | Trouble::Denied { .. }
            | Trouble::Invalid { .. }
            | Trouble::NotFound(_)
            | Trouble::Unreachable(_)
            | Trouble::Unable(_) => trouble,
        }
    }

    async fn unknown_name(&self, field: String, message: String, order: &Order) -> Trouble {
        let Order { machine_type, zone, .. } = order;
        let invalid = |field: &str, message| Trouble::Invalid { field: field.to_owned(), message };
        // EC2 has one code for many mistakes, so what it has is looked up instead of what it says.
        let Ok(catalogue) = self.catalogue().await else { return invalid(&field, message) };
        if !catalogue.has(machine_type) {
            return invalid("machineType", catalogue.unknown(machine_type, &self.region));
        }
        if zone.is_empty() || catalogue.has_in(machine_type, zone) {
            return invalid(&field, message);
        }
        let zones = self.zones().await.unwrap_or_default();
        if !zones.contains(zone) {
            let sentence = format!("{} has no zone {zone}", self.region);
            return invalid("zones", suggest(sentence, zone, zones.iter().map(String::as_str)));
        }
        let elsewhere = catalogue.zones_of(machine_type).join(", ");
        invalid("zones", format!("{zone} has no {machine_type}; these have: {elsewhere}"))
    }
}

#[async_trait]
impl Provider for Aws {
    fn kind(&self) -> &str {
        "aws"
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            tokens: true,
            tags: true,
            reboot: true,
            console: true,
            spot: true,
            list_lag: LIST_LAG,
        }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        if !region.is_empty() && region != self.region {
            return Ok(Vec::new());
        }
        Ok(self.all_offers().await?)
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        let query = self.launch(purchase).await?;
        let reservation = match self.client.ec2::<Reservation>(&query).await {
            Ok(reservation) => reservation,
            Err(fault) => return Err(self.told(fault.into(), &purchase.order).await),
        };
        let mut instances = reservation.instances.item.into_iter();
        let machine = instances.find_map(|instance| instance.machine(&self.region));
        machine.ok_or_else(|| Trouble::Unsure("RunInstances answered without a machine".to_owned()))
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        let token = purchase.token.to_string();
        // A machine that was adopted has our tag, and was not bought with our token.
        for filter in ["client-token".to_owned(), format!("tag:{}", answer::TOKEN)] {
            let query = Query::read("DescribeInstances")
                .with("MaxResults", "1000")
                .filter(&filter, &[&token]);
            let machines = self.instances(query).await?;
            let living_first = |machine: &Machine| machine.state == MachineState::Gone;
            if let Some(machine) = machines.into_iter().min_by_key(living_first) {
                return Ok(Some(machine));
            }
        }
        Ok(None)
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        let query = Query::read("DescribeInstances")
            .with("MaxResults", "1000")
            .filter("tag-key", &[answer::INSTALLATION]);
        let mut machines = self.instances(query).await?;
        self.notice(&mut machines).await;
        Ok(machines)
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        let id = doomed.machine().as_str();
        let query = Query::change("TerminateInstances").with("InstanceId.1", id);
        let Nothing {} = self.client.ec2(&query).await?;
        Ok(())
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        let query = Query::change("RebootInstances").with("InstanceId.1", machine.as_str());
        let Nothing {} = self.client.ec2(&query).await?;
        Ok(())
    }

    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        let query = Query::read("GetConsoleOutput")
            .with("InstanceId", machine.as_str())
            // What it wrote until now, where its hypervisor can; else what was kept of the last boot.
            .with("Latest", "true");
        let answer = self.client.ec2::<Console>(&query).await;
        let Console { output } = match answer {
            Ok(console) => console,
            Err(fault) if matches!(fault.code(), "UnsupportedOperation" | "Unsupported") => {
                let query = Query::read("GetConsoleOutput").with("InstanceId", machine.as_str());
                self.client.ec2(&query).await?
            }
            Err(fault) => return Err(fault.into()),
        };
        let letters: String =
            output.chars().filter(|letter| !letter.is_whitespace()).take(CONSOLE_MAX).collect();
        let bytes = BASE64_STANDARD.decode(letters).map_err(|cause| {
            Trouble::Unreachable(format!("the console of {machine} cannot be read: {cause}"))
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
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

fn check(settings: &Settings) -> Result<(), SettingsError> {
    let Settings { region, prices, rates, .. } = settings;
    // It becomes part of a host name, and of what is signed.
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let whole = region.contains('-') && !region.starts_with('-') && !region.ends_with('-');
    if !whole || 32 < region.len() || !region.bytes().all(letters) {
        return Err(SettingsError::Region(region.chars().take(80).collect()));
    }
    for (machine_type, price) in prices {
        if !price.is_finite() || *price < 0.0 {
            return Err(SettingsError::Price(machine_type.clone()));
        }
    }
    for rate in [rates.launches, rates.changes, rates.reads, rates.dns] {
        if rate.burst == 0 || !rate.per_s.is_finite() || rate.per_s <= 0.0 {
            return Err(SettingsError::Rate);
        }
    }
    Ok(())
}

/// What is written on a machine and its disks.
fn written(purchase: &Purchase) -> Vec<(&'static str, String)> {
    let Tags { installation, instance, pool, token } = &purchase.tags;
    let tags = [
        (answer::INSTALLATION, installation.map(|id| id.to_string())),
        (answer::INSTANCE, instance.as_ref().map(ToString::to_string)),
        (answer::POOL, pool.map(|id| id.to_string())),
        (answer::TOKEN, token.map(|id| id.to_string())),
        ("Name", Some(purchase.instance.to_string())),
    ];
    tags.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

#[cfg(test)]
mod tests;
