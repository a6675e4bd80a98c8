"""Learned scores as a step of learning: read what they are fitted to, fit, and compile again."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from forewarn.assessment.censoring import concluded, run_ends
from forewarn.assessment.history import History, Track
from forewarn.assessment.reliability import UNDECIDED, outcomes
from forewarn.assessment.replay import types_for, verdicts_of
from forewarn.errors import ConfigError, located
from forewarn.learning.executors import Executor, Here, Progress
from forewarn.learning.folds import grouping_of
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session
from forewarn.recordings.groups import Grouping
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock import horizon_ticks
from forewarn.states.abstraction import Abstraction, Past
from forewarn.wings.scores.boosted_trees import need_sklearn
from forewarn.wings.scores.fit import DIRECTIONS
from forewarn.wings.scores.score import Scoring
from forewarn.wings.scores.score_fit import (
    MOST_NUMBERS,
    Bools,
    FittedScore,
    Rows,
    fit_score,
    settled,
    thinned,
)


def fit_scores(
    compiled: CompiledSpec,
    paths: Sequence[Path],
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    tell: Callable[[str, int, int], None] | None = None,
    allow_missing: bool = False,
    read: dict[Path, list[Rows]] | None = None,
) -> tuple[CompiledSpec, list[FittedScore]]:
    """Fit the learned scores of a monitor file to recordings.

    `compiled`: the monitor file; scores that it has are fitted again.
    `paths`: recordings, which are read once.
    `executor`: who reads them; this process by default.
    `tell`: called with the score that is fitted, and how many of how many fits are done.
    `read`: what recordings gave that were read for other folds; what is read now is added, up to
        `MOST_NUMBERS` numbers.

    `compiled`: the monitor file with the scores. Those that did not see a fold of the recordings
        are with them, for the recordings of this fold when they are counted.
    In the order of the monitor file; empty if it has no learned score.

    Raises InputError if scikit-learn is not installed, a signal does not serve, or there are too
    few violations.
    """
    spec = compiled.spec
    if not spec.learned_score:
        return compiled, []
    need_sklearn()
    bare = compile_spec(spec)
    work = (bare, grouping_of(spec), allow_missing)
    kept = {} if read is None else read
    known = [kept[path] for path in paths if path in kept]
    new = [path for path in paths if path not in kept]
    reading = (executor or Here()).each(new, rows_of, work, progress)
    with closing(reading):
        parts, stride = thinned(chain(known, _keeping(reading, read)))
    found = []
    for index, (name, scoring) in enumerate(bare.abstraction.scores):
        assert isinstance(scoring, Scoring)
        section = spec.learned_score[name]
        rule, clock = spec.properties[section.property], bare.abstraction.clock
        signs = [section.directions.get(signal) for signal in scoring.signals]
        with located(ConfigError, file=spec.file):
            fitted = fit_score(
                scoring,
                [0 if sign is None else DIRECTIONS[sign] for sign in signs],
                section.property,
                rule,
                settled([rows[index] for rows in parts], horizon_ticks(clock, rule.horizon)),
                stride,
                None if tell is None else partial(tell, name),
            )
        found.append(fitted)
    return compile_spec(spec, [one.fit for one in found]), found


def _keeping(
    reading: Iterable[tuple[Path, list[Rows]]], read: dict[Path, list[Rows]] | None
) -> Iterator[list[Rows]]:
    """Yield what recordings give, and keep it for other folds as long as there is room."""
    held = sum(one.features.size for rows in (read or {}).values() for one in rows)
    for path, rows in reading:
        held += sum(one.features.size for one in rows)
        if read is not None and held <= MOST_NUMBERS:
            read[path] = rows
        yield rows


def rows_of(
    path: Path,
    compiled: CompiledSpec,
    grouping: Grouping | None,
    allow_missing: bool,
    progress: Callable[[float], None] | None = None,
) -> list[Rows]:
    """Return what a recording gives each learned score, in the order of the abstraction."""
    monitor = build_monitor(compiled, None)
    scores = compiled.abstraction.scores
    columns = [_Columns(compiled.abstraction, name, scoring) for name, scoring in scores]
    history, intervened = History(monitor), array("b")
    with open_recording(path) as recording:
        types = types_for(monitor, recording, allow_missing=allow_missing)
        session = Session(monitor, types)
        for verdict in verdicts_of(session, recording, types.keys(), progress):
            history.add(verdict)
            times = verdict.repeats + 1
            intervened.extend((verdict.observation.intervened is not False,) * times)
            past = session.state.past
            assert past is not None
            for column in columns:
                column.add(past, verdict.values, times)
        digest = recording.digest()
        group = "" if grouping is None else grouping.of(recording)
    tracks = dict(zip(compiled.spec.properties, history.tracks(), strict=True))
    blocked = np.array(intervened, dtype=bool)
    return [
        column.rows(digest, tracks[compiled.spec.learned_score[name].property], blocked)._replace(
            group=group
        )
        for (name, _), column in zip(scores, columns, strict=True)
    ]


class _Columns:
    """The features of one score over a recording."""

    def __init__(self, abstraction: Abstraction, name: str, scoring: Any) -> None:
        self._window = partial(abstraction.window, name)
        self._features = scoring.trees.features
        names = abstraction.signals
        self._slots = [(signal, names.index(signal)) for signal in scoring.signals]
        self._values = array("d")
        self._others: set[str] = set()

    def add(self, past: Past, values: Sequence[Any], times: int) -> None:
        """Take in some ticks that are the same."""
        self._values.extend(tuple(self._features(self._window(past))) * times)
        for signal, slot in self._slots:
            value = values[slot]
            if value is not None and not isinstance(value, int | float):
                self._others.add(signal)

    def rows(self, digest: str, track: Track, intervened: Bools) -> Rows:
        """Return the rows of the ticks that are judged, with what followed."""
        run = replace(track, possible=track.possible | intervened)
        here = ~run.unsure & np.isin(run.status, UNDECIDED)
        followed, known = outcomes(concluded(run))
        judged = here & known
        certain = outcomes(run)[1][judged]
        features = np.array(self._values, dtype=np.float64).reshape(len(judged), -1)
        censored = int((here & ~known).sum())
        others = frozenset(self._others)
        return Rows(
            digest,
            run.ticks[judged],
            features[judged],
            followed[judged],
            certain,
            censored,
            others,
            run_ends(track),
        )
