use super::super::check;
use super::super::machines::declared;
use super::*;
use std::path::Path;

const FILE: &str = r#"
server:
  address: ":50051"
  external_address: "http://control.example:50051"
  heartbeat_interval: 500ms
  heartbeat_timeout: 1m30s
  autoscale_interval: 45s
  grpc_port: 1
  notifier:
    type: webhook
    webhook:
      cordon_url: http://slurm.internal:9000/cordon
      uncordon_url: http://slurm.internal:9000/uncordon
      drain_status_url: http://slurm.internal:9000/drained
      timeout: 30s
      headers: { Authorization: "Bearer ${TOKEN}" }
providers:
  lambda: { type: lambda, api_key_env: MY_KEY }
  gcp: { type: gcp, project: my-project, zone: europe-west4-b }
  fake: { type: fake, gpu_count: 4 }
pools:
  training:
    providers:
      - { name: lambda, priority: 1, regions: [us-west-1, us-east-1] }
      - { name: gcp, priority: 2, weight: 3 }
    strategy: round-robin
    instance_type: h100-8x
    zones: [europe-west4-b]
    min_nodes: 2
    max_nodes: 10
    cooldown: 10m
    autoscaling:
      type: composite
      mode: max
      autoscalers:
        - { type: reactive, scale_up_at: 75, scale_down_at: 25 }
        - type: scheduled
          schedule: [{ days: [Monday, friday], start: 8, end: 18, min_nodes: 4, max_nodes: 8 }]
          fallback: { type: queue, jobs_per_node: 5 }
    health: { unhealthy_after: 2, auto_replace: true }
    labels: { team: ml }
    setup_commands: ["apt-get update"]
    ssh_user: ubuntu
  lab: { provider: fake, instance_type: a10-1x, max_nodes: 3, helth: {} }
defaults:
  ssh_keys: [ops]
"#;

fn tree(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn a_file_of_navarch_becomes_ours_and_what_is_different_is_said() {
    assert!(is_navarch(&tree(FILE)));
    let Converted { config, remarks } = convert(&tree(FILE)).unwrap();
    check(&config, None).unwrap();
    assert_eq!(config.listen, "127.0.0.1:50051", "nobody without a password from outside");
    assert_eq!(config.machines.server_url.as_deref(), Some("http://control.example:50051"));
    assert_eq!(config.nodes.heartbeat, Duration::from_secs(1), "0 s would end every daemon");
    assert_eq!(config.nodes.unreachable_after, Duration::from_secs(90));
    assert_eq!(config.machines.autoscale_interval, Duration::from_secs(45));
    let webhook = config.workload_system.webhook.as_ref().unwrap();
    assert_eq!(webhook.timeout, Duration::from_secs(10));
    assert_eq!(config.webhooks.allow, ["slurm.internal"]);
    match config.providers.get("lambda") {
        Some(ProviderOf::Lambda(lambda)) => {
            assert_eq!(lambda.api_key.env.as_deref(), Some("MY_KEY"));
            assert_eq!((lambda.ssh_key.as_str(), lambda.setup_commands.len()), ("ops", 1));
        }
        other => panic!("{other:?}"),
    }
    match config.providers.get("fake") {
        Some(ProviderOf::Process(process)) => {
            let types: Vec<_> = process.types.iter().map(|it| (&*it.name, &*it.gpu)).collect();
            assert_eq!(types, [("fake", "fake:4xH100"), ("a10-1x", "fake:4xH100")]);
        }
        other => panic!("{other:?}"),
    }
    let pools = declared(&config);
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["lab", "training"]);
    let training = Value::Object(pools.last().unwrap().spec.clone());
    assert_eq!(
        training,
        json!({
            "nodeCount": 2, "minNodes": 2, "maxNodes": 10, "machineType": "h100-8x",
            "zones": ["europe-west4-b"], "strategy": "round-robin", "remedy": "replace",
            "nodeLabels": { "team": "ml" },
            "providers": [
                { "name": "lambda", "priority": 1, "weight": 1, "regions": ["us-west-1", "us-east-1"] },
                { "name": "gcp", "priority": 2, "weight": 3 },
            ],
            "autoscaling": {
                "type": "composite", "mode": "max", "cooldown": "10m",
                "policies": [
                    { "type": "reactive", "scaleUpAt": 75, "scaleDownAt": 25 },
                    {
                        "type": "scheduled",
                        "entries": [{ "days": ["mon", "fri"], "start": "08:00", "end": "18:00",
                                      "timezone": "UTC", "minNodes": 4, "maxNodes": 8 }],
                        "fallback": { "type": "queue", "jobsPerNode": 5, "metric": "queueDepth" },
                    },
                ],
            },
        })
    );
    let about = |key: &str| remarks.iter().any(|(known, _)| known == key);
    for key in [
        "server.address",
        "server.heartbeat_interval",
        "server.grpc_port",
        "server.notifier.webhook.headers.Authorization",
        "server.notifier.webhook.drain_status_url",
        "pools.training.zones",
        "pools.training.providers[0].regions",
        "pools.training.health.unhealthy_after",
        "pools.training.ssh_user",
        "pools.lab.autoscaling",
        "pools.lab.helth",
    ] {
        assert!(about(key), "nothing is said about {key}");
    }
    assert!(
        remarks.iter().any(|(key, said)| key == "pools.lab.helth" && said.contains("`health`"))
    );
}

