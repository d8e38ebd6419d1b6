//! `argosy-agent probe`: The child that asks the driver; started by the agent, not by people.
//!
//! It is small on purpose: one thread that asks, one that hears when the agent is gone. Whatever the driver
//! does to it, it does to nobody else.

use crate::gpu::child::line::{Ask, LINE_LEN_MAX, Say};
use crate::gpu::nvml::{Driver, Unread};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// How the child is started.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// NVML, if it is not where the system keeps it.
    #[arg(long, value_name = "PATH")]
    pub nvml_library: Option<PathBuf>,
    /// Ends after so long without a question, in milliseconds; stays if a GPU is not in persistence mode.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    pub idle_ms: u64,
}

/// How long a child may take to end when the agent is gone. NVML's own goodbye takes milliseconds; a child
/// that sits in a call to the driver would stay for ever.
const GOODBYE_MAX: Duration = Duration::from_secs(2);

/// The stack of the thread that listens: it holds a buffer and little else.
const LISTENER_STACK_BYTES: usize = 64 * 1024;

/// Answers questions on standard input until nobody asks any more.
pub fn run(args: Args) -> ExitCode {
    let (questions, asked) = sync_channel(1);
    let listener = std::thread::Builder::new()
        .name("listener".to_owned())
        .stack_size(LISTENER_STACK_BYTES)
        .spawn(move || listen(questions));
    if let Err(error) = listener {
        eprintln!("the probe cannot start its listener: {error}");
        return ExitCode::FAILURE;
    }
    match serve(&args, &asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the probe gives up: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Hands on the lines of standard input. When it ends, so does this process, even in the middle of a call
/// that never returns.
fn listen(questions: SyncSender<String>) {
    let mut input = BufReader::new(std::io::stdin());
    loop {
        let mut line = String::new();
        let limit = u64::try_from(LINE_LEN_MAX).unwrap_or(u64::MAX);
        match input.by_ref().take(limit).read_line(&mut line) {
            Ok(read) if read != 0 && questions.send(line).is_ok() => {}
            Ok(_) | Err(_) => break,
        }
    }
    // The one that answers hears of it by this, and ends in peace if it can.
    drop(questions);
    std::thread::sleep(GOODBYE_MAX);
    if let Err(error) = kill_process(getpid(), Signal::KILL) {
        eprintln!("the probe cannot end itself: {error}");
    }
}

fn serve(args: &Args, asked: &Receiver<String>) -> Result<(), String> {
    let mut driver = None;
    // Without persistence mode a GPU is shut down with its last user: started again for every sweep it would
    // take seconds, and count its errors from nothing. Then this child is the one that holds it.
    let mut holds = false;
    // A child is started to be asked, so the first question is on its way. After that, no question for a
    // while and nobody left to ask are both an orderly end.
    let mut next = asked.recv().ok();
    while let Some(line) = next.take() {
        let ask: Ask =
            serde_json::from_str(&line).map_err(|error| format!("not a question: {error}"))?;
        let loaded = match driver.take() {
            Some(loaded) => Ok(loaded),
            None => Driver::load(args.nvml_library.as_deref()),
        };
        match loaded.and_then(|loaded| loaded.count().map(|count| (loaded, count))) {
            Ok((loaded, count)) => {
                match answer(&ask, &loaded, count)? {
                    Answered::AndGone => return Ok(()),
                    Answered::Whole { needs_holding } => holds |= needs_holding,
                }
                driver = Some(loaded);
            }
            // The next child loads the library anew: after an upgrade it is another file.
            Err(error) => return say(&Say::Failed { error }),
        }
        next = if holds {
            asked.recv().ok()
        } else {
            asked.recv_timeout(Duration::from_millis(args.idle_ms)).ok()
        };
    }
    Ok(())
}

/// How a question was answered.
enum Answered {
    Whole {
        /// Some GPU would be shut down without us.
        needs_holding: bool,
    },
    /// The driver went away meanwhile.
    AndGone,
}

fn answer(ask: &Ask, driver: &Driver, count: u32) -> Result<Answered, String> {
    let mut needs_holding = false;
    let versions = driver.versions();
    say(&Say::Begin {
        count,
        driver_version: versions.driver,
        cuda_version: versions.cuda,
        nvml_version: versions.nvml,
    })?;
    for index in (0..count).filter(|index| !ask.skip().contains(index)) {
        let read = match ask {
            Ask::Inventory { .. } => {
                driver.identity(index).map(|gpu| Say::Identity { gpu: Box::new(gpu) })
            }
            Ask::Sweep { .. } => {
                driver.reading(index).map(|gpu| Say::Reading { gpu: Box::new(gpu) })
            }
        };
        match read {
            Ok(read) => {
                needs_holding |= driver.needs_holding(index);
                say(&read)?;
            }
            Err(Unread::Gpu(error)) => say(&Say::Unreadable { index, error })?,
            Err(Unread::Driver(error)) => {
                return say(&Say::Failed { error }).map(|()| Answered::AndGone);
            }
        }
    }
    say(&Say::End).map(|()| Answered::Whole { needs_holding })
}

fn say(line: &Say) -> Result<(), String> {
    let mut text = serde_json::to_vec(line).map_err(|error| error.to_string())?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(|error| error.to_string())
}
