"""What the lines of a trace say of a run only once it is over: labels, not variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from forewarn.config.agent_signals import RUN
from forewarn.recordings.traces import JsonTrace

MOST_LINES = 100_000


class Label(NamedTuple):
    """What is known of a run only once it is over.

    Attributes
    ----------
    values : tuple
        Its values, one for each run that has one.
    runs : int
        How many runs there are.
    """

    values: tuple[Any, ...]
    runs: int

    def test(self, name: str) -> str:
        """Return what a terminal label asks of it; empty where that is not plain.

        Truth values, and numbers that are 0 or 1, are asked if half of the runs say them.
        """
        if 2 * len(self.values) < self.runs:
            return ""
        if all(isinstance(value, bool) for value in self.values):
            return name
        return f"{name} == 1" if {*map(_number, self.values)} == {0.0, 1.0} else ""


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def closing_names(traces: Sequence[JsonTrace]) -> dict[str, Label]:
    """Return what is known on the last line of runs alone, by name, in all traces together.

    They are unknown while a run goes on: a predicate over a running step cannot use them. Empty
    where no run has two lines.
    """
    last: dict[Any, Mapping[str, Any]] = {}
    running: set[str] = set()
    lines = ((number, sample) for number, trace in enumerate(traces) for sample in trace.read())
    for number, sample in islice(lines, MOST_LINES):
        assert isinstance(sample.data, Mapping)
        run = number, sample.data.get(RUN)
        running.update(last.get(run, ()))
        last[run] = {name: value for name, value in sample.data.items() if value == value}
    if not running:
        return {}
    found: dict[str, list[Any]] = {}
    for known in last.values():
        for name, value in known.items():
            if name not in running:
                found.setdefault(name, []).append(value)
    return {name: Label(tuple(values), len(last)) for name, values in found.items()}
