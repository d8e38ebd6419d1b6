use super::*;

fn named(cluster: &str, pool: &str) -> String {
    pool_name(&Name::parse(cluster).unwrap(), &Name::parse(pool).unwrap())
}

#[test]
fn a_pool_goes_by_its_own_name_in_the_default_cluster_only() {
    assert_eq!(named("default", "workers"), "workers");
    assert_eq!(named("prod", "workers"), "prod.workers");
}

#[test]
fn long_names_are_cut_and_stay_different() {
    let cluster = "c".repeat(50);
    let (a, b) =
        (named(&cluster, "workers-of-the-first"), named(&cluster, "workers-of-the-second"));
    for name in [&a, &b] {
        assert!(name.len() <= 63 && name.starts_with(&cluster), "{name}");
    }
    assert_ne!(a, b);
    assert_eq!(a, named(&cluster, "workers-of-the-first"), "the same each time");
}
