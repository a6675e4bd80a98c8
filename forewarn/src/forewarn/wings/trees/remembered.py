"""Moments of a live session, kept in bounded memory, from which a tree can be grown again."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.files.outputs import write_output
from forewarn.models.trie import ROOT
from forewarn.signals.clock import Clock
from forewarn.states.abstraction import Abstraction
from forewarn.wings.trees.concrete import concrete
from forewarn.wings.trees.linked_abstraction import LinkedAbstraction
from forewarn.wings.trees.nodes import Leaf


class _Moment(NamedTuple):
    tick: int
    values: Sequence[Any]
    ended: bool


class RememberedRuns:
    """The source signals of the newest moments, `most` of them, from which runs are written.

    `observe` only puts a moment into a queue, because the ticks have no time; `write` does all
    else, and one other thread may call it at a time.
    """

    def __init__(self, abstraction: Abstraction, most: int) -> None:
        self._names = tuple(source.name for source in abstraction.sources)
        self._clock: Clock = abstraction.clock
        self._queue: deque[_Moment] = deque(maxlen=most)
        self._linked = LinkedAbstraction(Leaf("all"), _no_condition, most)
        self._here, self._last = ROOT, _Moment(-1, (), True)

    def observe(self, tick: int, values: Sequence[Any], *, ended: bool) -> None:
        """Take in a moment, its signals with the sources first.

        A run goes on as long as ticks follow each other, and until a terminal label has `ended` it.
        """
        self._queue.append(_Moment(tick, values, ended))

    def write(self, folder: Path) -> int:
        """Write each run as a trace of its own; return how many moments they have."""
        self._take_in()
        moments = 0
        for number, run in enumerate(self._linked.trie.words()):
            lines = "".join(f"{json.dumps(line)}\n" for line in self._lines(number, run))
            write_output(folder / f"{number:06}.jsonl", lines)
            moments += len(run)
        return moments

    def _take_in(self) -> None:
        while self._queue:
            moment = self._queue.popleft()
            over = self._last.ended and not moment.ended
            if over or moment.tick != self._last.tick + 1:
                self._linked.end(self._here)
                self._here = ROOT
            state = concrete(dict(zip(self._names, moment.values, strict=False)), self._names)
            self._here = self._linked.step(self._here, "", state)
            self._last = moment

    def _lines(self, run: int, endpoints: Sequence[int]) -> Iterator[dict[str, Any]]:
        for number, endpoint in enumerate(endpoints, 1):
            time = {"t_ns": self._clock.time_ns(number)} if self._clock.timed else {}
            signals = zip(self._names, self._linked.trie.state[endpoint], strict=True)
            # The number of the run: equal runs are no copies of one recording.
            yield {"run": run, **time, **dict(signals)}


def _no_condition(text: str) -> Any:
    raise AssertionError(text)  # one leaf has none
