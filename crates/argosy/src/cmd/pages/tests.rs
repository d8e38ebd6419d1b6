use super::*;
use std::path::Path;

/// Compares a committed file with what the code prints; `UPDATE=1` rewrites it.
fn golden(path: &str, printed: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, printed).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == printed, "{path} is out of date: run the tests once with UPDATE=1");
}

fn each(command: &Command, name: &str, look: &mut impl FnMut(&Command, &str)) {
    look(command, name);
    for sub in command.get_subcommands() {
        each(sub, &format!("{name} {}", sub.get_name()), look);
    }
}

/// `docs/cli.md`: the help of every command, in one page.
fn reference() -> String {
    let mut root = tree();
    root.build();
    let mut text = String::from(
        "# The command line\n\nPrinted from the code (`UPDATE=1 cargo test -p argosy`); do not edit.\n",
    );
    describe(&mut root, "argosy", &mut text);
    text.push_str(&format!("\n## Exit codes\n\n```text\n{}```\n", exit_codes()));
    text
}

fn describe(command: &mut Command, name: &str, text: &mut String) {
    let help = command.clone().term_width(120).render_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    for sub in command.get_subcommands_mut() {
        let name = format!("{name} {}", sub.get_name());
        describe(sub, &name, text);
    }
}

#[test]
fn prose_flows_and_what_is_indented_does_not() {
    let rows = [
        ("", ""),
        ("One line.", "One line."),
        ("One,\nand more.\n\nAnother\none.", "One, and more.\n\nAnother one."),
        (
            "Words:\n  a  one\n  b  two\nand more\nof them",
            "Words:\n  a  one\n  b  two\nand more of them",
        ),
        ("Words:\nnot indented", "Words:\nnot indented"),
    ];
    for (text, expected) in rows {
        assert_eq!(flow(text), expected, "{text:?}");
    }
}

#[test]
fn the_command_tree_is_sound() {
    tree().debug_assert();
}

#[test]
fn the_reference_of_commands_is_generated() {
    golden("docs/cli.md", &reference());
}

#[test]
fn the_default_policy_as_a_file_is_generated() {
    let spec = argosy_policy::HealthPolicy::default_spec();
    let file = format!(
        "# The health policy that is in force where nobody wrote one; a place to begin from.\n\
         # Printed from the code (`UPDATE=1 cargo test -p argosy`); do not edit.\n\
         {}",
        serde_saphyr::to_string(&spec).unwrap()
    );
    golden("docs/examples/default-policy.yaml", &file);
}

#[test]
fn the_reference_of_the_configuration_is_generated() {
    golden("docs/config.md", &crate::config::docs(crate::cmd::server::FLAGS));
}

#[test]
fn every_help_starts_with_one_sentence_and_has_examples() {
    each(&tree(), "argosy", &mut |command, name| {
        let abouts: Vec<String> = command
            .get_subcommands()
            .filter_map(|sub| Some(sub.get_about()?.to_string()))
            .collect();
        let different: std::collections::BTreeSet<&String> = abouts.iter().collect();
        assert_eq!(abouts.len(), different.len(), "{name}: two commands are described alike");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty() && !about.contains('\n'), "{name}: {about:?}");
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(
            help.contains("Examples:\n  ") && help.contains("  argosy "),
            "{name} lacks examples"
        );
    });
}

#[test]
fn every_example_is_a_command_that_is_understood() {
    each(&tree(), "argosy", &mut |command, _| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        for line in examples.lines() {
            let line = line
                .trim()
                .rsplit_once("| argosy")
                .map_or(line.trim().to_owned(), |(_, tail)| format!("argosy{tail}"));
            let line = line.split(" > ").next().unwrap().split(" >> ").next().unwrap();
            let line = line.split(" < ").next().unwrap().split(" | ").next().unwrap();
            let line = line.split("     ").next().unwrap();
            let words = words(line);
            if let Err(error) = tree().try_get_matches_from(&words) {
                assert!(!error.use_stderr(), "{line}\n{error}");
            }
        }
    });
}

/// Splits a line as a shell would, as far as our examples go.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match (c, quote) {
            (' ', None) => words.push(String::new()),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, _) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn man_pages_are_written_for_every_command() {
    let dir = std::env::temp_dir().join(format!("argosy-man-{}", std::process::id()));
    man(&Man { dir: dir.clone() }).unwrap();
    let page = std::fs::read_to_string(dir.join("argosy-cluster-create.1")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(page.contains("argosy\\-cluster\\-create"), "{page}");
}

#[test]
fn exit_codes_have_a_page() {
    let text = exit_codes();
    for part in ["    0  it worked", "   64  ", "  130  interrupted"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn help_about_nothing_we_know_names_the_nearest() {
    let failure = help(&Help { topic: vec!["clutser".to_owned()] }).unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    assert_eq!(failure.fix, ["did you mean `cluster`?"]);
}

#[test]
fn every_route_that_names_a_command_names_one_that_is_there() {
    let mut root = tree();
    root.build();
    for route in argosy_api::route::ROUTES.iter() {
        let Some(line) = &route.cli else { continue };
        let mut command = &root;
        for word in line.split_whitespace() {
            match word.strip_prefix("--") {
                Some(flag) => assert!(
                    command.get_arguments().any(|arg| arg.get_long() == Some(flag)),
                    "{} {}: `argosy {line}` has no --{flag}",
                    route.method,
                    route.path
                ),
                None => {
                    command = command.find_subcommand(word).unwrap_or_else(|| {
                        panic!("{} {}: there is no `argosy {line}`", route.method, route.path)
                    });
                }
            }
        }
    }
}
