//! `navarch.ControlPlaneService`, for unmodified daemons and command lines.

mod list;

use super::convert::navarch as convert;
use super::{caller, check_id, one};
use crate::Server;
use crate::problem::rpc::{internal, node_status, status};
use argosy_api::rpc::navarch::{
    ControlPlaneService, GetInstanceRequest, GetInstanceResponse, GetInstanceResponseView,
    GetNodeCommandsRequest, GetNodeCommandsResponse, GetNodeRequest, GetNodeResponse,
    GetNodeResponseView, HeartbeatRequest, HeartbeatResponse, IssueCommandRequest,
    IssueCommandResponse, ListInstancesRequest, ListInstancesRequestView, ListInstancesResponse,
    ListNodesRequest, ListNodesRequestView, ListNodesResponse, RegisterNodeRequest,
    RegisterNodeResponse, ReportHealthRequest, ReportHealthResponse,
};
use argosy_control::command::{NewCommand, Wire};
use argosy_control::pulse::Via;
use argosy_control::safety::Beyond;
use argosy_control::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::command::{Command, CommandKind};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::instance::Instance;
use argosy_core::label::Labels;
use argosy_core::node::Node;
use buffa::MessageFieldView;
use connectrpc::{
    ConnectError, PreEncoded, Protocol, RequestContext, Response, ServiceRequest, ServiceResult,
};
use jiff::SignedDuration;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The service.
pub(crate) struct Navarch {
    server: Arc<Server>,
}

impl Navarch {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server }
    }

    /// The nodes of a list, each with when it was last heard.
    fn listed(
        &self,
        context: &RequestContext,
        request: &ListNodesRequestView<'_>,
    ) -> Result<Vec<list::Listed>, ConnectError> {
        let caller = caller(context, Verb::Read)?;
        let any_status = request.status.to_i32() == 0;
        let mut listed = Vec::new();
        let wanted = |asked: &str, is: &str| asked.is_empty() || asked == is;
        let look = &mut |node: &Stored<Node>, live: &argosy_control::pulse::Live| {
            let (place, is) = (&node.value.place, convert::status(node.value.status()));
            if wanted(request.provider, &place.provider)
                && wanted(request.region, &place.region)
                && (any_status || request.status == is)
            {
                listed.push((Arc::clone(&node.value), live.heard_at));
            }
        };
        self.server.control.nodes.each(caller, look).map_err(status)?;
        Ok(listed)
    }

    /// The instances of a list, those that are over for as long as they are kept.
    fn listed_instances(
        &self,
        context: &RequestContext,
        request: &ListInstancesRequestView<'_>,
    ) -> Result<Vec<list::ListedInstance>, ConnectError> {
        let caller = caller(context, Verb::Read)?;
        let instances = &self.server.control.instances;
        let any_state = request.state.to_i32() == 0;
        let mut found = Vec::new();
        let wanted = |asked: &str, is: &str| asked.is_empty() || asked == is;
        let look = &mut |stored: &Stored<Instance>| {
            let instance = &stored.value;
            if wanted(request.provider, &instance.order.provider)
                && wanted(request.region, &instance.order.region)
                && wanted(request.pool_name, &instance.pool_name)
                && (any_state || request.state == convert::instance_state(&instance.state))
            {
                found.push(Arc::clone(instance));
            }
        };
        instances.each(caller, look).map_err(status)?;
        let mut labels: HashMap<ResourceId, Arc<Labels>> = HashMap::new();
        let listed = found.into_iter().map(|instance| list::ListedInstance {
            message: instance.message().into_owned(),
            labels: labels
                .entry(instance.pool)
                .or_insert_with(|| Arc::new(instances.labels_of(instance.pool)))
                .clone(),
            instance,
        });
        Ok(listed.collect())
    }

    /// The command that an order would only repeat. On this wire a cordon of what is cordoned succeeds.
    fn standing(
        &self,
        caller: &Caller,
        node: &str,
        kind: CommandKind,
        asked: &BTreeMap<String, String>,
    ) -> Option<Stored<Command>> {
        let open = self.server.control.commands.list(caller, Some(node), true).ok()?;
        let same = |open: &Stored<Command>| {
            open.value.kind == kind && (asked.is_empty() || open.value.parameters == *asked)
        };
        open.into_iter().find(same)
    }
}

