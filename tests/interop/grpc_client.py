"""Google's gRPC client for Python against a running server: both services, and the stream.

    grpc_client.py HOST:PORT DIRECTORY_OF_GENERATED_CODE
"""

import queue
import sys

import grpc

sys.path.insert(0, sys.argv[2])

from argosy.v1 import node_pb2, node_pb2_grpc  # noqa: E402
from navarch import control_plane_pb2 as nav  # noqa: E402
from navarch import control_plane_pb2_grpc as nav_grpc  # noqa: E402

TIMEOUT_S = 20


def refused(call, code, text):
    """The call must fail with this code and a message that begins with this text."""
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        assert error.details().startswith(text), error.details()
    else:
        raise AssertionError(f"{code} was expected")


def unary(channel):
    client = nav_grpc.ControlPlaneServiceStub(channel)
    node_id = "grpcio-1"
    gpus = [nav.GPUInfo(index=i, uuid=f"GPU-py-{i}", name="NVIDIA H100") for i in range(8)]
    answer = client.RegisterNode(
        nav.RegisterNodeRequest(node_id=node_id, provider="aws", region="us-east-1", gpus=gpus),
        timeout=TIMEOUT_S,
    )
    assert answer.success and answer.config.heartbeat_interval_seconds == 30, answer
    assert client.SendHeartbeat(nav.HeartbeatRequest(node_id=node_id), timeout=TIMEOUT_S).acknowledged
    event = nav.HealthEvent(
        gpu_index=3,
        gpu_uuid="GPU-py-3",
        system=nav.HEALTH_WATCH_SYSTEM_DRIVER,
        event_type=nav.HEALTH_EVENT_TYPE_XID,
        metrics={"xid_code": "79"},
        message="GPU has fallen off the bus",
    )
    answer = client.ReportHealth(
        nav.ReportHealthRequest(node_id=node_id, events=[event]), timeout=TIMEOUT_S
    )
    assert answer.node_status == nav.NODE_STATUS_UNHEALTHY, answer
    node = client.GetNode(nav.GetNodeRequest(node_id=node_id), timeout=TIMEOUT_S).node
    assert node.health_status == nav.HEALTH_STATUS_UNHEALTHY and len(node.gpus) == 8, node

    app = "grpcio-app"
    client.RegisterNode(nav.RegisterNodeRequest(node_id=app), timeout=TIMEOUT_S)
    event.metrics["xid_code"] = "31"
    answer = client.ReportHealth(
        nav.ReportHealthRequest(node_id=app, events=[event]), timeout=TIMEOUT_S
    )
    assert answer.node_status == nav.NODE_STATUS_ACTIVE, "a fault of a program condemned hardware"

    refused(
        lambda: client.RegisterNode(nav.RegisterNodeRequest(), timeout=TIMEOUT_S),
        grpc.StatusCode.INVALID_ARGUMENT,
        "node_id is required",
    )
    refused(
        lambda: client.SendHeartbeat(nav.HeartbeatRequest(node_id="nobody"), timeout=TIMEOUT_S),
        grpc.StatusCode.NOT_FOUND,
        "node not found: nobody",
    )
    refused(
        lambda: client.IssueCommand(
            nav.IssueCommandRequest(node_id=app, command_type=nav.NODE_COMMAND_TYPE_UNCORDON),
            timeout=TIMEOUT_S,
        ),
        grpc.StatusCode.FAILED_PRECONDITION,
        f"node {app} is not cordoned (current status: NODE_STATUS_ACTIVE)",
    )
    big = nav.ReportHealthRequest(node_id=app)
    big.results.add(check_name="x", message="y" * (5 * 1024 * 1024))
    try:
        client.ReportHealth(big, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        wanted = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)
        assert error.code() in wanted, (error.code(), error.details())
    else:
        raise AssertionError("five megabytes were taken")


def attach(channel):
    people = nav_grpc.ControlPlaneServiceStub(channel)
    client = node_pb2_grpc.NodeServiceStub(channel)
    node_id = "grpcio-stream"
    client.RegisterNode(node_pb2.RegisterNodeRequest(node_id=node_id), timeout=TIMEOUT_S)
    said = queue.Queue()
    said.put(node_pb2.AttachRequest(hello=node_pb2.Hello(node_id=node_id)))
    stream = client.Attach(iter(said.get, None), timeout=TIMEOUT_S)
    assert next(stream).WhichOneof("message") == "welcome"
    for _ in range(100):
        said.put(node_pb2.AttachRequest(heartbeat=node_pb2.Heartbeat()))
    issued = people.IssueCommand(
        nav.IssueCommandRequest(
            node_id=node_id,
            command_type=nav.NODE_COMMAND_TYPE_RUN_DIAGNOSTIC,
            parameters={"test": "quick"},
        ),
        timeout=TIMEOUT_S,
    )
    pushed = next(answer for answer in stream if answer.WhichOneof("message") == "command").command
    assert pushed.id == issued.command_id, (pushed, issued)
    ack = node_pb2.CommandAck(
        command_id=pushed.id, state=node_pb2.COMMAND_STATE_COMPLETED, result_json='{"passed":true}'
    )
    said.put(node_pb2.AttachRequest(ack=ack))
    answer = next(a for a in stream if a.WhichOneof("message") == "command_ack").command_ack
    assert answer.state == node_pb2.COMMAND_STATE_COMPLETED, answer
    said.put(None)
    # The server ends its side, too.
    assert list(stream) == []


def main():
    for options in ([], [("grpc.default_compression_algorithm", grpc.Compression.Gzip.value)]):
        with grpc.insecure_channel(sys.argv[1], options=options) as channel:
            unary(channel)
            attach(channel)
    print("grpcio: both services, plain and compressed")


main()
