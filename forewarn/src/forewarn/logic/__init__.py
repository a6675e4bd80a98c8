"""Properties: the language, and the deterministic automata that monitor it."""

from __future__ import annotations

from forewarn.logic.automaton import (
    Automaton,
    compatible_classes,
    horizon_notes,
    is_stricter,
    letter_of,
    restart_state,
    step,
    successors,
)
from forewarn.logic.compilation import compile_formula
from forewarn.logic.explanation import Explanation, explain
from forewarn.logic.lexer import RESERVED
from forewarn.logic.parser import parse_formula
from forewarn.logic.printing import format_formula
from forewarn.logic.syntax import Formula, atoms_of

__all__ = [
    "RESERVED",
    "Automaton",
    "Explanation",
    "Formula",
    "atoms_of",
    "compatible_classes",
    "compile_formula",
    "explain",
    "format_formula",
    "horizon_notes",
    "is_stricter",
    "letter_of",
    "parse_formula",
    "restart_state",
    "step",
    "successors",
]
