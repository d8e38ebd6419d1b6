//! `argosy top`: what nodes and GPUs are doing, live.

use super::node::{Filter, gib, gpus, hottest, model, plain_id, utilization};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, clean, document, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::node::{Gpu, Node};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

/// Show what nodes and GPUs are doing, live.
#[derive(Args, Debug)]
#[command(after_help = "\
In place on a terminal, every two seconds, until Ctrl-C; once in a pipe.

Examples:
  argosy top
  argosy top --pool h100 --by temp
  argosy top gpu-17 --gpus
  argosy top --once --gpus --by power")]
pub(crate) struct Top {
    /// Only these nodes.
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// A line for each GPU, too.
    #[arg(short, long)]
    gpus: bool,
    /// By what, the highest first; nodes by their id.
    #[arg(long, visible_alias = "sort", value_enum, default_value_t, value_name = "MEASURE")]
    by: By,
    /// Show it once, also on a terminal.
    #[arg(long)]
    once: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// How busy its GPUs are.
    #[default]
    Util,
    /// Its hottest GPU.
    Temp,
    /// What its GPUs draw.
    Power,
    /// How much of its GPUs' memory is used.
    Memory,
    /// Its id.
    Node,
}

/// How often it is drawn anew.
const REFRESH: Duration = Duration::from_secs(2);

/// How much longer than reading the fleet took nothing is read: a fleet that takes seconds to read is not
/// read all the time.
const REST: u32 = 4;

/// How wide a bar is.
const BAR: u8 = 8;

/// `argosy top`
pub(super) async fn run(session: &Session, args: Top) -> Result<Exit, Failure> {
    if !args.nodes.is_empty() && !args.filter.is_empty() {
        return Err(Failure::usage("nodes are named, or selected by what they are; not both"));
    }
    let table = matches!(session.format, Format::Table | Format::Wide);
    if args.once || !table || !session.screen.live {
        let nodes = read(session, &args).await?;
        show(session, &args, nodes);
        return Ok(Exit::Ok);
    }
    let mut picture = String::new();
    let whose = clean(&session.target.name);
    loop {
        let started = session.clock.monotonic();
        let last = match read(session, &args).await {
            Ok(nodes) => {
                picture = draw(&session.screen, &args, nodes, Times::relative(session), true);
                format!("{whose}, by {}; Ctrl-C ends", name(args.by))
            }
            Err(failure) if failure.exit == Exit::Unreachable => {
                format!("{whose} does not answer; waiting for it; Ctrl-C ends")
            }
            Err(failure) => return Err(failure),
        };
        print(&session.screen.in_place(&picture, &last));
        let took = session.clock.monotonic().saturating_sub(started);
        tokio::time::sleep(REFRESH.max(took.saturating_mul(REST))).await;
    }
}

async fn read(session: &Session, args: &Top) -> Result<Vec<Node>, Failure> {
    if args.nodes.is_empty() {
        let query = args.filter.query()?;
        let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
        return session.all_nodes(&query).await.map(|(nodes, _)| nodes);
    }
    let mut nodes = Vec::new();
    for id in args.nodes.iter().map(|id| plain_id(id)) {
        match session.client.node(id).await {
            Ok(node) => nodes.push(node),
            Err(error) => return Err(session.missing_node(error, id).await),
        }
    }
    Ok(nodes)
}

