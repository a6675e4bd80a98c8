"""From signal values to states: predicates, terminal labels, validity."""

from forewarn.predicates.abstraction import Abstraction, Observation
from forewarn.predicates.building import build_abstraction
from forewarn.predicates.comparisons import Comparison, as_comparison
from forewarn.predicates.history import with_history

__all__ = [
    "Abstraction",
    "Comparison",
    "Observation",
    "as_comparison",
    "build_abstraction",
    "with_history",
]
