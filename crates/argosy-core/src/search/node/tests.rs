use super::super::{Filter, Order};
use super::*;
use serde_json::{Value, json};

/// A node whose every field has something in it.
fn sick() -> Node {
    let at = "2026-03-01T12:00:00Z";
    let gpu = |index: i32, uuid: &str, serial: &str| {
        json!({ "index": index, "uuid": uuid, "name": "NVIDIA H100 80GB HBM3", "serial": serial,
                "driver_version": "550.54.15" })
    };
    node(json!({
        "id": "gpu-17.eu:a",
        "tenant": "acme",
        "pool": "h100",
        "place": { "provider": "gcp", "region": "us-east1", "zone": "us-east1-b",
                   "instance_type": "a3-highgpu-8g" },
        "machine": { "hostname": "gpu-17.internal", "internal_ip": "10.0.0.17",
                     "external_ip": "203.0.113.17", "kernel_version": "6.8.0-45",
                     "boot_id": "b-1", "agent": "argosy-agent/0.2.0" },
        "gpus": [gpu(0, "GPU-aa", "1650"), gpu(1, "GPU-bb", "1651")],
        "labels": { "rack": "r7", "example.com/row": "3", "note": "" },
        "registered_at": "2026-01-01T00:00:00Z",
        "joined_at": "2026-02-01T00:00:00Z",
        "liveness": "Suspect",
        "liveness_since": at,
        "health": { "state": "Unhealthy", "since": at, "reason": "fatal-xid", "message": "Xid 79" },
        "duty": { "Cordoned": { "by": "remedy", "automatic": true, "reason": "Xid 79", "at": at } },
        "findings": [
            { "key": "xid/79/GPU-aa", "severity": "unhealthy", "rule": "fatal-xid", "message": "",
              "first": at, "last": at, "count": 1, "ends": "AtReboot" },
            { "key": "check/nvml", "severity": "degraded", "rule": "nvml", "message": "",
              "first": at, "last": at, "count": 1, "ends": "WhenCheckPasses" },
        ],
        "sightings": [
            { "event_type": "xid", "code": 79, "gpu": "GPU-aa", "times": [at] },
            { "event_type": "xid", "code": 31, "gpu": "GPU-bb", "times": [at] },
            { "event_type": "thermal", "code": 0, "times": [at] },
        ],
        "flags": { "ClockSkewed": { "since": at, "message": "" } },
        "held": { "action": "drain", "guard": "budget", "reason": "2/2", "since": at },
    }))
}

/// A node about which nothing is known but that it registered.
fn new() -> Node {
    let at = "2026-05-01T00:00:00Z";
    node(json!({
        "id": "new-1",
        "tenant": "acme",
        "place": { "provider": "", "region": "", "zone": "", "instance_type": "" },
        "machine": {},
        "gpus": [],
        "registered_at": at,
        "joined_at": at,
        "liveness": "Fresh",
        "liveness_since": at,
        "health": { "state": "Unknown", "since": at, "reason": "NoReport", "message": "" },
        "duty": "Active",
    }))
}

fn node(document: Value) -> Node {
    serde_json::from_value(document).unwrap()
}

/// Which of the two match: `sick`, `new`, `both` or `none`.
#[track_caller]
fn check(search: &str, expected: &str) {
    let filter: Filter<Node> =
        Filter::parse(search).unwrap_or_else(|error| panic!("{search}: {error}"));
    let matched = match (filter.matches(&sick()), filter.matches(&new())) {
        (true, true) => "both",
        (true, false) => "sick",
        (false, true) => "new",
        (false, false) => "none",
    };
    assert_eq!(matched, expected, "{search}");
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter), "{search} printed and read again");
}

#[track_caller]
fn refuse(search: &str, expected: &str) {
    assert_eq!(Filter::<Node>::parse(search).unwrap_err().to_string(), expected, "{search}");
}

#[test]
fn every_field_can_be_asked() {
    check("id = 'gpu-17.eu:a'", "sick");
    check("node_id like 'new-%'", "new");
    check("pool = 'h100'", "sick");
    check("provider = 'gcp' and region = 'us-east1' and zone = 'us-east1-b'", "sick");
    check("instance_type like 'a3-%'", "sick");
    check("status = 'CORDONED'", "sick");
    check("health = 'UNHEALTHY'", "sick");
    check("health_status = 'UNKNOWN'", "new");
    check("health_reason = 'fatal-xid'", "sick");
    check("health_since < '2026-04-01'", "sick");
    check("liveness = 'Suspect'", "sick");
    check("liveness_since > '2026-04-01'", "new");
    check("duty = 'Active'", "new");
    check("duty_by = 'remedy' and duty_reason like '%79'", "sick");
    check("automatic = true", "sick");
    check("hostname = 'gpu-17.internal'", "sick");
    check("internal_ip like '10.%' and external_ip like '203.%'", "sick");
    check("kernel_version like '6.8%' and boot_id = 'b-1'", "sick");
    check("agent like 'argosy-agent/%'", "sick");
    check("gpu_count = 0", "new");
    check("gpu_name like '%H100%'", "sick");
    check("gpu_uuid = 'GPU-bb' and gpu_serial = 1650 and driver_version like '550%'", "sick");
    check("registered_at < '2026-01-15'", "sick");
    check("joined_at between '2026-01-15' and '2026-02-15'", "sick");
    check("finding = 'check/nvml' and rule = 'fatal-xid'", "sick");
    check("xid = 79", "sick");
    check("flag = 'ClockSkewed'", "sick");
    check("held_by = 'budget'", "sick");
    check("labels.rack = 'r7' and labels.example.com/row = '3'", "sick");
}

