"""Risk of every product state, by numpy and scipy or by Storm."""

from forewarn.checking.interface import RiskTable
from forewarn.checking.labels import ENDED, label_states
from forewarn.checking.numeric import risk_table

__all__ = ["ENDED", "RiskTable", "label_states", "risk_table"]
