//! `argosy doctor`: what works between here and the server, and what to do about what does not.

use crate::failure::{Exit, Failure};
use crate::output::{Format, Paint, Screen, clean, document, print};
use crate::session::Session;
use argosy_api::client::{ClientError, Collection};
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

/// Check the way from here to the server.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit code 0 if everything works; otherwise that of the first check that fails.

Examples:
  argosy doctor
  argosy doctor --context prod -o json")]
pub(crate) struct Doctor {}

/// What a check found.
struct Finding {
    check: &'static str,
    /// What was found, in a sentence; or what is wrong.
    result: Result<String, Failure>,
}

/// `argosy doctor`
pub(super) async fn run(session: &Session, _: Doctor) -> Result<Exit, Failure> {
    let mut findings = vec![Finding { check: "context", result: Ok(context(session)) }];
    for (check, path) in [("server", "/healthz"), ("ready", "/readyz")] {
        let answer = session.client.send(Method::GET, path, None).await;
        let result = answer.map(|_| format!("{}{path} answers", session.target.server));
        findings.push(Finding { check, result: result.map_err(|error| unready(session, error)) });
    }
    // A server that does not answer would only say so three more times.
    if findings.iter().all(|finding| finding.result.is_ok()) {
        let info = session.client.info().await.map_err(|error| session.failure(error));
        findings
            .push(Finding { check: "version", result: info.map(|info| version(&info.version)) });
        let list = session.client.list(Collection::Clusters, &[("size", "1")]).await;
        let result = list.map(|list| format!("{} clusters can be read", list.total));
        let result = result.map_err(|error| session.failure(error));
        findings.push(Finding { check: "access", result });
    }
    show(session, &findings);
    let failed = findings.into_iter().find_map(|finding| finding.result.err());
    Ok(failed.map_or(Exit::Ok, |failure| failure.exit))
}

fn context(session: &Session) -> String {
    let token = if session.target.token.is_some() { "with a token" } else { "without a token" };
    match (clean(&session.target.name), &session.target.server) {
        (name, server) if name == *server => format!("{server}, {token}"),
        (name, server) => format!("{name} at {server}, {token}"),
    }
}

fn version(server: &str) -> String {
    match env!("CARGO_PKG_VERSION") {
        ours if ours == server => format!("{ours} on both sides"),
        ours => format!("{ours} here, {} there", clean(server)),
    }
}

/// A server that is not ready says why in a body of its own.
fn unready(session: &Session, error: ClientError) -> Failure {
    if let ClientError::Unexpected { status: 503, text, .. } = &error
        && let Ok(body) = serde_json::from_str::<Value>(text)
        && let Some(reason) = body.get("reason").and_then(Value::as_str)
    {
        return Failure::new(Exit::Unreachable, "the server is not ready").why(clean(reason));
    }
    session.failure(error)
}

fn show(session: &Session, findings: &[Finding]) {
    match session.format {
        Format::Json | Format::Yaml => {
            let checks: Vec<Value> = findings.iter().map(Finding::json).collect();
            print(&document(&json!({ "checks": checks }), session.format == Format::Yaml));
        }
        Format::Table | Format::Wide | Format::Name => {
            print(
                &findings.iter().map(|finding| finding.text(&session.screen)).collect::<String>(),
            );
        }
    }
}

impl Finding {
    fn json(&self) -> Value {
        match &self.result {
            Ok(text) => json!({ "check": self.check, "ok": true, "message": text }),
            Err(failure) => json!({
                "check": self.check, "ok": false, "message": failure.what, "why": failure.why,
                "fix": failure.fix,
            }),
        }
    }

    fn text(&self, screen: &Screen) -> String {
        let line = |mark: &str, paint, text: &str| {
            format!("{} {:<8} {text}\n", screen.paint(mark, paint), self.check)
        };
        match &self.result {
            Ok(text) => line("ok  ", Paint::Good, text),
            Err(failure) => {
                let mut text = line("FAIL", Paint::Bad, &failure.what);
                for (word, lines) in [("why", &failure.why), ("fix", &failure.fix)] {
                    for more in lines {
                        text.push_str(&format!("              {word}: {more}\n"));
                    }
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_is_wrong_and_what_to_do() {
        let good = Finding { check: "server", result: Ok("it answers".to_owned()) };
        assert_eq!(good.text(&Screen::plain()), "ok   server   it answers\n");
        let failure = Failure::new(Exit::Auth, "who?").why("no token").fix("set one");
        let bad = Finding { check: "access", result: Err(failure) };
        assert_eq!(
            bad.text(&Screen::plain()),
            "FAIL access   who?\n              why: no token\n              fix: set one\n"
        );
        assert_eq!(bad.json()["ok"], json!(false));
    }
}
