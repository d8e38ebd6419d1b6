//! Where machines come from, how they get their agent, and how long what may take.

use super::{Config, Duration, Key, Secret, Section};
use argosy_control::MachineSettings;
use argosy_core::autoscale::Autoscaling;
use argosy_core::catalog::{Catalog, MachineType, ProviderCatalog};
use argosy_core::instance::Limits as InstanceLimits;
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::pool::PoolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

section! {
    /// How machines are bought, watched and returned.
    Machines {
        /// Where this server is, as machines see it: `https://argosy.example:8080`. Needed by every provider
        /// whose machines must find it.
        server_url: Option<String> = None,
        /// The agent that machines run.
        agent: AgentProgram = AgentProgram::default(),
        /// What agents show when they register, by reference.
        agent_token: Secret = Secret::default(),
        /// More flags of the agent, as they are.
        agent_args: Vec<String> = Vec::new(),
        /// A PEM file: what machines check this server's certificate with, instead of their own roots.
        ca_file: Option<PathBuf> = None,
        /// How long a machine may take until its node registers; then it is terminated. Only time in which the control
        /// plane listened counts.
        registration_timeout: Duration = Duration::from_signed(InstanceLimits::default().registration),
        /// How long returning a machine may take before people are told.
        alarm_after: Duration = Duration::from_signed(InstanceLimits::default().alarm_after),
        /// How long the record of a machine that is gone is kept.
        retain_terminated: Duration = Duration::from_signed(InstanceLimits::default().kept),
        /// How often each provider's machines are compared with our records.
        sweep_every: Duration = Duration::from_signed(MachineSettings::default().sweep_every),
        /// How often autoscalers are asked.
        autoscale_interval: Duration = Duration::from_signed(MachineSettings::default().autoscale_every),
        /// How often what a pool's size is judged by is written down, for forecasts and simulations.
        sample_every: Duration = Duration::from_signed(MachineSettings::default().sample_every),
        /// The most that all machines together may cost an hour, in US dollars; no limit without it.
        max_hourly_cost: Option<f64> = None,
        /// Whether pools leave recovery (after a restore, or after the store lost history) without a person's
        /// confirmation, once their machines are listed and their nodes have registered.
        recover_automatically: bool = false,
    }
}

section! {
    /// The agent's program: a path, or an address with the checksum of what is there.
    AgentProgram {
        /// A file of this host for `process` and `static`; else a file of the machine's image.
        path: Option<PathBuf> = None,
        /// Where machines fetch it.
        url: Option<String> = None,
        /// The SHA-256 of what is there, as 64 hexadecimal digits. Machines take nothing else for it.
        sha256: Option<String> = None,
    }
}

/// A provider of machines, by its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum ProviderOf {
    /// Machines that are only simulated.
    Simulated(SimulatedProvider),
    /// Machines that are processes of this host.
    Process(ProcessProvider),
    /// Amazon EC2 and Route 53.
    Aws(AwsProvider),
    /// Google Compute Engine and Cloud DNS.
    Gcp(GcpProvider),
    /// Lambda Cloud.
    Lambda(LambdaProvider),
    /// Machines that exist already, entered by SSH.
    Static(StaticProvider),
}

section! {
    /// A provider of `type: simulated`: its machines run the agent's core in this process.
    SimulatedProvider {
        /// Whether everything happens at once, instead of after latencies like a real cloud's.
        instant: bool = false,
    }
}

section! {
    /// A provider of `type: process`: its machines are agents on this host.
    ProcessProvider {
        /// Where machines keep their files; `machines/NAME` in the data directory without it.
        dir: Option<PathBuf> = None,
        /// What machines say of where they are.
        region: String = "local".to_owned(),
        /// The zones of the region.
        zones: Vec<String> = Vec::new(),
        /// What can be bought.
        types: Vec<ProcessType> = ProcessType::usual(),
        /// How many processes there may be at once: this host has to carry them.
        max_processes: u32 = 64,
        /// Whether its processes end with the server and begin again with it. For trying things on one's own
        /// machine: machines should outlive their control plane.
        end_with_server: bool = false,
    }
}

