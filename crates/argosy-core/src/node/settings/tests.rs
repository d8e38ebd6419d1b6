use super::{NodeSettings, PoolSettings};
use jiff::SignedDuration;
use std::collections::BTreeMap;

#[test]
fn heartbeats_are_whole_seconds_and_slower_in_a_large_fleet() {
    let quick = PoolSettings {
        heartbeat_every: SignedDuration::from_millis(1500),
        stream_heartbeat_every: SignedDuration::ZERO,
        ..PoolSettings::default()
    };
    let pools = BTreeMap::from([("quick".to_owned(), quick)]);
    let settings = NodeSettings { pools, ..NodeSettings::default() };
    for (pool, on_stream, nodes, seconds) in [
        (None, false, 1, 30),
        (None, true, 1, 10),
        (Some("nobody"), false, 1, 30),
        (Some("quick"), false, 1, 2),
        (Some("quick"), true, 1, 1),
        // 5,000 a second at most.
        (None, true, 49_000, 10),
        (None, true, 100_000, 21),
        (None, false, 100_000, 30),
        (None, false, 1_000_000, 201),
        (Some("quick"), true, usize::MAX, 1_844_674_407_370_956),
    ] {
        let every = settings.heartbeat_every(pool, on_stream, nodes);
        assert_eq!(every.as_secs(), seconds, "{pool:?} {on_stream} {nodes}");
        assert!(nodes as i64 / every.as_secs() <= 5000);
    }
    assert_eq!(settings.health_every(None).as_secs(), 60);
}
