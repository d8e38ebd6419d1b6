//! The providers of machines, made from the configuration. Nobody is asked anything yet: a cloud that is down
//! must not keep us from starting.

use super::hosts::reachable;
use crate::config::machines::{
    AwsProvider, GcpProvider, LambdaProvider, ProcessProvider, ProviderOf, StaticProvider,
};
use crate::config::{Config, catalog};
use crate::failure::Failure;
use argosy_control::clock::Clock;
use argosy_control::provider::Provider;
use argosy_providers::boot::{self, AgentSource, Boot, Sha256};
use argosy_providers::simulated::{Latencies, SimulatedCloud};
use argosy_providers::user_data::UserData;
use argosy_providers::{Credential, aws, gcp, lambda, process, ssh};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Providers, by their name in the configuration.
pub(super) type Clouds = BTreeMap<String, Arc<dyn Provider>>;

/// Those whose machines are processes that end with the server and begin again with it.
pub(super) type Housed = Vec<Arc<process::Processes>>;

/// The simulated cloud's file in the data directory.
const CLOUD_FILE: &str = "simulated-cloud.json";

/// Opens the simulated cloud, if anybody buys there.
pub(super) fn simulated(config: &Config, clock: Clock) -> Result<Option<SimulatedCloud>, Failure> {
    let instant = config.providers.values().find_map(|provider| match provider {
        ProviderOf::Simulated(simulated) => Some(simulated.instant),
        ProviderOf::Process(_)
        | ProviderOf::Aws(_)
        | ProviderOf::Gcp(_)
        | ProviderOf::Lambda(_)
        | ProviderOf::Static(_) => None,
    });
    if !config.simulated_cloud.enabled && instant.is_none() {
        return Ok(None);
    }
    let catalog = catalog(config);
    let latencies = match config.simulated_cloud.instant || instant == Some(true) {
        true => Latencies::INSTANT,
        false => Latencies::default(),
    };
    if config.store == "memory:" {
        return Ok(Some(SimulatedCloud::in_memory(catalog, clock, latencies)));
    }
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed("the simulated cloud cannot be used").why(error)
    };
    std::fs::create_dir_all(&config.data_dir).map_err(|error| failed(&error))?;
    let file = config.data_dir.join(CLOUD_FILE);
    SimulatedCloud::open(&file, catalog, clock, Some(latencies))
        .map(Some)
        .map_err(|error| failed(&error))
}

/// Every provider of the file; and, with a simulated cloud, that one under every other name of the catalog.
pub(super) fn clouds(
    config: &Config,
    simulated: Option<&SimulatedCloud>,
    server: SocketAddr,
    clock: Clock,
) -> Result<(Clouds, Housed), Failure> {
    let (mut clouds, mut housed) = (Clouds::new(), Housed::new());
    if let Some(cloud) = simulated.filter(|_| config.simulated_cloud.enabled) {
        for name in catalog(config).providers.into_keys() {
            let provider = Arc::new(cloud.named(&name));
            clouds.insert(name, provider);
        }
    }
    for (name, provider) in &config.providers {
        let key = format!("providers.{name}");
        let maker = Maker { config, key: &key, server, clock };
        let made: Arc<dyn Provider> = match provider {
            ProviderOf::Simulated(_) => match simulated {
                Some(cloud) => Arc::new(cloud.named(name)),
                None => continue,
            },
            ProviderOf::Process(it) => {
                let processes = Arc::new(maker.process(name, it)?);
                housed.extend(it.end_with_server.then(|| processes.clone()));
                processes
            }
            ProviderOf::Aws(it) => Arc::new(maker.aws(it)?),
            ProviderOf::Gcp(it) => Arc::new(maker.gcp(it)?),
            ProviderOf::Lambda(it) => Arc::new(maker.lambda(it)?),
            ProviderOf::Static(it) => Arc::new(maker.hosts(name, it)?),
        };
        clouds.insert(name.clone(), made);
    }
    Ok((clouds, housed))
}

