"""The section ``shield``: which action is recommended beside an intervention."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from forewarn.config.fields import Path, Section
from forewarn.config.sections import Horizon, Probability

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec


class ShieldSpec(Section):
    """Which action is recommended beside an intervention.

    Attributes
    ----------
    failure, success : str
        State formulas: predicates and terminal labels with ``!``, ``&`` and ``|``, comparisons in
        double quotes. Both end an execution.
    at_least : float
        Probability of success that an action has to leave.
    horizon : float
        Seconds within which failure counts, ``unbounded`` for ever. Success may take its time.
    """

    failure: Annotated[str, Field(min_length=1)]
    success: Annotated[str, Field(min_length=1)]
    at_least: Probability = 0.9
    horizon: Horizon = math.inf

    @classmethod
    def durations(cls, spec: MonitorSpec) -> Iterator[tuple[Path, float]]:
        """Yield the horizon."""
        yield ("shield", "horizon"), spec.shield.horizon
