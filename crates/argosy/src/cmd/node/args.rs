//! What `argosy node` understands.

use crate::config::Duration;
use crate::failure::Failure;
use argosy_api::node::{HealthStatus, Liveness, NodeStatus};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

/// See the machines of the fleet, and take them out of service and back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy node list --pool h100 --status UNHEALTHY
  argosy node get gpu-17
  argosy node drain gpu-17 --reason 'new fans' --wait
  argosy node cordon -l rack=r7 --reason 'power work' --dry-run
  argosy why node/gpu-17")]
pub(crate) struct Verb {
    #[command(subcommand)]
    pub(super) verb: Verbs,
}

#[derive(Subcommand, Debug)]
pub(super) enum Verbs {
    #[command(visible_alias = "ls")]
    List(List),
    Get(Get),
    Watch(Watch),
    Cordon(Cordon),
    Uncordon(Uncordon),
    Drain(Drain),
    Diagnose(Diagnose),
    Terminate(Terminate),
    #[command(visible_aliases = ["rm", "forget"])]
    Delete(Delete),
    Protect(Protect),
    Unprotect(Unprotect),
    Events(Events),
    History(History),
}

/// List nodes.
#[derive(Args, Debug)]
#[command(after_help = "\
REASON is what speaks against a node: what is wrong with it, who took it out of service, or what holds an
action that is due. `argosy why node/ID` tells the whole story.

Examples:
  argosy node list
  argosy node list --pool h100 --health UNHEALTHY -o wide
  argosy node list -l rack=r7,row!=3 --order pool,-registered_at
  argosy node list --search \"xid in (79, 48) and gpu_name like '%H100%'\" -o name
  argosy node list --status CORDONED --watch")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) filter: Filter,
    /// In this order: a field, or -FIELD for the reverse; several with commas. By id without it.
    #[arg(
        long,
        visible_alias = "sort",
        value_name = "FIELD",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(super) order: Vec<String>,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Describe nodes: what they are, how they are, and who did what with them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy node get gpu-17
  argosy node get gpu-17 -o wide
  argosy node get gpu-17 gpu-18 -o json
  argosy node get gpu-17 --watch")]
pub(super) struct Get {
    /// Which, by id.
    #[arg(required = true, value_name = "NODE")]
    pub(super) nodes: Vec<String>,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Show nodes and their changes as they happen.
#[derive(Args, Debug)]
#[command(after_help = "\
In place on a terminal, as JSON lines in a pipe. A restart of the server does not end it. Heartbeats and
measurements are no changes; `argosy top` shows those.

Examples:
  argosy node watch
  argosy node watch gpu-17
  argosy node watch --pool h100 | jq .object.status")]
pub(super) struct Watch {
    /// Only this one.
    #[arg(value_name = "NODE")]
    pub(super) node: Option<String>,
    #[command(flatten)]
    pub(super) filter: Filter,
}

/// Give nodes no new work; what runs goes on.
#[derive(Args, Debug)]
#[command(after_help = "\
A node that was cordoned by a person stays cordoned until a person says otherwise.

Examples:
  argosy node cordon gpu-17 --reason 'noisy fan'
  argosy node cordon -l rack=r7 --reason 'power work' --dry-run
  argosy node list --health DEGRADED -o name | xargs argosy node cordon --yes")]
pub(super) struct Cordon {
    #[command(flatten)]
    pub(super) act: Act,
    #[command(flatten)]
    pub(super) waiting: Waiting,
}

/// Put nodes back into service; takes a drain back too.
#[derive(Args, Debug)]
#[command(after_help = "\
What events found wrong with the node counts as looked at; checks that fail still do.

Examples:
  argosy node uncordon gpu-17 --reason 'fan replaced'
  argosy node uncordon -l rack=r7 --yes --wait")]
pub(super) struct Uncordon {
    #[command(flatten)]
    pub(super) act: Act,
    #[command(flatten)]
    pub(super) waiting: Waiting,
}

/// Give nodes no new work, and let what runs end, by a deadline.
#[derive(Args, Debug)]
#[command(after_help = "\
A drain ends as Drained (all work has left), Forced (it was ended at the deadline, with --force), TimedOut
(something still runs) or Cancelled. Exit code 0 means Drained or Forced.

Examples:
  argosy node drain gpu-17 --wait
  argosy node drain gpu-17 --drain-for 2h --force --reason 'new board' --wait
  argosy node drain --pool h100 -l rack=r7 --reason 'power work' --dry-run
  argosy node drain -l rack=r7 --reason 'power work' --over-budget")]
pub(super) struct Drain {
    #[command(flatten)]
    pub(super) act: Act,
    /// How long it may take; the pool's setting without it.
    #[arg(long, value_name = "DURATION")]
    pub(super) drain_for: Option<Duration>,
    /// End what still runs at the deadline.
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) waiting: Waiting,
    #[command(flatten)]
    pub(super) budget: OverBudget,
}

