"""An alert of a running monitor has a life, which topic, service and diagnostics tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forewarn_msgs.msg import Alert, AlertArray, Risk
from forewarn_msgs.srv import Acknowledge, ListAlerts, Release, Reset
from live_process import Process
from live_ros import KEPT, Probe, Stepper, free_domain, monitor_parameters, of, stepped

from forewarn_ros.messages import from_time

pytestmark = pytest.mark.ros


def alert(stepper: Stepper) -> None:
    for _ in range(10):
        if of(stepper.step(speed=3.0, distance=5.0), "brake").level == Risk.LEVEL_ACT:
            return
    raise AssertionError("no alert")


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


@contextmanager
def life(world: Path, domain: int, **parameters: Any) -> Iterator[tuple[Process, Probe, Stepper]]:
    """Run a monitor that a test may kill."""
    probe = Probe(domain)
    settings = monitor_parameters(world, use_sim_time=True, **parameters)
    with Process("main", domain, settings) as process:
        yield process, probe, Stepper(probe)
    probe.close()


def numbers(probe: Probe, **asked: Any) -> list[int]:
    return [one.id for one in probe.call(ListAlerts, "list_alerts", **asked).alerts]


def test_what_nobody_acknowledged_outlives_kills_jumps_resets_and_other_files(
    world: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    brake = {"properties": ["brake"], "unacknowledged": True}
    with free_domain() as domain:
        with life(world, domain, journal=str(journal)) as (process, probe, stepper):
            stepper.begin()
            alert(stepper)
            (first,) = numbers(probe, **brake)
            process.process.kill()
            process.wait()
        # The next life shows it before its first tick, and the alert goes on.
        with life(world, domain, journal=str(journal)) as (process, probe, later):
            probe.wait_for_status("alerts", "OK", f"{first} brake")
            later.begin(stepper.tick)
            assert of(later.step(speed=3.0, distance=5.0), "brake").level == Risk.LEVEL_ACT
            assert numbers(probe, **brake) == [first]
            assert probe.call(Reset, "reset").success
            later.steps(12, speed=1.0, distance=30.0)
            listed = probe.call(ListAlerts, "list_alerts", **brake).alerts
            assert [(one.id, one.state) for one in listed] == [(first, Alert.ENDED)]
            alert(later)
            second = max(numbers(probe, **brake))
            assert second > first
            process.process.kill()
            process.wait()
        # The clock of the third life is an hour behind: the alert is over, and not forgotten.
        with life(world, domain, journal=str(journal)) as (process, probe, jumped):
            jumped.begin(stepper.tick - 36_000)
            jumped.step(speed=1.0, distance=30.0)
            listed = probe.call(ListAlerts, "list_alerts", **brake).alerts
            assert [(one.id, one.state) for one in listed] == [
                (first, Alert.ENDED),
                (second, Alert.ENDED),
            ]
            assert "without a memory of its former state" in listed[-1].end_reason
            assert "not recalled" in process.output
            heard = {"alerts": [first], "requester": "anna"}
            assert probe.call(Acknowledge, "acknowledge", **heard).success
            process.process.kill()
            process.wait()
        # Without the property nobody asks for its alerts any more.
        other = tmp_path / "monitor.yaml"
        text = (world / "monitor.yaml").read_text()
        assert "  brake:" in text
        other.write_text(text.replace("  brake:", "  slow_down:"))
        changed = {"journal": str(journal), "config": str(other)}
        with life(world, domain, **changed) as (process, probe, last):
            last.begin(stepper.tick)
            last.step(speed=1.0, distance=30.0)
            assert second not in numbers(probe)
            assert f"unacknowledged alert {second} of brake is dropped" in process.output
            assert f"alert {first} of" not in process.output, "anna knows of it"


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
