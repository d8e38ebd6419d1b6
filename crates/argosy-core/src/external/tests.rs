use super::*;
use crate::fixture::at;
use crate::id::CommandId;
use crate::node::Hold;
use uuid::Uuid;

/// `cordoned told=Drain telling=Cordon failures=2 retry=60`.
fn node(text: &str) -> Node {
    let mut node = crate::node::fixture::node("n1");
    let hold = Hold { by: "ann".to_owned(), automatic: false, reason: String::new(), at: at(0) };
    let told = |word: &str| match word {
        "Uncordon" => Told::Uncordon,
        "Cordon" => Told::Cordon,
        "Drain" => Told::Drain,
        other => panic!("{other}"),
    };
    for word in text.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("active", _) => node.duty = Duty::Active,
            ("cordoned", _) => node.duty = Duty::Cordoned(hold.clone()),
            ("draining" | "drained", _) => {
                node.duty = Duty::Draining {
                    hold: hold.clone(),
                    command: CommandId::new(Uuid::from_u128(1)),
                    deadline: at(3600),
                    done: word == "drained",
                }
            }
            ("terminated", _) => node.duty = Duty::Terminated(hold.clone()),
            ("told", word) => node.external.told = told(word),
            ("telling", word) => node.external.telling = Some(told(word)),
            ("failures", count) => node.external.failures = count.parse().unwrap(),
            ("retry", seconds) => node.external.retry_at = Some(at(seconds.parse().unwrap())),
            other => panic!("{other:?}"),
        }
    }
    node
}

#[test]
fn it_is_told_what_the_duty_wants_until_it_knows() {
    for (text, expected) in [
        ("active told=Uncordon", "Nothing"),
        ("active told=Cordon", "Call(Tell(Uncordon))"),
        ("active told=Drain", "Call(Tell(Uncordon))"),
        ("cordoned told=Uncordon", "Call(Tell(Cordon))"),
        ("cordoned told=Cordon", "Nothing"),
        ("cordoned told=Drain", "Call(Tell(Cordon))"),
        ("draining told=Uncordon", "Call(Tell(Drain))"),
        ("draining told=Cordon", "Call(Tell(Drain))"),
        ("draining told=Drain", "Call(AskDrained)"),
        ("drained told=Drain", "Nothing"),
        ("drained told=Cordon", "Call(Tell(Drain))"),
        ("terminated told=Uncordon", "Call(Tell(Cordon))"),
        ("terminated told=Cordon", "Nothing"),
        ("terminated told=Drain", "Nothing"),
        // A call without an answer may have been heard: only one with an answer settles it.
        ("active told=Uncordon telling=Cordon", "Call(Tell(Uncordon))"),
        ("cordoned told=Cordon telling=Uncordon", "Call(Tell(Cordon))"),
        ("cordoned told=Uncordon telling=Cordon", "Call(Tell(Cordon))"),
        ("terminated told=Drain telling=Uncordon", "Call(Tell(Drain))"),
        // Not too soon after a failure.
        ("cordoned told=Uncordon retry=101", "Wait(2025-10-28T12:01:41Z)"),
        ("cordoned told=Uncordon retry=100", "Call(Tell(Cordon))"),
        ("draining told=Drain retry=101", "Wait(2025-10-28T12:01:41Z)"),
        ("cordoned told=Cordon retry=101", "Nothing"),
    ] {
        assert_eq!(format!("{:?}", next(&node(text), at(100))), expected, "{text}");
    }
}

#[test]
fn what_is_being_told_is_written_down_once() {
    let first = telling(&node("cordoned"), Told::Cordon).unwrap();
    assert_eq!(first.external.telling, Some(Told::Cordon));
    assert_eq!(telling(&first, Told::Cordon), None);
    let (heard, _) = heard(&first, "slurm", Told::Cordon, at(1));
    assert_eq!((heard.external.told, heard.external.telling), (Told::Cordon, None));
    assert_eq!(next(&heard, at(1)), Next::Nothing);
}

/// The lines, as `external cordon ok` or `flag raised: …`.
fn lines(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        if let What::External { system, what, ok, message } = &entry.what {
            format!("{system} {what} {ok}: {message}")
        } else if let What::Flag { flag, raised, message } = &entry.what {
            format!("{flag} {raised}: {message}")
        } else {
            panic!("{entry:?}")
        }
    };
    entries.iter().map(line).collect()
}

#[test]
fn l6_a_failure_is_recorded_and_retried_and_nothing_is_rolled_back() {
    let call = Call::Tell(Told::Cordon);
    let before = telling(&node("cordoned"), Told::Cordon).unwrap();
    let (first, entries) = failed(&before, "slurm", call, "down\u{1b}\nnow", at(0));
    let note = "ExternalCordonFailed: slurm: down  now";
    assert_eq!(
        lines(&entries),
        [format!("slurm cordon false: {note}"), format!("ExternalFailed true: {note}")]
    );
    assert_eq!(first.duty, before.duty);
    assert_eq!(first.external.failures, 1);
    let Next::Wait(retry_at) = next(&first, at(0)) else { panic!() };
    assert!(at(1) < retry_at && retry_at <= at(2), "{retry_at}");

    let (second, entries) = failed(&first, "slurm", call, "down\u{1b}\nnow", at(10));
    assert_eq!(lines(&entries), Vec::<String>::new(), "the same again is no news");
    assert_eq!(second.external.failures, 2);
    let (third, entries) = failed(&second, "slurm", call, "refused", at(20));
    assert_eq!(lines(&entries), ["slurm cordon false: ExternalCordonFailed: slurm: refused"]);
    assert_eq!(third.flags[&Flag::ExternalFailed].since, at(0));

    let (fourth, entries) = heard(&third, "slurm", Told::Cordon, at(30));
    assert_eq!(
        lines(&entries),
        [
            "slurm cordon true: ".to_owned(),
            "ExternalFailed false: ExternalCordonFailed: slurm: refused".to_owned()
        ]
    );
    assert!(fourth.flags.is_empty());
    assert_eq!((fourth.external.failures, fourth.external.retry_at), (0, None));
}

#[test]
fn waits_grow_and_end_at_five_minutes() {
    let mut node = node("cordoned");
    let mut waits = Vec::new();
    for _ in 0..12 {
        let now = at(1000);
        node = failed(&node, "slurm", Call::Tell(Told::Cordon), "down", now).0;
        waits.push(node.external.retry_at.unwrap().duration_since(now).as_secs());
    }
    assert_eq!(waits, [1, 3, 6, 14, 27, 62, 116, 212, 287, 264, 241, 279]);
}

#[test]
fn a_question_that_is_answered_again_ends_the_failure() {
    let draining = node("draining told=Drain");
    assert_eq!(answered(&draining, at(1)), None, "nothing was wrong");
    let (failing, entries) = failed(&draining, "slurm", Call::AskDrained, "down", at(0));
    assert!(lines(&entries)[0].starts_with("slurm drain-status false: ExternalDrainStatusFailed"));
    let (well, entries) = answered(&failing, at(5)).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(well, draining);
}
