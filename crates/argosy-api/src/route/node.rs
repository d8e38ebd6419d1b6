//! The routes of the node plane: nodes, commands, policies, findings, and the brakes.

use super::{
    Access, Answer, BODY_LEN_MAX, Body, JSON, OWN, Operation, Parameter, Route, before, dry_run,
    fields, idempotency_key, if_match, if_new, if_none_match, limit, ok, page, paths, query, size,
    watch_parameters,
};
use serde_json::{Value, json};

/// The longest body that tells a node to do something: sixteen parameters of a kilobyte.
const COMMAND_LEN_MAX: usize = 64 * 1024;

/// The longest body that tells many nodes to do something: their ids beside that.
const BATCH_LEN_MAX: usize = 256 * 1024;

/// The longest body that only says why.
pub(super) const REASON_LEN_MAX: usize = 16 * 1024;

const NODE: &[(&str, Option<&str>)] =
    &[(JSON, Some("NodeView")), (super::EVENTS, Some("ServerSentEvent"))];
const NODE_ONLY: &[(&str, Option<&str>)] = &[(JSON, Some("Node"))];
const NODES: &[(&str, Option<&str>)] =
    &[(JSON, Some("NodeList")), (super::EVENTS, Some("ServerSentEvent"))];
const COMMAND: &[(&str, Option<&str>)] = &[(JSON, Some("Command"))];
const COMMAND_WATCHED: &[(&str, Option<&str>)] =
    &[(JSON, Some("Command")), (super::EVENTS, Some("ServerSentEvent"))];
const COMMANDS: &[(&str, Option<&str>)] =
    &[(JSON, Some("CommandList")), (super::EVENTS, Some("ServerSentEvent"))];
const LEDGER: &[(&str, Option<&str>)] = &[(JSON, Some("Ledger"))];
const POLICY: &[(&str, Option<&str>)] = &[(JSON, Some("Policy"))];
pub(super) const RELEASED: &[(&str, Option<&str>)] = &[(JSON, Some("Released"))];

pub(super) fn routes() -> Vec<Route> {
    let mut routes = nodes();
    routes.extend(commands());
    routes.extend(policies());
    routes.extend(safety());
    routes
}

