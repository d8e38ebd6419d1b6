use super::{Constraint, FieldError};
use serde_json::json;

#[test]
fn a_complaint_says_where_what_and_which_rule() {
    let complaint = FieldError::new("spec.nodeCount", Constraint::Max, "at most 100");
    assert_eq!(
        json!(complaint.clone().with_value(150)),
        json!({ "field": "spec.nodeCount", "message": "at most 100", "value": 150, "constraint": "max" })
    );
    // Absent is absent, never null.
    assert_eq!(
        json!(FieldError { constraint: None, ..complaint }),
        json!({ "field": "spec.nodeCount", "message": "at most 100" })
    );
    assert_eq!(json!([Constraint::MaxLength, Constraint::Enum]), json!(["max_length", "enum"]));
}
