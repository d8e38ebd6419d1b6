use super::*;
use argosy_api::route::{Operation, ROUTES, Scope};
use jiff::Timestamp;

fn parse(text: &str) -> Result<Query, String> {
    let list = Operation::List(Scope::Clusters);
    let route = ROUTES.iter().find(|route| route.operation == list).unwrap();
    Query::parse(text, route).map_err(|fault| fault.problem("", "", Timestamp::UNIX_EPOCH).detail)
}

#[test]
fn what_is_known_is_read() {
    let query =
        parse("page=2&phase=Not%20Ready&labels=a:b&labels=c:d&watch=true&name=a+b").unwrap();
    assert_eq!(query.number::<usize>("page"), Some(2));
    assert_eq!(query.text("phase"), Some("Not Ready"));
    assert_eq!(query.all("labels").collect::<Vec<_>>(), ["a:b", "c:d"]);
    assert_eq!(query.text("name"), Some("a b"));
    assert!(query.flag("watch"));
    assert!(parse("").unwrap().text("page").is_none());
    assert!(parse("&&page=1&").is_ok());
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let rows = [
        ("phse=Ready", "Unknown query parameter 'phse'. Did you mean 'phase'?"),
        ("page=0", "Invalid page '0'. Must be an integer between 1 and 100000"),
        ("page=-1", "Invalid page '-1'. Must be an integer between 1 and 100000"),
        ("page=x", "Invalid page 'x'. Must be an integer between 1 and 100000"),
        ("size=1001", "Invalid size '1001'. Must be an integer between 1 and 1000"),
        (
            "size=99999999999999999999",
            "Invalid size '99999999999999999999'. Must be an integer \
                                        between 1 and 1000",
        ),
        ("page=1&page=1", "page is given more than once"),
        ("watch=yes", "Invalid watch 'yes'. Must be true or false"),
        ("region=", "region must not be empty"),
        ("name=%ff", "the query parameter 'name' is not percent-encoded UTF-8"),
        ("name=%4", "the query parameter 'name' is not percent-encoded UTF-8"),
        ("name=%zz", "the query parameter 'name' is not percent-encoded UTF-8"),
        ("page=0&size=0", "Invalid page '0'. Must be an integer between 1 and 100000 (and 1 more)"),
        ("kind=Node", "Invalid kind value 'Node'. Supported values: Cluster, NodePool"),
    ];
    let long = format!("search={}", "x".repeat(4097));
    assert_eq!(
        parse(&long).unwrap_err(),
        "search is too long; at most 4096 characters are allowed"
    );
    for (text, sentence) in rows {
        assert_eq!(parse(text).unwrap_err(), sentence, "{text}");
    }
}
