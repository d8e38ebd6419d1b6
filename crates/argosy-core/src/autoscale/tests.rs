use super::{Advice, Autoscaling, HeldBy, History, Metrics, PoolView, Sample, Scaled, recommend};
use crate::field::FieldError;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A Wednesday noon.
pub(in crate::autoscale) const NOW: &str = "2026-06-10T12:00:00Z";

pub(in crate::autoscale) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(in crate::autoscale) fn parse(policy: &Value) -> Autoscaling {
    Autoscaling::parse(policy, "spec.autoscaling").unwrap()
}

/// A pool in words and numbers: `wanted 4 ready 2 util 95 pending 20`. What is not said: as many ready
/// as wanted, 0 to 100 nodes, metrics of now, never scaled. `cooled 40` was scaled 40 s ago.
pub(in crate::autoscale) fn advise(policy: &Value, pool: &str, history: Vec<Sample>) -> Advice {
    let words: Vec<&str> = pool.split_whitespace().collect();
    for pair in words.chunks(2) {
        let known = ["wanted", "ready", "min", "max", "util", "busy", "pending", "queue", "age"];
        assert!(known.contains(&pair[0]) || pair[0] == "cooled", "{pool}");
    }
    let number = |name: &str| {
        let place = words.iter().position(|word| *word == name)?;
        Some(words[place + 1].parse::<f64>().unwrap())
    };
    let count = |name: &str| number(name).map(|number| number as u32);
    let ago = |name| number(name).map(|age| now() - SignedDuration::from_secs_f64(age));
    let metrics = Metrics {
        at: ago("age").or(Some(now())),
        utilization: number("util"),
        busy_nodes: count("busy"),
        pending_jobs: number("pending").map(|jobs| jobs as u64),
        queue_depth: number("queue").map(|jobs| jobs as u64),
        history: History::from(history),
    };
    let wanted = count("wanted").unwrap_or(5);
    let view = PoolView {
        name: "gpu",
        wanted,
        ready: count("ready").unwrap_or(wanted),
        min: count("min").unwrap_or(0),
        max: count("max").unwrap_or(100),
        metrics: &metrics,
        last_scaled: ago("cooled").map(|at| Scaled { at, up: true }),
    };
    let advice = recommend(&parse(policy), &view, now());
    assert_eq!(advice, recommend(&parse(policy), &view, now()));
    advice
}

/// One row: a policy, a pool, and the line that `explain` shows.
pub(in crate::autoscale) fn check(policy: &Value, pool: &str, expected: &str) {
    assert_eq!(advise(policy, pool, Vec::new()).to_string(), expected, "{policy} with {pool}");
}

pub(in crate::autoscale) fn messages(errors: &[FieldError]) -> Vec<&str> {
    errors.iter().map(|error| error.message.as_str()).collect()
}

/// What is wrong with a policy.
pub(in crate::autoscale) fn refuse(policy: &Value, expected: &[&str]) {
    let errors = Autoscaling::parse(policy, "spec.autoscaling").unwrap_err();
    assert_eq!(messages(&errors), expected, "{policy}");
    for error in errors {
        assert!(error.message.starts_with(&error.field), "{error:?}");
    }
}

