use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// `excuses` are `from-to` in seconds; leading since 100, with a grace of 50.
fn check(excuses: &str, since: i64, now: i64, listened: i64, from: i64) {
    let mut it = Listened::new(at(100), SignedDuration::from_secs(50));
    for excuse in excuses.split_whitespace() {
        let (began, ended) = excuse.split_once('-').unwrap();
        it.note(true, at(began.parse().unwrap()));
        it.note(true, at(began.parse::<i64>().unwrap() + 1));
        if let Ok(ended) = ended.parse() {
            it.note(false, at(ended));
        }
    }
    let text = format!("{excuses} | {since} {now}");
    assert_eq!(it.time(at(since), at(now)).as_secs(), listened, "{text}");
    assert_eq!(it.from(at(since), at(now)).duration_since(at(0)).as_secs(), from, "{text}");
}

#[test]
fn r2_m2_only_time_in_which_we_listened_counts() {
    check("", 0, 100, 0, 150);
    check("", 0, 149, 0, 150);
    check("", 0, 250, 100, 150);
    check("", 100, 250, 150, 100);
    check("", 200, 250, 50, 200);
    check("", 300, 250, 0, 300);
    // An excuse that is over, one that goes on, and one from before.
    check("200-220", 0, 250, 80, 170);
    check("200-220", 210, 250, 30, 220);
    check("200-220", 230, 250, 20, 230);
    check("200-", 0, 250, 50, 200);
    check("200-220 230-240", 0, 250, 70, 180);
    check("200-220 230-", 225, 250, 5, 245);
}

#[test]
fn what_is_remembered_has_an_end() {
    let mut it = Listened::new(at(0), SignedDuration::ZERO);
    for nth in 0..1000 {
        it.note(true, at(nth * 2));
        it.note(false, at(nth * 2 + 1));
    }
    assert_eq!(it.away.len(), AWAY_MAX);
}
