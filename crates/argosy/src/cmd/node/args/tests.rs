use super::*;

fn filter(labels: &[&str], search: Option<&str>) -> Filter {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    Filter { labels, search: search.map(str::to_owned), ..Filter::default() }
}

#[test]
fn selectors_become_what_the_api_understands() {
    let rows: [(&[&str], Option<&str>, &str); 7] = [
        (&[], None, ""),
        (&["rack=r7"], None, "labels=rack:r7"),
        (&["rack=r7", "row==3"], None, "labels=rack:r7,row:3"),
        (&["row!=3"], None, "search=not labels.row = '3'"),
        (&[], Some("xid = 79"), "search=xid = 79"),
        (
            &["rack=r7", "row!=3"],
            Some("xid = 79 or xid = 48"),
            "labels=rack:r7&search=(xid = 79 or xid = 48) and not labels.row = '3'",
        ),
        (&["a!=b", "c!=d"], None, "search=not labels.a = 'b' and not labels.c = 'd'"),
    ];
    for (labels, search, expected) in rows {
        let query = filter(labels, search).query().unwrap();
        let text: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(text.join("&"), expected);
    }
    for bad in ["rack", "=r7", "!=r7", "a!=b' or id != '", "a=`b"] {
        assert!(filter(&[bad], None).query().is_err(), "{bad}");
    }
}

#[test]
fn words_are_sent_as_the_api_spells_them() {
    let filter = Filter {
        status: Some("unhealthy".to_owned()),
        health: Some("Degraded".to_owned()),
        liveness: Some("UNREACHABLE".to_owned()),
        ..Filter::default()
    };
    let query = filter.query().unwrap();
    let sent: Vec<&str> = query.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(sent, ["UNHEALTHY", "DEGRADED", "Unreachable"]);
    assert!(!filter.is_empty() && Filter::default().is_empty());
}
