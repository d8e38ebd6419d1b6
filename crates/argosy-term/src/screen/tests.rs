use super::*;

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
fn a_paragraph_is_broken_between_words() {
    let text =
        Screen::sized(Some(30), Some(24)).paragraph("  why  ", "one two three four five six seven");
    assert_eq!(text, "  why  one two three four five\n       six seven\n");
}
