use super::{BODY_MAX, DEPTH_MAX, XmlError, escape, read};
use crate::aws::answer::{Instances, Nothing, Page};
use proptest::prelude::{any, prop, proptest};

fn nested(depth: usize) -> String {
    format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth))
}

#[test]
fn depth_has_a_limit() {
    assert!(read::<Nothing>(nested(DEPTH_MAX).as_bytes()).is_ok());
    for depth in [DEPTH_MAX + 1, 100_000] {
        let error = read::<Nothing>(nested(depth).as_bytes()).expect_err("too deep");
        assert!(matches!(error, XmlError::TooDeep), "{error}");
    }
}

#[test]
fn length_has_a_limit() {
    let long = vec![b' '; BODY_MAX + 1];
    assert!(matches!(read::<Nothing>(&long), Err(XmlError::TooLong)));
}

#[test]
fn a_document_that_broke_off_is_none() {
    let whole = "<DescribeInstancesResponse><reservationSet><item><instancesSet><item>\
                 <instanceId>i-1</instanceId></item></instancesSet></item></reservationSet>\
                 </DescribeInstancesResponse>";
    assert!(read::<Instances>(whole.as_bytes()).is_ok());
    for end in 0..whole.len() {
        assert!(read::<Instances>(&whole.as_bytes()[..end]).is_err(), "{}", &whole[..end]);
    }
}

#[test]
fn entities_of_its_own_are_refused() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>";
    assert!(matches!(read::<Nothing>(bomb.as_bytes()), Err(XmlError::Entities)));
    // Without a declaration nobody knows what they mean.
    assert!(read::<Instances>(b"<x><nextToken>&b;</nextToken></x>").is_err());
}

#[test]
fn what_is_not_text_or_not_one_document_is_none() {
    for body in [&b""[..], b"  ", b"\xff\xfe", b"<a/><b/>", b"{\"json\": true}", b"<a></b>"] {
        assert!(read::<Nothing>(body).is_err(), "{body:?}");
    }
}

#[test]
fn text_is_escaped_as_xml_wants_it() {
    assert_eq!(escape("\"a\" < b & 'c'"), "&quot;a&quot; &lt; b &amp; &apos;c&apos;");
}

proptest! {
    #[test]
    fn garbage_never_panics(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read::<Instances>(&body);
    }

    #[test]
    fn tags_in_any_order_never_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "<item>", "</item>", "<instancesSet>", "</instancesSet>", "<reservationSet>",
                "</reservationSet>", "<instanceId>", "</instanceId>", "<r>", "</r>", "<tagSet/>",
                "<launchTime/>", "i-1", "&amp;", "&#0;", "<![CDATA[x]]>", "<!-- -->", "<?x?>",
            ]),
            0..40,
        )
    ) {
        let body = format!("<r>{}</r>", words.concat());
        if let Ok(page) = read::<Instances>(body.as_bytes()) {
            let (reservations, _) = page.split();
            let instances = reservations.into_iter().flat_map(|all| all.instances.item);
            let _ = instances.filter_map(|instance| instance.machine("us-east-1")).count();
        }
    }
}
