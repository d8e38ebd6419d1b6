//! `argosy instance`: the machines that are bought.

mod args;

mod table;

pub(super) use args::Verb;
pub(super) use table::{table, together};

use super::follow::{self, Subject};
use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, document, note, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::client::Watch;
use argosy_api::instance::{Instance, InstanceAdopt, InstanceTerminate, Orphan};
use args::{Adopt, Get, List, Terminate, Verbs};

/// `argosy instance`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::List(args) if args.orphans => orphans(session).await,
        Verbs::List(args) => list(session, &args).await,
        Verbs::Get(args) => get(session, &args).await,
        Verbs::Adopt(args) => adopt(session, &args).await,
        Verbs::Terminate(args) => match args.orphan.clone() {
            Some(orphan) => reap(session, &args, &orphan).await,
            None => terminate(session, &args).await,
        },
    }
}

/// An instance's id, also as `-o name` prints it.
fn plain_id(text: &str) -> &str {
    text.strip_prefix("instance/").unwrap_or(text)
}

async fn list(session: &Session, args: &List) -> Result<Exit, Failure> {
    let query = args.query();
    if args.watch {
        return follow::follow(session, Instances { id: None, query }).await;
    }
    let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let (instances, _) = session.all_instances(&query).await?;
    if instances.is_empty() && matches!(session.format, Format::Table | Format::Wide) {
        note("no instances");
        return Ok(Exit::Ok);
    }
    table::show(session, &instances, true);
    if session.format == Format::Table {
        note(&table::sum(&instances));
    }
    Ok(Exit::Ok)
}

async fn orphans(session: &Session) -> Result<Exit, Failure> {
    let list = session.client.orphans().await.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&list), session.format == Format::Yaml));
        }
        Format::Name => {
            let line = |orphan: &Orphan| {
                format!("orphan/{}/{}\n", clean(&orphan.provider), clean(&orphan.machine_id))
            };
            print(&list.items.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide if list.items.is_empty() => {
            note("no orphans: every machine with our tags has a record");
        }
        Format::Table | Format::Wide => {
            print(&table::orphans(session, &list.items));
            let count = list.items.len();
            let cost = together(list.cost_per_hour, list.unpriced);
            note(&format!(
                "{count} without a record, {cost}; `argosy instance adopt` keeps one, `argosy instance \
                 terminate --orphan PROVIDER/MACHINE` returns it"
            ));
        }
    }
    Ok(Exit::Ok)
}

async fn get(session: &Session, args: &Get) -> Result<Exit, Failure> {
    if args.watch {
        let [id] = args.instances.as_slice() else {
            return Err(Failure::usage("--watch follows one instance")
                .fix("`argosy instance list --watch` follows all"));
        };
        let subject = Instances { id: Some(plain_id(id)), query: Vec::new() };
        return follow::follow(session, subject).await;
    }
    let mut instances = Vec::new();
    for id in args.instances.iter().map(|id| plain_id(id)) {
        match session.client.instance(id).await {
            Ok(instance) => instances.push(instance),
            Err(error) => return Err(session.missing_instance(error, id).await),
        }
    }
    match session.format {
        Format::Json | Format::Yaml | Format::Name => {
            table::show(session, &instances, 1 < instances.len());
        }
        Format::Table | Format::Wide => {
            for (place, instance) in instances.iter().enumerate() {
                if 0 < place {
                    print("\n");
                }
                print(&table::page(&session.screen, instance, Times::of(session)));
            }
        }
    }
    Ok(Exit::Ok)
}

async fn terminate(session: &Session, args: &Terminate) -> Result<Exit, Failure> {
    let reason = reason(&args.reason)?;
    let mut instances = Vec::new();
    for id in args.instances.iter().map(|id| plain_id(id)) {
        match session.client.instance(id).await {
            Ok(instance) => instances.push(instance),
            Err(error) => return Err(session.missing_instance(error, id).await),
        }
    }
    for instance in &instances {
        note(&table::touched(instance));
    }
    let what = match instances.as_slice() {
        [one] => format!("instance {}", clean(&one.id)),
        several => format!("{} instances", several.len()),
    };
    let question = format!("Return {what} to the provider, in {}?", session.target.name);
    session.confirm(&question, args.yes)?;
    let (reason, over_budget) = (reason.to_owned(), args.over_budget);
    let body = InstanceTerminate { reason, force: args.force, over_budget };
    let mut ended = Vec::new();
    for instance in &instances {
        let answer = session.client.terminate_instance(&instance.id, &body).await;
        let instance = answer.map_err(|error| {
            let conflict = error.status() == Some(409) && !args.force;
            let failure = session.failure(error);
            // What a budget blocks says itself what to do.
            if conflict && failure.exit == Exit::Conflict {
                failure.fix("--force, as an admin, if it is protected")
            } else {
                failure
            }
        })?;
        if matches!(session.format, Format::Table | Format::Wide) {
            note(&format!("instance {}: {}", clean(&instance.id), instance.state));
        }
        ended.push(instance);
    }
    if !matches!(session.format, Format::Table | Format::Wide) {
        table::show(session, &ended, 1 < ended.len());
    }
    Ok(Exit::Ok)
}

