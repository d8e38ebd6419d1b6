use super::*;

fn parse(yaml: &str) -> WorkloadSystem {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"))
}

#[test]
fn r2_n37_what_does_not_fit_together_is_said() {
    let rows = [
        ("{}", ""),
        ("slurm: {}", ""),
        ("webhook: { drain_url: 'https://a/x', uncordon_url: 'https://a/y' }", ""),
        // N37: the other half is never told.
        (
            "webhook: { cordon_url: 'https://a/x' }",
            "webhook.uncordon_url: it is not given, but cordon_url",
        ),
        (
            "webhook: { drain_url: 'https://a/x' }",
            "webhook.uncordon_url: it is not given, but drain_url",
        ),
        ("webhook: { uncordon_url: 'https://a/x' }", "webhook.cordon_url: it is not given"),
        ("webhook: {}", "workload_system.webhook: it has no address"),
        ("webhook: { drain_url: 'ftp://a' }", "webhook.drain_url: it must start with https://"),
        ("webhook: { drain_url: 'https://a', timeout: 11s }", "timeout: 11s is not between"),
        ("webhook: { drain_url: 'https://a', timeout: 0s }", "timeout: 0s is not between"),
        (
            "webhook: { drain_url: 'https://a', secret: { file: a, env: B } }",
            "secret: give file or env, not both",
        ),
        ("kubernetes: { in_cluster: true }", ""),
        ("kubernetes: { kubeconfig: /a, context: east, node: hostname }", ""),
        ("kubernetes: { kubeconfig: /a, node: label, name_label: kube }", ""),
        ("kubernetes: {}", "give exactly one of in_cluster and kubeconfig"),
        ("kubernetes: { in_cluster: true, kubeconfig: /a }", "give exactly one of"),
        ("kubernetes: { in_cluster: true, context: a }", "context: only a kubeconfig"),
        ("kubernetes: { in_cluster: true, node: label }", "name_label: `node: label` needs"),
        ("kubernetes: { in_cluster: true, name_label: x }", "name_label: only `node: label`"),
    ];
    for (yaml, expected) in rows {
        let found = parse(yaml).complaints();
        match expected {
            "" => assert_eq!(found, Vec::<String>::new(), "{yaml}"),
            expected => {
                assert!(found.iter().any(|one| one.contains(expected)), "{yaml}: {found:?}")
            }
        }
    }
}

#[test]
fn each_system_that_is_given_is_told() {
    let all = parse(
        "webhook: { drain_url: 'https://a/x', headers: { X-Fleet: east } }\n\
         slurm: { name_label: slurm-node }\n\
         kubernetes: { kubeconfig: /etc/kube, node: provider-id, grace: 2m, force: true }",
    );
    let settings = all.settings(&Webhooks::default()).unwrap();
    let [
        SchedulerSettings::Webhook(webhook),
        SchedulerSettings::Slurm(slurm),
        SchedulerSettings::Kubernetes(kubernetes),
    ] = settings.as_slice()
    else {
        panic!("all three, in this order");
    };
    assert_eq!(webhook.drain_url.as_deref(), Some("https://a/x"));
    assert_eq!(webhook.headers.get("X-Fleet").map(String::as_str), Some("east"));
    assert_eq!(slurm.name_label.as_deref(), Some("slurm-node"));
    assert_eq!(kubernetes.node, NodeName::ProviderId);
    assert_eq!(kubernetes.grace, Some(std::time::Duration::from_secs(120)));
    assert!(kubernetes.force);
    let access = Access::Kubeconfig { path: PathBuf::from("/etc/kube"), context: None };
    assert_eq!(kubernetes.access, access);
}

#[test]
fn a_key_nobody_knows_is_refused() {
    for yaml in ["slurm: { scontol: x }", "kubernets: {}", "kubernetes: { node: serial }"] {
        assert!(serde_saphyr::from_str::<WorkloadSystem>(yaml).is_err(), "{yaml}");
    }
}
