"""What the lines of a trace say of a run only once it is over: labels, not variables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from forewarn.recordings import JsonTrace
from forewarn.recordings.agent_steps import KEY

MOST_LINES = 100_000


def closing_names(trace: JsonTrace) -> dict[str, bool]:
    """Return the names that are known on the last line of runs alone.

    Nobody knows them while a run goes on: a predicate over a running step cannot ask for them.

    Returns
    -------
    dict of str to bool
        Each name with whether all its values are truth values; empty where no run has two lines.
    """
    last: dict[Any, Mapping[str, Any]] = {}
    running: set[str] = set()
    for sample in islice(trace.read(), MOST_LINES):
        assert isinstance(sample.data, Mapping)
        run = sample.data.get(KEY)
        running.update(last.get(run, ()))
        last[run] = {name: value for name, value in sample.data.items() if value == value}
    if not running:
        return {}
    found: dict[str, bool] = {}
    for known in last.values():
        for name, value in known.items():
            if name not in running:
                found[name] = found.get(name, True) and isinstance(value, bool)
    return found
