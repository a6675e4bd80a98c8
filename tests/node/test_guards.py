"""Guards over DDS: goals of a client, the monitor between, and a server that stands in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from action_msgs.msg import GoalStatus
from forewarn_msgs.action import RunStep
from forewarn_msgs.msg import Intervention
from live_ros import KEPT, PATIENCE, Probe, Process
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import GoalEvent
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_msgs.msg import Bool

from forewarn.assessment.record_replay import replay_record
from forewarn.cli import main

pytestmark = pytest.mark.ros

MONITOR = """\
version: 1
rate: 10
startup_grace: 0
mode: act
signals:
  wanted: {topic: /run_step/goal, type: forewarn_msgs/action/RunStep_Goal, value: action,
    timeout: never, default: ''}
  objects: {topic: /run_step/goal, type: forewarn_msgs/action/RunStep_Goal, value: arguments,
    timeout: never, default: []}
  door_open: {topic: /door, type: std_msgs/msg/Bool, value: data, timeout: never, default: false}
predicates:
  driving: wanted == 'drive'
  fork_in: "wanted == 'put' and 'fork' in objects"
  open: door_open
properties:
  no_fork:
    formula: always(not fork_in)
    intervention: REPLAN
    description: No fork goes anywhere.
  door: {formula: always(not (driving and open)), intervention: COMFORTABLE_STOP}
guards:
  arm: {action: /run_step, server: /real/run_step, type: forewarn_msgs/action/RunStep, MORE}
"""
BY_STEPS = MONITOR.replace("rate: 10", "clock: steps\nstep: /run_step/goal")


class Server:
    """Carries goals out when it is told to."""

    def __init__(self, probe: Probe, name: str = "/real/run_step") -> None:
        self.probe = probe
        self.goals: list[Any] = []
        self.accepts = self.cancels = True
        self.slow: Any = None
        self.server = ActionServer(
            probe.node,
            RunStep,
            name,
            execute_callback=self._execute,
            goal_callback=self._asked,
            handle_accepted_callback=self.goals.append,
            cancel_callback=lambda goal: (
                CancelResponse.ACCEPT if self.cancels else CancelResponse.REJECT
            ),
            callback_group=ReentrantCallbackGroup(),
        )

    async def _asked(self, goal: Any) -> GoalResponse:
        if self.slow is not None:
            await self.slow
        return GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT

    def _execute(self, goal: Any) -> Any:
        if goal.is_cancel_requested:
            goal.canceled()
            return RunStep.Result(text="put back")
        goal.succeed()
        return RunStep.Result(success=True, text="done")

    def goal(self) -> Any:
        """Wait for the next goal."""
        self.probe.wait(lambda: self.goals, "a goal at the server")
        return self.goals.pop(0)

    def close(self) -> None:
        self.server.destroy()


class Client:
    """Sends goals to the guard."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.client = ActionClient(probe.node, RunStep, "/run_step")
        self.feedback: list[str] = []

    def send(self, action: str, *arguments: str) -> Any:
        probe = self.probe
        probe.wait(self.client.server_is_ready, "the guard")
        return self.client.send_goal_async(
            RunStep.Goal(action=action, arguments=list(arguments)),
            feedback_callback=lambda message: self.feedback.append(message.feedback.text),
        )

    def greet(self) -> tuple[int, RunStep.Result] | None:
        """Send a goal that is refused until the guard knows whom to answer; see `Probe.call`.

        Return what the client is told, or None if that is a mere rejection.
        """
        handle = self.asked(lambda: self.send("put", "fork", "microwave"))
        if not handle.accepted:
            return None
        response = self.asked(handle.get_result_async)
        return response.status, response.result

    def asked(self, ask: Callable[[], Any]) -> Any:
        futures: list[Any] = []
        while not any(future.done() for future in futures):
            futures.append(ask())
            end = time.monotonic() + PATIENCE
            self.probe.wait(
                lambda: any(future.done() for future in futures) or time.monotonic() > end  # noqa: B023
            )
        return next(future.result() for future in futures if future.done())

    def sent(self, action: str, *arguments: str) -> Any:
        return self.done(self.send(action, *arguments))

    def sent_once_served(self, server: Server, *goal: str) -> Any:
        """Send a goal again while the guard does not see a single server yet."""

        def served() -> Any:
            handle = self.sent(*goal)
            done = handle.get_result_async()
            self.probe.wait(lambda: done.done() or server.goals, "an end, or the goal")
            texts = ("there is no server", "2 servers are called")
            gone = done.done() and done.result().result.text.startswith(texts)
            return None if gone else handle

        return self.probe.wait(served, "a server that the guard sees")

    def done(self, future: Any) -> Any:
        self.probe.wait(future.done, "an answer")
        return future.result()

    def result(self, handle: Any) -> tuple[int, RunStep.Result]:
        response = self.done(handle.get_result_async())
        return response.status, response.result