section! {
    /// A machine type of `type: process`.
    ProcessType {
        /// What it is called.
        name: String = String::new(),
        /// The agent's `--gpu`: `auto`, `none` or `fake:8xH100`.
        gpu: String = "auto".to_owned(),
        /// Virtual CPUs, as offered.
        cpus: u32 = 1,
        /// GPUs, as offered.
        gpus: u32 = 0,
        /// What it is said to cost an hour, in US dollars.
        price_per_hour: Option<f64> = None,
    }
}

impl ProcessType {
    /// What can be bought where nobody says otherwise: eight made-up GPUs, or what this host has.
    fn usual() -> Vec<Self> {
        let (name, gpu) = ("gpu-8x".to_owned(), "fake:8xH100".to_owned());
        let made_up = Self { name, gpu, cpus: 8, gpus: 8, ..Self::default() };
        vec![made_up, Self { name: "host".to_owned(), ..Self::default() }]
    }
}

section! {
    /// A provider of `type: aws`. Without keys and profile, credentials are found as AWS's own tools do.
    AwsProvider {
        /// The region: `us-east-1`.
        region: String = String::new(),
        /// The access key's id, by reference; with `secret_access_key`.
        access_key_id: Secret = Secret::default(),
        /// The secret access key, by reference.
        secret_access_key: Secret = Secret::default(),
        /// The token of temporary keys, by reference.
        session_token: Secret = Secret::default(),
        /// A profile of the shared files.
        profile: Option<String> = None,
        /// A shared credentials file, if it is not where AWS's tools look.
        credentials_file: Option<PathBuf> = None,
        /// Where EC2 and Route 53 answer, if it is not AWS itself.
        endpoint: Option<String> = None,
        /// Where machines are put: the one in the zone that is ordered; the default network without it.
        subnets: Vec<String> = Vec::new(),
        /// What guards them; the network's default without it.
        security_groups: Vec<String> = Vec::new(),
        /// The image (AMI) of machines whose pool names none.
        image: Option<String> = None,
        /// The key pair for SSH.
        key_name: Option<String> = None,
        /// The role of the machines: a name, or an ARN.
        instance_profile: Option<String> = None,
        /// What machines cost an hour, by type, where it is not the list price.
        prices: BTreeMap<String, f64> = BTreeMap::new(),
        /// Commands that a machine runs before its agent is installed.
        setup_commands: Vec<String> = Vec::new(),
    }
}

section! {
    /// A provider of `type: gcp`.
    GcpProvider {
        /// The project's id.
        project: String = String::new(),
        /// The region of pools that name none.
        region: String = "us-central1".to_owned(),
        /// A service account's key (JSON), by reference; without it, what the metadata server says.
        credentials: Secret = Secret::default(),
        /// The image of machines whose pool names none.
        image: Option<String> = None,
        /// The size of the boot disk, in GB.
        disk_gb: u32 = 200,
        /// The type of the boot disk: `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`.
        disk_type: String = "pd-balanced".to_owned(),
        /// The network, by name.
        network: String = "default".to_owned(),
        /// The subnetwork in the machine's region, by name; the network's own without it.
        subnetwork: Option<String> = None,
        /// Whether machines get an address on the open Internet.
        external_ip: bool = false,
        /// The service account that machines run as, by its address.
        service_account: Option<String> = None,
        /// Network tags, for the firewall.
        network_tags: Vec<String> = Vec::new(),
        /// What a cluster's DNS records lead to if its spec does not say.
        dns_targets: Vec<String> = Vec::new(),
        /// The addresses of a cluster's subnetwork; the provider's own choice without it.
        subnetwork_range: Option<String> = None,
        /// Commands that a machine runs before its agent is installed.
        setup_commands: Vec<String> = Vec::new(),
    }
}