/// What one provider is made with.
struct Maker<'a> {
    config: &'a Config,
    /// Where it stands in the file.
    key: &'a str,
    server: SocketAddr,
    clock: Clock,
}

impl Maker<'_> {
    fn wrong(&self, error: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{} cannot be used", self.key)).why(error)
    }

    /// How machines get their agent.
    fn boot(&self, setup_commands: &[String]) -> Result<Boot, Failure> {
        let machines = &self.config.machines;
        let token = machines.agent_token.read("machines.agent_token")?;
        let token = token.map(|token| boot::AgentToken::new(&token)).transpose();
        let agent = match (&machines.agent.path, &machines.agent.url, &machines.agent.sha256) {
            (Some(path), _, _) => AgentSource::File(path.clone()),
            (None, Some(url), Some(sum)) => AgentSource::Url {
                url: url.clone(),
                sha256: Sha256::parse(sum).map_err(|error| self.wrong(error))?,
            },
            (None, _, _) => AgentSource::File(beside_us()?),
        };
        let read = |file: &PathBuf| {
            std::fs::read_to_string(file).map_err(|error| {
                Failure::usage(format!("machines.ca_file: cannot read {}", file.display()))
                    .why(error)
            })
        };
        let boot = Boot {
            server: machines.server_url.clone().unwrap_or_else(|| self.own_address()),
            agent,
            token: token.map_err(|error| Failure::usage("machines.agent_token").why(error))?,
            ca_pem: machines.ca_file.as_ref().map(read).transpose()?,
            extra_args: machines.agent_args.clone(),
            setup_commands: setup_commands.to_vec(),
        };
        boot.check().map_err(|error| self.wrong(error))?;
        Ok(boot)
    }

    fn user_data(&self, setup_commands: &[String]) -> Result<UserData, Failure> {
        let boot = self.boot(setup_commands)?;
        Ok(UserData::new(move |purchase| boot.user_data(purchase)))
    }

    /// This server, as machines on this host see it.
    fn own_address(&self) -> String {
        let scheme = if self.config.tls.cert_file.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", reachable(self.server))
    }

    fn process(&self, name: &str, it: &ProcessProvider) -> Result<process::Processes, Failure> {
        let dir = || self.config.data_dir.join("machines").join(name);
        let machine_type = |of: &crate::config::machines::ProcessType| process::MachineType {
            name: of.name.clone(),
            gpu: of.gpu.clone(),
            cpus: of.cpus,
            gpus: of.gpus,
            price_per_hour: of.price_per_hour,
        };
        let settings = process::Settings {
            boot: self.boot(&[])?,
            dir: it.dir.clone().unwrap_or_else(dir),
            region: it.region.clone(),
            zones: it.zones.clone(),
            types: it.types.iter().map(machine_type).collect(),
            max_processes: it.max_processes,
        };
        process::Processes::new(settings, self.clock).map_err(|error| self.wrong(error))
    }

    fn aws(&self, it: &AwsProvider) -> Result<aws::Aws, Failure> {
        let read = |member: &str, secret: &crate::config::Secret| {
            secret.read(&format!("{}.{member}", self.key))
        };
        let id = read("access_key_id", &it.access_key_id)?;
        let key = read("secret_access_key", &it.secret_access_key)?;
        let session = read("session_token", &it.session_token)?;
        let credentials = match (id, key, &it.credentials_file) {
            (Some(id), Some(key), _) => {
                aws::Credentials::Keys(aws::Keys::new(&id, &key, session.as_deref()))
            }
            (_, _, Some(path)) => aws::Credentials::File {
                path: path.clone(),
                profile: it.profile.clone().unwrap_or_else(|| "default".to_owned()),
            },
            (_, _, None) => aws::Credentials::Found { profile: it.profile.clone() },
        };
        let endpoint = it.endpoint.as_deref().map(str::parse).transpose();
        let user_data = self.user_data(&it.setup_commands)?;
        let settings = aws::Settings {
            region: it.region.clone(),
            credentials,
            endpoint: endpoint.map_err(|error| self.wrong(error))?,
            subnets: it.subnets.clone(),
            security_groups: it.security_groups.clone(),
            image: it.image.clone().unwrap_or_default(),
            key_name: it.key_name.clone(),
            instance_profile: it.instance_profile.clone(),
            user_data,
            prices: it.prices.clone(),
            rates: aws::Rates::default(),
        };
        aws::Aws::new(settings, self.clock).map_err(|error| self.wrong(error))
    }

    fn gcp(&self, it: &GcpProvider) -> Result<gcp::Gcp, Failure> {
        let key = it.credentials.read(&format!("{}.credentials", self.key))?;
        let credentials = match key {
            Some(key) => gcp::Credentials::Key(Credential::new(&key)),
            None => gcp::Credentials::Metadata,
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let settings = gcp::Settings {
            image: text(&it.image),
            disk_gb: it.disk_gb,
            disk_type: it.disk_type.clone(),
            network: it.network.clone(),
            subnetwork: text(&it.subnetwork),
            external_ip: it.external_ip,
            service_account: text(&it.service_account),
            network_tags: it.network_tags.clone(),
            dns_targets: it.dns_targets.clone(),
            user_data: self.user_data(&it.setup_commands)?,
            ..gcp::Settings::new(&it.project, credentials)
        };
        let settings = match &it.subnetwork_range {
            Some(range) => gcp::Settings { subnetwork_range: range.clone(), ..settings },
            None => settings,
        };
        gcp::Gcp::new(settings, self.clock).map_err(|error| self.wrong(error))
    }

    fn lambda(&self, it: &LambdaProvider) -> Result<lambda::Lambda, Failure> {
        let key = it.api_key.read(&format!("{}.api_key", self.key))?.unwrap_or_default();
        let settings = lambda::Settings::new(Credential::new(&key), &it.ssh_key);
        let settings = lambda::Settings {
            file_systems: it.file_systems.clone(),
            image_family: it.image_family.clone().unwrap_or_default(),
            user_data: self.user_data(&it.setup_commands)?,
            endpoint: it.endpoint.clone().unwrap_or(settings.endpoint),
            ..settings
        };
        lambda::Lambda::new(settings, self.clock).map_err(|error| self.wrong(error))
    }

    fn hosts(&self, name: &str, it: &StaticProvider) -> Result<ssh::Hosts, Failure> {
        let host = |of: &crate::config::machines::StaticHost| ssh::Host {
            name: of.name.clone(),
            address: of.address.clone().unwrap_or_else(|| of.name.clone()),
            port: of.port,
            user: of.user.clone(),
            machine_type: of.machine_type.clone(),
            cpus: of.cpus,
            gpus: of.gpus,
            zone: of.zone.clone().unwrap_or_default(),
            price_per_hour: of.price_per_hour,
            labels: of.labels.clone(),
        };
        let settings = ssh::Settings {
            hosts: it.hosts.iter().map(host).collect(),
            region: it.region.clone(),
            key_file: it.key_file.clone().unwrap_or_default(),
            known_hosts: it.known_hosts.clone().unwrap_or_default(),
            sudo: it.sudo,
            ssh: it.ssh.clone(),
            ssh_config: it.ssh_config.clone(),
            state: self.config.data_dir.join("hosts").join(name),
            boot: self.boot(&it.setup_commands)?,
            root: String::new(),
        };
        ssh::Hosts::new(settings, self.clock).map_err(|error| self.wrong(error))
    }
}

/// The agent's program that was built with this one.
fn beside_us() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::failed("cannot find our own program").why(error))?;
    Ok(own.with_file_name("argosy-agent"))
}
