//! Help, completions and man pages: all from the same description of the commands.

use super::Cli;
use crate::failure::{Exit, Failure};
use crate::output::{note, print};
use argosy_core::nearest::nearest;
use clap::{Args, Command, CommandFactory, ValueEnum};
use std::path::PathBuf;

/// Print what completes commands in a shell.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy completions bash > /etc/bash_completion.d/argosy
  argosy completions zsh > ~/.zfunc/_argosy
  argosy completions fish > ~/.config/fish/completions/argosy.fish")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Write the man pages into a directory.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  argosy man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// The directory; made if it is not there.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Print help about a command or a topic.
#[derive(Args, Debug)]
#[command(after_help = "\
Topics: exit-codes

Examples:
  argosy help cluster create
  argosy help exit-codes")]
pub(crate) struct Help {
    /// A command, or a topic.
    #[arg(value_name = "COMMAND")]
    topic: Vec<String>,
}

/// The tree of commands. What their help tells in sentences is as wide as the terminal.
pub(crate) fn tree() -> Command {
    flowing(Cli::command())
}

fn flowing(command: Command) -> Command {
    let help = command.get_after_help().map(|help| flow(&help.to_string()));
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Makes one line of each paragraph, as which it is wrapped; what is indented stays as it is.
fn flow(text: &str) -> String {
    let is_prose = |line: &str| line.starts_with(|first: char| !first.is_whitespace());
    let mut flowed = String::new();
    let mut before = "";
    for line in text.lines() {
        let goes_on = is_prose(before) && is_prose(line) && !before.ends_with(':');
        flowed.push_str(if goes_on { " " } else { "\n" });
        flowed.push_str(line);
        before = line;
    }
    flowed.trim_start_matches('\n').to_owned()
}

/// `argosy completions`
pub(super) fn completions(args: &Completions) -> Result<Exit, Failure> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut tree(), "argosy", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}

/// `argosy man`
pub(super) fn man(args: &Man) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write to {}", args.dir.display())).why(error)
    };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(tree(), &args.dir).map_err(failed)?;
    note(&format!("the man pages are in {}", args.dir.display()));
    Ok(Exit::Ok)
}

/// `argosy help`
pub(super) fn help(args: &Help) -> Result<Exit, Failure> {
    let words: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    if words == ["exit-codes"] {
        print(&exit_codes());
        return Ok(Exit::Ok);
    }
    let mut root = tree();
    root.build();
    let mut command = &mut root;
    for word in words {
        let names: Vec<String> =
            command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        command = match command.find_subcommand_mut(word) {
            Some(sub) => sub,
            None => {
                let failure = Failure::usage(format!("there is no command `{word}`"));
                let topics = names.iter().map(String::as_str).chain(["exit-codes"]);
                return Err(match nearest(word, topics) {
                    Some(near) => failure.fix(format!("did you mean `{near}`?")),
                    None => failure.fix("`argosy help` lists the commands"),
                });
            }
        };
    }
    print(&command.render_long_help().to_string());
    Ok(Exit::Ok)
}

/// The table of exit codes.
fn exit_codes() -> String {
    let mut text = String::from("Exit codes of argosy:\n\n");
    for (exit, meaning) in Exit::ALL {
        text.push_str(&format!("{:>5}  {meaning}\n", exit.code()));
    }
    text
}

#[cfg(test)]
mod tests;
