"""The section ``anomaly``: how anomalous live runs are found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from forewarn.config.fields import Finite, Path, Section
from forewarn.config.signals import Limit

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec


class AnomalySpec(Section):
    """How anomalous live runs are found.

    Attributes
    ----------
    file : str or None
        What ``forewarn anomalies --save`` wrote for the model; a relative path starts at this file.
        Where not given: moments of normal runs that ``forewarn learn`` kept in the model.
    alpha : float or None
        Share of normal runs that may be reported. Where not given: that of the file, or 0.05.
    test : str or None
        When a run is anomalous. Where not given: that of the file; without a file always
        `conformal`.
    run : float
        Seconds after which another run begins, where no terminal label has ended it before. Runs to
        calibrate on should be as long.
    """

    file: Annotated[str, Field(min_length=1)] | None = None
    alpha: Annotated[Finite, Field(gt=0, le=0.5)] | None = None
    test: Literal["conformal", "prefix", "cusum", "checkpoints"] | None = None
    run: Limit = math.inf

    @classmethod
    def durations(cls, spec: MonitorSpec) -> Iterator[tuple[Path, float]]:
        """Yield how long a run is."""
        yield ("anomaly", "run"), spec.anomaly.run
