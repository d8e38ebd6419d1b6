// The official Connect client for Node.js against a running server: every protocol and encoding it has.
//
//   ARGOSY_URL      where the server is
//   DESCRIPTORS     the descriptor set of crates/argosy-api/proto, made by protoc
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";

const baseUrl = process.env.ARGOSY_URL;
const files = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(process.env.DESCRIPTORS)),
);
const navarch = files.getService("navarch.ControlPlaneService");
const ours = files.getService("argosy.v1.NodeService");

const gzip = { acceptCompression: [compressionGzip] };
const gzipBoth = { ...gzip, sendCompression: compressionGzip, compressMinBytes: 1 };
const transports = {
  "connect-proto-h1": createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "connect-json-h1": createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "connect-proto-h2": createConnectTransport({ baseUrl, httpVersion: "2" }),
  "connect-json-h2": createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
  "connect-gzip-h1": createConnectTransport({ baseUrl, httpVersion: "1.1", ...gzipBoth }),
  "grpc-h2": createGrpcTransport({ baseUrl, httpVersion: "2" }),
  "grpc-gzip-h2": createGrpcTransport({ baseUrl, httpVersion: "2", ...gzipBoth }),
  "grpc-web-h1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "grpc-web-json-h1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "grpc-web-h2": createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
};

const status = { active: 1, cordoned: 2, draining: 3, unhealthy: 4, terminated: 5 };
const health = { healthy: 1, degraded: 2, unhealthy: 3 };
const command = { cordon: 1, drain: 2, diagnostic: 3, terminate: 4, uncordon: 5 };

async function refused(call, code, text) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof ConnectError, String(error));
    assert.equal(error.code, code);
    assert.match(error.rawMessage, text);
    return true;
  });
}

const registration = (nodeId) => ({
  nodeId,
  provider: "gcp",
  region: "us-central1",
  zone: "us-central1-a",
  instanceType: "a3-highgpu-8g",
  gpus: Array.from({ length: 8 }, (_, index) => ({
    index,
    uuid: `GPU-${nodeId}-${index}`,
    name: "NVIDIA H100 80GB HBM3",
    memoryTotal: 85899345920n,
  })),
  metadata: { hostname: nodeId, labels: { pool: "training" } },
});

