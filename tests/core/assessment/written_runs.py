"""Runs that fit on one line.

A run is written as two texts of one character a tick. Levels: ``.`` none, ``w`` WARN, ``A`` ACT.
Facts: ``.`` nothing, ``V`` a violation, ``v`` its condition lasts, ``-`` inactive, ``E`` an episode
has ended, ``T`` a terminal label that the rule names, ``?`` a violation may have happened, ``~``
the automaton may be in one of several states, ``_`` the tick is missing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forewarn.assessment.history import Track
from forewarn.monitoring.branches import Breach, Evidence, follow
from forewarn.monitoring.verdict import PropertyStatus

STATUS = {
    ".": PropertyStatus.SATISFIED_SO_FAR,
    "V": PropertyStatus.VIOLATED,
    "v": PropertyStatus.VIOLATED,
    "-": PropertyStatus.INACTIVE,
    "E": PropertyStatus.ENDED,
    "T": PropertyStatus.VIOLATED,
    "?": PropertyStatus.UNKNOWN,
    "~": PropertyStatus.SATISFIED_SO_FAR,
}


def breaches(facts: str, clear: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    """Return the columns `counted` and `broken` of facts of one character a tick."""
    breach: Breach | None = None
    columns = []
    for fact in facts:
        now = Evidence(
            violation=fact in "VT",
            ended=fact in "E-",
            terminal=fact in "ET-",
            unknown=fact in "?~",
            waits=fact in "Vv",
            obliged=False,
        )
        breach, broken, counted = follow(breach, now, clear)
        columns.append((counted, broken))
    table = np.array(columns, dtype=np.int8).reshape(-1, 2)
    return {"counted": table[:, 0].astype(bool), "broken": table[:, 1]}


def track(
    levels: str,
    facts: str,
    *,
    horizon: int | None = 3,
    clear: int = 1,
    risk: list[float] | None = None,
    rate: float = 10.0,
    first: int = 100,
) -> Track:
    assert len(levels) == len(facts)
    there = [i for i, fact in enumerate(facts) if fact != "_"]
    told = "".join(facts[i] for i in there)
    n = len(told)

    def marked(letters: str) -> np.ndarray[Any, Any]:
        return np.array([fact in letters for fact in told], dtype=bool)

    risks = np.array([0.5] * len(facts) if risk is None else risk)[there]
    return Track(
        name="rule",
        rate=rate,
        horizon=horizon,
        ticks=np.array([first + i for i in there], dtype=np.int64),
        state=np.where(marked("-?"), -1, 0).astype(np.int32),
        status=np.array([STATUS[fact] for fact in told], dtype=np.int8),
        violation=marked("VT"),
        possible=marked("?"),
        **breaches(told, clear),
        probability=risks,
        figure=risks,
        out_of_model=np.zeros(n, dtype=bool),
        held=np.zeros(n, dtype=bool),
        lower=np.full(n, math.nan),
        upper=np.full(n, math.nan),
        in_model=np.ones(n, dtype=bool),
        terminal=marked("ET"),
        ambiguous=marked("~?"),
        level=np.array([".wA".index(levels[i]) for i in there], dtype=np.int8),
        automaton=np.zeros(n, dtype=np.int32),
    )


HAZARD, AHEAD = 0.02, 20


def clips(seed: int, seconds: float, count: int = 2000) -> list[Track]:
    """Return short recordings of a memoryless danger, and a monitor that knows its risk."""
    draws = np.random.default_rng(seed)
    size = round(seconds * 10)
    right = 1 - (1 - HAZARD) ** AHEAD
    runs = []
    for _ in range(count):
        facts = "".join("V" if hit else "." for hit in draws.random(size) < HAZARD)
        runs.append(track("." * size, facts, horizon=AHEAD, risk=[right] * size))
    return runs
