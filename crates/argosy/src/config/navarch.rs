//! Navarch's configuration file, read as ours.
//!
//! Upstream reads leniently: what it does not know it drops without a word. Here everything that is dropped,
//! was ignored there, or means something else here is a remark, which people see.

use super::{
    AwsProvider, Config, DeclaredOf, Duration, GcpProvider, LambdaProvider, ProcessProvider,
    ProcessType, ProviderOf, Secret, WorkloadWebhook,
};
use crate::failure::Failure;
use argosy_core::name::Name;
use argosy_core::nearest::nearest;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The sections of Navarch's file. Ours has one of them, too, with another form.
const SECTIONS: [&str; 4] = ["server", "providers", "pools", "defaults"];

/// Where it listens if the file does not say.
const PORT: u16 = 50051;

/// The longest a call of ours to a workload system may take.
const NOTIFIER_TIMEOUT_MAX: SignedDuration = SignedDuration::from_secs(10);

/// The shortest time after which a node is lost: heartbeats come once a second at most.
const TIMEOUT_MIN: SignedDuration = SignedDuration::from_secs(3);

/// What a file of Navarch's comes to.
#[derive(Debug)]
pub(crate) struct Converted {
    /// Ours.
    pub(crate) config: Config,
    /// What a person should know, in the order of the file: the key, and a sentence.
    pub(crate) remarks: Vec<(String, String)>,
}

/// Whether a file is Navarch's, by its shape: `server` and `defaults` are no keys of ours, and its pools name
/// an instance type.
pub(crate) fn is_navarch(file: &Value) -> bool {
    let Some(file) = file.as_object().filter(|file| !file.is_empty()) else { return false };
    let theirs = file.keys().all(|key| SECTIONS.contains(&key.as_str()));
    let pools = file.get("pools").and_then(Value::as_object);
    let typed =
        |pool: &Value| pool.get("instance_type").is_some() || pool.get("max_nodes").is_some();
    let of_theirs = pools.is_some_and(|pools| !pools.is_empty() && pools.values().all(typed));
    theirs && (file.contains_key("server") || file.contains_key("defaults") || of_theirs)
}

/// Reads it as ours.
///
/// # Errors
/// Everything in it that cannot be understood, at once.
pub(crate) fn convert(file: &Value) -> Result<Converted, Failure> {
    let mut walk = Walk::default();
    let mut file = walk.object("", file.clone());
    let mut config = Config::default();
    let mut server = walk.take(&mut file, "", "server");
    walk.server(&mut server, &mut config);
    walk.rest("server", &server);
    let defaults = walk.take(&mut file, "", "defaults");
    let pools = walk.take(&mut file, "", "pools");
    let providers = walk.take(&mut file, "", "providers");
    walk.rest("", &file);
    walk.providers(providers, &mut config);
    for (name, pool) in pools {
        walk.pool(&name, pool, &defaults, &mut config);
    }
    if config.machines.server_url.is_none() && config.providers.values().any(is_remote) {
        config.machines.server_url = Some(format!("http://localhost:{}", port(&config.listen)));
        walk.remark(
            "server.external_address",
            "it is missing, so machines are told http://localhost as upstream does, and will not find this \
             server: give an address that they can reach",
        );
    }
    if config.providers.values().any(is_remote) {
        config.machines.agent.path = Some(PathBuf::from("/usr/local/bin/argosy-agent"));
        walk.remark(
            "machines.agent",
            "upstream leaves it to setup_commands to bring the agent; here it is expected in the image at \
             this path: change it, or give url and sha256",
        );
    }
    let mut errors = walk.errors.into_iter();
    match errors.next() {
        Some(first) => Err(errors.fold(Failure::usage(first), Failure::why)),
        None => Ok(Converted { config, remarks: walk.remarks }),
    }
}

const fn is_remote(provider: &ProviderOf) -> bool {
    match provider {
        ProviderOf::Aws(_) | ProviderOf::Gcp(_) | ProviderOf::Lambda(_) | ProviderOf::Static(_) => {
            true
        }
        ProviderOf::Simulated(_) | ProviderOf::Process(_) => false,
    }
}

