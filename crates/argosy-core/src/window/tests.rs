use super::{Cron, Window, Windows, zone};
use crate::span::Written;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The times after `after`, separated by commas.
fn times(cron: &str, tz: &str, after: &str, count: usize) -> String {
    let (cron, tz) = (Cron::parse(cron).unwrap(), zone(tz).unwrap());
    let mut last = at(after);
    let mut times = Vec::new();
    for _ in 0..count {
        last = cron.next(last, &tz).unwrap();
        times.push(last.to_string());
    }
    times.join(", ")
}

#[test]
fn the_next_time_of_an_expression() {
    for (cron, tz, after, expected) in [
        ("30 2 * * *", "UTC", "2026-01-01T02:30:00Z", "2026-01-02T02:30:00Z"),
        ("30 2 * * *", "UTC", "2026-01-01T02:29:59.5Z", "2026-01-01T02:30:00Z"),
        (
            "* * * * *",
            "UTC",
            "2026-01-01T02:29:59.5Z",
            "2026-01-01T02:30:00Z, 2026-01-01T02:31:00Z",
        ),
        (
            "*/20 * * * *",
            "UTC",
            "2026-01-01T02:20:00Z",
            "2026-01-01T02:40:00Z, 2026-01-01T03:00:00Z",
        ),
        (
            "50/5 7 * * *",
            "UTC",
            "2026-01-01T00:00:00Z",
            "2026-01-01T07:50:00Z, 2026-01-01T07:55:00Z",
        ),
        (
            "0 9-17/4 * * *",
            "UTC",
            "2026-01-01T10:00:00Z",
            "2026-01-01T13:00:00Z, 2026-01-01T17:00:00Z",
        ),
        ("0 9 * * *", "America/New_York", "2026-07-01T00:00:00Z", "2026-07-01T13:00:00Z"),
        ("0 9 * * *", "Asia/Kolkata", "2026-07-01T00:00:00Z", "2026-07-01T03:30:00Z"),
        ("0 0 1 JAN *", "UTC", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        // A number or a weekday; both, if one of them begins with a star.
        (
            "0 0 13 * fri",
            "UTC",
            "2026-02-01T00:00:00Z",
            "2026-02-06T00:00:00Z, 2026-02-13T00:00:00Z",
        ),
        (
            "0 0 */2 * mon",
            "UTC",
            "2026-02-01T00:00:00Z",
            "2026-02-09T00:00:00Z, 2026-02-23T00:00:00Z",
        ),
        ("0 12 * * 7", "UTC", "2026-02-02T00:00:00Z", "2026-02-08T12:00:00Z"),
        ("0 12 * * sunday", "UTC", "2026-02-02T00:00:00Z", "2026-02-08T12:00:00Z"),
        (
            "0 12 * * sat-sun",
            "UTC",
            "2026-02-02T00:00:00Z",
            "2026-02-07T12:00:00Z, 2026-02-08T12:00:00Z",
        ),
        ("15 * * * sat", "UTC", "2026-02-07T23:15:00Z", "2026-02-14T00:15:00Z"),
    ] {
        let count = expected.matches(',').count() + 1;
        assert_eq!(times(cron, tz, after, count), expected, "{cron} after {after}");
    }
}

#[test]
fn e4_a_time_that_the_clock_skips_or_repeats_comes_once() {
    let berlin = "Europe/Berlin";
    for (cron, tz, after, expected) in [
        // 02:00 is 03:00 on 29 March: what would be between is the moment of the jump.
        (
            "30 2 * * *",
            berlin,
            "2026-03-28T12:00:00Z",
            "2026-03-29T01:00:00Z, 2026-03-30T00:30:00Z",
        ),
        (
            "*/10 2 * * *",
            berlin,
            "2026-03-29T00:59:00Z",
            "2026-03-29T01:00:00Z, 2026-03-30T00:00:00Z",
        ),
        ("0 3 * * *", berlin, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z, 2026-03-30T01:00:00Z"),
        // 03:00 is 02:00 on 25 October: 02:30 is meant the first time.
        (
            "30 2 * * *",
            berlin,
            "2026-10-24T12:00:00Z",
            "2026-10-25T00:30:00Z, 2026-10-26T01:30:00Z",
        ),
        // Every hour is every hour that passes.
        (
            "30 * * * *",
            berlin,
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:30:00Z, 2026-10-25T01:30:00Z, 2026-10-25T02:30:00Z",
        ),
        (
            "30 * * * *",
            berlin,
            "2026-03-29T00:00:00Z",
            "2026-03-29T00:30:00Z, 2026-03-29T01:30:00Z",
        ),
        // Clocks that change at midnight.
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            "2018-11-03T12:00:00Z",
            "2018-11-04T03:00:00Z, 2018-11-05T02:00:00Z",
        ),
        (
            "0 0 * * *",
            "America/Havana",
            "2026-10-31T12:00:00Z",
            "2026-11-01T04:00:00Z, 2026-11-02T05:00:00Z",
        ),
        (
            "0 * * * sun",
            "America/Havana",
            "2026-11-01T03:59:00Z",
            "2026-11-01T04:00:00Z, 2026-11-01T05:00:00Z, 2026-11-01T06:00:00Z",
        ),
        // Half an hour.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            "2026-10-03T15:30:00Z, 2026-10-04T15:15:00Z",
        ),
    ] {
        let count = expected.matches(',').count() + 1;
        assert_eq!(times(cron, tz, after, count), expected, "{cron} after {after}");
    }
}

