use super::*;
use crate::fixture::at;
use crate::id::CommandId;
use uuid::Uuid;

const KEY: &str = "slurm /usr/bin/scontrol";

fn system() -> System<'static> {
    System { key: KEY, name: "slurm", can_list: true, takes_cordon: true, takes_drain: true }
}

fn hold(reason: &str) -> Hold {
    Hold { by: "ann".to_owned(), automatic: false, reason: reason.to_owned(), at: at(0) }
}

fn draining(deadline: i64, done: bool) -> Duty {
    let command = CommandId::new(Uuid::from_u128(1));
    Duty::Draining { hold: hold(""), command, deadline: at(deadline), done }
}

/// `cordoned told=drain telling=cordon failures=2 retry=60`.
fn node(text: &str) -> Node {
    let mut node = crate::node::fixture::node("n1");
    let wish = |word: &str| match word {
        "uncordon" => Wish::of(Told::Uncordon),
        "cordon" => Wish { reason: "by ann".to_owned(), ..Wish::of(Told::Cordon) },
        "drain" => Wish {
            reason: "by ann".to_owned(),
            deadline: Some(at(3600)),
            command: Some(CommandId::new(Uuid::from_u128(1))),
            ..Wish::of(Told::Drain)
        },
        other => panic!("{other}"),
    };
    let mut party = Party { name: "gpu17".to_owned(), told_at: Some(at(0)), ..Party::default() };
    for word in text.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("active", _) => node.duty = Duty::Active,
            ("cordoned", reason) => node.duty = Duty::Cordoned(hold(reason)),
            ("draining", "") => node.duty = draining(3600, false),
            ("draining", deadline) => node.duty = draining(deadline.parse().unwrap(), false),
            ("drained", _) => node.duty = draining(3600, true),
            ("terminated", _) => node.duty = Duty::Terminated(hold("")),
            ("told", word) => party.told = Some(wish(word)),
            ("telling", word) => party.telling = Some(wish(word)),
            ("seen", word) => {
                let out = match word {
                    "in" => Out::InUse,
                    "ours" => Out::ByUs,
                    "theirs" => Out::ByOthers,
                    other => panic!("{other}"),
                };
                party.seen = Some(Seen { at: at(1), out, note: String::new() });
            }
            ("former", name) => party.former.push(name.to_owned()),
            ("label", label) => {
                node.labels = node.labels.clone().with(SYSTEMS_LABEL, label);
            }
            ("failures", count) => party.failures = count.parse().unwrap(),
            ("retry", seconds) => party.retry_at = Some(at(seconds.parse().unwrap())),
            other => panic!("{other:?}"),
        }
    }
    if party.told.is_some() || party.telling.is_some() {
        node.external.parties.insert(KEY.to_owned(), party);
    }
    node
}

