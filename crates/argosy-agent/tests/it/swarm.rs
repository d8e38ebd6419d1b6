//! Many agents in one process, against a real control plane.

use crate::harness::{FLEET_TOKEN, World, await_until};
use argosy_agent::clock::System;
use argosy_agent::swarm::{Load, Spec, Swarm, Wire};
use argosy_core::command::{CommandKind, Outcome};
use std::sync::Arc;

fn swarm(world: &World) -> Swarm {
    let wire = Wire::new(&world.url, Some(FLEET_TOKEN.to_owned())).unwrap();
    Swarm::start(Load::default(), Arc::new(System), wire)
}

fn spec(number: usize) -> Spec {
    Spec {
        node_id: format!("workers-{number}"),
        pool: "workers".to_owned(),
        provider: "gcp".to_owned(),
        region: "us-east1".to_owned(),
        machine_type: "a3-highgpu-8g".to_owned(),
        gpus: 8,
        model: "H100".to_owned(),
        ..Spec::default()
    }
}

fn resident_bytes() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_agents_register_from_one_process() {
    const AGENTS: usize = 1_000;
    let world = World::new().await;
    let swarm = swarm(&world);
    swarm.boot(spec(0)).unwrap();
    await_until("the first node", || world.node_of("workers-0")).await;
    let before = resident_bytes();
    #[expect(clippy::disallowed_methods, reason = "a measurement")]
    let began = std::time::Instant::now();
    for number in 1..AGENTS {
        swarm.boot(spec(number)).unwrap();
    }
    let mut missing: Vec<usize> = (1..AGENTS).collect();
    await_until("all nodes", || {
        missing.retain(|number| world.node_of(&format!("workers-{number}")).is_none());
        missing.is_empty().then_some(())
    })
    .await;
    let each = (resident_bytes() - before) / AGENTS as f64;
    println!("{AGENTS} registrations in {:?}, {each:.0} bytes each, both sides", began.elapsed());
    assert_eq!(swarm.count(), AGENTS);
    assert!(each < 400_000.0, "{each} bytes an agent, with the server's side");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_pushed_to_an_agent_and_obeyed_and_a_fault_is_heard() {
    let world = World::new().await;
    let swarm = swarm(&world);
    for number in 0..3 {
        swarm.boot(spec(number)).unwrap();
    }
    for number in 0..3 {
        await_until("a node", || world.node_of(&format!("workers-{number}"))).await;
    }
    let id = world.issue_to("workers-1", CommandKind::Cordon, &[]).await;
    let (outcome, message, _) = world.ended(id).await;
    assert_eq!((outcome, message.as_str()), (Outcome::Completed, "takes no new work"));
    let quick = [("test", "quick")];
    let id = world.issue_to("workers-2", CommandKind::RunDiagnostic, &quick).await;
    let (_, message, result) = world.ended(id).await;
    assert_eq!((message.as_str(), &result["passed"]), ("all 8 GPUs passed", &true.into()));

    swarm.inject("workers-0", "xid:79 gpu:3".parse().unwrap()).await.unwrap();
    let sick = await_until("the fault", || {
        world.node_of("workers-0").filter(|node| !node.findings.is_empty())
    })
    .await;
    assert_eq!(sick.gpus.len(), 8, "one that is lost is not forgotten");
    let well = world.node_of("workers-1").unwrap();
    assert!(well.findings.is_empty());
}
