//! What is tested, whoever answers.

use super::cluster::{Cluster, NOBODY};
use crate::harness::{drain, machine};
use argosy_control::scheduler::{Drain, DrainStatus, Machine, Out, Scheduler, SchedulerError};
use argosy_core::label::Labels;
use argosy_providers::scheduler::kubernetes::{KubernetesSettings, NodeName};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

fn settings() -> KubernetesSettings {
    KubernetesSettings::default()
}

/// A drain that is not over, as one line.
async fn look(scheduler: &impl Scheduler, machine: &Machine) -> String {
    match scheduler.drain_status(machine, &drain("", Timestamp::MAX)).await {
        Ok(DrainStatus::Drained) => "drained".to_owned(),
        Ok(DrainStatus::Draining { left, message }) => format!("{left:?} {message}"),
        Ok(DrainStatus::Ending { left, message }) => format!("forced {left:?} {message}"),
        Ok(DrainStatus::Forced) => "forced".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// Whether a node gets no pods because of `spec.unschedulable`, because of our taint, and what we noted.
fn marks(node: &Value) -> (bool, bool, Option<&str>) {
    let taints = node["spec"]["taints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = json!({ "key": "argosy.dev/cordoned", "effect": "NoSchedule" });
    let noted = &node["metadata"]["annotations"]["argosy.dev/cordoned"];
    (node["spec"]["unschedulable"] == true, taints.contains(&ours), noted.as_str())
}

pub(crate) async fn a_cordon_is_ours_to_take_back_and_a_persons_is_not(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let gpu = json!([{ "key": "gpu", "value": "h100", "effect": "NoSchedule" }]);
    let name = cluster.create_node("a", json!({ "taints": gpu })).await;
    cluster.patch_node(&name, json!({ "metadata": { "annotations": { "team": "ml" } } })).await;
    let before = cluster.node(&name).await;
    let node = machine(&name, "");

    kubernetes.cordon(&node, "xid 79\non GPU 3").await.unwrap();
    let cordoned = cluster.node(&name).await;
    assert_eq!(marks(&cordoned), (true, true, Some("xid 79 on GPU 3")));
    assert_eq!(cordoned["metadata"]["annotations"]["team"], "ml");
    kubernetes.cordon(&node, "xid 79\non GPU 3").await.unwrap();
    let again = cluster.node(&name).await;
    assert_eq!(
        again["metadata"]["resourceVersion"], cordoned["metadata"]["resourceVersion"],
        "what is there is not written again"
    );
    kubernetes.cordon(&node, "two").await.unwrap();
    assert_eq!(marks(&cluster.node(&name).await), (true, true, Some("two")));

    for _ in 0..2 {
        kubernetes.uncordon(&node).await.unwrap();
        let after = cluster.node(&name).await;
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    }

    // A person was first.
    cluster.patch_node(&name, json!({ "spec": { "unschedulable": true } })).await;
    kubernetes.cordon(&node, "xid 79").await.unwrap();
    assert_eq!(marks(&cluster.node(&name).await), (true, true, Some("xid 79")));
    kubernetes.uncordon(&node).await.unwrap();
    assert_eq!(marks(&cluster.node(&name).await), (true, false, None), "theirs stays");
}

pub(crate) async fn a_drain_asks_every_pod_to_leave_that_can(cluster: Cluster) {
    let grace = Some(Duration::from_secs(7));
    let kubernetes = cluster.scheduler(KubernetesSettings { grace, ..settings() }).await;
    let name = cluster.create_node("a", json!({})).await;
    let other = cluster.create_node("b", json!({})).await;
    let node = machine(&name, "");
    let owner = |kind: &str| {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "1", "controller": true,
        });
        json!({ "ownerReferences": [owner] })
    };
    cluster.create_pod(&name, "bare", json!({})).await;
    cluster.create_pod(&name, "replica", owner("ReplicaSet")).await;
    cluster.create_pod(&name, "daemon", owner("DaemonSet")).await;
    let mirror = json!({ "annotations": { "kubernetes.io/config.mirror": "x" } });
    cluster.create_pod(&name, "mirror", mirror).await;
    cluster.create_pod(&name, "finished", json!({})).await;
    cluster.set_phase("finished", json!({ "phase": "Succeeded" })).await;
    cluster.create_pod(&name, "failed", json!({})).await;
    cluster.set_phase("failed", json!({ "phase": "Failed" })).await;
    cluster.create_pod(&other, "elsewhere", json!({})).await;

    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    assert_eq!(marks(&cluster.node(&name).await), (true, true, Some("xid 79")));
    for (pod, leaves) in [
        ("bare", true),
        ("replica", true),
        ("daemon", false),
        ("mirror", false),
        ("finished", false),
        ("failed", false),
        ("elsewhere", false),
    ] {
        assert_eq!(cluster.is_ending(pod).await, leaves, "{pod}");
    }
    let grace = &cluster.pod("bare").await.unwrap()["metadata"]["deletionGracePeriodSeconds"];
    assert_eq!(*grace, 7, "as it is configured, and not as the pod likes");

    let corner = &cluster.corner;
    let both =
        format!("Some(2) 2 pods are left: {corner}/bare (is ending), {corner}/replica (is ending)");
    assert_eq!(look(&kubernetes, &node).await, both);
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    assert_eq!(look(&kubernetes, &node).await, both, "asked again, nothing is different");
    cluster.end_pod("bare").await;
    let one = format!("Some(1) 1 pod is left: {corner}/replica (is ending)");
    assert_eq!(look(&kubernetes, &node).await, one);
    cluster.end_pod("replica").await;
    assert_eq!(look(&kubernetes, &node).await, "drained");
}

pub(crate) async fn a_budget_holds_a_drain_open_and_is_named(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    cluster.create_pod(&name, "free", json!({})).await;
    cluster.create_pod(&name, "web", json!({})).await;
    cluster.create_budget("web-budget", "web", 0).await;

    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    assert!(cluster.is_ending("free").await, "one that is held back does not hold others back");
    assert!(!cluster.is_ending("web").await);
    let corner = &cluster.corner;
    let held =
        "held back: The disruption budget web-budget needs 1 healthy pods and has 1 currently";
    assert_eq!(
        look(&kubernetes, &node).await,
        format!("Some(2) 2 pods are left: {corner}/free (is ending), {corner}/web ({held})")
    );
    cluster.end_pod("free").await;
    assert_eq!(
        look(&kubernetes, &node).await,
        format!("Some(1) 1 pod is left: {corner}/web ({held})")
    );

    // The budget has room, and whoever looks next goes on: it need not be the process that began.
    cluster.allow("web-budget", 1).await;
    let other_process = cluster.scheduler(settings()).await;
    assert_eq!(
        look(&other_process, &node).await,
        format!("Some(1) 1 pod is left: {corner}/web (is ending)")
    );
    assert!(cluster.is_ending("web").await);
    cluster.end_pod("web").await;
    assert_eq!(look(&kubernetes, &node).await, "drained");

    // Two budgets for one pod are a mistake that the API server will not decide, and people should see.
    cluster.create_pod(&name, "web", json!({})).await;
    cluster.create_budget("second-budget", "web", 1).await;
    let said = look(&kubernetes, &node).await;
    assert!(said.contains("more than one PodDisruptionBudget"), "{said}");
}

pub(crate) async fn nothing_is_evicted_after_the_deadline(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    cluster.create_pod(&name, "web", json!({})).await;
    cluster.create_budget("web-budget", "web", 0).await;
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();

    let hour = SignedDuration::from_hours(1);
    let later = cluster.scheduler_as(super::cluster::ARGOSY, settings(), hour).await;
    cluster.allow("web-budget", 1).await;
    let corner = &cluster.corner;
    let over = format!("Some(1) the deadline has passed; 1 pod is left: {corner}/web");
    assert_eq!(look(&later, &node).await, over);
    later.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    assert_eq!(look(&later, &node).await, over);
    assert!(!cluster.is_ending("web").await, "it was too late to ask");
    assert_eq!(marks(&cluster.node(&name).await), (true, true, Some("xid 79")), "it stays out");

    // A new drain is a new deadline.
    later.drain(&node, &drain("again", cluster.deadline() + hour)).await.unwrap();
    assert!(cluster.is_ending("web").await);
}

pub(crate) async fn what_is_left_at_the_deadline_is_deleted_only_if_that_is_configured(
    cluster: Cluster,
) {
    let grace = Some(Duration::from_secs(9));
    let with_force = || KubernetesSettings { force: true, grace, ..settings() };
    let kubernetes = cluster.scheduler(with_force()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    cluster.create_pod(&name, "web", json!({})).await;
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "o", "uid": "1", "controller": true,
    });
    cluster.create_pod(&name, "daemon", json!({ "ownerReferences": [owner] })).await;
    cluster.create_budget("web-budget", "web", 0).await;
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    assert!(!cluster.is_ending("web").await, "until the deadline the budget counts");

    let hour = SignedDuration::from_hours(1);
    let later = cluster.scheduler_as(super::cluster::ARGOSY, with_force(), hour).await;
    let corner = &cluster.corner;
    assert_eq!(
        look(&later, &node).await,
        format!("forced Some(1) the deadline has passed; 1 pod is left: {corner}/web (is ending)")
    );
    let pod = cluster.pod("web").await.unwrap();
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 9, "it may end in order");
    assert!(!cluster.is_ending("daemon").await);
    cluster.end_pod("web").await;
    assert_eq!(look(&later, &node).await, "drained");

    // Cordoned only, there is no deadline that could have passed.
    later.cordon(&node, "xid 79").await.unwrap();
    cluster.create_pod(&name, "late", json!({})).await;
    assert_eq!(look(&later, &node).await, format!("Some(1) 1 pod is left: {corner}/late"));
    assert!(!cluster.is_ending("late").await);
}

