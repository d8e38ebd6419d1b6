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
