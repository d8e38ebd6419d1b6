use super::*;

#[test]
fn a_failure_says_what_why_and_how_to_fix() {
    let failure = Failure::new(Exit::NotFound, "there is no cluster `a`")
        .why("the server answered 404")
        .fix("argosy cluster list");
    assert_eq!(
        failure.to_string(),
        "error: there is no cluster `a`\n  why: the server answered 404\n  fix: argosy cluster list"
    );
}

#[test]
fn an_interruption_is_not_an_error() {
    assert_eq!(Failure::new(Exit::Interrupted, "interrupted").to_string(), "interrupted");
}

#[test]
fn every_exit_code_is_listed_once() {
    let codes: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| exit.code()).collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 64, 130]);
}
