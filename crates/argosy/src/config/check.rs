//! Whether the values of a configuration fit together.

use super::source::without_password;
use super::{Adapter, ConditionRule, Config, Issuer, Runner, Secret};
use crate::failure::Failure;
use crate::policy_file::PolicyFile;
use argosy_core::adapter::{AdapterGraph, AdapterName, AdapterSpec, Runner as CoreRunner};
use argosy_core::policy::{DEFAULT_POLICY, PolicySpec};
use argosy_core::resource::Kind;
use argosy_policy::{ConditionRuleText, ConditionRules};
use argosy_providers::webhook::Allow;
use argosy_server::auth::Authenticator;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Checks everything that can be checked without opening anything. `file_store` is the store's
/// address if the file gives one.
pub(crate) fn check(config: &Config, file_store: Option<&str>) -> Result<(), Failure> {
    let mut complaints = Vec::new();
    listen(config, &mut complaints);
    store(config, file_store, &mut complaints);
    if config.tls.cert_file.is_some() != config.tls.key_file.is_some() {
        complaints.push("tls: cert_file and key_file go together; give both or none".to_owned());
    }
    for (place, issuer) in config.auth.jwt.iter().enumerate() {
        jwt(&format!("auth.jwt[{place}]"), issuer, &mut complaints);
    }
    for (kind, adapters) in
        [("cluster", &config.adapters.cluster), ("nodepool", &config.adapters.nodepool)]
    {
        for (place, adapter) in adapters.iter().enumerate() {
            one_adapter(&format!("adapters.{kind}[{place}]"), adapter, &mut complaints);
        }
    }
    for (place, text) in config.webhooks.allow.iter().enumerate() {
        if let Err(error) = text.parse::<Allow>() {
            complaints.push(format!("webhooks.allow[{place}]: {error}"));
        }
    }
    times(config, &mut complaints);
    metrics_credentials(config, &mut complaints);
    complaints.extend(config.nodes.complaints());
    complaints.extend(config.workload_system.complaints());
    complaints.extend(config.machines.complaints());
    complaints.extend(super::machines::complaints(&config.providers, &config.machines));
    complaints.extend(super::machines::pool_complaints(config));
    if let Err(failure) = policy(config) {
        let why = if failure.why.is_empty() { vec![failure.what] } else { failure.why };
        complaints.extend(why.into_iter().map(|why| format!("nodes.policy_file: {why}")));
    }
    if complaints.is_empty()
        && let Err(error) = graph(config)
    {
        complaints.push(format!("adapters: {error}"));
    }
    if let Err(errors) = conditions(config) {
        complaints.extend(errors);
    }
    let mut complaints = complaints.into_iter();
    match complaints.next() {
        None => Ok(()),
        Some(first) => Err(complaints.fold(Failure::usage(first), Failure::why)),
    }
}

/// The policy that is in force where nobody wrote one; `None` means the built-in one.
pub(crate) fn policy(config: &Config) -> Result<Option<PolicySpec>, Failure> {
    let Some(path) = &config.nodes.policy_file else { return Ok(None) };
    let file = PolicyFile::read(path)?;
    file.compile(DEFAULT_POLICY)?;
    Ok(Some(file.spec))
}

fn listen(config: &Config, complaints: &mut Vec<String>) {
    let address = match config.listen.parse::<SocketAddr>() {
        Ok(address) => address,
        Err(_) => {
            complaints.push(format!(
                "listen: `{}` is not an address; write IP:PORT, like 127.0.0.1:8080",
                config.listen
            ));
            return;
        }
    };
    // With authentication any address is fine.
    if config.auth.is_none()
        && let Err(why) = Authenticator::none().allowed_on(address, config.auth.none_anywhere)
    {
        complaints
            .push(format!("listen: {why} (auth.tokens_file, auth.jwt, or --auth-none-anywhere)"));
    }
}

fn store(config: &Config, file_store: Option<&str>, complaints: &mut Vec<String>) {
    let store = config.store.as_str();
    let postgres = store.starts_with("postgres://") || store.starts_with("postgresql://");
    if !postgres && !matches!(store, "embedded" | "memory:") {
        complaints.push(format!(
            "store: `{}` is not a store; write `embedded`, `memory:` or \
             `postgres://USER@HOST/DATABASE`",
            without_password(store)
        ));
    }
    if file_store.is_some_and(|url| without_password(url) != url) {
        complaints.push(
            "store: a password may not stand in the file; name a file or an environment variable \
             in store_password"
                .to_owned(),
        );
    }
    secret("store_password", &config.store_password, complaints);
    if config.store_password.is_given() && !postgres {
        complaints.push("store_password: only PostgreSQL has a password; see store".to_owned());
    }
}

fn metrics_credentials(config: &Config, complaints: &mut Vec<String>) {
    for (name, credential) in &config.metrics_credentials {
        let key = format!("metrics_credentials.{name}");
        secret(&key, &credential.secret(), complaints);
        if !credential.secret().is_given() {
            complaints.push(format!("{key}: the token is missing; give file or env"));
        }
        let scope = config.metrics_access().credentials.remove(name);
        if let Some(why) = scope.and_then(|scope| scope.complaint()) {
            complaints.push(format!("{key}.url: `{}` is not allowed: {why}", credential.url));
        }
    }
}

fn secret(key: &str, secret: &Secret, complaints: &mut Vec<String>) {
    if secret.file.is_some() && secret.env.is_some() {
        complaints.push(format!("{key}: give file or env, not both"));
    }
}

