use super::Name;
use crate::field::Constraint;
use serde_json::json;

#[test]
fn a_dns_label_is_a_name() {
    for good in ["a", "7", "my-test-cluster", "a--b", &"a".repeat(63)] {
        assert_eq!(Name::parse(good).unwrap().as_str(), good);
    }
}

#[test]
fn anything_else_is_told_which_rule_it_breaks() {
    let rows = [
        ("", Constraint::Required),
        ("-a", Constraint::Pattern),
        ("a-", Constraint::Pattern),
        ("-", Constraint::Pattern),
        ("My-Cluster", Constraint::Pattern),
        ("a_b", Constraint::Pattern),
        ("a.b", Constraint::Pattern),
        ("a b", Constraint::Pattern),
        ("größe", Constraint::Pattern),
        ("a\n", Constraint::Pattern),
        ("a'; drop table--", Constraint::Pattern),
        (&"a".repeat(64), Constraint::MaxLength),
    ];
    for (bad, constraint) in rows {
        let complaint = Name::parse(bad).unwrap_err();
        assert_eq!((complaint.field.as_str(), complaint.constraint), ("name", Some(constraint)));
        assert_eq!(complaint.value, Some(json!(bad)));
    }
}

#[test]
fn what_is_far_too_long_is_not_repeated() {
    let complaint = Name::parse(&"a".repeat(100_000)).unwrap_err();
    assert_eq!(complaint.value, None);
    assert_eq!(complaint.message, "name is 100000 characters long; at most 63 are allowed");
}
