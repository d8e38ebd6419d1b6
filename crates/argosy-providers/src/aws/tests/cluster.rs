//! DNS records, networks and checks, against moto.

use super::Bench;
use crate::aws::standin::REGION;
use argosy_control::provider::{Ask, Part, Provider};
use argosy_core::id::ResourceId;
use argosy_core::resource::{Kind, Resource};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// A cluster `prod` with a spec.
fn cluster(id: u128, spec: Value) -> Ask {
    resource(id, Kind::Cluster, "prod", spec)
}

fn resource(id: u128, kind: Kind, name: &str, spec: Value) -> Ask {
    let stamp = json!({ "at": "2026-11-15T00:00:00Z", "by": "ana" });
    let document = json!({
        "id": ResourceId::new(Uuid::from_u128(id)),
        "kind": kind,
        "name": name,
        "tenant": "default",
        "spec": spec,
        "labels": {},
        "generation": 1,
        "created": stamp,
        "updated": stamp,
        "phase_since": "2026-11-15T00:00:00Z",
    });
    let resource: Resource = serde_json::from_value(document).expect("a resource");
    let resource = Arc::new(resource);
    Ask { cluster: resource.clone(), resource }
}

fn dns(target: Option<&str>) -> Value {
    match target {
        Some(target) => json!({ "dns": { "baseDomain": "example.com", "target": target } }),
        None => json!({ "dns": { "baseDomain": "example.com" } }),
    }
}

#[tokio::test]
async fn records_are_made_once_follow_their_target_and_go() {
    let bench = Bench::new().await;
    bench.standin.create_zone("example.com").await;
    let owner = format!(
        "_argosy.prod.example.com TXT \"heritage=argosy,cluster={}\"",
        ResourceId::new(Uuid::from_u128(7))
    );
    for target in [None, Some("203.0.113.7"), Some("203.0.113.7"), Some("lb.example.net")] {
        let done = bench.aws.ensure(Part::Dns, &cluster(7, dns(target))).await.expect("records");
        assert_eq!(done.reason, "AllRecordsCreated");
        assert_eq!(done.message, "All DNS records created and verified");
        let names = json!(["api.prod.example.com", "*.apps.prod.example.com"]);
        assert_eq!(done.data["recordsCreated"], names);
        let value = match target {
            None => "TXT \"argosy: no target yet, see spec.dns.target\"".to_owned(),
            Some("lb.example.net") => "CNAME lb.example.net".to_owned(),
            Some(address) => format!("A {address}"),
        };
        let expected = [
            format!("*.apps.prod.example.com {value}"),
            owner.clone(),
            format!("api.prod.example.com {value}"),
        ];
        assert_eq!(bench.standin.records("example.com").await, expected, "{target:?}");
    }
    let ask = cluster(7, dns(Some("lb.example.net")));
    for _ in 0..2 {
        let done = bench.aws.remove(Part::Dns, &ask).await.expect("what is gone is gone");
        assert_eq!(done.reason, "RecordsRemoved");
        assert_eq!(bench.standin.records("example.com").await, [""; 0]);
    }
}

#[tokio::test]
async fn records_of_others_are_neither_changed_nor_removed() {
    let bench = Bench::new().await;
    bench.standin.create_zone("example.com").await;
    bench.aws.ensure(Part::Dns, &cluster(7, dns(None))).await.expect("records");
    let before = bench.standin.records("example.com").await;
    let another = cluster(8, dns(Some("203.0.113.9")));
    let refusal = bench.aws.ensure(Part::Dns, &another).await.expect_err("taken");
    assert_eq!(refusal.cause.reason, "DNSRecordConflict");
    bench.aws.remove(Part::Dns, &another).await.expect("it has none");
    assert_eq!(bench.standin.records("example.com").await, before);
}

#[tokio::test]
async fn a_missing_zone_is_told_in_the_words_of_the_seeds() {
    let bench = Bench::new().await;
    let refusal = bench.aws.ensure(Part::Dns, &cluster(7, dns(None))).await.expect_err("no zone");
    assert_eq!(refusal.cause.reason, "DNSZoneNotFound");
    assert_eq!(
        refusal.cause.message,
        "Route53 hosted zone not found for domain example.com. \
         Please create zone or update cluster spec."
    );
    assert!(!refusal.healthy);
    bench.aws.remove(Part::Dns, &cluster(7, dns(None))).await.expect("there is nothing");
}

