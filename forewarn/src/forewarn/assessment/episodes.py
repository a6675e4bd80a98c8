"""The policy's alerts for many thresholds at once.

`policy.decide` walks tick by tick. Whether ACT is on depends on the risk only through two windows:
it begins where the least of the last `enter` scores reaches the threshold, and ends where the
greatest of the last `exit` scores lies below the release level and `hold` is over; a breach and
`hold_while` count as scores above all levels. "The first tick
from here on where that is so" is a search in a table of block maxima, done for all runs and
thresholds together: the work grows with the number of alerts, not of ticks times thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.history import Track
from forewarn.config.sections import PropertySpec
from forewarn.monitoring.policy import Broken
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.signals.clock_kinds import Grid

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Codes = NDArray[np.int32]

MAX_LEVEL = 10
MAX_SEARCHES = 1 << 19


class ScoredRun(NamedTuple):
    """One property over one run, whatever the monitor was: a score per tick and what happened.

    All arrays have one entry for each tick, shape (n,).

    `horizon`: ticks within which a violation has to follow; None for an unbounded horizon.
    `ticks`: numbers of the ticks, rising.
    `score`: the greater, the more dangerous; NaN where it is unknown, which neither begins nor ends
        an alert.
    `violation`: a violation happened.
    `status`: a `PropertyStatus`.
    `out_of_model`: the state is unknown to the model, for which the policy has an answer of its
        own; None for monitors without such states.
    `unsure`: it is not known whether the property is violated or on its way to it; None if that is
        always known.
    `terminal`: a terminal label holds; None if the status says so (ENDED) or there is no such
        label.
    `counted`: the violation is the first of its breach; None if each violation is a breach of its
        own.
    `broken`: a `Broken`: the alert that a breach asks for comes beside what the score asks for.
        None if no breach asks for any.
    `held`: no alert ends at this tick, whatever the score is; None if nothing holds one.
    `confirmed`: by an operator's label, an alert that is on at this tick is right, whatever
        follows; None without labels.
    """

    rate: float
    horizon: int | None
    ticks: Rows
    score: Floats
    violation: NDArray[np.bool_]
    status: NDArray[np.int8]
    out_of_model: NDArray[np.bool_] | None = None
    unsure: NDArray[np.bool_] | None = None
    terminal: NDArray[np.bool_] | None = None
    counted: NDArray[np.bool_] | None = None
    broken: NDArray[np.int8] | None = None
    held: NDArray[np.bool_] | None = None
    confirmed: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class AlertRule:
    """When an alert begins and ends, without its threshold; see `policy.Rules`.

    `release`: level below which an alert may end, or a function from threshold to level; the
        threshold itself by default, and never above it. Above minus infinity.
    `enter`, `exit`: consecutive ticks that begin and end an alert.
    `hold`: seconds that an alert lasts at the least.
    `out_of_model`: what a state unknown to the model asks for, for `out_of_model_timeout` seconds.
    """

    release: float | Callable[[float], float] | None = None
    enter: int = 1
    exit: int = 5
    hold: float = 1.0
    out_of_model: Literal["act", "warn", "ignore"] = "act"
    out_of_model_timeout: float = 3.0

    @classmethod
    def of(cls, section: PropertySpec) -> AlertRule:
        """Return the rule of a property, its release level in proportion to the threshold."""
        share = section.thresholds.release / section.thresholds.act
        return cls(
            release=lambda threshold: share * threshold,
            enter=section.enter,
            exit=section.exit,
            hold=section.hold,
            out_of_model=section.out_of_model,
            out_of_model_timeout=section.out_of_model_timeout,
        )

    def releases(self, thresholds: Floats) -> Floats:
        """Return the release level of every threshold."""
        if self.release is None:
            return thresholds
        chosen = self.release
        levels = [chosen(each) for each in thresholds.tolist()] if callable(chosen) else chosen
        if np.isnan(levels).any() or np.isneginf(levels).any():
            raise ValueError("release levels must be numbers above minus infinity")
        return np.minimum(levels, thresholds)


class Episodes(NamedTuple):
    """Alerts, sorted by run, threshold and time; arrays of shape (m,).

    `run`, `threshold`: positions among the runs and the thresholds.
    `start`, `end`: first row of the alert and the first one after it, within the run.
    """

    run: Rows
    threshold: Rows
    start: Rows
    end: Rows


def scored_run(track: Track) -> ScoredRun:
    """Return what the policy was shown of a property over a run."""
    return ScoredRun(
        rate=track.rate,
        horizon=track.horizon,
        ticks=track.ticks,
        score=track.figure,
        violation=track.violation,
        status=track.status,
        out_of_model=track.out_of_model,
        unsure=track.unsure,
        terminal=track.terminal,
        counted=track.counted,
        broken=track.broken,
        held=track.held,
    )


def find_episodes(
    scored_runs: Sequence[ScoredRun], thresholds: Floats, rule: AlertRule
) -> Episodes:
    """Return all alerts of all thresholds in all runs.

    `thresholds` (shape (k,)): scores at and above which an alert begins; above minus infinity.
    `rule`: all else about alerts.

    Raises ValueError if a threshold or release level is NaN or minus infinity.
    """
    if np.isnan(thresholds).any() or np.isneginf(thresholds).any():
        raise ValueError("thresholds must be numbers above minus infinity")
    if not scored_runs or not len(thresholds):
        nothing = np.zeros(0, dtype=np.int64)
        return Episodes(nothing, nothing, nothing, nothing)
    field = _Field.of(scored_runs, rule)
    begin = np.searchsorted(field.reached, thresholds)
    end = 1 - np.searchsorted(field.calmed, rule.releases(thresholds))
    step = max(1, MAX_SEARCHES // len(scored_runs))
    parts = [
        field.search(begin[at : at + step], end[at : at + step], at)
        for at in range(0, len(thresholds), step)
    ]
    run, threshold, start, stop = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((start, threshold, run))
    return Episodes(run[order], threshold[order], start[order], stop[order])


@dataclass(frozen=True, eq=False)
class _Field:
    """All runs one behind the other, each closed by one more row at which every search stops.

    `reached` and `calmed` are the sorted distinct window scores; the tables hold block maxima of
    positions among them, those of `calm` negated, because a release looks for small scores.
    """

    first: Rows
    ended: NDArray[np.bool_]
    reached: Floats
    calmed: Floats
    high: list[Codes]
    calm: list[Codes]
    after_hold: Rows

    @classmethod
    def of(cls, scored_runs: Sequence[ScoredRun], rule: AlertRule) -> _Field:
        sizes = np.array([len(scored.ticks) + 1 for scored in scored_runs])
        first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        ended = np.zeros(int(sizes.sum()), dtype=bool)
        ended[first + sizes - 1] = True
        rows = [_rows(scored, rule) for scored in scored_runs]
        reached, high = np.unique(np.concatenate([row.high for row in rows]), return_inverse=True)
        calmed, calm = np.unique(np.concatenate([row.calm for row in rows]), return_inverse=True)
        high, calm = high.astype(np.int32), -calm.astype(np.int32)
        levels = min(MAX_LEVEL, int(sizes.max()).bit_length())
        hold = [row.after_hold + at for row, at in zip(rows, first, strict=True)]
        return cls(
            first,
            ended,
            reached,
            calmed,
            _blocks(high, levels),
            _blocks(calm, levels),
            np.concatenate(hold),
        )

    def search(self, begin: Rows, end: Rows, offset: int) -> tuple[Rows, Rows, Rows, Rows]:
        """Return run, threshold (from `offset` on), first row and end of every alert."""
        run = np.repeat(np.arange(len(self.first)), len(begin))
        threshold = np.tile(np.arange(len(begin)), len(self.first))
        row = self.first[run]
        found = []
        while row.size:
            start = _next(self.high, row, begin[threshold])
            going = ~self.ended[start]
            run, threshold, start = run[going], threshold[going], start[going]
            stop = _next(self.calm, self.after_hold[start], end[threshold])
            found.append((run, threshold + offset, start - self.first[run], stop - self.first[run]))
            row = stop
        run, threshold, start, stop = (np.concatenate(part) for part in zip(*found, strict=True))
        return run, threshold, start, stop


class _Rows(NamedTuple):
    """One run and its closing row, shape (n + 1,)."""

    high: Floats
    calm: Floats
    after_hold: Rows


def _rows(scored: ScoredRun, rule: AlertRule) -> _Rows:
    n = len(scored.ticks)
    inactive = scored.status == PropertyStatus.INACTIVE
    high, calm = _asked(scored, rule)
    high[inactive], calm[inactive] = -math.inf, math.inf  # a phase without monitoring forgets all
    begins = _window(high, rule.enter, np.minimum, -math.inf)
    if scored.broken is not None:
        begins[(scored.broken == Broken.AT_ONCE) & ~inactive] = math.inf
    ends = _window(calm, rule.exit, np.maximum, math.inf)
    if scored.broken is not None:
        ends[scored.broken >= Broken.CLEARING] = math.inf
    ends[inactive] = -math.inf
    stops = np.append(np.where(inactive, np.arange(n), n), n)
    next_stop = np.minimum.accumulate(stops[::-1])[::-1]
    clock = Grid(scored.rate)
    held = np.searchsorted(scored.ticks, scored.ticks + clock.at_least(rule.hold))
    return _Rows(
        np.append(begins, math.inf),
        np.append(ends, -math.inf),
        np.append(np.minimum(held, next_stop[1:]), n),
    )


def _asked(scored: ScoredRun, rule: AlertRule) -> tuple[Floats, Floats]:
    """Return the scores as they begin and as they end alerts."""
    unknown = np.isnan(scored.score)
    high = np.where(unknown, -math.inf, scored.score)
    calm = np.where(unknown, math.inf, scored.score)
    if scored.out_of_model is not None and scored.out_of_model.any():
        out_of_model = scored.out_of_model & (scored.status != PropertyStatus.INACTIVE)
        begins = out_of_model & ~np.concatenate(([False], out_of_model[:-1]))
        since = np.maximum.accumulate(np.where(begins, scored.ticks, np.iinfo(np.int64).min))
        limit = Grid(scored.rate).ticks(rule.out_of_model_timeout)
        expired = out_of_model & (
            scored.ticks - np.where(out_of_model, since, scored.ticks) >= limit
        )
        acts = out_of_model & ~expired & (rule.out_of_model == "act")
        # Where scores of the property tell a risk of such a state, it counts as well.
        high[out_of_model & acts] = math.inf
        released = expired | (rule.out_of_model == "ignore")
        calm[out_of_model & unknown & released] = -math.inf
        calm[out_of_model & ~released] = math.inf
    if scored.broken is not None:
        high[scored.broken >= Broken.LASTS] = math.inf
        calm[scored.broken >= Broken.LASTS] = math.inf
    if scored.held is not None:
        calm[scored.held] = math.inf
    return high, calm


def _window(values: Floats, size: int, combine: np.ufunc, fill: float) -> Floats:
    """Combine every value with the `size - 1` before it; `fill` where there are fewer."""
    found, width = values, 1
    while width < size:
        step = min(width, size - width)
        found = np.concatenate((np.full(min(step, len(values)), fill),
                                combine(found[step:], found[:-step])))  # fmt: skip
        width += step
    return found


def _blocks(codes: Codes, levels: int) -> list[Codes]:
    """Return the maxima of the 1, 2, 4, ... codes from each row on."""
    table = [codes]
    for level in range(levels):
        last = table[-1]
        wider = last.copy()
        np.maximum(last[: -1 << level], last[1 << level :], out=wider[: -1 << level])
        table.append(wider)
    return table


def _next(table: list[Codes], row: Rows, code: Rows) -> Rows:
    """Return for every row the first one from it on whose code is at least `code`."""
    row = row.copy()
    top = len(table) - 1
    far = np.flatnonzero(table[top][row] < code)
    while far.size:
        row[far] += 1 << top
        far = far[table[top][row[far]] < code[far]]
    for level in reversed(range(top)):
        row += (table[level][row] < code).astype(np.int64) << level
    return row
