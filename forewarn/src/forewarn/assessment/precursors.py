"""Whether anything in the signals changes before violations: a quick test of what can be foreseen.

The time before each violation is compared with other spans of time of the same length, by the
greatest and the least value of each signal in it, and of its change. The three that tell most are
chosen without the violation that is judged. It counts as foreseen if they are further out in its
span than in nine tenths of the other spans. How probable as many are by chance, the binomial
distribution says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from forewarn.assessment.events import watched
from forewarn.assessment.excursions import find_excursions
from forewarn.assessment.history import Track
from forewarn.assessment.replay import RecordedRun
from forewarn.signals.clock import Clock

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEAST_VIOLATIONS = 3
LEAST_SPANS = 10
MOST_SPANS = 2000
FALSE_SHARE = 0.1
"""Share of the other spans in which an alarm is accepted."""
LEVEL = 0.01
CHOSEN = 3
CHANGE_SECONDS = 0.5
FOLDS = 10
KINDS = ("is high", "is low", "rises", "falls")


class PropertyHistory(NamedTuple):
    """One property over one recording.

    `signals` (shape (n,)): numbers at each tick; NaN where unknown.
    `begins` (shape (n,)): a violation that counts begins.
    `open` (shape (n,)): the property is watched, and no breach lasts: a violation can be foreseen.
    """

    signals: Mapping[str, Floats]
    begins: Bools
    open: Bools


class Precursors(NamedTuple):
    """What the comparison says.

    `violations`: those that have a moment before them.
    `spans`: other spans of time.
    `foreseen`: violations that are distinguished from nine tenths of the other spans.
    `p_value`: probability that chance foresees as many; NaN where there are too few.
    `signal`, `kind`: what tells most: a signal, and one of `KINDS`.
    `bar`: what nine tenths of the other spans do not reach: a value, or a change.
    """

    violations: int
    spans: int
    foreseen: int = 0
    p_value: float = np.nan
    signal: str = ""
    kind: str = ""
    bar: float = np.nan

    @property
    def enough(self) -> bool:
        """Whether there are violations and other spans enough to tell."""
        return self.violations >= LEAST_VIOLATIONS and self.spans >= LEAST_SPANS

    @property
    def short(self) -> str:
        """What there is too little of, in words."""
        if self.violations < LEAST_VIOLATIONS:
            return f"it takes {LEAST_VIOLATIONS} violations that begin within a recording"
        return "there is too little other time"

    @property
    def found(self) -> bool:
        """Whether more is foreseen than chance would foresee."""
        return self.enough and self.p_value <= LEVEL

    @property
    def of_value(self) -> bool:
        """Whether a value tells most, not a change."""
        return self.kind in KINDS[:2]

    def told(self) -> str:
        """Return in words what can be foreseen."""
        if not self.violations:
            return "nothing to foresee"
        if not self.enough:
            return f"whether anything comes before is undecided: {self.short}"
        if not self.found:
            return "no precursor in these signals"
        before = f"before them {self.signal} {self.kind}"
        return f"{self.foreseen} foreseen by a quick cross-fit, {before}"

    def condition(self, change: float) -> str:
        """Return as an expression that the signal is as it is before violations.

        `change`: seconds, or steps, over which a signal changes.
        """
        less = self.kind in (KINDS[1], KINDS[3])
        bar = -self.bar if less else self.bar
        if self.of_value:
            return f"{self.signal} {'<' if less else '>'} {bar:.3g}"
        return f"rate({self.signal}, {change:g}) {'<' if less else '>'} {bar / change:.3g}"


def precursors(runs: Sequence[PropertyHistory], horizon: int, change: int) -> Precursors:
    """Return what signals tell of violations within the horizon.

    `horizon`: ticks before a violation that count, at least 1.
    `change`: ticks over which a signal changes, at least 1.
    """
    waits = [length for run in runs for _, length in _before(run, horizon)]
    names = sorted(set.intersection(*(set(run.signals) for run in runs))) if runs else []
    if not waits or not names:
        return Precursors(len(waits), 0)
    long = max(1, int(np.median(waits)))
    mine, other = [], []
    for run in runs:
        columns = np.column_stack([c for n in names for c in _columns(run.signals[n], change)])
        mine += [_extremes(columns[end - min(n, long) : end]) for end, n in _before(run, horizon)]
        other += [_extremes(columns[at : at + long]) for at in _others(run, horizon, long)]
    if len(mine) < LEAST_VIOLATIONS or len(other) < LEAST_SPANS:
        return Precursors(len(mine), len(other))
    other = other[:: max(1, len(other) // MOST_SPANS)]
    return _compared(np.array(mine), np.array(other), names)


def _compared(mine: Floats, other: Floats, names: Sequence[str]) -> Precursors:
    """Compare spans by their extremes, shape (spans, 4 for each name)."""
    bars = np.quantile(other, 1 - FALSE_SHARE, axis=0)
    mine, other = _shares(mine, other), _shares(other, other)
    foreseen = 0
    alarms = []
    for fold in range(min(FOLDS, len(mine))):
        judged = np.arange(len(mine)) % FOLDS == fold
        told = mine[~judged].mean(axis=0)
        chosen = np.argsort(-told, kind="stable")[:CHOSEN]
        bar = np.quantile(other[:, chosen].sum(axis=1), 1 - FALSE_SHARE)
        foreseen += int((mine[judged][:, chosen].sum(axis=1) > bar).sum())
        alarms.append(float((other[:, chosen].sum(axis=1) > bar).mean()))
    chance = max(float(np.mean(alarms)), FALSE_SHARE)
    p_value = float(bdtrc(foreseen - 1, len(mine), chance)) if foreseen else 1.0
    best = int(mine.mean(axis=0).argmax())
    signal, kind = names[best // len(KINDS)], KINDS[best % len(KINDS)]
    return Precursors(len(mine), len(other), foreseen, p_value, signal, kind, float(bars[best]))


def _columns(values: Floats, change: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return a signal and its change, each with both signs, as in `KINDS`; shape (n,)."""
    known = np.nan_to_num(values, nan=np.nan, posinf=1e300, neginf=-1e300)
    moved = np.full(len(known), np.nan)
    if len(known) > change:
        moved[change:] = known[change:] - known[:-change]
    return known, -known, moved, -moved


