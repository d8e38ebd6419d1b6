use crate::autoscale::Autoscaling;
use crate::autoscale::tests::{parse, refuse};
use serde_json::{Value, json};

#[test]
fn a_source_is_an_address_and_what_to_ask() {
    let metrics = |metrics: Value| json!({"type": "reactive", "metrics": metrics});
    let prometheus = |url: &str| json!({"utilization": {"prometheus": {"url": url, "query": "q"}}});
    for url in ["http://p:9090", "https://p.example/prefix?x=a@b"] {
        parse(&metrics(prometheus(url)));
    }
    let place = "spec.autoscaling.metrics.utilization";
    let address =
        format!("{place}.prometheus.url must be an address like https://prometheus.example:9090");
    for (sent, expected) in [
        (prometheus("ftp://p"), vec![address.clone()]),
        (prometheus("http://"), vec![address.clone()]),
        (prometheus("http://a b"), vec![address.clone()]),
        (prometheus("prometheus:9090"), vec![address]),
        (
            prometheus("http://user:secret@p"),
            vec![format!("{place}.prometheus.url must not carry a password: name it with `credentials`")],
        ),
        (
            json!({"utilization": {"prometheus": {"queri": "x"}}}),
            vec![
                format!("{place}.prometheus.url is missing: give http:// or https:// …"),
                format!("{place}.prometheus.query is missing: give PromQL that has one number as its result"),
                format!("{place}.prometheus.queri is not one of url, query, credentials; did you mean query?"),
            ],
        ),
        (
            json!({"utilization": {"http": {"url": "http://q", "pointer": "depth"}}}),
            vec![format!("{place}.http.pointer must begin with /, like /queue/depth (RFC 6901)")],
        ),
        (
            json!({"utilization": {"http": {"url": "http://q"}, "prometheus": {}}}),
            vec![format!("{place}.http is one source too many; give one")],
        ),
        (
            json!({"utilization": {}}),
            vec![format!("{place}.prometheus is missing: say prometheus or http, or write just \"heartbeats\"")],
        ),
        (
            json!({"maxAge": "1s", "pending_jobs": "heartbeats"}),
            vec![
                "spec.autoscaling.metrics.maxAge must be between 10s and 1h".to_owned(),
                "spec.autoscaling.metrics.pending_jobs is not one of utilization, pendingJobs, \
                 queueDepth, maxAge; did you mean pendingJobs?".to_owned(),
            ],
        ),
        (
            json!({"queueDepth": {"http": {"url": format!("http://{}", "q".repeat(2048))}}}),
            vec!["spec.autoscaling.metrics.queueDepth.http.url has 2055 bytes; at most 2048 are allowed".to_owned()],
        ),
    ] {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        refuse(&metrics(sent), &expected);
    }
    // A password never comes back in an error.
    let policy = metrics(prometheus("http://user:secret@p"));
    let errors = Autoscaling::parse(&policy, "a").unwrap_err();
    assert_eq!(errors[0].value, None);
}
