//! What `argosy cluster` and `argosy nodepool` understand.

use super::Noun;
use crate::cmd::{pool, wait};
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};

/// Create, show, change and delete clusters.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cluster create alpha --provider gcp --region us-east1 --wait
  argosy cluster list -l team=ml --filter \"spec.region = 'us-east1'\"
  argosy cluster patch alpha --set region=us-west1
  argosy cluster delete alpha")]
pub(crate) struct ClusterVerb {
    #[command(subcommand)]
    pub(super) verb: ClusterVerbs,
}

/// Create, show, change and delete the node pools of a cluster.
#[derive(Args, Debug)]
#[command(after_help = "\
A node pool is named by -c CLUSTER and its NAME, by CLUSTER/NAME, or by its uid.

Examples:
  argosy nodepool create workers -c alpha --machine-type n1-standard-4 --nodes 3 --wait
  argosy nodepool list -c alpha
  argosy nodepool patch alpha/workers --set nodeCount=5
  argosy nodepool statuses alpha/workers
  argosy nodepool explain alpha/workers")]
pub(crate) struct NodepoolVerb {
    /// The cluster, by name or id.
    #[arg(short, long, global = true, value_name = "CLUSTER")]
    pub(super) cluster: Option<String>,
    #[command(subcommand)]
    pub(super) verb: NodepoolVerbs,
}

#[derive(Subcommand, Debug)]
pub(super) enum ClusterVerbs {
    Create(CreateCluster),
    #[command(flatten)]
    Rest(Common),
}

#[derive(Subcommand, Debug)]
pub(super) enum NodepoolVerbs {
    Create(CreateNodepool),
    Explain(pool::Explain),
    Simulate(pool::Simulate),
    Resume(pool::Resume),
    #[command(flatten)]
    Rest(Common),
}

/// What can be done with clusters and node pools alike.
#[derive(Subcommand, Debug)]
pub(super) enum Common {
    Get(Get),
    #[command(visible_alias = "ls")]
    List(List),
    Patch(Patch),
    #[command(visible_alias = "rm")]
    Delete(Delete),
    Statuses(Statuses),
    Watch(Watch),
}

/// Create a cluster.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cluster create alpha --provider gcp --region us-east1
  argosy cluster create alpha --provider aws --region us-east-1 -l team=ml --wait --timeout 10m
  argosy cluster create alpha --spec '{\"provider\":\"gcp\",\"region\":\"us-east1\"}' --dry-run")]
pub(super) struct CreateCluster {
    /// The cloud: gcp, aws, …
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// The provider's region.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    #[command(flatten)]
    pub(super) create: Create,
}

/// Create a node pool in a cluster.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy nodepool create workers -c alpha --machine-type n1-standard-4 --nodes 3
  argosy nodepool create gpus -c alpha --machine-type a2-highgpu-8g --nodes 2 -l team=ml --wait")]
pub(super) struct CreateNodepool {
    /// The provider's machine type.
    #[arg(long, value_name = "TYPE")]
    machine_type: Option<String>,
    /// How many nodes.
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u32>,
    #[command(flatten)]
    pub(super) create: Create,
}

impl CreateCluster {
    pub(super) fn spec(&self) -> Map<String, Value> {
        let given = [("provider", &self.provider), ("region", &self.region)];
        let given = given.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
        given.map(|(key, value)| (key.to_owned(), Value::String(value))).collect()
    }
}

impl CreateNodepool {
    pub(super) fn spec(&self) -> Map<String, Value> {
        let mut spec = Map::new();
        if let Some(machine) = &self.machine_type {
            spec.insert("machineType".to_owned(), Value::String(machine.clone()));
        }
        if let Some(nodes) = self.nodes {
            spec.insert("nodeCount".to_owned(), Value::from(nodes));
        }
        spec
    }
}

/// What creating a cluster and creating a node pool have in common.
#[derive(Args, Debug)]
pub(super) struct Create {
    /// Its name: lower-case letters, digits and hyphens, at most 63 characters.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) changes: Changes,
    #[command(flatten)]
    pub(super) labels: Labels,
    /// Check everything and create nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) waiting: Waiting,
}

/// Show resources by name or id.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cluster get alpha
  argosy cluster get alpha -o yaml
  argosy cluster get alpha --watch
  argosy nodepool get alpha/workers -o json")]
