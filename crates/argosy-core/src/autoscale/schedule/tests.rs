use crate::autoscale::tests::{advise, check, refuse};
use serde_json::{Value, json};

fn scheduled(entries: Value, fallback: Option<Value>) -> Value {
    let mut policy = json!({"type": "scheduled", "entries": entries});
    if let Some(fallback) = fallback {
        policy["fallback"] = fallback;
    }
    policy
}

#[test]
fn the_first_entry_that_is_open_holds() {
    let reactive = || Some(json!({"type": "reactive"}));
    let day = json!({"start": 8, "end": 18, "minNodes": 4, "maxNodes": 8});
    let night = json!({"start": 22, "end": 6, "nodes": 2});
    let tokyo = json!({"start": 20, "end": 22, "timezone": "Asia/Tokyo", "nodes": 7});
    let cron = json!({"cron": "0 8 * * wed", "duration": "6h", "minNodes": 6});
    let weekend = json!({"days": ["sat", "sun"], "maxNodes": 1});
    let holds = "entry 0 of the schedule holds 4 to 8 nodes until Wed 18:00 (UTC)";
    for (policy, pool, expected) in [
        (scheduled(json!([day]), None), "wanted 2", format!("2 -> 4: {holds}")),
        (scheduled(json!([day]), None), "wanted 6", format!("6: {holds}")),
        (scheduled(json!([day]), None), "wanted 9", format!("9 -> 8: {holds}")),
        (
            scheduled(json!([day]), reactive()),
            "wanted 6 util 90",
            format!("6 -> 7: {holds}; utilization 90 % is above 80 %"),
        ),
        (
            scheduled(json!([day]), reactive()),
            "wanted 8 util 90",
            format!("8: {holds}; utilization 90 % is above 80 %"),
        ),
        // What the entry says holds although its fallback sees nothing.
        (
            scheduled(json!([day]), reactive()),
            "wanted 2",
            format!("2 -> 4: {holds}; no utilization is known"),
        ),
        // It is noon in UTC and 21:00 in Tokyo.
        (
            scheduled(json!([night, tokyo, day]), None),
            "wanted 2",
            "2 -> 7: entry 1 of the schedule holds 7 nodes until Wed 22:00 (Asia/Tokyo)".to_owned(),
        ),
        (
            scheduled(json!([cron]), None),
            "wanted 2",
            "2 -> 6: entry 0 of the schedule holds at least 6 nodes until Wed 14:00 (UTC)"
                .to_owned(),
        ),
        (
            scheduled(json!([night, weekend]), reactive()),
            "wanted 6 util 90",
            "6 -> 7: no entry of the schedule holds now; utilization 90 % is above 80 %".to_owned(),
        ),
    ] {
        check(&policy, pool, &format!("{expected} (scheduled)"));
    }
    check(
        &scheduled(json!([night]), None),
        "wanted 6 util 90",
        "6 -> 0: no entry of the schedule holds now, so the smallest size does (minNodes) (scheduled)",
    );
    // The pool's own bounds hold besides.
    check(
        &scheduled(json!([{"days": ["wed"], "nodes": 50}]), None),
        "wanted 6 max 10",
        "6 -> 10: entry 0 of the schedule holds 50 nodes until Thu 00:00 (UTC) (scheduled); 50 is \
         wanted, but the pool has 0 to 10",
    );
}

#[test]
fn hours_that_go_over_midnight_match() {
    let night = json!([{"start": 11, "end": 3, "nodes": 9}]);
    check(
        &scheduled(night, None),
        "",
        "5 -> 9: entry 0 of the schedule holds 9 nodes until Thu 03:00 (UTC) (scheduled)",
    );
}

#[test]
fn the_next_edge_of_any_entry_may_change_the_answer() {
    for (entries, expected) in [
        (json!([{"start": 8, "end": 18, "nodes": 4}]), Some("2026-06-10T18:00:00Z")),
        (
            json!([{"start": 8, "end": 18, "nodes": 4}, {"start": 14, "end": 15, "nodes": 9}]),
            Some("2026-06-10T14:00:00Z"),
        ),
        (json!([{"days": ["fri"], "nodes": 4}]), Some("2026-06-12T00:00:00Z")),
        (json!([{"start": 0, "end": 24, "nodes": 4}]), None),
    ] {
        let next = advise(&scheduled(entries, None), "", Vec::new()).next;
        assert_eq!(next, expected.map(|next| next.parse().unwrap()));
    }
}