#[test]
fn every_limit_holds_and_says_so() {
    let jobs = |more: Value| {
        let mut policy = json!({"type": "queue", "metric": "queueDepth", "cooldown": "5m"});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy
    };
    let plain = jobs(json!({}));
    let want_9 = "90 jobs in the queue at 10 a node need 9 nodes (queue)";
    for (policy, pool, expected) in [
        (&plain, "queue 90", format!("5 -> 9: {want_9}")),
        (&plain, "queue 90 cooled 300", format!("5 -> 9: {want_9}")),
        (
            &plain,
            "queue 90 cooled 299",
            format!("5: {want_9}; 9 is wanted, but not before 2026-06-10T12:00:01Z (cooldown)"),
        ),
        (
            &plain,
            "queue 90 max 7",
            format!("5 -> 7: {want_9}; 9 is wanted, but the pool has 0 to 7"),
        ),
        // At its bound, a cooldown that ends would change nothing.
        (
            &plain,
            "queue 90 max 5 cooled 1",
            format!("5: {want_9}; 9 is wanted, but the pool has 0 to 5"),
        ),
        // Bounds win over a cooldown, and over the step.
        (
            &plain,
            "queue 90 min 6 cooled 1",
            format!("5 -> 6: {want_9}; 9 is wanted, but the pool has 6 to 100"),
        ),
        (
            &jobs(json!({"maxStep": 2})),
            "queue 90",
            format!("5 -> 7: {want_9}; 9 is wanted, but at most 2 nodes at once (maxStep)"),
        ),
        (
            &jobs(json!({"maxStep": 1})),
            "wanted 12 queue 90",
            format!("12 -> 11: {want_9}; 9 is wanted, but at most 1 node at once (maxStep)"),
        ),
        (
            &jobs(json!({"maxStep": 1})),
            "wanted 2 queue 90 min 5",
            format!("2 -> 5: {want_9}; 9 is wanted, but the pool has 5 to 100"),
        ),
        // Up and down have their own cooldowns; `cooldown` is for what is not said.
        (
            &jobs(json!({"scaleUpCooldown": "10s"})),
            "queue 90 cooled 11",
            format!("5 -> 9: {want_9}"),
        ),
        (
            &jobs(json!({"scaleUpCooldown": "10s"})),
            "wanted 12 queue 90 cooled 11",
            format!("12: {want_9}; 9 is wanted, but not before 2026-06-10T12:04:49Z (cooldown)"),
        ),
        (&jobs(json!({"cooldown": "0s"})), "queue 90 cooled 0", format!("5 -> 9: {want_9}")),
        // A last change in the far future is a clock that was set back.
        (&plain, "queue 90 cooled -9000", format!("5 -> 9: {want_9}")),
        // Crossed bounds buy nothing.
        (
            &plain,
            "queue 90 min 8 max 5",
            format!("5: {want_9}; 9 is wanted, but the pool has 5 to 5"),
        ),
        (
            &plain,
            "util 50",
            "5: no queue depth is known (queue); without an opinion the size stays".to_owned(),
        ),
        (
            &plain,
            "util 50 max 3",
            "5 -> 3: no queue depth is known (queue); 5 is wanted, but the pool has 0 to 3"
                .to_owned(),
        ),
    ] {
        check(policy, pool, &expected);
    }
}

#[test]
fn a_cooldown_says_when_time_alone_changes_the_answer() {
    let policy = json!({"type": "queue", "metric": "queueDepth", "cooldown": "5m"});
    let until = now() + SignedDuration::from_secs(240);
    let advice = advise(&policy, "queue 90 cooled 60", Vec::new());
    assert_eq!((advice.held, advice.next), (Some(HeldBy::Cooldown { until }), Some(until)));
    assert_eq!(advise(&policy, "queue 90", Vec::new()).next, None);
    let advice: Advice = serde_json::from_value(json!(advice)).unwrap();
    assert_eq!(advice.held, Some(HeldBy::Cooldown { until }));
}

