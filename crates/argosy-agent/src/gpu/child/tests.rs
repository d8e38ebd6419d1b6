use super::*;
use std::path::Path;

/// A child that is a line of shell: it can do what our own never does.
fn shell(script: &str, options: Options) -> Child {
    let mut child = Child::new("/bin/sh".into(), options);
    child.arguments = vec!["-c".into(), script.into()];
    child
}

fn soon() -> Options {
    let short = Duration::from_millis(200);
    Options { deadline: short, reap_max: short, ..Options::default() }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn n1_while_a_child_cannot_be_killed_no_second_one_is_started() {
    let file = std::env::temp_dir().join(format!("argosy-stuck-{}", std::process::id()));
    let _old = std::fs::remove_file(&file);
    let script = format!("echo started >> {}; exec tail -f /dev/null", file.display());
    let mut child = shell(&script, Options { deadline: Duration::from_secs(2), ..soon() });
    // A process that sits in the kernel does not hear even SIGKILL; none hears SIGWINCH.
    child.end_with = Signal::WINCH;

    let hung = child.sweep().await.unwrap_err();
    assert!(matches!(hung, GpuError::Hung { gpu: None, .. }), "{hung}");
    let stuck = child.pid().expect("it is still there");
    for _ in 0..3 {
        assert_eq!(child.sweep().await.unwrap_err(), hung);
        assert_eq!(child.inventory().await.unwrap_err(), hung);
    }
    assert_eq!((child.pid(), lines(&file)), (Some(stuck), 1));

    // The kernel lets go of it: the next question starts another.
    child.end_with = Signal::KILL;
    let process = &mut child.stuck.as_mut().unwrap().process;
    end(process, Signal::KILL);
    process.wait().await.unwrap();
    assert!(matches!(child.sweep().await.unwrap_err(), GpuError::Hung { .. }));
    assert_eq!(lines(&file), 2);
    assert_eq!(child.pid(), None, "this one could be killed");
    let _left = std::fs::remove_file(&file);
}

#[tokio::test]
async fn a_child_that_talks_nonsense_is_a_crash_with_what_it_did() {
    let begin = r#"echo '{"say":"begin","count":2}'"#;
    let wrong = r#"echo '{"say":"unreadable","index":1,"error":"x"}'"#;
    let rows: [(String, Option<u32>, &str); 7] = [
        ("read x; echo hello".into(), None, "not an answer"),
        ("read x; head -c 100000 /dev/zero".into(), None, "a line of more than 65536 bytes"),
        ("exit 7".into(), None, "exit code 7"),
        (
            "read x; printf 'a\\nno \\033driver\\n\\n' >&2; exit 3".into(),
            None,
            "exit code 3 (no driver)",
        ),
        ("read x; kill -SEGV $$".into(), None, "signal 11"),
        ("exit 0".into(), None, "it ended without an answer"),
        (format!("read x; {begin}; {wrong}; read x"), Some(0), "it answered out of turn"),
    ];
    for (script, gpu, how) in rows {
        let mut child = shell(&script, Options { deadline: Duration::from_secs(5), ..soon() });
        let mut answers = Answers::default();
        match child.attempt(Kind::Sweep, &mut answers).await {
            Attempt::Ended { how: said, gpu: at } => {
                let said = said.unwrap_or_else(|| "it ended without an answer".to_owned());
                assert!(said.starts_with(how), "{script}: {said}");
                assert_eq!(at, gpu, "{script}");
            }
            other @ (Attempt::Done | Attempt::Failed(_) | Attempt::Late(_)) => {
                panic!("{script}: {other:?}")
            }
        }
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let error = Child::new("/nowhere/argosy-agent".into(), soon()).sweep().await.unwrap_err();
    assert!(
        matches!(&error, GpuError::Crashed { how, gpu: None, .. }
        if how.starts_with("it cannot be started")),
        "{error}"
    );
}

#[test]
fn only_the_last_words_are_kept_and_none_that_a_terminal_obeys() {
    let mut words = VecDeque::new();
    keep(&mut words, &[b'x'; 5_000]);
    keep(&mut words, b"\nthe \x1b[31mend\r\n");
    assert_eq!(words.len(), STDERR_KEPT_BYTES);
    assert_eq!(last_line(words.make_contiguous()), "the [31mend");
    assert_eq!(last_line(&[b'y'; 900]).len(), LAST_WORDS_LEN_MAX);
    assert_eq!(last_line(b""), "");
}
