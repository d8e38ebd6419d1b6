use super::*;
use crate::outcome::RuleHits;
use crate::report::fixture::{about, failing, outcome};

const SLY: &str = "<img src=x onerror=\"alert('1')\">&";

/// Something from outside in every place that has any.
fn sly() -> (About, Outcome) {
    let mut run = failing(1);
    run.scenario = SLY.to_owned();
    run.digest = SLY.to_owned();
    for violation in &mut run.violations {
        violation.invariant = SLY.to_owned();
        violation.message = SLY.to_owned();
    }
    for checked in &mut run.assertions {
        checked.expected = SLY.to_owned();
        checked.found = SLY.to_owned();
    }
    for fault in &mut run.faults {
        fault.cause = SLY.to_owned();
        fault.target = SLY.to_owned();
        fault.kind = SLY.to_owned();
    }
    run.actions.insert(SLY.to_owned(), 1);
    run.rules.insert(SLY.to_owned(), RuleHits { hits: 1_000_000, ..RuleHits::default() });
    let about = About {
        reference: SLY.to_owned(),
        options: vec![SLY.to_owned()],
        summary: SLY.to_owned(),
        source: SLY.to_owned(),
        expected: [(SLY.to_owned(), 3.0)].into(),
        stories: [(1, vec![SLY.to_owned()])].into(),
    };
    (about, run)
}

#[test]
fn nothing_from_outside_becomes_part_of_the_page() {
    let (about, run) = sly();
    for outcomes in [vec![run.clone()], vec![run, outcome(2)]] {
        let page = page(&about, &outcomes);
        assert!(!page.contains("<img"), "a name became a tag");
        assert!(!page.contains("alert('1')"), "a quote was left as it was");
        assert!(page.contains("&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;"));
    }
}

#[test]
fn a_page_needs_nothing_from_anywhere_else() {
    let page = page(&about(), &[outcome(1)]);
    for outside in ["http://", "https://", "<script", "<link", "<img", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"), "the browser is told so, too");
}

#[test]
fn every_tag_is_closed() {
    for outcomes in [vec![outcome(1)], vec![failing(1), outcome(2)], Vec::new()] {
        let page = page(&about(), &outcomes);
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            let name = tag.trim_start_matches('/').split(' ').next().unwrap().trim_end_matches('/');
            if tag.starts_with('!') || tag.ends_with('/') || matches!(name, "meta" | "br") {
                continue;
            }
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "closed out of turn");
            } else {
                open.push(name);
            }
        }
        assert_eq!(open, Vec::<&str>::new());
    }
}

#[test]
fn everything_that_was_asked_for_is_on_the_page() {
    let mut about = about();
    about.stories.insert(1, vec!["at 3h12m gpu-17 was cordoned".to_owned()]);
    let page = page(&about, &[failing(1)]);
    for part in [
        "<h2>Violations</h2>",
        "<h2>Capacity</h2>",
        "<h2>What went wrong</h2>",
        "<h2>Detection and replacement</h2>",
        "<h2>Goodput</h2>",
        "<h2>Actions against budget</h2>",
        "<h2>What each rule did</h2>",
        "<h2>Cost</h2>",
        "<h2>Assertions</h2>",
        "<h2>Scenario</h2>",
        "<li>at 3h12m gpu-17 was cordoned</li>",
        "argosy sim run llama3 --seed 1",
        "argosy sim explain llama3 --seed 1",
        "name: llama3",
        "5 of 6 are within it",
    ] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    let plots = page.matches("<svg").count();
    assert_eq!(
        page.matches("role=\"img\" aria-label=").count(),
        plots,
        "each plot says what it is"
    );
    assert!(page.len() < 400_000, "{} bytes are too heavy for a letter", page.len());
}

#[test]
fn numbers_that_are_none_break_no_picture() {
    let mut odd = outcome(1);
    odd.series.goodput.iter_mut().step_by(3).for_each(|value| *value = f32::NAN);
    odd.series.cost_per_hour.iter_mut().for_each(|value| *value = f32::INFINITY);
    odd.faults.iter_mut().for_each(|fault| fault.detected_after = Some(f64::NAN));
    let page = page(&about(), &[odd]);
    assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains(">inf"));
}

#[test]
fn a_run_of_nothing_is_still_a_page() {
    let page = page(&About::default(), &[Outcome::default()]);
    assert!(page.ends_with("</html>\n"));
    assert!(!page.contains("NaN"));
}
