use super::*;

#[test]
fn etags_are_revisions_in_quotes() {
    let rows = [
        ("\"42\"", Some(42)),
        ("42", None),
        ("\"\"", None),
        ("\"+4\"", None),
        ("\"4", None),
        ("W/\"4\"", None),
        ("\"99999999999999999999\"", None),
    ];
    for (tag, expected) in rows {
        assert_eq!(revision(tag), expected.map(Revision), "{tag}");
    }
}

#[test]
fn if_none_match_takes_lists_weak_tags_and_a_star() {
    let rows =
        [("\"7\"", true), ("\"6\", W/\"7\"", true), ("*", true), ("\"6\"", false), ("", false)];
    for (tags, expected) in rows {
        assert_eq!(names(&HeaderValue::from_static(tags), Revision(7)), expected, "{tags}");
    }
}
