//! Telling nodes what to do: one, several, or all that match.
//!
//! Flow: the nodes are read; the server says what it would make of it, and where it matters that is shown and asked
//! about; then they are told together. A node that cannot be told does not keep the others from it; what exceeds a
//! disruption budget is refused for all of them, by the server.

use super::args::{Act, Delete, Targets, Test};
use super::plain_id;
use super::table::gpus;
use crate::cmd::command;
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, note, wrap};
use crate::session::Session;
use crate::view::Times;
use argosy_api::client::{ClientError, WriteOptions};
use argosy_api::command::{Command, CommandBatchCreate, CommandCreate, CommandType};
use argosy_api::error::OVER_BUDGET;
use argosy_api::node::Node;
use argosy_api::safety::BudgetImpact;
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::BTreeMap;

/// How many nodes are read or forgotten at once. More would only wait in the server's queue, fewer make a
/// thousand nodes take long on a slow line.
const AT_ONCE: usize = 16;

/// How many nodes one request names: as many as the server takes.
const BATCH_MAX: usize = 500;

/// How many ids a plan names; the rest is counted. More does not fit a screen.
const NAMED_MAX: usize = 20;

/// What nodes are to be told.
#[derive(Clone, Debug)]
pub(super) struct Order {
    kind: CommandType,
    parameters: BTreeMap<String, String>,
    drain_for_seconds: Option<u32>,
    over_budget: bool,
}

impl Order {
    fn new(kind: CommandType) -> Self {
        Self { kind, parameters: BTreeMap::new(), drain_for_seconds: None, over_budget: false }
    }

    pub(super) fn cordon() -> Self {
        Self::new(CommandType::Cordon)
    }

    pub(super) fn uncordon() -> Self {
        Self::new(CommandType::Uncordon)
    }

    pub(super) fn drain(within: Option<Duration>, force: bool) -> Result<Self, Failure> {
        let seconds = within.map(|within| u32::try_from(within.signed().as_secs()));
        let drain_for_seconds = seconds
            .transpose()
            .map_err(|_| Failure::usage("--drain-for is too long").fix("at most 7d"))?;
        Ok(Self { drain_for_seconds, ..Self::new(CommandType::Drain).forced(force) })
    }

    /// `numbers` are the parameters that were given.
    pub(super) fn diagnose(test: Test, numbers: [(&str, Option<u32>); 3]) -> Self {
        let mut order = Self::new(CommandType::RunDiagnostic);
        order.parameters.insert("test".to_owned(), test.word().to_owned());
        let given = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        order.parameters.extend(given.map(|(name, number)| (name.to_owned(), number.to_string())));
        order
    }

    pub(super) fn terminate(force: bool) -> Self {
        Self::new(CommandType::Terminate).forced(force)
    }

    /// Whether it may exceed the disruption budgets.
    pub(super) fn over_budget(self, over_budget: bool) -> Self {
        Self { over_budget, ..self }
    }

    fn forced(mut self, force: bool) -> Self {
        if force {
            self.parameters.insert("force".to_owned(), "true".to_owned());
        }
        self
    }

    fn body(&self, reason: Option<&str>) -> CommandCreate {
        CommandCreate {
            parameters: self.parameters.clone(),
            drain_for_seconds: self.drain_for_seconds,
            over_budget: self.over_budget,
            ..CommandCreate::new(self.kind, reason.unwrap_or_default())
        }
    }

    /// As in "Drain 3 nodes?".
    const fn verb(&self) -> &'static str {
        match self.kind {
            CommandType::Cordon => "Cordon",
            CommandType::Drain => "Drain",
            CommandType::RunDiagnostic => "Run a diagnostic on",
            CommandType::Terminate => "Terminate",
            CommandType::Uncordon => "Put back into service",
        }
    }

    /// As in "3 nodes cordoned", "would be cordoned".
    const fn done(&self) -> &'static str {
        match self.kind {
            CommandType::Cordon => "cordoned",
            CommandType::Drain => "draining",
            CommandType::RunDiagnostic => "told to run a diagnostic",
            CommandType::Terminate => "terminated",
            CommandType::Uncordon => "uncordoned",
        }
    }

    /// Whether somebody is asked first: where it cannot be undone, where work has to leave more than one
    /// node, and where nobody has written down which nodes are meant.
    fn asks(&self, found: &Found) -> bool {
        let several = 1 < found.nodes.len();
        match self.kind {
            CommandType::Terminate => true,
            CommandType::Drain => several || found.selected,
            CommandType::Cordon | CommandType::RunDiagnostic | CommandType::Uncordon => {
                found.selected
            }
        }
    }

    fn needs_reason(&self, count: usize) -> bool {
        match self.kind {
            CommandType::Terminate => true,
            CommandType::Drain => 1 < count,
            CommandType::Cordon | CommandType::RunDiagnostic | CommandType::Uncordon => false,
        }
    }
}