section! {
    /// A provider of `type: lambda`.
    LambdaProvider {
        /// The API key, by reference.
        api_key: Secret = Secret::default(),
        /// The region of pools that name none.
        region: Option<String> = None,
        /// The SSH key that machines accept, by its name in the account: Lambda wants one.
        ssh_key: String = String::new(),
        /// File systems to attach, by name.
        file_systems: Vec<String> = Vec::new(),
        /// The image family of machines whose pool names no image.
        image_family: Option<String> = None,
        /// Where Lambda's API is, if it is not where it always is.
        endpoint: Option<String> = None,
        /// Commands that a machine runs before its agent is installed.
        setup_commands: Vec<String> = Vec::new(),
    }
}

section! {
    /// A provider of `type: static`: machines that exist already, entered by SSH.
    StaticProvider {
        /// The hosts.
        hosts: Vec<StaticHost> = Vec::new(),
        /// What all of them say of where they are.
        region: String = "static".to_owned(),
        /// The private key, without a passphrase or with an agent that knows it.
        key_file: Option<PathBuf> = None,
        /// The keys of the hosts. A host that shows another is not entered.
        known_hosts: Option<PathBuf> = None,
        /// Whether what changes a host is done through `sudo`; else whoever enters must be root.
        sudo: bool = true,
        /// The program.
        ssh: PathBuf = PathBuf::from("ssh"),
        /// Its configuration file, for jump hosts and the like.
        ssh_config: Option<PathBuf> = None,
        /// Commands that a host runs before its agent is installed.
        setup_commands: Vec<String> = Vec::new(),
    }
}

section! {
    /// A host of `type: static`.
    StaticHost {
        /// What people call it.
        name: String = String::new(),
        /// Where it is entered: a name or an IP address; its name without it.
        address: Option<String> = None,
        /// At which port.
        port: u16 = 22,
        /// As whom.
        user: String = "root".to_owned(),
        /// What it is.
        machine_type: String = "host".to_owned(),
        /// Virtual CPUs, as offered.
        cpus: u32 = 1,
        /// GPUs, as offered.
        gpus: u32 = 0,
        /// Where it is.
        zone: Option<String> = None,
        /// What it is said to cost an hour, in US dollars.
        price_per_hour: Option<f64> = None,
        /// Labels of its node, beside those of the pool.
        labels: BTreeMap<String, String> = BTreeMap::new(),
    }
}

section! {
    /// A node pool that is made at start, if it is not there. Later it is changed like any other.
    DeclaredOf {
        /// What is asked for, as in the API: `nodeCount`, `machineType`, `providers`, `autoscaling`, …
        spec: Map<String, Value> = Map::new(),
        /// Labels of the node pool.
        labels: BTreeMap<String, String> = BTreeMap::new(),
    }
}

/// A node pool of the cluster `default` that is to be made if it is not there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredPool {
    /// Its name.
    pub(crate) name: String,
    /// What is asked for.
    pub(crate) spec: Map<String, Value>,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
}

/// Whose the node pools that the configuration declares are.
pub(crate) const DECLARED_TENANT: &str = "default";

/// The node pools that the configuration declares.
pub(crate) fn declared(config: &Config) -> Vec<DeclaredPool> {
    let pools = config.pools.iter().map(|(name, pool)| DeclaredPool {
        name: name.clone(),
        spec: pool.spec.clone(),
        labels: pool.labels.clone(),
    });
    pools.collect()
}

impl Machines {
    /// What the loops go by.
    pub(crate) fn settings(&self) -> MachineSettings {
        MachineSettings {
            limits: InstanceLimits {
                registration: self.registration_timeout.signed(),
                alarm_after: self.alarm_after.signed(),
                kept: self.retain_terminated.signed(),
            },
            sweep_every: self.sweep_every.signed(),
            autoscale_every: self.autoscale_interval.signed(),
            sample_every: self.sample_every.signed(),
            max_hourly_cost: self.max_hourly_cost,
            recover_automatically: self.recover_automatically,
            ..MachineSettings::default()
        }
    }

