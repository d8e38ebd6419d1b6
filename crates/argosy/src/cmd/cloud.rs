//! `argosy cloud`: the console of the simulated cloud.

use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, document, note, print};
use crate::session::Session;
use argosy_api::client::ClientError;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Look at the simulated cloud, break it, and mend it.
///
/// Works on a server that runs with `--simulated-cloud`; real clouds have consoles of their own.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cloud show
  argosy cloud zone add example.com
  argosy cloud quota set gcp us-east1 CPUS 64
  argosy cloud permission deny gcp compute.instances.create
  argosy cloud fault add Timeout --match alpha --after-s 5
  argosy cloud fault add Kill --match workers --count 1
  argosy cloud machines")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    /// Show everything the simulated cloud holds.
    #[command(after_help = "Examples:\n  argosy cloud show\n  argosy cloud show -o json")]
    Show,
    /// List the machines, and for an hour those that are gone.
    #[command(after_help = "Examples:\n  argosy cloud machines\n  argosy cloud machines -o json")]
    Machines,
    /// Make something happen to a GPU of a machine.
    #[command(
        after_help = "Examples:\n  argosy cloud inject workers-0f3k9a2m xid:79 gpu:3\n  argosy cloud inject workers-0f3k9a2m heal"
    )]
    Inject {
        /// The machine's name, which is the id of its node.
        machine: String,
        /// What, in the words of `argosy-agent inject`.
        #[arg(required = true)]
        what: Vec<String>,
    },
    /// Add and remove DNS zones.
    #[command(
        subcommand,
        after_help = "Examples:\n  argosy cloud zone add example.com\n  argosy cloud zone remove example.com"
    )]
    Zone(Zone),
    /// Set quotas.
    #[command(subcommand, after_help = "Examples:\n  argosy cloud quota set gcp us-east1 CPUS 64")]
    Quota(Quota),
    /// Deny and allow permissions of the provider's service account.
    #[command(
        subcommand,
        after_help = "Examples:\n  argosy cloud permission deny gcp compute.instances.create\n  argosy cloud permission allow gcp compute.instances.create"
    )]
    Permission(Permission),
    /// Deny and allow everything for resources with a label.
    #[command(
        subcommand,
        after_help = "Examples:\n  argosy cloud label deny team:platform\n  argosy cloud label allow team:platform"
    )]
    Label(Label),
    /// Inject and clear faults.
    #[command(
        subcommand,
        after_help = "Examples:\n  argosy cloud fault add Timeout --match alpha --after-s 5\n  argosy cloud fault add Kill --match workers --count 1\n  argosy cloud fault clear 1"
    )]
    Fault(Fault),
}

#[derive(Subcommand, Debug)]
enum Zone {
    /// Add the DNS zone of a domain.
    #[command(after_help = "Examples:\n  argosy cloud zone add example.com")]
    Add {
        /// The domain.
        domain: String,
    },
    /// Remove the DNS zone of a domain.
    #[command(after_help = "Examples:\n  argosy cloud zone remove example.com")]
    Remove {
        /// The domain.
        domain: String,
    },
}

#[derive(Subcommand, Debug)]
enum Quota {
    /// Set how much of something a region gives.
    #[command(
        after_help = "Examples:\n  argosy cloud quota set gcp us-east1 CPUS 64\n  argosy cloud quota set aws us-east-1 GPUS 8 --used-by-others 2"
    )]
    Set {
        /// gcp, aws, …
        provider: String,
        /// The region.
        region: String,
        /// CPUS, GPUS or CLUSTERS.
        resource: String,
        /// How many.
        limit: u64,
        /// How many of them somebody else uses.
        #[arg(long, default_value_t = 0, value_name = "COUNT")]
        used_by_others: u64,
    },
}

#[derive(Subcommand, Debug)]
enum Permission {
    /// Take a permission away.
    #[command(
        after_help = "Examples:\n  argosy cloud permission deny gcp compute.instances.create"
    )]
    Deny {
        /// gcp, aws, …
        provider: String,
        /// The permission's name.
        permission: String,
    },
    /// Give a permission back.
    #[command(
        after_help = "Examples:\n  argosy cloud permission allow gcp compute.instances.create"
    )]
    Allow {
        /// gcp, aws, …
        provider: String,
        /// The permission's name.
        permission: String,
    },
}

#[derive(Subcommand, Debug)]
enum Label {
    /// Deny everything for resources with this label.
    #[command(after_help = "Examples:\n  argosy cloud label deny team:platform")]
    Deny {
        /// KEY:VALUE.
        label: String,
    },
    /// Allow it again.
    #[command(after_help = "Examples:\n  argosy cloud label allow team:platform")]
    Allow {
        /// KEY:VALUE.
        label: String,
    },
}

#[derive(Subcommand, Debug)]
enum Fault {
    Add(NewFault),
    /// Clear a fault.
    #[command(after_help = "Examples:\n  argosy cloud fault clear 1")]
    Clear {
        /// Its number, as `add` printed it.
        id: u64,
    },
}

