"""What the beams of a range sensor say, and what they do not (REP-117)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.operators import elementwise, numbers
from forewarn.expressions.values import NAN, Notes, vector


def _meant(ranges: Any, low: Any, high: Any, zero: Any = NAN) -> Any:
    """Return what each beam means: a distance, inf for nothing in range, NaN for no reading.

    What is nearer than the sensor measures (-inf) is at 0. A `range_max` that is not above
    `range_min` was not filled in, and bounds nothing.
    """
    meant = np.where((ranges > high) & (high > low), np.inf, ranges)
    unset = (ranges <= 0.0) & (low > 0.0)
    return np.where(np.isneginf(ranges), 0.0, np.where(unset, zero, meant))


def _nearest(notes: Notes, beams: Any) -> Any:
    items = numbers(notes, vector(beams) if isinstance(beams, list) else beams)
    if items is None or not isinstance(items[0], np.ndarray):
        return notes.unknown("nearest_beam() needs an array of numbers")
    found = float(np.fmin.reduce(items[0], initial=np.nan))
    return found if found == found else notes.unknown("no beam has a valid reading")


def _refused(arguments: Sequence[ast.expr]) -> tuple[str, str] | None:
    if len(arguments) != 2:
        return None
    return "nearest_beam() is given 2 arguments", "ranges, range_min, range_max, and what 0.0 means"


register(
    {
        "beam_ranges": Function(
            elementwise(_meant),
            3,
            4,
            "what beams mean, of ranges, range_min, range_max: -inf is 0; beyond range_max is inf; "
            "0 or less is no reading, or what a fourth argument says",
            3,
        ),
        "nearest_beam": Function(
            _nearest,
            1,
            4,
            "least of `beam_ranges` of the same arguments; unknown if no beam has a reading",
            refusal=_refused,
        ),
    }
)
