"""Whether two formulas of linear temporal logic mean the same, and what tells them apart."""

from __future__ import annotations

from forewarn.logic.equivalence.decision import Difference, Verdict, compare
from forewarn.logic.equivalence.kinds import RequirementKind, kind_of

__all__ = ["Difference", "RequirementKind", "Verdict", "compare", "kind_of"]
