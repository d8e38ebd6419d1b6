use super::*;
use serde_json::json;

fn members(value: Value) -> Members {
    let Value::Object(object) = value else { panic!("an object") };
    Members::new("rules[3].", object)
}

#[test]
fn every_complaint_comes_at_once_with_its_place() {
    let mut taken =
        members(json!({ "name": 7, "coutn": 1, "zzz": 2, "list": {}, "n": 9, "o": [] }));
    taken.text("name");
    taken.text("count");
    taken.list("list", |value, field| {
        text(Some(&value), &field).map(str::to_owned).map_err(|e| vec![e])
    });
    taken.whole("n", 1, 8);
    taken.object("o");
    let errors = taken.finish(()).unwrap_err();
    let lines: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
    assert_eq!(
        lines,
        [
            "rules[3].name: Invalid rules[3].name: expected a string, got a number",
            "rules[3].count: Missing required field 'rules[3].count'",
            "rules[3].list: Invalid rules[3].list: expected an array, got an object",
            "rules[3].n: rules[3].n must be a whole number from 1 to 8",
            "rules[3].o: Invalid rules[3].o: expected an object, got an array",
            "rules[3].coutn: Unknown field 'rules[3].coutn'. Did you mean 'count'?",
            "rules[3].zzz: Unknown field 'rules[3].zzz'. Supported fields: name, count, list, n, o",
        ]
    );
}

#[test]
fn what_is_right_is_taken() {
    let mut taken = members(json!({ "a": "x", "n": -3, "list": ["x", "y"], "seen": 1 }));
    assert_eq!(
        (taken.text("a"), taken.text_or_empty("b"), taken.text_if_any("c")),
        ("x".into(), String::new(), None)
    );
    assert_eq!((taken.whole("n", -5, 5), taken.whole("m", 0, 1)), (Some(-3), None));
    let list = taken.list("list", |value, field| Ok(format!("{field}={value}")));
    assert_eq!(list, ["rules[3].list[0]=\"x\"", "rules[3].list[1]=\"y\""]);
    taken.ignore(&["seen"]);
    assert_eq!(taken.finish(1), Ok(1));
}
