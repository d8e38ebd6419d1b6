use super::*;

#[test]
fn memory_is_a_part_of_what_there_is() {
    let rows = [
        ((0, 80), Some(0)),
        ((40, 80), Some(50)),
        ((79, 80), Some(98)),
        ((90, 80), Some(100)),
        ((u64::MAX, i64::MAX), Some(100)),
        ((40, 0), None),
        ((40, -1), None),
    ];
    for ((used, total), expected) in rows {
        assert_eq!(memory_percent(used, total), expected, "{used} of {total}");
    }
}

#[test]
fn a_percentage_is_whole() {
    for (measured, expected) in [(0.4, 0), (99.5, 100), (120.0, 100), (-1.0, 0), (f32::NAN, 0)] {
        assert_eq!(whole_percent(measured), expected, "{measured}");
    }
}
