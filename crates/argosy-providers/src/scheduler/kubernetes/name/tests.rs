use super::*;
use argosy_core::label::Labels;
use serde_json::json;

fn machine(id: &str, hostname: &str, label: &str) -> Machine {
    let labels = json!({ "kube": label });
    let labels = Labels::parse(labels.as_object().unwrap()).unwrap();
    Machine { id: id.to_owned(), hostname: hostname.to_owned(), labels }
}

/// A client that must not be used.
fn nobody() -> Client {
    let refuse = tower::service_fn(async |request: http::Request<kube::client::Body>| {
        let uri = request.uri().clone();
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other(format!("{uri}")))
    });
    Client::new(refuse, "default")
}

#[tokio::test]
async fn a_machine_has_one_name_in_kubernetes() {
    let client = nobody();
    let check = async |by: NodeName, machine: Machine, expected: Result<&str, &str>| {
        let found = Names::new(by, Clock::System).of(&machine, &client).await;
        let found = found.map_err(|error| match error {
            SchedulerError::Later(message) => format!("later: {message}"),
            SchedulerError::Refused(message) => format!("refused: {message}"),
            SchedulerError::UnknownNode(message) => format!("unknown: {message}"),
        });
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{machine:?}");
    };
    let label = || NodeName::Label("kube".to_owned());
    check(NodeName::Id, machine("n-1", "", ""), Ok("n-1")).await;
    check(NodeName::Hostname, machine("n-1", "GPU-7.Example", ""), Ok("gpu-7.example")).await;
    check(label(), machine("n-1", "", "worker-7"), Ok("worker-7")).await;
    check(
        NodeName::Hostname,
        machine("n-1", "", ""),
        Err("unknown: node `n-1` has not said its hostname"),
    )
    .await;
    check(
        label(),
        machine("n-1", "h", ""),
        Err("unknown: node `n-1` has no label `kube` with its name in Kubernetes"),
    )
    .await;
    for odd in
        ["N1", "a_b", "../pods", "a/b", "a?x=y", "a b", "-a", "a-", "a..b", ".a", "ü", "a%2f"]
    {
        let message = format!("refused: `{odd}` cannot be the name of a node in Kubernetes");
        check(NodeName::Id, machine(odd, "", ""), Err(&message)).await;
    }
    let long = "a".repeat(NAME_MAX + 1);
    let message =
        format!("refused: `{}` cannot be the name of a node in Kubernetes", "a".repeat(NAME_MAX));
    check(NodeName::Id, machine(&long, "", ""), Err(&message)).await;
}

#[test]
fn a_node_is_found_by_the_whole_id_of_the_provider_and_by_its_end() {
    let node = |name: &str, id: Option<&str>| -> Node {
        let node = json!({ "metadata": { "name": name }, "spec": { "providerID": id } });
        serde_json::from_value(node).unwrap()
    };
    let mut names = HashMap::new();
    for node in [
        node("a", Some("aws:///us-east-1a/i-0abc")),
        node("b", Some("gce://project/zone/gpu-1")),
        node("c", Some("gce://project/other/gpu-1")),
        node("d", Some("plain")),
        node("e", None),
        node("f", Some("")),
        node("g", Some("odd/")),
    ] {
        add(&mut names, &node);
    }
    let one = |name: &str| Some(Found::One(name.to_owned()));
    for (id, expected) in [
        ("aws:///us-east-1a/i-0abc", one("a")),
        ("i-0abc", one("a")),
        ("0abc", None),
        ("us-east-1a/i-0abc", None),
        ("gce://project/zone/gpu-1", one("b")),
        ("gpu-1", Some(Found::Many)),
        ("plain", one("d")),
        ("odd/", one("g")),
        ("", None),
    ] {
        assert_eq!(names.get(id), expected.as_ref(), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn r2_i27_a_clock_that_is_set_back_does_not_keep_new_nodes_unknown() {
    let clock = Clock::simulated("2030-01-01T12:00:00Z".parse().unwrap());
    let lists = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let asked = lists.clone();
    let serve = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        // The node is there from the second list on.
        let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        async move {
            let node = json!({ "metadata": { "name": "a" }, "spec": { "providerID": "i-1" } });
            let items = if first { vec![] } else { vec![node] };
            let list =
                json!({ "apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items });
            let body = kube::client::Body::from(list.to_string().into_bytes());
            Ok::<_, kube::Error>(http::Response::new(body))
        }
    });
    let client = Client::new(serve, "default");
    let names = Names::new(NodeName::ProviderId, clock);
    let find = async || names.of(&machine("i-1", "", ""), &client).await;
    assert!(matches!(find().await, Err(SchedulerError::UnknownNode(_))));
    clock.set_by(jiff::SignedDuration::from_hours(-6));
    assert!(matches!(find().await, Err(SchedulerError::UnknownNode(_))), "it was listed just now");
    tokio::time::advance(LIST_AGAIN).await;
    assert_eq!(find().await.unwrap(), "a");
    assert_eq!(lists.load(std::sync::atomic::Ordering::SeqCst), 2);
}
