use super::*;

fn contexts() -> Contexts {
    let prod = Context {
        server: "https://prod.example/".to_owned(),
        token: Some(Token::Value("secret".to_owned())),
        output: Some(Format::Wide),
    };
    Contexts {
        current: Some("prod".to_owned()),
        contexts: BTreeMap::from([("prod".to_owned(), prod)]),
    }
}

#[test]
fn the_current_context_is_used_with_its_token() {
    let target = contexts().target(&Connection::default(), None).unwrap();
    assert_eq!(target.name, "prod");
    assert_eq!(target.server, "https://prod.example");
    assert_eq!(target.token.as_deref(), Some("secret"));
    assert_eq!(target.output, Some(Format::Wide));
}

#[test]
fn without_contexts_it_is_this_machine() {
    let target = Contexts::default().target(&Connection::default(), None).unwrap();
    assert_eq!(target.server, "http://127.0.0.1:8080");
}

#[test]
fn another_server_never_gets_the_contexts_token() {
    let connection =
        Connection { server: Some("http://other:1".to_owned()), ..Connection::default() };
    let target = contexts().target(&connection, None).unwrap();
    assert_eq!(target.server, "http://other:1");
    assert_eq!(target.token, None);
}

#[test]
fn a_misspelt_context_names_the_nearest() {
    let connection = Connection { context: Some("prd".to_owned()), ..Connection::default() };
    let failure = contexts().target(&connection, None).unwrap_err();
    assert_eq!(failure.exit, crate::failure::Exit::NotFound);
    assert_eq!(failure.fix, ["did you mean `prod`?"]);
}

#[test]
fn only_web_addresses_are_servers() {
    for (server, fine) in [
        ("http://127.0.0.1:8080", true),
        ("https://fleet.example", true),
        ("fleet.example", false),
        ("ftp://x", false),
        ("http://", false),
        ("https:///x", false),
    ] {
        assert_eq!(address(server).is_ok(), fine, "{server}");
    }
}

#[test]
fn the_file_is_written_for_its_owner_only_and_reads_back() {
    let dir = std::env::temp_dir().join(format!("argosy-context-{}", std::process::id()));
    let path = dir.join("deep").join("config.yaml");
    contexts().save(&path).unwrap();
    let read = Contexts::load(&path).unwrap();
    #[cfg(unix)]
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(read, contexts());
    #[cfg(unix)]
    assert_eq!(mode & 0o777, 0o600);
}
