//! Places for a person to look: printed, never failed on. Sizes are guidance.

use crate::repo::{self, File};
use crate::rust;

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;

fn notes(file: &File) -> Vec<String> {
    if !file.is_rust() || file.is_test() {
        return Vec::new();
    }
    let lines = file.text.lines().count();
    let long_file = (FILE_LINES < lines)
        .then(|| format!("{}: {lines} lines; does it have one subject?", file.path));
    let code = rust::code_only(&file.text);
    let long_functions = rust::functions(&code).into_iter().filter_map(|function| {
        let lines = code.get(function.range.clone())?.lines().count();
        let line = rust::line(&code, function.range.start);
        (FUNCTION_LINES < lines)
            .then(|| format!("{}:{line}: `{}` has {lines} lines", file.path, function.name))
    });
    long_file.into_iter().chain(long_functions).collect()
}

#[test]
fn long_files_and_functions_are_listed() {
    for note in repo::files().iter().flat_map(notes) {
        println!("look at {note}");
    }
}

#[test]
fn what_is_longer_than_a_screen_is_noted() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(notes(&File::new(path, text)), expected);
    };
    let function = |lines: usize| format!("\nfn f() {{\n{}}}\n", "x;\n".repeat(lines - 2));
    check("a/src/a.rs", &function(70), &[]);
    check("a/src/a.rs", &function(71), &["a/src/a.rs:2: `f` has 71 lines"]);
    check("a/src/a/tests.rs", &function(71), &[]);
    check("a/src/a.rs", &"\n".repeat(800), &[]);
    check("a/src/a.rs", &"\n".repeat(801), &["a/src/a.rs: 801 lines; does it have one subject?"]);
}
