//! The files of the repository, as texts.

use std::path::{Path, PathBuf};

/// What is not written by us: the directories `.gitignore` names, git's own, and generated code.
const FOREIGN: [&str; 6] = [".git", "target", ".argosy", ".venv", "node_modules", "generated"];

/// One text file, its path from the root of the repository with `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// A file for a table of a check.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_string(), text: text.to_string() }
    }

    /// Whether it is Rust that only tests compile.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file of the repository, by path. Files that are not UTF-8 are left out.
pub(crate) fn files() -> Vec<File> {
    let mut found = Vec::new();
    walk(&root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(50 < found.len(), "only {} files found: is the root wrong?", found.len());
    found
}

/// The names of the crates: the folders under `crates/`.
pub(crate) fn crates() -> Vec<String> {
    entries(&root().join("crates"))
}

fn walk(dir: &Path, prefix: &str, found: &mut Vec<File>) {
    for name in entries(dir) {
        let (full, path) = (dir.join(&name), format!("{prefix}{name}"));
        if FOREIGN.contains(&name.as_str()) {
            continue;
        }
        if full.is_dir() {
            walk(&full, &format!("{path}/"), found);
        } else if let Ok(text) = std::fs::read_to_string(&full) {
            found.push(File { path, text });
        }
    }
}

fn entries(dir: &Path) -> Vec<String> {
    let read = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> = read
        .map(|entry| {
            entry.expect("a readable directory").file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}
