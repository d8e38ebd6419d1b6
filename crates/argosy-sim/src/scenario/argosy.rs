//! Our own scenario files.
//!
//! `docs/simulator.md` describes every key. What a file leaves out is as `Scenario::default` says.

pub(super) mod names;
pub(super) mod script;
pub(super) mod trouble;

use super::fleet::{self, Recipe, Template};
use super::tree::{At, Table};
use super::{
    Cluster, DURATION_MAX, Fleet, Job, Machines, NODES_MAX, NodeSpec, Reports, Scenario, Startup,
    StartupPattern, TEXT_MAX, Workload,
};
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::node::{GPUS_MAX, NodeId};
use jiff::SignedDuration;
use names::Names;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The most processes of the control plane. More than nine of anything that agrees by leases is a mistake.
const PROCESSES_MAX: u32 = 9;

/// The most jobs at once: each is looked at whenever a machine comes or goes.
const JOBS_MAX: u32 = 10_000;

/// Half of a GPU's list price is cheap, and no machine costs a million dollars an hour.
const PRICE_MAX: f64 = 1e6;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Reads a whole file.
pub(super) fn scenario(root: &At<'_>) -> Option<Scenario> {
    let usual = Scenario::default();
    let table = root.table()?;
    let line = |key| table.get(key).and_then(|at| at.line(TEXT_MAX)).unwrap_or_default();
    let name = table.need("name", "first-day").and_then(|at| at.line(TEXT_MAX)).unwrap_or_default();
    let duration = table.need("duration", "24h").and_then(|at| at.span(SECOND, DURATION_MAX));
    let machines = table.get("machines").map(|at| machines(&at)).unwrap_or_default();
    let config = match table.get("config") {
        Some(at) if at.table().is_some() => at.json(),
        Some(_) | None => usual.config,
    };
    let names = Names::new(&config, &machines, duration.unwrap_or(DURATION_MAX));
    let clusters = table.get("clusters").map(|at| clusters(&at, &names)).unwrap_or_default();
    let fleet = table.get("fleet").map(|at| fleet(&at)).unwrap_or_default();
    names.learn(&fleet.nodes);
    let scenario = Scenario {
        name,
        summary: line("summary"),
        description: table.get("description").and_then(|at| at.text()).unwrap_or_default(),
        duration: duration.unwrap_or(usual.duration),
        settle: span(&table, "settle", SECOND, DURATION_MAX, usual.settle),
        config,
        processes: count(&table, "processes", 1, PROCESSES_MAX, 1),
        clusters,
        fleet,
        machines,
        trouble: table.get("trouble").map(|at| trouble::trouble(&at, &names)).unwrap_or_default(),
        script: table.get("script").map(|at| script::steps(&at, &names)).unwrap_or_default(),
        assertions: table
            .get("assertions")
            .map(|at| at.list().iter().filter_map(|at| script::assertion(at, &names)).collect())
            .unwrap_or_default(),
        workload: table.get("workload").map(|at| workload(&at, &names)),
        every_beat: table.get("every_beat").and_then(|at| at.flag()).unwrap_or_default(),
        seed: table.get("seed").and_then(|at| at.whole(0, u64::MAX)),
        sample_every: table.get("sample_every").and_then(|at| at.span(SECOND, DURATION_MAX)),
        reports: table.get("reports").map(|at| reports(&at)).unwrap_or_default(),
    };
    if scenario.fleet.nodes.is_empty() && scenario.clusters.is_empty() {
        root.error(
            "there is no machine in it",
            "write `fleet` for machines that are there, or `clusters` with pools that buy some",
        );
    }
    table.end();
    Some(scenario)
}

/// A length of time under a key.
fn span(
    table: &Table<'_>,
    key: &'static str,
    least: SignedDuration,
    most: SignedDuration,
    usual: SignedDuration,
) -> SignedDuration {
    table.get(key).and_then(|at| at.span(least, most)).unwrap_or(usual)
}

fn count(table: &Table<'_>, key: &'static str, least: u32, most: u32, usual: u32) -> u32 {
    table.get(key).and_then(|at| at.count(least, most)).unwrap_or(usual)
}

