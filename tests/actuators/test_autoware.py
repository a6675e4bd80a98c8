"""The actuator for Autoware against a stand-in selector and handler in another process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from acting import Live, alert, calm, config
from live_ros import Probe, Process, Stepper, monitor_parameters
from planners import Planner
from rclpy.node import NodeNameNonExistentError

pytestmark = pytest.mark.ros
AUTOWARE = "{autoware: {}}"


def test_a_limit_then_a_stop_then_a_manoeuvre_and_the_way_back(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live(AUTOWARE)
    stepper.steps(5, speed=3.0, distance=30.0)
    probe.wait_for_status("actuator autoware", "OK", "nothing is asked for")
    alert(stepper, 2)
    limit = planner.wait("limit")
    assert limit["max_velocity"] == 1.25
    assert limit["sender"] == "forewarn"
    assert limit["use_constraints"] is False
    assert limit["stamp"] != {"sec": 0, "nanosec": 0}
    probe.wait_for_status("actuator autoware", "OK", "at most 1.25 m/s: taken up")
    assert probe.level("intervention") == "OK"
    alert(stepper, 3)
    limit = planner.wait("limit", lambda m: m["max_velocity"] == 0.0)
    assert limit["use_constraints"] is True
    assert limit["constraints"] == pytest.approx(
        {"max_acceleration": 0.0, "min_acceleration": -1.0, "max_jerk": 0.6, "min_jerk": -0.6}
    )
    probe.wait_for_status("intervention", "ERROR", "COMFORTABLE_STOP")
    alert(stepper, 4)
    request = planner.wait("request")
    assert (request["sender"], request["strategy"]) == ("forewarn", 2)
    limit = planner.wait("limit", lambda m: m["constraints"]["min_acceleration"] == -2.5)
    assert limit["max_velocity"] == 0.0
    probe.wait_for_status("actuator autoware", "OK", "manoeuvre for EMERGENCY_STOP: taken up")
    assert planner.count("clear") == 0
    calm(stepper)
    clear = planner.wait("clear")
    assert (clear["command"], clear["sender"], clear["known"]) == (True, "forewarn", True)
    request = planner.wait("request", lambda m: m["strategy"] == 1)
    assert request["sender"] == "forewarn"
    probe.wait_for_status("actuator autoware", "OK", "nothing is asked for")
    assert planner.wait("in force")["max_velocity"] == 15.0
    assert planner.count("clear") == 1
    assert [m["strategy"] for m in planner.of("request")] == [2, 1]
    planner.tell(others={"someone": 0.5})  # a lower limit of another satisfies ours
    alert(stepper, 2)
    probe.wait_for_status("actuator autoware", "OK", "taken up")
    assert planner.wait("in force", lambda m: m["max_velocity"] < 1.0)["sender"] == "someone"
    assert probe.values("actuator autoware")["limit in force by"] == "someone"


def test_a_limit_that_is_not_taken_up_becomes_an_error(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live("{autoware: {confirm_timeout: 0.5}}", deaf=True)
    alert(stepper, 2)
    probe.wait_for_status("actuator autoware", "ERROR", "not taken up for")
    probe.wait_for_status("actuator autoware", "ERROR", "15 m/s by '' is in force")
    planner.tell(deaf=False)
    probe.wait_for_status("actuator autoware", "OK", "taken up")


def test_a_limit_that_is_not_cleared_becomes_an_error_and_no_storm(
    live: Callable[..., Live],
) -> None:
    probe, stepper, planner = live("{autoware: {confirm_timeout: 0.5}}", keeps=True)
    alert(stepper, 2)
    probe.wait_for_status("actuator autoware", "OK", "taken up")
    calm(stepper)
    probe.wait_for_status("actuator autoware", "ERROR", "our limit was cleared, and is in force")
    asked, begun = planner.count("clear"), time.monotonic()
    probe.wait(lambda: planner.count("clear") > asked + 3, "it to be cleared again")
    assert time.monotonic() - begun > 0.4, "not at once, whenever it is told that it failed"
    planner.tell(keeps=False)
    probe.wait_for_status("actuator autoware", "OK", "nothing is asked for")
    assert all(item["known"] for item in planner.of("clear"))


def test_a_call_whose_answer_is_lost_is_made_again(
    live: Callable[..., Live], interfaces: dict[str, str]
) -> None:
    probe, stepper, planner = live("{autoware: {confirm_timeout: 0.5}}")
    planner.process.send_signal(signal.SIGSTOP)
    alert(stepper, 4)
    probe.wait_for_status("actuator autoware", "ERROR", "not taken up for")
    planner.process.kill()
    planner.process.wait()
    with Planner("autoware", probe, interfaces) as later:
        request = later.wait("request")
        assert (request["sender"], request["strategy"]) == ("forewarn", 2)
        probe.wait_for_status("actuator autoware", "OK", "taken up")
        calm(stepper)
        later.wait("request", lambda m: m["strategy"] == 1)


def test_a_manoeuvre_refused_failing_or_unanswered_becomes_an_error(
    live: Callable[..., Live],
) -> None:
    probe, stepper, planner = live("{autoware: {confirm_timeout: 0.5}}", refuse=True)
    alert(stepper, 4)
    probe.wait_for_status("actuator autoware", "ERROR", "DELEGATE refused (40000): not now")
    planner.tell(refuse=False)
    probe.wait_for_status("actuator autoware", "OK", "manoeuvre for EMERGENCY_STOP: taken up")
    planner.tell(failing=True)
    probe.wait_for_status("actuator autoware", "ERROR", "the manoeuvre has FAILED")
    planner.tell(refuse=True, failing=False)
    calm(stepper)
    probe.wait_for_status("actuator autoware", "ERROR", "CANCEL refused (40000): not now")
    planner.tell(refuse=False)
    probe.wait_for_status("actuator autoware", "OK", "nothing is asked for")


def test_a_selector_that_comes_later_is_told_and_an_old_limit_is_withdrawn(
    live: Callable[..., Live], interfaces: dict[str, str]
) -> None:
    probe, stepper, planner = live(AUTOWARE)
    alert(stepper, 2)
    planner.wait("limit")
    calm(stepper)
    planner.wait("clear")
    planner.close()
    # It is sent the latched limit and the latched clear, in an order that nobody promises.
    with Planner("autoware", probe, interfaces) as later:
        later.wait("limit")
        later.wait("in force", lambda m: m["sender"] == "")
        alert(stepper, 2)
        later.wait("in force", lambda m: m["max_velocity"] == 1.25)
        probe.wait_for_status("actuator autoware", "OK", "taken up")


def test_who_only_observes_has_nothing_to_act_with(
    world: Path, tmp_path: Path, probe: Probe, installed: dict[str, str]
) -> None:
    path = Path(config(tmp_path, "{autoware: {}}"))
    path.write_text(path.read_text().replace("mode: act", "mode: observe"))
    with Process(
        "main",
        probe.domain,
        monitor_parameters(world, config=str(path), mode="act", use_sim_time=True),
    ):
        stepper = Stepper(probe)
        stepper.begin()
        alert(stepper, 2)
        assert not any(intervention.active for intervention in probe.interventions)

        def named(what: str) -> set[str]:
            with suppress(NodeNameNonExistentError):
                ask = getattr(probe.node, f"get_{what}_names_and_types_by_node")
                return {name for name, _ in ask("monitor", "/")}
            return set()

        def all_known() -> bool:
            """Wait for the graph, which may come after the verdicts; actuators precede services."""
            known = named("publisher") | named("service")
            return {"/monitor/output/risk", "/monitor/load_model"} <= known

        probe.wait(all_known, "what the monitor publishes and serves")
        names = named("publisher") | named("client")
        assert not [name for name in names if name.startswith(("/plan", "/api"))]


LOADED = """
import sys
import monitor_node.node
from forewarn.config.file import load_spec
from monitor_node.actuators.loading import check_messages
for file in sys.argv[1:]:
    check_messages(load_spec(file).actuators)
    print(*sorted(each for each in sys.modules if each.startswith("monitor_node.actuators.")))