/// Run a diagnostic on nodes, and show what came of it.
#[derive(Args, Debug)]
#[command(after_help = "\
Waits for the result. Every test but quick needs the GPUs for itself: drain the node first.

Examples:
  argosy node diagnose gpu-17
  argosy node diagnose gpu-17 --test memory --seconds 300 -o json
  argosy node diagnose -l rack=r7 --no-wait --yes")]
pub(super) struct Diagnose {
    #[command(flatten)]
    pub(super) act: Act,
    /// Which test.
    #[arg(long, value_enum, default_value_t, value_name = "TEST")]
    pub(super) test: Test,
    /// How long it may run.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(super) seconds: Option<u32>,
    /// Only on this GPU, counted from 0.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub(super) gpu: Option<u32>,
    /// How many products or copies.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) runs: Option<u32>,
    /// Only tell the nodes; `argosy command wait` shows the results.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "1h30m", value_name = "DURATION", conflicts_with = "no_wait")]
    pub(super) timeout: Duration,
    #[command(flatten)]
    pub(super) budget: OverBudget,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Test {
    /// Seconds, beside what runs.
    #[default]
    Quick,
    /// Writes and reads all memory of the GPUs.
    Memory,
    /// Between host and GPUs, and between GPUs.
    Bandwidth,
    /// Arithmetic, compared with known results.
    Compute,
    /// Everything at full power for as long as it may.
    Stress,
}

impl Test {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Test::Quick => "quick",
            Test::Memory => "memory",
            Test::Bandwidth => "bandwidth",
            Test::Compute => "compute",
            Test::Stress => "stress",
        }
    }
}

/// Stop nodes for good; they take no work and no commands any more.
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing brings a terminated node back. `argosy node delete` forgets it, so that another machine may
register under its id. Asks before it does, naming the context. Without a terminal, --yes is needed.

Examples:
  argosy node terminate gpu-17 --reason 'returned to the cloud'
  argosy node terminate -l rack=r7 --reason 'rack is sold' --dry-run")]
pub(super) struct Terminate {
    #[command(flatten)]
    pub(super) act: Act,
    /// Do not let the agent finish what it is doing.
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) waiting: Waiting,
    #[command(flatten)]
    pub(super) budget: OverBudget,
}

/// Forget nodes that are terminated or unreachable; they may register again.
#[derive(Args, Debug)]
#[command(after_help = "\
Asks before it does, naming the context. Without a terminal, --yes is needed.

Examples:
  argosy node delete gpu-17
  argosy node delete gpu-17 --force --reason 'moved to another control plane' --yes
  argosy node delete --status TERMINATED --yes")]
