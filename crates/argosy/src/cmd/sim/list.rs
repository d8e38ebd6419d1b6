//! `argosy sim list`: the scenarios that come with the program.

use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, document, print};
use argosy_sim::scenario::shipped;
use clap::Args;
use serde_json::{Value, json};

/// List the scenarios that come with the program.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy sim list
  argosy sim list -o json")]
pub(super) struct List {
    /// How they are printed.
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Format,
}

/// `argosy sim list`
pub(super) fn run(args: &List, screen: Screen) -> Result<Exit, Failure> {
    let list = shipped::list();
    match args.output {
        Format::Json | Format::Yaml => {
            let items: Value = list
                .iter()
                .map(|item| json!({ "name": item.name, "summary": item.summary }))
                .collect();
            print(&document(&items, args.output == Format::Yaml));
        }
        Format::Name => {
            print(&list.iter().map(|item| format!("{}\n", item.name)).collect::<String>())
        }
        Format::Table | Format::Wide => {
            let mut grid = Grid::new(&["NAME", "SUMMARY"]).wrapping();
            for item in list {
                grid.row([
                    (item.name.to_owned(), Paint::Plain),
                    (item.summary.to_owned(), Paint::Plain),
                ]);
            }
            print(&grid.render(&screen, true));
        }
    }
    Ok(Exit::Ok)
}
