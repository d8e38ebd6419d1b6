//! Documents that say what should be there.

use crate::failure::Failure;
use crate::output::clean;
use argosy_api::resource::Kind;
use argosy_core::nearest::nearest;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file that is read: more is not written by people.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a document may hold.
const KEYS: [&str; 6] = ["kind", "name", "cluster", "spec", "labels", "items"];

/// What `get -o yaml` prints beyond that; the server sets it, so it is not asked for.
const SERVER_KEYS: [&str; 17] = [
    "id",
    "uid",
    "href",
    "tenancy",
    "generation",
    "revision",
    "status",
    "cluster_id",
    "owner_references",
    "created_at",
    "updated_at",
    "created_time",
    "updated_time",
    "created_by",
    "updated_by",
    "deleted_time",
    "deleted_by",
];

/// One resource that should be there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manifest {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// For a node pool: the name or id of its cluster.
    pub(super) cluster: Option<String>,
    pub(super) spec: Map<String, Value>,
    /// `None`: leave them as they are.
    pub(super) labels: Option<BTreeMap<String, String>>,
    /// Which document of which file, for complaints.
    pub(super) place: String,
}

impl Manifest {
    /// `NAME`, or `CLUSTER/NAME`.
    pub(super) fn reference(&self) -> String {
        match &self.cluster {
            Some(cluster) => format!("{cluster}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Every document of every file, clusters first.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Vec::new();
    for path in paths {
        for file in files(path)? {
            let place = if file == Path::new("-") {
                "standard input".to_owned()
            } else {
                file.display().to_string()
            };
            parse(&content(&file)?, &place, &mut manifests)?;
        }
    }
    if manifests.is_empty() {
        return Err(Failure::usage("there is no document in what was given"));
    }
    let mut seen = BTreeSet::new();
    for manifest in &manifests {
        if !seen.insert((format!("{:?}", manifest.kind), manifest.reference())) {
            return Err(Failure::usage(format!(
                "{}: {:?} {} is given twice",
                manifest.place,
                manifest.kind,
                clean(&manifest.reference())
            )));
        }
    }
    manifests.sort_by_key(|manifest| manifest.kind == Kind::NodePool);
    Ok(manifests)
}

/// The files a path stands for.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path == Path::new("-") || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| Failure::usage(format!("cannot read {}", path.display())).why(error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let known = file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if known && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn content(file: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::usage(format!("cannot read {}", file.display())).why(error)
    };
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    } else {
        let open = std::fs::File::open(file).map_err(unreadable)?;
        open.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    }
    match u64::try_from(text.len()) {
        Ok(length) if length <= FILE_BYTES_MAX => Ok(text),
        Ok(_) | Err(_) => {
            Err(Failure::usage(format!("{} is longer than {FILE_BYTES_MAX} bytes", file.display())))
        }
    }
}

fn parse(text: &str, place: &str, manifests: &mut Vec<Manifest>) -> Result<(), Failure> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let line = error.location().map(|at| format!(":{}", at.line())).unwrap_or_default();
            Failure::usage(format!("{place}{line}: this is neither YAML nor JSON"))
                .why(clean(&error.to_string()))
        })?;
    for (number, document) in documents.into_iter().enumerate() {
        let place = format!("{place}, document {}", number + 1);
        match document {
            Value::Null => {}
            // A list, as `list -o yaml` prints it.
            Value::Object(mut list) if list.get("items").is_some_and(Value::is_array) => {
                if let Some(Value::Array(items)) = list.remove("items") {
                    for (number, item) in items.into_iter().enumerate() {
                        manifests.push(one(item, format!("{place}, item {}", number + 1))?);
                    }
                }
            }
            document @ (Value::Object(_)
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)) => manifests.push(one(document, place)?),
        }
    }
    Ok(())
}

