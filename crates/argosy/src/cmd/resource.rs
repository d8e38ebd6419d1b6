//! `argosy cluster …` and `argosy nodepool …`.

mod args;

pub(super) use args::{ClusterVerb, NodepoolVerb};

use super::{follow, pool, wait};
use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, note};
use crate::session::Session;
use crate::view;
use argosy_api::client::{Collection, WriteOptions};
use argosy_api::resource::{Kind, Resource, ResourceCreate, ResourcePatch};
use args::{
    ClusterVerbs, Common, Create, Delete, Get, List, NodepoolVerbs, Patch, Statuses, Watch,
};
use serde_json::{Map, Value};

/// What a command is about: clusters, or node pools of one cluster or of any.
#[derive(Clone, Debug)]
pub(super) struct Noun {
    pub(super) kind: Kind,
    pub(super) cluster: Option<String>,
}

impl Noun {
    pub(super) const CLUSTERS: Noun = Noun { kind: Kind::Cluster, cluster: None };

    pub(super) fn of_pools(cluster: Option<String>) -> Self {
        Self { kind: Kind::NodePool, cluster }
    }

    /// The resources a list is about.
    pub(super) fn collection(&self) -> Collection<'_> {
        match (self.kind, &self.cluster) {
            (Kind::Cluster, _) => Collection::Clusters,
            (Kind::NodePool, Some(cluster)) => Collection::NodePools(cluster),
            (Kind::NodePool, None) => Collection::AllNodePools,
        }
    }

    /// One resource by what a person writes: a name, an id, or CLUSTER/NAME for a node pool.
    pub(super) fn item<'a>(&'a self, reference: &'a str) -> (Collection<'a>, &'a str) {
        match (self.kind, reference.split_once('/')) {
            (Kind::NodePool, Some((cluster, name))) => (Collection::NodePools(cluster), name),
            (Kind::Cluster, _) | (Kind::NodePool, None) => (self.collection(), reference),
        }
    }

    /// The word for one: `cluster`, `node pool`.
    pub(super) fn word(&self) -> &'static str {
        match self.kind {
            Kind::Cluster => "cluster",
            Kind::NodePool => "node pool",
        }
    }

    /// The command for them: `cluster`, `nodepool`.
    pub(super) fn command(&self) -> &'static str {
        match self.kind {
            Kind::Cluster => "cluster",
            Kind::NodePool => "nodepool",
        }
    }

    /// How a resource is named on the command line: `NAME`, or `CLUSTER/NAME`.
    pub(super) fn reference(&self, name: &str) -> String {
        match (self.kind, &self.cluster) {
            (Kind::NodePool, Some(cluster)) if !name.contains('/') => format!("{cluster}/{name}"),
            (Kind::NodePool, Some(_) | None) | (Kind::Cluster, _) => name.to_owned(),
        }
    }
}

/// `argosy cluster`
pub(super) async fn cluster(session: &Session, verb: ClusterVerb) -> Result<Exit, Failure> {
    match verb.verb {
        ClusterVerbs::Create(args) => {
            let spec = args.spec();
            create(session, &Noun::CLUSTERS, args.create, spec).await
        }
        ClusterVerbs::Rest(verb) => rest(session, &Noun::CLUSTERS, verb).await,
    }
}

/// `argosy nodepool`
pub(super) async fn nodepool(session: &Session, verb: NodepoolVerb) -> Result<Exit, Failure> {
    let noun = Noun::of_pools(verb.cluster);
    match verb.verb {
        NodepoolVerbs::Create(args) => {
            if noun.cluster.is_none() {
                return Err(Failure::usage("a node pool is created in a cluster")
                    .fix("add -c CLUSTER; `argosy cluster list` shows which there are"));
            }
            let spec = args.spec();
            create(session, &noun, args.create, spec).await
        }
        NodepoolVerbs::Explain(args) => pool::explain(session, &noun, &args).await,
        NodepoolVerbs::Simulate(args) => pool::simulate(session, &noun, &args).await,
        NodepoolVerbs::Resume(args) => pool::resume(session, &noun, &args).await,
        NodepoolVerbs::Rest(verb) => rest(session, &noun, verb).await,
    }
}

