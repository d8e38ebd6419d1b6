use super::*;
use crate::command::hook::Hook;
use crate::command::{Kind, Order};
use crate::testing::{Dir, poll};
use std::os::unix::fs::PermissionsExt;

fn script(dir: &Dir, name: &str, text: &str) -> std::path::PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn r2_i10_no_program_of_the_agent_gets_its_token() {
    let command = command("anything");
    let removed =
        command.as_std().get_envs().any(|(name, value)| name == TOKEN_VARIABLE && value.is_none());
    assert!(removed);
    // There is no other way to start one: what is started elsewhere is found here.
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![src];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_ours = path.ends_with("child_process.rs") || path.ends_with("tests.rs");
            if path.is_dir() {
                folders.push(path);
            } else if !is_ours && std::fs::read_to_string(&path).unwrap().contains("Command::new(")
            {
                found.push(path);
            }
        }
    }
    assert!(found.is_empty(), "started without `child_process::command`: {found:?}");
}

#[tokio::test]
#[expect(unsafe_code, reason = "only what runs between fork and exec can hold a start up")]
async fn r2_i34_a_program_whose_file_hangs_does_not_hold_the_loop() {
    static STARTER: Starter = Starter::new();
    let dir = Dir::new();
    // Opening a pipe to write waits for a reader, as a file on a dead file server does.
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let held = pipe.clone();
    let mut hanging = command("true");
    // SAFETY: `open` may be called between fork and exec.
    unsafe {
        hanging.pre_exec(move || std::fs::OpenOptions::new().write(true).open(&held).map(drop));
    }
    // If the loop is held, somebody else lets it go after a while, so that the test ends.
    let (loop_runs, watched) = std::sync::mpsc::channel::<()>();
    let let_go = std::thread::spawn(move || {
        let in_time = watched.recv_timeout(Duration::from_secs(20)).is_ok();
        std::fs::File::open(&pipe).map(|_| in_time)
    });
    let (child, ()) = tokio::join!(STARTER.start(hanging), async { loop_runs.send(()).unwrap() });
    assert!(child.unwrap().wait().await.unwrap().success());
    assert!(let_go.join().unwrap().unwrap(), "the loop stood still");
}

#[tokio::test]
async fn r2_i12_what_a_hook_started_is_ended_with_it() {
    let dir = Dir::new();
    let left = dir.path().join("left");
    let new = left.with_extension("new");
    let text =
        format!("sleep 1000 & echo $! >{0}; mv {0} {1}; wait", new.display(), left.display());
    let hook = Hook { program: script(&dir, "hook", &text), time_max: Duration::from_secs(60) };
    let order = Order {
        id: "1".to_owned(),
        kind: Kind::Drain,
        parameters: Default::default(),
        reason: String::new(),
        expires_at: None,
        deadline: None,
    };
    let pid = tokio::select! {
        ended = hook.run("drain", &order, hook.time_max) => panic!("it waits: {ended:?}"),
        pid = poll("it started another", || std::fs::read_to_string(&left).ok()) => pid,
    };
    // The drain was taken back: the run was dropped. Gone is gone, or a zombie that nobody has buried.
    let stat = format!("/proc/{}/stat", pid.trim());
    poll("the other is ended", || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    })
    .await;
}