/// Inject a fault.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy cloud fault add Timeout --match alpha --after-s 5
  argosy cloud fault add HealthCheckFailed --match 'demo-*' --count 3
  argosy cloud fault add ProvisioningFailed --match workers --node 3 --code ZONE_RESOURCE_POOL_EXHAUSTED
  argosy cloud fault add CreateTimesOut --match workers --count 1 --done false
  argosy cloud fault add StockOut --match gcp --zone us-east1-b
  argosy cloud fault add Reclaim --match workers --count 1 --after-s 30")]
struct NewFault {
    /// What goes wrong.
    kind: FaultKind,
    /// Which clusters, node pools or machines, by name, or which providers; `gpu-*` for all that begin so.
    #[arg(long = "match", value_name = "NAME", default_value = "*")]
    matching: String,
    /// After how many strikes it goes away by itself.
    #[arg(long)]
    count: Option<u32>,
    /// Timeout, Reclaim, Throttled, ListsLag: after how many seconds.
    #[arg(long, value_name = "SECONDS")]
    after_s: Option<u32>,
    /// ProvisioningFailed: which node, from 1.
    #[arg(long)]
    node: Option<u32>,
    /// ProvisioningFailed, StockOut: the provider's error code.
    #[arg(long)]
    code: Option<String>,
    /// CreateTimesOut, CreateErrors: whether the machine is made all the same.
    #[arg(long, value_name = "BOOL")]
    done: Option<bool>,
    /// StockOut: in which zone.
    #[arg(long)]
    zone: Option<String>,
    /// StockOut: of which machine type.
    #[arg(long, value_name = "TYPE")]
    machine_type: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum FaultKind {
    Timeout,
    HealthCheckFailed,
    ProvisioningFailed,
    CreateTimesOut,
    CreateErrors,
    TagsLost,
    BootFails,
    Kill,
    Reclaim,
    DeleteLies,
    DeleteErrors,
    StockOut,
    Throttled,
    CredentialsRevoked,
    ListsLag,
    ListsEmpty,
    ListsHalf,
    ListsBreak,
}

/// Where the console is.
const BASE: &str = "/simulated-cloud/v1";

/// What to do where there is no console.
const NO_CLOUD: &str = "the server must run with --simulated-cloud";

/// `argosy cloud`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    let (method, path, body, done) = request(verb.verb);
    let answer = session.client.send(method, &format!("{BASE}{path}"), body.as_ref()).await;
    let value = answer.map_err(|error| failure(session, error, NO_CLOUD))?;
    match (done, session.format) {
        (Some(done), Format::Table | Format::Wide | Format::Name) => match value.get("id") {
            Some(id) => note(&format!("{done}; its number is {id}")),
            None => note(&done),
        },
        (None, Format::Table | Format::Wide | Format::Name | Format::Yaml)
        | (Some(_), Format::Yaml) => {
            print(&document(&value, true));
        }
        (_, Format::Json) => print(&document(&value, false)),
    }
    Ok(Exit::Ok)
}

/// What a command asks of the console, and what is said when it is done.
fn request(verb: Verbs) -> (Method, String, Option<Value>, Option<String>) {
    match verb {
        Verbs::Show => (Method::GET, String::new(), None, None),
        Verbs::Machines => (Method::GET, "/machines".to_owned(), None, None),
        Verbs::Inject { machine, what } => (
            Method::POST,
            format!("/machines/{}/inject", segment(&machine)),
            Some(json!({ "what": what.join(" ") })),
            said("it has happened"),
        ),
        Verbs::Zone(Zone::Add { domain }) => {
            (Method::PUT, format!("/zones/{}", segment(&domain)), None, said("the zone is there"))
        }
        Verbs::Zone(Zone::Remove { domain }) => {
            (Method::DELETE, format!("/zones/{}", segment(&domain)), None, said("the zone is gone"))
        }
        Verbs::Quota(Quota::Set { provider, region, resource, limit, used_by_others }) => {
            let place = [&provider, &region, &resource.to_uppercase()].map(|part| segment(part));
            let body = json!({ "limit": limit, "used_by_others": used_by_others });
            (
                Method::PUT,
                format!("/quotas/{}", place.join("/")),
                Some(body),
                said("the quota is set"),
            )
        }
        Verbs::Permission(permission) => {
            let (method, provider, name, done) = match permission {
                Permission::Deny { provider, permission } => {
                    (Method::PUT, provider, permission, "the permission is denied")
                }
                Permission::Allow { provider, permission } => {
                    (Method::DELETE, provider, permission, "the permission is given")
                }
            };
            let path = format!("/permissions/{}/denied/{}", segment(&provider), segment(&name));
            (method, path, None, said(done))
        }
        Verbs::Label(Label::Deny { label }) => (
            Method::PUT,
            format!("/denied-labels/{}", segment(&label)),
            None,
            said("the label is denied"),
        ),
        Verbs::Label(Label::Allow { label }) => (
            Method::DELETE,
            format!("/denied-labels/{}", segment(&label)),
            None,
            said("the label is allowed"),
        ),
        Verbs::Fault(Fault::Add(fault)) => {
            (Method::POST, "/faults".to_owned(), Some(fault.body()), said("the fault is in place"))
        }
        Verbs::Fault(Fault::Clear { id }) => {
            (Method::DELETE, format!("/faults/{id}"), None, said("the fault is cleared"))
        }
    }
}

