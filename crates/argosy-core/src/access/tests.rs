use super::{Authorization, Decision, Role, Verb, may, may_touch};
use crate::fixture::{caller, cluster, object};
use crate::label::Labels;
use crate::resource::Resource;
use serde_json::json;

#[test]
fn each_role_may_what_it_says() {
    let rows = [
        (Role::Node, "attend"),
        (Role::Adapter, "read report"),
        (Role::Viewer, "read"),
        (Role::Operator, "read write"),
        (Role::Admin, "read write report attend force administer"),
    ];
    let verbs = [
        ("read", Verb::Read),
        ("write", Verb::Write),
        ("report", Verb::Report),
        ("attend", Verb::Attend),
        ("force", Verb::Force),
        ("administer", Verb::Administer),
    ];
    for (role, expected) in rows {
        let caller = caller(role, "acme", &[]);
        let allowed: Vec<&str> = verbs
            .iter()
            .filter(|(_, verb)| may(&caller, *verb) == Decision::Allow)
            .map(|(word, _)| *word)
            .collect();
        assert_eq!(allowed.join(" "), expected, "{role:?}");
    }
}

fn of_team(team: &str) -> Resource {
    let labels = if team.is_empty() { json!({}) } else { json!({ "team": team }) };
    Resource { labels: Labels::parse(&object(labels)).unwrap(), ..cluster(&[]) }
}

#[track_caller]
fn check(role: Role, teams: &[&str], pool: &str, owner: Option<&str>, expected: Decision) {
    let (pool, owner) = (of_team(pool), owner.map(of_team));
    let decide = |caller: &_, authorization| {
        may_touch(caller, Verb::Read, &pool, owner.as_ref(), authorization)
    };
    let friend = caller(role, "acme", teams);
    assert_eq!(decide(&friend, Authorization::Team), expected);
    assert_eq!(decide(&friend, Authorization::None), Decision::Allow);
    let stranger = caller(role, "umbrella", teams);
    assert_eq!(decide(&stranger, Authorization::Team), Decision::Hide);
    assert_eq!(decide(&stranger, Authorization::None), Decision::Hide);
}

#[test]
fn a_team_touches_its_own_and_what_is_nobodys() {
    check(Role::Operator, &["alpha"], "alpha", None, Decision::Allow);
    check(Role::Operator, &["beta", "alpha"], "alpha", None, Decision::Allow);
    check(Role::Operator, &["beta"], "alpha", None, Decision::Forbid);
    check(Role::Viewer, &[], "alpha", None, Decision::Forbid);
    check(Role::Viewer, &[], "", None, Decision::Allow);
}

#[test]
fn a_pool_is_no_way_around_its_cluster() {
    check(Role::Operator, &["beta"], "beta", Some("alpha"), Decision::Forbid);
    check(Role::Operator, &["beta"], "", Some("alpha"), Decision::Forbid);
    check(Role::Operator, &["beta"], "alpha", Some("beta"), Decision::Forbid);
    check(Role::Operator, &["beta"], "", Some("beta"), Decision::Allow);
}

#[test]
fn admins_and_adapters_serve_every_team() {
    check(Role::Admin, &[], "alpha", Some("beta"), Decision::Allow);
    check(Role::Adapter, &[], "alpha", Some("beta"), Decision::Allow);
}

#[test]
fn belonging_to_the_team_does_not_give_a_role() {
    let viewer = caller(Role::Viewer, "acme", &["alpha"]);
    let decision = may_touch(&viewer, Verb::Write, &of_team("alpha"), None, Authorization::Team);
    assert_eq!(decision, Decision::Forbid);
}
