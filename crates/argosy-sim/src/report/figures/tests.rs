use super::*;

fn with(series: Series) -> Vec<Outcome> {
    vec![Outcome { series, ..Outcome::default() }]
}

fn of(outcomes: &[Outcome]) -> Figures {
    Figures::of(outcomes, &BTreeMap::new())
}

#[test]
fn availability_counts_only_what_was_asked_for() {
    type Row<'a> = (&'a [u32], &'a [u32], &'a [u32], Option<f64>);
    let rows: [Row<'_>; 5] = [
        (&[10, 10], &[10, 10], &[10, 10], Some(1.0)),
        (&[10, 10], &[10, 10], &[10, 5], Some(0.75)),
        // More than was asked for does not make up for less.
        (&[10, 10], &[20, 10], &[20, 5], Some(0.75)),
        // A fleet that is simply there: nobody asked.
        (&[0, 0], &[10, 10], &[10, 5], Some(0.75)),
        (&[], &[], &[], None),
    ];
    for (wanted, present, in_service, expected) in rows {
        let figures = of(&with(Series {
            step_seconds: 60.0,
            wanted: wanted.to_vec(),
            present: present.to_vec(),
            in_service: in_service.to_vec(),
            ..Series::default()
        }));
        assert_eq!(figures.availability, expected, "{wanted:?} {present:?} {in_service:?}");
    }
}

#[test]
fn averages_begin_with_the_first_machine() {
    let figures = of(&with(Series {
        step_seconds: 60.0,
        wanted: vec![0, 8, 8],
        present: vec![0, 8, 8],
        in_service: vec![0, 8, 6],
        ..Series::default()
    }));
    assert_eq!((figures.gpus_wanted, figures.gpus_in_service), (8.0, 7.0));
    assert!(figures.gpus_in_service_min.is_some_and(|(least, _)| f64::from(least) <= 7.0));
}

#[test]
fn the_least_capacity_is_looked_for_after_the_fleet_was_complete() {
    let lowest = |wanted: &[u32], in_service: &[u32]| {
        of(&with(Series {
            step_seconds: 10.0,
            wanted: wanted.to_vec(),
            present: in_service.to_vec(),
            in_service: in_service.to_vec(),
            ..Series::default()
        }))
        .gpus_in_service_min
    };
    assert_eq!(lowest(&[8, 8, 8, 8], &[0, 8, 6, 8]), Some((6, 20.0)));
    assert_eq!(lowest(&[8, 8, 8, 8], &[0, 7, 6, 7]), Some((6, 20.0)), "never complete");
    assert_eq!(lowest(&[0, 0, 0], &[0, 8, 7]), Some((7, 20.0)), "nobody asked");
    assert_eq!(lowest(&[], &[]), None);
}

#[test]
fn times_are_ranks_of_what_was_measured() {
    let times = |sorted: &[f64]| Times::of(sorted).map(|t| (t.count, t.p50, t.p90, t.p99, t.max));
    assert_eq!(times(&[]), None);
    assert_eq!(times(&[3.0]), Some((1, 3.0, 3.0, 3.0, 3.0)));
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(times(&hundred), Some((100, 50.0, 90.0, 99.0, 100.0)));
}

#[test]
fn a_count_is_within_chance_of_what_was_expected_or_not() {
    for (count, expected, within) in [
        (148, 148.0, true),
        (165, 148.0, true),
        (190, 148.0, false),
        (0, 2.0, true),
        (0, 30.0, false),
        (0, 0.0, true),
        (1, 0.0, false),
    ] {
        assert_eq!(within_chance(count, expected), within, "{count} of {expected}");
    }
}

#[test]
fn a_cause_that_never_struck_is_listed_when_it_was_expected() {
    let fault = |cause: &str, kind: &str| Fault {
        cause: cause.to_owned(),
        kind: kind.to_owned(),
        ..Fault::default()
    };
    let faults = vec![fault("b", ""), fault("b", ""), fault("", "silent")];
    let run = Outcome { faults, ..Outcome::default() };
    let expected = [("a".to_owned(), 5.0), ("b".to_owned(), 1.0)].into();
    let figures = Figures::of(&[run.clone(), run], &expected);
    let rows: Vec<_> =
        figures.causes.iter().map(|row| (row.cause.as_str(), row.count, row.expected)).collect();
    assert_eq!(rows, [("b", 4, Some(2.0)), ("silent", 2, None), ("a", 0, Some(10.0))]);
}

#[test]
fn what_is_over_budget_is_counted() {
    let figures = of(&with(Series {
        step_seconds: 10.0,
        disrupted: vec![1, 3, 2, 0],
        budget: vec![2, 2, 2, 2],
        ..Series::default()
    }));
    assert_eq!(figures.disrupted_max, Some((3, 2)));
    assert_eq!(figures.over_budget_seconds, 10.0);
}
