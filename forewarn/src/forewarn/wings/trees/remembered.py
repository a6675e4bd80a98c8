"""Moments of a live session, kept in bounded memory, from which a tree can be grown again."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.files.outputs import write_output
from forewarn.signals.clock import Clock
from forewarn.states.abstraction import Abstraction
from forewarn.wings.trees.concrete import concrete


class _Moment(NamedTuple):
    tick: int
    values: Sequence[Any]
    ended: bool


class RememberedRuns:
    """The source signals of the newest moments, `most` of them, from which runs are written.

    `observe` only keeps a moment, because the ticks have no time; another thread may `write`.
    """

    def __init__(self, abstraction: Abstraction, most: int) -> None:
        self._names = tuple(source.name for source in abstraction.sources)
        self._clock: Clock = abstraction.clock
        self._moments: deque[_Moment] = deque(maxlen=most)

    def observe(self, tick: int, values: Sequence[Any], *, ended: bool) -> None:
        """Take in a moment, its signals with the sources first.

        A run goes on as long as ticks follow each other, and until a terminal label has `ended` it.
        """
        self._moments.append(_Moment(tick, values[: len(self._names)], ended))

    def write(self, folder: Path) -> int:
        """Write each run as a trace of its own; return how many moments they have."""
        moments = 0
        for number, run in enumerate(self._runs()):
            lines = "".join(f"{json.dumps(line)}\n" for line in self._lines(number, run))
            write_output(folder / f"{number:06}.jsonl", lines)
            moments += len(run)
        return moments

    def _runs(self) -> Iterator[list[_Moment]]:
        run: list[_Moment] = []
        for moment in self._moments.copy():  # in one go, for ticks go on meanwhile
            over = run and run[-1].ended and not moment.ended
            if run and (over or moment.tick != run[-1].tick + 1):
                yield run
                run = []
            run.append(moment)
        if run:
            yield run

    def _lines(self, number: int, run: Sequence[_Moment]) -> Iterator[dict[str, Any]]:
        for step, moment in enumerate(run, 1):
            time = {"t_ns": self._clock.time_ns(step)} if self._clock.timed else {}
            signals = dict(zip(self._names, moment.values, strict=True))
            # The number of the run: equal runs are no copies of one recording.
            known = zip(self._names, concrete(signals, self._names), strict=True)
            yield {"run": number, **time, **dict(known)}