for (const [name, transport] of Object.entries(transports)) {
  const nodeId = `interop-${name}`;
  const client = createClient(navarch, transport);

  test(`${name}: a node's life on the recorded wire`, async () => {
    const registered = await client.registerNode(registration(nodeId));
    assert.equal(registered.success, true);
    assert.equal(registered.config.heartbeatIntervalSeconds, 30);
    assert.equal(registered.config.healthCheckIntervalSeconds, 60);
    assert.deepEqual(registered.config.enabledHealthChecks, ["boot", "nvml", "xid"]);

    const gpuMetrics = [{ gpuIndex: 0, temperature: 61, powerUsage: 640, utilizationPercent: 97.5 }];
    const beat = await client.sendHeartbeat({
      nodeId,
      metrics: { cpuUsagePercent: 12.5, memoryUsagePercent: 40, gpuMetrics },
    });
    assert.equal(beat.acknowledged, true);

    const { node } = await client.getNode({ nodeId });
    assert.equal(node.status, status.active);
    assert.equal(node.gpus.length, 8);
    assert.equal(node.gpus[3].memoryTotal, 85899345920n);
    assert.ok(node.lastHeartbeat);
    const { nodes } = await client.listNodes({ provider: "gcp", status: status.active });
    assert.ok(nodes.some((listed) => listed.nodeId === nodeId));

    const well = await client.reportHealth({
      nodeId,
      results: [{ checkName: "boot", status: health.healthy }],
    });
    assert.equal(well.acknowledged, true);
    assert.equal(well.nodeStatus, status.active);

    const issued = await client.issueCommand({
      nodeId,
      commandType: command.cordon,
      parameters: { reason: "interop" },
    });
    assert.match(issued.commandId, /^[0-9a-f-]{36}$/);
    assert.equal((await client.getNode({ nodeId })).node.status, status.cordoned);
    const fetched = await client.getNodeCommands({ nodeId });
    assert.deepEqual(fetched.commands.map((one) => [one.commandId, one.type]), [
      [issued.commandId, command.cordon],
    ]);
    assert.deepEqual((await client.getNodeCommands({ nodeId })).commands, []);
    await client.registerNode(registration(nodeId));
    assert.equal((await client.getNode({ nodeId })).node.status, status.cordoned);
    await client.issueCommand({ nodeId, commandType: command.uncordon });
    assert.equal((await client.getNode({ nodeId })).node.status, status.active);

    const sick = await client.reportHealth({
      nodeId,
      results: [{ checkName: "gpu", status: health.unhealthy, message: "GPU 3 does not answer" }],
    });
    assert.equal(sick.nodeStatus, status.unhealthy);
  });

  test(`${name}: errors have the recorded codes and words`, async () => {
    await refused(client.registerNode({}), Code.InvalidArgument, /^node_id is required$/);
    await refused(client.sendHeartbeat({}), Code.InvalidArgument, /^node_id is required$/);
    const nobody = `nobody-${name}`;
    await refused(
      client.sendHeartbeat({ nodeId: nobody }),
      Code.NotFound,
      new RegExp(`^node not found: ${nobody}`),
    );
    await refused(client.getNode({ nodeId: nobody }), Code.NotFound, /^node not found/);
    assert.deepEqual((await client.getNodeCommands({ nodeId: nobody })).commands, []);
    const idle = `idle-${name}`;
    await client.registerNode(registration(idle));
    await refused(client.issueCommand({ nodeId: idle }), Code.InvalidArgument, /^command_type is required/);
    await refused(
      client.issueCommand({ nodeId: idle, commandType: command.uncordon }),
      Code.FailedPrecondition,
      /is not cordoned \(current status: NODE_STATUS_ACTIVE\)/,
    );
    await refused(client.getInstance({ instanceId: "i-1" }), Code.NotFound, /^instance not found: i-1/);
    await refused(client.registerNode({ nodeId: "no spaces" }), Code.InvalidArgument, /node_id/);
  });
}

test("a stream carries heartbeats, reports and pushed commands", async () => {
  const nodeId = "interop-attach";
  const people = createClient(navarch, transports["connect-proto-h1"]);
  const client = createClient(ours, transports["grpc-h2"]);
  await client.registerNode({ nodeId, pool: "training", machineId: "m-1", bootId: "b-1" });

  const queue = [];
  let wake = () => {};
  const say = (one, value) => {
    queue.push({ message: { case: one, value } });
    wake();
  };
  async function* said() {
    for (;;) {
      while (queue.length > 0) {
        const next = queue.shift();
        if (next === null) return;
        yield next;
      }
      await new Promise((resolve) => (wake = resolve));
    }
  }
  say("hello", { nodeId, bootId: "b-1" });
  const told = client.attach(said())[Symbol.asyncIterator]();
  const next = async (wanted) => {
    for (;;) {
      const { value, done } = await told.next();
      assert.equal(done, false);
      assert.notEqual(value.message.case, "error", value.message.value?.message);
      if (value.message.case === wanted) return value.message.value;
    }
  };
  await next("welcome");
  say("heartbeat", {});
  say("health", { sequence: 1n, results: [{ check: "boot", status: health.healthy }] });
  assert.equal((await next("reportAck")).status, status.active);

  const issued = await people.issueCommand({ nodeId, commandType: command.drain });
  const pushed = await next("command");
  assert.equal(pushed.id, issued.commandId);
  assert.equal(pushed.type, command.drain);
  assert.ok(pushed.deadline);
  say("ack", { commandId: pushed.id, state: 3, outcome: 1, message: "nothing ran" });
  assert.equal((await next("commandAck")).state, 3);
  assert.equal((await people.getNode({ nodeId })).node.status, status.draining);
  queue.push(null);
  wake();
});
