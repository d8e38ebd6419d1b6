//! Where the configuration comes from: defaults, the file, the environment, flags; later wins.

use super::{Config, check, navarch};
use crate::failure::Failure;
use argosy_core::merge::merge;
use argosy_core::nearest::nearest;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The longest file that is read. A longer one is not a configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// One value that a flag or the environment sets.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    /// The key, with dots: `log.level`.
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// `flag --log-level` or `env ARGOSY_LOG_LEVEL`.
    pub(crate) origin: String,
}

/// The configuration that holds, and where each value of it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Effective {
    pub(crate) config: Config,
    file: Option<(PathBuf, Value)>,
    overrides: Vec<Override>,
}

/// Reads the file, puts the overrides on top, and checks the result as a whole.
pub(crate) fn load(file: Option<&Path>, overrides: Vec<Override>) -> Result<Effective, Failure> {
    let (config, file) = match file {
        Some(path) => {
            let text = read(path)?;
            let (config, set) = match navarch_of(&text, path)? {
                Some(converted) => {
                    for (key, sentence) in &converted.remarks {
                        crate::output::note(&format!("{}: {key}: {sentence}", path.display()));
                    }
                    let set = serde_json::to_value(&converted.config).unwrap_or_default();
                    (converted.config, set)
                }
                None => parse(&text, path)?,
            };
            (config, Some((path.to_owned(), set)))
        }
        None => (Config::default(), None),
    };
    let mut tree = serde_json::to_value(&config)
        .map_err(|error| Failure::failed("the configuration cannot be written down").why(error))?;
    for set in &overrides {
        *slot(&mut tree, set.key) = set.value.clone();
    }
    let config: Config = serde_json::from_value(tree)
        .map_err(|error| Failure::usage("a flag or environment variable is wrong").why(error))?;
    let inline_secret = file.as_ref().and_then(|(_, set)| set.get("store")).and_then(Value::as_str);
    check(&config, inline_secret).map_err(|failure| match &file {
        Some((path, _)) => {
            failure.why(format!("in {} and what flags and environment add", path.display()))
        }
        None => failure,
    })?;
    Ok(Effective { config, file, overrides })
}

/// The configuration of a file with a part of one laid over it: objects merge, `null` makes a default. `name`
/// is what complaints call that part.
pub(crate) fn load_under(
    file: Option<&Path>,
    patch: &Map<String, Value>,
    name: &str,
) -> Result<Config, Failure> {
    let base = load(file, Vec::new())?.config;
    if patch.is_empty() {
        return Ok(base);
    }
    let base = match serde_json::to_value(&base) {
        Ok(Value::Object(base)) => base,
        Ok(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        )
        | Err(_) => return Err(Failure::failed("the configuration cannot be written down")),
    };
    let config = patched(&base, patch).map_err(|error| {
        let key = wrong_key(&base, &[], patch).unwrap_or_default();
        Failure::usage(format!("{name}.{}: this cannot be used", crate::output::clean(&key)))
            .why(crate::output::clean(&error.to_string()))
            .fix("docs/config.md lists every key with its form")
    })?;
    check(&config, None).map_err(|failure| failure.why(format!("in what {name} adds")))?;
    Ok(config)
}

fn patched(base: &Map<String, Value>, patch: &Map<String, Value>) -> serde_json::Result<Config> {
    let mut tree = base.clone();
    merge(&mut tree, patch);
    serde_json::from_value(Value::Object(tree))
}

/// The deepest key that makes the patch wrong by itself.
fn wrong_key(
    base: &Map<String, Value>,
    path: &[&str],
    patch: &Map<String, Value>,
) -> Option<String> {
    patch.iter().find_map(|(key, value)| {
        let deeper: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
        let alone = deeper.iter().rev().fold(value.clone(), |inner, key| {
            Value::Object(Map::from_iter([((*key).to_owned(), inner)]))
        });
        let alone = alone.as_object()?;
        if patched(base, alone).is_ok() {
            return None;
        }
        let inside = value.as_object().and_then(|inside| wrong_key(base, &deeper, inside));
        inside.or_else(|| Some(deeper.join(".")))
    })
}