    /// What does not fit together.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        let second = Duration::from_secs(1);
        for (key, time, least) in [
            ("registration_timeout", self.registration_timeout, Duration::from_secs(10)),
            ("alarm_after", self.alarm_after, second),
            ("retain_terminated", self.retain_terminated, second),
            ("sweep_every", self.sweep_every, second),
            ("autoscale_interval", self.autoscale_interval, second),
            ("sample_every", self.sample_every, second),
        ] {
            if time < least {
                found.push(format!("machines.{key}: {time} is too short; at least {least}"));
            }
        }
        found.extend(price("machines.max_hourly_cost", self.max_hourly_cost));
        found
            .extend(self.server_url.as_deref().and_then(|url| address("machines.server_url", url)));
        found.extend(secret("machines.agent_token", &self.agent_token));
        let AgentProgram { path, url, sha256 } = &self.agent;
        if path.is_some() && url.is_some() {
            found.push("machines.agent: give path or url, not both".to_owned());
        }
        found.extend(url.as_deref().and_then(|url| address("machines.agent.url", url)));
        match (url, sha256) {
            (Some(_), None) => found.push(
                "machines.agent.sha256: it is missing; machines take nothing unchecked".to_owned(),
            ),
            (None, Some(_)) => {
                found.push("machines.agent.sha256: only `url` is checked with it".to_owned());
            }
            (Some(_), Some(sum)) if !is_sha256(sum) => {
                found.push("machines.agent.sha256: it has 64 hexadecimal digits".to_owned());
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        found
    }
}

/// What can be asked for: the catalog of the file, or the built-in one with every provider of the file in it.
pub(crate) fn catalog(config: &Config) -> Catalog {
    if let Some(catalog) = &config.catalog {
        return catalog.clone();
    }
    let built_in = Catalog::default();
    let mut catalog = built_in.clone();
    for (name, provider) in &config.providers {
        let known = |kind: &str| built_in.providers.get(kind).cloned();
        let mut offered = known(provider.kind()).or_else(|| known(name)).unwrap_or_else(|| {
            let (regions, machine_types) = (Vec::new(), BTreeMap::new());
            ProviderCatalog { display: name.clone(), regions, machine_types }
        });
        let (region, types) = provider.sells();
        if !types.is_empty() {
            offered.machine_types = types;
            offered.regions.clear();
        }
        if let Some(region) = region.filter(|region| !offered.regions.contains(region)) {
            offered.regions.push(region);
        }
        catalog.providers.insert(name.clone(), offered);
    }
    catalog
}

/// What is wrong with the node pools that are declared.
pub(crate) fn pool_complaints(config: &Config) -> Vec<String> {
    let catalog = catalog(config);
    let mut found = Vec::new();
    for (name, pool) in &config.pools {
        let key = format!("pools.{name}");
        if let Err(error) = Name::parse(name) {
            found.push(format!("{key}: {}", error.message));
        }
        let labels = pool.labels.iter().map(|(key, value)| (key.clone(), value.clone().into()));
        if let Err(errors) = Labels::parse(&labels.collect()) {
            found
                .extend(errors.into_iter().map(|error| format!("{key}.labels: {}", error.message)));
        }
        if let Err(errors) = PoolSpec::read(&pool.spec, &Map::new(), &catalog) {
            found.extend(errors.into_iter().map(|error| format!("{key}: {}", error.message)));
        }
        if let Some(autoscaling) = pool.spec.get("autoscaling") {
            let field = format!("{key}.autoscaling");
            let errors = match Autoscaling::parse(autoscaling, &field) {
                Ok(read) => config.metrics_access().check(&read, &field, DECLARED_TENANT),
                Err(errors) => errors,
            };
            found.extend(errors.into_iter().map(|error| format!("{key}: {}", error.message)));
        }
    }
    found
}

/// What does not fit together in the providers.
pub(crate) fn complaints(
    providers: &BTreeMap<String, ProviderOf>,
    machines: &Machines,
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, provider) in providers {
        let key = format!("providers.{name}");
        if !is_name(name) {
            found.push(format!(
                "{key}: a provider's name has lower-case letters, digits and hyphens, and at most 63"
            ));
        }
        found.extend(provider.complaints(&key));
        if provider.needs_server() && machines.server_url.is_none() {
            found.push(format!(
                "machines.server_url: it is missing; machines of {name} must find this server"
            ));
        }
        if provider.needs_agent() && machines.agent == AgentProgram::default() {
            found.push(format!(
                "machines.agent: it is missing; machines of {name} must get the agent: give path, or url \
                 and sha256"
            ));
        }
    }
    found.dedup();
    found
}