fn clusters(at: &At<'_>, names: &Names) -> Vec<Cluster> {
    let mut seen = BTreeSet::new();
    let mut clusters = Vec::new();
    for at in at.list() {
        let Some(table) = at.table() else { continue };
        let name = table.need("name", "train").and_then(|at| resource_name(&at, &mut seen));
        let spec = table.get("spec").map(|at| object(&at)).unwrap_or_default();
        if let Err(errors) = names.check_cluster(&spec) {
            let inside = table.get("spec").unwrap_or_else(|| at.clone());
            for error in errors {
                inside.error_inside(error.field.trim_start_matches("spec."), error.message);
            }
        }
        let mut pools = Vec::new();
        let mut pools_seen = BTreeSet::new();
        for at in table.get("pools").map(|at| at.list()).unwrap_or_default() {
            let Some(table) = at.table() else { continue };
            let pool =
                table.need("name", "h100").and_then(|at| resource_name(&at, &mut pools_seen));
            let pool_spec = table.get("spec").map(|at| object(&at)).unwrap_or_default();
            if let (Some(cluster), Some(pool)) = (&name, &pool)
                && let Err(errors) = names.learn_pool((cluster, &spec), (pool, &pool_spec))
            {
                let inside = table.get("spec").unwrap_or_else(|| at.clone());
                for error in errors {
                    inside.error_inside(error.field.trim_start_matches("spec."), error.message);
                }
            }
            table.end();
            pools.extend(pool.map(|pool| (pool.to_string(), Value::Object(pool_spec))));
        }
        table.end();
        if let Some(name) = name {
            clusters.push(Cluster { name: name.to_string(), spec: Value::Object(spec), pools });
        }
    }
    clusters
}

/// A name that no other thing beside it has.
fn resource_name(at: &At<'_>, seen: &mut BTreeSet<Name>) -> Option<Name> {
    match Name::parse(&at.text()?) {
        Ok(name) if seen.insert(name.clone()) => Some(name),
        Ok(name) => {
            at.error(format!("`{name}` is there twice"), "");
            None
        }
        Err(error) => {
            at.error(error.message, "");
            None
        }
    }
}