pub(crate) async fn a_drain_that_was_called_off_evicts_nobody(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    cluster.create_pod(&name, "web", json!({})).await;
    cluster.create_budget("web-budget", "web", 0).await;
    let corner = &cluster.corner;

    // To a cordon: what still runs stays.
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    kubernetes.cordon(&node, "xid 79").await.unwrap();
    cluster.allow("web-budget", 1).await;
    assert_eq!(look(&kubernetes, &node).await, format!("Some(1) 1 pod is left: {corner}/web"));
    assert!(!cluster.is_ending("web").await);

    // To work: the node gets pods again, and is not drained whatever is on it.
    cluster.allow("web-budget", 0).await;
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    kubernetes.uncordon(&node).await.unwrap();
    cluster.allow("web-budget", 1).await;
    let gone = format!("node {name} is no longer cordoned in Kubernetes");
    assert_eq!(look(&kubernetes, &node).await, format!("Some(1) {gone}"));
    assert!(!cluster.is_ending("web").await);
    cluster.end_pod("web").await;
    assert_eq!(look(&kubernetes, &node).await, format!("Some(0) {gone}"));
}

pub(crate) async fn a_pod_of_the_same_name_is_another_pod(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let elsewhere = cluster.create_node("b", json!({})).await;
    let node = machine(&name, "");
    // A StatefulSet keeps the name. The second is on another node, and nobody asks it to leave.
    cluster.create_pod(&name, "db-0", json!({})).await;
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    cluster.end_pod("db-0").await;
    cluster.create_pod(&elsewhere, "db-0", json!({})).await;
    assert_eq!(look(&kubernetes, &node).await, "drained");
    assert!(!cluster.is_ending("db-0").await);
}

