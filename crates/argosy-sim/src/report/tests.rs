use super::fixture::{about, failing, outcome};
use super::*;
use crate::outcome::Series;
use crate::scenario::{Effect, Trouble};

#[test]
fn a_command_can_be_pasted_into_a_shell() {
    let about = |reference: &str, options: &[&str]| About {
        reference: reference.to_owned(),
        options: options.iter().map(|word| (*word).to_owned()).collect(),
        ..About::default()
    };
    let rows = [
        (about("llama3", &[]), "argosy sim run llama3 --seed 7"),
        (
            about("my files/a.yaml", &["--config", "it's.yaml"]),
            r"argosy sim run 'my files/a.yaml' --seed 7 --config 'it'\''s.yaml'",
        ),
        (about("$(rm)", &[]), "argosy sim run '$(rm)' --seed 7"),
        (about("", &[]), "argosy sim run '' --seed 7"),
    ];
    for (about, expected) in rows {
        assert_eq!(about.command("run", 7), expected);
    }
}

#[test]
fn one_seed_has_its_outcome_at_the_top() {
    let document = json(&about(), &[outcome(1)]);
    let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "actions",
            "assertions",
            "bytes_per_node",
            "digest",
            "events",
            "faults",
            "figures",
            "gpus",
            "kind",
            "money",
            "nodes",
            "passed",
            "replay",
            "rules",
            "scenario",
            "seed",
            "series",
            "simulated_seconds",
            "violations",
            "work",
        ]
    );
    assert_eq!(document["kind"], "SimulationRun");
    assert_eq!(document["passed"], true);
    assert_eq!(document["events"], 1_234_568);
    assert_eq!(document["simulated_seconds"], 4_665_600.0);
    assert_eq!(document["violations"], json!([]));
    assert_eq!(document["replay"], "argosy sim run llama3 --seed 1");
    assert_eq!(document["figures"]["faults"], 345);
    let read: Outcome = serde_json::from_value(document).unwrap();
    assert_eq!(read, outcome(1), "a document can be read back");
}

#[test]
fn many_seeds_are_a_list_with_totals() {
    let document = json(&about(), &[outcome(1), failing(2), outcome(3)]);
    assert_eq!(document["kind"], "SimulationRuns");
    assert_eq!(document["seeds"], 3);
    assert_eq!(document["seeds_failed"], 1);
    assert_eq!(document["passed"], false);
    assert_eq!(document["events"], 3 * 1_234_567 + 6);
    assert_eq!(document["simulated_seconds"], 3.0 * 54.0 * 86_400.0);
    assert_eq!(document["digest"].as_str().unwrap().len(), 64);
    assert_eq!(document["violations"][0]["seed"], 2);
    assert_eq!(document["violations"][0]["invariant"], "I4");
    assert_eq!(document["figures"]["faults"], 3 * 345);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[1]["replay"], "argosy sim run llama3 --seed 2");
    assert!(runs.iter().all(|run| run.get("series").is_none() && run.get("faults").is_none()));
}

#[test]
fn the_digest_of_many_tells_seeds_and_order_apart() {
    let (a, b) = (outcome(1), outcome(2));
    assert_eq!(digest(std::slice::from_ref(&a)), a.digest);
    assert_eq!(digest(&[a.clone(), b.clone()]), digest(&[a.clone(), b.clone()]));
    assert_ne!(digest(&[a.clone(), b.clone()]), digest(&[b, a]));
}

/// A scenario with one cause, and a run of it with 100 nodes of 8 GPUs for ten days, of which two are after
/// faults stop.
fn expectation(rate: Rate) -> f64 {
    let cause = Cause {
        name: "x".to_owned(),
        rate,
        effects: vec![(1.0, Effect::Silent)],
        interrupts: true,
    };
    let scenario = Scenario {
        duration: jiff::SignedDuration::from_hours(8 * 24),
        trouble: Trouble { hardware: vec![cause.clone(), cause], ..Trouble::default() },
        ..Scenario::default()
    };
    let series = Series { step_seconds: 3_600.0, present: vec![800; 240], ..Series::default() };
    let run = Outcome { nodes: 100, gpus: 800, series, ..Outcome::default() };
    *expected(&scenario, &[run.clone(), run]).get("x").unwrap()
}

#[test]
fn what_is_expected_follows_from_the_rate_and_what_was_exposed() {
    let rows = [
        // 800 GPUs for 192 hours are 153,600 GPU-hours; 100 nodes for 8 days are 800 node-days; two causes.
        (Rate::PerMillionGpuHours(10.0), 2.0 * 1.536),
        (Rate::PerThousandNodeDays(5.0), 2.0 * 4.0),
        (Rate::PerDay(3.0), 2.0 * 24.0),
    ];
    for (rate, expected) in rows {
        assert!((expectation(rate) - expected).abs() < 1e-9, "{rate:?}: {}", expectation(rate));
    }
}