#[test]
fn a_full_policy_is_written_as_it_was_read() {
    let full = json!({
        "type": "composite", "mode": "weighted", "weights": [2, 0.5, 1],
        "policies": [
            {"type": "reactive", "scaleUpAt": 82.5, "scaleDownAt": 30, "step": 2, "stepPercent": 10},
            {"type": "scheduled", "entries": [
                {"cron": "0 8 * * mon-fri", "duration": "10h", "timezone": "Europe/Berlin", "nodes": 8},
                {"days": ["sat"], "start": "22:00", "end": "06:00", "timezone": "UTC",
                 "minNodes": 0, "maxNodes": 2},
            ], "fallback": {"type": "queue", "jobsPerNode": 4, "metric": "pendingJobs"}},
            {"type": "predictive", "horizon": "15m", "targetUtilization": 65, "season": "off",
             "lookback": "2h"},
        ],
        "scaleUpCooldown": "30s", "scaleDownCooldown": "10m", "maxStep": 4,
        "metrics": {
            "utilization": "heartbeats",
            "pendingJobs": {"prometheus": {"url": "http://prom:9090", "query": "sum(q)",
                                           "credentials": "prom"}},
            "queueDepth": {"http": {"url": "https://q.example/depth", "pointer": "/depth"}},
            "maxAge": "2m",
        },
    });
    let autoscaling = parse(&full);
    assert_eq!(json!(autoscaling), full);
    assert_eq!(serde_json::from_value::<Autoscaling>(full).unwrap(), autoscaling);
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    for (short, full) in [
        (
            json!({"type": "reactive"}),
            json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "step": 1}),
        ),
        (
            json!({"type": "queue"}),
            json!({"type": "queue", "jobsPerNode": 10, "metric": "pendingJobs"}),
        ),
        (
            json!({"type": "predictive"}),
            json!({"type": "predictive", "horizon": "10m", "targetUtilization": 70, "season": "daily",
                   "lookback": "1h"}),
        ),
        (
            json!({"type": "composite", "policies": [{"type": "queue"}]}),
            json!({"type": "composite", "mode": "max", "policies": [
                {"type": "queue", "jobsPerNode": 10, "metric": "pendingJobs"}]}),
        ),
    ] {
        assert_eq!(json!(super::Policy::parse(&short, "p").unwrap()), full);
        let mut around = full;
        around["scaleUpCooldown"] = json!("1m");
        around["scaleDownCooldown"] = json!("5m");
        let heartbeats = json!("heartbeats");
        around["metrics"] = json!({"utilization": heartbeats, "pendingJobs": heartbeats,
                                   "queueDepth": heartbeats, "maxAge": "5m"});
        assert_eq!(json!(parse(&short)), around);
    }
}

#[test]
fn a_wrong_policy_has_one_sentence_a_field() {
    refuse(&json!(5), &["spec.autoscaling must be an object, not a number"]);
    refuse(
        &json!({"scaleUpAt": 5}),
        &[
            "spec.autoscaling.type is missing: one of reactive, queue, scheduled, predictive, composite",
        ],
    );
    // Of a policy whose kind is not clear, only that is said.
    refuse(
        &json!({"type": "reactiv", "jobsPerNode": 5, "maxStep": 0}),
        &[
            "spec.autoscaling.type must be one of reactive, queue, scheduled, predictive, composite, \
             not `reactiv`; did you mean reactive?",
            "spec.autoscaling.maxStep must be a whole number from 1 to 1000000",
        ],
    );
    refuse(
        &json!({"type": "reactive", "scale_up_at": 90, "cooldown": "25h", "metrics": "heartbeat"}),
        &[
            "spec.autoscaling.cooldown must be between 0s and 1d",
            "spec.autoscaling.metrics must be `heartbeats`, or {prometheus: {url, query}}, or {http: \
             {url, pointer}}, not `heartbeat`",
            "spec.autoscaling.scale_up_at is not one of type, scaleUpAt, scaleDownAt, step, \
             stepPercent, cooldown, scaleUpCooldown, scaleDownCooldown, maxStep, metrics; did you mean \
             scaleUpAt?",
        ],
    );
    // What surrounds a policy is not part of one inside of it.
    refuse(
        &json!({"type": "composite", "policies": [{"type": "queue", "cooldown": "1m"}]}),
        &["spec.autoscaling.policies[0].cooldown is not one of type, jobsPerNode, metric"],
    );
}

#[test]
fn policies_have_a_depth_and_a_number() {
    let nested = |depth: usize| {
        (1..depth).fold(
            json!({"type": "queue"}),
            |inner, _| json!({"type": "composite", "policies": [inner]}),
        )
    };
    assert!(Autoscaling::parse(&nested(4), "a").is_ok());
    let errors = Autoscaling::parse(&nested(5), "a").unwrap_err();
    let field = "a.policies[0].policies[0].policies[0].policies[0]";
    let message = format!("{field} is one policy too many: they may be nested 4 deep");
    assert_eq!(messages(&errors), [message]);
    assert!(super::Policy::parse(&nested(4), "a").is_ok());
    assert!(super::Policy::parse(&nested(5), "a").is_err());

    let wide = |count: usize| {
        let eight = json!({"type": "composite", "policies": vec![json!({"type": "queue"}); 8]});
        let rest = vec![json!({"type": "queue"}); count - 10];
        let policies = [vec![eight], rest].concat();
        json!({"type": "composite", "policies": policies})
    };
    assert!(Autoscaling::parse(&wide(16), "a").is_ok());
    let errors = Autoscaling::parse(&wide(17), "a").unwrap_err();
    assert_eq!(
        messages(&errors),
        ["a.policies[7] is one policy too many: a pool may have 16 in all"]
    );
}

