use super::*;

fn of(ns: impl IntoIterator<Item = u64>) -> Histogram {
    ns.into_iter().map(Duration::from_nanos).collect()
}

#[test]
fn nothing_has_no_percentiles() {
    let empty = of([]);
    assert_eq!((empty.count(), empty.at(0.5), empty.max()), (0, None, None));
}

#[test]
fn small_values_are_exact() {
    let all = of(1..=100);
    for (share, ns) in [(0.0, 1), (0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100)] {
        assert_eq!(all.at(share), Some(Duration::from_nanos(ns)), "{share}");
    }
}

#[test]
fn every_percentile_is_right_within_a_hundredth() {
    // From a nanosecond to an hour, in steps that fall anywhere in a bucket.
    let mut values: Vec<u64> =
        std::iter::successors(Some(1.0_f64), |value| Some(value * 1.0137 + 0.3))
            .map(|value| value as u64)
            .take_while(|value| *value < 3_600_000_000_000)
            .collect();
    let histogram = of(values.iter().copied());
    values.sort_unstable();
    for permille in 1..=1000_u64 {
        let place = (values.len() as u64 * permille).div_ceil(1000).max(1) - 1;
        let exact = values[usize::try_from(place).unwrap()] as f64;
        let told = histogram.at(permille as f64 / 1000.0).unwrap().as_nanos() as f64;
        assert!(
            exact <= told * 1.000_001 && told <= exact * 1.01 + 1.0,
            "{permille}: {told} {exact}"
        );
    }
    assert_eq!(histogram.max(), values.last().map(|ns| Duration::from_nanos(*ns)));
}

#[test]
fn buckets_follow_each_other_without_a_hole_and_hold_the_longest_time() {
    let mut before = None;
    for place in 0..58 * 128 {
        let last = last_of(place);
        assert_eq!(super::place(last), place);
        assert!(before.is_none_or(|before| super::place(before + 1) == place), "{place}");
        before = Some(last);
    }
    let longest = of([u64::MAX]);
    assert_eq!(longest.at(0.5), Some(Duration::from_nanos(u64::MAX)));
    assert_eq!(super::place(u64::MAX), 58 * 128 - 1);
}
