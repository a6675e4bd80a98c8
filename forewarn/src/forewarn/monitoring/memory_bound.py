"""What a monitor will keep in memory at most while it runs, part by part: pure.

Only what grows with what happens is counted here. The interpreter with its libraries and the model
are there from the beginning, and of each topic one or two messages, as large as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from forewarn.config.fields import size_text
from forewarn.expressions.functions.memory import Memory
from forewarn.signals.frame_tree import MOST_TRANSFORMS

if TYPE_CHECKING:  # `validate` has no need of what solves
    from forewarn.config.file import MonitorSpec
    from forewarn.monitoring.step import Monitor
    from forewarn.states.abstraction import Abstraction

MOST_ALERTS = 200
"""Alerts that are kept; the oldest that are over go first, acknowledged ones before others."""
MOST_COUNTED = 200_000
"""Different transitions, with those of two steps and of actions, that a session counts."""

NUMBER = 40
"""Bytes of a number and of its place in a list."""
ALERT = 40_000
"""Bytes of an alert with the longest texts that services take, and the path of an incident."""
TRANSFORM = 800
"""Bytes of a transform between two frames."""
MOMENT = 1_000
"""Bytes of a moment that is kept to grow a tree, beside its numbers."""
COUNTED = 700
"""Bytes of a transition that is counted, and counted once more while a model is made of it."""
EXTREME = 160
"""Bytes of a moment in the window of an extreme: its value and its number."""
TABLE = 2 * 4 * 8
"""Bytes of a state's risk, bounds and expected time, twice."""
EXACT_SUM = 2_000
"""Bytes of an exact sum, and of what else a function keeps that remembers."""


class Part(NamedTuple):
    """A part of a monitor that grows."""

    name: str
    bytes: int
    what: str


def growing_parts(
    spec: MonitorSpec, abstraction: Abstraction, monitor: Monitor | None = None
) -> tuple[Part, ...]:
    """Return what grows in a node that runs a monitor file, with a bound for each part.

    `monitor`: the monitor with its model; without it, risk tables are left out.
    """
    return tuple(_parts(spec, abstraction, monitor))


def _parts(spec: MonitorSpec, abstraction: Abstraction, monitor: Monitor | None) -> Iterator[Part]:
    if spec.black_box is not None:
        yield Part("black box", spec.black_box.memory, "messages before and after a trigger")
    trees = {
        (one.frame.topic, one.frame.static) for one in abstraction.sources if one.frame is not None
    }
    if trees:
        kept = len(trees) * MOST_TRANSFORMS
        yield Part("frames", kept * TRANSFORM, f"{kept:,} transforms")
    alerts = MOST_ALERTS + len(spec.properties)
    yield Part("alerts", alerts * ALERT, f"the last {alerts}, with the longest texts")
    windows = [
        (one.memory.moments + 2) * EXTREME
        for one in abstraction.derived
        if isinstance(one.memory, Memory)
    ]
    windows += [
        (score.moments + 2) * (len(score.signals) + 4) * NUMBER for _, score in abstraction.scores
    ]
    if windows:
        # A window and the one that follows it are there together.
        kept = 2 * sum(size + EXACT_SUM for size in windows)
        yield Part("expressions", kept, f"what {len(windows)} calls and scores remember")
    if spec.learning.regrow is not None:
        each = MOMENT + 2 * NUMBER * len(abstraction.sources)
        what = f"{spec.learning.remember:,} moments of numbers, to grow a tree from"
        yield Part("regrowing", spec.learning.remember * each, what)
    if spec.learning.online:
        yield Part("online learning", MOST_COUNTED * COUNTED, f"{MOST_COUNTED:,} different counts")
    if monitor is not None:
        cells = sum(
            (1 if prop.raw is prop.table else 2) * prop.table.values.size
            for prop in monitor.properties
            if prop.table is not None
        )
        what = "with all bounds, and once more while others replace them"
        yield Part("risk tables", cells * TABLE, what)


def memory_bound(parts: tuple[Part, ...]) -> str:
    """Return the bound of the whole, and of each part, in one line for people."""
    each = "; ".join(f"{part.name} {size_text(part.bytes)} ({part.what})" for part in parts)
    total = size_text(sum(part.bytes for part in parts))
    return f"a node needs up to {total}, plus libraries, model and newest messages: {each}"
