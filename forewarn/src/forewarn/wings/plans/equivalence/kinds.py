"""What kind of requirement a formula is: SENTINEL's state invariants and ordering constraints."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from forewarn.errors import FormulaError
from forewarn.signals.clock_kinds import Grid
from forewarn.signals.clock_kinds import Steps as StepClock
from forewarn.wings.plans.equivalence import nodes
from forewarn.wings.plans.equivalence.lowering import coarsest_rate, lower
from forewarn.wings.plans.equivalence.nodes import LtlArena, TooLarge
from forewarn.wings.plans.equivalence.words import parts

if TYPE_CHECKING:
    from forewarn.logic.syntax import Formula


class RequirementKind(Enum):
    """The types of requirement that SENTINEL reports separately (arXiv 2510.12985)."""

    INVARIANT = "state invariant"
    ORDERING = "ordering constraint"
    OTHER = "other"


def kind_of(formula: Formula) -> RequirementKind:
    """Return what kind of requirement a formula is, by its normal form.

    A *state invariant* is ``always p``, with p about one step alone. An *ordering constraint* is
    one in which something is awaited before something else may or must be: an `until`, `unless`
    or `release` with two sides, as in ``not a until b``, or one `eventually` within another, as in
    ``eventually(a and eventually b)``, or one in which something has to have come, or to have been
    so far: a `since`, `once` or `historically` without a bound. All else is *other*: responses,
    recurrence, single goals.
    """
    arena, rate = LtlArena(finite=False), coarsest_rate((formula,))
    try:
        root = lower(arena, formula, StepClock() if rate is None else Grid(rate))
    except (TooLarge, FormulaError):
        return RequirementKind.OTHER
    node = arena.nodes[root]
    temporal = [n for n in parts(arena, root) if arena.nodes[n].kind in nodes.AHEAD | nodes.BACK]
    endless = node.kind == nodes.RELEASE and node.args[0] == nodes.FALSE and node.upper is None
    if endless and temporal == [root]:
        return RequirementKind.INVARIANT
    ahead = any(arena.nodes[number].kind in nodes.AHEAD for number in temporal)
    if ahead and any(_awaits(arena, number) for number in temporal):
        return RequirementKind.ORDERING
    return RequirementKind.OTHER  # at the first step nothing lies behind


def _awaits(arena: LtlArena, number: int) -> bool:
    node = arena.nodes[number]
    if node.kind in (nodes.NEXT, nodes.PREV, nodes.WEAK_PREV):
        return False
    if node.kind in nodes.BACK:
        return node.upper is None
    left, right = node.args
    if left not in (nodes.TRUE, nodes.FALSE):
        return True
    inner = arena.nodes[right]
    return (
        node.kind == nodes.UNTIL
        and inner.kind == nodes.AND
        and any(arena.nodes[arg].kind == nodes.UNTIL for arg in inner.args)
    )
