use super::*;

#[test]
fn a_scope_reads_as_it_is_printed() {
    let pool = |tenant: &str, pool: &str| Scope::Pool { tenant: tenant.into(), pool: pool.into() };
    for known in [
        Scope::Fleet,
        Scope::Zone { zone: "gcp/us-east1/us-east1-b".into() },
        pool("acme", "h100"),
        pool("acme", ""),
    ] {
        assert_eq!(scope(&known.to_string()), Ok(known));
    }
    for text in ["", "fleets", "zone/", "zone", "pool/acme", "node/x", "Fleet"] {
        assert!(scope(text).is_err(), "{text}");
    }
}
