use super::*;
use std::collections::BTreeSet;

#[test]
fn no_two_routes_are_the_same() {
    let places: BTreeSet<_> = ROUTES.iter().map(|route| (route.method, &route.path)).collect();
    let ids: BTreeSet<_> = ROUTES.iter().map(|route| &route.id).collect();
    assert_eq!((places.len(), ids.len()), (ROUTES.len(), ROUTES.len()));
}

#[test]
fn only_pages_are_public() {
    for route in ROUTES.iter() {
        let page = route.tag == "Service";
        assert_eq!(route.access == Access::Public, page, "{} {}", route.method, route.path);
    }
}

#[test]
fn every_name_in_a_path_is_a_parameter() {
    for route in ROUTES.iter() {
        let braces = route.path.matches('{').count();
        let named = route.parameters.iter().filter(|p| p.place == Place::Path).count();
        assert_eq!(braces, named, "{}", route.path);
    }
}

#[test]
fn what_changes_something_is_never_open_to_readers() {
    let changes = |route: &&Route| route.method != "GET" && !route.operation.asks();
    for route in ROUTES.iter().filter(changes) {
        let guarded = match route.access {
            Access::Write | Access::Report | Access::Force | Access::Administer => true,
            Access::Public | Access::Read => false,
        };
        assert!(guarded, "{} {}", route.method, route.path);
    }
}
