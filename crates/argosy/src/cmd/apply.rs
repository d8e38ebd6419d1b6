//! `argosy apply` and `argosy diff`: what files ask for, against what is there.

mod manifest;

use super::resource::Noun;
use crate::failure::{Exit, Failure};
use crate::output::{Paint, Screen, clean, note, print};
use crate::session::Session;
use argosy_api::client::{ClientError, Collection, WriteOptions};
use argosy_api::resource::{Kind, Resource, ResourceCreate, ResourcePatch};
use clap::Args;
use manifest::Manifest;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Make clusters and node pools as files say.
///
/// A document replaces the whole spec; its labels replace all labels if it has any. What is in no
/// file stays as it is.
#[derive(Args, Debug)]
#[command(after_help = "\
A file holds one or more documents, YAML or JSON:

  kind: Cluster
  name: alpha
  labels: {team: ml}
  spec: {provider: gcp, region: us-east1}
  ---
  kind: NodePool
  cluster: alpha
  name: workers
  spec: {machineType: n1-standard-4, nodeCount: 3}

Shows what would change, and asks. Exit code 2 of --dry-run means that there are changes.

Examples:
  argosy apply -f fleet.yaml
  argosy apply -f fleet/ --yes
  argosy cluster get alpha -o yaml | argosy apply -f - --dry-run")]
pub(crate) struct Apply {
    #[command(flatten)]
    files: Files,
    /// Show what would change, let the server check it, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

/// Show what `apply` would change.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit code 0: no changes; 2: changes.

Examples:
  argosy diff -f fleet.yaml
  argosy diff -f - < fleet.yaml")]
pub(crate) struct Diff {
    #[command(flatten)]
    files: Files,
}

#[derive(Args, Debug)]
struct Files {
    /// A file, a directory of .yaml, .yml and .json files, or - for standard input; may be repeated.
    #[arg(short, long, required = true, value_name = "FILE")]
    file: Vec<PathBuf>,
}

/// `argosy apply`
pub(super) async fn apply(session: &Session, args: Apply) -> Result<Exit, Failure> {
    let steps = plan(session, &args.files).await?;
    check(session, &steps).await?;
    let changes = show(&session.screen, &steps);
    if changes == 0 {
        return Ok(Exit::Ok);
    }
    if args.dry_run {
        return Ok(Exit::Changes);
    }
    let question = format!("Make {changes} changes in {}?", session.target.name);
    session.confirm(&question, args.yes)?;
    for step in &steps {
        if send(session, step, false).await? {
            let (manifest, done) = (&step.manifest, step.done());
            note(&format!("{} {} {done}", noun(manifest).word(), clean(&manifest.reference())));
        }
    }
    Ok(Exit::Ok)
}

/// `argosy diff`
pub(super) async fn diff(session: &Session, args: Diff) -> Result<Exit, Failure> {
    let steps = plan(session, &args.files).await?;
    check(session, &steps).await?;
    Ok(if show(&session.screen, &steps) == 0 { Exit::Ok } else { Exit::Changes })
}

/// The label that a file takes off only by saying so.
const PROTECTED: &str = "argosy.dev/protected";

/// What is to be done about one document.
struct Step {
    manifest: Manifest,
    /// As it is; `None` if it is to be created.
    current: Option<Box<Resource>>,
    differences: Vec<Difference>,
    /// Its cluster is created by the same files, so the server cannot check it yet.
    early: bool,
}

impl Step {
    fn done(&self) -> &'static str {
        if self.current.is_some() { "changed" } else { "created" }
    }
}

fn noun(manifest: &Manifest) -> Noun {
    match manifest.kind {
        Kind::Cluster => Noun::CLUSTERS,
        Kind::NodePool => Noun::of_pools(manifest.cluster.clone()),
    }
}

async fn plan(session: &Session, files: &Files) -> Result<Vec<Step>, Failure> {
    let mut steps: Vec<Step> = Vec::new();
    for manifest in manifest::read(&files.file)? {
        let noun = noun(&manifest);
        let current = match session.client.get(noun.collection(), &manifest.name).await {
            Ok(item) => Some(item),
            Err(error) if error.status() == Some(404) => None,
            Err(error) => return Err(session.failure(error)),
        };
        if current.as_ref().is_some_and(|item| item.deleted_time.is_some()) {
            return Err(Failure::new(
                Exit::Conflict,
                format!("{} {} is still being deleted", noun.word(), clean(&manifest.reference())),
            )
            .fix(format!(
                "argosy wait {}/{} --for deleted",
                noun.command(),
                manifest.reference()
            )));
        }
        let early = steps.iter().any(|step| {
            step.current.is_none()
                && step.manifest.kind == Kind::Cluster
                && Some(&step.manifest.name) == manifest.cluster.as_ref()
        });
        let differences = differences(&manifest, current.as_ref());
        steps.push(Step { manifest, current: current.map(Box::new), differences, early });
    }
    Ok(steps)
}

/// Lets the server check every step, so that nothing is half done for a mistake in the last file.
async fn check(session: &Session, steps: &[Step]) -> Result<(), Failure> {
    for step in steps.iter().filter(|step| !step.early) {
        send(session, step, true).await?;
    }
    Ok(())
}

/// How often a change is sent again because only the status has moved since it was read: adapters and nodes report
/// several times a second while a pool comes up. Fewer, and `apply` fails on a lively pool; more, and it would not end.
const SENT_MAX: u32 = 10;

