"""Tables of named values in CSV: a header with the names of signals, one moment a row.

The column ``t`` is the time in seconds, or ``t_ns`` in nanoseconds, with the rules of JSON lines
(`traces`); all other columns are signals. A cell is a number, ``true`` or ``false``, or a text. An
empty cell says nothing: the signal keeps its last value. ``nan`` stands for unknown. Cells are
parted by tabs if the header has one, else by commas, or by semicolons if the header has no comma;
they may stand in double quotes; a row is one line. A decimal comma is an error. A last row that is
cut short is left out with a warning. The file may be compressed with gzip (.gz) or zstd (.zst).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from forewarn.errors import RecordingError
from forewarn.recordings.interface import Sample
from forewarn.recordings.traces import JsonTrace, sample_of, short

ACCEPTED = "a header such as t,speed,mode and rows such as 12.3,1.2,auto"
SUFFIXES = (".csv", ".csv.gz", ".csv.zst")
QUOTED = re.compile(r'"[^"]*"')
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?\Z")
TRUTH = {"true": True, "false": False}


def is_table(path: Path, _: bytes) -> bool:
    """Tell by its name whether a file is a table."""
    return path.name.lower().endswith(SUFFIXES)


class CsvTable(JsonTrace):
    """A table of named values; see `Recording` for the members.

    All rows are checked when it is opened.
    """

    def _lines(self) -> Iterator[Sample]:
        names: list[str] | None = None
        for count, (number, cells) in enumerate(rows(self._texts(), self._warn, self._error), -1):
            try:
                if names is None:
                    names = _header(cells)
                    continue
                named = zip(names, cells, strict=True)
                values = {name: _value(name, cell) for name, cell in named if cell.strip()}
                placed = self._placed(sample_of(values), count)
            except ValueError as error:
                raise self._error(number, str(error)) from error
            yield placed

    def _error(self, number: int, problem: str) -> RecordingError:
        return RecordingError(problem, accepted=ACCEPTED, file=f"{self.path}:{number}")


def separator_of(header: str) -> str:
    """Return what parts the cells of a table, by its header: a tab, else ``,``, else ``;``."""
    outside = QUOTED.sub("", header)
    return next((one for one in "\t,;" if one in outside), ",")


def rows(
    lines: Iterable[tuple[int, str]],
    warn: Callable[[str], None],
    wrong: Callable[[int, str], RecordingError],
) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each row, the header first; a last row that is cut is left out.

    `wrong` makes the error of a row that cannot be read.
    """
    width, separator = 0, ","
    for number, line in lines:
        separator = separator if width else separator_of(line)
        cells: list[str] = []
        try:
            cells = next(csv.reader([line], delimiter=separator, strict=True))
        except csv.Error as error:
            if line.endswith("\n"):
                raise wrong(number, str(error)) from error
        if len(cells) < width and not line.endswith("\n"):
            warn(f"line {number} is cut short; it is left out")
            continue
        width = width or len(cells)
        if len(cells) != width:
            raise wrong(number, f"has {len(cells)} cells for {width} columns")
        yield number, cells


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip().removeprefix("\ufeff") for cell in cells]
    for i, name in enumerate(names):
        if not name:
            raise ValueError(f"column {i + 1} has no name")
        if name in names[:i]:
            raise ValueError(f"{short(name)}: stands twice in the header")
    return names


def _value(name: str, cell: str) -> Any:
    """Return what a cell says; the time must be a number."""
    text = cell.strip()
    if name == "t_ns":
        return int(text)
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if DECIMAL_COMMA.match(text):
        raise ValueError(f"{short(name)}: {text} has a decimal comma; write a point")
    if "_" in text:  # 1_000 is a number for Python alone
        return text
    try:
        return float(text)
    except ValueError:
        return text