impl ProviderOf {
    /// Its word in the file.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            ProviderOf::Simulated(_) => "simulated",
            ProviderOf::Process(_) => "process",
            ProviderOf::Aws(_) => "aws",
            ProviderOf::Gcp(_) => "gcp",
            ProviderOf::Lambda(_) => "lambda",
            ProviderOf::Static(_) => "static",
        }
    }

    /// Its own region, and the machine types that the file itself names.
    fn sells(&self) -> (Option<String>, BTreeMap<String, MachineType>) {
        match self {
            ProviderOf::Simulated(_) => (None, BTreeMap::new()),
            ProviderOf::Process(process) => {
                let sold = |it: &ProcessType| {
                    (it.name.clone(), MachineType { cpus: it.cpus, gpus: it.gpus })
                };
                (Some(process.region.clone()), process.types.iter().map(sold).collect())
            }
            ProviderOf::Static(hosts) => {
                let sold = |host: &StaticHost| {
                    (host.machine_type.clone(), MachineType { cpus: host.cpus, gpus: host.gpus })
                };
                (Some(hosts.region.clone()), hosts.hosts.iter().map(sold).collect())
            }
            ProviderOf::Aws(aws) => (Some(aws.region.clone()), BTreeMap::new()),
            ProviderOf::Gcp(gcp) => (Some(gcp.region.clone()), BTreeMap::new()),
            ProviderOf::Lambda(lambda) => (lambda.region.clone(), BTreeMap::new()),
        }
    }

    /// Whether its machines run elsewhere: a process finds us on this host.
    const fn needs_server(&self) -> bool {
        match self {
            ProviderOf::Simulated(_) | ProviderOf::Process(_) => false,
            ProviderOf::Aws(_)
            | ProviderOf::Gcp(_)
            | ProviderOf::Lambda(_)
            | ProviderOf::Static(_) => true,
        }
    }

    /// Whether its machines must be given an agent: a process runs the one beside this program.
    const fn needs_agent(&self) -> bool {
        self.needs_server()
    }

    fn complaints(&self, key: &str) -> Vec<String> {
        match self {
            ProviderOf::Simulated(_) => Vec::new(),
            ProviderOf::Process(provider) => provider.complaints(key),
            ProviderOf::Aws(provider) => provider.complaints(key),
            ProviderOf::Gcp(provider) => provider.complaints(key),
            ProviderOf::Lambda(provider) => provider.complaints(key),
            ProviderOf::Static(provider) => provider.complaints(key),
        }
    }
}

impl ProcessProvider {
    fn complaints(&self, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(missing(&format!("{key}.region"), &self.region));
        if self.max_processes == 0 {
            found.push(format!("{key}.max_processes: it must be at least 1"));
        }
        let names = self.types.iter().map(|it| it.name.as_str());
        found.extend(twice(&format!("{key}.types"), names));
        for (place, it) in self.types.iter().enumerate() {
            let key = format!("{key}.types[{place}]");
            found.extend(missing(&format!("{key}.name"), &it.name));
            found.extend(price(&format!("{key}.price_per_hour"), it.price_per_hour));
            let known = matches!(it.gpu.as_str(), "auto" | "none") || it.gpu.starts_with("fake:");
            if !known {
                found.push(format!(
                    "{key}.gpu: `{}` is not known; write auto, none or fake:8xH100",
                    it.gpu
                ));
            }
        }
        found
    }
}

