//! How far nodes are with what they were told: a line each that moves on a terminal, one bar if they are
//! many, and lines for what changed elsewhere.

use super::{ended_well, word};
use crate::output::{Paint, Screen, clean, note};
use crate::session::Session;
use crate::view::Times;
use argosy_api::command::Command;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many nodes have a line of their own; more do not fit beside what else is on a screen.
const LINES_MAX: usize = 12;

/// In how many steps a command's way is told where lines do not move: in a log, each percent would be one.
const STEPS: u32 = 5;

/// How often a line moves.
const TICK: Duration = Duration::from_millis(200);

pub(super) struct Progress {
    screen: Screen,
    bars: MultiProgress,
    /// One line a command, by id; empty if there are too many.
    lines: BTreeMap<String, ProgressBar>,
    /// One bar for all, if there are too many.
    total: Option<ProgressBar>,
    width: usize,
    failed: usize,
    /// What was last told of each command, where lines do not move: its word, and how many steps it was on.
    told: BTreeMap<String, (&'static str, u32)>,
}

impl Progress {
    pub(super) fn new(session: &Session, commands: &[Command]) -> Self {
        let screen = session.screen;
        let target = if screen.live && screen.asks {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let width = commands.iter().map(|command| clean(&command.node_id).chars().count()).max();
        let mut progress = Self {
            screen,
            bars: MultiProgress::with_draw_target(target),
            lines: BTreeMap::new(),
            total: None,
            width: width.unwrap_or(0),
            failed: 0,
            told: BTreeMap::new(),
        };
        if commands.len() <= LINES_MAX {
            for command in commands {
                let bar = progress.bars.add(ProgressBar::no_length().with_style(line_style()));
                bar.enable_steady_tick(TICK);
                progress.lines.insert(command.id.clone(), bar);
            }
        } else {
            let count = u64::try_from(commands.len()).unwrap_or(u64::MAX);
            let bar = progress.bars.add(ProgressBar::new(count).with_style(total_style()));
            bar.enable_steady_tick(TICK);
            progress.total = Some(bar);
        }
        for command in commands {
            progress.show(command);
        }
        progress
    }

    /// Shows a new state of a command.
    pub(super) fn show(&mut self, command: &Command) {
        let done = command.state.is_done();
        let text = self.text(command);
        if done && !command.outcome.is_some_and(ended_well) {
            self.failed += 1;
        }
        if self.bars.is_hidden() {
            let step = command.progress.map_or(0, |percent| u32::from(percent) * STEPS / 100);
            let is = (word(command), step);
            if self.told.insert(command.id.clone(), is) != Some(is) || done {
                note(&text);
            }
            return;
        }
        if let Some(bar) = self.lines.get(&command.id) {
            bar.set_message(text.clone());
            if done {
                bar.finish_and_clear();
            }
        }
        if let Some(bar) = &self.total {
            if done {
                bar.inc(1);
            }
            let failed =
                if self.failed == 0 { String::new() } else { format!("{} failed; ", self.failed) };
            bar.set_message(format!("{failed}{text}"));
        }
        // What has ended stays on the screen, above what still moves.
        if done {
            // If the terminal is gone, nobody misses it.
            let _ = self.bars.println(text);
        }
    }

    /// Takes away what moves.
    pub(super) fn close(&mut self) {
        for bar in self.lines.values().chain(&self.total) {
            bar.finish_and_clear();
        }
    }

    /// `gpu-17  DRAIN acknowledged 40%`, `gpu-17  DRAIN Drained after 3m: …`.
    fn text(&self, command: &Command) -> String {
        let node = clean(&command.node_id);
        let is = self.screen.paint(word(command), Paint::of_state(word(command)));
        let mut text = format!("{node:<width$}  {} {is}", command.type_, width = self.width);
        if let Some(at) = command.ended_at.as_deref() {
            text.push_str(&format!(" after {}", Times::between(&command.issued_at, at)));
        } else if let Some(percent) = command.progress {
            text.push_str(&format!(" {percent}%"));
        }
        if !command.message.is_empty() {
            text.push_str(&format!(": {}", clean(&command.message)));
        }
        text
    }
}

fn line_style() -> ProgressStyle {
    // `wide_msg` cuts the message to the terminal's width.
    ProgressStyle::with_template("{spinner} {elapsed:>5}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn total_style() -> ProgressStyle {
    ProgressStyle::with_template("{elapsed:>5} [{bar:24}] {pos}/{len}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