/// A file of Navarch's, read as ours; `None` if it is none.
///
/// # Errors
/// It is one, and cannot be understood.
pub(crate) fn navarch_of(text: &str, path: &Path) -> Result<Option<navarch::Converted>, Failure> {
    // What is not YAML is for the strict reader to complain about.
    let Ok(tree) = serde_saphyr::from_str::<Value>(text) else { return Ok(None) };
    if !navarch::is_navarch(&tree) {
        return Ok(None);
    }
    let converted = navarch::convert(&tree);
    let of = |failure: Failure| failure.why(format!("in {}, a file of Navarch", path.display()));
    converted.map(Some).map_err(of)
}

/// Reads the text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let unreadable =
        |why: String| Failure::usage(format!("cannot read {}", path.display())).why(why);
    let length = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if FILE_BYTES_MAX < length {
        return Err(unreadable(format!("it is {length} bytes long; at most {FILE_BYTES_MAX}")));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

/// Reads the text of a file, strictly: unknown keys, keys given twice and `yes` for `true` are
/// complaints that name the line.
pub(super) fn parse(text: &str, path: &Path) -> Result<(Config, Value), Failure> {
    let options = || {
        serde_saphyr::options! {
            strict_booleans: true,
            with_snippet: false,
            merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        }
    };
    // An empty file, or one of comments only, is a file that sets nothing.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok((Config::default(), Value::Object(Map::new())));
    }
    let config = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| complaint(&error, path))?;
    let set = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| complaint(&error, path))?;
    Ok((config, set))
}

fn complaint(error: &serde_saphyr::Error, path: &Path) -> Failure {
    let place = match error.location() {
        Some(location) => format!("{}:{}", path.display(), location.line()),
        None => path.display().to_string(),
    };
    let known = |word: &str, expected: &[&'static str], noun: &str, failure: Failure| match nearest(
        word,
        expected.iter().copied(),
    ) {
        Some(near) => failure.fix(format!("did you mean `{near}`?")),
        None => failure.fix(format!("known {noun} here: {}", expected.join(", "))),
    };
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser has a hundred complaints; two get a better fix than their own words"
    )]
    match error.without_snippet() {
        serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => known(
            field,
            expected,
            "keys",
            Failure::usage(format!("{place}: unknown key `{}`", crate::output::clean(field))),
        ),
        serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => known(
            variant,
            expected,
            "values",
            Failure::usage(format!("{place}: unknown value `{}`", crate::output::clean(variant))),
        ),
        other => Failure::usage(format!("{place}: the file cannot be understood"))
            .why(crate::output::clean(&other.to_string()))
            .fix("docs/config.md lists every key with its form"),
    }
}

/// The place of a key in the tree; made if it is not there.
fn slot<'a>(tree: &'a mut Value, key: &str) -> &'a mut Value {
    key.split('.').fold(tree, |place, name| {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        match place {
            Value::Object(map) => map.entry(name).or_insert(Value::Null),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                unreachable!("it was made an object above")
            }
        }
    })
}

/// One value of the effective configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: String,
}

impl Effective {
    /// Every value with its origin, by key.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let tree = serde_json::to_value(&self.config).unwrap_or_default();
        let mut lines = Vec::new();
        self.collect("", &tree, &mut lines);
        lines
    }

    fn collect(&self, prefix: &str, value: &Value, lines: &mut Vec<Line>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    let key =
                        if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    self.collect(&key, value, lines);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (place, item) in items.iter().enumerate() {
                    self.collect(&format!("{prefix}[{place}]"), item, lines);
                }
            }
            Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => lines.push(Line {
                key: prefix.to_owned(),
                value: shown(prefix, value),
                origin: self.origin(prefix),
            }),
        }
    }

    fn origin(&self, key: &str) -> String {
        if let Some(set) = self.overrides.iter().find(|set| set.key == key) {
            return set.origin.clone();
        }
        // A list comes from one place as a whole.
        let key = key.split('[').next().unwrap_or(key);
        if let Some((path, set)) = &self.file
            && key.split('.').try_fold(set, |tree, name| tree.get(name)).is_some()
        {
            return format!("file {}", path.display());
        }
        "default".to_owned()
    }
}

/// The value without a password: the store's address may hold one when it comes from outside.
fn shown(key: &str, value: &Value) -> Value {
    match (key, value.as_str()) {
        ("store", Some(url)) => Value::String(without_password(url)),
        _ => value.clone(),
    }
}

/// A URL with `***` in place of its password.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    match authority.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?.0, host)))
    {
        Some((user, host)) => format!("{scheme}://{user}:***@{host}{path}"),
        None => url.to_owned(),
    }
}