/// One line of the table; what it takes and answers is added by the caller.
pub(super) fn route(
    tag: &'static str,
    (method, path): (&'static str, &str),
    operation: Operation,
    id: &str,
    access: Access,
    summary: &str,
) -> Route {
    let path = format!("{OWN}{path}");
    Route {
        method,
        parameters: paths(&path),
        path,
        operation,
        id: id.to_owned(),
        access,
        tag,
        summary: summary.to_owned(),
        body: None,
        answers: Vec::new(),
        cli: None,
    }
}

impl Route {
    pub(super) fn answers(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    pub(super) fn takes(mut self, schema: &'static str, len_max: usize) -> Self {
        self.body = Some(Body { schema, media: &[JSON], len_max });
        self
    }

    pub(super) fn command(mut self, command: &str) -> Self {
        self.cli = Some(command.to_owned());
        self
    }
}

fn nodes() -> Vec<Route> {
    const TAG: &str = "Nodes";
    const ITEM: &str = "/nodes/{node_id}";
    const PROTECTION: &str = "/nodes/{node_id}/protection";
    let read = |path: &str, operation, id: &str, summary: &str| {
        route(TAG, ("GET", path), operation, id, Access::Read, summary)
    };
    vec![
        read("/nodes", Operation::ListNodes, "listNodes", "List nodes, or watch them.")
            .with(node_list_parameters())
            .with(watch_parameters())
            .answers(ok("One page, or with `watch` a stream of events.", NODES, &[]))
            .command("node list"),
        read(ITEM, Operation::GetNode, "getNode", "Read one node, or watch it.")
            .with(vec![fields(), if_none_match()])
            .with(watch_parameters())
            .answers(ok("The node, or with `watch` a stream of events.", NODE, &["ETag"]))
            .answers(unchanged())
            .command("node get"),
        route(
            TAG,
            ("DELETE", ITEM),
            Operation::DeleteNode,
            "deleteNode",
            Access::Write,
            "Forget a node that is terminated or unreachable. It may register again.",
        )
        .with(vec![
            query(
                "force",
                "Forget it although it is alive.",
                json!({ "type": "boolean", "default": false }),
            ),
            reason(false),
        ])
        .answers(gone("It is forgotten."))
        .command("node delete"),
        route(
            TAG,
            ("PUT", PROTECTION),
            Operation::ProtectNode,
            "protectNode",
            Access::Write,
            "Label a node `argosy.dev/protected`: its machine is terminated only by force.",
        )
        .takes("SafetyReason", REASON_LEN_MAX)
        .answers(ok("The node.", NODE_ONLY, &["ETag"]))
        .command("node protect"),
        route(
            TAG,
            ("DELETE", PROTECTION),
            Operation::UnprotectNode,
            "unprotectNode",
            Access::Write,
            "Take the label `argosy.dev/protected` off a node.",
        )
        .with(vec![reason(true)])
        .answers(ok("The node.", NODE_ONLY, &["ETag"]))
        .command("node unprotect"),
        read(
            &format!("{ITEM}/events"),
            Operation::NodeEvents,
            "listNodeEvents",
            "What happened on a node and what the policy made of it, newest first.",
        )
        .with(vec![before(), limit()])
        .answers(ok("The events.", LEDGER, &[]))
        .command("node events"),
        read(
            &format!("{ITEM}/history"),
            Operation::NodeHistory,
            "listNodeHistory",
            "Everything that was written down about a node, newest first.",
        )
        .with(vec![before(), limit()])
        .answers(ok("The lines.", LEDGER, &[]))
        .command("node history"),
        read(
            &format!("{ITEM}/why"),
            Operation::NodeWhy,
            "getNodeWhy",
            "Why a node is as it is: the chain from event to action.",
        )
        .answers(ok("The chain.", &[(JSON, Some("Why"))], &[]))
        .command("why"),
        read(
            &format!("{ITEM}/metrics"),
            Operation::NodeMetrics,
            "getNodeMetrics",
            "What a node measured lately, oldest first.",
        )
        .answers(ok("The points.", &[(JSON, Some("MetricsHistory"))], &[])),
        read(
            "/findings",
            Operation::ListFindings,
            "listFindings",
            "What is wrong with nodes now, the worst first.",
        )
        .with(finding_list_parameters())
        .answers(ok("One page.", &[(JSON, Some("FindingList"))], &[])),
    ]
}

fn commands() -> Vec<Route> {
    const TAG: &str = "Commands";
    const OF_NODE: &str = "/nodes/{node_id}/commands";
    let read = |path: &str, operation, id: &str, summary: &str| {
        route(TAG, ("GET", path), operation, id, Access::Read, summary)
    };
    vec![
        route(
            TAG,
            ("POST", OF_NODE),
            Operation::CreateCommand,
            "createCommand",
            Access::Write,
            "Tell a node to do something.",
        )
        .with(vec![dry_run(), idempotency_key(), if_match()])
        .takes("CommandCreate", COMMAND_LEN_MAX)
        .answers(Answer {
            status: 201,
            description: "It is issued; the node is told.",
            content: COMMAND,
            headers: &["ETag", "Location", "Dry-Run", "Idempotency-Replayed"],
        })
        .command("node drain"),
        read(
            OF_NODE,
            Operation::NodeCommands,
            "listNodeCommands",
            "The commands of a node, newest first.",
        )
        .with(vec![page(), size(), state()])
        .answers(ok("One page.", &[(JSON, Some("CommandList"))], &[]))
        .command("command list --node"),
        route(
            TAG,
            ("POST", "/commands"),
            Operation::CreateCommands,
            "createCommands",
            Access::Write,
            "Tell several nodes the same: together they fit the disruption budgets, or none is told.",
        )
        .with(vec![dry_run(), idempotency_key()])
        .takes("CommandBatchCreate", BATCH_LEN_MAX)
        .answers(Answer {
            status: 201,
            description: "What came of it for each node.",
            content: &[(JSON, Some("CommandBatch"))],
            headers: &["Dry-Run"],
        })
        .command("node drain"),
        read("/commands", Operation::ListCommands, "listCommands", "List commands, or watch them.")
            .with(vec![page(), size(), query("node", "Only those of this node.", text()), state()])
            .with(watch_parameters())
            .answers(ok("One page, or with `watch` a stream of events.", COMMANDS, &[]))
            .command("command list"),
        read(
            "/commands/{command_id}",
            Operation::GetCommand,
            "getCommand",
            "Read one command, or watch it.",
        )
        .with(vec![if_none_match()])
        .with(watch_parameters())
        .answers(ok("The command, or with `watch` a stream of events.", COMMAND_WATCHED, &["ETag"]))
        .answers(unchanged())
        .command("command get"),
    ]
}

fn policies() -> Vec<Route> {
    const TAG: &str = "Health policies";
    const ITEM: &str = "/policies/{policy}";
    vec![
        route(
            TAG,
            ("GET", "/policies"),
            Operation::ListPolicies,
            "listPolicies",
            Access::Read,
            "Every policy, the built-in default among them.",
        )
        .answers(ok("The policies.", &[(JSON, Some("PolicyList"))], &[]))
        .command("policy list"),
        route(
            TAG,
            ("GET", ITEM),
            Operation::GetPolicy,
            "getPolicy",
            Access::Read,
            "Read one policy.",
        )
        .with(vec![if_none_match()])
        .answers(ok("The policy.", POLICY, &["ETag"]))
        .answers(unchanged())
        .command("policy get"),
        route(
            TAG,
            ("PUT", ITEM),
            Operation::PutPolicy,
            "putPolicy",
            Access::Write,
            "Make or replace a policy. One that does not compile is refused, and the old one stays.",
        )
        .with(vec![dry_run(), if_match(), if_new()])
        .takes("PolicyPut", BODY_LEN_MAX)
        .answers(ok("The policy as it is now.", POLICY, &["ETag", "Dry-Run"]))
        .command("policy apply"),
        route(
            TAG,
            ("DELETE", ITEM),
            Operation::DeletePolicy,
            "deletePolicy",
            Access::Write,
            "Remove a policy; of the default, what was made of it.",
        )
        .answers(gone("It is removed."))
        .command("policy delete"),
        route(
            TAG,
            ("POST", "/policies/explain"),
            Operation::ExplainPolicy,
            "explainPolicy",
            Access::Read,
            "What a policy says of an event. Nothing is written.",
        )
        .takes("ExplainRequest", BODY_LEN_MAX)
        .answers(ok("What it says.", &[(JSON, Some("Explanation"))], &[]))
        .command("policy explain"),
        route(
            TAG,
            ("POST", "/policies/backtest"),
            Operation::BacktestPolicy,
            "backtestPolicy",
            Access::Read,
            "What a policy would have done with recorded history. Nothing is written.",
        )
        .takes("BacktestRequest", BODY_LEN_MAX)
        .answers(ok("What differs.", &[(JSON, Some("BacktestReport"))], &[]))
        .command("policy backtest"),
    ]
}

fn safety() -> Vec<Route> {
    const TAG: &str = "Safety";
    let mut routes = vec![
        route(
            TAG,
            ("GET", "/safety"),
            Operation::Safety,
            "getSafety",
            Access::Read,
            "Whether the server acts by itself, and if not, why not.",
        )
        .answers(ok("The brakes.", &[(JSON, Some("Brakes"))], &[]))
        .command("safety"),
    ];
    for (path, rest, whose, flag) in
        [("/safety/pause", "", "", ""), ("/safety/pause/{pool}", "Pool", " in one pool", " --pool")]
    {
        routes.push(
            route(
                TAG,
                ("PUT", path),
                Operation::Pause,
                &format!("pause{rest}"),
                Access::Write,
                &format!("Stop all automatic action{whose}. It survives restarts."),
            )
            .takes("SafetyReason", REASON_LEN_MAX)
            .answers(ok("It is stopped.", &[(JSON, Some("Pause"))], &[]))
            .command(&format!("pause{flag}")),
        );
        routes.push(
            route(
                TAG,
                ("DELETE", path),
                Operation::Resume,
                &format!("resume{rest}"),
                Access::Write,
                &format!("Let automatic action go on{whose}."),
            )
            .answers(ok("It goes on, or did already.", RELEASED, &[]))
            .command(&format!("resume{flag}")),
        );
    }
    routes.push(
        route(
            TAG,
            ("DELETE", "/safety/breakers/{scope}"),
            Operation::CloseBreaker,
            "closeBreaker",
            Access::Write,
            "Close a breaker by hand: the present is judged anew.",
        )
        .with(vec![reason(true)])
        .answers(ok("It is closed, or was already.", RELEASED, &[]))
        .command("safety close"),
    );
    routes
}

const fn gone(description: &'static str) -> Answer {
    Answer { status: 204, description, content: &[], headers: &[] }
}

pub(super) const fn unchanged() -> Answer {
    let description = "It is as `If-None-Match` says.";
    Answer { status: 304, description, content: &[], headers: &["ETag"] }
}

pub(super) fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

pub(super) fn words(words: impl Iterator<Item = &'static str>) -> Value {
    json!({ "type": "string", "enum": words.collect::<Vec<_>>() })
}

/// Why; where it is required, the schema says so.
fn reason(required: bool) -> Parameter {
    let parameter = query(
        "reason",
        "Why; it is kept in the audit log.",
        json!({ "type": "string", "minLength": 1, "maxLength": 1024 }),
    );
    Parameter { required, ..parameter }
}

fn state() -> Parameter {
    let states = crate::command::CommandState::ALL.iter().map(|state| state.as_str());
    query(
        "state",
        "Only those in this state; `open` means not ended.",
        words(states.chain(["open"])),
    )
}

fn node_search(examples: &str) -> Parameter {
    query(
        "search",
        "A search: `pool='h100' and xid in (79, 48) and not labels.rack='r7'`.",
        json!({ "type": "string", "maxLength": 4096, "examples": [examples] }),
    )
}

fn node_list_parameters() -> Vec<Parameter> {
    let mut parameters = vec![
        page(),
        size(),
        query(
            "order",
            "`status`, `registered_at desc`, …, with commas between. By id without it.",
            json!({ "type": "string", "examples": ["pool,registered_at desc"] }),
        ),
        fields(),
    ];
    parameters.extend(node_filters());
    parameters
}

/// Which nodes.
pub(super) fn node_filters() -> Vec<Parameter> {
    use crate::node::{HealthStatus, Liveness, NodeStatus};
    vec![
        node_search("status='UNHEALTHY' and gpu_name like '%H100%'"),
        query(
            "status",
            "Only those with this word.",
            words(NodeStatus::ALL.iter().map(|word| word.as_str())),
        ),
        query(
            "health",
            "Only those whose health is this.",
            words(HealthStatus::ALL.iter().map(|word| word.as_str())),
        ),
        query(
            "liveness",
            "Only those whose liveness is this.",
            words(Liveness::ALL.iter().map(|word| word.as_str())),
        ),
        query("pool", "Only those of this pool.", text()),
        query("provider", "Only those of this provider.", text()),
        query("region", "Only those in this region.", text()),
        query("zone", "Only those in this zone.", text()),
        query(
            "labels",
            "Only those with these labels: `key:value,key:value`.",
            json!({ "type": "string", "examples": ["rack:r7,row:3"] }),
        ),
    ]
}

fn finding_list_parameters() -> Vec<Parameter> {
    use crate::node::Severity;
    vec![
        page(),
        size(),
        query(
            "search",
            "A search: `pool='h100' and rule like '%xid%' and last_seen > '2026-01-31'`.",
            json!({ "type": "string", "maxLength": 4096, "examples": ["severity='unhealthy'"] }),
        ),
        query(
            "severity",
            "Only those as bad as this.",
            words(Severity::ALL.iter().map(|word| word.as_str())),
        ),
        query("node", "Only those of this node.", text()),
        query("pool", "Only those of this pool.", text()),
    ]
}