fn one(document: Value, place: String) -> Result<Manifest, Failure> {
    let wrong = |what: &str| Failure::usage(format!("{place}: {what}"));
    let Value::Object(mut members) = document else {
        return Err(wrong("a document is an object with kind, name and spec"));
    };
    for key in members.keys() {
        if !KEYS.contains(&key.as_str()) && !SERVER_KEYS.contains(&key.as_str()) {
            let failure = wrong(&format!("unknown key `{}`", clean(key)));
            return Err(match nearest(key, KEYS) {
                Some(near) => failure.fix(format!("did you mean `{near}`?")),
                None => failure.fix("a document has kind, name, cluster, spec and labels"),
            });
        }
    }
    let kind = match members.get("kind").and_then(Value::as_str) {
        Some("Cluster") => Kind::Cluster,
        Some("NodePool") => Kind::NodePool,
        Some(_) | None => return Err(wrong("kind must be Cluster or NodePool")),
    };
    let text = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(wrong(&format!("{key} must be text"))),
    };
    let name = text("name")?.ok_or_else(|| wrong("name is missing"))?;
    let cluster = match (kind, text("cluster")?.or(text("cluster_id")?)) {
        (Kind::NodePool, None) => {
            return Err(wrong("cluster is missing: a node pool belongs to one"));
        }
        (Kind::NodePool, cluster) => cluster,
        (Kind::Cluster, _) => None,
    };
    let spec = match members.remove("spec") {
        Some(Value::Object(spec)) => spec,
        None => return Err(wrong("spec is missing")),
        Some(_) => return Err(wrong("spec must be an object")),
    };
    let labels = match members.remove("labels") {
        None => None,
        Some(labels) => Some(
            serde_json::from_value(labels)
                .map_err(|_| wrong("labels must be an object whose values are text"))?,
        ),
    };
    Ok(Manifest { kind, name, cluster, spec, labels, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<String>, String> {
        let mut manifests = Vec::new();
        parse(text, "f.yaml", &mut manifests).map_err(|failure| failure.to_string())?;
        let line = |m: &Manifest| format!("{:?} {} {}", m.kind, m.reference(), m.spec.len());
        Ok(manifests.iter().map(line).collect())
    }

    #[test]
    fn documents_are_read_from_yaml_and_json() {
        let rows: [(&str, &[&str]); 4] = [
            ("kind: Cluster\nname: a\nspec: {region: r}\n", &["Cluster a 1"]),
            (
                "kind: Cluster\nname: a\nspec: {}\n---\nkind: NodePool\nname: w\ncluster: a\nspec: {nodeCount: 3}\n",
                &["Cluster a 0", "NodePool a/w 1"],
            ),
            (
                r#"{"kind":"Cluster","name":"a","spec":{"x":1,"y":2},"id":"i","status":{}}"#,
                &["Cluster a 2"],
            ),
            (
                "kind: NodePoolList\ntotal: 1\nitems: [{kind: NodePool, name: w, cluster_id: u, spec: {}}]",
                &["NodePool u/w 0"],
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(read_text(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_document() {
        let rows = [
            ("kind: Cluster\nname: a\nspc: {}\n", "unknown key `spc`\n  fix: did you mean `spec`?"),
            ("kind: Pool\nname: a\nspec: {}", "kind must be Cluster or NodePool"),
            ("name: a", "kind must be"),
            ("kind: Cluster\nspec: {}", "name is missing"),
            ("kind: Cluster\nname: 3\nspec: {}", "name must be text"),
            ("kind: Cluster\nname: a", "spec is missing"),
            ("kind: Cluster\nname: a\nspec: [1]", "spec must be an object"),
            ("kind: NodePool\nname: a\nspec: {}", "cluster is missing"),
            ("kind: Cluster\nname: a\nspec: {}\nlabels: {a: 1}", "labels must be"),
            ("- 1", "a document is an object"),
            ("kind: Cluster\nname: a\nspec: {}\n---\nkind: [", "f.yaml:"),
            ("kind: Cluster\nname: a\nname: b\nspec: {}", "f.yaml:3"),
        ];
        for (text, expected) in rows {
            let complaint = read_text(text).unwrap_err();
            assert!(complaint.contains(expected), "{text}\n{complaint}\nlacks {expected}");
        }
    }
}
