use super::*;

#[test]
fn values_under_keys_that_look_secret_are_hidden() {
    for key in [
        "password",
        "dbPassword",
        "client_secret",
        "TOKEN",
        "api-key",
        "apiKey",
        "access_key",
        "kubeconfig",
        "tlsCert",
        "privateKey",
        "Authorization",
        "connectionString",
        "bearer",
        "credentials",
    ] {
        assert_eq!(redacted(&json!({ key: {"a": 1} })), json!({ key: REDACTED }), "{key}");
    }
    let plain = json!({"key": 1, "monkey": "x", "region": "us-east1", "list": [{"name": "a"}]});
    assert_eq!(redacted(&plain), plain);
    assert_eq!(
        redacted(&json!({"list": [{"token": "t", "name": "a"}]})),
        json!({"list": [{"token": REDACTED, "name": "a"}]})
    );
}

#[test]
fn size_counts_text_members_and_the_largest_collection() {
    let mut size = Size::default();
    to_cel(&json!({"ab": [1, 2, 3], "c": "four"}), &mut size);
    assert_eq!(size, Size { longest: 3, total: 6 * 8 + 3 + 4 });
}

#[test]
fn dig_finds_or_gives_null() {
    let value = to_cel(&json!({"a": {"b": [10, {"c": "x"}]}}), &mut Size::default());
    for (path, expected) in [
        ("a.b.0", Value::Int(10)),
        ("a.b.1.c", Value::from("x")),
        ("a.b.2", Value::Null),
        ("a.b.-1", Value::Null),
        ("a.b.0.c", Value::Null),
        ("", Value::Null),
        ("a..b", Value::Null),
    ] {
        assert_eq!(dig(value.clone(), Arc::new(path.to_owned())), expected, "{path}");
    }
}