pub(super) struct Get {
    /// Names or ids.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// List resources.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cluster list
  argosy cluster list -l team=ml,env=prod --sort name
  argosy cluster list --phase Ready -o name
  argosy cluster list --filter \"labels.team = 'ml' and spec.region != 'us-east1'\"
  argosy nodepool list -c alpha --watch")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Show resources and their changes as they happen.
#[derive(Args, Debug)]
#[command(after_help = "\
In place on a terminal, as JSON lines in a pipe. A restart of the server does not end it.

Examples:
  argosy cluster watch
  argosy cluster watch alpha
  argosy nodepool watch -c alpha -l team=ml | jq .type")]
pub(super) struct Watch {
    /// Only this one.
    pub(super) name: Option<String>,
    #[command(flatten)]
    pub(super) selection: Selection,
}

/// Which resources a list shows.
#[derive(Args, Debug)]
pub(super) struct Selection {
    #[arg(
        short = 'l',
        long = "label",
        value_name = "KEY=VALUE",
        value_delimiter = ',',
        help = "Only those with this label; may be repeated"
    )]
    labels: Vec<String>,
    /// Only those in this phase: Pending, 'Not Ready', Ready or Terminating.
    #[arg(long, value_name = "PHASE")]
    phase: Option<String>,
    /// Only those that match, in the API's search language.
    #[arg(long, value_name = "SEARCH")]
    filter: Option<String>,
    /// In this order: a field, or -FIELD for the reverse; several with commas.
    #[arg(long, value_name = "FIELD", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
}

impl Selection {
    /// The parameters of a list.
    pub(super) fn query(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut query = Vec::new();
        if !self.labels.is_empty() {
            let labels: Result<Vec<String>, Failure> = self
                .labels
                .iter()
                .map(|label| split(label).map(|(key, value)| format!("{key}:{value}")))
                .collect();
            query.push(("labels", labels?.join(",")));
        }
        if let Some(phase) = &self.phase {
            query.push(("phase", phase.clone()));
        }
        if let Some(filter) = &self.filter {
            query.push(("search", filter.clone()));
        }
        if !self.sort.is_empty() {
            let order: Vec<String> = self
                .sort
                .iter()
                .map(|field| match field.strip_prefix('-') {
                    Some(field) => format!("{field} desc"),
                    None => format!("{field} asc"),
                })
                .collect();
            query.push(("order", order.join(",")));
        }
        Ok(query)
    }
}

/// Change the spec or the labels of a resource.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cluster patch alpha --set region=us-west1 --wait
  argosy cluster patch alpha -l team=ml -l old-
  argosy nodepool patch alpha/workers --set nodeCount=8 --dry-run
  argosy nodepool patch alpha/workers --unset autoscaling --if-match 1042
  argosy nodepool patch alpha/workers --set nodeCount=2 --override-protection --reason 'two are enough'")]
pub(super) struct Patch {
    /// Its name or id.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) changes: Changes,
    #[command(flatten)]
    pub(super) labels: Labels,
    /// What --spec names replaces the whole spec, instead of being merged into it.
    #[arg(long)]
    pub(super) replace: bool,
    /// Only if the resource is still at this revision.
    #[arg(long, value_name = "REVISION")]
    pub(super) if_match: Option<u64>,
    /// Check everything and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Also if it makes a pool smaller that the label argosy.dev/protected keeps; for admins.
    #[arg(long, requires = "reason")]
    pub(super) override_protection: bool,
    /// Why; kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    #[command(flatten)]
    pub(super) waiting: Waiting,
}

/// Delete resources; a cluster goes with its node pools.
#[derive(Args, Debug)]
#[command(after_help = "\
Asks before it does, naming the context. Without a terminal, --yes is needed.

Examples:
  argosy cluster delete alpha
  argosy cluster delete alpha --yes --wait
  argosy nodepool delete alpha/workers
  argosy nodepool delete alpha/workers --now --reason 'nothing runs there that is needed'
  argosy cluster delete alpha --override-protection --reason 'moved to beta'
  argosy cluster delete alpha --force --reason 'the cloud account is closed'")]
pub(super) struct Delete {
    /// Names or ids.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Remove the record although its cleanup is not confirmed.
    #[arg(long, requires = "reason")]
    pub(super) force: bool,
    /// Terminate its machines without draining their nodes, also if it is being deleted already; for admins.
    #[arg(long, requires = "reason")]
    pub(super) now: bool,
    /// Also if the label argosy.dev/protected keeps it; for admins.
    #[arg(long, requires = "reason")]
    pub(super) override_protection: bool,
    /// Why; kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    #[command(flatten)]
    pub(super) waiting: Waiting,
}