def _extremes(columns: Floats) -> Floats:
    """Return the greatest value of each column, shape (columns,); NaN is least."""
    found: Floats = np.where(np.isnan(columns), -np.inf, columns).max(axis=0)
    return found


def _before(run: PropertyHistory, horizon: int) -> list[tuple[int, int]]:
    """Return for each violation its tick, and for how long before it could be foreseen."""
    found = []
    for end in np.flatnonzero(run.begins).tolist():
        open_ = run.open[max(end - horizon, 0) : end][::-1]
        length = len(open_) if open_.all() else int(open_.argmin())
        if length:
            found.append((end, length))
    return found


def _others(run: PropertyHistory, horizon: int, long: int) -> list[int]:
    """Return where spans begin that no violation follows within the horizon."""
    begins = np.flatnonzero(run.begins)
    ticks = np.arange(len(run.begins))
    following = np.append(begins, len(ticks) + 2 * horizon)[np.searchsorted(begins, ticks, "right")]
    calm = np.concatenate(([False], run.open & (following - ticks > horizon), [False]))
    edges = np.flatnonzero(np.diff(calm.astype(np.int8)))
    starts, ends = edges[::2].tolist(), edges[1::2].tolist()
    return [at for a, b in zip(starts, ends, strict=True) for at in range(a, b - long + 1, long)]


def _shares(values: Floats, other: Floats) -> Floats:
    """Return how far out values are among those of other spans: the log of one over the share."""
    found = np.empty_like(values)
    for i, column in enumerate(np.sort(other, axis=0).T):
        above = len(column) - np.searchsorted(column, values[:, i], "left")
        found[:, i] = -np.log((above + 1) / (len(column) + 1))
    return found


def changed_over(clock: Clock) -> int:
    """Return the ticks over which a signal changes: half a second, or one step."""
    return max(1, round(CHANGE_SECONDS * clock.rate)) if clock.timed else 1


def precursors_of(runs: Sequence[RecordedRun], index: int) -> Precursors:
    """Return what signals tell of the violations of a property.

    `runs`: with their signals.
    `index`: place of the property.
    """
    found = [_watched(run, run.tracks[index]) for run in runs]
    horizon = runs[0].tracks[index].horizon or max(len(each.open) for each in found)
    return precursors(found, max(horizon, 1), changed_over(runs[0].history.clock))


def of_missed(name: str, missed: int, violations: int, found: Precursors, change: float) -> str:
    """Return a sentence on violations that no alert foresaw, by what the signals say before them.

    `change`: seconds, or steps, over which signals change.
    """
    told = f"{name}: {missed} of {violations} missed: "
    if not found.enough:
        return f"{told}whether anything in the signals comes before is undecided: {found.short}"
    if not found.found:
        return f"{told}nothing in these signals changes before"
    return (
        f"{told}before them {found.signal} {found.kind}; a predicate "
        f"`{found.condition(change)}` may foresee {found.foreseen} of {found.violations}"
    )


def _watched(run: RecordedRun, track: Track) -> PropertyHistory:
    excursions = find_excursions(track)
    numbers = {s.name: s.values for s in run.signals if s.kind in ("number", "truth")}
    return PropertyHistory(
        numbers, excursions.begins, watched(track) & ~excursions.open & ~track.terminal
    )
