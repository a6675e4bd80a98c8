"""The built messages, between two processes over loopback."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_process import free_domain

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not in this environment")
pytest.importorskip("forewarn_msgs", reason="forewarn_msgs is not built: run `make setup`")

pytestmark = pytest.mark.ros

LIMIT = 240.0
PATIENCE = 10.0

# A lifecycle node on an events executor, as the monitor is: answers once and waits to be stopped.
PUBLISHER = """
import rclpy
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from forewarn_msgs.msg import Risk, RiskArray, RiskDetails
from forewarn_msgs.srv import Explain

class Source(LifecycleNode):
    def on_configure(self, state):
        qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.risk = self.create_lifecycle_publisher(RiskArray, "risk", qos)
        self.create_service(Explain, "explain", self.explain)
        return TransitionCallbackReturn.SUCCESS

    def explain(self, request, response):
        response.success, response.text = True, "asked for " + request.property
        return response

rclpy.init()
node = Source("source")
node.trigger_configure()
node.trigger_activate()
risk = Risk(property="red_light", tick=7, probability=0.25,
            horizon=float("inf"), verdict=Risk.VERDICT_SATISFIED_SO_FAR,
            details=RiskDetails(lower=float("nan"), automaton_states=[0, 3]),
            stale_signals=["odometry"], stale_ages=[0.4])
node.risk.publish(RiskArray(model_digest="abc", risks=[risk]))
executor = EventsExecutor()
executor.add_node(node)
while rclpy.ok():
    executor.spin_once(timeout_sec=0.1)
"""


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Keep this test's traffic on this machine and away from everybody else's."""
    with free_domain() as number:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
        monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        yield number


@pytest.fixture
def executor(domain: int) -> Iterator[Any]:
    """Return an executor with a node on the domain."""
    from rclpy.executors import SingleThreadedExecutor

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(rclpy.create_node("sink", context=context))
    yield executor
    executor.shutdown()
    rclpy.shutdown(context=context)


@pytest.fixture
def source(domain: int, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the publisher; it is stopped at the end."""
    with subprocess.Popen([sys.executable, "-c", PUBLISHER], cwd=tmp_path) as process:
        yield process
        process.terminate()
        try:
            process.wait(LIMIT)
        finally:
            process.kill()


def test_risk_and_a_service_cross_processes(executor: Any, source: subprocess.Popen[bytes]) -> None:
    from forewarn_msgs.msg import Risk, RiskArray
    from forewarn_msgs.srv import Explain
    from rclpy.qos import DurabilityPolicy, QoSProfile

    (node,) = executor.get_nodes()
    received = rclpy.Future(executor=executor)
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(RiskArray, "risk", received.set_result, qos)
    while not received.done() and source.poll() is None:
        executor.spin_until_future_complete(received, timeout_sec=1)
    assert source.poll() is None, "the publisher has ended"
    (risk,) = received.result().risks
    assert (risk.property, risk.tick, risk.probability) == ("red_light", 7, 0.25)
    assert risk.verdict == Risk.VERDICT_SATISFIED_SO_FAR
    assert math.isnan(risk.details.lower) and math.isinf(risk.horizon)
    assert list(risk.details.automaton_states) == [0, 3]
    assert list(risk.stale_ages) == [0.4]

    client = node.create_client(Explain, "explain")
    assert client.wait_for_service(timeout_sec=LIMIT)
    # A server drops the response to a client that it has not discovered within 100 ms: ask again.
    answer = rclpy.Future(executor=executor)
    while not answer.done() and source.poll() is None:
        answer = client.call_async(Explain.Request(property="red_light"))
        executor.spin_until_future_complete(answer, timeout_sec=PATIENCE)
    assert answer.result().text == "asked for red_light"


def test_needs_nothing_sourced(tmp_path: Path) -> None:
    # The interpreter alone must know where the libraries and the ament index are.
    code = (
        "import forewarn_msgs.msg as m; m.RiskArray.__class__.__import_type_support__(); "
        "from ament_index_python import get_package_share_directory as share; "
        "print(share('forewarn_bringup'), share('monitor_node'), sep='\\n')"
    )
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, env=bare, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"{sys.prefix}/share/forewarn_bringup",
        f"{sys.prefix}/share/monitor_node",
    ]