#[test]
fn g16_whatever_the_metrics_say_nothing_is_moved_by_what_cannot_be_true() {
    let policies = [
        json!({"type": "reactive"}),
        json!({"type": "queue"}),
        json!({"type": "queue", "metric": "queueDepth"}),
        json!({"type": "predictive", "fallback": {"type": "reactive"}}),
        json!({"type": "composite", "policies": [{"type": "reactive"}, {"type": "queue"}]}),
    ];
    let bad = ["util NaN", "util inf", "util -inf", "util -5", "util 5000", "util 101.5"];
    for policy in &policies {
        for pool in bad {
            let advice = advise(policy, pool, Vec::new());
            assert_eq!((advice.target, advice.held), (5, Some(HeldBy::NoMetrics)), "{pool}");
        }
    }
    check(
        &policies[0],
        "util 5000",
        "5: the utilization 5000 is not possible (0 to 100 %), and is not used (reactive); without an \
         opinion the size stays",
    );
    let far = format!("queue {}", u64::MAX);
    check(
        &policies[2],
        &far,
        "5: the queue depth 18446744073709552000 is not possible (0 to 10000000), and is not used \
         (queue); without an opinion the size stays",
    );
}

#[test]
fn old_and_undated_metrics_move_nothing() {
    let policy = json!({"type": "reactive", "metrics": {"maxAge": "2m"}});
    check(&policy, "util 95 age 120", "5 -> 6: utilization 95 % is above 80 % (reactive)");
    check(
        &policy,
        "util 95 age 121",
        "5: the newest metrics are 2m1s old, and after 2m they are not used (reactive); without an \
         opinion the size stays",
    );
    check(&policy, "util 95 age -60", "5 -> 6: utilization 95 % is above 80 % (reactive)");
    check(
        &policy,
        "util 95 age -61",
        "5: the metrics are of 2026-06-10T12:01:01Z, which is in the future (reactive); without an \
         opinion the size stays",
    );
    let metrics = Metrics { utilization: Some(95.0), ..Metrics::default() };
    let view = PoolView {
        name: "gpu",
        wanted: 5,
        ready: 5,
        min: 0,
        max: 9,
        metrics: &metrics,
        last_scaled: None,
    };
    let advice = recommend(&parse(&policy), &view, now());
    assert_eq!(advice.reason, "the metrics do not say when they were measured");
}

/// Looks until nothing changes any more, with nodes that never become ready.
fn settle(policy: &Value, ready: u32, utilization: f64, pending: u64) -> u32 {
    let (mut wanted, mut looks) = (ready, 0);
    loop {
        let pool = format!("wanted {wanted} ready {ready} util {utilization} pending {pending}");
        let target = advise(policy, &pool, steady(f64::from(ready) * utilization / 100.0)).target;
        looks += 1;
        if target == wanted || looks == 50 {
            return target;
        }
        wanted = target;
    }
}

/// Two hours of the same work.
fn steady(work: f64) -> Vec<Sample> {
    (0..=24)
        .map(|i| Sample {
            at: now() - SignedDuration::from_mins(5 * i),
            nodes: 100,
            utilization: Some(work),
            pending_jobs: None,
            queue_depth: None,
        })
        .collect()
}

