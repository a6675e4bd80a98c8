"""How far a moment is from those of normal runs, and from where on a run is unlike them.

The distance of a moment is the one to the nearest kept moment of normal runs, Euclidean over
standardised signals. A run is anomalous if its greatest distance is above a limit.

The limit is conformal. Each run that was left out of the standardisation is compared with the
moments of all others. With a new run among these others its distance could only be smaller, so the
comparison favours the new run. If n + 1 runs could have come in any order, the last one is
anomalous with a probability of at most alpha (Vovk, Gammerman and Shafer, 2005, proposition 2.4).
This holds if what is kept of a run depends on no other run but those that standardise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from forewarn.errors import ModelError, RecordingError, plural
from forewarn.wings.anomalies.step_evidence import conformal_p

Floats = NDArray[np.float64]

KEY = "normal_moments"
"""Key of the model file."""
MOST_MOMENTS = 2000
"""Moments that are kept of all runs: a tick compares with each of them."""
MOST_RUNS = 500
"""Runs that are kept and calibrated on; of more the first ones."""
LEAST_RUNS = 4
STANDARDISING = 4
"""Every fourth run says how signals are standardised; the others calibrate."""
USUAL_ALPHA = 0.05
KNOWN = 0.9
"""Least share of moments in which a signal is known that is used."""
_FARTHEST = 1e9  # standard deviations; an infinite value is as far
_LARGEST = 1e100  # squares of larger numbers have no sum


class Nearest(NamedTuple):
    """How far a moment is from normal ones.

    `distance`: in standard deviations of the signals; NaN if no signal is known.
    `shares` (tuple of (str, float)): share of each known signal in the square of the distance, the
        greatest first.
    `unknown`: signals that are not known; without them the distance is at most as great as it would
        be.
    """

    distance: float
    shares: tuple[tuple[str, float], ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NormalMoments:
    """Moments of normal runs, and how far such runs are from each other.

    `signals`: what is compared.
    `centre`, `scale` (shape (signals,)): mean and standard deviation of each signal over the runs
        that standardise.
    `moments` (shape (moments, signals)): standardised moments of all runs.
    `greatest`: greatest distance of each run that calibrates from the moments of all others,
        rising.
    `longest`: moments of the longest run that calibrates.
    `recordings`: digests of the recordings.
    `left_out`: signals that are not compared, and why.
    """

    signals: tuple[str, ...]
    centre: Floats
    scale: Floats
    moments: Floats
    greatest: tuple[float, ...]
    longest: int
    recordings: tuple[str, ...]
    left_out: Mapping[str, str]

    @property
    def least_alpha(self) -> float:
        """The least share of false alarms that can be promised."""
        return 1.0 / (len(self.greatest) + 1)

    @property
    def usual_alpha(self) -> float:
        """The share of false alarms that is promised where none is given."""
        return max(USUAL_ALPHA, self.least_alpha)

    @property
    def unlimited(self) -> bool:
        """A normal run had a value so far from others that no run is beyond the limit."""
        return self.limit(self.usual_alpha) >= _FARTHEST / 2

    @property
    def in_words(self) -> str:
        """What is kept, and what is promised."""
        alpha, runs = self.usual_alpha, plural(len(self.greatest), "run")
        return (
            f"normal: {plural(len(self.recordings), 'recording')} without a violation, kept as "
            f"{plural(len(self.moments), 'moment')} of {plural(len(self.signals), 'signal')}; "
            f"a run is anomalous from a distance of {self.limit(alpha):.3g} on: at most "
            f"{100 * alpha:.3g} % of new normal runs as long as these ({runs} compared with all "
            "others)"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What is kept, and what is promised, as plain data."""
        return {
            "signals": self.signals,
            "left_out": dict(self.left_out),
            "moments": len(self.moments),
            "recordings": len(self.recordings),
            "calibrated_on": len(self.greatest),
            "longest": self.longest,
            "alpha": self.usual_alpha,
            "limit": self.limit(self.usual_alpha),
        }

    def limit(self, alpha: float) -> float:
        """Return the distance above which at most the share alpha of new normal runs gets.

        Raises ModelError if the runs are too few for that share.
        """
        runs = len(self.greatest)
        allowed = sum(k / (runs + 1) <= alpha for k in range(1, runs + 1))
        if not allowed:
            raise ModelError(
                f"calibrated on {runs} normal runs: none could be anomalous at alpha {alpha:g}",
                accepted=f"alpha from {self.least_alpha:.3g} on, or a model learned from "
                f"{math.ceil((1 / alpha - 1) * STANDARDISING / (STANDARDISING - 1))} runs or more",
            )
        return self.greatest[-allowed]

    def p_value(self, distance: float) -> float:
        """Return the conformal p-value of the greatest distance of a run."""
        return conformal_p(self.greatest, distance)

    def nearest(self, row: Sequence[float]) -> Nearest:
        """Compare a moment, given by the values of `signals`; NaN where unknown."""
        values = np.asarray(row, dtype=np.float64)
        known = ~np.isnan(values)
        pairs = zip(self.signals, known.tolist(), strict=True)
        unknown = tuple(name for name, there in pairs if not there)
        if not known.any():
            return Nearest(math.nan, (), unknown)
        apart = self.moments - standardised(values, self.centre, self.scale)
        if unknown:
            apart[:, ~known] = 0.0
        squares = np.einsum("ij,ij->i", apart, apart)
        at = int(squares.argmin())
        parts, whole = apart[at] ** 2, float(squares[at])
        order = [i for i in np.argsort(-parts, kind="stable").tolist() if known[i]]
        shares = tuple((self.signals[i], float(parts[i]) / whole if whole else 0.0) for i in order)
        return Nearest(math.sqrt(whole), shares, unknown)


