//! `argosy command`: what nodes were told, how far they are, and waiting for them.

mod progress;

use super::follow::{self, Subject};
use super::node::plain_id;
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, clean, document, indent, note, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::client::{ClientError, Watch};
use argosy_api::command::{Command, CommandOutcome, CommandState};
use argosy_api::resource::WatchKind;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use progress::Progress;
use serde_json::json;
use std::collections::BTreeMap;

/// See what nodes were told, and wait for it to be done.
#[derive(Args, Debug)]
#[command(after_help = "\
Nodes are told with `argosy node cordon`, `drain` and so on.

Examples:
  argosy command list --open
  argosy command list --node gpu-17
  argosy command get 01990000-0000-7000-8000-000000000000
  argosy command wait 01990000-0000-7000-8000-000000000000 --timeout 1h")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    #[command(visible_alias = "ls")]
    List(List),
    Get(Get),
    Wait(WaitFor),
}

/// List commands, newest first.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy command list
  argosy command list --node gpu-17 --limit 5
  argosy command list --open --watch
  argosy command list --state failed -o json")]
struct List {
    /// Only those of this node.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Only those in this state.
    #[arg(
        long,
        value_name = "STATE",
        value_parser = PossibleValuesParser::new(CommandState::ALL.iter().map(|state| state.as_str())),
    )]
    state: Option<String>,
    /// Only those that have not ended.
    #[arg(long, conflicts_with = "state")]
    open: bool,
    /// How many.
    #[arg(long, default_value_t = 50, value_name = "COUNT", conflicts_with = "watch")]
    limit: usize,
    /// Show changes as they happen: in place on a terminal, as JSON lines in a pipe.
    #[arg(short, long)]
    watch: bool,
}

/// Show commands by id, with what came of them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy command get 01990000-0000-7000-8000-000000000000
  argosy command get 01990000-0000-7000-8000-000000000000 -o json")]
struct Get {
    /// Ids; `command/ID` as -o name prints it is fine too.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Wait until commands have ended, and say how.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit code 0: all were done (of a drain: Drained or Forced); 1: one was not; 8: it takes longer. Ctrl-C
detaches; the work goes on.

Examples:
  argosy command wait 01990000-0000-7000-8000-000000000000
  argosy node drain gpu-17 -o name | xargs argosy command wait --timeout 1h")]
struct WaitFor {
    /// Ids; `command/ID` as -o name prints it is fine too.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// How long to wait.
    #[arg(long, default_value = "2h", value_name = "DURATION")]
    timeout: Duration,
}

/// The most commands the API gives at once.
const PAGE: usize = 1000;

/// `argosy command`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::List(args) if args.watch => follow::follow(session, Commands { args: &args }).await,
        Verbs::List(args) => list(session, &args).await,
        Verbs::Get(args) => {
            let commands = get(session, &args.ids).await?;
            match session.format {
                Format::Json | Format::Yaml | Format::Name => show(session, &commands),
                Format::Table | Format::Wide => {
                    let pages: Vec<String> = commands
                        .iter()
                        .map(|command| page(&session.screen, command, Times::of(session)))
                        .collect();
                    print(&pages.join("\n"));
                }
            }
            Ok(Exit::Ok)
        }
        Verbs::Wait(args) => {
            let commands = get(session, &args.ids).await?;
            let (commands, ended) = until_ended(session, commands, args.timeout).await;
            show_acted(session, &commands, true);
            ended.map(|()| Exit::Ok)
        }
    }
}

impl List {
    fn query(&self) -> Vec<(&'static str, &str)> {
        let mut query = Vec::new();
        query.extend(self.node.as_deref().map(|node| ("node", plain_id(node))));
        query.extend(self.state.as_deref().map(|state| ("state", state)));
        query.extend(self.open.then_some(("state", "open")));
        query
    }

    /// The newest that match, and the revision they were read at.
    async fn read(&self, session: &Session, limit: usize) -> Result<(Vec<Command>, u64), Failure> {
        let mut commands: Vec<Command> = Vec::new();
        let mut revision = None;
        let size = limit.clamp(1, PAGE).to_string();
        for page in 1_usize.. {
            let number = page.to_string();
            let mut query = self.query();
            query.extend([("page", number.as_str()), ("size", size.as_str())]);
            let list = session.client.commands(&query).await;
            let list = list.map_err(|error| session.failure(error))?;
            revision.get_or_insert(list.revision);
            let end = list.items.is_empty();
            commands.extend(list.items);
            if end || list.total <= commands.len() || limit <= commands.len() {
                break;
            }
        }
        commands.truncate(limit);
        Ok((commands, revision.unwrap_or(0)))
    }
}

