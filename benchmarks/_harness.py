"""What all benchmarks share: processor time, turns, tables, and whether the machine was idle."""

from __future__ import annotations

import math
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from evaluation.harness.command import command

LEAST = 0.02  # seconds of one turn of what is short: far above the clock's own cost


def put(name: str, text: str, page: Path) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- end of name -->`; see `replaced`."""
    page.write_text(replaced(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def replaced(page: str, name: str, text: str) -> str:
    """Return a page with a text between the marks of its section.

    Raises
    ------
    ValueError
        If the page has no such marks.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"the page has no marks for {name}")
    return f"{before}{begin}\n{text.strip()}\n\n{end}{after}"


class Target(NamedTuple):
    """What the figure in the column before must not pass: a ceiling, or a floor if `at_least`."""

    limit: float
    at_least: bool = False

    def missed(self, figure: Any) -> bool:
        """Whether a figure misses it; no figure does not, no number does."""
        if figure is None:
            return False
        return not (figure >= self.limit if self.at_least else figure <= self.limit)


Cell: TypeAlias = str | int | float | Target | None


class Table(NamedTuple):
    """Figures of a benchmark; units stand in the head or in a column of their own."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]

    @property
    def missed(self) -> list[str]:
        """The rows that miss a target."""
        return [
            str(row[0])
            for row in self.rows
            if any(isinstance(aim, Target) and aim.missed(got) for got, aim in pairwise(row))
        ]

    def __str__(self) -> str:
        """Return the table in Markdown."""
        rows = [self.columns, ["---"] * len(self.columns), *(_cells(row) for row in self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace(" --- ", "---")


def _cells(row: tuple[Cell, ...]) -> Iterator[str]:
    for before, cell in pairwise((None, *row)):
        if isinstance(cell, Target):
            aim = f"{'at least' if cell.at_least else 'at most'} {cell.limit:,.10g}"
            yield f"{aim}: missed" if cell.missed(before) else aim
        else:
            yield "" if cell is None else cell if isinstance(cell, str) else number(cell)


def number(figure: float) -> str:
    """Return a figure with three significant digits, or all of a count."""
    if isinstance(figure, int) or not math.isfinite(figure) or figure == 0:
        return f"{figure:,}"
    places = 2 - math.floor(math.log10(abs(figure)))
    return f"{round(figure, places):,.{max(places, 0)}f}"


def processor_time() -> float:
    """Return the seconds of this process, its threads, and all children that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def processor_seconds(pid: int) -> float:
    """Return the processor time that a running process and its ended children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def resident() -> float:
    """Return the resident memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return math.nan


class Timed(NamedTuple):
    """Processor time of one call in the best turn, in seconds, and what the last call returned."""

    seconds: float
    result: Any


def take_turns(*works: Callable[[], Any], turns: int, least: float = 0.0) -> list[Timed]:
    """Call each work in turn (A B A B), so that what else the machine does slows all of them.

    From the second on, a turn repeats a call until it takes about `least` seconds.
    """
    best, calls, results = [math.inf] * len(works), [1] * len(works), [None] * len(works)
    for _ in range(turns):
        for at, work in enumerate(works):
            begin = processor_time()
            for _ in range(calls[at]):
                results[at] = work()
            taken = (processor_time() - begin) / calls[at]
            best[at] = min(best[at], taken)
            calls[at] = max(calls[at], math.ceil(least / max(taken, 1e-7)))
    return [Timed(*item) for item in zip(best, results, strict=True)]


def quantile(values: list[float], level: float) -> float:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(level * len(ordered)), len(ordered) - 1)]


class Usage(NamedTuple):
    """Processor time in seconds, over all cores: that passed, that was used, and our part of it."""

    passed: float
    used: float
    own: float

    @classmethod
    def now(cls) -> Usage:
        """Read /proc/stat; what a hypervisor gave to others counts as used."""
        line = Path("/proc/stat").read_text().partition("\n")[0]
        seconds = [int(field) / os.sysconf("SC_CLK_TCK") for field in line.split()[1:9]]
        return cls(sum(seconds), sum(seconds) - seconds[3] - seconds[4], processor_time())

    def others_since(self, before: Usage) -> float:
        """Return which share of the processors went to others than us and our children."""
        used = (self.used - before.used) - (self.own - before.own)
        return max(used, 0.0) / (self.passed - before.passed)


def machine() -> str:
    """Describe the machine and the versions that matter."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "rosbags"))
    model = found[1].strip() if found else platform.processor()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}"


def run(measure: Callable[..., list[Table]]) -> int:
    """Run one benchmark from its command line; the parameters of `measure` are its options.

    The tables are printed when all is measured. The exit code is 1 if a target is missed.
    """
    tables = command(measure)
    print("\n\n".join(map(str, tables)))
    missed = [name for table in tables for name in table.missed]
    if missed:
        print(f"below target: {', '.join(missed)}", file=sys.stderr)
    return int(bool(missed))
