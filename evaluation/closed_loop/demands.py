"""What is demanded of the ego, and rules without a model that demand it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from forewarn.config.actions import ACTIONS, NO_ACTION, SEVERITY
from forewarn.monitoring.intervention import Request
from forewarn.monitoring.policy import RESTING, Level, PolicyState, Rules, decide

Values = Mapping[str, Any]


class Demand(NamedTuple):
    """An action as the monitor names them, and the speed limit in m/s that may go with it."""

    action: str = NO_ACTION
    speed_limit: float = math.nan

    @property
    def moves(self) -> bool:
        """It changes how the ego moves."""
        return ACTIONS[self.action].moves

    @property
    def stops(self) -> bool:
        """It ends in standing still."""
        return ACTIONS[self.action].stops


NOTHING = Demand()


def demand_of(request: Request | None) -> Demand:
    """Return what an intervention demands; what is not active, or asks for words, demands none."""
    if request is None or not request.active:
        return NOTHING
    demand = Demand(request.action, request.speed_limit)
    return demand if demand.moves else NOTHING


class Quantity(NamedTuple):
    """A rule on one number, the greater the more dangerous, with the monitor's own policy."""

    name: str
    score: Callable[[Values], float]
    act: float
    release: float
    action: str
    hold: int = 5  # ticks that an alert lasts at the least
    most: float = math.inf  # ticks after which nothing is demanded, though it lasts


class QuantityRules:
    """Demands the strongest action of all quantities that are too great.

    They alert like the monitor's properties: at once, and until they were below `release` for five
    ticks and their alert has lasted for `hold`.

    Parameters
    ----------
    quantities : sequence of Quantity
        The rules.
    """

    def __init__(self, quantities: Sequence[Quantity]) -> None:
        self._quantities = tuple(quantities)
        self._rules = [
            Rules(q.act, q.act, q.release, q.release, 1, 5, q.hold, Level.NONE, 0)
            for q in quantities
        ]
        self._states: list[PolicyState] = [RESTING] * len(self._quantities)

    def decide(self, tick: int, values: Values) -> Demand:
        """Return what is demanded at a tick.

        Parameters
        ----------
        tick : int
            Its number.
        values : mapping
            The values of all signals; None where unknown.
        """
        demanded = NOTHING
        for index, quantity in enumerate(self._quantities):
            state = decide(self._rules[index], self._states[index], tick, quantity.score(values))
            self._states[index] = state
            acts = state.level is Level.ACT and tick - state.since < quantity.most
            if acts and SEVERITY.index(quantity.action) > SEVERITY.index(demanded.action):
                demanded = Demand(quantity.action)
        return demanded


def number(values: Values, name: str, otherwise: float = math.nan) -> float:
    """Return a signal as a number; `otherwise` where it is unknown."""
    value = values.get(name)
    return float(value) if isinstance(value, (bool, int, float)) else otherwise


def time_to_conflict(values: Values) -> float:
    """Return the least of the monitor file's times to conflict, in seconds."""
    times = [number(values, name, math.inf) for name in values if name.startswith("conflict")]
    return min((time_ns for time_ns in times if time_ns == time_ns), default=math.inf)


def physical_quantities(
    deceleration: float, conflict: float, hold: int = 5, most: float = math.inf
) -> tuple[Quantity, ...]:
    """Return the rules that a monitor without a model would have.

    Parameters
    ----------
    deceleration : float
        m/s^2 that it takes to stop at a red or yellow light.
    conflict : float
        Seconds until the ego meets somebody if both go on as they do.
    hold : int
        Ticks for which a stop at a light lasts at the least.
    most : float
        Ticks for which a stop before others lasts at the most.
    """
    return (
        Quantity(
            "required deceleration",
            lambda values: number(values, "brake_needed"),
            deceleration,
            0.6 * deceleration,
            "EMERGENCY_STOP",
            hold,
        ),
        Quantity(
            "time to conflict",
            lambda values: -time_to_conflict(values),
            -conflict,
            -1.5 * conflict,
            "EMERGENCY_STOP",
            most=most,
        ),
    )


LIGHT_AHEAD = 40.0  # m
CLOSE = 10.0  # m ahead of the ego's centre
BESIDE = 3.0  # m to either side


def stops_for_everything() -> tuple[Quantity, ...]:
    """Return the rules of a monitor that knows no risk but stops: at lights, before anybody."""
    return (
        Quantity("light", _light_ahead, 1.0, 0.5, "COMFORTABLE_STOP"),
        Quantity("anybody", _anybody_close, 1.0, 0.5, "COMFORTABLE_STOP"),
    )


def _light_ahead(values: Values) -> float:
    line = number(values, "stop_line")
    return float(number(values, "light") in (1.0, 2.0) and 0 < line <= LIGHT_AHEAD)


def _anybody_close(values: Values) -> float:
    cos, sin = (f(number(values, "heading", 0.0)) for f in (math.cos, math.sin))
    x, y = number(values, "ego_x"), number(values, "ego_y")
    others = zip(_list(values, "obj_x"), _list(values, "obj_y"), strict=True)
    offsets = (
        ((ox - x) * cos + (oy - y) * sin, (oy - y) * cos - (ox - x) * sin) for ox, oy in others
    )
    return float(any(0 < along < CLOSE and abs(across) < BESIDE for along, across in offsets))


def _list(values: Values, name: str) -> Sequence[float]:
    value = values.get(name)
    return () if value is None else tuple(map(float, value))