#[test]
fn nodes_that_boot_are_not_ordered_twice() {
    for (policy, ready, utilization, pending, expected) in [
        (json!({"type": "reactive"}), 2, 95.0, 0, 3),
        (json!({"type": "reactive"}), 10, 100.0, 0, 13),
        (json!({"type": "reactive", "step": 8}), 2, 95.0, 0, 9),
        (json!({"type": "queue"}), 2, 95.0, 25, 5),
        (json!({"type": "predictive"}), 2, 95.0, 0, 3),
        (
            json!({"type": "composite", "policies": [{"type": "reactive"}, {"type": "queue"}]}),
            2,
            95.0,
            25,
            5,
        ),
    ] {
        let settled = settle(&policy, ready, utilization, pending);
        assert_eq!(settled, expected, "{policy}");
    }
    // The pool of the fault: 4 wanted, 2 of them ready and full.
    check(
        &json!({"type": "reactive"}),
        "wanted 4 ready 2 util 95",
        "4: utilization 95 % on 2 of 4 nodes, 47.5 % on all, is between 20 % and 80 % (reactive)",
    );
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..101.0_f64, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)]
}

fn any_size() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..20, 0_u32..20, any::<u32>()]
}

fn any_jobs() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..500, any::<u64>()]
}

prop_compose! {
    fn any_sample()(
        ago in -600_i64..1_500_000, nodes in any_size(), utilization in prop::option::of(any_float()),
        pending_jobs in prop::option::of(any_jobs()), queue_depth in prop::option::of(any_jobs()),
    ) -> Sample {
        let at = now() - SignedDuration::from_secs(ago);
        Sample { at, nodes, utilization, pending_jobs, queue_depth }
    }
}

prop_compose! {
    fn any_metrics()(
        age in prop::option::of(-100_i64..400), utilization in prop::option::of(any_float()),
        busy_nodes in prop::option::of(any_size()), pending_jobs in prop::option::of(any_jobs()),
        queue_depth in prop::option::of(any_jobs()),
        history in prop::collection::vec(any_sample(), 0..80),
    ) -> Metrics {
        let at = age.map(|age| now() - SignedDuration::from_secs(age));
        let history = History::from(history);
        Metrics { at, utilization, busy_nodes, pending_jobs, queue_depth, history }
    }
}

fn any_policy() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (2_u32..=100, 0_u32..=99, 1_u32..50, prop::option::of(1_u32..=1000)).prop_map(
            |(up, down, step, percent)| {
                let down = down.min(up - 1);
                let mut policy =
                    json!({"type": "reactive", "scaleUpAt": up, "scaleDownAt": down, "step": step});
                if let Some(percent) = percent {
                    policy["stepPercent"] = json!(percent);
                }
                policy
            }
        ),
        (1_u32..=100, any::<bool>()).prop_map(|(jobs, depth)| {
            let metric = if depth { "queueDepth" } else { "pendingJobs" };
            json!({"type": "queue", "jobsPerNode": jobs, "metric": metric})
        }),
        (1_u32..=360, 1_u32..=100, 10_u32..=1440, any::<bool>()).prop_map(
            |(horizon, target, lookback, daily)| {
                json!({"type": "predictive", "horizon": format!("{horizon}m"),
                       "targetUtilization": target, "lookback": format!("{lookback}m"),
                       "season": if daily { "daily" } else { "off" }})
            }
        ),
        (0_u32..24, 0_u32..24, 0_u32..30, 0_u32..30, any::<bool>()).prop_map(
            |(start, end, low, more, exact)| {
                let end = if start == end { (end + 1) % 24 } else { end };
                let mut entry = json!({"start": start, "end": end, "timezone": "Europe/Berlin"});
                if exact {
                    entry["nodes"] = json!(low);
                } else {
                    entry["minNodes"] = json!(low);
                    entry["maxNodes"] = json!(low + more);
                }
                json!({"type": "scheduled", "entries": [entry]})
            }
        ),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 1..4), 0_usize..4).prop_map(
                |(policies, mode)| {
                    let mode = ["max", "min", "avg", "weighted"][mode];
                    let weights: Vec<usize> = (1..=policies.len()).collect();
                    let mut policy =
                        json!({"type": "composite", "mode": mode, "policies": policies});
                    if mode == "weighted" {
                        policy["weights"] = json!(weights);
                    }
                    policy
                }
            ),
            inner.prop_map(|fallback| json!({"type": "predictive", "fallback": fallback})),
        ]
    })
}

