use super::source::{parse, without_password};
use super::*;
use serde_json::json;

fn read(text: &str) -> Result<Config, String> {
    let (config, set) = parse(text, Path::new("argosy.yaml")).map_err(|f| f.to_string())?;
    check(&config, set.get("store").and_then(serde_json::Value::as_str))
        .map_err(|f| f.to_string())?;
    Ok(config)
}

#[test]
fn an_empty_file_is_the_default() {
    for text in ["", "\n\n", "# nothing\n  # here\n", "{}"] {
        assert_eq!(read(text).unwrap(), Config::default(), "{text:?}");
    }
}

#[test]
fn the_default_written_down_reads_back_as_itself() {
    let tree = serde_json::to_value(Config::default()).unwrap();
    let text = crate::output::document(&tree, true);
    assert_eq!(read(&text).unwrap(), Config::default(), "{text}");
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_the_nearest_key() {
    let rows: &[(&str, &[&str])] = &[
        ("lisen: 127.0.0.1:1", &["argosy.yaml:1: unknown key `lisen`", "did you mean `listen`?"]),
        (
            "listen: 127.0.0.1:1\nsentinel:\n  resync_redy: 10s\n",
            &["argosy.yaml:3: unknown key `resync_redy`", "did you mean `resync_ready`?"],
        ),
        ("log:\n  level: infi\n", &["argosy.yaml:2: unknown value `infi`", "did you mean `info`?"]),
        ("zzz: 1", &["unknown key `zzz`", "known keys here: listen, data_dir"]),
        ("listen: a\nlisten: b", &["argosy.yaml:2", "listen"]),
        ("simulated_cloud: {enabled: yes}", &["argosy.yaml:1"]),
        ("sentinel: {resync_ready: 10}", &["argosy.yaml:1", "not a duration"]),
        ("listen: [", &["argosy.yaml"]),
        (
            "adapters:\n  cluster:\n    - name: a\n      dependson: [b]\n",
            &["argosy.yaml:4", "`depends_on`"],
        ),
    ];
    for (text, expected) in rows {
        let complaint = read(text).unwrap_err();
        for part in *expected {
            assert!(complaint.contains(part), "{text}\n{complaint}\nlacks {part}");
        }
    }
}

#[test]
fn values_that_do_not_fit_together_are_refused() {
    let rows = [
        ("listen: nowhere", "listen: `nowhere` is not an address"),
        ("listen: 0.0.0.0:8080", "authentication is `none`"),
        ("store: mysql://x", "store: `mysql://x` is not a store"),
        ("store: postgres://me:secret@db/argosy", "a password may not stand in the file"),
        ("store_password: {env: X}", "only PostgreSQL has a password"),
        ("store: postgres://db/a\nstore_password: {env: X, file: y}", "give file or env, not both"),
        ("tls: {cert_file: a.pem}", "give both or none"),
        ("auth: {jwt: [{issuer: i}]}", "audience: it is missing"),
        ("auth: {jwt: [{issuer: i, audience: [a]}]}", "exactly one of jwks_file and jwks_url"),
        ("webhooks: {allow: ['10.0.0.0/99']}", "webhooks.allow[0]:"),
        (
            "adapters: {cluster: [{name: mine}]}",
            "there is no such built-in adapter; the built-in ones are validation",
        ),
        ("adapters: {cluster: [{name: dns, depends_on: [validatoin]}]}", "validatoin"),
        ("adapters: {cluster: [{runner: external}]}", "adapters.cluster[0].name: it is missing"),
        (
            "adapters: {cluster: [{name: a, runner: webhook}]}",
            "adapters.cluster[0].url: a webhook needs an address",
        ),
        (
            "adapters: {nodepool: [{name: a, runner: webhook, url: 'https://x'}]}",
            "adapters.nodepool[0].secret: a webhook needs a secret",
        ),
        (
            "adapters: {cluster: [{name: dns, url: 'https://x'}]}",
            "only an adapter with `runner: webhook`",
        ),
        ("sentinel: {backoff_first: 1m, backoff_max: 1s}", "backoff_max: 1s is shorter"),
        ("retention: {audit: 0s}", "retention.audit: 0s is too short"),
        ("limits: {connections: 0}", "limits.connections: it must be at least 1"),
    ];
    for (text, expected) in rows {
        let complaint = read(text).unwrap_err();
        assert!(complaint.contains(expected), "{text}\n{complaint}\nlacks {expected}");
    }
}

#[test]
fn every_complaint_is_told_at_once() {
    let complaint = read("listen: nowhere\nlimits: {connections: 0}\n").unwrap_err();
    assert!(
        complaint.contains("listen:") && complaint.contains("limits.connections:"),
        "{complaint}"
    );
}

#[test]
fn a_flag_wins_over_the_file_and_the_origin_is_told() {
    let dir = std::env::temp_dir().join(format!("argosy-config-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("argosy.yaml");
    std::fs::write(&file, "listen: 127.0.0.1:1\nlog: {level: warn}\n").unwrap();
    let set =
        Override { key: "listen", value: json!("127.0.0.1:2"), origin: "flag --listen".to_owned() };
    let effective = load(Some(&file), vec![set]).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(effective.config.listen, "127.0.0.1:2");
    let origin =
        |key: &str| effective.lines().into_iter().find(|line| line.key == key).unwrap().origin;
    assert_eq!(origin("listen"), "flag --listen");
    assert_eq!(origin("log.level"), format!("file {}", file.display()));
    assert_eq!(origin("log.format"), "default");
}

#[test]
fn a_password_is_never_shown() {
    let rows = [
        ("postgres://me:secret@db:5432/argosy", "postgres://me:***@db:5432/argosy"),
        ("postgres://me:a@b@db/x", "postgres://me:***@db/x"),
        ("postgres://me@db/x", "postgres://me@db/x"),
        ("memory:", "memory:"),
        ("embedded", "embedded"),
    ];
    for (url, shown) in rows {
        assert_eq!(without_password(url), shown);
    }
}

#[test]
fn a_part_laid_over_a_file_wins_and_is_named_when_it_is_wrong() {
    let under = |patch: serde_json::Value| {
        load_under(None, patch.as_object().unwrap(), "x.yaml: config").map_err(|f| f.to_string())
    };
    assert_eq!(under(json!({})).unwrap(), Config::default());
    let changed = under(json!({ "sentinel": { "resync_ready": "7m" }, "listen": null })).unwrap();
    assert_eq!(changed.sentinel.resync_ready, Duration::from_secs(420));
    assert_eq!(changed.sentinel.backoff_max, Config::default().sentinel.backoff_max);
    assert_eq!(changed.listen, Config::default().listen);
    let rows = [
        (json!({ "lisen": "x" }), "x.yaml: config.lisen: "),
        (
            json!({ "log": {}, "sentinel": { "resync_redy": "7m" } }),
            "x.yaml: config.sentinel.resync_redy: ",
        ),
        (
            json!({ "sentinel": { "resync_ready": "soon" } }),
            "x.yaml: config.sentinel.resync_ready: ",
        ),
        (json!({ "sentinel": 7 }), "x.yaml: config.sentinel: "),
        (json!({ "limits": { "connections": 0 } }), "limits.connections: it must be at least 1"),
    ];
    for (patch, part) in rows {
        let complaint = under(patch).unwrap_err();
        assert!(complaint.contains(part), "{complaint}\nlacks {part}");
    }
}
