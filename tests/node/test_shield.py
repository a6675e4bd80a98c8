"""A node that recommends an action beside what it asks for, over real topics."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from forewarn_msgs.msg import Intervention
from forewarn_msgs.srv import Explain
from live_ros import Probe, Process
from small_world import DISTANCE, MONITOR, ODOMETRY

from forewarn.assessment.record_replay import replay_record
from forewarn.cli import main

pytestmark = pytest.mark.ros

TEXT = (
    MONITOR.replace("rate: 10", f"clock: steps\nstep: {DISTANCE}")
    .replace("timeout: 0.5", "timeout: 1000")
    .replace("hold: 0.2", "hold: 2")
    .replace("intervention: COMFORTABLE_STOP", "intervention: REPLAN")
    + "mode: act\n"
    + "action: \"'brake' if speed < 2.9 else 'go'\"\n"
    + "shield: {failure: collision, success: '!moving & !collision', at_least: 0.5, horizon: 30}\n"
)


def test_an_intervention_carries_what_else_could_be_done(
    start: Callable[..., Process], probe: Probe, by_steps: Callable[..., dict[str, str]]
) -> None:
    files = by_steps(TEXT)
    process = start(**files, mode="act")
    probe.wait_for_start()
    probe.meet()

    def step(distance: float) -> Intervention:
        known = len(probe.interventions)
        probe.say(DISTANCE, distance)
        # At the start it may say that nothing is asked for, or may have said so before we listened.
        asked = lambda: any(one.active for one in probe.interventions[known:])  # noqa: E731
        probe.wait(asked, "an intervention")
        return probe.interventions[-1]

    probe.say(ODOMETRY, 3.0)
    asked = step(5.0)
    assert asked.action == Intervention.REPLAN and asked.active
    assert asked.recommendation in {"brake", "go"}
    assert f"{asked.recommendation!r} was seen" in asked.recommendation_reason
    assert {one.action for one in asked.alternatives} == {"brake", "go"}
    first = asked.alternatives[0]
    assert first.action == asked.recommendation and first.feasible
    for one in asked.alternatives:
        assert one.visits > 0 and 0 <= one.failure_lower <= one.failure <= one.failure_upper <= 1
        assert 0 <= one.success_lower <= one.success <= one.success_upper <= 1
    assert first.failure == min(one.failure for one in asked.alternatives if one.feasible)
    told = probe.call(Explain, "explain", property="brake")
    assert f"The shield recommends {asked.recommendation!r}" in told.text
    assert f"the shield: {asked.recommendation_reason}" in process.output
    probe.say(ODOMETRY, 0.1)  # standing right before something was never seen
    strange = step(0.6)
    assert strange.recommendation == "" and not strange.alternatives
    assert "nothing was seen done" in strange.recommendation_reason
    assert process.stop() == 0, process.output
    ticks = list(replay_record(files["record"]))
    assert [line for tick in ticks for line in tick.differences()] == []
    request = ticks[0].result.request
    assert request is not None and request.recommendation == asked.recommendation
    assert [one.failure for one in request.alternatives] == [
        one.failure for one in asked.alternatives
    ]
    assert main(["verify", files["record"]]) == 0
