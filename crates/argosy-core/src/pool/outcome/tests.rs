use super::*;
use crate::fixture::at;
use crate::pool::failed;
use crate::pool::fixture::{Town, exhausted, offer, one, quota, set, town};

fn data(town: &Town) -> Map<String, Value> {
    match town.plan().outcome {
        Outcome::Ready { data, .. }
        | Outcome::Progress { data, .. }
        | Outcome::Failed { data, .. }
        | Outcome::Removing { data, .. }
        | Outcome::Removed { data, .. } => data,
        Outcome::Waiting => panic!("nothing is said"),
    }
}

#[test]
fn a_pool_of_five_is_ready_with_the_seeds_words() {
    let pool = town(5, "a:ready b:ready c:ready d:ready e:ready");
    pool.says("AllNodesReady: 5 of 5 nodes ready");
    let data = data(&pool);
    assert_eq!(data["nodesReady"], 5);
    assert_eq!(data["nodesWanted"], 5);
    assert_eq!(data["machines"], json!(["a", "b", "c", "d", "e"]));
    assert_eq!(data["cost_per_hour"], Value::Null);
}

#[test]
fn what_it_costs_is_said_if_it_is_known() {
    let mut pool = town(3, "a:ready$0.1 b:ready$0.2 c:ready");
    assert_eq!(data(&pool)["cost_per_hour"], Value::Null);
    pool.clouds.get_mut("gcp").unwrap().offers =
        vec![offer("n1-standard-4", "us-east1", Some(0.3))];
    assert_eq!(data(&pool)["cost_per_hour"], json!(0.6));
}

#[test]
fn progress_says_who_is_waited_for() {
    town(5, "").says("ProvisioningInProgress: Provisioning 5 nodes of type n1-standard-4");
    town(2, "a:coming+0 b:asked+0")
        .says("ProvisioningInProgress: Provisioning 2 nodes of type n1-standard-4");
    town(5, "a:ready b:ready c:ready d:coming+2 e:coming+1")
        .says("ProvisioningInProgress: 3 of 5 nodes ready; waiting for d, e to register since 2025-10-28T11:58:00Z");
    town(6, "a:ready b:coming+3 c:coming+1 d:coming+1 e:coming+1 f:coming+1").says(
        "ProvisioningInProgress: 1 of 6 nodes ready; waiting for b, c, d and 2 more to register since 2025-10-28T11:57:00Z",
    );
    let mut unsure = town(1, "a:asked+0");
    let State::Provisioning(buying) = &mut unsure.one("a").instance.state else { panic!() };
    buying.trouble = Some(Trouble::Unsure("no answer within 30 s".to_owned()));
    unsure.says(
        "ProvisioningInProgress: Provisioning 1 nodes of type n1-standard-4; GCP says: no answer within 30 s",
    );
    town(2, "a:ready b:held")
        .says("ProvisioningInProgress: 1 of 2 nodes ready; b is held by ada: because");
}

#[test]
fn quota_is_told_with_the_seeds_words() {
    let mut pool = town(5, "");
    let order = pool.plan().buy[0].order.clone();
    pool.book = failed(&pool.book, &order, 1, &quota(), at(0));
    let words = "QuotaExceeded: Insufficient quota to provision 5 nodes of type n1-standard-4. Required: 20 \
                 CPUs, Available: 10 CPUs";
    pool.says(words);
    let guidance = data(&pool)["guidance"].as_str().unwrap().to_owned();
    let start = "Reduce the node count or request a quota increase for CPUs in us-east1.";
    assert!(guidance.starts_with(start), "{guidance}");
    assert!(matches!(pool.plan().outcome, Outcome::Failed { applied: false, healthy: true, .. }));
    // Bought one by one, the words are the same: what two of them use was there.
    let mut half = town(5, "a:ready b:coming");
    let left = Trouble::Quota {
        resource: "CPUs".to_owned(),
        each: 4,
        available: 2,
        message: "quota exceeded".to_owned(),
    };
    half.book = failed(&half.book, &order, 3, &left, at(0));
    half.says(words);
    let silent = Trouble::Quota {
        resource: "instances".to_owned(),
        each: 0,
        available: 0,
        message: "VcpuLimitExceeded".to_owned(),
    };
    half.book = failed(&pool.book, &order, 3, &silent, at(0));
    half.says(
        "QuotaExceeded: Insufficient quota to provision 5 nodes of type n1-standard-4. GCP says: \
         VcpuLimitExceeded",
    );
}