#[test]
fn e4_hours_are_those_of_the_entry_s_zone_on_the_day_the_clocks_change() {
    let policy = scheduled(
        json!([{"start": 22, "end": 6, "timezone": "America/New_York", "nodes": 9}]),
        None,
    );
    let autoscaling = crate::autoscale::tests::parse(&policy);
    let metrics = crate::autoscale::Metrics::default();
    let view = crate::autoscale::PoolView {
        name: "gpu",
        wanted: 2,
        ready: 2,
        min: 2,
        max: 10,
        metrics: &metrics,
        last_scaled: None,
    };
    for (now, expected) in [
        // 8 March, the night has seven hours; 1 November, it has nine.
        ("2026-03-08T02:59:59Z", 2),
        ("2026-03-08T03:00:00Z", 9),
        ("2026-03-08T09:59:59Z", 9),
        ("2026-03-08T10:00:00Z", 2),
        ("2026-11-01T01:59:59Z", 2),
        ("2026-11-01T02:00:00Z", 9),
        ("2026-11-01T10:59:59Z", 9),
        ("2026-11-01T11:00:00Z", 2),
    ] {
        let advice = crate::autoscale::recommend(&autoscaling, &view, now.parse().unwrap());
        assert_eq!(advice.target, expected, "{now}: {advice}");
    }
}

#[test]
fn r2_m15_outside_of_all_entries_the_smallest_size_holds() {
    let night = || json!([{"start": 22, "end": 6, "nodes": 6}]);
    for (policy, pool, expected) in [
        (scheduled(night(), None), "wanted 6 min 1", 1),
        (scheduled(night(), Some(json!({"type": "reactive"}))), "wanted 6 min 1", 6),
        (
            json!({"type": "composite", "policies": [
                scheduled(night(), None),
                scheduled(json!([{"days": ["sun"], "nodes": 3}]), None),
            ]}),
            "wanted 6 min 2",
            2,
        ),
        // Whoever cannot know is no reason to shrink.
        (
            json!({"type": "composite", "policies": [scheduled(night(), None), {"type": "reactive"}]}),
            "wanted 6 min 1",
            6,
        ),
        (
            json!({"type": "composite", "policies": [scheduled(night(), None), {"type": "reactive"}]}),
            "wanted 6 min 1 util 90",
            7,
        ),
        // Nor are the bounds of an entry that holds.
        (
            json!({"type": "composite", "policies": [
                scheduled(night(), None),
                scheduled(json!([{"start": 8, "end": 18, "maxNodes": 5}]), None),
            ]}),
            "wanted 6 min 1",
            5,
        ),
    ] {
        let advice = advise(&policy, pool, Vec::new());
        assert_eq!(advice.target, expected, "{policy} with {pool}: {advice}");
    }
}

#[test]
fn an_entry_that_is_wrong_is_never_dropped() {
    refuse(
        &json!({"type": "scheduled"}),
        &[
            "spec.autoscaling.entries is missing: give at least one, like {days: [mon], start: 8, end: \
           18, minNodes: 4}",
        ],
    );
    refuse(
        &scheduled(
            json!([
                {"days": ["mno"], "nodes": 1},
                {"days": ["mon"]},
                {"days": ["mon"], "nodes": 1, "minNodes": 1},
                {"days": ["mon"], "minNodes": 5, "maxNodes": 4},
                {"days": ["mon"], "nodes": 1, "timezone": "Europe/Berln"},
                {"nodes": 1},
            ]),
            Some(json!({"type": "que"})),
        ),
        &[
            "spec.autoscaling.entries[0].days[0] must be a day from mon to sun, or monday, …, not \
             `mno`; did you mean mon?",
            "spec.autoscaling.entries[1].nodes is missing: say what holds then, with nodes, or minNodes \
             and maxNodes",
            "spec.autoscaling.entries[2].nodes is exact, so minNodes and maxNodes have no meaning; give \
             one or the others",
            "spec.autoscaling.entries[3].minNodes must not be above maxNodes, which is 4",
            "spec.autoscaling.entries[4].timezone is wrong: `Europe/Berln` is not a time zone: write an \
             IANA name, like Europe/Berlin or UTC; did you mean Europe/Berlin?",
            "spec.autoscaling.entries[5].cron is missing: say when, with `cron` and `duration`, or with \
             `days`, `start` and `end`",
            "spec.autoscaling.fallback.type must be one of reactive, queue, scheduled, predictive, \
             composite, not `que`",
        ],
    );
}