async fn list(session: &Session, args: &List) -> Result<Exit, Failure> {
    let (commands, _) = args.read(session, args.limit).await?;
    if commands.is_empty() && matches!(session.format, Format::Table | Format::Wide) {
        note("no commands");
        return Ok(Exit::Ok);
    }
    match session.format {
        Format::Json | Format::Yaml => {
            let value = json!({
                "kind": "CommandList", "total": commands.len(), "items": to_value(&commands),
            });
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name | Format::Table | Format::Wide => show(session, &commands),
    }
    Ok(Exit::Ok)
}

async fn get(session: &Session, ids: &[String]) -> Result<Vec<Command>, Failure> {
    let mut commands = Vec::new();
    for id in ids.iter().map(|id| id.strip_prefix("command/").unwrap_or(id)) {
        let command = session.client.command(id).await.map_err(|error| {
            let absent = error.status() == Some(404);
            let failure = session.failure(error);
            if absent { failure.fix("`argosy command list` shows the latest") } else { failure }
        })?;
        commands.push(command);
    }
    Ok(commands)
}

/// Prints commands in the session's format; one alone is an object.
fn show(session: &Session, commands: &[Command]) {
    match session.format {
        Format::Json | Format::Yaml => {
            let value = match commands {
                [one] => to_value(one),
                _ => json!({
                    "kind": "CommandList", "total": commands.len(), "items": to_value(&commands),
                }),
            };
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => {
            let line = |command: &Command| format!("command/{}\n", clean(&command.id));
            print(&commands.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide => print(&table(session, commands)),
    }
}

/// Prints what nodes were told, after they were: in a format that was asked for, or the results of
/// diagnostics for people, who have been told the rest.
pub(super) fn show_acted(session: &Session, commands: &[Command], with_result: bool) {
    match session.format {
        // Whoever was told nothing has been said why not.
        _ if commands.is_empty() => {}
        Format::Json | Format::Yaml | Format::Name => show(session, commands),
        Format::Table | Format::Wide => {
            for command in commands.iter().filter(|_| with_result) {
                print(&result(command));
            }
        }
    }
}

/// What a node sent back, under its id; nothing if it sent nothing.
fn result(command: &Command) -> String {
    match &command.result {
        Some(result) => {
            format!("{}:\n{}", clean(&command.node_id), indent(&document(result, true), 2))
        }
        None => String::new(),
    }
}

fn word(command: &Command) -> &'static str {
    command.outcome.map_or(command.state.as_str(), |outcome| outcome.as_str())
}

fn table(session: &Session, commands: &[Command]) -> String {
    let wide = session.format == Format::Wide;
    // Whoever asks for more wants to copy from it: nothing is cut.
    let screen = if wide { session.screen.unbounded() } else { session.screen };
    grid(commands, Times::of(session)).render(&screen, session.headers)
}

fn grid(commands: &[Command], times: Times) -> Grid {
    let headers = ["ID", "NODE", "COMMAND", "IS", "AGE", "TOOK", "BY", "REASON", "MESSAGE"];
    let mut grid = Grid::new(&headers).sparse();
    for command in commands {
        let plain = |text: &str| (text.to_owned(), Paint::Plain);
        let ended = command.ended_at.as_deref();
        let took = ended.map(|at| Times::between(&command.issued_at, at)).unwrap_or_default();
        let is = match command.progress {
            Some(percent) if !command.state.is_done() => format!("{} {percent}%", word(command)),
            Some(_) | None => word(command).to_owned(),
        };
        grid.row([
            plain(&command.id),
            plain(&command.node_id),
            plain(command.type_.as_str()),
            (is, Paint::of_state(word(command))),
            plain(&times.age(&command.issued_at)),
            plain(&took),
            plain(&command.by),
            plain(&command.reason),
            plain(&command.message),
        ]);
    }
    grid
}

/// One command on a page.
fn page(screen: &Screen, command: &Command, times: Times) -> String {
    let is = screen.paint(word(command), Paint::of_state(word(command)));
    let mut text = format!("{:<12}{}  {is}\n", "Command", clean(&command.id));
    let mut member = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<12}{}\n", clean(value)));
        }
    };
    member("Does", command.type_.as_str());
    member("Node", &command.node_id);
    let parameters: Vec<String> =
        command.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    member("With", &parameters.join(" "));
    let by = if command.automatic { ", automatically" } else { "" };
    member("By", &format!("{}{by}", command.by));
    member("Reason", &command.reason);
    member("Issued", &times.ago(&command.issued_at));
    match (command.state, command.ended_at.as_deref()) {
        (CommandState::Pending, _) => member("Expires", &times.due(&command.expires_at)),
        (_, Some(at)) => member("Ended", &times.ago(at)),
        (_, None) => {}
    }
    if let Some(at) = command.acknowledged_at.as_deref() {
        member("Taken", &times.ago(at));
    }
    if let Some(at) = command.deadline.as_deref() {
        member("Deadline", &times.due(at));
    }
    if let Some(percent) = command.progress.filter(|_| !command.state.is_done()) {
        member("Progress", &format!("{percent}%"));
    }
    member("Said", &command.message);
    if let Some(value) = &command.result {
        text.push_str("Result\n");
        text.push_str(&indent(&document(value, true), 2));
    }
    text
}

