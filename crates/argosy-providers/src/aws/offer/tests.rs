use super::{Catalogue, Size, suggest};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn a_name_that_is_close_is_suggested_and_few_are_listed() {
    let check = |word: &str, names: &[&str], expected: &str| {
        assert_eq!(suggest("no".to_owned(), word, names.iter().copied()), expected);
    };
    check("us-east-1q", &["us-east-1a", "us-east-1b"], "no; did you mean us-east-1a?");
    check("mars", &["us-east-1a", "us-east-1b"], "no; it has us-east-1a, us-east-1b");
    check("mars", &[], "no");
    check("mars", &["a-long-name"; 13], "no");
}

#[test]
fn a_catalogue_knows_where_a_type_is() {
    let size = |zones: &[&str]| Size {
        cpus: 192,
        gpus: 8,
        zones: zones.iter().map(ToString::to_string).collect::<BTreeSet<_>>(),
    };
    let types = BTreeMap::from([("p5.48xlarge".to_owned(), size(&["us-east-1a", "us-east-1f"]))]);
    let catalogue = Catalogue { types };
    assert!(catalogue.has("p5.48xlarge") && !catalogue.has("p5"));
    assert!(catalogue.has_in("p5.48xlarge", "us-east-1f"));
    assert!(!catalogue.has_in("p5.48xlarge", "us-east-1b"));
    assert_eq!(catalogue.cpus("p5.48xlarge"), 192);
    assert_eq!(catalogue.cpus("unknown"), 0);
    let unknown = catalogue.unknown("p5.48xlrge", "us-east-1");
    assert_eq!(
        unknown,
        "EC2 has no machine type p5.48xlrge in us-east-1; did you mean p5.48xlarge?"
    );
}
