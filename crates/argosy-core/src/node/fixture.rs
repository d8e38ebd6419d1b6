//! Nodes as short texts, for the tests of this crate.

use super::{Gpu, Machine, Node, Place, Registrar, Registration, register};
use crate::fixture::at;

/// What an eight-GPU machine says of itself.
pub(crate) fn registration(id: &str) -> Registration {
    let gpu = |index: i32| Gpu {
        index,
        uuid: format!("GPU-{id}-{index}"),
        name: "NVIDIA H100".into(),
        pci_bus_id: format!("0000:{:02x}:00.0", index + 1),
        memory_total: 80 << 30,
        driver_version: "550.1".into(),
        cuda_version: "12.4".into(),
        serial: format!("{id}-{index}"),
    };
    Registration {
        node_id: id.to_owned(),
        place: Place {
            provider: "gcp".into(),
            region: "us-east1".into(),
            zone: "us-east1-b".into(),
            instance_type: "a3-highgpu-8g".into(),
        },
        machine: Machine {
            hostname: format!("{id}.example"),
            internal_ip: "10.0.0.7".to_owned(),
            kernel_version: "6.1.0".to_owned(),
            boot_id: "boot-1".to_owned(),
            machine_id: format!("machine-{id}"),
            agent: "argosy-agent/0.2.0".to_owned(),
            ..Machine::default()
        },
        gpus: (0..8).map(gpu).collect(),
        pool: Some("h100".to_owned()),
        ..Registration::default()
    }
}

/// Acme's door, and whether the machine that has the id was heard.
pub(crate) fn acme(heard_recently: bool) -> Registrar<'static> {
    Registrar { tenant: "acme", team: None, heard_recently }
}

/// A node of acme's that registered at 0.
pub(crate) fn node(id: &str) -> Node {
    register(None, &registration(id), acme(false), at(0)).unwrap().node
}