/// Waits until every command has ended, and shows the way there.
///
/// Gives the commands as they are then, also on failure: at the timeout (exit code 8), when somebody
/// detaches (130), or when one was not done (1).
pub(super) async fn until_ended(
    session: &Session,
    commands: Vec<Command>,
    timeout: Duration,
) -> (Vec<Command>, Result<(), Failure>) {
    let mut progress = Progress::new(session, &commands);
    let mut state = Waiting::new(commands);
    let watched = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {
            let detached = "detached; the nodes go on without this terminal";
            Err(again(Failure::new(Exit::Interrupted, detached), &state))
        }
        watched = tokio::time::timeout(timeout.std(), watch(session, &mut state, &mut progress)) => {
            match watched {
                Ok(watched) => watched,
                Err(_late) => Err(late(&state, timeout)),
            }
        }
    };
    progress.close();
    let commands = state.into_commands();
    let ended = watched.and_then(|()| outcome(&commands));
    (commands, ended)
}

/// Commands in the order they were given, and which of them are still open.
struct Waiting {
    order: Vec<String>,
    commands: BTreeMap<String, Command>,
}

impl Waiting {
    fn new(commands: Vec<Command>) -> Self {
        let order = commands.iter().map(|command| command.id.clone()).collect();
        let commands = commands.into_iter().map(|command| (command.id.clone(), command)).collect();
        Self { order, commands }
    }

    fn open(&self) -> impl Iterator<Item = &Command> {
        let all = self.order.iter().filter_map(|id| self.commands.get(id));
        all.filter(|command| !command.state.is_done())
    }

    fn into_commands(mut self) -> Vec<Command> {
        self.order.iter().filter_map(|id| self.commands.remove(id)).collect()
    }

    /// Takes in a newer state of one of them.
    fn take(&mut self, command: Command, progress: &mut Progress) {
        if let Some(known) = self.commands.get_mut(&command.id)
            && known.revision < command.revision
        {
            progress.show(&command);
            *known = command;
        }
    }
}

async fn watch(
    session: &Session,
    state: &mut Waiting,
    progress: &mut Progress,
) -> Result<(), Failure> {
    while state.open().next().is_some() {
        let only = match state.order.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        };
        let after = state.open().map(|command| command.revision).min();
        let mut watch = session.client.watch_commands(only.as_deref(), &[], after);
        let error = loop {
            if state.open().next().is_none() {
                return Ok(());
            }
            let event = match watch.next().await {
                Ok(event) => event,
                Err(error) => break error,
            };
            match event.kind {
                WatchKind::Added | WatchKind::Modified => {
                    let command =
                        event.object.and_then(|object| serde_json::from_value(object).ok());
                    if let Some(command) = command {
                        state.take(command, progress);
                    }
                }
                WatchKind::Deleted | WatchKind::Bookmark | WatchKind::Error => {}
            }
        };
        if error.status() != Some(410) {
            return Err(session.failure(error));
        }
        read_again(session, state, progress).await?;
    }
    Ok(())
}

