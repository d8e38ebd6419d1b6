//! Our own client against our own server, over a real connection.

use crate::world::World;
use argosy_api::client::{Client, ClientError, Collection, WriteOptions};
use argosy_api::command::{CommandCreate, CommandType};
use argosy_api::node::{NodeStatus, Severity};
use argosy_api::policy::{BacktestRequest, ExplainRequest, PolicyPut, Rule};
use argosy_api::resource::{ResourceCreate, ResourcePatch, Tri, WatchKind};
use argosy_api::status::{ReportCondition, StatusReport};
use argosy_control::task::Tasks;
use argosy_core::health::HealthState;
use argosy_server::listen::{self, Limits};
use argosy_server::metrics::Metrics;
use jiff::Timestamp;
use serde_json::json;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A server at a port; dropping it cuts every connection.
struct Serving {
    _tasks: Tasks,
    _stop: watch::Sender<bool>,
}

async fn serve(world: &World, at: SocketAddr) -> (SocketAddr, Serving) {
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = Metrics::new("test", Timestamp::UNIX_EPOCH);
    let (router, (stop, shutdown)) = (world.router.clone(), watch::channel(false));
    let mut tasks = Tasks::default();
    tasks.start(
        "listen",
        listen::serve(listener, None, router, Limits::default(), metrics, shutdown),
    );
    (address, Serving { _tasks: tasks, _stop: stop })
}

fn client(address: SocketAddr) -> Client {
    let token = "admin-token-with-enough-characters".to_owned();
    Client::new(&format!("http://{address}/"), Some(token)).unwrap()
}

fn named(name: &str) -> ResourceCreate {
    let spec = json!({ "region": "us-east1" }).as_object().unwrap().clone();
    ResourceCreate { name: name.to_owned(), spec, ..ResourceCreate::default() }
}

const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[tokio::test]
async fn the_client_speaks_what_the_server_does() {
    let world = World::new().await;
    let (address, _serving) = serve(&world, ANY_PORT).await;
    let client = client(address);
    let once = WriteOptions::default();

    let cluster = client.create(Collection::Clusters, &named("here"), &once).await.unwrap();
    assert_eq!(client.get(Collection::Clusters, "here").await.unwrap(), cluster);
    let pools = Collection::NodePools(&cluster.id);
    let pool = client.create(pools, &named("workers"), &once).await.unwrap();
    assert_eq!((pool.id.as_str(), pool.cluster_id.as_ref()), ("workers", Some(&cluster.id)));
    let query = [("phase", "Pending"), ("search", "name = 'workers'")];
    let list = client.list(Collection::AllNodePools, &query).await.unwrap();
    assert_eq!((list.total, list.items.as_slice()), (1, &[pool][..]));

    let labels = json!({ "color": "red" }).as_object().cloned();
    let patch = ResourcePatch { labels, ..ResourcePatch::default() };
    let stale = WriteOptions { if_match: Some(cluster.revision + 7), ..WriteOptions::default() };
    match client.patch(Collection::Clusters, "here", &patch, &stale).await {
        Err(ClientError::Problem(problem)) => {
            assert_eq!((problem.status, problem.current_revision), (409, Some(cluster.revision)));
        }
        other => panic!("{other:?}"),
    }
    let fresh = WriteOptions { if_match: Some(cluster.revision), ..WriteOptions::default() };
    let patched = client.patch(Collection::Clusters, "here", &patch, &fresh).await.unwrap();
    assert_eq!(patched.labels["color"], "red");

    let mut report = StatusReport {
        adapter: "validation".to_owned(),
        observed_generation: patched.generation,
        conditions: ["Available", "Applied", "Health"]
            .map(|kind| ReportCondition {
                kind: kind.to_owned(),
                status: Tri::True,
                reason: String::new(),
                message: String::new(),
            })
            .into(),
        ..StatusReport::default()
    };
    let stored = client.put_status(Collection::Clusters, "here", &report).await.unwrap();
    assert_eq!(stored.unwrap().adapter, "validation");
    report.observed_generation += 1;
    assert_eq!(client.put_status(Collection::Clusters, "here", &report).await.unwrap(), None);
    let statuses = client.statuses(Collection::Clusters, "here").await.unwrap();
    assert_eq!((statuses.total, statuses.statuses.unwrap().len()), (1, 2));
    let history = client.status_history(Collection::Clusters, "here", &[]).await.unwrap();
    assert_eq!(history.items.len(), 2);

    client.delete(Collection::Clusters, "here", &once).await.unwrap();
    client.force_delete(Collection::Clusters, "here", "a test").await.unwrap();
    let gone = client.get(Collection::Clusters, &cluster.id).await.unwrap_err();
    assert_eq!(gone.status(), Some(404));
    assert!(client.verify_audit().await.unwrap().broken.is_none());
    assert_eq!(client.audit(&[("limit", "1")]).await.unwrap().items.len(), 1);
    assert_eq!(client.info().await.unwrap().version, "1.2.3");
    assert_eq!(client.catalog().await.unwrap().nodes_max, 100);
}

