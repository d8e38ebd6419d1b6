//! `docs/config.md`, printed from the structs.

use super::{
    Adapter, Adapters, AgentProgram, Auth, AwsProvider, BreakerOf, BudgetOf, Claims, ConditionRule,
    Conditions, Config, DeclaredOf, Deletion, FleetNodes, GcpProvider, Issuer, LambdaProvider,
    Limits, Log, Machines, MetricsCredential, Nodes, ProcessProvider, ProcessType, Retention,
    Secret, Section, Sentinel, SimulatedCloud, SimulatedProvider, StaticHost, StaticProvider, Tls,
    Webhooks, WorkloadKubernetes, WorkloadSlurm, WorkloadSystem, WorkloadWebhook,
};
use serde_json::Value;
use std::fmt::Write;

/// The sections in reading order: how the key is written, and where its defaults are.
const SECTIONS: [(&str, Section); 37] = [
    ("", Config::SECTION),
    ("tls", Tls::SECTION),
    ("auth", Auth::SECTION),
    ("auth.jwt[]", Issuer::SECTION),
    ("auth.jwt[].claims", Claims::SECTION),
    ("limits", Limits::SECTION),
    ("adapters", Adapters::SECTION),
    ("adapters.cluster[]", Adapter::SECTION),
    ("adapters.cluster[].secret", Secret::SECTION),
    ("conditions", Conditions::SECTION),
    ("conditions.cluster[]", ConditionRule::SECTION),
    ("webhooks", Webhooks::SECTION),
    ("sentinel", Sentinel::SECTION),
    ("nodes", Nodes::SECTION),
    ("nodes.budget", BudgetOf::SECTION),
    ("nodes.breaker", BreakerOf::SECTION),
    ("nodes.fleet", FleetNodes::SECTION),
    ("workload_system", WorkloadSystem::SECTION),
    ("workload_system.webhook", WorkloadWebhook::SECTION),
    ("workload_system.slurm", WorkloadSlurm::SECTION),
    ("workload_system.kubernetes", WorkloadKubernetes::SECTION),
    ("machines", Machines::SECTION),
    ("machines.agent", AgentProgram::SECTION),
    ("providers.NAME, `type: simulated`", SimulatedProvider::SECTION),
    ("providers.NAME, `type: process`", ProcessProvider::SECTION),
    ("providers.NAME, `type: process`, types[]", ProcessType::SECTION),
    ("providers.NAME, `type: aws`", AwsProvider::SECTION),
    ("providers.NAME, `type: gcp`", GcpProvider::SECTION),
    ("providers.NAME, `type: lambda`", LambdaProvider::SECTION),
    ("providers.NAME, `type: static`", StaticProvider::SECTION),
    ("providers.NAME, `type: static`, hosts[]", StaticHost::SECTION),
    ("metrics_credentials.NAME", MetricsCredential::SECTION),
    ("pools.NAME", DeclaredOf::SECTION),
    ("retention", Retention::SECTION),
    ("deletion", Deletion::SECTION),
    ("simulated_cloud", SimulatedCloud::SECTION),
    ("log", Log::SECTION),
];

const INTRODUCTION: &str = "\
# Configuration

Printed from the code by `argosy config docs`; do not edit.

`argosy server` reads one YAML file (`--config FILE` or `ARGOSY_CONFIG`). A flag wins over the
environment, the environment over the file, the file over the default. The file is strict: an unknown
key, a key given twice or a value of the wrong form stops the server, with the line and the nearest key.
`argosy config check FILE` checks a file; `argosy config print` shows what holds and where it comes from.

Durations are a whole number and a unit: `500ms`, `10s`, `30m`, `12h`, `7d`. Secrets are references to a
file or an environment variable, never values.

| flag | environment | key |
|---|---|---|
| `--config` | `ARGOSY_CONFIG` | |
";

/// The whole document. `flags` are the rows of flag, environment variable and key.
pub(crate) fn docs(flags: &[(&str, &str, &str)]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for (flag, variable, key) in flags {
        let _ = writeln!(text, "| `{flag}` | `{variable}` | `{key}` |");
    }
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    for (path, section) in &SECTIONS {
        write_section(&mut text, path, section, &defaults_of(path, &defaults));
    }
    text
}

