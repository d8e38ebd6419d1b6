//! The configuration of `argosy server`: one file, flags and environment on top, checked as a whole.
//!
//! The structs below are the only description of it: defaults, the file format and `docs/config.md`
//! all come from them. What a newcomer gets wrong: secrets are never values here, only references.

mod check;

mod docs;

mod duration;

mod source;

pub(crate) use check::{check, conditions, graph, policy};
pub(crate) use docs::docs;
pub(crate) use duration::Duration;
pub(crate) use source::{Override, load, load_under, navarch_of, read};

use crate::failure::Failure;
use argosy_core::access::{Authorization, Role};
use argosy_core::adapter::{AdapterGraph, AdapterSpec, TimeWindow};
use argosy_core::autoscale::{CredentialScope, MetricsAccess};
use argosy_core::catalog::Catalog;
use argosy_core::resource::Kind;
use argosy_core::sentinel::Rules;
use argosy_server::listen;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One section as the documentation shows it.
pub(crate) struct Section {
    about: &'static [&'static str],
    keys: &'static [Key],
}

/// One key of a section.
pub(crate) struct Key {
    name: &'static str,
    about: &'static [&'static str],
    kind: &'static str,
}

/// A section: its struct, its defaults and its documentation.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $section:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $kind:ty = $default:expr ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $section {
            $( $(#[doc = $doc])+ pub(crate) $key: $kind ),+
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $( $key: $default ),+ }
            }
        }

        impl $section {
            pub(crate) const SECTION: Section = Section {
                about: &[$($about),+],
                keys: &[$(
                    Key {
                        name: stringify!($key),
                        about: &[$($doc),+],
                        kind: stringify!($kind),
                    }
                ),+],
            };
        }
    };
}

mod nodes;

pub(crate) use nodes::{BreakerOf, BudgetOf, FleetNodes, Nodes};

pub(crate) mod machines;

pub(crate) use machines::{
    AgentProgram, AwsProvider, DeclaredOf, GcpProvider, LambdaProvider, Machines, ProcessProvider,
    ProcessType, ProviderOf, SimulatedProvider, StaticHost, StaticProvider, catalog,
};

pub(crate) mod navarch;

mod workload;

pub(crate) use workload::{WorkloadKubernetes, WorkloadSlurm, WorkloadSystem, WorkloadWebhook};

section! {
    /// The configuration of `argosy server`.
    Config {
        /// The address to listen on. Without authentication only a loopback address is accepted.
        listen: String = "127.0.0.1:8080".to_owned(),
        /// Where the embedded store keeps its files. One process at a time may use it.
        data_dir: PathBuf = PathBuf::from("argosy-data"),
        /// `embedded`, `memory:` (nothing survives a restart), or `postgres://USER@HOST/DATABASE`.
        store: String = "embedded".to_owned(),
        /// The password for PostgreSQL, by reference. It may not stand in `store` in this file.
        store_password: Secret = Secret::default(),
        /// Which dialect clients get when they do not ask for one: `full`, `mvp` or `upstream`.
        profile: Profile = Profile::Full,
        /// Certificate and key; without them the server speaks plain HTTP.
        tls: Tls = Tls::default(),
        /// Who may come in.
        auth: Auth = Auth::default(),
        /// What clients can cost.
        limits: Limits = Limits::default(),
        /// The adapters of each kind of resource.
        adapters: Adapters = Adapters::default(),
        /// Conditions that CEL rules derive from the reports.
        conditions: Conditions = Conditions::default(),
        /// How adapters and workload systems outside are told.
        webhooks: Webhooks = Webhooks::default(),
        /// When adapters are run again.
        sentinel: Sentinel = Sentinel::default(),
        /// What the node plane goes by.
        nodes: Nodes = Nodes::default(),
        /// Who runs the work on nodes.
        workload_system: WorkloadSystem = WorkloadSystem::default(),
        /// Where machines come from, by the name that pools give: `NAME: {type: aws, …}`.
        providers: BTreeMap<String, ProviderOf> = BTreeMap::new(),
        /// How machines are bought, watched and returned.
        machines: Machines = Machines::default(),
        /// Bearer tokens for the servers that autoscalers measure pools by, by the name that specs give. Each is
        /// for addresses below one URL, and for the node pools of one tenant.
        metrics_credentials: BTreeMap<String, MetricsCredential> = BTreeMap::new(),
        /// Node pools of the cluster `default`, by name: those that are not there are made at each start.
        pools: BTreeMap<String, DeclaredOf> = BTreeMap::new(),
        /// What is forgotten, and when.
        retention: Retention = Retention::default(),
        /// What keeps clusters and node pools from being deleted by mistake.
        deletion: Deletion = Deletion::default(),
        /// Providers, regions and machine types; what is given replaces the built-in catalog.
        catalog: Option<Catalog> = None,
        /// The cloud that is only simulated.
        simulated_cloud: SimulatedCloud = SimulatedCloud::default(),
        /// What the server writes about itself, to standard error.
        log: Log = Log::default(),
    }
}

