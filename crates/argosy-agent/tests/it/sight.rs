//! What a machine shows, from the driver and the kernel's log to the control plane.

use crate::harness::{Dir, TOKEN, World, await_until};
use argosy_core::health::EventType;
use argosy_core::node::Node;
use argosy_nvml_standin::{SCRIPT_ENV, Script, library};
use std::io::Write;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// An agent with two GPUs behind a driver that stands in, and a log of the kernel that is a file.
fn start(world: &World, dir: &Dir) -> Child {
    let script = dir.path().join("nvml.json");
    Script::h100s(2).write(&script).unwrap();
    let nvml = library(&std::env::current_exe().unwrap()).expect("cargo builds it for tests");
    Command::new(env!("CARGO_BIN_EXE_argosy-agent"))
        .args(["run", "--node-id", "gpu-1", "--provider", "test", "--server", &world.url])
        .arg("--nvml-library")
        .arg(nvml)
        .arg("--log")
        .arg(dir.path().join("kern.log"))
        .arg("--data-dir")
        .arg(dir.path().join("data"))
        .env(SCRIPT_ENV, script)
        .env("ARGOSY_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn seen(node: &Node, code: i64) -> Vec<(&str, usize)> {
    let of = node.sightings.iter().filter(|seen| seen.event_type == EventType::Xid);
    of.filter(|seen| seen.code == code).map(|seen| (seen.gpu.as_str(), seen.times.len())).collect()
}

#[tokio::test]
async fn a_line_of_the_kernel_is_told_once_with_its_gpu_whatever_is_killed() {
    let (world, dir) = (World::new().await, Dir::new());
    let log = dir.path().join("kern.log");
    let mut file = std::fs::File::create(&log).unwrap();
    let mut say = |text: &str| {
        writeln!(file, "Nov 15 10:00:00 gpu-1 kernel: [  100.0] {text}").unwrap();
        file.metadata().unwrap().len()
    };
    let mut agent = start(&world, &dir);
    let node = world.node_until("its GPUs", |node| node.gpus.len() == 2).await;
    let second = node.gpus[1].uuid.clone();
    let end = say("NVRM: Xid (PCI:0000:20:00): 31, pid=7, name=python3, MMU Fault");
    let node = world.node_until("Xid 31", |node| !seen(node, 31).is_empty()).await;
    assert_eq!(seen(&node, 31), [(second.as_str(), 1)]);

    // Its place is written down a little later; killed after that, the line is not told again.
    await_until("the place in the log", || {
        let text = std::fs::read_to_string(dir.path().join("data/logs.json")).ok()?;
        text.contains(&format!("\"offset\":{end}")).then_some(())
    })
    .await;
    agent.start_kill().unwrap();
    agent.wait().await.unwrap();
    say("NVRM: Xid (PCI:0000:18:00): 43, pid=8, name=python3, Ch 00000010");
    let _again = start(&world, &dir);
    let node = world.node_until("Xid 43", |node| !seen(node, 43).is_empty()).await;
    assert_eq!(seen(&node, 43), [(node.gpus[0].uuid.as_str(), 1)], "written while nobody listened");
    assert_eq!(seen(&node, 31), [(second.as_str(), 1)], "and the first was not told again");
}
