//! What was measured, and how it is shown.

use crate::work::Sizes;
use argosy_agent::swarm::Histogram;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// What was measured on one store, by the key of its line.
#[derive(Default)]
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    pub(crate) fn set(&mut self, key: impl Into<String>, value: f64) {
        self.0.insert(key.into(), value);
    }

    pub(crate) fn get(&self, key: &str) -> f64 {
        self.0.get(key).copied().unwrap_or(f64::NAN)
    }

    /// The middle, the hundredth-slowest and the slowest, in milliseconds, as `KEY.p50` and so on.
    pub(crate) fn times(&mut self, key: &str, times: Vec<Duration>) {
        let times: Histogram = times.into_iter().collect();
        let ms = |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            self.set(format!("{key}.{name}"), ms(times.at(share)));
        }
        self.set(format!("{key}.max"), ms(times.max()));
    }
}

/// One line of the table: what, its key, its unit, and what it must stay below.
struct Line(&'static str, &'static str, &'static str, Option<f64>);

const LINES: &[(&str, &[Line])] = &[
    (
        "create → Ready, three instant adapters",
        &[
            Line("one at a time, p50", "ready.1.p50", "ms", None),
            Line("one at a time, p99", "ready.1.p99", "ms", Some(100.0)),
            Line("one at a time, slowest", "ready.1.max", "ms", None),
            Line("16 in flight, p50", "ready.16.p50", "ms", None),
            Line("16 in flight, p99", "ready.16.p99", "ms", None),
            Line("16 in flight, clusters made Ready", "ready.16.rate", "/s", None),
            Line("processor time of the server, each", "ready.cpu", "µs", None),
        ],
    ),
    (
        "acknowledged creates, nothing else to do",
        &[
            Line("1 client", "create.1.rate", "/s", None),
            Line("1 client, p50", "create.1.p50", "ms", None),
            Line("1 client, p99", "create.1.p99", "ms", None),
            Line("64 clients", "create.64.rate", "/s", None),
            Line("64 clients, p50", "create.64.p50", "ms", None),
            Line("64 clients, p99", "create.64.p99", "ms", None),
            Line("64 clients, processor time of the server, each", "create.64.cpu", "µs", None),
        ],
    ),
    (
        "reads over all clusters",
        &[
            Line("list by labels, phase and provider, p50", "list.p50", "ms", None),
            Line("list by labels, phase and provider, p99", "list.p99", "ms", Some(10.0)),
            Line("… inside the server, mean", "list.server", "ms", None),
            Line("… processor time of the server, each", "list.cpu", "µs", None),
            Line("search of three terms, p50", "search.p50", "ms", None),
            Line("search of three terms, p99", "search.p99", "ms", Some(10.0)),
            Line("… inside the server, mean", "search.server", "ms", None),
            Line("… processor time of the server, each", "search.cpu", "µs", None),
            Line("first page of all, with total, p50", "page.p50", "ms", None),
            Line("first page of all, with total, p99", "page.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "page.cpu", "µs", None),
            Line("part of a name, p50", "name.p50", "ms", None),
            Line("part of a name, p99", "name.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "name.cpu", "µs", None),
        ],
    ),
    (
        "watch: one change to every watcher of a list",
        &[
            Line("PATCH sent → last watcher told, p50", "watch.p50", "ms", None),
            Line("PATCH sent → last watcher told, p99", "watch.p99", "ms", None),
            Line("events delivered", "watch.rate", "/s", None),
            Line("processor time of the server, each event", "watch.cpu", "µs", None),
        ],
    ),
    (
        "memory and start",
        &[
            Line("resident, no clusters", "memory.empty", "MB", None),
            Line("resident, all clusters", "memory.loaded", "MB", Some(200.0)),
            Line("resident after a restart", "memory.restarted", "MB", Some(200.0)),
            Line("kB a cluster, after a restart", "memory.cluster", "kB", None),
            Line("start after kill -9, median", "start.p50", "ms", Some(1000.0)),
            Line("start after kill -9, slowest", "start.max", "ms", None),
        ],
    ),
    (
        "heartbeats with 8 GPUs, unary Connect over HTTP/1.1, 64 connections",
        &[
            Line("Connect, 1,000 nodes", "beat.connect.1000.rate", "/s", None),
            Line("… p50", "beat.connect.1000.p50", "ms", None),
            Line("… p99", "beat.connect.1000.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "beat.connect.1000.cpu", "µs", None),
            Line("Connect, 10,000 nodes", "beat.connect.10000.rate", "/s", None),
            Line("… p50", "beat.connect.10000.p50", "ms", None),
            Line("… p99", "beat.connect.10000.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "beat.connect.10000.cpu", "µs", None),
            Line("Connect, 100,000 nodes", "beat.connect.100000.rate", "/s", None),
            Line("… p50", "beat.connect.100000.p50", "ms", None),
            Line("… p99", "beat.connect.100000.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "beat.connect.100000.cpu", "µs", None),
        ],
    ),
    (
        "heartbeats with 8 GPUs, gRPC, 8 connections of 8 calls",
        &[
            Line("gRPC, 1,000 nodes", "beat.grpc.1000.rate", "/s", None),
            Line("… p50", "beat.grpc.1000.p50", "ms", None),
            Line("… p99", "beat.grpc.1000.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "beat.grpc.1000.cpu", "µs", None),
            Line("gRPC, 10,000 nodes", "beat.grpc.10000.rate", "/s", None),
            Line("… p50", "beat.grpc.10000.p50", "ms", None),
            Line("… p99", "beat.grpc.10000.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "beat.grpc.10000.cpu", "µs", None),
            Line("gRPC, 100,000 nodes", "beat.grpc.100000.rate", "/s", None),
            Line("… p50", "beat.grpc.100000.p50", "ms", None),
            Line("… p99", "beat.grpc.100000.p99", "ms", Some(10.0)),
            Line("… processor time of the server, each", "beat.grpc.100000.cpu", "µs", None),
        ],
    ),
    (
        "heartbeats with 8 GPUs on 64 streams, bursts of 50",
        &[
            Line("Attach, 1,000 nodes", "beat.attach.1000.rate", "/s", None),
            Line("… a burst taken in, p50", "beat.attach.1000.p50", "ms", None),
            Line("… a burst taken in, p99", "beat.attach.1000.p99", "ms", None),
            Line("… processor time of the server, each", "beat.attach.1000.cpu", "µs", None),
            Line("Attach, 10,000 nodes", "beat.attach.10000.rate", "/s", None),
            Line("… a burst taken in, p50", "beat.attach.10000.p50", "ms", None),
            Line("… a burst taken in, p99", "beat.attach.10000.p99", "ms", None),
            Line("… processor time of the server, each", "beat.attach.10000.cpu", "µs", None),
            Line("Attach, 100,000 nodes", "beat.attach.100000.rate", "/s", None),
            Line("… a burst taken in, p50", "beat.attach.100000.p50", "ms", None),
            Line("… a burst taken in, p99", "beat.attach.100000.p99", "ms", None),
            Line("… processor time of the server, each", "beat.attach.100000.cpu", "µs", None),
        ],
    ),
    (
        "registrations and health reports, 64 connections",
        &[
            Line("registrations, to 1,000 nodes", "register.1000.rate", "/s", None),
            Line("registrations, to 10,000 nodes", "register.10000.rate", "/s", None),
            Line("… p99", "register.10000.p99", "ms", Some(100.0)),
            Line("… processor time of the server, each", "register.10000.cpu", "µs", None),
            Line("registrations, to 100,000 nodes", "register.100000.rate", "/s", None),
            Line("first health reports of nodes", "report.first.rate", "/s", None),
            Line("health reports without news", "report.rate", "/s", None),
            Line("… p99", "report.p99", "ms", Some(50.0)),
            Line("… processor time of the server, each", "report.cpu", "µs", None),
            Line("default policy, one event judged, one core", "policy.rate", "/s", None),
        ],
    ),
    (
        "fleets",
        &[
            Line("memory a node with its document, 1,000 nodes", "memory.1000.node", "B", None),
            Line("memory a node with its document, 10,000 nodes", "memory.10000.node", "B", None),
            Line("memory a node with its document, 100,000 nodes", "memory.100000.node", "B", None),
            Line("a node's document, as it is stored", "document.stored", "B", None),
            Line("… in memory", "document.held", "B", None),
            Line("… beyond it, of the largest fleet", "document.beyond", "B", Some(2000.0)),
            Line("ListNodes of all, p50", "list-nodes.p50", "ms", None),
            Line("ListNodes of all, slowest", "list-nodes.max", "ms", None),
            Line("resident with all streams open", "streams.memory", "MB", Some(500.0)),
            Line("… a stream", "streams.each", "kB", None),
            Line("10 % fail at once: fault → told to cordon, p50", "cordon.p50", "ms", None),
            Line(
                "10 % fail at once: fault → told to cordon, p99",
                "cordon.p99",
                "ms",
                Some(1000.0),
            ),
            Line("start after kill -9 with all nodes", "reconnect.serving", "ms", Some(2000.0)),
            Line("all streams open again", "reconnect.all", "ms", Some(120_000.0)),
            Line("… a list of clusters meanwhile, p99", "reconnect.human.p99", "ms", Some(200.0)),
            Line("… nodes marked lost", "reconnect.lost", "", Some(1.0)),
        ],
    ),
    (
        "machines, on the simulated cloud without latency",
        &[
            Line("pool of 1,000 nodes, from nothing to Ready", "pool.ready", "ms", Some(5000.0)),
            Line("… processor time of the server, each node", "pool.cpu", "µs", None),
            Line("… resident, the nodes' agents included", "pool.memory", "MB", None),
            Line("fault → replacement ordered, p50", "replace.p50", "ms", None),
            Line("fault → replacement ordered, p99", "replace.p99", "ms", Some(1000.0)),
            Line("autoscaler, a pool with two weeks of history", "autoscale.rate", "/s", None),
            Line("sweep over 100,000 instances", "sweep.ms", "ms", None),
        ],
    ),
    (
        "the agent, 8 GPUs by a stand-in for NVML",
        &[
            Line("start of the process → registered, p50", "agent.start.p50", "ms", None),
            Line("start of the process → registered, p99", "agent.start.p99", "ms", Some(200.0)),
            Line("line of the kernel → committed, p50", "agent.line.p50", "ms", None),
            Line("line of the kernel → committed, p99", "agent.line.p99", "ms", Some(100.0)),
            Line("one look at all GPUs, mean", "agent.sweep", "ms", None),
            Line("resident, nothing to do", "agent.memory.idle", "MB", Some(20.0)),
            Line("resident at most, the child included", "agent.memory.largest", "MB", Some(20.0)),
            Line("of one core, at default intervals", "agent.cpu", "%", Some(0.5)),
        ],
    ),
];

pub(crate) fn print_table(columns: &[(&str, Figures)], sizes: &Sizes, took: Duration) {
    println!("{}", heading(sizes, took));
    for (title, lines) in LINES {
        let measured =
            |Line(_, key, ..): &Line| columns.iter().any(|(_, f)| f.0.contains_key(*key));
        if !lines.iter().any(measured) {
            continue;
        }
        println!();
        print!("{:<50}", format!("{title} "));
        for (name, _) in columns {
            print!("{name:>14}");
        }
        println!("   target");
        for Line(what, key, unit, target) in *lines {
            print!("  {what:<48}");
            for (_, figures) in columns {
                let cell = figures.0.get(*key).map_or_else(String::new, |value| short(*value));
                print!("{:>14}", format!("{cell} {unit}"));
            }
            match target {
                Some(target) => {
                    let met = columns.iter().map(|(_, figures)| verdict(figures, key, *target));
                    let met: Vec<_> = met.collect();
                    println!("   < {target} {unit}: {}", met.join(", "));
                }
                None => println!(),
            }
        }
    }
}

pub(crate) fn print_json(columns: &[(&str, Figures)], sizes: &Sizes, took: Duration) {
    let lines = LINES.iter().flat_map(|(_, lines)| *lines);
    let targets: BTreeMap<_, _> =
        lines.filter_map(|Line(_, key, _, target)| Some((*key, (*target)?))).collect();
    let figures: BTreeMap<_, Value> =
        columns.iter().map(|(name, figures)| (*name, json!(figures.0))).collect();
    let heading = heading(sizes, took);
    println!("{:#}", json!({ "about": heading, "figures": figures, "below": targets }));
}

fn verdict(figures: &Figures, key: &str, target: f64) -> &'static str {
    match figures.0.get(key) {
        Some(value) if *value < target => "met",
        Some(_) => "MISSED",
        None => "not measured",
    }
}

fn short(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn heading(sizes: &Sizes, took: Duration) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let date = argosy_control::clock::Clock::System.now();
    let command: Vec<_> = std::env::args().skip(1).collect();
    format!(
        "argosy {} on {cores} × {model}, {date:.0}, load {load}, took {} s\n\
         bench {}: {} clusters, {} watchers; client, server and PostgreSQL share these cores, over loopback",
        env!("CARGO_PKG_VERSION"),
        took.as_secs(),
        command.join(" "),
        sizes.clusters,
        sizes.watchers,
    )
}