section! {
    /// Certificate and key of the server; both or none.
    Tls {
        /// A PEM file: the certificate, then those between it and the root.
        cert_file: Option<PathBuf> = None,
        /// A PEM file with the private key.
        key_file: Option<PathBuf> = None,
    }
}

section! {
    /// Who may come in. With neither `tokens_file` nor `jwt` everybody is an administrator.
    Auth {
        /// A file of hashed tokens; `argosy token new` prints entries for it.
        tokens_file: Option<PathBuf> = None,
        /// The issuers whose JSON Web Tokens are accepted.
        jwt: Vec<Issuer> = Vec::new(),
        /// `team`: a resource with a `team` label is for that team only. `none`: teams do not matter.
        authorization: Authorization = Authorization::Team,
        /// Accept requests without authentication on addresses that are not loopback.
        none_anywhere: bool = false,
    }
}

section! {
    /// One issuer of JSON Web Tokens.
    Issuer {
        /// Exactly what the claim `iss` says.
        issuer: String = String::new(),
        /// For whom its tokens must be made: one of these must be in `aud`.
        audience: Vec<String> = Vec::new(),
        /// The issuer's keys, as a file. Exactly one of `jwks_file` and `jwks_url`.
        jwks_file: Option<PathBuf> = None,
        /// The issuer's keys, as an address: https, or http on this machine.
        jwks_url: Option<String> = None,
        /// The role of a token without one: `viewer`, `operator`, `admin`, `adapter` or `node`.
        default_role: Role = Role::Viewer,
        /// Which claims mean what.
        claims: Claims = Claims::default(),
    }
}

section! {
    /// Which claims of a token mean what.
    Claims {
        /// Who the caller is; tried in order.
        subject: Vec<String> = vec!["email".to_owned(), "sub".to_owned()],
        /// The caller's team, or a list of teams.
        teams: String = "teams".to_owned(),
        /// The caller's role.
        role: String = "role".to_owned(),
        /// The caller's tenant.
        tenant: String = "tenant".to_owned(),
        /// The adapter the caller is.
        adapter: String = "adapter".to_owned(),
        /// The node the caller is.
        node: String = "node".to_owned(),
    }
}

section! {
    /// What clients can cost.
    Limits {
        /// How many connections may be open at the same time; more wait.
        connections: usize = listen::Limits::default().connections_max,
        /// How long a client may take to send the head of a request.
        head_time: Duration = Duration::from_std(listen::Limits::default().head_max),
        /// How long a connection may stay open without a request.
        idle_time: Duration = Duration::from_std(listen::Limits::default().idle_max),
        /// How long requests may take to finish when the server stops.
        shutdown_time: Duration = Duration::from_std(listen::Limits::default().drain_max),
    }
}