#[test]
fn an_expression_that_is_wrong_names_the_field_and_what_is_allowed() {
    for (cron, expected) in [
        (
            "* * * *",
            "write five fields (minute, hour, day of the month, month, day of the week), like `30 2 * * sat`; `* * * *` has 4",
        ),
        (
            "@daily",
            "write five fields (minute, hour, day of the month, month, day of the week), like `30 2 * * sat`; `@daily` has 1",
        ),
        ("60 * * * *", "the minute is `60`, but must be 0 to 59"),
        ("* 24 * * *", "the hour is `24`, but must be 0 to 23"),
        ("* -1 * * *", "the hour is ``, but must be 0 to 23"),
        ("* * 0 * *", "the day of the month is `0`, but must be 1 to 31"),
        ("* * * jam *", "the month is `jam`, but must be 1 to 12 or january to december"),
        (
            "* * * * tusday",
            "the day of the week is `tusday`, but must be 0 to 7 or sunday to saturday; did you mean tuesday?",
        ),
        ("*/0 * * * *", "the minute has the step `0`; a step is a number from 1 to 59"),
        ("*/90 * * * *", "the minute has the step `90`; a step is a number from 1 to 59"),
        ("* 22-6 * * *", "the hour `22-6` runs backwards; write two ranges and a comma"),
        ("* 1,,2 * * *", "the hour is ``, but must be 0 to 23"),
        ("0 0 31 2,4 *", "`0 0 31 2,4 *` never comes: no such day"),
    ] {
        assert_eq!(Cron::parse(cron), Err(expected.to_owned()));
    }
    assert!(Cron::parse("0 0 31 2 mon").is_ok(), "the mondays of February come");
    assert!(Cron::parse(&"1,".repeat(500)).unwrap_err().contains("too long"));
}

