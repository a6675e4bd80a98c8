"""States that are leaves of a tree, together with predicates: ``states: {kind: tree}``."""

from __future__ import annotations

from forewarn.states.kinds import Kind
from forewarn.wings.trees.abstraction import build_tree_abstraction
from forewarn.wings.trees.space import parse_space

KIND = Kind(build_tree_abstraction, parse_space)
