use super::super::source::parse;
use super::super::{Config, check};
use std::path::Path;

/// The complaints about a file.
fn complaints(text: &str) -> String {
    let (config, _) = parse(text, Path::new("a.yaml")).unwrap_or_else(|f| panic!("{text}: {f}"));
    check(&config, None).err().map(|failure| failure.to_string()).unwrap_or_default()
}

const BASE: &str = "machines: { server_url: 'https://a.example', agent: { path: /bin/agent } }\n";

#[test]
fn every_type_of_provider_can_be_written() {
    let text = format!(
        "{BASE}providers:\n\
         \x20 sim: {{ type: simulated, instant: true }}\n\
         \x20 here: {{ type: process, types: [{{ name: a, gpu: 'fake:8xH100', gpus: 8 }}] }}\n\
         \x20 aws: {{ type: aws, region: us-east-1, access_key_id: {{ env: A }}, \
                       secret_access_key: {{ file: /s }}, prices: {{ p5.48xlarge: 98.32 }} }}\n\
         \x20 gcp: {{ type: gcp, project: p, credentials: {{ file: /key.json }} }}\n\
         \x20 lambda: {{ type: lambda, api_key: {{ env: K }}, ssh_key: ops }}\n\
         \x20 rack: {{ type: static, key_file: /k, known_hosts: /h, hosts: [{{ name: n1, gpus: 8 }}] }}\n"
    );
    assert_eq!(complaints(&text), "");
    let (config, _) = parse(&text, Path::new("a.yaml")).unwrap();
    let kinds: Vec<&str> = config.providers.values().map(super::ProviderOf::kind).collect();
    assert_eq!(kinds, ["aws", "gcp", "process", "lambda", "static", "simulated"]);
    let again: Config = serde_json::from_value(serde_json::to_value(&config).unwrap()).unwrap();
    assert_eq!(again, config, "flags are put on top of what was read");
}

#[test]
fn what_does_not_fit_together_is_found() {
    for (text, complaint) in [
        (
            "machines: { registration_timeout: 1s }",
            "machines.registration_timeout: 1s is too short",
        ),
        ("machines: { max_hourly_cost: -1 }", "machines.max_hourly_cost: -1 is no price"),
        ("machines: { agent: { url: 'https://a/b' } }", "machines.agent.sha256: it is missing"),
        (
            "machines: { agent: { path: /a, url: 'https://a', sha256: ab } }",
            "give path or url, not both",
        ),
        ("providers: { A/b: { type: simulated } }", "providers.A/b: a provider's name has"),
        ("providers: { a: { type: aws, region: r } }", "machines.server_url: it is missing"),
        ("providers: { a: { type: aws, region: r } }", "machines.agent: it is missing"),
        ("providers: { a: { type: aws } }", "providers.a.region: it is missing"),
        (
            "providers: { a: { type: aws, region: r, access_key_id: { env: A } } }",
            "access_key_id and secret_access_key go together",
        ),
        ("providers: { a: { type: lambda, ssh_key: k } }", "providers.a.api_key: it is missing"),
        ("providers: { a: { type: static } }", "providers.a.known_hosts: it is missing"),
        (
            "providers: { a: { type: process, types: [{ name: x }, { name: x }] } }",
            "providers.a.types: `x` is there twice",
        ),
        ("pools: { p: { spec: { nodeCount: 0 } } }", "pools.p: "),
        ("pools: { p: { spec: { nodeCount: 3, minNodes: 4, maxNodes: 2 } } }", "pools.p: "),
        (
            "pools: { p: { spec: { nodeCount: 1, autoscaling: { type: magic } } } }",
            "pools.p.autoscaling.type",
        ),
    ] {
        let found = complaints(text);
        assert!(found.contains(complaint), "{text}: `{complaint}` is not in\n{found}");
    }
}

#[test]
fn r1_s2_a_metrics_credential_has_an_address_and_a_tenant() {
    let of = |entry: &str| format!("metrics_credentials: {{ prom: {entry} }}");
    for (entry, complaint) in [
        ("{ env: T }", "metrics_credentials.prom.url: `` is not allowed: write the beginning of"),
        ("{ env: T, url: 'http://prom.example/' }", "must not cross a network in clear"),
        ("{ url: 'https://prom.example/' }", "metrics_credentials.prom: the token is missing"),
        ("{ env: T, file: /t, url: 'https://prom.example/' }", "give file or env, not both"),
    ] {
        let found = complaints(&of(entry));
        assert!(found.contains(complaint), "{entry}: `{complaint}` is not in\n{found}");
    }
    let fine = of("{ env: T, url: 'https://prom.example/' }");
    assert_eq!(complaints(&fine), "");
    let pool = |url: &str| {
        format!(
            "{fine}\npools: {{ p: {{ spec: {{ nodeCount: 1, autoscaling: {{ type: reactive, metrics: {{ \
             utilization: {{ prometheus: {{ url: '{url}', query: up, credentials: prom }} }} }} }} }} }} }}"
        )
    };
    assert_eq!(complaints(&pool("https://prom.example/")), "");
    let found = complaints(&pool("https://evil.example/"));
    assert!(found.contains("for addresses below https://prom.example/ alone"), "{found}");
}

#[test]
fn a_key_that_a_type_does_not_have_is_refused() {
    for text in [
        "providers: { a: { type: aws, project: p } }",
        "providers: { a: { type: cloud } }",
        "providers: { a: { region: r } }",
        "providers: { a: { type: lambda, api_key: secret } }",
    ] {
        assert!(parse(text, Path::new("a.yaml")).is_err(), "{text}");
    }
}