impl AwsProvider {
    fn complaints(&self, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(missing(&format!("{key}.region"), &self.region));
        let secrets = [
            ("access_key_id", &self.access_key_id),
            ("secret_access_key", &self.secret_access_key),
            ("session_token", &self.session_token),
        ];
        found.extend(secrets.iter().filter_map(|(name, it)| secret(&format!("{key}.{name}"), it)));
        let (id, keys) = (self.access_key_id.is_given(), self.secret_access_key.is_given());
        if id != keys {
            found.push(format!("{key}: access_key_id and secret_access_key go together"));
        }
        if self.session_token.is_given() && !keys {
            found.push(format!("{key}.session_token: only keys have one"));
        }
        if keys && (self.profile.is_some() || self.credentials_file.is_some()) {
            found.push(format!("{key}: give keys, or a profile, not both"));
        }
        let endpoint = self.endpoint.as_deref();
        found.extend(endpoint.and_then(|url| address(&format!("{key}.endpoint"), url)));
        for (machine, cost) in &self.prices {
            found.extend(price(&format!("{key}.prices.{machine}"), Some(*cost)));
        }
        found
    }
}

impl GcpProvider {
    fn complaints(&self, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(missing(&format!("{key}.project"), &self.project));
        found.extend(missing(&format!("{key}.region"), &self.region));
        found.extend(secret(&format!("{key}.credentials"), &self.credentials));
        if self.disk_gb < 10 {
            found.push(format!("{key}.disk_gb: {} is too small; at least 10", self.disk_gb));
        }
        found
    }
}

impl LambdaProvider {
    fn complaints(&self, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(secret(&format!("{key}.api_key"), &self.api_key));
        if !self.api_key.is_given() {
            found.push(format!(
                "{key}.api_key: it is missing; name a file or an environment variable"
            ));
        }
        found.extend(missing(&format!("{key}.ssh_key"), &self.ssh_key));
        let endpoint = self.endpoint.as_deref();
        found.extend(endpoint.and_then(|url| address(&format!("{key}.endpoint"), url)));
        found
    }
}

impl StaticProvider {
    fn complaints(&self, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        if self.hosts.is_empty() {
            found.push(format!("{key}.hosts: it is missing; name the machines"));
        }
        for (name, file) in [("key_file", &self.key_file), ("known_hosts", &self.known_hosts)] {
            if file.is_none() {
                found.push(format!("{key}.{name}: it is missing"));
            }
        }
        let names = self.hosts.iter().map(|host| host.name.as_str());
        found.extend(twice(&format!("{key}.hosts"), names));
        for (place, host) in self.hosts.iter().enumerate() {
            let key = format!("{key}.hosts[{place}]");
            found.extend(missing(&format!("{key}.name"), &host.name));
            found.extend(price(&format!("{key}.price_per_hour"), host.price_per_hour));
            if host.port == 0 {
                found.push(format!("{key}.port: it must be at least 1"));
            }
        }
        found
    }
}

fn missing(key: &str, text: &str) -> Option<String> {
    text.is_empty().then(|| format!("{key}: it is missing"))
}

fn secret(key: &str, secret: &Secret) -> Option<String> {
    let both = secret.file.is_some() && secret.env.is_some();
    both.then(|| format!("{key}: give file or env, not both"))
}

fn price(key: &str, price: Option<f64>) -> Option<String> {
    let price = price.filter(|price| !price.is_finite() || *price < 0.0)?;
    Some(format!("{key}: {price} is no price; it must be 0 or more"))
}

fn address(key: &str, url: &str) -> Option<String> {
    let known = url.starts_with("https://") || url.starts_with("http://");
    (!known).then(|| format!("{key}: it must start with https:// or http://"))
}

fn twice<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let again = names.filter(|name| !name.is_empty() && !seen.insert(*name));
    again.map(|name| format!("{key}: `{name}` is there twice")).collect()
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-');
    !text.is_empty() && text.len() <= 63 && text.bytes().all(inner) && edges
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
