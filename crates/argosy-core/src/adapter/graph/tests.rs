use super::{AdapterGraph, Runner};
use crate::fixture::adapters;
use crate::resource::Kind;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The order of the adapters of a cluster, or what is wrong with them. All are external but the
/// known ones.
fn order(text: &str) -> String {
    let mut specs = adapters(text);
    for spec in &mut specs {
        if !["validation", "dns", "infrastructure", "machines"].contains(&spec.name.as_str()) {
            spec.runner = Runner::External;
        }
    }
    match AdapterGraph::new(BTreeMap::from([(Kind::Cluster, specs)])) {
        Ok(graph) => {
            let names: Vec<&str> =
                graph.of(Kind::Cluster).iter().map(|spec| spec.name.as_str()).collect();
            names.join(" ")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn dependencies_come_first_and_the_rest_stays_as_given() {
    assert_eq!(order(""), "");
    assert_eq!(order("c b a"), "c b a");
    assert_eq!(
        order("infrastructure<dns dns<validation validation"),
        "validation dns infrastructure"
    );
    assert_eq!(order("d<b,c c<a b<a a e"), "a c b d e");
    assert_eq!(order("metrics? dns<metrics"), "metrics dns");
}

#[test]
fn a_circle_is_named() {
    let wrong = |who, path| {
        format!(
            "adapter `{who}` of Cluster: waits for itself: {path}; remove one of these dependencies"
        )
    };
    assert_eq!(order("a<b b<a"), wrong("a", "a -> b -> a"));
    assert_eq!(order("x a<a"), wrong("a", "a -> a"));
    assert_eq!(order("in<a a<b b<c c<a"), wrong("a", "a -> b -> c -> a"));
}

#[test]
fn what_is_not_defined_is_answered_with_what_is() {
    assert_eq!(
        order("validation dns<valdation"),
        "adapter `dns` of Cluster: depends on `valdation`, which is not defined; did you mean \
         `validation`?"
    );
    assert_eq!(
        order("dns<quota"),
        "adapter `dns` of Cluster: depends on `quota`, which is not defined"
    );
    assert_eq!(
        order("machines"),
        "adapter `machines` of Cluster: there is no such built-in adapter; the built-in ones are \
         validation, dns, infrastructure; anything else needs a webhook, or runs elsewhere as an \
         external adapter"
    );
}

#[test]
fn names_are_told_apart() {
    assert_eq!(
        order("dns validation dns"),
        "adapter `dns` of Cluster: is given twice; give each adapter once"
    );
    assert_eq!(
        order("a-b a--b"),
        "adapter `a--b` of Cluster: has the same condition ABSuccessful as `a-b`; rename one of them"
    );
}

#[test]
fn the_default_graph_is_a_checked_one() {
    let graph = AdapterGraph::default();
    assert_eq!(AdapterGraph::new(graph.kinds.clone()), Ok(graph.clone()));
    for kind in Kind::ALL {
        let names: Vec<&str> = graph.of(kind).iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, super::built_in(kind));
        assert!(graph.of(kind).iter().all(|spec| spec.required));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_graph_is_put_in_order_or_has_a_circle(edges in proptest::collection::vec((0..6, 0..6), 0..9)) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let after = |place: i32| -> Vec<&str> {
            edges.iter().filter(|(from, _)| *from == place).map(|(_, to)| names[*to as usize]).collect()
        };
        let words: Vec<String> = (0_i32..)
            .zip(names)
            .map(|(place, name)| format!("{name}<{}", after(place).join(",")))
            .collect();
        let answer = order(&words.join(" "));
        let steps = |from: &str, to: &str| {
            edges.iter().any(|(a, b)| names[*a as usize] == from && names[*b as usize] == to)
        };
        if let Some((_, circle)) = answer.split_once("waits for itself: ") {
            let circle: Vec<&str> = circle.split(';').next().unwrap().split(" -> ").collect();
            prop_assert_eq!(circle.first(), circle.last());
            prop_assert!(circle.windows(2).all(|step| steps(step[0], step[1])), "{answer}");
        } else {
            let place = |name: &str| answer.split(' ').position(|other| other == name).unwrap();
            for (from, to) in &edges {
                prop_assert!(place(names[*to as usize]) < place(names[*from as usize]), "{answer}");
            }
        }
    }
}