/// Returns a machine that nobody has a record of.
async fn reap(session: &Session, args: &Terminate, orphan: &str) -> Result<Exit, Failure> {
    let reason = reason(&args.reason)?;
    let (provider, machine) = orphan_of(orphan)?;
    let known = session.client.orphans().await.map_err(|error| session.failure(error))?;
    let found = known.items.iter().find(|o| o.provider == provider && o.machine_id == machine);
    let Some(found) = found else {
        return Err(Failure::new(Exit::NotFound, format!("{} is no orphan", clean(orphan)))
            .fix("`argosy instance list --orphans` shows which there are"));
    };
    note(&table::touched_orphan(found));
    let question = format!("Return it to the provider, in {}?", session.target.name);
    session.confirm(&question, args.yes)?;
    let reaped = session.client.reap_orphan(provider, machine, reason).await;
    let reaped = reaped.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&to_value(&reaped), session.format == Format::Yaml));
        }
        Format::Table | Format::Wide | Format::Name => {
            note(&format!("{} is to be returned", clean(orphan)));
        }
    }
    Ok(Exit::Ok)
}

async fn adopt(session: &Session, args: &Adopt) -> Result<Exit, Failure> {
    let (provider, machine) = orphan_of(&args.orphan)?;
    let (cluster, pool) = match args.pool.split_once('/') {
        Some((cluster, pool)) => (Some(cluster.to_owned()), pool),
        None => (None, args.pool.as_str()),
    };
    let body = InstanceAdopt {
        provider: provider.to_owned(),
        machine_id: machine.to_owned(),
        nodepool: pool.to_owned(),
        cluster,
        reason: reason(&args.reason)?.to_owned(),
    };
    let adopted = session.client.adopt_instance(&body).await.map_err(|error| {
        let missing = error.status() == Some(404);
        let failure = session.failure(error);
        match missing {
            true => {
                failure.fix("`argosy instance list --orphans` and `argosy nodepool list` show both")
            }
            false => failure,
        }
    })?;
    if matches!(session.format, Format::Table | Format::Wide) {
        note(&format!(
            "{} is instance {} of pool {} now; its node is expected to register",
            clean(&args.orphan),
            clean(&adopted.id),
            clean(&adopted.pool)
        ));
    } else {
        table::show(session, &[adopted], false);
    }
    Ok(Exit::Ok)
}

/// `PROVIDER/MACHINE`, also as `-o name` prints it. What a provider calls a machine may have slashes.
fn orphan_of(text: &str) -> Result<(&str, &str), Failure> {
    let plain = text.strip_prefix("orphan/").unwrap_or(text);
    match plain.split_once('/') {
        Some((provider, machine)) if !provider.is_empty() && !machine.is_empty() => {
            Ok((provider, machine))
        }
        Some(_) | None => Err(Failure::usage(format!("`{}` names no machine", clean(text)))
            .fix("write PROVIDER/MACHINE, as `argosy instance list --orphans -o name` prints it")),
    }
}

/// A reason that says something.
pub(super) fn reason(text: &str) -> Result<&str, Failure> {
    match text.trim() {
        "" => Err(Failure::usage("--reason says nothing")
            .fix("say why: it is kept with the record and in the audit log")),
        text => Ok(text),
    }
}

/// Instances to follow.
struct Instances<'a> {
    /// The one; otherwise all that the query finds.
    id: Option<&'a str>,
    query: Vec<(&'static str, String)>,
}

impl Instances<'_> {
    fn query(&self) -> Vec<(&str, &str)> {
        self.query.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

impl Subject for Instances<'_> {
    type Item = Instance;

    const KEY: &'static str = "id";

    fn is_one(&self) -> bool {
        self.id.is_some()
    }

    async fn read(&self, session: &Session) -> Result<(Vec<Instance>, u64), Failure> {
        let Some(id) = self.id else { return session.all_instances(&self.query()).await };
        match session.client.instance(id).await {
            Ok(instance) => {
                let revision = instance.revision;
                Ok((vec![instance], revision))
            }
            Err(error) => Err(session.missing_instance(error, id).await),
        }
    }

    fn watch(&self, session: &Session, after: u64) -> Watch {
        // Order is for lists; a watch tells things as they happen.
        let mut query = self.query();
        query.retain(|(name, _)| *name != "order");
        session.client.watch_instances(self.id, &query, Some(after))
    }

    fn key(instance: &Instance) -> &str {
        &instance.id
    }

    fn revision(instance: &Instance) -> u64 {
        instance.revision
    }

    fn table(&self, session: &Session, instances: &[Instance]) -> String {
        match (self.id, instances) {
            (Some(_), [instance]) => table::page(&session.screen, instance, Times::of(session)),
            (Some(id), []) => format!("instance {} is forgotten\n", clean(id)),
            (Some(_) | None, _) => table(session, instances),
        }
    }
}

#[cfg(test)]
mod tests;
