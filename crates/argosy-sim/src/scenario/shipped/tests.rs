use super::{find, list};
use crate::scenario::{Assertion, Effect, Rate, Scenario, Warning, profile, read};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// All of them, read once: one has a million nodes.
static ALL: LazyLock<BTreeMap<&'static str, (Scenario, Vec<Warning>)>> = LazyLock::new(|| {
    let read = |shipped: &super::Shipped| match read(shipped.text, shipped.name) {
        Ok(read) => (shipped.name, read),
        Err(errors) => {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", lines.join("\n"))
        }
    };
    list().iter().map(read).collect()
});

fn scenario(name: &str) -> &'static Scenario {
    &ALL[name].0
}

#[test]
fn every_shipped_scenario_is_read_without_a_complaint_and_is_what_the_list_says() {
    for shipped in list() {
        let (scenario, warnings) = &ALL[shipped.name];
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(
            (scenario.name.as_str(), scenario.summary.as_str()),
            (shipped.name, shipped.summary)
        );
        assert!(!shipped.summary.contains('\n') && shipped.summary.len() < 120, "{}", shipped.name);
        assert!(!scenario.assertions.is_empty(), "{} expects nothing", shipped.name);
        assert_eq!(find(shipped.name), Some(shipped));
    }
    assert_eq!(find("no-such-thing"), None);
}

#[test]
fn every_file_of_the_folder_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected: Vec<String> = list().iter().map(|of| format!("{}.yaml", of.name)).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn the_sizes_that_people_are_told_are_the_sizes_that_are_played() {
    let bought = |name: &str| {
        let scenario = scenario(name);
        let pools = scenario.clusters.iter().flat_map(|cluster| &cluster.pools);
        pools.map(|(_, spec)| spec["nodeCount"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(scenario("million").fleet.nodes.len(), 1_000_000);
    assert_eq!(scenario("1000-node-chaos").fleet.nodes.len(), 1_000);
    assert_eq!(scenario("5000-node-extreme").fleet.nodes.len(), 5_000);
    assert_eq!(bought("everything"), 200);
    let llama = scenario("llama3-54d");
    assert_eq!(
        (bought("llama3-54d"), llama.workload.as_ref().unwrap().jobs[0].gpus),
        (2_048 + 64, 16_384)
    );
}

#[test]
fn the_cautious_operator_meets_the_same_faults() {
    let (usual, cautious) = (scenario("llama3-54d"), scenario("llama3-cautious"));
    assert_eq!(usual.trouble, cautious.trouble);
    assert_eq!((&usual.workload, usual.duration), (&cautious.workload, cautious.duration));
    assert_ne!(usual.clusters, cautious.clusters);
    assert!(matches!(usual.trouble.hardware[0].rate, Rate::PerMillionGpuHours(_)));
    assert!(usual.assertions.iter().any(|of| matches!(of, Assertion::Goodput(_))));
}

#[test]
fn the_page_says_what_there_is() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulator.md"))
            .unwrap();
    let has = |line: String| assert!(page.contains(&line), "docs/simulator.md has no line\n{line}");
    for shipped in list() {
        has(format!("| `{}` | {} |\n", shipped.name, shipped.summary));
    }
    for of in profile::list() {
        has(format!("| `{}` | {} | {} |\n", of.name, of.about, of.source));
    }
    let causes = profile::find("llama3").unwrap().causes(1.0);
    for ((name, count), cause) in profile::llama3_counts().zip(&causes) {
        let shows = cause.effects.iter().map(|(weight, effect)| {
            let text = match effect {
                Effect::Inject(text) => text.clone(),
                Effect::Silent => "silent".to_owned(),
                Effect::Reboot => "reboot".to_owned(),
                Effect::AgentCrash => "agent-crash".to_owned(),
                Effect::Partition(span) => {
                    format!("partition:{}", argosy_core::span::Written(*span))
                }
                Effect::Clock(seconds) => format!("clock:{seconds}s"),
                Effect::Unseen => "unseen".to_owned(),
            };
            format!("`{text}` {:.0} %", weight * 100.0)
        });
        has(format!("| {name} | {count} | {} |\n", shows.collect::<Vec<_>>().join(", ")));
    }
}

/// The page's small scenario is one, and with its three mistakes gives the complaints that the page shows.
#[test]
fn the_example_of_the_page_works() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulator.md"))
            .unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (text, rest) = rest.split_once("```").unwrap();
    read(text, "tuesday.yaml").unwrap_or_else(|errors| panic!("{errors:#?}"));
    let (_, rest) = rest.split_once("```text\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let wrong =
        text.replace("6h", "0s").replace("xid:79", "xdi:79").replace("assertions", "asertions");
    let errors = read(&wrong, "tuesday.yaml").unwrap_err();
    assert_eq!(errors.len(), shown.lines().count());
    for (error, line) in errors.iter().zip(shown.lines()) {
        assert!(error.to_string().starts_with(line.trim_end_matches('…')), "{error}\n{line}");
    }
}
