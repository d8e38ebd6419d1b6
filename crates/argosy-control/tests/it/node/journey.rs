//! CUJ-1, 2, 3 and 6 as they are written, and what people see of nodes.

use super::world::{agent, query, quiet, registration, results, seconds, word};
use crate::command::order;
use crate::world::{World, admin, of_team, of_tenant, user};
use argosy_control::node::{Heartbeat, NodeQuery};
use argosy_control::pulse::{Sample, Via};
use argosy_control::{Error, Settings};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::ledger::What;
use argosy_core::node::settings::{NodeSettings, PoolSettings};
use argosy_core::node::{NodeId, NodeStatus};
use argosy_core::search::Order;
use futures_util::future::join_all;
use jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};

#[tokio::test(start_paused = true)]
async fn cuj_1_a_node_registers_and_is_told_its_configuration() {
    let world = World::with(quiet()).await;
    let (node, config) = world.enrol("gpu-1").await;
    assert_eq!(node.value.status(), NodeStatus::Active);
    assert_eq!((config.heartbeat_every, config.health_every), (seconds(30), seconds(60)));
    assert_eq!(config.checks, ["boot", "nvml", "xid"]);
    let stored = world.node("gpu-1");
    assert_eq!(*stored, *node.value);
    assert_eq!((stored.gpus.len(), &*stored.place.zone), (8, "us-east1-b"));
    assert_eq!(world.state("gpu-1"), "ACTIVE/UNKNOWN/NoReport");
    assert_eq!(world.ledger("gpu-1").await, "registered status");
    let records = world.records("register").await;
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].actor.as_str(), records[0].id.as_str()), ("node-gpu-1", "gpu-1"));
    // On a stream it may be more often, because it costs less.
    let streamed = world.control.nodes.config(&agent("gpu-1"), "gpu-1", Via::Stream).unwrap();
    assert_eq!(streamed.heartbeat_every, seconds(10));
    assert_ne!(streamed.revision, config.revision);
}

