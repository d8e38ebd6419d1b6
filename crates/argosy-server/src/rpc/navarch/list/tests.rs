use super::{CHUNK, Listed, ListedInstance, write};
use argosy_api::rpc::navarch::{ListInstancesResponse, ListNodesResponse};
use argosy_core::health::{Health, HealthState};
use argosy_core::instance::Instance;
use argosy_core::label::Labels;
use argosy_core::node::{Duty, Gpu, Liveness, Machine, Node, NodeId, Place};
use buffa::Message;
use connectrpc::{CodecFormat, Encodable};
use jiff::Timestamp;
use std::sync::Arc;

fn fleet(len: usize) -> Vec<Listed> {
    let at = Timestamp::UNIX_EPOCH;
    (0..len)
        .map(|number| {
            let health = Health {
                state: HealthState::Healthy,
                since: at,
                reason: String::new(),
                message: String::new(),
            };
            let node = Node {
                id: NodeId::parse(&format!("node-{number:05}")).unwrap(),
                tenant: "one".to_owned(),
                pool: None,
                place: Place { provider: "gcp".into(), ..Place::default() },
                machine: Machine { hostname: "a \"host\"".to_owned(), ..Machine::default() },
                gpus: (0..8).map(|index| Gpu { index, ..Gpu::default() }).collect(),
                labels: Labels::default(),
                registered_at: at,
                joined_at: at,
                liveness: Liveness::Fresh,
                liveness_since: at,
                health,
                evidence: Default::default(),
                expected_gpus: Vec::new(),
                duty: Duty::Active,
                checks: Default::default(),
                findings: Vec::new(),
                sightings: Vec::new(),
                report_sequence: 0,
                flaps: Default::default(),
                flags: Default::default(),
                held: None,
                external: Default::default(),
            };
            (Arc::new(node), (number % 2 == 0).then_some(at))
        })
        .collect()
}

#[tokio::test]
async fn both_forms_say_the_same_however_many_chunks_they_have() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7] {
        let nodes = fleet(len);
        let proto = write(&nodes, CodecFormat::Proto).await.unwrap().body;
        let proto = proto.encode(CodecFormat::Proto).unwrap();
        let proto = ListNodesResponse::decode_from_slice(&proto).unwrap();
        let json = write(&nodes, CodecFormat::Json).await.unwrap().body;
        let json = json.encode(CodecFormat::Json).unwrap();
        let read: ListNodesResponse = serde_json::from_slice(&json).unwrap();
        assert!(proto == read, "{len} nodes are not the same in both forms");
        assert_eq!(proto.nodes.len(), len);
        for (node, (document, heard_at)) in proto.nodes.iter().zip(&nodes) {
            assert_eq!(node.node_id, document.id.as_str());
            assert_eq!((node.gpus.len(), node.last_heartbeat.is_set()), (8, heard_at.is_some()));
        }
    }
}

#[tokio::test]
async fn instances_are_written_the_same_in_both_forms() {
    let instance: Arc<Instance> = Arc::new(
        serde_json::from_value(serde_json::json!({
            "id": "w-1", "tenant": "one", "pool": "01890a5d-ac96-774b-bcce-b302099a8057",
            "pool_name": "workers", "number": 1, "token": "01890a5d-ac96-774b-bcce-b302099a8058",
            "ordered_at": "2026-03-01T12:00:00Z", "why": "",
            "order": { "provider": "aws", "region": "us-east-1", "machine_type": "p5.48xlarge" },
            "state": { "state": "running", "machine": "i-1", "node": "w-1",
                       "since": "2026-03-01T12:05:00Z" },
        }))
        .unwrap(),
    );
    let labels = Arc::new(Labels::default());
    let row = || ListedInstance {
        instance: instance.clone(),
        message: "fine".into(),
        labels: labels.clone(),
    };
    for len in [0, 1, CHUNK + 1] {
        let rows: Vec<_> = (0..len).map(|_| row()).collect();
        let proto = write(&rows, CodecFormat::Proto).await.unwrap().body;
        let proto = proto.encode(CodecFormat::Proto).unwrap();
        let proto = ListInstancesResponse::decode_from_slice(&proto).unwrap();
        let json = write(&rows, CodecFormat::Json).await.unwrap().body;
        let json = json.encode(CodecFormat::Json).unwrap();
        let read: ListInstancesResponse = serde_json::from_slice(&json).unwrap();
        assert!(proto == read && proto.instances.len() == len);
        for info in &proto.instances {
            assert_eq!((info.instance_id.as_str(), info.node_id.as_str()), ("w-1", "w-1"));
            assert_eq!(
                (info.pool_name.as_str(), info.status_message.as_str()),
                ("workers", "fine")
            );
            assert_eq!(info.state.to_i32(), 3, "INSTANCE_STATE_RUNNING");
            assert!(
                info.created_at.is_set() && info.ready_at.is_set() && !info.terminated_at.is_set()
            );
        }
    }
}

#[tokio::test]
async fn only_a_short_list_is_compressed() {
    let short = write(&fleet(10), CodecFormat::Proto).await.unwrap();
    let long = write(&fleet(20_000), CodecFormat::Proto).await.unwrap();
    assert_eq!((short.compress, long.compress), (None, Some(false)));
}
