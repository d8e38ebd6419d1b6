use super::*;
use serde_json::json;

fn grid() -> Grid {
    let mut grid = Grid::new(&["NAME", "PHASE", "MESSAGE"]);
    grid.row([
        ("alpha".to_owned(), Paint::Plain),
        ("Ready".to_owned(), Paint::Good),
        (String::new(), Paint::Plain),
    ]);
    grid.row([
        ("b".to_owned(), Paint::Plain),
        ("Not Ready".to_owned(), Paint::Busy),
        ("the quota of us-east1 is used up by somebody else".to_owned(), Paint::Plain),
    ]);
    grid
}

#[test]
fn a_piped_table_is_plain_and_whole() {
    assert_eq!(
        grid().render(&Screen::plain(), true),
        "NAME   PHASE      MESSAGE\n\
         alpha  Ready      -\n\
         b      Not Ready  the quota of us-east1 is used up by somebody else\n"
    );
    assert!(!grid().render(&Screen::plain(), false).contains("NAME"));
}

#[test]
fn a_table_fits_the_terminal_one_line_a_row() {
    for width in [30, 40, 60, 80] {
        let screen = Screen { width: Some(width), ..Screen::plain() };
        let text = grid().render(&screen, true);
        assert_eq!(text.lines().count(), 3, "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
    }
}

#[test]
fn a_wrapping_table_fits_and_cuts_nothing() {
    for width in [30, 40, 60] {
        let screen = Screen { width: Some(width), ..Screen::plain() };
        let text = grid().wrapping().render(&screen, true);
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(whole.ends_with("somebody else") && !whole.contains('…'), "{text}");
    }
}

#[test]
fn colour_is_added_only_when_wanted_and_the_word_stays() {
    let screen = Screen { colour: true, ..Screen::plain() };
    let text = grid().render(&screen, true);
    assert!(text.contains('\u{1b}') && text.contains("Ready"), "{text:?}");
    assert_eq!(screen.paint("Ready", Paint::Good), "\u{1b}[32mReady\u{1b}[0m");
    assert_eq!(Screen::plain().paint("Ready", Paint::Good), "Ready");
}

#[test]
fn nothing_in_a_name_can_move_the_cursor_or_turn_the_text() {
    let rows = [
        ("plain ü 漢", "plain ü 漢"),
        ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m"),
        ("two\nlines\r\t", "two lines  "),
        ("\u{202e}gnp.exe\u{2066}\u{200b}", "gnp.exe"),
        ("\u{9b}2Jclear", "2Jclear"),
    ];
    for (text, expected) in rows {
        assert_eq!(clean(text), expected);
    }
}

#[test]
fn documents_stay_the_same_but_cannot_act_on_a_terminal() {
    let value = json!({"name": "a\u{9b}b\u{202e}c\u{e0001}\u{1b}", "list": [1, true, null]});
    for yaml in [false, true] {
        let text = document(&value, yaml);
        assert!(
            text.chars().all(|c| c == '\n' || clean(&c.to_string()) == c.to_string()),
            "{text:?}"
        );
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text:?}");
    }
}

#[test]
fn yaml_reads_back_as_what_it_was() {
    let value = json!({"name": "yes", "spec": {"nodeCount": 3, "a": ["x", "1.0", ""]}, "n": null});
    let text = document(&value, true);
    assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text}");
}

#[test]
fn ages_are_short() {
    let rows = [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (61, "1m1s"),
        (750, "12m"),
        (3600, "1h"),
        (12_000, "3h20m"),
        (90_000, "25h"),
        (432_000, "5d"),
    ];
    for (seconds, expected) in rows {
        assert_eq!(span(SignedDuration::from_secs(seconds)), expected);
    }
    let now = Timestamp::UNIX_EPOCH;
    let later = now + SignedDuration::from_secs(5);
    assert_eq!(age(later, now), "0s");
}

#[test]
fn columns_that_say_nothing_are_left_out_where_people_read() {
    let mut grid = Grid::new(&["A", "B", "C"]);
    grid.row([
        ("1".to_owned(), Paint::Plain),
        (String::new(), Paint::Plain),
        ("3".to_owned(), Paint::Plain),
    ]);
    let (pipe, terminal) = (Screen::plain(), Screen::sized(Some(80), None));
    let (all, two) = ("A  B  C\n1  -  3\n", "A  C\n1  3\n");
    assert_eq!(grid.render(&terminal, true), all);
    let sparse = grid.clone().sparse();
    assert_eq!(
        (sparse.render(&pipe, true).as_str(), sparse.render(&terminal, true).as_str()),
        (all, two)
    );
    assert_eq!(grid.compact().render(&pipe, true), two);
    assert_eq!(Grid::new(&["A", "B"]).compact().render(&pipe, true), "A  B\n");
}

#[test]
fn a_picture_is_drawn_over_the_one_before_and_cut_to_the_screen() {
    let picture: String = (1..=10).map(|line| format!("{line}\n")).collect();
    let rows = [
        (None, 10, ""),
        (Some(12), 10, ""),
        (Some(11), 8, "… and 2 more lines"),
        (Some(5), 2, "… and 8 more lines"),
        (Some(1), 0, "… and 11 more lines"),
    ];
    for (height, shown, more) in rows {
        let mut expected: Vec<String> = (1..=shown).map(|line: u16| line.to_string()).collect();
        expected
            .extend([more, "last"].iter().filter(|line| !line.is_empty()).map(ToString::to_string));
        let expected: String = expected.iter().map(|line| format!("{line}\u{1b}[K\n")).collect();
        let text = Screen::sized(Some(80), height).in_place(&picture, "last");
        assert_eq!(text, format!("\u{1b}[H{expected}\u{1b}[J"), "{height:?}");
    }
}

#[test]
fn lines_break_between_words() {
    let rows: [(&str, usize, &[&str]); 4] = [
        ("one two three", 7, &["one two", "three"]),
        ("one two three", 100, &["one two three"]),
        ("  ", 10, &[]),
        ("GPU-0123456789 fell", 8, &["GPU-0123456789", "fell"]),
    ];
    for (text, columns, expected) in rows {
        assert_eq!(wrap(text, columns), expected);
    }
    assert_eq!(indent("a\nb\n", 2), "  a\n  b\n");
}
