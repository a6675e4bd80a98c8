"""Requirements in FRET's structured English: scope, condition, component, timing, response.

Read as FRET reads them (Giannakopoulou, Pressburger, Mavridou and Schumann, "Automated
formalization of structured natural language requirements", Information and Software Technology
137, 2021), and translated into properties that a monitor can watch.
"""

from __future__ import annotations

from forewarn.logic.fret.explanation import in_words
from forewarn.logic.fret.meaning import Translation, translate
from forewarn.logic.fret.requirement import FretRequirement
from forewarn.logic.fret.sentences import read_requirement

__all__ = ["FretRequirement", "Translation", "in_words", "read_requirement", "translate"]
