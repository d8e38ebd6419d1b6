use super::*;
use proptest::prelude::*;

#[track_caller]
fn scanned(text: &str, expected: Result<(), usize>) {
    assert_eq!(scan(text).map_err(|over| over.at), expected, "{text}");
}

#[test]
fn ordinary_texts_pass_the_scan() {
    scanned("", Ok(()));
    scanned("resource.spec.nodeCount - 1 > -3 && !has(resource.deleted_time)", Ok(()));
    scanned("a ? b : c ? d : e", Ok(()));
    scanned("resource.?deleted_time.hasValue()", Ok(()));
    scanned(&"a.?b.".repeat(100), Ok(()));
    scanned(")))) not our business ((", Ok(()));
}

#[test]
fn a_parse_bomb_never_reaches_the_parser_j11() {
    scanned(&"[".repeat(24), Ok(()));
    scanned(&"[".repeat(25), Err(24));
    scanned(&"(".repeat(4096), Err(24));
    scanned(&"{".repeat(4096), Err(24));
    scanned(&"f(".repeat(2000), Err(49));
    scanned(&"!".repeat(4096), Err(24));
    scanned(&"- ".repeat(2000), Err(48));
    scanned(&"!!(".repeat(1000), Err(24));
    scanned(&"a?b:".repeat(1000), Err(97));
    scanned(&" ".repeat(4097), Err(0));
}

#[test]
fn brackets_in_strings_and_comments_are_text() {
    let brackets = "(".repeat(100);
    scanned(&format!("'{brackets}' + \"{brackets}\""), Ok(()));
    scanned(&format!("'it\\'s {brackets}'"), Ok(()));
    scanned(&format!("'''it's {brackets}'''"), Ok(()));
    scanned(&format!("r'\\' + '{brackets}'"), Ok(()));
    scanned(&format!("1 // {brackets}\n+ 1"), Ok(()));
    scanned(&format!("// comment\n{brackets}"), Err(35));
    scanned(&format!("'closed' + {brackets}"), Err(35));
}

fn shape(text: &str) -> Shape {
    let program = cel::Program::compile(text).unwrap();
    measure(program.expression(), &|_| Ok(1)).unwrap()
}

#[test]
fn the_bill_grows_with_the_facts_by_nesting() {
    let cost = |text, longest| shape(text).cost(Size { longest, total: 0 });
    assert_eq!(cost("a.b == 1", 10), cost("a.b == 1", 1000));
    let once = |longest| cost("l.all(x, x > 0)", longest);
    assert!(50 * once(10) < once(1000) && once(1000) < 100 * once(10));
    let twice = |longest| cost("l.all(x, l.all(y, x > y))", longest);
    assert!(5_000 * twice(10) < twice(1000));
}

#[test]
fn sums_make_the_bill_higher() {
    let size = Size { longest: 100, total: 100_000 };
    let plain = shape("a == b").cost(size);
    assert!(20 * plain < shape("a + a + a + a == b + b + b + b").cost(size));
    let range = shape("l.all(x, x)").cost(size);
    assert!(3 * range < shape("(l + l).all(x, x)").cost(size));
}

#[test]
fn a_bill_that_does_not_fit_a_number_is_still_too_high() {
    let size = Size { longest: usize::MAX, total: usize::MAX };
    assert!(COST_MAX < shape("l.all(x, l.all(y, x + y > 0))").cost(size));
}

proptest! {
    #[test]
    fn no_text_makes_the_scan_panic(text in any::<String>(), quoted in "[()'\"r\\\\?!\\-/\n é]{0,40}") {
        let _ = scan(&text);
        let _ = scan(&quoted);
    }
}