async fn rest(session: &Session, noun: &Noun, verb: Common) -> Result<Exit, Failure> {
    match verb {
        Common::Get(args) => get(session, noun, args).await,
        Common::List(args) => list(session, noun, args).await,
        Common::Patch(args) => patch(session, noun, args).await,
        Common::Delete(args) => delete(session, noun, args).await,
        Common::Statuses(args) => statuses(session, noun, args).await,
        Common::Watch(args) => watch(session, noun, args).await,
    }
}

async fn create(
    session: &Session,
    noun: &Noun,
    args: Create,
    mut spec: Map<String, Value>,
) -> Result<Exit, Failure> {
    args.changes.apply(&mut spec, false)?;
    let labels = args.labels.pairs()?.into_iter().collect();
    let body = ResourceCreate { kind: None, name: args.name.clone(), spec, labels };
    let options = WriteOptions { dry_run: args.dry_run, ..WriteOptions::default() };
    let made = match session.client.create(noun.collection(), &body, &options).await {
        Ok(made) => made,
        Err(error) => {
            return Err(match &noun.cluster {
                // What is not found by a create is the cluster it was to be in.
                Some(cluster) => session.missing(error, Collection::Clusters, cluster).await,
                None => session.failure(error),
            });
        }
    };
    let what = if args.dry_run { "would be created" } else { "created" };
    report(session, noun, &args.name, &made, what).await;
    if args.dry_run {
        return Ok(Exit::Ok);
    }
    args.waiting.run(session, noun, &args.name, wait::Goal::Ready).await
}

/// One sentence for people; the resource itself when a format was asked for.
async fn report(session: &Session, noun: &Noun, name: &str, item: &Resource, what: &str) {
    match session.format {
        Format::Table | Format::Wide => {
            note(&format!("{} {} {what}", noun.word(), clean(&noun.reference(name))));
        }
        Format::Json | Format::Yaml | Format::Name => {
            view::resources(session, item.kind, std::slice::from_ref(item), false).await;
        }
    }
}

async fn get(session: &Session, noun: &Noun, args: Get) -> Result<Exit, Failure> {
    if args.watch {
        let [name] = args.names.as_slice() else {
            return Err(Failure::usage("--watch follows one resource")
                .fix(format!("`argosy {} list --watch` follows all", noun.command())));
        };
        return follow::one(session, noun, name).await;
    }
    let mut items = Vec::new();
    for name in &args.names {
        let (of, id) = noun.item(name);
        match session.client.get(of, id).await {
            Ok(item) => items.push(item),
            Err(error) => return Err(session.missing(error, of, id).await),
        }
    }
    view::resources(session, noun.kind, &items, 1 < items.len()).await;
    Ok(Exit::Ok)
}

async fn list(session: &Session, noun: &Noun, args: List) -> Result<Exit, Failure> {
    let query = args.selection.query()?;
    let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
    if args.watch {
        return follow::all(session, noun, &query).await;
    }
    let (items, _) = session.list_all(noun.collection(), &query).await?;
    if items.is_empty() && matches!(session.format, Format::Table | Format::Wide) {
        note(&format!("no {}s", noun.word()));
        return Ok(Exit::Ok);
    }
    view::resources(session, noun.kind, &items, true).await;
    Ok(Exit::Ok)
}

