use super::*;
use crate::autoscale::tests::{messages, parse};
use serde_json::{Value, json};

fn access() -> MetricsAccess {
    let scope = |url: &str| CredentialScope { url: url.to_owned(), tenant: "acme".to_owned() };
    let credentials = [
        ("prom", scope("https://prom.example/team/a")),
        ("local", scope("http://127.0.0.1:9090/")),
    ];
    let credentials = credentials.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
    MetricsAccess { credentials, knows_jobs: false }
}

#[test]
fn r1_s2_credentials_are_sent_below_their_address_alone() {
    for (name, url, sent) in [
        ("prom", "https://prom.example/team/a", true),
        ("prom", "https://PROM.example:443/team/a/api", true),
        ("prom", "https://prom.example/team/a?x=1", true),
        ("prom", "https://prom.example/team/ab", false),
        ("prom", "https://prom.example/team", false),
        ("prom", "https://prom.example/team/a/../b", false),
        ("prom", "https://prom.example/team/a/%2e%2E/b", false),
        ("prom", "https://prom.example.evil.com/team/a", false),
        ("prom", "https://prom.example@evil.com/team/a", false),
        ("prom", "https://evil.com\\@prom.example/team/a", false),
        ("prom", "https://prom.example:8443/team/a", false),
        ("prom", "http://prom.example/team/a", false),
        ("local", "http://127.0.0.1:9090/api", true),
        ("local", "http://127.0.0.1:9091/api", false),
        ("local", "http://localhost:9090/api", false),
    ] {
        assert_eq!(access().refusal(name, url, "acme").is_none(), sent, "{name} {url}");
        assert!(access().refusal(name, url, "other").is_some(), "another tenant's");
    }
    for (url, fine) in [
        ("https://prom.example", true),
        ("http://[::1]:9090/", true),
        ("http://localhost/", true),
        ("http://prom.example/", false),
        ("http://127.0.0.1.example/", false),
        ("ftp://prom.example/", false),
        ("https://", false),
    ] {
        let scope = CredentialScope { url: url.to_owned(), tenant: String::new() };
        assert_eq!(scope.complaint().is_none(), fine, "{url}");
    }
}

#[test]
fn r1_s2_a_spec_with_other_credentials_is_refused_with_the_field() {
    let policy = |url: &str, credentials: &str| {
        let source = json!({"prometheus": {"url": url, "query": "up", "credentials": credentials}});
        json!({"type": "reactive", "metrics": {"utilization": source}})
    };
    let at = "spec.autoscaling.metrics.utilization.prometheus.credentials";
    for (policy, expected) in [
        (policy("https://prom.example/team/a", "prom"), Vec::new()),
        (
            policy("https://evil.example/", "prom"),
            vec![format!(
                "{at}: the credentials `prom` are for addresses below https://prom.example/team/a alone, by https \
                 or on a loopback address; change the url, or metrics_credentials.prom.url in the server's \
                 configuration"
            )],
        ),
        (
            policy("https://prom.example/team/a", "none"),
            vec![format!(
                "{at}: no credentials called `none` are configured for the tenant acme; see `metrics_credentials` \
                 in the server's configuration"
            )],
        ),
    ] {
        let errors = access().check(&parse(&policy), "spec.autoscaling", "acme");
        assert_eq!(messages(&errors), expected, "{policy}");
    }
}

#[test]
fn r2_m18_a_queue_that_nobody_sends_is_refused() {
    let http = json!({"http": {"url": "https://jobs.example/", "pointer": "/n"}});
    let queue = |metrics: Value| json!({"type": "queue", "metrics": metrics});
    let refused = |policy: &Value, access: &MetricsAccess| {
        let errors = access.check(&parse(policy), "a", "acme");
        errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
    };
    for (policy, expected) in [
        (json!({"type": "queue"}), Some("a.metrics.pendingJobs")),
        (queue(json!("heartbeats")), Some("a.metrics.pendingJobs")),
        (queue(json!({"queueDepth": http})), Some("a.metrics.pendingJobs")),
        (queue(json!({"pendingJobs": http})), None),
        (json!({"type": "queue", "metric": "queueDepth"}), Some("a.metrics.queueDepth")),
        (json!({"type": "reactive"}), None),
        (
            json!({"type": "predictive", "fallback": {"type": "composite", "policies": [{"type": "queue"}]}}),
            Some("a.metrics.pendingJobs"),
        ),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(refused(&policy, &access()), expected, "{policy}");
        let embedded = MetricsAccess { knows_jobs: true, ..access() };
        assert!(refused(&policy, &embedded).is_empty(), "something built in says it");
    }
}