#[test]
fn exhausted_capacity_names_the_node_and_the_providers_code() {
    let mut pool = town(5, "a:ready b:ready");
    let order = pool.plan().buy[0].order.clone();
    pool.book = failed(&pool.book, &order, 3, &exhausted(), at(0));
    pool.says(
        "ProvisioningFailed: Failed to provision node 3 of 5. GCP error: ZONE_RESOURCE_POOL_EXHAUSTED",
    );
    assert!(matches!(pool.plan().outcome, Outcome::Failed { applied: false, healthy: true, .. }));
    assert!(data(&pool).contains_key("retryAt"));
}

#[test]
fn a_sick_node_is_named_with_what_is_done_about_it() {
    let mut pool = town(5, "a:ready b:ready c:sick d:ready e:ready");
    let sick = "NodesUnhealthy: 4 of 5 nodes ready; node 3 of 5 (c) is sick: check check says: GPU 3 is gone";
    pool.says(&format!("{sick}; a replacement is ordered"));
    assert!(matches!(pool.plan().outcome, Outcome::Failed { applied: true, healthy: false, .. }));
    let old = pool.one("c").instance.id.clone();
    pool.ones.push(one("f", 3, Some(old), "coming", 180));
    pool.says(&format!(
        "{sick}; replacement f is ordered; waiting for f to register since 2025-10-28T11:57:00Z"
    ));
    pool.ones.pop();
    let old = pool.one("c").instance.id.clone();
    pool.ones.push(one("f", 3, Some(old), "new", 180));
    pool.says(&format!(
        "{sick}; replacement f has registered and is being checked; f has registered, and its first checks \
         are awaited"
    ));
    // With its replacement in service the pool is whole, and the old one on its way out.
    set(pool.one("f"), "ready");
    set(pool.one("c"), "sick-draining");
    pool.says("AllNodesReady: 5 of 5 nodes ready; 1 more is on the way out: c");
    // Nothing is done by ourselves.
    let mut stopped = town(2, "a:ready b:sick");
    stopped.stopped = Some("automatic action is paused by ada: maintenance".to_owned());
    assert!(
        stopped
            .plan()
            .outcome
            .message()
            .contains("nothing is done: automatic action is paused by ada")
    );
}

#[test]
fn a_smaller_pool_is_ready_while_the_rest_leaves() {
    town(2, "a:ready b:ready c:draining d:coming")
        .says("AllNodesReady: 2 of 2 nodes ready; 2 more are on the way out: c, d");
}

#[test]
fn an_update_says_how_far_it_is() {
    let mut roll = town(3, "a:ready b:ready c:ready");
    roll.spec.image = "new".to_owned();
    roll.one("c").instance.order.image = "new".to_owned();
    roll.says(
        "UpdateInProgress: 3 of 3 nodes ready; 2 of 3 to be replaced: its image is the provider's default, \
         not new",
    );
    roll.stopped = Some("paused by ada".to_owned());
    assert!(roll.plan().outcome.message().ends_with("; they stay for now: paused by ada"));
}

#[test]
fn before_the_first_listing_nothing_is_bought_and_nothing_is_wrong() {
    let mut early = town(2, "a:ready");
    early.clouds.get_mut("gcp").unwrap().compared = false;
    early.says(
        "ProvisioningInProgress: 1 of 2 nodes ready; waiting for the first listing of the machines at GCP",
    );
    assert!(early.plan().buy.is_empty());
}

#[test]
fn a_frozen_provider_is_named_with_the_numbers() {
    let mut pool = town(2, "a:ready");
    pool.clouds.get_mut("gcp").unwrap().frozen = Some(crate::inventory::Frozen {
        since: at(0),
        expected: 9,
        found: 1,
        message: "GCP shows 1 of 9 machines".to_owned(),
    });
    pool.says("ProviderFrozen: 1 of 2 nodes ready. GCP shows 1 of 9 machines");
    assert!(data(&pool)["guidance"].as_str().unwrap().starts_with("Compare"));
}