#[test]
fn what_is_printed_is_read_as_the_same_by_the_strict_reader() {
    let converted = convert(&tree(FILE)).unwrap();
    let text = yaml(&converted);
    let (read, _) = super::super::source::parse(&text, Path::new("argosy.yaml")).unwrap();
    assert_eq!(read, converted.config, "{text}");
    assert!(text.contains("# pools.training.zones: upstream reads and never uses it"), "{text}");
    assert!(!is_navarch(&tree(&text)), "ours is not theirs");
}

#[test]
fn what_cannot_be_understood_is_named_all_at_once() {
    let file = tree(
        "server: { notifier: { type: smoke }, heartbeat_interval: soon }\n\
         providers: { a: { type: docker }, b: {} }\n\
         pools: { p: { provider: nowhere, min_nodes: 5, max_nodes: 2 }, \
                  Q: { instance_type: x, max_nodes: 1, autoscaling: { type: magic } } }\n",
    );
    let failure = convert(&file).unwrap_err().to_string();
    for part in [
        "server.notifier.type: `smoke`",
        "server.heartbeat_interval: `soon`",
        "providers.a.type: `docker`",
        "providers.b.type: it is missing",
        "pools.p.min_nodes: 5 is more than max_nodes, which is 2",
        "pools.p.instance_type: it is missing",
        "pools.Q.provider: it is missing",
        "pools.Q.autoscaling.type: `magic`",
    ] {
        assert!(failure.contains(part), "{part} is not in\n{failure}");
    }
}

#[test]
fn a_file_is_navarchs_by_its_shape() {
    for (text, theirs) in [
        ("server: {}", true),
        ("pools: { a: { instance_type: x } }", true),
        ("pools: { a: { spec: { nodeCount: 1 } } }", false),
        ("providers: { a: { type: aws } }", false),
        ("listen: 127.0.0.1:1\nserver: {}", false),
        ("{}", false),
    ] {
        assert_eq!(is_navarch(&tree(text)), theirs, "{text}");
    }
}

#[test]
fn durations_are_gos() {
    for (text, seconds) in [
        ("30s", Some(30.0)),
        ("1m30s", Some(90.0)),
        ("500ms", Some(0.5)),
        ("1.5h", Some(5400.0)),
        ("0", Some(0.0)),
        ("", None),
        ("5", None),
        ("s", None),
        ("-1s", None),
        ("3 weeks", None),
    ] {
        let read = go_duration(text).map(|span| span.as_secs_f64());
        assert_eq!(read, seconds, "{text}");
    }
}

#[test]
fn a_heartbeat_timeout_of_any_length_can_be_kept() {
    for (timeout, expected) in [
        ("1s", ["3s", "2s", "1s"]),
        ("5s", ["5s", "3s", "1s"]),
        ("30s", ["30s", "20s", "10s"]),
        ("2m", ["2m", "25s", "10s"]),
    ] {
        let file = tree(&format!("server: {{ heartbeat_timeout: {timeout} }}"));
        let config = convert(&file).unwrap().config;
        check(&config, None).unwrap();
        let nodes = &config.nodes;
        let kept = [nodes.unreachable_after, nodes.suspect_after, nodes.stream_heartbeat];
        assert_eq!(kept.map(|span| span.to_string()), expected, "{timeout}");
    }
}
