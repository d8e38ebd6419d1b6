//! `argosy.v1.NodeService`, for our own agents.

use super::convert::node as convert;
use super::{attach, caller, check_id, one};
use crate::Server;
use crate::problem::rpc::{node_status, status};
use argosy_api::rpc::node::{
    AckCommandRequest, AckCommandResponse, AttachRequest, AttachResponse, HeartbeatRequest,
    HeartbeatResponse, NodeService, PollCommandsRequest, PollCommandsResponse, RegisterNodeRequest,
    RegisterNodeResponse, ReportHealthRequest, ReportHealthResponse,
};
use argosy_control::command::Wire;
use argosy_control::node::NodeConfig;
use argosy_control::pulse::Via;
use argosy_core::access::Verb;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::node::Node;
use axum::http::header::AUTHORIZATION;
use connectrpc::{
    InboundStream, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream,
};
use std::sync::Arc;

/// The service.
pub(crate) struct Nodes {
    server: Arc<Server>,
}

impl Nodes {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server }
    }
}

#[expect(refining_impl_trait, reason = "nobody but the generated dispatcher calls it")]
impl NodeService for Nodes {
    async fn register_node(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, RegisterNodeRequest>,
    ) -> ServiceResult<RegisterNodeResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        let registration = convert::registration(request.view()).map_err(one)?;
        let registered = self.server.control.nodes.register(&caller, registration).await;
        let (node, config) = registered.map_err(status)?;
        Response::ok(registered_as(&self.server, &node.value, &config))
    }

    async fn heartbeat(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, HeartbeatRequest>,
    ) -> ServiceResult<HeartbeatResponse> {
        let caller = caller(&context, Verb::Attend)?;
        let id = request.heartbeat.node_id;
        let beat =
            convert::heartbeat(&request.heartbeat).map_err(|e| one(under("heartbeat", e)))?;
        let nodes = &self.server.control.nodes;
        let answer = nodes.heartbeat(caller, id, Via::Call, beat).map_err(node_status)?;
        let config = if answer.config_revision == request.config_revision {
            None
        } else {
            Some(nodes.config(caller, id, Via::Call).map_err(node_status)?)
        };
        Response::ok(HeartbeatResponse {
            config: config.as_ref().map(convert::config).into(),
            commands_waiting: answer.commands_wait,
            next_interval_seconds: answer.next_s,
        })
    }

    async fn report_health(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, ReportHealthRequest>,
    ) -> ServiceResult<ReportHealthResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        check_id(request.node_id)?;
        let report = convert::report(&request.report).map_err(|e| one(under("report", e)))?;
        let sequence = request.report.sequence;
        let nodes = &self.server.control.nodes;
        let answer = nodes.report(&caller, request.node_id, report).await.map_err(node_status)?;
        let config = nodes.config(&caller, request.node_id, Via::Call).map_err(node_status)?;
        Response::ok(ReportHealthResponse {
            status: convert::status(answer.status),
            health: convert::health(answer.health),
            config_revision: config.revision,
            stale: !answer.news,
            sequence,
        })
    }

    async fn poll_commands(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, PollCommandsRequest>,
    ) -> ServiceResult<PollCommandsResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        check_id(request.node_id)?;
        let commands = &self.server.control.commands;
        let fetched = commands.fetch(&caller, request.node_id, Wire::Argosy).await;
        let commands = fetched.map_err(node_status)?;
        let told = convert::Telling::to(&self.server.control, request.node_id);
        let commands = commands.iter().map(|command| convert::command(command, told)).collect();
        Response::ok(PollCommandsResponse { commands })
    }

    async fn ack_command(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, AckCommandRequest>,
    ) -> ServiceResult<AckCommandResponse> {
        let caller = self.server.signed(caller(&context, Verb::Attend)?);
        check_id(request.node_id)?;
        let (id, ack) = convert::ack(&request.ack).map_err(|error| one(under("ack", error)))?;
        let commands = &self.server.control.commands;
        let command = commands.acknowledge(&caller, request.node_id, id, ack).await;
        Response::ok(convert::state(&command.map_err(node_status)?.value))
    }

    async fn attach(
        &self,
        context: RequestContext,
        requests: InboundStream<AttachRequest>,
    ) -> ServiceResult<ServiceStream<AttachResponse>> {
        let caller = caller(&context, Verb::Attend)?.clone();
        // Kept for as long as the stream: no more of the headers than is looked at again.
        let credentials = context.headers().get_all(AUTHORIZATION).iter().cloned();
        let credentials = credentials.map(|value| (AUTHORIZATION, value)).collect();
        Response::stream_ok(attach::stream(self.server.clone(), caller, credentials, requests))
    }
}

/// What a node is told when it has registered.
pub(super) fn registered_as(
    server: &Server,
    node: &Node,
    config: &NodeConfig,
) -> RegisterNodeResponse {
    RegisterNodeResponse {
        config: Some(convert::config(config)).into(),
        status: convert::status(node.status()),
        health: convert::health(node.health.state),
        health_sequence: health_sequence(server, node),
    }
}

/// The number of the last health report that was taken. One that changed nothing is not in the document.
pub(super) fn health_sequence(server: &Server, node: &Node) -> u64 {
    let pulse = server.control.nodes.board.find(node.id.as_str());
    pulse.map_or(0, |pulse| pulse.report_sequence()).max(node.report_sequence)
}

/// The same complaint about a field of a message inside another.
fn under(parent: &str, error: FieldError) -> FieldError {
    let FieldError { field, message, .. } = error;
    let message = message.replacen(&field, &format!("{parent}.{field}"), 1);
    FieldError::new(
        format!("{parent}.{field}"),
        error.constraint.unwrap_or(Constraint::Format),
        message,
    )
}
