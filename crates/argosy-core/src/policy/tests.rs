use super::*;
use crate::health::Lasts;
use crate::health::{Metric, System};
use std::collections::BTreeMap;

#[track_caller]
fn check(name: &str, pools: &[&str], expected: &[&str]) {
    let pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
    let spec = PolicySpec { pools, ..PolicySpec::default() };
    let errors = spec.check(&Name::parse(name).unwrap());
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.field == "pools" && error.message.contains(expected), "{error:?}");
    }
}

#[test]
fn a_policy_is_for_pools_or_is_the_default() {
    check("default", &[], &[]);
    check("h100", &["h100", "h100_spot"], &[]);
    check("default", &["h100"], &["leave pools out"]);
    check("h100", &[], &["only the policy `default`"]);
    check("h100", &["a", "b", "a"], &["`a` is named twice"]);
    check("h100", &["", "a/b"], &["`` is not", "`a/b` is not"]);
    let many: Vec<String> = (0..300).map(|i| format!("p{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    check("h100", &many, &["at most 256"]);
}

#[test]
fn a_description_has_an_end() {
    let spec = PolicySpec { description: "x".repeat(1025), ..PolicySpec::default() };
    let errors = spec.check(&Name::parse("default").unwrap());
    assert_eq!(errors[0].field, "description");
}

#[test]
fn what_a_finding_lasts_depends_on_its_badness_unless_the_rule_says() {
    let rule = |result, lasts: Option<&str>| Rule {
        name: "r".to_owned(),
        description: String::new(),
        priority: 0,
        condition: "true".to_owned(),
        result,
        lasts: lasts.map(str::to_owned),
    };
    let hours = SignedDuration::from_hours;
    for (result, lasts, expected) in [
        (Severity::Unhealthy, None, Some(Lasts::UntilReboot)),
        (Severity::Degraded, None, Some(Lasts::For(hours(1)))),
        (Severity::Healthy, None, Some(Lasts::For(hours(0)))),
        (Severity::Unhealthy, Some("12h"), Some(Lasts::For(hours(12)))),
        (Severity::Degraded, Some("reboot"), Some(Lasts::UntilReboot)),
        (Severity::Degraded, Some("90d"), Some(Lasts::For(hours(90 * 24)))),
        (Severity::Unhealthy, Some("replaced"), Some(Lasts::UntilReplaced)),
        (Severity::Degraded, Some("91d"), None),
        (Severity::Degraded, Some("0s"), None),
        (Severity::Degraded, Some("Reboot"), None),
        (Severity::Degraded, Some("soon"), None),
    ] {
        assert_eq!(rule(result, lasts).lasting().ok(), expected, "{result:?} {lasts:?}");
    }
}

#[test]
fn an_event_has_an_xid_or_an_sxid_or_neither() {
    let event = |event_type, metrics: &[(&str, Metric)]| Event {
        node_time: None,
        gpu_index: 0,
        gpu_uuid: String::new(),
        gpu_serial: String::new(),
        system: System::Unknown,
        event_type,
        metrics: metrics
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect::<BTreeMap<_, _>>(),
        message: String::new(),
        raw: String::new(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    };
    let int = Metric::Int;
    for (event_type, metrics, expected) in [
        (EventType::Xid, &[("xid_code", int(79))][..], (Some(79), None)),
        (EventType::Thermal, &[("xid_code", int(79))], (None, None)),
        (EventType::Sxid, &[("sxid_code", int(20034))], (None, Some(20034))),
        (EventType::Nvlink, &[("sxid_code", int(20034))], (None, None)),
        (EventType::Xid, &[("xid_code", int(-1))], (None, None)),
        (EventType::Xid, &[("xid_code", int(0))], (None, None)),
        (EventType::Xid, &[("xid_code", int(1 << 40))], (None, None)),
        (EventType::Xid, &[("xid_code", Metric::Text("79x".to_owned()))], (None, None)),
        (EventType::Xid, &[], (None, None)),
    ] {
        let event = event(event_type, metrics);
        assert_eq!((xid_of(&event), sxid_of(&event)), expected, "{event_type:?} {metrics:?}");
    }
}