pub(crate) async fn more_pods_than_a_page_has_all_leave(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    let pods: Vec<String> = (0..260).map(|number| format!("p{number:03}")).collect();
    for some in pods.chunks(20) {
        join_all(some.iter().map(|pod| cluster.create_pod(&name, pod, json!({})))).await;
    }
    kubernetes.drain(&node, &drain("xid 79", cluster.deadline())).await.unwrap();
    let said = look(&kubernetes, &node).await;
    assert!(said.starts_with("Some(260) 260 pods are left: "), "{said}");
    assert!(said.ends_with("p004 (is ending), …"), "{said}");
    let end = async |pod: &String| {
        assert!(cluster.is_ending(pod).await, "{pod}");
        cluster.end_pod(pod).await;
    };
    for some in pods.chunks(20) {
        join_all(some.iter().map(&end)).await;
    }
    assert_eq!(look(&kubernetes, &node).await, "drained");
}

pub(crate) async fn writers_at_once_lose_nothing(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    // Others add their taints, each a version of the node; in between we cordon.
    let keys: Vec<String> = (0..8).map(|number| format!("theirs-{number}")).collect();
    let taint = async |key: &String| {
        loop {
            let node = cluster.node(&name).await;
            let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            taints.push(json!({ "key": key, "effect": "NoSchedule" }));
            let version = &node["metadata"]["resourceVersion"];
            let metadata = json!({ "resourceVersion": version });
            let patch = json!({ "metadata": metadata, "spec": { "taints": taints } });
            if cluster.patch_node(&name, patch).await {
                break;
            }
        }
    };
    let us = async {
        // As whoever drives it does: again, while it says so.
        while let Err(error) = kubernetes.cordon(&node, "xid 79").await {
            assert!(matches!(error, SchedulerError::Later(_)), "{error:?}");
        }
    };
    tokio::join!(join_all(keys.iter().map(&taint)), us);
    let after = cluster.node(&name).await;
    assert_eq!(marks(&after), (true, true, Some("xid 79")));
    let taints = after["spec"]["taints"].as_array().unwrap();
    for key in &keys {
        assert!(taints.iter().any(|taint| taint["key"] == **key), "{key} was lost: {taints:?}");
    }
}

