//! The program itself: killed, started again, stopped.

use crate::harness::{Dir, TOKEN, World, await_until};
use argosy_core::command::{CommandKind, Outcome};
use std::process::Stdio;
use tokio::process::{Child, Command};

fn agent(world: &World, dir: &Dir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argosy-agent"));
    command
        .args(["run", "--node-id", "gpu-1", "--gpu", "none", "--server", &world.url])
        .arg("--data-dir")
        .arg(dir.path().join("data"))
        .env("ARGOSY_TOKEN", TOKEN)
        .env("ARGOSY_AGENT_CONFIG", dir.path().join("agent.yaml"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

fn start(world: &World, dir: &Dir, config: &str) -> Child {
    std::fs::write(dir.path().join("agent.yaml"), config).unwrap();
    agent(world, dir).spawn().unwrap()
}

#[tokio::test]
async fn f2_an_agent_that_is_killed_in_the_middle_of_a_drain_goes_on_with_the_same_deadline() {
    let (world, dir) = (World::new().await, Dir::new());
    let seen = dir.path().join("seen");
    let go = dir.path().join("go");
    // Waits until it may end, and writes down what deadline it was told. The agent's credential it is not.
    let hook = dir.program(
        "hook",
        &format!(
            "#!/bin/sh\n[ \"$1\" = drain ] || exit 0\necho \"$ARGOSY_DEADLINE$ARGOSY_TOKEN\" >> {}\n\
             while [ ! -e {} ]; do sleep 0.05; done\n",
            seen.display(),
            go.display()
        ),
    );
    let config = format!("hook: {}\nlabels: {{rack: r7}}\n", hook.display());
    let mut first = start(&world, &dir, &config);
    world.node_until("registration", |_| true).await;
    let id = world.issue(CommandKind::Drain, &[("timeout", "3600")]).await;
    let lines = |count: usize| {
        let seen = seen.clone();
        move || {
            let text = std::fs::read_to_string(&seen).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            (lines.len() == count).then_some(lines)
        }
    };
    await_until("the drain to begin", lines(1)).await;
    first.start_kill().unwrap();
    first.wait().await.unwrap();

    let mut second = start(&world, &dir, &config);
    let lines = await_until("the drain to go on", lines(2)).await;
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[0], world.command(id).deadline.unwrap().to_string());
    std::fs::write(&go, "").unwrap();
    assert_eq!(world.ended(id).await.0, Outcome::Drained);
    second.start_kill().unwrap();
    second.wait().await.unwrap();
    // F10: a third finds that it is done, and does not begin it again.
    let _third = start(&world, &dir, &config);
    let id = world.issue(CommandKind::Cordon, &[]).await;
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
    assert_eq!(std::fs::read_to_string(&seen).unwrap().lines().count(), 2);
}

#[tokio::test]
async fn an_agent_stops_in_order_and_a_terminated_one_ends_well() {
    let (world, dir) = (World::new().await, Dir::new());
    let mut child = start(&world, &dir, "");
    world.node_until("registration", |_| true).await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));

    let mut child = start(&world, &dir, "");
    let id = world.issue(CommandKind::Terminate, &[]).await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert_eq!(world.ended(id).await.0, Outcome::Completed);
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_said_in_one_sentence() {
    let (world, dir) = (World::new().await, Dir::new());
    let rows: [(&str, &[&str], &str); 3] = [
        ("node_di: x", &[], "node_di"),
        ("", &["--gpu", "magic"], "`magic` is none of auto"),
        ("ca_file: /none/such", &["--server", "https://localhost:1"], "cannot read certificates"),
    ];
    for (config, flags, expected) in rows {
        std::fs::write(dir.path().join("agent.yaml"), config).unwrap();
        let mut command = agent(&world, &dir);
        if flags.contains(&"--gpu") {
            command = Command::new(env!("CARGO_BIN_EXE_argosy-agent"));
            command.args(["run", "--node-id", "gpu-1", "--server", &world.url]);
        }
        let output = command.args(flags).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
