use super::AuditRecord;
use crate::access::Role;
use crate::fixture::{at, by, caller, cluster};

#[test]
fn a_record_says_who_did_what_to_which() {
    let ada = caller(Role::Operator, "acme", &[]);
    let cluster = cluster(&[]);
    let record = AuditRecord::new(&ada, "create", None, Some(&cluster), None, at(1));
    assert_eq!(
        (record.actor.as_str(), record.via.as_str(), record.tenant.as_str()),
        ("ada", "token", "acme")
    );
    assert_eq!((record.action.as_str(), record.name.as_str()), ("create", "prod"));
    assert_eq!(
        (record.at, record.id, record.kind.as_str()),
        (at(1), cluster.id.to_string(), "Cluster")
    );
    assert_eq!(record.request_id, "r-1");
    assert_eq!(record.before, None);
    assert_eq!(record.after.map(|hex| hex.len()), Some(64));
}

#[test]
fn digests_tell_documents_apart_and_nothing_else() {
    let ada = caller(Role::Operator, "acme", &[]);
    let living = cluster(&[]);
    let deleting = living.deleted(by("ada", 5), &[], false).unwrap();
    let delete = AuditRecord::new(&ada, "delete", Some(&living), Some(&deleting), None, at(5));
    assert_ne!(delete.before, delete.after);
    let reason = Some("lost account".to_owned());
    let force = AuditRecord::new(&ada, "force-delete", Some(&deleting), None, reason, at(6));
    assert_eq!(force.before, delete.after);
    assert_eq!((force.after, force.reason.as_deref()), (None, Some("lost account")));
}