/// The watch cannot go on where it was: asks about each that is open.
async fn read_again(
    session: &Session,
    state: &mut Waiting,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let open: Vec<String> = state.open().map(|command| command.id.clone()).collect();
    for id in open {
        match session.client.command(&id).await {
            Ok(command) => state.take(command, progress),
            Err(ClientError::Problem(problem)) if problem.status == 404 => {
                return Err(Failure::failed(format!("command {} is gone", clean(&id)))
                    .why("its node was forgotten"));
            }
            Err(error) => return Err(session.failure(error)),
        }
    }
    Ok(())
}

/// Whether a command ended as somebody wanted.
pub(super) const fn ended_well(outcome: CommandOutcome) -> bool {
    match outcome {
        CommandOutcome::Completed | CommandOutcome::Drained | CommandOutcome::Forced => true,
        CommandOutcome::TimedOut
        | CommandOutcome::Failed
        | CommandOutcome::Expired
        | CommandOutcome::Cancelled => false,
    }
}

/// How it went as a whole; each command has had its line.
fn outcome(commands: &[Command]) -> Result<(), Failure> {
    let bad: Vec<&Command> =
        commands.iter().filter(|command| !command.outcome.is_some_and(ended_well)).collect();
    match bad.as_slice() {
        [] => Ok(()),
        [one] => {
            let what =
                format!("{} of node {} ended as {}", one.type_, clean(&one.node_id), word(one));
            let failure = Failure::failed(what);
            let failure = match one.message.as_str() {
                "" => failure,
                message => failure.why(clean(message)),
            };
            Err(failure.fix(format!("argosy why node/{} tells the story", clean(&one.node_id))))
        }
        several => {
            let what = format!("{} of {} commands were not done", several.len(), commands.len());
            Err(Failure::failed(what))
        }
    }
}

fn late(state: &Waiting, timeout: Duration) -> Failure {
    let open = state.open().count();
    let what = match open {
        1 => format!("the command has not ended after {timeout}"),
        _ => format!("{open} commands have not ended after {timeout}"),
    };
    again(Failure::new(Exit::Timeout, what), state)
}

/// Says what is still open, and how to wait for it again.
fn again(mut failure: Failure, state: &Waiting) -> Failure {
    /// More would hide what it is about.
    const NAMED_MAX: usize = 5;
    for command in state.open().take(NAMED_MAX) {
        let (node, kind) = (clean(&command.node_id), command.type_);
        failure = failure.why(match command.state {
            CommandState::Pending => format!("node {node} has not fetched {kind} yet"),
            CommandState::Acknowledged
            | CommandState::Completed
            | CommandState::Failed
            | CommandState::Expired
            | CommandState::Cancelled => format!("node {node} is at work on {kind}"),
        });
    }
    let ids: Vec<String> = state.open().take(NAMED_MAX).map(|command| clean(&command.id)).collect();
    match ids.is_empty() {
        true => failure,
        false => failure.fix(format!("argosy command wait {} waits again", ids.join(" "))),
    }
}

/// Commands to follow.
struct Commands<'a> {
    args: &'a List,
}

impl Subject for Commands<'_> {
    type Item = Command;

    const KEY: &'static str = "id";

    fn is_one(&self) -> bool {
        false
    }

    async fn read(&self, session: &Session) -> Result<(Vec<Command>, u64), Failure> {
        let (mut commands, revision) = self.args.read(session, PAGE).await?;
        // Oldest first: what comes is added at the end.
        commands.reverse();
        Ok((commands, revision))
    }

    fn watch(&self, session: &Session, after: u64) -> Watch {
        session.client.watch_commands(None, &self.args.query(), Some(after))
    }

    fn key(command: &Command) -> &str {
        &command.id
    }

    fn revision(command: &Command) -> u64 {
        command.revision
    }

    fn table(&self, session: &Session, commands: &[Command]) -> String {
        let newest: Vec<Command> = commands.iter().rev().cloned().collect();
        table(session, &newest)
    }
}

#[cfg(test)]
mod tests;
