"""Every stop names its source: the rule, the signals that decided, where they came from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn_msgs.msg import Intervention, Risk
from live_ros import Probe, Stepper, of, stepped

from forewarn.signals.clock_kinds import Grid
from forewarn_ros.messages import from_time

pytestmark = pytest.mark.ros


@pytest.fixture
def driven(world: Path) -> Iterator[tuple[Probe, Stepper]]:
    with stepped(world) as (_, probe, stepper):
        stepper.begin()
        stepper.step(speed=1.0, distance=30.0)
        # The node looks who publishes with every report.
        probe.wait(lambda: probe.values("input /world/distance")["publishers"] == "1", "publishers")
        yield probe, stepper


def said_at(probe: Probe, tick: int) -> Intervention | None:
    said = probe.interventions[-1] if probe.interventions else None
    time_ns = Grid(10.0).time_ns(tick)
    return said if said is not None and from_time(said.header.stamp) == time_ns else None


def alert(probe: Probe, stepper: Stepper, **values: float) -> Intervention:
    for _ in range(30):
        if of(stepper.step(**values), "brake").level == Risk.LEVEL_ACT:
            found = probe.wait(lambda: said_at(probe, stepper.tick - 1), "what is asked for")
            assert isinstance(found, Intervention)
            return found
    raise AssertionError("no alert")


def test_a_stop_names_rule_signals_topics_and_publishers(driven: tuple[Probe, Stepper]) -> None:
    probe, stepper = driven
    said = alert(probe, stepper, speed=3.0, distance=5.0)
    assert said.formula == "always(close implies eventually[0:1](not moving))"
    found = {source.signal: source for source in said.sources}
    assert list(found) == ["speed", "distance", "ttc"]
    distance = found["distance"]
    assert (distance.topic, distance.value, distance.known) == ("/world/distance", 5.0, True)
    assert list(distance.publishers) == ["/probe"]
    assert "close" in distance.predicates
    assert (distance.age, from_time(distance.stamp)) == (0.0, from_time(said.header.stamp))
    assert (list(found["ttc"].arguments), found["ttc"].topic) == (["distance", "speed"], "")
    assert found["ttc"].value == pytest.approx(5 / 3)
    assert said.account.startswith(said.reason)
    assert "speed 3 (/world/odometry, /probe, 0 s old)" in said.account
    assert "distance 5 (/world/distance, /probe, 0 s old)" in said.account
    assert said.would_lower in said.account


def test_a_stop_from_what_is_stale_says_which_and_since_when(driven: tuple[Probe, Stepper]) -> None:
    probe, stepper = driven
    last_ns = stepper.grid.time_ns(stepper.tick)
    stepper.step(speed=3.0, distance=9.0)
    said = alert(probe, stepper, speed=3.0)
    first = said.sources[0]
    assert (first.signal, first.known, first.text) == ("distance", False, "unknown")
    assert math.isnan(first.value)
    assert from_time(first.stamp) == last_ns
    # It may be half a second old, so the tick after that is the first without a value.
    assert from_time(first.unknown_since) == last_ns + 600_000_000
    assert first.age == (from_time(said.header.stamp) - last_ns) / 1e9
    assert "unknown: distance (/world/distance, /probe, " in said.account
    calm = stepper.step(speed=0.0, distance=30.0)
    stepper.steps(15, speed=3.0, distance=30.0)
    assert calm
    last = probe.interventions[-1]
    assert (last.action, last.formula, list(last.sources)) == (Intervention.NONE, "", [])
