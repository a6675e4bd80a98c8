"""What a refinement is asked, when it ends, and what it says of each split and at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from forewarn.checking.critical import CriticalSubsystem
from forewarn.learning.trees import Growth
from forewarn.models.trie import Concrete
from forewarn.states.tree.nodes import Node

Ending = Literal["holds", "real", "no split", "budget"]
Trace = Sequence[tuple[str, Concrete]]
"""States of a run, each with the action that led there; the last value tells of the goal."""


@dataclass(frozen=True)
class Question:
    """An upper bound: the probability to reach the goal, over all ways to choose.

    Attributes
    ----------
    maximise : bool
        Whether the greatest or the least probability is bounded.
    bound : float
        The bound.
    """

    maximise: bool
    bound: float


@dataclass(frozen=True)
class Limits:
    """When refinement ends.

    Attributes
    ----------
    rounds : int
        Most splits.
    leaves : int
        Most leaves, the goal's included.
    growth : Growth
        What splits are tried.
    """

    rounds: int = 20
    leaves: int = 128
    growth: Growth = Growth()  # noqa: RUF009 (a frozen value)


class Answer(NamedTuple):
    """The probability to reach the goal from where runs begin, and its bounds.

    Attributes
    ----------
    estimate, lower, upper : float
        Mean over the runs' first states. The bounds are not sound: the traces grew the tree.
    leaves : int
        Leaves without the goal's.
    loss : float
        Mean logarithmic loss of the next action on held-out runs, in bits.
    """

    estimate: float
    lower: float
    upper: float
    leaves: int
    loss: float


class Round(NamedTuple):
    """One split.

    Attributes
    ----------
    leaf, condition : str
        What was split by what.
    gain : float
        Information gain on what diverges, in bits.
    lost : float
        Part of the probability that the leaf promises and the runs do not show.
    path : tuple of str
        Leaves and actions, in turn, of the most probable path to the goal through the leaf.
    probability : float
        That of the path.
    before, after : Answer
        What the split did.
    """

    leaf: str
    condition: str
    gain: float
    lost: float
    path: tuple[str, ...]
    probability: float
    before: Answer
    after: Answer


class Refined(NamedTuple):
    """How refinement ended.

    Attributes
    ----------
    ending : str
        ``holds``: the bound holds. ``real``: runs themselves break it. ``no split``: no split
        tells the doubtful paths from the runs and predicts held-out ones better. ``budget``.
    tree : Node
        The tree, without the goal.
    rounds : tuple of Round
        What was split.
    answer : Answer
        At the end.
    real : float
        Probability with which the policy reaches the goal in the trie.
    paths : tuple of tuple
        The most probable paths to the goal, as leaves and actions in turn, each with its
        probability and how many runs took it.
    critical : CriticalSubsystem or None
        A smallest set of states that breaks the bound, where it is broken.
    critical_leaves : tuple of str
        Their leaves.
    rejected : tuple of (str, str)
        Leaves and conditions that predict held-out runs no better.
    """

    ending: Ending
    tree: Node
    rounds: tuple[Round, ...]
    answer: Answer
    real: float
    paths: tuple[tuple[tuple[str, ...], float, int], ...]
    critical: CriticalSubsystem | None
    critical_leaves: tuple[str, ...]
    rejected: tuple[tuple[str, str], ...]
