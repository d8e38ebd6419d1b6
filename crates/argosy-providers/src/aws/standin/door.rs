//! The door in front of moto.

use super::super::answer::{Instances, Page, Reservation, Types};
use super::super::query::Query;
use super::super::xml;
use super::{REGION, Tricks};
use argosy_control::clock::Clock;
use argosy_core::machine::{Machine, MachineState};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use reqwest::Url;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) struct Door {
    moto: Url,
    account: String,
    http: reqwest::Client,
    clock: Clock,
    world: Mutex<World>,
    /// One launch at a time: two with the same token must see each other.
    launching: tokio::sync::Mutex<()>,
}

/// What moto does not keep.
#[derive(Default)]
pub(super) struct World {
    pub(super) tricks: Tricks,
    /// How much time was let pass.
    pub(super) passed: Duration,
    /// Machine, code and time of scheduled events.
    pub(super) events: BTreeMap<String, (String, String)>,
    /// Spot machines that are taken back, and when that was said.
    pub(super) reclaimed: BTreeMap<String, String>,
    /// What machines were given to boot with.
    pub(super) user_data: HashMap<String, String>,
    launches: HashMap<String, Launch>,
    /// When each machine was made.
    born: HashMap<String, Duration>,
    known_types: HashMap<String, bool>,
}

/// What came of a token.
struct Launch {
    parameters: Parameters,
    machine: String,
    answer: Bytes,
}

type Parameters = Vec<(String, String)>;

/// What moto or the door says.
struct Said {
    status: StatusCode,
    body: Bytes,
}

/// How the door ends a call.
enum Reply {
    Said(Said),
    /// The connection breaks.
    Silence,
}

pub(super) fn router(door: Arc<Door>) -> Router {
    Router::new().fallback(answer).with_state(door)
}

async fn answer(
    State(door): State<Arc<Door>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let reply = if uri.path() == "/" {
        door.ec2(&headers, parameters(&body)).await
    } else {
        door.dns(method, path, &headers, body).await
    };
    match reply {
        Reply::Said(Said { status, body }) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            response
        }
        Reply::Silence => {
            let broken = std::io::Error::other("the door was told not to answer");
            let stream = futures_util::stream::once(async { Err::<Bytes, _>(broken) });
            Response::new(Body::from_stream(stream))
        }
    }
}

fn parameters(body: &[u8]) -> Parameters {
    let mut form = Url::parse("http://form.invalid/").expect("a URL that stands here");
    form.set_query(std::str::from_utf8(body).ok());
    form.query_pairs().into_owned().collect()
}

fn value<'a>(parameters: &'a Parameters, name: &str) -> Option<&'a str> {
    parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn set(parameters: &mut Parameters, name: &str, value: &str) {
    parameters.retain(|(key, _)| key != name);
    parameters.push((name.to_owned(), value.to_owned()));
}

fn form(parameters: &Parameters) -> String {
    let mut form = Url::parse("http://form.invalid/").expect("a URL that stands here");
    form.query_pairs_mut().extend_pairs(parameters);
    form.query().unwrap_or_default().to_owned()
}

/// Has a listing show no machines but these. Of two filters by id moto heeds one, so what is asked for by id
/// already stays in its filter, as far as it is shown.
fn only(parameters: &mut Parameters, shown: &[String]) {
    let by_id = parameters
        .iter()
        .find(|(key, value)| key.ends_with(".Name") && value == "instance-id")
        .map(|(key, _)| key.trim_end_matches("Name").to_owned());
    if let Some(filter) = by_id {
        for (key, id) in parameters.iter_mut().filter(|(key, _)| key.starts_with(&filter)) {
            if !key.ends_with(".Name") && !shown.contains(id) {
                NOBODY.clone_into(id);
            }
        }
        return;
    }
    let filters = parameters.iter().filter(|(key, _)| key.ends_with(".Name")).count();
    let filter = format!("Filter.{}", filters + 1);
    parameters.push((format!("{filter}.Name"), "instance-id".to_owned()));
    let nobody = [NOBODY.to_owned()];
    let ids = if shown.is_empty() { &nobody } else { shown };
    for (at, id) in ids.iter().enumerate() {
        parameters.push((format!("{filter}.Value.{}", at + 1), id.clone()));
    }
}

/// An error as EC2 writes it.
fn error(status: StatusCode, code: &str, message: &str) -> Reply {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response><Errors><Error><Code>{code}</Code>\
         <Message>{message}</Message></Error></Errors><RequestID>door</RequestID></Response>"
    );
    Reply::Said(Said { status, body: body.into() })
}

