use super::nearest;

#[track_caller]
fn check(word: &str, candidates: &[&str], expected: Option<&str>) {
    assert_eq!(nearest(word, candidates.iter().copied()), expected, "{word}");
}

#[test]
fn a_slip_finds_its_word() {
    let regions = ["us-east1", "us-west1", "europe-west1"];
    check("us-esat1", &regions, Some("us-east1"));
    check("us-east-1", &regions, Some("us-east1"));
    check("europe-west", &regions, Some("europe-west1"));
    check("atlsa", &["atlas"], Some("atlas"));
    check("nam", &["kind", "name"], Some("name"));
    check("größe", &["große"], Some("große"));
}

#[test]
fn what_is_far_from_everything_finds_nothing() {
    check("mars-north-7", &["us-east1", "us-west1"], None);
    check("x", &["name"], None);
    check("", &["name"], None);
    check("name", &[], None);
}

#[test]
fn the_closest_wins_and_the_first_of_equals() {
    check("us-eest1", &["us-west1", "us-east1"], Some("us-west1"));
    check("us-east11", &["us-west1", "us-east1"], Some("us-east1"));
}
