"""Which figure of a property is compared with its thresholds: the key `risk_measure`."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec


class RiskMeasure(IntEnum):
    """What is compared; the number is that of forewarn_msgs/msg/Risk."""

    RISK = 0
    UPPER = 1
    MIN_RISK = 2
    EXPECTED = 3

    @property
    def words(self) -> str:
        """What it is called in sentences."""
        return ("risk", "upper bound", "least risk of all choices", "expected risk")[self]

    def chosen(self, risk: float, upper: float, min_risk: float, expected: float) -> float:
        """Return the figure that is compared."""
        return (risk, upper, min_risk, expected)[self]


BY_KEY = {measure.name.lower(): measure for measure in RiskMeasure}
"""By the words of the monitor file."""


def needs_bounds(spec: MonitorSpec) -> bool:
    """Tell whether a threshold is compared with a bound: then nothing may begin without bounds."""
    return any(section.risk_measure == "upper" for section in spec.properties.values())
