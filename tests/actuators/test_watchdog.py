"""When the gate trusts the monitor."""

from __future__ import annotations

import math

import pytest

from monitor_node.actuators.interface import NOTHING, Demand
from monitor_node.watchdog import Watchdog

LIMIT, STOP, EMERGENCY = (
    Demand("LIMIT_SPEED", 1.0, 7),
    Demand("COMFORTABLE_STOP", math.nan, 8),
    Demand("EMERGENCY_STOP", math.nan, 9),
)


@pytest.fixture
def watchdog() -> Watchdog:
    found = Watchdog(0.5)
    found.tick(10.0)
    return found


def test_before_the_first_verdict_the_robot_stands() -> None:
    demand, reason = Watchdog(0.5).demand(0.0)
    assert demand.action == "COMFORTABLE_STOP"
    assert reason == "the monitor has not spoken yet"


def test_a_monitor_that_asks_for_nothing_lets_pass(watchdog: Watchdog) -> None:
    assert watchdog.demand(10.1)[0] == NOTHING
    watchdog.intervene(Demand("WARN"), 10.1)
    assert watchdog.demand(10.2)[0] == NOTHING


def test_what_it_asks_for_is_done(watchdog: Watchdog) -> None:
    for demand in (LIMIT, STOP, EMERGENCY):
        watchdog.intervene(demand, 10.1)
        assert watchdog.demand(10.2) == (demand, "the monitor")
    watchdog.intervene(NOTHING, 10.3)
    assert watchdog.demand(10.3)[0] == NOTHING


def test_silence_stops_the_robot_until_it_speaks_again(watchdog: Watchdog) -> None:
    assert watchdog.demand(10.5)[0] == NOTHING
    demand, reason = watchdog.demand(10.51)
    assert (demand.action, reason) == ("COMFORTABLE_STOP", "the monitor is silent")
    watchdog.tick(12.0)
    assert watchdog.demand(12.1)[0] == NOTHING


def test_an_emergency_stop_stays_one_when_the_monitor_dies(watchdog: Watchdog) -> None:
    watchdog.intervene(EMERGENCY, 10.1)
    assert watchdog.demand(11.0) == (Demand("EMERGENCY_STOP"), "the monitor is silent")


def test_lost_liveliness_and_a_missed_deadline_count_at_once(watchdog: Watchdog) -> None:
    watchdog.missed_deadline()
    assert watchdog.demand(10.1)[1] == "the monitor misses its deadline"
    watchdog.tick(10.2)
    assert watchdog.demand(10.2)[0] == NOTHING
    watchdog.liveliness(0)
    assert watchdog.demand(10.3)[1] == "the monitor has lost its liveliness"
    watchdog.liveliness(1)
    assert watchdog.demand(10.3)[0] == NOTHING


def test_an_intervention_left_alone_stops_the_robot(watchdog: Watchdog) -> None:
    watchdog.intervene(LIMIT, 10.1)
    watchdog.tick(10.9)
    demand, reason = watchdog.demand(11.0)
    assert demand.action == "COMFORTABLE_STOP"
    assert "neither repeated nor withdrawn" in reason
    watchdog.intervene(LIMIT, 11.0)
    assert watchdog.demand(11.1) == (LIMIT, "the monitor")
