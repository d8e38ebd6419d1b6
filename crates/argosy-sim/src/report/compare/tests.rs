use super::*;
use crate::report::fixture::{about, failing, golden, outcome};
use argosy_term::Screen;
use proptest::prelude::*;

/// The difference of the cost, from what A and B cost by seed.
fn cost(a: &[f64], b: &[f64]) -> Difference {
    let side = |costs: &[f64]| -> Vec<Outcome> {
        (1..).zip(costs).map(|(seed, cost)| costing(seed, *cost)).collect()
    };
    let comparison = compare(&side(a), &side(b));
    comparison.differences.into_iter().find(|difference| difference.measure == "cost").unwrap()
}

fn costing(seed: u64, cost: f64) -> Outcome {
    let mut outcome = Outcome { seed, digest: cost.to_string(), ..Outcome::default() };
    outcome.money.total = cost;
    outcome
}

#[test]
fn differences_are_of_each_seed_with_itself() {
    let rows: [(&[f64], &[f64], &str); 7] = [
        (&[100.0], &[90.0], "-10 ± none, 1 of 1: Unclear"),
        (&[100.0, 100.0], &[90.0, 90.0], "-10 ± 0.00, 2 of 2: B"),
        // Seeds are far apart, A and B are not: the pairs see it.
        (&[100.0, 900.0, 500.0], &[90.0, 891.0, 489.0], "-10 ± 2.48, 3 of 3: B"),
        (&[90.0, 891.0, 489.0], &[100.0, 900.0, 500.0], "10 ± 2.48, 3 of 3: A"),
        (
            &[100.0, 100.0, 100.0],
            &[70.0, 120.0, 100.0],
            "-3.3333333333333335 ± 62.52, 1 of 3: Unclear",
        ),
        (&[5.0, 7.0], &[5.0, 7.0], "0 ± 0.00, 0 of 2: Same"),
        (&[5.0], &[5.0], "0 ± none, 0 of 1: Same"),
    ];
    for (a, b, expected) in rows {
        let d = cost(a, b);
        let half = d.half_width.map_or("none".to_owned(), |half| format!("{half:.2}"));
        let is = format!("{} ± {half}, {} of {}: {:?}", d.mean, d.agree, d.seeds, d.verdict);
        assert_eq!(is, expected, "{a:?} {b:?}");
    }
}

#[test]
fn words_say_what_would_have_been_saved() {
    let rows: [(&[f64], &[f64], &str); 5] = [
        (
            &[1_000.0, 2_000.0, 3_000.0],
            &[900.0, 1_910.0, 2_890.0],
            "B costs $100.00 less in all, ±$24.84, on all 3 seeds",
        ),
        (&[10.0, 10.0], &[30.0, 30.0], "B costs $20.00 more in all, ±$0, on all 2 seeds"),
        (
            &[10.0, 10.0, 10.0],
            &[30.0, 5.0, 10.0],
            "B costs $5.00 more in all, ±$32.86, on 1 of 3 seeds: this may be chance",
        ),
        (&[10.0], &[5.0], "B costs $5.00 less in all, on one seed: one seed says little"),
        (&[10.0, 1.0], &[10.0, 1.0], "no difference: cost"),
    ];
    for (a, b, expected) in rows {
        assert_eq!(cost(a, b).words, expected);
    }
}

#[test]
fn only_seeds_that_both_sides_have_are_compared() {
    let a = [costing(1, 1.0), costing(2, 2.0), costing(3, 3.0)];
    let b = [costing(3, 3.0), costing(2, 5.0), costing(9, 1.0)];
    let comparison = compare(&a, &b);
    assert_eq!(comparison.seeds, [2, 3]);
    assert_eq!(comparison.seeds_left_out, 2);
    assert_eq!(comparison.seeds_alike, 1);
}

#[test]
fn a_side_that_failed_is_named() {
    let comparison = compare(&[outcome(1), outcome(2)], &[failing(1), outcome(2)]);
    assert_eq!(comparison.a_failed, Vec::<u64>::new());
    assert_eq!(comparison.b_failed, [1]);
    let pen = Pen { screen: Screen::plain(), unicode: true };
    let sides = Sides { a: about(), b: about() };
    let text = text(&sides, &comparison, &pen);
    assert!(
        text.contains("FAILED  B on 1 of 2 seeds\n  replay: argosy sim run llama3 --seed 1\n"),
        "{text}"
    );
}