@pytest.fixture
def client(probe: Probe) -> Iterator[Client]:
    found = Client(probe)
    yield found
    found.client.destroy()


@pytest.fixture
def server(probe: Probe) -> Iterator[Server]:
    found = Server(probe)
    yield found
    found.close()


@pytest.fixture
def refusals(probe: Probe) -> list[Intervention]:
    found: list[Intervention] = []
    topic = f"{probe.monitor}/output/refusal"
    probe.node.create_subscription(Intervention, topic, found.append, KEPT)
    return found


@pytest.fixture
def run(start: Callable[..., Process], tmp_path: Path) -> Callable[..., Process]:
    """Return a function that starts a monitor with a guard."""

    def running(more: str = "reason: text", text: str = MONITOR, **parameters: Any) -> Process:
        config = tmp_path / "monitor.yaml"
        config.write_text(text.replace("MORE", more))
        return start(config=str(config), model="", mode="act", **parameters)

    return running


Run = Callable[..., Process]
DONE, ABORTED, CANCELED = (
    getattr(GoalStatus, f"STATUS_{name}") for name in ("SUCCEEDED", "ABORTED", "CANCELED")
)


def replays(record: Path) -> None:
    ticks = list(replay_record(record))
    assert [line for tick in ticks for line in tick.differences()] == []
    assert main(["verify", str(record)]) == 0


def test_goals_pass_or_are_refused_with_a_reason(
    run: Run,
    probe: Probe,
    server: Server,
    client: Client,
    refusals: list[Intervention],
    tmp_path: Path,
) -> None:
    record = tmp_path / "record.mcap"
    process = run(record=str(record))
    probe.wait_for_status("guard arm", "OK", "goals are checked")
    told = client.greet()
    assert told is not None and told[0] == ABORTED and not told[1].success
    assert told[1].text.startswith("no_fork: this goal breaks the rule; the rule: No fork goes")
    probe.wait(lambda: refusals, "a message about the refusal")
    refusal = refusals[0]
    assert (refusal.action, refusal.active) == (Intervention.REPLAN, True)
    assert refusal.reason == "a goal of /run_step: no_fork: this goal breaks the rule"
    probe.wait_for_status("guard arm", "OK", "refused: no_fork")
    assert not [one for one in probe.interventions if one.active], "nothing has happened"

    handle = client.sent("put", "cup", "shelf")
    assert handle.accepted
    real = server.goal()
    assert (real.request.action, list(real.request.arguments)) == ("put", ["cup", "shelf"])
    real.publish_feedback(RunStep.Feedback(text="half way"))
    probe.wait(lambda: client.feedback == ["half way"], "feedback")
    real.execute()
    status, result = client.result(handle)
    assert (status, result.success, result.text) == (DONE, True, "done")

    # All that the monitor knows counts, and what passed is watched while it is carried out.
    probe.deliver(Bool(data=True), "/door", "std_msgs/msg/Bool")
    status, result = client.result(client.sent("drive"))
    assert status == ABORTED and "door: this goal breaks the rule" in result.text
    probe.deliver(Bool(data=False), "/door", "std_msgs/msg/Bool")
    passed = client.sent("drive")
    real = server.goal()
    probe.deliver(Bool(data=True), "/door", "std_msgs/msg/Bool")
    probe.wait(lambda: any(one.active for one in probe.interventions), "an intervention")
    real.execute()
    assert client.result(passed)[0] == DONE
    assert not server.goals, "what was refused was not passed on"
    assert process.stop() == 0, process.output
    events = [event["passes"] for event in probe.events if event["event"] == "goal"]
    assert events[0] is False and events[-3:] == [True, False, True]
    replays(record)


