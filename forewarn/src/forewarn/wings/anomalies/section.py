"""The section ``anomaly``: how anomalous live runs are found."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from forewarn.config.fields import Finite, Section
from forewarn.config.signals import Limit


class AnomalySpec(Section):
    """How anomalous live runs are found.

    Attributes
    ----------
    file : str
        What ``forewarn anomalies --save`` wrote for the model; a relative path starts at this file.
    alpha : float or None
        Share of normal runs that may be reported. Where not given: that of the file.
    test : str or None
        When a run is anomalous. Where not given: that of the file.
    run : float
        Seconds after which another run begins, where no terminal label has ended it before. Runs to
        calibrate on should be as long.
    """

    file: Annotated[str, Field(min_length=1)]
    alpha: Annotated[Finite, Field(gt=0, le=0.5)] | None = None
    test: Literal["conformal", "prefix", "cusum", "checkpoints"] | None = None
    run: Limit = math.inf
