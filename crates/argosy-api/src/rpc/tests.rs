mod corpus;
mod generated;

use super::attach::Said;
use super::navarch::{HeartbeatRequest, HeartbeatResponse, NodeStatus, ReportHealthResponse};
use super::node::AttachRequest;
use buffa::Message as _;

/// What was recorded from Navarch: each message with its fields (name, number, type).
const MESSAGES: &str = "\
RegisterNodeRequest: node_id 1 string, provider 2 string, region 3 string, zone 4 string, instance_type 5 string, gpus 6 repeated GPUInfo, metadata 7 NodeMetadata
RegisterNodeResponse: success 1 bool, message 2 string, config 3 NodeConfig
GPUInfo: index 1 int32, uuid 2 string, name 3 string, pci_bus_id 4 string, memory_total 5 int64, driver_version 6 string, cuda_version 7 string
NodeMetadata: hostname 1 string, internal_ip 2 string, external_ip 3 string, kernel_version 4 string, labels 5 map<string, string>
NodeConfig: health_check_interval_seconds 1 int32, heartbeat_interval_seconds 2 int32, enabled_health_checks 3 repeated string
ReportHealthRequest: node_id 1 string, results 2 repeated HealthCheckResult, events 3 repeated HealthEvent
ReportHealthResponse: acknowledged 1 bool, node_status 2 NodeStatus
HealthCheckResult: check_name 1 string, status 2 HealthStatus, message 3 string, timestamp 4 google.protobuf.Timestamp, details 5 map<string, string>
HealthEvent: timestamp 1 google.protobuf.Timestamp, gpu_index 2 int32, gpu_uuid 3 string, system 4 HealthWatchSystem, event_type 5 HealthEventType, metrics 6 map<string, string>, message 7 string
HeartbeatRequest: node_id 1 string, timestamp 2 google.protobuf.Timestamp, metrics 3 NodeMetrics
HeartbeatResponse: acknowledged 1 bool
NodeMetrics: cpu_usage_percent 1 double, memory_usage_percent 2 double, gpu_metrics 3 repeated GPUMetrics
GPUMetrics: gpu_index 1 int32, temperature 2 int32, power_usage 3 int32, utilization_percent 4 double, memory_used 5 int64
GetNodeCommandsRequest: node_id 1 string
GetNodeCommandsResponse: commands 1 repeated NodeCommand
NodeCommand: command_id 1 string, type 2 NodeCommandType, parameters 3 map<string, string>, issued_at 4 google.protobuf.Timestamp
ListNodesRequest: provider 1 string, region 2 string, status 3 NodeStatus
ListNodesResponse: nodes 1 repeated NodeInfo
NodeInfo: node_id 1 string, provider 2 string, region 3 string, zone 4 string, instance_type 5 string, status 6 NodeStatus, health_status 7 HealthStatus, last_heartbeat 8 google.protobuf.Timestamp, gpus 9 repeated GPUInfo, metadata 10 NodeMetadata
GetNodeRequest: node_id 1 string
GetNodeResponse: node 1 NodeInfo
IssueCommandRequest: node_id 1 string, command_type 2 NodeCommandType, parameters 3 map<string, string>
IssueCommandResponse: command_id 1 string, issued_at 2 google.protobuf.Timestamp
ListInstancesRequest: provider 1 string, region 2 string, state 3 InstanceState, pool_name 4 string
ListInstancesResponse: instances 1 repeated InstanceInfo
GetInstanceRequest: instance_id 1 string
GetInstanceResponse: instance 1 InstanceInfo
InstanceInfo: instance_id 1 string, provider 2 string, region 3 string, zone 4 string, instance_type 5 string, state 6 InstanceState, pool_name 7 string, created_at 8 google.protobuf.Timestamp, ready_at 9 google.protobuf.Timestamp, terminated_at 10 google.protobuf.Timestamp, node_id 11 string, status_message 12 string, labels 13 map<string, string>
";

/// The enums, in the order of their numbers.
const ENUMS: &str = "\
HealthStatus: HEALTH_STATUS_ UNKNOWN HEALTHY DEGRADED UNHEALTHY
HealthEventType: HEALTH_EVENT_TYPE_ UNKNOWN XID THERMAL POWER MEMORY NVLINK PCIE DRIVER_ERROR ECC_SBE ECC_DBE
HealthWatchSystem: HEALTH_WATCH_SYSTEM_ UNKNOWN PCIE NVLINK PMU MCU MEM SM INFOROM THERMAL POWER DRIVER NVSWITCH
NodeStatus: NODE_STATUS_ UNKNOWN ACTIVE CORDONED DRAINING UNHEALTHY TERMINATED
InstanceState: INSTANCE_STATE_ UNKNOWN PROVISIONING PENDING_REGISTRATION RUNNING TERMINATING TERMINATED FAILED
NodeCommandType: NODE_COMMAND_TYPE_ UNKNOWN CORDON DRAIN RUN_DIAGNOSTIC TERMINATE UNCORDON
";

