//! Commands over HTTP.

use super::header::{DRY_RUN, REPLAYED, tagged};
use super::list::{Listed, Page, heavy, watch, whole};
use super::query::Query;
use super::{Answer, Ask, empty, json};
use crate::convert;
use crate::problem::Fault;
use argosy_api::command::{CommandBatch, CommandRefusal};
use argosy_control::watch::WatchCommands;
use argosy_control::{Error, Stored};
use argosy_core::command::Command;
use argosy_core::id::CommandId;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};

pub(super) async fn create(ask: &Ask) -> Answer {
    let control = &ask.server.control;
    control.nodes.get(&ask.caller, ask.node())?;
    let query = ask.query()?;
    let mut new = convert::command::creation(ask.object()?).map_err(Fault::fields)?;
    let dry_run = query.flag("dry_run");
    new.dry_run = dry_run;
    new.if_revision = ask.if_match()?;
    new.idempotency_key = ask.idempotency_key()?;
    let asked_at = control.clock.now();
    let nodes = [ask.node().to_owned()];
    let mut given = control.commands.issue_all(&ask.caller, &nodes, new).await?;
    let missing = || Err(Error::NodeNotFound(ask.node().to_owned()));
    let command = given.nodes.pop().map_or_else(missing, |(_, command)| command)?;
    let mut shown = convert::command::wire(&command);
    if dry_run {
        shown.budgets = given.impacts.iter().map(convert::safety::impact).collect();
    }
    shown.warnings = convert::safety::warnings(&given.impacts);
    let mut response = tagged(json(StatusCode::CREATED, &shown)?, command.revision)?;
    let headers = response.headers_mut();
    if dry_run {
        headers.insert(DRY_RUN, HeaderValue::from_static("true"));
    } else {
        headers.extend(HeaderValue::from_str(&shown.href).ok().map(|href| (LOCATION, href)));
    }
    // One that is older than the request was made by an earlier one with the same key.
    if command.value.issued_at < asked_at {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// The same for several nodes.
pub(super) async fn create_all(ask: &Ask) -> Answer {
    let control = &ask.server.control;
    let query = ask.query()?;
    let (nodes, mut new) = convert::command::batch(ask.object()?).map_err(Fault::fields)?;
    new.dry_run = query.flag("dry_run");
    new.idempotency_key = ask.idempotency_key()?;
    let dry_run = new.dry_run;
    let given = control.commands.issue_all(&ask.caller, &nodes, new).await?;
    let now = control.clock.now();
    let (mut commands, mut refused) = (Vec::new(), Vec::new());
    for (node_id, command) in given.nodes {
        match command {
            Ok(command) => commands.push(convert::command::wire(&command)),
            Err(error) => {
                let problem =
                    Fault::from(error).problem(ask.parts.uri.path(), &ask.caller.request_id, now);
                refused.push(CommandRefusal { node_id, problem });
            }
        }
    }
    let shown = CommandBatch {
        kind: "CommandBatch".to_owned(),
        commands,
        refused,
        budgets: given.impacts.iter().map(convert::safety::impact).collect(),
        warnings: convert::safety::warnings(&given.impacts),
    };
    let mut response = json(StatusCode::CREATED, &shown)?;
    if dry_run {
        response.headers_mut().insert(DRY_RUN, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// All commands, or with a node in the path its own.
pub(super) async fn list(ask: &Ask) -> Answer {
    let control = &ask.server.control;
    if let Some(node) = ask.name("node_id") {
        control.nodes.get(&ask.caller, node)?;
    }
    let query = ask.query()?;
    let node = ask.name("node_id").or_else(|| query.text("node")).map(str::to_owned);
    let state = query.text("state").map(str::to_owned);
    let open_only = state.as_deref() == Some("open");
    if query.flag("watch") {
        let list = WatchCommands { node, state, ..WatchCommands::default() };
        return follow(ask, &query, list).await;
    }
    let page = Page::of(&query);
    let (control, caller) = (control.clone(), ask.caller.clone());
    heavy(ask, move || {
        let revision = control.revision();
        let mut found = control.commands.list(&caller, node.as_deref(), open_only)?;
        if let Some(word) = state.filter(|_| !open_only) {
            found.retain(|command| command.value.state.word() == word);
        }
        let total = found.len();
        let shown = found.iter().skip(page.skip()).take(page.size);
        let items: Vec<_> = shown.map(convert::command::wire).collect();
        Ok(Listed {
            kind: "CommandList".to_owned(),
            page: page.page,
            size: items.len(),
            total,
            // What was read is at least as new: a watch from here misses nothing.
            revision: revision.0,
            cost: None,
            items,
        })
    })
    .await
}

pub(super) async fn get(ask: &Ask) -> Answer {
    let text = ask.name("command_id").unwrap_or_default();
    let id = CommandId::parse(text).ok_or_else(|| Error::CommandNotFound(text.to_owned()))?;
    let command = ask.server.control.commands.get(&ask.caller, id)?;
    let query = ask.query()?;
    if query.flag("watch") {
        let list = WatchCommands { command: Some(id), ..WatchCommands::default() };
        return follow(ask, &query, list).await;
    }
    if ask.has_seen(command.revision) {
        return tagged(empty(StatusCode::NOT_MODIFIED), command.revision);
    }
    tagged(json(StatusCode::OK, &convert::command::wire(&command))?, command.revision)
}

async fn follow(ask: &Ask, query: &Query, mut list: WatchCommands) -> Answer {
    let after = ask.resume_after(query)?;
    list.after = after;
    let started = ask.server.control.commands.watch(&ask.caller, list)?;
    let show = |command: &Stored<Command>| whole(convert::command::wire(command));
    watch(ask, started, after, Box::new(show)).await
}