fn port(listen: &str) -> &str {
    listen.rsplit(':').next().unwrap_or(listen)
}

/// Ours as a file: what differs from the defaults, below what a person should know.
pub(crate) fn yaml(converted: &Converted) -> String {
    let mut text = String::from("# Converted from a configuration file of Navarch.\n");
    for (key, sentence) in &converted.remarks {
        text.push_str(&format!("#\n# {key}: {sentence}\n"));
    }
    let of = |config: &Config| serde_json::to_value(config).unwrap_or_default();
    let changed = difference(&of(&converted.config), &of(&Config::default()));
    text.push_str(&crate::output::document(&changed.unwrap_or(json!({})), true));
    text
}

/// What of a value is not in another; `None` if all of it is.
fn difference(value: &Value, base: &Value) -> Option<Value> {
    match (value, base) {
        (Value::Object(value), Value::Object(base)) if !base.is_empty() => {
            let kept = value.iter().filter_map(|(key, value)| {
                let base = base.get(key).unwrap_or(&Value::Null);
                Some((key.clone(), difference(value, base)?))
            });
            Some(Value::Object(kept.collect())).filter(|kept| kept != &json!({}))
        }
        (value, base) if value == base => None,
        (Value::Object(members), _) => {
            // A section of its own: what is not set in it needs no line.
            let said = members.iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(said.map(|(key, value)| (key.clone(), value.clone())).collect()))
        }
        (value, _) => Some(value.clone()),
    }
}

/// Collects remarks and errors on the way through a file.
#[derive(Debug, Default)]
struct Walk {
    remarks: Vec<(String, String)>,
    errors: Vec<String>,
}

impl Walk {
    fn remark(&mut self, key: impl Into<String>, sentence: impl Into<String>) {
        self.remarks.push((key.into(), sentence.into()));
    }

