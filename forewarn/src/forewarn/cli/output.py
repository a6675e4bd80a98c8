"""Output of commands: results go to stdout, progress and remarks to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from forewarn.cli.layout import table_lines, wrapped

if TYPE_CHECKING:
    from forewarn.assessment.progress import Bar

PIPE_WIDTH = 160
#: How words are shown wherever they are a cell, or begin a line.
STYLES = {
    "VIOLATION": "bold red",
    "missed": "red",
    "alert": "yellow",
    "error": "red",
    "warning": "yellow",
}


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
            first = text.partition(":")[0]
            self._print(self._out, text, STYLES.get(first, ""), only=len(first))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table of the result for people; `table_lines` says what marks its columns."""
        if self.as_json or not rows:
            return
        if title:
            self.say(title)
        for line in table_lines(columns, rows, self._out.width, STYLES):
            self._out.print(line, soft_wrap=True)

    def emit(self, result: object) -> None:
        """Print the result for machines."""
        if self.as_json:
            self._results.write(json.dumps(json_value(result), indent=2, allow_nan=False) + "\n")

    def note(self, text: str) -> None:
        """Print a remark."""
        if not self.quiet:
            self._print(self._err, text)

    def warn(self, text: str) -> None:
        """Print a warning, even when quiet."""
        self._print(self._err, f"warning: {text}", "yellow")

    def error(self, text: str) -> None:
        """Print why a command failed."""
        self._print(self._err, text, "red")

    @staticmethod
    def _print(console: Console, text: str, style: str = "", only: int | None = None) -> None:
        """Print a text, on a terminal wrapped between words; `style` is that of `only` so much."""
        lines = text.split("\n")
        if console.is_terminal:
            lines = [part for line in lines for part in wrapped(line, console.width)]
        shown = Text("\n".join(lines))
        shown.stylize(style, 0, only)
        console.print(shown, soft_wrap=True)

    @contextmanager
    def progress(self, label: str) -> Iterator[Bar]:
        """Show a progress bar during long work, if stderr is a terminal."""
        from rich import progress

        shown = self._err.is_terminal and not self.quiet
        bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeRemainingColumn(),
            console=self._err,
            transient=True,
            disable=not shown,
        )
        with bar:
            task = bar.add_task(label, total=None)
            yield lambda done=None, total=None, label=None: bar.update(
                task, completed=done, total=total, description=label
            )


class Collected(Output):
    """The output of a command for a program: nothing is printed.

    Attributes
    ----------
    document : object
        The result for machines.
    remarks : list of str
        Remarks and warnings.
    """

    def __init__(self) -> None:
        super().__init__(as_json=True, quiet=True)
        self.document: Any = None
        self.remarks: list[str] = []

    def emit(self, result: object) -> None:
        """Keep the result for machines."""
        self.document = json_value(result)

    def note(self, text: str) -> None:
        """Keep a remark."""
        self.remarks.append(text)

    def warn(self, text: str) -> None:
        """Keep a warning."""
        self.remarks.append(text)


class _Console(Console):
    """A console that leaves it to the command what comes of a reader who has gone."""

    def on_broken_pipe(self) -> None:
        """Raise the error on; the default ends the process with the exit code of findings."""
        raise


def _console(stream: Any) -> Console:
    width = None if stream.isatty() else PIPE_WIDTH
    return _Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


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
    if hasattr(value, "tolist"):  # a number or an array of numpy's, which not all commands need
        return json_value(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return json_value(asdict(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return json_value(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): json_value(entry) for key, entry in value.items()}
    return [json_value(entry) for entry in value]
