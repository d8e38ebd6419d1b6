use super::*;
use argosy_api::error::FieldProblem;

fn target(token: Option<&str>) -> Target {
    Target {
        name: "prod".to_owned(),
        server: "https://prod.example".to_owned(),
        token: token.map(str::to_owned),
        output: None,
    }
}

/// A session with nobody at the other end.
pub(crate) fn session() -> Session {
    let target = target(None);
    Session {
        client: Client::new(&target.server, None).unwrap(),
        target,
        screen: Screen::plain(),
        format: Format::Table,
        headers: true,
        clock: Clock::System,
    }
}

#[test]
fn each_status_has_its_exit_code() {
    let rows = [
        (400, Exit::Failed),
        (401, Exit::Auth),
        (403, Exit::Auth),
        (404, Exit::NotFound),
        (409, Exit::Conflict),
        (413, Exit::Failed),
        (422, Exit::Failed),
        (500, Exit::Failed),
        (503, Exit::Unreachable),
        (507, Exit::Failed),
    ];
    for (status, exit) in rows {
        let problem = Problem { status, ..Problem::default() };
        assert_eq!(refused(&problem, &target(None)).exit, exit, "{status}");
    }
}

#[test]
fn a_problem_is_told_as_what_why_and_fix() {
    let field = |field: &str, message: &str| FieldProblem {
        field: field.to_owned(),
        message: message.to_owned(),
        value: None,
        constraint: None,
    };
    let problem = Problem {
        status: 400,
        detail: "region is wrong (and 1 more)".to_owned(),
        hint: Some("Correct the fields named in `errors`.".to_owned()),
        trace_id: "r-1".to_owned(),
        errors: vec![field("spec.region", "region is wrong"), field("name", "\u{1b}[2Jtoo long")],
        ..Problem::default()
    };
    assert_eq!(
        refused(&problem, &target(None)).to_string(),
        "error: region is wrong (and 1 more)\n  why: spec.region: region is wrong\n  \
         why: name: [2Jtoo long\n  request id: r-1"
    );
}

#[test]
fn a_hint_is_passed_on() {
    let problem = Problem {
        status: 409,
        detail: "it is taken".to_owned(),
        hint: Some("Choose another name.".to_owned()),
        ..Problem::default()
    };
    let failure = refused(&problem, &target(None));
    assert_eq!(failure.to_string(), "error: it is taken\n  fix: Choose another name.");
}

#[test]
fn a_401_says_whether_a_token_was_sent() {
    let problem = Problem { status: 401, detail: "who?".to_owned(), ..Problem::default() };
    assert!(refused(&problem, &target(None)).to_string().contains("no token was sent to prod"));
    assert!(refused(&problem, &target(Some("t"))).to_string().contains("is not accepted"));
}

#[test]
fn without_a_terminal_a_question_is_refused_unless_answered() {
    let screen = Screen::plain();
    assert_eq!(confirm(&screen, "Delete it?", false).unwrap_err().exit, Exit::Refused);
    assert_eq!(confirm(&screen, "Delete it?", true), Ok(()));
}