async fn patch(session: &Session, noun: &Noun, args: Patch) -> Result<Exit, Failure> {
    let mut spec = Map::new();
    args.changes.apply(&mut spec, true)?;
    let labels = args.labels.changes()?;
    let body = ResourcePatch {
        spec: Some(spec).filter(|spec| !spec.is_empty()),
        labels: Some(labels).filter(|labels| !labels.is_empty()),
    };
    if body == ResourcePatch::default() {
        return Err(Failure::usage("there is nothing to change")
            .fix("say what with --set, --unset, --spec or -l; see --help for examples"));
    }
    let options = WriteOptions {
        dry_run: args.dry_run,
        if_match: args.if_match,
        replace: args.replace,
        force: args.override_protection,
        reason: args.reason,
        ..WriteOptions::default()
    };
    let (of, id) = noun.item(&args.name);
    let changed = match session.client.patch(of, id, &body, &options).await {
        Ok(changed) => changed,
        Err(error) => return Err(session.missing(error, of, id).await),
    };
    let verb = if args.dry_run { "would be at" } else { "is at" };
    let what = format!("{verb} generation {}", changed.generation);
    report(session, noun, &args.name, &changed, &what).await;
    if args.dry_run {
        return Ok(Exit::Ok);
    }
    args.waiting.run(session, noun, &args.name, wait::Goal::Ready).await
}

async fn delete(session: &Session, noun: &Noun, args: Delete) -> Result<Exit, Failure> {
    // What does not exist is said before anybody is asked.
    for name in &args.names {
        let (of, id) = noun.item(name);
        if let Err(error) = session.client.get(of, id).await {
            return Err(session.missing(error, of, id).await);
        }
    }
    let names: Vec<String> =
        args.names.iter().map(|name| format!("`{}`", noun.reference(name))).collect();
    let question = format!(
        "Delete {} {}{} in {}{}?",
        noun.word(),
        names.join(", "),
        if noun.kind == Kind::Cluster { ", with all node pools," } else { "" },
        session.target.name,
        match (args.force, args.now) {
            (true, _) => " without cleanup, which may leave machines running",
            (false, true) => " without a drain: what runs on its nodes is lost",
            (false, false) => "",
        },
    );
    session.confirm(&question, args.yes)?;
    for name in &args.names {
        let (of, id) = noun.item(name);
        // Only what is being deleted can be removed by force.
        let options = WriteOptions {
            now: args.now,
            force: args.override_protection,
            reason: args.reason.clone(),
            ..WriteOptions::default()
        };
        let deleted = session.client.delete(of, id, &options).await;
        let reason = args.reason.as_deref().filter(|_| args.force);
        let removed = match (deleted, reason) {
            (Ok(item), None) => {
                report(session, noun, name, &item, "is being deleted").await;
                continue;
            }
            (Ok(_), Some(reason)) => session.client.force_delete(of, id, reason).await,
            (Err(error), _) => Err(error),
        };
        match removed {
            Ok(()) => note(&format!("{} {} removed by force", noun.word(), clean(name))),
            Err(error) => return Err(session.missing(error, of, id).await),
        }
    }
    for name in &args.names {
        args.waiting.run(session, noun, name, wait::Goal::Deleted).await?;
    }
    Ok(Exit::Ok)
}

async fn statuses(session: &Session, noun: &Noun, args: Statuses) -> Result<Exit, Failure> {
    let (of, id) = noun.item(&args.name);
    let result = if args.history {
        let limit = args.limit.to_string();
        let history = session.client.status_history(of, id, &[("limit", limit.as_str())]).await;
        history.map(|history| view::history(session, &history.items))
    } else {
        session.client.statuses(of, id).await.map(|list| view::statuses(session, &list))
    };
    match result {
        Ok(()) => Ok(Exit::Ok),
        Err(error) => Err(session.missing(error, of, id).await),
    }
}

async fn watch(session: &Session, noun: &Noun, args: Watch) -> Result<Exit, Failure> {
    if let Some(name) = args.name {
        return follow::one(session, noun, &name).await;
    }
    let query = args.selection.query()?;
    let query: Vec<(&str, &str)> = query.iter().map(|(k, v)| (*k, v.as_str())).collect();
    follow::all(session, noun, &query).await
}
