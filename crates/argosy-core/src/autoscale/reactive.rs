//! Reactive: more nodes above one utilization, fewer below another.
//!
//! What a newcomer gets wrong: utilization is measured on the nodes that are ready, but the pool is
//! asked for a size that includes those that boot. The same work on all of them is what counts, or
//! every look orders once more until the first has booted.

use super::metrics::Facts;
use super::{Counted, Opinion, Shown, nodes_for, write_number};
use crate::field::Constraint;
use crate::field::reader::Reader;
use serde::Serialize;

/// The largest step, in nodes or in percent of the pool.
const STEP_MAX: u32 = 10_000;
const STEP_PERCENT_MAX: u32 = 1_000;

/// Two thresholds and a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reactive {
    /// Above this utilization in percent, the pool grows.
    #[serde(serialize_with = "write_number")]
    pub scale_up_at: f64,
    /// Below this utilization in percent, it shrinks; less than `scale_up_at`.
    #[serde(serialize_with = "write_number")]
    pub scale_down_at: f64,
    /// By how many nodes.
    pub step: u32,
    /// By how many percent of its size, if that is more than `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_percent: Option<u32>,
}

impl Default for Reactive {
    fn default() -> Self {
        Reactive { scale_up_at: 80.0, scale_down_at: 20.0, step: 1, step_percent: None }
    }
}

impl Reactive {
    pub(super) fn read(reader: &mut Reader<'_>) -> Reactive {
        let default = Reactive::default();
        let up = reader.number("scaleUpAt", (1.0, 100.0));
        let down = reader.number("scaleDownAt", (0.0, 99.0));
        let reactive = Reactive {
            scale_up_at: up.unwrap_or(default.scale_up_at),
            scale_down_at: down.unwrap_or(default.scale_down_at),
            step: reader.count("step", (1, STEP_MAX)).unwrap_or(default.step),
            step_percent: reader.count("stepPercent", (1, STEP_PERCENT_MAX)),
        };
        let Reactive { scale_up_at: up, scale_down_at: down, .. } = reactive;
        if up <= down {
            let (name, rule, other) = match reader.has("scaleUpAt") {
                true => ("scaleUpAt", "above scaleDownAt", down),
                false => ("scaleDownAt", "below scaleUpAt", up),
            };
            let message = format!("must be {rule}, which is {}", Shown(other));
            reader.complain(name, Constraint::Min, message);
        }
        reactive
    }

    pub(super) fn ask(&self, facts: &Facts<'_>) -> Opinion {
        let Facts { wanted, ready, .. } = *facts;
        let measured = match &facts.utilization {
            Ok(measured) => *measured,
            Err(why) => return Opinion::none(why),
        };
        if wanted == 0 || ready == 0 {
            let why = match wanted {
                0 => "an empty pool has no utilization; a queue could fill it, or a minimum of 1",
                _ => "no node is ready yet, so there is no utilization",
            };
            return Opinion::none(why);
        }
        // In percent of a node.
        let work = measured * f64::from(ready);
        let settled = if ready == wanted { measured } else { work / f64::from(wanted) };
        let (up, down) = (self.scale_up_at, self.scale_down_at);
        let mut seen = format!("utilization {} %", Shown(measured));
        let all = Counted(wanted, "node");
        if ready < wanted {
            seen += &format!(" on {ready} of {all}, {} % on all,", Shown(settled));
        } else if wanted < ready {
            seen += &format!(" on {ready}, {} % on the {all} that stay,", Shown(settled));
        }
        if up < settled {
            // Further up than this, the next look would find it too large.
            let most = if 0.0 < down { (work / down).floor() } else { f64::INFINITY };
            let most = nodes_for(most).max(wanted.saturating_add(1));
            let target = wanted.saturating_add(self.step_of(wanted)).min(most);
            Opinion::new(target, format!("{seen} is above {} %", Shown(up)))
        } else if measured.max(settled) < down {
            // Further down than this, the next look would find it too small. The last node stays:
            // without nodes there is no utilization that could call one back.
            let least = nodes_for(work / up).max(1);
            let target = wanted.saturating_sub(self.step_of(wanted)).max(least).min(wanted);
            let below = format!("{seen} is below {} %", Shown(down));
            match target == wanted {
                true if wanted == 1 => Opinion::new(1, format!("{below}, but the last node stays")),
                true => {
                    let fewer = Counted(wanted - 1, "node");
                    Opinion::new(wanted, format!("{below}, but {fewer} would be too few"))
                }
                false => Opinion::new(target, below),
            }
        } else {
            Opinion::new(wanted, format!("{seen} is between {} % and {} %", Shown(down), Shown(up)))
        }
    }

    fn step_of(&self, wanted: u32) -> u32 {
        let percent = u64::from(self.step_percent.unwrap_or(0));
        let part = (u64::from(wanted) * percent).div_ceil(100);
        self.step.max(u32::try_from(part).unwrap_or(u32::MAX)).max(1)
    }
}

#[cfg(test)]
mod tests;
