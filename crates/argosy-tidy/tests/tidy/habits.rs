//! Leftovers that are fine on a desk and not in the house.

use crate::repo::{self, File};
use crate::{assert_none, rust};

/// The one thing of a test that may sleep in real time: a helper that polls a condition of another
/// process until a deadline. Where it is, by crate, and its name.
const POLL_HELPER: (&[&str], &str) = (
    &[
        "crates/argosy/tests/it/harness",
        "crates/argosy-agent/tests/it/harness",
        "crates/argosy-providers/tests/it/harness",
    ],
    "await_until",
);

/// Where this program's own repository happens to be checked out; split, so as not to find itself.
const CHECKOUT: &str = concat!("/wo", "rk/");

/// Complaints about any text.
fn text_complaints(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let mut complain = |what: &str| found.push(format!("{}:{number}: {what}", file.path));
        if line.contains(CHECKOUT) {
            complain("a path of one machine: write it relative to the repository");
        }
        for at in rust::places(line, concat!("TO", "DO")) {
            let rest = line.get(at + 4..).unwrap_or_default();
            let number = rest.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
            if number.is_none_or(|(number, _)| number.parse::<u32>().is_err()) {
                complain("no issue number: open one and name it as `(#12)`, or do it now");
            }
        }
    }
    found
}

/// Complaints about Rust.
fn rust_complaints(file: &File) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = rust::code_only(&file.text);
    let everywhere: [(&str, &str); 4] = [
        ("dbg!", "left over: remove it, or log it"),
        ("#[ignore", "a test that does not run proves nothing: fix it or remove it"),
        ("#[allow(", "write `#[expect(lint, reason = …)]`: it complains when it is not needed"),
        ("#![allow(", "write `#![expect(lint, reason = …)]`: it complains when it is not needed"),
    ];
    let mut found: Vec<String> = everywhere
        .iter()
        .flat_map(|(word, what)| rust::places(&code, word).map(move |at| (at, *word, *what)))
        .map(|(at, word, what)| {
            format!("{}:{}: `{word}`: {what}", file.path, rust::line(&code, at))
        })
        .collect();
    if file.is_test() {
        found.extend(sleeps(file, &code));
    }
    found
}

/// Sleeps of tests that are neither in paused time nor in the one helper. A helper of a file with
/// paused tests may sleep: it runs in their time.
fn sleeps(file: &File, code: &str) -> Vec<String> {
    let functions = rust::functions(code);
    let paused_file = code.contains("start_paused");
    let complaint = |at: usize| {
        format!(
            "{}:{}: a test waits: await the condition, or pause the time (`start_paused = true`)",
            file.path,
            rust::line(code, at)
        )
    };
    rust::places(code, "sleep")
        .filter(|at| code.get(at + 5..).is_some_and(|rest| rest.starts_with('(')))
        .filter(|at| {
            let around = functions.iter().find(|function| function.range.contains(at));
            let is_helper = around.is_some_and(|function| function.name == POLL_HELPER.1);
            let real_time = code.get(..*at).is_some_and(|before| before.ends_with("thread::"));
            let paused = around.is_some_and(|function| {
                if function.before.contains("test") {
                    // A test that needs real time to connect pauses it afterwards.
                    let pauses = code.get(function.range.start..*at);
                    function.before.contains("start_paused")
                        || pauses.is_some_and(|before| before.contains("time::pause()"))
                } else {
                    paused_file
                }
            });
            !(POLL_HELPER.0.iter().any(|place| file.path.starts_with(place)) && is_helper)
                && (real_time || !paused)
        })
        .map(complaint)
        .collect()
}

#[test]
fn no_leftovers() {
    let files = repo::files();
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| [text_complaints(file), rust_complaints(file)].concat())
        .collect();
    assert_none(&found);
}

#[test]
fn leftovers_are_found() {
    let check = |path: &str, text: &str, count: usize| {
        let file = File::new(path, text);
        let found = [text_complaints(&file), rust_complaints(&file)].concat();
        assert_eq!(found.len(), count, "{path}: {text}: {found:?}");
    };
    let todo = concat!("TO", "DO");
    check("crates/x/src/a.rs", &format!("// {todo}: later"), 1);
    check("crates/x/src/a.rs", &format!("// {todo}(#12): later"), 0);
    check("crates/x/src/a.rs", &format!("// {todo}(soon): later"), 1);
    check("docs/a.md", &format!("see {CHECKOUT}x"), 1);
    check("crates/x/src/a.rs", "dbg!(x); // dbg!(y)", 1);
    check("crates/x/src/a/tests.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}", 1);
    check("crates/x/src/a.rs", "#[allow(dead_code)]\nfn a() {}", 1);
    check("crates/x/src/a.rs", "#[expect(dead_code, reason = \"x\")]\nfn a() {}", 0);
}

#[test]
fn a_sleeping_test_is_found() {
    let check = |path: &str, text: &str, count: usize| {
        let found = rust_complaints(&File::new(path, text));
        assert_eq!(found.len(), count, "{path}: {text}: {found:?}");
    };
    let tests = "crates/x/src/a/tests.rs";
    let paused = "#[tokio::test(start_paused = true)]\nasync fn a() { sleep(x).await }\n";
    check(tests, paused, 0);
    check(tests, "#[tokio::test]\nasync fn a() { tokio::time::sleep(x).await }", 1);
    check(tests, "#[tokio::test]\nasync fn a() { tokio::time::pause(); sleep(x).await }", 0);
    check(tests, &format!("{paused}#[tokio::test]\nasync fn b() {{ sleep(x).await }}"), 1);
    check(tests, &format!("{paused}async fn step() {{ sleep(x).await }}"), 0);
    check(tests, "async fn step() { sleep(x).await }", 1);
    check(tests, &format!("{paused}fn b() {{ std::thread::sleep(x) }}"), 1);
    check("crates/x/src/a.rs", "fn a() { std::thread::sleep(x) }", 0);
    let helper = "async fn await_until() { sleep(x).await }";
    check("crates/argosy/tests/it/harness/mod.rs", helper, 0);
    check("crates/argosy/tests/it/journeys.rs", helper, 1);
    check("crates/argosy/tests/it/harness.rs", "async fn other() { sleep(x).await }", 1);
}
