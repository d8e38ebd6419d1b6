use super::*;

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

fn gpus() -> Grid {
    let column = |header, spare| Column { header, spare };
    let mut grid =
        Grid::of([column("GPU", 0), column("NAME", 2), column("NOTHING", 0), column("ECC", 1)])
            .sparse();
    let plain = |text: &str| (text.to_owned(), Paint::Plain);
    grid.row([plain("0"), plain("H100 80GB HBM3"), plain(""), plain("0/0")]);
    grid.row([
        plain("1"),
        plain("\u{1b}[31mred\u{202e}\nnext"),
        plain(""),
        ("9/1".into(), Paint::Bad),
    ]);
    grid
}

#[test]
fn a_pipe_gets_every_column() {
    let expected = "\
GPU  NAME            NOTHING  ECC
0    H100 80GB HBM3  -        0/0
1    [31mred next    -        9/1
";
    assert_eq!(gpus().render(&Screen::plain(), true), expected);
}

#[test]
fn a_terminal_gets_what_fits_and_the_rest_is_left_out_by_its_weight() {
    let wide = "GPU  NAME            ECC\n0    H100 80GB HBM3  0/0\n1    [31mred next    9/1\n";
    assert_eq!(gpus().render(&Screen::sized(Some(40), Some(24)), true), wide);
    assert_eq!(
        gpus().render(&Screen::sized(Some(24), Some(24)), true),
        wide,
        "it fits to the column"
    );
    let narrow = "GPU  ECC\n0    0/0\n1    9/1\n";
    assert_eq!(gpus().render(&Screen::sized(Some(23), Some(24)), true), narrow);
    assert_eq!(gpus().render(&Screen::sized(Some(6), Some(24)), true), "GPU\n0\n1\n");
}
