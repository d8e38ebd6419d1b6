use super::{Created, Instances, Offerings, Page, SpotPrices, SpotRequests, Statuses, Types};
use crate::aws::xml;
use argosy_core::machine::{Machine, MachineState, NoticeKind, Tags};
use serde::de::DeserializeOwned;

fn items<P: Page + DeserializeOwned>(body: &str) -> (Vec<P::Item>, Option<String>) {
    xml::read::<P>(body.as_bytes()).expect("an answer of EC2").split()
}

/// As DescribeInstances answers, with what we do not read in between.
fn instance(members: &str) -> Vec<Machine> {
    let body = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <requestId>8f7724cf-496f-496e-8fe3-example</requestId>
  <reservationSet>
    <item>
      <reservationId>r-1234567890abcdef0</reservationId>
      <ownerId>123456789012</ownerId>
      <groupSet/>
      <instancesSet>
        <item>{members}</item>
      </instancesSet>
    </item>
  </reservationSet>
</DescribeInstancesResponse>"#
    );
    let (reservations, next) = items::<Instances>(&body);
    assert_eq!(next, None);
    let instances = reservations.into_iter().flat_map(|all| all.instances.item);
    instances.filter_map(|instance| instance.machine("us-east-1")).collect()
}

#[test]
fn a_machine_is_read_with_all_that_is_known_of_it() {
    let machines = instance(
        r#"<instanceId>i-1234567890abcdef0</instanceId>
        <imageId>ami-bff32ccc</imageId>
        <instanceState><code>16</code><name>running</name></instanceState>
        <privateDnsName>ip-192-168-1-88.ec2.internal</privateDnsName>
        <dnsName/>
        <instanceType>p5.48xlarge</instanceType>
        <launchTime>2026-11-15T09:00:00.000Z</launchTime>
        <placement><availabilityZone>us-east-1d</availabilityZone><groupName/></placement>
        <privateIpAddress>192.168.1.88</privateIpAddress>
        <ipAddress>54.194.252.215</ipAddress>
        <instanceLifecycle>spot</instanceLifecycle>
        <tagSet>
          <item><key>Name</key><value>workers-0f3k9a2m</value></item>
          <item><key>argosy-installation</key><value>01900000-0000-7000-8000-000000000001</value></item>
          <item><key>argosy-instance</key><value>workers-0f3k9a2m</value></item>
          <item><key>argosy-pool</key><value>01900000-0000-7000-8000-000000000002</value></item>
          <item><key>argosy-token</key><value>01900000-0000-7000-8000-000000000003</value></item>
          <item><key>cost &amp; centre</key><value>research</value></item>
        </tagSet>"#,
    );
    let [machine] = &machines[..] else { panic!("{machines:?}") };
    assert_eq!(machine.id.as_str(), "i-1234567890abcdef0");
    assert_eq!(machine.name, "workers-0f3k9a2m");
    assert_eq!(machine.state, MachineState::Running);
    assert_eq!(machine.zone, "us-east-1d");
    assert_eq!(machine.machine_type, "p5.48xlarge");
    assert_eq!(machine.internal_ip, "192.168.1.88");
    assert_eq!(machine.external_ip, "54.194.252.215");
    assert!(machine.spot);
    assert_eq!(
        machine.created_at.map(|at| at.to_string()).as_deref(),
        Some("2026-11-15T09:00:00Z")
    );
    let Tags { installation, instance, pool, token } = &machine.tags;
    let whole = installation.is_some() && instance.is_some() && pool.is_some() && token.is_some();
    assert!(whole, "{:?}", machine.tags);
}

#[test]
fn a_machine_of_which_little_is_known_is_shown_all_the_same() {
    let machines = instance("<instanceId>i-1</instanceId>");
    let [machine] = &machines[..] else { panic!("{machines:?}") };
    assert_eq!(machine.tags, Tags::default());
    // It exists: nothing says that it is gone.
    assert_eq!(machine.state, MachineState::Running);
    assert!(instance("<imageId>ami-1</imageId>").is_empty(), "what has no id cannot be spoken of");
}

#[test]
fn tags_that_are_not_ours_to_read_are_none() {
    let machines = instance(
        "<instanceId>i-1</instanceId><tagSet>\
         <item><key>argosy-installation</key><value>nonsense</value></item>\
         <item><key>argosy-instance</key><value>Not A Name!</value></item></tagSet>",
    );
    assert_eq!(machines[0].tags, Tags::default());
}

#[test]
fn states_are_what_ec2_calls_them() {
    let rows = [
        ("pending", MachineState::Starting),
        ("running", MachineState::Running),
        ("stopping", MachineState::Stopping),
        ("shutting-down", MachineState::Stopping),
        ("stopped", MachineState::Stopped),
        ("terminated", MachineState::Gone),
        ("some-new-word", MachineState::Running),
    ];
    for (name, expected) in rows {
        let members = format!(
            "<instanceId>i-1</instanceId><instanceState><name>{name}</name></instanceState>"
        );
        assert_eq!(instance(&members)[0].state, expected, "{name}");
    }
}

