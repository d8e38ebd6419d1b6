use super::*;

#[test]
fn the_state_says_whether_a_node_is_drained() {
    for (state, drain, drained) in [
        ("IDLE", false, false),
        ("IDLE+DRAIN", true, true),
        ("IDLE*+DRAIN", true, true),
        ("IDLE+DRAIN+NOT_RESPONDING", true, true),
        ("DOWN+DRAIN", true, true),
        ("DOWN*+DRAIN", true, true),
        ("DOWN", false, false),
        ("ALLOCATED", false, false),
        ("ALLOCATED+DRAIN", true, false),
        ("MIXED+DRAIN", true, false),
        ("IDLE+COMPLETING+DRAIN", true, false),
        ("DOWN+COMPLETING+DRAIN", true, false),
        ("ALLOCATED+COMPLETING+DRAIN", true, false),
        // What a later version may say counts as work.
        ("UNKNOWN+DRAIN", true, false),
        ("ERROR+DRAIN", true, false),
        ("FUTURE+DRAIN", true, false),
        ("BLOCKED+DRAIN", true, false),
        ("DRAIN", true, false),
    ] {
        let text = format!("NodeName=n1 Arch=x86_64\n   State={state} ThreadsPerCore=1\n");
        let shown = Shown::parse(&text).unwrap();
        assert_eq!((shown.drain, shown.drained()), (drain, drained), "{state}");
        assert_eq!(shown.state, state);
    }
}

#[test]
fn the_reason_is_read_without_who_and_when_and_known_again() {
    for (line, reason, ours) in [
        ("", None, false),
        ("   Reason=argosy: xid 79 [root@2026-11-15T12:35:11]", Some("argosy: xid 79"), true),
        (
            "   Reason=argosy: gpu [3] fell off [slurm@2026-11-15T12:35:11]",
            Some("argosy: gpu [3] fell off"),
            true,
        ),
        (
            "   Reason=fan broken, see argosy: 7 [ann@2026-11-15T12:35:11]",
            Some("fan broken, see argosy: 7"),
            false,
        ),
        ("   Reason=Not responding [slurm@2026-11-15T12:35:11]", Some("Not responding"), false),
        ("   Reason=no time ", Some("no time"), false),
    ] {
        let text = format!("NodeName=n1\n   State=IDLE+DRAIN ThreadsPerCore=1\n{line}\n");
        let shown = Shown::parse(&text).unwrap();
        assert_eq!((shown.reason.as_deref(), shown.ours()), (reason, ours), "{line}");
    }
}

#[test]
fn what_a_machine_says_of_itself_is_not_taken_for_its_state() {
    let text = "NodeName=n1 State=IDLE+DRAIN\n   OS=Linux State=IDLE+DRAIN Reason=argosy: x\n   \
                State=ALLOCATED ThreadsPerCore=1\n   Reason=by hand [ann@2026-11-15T12:35:11]\n   \
                Comment=Reason=argosy: x\n";
    let shown = Shown::parse(text).unwrap();
    assert_eq!((shown.state.as_str(), shown.drain, shown.ours()), ("ALLOCATED", false, false));
}

#[test]
fn what_is_no_node_is_none() {
    for text in ["", "\n", "Slurm backup controller in standby mode", "State", "   State=\n"] {
        assert_eq!(Shown::parse(text), None, "{text}");
    }
}
