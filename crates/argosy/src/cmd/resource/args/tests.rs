use super::*;
use serde_json::json;

fn changes(spec: Option<&str>, set: &[&str], unset: &[&str]) -> Changes {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    Changes { spec: spec.map(str::to_owned), set: owned(set), unset: owned(unset) }
}

#[test]
fn a_spec_is_put_together_from_what_was_given() {
    let rows = [
        (changes(None, &["nodeCount=3"], &[]), json!({"nodeCount": 3})),
        (changes(None, &["region=us-east1"], &[]), json!({"region": "us-east1"})),
        (
            changes(None, &["a.b.c=true", "a.d=x=y"], &[]),
            json!({"a": {"b": {"c": true}, "d": "x=y"}}),
        ),
        (changes(Some("{a: 1, b: {c: 2}}"), &["b.c=3"], &["a"]), json!({"b": {"c": 3}})),
        (changes(Some(r#"{"version": "1.10"}"#), &[], &[]), json!({"version": "1.10"})),
    ];
    for (changes, expected) in rows {
        let mut spec = Map::new();
        changes.apply(&mut spec, false).unwrap();
        assert_eq!(Value::Object(spec), expected);
    }
}

#[test]
fn a_patch_removes_with_null() {
    let mut spec = Map::new();
    changes(None, &[], &["autoscaling.max"]).apply(&mut spec, true).unwrap();
    assert_eq!(Value::Object(spec), json!({"autoscaling": {"max": null}}));
}

#[test]
fn what_is_no_change_is_refused() {
    for bad in [
        changes(None, &["nodeCount"], &[]),
        changes(None, &["=3"], &[]),
        changes(None, &["a..b=3"], &[]),
        changes(Some("[1]"), &[], &[]),
        changes(Some("a"), &[], &[]),
        changes(Some("{a: 1}"), &["a.b=1"], &[]),
        changes(Some("@/does/not/exist"), &[], &[]),
    ] {
        assert_eq!(bad.apply(&mut Map::new(), false).unwrap_err().exit, Exit::Usage, "{bad:?}");
    }
}

#[test]
fn labels_are_set_and_removed() {
    let labels =
        Labels { labels: vec!["team=ml".to_owned(), "old-".to_owned(), "a=b-".to_owned()] };
    assert_eq!(
        Value::Object(labels.changes().unwrap()),
        json!({"team": "ml", "old": null, "a": "b-"})
    );
    assert!(Labels { labels: vec!["team".to_owned()] }.changes().is_err());
}

#[test]
fn a_selection_becomes_the_parameters_of_the_api() {
    let selection = Selection {
        labels: vec!["team=ml".to_owned(), "env=prod".to_owned()],
        phase: Some("Not Ready".to_owned()),
        filter: Some("name = 'a'".to_owned()),
        sort: vec!["name".to_owned(), "-created_time".to_owned()],
    };
    let query = selection.query().unwrap();
    let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
    assert_eq!(
        query,
        [
            ("labels", "team:ml,env:prod"),
            ("phase", "Not Ready"),
            ("search", "name = 'a'"),
            ("order", "name asc,created_time desc"),
        ]
    );
}