/// `tell drain`, `ask`, `release old`, `wait 101` or `nothing`.
fn line(node: &Node, system: &System<'_>, now: i64) -> String {
    let wanted = wanted(node, system, false);
    match next(node, system, &wanted, Some("gpu17"), at(now)) {
        Next::Tell(wish) => format!("tell {}", wish.state.as_str()),
        Next::Ask(_) => "ask".to_owned(),
        Next::Release(name) => format!("release {name}"),
        Next::Wait(until) => format!("wait {}", until.duration_since(at(0)).as_secs()),
        Next::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn any_difference_is_told_until_the_system_knows() {
    for (text, expected) in [
        // Who was never told anything is told once, whatever is wanted.
        ("active", "tell uncordon"),
        ("cordoned", "tell cordon"),
        ("active told=uncordon", "nothing"),
        ("active told=cordon", "tell uncordon"),
        ("active told=drain", "tell uncordon"),
        ("cordoned told=uncordon", "tell cordon"),
        ("cordoned told=cordon", "nothing"),
        ("cordoned told=drain", "tell cordon"),
        ("draining told=uncordon", "tell drain"),
        ("draining told=cordon", "tell drain"),
        ("draining told=drain", "ask"),
        ("drained told=drain", "nothing"),
        ("drained told=cordon", "tell drain"),
        ("terminated told=uncordon", "tell cordon"),
        ("terminated told=cordon", "nothing"),
        ("terminated told=drain", "nothing"),
        // A call without an answer may have been heard: only one with an answer settles it.
        ("active told=uncordon telling=cordon", "tell uncordon"),
        ("cordoned told=cordon telling=uncordon", "tell cordon"),
        ("terminated told=drain telling=uncordon", "tell drain"),
        // Not too soon after a failure, but at once if something else is wanted since.
        ("cordoned told=uncordon telling=cordon retry=101", "wait 101"),
        ("cordoned told=uncordon telling=cordon retry=100", "tell cordon"),
        ("draining told=drain retry=101", "wait 101"),
        ("active told=uncordon telling=cordon retry=101", "tell uncordon"),
        ("cordoned told=drain retry=101", "tell cordon"),
        // What it was seen to hold.
        ("cordoned told=cordon seen=ours", "nothing"),
        ("cordoned told=cordon seen=theirs", "nothing"),
        ("cordoned told=cordon seen=in", "tell cordon"),
        ("active told=uncordon seen=ours", "tell uncordon"),
        ("active told=uncordon seen=theirs", "nothing"),
        ("active told=uncordon former=old", "release old"),
        ("draining told=drain former=old", "ask"),
        // Who does not have the node is not spoken to about it.
        ("cordoned told=uncordon label=none", "nothing"),
        ("cordoned told=uncordon label=webhook.kubernetes", "nothing"),
        ("cordoned told=uncordon label=webhook.slurm", "tell cordon"),
    ] {
        assert_eq!(line(&node(text), &system(), 100), expected, "{text}");
    }
}

#[test]
fn r2_n3_another_drain_reason_or_deadline_is_told() {
    for (text, expected) in [
        ("draining=3600 told=drain", "ask"),
        ("draining=7200 told=drain", "tell drain"),
        ("cordoned=xid79 told=cordon", "tell cordon"),
    ] {
        assert_eq!(line(&node(text), &system(), 100), expected, "{text}");
    }
    let node = node("draining told=drain");
    let forced = wanted(&node, &system(), true);
    let next = next(&node, &system(), &forced, Some("gpu17"), at(100));
    assert!(matches!(next, Next::Tell(Wish { force: true, .. })), "{next:?}");
}

#[test]
fn r2_n37_who_cannot_be_told_of_it_is_not_said_to_know() {
    let mute = System { takes_cordon: false, can_list: false, ..system() };
    assert_eq!(line(&node("cordoned told=uncordon"), &mute, 100), "nothing");
    assert_eq!(line(&node("draining told=uncordon"), &mute, 100), "tell drain");
    let no_drain = System { takes_drain: false, ..system() };
    assert_eq!(line(&node("draining told=uncordon"), &no_drain, 100), "tell cordon");
}

#[test]
fn r2_n20_who_cannot_be_asked_is_told_again_from_time_to_time() {
    let blind = System { can_list: false, ..system() };
    assert_eq!(line(&node("cordoned told=cordon"), &blind, 100), "wait 3600");
    assert_eq!(line(&node("cordoned told=cordon"), &blind, 3600), "tell cordon");
    assert_eq!(line(&node("active told=uncordon"), &blind, 100_000), "nothing");
}

#[test]
fn r2_n33_a_name_that_the_machine_had_is_released() {
    let cordoned = node("cordoned told=cordon");
    let wish = wanted(&cordoned, &system(), false);
    let next = next(&cordoned, &system(), &wish, Some("gpu18"), at(100));
    assert!(matches!(next, Next::Tell(_)), "{next:?}");
    let (renamed, _) = heard(&cordoned, &system(), &wish, "gpu18", at(101));
    let party = renamed.external.party(KEY).unwrap();
    assert_eq!(
        (party.name.as_str(), party.former.as_slice()),
        ("gpu18", &["gpu17".to_owned()][..])
    );
    let (released, entries) = released(&renamed, &system(), "gpu17", at(102));
    assert!(released.external.party(KEY).unwrap().former.is_empty());
    assert_eq!(lines(&entries), ["slurm uncordon true: its former name gpu17"]);
}

/// The lines, as `slurm cordon true: …` or `ExternalFailed true: …`.
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

fn fails(node: &Node, message: &str, now: i64) -> (Node, Vec<Entry>) {
    let wish = wanted(node, &system(), false);
    failed(node, &system(), &Call::Tell(wish.clone()), &wish, message, at(now)).unwrap()
}

#[test]
fn l6_a_failure_is_recorded_and_retried_and_nothing_is_rolled_back() {
    let before = node("cordoned told=uncordon");
    let wish = wanted(&before, &system(), false);
    let before = telling(&before, KEY, &wish).unwrap();
    assert_eq!(telling(&before, KEY, &wish), None, "written down once");
    let (first, entries) = fails(&before, "down\u{1b}\nnow", 0);
    let note = "ExternalCordonFailed: slurm: down  now";
    assert_eq!(
        lines(&entries),
        [format!("slurm cordon false: {note}"), format!("ExternalFailed true: {note}")]
    );
    assert_eq!(first.duty, before.duty);
    assert_eq!(first.external.party(KEY).unwrap().failures, 1);
    assert!(["wait 1", "wait 2"].contains(&line(&first, &system(), 0).as_str()));

    let (second, entries) = fails(&first, "down\u{1b}\nnow", 10);
    assert_eq!(lines(&entries), Vec::<String>::new(), "the same again is no news");
    let (third, entries) = fails(&second, "refused", 20);
    assert_eq!(lines(&entries), ["slurm cordon false: ExternalCordonFailed: slurm: refused"]);
    assert_eq!(third.flags[&Flag::ExternalFailed].since, at(0));
    assert!(third.flags[&Flag::ExternalFailed].message.ends_with("refused"));

    let (fourth, entries) = heard(&third, &system(), &wish, "gpu17", at(30));
    assert_eq!(
        lines(&entries),
        [
            "slurm cordon true: ".to_owned(),
            "ExternalFailed false: ExternalCordonFailed: slurm: refused".to_owned()
        ]
    );
    assert!(fourth.flags.is_empty());
    let party = fourth.external.party(KEY).unwrap();
    assert_eq!((party.failures, party.retry_at, &party.telling), (0, None, &None));
}

#[test]
fn r2_n10_the_failure_of_a_call_that_is_not_wanted_any_more_is_none() {
    let active = node("active told=uncordon telling=cordon failures=6 retry=90");
    let old = Wish { reason: "by ann".to_owned(), ..Wish::of(Told::Cordon) };
    let wish = wanted(&active, &system(), false);
    assert_eq!(failed(&active, &system(), &Call::Tell(old), &wish, "503", at(100)), None);
    assert_eq!(line(&active, &system(), 100), "tell uncordon");
}

#[test]
fn waits_grow_and_end_at_five_minutes() {
    let mut node = node("cordoned told=uncordon");
    let mut waits = Vec::new();
    for _ in 0..12 {
        node = fails(&node, "down", 1000).0;
        let retry_at = node.external.party(KEY).unwrap().retry_at.unwrap();
        waits.push(retry_at.duration_since(at(1000)).as_secs());
    }
    assert_eq!(waits, [1, 3, 6, 14, 27, 62, 116, 212, 287, 264, 241, 279]);
}

#[test]
fn r2_n20_what_a_system_forgot_is_told_again_and_what_a_person_did_is_shown() {
    let see = |text: &str, out, note: &str| seen(&node(text), &system(), out, note, at(50), at(51));
    // As it was told: no line, and nothing to do.
    let (agrees, entries) = see("cordoned told=cordon", Out::ByUs, "IDLE+DRAIN").unwrap();
    assert_eq!((lines(&entries).len(), agrees.flags.len()), (0, 0));
    assert_eq!(seen(&agrees, &system(), Out::ByUs, "IDLE+DRAIN", at(60), at(61)), None);

    let (forgot, entries) = see("cordoned told=cordon", Out::InUse, "IDLE").unwrap();
    let words = "the node gets work there again, not because of argosy (IDLE)";
    assert_eq!(
        lines(&entries),
        [format!("slurm seen false: {words}"), format!("ExternalDiffers true: slurm: {words}")]
    );
    assert_eq!(line(&forgot, &system(), 100), "tell cordon");
    let wish = wanted(&forgot, &system(), false);
    let telling = telling(&forgot, KEY, &wish).unwrap();
    let (told, entries) = heard(&telling, &system(), &wish, "gpu17", at(101));
    assert_eq!(
        lines(&entries),
        [
            format!("slurm cordon true: told again, because {words}"),
            format!("ExternalDiffers false: slurm: {words}"),
        ]
    );
    assert_eq!(line(&told, &system(), 102), "nothing");

    // Somebody else keeps it out: that is theirs.
    let (theirs, _) = see("active told=uncordon", Out::ByOthers, "DOWN root: bad disk").unwrap();
    assert!(theirs.flags[&Flag::ExternalDiffers].message.contains("bad disk"));
    assert_eq!(line(&theirs, &system(), 100), "nothing");

    // What was listed before it was told is no evidence.
    let mut later = node("cordoned told=cordon");
    later.external.parties.get_mut(KEY).unwrap().told_at = Some(at(55));
    assert_eq!(seen(&later, &system(), Out::InUse, "", at(50), at(56)), None);
}

#[test]
fn r2_n21_a_system_that_is_not_configured_any_more_is_forgotten() {
    let node = node("cordoned told=cordon");
    assert_eq!(without_others(&node, &[KEY.to_owned()]), None);
    let other = "webhook https://b.example".to_owned();
    let after = without_others(&node, &[other]).unwrap();
    assert!(after.external.parties.is_empty());
    let webhook = System { key: "webhook https://b.example", name: "webhook", ..system() };
    assert_eq!(line(&after, &webhook, 100), "tell cordon");
}
