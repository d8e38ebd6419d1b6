//! Records and machines as short calls, for the tests of this crate.

use super::{Instance, InstanceId, ListingFacts};
use crate::fixture::at;
use crate::id::ResourceId;
use crate::liveness::Listened;
use crate::machine::{Abilities, Machine, MachineId, MachineState, Order, Tags};
use crate::node::NodeId;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Who we are.
pub(crate) const OURS: Uuid = Uuid::from_u128(0xA);

pub(crate) fn pool() -> ResourceId {
    ResourceId::new(Uuid::from_u128(0x9001))
}

pub(crate) fn instance_id(number: u32) -> InstanceId {
    InstanceId::parse(&format!("workers-{number:08}")).unwrap()
}

pub(crate) fn node_id(number: u32) -> NodeId {
    NodeId::parse(instance_id(number).as_str()).unwrap()
}

pub(crate) fn order() -> Order {
    Order {
        provider: "aws".to_owned(),
        region: "us-east-1".to_owned(),
        zone: String::new(),
        machine_type: "p5.48xlarge".to_owned(),
        spot: false,
        image: String::new(),
        price_per_hour: Some(98.32),
    }
}

/// The intent to buy a machine, committed at 0.
pub(crate) fn intent(number: u32) -> Instance {
    let token = Uuid::from_u128(0x1000 + u128::from(number));
    let (tenant, why) = ("acme".to_owned(), "the pool wants 5 nodes and has 4".to_owned());
    Instance::new(
        instance_id(number),
        tenant,
        pool(),
        "workers",
        number,
        token,
        order(),
        why,
        None,
        at(0),
    )
}

/// A machine that was made for a record.
pub(crate) fn machine_of(record: &Instance, id: &str, state: MachineState) -> Machine {
    Machine {
        id: MachineId::new(id),
        name: record.id.to_string(),
        state,
        tags: Tags {
            installation: Some(OURS),
            instance: Some(record.id.clone()),
            pool: Some(record.pool),
            token: Some(record.token),
        },
        region: "us-east-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        machine_type: "p5.48xlarge".to_owned(),
        spot: false,
        created_at: None,
        internal_ip: String::new(),
        external_ip: String::new(),
        notice: None,
    }
}

pub(crate) fn abilities(tokens: bool, list_lag_s: i64) -> Abilities {
    Abilities {
        tokens,
        tags: true,
        reboot: true,
        console: true,
        spot: true,
        list_lag: SignedDuration::from_secs(list_lag_s),
    }
}

/// A search for one machine that began then.
pub(crate) fn find(seconds: i64) -> ListingFacts {
    ListingFacts { began_at: at(seconds), whole: false, frozen: false }
}

/// A whole listing that began then.
pub(crate) fn listing(seconds: i64) -> ListingFacts {
    ListingFacts { began_at: at(seconds), whole: true, frozen: false }
}

/// A leader that was there all the time.
pub(crate) fn always() -> Listened {
    Listened::new(Timestamp::MIN, SignedDuration::ZERO)
}
