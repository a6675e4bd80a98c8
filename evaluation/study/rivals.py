"""Simpler monitors on the same runs: what a chain has to be better than.

Each gives one score a tick, the greater the more dangerous, and its alerts follow the same rule as
Forewarn's. Scores come from signals of the scenario's monitor file, so all monitors see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import rtamt
from numpy.typing import NDArray

from forewarn.assessment.tradeoff import ScoredRun

Floats = NDArray[np.float64]
Signals = Mapping[str, Floats]

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


def with_memory(quantities: Iterable[tuple[str, bool]], seconds: float) -> tuple[Quantity, ...]:
    """Return every quantity with and without a memory."""
    return tuple(
        Quantity(*quantity, memory) for quantity in quantities for memory in (0.0, seconds)
    )


def score_of(quantity: Quantity, signals: Signals) -> Floats:
    """Return a score from a quantity, shape (n,)."""
    values = signals[quantity.signal]
    score = -values if quantity.falling else values
    return worst_of(score, round(quantity.memory * TICKS_A_SECOND))


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


def _clearance(s: Signals) -> dict[str, Floats]:
    return {"clearance": s["clearance"]}


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
CLEAR = Law("clearance >= 0", _clearance)

AT_YELLOW = with_memory(
    [
        ("brake_at_yellow", False),
        ("time_at_yellow", True),
        ("line_at_yellow", True),
        ("speed_at_yellow", False),
    ],
    3.0,
)
AT_RED = with_memory(
    [
        ("brake_at_red", False),
        ("time_at_red", True),
        ("line_at_red", True),
        ("speed_at_red", False),
        ("brake_needed", False),
        ("brake_short", False),
    ],
    2.0,
)
IN_JAM = with_memory(
    [
        ("jam_brake", False),
        ("jam_time", True),
        ("jam_line", True),
        ("jam_speed", False),
        ("room", True),
    ],
    2.0,
)
AMONG_OTHERS = (
    Quantity("soonest_conflict", falling=True),
    Quantity("conflict_straight", falling=True),
    Quantity("conflict_on_path", falling=True),
    Quantity("clearance", falling=True),
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


def rescored(traces: Sequence[ScoredRun], scores: Iterable[Floats]) -> list[ScoredRun]:
    """Return the same runs with other scores."""
    return [
        trace._replace(score=score, unseen=None)
        for trace, score in zip(traces, scores, strict=True)
    ]