fn object(at: &At<'_>) -> Map<String, Value> {
    if at.table().is_none() {
        return Map::new();
    }
    match at.json() {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

fn fleet(at: &At<'_>) -> Fleet {
    let Some(table) = at.table() else { return Fleet::default() };
    let mut nodes = Vec::new();
    let mut ids = BTreeSet::new();
    for at in table.get("nodes").map(|at| at.list()).unwrap_or_default() {
        let Some(table) = at.table() else { continue };
        let id = table.need("id", "node-1");
        let mut node = node(&table);
        table.end();
        let Some(at) = id else { continue };
        let Some(id) = node_id(&at) else { continue };
        if !ids.insert(id.clone()) {
            at.error(format!("`{id}` is there twice"), "give each node its own id");
        }
        node.id = id;
        nodes.push(node);
    }
    if let Some(at) = table.get("generate")
        && let Some(recipe) = recipe(&at)
    {
        for node in fleet::generate(&recipe) {
            if ids.contains(&node.id) {
                at.error(format!("it makes `{}`, which `nodes` has too", node.id), "");
                break;
            }
            nodes.push(node);
        }
    }
    let startup = table.get("startup").map(|at| startup(&at)).unwrap_or_default();
    table.end();
    Fleet { nodes, startup }
}

/// An id as nodes may have it.
pub(super) fn node_id(at: &At<'_>) -> Option<String> {
    let text = at.text()?;
    match NodeId::parse(&text) {
        Ok(_) => Some(text),
        Err(error) => {
            at.error(error.message, "");
            None
        }
    }
}

/// Everything of a node but its id.
fn node(table: &Table<'_>) -> NodeSpec {
    let line = |key, usual: &str| {
        table.get(key).and_then(|at| at.line(TEXT_MAX)).unwrap_or_else(|| usual.to_owned())
    };
    let gpus_max = u32::try_from(GPUS_MAX).unwrap_or(u32::MAX);
    NodeSpec {
        id: String::new(),
        provider: line("provider", "owned"),
        region: line("region", ""),
        zone: line("zone", ""),
        instance_type: line("type", ""),
        pool: line("pool", ""),
        gpus: count(table, "gpus", 0, gpus_max, 8),
        gpu_model: model(table.get("gpu_model")),
        labels: table.get("labels").map(|at| labels(&at)).unwrap_or_default(),
    }
}

/// Labels as nodes may have them.
fn labels(at: &At<'_>) -> BTreeMap<String, String> {
    if let Err(errors) = Labels::parse(&object(at)) {
        for error in errors {
            at.error_inside(error.field.trim_start_matches("labels."), error.message);
        }
        return BTreeMap::new();
    }
    texts(at)
}

fn model(at: Option<At<'_>>) -> String {
    at.and_then(|at| at.word(&fleet::MODELS)).unwrap_or("H100").to_owned()
}

fn texts(at: &At<'_>) -> BTreeMap<String, String> {
    let label = |(key, at): (String, At<'_>)| Some((key, at.line(TEXT_MAX)?));
    at.entries().into_iter().filter_map(label).collect()
}

fn recipe(at: &At<'_>) -> Option<Recipe> {
    let table = at.table()?;
    let nodes = table.need("count", "1000").and_then(|at| at.count(1, NODES_MAX));
    let (mut templates, mut seen) = (Vec::new(), BTreeSet::new());
    for at in table.get("templates").map(|at| at.list()).unwrap_or_default() {
        let Some(template) = at.table() else { continue };
        let name_at = template.need("name", "h100");
        let Some(name) = name_at.as_ref().and_then(node_id) else { continue };
        if !seen.insert(name.clone()) {
            at.error(format!("`{name}` is there twice"), "give each template its own name");
        }
        let weight = template.get("weight").and_then(|at| at.number(0.0, 1e6)).unwrap_or(1.0);
        let node = node(&template);
        template.end();
        templates.push(Template { name, weight, node });
    }
    let line = |key| table.get(key).and_then(|at| at.line(TEXT_MAX));
    let (provider, region) = (line("provider"), line("region"));
    for template in &mut templates {
        if let Some(provider) = &provider {
            template.node.provider.clone_from(provider);
        }
        if let Some(region) = &region {
            template.node.region.clone_from(region);
        }
    }
    let zones: Vec<String> = table
        .get("zones")
        .map(|at| at.list().iter().filter_map(|at| at.line(TEXT_MAX)).collect())
        .unwrap_or_default();
    let racks_of = count(&table, "racks_of", 1, NODES_MAX, 0);
    table.end();
    if templates.is_empty() {
        templates.push(Template {
            name: "node".to_owned(),
            weight: 1.0,
            node: NodeSpec {
                provider: provider.unwrap_or_else(|| "owned".to_owned()),
                region: region.unwrap_or_default(),
                gpus: 8,
                gpu_model: "H100".to_owned(),
                ..NodeSpec::default()
            },
        });
    }
    if templates.iter().all(|template| template.weight <= 0.0) {
        at.error("every template weighs nothing", "give one of them a `weight`");
        return None;
    }
    let regions: BTreeSet<String> =
        templates.iter().map(|template| template.node.region.clone()).collect();
    let zones = regions.into_iter().map(|region| (region, zones.clone())).collect();
    Some(Recipe { count: nodes?, templates, zones, racks_of, ..Recipe::default() })
}

fn startup(at: &At<'_>) -> Startup {
    let usual = Startup::default();
    let Some(table) = at.table() else { return usual };
    let startup = Startup {
        pattern: table.get("pattern").and_then(|at| pattern(&at)).unwrap_or_default(),
        over: span(&table, "over", SignedDuration::ZERO, DURATION_MAX, usual.over),
        batch: count(&table, "batch", 1, NODES_MAX, usual.batch),
        jitter: table.get("jitter").and_then(|at| at.part()).unwrap_or(usual.jitter),
        by_itself: table.get("by_itself").and_then(|at| at.flag()).unwrap_or(usual.by_itself),
    };
    table.end();
    startup
}

pub(super) fn pattern(at: &At<'_>) -> Option<StartupPattern> {
    Some(match at.word(&["instant", "linear", "exponential", "wave"])? {
        "linear" => StartupPattern::Linear,
        "exponential" => StartupPattern::Exponential,
        "wave" => StartupPattern::Wave,
        _ => StartupPattern::Instant,
    })
}

fn machines(at: &At<'_>) -> Machines {
    let usual = Machines::default();
    let Some(table) = at.table() else { return usual };
    let day = SignedDuration::from_hours(24);
    let types = |at: At<'_>| {
        let gpus_max = u32::try_from(GPUS_MAX).unwrap_or(u32::MAX);
        let of = |(name, at): (String, At<'_>)| {
            let table = at.table()?;
            let (gpus, model) =
                (count(&table, "gpus", 0, gpus_max, 8), model(table.get("gpu_model")));
            table.end();
            Some((name, (gpus, model)))
        };
        at.entries().into_iter().filter_map(of).collect()
    };
    let prices = |at: At<'_>| {
        let of = |(name, at): (String, At<'_>)| Some((name, at.number(0.0, PRICE_MAX)?));
        at.entries().into_iter().filter_map(of).collect()
    };
    let machines = Machines {
        boot: (
            span(&table, "boot", SignedDuration::ZERO, day, usual.boot.0),
            span(&table, "boot_deviation", SignedDuration::ZERO, day, usual.boot.1),
        ),
        drain: span(&table, "drain", SignedDuration::ZERO, day, usual.drain),
        reboot: span(&table, "reboot", SignedDuration::ZERO, day, usual.reboot),
        types: table.get("types").map(types).unwrap_or_default(),
        prices: table.get("prices").map(prices).unwrap_or_default(),
    };
    table.end();
    machines
}

fn workload(at: &At<'_>, names: &Names) -> Workload {
    let Some(table) = at.table() else { return Workload { jobs: Vec::new() } };
    let (mut jobs, mut seen) = (Vec::new(), BTreeSet::new());
    let mut wanted = 0_u64;
    for at in table.need("jobs", "[…]").map(|at| at.list()).unwrap_or_default() {
        let Some(job) = at.table() else { continue };
        let name = job.need("name", "pretraining").and_then(|at| at.line(TEXT_MAX));
        if let Some(name) = &name
            && !seen.insert(name.clone())
        {
            at.error(format!("`{name}` is there twice"), "give each job its own name");
        }
        let number = count(&job, "count", 1, JOBS_MAX, 1);
        let gpus_at = job.need("gpus", "16384");
        let gpus = gpus_at.as_ref().and_then(|at| at.count(1, u32::MAX));
        if let (Some(at), Some(gpus), Some(most)) = (&gpus_at, gpus, names.gpus())
            && most < u64::from(gpus)
        {
            at.error(
                format!("the job needs {gpus} GPUs, and all machines together have {most}"),
                "make the fleet larger or the job smaller",
            );
        }
        wanted += u64::from(number);
        let zero = SignedDuration::ZERO;
        let read = Job {
            name: name.unwrap_or_default(),
            count: number,
            gpus: gpus.unwrap_or(1),
            work: job.get("work").and_then(|at| at.span(SECOND, DURATION_MAX)),
            checkpoint_every: span(
                &job,
                "checkpoint_every",
                SECOND,
                DURATION_MAX,
                SignedDuration::from_hours(1),
            ),
            checkpoint: span(&job, "checkpoint", zero, DURATION_MAX, SignedDuration::from_secs(30)),
            restart: span(&job, "restart", zero, DURATION_MAX, SignedDuration::from_mins(10)),
        };
        job.end();
        jobs.push(read);
    }
    table.end();
    if u64::from(JOBS_MAX) < wanted {
        at.error(format!("{wanted} jobs at once"), format!("at most {JOBS_MAX}"));
    }
    Workload { jobs }
}

fn reports(at: &At<'_>) -> Reports {
    let Some(table) = at.table() else { return Reports::default() };
    let path = |key| table.get(key).and_then(|at| at.line(4096));
    let reports = Reports { json: path("json"), html: path("html"), log: path("log") };
    table.end();
    reports
}

#[cfg(test)]
mod tests;