/// Show what each adapter says about a resource.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cluster statuses alpha
  argosy nodepool statuses alpha/workers -o json
  argosy cluster statuses alpha --history --limit 20")]
pub(super) struct Statuses {
    /// Its name or id.
    pub(super) name: String,
    /// Show earlier reports too, newest first.
    #[arg(long)]
    pub(super) history: bool,
    /// How many reports of the history.
    #[arg(long, default_value_t = 50, value_name = "COUNT", requires = "history")]
    pub(super) limit: u32,
}

/// Members of a spec.
#[derive(Args, Debug)]
pub(super) struct Changes {
    /// The spec as a JSON or YAML object, or @FILE.
    #[arg(long, value_name = "OBJECT|@FILE")]
    spec: Option<String>,
    /// One member of the spec, with dots for deeper ones; the value is JSON, or else text.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Remove a member of the spec.
    #[arg(long, value_name = "PATH")]
    unset: Vec<String>,
}

impl Changes {
    /// Puts what was given into a spec. In a patch, a member to be removed is `null`.
    pub(super) fn apply(&self, spec: &mut Map<String, Value>, patch: bool) -> Result<(), Failure> {
        if let Some(text) = &self.spec {
            spec.extend(object(text)?);
        }
        for change in &self.set {
            let (path, value) = split(change)?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
            put(spec, path, Some(value))?;
        }
        for path in &self.unset {
            put(spec, path, patch.then_some(Value::Null))?;
        }
        Ok(())
    }
}

/// Labels to set, or to remove.
#[derive(Args, Debug)]
pub(super) struct Labels {
    #[arg(
        short = 'l',
        long = "label",
        value_name = "KEY=VALUE",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help = "A label; KEY- removes one; may be repeated"
    )]
    labels: Vec<String>,
}

impl Labels {
    /// The labels of something new.
    pub(super) fn pairs(&self) -> Result<Vec<(String, String)>, Failure> {
        let pairs = self.labels.iter().map(|label| split(label));
        pairs.map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned()))).collect()
    }

    /// The changes of labels, as a merge patch.
    pub(super) fn changes(&self) -> Result<Map<String, Value>, Failure> {
        let change = |label: &String| match label.strip_suffix('-') {
            Some(key) if !label.contains('=') => Ok((key.to_owned(), Value::Null)),
            Some(_) | None => {
                split(label).map(|(key, value)| (key.to_owned(), Value::String(value.to_owned())))
            }
        };
        self.labels.iter().map(change).collect()
    }
}

/// Whether to wait for the outcome.
#[derive(Args, Debug)]
pub(super) struct Waiting {
    /// Wait until it is done, showing what each adapter does.
    #[arg(long)]
    wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "30m", value_name = "DURATION", requires = "wait")]
    timeout: Duration,
}

impl Waiting {
    pub(super) async fn run(
        &self,
        session: &Session,
        noun: &Noun,
        name: &str,
        goal: wait::Goal,
    ) -> Result<Exit, Failure> {
        match self.wait {
            true => wait::until(session, noun, name, &goal, self.timeout, false).await,
            false => Ok(Exit::Ok),
        }
    }
}

/// `KEY=VALUE`.
fn split(text: &str) -> Result<(&str, &str), Failure> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key, value)),
        Some(_) | None => Err(Failure::usage(format!("`{text}` is not of the form KEY=VALUE"))),
    }
}

/// A JSON or YAML object, given as text or as @FILE.
fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    let content = match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("--spec: cannot read {file}")).why(error))?,
        None => text.to_owned(),
    };
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&content, options).map_err(|error| {
        Failure::usage("--spec is not an object").why(crate::output::clean(&error.to_string()))
    })
}

/// Puts a value at a path with dots; `None` takes it out.
fn put(spec: &mut Map<String, Value>, path: &str, value: Option<Value>) -> Result<(), Failure> {
    let mut names: Vec<&str> = path.split('.').collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err(Failure::usage(format!("`{path}` is not a path: write NAME or NAME.NAME")));
    }
    let Some(last) = names.pop() else { return Ok(()) };
    let mut place = spec;
    for name in names {
        let member = place.entry(name).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = member else {
            return Err(Failure::usage(format!("`{path}`: `{name}` is not an object")));
        };
        place = inner;
    }
    match value {
        Some(value) => place.insert(last.to_owned(), value),
        None => place.remove(last),
    };
    Ok(())
}

#[cfg(test)]
mod tests;
