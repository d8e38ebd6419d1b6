use super::*;

#[test]
fn what_asking_takes_is_no_difference() {
    let at = |seconds: i64| Timestamp::from_second(1_000 + seconds).unwrap();
    let check = |ours, theirs, took, wanted| {
        let took = SignedDuration::from_secs(took);
        assert_eq!(apart(at(ours), at(theirs), took).as_secs(), wanted, "{ours} {theirs} {took}");
    };
    check(0, 0, 0, 0);
    check(0, 3, 5, 0);
    check(0, 5, 5, 0);
    check(0, 8, 5, -3);
    check(7, 0, 5, 7);
}
