"""What a monitor may ask for: the one list of actions, from which everybody else's derives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

NO_ACTION = "NONE"
WARN = "WARN"
ASK = "ASK"
REPLAN = "REPLAN"
LIMIT_SPEED = "LIMIT_SPEED"
COMFORTABLE_STOP = "COMFORTABLE_STOP"
EMERGENCY_STOP = "EMERGENCY_STOP"


ForAgents = Literal["pass", "warn", "ask", "replace", "reflect", "stop"]
FOR_AGENTS: dict[str, ForAgents | None] = {
    "none": "pass",
    "tell": "warn",
    "ask": "ask",
    "replace": "replace",
    "plan": "reflect",
    "limit": None,
    "stop": "stop",
}
"""What becomes of a call that an agent proposes, by the effect of the action."""


class Action(NamedTuple):
    """An action and what it means to the robot or agent.

    Attributes
    ----------
    name : str
        Its name in monitor files, and its constant in forewarn_msgs/msg/Intervention.
    effect : 'none', 'tell', 'ask', 'replace', 'plan', 'limit' or 'stop'
        What happens: nothing is asked for; the operator gets a warning; a person decides first;
        something safer is done instead; another plan is made; there is a speed limit, which the
        action
        carries; the robot comes to a stop.
    hard : bool
        A stop with the largest safe deceleration.
    drives_on : bool
        A stop that needs to drive to its place first.
    """

    name: str
    effect: Literal["none", "tell", "ask", "replace", "plan", "limit", "stop"]
    hard: bool = False
    drives_on: bool = False

    @property
    def askable(self) -> bool:
        """Tell whether a property may ask for it."""
        return self.effect != "none"

    @property
    def agent(self) -> ForAgents | None:
        """Return what it is to an agent that calls tools; None for what only a vehicle can do."""
        return None if self.drives_on else FOR_AGENTS[self.effect]

    @property
    def limits(self) -> bool:
        """Tell whether it carries a speed limit."""
        return self.effect == "limit"

    @property
    def stops(self) -> bool:
        """Tell whether it ends in standing still."""
        return self.effect == "stop"

    @property
    def shapes(self) -> bool:
        """Tell whether what follows is the action's doing."""
        return self.effect not in ("none", "tell", "ask")

    @property
    def moves(self) -> bool:
        """Tell whether it changes the motion."""
        return self.limits or self.stops


ACTIONS = {
    action.name: action
    for action in (
        Action(NO_ACTION, "none"),
        Action(WARN, "tell"),
        Action(ASK, "ask"),
        Action("REPLACE", "replace"),
        Action(REPLAN, "plan"),
        Action(LIMIT_SPEED, "limit"),
        Action("PULL_OVER", "stop", drives_on=True),
        Action(COMFORTABLE_STOP, "stop"),
        Action(EMERGENCY_STOP, "stop", hard=True),
    )
}
"""From the mildest to the strongest: where several properties act, the strongest wins."""
SEVERITY = tuple(ACTIONS)

if TYPE_CHECKING:
    Asked = str
    Stop = str
else:
    Asked = Literal[tuple(name for name, action in ACTIONS.items() if action.askable)]
    Stop = Literal[tuple(name for name, action in ACTIONS.items() if action.stops)]
