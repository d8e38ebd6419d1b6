use super::*;

fn at(nanosecond: i128) -> Timestamp {
    Timestamp::from_nanosecond(nanosecond).unwrap()
}

#[test]
fn every_part_of_an_entry_is_in_its_hash() {
    let hash = chain("00", 1, "node", at(5_000), "{}");
    assert_eq!(hash, chain("00", 1, "node", at(5_999), "{}"), "below a microsecond nothing counts");
    for other in [
        chain("01", 1, "node", at(5_000), "{}"),
        chain("00", 2, "node", at(5_000), "{}"),
        chain("00", 1, "nod", at(5_000), "e{}"),
        chain("00n", 1, "ode", at(5_000), "{}"),
        chain("00", 1, "node", at(6_000), "{}"),
        chain("00", 1, "node", at(5_000), "{ }"),
    ] {
        assert_ne!(hash, other);
    }
}

#[test]
fn the_hash_never_changes_between_releases() {
    assert_eq!(
        chain(&"0".repeat(64), 1, "cluster/a", at(1_700_000_000_123_456_789), r#"{"a":1}"#),
        "82a7af827c1fa9be9dc7c4733e42be0687e358dab5afa37280e37dbf847b5826"
    );
}
