use super::fixture::node;
use super::{Duty, Hold, Liveness, Node, NodeId};
use crate::fixture::at;
use crate::health::{Health, HealthState, POLICY_ERROR};
use crate::id::CommandId;
use proptest::prelude::*;
use uuid::Uuid;

#[test]
fn an_id_is_an_instance_id_or_a_host_name() {
    for right in ["i-0abc", "gpu-17", "gpu-17.rack_3:a", "A", "7", &"x".repeat(128)] {
        assert_eq!(NodeId::parse(right).unwrap().as_str(), right);
    }
    for (wrong, says) in [
        ("", "node_id is required"),
        (&"x".repeat(129), "129 bytes long"),
        ("-a", "must start and end"),
        ("a.", "must start and end"),
        ("a b", "may hold letters"),
        ("a/b", "may hold letters"),
        ("../a", "may hold letters"),
        ("a\n", "may hold letters"),
        ("a\u{1b}[31m", "may hold letters"),
        ("g\u{202e}pu", "may hold letters"),
        ("gpü", "may hold letters"),
        ("a\0b", "may hold letters"),
    ] {
        let error = NodeId::parse(wrong).unwrap_err();
        assert_eq!(error.field, "node_id");
        assert!(error.message.contains(says), "{wrong:?}: {}", error.message);
    }
}

proptest! {
    #[test]
    fn an_id_is_what_it_was_and_can_stand_in_a_path(text in "\\PC{0,140}") {
        if let Ok(id) = NodeId::parse(&text) {
            prop_assert_eq!(id.as_str(), &text);
            prop_assert!(text.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b'%'));
        }
    }
}

/// A node by its three facts: duty A, C, D or T; health H, D, U or ? (nobody reported), E (a rule
/// failed); liveness F, S or L (lost).
fn by_facts(text: &str) -> Node {
    let mut node = node("a");
    let hold = Hold { by: "ann".into(), automatic: false, reason: "x".into(), at: at(1) };
    let mut letters = text.chars();
    node.duty = match letters.next().unwrap() {
        'A' => Duty::Active,
        'C' => Duty::Cordoned(hold),
        'D' => Duty::Draining {
            hold,
            command: CommandId::new(Uuid::nil()),
            deadline: at(9),
            done: false,
        },
        _ => Duty::Terminated(hold),
    };
    let (state, reason) = match letters.next().unwrap() {
        'H' => (HealthState::Healthy, ""),
        'D' => (HealthState::Degraded, ""),
        'U' => (HealthState::Unhealthy, ""),
        'E' => (HealthState::Unknown, POLICY_ERROR),
        _ => (HealthState::Unknown, "NoReport"),
    };
    node.health = Health { state, reason: reason.into(), ..node.health };
    node.liveness = match letters.next().unwrap() {
        'F' => Liveness::Fresh,
        'S' => Liveness::Suspect,
        _ => Liveness::Unreachable,
    };
    node
}

#[test]
fn one_word_is_made_of_three_facts() {
    for (facts, word) in [
        ("A?F", "ACTIVE"),
        ("AHF", "ACTIVE"),
        ("ADF", "ACTIVE"),
        ("AEF", "ACTIVE"),
        ("AHS", "ACTIVE"),
        ("AUF", "UNHEALTHY"),
        ("AHL", "UNHEALTHY"),
        ("CUF", "CORDONED"),
        ("CHF", "CORDONED"),
        ("DUL", "DRAINING"),
        ("TUL", "TERMINATED"),
        ("THF", "TERMINATED"),
    ] {
        assert_eq!(by_facts(facts).status().as_str(), word, "{facts}");
    }
}

/// Walks through turns, one each `every` seconds, `+` where we put the node back into service; the answer is
/// the count of relapses, and when it recovered.
fn flaps(every: i64, facts: &str) -> String {
    let mut before = by_facts("A?F");
    for (turn, facts) in (1..).zip(facts.split(' ')) {
        let (facts, put_back) =
            facts.strip_suffix('+').map_or((facts, false), |facts| (facts, true));
        let mut after = Node { flaps: before.flaps.clone(), ..by_facts(facts) };
        after.turned(&before, at(turn * every));
        if put_back {
            after.flaps.put_back_at = Some(at(turn * every));
        }
        before = after;
    }
    let since = before
        .flaps
        .recovered_at
        .map_or("-".to_owned(), |since| since.duration_since(at(0)).as_secs().to_string());
    format!("{} {since}", before.flaps.count)
}

#[test]
fn d4_a_relapse_is_counted_once_and_forgotten_after_a_day() {
    assert_eq!(flaps(10, "AHF AHF ADF"), "0 10");
    assert_eq!(flaps(10, "AHF AUF"), "0 -");
    assert_eq!(flaps(10, "AHF AUF AHF"), "0 30");
    assert_eq!(flaps(10, "AUF AHF+ AUF"), "1 -");
    assert_eq!(flaps(10, "AUF AHF+ AUF AUF AHF+ AUF AHF"), "2 70");
    // Silence counts as well, and so does trouble of both kinds at once, once.
    assert_eq!(flaps(10, "AHL AHS AHF+ AHL"), "1 -");
    assert_eq!(flaps(10, "AUF AUL AHL AHF+ AUL"), "1 -");
    // While nobody can say, it has not recovered.
    assert_eq!(flaps(10, "AUF AEF"), "0 -");
    assert_eq!(flaps(10, "AUF A?F"), "0 -");
    assert_eq!(flaps(10, "AUF AEF AUF"), "0 -");
    assert_eq!(flaps(10, "AUF AEF AHF"), "0 30");
    assert_eq!(flaps(90_000, "AUF AHF+ AUF AHF+ AUF"), "0 -");
}

#[test]
fn r2_n40_only_what_was_put_back_relapses() {
    assert_eq!(flaps(10, "AHF AHL AHF AHL AHF AHL AHF AHL"), "0 -");
    assert_eq!(flaps(10, "AUF AHF+ AHL AHF AHL AHF AHL"), "1 -", "once for each time");
}
