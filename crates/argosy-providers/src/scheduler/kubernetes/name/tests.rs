use super::*;
use argosy_core::label::Labels;
use serde_json::json;

fn machine(id: &str, hostname: &str, label: &str) -> Machine {
    let labels = json!({ "kube": label });
    let labels = Labels::parse(labels.as_object().unwrap()).unwrap();
    Machine { id: id.to_owned(), hostname: hostname.to_owned(), labels, known_as: None }
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
        let name = node.metadata.name.clone().unwrap();
        add(&mut names, &name, keys(&node).map(ToOwned::to_owned).collect());
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
