///Shorthand for `OwnedView<RegisterNodeRequestView<'static>>`.
pub type OwnedRegisterNodeRequestView = ::buffa::view::OwnedView<
    __buffa::view::RegisterNodeRequestView<'static>,
>;
///Shorthand for `OwnedView<RegisterNodeResponseView<'static>>`.
pub type OwnedRegisterNodeResponseView = ::buffa::view::OwnedView<
    __buffa::view::RegisterNodeResponseView<'static>,
>;
///Shorthand for `OwnedView<ReportHealthRequestView<'static>>`.
pub type OwnedReportHealthRequestView = ::buffa::view::OwnedView<
    __buffa::view::ReportHealthRequestView<'static>,
>;
///Shorthand for `OwnedView<ReportHealthResponseView<'static>>`.
pub type OwnedReportHealthResponseView = ::buffa::view::OwnedView<
    __buffa::view::ReportHealthResponseView<'static>,
>;
///Shorthand for `OwnedView<HeartbeatRequestView<'static>>`.
pub type OwnedHeartbeatRequestView = ::buffa::view::OwnedView<
    __buffa::view::HeartbeatRequestView<'static>,
>;
///Shorthand for `OwnedView<HeartbeatResponseView<'static>>`.
pub type OwnedHeartbeatResponseView = ::buffa::view::OwnedView<
    __buffa::view::HeartbeatResponseView<'static>,
>;
///Shorthand for `OwnedView<GetNodeCommandsRequestView<'static>>`.
pub type OwnedGetNodeCommandsRequestView = ::buffa::view::OwnedView<
    __buffa::view::GetNodeCommandsRequestView<'static>,
>;
///Shorthand for `OwnedView<GetNodeCommandsResponseView<'static>>`.
pub type OwnedGetNodeCommandsResponseView = ::buffa::view::OwnedView<
    __buffa::view::GetNodeCommandsResponseView<'static>,
>;
///Shorthand for `OwnedView<ListNodesRequestView<'static>>`.
pub type OwnedListNodesRequestView = ::buffa::view::OwnedView<
    __buffa::view::ListNodesRequestView<'static>,
>;
///Shorthand for `OwnedView<ListNodesResponseView<'static>>`.
pub type OwnedListNodesResponseView = ::buffa::view::OwnedView<
    __buffa::view::ListNodesResponseView<'static>,
>;
///Shorthand for `OwnedView<GetNodeRequestView<'static>>`.
pub type OwnedGetNodeRequestView = ::buffa::view::OwnedView<
    __buffa::view::GetNodeRequestView<'static>,
>;
///Shorthand for `OwnedView<GetNodeResponseView<'static>>`.
pub type OwnedGetNodeResponseView = ::buffa::view::OwnedView<
    __buffa::view::GetNodeResponseView<'static>,
>;
///Shorthand for `OwnedView<IssueCommandRequestView<'static>>`.
pub type OwnedIssueCommandRequestView = ::buffa::view::OwnedView<
    __buffa::view::IssueCommandRequestView<'static>,
>;
///Shorthand for `OwnedView<IssueCommandResponseView<'static>>`.
pub type OwnedIssueCommandResponseView = ::buffa::view::OwnedView<
    __buffa::view::IssueCommandResponseView<'static>,
>;
///Shorthand for `OwnedView<ListInstancesRequestView<'static>>`.
pub type OwnedListInstancesRequestView = ::buffa::view::OwnedView<
    __buffa::view::ListInstancesRequestView<'static>,
>;
///Shorthand for `OwnedView<ListInstancesResponseView<'static>>`.
pub type OwnedListInstancesResponseView = ::buffa::view::OwnedView<
    __buffa::view::ListInstancesResponseView<'static>,
>;
///Shorthand for `OwnedView<GetInstanceRequestView<'static>>`.
pub type OwnedGetInstanceRequestView = ::buffa::view::OwnedView<
    __buffa::view::GetInstanceRequestView<'static>,
