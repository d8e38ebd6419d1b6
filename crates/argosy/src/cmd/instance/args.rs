//! What `argosy instance` understands.

use argosy_api::instance::InstanceState;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

/// See the machines that are bought, and return or adopt them by hand.
#[derive(Args, Debug)]
#[command(after_help = "\
An instance is what is paid for; the node is what registers from it, under the same id.

Examples:
  argosy instance list --pool h100
  argosy instance get h100-0f3k9a2m
  argosy instance list --orphans
  argosy instance terminate h100-0f3k9a2m --reason 'wrong zone'
  argosy nodepool explain prod/h100")]
pub(crate) struct Verb {
    #[command(subcommand)]
    pub(super) verb: Verbs,
}

#[derive(Subcommand, Debug)]
pub(super) enum Verbs {
    #[command(visible_alias = "ls")]
    List(List),
    Get(Get),
    Adopt(Adopt),
    #[command(visible_alias = "rm")]
    Terminate(Terminate),
}

/// List instances.
#[derive(Args, Debug)]
#[command(after_help = "\
Those that are over are shown for a day after; --open leaves them out.

Examples:
  argosy instance list --open
  argosy instance list --pool h100 --state Failed -o wide
  argosy instance list --search \"cost_per_hour > 50 and not spot = true\" --order -cost_per_hour
  argosy instance list --watch
  argosy instance list --orphans")]
pub(super) struct List {
    /// Only those of this pool, by the name that nodes carry.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", value_parser = states(), ignore_case = true)]
    state: Option<String>,
    /// Only those of this provider.
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Only those that are not over.
    #[arg(long)]
    open: bool,
    /// Only those that a search finds.
    #[arg(long, visible_alias = "filter", value_name = "SEARCH")]
    search: Option<String>,
    /// In this order: a field, or -FIELD for the reverse; several with commas. By pool without it.
    #[arg(
        long,
        visible_alias = "sort",
        value_name = "FIELD",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    order: Vec<String>,
    /// The machines instead that carry our tags and that no record knows.
    #[arg(
        long,
        conflicts_with_all = ["pool", "state", "provider", "open", "search", "order", "watch"]
    )]
    pub(super) orphans: bool,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    pub(super) watch: bool,
}

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(InstanceState::ALL.iter().map(|state| state.as_str()))
}

impl List {
    /// What is asked of the API.
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        let given = [("pool", &self.pool), ("provider", &self.provider)];
        query.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        // However it was written: the API is strict about capitals.
        let state = self.state.as_deref().and_then(|word| {
            InstanceState::ALL.iter().find(|state| state.as_str().eq_ignore_ascii_case(word))
        });
        query.extend(state.map(|state| ("state", state.as_str().to_owned())));
        let search = match (&self.search, self.open) {
            (Some(search), true) => Some(format!("open = true and ({search})")),
            (Some(search), false) => Some(search.clone()),
            (None, true) => Some("open = true".to_owned()),
            (None, false) => None,
        };
        query.extend(search.map(|search| ("search", search)));
        let order: Vec<String> = self
            .order
            .iter()
            .map(|field| match field.strip_prefix('-') {
                Some(field) => format!("{field} desc"),
                None => format!("{field} asc"),
            })
            .collect();
        if !order.is_empty() {
            query.push(("order", order.join(",")));
        }
        query
    }
}

/// Describe instances: what was bought and why, what became of it, and what it costs.
#[derive(Args, Debug)]
#[command(after_help = "\
An instance is named by its id, or by what its provider calls the machine.

Examples:
  argosy instance get h100-0f3k9a2m
  argosy instance get i-0abc123 -o json
  argosy instance get h100-0f3k9a2m --watch")]
pub(super) struct Get {
    /// Which.
    #[arg(required = true, value_name = "INSTANCE")]
    pub(super) instances: Vec<String>,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Make a machine that no record knows one of a node pool's.
#[derive(Args, Debug)]
#[command(after_help = "\
It counts as the pool's from then on; if the pool then has too many, it lets one go.

Examples:
  argosy instance list --orphans
  argosy instance adopt aws/i-0abc123 --pool prod/h100 --reason 'lost with the old database'")]
pub(super) struct Adopt {
    /// The machine, as `argosy instance list --orphans -o name` prints it.
    #[arg(value_name = "PROVIDER/MACHINE")]
    pub(super) orphan: String,
    /// The node pool: CLUSTER/NAME, NAME if only one has it, or its uid.
    #[arg(long, value_name = "POOL")]
    pub(super) pool: String,
    /// Why; it is kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
}

/// Return machines to their provider.
#[derive(Args, Debug)]
#[command(after_help = "\
What runs there is lost: `argosy node drain` lets it end first. A pool that then has too few buys another;
to have fewer, change its nodeCount.

Examples:
  argosy instance terminate h100-0f3k9a2m --reason 'wrong zone'
  argosy instance terminate --orphan aws/i-0abc123 --reason 'nobody needs it'")]
pub(super) struct Terminate {
    /// Which, by id or by what the provider calls the machine.
    #[arg(value_name = "INSTANCE", required_unless_present = "orphan")]
    pub(super) instances: Vec<String>,
    /// A machine that no record knows instead.
    #[arg(long, value_name = "PROVIDER/MACHINE", conflicts_with_all = ["instances", "force", "over_budget"])]
    pub(super) orphan: Option<String>,
    /// Why; it is kept with the record and in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// Also what the label argosy.dev/protected protects; for admins.
    #[arg(long)]
    pub(super) force: bool,
    /// Take more nodes out of service at once than the disruption budgets allow; for admins.
    #[arg(long)]
    pub(super) over_budget: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
}
