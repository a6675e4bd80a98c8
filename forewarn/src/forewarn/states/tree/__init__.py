"""States that are leaves of a predicate tree, each with the declared predicates."""

from forewarn.states.tree.abstraction import build_tree_abstraction
from forewarn.states.tree.space import TREE, parse_space

__all__ = ["TREE", "build_tree_abstraction", "parse_space"]