prop_compose! {
    fn any_autoscaling()(
        mut policy in any_policy(), up in 0_u32..400, down in 0_u32..400,
        max_step in prop::option::of(1_u32..30),
    ) -> Autoscaling {
        policy["scaleUpCooldown"] = json!(format!("{up}s"));
        policy["scaleDownCooldown"] = json!(format!("{down}s"));
        if let Some(max_step) = max_step {
            policy["maxStep"] = json!(max_step);
        }
        parse(&policy)
    }
}

proptest! {
    #[test]
    fn g16_limits_hold_whatever_the_input(
        autoscaling in any_autoscaling(), metrics in any_metrics(),
        wanted in any_size(), ready in any_size(), one in any_size(), other in any_size(),
        scaled in prop::option::of(-100_i64..500),
    ) {
        let (min, max) = (one.min(other), one.max(other));
        let last_scaled =
            scaled.map(|ago| Scaled { at: now() - SignedDuration::from_secs(ago), up: true });
        let view = PoolView { name: "gpu", wanted, ready, min, max, metrics: &metrics, last_scaled };
        let advice = recommend(&autoscaling, &view, now());
        let target = advice.target;
        prop_assert!(min <= target && target <= max, "{advice}");
        prop_assert_eq!(&advice, &recommend(&autoscaling, &view, now()));
        prop_assert!(advice.next.is_none_or(|next| now() < next), "{advice:?}");
        prop_assert!(advice.held.is_some() || target == advice.wanted, "{advice}");
        // What a bound forces is forced whatever else holds: exactly so far, and no further.
        let forced = wanted.clamp(min, max);
        if let Some(max_step) = autoscaling.max_step {
            let near = target.abs_diff(wanted) <= max_step;
            prop_assert!(near || target == forced, "{advice}");
        }
        if let Some(ago) = scaled {
            let cooldown = match wanted < target {
                true => autoscaling.scale_up_cooldown,
                false => autoscaling.scale_down_cooldown,
            };
            let cooling = SignedDuration::from_secs(ago.abs()) < cooldown;
            prop_assert!(!cooling || target == forced, "{advice}");
        }
    }

    #[test]
    fn with_bounds_that_are_crossed_the_upper_one_holds(
        autoscaling in any_autoscaling(), metrics in any_metrics(), wanted in any_size(),
        max in 0_u32..1000, more in 1_u32..1000,
    ) {
        let min = max + more;
        let view =
            PoolView { name: "gpu", wanted, ready: wanted, min, max, metrics: &metrics, last_scaled: None };
        prop_assert_eq!(recommend(&autoscaling, &view, now()).target, max);
    }

    #[test]
    fn a_full_pool_whose_orders_do_not_arrive_does_not_run_away(
        ready in 1_u32..50, up in 30_u32..=100, step in 1_u32..5, target in 30_u32..=100,
    ) {
        for policy in [
            json!({"type": "reactive", "scaleUpAt": up, "step": step}),
            json!({"type": "predictive", "targetUtilization": target}),
        ] {
            // As many as carry the work that is there at the threshold, and not a step more.
            let most = (ready * 100).div_ceil(up.min(target)) + step;
            prop_assert!(settle(&policy, ready, 100.0, 0) <= most);
        }
    }

    #[test]
    fn any_policy_survives_being_written(autoscaling in any_autoscaling()) {
        let json = json!(autoscaling);
        prop_assert_eq!(Autoscaling::parse(&json, "a"), Ok(autoscaling));
    }

    #[test]
    fn a_policy_with_any_value_anywhere_is_refused_in_words(
        policy in any_policy(), place: prop::sample::Index, kind in 0_usize..7,
    ) {
        let odd = [json!(null), json!(-1), json!("x"), json!([1]), json!({}), json!(1e300), json!(true)];
        let mut policy = policy;
        let members = policy.as_object_mut().unwrap();
        let name = members.keys().nth(place.index(members.len())).unwrap().clone();
        members.insert(name, odd[kind].clone());
        match Autoscaling::parse(&policy, "a") {
            Ok(read) => prop_assert_eq!(Autoscaling::parse(&json!(read), "a"), Ok(read)),
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                prop_assert!(errors.iter().all(|error| error.message.starts_with(&error.field)));
            }
        }
    }
}