#[tokio::test(start_paused = true)]
async fn cuj_1_what_is_missing_or_wrong_is_named_and_nothing_is_stored() {
    let world = World::with(quiet()).await;
    let anyone = Caller { role: Role::Node, ..user() };
    let nodes = &world.control.nodes;
    let mut said = registration("");
    let refused = nodes.register(&anyone, said.clone()).await.unwrap_err();
    assert_eq!(refused.to_string(), "node_id is required");
    said.node_id = "gpu 1".to_owned();
    assert_eq!(word(nodes.register(&anyone, said.clone()).await), "invalid node_id");
    said = registration("gpu-1");
    said.machine.hostname = "h".repeat(300);
    assert_eq!(word(nodes.register(&anyone, said).await), "invalid hostname");
    assert_eq!(word(nodes.register(&user(), registration("gpu-1")).await), "forbidden");
    assert_eq!(world.commits(), 0);
    assert_eq!(world.control.stats.registrations_refused.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn cuj_1_a_duplicate_registration_updates_the_record() {
    let world = World::with(quiet()).await;
    let (first, _) = world.enrol("gpu-1").await;
    let commits = world.commits();
    world.pass(seconds(10)).await;
    let (same, _) = world.enrol("gpu-1").await;
    assert_eq!((same.revision, world.commits()), (first.revision, commits), "nothing to write");
    let mut said = registration("gpu-1");
    said.machine.kernel_version = "6.2".to_owned();
    let (newer, _) = world.try_enrol(said).await.unwrap();
    assert!(first.revision < newer.revision);
    assert_eq!(newer.value.registered_at, first.value.registered_at);
    assert_eq!(world.node("gpu-1").machine.kernel_version, "6.2");
    assert_eq!(world.ledger("gpu-1").await, "registered status registered");
}

#[tokio::test(start_paused = true)]
async fn cuj_1_each_pool_has_its_own_configuration() {
    let slow = PoolSettings {
        heartbeat_every: SignedDuration::from_millis(90_500),
        checks: vec!["boot".to_owned()],
        ..PoolSettings::default()
    };
    let pools = BTreeMap::from([("slow".to_owned(), slow)]);
    let nodes = NodeSettings { pools, ..NodeSettings::default() };
    let world = World::with(Settings { nodes, ..quiet() }).await;
    let mut said = registration("gpu-1");
    said.labels.insert("pool".to_owned(), "slow".to_owned());
    let (node, config) = world.try_enrol(said).await.unwrap();
    assert_eq!(node.value.pool.as_deref(), Some("slow"));
    assert_eq!((config.heartbeat_every, config.checks.len()), (seconds(91), 1));
    let answer = world.beat("gpu-1").unwrap();
    assert_eq!((answer.next_s, answer.config_revision), (91, config.revision));
    let (_, other) = world.enrol("gpu-2").await;
    assert_eq!(other.heartbeat_every, seconds(30));
    // Who has no pool yet is told anew when it has one.
    let before = world.beat("gpu-2").unwrap();
    let mut said = registration("gpu-2");
    said.pool = Some("slow".to_owned());
    let (_, config) = world.try_enrol(said).await.unwrap();
    let after = world.beat("gpu-2").unwrap();
    assert_ne!(before.config_revision, after.config_revision);
    assert_eq!((after.next_s, after.config_revision), (91, config.revision));
}

#[tokio::test(start_paused = true)]
async fn cuj_1_a_thousand_nodes_register_at_once() {
    let world = World::with(quiet()).await;
    let outcomes = join_all((0..1000).map(|n| {
        let said = registration(&format!("gpu-{n}"));
        world.try_enrol(said)
    }))
    .await;
    let ids: BTreeSet<String> =
        outcomes.into_iter().map(|outcome| outcome.unwrap().0.value.id.to_string()).collect();
    assert_eq!(ids.len(), 1000);
    let page = world.control.nodes.list(&admin(), &query("status = 'ACTIVE'")).unwrap();
    assert_eq!((page.total, page.nodes.len()), (1000, 100));
    assert_eq!(world.records("register").await.len(), 1000);
    // And the same one again and again.
    let before = world.commits();
    let again = join_all((0..60).map(|n| {
        let mut said = registration("gpu-7");
        said.machine.internal_ip = format!("10.0.0.{}", n % 2);
        world.try_enrol(said)
    }))
    .await;
    assert!(again.iter().all(Result::is_ok));
    assert_eq!(world.records("register").await.len() as u64, 1000 + world.commits() - before);
}

#[tokio::test(start_paused = true)]
async fn cuj_2_a_heartbeat_is_heard_and_writes_nothing() {
    let world = World::attentive().await;
    world.enrol("gpu-1").await;
    let (before, commits) = (world.node("gpu-1"), world.commits());
    for _ in 0..20 {
        world.pass(seconds(30)).await;
        let sample = Some(Sample { cpu_percent: Some(12.5), ..Sample::default() });
        let beat = Heartbeat { node_time: Some(world.now()), sample };
        let nodes = &world.control.nodes;
        let answer = nodes.heartbeat(&agent("gpu-1"), "gpu-1", Via::Call, beat).unwrap();
        assert_eq!((answer.next_s, answer.commands_wait), (30, false));
        let live = world.live("gpu-1");
        assert_eq!(live.heard_at, Some(world.now()));
        assert_eq!(live.sample.unwrap().cpu_percent, Some(12.5));
    }
    assert_eq!(world.node("gpu-1"), before);
    assert_eq!(world.commits(), commits);
    assert_eq!(world.node("gpu-1").status(), NodeStatus::Active);
    assert_eq!(world.control.stats.heartbeats.get(), 20);
}

#[tokio::test(start_paused = true)]
async fn cuj_2_a_node_that_is_not_registered_is_told_so() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let missing = world.beat("gpu-2").unwrap_err();
    assert!(matches!(&missing, Error::NodeNotFound(node) if node == "gpu-2"), "{missing}");
    let nodes = &world.control.nodes;
    let anyone = Caller { role: Role::Node, ..user() };
    let beat = |caller: &Caller, node: &str| {
        word(nodes.heartbeat(caller, node, Via::Call, Heartbeat::default()))
    };
    assert_eq!(beat(&anyone, "../gpu-1"), "invalid node_id");
    assert_eq!(beat(&anyone, ""), "invalid node_id");
    assert_eq!(beat(&anyone, "gpu-1"), "yes");
    assert_eq!(beat(&admin(), "gpu-1"), "yes", "with authentication off everybody is");
    assert_eq!(beat(&user(), "gpu-1"), "forbidden");
    let stranger = Caller { tenant: "other".to_owned(), ..anyone };
    assert_eq!(beat(&stranger, "gpu-1"), "not found");
    assert_eq!(beat(&of_tenant("other"), "gpu-1"), "not found");
    let report = nodes.report(&stranger, "gpu-1", results("xid=U")).await;
    assert_eq!(word(report), "not found");
    assert_eq!(word(nodes.config(&stranger, "gpu-1", Via::Call)), "not found");
}

#[tokio::test(start_paused = true)]
async fn cuj_2_a_heartbeat_says_that_commands_wait_also_after_a_restart() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    world.control.commands.issue(&user(), "gpu-1", order("RUN_DIAGNOSTIC")).await.unwrap();
    world.until("the heartbeat says so", |w| w.beat("gpu-1").unwrap().commands_wait).await;
    let world = world.restart(quiet()).await;
    assert!(world.beat("gpu-1").unwrap().commands_wait);
    let nobody_fetches_it = seconds(11 * 60);
    world.pass(nobody_fetches_it).await;
    world.until("it expires", |w| !w.beat("gpu-1").unwrap().commands_wait).await;
}

