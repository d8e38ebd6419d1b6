//! Links that lead somewhere, and a map that shows the whole house.

use crate::repo::{self, File};
use crate::{assert_none, rust};

const MAP_LINES_MAX: usize = 300;

/// The complaints about the links of one page. `find` gives the text of a file of the repository, or
/// an empty text for a directory.
fn broken_links(page: &File, find: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let prose = without_code(&page.text);
    prose
        .match_indices("](")
        .filter_map(|(at, _)| {
            let target = prose.get(at + 2..)?.split_once(')')?.0.trim();
            let line = rust::line(&prose, at);
            if target.contains("://") || target.starts_with("mailto:") {
                return None;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.path.clone() } else { resolve(&page.path, file) };
            let Some(text) = find(&path) else {
                return Some(format!("{}:{line}: there is no `{target}`", page.path));
            };
            let anchored = anchor.is_empty() || anchors(&text).any(|known| known == anchor);
            (!anchored).then(|| format!("{}:{line}: `{path}` has no `#{anchor}`", page.path))
        })
        .collect()
}

/// The text with fenced blocks and code spans blanked, lines kept.
fn without_code(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fenced && !fence {
            prose.extend(line.split('`').step_by(2));
        }
        prose.push('\n');
    }
    prose
}

/// The path a link of a page points to, from the root of the repository.
fn resolve(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as hosts of repositories make them.
fn anchors(text: &str) -> impl Iterator<Item = String> + '_ {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
        kept.map(|char| if char == ' ' { '-' } else { char }).collect()
    })
}

/// The complaints about the map.
fn map_complaints(map: &str, crates: &[String]) -> Vec<String> {
    let lines = map.lines().count();
    let long = (MAP_LINES_MAX < lines).then(|| {
        format!("ARCHITECTURE.md has {lines} lines; {MAP_LINES_MAX} is a map, more a book")
    });
    let missing = crates
        .iter()
        .filter(|name| !map.contains(&format!("`{name}`")))
        .map(|name| format!("ARCHITECTURE.md does not show `{name}`"));
    long.into_iter().chain(missing).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let files = repo::files();
    let find = |path: &str| {
        let file = files.iter().find(|file| file.path == path).map(|file| file.text.clone());
        file.or_else(|| repo::root().join(path).exists().then(String::new))
    };
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    assert_none(&pages.flat_map(|page| broken_links(page, &find)).collect::<Vec<_>>());
}

#[test]
fn the_map_is_short_and_shows_every_crate() {
    let map = std::fs::read_to_string(repo::root().join("ARCHITECTURE.md")).expect("the map");
    assert_none(&map_complaints(&map, &repo::crates()));
}

#[test]
fn a_broken_link_is_found() {
    let find = |path: &str| match path {
        "README.md" => Some("# One\n## Two words, `code`".to_string()),
        "docs/a.md" => Some("# A".to_string()),
        _ => None,
    };
    let check = |text: &str, count: usize| {
        let found = broken_links(&File::new("docs/a.md", text), &find);
        assert_eq!(found.len(), count, "{text}: {found:?}");
    };
    check("[x](../README.md) [y](a.md#a) [z](#a) [w](https://example.com/x.md)", 0);
    check("[x](../README.md#two-words-code)", 0);
    check("[x](README.md)", 1);
    check("[x](../README.md#three)", 1);
    check("[x](#b)", 1);
    check("`[x](nowhere.md)`\n```\n[x](nowhere.md)\n```", 0);
}

#[test]
fn a_long_or_incomplete_map_is_found() {
    let crates = ["argosy".to_string(), "argosy-core".to_string()];
    assert_eq!(map_complaints("`argosy` `argosy-core`", &crates).len(), 0);
    assert_eq!(map_complaints("`argosy-core`", &crates).len(), 1);
    assert_eq!(map_complaints(&"`argosy` `argosy-core`\n".repeat(301), &crates).len(), 1);
}
