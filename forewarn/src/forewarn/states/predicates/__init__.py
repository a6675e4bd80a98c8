"""From signal values to states: predicates, terminal labels, validity."""

from forewarn.states.predicates.abstraction import Abstraction, Seen
from forewarn.states.predicates.comparisons import Comparison, as_comparison
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.vocabulary import Observation

__all__ = [
    "Abstraction",
    "Comparison",
    "Observation",
    "Seen",
    "as_comparison",
    "build_abstraction",
]