>;
///Shorthand for `OwnedView<GetInstanceResponseView<'static>>`.
pub type OwnedGetInstanceResponseView = ::buffa::view::OwnedView<
    __buffa::view::GetInstanceResponseView<'static>,
>;
impl ::connectrpc::Encodable<RegisterNodeResponse>
for __buffa::view::RegisterNodeResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<RegisterNodeResponse>
for ::buffa::view::OwnedView<__buffa::view::RegisterNodeResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<ReportHealthResponse>
for __buffa::view::ReportHealthResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<ReportHealthResponse>
for ::buffa::view::OwnedView<__buffa::view::ReportHealthResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<HeartbeatResponse>
for __buffa::view::HeartbeatResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<HeartbeatResponse>
for ::buffa::view::OwnedView<__buffa::view::HeartbeatResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<GetNodeCommandsResponse>
for __buffa::view::GetNodeCommandsResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<GetNodeCommandsResponse>
for ::buffa::view::OwnedView<__buffa::view::GetNodeCommandsResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<ListNodesResponse>
for __buffa::view::ListNodesResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<ListNodesResponse>
for ::buffa::view::OwnedView<__buffa::view::ListNodesResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<GetNodeResponse>
for __buffa::view::GetNodeResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<GetNodeResponse>
for ::buffa::view::OwnedView<__buffa::view::GetNodeResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<IssueCommandResponse>
for __buffa::view::IssueCommandResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<IssueCommandResponse>
for ::buffa::view::OwnedView<__buffa::view::IssueCommandResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<ListInstancesResponse>
for __buffa::view::ListInstancesResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<ListInstancesResponse>
for ::buffa::view::OwnedView<__buffa::view::ListInstancesResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
impl ::connectrpc::Encodable<GetInstanceResponse>
for __buffa::view::GetInstanceResponseView<'_> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self, codec)
    }
}
impl ::connectrpc::Encodable<GetInstanceResponse>
for ::buffa::view::OwnedView<__buffa::view::GetInstanceResponseView<'static>> {
    fn encode(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::buffa::bytes::Bytes, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body(self.reborrow(), codec)
    }
    /// An `OwnedView` still holds the buffer it was decoded from, so
    /// its large fields can be handed to the response body by
    /// reference count instead of copied. The bare view impl above
    /// cannot do this: it has borrows but no buffer to name.
    fn encode_segments(
        &self,
        codec: ::connectrpc::CodecFormat,
    ) -> ::std::result::Result<::connectrpc::EncodedBody, ::connectrpc::ConnectError> {
        ::connectrpc::__codegen::encode_view_body_segments(
            self.reborrow(),
            self.bytes(),
            codec,
        )
    }
}
/// Full service name for this service.
pub const CONTROL_PLANE_SERVICE_SERVICE_NAME: &str = "navarch.ControlPlaneService";
/// Static [`Spec`](::connectrpc::Spec) for the `RegisterNode` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_REGISTER_NODE_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/RegisterNode",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `ReportHealth` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_REPORT_HEALTH_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/ReportHealth",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `SendHeartbeat` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_SEND_HEARTBEAT_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/SendHeartbeat",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `GetNodeCommands` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_GET_NODE_COMMANDS_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/GetNodeCommands",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `ListNodes` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_LIST_NODES_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/ListNodes",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `GetNode` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_GET_NODE_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/GetNode",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `IssueCommand` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_ISSUE_COMMAND_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/IssueCommand",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `ListInstances` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_LIST_INSTANCES_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/ListInstances",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// Static [`Spec`](::connectrpc::Spec) for the `GetInstance` RPC, as seen by the server; the generated client passes it with [`origin`](::connectrpc::Spec::origin) `Client` (compare across sides with [`Spec::same_method`](::connectrpc::Spec::same_method)).
pub const CONTROL_PLANE_SERVICE_GET_INSTANCE_SPEC: ::connectrpc::Spec = ::connectrpc::Spec::server(
        "/navarch.ControlPlaneService/GetInstance",
        ::connectrpc::StreamType::Unary,
    )
    .with_idempotency_level(::connectrpc::IdempotencyLevel::Unknown);
