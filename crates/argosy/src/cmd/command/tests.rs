use super::*;
use crate::cmd::node::fixture::{HOSTILE, command, harmless, harmless_failure, screen, times};

fn ended(id: &str, outcome: &str, state: &str) -> Command {
    let with = json!({
        "state": state, "outcome": outcome, "ended_at": "2026-01-01T11:59:00Z",
        "message": "said the node", "revision": 12,
    });
    command(id, &format!("gpu-{id}"), with)
}

#[test]
fn the_exit_code_says_whether_everything_was_done() {
    let done = ended("1", "Drained", "completed");
    let forced = ended("2", "Forced", "completed");
    let late = ended("3", "TimedOut", "failed");
    let back = ended("4", "Cancelled", "cancelled");
    assert_eq!(outcome(&[done.clone(), forced.clone()]), Ok(()));
    let one = outcome(&[done.clone(), late.clone()]).unwrap_err();
    assert_eq!(
        (one.exit, one.what.as_str()),
        (Exit::Failed, "DRAIN of node gpu-3 ended as TimedOut")
    );
    assert_eq!(one.why, ["said the node"]);
    assert_eq!(one.fix, ["argosy why node/gpu-3 tells the story"]);
    let two = outcome(&[done, forced, late, back]).unwrap_err();
    assert_eq!(two.what, "2 of 4 commands were not done");
}

#[test]
fn a_timeout_says_what_is_open_and_how_to_wait_again() {
    let waiting = Waiting::new(vec![
        ended("1", "Drained", "completed"),
        command("2", "gpu-2", json!({})),
        command("3", "gpu-3", json!({ "state": "acknowledged" })),
    ]);
    let failure = late(&waiting, "5m".parse().unwrap());
    assert_eq!(failure.exit, Exit::Timeout);
    assert_eq!(
        failure.to_string(),
        "error: 2 commands have not ended after 5m\n  why: node gpu-2 has not fetched DRAIN yet\n  \
         why: node gpu-3 is at work on DRAIN\n  fix: argosy command wait 2 3 waits again"
    );
}

#[test]
fn an_older_state_is_no_news() {
    let session = crate::session::tests::session();
    let mut waiting = Waiting::new(vec![command("1", "gpu-1", json!({ "revision": 20 }))]);
    let mut progress = Progress::new(&session, &[]);
    waiting.take(ended("1", "Drained", "completed"), &mut progress);
    assert_eq!(waiting.open().count(), 1, "revision 12 is older than 20");
    let newer = Command { revision: 21, ..ended("1", "Drained", "completed") };
    waiting.take(newer, &mut progress);
    waiting.take(command("9", "gpu-9", json!({ "revision": 30 })), &mut progress);
    assert_eq!(waiting.open().count(), 0, "a stranger's command is not waited for");
    let left = waiting.into_commands();
    assert_eq!(left.len(), 1);
}

#[test]
fn a_page_tells_who_why_and_what_came_of_it() {
    let with = json!({
        "type": "RUN_DIAGNOSTIC", "parameters": { "test": "memory" }, "state": "completed",
        "outcome": "Completed", "ended_at": "2026-01-01T11:59:00Z", "deadline": null,
        "result": { "passed": true, "gpus": [{ "index": 0, "errors": 0 }] },
    });
    assert_eq!(
        page(&screen(None), &command("c-1", "gpu-1", with), times()),
        "\
Command     c-1  Completed
Does        RUN_DIAGNOSTIC
Node        gpu-1
With        test=memory
By          alice
Reason      new fans
Issued      2m ago
Ended       1m ago
Result
  gpus:
  - errors: 0
    index: 0
  passed: true
"
    );
}

#[test]
fn j14_commands_of_hostile_texts_are_harmless() {
    let with = json!({
        "by": HOSTILE, "reason": HOSTILE, "message": HOSTILE, "issued_at": HOSTILE,
        "parameters": { HOSTILE: HOSTILE }, "result": { HOSTILE: [HOSTILE] },
    });
    let hostile = command(HOSTILE, HOSTILE, with);
    harmless(&page(&screen(None), &hostile, times()));
    harmless(&result(&hostile));
    harmless(&grid(std::slice::from_ref(&hostile), times()).render(&screen(Some(80)), true));
    harmless_failure(&late(&Waiting::new(vec![hostile.clone()]), "5m".parse().unwrap()));
    harmless_failure(&outcome(&[hostile]).unwrap_err());
}
