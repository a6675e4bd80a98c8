"""What is recommended beside an intervention, and what recommends it: the wing `decisions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from forewarn.checking.interface import ProcessRisk, RiskOfActions
    from forewarn.models.chain import Floats
    from forewarn.signals.clock import Clock


class Alternative(NamedTuple):
    """The fields of an ActionRisk message, in its order; see there for meanings."""

    action: str
    visits: int
    failure: float
    failure_lower: float
    failure_upper: float
    success: float
    success_lower: float
    success_upper: float
    feasible: bool


class Advice(NamedTuple):
    """What is recommended, why, and all that was seen done; the action is empty if nothing is."""

    action: str
    reason: str
    alternatives: tuple[Alternative, ...] = ()


class Shield(Protocol):
    """Knows the safest action of every state of a model."""

    def advise(self, state: int | None, name: str, clock: Clock, asked: str) -> Advice:
        """Return what to do in a state while the policy asks for an intervention.

        `asked`: what the policy asks for: nothing less is recommended.
        """

    def solved(self) -> dict[str, Floats]:
        """Return all that was solved, by name."""

    def with_solved(self, arrays: Mapping[str, Floats]) -> Shield:
        """Return this shield with the arrays that `solved` returned for one of the same states."""


class ProcessRisks(NamedTuple):
    """What the decision process of a model says, where a monitor file asks for it."""

    least: Mapping[str, ProcessRisk]  # By property, the least risk over all ways to choose
    of_actions: Mapping[str, RiskOfActions]  # By property, the risk of what is being done
    shield: Shield | None = None
    notes: tuple[str, ...] = ()