#[expect(refining_impl_trait, reason = "nobody but the generated dispatcher calls it")]
impl ControlPlaneService for Navarch {
    async fn register_node(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, RegisterNodeRequest>,
    ) -> ServiceResult<RegisterNodeResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        let registration = convert::registration(request.view()).map_err(one)?;
        let registered = self.server.control.nodes.register(&caller, registration).await;
        let (_, config) = registered.map_err(|error| failed("registration failed", error))?;
        Response::ok(RegisterNodeResponse {
            success: true,
            message: "registration successful".to_owned(),
            config: Some(convert::config(&config)).into(),
        })
    }

    async fn report_health(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, ReportHealthRequest>,
    ) -> ServiceResult<ReportHealthResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        check_id(request.node_id)?;
        let report = convert::report(request.view()).map_err(one)?;
        let reported = self.server.control.nodes.report(&caller, request.node_id, report).await;
        let answer = reported.map_err(node_status)?;
        Response::ok(ReportHealthResponse {
            acknowledged: true,
            node_status: convert::status(answer.status),
        })
    }

    async fn send_heartbeat(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, HeartbeatRequest>,
    ) -> ServiceResult<HeartbeatResponse> {
        let caller = caller(&context, Verb::Attend)?;
        let beat = convert::heartbeat(request.view()).map_err(one)?;
        let nodes = &self.server.control.nodes;
        nodes.heartbeat(caller, request.node_id, Via::Call, beat).map_err(node_status)?;
        Response::ok(HeartbeatResponse { acknowledged: true })
    }

    async fn get_node_commands(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, GetNodeCommandsRequest>,
    ) -> ServiceResult<GetNodeCommandsResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        check_id(request.node_id)?;
        let commands = &self.server.control.commands;
        let fetched = commands.fetch(&caller, request.node_id, Wire::Navarch).await;
        let commands = fetched.map_err(node_status)?;
        let commands = commands.iter().map(|command| convert::command(command)).collect();
        Response::ok(GetNodeCommandsResponse { commands })
    }

    async fn list_nodes(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, ListNodesRequest>,
    ) -> ServiceResult<list::Listing<ListNodesResponse>> {
        let listed = self.listed(&context, request.view())?;
        let asked = Protocol::detect(context.headers()).ok_or_else(internal)?;
        list::write(&listed, asked.codec_format).await
    }

    async fn get_node(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, GetNodeRequest>,
    ) -> ServiceResult<PreEncoded<GetNodeResponse>> {
        let caller = caller(&context, Verb::Read)?;
        check_id(request.node_id)?;
        let found = self.server.control.nodes.get(caller, request.node_id);
        let (node, live) = found.map_err(status)?;
        let node = MessageFieldView::some(convert::node(&node.value, live.heard_at));
        Response::ok(PreEncoded::from_view(&GetNodeResponseView { node }))
    }

    async fn issue_command(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, IssueCommandRequest>,
    ) -> ServiceResult<IssueCommandResponse> {
        let caller = self.server.signed(caller(&context, Verb::Write)?);
        check_id(request.node_id)?;
        let kind = convert::kind(request.command_type).map_err(one)?;
        let mut parameters = convert::parameters(request.view()).map_err(one)?;
        let new = NewCommand {
            kind,
            reason: parameters.remove("reason").unwrap_or_default(),
            drain_for: drain_for(kind, &parameters).map_err(one)?,
            parameters,
            idempotency_key: header(&context, "idempotency-key"),
            if_revision: None,
            dry_run: false,
            // The wire has no member to ask for it, and its clients no way to understand a refusal.
            beyond: Beyond::Count,
        };
        let asked = new.parameters.clone();
        let mut issued = self.server.control.commands.issue(&caller, request.node_id, new).await;
        if let Err(Error::Precondition(_)) = issued
            && let Some(standing) = self.standing(&caller, request.node_id, kind, &asked)
        {
            issued = Ok(standing);
        }
        let failed = |error| match kind {
            CommandKind::Cordon => failed("failed to cordon node", error),
            CommandKind::Uncordon => failed("failed to uncordon node", error),
            CommandKind::Drain => failed("failed to drain node", error),
            CommandKind::RunDiagnostic | CommandKind::Terminate => status(error),
        };
        let command = issued.map_err(failed)?.value;
        Response::ok(IssueCommandResponse {
            command_id: command.id.to_string(),
            issued_at: Some(convert::stamp(command.issued_at)).into(),
        })
    }

    async fn list_instances(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, ListInstancesRequest>,
    ) -> ServiceResult<list::Listing<ListInstancesResponse>> {
        let listed = self.listed_instances(&context, request.view())?;
        let asked = Protocol::detect(context.headers()).ok_or_else(internal)?;
        list::write(&listed, asked.codec_format).await
    }

    async fn get_instance(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, GetInstanceRequest>,
    ) -> ServiceResult<PreEncoded<GetInstanceResponse>> {
        let caller = caller(&context, Verb::Read)?;
        if request.instance_id.is_empty() {
            return Err(ConnectError::invalid_argument("instance_id is required"));
        }
        // What was asked for may be anything, and is repeated only as far as an id could go.
        let id: String = request.instance_id.chars().take(256).collect();
        let instances = &self.server.control.instances;
        let instance = instances.get(caller, &id).map_err(status)?.stored.value;
        let (message, labels) = (instance.message(), instances.labels_of(instance.pool));
        let instance = convert::instance(&instance, &message, &labels);
        let instance = MessageFieldView::some(instance);
        Response::ok(PreEncoded::from_view(&GetInstanceResponseView { instance }))
    }
}

/// How long a drain may take, by the parameter Navarch's nodes know.
fn drain_for(
    kind: CommandKind,
    parameters: &BTreeMap<String, String>,
) -> Result<Option<SignedDuration>, FieldError> {
    let Some(text) = parameters.get("timeout").filter(|_| kind == CommandKind::Drain) else {
        return Ok(None);
    };
    match text.parse::<u32>() {
        Ok(seconds @ 1..) => Ok(Some(SignedDuration::from_secs(seconds.into()))),
        Ok(0) | Err(_) => {
            let message = "parameters.timeout is not a whole number of seconds, at least 1";
            Err(FieldError::new("parameters.timeout", Constraint::Format, message))
        }
    }
}

fn header(context: &RequestContext, name: &str) -> Option<String> {
    context.header(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// An error of the store begins with what failed; any other says so itself.
fn failed(what: &str, error: Error) -> ConnectError {
    let stored = matches!(error, Error::Store(_) | Error::Invariant(_));
    let mut error = status(error);
    if stored && let Some(message) = &mut error.message {
        *message = format!("{what}: {message}");
    }
    error
}
