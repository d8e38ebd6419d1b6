use super::*;
use crate::cmd::Cli;
use clap::CommandFactory;

fn origins(line: &[&str]) -> Vec<(String, String)> {
    let words = ["argosy", "server"].iter().chain(line);
    let matches = Cli::command().try_get_matches_from(words).unwrap();
    let matches = matches.subcommand_matches("server").unwrap();
    let args = <Args as clap::FromArgMatches>::from_arg_matches(matches).unwrap();
    let overrides = args.overrides(Some(matches));
    overrides.into_iter().map(|set| (format!("{}={}", set.key, set.value), set.origin)).collect()
}

#[test]
fn each_flag_sets_its_key() {
    let rows: [(&[&str], &[&str]); 6] = [
        (&["--listen", "127.0.0.1:9"], &["listen=\"127.0.0.1:9\""]),
        (&["--store", "memory:"], &["store=\"memory:\""]),
        (
            &["--simulated-cloud"],
            &["simulated_cloud.enabled=true", "simulated_cloud.instant=false"],
        ),
        (
            &["--simulated-cloud=instant"],
            &["simulated_cloud.enabled=true", "simulated_cloud.instant=true"],
        ),
        (&["--auth-none-anywhere"], &["auth.none_anywhere=true"]),
        (&["--log-level", "warn", "--profile", "mvp"], &["profile=\"mvp\"", "log.level=\"warn\""]),
    ];
    for (line, expected) in rows {
        let set: Vec<String> = origins(line).into_iter().map(|(set, _)| set).collect();
        assert_eq!(set, expected, "{line:?}");
    }
}

#[test]
fn a_flag_says_that_it_was_a_flag() {
    let expected = ("listen=\"127.0.0.1:9\"".to_owned(), "flag --listen".to_owned());
    assert_eq!(origins(&["--listen", "127.0.0.1:9"]), [expected]);
}

#[test]
fn every_documented_flag_exists_with_its_variable() {
    let command = Cli::command();
    let server = command.find_subcommand("server").unwrap();
    for (flag, variable, _) in FLAGS {
        let arg = server.get_arguments().find(|arg| arg.get_long() == flag.strip_prefix("--"));
        let env = arg.unwrap().get_env().and_then(std::ffi::OsStr::to_str);
        assert_eq!(env, Some(*variable), "{flag}");
    }
}