@pytest.mark.parametrize("choice", ["block", "pass"])
def test_a_goal_of_which_it_is_not_known_whether_it_breaks_a_rule(
    run: Run,
    probe: Probe,
    server: Server,
    client: Client,
    refusals: list[Intervention],
    tmp_path: Path,
    choice: str,
) -> None:
    record = tmp_path / "record.mcap"
    rule = f"  slow: {{formula: always(not fast), intervention: REPLAN, on_unknown: {choice}}}\n"
    text = MONITOR.replace("guards:", f"{rule}guards:").replace(
        "  open: door", "  fast: \"wanted == 'move' and float(objects[0]) > 5\"\n  open: door"
    )
    process = run(text=text, record=str(record))
    client.greet()
    status, result = client.result(client.sent("move", "9"))
    assert status == ABORTED and result.text.startswith("slow: this goal breaks the rule")
    for objects in ([], ["nine"]):
        handle = client.sent("move", *objects)
        if choice == "block":
            status, result = client.result(handle)
            assert status == ABORTED and result.text.startswith("slow: it is not known"), objects
            assert "fast is unknown" in result.text
            probe.wait(lambda: "not known" in refusals[-1].reason, "a message about the refusal")
            probe.wait_for_status("guard arm", "OK", "refused: slow")
        else:
            server.goal().execute()
            assert client.result(handle)[0] == DONE
    handle = client.sent("move", "3")
    server.goal().execute()
    assert client.result(handle)[0] == DONE and not server.goals
    assert process.stop() == 0, process.output
    replays(record)


def test_requests_to_cancel_and_several_goals_at_once(
    run: Run, probe: Probe, server: Server, client: Client
) -> None:
    run()
    probe.wait_for_status("guard arm", "OK", "goals are checked")
    client.greet()
    first, second = client.send("put", "cup"), client.send("put", "plate")
    first, second = client.done(first), client.done(second)
    reals = {goal.request.arguments[0]: goal for goal in (server.goal(), server.goal())}
    assert reals.keys() == {"cup", "plate"}
    probe.wait_for_status("guard arm", "OK")
    server.cancels = False
    refused = client.done(first.cancel_goal_async())
    assert not refused.goals_canceling, "the server did not want to"
    server.cancels = True
    taken = client.done(first.cancel_goal_async())
    assert len(taken.goals_canceling) == 1
    probe.wait(lambda: reals["cup"].is_cancel_requested, "the cancellation")
    reals["cup"].execute()
    assert client.result(first) == (CANCELED, RunStep.Result(text="put back"))
    reals["plate"].execute()
    assert client.result(second)[0] == DONE
    late = client.done(second.cancel_goal_async())
    assert not late.goals_canceling, "it had ended"

    # One that ends while the request is under way: whoever was first, the client learns the end.
    third = client.sent("put", "bowl")
    real = server.goal()
    real.execute()
    asked = third.cancel_goal_async()
    assert client.result(third)[0] in (DONE, CANCELED)
    client.done(asked)
    # Somebody else cancels at the server.
    fourth = client.sent("put", "jar")
    real = server.goal()
    real._update_state(GoalEvent.CANCEL_GOAL)
    real.execute()
    assert client.result(fourth) == (ABORTED, RunStep.Result(text="put back"))
    stranger = ActionClient(probe.node, RunStep, "/real/run_step")
    probe.wait_for_status("guard arm", "WARN", "1 other clients can send goals")
    stranger.destroy()