pub(crate) async fn a_node_is_found_by_what_is_configured(cluster: Cluster) {
    let named = |node: NodeName| KubernetesSettings { node, ..settings() };
    let instance = format!("i-{}", cluster.corner);
    let whole = format!("aws:///us-east-1a/{instance}");
    let name = cluster.create_node("a", json!({ "providerID": whole })).await;
    let label = json!({ "kube-name": name });
    let labels = Labels::parse(label.as_object().unwrap()).unwrap();
    for (by, node) in [
        (NodeName::Id, machine(&name, "")),
        (NodeName::Hostname, machine("x", &name.to_uppercase())),
        (NodeName::Label("kube-name".to_owned()), Machine { labels, ..machine("x", "") }),
        (NodeName::ProviderId, machine(&instance, "")),
        (NodeName::ProviderId, machine(&whole, "")),
    ] {
        let kubernetes = cluster.scheduler(named(by.clone())).await;
        kubernetes.cordon(&node, "x").await.unwrap();
        assert_eq!(marks(&cluster.node(&name).await), (true, true, Some("x")), "{by:?}");
        kubernetes.uncordon(&node).await.unwrap();
    }

    // Another machine takes the name; the one we mean is gone, and its name must not be used for it.
    let kubernetes = cluster.scheduler(named(NodeName::ProviderId)).await;
    let node = machine(&instance, "");
    assert!(look(&kubernetes, &node).await.contains("is no longer cordoned"));
    cluster.delete_node(&name).await;
    cluster.create_node("a", json!({ "providerID": "aws:///us-east-1a/i-other" })).await;
    assert_eq!(
        kubernetes.cordon(&node, "x").await,
        Err(SchedulerError::Later(format!(
            "node `{name}` of Kubernetes is another machine by now"
        )))
    );
    assert_eq!(
        kubernetes.cordon(&node, "x").await,
        Err(SchedulerError::UnknownNode(format!(
            "Kubernetes has no node with the provider's id `{instance}`"
        )))
    );
    assert_eq!(marks(&cluster.node(&name).await), (false, false, None));
}

