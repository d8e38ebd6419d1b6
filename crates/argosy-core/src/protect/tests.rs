use super::{PROTECTED, Protection, protection};
use crate::fixture::cluster;
use crate::instance::Reason;
use crate::label::Labels;
use serde_json::{Map, json};

fn labels(value: &str) -> Labels {
    Labels::parse(&Map::from_iter([(PROTECTED.to_owned(), json!(value))])).unwrap()
}

#[test]
fn r2_m19_the_label_of_node_pool_or_cluster_protects() {
    let plain = cluster(&[]);
    let mut marked = cluster(&[]);
    marked.labels = labels("true");
    let mut taken_off = cluster(&[]);
    taken_off.labels = labels("false");
    let rows = [
        (&plain, &plain, None),
        (&taken_off, &taken_off, None),
        (&marked, &plain, Some(Protection::Pool)),
        (&plain, &marked, Some(Protection::Cluster)),
        (&marked, &marked, Some(Protection::Pool)),
    ];
    for (pool, cluster, expected) in rows {
        assert_eq!(protection(None, Some(pool), Some(cluster)), expected);
    }
    assert_eq!(protection(None, None, None), None);
}

#[test]
fn r2_m19_a_protected_pool_keeps_its_size_and_a_protected_node_stays() {
    let because = || "XID 79".to_owned();
    let by = || "ada".to_owned();
    let rows = [
        (Reason::ScaleDown { asked: true }, true, true),
        (Reason::ScaleDown { asked: false }, true, true),
        (Reason::Replaced { by: None, because: because() }, true, false),
        (Reason::Sick { because: because() }, true, false),
        (Reason::BadHardware { serial: "1650".to_owned() }, true, false),
        (Reason::Unwanted, true, false),
        (Reason::PoolDeleted, false, false),
        (Reason::Operator { by: by(), reason: because() }, false, false),
        (Reason::NodeTerminated { by: by() }, false, false),
        (Reason::Reclaimed, false, false),
        (Reason::Vanished, false, false),
        (Reason::Stale, false, false),
    ];
    for (reason, node, pool) in rows {
        assert_eq!(Protection::Node.keeps(&reason), node, "{reason:?}");
        assert_eq!(Protection::Pool.keeps(&reason), pool, "{reason:?}");
        assert_eq!(Protection::Cluster.keeps(&reason), pool, "{reason:?}");
    }
}