def test_a_server_that_is_not_there_or_dies_or_does_not_want(
    run: Run, probe: Probe, client: Client, refusals: list[Intervention], tmp_path: Path
) -> None:
    process = run("reason: success, timeout: 20", autostart=False)
    assert not probe.change("configure")
    told = "'success' is no text field of the result of forewarn_msgs/action/RunStep"
    assert f"{told} (accepted: text)" in process.output
    config = tmp_path / "monitor.yaml"
    config.write_text(config.read_text().replace("reason: success", "reason: text"))
    assert probe.change("configure") and probe.change("activate")
    probe.wait_for_status("guard arm", "ERROR", "there is no server /real/run_step")
    assert client.greet() == (ABORTED, RunStep.Result(text="there is no server /real/run_step"))
    server = Server(probe)
    probe.wait_for_status("guard arm", "ERROR", "there is no server")  # until a goal passes
    handle = client.sent_once_served(server, "put", "cup")
    server.goal()
    server.close()
    status, result = client.result(handle)
    died = "the server /real/run_step died while it carried out a goal"
    assert (status, result.text) == (ABORTED, died)
    probe.wait_for_status("guard arm", "ERROR", died)
    server = Server(probe)
    server.accepts = False
    unwanted = client.sent_once_served(server, "put", "cup")
    assert client.result(unwanted)[1].text == "the server /real/run_step rejected the goal"
    twin = Server(probe)
    probe.wait(lambda: "2 servers" in client.result(client.sent("put", "cup"))[1].text, "twins")
    twin.close()
    server.accepts = True
    assert client.sent_once_served(server, "put", "plate").accepted
    real = server.goal()
    probe.wait_for_status("guard arm", "OK", "goals are checked")

    # A monitor that is not active watches nothing.
    assert probe.change("deactivate")
    probe.wait(lambda: real.is_cancel_requested, "the cancellation")
    status, result = client.result(client.sent("put", "cup"))
    assert status == ABORTED and result.text.endswith("the monitor is not active")
    assert process.stop() == 0, process.output
    assert f"a goal of /run_step: {died}" in {one.reason for one in refusals}
    server.close()


def test_a_server_that_answers_too_late_is_told_to_cancel(
    run: Run, probe: Probe, client: Client
) -> None:
    server = Server(probe)
    run("reason: text, timeout: 0.5")
    probe.wait_for_status("guard arm", "OK", "goals are checked")
    client.greet()
    server.slow = Future(executor=probe.executor)
    handle = client.sent("put", "cup")
    late = client.result(handle)
    assert late == (
        ABORTED, RunStep.Result(text="the server /real/run_step did not answer within 0.5 s")
    )  # fmt: skip
    server.slow.set_result(None)
    real = server.goal()
    probe.wait(lambda: real.is_cancel_requested, "the cancellation")
    server.close()


def test_goals_as_steps_are_rejected_without_a_word(
    run: Run, probe: Probe, server: Server, client: Client, tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    process = run("", BY_STEPS, record=str(record))
    probe.wait_for_status("guard arm", "OK", "goals are checked")
    assert client.greet() is None
    assert client.sent("put", "cup").accepted
    assert not client.sent("put", "fork").accepted
    assert client.sent("put", "plate").accepted
    assert not client.sent("put", "x" * 1_100_000).accepted, "too large to be judged"
    probe.wait_for_status("guard arm", "OK", "could not judge")
    probe.wait(lambda: len(probe.risks) == 2, "a verdict for each goal that passed")
    assert [message.risks[0].tick for message in probe.risks] == [0, 1]
    assert process.stop() == 0, process.output
    replays(record)


def test_a_guard_that_cannot_judge_passes_goals_if_told_to(
    run: Run, probe: Probe, server: Server, client: Client, refusals: list[Intervention]
) -> None:
    run("reason: text, on_failure: pass, timeout: 0.5", use_sim_time=True)
    probe.wait_for_status("guard arm", "OK", "goals are checked")
    handle = client.asked(lambda: client.send("put", "fork"))  # no tick: nobody tells the time
    server.goal()
    assert handle.accepted
    probe.wait(lambda: refusals, "word of it")
    assert refusals[0].action == Intervention.WARN
    assert "could not judge the goal within 0.5 s: it passes unchecked" in refusals[0].reason
