//! A file that no `mod` line reaches is not compiled, and nobody notices.

use crate::repo::{self, File};
use crate::{assert_none, rust};
use std::collections::{BTreeMap, BTreeSet};

/// The Rust files that no crate root reaches.
fn orphans(files: &[File]) -> Vec<String> {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> =
        texts.keys().filter(|path| is_root(path)).map(ToString::to_string).collect();
    while let Some(path) = waiting.pop() {
        if let Some(text) = texts.get(path.as_str())
            && reached.insert(path.clone())
        {
            waiting.extend(children(&path, text));
        }
    }
    texts
        .keys()
        .filter(|path| !reached.contains(**path))
        .map(|path| format!("{path}: no `mod` line reaches it, so it is not compiled"))
        .collect()
}

/// Whether cargo starts from this file by itself.
fn is_root(path: &str) -> bool {
    let inside: Vec<&str> = path.split('/').skip(2).collect();
    matches!(
        inside.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["tests" | "examples" | "benches", _]
            | ["tests" | "examples" | "benches", _, "main.rs"]
    )
}

/// Where the modules that a file declares may be.
fn children(path: &str, text: &str) -> Vec<String> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let base = if is_root(path) || name == "mod.rs" {
        dir.to_string()
    } else {
        format!("{dir}/{}", name.trim_end_matches(".rs"))
    };
    let code = rust::code_only(text);
    rust::places(&code, "mod")
        .filter_map(|at| code.get(at + 3..)?.split_once(';').map(|(name, _)| name.trim()))
        .filter(|name| name.chars().all(|char| char.is_alphanumeric() || char == '_'))
        .flat_map(|name| [format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")])
        .collect()
}

#[test]
fn every_file_is_reached_by_a_mod_line() {
    assert_none(&orphans(&repo::files()));
}

#[test]
fn a_file_nobody_declares_is_found() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let found = orphans(&files);
        let paths: Vec<&str> =
            found.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
        assert_eq!(paths, expected);
    };
    let (root, a, b) = ("crates/x/src/lib.rs", "crates/x/src/a.rs", "crates/x/src/a/b.rs");
    check(&[(root, "pub mod a;"), (a, "#[cfg(test)]\nmod b;"), (b, "")], &[]);
    check(&[(root, "pub mod a;"), (a, "// mod b;"), (b, "")], &[b]);
    check(&[(root, ""), (a, "mod b;"), (b, "")], &[a, b]);
    check(&[("crates/x/tests/it/main.rs", "mod c;"), ("crates/x/tests/it/c.rs", "")], &[]);
    check(
        &[("crates/x/tests/it/main.rs", ""), ("crates/x/tests/it/c.rs", "")],
        &["crates/x/tests/it/c.rs"],
    );
    check(&[("crates/x/src/bin/y.rs", ""), ("crates/x/examples/z.rs", "")], &[]);
}