fn show(session: &Session, args: &Top, mut nodes: Vec<Node>) {
    match session.format {
        Format::Json | Format::Yaml => {
            sort(&mut nodes, args.by);
            let value =
                json!({ "kind": "NodeList", "total": nodes.len(), "items": to_value(&nodes) });
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => {
            sort(&mut nodes, args.by);
            let line = |node: &Node| format!("node/{}\n", clean(&node.id));
            print(&nodes.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide => {
            print(&draw(&session.screen, args, nodes, Times::relative(session), false));
        }
    }
}

const fn name(by: By) -> &'static str {
    match by {
        By::Util => "utilization",
        By::Temp => "temperature",
        By::Power => "power",
        By::Memory => "memory",
        By::Node => "id",
    }
}

/// The picture: a line of totals, and a table.
fn draw(screen: &Screen, args: &Top, mut nodes: Vec<Node>, times: Times, bars: bool) -> String {
    sort(&mut nodes, args.by);
    let headers =
        &["NODE", "POOL", "STATUS", "GPUS", "UTIL", "MEMORY", "TEMP", "POWER", "CPU", "HEARD"];
    let mut grid = Grid::new(headers).sparse();
    for node in &nodes {
        grid.row(row(node, times, bars));
        if args.gpus {
            for gpu in &node.gpus {
                grid.row(gpu_row(gpu, bars));
            }
        }
    }
    let totals = totals(&nodes);
    let totals = match screen.width.map(usize::from) {
        Some(width) if width < totals.chars().count() => {
            let cut: String = totals.chars().take(width.saturating_sub(1)).collect();
            format!("{cut}…")
        }
        Some(_) | None => totals,
    };
    format!("{totals}\n{}", grid.render(screen, true))
}

/// The whole in a line: nodes by status, GPUs, how busy, how much power.
fn totals(nodes: &[Node]) -> String {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes {
        *states.entry(node.status.as_str()).or_default() += 1;
    }
    let states: Vec<String> =
        states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let all: Vec<&Gpu> = nodes.iter().flat_map(|node| &node.gpus).collect();
    let mut parts = vec![match nodes.len() {
        0 => "no nodes".to_owned(),
        1 => format!("1 node ({})", states.join(", ")),
        count => format!("{count} nodes ({})", states.join(", ")),
    }];
    parts.push(format!("{} GPUs", all.len()));
    let measured: Vec<f64> = all.iter().filter_map(|gpu| gpu.utilization).map(f64::from).collect();
    if let Some(count) = u32::try_from(measured.len()).ok().filter(|count| 0 < *count) {
        parts.push(format!("{:.0}% busy", measured.iter().sum::<f64>() / f64::from(count)));
    }
    let (used, total) = memory_of(all.iter().copied());
    if 0 < used {
        parts.push(format!("{}/{} GiB", gib(used), gib(total)));
    }
    let watts: u64 = all.iter().filter_map(|gpu| gpu.power).map(u64::from).sum();
    if 0 < watts {
        parts.push(kilowatts(watts));
    }
    parts.join(", ")
}

/// `41/80G`, in GiB: as short as a row of a terminal wants it.
fn share(used: u64, total: u64) -> String {
    let whole = |bytes: u64| bytes.saturating_add(1 << 29) >> 30;
    format!("{}/{}G", whole(used), whole(total))
}

fn kilowatts(watts: u64) -> String {
    if watts < 1000 {
        format!("{watts} W")
    } else {
        format!("{}.{} kW", watts / 1000, watts % 1000 / 100)
    }
}

/// The highest first; who measured nothing last; equals by id.
fn sort(nodes: &mut [Node], by: By) {
    let measure = |node: &Node| -> Option<f64> {
        match by {
            By::Util => utilization(&node.gpus).map(f64::from),
            By::Temp => hottest(&node.gpus).map(f64::from),
            By::Power => power(node).map(f64::from),
            By::Memory => memory_share(node),
            By::Node => None,
        }
    };
    nodes.sort_by(|a, b| {
        let (first, second) = (measure(a), measure(b));
        let higher = match (first, second) {
            (Some(first), Some(second)) => second.total_cmp(&first),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        higher.then_with(|| a.id.cmp(&b.id))
    });
}

fn row(node: &Node, times: Times, bars: bool) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let status = node.status.as_str();
    let (used, total) = memory_of(node.gpus.iter());
    let memory = if used == 0 { String::new() } else { share(used, total) };
    let cpu = node.metrics.as_ref().and_then(|metrics| metrics.cpu_percent);
    let cpu = cpu.map(|percent| format!("{percent:.0}%"));
    vec![
        plain(node.id.clone()),
        plain(node.pool.clone().unwrap_or_default()),
        (status.to_owned(), Paint::of_state(status)),
        plain(gpus(&node.gpus)),
        plain(utilization(&node.gpus).map(|mean| busy(mean, bars)).unwrap_or_default()),
        plain(memory),
        hottest(&node.gpus).map_or((String::new(), Paint::Plain), heat),
        plain(power(node).map(|watts| format!("{watts}W")).unwrap_or_default()),
        plain(cpu.unwrap_or_default()),
        plain(node.last_heartbeat.as_deref().map(|at| times.age(at)).unwrap_or_default()),
    ]
}

fn gpu_row(gpu: &Gpu, bars: bool) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    // Not unsaid: it was said in the node's own line.
    let blank = || plain(" ".to_owned());
    vec![
        plain(format!("  {}", gpu.index)),
        blank(),
        blank(),
        plain(if gpu.name.is_empty() { String::new() } else { model(&gpu.name) }),
        plain(gpu.utilization.map(|percent| busy(percent, bars)).unwrap_or_default()),
        plain(match (gpu.memory_used, u64::try_from(gpu.memory_total)) {
            (Some(used), Ok(total)) => share(used, total),
            (Some(_) | None, _) => String::new(),
        }),
        gpu.temperature.map_or((String::new(), Paint::Plain), heat),
        plain(gpu.power.map(|watts| format!("{watts}W")).unwrap_or_default()),
        blank(),
        blank(),
    ]
}

/// `45%`, with a bar in front where somebody watches it move.
fn busy(percent: f32, bars: bool) -> String {
    let percent = percent.clamp(0.0, 100.0);
    if !bars {
        return format!("{percent:.0}%");
    }
    let full = (percent / 100.0 * f32::from(BAR)).round();
    let bar: String =
        (0..BAR).map(|place| if f32::from(place) < full { '▇' } else { '·' }).collect();
    format!("{bar} {percent:3.0}%")
}

/// Where data-centre GPUs begin to slow down, and where they are about to.
fn heat(degrees: i16) -> (String, Paint) {
    let paint = match degrees {
        ..80 => Paint::Plain,
        80..88 => Paint::Busy,
        88.. => Paint::Bad,
    };
    (format!("{degrees}C"), paint)
}

fn power(node: &Node) -> Option<u32> {
    let measured: Vec<u32> = node.gpus.iter().filter_map(|gpu| gpu.power).map(u32::from).collect();
    (!measured.is_empty()).then(|| measured.iter().sum())
}

/// Used and total bytes of the GPUs that say how much they use.
fn memory_of<'a>(gpus: impl Iterator<Item = &'a Gpu>) -> (u64, u64) {
    let said = gpus.filter_map(|gpu| Some((gpu.memory_used?, gpu.memory_total)));
    said.fold((0, 0), |(used, total): (u64, u64), (one, of)| {
        (used.saturating_add(one), total.saturating_add(u64::try_from(of).unwrap_or(0)))
    })
}

fn memory_share(node: &Node) -> Option<f64> {
    let (used, total) = memory_of(node.gpus.iter());
    let mib = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
    (0 < mib(total)).then(|| f64::from(mib(used)) / f64::from(mib(total)))
}

#[cfg(test)]
mod tests;
