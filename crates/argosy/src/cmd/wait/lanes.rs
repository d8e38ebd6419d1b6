//! One lane an adapter: what it is doing, for how long, and what it says.

use crate::output::{Paint, Screen, age, clean, note, span};
use argosy_api::status::StatusList;
use argosy_control::clock::Clock;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The lanes: bars that move on a terminal, lines for what changed elsewhere.
pub(super) struct Lanes {
    screen: Screen,
    clock: Clock,
    started: Timestamp,
    bars: MultiProgress,
    lanes: BTreeMap<String, Lane>,
    last: Option<StatusList>,
}

struct Lane {
    bar: ProgressBar,
    /// Phase and message, as last shown.
    shown: (String, String),
}

impl Lanes {
    pub(super) fn new(screen: Screen, clock: Clock) -> Self {
        let target = if screen.live && screen.asks {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            screen,
            clock,
            started: clock.now(),
            bars: MultiProgress::with_draw_target(target),
            lanes: BTreeMap::new(),
            last: None,
        }
    }

    /// What the adapters last said.
    pub(super) fn last(&self) -> Option<&StatusList> {
        self.last.as_ref()
    }

    /// How long this has been going on.
    pub(super) fn elapsed(&self) -> String {
        span(self.clock.now().duration_since(self.started))
    }

    pub(super) fn show(&mut self, list: &StatusList) {
        let now = self.clock.now();
        for line in list.statuses.iter().flatten() {
            let (phase, message) = (format!("{:?}", line.phase), clean(&line.message));
            let since = line.last_transition_time.parse().unwrap_or(self.started);
            let lane = self.lanes.entry(line.adapter_name.clone()).or_insert_with(|| Lane {
                bar: self.bars.add(ProgressBar::no_length().with_style(style())),
                shown: (String::new(), String::new()),
            });
            let changed = lane.shown != (phase.clone(), message.clone());
            let name = clean(&line.adapter_name);
            if self.bars.is_hidden() {
                if changed {
                    note(&format!("{name:<16} {phase:<9} {:>6}  {message}", age(since, now)));
                }
            } else if changed {
                let word = self.screen.paint(&format!("{phase:<9}"), Paint::of_state(&phase));
                lane.bar.set_prefix(format!("{name:<16} {word}"));
                lane.bar.set_message(message.clone());
                if matches!(phase.as_str(), "Complete") {
                    lane.bar.disable_steady_tick();
                } else {
                    lane.bar.reset_elapsed();
                    lane.bar.enable_steady_tick(Duration::from_millis(200));
                }
            }
            lane.shown = (phase, message);
        }
        self.last = Some(list.clone());
    }

    /// Takes the bars away, and leaves a line for each adapter in their place.
    pub(super) fn close(&mut self) {
        if self.bars.is_hidden() {
            return;
        }
        let lanes = std::mem::take(&mut self.lanes);
        for lane in lanes.values() {
            lane.bar.finish_and_clear();
        }
        let order = self.last.iter().flat_map(|list| list.statuses.iter().flatten());
        for line in order {
            if let Some(Lane { shown: (phase, message), .. }) = lanes.get(&line.adapter_name) {
                let word = self.screen.paint(&format!("{phase:<9}"), Paint::of_state(phase));
                note(&format!("{:<16} {word} {message}", clean(&line.adapter_name)));
            }
        }
    }
}

fn style() -> ProgressStyle {
    // `wide_msg` cuts the message to the terminal's width.
    ProgressStyle::with_template("{spinner} {prefix} {elapsed:>5}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}
