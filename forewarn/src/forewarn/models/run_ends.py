"""Tell whether violations end the recordings in which they happen.

A recording may end by chance, or because of a violation: after a crash the drive is over. After an
end by chance, what followed the last moments is unknown. If a violation ended the recording, then
the violation is what followed. To decide between the two, we compare how often runs end shortly
after a
violation with how often runs of the same age end anyway (log-rank test; Mantel, 1966).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import pdtrc

from forewarn.errors import plural

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

SIGNIFICANT = 1e-3
"""Largest probability that as many runs end after a violation by chance."""
LEAST_RATIO = 2.0
"""Least ratio of the runs that end after a violation to those that would by chance."""
DEVIATIONS = 3.0
"""Standard errors by which violations have to lie nearer to the end than random times would."""
MAX_LENGTH = 1 << 40
MAX_RUNS = 1 << 20


class RunEnd(NamedTuple):
    """A stretch of ticks during which a property was monitored, to its end.

    `length`: ticks.
    `violations`: ticks from the first one on at which a violation begins, rising.
    """

    length: int
    violations: tuple[int, ...]

    def ends_after_violation(self, horizon: int) -> bool:
        """Tell whether moments before a violation lack a part of their horizon at the end."""
        return bool(self.violations) and self.violations[-1] > self.length - horizon


class RunEnds(NamedTuple):
    """How the runs of a property end.

    `violations`: how many there are.
    `last`: how many of them begin within the last horizon of their run.
    `observed`, `expected`: runs that end within a horizon after a violation; how many would if
        their ends had nothing to do with it.
    `concluded`: violations end the runs: such a violation counts as the end of an episode.
    """

    violations: int = 0
    last: int = 0
    observed: int = 0
    expected: float = 0.0
    concluded: bool = False


def judge_ends(runs: Sequence[RunEnd], horizon: int | None) -> RunEnds:
    """Tell whether violations end the runs.

    `runs`: all that are judged together.
    `horizon`: ticks; with None, an unbounded horizon, only a terminal label tells how a run ends.
    """
    if horizon is None or not runs:
        return RunEnds()
    violations = sum(len(run.violations) for run in runs)
    last = sum(at > run.length - horizon for run in runs for at in run.violations)
    observed = sum(run.ends_after_violation(horizon) for run in runs)
    expected = _expected(runs, horizon)
    concluded = (
        observed >= LEAST_RATIO * expected
        and float(pdtrc(observed - 1, expected)) < SIGNIFICANT
        and _lie_late(runs)
    )
    return RunEnds(violations, last, observed, expected, bool(concluded))


def _expected(runs: Sequence[RunEnd], horizon: int) -> float:
    """Return how many runs would end within a horizon after a violation, were it by chance."""
    lengths = np.sort([run.length for run in runs])
    ages, ended = np.unique(lengths, return_counts=True)
    going = len(lengths) - np.searchsorted(lengths, ages)
    spans = [
        (at + 1, min(at + horizon, following + 1))
        for run in runs
        for at, following in itertools.pairwise((*run.violations, run.length))
    ]
    # Lengths at which a run would end after each violation: from the first to beyond the last.
    first, beyond = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    after = np.zeros(len(ages) + 1)
    np.add.at(after, np.searchsorted(ages, first), 1)
    np.subtract.at(after, np.searchsorted(ages, np.maximum(first, beyond)), 1)
    return float(np.sum(ended * np.cumsum(after)[:-1] / going))


def _lie_late(runs: Sequence[RunEnd]) -> bool:
    """Tell whether the last violations lie nearer to the ends of runs than random times would.

    Short clips from a dangerous place end shortly after a violation more often than long runs do,
    and no violation ends them. In such clips violations lie at any time. For each run we compute
    how probable it is that the last of as many random times lies at least as near to the end. By
    chance this probability is uniform, with a mean of one half.
    """
    found = [
        1 - (run.violations[-1] / run.length) ** len(run.violations)
        for run in runs
        if run.violations
    ]
    limit = 0.5 - DEVIATIONS * math.sqrt(1 / (12 * len(found))) if found else 0.0
    return bool(found) and float(np.mean(found)) < limit


def ends_in_words(name: str, ends: RunEnds, within: str, proposal: str) -> str:
    """Say what share of violations lies at the end, and what follows; empty if few do.

    `within`: the horizon, for people.
    `proposal`: what the monitor file should say, if violations do end the runs.
    """
    if not ends.last or (not ends.concluded and 2 * ends.last < ends.violations):
        return ""
    lie = "lies" if ends.last == 1 else "lie"
    counted = (
        f"{name}: {ends.last} of {plural(ends.violations, 'violation')} {lie} within the last "
    )
    if ends.concluded:
        return (
            f"{counted}{within} of their recordings, which end because of them: each counts as the "
            f"end of an episode. The monitor file can say so for certain: {proposal}"
        )
    return (
        f"{counted}{within} of a recording: the moments before are left out, because their horizon "
        f"reaches beyond the end. If violations end recordings, say so: {proposal}"
    )


def dump_ends(ends: Sequence[RunEnd]) -> list[Any]:
    """Return the ends of runs as JSON can hold them."""
    return [[run.length, list(run.violations)] for run in ends]


def parse_ends(reader: Reader, key: str) -> tuple[RunEnd, ...]:
    """Return the ends of runs from JSON; raises ModelError naming what is wrong."""
    found = []
    for row in reader.items(key, MAX_RUNS):
        match row:
            case [int(length), [*times]] if _rising(times, length):
                found.append(RunEnd(length, tuple(times)))
            case _:
                raise reader.wrong(key, row, "[length, [ticks of violations, rising]]")
    return tuple(found)


def _rising(times: Sequence[Any], length: int) -> bool:
    if not all(type(time) is int for time in (length, *times)) or not 0 < length < MAX_LENGTH:
        return False
    return all(a < b for a, b in itertools.pairwise([-1, *times, length]))