#[tokio::test]
async fn domains_and_targets_that_are_none_never_reach_aws() {
    let bench = Bench::new().await;
    let rows = [
        (dns(Some("not a host")), "InvalidDNSTarget"),
        (dns(Some("a.b&type=NS")), "InvalidDNSTarget"),
        (json!({ "dns": { "baseDomain": "x.com/../?a=b" } }), "InvalidDNSDomain"),
        (json!({ "domain": "" }), "InvalidDNSDomain"),
    ];
    for (spec, reason) in rows {
        let ask = cluster(7, spec);
        let refusal = bench.aws.ensure(Part::Dns, &ask).await.expect_err("refused");
        assert_eq!(refusal.cause.reason, reason);
        bench.aws.remove(Part::Dns, &ask).await.expect("what was never made is gone");
    }
}

#[tokio::test]
async fn a_network_is_made_once_and_goes_whole() {
    let bench = Bench::new().await;
    let ask = cluster(7, json!({}));
    let first = bench.aws.ensure(Part::Infrastructure, &ask).await.expect("a network");
    let second = bench.aws.ensure(Part::Infrastructure, &ask).await.expect("the same network");
    assert_eq!(first, second);
    assert_eq!(first.reason, "InfrastructureReady");
    assert_eq!(first.data["region"], REGION);
    assert_eq!(first.data["resources"].as_array().map(Vec::len), Some(3));
    let other = bench.aws.ensure(Part::Infrastructure, &cluster(8, json!({}))).await;
    assert_eq!(bench.standin.networks().await.len(), 2, "{other:?}");
    for _ in 0..2 {
        let done = bench.aws.remove(Part::Infrastructure, &ask).await.expect("gone");
        assert_eq!(done.reason, "InfrastructureRemoved");
        assert_eq!(bench.standin.networks().await.len(), 1);
    }
}

#[tokio::test]
async fn checks_name_the_permission_that_is_missing() {
    let bench = Bench::new().await;
    bench.standin.create_zone("example.com").await;
    let ask = cluster(7, dns(None));
    let done = bench.aws.preflight(&ask).await.expect("all is well");
    assert_eq!(done.reason, "AllChecksPassed");
    assert_eq!(done.data["validationResults"]["route53ZoneFound"], true);
    let elsewhere = json!({ "dns": { "baseDomain": "example.org" } });
    let done = bench.aws.preflight(&cluster(7, elsewhere)).await.expect("the zone is only told");
    assert_eq!(done.data["validationResults"]["route53ZoneFound"], false);
    let rows = [
        ("RunInstances", "ec2:RunInstances"),
        ("CreateVpc", "ec2:CreateVpc"),
        ("ListHostedZonesByName", "route53:ListHostedZonesByName"),
    ];
    for (action, permission) in rows {
        bench.standin.trick(|tricks| tricks.denied = vec![action.to_owned()]);
        let refusal = bench.aws.preflight(&ask).await.expect_err("refused");
        assert_eq!(refusal.cause.reason, "PermissionDenied");
        assert!(refusal.cause.message.contains(permission), "{}", refusal.cause.message);
    }
    bench.standin.trick(|tricks| (tricks.denied, tricks.revoked) = (Vec::new(), true));
    let refusal = bench.aws.preflight(&ask).await.expect_err("refused");
    assert_eq!(refusal.cause.reason, "CredentialsInvalid");
}

#[tokio::test]
async fn a_pool_of_an_unknown_type_is_refused_with_the_nearest() {
    let bench = Bench::new().await;
    let pool = |kind: &str| resource(9, Kind::NodePool, "workers", json!({ "machineType": kind }));
    bench.aws.preflight(&pool("p5.48xlarge")).await.expect("it is there");
    let refusal = bench.aws.preflight(&pool("p5.48xlrge")).await.expect_err("it is not");
    assert_eq!(refusal.cause.reason, "UnknownMachineType");
    assert!(refusal.cause.message.contains("p5.48xlarge"), "{}", refusal.cause.message);
}

#[tokio::test]
async fn a_cluster_elsewhere_is_not_ours() {
    let bench = Bench::new().await;
    let ask = cluster(7, json!({ "region": "eu-west-1" }));
    let answers = [
        bench.aws.preflight(&ask).await,
        bench.aws.ensure(Part::Dns, &ask).await,
        bench.aws.ensure(Part::Infrastructure, &ask).await,
    ];
    for answer in answers {
        assert_eq!(answer.expect_err("refused").cause.reason, "InvalidRegion");
    }
}
