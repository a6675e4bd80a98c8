"""Goals that wait to be judged, and what became of those before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import nan
from typing import Any, NamedTuple

from rclpy.lifecycle import LifecycleNode
from rclpy.task import Future

from forewarn.config.file import MonitorSpec
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.session_events import GoalDecided
from forewarn.wings.agents.goals import decision, goal_reason, judge_goal, undecided
from forewarn.wings.agents.proposals import Judgement
from forewarn_ros.status import Severity, Status
from monitor_node import conversions
from monitor_node.guards.proxy import ActionProxy, Verdict, action_class, settle
from monitor_node.outputs import Outputs


class Goal(NamedTuple):
    """A goal that waits for its verdict: its guard, and the goal itself."""

    guard: str
    payload: bytes
    verdict: Future


@dataclass
class Tally:
    """What became of the goals of a guard."""

    passed: int = 0
    refused: int = 0
    failed: int = 0
    last: str = ""


class Goals:
    """The guards of a node, from its configuration on.

    While the monitor is not active no goal can be judged, and `on_failure` says what becomes of it.
    """

    def __init__(
        self,
        node: LifecycleNode,
        spec: MonitorSpec,
        outputs: Outputs,
        now_ns: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        self._spec, self._outputs, self._now_ns, self._warn = spec, outputs, now_ns, warn
        self.active = False
        self._waiting: deque[Goal] = deque()
        self._tallies = {name: Tally() for name in spec.guards}
        self._published = 0
        kinds = {name: action_class(name, guard) for name, guard in spec.guards.items()}
        self._proxies = {
            name: ActionProxy(node, kinds[name], guard, self._asking(name), self._saying(name))
            for name, guard in spec.guards.items()
        }

    @property
    def waiting(self) -> bool:
        """Tell whether a goal waits to be judged."""
        while self._waiting and self._waiting[0].verdict.done():  # waited for in vain
            self._waiting.popleft()
        return bool(self._waiting)

    def stop(self, reason: str) -> None:
        """Cancel all goals that passed: the guard no longer watches them."""
        self.active = False
        while self._waiting:
            goal = self._waiting.popleft()
            self._unjudged(goal, 0, f"the monitor {reason}")
        for proxy in self._proxies.values():
            proxy.cancel_all(f"the monitor {reason}")

    def close(self) -> None:
        """Leave all actions."""
        for proxy in self._proxies.values():
            proxy.close()

    @property
    def running(self) -> int:
        """How many goals are carried out."""
        return sum(proxy.running for proxy in self._proxies.values())

    def decide(self, watch: LiveSession, tick: int) -> tuple[GoalDecided, str, bytes]:
        """Judge the first goal that waits, for the next tick."""
        goal = self._waiting.popleft()
        guard = self._spec.guards[goal.guard]
        try:
            found = judge_goal(watch, tick, guard.topic, goal.payload)
        except Exception as error:
            decided = self._unjudged(goal, tick, f"{type(error).__name__}: {error}")
        else:
            decided = decision(goal.guard, guard.topic, tick, goal.payload, found)
            self._judged(goal, decided, found)
        return decided, guard.topic, goal.payload

    def _judged(self, goal: Goal, decided: GoalDecided, found: Judgement) -> None:
        reason = goal_reason(self._spec, found)
        self._settle(goal, decided, reason)
        if found.property:
            self._publish(goal.guard, decided, found.properties, found.evidence)

    def _unjudged(self, goal: Goal, tick: int, failure: str) -> GoalDecided:
        guard = self._spec.guards[goal.guard]
        passes = guard.on_failure == "pass"
        decided = undecided(
            goal.guard, guard.topic, tick, goal.payload, failure[:500], passes=passes
        )
        self._tallies[goal.guard].failed += 1
        self._settle(goal, decided, f"{decided.reason}: {decided.failure}")
        self._publish(goal.guard, decided, (), (failure[:500],))
        return decided

    def _settle(self, goal: Goal, decided: GoalDecided, reason: str) -> None:
        tally = self._tallies[goal.guard]
        if decided.passes:
            tally.passed += 1
            tally.last = f"passed, though {reason}" if decided.property or decided.failure else ""
        else:
            tally.refused += 1
            tally.last = f"refused: {reason}"
        if tally.last:
            self._warn(f"guard {goal.guard}: the goal {tally.last}")
        settle(goal.verdict, Verdict(decided.passes, reason))

    def _publish(
        self, guard: str, decided: GoalDecided, names: tuple[str, ...], facts: tuple[str, ...]
    ) -> None:
        self._published += 1
        action = self._spec.guards[guard].action
        request = Intervention(
            id=self._published,
            action=decided.action,
            active=decided.active,
            property=decided.property,
            properties=names,
            risk=decided.risk,
            speed_limit=nan,
            reason=f"a goal of {action}: {decided.reason}",
            evidence=facts,
        )
        message = conversions.intervention(self._now_ns(), request, self._outputs.signature)
        if self._outputs.refusal is not None:
            self._outputs.refusal.publish(message)

    def _asking(self, name: str) -> Callable[[bytes, Future], None]:
        def ask(payload: bytes, verdict: Future) -> None:
            goal = Goal(name, payload, verdict)
            if self.active:
                self._waiting.append(goal)
            else:
                self._unjudged(goal, 0, "the monitor is not active")

        return ask

    def _saying(self, name: str) -> Callable[[str], None]:
        guard = self._spec.guards[name]

        def say(problem: str) -> None:
            self._warn(f"guard {name}: {problem}")
            passed = undecided(name, guard.topic, 0, b"", problem, passes=True)
            self._publish(name, replace(passed, reason=problem), (), ())

        return say

    def statuses(self) -> Iterator[Status]:
        """Report on each guard."""
        for name, proxy in self._proxies.items():
            tally = self._tallies[name]
            values: dict[str, Any] = {
                "passed": tally.passed,
                "refused": tally.refused,
                "not judged": tally.failed,
                "running": proxy.running,
            }
            problem, others = proxy.problem or proxy.trouble(), proxy.strangers()
            if problem:
                yield Status(f"guard {name}", Severity.ERROR, problem, values)
            elif others > 0:
                server = self._spec.guards[name].server
                text = f"{others} other clients can send goals to {server} past the guard"
                yield Status(f"guard {name}", Severity.WARN, text, values)
            else:
                text = f"the last goal was {tally.last}" if tally.last else "goals are checked"
                yield Status(f"guard {name}", Severity.OK, text, values)
