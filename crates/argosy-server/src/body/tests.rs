use super::*;
use futures_util::stream;
use proptest::prelude::*;
use serde_json::json;
use std::convert::Infallible;

fn refused(text: impl AsRef<[u8]>, sentence: &str) {
    let error = read_json(text.as_ref()).unwrap_err().to_string();
    assert_eq!(error, format!("the request body is not acceptable JSON: {sentence}"));
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    refused("", "it is empty");
    refused(" \n\t", "it is empty");
    refused(b"{\"a\": \"\xff\"}", "it is not UTF-8 at byte 7");
    refused("{} x", "trailing characters at line 1 column 4");
    refused("{}{}", "trailing characters at line 1 column 3");
    refused("{\"a\":\n nope}", "expected ident at line 2 column 3, in `a`");
    refused("{\"a\": NaN}", "expected value at line 1 column 7, in `a`");
    refused("{\"a\": 1e999}", "number out of range at line 1 column 11, in `a`");
    refused("{\"a\": [1, {\"b\": -}]}", "invalid number at line 1 column 18, in `a[1].b`");
    refused("{\"a\": \"\\ud800\"}", "unexpected end of hex escape at line 1 column 14, in `a`");
}

#[test]
fn j5_a_key_given_twice_is_refused_with_its_path() {
    refused("{\"a\":1,\"a\":1}", "a key is given twice at line 1 column 10, in `a`");
    refused(
        "{\"spec\":{\"l\":[{},{\"x\":1,\"\\u0078\":2}]}}",
        "a key is given twice at line 1 column 32, in `spec.l[1].x`",
    );
    // The same key in two objects is nobody's mistake.
    assert!(read_json(b"[{\"a\":1},{\"a\":1}]").is_ok());
}

#[test]
fn j5_nesting_has_a_limit() {
    assert!(read_json(nested(DEPTH_MAX).as_bytes()).is_ok());
    for depth in [DEPTH_MAX + 1, 129, 100_000] {
        let error = read_json(nested(depth).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("nested deeper than 64 levels"), "{error}");
        let objects = "{\"a\":".repeat(depth);
        let error = read_json(objects.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("nested deeper than 64 levels"), "{error}");
        assert!(error.len() < 200, "{error}");
    }
}

#[test]
fn j5_members_have_a_limit() {
    let object = |n: usize| {
        let members: Vec<String> = (0..n).map(|i| format!("\"k{i}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(read_json(object(MEMBERS_MAX).as_bytes()).is_ok());
    for text in [object(MEMBERS_MAX + 1), format!("[{}0]", "0,".repeat(1_000_000))] {
        let error = read_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("more than 10000 members and elements"), "{error}");
    }
}

#[test]
fn a_key_in_an_error_is_short_and_without_control_characters() {
    let key = format!("\\u001b[31m{}", "k".repeat(10_000));
    let error = read_json(format!("{{\"{key}\": x}}").as_bytes()).unwrap_err().to_string();
    assert!(error.len() < 200 && !error.contains('\u{1b}'), "{error}");
}

/// Any document without duplicate keys, inside the limits.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 200, 10, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..10).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..10)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read_json(&bytes);
    }

    #[test]
    fn anything_that_looks_like_json_is_answered(text in "[\\[\\]{}\",:0-9a-e.\\\\u+ -]{0,200}") {
        let ours = read_json(text.as_bytes());
        let theirs: Result<Value, _> = serde_json::from_str(&text);
        // We refuse more (duplicate keys), never less.
        prop_assert!(ours.is_err() || ours.ok() == theirs.ok());
    }

    #[test]
    fn a_valid_document_is_read_as_serde_json_reads_it(document in document()) {
        let text = document.to_string();
        prop_assert_eq!(read_json(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
    }
}

/// A body of chunks, each after a wait.
fn slowly(chunks: Vec<(u64, usize)>) -> Body {
    Body::from_stream(stream::unfold(chunks.into_iter(), |mut chunks| async {
        let (after_s, len) = chunks.next()?;
        tokio::time::sleep(Duration::from_secs(after_s)).await;
        Some((Ok::<_, Infallible>(Bytes::from(vec![b'x'; len])), chunks))
    }))
}

#[tokio::test(start_paused = true)]
async fn j2_j3_a_body_is_read_within_its_limits() {
    let read = |chunks| async { read_limited(slowly(chunks), 10).await.map(|bytes| bytes.len()) };
    assert_eq!(read(vec![]).await, Ok(0));
    assert_eq!(read(vec![(0, 4), (9, 6)]).await, Ok(10));
    assert_eq!(read(vec![(0, 4), (0, 7)]).await, Err(BodyError::TooLarge { max: 10 }));
    assert_eq!(read(vec![(0, 4), (11, 1)]).await, Err(BodyError::TooSlow(IDLE_MAX)));
    assert_eq!(read(vec![(9, 1); 4]).await, Err(BodyError::TooSlow(TOTAL_MAX)));
}

#[tokio::test]
async fn j3_an_announced_length_is_refused_before_anything_is_read() {
    let body = Body::from(vec![0; 11]);
    assert_eq!(read_limited(body, 10).await, Err(BodyError::TooLarge { max: 10 }));
    assert_eq!(read_limited(Body::from(vec![0; 10]), 10).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_a_shorter_body() {
    let chunks = [Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("reset"))];
    assert_eq!(
        read_limited(Body::from_stream(stream::iter(chunks)), 10).await,
        Err(BodyError::Broken)
    );
}

#[test]
fn numbers_keep_their_kind() {
    let text = "[0, -1, 18446744073709551615, 1.5, -0.0]";
    assert_eq!(read_json(text.as_bytes()).unwrap(), json!([0, -1, u64::MAX, 1.5, -0.0]));
}