"""


def test_an_actuator_that_is_not_named_is_not_loaded(tmp_path: Path) -> None:
    files = []
    for name, named in (
        ("none", "{}"),
        ("twist", "{twist: {input: /a, output: /b, max_speed: 2, max_turn: 2}}"),
    ):
        (tmp_path / name).mkdir()
        files.append(config(tmp_path / name, named))
    command = [sys.executable, "-c", LOADED, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    without, loaded = (
        {word.rpartition(".")[2] for word in line.split()} for line in done.stdout.splitlines()
    )
    assert without == {"interface", "loading"}
    assert loaded == without | {"twist"}


def test_missing_messages_are_named_when_the_node_is_configured(
    world: Path, tmp_path: Path, probe: Probe
) -> None:
    parameters = monitor_parameters(world, mode="act", autostart=False)
    with Process("main", probe.domain, parameters):
        for named, package in (
            ("autoware", "autoware_internal_planning_msgs"),
            ("nav2", "nav2_msgs"),
        ):
            assert probe.set(config=config(tmp_path, f"{{{named}: {{}}}}")).successful
            assert not probe.change("configure")
            probe.wait_for_status("node", "ERROR", f"actuators.{named}")
            assert f"an installed package {package}" in probe.text("node")
            assert probe.state == "unconfigured"
