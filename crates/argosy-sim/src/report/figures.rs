//! The numbers that every report shows, computed once, from one run or from many together.

use crate::outcome::{Fault, Outcome, Series};
use serde::Serialize;
use std::collections::BTreeMap;

/// How far from its expectation a count may be and still be chance, in standard deviations: 95 of 100.
pub(super) const CHANCE: f64 = 1.96;

/// The numbers of one run, or of many together: sums are over all of them, means over all of their time since
/// there was a first machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// The part of the GPUs asked for that were in service, over all the time, 0 to 1; of those that there
    /// were, where nobody asked for any.
    pub availability: Option<f64>,
    /// GPUs asked for, on average over the time.
    pub gpus_wanted: f64,
    /// GPUs that there were, on average.
    pub gpus_present: f64,
    /// GPUs in service, on average.
    pub gpus_in_service: f64,
    /// The fewest GPUs in service after all were for the first time, and when that was, in seconds.
    pub gpus_in_service_min: Option<(u32, f64)>,
    /// GPU-seconds asked for and not in service.
    pub gpu_seconds_missing: f64,
    /// Faults.
    pub faults: u64,
    /// Of them, those that interrupted work.
    pub faults_interrupting: u64,
    /// Faults by cause, the most frequent first.
    pub causes: Vec<CauseCount>,
    /// How long it took until we knew.
    pub detected: Option<Times>,
    /// How long it took until the node took no new work.
    pub cordoned: Option<Times>,
    /// How long it took until another node did its work, or itself again.
    pub repaired: Option<Times>,
    /// The most nodes at once that were out of service by our own doing, and how many might have been then.
    pub disrupted_max: Option<(u32, u32)>,
    /// For how many seconds more were out than might be. Anything but 0 is a violation.
    pub over_budget_seconds: f64,
    /// What was done to nodes and machines.
    pub actions: BTreeMap<String, u64>,
    /// The part of the work's time that was not lost, 0 to 1.
    pub goodput: Option<f64>,
    /// GPU-seconds of work that were lost.
    pub work_seconds_lost: Option<f64>,
    /// How often work was interrupted.
    pub interruptions: u64,
    /// Dollars.
    pub cost: f64,
    /// Of them, those for machines that did nothing useful.
    pub cost_wasted: f64,
}

/// How often something went wrong for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CauseCount {
    /// The reason.
    pub cause: String,
    /// How often.
    pub count: u64,
    /// How often it was to be expected, by its rate.
    pub expected: Option<f64>,
    /// Whether the count is within what chance makes of the expectation, 95 times in 100.
    pub within_chance: Option<bool>,
}

/// Lengths of time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Half of them are not longer.
    pub p50: f64,
    /// Nine of ten are not longer.
    pub p90: f64,
    /// 99 of 100 are not longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Figures {
    /// The numbers of these runs. `expected` is how often each cause was to be expected in one of them.
    #[must_use]
    pub fn of(outcomes: &[Outcome], expected: &BTreeMap<String, f64>) -> Self {
        let faults = || outcomes.iter().flat_map(|outcome| &outcome.faults);
        let capacity = Capacity::of(outcomes);
        let works: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.work.as_ref()).collect();
        let possible: f64 = works.iter().map(|work| work.possible).sum();
        let useful: f64 = works.iter().map(|work| work.useful).sum();
        let mut actions = BTreeMap::new();
        for (action, count) in outcomes.iter().flat_map(|outcome| &outcome.actions) {
            *actions.entry(action.clone()).or_insert(0) += count;
        }
        let (disrupted_max, over_budget_seconds) = disruption(outcomes);
        let [detected, cordoned, repaired] = times(outcomes).map(|times| Times::of(&times));
        Self {
            availability: capacity.availability(),
            gpus_wanted: capacity.mean(capacity.wanted),
            gpus_present: capacity.mean(capacity.present),
            gpus_in_service: capacity.mean(capacity.in_service),
            gpus_in_service_min: outcomes
                .iter()
                .filter_map(|outcome| lowest(&outcome.series))
                .min_by_key(|(gpus, _)| *gpus),
            gpu_seconds_missing: capacity.missing,
            faults: faults().count() as u64,
            faults_interrupting: faults().filter(|fault| fault.interrupts).count() as u64,
            causes: causes(outcomes, expected),
            detected,
            cordoned,
            repaired,
            disrupted_max,
            over_budget_seconds,
            actions,
            goodput: (0.0 < possible).then(|| useful / possible),
            work_seconds_lost: (!works.is_empty()).then_some(possible - useful),
            interruptions: outcomes.iter().map(interruptions).sum(),
            cost: outcomes.iter().map(|outcome| outcome.money.total).sum(),
            cost_wasted: outcomes.iter().map(|outcome| outcome.money.wasted).sum(),
        }
    }
}

/// How often work was interrupted: by the workload if there is one, or else by what would have.
fn interruptions(outcome: &Outcome) -> u64 {
    match &outcome.work {
        Some(work) => work.interruptions,
        None => outcome.faults.iter().filter(|fault| fault.interrupts).count() as u64,
    }
}

