//! What we build on: licences, sources, banned packages and duplicate versions.
//!
//! The lists are in `deny.toml`, their one home: `cargo deny` reads them once a week, together with
//! the advisories; this reads them in every run, without a tool that must itself be compiled.

use crate::{assert_none, repo};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// One package of the dependency tree.
struct Package {
    name: String,
    version: String,
    licence: String,
    /// `None` for our own.
    source: Option<String>,
}

/// The lists of `deny.toml`.
struct Lists {
    licences: Vec<String>,
    banned: Vec<String>,
    /// Packages that may be there in more than one version.
    duplicates: Vec<String>,
}

impl Lists {
    /// Reads the three lists, which stand one entry a line.
    fn parse(text: &str) -> Self {
        let list = |open: &str| -> Vec<String> {
            text.lines()
                .skip_while(|line| *line != open)
                .skip(1)
                .take_while(|line| *line != "]")
                .filter_map(|line| line.split('"').nth(1).map(ToString::to_string))
                .collect()
        };
        Self { licences: list("allow = ["), banned: list("deny = ["), duplicates: list("skip = [") }
    }
}

fn complaints(packages: &[Package], lists: &Lists) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, licence, source } = package;
        versions.entry(name).or_default().insert(version);
        if !permitted(licence, &lists.licences) {
            found.push(format!("{name} {version}: licence `{licence}` is not in deny.toml"));
        }
        if lists.banned.contains(name) {
            found.push(format!("{name} {version} is banned; deny.toml says why"));
        }
        if source.as_ref().is_some_and(|source| source != CRATES_IO) {
            found.push(format!("{name} {version} does not come from crates.io"));
        }
    }
    for (name, versions) in &versions {
        let listed = lists.duplicates.iter().any(|listed| listed == name);
        if 1 < versions.len() && !listed {
            found.push(format!(
                "{name} is there as {versions:?}: bring them together, or add it to `skip` in \
                 deny.toml with the reason"
            ));
        }
        if versions.len() == 1 && listed {
            found.push(format!("{name} is there once: remove it from `skip` in deny.toml"));
        }
    }
    found
}

/// Whether an SPDX expression can be met with the licences of the list.
fn permitted(licence: &str, list: &[String]) -> bool {
    // Old manifests write `MIT/Apache-2.0` and mean OR.
    let spaced = licence.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any(&mut rest, list) && rest.is_empty()
}

fn any(rest: &mut &[&str], list: &[String]) -> bool {
    let mut met = all(rest, list);
    while let Some((&"OR", after)) = rest.split_first() {
        *rest = after;
        met |= all(rest, list);
    }
    met
}

fn all(rest: &mut &[&str], list: &[String]) -> bool {
    let mut met = one(rest, list);
    while let Some((&"AND", after)) = rest.split_first() {
        *rest = after;
        met &= one(rest, list);
    }
    met
}

fn one(rest: &mut &[&str], list: &[String]) -> bool {
    let Some((first, after)) = rest.split_first() else { return false };
    *rest = after;
    if *first == "(" {
        let met = any(rest, list);
        *rest = rest.split_first().map_or(&[], |(_, after)| after);
        return met;
    }
    let mut name = (*first).to_string();
    if let ["WITH", exception, after @ ..] = *rest {
        name = format!("{name} WITH {exception}");
        *rest = after;
    }
    list.contains(&name)
}

/// The dependency tree on this machine's platform.
fn packages() -> Vec<Package> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &target])
        .current_dir(repo::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON from cargo");
    let text = |package: &Value, member: &str| {
        package.get(member).and_then(Value::as_str).map(ToString::to_string)
    };
    let listed = metadata.get("packages").and_then(Value::as_array).expect("packages");
    listed
        .iter()
        .map(|package| Package {
            name: text(package, "name").expect("a name"),
            version: text(package, "version").expect("a version"),
            licence: text(package, "license").unwrap_or_default(),
            source: text(package, "source"),
        })
        .collect()
}

#[test]
fn licences_sources_and_versions_are_as_listed() {
    let deny = std::fs::read_to_string(repo::root().join("deny.toml")).expect("deny.toml");
    let lists = Lists::parse(&deny);
    assert!(lists.licences.contains(&"MIT".to_string()), "deny.toml has no list of licences");
    assert!(lists.banned.contains(&"sqlx".to_string()), "deny.toml has no list of bans");
    assert_none(&complaints(&packages(), &lists));
}

#[test]
fn what_the_lists_do_not_say_is_found() {
    let deny = "allow = [\n  \"MIT\",\n]\ndeny = [\n  { crate = \"sqlx\", reason = \"r\" },\n]\n\
                skip = [\n  { crate = \"syn\", reason = \"r\" },\n]";
    let lists = Lists::parse(deny);
    let check = |packages: &[(&str, &str, &str, &str)], expected: &[&str]| {
        let packages: Vec<Package> = packages
            .iter()
            .map(|(name, version, licence, source)| Package {
                name: (*name).to_string(),
                version: (*version).to_string(),
                licence: (*licence).to_string(),
                source: Some((*source).to_string()),
            })
            .collect();
        let found = complaints(&packages, &lists);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (complaint, part) in found.iter().zip(expected) {
            assert!(complaint.contains(part), "{complaint} does not say {part}");
        }
    };
    let io = CRATES_IO;
    check(&[("a", "1", "MIT", io), ("syn", "2", "MIT", io), ("syn", "3", "MIT", io)], &[]);
    check(&[("a", "1", "GPL-3.0", io)], &["licence `GPL-3.0`"]);
    check(&[("a", "1", "", io)], &["licence ``"]);
    check(&[("sqlx", "1", "MIT", io)], &["sqlx 1 is banned"]);
    check(&[("a", "1", "MIT", "git+https://example.com")], &["does not come from crates.io"]);
    check(&[("a", "1", "MIT", io), ("a", "2", "MIT", io)], &["a is there as"]);
    check(&[("syn", "2", "MIT", io)], &["syn is there once"]);
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let list: Vec<String> = ["MIT", "ISC"].map(ToString::to_string).to_vec();
    for (licence, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("Apache-2.0/MIT", true),
        ("Apache-2.0 / MIT", true),
        ("MIT AND GPL-3.0", false),
        ("ISC AND (GPL-3.0 OR MIT)", true),
        ("(GPL-3.0 OR MIT) AND Zlib", false),
        ("MIT WITH exception", false),
        ("", false),
        ("MIT ISC", false),
    ] {
        assert_eq!(permitted(licence, &list), expected, "{licence}");
    }
}
