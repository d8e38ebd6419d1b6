use super::*;
use crate::gpu::{GpuIdentity, Inventory, Reading, Sweep};
use async_trait::async_trait;

/// One GPU that is well, or a driver that is not there.
struct One(bool);

#[async_trait]
impl Gpu for One {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        if !self.0 {
            return Err(GpuError::Absent { message: "no library".to_owned() });
        }
        let gpu = GpuIdentity { uuid: "GPU-0".to_owned(), ..GpuIdentity::default() };
        Ok(Inventory { gpus: vec![gpu], ..Inventory::default() })
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        let gpu = Reading { uuid: "GPU-0".to_owned(), ..Reading::default() };
        Ok(Sweep { count: 1, gpus: vec![gpu], ..Sweep::default() })
    }
}

/// A program that is started instead of ours, in a directory that goes with it.
struct Program {
    directory: PathBuf,
    path: PathBuf,
}

impl Program {
    fn new(name: &str, script: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("argosy-diagnose-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("program");
        // Written by another process: a file that a sibling's fork has open for writing cannot be run.
        let written = std::process::Command::new("sh")
            .args([
                "-c",
                r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#,
                "write",
                script,
            ])
            .arg(&path)
            .status()
            .unwrap();
        assert!(written.success());
        Self { directory, path }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn plan() -> Plan {
    Plan::new(Test::Compute { runs: 3 })
}

/// What comes of a child that does this, and the progress it told.
async fn outcome(name: &str, script: &str) -> (Result<Diagnosis, DiagnoseError>, Vec<Progress>) {
    let program = Program::new(name, script);
    let mut heard = Vec::new();
    let (plan, mut gpus) = (plan(), One(true));
    let run = run(&program.path, &mut gpus, &plan, Duration::from_secs(30), |progress| {
        heard.push(progress);
    });
    let outcome = run.await;
    (outcome, heard)
}

fn done() -> String {
    let diagnosis = Diagnosis::of("compute", Vec::new(), Vec::new(), 1.0);
    serde_json::to_string(&Said::Done(Box::new(diagnosis))).unwrap()
}

#[tokio::test]
async fn progress_is_streamed_and_the_result_is_the_last_word() {
    let progress = r#"{"progress":{"percent":40.0,"message":"GPU 0: product 2"}}"#;
    let (outcome, heard) = outcome("well", &format!("echo '{progress}'\necho '{}'", done())).await;
    assert_eq!(outcome.unwrap().test, "compute");
    assert_eq!(heard, [Progress { percent: 40.0, message: "GPU 0: product 2".to_owned() }]);
}

#[tokio::test]
async fn the_child_is_told_the_plan_and_nothing_else() {
    let script = r#"echo "$@; $CUDA_DEVICE_ORDER; ${CUDA_VISIBLE_DEVICES-none}" >&2; exit 1"#;
    let (outcome, _) = outcome("arguments", script).await;
    let error = outcome.unwrap_err().to_string();
    let expected = "diagnose --worker runs=3 test=compute; PCI_BUS_ID; none";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn a_child_that_crashes_is_an_error_with_its_last_words() {
    let check = async |name: &str, script: &str, said: &str| {
        let (outcome, _) = outcome(name, script).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, DiagnoseError::Crashed { .. }), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
    };
    check("segv", "kill -SEGV $$", "the test died (signal 11)").await;
    check(
        "panic",
        "echo 'Missing symbol cuMemFoo' >&2; exit 101",
        "the test died (exit code 101); its last words: Missing symbol cuMemFoo",
    )
    .await;
    // Bytes that are no text, and more of them than we keep.
    check("noise", "head -c 300000 /dev/urandom >&2; echo END >&2; exit 7", "END").await;
}

#[tokio::test]
async fn a_refusal_is_told_as_it_is() {
    let refusal = Refusal::Busy { gpu: 3, pid: 77, program: "python3".to_owned() };
    let line = serde_json::to_string(&Said::Refused(refusal.clone())).unwrap();
    let (outcome, _) = outcome("refused", &format!("echo '{line}'")).await;
    let error = outcome.unwrap_err();
    assert!(matches!(&error, DiagnoseError::Refused(found) if *found == refusal), "{error:?}");
    assert!(error.to_string().contains("GPU 3 is in use by process 77 (python3)"), "{error}");
}

#[tokio::test]
async fn garbage_is_skipped_and_too_much_of_it_ends_the_child() {
    // A driver's library may print; the result counts.
    let some =
        format!("echo 'NVRM: hello'; printf '\\377\\376\\n'; echo '{{}}'; echo '{}'", done());
    assert!(outcome("some-garbage", &some).await.0.is_ok());
    // Ten megabytes in one line, and then the result.
    let long = format!("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo '{}'", done());
    assert!(outcome("long-line", &long).await.0.is_ok());
    // For ever.
    let (endless, _) = outcome("endless", "exec yes nonsense").await;
    let error = endless.unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
    // Nothing at all.
    let (empty, _) = outcome("nothing", "exit 0").await;
    assert_eq!(empty.unwrap_err().to_string(), "the test ended without a result");
}

#[tokio::test]
async fn nonsense_in_progress_is_tamed() {
    let lines = r#"{"progress":{"percent":1e300,"message":"a\u001b[2Jb"}}"#;
    let (outcome, heard) = outcome("tamed", &format!("echo '{lines}'; echo '{}'", done())).await;
    assert!(outcome.is_ok());
    assert_eq!(heard, [Progress { percent: 100.0, message: "a [2Jb".to_owned() }]);
}

#[tokio::test]
async fn a_child_that_hangs_is_killed_at_the_deadline() {
    let progress = r#"{"progress":{"percent":1.0,"message":"GPU 0: opening"}}"#;
    let program = Program::new("hang", &format!("echo '{progress}'\nexec sleep 600"));
    let time = Duration::from_millis(700);
    let error = run(&program.path, &mut One(true), &plan(), time, |_| {}).await.unwrap_err();
    let DiagnoseError::Hung { after, gone, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*after, *gone), (time, true));
    // It talks and talks, in one line.
    let program = Program::new("endless-line", "exec cat /dev/zero");
    let error = run(&program.path, &mut One(true), &plan(), time, |_| {}).await.unwrap_err();
    assert!(matches!(error, DiagnoseError::Hung { gone: true, .. }), "{error:?}");
}

#[tokio::test]
async fn a_test_that_is_dropped_takes_its_child_along() {
    let script = r#"echo "{\"progress\":{\"percent\":1.0,\"message\":\"$$\"}}"; exec sleep 600"#;
    let program = Program::new("dropped", script);
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let (plan, mut gpus) = (plan(), One(true));
    let run = run(&program.path, &mut gpus, &plan, Duration::from_secs(60), |progress| {
        if let Some(tell) = tell.take() {
            tell.send(progress.message).unwrap();
        }
    });
    let pid = tokio::select! {
        outcome = run => panic!("{outcome:?}"),
        pid = told => pid.unwrap(),
    };
    let gone = async {
        // A zombie has a state and no life.
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the child is gone");
}

#[tokio::test]
async fn a_child_that_does_not_go_after_its_result_does_not_spoil_it() {
    let script = format!("echo '{}'\nexec 1>&- 2>&-\ncat", done());
    assert!(outcome("stays", &script).await.0.is_ok());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let path = Path::new("/nowhere/argosy-agent");
    let outcome = run(path, &mut One(true), &plan(), Duration::from_secs(5), |_| {}).await;
    assert_eq!(outcome.unwrap_err().to_string(), "/nowhere/argosy-agent cannot be started");
}

#[tokio::test]
async fn quick_needs_no_child() {
    let plan = Plan::new(Test::Quick);
    let nowhere = Path::new("/nowhere");
    let outcome = run(nowhere, &mut One(true), &plan, Duration::from_secs(5), |_| {}).await;
    let diagnosis = outcome.unwrap();
    assert!(diagnosis.passed && diagnosis.test == "quick", "{diagnosis:?}");
    let outcome = run(nowhere, &mut One(false), &plan, Duration::from_secs(5), |_| {}).await;
    assert!(matches!(outcome, Err(DiagnoseError::Gpu(GpuError::Absent { .. }))));
}

#[tokio::test]
async fn all_is_one_test_after_the_other() {
    let script = format!(
        r#"echo '{{"progress":{{"percent":50.0,"message":"x"}}}}'; echo '{}'"#,
        done().replace("compute", "part")
    );
    let program = Program::new("all", &script);
    let mut heard = Vec::new();
    let plan = Plan::new(Test::All);
    let mut gpus = One(true);
    let whole = run(&program.path, &mut gpus, &plan, Duration::from_secs(30), |progress| {
        heard.push(progress.percent.round());
    });
    let whole = whole.await.unwrap();
    assert_eq!((whole.test.as_str(), whole.gpus.len()), ("all", 1));
    assert_eq!(heard, [17.0, 50.0, 83.0]);
}
