use super::{find, list};
use crate::scenario::{Assertion, Rate, read};

#[test]
fn every_shipped_scenario_is_read_without_a_complaint_and_is_what_the_list_says() {
    for shipped in list() {
        let (scenario, warnings) = read(shipped.text, shipped.name).unwrap_or_else(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", lines.join("\n"))
        });
        assert_eq!(warnings, [], "{}", shipped.name);
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
    let scenario = |name: &str| read(find(name).unwrap().text, name).unwrap().0;
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
    assert_eq!((bought("llama3-54d"), llama.workload.unwrap().jobs[0].gpus), (2_048 + 64, 16_384));
}

#[test]
fn the_cautious_operator_meets_the_same_faults() {
    let scenario = |name: &str| read(find(name).unwrap().text, name).unwrap().0;
    let (usual, cautious) = (scenario("llama3-54d"), scenario("llama3-cautious"));
    assert_eq!(usual.trouble, cautious.trouble);
    assert_eq!((usual.workload, usual.duration), (cautious.workload, cautious.duration));
    assert_ne!(usual.clusters, cautious.clusters);
    assert!(matches!(usual.trouble.hardware[0].rate, Rate::PerMillionGpuHours(_)));
    assert!(usual.assertions.iter().any(|of| matches!(of, Assertion::Goodput(_))));
}