pub(crate) async fn what_kubernetes_does_not_know_or_allow_is_no_drained_node(cluster: Cluster) {
    let every = async |scheduler: &dyn Scheduler, node: &Machine| {
        [
            scheduler.cordon(node, "x").await,
            scheduler.uncordon(node).await,
            scheduler.drain(node, &drain("x", cluster.deadline())).await,
            scheduler.drain_status(node, &drain("", Timestamp::MAX)).await.map(drop),
        ]
    };
    let kubernetes = cluster.scheduler(settings()).await;
    let missing = cluster.node_name("missing");
    for answer in every(&kubernetes, &machine(&missing, "")).await {
        let message = format!("Kubernetes has no node `{missing}`");
        assert_eq!(answer, Err(SchedulerError::UnknownNode(message)));
    }

    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    let zero = SignedDuration::ZERO;
    for (token, code) in [(NOBODY, "403"), ("no-token", "401")] {
        let kubernetes = cluster.scheduler_as(token, settings(), zero).await;
        for answer in every(&kubernetes, &node).await {
            let Err(SchedulerError::Refused(message)) = answer else { panic!("{answer:?}") };
            assert!(message.starts_with(&format!("Kubernetes answered {code}")), "{message}");
        }
    }
    assert_eq!(marks(&cluster.node(&name).await), (false, false, None));
}

pub(crate) async fn r2_n20_a_listing_shows_what_kubernetes_holds_about_each_node(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    let listed = async || {
        let all = kubernetes.list().await.unwrap();
        let one = all.into_iter().find(|one| one.name == name).expect("it is listed");
        (one.out, one.note)
    };
    assert_eq!(listed().await, (Out::InUse, String::new()));
    kubernetes.cordon(&node, "xid 79").await.unwrap();
    assert_eq!(listed().await, (Out::ByUs, "xid 79".to_owned()));
    // The node object was made anew, or somebody took everything back.
    let nothing = json!({
        "metadata": { "annotations": { "argosy.dev/cordoned": null } },
        "spec": { "unschedulable": null, "taints": [] },
    });
    cluster.patch_node(&name, nothing).await;
    assert_eq!(listed().await.0, Out::InUse);
    // A person's cordon.
    cluster.patch_node(&name, json!({ "spec": { "unschedulable": true } })).await;
    assert_eq!(listed().await, (Out::ByOthers, "unschedulable".to_owned()));
}

pub(crate) async fn r2_n2_what_is_left_is_deleted_where_the_drain_says_so(cluster: Cluster) {
    let kubernetes = cluster.scheduler(settings()).await;
    let name = cluster.create_node("a", json!({})).await;
    let node = machine(&name, "");
    cluster.create_pod(&name, "web", json!({})).await;
    cluster.create_budget("web-budget", "web", 0).await;
    let forced = Drain { force: true, ..drain("xid 79", cluster.deadline()) };
    kubernetes.drain(&node, &forced).await.unwrap();
    assert!(!cluster.is_ending("web").await, "until the deadline the budget counts");
    let hour = SignedDuration::from_hours(1);
    let later = cluster.scheduler_as(super::cluster::ARGOSY, settings(), hour).await;
    let over = Drain { over: true, ..forced };
    let status = later.drain_status(&node, &over).await.unwrap();
    assert!(matches!(status, DrainStatus::Ending { left: Some(1), .. }), "{status:?}");
    cluster.end_pod("web").await;
    assert_eq!(later.drain_status(&node, &over).await, Ok(DrainStatus::Drained));
}
