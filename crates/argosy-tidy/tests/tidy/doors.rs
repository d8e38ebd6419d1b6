//! Which room may name which in its dependencies. What has no door has no way.

use crate::{assert_none, repo};

/// A crate, and the crates of ours that it may name. Dependencies of tests are free.
const DOORS: &[(&str, &[&str])] = &[
    ("argosy-core", &[]),
    ("argosy-api", &[]),
    ("argosy-policy", &["argosy-core"]),
    ("argosy-store", &["argosy-core"]),
    ("argosy-control", &["argosy-core", "argosy-policy", "argosy-store"]),
    ("argosy-scaleout", &["argosy-core", "argosy-store", "argosy-control"]),
    ("argosy-providers", &["argosy-core", "argosy-control"]),
    ("argosy-server", &["argosy-core", "argosy-control", "argosy-api"]),
    ("argosy-term", &[]),
    ("argosy-agent", &["argosy-api", "argosy-core", "argosy-term"]),
    (
        "argosy-sim",
        &[
            "argosy-core",
            "argosy-store",
            "argosy-control",
            "argosy-api",
            "argosy-agent",
            "argosy-server",
            "argosy-term",
        ],
    ),
    (
        "argosy",
        &[
            "argosy-core",
            "argosy-policy",
            "argosy-api",
            "argosy-store",
            "argosy-scaleout",
            "argosy-control",
            "argosy-providers",
            "argosy-server",
            "argosy-agent",
            "argosy-sim",
            "argosy-term",
        ],
    ),
    ("argosy-nvml-standin", &[]),
    ("argosy-tidy", &[]),
];

fn complaints(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, doors)) = DOORS.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![format!("{name} has no line in DOORS: say what it may depend on, and why")];
    };
    own_dependencies(manifest)
        .filter(|dependency| !doors.contains(&dependency.as_str()))
        .map(|dependency| {
            format!("{name} has no door to {dependency}; it may name: {}", doors.join(", "))
        })
        .collect()
}

/// The crates of ours under `[dependencies]`, `[build-dependencies]` and their target-specific forms.
fn own_dependencies(manifest: &str) -> impl Iterator<Item = String> {
    let mut counts = false;
    manifest.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            counts = section.contains("dependencies") && !section.contains("dev-dependencies");
            // The form `[dependencies.argosy-core]`.
            let (_, name) = section.rsplit_once("dependencies.")?;
            return (counts && name.starts_with("argosy")).then(|| name.to_string());
        }
        let name = line.split(['=', '.', ' ']).next()?;
        (counts && name.starts_with("argosy")).then(|| name.to_string())
    })
}

#[test]
fn every_dependency_goes_through_a_door() {
    let found: Vec<String> = repo::crates()
        .iter()
        .flat_map(|name| {
            let path = repo::root().join("crates").join(name).join("Cargo.toml");
            complaints(name, &std::fs::read_to_string(path).expect("a manifest in each crate"))
        })
        .collect();
    assert_none(&found);
}

#[test]
fn a_dependency_without_a_door_is_found() {
    let check = |name: &str, manifest: &str, count: usize| {
        assert_eq!(complaints(name, manifest).len(), count, "{name}: {manifest}");
    };
    check("argosy-server", "[dependencies]\nargosy-core.workspace = true\nserde = '1'", 0);
    check("argosy-server", "[dependencies]\nargosy-store.workspace = true", 1);
    check("argosy-server", "[dependencies]\nargosy-store = { workspace = true }", 1);
    check("argosy-server", "[dependencies.argosy-store]\nworkspace = true", 1);
    check("argosy-server", "[build-dependencies]\nargosy-store.workspace = true", 1);
    check("argosy-server", "[target.'cfg(unix)'.dependencies]\nargosy-store.workspace = true", 1);
    check("argosy-server", "[dev-dependencies]\nargosy-store.workspace = true", 0);
    check("argosy-core", "[dependencies]\nargosy-api.workspace = true", 1);
    check("argosy-new", "[dependencies]", 1);
}
