"""What a refinement is asked, when it ends, and what it says of each split and at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import Interval

from forewarn.checking.critical import CriticalPart
from forewarn.models.process import Flow
from forewarn.models.records import Count, NumberOrNull
from forewarn.models.trie import Concrete
from forewarn.wings.trees.concrete import Condition
from forewarn.wings.trees.growth import Growth
from forewarn.wings.trees.nodes import MAX_LEAVES, Node

Ending = Literal["holds", "real", "no split", "budget"]
ENDINGS: Mapping[Ending, str] = {
    "holds": "the bound holds",
    "real": "the bound is broken by the runs themselves",
    "no split": "the bound does not hold, and no split helps on runs that were held out",
    "budget": "the bound does not hold yet, and the budget is spent",
}
GOAL = "(goal)"
ENDED = "(ended)"
"""Where terminal labels lead that are not the goal: a run that gets there never reaches it."""
BEFORE: Mapping[str, Condition] = {
    GOAL: lambda state: bool(state[-1]),
    ENDED: lambda state: state[-1] is None,
}
"""What is asked before the tree: the conditions have the names of their leaves."""
Trace = Sequence[tuple[str, Concrete]]
"""States of a run, each with the action that led there.

The last value is true where the goal holds, and None where a terminal label has ended the run.
"""


@dataclass(frozen=True)
class RefinementQuery:
    """An upper bound of the greatest or least probability to reach the goal, over all choices."""

    maximise: bool
    bound: float


@dataclass(frozen=True)
class Limits:
    """When refinement ends: after so many splits or leaves; and what splits are tried."""

    rounds: int = 20
    leaves: int = 128
    growth: Growth = Growth()  # noqa: RUF009 (a frozen value)


class GoalEstimate(NamedTuple):
    """The probability to reach the goal from where runs begin, and its bounds.

    They are means over the runs' first states, and not sound: the traces grew the tree. `loss` is
    the mean logarithmic loss of the next action on held-out runs, in bits.
    """

    estimate: float
    lower: float
    upper: float
    leaves: Annotated[int, Interval(ge=1, le=MAX_LEAVES)]
    loss: NumberOrNull


class Round(NamedTuple):
    """One split: its gain in bits on what diverges, and the answers before and after it.

    `lost` is the part of the probability that the leaf promises and the runs do not show; `path`
    has leaves and actions, in turn, of the most probable path to the goal through the leaf.
    """

    leaf: str
    condition: str
    gain: float
    lost: float
    path: tuple[str, ...]
    probability: float
    before: GoalEstimate
    after: GoalEstimate


class Way(NamedTuple):
    """A probable path to the goal, leaves and actions in turn, and how many runs took it.

    One run went through its first `seen` leaves in this order: all of them, or the path is not
    borne out from the next one on.
    """

    path: tuple[str, ...]
    probability: float
    runs: Count
    seen: Count


class LeafValue(NamedTuple):
    """What a leaf is worth: runs that start there, probability of the goal, what to do."""

    starts: Count
    value: float
    action: str


class Refined(NamedTuple):
    """How refinement ended.

    `tree` is without the goal. `real` is the probability with which the policy reaches the goal in
    the trie: where it chooses what no run did, the goal is not reached. It may lie above the
    answer, because a leaf has the mean of moments that differ. `critical` is a smallest set of
    states that breaks the bound. `rejected` are leaves and conditions that predict held-out runs no
    better. `flows` are the process at the end, without what follows the goal.
    """

    ending: Ending
    tree: Node
    rounds: tuple[Round, ...]
    answer: GoalEstimate
    real: float
    paths: tuple[Way, ...]
    critical: CriticalPart | None
    rejected: tuple[tuple[str, str], ...]
    flows: tuple[Flow, ...]
    leaves: dict[str, LeafValue]

    @property
    def among_runs(self) -> str:
        """Say what runs show of the process's answer, which may be more or less than it says."""
        return (
            f"with the same choices among the runs themselves: {self.real:.3g} "
            f"(in the process: {self.answer.estimate:.3g})"
        )