pub(super) struct Delete {
    #[command(flatten)]
    pub(super) targets: Targets,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Forget it although it is alive.
    #[arg(long, requires = "reason")]
    pub(super) force: bool,
    /// Why; kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

/// Keep a node's machine: nothing terminates it until the label is off, or an admin forces it.
#[derive(Args, Debug)]
#[command(after_help = "\
Puts the label argosy.dev/protected on the node. A pool then shrinks, updates and replaces around it, and does not
replace it when it is sick. The same label on a pool or a cluster keeps that, and its size.

Examples:
  argosy node protect gpu-17 --reason 'runs the acceptance test until Friday'
  argosy nodepool patch prod/h100 -l argosy.dev/protected=true")]
pub(super) struct Protect {
    /// Which, by id.
    #[arg(required = true, value_name = "NODE")]
    pub(super) nodes: Vec<String>,
    /// Why; kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
}

/// Take the label argosy.dev/protected off nodes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy node unprotect gpu-17 --reason 'the acceptance test is over'")]
pub(super) struct Unprotect {
    /// Which, by id.
    #[arg(required = true, value_name = "NODE")]
    pub(super) nodes: Vec<String>,
    /// Why; kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
}

/// Show what happened on a node and what the policy made of it, the latest last.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy node events gpu-17
  argosy node events gpu-17 --since 2h --follow
  argosy node events gpu-17 --limit 500 -o json")]
pub(super) struct Events {
    #[command(flatten)]
    pub(super) timeline: Timeline,
    /// Then show what happens, until Ctrl-C.
    #[arg(short, long)]
    pub(super) follow: bool,
}

/// Show everything that was written down about a node, the latest last.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy node history gpu-17
  argosy node history gpu-17 --since 1d -o wide")]
pub(super) struct History {
    #[command(flatten)]
    pub(super) timeline: Timeline,
}

/// Which part of a node's past.
#[derive(Args, Debug)]
pub(super) struct Timeline {
    /// The node's id.
    #[arg(value_name = "NODE")]
    pub(super) node: String,
    /// Only what is not older than this.
    #[arg(long, value_name = "DURATION")]
    pub(super) since: Option<Duration>,
    /// At most so many, the latest. Without it 50, or 1000 with --since.
    #[arg(long, value_name = "COUNT")]
    pub(super) limit: Option<usize>,
}

/// Nodes by id, or those that match.
#[derive(Args, Debug)]
pub(super) struct Targets {
    /// Which, by id; `node/ID` as -o name prints it is fine too.
    #[arg(value_name = "NODE")]
    pub(super) nodes: Vec<String>,
    #[command(flatten)]
    pub(super) filter: Filter,
}

/// What telling nodes something has in common.
#[derive(Args, Debug)]
pub(super) struct Act {
    #[command(flatten)]
    pub(super) targets: Targets,
    /// Why; kept with the command and in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Show what would be done, let the server check it, and do nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
}

/// Whether to wait for the outcome.
#[derive(Args, Debug)]
pub(super) struct Waiting {
    /// Wait until the nodes have done it, showing how far each is.
    #[arg(long)]
    pub(super) wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "2h", value_name = "DURATION", requires = "wait")]
    pub(super) timeout: Duration,
}

impl Waiting {
    pub(super) fn time(&self) -> Option<Duration> {
        self.wait.then_some(self.timeout)
    }
}

/// Whether the disruption budgets may be exceeded.
#[derive(Args, Debug)]
pub(super) struct OverBudget {
    /// Take more nodes out of service at once than the disruption budgets allow; for admins.
    #[arg(long, requires = "reason")]
    pub(super) over_budget: bool,
}

