"""Counting, coverage and tests of what was learned."""

from forewarn.learning.counting import Counts, TransitionCounter, build_model

__all__ = ["Counts", "TransitionCounter", "build_model"]
