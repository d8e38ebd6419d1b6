//! One command's conversation with a server: who it is, how answers are printed, what errors mean.

use crate::context::{Connection, Contexts, Target, path};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Screen, clean, note};
use argosy_api::client::{Client, ClientError, Collection};
use argosy_api::error::{OVER_BUDGET, Problem};
use argosy_api::instance::Instance;
use argosy_api::node::Node;
use argosy_api::resource::Resource;
use argosy_control::clock::Clock;
use argosy_core::nearest::nearest;
use clap::Args;
use std::io::Write;

/// How many resources are read at a time.
const PAGE_SIZE: &str = "100";

/// How many nodes are read at a time: the most the API gives. Fleets have thousands of them.
const NODE_PAGE_SIZE: &str = "1000";

/// How many pages are read to find the name somebody meant.
const SUGGESTION_PAGES_MAX: usize = 5;

/// Flags of every command that prints what a server answers.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Printing {
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Print tables without their first line.
    #[arg(long, global = true)]
    pub(crate) no_headers: bool,
}

/// A server, and the terminal in front of it.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) target: Target,
    pub(crate) screen: Screen,
    pub(crate) format: Format,
    pub(crate) headers: bool,
    pub(crate) clock: Clock,
}

impl Session {
    pub(crate) fn open(
        connection: &Connection,
        printing: &Printing,
        screen: Screen,
    ) -> Result<Self, Failure> {
        let token = std::env::var("ARGOSY_TOKEN").ok();
        let target = Contexts::load(&path()?)?.target(connection, token)?;
        let client = Client::new(&target.server, target.token.clone())
            .map_err(|error| Failure::failed("cannot set up the HTTP client").why(error))?;
        Ok(Self {
            client,
            format: printing.output.or(target.output).unwrap_or_default(),
            headers: !printing.no_headers,
            target,
            screen,
            clock: Clock::System,
        })
    }

    /// What a client's error means for the person, and for the exit code.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        match error {
            ClientError::Problem(problem) => refused(&problem, &self.target),
            error @ ClientError::Unreachable { .. } => Failure::new(
                Exit::Unreachable,
                format!("cannot reach the server at {}", self.target.server),
            )
            .why(clean(&error.to_string()))
            .fix("start one here with `argosy up`, or choose another with --server or `argosy context use`"),
            ClientError::Unexpected { url, status, text } => {
                let exit = if matches!(status, 502..=504) { Exit::Unreachable } else { Exit::Failed };
                Failure::new(exit, format!("{} does not answer like an Argosy server", clean(&url)))
                    .why(format!("status {status}: {}", clean(&text)))
                    .fix("check the address: `argosy context show`")
            }
        }
    }

    /// As `failure`; where something was not found, with the name that was probably meant.
    pub(crate) async fn missing(
        &self,
        error: ClientError,
        of: Collection<'_>,
        reference: &str,
    ) -> Failure {
        let absent = error.status() == Some(404);
        let mut failure = self.failure(error);
        if absent {
            failure.fix = match self.suggestion(of, reference).await {
                Some(near) => vec![format!("did you mean `{}`?", clean(&near))],
                None => vec![format!("`argosy {}` shows which there are", lists(of))],
            };
        }
        failure
    }

    async fn suggestion(&self, of: Collection<'_>, reference: &str) -> Option<String> {
        let mut names = Vec::new();
        for page in 1..=SUGGESTION_PAGES_MAX {
            let page = page.to_string();
            let query = [("page", page.as_str()), ("size", PAGE_SIZE)];
            let list = self.client.list(of, &query).await.ok()?;
            names.extend(list.items.into_iter().map(|item| item.name));
            if list.total <= names.len() {
                break;
            }
        }
        nearest(reference, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// Every resource that matches, page by page, and the revision of the first page.
    pub(crate) async fn list_all(
        &self,
        of: Collection<'_>,
        query: &[(&str, &str)],
    ) -> Result<(Vec<Resource>, u64), Failure> {
        let mut items: Vec<Resource> = Vec::new();
        let mut revision = None;
        for page in 1_usize.. {
            let number = page.to_string();
            let mut query = query.to_vec();
            query.extend([("page", number.as_str()), ("size", PAGE_SIZE)]);
            let list = self.client.list(of, &query).await.map_err(|error| self.failure(error))?;
            // The first page's: what changed while the others were read is then told again, not lost.
            revision.get_or_insert(list.revision);
            let end = list.items.is_empty();
            items.extend(list.items);
            if end || list.total <= items.len() {
                break;
            }
        }
        // Somebody may have created one between two pages, which pushes an item to the next page.
        let mut seen = std::collections::HashSet::new();
        items.retain(|item| seen.insert(item.uid.clone()));
        Ok((items, revision.unwrap_or(0)))
    }

    /// Every node that matches, page by page, and the revision of the first page.
    pub(crate) async fn all_nodes(
        &self,
        query: &[(&str, &str)],
    ) -> Result<(Vec<Node>, u64), Failure> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut revision = None;
        for page in 1_usize.. {
            let number = page.to_string();
            let mut query = query.to_vec();
            query.extend([("page", number.as_str()), ("size", NODE_PAGE_SIZE)]);
            let list = self.client.nodes(&query).await.map_err(|error| self.failure(error))?;
            revision.get_or_insert(list.revision);
            let end = list.items.is_empty();
            nodes.extend(list.items);
            if end || list.total <= nodes.len() {
                break;
            }
        }
        // As in `list_all`.
        let mut seen = std::collections::HashSet::new();
        nodes.retain(|node| seen.insert(node.id.clone()));
        Ok((nodes, revision.unwrap_or(0)))
    }

    /// Every instance that matches, page by page, and the revision of the first page.
    pub(crate) async fn all_instances(
        &self,
        query: &[(&str, &str)],
    ) -> Result<(Vec<Instance>, u64), Failure> {
        let mut instances: Vec<Instance> = Vec::new();
        let mut revision = None;
        for page in 1_usize.. {
            let number = page.to_string();
            let mut query = query.to_vec();
            query.extend([("page", number.as_str()), ("size", NODE_PAGE_SIZE)]);
            let list = self.client.instances(&query).await.map_err(|error| self.failure(error))?;
            revision.get_or_insert(list.revision);
            let end = list.items.is_empty();
            instances.extend(list.items);
            if end || list.total <= instances.len() {
                break;
            }
        }
        // As in `list_all`.
        let mut seen = std::collections::HashSet::new();
        instances.retain(|instance| seen.insert(instance.id.clone()));
        Ok((instances, revision.unwrap_or(0)))
    }

    /// As `failure`; where an instance was not found, with the one that was probably meant.
    pub(crate) async fn missing_instance(&self, error: ClientError, id: &str) -> Failure {
        let absent = error.status() == Some(404);
        let failure = self.failure(error);
        if !absent {
            return failure;
        }
        // Without a suggestion the answer is still right.
        let list = self.client.instances(&[("size", NODE_PAGE_SIZE)]).await;
        let known = list.map(|list| list.items).unwrap_or_default();
        let near = nearest(id, known.iter().map(|instance| instance.id.as_str()));
        let fix = match near {
            Some(near) => format!("did you mean `{}`?", clean(near)),
            None => "`argosy instance list` shows which there are; those that are over are kept for a day"
                .to_owned(),
        };
        Failure { fix: vec![fix], ..failure }
    }

    /// As `failure`; where a node was not found, with the one that was probably meant.
    pub(crate) async fn missing_node(&self, error: ClientError, id: &str) -> Failure {
        let absent = error.status() == Some(404);
        let failure = self.failure(error);
        if !absent {
            return failure;
        }
        let mut ids = Vec::new();
        for page in 1..=SUGGESTION_PAGES_MAX {
            let page = page.to_string();
            let query = [("page", page.as_str()), ("size", NODE_PAGE_SIZE)];
            // Without a suggestion the answer is still right.
            let Ok(list) = self.client.nodes(&query).await else { break };
            ids.extend(list.items.into_iter().map(|node| node.id));
            if list.total <= ids.len() {
                break;
            }
        }
        match nearest(id, ids.iter().map(String::as_str)) {
            Some(near) => {
                let near = format!("did you mean `{}`?", clean(near));
                Failure { fix: vec![near], ..failure }
            }
            // The server says how a node comes to be known.
            None => failure,
        }
    }

    /// Asks before something is destroyed. `yes` answers for the person.
    pub(crate) fn confirm(&self, question: &str, yes: bool) -> Result<(), Failure> {
        confirm(&self.screen, question, yes)
    }
}

