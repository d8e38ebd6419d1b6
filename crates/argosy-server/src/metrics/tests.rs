use super::*;
use argosy_control::census::NodeGroup;
use argosy_core::health::HealthState;
use argosy_core::node::Liveness;
use argosy_core::resource::Kind;
use argosy_core::status::Phase;
use http_body_util::BodyExt;
use serde_json::Value;

fn metrics() -> Metrics {
    Metrics::new("1.2.3", Timestamp::from_second(1_700_000_000).unwrap())
}

fn text(metrics: &Metrics) -> String {
    metrics.text(&Census::default(), &Stats::default())
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|it| it == line), "no line {line} in\n{text}");
}

#[test]
fn everything_is_there_from_the_first_scrape() {
    let metrics = metrics();
    let stats = Stats::default();
    stats.commits.add_one();
    stats.commits.add_one();
    stats.machine_alarms.raise(MachineAlarm::Frozen);
    stats.machine_alarms.add(MachineAlarm::Died, 2);
    let census = Census {
        resources: [((Kind::Cluster, Phase::NotReady), 3), ((Kind::NodePool, Phase::Ready), 0)]
            .into(),
        ..Census::default()
    };
    let text = metrics.text(&census, &stats);
    has(&text, "hyperfleet_api_build_info{component=\"argosy\",version=\"1.2.3\"} 1");
    has(&text, "argosy_resources{kind=\"Cluster\",phase=\"Not Ready\"} 3");
    has(&text, "argosy_resources{kind=\"NodePool\",phase=\"Ready\"} 0");
    has(&text, "argosy_commits_total 2");
    has(&text, "argosy_commit_conflicts_total 0");
    has(&text, "argosy_events_rejected_total 0");
    has(&text, "argosy_node_heartbeats_total 0");
    has(&text, "argosy_node_impersonations_total 0");
    has(&text, "argosy_machines_ordered_total 0");
    for alarm in MachineAlarm::ALL {
        let count =
            u64::from(alarm == MachineAlarm::Frozen) + 2 * u64::from(alarm == MachineAlarm::Died);
        let kind = alarm.as_str();
        has(&text, &format!("argosy_machine_alarms_total{{kind=\"{kind}\"}} {count}"));
    }
    has(&text, "argosy_watchers 0");
    has(&text, "argosy_connections 0");
    has(&text, "process_start_time_seconds 1700000000");
    let memory = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    assert!(1 << 20 < memory.unwrap().parse::<u64>().unwrap());
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
}

#[test]
fn the_fleet_is_counted_under_our_names_and_navarchs() {
    let group = |pool: &str, status, health| NodeGroup {
        pool: pool.into(),
        status,
        health,
        liveness: Liveness::Fresh,
    };
    let census = Census {
        nodes: [
            (group("h100", NodeStatus::Active, HealthState::Healthy), 5),
            (group("none", NodeStatus::Active, HealthState::Degraded), 2),
            (group("h100", NodeStatus::Cordoned, HealthState::Unhealthy), 1),
        ]
        .into(),
        gpus: [("gcp".into(), 64)].into(),
        findings: [(Some(Severity::Unhealthy), 3), (None, 1)].into(),
        held: [("budget".to_owned(), 2)].into(),
        open_commands: [("pending", 4)].into(),
        breakers: [(("pool", true), 1)].into(),
        pauses: [("fleet", 1)].into(),
        ..Census::default()
    };
    let text = metrics().text(&census, &Stats::default());
    for line in [
        "argosy_nodes{pool=\"h100\",status=\"ACTIVE\",health=\"HEALTHY\",liveness=\"Fresh\"} 5",
        "argosy_nodes{pool=\"none\",status=\"ACTIVE\",health=\"DEGRADED\",liveness=\"Fresh\"} 2",
        "navarch_nodes_total{status=\"active\"} 7",
        "navarch_nodes_total{status=\"cordoned\"} 1",
        "navarch_nodes_total{status=\"terminated\"} 0",
        "navarch_gpus_total{provider=\"gcp\"} 64",
        "argosy_findings{severity=\"unhealthy\"} 3",
        "argosy_findings{severity=\"unknown\"} 1",
        "argosy_findings{severity=\"degraded\"} 0",
        "argosy_actions_held{guard=\"budget\"} 2",
        "argosy_commands{state=\"pending\"} 4",
        "argosy_commands{state=\"acknowledged\"} 0",
        "argosy_breakers{scope=\"pool\",state=\"half_open\"} 1",
        "argosy_breakers{scope=\"fleet\",state=\"open\"} 0",
        "argosy_pauses{scope=\"fleet\"} 1",
        "argosy_pauses{scope=\"pool\"} 0",
    ] {
        has(&text, line);
    }
}

#[test]
fn requests_are_counted_by_method_route_and_code() {
    let metrics = metrics();
    metrics.observe(&Method::GET, "/clusters/{id}", 200, 0.003);
    metrics.clone().observe(&Method::GET, "/clusters/{id}", 200, 0.3);
    metrics.observe(&Method::GET, "/clusters/{id}", 404, 0.003);
    let text = text(&metrics);
    let labels = "method=\"GET\",path=\"/clusters/{id}\",code=\"200\"";
    has(&text, &format!("hyperfleet_api_requests_total{{{labels}}} 2"));
    has(&text, &format!("hyperfleet_api_request_duration_seconds_count{{{labels}}} 2"));
    let name = "hyperfleet_api_request_duration_seconds_bucket";
    assert!(text.lines().any(|line| line.starts_with(name)
        && line.contains("le=\"0.005\"")
        && line.contains("code=\"200\"")
        && line.ends_with(" 1")));
    let labels = labels.replace("200", "404");
    has(&text, &format!("hyperfleet_api_requests_total{{{labels}}} 1"));
}

#[test]
fn o4_clients_cannot_make_new_series() {
    let metrics = metrics();
    for index in 0..1000 {
        let method = Method::from_bytes(format!("M{index}").as_bytes()).unwrap();
        metrics.observe(&method, "/clusters", 405, 0.0);
        metrics.observe(&Method::GET, &format!("/path-{index}"), 404, 0.0);
    }
    let text = text(&metrics);
    let series = text.lines().filter(|line| line.starts_with("hyperfleet_api_requests_total"));
    assert_eq!(series.count(), ROUTES_MAX + 1);
    has(
        &text,
        "hyperfleet_api_requests_total{method=\"other\",path=\"/clusters\",code=\"405\"} 1000",
    );
    has(&text, "hyperfleet_api_requests_total{method=\"GET\",path=\"other\",code=\"404\"} 801");
}

#[test]
fn what_is_open_is_counted_until_it_is_closed() {
    let metrics = metrics();
    let (one, two) = (metrics.watcher(), metrics.watcher());
    let connection = metrics.connection();
    drop(one);
    has(&text(&metrics), "argosy_watchers 1");
    has(&text(&metrics), "argosy_connections 1");
    drop((two, connection));
    has(&text(&metrics), "argosy_watchers 0");
    has(&text(&metrics), "argosy_connections 0");
}

#[tokio::test]
async fn a_probe_says_why_not() {
    let check = async |answer: Result<(), String>, status: u16, body: Value| {
        let response = probe("late", answer);
        assert_eq!(response.status().as_u16(), status);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), body);
    };
    check(Ok(()), 200, json!({"status": "ok"})).await;
    let late = json!({"status": "late", "reason": "the sentinel is"});
    check(Err("the sentinel is".to_owned()), 503, late).await;
}
