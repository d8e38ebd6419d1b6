#!/usr/bin/env python3
r"""Records the wire corpus: every message of both services, as Google's own protobuf library writes it.

    .venv/bin/python -m grpc_tools.protoc --proto_path=crates/argosy-api/proto --python_out=DIR \
      argosy/v1/node.proto navarch/control_plane.proto
    .venv/bin/python tests/interop/record_corpus.py DIR >crates/argosy-api/src/rpc/tests/corpus.txt

Three lines a message: its name, its JSON, its bytes in hexadecimal. The corpus and `proto/` are the contract of the node
plane, whatever library speaks it: run this only when a message gains a field, and look at the difference.
"""

import sys

sys.path.insert(0, sys.argv[1])

from argosy.v1 import node_pb2  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from google.protobuf.descriptor import FieldDescriptor as F  # noqa: E402
from navarch import control_plane_pb2  # noqa: E402

DEPTH_MAX = 4


def value(field, number):
    """Something of a field's type that is not its default, and differs from its neighbours'."""
    kind, at = field.type, field.number
    return {
        F.TYPE_STRING: lambda: f"{field.name}-{number}",
        F.TYPE_INT32: lambda: 7 + at,
        F.TYPE_SINT32: lambda: 7 + at,
        F.TYPE_INT64: lambda: 80_000_000_000 + at,
        F.TYPE_UINT32: lambda: 300 + at,
        F.TYPE_UINT64: lambda: 2**53 + at,
        F.TYPE_BOOL: lambda: True,
        F.TYPE_DOUBLE: lambda: 0.5 + at,
        F.TYPE_FLOAT: lambda: 0.25 + at,
        F.TYPE_BYTES: lambda: b"\x00\xff" + bytes([at]),
        F.TYPE_ENUM: lambda: field.enum_type.values[min(1, len(field.enum_type.values) - 1)].number,
    }[kind]()


def choices(descriptor):
    """The cases of a message: one for each member of its `oneof`, or one."""
    real = [it for it in descriptor.oneofs if not it.name.startswith("_")]
    return [field.name for field in real[0].fields] if real else [None]


def fill(message, case=None, depth=0):
    for field in message.DESCRIPTOR.fields:
        choice = field.containing_oneof
        if choice and not choice.name.startswith("_") and field.name != (case or choice.fields[0].name):
            continue
        if field.type == F.TYPE_MESSAGE and field.message_type.GetOptions().map_entry:
            entry = field.message_type.fields_by_name["value"]
            getattr(message, field.name)["a"] = value(entry, 1)
        elif field.type == F.TYPE_MESSAGE and depth <= DEPTH_MAX:
            if field.message_type.full_name == "google.protobuf.Timestamp":
                getattr(message, field.name).FromNanoseconds(1_767_225_600_500_000_000)
                continue
            several = field.is_repeated
            inner = getattr(message, field.name).add() if several else getattr(message, field.name)
            inner.SetInParent()
            fill(inner, depth=depth + 1)
        elif field.type != F.TYPE_MESSAGE and field.is_repeated:
            getattr(message, field.name).extend([value(field, 1), value(field, 2)])
        elif field.type != F.TYPE_MESSAGE:
            setattr(message, field.name, value(field, 1))


rows = []
for module, prefix in ((control_plane_pb2, "navarch"), (node_pb2, "node")):
    for name, descriptor in module.DESCRIPTOR.message_types_by_name.items():
        for case in choices(descriptor):
            message = getattr(module, name)()
            fill(message, case)
            text = json_format.MessageToJson(message, indent=None, ensure_ascii=False)
            rows.append(f"{prefix}::{name}\n{text}\n{message.SerializeToString(deterministic=True).hex()}\n")
print("\n".join(rows), end="")
