//! Outcomes made by hand: eight weeks of a large fleet, as they might have been.

use super::About;
use crate::dice::Dice;
use crate::outcome::{Checked, Fault, Money, Outcome, RuleHits, Series, Violation, Work};
use std::collections::BTreeMap;

/// Causes with how many of each are made, and how many one would expect.
const CAUSES: [(&str, &str, u64, f64); 6] = [
    ("Faulty GPU", "xid:79", 148, 148.0),
    ("GPU HBM3 memory", "xid:95", 72, 72.0),
    ("Software bug", "crash", 54, 54.0),
    ("Network switch or cable", "partition", 20, 35.0),
    ("Host maintenance", "reboot", 32, 32.0),
    ("GPU SRAM memory", "xid:48", 19, 19.0),
];

/// One run of 54 days, not the same for each seed.
pub(super) fn outcome(seed: u64) -> Outcome {
    let mut dice = Dice::new(seed);
    let (step, steps) = (3_600.0, 54 * 24);
    let mut faults = Vec::new();
    for (cause, kind, count, _) in CAUSES {
        for place in 0..count {
            let seen = kind != "crash" || place % 2 == 0;
            let known = dice.around(22.0, 8.0).max(2.0);
            faults.push(Fault {
                at: dice.share() * step * f64::from(steps),
                target: format!("gpu-{}", dice.below(2_048)),
                cause: cause.to_owned(),
                kind: kind.to_owned(),
                interrupts: true,
                detected_after: seen.then_some(known),
                cordoned_after: seen.then_some(known + dice.wait(3.0)),
                repaired_after: seen.then_some(known + 240.0 + dice.wait(180.0)),
            });
        }
    }
    faults.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut series = Series { step_seconds: step, ..Series::default() };
    for place in 0..steps {
        let out = dice.below(3) as u32 + if place % 311 == 310 { 18 } else { 0 };
        let up = if place < 3 { 5_000 * (place as u32 + 1) } else { 16_384 };
        series.wanted.push(16_384);
        series.present.push(up + dice.below(2) as u32 * 8);
        series.in_service.push(up.min(16_384).saturating_sub(out * 8));
        series.disrupted.push(out.min(10));
        series.budget.push(20);
        series.cost_per_hour.push(up as f32 * 2.1);
        series.goodput.push((0.94 + dice.share() * 0.04) as f32);
    }
    let rule = |hits, nodes, replaced| RuleHits { hits, nodes, replaced };
    Outcome {
        scenario: "llama3".to_owned(),
        seed,
        digest: format!("{:016x}", dice.any()).repeat(4),
        simulated_seconds: 54.0 * 86_400.0,
        events: 1_234_567 + seed,
        violations: Vec::new(),
        assertions: vec![
            checked("availability of at least 99%", "99.8%", true),
            checked("99 of 100 faults known within 60s", "41s", true),
        ],
        nodes: 2_052,
        gpus: 16_416,
        series,
        faults,
        actions: [
            ("buy", 2_300),
            ("cordon", 318),
            ("drain", 301),
            ("reboot", 32),
            ("replace", 252),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count + seed % 5))
        .collect(),
        rules: [
            ("xid-fatal", rule(167, 167, 160)),
            ("memory-errors", rule(91, 91, 88)),
            ("hot", rule(1_204, 12, 0)),
        ]
        .into_iter()
        .map(|(name, hits)| (name.to_owned(), hits))
        .collect(),
        work: Some(Work {
            jobs: 1,
            interruptions: 345,
            by_cause: BTreeMap::new(),
            possible: 16_384.0 * 54.0 * 86_400.0,
            useful: 16_384.0 * 54.0 * 86_400.0 * (0.95 + dice.share() * 0.01),
            redone: 16_384.0 * 54.0 * 86_400.0 * 0.021,
            waited: 16_384.0 * 54.0 * 86_400.0 * 0.012,
            overhead: 16_384.0 * 54.0 * 86_400.0 * 0.007,
        }),
        money: Money { total: 44_592_000.0, wasted: 312_000.0, bought: 2_300, returned: 252 },
        bytes_per_node: Some(5_120),
    }
}

fn checked(expected: &str, found: &str, holds: bool) -> Checked {
    Checked { expected: expected.to_owned(), found: found.to_owned(), holds }
}

/// The same, but what must never be was.
pub(super) fn failing(seed: u64) -> Outcome {
    let mut outcome = outcome(seed);
    outcome.violations.push(Violation {
        invariant: "I4".to_owned(),
        at: 11_540.0,
        message: "21 nodes of pool `train` are out of service by our own doing, and 20 may be: \
                  gpu-17 was cordoned while the budget was used up"
            .to_owned(),
    });
    outcome.assertions.push(checked("goodput of at least 99%", "95.4%", false));
    outcome
}

pub(super) fn about() -> About {
    About {
        reference: "llama3".to_owned(),
        options: Vec::new(),
        summary: "16,384 GPUs for 54 days, failing at the rates that were published for Llama 3"
            .to_owned(),
        source: "name: llama3\nduration: 54d\n".to_owned(),
        expected: CAUSES
            .iter()
            .map(|(cause, _, _, expected)| ((*cause).to_owned(), *expected))
            .collect(),
        stories: BTreeMap::new(),
    }
}

/// Compares a text with the file of that name in `report/golden`; `UPDATE=1` rewrites it.
pub(super) fn golden(name: &str, printed: &str) {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, printed).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(printed, committed, "{name} is out of date: run the tests once with UPDATE=1");
}