fn said(done: &str) -> Option<String> {
    Some(done.to_owned())
}

impl NewFault {
    fn body(&self) -> Value {
        let mut params = Map::new();
        params.extend(self.after_s.map(|after| ("after_s".to_owned(), json!(after))));
        params.extend(self.node.map(|node| ("node".to_owned(), json!(node))));
        params.extend(self.code.as_ref().map(|code| ("code".to_owned(), json!(code))));
        params.extend(self.done.map(|done| ("done".to_owned(), json!(done))));
        params.extend(self.zone.as_ref().map(|zone| ("zone".to_owned(), json!(zone))));
        let machine_type = self.machine_type.as_ref();
        params.extend(machine_type.map(|of| ("machine_type".to_owned(), json!(of))));
        let kind = format!("{:?}", self.kind);
        let mut body = json!({ "kind": kind, "match": self.matching, "params": params });
        if let (Some(count), Value::Object(members)) = (self.count, &mut body) {
            members.insert("count".to_owned(), json!(count));
        }
        body
    }
}

/// The console is not the API: its complaints have a sentence, and no code. `absent` is what to do where
/// there is none.
pub(super) fn failure(session: &Session, error: ClientError, absent: &str) -> Failure {
    if let ClientError::Unexpected { status, text, .. } = &error
        && let Ok(problem) = serde_json::from_str::<Value>(text)
        && let Some(detail) = problem.get("detail").and_then(Value::as_str)
    {
        let exit = if *status == 404 { Exit::NotFound } else { Exit::Failed };
        return Failure::new(exit, clean(detail));
    }
    let missing = error.status() == Some(404);
    let failure = session.failure(error);
    if missing { failure.fix(absent) } else { failure }
}

/// A text as one segment of a path.
fn segment(text: &str) -> String {
    let keep = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes()
        .map(|byte| match keep(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words are the console's: one that it does not know would be refused only when it is used.
    #[test]
    fn every_kind_of_fault_is_known_to_the_console() {
        for kind in FaultKind::value_variants() {
            let known = serde_json::from_value::<argosy_providers::simulated::FaultKind>(json!(
                format!("{kind:?}")
            ));
            assert!(known.is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn each_command_asks_one_thing_of_the_console() {
        let fault = NewFault {
            kind: FaultKind::Timeout,
            matching: "a".to_owned(),
            count: Some(2),
            after_s: Some(5),
            node: None,
            code: None,
            done: None,
            zone: None,
            machine_type: None,
        };
        let shortage = NewFault {
            kind: FaultKind::StockOut,
            matching: "*".to_owned(),
            count: None,
            after_s: None,
            node: None,
            code: None,
            done: None,
            zone: Some("z".to_owned()),
            machine_type: None,
        };
        let rows = [
            (Verbs::Show, "GET  null"),
            (Verbs::Machines, "GET /machines null"),
            (
                Verbs::Inject {
                    machine: "w-1".to_owned(),
                    what: vec!["xid:79".to_owned(), "gpu:3".to_owned()],
                },
                r#"POST /machines/w-1/inject {"what":"xid:79 gpu:3"}"#,
            ),
            (Verbs::Zone(Zone::Add { domain: "a.b/c".to_owned() }), "PUT /zones/a.b%2Fc null"),
            (
                Verbs::Quota(Quota::Set {
                    provider: "gcp".to_owned(),
                    region: "r".to_owned(),
                    resource: "cpus".to_owned(),
                    limit: 4,
                    used_by_others: 0,
                }),
                r#"PUT /quotas/gcp/r/CPUS {"limit":4,"used_by_others":0}"#,
            ),
            (
                Verbs::Permission(Permission::Allow {
                    provider: "gcp".to_owned(),
                    permission: "a.b".to_owned(),
                }),
                "DELETE /permissions/gcp/denied/a.b null",
            ),
            (
                Verbs::Label(Label::Deny { label: "team:x".to_owned() }),
                "PUT /denied-labels/team%3Ax null",
            ),
            (
                Verbs::Fault(Fault::Add(fault)),
                r#"POST /faults {"count":2,"kind":"Timeout","match":"a","params":{"after_s":5}}"#,
            ),
            (
                Verbs::Fault(Fault::Add(shortage)),
                r#"POST /faults {"kind":"StockOut","match":"*","params":{"zone":"z"}}"#,
            ),
            (Verbs::Fault(Fault::Clear { id: 3 }), "DELETE /faults/3 null"),
        ];
        for (verb, expected) in rows {
            let (method, path, body, _) = request(verb);
            assert_eq!(format!("{method} {path} {}", body.unwrap_or_default()), expected);
        }
    }
}
