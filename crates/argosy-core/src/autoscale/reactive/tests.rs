use crate::autoscale::tests::{check, refuse};
use serde_json::json;

#[test]
fn two_thresholds_and_a_step() {
    let usual = json!({"type": "reactive"});
    let steep = json!({"type": "reactive", "step": 4});
    let share = json!({"type": "reactive", "stepPercent": 25});
    let narrow = json!({"type": "reactive", "scaleUpAt": 60, "scaleDownAt": 50});
    for (policy, pool, expected) in [
        (&usual, "util 91", "5 -> 6: utilization 91 % is above 80 %"),
        (&usual, "util 80", "5: utilization 80 % is between 20 % and 80 %"),
        (&usual, "util 20", "5: utilization 20 % is between 20 % and 80 %"),
        (&usual, "util 19.94", "5 -> 4: utilization 19.9 % is below 20 %"),
        (&usual, "util 0", "5 -> 4: utilization 0 % is below 20 %"),
        (&usual, "util 100.7", "5 -> 6: utilization 100 % is above 80 %"),
        // Larger steps.
        (&steep, "util 91", "5 -> 9: utilization 91 % is above 80 %"),
        (&steep, "util 2", "5 -> 1: utilization 2 % is below 20 %"),
        (&share, "wanted 40 util 91", "40 -> 50: utilization 91 % is above 80 %"),
        (&share, "wanted 42 util 91", "42 -> 53: utilization 91 % is above 80 %"),
        (&share, "wanted 2 util 91", "2 -> 3: utilization 91 % is above 80 %"),
        // Never so far that the next look would want to go back.
        (&steep, "wanted 1 util 90", "1 -> 4: utilization 90 % is above 80 %"),
        (&steep, "wanted 5 util 19", "5 -> 2: utilization 19 % is below 20 %"),
        (
            &narrow,
            "wanted 2 util 45",
            "2: utilization 45 % is below 50 %, but 1 node would be too few",
        ),
        (&narrow, "wanted 1 util 65", "1 -> 2: utilization 65 % is above 60 %"),
        // Without nodes there is no utilization, so the last one stays.
        (&usual, "wanted 1 util 0", "1: utilization 0 % is below 20 %, but the last node stays"),
        // Nodes that boot will take their part of the work.
        (
            &usual,
            "wanted 6 ready 5 util 100",
            "6 -> 7: utilization 100 % on 5 of 6 nodes, 83.3 % on all, is above 80 %",
        ),
        (
            &usual,
            "wanted 4 ready 2 util 95",
            "4: utilization 95 % on 2 of 4 nodes, 47.5 % on all, is between 20 % and 80 %",
        ),
        (
            &usual,
            "wanted 8 ready 2 util 60",
            "8: utilization 60 % on 2 of 8 nodes, 15 % on all, is between 20 % and 80 %",
        ),
        (
            &usual,
            "wanted 8 ready 2 util 10",
            "8 -> 7: utilization 10 % on 2 of 8 nodes, 2.5 % on all, is below 20 %",
        ),
        // Nodes that go leave theirs.
        (
            &usual,
            "wanted 4 ready 6 util 70",
            "4 -> 5: utilization 70 % on 6, 105 % on the 4 nodes that stay, is above 80 %",
        ),
    ] {
        check(policy, pool, &format!("{expected} (reactive)"));
    }
}

#[test]
fn without_a_utilization_there_is_no_opinion() {
    let usual = json!({"type": "reactive"});
    for (pool, expected) in [
        ("pending 5", "5: no utilization is known"),
        ("wanted 3 ready 0 util 0", "3: no node is ready yet, so there is no utilization"),
        (
            "wanted 0 util 0",
            "0: an empty pool has no utilization; a queue could fill it, or a minimum of 1",
        ),
    ] {
        let expected = format!("{expected} (reactive); without an opinion the size stays");
        check(&usual, pool, &expected);
    }
}

#[test]
fn thresholds_must_be_apart() {
    let refuse = |policy, expected: &str| refuse(&policy, &[expected]);
    refuse(
        json!({"type": "reactive", "scaleUpAt": 40, "scaleDownAt": 40}),
        "spec.autoscaling.scaleUpAt must be above scaleDownAt, which is 40",
    );
    refuse(
        json!({"type": "reactive", "scaleDownAt": 85}),
        "spec.autoscaling.scaleDownAt must be below scaleUpAt, which is 80",
    );
    refuse(
        json!({"type": "reactive", "scaleUpAt": 0.8}),
        "spec.autoscaling.scaleUpAt must be between 1 and 100",
    );
    refuse(
        json!({"type": "reactive", "step": 0}),
        "spec.autoscaling.step must be a whole number from 1 to 10000",
    );
}
