//! Composite: several policies, one answer.
//!
//! A part that has no opinion (its metrics are missing) is left out, and the reason says so: silence is
//! not a wish for zero nodes. The bounds of a schedule clamp what the others want.

use super::{Bounds, Counted, Limits, Mind, Opinion, Policy, nodes_for, write_number};
use crate::field::Constraint;
use crate::field::reader::Reader;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// The heaviest weight; only proportions matter.
const WEIGHT_MAX: f64 = 1000.0;

/// How the parts are combined, and the parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Composite {
    /// How.
    pub mode: Mode,
    /// One weight a part, in their order; used by `Mode::Weighted` alone.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "write_weights")]
    pub weights: Vec<f64>,
    /// The parts.
    pub policies: Vec<Policy>,
}

/// How sizes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The mean, rounded up.
    Avg,
    /// The mean by weight, rounded up.
    Weighted,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Mode::Max => "largest",
            Mode::Min => "smallest",
            Mode::Avg => "mean",
            Mode::Weighted => "weighted mean",
        }
    }
}

impl Composite {
    pub(super) fn read(reader: &mut Reader<'_>, limits: &mut Limits) -> Option<Composite> {
        let modes = [Mode::Max, Mode::Min, Mode::Avg, Mode::Weighted];
        let modes = ["max", "min", "avg", "weighted"].into_iter().zip(modes).collect::<Vec<_>>();
        let mode = if reader.has("mode") { reader.choice("mode", &modes) } else { Some(Mode::Max) };
        reader.get("mode");
        if !reader.has("policies") {
            let message = "is missing: give the policies to combine, like [{type: reactive}, {type: \
                           queue}]";
            reader.complain("policies", Constraint::Required, message);
        }
        let policies = limits.read_parts(reader);
        let weights = reader.list("weights", super::POLICIES_MAX, |value, field| {
            let weight = value.as_f64().filter(|weight| 0.0 < *weight && *weight <= WEIGHT_MAX);
            weight.ok_or_else(|| {
                let message = format!("{field} must be a number above 0, at most {WEIGHT_MAX}");
                vec![crate::field::FieldError::new(field, Constraint::Min, message)]
            })
        });
        let (mode, policies) = (mode?, policies?);
        match (mode, reader.has("weights")) {
            (Mode::Weighted, false) => {
                let message = "is missing: the mode weighted needs one weight a policy";
                reader.complain("weights", Constraint::Required, message);
            }
            (Mode::Max | Mode::Min | Mode::Avg, true) => {
                reader.complain("weights", Constraint::Unique, "is for the mode weighted alone");
            }
            (_, _) => {}
        }
        let weights = weights.unwrap_or_default();
        if !weights.is_empty() && weights.len() != policies.len() {
            let (weights, policies) =
                (Counted(weights.len(), "weight"), Counted(policies.len(), "policy"));
            let message = format!("must be one a policy, but there are {weights} for {policies}");
            reader.complain("weights", Constraint::Format, message);
        }
        Some(Composite { mode, weights, policies })
    }

    pub(super) fn ask(&self, mind: &mut Mind<'_>) -> Opinion {
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1.0));
        let mut next: Option<Timestamp> = None;
        let (mut said, mut silent): (Vec<Said>, Vec<String>) = (Vec::new(), Vec::new());
        let mut bounds: Option<Bounds> = None;
        let (mut limits, mut rests): (Vec<String>, bool) = (Vec::new(), true);
        for (index, (policy, weight)) in self.policies.iter().zip(weights).enumerate() {
            let opinion = mind.ask_part(&format!("policies[{index}]"), policy);
            next = [next, opinion.next].into_iter().flatten().min();
            rests &= opinion.rests;
            let kind = policy.kind();
            if let Some(own) = opinion.bounds {
                bounds = Some(bounds.map_or(own, |others| others.and(own)));
                limits.push(format!("{} ({kind})", opinion.reason));
            }
            match (opinion.target, opinion.bounds) {
                (Some(target), _) => {
                    said.push(Said { kind, target, weight, reason: opinion.reason });
                }
                (None, None) => silent.push(format!("{kind} is left out: {}", opinion.reason)),
                (None, Some(_)) => {}
            }
        }
        let Some(wanted) = self.combine(&said) else {
            limits.append(&mut silent);
            let silent = Opinion::none(limits.join("; "));
            return Opinion { bounds, rests, ..silent }.until(next);
        };
        // The part that decided says why; where none did alone, all say what they want.
        let decided = said.iter().find(|said| said.target == wanted);
        let all = || {
            let each: Vec<String> =
                said.iter().map(|said| format!("{} {}", said.kind, said.target)).collect();
            each.join(", ")
        };
        let mut reason = match (self.mode, decided) {
            (Mode::Max | Mode::Min, Some(said)) if self.policies.len() == 1 => said.reason.clone(),
            (Mode::Max | Mode::Min, Some(Said { kind, reason, .. })) => {
                format!("{reason} ({kind}, the {} of {})", self.mode.as_str(), all())
            }
            (_, _) => format!("{} is the {} of {}", wanted, self.mode.as_str(), all()),
        };
        let target = bounds.map_or(wanted, |bounds| bounds.hold(wanted));
        if target != wanted {
            reason = format!("{}; {wanted} is wanted: {reason}", limits.join("; "));
        }
        for silent in silent {
            reason += "; ";
            reason += &silent;
        }
        Opinion { bounds, ..Opinion::new(target, reason) }.until(next)
    }

    fn combine(&self, said: &[Said]) -> Option<u32> {
        let targets = said.iter().map(|said| said.target);
        let mean = |weight: fn(&Said) -> f64| {
            let total: f64 = said.iter().map(weight).sum();
            let sum: f64 = said.iter().map(|said| weight(said) * f64::from(said.target)).sum();
            (0.0 < total).then(|| nodes_for(sum / total))
        };
        match self.mode {
            Mode::Max => targets.max(),
            Mode::Min => targets.min(),
            Mode::Avg => mean(|_| 1.0),
            Mode::Weighted => mean(|said| said.weight),
        }
    }
}

struct Said {
    kind: super::Kind,
    target: u32,
    weight: f64,
    reason: String,
}

fn write_weights<S: Serializer>(weights: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Weight(#[serde(serialize_with = "write_number")] f64);
    serializer.collect_seq(weights.iter().map(|weight| Weight(*weight)))
}

#[cfg(test)]
mod tests;