section! {
    /// The adapters of each kind of resource. A list that is given replaces the built-in one.
    Adapters {
        /// The adapters of clusters.
        cluster: Vec<Adapter> = Adapter::built_in(Kind::Cluster),
        /// The adapters of node pools.
        nodepool: Vec<Adapter> = Adapter::built_in(Kind::NodePool),
    }
}

section! {
    /// One adapter.
    Adapter {
        /// Its name: lower-case letters, digits and hyphens.
        name: String = String::new(),
        /// The adapters that must be done first. Cleanup goes the other way.
        depends_on: Vec<String> = Vec::new(),
        /// Whether a resource waits for it to become Ready.
        required: bool = true,
        /// How long it may take before it counts as stalled.
        deadline: Duration = Duration::from_secs(30 * 60),
        /// `built-in`: this process does the work. `webhook`: somebody is told at `url`.
        /// `external`: somebody watches the API.
        runner: Runner = Runner::BuiltIn,
        /// Where events go, for `webhook`.
        url: Option<String> = None,
        /// What events are signed with, for `webhook`, by reference.
        secret: Secret = Secret::default(),
    }
}

impl Adapter {
    /// The adapters that run in this process, as core has them.
    fn built_in(kind: Kind) -> Vec<Self> {
        let of = |spec: &AdapterSpec| Self {
            name: spec.name.to_string(),
            depends_on: spec.depends_on.iter().map(ToString::to_string).collect(),
            required: spec.required,
            deadline: Duration::from_signed(spec.deadline),
            ..Self::default()
        };
        AdapterGraph::default().of(kind).iter().map(of).collect()
    }
}

section! {
    /// A secret, by reference: exactly one of the two, or neither where a secret is optional.
    Secret {
        /// The file that holds it. A line end at its end does not count.
        file: Option<PathBuf> = None,
        /// The environment variable that holds it.
        env: Option<String> = None,
    }
}

section! {
    /// A bearer token for a server that pools are measured by: exactly one of `file` and `env`. Specs that name it
    /// with another address, or in another tenant, are refused.
    MetricsCredential {
        /// The file that holds it. A line end at its end does not count.
        file: Option<PathBuf> = None,
        /// The environment variable that holds it.
        env: Option<String> = None,
        /// The beginning of the addresses that it is sent to, like `https://prometheus.example/`: https, or http on a
        /// loopback address.
        url: String = String::new(),
        /// The tenant whose node pools may name it.
        tenant: String = "default".to_owned(),
    }
}

impl MetricsCredential {
    /// Where the token is.
    pub(crate) fn secret(&self) -> Secret {
        Secret { file: self.file.clone(), env: self.env.clone() }
    }

    fn scope(&self) -> CredentialScope {
        CredentialScope { url: self.url.clone(), tenant: self.tenant.clone() }
    }
}

impl Config {
    /// What node pools may be measured by.
    pub(crate) fn metrics_access(&self) -> MetricsAccess {
        let scopes = self.metrics_credentials.iter();
        let credentials = scopes.map(|(name, it)| (name.clone(), it.scope())).collect();
        MetricsAccess { credentials, ..MetricsAccess::default() }
    }
}

section! {
    /// Conditions that CEL rules derive from the reports, beside the built-in ones.
    Conditions {
        /// Rules for clusters.
        cluster: Vec<ConditionRule> = Vec::new(),
        /// Rules for node pools.
        nodepool: Vec<ConditionRule> = Vec::new(),
    }
}

section! {
    /// One rule. Its expressions see `resource` and `statuses`, the reports so far.
    ConditionRule {
        /// The condition's type: a CamelCase word that no built-in condition has.
        r#type: String = String::new(),
        /// Whether the condition is there at all: an expression that gives true or false.
        when: String = "true".to_owned(),
        /// Whether it holds: an expression that gives `"True"` or `"False"`.
        status: String = String::new(),
        /// One word: an expression that gives a text.
        reason: String = String::new(),
        /// A sentence: an expression that gives a text.
        message: String = "\"\"".to_owned(),
    }
}

