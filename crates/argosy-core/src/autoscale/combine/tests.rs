use crate::autoscale::tests::{advise, check, refuse};
use serde_json::{Value, json};

fn composite(mode: &str, weights: Option<Value>) -> Value {
    let mut policy = json!({"type": "composite", "mode": mode, "policies": [
        {"type": "reactive"}, {"type": "queue", "metric": "queueDepth"},
    ]});
    if let Some(weights) = weights {
        policy["weights"] = weights;
    }
    policy
}

#[test]
fn several_become_one() {
    let above = "utilization 91 % is above 80 %";
    let jobs = "90 jobs in the queue at 10 a node need 9 nodes";
    for (policy, pool, expected) in [
        (
            composite("max", None),
            "util 91 queue 90",
            format!("5 -> 9: {jobs} (queue, the largest of reactive 6, queue 9)"),
        ),
        (
            composite("min", None),
            "util 91 queue 90",
            format!("5 -> 6: {above} (reactive, the smallest of reactive 6, queue 9)"),
        ),
        // Means are rounded up: half a node is no node.
        (
            composite("avg", None),
            "util 91 queue 90",
            "5 -> 8: 8 is the mean of reactive 6, queue 9".to_owned(),
        ),
        (
            composite("weighted", Some(json!([2, 1]))),
            "util 91 queue 90",
            "5 -> 7: 7 is the weighted mean of reactive 6, queue 9".to_owned(),
        ),
        (
            composite("weighted", Some(json!([0.1, 0.2]))),
            "util 91 queue 90",
            "5 -> 8: 8 is the weighted mean of reactive 6, queue 9".to_owned(),
        ),
        // Who has no opinion is left out: silence is not zero.
        (
            composite("min", None),
            "util 91",
            format!(
                "5 -> 6: {above} (reactive, the smallest of reactive 6); queue is left out: no queue depth is known"
            ),
        ),
        (
            composite("avg", None),
            "queue 90",
            "5 -> 9: 9 is the mean of queue 9; reactive is left out: no utilization is known"
                .to_owned(),
        ),
    ] {
        check(&policy, pool, &format!("{expected} (composite)"));
    }
    check(
        &composite("max", None),
        "",
        "5: reactive is left out: no utilization is known; queue is left out: no queue depth is known \
         (composite); without an opinion the size stays",
    );
}

/// A reactive part, and a schedule with these bounds now.
fn bounded(mode: &str, bounds: Value) -> Value {
    let mut entry = json!({"start": 8, "end": 18});
    entry.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
    json!({"type": "composite", "mode": mode, "policies": [
        {"type": "reactive"}, {"type": "scheduled", "entries": [entry]},
    ]})
}

#[test]
fn r2_m9_the_bounds_of_a_schedule_clamp_the_other_parts() {
    for mode in ["max", "min", "avg"] {
        let floor = bounded(mode, json!({"minNodes": 2}));
        let ceiling = bounded(mode, json!({"maxNodes": 10}));
        for (policy, pool, expected) in [
            (&floor, "wanted 5 util 95", 6),
            (&floor, "wanted 12 util 5", 11),
            (&floor, "wanted 2 util 5", 2),
            (&floor, "wanted 1", 2),
            (&ceiling, "wanted 2 util 95", 3),
            (&ceiling, "wanted 10 util 95", 10),
            (&ceiling, "wanted 12 util 95", 10),
            (&ceiling, "wanted 5 util 5", 4),
            (&ceiling, "wanted 12", 10),
            (&ceiling, "wanted 4", 4),
        ] {
            let advice = advise(policy, pool, Vec::new());
            assert_eq!(advice.target, expected, "{policy} with {pool}: {advice}");
        }
    }
    // Inside of another composite, and beside a part that has an opinion of its own, too.
    let inner = bounded("max", json!({"maxNodes": 6}));
    let outer = json!({"type": "composite", "mode": "max",
                       "policies": [inner, {"type": "queue", "metric": "queueDepth"}]});
    assert_eq!(advise(&outer, "util 50 queue 200", Vec::new()).target, 6);
    check(
        &bounded("max", json!({"maxNodes": 5})),
        "util 95",
        "5: entry 0 of the schedule holds at most 5 nodes until Wed 18:00 (UTC) (scheduled); 6 is wanted: \
         utilization 95 % is above 80 % (reactive, the largest of reactive 6) (composite)",
    );
}

#[test]
fn every_part_is_shown_the_outer_ones_first() {
    let policy = json!({"type": "composite", "policies": [
        {"type": "reactive"},
        {"type": "composite", "mode": "min", "policies": [
            {"type": "queue"},
            {"type": "scheduled", "entries": [{"days": ["sun"], "nodes": 1}],
             "fallback": {"type": "queue", "metric": "queueDepth"}},
        ]},
    ]});
    let advice = advise(&policy, "util 50 queue 30", Vec::new());
    let parts: Vec<String> = advice
        .parts
        .iter()
        .map(|part| format!("{} {} {:?}", part.at, part.policy, part.target))
        .collect();
    assert_eq!(
        parts,
        [
            "policies[0] reactive Some(5)",
            "policies[1] composite Some(3)",
            "policies[1].policies[0] queue None",
            "policies[1].policies[1] scheduled Some(3)",
            "policies[1].policies[1].fallback queue Some(3)",
        ]
    );
    assert_eq!(advice.parts[2].reason, "no number of waiting jobs is known");
    // An edge deep inside is an edge of the whole.
    assert_eq!(advice.next, Some("2026-06-14T00:00:00Z".parse().unwrap()));
}

#[test]
fn weights_belong_to_one_mode_and_to_each_policy() {
    let weights = "spec.autoscaling.weights";
    for (policy, expected) in [
        (composite("weighted", None), format!("{weights} is missing: the mode weighted needs one weight a policy")),
        (composite("max", Some(json!([1, 2]))), format!("{weights} is for the mode weighted alone")),
        (composite("weighted", Some(json!([1]))), format!("{weights} must be one a policy, but there are 1 weight for 2 policies")),
        (composite("weighted", Some(json!([1, 0]))), format!("{weights}[1] must be a number above 0, at most 1000")),
        (composite("mean", None), "spec.autoscaling.mode must be one of max, min, avg, weighted, not `mean`".to_owned()),
        (json!({"type": "composite"}), "spec.autoscaling.policies is missing: give the policies to combine, like [{type: reactive}, {type: queue}]".to_owned()),
        (json!({"type": "composite", "policies": []}), "spec.autoscaling.policies must have 1 to 16 items, not 0".to_owned()),
    ] {
        refuse(&policy, &[&expected]);
    }
}
