//! The route table: what router, OpenAPI document, reference page, command-line help and
//! authorization tests are all made from.
//!
//! To add an endpoint, add a line here; the compiler then asks for its handler.

mod fleet;
mod instance;
mod node;

pub use fleet::EVERY_DEFAULT_MS;

use serde_json::{Value, json};
use std::sync::LazyLock;

/// Where the API of clusters and node pools begins.
pub const BASE: &str = "/api/hyperfleet/v1";

/// Where our own additions begin.
pub const OWN: &str = "/api/argosy/v1";

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Route {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`. Where `GET` is, `HEAD` is too.
    pub method: &'static str,
    /// With `{names}` for what varies.
    pub path: String,
    /// What it does.
    pub operation: Operation,
    /// Its name in the OpenAPI document, unique.
    pub id: String,
    /// Who may ask.
    pub access: Access,
    /// The group it is shown in.
    pub tag: &'static str,
    /// What it does, in a sentence.
    pub summary: String,
    /// What may stand in path, query and headers.
    pub parameters: Vec<Parameter>,
    /// What may stand in the body.
    pub body: Option<Body>,
    /// What it answers.
    pub answers: Vec<Answer>,
    /// The command that does the same; `None` means API only.
    pub cli: Option<String>,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A page that links to the others.
    Landing,
    /// The reference page.
    Docs,
    /// What this service is.
    Info,
    /// The OpenAPI document.
    OpenApi,
    /// Where upstream has its reference page.
    OpenApiPage,
    /// A page of resources, or a watch.
    List(Scope),
    /// A new resource.
    Create(Scope),
    /// One resource, or a watch.
    Get(Scope),
    /// A change.
    Patch(Scope),
    /// A deletion.
    Delete(Scope),
    /// A removal without confirmed cleanup.
    ForceDelete(Scope),
    /// What the adapters say.
    Statuses(Scope),
    /// A report of an adapter.
    Report(Scope),
    /// Earlier reports.
    History(Scope),
    /// Events that were given up.
    ListDeadLetters,
    /// The audit log.
    ListAudit,
    /// A check of the audit log.
    VerifyAudit,
    /// What can be asked for.
    Catalog,
    /// A page of nodes, or a watch.
    ListNodes,
    /// One node, or a watch.
    GetNode,
    /// Forgets a node.
    DeleteNode,
    /// Protects a node.
    ProtectNode,
    /// Protects it no more.
    UnprotectNode,
    /// What happened on a node.
    NodeEvents,
    /// Everything that was written down about a node.
    NodeHistory,
    /// Why a node is as it is.
    NodeWhy,
    /// What a node measured lately.
    NodeMetrics,
    /// What is wrong with nodes now.
    ListFindings,
    /// Tells a node to do something.
    CreateCommand,
    /// Tells several nodes the same.
    CreateCommands,
    /// The commands of a node.
    NodeCommands,
    /// A page of commands, or a watch.
    ListCommands,
    /// One command, or a watch.
    GetCommand,
    /// Every policy.
    ListPolicies,
    /// One policy.
    GetPolicy,
    /// Makes or replaces a policy.
    PutPolicy,
    /// Removes a policy.
    DeletePolicy,
    /// What a policy says of an event.
    ExplainPolicy,
    /// What a policy would have done.
    BacktestPolicy,
    /// Whether the server acts by itself.
    Safety,
    /// Stops all automatic action.
    Pause,
    /// Lets it go on.
    Resume,
    /// Closes a breaker by hand.
    CloseBreaker,
    /// A page of instances, or a watch.
    ListInstances,
    /// One instance, or a watch.
    GetInstance,
    /// Has a machine returned.
    TerminateInstance,
    /// Makes a machine that nobody knows one of a pool's.
    AdoptInstance,
    /// Machines that nobody knows.
    ListOrphans,
    /// Has a machine returned that nobody knows.
    ReapOrphan,
    /// Every provider.
    ListProviders,
    /// Has a provider's listings believed again.
    ThawProvider,
    /// Which node pools are in recovery.
    ListRecovery,
    /// Let one go on.
    ConfirmRecovery,
    /// Why a node pool is as it is.
    ExplainPool,
    /// What was measured of a node pool.
    PoolHistory,
    /// What an autoscaler would have done.
    SimulatePool,
    /// Lets buying go on for a node pool.
    ResumePool,
    /// `GET …/me`.
    Me,
    /// `GET …/fleet/gpus`.
    FleetGpus,
    /// `GET …/events`.
    ListEvents,
}

impl Operation {
    /// Whether it can be asked for a stream of events instead.
    pub const fn watches(self) -> bool {
        matches!(
            self,
            Operation::List(_)
                | Operation::Get(_)
                | Operation::ListNodes
                | Operation::GetNode
                | Operation::ListCommands
                | Operation::GetCommand
                | Operation::ListInstances
                | Operation::GetInstance
        )
    }

    /// Whether it makes something new, once for each idempotency key.
    pub const fn creates(self) -> bool {
        matches!(self, Operation::Create(_) | Operation::CreateCommand | Operation::CreateCommands)
    }

    /// Whether it only asks, whatever its method.
    pub const fn asks(self) -> bool {
        matches!(
            self,
            Operation::ExplainPolicy | Operation::BacktestPolicy | Operation::SimulatePool
        )
    }

    /// Whether something is named beside the path that may not exist: a node, a machine, a pool.
    const fn names_more(self) -> bool {
        matches!(
            self,
            Operation::ExplainPolicy | Operation::ListCommands | Operation::AdoptInstance
        )
    }

    /// Whether there may be too many of what it makes.
    const fn is_limited(self) -> bool {
        matches!(self, Operation::CreateCommand | Operation::CreateCommands | Operation::PutPolicy)
    }

    /// Whether it looks at so much that only a few may run at once: people's lists must not keep nodes
    /// waiting.
    pub const fn is_heavy(self) -> bool {
        matches!(
            self,
            Operation::ListNodes
                | Operation::ListFindings
                | Operation::ListCommands
                | Operation::NodeCommands
                | Operation::NodeEvents
                | Operation::NodeHistory
                | Operation::NodeWhy
                | Operation::BacktestPolicy
                | Operation::ListInstances
                | Operation::SimulatePool
                | Operation::FleetGpus
                | Operation::ListEvents
        )
    }
}

/// Which resources a path speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `/clusters`
    Clusters,
    /// `/clusters/{cluster_id}/nodepools`
    ClusterNodePools,
    /// `/nodepools`, across clusters.
    NodePools,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody, without credentials.
    Public,
    /// Who may read.
    Read,
    /// Who may create, change and delete.
    Write,
    /// Who may report.
    Report,
    /// Who may remove a record without confirmed cleanup.
    Force,
    /// Who may read the audit log.
    Administer,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// What it is for.
    pub description: &'static str,
    /// What it may be, as a JSON schema.
    pub schema: Value,
    /// Whether it may be given more than once.
    pub repeats: bool,
    /// Whether it must be there; what stands in the path always must.
    pub required: bool,
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// The schema of what is sent.
    pub schema: &'static str,
    /// How it may be sent.
    pub media: &'static [&'static str],
    /// The longest body, in bytes.
    pub len_max: usize,
}

/// One answer that is not an error.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What it means.
    pub description: &'static str,
    /// The content types and schemas of the body; none if there is no body.
    pub content: &'static [(&'static str, Option<&'static str>)],
    /// The headers that come with it beyond those every answer has.
    pub headers: &'static [&'static str],
}

/// The longest body of most requests: a spec that is larger is not a wish but a payload.
pub const BODY_LEN_MAX: usize = 1024 * 1024;

/// The longest status report: adapters report often, and every report is kept as history.
pub const REPORT_LEN_MAX: usize = 256 * 1024;

/// The largest page of a list.
pub const SIZE_MAX: usize = 1000;

/// The size of a page nobody chose.
pub const SIZE_DEFAULT: usize = 20;

/// The last page one can ask for.
pub const PAGE_MAX: usize = 100_000;

/// Every route. No two have the same method and path.
pub static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = pages();
    for scope in [Scope::Clusters, Scope::ClusterNodePools, Scope::NodePools] {
        routes.extend(resources(scope));
    }
    routes.extend(node::routes());
    routes.extend(instance::routes());
    routes.extend(fleet::routes());
    routes.extend(own());
    routes
});

impl Scope {
    /// The path of the list.
    pub fn path(self) -> String {
        match self {
            Scope::Clusters => format!("{BASE}/clusters"),
            Scope::ClusterNodePools => format!("{BASE}/clusters/{{cluster_id}}/nodepools"),
            Scope::NodePools => format!("{BASE}/nodepools"),
        }
    }

    /// The name of the item's parameter in paths.
    pub const fn item(self) -> &'static str {
        match self {
            Scope::Clusters => "cluster_id",
            Scope::ClusterNodePools | Scope::NodePools => "nodepool_id",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Scope::Clusters => "cluster",
            Scope::ClusterNodePools | Scope::NodePools => "node pool",
        }
    }

    const fn tag(self) -> &'static str {
        match self {
            Scope::Clusters => "Clusters",
            Scope::ClusterNodePools => "Node pools of a cluster",
            Scope::NodePools => "All node pools",
        }
    }

    /// `listClusters`, `getClusterNodePool`, …
    fn id(self, verb: &str, rest: &str) -> String {
        let noun = match self {
            Scope::Clusters => "Cluster",
            Scope::ClusterNodePools => "ClusterNodePool",
            Scope::NodePools => "NodePool",
        };
        format!("{verb}{noun}{rest}")
    }

    /// The command for this, where there is one: commands name a pool with its cluster.
    fn cli(self, verb: &str) -> Option<String> {
        match self {
            Scope::Clusters => Some(format!("cluster {verb}")),
            Scope::ClusterNodePools => Some(format!("nodepool {verb}")),
            Scope::NodePools => None,
        }
    }
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const RESOURCE: &[(&str, Option<&str>)] = &[(JSON, Some("Resource"))];
const WATCHED: &[(&str, Option<&str>)] =
    &[(JSON, Some("ResourceView")), (EVENTS, Some("ServerSentEvent"))];
const LISTED: &[(&str, Option<&str>)] =
    &[(JSON, Some("ResourceList")), (EVENTS, Some("ServerSentEvent"))];
const MERGE_PATCH: &str = "application/merge-patch+json";

fn resources(scope: Scope) -> Vec<Route> {
    let (list, noun) = (scope.path(), scope.noun());
    let item = format!("{list}/{{{}}}", scope.item());
    let route = |method, path: &str, operation, id: String, access, summary: String| Route {
        method,
        path: path.to_owned(),
        operation,
        id,
        access,
        tag: scope.tag(),
        summary,
        parameters: paths(path),
        body: None,
        answers: Vec::new(),
        cli: None,
    };
    let mut routes = vec![
        Route {
            answers: vec![ok("One page, or with `watch` a stream of events.", LISTED, &[])],
            cli: scope.cli("list"),
            ..route(
                "GET",
                &list,
                Operation::List(scope),
                scope.id("list", "s"),
                Access::Read,
                format!("List {noun}s, or watch them."),
            )
        }
        .with(list_parameters())
        .with(watch_parameters()),
        Route {
            body: Some(Body {
                schema: if scope == Scope::Clusters { "ClusterCreate" } else { "NodePoolCreate" },
                media: &[JSON],
                len_max: BODY_LEN_MAX,
            }),
            answers: match scope {
                Scope::Clusters | Scope::ClusterNodePools => vec![Answer {
                    status: 201,
                    description: "It is created; adapters begin.",
                    content: RESOURCE,
                    headers: &["ETag", "Location", "Dry-Run", "Idempotency-Replayed"],
                }],
                // A node pool is created under its cluster: this route only says so.
                Scope::NodePools => Vec::new(),
            },
            cli: scope.cli("create"),
            ..route(
                "POST",
                &list,
                Operation::Create(scope),
                scope.id("create", ""),
                Access::Write,
                match scope {
                    Scope::NodePools => "Refused: a node pool is created under its cluster.".into(),
                    Scope::Clusters | Scope::ClusterNodePools => format!("Create a {noun}."),
                },
            )
        }
        .with(vec![dry_run(), idempotency_key()]),
        Route {
            answers: vec![
                ok("The resource, or with `watch` a stream of events.", WATCHED, &["ETag"]),
                Answer {
                    status: 304,
                    description: "It is as `If-None-Match` says.",
                    content: &[],
                    headers: &["ETag"],
                },
            ],
            cli: scope.cli("get"),
            ..route(
                "GET",
                &item,
                Operation::Get(scope),
                scope.id("get", ""),
                Access::Read,
                format!("Read one {noun}, or watch it."),
            )
        }
        .with(vec![fields(), search(), if_none_match()])
        .with(watch_parameters()),
        Route {
            body: Some(Body {
                schema: "ResourcePatch",
                media: &[JSON, MERGE_PATCH],
                len_max: BODY_LEN_MAX,
            }),
            answers: vec![ok("It is changed, or was so already.", RESOURCE, &["ETag", "Dry-Run"])],
            cli: scope.cli("patch"),
            ..route(
                "PATCH",
                &item,
                Operation::Patch(scope),
                scope.id("patch", ""),
                Access::Write,
                format!("Change spec or labels of a {noun}."),
            )
        }
        .with(vec![strategy(), dry_run(), if_match(), force(), reason()]),
        Route {
            answers: vec![Answer {
                status: 202,
                description: "It is being deleted; it stays until its adapters have cleaned up.",
                content: RESOURCE,
                headers: &["ETag", "Dry-Run"],
            }],
            cli: scope.cli("delete"),
            ..route(
                "DELETE",
                &item,
                Operation::Delete(scope),
                scope.id("delete", ""),
                Access::Write,
                format!("Delete a {noun} and what it owns."),
            )
        }
        .with(vec![dry_run(), if_match(), now(), force(), reason()]),
        Route {
            body: Some(Body { schema: "ForceDelete", media: &[JSON], len_max: BODY_LEN_MAX }),
            answers: vec![Answer {
                status: 204,
                description: "The record is removed.",
                content: &[],
                headers: &[],
            }],
            cli: scope.cli("delete --force"),
            ..route(
                "POST",
                &format!("{item}/force-delete"),
                Operation::ForceDelete(scope),
                scope.id("forceDelete", ""),
                Access::Force,
                format!("Remove the record of a {noun} that is being deleted, cleanup or not."),
            )
        },
    ];
    for (path, id) in [("statuses", "Statuses"), ("adapter-statuses", "AdapterStatuses")] {
        routes.push(
            Route {
                answers: vec![ok("What they say.", &[(JSON, Some("StatusList"))], &[])],
                cli: scope.cli("statuses"),
                ..route(
                    "GET",
                    &format!("{item}/{path}"),
                    Operation::Statuses(scope),
                    scope.id("get", id),
                    Access::Read,
                    format!("What the adapters say about a {noun}."),
                )
            }
            .with(vec![page(), size(), view()]),
        );
    }
    for (method, verb) in [("PUT", "put"), ("POST", "post")] {
        routes.push(Route {
            body: Some(Body { schema: "StatusReport", media: &[JSON], len_max: REPORT_LEN_MAX }),
            answers: vec![
                Answer {
                    status: 201,
                    description: "It is stored.",
                    content: &[(JSON, Some("AdapterStatus"))],
                    headers: &[],
                },
                Answer {
                    status: 204,
                    description: "It is not news: older than what is known, or for a generation that \
                                  does not exist.",
                    content: &[],
                    headers: &[],
                },
            ],
            ..route(
                method,
                &format!("{item}/statuses"),
                Operation::Report(scope),
                scope.id(verb, "Status"),
                Access::Report,
                format!("Report for an adapter about a {noun}."),
            )
        });
    }
    routes.push(
        Route {
            answers: vec![ok("Reports.", &[(JSON, Some("StatusHistory"))], &[])],
            ..route(
                "GET",
                &format!("{item}/statuses/history"),
                Operation::History(scope),
                scope.id("get", "StatusHistory"),
                Access::Read,
                format!("Earlier reports about a {noun}, newest first."),
            )
        }
        .with(vec![before(), limit()]),
    );
    routes
}

fn own() -> Vec<Route> {
    let route =
        |path: &str, operation, id: &str, access, summary: &str, schema, cli: Option<&str>| Route {
            method: "GET",
            path: format!("{OWN}{path}"),
            operation,
            id: id.to_owned(),
            access,
            tag: "Audit and catalog",
            summary: summary.to_owned(),
            parameters: vec![profile()],
            body: None,
            answers: vec![ok("The answer.", schema, &[])],
            cli: cli.map(str::to_owned),
        };
    vec![
        route(
            "/audit",
            Operation::ListAudit,
            "listAudit",
            Access::Administer,
            "What was changed, by whom, newest first.",
            &[(JSON, Some("AuditList"))],
            Some("audit list"),
        )
        .with(vec![before(), limit()]),
        route(
            "/audit/verify",
            Operation::VerifyAudit,
            "verifyAudit",
            Access::Administer,
            "Check that nobody changed the audit log.",
            &[(JSON, Some("AuditVerification"))],
            Some("audit verify"),
        ),
        route(
            "/dead-letters",
            Operation::ListDeadLetters,
            "listDeadLetters",
            Access::Administer,
            "Events that adapters outside refused or could not be given, newest first.",
            &[(JSON, Some("DeadLetterList"))],
            None,
        )
        .with(vec![before(), limit()]),
        route(
            "/catalog",
            Operation::Catalog,
            "getCatalog",
            Access::Read,
            "Providers, regions and machine types that can be asked for.",
            &[(JSON, Some("Catalog"))],
            None,
        ),
    ]
}

fn pages() -> Vec<Route> {
    let page = |path: &str, operation, id: &str, summary: &str, answer| Route {
        method: "GET",
        path: path.to_owned(),
        operation,
        id: id.to_owned(),
        access: Access::Public,
        tag: "Service",
        summary: summary.to_owned(),
        parameters: Vec::new(),
        body: None,
        answers: vec![answer],
        cli: None,
    };
    const HTML: &[(&str, Option<&str>)] = &[("text/html", None)];
    vec![
        page("/", Operation::Landing, "landing", "Where to go.", ok("A page.", HTML, &[])).answers(
            Answer {
                status: 303,
                description: "A browser is led to the dashboard.",
                content: &[],
                headers: &["Location"],
            },
        ),
        page("/docs", Operation::Docs, "docs", "The reference.", ok("A page.", HTML, &[])),
        page(
            "/api/hyperfleet",
            Operation::Info,
            "getService",
            "What this service is.",
            ok("The service.", &[(JSON, Some("ServiceInfo"))], &[]),
        ),
        page(
            &format!("{BASE}/openapi"),
            Operation::OpenApi,
            "getOpenApi",
            "This document.",
            ok("The document.", &[(JSON, None)], &[]),
        ),
        page(
            &format!("{BASE}/openapi.html"),
            Operation::OpenApiPage,
            "getOpenApiPage",
            "Leads to the reference.",
            Answer {
                status: 308,
                description: "It is at /docs.",
                content: &[],
                headers: &["Location"],
            },
        ),
    ]
}

const fn ok(
    description: &'static str,
    content: &'static [(&'static str, Option<&'static str>)],
    headers: &'static [&'static str],
) -> Answer {
    Answer { status: 200, description, content, headers }
}

impl Route {
    fn with(mut self, parameters: Vec<Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// The parameters that may stand in the query.
    pub fn query(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.place == Place::Query)
    }

    /// The errors it can answer with, by status: those of `error::CODES` that can happen here.
    pub fn errors(&self) -> Vec<u16> {
        if self.access == Access::Public {
            return vec![];
        }
        let write = self.method != "GET" && !self.operation.asks();
        let create = self.operation.creates();
        let conflict = write && !matches!(self.operation, Operation::Report(_));
        let mut statuses = vec![400, 401, 403, 500, 503];
        let rules = [
            // What an earlier create with the same key made may be gone.
            (404, create || self.path.contains('{') || self.operation.names_more()),
            (409, conflict),
            (410, self.operation.watches()),
            (408, self.body.is_some()),
            (413, self.body.is_some()),
            (415, self.body.is_some()),
            (422, create),
            (429, self.operation.is_heavy() || self.operation.is_limited()),
            (507, write),
        ];
        statuses.extend(rules.into_iter().filter(|(_, holds)| *holds).map(|(status, _)| status));
        statuses.sort_unstable();
        statuses
    }
}

/// The parameters a path has by itself, and the one header every route understands.
fn paths(path: &str) -> Vec<Parameter> {
    let text = || json!({ "type": "string", "minLength": 1 });
    let of = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let known = [
        ("cluster_id", "The cluster's id, or its name.", text()),
        ("nodepool_id", "The node pool's name, or its uid.", text()),
        ("node_id", "What the node registered as.", text()),
        ("command_id", "The command's id.", text()),
        ("policy", "The policy's name.", of("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")),
        (
            "pool",
            "The pool: by the name that its nodes carry, by `CLUSTER%2FNAME`, or by its own name if just one has it.",
            text(),
        ),
        ("instance_id", "The instance's id, or what its provider calls the machine.", text()),
        ("provider", "The provider's name in the server's configuration.", text()),
        ("machine_id", "What the provider calls the machine, its slashes percent-encoded.", text()),
        (
            "scope",
            "The breaker's scope, its slashes percent-encoded: `fleet`, `zone%2F…`.",
            of("^(fleet|zone/[a-z0-9/-]+|pool/[a-z0-9-]+/[a-z0-9-]*)$"),
        ),
    ];
    let named = |(name, description, schema)| Parameter {
        name,
        place: Place::Path,
        description,
        schema,
        repeats: false,
        required: true,
    };
    known
        .into_iter()
        .filter(|(name, ..)| path.contains(&format!("{{{name}}}")))
        .map(named)
        .chain([profile()])
        .collect()
}

fn query(name: &'static str, description: &'static str, schema: Value) -> Parameter {
    let repeats = matches!(name, "order" | "fields" | "labels");
    Parameter { name, place: Place::Query, description, schema, repeats, required: false }
}

fn header(name: &'static str, description: &'static str, schema: Value) -> Parameter {
    let (place, repeats, required) = (Place::Header, false, false);
    Parameter { name, place, description, schema, repeats, required }
}

fn list_parameters() -> Vec<Parameter> {
    let text = || json!({ "type": "string", "minLength": 1 });
    let phase = || {
        json!({
            "type": "string",
            "enum": ["Not Ready", "Ready", "Pending", "Terminating"],
        })
    };
    vec![
        page(),
        size(),
        query("pageSize", "The old name of `size`.", size().schema),
        query(
            "order",
            "`name`, `created_time desc`, …, with commas between. Newest first without \
               it.",
            json!({ "type": "string", "examples": ["name asc,created_time desc"] }),
        ),
        query(
            "orderBy",
            "The old name of `order`, which then is `asc` or `desc`.",
            json!({ "type": "string", "examples": ["name"] }),
        ),
        fields(),
        search(),
        query("phase", "Only those in this phase.", phase()),
        query("status.phase", "The same as `phase`.", phase()),
        query("provider", "Only those of this provider.", text()),
        query("region", "Only those in this region.", text()),
        query("name", "Only those whose name contains this; in double quotes, is this.", text()),
        query(
            "labels",
            "Only those with these labels: `key:value,key:value`.",
            json!({ "type": "string", "examples": ["environment:production,team:platform"] }),
        ),
        query(
            "kind",
            "Only those of this kind, which is the kind of the path.",
            json!({ "type": "string", "enum": ["Cluster", "NodePool"] }),
        ),
    ]
}

fn watch_parameters() -> Vec<Parameter> {
    vec![
        query(
            "watch",
            "Answer with server-sent events: what is there, then every change.",
            json!({ "type": "boolean", "default": false }),
        ),
        query(
            "resource_version",
            "With `watch`: go on after this revision instead of beginning with what is there.",
            revision(),
        ),
        header(
            "Last-Event-ID",
            "The same, as browsers send it when they connect again.",
            revision(),
        ),
    ]
}

fn now() -> Parameter {
    query(
        "now",
        "Terminate its machines without draining their nodes, also if it is being deleted already; for admins, \
         with a `reason`.",
        json!({ "type": "boolean", "default": false }),
    )
}

fn force() -> Parameter {
    query(
        "force",
        "Also what the label `argosy.dev/protected` keeps; for admins, with a `reason`.",
        json!({ "type": "boolean", "default": false }),
    )
}

fn reason() -> Parameter {
    query(
        "reason",
        "Why; it is kept in the audit log. Needed with `now` and `force`.",
        json!({ "type": "string", "minLength": 1, "maxLength": 1024 }),
    )
}

/// A number that counts commits or records.
fn revision() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

fn page() -> Parameter {
    query(
        "page",
        "Which page, counted from 1.",
        json!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 1 }),
    )
}

fn size() -> Parameter {
    query(
        "size",
        "How many a page.",
        json!({ "type": "integer", "minimum": 1, "maximum": SIZE_MAX, "default": SIZE_DEFAULT }),
    )
}

fn before() -> Parameter {
    query("before", "Go on before this sequence number.", revision())
}

fn limit() -> Parameter {
    query(
        "limit",
        "How many at most.",
        json!({ "type": "integer", "minimum": 1, "maximum": SIZE_MAX, "default": 100 }),
    )
}

fn fields() -> Parameter {
    query(
        "fields",
        "Only these members, with commas between and dots inside; `id` always comes along.",
        json!({ "type": "string", "examples": ["name,status.phase,spec.region"] }),
    )
}

fn search() -> Parameter {
    query(
        "search",
        "A search: `name='x' and labels.team='ml' and spec.nodeCount > 3`. Ignored for one resource.",
        json!({ "type": "string", "maxLength": 4096, "examples": ["labels.team='platform'"] }),
    )
}

fn view() -> Parameter {
    query(
        "view",
        "Leave only one of the three lists.",
        json!({ "type": "string", "enum": ["items", "statuses", "adapterStatuses"] }),
    )
}

fn strategy() -> Parameter {
    query(
        "strategy",
        "`merge` keeps what is not mentioned, `replace` does not. The profile `upstream` replaces.",
        json!({ "type": "string", "enum": ["merge", "replace"] }),
    )
}

fn dry_run() -> Parameter {
    query(
        "dry_run",
        "Check everything, answer as if, write nothing.",
        json!({ "type": "boolean", "default": false }),
    )
}

fn if_match() -> Parameter {
    header(
        "If-Match",
        "Only if the resource still has this ETag.",
        json!({ "type": "string", "pattern": "^(\\*|\"[0-9]{1,19}\")$" }),
    )
}

fn if_none_match() -> Parameter {
    header(
        "If-None-Match",
        "Only if the resource no longer has this ETag.",
        json!({ "type": "string" }),
    )
}

fn if_new() -> Parameter {
    header(
        "If-None-Match",
        "`*`: only if nobody has written it yet.",
        json!({ "type": "string", "enum": ["*"] }),
    )
}

fn idempotency_key() -> Parameter {
    header(
        "Idempotency-Key",
        "A request that is repeated with the same key is carried out once.",
        json!({ "type": "string", "pattern": "^[!-~]{1,255}$" }),
    )
}

fn profile() -> Parameter {
    header(
        "X-HyperFleet-Profile",
        "Which words and shapes to use where the clients' documents disagree.",
        json!({ "type": "string", "enum": ["full", "mvp", "upstream"] }),
    )
}

#[cfg(test)]
mod tests;