#[tokio::test]
async fn a_watch_survives_a_restart_of_the_server() {
    let world = World::new().await;
    let (address, serving) = serve(&world, ANY_PORT).await;
    let client = client(address);
    let create = async |name: &str| world.cluster(name).await;
    create("first").await;
    let mut watch = client.watch(Collection::Clusters, None, &[], None);
    let mut seen = async || loop {
        let event = watch.next().await.unwrap();
        if event.kind != WatchKind::Bookmark {
            return event.object.unwrap()["name"].as_str().unwrap().to_owned();
        }
    };
    assert_eq!(seen().await, "first");
    create("second").await;
    assert_eq!(seen().await, "second");
    drop(serving);
    create("third").await;
    let (_, _serving) = serve(&world, address).await;
    assert_eq!(seen().await, "third");
}

#[tokio::test]
async fn a_watch_that_is_refused_says_why() {
    let world = World::new().await;
    let (address, _serving) = serve(&world, ANY_PORT).await;
    let query = [("phase", "Nonsense")];
    let mut watch = client(address).watch(Collection::Clusters, None, &query, None);
    assert_eq!(watch.next().await.unwrap_err().status(), Some(400));
    let mut watch = client(address).watch(Collection::Clusters, None, &[], Some(999_999));
    assert_eq!(watch.next().await.unwrap_err().status(), Some(410));
}

#[tokio::test]
async fn the_client_speaks_of_the_fleet() {
    let world = World::new().await;
    world.node("gpu-1").await;
    world.node("gpu.2:b").await;
    let (address, _serving) = serve(&world, ANY_PORT).await;
    let client = client(address);
    world.report("gpu-1", HealthState::Healthy, &[79]).await;

    let list = client.nodes(&[("search", "xid = 79"), ("order", "id desc")]).await.unwrap();
    assert_eq!((list.total, list.items[0].id.as_str()), (1, "gpu-1"));
    let node = client.node("gpu-1").await.unwrap();
    assert_eq!((&node, node.status), (&list.items[0], NodeStatus::Unhealthy));
    assert_eq!(client.node("gpu.2:b").await.unwrap().status, NodeStatus::Active);
    assert_eq!(client.node("../x").await.unwrap_err().status(), Some(404));
    let findings = client.findings(&[("severity", "unhealthy")]).await.unwrap();
    assert_eq!((findings.total, &findings.items), (1, &node.findings));
    let events = client.node_events("gpu-1", &[("limit", "1")]).await.unwrap();
    assert_eq!(events.items[0].event.as_ref().unwrap().event_type, "xid");
    assert!(1 < client.node_history("gpu-1", &[]).await.unwrap().items.len());
    assert_eq!(client.why("gpu-1").await.unwrap().node_id, "gpu-1");
    assert!(client.node_metrics("gpu-1").await.unwrap().items.is_empty());

    let mut watch = client.watch_nodes(Some("gpu-1"), &[], Some(list.revision));
    let drain = CommandCreate::new(CommandType::Drain, "a fan");
    let once = WriteOptions { idempotency_key: Some("k".to_owned()), ..WriteOptions::default() };
    let command = client.create_command("gpu-1", &drain, &once).await.unwrap();
    assert_eq!(client.create_command("gpu-1", &drain, &once).await.unwrap(), command);
    assert_eq!(client.command(&command.id).await.unwrap(), command);
    assert_eq!(client.node_commands("gpu-1", &[("state", "open")]).await.unwrap().total, 1);
    assert_eq!(client.commands(&[("node", "gpu.2:b")]).await.unwrap().total, 0);
    let event = watch.next().await.unwrap();
    assert_eq!(event.object.unwrap()["status"], "DRAINING");
    let mut watch = client.watch_commands(Some(&command.id), &[], None);
    assert_eq!(watch.next().await.unwrap().object.unwrap()["state"], "pending");

    let rule = Rule {
        name: "all".to_owned(),
        description: String::new(),
        priority: 0,
        condition: "true".to_owned(),
        result: Severity::Degraded,
        lasts: None,
    };
    let policy =
        PolicyPut { pools: vec!["h100".to_owned()], rules: vec![rule], ..PolicyPut::default() };
    let put = client.put_policy("h100", &policy, &WriteOptions::default()).await.unwrap();
    assert_eq!((put.version, &put.spec), (1, &policy));
    assert_eq!(client.policy("h100").await.unwrap(), put);
    assert_eq!(client.policies().await.unwrap().items.len(), 2);
    let event = events.items[0].event.clone().unwrap();
    let asked = ExplainRequest { event, node_id: Some("gpu-1".to_owned()), policy: None };
    assert_eq!(client.explain(&asked).await.unwrap().verdict.rule, "all");
    let asked = BacktestRequest { policy, since: None };
    assert_eq!(client.backtest(&asked).await.unwrap().events, 1);
    client.delete_policy("h100").await.unwrap();

    assert_eq!(client.pause(Some("h100"), "a test").await.unwrap().pool.as_deref(), Some("h100"));
    assert_eq!(client.safety().await.unwrap().pauses.len(), 1);
    assert!(client.resume(Some("h100")).await.unwrap());
    assert!(!client.resume(None).await.unwrap());
    assert!(!client.close_breaker("pool/one/h100", "a test").await.unwrap());
    client.delete_node("gpu-1", true, Some("scrapped")).await.unwrap();
    assert_eq!(client.nodes(&[]).await.unwrap().total, 1);
}
