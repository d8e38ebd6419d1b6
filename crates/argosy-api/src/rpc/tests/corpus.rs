//! Every message as another library writes it: the contract, whatever generates our code.
//!
//! `tests/interop/record_corpus.py` made the rows with Google's protobuf library for Python.

use crate::rpc::{navarch, node};
use buffa::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const CORPUS: &str = include_str!("corpus.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs.map(|pair| u8::from_str_radix(&pair, 16).expect("a byte")).collect()
}

/// Bytes and JSON are read as the same message, and it is written as both.
fn check<M: Message + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    name: &str,
    json: &str,
    recorded: &str,
) {
    let from_bytes = M::decode_from_slice(&bytes(recorded)).expect(name);
    let from_json: M = serde_json::from_str(json).expect(name);
    assert_eq!(from_bytes, from_json, "{name}");
    assert_eq!(hex(&from_bytes.encode_to_vec()), recorded, "{name}");
    let written = serde_json::to_value(&from_bytes).expect(name);
    let expected: Value = serde_json::from_str(json).expect(name);
    assert_eq!(written, expected, "{name}");
}

macro_rules! check_each {
    ($name:expr, $json:expr, $bytes:expr; $($service:ident: $($message:ident),* $(,)?;)*) => {
        match $name {
            $($(concat!(stringify!($service), "::", stringify!($message)) => {
                check::<$service::$message>($name, $json, $bytes);
            })*)*
            unknown => panic!("{unknown} is recorded, and has no line here"),
        }
    };
}

#[test]
fn every_message_is_as_another_library_writes_it() {
    let rows: Vec<&str> = CORPUS.trim_end().split("\n\n").collect();
    assert!(50 < rows.len(), "only {} messages", rows.len());
    for row in rows {
        let mut lines = row.lines();
        let mut next = || lines.next().unwrap_or_default();
        let (name, json, bytes) = (next(), next(), next());
        check_each!(name, json, bytes;
            navarch:
        RegisterNodeRequest, RegisterNodeResponse, GPUInfo, NodeMetadata, NodeConfig,
        ReportHealthRequest, ReportHealthResponse, HealthCheckResult, HealthEvent,
        HeartbeatRequest, HeartbeatResponse, NodeMetrics, GPUMetrics, GetNodeCommandsRequest,
        GetNodeCommandsResponse, NodeCommand, ListNodesRequest, ListNodesResponse, NodeInfo,
        GetNodeRequest, GetNodeResponse, IssueCommandRequest, IssueCommandResponse,
        ListInstancesRequest, ListInstancesResponse, GetInstanceRequest, GetInstanceResponse,
        InstanceInfo,;
            node:
        RegisterNodeRequest, RegisterNodeResponse, Gpu, NodeConfig, Heartbeat, HeartbeatBatch,
        NodeMetrics, GpuMetrics, HeartbeatRequest, HeartbeatResponse, HealthReport,
        ReportHealthRequest, ReportHealthResponse, CheckResult, HealthEvent, Command,
        PollCommandsRequest, PollCommandsResponse, CommandAck, AckCommandRequest,
        AckCommandResponse, AttachRequest, Hello, AttachResponse, Welcome, HeartbeatAck, Error,;
        );
    }
}
