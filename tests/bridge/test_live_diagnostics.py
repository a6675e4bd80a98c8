"""What the running bridge says about losses, dead channels, and Apollo in another domain."""

from __future__ import annotations

from typing import Any

import pytest

OK, WARN, ERROR = 0, 1, 2
CHASSIS = "/apollo/canbus/chassis"
pytestmark = [pytest.mark.ros, pytest.mark.timeout(280), pytest.mark.usefixtures("pycyber")]


def test_messages_lost_in_a_burst_are_counted(world: Any, listener: Any) -> None:
    apollo = world.apollo(50)
    world.bridge()
    listener.diagnostic(CHASSIS, lambda level, text, values: level == OK)
    apollo.tell(pause=True)
    apollo.tell(burst=1000)
    last = apollo.wait_for(lambda line: "burst" in line)["burst"]
    apollo.tell(pause=False)
    apollo.tell(speed=1.0)
    # The numbers in the headers leave no gap unnoticed: whatever was sent since the first message
    # that came was received, or is lost.
    _, _, values = listener.diagnostic(
        CHASSIS, lambda level, text, values: int(values["received"]) + int(values["lost"]) >= 1000
    )
    received, lost, late = (int(values[key]) for key in ("received", "lost", "late"))
    assert received + lost <= last + 500
    assert 0 <= late <= received
    assert values["restarts"] == "0"


def test_a_channel_that_falls_silent_is_told(world: Any, listener: Any) -> None:
    apollo = world.apollo(50)
    world.bridge()
    listener.diagnostic(CHASSIS, lambda level, text, values: level == OK)
    apollo.tell(pause=True)
    _, text, _ = listener.diagnostic(CHASSIS, lambda level, text, values: level == WARN)
    assert "nothing came for" in text


def test_stale_values_reach_the_node_as_such(world: Any, listener: Any) -> None:
    from forewarn_msgs.msg import Signals

    apollo = world.apollo(50)
    world.bridge()
    topic = "/monitor/input/signals"
    first = listener.wait_for(Signals, topic, lambda m: m if list(m.names) == ["speed"] else None)
    assert first.values[0] == 0.0
    apollo.tell(pause=True)
    unknown = listener.wait_for(Signals, topic, lambda m: m if m.values[0] != m.values[0] else None)
    age = unknown.header.stamp.sec - unknown.stamps[0].sec
    assert age >= 1  # its timeout


def test_apollo_in_another_domain_is_explained(world: Any, listener: Any) -> None:
    world.apollo(50, CYBER_DOMAIN_ID="77")
    world.bridge()
    domain = world.environment["CYBER_DOMAIN_ID"]
    level, text, _ = listener.diagnostic(
        "connection", lambda level, text, values: "nobody publishes" in text
    )
    assert level == WARN
    assert f"in domain {domain} at 127.0.0.1" in text
    assert "CYBER_DOMAIN_ID" in text and "CYBER_IP" in text


def test_an_interpreter_without_cyber_is_an_error_that_says_what_to_do(
    world: Any, listener: Any, tmp_path: Any
) -> None:
    import sys

    # The same interpreter, without site-packages.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    world.bridge(python=str(bare))
    level, text, _ = listener.diagnostic(
        "connection", lambda level, text, values: "has no Cyber RT" in text
    )
    assert level == ERROR
    assert "use the transport 'tcp'" in text
