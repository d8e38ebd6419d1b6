use super::*;

fn grid() -> Grid {
    let column = |header, spare| Column { header, spare };
    let mut grid =
        Grid::new(&[column("GPU", 0), column("NAME", 2), column("NOTHING", 0), column("ECC", 1)]);
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
    assert_eq!(grid().render(&Screen::plain()), expected);
}

#[test]
fn a_terminal_gets_what_fits_and_the_rest_is_left_out_by_its_weight() {
    let wide = "GPU  NAME            ECC\n0    H100 80GB HBM3  0/0\n1    [31mred next    9/1\n";
    assert_eq!(grid().render(&Screen::sized(40, 24, false)), wide);
    assert_eq!(grid().render(&Screen::sized(24, 24, false)), wide, "it fits to the column");
    let narrow = "GPU  ECC\n0    0/0\n1    9/1\n";
    assert_eq!(grid().render(&Screen::sized(23, 24, false)), narrow);
    assert_eq!(grid().render(&Screen::sized(6, 24, false)), "GPU\n0\n1\n");
}

#[test]
fn colour_is_only_for_who_wants_it() {
    assert!(!grid().render(&Screen::sized(40, 24, false)).contains('\u{1b}'));
    assert!(grid().render(&Screen::sized(40, 24, true)).contains("\u{1b}["));
    assert_eq!(Screen::plain().paint("x", Paint::Bad), "x");
    assert_eq!(Screen::sized(9, 9, true).paint("x", Paint::Bad), "\u{1b}[31mx\u{1b}[0m");
}

#[test]
fn a_picture_is_cut_to_the_terminal_and_clears_what_was_there() {
    let screen = Screen::sized(40, 4, false);
    assert_eq!(
        screen.in_place("a\nb", "end"),
        "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\nend\u{1b}[K\n\u{1b}[J"
    );
    assert!(screen.in_place("a\nb\nc", "end").contains("… and 2 more lines"));
}

#[test]
fn json_has_the_same_text_and_no_terminal_acts_on_it() {
    let text = document(&["\u{1b}[2J\u{202e}ü"]);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.contains('ü'));
    let back: Vec<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, ["\u{1b}[2J\u{202e}ü"]);
}

#[test]
fn a_paragraph_is_broken_between_words() {
    let text =
        Screen::sized(30, 24, false).paragraph("  why  ", "one two three four five six seven");
    assert_eq!(text, "  why  one two three four five\n       six seven\n");
}
