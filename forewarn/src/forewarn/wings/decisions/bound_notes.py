"""What a user should know of the bounds of a decision process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forewarn.errors import plural

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.wings.decisions.process_bounds import CountedProcess, Query

WIDE = 0.9
BEYOND = 1e-7
"""How far an estimate may be outside of its bounds by rounding."""


def notes_of(
    counted: CountedProcess, query: Query, lower: Floats, upper: Floats, values: Floats
) -> tuple[str, ...]:
    """Say how far the bounds can be trusted, and whether they tell anything."""
    level = f"{counted.confidence:.0%}"
    notes = [
        f"the bounds are sound: they hold together for all states and actions, at {level}, for "
        "choices among the actions that were observed"
        if not counted.grown
        else "the bounds are not sound: the states were learned from the traces that are counted; "
        "count traces that did not grow them"
    ]
    notes += counted.origin
    if counted.counted.unseen.any():
        notes.append(
            f"nothing was seen done in {plural(int(counted.counted.unseen.sum()), 'state')}: "
            "anything may follow there"
        )
    moving = query.through & ~query.targets & counted.counted.acted[counted.counted.groups[:-1]]
    wide = (upper - lower)[moving] >= WIDE
    if wide.any():
        notes.append(
            f"the bounds are vacuous (wider than {WIDE}) in {wide.mean():.0%} of the states: take "
            "a shorter horizon, or more data"
        )
    beyond = float(np.maximum(lower - values, values - upper).max(initial=0.0))
    if beyond > BEYOND:
        notes.append(
            f"smoothing puts the estimate outside of what the counts allow, by up to {beyond:.3g}: "
            "the bounds are widened to it"
        )
    return tuple(notes)
