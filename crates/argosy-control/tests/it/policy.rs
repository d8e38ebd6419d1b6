//! Policies from the hand that writes them to the nodes they judge, and back over history.

use crate::world::{World, admin, of_team, of_tenant, user, with_adapters};
use argosy_control::policy::{Backtest, Hit};
use argosy_control::{Error, Revision, Settings, Stored};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::health::{
    CheckResult, Event, EventType, HealthReport, HealthState, Metric, Severity, System,
};
use argosy_core::name::Name;
use argosy_core::node::{Gpu, Node, Registration};
use argosy_core::policy::{Policy, PolicySpec, Rule};
use argosy_store::Txn;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

fn quiet() -> Settings {
    with_adapters(&[])
}

/// `name: condition -> result`, a line each.
fn spec(pools: &[&str], rules: &[&str]) -> PolicySpec {
    let rule = |line: &&str| {
        let (name, rest) = line.split_once(": ").unwrap();
        let (condition, result) = rest.rsplit_once(" -> ").unwrap();
        Rule {
            name: name.to_owned(),
            description: String::new(),
            priority: 0,
            condition: condition.to_owned(),
            result: severity(result),
            lasts: None,
        }
    };
    PolicySpec {
        description: String::new(),
        pools: pools.iter().map(|pool| (*pool).to_owned()).collect(),
        rules: rules.iter().map(rule).collect(),
    }
}

fn severity(word: &str) -> Severity {
    match word {
        "healthy" => Severity::Healthy,
        "degraded" => Severity::Degraded,
        "unhealthy" => Severity::Unhealthy,
        other => panic!("{other}"),
    }
}

/// Whatever happens is a warning.
const WARN: &[&str] = &["warn: true -> degraded"];
/// Whatever happens condemns.
const CONDEMN: &[&str] = &["condemn: true -> unhealthy"];

async fn put(world: &World, name: &str, spec: PolicySpec) -> Result<Stored<Policy>, Error> {
    world.control.policies.put(&admin(), name, spec, None, false).await
}

/// Registers a node with two GPUs.
async fn register(world: &World, id: &str, pool: Option<&str>, serials: [&str; 2]) {
    let gpu = |(index, serial): (i32, &str)| Gpu {
        index,
        uuid: format!("GPU-{serial}"),
        serial: serial.to_owned(),
        ..Gpu::default()
    };
    let registration = Registration {
        node_id: id.to_owned(),
        pool: pool.map(str::to_owned),
        gpus: (0..).zip(serials).map(gpu).collect(),
        ..Registration::default()
    };
    world.control.nodes.register(&admin(), registration).await.unwrap();
    let (name, state) = ("nvml".to_owned(), HealthState::Healthy);
    let result = CheckResult { name, state, message: String::new(), details: BTreeMap::new() };
    let report = HealthReport { results: vec![result], ..HealthReport::default() };
    world.control.nodes.report(&admin(), id, report).await.unwrap();
}

fn xid(code: i64, gpu_index: i32) -> Event {
    Event {
        node_time: None,
        gpu_index,
        gpu_uuid: String::new(),
        gpu_serial: String::new(),
        system: System::Driver,
        event_type: EventType::Xid,
        metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(code))]),
        message: format!("Xid {code}"),
        raw: String::new(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    }
}

async fn report(world: &World, node: &str, events: Vec<Event>) {
    let report = HealthReport { events, ..HealthReport::default() };
    world.control.nodes.report(&admin(), node, report).await.unwrap();
}

fn node(world: &World, id: &str) -> Arc<Node> {
    world.store.read(|view| view.node(id).unwrap().value.clone())
}

/// `STATE rule`.
fn health(world: &World, id: &str) -> String {
    let node = node(world, id);
    format!("{} {}", node.health.state.as_str(), node.health.reason)
}

