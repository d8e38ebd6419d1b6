use super::*;
use argosy_core::label::Labels;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

fn status(value: Value) -> Status {
    serde_json::from_value(value).unwrap()
}

#[test]
fn only_the_api_server_can_say_that_a_node_is_not_there() {
    let said = json!({
        "reason": "NotFound", "code": 404, "message": "nodes \"n1\" not found",
        "details": { "name": "n1", "kind": "nodes" },
    });
    assert!(is_missing_node(&status(said.clone())));
    // A proxy, a wrong path, something else that is missing.
    for (pointer, value) in
        [("/reason", json!("")), ("/code", json!(403)), ("/details/kind", json!("pods"))]
    {
        let mut other = said.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        assert!(!is_missing_node(&status(other)), "{pointer}");
    }
    assert!(!is_missing_node(&status(json!({ "reason": "NotFound", "code": 404 }))));
}

#[test]
fn the_code_says_whether_to_try_again() {
    for (codes, expected) in [
        (&[408_u16, 409, 410, 429, 500, 502, 503, 504][..], "later"),
        (&[400, 401, 403, 404, 405, 415, 422], "refused"),
    ] {
        for code in codes {
            let status = Box::new(status(json!({ "code": code, "message": "because" })));
            let (kind, message) = match explain(&kube::Error::Api(status)) {
                SchedulerError::Later(message) => ("later", message),
                SchedulerError::Refused(message) => ("refused", message),
                SchedulerError::UnknownNode(message) => ("unknown", message),
            };
            assert_eq!(kind, expected, "{code}");
            assert_eq!(message, format!("Kubernetes answered {code}: because"));
        }
    }
}

#[test]
fn a_budget_is_named_and_a_busy_server_speaks_for_itself() {
    let budget = json!({
        "code": 429, "message": "Cannot evict pod.",
        "details": { "causes": [
            { "reason": "DisruptionBudget", "message": "The disruption budget b needs\n2" },
        ] },
    });
    assert_eq!(held_by(&status(budget)), "The disruption budget b needs 2");
    let busy = json!({ "code": 429, "message": "too many requests", "details": { "causes": [] } });
    assert_eq!(held_by(&status(busy)), "too many requests");
}

/// Method and path of each request, and its body.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A scheduler whose requests are all answered alike, and what was asked.
fn answering(code: u16, body: Value) -> (KubernetesScheduler, Seen) {
    let seen = Seen::default();
    let asked = seen.clone();
    let serve = tower::service_fn(move |request: Request<Body>| {
        let (asked, answer) = (asked.clone(), body.to_string().into_bytes());
        async move {
            let what = format!("{} {}", request.method(), request.uri());
            let sent = request.into_body().collect().await.unwrap().to_bytes();
            let sent = serde_json::from_slice(&sent).unwrap_or(Value::Null);
            asked.lock().unwrap().push((what, sent));
            let status = StatusCode::from_u16(code).unwrap();
            let answer = Response::builder().status(status).body(Body::from(answer));
            Ok::<_, kube::Error>(answer.unwrap())
        }
    });
    let scheduler = KubernetesScheduler {
        address: String::new(),
        client: Client::new(serve, "default"),
        names: Names::new(NodeName::Id, Clock::System),
        grace_s: Some(7),
        force: true,
        clock: Clock::System,
        places: Semaphore::new(CALLS_MAX),
    };
    (scheduler, seen)
}

fn pod() -> Left {
    let (namespace, name, uid) = ("ml".to_owned(), "db-0".to_owned(), "uid-7".to_owned());
    Left { namespace, name, uid, leaving: false }
}

#[tokio::test]
async fn only_the_very_pod_that_was_seen_is_asked_to_leave() {
    let options = json!({ "gracePeriodSeconds": 7, "preconditions": { "uid": "uid-7" } });
    let (scheduler, seen) = answering(201, json!({ "kind": "Status", "status": "Success" }));
    assert_eq!(scheduler.evict_one(&pod(), true).await, Fate::Leaving);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": { "name": "db-0" }, "deleteOptions": options,
    });
    let (what, mut sent) = seen.lock().unwrap().remove(0);
    assert_eq!(what.trim_end_matches('?'), "POST /api/v1/namespaces/ml/pods/db-0/eviction");
    let noise = sent["deleteOptions"].as_object_mut().unwrap();
    noise.retain(|key, _| key != "kind" && key != "apiVersion");
    assert_eq!(sent, eviction);

    let (scheduler, seen) = answering(200, json!({ "kind": "Status", "status": "Success" }));
    assert_eq!(scheduler.evict_one(&pod(), false).await, Fate::Leaving);
    let (what, sent) = seen.lock().unwrap().remove(0);
    assert_eq!(what.trim_end_matches('?'), "DELETE /api/v1/namespaces/ml/pods/db-0");
    assert_eq!(sent, options);
}