section! {
    /// How adapters and workload systems outside are told.
    Webhooks {
        /// Addresses that are allowed although they are not public: host names, addresses or networks.
        allow: Vec<String> = Vec::new(),
    }
}

section! {
    /// When adapters are run again although nothing changed, and which clocks are believed.
    Sentinel {
        /// While the resource is not ready.
        resync_not_ready: Duration = Duration::from_signed(Rules::default().resync_not_ready),
        /// When it is, to find drift.
        resync_ready: Duration = Duration::from_signed(Rules::default().resync_ready),
        /// The first wait after a failure; each one after it is twice as long.
        backoff_first: Duration = Duration::from_signed(Rules::default().backoff_first),
        /// The longest wait after failures.
        backoff_max: Duration = Duration::from_signed(Rules::default().backoff_max),
        /// How old a report may be when it arrives.
        report_past: Duration = Duration::from_signed(TimeWindow::default().past),
        /// How far ahead of ours a reporter's clock may be.
        report_future: Duration = Duration::from_signed(TimeWindow::default().future),
    }
}

section! {
    /// What keeps clusters and node pools from being deleted by mistake.
    Deletion {
        /// Label every new cluster and node pool `argosy.dev/protected: "true"`: DELETE, shrinking and TERMINATE are
        /// refused until somebody takes the label off, or an admin forces it with a reason.
        protect: bool = false,
    }
}

section! {
    /// What is forgotten, and when.
    Retention {
        /// How long a deleted resource is remembered by name.
        tombstones: Duration = Duration::from_days(7),
        /// How long an `Idempotency-Key` is remembered.
        idempotency_keys: Duration = Duration::from_days(1),
        /// How long audit records are kept.
        audit: Duration = Duration::from_days(365),
        /// How long the history of statuses is kept.
        status_history: Duration = Duration::from_days(30),
    }
}

section! {
    /// The cloud that is only simulated: for demonstrations and tests. It makes nothing.
    SimulatedCloud {
        /// Whether built-in adapters work on it.
        enabled: bool = false,
        /// Whether everything happens at once, instead of after latencies like a real cloud's.
        instant: bool = false,
    }
}

section! {
    /// What the server writes about itself, to standard error.
    Log {
        /// `text` for people, `json` for collectors.
        format: LogFormat = LogFormat::Text,
        /// The least important lines that are written: `error`, `warn`, `info`, `debug` or `trace`.
        level: LogLevel = LogLevel::Info,
    }
}

/// Which dialect clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Profile {
    /// All phases, merge patches, a node pool's id is its name.
    Full,
    /// Two phases.
    Mvp,
    /// As HyperFleet's own API: replacing patches, a node pool's id is its uid.
    Upstream,
}

/// Who does an adapter's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Runner {
    BuiltIn,
    Webhook,
    External,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

/// The least important log lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// A person must look.
    Error,
    /// Something is wrong.
    Warn,
    /// Work done.
    Info,
    /// More.
    Debug,
    /// Everything.
    Trace,
}

impl Auth {
    /// Whether everybody is let in.
    pub(crate) fn is_none(&self) -> bool {
        self.tokens_file.is_none() && self.jwt.is_empty()
    }
}

impl Secret {
    pub(crate) fn is_given(&self) -> bool {
        self.file.is_some() || self.env.is_some()
    }

    /// Reads the secret; `None` if there is no reference. `key` is named in complaints.
    pub(crate) fn read(&self, key: &str) -> Result<Option<String>, Failure> {
        match (&self.file, &self.env) {
            (Some(file), _) => read_secret_file(file, key).map(Some),
            (None, Some(name)) => match std::env::var(name) {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(Failure::usage(format!(
                    "{key}.env: the environment variable {name} is not set"
                ))),
            },
            (None, None) => Ok(None),
        }
    }
}

fn read_secret_file(file: &Path, key: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("{key}.file: cannot read {}", file.display())).why(error)
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests;
