"""Simpler monitors on the same runs: what a chain has to be better than.

Each gives one score a tick, the greater the more dangerous, and its alerts follow the same rule as
Forewarn's. Scores come from signals of the scenario's monitor file, so all monitors see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import rtamt
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Signals = Mapping[str, Floats]
Score = Callable[[Signals], Floats]

FAR = 1000.0  # stands for infinity in a robustness
CERTAIN = 10.0  # margin of what is true or false without a measure: the colour of a light
STANDING = 0.14  # m/s, as in config/laws
ROBUSTNESS_LEVELS = (0.4, 0.8, 1.2)
TICKS_A_SECOND = 10


class Quantity(NamedTuple):
    """A single quantity: a signal, whether the small values are the dangerous ones, and a memory.

    With a memory of some seconds the score is the worst of that time: a quantity of the stop line
    is gone behind the line, while a law like "then stand within 2 s" is broken only later.
    """

    signal: str
    falling: bool = False
    memory: float = 0.0

    @property
    def name(self) -> str:
        """Return the signal, and its memory if there is one."""
        return f"{self.signal}, worst of {self.memory:g} s" if self.memory else self.signal

    def score(self, signals: Signals) -> Floats:
        """Return the score of each tick, shape (n,)."""
        score = -signals[self.signal] if self.falling else signals[self.signal]
        return worst_of(score, round(self.memory * TICKS_A_SECOND))


def with_memory(seconds: float, *signals: str) -> tuple[Quantity, ...]:
    """Return quantities with and without a memory; a minus says that small values are dangerous."""
    return tuple(
        Quantity(signal.lstrip("-"), signal.startswith("-"), memory)
        for signal in signals
        for memory in (0.0, seconds)
    )


def worst_of(score: Floats, ticks: int) -> Floats:
    """Return the greatest score of the last `ticks` and the present tick."""
    padded = np.concatenate((np.full(ticks, -np.inf), score))
    windows = np.lib.stride_tricks.sliding_window_view(padded, ticks + 1)
    return np.fmax.reduce(windows, axis=1)


def inverse_ttc(signals: Signals) -> Floats:
    """Return 1 over the time to collision with the vehicle ahead (1/s)."""
    with np.errstate(divide="ignore"):
        return 1.0 / np.maximum(signals["time_to_collision"], 1e-3)


def _truth(values: Floats) -> Floats:
    return np.where(values > 0, CERTAIN, -CERTAIN)


def _margins_38(s: Signals) -> dict[str, Floats]:
    return {
        "yellow": _truth(s["light_colour"] == 2),
        "outside": _truth(s["in_junction"] == 0),
        "near": 3.5 - s["stop_line_distance"],
        "before": s["stop_line_distance"] - 0.5,
        "standing": STANDING - s["speed"],
    }


def _margins_51(s: Signals) -> dict[str, Floats]:
    return {
        "red": _truth(s["light_colour"] == 1),
        "line": 2.0 - s["stop_line_distance"],
        "crossing": 2.0 - s["junction_distance"],
        "lead": 0.5 - s["lead_distance"],
        "standing": STANDING - s["speed"],
    }


def _margins_53(s: Signals) -> dict[str, Floats]:
    return {
        "jam": _truth(s["traffic_jam"]),
        "stopped": STANDING - s["lead_speed"],
        "lead": 0.5 - s["lead_distance"],
        "crossing": 1.0 - s["junction_distance"],
        "standing": STANDING - s["speed"],
    }


class Law(NamedTuple):
    """A rule in real values: a formula in RTAMT's words, and its margins computed from signals."""

    formula: str
    margins: Callable[[Signals], dict[str, Floats]]


class Rivals(NamedTuple):
    """What a scenario is compared with: its law, single quantities, and whether others matter."""

    law: Law
    quantities: tuple[Quantity, ...]
    collisions: bool = False


def _within(trigger: str, seconds: int) -> str:
    return f"({trigger}) implies eventually[0:{seconds * TICKS_A_SECOND}](standing >= 0)"


YELLOW = Law(_within("yellow >= 0 and near >= 0 and before >= 0 and outside >= 0", 3), _margins_38)
RED = Law(_within("red >= 0 and (line >= 0 or crossing >= 0 or lead >= 0)", 2), _margins_51)
JAM = Law(_within("jam >= 0 and (stopped >= 0 or lead >= 0 or crossing >= 0)", 2), _margins_53)
CLEAR = Law("clearance >= 0", lambda s: {"clearance": s["clearance"]})

AT_YELLOW = with_memory(
    3.0, "brake_at_yellow", "-time_at_yellow", "-line_at_yellow", "speed_at_yellow"
)
AT_RED = with_memory(
    *(2.0, "brake_at_red", "-time_at_red", "-line_at_red", "speed_at_red"),
    *("brake_needed", "brake_short"),
)
IN_JAM = with_memory(2.0, "jam_brake", "-jam_time", "-jam_line", "jam_speed", "-room")
AMONG_OTHERS = tuple(
    Quantity(signal, falling=True)
    for signal in ("soonest_conflict", "conflict_straight", "conflict_on_path", "clearance")
)
SCENARIOS = {
    "s1": Rivals(YELLOW, AT_YELLOW),
    "s2": Rivals(RED, AT_RED),
    "s3": Rivals(RED, AT_RED),
    "s4": Rivals(RED, AT_RED),
    "s5": Rivals(JAM, IN_JAM),
    "s6": Rivals(CLEAR, AMONG_OTHERS, collisions=True),
    "s7": Rivals(
        CLEAR, (*AMONG_OTHERS, Quantity("time_to_crossing", falling=True)), collisions=True
    ),
}


def robustness(law: Law, signals: Signals) -> Floats:
    """Return the robustness of a law, as RTAMT computes it online, shape (n,).

    Bounds of the future are moved into the past: at each tick it is the robustness of the newest
    instance of the law that is decided. `always` around the law is left out, so that it may rise
    again.
    """
    values = {
        name: np.clip(np.nan_to_num(series, nan=-FAR), -FAR, FAR)
        for name, series in law.margins(signals).items()
    }
    spec = rtamt.StlDiscreteTimeSpecification()
    for name in (*values, "out"):
        spec.declare_var(name, "float")
    spec.spec = f"out = {law.formula}"
    spec.parse()
    spec.pastify()
    rows = zip(*(series.tolist() for series in values.values()), strict=True)
    return np.array(
        [spec.update(tick, list(zip(values, row, strict=True))) for tick, row in enumerate(rows)]
    )
