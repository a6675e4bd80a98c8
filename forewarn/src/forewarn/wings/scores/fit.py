"""What is fitted of a learned score: plain data, as a model file keeps them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from forewarn.errors import plural
from forewarn.states.learned_signal import SignalFit

MOST_MOMENTS = 200
"""Moments that the history may span: all that it holds is read at each."""

DIRECTIONS: Mapping[str, int] = {"rising": 1, "falling": -1}


def lags_of(moments: int) -> tuple[int, ...]:
    """Return at which moments before the present the features look: a quarter, a half, all."""
    return tuple(
        sorted({max(1, round(moments * share)) for share in (0.25, 0.5, 1)} if moments else ())
    )


def features_of(signals: Sequence[str], lags: Sequence[int]) -> list[str]:
    """Return the names of the features, in their order.

    Of each signal: its value, and its changes since the lags before. Earlier values and extremes
    beside them made the trees foresee less (evaluation/RESULTS.md).
    """
    parts = ["{}", *(f"change of {{}} in {lag}" for lag in lags)]
    return [part.format(signal) for signal in signals for part in parts]


@dataclass(frozen=True)
class Ensemble:
    """Trees and a line whose values add up to the logit of a probability.

    A node asks whether its feature is at most its threshold: `left` if so. All arrays but `roots`
    and `needed` have an entry for each node, and a child comes after its parent.

    `base`: the logit without any tree.
    `roots`: first node of each tree.
    `feature`: which feature is asked about; -1 at a leaf.
    `threshold`: finite; 0 at a leaf.
    `left`, `right`: number of the next node; -1 at a leaf.
    `missing_left`: 1 where an unknown feature goes left, else 0.
    `value`: at a leaf what is added; elsewhere its mean over the data that came there.
    `needed`: for each feature, 1 if it matters and it was never unknown in the data: where it is
        unknown, so is the score.
    `line` (tuple of (slope, centre, lowest, highest)): for each feature; it adds ``slope * (clip(x,
        lowest, highest) - centre)``, and nothing where it is unknown. Empty without a line.
    """

    base: float
    roots: tuple[int, ...]
    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    missing_left: tuple[int, ...]
    value: tuple[float, ...]
    needed: tuple[int, ...]
    line: tuple[tuple[float, ...], ...] = ()

    def problem(self, features: int) -> tuple[str, str] | None:
        """Return the key of what cannot be, and what is accepted; None if all fits.

        `features`: how many features there are.
        """
        nodes = len(self.feature)
        for key in ("threshold", "left", "right", "missing_left", "value"):
            if len(getattr(self, key)) != nodes:
                return key, f"{nodes} entries, as `feature` has"
        if len(self.needed) != features or not {*self.needed} <= {0, 1}:
            return "needed", f"{features} entries, each 0 or 1"
        if not {*self.missing_left} <= {0, 1}:
            return "missing_left", "0 or 1 for each node"
        if not all(0 <= root < nodes for root in self.roots):
            return "roots", f"numbers of nodes from 0 to {nodes - 1}"
        if not all(-1 <= feature < features for feature in self.feature):
            return "feature", f"-1 at a leaf, or a number below {features}"
        for key in ("threshold", "value"):
            if not all(map(math.isfinite, getattr(self, key))):
                return key, "finite numbers"
        for key in ("left", "right"):
            ends = zip(self.feature, getattr(self, key), strict=True)
            if not all(f < 0 or i < child < nodes for i, (f, child) in enumerate(ends)):
                return key, "for each node that is no leaf, a node that comes later"
        if self.line and len(self.line) != features:
            return "line", f"none, or {features} entries"
        rows = (len(row) == 4 and all(map(math.isfinite, row)) for row in self.line)
        if not all(rows) or any(lowest > highest for _, _, lowest, highest in self.line):
            return "line", "four finite numbers for each feature, the last no less than the third"
        return None if math.isfinite(self.base) else ("base", "a finite number")


@dataclass(frozen=True, kw_only=True)
class LearnedScoreFit(SignalFit):
    """A learned score as it was fitted.

    `formula`: that of the property, when it was fitted.
    `horizon`: within which time, in the unit of the clock; infinite if unbounded.
    `moments`: how far back its history reaches.
    `lags`: at which moments before the present the features look.
    `directions`: for each signal 1 if the score may only rise with it, -1 if it may only fall, else
        0.
    `ensemble`: fitted on all recordings.
    `weights`: for each signal by how much it moves the logit, on average over what was fitted to.
    `fitted_with`: by which version of what; for information.
    """

    formula: str
    horizon: float
    moments: int
    lags: tuple[int, ...]
    directions: tuple[int, ...]
    ensemble: Ensemble
    weights: tuple[float, ...] = ()
    fitted_with: str = ""
    unseeing: tuple[Ensemble, ...] = field(default=(), compare=False, repr=False)

    @property
    def features(self) -> list[str]:
        """Names of the features, in their order."""
        return features_of(self.signals, self.lags)

    @property
    def shares(self) -> dict[str, float]:
        """Part of each signal in what moves the score, the greatest first."""
        total = sum(self.weights) or 1.0
        parts = [weight / total for weight in self.weights]
        found = dict(zip(self.signals, parts, strict=True))
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    @property
    def in_words(self) -> str:
        """What it foresees, and which signals decide."""
        shares = [f"{name} {100 * share:.0f} %" for name, share in self.shares.items()]
        cuts = ", ".join(f"{cut:g}" for cut in self.cuts)
        return (
            f"{self.name} foresees {self.foresees}: {plural(len(self.ensemble.roots), 'tree')} "
            f"fitted to {plural(len(self.recordings), 'recording')}, decided by "
            f"{', '.join(shares)}; bins cut it at {cuts}"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What there is to say of it, for ``--json``."""
        return {
            "property": self.foresees,
            "signals": self.signals,
            "history": self.moments,
            "trees": len(self.ensemble.roots),
            "line": bool(self.ensemble.line),
            "cuts": self.cuts,
            "shares": self.shares,
            "recordings": len(self.recordings),
            "digest": self.digest,
        }

    @property
    def record(self) -> dict[str, Any]:
        """What files keep, by the names of its attributes; copies no tree, which is slow."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        trees = self.ensemble
        found["ensemble"] = {each.name: getattr(trees, each.name) for each in fields(trees)}
        del found["unseeing"]
        if not self.groups:
            del found["groups"]  # what was fitted before there were groups keeps its digest
        return found

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the score and its bins depend on, and of what it was fitted on."""
        content = self.record
        del content["fitted_with"]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
