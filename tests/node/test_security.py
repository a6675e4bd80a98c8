"""Whether security is on, as the node says it at its start and on /diagnostics."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_ros import Probe, Process, monitor_parameters

from forewarn_ros.status import Severity
from monitor_node.security import ENABLE, KEYSTORE, OVERRIDE, STRATEGY, security_status

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ("variables", "level", "told"),
    [
        ({}, Severity.OK, "off: anyone on the network"),
        ({ENABLE: "false"}, Severity.OK, "off: anyone"),
        ({ENABLE: "1"}, Severity.WARN, "off, for ROS_SECURITY_ENABLE is '1' (accepted: true)"),
        ({ENABLE: "True", STRATEGY: "Enforce"}, Severity.WARN, "off, for ROS_SECURITY_ENABLE"),
        ({ENABLE: "true", STRATEGY: "Enforce"}, Severity.OK, "on, and enforced"),
        ({ENABLE: "true", STRATEGY: "enforce"}, Severity.WARN, "not enforced"),
        ({ENABLE: "true"}, Severity.WARN, "on, and not enforced: nodes without keys"),
        ({ENABLE: "true", KEYSTORE: "/nowhere"}, Severity.WARN, "off, for /nowhere/enclaves"),
        ({ENABLE: "true", OVERRIDE: "/other"}, Severity.WARN, "off, for "),
    ],
)
def test_it_reads_the_environment_as_the_middleware_does(
    tmp_path: Path, variables: dict[str, str], level: Severity, told: str
) -> None:
    (tmp_path / "enclaves" / "forewarn" / "monitor").mkdir(parents=True)
    status = security_status({KEYSTORE: str(tmp_path), **variables}, "/forewarn/monitor")
    assert status.level is level
    assert status.message.startswith(told) or (told == "not enforced" and told in status.message)
    assert status.values["enclave"] == variables.get(OVERRIDE, "/forewarn/monitor")


def test_the_node_says_at_its_start_that_nothing_protects_it(
    world: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENABLE, "yes")
    parameters = monitor_parameters(world)
    with Process("main", probe.domain, parameters, "--enclave", "/forewarn/monitor") as process:
        probe.wait_for_status("security", "WARN", "off, for ROS_SECURITY_ENABLE is 'yes'")
        assert "security is off, for ROS_SECURITY_ENABLE is 'yes'" in process.output
        status = probe.diagnostics["monitor: security"]
        assert {value.key: value.value for value in status.values}["enclave"] == "/forewarn/monitor"