#[test]
fn words_are_read_in_any_case_and_only_those_there_are() {
    check("status = 'cordoned' and health in ('unhealthy', 'Degraded')", "sick");
    check("liveness != 'fresh'", "sick");
    refuse(
        "status = 'BROKEN'",
        "Invalid status value 'BROKEN'. Supported values: UNKNOWN, ACTIVE, CORDONED, DRAINING, \
         UNHEALTHY, TERMINATED (at character 10)",
    );
    refuse(
        "liveness = 3",
        "expected a liveness in quotes, like 'Suspect', found the number 3 (at character 12)",
    );
    refuse(
        "xid = 'fatal'",
        "expected a number, because xid is one, found the text 'fatal' (at character 7)",
    );
}

#[test]
fn of_several_any_will_do() {
    check("xid in (31, 43)", "sick");
    check("xid > 70", "sick");
    check("xid != 79", "sick");
    check("not xid = 79", "new");
    check("xid not in (79, 31)", "none");
    check("xid is null", "new");
    check("gpu_uuid = 'GPU-aa' and gpu_uuid = 'GPU-bb'", "sick");
    check("finding is not null", "sick");
}

#[test]
fn what_is_empty_is_not_there() {
    check("pool is null and zone is null and hostname is null and duty_by is null", "new");
    check("gpu_name is null", "new");
    check("labels.note is null", "new");
    check("labels.note = ''", "sick");
}

#[test]
fn an_unknown_field_is_told_the_nearest() {
    refuse("pol = 'x'", "unknown field `pol`; did you mean `pool`? (at character 1)");
    refuse(
        "label.rack = 'x'",
        "unknown field `label.rack`; did you mean `labels.rack`? (at character 1)",
    );
    refuse("labels.a/-b = 'x'", "`a/-b` cannot be a label's key (at character 1)");
    // What is only in memory moves without a commit: a watch could not tell of it.
    let error = Filter::<Node>::parse("temperature > 80").unwrap_err().to_string();
    assert!(
        error.starts_with("unknown field `temperature`; known are id, node_id, pool, "),
        "{error}"
    );
    assert!(error.ends_with("flag, held_by, and labels.<key> (at character 1)"), "{error}");
    // Fields of another noun are not fields of this one.
    assert!(Filter::<Node>::parse("spec.region = 'x'").is_err());
}

#[test]
fn nodes_are_ordered_by_fields_and_then_by_id() {
    #[track_caller]
    fn row(order: &str, expected: &str) {
        let mut other = sick();
        other.id = crate::node::NodeId::parse("gpu-02").unwrap();
        let mut all = [new(), sick(), other];
        let order: Order<Node> = Order::parse(order).unwrap();
        all.sort_by(|a, b| order.compare(a, b));
        let ids: Vec<&str> = all.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids.join(" "), expected);
    }
    row("", "gpu-02 gpu-17.eu:a new-1");
    row("id desc", "new-1 gpu-17.eu:a gpu-02");
    row("status", "new-1 gpu-02 gpu-17.eu:a");
    row("pool,id desc", "gpu-17.eu:a gpu-02 new-1");
    row("gpu_count", "new-1 gpu-02 gpu-17.eu:a");
    row("registered_at desc", "new-1 gpu-02 gpu-17.eu:a");
    let error = Order::<Node>::parse("pol").unwrap_err().to_string();
    assert!(
        error.starts_with("Cannot sort by `pol`. Did you mean `pool`? One can sort by id, "),
        "{error}"
    );
    assert!(Order::<Node>::parse("gpu_name").is_err(), "a node has several");
}

#[test]
fn filters_from_parameters_match_what_they_say() {
    let both = |filter: &Filter<Node>| (filter.matches(&sick()), filter.matches(&new()));
    assert_eq!(both(&Filter::equals("pool", "h100")), (true, false));
    assert_eq!(both(&Filter::equals("status", "ACTIVE")), (false, true));
    assert_eq!(both(&Filter::equals("nothing", "x")), (false, false));
    assert_eq!(both(&Filter::labels("rack:r7").unwrap()), (true, false));
    assert_eq!(both(&Filter::label("rack", "r8")), (false, false));
}
