use super::*;

#[test]
fn what_a_host_said_survives_and_answers_what_was_asked() {
    let dir = std::env::temp_dir().join(format!("argosy-memory-{}", std::process::id()));
    let memory = Memory::open(&dir).unwrap();
    let host = "../rack 7/gpu-1";
    let nothing = memory.of(host).unwrap();
    assert_eq!((&nothing.said, &nothing.asked), (&None, &None));
    let claim: Claim = serde_json::from_value(serde_json::json!({
        "version": 1, "instance": "workers-1", "token": uuid::Uuid::nil(), "tags": {},
        "pool": "workers", "machine_type": "h100", "server": "https://a", "since": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    memory.asks(host, &claim).unwrap();
    let again = Memory::open(&dir).unwrap();
    assert_eq!(again.of(host).unwrap().asked.as_ref(), Some(&claim));
    // A host that is free now may be claimed by what is on its way.
    again.said(&again.of(host).unwrap(), &Tenancy::Free).unwrap();
    let known = again.of(host).unwrap();
    assert_eq!((known.said, known.asked), (Some(Tenancy::Free), Some(claim.clone())));
    again.said(&again.of(host).unwrap(), &Tenancy::Claimed(claim.clone())).unwrap();
    assert_eq!(again.of(host).unwrap().asked, None);
    again.asks(host, &claim).unwrap();
    again.answered(host, Some(Tenancy::Free)).unwrap();
    let known = again.of(host).unwrap();
    assert_eq!((known.said, known.asked), (Some(Tenancy::Free), None));
    assert_eq!(again.of("gpu-2").unwrap().said, None);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn r2_i2_what_a_slow_host_said_long_ago_is_not_written_over_what_is_known_now() {
    let dir = std::env::temp_dir().join(format!("argosy-memory-late-{}", std::process::id()));
    let memory = Memory::open(&dir).unwrap();
    let claim: Claim = serde_json::from_value(serde_json::json!({
        "version": 1, "instance": "workers-1", "token": uuid::Uuid::nil(), "tags": {},
        "pool": "workers", "machine_type": "h100", "server": "https://a", "since": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    // A listing asks the host, which is free; a purchase claims it before all other hosts have answered.
    let listing = memory.of("gpu-1").unwrap();
    memory.asks("gpu-1", &claim).unwrap();
    memory.answered("gpu-1", Some(Tenancy::Claimed(claim.clone()))).unwrap();
    memory.said(&listing, &Tenancy::Free).unwrap();
    let known = memory.of("gpu-1").unwrap();
    assert_eq!(known.said, Some(Tenancy::Claimed(claim.clone())));
    assert!(known.may_hold(claim.token), "or another machine is bought");
    // The next listing is newer.
    memory.said(&known, &Tenancy::Free).unwrap();
    assert_eq!(memory.of("gpu-1").unwrap().said, Some(Tenancy::Free));
    // Of two listings that overlap, the one that asked later is believed.
    let (first, second) = (memory.of("gpu-1").unwrap(), memory.of("gpu-1").unwrap());
    memory.said(&second, &Tenancy::Foreign).unwrap();
    memory.said(&first, &Tenancy::Free).unwrap();
    assert_eq!(memory.of("gpu-1").unwrap().said, Some(Tenancy::Foreign));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn r2_i2_two_who_write_at_once_both_do() {
    let dir = std::env::temp_dir().join(format!("argosy-memory-both-{}", std::process::id()));
    let memory = Memory::open(&dir).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let memory = memory.clone();
            scope.spawn(move || {
                for round in 0..20 {
                    let tenancy =
                        if (worker + round) % 2 == 0 { Tenancy::Free } else { Tenancy::Foreign };
                    memory.answered("gpu-1", Some(tenancy)).unwrap();
                }
            });
        }
    });
    fs::remove_dir_all(&dir).unwrap();
}