fn errors(outcome: Result<Stored<Policy>, Error>) -> Vec<String> {
    match outcome {
        Err(Error::Invalid(errors)) => {
            errors.into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_made_changed_and_removed_each_with_its_record() {
    let world = World::with(quiet()).await;
    let policies = &world.control.policies;
    let builtin = policies.get(&user(), "default").unwrap();
    assert_eq!((builtin.value.version, builtin.revision), (0, Revision(0)));
    assert!(20 < builtin.value.spec.rules.len());

    let made = put(&world, "default", spec(&[], WARN)).await.unwrap();
    assert_eq!((made.value.version, made.value.created.by.as_str()), (1, "ann"));
    assert_eq!(policies.get(&user(), "default").unwrap().revision, made.revision);
    // The same again is no news.
    let again = put(&world, "default", spec(&[], WARN)).await.unwrap();
    assert_eq!((again.value.version, again.revision), (1, made.revision));
    world.pass(SignedDuration::from_secs(1)).await;
    let changed = put(&world, "default", spec(&[], CONDEMN)).await.unwrap();
    assert_eq!(changed.value.version, 2);
    assert!(made.revision < changed.revision);
    assert!(changed.value.created.at < changed.value.updated.at);

    put(&world, "h100", spec(&["h100"], WARN)).await.unwrap();
    let names = |caller: &Caller| {
        let listed = policies.list(caller).unwrap();
        listed.iter().map(|policy| policy.value.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&user()), ["default", "h100"]);

    policies.delete(&admin(), "default").await.unwrap();
    assert_eq!(policies.get(&user(), "default").unwrap().value.version, 0);
    assert_eq!(names(&user()), ["default", "h100"]);
    let refused = policies.delete(&admin(), "default").await;
    assert!(matches!(refused, Err(Error::Precondition(_))), "{refused:?}");
    let refused = policies.delete(&admin(), "a100").await;
    assert!(matches!(refused, Err(Error::PolicyNotFound(_))), "{refused:?}");
    assert!(matches!(policies.get(&user(), "a100"), Err(Error::PolicyNotFound(_))));

    let records = world.control.audit.list(&admin(), None, 100).await.unwrap();
    let records: Vec<String> = records
        .iter()
        .rev()
        .map(|entry| format!("{} {} {}", entry.record.action, entry.record.kind, entry.record.id))
        .collect();
    assert_eq!(
        records,
        [
            "create Policy default",
            "replace Policy default",
            "create Policy h100",
            "delete Policy default"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_compile_is_refused_and_the_old_one_stays() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    put(&world, "default", spec(&[], WARN)).await.unwrap();
    let head = world.store.read(|view| view.revision());
    let bad = spec(
        &[],
        &[
            "first: true &&\n evnt.message == '' -> degraded",
            "second: event.message.starstWith('x') -> degraded",
            "second: event.message -> degraded",
        ],
    );
    assert_eq!(
        errors(put(&world, "default", bad.clone()).await),
        [
            "rules[0].condition: line 2, column 2: unknown variable `evnt`; did you mean `event`?",
            "rules[1].condition: line 1, column 25: unknown function `starstWith`; did you mean \
             `startsWith`?",
            "rules[2].name: another rule is called `second`",
        ]
    );
    let both = errors(put(&world, "Default!", bad).await);
    assert!(both[0].starts_with("name: "), "{both:?}");
    assert_eq!(
        errors(put(&world, "h100", spec(&[], &["a: event.message -> degraded"])).await),
        [
            "pools: say which pools the policy `h100` is for; only the policy `default` is for all \
             that are left",
            "rules[0].condition: gives no answer for any kind of event: must be true or false, and \
             is of type string",
        ]
    );
    assert_eq!(world.store.read(|view| view.revision()), head, "nothing was written");
    report(&world, "a", vec![xid(31, 0)]).await;
    assert_eq!(health(&world, "a"), "DEGRADED warn");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_would_be_and_writes_nothing() {
    let world = World::with(quiet()).await;
    let policies = &world.control.policies;
    let tried = policies.put(&admin(), "default", spec(&[], WARN), None, true).await.unwrap();
    assert_eq!(tried.value.version, 1);
    let bad = spec(&[], &["a: 1 -> degraded"]);
    assert_eq!(errors(policies.put(&admin(), "default", bad, None, true).await).len(), 1);
    assert_eq!(policies.get(&user(), "default").unwrap().value.version, 0);
}

#[tokio::test(start_paused = true)]
async fn who_decides_on_an_old_version_is_told() {
    let world = World::with(quiet()).await;
    let put = async |spec, revision| {
        let policies = &world.control.policies;
        policies.put(&admin(), "default", spec, Some(Revision(revision)), false).await
    };
    let made = put(spec(&[], WARN), 0).await.unwrap();
    let refused = put(spec(&[], CONDEMN), 0).await;
    let Err(Error::Changed { expected, current }) = refused else { panic!("{refused:?}") };
    assert_eq!((expected, current), (Revision(0), made.revision));
    put(spec(&[], CONDEMN), made.revision.0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn policies_are_the_tenant_s_and_of_nobody_else() {
    let world = World::with(quiet()).await;
    put(&world, "h100", spec(&["h100"], CONDEMN)).await.unwrap();
    let policies = &world.control.policies;
    let stranger = of_tenant("globex");
    assert!(matches!(policies.get(&stranger, "h100"), Err(Error::PolicyNotFound(_))));
    assert_eq!(policies.list(&stranger).unwrap().len(), 1);
    assert!(matches!(policies.delete(&stranger, "h100").await, Err(Error::PolicyNotFound(_))));
    // Theirs may be for a pool of the same name.
    policies.put(&stranger, "mine", spec(&["h100"], WARN), None, false).await.unwrap();

    // Where teams have walls, what judges all of them is not one team's to change.
    let refused = policies.put(&of_team("alpha"), "x", spec(&["x"], WARN), None, false).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    let viewer = Caller { role: Role::Viewer, ..user() };
    assert!(policies.get(&viewer, "h100").is_ok());
    assert!(matches!(policies.delete(&viewer, "h100").await, Err(Error::Forbidden(_))));
    let agent = Caller { role: Role::Node, ..user() };
    assert!(matches!(policies.list(&agent), Err(Error::Forbidden(_))));

    let open = Settings { authorization: Authorization::None, ..quiet() };
    let world = World::with(open).await;
    let policies = &world.control.policies;
    policies.put(&user(), "h100", spec(&["h100"], WARN), None, false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pool_has_one_policy_and_other_nodes_the_default() {
    let world = World::with(quiet()).await;
    for (id, pool) in [("a", Some("h100")), ("b", Some("a100")), ("c", None)] {
        register(&world, id, pool, [id, "x"]).await;
    }
    put(&world, "strict", spec(&["h100", "h200"], CONDEMN)).await.unwrap();
    let taken = put(&world, "lax", spec(&["a100", "h200"], WARN)).await;
    assert_eq!(errors(taken), ["pools: the pool `h200` has the policy `strict`"]);
    let judged = async |what: &str| {
        for id in ["a", "b", "c"] {
            report(&world, id, vec![xid(31, 0)]).await;
        }
        let said = ["a", "b", "c"].map(|id| health(&world, id));
        assert_eq!(said.join(", "), what);
    };
    judged("UNHEALTHY condemn, HEALTHY NoFindings, HEALTHY NoFindings").await;
    put(&world, "default", spec(&[], WARN)).await.unwrap();
    judged("UNHEALTHY condemn, DEGRADED warn, DEGRADED warn").await;
    let verdict = |id| {
        let policies = &world.control.policies;
        policies.explain(&user(), Some(id), None, &xid(31, 0)).unwrap()
    };
    assert_eq!((verdict("a").policy, verdict("a").policy_version), ("strict".to_owned(), 1));
    // It is in force at once, for the next event.
    put(&world, "strict", spec(&["h200"], CONDEMN)).await.unwrap();
    assert_eq!((verdict("a").policy, verdict("a").policy_version), ("default".to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn another_process_judges_by_what_is_stored() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    let other = world.another(quiet(), "two").await;
    put(&world, "default", spec(&[], WARN)).await.unwrap();
    let head = world.store.read(|view| view.revision());
    other.until("it has seen it", |other| head <= other.store.read(|view| view.revision())).await;
    report(&other, "a", vec![xid(31, 0)]).await;
    assert_eq!(health(&other, "a"), "DEGRADED warn");
}

#[tokio::test(start_paused = true)]
async fn j13_a_rule_that_fails_makes_the_node_unknown_and_nothing_else() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    let failing = "has(event.metrics.limit) && event.metrics.limit < event.metrics.temperature";
    let rules = [format!("limit: {failing} -> unhealthy"), "default: true -> healthy".to_owned()];
    let rules = rules.each_ref().map(String::as_str);
    put(&world, "default", spec(&[], &rules)).await.unwrap();
    let mut event = xid(31, 0);
    event.metrics.insert("limit".to_owned(), Metric::Int(90));
    report(&world, "a", vec![event.clone()]).await;
    let found = node(&world, "a");
    assert_eq!(found.health.state, HealthState::Unknown);
    assert_eq!(found.health.reason, "PolicyError");
    assert!(!found.is_bad());
    assert_eq!(found.findings[0].rule, "limit");
    assert!(found.findings[0].message.contains("No such key: temperature"), "{found:?}");
    // A judgement that works ends it.
    event.metrics.insert("temperature".to_owned(), Metric::Int(80));
    report(&world, "a", vec![event]).await;
    assert_eq!(health(&world, "a"), "HEALTHY NoFindings");
}

/// Writes a policy past the service, as another build may have.
async fn smuggle(world: &World, name: &str, version: u32, spec: PolicySpec) {
    let mut policy = Policy::clone(&world.control.policies.get(&user(), "default").unwrap().value);
    policy.name = Name::parse(name).unwrap();
    (policy.version, policy.spec) = (version, spec);
    let mut txn = Txn::at(world.now());
    txn.overwrite(Arc::new(policy));
    world.store.commit(txn).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stored_policy_that_no_longer_compiles_leaves_what_was_before() {
    let world = World::with(quiet()).await;
    register(&world, "a", Some("h100"), ["1", "2"]).await;
    put(&world, "default", spec(&[], WARN)).await.unwrap();
    let policies = &world.control.policies;
    let judged_by = || {
        let verdict = policies.explain(&user(), Some("a"), None, &xid(31, 0)).unwrap();
        format!("{} {} {}", verdict.policy, verdict.policy_version, verdict.rule)
    };
    // Nothing was before: the default.
    smuggle(&world, "h100", 1, spec(&["h100"], &["future: foresee('1h') -> unhealthy"])).await;
    assert_eq!(judged_by(), "default 1 warn");
    let broken = policies.broken(&user()).unwrap();
    assert_eq!((broken.len(), broken[0].0.as_str()), (1, "h100"));
    assert_eq!(broken[0].1[0].field, "rules[0].condition");
    assert!(broken[0].1[0].message.contains("unknown function `foresee`"), "{broken:?}");
    // Somebody writes it anew, and another build changes it.
    put(&world, "h100", spec(&["h100"], CONDEMN)).await.unwrap();
    assert_eq!(judged_by(), "h100 2 condemn");
    assert!(policies.broken(&user()).unwrap().is_empty());
    smuggle(&world, "h100", 3, spec(&["h100"], &["future: foresee('1h') -> unhealthy"])).await;
    assert_eq!(judged_by(), "h100 2 condemn", "the one before stays");
    assert_eq!(policies.broken(&user()).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn explain_judges_by_the_node_s_past_or_by_a_policy_that_is_only_tried() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    register(&world, "b", None, ["1", "3"]).await;
    let policies = &world.control.policies;
    let counts = spec(&[], &["again: seen_on_serial('1h') >= 3 -> degraded"]);
    let explain = |node, spec: Option<&PolicySpec>| {
        let verdict = policies.explain(&user(), node, spec, &xid(31, 0)).unwrap();
        format!("{} {}", verdict.policy, verdict.rule)
    };
    assert_eq!(explain(None, None), "default xid-harmless");
    assert_eq!(explain(Some("a"), Some(&counts)), "tried ");
    report(&world, "a", vec![xid(31, 0)]).await;
    report(&world, "b", vec![xid(31, 0)]).await;
    assert_eq!(explain(Some("a"), Some(&counts)), "tried again", "the GPU was in both");
    assert_eq!(explain(None, Some(&counts)), "tried ");
    let missing = policies.explain(&user(), Some("nobody"), None, &xid(31, 0));
    assert!(matches!(missing, Err(Error::NodeNotFound(_))), "{missing:?}");
    let hidden = policies.explain(&of_tenant("globex"), Some("a"), None, &xid(31, 0));
    assert!(matches!(hidden, Err(Error::NodeNotFound(_))), "{hidden:?}");
    let bad = policies.explain(&user(), None, Some(&spec(&[], &["a: 1 -> degraded"])), &xid(1, 0));
    assert!(matches!(bad, Err(Error::Invalid(_))), "{bad:?}");
}

/// `node severity rule: event`, a line each.
fn lines(hits: &[Hit]) -> Vec<String> {
    let line = |hit: &Hit| format!("{} {:?} {}: {}", hit.node, hit.severity, hit.rule, hit.event);
    hits.iter().map(line).collect()
}

async fn backtest(world: &World, spec: &PolicySpec, since: Option<Timestamp>) -> Backtest {
    world.control.policies.backtest(&user(), spec, since).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_backtest_names_the_nodes_that_only_one_of_both_policies_hits() {
    let world = World::with(quiet()).await;
    for id in ["a", "b", "c", "d"] {
        register(&world, id, None, [id, "x"]).await;
    }
    let began = world.now();
    report(&world, "a", vec![xid(31, 0), xid(43, 1)]).await;
    report(&world, "b", vec![xid(79, 0)]).await;
    world.pass(SignedDuration::from_hours(1)).await;
    report(&world, "c", vec![xid(74, 0)]).await;
    report(&world, "d", vec![xid(13, 0)]).await;
    let ended = world.now();

    let strict = spec(
        &[],
        &["program: event.metrics.xid_code == 31 -> unhealthy", "link: xid.code == 74 -> degraded"],
    );
    let found = backtest(&world, &strict, None).await;
    assert_eq!((found.events, found.from, found.to), (5, Some(began), Some(ended)));
    assert_eq!(lines(&found.only_new), ["a Unhealthy program: Xid 31 on GPU 0: Xid 31"]);
    assert_eq!(lines(&found.only_current), ["b Unhealthy xid-fatal: Xid 79 on GPU 0: Xid 79"]);
    assert_eq!((found.both, found.errors.len()), (1, 0));

    // Against what is in force now, not what was then.
    put(&world, "default", strict.clone()).await.unwrap();
    let found = backtest(&world, &strict, None).await;
    assert_eq!((found.only_new.len(), found.only_current.len(), found.both), (0, 0, 2));

    let late = began + SignedDuration::from_mins(30);
    let found = backtest(&world, &strict, Some(late)).await;
    assert_eq!((found.events, found.both), (2, 1));

    let failing = spec(&[], &["fails: event.metrics.temperature > 3 -> unhealthy"]);
    let found = backtest(&world, &failing, None).await;
    assert_eq!(found.errors, [("fails: No such key: temperature".to_owned(), 5)]);
    assert_eq!(lines(&found.only_current).len(), 2);

    // What cannot be compiled cannot be tried.
    let bad = spec(&[], &["a: 1 -> degraded"]);
    let bad = world.control.policies.backtest(&user(), &bad, None).await;
    assert!(matches!(bad, Err(Error::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn a_backtest_counts_as_it_would_have_been_counted_then() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    register(&world, "b", None, ["1", "3"]).await;
    for (node, minutes) in [("a", 0), ("a", 10), ("b", 10), ("a", 100), ("b", 1)] {
        world.pass(SignedDuration::from_mins(minutes)).await;
        report(&world, node, vec![xid(31, 0)]).await;
    }
    let hits = async |condition: &str, since| {
        let spec = spec(&[], &[&format!("r: {condition} -> unhealthy")]);
        let found = backtest(&world, &spec, since).await;
        let at = |hit: &Hit| format!("{} {}", hit.node, hit.at.strftime("%H:%M"));
        found.only_new.iter().map(at).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(hits("seen_on_gpu('1h') >= 2", None).await, "a 00:10");
    assert_eq!(hits("seen_on_gpu('3h') >= 3", None).await, "a 02:00");
    assert_eq!(hits("seen_on_serial('1h') >= 3", None).await, "b 00:20");
    assert_eq!(hits("seen_on_serial('3h') >= 5", None).await, "b 02:01");
    // What came before the window is remembered, but not judged.
    let late = Some(world.now() - SignedDuration::from_mins(30));
    assert_eq!(hits("seen_on_gpu('3h') >= 2", late).await, "a 02:00, b 02:01");
}

#[tokio::test(start_paused = true)]
async fn a_backtest_is_of_the_nodes_the_policy_would_judge() {
    let world = World::with(quiet()).await;
    for (id, pool) in [("a", Some("h100")), ("b", Some("a100")), ("c", None)] {
        register(&world, id, pool, [id, "x"]).await;
        report(&world, id, vec![xid(31, 0)]).await;
    }
    let hit = async |pools: &[&str], caller: &Caller| {
        let condemn = spec(pools, CONDEMN);
        let found = world.control.policies.backtest(caller, &condemn, None).await.unwrap();
        let nodes: Vec<String> = found.only_new.iter().map(|hit| hit.node.to_string()).collect();
        nodes.join(", ")
    };
    assert_eq!(hit(&[], &user()).await, "a, b, c");
    assert_eq!(hit(&["h100"], &user()).await, "a");
    put(&world, "h100", spec(&["h100"], WARN)).await.unwrap();
    assert_eq!(hit(&[], &user()).await, "b, c");
    assert_eq!(hit(&[], &of_tenant("globex")).await, "");
}

#[tokio::test(start_paused = true)]
async fn backtests_take_turns() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    report(&world, "a", vec![xid(31, 0)]).await;
    let (caller, condemn) = (user(), spec(&[], CONDEMN));
    let run = || world.control.policies.backtest(&caller, &condemn, None);
    let (first, second) = tokio::join!(run(), run());
    assert!(first.is_ok());
    assert!(matches!(second, Err(Error::TooMany(_))), "{second:?}");
    assert!(run().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_configuration_says_what_is_there_when_nobody_wrote_anything() {
    let world = World::with(quiet()).await;
    register(&world, "a", None, ["1", "2"]).await;
    let policies = &world.control.policies;
    let head = world.store.read(|view| view.revision());
    policies.seed(spec(&[], WARN)).unwrap();
    let rule = || policies.explain(&user(), Some("a"), None, &xid(79, 0)).unwrap().rule;
    for caller in [user(), of_tenant("globex")] {
        let shown = policies.get(&caller, "default").unwrap();
        assert_eq!((shown.value.version, shown.value.spec.rules.len()), (0, 1));
    }
    assert_eq!(rule(), "warn");
    assert_eq!(world.store.read(|view| view.revision()), head, "nothing was written");
    put(&world, "default", spec(&[], CONDEMN)).await.unwrap();
    assert_eq!(rule(), "condemn");
    policies.delete(&admin(), "default").await.unwrap();
    assert_eq!(rule(), "warn");
    for bad in [spec(&[], &["a: 1 -> degraded"]), spec(&["h100"], WARN)] {
        assert!(matches!(policies.seed(bad), Err(Error::Invalid(_))));
    }
    assert_eq!(rule(), "warn", "the old one stays");
}
