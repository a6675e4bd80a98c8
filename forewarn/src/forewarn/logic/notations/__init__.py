"""Formulas as other tools and translators write them."""

from __future__ import annotations

from forewarn.logic.notations.answers import is_prose, unwrapped
from forewarn.logic.notations.reader import Reading, TooLargeError, read_formula
from forewarn.logic.notations.tables import NOTATIONS

__all__ = ["NOTATIONS", "Reading", "TooLargeError", "is_prose", "read_formula", "unwrapped"]
