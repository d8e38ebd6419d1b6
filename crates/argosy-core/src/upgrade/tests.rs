use super::{VERSION, upgrade};
use serde_json::json;

#[test]
fn a_document_of_today_stays_as_it_is() {
    let document = json!({ "id": "x" });
    assert_eq!(upgrade("resource", VERSION, document.clone()), Ok(document));
}

#[test]
fn a_document_of_a_newer_build_is_refused_with_what_to_do() {
    assert_eq!(
        upgrade("resource", VERSION + 1, json!({})),
        Err("a resource document has version 2, but this build knows versions up to 1; start a \
             newer argosy"
            .to_owned())
    );
}
