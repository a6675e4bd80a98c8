"""The section ``guards``: actions of ROS 2 whose goals the monitor checks on their way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, model_validator

from forewarn.config.fields import Misfit, Positive, Section

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec


def _like(pattern: str, accepted: str) -> AfterValidator:
    """Return the check that a text has a form, of which `accepted` is an example."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"has another form (accepted: {accepted})")
        return value

    return AfterValidator(check)


Name = Annotated[str, _like(r"(/[A-Za-z_]\w*)+", "/navigate_to_pose")]
Type = Annotated[str, _like(r"[a-z]\w*/action/[A-Z]\w*", "nav2_msgs/action/NavigateToPose")]
FieldName = Annotated[str, _like(r"[a-z]\w*", "error_msg")]


class GuardSpec(Section):
    """An action whose goals are checked before they are passed on.

    Attributes
    ----------
    action : str
        Name under which clients send goals: the node serves it. Signals read the goals as topic
        ``ACTION/goal``.
    server : str
        Name of the action that carries goals out.
    type : str
        Type of the action, such as ``nav2_msgs/action/NavigateToPose``; any that is installed.
    reason : str or None
        Text field of the result that says why a goal was refused: such a goal is accepted and ended
        at once. Without it goals are rejected without a word.
    on_failure : str
        What becomes of a goal that cannot be judged: ``block`` refuses it, ``pass`` passes it on
        unchecked.
    timeout : float
        Seconds, by the wall clock, within which a goal is judged, and within which the server
        answers.
    """

    action: Name
    server: Name
    type: Type
    reason: FieldName | None = None
    on_failure: Literal["block", "pass"] = "block"
    timeout: Positive = 2.0

    @model_validator(mode="after")
    def _two_names(self) -> GuardSpec:
        if self.action == self.server:
            raise ValueError(f"action and server are both {self.action}: two names are needed")
        return self

    @property
    def topic(self) -> str:
        """Topic under which signals read the goals."""
        return f"{self.action}/goal"

    @property
    def goal_type(self) -> str:
        """Message type of a goal."""
        return f"{self.type}_Goal"

    @classmethod
    def misfits(cls, spec: MonitorSpec) -> Iterator[Misfit]:
        """Yield all in which guards do not fit each other, or the signals that read goals."""
        served: dict[str, str] = {}
        for name, guard in spec.guards.items():
            at = ("guards", name)
            for key in ("action", "server"):
                taken = served.setdefault(getattr(guard, key), f"{name}.{key}")
                if taken != f"{name}.{key}":
                    yield Misfit(
                        (*at, key), f"{getattr(guard, key)} is guards.{taken}", "another name"
                    )
            for signal, section in spec.signals.items():
                if section.topic == guard.topic and section.message_type != guard.goal_type:
                    problem = f"{section.message_type} is not the type of goals of guards.{name}"
                    yield Misfit(("signals", signal, "type"), problem, guard.goal_type)
            if spec.clock == "steps" and spec.step != guard.topic:
                steps = spec.step or "signals by name"
                yield Misfit(
                    ("step",),
                    f"{steps}: a goal of guards.{name} would wait for such a step to be judged",
                    f"{guard.topic}, and no other guard; or clock: ticks",
                )