#[test]
fn a_zone_has_a_name_of_the_database() {
    for (name, expected) in [
        ("Europe/Berlin", Ok("Europe/Berlin")),
        ("europe/berlin", Ok("Europe/Berlin")),
        ("UTC", Ok("UTC")),
        ("Europe/Berlim", Err("; did you mean Europe/Berlin?")),
        ("Berlin", Err("; did you mean Europe/Berlin?")),
        ("new york", Err("; did you mean America/New_York?")),
        ("Etc/Unknown", Err("")),
        ("+02:00", Err("")),
        ("", Err("")),
    ] {
        match (zone(name), expected) {
            (Ok(zone), Ok(expected)) => assert_eq!(super::zone_name(&zone), expected),
            (Err(message), Err(hint)) => {
                assert!(
                    message.ends_with(&format!("like Europe/Berlin or UTC{hint}")),
                    "{message}"
                );
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

fn window(json: Value) -> Window {
    Window::parse(&json, "w").unwrap()
}

/// When it opens and closes after a time, and how long it was open.
fn spans(window: &Window, after: &str, count: usize) -> Vec<String> {
    let mut now = at(after);
    assert!(!window.contains(now));
    (0..count)
        .map(|_| {
            let open = window.next_edge(now).unwrap();
            assert!(
                window.contains(open) && !window.contains(open - SignedDuration::from_nanos(1))
            );
            let close = window.next_edge(open).unwrap();
            assert!(
                !window.contains(close) && window.contains(close - SignedDuration::from_nanos(1))
            );
            now = close;
            format!("{open} for {}", Written(close.duration_since(open)))
        })
        .collect()
}

#[test]
fn a_window_opens_and_closes() {
    for (json, after, expected) in [
        (
            json!({"cron": "0 2 * * sat", "duration": "4h"}),
            "2026-06-01T00:00:00Z",
            ["2026-06-06T02:00:00Z for 4h", "2026-06-13T02:00:00Z for 4h"],
        ),
        (
            json!({"days": ["mon", "tue"], "start": 8, "end": "17:30", "timezone": "Europe/Berlin"}),
            "2026-06-07T00:00:00Z",
            ["2026-06-08T06:00:00Z for 9h30m", "2026-06-09T06:00:00Z for 9h30m"],
        ),
        (
            json!({"days": ["sat", "sun"]}),
            "2026-06-05T00:00:00Z",
            ["2026-06-06T00:00:00Z for 2d", "2026-06-13T00:00:00Z for 2d"],
        ),
        // The night belongs to the day on which it begins.
        (
            json!({"days": ["fri"], "start": 22, "end": 6}),
            "2026-06-05T12:00:00Z",
            ["2026-06-05T22:00:00Z for 8h", "2026-06-12T22:00:00Z for 8h"],
        ),
        (
            json!({"start": "23:30", "end": "00:15"}),
            "2026-06-05T12:00:00Z",
            ["2026-06-05T23:30:00Z for 45m", "2026-06-06T23:30:00Z for 45m"],
        ),
        (
            json!({"days": ["wednesday"], "start": "00:00", "duration": "36h"}),
            "2026-06-09T12:00:00Z",
            ["2026-06-10T00:00:00Z for 1d12h", "2026-06-17T00:00:00Z for 1d12h"],
        ),
        // Starts that come while it is open keep it open.
        (
            json!({"cron": "0,30 8-9 * * *", "duration": "45m"}),
            "2026-06-10T00:00:00Z",
            ["2026-06-10T08:00:00Z for 2h15m", "2026-06-11T08:00:00Z for 2h15m"],
        ),
        (
            json!({"days": ["mon", "tue"], "start": 12, "duration": "30h"}),
            "2026-06-07T00:00:00Z",
            ["2026-06-08T12:00:00Z for 2d6h", "2026-06-15T12:00:00Z for 2d6h"],
        ),
    ] {
        assert_eq!(spans(&window(json.clone()), after, 2), expected, "{json}");
    }
}

#[test]
fn e4_a_window_has_its_right_length_when_the_clocks_change() {
    let (spring, autumn) = ("2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z");
    for (json, after, expected) in [
        // From a time on the wall to a time on the wall: seven hours, and nine.
        (json!({"start": 22, "end": 6}), spring, "2026-03-28T21:00:00Z for 7h"),
        (json!({"start": 22, "end": 6}), autumn, "2026-10-24T20:00:00Z for 9h"),
        (json!({"days": ["sun"]}), spring, "2026-03-28T23:00:00Z for 23h"),
        (json!({"days": ["sun"]}), autumn, "2026-10-24T22:00:00Z for 1d1h"),
        // For a length of time: eight hours, always.
        (json!({"start": 22, "duration": "8h"}), spring, "2026-03-28T21:00:00Z for 8h"),
        (json!({"start": 22, "duration": "8h"}), autumn, "2026-10-24T20:00:00Z for 8h"),
        (json!({"cron": "0 22 * * *", "duration": "8h"}), spring, "2026-03-28T21:00:00Z for 8h"),
        (json!({"cron": "0 22 * * *", "duration": "8h"}), autumn, "2026-10-24T20:00:00Z for 8h"),
        // An edge at a time that is skipped, or comes twice.
        (json!({"start": "02:30", "end": 6}), spring, "2026-03-29T01:00:00Z for 3h"),
        (json!({"start": "01:30", "end": "02:30"}), spring, "2026-03-29T00:30:00Z for 30m"),
        (json!({"start": "02:15", "end": "02:45"}), autumn, "2026-10-25T00:15:00Z for 30m"),
        // An hour that does not exist that day: the window comes the day after.
        (json!({"start": 2, "end": 3}), spring, "2026-03-30T00:00:00Z for 1h"),
    ] {
        let mut json = json;
        json["timezone"] = json!("Europe/Berlin");
        assert_eq!(spans(&window(json.clone()), after, 1), [expected], "{json} after {after}");
    }
}

#[test]
fn e4_a_day_that_comes_back_over_midnight_is_one_day() {
    // On 7 November 2010, one minute after midnight, it was 23:01 of the 6th again.
    let zone = "America/St_Johns";
    let sunday = window(json!({"days": ["sun"], "timezone": zone}));
    let after = "2010-11-06T12:00:00Z";
    assert_eq!(spans(&sunday, after, 1), ["2010-11-07T02:30:00Z for 1d1h"]);
    assert!(sunday.contains(at("2010-11-07T02:45:00Z")), "23:15 for the second time");
    let expected = "2010-11-07T02:00:00Z, 2010-11-08T03:00:00Z";
    assert_eq!(times("30 23 * * *", zone, after, 2), expected);
    assert_eq!(times("30 23 * * *", zone, "2010-11-07T02:30:30Z", 1), "2010-11-08T03:00:00Z");
    assert_eq!(times("0 0 * * *", zone, "2010-11-07T02:45:00Z", 1), "2010-11-08T03:30:00Z");
    let expected = "2010-11-07T02:30:00Z, 2010-11-07T03:30:00Z, 2010-11-07T04:30:00Z";
    assert_eq!(times("0 * * * *", zone, "2010-11-07T02:00:00Z", 3), expected);
}

#[test]
fn a_window_that_never_closes_has_no_edge() {
    let now = at("2026-03-28T12:00:00Z");
    for json in [
        json!({"start": "00:00", "end": "24:00"}),
        json!({"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "timezone": "Europe/Berlin"}),
    ] {
        assert!(window(json.clone()).contains(now), "{json}");
        assert_eq!(window(json).next_edge(now), None);
    }
    // Of starts that overlap for ever, the edge is a time to ask again.
    let always = window(json!({"cron": "* * * * *", "duration": "1h"}));
    assert!(now < always.next_edge(now).unwrap());
}

#[test]
fn a_window_that_is_wrong_says_which_member_and_what_would_be_right() {
    let check = |json: Value, expected: &[&str]| {
        let errors = Windows::parse(&json!([json]), "spec.windows").unwrap_err();
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(messages, expected, "{json}");
        for error in errors {
            assert!(error.message.starts_with(&error.field), "{error:?}");
        }
    };
    check(
        json!({}),
        &[
            "spec.windows[0].cron is missing: say when, with `cron` and `duration`, or with `days`, `start` and `end`",
        ],
    );
    check(
        json!({"cron": "0 2 * * *"}),
        &[
            "spec.windows[0].duration is missing: say how long it stays open from each start, like 4h",
        ],
    );
    check(
        json!({"cron": "0 99 * * *", "duration": "8d", "timezone": "Mars"}),
        &[
            "spec.windows[0].timezone is wrong: `Mars` is not a time zone: write an IANA name, like Europe/Berlin or UTC",
            "spec.windows[0].cron is wrong: the hour is `99`, but must be 0 to 23",
            "spec.windows[0].duration must be between 1m and 7d",
        ],
    );
    check(
        json!({"cron": "0 2 * * *", "duration": "1h", "end": 5}),
        &[
            "spec.windows[0].end does not go together with cron, which says when; give `duration` for how long",
        ],
    );
    check(
        json!({"days": ["mon", "tuseday", "fr"]}),
        &[
            "spec.windows[0].days[1] must be a day from mon to sun, or monday, …, not `tuseday`; did you mean tuesday?",
            "spec.windows[0].days[2] must be a day from mon to sun, or monday, …, not `fr`; did you mean fri?",
        ],
    );
    check(json!({"days": []}), &["spec.windows[0].days must have 1 to 7 items, not 0"]);
    check(
        json!({"start": 8}),
        &[
            "spec.windows[0].end is missing: start and end go together; leave both out for whole days",
        ],
    );
    check(
        json!({"end": 8}),
        &[
            "spec.windows[0].start is missing: start and end go together; leave both out for whole days",
        ],
    );
    check(
        json!({"start": 8, "end": 8}),
        &[
            "spec.windows[0].end is not after start; for whole days write 00:00 to 24:00, or leave both out",
        ],
    );
    check(
        json!({"start": 25, "end": "8:5"}),
        &[
            "spec.windows[0].start must be an hour from 0 to 24, or a time like \"22:30\"",
            "spec.windows[0].end must be an hour from 0 to 24, or a time like \"22:30\"",
        ],
    );
    check(
        json!({"start": 8, "end": 9, "duration": "1h"}),
        &["spec.windows[0].duration says the same as end; give one of them"],
    );
    check(
        json!({"start": 8, "end": 9, "timeZone": "UTC"}),
        &[
            "spec.windows[0].timeZone is not one of timezone, cron, days, start, end, duration; did you mean timezone?",
        ],
    );
    let many = json!(vec![json!({"days": ["mon"]}); 33]);
    assert_eq!(Windows::parse(&many, "w").unwrap_err()[0].message, "w has 33 windows; at most 32");
    assert_eq!(
        Windows::parse(&json!("mon"), "w").unwrap_err()[0].message,
        "w must be a list of windows, not a string"
    );
}

#[test]
fn a_window_is_written_as_it_is_read() {
    for json in [
        json!([]),
        json!([{"cron": "0 2 * * sat", "duration": "4h", "timezone": "UTC"}]),
        json!([{"days": ["mon", "sun"], "start": "22:00", "end": "06:00", "timezone": "Asia/Tokyo"}]),
        json!([{"start": "22:00", "duration": "1h30m", "timezone": "UTC"}]),
    ] {
        let windows = Windows::parse(&json, "w").unwrap();
        assert_eq!(json!(windows), json);
        assert_eq!(serde_json::from_value::<Windows>(json).unwrap(), windows);
    }
    assert!(serde_json::from_value::<Windows>(json!([{"days": ["x"]}])).is_err());
}

#[test]
fn no_window_at_all_is_always_and_several_are_each_other_s_company() {
    let now = at("2026-06-10T12:00:00Z");
    assert!(Windows::default().contains(now));
    assert_eq!(Windows::default().next_edge(now), None);
    let hours = |list: &[(u32, u32)]| {
        let list = list.iter().map(|(start, end)| json!({"start": start, "end": end})).collect();
        Windows::parse(&Value::Array(list), "w").unwrap()
    };
    for (list, open, edge) in [
        (hours(&[(8, 10), (14, 16)]), false, "2026-06-10T14:00:00Z"),
        (hours(&[(8, 13), (13, 16)]), true, "2026-06-10T16:00:00Z"),
        (hours(&[(8, 14), (10, 18), (17, 20)]), true, "2026-06-10T20:00:00Z"),
    ] {
        assert_eq!((list.contains(now), list.next_edge(now)), (open, Some(at(edge))), "{list:?}");
    }
    // Together they are always open: what comes back is only a time to ask again.
    let always = hours(&[(0, 12), (12, 24)]);
    assert!(always.contains(now) && now < always.next_edge(now).unwrap());
}

const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
];

prop_compose! {
    fn any_zone()(place in 0..ZONES.len()) -> TimeZone { zone(ZONES[place]).unwrap() }
}

prop_compose! {
    // The years of daylight saving and around, by the second.
    fn any_time()(second in 1_500_000_000_i64..2_500_000_000) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }
}

prop_compose! {
    fn any_window()(
        days in prop::collection::btree_set(0_usize..7, 1..7), start in 0_u32..1440, end in 0_u32..1441,
        length in prop::option::of(1_i64..3000), cron: bool, place in 0..ZONES.len(),
    ) -> Window {
        let days: Vec<&str> = days.iter().map(|day| super::WEEKDAYS[*day]).collect();
        let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let zone = ZONES[place];
        window(match (length, cron) {
            (Some(length), true) => json!({
                "cron": format!("{} {} * * {}", start % 60, start / 60, days.join(",")),
                "duration": format!("{length}m"), "timezone": zone,
            }),
            (Some(length), false) => json!({
                "days": days, "start": time(start), "duration": format!("{length}m"), "timezone": zone,
            }),
            (None, _) => {
                let end = if end == start { start + 1 } else { end };
                json!({"days": days, "start": time(start), "end": time(end), "timezone": zone})
            }
        })
    }
}

proptest! {
    #[test]
    fn the_next_time_is_the_first_minute_that_matches(
        minutes in prop::collection::btree_set(0_i8..60, 1..4),
        hours in prop::collection::btree_set(0_i8..24, 1..4),
        after in any_time(),
    ) {
        let list = |set: &std::collections::BTreeSet<i8>| {
            set.iter().map(i8::to_string).collect::<Vec<_>>().join(",")
        };
        let cron = Cron::parse(&format!("{} {} * * *", list(&minutes), list(&hours))).unwrap();
        let minute = |n: i64| Timestamp::from_second((after.as_second() / 60 + n) * 60).unwrap();
        let expected = (1..=1441).map(minute).find(|at| {
            let local = TimeZone::UTC.to_datetime(*at);
            minutes.contains(&local.minute()) && hours.contains(&local.hour())
        });
        prop_assert_eq!(cron.next(after, &TimeZone::UTC), expected);
    }

    #[test]
    fn times_of_any_expression_come_in_order_in_every_zone(
        cron in "(\\*|[0-5]?[0-9]|\\*/[1-9]) (\\*|1?[0-9]|\\*/[1-9]) (\\*|1?[1-9]) (\\*|[1-9]) (\\*|[0-6])",
        tz in any_zone(), after in any_time(),
    ) {
        let cron = Cron::parse(&cron).unwrap();
        let first = cron.next(after, &tz).unwrap();
        let second = cron.next(first, &tz).unwrap();
        prop_assert!(after < first && first < second);
        // Nothing was left out: from any time before, the same one is next.
        let between = after + first.duration_since(after) / 2;
        prop_assert_eq!(cron.next(between, &tz), Some(first));
    }

    #[test]
    fn between_two_edges_nothing_changes(window in any_window(), now in any_time()) {
        let open = window.contains(now);
        let edge = window.next_edge(now);
        let until = edge.unwrap_or(now + SignedDuration::from_hours(24 * 8));
        prop_assert!(now < until);
        for part in 0..20 {
            let at = now + until.duration_since(now) / 20 * part;
            prop_assert_eq!(window.contains(at), open, "at {}", at);
        }
        if let Some(edge) = edge {
            // A week of starts that overlap is the one thing that has no true edge.
            let long = edge.duration_since(now) < SignedDuration::from_hours(24 * 30);
            prop_assert!(!long || window.contains(edge) != open);
        }
        prop_assert_eq!(Window::parse(&json!(window), "w"), Ok(window));
    }
}

proptest! {
    // Few: each looks for the nearest of six hundred names.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_text_and_no_time_is_too_odd(text in "\\PC{0,24}", second in -377_705_023_201_i64..=253_402_207_200, place in 0..ZONES.len()) {
        let _ = Cron::parse(&text);
        let _ = zone(&text);
        let now = Timestamp::from_second(second).unwrap();
        let tz = ZONES[place];
        for json in [
            json!({"start": 22, "end": 6, "timezone": tz}),
            json!({"cron": "30 * * * mon", "duration": "7d", "timezone": tz}),
            json!({"cron": "30 2 29 2 *", "duration": "1m", "timezone": tz}),
        ] {
            let window = window(json);
            window.contains(now);
            window.next_edge(now);
        }
        let _ = Window::parse(&json!({"cron": text, "duration": text, "days": [text]}), "w");
    }
}
