use super::*;
use std::collections::BTreeSet;

#[test]
fn every_code_is_there_once() {
    let codes: BTreeSet<_> = CODES.iter().map(|code| code.code).collect();
    assert_eq!(codes.len(), CODES.len());
}

#[test]
fn the_generated_list_of_codes_is_current() {
    crate::golden("docs/errors.md", &document());
}

#[test]
fn absent_members_are_absent() {
    let text = serde_json::to_string(&Problem::default()).unwrap();
    assert!(!text.contains("null"), "{text}");
}
