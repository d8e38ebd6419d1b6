use super::{MODELS, Recipe, Template, generate};
use crate::scenario::NodeSpec;
use argosy_agent::gpu::fake::Fake;
use std::collections::{BTreeMap, BTreeSet};

fn recipe(count: u32) -> Recipe {
    let template = |name: &str, weight| Template {
        name: name.to_owned(),
        weight,
        node: NodeSpec { gpus: 8, ..NodeSpec::default() },
    };
    let zones = |region: &str| ["a", "b"].map(|zone| format!("{region}-{zone}")).to_vec();
    Recipe {
        count,
        templates: vec![template("h100", 60.0), template("a100", 40.0)],
        providers: vec![("gcp".to_owned(), 3.0), ("aws".to_owned(), 1.0)],
        regions: vec![("east".to_owned(), 1.0), ("west".to_owned(), 1.0)],
        zones: BTreeMap::from(["east", "west"].map(|region| (region.to_owned(), zones(region)))),
        racks_of: 16,
        long_ids: true,
    }
}

fn counts(nodes: &[NodeSpec], of: impl Fn(&NodeSpec) -> String) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for node in nodes {
        *counts.entry(of(node)).or_default() += 1;
    }
    counts
}

#[test]
fn shares_are_exact_and_have_nothing_to_do_with_each_other() {
    let nodes = generate(&recipe(1_000));
    let check = |found: BTreeMap<String, u32>, expected: &[(&str, u32)]| {
        let expected = expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(found, expected);
    };
    check(counts(&nodes, |node| node.provider.clone()), &[("gcp", 750), ("aws", 250)]);
    check(counts(&nodes, |node| node.region.clone()), &[("east", 500), ("west", 500)]);
    let zones = [("east-a", 250), ("east-b", 250), ("west-a", 250), ("west-b", 250)];
    check(counts(&nodes, |node| node.zone.clone()), &zones);
    // Of the 750 at gcp, about 450 are h100: 60 %, within five standard deviations (√(750·0.6·0.4·0.25) ≈ 7).
    let both = nodes.iter().filter(|node| node.provider == "gcp" && node.id.contains("h100"));
    assert!(both.count().abs_diff(450) < 35);
    let racks = counts(&nodes, |node| node.labels["rack"].clone());
    assert!(racks.values().all(|count| *count <= 16));
}

#[test]
fn ids_are_unique_and_the_same_in_every_run() {
    let nodes = generate(&recipe(12_345));
    let ids: BTreeSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids.len(), 12_345);
    assert_eq!(nodes, generate(&recipe(12_345)));
    let first = &nodes[0];
    assert!(first.id.starts_with(&format!("{}-{}-", first.provider, first.region)), "{}", first.id);
    assert!(first.id.ends_with("-00001"), "{}", first.id);
}

#[test]
fn every_model_can_be_made_up() {
    for model in MODELS {
        assert!(Fake::parse(&format!("8x{model}"), "node").is_ok(), "{model}");
    }
}