/// GPU-seconds.
#[derive(Default)]
struct Capacity {
    seconds: f64,
    wanted: f64,
    present: f64,
    in_service: f64,
    /// In service and asked for.
    served: f64,
    missing: f64,
}

impl Capacity {
    fn of(outcomes: &[Outcome]) -> Self {
        let mut sum = Self::default();
        for outcome in outcomes {
            let Series { step_seconds: step, wanted, present, in_service, .. } = &outcome.series;
            let moments = wanted.iter().zip(present).zip(in_service);
            // Nothing is missing, and nothing there, before the first machine is.
            let moments =
                moments.skip_while(|((wanted, present), _)| **wanted == 0 && **present == 0);
            for ((wanted, present), in_service) in moments {
                sum.seconds += step;
                sum.wanted += step * f64::from(*wanted);
                sum.present += step * f64::from(*present);
                sum.in_service += step * f64::from(*in_service);
                sum.served += step * f64::from(*wanted.min(in_service));
                sum.missing += step * f64::from(wanted.saturating_sub(*in_service));
            }
        }
        sum
    }

    fn mean(&self, of: f64) -> f64 {
        if 0.0 < self.seconds { of / self.seconds } else { 0.0 }
    }

    fn availability(&self) -> Option<f64> {
        if 0.0 < self.wanted {
            return Some(self.served / self.wanted);
        }
        (0.0 < self.present).then(|| self.in_service / self.present)
    }
}

/// The fewest GPUs in service since the fleet was complete for the first time, and when: what is not there
/// at the beginning has not failed.
fn lowest(series: &Series) -> Option<(u32, f64)> {
    let after = series.in_service.iter().enumerate().skip(settled(series)?);
    let (place, gpus) = after.min_by_key(|(_, gpus)| **gpus)?;
    Some((*gpus, place as f64 * series.step_seconds))
}

/// The step at which the fleet was complete for the first time; if it never was, the best there was.
pub(super) fn settled(series: &Series) -> Option<usize> {
    let asks = series.wanted.iter().any(|wanted| *wanted != 0);
    let most = series.in_service.iter().max().copied()?;
    let mut moments = series.in_service.iter().zip(&series.wanted);
    let complete = moments.position(|(served, wanted)| 0 < *wanted && wanted <= served);
    complete
        .filter(|_| asks)
        .or_else(|| series.in_service.iter().position(|served| *served == most))
}

fn disruption(outcomes: &[Outcome]) -> (Option<(u32, u32)>, f64) {
    let (mut most, mut over) = (None::<(u32, u32)>, 0.0);
    for series in outcomes.iter().map(|outcome| &outcome.series) {
        for (disrupted, budget) in series.disrupted.iter().zip(&series.budget) {
            if most.is_none_or(|(most, _)| most < *disrupted) {
                most = Some((*disrupted, *budget));
            }
            if budget < disrupted {
                over += series.step_seconds;
            }
        }
    }
    (most, over)
}

fn causes(outcomes: &[Outcome], expected: &BTreeMap<String, f64>) -> Vec<CauseCount> {
    let mut counts: BTreeMap<&str, u64> =
        expected.keys().map(|cause| (cause.as_str(), 0)).collect();
    for fault in outcomes.iter().flat_map(|outcome| &outcome.faults) {
        let cause = if fault.cause.is_empty() { &fault.kind } else { &fault.cause };
        *counts.entry(cause).or_default() += 1;
    }
    let mut causes: Vec<CauseCount> = counts
        .into_iter()
        .map(|(cause, count)| {
            let expected = expected.get(cause).map(|each| each * outcomes.len() as f64);
            let cause = cause.to_owned();
            CauseCount {
                cause,
                count,
                expected,
                within_chance: expected.map(|e| within_chance(count, e)),
            }
        })
        .collect();
    causes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cause.cmp(&b.cause)));
    causes
}

/// Whether a count is within chance of what was expected.
///
/// A count of independent faults varies by the root of its expectation (Poisson); half a fault more on each
/// side, because counts are whole.
fn within_chance(count: u64, expected: f64) -> bool {
    (count as f64 - expected).abs() <= CHANCE * expected.sqrt() + 0.5
}

/// How long it took to know, to cordon and to repair; each in order.
pub(super) fn times(outcomes: &[Outcome]) -> [Vec<f64>; 3] {
    let of = |pick: fn(&Fault) -> Option<f64>| {
        let faults = outcomes.iter().flat_map(|outcome| &outcome.faults);
        let mut times: Vec<f64> = faults.filter_map(pick).filter(|time| time.is_finite()).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    [
        of(|fault| fault.detected_after),
        of(|fault| fault.cordoned_after),
        of(|fault| fault.repaired_after),
    ]
}

impl Times {
    /// Of lengths in order; `None` if there are none.
    pub(super) fn of(sorted: &[f64]) -> Option<Self> {
        let rank = |part: f64| {
            let rank = (part * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied()
        };
        Some(Self {
            count: sorted.len() as u64,
            p50: rank(0.5)?,
            p90: rank(0.9)?,
            p99: rank(0.99)?,
            max: sorted.last().copied()?,
        })
    }
}

#[cfg(test)]
mod tests;
