"""A node that judges plans before anything moves, and replays to the same without the rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn_msgs.msg import Intervention
from kitchen_plans import MONITOR, RULES
from live_ros import Probe, Process, Stepper
from std_msgs.msg import String

from forewarn.assessment.record_replay import replay_record
from forewarn.cli import main

pytestmark = pytest.mark.ros

TREE = (
    '<root BTCPP_format="4"><BehaviorTree ID="warm"><Sequence>'
    '<Action ID="putin" x="fork_1" y="microwave"/><Action ID="turn_on" x="microwave"/>'
    "</Sequence></BehaviorTree></root>"
)


def test_a_plan_is_judged_before_it_is_carried_out(
    start: Callable[..., Process], probe: Probe, tmp_path: Path
) -> None:
    config, record = tmp_path / "monitor.yaml", tmp_path / "record.mcap"
    config.write_text(MONITOR)
    rules = tmp_path / "kitchen.yaml"
    rules.write_text(RULES)
    process = start(config=str(config), model="", record=str(record), mode="act", use_sim_time=True)
    stepper = Stepper(probe)
    stepper.begin()

    def judged(plan: str) -> None:
        probe.deliver(String(data=plan), "/plan", "std_msgs/msg/String")
        stepper.step()

    def asked(plan: str) -> Intervention:
        known = len(probe.interventions)
        judged(plan)
        probe.wait(lambda: len(probe.interventions) > known, "an intervention")
        return probe.interventions[known]

    planner = "0.000: (putin bowl microwave)  [1.000]\n1.001: (turn_on microwave)  [1.000]"
    judged(planner)
    stepper.report()
    probe.wait_for_status("plan objection", "OK", "the plan is safe")
    refused = asked(TREE)
    assert (refused.action, refused.active) == (Intervention.REPLAN, True)
    assert refused.property == "safe_plan"
    assert [one for one in probe.interventions if one.active] == [refused], "the first was safe"
    told = "no_fork: broken at step 2, turn_on(microwave), f = fork_1"
    assert f"objection: {told}" in list(refused.evidence)
    stepper.report()
    probe.wait_for_status("plan objection", "ERROR", told)
    unread = asked("do something clever, please!")
    assert unread.action == Intervention.REPLAN
    assert any("cannot be judged" in fact for fact in unread.evidence)
    over = asked("(putin bowl microwave)")
    assert over.action == Intervention.NONE
    assert process.stop() == 0, process.output
    rules.unlink()
    ticks = list(replay_record(record))
    assert len(ticks) == 4
    assert [line for tick in ticks for line in tick.differences()] == []
    evidence = [tick.result.request.evidence for tick in ticks if tick.result.request]
    assert evidence[0] == tuple(refused.evidence)
    assert main(["verify", str(record)]) == 0