/// What nodes and people ask of a control plane.
///
/// # Implementing handlers
///
/// Implement methods with plain `async fn`; the returned future satisfies
/// the `Send` bound automatically.
///
/// **Unary and server-streaming requests** arrive as
/// [`ServiceRequest<'_, Req>`](::connectrpc::ServiceRequest): a zero-copy
/// view of the request plus its body, valid for the duration of the call.
/// Fields are read directly (`request.name` is a `&str` into the decoded
/// buffer) and the borrow may be held across `.await` points. Anything
/// that must outlive the call — `tokio::spawn`, channels, server state,
/// or data captured by a returned response stream — takes owned data:
/// call `request.to_owned_message()` (or copy the specific fields)
/// first.
///
/// **Client-streaming and bidi requests** arrive as
/// [`InboundStream<Req>`](::connectrpc::InboundStream) — a
/// `ServiceStream` of [`StreamMessage`](::connectrpc::StreamMessage)s.
/// Each item owns its decoded buffer and is `Send + 'static`, so items
/// can be buffered or moved into spawned tasks; read fields zero-copy
/// through the generated accessor methods (`item.name()`) or `.view()`,
/// convert with `.to_owned_message()`, or yield an item back unchanged —
/// `StreamMessage<M>` implements `Encodable<M>`.
///
/// Request types resolved through `extern_path` (e.g. well-known types
/// from another crate) use the same wrappers; the crate that owns the
/// type must be generated with buffa ≥ 0.9.0 and views enabled so the
/// backing `HasMessageView` impl exists.
///
/// The `impl Encodable<Out>` return bound accepts the owned `Out`, the
/// generated `OutView<'_>` / `OwnedOutView`,
/// [`MaybeBorrowed`](::connectrpc::MaybeBorrowed), or
/// [`PreEncoded`](::connectrpc::PreEncoded) for handlers that encode a
/// non-`'static` view internally and pass the bytes across the handler
/// boundary. View bodies are not emitted for output types mapped via
/// `extern_path` (the impl would be an orphan); return owned for
/// WKT/extern outputs.
///
/// Server-streaming and bidi-streaming methods return
/// `ServiceStream<impl Encodable<Out> + Send + use<Self>>`. The
/// `use<Self>` precise-capturing clause excludes `&self`'s lifetime and
/// the request's lifetime (unary methods use `use<'a, Self>` and may
/// borrow from `&self`), so stream items must be `'static` and cannot
/// borrow from the request. To stream view-encoded data, encode each
/// item inside the stream body and yield
/// [`PreEncoded`](::connectrpc::PreEncoded) — see its `# Streaming
/// example` doc.
#[allow(clippy::type_complexity)]
pub trait ControlPlaneService: Send + Sync + 'static {
    /// A node says that it exists and what it is made of. Asked again, it updates what it said.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn register_node<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, RegisterNodeRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<RegisterNodeResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// A node says how it feels: results of its checks, and what its GPUs and kernel reported.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn report_health<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, ReportHealthRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<ReportHealthResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// A node says that it is there.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn send_heartbeat<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, HeartbeatRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<HeartbeatResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// A node asks what it is to do.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn get_node_commands<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, GetNodeCommandsRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<GetNodeCommandsResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// Every node that matches, in one answer.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn list_nodes<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, ListNodesRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<ListNodesResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// One node.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn get_node<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, GetNodeRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<GetNodeResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// Somebody asks that a node do something.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn issue_command<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, IssueCommandRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<IssueCommandResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// Every instance that matches, in one answer.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn list_instances<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, ListInstancesRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<ListInstancesResponse> + Send + use<'a, Self>,
        >,
    > + Send;
    /// One instance.
    ///
    /// `'a` lets the response body borrow from `&self` (e.g. server-resident state).
    ///
    /// `request` is borrowed from the request body and is valid for the
    /// duration of the call; message fields are read directly on it
    /// (zero-copy). The response cannot borrow from `request` — use
    /// `.to_owned_message()` (or copy the specific fields) for anything
    /// returned, stored, or moved into `tokio::spawn`.
    fn get_instance<'a>(
        &'a self,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::ServiceRequest<'_, GetInstanceRequest>,
    ) -> impl ::std::future::Future<
        Output = ::connectrpc::ServiceResult<
            impl ::connectrpc::Encodable<GetInstanceResponse> + Send + use<'a, Self>,
        >,
    > + Send;
}
/// Extension trait for registering a service implementation with a Router.
///
/// This trait is automatically implemented for all types that implement the service trait.
/// Prefer [`Router::add_service`](::connectrpc::Router::add_service) for
/// top-down registration; `register` remains available for compatibility
/// and cases where the service-first call shape is more convenient.
///
/// # Example
///
/// ```rust,ignore
/// use std::sync::Arc;
///
/// let service = Arc::new(MyServiceImpl);
/// let router = service.register(Router::new());
/// ```
pub trait ControlPlaneServiceExt: ControlPlaneService {
    /// Register this service implementation with a Router.
    ///
    /// Takes ownership of the `Arc<Self>` and returns a new Router with
    /// this service's methods registered.
    fn register(
        self: ::std::sync::Arc<Self>,
        router: ::connectrpc::Router,
    ) -> ::connectrpc::Router;
}
impl<S: ControlPlaneService> ControlPlaneServiceExt for S {
    fn register(
        self: ::std::sync::Arc<Self>,
        router: ::connectrpc::Router,
    ) -> ::connectrpc::Router {
        router
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "RegisterNode",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::RegisterNodeRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                RegisterNodeRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.register_node(ctx, sreq)
                                .await?
                                .encode::<RegisterNodeResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_REGISTER_NODE_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "ReportHealth",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::ReportHealthRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                ReportHealthRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.report_health(ctx, sreq)
                                .await?
                                .encode::<ReportHealthResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_REPORT_HEALTH_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "SendHeartbeat",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::HeartbeatRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                HeartbeatRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.send_heartbeat(ctx, sreq)
                                .await?
                                .encode::<HeartbeatResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_SEND_HEARTBEAT_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "GetNodeCommands",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::GetNodeCommandsRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                GetNodeCommandsRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.get_node_commands(ctx, sreq)
                                .await?
                                .encode::<GetNodeCommandsResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_GET_NODE_COMMANDS_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "ListNodes",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::ListNodesRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                ListNodesRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.list_nodes(ctx, sreq)
                                .await?
                                .encode::<ListNodesResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_LIST_NODES_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "GetNode",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::GetNodeRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                GetNodeRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.get_node(ctx, sreq)
                                .await?
                                .encode::<GetNodeResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_GET_NODE_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "IssueCommand",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::IssueCommandRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                IssueCommandRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.issue_command(ctx, sreq)
                                .await?
                                .encode::<IssueCommandResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_ISSUE_COMMAND_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "ListInstances",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::ListInstancesRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                ListInstancesRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.list_instances(ctx, sreq)
                                .await?
                                .encode::<ListInstancesResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_LIST_INSTANCES_SPEC)
            .route_view(
                CONTROL_PLANE_SERVICE_SERVICE_NAME,
                "GetInstance",
                {
                    let svc = ::std::sync::Arc::clone(&self);
                    ::connectrpc::view_handler_fn(move |
                        ctx,
                        req: ::buffa::view::OwnedView<
                            __buffa::view::GetInstanceRequestView<'static>,
                        >,
                        format|
                    {
                        let svc = ::std::sync::Arc::clone(&svc);
                        async move {
                            let sreq = ::connectrpc::ServiceRequest::<
                                GetInstanceRequest,
                            >::from_parts(req.reborrow(), req.bytes());
                            svc.get_instance(ctx, sreq)
                                .await?
                                .encode::<GetInstanceResponse>(format)
                        }
                    })
                },
            )
            .with_spec(CONTROL_PLANE_SERVICE_GET_INSTANCE_SPEC)
    }
}
/// Type-inference marker used by [`Router::add_service`](::connectrpc::Router::add_service).
#[doc(hidden)]
pub struct ControlPlaneServiceRegisterMarker;
impl<
    S: ControlPlaneService,