/// The defaults of a section: of an entry, if it is a list.
fn defaults_of(path: &str, defaults: &Value) -> Value {
    let entry = match path {
        "" => return defaults.clone(),
        "auth.jwt[]" => serde_json::to_value(Issuer::default()),
        "auth.jwt[].claims" => serde_json::to_value(Claims::default()),
        "adapters.cluster[]" => serde_json::to_value(Adapter::default()),
        "adapters.cluster[].secret" => serde_json::to_value(Secret::default()),
        "conditions.cluster[]" => serde_json::to_value(ConditionRule::default()),
        "nodes.budget" => serde_json::to_value(BudgetOf::default()),
        "nodes.breaker" => serde_json::to_value(BreakerOf::default()),
        "nodes.fleet" => serde_json::to_value(FleetNodes::default()),
        "workload_system.webhook" => serde_json::to_value(WorkloadWebhook::default()),
        "workload_system.slurm" => serde_json::to_value(WorkloadSlurm::default()),
        "workload_system.kubernetes" => serde_json::to_value(WorkloadKubernetes::default()),
        "metrics_credentials.NAME" => serde_json::to_value(MetricsCredential::default()),
        "pools.NAME" => serde_json::to_value(DeclaredOf::default()),
        "machines.agent" => serde_json::to_value(AgentProgram::default()),
        "providers.NAME, `type: simulated`" => serde_json::to_value(SimulatedProvider::default()),
        "providers.NAME, `type: process`" => serde_json::to_value(ProcessProvider::default()),
        "providers.NAME, `type: process`, types[]" => serde_json::to_value(ProcessType::default()),
        "providers.NAME, `type: aws`" => serde_json::to_value(AwsProvider::default()),
        "providers.NAME, `type: gcp`" => serde_json::to_value(GcpProvider::default()),
        "providers.NAME, `type: lambda`" => serde_json::to_value(LambdaProvider::default()),
        "providers.NAME, `type: static`" => serde_json::to_value(StaticProvider::default()),
        "providers.NAME, `type: static`, hosts[]" => serde_json::to_value(StaticHost::default()),
        name => return defaults.get(name).cloned().unwrap_or_default(),
    };
    entry.unwrap_or_default()
}

fn write_section(text: &mut String, path: &str, section: &Section, defaults: &Value) {
    // What has more than a key in it brings its own marks.
    let title = match path.split_once(", ") {
        None if path.is_empty() => "Top level".to_owned(),
        None => format!("`{path}`"),
        Some((key, rest)) => format!("`{key}`, {rest}"),
    };
    let _ = writeln!(text, "\n## {title}\n\n{}\n", sentence(section.about));
    if path == "adapters.cluster[]" {
        text.push_str("Entries of `adapters.nodepool` have the same form.\n\n");
    }
    if path == "conditions.cluster[]" {
        text.push_str("Entries of `conditions.nodepool` have the same form.\n\n");
    }
    if path == "nodes.budget" || path == "nodes.breaker" {
        text.push_str(
            "The keys of that name in `nodes.pools` and `nodes.fleet` have the same form.\n\n",
        );
    }
    if path == "adapters.cluster[].secret" {
        text.push_str(
            "`store_password`, `workload_system.webhook.secret`, `machines.agent_token` and the \
             secrets of `providers` have the same form.\n\n",
        );
    }
    text.push_str("| key | form | default | |\n|---|---|---|---|\n");
    for key in section.keys {
        // A key that is a word of Rust is written `r#type` there.
        let name = key.name.trim_start_matches("r#");
        let default = match defaults.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::Object(members)) if members.is_empty() => "`{}`".to_owned(),
            Some(Value::Object(_)) => "see below".to_owned(),
            Some(Value::Array(list)) if list.is_empty() => "`[]`".to_owned(),
            Some(Value::Array(list)) => list.iter().map(item).collect::<Vec<_>>().join(", "),
            Some(Value::String(value)) if value.is_empty() => "required".to_owned(),
            Some(Value::String(value)) => format!("`{value}`"),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => format!("`{value}`"),
        };
        let _ = writeln!(
            text,
            "| `{name}` | {} | {default} | {} |",
            form(key.kind),
            sentence(key.about)
        );
    }
}

/// One entry of a list: itself, or its name.
fn item(entry: &Value) -> String {
    let name = entry.as_str().or_else(|| entry.get("name")?.as_str());
    format!("`{}`", name.unwrap_or_default())
}

fn sentence(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The word for a type.
fn form(kind: &str) -> &'static str {
    // A type that went through two macros has spaces in it.
    match kind.replace(' ', "").as_str() {
        "String" | "Option<String>" => "text",
        "PathBuf" | "Option<PathBuf>" => "path",
        "usize" | "u16" | "u32" | "f64" | "Option<f64>" => "number",
        "bool" => "true or false",
        "Duration" | "Option<Duration>" => "duration",
        "Vec<String>" => "list of text",
        "Vec<Issuer>" | "Vec<Adapter>" | "Vec<ConditionRule>" | "Vec<ProcessType>"
        | "Vec<StaticHost>" => "list of sections",
        "BTreeMap<String,f64>" => "names and numbers",
        "Map<String,Value>" => "anything",
        "BTreeMap<String,ProviderOf>"
        | "BTreeMap<String,DeclaredOf>"
        | "BTreeMap<String,MetricsCredential>" => "names and sections",
        "Secret" => "reference to a secret",
        "BTreeMap<String,String>" => "names and texts",
        "Profile" | "Authorization" | "Role" | "Runner" | "Remedy" | "LogFormat" | "LogLevel"
        | "KubernetesName" => "word",
        _ => "section",
    }
}
