use crate::autoscale::tests::{advise, check, refuse};
use serde_json::json;

#[test]
fn jobs_that_wait_come_on_top_of_the_nodes_that_work() {
    let usual = json!({"type": "queue"});
    let small = json!({"type": "queue", "jobsPerNode": 1});
    for (policy, pool, expected) in [
        (
            &usual,
            "busy 5 pending 45",
            "5 -> 10: 45 jobs waiting at 10 a node need 5 nodes beside 5 that work",
        ),
        (
            &usual,
            "busy 0 pending 45",
            "5: 45 jobs waiting at 10 a node need 5 nodes beside 0 that work",
        ),
        (
            &usual,
            "busy 2 pending 0",
            "5 -> 2: 0 jobs waiting at 10 a node need 0 nodes beside 2 that work",
        ),
        (
            &usual,
            "busy 0 pending 1",
            "5 -> 1: 1 job waiting at 10 a node need 1 node beside 0 that work",
        ),
        (
            &usual,
            "wanted 0 pending 11",
            "0 -> 2: 11 jobs waiting at 10 a node need 2 nodes; which nodes work is not known, so none is taken away",
        ),
        (
            &small,
            "busy 5 pending 3",
            "5 -> 8: 3 jobs waiting at 1 a node need 3 nodes beside 5 that work",
        ),
        // What works is estimated from the utilization.
        (
            &usual,
            "util 50 pending 0",
            "5 -> 3: 0 jobs waiting at 10 a node need 0 nodes beside the work of 3",
        ),
        // Whoever does not know takes nothing away.
        (
            &usual,
            "pending 0",
            "5: 0 jobs waiting at 10 a node need 0 nodes; which nodes work is not known, so none is taken away",
        ),
        // Nodes that boot will take jobs that wait now.
        (
            &usual,
            "wanted 7 ready 5 busy 5 pending 20",
            "7: 20 jobs waiting at 10 a node need 2 nodes beside 5 that work",
        ),
    ] {
        check(policy, pool, &format!("{expected} (queue)"));
    }
}

#[test]
fn the_whole_queue_says_the_size() {
    let policy = json!({"type": "queue", "metric": "queueDepth"});
    for (pool, expected) in [
        ("queue 45", "5: 45 jobs in the queue at 10 a node need 5 nodes"),
        ("queue 51", "5 -> 6: 51 jobs in the queue at 10 a node need 6 nodes"),
        (
            "queue 0",
            "5 -> 1: 0 jobs in the queue at 10 a node need 0 nodes, but the last node stays",
        ),
        ("wanted 0 queue 1", "0 -> 1: 1 job in the queue at 10 a node need 1 node"),
        ("wanted 9 ready 2 queue 90", "9: 90 jobs in the queue at 10 a node need 9 nodes"),
    ] {
        check(&policy, pool, &format!("{expected} (queue)"));
    }
    check(
        &policy,
        "pending 45",
        "5: no queue depth is known (queue); without an opinion the size stays",
    );
}

#[test]
fn r2_m18_a_queue_that_only_nodes_tell_of_keeps_one_of_them() {
    let jobs = json!({"http": {"url": "https://jobs.example/", "pointer": "/n"}});
    for (metric, pool) in [("pendingJobs", "busy 0 pending 0"), ("queueDepth", "queue 0")] {
        let mut policy = json!({"type": "queue", "metric": metric});
        assert_eq!(advise(&policy, pool, Vec::new()).target, 1, "{metric} from heartbeats");
        policy["metrics"] = json!({metric: jobs});
        assert_eq!(advise(&policy, pool, Vec::new()).target, 0, "{metric} from elsewhere");
        let empty = format!("wanted 0 {pool}");
        assert_eq!(advise(&policy, &empty, Vec::new()).target, 0, "{metric}");
    }
}

#[test]
fn r1_q11_a_pool_without_gpus_does_not_grow_by_what_it_bought() {
    // Forty jobs wait all the time, and nobody knows which nodes work.
    let policy = json!({"type": "queue", "cooldown": "0s"});
    let mut wanted = 0;
    for _ in 0..20 {
        let pool = format!("wanted {wanted} ready {wanted} pending 40 max 20");
        wanted = advise(&policy, &pool, Vec::new()).target;
    }
    assert_eq!(wanted, 4);
    // It follows a longer queue, and gives nothing away on a guess.
    assert_eq!(advise(&policy, "wanted 4 pending 95", Vec::new()).target, 10);
    assert_eq!(advise(&policy, "wanted 10 pending 0", Vec::new()).target, 10);
}

#[test]
fn what_is_counted_has_a_name() {
    refuse(
        &json!({"type": "queue", "jobsPerNode": 0, "metric": "pendingJob"}),
        &[
            "spec.autoscaling.jobsPerNode must be a whole number from 1 to 100000",
            "spec.autoscaling.metric must be one of pendingJobs, queueDepth, not `pendingJob`; did you \
             mean pendingJobs?",
        ],
    );
}
