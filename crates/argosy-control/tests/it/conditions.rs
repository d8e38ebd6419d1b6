//! Conditions that configured rules derive, beside core's own.

use crate::world::{Does, World, admin, cluster, object, settings, spec_patch};
use argosy_control::resource::Write;
use argosy_control::{Error, Settings};
use argosy_core::adapter::Tri;
use argosy_core::resource::Kind;
use argosy_core::status::Phase;
use argosy_policy::{ConditionRuleText, ConditionRules};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

fn with_rule(status: &str) -> Settings {
    let rule = ConditionRuleText {
        kind: "Addressed".to_owned(),
        when: "true".to_owned(),
        status: status.to_owned(),
        reason: "'Rule'".to_owned(),
        message: "string(size(statuses)) + ' reports'".to_owned(),
    };
    let rules = Arc::new(ConditionRules::compile(&[rule]).unwrap());
    Settings { conditions: BTreeMap::from([(Kind::Cluster, rules)]), ..settings() }
}

#[tokio::test(start_paused = true)]
async fn a_rule_follows_the_reports_and_costs_no_commit_of_its_own() {
    let dns_reported = "statuses.exists(s, s.adapter == 'dns' \
                        && s.conditions.exists(c, c.type == 'Available' && c.status == 'True'))";
    let world = World::with(with_rule(dns_reported)).await;
    world.cloud().when("a dns", Some(Does::Fail("DNSZoneNotFound")));
    world.cluster("a").await;
    world.until("a failure", |world| 0 < world.cloud().count("a dns@1")).await;
    let before = world.condition(cluster("a"), "Addressed").unwrap();
    assert_eq!((before.status, before.reason.as_str()), (Tri::False, "Rule"));

    world.cloud().when("a dns", None);
    world.until_phase(cluster("a"), Phase::Ready).await;
    let after = world.condition(cluster("a"), "Addressed").unwrap();
    assert_eq!((after.status, after.message.as_str()), (Tri::True, "3 reports"));
    assert!(before.last_transition_time < after.last_transition_time);
    assert_eq!(before.created_time, after.created_time);

    let head = world.store.read(|view| view.revision());
    let world = world.restart(with_rule(dns_reported)).await;
    world.until_phase(cluster("a"), Phase::Ready).await;
    assert_eq!(world.store.read(|view| view.revision()), head, "nothing has changed");
}

#[tokio::test(start_paused = true)]
async fn j13_a_rule_that_fails_is_unknown_and_stops_nothing() {
    let world = World::with(with_rule("resource.spec.nothing.there == 1")).await;
    world.cluster("a").await;
    world.until_phase(cluster("a"), Phase::Ready).await;
    let condition = world.condition(cluster("a"), "Addressed").unwrap();
    assert_eq!((condition.status, condition.reason.as_str()), (Tri::Unknown, "PolicyError"));
}

#[tokio::test(start_paused = true)]
async fn what_was_made_at_one_provider_cannot_move_to_another() {
    let world = World::new().await;
    world.cluster("a").await;
    for spec in [json!({"provider": "aws", "region": "us-east-1"}), json!({"provider": null})] {
        let patch = spec_patch(spec);
        let refused = world
            .control
            .resources
            .patch(&admin(), cluster("a"), &patch, Write::default())
            .await
            .unwrap_err();
        assert!(matches!(&refused, Error::Invalid(errors) if errors[0].field == "spec.provider"));
    }
    let spec = world.get(cluster("a")).unwrap().spec.clone();
    assert_eq!(spec.get("provider"), object(json!({"provider": "gcp"})).get("provider"));
}
