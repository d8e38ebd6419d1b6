//! `argosy-agent diagnose`: Tests the GPUs of this machine.

use crate::diagnose::{self, BadParameter, Diagnosis, GpuDiagnosis, Plan, worker};
use crate::gpu::child::{Child, Options};
use anyhow::Context;
use comfy_table::{Cell, CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Nothing is wrong.
const PASSED: u8 = 0;
/// The test could not be made.
const FAILED_TO_RUN: u8 = 1;
/// The command line is not understood.
const USAGE: u8 = 2;
/// Something is wrong with a GPU. The same number as `scan` has for it.
const UNHEALTHY: u8 = 4;

/// What to test, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// quick: what the driver says, in a second. memory: patterns over the free memory. bandwidth: copies.
    /// compute: products compared bit by bit. stress: heat and power under load. all: the first four.
    #[arg(
        value_name = "TEST",
        default_value = "quick",
        value_parser = ["quick", "memory", "bandwidth", "compute", "stress", "all"]
    )]
    pub test: String,
    /// Only this GPU, counted from 0; all of them if not given.
    #[arg(long, value_name = "N")]
    pub gpu: Option<String>,
    /// How long `memory` and `stress` work, from 1 to 3600 [default: 60].
    #[arg(long, value_name = "N")]
    pub seconds: Option<String>,
    /// How many products or copies, from 1 to 10000 [default: compute 100, bandwidth 10].
    #[arg(long, value_name = "N")]
    pub runs: Option<String>,
    /// How much of the free memory `memory` takes, from 0.01 to 1 [default: 0.95].
    #[arg(long, value_name = "SHARE")]
    pub fraction: Option<String>,
    /// Test even if other programs use the GPU: they may fail, and figures will be lower.
    #[arg(long)]
    pub force: bool,
    /// How to print the result.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = ["table", "json"])]
    pub output: String,
    /// NVML, if it is not where the system keeps it.
    #[arg(long, value_name = "PATH", env = "ARGOSY_AGENT_NVML_LIBRARY")]
    pub nvml_library: Option<PathBuf>,
    /// Flips one bit on the GPU during the test, to see that it is found.
    #[arg(long, hide = true)]
    pub inject_bit_flip: bool,
    /// This is the child: parameters as `name=value`, lines of JSON on standard output.
    #[arg(long, hide = true, num_args = 1.., value_name = "NAME=VALUE")]
    pub worker: Option<Vec<String>>,
}

/// Tests and prints. The exit code says whether the GPUs passed.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = match plan(&args) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(USAGE));
        }
    };
    if args.worker.is_some() {
        return Ok(worker::main(&plan));
    }
    let exe = std::env::current_exe().context("this program's own path is not known")?;
    let json = args.output == "json";
    let bar = bar(json);
    let options = Options { nvml_library: args.nvml_library.clone(), ..Options::default() };
    let mut gpus = Child::new(exe.clone(), options);
    let tested = diagnose::run(&exe, &mut gpus, &plan, plan.test.time_max(), |progress| {
        bar.set_position(progress.percent as u64);
        bar.set_message(progress.message);
    });
    let tested = tested.await;
    bar.finish_and_clear();
    let diagnosis = match tested.map_err(anyhow::Error::from) {
        Ok(diagnosis) => diagnosis,
        Err(error) => {
            if json {
                print_line(&serde_json::json!({ "error": format!("{error:#}") }).to_string())?;
            } else {
                eprintln!("error: {error:#}");
            }
            return Ok(ExitCode::from(FAILED_TO_RUN));
        }
    };
    let text = if json { serde_json::to_string_pretty(&diagnosis)? } else { show(&diagnosis) };
    print_line(&text)?;
    Ok(ExitCode::from(if diagnosis.passed { PASSED } else { UNHEALTHY }))
}

/// The flags as a command's parameters: one way to read them, and one set of limits.
fn plan(args: &Args) -> Result<Plan, BadParameter> {
    let mut parameters = BTreeMap::new();
    if let Some(words) = &args.worker {
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            parameters.insert(name.to_owned(), value.to_owned());
        }
    } else {
        parameters.insert("test".to_owned(), args.test.clone());
        let given = [
            ("gpu", &args.gpu),
            ("seconds", &args.seconds),
            ("runs", &args.runs),
            ("fraction", &args.fraction),
        ];
        for (name, value) in given {
            parameters.extend(value.clone().map(|value| (name.to_owned(), value)));
        }
        if args.force {
            parameters.insert("force".to_owned(), "true".to_owned());
        }
    }
    Ok(Plan {
        inject_bit_flip: args.inject_bit_flip,
        nvml_library: args.nvml_library.clone(),
        ..Plan::parse(&parameters)?
    })
}

fn bar(quiet: bool) -> ProgressBar {
    // Hidden by itself where standard error is not a terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(100), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos:>3} % {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for gpu in &diagnosis.gpus {
        let word = if gpu.passed { "passed" } else { "FAILED" };
        text.push_str(&format!(
            "GPU {} {} {} {word}: {}\n",
            gpu.index, gpu.name, gpu.uuid, gpu.message
        ));
        if !gpu.figures.is_empty() {
            text.push_str(&format!("{}\n", figures(gpu)));
        }
        for (name, value) in &gpu.words {
            text.push_str(&format!("  {name}: {value}\n"));
        }
    }
    for problem in &diagnosis.problems {
        text.push_str(&format!("problem: {problem}\n"));
    }
    let word = if diagnosis.passed { "passed" } else { "FAILED" };
    text.push_str(&format!(
        "{} {word} in {:.1} s: {}",
        diagnosis.test, diagnosis.seconds, diagnosis.message
    ));
    text
}

fn figures(gpu: &GpuDiagnosis) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["  FIGURE", "MEASURED", "EXPECTED", ""]);
    for (name, figure) in &gpu.figures {
        let (range, word) = match gpu.expected.get(name) {
            Some(expected) if *figure < expected.low => (range(expected.low, expected.high), "low"),
            Some(expected) if expected.high < *figure => {
                (range(expected.low, expected.high), "high")
            }
            Some(expected) => (range(expected.low, expected.high), "ok"),
            None => (String::new(), ""),
        };
        table.add_row([
            Cell::new(format!("  {name}")),
            Cell::new(figure).set_alignment(CellAlignment::Right),
            Cell::new(range),
            Cell::new(word),
        ]);
    }
    table
}

fn range(low: f64, high: f64) -> String {
    format!("{low} to {high}")
}

/// A closed pipe is the reader's choice.
fn print_line(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("the result cannot be written")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
