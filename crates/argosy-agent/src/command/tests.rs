use super::drain::{Busy, HookState, busy, verdict};
use super::*;
use crate::diagnose::{Plan, Test};
use crate::gpu::{GpuError, Process, Reading, Sweep};
use std::collections::BTreeSet;
use std::time::Duration;

/// Parameters, as they are written.
type Pairs<'a> = &'a [(&'a str, &'a str)];

fn order(kind: Kind, parameters: Pairs<'_>) -> Order {
    let parameters = parameters.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Order {
        id: "c1".to_owned(),
        kind,
        parameters,
        reason: String::new(),
        expires_at: None,
        deadline: None,
        quiet_seconds: 0,
    }
}

#[test]
fn parameters_are_understood_by_their_type() {
    use Kind::{Cordon, Drain, RunDiagnostic, Terminate};
    let diagnose = |test| Action::Diagnose(Plan::new(test));
    let rows: &[(Kind, Pairs<'_>, Action)] = &[
        (Cordon, &[], Action::Cordon),
        (Drain, &[("timeout", "300"), ("force", "true")], Action::Drain { force: true }),
        (Drain, &[], Action::Drain { force: false }),
        (RunDiagnostic, &[("test", "quick")], diagnose(Test::Quick)),
        (
            RunDiagnostic,
            &[("type", "memory")],
            diagnose(Test::Memory { seconds: 60, fraction_percent: 95 }),
        ),
        (RunDiagnostic, &[], diagnose(Test::All)),
        (RunDiagnostic, &[("test", "stress")], diagnose(Test::Stress { seconds: 60 })),
        (
            RunDiagnostic,
            &[("test", "stress"), ("seconds", "5")],
            diagnose(Test::Stress { seconds: 5 }),
        ),
        (Terminate, &[("exit", "false")], Action::Terminate { exit: false }),
        (Terminate, &[], Action::Terminate { exit: true }),
    ];
    for (kind, parameters, expected) in rows {
        assert_eq!(parse(&order(*kind, parameters)).as_ref(), Ok(expected), "{parameters:?}");
    }
}

#[test]
fn k15_silly_parameters_are_refused_with_a_sentence() {
    use Kind::{Cordon, Drain, RunDiagnostic, Terminate, Unknown};
    let long = "x".repeat(10_000);
    let rows: &[(Kind, Pairs<'_>, &str)] = &[
        (RunDiagnostic, &[("test", "; rm -rf /")], "not `; rm -rf /`"),
        (RunDiagnostic, &[("test", "$(reboot)")], "must be one of quick, memory"),
        (RunDiagnostic, &[("test", "")], "must be one of"),
        (RunDiagnostic, &[("test", &long)], "must be one of"),
        (RunDiagnostic, &[("test", "a\u{1b}[2Jb")], r"not `a\u{1b}[2Jb`"),
        (RunDiagnostic, &[("command", "sh")], "has no parameter `command`"),
        (RunDiagnostic, &[("test", "stress"), ("seconds", "-1")], "from 1 to 3600"),
        (RunDiagnostic, &[("test", "stress"), ("seconds", "0")], "from 1 to 3600"),
        (RunDiagnostic, &[("test", "stress"), ("seconds", "1e9")], "from 1 to 3600"),
        (RunDiagnostic, &[("test", "stress"), ("seconds", "+5")], "from 1 to 3600"),
        (
            RunDiagnostic,
            &[("test", "memory"), ("seconds", "99999999999999999999999")],
            "from 1 to 3600",
        ),
        (Drain, &[("force", "yes")], "must be `true` or `false`"),
        (Drain, &[("timeout", "")], "a whole number"),
        (Cordon, &[("uncordon", "true")], "has none"),
        (Terminate, &[("exit", "1")], "must be `true` or `false`"),
        (Unknown(42), &[], "type 42"),
    ];
    for (kind, parameters, expected) in rows {
        let sentence = parse(&order(*kind, parameters)).unwrap_err().to_string();
        assert!(sentence.contains(expected), "{parameters:?}: {sentence}");
        assert!(sentence.len() < 200, "{sentence}");
    }
}

fn sweep(processes: Option<&[u32]>) -> Result<Sweep, GpuError> {
    let process = |pid: &u32| Process { pid: *pid, name: "train".to_owned(), memory_bytes: None };
    let processes = processes.map(|pids| pids.iter().map(process).collect());
    Ok(Sweep { gpus: vec![Reading { processes, ..Reading::default() }], ..Sweep::default() })
}

#[test]
fn what_runs_on_gpus_is_told_and_what_cannot_be_told_is_not_nothing() {
    let ours = BTreeSet::from([7]);
    let absent = GpuError::Absent { message: String::new() };
    let hung = GpuError::Hung { call: "sweep".into(), after: Duration::ZERO, gpu: None };
    let without =
        |why: &str| Sweep { unreadable: [(3, why.to_owned())].into(), ..Sweep::default() };
    let rows = [
        (sweep(Some(&[])), "nothing runs on a GPU"),
        (sweep(Some(&[7])), "nothing runs on a GPU"),
        (sweep(Some(&[7, 8])), "on the GPUs: train (8)"),
        (
            sweep(Some(&[1, 2, 3, 4, 4, 5])),
            "on the GPUs: train (1), train (2), train (3) and 2 more",
        ),
        (sweep(None), "it cannot be told what runs on the GPUs: the driver does not say"),
        (Err(absent), "nothing runs on a GPU"),
        (Err(hung), "it cannot be told what runs on the GPUs: the driver did not answer"),
        (Ok(without("UNKNOWN")), "it cannot be told what runs on the GPUs: GPU 3 cannot be read"),
        (Ok(without("GPU_IS_LOST")), "nothing runs on a GPU"),
        (Ok(Sweep::default()), "nothing runs on a GPU"),
    ];
    for (sweep, expected) in rows {
        let words = busy(&sweep, &ours).words();
        assert!(words.starts_with(expected), "{words}");
    }
}

#[test]
fn f4_drained_is_never_said_of_a_machine_that_works() {
    use HookState::{Done, Running};
    let with = || Busy::With(vec![Process { pid: 9, name: "train".into(), memory_bytes: None }]);
    let unknown = || Busy::Unknown("hung".to_owned());
    let failed = || HookState::Failed("the hook failed".to_owned());
    let rows = [
        (Busy::Free, Done, false, Some(Drained::Drained)),
        // Nothing runs: that the deadline has passed meanwhile does not matter.
        (Busy::Free, Done, true, Some(Drained::Drained)),
        (Busy::Free, Running, false, None),
        (Busy::Free, Running, true, Some(Drained::TimedOut)),
        (Busy::Free, failed(), false, None),
        (Busy::Free, failed(), true, Some(Drained::TimedOut)),
        (with(), Done, false, None),
        (with(), Done, true, Some(Drained::TimedOut)),
        (unknown(), Done, false, None),
        (unknown(), Done, true, Some(Drained::TimedOut)),
    ];
    for (busy, hook, past, expected) in rows {
        let outcome = verdict(&busy, &hook, true, past).and_then(|outcome| outcome.drained);
        assert_eq!(outcome, expected, "{busy:?} {hook:?} {past}");
    }
}

#[test]
fn r2_n1_nothing_on_a_gpu_for_a_moment_is_no_end_of_work() {
    let said = |past| verdict(&Busy::Free, &HookState::Done, false, past);
    assert_eq!(said(false), None);
    assert_eq!(said(true).and_then(|outcome| outcome.drained), Some(Drained::TimedOut));
}

#[test]
fn what_a_handler_says_is_kept_inside_limits() {
    let now = Timestamp::UNIX_EPOCH;
    let long = Outcome {
        result: Some(serde_json::json!("x".repeat(RESULT_LEN_MAX))),
        ..Outcome::new("é".repeat(1000))
    };
    let end = End::of(now, Ok(long));
    assert!(end.result_json.is_empty() && end.message.len() <= MESSAGE_LEN_MAX);
    assert!(end.message.ends_with('…'));
    let end = End::of(now, Err(Failure("no".to_owned())));
    assert_eq!((end.completed, end.message.as_str()), (false, "no"));
    let timed_out = Outcome { drained: Some(Drained::TimedOut), ..Outcome::default() };
    assert!(!End::of(now, Ok(timed_out)).completed);
}

#[test]
fn the_duty_file_is_written_whole_and_read_again() {
    let dir = crate::testing::Dir::new();
    assert_eq!(duty::read(dir.path()), None);
    let duty = duty::Duty {
        state: duty::DutyState::Draining,
        reason: "maintenance".to_owned(),
        command: "c1".to_owned(),
        since: Timestamp::UNIX_EPOCH,
    };
    duty::write(dir.path(), &duty).unwrap();
    assert_eq!(duty::read(dir.path()), Some(duty));
    let text = std::fs::read_to_string(dir.path().join(duty::DUTY_FILE)).unwrap();
    assert!(text.starts_with(r#"{"state":"draining","reason":"maintenance""#), "{text}");
    std::fs::write(dir.path().join(duty::DUTY_FILE), "{").unwrap();
    assert_eq!(duty::read(dir.path()), None);
}

#[tokio::test]
async fn a_hook_is_run_without_a_shell_and_its_failure_is_quoted() {
    use std::os::unix::fs::PermissionsExt;
    let dir = crate::testing::Dir::new();
    let hook = |name: &str, text: &str| {
        let program = dir.path().join(name);
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        hook::Hook { program, time_max: Duration::from_secs(60) }
    };
    let order = Order { reason: "; touch x".to_owned(), ..order(Kind::Drain, &[]) };
    let limit = Duration::from_secs(60);
    let seen = dir.path().join("seen");
    let text = format!("#!/bin/sh\necho \"$1 $# $ARGOSY_REASON\" > {}\n", seen.display());
    hook("well", &text).run("drain", &order, limit).await.unwrap();
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), "drain 1 ; touch x\n");
    let bad = hook("bad", "#!/bin/sh\necho pods are left >&2\nexit 3\n");
    let failure = bad.run("drain", &order, limit).await.unwrap_err().to_string();
    assert!(failure.ends_with("exit status: 3: pods are left"), "{failure}");
    let slow = hook("slow", "#!/bin/sh\nexec sleep 1000\n");
    let failure = slow.run("drain", &order, Duration::from_millis(50)).await.unwrap_err();
    assert!(failure.to_string().contains("did not end within"), "{failure}");
    // One that leaves somebody behind who holds its stderr has ended all the same.
    let left = "#!/bin/sh\nsleep 30 >/dev/null &\necho oh >&2\nexit 0\n";
    hook("leaves", left).run("drain", &order, Duration::from_secs(20)).await.unwrap();
    let left = "#!/bin/sh\nsleep 30 >/dev/null &\necho pods are left >&2\nexit 3\n";
    let failure = hook("fails", left).run("drain", &order, Duration::from_secs(20)).await;
    let failure = failure.unwrap_err().to_string();
    assert!(failure.ends_with("exit status: 3: pods are left"), "{failure}");
    let none = hook::Hook { program: dir.path().join("none"), time_max: limit };
    let failure = none.run("drain", &order, limit).await.unwrap_err().to_string();
    assert!(failure.contains("could not be started"), "{failure}");
}
