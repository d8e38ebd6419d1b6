use super::syslog;

#[test]
fn only_the_kernels_tag_in_its_place_counts() {
    let check = |line: &str, expected: Option<&str>| {
        assert_eq!(syslog(line).map(|(_, message)| message), expected, "{line}");
    };
    check("Mar 29 15:38:59 host kernel: NVRM: x", Some("NVRM: x"));
    check("Mar  9 15:38:59 host kernel: [ 12.3] NVRM: x", Some("[ 12.3] NVRM: x"));
    check("2026-03-29T15:38:59.5+00:00 host kernel: NVRM: x", Some("NVRM: x"));
    check("Mar 29 15:38:59 host app[1]: a kernel: NVRM: x", None);
    check("Mar 29 15:38:59 host kernelx: NVRM: x", None);
    check("NVRM: x", None);
    check("x y kernel: NVRM: x", None);
    check("", None);
}

#[test]
fn a_time_with_a_year_is_believed() {
    let (at, _) = syslog("2026-03-29T15:38:59.5+02:00 host kernel: x").unwrap();
    assert_eq!(at.unwrap().to_string(), "2026-03-29T13:38:59.5Z");
    assert_eq!(syslog("Mar 29 15:38:59 host kernel: x").unwrap().0, None);
    assert_eq!(syslog("9999 host kernel: x").unwrap().0, None);
}
