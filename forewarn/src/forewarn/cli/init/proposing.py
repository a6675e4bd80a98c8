"""Rules for a recording, fitted to what its robot does, and tried on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from forewarn.assessment.precursors import changed_over
from forewarn.cli.init.draft import Draft
from forewarn.cli.init.examples import Example
from forewarn.cli.init.rules import candidates_of, chosen, example_with, fitted
from forewarn.cli.init.trial import Trial, parts_of, run_trial, series_of, trials_of
from forewarn.cli.init.writing import compose
from forewarn.recordings.interface import Recording
from forewarn.signals.clock_kinds import clock_of


class Proposed(NamedTuple):
    """The rules of a file, and what came of all that were tried."""

    example: Example
    trials: Mapping[str, Trial]


def proposed_rules(
    draft: Draft,
    kind: str,
    recordings: Sequence[Recording],
    seconds: float,
    progress: Callable[[float, float], None],
) -> Proposed:
    """Return rules of a kind of robot: fitted to the values of its signals, and tried.

    Parameters
    ----------
    seconds : float
        How much of the recordings to look at, together.
    """
    candidates = candidates_of(kind, draft)
    if not candidates:
        return Proposed(Example(), {})
    paths = parts_of(recordings, seconds)
    runs = run_trial(compose(draft, example_with(candidates, {})), paths, progress)
    series = series_of(runs)
    first = trials_of(runs)
    ticks = len(next(iter(series.values())))
    clock = clock_of(draft.rate, draft.step)
    tested = (
        fitted(candidate, series, usual=first[candidate.name].is_usual(ticks / clock.rate))
        for candidate in candidates
    )
    fitting = [candidate for candidate in tested if candidate is not None]
    if not fitting:
        return Proposed(Example(), {})
    if fitting != candidates:
        runs = run_trial(compose(draft, example_with(fitting, {})), paths, progress)
    tried = trials_of(runs)
    return Proposed(chosen(fitting, tried, changed_over(clock) / clock.rate), tried)
