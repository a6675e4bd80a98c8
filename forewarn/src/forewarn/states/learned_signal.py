"""What the core knows of learned scores: the wing `scores` fits and evaluates them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forewarn.expressions.syntax import Expression
from forewarn.registry import part

if TYPE_CHECKING:
    from forewarn.expressions.functions.memory import Cell

SECTION = "learned_score"
"""Section of the monitor file, and of the model file."""


@dataclass(frozen=True, kw_only=True)
class SignalFit(ABC):
    """What was fitted of a learned score.

    `cuts`: where ``bins`` cut it if they ask for ``auto``; rising within (0, 1).
    `groups`: for each of them the name of its group, empty for one that is in none; all of this
    empty where nothing was grouped. Recordings of a group were left out together.
    `unseeing`: one for each fold, fitted without its recordings: for those that are counted. Not
    kept in files.
    """

    name: str  # name of the signal
    foresees: str  # the property of which it foresees a violation
    signals: tuple[str, ...]  # what it is computed from
    cuts: tuple[float, ...] = ()
    recordings: tuple[str, ...] = ()  # digests of the recordings that it was fitted on
    groups: tuple[str, ...] = ()
    unseeing: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of all that the score and its bins depend on, and of what it was fitted on."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """What it foresees, and which signals decide."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What there is to say of it, for ``--json``."""

    def group_of(self, digest: str) -> str:
        """Return the name of a recording's group, or its digest if it is in none."""
        return self._groups.get(digest) or digest

    @cached_property
    def clusters(self) -> frozenset[str]:
        """Names of the groups that it was fitted on, and digests of recordings that are in none."""
        return frozenset(map(self.group_of, self.recordings))

    @cached_property
    def _groups(self) -> dict[str, str]:
        return dict(zip(self.recordings, self.groups, strict=bool(self.groups)))


@dataclass(frozen=True)
class LearnedSignal(ABC):
    """A learned score as a signal that remembers (`abstraction.Remembers`)."""

    name: str  # name of the signal
    signals: tuple[str, ...]  # what it is computed from; candidates for that before it is fitted
    moments: int  # how far back its history reaches
    fit: Any = None  # what was fitted, if anything was
    named: bool = False  # the monitor file names the signals

    judges = True  # also of what is unknown

    @property
    def expression(self) -> Expression:
        """Return what it reads, as an expression that is never evaluated."""
        names = [ast.Name(name, ast.Load()) for name in self.signals]
        text = f"learned_score({', '.join(self.signals)})"
        return Expression(text, ast.Tuple([*names], ast.Load()), frozenset(self.signals))

    @property
    @abstractmethod
    def row(self) -> Callable[[Sequence[Any]], Any]:
        """Return what makes a row, which the memory takes in, of the values of the signals."""

    @property
    @abstractmethod
    def start(self) -> Cell:
        """The cell before the first moment of a run."""

    @property
    @abstractmethod
    def forgotten(self) -> Cell:
        """The cell after moments about which nothing is known."""

    @abstractmethod
    def advance(self, cell: Cell, value: Any) -> tuple[Any, Cell]:
        """Take in the row of one moment, None if unknown; return score and cell."""

    @abstractmethod
    def rest(self, data: Any) -> Cell:
        """Return the cell that plain data were made of; raises ValueError."""

    @abstractmethod
    def without(self, fold: int) -> LearnedSignal:
        """Return the score as it was fitted without the recordings of a fold."""

    @abstractmethod
    def explained(self, cell: Cell, score: float | None) -> str:
        """Say what the score is at a moment, and which signals push it there.

        `cell`: what `advance` gave at the moment.
        """


def wing(module: str) -> Any:
    """Return a module of the wing; raises MissingWingError."""
    return part("scores", module, f"the section {SECTION}")