    fn object(&mut self, key: &str, value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            Value::Null => Map::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.errors.push(format!("{key}: it must be a mapping"));
                Map::new()
            }
        }
    }

    fn take(&mut self, map: &mut Map<String, Value>, at: &str, name: &str) -> Map<String, Value> {
        let value = map.remove(name).unwrap_or_default();
        self.object(&dotted(at, name), value)
    }

    fn text(&mut self, map: &mut Map<String, Value>, at: &str, name: &str) -> Option<String> {
        match map.remove(name)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.errors.push(format!("{}: it must be a text", dotted(at, name)));
                None
            }
        }
    }

    fn texts(&mut self, map: &mut Map<String, Value>, at: &str, name: &str) -> Vec<String> {
        let value = match map.remove(name) {
            None | Some(Value::Null) => return Vec::new(),
            Some(value) => value,
        };
        serde_json::from_value(value).unwrap_or_else(|_| {
            self.errors.push(format!("{}: it must be a list of texts", dotted(at, name)));
            Vec::new()
        })
    }

    fn count(&mut self, map: &mut Map<String, Value>, at: &str, name: &str) -> Option<u32> {
        let value = map.remove(name).filter(|value| !value.is_null())?;
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        if count.is_none() {
            self.errors.push(format!("{}: it must be a whole number, 0 or more", dotted(at, name)));
        }
        count
    }

    /// A duration as Go writes it: `1m30s`.
    fn span(
        &mut self,
        map: &mut Map<String, Value>,
        at: &str,
        name: &str,
    ) -> Option<SignedDuration> {
        let text = self.text(map, at, name)?;
        let span = go_duration(&text);
        if span.is_none() {
            let key = dotted(at, name);
            self.errors.push(format!("{key}: `{text}` is no duration; write it like 30s or 1m30s"));
        }
        span
    }

    /// What is left is known to nobody, or only to Navarch's documents.
    fn rest(&mut self, at: &str, map: &Map<String, Value>) {
        const DOCUMENTED: [&str; 7] = [
            "ip_wait_timeout",
            "ssh_timeout",
            "ssh_connect_timeout",
            "command_timeout",
            "instance_manager",
            "grpc_port",
            "credentials_file",
        ];
        const KNOWN: [&str; 36] = [
            "address",
            "external_address",
            "heartbeat_interval",
            "heartbeat_timeout",
            "health_check_interval",
            "autoscale_interval",
            "health_policy",
            "notifier",
            "type",
            "webhook",
            "cordon_url",
            "uncordon_url",
            "drain_url",
            "drain_status_url",
            "timeout",
            "headers",
            "api_key_env",
            "project",
            "zone",
            "region",
            "gpu_count",
            "provider",
            "providers",
            "strategy",
            "instance_type",
            "zones",
            "ssh_keys",
            "min_nodes",
            "max_nodes",
            "cooldown",
            "autoscaling",
            "health",
            "labels",
            "setup_commands",
            "ssh_user",
            "ssh_private_key_path",
        ];
        for key in map.keys() {
            let shown = crate::output::clean(&dotted(at, key));
            let sentence = if DOCUMENTED.contains(&key.as_str()) {
                "Navarch's documents name it, and its program never read it; it is dropped"
                    .to_owned()
            } else if let Some(near) = nearest(key, KNOWN).filter(|near| near != key) {
                format!("nobody knows it; did you mean `{near}`? Upstream drops it without a word")
            } else {
                "nobody knows it; upstream drops it without a word, and so is it here".to_owned()
            };
            self.remark(shown, sentence);
        }
    }

    fn server(&mut self, server: &mut Map<String, Value>, config: &mut Config) {
        let at = "server";
        let address = self.text(server, at, "address");
        config.listen = match address.as_deref() {
            None => {
                self.remark(
                    "server.address",
                    format!(
                        "it is missing; upstream listens on all interfaces at {PORT}, without a password. \
                         Here it is 127.0.0.1 until there is authentication: then set `listen`"
                    ),
                );
                format!("127.0.0.1:{PORT}")
            }
            Some(open) if open.starts_with(':') => {
                self.remark(
                    "server.address",
                    format!(
                        "`{open}` means all interfaces, without a password. Here it is 127.0.0.1 until there \
                         is authentication: then set `listen` to 0.0.0.0{open}"
                    ),
                );
                format!("127.0.0.1{open}")
            }
            Some(address) => address.replace("localhost:", "127.0.0.1:"),
        };
        config.machines.server_url = self.text(server, at, "external_address");
        if let Some(every) = self.span(server, at, "heartbeat_interval") {
            config.nodes.heartbeat = self.whole("server.heartbeat_interval", every);
        }
        if let Some(after) = self.span(server, at, "heartbeat_timeout") {
            // Before a node is lost it is suspect, and before that it must have missed a heartbeat.
            let after = after.max(TIMEOUT_MIN);
            let nodes = &mut config.nodes;
            let suspect = SignedDuration::from_secs(after.as_secs() * 2 / 3);
            let suspect = nodes.suspect_after.signed().min(suspect);
            let beat = nodes.stream_heartbeat.signed().min(suspect / 2);
            nodes.unreachable_after = Duration::from_signed(after);
            nodes.suspect_after = Duration::from_signed(suspect);
            nodes.stream_heartbeat = Duration::from_secs(beat.as_secs().max(1));
            self.remark(
                "server.heartbeat_timeout",
                "it makes a node Unreachable here, which is not yet sick: what is done about it comes after \
                 nodes.act_after, inside the budgets",
            );
        }
        if let Some(every) = self.span(server, at, "health_check_interval") {
            config.nodes.health_check = self.whole("server.health_check_interval", every);
        }
        if let Some(every) = self.span(server, at, "autoscale_interval") {
            config.machines.autoscale_interval = Duration::from_signed(every);
        }
        config.nodes.policy_file = self.text(server, at, "health_policy").map(PathBuf::from);
        let mut notifier = self.take(server, at, "notifier");
        self.notifier(&mut notifier, config);
        self.rest("server.notifier", &notifier);
    }

    /// Upstream sends whole seconds to nodes; half a second is 0 there, which ends every daemon.
    fn whole(&mut self, key: &str, every: SignedDuration) -> Duration {
        let seconds = every.as_secs().max(1);
        let rounded = SignedDuration::from_secs(seconds);
        if rounded != every {
            self.remark(key, format!("only whole seconds reach a node; it is {seconds}s here"));
        }
        Duration::from_signed(rounded)
    }

    fn notifier(&mut self, notifier: &mut Map<String, Value>, config: &mut Config) {
        let at = "server.notifier";
        let kind = self.text(notifier, at, "type");
        let mut webhook = self.take(notifier, at, "webhook");
        match kind.as_deref() {
            None | Some("" | "noop") => {
                if !webhook.is_empty() {
                    self.remark(
                        format!("{at}.webhook"),
                        "its type is not `webhook`, so upstream never calls it; it is dropped",
                    );
                }
                return;
            }
            Some("webhook") => {}
            Some(other) => {
                self.errors.push(format!(
                    "{at}.type: `{other}` is not known; upstream takes it for `noop` and tells nobody. \
                     Write noop or webhook"
                ));
                return;
            }
        }
        let at = "server.notifier.webhook";
        let mut told = WorkloadWebhook {
            cordon_url: self.text(&mut webhook, at, "cordon_url"),
            uncordon_url: self.text(&mut webhook, at, "uncordon_url"),
            drain_url: self.text(&mut webhook, at, "drain_url"),
            drain_status_url: self.text(&mut webhook, at, "drain_status_url"),
            ..WorkloadWebhook::default()
        };
        if told.drain_status_url.is_some() {
            self.remark(
                format!("{at}.drain_status_url"),
                "upstream never asks it; here a drain ends when it says so",
            );
        }
        if let Some(timeout) = self.span(&mut webhook, at, "timeout") {
            let allowed = timeout.min(NOTIFIER_TIMEOUT_MAX);
            if allowed < timeout {
                self.remark(
                    format!("{at}.timeout"),
                    "one call may take 10s at most here; it is tried again after that",
                );
            }
            told.timeout = Duration::from_signed(allowed);
        }
        let headers = self.take(&mut webhook, at, "headers");
        for (name, value) in headers {
            let Value::String(value) = value else {
                self.errors.push(format!("{at}.headers.{name}: it must be a text"));
                continue;
            };
            if value.contains("${") || value.to_ascii_lowercase().starts_with("bearer ") {
                self.remark(
                    format!("{at}.headers.{name}"),
                    "it is sent as it is written, variables are not filled in; a secret does not belong in \
                     this file: sign with workload_system.webhook.secret instead",
                );
            }
            told.headers.insert(name, value);
        }
        self.rest(at, &webhook);
        let urls = [&told.cordon_url, &told.uncordon_url, &told.drain_url, &told.drain_status_url];
        let hosts: BTreeSet<String> =
            urls.into_iter().flatten().filter_map(|url| host(url)).collect();
        config.webhooks.allow.extend(hosts.into_iter().inspect(|host| {
            self.remarks.push((
                "webhooks.allow".to_owned(),
                format!("{host} is allowed although it may not be public: the file names it"),
            ));
        }));
        config.workload_system.webhook = Some(told);
    }

    fn providers(&mut self, providers: Map<String, Value>, config: &mut Config) {
        for (name, provider) in providers {
            let at = format!("providers.{name}");
            let mut provider = self.object(&at, provider);
            let kind = self.text(&mut provider, &at, "type");
            let made = match kind.as_deref() {
                Some("lambda") => {
                    let env = self.text(&mut provider, &at, "api_key_env");
                    let env = Some(env.unwrap_or_else(|| "LAMBDA_API_KEY".to_owned()));
                    let api_key = Secret { file: None, env };
                    ProviderOf::Lambda(LambdaProvider { api_key, ..LambdaProvider::default() })
                }
                Some("gcp") => {
                    let project = self.text(&mut provider, &at, "project").unwrap_or_default();
                    let zone = self.text(&mut provider, &at, "zone");
                    let zone = zone.unwrap_or_else(|| "us-central1-a".to_owned());
                    let region = zone.rsplit_once('-').map_or(zone.as_str(), |(region, _)| region);
                    self.remark(
                        format!("{at}.zone"),
                        format!(
                            "machines were made in {zone} alone; here a pool may name its zones, and {region} \
                             is the region of those that do not. Disks, network and addresses are settings now"
                        ),
                    );
                    let region = region.to_owned();
                    ProviderOf::Gcp(GcpProvider {
                        project,
                        region,
                        disk_type: "pd-ssd".to_owned(),
                        external_ip: true,
                        ..GcpProvider::default()
                    })
                }
                Some("aws") => {
                    self.remark(
                        format!("{at}.type"),
                        "upstream reads `aws` and then refuses to start; here it works",
                    );
                    let region = self.text(&mut provider, &at, "region").unwrap_or_default();
                    ProviderOf::Aws(AwsProvider { region, ..AwsProvider::default() })
                }
                Some("fake") => {
                    let gpus = self.count(&mut provider, &at, "gpu_count").unwrap_or(8);
                    self.remark(
                        format!("{at}.type"),
                        "upstream fakes agents inside the control plane; here they are real agents on this \
                         host with made-up GPUs",
                    );
                    // What its pools ask for is added when they are read.
                    let made = ProcessType {
                        name: "fake".to_owned(),
                        gpu: format!("fake:{gpus}xH100"),
                        gpus,
                        ..ProcessType::default()
                    };
                    let types = vec![made];
                    ProviderOf::Process(ProcessProvider { types, ..ProcessProvider::default() })
                }
                Some(other) => {
                    self.errors.push(format!(
                        "{at}.type: `{other}` is not known; write lambda, gcp, aws or fake"
                    ));
                    continue;
                }
                None => {
                    self.errors.push(format!("{at}.type: it is missing"));
                    continue;
                }
            };
            self.rest(&at, &provider);
            config.providers.insert(name, made);
        }
    }

    fn pool(
        &mut self,
        name: &str,
        pool: Value,
        defaults: &Map<String, Value>,
        config: &mut Config,
    ) {
        let at = format!("pools.{name}");
        let mut pool = self.object(&at, pool);
        if let Err(error) = Name::parse(name) {
            self.errors.push(format!("{at}: {}", error.message));
        }
        for (key, value) in defaults {
            let known =
                matches!(key.as_str(), "ssh_keys" | "health" | "ssh_user" | "ssh_private_key_path");
            if known && !pool.contains_key(key) {
                pool.insert(key.clone(), value.clone());
            }
        }
        let mut spec = Map::new();
        self.sizes(&at, &mut pool, &mut spec);
        let named = self.places(&at, &mut pool, &mut spec);
        if let Some(wanted) = self.text(&mut pool, &at, "instance_type") {
            self.offer(&named, &wanted, config);
            spec.insert("machineType".to_owned(), json!(wanted));
        } else {
            self.errors.push(format!("{at}.instance_type: it is missing"));
        }
        self.health(&at, &mut pool, &mut spec);
        self.machines(&at, &named, &mut pool, config);
        let labels = self.take(&mut pool, &at, "labels");
        let labels: BTreeMap<String, String> = labels
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
            .collect();
        if !labels.is_empty() {
            spec.insert("nodeLabels".to_owned(), json!(labels));
        }
        self.rest(&at, &pool);
        config.pools.insert(name.to_owned(), DeclaredOf { spec, labels });
    }

    fn sizes(&mut self, at: &str, pool: &mut Map<String, Value>, spec: &mut Map<String, Value>) {
        let min = self.count(pool, at, "min_nodes").unwrap_or(0);
        let max = self.count(pool, at, "max_nodes").unwrap_or(0);
        if max == 0 {
            self.errors.push(format!("{at}.max_nodes: it is missing; it must be at least 1"));
        } else if max < min {
            self.errors
                .push(format!("{at}.min_nodes: {min} is more than max_nodes, which is {max}"));
        }
        let nodes = min.max(1);
        spec.insert("nodeCount".to_owned(), json!(nodes));
        spec.insert("minNodes".to_owned(), json!(min));
        spec.insert("maxNodes".to_owned(), json!(max));
        if min == 0 {
            self.remark(
                format!("{at}.min_nodes"),
                "a pool begins with one node here; an autoscaler may bring it to none",
            );
        }
        let cooldown = self.span(pool, at, "cooldown");
        match pool.remove("autoscaling").filter(|value| !value.is_null()) {
            None => self.remark(
                format!("{at}.autoscaling"),
                format!(
                    "it is missing; upstream then buys nothing at all, min_nodes included. Here the pool has \
                     {nodes} nodes"
                ),
            ),
            Some(policy) => {
                let field = format!("{at}.autoscaling");
                let mut converted = self.policy(&field, policy, min);
                if let (Some(cooldown), Value::Object(members)) = (cooldown, &mut converted)
                    && cooldown != SignedDuration::ZERO
                {
                    let text = Duration::from_signed(cooldown).to_string();
                    members.insert("cooldown".to_owned(), json!(text));
                }
                spec.insert("autoscaling".to_owned(), converted);
            }
        }
    }

    /// One autoscaler, with those inside of it.
    fn policy(&mut self, at: &str, policy: Value, min: u32) -> Value {
        let mut policy = self.object(at, policy);
        let kind = self.text(&mut policy, at, "type").unwrap_or_default();
        let mut made = Map::new();
        made.insert("type".to_owned(), json!(kind));
        let fallback = |walk: &mut Walk, policy: &mut Map<String, Value>| {
            let inner = policy.remove("fallback").filter(|value| !value.is_null());
            inner.map(|inner| walk.policy(&format!("{at}.fallback"), inner, min))
        };
        match kind.as_str() {
            "reactive" => {
                for (theirs, ours) in [("scale_up_at", "scaleUpAt"), ("scale_down_at", "scaleDownAt")] {
                    made.extend(policy.remove(theirs).map(|value| (ours.to_owned(), value)));
                }
            }
            "queue" => {
                policy.remove("jobs_per_node");
                made.insert("type".to_owned(), json!("scheduled"));
                made.insert("entries".to_owned(), json!([{ "start": 0, "end": 24, "nodes": min }]));
                self.remark(
                    at,
                    "upstream's own metrics have no queue, so it always wants min_nodes, and so does this schedule. \
                     To follow a queue write {type: queue} and say in spec.autoscaling.metrics where its length is",
                );
            }
            "scheduled" => {
                let entries = match policy.remove("schedule") {
                    Some(Value::Array(entries)) => entries,
                    Some(_) | None => Vec::new(),
                };
                let entries = entries.into_iter().enumerate();
                let entries: Vec<Value> = entries
                    .map(|(place, entry)| self.entry(&format!("{at}.schedule[{place}]"), entry))
                    .collect();
                made.insert("entries".to_owned(), Value::Array(entries));
                let inner = fallback(self, &mut policy);
                if inner.is_none() {
                    self.remark(at, "without a fallback upstream's schedule does nothing; here it holds");
                }
                made.extend(inner.map(|inner| ("fallback".to_owned(), inner)));
            }
            "predictive" => {
                for gone in ["lookback_window", "growth_factor"] {
                    if policy.remove(gone).is_some() {
                        self.remark(
                            format!("{at}.{gone}"),
                            "the forecast here goes by trend and daily season of what was measured; see \
                             lookback, horizon and targetUtilization",
                        );
                    }
                }
                let inner = fallback(self, &mut policy);
                made.extend(inner.map(|inner| ("fallback".to_owned(), inner)));
            }
            "composite" => {
                made.extend(policy.remove("mode").map(|mode| ("mode".to_owned(), mode)));
                let parts = match policy.remove("autoscalers") {
                    Some(Value::Array(parts)) => parts,
                    Some(_) | None => Vec::new(),
                };
                let parts = parts.into_iter().enumerate();
                let parts: Vec<Value> = parts
                    .map(|(place, part)| self.policy(&format!("{at}.autoscalers[{place}]"), part, min))
                    .collect();
                made.insert("policies".to_owned(), Value::Array(parts));
            }
            other => self.errors.push(format!(
                "{at}.type: `{other}` is not known; write reactive, queue, scheduled, predictive or composite"
            )),
        }
        self.rest(at, &policy);
        Value::Object(made)
    }

    /// One line of a schedule: hours by the server's clock there, by a time zone here.
    fn entry(&mut self, at: &str, entry: Value) -> Value {
        let mut entry = self.object(at, entry);
        let mut made = Map::new();
        let days: Vec<String> = self.texts(&mut entry, at, "days");
        if !days.is_empty() {
            let short = |day: &String| day.to_ascii_lowercase().chars().take(3).collect::<String>();
            made.insert("days".to_owned(), json!(days.iter().map(short).collect::<Vec<_>>()));
        }
        let (start, end) = (self.count(&mut entry, at, "start"), self.count(&mut entry, at, "end"));
        if let (Some(start), Some(end)) = (start, end)
            && end <= start
        {
            self.remark(
                at,
                "it ends before it starts: upstream never lets it hold, here it goes past midnight",
            );
        }
        let hour = |hour: u32| json!(format!("{hour:02}:00"));
        made.insert("start".to_owned(), hour(start.unwrap_or(0)));
        made.insert("end".to_owned(), hour(end.unwrap_or(24)));
        made.insert("timezone".to_owned(), json!("UTC"));
        self.remark(at, "upstream goes by the clock of its host; here it is UTC until `timezone` says otherwise");
        for (theirs, ours) in [("min_nodes", "minNodes"), ("max_nodes", "maxNodes")] {
            made.extend(
                self.count(&mut entry, at, theirs).map(|count| (ours.to_owned(), json!(count))),
            );
        }
        self.rest(at, &entry);
        Value::Object(made)
    }

    /// Where machines are bought; the names of the providers.
    fn places(
        &mut self,
        at: &str,
        pool: &mut Map<String, Value>,
        spec: &mut Map<String, Value>,
    ) -> Vec<String> {
        let region = self.text(pool, at, "region");
        let zones = self.texts(pool, at, "zones");
        if !zones.is_empty() {
            self.remark(
                format!("{at}.zones"),
                "upstream reads and never uses it; here machines are spread over these zones",
            );
            spec.insert("zones".to_owned(), json!(zones));
        }
        if let Some(strategy) = self.text(pool, at, "strategy") {
            spec.insert("strategy".to_owned(), json!(strategy));
        }
        spec.extend(region.map(|region| ("region".to_owned(), json!(region))));
        let one = self.text(pool, at, "provider");
        let several = match pool.remove("providers") {
            Some(Value::Array(several)) => several,
            Some(_) | None => Vec::new(),
        };
        match (one, several.is_empty()) {
            (Some(one), true) => {
                spec.insert("provider".to_owned(), json!(one));
                vec![one]
            }
            (None, false) => {
                let several = several.into_iter().enumerate();
                let made: Vec<Map<String, Value>> = several
                    .map(|(place, choice)| self.choice(&format!("{at}.providers[{place}]"), choice))
                    .collect();
                let names = made.iter().filter_map(|choice| choice.get("name")?.as_str());
                let names = names.map(str::to_owned).collect();
                spec.insert("providers".to_owned(), json!(made));
                names
            }
            (Some(_), false) => {
                self.errors.push(format!("{at}: give provider or providers, not both"));
                Vec::new()
            }
            (None, true) => {
                self.errors.push(format!("{at}.provider: it is missing"));
                Vec::new()
            }
        }
    }

    fn choice(&mut self, at: &str, choice: Value) -> Map<String, Value> {
        let mut choice = self.object(at, choice);
        let mut made = Map::new();
        made.extend(
            self.text(&mut choice, at, "name").map(|name| ("name".to_owned(), json!(name))),
        );
        let priority = self.count(&mut choice, at, "priority").unwrap_or(0);
        made.insert("priority".to_owned(), json!(priority));
        let weight = self.count(&mut choice, at, "weight").unwrap_or(0).max(1);
        made.insert("weight".to_owned(), json!(weight));
        let regions = self.texts(&mut choice, at, "regions");
        if 1 < regions.len() {
            self.remark(
                format!("{at}.regions"),
                "upstream uses the first alone; here the others are tried when it has none left",
            );
        }
        if !regions.is_empty() {
            made.insert("regions".to_owned(), json!(regions));
        }
        let wanted = self.text(&mut choice, at, "instance_type");
        made.extend(wanted.map(|wanted| ("machineType".to_owned(), json!(wanted))));
        self.rest(at, &choice);
        made
    }

    /// A fake provider sells whatever its pools ask for.
    fn offer(&mut self, named: &[String], wanted: &str, config: &mut Config) {
        for name in named {
            match config.providers.get_mut(name) {
                Some(ProviderOf::Process(process)) => {
                    let known = process.types.iter().any(|it| it.name == wanted);
                    if let Some(first) = process.types.first().filter(|_| !known).cloned() {
                        process.types.push(ProcessType { name: wanted.to_owned(), ..first });
                    }
                }
                Some(_) => {}
                None => self.errors.push(format!(
                    "pools: the provider `{}` is not in `providers`",
                    crate::output::clean(name)
                )),
            }
        }
    }

    fn health(&mut self, at: &str, pool: &mut Map<String, Value>, spec: &mut Map<String, Value>) {
        let given = pool.contains_key("health");
        let mut health = self.take(pool, at, "health");
        let at = format!("{at}.health");
        if health.remove("unhealthy_after").is_some() {
            self.remark(
                format!("{at}.unhealthy_after"),
                "upstream counts in a way that never comes to 2; here health policies say what is sick, and \
                 budgets how much is done at once",
            );
        }
        let replace = match health.remove("auto_replace") {
            Some(Value::Bool(replace)) => replace,
            Some(_) => {
                self.errors.push(format!("{at}.auto_replace: it must be true or false"));
                true
            }
            None => {
                if given {
                    self.remark(
                        format!("{at}.auto_replace"),
                        "it is missing beside other keys, which means false upstream; so it is here",
                    );
                }
                !given
            }
        };
        let remedy = if replace { "replace" } else { "cordon" };
        spec.insert("remedy".to_owned(), json!(remedy));
        self.rest(&at, &health);
    }

    /// How machines are set up: a matter of the provider here.
    fn machines(
        &mut self,
        at: &str,
        named: &[String],
        pool: &mut Map<String, Value>,
        config: &mut Config,
    ) {
        let keys = self.texts(pool, at, "ssh_keys");
        let commands = self.texts(pool, at, "setup_commands");
        for name in ["ssh_user", "ssh_private_key_path"] {
            if pool.remove(name).is_some() {
                self.remark(
                    format!("{at}.{name}"),
                    "machines set themselves up when they boot; nobody enters them by SSH, whose host keys \
                     upstream does not check",
                );
            }
        }
        if !commands.is_empty() {
            self.remark(
                format!("{at}.setup_commands"),
                "they are the provider's here, for all its pools, and run at boot before the agent is \
                 installed, which needs no command",
            );
        }
        for name in named {
            let found = match config.providers.get_mut(name) {
                Some(ProviderOf::Lambda(lambda)) => {
                    if let Some(key) = keys.first() {
                        lambda.ssh_key.clone_from(key);
                    }
                    &mut lambda.setup_commands
                }
                Some(ProviderOf::Gcp(gcp)) => &mut gcp.setup_commands,
                Some(ProviderOf::Aws(aws)) => {
                    aws.key_name = keys.first().cloned();
                    &mut aws.setup_commands
                }
                Some(ProviderOf::Simulated(_) | ProviderOf::Process(_) | ProviderOf::Static(_))
                | None => continue,
            };
            for command in &commands {
                if !found.contains(command) {
                    found.push(command.clone());
                }
            }
        }
    }
}

fn dotted(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// The host of an address.
fn host(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_owned())
}

/// Reads `1h30m`, `500ms`, `1.5s`: Go's form.
fn go_duration(text: &str) -> Option<SignedDuration> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let mut rest = text.trim();
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut seconds = 0.0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        // The longest first: `ms` is not `m` and something.
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit)?;
        seconds += number * factor;
        rest = after;
    }
    SignedDuration::try_from_secs_f64(seconds).ok().filter(|span| !span.is_negative())
}

#[cfg(test)]
mod tests;
