"""From signal values to states: predicates, terminal labels, validity."""

from forewarn.states.predicates.abstraction import Abstraction, Observation
from forewarn.states.predicates.comparisons import Comparison, as_comparison
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.predicates.history import with_history

__all__ = [
    "Abstraction",
    "Comparison",
    "Observation",
    "as_comparison",
    "build_abstraction",
    "with_history",
]
