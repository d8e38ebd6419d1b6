use super::*;
use serde_json::json;

fn read(body: Value) -> Result<ReportDraft, Vec<String>> {
    draft(body.as_object().unwrap())
        .map_err(|errors| errors.into_iter().map(|error| error.message).collect())
}

fn body(changes: Value) -> Value {
    let mut body = json!({
        "adapter": "dns",
        "observed_generation": 1,
        "observed_time": "2025-10-17T12:02:00Z",
        "conditions": [{ "type": "Available", "status": "True", "reason": "R", "message": "m" }],
    });
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn both_spellings_are_read() {
    let snake = read(body(json!({}))).unwrap();
    let camel = read(json!({
        "adapter": "dns",
        "observedGeneration": 1,
        "observedTime": "2025-10-17T12:02:00Z",
        "conditions": [{ "type": "Available", "status": "True", "reason": "R", "message": "m",
                         "lastTransitionTime": "2025-10-17T12:02:00Z" }],
    }));
    assert_eq!(camel, Ok(snake));
}

#[test]
fn a_report_names_every_field_that_is_wrong() {
    let rows = [
        (json!({ "adapter": 1 }), "Invalid adapter: expected a string, got a number"),
        (
            json!({ "observed_generation": 0 }),
            "Invalid observed_generation 0. Must be an integer between 1 and 2147483647",
        ),
        (
            json!({ "observed_generation": 1.5 }),
            "Invalid observed_generation 1.5. Must be an integer between 1 and 2147483647",
        ),
        (
            json!({ "observed_generation": "1" }),
            "Invalid observed_generation: expected an integer, got a string",
        ),
        (json!({ "conditions": {} }), "Invalid conditions: expected an array, got an object"),
        (
            json!({ "conditions": [{ "type": "A", "status": "true" }] }),
            "Invalid condition status 'true'. Supported values: True, False, Unknown",
        ),
        (
            json!({ "conditions": [{ "type": "A", "status": "True" }, { "type": "A", "status": "True" }] }),
            "Condition type 'A' is given more than once",
        ),
        (
            json!({ "conditions": [{ "status": "True" }] }),
            "Missing required field 'conditions[0].type'",
        ),
        (
            json!({ "observed_time": "yesterday" }),
            "observed_time must be a time such as 2026-01-31T12:00:00Z (RFC 3339)",
        ),
        (json!({ "data": [] }), "Invalid data: expected an object, got an array"),
    ];
    for (changes, sentence) in rows {
        assert_eq!(read(body(changes.clone())), Err(vec![sentence.to_owned()]), "{changes}");
    }
}

#[test]
fn metadata_is_shown_in_both_spellings() {
    let rows = [
        ("jobName", "job_name", "jobName"),
        ("execution_time", "execution_time", "executionTime"),
        ("attempt", "attempt", "attempt"),
        ("_", "_", "_"),
    ];
    for (name, snake, camel) in rows {
        assert_eq!((snake_case(name).as_str(), camel_case(name).as_str()), (snake, camel));
    }
    let both = json!({ "jobName": 1, "job_name": 2 });
    assert_eq!(Value::Object(respelled(both.as_object().unwrap(), snake_case)), both);
}