#[tokio::test(start_paused = true)]
async fn cuj_3_a_healthy_node_stays_active() {
    let world = World::attentive().await;
    world.enrol("gpu-1").await;
    let answer = world.says("gpu-1", results("boot=H nvml=H xid=H")).await;
    assert_eq!((answer.status, answer.news), (NodeStatus::Active, true));
    assert_eq!(world.state("gpu-1"), "ACTIVE/HEALTHY/NoFindings");
    let node = world.node("gpu-1");
    assert_eq!(node.checks.keys().collect::<Vec<_>>(), ["boot", "nvml", "xid"]);
    assert_eq!(world.live("gpu-1").reported_at, Some(world.now()));
    // Saying it again writes nothing.
    let commits = world.commits();
    for _ in 0..10 {
        world.pass(seconds(60)).await;
        world.says("gpu-1", results("boot=H nvml=H xid=H")).await;
    }
    assert_eq!(world.commits(), commits);
    assert_eq!(world.live("gpu-1").reported_at, Some(world.now()));
}

#[tokio::test(start_paused = true)]
async fn cuj_3_an_unhealthy_node_is_unhealthy_and_recovers() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    world.says("gpu-1", results("boot=H xid=H")).await;
    world.pass(seconds(60)).await;
    let answer = world.says("gpu-1", results("boot=H xid=U")).await;
    assert_eq!(answer.status, NodeStatus::Unhealthy);
    assert_eq!(world.state("gpu-1"), "UNHEALTHY/UNHEALTHY/xid");
    let why = world.control.nodes.why(&admin(), "gpu-1").await.unwrap();
    assert!(why.summary.starts_with("gpu-1 is UNHEALTHY because check xid says"), "{why:?}");
    let kinds: Vec<_> = why.steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds[..4], ["check", "finding", "health", "status"]);
    assert!(why.steps.iter().all(|step| 0 < step.revision));
    world.pass(seconds(60)).await;
    let answer = world.says("gpu-1", results("boot=H xid=H")).await;
    assert_eq!(answer.status, NodeStatus::Active);
    let turns = world.whats("gpu-1", |what| matches!(what, What::Status { .. })).await;
    assert_eq!(turns.len(), 3);
    assert_eq!(world.node("gpu-1").flaps.recovered_at, Some(world.now()));
    assert_eq!(world.records("report-health").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn cuj_3_a_degraded_node_stays_active() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let answer = world.says("gpu-1", results("gpu=D xid=H")).await;
    assert_eq!(answer.status, NodeStatus::Active);
    assert_eq!(world.state("gpu-1"), "ACTIVE/DEGRADED/gpu");
}

