//! The routes of machines: instances, orphans, providers, and how a pool is doing.

use super::node::{REASON_LEN_MAX, RELEASED, route, text, unchanged, words};
use super::{
    Access, Answer, BODY_LEN_MAX, EVENTS, JSON, Operation, Parameter, Route, fields, if_none_match,
    ok, page, query, size, watch_parameters,
};
use crate::instance::InstanceState;
use serde_json::json;

const INSTANCE: &[(&str, Option<&str>)] = &[(JSON, Some("Instance"))];
const INSTANCE_WATCHED: &[(&str, Option<&str>)] =
    &[(JSON, Some("InstanceView")), (EVENTS, Some("ServerSentEvent"))];
const INSTANCES: &[(&str, Option<&str>)] =
    &[(JSON, Some("InstanceList")), (EVENTS, Some("ServerSentEvent"))];

pub(super) fn routes() -> Vec<Route> {
    let mut routes = instances();
    routes.extend(providers());
    routes.extend(recovery());
    routes.extend(pools());
    routes
}

fn instances() -> Vec<Route> {
    const TAG: &str = "Instances";
    const ITEM: &str = "/instances/{instance_id}";
    let read = |path: &str, operation, id: &str, summary: &str| {
        route(TAG, ("GET", path), operation, id, Access::Read, summary)
    };
    vec![
        read(
            "/instances",
            Operation::ListInstances,
            "listInstances",
            "List the machines that were bought, or watch them: each purchase, each state, each failure.",
        )
        .with(list_parameters())
        .with(watch_parameters())
        .answers(ok("One page, or with `watch` a stream of events.", INSTANCES, &[]))
        .command("instance list"),
        read(ITEM, Operation::GetInstance, "getInstance", "Read one instance, or watch it.")
            .with(vec![fields(), if_none_match()])
            .with(watch_parameters())
            .answers(ok("The instance, or with `watch` a stream.", INSTANCE_WATCHED, &["ETag"]))
            .answers(unchanged())
            .command("instance get"),
        route(
            TAG,
            ("POST", &format!("{ITEM}/terminate")),
            Operation::TerminateInstance,
            "terminateInstance",
            Access::Write,
            "Have a machine returned. Its pool buys another if it then has too few.",
        )
        .takes("InstanceTerminate", REASON_LEN_MAX)
        .answers(Answer {
            status: 202,
            description: "It is to go; it stays until it is known to be gone.",
            content: INSTANCE,
            headers: &["ETag"],
        })
        .command("instance terminate"),
        route(
            TAG,
            ("POST", "/instances/adopt"),
            Operation::AdoptInstance,
            "adoptInstance",
            Access::Write,
            "Make a machine that no record knows one of a node pool's.",
        )
        .takes("InstanceAdopt", REASON_LEN_MAX)
        .answers(Answer {
            status: 201,
            description: "It has a record now.",
            content: INSTANCE,
            headers: &["ETag", "Location"],
        })
        .command("instance adopt"),
        read(
            "/orphans",
            Operation::ListOrphans,
            "listOrphans",
            "Machines that carry our tags and that no record knows. Nothing happens to them by itself.",
        )
        .answers(ok("The machines.", &[(JSON, Some("OrphanList"))], &[]))
        .command("instance list --orphans"),
        route(
            TAG,
            ("POST", "/orphans/{provider}/{machine_id}/reap"),
            Operation::ReapOrphan,
            "reapOrphan",
            Access::Administer,
            "Have a machine returned that no record knows.",
        )
        .takes("SafetyReason", REASON_LEN_MAX)
        .answers(Answer {
            status: 202,
            description: "It is to go.",
            content: &[(JSON, Some("Orphan"))],
            headers: &[],
        })
        .command("instance terminate --orphan"),
    ]
}

fn providers() -> Vec<Route> {
    const TAG: &str = "Providers";
    vec![
        route(
            TAG,
            ("GET", "/providers"),
            Operation::ListProviders,
            "listProviders",
            Access::Read,
            "Who makes machines, how many there are and what they cost, and what is stopped there.",
        )
        .answers(ok("The providers.", &[(JSON, Some("ProviderList"))], &[]))
        .command("provider list"),
        route(
            TAG,
            ("POST", "/providers/{provider}/thaw"),
            Operation::ThawProvider,
            "thawProvider",
            Access::Administer,
            "Have a provider's listings believed that miss too many machines: these are then taken for gone.",
        )
        .takes("SafetyReason", REASON_LEN_MAX)
        .answers(ok("They are believed, or were already.", RELEASED, &[]))
        .command("provider thaw"),
    ]
}