/// Counts down; whether there was one left.
fn one_of(left: &mut u32) -> bool {
    let some = 0 < *left;
    *left = left.saturating_sub(1);
    some
}

/// What the keys of a call say they are for, as moto reads it.
fn authorization(service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/{REGION}/{service}/aws4_request, \
         SignedHeaders=host, Signature=none"
    )
}

/// An id that no machine has.
const NOBODY: &str = "i-00000000000000000";

impl Door {
    pub(super) fn new(moto: Url, clock: Clock) -> Self {
        static ACCOUNTS: AtomicU64 = AtomicU64::new(0);
        let account = 100_000_000_000 + ACCOUNTS.fetch_add(1, Ordering::Relaxed);
        Self {
            moto,
            account: account.to_string(),
            http: reqwest::Client::builder().no_proxy().build().expect("an HTTP client"),
            clock,
            world: Mutex::default(),
            launching: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.clock.monotonic() + self.world().passed
    }

    pub(super) async fn ec2_by_hand(&self, query: &Query) -> Bytes {
        self.forward_ec2(&authorization("ec2"), query.body()).await.body
    }

    pub(super) async fn dns_by_hand(&self, path: &str, body: Option<String>) -> Bytes {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let (path, body) = (format!("/2013-04-01/{path}"), body.unwrap_or_default());
        self.forward(method, &path, &authorization("route53"), "text/xml", body.into()).await.body
    }

    async fn forward_ec2(&self, authorization: &str, body: String) -> Said {
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        self.forward(Method::POST, "/", authorization, form, body.into()).await
    }

    async fn forward(
        &self,
        method: Method,
        path: &str,
        authorization: &str,
        content_type: &str,
        body: Bytes,
    ) -> Said {
        let url = self.moto.join(path).expect("a path");
        let request = self.http.request(method, url).body(body);
        let request = request
            .header(header::AUTHORIZATION, authorization)
            .header(header::CONTENT_TYPE, content_type)
            .header("x-moto-account-id", &self.account);
        let answer = request.send().await.expect("moto answers");
        let status = answer.status();
        let body = answer.bytes().await.expect("moto answers to the end");
        Said { status, body }
    }

    /// What is refused before anything is done.
    fn refuses(&self, action: &str) -> Option<Reply> {
        let tricks = &mut self.world().tricks;
        if one_of(&mut tricks.throttled) {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Some(error(status, "RequestLimitExceeded", "Request limit exceeded."));
        }
        if tricks.revoked {
            let message = "AWS was not able to validate the provided access credentials";
            return Some(error(StatusCode::UNAUTHORIZED, "AuthFailure", message));
        }
        if tricks.denied.iter().any(|denied| denied == action) {
            let service = if action.contains("Record") || action.contains("Zone") {
                "route53"
            } else {
                "ec2"
            };
            let message = format!(
                "You are not authorized to perform this operation. User: \
                 arn:aws:iam::{}:user/argosy is not authorized to perform: {service}:{action} on \
                 resource: * because no identity-based policy allows it. Encoded authorization \
                 failure message: AAAA",
                self.account
            );
            return Some(error(StatusCode::FORBIDDEN, "UnauthorizedOperation", &message));
        }
        None
    }

    async fn dns(&self, method: Method, path: &str, headers: &HeaderMap, body: Bytes) -> Reply {
        let action = match (&method, path.contains("/rrset")) {
            (&Method::POST, true) => "ChangeResourceRecordSets",
            (_, true) => "ListResourceRecordSets",
            (_, false) => "ListHostedZonesByName",
        };
        if let Some(reply) = self.refuses(action) {
            return reply;
        }
        Reply::Said(self.forward(method, path, sent(headers), "text/xml", body).await)
    }

    async fn ec2(self: &Arc<Self>, headers: &HeaderMap, parameters: Parameters) -> Reply {
        let action = value(&parameters, "Action").unwrap_or_default().to_owned();
        if let Some(reply) = self.refuses(&action) {
            return reply;
        }
        let dry = value(&parameters, "DryRun") == Some("true");
        match action.as_str() {
            "RunInstances" if !dry => self.launch(sent(headers), parameters).await,
            "DescribeInstances" => self.listing(sent(headers), parameters).await,
            "TerminateInstances" => self.termination(sent(headers), parameters).await,
            "DescribeInstanceStatus" => self.statuses(),
            "DescribeSpotInstanceRequests" => self.spot_requests(),
            "DescribeInstanceTypes" | "DescribeInstanceTypeOfferings" => {
                // On a slow machine whoever asked gives up first: the answer is there when they ask again.
                let (door, sent, body) =
                    (self.clone(), sent(headers).to_owned(), form(&parameters));
                #[expect(
                    clippy::disallowed_methods,
                    reason = "it outlives whoever asked, and is awaited by whoever still waits"
                )]
                let asking = tokio::spawn(async move { door.goods(&sent, body).await });
                Reply::Said(asking.await.expect("moto answers"))
            }
            _ => Reply::Said(self.forward_ec2(sent(headers), form(&parameters)).await),
        }
    }

    async fn launch(&self, sent: &str, parameters: Parameters) -> Reply {
        let _one_at_a_time = self.launching.lock().await;
        if one_of(&mut self.world().tricks.launches_lost) {
            return Reply::Silence;
        }
        let kind = value(&parameters, "InstanceType").unwrap_or_default();
        if !self.sells(kind).await {
            let message = format!("Invalid value '{kind}' for InstanceType.");
            return error(StatusCode::BAD_REQUEST, "InvalidParameterValue", &message);
        }
        let token = value(&parameters, "ClientToken").unwrap_or_default().to_owned();
        if let Some(launch) = self.world().launches.get(&token) {
            if launch.parameters == parameters {
                return Reply::Said(Said { status: StatusCode::OK, body: launch.answer.clone() });
            }
            let message = "Arguments on this idempotent request are inconsistent with arguments \
                           used in previous request(s).";
            return error(StatusCode::BAD_REQUEST, "IdempotentParameterMismatch", message);
        }
        if let Some(reply) = self.sold_out() {
            return reply;
        }
        let said = self.forward_ec2(sent, form(&parameters)).await;
        if !said.status.is_success() {
            return Reply::Said(said);
        }
        self.remember(token, parameters, &said.body);
        let tricks = &mut self.world().tricks;
        if one_of(&mut tricks.launches_unanswered) {
            return Reply::Silence;
        }
        if one_of(&mut tricks.launches_with_error) {
            let message = "An internal error has occurred";
            return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        }
        Reply::Said(said)
    }

    fn sold_out(&self) -> Option<Reply> {
        let tricks = &self.world().tricks;
        if tricks.no_quota {
            let message = "You have requested more vCPU capacity than your current vCPU limit of \
                           32 allows for the instance bucket that the specified instance type \
                           belongs to.";
            return Some(error(StatusCode::BAD_REQUEST, "VcpuLimitExceeded", message));
        }
        if tricks.no_capacity {
            let message = "We currently do not have sufficient capacity in the Availability Zone \
                           you requested.";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Some(error(status, "InsufficientInstanceCapacity", message));
        }
        None
    }

    fn remember(&self, token: String, parameters: Parameters, answer: &Bytes) {
        let reservation: Reservation = xml::read(answer).expect("moto's own XML");
        let made = reservation.instances.item.first().expect("moto made one");
        let machine = made.instance_id.clone();
        let encoded = value(&parameters, "UserData").unwrap_or_default();
        let user_data = BASE64_STANDARD.decode(encoded).expect("base 64, as we sent it");
        let now = self.now();
        let mut world = self.world();
        world.born.insert(machine.clone(), now);
        let user_data = String::from_utf8_lossy(&user_data).into_owned();
        world.user_data.insert(machine.clone(), user_data);
        let launch = Launch { parameters, machine, answer: answer.clone() };
        world.launches.insert(token, launch);
    }

    /// moto sells machine types that do not exist.
    async fn sells(&self, kind: &str) -> bool {
        if let Some(known) = self.world().known_types.get(kind) {
            return *known;
        }
        let query = Query::read("DescribeInstanceTypes").with("InstanceType.1", kind);
        let answer = self.ec2_by_hand(&query).await;
        let types: Result<Types, _> = xml::read(&answer);
        let known = types
            .is_ok_and(|types| types.split().0.iter().any(|known| known.instance_type == kind));
        self.world().known_types.insert(kind.to_owned(), known);
        known
    }

    /// What moto sells is the same in every account, and takes it seconds to say.
    async fn goods(&self, sent: &str, body: String) -> Said {
        static KNOWN: tokio::sync::Mutex<BTreeMap<String, Bytes>> =
            tokio::sync::Mutex::const_new(BTreeMap::new());
        let mut known = KNOWN.lock().await;
        if let Some(answer) = known.get(&body) {
            return Said { status: StatusCode::OK, body: answer.clone() };
        }
        let said = self.forward_ec2(sent, body.clone()).await;
        if said.status.is_success() {
            known.insert(body, said.body.clone());
        }
        said
    }

    async fn termination(&self, sent: &str, parameters: Parameters) -> Reply {
        if self.world().tricks.terminations_lie {
            let body = "<TerminateInstancesResponse><instancesSet/></TerminateInstancesResponse>";
            return Reply::Said(Said { status: StatusCode::OK, body: body.into() });
        }
        let said = self.forward_ec2(sent, form(&parameters)).await;
        if one_of(&mut self.world().tricks.terminations_with_error) {
            let message = "An internal error has occurred";
            return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        }
        Reply::Said(said)
    }

    async fn listing(&self, sent: &str, mut parameters: Parameters) -> Reply {
        const BROKEN: &str = "breaks-off-here";
        let tricks = self.world().tricks.clone();
        if value(&parameters, "NextToken") == Some(BROKEN) {
            let message = "An internal error has occurred";
            return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        }
        self.know_tokens(&mut parameters);
        if let Some(size) = tricks.page_size {
            set(&mut parameters, "MaxResults", &size.to_string());
        }
        let hides = tricks.lists_empty || tricks.lists_halved || !tricks.list_lag.is_zero();
        if hides {
            let shown = self.shown(&tricks).await;
            only(&mut parameters, &shown);
        }
        let mut said = self.forward_ec2(sent, form(&parameters)).await;
        if tricks.lists_broken {
            let text = String::from_utf8_lossy(&said.body);
            let end = "</DescribeInstancesResponse>";
            let more = format!("<nextToken>{BROKEN}</nextToken>{end}");
            said.body = text.replace(end, &more).into();
        }
        Reply::Said(said)
    }

    /// moto cannot look for tokens: asked for one, it is asked for the machine that came of it.
    fn know_tokens(&self, parameters: &mut Parameters) {
        let world = self.world();
        let tokens: Vec<String> = parameters
            .iter()
            .filter(|(key, value)| key.ends_with(".Name") && value == "client-token")
            .map(|(key, _)| key.trim_end_matches("Name").to_owned())
            .collect();
        for filter in tokens {
            for (key, value) in parameters.iter_mut().filter(|(key, _)| key.starts_with(&filter)) {
                *value = if key.ends_with(".Name") {
                    "instance-id".to_owned()
                } else {
                    let launch = world.launches.get(value);
                    launch.map_or(NOBODY, |launch| launch.machine.as_str()).to_owned()
                };
            }
        }
    }

    /// The machines that a listing shows at all.
    async fn shown(&self, tricks: &Tricks) -> Vec<String> {
        let query = Query::read("DescribeInstances").with("MaxResults", "1000");
        let page: Instances = xml::read(&self.ec2_by_hand(&query).await).expect("moto's own XML");
        let (reservations, _) = page.split();
        let instances = reservations.into_iter().flat_map(|all| all.instances.item);
        let now = self.now();
        let world = self.world();
        let old = |machine: &Machine| {
            let born = world.born.get(machine.id.as_str());
            born.is_none_or(|born| *born + tricks.list_lag <= now)
        };
        let machines = instances.filter_map(|instance| instance.machine(REGION)).filter(old);
        let live = machines.filter(|machine| machine.state != MachineState::Gone);
        let mut shown: Vec<String> = live.map(|machine| machine.id.to_string()).collect();
        if tricks.lists_empty {
            shown.clear();
        }
        if tricks.lists_halved {
            shown = shown.into_iter().step_by(2).collect();
        }
        shown
    }

    fn statuses(&self) -> Reply {
        let mut body = String::from("<DescribeInstanceStatusResponse><instanceStatusSet>");
        for (machine, (code, not_before)) in &self.world().events {
            // Writing to a string cannot fail.
            let _ = write!(
                body,
                "<item><instanceId>{machine}</instanceId><eventsSet><item><code>{code}</code>\
                 <description>scheduled by the door</description><notBefore>{not_before}\
                 </notBefore></item></eventsSet></item>"
            );
        }
        body.push_str("</instanceStatusSet></DescribeInstanceStatusResponse>");
        Reply::Said(Said { status: StatusCode::OK, body: body.into() })
    }

    fn spot_requests(&self) -> Reply {
        let mut body =
            String::from("<DescribeSpotInstanceRequestsResponse><spotInstanceRequestSet>");
        for (machine, said_at) in &self.world().reclaimed {
            let _ = write!(
                body,
                "<item><instanceId>{machine}</instanceId><status>\
                 <code>marked-for-termination</code><updateTime>{said_at}</updateTime><message>\
                 Your Spot Instance is marked for termination.</message></status></item>"
            );
        }
        body.push_str("</spotInstanceRequestSet></DescribeSpotInstanceRequestsResponse>");
        Reply::Said(Said { status: StatusCode::OK, body: body.into() })
    }
}

/// What a call was signed with: moto reads the service from it.
fn sent(headers: &HeaderMap) -> &str {
    headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