/// Sends a step; says whether there was anything to send.
async fn send(session: &Session, step: &Step, dry_run: bool) -> Result<bool, Failure> {
    let manifest = &step.manifest;
    let noun = noun(manifest);
    let result = match &step.current {
        None => {
            let body = ResourceCreate {
                kind: None,
                name: manifest.name.clone(),
                spec: manifest.spec.clone(),
                labels: manifest.labels.clone().unwrap_or_default(),
            };
            let options = WriteOptions { dry_run, ..WriteOptions::default() };
            session.client.create(noun.collection(), &body, &options).await.map(drop)
        }
        Some(_) if step.differences.is_empty() => return Ok(false),
        Some(current) => change(session, manifest, current, dry_run).await,
    };
    match result {
        Ok(()) => Ok(true),
        Err(error) => {
            let failure = match &manifest.cluster {
                Some(cluster) => session.missing(error, Collection::Clusters, cluster).await,
                None => session.failure(error),
            };
            Err(failure.why(format!("in {}", manifest.place)))
        }
    }
}

/// Changes a resource, only if it still is what the difference was shown for; a report about it that came since is no
/// reason to refuse.
async fn change(
    session: &Session,
    manifest: &Manifest,
    shown: &Resource,
    dry_run: bool,
) -> Result<(), ClientError> {
    let noun = noun(manifest);
    let collection = noun.collection();
    let labels = manifest
        .labels
        .as_ref()
        .map(|labels| labels.iter().map(|(k, v)| (k.clone(), Value::String(v.clone()))).collect());
    let body = ResourcePatch { spec: Some(manifest.spec.clone()), labels };
    let mut revision = shown.revision;
    let mut sent = 1;
    loop {
        let options = WriteOptions {
            dry_run,
            if_match: Some(revision),
            replace: true,
            ..WriteOptions::default()
        };
        let error = match session.client.patch(collection, &manifest.name, &body, &options).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if error.status() != Some(409) || SENT_MAX <= sent {
            return Err(error);
        }
        let now = session.client.get(collection, &manifest.name).await?;
        let asked = |item: &Resource| (item.id.clone(), item.generation, item.labels.clone());
        if asked(&now) != asked(shown) {
            return Err(error);
        }
        revision = now.revision;
        sent += 1;
    }
}

/// One member that differs.
#[derive(Clone, Debug, PartialEq)]
struct Difference {
    path: String,
    before: Option<Value>,
    after: Option<Value>,
}

fn differences(manifest: &Manifest, current: Option<&Resource>) -> Vec<Difference> {
    let mut found = Vec::new();
    let before = current.map(|item| Value::Object(item.spec.clone()));
    compare("spec", before.as_ref(), Some(&Value::Object(manifest.spec.clone())), &mut found);
    if let Some(labels) = &manifest.labels {
        let object = |labels: &std::collections::BTreeMap<String, String>| {
            let members = labels.iter().map(|(k, v)| (k.clone(), Value::String(v.clone())));
            Value::Object(members.collect::<Map<_, _>>())
        };
        // The server keeps it until somebody says that it is off.
        let kept = |key: &str| key == PROTECTED && !labels.contains_key(key);
        let before = current.map(|item| {
            let mut known = item.labels.clone();
            known.retain(|key, _| !kept(key));
            object(&known)
        });
        compare("labels", before.as_ref(), Some(&object(labels)), &mut found);
    }
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    let empty = Map::new();
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            members(path, before, after, found);
        }
        (None, Some(Value::Object(after))) if !after.is_empty() => {
            members(path, &empty, after, found);
        }
        (Some(Value::Object(before)), None) if !before.is_empty() => {
            members(path, before, &empty, found);
        }
        // The spec and the labels themselves are always there.
        (None, Some(Value::Object(_))) if !path.contains('.') => {}
        (before, after) => found.push(Difference {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn members(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    found: &mut Vec<Difference>,
) {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        compare(&format!("{path}.{name}"), before.get(name), after.get(name), found);
    }
}

/// Prints every step with its differences, and how many change something.
fn show(screen: &Screen, steps: &[Step]) -> usize {
    let mut text = String::new();
    let (mut created, mut changed) = (0, 0);
    for step in steps {
        let title =
            format!("{} {}", noun(&step.manifest).command(), clean(&step.manifest.reference()));
        match (&step.current, step.differences.is_empty()) {
            (None, _) => {
                created += 1;
                text.push_str(&screen.paint(&format!("+ {title}"), Paint::Good));
            }
            (Some(_), false) => {
                changed += 1;
                text.push_str(&screen.paint(&format!("~ {title}"), Paint::Busy));
            }
            (Some(_), true) => text.push_str(&screen.paint(&format!("  {title}"), Paint::Dim)),
        }
        text.push('\n');
        for difference in &step.differences {
            text.push_str(&difference.line(screen));
        }
    }
    let same = steps.len() - created - changed;
    text.push_str(&format!("{created} to create, {changed} to change, {same} as they should be\n"));
    print(&text);
    created + changed
}

impl Difference {
    fn line(&self, screen: &Screen) -> String {
        let path = clean(&self.path);
        let value = |value: &Value| clean(&value.to_string());
        let (text, paint) = match (&self.before, &self.after) {
            (None, Some(after)) => (format!("+ {path}: {}", value(after)), Paint::Good),
            (Some(before), None) => (format!("- {path}: {}", value(before)), Paint::Bad),
            (before, after) => {
                let shown = |side: &Option<Value>| side.as_ref().map_or(String::new(), value);
                (format!("~ {path}: {} → {}", shown(before), shown(after)), Paint::Busy)
            }
        };
        format!("    {}\n", screen.paint(&text, paint))
    }
}

#[cfg(test)]
mod tests;
