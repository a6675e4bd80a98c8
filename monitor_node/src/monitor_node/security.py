"""Whether the middleware protects this node: what SROS 2 makes of the environment.

The rules are those of rcl (src/rcl/security.c, `rcl_get_security_options_from_environment`): only
the word ``true`` turns security on, and only ``Enforce`` makes it a condition. With an enclave that
it cannot use a node does not start: one that runs and has an enclave is protected.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rclpy.node import Node

from forewarn_ros.status import Severity, Status

ENABLE, STRATEGY = "ROS_SECURITY_ENABLE", "ROS_SECURITY_STRATEGY"
KEYSTORE, OVERRIDE = "ROS_SECURITY_KEYSTORE", "ROS_SECURITY_ENCLAVE_OVERRIDE"
OPEN = "anyone on the network can send interventions, mute the monitor and command the robot"


def announce_security(node: Node) -> Status:
    """Log whether security is on, once, and return what to report."""
    own = (node.get_name(), node.get_namespace())
    found = node.get_node_names_and_namespaces_with_enclaves()
    enclave = next((enclave for *name, enclave in found if tuple(name) == own), "/")
    status = security_status(os.environ, enclave)
    say = node.get_logger().info if status.level is Severity.OK else node.get_logger().warning
    say(f"security is {status.message}")
    return status


def security_status(environment: Mapping[str, str], enclave: str) -> Status:
    """Report whether security is on, and whether it is enforced.

    `enclave`: the node's enclave, as ``--enclave`` gave it; ``/`` without any.
    """
    wanted = environment.get(ENABLE, "")
    enforced = environment.get(STRATEGY, "") == "Enforce"
    enclave = environment.get(OVERRIDE) or enclave
    keystore = environment.get(KEYSTORE, "")
    values = {"enclave": enclave, "keystore": keystore or "none", "enforced": enforced}
    if wanted != "true":
        if wanted in ("", "false"):
            return Status("security", Severity.OK, f"off: {OPEN}", values)
        problem = f"off, for {ENABLE} is {wanted!r} (accepted: true): {OPEN}"
        return Status("security", Severity.WARN, problem, values)
    if enforced:
        return Status("security", Severity.OK, "on, and enforced", values)
    folder = Path(keystore, "enclaves", enclave.lstrip("/"))
    lax = f"{STRATEGY} is {environment.get(STRATEGY, '')!r} (accepted: Enforce)"
    if keystore and folder.is_dir():
        problem = f"on, and not enforced: nodes without keys run unprotected; {lax}"
    else:
        problem = f"off, for {folder} has no keys, and not enforced: {OPEN}; {lax}"
    return Status("security", Severity.WARN, problem, values)
