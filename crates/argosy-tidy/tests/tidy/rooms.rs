//! Words that must not be spoken in a room, with the reason. Tests may say what they like.

use crate::repo::{self, File};
use crate::{assert_none, rust};

/// Where, which words, and why not.
const BANNED: &[(&str, &[&str], &str)] = &[
    (
        "crates/argosy-core/src/",
        &["async", "await", "tokio", "tracing", "rand"],
        "a decision is a function of its arguments: no waiting, no logging, no chance in the core",
    ),
    (
        "crates/argosy-core/src/",
        &[
            "std::fs",
            "std::net",
            "std::thread",
            "std::process",
            "std::env",
            "SystemTime",
            "Instant",
        ],
        "a decision is a function of its arguments: take the time and the facts as parameters",
    ),
    (
        "crates/argosy-control/src/",
        &["axum", "http", "hyper", "reqwest", "StatusCode", "argosy_api"],
        "a service serves HTTP, RPC, CLI and simulation alike: wire types belong to argosy-server",
    ),
    (
        "crates/argosy-server/src/",
        &["argosy_store", "rusqlite", "tokio_postgres"],
        "there is no way past the services: ask argosy-control",
    ),
    (
        "crates/argosy-api/src/",
        &["argosy_core"],
        "a change of the rules must not change the wire by accident",
    ),
    (
        "crates/argosy-agent/src/agent",
        &["async", "await", "tokio", "tracing", "rand", "std::fs", "std::net", "Instant"],
        "the simulator runs the same code: an agent decides, its driver waits, reads and writes",
    ),
    ("crates/argosy-store/src/engine.rs", ENGINE_WORDS, ENGINE_REASON),
    ("crates/argosy-store/src/memory.rs", ENGINE_WORDS, ENGINE_REASON),
    ("crates/argosy-store/src/embedded", ENGINE_WORDS, ENGINE_REASON),
    ("crates/argosy-scaleout/src/", ENGINE_WORDS, ENGINE_REASON),
];

const ENGINE_WORDS: &[&str] = &["Resource", "Cluster", "NodePool", "argosy_core::resource"];
const ENGINE_REASON: &str = "engines know documents, not what is in them";

fn complaints(file: &File) -> Vec<String> {
    if !file.is_rust() || file.is_test() {
        return Vec::new();
    }
    let code = rust::code_only(&file.text);
    BANNED
        .iter()
        .filter(|(room, _, _)| file.path.starts_with(room))
        .flat_map(|(_, words, reason)| words.iter().map(move |word| (word, reason)))
        .flat_map(|(word, reason)| {
            let code = &code;
            rust::places(code, word).map(move |at| {
                format!("{}:{}: `{word}`: {reason}", file.path, rust::line(code, at))
            })
        })
        .collect()
}

#[test]
fn files_keep_to_their_room() {
    assert_none(&repo::files().iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn a_word_in_the_wrong_room_is_found_with_its_line_and_reason() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let found = complaints(&File::new(path, text));
        assert_eq!(found.len(), expected.len(), "{path}: {found:?}");
        for (complaint, start) in found.iter().zip(expected) {
            assert!(complaint.starts_with(start), "{complaint} does not start with {start}");
        }
    };
    let core = "crates/argosy-core/src/x.rs";
    check(core, "//! Not async.\nasync fn f() {}", &["crates/argosy-core/src/x.rs:2: `async`: a "]);
    check(
        core,
        "use std::fs;\nlet now = Instant::now();",
        &[&format!("{core}:1"), &format!("{core}:2")],
    );
    check(core, "let operand = \"tokio\"; // rand", &[]);
    check("crates/argosy-core/src/x/tests.rs", "use rand;", &[]);
    check("crates/argosy-control/src/a.rs", "fn f(s: http::StatusCode) {}", &["", ""]);
    check("crates/argosy-server/src/a.rs", "use argosy_store::Store;", &["crates/argosy-server"]);
    check("crates/argosy-api/src/a.rs", "use argosy_core::id;", &[""]);
    check("crates/argosy-store/src/embedded/schema.rs", "fn f(r: Resource) {}", &[""]);
    check("crates/argosy-store/src/view.rs", "fn f(r: Resource) {}", &[]);
    check("crates/argosy-scaleout/src/postgres.rs", "use argosy_core::resource::Kind;", &[""]);
}