const METHODS: [&str; 9] = [
    "RegisterNode(RegisterNodeRequest) returns (RegisterNodeResponse)",
    "ReportHealth(ReportHealthRequest) returns (ReportHealthResponse)",
    "SendHeartbeat(HeartbeatRequest) returns (HeartbeatResponse)",
    "GetNodeCommands(GetNodeCommandsRequest) returns (GetNodeCommandsResponse)",
    "ListNodes(ListNodesRequest) returns (ListNodesResponse)",
    "GetNode(GetNodeRequest) returns (GetNodeResponse)",
    "IssueCommand(IssueCommandRequest) returns (IssueCommandResponse)",
    "ListInstances(ListInstancesRequest) returns (ListInstancesResponse)",
    "GetInstance(GetInstanceRequest) returns (GetInstanceResponse)",
];

/// What a file declares, in the words of the tables above.
fn declared(keyword: &str) -> String {
    let text = include_str!("../../proto/navarch/control_plane.proto");
    let mut listing = String::new();
    let mut members: Option<Vec<String>> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix(keyword) {
            listing.push_str(&name.replace(" {", ":"));
            members = Some(Vec::new());
        } else if line == "}" {
            if let Some(members) = members.take() {
                listing.push_str(&format!(" {}\n", members.join(", ")));
            }
        } else if let (Some(members), Some((left, number))) = (&mut members, line.split_once(" = "))
        {
            let number = number.trim_end_matches(';');
            let (kind, name) = left.rsplit_once(' ').unwrap_or(("", left));
            members.push(format!("{name} {number} {kind}").trim_end().to_owned());
        }
    }
    listing
}

#[test]
fn navarchs_messages_are_as_recorded() {
    assert_eq!(declared("message "), MESSAGES);
}

#[test]
fn navarchs_enums_are_as_recorded() {
    let expected: String = ENUMS
        .lines()
        .map(|line| {
            let (name, values) = line.split_once(": ").unwrap();
            let (prefix, values) = values.split_once(' ').unwrap();
            let values = values.split(' ').enumerate();
            let values: Vec<_> =
                values.map(|(at, value)| format!("{prefix}{value} {at}")).collect();
            format!("{name}: {}\n", values.join(", "))
        })
        .collect();
    assert_eq!(declared("enum "), expected);
}

#[test]
fn navarchs_methods_are_as_recorded() {
    let text = include_str!("../../proto/navarch/control_plane.proto");
    let declared = text.lines().filter_map(|line| line.trim().strip_prefix("rpc "));
    let declared: Vec<&str> = declared.map(|line| line.trim_end_matches(';')).collect();
    assert_eq!(declared, METHODS);
}

#[test]
fn a_field_that_belongs_to_somebody_else_is_ignored() {
    // node_id "n1", then field 4 of an unmerged branch: { preempted: true }.
    let bytes = [0x0a, 2, b'n', b'1', 0x22, 2, 0x08, 1];
    let request = HeartbeatRequest::decode_from_slice(&bytes).unwrap();
    assert_eq!(request, HeartbeatRequest { node_id: "n1".to_owned(), ..Default::default() });
}

#[test]
fn json_has_names_in_camel_case_and_no_defaults() {
    let status = ReportHealthResponse {
        acknowledged: true,
        node_status: NodeStatus::NODE_STATUS_ACTIVE.into(),
    };
    let json = serde_json::to_string(&status).unwrap();
    assert_eq!(json, r#"{"acknowledged":true,"nodeStatus":"NODE_STATUS_ACTIVE"}"#);
    assert_eq!(serde_json::to_string(&HeartbeatResponse::default()).unwrap(), "{}");
    for text in [r#"{"nodeId":"n1","nonsense":{"a":[1]}}"#, r#"{"node_id":"n1"}"#] {
        let request: HeartbeatRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.node_id, "n1", "{text}");
    }
}

#[test]
fn a_heartbeat_on_a_stream_is_two_bytes() {
    let heartbeat = Said::Heartbeat(Box::default());
    assert_eq!(AttachRequest { message: Some(heartbeat) }.encode_to_vec(), [0x12, 0]);
}
