use super::*;

#[test]
fn a_name_with_parentheses_and_spaces_hides_nothing() {
    let fields: Vec<String> = (4..=21).map(|number| number.to_string()).collect();
    let stat = format!("17 (a) S 1 (b)) R {} 4242 99 0\n", fields.join(" "));
    assert_eq!(parse(&stat), Some(('R', 4242)));
    assert_eq!(parse("17 (a) R 1"), None);
    assert_eq!(parse(""), None);
}

#[test]
fn a_pid_that_is_used_again_is_not_the_same_process() {
    let own = Process::of(i32::try_from(std::process::id()).unwrap()).unwrap();
    assert!(own.lives());
    assert!(!Process { start_time: own.start_time + 1, ..own.clone() }.lives());
    assert!(!Process { host_boot: "before".to_owned(), ..own.clone() }.lives());
    // Neither is signalled, or this test would end here.
    Process { start_time: own.start_time + 1, ..own.clone() }.terminate();
    Process { host_boot: "before".to_owned(), ..own }.kill();
}