#[tokio::test(start_paused = true)]
async fn cuj_3_replayed_and_reordered_reports_change_nothing() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let numbered = |sequence, text: &str| argosy_core::health::HealthReport {
        sequence: Some(sequence),
        ..results(text)
    };
    assert!(world.says("gpu-1", numbered(5, "xid=H")).await.news);
    assert!(world.says("gpu-1", numbered(6, "xid=U")).await.news);
    for late in [numbered(6, "xid=H"), numbered(5, "xid=H"), numbered(1, "xid=H")] {
        let answer = world.says("gpu-1", late).await;
        assert_eq!((answer.news, answer.status), (false, NodeStatus::Unhealthy));
    }
    assert!(world.says("gpu-1", numbered(7, "xid=H")).await.news);
    // The eighth says nothing new and is not stored; the late seventh-and-a-half is late all the same.
    assert!(world.says("gpu-1", numbered(9, "xid=H")).await.news);
    assert!(!world.says("gpu-1", numbered(8, "xid=U")).await.news);
    assert_eq!(world.state("gpu-1"), "ACTIVE/HEALTHY/NoFindings");
    assert_eq!(world.control.stats.health_reports_old.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn cuj_3_reports_of_one_node_at_once_are_all_taken_in() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let said = (0..50).map(|n| world.says("gpu-1", results(&format!("check-{n}=D"))));
    join_all(said).await;
    let node = world.node("gpu-1");
    assert_eq!((node.checks.len(), node.findings.len()), (50, 50));
}

#[tokio::test(start_paused = true)]
async fn cuj_6_many_nodes_do_not_interfere() {
    let world = World::with(quiet()).await;
    let ids: Vec<String> = (0..300).map(|n| format!("gpu-{n:03}")).collect();
    join_all(ids.iter().map(|id| world.enrol(id))).await;
    join_all(ids.iter().enumerate().map(async |(n, id)| {
        world.pass(seconds((n % 7) as i64)).await;
        world.beat(id).unwrap();
        let said = ["xid=H", "gpu=D", "xid=U"][n % 3];
        world.says(id, results(said)).await
    }))
    .await;
    let nodes = &world.control.nodes;
    for (search, count) in [
        ("", 300),
        ("status = 'ACTIVE'", 200),
        ("status = 'UNHEALTHY'", 100),
        ("health = 'DEGRADED'", 100),
        ("zone = 'us-east1-b' and health = 'HEALTHY'", 100),
        ("id = 'gpu-007'", 1),
    ] {
        assert_eq!(nodes.list(&admin(), &query(search)).unwrap().total, count, "{search}");
    }
    // A command for one is for that one.
    world.control.commands.issue(&user(), "gpu-000", order("CORDON")).await.unwrap();
    let cordoned = nodes.list(&admin(), &query("status = 'CORDONED'")).unwrap();
    assert_eq!(cordoned.nodes[0].0.value.id.as_str(), "gpu-000");
    assert_eq!(cordoned.total, 1);
    // Each has been heard when it was.
    for (n, id) in ids.iter().enumerate() {
        let heard = world.live(id).heard_at.unwrap();
        assert_eq!(world.now().duration_since(heard), seconds(6 - (n % 7) as i64), "{id}");
        assert_eq!(world.ledger(id).await.matches("registered").count(), 1);
    }
    let mut seen = Vec::new();
    nodes.each(&admin(), &mut |node, _| seen.push(node.value.id.to_string())).unwrap();
    assert_eq!(seen, ids);
}

#[tokio::test(start_paused = true)]
async fn cuj_6_a_list_is_ordered_and_read_page_by_page() {
    let world = World::with(quiet()).await;
    for id in ["c", "a", "d", "b", "e"] {
        world.enrol(id).await;
        world.pass(seconds(1)).await;
    }
    let page = |order: &str, skip, limit| {
        let order = Order::parse(order).unwrap();
        let query = NodeQuery { order, skip, limit, ..query("") };
        let page = world.control.nodes.list(&admin(), &query).unwrap();
        assert_eq!(page.total, 5);
        page.nodes.iter().map(|(node, _)| node.value.id.to_string()).collect::<String>()
    };
    assert_eq!(page("id asc", 0, 100), "abcde");
    assert_eq!(page("id desc", 0, 2), "ed");
    assert_eq!(page("id desc", 2, 2), "cb");
    assert_eq!(page("registered_at asc", 1, 3), "adb");
    assert_eq!(page("id asc", 5, 3), "");
    assert_eq!(page("id asc", usize::MAX, usize::MAX), "");
}