def standardised(values: Floats, centre: Floats, scale: Floats) -> Floats:
    """Return values as standard deviations from the mean, within what can be squared."""
    with np.errstate(over="ignore"):  # what is infinite is clipped
        return np.asarray(np.clip((values - centre) / scale, -_FARTHEST, _FARTHEST))


def distances(moments: Floats, rows: Floats) -> Floats:
    """Return the distance of each row to the nearest of some moments over what is known of it.

    `moments` (shape (moments, signals)): standardised, without NaN.
    `rows` (shape (n, signals)): standardised; NaN where unknown.

    Returns an array of shape (n,), NaN where nothing is known.
    """
    found = np.full(len(rows), np.nan)
    known = ~np.isnan(rows)
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if pattern.any():
            here = which.reshape(-1) == number
            found[here] = cKDTree(moments[:, pattern]).query(rows[here][:, pattern])[0]
    return found


def spread(rows: Floats, most: int) -> Floats:
    """Return at most `most` of some rows such that none is far from all of them.

    The next one is always the farthest from those that were chosen (Gonzalez, 1985).
    """
    if len(rows) <= most:
        return rows
    chosen = [0]
    squares = ((rows - rows[0]) ** 2).sum(axis=1)
    while len(chosen) < most:
        chosen.append(int(squares.argmax()))
        squares = np.minimum(squares, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
    return np.asarray(rows[sorted(chosen)])


def fit_normal(
    runs: Sequence[Floats],
    names: Sequence[str],
    recordings: Sequence[str],
    others: Mapping[str, str] | None = None,
) -> NormalMoments:
    """Learn from normal runs what is normal.

    `runs` (shape (moments, signals)): values of the signals in each run; NaN where unknown.
        Recordings that belong together are one run. The promise is about runs like these.
    `recordings`: digests of what the runs come from.
    `others`: signals that cannot be compared, and why.

    Raises RecordingError if the runs are too few, or no signal can be compared.
    """
    runs = [run for run in runs if not np.isnan(run).all()][:MOST_RUNS]
    if len(runs) < LEAST_RUNS:
        raise RecordingError(
            f"{plural(len(runs), 'run')} without a violation in which a signal is known",
            accepted=f"{LEAST_RUNS} or more to learn from what is normal; 26 to promise 5 %",
        )
    standardising = np.concatenate(runs[::STANDARDISING])
    why = {name: _unusable(standardising[:, i]) for i, name in enumerate(names)} | dict(
        others or {}
    )
    used = [i for i, name in enumerate(names) if not why[name]]
    left_out = {name: reason for name, reason in why.items() if reason}
    if not used:
        told = "; ".join(f"{name} {reason}" for name, reason in left_out.items())
        raise RecordingError(
            f"no signal can be compared: {told or 'there is none'}",
            accepted="runs without a violation in which a number changes",
        )
    known = standardising[:, used]
    centre, scale = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    rows = [standardised(run[:, used], centre, scale) for run in runs]
    kept = _kept(rows)
    return NormalMoments(
        tuple(names[i] for i in used),
        centre,
        scale,
        np.concatenate(kept),
        tuple(sorted(_greatest(rows, kept))),
        max(len(run) for i, run in enumerate(runs) if i % STANDARDISING),
        tuple(recordings),
        left_out,
    )


def _unusable(values: Floats) -> str:
    """Say why a signal cannot be compared; empty if it can."""
    known = values[~np.isnan(values)]
    if known.size < KNOWN * values.size:
        return f"is known in {known.size / max(values.size, 1):.0%} of moments"
    if np.isinf(known).any():
        return "is infinite at times"
    if np.abs(known).max() > _LARGEST:
        return f"is beyond {_LARGEST:g} at times"
    if np.ptp(known) <= 1e-9 * max(1.0, float(np.abs(known).max())):
        return "never changes"
    return ""


def _kept(rows: Sequence[Floats]) -> list[Floats]:
    """Return what is kept of each run: as many moments of each at most."""
    most = max(1, MOST_MOMENTS // len(rows))
    return [spread(run[~np.isnan(run).any(axis=1)], most) for run in rows]


def _greatest(rows: Sequence[Floats], kept: Sequence[Floats]) -> list[float]:
    """Return the greatest distance of each calibrating run from the moments of all others."""
    found = []
    for i, run in enumerate(rows):
        if i % STANDARDISING and not np.isnan(run).all():
            others = np.concatenate([*kept[:i], *kept[i + 1 :]])
            if len(others):
                found.append(float(np.nanmax(distances(others, run))))
    if not found:
        raise RecordingError(
            "no run can be compared with others",
            accepted="normal runs in which all signals are known at some moment",
        )
    return found
