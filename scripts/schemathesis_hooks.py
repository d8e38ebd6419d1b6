"""What the attack leaves out, and what it is told: answers that never end, and which nodes there are."""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    """A watch is an endless stream; the integration tests cover it. A node that is forgotten by force
    is gone for the rest of the run."""
    query = case.query or {}
    if str(query.get("watch", "")).lower() in ("true", "1"):
        return False
    return not (case.method.upper() == "DELETE" and "force" in query)


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Half of the time, a node that is there."""
    node = (path_parameters or {}).get("node_id")
    if isinstance(node, str) and len(node) % 2:
        path_parameters["node_id"] = "gpu-1" if len(node) % 4 == 1 else "gpu-2"
    return path_parameters
