//! Slurm: a real controller, real nodes, real jobs.

mod cluster;

use crate::harness::{await_until, drain, machine};
use argosy_control::scheduler::{Drain, DrainStatus, Machine, Out, Scheduler, SchedulerError};
use argosy_core::label::Labels;
use cluster::Cluster;
use jiff::Timestamp;
use serde_json::json;

fn deadline() -> Timestamp {
    "2030-01-01T13:00:00Z".parse().unwrap()
}

#[tokio::test]
async fn a_job_holds_a_drain_open_until_it_ends() {
    let cluster = Cluster::start().await;
    let slurm = cluster.scheduler(None);
    let n1 = machine("id-1", "n1.gpu.example");
    let job = cluster.submit("n1");
    cluster.await_job(&job, "RUNNING").await;

    slurm.drain(&n1, &drain("xid 79, \"GPU 3\"\nfell off", deadline())).await.unwrap();
    let reason = "argosy: drain until 2030-01-01T13:00:00Z, xid 79, GPU 3 fell off";
    assert_eq!(cluster.node("n1"), format!("draining|{reason}"));
    let message = format!("node n1 is ALLOCATED+DRAIN, jobs on it: {job}");
    assert_eq!(
        slurm.drain_status(&n1, &drain("", deadline())).await,
        Ok(DrainStatus::Draining { left: Some(1), message })
    );
    assert_eq!(cluster.job(&job), "RUNNING", "nobody touched it");

    // Asked again, nothing is different.
    slurm.drain(&n1, &drain("xid 79, \"GPU 3\"\nfell off", deadline())).await.unwrap();
    assert_eq!(cluster.node("n1"), format!("draining|{reason}"));

    cluster.end_jobs("n1");
    await_until("the node is drained", async || {
        match slurm.drain_status(&n1, &drain("", deadline())).await {
            Ok(DrainStatus::Drained) => Some(()),
            Ok(_) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await;
    assert_eq!(cluster.node("n1"), format!("drained|{reason}"));

    slurm.uncordon(&n1).await.unwrap();
    slurm.uncordon(&n1).await.unwrap();
    assert_eq!(cluster.node("n1"), cluster::back_in_service(reason));
    let next = cluster.submit("n1");
    cluster.await_job(&next, "COMPLETED").await;
}

#[tokio::test]
async fn a_cordoned_node_gets_no_job_until_it_is_uncordoned() {
    let cluster = Cluster::start().await;
    let slurm = cluster.scheduler(Some("slurm"));
    let labels = json!({ "slurm": "n1" });
    let labels = Labels::parse(labels.as_object().unwrap()).unwrap();
    let n1 = Machine { labels, ..machine("id-1", "elsewhere") };
    slurm.cordon(&n1, "").await.unwrap();
    assert_eq!(cluster.node("n1"), "drained|argosy: no reason was given");
    assert_eq!(slurm.drain_status(&n1, &drain("", deadline())).await, Ok(DrainStatus::Drained));

    cluster.end_jobs("n1");
    cluster.end_jobs("n2");
    let [waits, runs] = [cluster.submit("n1"), cluster.submit("n2")];
    cluster.await_job(&runs, "COMPLETED").await;
    assert_eq!(cluster.job(&waits), "PENDING");

    // A cordon that becomes a drain says so.
    slurm.drain(&n1, &drain("fan", deadline())).await.unwrap();
    assert_eq!(cluster.node("n1"), "drained|argosy: drain until 2030-01-01T13:00:00Z, fan");

    slurm.uncordon(&n1).await.unwrap();
    cluster.await_job(&waits, "COMPLETED").await;
}

#[tokio::test]
async fn what_a_person_did_in_slurm_is_never_undone() {
    let cluster = Cluster::start().await;
    let slurm = cluster.scheduler(None);
    let [n1, n2] = [machine("id-1", "n1"), machine("id-2", "n2")];
    let by_hand = |cluster: &Cluster, node: &str, state: &str, reason: &str| {
        let words =
            [format!("NodeName={node}"), format!("State={state}"), format!("Reason={reason}")];
        let [node, state, reason] = &words;
        cluster.run("scontrol", &["update", node, state, reason]);
    };

    // Drained by hand: our cordon leaves it, and so does our uncordon.
    by_hand(&cluster, "n1", "DRAIN", "fan broken");
    slurm.cordon(&n1, "xid 79").await.unwrap();
    slurm.drain(&n1, &drain("xid 79", deadline())).await.unwrap();
    slurm.uncordon(&n1).await.unwrap();
    assert_eq!(cluster.node("n1"), "drained|fan broken");

    // Set down by hand: we drain it, and it is still down when we are done; what was said is kept.
    by_hand(&cluster, "n2", "DOWN", "no power");
    slurm.cordon(&n2, "xid 79").await.unwrap();
    assert!(cluster.node("n2").starts_with("drained"), "{}", cluster.node("n2"));
    assert!(cluster.node("n2").ends_with("|argosy: xid 79; before: no power"));
    slurm.uncordon(&n2).await.unwrap();
    assert!(cluster.node("n2").starts_with("down"), "{}", cluster.node("n2"));
    assert!(cluster.node("n2").ends_with("|no power"), "r2_n32: {}", cluster.node("n2"));

    // Resumed by hand in the middle of our drain: it is not over, and people are told why.
    by_hand(&cluster, "n1", "UNDRAIN", "");
    slurm.drain(&n1, &drain("xid 79", deadline())).await.unwrap();
    by_hand(&cluster, "n1", "UNDRAIN", "");
    let Ok(DrainStatus::Draining { left: Some(0), message }) =
        slurm.drain_status(&n1, &drain("", deadline())).await
    else {
        panic!("a node that gets jobs is not drained");
    };
    assert!(message.ends_with("and no longer drained in Slurm"), "{message}");
}

#[tokio::test]
async fn what_slurm_does_not_know_or_cannot_say_is_no_drained_node() {
    let mut cluster = Cluster::start().await;
    let slurm = cluster.scheduler(None);
    let n1 = machine("id-1", "n1");
    let unknown = Err(SchedulerError::UnknownNode("Slurm has no node `n7`".to_owned()));
    let n7 = machine("id-7", "n7");
    assert_eq!(slurm.cordon(&n7, "x").await, unknown);
    assert_eq!(slurm.uncordon(&n7).await, unknown);
    assert_eq!(slurm.drain(&n7, &drain("x", deadline())).await, unknown);
    assert_eq!(slurm.drain_status(&n7, &drain("", deadline())).await.map(drop), unknown);
    slurm.cordon(&machine("id-0", "ALL"), "x").await.expect_err("one call, one node");
    assert_eq!(cluster.node("n1"), "idle|none");

    slurm.cordon(&n1, "xid 79").await.unwrap();
    cluster.stop_controller().await;
    let Err(SchedulerError::Later(message)) = slurm.drain_status(&n1, &drain("", deadline())).await
    else {
        panic!("there is nobody to ask");
    };
    assert!(message.contains("Unable to contact slurm controller"), "{message}");

    // It remembers, and so need not we.
    cluster.start_controller().await;
    assert_eq!(slurm.drain_status(&n1, &drain("", deadline())).await, Ok(DrainStatus::Drained));
    slurm.uncordon(&n1).await.unwrap();
    assert_eq!(cluster.node("n1"), cluster::back_in_service("argosy: xid 79"));
}

/// What Slurm holds about a node, as the listing has it.
async fn listed(slurm: &impl Scheduler, node: &str) -> (Out, String) {
    let all = slurm.list().await.unwrap();
    let one = all.into_iter().find(|one| one.name == node).expect("it is listed");
    (one.out, one.note)
}

#[tokio::test]
async fn r2_n20_a_listing_shows_what_slurm_holds_about_each_node() {
    let cluster = Cluster::start().await;
    let slurm = cluster.scheduler(None);
    let n1 = machine("id-1", "n1");
    assert_eq!(listed(&slurm, "n1").await, (Out::InUse, String::new()));
    slurm.cordon(&n1, "xid 79").await.unwrap();
    let (out, note) = listed(&slurm, "n1").await;
    assert_eq!(out, Out::ByUs);
    assert!(note.ends_with("argosy: xid 79"), "{note}");
    assert_eq!(listed(&slurm, "n2").await.0, Out::InUse);
    // Resumed by mistake; drained by a person; down.
    cluster.run("scontrol", &["update", "NodeName=n1", "State=RESUME"]);
    assert_eq!(listed(&slurm, "n1").await.0, Out::InUse);
    cluster.run("scontrol", &["update", "NodeName=n1", "State=DRAIN", "Reason=fan"]);
    let (out, note) = listed(&slurm, "n1").await;
    assert_eq!(out, Out::ByOthers);
    assert!(note.ends_with(" fan"), "{note}");
    cluster.run("scontrol", &["update", "NodeName=n2", "State=DOWN", "Reason=power"]);
    assert_eq!(listed(&slurm, "n2").await.0, Out::ByOthers);
}

#[tokio::test]
async fn r2_n2_jobs_are_cancelled_only_past_the_deadline_of_a_drain_that_says_so() {
    let cluster = Cluster::start().await;
    let slurm = cluster.scheduler(None);
    let n1 = machine("id-1", "n1");
    let job = cluster.submit("n1");
    cluster.await_job(&job, "RUNNING").await;
    let forced = Drain { force: true, ..drain("xid 79", deadline()) };
    slurm.drain(&n1, &forced).await.unwrap();
    for gentle in [forced.clone(), Drain { over: true, force: false, ..forced.clone() }] {
        let status = slurm.drain_status(&n1, &gentle).await.unwrap();
        assert!(matches!(status, DrainStatus::Draining { left: Some(1), .. }), "{status:?}");
        assert_eq!(cluster.job(&job), "RUNNING");
    }
    let over = Drain { over: true, ..forced };
    let status = slurm.drain_status(&n1, &over).await.unwrap();
    assert!(matches!(status, DrainStatus::Ending { left: Some(1), .. }), "{status:?}");
    await_until("the job is gone and the node is drained", async || {
        (slurm.drain_status(&n1, &over).await == Ok(DrainStatus::Drained)).then_some(())
    })
    .await;
}