/// Which nodes.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Which nodes")]
pub(in crate::cmd) struct Filter {
    /// Only those of this pool.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    #[arg(
        long,
        value_name = "STATUS",
        ignore_case = true,
        value_parser = words(NodeStatus::ALL, NodeStatus::as_str),
        hide_possible_values = true,
        help = "Only those with this status: ACTIVE, UNHEALTHY, CORDONED, DRAINING or TERMINATED"
    )]
    status: Option<String>,
    #[arg(
        long,
        value_name = "HEALTH",
        ignore_case = true,
        value_parser = words(HealthStatus::ALL, HealthStatus::as_str),
        hide_possible_values = true,
        help = "Only those whose health is this: HEALTHY, DEGRADED, UNHEALTHY or UNKNOWN"
    )]
    health: Option<String>,
    #[arg(
        long,
        value_name = "LIVENESS",
        ignore_case = true,
        value_parser = words(Liveness::ALL, Liveness::as_str),
        hide_possible_values = true,
        help = "Only those whose liveness is this: Fresh, Suspect or Unreachable"
    )]
    liveness: Option<String>,
    /// Only those of this provider: gcp, aws, …
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Only those in this region.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Only those in this zone.
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    #[arg(
        short = 'l',
        long = "label",
        value_name = "KEY=VALUE",
        value_delimiter = ',',
        help = "Only those with this label, or with KEY!=VALUE without it; may be repeated"
    )]
    labels: Vec<String>,
    /// Only those that match, in the API's search language.
    #[arg(long, visible_alias = "filter", value_name = "SEARCH")]
    search: Option<String>,
}

fn words<W: Copy>(all: &[W], word: fn(W) -> &'static str) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(|one| word(*one)))
}

impl Filter {
    /// The parameters of a list.
    pub(in crate::cmd) fn query(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut query = Vec::new();
        let status = self.status.as_deref().map(|word| exact(word, NodeStatus::ALL));
        let health = self.health.as_deref().map(|word| exact(word, HealthStatus::ALL));
        let liveness = self.liveness.as_deref().map(|word| exact(word, Liveness::ALL));
        let plain = [
            ("pool", self.pool.clone()),
            ("status", status),
            ("health", health),
            ("liveness", liveness),
            ("provider", self.provider.clone()),
            ("region", self.region.clone()),
            ("zone", self.zone.clone()),
        ];
        query.extend(plain.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let (mut with, mut search) = (Vec::new(), Vec::new());
        search.extend(self.search.as_ref().map(|search| format!("({search})")));
        for label in &self.labels {
            match selector(label)? {
                (key, true, value) => with.push(format!("{key}:{value}")),
                (key, false, value) => search.push(format!("not labels.{key} = '{value}'")),
            }
        }
        if !with.is_empty() {
            query.push(("labels", with.join(",")));
        }
        match (search.as_slice(), &self.search) {
            ([], _) => {}
            // As it was typed, so that a complaint names the right place.
            ([_], Some(search)) => query.push(("search", search.clone())),
            (several, _) => query.push(("search", several.join(" and "))),
        }
        Ok(query)
    }

    /// Whether it finds every node.
    pub(in crate::cmd) fn is_empty(&self) -> bool {
        let Self { pool, status, health, liveness, provider, region, zone, labels, search } = self;
        let texts = [pool, status, health, liveness, provider, region, zone, search];
        labels.is_empty() && texts.iter().all(|text| text.is_none())
    }
}

/// The word as the API spells it; people type it in any way.
fn exact<W: ToString>(word: &str, all: &[W]) -> String {
    let mut known = all.iter().map(ToString::to_string);
    known.find(|known| known.eq_ignore_ascii_case(word)).unwrap_or_else(|| word.to_owned())
}

/// `KEY=VALUE`, or `KEY!=VALUE` for those without it.
fn selector(text: &str) -> Result<(&str, bool, &str), Failure> {
    let parts = match text.split_once('=') {
        Some((key, value)) => match key.strip_suffix('!') {
            Some(key) => Some((key, false, value)),
            None => Some((key, true, value.strip_prefix('=').unwrap_or(value))),
        },
        None => None,
    };
    match parts {
        Some((key, equal, value)) if !key.is_empty() && !value.contains(['\'', '"', '`']) => {
            Ok((key, equal, value))
        }
        Some(_) | None => {
            Err(Failure::usage(format!("`{text}` is not of the form KEY=VALUE or KEY!=VALUE")))
        }
    }
}

#[cfg(test)]
mod tests;
