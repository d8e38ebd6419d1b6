//! A fleet from a recipe: exact shares, and the same machines in every run.

use super::NodeSpec;
use crate::dice::Dice;
use std::collections::BTreeMap;

/// The GPUs that a made-up machine can have, as the agent calls them. A name that holds another comes first.
pub(super) const MODELS: [&str; 9] =
    ["GB200", "B200", "H200", "H100", "A100", "L40S", "L4", "V100", "T4"];

/// How a fleet is made.
#[derive(Clone, Debug, Default)]
pub(super) struct Recipe {
    pub(super) count: u32,
    pub(super) templates: Vec<Template>,
    /// With their weights.
    pub(super) providers: Vec<(String, f64)>,
    /// With their weights.
    pub(super) regions: Vec<(String, f64)>,
    /// By region.
    pub(super) zones: BTreeMap<String, Vec<String>>,
    /// So many nodes of a zone stand in one rack; 0 for none.
    pub(super) racks_of: u32,
    /// Whether ids begin with provider and region, as Navarch's do.
    pub(super) long_ids: bool,
}

/// What nodes have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Template {
    pub(super) name: String,
    pub(super) weight: f64,
    pub(super) node: NodeSpec,
}

/// The nodes of a recipe.
pub(super) fn generate(recipe: &Recipe) -> Vec<NodeSpec> {
    // Drawn by the parts' names and not by the run's seed: the fleet is part of the scenario, not of its luck.
    let weights: Vec<f64> = recipe.templates.iter().map(|template| template.weight).collect();
    let templates = spread(recipe.count, &weights, "templates");
    let of =
        |shares: &[(String, f64)]| shares.iter().map(|(_, weight)| *weight).collect::<Vec<_>>();
    let providers = spread(recipe.count, &of(&recipe.providers), "providers");
    let regions = spread(recipe.count, &of(&recipe.regions), "regions");
    let width = recipe.count.to_string().len().max(4);
    let mut in_region: BTreeMap<String, usize> = BTreeMap::new();
    let mut in_zone: BTreeMap<String, u32> = BTreeMap::new();
    let mut nodes = Vec::with_capacity(templates.len());
    for (number, chosen) in templates.into_iter().enumerate() {
        let Some(template) = recipe.templates.get(chosen) else { continue };
        let mut node = template.node.clone();
        let name = |shares: &[(String, f64)], chosen: &[usize]| {
            shares.get(*chosen.get(number)?).map(|(name, _)| name.clone())
        };
        if let Some(provider) = name(&recipe.providers, &providers) {
            node.provider = provider;
        }
        if let Some(region) = name(&recipe.regions, &regions) {
            node.region = region;
        }
        if let Some(zones) = recipe.zones.get(&node.region).filter(|zones| !zones.is_empty()) {
            let seen = in_region.entry(node.region.clone()).or_default();
            if let Some(zone) = zones.get(*seen % zones.len()) {
                node.zone.clone_from(zone);
            }
            *seen += 1;
        }
        let seen = in_zone.entry(node.zone.clone()).or_default();
        if let Some(full) = seen.checked_div(recipe.racks_of) {
            let rack = format!("{}-r{:03}", node.zone, full + 1);
            node.labels.insert("rack".to_owned(), rack.trim_start_matches('-').to_owned());
            *seen += 1;
        }
        let number = number + 1;
        node.id = if recipe.long_ids {
            format!("{}-{}-{}-{number:0width$}", node.provider, node.region, template.name)
        } else {
            format!("{}-{number:0width$}", template.name)
        };
        nodes.push(node);
    }
    nodes
}

/// Which of the weights each of `count` gets: as many of each as its share is, in an order that has nothing to do
/// with other shares.
fn spread(count: u32, weights: &[f64], part: &str) -> Vec<usize> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return Vec::new();
    }
    let total = count as usize;
    let mut chosen = Vec::with_capacity(total);
    let mut weighed = 0.0;
    for (place, weight) in weights.iter().enumerate() {
        weighed += weight;
        // Up to where this share ends: rounding never adds up to one too many.
        let end = if place + 1 == weights.len() { total } else { ends_at(total, weighed / sum) };
        while chosen.len() < end {
            chosen.push(place);
        }
    }
    let mut dice = Dice::part(0, part);
    for last in (1..chosen.len()).rev() {
        let other = usize::try_from(dice.below(last as u64 + 1)).unwrap_or(last);
        chosen.swap(last, other);
    }
    chosen
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a count is one"
)]
fn ends_at(total: usize, part: f64) -> usize {
    ((total as f64 * part).round() as usize).min(total)
}

#[cfg(test)]
mod tests;