#[tokio::test]
async fn a_pod_is_gone_only_if_it_is_not_there() {
    for (code, expected) in [
        (404, "gone"),
        (409, "held"),
        (429, "held"),
        (403, "refused"),
        (422, "refused"),
        (500, "later"),
        (503, "later"),
    ] {
        let body = json!({ "kind": "Status", "status": "Failure", "code": code, "message": "m" });
        for gently in [true, false] {
            let (scheduler, seen) = answering(code, body.clone());
            let fate = match scheduler.evict_one(&pod(), gently).await {
                Fate::Leaving => "leaving",
                Fate::Gone => "gone",
                Fate::Held(_) => "held",
                Fate::Failed(SchedulerError::Refused(_)) => "refused",
                Fate::Failed(SchedulerError::Later(_)) => "later",
                Fate::Failed(SchedulerError::UnknownNode(_)) | Fate::Stays => "wrong",
            };
            assert_eq!(fate, expected, "{code}");
            assert_eq!(seen.lock().unwrap().len(), 1, "asked once: whoever looks asks again");
        }
    }
}

/// A file as `kubectl` has it, for an address.
fn kubeconfig(name: &str, url: &str) -> PathBuf {
    let file = json!({
        "clusters": [{ "name": "it", "cluster": { "server": url } }],
        "users": [{ "name": "it", "user": { "token": "hush" } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        "current-context": "it",
    });
    let path = std::env::temp_dir().join(format!("argosy-{name}-{}.yaml", std::process::id()));
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

async fn with_file(path: PathBuf, context: Option<&str>) -> Result<KubernetesScheduler, String> {
    let access = Access::Kubeconfig { path, context: context.map(ToOwned::to_owned) };
    let settings = KubernetesSettings { access, ..KubernetesSettings::default() };
    let clock = Clock::simulated("2030-01-01T12:00:00Z".parse().unwrap());
    KubernetesScheduler::new(settings, clock).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn credentials_that_cannot_be_read_are_a_wrong_setting() {
    let missing = with_file("/nowhere/kubeconfig".into(), None).await.err().unwrap();
    assert!(missing.starts_with("kubeconfig: ") && missing.contains("/nowhere"), "{missing}");
    let path = kubeconfig("contexts", "http://127.0.0.1:1");
    let unknown = with_file(path.clone(), Some("other")).await.err().unwrap();
    assert!(unknown.starts_with("kubeconfig: "), "{unknown}");
    with_file(path.clone(), Some("it")).await.unwrap();
    std::fs::remove_file(path).unwrap();
    // The tests do not run in a pod.
    let outside = KubernetesScheduler::new(KubernetesSettings::default(), Clock::System).await;
    assert_eq!(outside.err().unwrap().key, "in_cluster");
}

fn machine() -> Machine {
    Machine {
        id: "n1".to_owned(),
        hostname: String::new(),
        labels: Labels::default(),
        known_as: None,
    }
}

/// Asks for a drain status where the connection answers as it likes once a request comes in. Also how
/// long that took.
async fn ask<F: Future<Output = ()> + Send + 'static>(
    name: &str,
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (Result<DrainStatus, SchedulerError>, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let path = kubeconfig(name, &format!("http://{}", listener.local_addr().unwrap()));
    let kubernetes = with_file(path.clone(), None).await.unwrap();
    std::fs::remove_file(path).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 16]).await.unwrap();
        serve(stream).await;
    });
    let before = kubernetes.clock.now();
    let deadline = Timestamp::MAX;
    let drain = Drain { reason: String::new(), deadline, over: false, force: false };
    let answer = kubernetes.drain_status(&machine(), &drain).await;
    let passed = kubernetes.clock.now().duration_since(before);
    (answer, passed.as_secs().unsigned_abs())
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_given_up() {
    let (answer, passed) = ask("hangs", async |stream| {
        tokio::time::pause();
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    assert!(matches!(answer, Err(SchedulerError::Later(_))), "{answer:?}");
    assert_eq!(passed, 30, "{answer:?}");
}

#[tokio::test]
async fn an_answer_without_end_is_read_to_its_limit() {
    let (answer, _) = ask("endless", async |mut stream: TcpStream| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
        stream.write_all(head).await.unwrap();
        while stream.write_all(&[b' '; 65_536]).await.is_ok() {}
    })
    .await;
    let Err(SchedulerError::Later(message)) = answer else { panic!("{answer:?}") };
    assert!(message.contains("length limit exceeded"), "{message}");
}

#[tokio::test]
async fn nobody_listening_is_a_reason_to_try_later() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let path = kubeconfig("nobody", &format!("http://{}", listener.local_addr().unwrap()));
    drop(listener);
    let kubernetes = with_file(path.clone(), None).await.unwrap();
    std::fs::remove_file(path).unwrap();
    let Err(SchedulerError::Later(message)) = kubernetes.cordon(&machine(), "x").await else {
        panic!("a closed port may open again");
    };
    assert!(message.contains("refused") && !message.contains("hush"), "{message}");
}
