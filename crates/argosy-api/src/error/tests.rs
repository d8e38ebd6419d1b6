use super::*;
use std::collections::BTreeSet;

#[test]
fn every_code_is_there_once() {
    let codes: BTreeSet<_> = CODES.iter().map(|code| code.code).collect();
    assert_eq!(codes.len(), CODES.len());
}

#[test]
fn the_document_lists_what_the_code_says() {
    crate::golden("docs/errors.md", &document());
}

#[test]
fn absent_members_are_absent() {
    let text = serde_json::to_string(&Problem::default()).unwrap();
    assert!(!text.contains("null"), "{text}");
}
