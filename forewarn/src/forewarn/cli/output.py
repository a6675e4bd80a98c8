"""Where a command's words go: results to stdout, progress and remarks to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 160


class Bar(Protocol):
    """Told how far the work is."""

    def __call__(
        self, done: float | None = None, total: float | None = None, label: str | None = None
    ) -> None:
        """Show that `done` of `total` is done, with this label; what is not given stays."""


class Output:
    """The two streams of a command.

    Parameters
    ----------
    as_json : bool
        Results are one JSON document on stdout; texts and tables are left out.
    quiet : bool
        No progress and no remarks.
    aside : bool
        Results go to stderr too: what the command makes is written to stdout.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, aside: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self._results = sys.stderr if aside else sys.stdout
        self._out = _console(self._results)
        self._err = _console(sys.stderr)

    def say(self, text: str = "") -> None:
        """Print a line of the result for people."""
        if not self.as_json:
            self._out.print(Text(text), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table of the result for people; columns that begin with > are aligned right."""
        if self.as_json or not rows:
            return
        if title:
            self.say(title)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in columns:
            right = name.startswith(">")
            table.add_column(
                Text(name.lstrip(">")), justify="right" if right else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self._out.print(table)

    def emit(self, result: object) -> None:
        """Print the result for machines."""
        if self.as_json:
            self._results.write(json.dumps(json_value(result), indent=2, allow_nan=False) + "\n")

    def note(self, text: str) -> None:
        """Print a remark."""
        if not self.quiet:
            self._err.print(Text(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning, even when quiet."""
        self._err.print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)

    def error(self, text: str) -> None:
        """Print why a command failed."""
        self._err.print(Text(text, style="red"), soft_wrap=True)

    @contextmanager
    def progress(self, label: str) -> Iterator[Bar]:
        """Show a bar while a long work lasts, if someone can see it."""
        shown = self._err.is_terminal and not self.quiet
        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self._err,
            transient=True,
            disable=not shown,
        )
        with bar:
            task = bar.add_task(label, total=None)
            yield lambda done=None, total=None, label=None: bar.update(
                task, completed=done, total=total, description=label
            )


def _console(stream: Any) -> Console:
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def json_value(value: Any) -> Any:
    """Return `value` as JSON can hold it: NaN becomes null, infinity a text."""
    if isinstance(value, Enum):
        return value.name if isinstance(value, int) else value.value
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return json_value(value.item())
    if isinstance(value, np.ndarray):
        return json_value(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return json_value(asdict(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return json_value(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): json_value(entry) for key, entry in value.items()}
    return [json_value(entry) for entry in value]
