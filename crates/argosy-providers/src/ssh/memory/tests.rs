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
    again.said(host, &Tenancy::Free).unwrap();
    let known = again.of(host).unwrap();
    assert_eq!((known.said, known.asked), (Some(Tenancy::Free), Some(claim.clone())));
    again.said(host, &Tenancy::Claimed(claim.clone())).unwrap();
    assert_eq!(again.of(host).unwrap().asked, None);
    again.asks(host, &claim).unwrap();
    again.answered(host, Some(Tenancy::Free)).unwrap();
    let known = again.of(host).unwrap();
    assert_eq!((known.said, known.asked), (Some(Tenancy::Free), None));
    assert_eq!(again.of("gpu-2").unwrap().said, None);
    fs::remove_dir_all(&dir).unwrap();
}