/// Three weeks without and with a policy that repairs sooner.
fn two_sides() -> (Sides, Comparison) {
    let a: Vec<Outcome> = (1..=8).map(outcome).collect();
    let b = (1..=8).map(|seed| {
        let mut better = outcome(seed);
        let saved = 14.2 * 86_400.0 + (seed % 3) as f64 * 86_400.0;
        if let Some(work) = &mut better.work {
            work.useful += saved;
            work.interruptions -= 3;
        }
        better.money.total += 1_000.0 * seed as f64;
        better.actions.insert("replace".to_owned(), 300);
        better.digest.push('b');
        better
    });
    let mut with = about();
    with.options = vec!["--policy".to_owned(), "<sooner>.yaml".to_owned()];
    (Sides { a: about(), b: with }, compare(&a, &b.collect::<Vec<_>>()))
}

#[test]
fn a_comparison_reads_like_this() {
    let (sides, comparison) = two_sides();
    let pen = Pen { screen: Screen::plain(), unicode: true };
    golden("compared.txt", &text(&sides, &comparison, &pen));
}

#[test]
fn a_comparison_as_a_document_and_as_a_page() {
    let (sides, comparison) = two_sides();
    let document = document(&sides, &comparison);
    assert_eq!(document["kind"], "SimulationComparison");
    assert_eq!(document["b"], "llama3 --policy <sooner>.yaml");
    assert_eq!(document["seeds"].as_array().unwrap().len(), 8);
    assert_eq!(document["differences"][2]["measure"], "work_lost");
    assert_eq!(document["differences"][2]["unit"], "gpu_seconds");
    assert_eq!(document["differences"][2]["better"], "less");
    assert_eq!(document["differences"][2]["verdict"], "b");
    let page = html(&sides, &comparison);
    assert!(page.contains("&lt;sooner&gt;.yaml") && !page.contains("<sooner>"), "not escaped");
    for part in ["What B would have saved", "B loses ", "Seeds 1..8.", "may be chance"] {
        assert!(page.contains(part), "the page lacks {part}");
    }
}

#[test]
fn student_goes_over_into_the_normal() {
    for (freedom, t) in [(1, 12.706), (7, 2.365), (30, 2.042), (60, 2.000), (1_000, 1.962)] {
        assert!((student(freedom) - t).abs() < 0.002, "{freedom}: {}", student(freedom));
    }
}

proptest! {
    #[test]
    fn changing_sides_changes_the_sign_and_nothing_else(
        pairs in proptest::collection::vec((1.0..1e6, 1.0..1e6), 1..40)
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (there, back) = (cost(&a, &b), cost(&b, &a));
        prop_assert_eq!(there.mean, -back.mean);
        prop_assert_eq!(there.half_width, back.half_width);
        prop_assert_eq!(there.agree, back.agree);
        let swapped = match there.verdict {
            Verdict::A => Verdict::B,
            Verdict::B => Verdict::A,
            same @ (Verdict::Unclear | Verdict::Same) => same,
        };
        prop_assert_eq!(swapped, back.verdict);
    }

    #[test]
    fn what_is_equal_differs_by_nothing(costs in proptest::collection::vec(1.0..1e6, 1..40)) {
        let same = cost(&costs, &costs);
        prop_assert_eq!(same.mean, 0.0);
        prop_assert_eq!(same.agree, 0);
        prop_assert_eq!(same.verdict, Verdict::Same);
    }

    #[test]
    fn a_constant_difference_is_found_whatever_the_seeds_do(
        costs in proptest::collection::vec(1e3..1e6, 2..40)
    ) {
        let cheaper: Vec<f64> = costs.iter().map(|cost| cost - 100.0).collect();
        let found = cost(&costs, &cheaper);
        prop_assert!((found.mean + 100.0).abs() < 1e-6);
        prop_assert_eq!(found.verdict, Verdict::B);
        prop_assert_eq!(found.agree, found.seeds);
    }
}
