"""The learned score at a moment: what the compiled trees say of the window that ends there."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forewarn.errors import NotBuiltError
from forewarn.expressions.values import Unknown, kind
from forewarn.states.learned_signal import LearnedSignal
from forewarn.wings.scores.fit import Ensemble, LearnedScoreFit, features_of, lags_of

if TYPE_CHECKING:
    from forewarn.expressions.functions.memory import Cell
    from forewarn.wings.scores._trees import Ensemble as Trees

Row = tuple[float | None, ...]
SHOWN = 3
LEAST = 0.005
UNFITTED = "it is not fitted yet: `forewarn learn` does, and the model file keeps it"


def compiled_trees(signals: int, lags: Sequence[int], ensemble: Ensemble | None) -> Trees:
    """Return trees that C evaluates; without an ensemble they only give features.

    Raises NotBuiltError if the extension is not built; ValueError if the arrays do not fit
    together.
    """
    try:
        # Few monitors have a learned score.
        from forewarn.wings.scores._trees import Ensemble as Trees
    except ImportError as error:
        raise NotBuiltError("evaluation of trees") from error
    none = Ensemble(0.0, (), (), (), (), (), (), (), (0,) * len(features_of("x" * signals, lags)))
    found = none if ensemble is None else ensemble
    return Trees(
        signals,
        found.base,
        array("i", lags).tobytes(),
        array("i", found.roots).tobytes(),
        array("i", found.feature).tobytes(),
        array("d", found.threshold).tobytes(),
        array("i", found.left).tobytes(),
        array("i", found.right).tobytes(),
        bytes(found.missing_left),
        array("d", found.value).tobytes(),
        bytes(found.needed),
        array("d", [number for row in found.line for number in row]).tobytes(),
    )


@dataclass(frozen=True)
class Scoring(LearnedSignal):
    """A learned score as a signal that remembers (`expressions.functions.memory` has the rules).

    Its cell is the window: a row of values for each moment, the present one last.
    """

    fit: LearnedScoreFit | None = None

    @cached_property
    def trees(self) -> Trees:
        """What evaluates the window."""
        lags = lags_of(self.moments) if self.fit is None else self.fit.lags
        ensemble = None if self.fit is None else self.fit.ensemble
        return compiled_trees(len(self.signals), lags, ensemble)

    @property
    def row(self) -> Callable[[Sequence[Any]], Any]:
        """Return what makes a row of the values of the signals.

        Until something is fitted, texts and arrays count as unknown: they are not yet known to be.
        """
        signals, fitted, parse = self.signals, self.fit is not None, self.trees.row

        def row(values: Sequence[Any]) -> Any:
            found = parse([*values])
            if type(found) is not int:
                return found
            if fitted:
                return Unknown(f"{signals[found]} is {kind(values[found])}, not a number")
            return parse([one if isinstance(one, int | float) else None for one in values])

        return row

    @property
    def start(self) -> Cell:
        """The cell before the first moment of a run."""
        return ()

    @property
    def forgotten(self) -> Cell:
        """The cell after moments about which nothing is known."""
        return ((None,) * len(self.signals),) * (self.moments + 1)

    def advance(self, cell: Cell, value: Any) -> tuple[Any, Cell]:
        """Take in the row of one moment, None if unknown; return score and cell."""
        row = (None,) * len(self.signals) if value is None else value
        window = (*cell[-self.moments :], row) if self.moments else (row,)
        if self.fit is None:
            return Unknown(UNFITTED), window
        return self.trees.score(window), window

    def pushes(self, cell: Cell) -> dict[str, float] | None:
        """Return by how much each signal moves the logit at a moment; None if it is unknown.

        From node to node of each path the change of the mean belongs to the signal that is asked
        about, or whose past is (Saabas, 2014). The most decisive comes first.

        `cell`: what `advance` gave at the moment.
        """
        shares = self.trees.shares(cell) if cell and self.fit is not None else None
        if shares is None:
            return None
        found = zip(self.signals, shares[1:], strict=True)
        return dict(sorted(found, key=lambda one: -abs(one[1])))

    def explained(self, cell: Cell, score: float | None) -> str:
        """Say what the score is at a moment, and which signals push it there."""
        pushes = self.pushes(cell)
        if score is None or pushes is None:
            return f"{self.name} is unknown"
        decisive = [(signal, push) for signal, push in pushes.items() if abs(push) >= LEAST]
        listed = ", ".join(f"{signal} {push:+.2f}" for signal, push in decisive[:SHOWN])
        moved = f"; its log-odds are moved by {listed}" if listed else ""
        return f"{self.name} is {score:.3g}{moved}"

    def without(self, fold: int) -> Scoring:
        """Return the score as it was fitted without the recordings of a fold."""
        assert self.fit is not None
        return replace(self, fit=replace(self.fit, ensemble=self.fit.unseeing[fold]))

    def rest(self, data: Any) -> Cell:
        """Return the cell that plain data, as JSON gives them, were made of.

        Raises ValueError if this signal cannot have left them.
        """
        rows = [*data] if isinstance(data, list | tuple) else [None]
        width = len(self.signals)
        sound = len(rows) <= self.moments + 1 and all(
            isinstance(row, list | tuple)
            and len(row) == width
            and all(value is None or type(value) is float for value in row)
            for row in rows
        )
        if not sound:
            raise ValueError(f"{data!r} is no memory of {self.name}")
        return tuple(tuple(row or ()) for row in rows)