/// The nodes that are meant.
#[derive(Debug, Default)]
struct Found {
    nodes: Vec<Node>,
    /// Those that were named and are not there, or cannot be read.
    missing: Vec<(String, Failure)>,
    /// Whether they were found by what they are, and not by name.
    selected: bool,
}

impl Found {
    fn len(&self) -> usize {
        self.nodes.len() + self.missing.len()
    }
}

/// `argosy node cordon|uncordon|drain|diagnose|terminate`; with `wait`, until the nodes have done it.
pub(super) async fn run(
    session: &Session,
    act: &Act,
    order: &Order,
    wait: Option<Duration>,
) -> Result<Exit, Failure> {
    let mut found = find(session, &act.targets).await?;
    if found.len() == 1
        && let Some((_, failure)) = found.missing.pop()
    {
        return Err(failure);
    }
    let reason = act.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    if reason.is_none() && !act.dry_run && order.needs_reason(found.len()) {
        return Err(Failure::usage(format!("{} needs a --reason", what(order, &found)))
            .fix("say why: it is kept with the commands and in the audit log"));
    }
    let asks = order.asks(&found) && !act.dry_run;
    if asks || act.dry_run {
        let checked = tell(session, order, reason, true, &found).await;
        let said = checked.as_ref().map_or(&[][..], |told| told.said.as_slice());
        note(&plan(order, &found, said, session.screen.width));
        let checked = checked?;
        if act.dry_run {
            checked.show(session, order, true, &found);
            return finish(session, order, checked, found, true, wait).await;
        }
        let question = format!("{}, in {}?", what(order, &found), session.target.name);
        session.confirm(&question, act.yes)?;
    }
    let told = tell(session, order, reason, false, &found).await?;
    told.show(session, order, false, &found);
    finish(session, order, told, found, false, wait).await
}

/// Reads the nodes that are meant.
async fn find(session: &Session, targets: &Targets) -> Result<Found, Failure> {
    match (targets.nodes.is_empty(), targets.filter.is_empty()) {
        (true, true) => {
            return Err(Failure::usage("which nodes?")
                .fix("name them, or select them with --pool, -l, --status, --search, …"));
        }
        (false, false) => {
            return Err(Failure::usage("nodes are named, or selected by what they are; not both"));
        }
        (true, false) => {
            let query = targets.filter.query()?;
            let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
            let (nodes, _) = session.all_nodes(&query).await?;
            if nodes.is_empty() {
                return Err(Failure::new(Exit::NotFound, "no node matches")
                    .fix("`argosy node list` with the same flags shows which do"));
            }
            return Ok(Found { nodes, missing: Vec::new(), selected: true });
        }
        (false, true) => {}
    }
    let mut ids: Vec<&str> = targets.nodes.iter().map(|id| plain_id(id)).collect();
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(*id));
    let mut found = Found::default();
    let mut reads =
        stream::iter(ids).map(async |id| (id, session.client.node(id).await)).buffered(AT_ONCE);
    while let Some((id, read)) = reads.next().await {
        match read {
            Ok(node) => found.nodes.push(node),
            // Without a server there is no use in going on.
            Err(error @ (ClientError::Unreachable { .. } | ClientError::Unexpected { .. })) => {
                return Err(session.failure(error));
            }
            Err(error @ ClientError::Problem(_)) => {
                let failure = session.missing_node(error, id).await;
                found.missing.push((id.to_owned(), failure));
            }
        }
    }
    Ok(found)
}

/// `Drain node gpu-17`, `Drain 12 nodes (h100: 10, a100: 2)`.
fn what(order: &Order, found: &Found) -> String {
    match found.nodes.as_slice() {
        [node] => format!("{} node {}", order.verb(), clean(&node.id)),
        nodes => format!("{} {} nodes ({})", order.verb(), nodes.len(), by_pool(nodes)),
    }
}

/// `h100: 10, a100: 2`.
fn by_pool(nodes: &[Node]) -> String {
    let parts: Vec<String> =
        pools(nodes).iter().map(|(pool, nodes)| format!("{pool}: {}", nodes.len())).collect();
    clean(&parts.join(", "))
}

/// The nodes of each pool, by its name.
fn pools(nodes: &[Node]) -> BTreeMap<&str, Vec<&Node>> {
    let mut pools: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for node in nodes {
        pools.entry(node.pool.as_deref().unwrap_or("no pool")).or_default().push(node);
    }
    pools
}