#[tokio::test(start_paused = true)]
async fn people_see_the_nodes_of_their_tenant_and_team() {
    let world = World::with(quiet()).await;
    world.enrol("shared").await;
    let alpha = Caller { teams: vec!["alpha".to_owned()], ..agent("theirs") };
    world.control.nodes.register(&alpha, registration("theirs")).await.unwrap();
    let nodes = &world.control.nodes;
    let seen = |caller: &Caller| {
        let page = nodes.list(caller, &query("")).unwrap();
        page.nodes.iter().map(|(node, _)| node.value.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&admin()), ["shared", "theirs"]);
    assert_eq!(seen(&of_team("alpha")), ["shared", "theirs"]);
    assert_eq!(seen(&of_team("beta")), ["shared"]);
    assert!(seen(&of_tenant("other")).is_empty());
    for (caller, sees) in [
        (of_team("alpha"), "yes"),
        (of_team("beta"), "forbidden"),
        (of_tenant("other"), "not found"),
        (agent("theirs"), "forbidden"),
    ] {
        assert_eq!(word(nodes.get(&caller, "theirs")), sees, "{caller:?}");
        assert_eq!(word(nodes.why(&caller, "theirs").await), sees);
        assert_eq!(word(nodes.ledger(&caller, "theirs", None, 1, |_| true).await), sees);
    }
    assert_eq!(word(nodes.list(&agent("theirs"), &query(""))), "forbidden");
    let open = Settings { authorization: Authorization::None, ..quiet() };
    let world = world.restart(open).await;
    assert_eq!(word(world.control.nodes.get(&of_team("beta"), "theirs")), "yes");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_can_be_forgotten_and_come_back_new() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    world.says("gpu-1", results("xid=U")).await;
    let nodes = &world.control.nodes;
    let id = NodeId::parse("gpu-1").unwrap();
    let forget = async |caller: &Caller, force| {
        word(nodes.forget(caller, &id, force, Some("sold".to_owned())).await)
    };
    assert_eq!(forget(&user(), false).await, "precondition");
    assert_eq!(forget(&user(), true).await, "forbidden");
    assert_eq!(forget(&of_tenant("other"), true).await, "not found");
    assert_eq!(forget(&agent("gpu-1"), false).await, "forbidden");
    world.control.commands.issue(&user(), "gpu-1", order("TERMINATE")).await.unwrap();
    assert_eq!(forget(&user(), false).await, "yes");
    assert_eq!(forget(&user(), false).await, "not found");
    assert_eq!(word(world.beat("gpu-1")), "not found");
    let record = &world.records("forget").await[0];
    assert_eq!((record.reason.as_deref(), record.after.as_deref()), (Some("sold"), None));
    world.pass(seconds(5)).await;
    world.enrol("gpu-1").await;
    assert_eq!(world.state("gpu-1"), "ACTIVE/UNKNOWN/NoReport");
    assert_eq!(world.ledger("gpu-1").await, "registered status", "another life");
    world.enrol("gpu-2").await;
    let second = NodeId::parse("gpu-2").unwrap();
    nodes.forget(&admin(), &second, true, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_another_process_forgot_is_forgotten_here() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let other = world.another(quiet(), "two").await;
    assert_eq!(word(other.beat("gpu-1")), "yes");
    let id = NodeId::parse("gpu-1").unwrap();
    world.control.nodes.forget(&admin(), &id, true, None).await.unwrap();
    other.until("it is forgotten", |other| other.beat("gpu-1").is_err()).await;
    assert_eq!(word(other.beat("gpu-1")), "not found");
}

#[tokio::test(start_paused = true)]
async fn a_large_fleet_is_told_to_be_slower() {
    let mut settings = quiet();
    settings.nodes.fleet.heartbeats_per_second = 1;
    let world = World::with(settings).await;
    world.enrol("gpu-0").await;
    assert_eq!(world.beat("gpu-0").unwrap().next_s, 30);
    join_all((1..50).map(async |n| world.enrol(&format!("gpu-{n}")).await)).await;
    world.until("the board knows", |w| w.beat("gpu-0").unwrap().next_s == 51).await;
    let config = world.control.nodes.config(&agent("gpu-0"), "gpu-0", Via::Call).unwrap();
    assert_eq!(config.heartbeat_every, seconds(51));
    assert_eq!(config.revision, world.beat("gpu-0").unwrap().config_revision);
}