fn recovery() -> Vec<Route> {
    const TAG: &str = "Recovery";
    vec![
        route(
            TAG,
            ("GET", "/recovery"),
            Operation::ListRecovery,
            "listRecovery",
            Access::Read,
            "Which node pools are in recovery because the store was restored or lost history, and what they would \
             do.",
        )
        .answers(ok("The pools in recovery.", &[(JSON, Some("RecoveryList"))], &[]))
        .command("recovery show"),
        route(
            TAG,
            ("POST", "/recovery/{pool}/confirm"),
            Operation::ConfirmRecovery,
            "confirmRecovery",
            Access::Write,
            "Let a node pool in recovery do what it would do: terminate, drain and buy machines.",
        )
        .takes("SafetyReason", REASON_LEN_MAX)
        .answers(ok("It is not in recovery any more, or was not.", RELEASED, &[]))
        .command("recovery confirm"),
    ]
}

fn pools() -> Vec<Route> {
    const TAG: &str = "Pools of machines";
    const ITEM: &str = "/nodepools/{nodepool_id}";
    let read = |path: &str, operation, id: &str, summary: &str| {
        route(TAG, ("GET", path), operation, id, Access::Read, summary)
    };
    vec![
        read(
            &format!("{ITEM}/explain"),
            Operation::ExplainPool,
            "explainNodePool",
            "Why a node pool is as it is: its size, its machines, what failed where, what is next.",
        )
        .with(vec![cluster()])
        .answers(ok("The explanation.", &[(JSON, Some("PoolExplanation"))], &[]))
        .command("nodepool explain"),
        read(
            &format!("{ITEM}/history"),
            Operation::PoolHistory,
            "getNodePoolHistory",
            "What this server measured of a node pool lately, oldest first.",
        )
        .with(vec![cluster()])
        .answers(ok("The samples.", &[(JSON, Some("PoolHistory"))], &[])),
        route(
            TAG,
            ("POST", &format!("{ITEM}/simulate")),
            Operation::SimulatePool,
            "simulateNodePool",
            Access::Read,
            "What an autoscaler would have done with what was measured. Nothing is written.",
        )
        .with(vec![cluster()])
        .takes("SimulateRequest", BODY_LEN_MAX)
        .answers(ok("What it would have done.", &[(JSON, Some("Simulation"))], &[]))
        .command("nodepool simulate"),
        route(
            TAG,
            ("POST", &format!("{ITEM}/resume")),
            Operation::ResumePool,
            "resumeNodePool",
            Access::Write,
            "Let buying and updating go on for a node pool that stopped because of what became of its machines.",
        )
        .with(vec![cluster()])
        .takes("PoolResume", REASON_LEN_MAX)
        .answers(ok("It goes on, or did already.", RELEASED, &[]))
        .command("nodepool resume"),
    ]
}

fn cluster() -> Parameter {
    query("cluster", "The cluster of the pool, where several have one of this name.", text())
}

fn list_parameters() -> Vec<Parameter> {
    vec![
        page(),
        size(),
        query(
            "order",
            "`ordered_at desc`, `cost_per_hour`, …, with commas between. By pool and number without it.",
            json!({ "type": "string", "examples": ["pool,ordered_at desc"] }),
        ),
        fields(),
        query(
            "search",
            "A search: `pool='h100' and open=true and not provider='aws'`.",
            json!({ "type": "string", "maxLength": 4096, "examples": ["state='Failed'"] }),
        ),
        query(
            "state",
            "Only those in this state.",
            words(InstanceState::ALL.iter().map(|state| state.as_str())),
        ),
        query("pool", "Only those of this pool, by the name that nodes carry.", text()),
        query("provider", "Only those of this provider.", text()),
        query("region", "Only those in this region.", text()),
        query("zone", "Only those in this zone.", text()),
        query("node_id", "Only that of this node.", text()),
    ]
}
