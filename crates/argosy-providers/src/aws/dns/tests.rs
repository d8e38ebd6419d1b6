use super::{Change, Record, Wish, batch, changes, host_name, plain_name, pointing_to};
use proptest::prelude::proptest;

fn record(name: &str, kind: &str, value: &str) -> Record {
    let (name, kind) = (name.to_owned(), kind.to_owned());
    Record { name, kind, ttl_s: Some(60), value: vec![value.to_owned()] }
}

fn wish() -> Wish {
    Wish {
        domain: "example.com".to_owned(),
        owner: record("_argosy.prod.example.com", "TXT", "\"ours\""),
        records: [
            record("api.prod.example.com", "A", "203.0.113.7"),
            record("*.apps.prod.example.com", "A", "203.0.113.7"),
        ],
    }
}

/// The changes as one line, or the reason why there are none.
fn planned(found: &[Record]) -> String {
    match changes(&wish(), found) {
        Ok(changes) => {
            let line = |change: &Change| match change {
                Change::Create(record) => format!("+{} {}", record.name, record.kind),
                Change::Delete(record) => format!("-{} {}", record.name, record.kind),
            };
            changes.iter().map(line).collect::<Vec<_>>().join(", ")
        }
        Err(refusal) => refusal.cause.reason,
    }
}

#[test]
fn only_what_is_ours_is_changed() {
    let Wish { owner, records: [api, apps], .. } = wish();
    let (all, created) = ("+api.prod.example.com A, +*.apps.prod.example.com A", "");
    assert_eq!(planned(&[]), format!("{all}, +_argosy.prod.example.com TXT"));
    assert_eq!(planned(&[owner.clone(), api.clone(), apps.clone()]), created);
    assert_eq!(planned(&[owner.clone(), api.clone()]), "+*.apps.prod.example.com A");
    let old = record("api.prod.example.com", "CNAME", "old.example.net");
    assert_eq!(
        planned(&[owner.clone(), old.clone(), apps.clone()]),
        "-api.prod.example.com CNAME, +api.prod.example.com A"
    );
    assert_eq!(planned(&[old]), "DNSRecordConflict", "somebody else has the name");
    let theirs = record("_argosy.prod.example.com", "TXT", "\"theirs\"");
    assert_eq!(planned(&[theirs, api.clone()]), "DNSRecordConflict");
    let beside = record("api.prod.example.com", "CAA", "0 issue \"x\"");
    assert_eq!(planned(&[owner.clone(), api.clone(), apps.clone(), beside]), "");
    let alias = Record { ttl_s: None, value: Vec::new(), ..api.clone() };
    assert_eq!(planned(&[owner, alias, api, apps]), "", "an alias is never ours");
}

#[test]
fn a_target_is_an_address_or_a_host() {
    let kind = |target: &str| pointing_to(target).map(|(kind, value)| format!("{kind} {value}"));
    let rows = [
        ("203.0.113.7", "A 203.0.113.7"),
        ("2001:db8::7", "AAAA 2001:db8::7"),
        ("LB.Example.net.", "CNAME lb.example.net"),
    ];
    for (target, expected) in rows {
        assert_eq!(kind(target).ok().as_deref(), Some(expected));
    }
    for target in ["", "localhost", "a b.c", "x.y/z", "<a>.b", "*.example.com"] {
        assert!(kind(target).is_err(), "{target}");
    }
}

#[test]
fn names_are_read_as_people_write_them() {
    assert_eq!(plain_name("\\052.apps.Prod.example.com."), "*.apps.prod.example.com");
    assert!(host_name("a.b") && !host_name("a") && !host_name("a..b") && !host_name(".a"));
}

#[test]
fn a_batch_is_one_document() {
    let record = record("api.prod.example.com", "TXT", "\"a & b\"");
    let body = batch(&[Change::Delete(record.clone()), Change::Create(record)]);
    assert!(body.contains("<Value>&quot;a &amp; b&quot;</Value>"), "{body}");
    assert_eq!(body.matches("<Change>").count(), 2);
    let delete = body.find("DELETE").expect("a deletion");
    assert!(delete < body.find("CREATE").expect("a creation"), "what is in the way goes first");
}

proptest! {
    #[test]
    fn no_target_can_break_out_of_its_element(
        target in proptest::prop_oneof!["\\PC*", "[a-z0-9<>&'\"./:-]{1,12}\\.[a-z]{2,4}", "[0-9a-f]{1,4}::[0-9a-f<]{0,4}"],
    ) {
        if let Ok((kind, value)) = pointing_to(&target) {
            let body = batch(&[Change::Create(record("api.x.y", kind, &value))]);
            assert_eq!(body.matches('<').count(), 25, "{body}");
        }
    }
}