> ::connectrpc::ServiceRegister<ControlPlaneServiceRegisterMarker>
for ::std::sync::Arc<S> {
    fn register_service(self, router: ::connectrpc::Router) -> ::connectrpc::Router {
        <S as ControlPlaneServiceExt>::register(self, router)
    }
}
/// Monomorphic dispatcher for `ControlPlaneService`.
///
/// Unlike `.register(Router)` which type-erases each method into an `Arc<dyn ErasedHandler>` stored in a `HashMap`, this struct dispatches via a compile-time `match` on method name: no vtable, no hash lookup.
///
/// # Example
///
/// ```rust,ignore
/// use connectrpc::ConnectRpcService;
///
/// let server = ControlPlaneServiceServer::new(MyImpl);
/// let service = ConnectRpcService::new(server);
/// // hand `service` to axum/hyper as a fallback_service
/// ```
pub struct ControlPlaneServiceServer<T> {
    inner: ::std::sync::Arc<T>,
}
impl<T: ControlPlaneService> ControlPlaneServiceServer<T> {
    /// Wrap a service implementation in a monomorphic dispatcher.
    pub fn new(service: T) -> Self {
        Self {
            inner: ::std::sync::Arc::new(service),
        }
    }
    /// Wrap an already-`Arc`'d service implementation.
    pub fn from_arc(inner: ::std::sync::Arc<T>) -> Self {
        Self { inner }
    }
}
impl<T> Clone for ControlPlaneServiceServer<T> {
    fn clone(&self) -> Self {
        Self {
            inner: ::std::sync::Arc::clone(&self.inner),
        }
    }
}
impl<T: ControlPlaneService> ::connectrpc::Dispatcher for ControlPlaneServiceServer<T> {
    #[inline]
    fn lookup(
        &self,
        path: &str,
    ) -> Option<::connectrpc::dispatcher::codegen::MethodDescriptor> {
        let method = path.strip_prefix("navarch.ControlPlaneService/")?;
        match method {
            "RegisterNode" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_REGISTER_NODE_SPEC),
                )
            }
            "ReportHealth" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_REPORT_HEALTH_SPEC),
                )
            }
            "SendHeartbeat" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_SEND_HEARTBEAT_SPEC),
                )
            }
            "GetNodeCommands" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_GET_NODE_COMMANDS_SPEC),
                )
            }
            "ListNodes" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_LIST_NODES_SPEC),
                )
            }
            "GetNode" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_GET_NODE_SPEC),
                )
            }
            "IssueCommand" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_ISSUE_COMMAND_SPEC),
                )
            }
            "ListInstances" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_LIST_INSTANCES_SPEC),
                )
            }
            "GetInstance" => {
                Some(
                    ::connectrpc::dispatcher::codegen::MethodDescriptor::unary(false)
                        .with_spec(CONTROL_PLANE_SERVICE_GET_INSTANCE_SPEC),
                )
            }
            _ => None,
        }
    }
    fn call_unary(
        &self,
        path: &str,
        ctx: ::connectrpc::RequestContext,
        request: ::connectrpc::Payload,
        format: ::connectrpc::CodecFormat,
    ) -> ::connectrpc::dispatcher::codegen::UnaryResult {
        let Some(method) = path.strip_prefix("navarch.ControlPlaneService/") else {
            return ::connectrpc::dispatcher::codegen::unimplemented_unary(path);
        };
        let _ = (&ctx, &request, &format);
        match method {
            "RegisterNode" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        RegisterNodeRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::RegisterNodeRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        RegisterNodeRequest,
                    >::from_parts(&req, &body);
                    svc.register_node(ctx, req)
                        .await?
                        .encode::<RegisterNodeResponse>(format)
                })
            }
            "ReportHealth" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        ReportHealthRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::ReportHealthRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        ReportHealthRequest,
                    >::from_parts(&req, &body);
                    svc.report_health(ctx, req)
                        .await?
                        .encode::<ReportHealthResponse>(format)
                })
            }
            "SendHeartbeat" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        HeartbeatRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::HeartbeatRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        HeartbeatRequest,
                    >::from_parts(&req, &body);
                    svc.send_heartbeat(ctx, req)
                        .await?
                        .encode::<HeartbeatResponse>(format)
                })
            }
            "GetNodeCommands" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        GetNodeCommandsRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::GetNodeCommandsRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        GetNodeCommandsRequest,
                    >::from_parts(&req, &body);
                    svc.get_node_commands(ctx, req)
                        .await?
                        .encode::<GetNodeCommandsResponse>(format)
                })
            }
            "ListNodes" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        ListNodesRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::ListNodesRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        ListNodesRequest,
                    >::from_parts(&req, &body);
                    svc.list_nodes(ctx, req).await?.encode::<ListNodesResponse>(format)
                })
            }
            "GetNode" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        GetNodeRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::GetNodeRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        GetNodeRequest,
                    >::from_parts(&req, &body);
                    svc.get_node(ctx, req).await?.encode::<GetNodeResponse>(format)
                })
            }
            "IssueCommand" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        IssueCommandRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::IssueCommandRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        IssueCommandRequest,
                    >::from_parts(&req, &body);
                    svc.issue_command(ctx, req)
                        .await?
                        .encode::<IssueCommandResponse>(format)
                })
            }
            "ListInstances" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        ListInstancesRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::ListInstancesRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        ListInstancesRequest,
                    >::from_parts(&req, &body);
                    svc.list_instances(ctx, req)
                        .await?
                        .encode::<ListInstancesResponse>(format)
                })
            }
            "GetInstance" => {
                let svc = ::std::sync::Arc::clone(&self.inner);
                Box::pin(async move {
                    let body = ::connectrpc::dispatcher::codegen::request_proto_bytes::<
                        GetInstanceRequest,
                    >(request.encoded()?, format)?;
                    let req: __buffa::view::GetInstanceRequestView<'_> = ::connectrpc::dispatcher::codegen::decode_borrowed_request_view(
                        &body,
                        ctx.decode_options(),
                    )?;
                    let req = ::connectrpc::ServiceRequest::<
                        GetInstanceRequest,
                    >::from_parts(&req, &body);
                    svc.get_instance(ctx, req)
                        .await?
                        .encode::<GetInstanceResponse>(format)
                })
            }
            _ => ::connectrpc::dispatcher::codegen::unimplemented_unary(path),
        }
    }
    fn call_server_streaming(
        &self,
        path: &str,
        ctx: ::connectrpc::RequestContext,
        request: ::buffa::bytes::Bytes,
        format: ::connectrpc::CodecFormat,
    ) -> ::connectrpc::dispatcher::codegen::StreamingResult {
        let Some(method) = path.strip_prefix("navarch.ControlPlaneService/") else {
            return ::connectrpc::dispatcher::codegen::unimplemented_streaming(path);
        };
        let _ = (&ctx, &request, &format);
        match method {
            _ => ::connectrpc::dispatcher::codegen::unimplemented_streaming(path),
        }
    }
    fn call_client_streaming(
        &self,
        path: &str,
        ctx: ::connectrpc::RequestContext,
        requests: ::connectrpc::dispatcher::codegen::RequestStream,
        format: ::connectrpc::CodecFormat,
    ) -> ::connectrpc::dispatcher::codegen::UnaryResult {
        let Some(method) = path.strip_prefix("navarch.ControlPlaneService/") else {
            return ::connectrpc::dispatcher::codegen::unimplemented_unary(path);
        };
        let _ = (&ctx, &requests, &format);
        match method {
            _ => ::connectrpc::dispatcher::codegen::unimplemented_unary(path),
        }
    }
    fn call_bidi_streaming(
        &self,
        path: &str,
        ctx: ::connectrpc::RequestContext,
        requests: ::connectrpc::dispatcher::codegen::RequestStream,
        format: ::connectrpc::CodecFormat,
    ) -> ::connectrpc::dispatcher::codegen::StreamingResult {
        let Some(method) = path.strip_prefix("navarch.ControlPlaneService/") else {
            return ::connectrpc::dispatcher::codegen::unimplemented_streaming(path);
        };
        let _ = (&ctx, &requests, &format);
        match method {
            _ => ::connectrpc::dispatcher::codegen::unimplemented_streaming(path),
        }
    }
}
/// Client for this service.
///
/// Generic over `T: ClientTransport`. For **gRPC** (HTTP/2), use
/// `Http2Connection` — it has honest `poll_ready` and composes with
/// `tower::balance` for multi-connection load balancing. For **Connect
/// over HTTP/1.1** (or unknown protocol), use `HttpClient`.
///
/// # Example (gRPC / HTTP/2)
///
/// ```rust,ignore
/// use connectrpc::client::{Http2Connection, ClientConfig};
/// use connectrpc::Protocol;
///
/// let uri: http::Uri = "http://localhost:8080".parse()?;
/// let conn = Http2Connection::connect_plaintext(uri.clone()).await?.shared(1024);
/// let config = ClientConfig::new(uri).with_protocol(Protocol::Grpc);
///
/// let client = ControlPlaneServiceClient::new(conn, config);
/// let response = client.register_node(request).await?;
/// ```
///
/// # Example (Connect / HTTP/1.1 or ALPN)
///
/// ```rust,ignore
/// use connectrpc::client::{HttpClient, ClientConfig};
///
/// let http = HttpClient::plaintext();  // cleartext http:// only
/// let config = ClientConfig::new("http://localhost:8080".parse()?);
///
/// let client = ControlPlaneServiceClient::new(http, config);
/// let response = client.register_node(request).await?;
/// ```
///
/// # Working with the response
///
/// Unary calls return [`UnaryResponse<OwnedView<FooView>>`](::connectrpc::client::UnaryResponse).
/// [`view()`](::connectrpc::client::UnaryResponse::view) borrows the response
/// message, so field access is zero-copy:
///
/// ```rust,ignore
/// let resp = client.register_node(request).await?;
/// let name: &str = resp.view().name;  // borrow into the response buffer
/// ```
///
/// If you need the owned struct (e.g. to store or pass by value), use
/// [`into_owned()`](::connectrpc::client::UnaryResponse::into_owned):
///
/// ```rust,ignore
/// let owned = client.register_node(request).await?.into_owned();
/// ```
///
/// [`into_view()`](::connectrpc::client::UnaryResponse::into_view) keeps the
/// zero-copy decoded body (an `OwnedView`) without copying; field access on it
/// goes through `.reborrow()`. Streaming responses yield one
/// [`StreamMessage`](::connectrpc::StreamMessage) per received message from
/// `.message().await` — read fields zero-copy through the generated accessor
/// methods (`msg.name()`) or `.view()`, or convert with `.to_owned_message()`.
#[derive(Clone)]
pub struct ControlPlaneServiceClient<T> {
    transport: T,
    config: ::connectrpc::client::ClientConfig,
}
impl<T> ControlPlaneServiceClient<T>
where
    T: ::connectrpc::client::ClientTransport,
    <T::ResponseBody as ::connectrpc::http_body::Body>::Error: ::std::fmt::Display,
{
    /// Create a new client with the given transport and configuration.
    pub fn new(transport: T, config: ::connectrpc::client::ClientConfig) -> Self {
        Self { transport, config }
    }
    /// Get the client configuration.
    pub fn config(&self) -> &::connectrpc::client::ClientConfig {
        &self.config
    }
    /// Get a mutable reference to the client configuration.
    pub fn config_mut(&mut self) -> &mut ::connectrpc::client::ClientConfig {
        &mut self.config
    }
    /// Call the RegisterNode RPC. Sends a request to /navarch.ControlPlaneService/RegisterNode.
    pub async fn register_node(
        &self,
        request: RegisterNodeRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::RegisterNodeResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.register_node_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the RegisterNode RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn register_node_with_options(
        &self,
        request: RegisterNodeRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::RegisterNodeResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_REGISTER_NODE_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the ReportHealth RPC. Sends a request to /navarch.ControlPlaneService/ReportHealth.
    pub async fn report_health(
        &self,
        request: ReportHealthRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::ReportHealthResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.report_health_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the ReportHealth RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn report_health_with_options(
        &self,
        request: ReportHealthRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::ReportHealthResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_REPORT_HEALTH_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the SendHeartbeat RPC. Sends a request to /navarch.ControlPlaneService/SendHeartbeat.
    pub async fn send_heartbeat(
        &self,
        request: HeartbeatRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::HeartbeatResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.send_heartbeat_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the SendHeartbeat RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn send_heartbeat_with_options(
        &self,
        request: HeartbeatRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::HeartbeatResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_SEND_HEARTBEAT_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the GetNodeCommands RPC. Sends a request to /navarch.ControlPlaneService/GetNodeCommands.
    pub async fn get_node_commands(
        &self,
        request: GetNodeCommandsRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::GetNodeCommandsResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.get_node_commands_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the GetNodeCommands RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn get_node_commands_with_options(
        &self,
        request: GetNodeCommandsRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::GetNodeCommandsResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_GET_NODE_COMMANDS_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the ListNodes RPC. Sends a request to /navarch.ControlPlaneService/ListNodes.
    pub async fn list_nodes(
        &self,
        request: ListNodesRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::ListNodesResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.list_nodes_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the ListNodes RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn list_nodes_with_options(
        &self,
        request: ListNodesRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::ListNodesResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_LIST_NODES_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the GetNode RPC. Sends a request to /navarch.ControlPlaneService/GetNode.
    pub async fn get_node(
        &self,
        request: GetNodeRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::GetNodeResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.get_node_with_options(request, ::connectrpc::client::CallOptions::default())
            .await
    }
    /// Call the GetNode RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn get_node_with_options(
        &self,
        request: GetNodeRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::GetNodeResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_GET_NODE_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the IssueCommand RPC. Sends a request to /navarch.ControlPlaneService/IssueCommand.
    pub async fn issue_command(
        &self,
        request: IssueCommandRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::IssueCommandResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.issue_command_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the IssueCommand RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn issue_command_with_options(
        &self,
        request: IssueCommandRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::IssueCommandResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_ISSUE_COMMAND_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the ListInstances RPC. Sends a request to /navarch.ControlPlaneService/ListInstances.
    pub async fn list_instances(
        &self,
        request: ListInstancesRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::ListInstancesResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.list_instances_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the ListInstances RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn list_instances_with_options(
        &self,
        request: ListInstancesRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::ListInstancesResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_LIST_INSTANCES_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
    /// Call the GetInstance RPC. Sends a request to /navarch.ControlPlaneService/GetInstance.
    pub async fn get_instance(
        &self,
        request: GetInstanceRequest,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::GetInstanceResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        self.get_instance_with_options(
                request,
                ::connectrpc::client::CallOptions::default(),
            )
            .await
    }
    /// Call the GetInstance RPC with explicit per-call options. Options override [`ClientConfig`](::connectrpc::client::ClientConfig) defaults.
    pub async fn get_instance_with_options(
        &self,
        request: GetInstanceRequest,
        options: ::connectrpc::client::CallOptions,
    ) -> Result<
        ::connectrpc::client::UnaryResponse<
            ::buffa::view::OwnedView<__buffa::view::GetInstanceResponseView<'static>>,
        >,
        ::connectrpc::ConnectError,
    > {
        ::connectrpc::client::call_unary(
                &self.transport,
                &self.config,
                CONTROL_PLANE_SERVICE_GET_INSTANCE_SPEC
                    .with_origin(::connectrpc::SpecOrigin::Client),
                request,
                options,
            )
            .await
    }
}