#[test]
fn a_next_page_is_asked_for_only_if_there_is_one() {
    let body = |token: &str| format!("<x><reservationSet/>{token}</x>");
    let next = |token: &str| items::<Instances>(&body(token)).1;
    assert_eq!(next(""), None);
    assert_eq!(next("<nextToken/>"), None);
    assert_eq!(next("<nextToken>abc</nextToken>"), Some("abc".to_owned()));
}

#[test]
fn the_first_event_that_is_still_to_come_is_told() {
    let body = "<DescribeInstanceStatusResponse><instanceStatusSet><item>\
        <instanceId>i-1</instanceId><eventsSet>\
        <item><instanceEventId>instance-event-1</instanceEventId><code>system-reboot</code>\
        <description>[Completed] reboot</description><notBefore>2026-11-01T00:00:00.000Z</notBefore></item>\
        <item><code>instance-retirement</code><description>The hardware is degraded</description>\
        <notBefore>2026-12-01T00:00:00.000Z</notBefore></item>\
        <item><code>system-maintenance</code><description>power</description>\
        <notBefore>2026-11-20T00:00:00.000Z</notBefore><notAfter>2026-11-20T02:00:00.000Z</notAfter></item>\
        </eventsSet></item><item><instanceId>i-2</instanceId><eventsSet><item><code>system-reboot</code>\
        <description>[Canceled] reboot</description></item></eventsSet></item>\
        </instanceStatusSet></DescribeInstanceStatusResponse>";
    let (statuses, _) = items::<Statuses>(body);
    let notice = statuses[0].notice().expect("two are to come");
    assert_eq!(notice.kind, NoticeKind::Maintenance);
    assert_eq!(notice.message, "AWS has scheduled system-maintenance: power");
    assert_eq!(notice.at.map(|at| at.to_string()).as_deref(), Some("2026-11-20T00:00:00Z"));
    assert_eq!(statuses[1].notice(), None);
}

#[test]
fn only_a_spot_machine_that_is_marked_is_taken_back() {
    let body = |code: &str| {
        format!(
            "<x><spotInstanceRequestSet><item><instanceId>i-1</instanceId><status>\
             <code>{code}</code><updateTime>2026-11-15T09:00:00.000Z</updateTime>\
             <message>soon</message></status></item></spotInstanceRequestSet></x>"
        )
    };
    let notice = |code: &str| items::<SpotRequests>(&body(code)).0[0].notice();
    let marked = notice("marked-for-termination").expect("it is marked");
    assert_eq!(marked.kind, NoticeKind::Reclaim);
    assert_eq!(marked.at.map(|at| at.to_string()).as_deref(), Some("2026-11-15T09:02:00Z"));
    assert_eq!(notice("fulfilled"), None);
}

#[test]
fn types_offerings_and_prices_are_read() {
    let body = "<x><instanceTypeSet>\
        <item><instanceType>p5.48xlarge</instanceType><vCpuInfo><defaultVCpus>192</defaultVCpus>\
        <defaultCores>96</defaultCores></vCpuInfo><gpuInfo><gpus><item><name>H100</name>\
        <manufacturer>NVIDIA</manufacturer><count>8</count></item></gpus></gpuInfo></item>\
        <item><instanceType>t3.micro</instanceType><vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo></item>\
        </instanceTypeSet></x>";
    let (types, _) = items::<Types>(body);
    let read: Vec<_> =
        types.iter().map(|kind| (kind.instance_type.as_str(), kind.cpus(), kind.gpus())).collect();
    assert_eq!(read, [("p5.48xlarge", 192, 8), ("t3.micro", 2, 0)]);
    let body = "<x><instanceTypeOfferingSet><item><instanceType>p5.48xlarge</instanceType>\
        <locationType>availability-zone</locationType><location>us-east-1a</location></item>\
        </instanceTypeOfferingSet></x>";
    assert_eq!(items::<Offerings>(body).0[0].location, "us-east-1a");
    for (text, expected) in [
        ("12.5", Some(12.5)),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("cheap", None),
        ("", None),
    ] {
        let body = format!(
            "<x><spotPriceHistorySet><item><instanceType>p5.48xlarge</instanceType>\
             <spotPrice>{text}</spotPrice></item></spotPriceHistorySet></x>"
        );
        assert_eq!(items::<SpotPrices>(&body).0[0].spot_price, expected, "{text}");
    }
}

#[test]
fn what_was_made_has_an_id_or_nobody_knows_it() {
    let id = |body: &str| xml::read::<Created>(body.as_bytes()).expect("an answer").id();
    assert_eq!(id("<x><vpc><vpcId>vpc-1</vpcId></vpc></x>").as_deref(), Some("vpc-1"));
    assert_eq!(
        id("<x><subnet><subnetId>subnet-1</subnetId></subnet></x>").as_deref(),
        Some("subnet-1")
    );
    assert_eq!(id("<x><groupId>sg-1</groupId></x>").as_deref(), Some("sg-1"));
    assert_eq!(id("<x><requestId>r</requestId></x>"), None);
}
