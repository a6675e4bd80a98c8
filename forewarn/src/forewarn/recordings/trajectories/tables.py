"""Trajectories in tables: a row for each object at each frame."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from forewarn.config.trajectories import ColumnsSpec, TrajectoriesSpec
from forewarn.errors import RecordingError
from forewarn.expressions.functions.arithmetic import SPELLED_NUMBER
from forewarn.recordings.tables import rows
from forewarn.recordings.traces import short, text_lines
from forewarn.recordings.trajectories.scene import (
    FIELDS,
    NANOSECONDS,
    Scene,
    Sighting,
    nanoseconds,
    scene,
)

TABLE = re.compile(r"\.csv(\.gz|\.zst)?\Z", re.IGNORECASE)
ACCEPTED = "a table with a header that has the columns of trajectories.columns"

Files = Mapping[str, Path]
"""The tables of a run by kind; a single file under an empty text."""


def table_scene(files: Files, layout: TrajectoriesSpec, run: str) -> Scene:
    """Return the scene that the tables of one run hold.

    Raises RecordingError naming file, line and column, if a table is wrong or lacks a column that
    is needed.
    """
    missing = [kind for kind in layout.files if kind not in files]
    warnings = [f"the run has no table {kind!r}: it is read without" for kind in missing]
    found: list[tuple[int, Sighting]] = []
    named: set[str] = set()
    moments: dict[Path, set[int]] = {}
    for kind, path in files.items():
        reader = _Reader(path, kind, layout, warnings)
        before = len(found)
        found += reader.sightings()
        moments[path] = {time for time, _ in found[before:]}
        if len(found) == before:
            warnings.append(f"{path.name} holds no row: the run is read without {kind or 'any'}")
        named |= {*reader.header}
    warnings += _apart(moments)
    first = next(iter(files.values()))
    asked = {str(c) for f in FIELDS if (c := getattr(layout.columns, f)) is not None}
    # A table that is not there may be the one that has the column.
    if (lacking := sorted(asked - named)) and len(files) >= len(layout.files):
        raise RecordingError(f"no table of the run has a column {lacking[0]!r}", file=first,
                             accepted=", ".join(sorted(named)))  # fmt: skip
    times = sorted({time for time, _ in found})
    numbers = {time: at for at, time in enumerate(times)}
    seen = [one._replace(frame=numbers[time]) for time, one in found]
    if not seen:
        raise RecordingError("holds no row", file=first, accepted=ACCEPTED)
    try:
        return scene(run, times, seen, layout, {"run": run}, warnings)
    except ValueError as error:
        raise RecordingError(str(error), file=first, accepted=ACCEPTED) from error


def _apart(moments: Mapping[Path, set[int]]) -> Iterator[str]:
    """Name the tables none of whose times is a time of another table."""
    for path, own in moments.items():
        others = [times for other, times in moments.items() if other is not path and times]
        if own and others and own.isdisjoint(set().union(*others)):
            yield (
                f"{path.name} has no time in common with the other tables of the run: "
                "what it holds is not seen by what they hold"
            )


class _Reader:
    """Reads one table.

    `header`: names of its columns, once it was read.
    """

    def __init__(
        self, path: Path, kind: str, layout: TrajectoriesSpec, warnings: list[str]
    ) -> None:
        self.path, self.header = path, list[str]()
        self._kind, self._layout, self._warnings = kind, layout, warnings
        self._clock = _clock(path, layout)

    def sightings(self) -> Iterator[tuple[int, Sighting]]:
        """Yield the time of each row and what it says; the frame is not known yet."""
        lines = text_lines(self.path, self._warnings.append, self._error)
        for number, cells in rows(lines, self._warnings.append, self._error):
            try:
                if not self.header:
                    self.header = [cell.strip() for cell in cells]
                    places = self._places()
                    continue
                yield self._sighting(cells, places)
            except ValueError as error:
                raise self._error(number, str(error)) from error

    def _places(self) -> Mapping[str, int]:
        """Return where the columns stand; raises ValueError if one that is needed does not."""
        columns, needed = self._layout.columns, {"object", "x", "y"}
        wanted = {name: getattr(columns, name) for name in (*FIELDS, "object", "kind")}
        places = {"time": self._place(self._clock[0], True)}
        for name, column in wanted.items():
            if (place := self._place(column, name in needed)) >= 0:
                places[name] = place
        return places

    def _place(self, column: object, needed: bool) -> int:
        if self.header.count(str(column)) > 1:
            raise ValueError(f"has two columns {column!r}")
        if column in self.header:
            return self.header.index(str(column))
        if needed:
            raise ValueError(f"has no column {column!r}, only {', '.join(self.header)}")
        return -1

    def _sighting(self, cells: Sequence[str], places: Mapping[str, int]) -> tuple[int, Sighting]:
        column, unit = self._clock
        time = _number(cells[places["time"]], column)
        if math.isnan(time):
            raise ValueError(f"{column}: {short(cells[places['time']])} is no time")
        name = cells[places["object"]].strip()
        kind = cells[places["kind"]].strip() if "kind" in places else self._kind
        values = tuple(_number(cells[places[f]], f) if f in places else math.nan for f in FIELDS)
        if math.isnan(values[0]) or math.isnan(values[1]):
            raise ValueError(f"{name}: x or y is not known")
        # Each of several tables counts its objects for itself.
        whole = f"{self._kind}-{name}" if self._kind else name
        return nanoseconds(time, unit), Sighting(0, whole, (kind,) if kind else (), values)

    def _error(self, number: int, problem: str) -> RecordingError:
        return RecordingError(problem, accepted=ACCEPTED, file=f"{self.path}:{number}")


def _clock(path: Path, layout: TrajectoriesSpec) -> tuple[str, float]:
    """Return the column of the times, and the nanoseconds in one of it; raises RecordingError."""
    columns: ColumnsSpec = layout.columns
    if layout.time is not None:
        return layout.time, NANOSECONDS[layout.time_unit]
    if columns.frame is None or isinstance(layout.period, str) or layout.period is None:
        raise RecordingError(
            "a table needs times, or numbers of frames", file=path, key="trajectories",
            accepted="time: a column; or period: seconds, with columns.frame",
        )  # fmt: skip
    return columns.frame, layout.period * 1e9


def _number(cell: str, name: str) -> float:
    """Return a number, NaN for an empty cell or ``nan``; raises ValueError."""
    text = cell.strip()
    if not text:
        return math.nan
    if text.lower() == "nan":
        return math.nan
    value = float(text) if SPELLED_NUMBER.fullmatch(text) else math.inf
    if math.isinf(value):
        raise ValueError(f"{name}: {short(text)} is no number")
    return value