/// The command that lists a collection.
fn lists(of: Collection<'_>) -> String {
    match of {
        Collection::Clusters => "cluster list".to_owned(),
        Collection::NodePools(cluster) => format!("nodepool list -c {}", clean(cluster)),
        Collection::AllNodePools => "nodepool list".to_owned(),
    }
}

/// Asks a question that only `y` or `yes` agrees to; without a terminal that is a refusal.
pub(crate) fn confirm(screen: &Screen, question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !screen.asks {
        return Err(Failure::new(Exit::Refused, "this needs a yes, and nobody is at a terminal")
            .why(clean(question))
            .fix("add --yes if that is what you want"));
    }
    let mut err = std::io::stderr().lock();
    // If the question cannot be shown, nobody will answer it.
    let _ = write!(err, "{} [y/N] ", clean(question)).and_then(|()| err.flush());
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes") {
        return Ok(());
    }
    note("nothing was done");
    Err(Failure::new(Exit::Refused, "not confirmed"))
}

/// The server said no: its words, sorted into what, why and what to do.
fn refused(problem: &Problem, target: &Target) -> Failure {
    let exit = match problem.status {
        401 | 403 => Exit::Auth,
        404 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        502..=504 => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let what = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    if problem.code == OVER_BUDGET.code {
        let failure = Failure::new(Exit::Refused, clean(what));
        let frees = problem.budgets.iter().filter_map(|budget| budget.frees.as_deref());
        let failure = frees.fold(failure, |failure, frees| failure.fix(clean(frees)));
        return failure.fix("or add --over-budget and a --reason, as an admin");
    }
    let mut failure = Failure::new(exit, clean(what));
    for field in &problem.errors {
        let message = clean(&field.message);
        if message != failure.what || 1 < problem.errors.len() {
            failure = failure.why(format!("{}: {message}", clean(&field.field)));
        }
    }
    // The hints about fields and credentials speak of requests; here there are flags and contexts.
    let ours = problem.status == 401 || !problem.errors.is_empty();
    if let Some(hint) = problem.hint.as_ref().filter(|_| !ours) {
        failure = failure.fix(clean(hint));
    }
    if problem.status == 401 {
        failure = failure.fix(match &target.token {
            Some(_) => format!("the token sent to {} is not accepted; set another with `argosy context set`", target.name),
            None => format!("no token was sent to {}; set one with `argosy context set NAME --token-file FILE`, or in ARGOSY_TOKEN", target.name),
        });
    }
    failure.request_id = Some(clean(&problem.trace_id)).filter(|id| !id.is_empty());
    failure
}

#[cfg(test)]
pub(crate) mod tests;
