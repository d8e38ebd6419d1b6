use super::*;
use crate::report::fixture::{about, failing, golden, outcome};

fn plain(outcomes: &[Outcome], unicode: bool) -> String {
    summary(&about(), outcomes, &Pen { screen: Screen::plain(), unicode })
}

#[test]
fn a_run_that_passed_reads_like_this() {
    golden("passed.txt", &plain(&[outcome(1)], true));
}

#[test]
fn a_run_that_failed_says_so_first_and_how_to_see_it_again() {
    golden("failed.txt", &plain(&[failing(1)], true));
}

#[test]
fn many_seeds_name_the_ones_that_failed() {
    let text = plain(&[outcome(1), failing(2), outcome(3), failing(4)], true);
    assert!(text.starts_with("llama3 · 4 seeds · 216d · "), "{text}");
    assert!(
        text.contains(
            "FAILED  2 violations, 2 of 10 assertions failed; 2 of 4 seeds failed: 2 4\n"
        ),
        "{text}"
    );
    assert!(text.contains("  replay: argosy sim run llama3 --seed 2\n"), "{text}");
}

#[test]
fn everything_fits_a_terminal() {
    for outcomes in [vec![outcome(1)], vec![failing(1)], vec![outcome(1), failing(2)], Vec::new()] {
        for unicode in [true, false] {
            let text = plain(&outcomes, unicode);
            assert!(text.lines().count() <= 34, "{text}");
            for line in text.lines() {
                assert!(line.chars().count() <= COLUMNS, "{line}");
                assert_eq!(line, line.trim_end());
            }
            assert!(unicode || text.is_ascii(), "{text}");
        }
    }
}

#[test]
fn names_from_outside_cannot_move_the_cursor() {
    let mut sly = failing(1);
    sly.scenario = "a\u{1b}[2Jb".to_owned();
    sly.faults[0].cause = "\u{1b}[31mred".to_owned();
    sly.violations[0].message = "\u{1b}]0;title".to_owned();
    sly.rules.insert("\u{1b}x".to_owned(), RuleHits { hits: 9_999, ..RuleHits::default() });
    sly.actions.insert("\u{1b}y".to_owned(), 1);
    assert!(!plain(&[sly], true).contains('\u{1b}'));
}

#[test]
fn a_sparkline_shows_the_least_of_each_stretch() {
    assert_eq!(sparkline(&[], 0, &[]), "");
    assert_eq!(sparkline(&[0, 4, 8], 0, &[8, 8, 8]), "▁▅█");
    assert_eq!(sparkline(&[0, 4, 8], 4, &[8, 8, 8]), "▁▁█", "the beginning does not count");
    assert_eq!(sparkline(&[8, 8], 8, &[8, 8]), "██");
    let mut long = vec![100; 480];
    long[17] = 0;
    assert_eq!(sparkline(&long, 0, &[100]), format!("█▁{}", "█".repeat(46)));
}