/// What would be touched: how many nodes of which pools, in which state, with which GPUs; and what the server says.
fn plan(order: &Order, found: &Found, said: &[String], width: Option<u16>) -> String {
    let mut lines = vec![format!("{}:", what(order, found))];
    for (pool, nodes) in pools(&found.nodes) {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &nodes {
            *states.entry(node.status.as_str()).or_default() += 1;
        }
        let states: Vec<String> =
            states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let all: Vec<_> = nodes.iter().flat_map(|node| node.gpus.iter().cloned()).collect();
        let gpus = gpus(&all);
        let gpus = if gpus.is_empty() { String::new() } else { format!("; {gpus}") };
        lines.push(format!("  {}: {}{gpus}", clean(pool), states.join(", ")));
    }
    let ids: Vec<String> = found.nodes.iter().take(NAMED_MAX).map(|node| clean(&node.id)).collect();
    let more = found.nodes.len().saturating_sub(NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let columns = width.map_or(usize::MAX, usize::from).saturating_sub(2);
    let named = wrap(&format!("{}{more}", ids.join(" ")), columns);
    lines.extend(named.into_iter().map(|line| format!("  {line}")));
    lines.extend(said.iter().map(|line| format!("  {}", clean(line))));
    for (id, failure) in &found.missing {
        lines.push(format!("  ! {}: {}", clean(id), failure.what));
    }
    lines.join("\n")
}

/// What came of telling the nodes.
#[derive(Default)]
struct Told {
    commands: Vec<Command>,
    failures: Vec<(String, Failure)>,
    /// What the server warns of.
    warnings: Vec<String>,
    /// What it says of the disruption budgets, and warns of, for the plan.
    said: Vec<String>,
}

impl Told {
    fn hear(&mut self, budgets: &[BudgetImpact], warnings: Vec<String>) {
        let within = budgets.iter().filter(|budget| !budget.exceeded);
        self.said.extend(within.map(|budget| budget.message.clone()));
        self.said.extend(warnings.iter().map(|warning| format!("! {warning}")));
        self.warnings.extend(warnings);
    }

    /// A line for each node, in the order of the nodes, and what the server warns of.
    fn show(&self, session: &Session, order: &Order, dry_run: bool, found: &Found) {
        let shown = matches!(session.format, Format::Table | Format::Wide);
        for node in &found.nodes {
            let command = self.commands.iter().find(|command| command.node_id == node.id);
            if let Some(command) = command.filter(|_| shown) {
                note(&line(order, command, dry_run, Times::relative(session)));
            }
            let failed = self.failures.iter().find(|(id, _)| *id == node.id);
            if let Some((id, failure)) = failed.filter(|_| 1 < found.len()) {
                note(&failed_line(order, id, failure));
            }
        }
        for (id, failure) in &found.missing {
            note(&failed_line(order, id, failure));
        }
        for warning in self.warnings.iter().filter(|_| !dry_run) {
            note(&format!("warning: {}", clean(warning)));
        }
    }
}

/// Tells the nodes, or asks what would come of it: together, so that the server judges them together.
///
/// # Errors
/// What keeps all of them from being told.
async fn tell(
    session: &Session,
    order: &Order,
    reason: Option<&str>,
    dry_run: bool,
    found: &Found,
) -> Result<Told, Failure> {
    let body = order.body(reason);
    let options = WriteOptions { dry_run, ..WriteOptions::default() };
    let mut told = Told::default();
    if let [node] = found.nodes.as_slice() {
        match session.client.create_command(&node.id, &body, &options).await {
            Ok(command) => {
                told.hear(&command.budgets, command.warnings.clone());
                told.commands.push(command);
            }
            Err(error) if is_over_budget(&error) => return Err(session.failure(error)),
            Err(error) => told.failures.push((node.id.clone(), refused(session, error, &node.id))),
        }
        return Ok(told);
    }
    for nodes in found.nodes.chunks(BATCH_MAX) {
        let ids = nodes.iter().map(|node| node.id.clone()).collect();
        let batch = CommandBatchCreate::new(ids, body.clone());
        let first = told.commands.is_empty() && told.failures.is_empty();
        match session.client.create_commands(&batch, &options).await {
            Ok(answer) => {
                told.commands.extend(answer.commands);
                told.hear(&answer.budgets, answer.warnings);
                told.failures.extend(answer.refused.into_iter().map(|refusal| {
                    let error = ClientError::Problem(Box::new(refusal.problem));
                    let failure = refused(session, error, &refusal.node_id);
                    (refusal.node_id, failure)
                }));
            }
            Err(error) if first => return Err(session.failure(error)),
            // Some have been told, and are shown.
            Err(error) => {
                let failure = session.failure(error);
                let failed = nodes.iter().map(|node| {
                    (node.id.clone(), Failure::new(failure.exit, failure.what.clone()))
                });
                told.failures.extend(failed);
            }
        }
    }
    Ok(told)
}

fn is_over_budget(error: &ClientError) -> bool {
    matches!(error, ClientError::Problem(problem) if problem.code == OVER_BUDGET.code)
}

/// A node that cannot do what is asked in the state it is in: what to do is to look at it.
fn refused(session: &Session, error: ClientError, id: &str) -> Failure {
    let state = matches!(error.status(), Some(409 | 412));
    let failure = session.failure(error);
    match state {
        true => Failure {
            fix: vec![format!("argosy why node/{} tells how it came to be like that", clean(id))],
            ..failure
        },
        false => failure,
    }
}

/// One node that was told.
fn line(order: &Order, command: &Command, dry_run: bool, times: Times) -> String {
    let id = clean(&command.node_id);
    if dry_run {
        return match order.kind {
            CommandType::Drain => format!("node {id}: would be drained"),
            CommandType::Cordon
            | CommandType::RunDiagnostic
            | CommandType::Terminate
            | CommandType::Uncordon => format!("node {id}: would be {}", order.done()),
        };
    }
    let deadline = command.deadline.as_deref().map(|at| format!(", deadline {}", times.due(at)));
    let deadline = deadline.unwrap_or_default();
    format!("node {id}: {}{deadline} (command {})", order.done(), clean(&command.id))
}

fn failed_line(order: &Order, id: &str, failure: &Failure) -> String {
    format!("node {}: not {}: {}", clean(id), order.done(), failure.what)
}

/// Waits if that was wanted, prints what was asked for, and says how it went as a whole.
async fn finish(
    session: &Session,
    order: &Order,
    told: Told,
    found: Found,
    dry_run: bool,
    wait: Option<Duration>,
) -> Result<Exit, Failure> {
    let all = found.len();
    let Told { mut commands, mut failures, .. } = told;
    failures.extend(found.missing);
    let mut ended = Ok(());
    if let Some(timeout) = wait.filter(|_| !dry_run && !commands.is_empty()) {
        (commands, ended) = command::until_ended(session, commands, timeout).await;
    }
    let with_result = order.kind == CommandType::RunDiagnostic && wait.is_some() && !dry_run;
    command::show_acted(session, &commands, with_result);
    let quiet = !matches!(session.format, Format::Table | Format::Wide);
    if 1 < all && failures.is_empty() && !quiet {
        let done = if dry_run { "could be told" } else { order.done() };
        note(&format!("{all} nodes {done}"));
    }
    if all == 1
        && let Some((_, failure)) = failures.pop()
    {
        return Err(failure);
    }
    if !failures.is_empty() {
        return Err(together(&failures, all, order.done()));
    }
    ended.map(|()| Exit::Ok)
}

/// One failure for all: each has had its line.
fn together(failures: &[(String, Failure)], all: usize, done: &str) -> Failure {
    let mut exits = failures.iter().map(|(_, failure)| failure.exit);
    let first = exits.next().unwrap_or(Exit::Failed);
    let exit = if exits.all(|exit| exit == first) { first } else { Exit::Failed };
    Failure::new(exit, format!("{} of {all} nodes were not {done}", failures.len()))
}

/// `argosy node delete`
pub(super) async fn delete(session: &Session, args: &Delete) -> Result<Exit, Failure> {
    let mut found = find(session, &args.targets).await?;
    if found.len() == 1
        && let Some((_, failure)) = found.missing.pop()
    {
        return Err(failure);
    }
    let what = match found.nodes.as_slice() {
        [node] => format!("Forget node {}", clean(&node.id)),
        nodes => format!("Forget {} nodes ({})", nodes.len(), by_pool(nodes)),
    };
    let alive = if args.force { ", although they may be alive" } else { "" };
    session.confirm(&format!("{what}{alive}, in {}?", session.target.name), args.yes)?;
    let all = found.len();
    let mut failures = found.missing;
    for (id, failure) in &failures {
        note(&format!("node {}: not forgotten: {}", clean(id), failure.what));
    }
    let mut answers = stream::iter(&found.nodes)
        .map(async |node: &Node| {
            let reason = args.reason.as_deref();
            (node, session.client.delete_node(&node.id, args.force, reason).await)
        })
        .buffered(AT_ONCE);
    while let Some((node, answer)) = answers.next().await {
        match answer {
            Ok(()) => note(&format!("node {}: forgotten", clean(&node.id))),
            Err(error) => {
                let failure = refused(session, error, &node.id);
                if 1 < all {
                    note(&format!("node {}: not forgotten: {}", clean(&node.id), failure.what));
                }
                failures.push((node.id.clone(), failure));
            }
        }
    }
    if all == 1
        && let Some((_, failure)) = failures.pop()
    {
        return Err(failure);
    }
    match failures.is_empty() {
        true => Ok(Exit::Ok),
        false => Err(together(&failures, all, "forgotten")),
    }
}

#[cfg(test)]
mod tests;
