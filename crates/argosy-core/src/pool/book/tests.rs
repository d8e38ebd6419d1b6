use super::*;
use crate::fixture::{at, cluster};
use crate::pool::fixture::{exhausted, order, quota};

fn book() -> PoolBook {
    PoolBook::new(cluster(&[]).id)
}

#[test]
fn a_place_is_left_alone_for_longer_each_time_but_never_for_ever() {
    let (mut book, mut now, mut most) = (book(), at(0), BACKOFF_FIRST);
    for _ in 0..16 {
        book = failed(&book, &order(), 1, &exhausted(), now);
        let until = book.places.values().next().unwrap().until;
        let wait = until.duration_since(now);
        assert!(most * 4 / 5 <= wait && wait <= most, "{wait} of {most}");
        (now, most) = (until, (most * 2).min(BACKOFF_MAX));
    }
    assert_eq!(most, BACKOFF_MAX);
    let book = bought(&book, &order()).unwrap();
    assert!(book.places.is_empty());
    assert_eq!(bought(&book, &order()), None);
}

#[test]
fn failures_of_one_round_are_one_and_the_first_number_is_named() {
    let mut book = book();
    for number in [4, 3, 5] {
        book = failed(&book, &order(), number, &quota(), at(0));
    }
    let backoff = book.places.values().next().unwrap();
    assert_eq!((backoff.failures, backoff.number), (1, 3));
}

#[test]
fn what_says_nothing_of_the_place_is_not_held_against_it() {
    let text = || "x".to_owned();
    for trouble in [
        Trouble::Unsure(text()),
        Trouble::Throttled { retry_after_s: Some(3), message: text() },
        Trouble::Unreachable(text()),
    ] {
        assert_eq!(failed(&book(), &order(), 1, &trouble, at(0)), book(), "{trouble:?}");
    }
}

#[test]
fn no_more_places_are_remembered_than_there_is_room_for() {
    let mut book = book();
    for nth in 0..=PLACES_MAX {
        let order = Order { zone: format!("z{nth}"), ..order() };
        let now = at(i64::try_from(nth).unwrap());
        book = failed(&book, &order, 1, &exhausted(), now);
    }
    assert_eq!(book.places.len(), PLACES_MAX);
    let last = Place::of(&Order { zone: format!("z{PLACES_MAX}"), ..order() }).key();
    assert!(book.places.contains_key(&last));
}

#[test]
fn the_last_line_of_a_console_is_shown_and_cannot_harm() {
    let stale_with = |console: &str| {
        let instance = crate::pool::fixture::one("w-1", 1, None, "coming", 0).instance;
        let book = PoolBook { stale_in_a_row: 2, ..book() };
        stale(&book, &instance, console, "image", at(0)).paused.unwrap()
    };
    let paused = stale_with("first\n\u{1b}[31mlast  \n \n");
    assert_eq!(
        (paused.reason.as_str(), paused.made_from.as_str()),
        (REGISTRATION_UNHEALTHY, "image")
    );
    assert!(
        paused.message.ends_with("Its console ends with: \\u{1b}[31mlast"),
        "{}",
        paused.message
    );
    assert!(stale_with("").message.ends_with("w-1 never registered."));
    assert!(stale_with(&"x".repeat(10_000)).message.len() < 500);
}

#[test]
fn a_book_is_read_as_it_was_written() {
    let mut book = failed(&book(), &order(), 1, &quota(), at(0));
    book.ordered = 7;
    let text = serde_json::to_string(&book).unwrap();
    assert_eq!(serde_json::from_str::<PoolBook>(&text).unwrap(), book);
}
