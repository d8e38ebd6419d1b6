use super::ResourceId;

#[test]
fn only_the_hyphenated_form_is_an_id() {
    let text = "01990000-0000-7000-8000-00000000000a";
    let id = ResourceId::parse(text).unwrap();
    assert_eq!((id.to_string(), format!("{id:?}")), (text.to_owned(), text.to_owned()));
    assert_eq!(ResourceId::new(id.uuid()), id);
    let others = [
        "",
        "my-nodepool",
        "0199000000007000800000000000000a",
        "{01990000-0000-7000-8000-00000000000a}",
        "urn:uuid:01990000-0000-7000-8000-00000000000a",
        "01990000-0000-7000-8000-00000000000g",
        "01990000-0000-7000-8000-0000000000ä",
    ];
    for other in others {
        assert_eq!(ResourceId::parse(other), None, "{other}");
    }
}

#[test]
fn ids_sort_by_when_they_were_made() {
    let early = ResourceId::parse("01990000-0000-7000-8000-000000000009").unwrap();
    let late = ResourceId::parse("01990000-0001-7000-8000-000000000001").unwrap();
    assert!(early < late);
}
