"""An alert of a running monitor has a life, which topic, service and diagnostics tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn_msgs.msg import Alert, AlertArray
from forewarn_msgs.srv import Acknowledge, ListAlerts, Release
from live_ros import KEPT, Probe, alert, stepped

from forewarn_ros.messages import from_time

pytestmark = pytest.mark.ros


def test_an_alert_lives_until_somebody_has_taken_note_of_it(world: Path) -> None:
    with stepped(world) as (process, probe, stepper):
        said: list[AlertArray] = []
        probe.node.create_subscription(AlertArray, "/monitor/output/alerts", said.append, KEPT)
        stepper.begin()
        stepper.step(speed=1.0, distance=30.0)
        assert not probe.call(Acknowledge, "acknowledge", requester="anna").success
        alert(stepper)
        acted_ns = stepper.grid.time_ns(stepper.tick - 1)

        def newest() -> Alert | None:
            found = [one for one in said[-1].alerts if one.property == "brake"] if said else []
            return found[-1] if found else None

        probe.wait(lambda: (one := newest()) and one.state == Alert.ACTING, "an acting alert")
        first = newest()
        assert first is not None
        assert from_time(first.acted) == acted_ns
        assert (first.intervention, first.acknowledged_by) == (1, "")
        probe.wait_for_status("alerts", "OK", f"1 unacknowledged: {first.id} brake")
        stepper.step(speed=0.0, distance=5.0)
        released = {"properties": ["brake"], "requester": "bob", "reason": "it stands"}
        assert probe.call(Release, "release", **released).success
        stepper.steps(5, speed=3.0, distance=30.0)
        probe.wait(lambda: (one := newest()) and one.state == Alert.ENDED, "its end")
        over = newest()
        assert over is not None
        assert over.end_reason == "released by bob: it stands"
        probe.wait_for_status("alerts", "OK", "unacknowledged")
        asked = {"properties": ["brake"], "unacknowledged": True}
        listed = probe.call(ListAlerts, "list_alerts", **asked)
        assert [one.id for one in listed.alerts] == [first.id]
        assert not probe.call(ListAlerts, "list_alerts", properties=["nothing"]).success
        wrong = probe.call(Acknowledge, "acknowledge", alerts=[99])
        assert not wrong.success
        assert "no alert 99" in wrong.message
        heard = {"alerts": [first.id], "requester": "anna", "reason": "a curtain"}
        assert probe.call(Acknowledge, "acknowledge", **heard).success
        probe.wait(lambda: (one := newest()) and one.acknowledged_by == "anna", "the note")
        known = newest()
        assert known is not None
        assert known.note == "a curtain"
        assert probe.call(ListAlerts, "list_alerts", **asked).alerts == []
        probe.wait_for_status("alerts", "OK", "all acknowledged")
        assert {"event": "acknowledge", "alerts": [first.id]}.items() <= probe.events[-1].items()
        assert "acknowledged (by anna: a curtain): alert" in process.output


def numbers(probe: Probe, **asked: Any) -> list[int]:
    return [one.id for one in probe.call(ListAlerts, "list_alerts", **asked).alerts]


def test_deactivating_forgets_no_alert(world: Path) -> None:
    with stepped(world) as (_, probe, stepper):
        stepper.begin()
        alert(stepper)
        found = numbers(probe, unacknowledged=True)
        assert probe.change("deactivate")
        assert probe.change("activate")
        assert numbers(probe, unacknowledged=True) == found
        listed = probe.call(ListAlerts, "list_alerts").alerts
        assert {one.state for one in listed} == {Alert.ENDED}
