"""From signal values to states: predicates, terminal labels, validity."""

from forewarn.expressions.comparisons import Comparison, as_comparison
from forewarn.states.predicates.abstraction import PredicateAbstraction
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.vocabulary import Observation

__all__ = [
    "Comparison",
    "Observation",
    "PredicateAbstraction",
    "as_comparison",
    "build_abstraction",
]