fn jwt(key: &str, issuer: &Issuer, complaints: &mut Vec<String>) {
    if issuer.issuer.is_empty() {
        complaints.push(format!("{key}.issuer: it is missing"));
    }
    if issuer.audience.is_empty() {
        complaints.push(format!(
            "{key}.audience: it is missing; without it a token for any other service would do"
        ));
    }
    match (&issuer.jwks_file, &issuer.jwks_url) {
        (Some(_), None) | (None, Some(_)) => {}
        (None, None) | (Some(_), Some(_)) => {
            complaints.push(format!("{key}: give exactly one of jwks_file and jwks_url"));
        }
    }
}

fn one_adapter(key: &str, adapter: &Adapter, complaints: &mut Vec<String>) {
    if adapter.name.is_empty() {
        complaints.push(format!("{key}.name: it is missing"));
    }
    secret(&format!("{key}.secret"), &adapter.secret, complaints);
    match (adapter.runner, &adapter.url) {
        (Runner::Webhook, None) => {
            complaints.push(format!("{key}.url: a webhook needs an address"));
        }
        (Runner::Webhook, Some(url)) => {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                complaints.push(format!("{key}.url: it must start with https:// or http://"));
            }
            if !adapter.secret.is_given() {
                complaints.push(format!("{key}.secret: a webhook needs a secret to sign with"));
            }
        }
        (Runner::BuiltIn | Runner::External, Some(_)) => {
            complaints.push(format!("{key}.url: only an adapter with `runner: webhook` has one"));
        }
        (Runner::BuiltIn | Runner::External, None) => {}
    }
    if adapter.runner != Runner::Webhook && adapter.secret.is_given() {
        complaints.push(format!("{key}.secret: only an adapter with `runner: webhook` has one"));
    }
}

fn times(config: &Config, complaints: &mut Vec<String>) {
    let sentinel = &config.sentinel;
    let least = super::Duration::from_secs(1);
    for (key, time) in [
        ("sentinel.resync_not_ready", sentinel.resync_not_ready),
        ("sentinel.resync_ready", sentinel.resync_ready),
        ("retention.tombstones", config.retention.tombstones),
        ("retention.idempotency_keys", config.retention.idempotency_keys),
        ("retention.audit", config.retention.audit),
        ("retention.status_history", config.retention.status_history),
        ("limits.head_time", config.limits.head_time),
        ("limits.idle_time", config.limits.idle_time),
    ] {
        if time < least {
            complaints.push(format!("{key}: {time} is too short; at least 1s"));
        }
    }
    if sentinel.backoff_max < sentinel.backoff_first {
        complaints.push(format!(
            "sentinel.backoff_max: {} is shorter than backoff_first, which is {}",
            sentinel.backoff_max, sentinel.backoff_first
        ));
    }
    if config.limits.connections == 0 {
        complaints.push("limits.connections: it must be at least 1".to_owned());
    }
}

/// The rules of derived conditions, compiled.
pub(crate) fn conditions(
    config: &Config,
) -> Result<BTreeMap<Kind, Arc<ConditionRules>>, Vec<String>> {
    let kinds = [
        (Kind::Cluster, "conditions.cluster", &config.conditions.cluster),
        (Kind::NodePool, "conditions.nodepool", &config.conditions.nodepool),
    ];
    let mut compiled = BTreeMap::new();
    for (kind, key, rules) in kinds.into_iter().filter(|(_, _, rules)| !rules.is_empty()) {
        let texts: Vec<_> = rules.iter().map(text).collect();
        let rules = ConditionRules::compile(&texts).map_err(|errors| {
            errors.iter().map(|error| format!("{key}: {error}")).collect::<Vec<_>>()
        })?;
        compiled.insert(kind, Arc::new(rules));
    }
    Ok(compiled)
}

fn text(rule: &ConditionRule) -> ConditionRuleText {
    let ConditionRule { r#type: kind, when, status, reason, message } = rule.clone();
    ConditionRuleText { kind, when, status, reason, message }
}

/// The adapters as the services take them.
pub(crate) fn graph(config: &Config) -> Result<AdapterGraph, String> {
    let kinds = [
        (Kind::Cluster, "adapters.cluster", &config.adapters.cluster),
        (Kind::NodePool, "adapters.nodepool", &config.adapters.nodepool),
    ];
    let mut graph = BTreeMap::new();
    for (kind, key, adapters) in kinds {
        let specs: Result<Vec<AdapterSpec>, String> = adapters.iter().map(spec).collect();
        graph.insert(kind, specs.map_err(|error| format!("{key}: {error}"))?);
    }
    AdapterGraph::new(graph).map_err(|error| error.to_string())
}

fn spec(adapter: &Adapter) -> Result<AdapterSpec, String> {
    let name = |text: &str| {
        AdapterName::parse(text).map_err(|error| format!("adapter `{text}`: {}", error.message))
    };
    Ok(AdapterSpec {
        name: name(&adapter.name)?,
        depends_on: adapter.depends_on.iter().map(|text| name(text)).collect::<Result<_, _>>()?,
        required: adapter.required,
        deadline: adapter.deadline.signed(),
        runner: match adapter.runner {
            Runner::BuiltIn => CoreRunner::BuiltIn,
            Runner::External => CoreRunner::External,
            Runner::Webhook => CoreRunner::Webhook { url: adapter.url.clone().unwrap_or_default() },
        },
    })
}
