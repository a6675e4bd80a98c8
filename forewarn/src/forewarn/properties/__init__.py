"""Properties: the language, and the deterministic automata that monitor it."""

from __future__ import annotations

from forewarn.properties.automaton import (
    Automaton,
    compatible_classes,
    is_stricter,
    letter_of,
    restart_state,
    step,
    successors,
)
from forewarn.properties.compilation import compile_formula
from forewarn.properties.explanation import Explanation, explain
from forewarn.properties.lexer import RESERVED
from forewarn.properties.parser import parse_formula
from forewarn.properties.printing import format_formula
from forewarn.properties.syntax import Formula, atoms_of

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
    "is_stricter",
    "letter_of",
    "parse_formula",
    "restart_state",
    "step",
    "successors",
]
