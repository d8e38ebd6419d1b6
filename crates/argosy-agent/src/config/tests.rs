use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("agent.yaml"))
}

#[test]
fn a_file_says_what_it_says_and_nothing_unknown() {
    let text = "servers: [https://a:1, https://b:2]\nnode_id: gpu-1\nlabels: {rack: r7}\n";
    let config = parse(text).unwrap();
    assert_eq!(config.servers, ["https://a:1", "https://b:2"]);
    assert_eq!(config.labels["rack"], "r7");
    assert_eq!(parse("").unwrap(), Config::default());
    assert_eq!(parse("# nothing\n\n").unwrap(), Config::default());
    for (text, about) in
        [("node_di: gpu-1", "node_di"), ("power_off: maybe", "power_off"), ("servers: 3", "")]
    {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with("agent.yaml: ") && error.contains(about), "{text}: {error}");
    }
}

#[test]
fn r2_i25_what_others_put_into_the_environment_does_not_matter() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let odd = || OsString::from_vec(vec![b'x', 0xff]);
    let with = |variables: Vec<(OsString, OsString)>| Config::default().with_variables(variables);
    let ours = |value: OsString| (OsString::from("ARGOSY_AGENT_NODE_ID"), value);
    let read = with(vec![(odd(), odd()), ("LESS".into(), odd()), ours("gpu-2".into())]).unwrap();
    assert_eq!(read.node_id.unwrap(), "gpu-2");
    let error = with(vec![ours(odd())]).unwrap_err().to_string();
    assert!(error.contains("ARGOSY_AGENT_NODE_ID") && error.contains("UTF-8"), "{error}");
}

#[test]
fn the_environment_wins_over_the_file_and_knows_its_words() {
    let with = |name: &str, value: &str| {
        let variables = [(name.to_owned(), value.to_owned()), ("PATH".to_owned(), "x".to_owned())];
        parse("node_id: gpu-1\nlabels: {rack: r7}").unwrap().with_environment(variables)
    };
    assert_eq!(with("ARGOSY_AGENT_NODE_ID", "gpu-2").unwrap().node_id.unwrap(), "gpu-2");
    assert_eq!(with("ARGOSY_AGENT_BOOT_ID", "b-2").unwrap().boot_id.unwrap(), "b-2");
    assert_eq!(with("ARGOSY_AGENT_SERVER", "http://a, http://b").unwrap().servers.len(), 2);
    assert_eq!(with("ARGOSY_AGENT_LABELS", "team=x").unwrap().labels.len(), 2);
    assert!(with("ARGOSY_AGENT_POWER_OFF", "1").unwrap().power_off);
    for (name, value) in [
        ("ARGOSY_AGENT_SEVER", "x"),
        ("ARGOSY_AGENT_POWER_OFF", "yes"),
        ("ARGOSY_AGENT_LABELS", "x"),
        ("ARGOSY_AGENT_HOOK_SECONDS", "x"),
    ] {
        let error = with(name, value).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
}

#[test]
fn the_credential_comes_from_a_file_a_systemd_credential_or_the_environment() {
    let dir = crate::testing::Dir::new();
    std::fs::write(dir.path().join("token"), "secret\n").unwrap();
    let place = dir.path().to_str().unwrap().to_owned();
    let none = |_: &str| None;
    let variable = |name: &str| (name == "ARGOSY_TOKEN").then(|| "secret".to_owned());
    let systemd = |name: &str| (name == "CREDENTIALS_DIRECTORY").then(|| place.clone());
    let config = Config::default();
    assert!(matches!(config.token(none), Token::None));
    assert!(matches!(config.token(variable), Token::Value(_)));
    assert!(matches!(config.token(systemd), Token::File(_)));
    let named = Config { token_file: Some("/x".into()), ..Config::default() };
    assert!(matches!(named.token(variable), Token::File(path) if path == Path::new("/x")));
}
